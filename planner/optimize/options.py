"""Options of the solver, as one mapping."""

from __future__ import annotations

from typing import TypedDict

from planner.deadline import Deadline


class SolverOptions(TypedDict):
    """What `optimize` takes beside its program; the time limit is that of each program."""

    solver: str
    gap: float
    time_limit_s: float | Deadline | None
    threads: int
    seed: int
