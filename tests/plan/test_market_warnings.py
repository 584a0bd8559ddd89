"""Plans say who of their sellers promises nothing, and what is more than one may expect on demand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Capacity, Catalog, Provenance, Provider
from tests.worlds import catalog, device, fleet, offer, scenario, shape

STATED = Provenance(source="assumed", as_of="2026-11-20", status="inferred")


def world(kind: str, stock: dict[tuple[str, str], int]) -> Catalog:
    """One device of the family hopper, sold by one provider of a kind."""
    made = catalog([device(family="hopper")], [shape("north/one")], [offer("north/one", 1.0)])
    north = Provider(id="north", kind=kind, capacity="", billing_step_s=None, minimum_s=None, provenance=STATED)
    stocks = {
        key: Capacity(kind=key[0], family=key[1], devices=count, provenance=STATED) for key, count in stock.items()
    }
    return replace(made, providers={"north": north}, capacities=stocks)


def told(known: Catalog, nodes: int, **hardware: Any) -> list[str]:
    document = api.solve(scenario([], [fleet("chat", qpm=600 * nodes)], hardware=hardware), known).document
    assert document["status"] == "optimal"
    return [line for line in document["warnings"] if "may expect" in line or "promises" in line]


@pytest.mark.parametrize(
    ("nodes", "stock", "warned"),
    [
        (4, {("cloud", "hopper"): 4}, False),
        (5, {("cloud", "hopper"): 4}, True),
        (5, {("cloud", "hopper"): 4, ("cloud", ""): 9}, True),  # that of the family counts
        (5, {("cloud", "ampere"): 4, ("cloud", ""): 4}, True),  # else that of all others
        (5, {("hyperscaler", ""): 4}, False),
        (5, {}, False),
    ],
)
def test_more_than_one_may_expect_is_told(nodes: int, stock: dict[tuple[str, str], int], warned: bool) -> None:
    lines = told(world("cloud", stock), nodes)
    assert bool(lines) == warned
    if warned:
        assert lines[0].startswith("5 plain on demand at north r1 are more than the 4 that one may expect of a cloud")


def test_what_a_quota_grants_is_no_surprise() -> None:
    known = world("cloud", {("cloud", ""): 4})
    assert told(known, 5, quotas=[{"provider": "north", "max_devices": 8}]) == []
    assert told(known, 5, quotas=[{"provider": "north", "price_model": "spot", "max_devices": 8}]) != []


def test_a_marketplace_is_told_with_the_way_out() -> None:
    (line,) = told(world("marketplace", {}), 1)
    assert line.startswith("north is a marketplace: nobody promises that north/one:r1:on_demand is there")
    assert line.endswith("hardware.exclude: [north] leaves it out")
