"""A fleet with a table of rates of its own: no model, no device of the catalog, from files to a verified plan."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.catalog.load import load_catalog
from planner.errors import InputError, PlanError
from planner.plan.document import digest_of
from tests.optimize.test_mix import PRICES, RATES, SHARES, lines
from tests.verified import errors, follow_schema
from tests.worlds import fleet, scenario

SCENARIO = """\
schema: plan/v1
name: toy
horizon: 1 h
serving:
  - {name: toy, requests: %s /s, histogram: mix.csv, profile: rates.csv,
     peak_factor: 1, target_load: 100 %%, spare_replicas: %d}
"""
BUCKETS = ("short,short", "short,long", "long,short", "long,long")


def write(folder: Path, workload: str, requests_per_s: float, spares: int = 0) -> Path:
    shares = [f"{bucket},{share}" for bucket, share in zip(BUCKETS, SHARES[workload])]
    (folder / "mix.csv").write_text("\n".join(["input_bucket,output_bucket,fraction", *shares]) + "\n")
    rows = ["offer,price_usd_per_hour,input_bucket,output_bucket,max_requests_per_s"]
    for name, price, rates in zip(("A10G", "A100-80GB"), PRICES, RATES):
        rows += [f"{name},{price / 1e6},{bucket},{rate}" for bucket, rate in zip(BUCKETS, rates)]
    (folder / "rates.csv").write_text("\n".join(rows) + "\n")
    (folder / "toy.yaml").write_text(SCENARIO % (requests_per_s, spares))
    return folder / "toy.yaml"


def solved(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(api.solve(api.load_scenario(path)).to_json())
    return document


def test_plan_costs_exactly_what_the_mix_does(tmp_path: Path) -> None:
    for row in lines():
        document = solved(write(tmp_path, row["workload"], float(row["requests_per_s"])))
        cost = document["summary"]["cost_microusd"]
        assert (document["status"], cost) == ("optimal", round(float(row["divisible"]) * 1e6)), row


def test_document_says_what_is_known_and_nothing_else(tmp_path: Path) -> None:
    document = solved(write(tmp_path, "shipped", 30))
    follow_schema(document)
    first, second = document["workloads"][0]["allocations"]
    assert [(row["device"], row["provider"], row["devices"]) for row in (first, second)] == [
        ("A100-80GB", "given", 1),
        ("A10G", "given", 1),
    ]
    assert first["usd_per_million_output_tokens_full"] is None  # lengths are unknown
    assert first["price_source"] == "rates.csv"
    sent = [a + b for a, b in zip(first["routed_requests_per_s"], second["routed_requests_per_s"])]
    assert sent == pytest.approx([6, 3, 15, 6])
    assert document["single_kind"]["device"] == "A100-80GB"
    assert document["single_kind"]["cost_microusd"] == 7_340_000  # two of them; 4.68 for the mix


def test_spares_of_each_kind_in_use(tmp_path: Path) -> None:
    """With one spare, losing the only A100 would leave nothing: two of them, or more small ones."""
    alone, spared = (solved(write(tmp_path, "shipped", 30, spares)) for spares in (0, 1))
    assert spared["summary"]["cost_microusd"] > alone["summary"]["cost_microusd"]
    assert errors(spared) == []


def test_a_load_that_is_whole_needs_no_more(tmp_path: Path) -> None:
    """Twelve of the small ones are fully busy; with the spare these are thirteen, not fourteen."""
    document = solved(write(tmp_path, "shipped", 30, 1))
    assert [one["count"] for one in document["workloads"][0]["alternatives"]] == [3, 13]


CHANGES = {
    "price": lambda row: row.update(price_microusd_per_hour=row["price_microusd_per_hour"] - 1),
    "cost": lambda row: row.update(cost_microusd=row["cost_microusd"] - 1),
    "rate": lambda row: row.update(bucket_requests_per_s=[2 * rate for rate in row["bucket_requests_per_s"]]),
    "routing": lambda row: row.update(routed_requests_per_s=[0.0, *row["routed_requests_per_s"][1:]]),
    "offer": lambda row: row.update(offer="given:toy:H100"),
    "device": lambda row: row.update(device="H100"),
    "load": lambda row: row.update(load_at_peak=0.5),
}


ALTERNATIVES = {
    "count": 2,
    "devices": 2,
    "replicas": 2,
    "cost_microusd": 7_340_000,
    "cost_usd": 7.34,
    "hours": 2.0,
    "layout": {"tp": 2, "pp": 1, "dp": 1, "ep": 1, "cp": 1},
    "note": "whole run",
    "tie": True,
    "device": "H100",
    "offer": "given:toy:A10G",
}


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_changed_alternative_is_found_out(name: str, tmp_path: Path) -> None:
    """Three of the dear ones alone, one of them spare."""
    document = solved(write(tmp_path, "shipped", 30, 1))
    document["workloads"][0]["alternatives"][0][name] = ALTERNATIVES[name]
    document["sha256"] = digest_of(document)
    assert errors(document)


@pytest.mark.parametrize("name", CHANGES)
def test_changed_plan_is_found_out(name: str, tmp_path: Path) -> None:
    document = copy.deepcopy(solved(write(tmp_path, "shipped", 30)))
    CHANGES[name](document["workloads"][0]["allocations"][0])
    document["sha256"] = digest_of(document)
    assert errors(document)


MEASURED = {"model": "llama-3.1-70b", "input_tokens": 1500, "output_tokens": 400, "qpm": 300, "peak_factor": 2}
EIGHT_H100 = {"allow": ["h100-sxm-80gb"], "providers": ["hyperstack"]}


def test_what_was_measured_takes_as_many_sequences_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a 70B in 16 bits one sequence fits on two H100, which make it 47 tokens/s; four have room for 242."""
    asked = fleet(**MEASURED, throughput="700 tokens/s")
    document = api.solve(scenario([], [asked], hardware=EIGHT_H100)).document
    (row,) = document["workloads"][0]["allocations"]
    assert (row["layout"]["tp"], row["batch"]) == (4, 242)
    assert errors(document, load_catalog()) == []
    two = {"layout": {"tp": 2, "pp": 1}, "qpm": 6}
    said = "memory: 1 sequence at once on h100-sxm-80gb cannot make 700 tokens/s a device"
    with pytest.raises(InputError, match=said):
        api.solve(scenario([], [{**asked, **two}], hardware=EIGHT_H100))
    for measured in (190, 197):  # eight in a step of 20.7 ms make 193 on each of the two
        slower = scenario([], [{**asked, **two, "throughput": f"{measured} tokens/s"}], hardware=EIGHT_H100)
        if measured < 193:
            assert api.solve(slower).status == "optimal"
            continue
        with pytest.raises(InputError, match="cannot make 197 tokens/s a device"):
            api.solve(slower)
    monkeypatch.setattr("planner.candidates.serving_rates.can_make", lambda *_: np.True_)
    with pytest.raises(PlanError, match="is sent requests that it cannot serve"):  # by the plan's own check
        api.solve(scenario([], [{**asked, **two}], hardware=EIGHT_H100))


@pytest.mark.parametrize(("allow", "told"), [(["h100-sxm-80gb"], False), (["h100-sxm-80gb", "h200-sxm"], True)])
def test_a_throughput_that_counts_on_several_devices_says_so(allow: list[str], told: bool) -> None:
    asked = fleet(**MEASURED, throughput="700 tokens/s")
    document = api.solve(scenario([], [asked], hardware={"allow": allow})).document
    said = "fleet: 700 tokens/s a device are taken to hold on all 2 kinds of device that may be used"
    assert any(line.startswith(said) for line in document["warnings"]) == told


@pytest.mark.parametrize(
    ("formats", "said"),
    [
        ({"weights": "fp8", "kv_cache": "fp8"}, ""),
        ({"weights": "fp8", "kv_cache": "q8_0"}, "vllm keeps no cache in q8_0"),
        ({"weights": "fp8", "engine": "llama.cpp", "kv_cache": "fp16"}, "llama.cpp does not serve weights in fp8"),
    ],
)
def test_formats_that_were_measured_and_no_engine_has_are_told(formats: dict[str, str], said: str) -> None:
    """What somebody measured is planned; that no launch file is written for it was first told by `plan export`."""
    asked = fleet(**MEASURED, throughput="700 tokens/s", **formats)
    plan = api.solve(scenario([], [asked], hardware=EIGHT_H100))
    told = [line for line in plan.document["warnings"] if "whatever measured its throughput" in line]
    assert [line.partition(": ")[2].partition(" (")[0] for line in told] == ([said] if said else [])
    form = "llama.cpp" if "engine" in formats else "vllm"
    assert bool(plan.export(form).files) == (not said)
