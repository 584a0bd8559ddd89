"""Columns of training jobs: by hand on small worlds, by their laws on larger ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.api import load_model
from planner.candidates import training_fit
from planner.candidates.counts import node_counts
from planner.candidates.ledger import Ledger
from planner.candidates.money import cost_microusd
from planner.candidates.offers import sites_of
from planner.candidates.training import TrainingTable, training_table, training_tables
from planner.candidates.training_question import resolve_training
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.estimate.recall import Recall
from planner.scenario.schema import Scenario
from tests.tiers import sampled
from tests.worlds import (
    GIB,
    SECONDS_PER_BILLION_SQUARED,
    catalog,
    device,
    job,
    offer,
    scenario,
    shape,
)

RECIPE_BYTES = 16e9  # 1e9 parameters: 2 + 2 bytes of weights and gradients, 12 of the optimizer


def table(plan: Scenario, world: Catalog, *, every_layout: bool = False) -> tuple[TrainingTable, Ledger]:
    """The columns of the first job and its ledger."""
    ledger = Ledger(workload="job")
    sites = sites_of(plan, world, ledger)
    question = resolve_training(plan.training[0], load_model(plan.training[0].model), plan, world)
    return training_table(question, sites, ledger, every_layout=every_layout), ledger


def solve(world: Catalog, top: dict[str, Any] | None = None, **changes: Any) -> tuple[TrainingTable, Ledger]:
    return table(scenario([job(**changes)], **(top or {})), world)


def counts(ledger: Ledger) -> dict[tuple[str, str], int]:
    return {(drop.reason, drop.what): drop.count for drop in ledger}


def nearest(ledger: Ledger, reason: str, what: str) -> str:
    return next(drop.nearest for drop in ledger if (drop.reason, drop.what) == (reason, what))


def nodes(table: TrainingTable) -> list[int]:
    return sorted({int(count) for count in table.nodes})


# ---- by hand: 6000 device-seconds


def test_the_founding_rule_on_one_device() -> None:
    found, _ = solve(catalog(), deadline="5999 s", global_batch="1 sequences")
    assert nodes(found) == []
    found, _ = solve(catalog(), deadline="6001 s", global_batch="1 sequences")
    assert nodes(found) == [1]
    assert found.finish_s[0] == pytest.approx(SECONDS_PER_BILLION_SQUARED, rel=1e-12)
    assert found.cost_microusd == (round(1e6 * 6000 / 3600),)


@pytest.mark.parametrize(("deadline", "fewest"), [("6001 s", 1), ("3001 s", 2), ("2001 s", 3), ("601 s", 10)])
def test_the_fewest_devices_follow_from_the_deadline(deadline: str, fewest: int) -> None:
    found, ledger = solve(catalog(), deadline=deadline, global_batch="840 sequences")
    # what data parallelism adds hides behind the backward pass on this network
    assert min(nodes(found)) == fewest
    assert counts(ledger).get(("deadline", "counts"), 0) == fewest - 1


def test_the_nearest_count_is_told() -> None:
    _, ledger = solve(catalog(), deadline="2001 s")
    assert (
        nearest(ledger, "deadline", "counts")
        == "2 × north/one would take 50 min at best, margin for errors included, 16.6 min late"
    )


def test_counts_of_every_offer_in_a_group_are_told() -> None:
    world = catalog(offers=[offer(region="r1"), offer(region="r2"), offer(region="r3")])
    _, ledger = solve(world, deadline="2001 s")
    assert counts(ledger)["deadline", "counts"] == 3 * 2


def test_states_that_do_not_fit_are_told_with_what_is_missing() -> None:
    """ZeRO-3 over two leaves 8 GB of 16 GB on each, and libraries take 0.3 GiB more."""
    world = catalog([device(memory_bytes=8 * 10**9, reserved_memory_bytes=0)])
    found, ledger = solve(world, deadline="1 h", sharding="zero-3", global_batch="840 sequences")
    assert min(nodes(found)) == 3
    assert found.memory.total[0] == pytest.approx(RECIPE_BYTES / 3 + 0.3 * GIB, rel=1e-9)
    assert nearest(ledger, "memory", "layouts") == "needs 322 MB less per device on plain (8 GB usable)"


def test_memory_is_what_is_usable_not_what_is_there() -> None:
    """Libraries take 0.5 GB or so beside 16 GB of states; 20 GiB hold them, unless 6 GiB are reserved."""
    fits = catalog([device(memory_bytes=20 * GIB, reserved_memory_bytes=0)])
    reserved = catalog([device(memory_bytes=20 * GIB, reserved_memory_bytes=6 * GIB)])
    assert nodes(solve(fits, deadline="2 h")[0])[0] == 1
    assert solve(reserved, deadline="2 h", global_batch="1 sequences")[0].sites == ()


@pytest.mark.parametrize(
    ("top", "most"),
    [
        ({"limits": {"max_devices": 5}}, 5),
        ({"hardware": {"quotas": [{"device": "plain", "max_devices": 7}]}}, 7),
        ({"hardware": {"quotas": [{"device": "plain", "max_shapes": 3}]}}, 3),
        ({"hardware": {"quotas": [{"provider": "south", "max_shapes": 3}]}}, 64),
    ],
)
def test_caps(top: dict[str, Any], most: int) -> None:
    found, _ = solve(catalog(), top, deadline="2 h", global_batch="840 sequences", sharding="zero-1")
    divisors = [n for n in range(1, 65) if any(840 - 84 <= k * n <= 840 + 84 for k in range(1, 1000))]
    assert max(nodes(found)) == max(n for n in divisors if n <= most)


@pytest.mark.parametrize(
    "top",
    [
        {"limits": {"max_devices": 3}},
        {"limits": {"max_devices": 0}},
        {"hardware": {"quotas": [{"device": "plain", "max_devices": 0}]}},
        {"hardware": {"quotas": [{"provider": "*", "max_shapes": 0}]}},
    ],
)
def test_a_shape_larger_than_the_limits_is_told(top: dict[str, Any]) -> None:
    world = catalog(shapes=[shape("north/four", devices=4)])
    found, ledger = solve(world, top, deadline="2 h")
    assert len(found) == 0
    assert counts(ledger) == {("quota", "counts"): 1}
    assert "north/four" in nearest(ledger, "quota", "counts")


def test_a_quota_of_one_provider_leaves_the_other() -> None:
    world = catalog(shapes=[shape("north/one"), shape("south/one")])
    found, ledger = solve(world, {"hardware": {"quotas": [{"provider": "north", "max_devices": 2}]}}, deadline="2 h")
    most = {site.offer.provider: int(count) for site, count in zip(found.sites, found.nodes)}
    assert most["north"] == 2
    assert most["south"] > 2
    kept = len([site for site in found.sites if site.offer.provider == "south"])
    assert counts(ledger)["quota", "columns"] == kept - 2
    assert nearest(ledger, "quota", "columns") == "3 shapes of north/one:r1:on_demand, 2 allowed"


def test_a_count_that_just_meets_both_deadline_and_quota_is_tried() -> None:
    """67 devices: above 64 the grid has every second count only, but no plan may be lost to infeasibility."""
    world = catalog(shapes=[shape(inter_node_bytes_per_s_per_device=1e13)])
    found, _ = solve(
        world, {"limits": {"max_devices": 67}}, deadline="90 s", global_batch="67000 sequences", sharding="zero-1"
    )
    assert nodes(found) == [67]
    found, _ = solve(
        world, {"limits": {"max_devices": 67}}, deadline="89 s", global_batch="67000 sequences", sharding="zero-1"
    )
    assert nodes(found) == []


def test_a_wish_for_speed_looks_beyond_what_the_deadline_needs() -> None:
    """One device would do; the window of 64 is for the cheapest plan, not for the fastest."""
    changes = {"deadline": "2 h", "global_batch": "4096 sequences", "sharding": "zero-1"}
    world = catalog(shapes=[shape(inter_node_bytes_per_s_per_device=1e13)])
    assert max(nodes(solve(world, {"objective": "cost"}, **changes)[0])) == 64
    assert max(nodes(solve(world, {"objective": ["cost", "time"]}, **changes)[0])) == 64
    assert max(nodes(solve(world, {"objective": "time"}, **changes)[0])) == 4096  # one sequence for each
    capped = {"objective": "time", "limits": {"max_devices": 1024}}
    assert max(nodes(solve(world, capped, **changes)[0])) == 1024


def test_columns_cost_what_the_formula_says() -> None:
    world = catalog(offers=[offer(dollars=2.5, region="r1"), offer(dollars=0.123457, region="r2")])
    found, _ = solve(world, deadline="2 h", sharding="zero-1")
    assert len(found) > 4
    for site, count, seconds, cost in zip(found.sites, found.nodes, found.finish_s, found.cost_microusd):
        assert cost == cost_microusd(int(count), site.offer.price_microusd_per_hour, seconds / 3600)


def test_sums_of_money_that_64_bits_do_not_hold_are_refused() -> None:
    """A billion dollars an hour, the most that a scenario may say: ten hours are left out, nothing overflows."""
    owned = {"hardware": {"owned": [{"shape": "north/one", "count": 9, "price": "$1e9/h"}]}}
    found, ledger = solve(catalog(offers=[]), owned, tokens="10B", deadline="20 h")
    assert len(found) == 0
    assert counts(ledger)["too-dear", "columns"] > 0
    cheaper, _ = solve(catalog(offers=[]), owned, tokens="1B", deadline="2 h")
    assert cheaper.cost_microusd[0] > 10**15


# ---- networks


def test_an_unknown_network_keeps_to_one_shape() -> None:
    world = catalog(shapes=[shape("north/four", devices=4, inter_node_bytes_per_s_per_device=None)])
    found, ledger = solve(world, deadline="2 h")
    assert nodes(found) == [1]
    assert counts(ledger)["network-unknown", "counts"] == 1
    assert "assume_inter_node" in nearest(ledger, "network-unknown", "counts")
    assumed, ledger = solve(world, {"hardware": {"assume_inter_node": "100 Gbit/s"}}, deadline="2 h")
    assert max(nodes(assumed)) > 1
    assert ("network-unknown", "counts") not in counts(ledger)


@pytest.mark.parametrize(("layout", "hosts", "spread"), [({}, True, False), ({"dp": 4}, True, True), ({}, False, True)])
def test_a_stated_network_is_that_of_whole_hosts(layout: dict[str, int], hosts: bool, spread: bool) -> None:
    """A 70B was planned over 84 machines of one B200 each, which share their hosts' cards, at 400 Gbit/s apiece."""
    names = ["north/part", "north/host"] if hosts else ["north/part"]
    devices = {"north/part": 1, "north/host": 8}
    shapes = [shape(name, devices=devices[name], inter_node_bytes_per_s_per_device=None) for name in names]
    given = {"layout": layout} if layout else {}
    asked = {"hardware": {"assume_inter_node": "400 Gbit/s"}}
    found, ledger = solve(catalog(shapes=shapes), asked, deadline="2 h", **given)
    on_parts = [int(many) for many, site in zip(found.nodes, found.sites) if site.shape.id == "north/part"]
    assert (max(on_parts) > 1) is spread
    assert (("host-network", "counts") in counts(ledger)) is not spread
    if not spread:
        assert "what is stated is that of whole hosts" in nearest(ledger, "host-network", "counts")


def test_an_unknown_network_may_be_too_small_for_the_deadline() -> None:
    world = catalog(shapes=[shape("north/four", devices=4, inter_node_bytes_per_s_per_device=None)])
    found, ledger = solve(world, deadline="1001 s")  # six devices
    assert len(found) == 0
    assert counts(ledger) == {("network-unknown", "counts"): 1, ("deadline", "counts"): 1}
    assert nearest(ledger, "deadline", "counts").startswith("1 × north/four would take 25 min")


@pytest.mark.parametrize("kind", ["mig", "share"])
def test_slices_of_a_card_do_not_form_a_job_whatever_is_assumed(kind: str) -> None:
    world = catalog(shapes=[shape(kind=kind, compute_share=0.5, inter_node_bytes_per_s_per_device=None)])
    found, _ = solve(world, {"hardware": {"assume_inter_node": "100 Gbit/s"}}, deadline="4 h")
    assert nodes(found) == [1]
    assert found.finish_s[0] == pytest.approx(2 * SECONDS_PER_BILLION_SQUARED)


# ---- refusals


@pytest.mark.parametrize(
    ("changes", "asked", "reason"),
    [
        ({"peak_flop_per_s": {"fp16": 1e15}}, {}, "precision"),  # bf16 is the default
        ({"peak_flop_per_s": {"bf16": 1e15}}, {"precision": "fp16"}, "precision"),
        ({"frameworks": ("jax", "tensorflow")}, {"framework": "megatron"}, "framework"),
        ({"uses": ("serving",)}, {}, "not-for-training"),
    ],
)
def test_devices_that_cannot(changes: dict[str, Any], asked: dict[str, Any], reason: str) -> None:
    world = catalog([device(**changes), device("other")], [shape(), shape("north/other", "other")])
    found, ledger = solve(world, deadline="2 h", **{"framework": "megatron", **asked})
    assert {site.device.id for site in found.sites} == {"other"}
    assert counts(ledger)[reason, "offers"] == 1


def test_without_a_framework_any_will_do() -> None:
    world = catalog([device(frameworks=("jax",))])
    assert len(solve(world, deadline="2 h")[0]) > 0
    assert len(solve(world, deadline="2 h", framework="jax")[0]) > 0
    assert len(solve(world, deadline="2 h", framework="megatron")[0]) == 0


def test_unknown_power_is_refused_only_where_it_counts() -> None:
    world = catalog([device(tdp_w=None)], grids={("north", "r1"): (400.0, 1.2)})
    assert len(solve(world, deadline="2 h")[0]) > 0
    for top in ({"limits": {"power": "1 MW"}}, {"limits": {"carbon": "5 t"}}, {"objective": ["cost", "carbon"]}):
        found, ledger = solve(world, top, deadline="2 h")
        assert len(found) == 0
        assert counts(ledger) == {("power-unknown", "offers"): 1}
        assert nearest(ledger, "power-unknown", "offers") == "plain: its power is unknown"


def test_unknown_grids_are_refused_only_where_carbon_counts() -> None:
    world = catalog(offers=[offer(region="r1"), offer(region="r2")], grids={("north", "r1"): (400.0, 1.2)})
    assert {site.offer.region for site in solve(world, deadline="2 h")[0].sites} == {"r1", "r2"}
    for top in ({"limits": {"carbon": "5 t"}}, {"objective": "carbon"}):
        found, ledger = solve(world, top, deadline="2 h")
        assert {site.offer.region for site in found.sites} == {"r1"}
        assert counts(ledger)["carbon-unknown", "offers"] == 1
        assert nearest(ledger, "carbon-unknown", "offers") == "north r2: the carbon of its grid is unknown"
    assert len(solve(world, {"limits": {"power": "1 MW"}}, deadline="2 h")[0]) > 0


# ---- owned hardware


def test_owned_shapes_are_bound_by_their_count_and_nothing_else() -> None:
    top = {
        "hardware": {
            "owned": [{"shape": "north/one", "count": 3, "price": "$0.10/h"}],
            "allow": ["other"],
            "regions": ["nowhere"],
            "quotas": [{"device": "*", "max_devices": 0}],
        }
    }
    found, _ = solve(catalog(), top, deadline="2 h", sharding="zero-1", global_batch="840 sequences")
    assert {site.offer.id for site in found.sites} == {"owned:0:north/one"}
    assert nodes(found) == [1, 2, 3]
    assert found.cost_microusd[0] == cost_microusd(1, 100_000, found.finish_s[0] / 3600)


# ---- batches


def test_a_range_is_used_where_it_is_fastest() -> None:
    """Bigger batches hide more communication: with a slow network the top of the range wins."""
    world = catalog(shapes=[shape(inter_node_bytes_per_s_per_device=1e8)])
    batch = {"min": "8 sequences", "max": "512 sequences"}
    found, _ = solve(world, deadline="2 h", global_batch=batch, sharding="zero-1")
    for row in np.flatnonzero(found.nodes == 4):
        assert found.layout.global_batch[row] == 512


def test_above_the_critical_batch_every_token_costs_more() -> None:
    """With a fast network nothing is gained by a larger batch than the critical one."""
    batch = {"min": "8 sequences", "max": "512 sequences"}
    found, _ = solve(catalog(), deadline="4 h", global_batch=batch, critical_batch="32768 tokens", sharding="zero-1")
    assert max(found.layout.global_batch[found.nodes <= 2]) <= 32  # sequences of 1024 tokens
    single, _ = solve(catalog(), deadline="6 h", global_batch="64 sequences", critical_batch="32768 tokens")
    assert single.time["large_batch"][0] == pytest.approx(2 * SECONDS_PER_BILLION_SQUARED)  # 1 + 64/32 = 3 times


def test_a_batch_that_cannot_be_shared_keeps_counts_out() -> None:
    world = catalog(shapes=[shape(inter_node_bytes_per_s_per_device=1e13)])
    found, _ = solve(world, deadline="2 h", global_batch="6 sequences", sharding="zero-1")
    assert nodes(found) == [1, 2, 3, 6]


# ---- laws on the shipped catalog

MOST = 16
SHIPPED = [
    {
        "model": "llama-3.1-8b",
        "tokens": "20B",
        "deadline": "20 days",
        "sequence_length": 8192,
        "global_batch": "1M tokens",
    },
    {
        "model": "qwen3-30b-a3b",
        "tokens": "10B",
        "deadline": "30 days",
        "sequence_length": 4096,
        "global_batch": "1M tokens",
    },
    {
        "model": "gpt2-xl",
        "tokens": "9B",
        "deadline": "90 days",
        "sequence_length": 1024,
        "global_batch": "512 sequences",
        "precision": "fp16",
    },
    {
        "model": {"parameters": "7B"},
        "tokens": "50B",
        "deadline": "20 days",
        "sequence_length": 4096,
        "global_batch": {"min": "1M tokens", "max": "4M tokens"},
        "critical_batch": "2M tokens",
    },
]


def shipped(number: int) -> Scenario:
    changes = {"sharding": ["none", "zero-1", "zero-2", "zero-3"], "recompute": ["none", "selective", "full"]}
    devices = ["h100-*", "a100-*", "v100-*", "t4", "tpu-v5e", "k80-12gb"]
    return scenario([job(**{**changes, **SHIPPED[number]})], hardware={"allow": devices}, limits={"max_devices": MOST})


@pytest.fixture(scope="module", params=sampled(range(len(SHIPPED)), 2))
def pair(request: pytest.FixtureRequest) -> tuple[Scenario, Any, Any]:
    plan, world = shipped(request.param), load_catalog()
    return plan, table(plan, world), table(plan, world, every_layout=True)


def test_every_row_fits_and_is_on_time(pair: tuple[Scenario, Any, Any]) -> None:
    plan, (found, _), (every, _) = pair
    assert len(every) > len(found) > 0
    for rows in (found, every):
        usable = np.array([site.usable_bytes for site in rows.sites])
        assert (rows.memory.total <= usable).all()
        assert (rows.finish_s <= plan.training[0].deadline_s).all()
        assert (rows.finish_s == rows.time.total).all()
        devices = np.array([site.shape.devices for site in rows.sites])
        assert np.array_equal(rows.layout.devices, rows.nodes * devices)
        assert (rows.layout.devices <= MOST).all()


def test_the_fastest_layout_of_each_size_is_kept(pair: tuple[Scenario, Any, Any]) -> None:
    """Or a faster one, of a micro-batch or of virtual stages between those that all are listed of."""
    _, (found, _), (every, _) = pair

    def best(rows: TrainingTable) -> dict[tuple[str, int], float]:
        fastest: dict[tuple[str, int], float] = {}
        for site, count, seconds in zip(rows.sites, rows.nodes, rows.finish_s):
            key = (site.offer.id, int(count))
            fastest[key] = min(seconds, fastest.get(key, np.inf))
        return fastest

    kept, expected = best(found), best(every)
    assert len(found) == len(kept), "one layout for each offer and size"
    assert set(kept) >= set(expected)
    for key, seconds in expected.items():
        assert kept[key] <= seconds * (1 + 1.1e-10), key


RANGE = {**SHIPPED[0], "global_batch": {"min": "1M tokens", "max": "4M tokens"}}
WALK: list[dict[str, Any]] = [
    {},
    {"tokens": "21M", "deadline": "30 min"},
    {"tokens": "3B", "deadline": "3 days"},
    *({"deadline": f"{days} days"} for days in (9, 9.5, 10, 10.5, 11, 12, 200)),
]


def with_wide_bands(world: Catalog) -> Catalog:
    """Whatever is split otherwise than over data and tensors is held to three times its predicted time."""
    one = (1.0, 1.0)
    families = {
        name: replace(family, validity={**family.validity, "pp": one, "cp": one, "ep": one})
        for name, family in world.training_families.items()
    }
    beyond = dict.fromkeys(("pp above", "cp above", "ep above"), 6.0)
    return replace(world, training_families=families, training_beyond={**world.training_beyond, **beyond})


@pytest.mark.parametrize("asked", sampled([*SHIPPED[:3], RANGE], 2))
@pytest.mark.parametrize(("confidence", "wide"), sampled([("p90", True), ("p60", False)], 1))
def test_layouts_that_a_faster_one_stands_for_are_in_no_answer(
    asked: dict[str, Any], confidence: str, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was asked before: columns are those of a search that keeps every layout, and none is lost count of."""
    world, recall = load_catalog(), Recall()
    world = with_wide_bands(world) if wide else world
    for changes in WALK:
        hardware = {"allow": ["h100-*", "a100-*", "v100-*", "tpu-v5e"]}
        plan = scenario([job(**{**asked, **changes})], hardware=hardware, confidence=confidence)
        answer = listed(plan, world, recall)
        with monkeypatch.context() as patched:
            patched.setattr(training_fit, "AS_FAST", np.inf)
            assert answer == listed(plan, world, Recall())


def listed(plan: Scenario, world: Catalog, recall: Recall) -> tuple[list[Any], int]:
    """Columns of the first job at both confidences, and how many layouts were left out."""
    ledger, found = Ledger(workload="job"), list[Any]()
    sites = sites_of(plan, world, ledger)
    question = resolve_training(plan.training[0], load_model(plan.training[0].model), plan, world, recall)
    for rows in training_tables(question, sites, ledger):
        layout = [getattr(rows.layout, name).tolist() for name in rows.layout.__slots__]
        ids = [site.offer.id for site in rows.sites]
        found.append((ids, rows.nodes.tolist(), layout, rows.finish_s.tolist(), rows.memory.total.tolist()))
    return found, sum(drop.count for drop in ledger if drop.what == "layouts")


def test_every_layout_seen_is_kept_or_counted(pair: tuple[Scenario, Any, Any]) -> None:
    """Layouts are counted once for each machine, whatever number of offers stand on it."""
    for rows, ledger in pair[1:]:
        drops = counts(ledger)
        dropped = sum(count for (_, what), count in drops.items() if what == "layouts")
        machines = {site.physics for site in rows.sites}
        kept = 0
        for physics in machines:
            offers = [site.offer.id for site in rows.sites if site.physics == physics]
            kept += max(offers.count(name) for name in set(offers))
        assert ledger.layouts_seen == dropped + kept


def test_every_offer_seen_is_used_or_counted(pair: tuple[Scenario, Any, Any]) -> None:
    _, (found, ledger), _ = pair
    refused = sum(count for (_, what), count in counts(ledger).items() if what == "offers")
    used = len({site.offer.id for site in found.sites})
    assert ledger.offers_seen - refused >= used > 0


# ---- devices of the founding texts

CANNOT = {
    "k80-12gb": "precision",  # fp32 only
    "p100-sxm2-16gb": "precision",
    "v100-sxm2-16gb": "precision",
    "t4": "precision",
    "sn40l": "not-for-training",
    "inferentia2": "not-for-training",
}
OLD_CARDS = ["k80-12gb", "p100-sxm2-16gb", "p100-pcie-16gb", "v100-sxm2-16gb", "v100-sxm3-32gb", "v100-pcie-32gb", "t4",
             "rtx-3090", "rtx-4090", "a10g", "l4", "a100-sxm-40gb", "a100-sxm-80gb"]  # fmt: skip
TPUS = ["tpu-v2", "tpu-v3", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7x"]


def on_own(name: str, **changes: Any) -> tuple[TrainingTable, Ledger]:
    """A small job on the smallest shape of a device that one can own, no offer in reach."""
    world = load_catalog()
    choices = [one for one in world.shapes.values() if one.device == name and one.kind in ("onprem", "slice")]
    smallest = min(choices, key=lambda one: (one.devices, one.id))
    plan = scenario(
        [job(**{"model": "gpt2", "tokens": "1B", "deadline": "90 days", "sharding": "zero-1", **changes})],
        hardware={"owned": [{"shape": smallest.id, "count": 1, "price": "$0.10/h"}], "allow": ["nothing-at-all"]},
    )
    return table(plan, world)


@pytest.mark.parametrize("name", OLD_CARDS)
def test_old_cards_train_in_a_precision_that_they_have(name: str) -> None:
    precision = "fp32" if name == "k80-12gb" else "fp16"
    found, _ = on_own(name, precision=precision)
    assert len(found) == 1
    assert found.sites[0].device.id == name


@pytest.mark.parametrize(("name", "reason"), CANNOT.items())
def test_what_cannot_train_in_bf16_is_refused_with_the_reason(name: str, reason: str) -> None:
    found, ledger = on_own(name)
    assert len(found) == 0
    assert counts(ledger)[reason, "offers"] == 1
    said = {"precision": "not in bf16", "not-for-training": "inference"}[reason]
    assert nearest(ledger, reason, "offers").startswith(name)
    assert said in nearest(ledger, reason, "offers")


@pytest.mark.parametrize("name", TPUS)
def test_tpus_train_with_their_frameworks_only(name: str) -> None:
    for framework in ("tensorflow", "jax"):
        found, _ = on_own(name, framework=framework)
        assert len(found) == 1, framework
    for framework in ("megatron", "deepspeed"):
        found, ledger = on_own(name, framework=framework)
        assert len(found) == 0
        assert counts(ledger)["framework", "offers"] == 1
        assert nearest(ledger, "framework", "offers").endswith(f"not {framework}")


@pytest.mark.parametrize("name", OLD_CARDS)
def test_gpus_run_no_maxtext(name: str) -> None:
    found, ledger = on_own(name, framework="maxtext", precision="fp16")
    assert len(found) == 0
    assert counts(ledger)["framework", "offers"] == 1


@pytest.mark.parametrize("name", ["k80-12gb", "t4", "rtx-3090", "tpu-v2"])
def test_what_does_not_fit_is_refused_for_its_memory(name: str) -> None:
    precision = {"k80-12gb": "fp32", "tpu-v2": "bf16"}.get(name, "fp16")
    found, ledger = on_own(name, model="llama-3.1-70b", tokens="1M", precision=precision)
    assert len(found) == 0
    assert counts(ledger)["memory", "layouts"] > 0
    assert name in nearest(ledger, "memory", "layouts")


def test_the_pod_slices_of_tpu_v3_reach_32_tb() -> None:
    """A pod of 2048 cores holds 1024 chips of 32 GiB."""
    world = load_catalog()
    slices = [one for one in world.shapes.values() if one.device == "tpu-v3" and one.kind == "slice"]
    largest = max(slices, key=lambda one: one.devices)
    assert largest.devices * world.devices["tpu-v3"].memory_bytes == 32 * 2**40
    plan = scenario(
        [job(model="llama-3.1-405b", tokens="1B", deadline="90 days", sequence_length=4096, global_batch="4M tokens",
             framework="jax", sharding="zero-3", recompute="full")],
        hardware={"owned": [{"shape": largest.id, "count": 1, "price": "$1/h"}], "allow": ["nothing-at-all"]},
    )  # fmt: skip
    found, _ = table(plan, world)
    assert nodes(found) == [1]


def test_a_later_deadline_takes_no_count_of_large_pods_away() -> None:
    """Eight times what a later deadline needs was less than two pods of 256, which were cheaper than one."""
    world = catalog([device()], [shape(devices=256)], [offer()])
    tried = []
    for deadline in ("3 h", "30 h", "300 h"):
        plan, ledger = scenario([job("job", tokens="1T", deadline=deadline)]), Ledger(workload="job")
        question = resolve_training(plan.training[0], load_model(plan.training[0].model), plan, world)
        tried.append(set(node_counts(question, list(sites_of(plan, world, ledger)), ledger)))
    assert max(tried[0]) > 4  # a window of the deadline
    assert {1, 2, 3, 4} <= tried[2]


def test_workloads_of_one_model_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was answered of a model is kept for a while, not until forty others have been looked at."""
    from planner.candidates import evaluated as module

    archs = {"a": load_model("gpt2-xl"), "b": load_model("llama-3.1-8b")}
    fresh: Any = {name: (name, archs[name[0]]) for name in ("a1", "b1", "a2", "b2")}
    asked: list[str] = []

    def evaluated(workload: Any, *_: Any) -> Any:
        asked.append(workload)
        return workload

    monkeypatch.setattr(module, "evaluated", evaluated)
    around: Any = None
    assert list(module.in_turn(fresh, around, around, around).items()) == [(name, name) for name in fresh]
    assert asked == ["a1", "a2", "b1", "b2"]
