"""What engines print of themselves: lines of statistics of vLLM and SGLang, and tables of the same figures.

And logs whose lines are words: requests with their tokens by name, and the timings that llama.cpp and Ollama print.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping

import numpy as np

from planner.reading.columns import Roles, has_zone, iso_seconds, zone_of
from planner.reading.kinds import NOTHING, SURE, Asked, Kind, Match, Piece, Reading, Skips, fit
from planner.reading.measured_points import Point, number_of, reading_of
from planner.reading.request_log import RequestLog, lengths_of, spread_of
from planner.reading.requests import header_of, wrong_tokens
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, rows_of

_NO_REQUESTS = "statistics hold no single requests: the gateway's log gives a trace"

# vLLM's own log

_ENGINE = re.compile(
    r"Avg prompt throughput: ([0-9.]+) tokens/s, Avg generation throughput: ([0-9.]+) tokens/s,"
    r" Running: (\d+) reqs?,(?: Swapped: \d+ reqs?,)? (?:Waiting|Pending): (\d+) reqs?"
)
_NUMBERED = re.compile(r"Engine (\d+): Avg")
_CACHE = re.compile(r"(?:GPU )?KV cache usage: ([0-9.]+)%")
_HITS = re.compile(r"[Pp]refix cache hit rate: (?:GPU: )?([0-9.]+)%")


def recognise_vllm_log(source: Source) -> Match:
    """Lines with average throughputs and running requests."""
    found = bool(_ENGINE.search(source.head_text))
    begun = bool(
        re.search(r"vLLM (?:API server )?version|llm_engine|EngineCore|params: SamplingParams\(", source.head_text)
    )
    score = 0.96 if found else 0.65 if begun and source.is_text else 0.0
    return Match(score=score, found=("Avg prompt throughput",) if found else (), missing=() if found else (
        "lines with Avg prompt throughput",), tool="vLLM")  # fmt: skip


def read_vllm_log(source: Source, asked: Asked) -> Reading:
    """Throughput, running and waiting requests, cache use by the engine's own lines."""
    reading = Reading(kind="vllm-log", title="log of a vLLM server", source=source.name, tool="vLLM",
                      of="lines of statistics")  # fmt: skip
    columns: dict[str, list[float]] = {name: [] for name in ("prompt", "answer", "running", "waiting", "kv", "hits")}
    engines: set[str] = set()
    for line in source.lines():
        version = re.search(r"version (\d+\.\d+[\w.+]*)", line[:400]) if "version" in line[:400] else None
        reading.version = reading.version or (version.group(1) if version else "")
        match = _ENGINE.search(line[:2000])
        if match is None:
            continue
        reading.taken += 1
        engines.update(_NUMBERED.findall(line[:2000]))
        for name, text in zip(("prompt", "answer", "running", "waiting"), match.groups()):
            columns[name].append(number_of(text) or 0.0)
        for name, pattern in (("kv", _CACHE), ("hits", _HITS)):
            found = pattern.search(line[:2000])
            if found:
                columns[name].append(number_of(found.group(1)) or 0.0)
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no line of {source.name} holds statistics of the engine",
                      "run vLLM without --disable-log-stats")  # fmt: skip
    _engine_shown(reading, columns)
    _of_several(reading, columns, len(engines))
    reading.note(_NO_REQUESTS)
    return reading


def _of_several(reading: Reading, columns: Mapping[str, list[float]], engines: int) -> None:
    """Where engines print one log together, each of them its own lines, what all of them do."""
    if engines < 2:
        return
    reading.note(f"{engines} engines print this log: the figures are of one of them, but where all are named")
    for name, label, unit in (("prompt", "prompt tokens", "tokens/s"), ("answer", "answer tokens", "tokens/s"),
                              ("running", "running at once", "requests")):  # fmt: skip
        if columns[name]:
            reading.show(f"{label} of all {engines} engines, mean", engines * float(np.mean(columns[name])), unit)


def _engine_shown(reading: Reading, columns: Mapping[str, list[float]]) -> None:
    """Mean and p95 of what an engine says of itself."""
    for name, label, unit in (("prompt", "prompt tokens", "tokens/s"), ("answer", "answer tokens", "tokens/s"),
                              ("running", "running at once", "requests"), ("waiting", "waiting", "requests"),
                              ("kv", "KV cache in use", "%"), ("hits", "prefix cache hits", "%")):  # fmt: skip
        if columns[name]:
            reading.show(f"{label}, mean", float(np.mean(columns[name])), unit)
            reading.show(f"{label}, p95", float(np.percentile(columns[name], 95)), unit)


# SGLang's own log: a line each prefill, and one each so many steps of decoding

_PREFILL = re.compile(r"Prefill batch.*?#new-token: (\d+), #cached-token: (\d+)")
_DECODE = re.compile(r"Decode batch.*?#running-req: (\d+).*?gen throughput \(token/s\): ([0-9.]+)")
_HELD = re.compile(r"token usage: ([0-9.]+)")
_QUEUED = re.compile(r"#queue-req: (\d+)")
_RANK = re.compile(r"\bDP(\d+)\b")
_AT = re.compile(r"^\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")


def recognise_sglang_log(source: Source) -> Match:
    """Lines of prefill and decode batches."""
    found = {"Prefill batch": _PREFILL, "Decode batch": _DECODE}
    there = tuple(name for name, pattern in found.items() if pattern.search(source.head_text))
    begun = "server_args=ServerArgs(" in source.head_text
    return Match(score=0.96 if there else 0.65 if begun else 0.0, found=there, tool="SGLang",
                 missing=() if there else ("lines with Decode batch",))  # fmt: skip


def read_sglang_log(source: Source, asked: Asked) -> Reading:
    """Throughput while it decodes, running and waiting requests, cache use and hits by the engine's own lines."""
    reading = Reading(kind="sglang-log", title="log of an SGLang server", source=source.name, tool="SGLang",
                      of="lines of statistics")  # fmt: skip
    columns: dict[str, list[float]] = {name: [] for name in ("prompt", "answer", "running", "waiting", "kv", "hits")}
    ranks: set[str] = set()
    times: list[float] = []
    fresh = cached = 0
    for line in source.lines():
        text = line[:2000]
        prefill, decode = _PREFILL.search(text), _DECODE.search(text)
        if not (prefill or decode):
            continue
        reading.taken += 1
        ranks.update(_RANK.findall(text))
        at = _AT.match(text)
        if at:
            with contextlib.suppress(ValueError, OverflowError):  # a damaged time covers none
                times.append(iso_seconds(at.group(1), zone_of("")))
        if prefill:
            fresh, cached = fresh + int(prefill.group(1)), cached + int(prefill.group(2))
        elif decode:
            for name, figure in (("running", decode.group(1)), ("answer", decode.group(2))):
                columns[name].append(number_of(figure) or 0.0)
            for name, pattern, scale in (("kv", _HELD, 100.0), ("waiting", _QUEUED, 1.0)):
                found = pattern.search(text)
                if found:
                    columns[name].append((number_of(found.group(1)) or 0.0) * scale)
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no line of {source.name} holds statistics of the engine",
                      "run SGLang with --log-level info")  # fmt: skip
    _engine_shown(reading, columns)
    _of_several(reading, columns, len(ranks))
    seconds = max(times) - min(times) if times else 0.0
    if seconds > 0:
        reading.show("time that is covered", seconds, "s")
        reading.show("prompt tokens that were computed, over that time", fresh / seconds, "tokens/s")
    if fresh + cached:
        reading.show("prefix cache hits, of all prompt tokens", 100 * cached / (fresh + cached), "%")
    if columns["answer"]:
        reading.understood["answer tokens"] = (
            "throughput of the lines that are printed while it decodes: pauses have none"
        )
    reading.note(_NO_REQUESTS)
    return reading


# the same figures as a table

_SERIES = {
    "time": ("t", "time", "timestamp", "elapsed"),
    "prompt": ("promptthroughput", "avgpromptthroughput", "prompttoks", "prompttokenspers"),
    "answer": ("genthroughput", "generationthroughput", "avggenerationthroughput", "gentoks", "generationtokenspers"),
    "running": ("running", "numrunning", "numrequestsrunning", "runningreqs"),
    "waiting": ("waiting", "numwaiting", "numrequestswaiting", "waitingreqs", "pending"),
    "kv": ("kvcachepct", "kvcacheusage", "gpukvcacheusage", "kvcacheusagepct", "gpucacheusage", "kvcacheusageperc"),
    "hits": ("prefixcachehitrate", "prefixhitrate"),
}


def recognise_series(source: Source) -> Match:
    """A time with the throughputs of an engine and its running and waiting requests."""
    places = places_of(header_of(source)[0], _SERIES)
    return fit({role: role in places for role in ("time", "prompt", "answer", "running", "waiting")}, tool="vLLM",
               ceiling=0.97)  # fmt: skip


def read_series(source: Source, asked: Asked) -> Reading:
    """Throughput, running and waiting requests, cache use by row."""
    reading = Reading(kind="engine-series", title="statistics of an engine over time", source=source.name, tool="vLLM",
                      of="rows")  # fmt: skip
    columns: dict[str, list[float]] = {role: [] for role in _SERIES}
    last: float | None = None
    for line, row in rows_of(source, _SERIES, ("time", "prompt", "answer"), reading.skipped):
        figures = {role: number_of(cell) for role, cell in row.items()}
        time = figures.get("time")
        if any(figures.get(role) is None for role in ("prompt", "answer")):
            reading.skipped.add("a throughput is missing or no number", line)
        elif any(value is not None and value < 0 for role, value in figures.items() if role != "time"):
            reading.skipped.add("a negative figure", line)
        elif time is not None and last is not None and time < last:
            reading.skipped.add("a time before the one above it", line)
        else:
            last = time if time is not None else last
            reading.taken += 1
            for role, value in figures.items():
                if value is not None:
                    columns[role].append(value)
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no row of {source.name} could be taken", "see what was skipped")
    _as_percent(source, reading, columns)
    _engine_shown(reading, columns)
    reading.note(_NO_REQUESTS)
    return reading


def _as_percent(source: Source, reading: Reading, columns: dict[str, list[float]]) -> None:
    """Shares of 1 in percent, where no name says percent and none is above 1."""
    names = header_of(source)[0]
    for role, at in places_of(names, _SERIES).items():
        if role in ("kv", "hits") and columns[role] and "pct" not in names[at].lower() and max(columns[role]) <= 1:
            columns[role] = [100 * share for share in columns[role]]
            reading.understood[names[at]] = "shares of 1, as none is above it"


# requests: ts=2025-09-01T08:00:00Z prompt_tokens=800 completion_tokens=100, or as Python prints a mapping

_LONGEST = 20_000  # letters of a line that are looked at
_NAMED = r"(?<![A-Za-z])(?:{})['\"]?\s*[=:]\s*['\"]?(-?\d+)\b"
_GIVEN = re.compile(_NAMED.format("num_prompt_tokens|prompt_tokens|input_tokens|promptTokens|inputTokens"))
_MADE = re.compile(_NAMED.format("completion_tokens|output_tokens|generated_tokens|completionTokens|outputTokens"))
_REUSED = re.compile(_NAMED.format("cached_tokens|cachedTokens"))
_BROKEN = re.compile(  # how words tell that a request was refused, failed or broken off
    r"\b(?:http_?)?(?:status|status_?code|code)['\"]?\s*[=:]\s*['\"]?[45]\d\d\b|\blevel['\"]?\s*[=:]\s*['\"]?error\b"
    r"|finish_?reason['\"]?\s*[=:]\s*(?:\{'type':\s*)?['\"]?(?:abort|error|cancel)", re.I
)  # fmt: skip
_WHEN = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?")
_WRAPPED = re.compile(r'": ?"(?:\\.|[^"{}\\])*\b(?:prompt|input)_?[tT]okens=')  # words within a text of a record
_COUNTED = re.compile(r"\b(?:ts|time|timestamp)['\"]?[=:] ?['\"]?(\d{10,19}(?:\.\d+)?)\b")


def recognise_requests(source: Source) -> Match:
    """Lines with tokens of a prompt, of its answer, and a time."""
    begin = source.head_text.lstrip()[:2]
    wrapped = begin[:1] == "{" and begin != "{'"  # lines of words in records, as Loki gives them
    if not source.is_text or begin[:1] == "<":
        return NOTHING
    lines = [line[:_LONGEST] for line in source.head_text.splitlines() if "okens" in line[:_LONGEST]]
    both = [line for line in lines if _GIVEN.search(line) and _MADE.search(line)]
    timed = [line for line in both if _WHEN.search(line) or _COUNTED.search(line)]
    tool = "SGLang" if any("Finish: obj=" in line for line in timed) else ""
    if wrapped:
        timed = [line for line in timed if _WRAPPED.search(line)]
    score = (
        0.97 if tool else (0.62 if wrapped else 0.8) if timed else 0.3 if both else 0.0
    )  # beside SGLang's statistics, requests tell more
    return Match(score=score, found=("lines with tokens of prompt and answer",) if both else (), tool=tool,
                 missing=() if timed else ("a time in each of them",))  # fmt: skip


def read_requests(source: Source, asked: Asked) -> Reading:
    """Requests of lines that name their tokens; lines without any are no requests."""
    roles = Roles(of={"time": "time of the line", "input": "prompt tokens", "output": "answer tokens"})
    log = RequestLog(source=source, roles=roles, asked=asked, tool="")
    zone, skipped, others, written = zone_of(asked.time_zone), Skips(), 0, set[bool]()
    for number, line in enumerate(source.lines(), start=1):
        text = line[:_LONGEST]
        given, made = _GIVEN.search(text), _MADE.search(text)
        if not (given and made):
            others += bool(text.strip())
            continue
        when, counted = _WHEN.search(text), _COUNTED.search(text)
        if _BROKEN.search(text):
            skipped.add("its line says that it failed or was broken off", number)
            log.failed += 1
            continue
        tokens = float(given[1]), float(made[1])
        try:
            time = iso_seconds(when[0].replace(",", "."), zone) if when else float(counted[1]) if counted else None
        except (ValueError, OverflowError):
            time = None
        mixed = bool(written) and bool(when) not in written  # a count of seconds among dates, or the other way round
        reason = "its time is not readable" if time is None or mixed else wrong_tokens(*tokens)
        if reason or time is None:
            skipped.add(reason, number)
            continue
        written.add(bool(when))
        if when:
            log.written = True
            log.zones.add(has_zone(when[0]))
        log.add(time, *tokens, number)
        if reused := _REUSED.search(text):
            log.reused, log.held = log.reused + min(max(float(reused[1]), 0.0), tokens[0]), log.held + tokens[0]
    reading = log.reading("requests-lines", "a log of requests, lines of words", skipped, source.cut_lines)
    reading.show("lines of other things", others or None)
    return reading


# timings of single sequences

_PART = re.compile(
    r"(?P<what>prompt eval|\beval|generation eval)\s+time\s*=\s*(?P<ms>[0-9.]+) ms /\s*(?P<count>\d+) (?:tokens|runs)"
)
_OLLAMA = re.compile(r"^\s*(?P<what>prompt eval|eval) (?P<of>count|duration):\s+(?P<value>[0-9hmnsµu.]+)(?: token)?")
_GO = re.compile(r"([0-9.]+)(h|ms|m|s|µs|us|ns)")  # as Go prints how long something took
_GO_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}


def recognise_timings(source: Source) -> Match:
    """Times of prompt evaluation and of evaluation, with their tokens."""
    ollama = bool(re.search(r"(?m)^[ \t]*prompt eval count:[ \t]+\d+ token", source.head_text))
    found = ollama or bool(_PART.search(source.head_text))
    if not (found and source.is_text) or source.head_text.lstrip()[:1] == "{":
        return NOTHING
    return Match(score=max(0.9, SURE), found=("prompt eval and eval, each with tokens and a time",),
                 tool="Ollama" if ollama else "llama.cpp")  # fmt: skip


def read_timings(source: Source, asked: Asked) -> Reading:
    """Lengths of requests and speeds of each; measured points where one sequence ran at a time."""
    reading = Reading(kind="printed-timings", title="printed timings of requests", source=source.name, of="requests")
    server = bool(re.search(r"print_timing|print_timings|slot ", source.head_text))
    tool = recognise_timings(source).tool
    points: list[Point] = []
    sizes: tuple[list[float], list[float]] = ([], [])
    speeds: tuple[list[float], list[float]] = ([], [])
    for number, parts in _requests(source, reading.skipped):
        given, made = parts.get("prompt"), parts["answer"]
        reading.taken += 1
        cells = {"engine": "llama.cpp" if tool == "llama.cpp" else "ollama", "scenario": "single sequence",
                 "concurrency": 1.0, "n_accel": 1}  # fmt: skip
        for at, (part, speed) in enumerate(((given, "prefill_tokens_per_s"), (made, "output_tokens_per_s_total"))):
            if part is None:
                continue
            count, seconds = part
            sizes[at].append(count)
            if seconds > 0:
                speeds[at].append(count / seconds)
                of = {"input_tokens": count} if at == 0 else {"output_tokens": count}
                points.append(Point(cells=cells | of | {speed: count / seconds}, at=number))
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no request of {source.name} has its answer's tokens and time", "")
    fleet: dict[str, object] = {"name": asked.name or "requests"}
    shown = reading
    if not server:
        shown = reading_of(reading, points, asked, "timings")
    for at, (key, name) in enumerate((("input_tokens", "prompt"), ("output_tokens", "answer"))):
        if not sizes[at]:
            continue
        facts = lengths_of(np.array(sizes[at]).astype(np.uint32))
        for fact, value in facts.items():
            shown.show(f"{name}, {fact}", value, "tokens")
        if speeds[at]:
            shown.show(f"{name}, median of a request", float(np.median(speeds[at])), "tokens/s")
        fleet[key] = spread_of(facts)
    if server:
        shown.note("how many requests ran at once is not told: their speeds are shown, and are no measured points")
        shown.note("a prompt counts without what its slot kept of the one before")
    shown.note("the file has no times of arrival: no rate follows; the lengths stand in a fleet whose qpm you give")
    shown.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment={"serving": [fleet]},
                              says="lengths of a fleet's requests"))  # fmt: skip
    return shown


def _requests(source: Source, skipped: Skips) -> Iterator[tuple[int, dict[str, tuple[float, float]]]]:
    """Line, and tokens and seconds of the prompt and of the answer, of each request."""
    parts: dict[str, tuple[float, float]] = {}
    counts: dict[str, float] = {}
    for number, line in enumerate(source.lines(), start=1):
        text = line[:2000]
        if found := _PART.search(text):
            part = "prompt" if found["what"].startswith("prompt") else "answer"
            seconds, count = _float(found["ms"]) / 1e3, float(found["count"])
        elif (found := _OLLAMA.match(text)) is not None:
            part = "prompt" if found["what"].startswith("prompt") else "answer"
            if found["of"] == "count":
                counts[part] = _float(found["value"])
                continue
            seconds = sum(_float(value) * _GO_S[unit] for value, unit in _GO.findall(found["value"]))
            count = counts.pop(part, 0.0)
        else:
            continue
        if part == "prompt":
            parts = {}
        if not 1 <= count <= 1e9:
            skipped.add("no tokens, or their number is not told", number)
            continue
        parts[part] = (count, seconds)
        if part == "answer":
            yield number, parts
            parts = {}


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


KINDS = (
    Kind(name="vllm-log", title="log of a vLLM server",
         looks_for="lines with Avg prompt throughput and Running requests",
         recognise=recognise_vllm_log, read=read_vllm_log),
    Kind(name="sglang-log", title="log of an SGLang server",
         looks_for="lines with Prefill batch and Decode batch, #running-req and gen throughput",
         recognise=recognise_sglang_log, read=read_sglang_log),
    Kind(name="engine-series", title="statistics of an engine over time",
         looks_for="a first line of a time, prompt and generation throughput, running and waiting",
         recognise=recognise_series, read=read_series),
    Kind(name="requests-lines", title="log of requests, lines of words",
         looks_for="lines with a time, prompt_tokens and completion_tokens (logfmt, SGLang's finished requests)",
         recognise=recognise_requests, read=read_requests),
    Kind(name="printed-timings", title="printed timings of requests",
         looks_for="prompt eval and eval with tokens and times (ollama run --verbose, llama.cpp's server and CLI)",
         recognise=recognise_timings, read=read_timings),
)  # fmt: skip
