"""The budget of a plan: nothing lost between charges, workloads, months and years, and money where it falls due."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import api
from planner.budget.charges import MONTHS, Month, by_time, months_until, two_ways, weighed
from planner.budget.document import budget_document
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.plan.parts import spent_on
from planner.report import csv
from planner.report.plan_words import totals as totals_told
from planner.scenario.load import parse_scenario
from tests.properties.test_random_calendars import market, question
from tests.tiers import settings
from tests.verified import errors, follow_schema
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

Document = dict[str, Any]
SPLITS = (("training", "serving", "unused"), ("committed", "variable"))


def budget_of(document: Document, there: Catalog, **options: Any) -> Document:
    budget = budget_document(document, there, **options)
    assert budget is not None
    return budget


def assert_sound(document: Document, budget: Document) -> None:
    """Every way to add up a budget gives the plan's total, in whole micro-dollars."""
    total = document["summary"]["cost_microusd"]
    months, totals = budget["months"], budget["totals"]
    assert sum(month["total_microusd"] for month in months) == total == totals["total_microusd"]
    for names in SPLITS:
        for row in (*months, totals, *budget["fiscal_years"]):
            assert sum(row[f"{name}_microusd"] for name in names) == row["total_microusd"]
    for part in ("by_workload", "by_provider", "by_category", "lines"):
        rows = budget[part]
        assert sum(row["total_microusd"] for row in rows) == total
        for number, month in enumerate(months):
            assert sum(row["months_microusd"][number] for row in rows) == month["total_microusd"]
    if budget["fiscal_years"]:
        assert sum(year["total_microusd"] for year in budget["fiscal_years"]) == total
    spend = document["spend"]
    assert totals["committed_microusd"] == spend["committed_microusd"]
    assert totals["variable_microusd"] == spend["variable_microusd"]
    assert all(one["end_hours"] == two["start_hours"] for one, two in itertools.pairwise(months))
    summary, names = document["summary"], SPLITS[0]
    assert [summary.get(f"{name}_usd", 0.0) for name in names] == [totals[f"{name}_microusd"] / 1e6 for name in names]


@pytest.mark.parametrize("name", ["llama", "fleet", "feasible", "portfolio"])
def test_every_sum_of_a_sample_is_the_plans_total(
    name: str, sample: Callable[[str], Document], shipped: Catalog
) -> None:
    document = sample(name)
    assert_sound(document, budget_of(document, shipped, contingency=0.123))


@pytest.mark.parametrize("seed", range(5))
def test_random_calendars_with_contracts_blocks_and_fees_due_up_front(seed: int) -> None:
    chance = random.Random(seed)
    there, asked = market(chance), question(chance)
    document = json.loads(api.solve(asked, there).to_json())
    if document["status"] != "optimal":
        assert budget_document(document, there) is None
        return
    fractions = {"commitment_1y": 0.3, "commitment_3y": 1.0, "block": chance.choice([None, 0.5]), "calendar": 0.0}
    paid_ahead = replace(
        there, offers=tuple(replace(one, upfront_fraction=fractions.get(one.price_model)) for one in there.offers)
    )
    for market_of in (there, paid_ahead):
        budget = budget_of(document, market_of, contingency=0.1, fiscal_year_start=chance.choice(MONTHS))
        assert_sound(document, budget)
        shares = {(one["workload"], one["pool"]): one["cost_microusd"] for one in document["schedule"]["shares"]}
        pools = {contract["pool"]: number for number, contract in enumerate(document["contracts"])}
        for (workload, pool), cost in shares.items():
            mine = [
                line
                for line in budget["lines"]
                if line["workload"] == workload and _pool(document, line) == pool and pool in pools
            ]
            assert sum(line["total_microusd"] for line in mine) == cost  # what the plan says that it bears


def _pool(document: Document, line: Document) -> str | None:
    source = line["source"]
    return document["contracts"][int(source[10:-1])]["pool"] if source.startswith("contracts") else None


def world() -> Catalog:
    return catalog(
        [device()],
        [shape("north/one")],
        [offer("north/one", 1.0), offer("north/one", 0.6, price_model="commitment_1y")],
    )


def test_a_commitment_that_counts_whole_is_paid_beyond_the_horizon() -> None:
    """One node for a year at $0.60/h, of which a 60-day plan counts all: twelve months of instalments."""
    asked = scenario(
        [], [fleet("chat")], horizon="60 days", periods="1 day", begin="2026-12-15",
        hardware={"pricing": ["commitment_1y"], "beyond_horizon": "full"},
    )  # fmt: skip
    document = json.loads(api.solve(asked, world()).to_json())
    budget = budget_of(document, world(), fiscal_year_start="april")
    assert_sound(document, budget)
    nodes = document["contracts"][0]["count"]
    labels = [month["label"] for month in budget["months"]]
    assert (labels[0], labels[-1], len(labels)) == ("2026-12", "2027-12", 13)
    by_label = {month["label"]: month for month in budget["months"]}
    assert by_label["2027-01"]["committed_microusd"] == pytest.approx(nodes * 0.6e6 * 24 * 31, abs=2)
    assert by_label["2027-02"]["committed_microusd"] == pytest.approx(nodes * 0.6e6 * 24 * 28, abs=2)
    assert not by_label["2027-02"]["after_horizon"]  # the horizon ends on 13 February
    assert by_label["2027-03"]["after_horizon"]
    years = {year["label"]: year["total_microusd"] for year in budget["fiscal_years"]}
    hours = {"FY2027": 24 * (17 + 31 + 28 + 31), "FY2028": 8760 - 24 * (17 + 31 + 28 + 31)}
    assert years == {year: pytest.approx(nodes * 0.6e6 * part, abs=2) for year, part in hours.items()}


@pytest.mark.parametrize(("fraction", "first_month"), [(0.0, 31.0), (0.4, 0.4 * 8760 + 0.6 * 31), (1.0, 8760.0)])
def test_what_is_due_up_front_falls_into_the_first_month(fraction: float, first_month: float) -> None:
    """Of 8760 units of fee; 31 hours of January are what a horizon of 31 hours leaves of it in instalments."""
    there = world()
    there = replace(there, offers=tuple(replace(one, upfront_fraction=fraction) for one in there.offers))
    asked = scenario([], [fleet("chat")], horizon="40 days", periods="1 day", begin="2027-01-30 17:00",
                     hardware={"pricing": ["commitment_1y"], "beyond_horizon": "full"})  # fmt: skip
    document = json.loads(api.solve(asked, there).to_json())
    budget = budget_of(document, there)
    assert_sound(document, budget)
    nodes = document["contracts"][0]["count"]
    assert budget["months"][0]["label"] == "2027-01"
    assert budget["months"][0]["total_microusd"] == pytest.approx(nodes * 0.6e6 * first_month, abs=3)
    assert budget["totals"]["up_front_microusd"] == pytest.approx(nodes * 0.6e6 * 8760 * fraction, abs=2)


def test_training_is_spread_over_its_run_and_serving_over_the_horizon() -> None:
    asked = scenario(
        [job("a", tokens="2000B", deadline="200 days", start="2026-12-25")], [fleet("chat")], horizon="90 days",
        begin="2026-12-01", estimator="rule",
    )  # fmt: skip
    document = json.loads(api.solve(asked, world()).to_json())
    budget = budget_of(document, world())
    assert_sound(document, budget)
    row = document["workloads"][0]["allocations"][0]
    end, cost = row["end_hours"], row["cost_microusd"]
    december = (31 - 24) * 24
    assert budget["months"][0]["training_microusd"] == pytest.approx(cost * december / (end - 24 * 24), abs=1)
    served = document["workloads"][1]["cost_microusd"]
    assert [month["serving_microusd"] for month in budget["months"][:3]] == [
        pytest.approx(served * days / 90, abs=2) for days in (31, 31, 28)
    ]


def test_a_fleet_that_is_scaled_with_its_load_is_spread_evenly(tmp_path: Path, shipped: Catalog) -> None:
    """Nodes that run for a part of every day cost the same in months of the same length."""
    lines = "".join(f"{hour},{1 + hour % 24 / 12}\n" for hour in range(168))
    (tmp_path / "week.csv").write_text("hour,weight\n" + lines, encoding="utf-8")
    text = (
        "schema: plan/v1\nname: scaled\nhorizon: 2 months\nserving:\n  - {name: web, model: llama-3.1-8b, qpm: 3000,"
        " input_tokens: 1500, output_tokens: 400, load_profile: week.csv, autoscaling: {start_up: 10 min}}\n"
        'hardware: {allow: [h100-sxm-80gb], regions: ["us-*"]}\n'
    )
    asked = parse_scenario(text, file=str(tmp_path / "scaled.yaml"))
    document = json.loads(api.solve(asked, shipped).to_json())
    rows = document["workloads"][0]["allocations"]
    assert any(row["hours"] < 0.9 * 1460 for row in rows)  # some nodes do not run all the time
    budget = budget_of(document, shipped)
    assert_sound(document, budget)
    first, second = (month["serving_microusd"] for month in budget["months"])
    assert first == pytest.approx(second, abs=len(rows))
    assert any("spread evenly" in note for note in budget["notes"])


def test_without_a_date_months_are_counted_and_no_year_is_told() -> None:
    document = json.loads(api.solve(scenario([], [fleet("chat")], horizon="100 days"), world()).to_json())
    budget = budget_of(document, world())
    assert [month["label"] for month in budget["months"]] == ["month 1", "month 2", "month 3", "month 4"]
    assert [month["end_hours"] for month in budget["months"]] == [730, 1460, 2190, 2400]
    assert budget["fiscal_years"] == []
    assert any("no date" in note for note in budget["notes"])


def test_the_contingency_is_beside_the_total(sample: Callable[[str], Document], shipped: Catalog) -> None:
    document = sample("fleet")
    plain, aside = budget_of(document, shipped), budget_of(document, shipped, contingency=0.1)
    total = document["summary"]["cost_microusd"]
    assert plain["totals"]["contingency_microusd"] == 0
    assert aside["totals"] == {**plain["totals"], "contingency_microusd": round(Fraction(total, 10))}
    assert sum(month["contingency_microusd"] for month in aside["months"]) == aside["totals"]["contingency_microusd"]


def test_options_of_the_scenario_hold_unless_others_are_asked_for(
    sample: Callable[[str], Document], shipped: Catalog
) -> None:
    document = sample("llama")
    document["scenario"]["report"] = {"fiscal_year_start": "april", "contingency": "10 %"}
    assert budget_of(document, shipped)["contingency"] == 0.1
    assert budget_of(document, shipped)["fiscal_year_start"] == "april"
    assert budget_of(document, shipped, contingency=0.0)["contingency"] == 0.0
    assert budget_of(document, shipped, fiscal_year_start="july")["fiscal_year_start"] == "july"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"contingency": 1.5}, "report.contingency is '1.5'; it must be a share from 0 to 1"),
        ({"contingency": -0.1}, "report.contingency is '-0.1'; it must be a share from 0 to 1"),
        ({"fiscal_year_start": "smarch"}, "report.fiscal_year_start is 'smarch'; it must be the name of a month"),
    ],
)
def test_unusable_options_are_refused(
    asked: dict[str, Any], said: str, sample: Callable[[str], Document], shipped: Catalog
) -> None:
    with pytest.raises(InputError, match=said):
        budget_document(sample("llama"), shipped, **asked)


def test_a_plan_of_several_futures_tells_the_expected_and_the_worst(
    sample: Callable[[str], Document], shipped: Catalog
) -> None:
    document = sample("fleet")
    dearer = copy.deepcopy(document)
    dearer["workloads"][3]["allocations"][0]["cost_microusd"] += 7
    dearer["summary"]["cost_microusd"] += 7
    cost = document["summary"]["cost_microusd"]
    cases = [
        {"name": "as written", "probability": 0.7, "cost_microusd": cost, "plan": None},
        {"name": "busy", "probability": 0.3, "cost_microusd": cost + 7, "plan": dearer},
    ]
    document["uncertainty"] = {"cases": cases}
    section = budget_of(document, shipped)["cases"]
    assert section["expected"]["total_microusd"] == int(Fraction(7, 10) * cost + Fraction(3, 10) * (cost + 7))
    assert section["worst"]["name"] == "busy"
    assert [sum(case["months_microusd"]) for case in section["cases"]] == [cost, cost + 7]
    cases[1] |= {"cost_microusd": None, "plan": None}
    section = budget_of(document, shipped)["cases"]
    assert section["expected"] is None  # nobody knows what a case without a plan costs
    assert section["worst"]["name"] == "as written"


def test_a_document_without_a_plan_has_no_budget(sample: Callable[[str], Document], shipped: Catalog) -> None:
    assert budget_document(sample("infeasible"), shipped) is None


@pytest.mark.parametrize(
    ("first", "start", "year"),
    [
        (datetime(2026, 12, 7), "january", "FY2026"),
        (datetime(2026, 12, 7), "april", "FY2027"),
        (datetime(2026, 3, 1), "april", "FY2026"),
        (datetime(2026, 4, 1), "april", "FY2027"),
        (datetime(2026, 12, 31), "december", "FY2027"),
        (datetime(2026, 2, 1), "february", "FY2027"),
    ],
)
def test_a_fiscal_year_is_named_by_the_year_that_it_ends_in(first: datetime, start: str, year: str) -> None:
    assert Month(label="", begin=Fraction(0), end=Fraction(1), first=first).fiscal_year(start) == year


@settings(max_examples=60, few=30)
@given(
    st.none() | st.datetimes(datetime(1990, 1, 1), datetime(9999, 12, 1)),
    st.fractions(Fraction(1, 100), Fraction(24 * 366 * 4)),
)
def test_months_follow_each_other_without_a_gap(begin: datetime | None, end: Fraction) -> None:
    months = months_until(begin, end)
    assert (months[0].begin, months[-1].end) == (0, end)
    assert all(one.end == two.begin for one, two in itertools.pairwise(months))
    assert all(month.end > month.begin for month in months)
    assert len({month.label for month in months}) == len(months)


@settings(max_examples=60, few=30)
@given(st.integers(0, 10**15), st.lists(st.fractions(0, 1000), min_size=1, max_size=40))
def test_money_spread_over_time_adds_up(cost: int, hours: list[Fraction]) -> None:
    parts = by_time(cost, hours)
    assert sum(parts) == cost
    assert min(parts) >= 0
    if any(hours):
        exact = [cost * part / sum(hours) for part in hours]
        assert all(abs(one - two) < 1 for one, two in zip(parts, exact))


@settings(max_examples=60, few=30)
@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=12), st.data())
def test_money_shared_two_ways_has_the_sums_of_both(amounts: list[int], data: st.DataObject) -> None:
    total = sum(amounts)
    cuts = sorted(data.draw(st.lists(st.integers(0, total), max_size=5)))
    shares = [end - begin for begin, end in zip([0, *cuts], [*cuts, total])]
    table = two_ways(amounts, shares)
    assert [sum(row) for row in table] == amounts
    assert [sum(column) for column in zip(*table)] == shares
    for row, amount in zip(table, amounts):
        assert all(abs(cell - Fraction(amount * share, total or 1)) < 2 for cell, share in zip(row, shares))


@settings(max_examples=60, few=30)
@given(st.lists(st.integers(0, 10**9), min_size=3, max_size=3), st.lists(st.integers(0, 10**9), min_size=3, max_size=3))
def test_weighed_months_add_up_to_the_weighed_total(one: list[int], two: list[int]) -> None:
    weights = [Fraction(3, 10), Fraction(7, 10)]
    assert sum(weighed([one, two], weights)) == int(weights[0] * sum(one) + weights[1] * sum(two))


@pytest.mark.parametrize(
    ("written", "reference", "hint"),
    [
        ("{fiscal_year_start: apirl}", "not-one-of", "did you mean 'april'?"),
        ("{fiscal_year_start: 4}", "not-one-of", "write january"),
        ("{contingency: 150 %}", "out-of-range", 'write "30 %" or 0.3'),
        ("{contingency: -1}", "out-of-range", "drop the minus sign"),
        ("{contingencies: 10 %}", "unknown-field", "did you mean 'contingency'?"),
    ],
)
def test_mistakes_in_report_are_told_with_their_place(written: str, reference: str, hint: str) -> None:
    text = (
        "schema: plan/v1\nname: x\ntraining:\n  - {name: job, model: gpt2, tokens: 1B, deadline: 30 days,"
        f" sequence_length: 1024, global_batch: 512k tokens}}\nreport: {written}\n"
    )
    with pytest.raises(InputError) as caught:
        parse_scenario(text, file="x.yaml")
    (problem,) = caught.value.problems
    assert (problem.reference, problem.hint) == (reference, hint)
    assert problem.places[0].line == 5


@pytest.mark.parametrize("name", ["llama", "fleet", "portfolio"])
def test_the_terminal_splits_the_total_as_the_budget_does(
    name: str, sample: Callable[[str], Document], shipped: Catalog
) -> None:
    """Contracts are shared out by node-hours in both; the terminal gave them to nobody, and fleets cost $0."""
    document: Any = sample(name)
    totals, spent = budget_of(document, shipped)["totals"], spent_on(document["workloads"], document)
    assert spent == {kind: totals[f"{kind}_microusd"] for kind in SPLITS[0]}


def test_what_is_bought_for_nobody_is_told_apart(sample: Callable[[str], Document], shipped: Catalog) -> None:
    """Contracts that pay in another future only: without them the parts did not add up to the total."""
    document: Any = copy.deepcopy(sample("portfolio"))
    document["schedule"]["shares"] = []
    totals, spent = budget_of(document, shipped)["totals"], spent_on(document["workloads"], document)
    assert spent == {kind: totals[f"{kind}_microusd"] for kind in SPLITS[0]}
    assert spent["unused"] == sum(one["cost_microusd"] for one in document["contracts"])
    told = next(line for line in totals_told(document) if line.startswith("training"))
    assert f" · unused ${spent['unused'] / 1e6:,.0f} of contracts" in told


def test_a_fleet_under_contract_is_not_served_for_nothing() -> None:
    """Its rows cost nothing of their own: what a token costs is not known, and not $0."""
    asked = scenario([], [fleet("chat", api_price="$1 /1M output tokens")], horizon="12 months", periods="30 days",
                     begin="2027-01-01", hardware={"pricing": ["commitment_1y"]})  # fmt: skip
    document: Any = json.loads(api.solve(asked, world()).to_json())
    assert_sound(document, budget_of(document, world()))
    assert document["summary"]["serving_usd"] == document["summary"]["cost_usd"] > 0
    (served,), fleets = document["workloads"][0]["allocations"], document["workloads"][0]["fleet"]
    for prices in (served, fleets, csv.plan_rows(document)[0]):
        assert prices["usd_per_million_output_tokens_mean"] is prices["usd_per_million_output_tokens_full"] is None
    assert fleets["api"]["break_even_requests_per_s"] is None
    follow_schema(document)
    assert errors(document, world()) == []
    for wrong in ({"serving_usd": 0.0}, {"unused_usd": 1.0}):
        forged = {**document, "summary": {**document["summary"], **wrong}}
        assert "wrong-total" in {problem.reference for problem in errors(forged, world())}
