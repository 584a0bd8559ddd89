"""Reserve or rent: decisions against every count of reservations, break-evens, and other futures by hand."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import planner
from planner import api
from planner.analysis.reserve.document import break_evens
from planner.api.reserving import _without_sums
from planner.catalog.model import Catalog
from planner.errors import UsageError
from planner.plan.parts import said_of
from planner.report.html.pages import render_reserve_page
from planner.report.workbook.reserve_sheets import reserve_workbook
from tests.cli.conftest import Run
from tests.report.pages import read
from tests.report.sheet import Sheet
from tests.tiers import cases
from tests.verified import follow_schema
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

YEAR = 8760
FUTURES = ("demand", "price", "end")


def world(rent: float, year: float, cap: int | None = None, three: float | None = None) -> Catalog:
    """One device for rent and under commitments, in dollars an hour."""
    offers = [offer("north/one", rent), offer("north/one", year, price_model="commitment_1y", max_shapes=cap)]
    if three is not None:
        offers.append(offer("north/one", three, price_model="commitment_3y"))
    return catalog([device()], [shape("north/one")], offers)


def asked(nodes: int, **changes: Any) -> Any:
    """A fleet that keeps so many nodes busy: 10 requests a second each."""
    return scenario([], [fleet("chat", qpm=600 * nodes, **changes)])


@pytest.mark.parametrize("seed", range(cases(8, 200)))
def test_what_is_reserved_is_the_best_of_every_count(seed: int) -> None:
    chance = random.Random(seed)
    nodes, cap = chance.randint(1, 6), chance.randint(1, 8)
    rent, year = (round(chance.uniform(0.5, 5.0), 2) for _ in range(2))
    found = api.reserve(asked(nodes), world(rent, year, cap), terms=["commitment_1y"], otherwise=False)
    (term,) = found.terms
    each = {n: round(1e6 * YEAR * (n * year + (nodes - n) * rent)) for n in range(min(nodes, cap) + 1)}
    assert (term["status"], term["cost_microusd"]) == ("optimal", min(each.values()))
    assert term["on_demand_microusd"] == each[0]
    if year < rent:
        (row,) = term["reserved"]
        assert (row["nodes"], row["fee_microusd"]) == (min(nodes, cap), round(1e6 * YEAR * year * min(nodes, cap)))
    elif year > rent:
        assert term["reserved"] == []


def test_reserving_nothing_saves_nothing() -> None:
    """A plain plan was held against the cheapest, as calendars are never made plainer: nothing "saved" $2.88."""
    job = {"name": "train", "model": "qwen2.5-7b", "sequence_length": 4096, "tokens": "2B", "deadline": "30 days"}
    asked = scenario([job], hardware={"allow": ["h100-sxm-80gb"]}, limits={"max_devices": 8})
    plain = api.solve(asked).document["plain"]
    assert plain["above"] > 0
    (term,) = api.reserve(asked, terms=["commitment_1y"], otherwise=False).terms
    assert (term["reserved"], term["saved_microusd"]) == ([], 0)
    assert term["on_demand_microusd"] == term["cost_microusd"] == plain["cheapest_microusd"]


def test_prices_fall_below_discounts_too() -> None:
    """With a discount of any kind the line of lower prices stood empty, without a word."""
    whole = scenario([], [fleet("chat", qpm=600)], hardware={"discounts": [{"price_model": "spot", "fraction": "5%"}]})
    tenth = scenario([], [fleet("chat", qpm=600)], hardware={"discounts": [{"provider": "north", "fraction": "10%"}]})
    for given, price in ((asked(1), 4.0), (whole, 4.0), (tenth, 3.6)):
        (term,) = api.reserve(given, world(4.0, 1.0), terms=["commitment_1y"]).terms
        (falls,) = [one for one in term["otherwise"] if one["happens"] == "price"]
        assert falls["on_demand_microusd"] == round(1e6 * YEAR * 0.7 * price)
        assert falls["reserved_microusd"] == term["cost_microusd"]


WEEKS: dict[str, Any] = {"begin": "2026-12-07", "horizon": "4 weeks", "periods": "1 week"}


def blocks() -> Catalog:
    """`world` with blocks that nobody takes."""
    offers = [offer("north/one", 4.0), offer("north/one", 3.9, price_model="commitment_1y")]
    offers.append(offer("north/one", 4.5, price_model="block", min_term_hours=168.0, max_term_hours=168.0))
    return catalog([device()], [shape("north/one")], offers)


def own(price: float, most: int = 4, model: str = "block", **terms: Any) -> dict[str, Any]:
    """A contract of one's own beside `world`."""
    given = {"shape": "north/one", "region": "r1", "price_model": model, "price": f"${price}/h", "max_shapes": most}
    return {"contracts": [{**given, **terms}]}


def test_a_contract_of_ones_own_is_no_rent() -> None:
    """It is used whatever is rented, and stood on both sides: $0 saved where a block costs a quarter of renting."""
    asked = scenario([], [fleet("chat", qpm=600)], hardware=own(1.0, term="7 days"), **WEEKS)
    found = api.reserve(asked, blocks(), terms=["block"])
    (term,) = found.terms
    assert (term["on_demand_microusd"], term["cost_microusd"]) == (672 * 4_000_000, 672 * 1_000_000)
    assert [row["fee_microusd"] for row in term["reserved"]] == [168_000_000] * 4
    assert "RESERVE  4 contracts of 1 × north/one in r1 for blocks saves $2,016, 75% of renting" in str(found)
    assert "your contract" in str(found)
    day = api.reserve(
        asked.with_({"hardware.contracts": own(1.0, term="1 day")["contracts"]}), blocks(), terms=["block"]
    )
    assert "1 days" not in str(day)
    (year,) = api.reserve(
        scenario([], [fleet("chat", qpm=600)], hardware=own(1.0, model="commitment_1y")),
        world(4.0, 3.9),
        terms=["commitment_1y"],
    ).terms
    assert (year["on_demand_microusd"], year["cost_microusd"]) == (YEAR * 4_000_000, YEAR * 1_000_000)


def test_blocks_that_follow_one_another_stand_as_one_machine_in_other_futures() -> None:
    """Four weeks of one node each stood as four nodes for all four weeks, at no cost."""
    asked = scenario([], [fleet("chat", qpm=1800)], hardware=own(1.0, most=1, term="7 days"), **WEEKS)
    (term,) = api.reserve(asked, blocks(), terms=["block"]).terms
    fees = sum(row["fee_microusd"] for row in term["reserved"])
    assert fees == 672_000_000
    futures = {one["happens"]: one["reserved_microusd"] for one in term["otherwise"]}
    assert futures["price"] == fees + 2 * 672 * 2_800_000
    assert futures["end"] == fees + 2 * 336 * 4_000_000


@pytest.mark.parametrize(("year", "nodes"), [(5.0, 0), (2.5, 1)])
def test_fleets_share_a_node_that_is_reserved_as_one_that_is_rented(year: float, nodes: int) -> None:
    """They shared none beside a calendar: to reserve "nothing" cost twice as much, and to reserve saved nothing."""
    offers = [offer("north/one", 4.0), offer("north/one", year, price_model="commitment_1y")]
    offers.append(offer("north/one", year, price_model="commitment_3y"))
    known = catalog([device()], [shape("north/one", devices=8)], offers)
    two = scenario([], [fleet("a", qpm=600), fleet("b", qpm=600)])
    found = api.reserve(two, known)
    for term in (*found.terms, found.document["together"]):
        assert term is not None
        assert sum(one["nodes"] for one in term["reserved"]) == nodes
        assert term["cost_microusd"] * 4 == term["on_demand_microusd"] * min(year, 4)


def test_blocks_are_taken_week_by_week_through_a_year() -> None:
    """A year was one period, which no block is long enough for: "no commitment saves anything"."""
    offers = [offer("north/one", 4.0)]
    offers.append(offer("north/one", 1.0, price_model="block", min_term_hours=24.0, max_term_hours=4368.0))
    known = catalog([device()], [shape("north/one")], offers)
    (term,) = api.reserve(asked(2), known, terms=["block"], otherwise=False).terms
    assert sum(row["nodes"] for row in term["reserved"]) >= 2
    assert (term["on_demand_microusd"], term["proven"]) == (2 * YEAR * 4_000_000, True)
    assert 2 * YEAR * 1_000_000 <= (term["cost_microusd"] or 0) < 2 * (YEAR + 24) * 1_000_000


def test_all_terms_at_once_are_no_dearer_than_blocks_alone() -> None:
    """They were decided quarter by quarter, longer than a block lasts: a choice more cost 13 % more."""
    offers = [
        offer("north/one", 4.0),
        offer("north/one", 3.0, price_model="commitment_1y"),
        offer("north/one", 2.0, price_model="block", min_term_hours=168.0, max_term_hours=672.0),
    ]
    known = catalog([device()], [shape("north/one")], offers)
    found = api.reserve(asked(2), known, terms=["commitment_1y", "block"], otherwise=False)
    together, costs = found.document["together"], [term["cost_microusd"] or 0 for term in found.terms]
    assert together is not None
    assert (together["cost_microusd"], together["period_hours"]) == (min(costs), 168.0)
    assert costs[1] < costs[0]
    table = [line for line in str(found).splitlines() if "blocks" in line and "in turn" in line]
    assert len(table) <= 4  # a year of blocks, one after the other, is no line for each
    fees = sum(row["fee_microusd"] for row in together["reserved"])
    assert fees <= (together["cost_microusd"] or 0) < 2 * YEAR * 3_000_000


def test_commitments_that_the_scenario_has_and_nobody_asks_about_are_told() -> None:
    """A block at a quarter of the price was on neither side, and a year was advised in its place."""
    asked = scenario([], [fleet("chat", qpm=600)], hardware=own(1.0, term="7 days"), **WEEKS)
    told = "block of hardware.contracts is on neither side: ask about it too (--term block)"
    assert told in api.reserve(asked, world(4.0, 3.0), otherwise=False).document["warnings"]
    assert told not in api.reserve(asked, world(4.0, 3.0), terms=["block"], otherwise=False).document["warnings"]


def test_what_cannot_be_asked_of_a_calendar_is_left_blank() -> None:
    """A deadline beyond the half of a calendar ended the whole command, and a week of blocks stood for all of it."""
    train = job("train", tokens="60B", deadline="3 weeks")
    asked = scenario([train], [fleet("chat", qpm=600)], hardware=own(1.0, most=9, term="7 days"), **WEEKS)
    found = api.reserve(asked, blocks(), terms=["block"])
    (term,) = found.terms
    assert [row["nodes"] for row in term["reserved"]] == [2, 1, 1, 1]
    futures = {one["happens"]: (one["reserved_microusd"], one["on_demand_microusd"]) for one in term["otherwise"]}
    assert futures["end"] == (None, None)
    assert futures["price"] == (None, pytest.approx(0.7 * (term["on_demand_microusd"] or 0)))
    assert "blank: not met then, or not asked" in " ".join(str(found).split())


def test_a_budget_of_the_scenarios_own_horizon_is_none_of_a_term() -> None:
    """$3,000 a month for one node at $4 was none for its year: "no commitment saves anything", where one saves 37 %."""
    (free,) = api.reserve(asked(1), world(4.0, 2.5), terms=["commitment_1y"]).terms
    held = scenario([], [fleet("chat", qpm=600)], limits={"budget": "$3,000", "max_devices": 1})
    found = api.reserve(held, world(4.0, 2.5), terms=["commitment_1y"])
    assert found.terms == [free]
    assert found.document["not_held"] == ["limits.budget"]
    assert "not held, being of the scenario's own horizon: limits.budget" in str(found)
    lasting = scenario([], [fleet("chat", qpm=600)], limits={"budget": "$3,000"}, horizon="30 days", periods="10 days")
    assert api.reserve(lasting, world(4.0, 2.5), terms=["commitment_1y"]).document["not_held"] == []


def test_what_is_reserved_says_what_its_plan_warns_of() -> None:
    """Three years of a device that nobody measured were recommended without a word of it."""
    found = api.reserve(asked(1), world(4.0, 2.5, three=1.0), otherwise=False)
    (warning,) = api.solve(asked(1), world(4.0, 2.5)).document["warnings"]
    assert found.document["warnings"] == [warning]  # of each term, and of all together: said once
    assert warning[:40] in str(found)
    assert Sheet(reserve_workbook(found.document)).value("Warnings", "A2") == warning


def test_sentences_of_several_plans_are_said_once_with_the_plans_they_are_of() -> None:
    plans = [("a", ["x", "y", "y"]), ("b", ["y"]), ("c", ["y", "z"]), *((str(n), ["y", "w"]) for n in range(4))]
    assert said_of(plans) == ["y", "w (4 of 7 plans)", "x (a)", "z (c)"]


def test_carbon_of_a_site_is_lifted_and_its_power_is_not() -> None:
    sites = [{"region": "r1", "carbon": "1 t", "power": "5 MW"}, {"region": "r2", "carbon": "1 t"}]
    limited = scenario([], [fleet("chat", qpm=600)], limits={"carbon": "3 t", "sites": sites})
    kept, names = _without_sums(limited)
    assert names == ["limits.carbon", "limits.sites[0].carbon", "limits.sites[1].carbon"]
    assert list(kept.limits.whole) == ["limits.sites[0].power"]


def test_what_meets_no_limit_is_not_told_to_rent() -> None:
    short = scenario([], [fleet("chat", qpm=1200)], limits={"max_devices": 1})
    found = api.reserve(short, world(4.0, 2.5), terms=["commitment_1y"])
    assert "INFEASIBLE  nothing meets every limit over 1 year" in str(found)
    assert "RENT" not in str(found)


def test_a_commitment_breaks_even_where_use_makes_it_cheaper() -> None:
    (row,) = api.reserve(asked(1), world(4.0, 2.5), terms=["commitment_1y"], otherwise=False).break_evens
    hours = YEAR  # by brute force over hours of use: the least at which renting costs more than the fee
    least = next(used for used in range(hours + 1) if used * 4.0 >= hours * 2.5)
    assert row["use"] == pytest.approx(least / hours, rel=0.01)
    assert (row["on_demand"], row["term_hours"]) == ("north/one:r1:on_demand", YEAR)


def test_futures_keep_what_was_reserved() -> None:
    """Ten nodes at $4, all reserved at $2.5: less demand, lower prices, an end half-way."""
    (term,) = api.reserve(asked(10), world(4.0, 2.5), terms=["commitment_1y"]).terms
    fee, rented = 10 * 2.5 * YEAR, 10 * 4.0 * YEAR
    told = {one["happens"]: (one["on_demand_microusd"], one["reserved_microusd"]) for one in term["otherwise"]}
    assert tuple(told) == FUTURES
    assert told["demand"] == (round(0.7e6 * rented), round(1e6 * fee))
    assert told["price"] == (round(0.7e6 * rented), round(1e6 * fee))
    assert told["end"] == (round(0.5e6 * rented), round(1e6 * fee))


def test_what_is_not_reserved_is_rented_in_every_future() -> None:
    """Of ten nodes six can be had under contract: four are rented, one with less demand."""
    (term,) = api.reserve(asked(10), world(4.0, 2.5, cap=6), terms=["commitment_1y"]).terms
    kept = {one["happens"]: one["reserved_microusd"] for one in term["otherwise"]}
    fee = 6 * 2.5 * YEAR
    assert kept["demand"] == round(1e6 * (fee + 1 * 4.0 * YEAR))
    assert kept["price"] == round(1e6 * (fee + 0.7 * 4 * 4.0 * YEAR))
    assert kept["end"] == round(1e6 * (fee + 4 * 4.0 * YEAR / 2))


def test_both_terms_and_what_nobody_sells() -> None:
    found = api.reserve(asked(2), world(4.0, 2.5, three=2.0), otherwise=False)
    assert [(one["price_model"], one["term_hours"]) for one in found.terms] == [
        ("commitment_1y", YEAR), ("commitment_3y", 3 * YEAR),
    ]  # fmt: skip
    assert "RESERVE  2 × north/one in r1 for 3 years saves $105,120, 50% of renting" in str(found)
    nothing = api.reserve(asked(2), catalog([device()], [shape("north/one")], [offer("north/one", 1.0)]))
    assert (nothing.terms, nothing.break_evens, nothing.exit_code) == ([], [], 0)
    assert "RENT  nothing that is allowed can be committed to" in str(nothing)
    with pytest.raises(UsageError, match="no commitment"):
        planner.reserve(asked(2), world(4.0, 2.5), terms=["flex"])


def test_the_command(run: Run) -> None:
    asks = ("reserve", "scenarios/chat-fleet.yaml", "--set", "hardware.providers=azure", "--term", "commitment_3y",
            "--no-otherwise")  # fmt: skip
    document = json.loads(run(*asks, "-o", "json").out)
    follow_schema(document, "reserve")
    (term,) = document["terms"]
    assert term["saved_microusd"] == term["on_demand_microusd"] - term["cost_microusd"]
    uses = [row["use"] for row in document["break_evens"] if row["use"] is not None]
    assert uses == sorted(uses)
    assert {row["contract"] for row in document["break_evens"]} == {"savings plan", "reservation"}
    head, *lines = run(*asks, "-o", "csv").out.splitlines()
    assert head.startswith("offer,provider,region,device")
    assert len(lines) == len(document["break_evens"])
    assert "| Term | Reserve |" in run(*asks, "-o", "md").out


def best_of_all(nodes: int, rent: float, year: float, three: float, caps: tuple[int, int]) -> int:
    """The least over three years of every count of three-year and of one-year nodes, these begun anew each year."""
    return min(
        round(1e6 * YEAR * 3 * (long * three + short * year + (nodes - long - short) * rent))
        for long in range(min(nodes, caps[1]) + 1)
        for short in range(min(nodes - long, caps[0]) + 1)
    )


@pytest.mark.parametrize("seed", range(cases(4, 200)))
def test_all_terms_at_once_against_every_count(seed: int) -> None:
    chance = random.Random(1000 + seed)
    nodes, caps = chance.randint(1, 5), (chance.randint(1, 5), chance.randint(1, 5))
    rent, year, three = (round(chance.uniform(0.5, 5.0), 2) for _ in range(3))
    offers = [offer("north/one", rent), offer("north/one", year, price_model="commitment_1y", max_shapes=caps[0]),
              offer("north/one", three, price_model="commitment_3y", max_shapes=caps[1])]  # fmt: skip
    found = api.reserve(asked(nodes), catalog([device()], [shape("north/one")], offers), otherwise=False)
    together = found.document["together"]
    assert together is not None
    assert (together["status"], together["horizon_hours"]) == ("optimal", 3 * YEAR)
    assert together["cost_microusd"] == best_of_all(nodes, rent, year, three, caps)
    assert together["on_demand_microusd"] == round(1e6 * YEAR * 3 * nodes * rent)
    assert together["saved_microusd"] == together["on_demand_microusd"] - together["cost_microusd"]
    for row in together["reserved"]:
        price = {"commitment_1y": year, "commitment_3y": three}[row["price_model"]]
        assert row["fee_microusd"] == round(1e6 * row["nodes"] * price * row["term_hours"])
    follow_schema(found.document, "reserve")


@pytest.mark.parametrize("seed", range(cases(20, 300)))
def test_break_evens_against_every_use(seed: int) -> None:
    """Over every hour of the term: the least use at which renting costs more than the fee, within one in a hundred."""
    chance = random.Random(seed)
    rent = round(chance.uniform(0.5, 90.0), 2)
    prices = {"commitment_1y": round(rent * chance.uniform(0.1, 1.3), 2),
              "commitment_3y": round(rent * chance.uniform(0.1, 1.3), 2)}  # fmt: skip
    offers = [offer("north/one", rent), offer("north/one", 2 * rent, region="r2"),
              *(offer("north/one", price, price_model=model) for model, price in prices.items())]  # fmt: skip
    known = catalog([device()], [shape("north/one")], offers)
    models = list(prices)
    asks = asked(1).with_({"hardware.pricing": ["on_demand", *models], "horizon": f"{3 * YEAR} h"})
    rows = break_evens(asks, known, models, suspect=False)
    assert {row["price_model"] for row in rows} == set(models)
    for row in rows:
        hours, price = int(row["term_hours"]), prices[row["price_model"]]
        fee = round(1e6 * price) * hours
        least = next((used for used in range(1, 2 * hours) if used * round(1e6 * rent) >= fee), None)
        assert least is not None
        assert row["use"] == pytest.approx(least / hours, rel=0.01)
        assert row["on_demand"] == "north/one:r1:on_demand"


def futures_of(document: Any) -> Any:
    return {one["happens"]: one for one in document["terms"][0]["otherwise"]}


def test_the_workbook_works_decisions_out() -> None:
    """Every formula gives what the document says, to the cent; a changed price moves its break-even and its fee."""
    document = api.reserve(asked(10), world(4.0, 2.5, cap=6, three=2.0)).document
    sheet = Sheet(reserve_workbook(document))
    places = list(sheet.formulas())
    assert len(places) > 30
    for place in places:
        assert sheet.value(*place) == pytest.approx(sheet.cached(*place), abs=0.005), place
    lines = {sheet.value("Decisions", f"A{row}"): row for row in range(1, sheet.book["Decisions"].max_row + 1)}
    first = next(row for text, row in lines.items() if text == "north/one:r1:commitment_1y")
    planned = next(row for row in range(first, first + 9)
                   if str(sheet.value("Decisions", f"A{row}")).startswith("As planned"))  # fmt: skip
    term = document["terms"][0]
    assert sheet.value("Decisions", f"I{planned}") == pytest.approx(term["cost_microusd"] / 1e6, abs=0.005)
    assert sheet.value("Decisions", f"K{planned}") == pytest.approx(term["saved_microusd"] / 1e6, abs=0.005)
    assert futures_of(document)["end"]["reserved_microusd"] is not None
    even = next(row for row in range(4, 20) if sheet.value("Break-even", f"A{row}") == "north/one:r1:commitment_1y")
    before = sheet.value("Decisions", f"I{planned}")
    sheet.change("Break-even", f"F{even}", 3.0)
    assert sheet.value("Break-even", f"H{even}") == pytest.approx(0.75)
    assert sheet.value("Decisions", f"I{planned}") - before == pytest.approx(6 * YEAR * 0.5, abs=0.005)
    sheet.change("Break-even", f"I{even}", 0.5)
    assert sheet.value("Break-even", f"L{even}") == pytest.approx(YEAR * (0.5 * 4.0 - 3.0), abs=0.005)


def test_the_workbook_where_nothing_is_offered_or_rented() -> None:
    nothing = api.reserve(asked(2), catalog([device()], [shape("north/one")], [offer("north/one", 1.0)])).document
    assert list(Sheet(reserve_workbook(nothing)).formulas()) == []
    dear = api.reserve(asked(2), world(1.0, 2.5), otherwise=False).document
    for place in (sheet := Sheet(reserve_workbook(dear))).formulas():
        assert sheet.value(*place) == pytest.approx(sheet.cached(*place), abs=0.005), place


def test_the_page_is_a_section_and_escapes_names() -> None:
    document = api.reserve(asked(2), world(4.0, 2.5, three=2.0), otherwise=False).document
    page = read(render_reserve_page({**document, "name": "<script>alert(1)</script>"}))
    assert not [one for one in page.elements if one.tag == "script"]
    assert [one for one in page.elements if one.tag == "section"]
    text = " ".join(one.text for one in page.elements)
    assert "All terms and starts at once" in text
    assert "$105,120" in text


@pytest.mark.parametrize(
    ("term", "hint"), [("1y", "did you mean commitment_1y?"), ("commitment-3y", "did you mean"), ("weekly", "one of")]
)
def test_a_term_that_nobody_sells_is_told_in_our_words(run: Run, term: str, hint: str) -> None:
    answer = run("reserve", "scenarios/gpt2-xl.yaml", "--term", term)
    assert answer.code == 2
    assert f"'{term}' is no commitment" in answer.err
    assert hint in answer.err
    assert "Value error" not in answer.err


def test_a_calendar_is_not_told_as_a_term() -> None:
    """A scenario with periods keeps its horizon: its months of load were said to go on for years."""
    free, kept = asked(1), scenario([], [fleet("chat", qpm=600)], horizon="20 weeks", periods="1 week")
    known = world(4.0, 2.5, three=2.0)
    said = " ".join(str(api.reserve(free, known, otherwise=False)).split())
    assert "for 3 years saves $52,560, 50% of renting" in said
    assert "the load of fleets goes on for the whole term" in said
    found = " ".join(str(api.reserve(kept, known, otherwise=False)).split())
    assert "no commitment saves anything over the scenario's own 140 days" in found
    assert "over the scenario's own 140 days, since it has periods: without them the load" in found
    assert "goes on for the whole term" not in found
    prorated = kept.with_({"hardware.beyond_horizon": "prorate"})
    found = " ".join(str(api.reserve(prorated, known, otherwise=False)).split())
    assert "50% of renting over the scenario's own 140 days" in found


def test_jobs_that_start_later_are_asked_in_periods_in_which_they_can() -> None:
    """`no-period`, whose hint (periods) made another question of it: half a year of load in place of three."""
    late = job("late", tokens="1B", start="40 days", deadline="20 days")
    whole = scenario([late], [fleet("chat", qpm=600)], horizon="6 months")
    found = api.reserve(whole, world(4.0, 2.5, three=2.0), otherwise=False)
    fee = {one["price_model"]: sum(row["fee_microusd"] for row in one["reserved"]) for one in found.terms}
    assert fee["commitment_3y"] >= 3 * YEAR * 2_000_000
    assert [one["term_hours"] for one in found.terms] == [YEAR, 3 * YEAR]
    assert found.document["together"] is not None
    short = scenario([job("short", tokens="1B", start="40 days", deadline="1 h")], [fleet("chat", qpm=600)])
    answered = api.reserve(short, world(4.0, 2.5), otherwise=False)
    assert [one["status"] for one in answered.terms] == ["optimal"]


def test_what_cannot_all_be_rented_is_not_told_to_rent() -> None:
    """Quotas left too few to rent: "RENT, no commitment saves anything" stood above the only plan that works."""
    quotas = [{"price_model": "on_demand", "max_shapes": 1}]
    short = scenario([], [fleet("chat", qpm=1200)], hardware={"quotas": quotas})
    found = " ".join(str(api.reserve(short, world(4.0, 2.5), terms=["commitment_1y"])).split())
    assert "RESERVE 2 × north/one in r1 for 1 year, $43,800 in all: no plan was found that rents everything" in found
    assert "RENT " not in found


def of_two_futures(busy: float, **changes: Any) -> Any:
    """Two nodes are needed as written; six are, with that probability."""
    more = {"name": "busy", "probability": busy, "set": {"serving.chat.qpm": 3600}}
    return scenario([], [fleet("chat", qpm=1200)], horizon=f"{YEAR} h", uncertainty=[more], **changes)


def test_several_futures_are_held_against_each_other_by_what_is_expected() -> None:
    """The case as written alone was: it rents two nodes, so that four reserved for both cases "saved nothing".

    A node for a year costs $0.60 an hour, $1.00 on demand. A third of the time is worth less than that, so that at a
    probability of 0.7 all six nodes are reserved, at 0.3 only the two that both cases need.
    """
    there = world(1.0, 0.6)
    for busy, nodes, mean in ((0.7, 6, 3.6), (0.3, 2, 1.2 + 0.3 * 4)):
        found = api.reserve(of_two_futures(busy), there, terms=["commitment_1y"])
        (term,) = found.terms
        assert [row["nodes"] for row in term["reserved"]] == [nodes]
        assert term["on_demand_microusd"] == pytest.approx(1e6 * YEAR * (2 + 4 * busy))
        assert term["cost_microusd"] == pytest.approx(1e6 * YEAR * mean)
        assert term["saved_microusd"] == term["on_demand_microusd"] - term["cost_microusd"]
        demand, _, end = term["otherwise"]
        assert (demand["on_demand_microusd"], demand["reserved_microusd"]) == (None, None)  # the cases say that
        assert end["on_demand_microusd"] == pytest.approx(1e6 * YEAR * (2 + 4 * busy) / 2)
        assert f"RESERVE  {nodes} × north/one" in str(found)
        assert "every cost is the mean of 2 cases (uncertainty)" in str(found)


def test_the_worst_cases_weigh_in_what_reserving_saves() -> None:
    """Six nodes cost $3.60 an hour in any case; two $1.20, and $5.20 in three cases of ten: the worst tenth decides."""
    found = api.reserve(of_two_futures(0.3, risk={"cvar": 0.9, "weight": 0.5}), world(1.0, 0.6),
                        terms=["commitment_1y"], otherwise=False)  # fmt: skip
    (term,) = found.terms
    assert [row["nodes"] for row in term["reserved"]] == [6]
    assert term["on_demand_microusd"] == pytest.approx(1e6 * YEAR * (0.5 * 3.2 + 0.5 * 6))
    assert term["cost_microusd"] == pytest.approx(1e6 * YEAR * 3.6)
    assert "every cost is 50 % of the mean of 2 cases (uncertainty) and 50 % of the mean of the worst 10 %" in " ".join(
        str(found).split()
    )
