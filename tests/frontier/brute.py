"""All plans of a small program by trying everything, and what sweeps and lists of decisions should find in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from planner.candidates.program import Program
from planner.candidates.prune import alone_units
from tests.optimize.brute import ways, within_limits
from tests.optimize.instances import ints

Plan = tuple[int, ...]  # units of every column


def all_plans(question: Program) -> Iterator[Plan]:
    """Every plan in which no column has more units than it would need alone, and none that serves nothing."""
    for task in question.tasks:
        part = slice(task.first, task.stop)
        most = np.minimum(question.max_units[part], alone_units(question, task))
        if task.kind == "serving" and not task.min_replicas:  # what can serve nothing is of no use
            able = question.capacity_micro_per_s[part, : len(task.demand_micro_per_s)].any(axis=1)
            most = np.where(able, most, 0)
        question.max_units[part] = most
    for combination in itertools.product(*(list(ways(question, task)) for task in question.tasks)):
        units = [0] * question.column_count
        for way in combination:
            for column, amount in way:
                units[column] = amount
        if within_limits(question, units):
            yield tuple(units)


def small(question: Program, most: int = 20_000) -> bool:
    """Whether trying everything stays quick."""
    count = 1
    for task in question.tasks:
        for column in range(task.first, task.stop):
            count *= int(question.max_units[column]) + 1
    return count <= most


def pareto(points: set[tuple[Any, Any]], low: Any, high: Any) -> list[tuple[Any, Any]]:
    """Points that no other is as good as, of those up to `high`; below `low` only the one nearest to it."""
    known = sorted(point for point in points if high is None or point[0] <= high)
    front = [
        p for p in known if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in known)
    ]  # fmt: skip
    below = [point for point in front if point[0] <= low]
    return [*below[-1:], *(point for point in front if point[0] > low)]


def with_times(question: Program, ends_s: Any) -> Program:
    return replace(question, finish_s=np.asarray(ends_s, dtype=np.float64))


__all__ = ["Plan", "all_plans", "ints", "pareto", "small", "with_times"]
