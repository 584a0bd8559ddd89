"""Commands that start serving engines, in scripts of a shell, and the files of settings that engines take.

Scripts are looked through, never run: a name that the script itself sets is put in, no other.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.reading.benchmarks import stem_of
from planner.reading.deployments import show_engines
from planner.reading.engine_arguments import PLUMBING, Engine, engine_of, mapping, whole
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading
from planner.reading.source import Source, refused
from planner.yamlfile import parse_yaml

_LIMIT_BYTES = 1_000_000
_MOST_ENGINES = 200
_DEEPEST = 4  # names that are set to other names; commands within the words of commands
_STARTS = re.compile(
    r"(?<![\w./:-])(?:\S{0,300}/)?(?:vllm\s+serve|(?:sglang|trtllm-serve)\s+serve|trtllm-serve|llama-server"
    r"|text-generation-launcher)(?=\s|$)"
    r"|\bvllm\.entrypoints\.(?:openai\.)?api_server\b|\bsglang\.launch_server\b"
)
_IMAGE = re.compile(
    r"(?:[\w.-]+(?::\d+)?/)*(?:vllm|sglang|text-generation-inference|tensorrt-llm|llama\.cpp|nim)[\w./-]*(?:[:@][\w.:-]+)?"
)
_RUNS_IMAGE = re.compile(r"\b(?:docker|podman|nerdctl)\s+(?:container\s+)?run\b")
_ALONE = re.compile(r"--?(?:rm|it|ti|i|t|d|dit|itd|init|privileged|detach|interactive|tty|P|publish-all|read-only)")
_ARRAY = re.compile(r"(?m)^[ \t]*(?:export |declare -a |local )?([A-Za-z_]\w{0,60})\+?=\(([^()]*)\)")
_SET = re.compile(  # a default within ${} may stand in quotes of its own: ${MODEL:-"org/name"}
    r"""(?m)(?:^|[;&|][ \t]*|[ \t])([A-Za-z_]\w{0,60})="""
    r"""("(?:\$\{[^{}\n]*\}|[^"\n])*+"|'[^'\n]*'|(?:\$\{[^{}\n]*\}|[^\s;&|()"'])*+)"""
)
_NAMED = re.compile(r"\$\{(\w+)(?:\[[@*]\])?(?::?-([^{}]*))?\}|\$(\w+)")
_ENDS = re.compile(r"[;&|<>()]+")
_SLURM = {"nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), "N": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
          "gpus-per-node": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE")}  # fmt: skip
# settings by which a file of them is told, with whose they are; dashes and underscores are alike
_TELLING: Mapping[str, str] = {
    "gpu-memory-utilization": "vllm", "max-num-seqs": "vllm", "max-num-batched-tokens": "vllm",
    "tensor-parallel-size": "", "pipeline-parallel-size": "", "data-parallel-size": "", "max-model-len": "vllm",
    "served-model-name": "", "enable-prefix-caching": "vllm", "enable-expert-parallel": "vllm", "kv-cache-dtype": "",
    "mem-fraction-static": "sglang", "model-path": "sglang", "tp-size": "sglang", "chunked-prefill-size": "sglang",
    "enable-attention-dp": "trtllm", "kv-cache-config": "trtllm", "moe-expert-parallel-size": "trtllm",
    "cuda-graph-config": "trtllm", "max-batch-size": "trtllm", "max-num-tokens": "trtllm",
}  # fmt: skip
_FEWEST = 2


def _told(text: str) -> str:
    """A script without comments, its continued lines joined; lines of Slurm's and SkyPilot's stay."""
    text = re.sub(r"\\\r?\n[ \t]*", " ", text)
    return re.sub(r"(?m)(?:^|[ \t])#(?!SBATCH).*$", "", text)


def _match(source: Source) -> Match:
    text = source.head_text
    if not source.is_text or text.lstrip()[:1] in ("{", "["):
        return NOTHING
    if re.search(r"(?m)^[ -]{0,4}kind:", text):  # resources of Kubernetes are another kind
        return NOTHING
    told = _told(text)
    found = _STARTS.search(told)
    if found is None:
        found = next((image for line in told.splitlines() if _RUNS_IMAGE.search(line) and (image := _image_in(line))),
                     None)  # fmt: skip
    return Match(score=0.75, found=(found.group()[:60],), tool="") if found else NOTHING


def _image_in(line: str) -> re.Match[str] | None:
    return next((found for word in line.split() if (found := _IMAGE.fullmatch(word.strip("\"'")))), None)


def _read(source: Source, asked: Asked) -> Reading:
    reading = Reading(kind="launch", title="commands that start serving engines", source=source.name,
                      of="groups of engines")  # fmt: skip
    engines: list[Engine] = []
    weighed = True
    for part in source.parts:
        text = _told(part.text(_LIMIT_BYTES))
        weighed = weighed and not re.search(r"(?m)^\s*(?:if|for|while|case)\b", text)
        names = _names_of(text)
        for line, words, image, own in _commands(_put_in(text, names), 1):
            engine = _engine(words, image, names | own, line)
            engine.title = (engine.model.rsplit("/", 1)[-1] or stem_of(part))[:80]
            if _is_further_machine(engine):
                reading.skipped.add("a further machine of an engine", line)
            elif alike := next((other for other in engines if _as_known(other) == _as_known(engine)), None):
                alike.replicas = (alike.replicas or 0) + 1
            elif len(engines) >= _MOST_ENGINES:
                reading.skipped.add(f"engines after the first {_MOST_ENGINES}", line)
            else:
                engines.append(engine)
        _of_task(text, engines)
    if not engines:
        raise refused(source, "nothing-taken", f"no command of {source.name} starts an engine", "name the whole script")
    reading.taken = len(engines)
    reading.tool = ", ".join(dict.fromkeys(engine.engine for engine in engines if engine.engine))
    if not weighed:
        reading.note("Conditions and loops are not weighed: each command that starts an engine counts once.")
    show_engines(reading, engines, asked)
    return reading


def _names_of(text: str) -> dict[str, str]:
    """Names that a script sets to what it writes out, those of Slurm by its own lines."""
    found: dict[str, str] = {}
    for name, value in re.findall(r"(?m)^#SBATCH\s+--?([\w-]+)[= ](\S+)", text):
        count = value.rsplit(":", 1)[-1]
        found |= {each: count for each in _SLURM.get(name, ()) if count.isdigit()}
    for name, value in _SET.findall(text):
        found[name] = value.strip("\"'")
    for name, value in _ARRAY.findall(text):
        found[name] = " ".join((*found.get(name, "").split(), *value.split()))  # += adds to it
    return found


def _put_in(text: str, names: Mapping[str, str]) -> str:
    text = re.sub(r'"(\$\{\w+\[@\]\})"', r"\1", text)  # words of an array stay words
    for _ in range(_DEEPEST):
        made = _NAMED.sub(lambda it: _value(it, names), text)
        if made == text or len(made) > 4 * _LIMIT_BYTES:
            break
        text = made
    return text


def _value(found: re.Match[str], names: Mapping[str, str]) -> str:
    name = found[1] or found[3]
    value = names.get(name, "")
    if not value or f"${name}" in value or f"${{{name}" in value:  # EP=${EP:-8} says what it is unless set outside
        inner = _NAMED.fullmatch(value)
        value = (inner[2] if inner else "") or ""
    return value.strip("\"'") or (found[2] or "").strip("\"'") or found[0]


def _commands(text: str, line: int, depth: int = 0) -> Iterator[tuple[int, list[str], str, dict[str, str]]]:
    """Line, words from the engine on, image and environment of each command that starts an engine."""
    for number, row in enumerate(text.splitlines(), start=line):
        if not (_STARTS.search(row) or _RUNS_IMAGE.search(row)) or row.lstrip().startswith("#"):
            continue
        for words in _parts(row):
            inner = next((word for word in words if " " in word and _STARTS.search(word)), "")
            own = dict(word.split("=", 1) for word in words if re.match(r"[A-Za-z_]\w*=", word))
            image, at = _image(words) if _RUNS_IMAGE.search(" ".join(words[:6])) else ("", 0)
            start = _start(words[at:])
            if inner and start is None and depth < _DEEPEST:
                for _, within, of_it, its in _commands(inner.rstrip(", "), number, depth + 1):  # of a call
                    yield number, within, of_it or image, own | its
            elif start is not None:
                yield number, words[at + start :], image, own
            elif image:
                yield number, words[at:], image, own


def _parts(row: str) -> Iterator[list[str]]:
    """Commands of a line, as words."""
    lexer = shlex.shlex(row, posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        for word in lexer:
            if _ENDS.fullmatch(word):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # a quote that does not end
        words = row.split()
    yield words


def _image(words: Sequence[str]) -> tuple[str, int]:
    """The image that is run, and where its arguments begin; ("", 0) where it is none of an engine."""
    for at, word in enumerate(words[1:], start=1):
        before = words[at - 1]
        free = not before.startswith("-") or "=" in before or _ALONE.fullmatch(before)
        if free and _IMAGE.fullmatch(word):
            return word, at + 1
    return "", 0


def _start(words: Sequence[str]) -> int | None:
    """Where the command of an engine begins among words; None where none does."""
    for at, word in enumerate(words):
        following = f"{word} {words[at + 1] if at + 1 < len(words) else ''}"
        if word == "-m" and at and _STARTS.match(following.removeprefix("-m ")):
            return at - 1
        if _STARTS.match(following) and not _STARTS.match(word + "\0"):
            return at
    return None


def _engine(words: list[str], image: str, names: Mapping[str, str], line: int) -> Engine:
    gpus = names.get("CUDA_VISIBLE_DEVICES") or names.get("HIP_VISIBLE_DEVICES") or ""
    shown = len([each for each in gpus.split(",") if each.strip().isdigit()])
    found = engine_of("engine", [{"image": image, "command": words, "env": dict(names)}], replicas=1, line=line)
    if not any(found.number(role) for role in ("tp", "pp", "dp")):
        found.devices = shown or None
    return found


def _is_further_machine(engine: Engine) -> bool:
    rank = whole(engine.said.get("node-rank"), least=0) or whole(engine.said.get("data-parallel-start-rank"), least=0)
    return bool(rank) or engine.said.get("headless") in (True, "true")


def _as_known(engine: Engine) -> tuple[str, str, str, str]:
    said = {name: value for name, value in engine.said.items() if name not in PLUMBING}
    return engine.engine, engine.model, engine.role, json.dumps(said, sort_keys=True, default=str)


def _of_task(text: str, engines: Sequence[Engine]) -> None:
    """What a job of Slurm or a task of SkyPilot asks for: its device, and the replicas of its service."""
    held = re.search(r"(?m)^#SBATCH\s+--(?:gres[= ]gpu|gpus(?:-per-\w+)?)[=: ]([A-Za-z][\w.-]{0,60}):\d", text)
    for engine in engines:
        engine.device = engine.device or (held[1] if held else "")
    device = re.search(r"(?m)^\s+accelerators:\s*[{\[]?\s*[\"']?([A-Za-z][\w.-]{0,60})(?:\s*:\s*(\d{1,4}))?", text)
    if device is None or not re.search(r"(?m)^run:", text):
        return
    count = re.search(r"(?m)^\s+(?:min_)?replicas:\s*(\d{1,5})\s*$", text)
    for engine in engines:
        engine.device = device[1]
        if count:
            engine.replicas = int(count[1])


def _settings_match(source: Source) -> Match:
    if not source.is_text or source.head_text.lstrip()[:1] in ("{", "["):
        return NOTHING
    names = {name.replace("_", "-") for name in re.findall(r"(?m)^([a-zA-Z][\w-]{1,60}):", source.head_text)}
    if names & {"kind", "services", "trainer", "datasets", "training", "serving", "run"}:
        return NOTHING
    there = tuple(name for name in _TELLING if name in names)
    return Match(score=0.85 if len(there) >= _FEWEST else 0.3 * len(there), found=there,
                 missing=() if len(there) >= _FEWEST else ("settings of a serving engine",))  # fmt: skip


def _read_settings(source: Source, asked: Asked) -> Reading:
    reading = Reading(kind="engine-settings", title="settings of a serving engine", source=source.name, of="files")
    engines = []
    for part in source.parts:
        problems: list[Any] = []
        content = mapping(parse_yaml(part.text(_LIMIT_BYTES), part.name, problems=problems).data)
        for problem in problems:
            reading.skipped.add(problem.reference, (problem.places[0].line if problem.places else 0) or 1)
        said: dict[str, Any] = {}
        for key, value in content.items():
            inner = {f"{key}.{name}": each for name, each in value.items()} if isinstance(value, Mapping) else {}
            said |= inner or {str(key): value}
        whose = [_TELLING[name] for key in content if (name := str(key).replace("_", "-")) in _TELLING]
        engine = engine_of(stem_of(part), [], settings=said, replicas=None, line=1,
                           engine=next((each for each in whose if each), ""))  # fmt: skip
        engine.title = (engine.model.rsplit("/", 1)[-1] or engine.title)[:80]
        engines.append(engine)
    reading.taken = len(engines)
    reading.tool = engines[0].engine
    show_engines(reading, engines, asked)
    return reading


KINDS = (
    Kind(name="launch", title="commands that start serving engines",
         looks_for="vllm serve, sglang.launch_server, trtllm-serve, llama-server, docker run, as a script has them",
         recognise=_match, read=_read),
    Kind(name="engine-settings", title="settings of a serving engine",
         looks_for="a YAML file of arguments for vLLM, SGLang or TensorRT-LLM", recognise=_settings_match,
         read=_read_settings),
)  # fmt: skip
