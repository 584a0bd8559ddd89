"""What Prometheus keeps: scrapes of a server's metrics as text, and answers of its API at one time or over a range."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from typing import Any

from planner.carriers import dataclass
from planner.reading.columns import epoch_unit_s, has_zone, iso_seconds, zone_of
from planner.reading.jsonlines import JsonLines, document_of, head_document, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.metrics import Metrics, Series, is_known, told_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import printable

_MOST_SERIES = 200_000
_MOST_POINTS = 20_000_000
_LONGEST = 16_384  # characters of a line
_MOST_BOUNDS = 400  # of the buckets of a native histogram; Prometheus keeps 160 of one time unless told otherwise
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,255}")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_.]{0,127})\s*=\s*"((?:[^"\\]|\\.){0,2000})"\s*,?')
_END = re.compile(r"\s*\}")
_VALUE = re.compile(r"\s+([^\s#]{1,40})(?:\s+(-?[0-9.]{1,24}))?\s*(?:#.*)?$")
_NONE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.I)
_KINDS = re.compile(r"^# TYPE [a-zA-Z_:][a-zA-Z0-9_:]* (?:counter|gauge|histogram|summary|untyped|unknown|info)\s*$")
_EPOCH_MS = 1e11  # a time from here on is in milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A value of a series, at a time where one is written [s]."""

    name: str
    labels: Mapping[str, str]
    value: float
    time_s: float | None = None


def _labels(line: str, at: int) -> tuple[dict[str, str], int] | None:
    """Labels in the braces that begin at a place, and the place after them; None for braces that hold no labels."""
    labels: dict[str, str] = {}
    if line[at : at + 1] != "{":
        return labels, at
    at += 1
    while not (end := _END.match(line, at)):
        label = _LABEL.match(line, at)
        if label is None:
            return None
        labels[label.group(1)] = label.group(2)
        at = label.end()
    return labels, end.end()


def sample_of(line: str) -> Sample | str:
    """A line of a scrape, or why it is none."""
    found = _NAME.match(line)
    braces = _labels(line, found.end()) if found and len(line) <= _LONGEST else None
    if found is None or braces is None:
        return "no metric with a value"
    labels, at = braces
    rest = _VALUE.match(line, at)
    value = number_of(rest.group(1)) if rest and re.fullmatch(r"[-+0-9.eE]+", rest.group(1)) else None
    if rest is None or value is None:
        none = rest is not None and _NONE.fullmatch(rest.group(1))
        return "no number for a value (NaN and Inf, too)" if none else "no metric with a value"
    time = number_of(rest.group(2)) if rest.group(2) else None
    if time is not None and time >= _EPOCH_MS:
        time /= 1e3
    return Sample(name=found.group(), labels=labels, value=value, time_s=time)


def recognise_scrape(source: Source) -> Match:
    """Lines of a name, labels in braces and a value, with their types above."""
    if not source.is_text:
        return NOTHING
    lines = [line for line in source.first_lines if line.strip()]
    types = sum(bool(_KINDS.match(line[:400])) for line in lines)
    plain = [line for line in lines if not line.startswith("#")]
    samples = [sample for line in plain if isinstance(sample := sample_of(line), Sample)]
    labelled = sum(bool(sample.labels) for sample in samples)
    share = len(samples) / max(len(plain), 1)
    sure = types > 0 or labelled > 0.5 * len(samples)
    missing = () if samples and sure else ("lines of a metric, labels in braces and a value", "# TYPE above them")
    return Match(score=0.97 * share if samples and sure else 0.0, tool="Prometheus", missing=missing,
                 found=("metrics with labels",) if labelled else ())  # fmt: skip


def read_scrape(source: Source, asked: Asked) -> Reading:
    """What the metrics of a scrape say; files read together are scrapes one after another."""
    reading = Reading(kind="metrics-scrape", title="metrics of a server, scraped", source=source.name,
                      tool="Prometheus", of="samples")  # fmt: skip
    metrics = Metrics()
    for number, line in enumerate(source.lines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        sample = sample_of(line.strip())
        if isinstance(sample, str):
            reading.skipped.add(sample, number)
        else:
            _add(metrics, reading, number, sample.name, sample.labels, [(sample.time_s, sample.value)])
    return _told(source, reading, metrics, asked)


def recognise_answer(source: Source) -> Match:
    """status, data, resultType and result of the API."""
    if source.head_text.lstrip()[:1] not in ("{", "["):
        return NOTHING
    keys = head_keys(source)
    if {"status", "errorType", "error"} <= keys:
        return Match(score=0.95, found=("status", "error"), tool="Prometheus")
    if {"metric", "values", "timestamps"} <= keys:  # a series a line, as VictoriaMetrics exports them
        return Match(score=0.95, found=("metric", "values", "timestamps"), tool="VictoriaMetrics")
    if "resultType" not in keys:
        whole = head_document(source)
        rows = whole if isinstance(whole, list) else []
        bare = bool(rows) and all(isinstance(row, dict) and "metric" in row and {"values", "value", "histogram",
                                                                                 "histograms"} & row.keys()
                                  for row in rows[:20])  # fmt: skip
        return Match(score=0.9 if bare else 0.0, missing=("resultType",), tool="Prometheus")
    marks = {each: each in keys for each in ("status", "data", "resultType", "result")}
    return fit(marks, tool="Prometheus", ceiling=0.98)


_LINES_OF_LOKI = (
    "logcli query … --output=jsonl > FILE is read where lines tell prompt_tokens and completion_tokens, and so is what "
    "jq -c '.data.result[].values[] | {timestamp: .[0], line: .[1]}' FILE makes of it"
)


def read_answer(source: Source, asked: Asked) -> Reading:
    """What series of a range, or at one time, say; several files are answers to several questions."""
    reading = Reading(kind="metrics-range", title="metrics over a time", source=source.name, tool="Prometheus",
                      of="samples")  # fmt: skip
    metrics = Metrics()
    number = 0
    for part in source.parts:
        lines = JsonLines(part) if '"timestamps"' in part.head_text else None
        for each in (row for _, row in lines) if lines else _results(document_of(part), source):
            number += 1
            if isinstance(each, dict) and isinstance(each.get("stream"), dict):
                message = f"{part.name} is an answer of Loki: it holds lines of a log, and no series"
                raise refused(part, "unknown-format", message, _LINES_OF_LOKI)
            if not isinstance(each, dict) or not isinstance(each.get("metric"), dict):
                reading.skipped.add("JSON, but no series", number)
                continue
            labels = {str(key)[:128]: str(value)[:2000] for key, value in each["metric"].items()}
            name = labels.pop("__name__", "")
            if {"histogram", "histograms"} & each.keys():
                for kind, more, points in _native(each, reading, number):
                    _add(metrics, reading, number, f"{name}_{kind}", labels | more, points)
                continue
            _add(metrics, reading, number, name, labels, _points(each, reading, number))
        for reason, (count, first) in lines.skipped.reasons.items() if lines else ():
            reading.skipped.add(reason, first, count)
    return _told(source, reading, metrics, asked)


def _results(document: Any, source: Source) -> list[Any]:
    if isinstance(document, dict):
        if document.get("status") == "error":
            said = printable(str(document.get("error", "")), 200)
            raise refused(source, "failed-query", f"{source.name} is the answer to a query that failed: {said}",
                          "ask again: curl 'HOST/api/v1/query_range?query=…&start=…&end=…&step=60'")  # fmt: skip
        data = document.get("data", document)
        document = data.get("result") if isinstance(data, dict) else data
    return document if isinstance(document, list) else []


def _points(each: dict[str, Any], reading: Reading, number: int) -> Iterator[tuple[float | None, float]]:
    pairs = each.get("values") if isinstance(each.get("values"), list) else [each.get("value")]
    times = each.get("timestamps")
    if isinstance(times, list) and len(times) == len(pairs or ()):  # beside the values, in milliseconds
        pairs = [[(number_of(time) or 0.0) / 1e3, value] for time, value in zip(times, pairs or ())]
    for pair in pairs or ():
        if not isinstance(pair, list) or len(pair) != 2:
            reading.skipped.add("no time with a value", number)
            continue
        time, value = number_of(pair[0]), number_of(pair[1])
        if time is None or not 0 < time < 1e11:
            reading.skipped.add("no time with a value", number)
        elif value is None:
            reading.skipped.add("no number for a value (NaN and Inf, too)", number)
        else:
            yield time, value


Points = list[tuple[float | None, float]]


def _native(each: dict[str, Any], reading: Reading, number: int) -> list[tuple[str, dict[str, str], Points]]:
    """Sum, count and buckets of native histograms as series of their own, as histograms of old have them.

    Buckets that hold nothing are not written, so that a bound of one time may be missing at another: there it counts
    what lies below it.
    """
    counts: Points = []
    sums: Points = []
    held: list[list[tuple[float, float]]] = []  # of each time: upper bound and count of each bucket
    several = each.get("histograms")
    for pair in several if isinstance(several, list) else [each.get("histogram")]:
        time = number_of(pair[0]) if isinstance(pair, list) and len(pair) == 2 else None
        whole = pair[1] if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], dict) else {}
        count, total = number_of(whole.get("count")), number_of(whole.get("sum"))
        if time is None or not 0 < time < _EPOCH_MS or count is None or total is None:
            reading.skipped.add("a histogram without a time, count and sum", number)
            continue
        counts.append((time, count))
        sums.append((time, total))
        buckets = whole.get("buckets")
        found = [(number_of(part[2]), number_of(part[3])) for part in buckets if isinstance(part, list)
                 and len(part) == 4] if isinstance(buckets, list) else []  # fmt: skip
        held.append([(bound, inside) for bound, inside in found if bound is not None and inside is not None])
    bounds = sorted({bound for buckets in held for bound, _ in buckets})
    series: list[tuple[str, dict[str, str], Points]] = [("count", {}, counts), ("sum", {}, sums)]
    for bound in bounds[:_MOST_BOUNDS]:
        below = [sum(inside for upper, inside in buckets if upper <= bound) for buckets in held]
        series.append(("bucket", {"le": repr(bound)}, [(time, value) for (time, _), value in zip(counts, below)]))
    return series


def _add(
    metrics: Metrics, reading: Reading, number: int, name: str, labels: Mapping[str, str],
    points: Iterator[tuple[float | None, float]] | Points,
) -> None:  # fmt: skip
    """Points of one series, each taken or counted."""
    key = (name, tuple(sorted(labels.items())))
    series = metrics.series.get(key)
    if series is None:
        if len(metrics.series) >= _MOST_SERIES:
            reading.skipped.add(f"more than {_MOST_SERIES:,} series", number)
            return
        series = metrics.series[key] = Series(name=name, labels=dict(labels))
    for time_s, value in points:
        if series.times and time_s is not None and time_s == series.times[-1]:
            reading.skipped.add("a time that stands twice in its series", number)
        elif series.times and time_s is not None and time_s < series.times[-1]:
            reading.skipped.add("a time before the one above it", number)
        elif value < 0 and name.endswith(("_total", "_count", "_bucket", "_sum")):
            reading.skipped.add("a negative count", number)
        elif reading.taken >= _MOST_POINTS:
            reading.skipped.add(f"more than {_MOST_POINTS:,} samples", number)
        else:
            reading.taken += 1
            series.values.append(value)
            if time_s is not None:
                series.times.append(time_s)


def _told(source: Source, reading: Reading, metrics: Metrics, asked: Asked) -> Reading:
    if not reading.taken:
        reasons = "; ".join(f"{count:,} of them: {why}" for why, (count, _) in reading.skipped.reasons.items())
        raise refused(source, "nothing-taken", f"no sample of {source.name} could be taken", reasons[:600])
    told_of(reading, metrics, asked)
    return reading


# tables that Grafana exports: a time and a column a series, or a row a series and time

_LONG = ("series", "time", "value")


def _series_of(column: str) -> tuple[str, dict[str, str]] | None:
    """Name and labels of a series as a legend writes them; None for any other name of a column."""
    text = column.strip()[:_LONGEST]
    found = _NAME.match(text)
    at = found.end() if found else 0
    braces = _labels(text, at)
    if braces is None or braces[1] != len(text) or not (braces[0] or (found and is_known(found.group()))):
        return None
    labels = dict(braces[0])
    return (found.group() if found else labels.pop("__name__", "")), labels


def _is_long(names: list[str]) -> bool:
    return [name.lower() for name in names] == list(_LONG)


def recognise_grafana(source: Source) -> Match:
    """A time, and columns whose names are series."""
    names = header_of(source)[0]
    if _is_long(names):
        return Match(score=0.9, found=_LONG, tool="Grafana")
    series = [name for name in names[1:] if _series_of(name)]
    timed = bool(names) and names[0].lower().startswith("time")
    return Match(score=0.93 if timed and series else 0.0, tool="Grafana", found=("series",) if series else (),
                 missing=() if timed and series else ("a time and columns named as series",))  # fmt: skip


def read_grafana(source: Source, asked: Asked) -> Reading:
    """What series of a table say."""
    reading = Reading(kind="metrics-table", title="metrics over a time, as a table", source=source.name, tool="Grafana",
                      of="samples")  # fmt: skip
    metrics, zone = Metrics(), zone_of(asked.time_zone)
    for part in source.parts:
        names, separator = header_of(part)
        long = _is_long(names)
        columns = [_series_of(name) for name in names]
        for name in names[1:] if not long else ():
            if not _series_of(name):
                reading.note(f"{printable(name, 60)} is no name of a series: its column is left out")
        for number, line in enumerate(part.lines(), start=1):
            cells = _cells(line, separator)
            if not any(cells) or [cell.strip() for cell in cells] == names:
                continue
            written = cells[1 if long else 0] if len(cells) == len(names) else ""
            time_s = _table_time(written, zone)
            if time_s is None:
                reading.skipped.add("no time, or more or fewer cells than columns", number)
                continue
            if number_of(written) is None and not asked.time_zone and not has_zone(written):
                reading.note("times of Grafana name no zone: taken as UTC, --time-zone names another")
            found = [(_series_of(cells[0]) or (cells[0][:200], {}), cells[2])] if long else zip(columns, cells)
            for series, cell in found:
                value = number_of(cell)
                if series and value is not None:
                    _add(metrics, reading, number, *series, [(time_s, value)])
                elif series and cell.strip():
                    reading.skipped.add("no number for a value", number)
    return _told(source, reading, metrics, asked)


def _cells(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a cell that is endless
        return [line[:_LONGEST]]


def _table_time(text: str, zone: tzinfo) -> float | None:
    number = number_of(text)
    try:
        unit_s = epoch_unit_s(number) if number is not None else None
        return number * unit_s if number is not None and unit_s else iso_seconds(text, zone)
    except (ValueError, OverflowError):
        return None


# which counters dcgm-exporter is told to collect

_COUNTER = re.compile(r"^\s*(DCGM_[A-Z0-9_]{1,80}|[a-z_]{1,40})\s*,\s*(gauge|counter|label|histogram|summary)\s*,")
_USED = {
    "DCGM_FI_DEV_GPU_UTIL": "the share of time that a device is busy",
    "DCGM_FI_DEV_FB_USED": "memory in use, and with FB_FREE which device it is",
    "DCGM_FI_DEV_FB_FREE": "memory that is free",
    "DCGM_FI_DEV_POWER_USAGE": "power",
}


def recognise_counters(source: Source) -> Match:
    """DCGM fields with their type and a help text, a line each."""
    lines = [line for line in source.first_lines if line.strip() and not line.lstrip().startswith("#")]
    named = [line for line in lines if _COUNTER.match(line[:400])]
    share = len(named) / max(len(lines), 1)
    dcgm = any("DCGM_FI_" in line for line in named)
    return Match(score=0.96 * share if dcgm else 0.0, tool="dcgm-exporter",
                 missing=() if dcgm else ("DCGM fields with their type",))  # fmt: skip


def read_counters(source: Source, asked: Asked) -> Reading:
    """Counters that are collected, and which of those that are read here are not."""
    reading = Reading(kind="dcgm-counters", title="counters that dcgm-exporter collects", source=source.name,
                      tool="dcgm-exporter", of="counters")  # fmt: skip
    found: dict[str, str] = {}
    types: Counter[str] = Counter()
    for number, line in enumerate(source.lines(), start=1):
        counter = _COUNTER.match(line[:1000])
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not counter:
            reading.skipped.add("no counter with its type", number)
        elif counter.group(1) in found:
            reading.skipped.add("a counter that stands above", number)
        elif len(found) < _MOST_SERIES:
            reading.taken += 1
            found[counter.group(1)] = counter.group(2)
            types[counter.group(2)] += 1
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no counter of {source.name} could be taken", "see the file")
    for kind, count in types.most_common():
        reading.show(f"counters that are a {kind}", count)
    for name, use in _USED.items():
        reading.show(name, "collected" if name in found else "not collected", use)
    reading.note("it says what is collected, no figures: read a scrape of the exporter, or a range of Prometheus")
    return reading


KINDS = (
    Kind(name="metrics-scrape", title="metrics of a server, scraped",
         looks_for="lines of a metric, labels in braces and a value (/metrics of vLLM, SGLang, DCGM, Triton)",
         recognise=recognise_scrape, read=read_scrape),
    Kind(name="metrics-range", title="metrics over a time",
         looks_for="JSON with resultType and result (query_range of Prometheus)",
         recognise=recognise_answer, read=read_answer),
    Kind(name="metrics-table", title="metrics over a time, as a table",
         looks_for="a first line of Time and series such as vllm:num_requests_running{…} (Grafana)",
         recognise=recognise_grafana, read=read_grafana),
    Kind(name="dcgm-counters", title="counters that dcgm-exporter collects",
         looks_for="DCGM fields with their type and help, a line each", recognise=recognise_counters,
         read=read_counters),
)  # fmt: skip
