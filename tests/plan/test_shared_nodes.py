"""Nodes that fleets share: the least cost against every packing, what the verifier finds, and what is not shared."""

from __future__ import annotations

import copy
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import api
from planner.analysis.certified import certificate_of
from planner.api.sessions import Session
from planner.candidates.money import cost_microusd
from planner.candidates.search import Candidates
from planner.candidates.serving import ServingTable
from planner.candidates.shared_nodes import divides
from planner.catalog.model import Catalog
from planner.plan.document import resealed
from planner.plan.rows.pools import borne, placed_on
from planner.scenario.schema import Scenario
from tests import frozen, worlds
from tests.tiers import cases
from tests.verified import errors, follow_schema

HORIZON_H = 10.0
MOST_REPLICAS = 5  # of a fleet; demands ask for no more

Kind = tuple[str, int, int]  # offer, devices of a replica, micro-requests/s that it carries


def world(seed: int) -> tuple[Scenario, Catalog]:
    """Two or three small fleets, and nodes of 1 to 8 devices at prices that hardly differ by device."""
    rng = random.Random(seed)
    sizes = rng.sample([("one", 1), ("two", 2), ("four", 4), ("eight", 8)], rng.randint(1, 3))
    if all(size < 4 for _, size in sizes):
        sizes.append(("eight", 8))
    shapes = [worlds.shape(f"north/{name}", devices=size) for name, size in sizes]
    offers = [worlds.offer(shape.id, shape.devices * rng.choice([0.8, 1.0, 1.2])) for shape in shapes]
    hardware: dict[str, Any] = {}
    if rng.random() < 0.3:
        hardware["owned"] = [{"shape": shapes[-1].id, "count": rng.randint(1, 2), "price": "$0.5/h"}]
    if rng.random() < 0.2:
        hardware["quotas"] = [{"device": "plain", "max_devices": rng.choice([16, 24])}]
    fleets = []
    for number in range(rng.randint(2, 3)):
        size = rng.choice([1, 1, 2, 4])
        spare = rng.choice([0, 0, 1])
        replicas = rng.randint(1, 2 if spare else 3)
        layout = {"layout": {"tp": size}} if size > 1 or rng.random() < 0.5 else {}
        fleets.append(
            worlds.fleet(
                f"fleet{number}", model="llama-3.2-1b", qpm=600 * size * replicas, spare_replicas=spare, **layout
            )
        )
    return worlds.scenario([], fleets, hardware=hardware, horizon=f"{HORIZON_H} h"), worlds.catalog(
        shapes=shapes, offers=offers
    )


def kinds_of(candidates: Candidates, name: str) -> list[Kind]:
    """Replicas that a fleet may have: on each offer the best of each size."""
    table = candidates.tables[name]
    assert isinstance(table, ServingTable)
    best: dict[tuple[str, int], int] = {}
    for row, site in enumerate(table.sites):
        key = site.offer.id, table.devices_per_replica(row)
        rate = int(table.capacity_micro_per_s[row]) // int(table.replicas[row])
        best[key] = max(best.get(key, 0), rate)
    return [(*key, rate) for key, rate in sorted(best.items())]


def ways_of(kinds: Sequence[Kind], demand: int, spares: int) -> Iterator[tuple[Kind, ...]]:
    """Every set of replicas that carries the demand when so many of the largest are lost, and needs all of them."""
    for count in range(1, MOST_REPLICAS + 1):
        for some in itertools.combinations_with_replacement(kinds, count):
            if carries(some, demand, spares) and not any(
                carries(some[:place] + some[place + 1 :], demand, spares) for place in range(count)
            ):
                yield some


def carries(some: Sequence[Kind], demand: int, spares: int) -> bool:
    return bool(some) and sum(rate for _, _, rate in some) - spares * max(rate for _, _, rate in some) >= demand


@cache
def fewest_nodes(sizes: tuple[int, ...], per_node: int) -> int:
    """Nodes into which replicas fit, by trying every node for each of them; one beyond a node has nodes of its own."""
    whole = sum(-(-size // per_node) for size in sizes if size >= per_node)
    left = sorted((size for size in sizes if size < per_node), reverse=True)

    def packed(place: int, free: tuple[int, ...]) -> int:
        if place == len(left):
            return len(free)
        found = packed(place + 1, tuple(sorted((*free, per_node - left[place]))))
        for node, room in enumerate(free):
            if room >= left[place] and room not in free[:node]:
                after = tuple(sorted((*free[:node], room - left[place], *free[node + 1 :])))
                found = min(found, packed(place + 1, after))
        return found

    return whole + packed(0, ())


def least_microusd(candidates: Candidates, scenario: Scenario) -> int | None:
    """The least cost over all sets of replicas and all packings, within what is owned and granted."""
    sites = {site.offer.id: site for table in candidates.tables.values() for site in table.sites}
    every = [
        list(ways_of(kinds_of(candidates, fleet.name), task.demand_micro_per_s[0], fleet.spare_replicas))
        for fleet, task in zip(scenario.serving, candidates.whole.tasks)
    ]
    best: int | None = None
    for chosen in itertools.product(*every):
        sizes: dict[str, list[int]] = {}
        for offer, devices, _ in itertools.chain(*chosen):
            sizes.setdefault(offer, []).append(devices)
        nodes = {name: fewest_nodes(tuple(sorted(mine)), sites[name].shape.devices) for name, mine in sizes.items()}
        if any(sites[name].owned is not None and n > scenario.hardware.owned[0].count for name, n in nodes.items()):
            continue
        rented = sum(n * sites[name].shape.devices for name, n in nodes.items() if sites[name].owned is None)
        if any(quota.max_devices is not None and rented > quota.max_devices for quota in scenario.hardware.quotas):
            continue
        cost = sum(
            n * cost_microusd(1, sites[name].offer.price_microusd_per_hour, HORIZON_H) for name, n in nodes.items()
        )
        best = cost if best is None else min(best, cost)
    return best


def test_no_packing_is_cheaper() -> None:
    """And certificates reach the cost: idle devices are no gap."""
    seen = Counter[str]()
    for seed in range(cases(40, 1000)):
        scenario, catalog = world(seed)
        session = Session(scenario, catalog)
        candidates, solution = session.answer()
        least = least_microusd(candidates, scenario)
        assert (solution.cost_microusd if solution.has_plan else None) == least, seed
        if not solution.has_plan:
            continue
        assert candidates.shared is not None or len(candidates.whole.tasks) == len(scenario.serving), seed
        shared = candidates.shared is not None and any(
            solution.units[column] and candidates.shared.is_share(column)
            for column in range(candidates.program.column_count)
        )
        seen["shared" if shared else "apart"] += 1
        certificate = certificate_of(candidates, solution)
        assert certificate is not None, seed
        assert certificate["bound"] <= solution.cost_microusd, seed
        seen["closed"] += certificate["gap"] == 0
        seen["plans"] += 1
    assert seen["shared"] > 0.2 * seen["plans"]
    assert seen["apart"] > 0
    assert seen["closed"] >= 0.85 * seen["plans"]


def test_sharing_never_costs_more_and_is_left_out_where_it_is_not_wanted() -> None:
    saved = 0
    for seed in range(cases(12, 200)):
        scenario, catalog = world(seed)
        apart = scenario.with_({"hardware.share_nodes": False})
        both = [api.solve(one, catalog) for one in (scenario, apart)]
        if both[1].status != "optimal":
            continue
        costs = [plan.document["summary"]["cost_microusd"] for plan in both]
        assert costs[0] <= costs[1], seed
        saved += costs[0] < costs[1]
        document = both[1].document
        assert "shared_nodes" not in document, seed
        assert not any("shared" in row for one in document["workloads"] for row in one["allocations"]), seed
        follow_schema(both[0].document)
    assert saved


@cache
def a_shared_plan() -> tuple[dict[str, Any], Catalog]:
    """One whose fleets stand on two shared nodes with a device idle."""
    shapes = [worlds.shape("north/eight", devices=8)]
    fleets = [
        worlds.fleet("big", model="llama-3.2-1b", qpm=600 * 4, layout={"tp": 4}),
        worlds.fleet("small", model="llama-3.2-1b", qpm=600 * 5, layout={"tp": 1}),
        worlds.fleet("other", model="llama-3.2-1b", qpm=600 * 5, layout={"tp": 1}),
    ]
    scenario = worlds.scenario([], fleets, horizon=f"{HORIZON_H} h", prefer="cheapest")
    catalog = worlds.catalog(shapes=shapes, offers=[worlds.offer("north/eight", 8.0)])
    document: Any = api.solve(scenario, catalog).document
    assert document["shared_nodes"][0]["count"] == 2
    assert document["shared_nodes"][0]["used_devices"] == 14
    return document, catalog


def rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for one in document["workloads"] for row in one["allocations"] if "shared" in row]


def one_device_twice(document: dict[str, Any]) -> None:
    rows(document)[1]["shared"] = [{"node": 0, "replicas": 5}]
    rows(document)[1]["count"] = 1


def a_node_that_is_not_there(document: dict[str, Any]) -> None:
    rows(document)[2]["shared"][0]["node"] = 2


def a_replica_that_stands_nowhere(document: dict[str, Any]) -> None:
    rows(document)[1]["shared"][0]["replicas"] -= 1


def fewer_nodes(document: dict[str, Any]) -> None:
    document["shared_nodes"][0]["count"] = 1


def more_nodes_than_are_paid_for(document: dict[str, Any]) -> None:
    document["shared_nodes"][0]["cost_microusd"] //= 2


def one_bears_what_is_anothers(document: dict[str, Any]) -> None:
    for place, by in ((0, -9_000_000), (1, 9_000_000)):
        document["workloads"][place]["allocations"][0]["cost_microusd"] += by


def nobody_is_told_of(document: dict[str, Any]) -> None:
    document["shared_nodes"] = []


def no_one_stands_there(document: dict[str, Any]) -> None:
    del rows(document)[0]["shared"]


def less_is_lost(document: dict[str, Any]) -> None:
    document["shared_nodes"][0]["users"][1]["lost_with_a_node"] = 1


def what_is_not_wanted(document: dict[str, Any]) -> None:
    document["scenario"].setdefault("hardware", {})["share_nodes"] = False


def less_power(document: dict[str, Any]) -> None:
    rows(document)[0]["power_w"] -= 500.0


@pytest.mark.parametrize(
    ("forge", "reference"),
    [
        (one_device_twice, "wrong-shared-nodes"),
        (a_node_that_is_not_there, "wrong-shared-nodes"),
        (a_replica_that_stands_nowhere, "wrong-shared-nodes"),
        (fewer_nodes, "wrong-shared-nodes"),
        (more_nodes_than_are_paid_for, "wrong-shared-nodes"),
        (one_bears_what_is_anothers, "wrong-cost"),
        (nobody_is_told_of, "wrong-shared-nodes"),
        (no_one_stands_there, "wrong-cost"),
        (less_is_lost, "wrong-shared-nodes"),
        (what_is_not_wanted, "wrong-shared-nodes"),
        (less_power, "wrong-energy"),
    ],
)
def test_a_forged_packing_is_found(forge: Any, reference: str) -> None:
    document, catalog = a_shared_plan()
    assert not errors(document, catalog)
    forged = copy.deepcopy(document)
    forge(forged)
    found = {problem.reference for problem in errors(resealed(forged), catalog)}
    assert reference in found, found


@given(st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(1, 6), st.integers(0, 2)), min_size=1, max_size=6))
def test_replicas_fit_where_their_devices_do(kinds: list[tuple[int, int, int]]) -> None:
    """On the fewest nodes of 16 devices, whatever sizes come: what the row of a program says is all that there is."""
    devices, replicas, owner = ([one[part] for one in kinds] for part in range(3))
    nodes = -(-sum(a * b for a, b in zip(devices, replicas)) // 16)
    placed = placed_on(nodes, 16, devices, replicas, owner)
    assert [sum(where.values()) for where in placed] == replicas
    for node in range(nodes):
        assert sum(size * where.get(node, 0) for size, where in zip(devices, placed)) <= 16


def test_sizes_that_leave_gaps_are_not_shared() -> None:
    """Three replicas of 3 devices do not fit two nodes of 8 with 15 devices in all; powers of two always do."""
    assert [divides(size, 8) for size in (1, 2, 3, 4, 6, 8)] == [True, True, False, True, False, False]
    assert [divides(size, 6) for size in (1, 2, 3, 4)] == [True, True, False, False]


@given(st.integers(0, 10**12), st.lists(st.integers(1, 64), min_size=1, max_size=8))
def test_what_is_borne_adds_up(cost: int, devices: list[int]) -> None:
    parts = borne(cost, devices)
    assert sum(parts) == cost
    assert all(abs(part - cost * each / sum(devices)) <= len(devices) for part, each in zip(parts, devices))


def test_replicas_of_a_fleet_are_kept_apart() -> None:
    """The loss of one of three nodes takes one replica of each fleet."""
    assert placed_on(3, 8, [2, 1, 1], [3, 3, 3], [0, 1, 2]) == [{0: 1, 1: 1, 2: 1}] * 3


REGION: dict[str, Any] = {"allow": ["h100-sxm-80gb", "a100-sxm-40gb"], "regions": "us-east-2"}
OWNED: dict[str, Any] = {
    "allow": ["h100-sxm-80gb"],
    "quotas": [{"device": "h100-sxm-80gb", "max_devices": 0}],
    "owned": [{"shape": "dgx-h100", "count": 12, "price": "$10/h"}],
}
FIVE: tuple[dict[str, Any], ...] = (
    {"name": "assistant", "model": "llama-3.1-70b", "weights": "fp8", "kv_cache": "fp8", "qpm": 400,
     "input_tokens": 1500, "output_tokens": 400, "spare_replicas": 1},
    {"name": "autocomplete", "model": "qwen2.5-7b", "weights": "fp8", "qpm": 3000, "input_tokens": 800,
     "output_tokens": 40, "spare_replicas": 1},
    {"name": "summaries", "model": "llama-3.1-8b", "weights": "fp8", "qpm": 300, "input_tokens": 6000,
     "output_tokens": 300},
    {"name": "search", "model": "qwen2.5-1.5b", "qpm": 6000, "input_tokens": 300, "output_tokens": 20},
    {"name": "moderation", "model": "llama-3.2-1b", "qpm": 4000, "input_tokens": 500, "output_tokens": 10},
)  # fmt: skip
THREE: tuple[dict[str, Any], ...] = (
    {"name": "chat", "model": "llama-3.1-8b", "weights": "fp8", "qpm": 60, "input_tokens": 1500,
     "output_tokens": 300, "spare_replicas": 1},
    {"name": "rerank", "model": "qwen2.5-1.5b", "qpm": 600, "input_tokens": 300, "output_tokens": 10},
    {"name": "guard", "model": "llama-3.2-1b", "qpm": 120, "input_tokens": 500, "output_tokens": 10},
)  # fmt: skip


@pytest.mark.parametrize(
    ("fleets", "hardware", "apart", "shared"),
    [(THREE, REGION, 48_087, 16_029), (FIVE, OWNED, 43_800, 21_900), (FIVE, REGION, None, 112_417)],
)
def test_fleets_that_left_nodes_half_empty_share_them(
    fleets: tuple[dict[str, Any], ...], hardware: dict[str, Any], apart: int | None, shared: int
) -> None:
    """At the median and the cheapest, on the catalog of e2d9ba0.

    An exact packing of the five in the region at the rates of that commit was $96,387; rates have been calibrated anew
    since, and what is asserted there is what the same packing comes to now.
    """
    asked = {"confidence": "p50", "prefer": "cheapest"}
    found = api.solve(worlds.scenario(serving=list(fleets), hardware=hardware, **asked), frozen.catalog()).document
    assert found["status"] == "optimal"
    assert found["summary"]["cost_usd"] <= 1.001 * shared
    assert not errors(found, frozen.catalog())
    if apart is not None:
        alone = worlds.scenario(serving=list(fleets), hardware={**hardware, "share_nodes": False}, **asked)
        assert api.solve(alone, frozen.catalog()).document["summary"]["cost_usd"] == pytest.approx(apart, abs=1)


@pytest.mark.parametrize(("dollars", "cost"), [(200.0, 70_080), (5.0, 43_800)])
def test_fleets_share_nodes_beside_a_calendar_rented_or_reserved(dollars: float, cost: int) -> None:
    """A contract among the choices made a calendar, in which no fleets shared nodes: $210,240 and $131,400."""
    fleets = [worlds.fleet(f"fleet{n}", model="llama-3.2-1b", qpm=600, layout={"tp": 1}) for n in range(3)]
    known = worlds.catalog(shapes=[worlds.shape("north/eight", devices=8)], offers=[worlds.offer("north/eight", 8.0)])
    contract = {"shape": "north/eight", "region": "r1", "price_model": "commitment_1y", "price": f"${dollars}/h"}
    asked = worlds.scenario([], fleets, hardware={"contracts": [contract]}, horizon="365 days")
    document = api.solve(asked, known).document
    follow_schema(document)
    assert document["status"] == "optimal"
    assert document["summary"]["cost_usd"] == cost
    assert [one["count"] for one in document["shared_nodes"]] == [1]
    assert sum(one["cost_microusd"] for one in document["schedule"]["shares"]) == (0 if dollars > 8 else 43_800 * 10**6)
    assert errors(document, known) == []
    forged = copy.deepcopy(document)
    forged["shared_nodes"][0]["count"] = 2
    assert errors(resealed(forged), known)


def test_what_is_owned_is_shared_beside_a_contract_and_proven() -> None:
    """One owned node held three fleets; with a contract allowed two more were bought, and 73 % was left open."""
    fleets = [worlds.fleet(f"fleet{n}", model="llama-3.2-1b", qpm=600, layout={"tp": 1}) for n in range(3)]
    known = worlds.catalog(shapes=[worlds.shape("north/eight", devices=8)], offers=[worlds.offer("north/eight", 8.0)])
    contract = {"shape": "north/eight", "region": "r1", "price_model": "commitment_1y", "price": "$5/h"}
    owned = {"shape": "north/eight", "count": 1, "price": "$1/h"}
    asked = worlds.scenario([], fleets, hardware={"contracts": [contract], "owned": [owned]}, horizon="365 days")
    document = api.solve(asked, known).document
    assert (document["status"], document["summary"]["cost_usd"]) == ("optimal", 8_760)
    assert document["contracts"] == []
    assert errors(document, known) == []
