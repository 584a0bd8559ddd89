"""Usage by time: reports of providers in buckets, rates by window, and lengths without times."""

from __future__ import annotations

import contextlib
import csv
import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from planner.reading.columns import (
    DecimalSign,
    epoch_unit_s,
    iso_seconds,
    number_in,
    plain,
    roles_of,
    signs_of,
    zone_of,
)
from planner.reading.jsonlines import JsonLines, document_of, flat, head_document, head_keys, records_of
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Piece, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.metrics import profile_piece, weights_by_hour
from planner.reading.request_log import MODEL, lengths_of, spread_of
from planner.reading.requests import header_of, order_of
from planner.reading.source import Source, refused

_DEEP = 12
_INPUT = ("inputtokens", "ncontexttokenstotal", "prompttokens", "totalinputtokens", "processedprompttokenssum")
# prompts without what a cache held and without what was written to it (Anthropic): those are added
_FRESH = ("uncachedinputtokens", "usageinputtokensnocache")
_WRITTEN = ("cachecreationinputtokens", "cachecreationtokens", "cachecreationephemeral1hinputtokens",
            "cachecreationephemeral5minputtokens",
            "usageinputtokenscachewrite1h", "usageinputtokenscachewrite5m")  # fmt: skip
_OUTPUT = ("outputtokens", "ngeneratedtokenstotal", "completiontokens", "totaloutputtokens", "usageoutputtokens",
           "generatedcompletiontokenssum", "generatedtokenssum")  # fmt: skip
_REQUESTS = ("nummodelrequests", "numrequests", "apirequests", "requests", "totalrequests", "nrequests",
             "azureopenairequestssum")  # fmt: skip
_CACHED = ("inputcachedtokens", "ncachedcontexttokenstotal", "cachereadinputtokens", "cachedtokens",
           "usageinputtokenscacheread", "cachereadtokens")  # fmt: skip
_COST = ("cost", "spend", "totalspend", "costusd", "totalcost", "amountvalue")
_TIME = ("starttime", "startingat", "timestamp", "aggregationtimestamp", "bucketstart", "periodstart", "intervalstart",
         "groupbyday", "usagedateutc", "date", "day", "hour", "bucket", "time")  # fmt: skip
_END = ("endtime", "endingat")
_HOUR_S, _DAY_S = 3600.0, 86_400.0
_LONGEST_S = 400 * _DAY_S  # of buckets whose hours are counted
_COUNT = re.compile(r'"([^"\\\n]{1,120})"\s*:\s*"?[0-9]')  # a key with a number: requests may be a list of them, too


def _pick(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    stems = {plain(key): value for key, value in record.items()}
    return next((stems[name] for name in names if name in stems and stems[name] is not None), None)


def recognise_usage(source: Source) -> Match:
    """Buckets of time with tokens in, tokens out and requests."""
    stems = {plain(key) for key in head_keys(source)} | {plain(name) for name in header_of(source)[0]}
    counted = {plain(key) for key in _COUNT.findall(source.head_text)} | {plain(name) for name in header_of(source)[0]}
    marks = {
        "tokens in": bool(stems & {*_INPUT, *_FRESH}),
        "tokens out": bool(stems & set(_OUTPUT)),
        "requests of a bucket": bool(counted & set(_REQUESTS)),
        "a time of the bucket": bool(stems & set(_TIME)),
    }
    if {"amount", "value", "lineitem", "starttime", "results"} <= stems:
        return Match(score=0.75, found=("costs by day",), tool="OpenAI costs")
    spend = bool(stems & {"groupbyday", "totalspend", "teams", "spend"}) and "metadata" in stems
    if spend and not all(marks.values()):
        return Match(score=0.75, found=("spend by day",), tool="LiteLLM spend report")
    tool = "OpenAI usage" if {"results", "nummodelrequests"} <= stems else ""
    return fit(marks, tool=tool, ceiling=0.92)


def _usage_records(value: Any, above: dict[str, Any], depth: int = 0) -> Iterator[dict[str, Any]]:
    """Records that hold tokens or spend, each with the time of its bucket; of empty buckets the time alone."""
    if depth > _DEEP:
        return
    if isinstance(value, list):
        for each in value:
            yield from _usage_records(each, above, depth + 1)
    elif isinstance(value, dict):
        own = _own(value)
        times = {key: each for key, each in own.items() if plain(key) in (*_TIME, *_END)}
        here = {**above, **times}
        if _tokens_in(own) is not None or (_pick(own, _COST) is not None and not _lists(value)):
            yield {**above, **own}
            return
        sums = [each for each in value.values() if isinstance(each, dict) and _tokens_in(_own(each)) is not None]
        if times and len(sums) == 1:  # what stands beside the sum of a bucket divides it anew, by model or by key
            yield {**here, **_own(sums[0])}
            return
        if times and [] in value.values():
            yield here
        for each in value.values():
            if isinstance(each, list | dict):
                yield from _usage_records(each, here, depth + 1)


def _own(value: dict[str, Any]) -> dict[str, Any]:
    return {str(key): each for key, each in flat(value, 2).items() if not isinstance(each, list | dict)}


def _tokens_in(record: dict[str, Any]) -> float | None:
    """Tokens of prompts, those from a cache included; None where the record tells none."""
    given, fresh = number_of(_pick(record, _INPUT)), number_of(_pick(record, _FRESH))
    written = [number_of(value) or 0.0 for key, value in record.items() if plain(key) in _WRITTEN]
    if written and "inputtokens" in map(plain, record):  # beside prompt tokens they are a part of those
        fresh = given
    elif given is not None or fresh is None:
        return given
    if fresh is None:
        return None
    return fresh + sum(written) + (number_of(_pick(record, _CACHED)) or 0.0)


def _lists(value: dict[str, Any]) -> bool:
    return any(isinstance(each, list) and each and isinstance(each[0], dict) for each in value.values())


def read_usage(source: Source, asked: Asked) -> Reading:
    """Sums of the buckets, and a fleet with their rate and mean lengths."""
    reading = Reading(kind="usage", title="usage by bucket of time", source=source.name, of="buckets")
    total, untimed = (dict.fromkeys(("input", "output", "requests", "cached", "cost"), 0.0) for _ in range(2))
    covered = _Covered(source, asked)
    skipped: list[int] = []  # places of records without a time
    for number, record in enumerate(_rows(source, reading), start=1):
        given, made, cost = _tokens_in(record), number_of(_pick(record, _OUTPUT)), number_of(_pick(record, _COST))
        if given is None and cost is None:
            if set(map(plain, record)) <= {*_TIME, *_END}:
                covered.take(record)
            else:
                reading.skipped.add("neither tokens nor cost", number)
            continue
        if min(given or 0, made or 0, cost or 0) < 0:
            reading.skipped.add("negative tokens or cost", number)
            continue
        timed = covered.take(record)
        reading.taken += 1
        if not timed:
            skipped.append(number)
        for key, value in (("input", given), ("output", made), ("cost", cost),
                           ("requests", number_of(_pick(record, _REQUESTS))),
                           ("cached", number_of(_pick(record, _CACHED)))):  # fmt: skip
            (total if timed else untimed)[key] += value or 0.0
        covered.costed = covered.costed or cost is not None
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no bucket of {source.name} could be taken", "see the file")
    if len(skipped) == reading.taken:
        total = untimed
    elif skipped:
        reading.taken -= len(skipped)
        reading.skipped.add("no time that is readable: a sum of the others, or nobody knows when", skipped[0],
                            len(skipped))  # fmt: skip
    _usage_follow(reading, total, covered, asked, source)
    return reading


class _Covered:
    """The time that buckets cover, from the begin of the first to the end of the last."""

    def __init__(self, source: Source, asked: Asked) -> None:
        self._zone = zone_of(asked.time_zone)
        self._zone_name = asked.time_zone
        self._begins: dict[float, float] = {}  # of buckets -> requests in them
        self._last: float | None = None  # of the ends that are told  [s]
        self._days = True  # all buckets are named by a day alone
        self.costed = False
        self.order = order_of(source, (_pick(record, _TIME) for record in _rows(source, Reading(
            kind="", title="", source=""))))  # fmt: skip

    def take(self, record: dict[str, Any]) -> bool:
        """The time of a bucket; False when it has none."""
        begin, end = (self._seconds(_pick(record, names)) for names in (_TIME, _END))
        if begin is None:
            return False
        self._days = self._days and number_of(text := _pick(record, _TIME)) is None and ":" not in str(text)
        self._begins[begin] = self._begins.get(begin, 0.0) + (number_of(_pick(record, _REQUESTS)) or 0.0)
        if end is not None:
            self._last = max(end, self._last or end)
        return True

    def _seconds(self, value: Any) -> float | None:
        number = number_of(value)
        try:
            if number is not None and (unit := epoch_unit_s(number)):
                return number * unit
            return iso_seconds(value, self._zone, self.order.day_first) if isinstance(value, str) else None
        except (ValueError, OverflowError):
            return None

    def profile(self) -> list[float] | None:
        """Requests by hour where buckets are an hour at most and cover a day or a week; else None.  [1/s]"""
        begins = sorted(self._begins)
        step = min((after - before for before, after in itertools.pairwise(begins)), default=0.0)
        covered_s, _ = self.seconds()
        if self._days or not 0 < step <= _HOUR_S or covered_s > _LONGEST_S:
            return None
        seen = [(begins[0] + step * n, begins[0] + step * (n + 1)) for n in range(round(covered_s / step))]
        counted = ((begin, begin + step, requests) for begin, requests in self._begins.items())
        return weights_by_hour(seen, counted, self._zone_name)

    def seconds(self) -> tuple[float, str]:
        """How long it is, and how its end is known.  [s]"""
        if not self._begins:
            return 0.0, ""
        begins = sorted(self._begins)
        if self._last is not None:
            return self._last - begins[0], "to the end of the last bucket"
        if self._days:
            return begins[-1] - begins[0] + _DAY_S, "of whole days, the last one too"
        if len(begins) < 2:
            return 0.0, ""
        step = min(after - before for before, after in itertools.pairwise(begins))
        return begins[-1] - begins[0] + step, f"the last bucket taken to be {step:,.9g} s long, as the shortest is"


def _rows(source: Source, reading: Reading) -> Iterator[dict[str, Any]]:
    names, separator = header_of(source)
    if names:
        signs = _signs(source, names, separator, reading)
        for number, line in enumerate(source.lines(), start=1):
            if number == 1 or not line.strip():
                continue
            try:
                cells = next(csv.reader([line], delimiter=separator), [])
            except csv.Error:
                cells = []
            if len(cells) == len(names):
                yield {name: _in_dots(cell, signs.get(name, ".")) for name, cell in zip(names, cells)}
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


def _signs(source: Source, names: list[str], separator: str, reading: Reading) -> dict[str, str]:
    """The decimal sign of each column of numbers of a table, by all of them."""
    known = {*_INPUT, *_FRESH, *_WRITTEN, *_OUTPUT, *_REQUESTS, *_CACHED, *_COST}
    columns = {name: DecimalSign() for name in names if plain(name) in known}
    for number, line in enumerate(source.lines(), start=1):
        with contextlib.suppress(csv.Error):
            for name, cell in zip(names, next(csv.reader([line], delimiter=separator), [])):
                if name in columns and number > 1:
                    columns[name].see(cell.strip(), number)
    signs, said = signs_of(source, columns, separator)
    if said:
        reading.understood["numbers"] = said
    return signs


def _in_dots(cell: str, sign: str) -> str:
    """A cell of a column with a decimal comma, with a dot; others as they are."""
    number = number_in(cell.strip(), sign) if sign == "," else None
    return cell if number is None else str(number)


def _usage_follow(reading: Reading, total: dict[str, float], covered: _Covered, asked: Asked, source: Source) -> None:
    seconds, how = covered.seconds()
    if how:
        said = f"; {covered.order.said}" if covered.order.said else ""
        reading.understood["time that is covered"] = how + said
    reading.show("prompt tokens", total["input"] or None, "tokens")
    reading.show("answer tokens", total["output"] or None, "tokens")
    reading.show("requests", total["requests"] or None)
    reading.show("time that is covered", seconds or None, "s")
    if covered.costed:
        reading.show("cost", total["cost"], "USD, as providers report it")
    if total["cached"] and total["input"]:
        reading.show("prompt tokens from a cache", total["cached"] / total["input"])
    if total["cost"] and total["input"] + total["output"]:
        reading.show("cost of a million tokens", total["cost"] / (total["input"] + total["output"]) * 1e6, "USD")
    if total["input"]:
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
    weights = covered.profile()
    if weights:
        reading.pieces.append(profile_piece(fleet["name"], weights))
        fleet["load_profile"] = reading.pieces[-1].name
        reading.show("peak over mean", max(weights) / float(np.mean(weights)))
    default = "burstiness and lengths are" if weights else "the peak, burstiness and lengths are"
    reading.note(f"buckets hide how requests come within them: {default} the planner's defaults")
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
    per_request = per_request and not any(plain(name).startswith("percentile") for name in names)
    return Match(score=0.62 if per_request and "time" not in roles else 0.1, missing=() if per_request else (
        "tokens of each prompt",))  # fmt: skip


def read_lengths(source: Source, asked: Asked) -> Reading:
    """Lengths of prompts, and of answers where there are any."""
    reading = Reading(kind="request-lengths", title="lengths of requests, without times", source=source.name,
                      of="requests")  # fmt: skip
    columns: dict[str, list[float]] = {"input": [], "output": []}
    roles: dict[str, str] = {}
    whole = ""
    for number, record in enumerate(_length_rows(source, reading), start=1):
        if not roles:
            found = roles_of(list(record), asked.columns)
            roles, whole = dict(found.of), found.whole
        given, made = (number_of(record.get(roles.get(role, ""))) for role in ("input", "output"))
        if whole and given is not None and made is not None:
            given, made = (given - made, made) if whole == "input" else (given, made - given)
        if given is None or not 1 <= given <= 1e9:
            reading.skipped.add("no prompt, or negative tokens", number)
            continue
        reading.taken += 1
        columns["input"].append(given)
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


KINDS = (
    Kind(name="usage", title="usage by bucket of time",
         looks_for="buckets with input tokens, output tokens and requests (OpenAI, Anthropic, Groq, LiteLLM)",
         recognise=recognise_usage, read=read_usage),
    Kind(name="rate-windows", title="arrival rates by window",
         looks_for="lines with begin, rate, variation of gaps and a fitted family (ServeGen)",
         recognise=recognise_windows, read=read_windows),
    Kind(name="request-lengths", title="lengths of requests, without times",
         looks_for="records with tokens of prompts and no time", recognise=recognise_lengths, read=read_lengths),
)  # fmt: skip
