"""Small traces of jobs and metrics of servers, written for the tests of `planner/reading/`; none is a copy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.reading.cluster_writers import table

ACME = ["job_id", "user", "node_num", "gpu_num", "cpu_num", "type", "state", "submit_time", "start_time", "end_time",
        "duration", "queue"]  # fmt: skip


def acme(*rows: Sequence[object]) -> str:
    """Jobs in the columns of Acme: one over two days, one that stands twice, one that ends before it starts."""
    long = ("j1", "u", 1, 8, 64, "Train", "COMPLETED", "2024-01-01 17:00:00+00:00", "2024-01-01 18:00:00+00:00",
            "2024-01-02 06:00:00+00:00", 43_200, 3600)  # fmt: skip
    short = ("j2", "u", 1, 2, 8, "Eval", "FAILED", "2024-01-02 00:00:00+00:00", "2024-01-02 00:00:30+00:00",
             "2024-01-02 01:00:30+00:00", 3600, 30)  # fmt: skip
    back = ("j3", "u", 1, 2, 8, "Eval", "FAILED", "2024-01-02 00:00:00+00:00", "2024-01-02 02:00:00+00:00",
            "2024-01-02 01:00:00+00:00", -3600, 30)  # fmt: skip
    return table(ACME, rows or (long, short, long, back))


def pods(*rows: Sequence[object]) -> str:
    """Pods in the columns of Alibaba: half a device, 8 devices, none, and one that never started."""
    columns = ["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
               "creation_time", "deletion_time", "scheduled_time"]  # fmt: skip
    rows = rows or (
        ("p0", 1, 1, 1, 500, "", "LS", "Running", 0, 7200, 0),
        ("p1", 1, 1, 8, 1000, "", "BE", "Failed", 86_000, 90_000, 86_400),
        ("p2", 1, 1, 0, 0, "", "LS", "Running", 10, 3610, 10),
        ("p3", 1, 1, 1, 1000, "", "LS", "Pending", 20, "", ""),
    )
    return table(columns, rows)


def pai() -> str:
    """Tasks in the columns of Alibaba of 2020: devices in hundredths, of each instance."""
    columns = [
        "job_name",
        "task_name",
        "inst_num",
        "status",
        "start_time",
        "end_time",
        "plan_cpu",
        "plan_gpu",
        "gpu_type",
    ]
    return table(columns, [("a", "worker", 4, "Terminated", 1000, 4600, 600, 50, "T4")])


def jobs_json() -> str:
    """Jobs as JSON lines, with tokens that nobody has."""
    lines = []
    for n, (gpus, seconds) in enumerate([(64, 3600.0), (8, 60.0), (8, None)]):
        job = {"source_trace_id": f"j{n}", "gpu_type": "A100", "gpu_count": gpus, "prompt_tokens": None,
               "timestamp": "2024-01-01 10:00:00+00:00", "e2e_latency_s": seconds, "queue_wait_s": 5.0}  # fmt: skip
        lines.append(json.dumps(job))
    return "\n".join(lines) + "\n"


def philly() -> str:
    """Jobs with attempts; one has none."""

    def job(name: str, *attempts: tuple[str, str, int]) -> dict[str, Any]:
        held = [{"start_time": begin, "end_time": end, "detail": [{"ip": "m1", "gpus": ["gpu"] * gpus}]}
                for begin, end, gpus in attempts]  # fmt: skip
        return {"status": "Pass", "vc": "v", "jobid": name, "submitted_time": "2017-10-03 00:00:00", "attempts": held}

    return json.dumps([job("a", ("2017-10-03 00:01:00", "2017-10-03 02:01:00", 2), ("2017-10-03 03:00:00", "None", 2)),
                       job("b", ("2017-10-04 00:00:00", "2017-10-04 01:00:00", 8)), job("c")], indent=1)  # fmt: skip


def gavel() -> str:
    """Jobs by their steps: type, command, argument, data, steps, arrival, devices."""
    rows = [("ResNet (batch size 32)", "python3 main.py", "--steps", 1, 1000 * n, 86_400.0 * n, 2**n) for n in range(4)]
    return "".join("\t".join(str(cell) for cell in row) + "\n" for row in rows)


def runtimes() -> str:
    """One column of times, one of them below 0."""
    return "runtime\n" + "\n".join(["10.0", "20.0", "30.0", "-1.0"]) + "\n"


def summary() -> str:
    """Figures of two clusters."""
    columns = ["id", "job_num", "cpu_job_num", "gpu_job_num", "avg_run_time_gpu", "avg_que_time_gpu", "avg_gpu_num",
               "max_gpu", "complete_gpu_time", "cancel_gpu_time", "fail_gpu_time"]  # fmt: skip
    return table(columns, [("East", 100, 40, 60, 1000.0, 5.0, 2.5, 64, 3600.0, 1800.0, 1800.0),
                           ("West", -1, 0, 0, 0, 0, 0, 0, 0, 0, 0)])  # fmt: skip


def machines() -> str:
    """Machines in the columns of Alibaba, one without a device and one that stands twice."""
    rows = [("n1", 64_000, 262_144, 4, "T4"), ("n2", 96_000, 393_216, 8, "V100M32"), ("n3", 96_000, 393_216, 0, ""),
            ("n1", 64_000, 262_144, 4, "T4"), ("n4", 96_000, 393_216, 8, "G2")]  # fmt: skip
    return table(["sn", "cpu_milli", "memory_mib", "gpu", "model"], rows)


BUCKETS = {"prompt": (500, 1000, 2000), "generation": (100, 200, 400)}


def scrape(finished: int = 100, *, at_ms: int | None = None) -> str:
    """Metrics of a vLLM server that finished so many requests of 600 and 120 tokens."""
    label, time = '{engine="0",model_name="org/chat-7b"}', "" if at_ms is None else f" {at_ms}"
    lines = ["# HELP vllm:num_requests_running Requests.", "# TYPE vllm:num_requests_running gauge"]
    lines += [f"vllm:num_requests_running{label} 7.0{time}", f"vllm:num_requests_waiting{label} 3.0{time}",
              f"vllm:kv_cache_usage_perc{label} 0.5{time}", f"vllm:prompt_tokens_total{label} {600 * finished}{time}",
              f"vllm:generation_tokens_total{label} {120 * finished}{time}",
              f"vllm:prefix_cache_queries_total{label} {600 * finished}{time}",
              f"vllm:prefix_cache_hits_total{label} {150 * finished}{time}",
              f'vllm:request_success_total{{finished_reason="stop",model_name="org/chat-7b"}} {finished}{time}',
              f"vllm:request_success_created{label} 1.78e+09{time}"]  # fmt: skip
    for name, mean, tokens in (("prompt", 600, "prompt"), ("generation", 120, "generation")):
        stem = f"vllm:request_{name}_tokens"
        low, middle, high = BUCKETS[tokens]
        for bound, share in ((low, 0.2), (middle, 0.8), (high, 1.0), ("+Inf", 1.0)):
            lines.append(f'{stem}_bucket{{le="{bound}",model_name="org/chat-7b"}} {share * finished}{time}')
        lines += [f"{stem}_sum{label} {mean * finished}{time}", f"{stem}_count{label} {finished}{time}"]
    stem = "vllm:time_to_first_token_seconds"
    lines += [f"{stem}_sum{label} {0.25 * finished}{time}", f"{stem}_count{label} {finished}{time}", "broken {",
              f"vllm:gauge{label} NaN"]  # fmt: skip
    return "\n".join(lines) + "\n"


def dcgm(name: str = "NVIDIA L4", free: int = 22_000) -> str:
    """Metrics of four devices of one machine."""
    lines = ["# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).", "# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
    figures = (("GPU_UTIL", 10, 20), ("POWER_USAGE", 50, 1), ("FB_USED", 1034, 0), ("FB_FREE", free, 0))
    for metric, first, step in figures:
        for n in range(4):
            labels = f'gpu="{n}",UUID="GPU-{n}",modelName="{name}",Hostname="h1"'
            lines.append(f"DCGM_FI_DEV_{metric}{{{labels}}} {first + step * n}")
    return "\n".join(lines) + "\n"


def answer(*series: dict[str, Any], form: str = "matrix") -> str:
    """An answer of Prometheus."""
    return json.dumps({"status": "success", "data": {"resultType": form, "result": list(series)}})


START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday


def counter(name: str, values: Sequence[float | str], step_s: float = 900.0, **labels: str) -> dict[str, Any]:
    """A series of a range."""
    times = [(START + timedelta(seconds=step_s * n)).timestamp() for n in range(len(values))]
    return {"metric": {"__name__": name, "model_name": "org/chat-7b", **labels},
            "values": [[time, str(value)] for time, value in zip(times, values)]}  # fmt: skip


def day_of_load(days: int = 1) -> str:
    """Requests that come at night at 10 an hour and from 12:00 on at 30 an hour; prompts of 400, answers of 100."""
    total, found = 0.0, [0.0]
    for quarter in range(96 * days):
        total += (30 if quarter % 96 >= 48 else 10) / 4
        found.append(total)
    return answer(counter("vllm:request_success_total", found, finished_reason="stop"),
                  counter("vllm:prompt_tokens_total", [400 * each for each in found]),
                  counter("vllm:generation_tokens_total", [100 * each for each in found]))  # fmt: skip


def triton() -> str:
    """Metrics of Triton."""
    values = {"request_success": 90, "request_failure": 10, "count": 200, "exec_count": 50, "queue_duration_us": 900,
              "compute_infer_duration_us": 180_000}  # fmt: skip
    lines = ["# TYPE nv_inference_count counter"]
    lines += [f'nv_inference_{name}{{model="bert",version="1"}} {value}' for name, value in values.items()]
    return "\n".join(lines) + "\n"


def counters() -> str:
    """What dcgm-exporter is told to collect; a line that is none."""
    return ("# Format\n# DCGM FIELD, type, help\n\nDCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (in %).\n"
            "DCGM_FI_DEV_FB_USED, gauge, Memory used.\nDCGM_FI_DEV_XID_ERRORS, gauge, Error.\nnothing\n")  # fmt: skip


def engine_series() -> str:
    """Statistics of an engine by second; a clock that jumps back."""
    columns = ["t", "prompt_throughput", "gen_throughput", "running", "waiting", "kv_cache_pct"]
    rows = [(n + 1.0, 1000.0, 50.0 * n, n, 0, 10.0) for n in range(10)]
    return table(columns, [*rows, (3.0, 1.0, 1.0, 1, 0, 1.0)])


# name -> kind, and how a file of it is made
SMALL: Mapping[str, tuple[str, Callable[[], str | bytes]]] = {
    "acme.csv": ("job-trace", acme),
    "pods.csv": ("job-trace", pods),
    "pai.csv": ("job-trace", pai),
    "jobs.jsonl": ("job-trace", jobs_json),
    "philly.json": ("job-trace-philly", philly),
    "gavel.trace": ("job-trace-gavel", gavel),
    "runtimes.csv": ("job-runtimes", runtimes),
    "summary.csv": ("cluster-summary", summary),
    "machines.csv": ("node-table", machines),
    "vllm.prom": ("metrics-scrape", scrape),
    "dcgm.prom": ("metrics-scrape", dcgm),
    "triton.prom": ("metrics-scrape", triton),
    "range.json": ("metrics-range", day_of_load),
    "counters.csv": ("dcgm-counters", counters),
    "series.csv": ("engine-series", engine_series),
}
