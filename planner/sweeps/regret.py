"""Backtests: what standing still would have cost, where days of prices are an axis.

The plan of the earliest day is held on each later one at the prices of that day, and set against the best plan there.
What it costs is a question of its own, so that it is worked out wherever the others are and kept in the same journal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from typing_extensions import TypedDict

from planner.sweeps.axes import DATES, Grid
from planner.sweeps.borders import is_answer
from planner.sweeps.question import Question, Row, Told


class Standing(TypedDict):
    """The plan of the earliest day at the prices of a later one."""

    since: str
    cost_microusd: int | None
    cost_usd: float | None
    regret_microusd: int | None
    "above the best plan of the day; below 0 only by what a plainer plan costs more"
    regret_usd: float | None
    problem: Told | None


def standing_of(
    grid: Grid, rows: Sequence[Row], ask: Callable[[Sequence[Question]], list[Row]]
) -> list[Standing | None] | None:
    """What standing still costs at each question of a grid; None where days are no axis of it, or only one is.

    Parameters
    ----------
    rows
        Of the grid's questions, in their order: the best of each.
    ask
        Answers further questions.
    """
    place = next((number for number, axis in enumerate(grid.axes) if axis.name == DATES), None)
    if place is None or len(grid.axes[place].texts) < 2:
        return None
    since = min(grid.axes[place].texts)
    first = {point: row for point, row in zip(grid.points, rows) if point[place] == since}
    asked: list[int] = []
    for number, (point, row) in enumerate(zip(grid.points, rows)):
        before = first[*point[:place], since, *point[place + 1 :]]
        if before["status"] == "optimal" and is_answer(row) and point[place] != since:
            asked.append(number)  # the earliest day itself stands as it is
    answers = ask([replace(grid.questions[number], since=since) for number in asked])
    found: list[Standing | None] = [
        _told(since, row, row) if point[place] == since and row["status"] == "optimal" else None
        for point, row in zip(grid.points, rows)
    ]
    for number, held in zip(asked, answers):
        found[number] = _told(since, held, rows[number])
    return found


def _told(since: str, held: Row, best: Row) -> Standing:
    there, here = held["cost_microusd"], best["cost_microusd"]
    regret = None if there is None or here is None else there - here
    return Standing(
        since=since,
        cost_microusd=there,
        cost_usd=held["cost_usd"],
        regret_microusd=regret,
        regret_usd=None if regret is None else regret / 1e6,
        problem=held["problem"] if there is None else None,
    )
