"""A fleet stands where it says, rented or owned."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from planner import api
from planner.catalog.load import load_catalog
from planner.catalog.regions import region_matches
from planner.errors import PlanError
from planner.scenario.load import parse_scenario

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
    told = [one for one in document["named"] if "not in the regions of the fleet" in one["text"]]
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
