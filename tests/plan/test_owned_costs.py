"""What owned machines cost by capital, power and staff: by hand, in decimals, forged, and beside rent."""

from __future__ import annotations

import copy
import json
import random
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.checks.facts import exact_hourly
from planner.estimate.ownership import HourlyCost, hourly_of, split_microusd
from planner.plan.document import digest_of
from planner.report.plan_formats import render_screen
from planner.report.schedule_view import spend_lines
from planner.scenario.hardware_keys import Owned
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario
from tests.tiers import cases
from tests.verified import errors, follow_schema
from tests.worlds import catalog, device, job, offer, scenario, shape

PARTS: dict[str, Any] = {
    "capital": {"price": "$300k", "years": 4, "residual": "$60k"},
    "power": {"watts": "10.2 kW", "price": "$0.12/kWh", "pue": 1.3},
    "staff": "$900/month",
}  # of an hour: 240,000 / 35,040 h, 10.2 × 1.3 × 0.12, 900 / 730
BY_HAND = HourlyCost(
    price_microusd=6_849_315 + 1_591_200 + 1_232_877,
    capital_microusd=6_849_315,
    power_microusd=1_591_200,
    staff_microusd=1_232_877,
)


def world(dollars: float = 20.0) -> Catalog:
    return catalog([device()], [shape("north/one", devices=8)], [offer("north/one", dollars)])


def owning(count: int = 1, **keys: Any) -> Scenario:
    owned = {"shape": "north/one", "count": count, **(keys or PARTS)}
    return scenario([job()], hardware={"owned": [owned]})


def solved(asked: Scenario, known: Catalog) -> Any:
    document: Any = json.loads(json.dumps(api.solve(asked, known).document))
    assert document["status"] == "optimal"
    assert errors(document, known) == []
    follow_schema(document)
    return document


def test_an_hour_by_hand() -> None:
    assert hourly_of(owning().hardware.owned[0]) == BY_HAND


@pytest.mark.parametrize("kept", [("capital",), ("power",), ("staff",), ("power", "staff")])
def test_a_part_that_is_left_out_costs_nothing(kept: tuple[str, ...]) -> None:
    hour = hourly_of(owning(**{name: PARTS[name] for name in kept}).hardware.owned[0])
    due = [getattr(BY_HAND, f"{name}_microusd") if name in kept else 0 for name in ("capital", "power", "staff")]
    assert [hour.capital_microusd, hour.power_microusd, hour.staff_microusd] == due
    assert hour.price_microusd == sum(due)


def test_a_plan_tells_what_is_capital_power_and_staff() -> None:
    document = solved(owning(), world())
    (row,), (told,) = document["workloads"][0]["allocations"], document["owned_hours"]
    assert row["price_microusd_per_hour"] == told["price_microusd_per_hour"] == BY_HAND.price_microusd
    assert told["price_usd_per_device_hour"] == pytest.approx(BY_HAND.price_microusd / 8e6)
    assert told["cost_microusd"] == row["cost_microusd"] > 0
    spent = [told[f"{name}_microusd"] for name in ("capital", "power", "staff")]
    assert sum(spent) == row["cost_microusd"]
    for name, microusd in zip(("capital", "power", "staff"), spent):
        assert microusd == pytest.approx(row["hours"] * getattr(BY_HAND, f"{name}_microusd"), abs=2)
    assert any("spread evenly over 4 years" in line for line in document["assumed"])


def test_what_it_costs_decides_whether_it_is_used() -> None:
    """At $9.67 an hour the own machine is left idle beside one that is rented at $9.00, and used beside $10.00."""
    for dollars, model in ((9.0, "on_demand"), (10.0, "owned")):
        (row,) = solved(owning(), world(dollars))["workloads"][0]["allocations"]
        assert row["price_model"] == model


def test_one_price_has_no_parts_to_tell() -> None:
    assert "owned_hours" not in solved(owning(price="$9/h"), world())


def test_the_terminal_says_it() -> None:
    (line,) = spend_lines(solved(owning(), world()))
    hour = "$9.6734 an hour ($1.2092 a device-hour) = $6.8493 capital + $1.5912 power + $1.2329 staff"
    assert line.startswith(f" Owned  north/one: {hour}; of $")


CELLS = (
    ("place", "hardware.owned[1]"), ("shape", "other"), ("offer", "owned:1:north/one"), ("devices_per_shape", 4),
    ("bought_microusd", 1), ("residual_microusd", 1), ("years", 5.0), ("power_w", 1.0), ("energy_microusd_per_kwh", 1),
    ("pue", 1.0), ("capital_microusd_per_hour", 1), ("power_microusd_per_hour", 1), ("staff_microusd_per_hour", 1),
    ("price_microusd_per_hour", 1), ("price_usd_per_device_hour", 1.0), ("cost_microusd", 1), ("capital_microusd", 1),
    ("power_microusd", 1), ("staff_microusd", 1),
)  # fmt: skip


def test_every_cell_of_it_is_worked_out_again() -> None:
    known = world()
    document = solved(owning(), known)
    assert {name for name, _ in CELLS} == set(document["owned_hours"][0])
    for name, value in CELLS:
        other = copy.deepcopy(document)
        other["owned_hours"][0][name] = value
        other["sha256"] = digest_of(other)
        assert errors(other, known), name
    for rows in ([], document["owned_hours"] * 2):
        other = {**document, "owned_hours": rows}
        assert errors({**other, "sha256": digest_of(other)}, known)


def in_decimals(owned: dict[str, Any]) -> list[Decimal]:
    """Capital, power and staff of an hour from what was written, in decimals, not rounded.  [micro-USD]"""
    with localcontext() as context:
        context.prec = 60
        bought, drawn = owned["capital"], owned["power"]
        value = Decimal(bought["price"][1:]) - Decimal(bought["residual"][1:])
        energy = Decimal(drawn["price"][1:].removesuffix("/kWh"))
        exact = [
            value / (Decimal(repr(bought["years"])) * 8760),
            Decimal(drawn["watts"].removesuffix(" W")) / 1000 * energy * Decimal(repr(drawn["pue"])),
            Decimal(owned["staff"][1:].removesuffix("/month")) / 730,
        ]
        return [part * 10**6 for part in exact]


def test_hours_against_decimals() -> None:
    """Also at halves of a micro-dollar: 6 W at $0.101/kWh and a PUE of 1.25 are 757.5 of them."""
    chance = random.Random(18)
    halves = 0
    for number in range(cases(2000, 20_000)):
        price = chance.randrange(1, 10**7)
        owned: dict[str, Any] = {
            "capital": {"price": f"${price}", "residual": f"${chance.randrange(0, price)}",
                        "years": chance.choice([1, 2, 2.5, 3, 4, 5, 7.25])},
            "power": {"watts": f"{chance.choice([6, 700, chance.randrange(1, 200_000)])} W",
                      "price": f"${chance.choice([0.101, 0.125, chance.randrange(10, 999) / 1000])}/kWh",
                      "pue": chance.choice([1, 1.25, 1.3, chance.randrange(100, 300) / 100])},
            "staff": f"${chance.randrange(0, 5000)}.{chance.randrange(0, 100):02d}/month",
        }  # fmt: skip
        exact = in_decimals(owned)
        halves += exact[1] % 1 == Decimal("0.5")
        due = [part.to_integral_value(ROUND_HALF_EVEN) for part in exact]
        parsed = Owned.model_validate({"shape": "north/one", "count": 1, **owned})
        hour, again = hourly_of(parsed), exact_hourly(parsed)
        told = [hour.capital_microusd, hour.power_microusd, hour.staff_microusd]
        assert told == due, (number, owned)
        assert [again.capital, again.power, again.staff] == due
        assert hour.price_microusd == again.price == sum(due)
    assert halves


def test_parts_of_a_cost_add_up_to_it() -> None:
    chance = random.Random(3)
    for _ in range(500):
        capital, power, staff = (chance.choice([0, chance.randrange(1, 10**8)]) for _ in range(3))
        hour = HourlyCost(price_microusd=capital + power + staff, capital_microusd=capital, power_microusd=power,
                          staff_microusd=staff)  # fmt: skip
        cost = chance.randrange(0, 10**13)
        parts = split_microusd(cost, hour)
        assert sum(parts) == (cost if hour.price_microusd else 0)
        for part, rate in zip(parts, (capital, power, staff)):
            assert abs(part * hour.price_microusd - cost * rate) <= hour.price_microusd
            assert part == 0 or rate


# ---- what owned machines draw and emit


def emitting(limits: dict[str, Any], **owned: Any) -> Scenario:
    entry = {"shape": "north/one", "count": 1, **PARTS, **owned}
    return scenario([job()], hardware={"owned": [entry]}, limits=limits)


def drawing(*named: tuple[str, str, float, float]) -> Catalog:
    """Rent is dear, so that what is owned is taken where it may be."""
    grids = {(provider, region): (grams, pue) for provider, region, grams, pue in named}
    return catalog([device()], [shape("north/one", devices=8)], [offer("north/one", 200.0)], grids=grids)


@pytest.mark.parametrize(
    ("owned", "grids", "grams_per_hour"),
    [
        ({"carbon": "380 g/kWh"}, (), 10.2 * 380),
        ({"carbon": "0.38 t/MWh", "region": "r9"}, (("north", "r9", 100.0, 1.1),), 10.2 * 380),
        ({"region": "r9"}, (("north", "r9", 100.0, 1.1),), 10.2 * 100 * 1.3),
        ({"region": "r9"}, (("north", "r9", 100.0, 1.1), ("south", "r9", 100.0, 1.1)), 10.2 * 100 * 1.3),
        ({"region": "r9"}, (("north", "r9", 100.0, 1.1), ("south", "r9", 90.0, 1.1)), None),
        ({"region": "r8"}, (("north", "r9", 100.0, 1.1),), None),
        ({}, (), None),
    ],
)
def test_owned_machines_emit_what_they_draw(owned: dict[str, Any], grids: Any, grams_per_hour: float | None) -> None:
    """They could not be used under a limit of carbon: the grid was looked for at a provider called owned."""
    known = drawing(("north", "r1", 1.0, 1.0), *grids)
    document = solved(emitting({"carbon": "1000 t"}, **owned), known)
    (row,) = document["workloads"][0]["allocations"]
    assert (row["provider"] == "owned") == (grams_per_hour is not None)
    if grams_per_hour is not None:
        assert row["power_w"] == pytest.approx(10_200 * row["count"])
        assert row["carbon_kg"] == pytest.approx(grams_per_hour * row["hours"] * row["count"] / 1000)
    else:
        assert "write carbon: 380 g/kWh there" in json.dumps(document["named"])


@pytest.mark.parametrize(("limit", "provider"), [("10.2 kW", "owned"), ("10.1 kW", "north")])
def test_a_limit_of_power_counts_what_the_owner_says(limit: str, provider: str) -> None:
    """Eight devices of 700 W stood for a machine that draws 10.2 kW, and for one that draws 3."""
    document = solved(emitting({"power": limit}), drawing())
    assert [row["provider"] for row in document["workloads"][0]["allocations"]] == [provider]
    frugal = solved(emitting({"power": "4 kW"}, power={**PARTS["power"], "watts": 3000}), drawing())
    assert [row["power_w"] for row in frugal["workloads"][0]["allocations"]] == [3000]


def test_offers_of_unknown_grids_are_told_on_the_first_screen() -> None:
    known = catalog(
        [device()], offers=[offer(region="r1"), offer(region="r2", dollars=1.0)], grids={("north", "r1"): (400.0, 1.2)}
    )
    document = solved(scenario([job()], limits={"carbon": "1000 t"}), known)
    (told,) = (text for text in document["warnings"] if "grids are unknown" in text or "grids.csv" in text)
    assert "1 offer of regions" in told
    assert "north r1" in told
    assert not [text for text in solved(scenario([job()]), known)["warnings"] if "grids.csv" in text]


@pytest.mark.parametrize(
    "asked", [{"limits": {"power": "900 W"}}, {"limits": {"carbon": "1 t"}}, {"objective": "carbon"}]
)
def test_offers_of_unknown_power_are_told_on_the_first_screen(asked: dict[str, Any]) -> None:
    """TPUs at a third of the price were left out under a limit of power, and nothing said so."""
    known = catalog(
        [device(tdp_w=700.0), device("quiet", tdp_w=None)],
        [shape("north/one"), shape("north/other", "quiet")],
        [offer(dollars=3.0), offer("north/other", dollars=1.0)],
        grids={("north", "r1"): (400.0, 1.2)},
    )
    document = solved(scenario([job()], **asked), known)
    (told,) = (text for text in document["warnings"] if "whose power is unknown" in text)
    counted = "power" if "power" in json.dumps(asked) else "carbon"
    assert told.startswith(
        f"where {counted} counts, 1 offer of devices whose power is unknown is left out (quiet), and"
    )
    assert not [text for text in solved(scenario([job()]), known)["warnings"] if "power is unknown" in text]
    nothing = api.solve(scenario([job()], **{**asked, "limits": {"power": "1 W"}}), known).document
    assert nothing["status"] == "infeasible"
    assert "whose power is unknown" in " ".join(render_screen(nothing).split())


def test_ways_out_where_carbon_is_weighed_are_of_known_grids_too() -> None:
    """They were looked for among all offers: "4 to 10 devices, then $8,152", which applied had no plan at all."""
    known = catalog(
        [device()], offers=[offer(region="r1"), offer(region="r2", dollars=0.5)], grids={("north", "r1"): (400.0, 1.2)}
    )
    tight = scenario([job(deadline="1 days")], objective=["cost", "carbon"], limits={"budget": "$1"})
    found = api.solve(tight, known).document["infeasible"]
    assert found is not None
    ways = [way for way in found["ways_out"] if way["setting"].startswith("limits.budget")]
    assert ways
    for way in ways:
        again = api.solve(with_settings(tight, [way["setting"]]), known).document
        assert (again["status"], again["summary"]["cost_microusd"]) == ("optimal", way["cost_microusd"])


@pytest.mark.parametrize(("keys", "told"), [({"price": "$5/h"}, 1), (PARTS, 0)])
def test_a_limit_of_power_says_where_it_counts_accelerators_alone(keys: dict[str, Any], told: int) -> None:
    """Two DGX H100 came out at 11.2 kW, and ten of them fitted into 60, without a word of all that is not a card."""
    known = catalog([device(tdp_w=700.0)], [shape("north/one", devices=8)], [offer("north/one", 20.0)])
    for limits, said in (({"power": "60 kW"}, told), ({}, 0), ({"budget": "$9M"}, 0)):
        asked = scenario([job()], hardware={"owned": [{"shape": "north/one", "count": 1, **keys}]}, limits=limits)
        warnings = solved(asked, known)["warnings"]
        assert sum("is that of accelerators as they are rated" in one for one in warnings) == said


@pytest.mark.parametrize(
    ("window", "bound"),
    [
        ({"from": "2026-12-03"}, 2),
        ({"until": "2026-12-03"}, 2),
        ({"from": "2027-12-03"}, 0),
        ({"until": "2026-11-03"}, 0),
    ],
)
def test_machines_that_come_or_go_and_no_workload_may_use(window: dict[str, str], bound: int) -> None:
    """The carbon of their grid is unknown, so that no way on them is listed; their limit stands in the plan still."""
    known = catalog([device()], [shape("north/one")], [offer("north/one")], grids={("north", "r1"): (400.0, 1.0)})
    asked = scenario(
        [job()], objective="carbon", begin="2026-12-01", horizon="10 days", periods="1 day",
        hardware={"owned": [{"shape": "north/one", "count": 2, "price": "$1/h", **window}]},
    )  # fmt: skip
    (limit,) = solved(asked, known)["limits"]
    assert (limit["name"], limit["bound"], limit["used"]) == ("hardware.owned[0]", bound, 0)
