"""Real files of each format, from the folder that PLAN_SAMPLES names; the campaign reads them where they lie."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pandas as pd
import pytest

from planner.reading.registry import read
from planner.reading.source import Source

SAMPLES = Path(os.environ.get("PLAN_SAMPLES", ""))
OURS = (
    "request_trace",
    "usage_api",
    "bench_",
    "train_log_",
    "train_golden_",
    "k8s_nodes",
    "nvidia_smi",
    "cluster_slurm",
    "billing_",
)
FILES = (
    sorted(path for path in SAMPLES.glob("*/*") if path.parent.name.startswith(OURS))
    if os.environ.get("PLAN_SAMPLES") else []
)  # fmt: skip
pytestmark = [pytest.mark.campaign, pytest.mark.skipif(not FILES, reason="PLAN_SAMPLES names no folder of samples")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_sample_is_recognised_and_taken_or_listed(path: Path) -> None:
    reading = read(Source(path))
    assert reading.taken + reading.skipped.count > 0
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
