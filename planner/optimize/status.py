"""How a solve ended, in our own words; a solver's words are never passed on unread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from planner.brief import brief
from planner.carriers import dataclass
from planner.deadline import MORE_TIME
from planner.units import format_money

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class Status(StrEnum):
    """What is known about the answer.

    ``optimal``: nothing better exists, proven. ``feasible``: a checked plan, not proven best.
    ``infeasible``: proven that no plan exists. ``stopped``: a limit was hit before any plan.
    ``failed``: no solver gave an answer that stands up to the exact check.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    STOPPED = "stopped"
    FAILED = "failed"


class Ending(StrEnum):
    """What a solver claims about one run; claims are checked before they become a `Status`."""

    OPTIMAL = "optimal"
    GAP = "gap"  # stopped because the gap asked for was reached
    LIMIT = "limit"  # stopped by a limit, with or without a point
    WORK = "work"  # stopped after a count of work, which is the same on every machine
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    HANG = "hang"  # did not come back in time
    INTERRUPT = "interrupt"  # the user did not want to wait any longer
    ERROR = "error"  # crashed, or said nothing intelligible


STOPS = {  # what a user is told of `Solution.stopped_by`
    "time-limit": "the time limit ended the search",
    "work-limit": "the search ended after the work that a program of this size is given",
    "interrupt": "interrupted: what is not proven by now stays so",
    "hang": "the solver did not come back in time and was ended",
    "solver-failure": "solvers failed before anything was proven",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run of one solver as reported, unchecked. `values` is None when there is no point.

    A run that hung, crashed or was interrupted may still have a point: the last one it had told of.
    """

    ending: Ending
    values: FloatArray | None = None  # of every variable of the model, in its order
    objective: float | None = None
    bound: float | None = None
    detail: str = ""
    work: int = 0  # iterations of the simplex method, where they are counted


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Solution:
    """The answer to a `Program`. Costs are exact integers of the rounded units."""

    status: Status
    units: IntArray  # (n,) whole units of each column; all 0 without a plan
    flows: FloatArray  # (n, buckets) requests/s in micro-units routed to each column at the peak
    level_flows: tuple[FloatArray, ...] = ()  # the same at every level of load, least first
    cost_microusd: int = 0
    bound_microusd: int | None = None  # no plan costs less, earlier criteria held; None = unknown
    gap: float | None = None  # (cost - bound) / cost
    stopped_by: str = ""  # time-limit | work-limit | interrupt | gap | hang | solver-failure; empty: ran to its end
    solver: str = ""  # name and version, e.g. "HiGHS 1.15.1"
    modelling: str = ""  # modelling layer and version, e.g. "PuLP 4.2.0"
    stages: tuple[tuple[str, int | float], ...] = ()  # (criterion, value) in the order of importance
    messages: tuple[str, ...] = ()
    untold: str = ""  # the first criterion by which plans of equal cost were not told apart, for lack of time

    def __repr__(self) -> str:
        cost = format_money(self.cost_microusd) if self.has_plan else ""
        return brief("Solution", str(self.status), cost, self.solver, self.stopped_by)

    @property
    def has_plan(self) -> bool:
        """Whether `units` is a plan."""
        return self.status in (Status.OPTIMAL, Status.FEASIBLE)


LISTING_ENDED = "the time limit ended the listing of ways to run"
RATES_ENDED = "the time limit ended the search for rates of mixes of requests"


def as_far_as_listed(solution: Solution, cut: Sequence[str]) -> Solution:
    """The solution of a program that lacks ways to run some workloads, for lack of time: it proves nothing."""
    if not cut or solution.status is Status.FAILED:
        return solution
    known = replace(solution, bound_microusd=None, gap=None, stopped_by=solution.stopped_by or "time-limit")
    ended = f"{LISTING_ENDED} {', '.join(cut)}:"
    if solution.has_plan:
        message = f"{ended} what was not listed may cost less"
        return replace(known, status=Status.FEASIBLE, messages=(*solution.messages, message))
    # what is missing in a program without all ways says nothing of the question
    messages = () if solution.status is Status.INFEASIBLE else solution.messages
    return replace(known, status=Status.STOPPED, messages=(*messages, f"{ended} {MORE_TIME}"))


def uninterrupted(solution: Solution) -> Solution:
    """The solution; raises `KeyboardInterrupt` when the user broke it off, for callers that would solve on."""
    if solution.stopped_by == "interrupt":
        raise KeyboardInterrupt
    return solution


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a run is asked for."""

    gap: float = 0.0
    time_limit_s: float | None = None
    threads: int = 1
    seed: int = 0
