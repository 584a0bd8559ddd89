"""Results of benchmarks that are tables of metrics or nested reports: opened into runs as the flat ones are."""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.reading.benchmarks import Format, Runs, with_clients
from planner.reading.jsonlines import JsonLines, document_of, flat, head_keys
from planner.reading.kinds import NOTHING, Match, Skips, fit
from planner.reading.measured_points import number_of
from planner.reading.requests import separator_of
from planner.reading.source import Source

_DEEP = 6
_MS, _S = 1.0, 1e3
_MOST_BYTES = 20_000_000
_STATISTICS = {"avg", "mean", "median", "min", "max", "std", "sum"}
_LLMS = ("ttft", "tpot", "itl", "response_time")


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of each row of a table, those of no cell too."""
    text = source.text(_MOST_BYTES).lstrip("\ufeff")
    reader = csv.reader(text.splitlines(keepends=True), delimiter=separator_of(text.split("\n", 1)[0]))
    while True:
        begin = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error:
            continue
        if cells is None:
            return
        yield begin, [cell.strip() for cell in cells]


def _whole(rows: list[tuple[int, list[str]]], names: list[str], skipped: Skips) -> Iterator[tuple[int, list[str]]]:
    """Rows with a cell for each column; those of no cell are none, others are counted."""
    for number, cells in rows:
        if len(cells) == len(names) and any(cells):
            yield number, cells
        elif any(cells):
            skipped.add("more or fewer cells than columns", number)


# genai-perf, aiperf as tables: a metric a row, its statistics in columns


def _drawn(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Rows of a table that is drawn on a terminal; a name that is broken over lines is put together."""
    row: list[str] = []
    begin = 0
    for number, line in enumerate(source.lines(), start=1):
        cells = [cell.strip() for cell in re.split(r"[┃│]", line[:4000])[1:-1]]
        if row and len(cells) == len(row) and not any(cells[1:]):
            row[0] = f"{row[0]} {cells[0]}"
            continue
        if row:
            yield begin, row
        row, begin = cells, number
    if row:
        yield begin, row


def _recognise_metrics(source: Source) -> Match:
    if not source.is_text:
        return NOTHING
    lines = [line.lstrip("\ufeff").lower() for line in source.first_lines if line.strip()]
    drawn = next((line for line in lines if re.search(r"[┃│]\s*(?:statistic|metric)\s*[┃│]", line)), "")
    names = re.split(r"[,;\t┃│]", (drawn or next(iter(lines), "")).replace("statistic", "metric"))
    said = {name.strip().strip('"') for name in names}
    latency = re.search(r"(?i)request latency|time to first token", source.head_text)
    return fit({"a column Metric": "metric" in said, "statistics in columns": bool(said & _STATISTICS),
                "a latency of requests": latency is not None}, tool="aiperf or genai-perf", ceiling=0.95)  # fmt: skip


def _metrics_runs(source: Source, skipped: Skips) -> Runs:
    names: list[str] = []
    run: dict[str, Any] = {}
    drawn = re.search(r"[┃│]", source.head_text)
    for number, cells in _drawn(source) if drawn else _rows(source):
        if not any(cells):
            continue
        if cells[0].lower() in ("metric", "statistic"):
            names = [cell.lower() for cell in cells]
            continue
        if re.match(r"(?i)gpu|gpu_index|endpoint$", cells[0]):  # samples of devices follow in a table of their own
            break
        for name, cell in zip(names[1:], cells[1:]):
            if name in ("value", "avg", "mean") and (column := _count(cells[0])):
                run.setdefault(column, cell)
            else:
                metric, _, unit = cells[0].partition("(")
                run.setdefault(f"{metric.strip()} {'mean' if name == 'value' else name} {unit.strip(') ')}", cell)
        if len(cells) > len(names):
            skipped.add("more or fewer cells than columns", number)
    if run:
        yield 1, with_clients(run), _MS


def _count(metric: str) -> str:
    """The key of a metric that is no latency, by its words without a unit; "" for others."""
    words = re.sub(r"\s*\(.*", "", metric).strip().lower()
    return {
        "output token throughput": "output_token_throughput", "total token throughput": "total_token_throughput",
        "request throughput": "request_throughput", "request count": "request_count", "concurrency": "",
        "error request count": "failed_requests", "input sequence length": "input_tokens",
        "output sequence length": "output_tokens",
    }.get(words, "")  # fmt: skip


# GuideLLM as a table: a benchmark a row, under one line of names or three

_GUIDE = {
    "requests per second": "requests_per_second", "request concurrency": "concurrency",
    "prompt token count": "input_tokens", "output token count": "output_tokens",
    "output tokens per second": "output_tokens_per_second", "tokens per second": "total_tokens_per_sec",
    "server throughput requests/sec": "requests_per_second", "server throughput concurrency": "concurrency",
    "token metrics input tokens": "input_tokens", "token metrics output tokens": "output_tokens",
    "token throughput output tokens/sec": "output_tokens_per_second",
    "token throughput total tokens/sec": "total_tokens_per_sec",
}  # fmt: skip
_MARKS = ("min", "p0.1", "p1", "p5", "p10", "p25", "p75", "p90", "p95", "p99", "max")


def _recognise_guide(source: Source) -> Match:
    if not source.is_text:
        return NOTHING
    head = source.head_text
    marks = {
        "its runs": re.search(r"(?i)\brun id\b", head) is not None,
        "successful requests": re.search(r"(?i)\bsuccessful requests?\b|\brequest counts\b", head) is not None,
        "latencies": re.search(r"(?i)time to first token|request latency", head) is not None,
        "a table": "," in next(iter(source.first_lines), "") and head.lstrip()[:1] not in ("{", "["),
    }
    return fit(marks, tool="GuideLLM", ceiling=0.96)


def _guide_runs(source: Source, skipped: Skips) -> Runs:
    rows = list(_rows(source))
    deep = 3 if rows and "run info" in (cell.lower() for cell in rows[0][1]) else 1
    names = [" ".join(part for part in parts if part) for parts in zip(*(cells for _, cells in rows[:deep]))]
    for number, cells in _whole(rows[deep:], names, skipped):
        run: dict[str, Any] = {}
        for name, cell in zip(names, cells):
            run.update(_guide_cell(name, cell))
        load = next((cell for name, cell in zip(names, cells) if name in ("Name", "Benchmark Strategy")), "")
        rate = re.search(r"(?:constant|poisson|async)@([\d.]+)", load)
        streams = re.search(r"(?:concurrent|sync)@(\d+)", load)
        if rate:
            run["request_rate"] = rate.group(1)
        elif streams or load == "synchronous":
            run["concurrency"] = streams.group(1) if streams else 1
        elif load in ("constant", "poisson", "async"):
            run["request_rate"] = run.get("requests_per_second")  # the rate that was kept up, where no other is told
        yield number, run, _MS


def _guide_cell(name: str, cell: str) -> dict[str, Any]:
    """Figures of a cell of successful requests, by the names that points know."""
    words = re.sub(r"\s+", " ", name.lower())
    metric = re.sub(r"\bsuccessful ", "", words)
    if metric == words:
        return {}
    stem = re.sub(r" (mean|median|std dev|percentiles|\[min.*)$", "", metric)
    if stem in _GUIDE:
        return {_GUIDE[stem]: cell} if metric.endswith(" mean") else {}
    if not re.match(r"time to first|inter|request latency", stem):
        return {"completed": cell} if stem == "requests" else {}
    unit = "" if re.search(r"\b(ms|sec)\b", stem) else " sec"
    if metric.endswith((" mean", " median")):
        return {f"{metric}{unit}": cell}
    try:
        values = ast.literal_eval(cell) if cell.startswith("[") and metric != stem else []
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        values = []
    return {f"{stem} {mark}{unit}": value for mark, value in zip(_MARKS, values)} if len(values) == len(_MARKS) else {}


# GuideLLM before 0.2: no figures, but every request

_TOLD = {"output_token_count", "start_time", "end_time", "first_token_time", "decode_times"}


def _recognise_first_guide(source: Source) -> Match:
    keys = head_keys(source)
    return fit({"benchmarks": "benchmarks" in keys, "results": "results" in keys, "mode": "mode" in keys,
                "times of requests": len(keys & _TOLD) > 2}, tool="GuideLLM", version="before 0.2",
               ceiling=0.96)  # fmt: skip


def _first_guide_runs(source: Source, skipped: Skips) -> Runs:
    whole = document_of(source)
    args = whole.get("args") if isinstance(whole, dict) else None
    for number, each in enumerate(_listed(whole.get("benchmarks") if isinstance(whole, dict) else None), start=1):
        listed = each.get("results") if isinstance(each, dict) else None
        rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
        spans = [(begin, end) for row in rows if (begin := number_of(row.get("start_time"))) is not None
                 and (end := number_of(row.get("end_time"))) is not None and end > begin]  # fmt: skip
        if not spans:
            skipped.add("a benchmark without requests that ended", number)
            continue
        seconds = max(end for _, end in spans) - min(begin for begin, _ in spans)
        gaps = [row.get("decode_times") for row in rows]
        between = [value for each in gaps for gap in _listed(each) if (value := number_of(gap)) is not None]
        errors, made = each.get("errors"), _numbers(rows, "output_token_count")
        run: dict[str, Any] = {
            "completed": len(spans), "failed": len(errors) if isinstance(errors, list) else 0,
            "requests_per_second": len(spans) / seconds, "output_tokens_per_second": sum(made) / seconds,
            "input_tokens": _mean(_numbers(rows, "prompt_token_count")), "output_tokens": _mean(made),
        }  # fmt: skip
        times = {"ttft": _numbers(rows, "first_token_time"), "itl": between, "e2e_latency": [b - a for a, b in spans]}
        for name, found in times.items():
            run |= _spread(name, found)
        if each.get("mode") == "synchronous":
            run["concurrency"] = 1
        elif each.get("mode") != "throughput":
            run["request_rate"] = each.get("rate") or run["requests_per_second"]  # kept up, where no other is told
        first = args[0] if isinstance(args, list) and args else args
        run["model"] = first.get("model") if isinstance(first, dict) else None
        yield number, run, _S


def _listed(value: Any) -> list[Any]:
    """Values of a list, or of a record that holds them as data."""
    value = value.get("data") if isinstance(value, dict) else value
    return value if isinstance(value, list) else []


def _numbers(rows: list[dict[str, Any]], name: str) -> list[float]:
    return [value for row in rows if (value := number_of(row.get(name))) is not None]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _spread(name: str, values: list[float]) -> dict[str, float]:
    """Mean and percentiles by the names that points know.  [s]"""
    import numpy as np

    if not values:
        return {}
    marks = {f"{name}_p{mark}_s": float(np.percentile(values, mark)) for mark in (50, 95, 99)}
    return {f"{name}_mean_s": float(np.mean(values)), **marks}


# perf_analyzer: a level of load a row, latencies in microseconds


def _recognise_analyzer(source: Source) -> Match:
    names = {cell.strip().lower() for cell in next(iter(source.first_lines), "").lstrip("\ufeff").split(",")}
    return fit({"Concurrency or Request Rate": bool(names & {"concurrency", "request rate"}),
                "Inferences/Second": "inferences/second" in names, "Client Send": "client send" in names,
                "p99 latency": bool(names & {"p99 latency", "avg latency", "p50 latency"})},
               tool="perf_analyzer", ceiling=0.96)  # fmt: skip


def _analyzer_runs(source: Source, skipped: Skips) -> Runs:
    rows = list(_rows(source))
    names = [name.lower() for _, head in rows[:1] for name in head]
    known = {"concurrency": "concurrency", "request rate": "request_rate", "inferences/second": "requests_per_second"}
    for number, cells in _whole(rows[1:], names, skipped):
        run: dict[str, Any] = {}
        for name, cell in zip(names, cells):
            mark, _, what = name.partition(" ")
            if name in known:
                run[known[name]] = cell
            elif what == "latency":
                run[f"e2e_latency_{mark}_us"] = cell
        yield number, run, _MS


# what perf_analyzer tells of every request, of which genai-perf makes its figures


def _recognise_export(source: Source) -> Match:
    keys = head_keys(source)
    names = ("experiments", "experiment", "requests", "response_timestamps")
    return fit({name: name in keys for name in names}, tool="perf_analyzer", ceiling=0.96)


def _export_runs(source: Source, skipped: Skips) -> Runs:
    whole = document_of(source)
    for number, each in enumerate(_listed(whole.get("experiments") if isinstance(whole, dict) else None), start=1):
        load, listed = (each.get(key) if isinstance(each, dict) else None for key in ("experiment", "requests"))
        told = [(begin, answers) for row in (listed if isinstance(listed, list) else ()) if isinstance(row, dict)
                and (begin := number_of(row.get("timestamp"))) is not None
                and (answers := [at for one in _listed(row.get("response_timestamps"))
                                 if (at := number_of(one)) is not None])]  # fmt: skip
        if not told or not isinstance(load, dict):
            skipped.add("an experiment without requests that were answered", number)
            continue
        seconds = (max(max(answers) for _, answers in told) - min(begin for begin, _ in told)) / 1e9
        run: dict[str, Any] = {"completed": len(told), str(load.get("mode"))[:40]: load.get("value")}
        run |= _spread("e2e_latency", [(max(answers) - begin) / 1e9 for begin, answers in told])
        if any(len(answers) > 1 for _, answers in told):  # a stream: what comes first is the first token
            run |= _spread("ttft", [(min(answers) - begin) / 1e9 for begin, answers in told])
        if seconds > 0:
            run["requests_per_second"] = len(told) / seconds
        yield number, run, _S


# trtllm-bench: engine, world_info, request_info, performance, streaming_metrics


def _recognise_trtllm(source: Source) -> Match:
    keys = head_keys(source)
    names = ("engine", "world_info", "performance", "request_throughput_req_s")
    latency = bool(keys & {"total_latency_ms", "avg_request_latency_ms"})
    found = {name: name in keys for name in names[:3]} | {"throughput or latency": latency or names[3] in keys}
    return fit(found, tool="trtllm-bench", ceiling=0.97)


def _trtllm_runs(source: Source, skipped: Skips) -> Runs:
    whole = document_of(source)
    for number, record in enumerate(whole if isinstance(whole, list) else [whole], start=1):
        if not isinstance(record, dict) or not isinstance(record.get("performance"), dict):
            skipped.add("a report without performance", number)
            continue
        run: dict[str, Any] = {"engine": "tensorrt-llm", "scenario": "offline"}
        for part in ("engine", "world_info", "request_info", "performance", "streaming_metrics"):
            for key, value in flat(record[part], 2).items() if isinstance(record.get(part), dict) else ():
                if key in ("backend", "model_path"):
                    continue
                above, _, mark = key.rpartition(".")
                stem = re.sub(r"_percentiles(_ms)?$", "", above)
                run[f"{stem}_{mark}_ms" if stem != above else key] = value
        run["completed"] = run.pop("num_requests", None)
        yield number, run, _MS


# SGLang without a server, or one batch at a time


def _recognise_batches(source: Source) -> Match:
    keys = head_keys(source)
    batch = {"batch_size", "input_len", "output_len", "overall_throughput"}
    offline = {"successful_requests", "total_latency", "last_gen_throughput", "total_throughput"}
    names = batch if len(keys & batch) >= len(keys & offline) else offline
    tool = "SGLang bench_one_batch" if names is batch else "SGLang bench_offline_throughput"
    return fit({name: name in keys for name in sorted(names)}, tool=tool, ceiling=0.96)


def _batch_runs(source: Source, skipped: Skips) -> Runs:
    lines = JsonLines(source)
    for number, record in lines:
        if "successful_requests" in record:
            yield number, record | {"scenario": "offline", "engine": "sglang"}, _S
            continue
        batch, made = number_of(record.get("batch_size")), number_of(record.get("output_len"))
        seconds = number_of(record.get("total_latency", record.get("latency")))
        run = {name: record.get(name) for name in ("batch_size", "input_len", "output_len")}
        run |= {"scenario": "static batch", "engine": "sglang", "e2e_latency_mean_s": seconds}
        run["ttft_mean_s"] = record.get("prefill_latency", record.get("ttft", record.get("last_ttft")))
        run["tpot_median_s"] = record.get("median_decode_latency")
        if batch and made and seconds:
            run["output_throughput"] = batch * made / seconds  # its own figure may leave out the prompt
        run["total_throughput"] = record.get("overall_throughput")
        yield number, run, _S
    for reason, (count, line) in lines.skipped.reasons.items():
        skipped.add(reason, line, count)


# one record a metric, as vLLM and SGLang give them to PyTorch's collection


def _recognise_records(source: Source) -> Match:
    names = ("benchmark", "metric", "benchmark_values")
    keys = head_keys(source)
    return fit({name: name in keys for name in names}, tool="PyTorch's records of benchmarks", ceiling=0.95)


def _record_runs(source: Source, skipped: Skips) -> Runs:
    runs: dict[str, dict[str, Any]] = {}
    lines = JsonLines(source)
    for number, record in lines:
        metric, told = record.get("metric"), flat({"benchmark": record.get("benchmark")}, _DEEP)
        values = metric.get("benchmark_values") if isinstance(metric, dict) else None
        numbers = (
            [value for each in values if (value := number_of(each)) is not None] if isinstance(values, list) else []
        )
        if not numbers or not isinstance(metric, dict):
            skipped.add("a metric without values", number)
            continue
        given = {key.rsplit(".", 1)[-1]: value for key, value in told.items() if ".args." in key}
        run = runs.setdefault(repr(sorted(map(repr, given.items()))), dict(given))
        model = record.get("model")
        run.setdefault("model", model.get("name") if isinstance(model, dict) else None)
        run[str(metric.get("name"))] = sum(numbers) / len(numbers)
        name = str(metric.get("name"))
        if name == "tokens_per_second":
            run["total_tokens_per_sec"] = run.pop(name)
    for reason, (count, line) in lines.skipped.reasons.items():
        skipped.add(reason, line, count)
    yield from ((place, run, _S) for place, run in enumerate(runs.values(), start=1))


# what vLLM prints without a server

_SPEED = re.compile(r"Throughput: ([\d.]+) requests/s, ([\d.]+) (?:total )?tokens/s(?:, ([\d.]+) output tokens/s)?")
_WHOLE = re.compile(r"(?:Avg latency: ([\d.]+)|(\d+)% percentile latency: ([\d.]+)) seconds")


def _recognise_lines(source: Source) -> Match:
    if not source.is_text:
        return NOTHING
    found = bool(_SPEED.search(source.head_text) or re.search(r"Avg latency: [\d.]+ seconds", source.head_text))
    return fit({"a line Throughput: or Avg latency:": found}, tool="vLLM bench, printed", ceiling=0.9)


def _line_runs(source: Source, skipped: Skips) -> Runs:
    run: dict[str, Any] = {}
    begun = 1
    for number, line in enumerate(source.lines(), start=1):
        speed, whole = _SPEED.search(line[:2000]), _WHOLE.search(line[:2000])
        if run and (speed or (whole and whole.group(1))):
            yield begun, run, _S
            run = {}
        if speed:
            begun, names = number, ("requests_per_second", "total_tokens_per_sec", "output_throughput")
            run = dict(zip(names, speed.groups())) | {"scenario": "offline"}
        elif whole and whole.group(1):
            begun, run = number, {"e2e_latency_mean_s": whole.group(1), "scenario": "static batch"}
        elif whole and run:
            run[f"e2e_latency_p{whole.group(2)}_s"] = whole.group(3)
    if run:
        yield begun, run, _S


# EvalScope, llm-load-test


def _recognise_summaries(source: Source) -> Match:
    keys = head_keys(source)
    own = {"Number of concurrency", "Total requests", "Average time to first token (s)"}
    loads = {"summary", "response_time", "ttft", "percentile_99", "req_completed_within_test_duration"}
    names, tool = (own, "EvalScope perf") if len(keys & own) > 1 else (loads, "llm-load-test")
    return fit({name: name in keys for name in sorted(names)}, tool=tool, ceiling=0.98)


def _summary_runs(source: Source, skipped: Skips) -> Runs:
    whole = document_of(source)
    for number, record in enumerate(whole if isinstance(whole, list) else [whole], start=1):
        if not isinstance(record, dict):
            skipped.add("JSON, but no record", number)
            continue
        told, config = record.get("summary"), record.get("config")
        if not isinstance(told, dict):
            yield number, record, _S
            continue
        run: dict[str, Any] = {}
        for name, each in told.items():
            if isinstance(each, Mapping) and name in _LLMS:
                run |= {f"{name} {stat} ms": value for stat, value in each.items()}
        for name in ("input_tokens", "output_tokens"):
            run[name] = each.get("mean") if isinstance(each := told.get(name), dict) else None
        run["completed"], run["failed"] = told.get("total_requests"), told.get("total_failures")
        run["output_throughput"] = told.get("throughput")
        for key, value in flat(config, _DEEP).items() if isinstance(config, dict) else ():
            if key.endswith(("concurrency", "model_name")) and not isinstance(value, list):
                run[key] = value
        yield number, run, _MS


# the summary that LoadGen of MLPerf Inference prints

_LOADGEN = re.compile(r"(?m)^(?:Scenario|Mode) *: |^MLPerf Results Summary *$")
_NANOSECONDS = re.compile(r"(?i)^(mean|[0-9.]+)(?:th)?(?: percentile)? (.+?) *\(ns\) *: *([0-9]+) *$")
_OF_LOADGEN = {"latency": "e2e_latency", "first token latency": "ttft", "time to output token": "tpot"}


def _recognise_loadgen(source: Source) -> Match:
    """What stands above its figures."""
    there = len({found.split(":")[0].strip() for found in _LOADGEN.findall(source.head_text)}) if source.is_text else 0
    return Match(score=0.95 if there == 3 else 0.05, tool="MLPerf LoadGen", missing=("MLPerf Results Summary",))


def _loadgen_runs(source: Source, skipped: Skips) -> Runs:
    run: dict[str, Any] = {}
    said: dict[str, str] = {}
    for line in source.lines():
        name, _, value = (part.strip() for part in line[:400].partition(":"))
        said.setdefault(name.lower(), value)
        if found := _NANOSECONDS.match(line[:400].strip()):
            stat, what, nanoseconds = found.groups()
            if what.lower() in _OF_LOADGEN:
                stat = "mean" if stat.lower() == "mean" else f"p{float(stat):g}"
                run[f"{_OF_LOADGEN[what.lower()]}_{stat}_s"] = int(nanoseconds) / 1e9
    for column, words in (
        ("requests_per_second", "samples per second"),
        ("output_tokens_per_second", "tokens per second"),
    ):
        run[column] = said.get(f"completed {words}", said.get(words))
    if said.get("scenario") == "Offline":
        run["scenario"] = "offline"
    elif said.get("scenario") == "Server":
        run["request_rate"] = said.get("target_qps")
    if not str(said.get("result is", "")).startswith("VALID"):
        skipped.add(f"a result that is {said.get('result is', 'told no end')[:40]}", 1)
        return
    yield 1, run, _S


KINDS = tuple(
    each.kind()
    for each in (
        Format(name="bench-metrics", title="metrics of aiperf or genai-perf as a table",
               looks_for="CSV with a column Metric and statistics of latencies beside it",
               recognise=_recognise_metrics, runs=_metrics_runs),
        Format(name="bench-guidellm-table", title="report of GuideLLM as a table",
               looks_for="CSV with Run Id, successful requests and latencies", recognise=_recognise_guide,
               runs=_guide_runs),
        Format(name="bench-guidellm-requests", title="report of GuideLLM before 0.2",
               looks_for="JSON with benchmarks, mode and results of requests with their times",
               recognise=_recognise_first_guide, runs=_first_guide_runs),
        Format(name="bench-perf-analyzer", title="table of perf_analyzer",
               looks_for="CSV with Concurrency, Inferences/Second and latencies", recognise=_recognise_analyzer,
               runs=_analyzer_runs),
        Format(name="bench-perf-export", title="requests of perf_analyzer",
               looks_for="JSON with experiments, requests and response_timestamps", recognise=_recognise_export,
               runs=_export_runs),
        Format(name="bench-trtllm", title="report of trtllm-bench",
               looks_for="JSON with engine, world_info and performance", recognise=_recognise_trtllm,
               runs=_trtllm_runs),
        Format(name="bench-batches", title="batches of SGLang",
               looks_for="JSON lines with batch_size and overall_throughput, or total_latency and total_throughput",
               recognise=_recognise_batches, runs=_batch_runs),
        Format(name="bench-records", title="records of a benchmark, one a metric",
               looks_for="JSON with benchmark, metric and benchmark_values", recognise=_recognise_records,
               runs=_record_runs),
        Format(name="bench-lines", title="printed throughput or latency of vLLM",
               looks_for="a line such as Throughput: 2 requests/s, 900 total tokens/s, or Avg latency: 1.5 seconds",
               recognise=_recognise_lines, runs=_line_runs),
        Format(name="bench-loadgen", title="summary of MLPerf Inference",
               looks_for="what LoadGen prints: MLPerf Results Summary, Scenario, Mode and latencies in ns",
               recognise=_recognise_loadgen, runs=_loadgen_runs),
        Format(name="bench-summary", title="summary of EvalScope or llm-load-test",
               looks_for="JSON with Number of concurrency and averages, or summary and response_time",
               recognise=_recognise_summaries, runs=_summary_runs),
    )
)  # fmt: skip
