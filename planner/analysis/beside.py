"""What is worked out beside a plan: comparisons, reasons and the certificate; the plan stands without them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from planner.analysis.certified import certificate_of
from planner.analysis.why.alternatives import best_single_kind, median_cost
from planner.analysis.why.infeasible import infeasibility
from planner.analysis.why.relaxed import Search
from planner.candidates.search import Candidates
from planner.candidates.serving import ServingTable
from planner.deadline import Deadline, TimeIsUp, is_up, parting
from planner.optimize.solve import Solution
from planner.optimize.status import uninterrupted

if TYPE_CHECKING:
    from planner.plan.model.others import Certificate, Infeasible, SingleKind

Made = TypeVar("Made")
NO_TIME = "left out for lack of time"
PARTS = {
    "single_kind": "the best plan on one kind of device",
    "median_microusd": "the cost at the median of the errors",
    "certificate": "the certificate",
}
OTHERS = "ways on other devices whose rates are only bounded"
LATE = ("time-limit", "hang")
LEFT_OUT = "interrupted after the plan was found: what is compared with it and its certificate may be missing"


class Beside(TypedDict, total=False):
    """Arguments of `build_document` beside the solution."""

    single_kind: SingleKind | None
    infeasible: Infeasible | None
    median_microusd: int | None
    certificate: Certificate | None


def beside_plan(
    listed: Candidates,
    candidates: Candidates,
    solution: Solution,
    *,
    search: Search,
    allow_suspect: bool,
    ways_out: bool = True,
    compared: bool = True,
    **options: Any,
) -> tuple[Beside, Solution]:
    """Arguments of `build_document` beside the solution, and the solution with what to say of them.

    Parameters
    ----------
    listed
        Every way, with the rates that it was listed with: what the certificate is of.
    candidates
        The ways with the rates and spares that were planned with in the end.
    solution
        The best plan of these, or that there is none.
    search
        Enumerates a scenario with the same catalog: ``search(scenario, patience_s=None)``; for ways out.
    allow_suspect
        Offers whose price is flagged as wrong were listed too; the certificate says so.
    ways_out
        Whether to look for what would mend it where there is no plan.
    compared
        Whether it is compared with one kind of device and with the median of the errors: what may happen beside the
        scenario as written is not.
    **options
        Of `optimize`. Once a deadline in `time_limit_s` is over, comparisons are left out, and said to be.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C, when there is no plan. With one it only ends this work: the plan is worth more than all of it.
    """
    found: Beside = {}
    limit = options.get("time_limit_s")
    if solution.has_plan and solution.stopped_by == "interrupt":
        return found, solution
    uninterrupted(solution)
    try:
        if compared and solution.has_plan and solution.stopped_by not in LATE:  # no time is left for comparisons
            if not is_up(limit):
                found["single_kind"] = best_single_kind(candidates, solution, **options)
            if not is_up(limit):
                found["median_microusd"] = median_cost(candidates, solution, **options)
        elif solution.status == "infeasible":
            found["infeasible"] = infeasibility(candidates, search, ways_out=ways_out, **options)
        if not listed.cut:
            left = limit.left_s(limit.certifying_s) if isinstance(limit, Deadline) else None
            if left is None or left > 0:
                found["certificate"] = certificate_of(
                    listed, solution, allow_suspect=allow_suspect, time_limit_s=left, over=lambda: is_up(limit)
                )
    except TimeIsUp:
        if not solution.has_plan:
            raise
    except KeyboardInterrupt:
        if not solution.has_plan:
            raise
        return found, replace(solution, messages=(*solution.messages, LEFT_OUT))
    missing = [words for name, words in PARTS.items() if name not in found and (compared or name == "certificate")]
    if solution.has_plan and is_up(limit):
        missing += (
            [OTHERS] if any(one.blended for one in candidates.tables.values() if isinstance(one, ServingTable)) else []
        )
    if solution.has_plan and missing and is_up(limit):
        solution = replace(solution, messages=(*solution.messages, f"{NO_TIME}: {', '.join(missing)}"))
    return found, solution


def despite_ctrl_c(make: Callable[[], Made]) -> Made:
    """What is made, begun anew when Ctrl-C broke it off once: writing down and checking a plan takes moments.

    Raises
    ------
    KeyboardInterrupt
        The second Ctrl-C; or the time limit, which waits for what is made until it can wait no longer.
    """
    with parting():
        try:
            return make()
        except TimeIsUp:
            raise
        except KeyboardInterrupt:
            return make()
