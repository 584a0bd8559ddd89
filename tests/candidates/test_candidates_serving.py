"""Columns of fleets: units, replicas, spares and loads, by hand on a device that carries ten requests a second."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import api
from planner.api import load_model
from planner.candidates.ledger import Ledger
from planner.candidates.money import cost_microusd
from planner.candidates.offers import Site, sites_of
from planner.candidates.program import PREFILL
from planner.candidates.serving import ServingTable, replica_layouts, resolve_serving, serving_table
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.estimate.kernels import left_behind
from planner.report.plan_formats import render_plan
from planner.scenario.schema import Scenario
from tests.tiers import settings
from tests.worlds import GIB, catalog, device, fleet, offer, scenario, shape

MICRO = 1_000_000
HORIZON_H = 730


def table(plan: Scenario, world: Catalog) -> tuple[ServingTable, Ledger]:
    ledger = Ledger(workload="fleet")
    sites = sites_of(plan, world, ledger)
    question = resolve_serving(plan.serving[0], load_model(plan.serving[0].model), plan, world)
    return serving_table(question, sites, ledger), ledger


def solve(world: Catalog, top: dict[str, Any] | None = None, **changes: Any) -> tuple[ServingTable, Ledger]:
    return table(scenario([], [fleet(**changes)], **(top or {})), world)


def drops(ledger: Ledger) -> dict[tuple[str, str], int]:
    return {(drop.reason, drop.what): drop.count for drop in ledger}


def site(world: Catalog, **hardware: Any) -> Site:
    return sites_of(scenario([], [fleet()], hardware=hardware), world, Ledger(workload="x"))[0]


def row(found: ServingTable, **wanted: int) -> int:
    """The row with this split."""
    matches = [i for i in range(len(found)) if wanted.items() <= found.layout_row(i).items()]
    assert len(matches) == 1, matches
    return matches[0]


# ---- one device, one replica, ten requests a second


def test_the_founding_rule() -> None:
    """output_tokens / throughput · QPM / 60 = 100 / 1000 · 660 / 60 = 1.1 devices: two whole ones."""
    found, _ = solve(catalog(), qpm=660)
    assert len(found) == 1
    assert found.requests_per_s.tolist() == [10.0]
    assert found.demand_micro_per_s == 11 * MICRO
    assert found.needed_units.tolist() == [2]
    assert found.demand_micro_per_s / MICRO / found.requests_per_s[0] == pytest.approx(100 / 1000 * 660 / 60)


@pytest.mark.parametrize(
    ("changes", "units"),
    [
        ({"qpm": 600}, 1),  # 10/s exactly
        ({"qpm": 601}, 2),
        ({"qpm": 3000}, 5),
        ({"qpm": 600, "peak_factor": 2}, 2),
        ({"qpm": 600, "peak_factor": 2.01}, 3),
        ({"qpm": 600, "target_load": 0.8}, 2),  # 8/s may be planned
        ({"qpm": 480, "target_load": 0.8}, 1),
        ({"qpm": 481, "target_load": 0.8}, 2),
        ({"qpm": 600, "spare_replicas": 1}, 2),
        ({"qpm": 600, "spare_replicas": 3}, 4),
        ({"qpm": 601, "spare_replicas": 1, "peak_factor": 2, "target_load": 0.5}, 6),  # ceil(20.03 / 5) + 1
        ({"qpm": 600, "min_replicas": 5}, 5),
        ({"qpm": 6000, "min_replicas": 5}, 10),
        ({"qpm": 0.001}, 1),
        ({"output_tokens": 200}, 2),
        ({"throughput": "500 tokens/s"}, 2),
    ],
)
def test_units_needed(changes: dict[str, Any], units: int) -> None:
    found, _ = solve(catalog(), **changes)
    assert found.needed_units.tolist() == [units]


def test_a_unit_costs_its_shapes_over_the_horizon() -> None:
    world = catalog(offers=[offer(dollars=1.0, region="r1"), offer(dollars=0.333333, region="r2")])
    found, _ = solve(world, {"horizon": "1 month"})
    assert found.horizon_hours == HORIZON_H
    assert dict(zip((one.offer.region for one in found.sites), found.cost_microusd)) == {
        "r1": 730 * MICRO,
        "r2": cost_microusd(1, 333_333, 730.0),
    }
    assert solve(world, {"horizon": "1 week"})[0].cost_microusd[0] == 168 * MICRO


@settings(max_examples=60)
@given(
    qpm=st.floats(min_value=0.1, max_value=1e4),
    peak=st.floats(min_value=1, max_value=10),
    load=st.floats(min_value=0.05, max_value=1),
    spares=st.integers(min_value=0, max_value=5),
    least=st.integers(min_value=0, max_value=20),
    devices=st.sampled_from([1, 2, 4, 8]),
)
def test_the_needed_units_carry_the_load_and_one_less_does_not(
    qpm: float, peak: float, load: float, spares: int, least: int, devices: int
) -> None:
    world = catalog(shapes=[shape(devices=devices)])
    found, _ = solve(world, qpm=qpm, peak_factor=peak, target_load=load, spare_replicas=spares, min_replicas=least)
    for i in range(len(found)):
        unit, replicas = int(found.capacity_micro_per_s[i]), int(found.replicas[i])
        each = unit // replicas

        def good(units: int, unit: int = unit, replicas: int = replicas, each: int = each) -> bool:
            return units * unit - spares * each >= found.demand_micro_per_s and units * replicas >= least

        units = int(found.needed_units[i])
        assert units >= 1
        assert good(units)
        assert units == 1 or not good(units - 1)
        assert found.max_units[i] >= units
        assert each <= 10 * load * MICRO * int(found.devices_per_replica(i)) + 1


# ---- replicas and shapes


def test_small_replicas_share_a_shape_and_large_ones_span_shapes() -> None:
    arch = load_model("llama-2-70b")  # 64 heads, 80 layers
    layout, nodes, replicas = replica_layouts(arch, site(catalog(shapes=[shape(devices=4)])))
    by_size = {(int(d), int(n), int(r)) for d, n, r in zip(layout.devices, nodes, replicas)}
    assert by_size == {(1, 1, 4), (2, 1, 2), (4, 1, 1), (8, 2, 1), (16, 4, 1), (32, 8, 1), (64, 16, 1)}
    assert max(layout.tp) == 4  # one fast domain
    assert max(layout.pp) == 16


@pytest.mark.parametrize(("weights", "cut"), [("fp8-block", True), ("fp8", False)])
def test_no_rank_holds_a_part_of_a_block_of_weights(weights: str, cut: bool) -> None:
    """vLLM does not start where the experts of Qwen3 235B (1536 wide) are split over eight in blocks of 128."""
    wide = catalog(shapes=[shape(devices=8)])
    found, ledger = solve(wide, model="qwen3-235b-a22b", weights=weights, throughput=None, estimator="analytic")
    layouts = [found.layout_row(i) for i in range(len(found))]
    assert layouts
    over = [one for one in layouts if one["tp"] * one["dp"] == 8 and one["ep"] == 1]
    dropped = [drop for drop in ledger if drop.reason == "blocks"]
    if not cut:
        assert over
        assert not dropped
        return
    assert not over
    assert dropped[0].count > 0
    assert "width of 1536 over 8 ranks is 192" in dropped[0].nearest


@pytest.mark.parametrize(("engine", "apart"), [("vllm", False), ("sglang", True)])
def test_stages_of_attention_ranks_lie_on_one_node_in_vllm(engine: str, apart: bool) -> None:
    """Over two nodes its attention ranks share out the nodes, and each keeps its stages together: the experts of a
    stage lie on both, where the plan had a node for each stage."""
    wide = catalog(shapes=[shape(devices=8)])
    asked = {"model": "llama-4-scout-text", "throughput": None, "estimator": "analytic", "engine": engine}

    def both(layout: str) -> bool:
        return len(solve(wide, layout=layout, **asked)[0]) > 0

    assert both("tp1 pp2 dp8") is apart
    assert both("tp1 pp2 dp4")  # within a node
    assert both("tp8 pp2 dp1")


def test_weights_of_eight_bits_are_in_blocks_where_the_repository_holds_them_so() -> None:
    """MiniMax M2.5 (1536 wide, fp8-block) as `weights: fp8` was planned over eight ranks, which vLLM refuses."""
    wide = catalog(shapes=[shape(devices=8)])
    asked = {"model": "minimax-m2.5", "weights": "fp8", "throughput": None, "estimator": "analytic"}
    found, ledger = solve(wide, **asked)
    layouts = [found.layout_row(i) for i in range(len(found))]
    assert layouts
    assert not [one for one in layouts if one["tp"] * one["dp"] == 8 and one["ep"] == 1]
    assert "blocks" in {drop.reason for drop in ledger}


def test_a_layout_that_no_engine_loads_leaves_no_way() -> None:
    """Where a pinned layout cuts blocks on every machine, the search ended in an error of our own."""
    asked = {"model": "deepseek-v3", "weights": "fp8-block", "engine": "sglang", "throughput": None}
    wide = catalog(shapes=[shape(devices=32)])
    found, ledger = solve(wide, estimator="analytic", layout={"tp": 16, "dp": 2, "ep": 32}, **asked)
    assert not len(found)
    assert "width of 18432 over 32 ranks is 576" in next(d.nearest for d in ledger if d.reason == "blocks")


def test_an_unknown_network_keeps_a_replica_inside_a_shape() -> None:
    world = catalog(shapes=[shape(devices=8, inter_node_bytes_per_s_per_device=None)])
    arch = load_model("llama-2-70b")
    layout, nodes, _ = replica_layouts(arch, site(world))
    assert max(layout.devices) == 8
    assert set(nodes.tolist()) == {1}
    assumed, nodes, _ = replica_layouts(arch, site(world, assume_inter_node="100 Gbit/s"))
    assert max(assumed.devices) == 128
    assert max(nodes) == 16


@pytest.mark.parametrize(("devices", "spans"), [(2, False), (8, True)])
def test_a_stated_network_is_that_of_whole_hosts(devices: int, spans: bool) -> None:
    """Kimi K2 was planned over sixteen virtual machines of two H200, and DeepSeek over sixteen of one H100."""
    real = load_catalog()
    own = next(
        one for one in real.shapes.values()
        if one.device == "h200-sxm" and one.devices == devices and one.inter_node_bytes_per_s_per_device is None
    )  # fmt: skip
    place = site(real, assume_inter_node="400 Gbit/s", allow=["h200-sxm"])
    assert place.owned is None
    rented = replace(place, shape=own, inter_node_bytes_per_s=50e9 / devices)
    _, nodes, _ = replica_layouts(load_model("kimi-k2"), rented)
    assert bool(max(nodes) > 1) is spans
    assert rented.made_for_replicas is spans
    _, nodes, _ = replica_layouts(load_model("kimi-k2"), rented, pinned={"tp": [2]}, stretched=True)
    assert max(nodes) > 1  # a layout of one's own is believed
    owned = site(
        real, owned=[{"shape": own.id, "count": 8, "price": "$1/h"}], assume_inter_node="400 Gbit/s", allow=["x"]
    )
    assert owned.made_for_replicas


def test_what_does_not_divide_leaves_devices_idle() -> None:
    layout, nodes, replicas = replica_layouts(load_model("llama-2-7b"), site(catalog(shapes=[shape(devices=6)])))
    found = {(int(d), int(n), int(r)) for d, n, r in zip(layout.devices, nodes, replicas)}
    assert found == {(1, 1, 6), (2, 1, 3), (4, 1, 1)}  # 8 devices would be one shape and a third


def test_whole_experts_are_spread_over_more_attention_ranks_than_a_node_has() -> None:
    """DeepSeek-V3 on GB200 within 50 ms costs least on sixteen ranks; eight were the most that was looked at."""
    place = site(catalog(shapes=[shape(devices=8)]), assume_inter_node="400 Gbit/s")
    layout, _, _ = replica_layouts(load_model("deepseek-v3"), place)
    sizes = {(int(dp), int(ep)) for tp, pp, dp, ep in zip(layout.tp, layout.pp, layout.dp, layout.ep) if tp == pp == 1}
    assert {(16, 16), (32, 32)} <= sizes
    assert (8, 1) in sizes  # within a node experts may be cut as well
    assert not {(16, 1), (32, 1)} & sizes
    fixed, _, _ = replica_layouts(load_model("deepseek-v3"), place, pinned={"dp": [16], "ep": [1]}, stretched=True)
    assert set(fixed.ep.tolist()) == {1}  # a layout of one's own is tried


def test_every_replica_layout_is_legal() -> None:
    world = load_catalog()
    for preset in ("llama-3.1-8b", "deepseek-v3", "gpt2-xl", "qwen3-30b-a3b", "mixtral-8x7b"):
        arch = load_model(preset)
        for one in ("h100-sxm-80gb", "tpu-v5e", "gb200-nvl72", "k80-12gb"):
            own = next(s for s in world.shapes.values() if s.device == one)
            place = site(world, owned=[{"shape": own.id, "count": 1, "price": "$1/h"}], allow=["nothing"])
            layout, nodes, replicas = replica_layouts(arch, place)
            rows = list(zip(layout.devices, layout.tp, layout.pp, layout.dp, layout.ep, nodes, replicas))
            assert len(rows) == len(set(map(tuple, rows))) > 0
            for devices, tp, pp, dp, ep, shapes, copies in rows:
                assert devices == tp * pp * dp
                assert all(group.query_heads % tp == 0 for group in arch.layers)
                assert pp <= arch.layer_count
                assert ep in (1, tp * dp)
                assert all(group.experts % ep == 0 for group in arch.layers)
                assert dp == 1 or arch.is_moe
                assert shapes * own.devices >= copies * devices
                assert shapes == 1 or (copies == 1 and shapes * own.devices == devices)


def test_units_of_shared_shapes_count_all_their_replicas() -> None:
    """Four devices a shape, 10/s each; 50/s with a spare need 60/s: two shapes, whatever the split."""
    world = catalog([device(memory_bytes=64 * GIB)], [shape(devices=4)])
    found, _ = solve(world, model="llama-3.2-1b", qpm=3000, spare_replicas=1)
    single, pair, whole = (row(found, tp=tp, pp=1) for tp in (1, 2, 4))
    assert [int(found.replicas[i]) for i in (single, pair, whole)] == [4, 2, 1]
    assert [int(found.capacity_micro_per_s[i]) for i in (single, pair, whole)] == [40 * MICRO] * 3
    # spares of 10, 20 and 40/s: 60, 70 and 90/s are needed
    assert [int(found.needed_units[i]) for i in (single, pair, whole)] == [2, 2, 3]


def test_max_units_leave_room_for_the_largest_spare() -> None:
    """Small replicas beside large ones must be able to make up for the loss of a large one."""
    world = catalog([device(memory_bytes=64 * GIB)], [shape(devices=4)])
    found, _ = solve(world, model="llama-3.2-1b", qpm=3000, spare_replicas=1)
    largest = max(int(c) // int(r) for c, r in zip(found.capacity_micro_per_s, found.replicas))
    for i in range(len(found)):
        assert found.max_units[i] >= math.ceil((50 * MICRO + largest) / int(found.capacity_micro_per_s[i]))


@pytest.mark.parametrize(
    ("top", "most"),
    [
        ({}, 5),
        ({"limits": {"max_devices": 3}}, 3),
        ({"hardware": {"quotas": [{"device": "plain", "max_shapes": 2}]}}, 2),
        ({"limits": {"max_devices": 100}}, 5),
    ],
)
def test_caps_bound_the_units(top: dict[str, Any], most: int) -> None:
    found, _ = solve(catalog(), top, qpm=3000)
    assert found.max_units.tolist() == [most]
    assert found.needed_units.tolist() == [5]  # what it would take is still told


def test_a_replica_larger_than_a_quota_is_told() -> None:
    found, ledger = solve(catalog(), {"limits": {"max_devices": 0}})
    assert len(found) == 0
    assert drops(ledger) == {("quota", "columns"): 1}
    text = next(iter(ledger)).nearest
    assert text == "1 shape of north/one:r1:on_demand for one replica, 0 allowed"


def test_sums_of_money_that_64_bits_do_not_hold_are_refused() -> None:
    owned = [{"shape": "north/one", "count": 9, "price": "$1e9/h"}]
    found, ledger = solve(catalog(offers=[]), {"hardware": {"owned": owned}, "horizon": "1200 months"})
    assert len(found) == 0
    assert drops(ledger) == {("too-dear", "columns"): 1}


# ---- what does not serve


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"uses": ("training",)}, "not-for-serving"),
        ({"memory_bandwidth_bytes_per_s": None}, "bandwidth-unknown"),
        ({"peak_flop_per_s": {"int8": 1e15}}, "precision"),
    ],
)
def test_devices_that_cannot(changes: dict[str, Any], reason: str) -> None:
    found, ledger = solve(catalog([device(**changes)]))
    assert len(found) == 0
    assert drops(ledger) == {(reason, "offers"): 1}


@pytest.mark.parametrize(
    ("family", "engine", "able", "weights"),
    [
        ("volta", "vllm", False, "fp8"),
        ("turing", "vllm", True, "fp8"),
        ("turing", "sglang", False, "fp8"),
        ("ampere", "sglang", True, "fp8"),
        ("volta", "llama.cpp", False, "fp8"),  # its 8-bit files are of integers
        ("turing", "vllm", False, "mxfp4"),  # a gpt-oss on T4 was planned, and its servers stop
        ("ampere", "vllm", True, "mxfp4"),
        ("turing", "llama.cpp", True, "mxfp4"),
    ],
)
def test_engines_have_no_floats_of_few_bits_on_old_devices(family: str, engine: str, able: bool, weights: str) -> None:
    asked = fleet(model="llama-3.2-1b", weights=weights, engine=engine)
    if engine == "llama.cpp":
        asked["kv_cache"] = "fp16"
    measured, asked = dict(asked), {name: value for name, value in asked.items() if name != "throughput"}
    there = catalog([device(family=family)])
    found, ledger = table(scenario([], [{**asked, "estimator": "rule"}]), there)
    assert ({("no-kernels", "offers"), ("not-run", "offers")}.isdisjoint(drops(ledger))) == able
    assert (len(found) > 0) == able
    assert len(table(scenario([], [measured]), there)[0]) > 0  # whoever measured it, served it


@pytest.mark.parametrize(
    ("vendor", "engine", "weights", "said"),
    [
        ("amd", "trt-llm", "fp16", "trt-llm does not run on devices of amd; vllm, sglang, llama.cpp may"),
        ("nvidia", "trt-llm", "q4_k_m", "trt-llm does not serve weights in q4_k_m; vllm, sglang, llama.cpp may"),
        ("nvidia", "llama.cpp", "nvfp4", "llama.cpp does not serve weights in nvfp4; vllm, sglang, trt-llm may"),
        ("nvidia", "llama.cpp", "q4_k_m", ""),
        ("amd", "vllm", "fp16", ""),
        ("google", "vllm", "fp16", ""),
        ("aws", "neuron", "bf16", ""),
        ("intel", "llama.cpp", "q4_k_m", ""),
    ],
)
def test_an_engine_refuses_by_name_what_it_does_not_run(vendor: str, engine: str, weights: str, said: str) -> None:
    asked = fleet(model="llama-3.2-1b", weights=weights, engine=engine)
    asked = {name: value for name, value in asked.items() if name != "throughput"}
    found, ledger = table(scenario([], [{**asked, "estimator": "rule"}]), catalog([device(vendor=vendor)]))
    assert (len(found) > 0) == (not said)
    notes = [one.nearest for one in ledger if one.reason == "not-run"]
    assert notes == ([f"plain: {said}"] if said else [])


def test_llama_cpp_runs_on_gpus_of_intel_and_not_on_gaudi() -> None:
    """Four-bit files were planned on Gaudi 3, for which llama.cpp has no backend."""
    asked = {
        name: value for name, value in fleet(model="llama-3.2-1b", weights="q4_k_m").items() if name != "throughput"
    }
    asked |= {"engine": "llama.cpp", "estimator": "rule"}
    found, ledger = table(scenario([], [asked]), catalog([device(vendor="intel", kind="npu")]))
    assert len(found) == 0
    assert [one.nearest for one in ledger if one.reason == "not-run"] == [
        "plain: llama.cpp does not run on it; vllm, sglang may"
    ]


@pytest.mark.parametrize(("family", "listed", "experimental"), [
    ("tpu-v2", False, False), ("tpu-v3", True, True), ("tpu-v5p", True, True), ("tpu-v6e", True, False),
])  # fmt: skip
def test_tpus_that_an_engine_does_not_list_serve_nothing_and_experiments_are_told(
    family: str, listed: bool, experimental: bool
) -> None:
    """vLLM was planned on TPU v2, which it does not run on, and on v3 without a word that its project tries it."""
    asked = {name: value for name, value in fleet(model="qwen2.5-1.5b", qpm=6).items() if name != "throughput"}
    plan = api.solve(scenario(serving=[asked], hardware={"allow": [family]}))
    assert (plan.document["status"] == "optimal") == listed
    assert any("calls its own support of it experimental" in one for one in plan.document["warnings"]) == experimental
    if not listed:
        assert "tpu-v2: vllm lists tpu-v3, tpu-v4" in render_plan(plan.document, "table", width=2000)
        plan = api.solve(scenario(serving=[fleet(model="qwen2.5-1.5b", qpm=6)], hardware={"allow": [family]}))
        assert plan.document["status"] == "optimal"  # measured there
    assert plan.verify() == []


@pytest.mark.parametrize(
    ("engine", "families", "old"),
    [
        ("vllm", "ampere turing", "volta pascal kepler"),
        ("sglang", "ampere", "turing volta pascal"),
        ("trt-llm", "hopper ampere", "turing volta"),
        ("llama.cpp", "turing volta pascal kepler", ""),
        (None, "turing", "volta"),  # what is not named is vLLM
    ],
)
def test_an_engine_is_planned_on_no_device_that_its_releases_left_behind(
    engine: str | None, families: str, old: str
) -> None:
    """vLLM and SGLang were planned on V100 and P100, the cheapest cards there are, where neither starts any more."""
    asked = fleet(model="llama-3.2-1b", engine=engine)
    predicted = {name: value for name, value in asked.items() if name != "throughput" and value is not None}
    measured = {name: value for name, value in asked.items() if value is not None}
    for family in [*families.split(), *old.split()]:
        there = catalog([device(family=family)])
        found, ledger = table(scenario([], [{**predicted, "estimator": "rule"}]), there)
        assert (len(found) > 0) == (family not in old.split()), family
        assert (("not-run", "offers") in drops(ledger)) == (family in old.split())
        assert len(table(scenario([], [measured]), there)[0]) > 0  # whoever measured an older release, served it


def test_a_tpu_slice_of_several_hosts_serves_only_where_it_is_asked_to() -> None:
    """No engine is exported over hosts of a slice: such slices won with 256 chips that nobody could launch."""
    tpu = device(kind="tpu", vendor="google")
    asked = {k: v for k, v in fleet(model="llama-3.2-1b", estimator="rule").items() if k != "throughput"}
    for chips, more, able in ((8, {}, True), (16, {}, False), (16, {"layout": {"tp": 4}}, True)):
        there = catalog([tpu], shapes=[shape(devices=chips)])
        found, ledger = table(scenario([], [{**asked, **more}]), there)
        assert (len(found) > 0, ("not-run", "offers") in drops(ledger)) == (able, not able), chips


def test_unknown_power_and_grid_count_where_they_matter() -> None:
    unknown = catalog([device(tdp_w=None)], grids={("north", "r1"): (400.0, 1.2)})
    assert len(solve(unknown)[0]) == 1
    assert drops(solve(unknown, {"limits": {"power": "1 MW"}})[1]) == {("power-unknown", "offers"): 1}
    assert drops(solve(catalog(), {"limits": {"carbon": "1 t"}})[1]) == {("carbon-unknown", "offers"): 1}
    known = catalog(grids={("north", "r1"): (400.0, 1.2)})
    assert len(solve(known, {"limits": {"carbon": "1 t"}})[0]) == 1


def test_what_does_not_fit_is_told_with_what_is_missing() -> None:
    """1e9 parameters at 16 bits are 2 GB; nothing of them fits beside the overhead on 1 GiB."""
    found, ledger = solve(catalog([device(memory_bytes=GIB, reserved_memory_bytes=0)]))
    assert len(found) == 0
    assert drops(ledger)["memory", "layouts"] == ledger.layouts_seen > 0
    assert next(iter(ledger)).nearest.endswith("less per device on plain")


def test_layouts_seen_are_kept_or_counted() -> None:
    for world, model in ((catalog(shapes=[shape(devices=8)]), "llama-3.1-70b"), (load_catalog(), "qwen2.5-7b")):
        found, ledger = solve(world, model=model, qpm=60)
        dropped = sum(count for (_, what), count in drops(ledger).items() if what == "layouts")
        machines = {one.physics: one.offer.id for one in found.sites}
        kept = sum(1 for one in found.sites if machines[one.physics] == one.offer.id)
        assert ledger.layouts_seen == dropped + kept


def test_a_replica_too_slow_to_plan_with_is_told() -> None:
    """Less than a request in eleven days is no capacity."""
    found, ledger = solve(catalog(), throughput="0.00005 tokens/s", qpm=1)
    assert len(found) == 0
    assert drops(ledger) == {("too-slow", "columns"): 1}


# ---- roofline


def test_without_a_given_throughput_the_device_decides() -> None:
    """Each replica's own figures are the estimate's; twice the bandwidth and peak are twice the speed."""
    slow = catalog()
    fast = catalog([device(memory_bandwidth_bytes_per_s=2e12, peak_flop_per_s={"bf16": 4e15})])
    demand = {"model": "llama-3.1-8b", "qpm": 60, "throughput": None, "estimator": "rule"}
    changes = {key: value for key, value in demand.items() if value is not None}

    def rates(world: Catalog) -> ServingTable:
        plan = scenario([], [{k: v for k, v in fleet(**changes).items() if k != "throughput"}])
        return table(plan, world)[0]

    one, two = rates(slow), rates(fast)
    first, second = row(one, tp=1, pp=1), row(two, tp=1, pp=1)
    assert two.requests_per_s[second] == pytest.approx(2 * one.requests_per_s[first], rel=0.05)
    terms, usable = one.memory_row(first)
    assert sum(terms.values()) <= usable == pytest.approx(0.9 * 64 * GIB)


def test_a_bare_parameter_count_needs_a_throughput() -> None:
    """Without layers neither the cache nor the speed is known: the one counts as nothing, the other must be given."""
    given, _ = solve(catalog())
    terms, usable = given.memory_row(0)
    assert (terms["weights"], terms["kv_cache"]) == (2e9, 0.0)
    assert usable == pytest.approx(0.9 * 64 * GIB)
    silent = {key: value for key, value in fleet().items() if key != "throughput"}
    found, ledger = table(scenario([], [silent]), catalog())
    assert len(found) == 0
    assert drops(ledger) == {("shape-unknown", "layouts"): 1}
    assert "give throughput" in next(iter(ledger)).nearest


def test_a_fleet_may_hold_more_shapes_than_one_job_connects() -> None:
    world = catalog(shapes=[shape(devices=4, max_shapes_per_job=2)])
    found, ledger = solve(world, model="llama-2-70b", qpm=60_000, layout={"pp": [1, 2, 4]})
    assert max(found.nodes) == 2  # a replica is a job
    assert found.needed_units.min() > 2
    assert (found.max_units >= found.needed_units).all()
    assert drops(ledger)["quota", "columns"] > 0


# ---- devices of the founding texts


@pytest.mark.parametrize(
    "name",
    ["k80-12gb", "p100-sxm2-16gb", "v100-sxm2-16gb", "v100-pcie-32gb", "t4", "rtx-3090", "rtx-4090", "a10g", "l4",
     "a100-sxm-40gb", "a100-sxm-80gb", "tpu-v3", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e",
     "tpu-v7x"],
)  # fmt: skip
def test_every_founding_device_serves_a_small_model(name: str) -> None:
    world = load_catalog()
    choices = [one for one in world.shapes.values() if one.device == name and one.kind in ("onprem", "slice")]
    smallest = min(choices, key=lambda one: (one.devices, one.id))
    engine = {"engine": "llama.cpp"} if left_behind("vllm", world.devices[name].family) else {}
    asked = {k: v for k, v in fleet(model="qwen2.5-1.5b", qpm=6, **engine).items() if k != "throughput"}
    owned = [{"shape": smallest.id, "count": 1, "price": "$0.10/h"}]
    found, _ = table(scenario([], [asked], hardware={"owned": owned, "allow": ["nothing"]}), world)
    assert len(found) > 0
    assert {one.device.id for one in found.sites} == {name}
    assert (found.needed_units <= found.max_units).any()


def test_a_seventh_of_an_a100_computes_a_seventh() -> None:
    world = load_catalog()
    owned = [{"shape": f"mig/{name}", "count": 7, "price": "$0.30/h"} for name in
             ("a100-sxm-40gb-1g.5gb", "a100-sxm-40gb-7g.40gb")]  # fmt: skip
    asked = {k: v for k, v in fleet(model="qwen2.5-1.5b", qpm=60, estimator="rule").items() if k != "throughput"}
    plan = scenario([], [asked], hardware={"owned": owned, "allow": ["nothing"], "assume_inter_node": "100 Gbit/s"})
    found, _ = table(plan, world)
    assert [one.shape.kind for one in found.sites] == ["mig", "mig"]
    assert all(found.layout_row(i) == {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1} for i in range(2))
    small, whole = found.requests_per_s
    assert small < whole / 6


def test_the_best_layout_of_a_cost_is_that_of_which_most_may_be_planned() -> None:
    """Replicas that keep a target at more, but fill their slots sooner, stood for those of which more may be planned: a
    column's bound was below what it carries, and the plan's proof rested on it."""
    chat = {"name": "c", "model": "deepseek-v3", "weights": "mxfp4", "layout": "pp2", "qpm": 1200, "input_tokens": 1,
            "output_tokens": {"mean": 300, "p95": 900}, "slo": {"ttft_p95": "2 s"}}  # fmt: skip
    plan = api.solve(scenario([], [chat], hardware={"allow": ["a100-*"]}))
    assert [problem.message for problem in api.verify(plan)] == []


def test_of_pools_too_the_best_layout_of_a_cost_is_that_of_which_most_may_be_planned() -> None:
    """A prefill pool that keeps its target at a higher rate, of which the target load lets less be planned, stood for
    another: the plan called the cheapest was dearer than a plainer one, which the verifier refused."""
    chat = {"name": "c", "model": "deepseek-v3", "qpm": 600, "input_tokens": 4000, "output_tokens": 1000,
            "disaggregated": True, "slo": {"ttft_p95": "4 s", "tpot_p95": "50 ms"}}  # fmt: skip
    hardware = {"allow": ["h200-sxm"], "providers": ["nebius"], "regions": ["eu-north1"]}

    def most(layout: dict[str, int] | None) -> int:
        """Prompts that a prefill replica on one node of eight takes.  [micro-requests/s]"""
        asked = scenario([], [chat | ({"layout": layout} if layout else {})], hardware=hardware)
        found, _ = table(asked, load_catalog())
        rates = found.bucket_capacity_micro_per_s[:, 0]
        mine = (found.role == PREFILL) & (found.nodes == 1) & (found.replicas == 1)
        return int(rates[mine & (found.of_machines(lambda site: site.shape.devices) == 8)].max(initial=0))

    apart = {stages: most({"pp": stages, "dp": 8 // stages}) for stages in (1, 2, 4)}
    assert len(set(apart.values())) == 3
    assert most(None) >= max(apart.values()) > 0


def test_buffers_of_what_ranks_send_count_in_the_memory_of_the_engines_that_are_told_to_send() -> None:
    """Of drafts all tokens of a step are sent; TensorRT-LLM's buffers were not read."""
    hardware = {"allow": ["h200-sxm"], "assume_inter_node": "3.2 Tbit/s"}
    asked = {"model": "deepseek-v3", "throughput": None, "qpm": 60, "layout": {"dp": 16, "ep": 16}}

    def overhead(**more: Any) -> float:
        plan = api.solve(scenario([], [fleet("chat", limits={"max_num_seqs": 16}, **asked, **more)], hardware=hardware))
        (only,) = plan.document["workloads"][0]["allocations"]
        return float(only["memory"]["terms_bytes"]["overhead"])

    room = 4 * 256 * (2 * 7168 + 7168 / 32)
    beside = overhead(engine="trt-llm")
    assert overhead(engine="vllm") - beside == pytest.approx(GIB + 16 * room)
    drafts = {"speculative": {"length": 3, "acceptance": "70 %"}}
    assert overhead(engine="vllm", **drafts) - beside == pytest.approx(GIB + 4 * 16 * room)
