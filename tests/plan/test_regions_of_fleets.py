"""A workload stands where it says, rented or owned."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from planner import api
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.catalog.names import region_matches
from planner.errors import PlanError
from planner.plan.document import resealed
from planner.scenario.load import parse_scenario, with_settings
from tests import worlds
from tests.verified import errors

TEXT = """{schema: plan/v1, name: places, serving: [FLEETS], hardware: {allow: [h100-sxm-80gb, l40s], OWNED}}"""
FLEET = (
    "{name: NAME, model: llama-3.1-8b, weights: fp8, qpm: 600, input_tokens: 800, output_tokens: 200, regions: REGIONS}"
)


def asked(regions: dict[str, str], owned: str = "providers: ['*']") -> Any:
    fleets = ", ".join(FLEET.replace("NAME", name).replace("REGIONS", places) for name, places in regions.items())
    return parse_scenario(TEXT.replace("FLEETS", fleets).replace("OWNED", owned), file="places.yaml")


def test_two_fleets_stand_in_places_of_their_own() -> None:
    """Both were put where it was cheapest for either: users of one were an ocean away, and no key could say so."""
    catalog = load_catalog()
    document: Any = api.solve(asked({"us": "us", "eu": "[eu, eea]"}), catalog).document
    offers = {offer.id: offer for offer in catalog.offers}
    for workload, area in zip(document["workloads"], ("us", "eu"), strict=True):
        assert workload["allocations"]
        assert all(region_matches(offers[row["offer"]], area) for row in workload["allocations"])
        assert all(region_matches(offers[one["offer"]], area) for one in workload["alternatives"])
    assert [one for one in api.verify(document, catalog) if one.severity == "error"] == []


def test_a_plan_that_stands_elsewhere_is_refused() -> None:
    catalog = load_catalog()
    document: Any = api.solve(asked({"us": "us", "eu": "eu"}), catalog).document
    us, eu = document["workloads"]
    for part in ("allocations", "alternatives"):
        forged = copy.deepcopy(document)
        forged["workloads"][1][part] = copy.deepcopy(us[part])
        found = [one.message for one in api.verify(forged, catalog)]
        assert f"eu: {us[part][0]['offer']} is in none of its regions" in found
        assert us[part][0]["offer"] != eu[part][0]["offer"]


@pytest.mark.parametrize(("where", "used"), [("de", True), ("fr", False), ("", False)])
def test_what_is_owned_stands_somewhere_too(where: str, used: bool) -> None:
    """Of machines whose place is not stated nobody knows that they stand where the data must stay."""
    region = f", region: {where}" if where else ""
    owned = f"owned: [{{shape: dgx-h100, count: 1, price: $1/h{region}}}]"
    document: Any = api.solve(asked({"eu": "de"}, owned)).document
    assert (document["workloads"][0]["allocations"][0]["provider"] == "owned") is used
    told = [one for one in document["named"] if "not in the regions of the workload" in one["text"]]
    assert bool(told) is not used


def test_fewer_places_are_never_cheaper() -> None:
    costs = []
    for places in ("'*'", "[us, eu, ca]", "[us, eu]", "eu", "fi"):
        document: Any = api.solve(asked({"chat": places})).document
        costs.append(document["summary"]["cost_microusd"] or float("inf"))
    assert costs == sorted(costs)


def test_a_place_that_nobody_sells_in_is_told_with_its_line() -> None:
    with pytest.raises(PlanError, match="no region of the catalog matches 'germany'"):
        api.solve(asked({"eu": "germany"}))


def known() -> Catalog:
    """Nodes in three regions, of which the second sells one."""
    shapes = [worlds.shape(f"{name}/eight", devices=8) for name in ("north", "south")]
    offers = [
        worlds.offer("north/eight", 8.0, region="r1"),
        worlds.offer("south/eight", 6.0, region="r2", max_shapes=1),
        worlds.offer("south/eight", 7.0, region="r3"),
    ]
    return worlds.catalog([worlds.device()], shapes, offers)


def test_a_job_runs_in_its_regions() -> None:
    """Only fleets could say so: a job ran where it was cheapest, wherever its data must stay."""
    jobs = [worlds.job("a", regions=["r1"]), worlds.job("b", regions=["r2", "r3"]), worlds.job("c")]
    document: Any = api.solve(
        worlds.scenario(jobs, hardware={"quotas": [{"region": "r2", "max_shapes": 1}]}), known()
    ).document
    places = {one["name"]: [row["region"] for row in one["allocations"]] for one in document["workloads"]}
    assert places["a"] == ["r1"]
    assert set(places["b"] + places["c"]) == {"r2", "r3"}
    assert errors(document, known()) == []
    forged = copy.deepcopy(document)
    forged["scenario"]["training"][0]["regions"] = ["r3"]
    assert "not-allowed" in {one.reference for one in errors(resealed(forged), known())}


@pytest.mark.parametrize("model", ["spot", "commitment_1y"])
def test_a_job_that_is_mixed_or_reserved_runs_in_its_regions_too(model: str) -> None:
    offers = [*known().offers, worlds.offer("north/eight", 1.0, region="r1", price_model=model)]
    sold = worlds.catalog([worlds.device()], known().shapes.values(), offers)
    job = worlds.job("a", regions=["r2", "r3"], mix_within_job=model == "spot" or None)
    hardware = {"pricing": ["on_demand", model], "spot": {"interruptions": "0.01 /h"}}
    document: Any = api.solve(worlds.scenario([job], hardware=hardware), sold).document
    assert {row["region"] for row in document["workloads"][0]["allocations"]} <= {"r2", "r3"}
    assert errors(document, sold) == []


def test_a_place_too_few_has_another_as_a_way_out() -> None:
    """Nothing was offered but less load: lists over all workloads alone were made wider."""
    asked_for = worlds.scenario([], [worlds.fleet("chat", qpm=6000, regions="r2")], horizon="30 days")
    document: Any = api.solve(asked_for, known()).document
    ways = {one["limit"]: one for one in document["infeasible"]["ways_out"]}
    assert ways["serving[0].regions"]["setting"] == 'serving.chat.regions=["r2", "r3"]'
    again: Any = api.solve(with_settings(asked_for, [ways["serving[0].regions"]["setting"]]), known()).document
    assert again["summary"]["cost_microusd"] == ways["serving[0].regions"]["cost_microusd"]
    assert errors(document, known()) == []


def test_what_is_owned_elsewhere_is_told_of_every_fleet() -> None:
    """The line named the first of two."""
    fleets = [worlds.fleet("f", qpm=60, regions="r2"), worlds.fleet("g", qpm=60, regions="r3")]
    owned = {"shape": "north/eight", "count": 1, "price": "$1/h"}
    document: Any = api.solve(worlds.scenario([], fleets, hardware={"owned": [owned]}), known()).document
    assert [one["text"] for one in document["named"]] == ["not used: f, g: not in the regions of the workload"]
