"""Every comparison of the joint limits of a plan: one within the bound, at it, and one beyond it.

The shape north/two has 2 plain devices, draws 1 kW and costs $3 an hour; an hour of it is 400 g of carbon.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from planner.catalog.model import Catalog
from planner.checks.limits import limit_findings
from planner.scenario.schema import Scenario
from tests.worlds import catalog, device, job, offer, scenario, shape

TWO, PLACE = "north/two", ("north", "r1")
NONE: list[str] = []


def world(**facts: Any) -> Catalog:
    """Two vendors and two prices; `facts` change the device."""
    shapes = [shape(TWO, devices=2), shape("south/two", devices=2)]
    offers = [
        offer(TWO, 3.0), offer(TWO, 2.0, price_model="spot"), offer("south/two", 4.0, region="r2"),
        offer(TWO, 1.0, price_model="block"),
    ]  # fmt: skip
    return catalog([device(**facts)], shapes, offers, grids={PLACE: (400.0, 1.0)})


def row(count: int, of: str = f"{TWO}:r1:on_demand", **cells: Any) -> dict[str, Any]:
    """What the limits read of a row that runs for an hour."""
    plain = {"offer": of, "price_model": of.rpartition(":")[2], "count": count, "jobs": 1, "hours": 1.0}
    return {**plain, "cost_microusd": 3_000_000 * count, "runs": None, "start_hours": 0.0, "held_hours": 1.0, **cells}


def found(rows: Sequence[Sequence[dict[str, Any]]], asked: Scenario, where: Catalog | None = None) -> list[str]:
    """Names of the limits that a plan passes, with a list of rows for each job."""
    workloads = [{"name": one.name, "allocations": list(own)} for one, own in zip(asked.workloads, rows)]
    document = {"workloads": workloads, "contracts": [], "copies": []}
    problems = list(limit_findings(document, asked, where or world()))
    assert {problem.reference for problem in problems} <= {"limit-exceeded"}
    return [problem.message.partition(":")[0] for problem in problems]


def under(count: int, *, where: Catalog | None = None, of: str = f"{TWO}:r1:on_demand", **top: Any) -> list[str]:
    """The same of one job on a number of shapes."""
    return found([[row(count, of)]], scenario([job(deadline="2 h")], **top), where)


@pytest.mark.parametrize(("count", "beyond"), [(2, False), (3, False), (4, True)])
@pytest.mark.parametrize(
    ("name", "top"),
    [
        ("limits.max_devices", {"limits": {"max_devices": 6}}),
        ("limits.power", {"limits": {"power": "3 kW"}}),
        ("limits.spend", {"limits": {"spend": "$9/h"}}),
        ("limits.budget", {"limits": {"budget": "$9"}}),
        ("limits.carbon", {"limits": {"carbon": "1200 g"}}),
        ("limits.sites[0].power", {"limits": {"sites": [{"provider": "nor*", "power": "3 kW"}]}}),
        ("limits.sites[0].carbon", {"limits": {"sites": [{"region": "r1", "carbon": "1200 g"}]}}),
        ("hardware.quotas[0]", {"hardware": {"quotas": [{"device": "plain", "max_devices": 6}]}}),
        ("hardware.quotas[0]", {"hardware": {"quotas": [{"provider": "north", "max_shapes": 3}]}}),
        ("hardware.quotas[0]", {"hardware": {"quotas": [{"region": "r1", "max_shapes": 3}]}}),
        ("hardware.quotas[0]", {"hardware": {"quotas": [{"provider": "North", "max_shapes": 3}]}}),
        ("limits.sites[0].power", {"limits": {"sites": [{"provider": "NORTH", "region": "R1", "power": "3 kW"}]}}),
        ("hardware.quotas[0]", {"hardware": {"quotas": [{"price_model": "on_demand", "max_shapes": 3}]}}),
    ],
)
def test_amounts_at_their_bound(name: str, top: dict[str, Any], count: int, beyond: bool) -> None:
    assert under(count, **top) == [name] * beyond


@pytest.mark.parametrize(("cost", "beyond"), [(59_999_999_999, 0), (60_000_000_000, 0), (60_000_000_001, 1)])
def test_a_budget_is_kept_to_the_micro_dollar(cost: int, beyond: int) -> None:
    """$60,000, where a millionth of it would be six cents."""
    asked = scenario([job(deadline="2 h")], limits={"budget": "$60000"})
    assert found([[row(1, cost_microusd=cost)]], asked) == ["limits.budget"] * beyond


@pytest.mark.parametrize("part", ["contracts", "copies"])
def test_what_is_bought_counts_against_the_budget(part: str) -> None:
    asked = scenario([job(deadline="2 h")], limits={"budget": "$9"})
    document: dict[str, Any] = {"workloads": [{"name": "job", "allocations": [row(2)]}], "contracts": [], "copies": []}
    document[part] = [{"cost_microusd": 3_000_000}]
    assert list(limit_findings(document, asked, world())) == []
    document[part] = [{"cost_microusd": 3_000_001}]
    assert [one.reference for one in limit_findings(document, asked, world())] == ["limit-exceeded"]


@pytest.mark.parametrize(
    "quota",
    [
        {"provider": "south", "max_shapes": 1}, {"device": "other", "max_shapes": 1},
        {"region": "r2", "max_shapes": 1}, {"price_model": "spot", "max_shapes": 1},
    ],
)  # fmt: skip
def test_a_quota_counts_only_what_it_names(quota: dict[str, Any]) -> None:
    assert under(3, hardware={"quotas": [quota]}) == NONE


def test_a_place_counts_only_what_stands_there() -> None:
    for place in ({"provider": "south"}, {"region": "r2"}, {"provider": "north", "region": "r2"}):
        assert under(3, limits={"sites": [{**place, "power": "1 W", "carbon": "1 g"}]}) == NONE


@pytest.mark.parametrize(("limit", "beyond"), [(3, 0), (2, 0), (1, 1)])
def test_providers(limit: int, beyond: int) -> None:
    asked = scenario([job("a", deadline="2 h"), job("b", deadline="2 h")], limits={"max_providers": limit})
    rows = [[row(1)], [row(1, "south/two:r2:on_demand")]]
    assert found(rows, asked) == ["limits.max_providers"] * beyond


@pytest.mark.parametrize(("name", "limits"), [("power", {"power": "1 GW"}), ("carbon", {"carbon": "1000 t"})])
def test_what_is_unknown_may_not_be_used_under_a_limit(name: str, limits: dict[str, str]) -> None:
    assert under(1, where=world(tdp_w=None), limits=limits) == [f"limits.{name}"]
    assert under(1, limits=limits) == NONE


def test_carbon_of_an_unknown_grid_is_unknown() -> None:
    asked = scenario([job(deadline="2 h")], limits={"carbon": "1000 t"})
    assert found([[row(1, "south/two:r2:on_demand")]], asked) == ["limits.carbon"]


@pytest.mark.parametrize(("hours", "beyond"), [(3.0, 0), (3.0 + 1.4e-3 / 1200, 0), (3.0 + 1.6e-3 / 1200, 1)])
def test_carbon_may_pass_its_limit_by_half_a_milligram_a_shape(hours: float, beyond: int) -> None:
    """3 shapes for 3 hours are 3600 g: 1.5 mg of rounding, and no more."""
    asked = scenario([job(deadline="4 h")], limits={"carbon": "3600 g"})
    assert found([[row(3, hours=hours)]], asked) == ["limits.carbon"] * beyond


@pytest.mark.parametrize(("count", "beyond"), [(2, 0), (3, 0), (4, 1)])
def test_owned_shapes(count: int, beyond: int) -> None:
    owned = [{"shape": TWO, "count": 3, "price": "$1/h"}]
    assert under(count, of=f"owned:0:{TWO}", hardware={"owned": owned}) == ["hardware.owned[0]"] * beyond


def test_quotas_count_contracts_as_they_are_bought_and_nothing_that_is_owned() -> None:
    hardware = {
        "owned": [{"shape": TWO, "count": 3, "price": "$1/h"}],
        "quotas": [{"device": "plain", "max_shapes": 1}],
    }
    assert under(3, of=f"owned:0:{TWO}", hardware=hardware) == NONE
    assert under(3, of="reserved:north/r1/two", hardware={"quotas": [{"max_shapes": 1}]}) == NONE
    assert under(3, of=f"{TWO}:r1:block", hardware={"quotas": [{"max_shapes": 1}]}) == ["hardware.quotas[0]"]
    assert under(3, of=f"{TWO}:r1:block", hardware={"quotas": [{"price_model": "spot", "max_shapes": 1}]}) == NONE
    assert under(1, of=f"{TWO}:r1:spot", hardware={"quotas": [{"max_shapes": 1}]}) == NONE
    assert under(2, of=f"{TWO}:r1:spot", hardware={"quotas": [{"max_shapes": 1}]}) == ["hardware.quotas[0]"]


@pytest.mark.parametrize(("start", "beyond"), [("3601 s", 0), ("3600 s", 0), ("3599 s", 1)])
def test_what_begins_when_another_ends_is_not_beside_it(start: str, beyond: int) -> None:
    jobs = [job("a", deadline="1 h"), job("b", deadline="1 h", start=start)]
    asked = scenario(jobs, limits={"max_devices": 3})
    assert found([[row(1)], [row(1)]], asked) == ["limits.max_devices"] * beyond


@pytest.mark.parametrize(
    ("window", "beyond"),
    [
        ({"from": "2026-12-01", "until": "2026-12-08"}, 0),
        ({"from": "2026-12-02", "until": "2026-12-08"}, 1),
        ({"from": "2026-12-01", "until": "2026-12-07 23:30"}, 1),
        ({"from": "2026-12-01"}, 0),
        ({"until": "2026-12-09"}, 0),
        ({}, 0),
    ],
)
def test_owned_machines_are_used_while_they_are_there(window: dict[str, str], beyond: int) -> None:
    """A job that holds its machine for the first week of December."""
    owned = [{"shape": TWO, "count": 1, "price": "$1/h", **window}]
    asked = scenario(
        [job(deadline="7 days")], hardware={"owned": owned}, begin="2026-12-01", horizon="28 days", periods="1 week"
    )
    held = row(1, f"owned:0:{TWO}", held_hours=168.0, hours=168.0)
    assert found([[held]], asked) == ["hardware.owned[0]"] * beyond
