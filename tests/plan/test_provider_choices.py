"""Plans at few providers: proven by each choice of them, and what each choice alone costs."""

from __future__ import annotations

import copy
import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.plan.document import digest_of
from planner.plan.proof import digest_of_witness
from planner.scenario.schema import Scenario
from tests.tiers import cases
from tests.verified import errors, follow_schema
from tests.worlds import PEAK_FLOP_PER_S, catalog, device, fleet, job, offer, scenario, shape

MACHINES = ("one", "plain", 1, 1.0), ("two", "plain", 2, 2.0), ("quick", "fast", 1, 3.0)
NAMES = ("east", "north", "south", "west")


def market(rng: np.random.Generator, names: tuple[str, ...]) -> Catalog:
    """Each sells some of three machines, some of few; one device is twice as fast as the other."""
    peaks = dict.fromkeys(("fp32", "fp16", "bf16"), 2 * PEAK_FLOP_PER_S)
    shapes, offers = [], []
    for name in names:
        for machine, of, devices, dollars in MACHINES:
            if rng.random() < 0.6 or machine == "one":
                stock = {"max_shapes": int(rng.integers(1, 6))} if rng.random() < 0.5 else {}
                shapes.append(shape(f"{name}/{machine}", of, devices=devices))
                offers.append(offer(f"{name}/{machine}", round(dollars * rng.uniform(0.7, 1.3), 2), **stock))
    return catalog([device(), device("fast", peak_flop_per_s=peaks)], shapes, offers)


def question(seed: int) -> tuple[dict[str, Any], Catalog, tuple[str, ...]]:
    """One or two jobs, often a fleet, and limits that are shared, some of them tight."""
    rng = np.random.default_rng(seed)
    names = NAMES[: int(rng.integers(2, 5))]
    jobs = [
        job(f"j{n}", deadline=f"{int(rng.integers(10, 70)) * 100} s", count=int(rng.integers(1, 4)))
        for n in range(int(rng.integers(0, 3)))
    ]
    fleets = [fleet(qpm=int(rng.integers(1, 6)) * 500)] if not jobs or rng.random() < 0.6 else []
    limits: dict[str, Any] = {}
    if rng.random() < 0.5:
        limits["max_devices"] = int(rng.integers(3, 14))
    if rng.random() < 0.3:
        limits["power"] = f"{int(rng.integers(4, 40)) * 200} W"
    return {"jobs": jobs, "fleets": fleets, "limits": limits}, market(rng, names), names


def asked(keys: dict[str, Any], most: int | None, among: tuple[str, ...] = ()) -> Scenario:
    limits = {**keys["limits"], **({} if most is None else {"max_providers": most})}
    return scenario(keys["jobs"], keys["fleets"], limits=limits, hardware={"providers": list(among)} if among else {})


def solved(plan: Scenario, world: Catalog) -> Any:
    document: Any = json.loads(json.dumps(api.solve(plan, world, tie_tolerance=0.0).document))
    follow_schema(document)
    return document


def proven(document: Any) -> bool:
    certificate = document["certificate"]
    return certificate is not None and certificate["gap"] == 0


def test_the_plan_is_the_cheapest_of_all_choices_and_proven_where_they_are() -> None:
    """Each choice is asked as a question of its own, which knows nothing of how many providers may be used."""
    own_prices = 0
    for seed in range(cases(5, 300)):
        keys, world, names = question(seed)
        for most in (1, 2):
            found = solved(asked(keys, most), world)
            assert errors(found, world) == [], (seed, most)
            alone = [solved(asked(keys, None, some), world) for some in combinations(names, min(most, len(names)))]
            costs = [one["summary"]["cost_microusd"] for one in alone if one["status"] == "optimal"]
            assert found["status"] == ("optimal" if costs else "infeasible"), (seed, most)
            if costs:
                assert found["summary"]["cost_microusd"] == min(costs), (seed, most)
            if all(map(proven, alone)):
                assert proven(found), (seed, most)
            own_prices += bool(found["certificate"] and found["certificate"].get("choices"))
    assert own_prices >= cases(0, 5)


@pytest.fixture(scope="module", params=[21, 157], ids=["optimal", "infeasible"])
def chosen(request: pytest.FixtureRequest) -> tuple[Any, Catalog]:
    """Questions whose proofs need prices of some choices alone."""
    keys, world, _ = question(request.param)
    found = solved(asked(keys, 1), world)
    assert found["certificate"]["choices"]
    assert proven(found)
    assert errors(found, world) == []
    return found, world


@pytest.mark.parametrize("change", ["left out", "of another choice", "emptied"])
def test_forged_prices_of_a_choice_are_found(chosen: tuple[Any, Catalog], change: str) -> None:
    found, world = copy.deepcopy(chosen[0]), chosen[1]
    certificate = found["certificate"]
    if change == "left out":
        del certificate["choices"]
    elif change == "of another choice":
        certificate["choices"][0]["providers"] = [9]
    else:
        certificate["choices"] = [{**one, "rows": [], "requests": []} for one in certificate["choices"]]
    certificate["sha256"] = digest_of_witness(certificate)
    found["sha256"] = digest_of(found)
    assert errors(found, world)
