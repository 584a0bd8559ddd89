"""Results of benchmarks as other versions of the tools write them: what is set, what was measured, of how many."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.reading.kinds import Asked, Reading, read
from planner.reading.source import Source
from tests.reading import writers

MODEL = "org/model"


def told(folder: Path, content: Any, **asked: Any) -> Reading:
    (folder / "result").write_text(content if isinstance(content, str) else json.dumps(content), newline="")
    return read(Source(folder / "result"), Asked(accelerator="H100-80GB-SXM", **asked))


def rows_of(reading: Reading) -> list[dict[str, str]]:
    text = next(piece.text for piece in reading.pieces if piece.what == "rows")
    return list(csv.DictReader(io.StringIO(text)))


def row_of(folder: Path, content: Any, **asked: Any) -> dict[str, str]:
    (row,) = rows_of(told(folder, content, **({"model": MODEL, "devices": 1} | asked)))
    return row


def figures(reading: Reading) -> dict[str, Any]:
    return {each.label.partition(": ")[2]: each.value for each in reading.look}


def vllm(**more: Any) -> dict[str, Any]:
    return json.loads(writers.vllm_bench()) | more


def sglang(**more: Any) -> dict[str, Any]:
    return json.loads(writers.sglang_bench().splitlines()[0]) | more


@pytest.mark.parametrize(
    ("key", "label"),
    [("p99.9_ttft_ms", "TTFT p99.9"), ("p999_ttft_ms", "TTFT p99.9"), ("p05_ttft_ms", "TTFT p5"),
     ("p50_ttft_ms", "TTFT median"), ("ttft_percentile_95_ms", "TTFT p95"), ("TTFT 99th percentile (ms)", "TTFT p99")],
)  # fmt: skip
def test_a_percentile_is_that_of_its_name(key: str, label: str, tmp_path: Path) -> None:
    record = {name: value for name, value in vllm().items() if not name.endswith("_ms")}
    found = told(tmp_path, record | {"mean_tpot_ms": 9.0, key: 300.0})
    shown = figures(found)
    if label in ("TTFT median", "TTFT p95", "TTFT p99"):
        assert shown[label] == 300
    assert not {"TTFT mean", "TTFT median", "TTFT p99"} - {label} & set(shown)


def test_a_harness_speaks_a_protocol_and_is_no_engine(tmp_path: Path) -> None:
    row = row_of(tmp_path, vllm(backend="openai-chat", version="N/A"))
    assert (row["engine"], row["engine_version"]) == ("", "")
    assert row_of(tmp_path, vllm(backend="vllm"))["engine"] == "vllm"


def test_a_bound_of_clients_that_did_not_bind_is_no_closed_loop(tmp_path: Path) -> None:
    kept_up = row_of(tmp_path, vllm(request_rate=2.02, max_concurrency=256))
    assert (kept_up["scenario"], kept_up["concurrency"], kept_up["request_rate"]) == ("open loop", "", "2.02")
    bound = row_of(tmp_path, vllm(request_rate=9.0, max_concurrency=8))
    assert (bound["scenario"], bound["concurrency"]) == ("closed loop, fixed concurrency", "8")


def test_requests_under_way_on_average_are_not_those_that_were_set(tmp_path: Path) -> None:
    row = row_of(tmp_path, sglang(max_concurrency=None, concurrency=6.5, request_rate=float("inf"), server_info=None))
    assert (row["scenario"], row["concurrency"]) == ("all requests at once", "")


def test_ranks_of_attention_are_counted_once_and_a_pool_is_not_the_whole(tmp_path: Path) -> None:
    info = {"model_path": MODEL, "tp_size": 8, "dp_size": 4, "pp_size": 1, "ep_size": 8}
    row = row_of(tmp_path, sglang(server_info=info | {"enable_dp_attention": True}), devices=0)
    assert (row["n_accel"], row["tp"], row["dp"]) == ("8", "2", "4")
    row = row_of(tmp_path, sglang(server_info=info | {"enable_dp_attention": False}), devices=0)
    assert (row["n_accel"], row["tp"], row["dp"]) == ("32", "8", "4")
    pool = told(tmp_path, sglang(server_info=info | {"disaggregation_mode": "decode"}))
    assert not pool.pieces
    assert any("--devices" in note for note in pool.notes)


def test_figures_of_a_device_become_those_of_all(tmp_path: Path) -> None:
    point = {"hw": "h200", "conc": 64, "isl": 1024, "osl": 512, "model": MODEL, "framework": "sglang", "tp": 8,
             "tput_per_gpu": 400.0, "output_tput_per_gpu": 300.0, "median_ttft": 0.3, "mean_tpot": 0.02}  # fmt: skip
    row = row_of(tmp_path, point, devices=0)
    assert (row["concurrency"], row["n_accel"], row["total_tokens_per_s"]) == ("64", "8", "3200")
    assert (row["output_tokens_per_s_per_device"], row["ttft_ms"]) == ("300", "300")
    point |= {"tp": None, "num_prefill_gpu": 8, "num_decode_gpu": 16}
    row = row_of(tmp_path, point, devices=0)
    assert (row["n_accel"], row["output_tokens_per_s_total"], row["total_tokens_per_s"]) == ("24", "4800", "9600")


def test_what_is_printed_before_a_result_is_of_that_result(tmp_path: Path) -> None:
    result = writers.vllm_console()
    text = f"Traffic request rate: 2.0\n{result}{'=' * 50}\nTraffic request rate: 4.0\n{result}{'=' * 50}\n"
    first, second = rows_of(told(tmp_path, text, model=MODEL, devices=1))
    assert (first["request_rate"], second["request_rate"]) == ("2", "4")


def test_clients_as_newer_versions_print_them(tmp_path: Path) -> None:
    lines = writers.vllm_console().splitlines()
    lines.insert(2, "Maximum request concurrency:             64")
    assert row_of(tmp_path, "\n".join(lines))["concurrency"] == "64"


def test_details_above_the_figures_of_trtllm_bench(tmp_path: Path) -> None:
    above = f"""= PYTORCH BACKEND
Model:\t\t\t{MODEL}
Quantization:\tFP8
= REQUEST DETAILS
Number of concurrent requests:  12.5
Average Input Length (tokens):  1024.0000
Average Output Length (tokens): 128.0000
TP Size:                2
PP Size:                1
"""
    (row,) = rows_of(told(tmp_path, above + writers.trtllm_console()))
    assert (row["model"], row["n_accel"], row["input_tokens"], row["output_tokens"]) == (MODEL, "2", "1024", "128")
    assert (row["weight_precision"], row["scenario"]) == ("FP8", "offline")


def test_a_report_of_trtllm_bench(tmp_path: Path) -> None:
    report = {
        "engine": {"model": MODEL, "model_path": "/a/b", "version": "1.0", "backend": "Pytorch", "dtype": "bfloat16"},
        "world_info": {"tp_size": 2, "pp_size": 1, "world_size": 2, "issue_rate": "infinite"},
        "request_info": {"num_requests": 100, "avg_num_concurrent_requests": 12.5, "avg_input_length": 1024.0,
                         "avg_output_length": 128.0},
        "performance": {"total_latency_ms": 5e4, "avg_request_latency_ms": 1500.0, "request_throughput_req_s": 2.0,
                        "system_output_throughput_tok_s": 256.0, "system_total_throughput_tok_s": 2304.0,
                        "request_latency_percentiles_ms": {"p50": 1400.0, "p99": 3000.0, "average": 1500.0}},
        "streaming_metrics": {"avg_ttft_ms": 120.0, "avg_tpot_ms": 12.0, "ttft_percentiles": {"p50": 100.0, "p99": 1}},
    }  # fmt: skip
    (row,) = rows_of(told(tmp_path, json.dumps(report, indent=4)))
    assert (row["model"], row["n_accel"], row["ttft_ms"], row["tpot_ms"]) == (MODEL, "2", "100", "12")
    assert (row["output_tokens_per_s_total"], row["total_tokens_per_s"], row["requests_per_s"]) == ("256", "2304", "2")
    assert (row["engine"], row["scenario"], row["e2e_latency_ms"]) == ("tensorrt-llm", "offline", "1500")


METRICS = """Metric,avg,min,max,p99,p50
Time to First Token (ms),"1,200.00",90,2000,1900,"1,000.00"
Request Latency (ms),"4,000.00",90,9000,8000,"3,000.00"
Inter Token Latency (ms),11.5,9,20,19,11.0
Output Token Throughput Per User (tokens/sec/user),90,50,111,110,90
Output Sequence Length (tokens),128,100,150,149,128
Input Sequence Length (tokens),"1,024.0",1000,1050,1049,1024

Metric,Value
Output Token Throughput (tokens/sec),256.0
Request Throughput (per sec),2.0
Request Count (count),100
"""


@pytest.mark.parametrize("form", ["plain", "bom", "crlf", "semicolon"])
def test_metrics_as_a_table(form: str, tmp_path: Path) -> None:
    text = {"plain": METRICS, "bom": "\ufeff" + METRICS, "crlf": METRICS.replace("\n", "\r\n"),
            "semicolon": "\n".join(";".join(cells) for cells in csv.reader(METRICS.splitlines()))}[form]  # fmt: skip
    row = row_of(tmp_path, text)
    assert (row["ttft_ms"], row["tpot_ms"], row["e2e_latency_ms"]) == ("1000", "11", "4000")
    assert (row["output_tokens_per_s_total"], row["requests_per_s"]) == ("256", "2")
    assert (row["input_tokens"], row["output_tokens"], row["concurrency"]) == ("1024", "128", "8")


def test_requests_that_aiperf_broke_off_are_no_point(tmp_path: Path) -> None:
    """Those that it cancels, and those of its warm-up, counted as answered."""
    records = [{"metadata": {"request_start_ns": 10**18 + n * 10**9, "request_end_ns": 10**18 + (n + 1) * 10**9,
                             "was_cancelled": n % 4 == 3, "benchmark_phase": "warmup" if n < 2 else "profiling"},
                "metrics": {"output_sequence_length": {"value": 100, "unit": "tokens"},
                            "time_to_first_token": {"value": 900 if n % 4 == 3 else 90, "unit": "ms"}},
                "error": None} for n in range(20)]  # fmt: skip
    reading = told(tmp_path, "".join(json.dumps(each) + "\n" for each in records))
    assert (reading.taken, reading.skipped.count) == (13, 7)
    assert figures(reading)["TTFT mean"] == pytest.approx(90)


def test_metrics_below_records_and_a_model_by_its_old_name(tmp_path: Path) -> None:
    record = json.loads(writers.aiperf())
    record.pop("input_config")
    config = {"model": [MODEL], "perf_analyzer": {"stimulus": {"concurrency": 4}}}
    row = row_of(tmp_path, {"records": record, "input_config": config}, model="")
    assert (row["model"], row["concurrency"], row["output_tokens_per_s_total"]) == (MODEL, "4", "256")


@pytest.mark.parametrize(
    ("strategy", "scenario", "load"),
    [({"type_": "synchronous"}, "closed loop, fixed concurrency", "1"),
     ({"type_": "concurrent", "streams": 16}, "closed loop, fixed concurrency", "16"),
     ({"type_": "constant", "rate": 2.01}, "open loop", ""),
     ({"type_": "poisson", "rate": 9.0}, "closed loop, fixed concurrency", "8"),
     ({"type_": "throughput"}, "closed loop, fixed concurrency", "8")],
)  # fmt: skip
@pytest.mark.parametrize("below", ["args", "config", "scheduler"])
def test_how_requests_were_sent(
    below: str, strategy: dict[str, Any], scenario: str, load: str, tmp_path: Path
) -> None:  # fmt: skip
    report = json.loads(writers.guidellm())
    report["benchmarks"][0][below] = {"strategy": strategy}
    report["args"] = {"model": MODEL}
    report["benchmarks"][0]["metrics"]["time_per_output_token_ms"] = {"successful": {"mean": 30.0, "median": 29.0}}
    row = row_of(tmp_path, report, model="")
    assert (row["model"], row["scenario"], row["concurrency"]) == (MODEL, scenario, load)
    assert float(row["tpot_ms"]) == pytest.approx(10.8)  # without the first token


def test_guidellm_as_a_table(tmp_path: Path) -> None:
    marks = [1.0] * 9 + [3000.0, 4000.0]
    figures_of = {"Requests per second": 2.0, "Request concurrency": 8.0, "Request latency": 1.5,
                  "Prompt token count": 1024.0, "Output token count": 128.0, "Time to first token ms": 120.0,
                  "Time per output token ms": 30.0, "Inter token latency ms": 12.0, "Output tokens per second": 256.0,
                  "Tokens per second": 2304.0}  # fmt: skip
    names, cells = ["Type", "Run Id", "Name", "Successful Requests"], ["generative", "a", "constant@2.00", 100]
    for status, times in (("Total", 5), ("Successful", 1), ("Errored", 0)):
        for name, value in figures_of.items():
            names += [f"{status} {name} mean", f"{status} {name} median", f"{status} {name} [min, 0.1, 1, 5, 10, …]"]
            cells += [value * times, value * times * 0.9, marks]
    text = io.StringIO()
    csv.writer(text).writerows([names, cells])
    row = row_of(tmp_path, text.getvalue())
    assert (row["ttft_ms"], row["tpot_ms"], row["e2e_latency_ms"]) == ("108", "10.8", "1500")
    assert (row["scenario"], row["request_rate"], row["output_tokens_per_s_total"]) == ("open loop", "2", "256")

    columns = [("Run Info", "Run ID", ""), ("Benchmark", "Strategy", ""), ("Request Counts", "Successful", "")]
    values: list[Any] = ["a", "concurrent", 100]
    for group, unit, value in (("Time to First Token", "ms", 120.0), ("Request Latency", "Sec", 1.5),
                               ("Inter Token Latency", "ms", 12.0), ("Server Throughput", "Requests/Sec", 2.0),
                               ("Server Throughput", "Concurrency", 8.0), ("Token Metrics", "Input Tokens", 1024.0),
                               ("Token Throughput", "Output Tokens/Sec", 256.0)):  # fmt: skip
        for status, times in (("Incomplete", 7), ("Successful", 1)):
            columns += [(group, f"{status} {unit}", stat) for stat in ("Mean", "Median", "Percentiles")]
            values += [value * times, value * times * 0.9, marks]
    text = io.StringIO()
    csv.writer(text).writerows([*zip(*columns), values])
    row = row_of(tmp_path, text.getvalue())
    assert (row["ttft_ms"], row["tpot_ms"], row["e2e_latency_ms"]) == ("108", "10.8", "1500")
    assert (row["concurrency"], row["requests_per_s"], row["input_tokens"]) == ("8", "2", "1024")


def test_batches_of_sglang(tmp_path: Path) -> None:
    batch = {"run_name": "a", "batch_size": 8, "input_len": 1024, "output_len": 128, "prefill_latency": 0.4,
             "median_decode_latency": 0.009, "median_decode_throughput": 888.9, "total_latency": 1.6,
             "overall_throughput": 5760.0}  # fmt: skip
    row = row_of(tmp_path, batch)
    assert (row["concurrency"], row["scenario"], row["ttft_ms"], row["tpot_ms"]) == ("8", "static batch", "400", "9")
    assert (row["output_tokens_per_s_total"], row["total_tokens_per_s"]) == ("640", "5760")
    offline = {"backend": "engine", "successful_requests": 1000, "total_latency": 25.0, "total_input_tokens": 300_000,
               "total_output_tokens": 200_000, "last_gen_throughput": 8100.5, "request_throughput": 40.0,
               "input_throughput": 12_000.0, "output_throughput": 8000.0, "total_throughput": 20_000.0}  # fmt: skip
    row = row_of(tmp_path, offline)
    assert (row["scenario"], row["input_tokens"], row["output_tokens"]) == ("offline", "300", "200")
    assert (row["output_tokens_per_s_total"], row["total_tokens_per_s"]) == ("8000", "20000")


def test_a_record_each_metric(tmp_path: Path) -> None:
    def record(name: str, value: float, tp: int) -> dict[str, Any]:
        info = {"args": {"model": MODEL, "tensor_parallel_size": tp}}
        return {"benchmark": {"name": "vLLM benchmark", "extra_info": info}, "model": {"name": MODEL},
                "metric": {"name": name, "benchmark_values": [value]}}  # fmt: skip

    records = [record("requests_per_second", 2.0, 2), record("tokens_per_second", 2304.0, 2),
               record("requests_per_second", 1.0, 1), record("nothing", float("nan"), 1)]  # fmt: skip
    reading = told(tmp_path, records)
    first, second = rows_of(reading)
    assert (first["tp"], first["requests_per_s"], first["total_tokens_per_s"]) == ("2", "2", "2304")
    assert (second["tp"], second["requests_per_s"]) == ("1", "1")
    assert reading.skipped.reasons == {"a metric without values": (1, 4)}


def test_summaries_in_words_and_below_a_key(tmp_path: Path) -> None:
    words = {"Time taken for tests (s)": 50.0, "Number of concurrency": 8, "Total requests": 100,
             "Succeed requests": 98, "Failed requests": 2, "Output token throughput (tok/s)": 256.0,
             "Request throughput (req/s)": 2.0, "Average latency (s)": 1.5, "Average time to first token (s)": 0.12,
             "Average time per output token (s)": 0.011, "Average input tokens per request": 1024.0,
             "Average output tokens per request": 128.0}  # fmt: skip
    spread = {name: {"mean": value, "median": value * 0.9, "percentile_99": value * 3}
              for name, value in (("ttft", 120.0), ("tpot", 11.0), ("response_time", 1500.0), ("input_tokens", 1024.0),
                                  ("output_tokens", 128.0))}  # fmt: skip
    below = {"results": [{"input_tokens": 3, "output_tokens": 4}], "config": {"load_options": {"concurrency": 8}},
             "summary": spread | {"throughput": 256.0, "total_requests": 100, "req_completed_within_test_duration": 97,
                                  "total_failures": 0}}  # fmt: skip
    for record, ttft in ((words, "120"), (below, "108")):
        row = row_of(tmp_path, record)
        assert (row["ttft_ms"], row["concurrency"], row["output_tokens_per_s_total"]) == (ttft, "8", "256")
        assert (row["input_tokens"], row["output_tokens"], row["e2e_latency_ms"]) == ("1024", "128", "1500")


def test_devices_of_llama_bench_are_counted(tmp_path: Path) -> None:
    one = {"model_type": "llama 8B Q4_0", "gpu_info": "NVIDIA RTX 4090, NVIDIA RTX 4090", "n_gpu_layers": 99,
           "split_mode": "layer", "n_prompt": 512, "n_gen": 0, "avg_ts": 1500.5}  # fmt: skip
    reading = told(tmp_path, [one, one | {"split_mode": "none"}, one | {"n_gpu_layers": 0}])
    assert [row["n_accel"] for row in rows_of(reading)] == ["2", "1"]
    assert reading.skipped.reasons == {"a test without layers on a device": (1, 3)}


def test_llama_bench_as_statements_and_as_older_builds_print_it(tmp_path: Path) -> None:
    names = "build_number, gpu_info, model_type, n_prompt, n_gen, n_depth, avg_ts"
    text = (
        "CREATE TABLE IF NOT EXISTS llama_bench (\n  build_number INTEGER\n);\n"
        f"INSERT INTO llama_bench ({names}) VALUES ('6000', 'A, A', 'llama 8B, Q4', '0', '128', '4096', '50.25');\n"
    )
    (row,) = rows_of(told(tmp_path, text))
    assert (row["model"], row["n_accel"], row["output_tokens_per_s_total"]) == ("llama 8B, Q4", "2", "50.25")
    table = """| model | backend | test | t/s |
| --- | --- | --- | ---: |
| llama 7B | CUDA | pp 512 | 2400.00 ± 20.00 |
| llama 7B | CUDA | other | 1.00 ± 20.00 |
"""
    reading = told(tmp_path, table)
    assert [row["prefill_tokens_per_s"] for row in rows_of(reading)] == ["2400"]
    assert reading.skipped.reasons == {"a test or speed of another form": (1, 4)}


def test_clients_that_inference_perf_sets(tmp_path: Path) -> None:
    record = json.loads(writers.inference_perf())
    record["load_summary"] = {"count": 100, "concurrency": 16}
    assert row_of(tmp_path, record)["concurrency"] == "16"


def test_numbers_with_a_decimal_comma_and_rates_that_are_no_counts(tmp_path: Path) -> None:
    text = "Concurrency;TTFT (ms);Output tokens/s;ISL\n8;100,25;1.256,5;1024\n"
    row = row_of(tmp_path, text)
    assert (row["ttft_ms"], row["output_tokens_per_s_total"], row["output_tokens"]) == ("100.25", "1256.5", "")
    row = row_of(tmp_path, "Concurrency,TTFT (ms),Output tokens/s,ISL\n8,100.25,1256.5,1024\n")
    assert (row["ttft_ms"], row["output_tokens_per_s_total"], row["output_tokens"]) == ("100.25", "1256.5", "")


def test_points_as_a_table_in_markdown(tmp_path: Path) -> None:
    text = """# Results
| Concurrency | Output tok/s | Mean TTFT (ms) |
|---|---:|---|
| 8 | **256.5** | 100 |
| 16 | 400 |
"""
    reading = told(tmp_path, text, model=MODEL, devices=1)
    (row,) = rows_of(reading)
    assert (row["concurrency"], row["output_tokens_per_s_total"], row["ttft_ms"]) == ("8", "256.5", "100")
    assert reading.skipped.reasons == {"more or fewer cells than columns": (1, 5)}


def test_sglang_prints_how_many_were_under_way(tmp_path: Path) -> None:
    lines = writers.vllm_console().splitlines()
    lines[2:2] = ["Total generated tokens (retokenized):  12", "Concurrency:     6.50"]
    assert row_of(tmp_path, "\n".join(lines))["concurrency"] == ""
    lines.insert(2, "Max reqeuest concurrency:    16")
    assert row_of(tmp_path, "\n".join(lines))["concurrency"] == "16"


def test_metrics_as_they_are_drawn(tmp_path: Path) -> None:
    text = """
┃                Statistic ┃      avg ┃    p99 ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━┩
│ Time to first token (ms) │ 1,100.26 │  12.39 │
│     Request latency (ms) │ 4,000.00 │ 451.01 │
│   Output token           │   256.00 │    N/A │
│ throughput (per sec)     │          │        │
│ Request throughput (per  │     2.00 │    N/A │
│ sec)                     │          │        │
└──────────────────────────┴──────────┴────────┘
"""
    row = row_of(tmp_path, text)
    assert (row["ttft_ms"], row["e2e_latency_ms"], row["concurrency"]) == ("1100.26", "4000", "8")
    assert (row["output_tokens_per_s_total"], row["requests_per_s"]) == ("256", "2")


def test_what_vllm_prints_without_a_server(tmp_path: Path) -> None:
    text = "INFO: begun\nThroughput: 2.00 requests/s, 2304.00 total tokens/s, 256.00 output tokens/s\n"
    row = row_of(tmp_path, text)
    assert (row["requests_per_s"], row["total_tokens_per_s"], row["scenario"]) == ("2", "2304", "offline")
    assert row["output_tokens_per_s_total"] == "256"
    reading = told(tmp_path, "Avg latency: 1.5 seconds\n50% percentile latency: 1.4 seconds\n", model=MODEL, devices=1)
    assert figures(reading) == {"E2E mean": 1500, "E2E median": 1400}


def test_batches_of_llama_cpp(tmp_path: Path) -> None:
    record = {"pp": 128, "tg": 64, "pl": 8, "n_kv": 1536, "speed_pp": 2560.0, "speed_tg": 256.0, "speed": 465.45}
    table = """| PP | TG | B | N_KV | S_PP t/s | S_TG t/s | S t/s |
|----|----|---|------|----------|----------|-------|
| 128 | 64 | 8 | 1536 | 2560.00 | 256.00 | 465.45 |
"""
    for content in (record, table):
        first, second = rows_of(told(tmp_path, content, model=MODEL, devices=1))
        assert (first["concurrency"], first["prefill_tokens_per_s"], first["input_tokens"]) == ("8", "2560", "128")
        assert (second["output_tokens_per_s_total"], second["output_tokens"]) == ("256", "64")


def test_a_load_that_rises_while_it_runs_is_no_point(tmp_path: Path) -> None:
    rising = {"request_rate": "inf", "ramp_up_strategy": "linear", "ramp_up_start_rps": 1, "ramp_up_end_rps": 20}
    reading = told(tmp_path, vllm(max_concurrency=None, **rising), model=MODEL, devices=1)
    assert not reading.pieces
    assert reading.skipped.reasons == {"its load rises while it runs: the figures are of no one rate": (1, 1)}


def test_clients_that_no_file_tells_are_said_to_be_those_on_average(tmp_path: Path) -> None:
    table = "Metric,avg\\nRequest Latency (ms),4000\\n\\nMetric,Value\\nRequest Throughput (per sec),2\\n"
    reading = told(tmp_path, table.replace("\\n", "\n"), model=MODEL, devices=1)
    assert rows_of(reading)[0]["concurrency"] == "8"
    assert "clients at once are those that were busy on average" in reading.notes


def first_guidellm(mode: str, rate: float | None) -> dict[str, Any]:
    """A report of GuideLLM 0.1: every request, times of it in seconds."""
    results = [{"prompt": "", "output": "", "prompt_token_count": 200 + 100 * n, "output_token_count": 100,
                "start_time": 1700000000.0 + n, "end_time": 1700000002.0 + n + n, "first_token_time": 0.1 + 0.2 * n,
                "decode_times": {"data": [0.01, 0.03]}} for n in range(2)]  # fmt: skip
    errors = [{"message": "busy"}]
    one = {"mode": mode, "rate": rate, "results": results, "errors": errors, "concurrencies": []}
    return {"benchmarks": [one], "args": [{"model": MODEL}]}


@pytest.mark.parametrize(
    ("mode", "rate", "scenario", "load"),
    [("synchronous", None, "closed loop, fixed concurrency", ("1", "")),
     ("throughput", None, "all requests at once", ("", "")), ("asynchronous", 4.0, "open loop", ("", "4")),
     ("asynchronous", None, "open loop", ("", "0.5"))],
)  # fmt: skip
def test_requests_of_guidellm_before_0_2_are_a_point(
    mode: str, rate: float | None, scenario: str, load: tuple[str, str], tmp_path: Path
) -> None:
    row = row_of(tmp_path, first_guidellm(mode, rate), model="")
    assert (row["model"], row["scenario"], (row["concurrency"], row["request_rate"])) == (MODEL, scenario, load)
    assert (row["ttft_ms"], row["tpot_ms"], row["e2e_latency_ms"]) == ("200", "20", "2500")
    assert (row["requests_per_s"], row["output_tokens_per_s_total"], row["input_tokens"]) == ("0.5", "50", "250")
    empty = first_guidellm(mode, rate)
    empty["benchmarks"] = [{**empty["benchmarks"][0], "results": []}, 5]
    assert told(tmp_path, empty).skipped.reasons == {"a benchmark without requests that ended": (2, 1)}


def test_levels_of_perf_analyzer_are_points_in_microseconds(tmp_path: Path) -> None:
    head = ("Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Client Recv,"
            "p50 latency,p90 latency,p95 latency,p99 latency,Avg latency")  # fmt: skip
    reading = told(
        tmp_path, f"{head}\n4,2.5,12,260,40,0,1500000,1,1700000,1900000,1600000\n8,4\n", model=MODEL, devices=1
    )
    (row,) = rows_of(reading)
    assert (row["concurrency"], row["requests_per_s"], row["e2e_latency_ms"]) == ("4", "2.5", "1600")
    assert figures(reading)["E2E p99"] == 1900
    assert reading.skipped.reasons == {"more or fewer cells than columns": (1, 3)}
    assert row_of(tmp_path, f"{head.replace('Concurrency', 'Request Rate')}\n4,2.5,12,260,40,0,1,1,1,1,16\n"
                  )["request_rate"] == "4"  # fmt: skip


def test_requests_of_perf_analyzer_are_a_point(tmp_path: Path) -> None:
    begin = 1_726_181_280_000_000_000
    requests = [{"timestamp": begin + n * 10**9, "request_inputs": {"payload": "{}"},
                 "response_timestamps": [begin + n * 10**9 + at * 10**6 for at in (100, 600, 1000)]}
                for n in range(4)]  # fmt: skip
    whole = {"experiments": [{"experiment": {"mode": "request_rate", "value": 1}, "requests": requests}],
             "service_kind": "openai", "endpoint": "v1/chat/completions"}  # fmt: skip
    row = row_of(tmp_path, whole)
    assert (row["request_rate"], row["ttft_ms"], row["e2e_latency_ms"], row["requests_per_s"]) == (
        "1",
        "100",
        "1000",
        "1",
    )
    for request in requests:
        del request["response_timestamps"][:2]  # answers that come whole have no first token
    assert row_of(tmp_path, whole)["ttft_ms"] == ""


def test_clients_of_the_warm_up_are_not_those_of_the_run(tmp_path: Path) -> None:
    record = {
        "request_latency": {"unit": "ms", "avg": 4000.0},
        "request_throughput": {"unit": "requests/sec", "avg": 2.0},
        "time_to_first_token": {"unit": "ms", "avg": 100.0},
        "input_config": {"loadgen": {"warmup_concurrency": 2, "warmup_request_rate": 1.0, "concurrency": 16}},
    }
    row = row_of(tmp_path, record)
    assert (row["concurrency"], row["request_rate"]) == ("16", "")


def test_sglang_s_times_without_a_unit_are_milliseconds(tmp_path: Path) -> None:
    record = {"backend": "sglang", "request_rate": 8.0, "duration": 66.6, "completed": 500,
              "total_input_tokens": 500000, "total_output_tokens": 100000,
              "total_output_tokens_retokenized": 99000, "output_throughput": 1500.0,
              "mean_e2e_latency": 5000.0, "median_ttft": 120.1, "median_itl": 11.0}  # fmt: skip
    found = told(tmp_path, record)
    assert (found.tool, figures(found)["TTFT median"], figures(found)["ITL median"]) == (
        "SGLang bench_serving", 120.1, 11.0)  # fmt: skip


def test_percentiles_of_lengths_are_no_requests(tmp_path: Path) -> None:
    row = {"Percentiles": "50%", "TTFT (s)": 0.3, "Input tokens": 1200, "Output tokens": 300}
    with pytest.raises(InputError, match="of no kind"):
        told(tmp_path, [row, row | {"Percentiles": "90%"}])


def test_a_table_in_german_and_columns_that_leave_open_what_they_are(tmp_path: Path) -> None:
    table = "Modell;Gerät;Nebenläufigkeit;TTFT (ms);Ausgabe-Tokens/s;tok_s\nm;H100 SXM;16;80,5;1500,2;9\n"
    reading = told(tmp_path, table)
    found = figures(reading)
    assert (found["TTFT mean"], reading.look[-1].value) == (80.5, 1500.2)
    assert any("not read" in note and "tok_s" in note for note in reading.notes)
    assert not any("Ausgabe" in note for note in reading.notes)


def loadgen(scenario: str, *figures: str, result: str = "VALID") -> str:
    rule = "=" * 48
    head = [
        rule,
        "MLPerf Results Summary",
        rule,
        "SUT name : ours",
        f"Scenario : {scenario}",
        "Mode     : PerformanceOnly",
    ]
    return "\n".join([*head, *figures, f"Result is : {result}", "", "target_qps : 85", ""])


def test_a_summary_of_mlperf_inference(tmp_path: Path) -> None:
    latencies = ("Mean latency (ns)    : 12000000000", "Mean First Token latency (ns)  : 300000000",
                 "99.00 percentile first token latency (ns)   : 900000000", "Mean Time to Output Token (ns) : 51000000",
                 "99.90 percentile time to output token (ns) : 160000000")  # fmt: skip
    rates = ("Completed samples per second    : 84.41", "Completed tokens per second: 24500.10")
    row = row_of(tmp_path, loadgen("Server", *rates, *latencies))
    assert (row["scenario"], row["request_rate"], row["requests_per_s"]) == ("open loop", "85", "84.41")
    assert (row["ttft_ms"], row["tpot_ms"], row["e2e_latency_ms"]) == ("300", "51", "12000")
    assert row["output_tokens_per_s_total"] == "24500.1"
    shown = figures(told(tmp_path, loadgen("Server", *rates, *latencies)))
    assert (shown["TTFT p99"], shown["TPOT mean"]) == (900, 51)
    offline = row_of(tmp_path, loadgen("Offline", "Samples per second: 24.1", "Tokens per second: 7000"))
    assert (offline["request_rate"], offline["requests_per_s"]) == ("", "24.1")
    assert offline["output_tokens_per_s_total"] == "7000"
    failed = told(tmp_path, loadgen("Server", *rates, result="INVALID"))
    assert failed.skipped.reasons == {"a result that is INVALID": (1, 1)}


def test_a_table_of_lmdeploy_names_neither_model_nor_device(tmp_path: Path) -> None:
    path = tmp_path / "lmdeploy.csv"
    path.write_text("backend,bs,dataset_name,random_input_len,random_output_len,duration,completed,request_throughput,"
                    "output_throughput,mean_ttft_ms,median_ttft_ms,mean_tpot_ms\n"
                    "lmdeploy,128,random,1024,256,100,1000,10,2560,300,280,9\n")  # fmt: skip
    reading = read(Source(path))
    assert reading.kind == "bench-table"
    assert {each.label: each.value for each in reading.look}["128 at once: TTFT median"] == 280
