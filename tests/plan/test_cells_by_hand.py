"""Figures of plans that can be counted on the fingers: pools, owned machines, prices of tokens, budgets."""

from __future__ import annotations

import json
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planner.analysis.compare.decision import bought_rows
from planner.analysis.why.why_not import Asked, _break_even_mfu
from planner.budget.charges import Month, charges_of
from planner.budget.margins import margins_taken
from planner.plan.plan_files import asks_the_same
from planner.plan.rows.calendar import owned_periods
from planner.plan.rows.fleet_cells import load_cells, price_cells
from planner.plan.rows.pools import PoolUse, contract_figures, parts_of
from planner.scenario import load_scenario
from tests.worlds import catalog, fleet, job, scenario

HERE = Path(__file__).parents[1]
WEEK_H = 168.0


def pool(used: list[int], reserved: list[int], on_demand: list[int] | None = None) -> PoolUse:
    """A pool of four weeks, whose nodes cost $2 an hour on demand."""
    return PoolUse(
        pool="p", kind="reserved", place={}, edges_s=[3600 * WEEK_H * n for n in range(5)], reserved=reserved,
        on_demand=on_demand or [0] * 4, used=used, on_demand_microusd_per_hour=2_000_000,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("used", "last", "following"), [([3, 3, 3, 3], 1.0, 0.0), ([2, 3, 4, 5], 0.75, 0.5), ([0, 0, 0, 0], 0.0, 0.0)]
)
def test_the_last_node_of_a_contract_is_used_when_all_are(used: list[int], last: float, following: float) -> None:
    """Three nodes for four weeks: the last is busy where three or more run, one more would be where four run."""
    figures = contract_figures(pool(used, [3] * 4), "block", 3, (0, 4), 1_000_000_000)
    assert (figures["last_node_share"], figures["next_node_share"]) == (last, following)


def test_what_a_contract_saves_is_what_its_use_would_cost() -> None:
    """Six node-weeks of twelve at $336 a node-week, for $1,000."""
    figures = contract_figures(pool([3, 1, 2, 0], [3] * 4), "block", 3, (0, 4), 1_000_000_000)
    assert figures["used_share"] == 0.5
    assert figures["on_demand_microusd"] == 6 * 168 * 2_000_000
    assert figures["saved_microusd"] == 6 * 168 * 2_000_000 - 1_000_000_000
    assert figures["break_even_share"] == pytest.approx(1_000_000_000 / (12 * 168 * 2_000_000))


def test_what_is_topped_up_counts_above_what_is_reserved() -> None:
    """Two nodes on demand beside one under contract, in the second and third week: one of four node-weeks runs."""
    use = pool([1, 2, 1, 0], [1] * 4, [0, 2, 2, 0])
    assert contract_figures(use, "on_demand", 2, (1, 3), 1)["used_share"] == 0.25


@pytest.mark.parametrize(
    ("cost", "hours", "parts"), [(10, [1, 1, 1], [3, 3, 4]), (10, [0, 0], [0, 0]), (7, [2, 0, 5], [2, 0, 5])]
)
def test_shares_of_a_cost_sum_to_it(cost: int, hours: list[int], parts: list[int]) -> None:
    assert parts_of(cost, [Fraction(one) for one in hours]) == parts


@pytest.mark.parametrize(
    ("window", "there"),
    [
        ({}, [True, True, True, True]),
        ({"from": "2026-12-08"}, [False, True, True, True]),
        ({"from": "2026-12-08 01:00"}, [False, False, True, True]),
        ({"until": "2026-12-15"}, [True, True, False, False]),
        ({"until": "2026-12-14 23:00"}, [True, False, False, False]),
        ({"from": "2026-12-09", "until": "2026-12-21"}, [False, False, False, False]),
    ],
)
def test_owned_machines_count_in_whole_periods(window: dict[str, str], there: list[bool]) -> None:
    owned = {"shape": "north/one", "count": 1, "price": "$1/h", **window}
    asked = scenario(
        [job(deadline="7 days")], hardware={"owned": [owned]}, begin="2026-12-01", horizon="28 days", periods="1 week"
    )
    edges_s = [3600 * WEEK_H * number for number in range(5)]
    assert owned_periods(asked, asked.hardware.owned[0], edges_s) == there


def test_the_price_of_tokens_is_over_the_mean_load_not_the_peak() -> None:
    """10 requests/s of 100 tokens at a peak of twice the mean: $3.60 an hour of 500 tokens/s, or 2000 when full."""
    asked = scenario(serving=[fleet(peak_factor=2, qpm=300)]).serving[0]
    loads = load_cells(asked, [10.0], [10.0], 2)
    assert (loads["load_at_peak"], loads["replica_requests_per_s"], loads["mean_output_tokens"]) == (0.5, 10.0, 100.0)
    prices = price_cells(asked, 3_600_000, loads, 2, 1.0)
    assert prices["usd_per_million_output_tokens_mean"] == pytest.approx(2.0)
    assert prices["usd_per_million_output_tokens_full"] == pytest.approx(0.5)
    scaled = price_cells(asked, 3_600_000, loads, 2, 0.5, 1.0)  # the replicas run half of the horizon
    assert scaled["usd_per_million_output_tokens_mean"] == pytest.approx(2.0)
    assert scaled["usd_per_million_output_tokens_full"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("month", "start", "year"),
    [(6, "july", "FY2026"), (7, "july", "FY2027"), (8, "july", "FY2027"), (12, "january", "FY2026")],
)
def test_a_fiscal_year_begins_with_its_first_month(month: int, start: str, year: str) -> None:
    one = Month(label="", begin=Fraction(0), end=Fraction(1), first=datetime(2026, month, 1))
    assert one.fiscal_year(start) == year


def test_what_is_stored_falls_due_while_it_is_kept() -> None:
    plan = json.loads((HERE / "report" / "samples" / "portfolio.json").read_text(encoding="utf-8"))
    (copy,) = plan["copies"]
    due = {one.category: one for one in charges_of(plan, catalog()) if one.source == "copies[0]"}
    begin = due["egress"].spans[0][0]
    assert due["egress"].spans == ((begin, begin, 1),)
    assert due["storage"].spans == ((begin, begin + Fraction(copy["kept_hours"]), 1),)
    assert (due["egress"].cost_microusd, due["storage"].cost_microusd) == (240_000_000, 1_587_945_205)


def test_the_peak_of_a_load_profile_is_no_margin(tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("hour,weight\n" + "".join(f"{h},{1 + (h == 9)}\n" for h in range(24)))
    asked = {"schema": "plan/v1", "name": "t", "serving": [fleet(peak_factor=3), fleet("day", load_profile="day.csv")]}
    del asked["serving"][1]["peak_factor"]  # type: ignore[index]
    (tmp_path / "s.yaml").write_text(json.dumps(asked))
    read = load_scenario(tmp_path / "s.yaml")
    assert read.serving[1].peak_factor > 1
    (peak,) = [one for one in margins_taken(read) if one.name == "peak_factor"]
    assert (peak.taken, peak.settings) == ("3 (fleet)", ("serving[0].peak_factor=1",))


def test_contracts_alike_are_counted_one_by_one() -> None:
    one = {"kind": "block", "offer": "x", "count": 2, "cost_microusd": 5}
    rows = bought_rows({"contracts": [one, one, one]}, {"contracts": [one]}, "contracts")
    assert [row["sign"] for row in rows] == ["-", "-"]
    assert bought_rows({"contracts": [one, one]}, {"contracts": [one, one]}, "contracts") == []
    assert [row["sign"] for row in bought_rows({}, {"contracts": [one, one]}, "contracts")] == ["+", "+"]


def test_another_report_asks_nothing_else() -> None:
    before = {"name": "a", "limits": {"max_devices": 1}, "report": {"contingency": 0.1}}
    assert asks_the_same(before, {**before, "report": None})
    assert asks_the_same({"name": "a"}, {"name": "a", "report": None})
    assert not asks_the_same(before, {**before, "limits": {"max_devices": 2}})


@pytest.mark.parametrize(("share", "needed"), [(0.5, 0.8), (0.4, 1.0), (0.39, None)])
def test_no_device_is_told_to_do_more_than_its_peak(share: float, needed: float | None, monkeypatch: Any) -> None:
    """A device at 40 % of its peak that would win at half its price wins at 80 %, too; at less than 40 % it cannot."""
    found = SimpleNamespace(share=Fraction(repr(share)))
    prices = SimpleNamespace(break_even=lambda *_, **__: found)
    monkeypatch.setattr("planner.analysis.why.why_not.Prices", SimpleNamespace(of=lambda *_: prices))
    monkeypatch.setattr("planner.analysis.why.why_not.TrainingQuestion", SimpleNamespace)
    tasks = (SimpleNamespace(name="job"),)
    candidates: Any = SimpleNamespace(questions={"job": SimpleNamespace()}, whole=SimpleNamespace(tasks=tasks))
    solution: Any = SimpleNamespace(cost_microusd=1)
    rows = [{"mfu": 0.4, "device": "d"}]
    told = _break_even_mfu(candidates, solution, "job", rows, SimpleNamespace(), Asked(name="d"))  # type: ignore[arg-type]
    assert told == (None if needed is None else pytest.approx(needed))
