"""Logs whose lines are words: requests with their tokens by name, and the timings that llama.cpp and Ollama print."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from planner.reading.columns import Roles, has_zone, iso_seconds, zone_of
from planner.reading.kinds import NOTHING, SURE, Asked, Kind, Match, Piece, Reading, Skips
from planner.reading.measured_points import Point, reading_of
from planner.reading.request_log import RequestLog, lengths_of, spread_of
from planner.reading.requests import wrong_tokens
from planner.reading.source import Source, refused

# requests: ts=2025-09-01T08:00:00Z prompt_tokens=800 completion_tokens=100, or as Python prints a mapping

_LONGEST = 20_000  # letters of a line that are looked at
_NAMED = r"(?<![A-Za-z])(?:{})['\"]?\s*[=:]\s*['\"]?(-?\d+)\b"
_GIVEN = re.compile(_NAMED.format("num_prompt_tokens|prompt_tokens|input_tokens|promptTokens|inputTokens"))
_MADE = re.compile(_NAMED.format("completion_tokens|output_tokens|generated_tokens|completionTokens|outputTokens"))
_WHEN = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?")
_COUNTED = re.compile(r"\b(?:ts|time|timestamp)['\"]?[=:] ?['\"]?(\d{10,19}(?:\.\d+)?)\b")


def recognise_requests(source: Source) -> Match:
    """Lines with tokens of a prompt, of its answer, and a time."""
    begin = source.head_text.lstrip()[:2]
    if not source.is_text or begin[:1] == "<" or (begin[:1] == "{" and begin != "{'"):
        return NOTHING
    lines = [line[:_LONGEST] for line in source.head_text.splitlines() if "okens" in line[:_LONGEST]]
    both = [line for line in lines if _GIVEN.search(line) and _MADE.search(line)]
    timed = [line for line in both if _WHEN.search(line) or _COUNTED.search(line)]
    tool = "SGLang" if any("Finish: obj=" in line for line in timed) else ""
    score = 0.97 if tool else 0.8 if timed else 0.3 if both else 0.0  # beside SGLang's statistics, requests tell more
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
    Kind(name="requests-lines", title="log of requests, lines of words",
         looks_for="lines with a time, prompt_tokens and completion_tokens (logfmt, SGLang's finished requests)",
         recognise=recognise_requests, read=read_requests),
    Kind(name="printed-timings", title="printed timings of requests",
         looks_for="prompt eval and eval with tokens and times (ollama run --verbose, llama.cpp's server and CLI)",
         recognise=recognise_timings, read=read_timings),
)  # fmt: skip
