"""Every comparison of a job's row, its band and its mix: one within the bound, at it, and one beyond it."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from planner.architecture.load import load_model
from planner.checks import allocation, bands, parted
from planner.checks.facts import OfferFacts
from planner.checks.findings import Finding
from tests.worlds import GIB, catalog, device, job, offer, scenario, shape

STOP = [Finding("stop", "the layout is looked at: nothing before it was wrong")]
SPLIT = {"dp": 1, "tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "global_batch_sequences": 64,
         "micro_batches": 64, "sharding": "none", "recompute": "none"}  # fmt: skip


def told(findings: Iterable[Finding]) -> list[str]:
    return [one.reference for one in findings]


def check(**asked: Any) -> allocation.AllocationCheck:
    plan = scenario([job(model="llama-3.1-8b", **{"deadline": "2 h", **asked})])
    return allocation.AllocationCheck(scenario=plan, catalog=catalog(), arch=load_model("llama-3.1-8b"))


def facts(where: Any = None, of: Any = None) -> OfferFacts:
    one = where or shape()
    return OfferFacts(offer(), one, of or device(), None, one.inter_node_bytes_per_s_per_device)


def trained(count: int, jobs: int, here: OfferFacts | None = None, **asked: Any) -> list[str]:
    """What is wrong with a row before its layout is looked at."""
    one = check(**asked)
    row = {"count": count, "jobs": jobs, "offer": "x", "layout": SPLIT}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(allocation, "training_layout_findings", lambda *_, **__: STOP)
        return told(one._training(one.scenario.training[0], row, here or facts()))


@pytest.mark.parametrize(
    ("count", "jobs", "found"),
    [
        (4, 2, "stop"),
        (4, 1, "stop"),
        (4, 3, "wrong-count"),
        (4, 0, "wrong-count"),
        (0, 0, "wrong-count"),
        (1, 2, "wrong-count"),
    ],
)
def test_shapes_are_as_many_for_each_job(count: int, jobs: int, found: str) -> None:
    assert trained(count, jobs) == [found]


@pytest.mark.parametrize(("count", "found"), [(2, "stop"), (4, "network-unknown")])
def test_a_job_spans_shapes_where_their_network_is_known(count: int, found: str) -> None:
    alone = facts(shape(inter_node_bytes_per_s_per_device=None))
    assert trained(count, 2, alone) == [found]


@pytest.mark.parametrize(("count", "found"), [(4, ["stop"]), (6, ["stop"]), (8, ["limit-exceeded", "stop"])])
def test_no_more_shapes_are_connected_than_can_be(count: int, found: list[str]) -> None:
    """Three shapes to a job, two jobs."""
    assert trained(count, 2, facts(shape(max_shapes_per_job=3))) == found


def test_software_and_number_format_are_those_of_the_device() -> None:
    assert trained(1, 1, framework="megatron") == ["stop"]
    assert trained(1, 1, framework="neuron") == ["not-allowed", "stop"]
    assert trained(1, 1, facts(of=device(peak_flop_per_s={"fp32": 1e15})), precision="bf16") == ["not-allowed"]
    assert trained(1, 1, facts(of=device(peak_flop_per_s={"bf16": 0.0})), precision="bf16") == ["not-allowed"]


@pytest.mark.parametrize(("asked_gib", "held_gib", "found"), [(9.9, 10, 0), (10, 10, 0), (10.1, 10, 1), (1, None, 1)])
def test_hosts_hold_what_is_offloaded(
    asked_gib: float, held_gib: float | None, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = SimpleNamespace(total=asked_gib * GIB)
    monkeypatch.setattr(allocation, "host_bytes", lambda *_: moved)
    monkeypatch.setattr(allocation, "host_bytes_per_device", lambda _: None if held_gib is None else held_gib * GIB)
    one, layout = check(offload=["optimizer"], sharding="zero-1"), SimpleNamespace()
    assert told(one._hosts(one.scenario.training[0], layout, facts())) == ["does-not-fit"] * found  # type: ignore[arg-type]
    plain = check()
    assert told(plain._hosts(plain.scenario.training[0], layout, facts())) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(("jobs", "found"), [(1, 1), (2, 0), (3, 1)])
def test_jobs_are_as_many_as_asked(jobs: int, found: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = check(count=2)
    for name in ("_offer", "_training", "_mixes"):
        monkeypatch.setattr(allocation.AllocationCheck, name, lambda *_: [])
    monkeypatch.setattr(allocation, "row_timing_findings", lambda *_: [])
    rows = [{"offer": "north/one:r1:on_demand", "price_model": "on_demand", "jobs": jobs}]
    assert told(one.workload(one.scenario.training[0], {"allocations": rows})) == ["wrong-count"] * found
    assert (
        told(one.workload(one.scenario.training[0], {"allocations": [{**rows[0], "offer": "y"}]}))[0] == "unknown-offer"
    )


# ---- bands


@pytest.mark.parametrize(("rows", "stated", "found"), [(0, False, 0), (0, True, 1), (1, False, 1)])
def test_rows_and_workload_agree_that_there_is_a_band(rows: int, stated: bool, found: int) -> None:
    workload = {"allocations": [{"error_band": {"x": 1}}] * rows, "error_band": {"x": 1} if stated else None}
    assert told(bands.workload_band_findings("w", workload)) == ["wrong-band"] * found


@pytest.mark.parametrize(("median", "status", "found"), [(99, "optimal", 0), (100, "optimal", 0), (101, "optimal", 1),
                                                         (101, "feasible", 0)])  # fmt: skip
def test_margins_never_make_an_optimum_cheaper(median: int, status: str, found: int) -> None:
    band = dict.fromkeys(("p10", "p50", "p90", "at_confidence"), 1e-4)
    margins = {"confidence": 0.0, "median_cost_microusd": median, "median_cost_usd": median / 1e6,
               "margins_microusd": 100 - median, "margins_usd": (100 - median) / 1e6}  # fmt: skip
    document = {
        "status": status, "contracts": [], "copies": [],
        "workloads": [{"cost_usd": 1e-4, "error_band": None}],
        "summary": {"cost_band": band, "margins": margins, "cost_microusd": 100},
    }  # fmt: skip
    assert told(bands.total_band_findings(document)) == ["wrong-band"] * found


# ---- mixes


def mix(**asked: Any) -> parted.MixCheck:
    plan = scenario([job(deadline="2 h", **{"mix_within_job": True, **asked})])
    arch = load_model("llama-3.1-8b")
    return parted.MixCheck(scenario=plan, catalog=catalog(), arch=arch, job=plan.training[0], under_way=None)


@pytest.mark.parametrize(("groups", "found"), [(1, 1), (2, 0), (4, 0), (5, 1)])
def test_a_mix_is_of_two_to_four_offers(groups: int, found: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parted.MixCheck, "_shares", lambda *_: STOP)
    rows = [({"offer": f"o{number}", "jobs": 1, "count": 1}, facts()) for number in range(groups)]
    assert told(mix().findings(rows)) == (["wrong-mix"] if found else ["stop"])
    assert told(mix().findings([rows[0], rows[0]])) == ["wrong-mix"]
    assert told(mix(mix_within_job=False).findings([*rows, *rows][:2]))[0] == "not-allowed"


@pytest.mark.parametrize(("jobs", "count", "found"), [(1, 3, 0), (2, 4, 0), (2, 3, 1), (0, 3, 1)])
def test_the_shapes_of_a_group_are_as_many_for_each_job(
    jobs: int, count: int, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parted.MixCheck, "_shares", lambda *_: STOP)
    rows = [({"offer": name, "jobs": jobs, "count": count}, facts()) for name in ("a", "b")]
    assert told(mix().findings(rows)) == (["wrong-mix"] if found else ["stop"])


@pytest.mark.parametrize(
    ("batch", "quantum", "nearest"),
    [(64, 1, True), (63, 1, False), (63, 9, True), (72, 9, False), (60, 12, True), (56, 8, False), (60, 20, True)],
)
def test_the_batch_of_a_mix_is_the_nearest_that_can_be_shared(batch: int, quantum: int, nearest: bool) -> None:
    """64 sequences are asked for; a tenth more or less will do."""
    assert mix()._nearest(batch, quantum) == nearest


@pytest.mark.parametrize(("batch", "within"), [(63, False), (64, True), (96, True), (128, True), (129, False)])
def test_any_batch_of_a_range_will_do(batch: int, within: bool) -> None:
    asked = {"global_batch": {"min": "64 sequences", "max": "128 sequences"}}
    assert mix(**asked)._nearest(batch, 1) == within
