"""What the margins of a scenario cost: solved again without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.api.solving import Way, catalog_of, enumerate_candidates
from planner.catalog.model import Catalog
from planner.plan.tighten import solve_within_targets
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario

Document = dict[str, Any]


def margins(
    scenario: Scenario,
    catalog: Catalog | None = None,
    *,
    plan: Mapping[str, Any],
    each: bool = False,
    solver: str = "highs",
    gap: float = 0.0,
    time_limit_s: float | None = None,
    threads: int = 1,
    seed: int = 0,
    allow_suspect: bool = False,
) -> Document:
    """What confidence, peak factor, target load and spares cost together, over a plan that takes none of them.

    Parameters
    ----------
    scenario
        The question, with its margins.
    plan
        The plan document that answers it.
    each
        Also solve without each margin alone.
    solver, gap, time_limit_s, threads, seed, allow_suspect
        As for `solve`; the time limit is that of each program.

    Raises
    ------
    InputError, StoppedError
        As `solve`.
    """
    from planner.plan.budget.margins import margins_document, margins_taken, why_not_solved

    taken, why_not = margins_taken(scenario), why_not_solved(scenario)
    cost = plan["summary"]["cost_microusd"]
    if why_not or cost is None or not taken:
        return margins_document(taken, cost, None if taken else cost, None, why_not)
    options = {"solver": solver, "gap": gap, "time_limit_s": time_limit_s, "threads": threads, "seed": seed}
    way = Way(catalog=catalog or catalog_of(scenario), options=options, allow_suspect=allow_suspect)
    together = _least_microusd(with_settings(scenario, [text for one in taken for text in one.settings]), way)
    alone = {one.name: _least_microusd(with_settings(scenario, one.settings), way) for one in taken} if each else None
    return margins_document(taken, cost, together, alone)


def _least_microusd(scenario: Scenario, way: Way) -> int | None:
    """The least cost of a scenario; None when the solver found no plan.  [micro-USD]"""
    listed = way.mixed(enumerate_candidates(scenario, way.catalog, allow_suspect=way.allow_suspect))
    _, solution = solve_within_targets(listed, way.solved, prepare=way.mixed)
    return solution.cost_microusd if solution.has_plan else None
