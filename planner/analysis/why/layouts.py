"""What another layout would cost: the cheapest plan with it, on the offers of the plan and anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from planner.analysis.tighten import solve_within_targets
from planner.candidates.program import restrict
from planner.candidates.prune import prune
from planner.candidates.search import Candidates, select
from planner.errors import InputError
from planner.optimize.solve import Solution
from planner.plan.rows.allocations import allocations_of
from planner.plan.rows.row_cells import usd
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario, ServingFleet, TrainingJob
from planner.yamlfile.writing import flow_text

if TYPE_CHECKING:
    from planner.analysis.why.model import LayoutPlan, LayoutPrice
    from planner.plan.model.plan import PlanDocument
    from planner.plan.model.rows import TrainingAllocation

Listed = Callable[[Scenario], Candidates]
Solve = Callable[[Candidates], Solution]


def layout_price(
    document: PlanDocument, scenario: Scenario, workload: str, layout: str, listed: Listed, solve: Solve
) -> LayoutPrice:
    """What a workload costs in a layout, on the offers that it is planned on and on any; or why it cannot be.

    Parameters
    ----------
    document
        The plan of the scenario.
    layout
        In words: "tp2 pp1 zero-3".
    listed
        The ways of a scenario; refuses layouts that cannot be.
    solve
        The best plan of some ways.

    Raises
    ------
    InputError
        The words are no layout.
    """
    asked = next(one for one in scenario.workloads if one.name == workload)
    kind = "training" if isinstance(asked, TrainingJob) else "serving"
    entry: LayoutPrice = {
        "workload": workload,
        "layout": layout,
        "refused": "",
        "hint": "",
        "aside": "",
        "here": None,
        "anywhere": None,
    }
    try:
        ways = listed(with_settings(scenario, [f"{kind}.{workload}.layout={flow_text(layout)}"]))
    except InputError as error:
        problem = error.problems[0]
        if problem.reference == "wrong-type":  # no layout of any workload: nothing was asked that has an answer
            raise
        return {**entry, "refused": problem.message, "hint": problem.hint}
    mine = next(one for one in document["workloads"] if one["name"] == workload)
    offers = {row["offer"] for row in mine["allocations"]}
    here = _plan(ways, document, workload, solve, lambda each: _on(each, workload, offers)) if offers else None
    anywhere = _plan(ways, document, workload, solve, lambda each: each)
    return {**entry, "here": here, "anywhere": anywhere, "aside": _aside(asked, [here, anywhere])}


def _aside(asked: TrainingJob | ServingFleet, found: Sequence[LayoutPlan | None]) -> str:
    """Why the plan did not weigh a layout that costs less: it is only tried where somebody asks for it."""
    cheaper = [plan for plan in found if plan and plan["dearer"] < 0]
    if not cheaper:
        return ""
    if isinstance(asked, TrainingJob) and asked.lora is None:
        layouts = [cast("TrainingAllocation", row)["layout"] for row in cheaper[0]["rows"]]
        stages = {one["sharding"] for one in layouts if one["pp"] > 1} & {"zero-2", "zero-3"}
        if stages:
            return f"{stages.pop()} under a pipeline, which few trainers allow: pin pp and sharding"
    return "layouts of this kind are tried only where layout names them"


def _on(candidates: Candidates, workload: str, offers: set[str]) -> Candidates:
    """With the columns of a workload on some offers, and those that are not dominated of all others."""
    whole, sites = candidates.whole, candidates.tables[workload].sites
    mask = np.ones(whole.column_count, dtype=bool)
    task = next(one for one in whole.tasks if one.name == workload)
    for column in range(task.first, task.stop):
        mask[column] = sites[int(candidates.whole_rows[column])].offer.id in offers
    small, kept = restrict(whole, mask)
    return select(candidates, kept[prune(small)])


def _plan(
    ways: Candidates, document: PlanDocument, workload: str, solve: Solve, prepare: Callable[[Candidates], Candidates]
) -> LayoutPlan | None:
    """The cheapest plan with the layout; None where there is none."""
    ready = prepare(ways)
    task = next(one for one in ready.program.tasks if one.name == workload)
    if task.first == task.stop:
        return None
    found, solution = solve_within_targets(ready, solve, prepare=prepare)
    if not solution.has_plan:
        return None
    task = next(one for one in found.program.tasks if one.name == workload)
    rows = allocations_of(found, solution, task)
    cost = sum(row["cost_microusd"] for row in rows)
    chosen = next(one["cost_microusd"] for one in document["workloads"] if one["name"] == workload)
    return {
        "rows": rows,
        "cost_microusd": cost,
        "plan_microusd": solution.cost_microusd,
        "plan_usd": usd(solution.cost_microusd),
        "dearer": cost / chosen - 1.0 if chosen else 0.0,
        "proven": solution.status == "optimal",
    }
