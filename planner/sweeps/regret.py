"""Backtests: what standing still would have cost, where days of prices, or catalogs of different days, are an axis.

The plan of the earliest day is held on each later one at the prices of that day, and set against the best plan there.
What it costs is a question of its own, so that it is worked out wherever the others are and kept in the same journal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from typing_extensions import TypedDict

from planner.sweeps.axes import CATALOG, DATES, Grid
from planner.sweeps.borders import is_answer
from planner.sweeps.question import Question, Row, Told


class Standing(TypedDict):
    """The plan of the earliest day at the prices of a later one."""

    since: str
    "the day, or the catalog of that day, as it is written on its axis"
    cost_microusd: int | None
    cost_usd: float | None
    regret_microusd: int | None
    "above the best plan of the day; below 0 only by what a plainer plan costs more"
    regret_usd: float | None
    problem: Told | None


def standing_of(
    grid: Grid, rows: Sequence[Row], ask: Callable[[Sequence[Question]], list[Row]], dates: Mapping[str, str]
) -> list[Standing | None] | None:
    """What standing still costs at each question of a grid; None where no days are varied.

    Parameters
    ----------
    rows
        Of the grid's questions, in their order: the best of each.
    ask
        Answers further questions.
    dates
        ISO dates of catalogs, by name.
    """
    place = _axis_of_days(grid, dates)
    if place is None:
        return None
    axis = grid.axes[place]
    since = min(axis.texts) if axis.name == DATES else min(axis.texts, key=dates.__getitem__)
    first = {point: row for point, row in zip(grid.points, rows) if point[place] == since}
    asked: dict[int, Question] = {}
    found: list[Standing | None] = [None] * len(rows)
    for number, (point, row) in enumerate(zip(grid.points, rows)):
        before = (*point[:place], since, *point[place + 1 :])
        if first[before]["status"] != "optimal" or not is_answer(row):
            continue
        if point == before:
            found[number] = _told(since, row, row)  # it stands as it is
        else:
            there = grid.at(before)
            asked[number] = replace(grid.questions[number], held=(there.catalog, there.until))
    for number, held in zip(asked, ask(list(asked.values()))):
        found[number] = _told(since, held, rows[number])
    return found


def _axis_of_days(grid: Grid, dates: Mapping[str, str]) -> int | None:
    """Along which axis time passes: days of prices, else catalogs no two of which are of one day."""
    for name in (DATES, CATALOG):
        for place, axis in enumerate(grid.axes):
            if axis.name != name or len(axis.texts) < 2:
                continue
            if name == DATES or len({dates[text] for text in axis.texts}) == len(axis.texts):
                return place
    return None


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
