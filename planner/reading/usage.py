"""Usage by time: reports of providers in buckets, rates by window, lengths without times, and what vLLM prints."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from planner.reading.columns import plain, roles_of
from planner.reading.jsonlines import JsonLines, document_of, flat, head_document, head_keys, records_of
from planner.reading.kinds import NOTHING, Asked, Kind, Match, fit
from planner.reading.points import number_of
from planner.reading.reading import Piece, Reading
from planner.reading.request_log import MODEL, lengths_of, spread_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, rows_of
from planner.reading.times import epoch_unit_s, iso_seconds, zone_of

_DEEP = 12
_INPUT = ("inputtokens", "ncontexttokenstotal", "prompttokens", "totalinputtokens")
_OUTPUT = ("outputtokens", "ngeneratedtokenstotal", "completiontokens", "totaloutputtokens")
_REQUESTS = ("nummodelrequests", "numrequests", "apirequests", "requests", "totalrequests", "nrequests")
_CACHED = ("inputcachedtokens", "ncachedcontexttokenstotal", "cachereadinputtokens", "cachedtokens")
_COST = ("cost", "spend", "totalspend", "costusd", "amountvalue")
_TIME = ("starttime", "timestamp", "aggregationtimestamp", "groupbyday", "date", "day")


def _pick(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    stems = {plain(key): value for key, value in record.items()}
    return next((stems[name] for name in names if name in stems and stems[name] is not None), None)


def recognise_usage(source: Source) -> Match:
    """Buckets of time with tokens in, tokens out and requests."""
    stems = {plain(key) for key in head_keys(source)} | {plain(name) for name in header_of(source)[0]}
    marks = {
        "tokens in": bool(stems & set(_INPUT)),
        "tokens out": bool(stems & set(_OUTPUT)),
        "requests of a bucket": bool(stems & set(_REQUESTS)),
        "a time of the bucket": bool(stems & set(_TIME)),
    }
    spend = bool(stems & {"groupbyday", "totalspend", "teams", "spend"}) and "metadata" in stems
    if spend and not all(marks.values()):
        return Match(score=0.75, found=("spend by day",), tool="LiteLLM spend report")
    tool = "OpenAI usage" if {"results", "nummodelrequests"} <= stems else ""
    return fit(marks, tool=tool, ceiling=0.92)


def _usage_records(value: Any, above: dict[str, Any], depth: int = 0) -> Iterator[dict[str, Any]]:
    """Records that hold tokens or spend, each with the time of its bucket."""
    if depth > _DEEP:
        return
    if isinstance(value, list):
        for each in value:
            yield from _usage_records(each, above, depth + 1)
    elif isinstance(value, dict):
        own = {str(key): each for key, each in flat(value, 2).items() if not isinstance(each, list | dict)}
        here = {**above, **{key: each for key, each in own.items() if plain(key) in (*_TIME, "endtime")}}
        if _pick(own, _INPUT) is not None or (_pick(own, _COST) is not None and not _lists(value)):
            yield {**above, **own}
            return
        for each in value.values():
            if isinstance(each, list | dict):
                yield from _usage_records(each, here, depth + 1)


def _lists(value: dict[str, Any]) -> bool:
    return any(isinstance(each, list) and each and isinstance(each[0], dict) for each in value.values())


def read_usage(source: Source, asked: Asked) -> Reading:
    """Sums of the buckets, and a fleet with their rate and mean lengths."""
    reading = Reading(kind="usage", title="usage by bucket of time", source=source.name, of="buckets")
    zone = zone_of(asked.time_zone)
    total = {"input": 0.0, "output": 0.0, "requests": 0.0, "cached": 0.0, "cost": 0.0}
    begins: list[float] = []
    ends: list[float] = []
    costed = False
    for number, record in enumerate(_rows(source, reading), start=1):
        given, made = number_of(_pick(record, _INPUT)), number_of(_pick(record, _OUTPUT))
        cost = number_of(_pick(record, _COST))
        if given is None and cost is None:
            reading.skipped.add("neither tokens nor cost", number)
            continue
        if min(given or 0, made or 0, cost or 0) < 0:
            reading.skipped.add("negative tokens or cost", number)
            continue
        reading.taken += 1
        costed = costed or cost is not None
        for key, value in (("input", given), ("output", made), ("cost", cost),
                           ("requests", number_of(_pick(record, _REQUESTS))),
                           ("cached", number_of(_pick(record, _CACHED)))):  # fmt: skip
            total[key] += value or 0.0
        time = _pick(record, _TIME)
        for value, into in ((time, begins), (record.get("end_time", time), ends)):
            seconds = number_of(value)
            try:
                if seconds is not None and (unit := epoch_unit_s(seconds)):
                    into.append(seconds * unit)
                elif isinstance(value, str) and seconds is None:
                    into.append(iso_seconds(value, zone))
            except (ValueError, OverflowError):
                reading.note("some times are not readable: the time that is covered is that of the others")
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no bucket of {source.name} could be taken", "see the file")
    _usage_follow(reading, total, begins, ends, asked, source, costed)
    return reading


def _rows(source: Source, reading: Reading) -> Iterator[dict[str, Any]]:
    names, separator = header_of(source)
    if names:
        for number, line in enumerate(source.lines(), start=1):
            if number == 1 or not line.strip():
                continue
            try:
                cells = next(csv.reader([line], delimiter=separator), [])
            except csv.Error:
                cells = []
            if len(cells) == len(names):
                yield dict(zip(names, cells))
            else:
                reading.skipped.add("more or fewer cells than columns", number)
        return
    records = records_of(source)
    if len(records) > 1 and head_document(source) is None:
        lines = JsonLines(source)
        for _, record in lines:
            yield from _usage_records(record, {})
        for reason, (count, first) in lines.skipped.reasons.items():
            reading.skipped.add(reason, first, count)
        return
    yield from _usage_records(document_of(source), {})


def _usage_follow(
    reading: Reading, total: dict[str, float], begins: list[float], ends: list[float], asked: Asked, source: Source,
    costed: bool,
) -> None:  # fmt: skip
    seconds = max(ends) - min(begins) if begins and ends else 0.0
    reading.show("prompt tokens", total["input"], "tokens")
    reading.show("answer tokens", total["output"], "tokens")
    reading.show("requests", total["requests"] or None)
    reading.show("time that is covered", seconds or None, "s")
    if costed:
        reading.show("cost", total["cost"], "USD, as providers report it")
    if total["cached"] and total["input"]:
        reading.show("prompt tokens from a cache", total["cached"] / total["input"])
    if total["cost"] and total["input"] + total["output"]:
        reading.show("cost of a million tokens", total["cost"] / (total["input"] + total["output"]) * 1e6, "USD")
    reading.understood["prompt tokens"] = "cached ones included"
    if not (seconds > 0 and total["requests"] and total["input"] >= 1 and total["output"] >= 1):
        reading.note("no rate follows: requests, tokens and more than one time are needed")
        return
    fleet: dict[str, Any] = {
        "name": asked.name or "usage",
        "model": asked.model or MODEL,
        "qpm": float(f"{total['requests'] / seconds * 60:.6g}"),
        "input_tokens": max(round(total["input"] / total["requests"]), 1),
        "output_tokens": max(round(total["output"] / total["requests"]), 1),
    }
    if total["cached"]:
        fleet["prefix_cached"] = f"{min(total['cached'] / total['input'], 1):.2%}".replace("%", " %")
    if not asked.model:
        reading.note(f"no model is named: {MODEL} stands in the scenario; --model names another")
    reading.note("buckets hide how requests come within them: burstiness and lengths are the planner's defaults")
    reading.show("rate", total["requests"] / seconds, "requests/s")
    reading.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment={"serving": [fleet]},
                                says=f"a fleet for the usage of {source.name}"))  # fmt: skip


# ServeGen: windows of arrivals, without a first line of names


def _windows(lines: list[str]) -> list[list[str]]:
    found = []
    for line in lines:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 6 or any(number_of(cells[n]) is None for n in (0, 1, 2)) or _numeric(cells[3]):
            continue
        if cells[3] or not number_of(cells[1]):  # a window without requests has no family, no other goes without
            found.append(cells)
    return found


def _numeric(cell: str) -> bool:
    return number_of(cell) is not None


def recognise_windows(source: Source) -> Match:
    """Six cells: begin, rate, variation, family, two parameters."""
    if not source.is_text:
        return NOTHING
    lines = [line for line in source.first_lines[:50] if line.strip()]
    share = len(_windows(lines)) / max(len(lines), 1)
    return Match(score=0.9 * share if len(lines) > 1 else 0.0, found=("begin, rate, variation of gaps, family",)
                 if share > 0.5 else (), missing=() if share > 0.5 else ("windows with a rate and a fitted family",),
                 tool="ServeGen")  # fmt: skip


def read_windows(source: Source, asked: Asked) -> Reading:
    """Rates by window, summed over the clients (files) that are read together."""
    reading = Reading(kind="rate-windows", title="arrival rates by window", source=source.name, tool="ServeGen",
                      of="windows")  # fmt: skip
    rates: dict[float, float] = {}
    weighted = 0.0
    for number, line in enumerate(source.lines(), start=1):
        if not line.strip():
            continue
        cells = _windows([line[:4000]])
        begin, rate, spread = (number_of(cell) for cell in cells[0][:3]) if cells else (None, None, None)
        if begin is None or rate is None or spread is None or rate < 0 or spread < 0:
            reading.skipped.add("no window", number)
            continue
        reading.taken += 1
        rates[begin] = rates.get(begin, 0.0) + rate
        weighted += rate * spread**2
    values = np.array([rates[begin] for begin in sorted(rates)])
    if values.size < 2 or values.sum() <= 0:
        raise refused(source, "nothing-taken", f"{source.name} holds no window with requests", "see the file")
    begins = np.array(sorted(rates))
    mean, peak = float(values.mean()), float(np.quantile(values, 0.99))
    burst = weighted / float(values.sum()) if values.sum() else 1.0
    reading.show("rate, mean", mean, "requests/s")
    reading.show("rate, highest window", float(values.max()), "requests/s")
    reading.show("peak over mean (all but 1 % of the windows)", peak / mean)
    reading.show("burstiness (squared variation of gaps, weighted by requests)", burst)
    reading.show("window", float(np.median(np.diff(begins))), "s")
    reading.understood["columns"] = "begin [s], rate [1/s], variation of gaps, fitted family, its parameters"
    reading.note("windows give no lengths: those of the scenario are examples, to be replaced")
    fleet = {"name": asked.name or "arrivals", "model": asked.model or MODEL, "qpm": float(f"{mean * 60:.6g}"),
             "peak_factor": float(f"{max(peak / mean, 1):.4g}"), "arrival_variability": float(f"{burst:.4g}"),
             "input_tokens": 1000, "output_tokens": 250}  # fmt: skip
    reading.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment={"serving": [fleet]},
                                says=f"a fleet with the rate of {source.name}"))  # fmt: skip
    return reading


# lengths without times


def recognise_lengths(source: Source) -> Match:
    """Records with tokens of prompts and no time."""
    records = records_of(source)
    names = header_of(source)[0] or list(dict.fromkeys(name for record in records[:20] for name in record))
    if not names:
        return NOTHING
    roles = roles_of(names).of
    per_request = "input" in roles and ("output" in roles or "id" in roles)
    return Match(score=0.62 if per_request and "time" not in roles else 0.1, missing=() if per_request else (
        "tokens of each prompt",))  # fmt: skip


def read_lengths(source: Source, asked: Asked) -> Reading:
    """Lengths of prompts, and of answers where there are any."""
    reading = Reading(kind="request-lengths", title="lengths of requests, without times", source=source.name,
                      of="requests")  # fmt: skip
    columns: dict[str, list[float]] = {"input": [], "output": []}
    roles: dict[str, str] = {}
    for number, record in enumerate(_length_rows(source, reading), start=1):
        roles = roles or dict(roles_of(list(record), asked.columns).of)
        given = number_of(record.get(roles.get("input", "")))
        if given is None or not 1 <= given <= 1e9:
            reading.skipped.add("no prompt, or negative tokens", number)
            continue
        reading.taken += 1
        columns["input"].append(given)
        made = number_of(record.get(roles.get("output", "")))
        if made is not None and 1 <= made <= 1e9:
            columns["output"].append(made)
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no length of {source.name} could be taken", "see the file")
    fragment: dict[str, Any] = {"name": asked.name or "requests"}
    for role, key, name in (("input", "input_tokens", "prompt"), ("output", "output_tokens", "answer")):
        if columns[role]:
            facts = lengths_of(np.array(columns[role], dtype=np.float64).astype(np.uint32))
            for fact, value in facts.items():
                reading.show(f"{name}, {fact}", value, "tokens")
            fragment[key] = spread_of(facts)
    reading.note("the file has no times: no rate follows; the lengths stand in a fleet whose qpm you give")
    reading.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment={"serving": [fragment]},
                                says="lengths of a fleet's requests"))  # fmt: skip
    return reading


def _length_rows(source: Source, reading: Reading) -> Iterator[dict[str, Any]]:
    if header_of(source)[0]:
        yield from _rows(source, reading)
        return
    lines = JsonLines(source)
    for _, record in lines:
        yield record
    for reason, (count, line) in lines.skipped.reasons.items():
        reading.skipped.add(reason, line, count)


# vLLM's own log

_ENGINE = re.compile(
    r"Avg prompt throughput: ([0-9.]+) tokens/s, Avg generation throughput: ([0-9.]+) tokens/s,"
    r" Running: (\d+) reqs?,(?: Swapped: \d+ reqs?,)? (?:Waiting|Pending): (\d+) reqs?"
)
_CACHE = re.compile(r"(?:GPU )?KV cache usage: ([0-9.]+)%")
_HITS = re.compile(r"[Pp]refix cache hit rate: (?:GPU: )?([0-9.]+)%")


def recognise_vllm_log(source: Source) -> Match:
    """Lines with average throughputs and running requests."""
    found = bool(_ENGINE.search(source.head_text))
    begun = bool(re.search(r"vLLM (?:API server )?version|llm_engine|EngineCore", source.head_text))
    score = 0.96 if found else 0.65 if begun and source.is_text else 0.0
    return Match(score=score, found=("Avg prompt throughput",) if found else (), missing=() if found else (
        "lines with Avg prompt throughput",), tool="vLLM")  # fmt: skip


def read_vllm_log(source: Source, asked: Asked) -> Reading:
    """Throughput, running and waiting requests, cache use by the engine's own lines."""
    reading = Reading(kind="vllm-log", title="log of a vLLM server", source=source.name, tool="vLLM",
                      of="lines of statistics")  # fmt: skip
    columns: dict[str, list[float]] = {name: [] for name in ("prompt", "answer", "running", "waiting", "kv", "hits")}
    for line in source.lines():
        version = re.search(r"version (\d+\.\d+[\w.+]*)", line[:400]) if "version" in line[:400] else None
        reading.version = reading.version or (version.group(1) if version else "")
        match = _ENGINE.search(line[:2000])
        if match is None:
            continue
        reading.taken += 1
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
    reading.note("statistics hold no single requests: the gateway's log gives a trace")
    return reading


def _engine_shown(reading: Reading, columns: Mapping[str, list[float]]) -> None:
    """Mean and p95 of what an engine says of itself."""
    for name, label, unit in (("prompt", "prompt tokens", "tokens/s"), ("answer", "answer tokens", "tokens/s"),
                              ("running", "running at once", "requests"), ("waiting", "waiting", "requests"),
                              ("kv", "KV cache in use", "%"), ("hits", "prefix cache hits", "%")):  # fmt: skip
        if columns[name]:
            reading.show(f"{label}, mean", float(np.mean(columns[name])), unit)
            reading.show(f"{label}, p95", float(np.percentile(columns[name], 95)), unit)


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
    _engine_shown(reading, columns)
    reading.note("statistics hold no single requests: the gateway's log gives a trace")
    return reading


KINDS = (
    Kind(name="usage", title="usage by bucket of time",
         looks_for="buckets with input tokens, output tokens and requests (OpenAI, Groq, LiteLLM)",
         recognise=recognise_usage, read=read_usage),
    Kind(name="rate-windows", title="arrival rates by window",
         looks_for="lines with begin, rate, variation of gaps and a fitted family (ServeGen)",
         recognise=recognise_windows, read=read_windows),
    Kind(name="request-lengths", title="lengths of requests, without times",
         looks_for="records with tokens of prompts and no time", recognise=recognise_lengths, read=read_lengths),
    Kind(name="vllm-log", title="log of a vLLM server",
         looks_for="lines with Avg prompt throughput and Running requests",
         recognise=recognise_vllm_log, read=read_vllm_log),
    Kind(name="engine-series", title="statistics of an engine over time",
         looks_for="a first line of a time, prompt and generation throughput, running and waiting",
         recognise=recognise_series, read=read_series),
)  # fmt: skip
