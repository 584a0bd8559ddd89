"""Frontiers of whole scenarios: each point is the plan that a solve under its limit finds, and nothing lies between."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.answers import Frontier
from planner.catalog.model import Catalog
from planner.errors import UsageError
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario
from tests.frontier.random_worlds import calendar_world, random_world
from tests.optimize.brute import first_of, value
from tests.tiers import cases, sampled


def deadlines(scenario: Scenario, seconds: float) -> Scenario:
    return with_settings(scenario, [f"training[{n}].deadline={seconds:.0f} s" for n in range(len(scenario.training))])


def solved(scenario: Scenario, catalog: Catalog, *settings: str) -> dict[str, Any]:
    return dict(api.solve(with_settings(scenario, settings), catalog).document["summary"])


@pytest.mark.parametrize("apart", [False, True])
def test_points_over_deadlines_are_what_solving_finds(apart: bool) -> None:
    """Also where a later deadline makes two jobs run at the same time, so that they share limits."""
    several = 0
    for seed in range(7, 7 + cases(2, 5)):
        scenario, catalog = random_world(seed, fleets=seed % 2 == 0, apart=apart)
        found = api.frontier(scenario, catalog, over="deadline", low="1000 s", high="9000 s")
        assert found.status in ("optimal", "infeasible")
        cheapest = math.inf
        for point in found.points:
            tightest = math.ceil(round(point["from"] * 3600, 6))
            there = api.solve(deadlines(scenario, tightest), catalog).document["summary"]
            assert there["cost_microusd"] == point["cost_microusd"], (seed, tightest)
            if tightest > 1001:
                before = api.solve(deadlines(scenario, tightest - 1), catalog).document["summary"]["cost_microusd"]
                assert before is None or before >= cheapest > point["cost_microusd"], (seed, tightest)
                assert (before is None) == (cheapest == math.inf), (seed, tightest)
            cheapest = point["cost_microusd"]
        several += len(found.points) > 2
    assert several >= cases(1, 3)


@pytest.mark.parametrize("over", ["budget", "carbon"])
def test_points_over_budgets_and_carbon_are_what_solving_finds(over: str) -> None:
    several = 0
    for seed in range(21, 21 + cases(2, 5)):
        scenario, catalog = random_world(seed)
        found = api.frontier(scenario, catalog, over=over)
        assert found.status in ("optimal", "infeasible")
        objective = "objective=[time, cost]" if over == "budget" else "objective=[cost, carbon]"
        better = math.inf
        for point in found.points:
            exact = point["cost_microusd"] / 1e6 if over == "budget" else point["carbon_kg"] * 1000
            limits = [f"limits.budget=${exact:.6f}", f"limits.budget=${exact - 1e-6:.6f}"]
            if over == "carbon":
                limits = [f"limits.carbon={exact:.3f} g", f"limits.carbon={exact - 1e-3:.3f} g"]
            here = api.solve(with_settings(scenario, [objective, limits[0]]), catalog).document
            assert worth(here, over) == pytest.approx(point["against"], rel=1e-12), seed
            tighter = api.solve(with_settings(scenario, [objective, limits[1]]), catalog).document
            assert (tighter["status"] == "infeasible") == (better == math.inf), seed
            if better < math.inf:
                assert worth(tighter, over) == pytest.approx(better, rel=1e-12), seed
            better = point["against"]
        several += len(found.points) > 2
    assert several >= cases(1, 3)


def worth(document: dict[str, Any], over: str) -> float:
    """The objective that is made least: the last finish, or the cost."""
    if over == "carbon":
        return float(document["summary"]["cost_usd"])
    return max(row["hours"] for workload in document["workloads"] for row in workload["allocations"])


OBJECTIVES = [("time", "cost"), ("time",), ("carbon", "cost"), ("cost", "carbon"), ("carbon", "time"), ("cost", "time")]


@pytest.mark.parametrize("objective", sampled(map(pytest.param, OBJECTIVES), 2), ids=", ".join)
def test_objectives_end_to_end_against_all_plans(objective: tuple[str, ...]) -> None:
    """From the scenario to the document: the best plan by the whole list, under a budget that binds or excludes."""
    infeasible = changed = 0
    for seed in range(40, 40 + cases(2, 7)):
        scenario, catalog = random_world(seed, objective=list(objective), prefer="cheapest")
        whole = api.enumerate_candidates(scenario, catalog).whole
        plans = all_plans(whole)
        costs = sorted({value(whole, plan, "cost") for plan in plans})
        if not costs:
            continue
        for budget in (costs[0] - 1, costs[len(costs) // 3], costs[-1]):
            asked = with_settings(scenario, [f"limits.budget=${budget / 1e6:.6f}"])
            plan = api.solve(asked, catalog)
            kept = [units for units in plans if value(whole, units, "cost") <= budget]
            if not kept:
                assert plan.status == "infeasible", seed
                infeasible += 1
                continue
            best = first_of(whole, kept)
            summary, cells = plan.document["summary"], rows_of(plan.document)
            assert plan.status == "optimal", seed
            assert summary["cost_microusd"] == value(whole, best, "cost"), seed
            assert max(row["hours"] for row in cells) * 3600 == pytest.approx(value(whole, best, "time"), rel=1e-12)
            assert sum(row["devices"] for row in cells) == value(whole, best, "devices"), seed
            changed += value(whole, best, "cost") != costs[0]
    assert infeasible >= cases(1, 3)
    assert changed >= (3 if objective[0] != "cost" else 0)


def rows_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for workload in document["workloads"] for row in workload["allocations"]]


def all_plans(whole: Any) -> list[list[int]]:
    """One column for each job, within every joint limit."""
    found = []
    for columns in itertools.product(*(range(task.first, task.stop) for task in whole.tasks)):
        units = [0] * whole.column_count
        for column in columns:
            units[column] = 1
        if all(sum(int(a) * units[k] for k, a in zip(r.columns, r.coefficients)) <= r.bound for r in whole.rows):
            found.append(units)
    return found


def test_one_jobs_deadline() -> None:
    """The other job keeps its own deadline, also where ways that miss it were listed."""
    for seed in range(60, 66):
        scenario, catalog = random_world(seed)
        if len(scenario.training) < 2:
            continue
        found = api.frontier(scenario, catalog, over="deadline", low="1500 s", high="9000 s", workload="two")
        for point in found.points:
            tightest = math.ceil(round(point["from"] * 3600, 6))
            there = solved(scenario, catalog, f"training.two.deadline={tightest} s")
            assert there["cost_microusd"] == point["cost_microusd"], seed
            one, two = point["workloads"]
            assert one["finish_hours"] * 3600 <= 6000
            assert two["finish_hours"] * 3600 <= tightest


@pytest.mark.parametrize("workload", [None, "two"])
def test_a_calendar_is_swept_by_when_jobs_end(workload: str | None) -> None:
    """Starts are columns too: a deadline leaves out those that end too late."""
    scenario, catalog = calendar_world()
    found = api.frontier(scenario, catalog, over="deadline", low="2 h", high="9 h", workload=workload)
    assert found.status == "optimal"
    assert len(found.points) >= (2 if workload else 4)
    names = [workload] if workload else ["one", "two", "three"]
    for before, point in itertools.pairwise(found.points[: cases(3, 99)]):
        tightest = math.ceil(round(point["from"] * 3600, 6))
        costs = [
            solved(scenario, catalog, *(f"training.{name}.deadline={seconds} s" for name in names))["cost_microusd"]
            for seconds in (tightest - 1, tightest)
        ]
        assert costs == [before["cost_microusd"], point["cost_microusd"]]


def swept(journal: Path | None = None, **options: Any) -> Frontier:
    scenario, catalog = random_world(8)
    return api.frontier(scenario, catalog, over="deadline", low="1000 s", high="9000 s", journal=journal, **options)


def test_a_stopped_sweep_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After every number of points, torn in the middle of the next line: the same document, nothing solved twice."""
    from planner.analysis.frontier import points as frontier

    whole = tmp_path / "whole.jsonl"
    expected = swept(whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    assert len(lines) >= 4
    solves: list[int] = []
    kept_optimize = frontier.optimize

    def counted(*given: Any, **asked: Any) -> Any:
        solves.append(1)
        return kept_optimize(*given, **asked)

    monkeypatch.setattr(frontier, "optimize", counted)
    for count in range(len(lines) + 1):
        torn = lines[count][: len(lines[count]) // 2] if count < len(lines) else b""
        path = tmp_path / f"{count}.jsonl"
        path.write_bytes(b"".join(lines[:count]) + torn)
        solves.clear()
        assert swept(path).to_json() == expected.to_json()
        assert len(solves) == sum(json.loads(line)["solves"] for line in lines[count:])
        assert path.read_bytes() == whole.read_bytes()


def test_a_sweep_that_is_broken_off_gives_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.analysis.frontier import points as frontier

    expected, kept_optimize, solves = swept(), frontier.optimize, []

    def interrupted(*given: Any, **asked: Any) -> Any:
        solves.append(1)
        answer = kept_optimize(*given, **asked)
        return replace(answer, stopped_by="interrupt") if len(solves) == after else answer

    monkeypatch.setattr(frontier, "optimize", interrupted)
    path = tmp_path / "a.jsonl"
    after = 3
    part = swept(path)
    assert (part.status, part.exit_code) == ("feasible", 5)
    assert [point["over"] for point in part.points] == [point["over"] for point in expected.points[-2:]]
    assert frontier.BROKEN_OFF in part.document["messages"]
    after = 0
    assert swept(path).to_json() == expected.to_json()
    after, solves[:] = 1, []
    with pytest.raises(KeyboardInterrupt):
        swept()


def test_another_question_finds_nothing_in_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    scenario, catalog = random_world(2)
    api.frontier(scenario, catalog, over="budget", journal=path)
    before = len(path.read_text().splitlines())
    dearer = replace(
        catalog, offers=tuple(replace(o, price_microusd_per_hour=o.price_microusd_per_hour + 1) for o in catalog.offers)
    )
    found = api.frontier(scenario, dearer, over="budget", journal=path)
    assert len(path.read_text().splitlines()) == 2 * before
    assert found.document["points"] != []


def test_most_points_then_the_rest(tmp_path: Path) -> None:
    expected = swept()
    assert len(expected.points) > 2
    path = tmp_path / "a.jsonl"
    part = swept(path, most=2)
    assert (part.status, part.document["complete"], part.exit_code) == ("feasible", False, 5)
    assert part.points == [{**p, "saved": None} if n == 0 else p for n, p in enumerate(expected.points[-2:])]
    assert swept(path).document == expected.document


def test_what_the_library_gives() -> None:
    found = swept()
    frame = found.to_frame()
    assert len(frame) == len(found.points)
    assert frame["cost_usd"].tolist() == [point["cost_usd"] for point in found.points]
    figure = found.plot()
    (chart,) = figure.charts
    drawn = [dot for series in chart.panels[0].series for dot in series.dots]
    assert len(drawn) == len(found.points)
    assert found.document["schema"] == "plan/frontier/v1"
    assert json.loads(found.to_json()) == found.document


@pytest.mark.parametrize(
    ("asked", "reference"),
    [
        ({"over": "speed"}, "unknown-limit"),
        ({"over": "deadline", "low": "1 h"}, "missing-range"),
        ({"over": "deadline", "low": "2 h", "high": "1 h"}, "out-of-range"),
        ({"over": "deadline", "low": "1 h", "high": "2 kg"}, "wrong-dimension"),
        ({"over": "budget", "against": "cost"}, "nothing-to-trade"),
        ({"over": "budget", "workload": "one"}, "unknown-workload"),
        ({"over": "deadline", "low": "1 h", "high": "2 h", "workload": "none"}, "unknown-workload"),
    ],
)
def test_questions_that_are_none(asked: dict[str, str], reference: str) -> None:
    scenario, catalog = random_world(1)
    with pytest.raises(UsageError) as refused:
        api.frontier(scenario, catalog, **asked)  # type: ignore[arg-type]
    assert refused.value.problems[0].reference == reference
    assert refused.value.problems[0].hint


def test_the_tightest_deadline_that_a_frontier_finds_is_one_that_a_plan_meets() -> None:
    """Nothing in eight times the machines that the rule of thumb asks for is on time: more than that were never tried,
    and nothing met the deadline, "proven"."""
    job = {
        "name": "tight",
        "model": "qwen3-30b-a3b",
        "tokens": "40B",
        "sequence_length": 4096,
        "global_batch": "1M tokens",
        "deadline": "20 days",
    }
    asked = {"schema": "plan/v1", "name": "tight", "horizon": "1 month", "training": [job],
             "hardware": {"allow": "h100-*", "kinds": ["hyperscaler", "cloud"]}}  # fmt: skip
    (first, *_) = api.frontier(asked, low="6 h", high="12 h").document["points"]
    assert first["from"] > 6.0  # it is not the lower end of the sweep
    deadline = f"{3600 * first['from'] + 1:.3f} s"
    plan = api.solve({**asked, "training": [{**job, "deadline": deadline}]})
    assert plan.status == "optimal"
    assert plan.document["summary"]["devices"] == first["devices"]
