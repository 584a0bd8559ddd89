"""Ways out, marginal values, break-even prices and why not, from the scenario on: each claim is put to the planner."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.analysis.why import infeasible, why_not
from planner.analysis.why.in_turn import fine_periods_s
from planner.analysis.why.least import least_that_works
from planner.analysis.why.repairs import BOTH
from planner.analysis.why.settings import in_words, stated_limits, written
from planner.analysis.why.widen import load_of, rounded_up_us, wider_choices
from planner.api import sessions
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog, Provider
from planner.errors import InputError
from planner.optimize.limited import Asker
from planner.optimize.solve import Solution
from planner.report import explain_limits
from planner.report.explanation_view import render_explanation
from planner.report.plan_formats import render_plan
from planner.scenario.load import load_scenario, with_settings
from planner.scenario.schema import Scenario
from tests.tiers import cases
from tests.verified import follow_schema
from tests.worlds import GIB, PEAK_FLOP_PER_S, SEEN, catalog, device, fleet, job, offer, scenario, shape

Document = dict[str, Any]
DAY_S = 86_400


def two_speeds() -> Catalog:
    """`plain` at $1 an hour, and `fast`, twice as fast, at $3."""
    peaks = dict.fromkeys(("fp32", "fp16", "bf16"), 2 * PEAK_FLOP_PER_S)
    return catalog(
        [device(), device("fast", peak_flop_per_s=peaks)],
        [shape(), shape("south/fast", "fast")],
        [offer(), offer("south/fast", 3.0, region="r2")],
    )


def solved(plan: Scenario, world: Catalog) -> Document:
    """The plan, costs told apart to the micro-dollar: on either side of a break-even price."""
    document: Document = json.loads(api.solve(plan, world, tie_tolerance=0.0).to_json())
    follow_schema(document)
    return document


def settings_of(changes: list[Document]) -> list[str]:
    """The --set texts of some changes."""
    return [setting for one in changes if one["setting"] for setting in one["setting"].split(BOTH)]


def cost_of(plan: Scenario, world: Catalog, *settings: str) -> int | None:
    """What the whole planner says of a scenario with some settings; None when infeasible."""
    found = api.enumerate_candidates(with_settings(plan, settings), world)
    answer = api.optimize(found.program, cost_only=True)
    assert answer.status in ("optimal", "infeasible")
    return answer.cost_microusd if answer.has_plan else None


def one_less(plan: Scenario, way: Document) -> str:
    """The setting of one unit less than a way out; of a load one more."""
    if way["limit"].startswith("serving"):
        path, amount = way["setting"].split("=")
        assert amount.split()[0] == str(way["to"])
        return f"{path}={amount.replace(str(way['to']), str(way['to'] + 1), 1)}"
    limit = next(one for one in stated_limits(plan) if one.name == way["limit"] and one.unit == way["unit"])
    return limit.setting(way["to"] - 1)


def check_ways_out(plan: Scenario, world: Catalog, facts: Document) -> int:
    """Every way out does when applied, at its cost; one unit less does not. How many there are."""
    count = 0
    for way in facts["ways_out"]:
        assert way["proven"], way
        if way["to"] is None:
            continue
        assert cost_of(plan, world, *settings_of([way])) == way["cost_microusd"], way
        if way["unit"] != "choices":
            assert cost_of(plan, world, one_less(plan, way)) is None, way
        count += 1
    if facts["combined"]:
        settings = [one["setting"] for one in facts["combined"]["changes"]]
        assert cost_of(plan, world, *settings) == facts["combined"]["cost_microusd"]
    return count


# ---- ways out


def test_deadline_quota_or_another_device() -> None:
    """6000 device-seconds in 3000 s want 2 devices; 1 is granted. Twice as fast does, at 3000 s for $2.50."""
    plan = scenario(
        [job(deadline="3000 s")],
        hardware={"allow": ["plain"], "quotas": [{"device": "plain", "max_devices": 1}]},
    )
    facts = solved(plan, two_speeds())["infeasible"]
    assert [one["name"] for one in facts["conflict"]] == ["job", "training[0].deadline", "hardware.quotas[0]"]
    assert facts["minimal"]
    ways = {one["limit"]: one for one in facts["ways_out"]}
    assert {name: (one["from"], one["to"]) for name, one in ways.items()} == {
        "training[0].deadline": (3000, 6000),
        "hardware.quotas[0]": (1, 2),
        "hardware.allow": (1, 2),
    }
    assert ways["training[0].deadline"]["setting"] == "training.job.deadline=6000 s"
    assert ways["hardware.allow"]["to_text"] == "+ fast"
    assert ways["hardware.allow"]["cost_microusd"] == 2_500_000
    assert check_ways_out(plan, two_speeds(), facts) == 3
    assert facts["ways_out"][0]["place"].startswith("test.yaml:")


def test_a_quota_of_devices_and_shapes_moves_in_both() -> None:
    plan = scenario([job(deadline="3000 s")], hardware={"quotas": [{"max_devices": 1, "max_shapes": 1}]})
    facts = solved(plan, catalog())["infeasible"]
    (quota,) = [one for one in facts["ways_out"] if one["limit"] == "hardware.quotas[0]"]
    assert settings_of([quota]) == ["hardware.quotas[0].max_devices=2", "hardware.quotas[0].max_shapes=2"]
    assert cost_of(plan, catalog(), *settings_of([quota])) == quota["cost_microusd"]


@pytest.mark.parametrize(
    ("changes", "batch"),
    [({}, "16M tokens"), ({"global_batch": "4M tokens"}, None), ({"tokens": "1T", "deadline": "18 h"}, None)],
)
def test_a_job_that_is_late_in_a_batch_that_nobody_chose_is_told_a_larger_one(
    changes: Document, batch: str | None
) -> None:
    """32 k tokens in a sequence are 122 of them in 4M tokens: too few for what 15T tokens in 12 days need.

    No larger one is told where one was chosen, and of 1T tokens, where the law allows less than 8M.
    """
    late = job(model="llama-3.1-8b", tokens="15T", deadline="12 days", sequence_length=32768)
    late = {key: value for key, value in late.items() if key != "global_batch"} | changes
    plan = scenario([late], hardware={"allow": ["h100-sxm-80gb"], "providers": ["nebius"], "regions": ["eu-north1"]})
    document = api.solve(plan).document
    assert document["infeasible"] is not None
    ways = [one for one in document["infeasible"]["ways_out"] if one["limit"] == "training[0].global_batch"]
    assert [one["to_text"] for one in ways] == ([batch] if batch else [])
    bound = [line for line in document["infeasible"]["workloads"]["job"] if " would take " in line]
    assert all("in matrix products alone, margin for errors included" in line for line in bound)  # not "at best"
    assert bound
    assert [finding for finding in api.verify(document) if finding.severity == "error"] == []
    for one in ways:
        cost = api.solve(with_settings(plan, settings_of([one]))).document["summary"]["cost_microusd"]
        assert cost == one["cost_microusd"]


def test_one_limit_alone_may_not_be_enough() -> None:
    """Two devices would do in 3000 s, one in 6000; there is 1 and $1, and it takes $1.67 either way."""
    plan = scenario(
        [job(deadline="3000 s")],
        hardware={"quotas": [{"device": "plain", "max_devices": 1}]},
        limits={"budget": "$1"},
    )
    facts = solved(plan, catalog())["infeasible"]
    assert {one["to"] for one in facts["ways_out"]} == {None}
    changes = {one["limit"]: one["to"] for one in facts["combined"]["changes"]}
    assert changes["limits.budget"] == 1_666_667
    assert len(changes) == 2
    assert check_ways_out(plan, catalog(), facts) == 0
    text = render_plan(solved(plan, catalog()), "table")
    assert "alone not enough" in text
    assert "Together" in text


def test_nothing_fits_says_what_came_nearest() -> None:
    """No limit is in the way: the model does not fit, so there is no conflict set, and no way out by a number."""
    plan = scenario([job(model={"parameters": "500B"}, deadline="1000 days")], hardware={"allow": ["plain"]})
    lonely = catalog(shapes=[shape(inter_node_bytes_per_s_per_device=None)])
    facts = solved(plan, lonely)["infeasible"]
    assert facts["conflict"] == []
    assert facts["ways_out"] == []
    assert any(line.startswith("memory: needs ") for line in facts["workloads"]["job"])


def test_a_later_deadline_that_meets_another_job() -> None:
    """At 6000 s of deadline job a would run beside b, that starts after 5000 s: both on one device only at 12000 s."""
    plan = scenario(
        [job("a", deadline="4000 s"), job("b", start="5000 s", deadline="6000 s")],
        hardware={"quotas": [{"device": "plain", "max_devices": 1}]},
    )
    facts = solved(plan, catalog())["infeasible"]
    ways = {one["limit"]: one["to"] for one in facts["ways_out"]}
    assert ways["training[0].deadline"] is None
    assert ways["hardware.quotas[0]"] == 2
    assert check_ways_out(plan, catalog(), facts) == 1


def random_question(seed: int) -> tuple[Scenario, Catalog]:
    """One or two jobs and sometimes a fleet, on limits that are often too tight."""
    rng = np.random.default_rng(seed)
    jobs = [
        job(
            f"j{number}",
            deadline=f"{int(rng.integers(8, 80)) * 100} s",
            count=int(rng.integers(1, 3)),
            **({"start": "9000 s"} if number and rng.random() < 0.3 else {}),
        )
        for number in range(int(rng.integers(1, 3)))
    ]
    fleets = [fleet(qpm=int(rng.integers(1, 5)) * 600)] if rng.random() < 0.4 else []
    quotas = [{"device": str(rng.choice(["plain", "*"])), "max_devices": int(rng.integers(0, 7))}]
    quotas += [{"provider": "south", "max_shapes": int(rng.integers(0, 3))}] if rng.random() < 0.5 else []
    limits: Document = {"max_devices": int(rng.integers(2, 12))}
    if rng.random() < 0.5:
        limits["budget"] = f"${int(rng.integers(1, 12))}" if not fleets else f"${int(rng.integers(700, 4000))}"
    if rng.random() < 0.3:
        limits["power"] = f"{int(rng.integers(3, 40)) * 200} W"
    if rng.random() < 0.3:
        limits["max_providers"] = 1
    allow = ["plain"] if rng.random() < 0.4 else ["plain", "fast"]
    return scenario(jobs, fleets, hardware={"allow": allow, "quotas": quotas}, limits=limits), two_speeds()


def infeasible_questions(seeds: range) -> Iterator[tuple[int, Scenario, Catalog]]:
    for seed in seeds:
        plan, world = random_question(seed)
        if cost_of(plan, world) is None:
            yield seed, plan, world


def test_random_scenarios() -> None:
    checked = ways = 0
    for seed, plan, world in infeasible_questions(range(cases(15, 40))):
        facts = api.repairs(plan, world)
        assert facts is not None, seed
        ways += check_ways_out(plan, world, facts)
        checked += 1
    assert checked >= cases(4, 12)
    assert ways >= cases(5, 15)


@pytest.mark.parametrize(
    ("asked", "limit", "most"),
    [({"qpm": 6000}, "serving[0].qpm", 1200), ({"requests": "100 /s"}, "serving[0].requests", 20 * 86_400)],
)
def test_a_fleet_that_is_too_large_for_what_is_owned_is_told_what_that_carries(
    asked: Document, limit: str, most: int
) -> None:
    """Two machines carry ten requests/s each, and a hundred are asked: ten machines do, or a fifth of the load."""
    too_large = {key: value for key, value in fleet().items() if key != "qpm"} | asked
    hardware = {"exclude": ["*"], "owned": [{"shape": "north/one", "count": 2, "price": "$1/h"}]}
    plan = scenario([], [too_large], hardware=hardware)
    facts = solved(plan, catalog())["infeasible"]
    assert {one["limit"]: one["to"] for one in facts["ways_out"]} == {"hardware.owned[0]": 10, limit: most}
    assert [one["label"] for one in facts["conflict"]] == ["fleet", "2 owned north/one"]
    assert check_ways_out(plan, catalog(), facts) == 2


def test_owned_machines_are_called_so_in_a_conflict_where_no_way_counts_them() -> None:
    """Nothing is on time, so that no row of owned machines is left."""
    hardware = {"exclude": ["*"], "owned": [{"shape": "north/one", "count": 1, "price": "$1/h"}]}
    facts = solved(scenario([job(deadline="3000 s")], hardware=hardware), catalog())["infeasible"]
    assert [one["label"] for one in facts["conflict"]] == ["job", "50 min", "1 owned north/one"]


def test_a_plan_needs_no_repairs() -> None:
    assert api.repairs(scenario([job(deadline="2 h")]), catalog()) is None


def test_a_calendar_waits_for_its_turn() -> None:
    """Two jobs of an hour and forty minutes on one device in periods of 2 h: the second ends after 4 h at least."""
    plan = scenario(
        [job("a", deadline="2 h"), job("b", deadline="3 h")],
        periods="2 h",
        horizon="12 h",
        hardware={"quotas": [{"device": "plain", "max_devices": 1}]},
    )
    facts = solved(plan, catalog())["infeasible"]
    ways = {one["limit"]: one["to"] for one in facts["ways_out"]}
    assert ways["hardware.quotas[0]"] == 2
    assert ways["training[0].deadline"] == 7200 + 6000
    assert ways["training[1].deadline"] == 7200 + 6000
    assert check_ways_out(plan, catalog(), facts) == 3


def random_calendar(seed: int) -> tuple[Scenario, Catalog]:
    """Jobs that wait for each other in periods of 2 h, on what is owned, granted on demand, or under a contract."""
    rng = np.random.default_rng(seed)
    jobs = [
        job(
            f"j{number}",
            deadline=f"{int(rng.integers(2, 9))} h",
            **({"start": "2 h"} if rng.random() < 0.3 else {}),
            **({"after": "j0"} if number == 1 and rng.random() < 0.3 else {}),
        )
        for number in range(int(rng.integers(1, 4)))
    ]
    hardware: Document = {
        "allow": ["plain"],
        "quotas": [{"device": "plain", "price_model": "on_demand", "max_devices": int(rng.integers(0, 2))}],
    }
    if rng.random() < 0.6:
        hardware["pricing"] = ["on_demand", "commitment_1y"]
        hardware["contracts"] = [
            {"shape": "north/one", "region": "r1", "price_model": "commitment_1y", "price": "$0.5/h", "max_shapes": 1}
        ]
    if rng.random() < 0.4:
        hardware["owned"] = [{"shape": "north/one", "count": 1, "price": "$0.01/h"}]
    plan = scenario(jobs, periods="2 h", horizon="12 h", hardware=hardware, limits={"max_devices": 3})
    return plan, two_speeds()


def test_random_calendars() -> None:
    checked = ways = 0
    for seed in range(cases(10, 24)):
        plan, world = random_calendar(seed)
        if cost_of(plan, world) is not None:
            continue
        facts = api.repairs(plan, world)
        assert facts is not None, seed
        ways += check_ways_out(plan, world, facts)
        checked += 1
    assert checked >= cases(2, 6)
    assert ways >= cases(2, 6)


def calendar_of_fleets(seed: int) -> Scenario:
    """Fleets alone beside a calendar, in which no deadline can be moved: contracts to so many shapes, and limits."""
    rng = np.random.default_rng(seed)
    fleets = [fleet(f"f{number}", qpm=float(rng.integers(100, 9000))) for number in range(int(rng.integers(1, 3)))]
    capped: Document = {"shape": "north/one", "region": "r1", "price_model": "commitment_1y", "price": "$0.5/h"}
    hardware: Document = {
        "allow": ["plain", "fast"],
        "pricing": ["on_demand", "commitment_1y"],
        "contracts": [{**capped, "max_shapes": int(rng.integers(1, 4))}],
        "beyond_horizon": "prorate",
    }
    if rng.random() < 0.5:
        hardware["quotas"] = [{"device": "plain", "price_model": "on_demand", "max_devices": int(rng.integers(0, 3))}]
    limits: list[Document] = [{"budget": "$2000"}, {"spend": "$2/h"}, {"max_devices": 2}]
    return scenario(serving=fleets, horizon="14 months", hardware=hardware, limits=limits[seed % len(limits)])


def test_ways_out_of_fleets_beside_a_calendar_hold_to_what_a_contract_is_for() -> None:
    """Without a job whose deadline could move, the most shapes of a contract was out of the way and stayed there."""
    checked = 0
    for seed in range(cases(9, 60)):
        plan, world = calendar_of_fleets(seed), two_speeds()
        if cost_of(plan, world) is None:
            facts = api.repairs(plan, world)
            assert facts is not None, seed
            checked += check_ways_out(plan, world, facts)
    assert checked >= cases(6, 40)


@pytest.mark.parametrize(
    ("limits", "to"), [({"budget": "$5000"}, 5_840_000_000), ({"spend": "$5/h"}, 8_000_000), ({"max_devices": 7}, 8)]
)
def test_ways_out_count_on_jobs_that_stand_beside_a_fleet(limits: Document, to: int) -> None:
    """A job beside a fleet on one node of eight: without deadlines it stood apart, at twice the cost."""
    world = catalog([device()], [shape(devices=8)], [offer(dollars=8.0)])
    plan = scenario([job(tokens="100B", deadline="20 days")], [fleet()], hardware={"allow": "plain"}, limits=limits)
    facts = api.repairs(plan, world)
    assert facts is not None
    assert [one["to"] for one in facts["ways_out"] if one["limit"] == f"limits.{next(iter(limits))}"] == [to]
    check_ways_out(plan, world, facts)


@pytest.mark.parametrize("least", [1, 2, 5, 37, 100])
@pytest.mark.parametrize("guess", [1, 2, 5, 6, 36, 37, 38, 99])
def test_a_wrong_guess_is_mended(least: int, guess: int) -> None:
    asked: list[int] = []

    def works(number: int) -> bool:
        asked.append(number)
        return number >= least

    assert least_that_works(guess, works, 100) == least
    assert max(asked) <= 100
    assert len(asked) == len(set(asked))


def test_no_guess_helps_where_nothing_works() -> None:
    assert least_that_works(7, lambda number: False, 100) is None


# ---- words and settings


@pytest.mark.parametrize(
    ("unit", "value", "setting", "words"),
    [
        ("s", 1_612_345, "1612345 s", "18.7 days"),
        ("s", 5400, "5400 s", "90 min"),
        ("devices", 48, "48", "48 devices"),
        ("microusd", 46_225_000_001, "$46225.000001", "$46,226"),
        ("microusd/h", 2_490_001, "$2.490001/h", "$2.50 /h"),
        ("mW", 120_000_001, "120000.001 W", "121 kW"),
        ("mg", 5_000_000, "5000 g", "5 kg"),
        ("providers", 1, "1", "1 provider"),
    ],
)
def test_values_are_written_exactly_and_said_no_smaller(unit: str, value: int, setting: str, words: str) -> None:
    assert written(unit, value) == setting
    assert in_words(unit, value) == words


def test_every_stated_limit_can_be_set_to_what_it_is() -> None:
    plan = scenario(
        [job()],
        limits={"budget": "$9.87", "max_devices": 9, "power": "1.2345 kW", "spend": "$99/h", "carbon": "9.001 kg",
                "max_providers": 2, "sites": [{"region": "r1", "power": "2 kW", "carbon": "3 t"}]},
        hardware={"quotas": [{"device": "*", "max_devices": 9, "max_shapes": 8}],
                  "owned": [{"shape": "north/one", "count": 2, "price": "$0.01/h"}]},
    )  # fmt: skip
    limits = list(stated_limits(plan))
    assert len(limits) == 12
    assert {one.name.split("[")[0] for one in limits} >= {"training", "limits.sites", "hardware.quotas", "limits.spend"}
    again = with_settings(plan, [one.setting(one.value + 1) for one in limits])
    assert [one.value for one in stated_limits(again)] == [one.value + 1 for one in limits]


# ---- what limits are worth


def test_marginal_values_by_hand() -> None:
    """6000 device-seconds in 3000 s: one plain device is granted, so it takes fast, $2.50; one plain more, $1.67.

    A day more: one plain device is enough. One percent more budget saves nothing.
    """
    plan = scenario(
        [job(deadline="3000 s")],
        hardware={"quotas": [{"device": "plain", "max_devices": 1}]},
        limits={"budget": "$9"},
    )
    rows = {row["limit"]: row for row in api.marginal_values(plan, two_speeds())}
    saved = 2_500_000 - 1_666_667
    assert {name: row["value_microusd"] for name, row in rows.items()} == {
        "hardware.quotas[0]": saved,
        "training[0].deadline": saved,
        "limits.budget": 0,
    }
    assert all(row["proven"] for row in rows.values())
    assert rows["hardware.quotas[0]"]["step_text"] == "one device"
    assert not rows["limits.budget"]["binding"]
    for row in rows.values():
        assert cost_of(plan, two_speeds(), row["setting"]) == row["cost_microusd"]


def test_a_limit_that_the_plan_uses_up_is_binding() -> None:
    plan = scenario([job(deadline="3000 s")], hardware={"quotas": [{"device": "plain", "max_devices": 2}]})
    rows = {row["limit"]: row["binding"] for row in api.marginal_values(plan, catalog())}
    assert rows == {"hardware.quotas[0]": True, "training[0].deadline": False}


def test_a_step_that_the_scenario_cannot_state_is_not_solved() -> None:
    """The calendar ends with the day: a deadline a day later lies beyond it; the quota is worth asking about."""
    jobs = [job("one", deadline="1 day"), job("two", deadline="12 h")]
    hardware = {"quotas": [{"device": "plain", "max_devices": 4}]}
    plan = scenario(jobs, hardware=hardware, horizon="1 day", periods="6 h")
    rows = {row["limit"]: row for row in api.marginal_values(plan, catalog())}
    beyond = rows["training[0].deadline"]
    assert beyond["value_microusd"] is beyond["cost_microusd"] is None
    assert not beyond["proven"]
    assert rows["hardware.quotas[0]"]["proven"]


# ---- break-even


def priced(world: Catalog, name: str, share: float) -> Catalog:
    """The catalog with the offers of one device at a share of their price."""
    offers = [
        replace(one, price_microusd_per_hour=round(one.price_microusd_per_hour * share))
        if world.shapes[one.shape].device == name
        else one
        for one in world.offers
    ]
    return replace(world, offers=tuple(offers))


def test_break_even_by_hand() -> None:
    """fast costs $3 an hour and does the work of 2 plain ones at $1: it enters below two thirds of its price."""
    plan, world = scenario([job(deadline="2 h")]), two_speeds()
    (row,) = api.break_even(plan, world)
    assert row["device"] == "fast"
    assert row["share"] == pytest.approx(2 / 3, rel=1e-6)
    assert row["share_exact"] == "1666667/2500000"
    assert row["price_usd_per_device_hour"] == pytest.approx(3.0)
    assert row["break_even_usd_per_device_hour"] == pytest.approx(2.0, rel=1e-6)
    assert (row["regret_microusd"], row["proven"]) == (2_500_000 - 1_666_667, True)
    for share, chosen in ((row["share"] - 1e-4, "fast"), (row["share"] + 1e-4, "plain")):
        document = solved(plan, priced(world, "fast", share))
        assert document["workloads"][0]["allocations"][0]["device"] == chosen


def test_a_fleet_has_break_even_prices_too() -> None:
    """Both carry as much, so fast enters below a third of its price."""
    plan, world = scenario([], [fleet(qpm=6000)]), two_speeds()
    (row,) = api.break_even(plan, world)
    assert row["share"] == pytest.approx(1 / 3, rel=1e-6)
    for share, uses in ((row["share"] - 1e-4, True), (row["share"] + 1e-4, False)):
        rows = solved(plan, priced(world, "fast", share))["workloads"][0]["allocations"]
        assert any(one["device"] == "fast" for one in rows) == uses


def test_no_break_even_when_time_comes_first() -> None:
    assert api.break_even(scenario([job(deadline="2 h")], objective=["time", "cost"]), two_speeds()) == []


# ---- why not


def test_why_not_a_dearer_device() -> None:
    (entry,) = api.why_not(scenario([job(deadline="2 h")]), "fast", two_speeds())
    assert entry["state"] == "dearer"
    assert (entry["plan_microusd"], entry["alone"], entry["allowed"]) == (2_500_000, True, True)
    assert entry["device_hours_factor"] == pytest.approx(0.5)
    assert entry["price_factor"] == pytest.approx(3.0)
    assert entry["break_even_usd_per_device_hour"] == pytest.approx(2.0, rel=1e-6)
    assert entry["break_even_mfu"] == pytest.approx(0.75, rel=1e-6)
    assert entry["rows"][0]["device"] == "fast"


def test_why_not_a_device_beside_those_that_are_allowed_for_classes_of_requests(tmp_path: Path) -> None:
    """Numbers of ways that were listed with it were looked up among those without."""
    (entry,) = api.why_not(load_scenario(classes(tmp_path, allow="[h100-sxm-80gb]")), "l40s")
    assert (entry["state"], entry["allowed"]) == ("dearer", False)


def test_a_budget_that_only_other_mixes_keep_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit the fleet was $3,962, of mixes that were looked for; within $4,000 there was no plan."""
    looked: list[int] = []

    def found(_: object, solution: Solution, **more: object) -> dict[str, Any]:
        looked.append(solution.cost_microusd)
        return {"chat": ((0.75, 1.0), (1.0, 0.125))}

    monkeypatch.setattr(sessions, "better_mixes", found)
    for limits, cost in (("{budget: $4000}", 3_962_440_000), ("{budget: $3000}", None)):
        path = classes(tmp_path, allow="[h100-sxm-80gb, l40s]", limits=limits, requests="7.33 /s")
        document: Any = api.solve(load_scenario(path), few_devices()).document
        assert (document["status"] == "optimal") == (cost is not None)
        assert cost is None or document["summary"]["cost_microusd"] == cost
    assert looked == [4_581_480_000]  # for the lesser budget even a quarter more would not do


def few_devices() -> Catalog:
    """Of the packaged catalog what three devices cost."""
    world, devices = load_catalog(), ("h100-sxm-80gb", "l40s", "gh200-96gb")
    return replace(world, offers=tuple(one for one in world.offers if world.shapes[one.shape].device in devices))


def classes(folder: Path, *, allow: str, limits: str = "{}", requests: str = "12 /s") -> Path:
    """A fleet of short and long requests with targets, whose rates take long and are bounded at first."""
    (folder / "classes.csv").write_text("input_bucket,output_bucket,fraction\n200,50,0.7\n6000,500,0.3\n")
    path = folder / "classes.yaml"
    path.write_text(
        "schema: plan/v1\nname: classes\nserving:\n"
        f"  - {{name: chat, model: llama-3.1-8b, weights: fp8, requests: {requests}, histogram: classes.csv,\n"
        "     slo: {ttft_p95: 2 s, tpot_p95: 60 ms}}\n"
        f"hardware: {{allow: {allow}}}\nlimits: {limits}\n"
    )
    return path


@pytest.mark.parametrize("limits", ["{budget: $2000}", "{max_devices: 2}", "{budget: $2000, max_devices: 1}"])
def test_ways_out_do_where_rates_are_bounded_at_first(
    limits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A budget of $6,125 was said to be enough where nothing costs less than $7,264, and then, again, $6,125."""
    monkeypatch.setattr(sessions, "better_mixes", lambda *_, **__: {})  # which would take most of the time
    asked, world = load_scenario(classes(tmp_path, allow="[h100-sxm-80gb, l40s]", limits=limits)), few_devices()
    document: Any = api.solve(asked, world).document
    assert document["status"] == "infeasible"
    done = [way for way in document["infeasible"]["ways_out"] if way["setting"]]
    assert done
    assert not any(way["proven"] for way in done)  # since other mixes may do with less
    assert all(way["to"] == way["cost_microusd"] for way in done if way["limit"] == "limits.budget")
    for way in [*done, *filter(None, [document["infeasible"]["combined"]])]:
        changed = with_settings(asked, settings_of([way] if "setting" in way else way["changes"]))
        again: Any = api.solve(changed, world).document
        assert (again["status"], again["summary"]["cost_microusd"]) == ("optimal", way["cost_microusd"]), way


@pytest.mark.parametrize("per_day", [2, 43, 973707, 1036799])
def test_requests_a_day_are_whole_whatever_their_rate(per_day: int) -> None:
    """One of fourteen settings was a request less when it was read again, and the plan was refused as wrong."""
    asked = scenario([], [{**fleet(qpm=None), "requests": f"{per_day} /day"}])
    load = load_of(asked.serving[0])
    assert load is not None
    assert load.asked == per_day


def test_why_not_a_device_that_nobody_offers() -> None:
    """There was a plan, and yet "no plan to compare with"."""
    there = two_speeds()
    there = replace(there, devices={**there.devices, "ghost": device("ghost")})
    (entry,) = api.why_not(scenario([job(deadline="2 h")]), "ghost", there)
    assert entry["state"] == "impossible"
    assert [miss.partition(":")[0] for miss in entry["misses"]] == ["the catalog has no offer of it"]


@pytest.mark.parametrize(("model", "miss"), [("on_demand", "memory: needs"), ("block", "price-model: it is offered")])
def test_why_not_a_device_that_is_not_sold_on_all_that_is_allowed(model: str, miss: str) -> None:
    """An error said that nothing that is allowed is offered as spot, which plain is."""
    there = catalog(
        [device(), device("old", memory_bytes=GIB, reserved_memory_bytes=0)],
        [shape(), shape("south/old", "old")],
        [offer(), offer(price_model="spot"), offer("south/old", price_model=model)],
    )
    hardware = {"allow": ["plain"], "pricing": ["on_demand", "spot"], "spot": {"interruptions": "0.02 /h"}}
    (entry,) = api.why_not(scenario([job(deadline="2 h")], hardware=hardware), "old", there)
    assert entry["state"] == "impossible"
    assert any(miss in text for text in entry["misses"]), entry["misses"]


def test_a_device_wins_at_the_price_that_is_told_though_it_wins_elsewhere_before() -> None:
    """What the other job saves at the lower price counted for this one, which was told to win where it did not."""
    jobs = [job("slow", deadline="9 h", mfu={"fast": 0.45}), job("quick", deadline="9 h", mfu={"fast": 0.7})]
    plan, world = scenario(jobs), two_speeds()
    found = api.why_not(plan, "fast", world)
    assert [entry["workload"] for entry in found] == ["slow", "quick"]
    for entry in found:
        for share, chosen in ((entry["share"] - 1e-4, "fast"), (entry["share"] + 1e-4, "plain")):
            rows = solved(plan, priced(world, "fast", share))["workloads"]
            (row,) = next(one["allocations"] for one in rows if one["name"] == entry["workload"])
            assert row["device"] == chosen, (entry["workload"], share)


def test_the_break_even_mfu_is_where_it_wins() -> None:
    """From 50 % measured on fast to about 75 %: a little less, and plain is chosen; a little more, and fast is."""
    world = two_speeds()
    (entry,) = api.why_not(scenario([job(deadline="2 h", mfu={"fast": 0.5})]), "fast", world)
    for factor, chosen in ((1.002, "fast"), (0.998, "plain")):
        measured = {"fast": entry["break_even_mfu"] * factor}
        document = solved(scenario([job(deadline="2 h", mfu=measured)]), world)
        assert document["workloads"][0]["allocations"][0]["device"] == chosen


def test_why_not_what_is_chosen_and_what_is_not_allowed() -> None:
    plan = scenario([job(deadline="2 h")], hardware={"allow": ["plain"]})
    (chosen,) = api.why_not(plan, "plain", two_speeds())
    assert chosen["state"] == "chosen"
    (other,) = api.why_not(plan, "fast", two_speeds())
    assert (other["state"], other["allowed"]) == ("dearer", False)


def test_a_device_that_is_not_allowed_may_be_cheaper() -> None:
    """fast alone is allowed, at $2.50; plain would do it for $1.67."""
    plan = scenario([job(deadline="2 h")], hardware={"allow": ["fast"]})
    (entry,) = api.why_not(plan, "plain", two_speeds())
    assert (entry["state"], entry["allowed"], entry["regret_microusd"]) == ("cheaper", False, 1_666_667 - 2_500_000)
    assert entry["share"] == pytest.approx(1.5, rel=1e-6)
    text = render_explanation(solved(plan, two_speeds()), "table", answers={"why_not": [entry]})
    assert "would win  at the price that it has, were it allowed" in text


def test_what_is_left_out_is_listed_once_for_all_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 25 workloads listed all ways again, and asked for its cheapest plan on the device a third time."""
    plan = scenario([job(name, deadline="2 h") for name in ("a", "b", "c")], hardware={"allow": ["plain"]})
    session = api.session(plan, two_speeds())
    listed, alone = list[Scenario](), list[str]()
    search, on_it = sessions.Session.search, why_not._alone

    def counted(self: sessions.Session, asked: Scenario, **options: Any) -> Any:
        listed.append(asked)
        return search(self, asked, **options)

    def told(*asked: Any) -> Solution:
        alone.append(asked[1])
        return on_it(*asked)

    monkeypatch.setattr(sessions.Session, "search", counted)
    monkeypatch.setattr(why_not, "_alone", told)
    found = session.why_not("fast")
    assert [entry["state"] for entry in found] == ["dearer"] * 3
    assert len(listed) == 1
    assert alone == []


def test_why_not_what_cannot_do_it() -> None:
    world = catalog(
        [device(), device("old", peak_flop_per_s={"fp32": PEAK_FLOP_PER_S})],
        [shape(), shape("south/old", "old")],
    )
    (entry,) = api.why_not(scenario([job(deadline="2 h")]), "old", world)
    assert entry["state"] == "impossible"
    assert any(line.startswith("precision: old computes in fp32") for line in entry["misses"])


def test_why_not_machines_that_are_owned() -> None:
    """They were refused with the name of their device, which another group of the same device answers for."""
    rich, poor = {"shape": "plain", "count": 2, "price": "$5/h"}, {"shape": "plain", "count": 2, "price": "$0.5/h"}
    hardware = {"exclude": ["*"], "owned": [rich, {**poor, "region": "attic"}]}
    world = catalog(shapes=[shape("onprem/plain")])
    asked = api.session(scenario([job(deadline="2 h")], hardware=hardware), world)
    dear, chosen = asked.why_not("plain")
    assert (dear["device"], dear["state"]) == ("2 × plain (hardware.owned[0])", "dearer")
    assert (chosen["device"], chosen["state"]) == ("2 × plain (attic)", "chosen")
    assert [asked.why_not(name) for name in ("hardware.owned[0]", "2 × plain (attic)")] == [[dear], [chosen]]
    assert dear["break_even_usd_per_device_hour"] == pytest.approx(0.5, rel=1e-6)
    assert [row["offer"].split(":")[1] for row in dear["rows"]] == ["0"]
    document = solved(asked.scenario, world)
    assert [one["name"] for one in document["named"]] == [dear["device"], chosen["device"]]
    assert [one.message for one in api.verify(document, world) if one.severity == "error"] == []


def test_why_not_too_few_owned_machines_says_that_they_cannot_do_it_alone() -> None:
    """It said "feasible" of one machine for a fleet of many, and nothing more."""
    hardware = {"owned": [{"shape": "onprem/plain", "count": 1, "price": "$50/h"}]}
    many = fleet("chat", qpm=60_000)
    known = catalog(shapes=[shape(), shape("onprem/plain")])
    plan = scenario([], [many], hardware=hardware)
    (entry,) = api.why_not(plan, "hardware.owned[0]", known)
    assert (entry["state"], entry["misses"]) == ("dearer", ["too few are owned for chat alone"])
    text = render_explanation(solved(plan, known), "table", answers={"why_not": [entry]})
    assert "alone      impossible: too few are owned for chat alone" in text


def test_why_not_within_the_limits_names_them() -> None:
    """All that was said was "impossible within the limits that the workloads share"."""
    shapes = [shape(), shape("south/old", "old")]
    slow = device("old", peak_flop_per_s={"bf16": PEAK_FLOP_PER_S / 4})
    known = catalog([device(), slow], shapes, [offer("north/one", 1.0), offer("south/old", 1.0)])
    plan = scenario([job("a", deadline="3 h"), job("b", deadline="3 h")], limits={"max_devices": 3})
    (entry, _) = api.why_not(plan, "old", known)
    assert entry["state"] == "limits"
    assert entry["misses"] == ["limits.max_devices (at most 3 devices)"]
    document = solved(plan, known)
    text = render_explanation(document, "table", answers={"why_not": [entry]})
    assert "impossible within limits.max_devices (at most 3 devices)" in text
    unproven = {**entry, "proven": False, "misses": []}
    text = render_explanation(document, "table", answers={"why_not": [unproven]})
    assert "not known  no plan with it was found in the time that there was, and none was ruled out" in text


def test_why_not_machines_that_are_owned_and_too_small() -> None:
    hardware = {"owned": [{"shape": "old", "count": 2, "price": "$0/h"}]}
    old = device("old", memory_bytes=GIB, reserved_memory_bytes=0)
    world = catalog([device(), old], [shape(), shape("onprem/old", "old")])
    (entry,) = api.why_not(scenario([job(deadline="2 h")], hardware=hardware), "onprem/old", world)
    assert entry["state"] == "impossible"
    assert [miss.partition(":")[0] for miss in entry["misses"]] == ["memory"]


def test_why_not_begins_with_what_fits_and_is_too_slow() -> None:
    """A pipeline that nobody asked for was told first, of cards that miss the latency target."""
    voice = {"name": "voice", "model": "llama-3.1-8b", "qpm": 900, "input_tokens": 600, "output_tokens": 60}
    asked = scenario(
        [], [voice | {"slo": {"ttft_p95": "100 ms"}}], hardware={"allow": ["b200-sxm"]}, estimator="analytic"
    )
    (entry,) = api.why_not(asked, "l40s")
    told = [miss.partition(":")[0] for miss in entry["misses"]]
    assert told[0] == "latency"
    assert "pipeline" in told


def test_why_not_a_device_beside_others_that_are_owned() -> None:
    """What the owned machines of another device lack was told of it; and of its own the network before the memory."""
    small = {"memory_bytes": GIB, "reserved_memory_bytes": 0}
    shapes = [shape(), shape("onprem/rig", "old", inter_node_bytes_per_s_per_device=None)]
    world = catalog([device(), device("old", **small), device("other", **small)], shapes)
    hardware = {"allow": ["plain"], "owned": [{"shape": "rig", "count": 2, "price": "$0/h"}]}
    (mine,) = api.why_not(scenario([job(deadline="2 h")], hardware=hardware), "old", world)
    assert [miss.partition(":")[0] for miss in mine["misses"]] == ["memory", "network-unknown"]
    (other,) = api.why_not(scenario([job(deadline="2 h")], hardware=hardware), "other", world)
    assert [miss.partition(":")[0] for miss in other["misses"]] == ["the catalog has no offer of it"]


def test_why_not_an_unknown_device() -> None:
    with pytest.raises(InputError, match="'plane' is no device"):
        api.why_not(scenario([job()]), "plane", catalog())


# ---- shown


def test_answers_in_every_format() -> None:
    plan, world = scenario([job(deadline="3000 s")], hardware={"quotas": [{"max_devices": 2}]}), two_speeds()
    asked = api.session(plan, world)
    answers = {
        "marginal_values": asked.marginal_values(),
        "break_even": asked.break_even(),
        "why_not": asked.why_not("fast"),
    }
    document = solved(plan, world)
    table = render_explanation(document, "table", answers=answers)
    assert "LIMITS" in table
    assert "training.job.deadline" in table
    assert "would enter at 33.4 % lower price" in table
    assert "WHY NOT  fast for job" in table
    assert "would win  if its price fell below $2.00 /device-h (now $3.00)" in table
    assert "WHY NOT" in render_explanation(document, "md", answers=answers)
    assert json.loads(render_explanation(document, "json", answers=answers))["break_even"][0]["device"] == "fast"
    rows = render_explanation(document, "csv", answers=answers).splitlines()
    assert len(rows) == 1 + 2 + 1 + 1
    assert rows[0].startswith("answer,limit,")


def test_several_more_kinds_of_device_may_be_the_way_out() -> None:
    """One of each of two other devices is there, and two jobs need both: any one more helps nothing."""
    world = catalog(
        [device("tiny", memory_bytes=2 * GIB), device("left"), device("right")],
        [shape("a/tiny", device="tiny"), shape("b/left", device="left"), shape("c/right", device="right")],
        [offer("a/tiny"), offer("b/left", max_shapes=1), offer("c/right", max_shapes=1)],
    )
    asked = scenario([job("train", tokens="1B", deadline="10000 s", count=2)], hardware={"allow": ["tiny"]})
    document = api.solve(asked, world).document  # which its own verifier once refused
    assert document["infeasible"] is not None
    (way,) = [one for one in document["infeasible"]["ways_out"] if one["limit"] == "hardware.allow"]
    assert (way["setting"], way["to"], way["to_text"]) == ('hardware.allow=["*"]', 1, "+ several others")
    assert api.solve(asked.with_({"hardware.allow": ["*"]}), world).document["status"] == "optimal"


def test_what_is_owned_stands_beside_a_wider_choice() -> None:
    """Owned machines of a device that is not allowed were left out of it: "proven", and a quarter dearer than it is."""
    peaks = dict.fromkeys(("fp32", "fp16", "bf16"), 2 * PEAK_FLOP_PER_S)
    world = catalog(
        [device(), device("fast", peak_flop_per_s=peaks), device("third", peak_flop_per_s=peaks)],
        [shape(), shape("mine/fast", "fast"), shape("south/third", "third")],
        [offer(max_shapes=1), offer("south/third", 3.0, max_shapes=2)],
    )
    owned = {"shape": "mine/fast", "count": 1, "price": "$1/h"}
    asked = scenario([job("train", deadline="4000 s", count=2)], hardware={"allow": ["plain"], "owned": [owned]})
    document = solved(asked, world)
    assert document["infeasible"] is not None
    (way,) = [one for one in document["infeasible"]["ways_out"] if one["limit"] == "hardware.allow"]
    assert way["setting"] == 'hardware.allow=["plain", "third"]'
    assert way["cost_microusd"] == cost_of(asked, world, way["setting"])
    assert [one.message for one in api.verify(document, world) if one.severity == "error"] == []


@pytest.mark.parametrize(
    ("hardware", "limit", "setting"),
    [
        ({"providers": ["north"]}, "hardware.providers", 'hardware.providers=["north", "south"]'),
        ({"providers": ["south"], "exclude": ["south"]}, "hardware.providers",
         'hardware.providers=["south", "west"]'),
        ({"kinds": ["hyperscaler"]}, "hardware.kinds", 'hardware.kinds=["hyperscaler", "cloud"]'),
        ({"kinds": ["hyperscaler", "cloud"], "providers": ["bazaar"]}, "hardware.kinds",
         'hardware.kinds=["hyperscaler", "cloud", "marketplace"]'),
    ],
)  # fmt: skip
def test_another_seller_is_a_way_out(hardware: Document, limit: str, setting: str) -> None:
    """Of devices and regions wider choices were tried; who may buy from one cloud alone was told that there is none."""
    sellers = {"north": "hyperscaler", "south": "cloud", "west": "cloud", "bazaar": "marketplace"}
    small = device("small", memory_bytes=2 * GIB)
    world = catalog(
        [device(), small],
        [shape("north/small", device="small"), *(shape(f"{name}/one") for name in ("south", "west", "bazaar"))],
        [
            offer(name, price, provenance=replace(SEEN, status="seen"))
            for name, price in (("north/small", 1.0), ("south/one", 2.0), ("west/one", 3.0), ("bazaar/one", 1.0))
        ],
    )
    known: Document = {"capacity": "", "billing_step_s": None, "minimum_s": None, "provenance": SEEN}
    world = replace(world, providers={name: Provider(id=name, kind=kind, **known) for name, kind in sellers.items()})
    asked = scenario([job("train", deadline="4000 s")], hardware=hardware)
    document = solved(asked, world)
    assert document["infeasible"] is not None
    ways = {way["limit"]: way for way in document["infeasible"]["ways_out"] if way["setting"]}
    assert ways[limit]["setting"] == setting
    assert ways[limit]["cost_microusd"] == cost_of(asked, world, setting)
    assert [one.message for one in api.verify(document, world) if one.severity == "error"] == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "periods=2 h"),  # of 100 min each: in periods of 90 min they hold 3 h
        ({"periods": "6 h"}, ""),  # a grid of one's own
        ({"count": 1}, ""),  # nothing to order
        ({"deadline": "2 h"}, ""),  # no room for another
        ({"horizon": "4 h"}, ""),  # a calendar ends before the deadlines: that of the file was called wrong
    ],
)
def test_jobs_that_follow_each_other_are_a_way_out(changes: Document, told: str) -> None:
    """Forty short jobs on the one node that is owned: 40 nodes were told, or to rent, of a node with days of time."""
    hours = {"tokens": "1B", "deadline": changes.get("deadline", "2 days"), "count": changes.get("count", 20)}
    world = catalog([device()], [shape("mine/one")], [])
    asked = scenario(
        [job("train", **hours)],
        hardware={"owned": [{"shape": "mine/one", "count": 1, "price": "$1/h"}]},
        **{key: changes[key] for key in ("periods", "horizon") if key in changes},
    )
    document = solved(asked, world)
    ways = {way["limit"]: way for way in (document["infeasible"] or {"ways_out": []})["ways_out"] if way["setting"]}
    assert ("periods" in ways) == bool(told)
    if told:
        assert ways["periods"]["setting"] == told
        assert ways["periods"]["cost_microusd"] == cost_of(asked, world, told)
        assert (ways["periods"]["from"], ways["periods"]["to"]) == (1, 365)
    assert [one.message for one in api.verify(document, world) if one.severity == "error"] == []


FITS_NOWHERE: list[tuple[Document, str, str]] = [
    ({"model": "llama-3.1-8b"}, "rtx-4090-x1", "training.train.lora={rank: 16, base: nf4}"),
    ({"model": "llama-3.1-70b", "lora": {"rank": 8}}, "h100-pcie-80gb-x1", "training.train.lora={rank: 8, base: nf4}"),
    ({"model": "llama-3.1-8b", "recompute": "none", "sequence_length": 32768, "layout": {"cp": 1}}, "dgx-a100-40gb",
     "training.train.recompute=[none, full]"),
    ({"model": "llama-3.1-70b"}, "aws/p4de.24xlarge", "training.train.offload=optimizer"),
    ({"model": "llama-3.1-70b", "optimizer": "adam"}, "dgx-h200", "training.train.optimizer=adamw-8bit"),
    ({"model": "llama-3.1-70b"}, "h100-pcie-80gb-x1", "serving.fleet.weights=int4"),
    ({"model": "qwen2.5-1.5b", "lora": {"rank": 8}}, "onprem/v100-pcie-32gb-x1", "training.train.precision=fp16"),
    ({"model": "gpt-oss-120b", "engine": "llama.cpp"}, "dgx-spark-gb10-x1", "serving.fleet.weights=mxfp4"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "shape_id", "setting"), FITS_NOWHERE, ids=[row[2] for row in FITS_NOWHERE])
def test_what_fits_no_memory_is_told_how_it_would(asked: Document, shape_id: str, setting: str) -> None:
    """An 8B on an RTX 4090 had no way out, though adapters on 4 bits fit; of others only more machines were told."""
    hardware = {"exclude": ["*"], "owned": [{"shape": shape_id, "count": 1, "price": "$2/h"}]}
    train = {"name": "train", "tokens": "10M", "deadline": "7 days", **asked}
    serve = fleet(**asked, throughput=None, qpm=10)
    lists = ([], [serve]) if setting.startswith("serving") else ([train], [])
    plan, world = scenario(*lists, estimator="analytic", hardware=hardware), load_catalog()
    document = solved(plan, world)
    ways = {way["setting"]: way for way in document["infeasible"]["ways_out"]}
    assert setting in ways, list(ways)
    assert ways[setting]["cost_microusd"] == cost_of(plan, world, setting)
    assert [one.message for one in api.verify(document, world) if one.severity == "error"] == []


@pytest.mark.parametrize("target", ["ttft_p95", "tpot_p50"])
def test_targets_that_no_idle_replica_keeps_are_told_what_one_would_keep(target: str) -> None:
    """Only the latency of an idle replica was told: at it there is no plan yet, and nobody knew what another costs."""
    hardware = {"exclude": ["*"], "owned": [{"shape": "dgx-h100", "count": 40, "price": "$20/h"}]}
    asked = fleet(model="llama-3.1-70b", throughput=None, qpm=600, slo={target: "2 ms"})
    plan, world = scenario([], [asked], estimator="analytic", hardware=hardware), load_catalog()
    document = solved(plan, world)
    ways = [way for way in document["infeasible"]["ways_out"] if way["limit"] == f"serving[0].slo.{target}"]
    assert ways
    for way in ways:
        assert way["cost_microusd"] == cost_of(plan, world, way["setting"])
        assert way["to"] > way["from"] == 2000
    nearest = min(ways, key=lambda way: way["to"])
    assert rounded_up_us(0.10131) == 102_000  # rounded to the nearest it would be what no replica keeps
    assert rounded_up_us(0.002) == 2_010
    tighter = with_settings(plan, [f"serving.fleet.slo.{target}={nearest['to'] / 2.2 / 1000:.3f} ms"])
    assert api.solve(tighter, world).document["status"] == "infeasible"
    assert [one.message for one in api.verify(document, world) if one.severity == "error"] == []
    ways[0]["from"] = 1999
    assert any(one.severity == "error" for one in api.verify(document, world))


def test_a_wider_choice_that_was_not_listed_in_time_is_told_as_unproven() -> None:
    """Nothing was told of it, and the verifier refused the file: a search that was cut had seen no other device."""
    asked = scenario([job(deadline="10 min")], hardware={"allow": ["plain"]})
    narrow = api.enumerate_candidates(asked, two_speeds())
    ways = list(wider_choices(asked, lambda _: replace(narrow, cut=("job",)), Asker()))
    assert [(one["limit"], one["to"], one["proven"]) for one in ways] == [("hardware.allow", None, False)]
    assert list(wider_choices(asked, lambda _: narrow, Asker())) == []


def test_wider_choices_are_not_listed_when_no_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of a job that mix offers are listed anew for each way out: ten minutes were not enough to say no."""
    asked = scenario([job(deadline="10 min", mix_within_job=True)], hardware={"allow": ["plain"]})
    monkeypatch.setattr(infeasible, "LONGEST_S", 0.0)
    plan = api.solve(asked, two_speeds())
    ways = {one["limit"]: (one["to"], one["proven"]) for one in plan.document["infeasible"]["ways_out"]}
    assert ways["hardware.allow"] == (None, False)
    assert [one.message for one in api.verify(plan.document, two_speeds()) if one.severity == "error"] == []


@pytest.mark.parametrize("columns", [1, 40, 400, 4000, 40_000])
def test_jobs_are_tried_in_turn_on_no_calendar_that_takes_gigabytes(columns: int) -> None:
    """Three jobs with hundreds of ways in hundreds of periods took seven gigabytes before their plan was told."""
    asked = scenario([job(name, deadline="20 days") for name in "abc"], horizon="1 month")
    for period_s in fine_periods_s(asked, columns):
        assert columns * math.ceil(asked.horizon_s / period_s) <= 30_000
    assert bool(fine_periods_s(asked, columns)) == (columns <= 4000)


@pytest.mark.parametrize(
    ("price", "said"),
    [(0.0, "if its prices and fees fell by 43.9 %"), (5.07, "if its price fell below $2.84 /device-h (now $5.07)")],
)
def test_what_is_under_a_contract_would_win_by_its_fees(price: float, said: str) -> None:
    """It "would win if its price fell below $0 /device-h (now $0)"."""
    entry: Any = {
        "share": 0.561, "price_usd_per_device_hour": price, "break_even_usd_per_device_hour": 0.561 * price,
        "break_even_mfu": None,
    }  # fmt: skip
    document: Any = api.solve("gpt2-xl").document
    assert explain_limits._would_win(document, entry) == [f"would win  {said}"]
