"""What is worked out beside a plan: comparisons, reasons and the certificate; the plan stands without them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from planner.candidates.search import Candidates
from planner.optimize.solve import Solution
from planner.optimize.status import uninterrupted
from planner.plan.certified import certificate_of
from planner.plan.why.alternatives import best_single_kind, median_cost
from planner.plan.why.infeasible import infeasibility
from planner.plan.why.relaxed import Search

Document = dict[str, Any]
Made = TypeVar("Made")
LATE = ("time-limit", "hang")
LEFT_OUT = "interrupted after the plan was found: what is compared with it and its certificate may be missing"


def beside_plan(
    listed: Candidates,
    candidates: Candidates,
    solution: Solution,
    *,
    search: Search,
    allow_suspect: bool,
    **options: Any,
) -> tuple[Document, Solution]:
    """Arguments of `build_document` beside the solution, and the solution with what to say of them.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C, when there is no plan. With one it only ends this work: the plan is worth more than all of it.
    """
    found: Document = {}
    if solution.has_plan and solution.stopped_by == "interrupt":
        return found, solution
    uninterrupted(solution)
    try:
        if solution.has_plan and solution.stopped_by not in LATE:  # no time is left for comparisons
            found["single_kind"] = best_single_kind(candidates, solution, **options)
            found["median_microusd"] = median_cost(candidates, solution, **options)
        elif solution.status == "infeasible":
            found["infeasible"] = infeasibility(candidates, search, **options)
        found["certificate"] = certificate_of(listed, solution, allow_suspect=allow_suspect)
    except KeyboardInterrupt:
        if not solution.has_plan:
            raise
        solution = replace(solution, messages=(*solution.messages, LEFT_OUT))
    return found, solution


def despite_ctrl_c(make: Callable[[], Made]) -> Made:
    """What is made, begun anew when Ctrl-C broke it off once: writing down and checking a plan takes moments.

    Raises
    ------
    KeyboardInterrupt
        The second Ctrl-C.
    """
    try:
        return make()
    except KeyboardInterrupt:
        return make()
