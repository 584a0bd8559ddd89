"""Real files of each format, from the folder that PLAN_SAMPLES names; the campaign reads them where they lie."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from planner.reading.kinds import read
from planner.reading.source import Source

SAMPLES = Path(os.environ.get("PLAN_SAMPLES", ""))
FILES = sorted(SAMPLES.glob("*/*")) if os.environ.get("PLAN_SAMPLES") else []
# vocabularies alone: their headers hold no tensor, which is said
NO_ROWS = {"ggml-vocab-bert-bge_first64k.gguf", "ggml-vocab-llama-spm_first64k.gguf"}
pytestmark = [pytest.mark.campaign, pytest.mark.skipif(not FILES, reason="PLAN_SAMPLES names no folder of samples")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_sample_is_recognised_and_taken_or_listed(path: Path) -> None:
    reading = read(Source(path))
    assert (reading.taken + reading.skipped.count > 0) == (path.name not in NO_ROWS)
    assert all(count > 0 and line > 0 for count, line in reading.skipped.reasons.values())


TABLES = [
    ("azure_2023_code.csv", "TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    ("azure_2024_conv_sample.csv", "TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    ("burstgpt_v1_sample.csv", "Timestamp", "Request tokens", "Response tokens"),
    ("vidur_splitwise_conv.csv", "arrived_at", "num_prefill_tokens", "num_decode_tokens"),
    ("mooncake_conversation.jsonl", "timestamp", "input_length", "output_length"),
]


@pytest.mark.parametrize(("name", "time", "given", "made"), TABLES)
def test_figures_are_those_of_pandas(name: str, time: str, given: str, made: str) -> None:
    path = SAMPLES / "request_trace" / name
    frame = pd.read_json(path, lines=True, dtype=False) if name.endswith("jsonl") else pd.read_csv(path)
    frame = frame[(frame[given] > 0) & (frame[made] > 0)]
    if pd.api.types.is_numeric_dtype(frame[time]):
        at = frame[time].to_numpy("float64") / (1e3 if name.startswith("mooncake") else 1.0)
    else:
        at = pd.to_datetime(frame[time]).to_numpy("datetime64[ns]").astype("int64") / 1e9
    reading = read(Source(path))
    found = {each.label: float(each.value) for each in reading.look}
    assert reading.taken == len(frame)
    assert found["rate"] == pytest.approx((len(frame) - 1) / (at.max() - at.min()), rel=1e-4)
    for label, column in (("prompt", given), ("answer", made)):
        assert found[f"{label}, mean"] == pytest.approx(frame[column].mean(), rel=1e-4)
        assert found[f"{label}, p95"] == pytest.approx(frame[column].quantile(0.95), rel=1e-4)


BILLS = [
    ("billing_focus/focus_1.0_sample_a.csv", "BilledCost", "BillingCurrency", "ServiceName", "ChargePeriodStart"),
    ("billing_focus/focus_1.2_aws_rows.csv", "BilledCost", "BillingCurrency", "ServiceName", "ChargePeriodStart"),
    ("billing_focus/focus_validator_all_pass.csv", "BilledCost", "BilledCurrency", "ServiceName", "ChargePeriodStart"),
    ("billing_cloud/aws_cur_anonymous_a.csv", "lineItem/UnblendedCost", "lineItem/CurrencyCode",
     "lineItem/ProductCode", "lineItem/UsageStartDate"),
    ("billing_cloud/azure_costreport_nise.csv", "CostInBillingCurrency", "BillingCurrency", "MeterCategory", "Date"),
    ("billing_cloud/azure_ea_export_anonymous.csv", "CostInBillingCurrency", "BillingCurrencyCode", "MeterCategory",
     "Date"),
    ("billing_cloud/azure_payg_headers.csv", "PreTaxCost", "Currency", "MeterCategory", "UsageDateTime"),
    ("billing_cloud/gcp_billing_export_nise.csv", "cost", "currency", "service.description", "usage_start_time"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "cost", "currency", "service", "time"), BILLS)
def test_spend_is_that_of_pandas(name: str, cost: str, currency: str, service: str, time: str) -> None:
    frame = pd.read_csv(SAMPLES / name)
    frame["day"] = pd.to_datetime(frame[time], format="mixed").dt.strftime("%Y-%m-%d")
    sums = frame.groupby([currency, "day", service])[cost].sum().to_dict()
    reading = read(Source(SAMPLES / name))
    found = pd.read_csv(io.StringIO(reading.pieces[0].text)).set_index(["currency", "day", "service"])["cost"].to_dict()
    assert (reading.taken, reading.skipped.count) == (len(frame), 0)
    assert found == pytest.approx(sums, rel=1e-9, abs=1e-12)


def test_hours_of_devices_are_those_of_pandas() -> None:
    path = SAMPLES / "billing_k8s" / "ocp_gpu_usage_nise.csv"
    frame = pd.read_csv(path)
    found = {each.label: each.value for each in read(Source(path)).look}
    assert found["GPU-hours"] == pytest.approx(frame["gpu_pod_uptime"].sum() / 3600, rel=1e-9)
    assert found["accelerators"] == len(frame[["node", "gpu_uuid"]].drop_duplicates())


def test_states_of_nodes_are_those_of_pandas() -> None:
    path = SAMPLES / "cluster_slurm" / "sinfo.txt"
    states = pd.read_csv(path, header=None)[1].str.rstrip("*~#!%$@+^-").value_counts()
    found = {each.label: each.value for each in read(Source(path)).look}
    assert {label.removeprefix("nodes "): value for label, value in found.items() if " " in label} == states.to_dict()


def lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.strip()]


def whole(path: Path) -> Any:
    return json.loads(path.read_text())


# file -> how many rows it has, counted without the reader
ROWS: dict[str, Callable[[Path], int]] = {
    **{f"billing_cloud/{name}.csv": lambda path: len(pd.read_csv(path)) for name in (
        "aws_cur_anonymous_a", "azure_costreport_nise", "azure_ea_export_anonymous", "azure_payg_headers",
        "gcp_billing_export_nise")},
    **{f"billing_focus/{name}.csv": lambda path: len(pd.read_csv(path)) for name in (
        "focus_1.0_sample_a", "focus_1.2_aws_rows", "focus_validator_all_pass")},
    "billing_k8s/ocp_gpu_usage_nise.csv": lambda path: len(pd.read_csv(path)),
    "billing_k8s/opencost_allocation_example.json": lambda path: sum(map(len, whole(path)["data"])),
    "billing_k8s/opencost_custom_pricing_schema.csv": lambda path: len(pd.read_csv(path)),
    "cluster_metrics/dcgm_default_counters.csv": lambda path: len([x for x in lines(path) if x[0] != "#"]),
    "cluster_metrics/dcgm_metrics_healthy.prom": lambda path: len([x for x in lines(path) if x[0] != "#"]),
    "cluster_metrics/prometheus_api_response.json": lambda path: len(whole(path)["data"]["result"]),
    "cluster_metrics/triton_metrics_fixture.prom": lambda path: len([x for x in lines(path) if x[0] != "#"]),
    "cluster_metrics/vllm_0.25.1_metrics_loaded.txt": lambda path: len([x for x in lines(path) if x[0] != "#"]),
    "cluster_metrics/vllm_timeseries_rtx4090.csv": lambda path: len(pd.read_csv(path)),
    "cluster_sky/sky_show_gpus_runpod.txt": lambda path: len([x for x in lines(path) if re.search(r"\d,|\d$", x)]),
    "cluster_slurm/sacct_full_columns_pipe.csv": lambda path: len(lines(path)) - 1,
    "cluster_slurm/sinfo.txt": lambda path: len(lines(path)),
    "cluster_traces/acme_cluster_summary.csv": lambda path: len(pd.read_csv(path)),
    "cluster_traces/acme_kalos_jobs_normalised.jsonl": lambda path: len(lines(path)),
    "cluster_traces/alibaba_gpu2020_philly_runtime.csv": lambda path: len(pd.read_csv(path)),
    "cluster_traces/alibaba_gpu2023_node_list.csv": lambda path: len(pd.read_csv(path)),
    "cluster_traces/alibaba_gpu2023_pod_list.csv": lambda path: len(pd.read_csv(path)),
    "cluster_traces/gavel_msr.trace": lambda path: len(lines(path)),
    "k8s_nodes/gpu_node_list.json": lambda path: len(whole(path)),
    "k8s_nodes/gpu_pod_list.json": lambda path: len(whole(path)),
    "nvidia_smi/a100-sxm4-v12.xml": lambda path: path.read_text().count("<gpu id="),
    "nvidia_smi/gpu_post_run_query.csv": lambda path: len(lines(path)) - 1,
    "nvidia_smi/h200_mig_nvidia-smi.txt": lambda path: 1,
    "nvidia_smi/query_gpu.csv": lambda path: len(lines(path)) - 1,
    "nvidia_smi/tesla-t4.xml": lambda path: path.read_text().count("<gpu id="),
    "price_cloud/aws_reserved_offerings.json": lambda path: len(whole(path)),
    "price_cloud/azure_retail_gpu_prices.json": lambda path: len(whole(path)),
    "price_cloud/gcp_gpu_prices_normalized.json": lambda path: len(whole(path)),
    "price_cloud/gpuhunt_catalog_v2_test.csv": lambda path: len(pd.read_csv(path)),
    "price_cloud/llm_d_planner_gpu_catalog.json": lambda path: len(whole(path)["gpu_types"]),
    "price_cloud/opencost_gcp_default_prices.json": lambda path: len(whole(path)),
    "price_cloud/skypilot_accelerators_parsed.csv": lambda path: len(pd.read_csv(path)),
    "price_cloud/skypilot_lambda_vms_v8.csv": lambda path: len(pd.read_csv(path)),
    "price_llm/litellm_1.55.0_model_prices_excerpt.json": lambda path: len(whole(path)),
}  # fmt: skip


def test_rows_are_counted_of_every_sample_of_clusters_and_prices() -> None:
    folders = ("billing_", "cluster_", "k8s_nodes", "nvidia_smi", "price_")
    there = {f"{path.parent.name}/{path.name}" for path in FILES if path.parent.name.startswith(folders)}
    assert there <= set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_taken_or_listed(name: str) -> None:
    reading = read(Source(SAMPLES / name))
    assert reading.taken + reading.skipped.count == ROWS[name](SAMPLES / name)


def looks(name: str) -> dict[str, Any]:
    return {each.label: each.value for each in read(Source(SAMPLES / name)).look}


def test_gpu_hours_of_jobs_are_those_of_pandas() -> None:
    frame = pd.read_json(SAMPLES / "cluster_traces/acme_kalos_jobs_normalised.jsonl", lines=True)
    found = looks("cluster_traces/acme_kalos_jobs_normalised.jsonl")
    assert found["GPU-hours"] == pytest.approx((frame["gpu_count"] * frame["e2e_latency_s"]).sum() / 3600, rel=1e-9)
    assert found["wait before a start, mean"] == pytest.approx(frame["queue_wait_s"].mean(), rel=1e-9)

    frame = pd.read_csv(SAMPLES / "cluster_traces/alibaba_gpu2023_pod_list.csv").dropna(subset=["scheduled_time"])
    seconds, share = frame["deletion_time"] - frame["scheduled_time"], frame["num_gpu"] * frame["gpu_milli"] / 1000
    found = looks("cluster_traces/alibaba_gpu2023_pod_list.csv")
    assert found["GPU-hours"] == pytest.approx((share * seconds).sum() / 3600, rel=1e-9)
    assert found["jobs with GPUs"] == (frame["num_gpu"] > 0).sum()

    frame = pd.read_csv(SAMPLES / "cluster_traces/gavel_msr.trace", sep="\t", header=None)
    found = looks("cluster_traces/gavel_msr.trace")
    assert found["jobs a day"] == pytest.approx((len(frame) - 1) / (frame[5].max() - frame[5].min()) * 86_400, rel=1e-9)


def test_machines_of_alibaba_are_those_of_pandas() -> None:
    frame = pd.read_csv(SAMPLES / "cluster_traces/alibaba_gpu2023_node_list.csv")
    found = looks("cluster_traces/alibaba_gpu2023_node_list.csv")
    assert found["accelerators"] == frame["gpu"].sum()
    assert found["of them t4"] == frame[frame["model"] == "T4"]["gpu"].sum()


def test_metrics_are_those_of_pandas() -> None:
    frame = pd.read_csv(SAMPLES / "cluster_metrics/vllm_timeseries_rtx4090.csv")
    found = looks("cluster_metrics/vllm_timeseries_rtx4090.csv")
    assert found["answer tokens, mean"] == pytest.approx(frame["gen_throughput"].mean(), rel=1e-9)
    assert found["running at once, p95"] == pytest.approx(frame["running"].quantile(0.95), rel=1e-9)

    text = (SAMPLES / "cluster_metrics/vllm_0.25.1_metrics_loaded.txt").read_text()
    values = pd.Series({key: float(value) for key, value in re.findall(r"(?m)^vllm:(\w+)\{.*\} (\S+)$", text)})
    found = looks("cluster_metrics/vllm_0.25.1_metrics_loaded.txt")
    for label, stem in (("TTFT, mean", "time_to_first_token_seconds"), ("TPOT, mean", "inter_token_latency_seconds"),
                        ("prompt, mean (opt-125m-tp2)", "request_prompt_tokens")):  # fmt: skip
        assert found[label] == pytest.approx(values[f"{stem}_sum"] / values[f"{stem}_count"], rel=1e-9)

    text = (SAMPLES / "cluster_metrics/dcgm_metrics_healthy.prom").read_text()
    busy = pd.Series(re.findall(r"(?m)^DCGM_FI_DEV_GPU_UTIL\{.*\} (\S+)$", text)).astype(float)
    assert looks("cluster_metrics/dcgm_metrics_healthy.prom")["device busy, mean"] == pytest.approx(busy.mean())


def test_prices_are_those_of_pandas() -> None:
    frame = pd.read_csv(SAMPLES / "price_cloud/skypilot_lambda_vms_v8.csv").dropna(subset=["AcceleratorName"])
    each = (frame["Price"] / frame["AcceleratorCount"]).groupby(frame["AcceleratorName"]).min()
    found = looks("price_cloud/skypilot_lambda_vms_v8.csv")
    assert found["v100-sxm2-16gb on demand, cheapest"] == pytest.approx(each["V100"])
    assert found["rtx-a6000 on demand, cheapest"] == pytest.approx(each["A6000"])

    frame = pd.read_json(SAMPLES / "price_cloud/azure_retail_gpu_prices.json")
    frame = frame[~frame["productName"].str.contains("Windows") & frame["skuName"].str.contains("ND96isrH100v5")]
    found = looks("price_cloud/azure_retail_gpu_prices.json")
    assert found["h100-sxm-80gb on demand, dearest"] == pytest.approx(frame["pricePerHour"].max() / 8)

    prices = pd.read_json(SAMPLES / "price_llm/litellm_1.55.0_model_prices_excerpt.json", orient="index")
    chat = prices[(prices["mode"] == "chat") & (prices.index != "sample_spec")]
    found = looks("price_llm/litellm_1.55.0_model_prices_excerpt.json")
    assert found["prompt, dearest of chat"] == pytest.approx(chat["input_cost_per_token"].astype(float).max() * 1e6)


def test_costs_and_nodes_of_kubernetes_are_those_of_pandas() -> None:
    path = SAMPLES / "billing_k8s" / "opencost_allocation_example.json"
    frame = pd.concat(pd.DataFrame(window).T for window in whole(path)["data"])
    assert looks("billing_k8s/opencost_allocation_example.json")["spend"] == pytest.approx(frame["totalCost"].sum())

    frame = pd.DataFrame(each["status"] for each in whole(SAMPLES / "k8s_nodes" / "gpu_node_list.json"))
    ready = frame["conditions"].map(lambda rows: {"type": "Ready", "status": "True"}.items() <= rows[0].items())
    held = frame["allocatable"].map(lambda each: int(each.get("nvidia.com/gpu", 0)))
    assert looks("k8s_nodes/gpu_node_list.json")["accelerators"] == held[ready].sum()
