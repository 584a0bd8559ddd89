"""From what the validators found to problems with a place, a sentence and a way out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from planner.carriers import dataclass
from planner.errors import Place, Problem
from planner.scenario.fields import FIELD, written
from planner.scenario.schema import Scenario
from planner.spelling import closest
from planner.yamlfile import BAD, Document, Node, Steps, path_text

# Keys that load.py takes out before the models see the rest.
LOADER_KEYS = ("include", "overrides", "scenarios")

_EXAMPLES = {
    "schema": "schema: plan/v1",
    "name": "name: my-plan",
    "model": "model: llama-3.1-8b",
    "tokens": "tokens: 200B",
    "deadline": "deadline: 30 days",
    "qpm": "qpm: 600",
    "users": "users: 2000",
    "think_time": "think_time: 30 s",
    "input_tokens": "input_tokens: 1500",
    "output_tokens": "output_tokens: 400",
    "min": "min: 1M tokens",
    "max": "max: 8M tokens",
    "shape": "shape: dgx-a100-80gb",
    "count": "count: 2",
    "price": "price: $9.80/h",
    "fraction": "fraction: 20 %",
    "measured": "measured: 9.7 s",
    "watts": "watts: 10.2 kW",
    "capital": "capital: {price: $300000, years: 4}",
    "power": "power: {watts: 10.2 kW, price: $0.12/kWh, pue: 1.3}",
    "years": "years: 4",
    "pue": "pue: 1.3",
    "lora": "lora: {rank: 16}",
    "mfu": 'mfu: {"h100-*": 42 %}',
    "spot": "spot: {interruptions: 0.05 /h}",
    "slo": "slo: {ttft_p95: 3 s, tpot_p95: 100 ms}",
    "layout": "layout: {tp: 8, pp: 2}",
    "autoscaling": "autoscaling: {start_up: 5 min}",
    "speculative": "speculative: {length: 3, acceptance: 70 %}",
    "limits": "limits: {budget: $60000}",
}

# How a scenario writes it -> what trainers, engines and clouds call it; of keys and of values that are one of some
_CALLED = {
    "sequence_length": "seq_len seq_length max_seq_length max_seq_len max_length context_length block_size",
    "global_batch": "batch batch_size global_batch_size train_batch_size gbs",
    "recompute": "gradient_checkpointing activation_checkpointing recomputation",
    "sharding": "zero zero_stage fsdp",
    "lora": "qlora adapter adapters peft",
    "tokens": "steps max_steps samples",
    "rank": "r lora_rank",
    "dp": "data data_parallel data_parallel_size",
    "tp": "tensor tensor_parallel tensor_parallel_size",
    "pp": "pipeline pipeline_parallel pipeline_parallel_size",
    "cp": "context context_parallel context_parallel_size",
    "ep": "expert experts expert_parallel expert_parallel_size",
    "weights": "dtype precision quant quantization",
    "kv_cache": "cache kv_cache_dtype kv_dtype",
    "qpm": "rps qps rpm requests_per_second requests_per_minute",
    "users": "clients concurrency concurrent_users",
    "input_tokens": "prompt_tokens prompt_length input_length isl",
    "output_tokens": "completion_tokens generated_tokens output_length max_tokens osl",
    "spare_replicas": "spares standby",
    "availability": "sla uptime",
    "slo": "latency targets ttft tpot ttft_p50 ttft_p95 ttft_p99 tpot_p50 tpot_p95 tpot_p99",
    "layout": "parallelism tp pp dp cp ep",
    "allow": "accelerators devices gpu gpus",
    "providers": "cloud clouds provider",
    "regions": "region zone zones",
    "assume_inter_node": "interconnect network",
    "budget": "cost max_cost max_price",
    "max_devices": "gpus max_gpus devices nodes max_nodes num_nodes machines",
    "shape": "device gpu instance instance_type machine machine_type node",
    "bf16": "amp bfloat16 mixed",
    "fp16": "float16 half",
    "fp32": "float float32",
    "fp8": "e4m3 float8 fp8_e4m3 fp8_e5m2",
    "int8": "8bit w8a8",
    "int4": "4bit awq gptq w4a16",
    "q4_k_m": "gguf",
    "nvfp4": "fp4",
    "nf4": "4bit bnb fp4 int4",
    "none": "ddp",
    "zero-3": "fsdp fsdp2",
    "full": "true",
    "framework": "software trainer backend program",
    "engine": "software server backend runtime program",
    "megatron": "megatron-core megatron-lm nemo",
    "fsdp": "accelerate lightning torch",
    "trl": "hf huggingface peft transformers unsloth",
    "commitment_1y": "1y commitment committed reserved reserved_1y savings_plan",
    "commitment_3y": "3y reserved_3y",
    "cost": "money price",
}
# Where another word is another figure
_SAYS = {
    "qpm": " It is requests per minute, 60 times those of a second",
    "tokens": " They are of the data: steps times sequences of a batch times their length",
    "global_batch": " It is of one step on all devices, in tokens or sequences",
    "max_devices": " It counts devices, not machines",
    "shape": " It is a machine, such as dgx-h100",
}
_COMMA = "a comma ends a value in braces: write"
_CUT = re.compile(rf"{_COMMA} ([^:]+):")  # the field whose value was cut
_QLORA = "lora: {rank: 16, base: nf4}"  # adapters on weights of 4 bits, a quarter of what lora alone keeps
_BATCH = (
    "of a batch of requests write its rate and time: requests: their number / that time in s, horizon: that time, "
    "peak_factor: 1, target_load: 1"
)
_PREFERENCES = "dpo orpo kto simpo ipo cpo ppo grpo rloo reinforce rl rlhf rlvr reward reward_model rm"
_SERVED_ADAPTERS = (
    "adapters of a served model are not planned. Leave their memory free, limits: {memory_fraction: 0.85} say, start "
    "the engine with its own share, and measure their speed; one of rank 16 on all matrices of an 8B takes 84 MB"
)
# Of what a section has no field for: the words for it, and what to write or what is missing
_INSTEAD = (
    ("serving", "deadline hours total_requests num_requests request_count batch offline", _BATCH),
    ("serving", "lora qlora adapter adapters loras peft enable_lora max_loras max_lora_rank lora_modules lora_adapters",
     _SERVED_ADAPTERS),
    ("the scenario", "evaluation evaluations eval evals batch inference",
     f"requests are a fleet under serving; {_BATCH}"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A problem and the path it is about; `keys` are the names it is about in that mapping."""

    path: Steps
    problem: Problem
    missing: tuple[str, ...] = ()  # what is not there
    meant: str = ""  # what an unknown key was probably meant to be


def mistake(
    document: Document,
    path: Steps,
    reference: str,
    message: str,
    hint: str,
    *,
    places: Sequence[Place] = (),
    missing: tuple[str, ...] = (),
) -> Mistake:
    """A mistake at a path; its place is the value's unless others are given.

    Parameters
    ----------
    document
        The file, for places.
    path
        What it is about; () = the scenario as a whole.
    reference
        Of the problem, in kebab-case.
    message
        What is wrong.
    hint
        A way out.
    places
        Where it shows; empty: at the value of the path, or at the nearest above it.
    missing
        Keys that are not there, in the mapping at the path.
    """  # fmt: skip
    places = tuple(places) or (document.place(path),)
    problem = Problem(reference=reference, message=message, places=tuple(places), hint=hint)
    return Mistake(path=path, problem=problem, missing=missing)


def from_pydantic(errors: Iterable[Any], document: Document) -> list[Mistake]:
    """One mistake for each error of pydantic, less those about values that were refused before."""
    found = []
    for error in errors:
        path = tuple(step for step in error["loc"] if step != "[key]")
        node, _ = document.nearest(path)
        if node.value is BAD or error["input"] is BAD:
            continue
        found.append(_translate(error, path, document))
    return found


def empty_unknown(document: Document) -> Iterator[Mistake]:
    """Fields that no section has and that are left empty: such as there are where a comma has cut a value in two."""
    yield from _empty_unknown(document.root, (), [Scenario], document)


def _empty_unknown(node: Node, path: Steps, models: Sequence[type[BaseModel]], document: Document) -> Iterator[Mistake]:
    if type(node.value) is list:
        for index, below in enumerate(node.value):
            yield from _empty_unknown(below, (*path, index), models, document)
    infos = {info.alias or name: info for model in models for name, info in model.model_fields.items()}
    for key, below in node.value.items() if type(node.value) is dict and infos else ():
        if key in infos:
            yield from _empty_unknown(below, (*path, key), list(_models_in(infos[key].annotation)), document)
        elif below.value is None and (path or key not in LOADER_KEYS):
            yield _unknown_field((*path, key), document)


def _translate(error: Any, path: Steps, document: Document) -> Mistake:
    kind = error["type"]
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_field(path, document)
    if kind == "missing":
        key = str(path[-1])
        example = _EXAMPLES.get(key, f"{key}: …")
        return mistake(document, path[:-1], "missing-field", f"'{key}' is missing in {_container(path[:-1])}",
                       f'add "{example}"', missing=(key,))  # fmt: skip
    field = _field_name(path, document)
    if "message" in context:
        reference, message, hint = kind, context["message"], context["hint"]
        if reference == "not-one-of":
            hint = hint or _choice_hint(error["input"], message.rsplit("one of ", 1)[-1].split(", "))
    elif kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        reference = "not-one-of"
        message = f"{FIELD} is {written(error['input'])}; it must be one of {', '.join(choices)}"
        hint = _choice_hint(error["input"], choices)
    else:
        reference, message, hint = _wrong_type(kind, error["input"], field, _model_at(path))
    message = message.replace(FIELD, field)
    if hint == "leave the field out" and path[0] == "hardware":
        hint += ' for all; to rent nothing: exclude: ["*"]'
    elif hint == 'write "200B"' and field in _EXAMPLES:  # of any tokens
        hint = f"write {_EXAMPLES[field]}"
    return mistake(document, path, reference, message, hint.replace(FIELD, field))


def _wrong_type(kind: str, value: object, field: str, model: type[BaseModel] | None) -> tuple[str, str, str]:
    if kind == "bool_type":
        return "wrong-type", f"{FIELD} is {written(value)}; it wants true or false", "write true or false"
    if kind == "string_type":
        return "wrong-type", f"{FIELD} is {written(value)}; it wants text", "write text, in quotes if need be"
    keys = ", ".join(f"{key}: …" for key in _aliases(model)[:3]) if model else ""
    example = f"{field}: {{{keys}}}" if keys else "key: value, one a line"
    example = f"write {_EXAMPLES.get(field, example)}"
    if isinstance(value, str) and value.lower() == "qlora":
        example = f"write {_QLORA}"
    return "wrong-type", f"{FIELD} is {written(value)}; it wants a mapping of fields", example


def _unknown_field(path: Steps, document: Document) -> Mistake:
    key, above = str(path[-1]), path[:-1]
    model = _model_at(above)
    known = _aliases(model) if model else []
    if model is Scenario:
        known += LOADER_KEYS
    called = _called(key)
    near = [name for name in called if name in known] or closest(key, known)
    inner = sum(isinstance(step, str) for step in above) > 1  # of a contract, say: another section is far away
    elsewhere = [] if near else [name for name in (key, *(() if inner else called)) if home_of(name)]
    value = document.nearest(path)[0].value
    words = [word.lower() for word in (key, value) if isinstance(word, str)]
    instead = [text for section, all_, text in _INSTEAD if section == _container(above) and words[0] in all_.split()]
    if cut := _cut_in_two(path, document):
        hint = f"{_COMMA} {cut}"
    elif shares := _of_shares(key, known):
        hint = f"say of which share of requests: {', '.join(shares[:-1])} or {shares[-1]}"
    elif "lora" in known and any("qlora" in word for word in words):
        hint = f"'lora' is a field of its own: write {_QLORA}"
    elif "lora" in known and any(word in _PREFERENCES.split() for word in words):
        hint = (
            "learning from preferences or rewards is not modelled: neither passes of a reference model nor answers "
            "that are sampled are in any estimate; without the field it is fine-tuning on as many tokens"
        )
    elif instead:
        hint = instead[0]
    elif f"{key}s" not in known and (inside := _inside(key, value, model, known)):  # region beside regions is a slip
        hint = inside
    elif near:
        hint = f"did you mean '{near[0]}'?{_SAYS.get(near[0], '') if near[0] in called else ''}"
    elif elsewhere:
        hint = f"'{elsewhere[0]}' is a field of {home_of(elsewhere[0])}"
    elif named := _named_by(value, known):
        hint = f"'{named}' is a field of its own: write {_EXAMPLES.get(named, f'{named}: …')}"
    else:
        hint = "fields: " + ", ".join(known)
    problem = Problem(
        reference="unknown-field",
        message=f"'{key[:80]}' is not a field of {_container(above)}",
        places=(document.key_place(path),),
        hint=hint,
    )
    return Mistake(path=path, problem=problem, meant=near[0] if near else "")


def _named_by(value: object, known: Sequence[str]) -> str:
    """The field that somebody wrote as a value, as in `task: lora`; "" where it is none."""
    text = value.lower() if isinstance(value, str) else ""
    return next((name for name in (text, *_called(text)) if name in known), "")


def _cut_in_two(path: Steps, document: Document) -> str:
    """What was meant where a field is the end of a number: `{budget: $8,000}` is a budget of $8, and a field 000."""
    node, meant, mine = document.nearest(path[:-1])[0], "", False
    for key, below in node.value.items() if type(node.value) is dict else ():
        if below.value is None and meant and re.match(r"\d+(\D|$)", key):
            thousands = re.match(r"\d{3}(\D|$)", key) and not meant.endswith(("$0", " 0"))
            meant, mine = f"{meant}{'' if thousands else '.'}{key}", mine or key == path[-1]
        elif mine:
            break
        else:
            meant = "" if below.value is None else f"{key}: {below.value}"
    return meant if mine else ""


def _of_shares(key: str, known: Sequence[str]) -> list[str]:
    """The percentiles that a target is known at, where none or another was written: which is meant is not guessed."""
    words = re.split(r"[_\- ]", key.lower())
    return [name for name in known if re.fullmatch(r"(.+)_p\d+", name) and name.rpartition("_")[0] in words]


def _called(word: str) -> list[str]:
    """How a scenario writes what others call so."""
    low = word.lower()
    return [name for name, others in _CALLED.items() if low in others.split()]


def _choice_hint(value: object, choices: Sequence[str]) -> str:
    text = str(value).lower() if isinstance(value, str | bool) else ""
    near = [name for name in _called(text) if name in choices] or (closest(text, choices) if 0 < len(text) < 80 else [])
    if near and near[0].startswith("commitment") and re.findall(r"\d+", text) not in ([], re.findall(r"\d", near[0])):
        return "commitments of 1 and 3 years have prices; of another term write yours under hardware.contracts"
    alike = [name for name in choices if len(text) > 2 and name.endswith(text)]  # fp4: of two kinds
    meant = " or ".join(f"'{name}'" for name in alike or near[:1])
    return f"did you mean {meant}?" if near else f"write {choices[0]}"


def _field_name(path: Steps, document: Document) -> str:
    """The last key of the path that somebody wrote."""
    left = document.nearest(path)[1]
    there = path[: len(path) - len(left)] if left else path
    names = [step for step in there if isinstance(step, str)]
    return names[-1] if names else "the scenario"


def _container(path: Steps) -> str:
    names = [step for step in path if isinstance(step, str)]
    if not names:
        return "the scenario"
    return names[-1] if len(path) == 2 and isinstance(path[1], int) else path_text(path)


def _aliases(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation such as tuple[TrainingJob, ...] | None; of several the first."""
    return next(_models_in(annotation), None)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _model_at(path: Steps) -> type[BaseModel] | None:
    model: type[BaseModel] | None = Scenario
    for step in path:
        if model is None or isinstance(step, int):
            continue
        infos = {info.alias or name: info for name, info in model.model_fields.items()}
        model = _model_in(infos[step].annotation) if step in infos else None
    return model


def home_of(key: str) -> str:
    """The section where a misplaced key belongs."""
    for section in ("training", "serving", "hardware", "limits"):
        model = _model_at((section,))
        if model and key in _aliases(model):
            return section
    return "the scenario itself" if key in _aliases(Scenario) else ""


def _inside(key: str, value: object, model: type[BaseModel] | None, known: Sequence[str]) -> str:
    """Where a key belongs that is one of a field's own, as `micro_batch` is of `layout`; "" of any other."""
    if model is None or model is Scenario:
        return ""  # whose sections are told by `home_of`
    infos = {info.alias or name: info.annotation for name, info in model.model_fields.items()}
    homes = [name for name in known if name in infos and key in _aliases(_model_in(infos[name]) or BaseModel)]
    if not homes:
        return ""
    annotation = infos[homes[0]]
    listed = any(get_origin(part) in (list, tuple) for part in (annotation, *get_args(annotation)))
    plain = isinstance(value, str | int | float) and "{" not in str(value)
    example = f": write {homes[0]}: {{{key}: {value}}}" if plain and len(homes) == 1 and not listed else ""
    return f"'{key}' is a field of {' and of '.join(homes)}{example}"


def one_each(mistakes: Iterable[Mistake]) -> list[Problem]:
    """The problems to print: one for each mistake, in the order of the file."""
    mistakes = list(mistakes)
    meant = {(m.path[:-1], m.meant) for m in mistakes if m.meant}
    cut = {(m.path[:-1], found[1]) for m in mistakes if (found := _CUT.match(m.problem.hint))}
    kept: dict[tuple[str, str, tuple[Place, ...]], Problem] = {}
    for m in mistakes:
        # A mistyped key is one mistake, not an unknown field and a missing one.
        if any((m.path, key) in meant for key in m.missing):
            continue
        if (m.path[:-1], m.path[-1] if m.path else "") in cut:  # what stands before the comma is no value by itself
            continue
        kept.setdefault((m.problem.reference, m.problem.message, m.problem.places), m.problem)
    return list(kept.values())
