"""Where data may go and what their copies cost; power and carbon of a site; prices of one's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.candidates.calendar import COPY
from planner.candidates.money import cost_microusd
from planner.candidates.search import Candidates, enumerate_candidates
from planner.catalog.model import Catalog, Transfer
from planner.errors import InputError
from planner.estimate.market import contract_offers, market
from planner.optimize.solve import Solution, optimize
from planner.scenario.load import parse_scenario
from planner.scenario.schema import Scenario
from tests.worlds import SEEN, catalog, device, fleet, job, offer, scenario, shape

RUN_MICROUSD = cost_microusd(1, 1_000_000, 6000 / 3600)  # of one job at $1 an hour


def world(**prices: float) -> Catalog:
    """North in r1 and r2, south in r1; r2 and south cost less; moving is known within north and from north."""
    own = catalog(
        shapes=[shape("north/one"), shape("south/one")],
        offers=[offer(), offer(region="r2", dollars=0.5), offer("south/one", dollars=0.25)],
    )
    kinds = {"north_inter": ("north", "inter-region"), "north_egress": ("north", "egress"),
             "north_storage": ("north", "storage"), "south_storage": ("south", "storage")}  # fmt: skip
    return replace(
        own,
        transfers={
            kinds[name]: Transfer(provider=kinds[name][0], kind=kinds[name][1], tiers=((0.0, usd),), provenance=SEEN)
            for name, usd in prices.items()
        },
    )


ALL = {"north_inter": 0.02, "north_egress": 0.1, "north_storage": 0.0, "south_storage": 0.0}


def data(gigabytes: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"size": f"{gigabytes:g} GB", "at": "north/r1", **more}


def solved(asked: Scenario, own: Catalog) -> tuple[Candidates, Solution]:
    found = enumerate_candidates(asked, own, api.load_model)
    return found, optimize(found.program, cost_only=True)


def where(candidates: Candidates, solution: Solution) -> dict[str, set[str]]:
    """Region of every job that runs."""
    found: dict[str, set[str]] = {}
    for task in candidates.program.tasks:
        for column in range(task.first, task.stop):
            if task.kind != "optional" and solution.units[column]:
                offer_ = candidates.tables[task.name].sites[int(candidates.rows[column])].offer
                found.setdefault(task.name, set()).add(f"{offer_.provider}/{offer_.region}")
    return found


def copies(candidates: Candidates, solution: Solution) -> list[tuple[str, str, int]]:
    calendar = candidates.calendar
    assert calendar is not None
    bought = [calendar.purchases[column] for column in np.flatnonzero(np.asarray(solution.units) > 0).tolist()]
    found = [one for one in bought if one is not None and one.kind == COPY]
    return sorted((one.workload, f"{one.provider}/{one.region}", one.cost_microusd) for one in found)


@pytest.mark.parametrize(
    ("gigabytes", "place", "copy_usd"),
    [
        (1.0, "south/r1", 0.1),  # egress of 10 cents saves three quarters of 1.67 dollars
        (20.0, "north/r2", 0.4),  # 2 dollars of egress save nothing, 40 cents between regions still do
        (100.0, "north/r1", 0.0),  # the job goes to the data
    ],
)
def test_the_job_goes_where_moving_its_data_pays(gigabytes: float, place: str, copy_usd: float) -> None:
    found, solution = solved(scenario(training=[job(data=data(gigabytes), failures="none")]), world(**ALL))
    assert where(found, solution) == {"job": {place}}
    share = {"south/r1": 0.25, "north/r2": 0.5, "north/r1": 1.0}[place]
    assert solution.cost_microusd == pytest.approx(share * RUN_MICROUSD + copy_usd * 1e6, abs=2)
    assert [cost for *_, cost in copies(found, solution)] == ([round(copy_usd * 1e6)] if copy_usd else [])


def test_jobs_that_share_data_share_the_copy() -> None:
    """One job alone would not pay 70 cents; three together do, for one copy."""
    shared = data(35.0, name="web")
    jobs = [job(f"j{i}", data=shared, failures="none") for i in range(3)]
    alone, one = solved(scenario(training=jobs[:1]), world(**{**ALL, "north_inter": 0.03}))
    assert where(alone, one) == {"j0": {"north/r1"}}
    found, solution = solved(scenario(training=jobs), world(**{**ALL, "north_inter": 0.03}))
    assert set().union(*where(found, solution).values()) == {"north/r2"}
    assert copies(found, solution) == [("web", "north/r2", 1_050_000)]
    apart = [job(f"j{i}", data=data(35.0), failures="none") for i in range(3)]
    found, solution = solved(scenario(training=apart), world(**{**ALL, "north_inter": 0.03}))
    assert copies(found, solution) == []


def test_keeping_a_copy_costs_from_the_first_start_to_the_last_deadline() -> None:
    own = world(**{**ALL, "north_inter": 0.0, "north_storage": 1.0, "south_storage": 9.0})
    jobs = [
        job("a", data=data(0.5, name="d"), deadline="73 h", failures="none"),
        job("b", data=data(0.5, name="d"), start="73 h", deadline="73 h", failures="none"),
    ]
    asked = scenario(training=jobs, periods="73 h", hardware={"regions": "r2"})
    found, solution = solved(asked, own)
    assert copies(found, solution) == [("d", "north/r2", 100_000)]  # half a gigabyte for a fifth of a month


def test_residency_keeps_jobs_out() -> None:
    own = world(**ALL)
    mine = {"owned": [{"shape": "north/one", "count": 1, "price": "$0.1/h", "region": "rack-1"}]}
    found, solution = solved(scenario(training=[job(data=data(residency=["r2"]), failures="none")]), own)
    assert where(found, solution) == {"job": {"north/r2"}}
    assert {drop.reason for drop in found.ledgers["job"]} >= {"residency"}
    with pytest.raises(InputError) as caught:
        solved(scenario(training=[job(data=data(residency=["eu-*"]))]), own)
    problem = caught.value.problems[0]
    assert (problem.reference, problem.places[0].line) == ("bad-reference", 1)
    assert "'eu-*'" in problem.message
    with pytest.raises(InputError, match="residency") as caught:
        solved(scenario(training=[job(data=data(residency=["rackk-1"]))], hardware=mine), own)
    assert caught.value.problems[0].hint.startswith("did you mean rack-1? ")
    solved(scenario(training=[job(data=data(residency=["rack-*"]))], hardware=mine), own)  # a pattern of one's own


def test_unknown_prices_exclude_a_place_until_the_scenario_states_them() -> None:
    """Nothing is known: the data stay where they are. South's storage alone unknown: not there."""
    found, solution = solved(scenario(training=[job(data=data(), failures="none")]), world())
    assert where(found, solution) == {"job": {"north/r1"}}
    assert {drop.reason for drop in found.ledgers["job"]} >= {"egress-unknown"}
    partly = {name: usd for name, usd in ALL.items() if name != "south_storage"}
    found, solution = solved(scenario(training=[job(data=data(), failures="none")]), world(**partly))
    assert where(found, solution) == {"job": {"north/r2"}}
    assert {drop.reason for drop in found.ledgers["job"]} >= {"storage-unknown"}
    given = data(egress="$0.2/GB", storage="$0/GB-month")
    found, solution = solved(scenario(training=[job(data=given, failures="none")]), world())
    assert copies(found, solution) == [("job:data", "south/r1", 200_000)]


def test_power_of_a_site_holds_in_every_period() -> None:
    """500 W a device: one device in r2 at a time, however cheap it is there."""
    own = catalog(offers=[offer(), offer(region="r2", dollars=0.5)])
    jobs = [job(name, deadline="6000 s", failures="none") for name in ("a", "b")]
    limit = {"sites": [{"region": "r2", "power": "500 W"}]}
    found, solution = solved(scenario(training=jobs, limits=limit), own)
    assert sorted(place for places in where(found, solution).values() for place in places) == ["north/r1", "north/r2"]
    assert any(row.name.startswith("limits.sites[0].power") for row in found.program.rows)
    later = [jobs[0], job("b", start="6000 s", deadline="6000 s", failures="none")]
    found, solution = solved(scenario(training=later, limits=limit, periods="3000 s", horizon="12000 s"), own)
    assert set().union(*where(found, solution).values()) == {"north/r2"}


def test_carbon_of_a_site_counts_what_runs_there() -> None:
    """A job is 6000 s at 500 W: 0.833 kWh."""
    grids = {("north", "r1"): (100.0, 1.0), ("north", "r2"): (600.0, 1.2)}
    own = catalog(offers=[offer(), offer(region="r2", dollars=0.5)], grids=grids)
    jobs = [job(name, deadline="6000 s", failures="none") for name in ("a", "b")]
    for grams, places in ((600, ["north/r1", "north/r2"]), (1200, ["north/r2", "north/r2"])):
        limits = {"sites": [{"provider": "north", "region": "r2", "carbon": f"{grams} g"}]}
        found, solution = solved(scenario(training=jobs, limits=limits), own)
        assert sorted(place for one in where(found, solution).values() for place in one) == places


def test_unknown_power_excludes_an_offer_at_a_site_that_counts_it() -> None:
    own = catalog(devices=[device(tdp_w=None)], offers=[offer(), offer(region="r2", dollars=0.5)])
    limits = {"sites": [{"region": "r2", "power": "10 kW"}]}
    found, solution = solved(scenario(training=[job(failures="none")], limits=limits), own)
    assert where(found, solution) == {"job": {"north/r1"}}


# ---- the market ----------------------------------------------------------------------------------


def test_discounts_come_off_matching_offers_the_first_one_counts() -> None:
    own = catalog(
        devices=[device(), device("other")],
        shapes=[shape("north/one"), shape("south/two", "other")],
        offers=[offer(), offer(price_model="spot", dollars=0.3), offer("south/two", dollars=2.000001, region="r9")],
    )
    discounts = [
        {"provider": "north", "price_model": "on_demand", "fraction": "20 %"},
        {"provider": "n*", "fraction": 0.5},
        {"device": "other", "region": "r9", "fraction": 0.5},
    ]
    asked = scenario(training=[job()], hardware={"discounts": discounts})
    prices = {one.id: one.price_microusd_per_hour for one in market(asked, own).offers}
    assert prices == {
        "north/one:r1:on_demand": 800_000,
        "north/one:r1:spot": 150_000,
        "south/two:r9:on_demand": 1_000_000,  # 1,000,000.5 rounds to even
    }
    assert market(asked, own).digest == own.digest
    source = next(one.provenance.source for one in market(asked, own).offers if one.price_model == "spot")
    assert source == f"{SEEN.source}, less 50 % (scenario)"


def test_contracts_become_offers_with_their_terms() -> None:
    contracts = [
        {"shape": "north/one", "region": "r1", "price_model": "commitment_1y", "price": "$0.4/h", "max_shapes": 3},
        {"shape": "north/one", "region": "r7", "price_model": "block", "price": "$0.5/h", "min_term": "1 day",
         "max_term": "2 weeks", "term_step": "1 day", "source": "a letter of May"},
        {"shape": "north/one", "region": "r1", "zone": "z", "price_model": "flex", "price": "$0.6/h", "wait": "6 h"},
        {"shape": "north/one", "region": "r1", "price_model": "calendar", "price": "$0.6/h", "term": "2 days"},
    ]  # fmt: skip
    asked = scenario(training=[job()], hardware={"contracts": contracts})
    found = list(contract_offers(asked, catalog()))
    assert [(one.min_term_hours, one.max_term_hours, one.term_step_hours, one.wait_hours) for one in found] == [
        (8760, 8760, None, None), (24, 336, 24, None), (None, None, None, 6), (48, 48, None, None)]  # fmt: skip
    assert [one.id for one in found][1] == "contract:1:north/one:r7"
    assert (found[1].provenance.source, found[0].max_shapes, found[2].zone) == ("a letter of May", 3, "z")
    assert found[0].country == "US"  # as the catalog has it: patterns such as us-* find it
    assert found[1].country == ""


def test_a_contract_is_used_whatever_pricing_says_but_not_where_regions_forbid() -> None:
    contract = {"shape": "north/one", "region": "r1", "price_model": "commitment_1y", "price": "$0.1/h"}
    asked: dict[str, Any] = {"training": [job(failures="none")], "periods": "3000 s", "horizon": "6000 s"}
    rule = {"contracts": [contract], "beyond_horizon": "prorate"}
    found, solution = solved(scenario(**asked, hardware=rule), catalog())
    assert solution.cost_microusd == pytest.approx(RUN_MICROUSD / 10, abs=2)
    assert [pool.name for pool in found.pools] == ["north/r1/one"]
    assert found.pools[0].on_demand is not None
    elsewhere = catalog(offers=[offer(), offer(region="r2")])
    found, _ = solved(scenario(**asked, hardware={**rule, "regions": "r2"}), elsewhere)
    assert found.pools == ()


def test_a_contract_to_an_unknown_shape_is_refused_at_its_place() -> None:
    text = """schema: plan/v1
name: broken
serving:
  - {name: f, model: gpt2-xl, qpm: 60, input_tokens: 100, output_tokens: 50}
hardware:
  contracts:
    - {shape: north/won, region: r1, price_model: block, price: $1/h}
"""
    with pytest.raises(InputError) as caught:
        enumerate_candidates(parse_scenario(text), catalog(), api.load_model)
    problem = caught.value.problems[0]
    assert (problem.reference, problem.places[0].line, problem.places[0].column) == ("unknown-shape", 7, 15)
    assert "north/one" in problem.hint


def test_fleets_ignore_the_data_of_jobs() -> None:
    own = world(**ALL)
    found, solution = solved(scenario(training=[job(data=data(100.0), failures="none")], serving=[fleet()]), own)
    assert where(found, solution) == {"job": {"north/r1"}, "fleet": {"south/r1"}}
