"""What standing still costs: the plan of the earliest day at later prices, against the best of each day."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import planner
from planner import api
from planner.api.sweeping import Answering
from planner.catalog.own_prices import with_device_price
from planner.errors import InputError, UsageError
from planner.report.sweep_view import render_sweep
from planner.scenario.load import with_settings
from planner.sweeps.axes import grid_of, standing_of
from planner.sweeps.question import Question, Row, lost, without_plan
from tests.sweeps.told import row
from tests.tiers import sampled
from tests.verified import follow_schema

ROOT = Path(__file__).parents[2]
# of those that ship, where no price decides which ways there are
REPRICEABLE = ("llama", "a100-rules", "chat-fleet", "disaggregated", "gpt2-xl", "trace", "tpu", "fleet", "under-way")
LLAMA, GPT2 = (str(ROOT / "scenarios" / name) for name in ("llama.yaml", "gpt2-xl.yaml"))


def held_at(costs: dict[str, float]) -> Any:
    """Answers what the plan of the earliest day costs, by day."""

    def ask(asked: Sequence[Question]) -> list[Row]:
        assert all(one.held == ("", "2026-01-01") for one in asked)
        return [row(costs[one.until], status="feasible") for one in asked]

    return ask


def nothing(asked: Sequence[Question]) -> list[Row]:
    assert not asked
    return []


def test_regret_is_what_standing_still_costs_above_the_best() -> None:
    grid = grid_of(["prices=2026-01..2026-03"])
    found = standing_of(grid, [row(5.0), row(4.0), row(6.0)], held_at({"2026-02-01": 4.5, "2026-03-01": 6.0}), {})
    assert found is not None
    assert [one and (one["cost_usd"], one["regret_usd"]) for one in found] == [(5.0, 0.0), (4.5, 0.5), (6.0, 0.0)]


def test_the_earliest_day_is_held_wherever_it_is_named_and_at_its_own_values() -> None:
    grid = grid_of(["seed=1,2", "prices=2026-02-01,2026-01-01"])
    asked: list[Question] = []

    def ask(questions: Sequence[Question]) -> list[Row]:
        asked.extend(questions)
        return [row(9.0, status="feasible") for _ in questions]

    found = standing_of(grid, [row(7.0), row(1.0), row(8.0), row(2.0)], ask, {})
    assert [(one.seed, one.until, one.held) for one in asked] == [
        (1, "2026-02-01", ("", "2026-01-01")),
        (2, "2026-02-01", ("", "2026-01-01")),
    ]
    assert found is not None
    assert [one and one["regret_usd"] for one in found] == [2.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize("first", [without_plan("infeasible", None), lost("x", "y", "z"), row(1.0, status="feasible")])
def test_without_a_proven_plan_on_the_earliest_day_nothing_is_held(first: Row) -> None:
    grid = grid_of(["prices=2026-01..2026-02"])
    assert standing_of(grid, [first, row(1.0)], nothing, {}) == [None, None]


def test_no_best_plan_no_regret() -> None:
    """Nothing can be done under a budget that day: what standing still costs is told, regret is not."""
    grid = grid_of(["prices=2026-01..2026-02"])
    found = standing_of(grid, [row(1.0), without_plan("infeasible", None)], held_at({"2026-02-01": 4.5}), {})
    assert found is not None
    assert found[1] is not None
    assert (found[1]["cost_usd"], found[1]["regret_usd"]) == (4.5, None)


@pytest.mark.parametrize("over", ["seed=1,2", "prices=2026-01-01", "case=a,b", "catalog=a", "catalog=a,c"])
def test_only_where_days_are_varied(over: str) -> None:
    grid, dates = grid_of([over]), {"a": "2026-03-01", "c": "2026-03-01"}
    assert standing_of(grid, [row(1.0)] * len(grid.points), nothing, dates) is None


def test_catalogs_of_different_days_are_days() -> None:
    """The earliest is held, wherever it stands; where days of prices are varied too, those are what passes."""
    grid, dates = grid_of(["catalog=new,old", "seed=1,2"]), {"": "2026-09-01", "new": "2026-06-01", "old": "2026-02-01"}
    asked: list[Question] = []

    def ask(questions: Sequence[Question]) -> list[Row]:
        asked.extend(questions)
        return [row(9.0, status="feasible") for _ in questions]

    found = standing_of(grid, [row(7.0), row(8.0), row(1.0), row(2.0)], ask, dates)
    assert [(one.catalog, one.seed, one.held) for one in asked] == [("new", 1, ("old", "")), ("new", 2, ("old", ""))]
    assert found is not None
    assert [one and (one["since"], one["regret_usd"]) for one in found] == [
        ("old", 2.0), ("old", 1.0), ("old", 0.0), ("old", 0.0),
    ]  # fmt: skip
    asked.clear()
    both = grid_of(["catalog=new,old", "prices=2026-01..2026-02"])
    standing_of(both, [row(1.0)] * 4, ask, dates)
    assert [one.held for one in asked] == [("new", "2026-01-01"), ("old", "2026-01-01")]


@pytest.mark.parametrize("name", sampled(REPRICEABLE, 3))
def test_a_plan_costs_at_its_own_prices_what_it_says(name: str) -> None:
    held = api.session(str(ROOT / "scenarios" / f"{name}.yaml"))
    assert held.cost_at(held.catalog) == held.solve().document["summary"]["cost_microusd"]


@pytest.mark.parametrize("name", ["one-machine", "gpt2-xl", pytest.param("llama", marks=pytest.mark.campaign)])
def test_at_other_prices_the_plan_costs_what_a_solver_says_that_may_choose_nothing_else(name: str) -> None:
    """What it rents is dearer by 40 %: the sum over rows is what a scenario costs where nothing else is offered."""
    path, shared = str(ROOT / "scenarios" / f"{name}.yaml"), name == "one-machine"
    # whole nodes alone are rented out there
    settings = ["hardware.allow=a100-sxm-80gb", "hardware.providers=[coreweave, lambda]"] if shared else []
    held = api.session(with_settings(api.load_scenario(path), ["hardware.owned=[]", *settings]))
    chosen = {row["offer"] for one in held.solve().document["workloads"] for row in one["allocations"]}
    candidates, solution = held.answer()
    shares = [candidates.shared.is_share(k) for k, units in enumerate(solution.units) if units and candidates.shared]
    assert any(shares) == shared
    dearer = held.catalog
    for offer in sorted(chosen):
        dearer = with_device_price(dearer, f"{offer}=+40%")
    only = replace(dearer, offers=tuple(offer for offer in dearer.offers if offer.id in chosen))
    there = api.solve(held.scenario, only).document["summary"]["cost_microusd"]
    assert held.cost_at(dearer) == there
    best = api.solve(held.scenario, dearer).document["summary"]["cost_microusd"]
    assert best is not None
    assert there is not None
    assert best < there, "another offer wins: standing still is regretted"


def test_what_is_gone_is_told() -> None:
    held = api.session(LLAMA)
    chosen = {row["offer"] for one in held.solve().document["workloads"] for row in one["allocations"]}
    less = replace(held.catalog, offers=tuple(offer for offer in held.catalog.offers if offer.id not in chosen))
    with pytest.raises(InputError) as told:
        held.cost_at(less)
    assert told.value.problems[0].reference == "not-offered"


def test_what_the_scenario_owns_is_never_gone() -> None:
    held = api.session(GPT2)
    cost = held.solve().document["summary"]["cost_microusd"]
    assert held.cost_at(replace(held.catalog, offers=held.catalog.offers[:1])) == cost


def test_ways_that_depend_on_prices_are_refused() -> None:
    scenario = with_settings(api.load_scenario(GPT2), ["training.gpt2-xl.mix_within_job=true"])
    with pytest.raises(UsageError) as told:
        api.session(scenario).cost_at(api.catalog_of(scenario))
    assert told.value.problems[0].reference == "not-together"


def test_another_day_held_has_another_key() -> None:
    held = api.session(GPT2)
    asked = [Question(until=day) for day in ("2026-08-01", "2026-09-01", "2026-11-01")]
    answer = Answering.of(held, asked, plans=False)
    last = asked[-1]
    days = [("", "2026-08-01"), ("", "2026-09-01")]
    assert len({answer.key(replace(last, held=held)) for held in (None, *days)}) == 3
    assert "held" not in last.told(), "keys of journals that are there stay what they were"


def test_a_column_of_the_table_and_the_same_bytes_from_processes_and_the_journal(tmp_path: Path) -> None:
    grid = planner.grid("prices=2026-08..2026-10")
    serial = planner.sweep(GPT2, grid, journal=tmp_path / "a.jsonl")
    assert planner.sweep(GPT2, grid, workers=2).to_json() == serial.to_json()
    again = planner.sweep(GPT2, grid, journal=tmp_path / "a.jsonl")
    assert (again.to_json(), again.asked, serial.asked) == (serial.to_json(), 0, 5)
    follow_schema(json.loads(serial.to_json()), "sweep")
    rows = list(csv.DictReader(io.StringIO(render_sweep(serial.document, "csv"))))
    assert [float(one["regret_usd"]) for one in rows] == [
        round(float(one["standing_usd"]) - float(one["cost_usd"]), 6) for one in rows
    ]
    text = render_sweep(serial.document, "table")
    assert "Regret" in text
    assert "the plan of 2026-08-01 costs" in text
    plain = planner.sweep(GPT2, planner.grid("seed=0,1"))
    assert "Regret" not in render_sweep(plain.document, "table")
    assert "standing" not in plain.points[0]


def test_catalogs_of_two_days_are_a_backtest(tmp_path: Path) -> None:
    """The device of spring costs $9 an hour in autumn, whoever rents it out: another one is cheaper by then."""
    rented = with_settings(api.load_scenario(GPT2), ["hardware.owned=[]", "hardware.pricing=[on_demand]"])
    ((chosen,),) = [one["allocations"] for one in planner.solve(rented).document["workloads"]]
    dearer = f"{{device: {chosen['device']}, price_model: on_demand, price_per_device: $9/h, source: a letter}}"
    for name, day, changes in (("autumn", "2026-11-20", dearer), ("spring", "2026-04-01", "")):
        (tmp_path / name).mkdir()
        text = f"schema: catalog/v1\nextends: default\nas_of: {day}\noffers: [{changes}]\n"
        (tmp_path / name / "catalog.yaml").write_text(text, encoding="utf-8")
    folders = [str(tmp_path / name) for name in ("autumn", "spring")]
    autumn, spring = planner.sweep(rented, planner.grid(f"catalog={','.join(folders)}")).points
    held, itself = autumn["standing"], spring["standing"]
    assert held is not None
    assert itself is not None
    assert (held["since"], itself["since"], itself["regret_usd"]) == (folders[1], folders[1], 0.0)
    rise = 9e6 * chosen["devices_per_shape"] / chosen["price_microusd_per_hour"]
    assert held["cost_usd"] == pytest.approx(rise * chosen["cost_usd"])
    assert autumn["decision"] != spring["decision"]
    assert held["regret_microusd"] == held["cost_microusd"] - autumn["cost_microusd"] > 0  # type: ignore[operator]
