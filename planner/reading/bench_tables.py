"""Results of llama-bench, and tables of points that publishers made: a row or record each point."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import median
from typing import Any

from planner.reading.benchmarks import stem_of
from planner.reading.columns import DecimalSign, number_in, plain, signs_of
from planner.reading.jsonlines import JsonLines, document_of, flat, head_document, head_keys, records_of
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading, Skips, fit
from planner.reading.measured_points import Point, latency_key, measured, number_of, point_of, reading_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused

_DEEP = 8
_LLAMA = {"n_prompt", "n_gen", "avg_ts"}
_TEST = re.compile(r"^(?:pp ?(\d+))?\+?(?:tg ?(\d+))?(?: ?@ ?d(\d+))?$")
_INSERT = re.compile(r"(?i)\s*INSERT INTO \W?(?:llama_bench|test)\W? *\(([^)]*)\) *VALUES *\((.*)\) *;?\s*$")
_HEADER = re.compile(r"\|\s*test\s*\|\s*t/s\s*\|")
_CLOSE = 0.02
_FIGURE = re.compile(r"(?i)throughput|latency|ttft|tpot|\bitl|tok(?:en)?s?_?(?:s|per_s)|tok\w*/s|req\w*/s")
_TESTS = {"latency": "static batch", "throughput": "offline"}  # how names of vLLM's tests begin
_TOLD = {"request_rate": re.compile(r"_qps_(\d+(?:\.\d+)?)\b"), "tp": re.compile(r"_tp(\d{1,3})(?=_|$)")}
_WITH_UNIT = re.compile(
    r"\s*([0-9][0-9.,]*)\s*(ms|s|secs?|us|ns|(?:output |total )?tok(?:en)?s?/s(?:ec)?|req(?:uest)?s?/s(?:ec)?)\s*", re.I
)
_LEAST_TOKEN_MS = 1.0  # that a token takes; none takes as many seconds
_FIRST = 0.7  # of the time of a token the least that the first one takes
_LONG_FIRST = 60.0  # of a number without a unit: no first token takes as many seconds
_MADE = 50.0  # tokens of an answer of which nothing is told
_BATCHED = {"pp", "tg", "pl", "speed_pp", "speed_tg"}
_BATCHED_NAMES = {"PP": "pp", "TG": "tg", "B": "pl", "S_PP t/s": "speed_pp", "S_TG t/s": "speed_tg"}


def recognise_llama_bench(source: Source) -> Match:
    """JSON, CSV or the printed table of llama-bench."""
    names = set(header_of(source)[0]) | head_keys(source)
    if _HEADER.search(source.head_text):
        return Match(score=0.95, found=("a table with test and t/s",), tool="llama-bench, printed")
    inserted = next((found.group(1) for line in source.first_lines if (found := _INSERT.match(line[:4000]))), "")
    names |= set(re.split(r"\W+", inserted))
    if "S_TG t/s" in source.head_text or names >= _BATCHED:
        return Match(score=0.95, found=("speeds of prompts and answers at a batch",), tool="llama-batched-bench")
    ceiling = 0.97 if "avg_ts" in names else 0.6  # lengths without a speed may be of anything
    return fit({name: name in names for name in sorted(_LLAMA)}, tool="llama-bench", ceiling=ceiling)


def _llama_records(source: Source, skipped: Skips) -> Iterator[tuple[int, Mapping[str, Any]]]:
    names, separator = header_of(source)
    if "S_TG t/s" in source.head_text:
        for number, row in _ruled_rows(source, skipped):
            yield number, {_BATCHED_NAMES.get(name, name): cell for name, cell in row.items()}
    elif _HEADER.search(source.head_text):
        yield from _printed(source, skipped)
    elif any(_INSERT.match(line[:4000]) for line in source.first_lines):
        yield from _inserted(source, skipped)
    elif names and set(names) >= _LLAMA:
        yield from _cells(source, names, separator, skipped)
    else:
        lines = JsonLines(source)
        yield from lines
        for reason, (count, line) in lines.skipped.reasons.items():
            skipped.add(reason, line, count)


def _inserted(source: Source, skipped: Skips) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Rows of a script that fills a table: names and values of each statement."""
    for number, line in enumerate(source.lines(), start=1):
        found = _INSERT.match(line[:20_000])
        if not found:
            continue
        names = [name.strip(' "`') for name in found.group(1).split(",")]
        values = next(csv.reader([found.group(2)], quotechar="'", skipinitialspace=True), [])
        if len(values) == len(names):
            yield number, dict(zip(names, values))
        else:
            skipped.add("more or fewer values than names", number)


def _printed(source: Source, skipped: Skips) -> Iterator[tuple[int, Mapping[str, Any]]]:
    names: list[str] = []
    devices: dict[str, str] = {}
    for number, line in enumerate(source.lines(), start=1):
        found = re.match(r"\s*(?:ggml_\w+|Device)[: ]+ ?(\d+)(?: =|:) ([^(|,]+)", line[:400])
        if found:
            if found.group(1) == "0":  # the list of a further run
                devices.clear()
            devices[found.group(1)] = found.group(2).strip()
        cells = [cell.strip() for cell in line[:4000].strip().strip("|").split("|")]
        if "test" in cells and "t/s" in cells:
            names = cells
        elif names and len(cells) == len(names) and not cells[0].startswith("-") and not set(cells[0]) <= set("-: "):
            row: dict[str, Any] = dict(zip(names, cells))
            test = _TEST.match(row["test"])
            speed = number_of(re.split(r"±|\+/-", row["t/s"])[0].strip())
            if test is None or speed is None:
                skipped.add("a test or speed of another form", number)
                continue
            given, made, depth = (int(part) if part else 0 for part in test.groups())
            yield number, {"n_prompt": given, "n_gen": made, "n_depth": depth, "avg_ts": speed,
                           "model_type": row.get("model", ""), "gpu_info": ", ".join(devices.values()),
                           "n_gpu_layers": row.get("ngl"), "split_mode": row.get("sm")}  # fmt: skip


def _cells(source: Source, names: list[str], separator: str, skipped: Skips) -> Iterator[tuple[int, Mapping[str, Any]]]:
    first = True
    for number, line in enumerate(source.lines(), start=1):
        if first:
            first = False
            continue
        if not line.strip():
            continue
        try:
            cells = next(csv.reader([line], delimiter=separator), [])
        except csv.Error:
            cells = []
        if len(cells) != len(names):
            skipped.add("more or fewer cells than columns", number)
            continue
        yield number, dict(zip(names, (cell.strip() for cell in cells)))


def read_llama_bench(source: Source, asked: Asked) -> Reading:
    """Prompt and decode speeds of one sequence, at the depth of context that was filled before."""
    reading = Reading(kind="bench-llama", title="result of llama-bench", source=source.name)
    points = []
    for number, record in _llama_records(source, reading.skipped):
        if set(record) >= _BATCHED:
            points.extend(_batched(reading, record, number))
            continue
        given, made = number_of(record.get("n_prompt")) or 0.0, number_of(record.get("n_gen")) or 0.0
        depth, speed = number_of(record.get("n_depth")) or 0.0, number_of(record.get("avg_ts"))
        if speed is None or speed <= 0 or min(given, made, depth) < 0 or (given == 0 and made == 0):
            reading.skipped.add("no speed, or neither prompt nor answer", number)
            continue
        if given and made:
            reading.skipped.add("a mixed test (pp+tg), whose speed is of neither", number)
            continue
        if record.get("n_gpu_layers") is not None and number_of(record["n_gpu_layers"]) == 0:
            reading.skipped.add("a test without layers on a device", number)
            continue
        cells: dict[str, Any] = {"engine": "llama.cpp", "n_accel": 1, "scenario": "llama-bench"}
        for column, name in (("model", "model_type"), ("engine_version", "build_number")):
            if record.get(name):
                cells[column] = str(record[name])[:200]
        devices = [name.strip() for name in str(record.get("gpu_info") or "").split(",") if name.strip()]
        if devices:
            cells["accelerator"] = " + ".join(dict.fromkeys(devices))[:200]
            cells["n_accel"] = 1 if record.get("split_mode") == "none" else len(devices)
        cells["concurrency"] = 1.0
        if given:
            cells |= {"prefill_tokens_per_s": speed, "input_tokens": given + depth}
        else:
            cells |= {"output_tokens_per_s_total": speed, "output_tokens": made}
            if depth:
                cells |= {"input_tokens": depth, "scenario": "llama-bench at a depth"}
        points.append(Point(cells=cells, at=number))
        name = f"pp{given:.0f}" if given else f"tg{made:.0f}"
        reading.show(name + (f" @ d{depth:.0f}" if depth else ""), speed, "prompt tokens/s" if given else "tokens/s")
    shown = list(reading.look)
    reading = reading_of(reading, points, asked, stem_of(source))
    reading.look = shown[:80]
    return reading


def _batched(reading: Reading, record: Mapping[str, Any], number: int) -> list[Point]:
    """Speeds of prompts and of answers of a batch; of all its sequences together."""
    given, made, batch, prompts, answers = (
        number_of(record[name]) for name in ("pp", "tg", "pl", "speed_pp", "speed_tg")
    )
    if not given or not made or not batch or not prompts or not answers or min(given, made, batch) < 0:
        reading.skipped.add("no speed, or neither prompt nor answer", number)
        return []
    cells = {"engine": "llama.cpp", "scenario": "static batch", "concurrency": batch, "input_tokens": given}
    reading.show(f"{batch:.0f} at once: pp{given:.0f}", prompts, "prompt tokens/s")
    reading.show(f"{batch:.0f} at once: tg{made:.0f}", answers, "tokens/s")
    return [Point(cells=cells | {"prefill_tokens_per_s": prompts}, at=number),
            Point(cells=cells | {"output_tokens": made, "output_tokens_per_s_total": answers}, at=number)]  # fmt: skip


def _points_below(value: Any, above: Mapping[str, Any], depth: int = 0) -> Iterator[dict[str, Any]]:
    """Records of a document that hold measured figures, each with the plain values that stand above it."""
    if depth > _DEEP:
        return
    if isinstance(value, list):
        for each in value[:100_000]:
            if isinstance(each, dict | list):
                yield from _points_below(each, above, depth + 1)
        return
    if not isinstance(value, dict):
        return
    own = {key: each for key, each in value.items() if not isinstance(each, dict | list)}
    opened = {**above, **own}
    for key, part in value.items():
        for below, each in flat(part, 2).items() if isinstance(part, dict) else ():
            if not isinstance(each, list | dict):
                opened[f"{key}.{below}"] = each
    if measured(point_of(own, default_ms=1e3)):
        yield {**above, **own}
        return
    for part in value.values():
        if isinstance(part, dict | list):
            yield from _points_below(part, opened, depth + 1)


def recognise_points(source: Source) -> Match:
    """A table or records with a model or device, a load, and throughputs or latencies."""
    names, _ = header_of(source)
    if tables := _ruled(source):
        return max((_by_names(each, 0.8) for each in tables), key=lambda match: match.score)
    if names:
        return _by_names(names, 0.8)
    whole = head_document(source)
    if isinstance(whole, dict):
        found = next(_points_below(whole, {}), None)
        return _by_names(list(found), 0.7) if found else NOTHING
    records = records_of(source)
    return (
        _by_names(list(dict.fromkeys(name for record in records[:20] for name in record)), 0.8) if records else NOTHING
    )


def _ruled(source: Source) -> list[list[str]]:
    """Names of the tables in Markdown: cells between bars above a rule of dashes, of each table in the head."""
    return [
        [cell.strip(" *`") for cell in above.strip().strip("|").split("|")]
        for above, below in zip(source.first_lines, source.first_lines[1:])
        if above.lstrip().startswith("|") and re.fullmatch(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*", below[:4000])
    ]


def _ruled_rows(source: Source, skipped: Skips) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Rows of all tables of a file, each by the names above its own rule."""
    names: list[str] = []
    before: tuple[int, list[str]] | None = None  # a row, or the names of the next table
    for number, line in enumerate(chain(source.lines(), [""]), start=1):
        cells = [cell.strip(" *`") for cell in line[:4000].strip().strip("|").split("|")]
        of_table = line.lstrip().startswith("|")
        if of_table and before and all(len(cell) > 1 and set(cell) <= set(":-") for cell in cells):
            names, before = before[1], None
            continue
        if before and len(before[1]) == len(names):
            yield before[0], dict(zip(names, before[1]))
        elif before and names:
            skipped.add("more or fewer cells than columns", before[0])
        before = (number, cells) if of_table and cells != names else None


def _by_names(names: list[str], ceiling: float) -> Match:
    point = point_of(dict.fromkeys(names, 1.0) | {name: "x" for name in names if "model" in name.lower()},
                     default_ms=1.0)  # fmt: skip
    cells = set(point_of(dict.fromkeys(names, "1"), default_ms=1.0).cells)
    timed = measured(point) or any(latency_key(name, 1.0) for name in names) or _bare(names) is not None
    # a latency of an engine at so many clients is of a model, named or not
    of_engine = bool(point.latency_ms) and bool(cells & {"concurrency", "request_rate", "requests_per_s"})
    marks = {
        "a throughput or latency": timed,
        "a model or device": of_engine or bool(cells & {"model", "accelerator"}),
        "a load or lengths": bool(cells & {"concurrency", "request_rate", "input_tokens", "output_tokens"})
        or "test name" in map(str.lower, names),
    }
    return fit(marks, ceiling=ceiling)


def _is_read(name: str) -> bool:
    """Whether a column's name tells what it measures."""
    point = point_of({name: 1.0}, default_ms=1.0)
    return bool(point.latency_ms) or len(point.cells) > 1 or _bare([name]) is not None  # each has a scenario


def _bare(names: list[str]) -> str | None:
    """A column that is called throughput and nothing else: its unit is not said."""
    return next((name for name in names if name.strip().lower() == "throughput"), None)


def read_points(source: Source, asked: Asked) -> Reading:
    """Points of a publisher's own table."""
    reading = Reading(kind="bench-table", title="table of measured points", source=source.name)
    names, separator = header_of(source)
    points = []
    proven = {"latency", "latency_s"} if _bare(names) else set()  # by which a throughput without a unit is proven
    if unread := [name for name in names if _FIGURE.search(name) and not _is_read(name)
                  and name.strip().lower() not in proven]:  # fmt: skip
        reading.note(f"columns of figures that are not read, as their names leave open what they are: "
                     f"{', '.join(unread)[:300]}")  # fmt: skip
    rows = [(number, _units_told(_test_told(row)))
            for number, row in _point_records(source, names, separator, reading.skipped)]  # fmt: skip
    of_ms, said = _in_ms([row for _, row in rows])
    for number, record in rows:
        if of_ms and _bare(list(record)) is None:  # else a latency proves the unit of the throughput
            record = {f"{name} (ms)" if name in of_ms else name: value for name, value in record.items()}
        point = point_of(record, default_ms=1e3, at=number)
        bare = _bare(list(record))
        if bare is not None:
            reason = _with_bare(point, record, bare)
            if reason:
                reading.skipped.add(reason, number)
                continue
        if any(key.strip().lower() in ("batch_size", "batch size") for key in record):
            point.cells["scenario"] = "static batch"
        if "_test" in record:
            point.cells["scenario"] = record["_test"]
        points.append(point)
    if not points and not reading.skipped.count:
        raise refused(source, "nothing-taken", f"no point stands in {source.name}", "is it whole?")
    reading = reading_of(reading, points, asked, stem_of(source))
    reading.understood |= {"latencies without a unit": said} if said else {}
    return reading


def _test_told(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row of vLLM's own tables: what the name of its test tells, and qps beside a throughput, which is what was sent.

    latency_llama8B_tp2 is of one batch, throughput_llama8B_tp1 of all requests at once, serving_llama70B_tp4_qps_16 of
    sixteen requests a second on four devices.
    """
    if "Test name" not in row:
        return row
    test = str(row["Test name"])
    told = {"request_rate" if name == "qps" else name: value for name, value in row.items()}
    for key, pattern in _TOLD.items():
        if (found := pattern.search(test)) and not any(plain(name) in (plain(key), "tpsize") for name in row):
            told.setdefault(key, found.group(1))
    kind = next((kind for begin, kind in _TESTS.items() if test.startswith(begin)), "")
    return told | {"_test": kind} if kind else told


def _units_told(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row whose cells tell units that the names of their columns do not: ttft of 210.3 ms is ttft (ms) of 210.3."""
    if not any(isinstance(cell, str) and _WITH_UNIT.fullmatch(cell) for cell in row.values()):
        return row
    told: dict[str, Any] = {}
    for name, cell in row.items():
        found = _WITH_UNIT.fullmatch(cell) if isinstance(cell, str) else None
        named, again = latency_key(name, 1.0), latency_key(name, 2.0)
        if found and (named != again or _bare([name]) is not None):
            told[f"{name} ({found.group(2)})"] = found.group(1)
        elif found and (named is None or named[2] == (latency_key(f"ttft ({found.group(2)})", 1.0) or named)[2]):
            told[name] = found.group(1)
        else:
            told[name] = cell
    return told


def _in_ms(rows: Sequence[Mapping[str, Any]]) -> tuple[set[str], str]:
    """Columns of latencies whose names tell no unit and whose values are milliseconds, and what is said of that.

    A token takes between a millisecond and a second on any engine, which tells the unit by its size; a first token
    takes no less than another, a whole request as many of them. What is told by nothing is taken as seconds.
    """
    values: dict[str, dict[str, list[float]]] = {"tpot": {}, "itl": {}, "ttft": {}, "e2e": {}}
    for row in rows:
        for name, cell in row.items():
            key, again = latency_key(name, 1.0), latency_key(name, 2.0)
            if key and key != again and key[0] in values and (value := number_of(cell)):
                values[key[0]].setdefault(name, []).append(value)
    middle = {kind: median(chain.from_iterable(told.values())) for kind, told in values.items() if told}
    if not middle:
        return set(), ""
    token = middle.get("tpot", middle.get("itl"))
    made = median([point_of(row, default_ms=1.0).cells.get("output_tokens") or _MADE for row in rows])
    told = token is not None and token >= _LEAST_TOKEN_MS
    of_ms = {
        "tpot": told,
        "ttft": middle.get("ttft", 0.0) >= (_FIRST * token if told and token else _LONG_FIRST),
        "e2e": token is not None and told and middle.get("e2e", 0.0) >= token * made / 2,
    }
    of_ms["itl"] = of_ms["tpot"]
    kinds = {unit: [kind.upper() for kind in middle if of_ms[kind] is (unit == "ms")] for unit in ("ms", "s")}
    said = "; ".join(f"{', '.join(each)} taken as {unit}, by their size" for unit, each in kinds.items() if each)
    return {name for kind in middle if of_ms[kind] for name in values[kind]}, said


def _point_records(
    source: Source, names: list[str], separator: str, skipped: Skips
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if _ruled(source):
        yield from _ruled_rows(source, skipped)
        return
    if names:
        yield from _with_dots(source, list(_cells(source, names, separator, skipped)), separator)
        return
    if isinstance(head_document(source), dict):
        yield from enumerate(_points_below(document_of(source), {}), start=1)
        return
    lines = JsonLines(source)
    yield from lines
    for reason, (count, line) in lines.skipped.reasons.items():
        skipped.add(reason, line, count)


def _with_dots(
    source: Source, rows: list[tuple[int, Mapping[str, Any]]], separator: str
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Rows of a table whose numbers may have a decimal comma, which stands for a dot then."""
    sign = DecimalSign()
    for number, row in rows if separator != "," else ():
        for cell in row.values():
            sign.see(cell, number)
    signs, _ = signs_of(source, {"figures": sign}, separator)
    for number, row in rows:
        if signs["figures"] == ",":
            row = {
                name: cell if (value := number_in(cell, ",")) is None else f"{value:f}" for name, cell in row.items()
            }
        yield number, row


def _with_bare(point: Point, record: Mapping[str, Any], name: str) -> str:
    """Give a throughput without a unit the one that its latency and lengths prove; else why it is not taken."""
    value = number_of(record[name])
    latency = next(
        (number_of(each) for key, each in record.items() if key.strip().lower() in ("latency", "latency_s")), None
    )
    cells = point.cells
    batch, given, made = (cells.get(key) for key in ("concurrency", "input_tokens", "output_tokens"))
    if not value or not latency or not batch or not made:
        return "a throughput without a unit, and nothing that proves one"
    for column, tokens in (("total_tokens_per_s", (given or 0) + made), ("output_tokens_per_s_total", made)):
        if abs(tokens * batch / latency / value - 1) < _CLOSE:
            cells[column] = value
            point.latency_ms.setdefault("e2e", {})["mean"] = latency * 1e3
            return ""
    return "a throughput without a unit, and its latency proves none"


KINDS = (
    Kind(name="bench-llama", title="result of llama-bench",
         looks_for="JSON, CSV or a printed table with n_prompt, n_gen and avg_ts, or test and t/s",
         recognise=recognise_llama_bench, read=read_llama_bench),
    Kind(name="bench-table", title="table of measured points",
         looks_for="rows or records with a model or device, a load or lengths, and throughput or latency",
         recognise=recognise_points, read=read_points),
)  # fmt: skip
