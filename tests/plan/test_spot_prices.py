"""Fleets with a share on spot: what lies beyond the share has a price, and what must stand elsewhere is a line."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import planner
from planner import api
from planner.analysis.certified import certificate_of
from planner.candidates.program import DECODE, PREFILL, Program, Task
from planner.optimize.check import violations
from planner.optimize.scope import scope_of
from planner.optimize.solve import optimize
from planner.plan.certificate import certified_bound
from planner.plan.document import digest_of
from planner.plan.least_weights import CertificateError
from planner.plan.proof import digest_of_witness
from tests.plan.test_certificate import around, priced
from tests.tiers import cases
from tests.verified import errors, follow_schema
from tests.worlds import catalog, device, fleet, offer, scenario, shape


def shared(rng: np.random.Generator, *, buckets: int, spare: int) -> Program:
    """Two columns off spot, and two on it at a third to two thirds of the price for as much."""
    zero = np.zeros(4, dtype=np.int64)
    asked = tuple(rng.integers(8, 20, buckets).tolist())
    task = Task(name="f", kind="serving", first=0, stop=4, demand_micro_per_s=asked, spare_replicas=spare,
                max_spot_share=float(rng.choice([0.25, 0.3, 0.5, 0.8])))  # fmt: skip
    capacity = rng.integers(3, 14, (4, buckets))
    dear = capacity.mean(axis=1) * 10_000 * rng.uniform(0.8, 1.2, 4)
    return Program(
        tasks=(task,),
        cost_microusd=(dear * np.array([1, 1, rng.uniform(0.3, 0.7), rng.uniform(0.3, 0.7)])).astype(np.int64),
        finish_s=np.zeros(4),
        carbon_mg=zero,
        nodes=zero + 1,
        replicas=zero + 1,
        capacity_micro_per_s=capacity,
        max_units=zero + 6,
        spot=np.array([0, 0, 1, 1]),
        provider=zero,
        offer=np.arange(4),
    )


def least(program: Program) -> int | None:
    """The cheapest units that the exact check has nothing against; by trying all."""
    scope, best = scope_of(program, None), None
    order = sorted(product(range(7), repeat=4), key=lambda units: int(np.array(units) @ program.cost_microusd))
    for units in order:
        if not list(violations(scope, np.array(units))):
            best = int(np.array(units) @ program.cost_microusd)
            break
    return best


def test_each_pool_has_its_share_off_spot() -> None:
    """Lines of what must stand off spot were of whole requests alone: 40 % and more were left open of pools."""
    reached = 0
    for seed in range(3, cases(7, 40)):
        question = shared(np.random.default_rng(seed), buckets=1, spare=0)
        question = replace(question, role=np.array([PREFILL, DECODE] * 2), place=np.zeros(4, dtype=np.int64))
        solution = optimize(question, cost_only=True)
        made = certificate_of(around(question), solution)
        assert made is not None
        assert made["bound"] <= solution.cost_microusd, seed
        assert certified_bound(around(question), made, solution.cost_microusd) <= solution.cost_microusd, seed
        reached += made["gap"] == 0
    assert reached >= 0.9 * (cases(7, 40) - 3)


@pytest.mark.parametrize(("buckets", "spare", "share"), [(1, 0, 0.9), (1, 1, 0.9), (1, 2, 0.9), (2, 0, 0.2)])
def test_no_plan_costs_less_and_most_are_reached(buckets: int, spare: int, share: float) -> None:
    reached = plans = prices = 0
    for seed in range(cases(15, 150)):
        question = shared(np.random.default_rng(100 * spare + seed), buckets=buckets, spare=spare)
        cost, solution = least(question), optimize(question, cost_only=True)
        assert (solution.cost_microusd if solution.has_plan else None) == cost, seed
        if cost is None:
            continue
        made = certificate_of(around(question), solution)
        assert made is not None
        assert made["bound"] <= cost, seed
        plans, reached = plans + 1, reached + (made["gap"] == 0)
        prices += "spots" in made
    assert reached >= share * plans, (reached, plans)
    assert prices or buckets == 1


def test_a_price_of_spot_proves_no_more_than_is_true_whatever_it_is() -> None:
    for seed in range(cases(10, 100)):
        question = shared(np.random.default_rng(seed), buckets=2, spare=0)
        cost = least(question)
        line = [{"level": 0, "prefill": [1, 1], "decode": [0, 0]}]
        for price in (0, 1, 100, 10_000, 10**6, 10**9):
            witness = {**priced(question, {}, [{"workload": "f", "share": 1, "lines": [line]}]),
                       "spots": [{"workload": "f", "price": price}]}  # fmt: skip
            assert cost is None or certified_bound(around(question), witness) <= cost, (seed, price)


@pytest.mark.parametrize("entry", [{"workload": "f", "price": -1}, {"workload": "nobody", "price": 1}])
def test_a_price_of_nothing_is_refused(entry: dict[str, Any]) -> None:
    question = shared(np.random.default_rng(0), buckets=1, spare=0)
    with pytest.raises(CertificateError):
        certified_bound(around(question), {**priced(question, {}, []), "spots": [entry]})


def test_a_plan_with_a_share_on_spot_is_proven_and_its_prices_cannot_be_forged() -> None:
    shapes = [shape("north/one"), shape("north/two", devices=2)]
    offers = [offer("north/one", 1.0), offer("north/two", 2.1), offer("north/one", 0.4, price_model="spot"),
              offer("north/two", 0.7, price_model="spot")]  # fmt: skip
    world = catalog([device()], shapes, offers)
    asked = scenario(
        [],
        [fleet(qpm=3000, max_spot_share="40 %")],
        hardware={"pricing": ["on_demand", "spot"], "spot": {"interruptions": "0.05 /h", "restart": "10 min"}},
    )
    document: Any = json.loads(json.dumps(api.solve(asked, world, tie_tolerance=0.0).document))
    follow_schema(document)
    assert errors(document, world) == []
    assert document["certificate"]["gap"] == 0
    forged = copy.deepcopy(document)
    forged["certificate"]["spots"] = [{"workload": "fleet", "price": 10**12}]
    forged["certificate"]["sha256"] = digest_of_witness(forged["certificate"])
    forged["sha256"] = digest_of(forged)
    assert errors(forged, world)


def test_that_a_fleet_may_not_stand_on_spot_alone_is_what_leaves_a_cheaper_device_out() -> None:
    """It was said of three B200 on spot, at half of the cost, that a plainer layout or a search that was cut did it."""
    fast = {name: 2 * peak for name, peak in device().peak_flop_per_s.items()}
    world = catalog(
        [device(), device("other", peak_flop_per_s=fast)],
        [shape(), shape("south/other", "other")],
        [offer(), offer("south/other", 0.2, price_model="spot")],
    )
    asked = scenario(
        [],
        [fleet(qpm=1200, max_spot_share="30 %")],
        hardware={"pricing": ["on_demand", "spot"], "spot": {"interruptions": "0.05 /h"}},
    )
    document: Any = json.loads(json.dumps(api.solve(asked, world).document))
    assert [row["price_model"] for row in document["workloads"][0]["allocations"]] == ["on_demand"]
    (told,) = [line for line in document["workloads"][0]["because"] if line.startswith("other would cost less")]
    assert told.endswith("; max_spot_share (30 %) leaves it out")
    assert errors(document, world) == []


@pytest.mark.parametrize(
    ("qpm", "spares", "share"), [(30, {"spare_replicas": 1}, 50), (200, {"spare_replicas": 2}, 50),
                                 (1000, {"availability": "99.97 %"}, 80), (30, {"availability": "99.5 %"}, 50)]
)  # fmt: skip
def test_what_must_stand_off_spot_need_not_do_so_after_a_loss(qpm: int, spares: dict[str, Any], share: int) -> None:
    """The share is of all units, spares among them: plans with spares were refused as cheaper than any can be."""
    sized = {"model": "qwen2.5-1.5b", "weights": "fp8", "qpm": qpm, "input_tokens": 1500, "output_tokens": 50}
    chat = {"name": "chat", **sized, **spares, "max_spot_share": f"{share} %"}
    machines = {"allow": ["l4", "a10*", "l40s"], "pricing": ["on_demand", "spot"], "spot": {"interruptions": "1 /day"}}
    asked = {"schema": "plan/v1", "name": "x", "horizon": "1 month", "serving": [chat], "hardware": machines}
    document: Any = planner.solve(asked).document
    assert document["status"] == "optimal"
    assert document["summary"]["bound_microusd"] <= document["summary"]["cost_microusd"]
    assert not errors(document)
