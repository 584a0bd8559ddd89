"""Jobs of a plan that is as cheap as any, where no time was left to settle more: none waits for nothing."""

from __future__ import annotations

import numpy as np

from planner.candidates.program import Program, Task
from planner.optimize.lexicographic import sooner
from tests.optimize.instances import ints, program, row
from tests.tiers import cases

PERIODS, JOBS = 5, 3


def calendar(seed: int) -> tuple[Program, list[int]]:
    """Jobs of one or two periods on devices of one offer, at most some of them in every period; the second job after
    the first; and a plan of it in which jobs start late."""
    rng = np.random.default_rng(seed)
    spans, devices = rng.integers(1, 3, JOBS), rng.integers(1, 4, JOBS)
    starts = [(job, start) for job in range(JOBS) for start in range(PERIODS - int(spans[job]) + 1)]
    tasks = []
    for job in range(JOBS):
        mine = [number for number, (one, _) in enumerate(starts) if one == job]
        tasks.append(Task(name=f"j{job}", kind="training", first=mine[0], stop=mine[-1] + 1))

    def runs(job: int, start: int, period: int) -> bool:
        return start <= period < start + int(spans[job])

    limits = [
        row(f"limit@{period}", int(rng.integers(3, 7)), [int(devices[job]) * runs(job, s, period) for job, s in starts])
        for period in range(PERIODS)
    ]
    order = [
        row(f"after@{p}", 1, [(job == 0 and s + spans[0] > p) or (job == 1 and s <= p) for job, s in starts])
        for p in range(PERIODS)
    ]
    cost = [10 * int(devices[job]) + (start == 1) * int(rng.integers(0, 2)) for job, start in starts]
    question = program(
        tasks, cost=cost, rows=(*limits, *order), nodes=[int(devices[job]) for job, _ in starts],
        offer=[0] * len(starts), finish=[float(start + spans[job]) for job, start in starts],
    )  # fmt: skip
    last = [task.stop - 1 for task in tasks]
    last[0] = tasks[0].first
    return question, last


def meets(question: Program, units: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    return all(one.coefficients @ units[one.columns] <= one.bound for one in question.rows)


def test_no_job_starts_later_than_it_could() -> None:
    moved = 0
    for seed in range(cases(200, 2000)):
        question, plan = calendar(seed)
        units = ints(np.isin(np.arange(question.column_count), plan))
        if not meets(question, units):
            continue
        found = sooner(question, units)
        assert meets(question, found)
        assert question.cost_microusd @ found == question.cost_microusd @ units
        assert units.sum() == found.sum() == JOBS
        for task in question.tasks:
            (now,) = (np.flatnonzero(found[task.first : task.stop]) + task.first).tolist()
            (before,) = (np.flatnonzero(units[task.first : task.stop]) + task.first).tolist()
            assert question.finish_s[now] <= question.finish_s[before]
            moved += now != before
            for other in range(task.first, now):  # none by itself could be earlier, at the same cost
                swapped = found.copy()
                swapped[now], swapped[other] = 0, 1
                assert question.cost_microusd[other] != question.cost_microusd[now] or not meets(question, swapped)
    assert moved > cases(200, 2000) / 4
