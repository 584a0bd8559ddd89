"""Results of serving benchmarks: each tool's file opened into runs, whose figures are then read by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import PurePath
from typing import Any

from planner.carriers import dataclass
from planner.reading.jsonlines import JsonLines, document_of, documents_of, flat, head_document, head_keys, records_of
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading, Skips, fit
from planner.reading.measured_points import number_of, point_of, reading_of
from planner.reading.source import Source, refused
from planner.yamlfile import parse_yaml

_DEEP = 6
_MS, _S = 1.0, 1e3
_BUSY = "clients at once are those that were busy on average"

Runs = Iterator[tuple[int, Mapping[str, Any], float]]  # place, figures by name, ms in the unit of unnamed times


def stem_of(source: Source) -> str:
    """The name of what is read, for the rows that follow."""
    name = PurePath(str(source.paths[0])).name.split(".")[0]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:60] or "read"


def _records(source: Source, skipped: Skips) -> Iterator[tuple[int, dict[str, Any]]]:
    """Runs of one JSON object, of a list, or one a line."""
    if _one_document(source):
        wholes = documents_of(source, skipped)
        rows = [row for whole in wholes for row in (whole if isinstance(whole, list) else [whole])]
        for number, row in enumerate(rows, start=1):
            if isinstance(row, dict):
                yield number, row
            else:
                skipped.add("JSON, but no record", number)
        return
    lines = JsonLines(source)
    yield from lines
    for reason, (count, line) in lines.skipped.reasons.items():
        skipped.add(reason, line, count)


def _one_document(source: Source) -> bool:
    first = next((line for line in source.first_lines if line.strip()), "")
    return source.head_text.lstrip()[:1] in ("{", "[") and (
        head_document(source) is not None or not first.rstrip().endswith("}")
    )


# vLLM, SGLang, InferenceX: one flat object a run

_LATENCY = re.compile(r"(?:mean|median|p\d+)_(?:ttft|tpot|itl|e2el)(_ms)?$")


def recognise_vllm(source: Source) -> Match:
    """Flat objects with throughputs and latencies of a run."""
    keys = head_keys(source)
    marks = {
        "request_throughput": "request_throughput" in keys,
        "output_throughput": "output_throughput" in keys,
        "duration": "duration" in keys,
        "completed": bool(keys & {"completed", "num_prompts"}),
        "latencies as mean_ttft_ms": any(_LATENCY.match(key) for key in keys)
        or {"ttfts", "itls"} <= keys or "input_lens" in keys,
    }  # fmt: skip
    tool = "SGLang bench_serving" if {"server_info", "total_output_tokens_retokenized"} & keys else "vLLM bench serve"
    if any(key in keys for key in ("median_ttft", "p99_ttft")) and not tool.startswith("SGLang"):
        tool = "InferenceX"
    if {"elapsed_time", "requests_per_second", "tokens_per_second"} <= keys:
        return Match(score=0.9, tool="vLLM bench throughput")
    if {"avg_latency", "percentiles"} <= keys:
        return Match(score=0.9, tool="vLLM bench latency")
    return fit(marks, tool=tool, ceiling=0.95)


def _vllm_runs(source: Source, skipped: Skips) -> Runs:
    for number, record in _records(source, skipped):
        info = record.get("server_info")
        opened = dict(record)
        if record.get("ramp_up_strategy"):
            skipped.add("its load rises while it runs: the figures are of no one rate", number)
            continue
        if isinstance(info, dict):
            inner = info.get("internal_states")
            first = inner[0] if isinstance(inner, list) and inner and isinstance(inner[0], dict) else {}
            for key in ("model_path", "tp_size", "pp_size", "dp_size", "ep_size", "version", "quantization"):
                value = info.get(key, first.get(key))
                if value is not None:
                    opened.setdefault(key, value)
            tp, dp = number_of(info.get("tp_size")), number_of(info.get("dp_size"))
            if info.get("enable_dp_attention") is True and tp and dp:  # these ranks are counted among those of tensors
                opened["tp_size"] = max(tp // dp, 1)
            if info.get("disaggregation_mode") in ("prefill", "decode"):  # of one pool, and the run was of both
                opened = {key: value for key, value in opened.items() if not key.endswith("p_size")}
        if {"max_concurrency", "total_output_tokens_retokenized"} & set(record):
            opened.pop("concurrency", None)  # requests under way on average: measured, not set
        opened.update(_of_arrays(record))
        if {"elapsed_time", "tokens_per_second"} <= set(record):
            opened["total_tokens_per_sec"] = opened.pop("tokens_per_second")
            opened["scenario"] = "offline"
        elif {"avg_latency", "percentiles"} <= set(record):
            opened = {"e2e_latency_mean_s": record["avg_latency"], "scenario": "static batch"}
            marks = record.get("percentiles")
            for mark, value in marks.items() if isinstance(marks, dict) else ():
                opened[f"e2e_latency_p{mark}_s"] = value
        # latencies without a unit in their name are seconds (InferenceX), and of SGLang before 0.4 milliseconds; vLLM's
        # own names end in _ms
        yield number, opened, _MS if "total_output_tokens_retokenized" in record else _S


def _of_arrays(record: Mapping[str, Any]) -> dict[str, float]:
    """Means and percentiles of the arrays of single requests, where a result has no summary of them.  [s]"""
    import numpy as np

    found: dict[str, float] = {}
    if any(key.endswith("_ttft_ms") for key in record):
        return found
    arrays = {name: record.get(name) for name in ("ttfts", "itls", "input_lens", "output_lens")}
    values = {
        name: np.array([v for v in each if isinstance(v, int | float)], dtype=np.float64)
        for name, each in arrays.items() if isinstance(each, list)
    }  # fmt: skip
    errors = record.get("errors")
    well = [not each for each in errors] if isinstance(errors, list) else []
    if "ttfts" in values and values["ttfts"].size:
        ttfts = values["ttfts"]
        if len(well) == ttfts.size and any(well):
            ttfts = ttfts[np.array(well)]
        found |= {"mean_ttft_s": float(ttfts.mean()), "median_ttft_s": float(np.median(ttfts)),
                  "p99_ttft_s": float(np.percentile(ttfts, 99))}  # fmt: skip
    gaps = record.get("itls")
    if isinstance(gaps, list):
        means = [sum(each) / len(each) for each in gaps if isinstance(each, list) and each
                 and all(isinstance(v, int | float) for v in each)]  # fmt: skip
        if means:
            found |= {"mean_tpot_s": float(np.mean(means)), "median_tpot_s": float(np.median(means)),
                      "p99_tpot_s": float(np.percentile(means, 99))}  # fmt: skip
    return found


# the same, as printed

_CONSOLES = (
    (re.compile(r"={3} *(?:Serving|Offline Throughput) Benchmark Result *={3}"), "vLLM or SGLang, printed"),
    (re.compile(r"= PERFORMANCE OVERVIEW"), "trtllm-bench"),
    (re.compile(r"TOKEN-LEVEL METRICS"), "perf_analyzer, printed"),
    (re.compile(r"Benchmarks Stats:"), "GuideLLM, printed"),
)
_PAIR = re.compile(r"^\s*([A-Za-z][^:\n]{2,70}?)\s*:\s*([-+]?[0-9][0-9.,eE+-]*|inf|N/A)\s*([A-Za-z/%]*)\s*$")
_LOAD = re.compile(r"^\s*(?:Request concurrency|Concurrency): (\d+)\s*$")
_TOLD = re.compile(r"^(Model|Quantization|Dtype|KV Cache Dtype):\s+(\S+)\s*$")  # of trtllm-bench, above its figures


def recognise_console(source: Source) -> Match:
    """A result as it is printed on a terminal."""
    if not source.is_text:
        return NOTHING
    for pattern, tool in _CONSOLES:
        if pattern.search(source.head_text):
            return Match(score=0.95, found=("the heading of the result",), tool=tool)
    return Match(score=0.05, missing=("a heading such as Serving Benchmark Result",))


def _console_runs(source: Source, skipped: Skips) -> Runs:
    run: dict[str, Any] = {}
    before: dict[str, Any] = {}  # what is printed between two results: of the next
    begun, section, own = 0, "", 0
    for number, line in enumerate(source.lines(), start=1):
        line = re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip()[:400]
        heading = re.match(r"^(Time to First Token|Inter-Token Latency)", line)
        if re.search(r"Benchmark Result *=|PERFORMANCE OVERVIEW|TOKEN-LEVEL METRICS", line):
            if begun and len(run) > 3:
                yield begun, run, _MS
            run, before, begun, section, own = before, {}, number, "", 0
            if "PERFORMANCE OVERVIEW" in line:  # every request is there from the beginning
                run["scenario"] = "offline"
        elif begun and own > 3 and re.fullmatch(r"={20,}", line):
            yield begun, run, _MS
            run, begun, own = {}, 0, 0
        elif heading:
            section = heading.group(1)
        said = _LOAD.match(line)
        if said and not begun:
            before["concurrency"] = said.group(1)
        table = re.match(r"^\s*[\w@.-]+\s*\|(.*\|.*)$", line)
        if table and "Benchmark" not in line and line.count("|") >= 12:
            yield from _guidellm_row(line, number)
        pair = _PAIR.match(line)
        if pair and pair.group(1) == "Concurrency" and "Total generated tokens (retokenized)" in run:
            continue  # SGLang: requests under way on average, not those that were set
        told = _TOLD.match(line) if not begun else None
        if told and told.group(2) != "None":
            before[told.group(1)] = told.group(2)
        if pair:
            name, value, unit = pair.groups()
            if section and re.fullmatch(r"(?i)avg|mean|p\d+|min|max|std", name):
                name = f"{section} {name}"
            own += 1
            (run if begun else before).setdefault(
                f"{name} {unit}".strip() if unit in ("ms", "s", "us") else name, value
            )
    if begun and len(run) > 3:
        yield begun, run, _MS


def _guidellm_row(line: str, number: int) -> Runs:
    cells = [number_of(cell.strip()) for cell in line.split("|")]
    if len(cells) < 17 or any(cell is None for cell in cells[1:17]):
        return
    names = ("requests_per_second", "concurrency", "output_tokens_per_second", "total_tokens_per_sec",
             "e2e_latency_mean_s", "e2e_latency_median_s", "e2e_latency_p99_s", "ttft_mean_ms", "ttft_median_ms",
             "ttft_p99_ms", "itl_mean_ms", "itl_median_ms", "itl_p99_ms")  # fmt: skip
    yield number, dict(zip(names, cells[1:14])), _MS


# GuideLLM


def recognise_guidellm(source: Source) -> Match:
    """A report with benchmarks and metrics of successful requests."""
    keys = head_keys(source) | set(re.findall(r"^[ \t]{0,60}(?:- )?([a-z_]{1,60}):", source.head_text, re.M))
    names = {"benchmarks", "metrics", "successful"} | ({"request_latency"} if source.whole else set())
    return fit({name: name in keys for name in names}, tool="GuideLLM", ceiling=0.97)


def _guidellm_runs(source: Source, skipped: Skips) -> Runs:
    whole = _json_or_yaml(source)
    benchmarks = whole.get("benchmarks") if isinstance(whole, dict) else None
    for number, each in enumerate(benchmarks if isinstance(benchmarks, list) else [], start=1):
        metrics = each.get("metrics") if isinstance(each, dict) else None
        if not isinstance(metrics, dict):
            skipped.add("a benchmark without metrics", number)
            continue
        run: dict[str, Any] = {}
        for name, parts in metrics.items():
            good = parts.get("successful") if isinstance(parts, dict) else None
            if not isinstance(good, dict):
                continue
            known = {"prompt_token_count": "input_tokens", "output_token_count": "output_tokens",
                     "requests_per_second": "requests_per_second", "tokens_per_second": "total_tokens_per_sec",
                     "output_tokens_per_second": "output_tokens_per_second",
                     "request_concurrency": "concurrency"}  # fmt: skip
            if name in known:
                run[known[name]] = good.get("mean")
            elif name.startswith("time_per_output") and "inter_token_latency_ms" in metrics:
                continue  # over every token, the first among them; the other is over those behind it
            elif name.startswith(("time_", "inter_", "request_latency")):
                unit = "" if name.endswith("_ms") else "_s"
                marks = good.get("percentiles")
                for stat in ("mean", "median"):
                    run[f"{name}_{stat}{unit}"] = good.get(stat)
                for mark, value in marks.items() if isinstance(marks, dict) else ():
                    run[f"{name}_{mark}{unit}"] = value
        run |= _guidellm_load(each)
        opened = flat(
            {"report": whole | {"benchmarks": None}, "own": each | {"metrics": None, "requests": None}}, _DEEP
        )
        names = (
            value for key, value in opened.items() if key.endswith(("backend_model", "backend.model", "args.model"))
        )
        run["model"] = next((name for name in names if isinstance(name, str)), None)
        yield number, run, _MS


def _guidellm_load(benchmark: Mapping[str, Any]) -> dict[str, Any]:
    """How requests were sent, which versions tell below different keys; nothing where none does."""
    parts = (benchmark.get(key) for key in ("config", "args", "scheduler"))
    strategy = next((part["strategy"] for part in parts if isinstance(part, dict) and "strategy" in part), None)
    if not isinstance(strategy, dict):
        return {}
    if strategy.get("type_") == "synchronous":
        return {"concurrency": 1}
    said = {"concurrency": strategy.get("streams"), "request_rate": strategy.get("rate")}
    return {name: value for name, value in said.items() if number_of(value)}


def _json_or_yaml(source: Source) -> Any:
    if source.head_text.lstrip()[:1] in ("{", "["):
        return document_of(source)
    return parse_yaml(source.text(20_000_000), source.name).data


# aiperf, genai-perf: {metric: {unit, avg, p50, ...}}


def recognise_aiperf(source: Source) -> Match:
    """Metrics with a unit and statistics each, or records of requests with metrics."""
    keys, first = head_keys(source), _first_keys(source)
    if {"metadata", "metrics"} <= first and "request_start_ns" in keys:
        return Match(score=0.97, found=("records of requests",), tool="aiperf")
    if {"telemetry_data", "gpu_uuid"} <= first:
        return Match(score=0.97, found=("samples of devices",), tool="aiperf")
    names = ("unit", "avg", "request_latency", "request_throughput")
    return fit({name: name in keys for name in names}, tool="aiperf or genai-perf", ceiling=0.93)


def _first_keys(source: Source) -> set[str]:
    records = records_of(source)
    return set(records[0]) if records else set()


def _aiperf_runs(source: Source, skipped: Skips) -> Runs:
    for number, record in _records(source, skipped):
        run: dict[str, Any] = {}
        if isinstance(record.get("records"), dict):  # a level more in the first versions of aiperf
            record = {**record, **record["records"]}
        config = record.get("input_config")
        if isinstance(config, dict):
            opened = flat(config, _DEEP)
            names = next((value for key, value in opened.items() if key.endswith(("model_names", "model"))), None)
            run["model"] = names[0] if isinstance(names, list) and names else names
            for end in ("concurrency", "request_rate"):
                run[end] = next((v for k, v in opened.items() if k.rsplit(".", 1)[-1] == end and number_of(v)), None)
        for name, each in record.items():
            if isinstance(each, dict) and isinstance(each.get("unit"), str):
                unit = each["unit"]
                for stat, value in each.items():
                    if stat != "unit":
                        suffix = f"_{unit}" if unit in ("ms", "s", "sec", "us", "ns") else ""
                        only = name if stat == "avg" and not suffix else f"{name}_{stat}{suffix}"
                        run[only] = value
        for name, column in (("input_sequence_length", "input_tokens"), ("output_sequence_length", "output_tokens")):
            if name in run:
                run[column] = run[name]
        yield number, with_clients(run), _MS


def with_clients(run: dict[str, Any]) -> dict[str, Any]:
    """A run whose file says nothing of its load: clients at once are those that were busy on average."""
    point = point_of(run, default_ms=_MS)
    each_ms, rate = point.latency_ms.get("e2e", {}).get("mean"), point.cells.get("requests_per_s")
    if each_ms and rate and not point.cells.get("concurrency") and not point.cells.get("request_rate"):
        run["concurrency"] = max(round(rate * each_ms / 1e3), 1)
        run[_BUSY] = True
    return run


def read_aiperf(source: Source, asked: Asked) -> Reading:
    """A summary, single requests (taken together as one point), or samples of devices."""
    keys = _first_keys(source)
    if {"telemetry_data", "gpu_uuid"} <= keys:
        return _telemetry(source)
    if {"metadata", "metrics"} <= keys:
        return _aiperf_records(source, asked)
    return _read("bench-aiperf", "a result of aiperf or genai-perf", _aiperf_runs, source, asked)


def _telemetry(source: Source) -> Reading:
    import numpy as np

    reading = Reading(kind="bench-aiperf", title="samples of devices during a benchmark", source=source.name,
                      of="samples")  # fmt: skip
    lines = JsonLines(source)
    values: dict[str, list[float]] = {}
    models: dict[str, str] = {}
    for number, record in lines:
        data = record.get("telemetry_data")
        if not isinstance(data, dict):
            lines.skipped.add("no telemetry_data", number)
            continue
        reading.taken += 1
        models[str(record.get("gpu_uuid"))] = str(record.get("gpu_model_name", ""))
        for name in ("gpu_power_usage", "gpu_utilization", "gpu_memory_used"):
            value = number_of(data.get(name))
            if value is not None:
                values.setdefault(name, []).append(value)
    reading.skipped = lines.skipped
    reading.show("devices", len(models))
    for name, unit in (("gpu_power_usage", "W"), ("gpu_utilization", "%"), ("gpu_memory_used", "GB")):
        if name in values:
            reading.show(f"{name}, mean", float(np.mean(values[name])), unit)
            reading.show(f"{name}, max", float(np.max(values[name])), unit)
    for model in sorted(set(models.values())):
        reading.understood["device"] = model
    reading.note("samples of devices give no piece of a scenario; the result beside them does")
    return reading


def _aiperf_records(source: Source, asked: Asked) -> Reading:
    import numpy as np

    lines = JsonLines(source)
    values: dict[str, list[float]] = {}
    begins: list[float] = []
    ends: list[float] = []
    for number, record in lines:
        metrics, meta = record.get("metrics"), record.get("metadata")
        if not isinstance(metrics, dict) or not isinstance(meta, dict) or record.get("error"):
            lines.skipped.add("failed, or no metrics", number)
            continue
        if meta.get("was_cancelled") is True or meta.get("benchmark_phase") == "warmup":
            lines.skipped.add("cancelled, or of the warm-up", number)
            continue
        begin, end = number_of(meta.get("request_start_ns")), number_of(meta.get("request_end_ns"))
        if begin is None or end is None or end < begin:
            lines.skipped.add("no begin and end", number)
            continue
        begins.append(begin)
        ends.append(end)
        for name, each in metrics.items():
            value = number_of(each.get("value")) if isinstance(each, dict) else None
            if value is not None and isinstance(each.get("unit"), str):
                values.setdefault(f"{name}|{each['unit']}", []).append(value)
    if not begins:
        raise refused(source, "nothing-taken", f"no request of {source.name} could be taken", "see the file")
    seconds = (max(ends) - min(begins)) / 1e9
    run: dict[str, Any] = {"completed": len(begins)}
    for key, found in values.items():
        name, unit = key.split("|", 1)
        column = {"input_sequence_length": "input_tokens", "output_sequence_length": "output_tokens"}.get(name)
        if column:
            run[column] = float(np.mean(found))
        elif unit in ("ms", "s", "us", "ns"):
            marks = {"mean": np.mean(found), "median": np.median(found)}
            marks |= {f"p{each}": np.percentile(found, each) for each in (95, 99)}
            run |= {f"{name}_{stat}_{unit}": float(mark) for stat, mark in marks.items()}
    if seconds > 0:
        run["requests_per_second"] = len(begins) / seconds
        run["output_tokens_per_second"] = run.get("output_tokens", 0.0) * len(begins) / seconds
        busy = sum(end - begin for begin, end in zip(begins, ends)) / 1e9
        run["concurrency"] = max(round(busy / seconds), 1)
    reading = Reading(kind="bench-aiperf", title="requests of a benchmark", source=source.name, skipped=lines.skipped)
    reading = reading_of(reading, [point_of(run, default_ms=_MS)], asked, stem_of(source))
    reading.taken, reading.of = len(begins), "requests"
    reading.note(_BUSY)
    return reading


# inference-perf


def recognise_inference_perf(source: Source) -> Match:
    """Successes and failures of a load."""
    keys = head_keys(source)
    return fit({name: name in keys for name in ("load_summary", "successes", "failures", "request_latency")},
               tool="inference-perf", ceiling=0.97)  # fmt: skip


def _inference_perf_runs(source: Source, skipped: Skips) -> Runs:
    for number, record in _records(source, skipped):
        good, load = record.get("successes"), record.get("load_summary")
        if not isinstance(good, dict):
            skipped.add("no successes", number)
            continue
        run = dict(flat(good, _DEEP))
        run = {key.replace("latency.", "", 1) if key.startswith("latency.") else key: v for key, v in run.items()}
        if isinstance(load, dict):
            run["requested_rate"] = load.get("requested_rate")
        run["completed"] = good.get("count")
        if isinstance(load, dict) and load.get("concurrency"):
            run["concurrency"] = load["concurrency"]
        if "rate" in good:
            run["requests_per_second"] = good["rate"]
        for name, column in (("prompt_len", "input_tokens"), ("output_len", "output_tokens")):
            if isinstance(good.get(name), dict):
                mean = number_of(good[name].get("mean"))
                # the server's own figures give sums where the harness gives means
                rate, each = number_of(good[name].get("rate")), number_of(good.get("rate"))
                run[column] = rate / each if rate and each else mean
                if rate and column == "output_tokens":
                    run["output_tokens_per_second"] = rate
        failed = record.get("failures")
        run["failed"] = failed.get("count") if isinstance(failed, dict) else None
        yield number, run, _S


# LLMPerf


def recognise_llmperf(source: Source) -> Match:
    """Flat keys results_<metric>_<statistic>, or a run for each number of clients."""
    keys = head_keys(source)
    flat_keys = any(key.startswith("results_ttft_s") for key in keys)
    table = any("first-time-to-token" in key or "latency_ms_per_token" in key for key in keys)
    single = {"ttft_s", "end_to_end_latency_s", "number_output_tokens"} <= keys
    marks = {"results_ttft_s_*": flat_keys or table or single, "num_concurrent_requests": bool(
        keys & {"num_concurrent_requests", "concurrency"}) or single}  # fmt: skip
    return fit(marks, tool="LLMPerf", ceiling=0.95)


def _llmperf_runs(source: Source, skipped: Skips) -> Runs:
    whole = document_of(source)
    if isinstance(whole, list) and any(isinstance(each, dict) and "ttft_s" in each for each in whole):
        yield from _llmperf_requests(whole, skipped)
        return
    rows: list[Any] = whole if isinstance(whole, list) else [whole]
    if isinstance(whole, dict) and whole and all(isinstance(each, dict) for each in whole.values()):
        rows = list(whole.values())
    for number, record in enumerate(rows, start=1):
        if not isinstance(record, dict):
            skipped.add("JSON, but no record", number)
            continue
        run = {key.removeprefix("results_").replace("_quantiles", ""): value for key, value in record.items()
               if not key.startswith("results_inter_token") and key != "version"}  # fmt: skip
        whole_s, first_s = (number_of(record.get(f"results_{name}_s_mean")) for name in ("end_to_end_latency", "ttft"))
        made = number_of(record.get("results_number_output_tokens_mean", record.get("mean_output_tokens")))
        if whole_s and first_s and made and made > 1:  # its own time between tokens holds that of the first
            run["tpot_mean_s"] = (whole_s - first_s) / (made - 1)
        per_minute = number_of(record.get("results_num_completed_requests_per_min"))
        if per_minute is not None:
            run["requests_per_second"] = per_minute / 60
        run["completed"] = record.get("results_num_completed_requests", run.get("completed"))
        names = ("results_mean_output_throughput_token_per_s", "output_throughput", "throughput_token_per_s")
        run["output_throughput"] = next((record[name] for name in names if name in record), None)
        yield number, run, _S


def _llmperf_requests(rows: list[Any], skipped: Skips) -> Runs:
    import numpy as np

    kept = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or number_of(row.get("ttft_s")) is None or row.get("error_code"):
            skipped.add("failed, or no record", number)
        else:
            kept.append(row)
    if not kept:
        return
    run: dict[str, Any] = {"completed": len(kept)}
    for row in kept:
        whole_s, made = number_of(row.get("end_to_end_latency_s")), number_of(row.get("number_output_tokens"))
        if whole_s and made and made > 1:  # its own time between tokens holds that of the first
            row["tpot_s"] = (whole_s - (number_of(row["ttft_s"]) or 0.0)) / (made - 1)
    for name, key in (("ttft", "ttft_s"), ("tpot", "tpot_s"), ("e2e_latency", "end_to_end_latency_s")):
        found = [value for row in kept if (value := number_of(row.get(key))) is not None]
        if found:
            run |= {f"{name}_mean_s": float(np.mean(found)), f"{name}_median_s": float(np.median(found)),
                    f"{name}_p99_s": float(np.percentile(found, 99))}  # fmt: skip
    for column, key in (("input_tokens", "number_input_tokens"), ("output_tokens", "number_output_tokens")):
        found = [value for row in kept if (value := number_of(row.get(key))) is not None]
        if found:
            run[column] = float(np.mean(found))
    yield 1, run, _S


def _read(
    kind: str, title: str, runs: Callable[[Source, Skips], Runs], source: Source, asked: Asked
) -> Reading:  # fmt: skip
    reading = Reading(kind=kind, title=title, source=source.name)
    points = []
    for number, run, default_ms in (each for part in source.parts for each in runs(part, reading.skipped)):
        point = point_of(run, default_ms=default_ms, at=number)
        if "scenario" in run:
            point.cells["scenario"] = run["scenario"]
        if _BUSY in run:
            reading.note(_BUSY)
        points.append(point)
    if not points and not reading.skipped.count:
        raise refused(source, "nothing-taken", f"no run stands in {source.name}", "is it whole?")
    return reading_of(reading, points, asked, stem_of(source))


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One form of file: how it is known, and how it is opened into runs."""

    name: str
    title: str
    looks_for: str
    recognise: Callable[[Source], Match]
    runs: Callable[[Source, Skips], Runs]

    def kind(self) -> Kind:
        """The kind that reads it."""
        return Kind(name=self.name, title=self.title, looks_for=self.looks_for, recognise=self.recognise,
                    read=partial(_read, self.name, self.title, self.runs))  # fmt: skip


_FORMATS = (
    Format(name="bench-vllm", title="result of vLLM bench, SGLang bench or InferenceX",
            looks_for="JSON with request_throughput, output_throughput and mean_ttft_ms or arrays of requests",
            recognise=recognise_vllm, runs=_vllm_runs),
    Format(name="bench-console", title="printed result of a serving benchmark",
            looks_for="the printed tables of vLLM, SGLang, trtllm-bench, GuideLLM or perf_analyzer",
            recognise=recognise_console, runs=_console_runs),
    Format(name="bench-guidellm", title="report of GuideLLM",
            looks_for="JSON or YAML with benchmarks and metrics of successful requests",
            recognise=recognise_guidellm, runs=_guidellm_runs),
    Format(name="bench-inference-perf", title="result of inference-perf",
            looks_for="JSON with load_summary, successes and failures",
            recognise=recognise_inference_perf, runs=_inference_perf_runs),
    Format(name="bench-llmperf", title="result of LLMPerf",
            looks_for="JSON with results_ttft_s_* and num_concurrent_requests, or a list of requests",
            recognise=recognise_llmperf, runs=_llmperf_runs),
)  # fmt: skip

KINDS = (
    *(each.kind() for each in _FORMATS),
    Kind(name="bench-aiperf", title="result of aiperf or genai-perf",
         looks_for="JSON of metrics with unit and avg, or JSON lines of requests or of device samples",
         recognise=recognise_aiperf, read=read_aiperf),
)  # fmt: skip
