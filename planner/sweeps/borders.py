"""Where a decision turns, and what standing still would have cost.

It turns between two values of an axis that are next to each other, both of them solved. A border is claimed by two
plans, each the best of its own question: on the one side one decision, on the other another. Where there are values
between the two, the middle is solved, and of the two halves the one over which the decision turns is kept, as often as
asked for; a middle to which there is no answer ends that. What lies between is not told: there may be more turns in it.

Where days of prices, or catalogs of different days, are an axis, the plan of the earliest day is held on each later one
at the prices of that day, and set against the best plan there. What it costs is a question of its own, so that it is
worked out wherever the others are and kept in the same journal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from typing_extensions import TypedDict

from planner.carriers import dataclass
from planner.sweeps.axes import CATALOG, DATES, Axis, Grid
from planner.sweeps.question import Question, Row, Told

MOST_HALVINGS = 20


class Side(TypedDict):
    """One side of a border."""

    value: str
    decision: str
    status: str
    cost_usd: float | None
    plan_sha256: str | None


class Border(TypedDict):
    """Two neighbours that are decided otherwise."""

    axis: str
    fixed: dict[str, str]  # values on the other axes
    low: Side
    high: Side


@dataclass(slots=True, kw_only=True)
class _Open:
    """A border that is being narrowed."""

    axis: int
    point: tuple[str, ...]  # of its lower side
    low: tuple[str, Row]
    high: tuple[str, Row]
    ends: tuple[float, float] | None  # the two values as numbers, where there are others between them


def borders_of(
    grid: Grid, rows: Sequence[Row], ask: Callable[[Sequence[Question]], list[Row]], halvings: int = 0
) -> list[Border]:
    """Every border between neighbours of a grid, axis by axis, in the order of the grid.

    Parameters
    ----------
    rows
        Of the grid's questions, in their order.
    ask
        Answers further questions, in the middle between two values.
    halvings
        How often the interval of a border is halved, where its axis is one of numbers.
    """
    found = list(_neighbours(grid, rows))
    for _ in range(halvings):
        narrowing = [one for one in found if one.ends is not None]
        if not narrowing:
            break
        middles = [_middle(grid.axes[one.axis], one) for one in narrowing]
        points = [_put(one.point, one.axis, text) for one, (_, text) in zip(narrowing, middles)]
        for one, (number, text), row in zip(narrowing, middles, ask([grid.at(point) for point in points])):
            assert one.ends is not None
            if not is_answer(row):
                one.ends = None  # nothing is known of the middle: the two sides stay, which are
            elif decided(row) == decided(one.low[1]):
                one.low, one.ends = (text, row), (number, one.ends[1])
            else:
                one.high, one.ends = (text, row), (one.ends[0], number)
    return [_border_told(grid, one) for one in found]


def is_answer(row: Row) -> bool:
    """Whether a row says what is best: a proven plan, or the proof that there is none."""
    return row["status"] in ("optimal", "infeasible")


def decided(row: Row) -> str:
    """What a row decides: devices by workload, or that nothing can be done."""
    return row["decision"] or row["status"]


def turns(here: Row, there: Row) -> bool:
    """Whether the decision turns between two rows, both of which say what is best."""
    return is_answer(here) and is_answer(there) and decided(here) != decided(there)


def _neighbours(grid: Grid, rows: Sequence[Row]) -> list[_Open]:
    shape, found = grid.shape, []
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    for axis, (name, stride) in enumerate(zip(grid.axes, strides)):
        for place, point in enumerate(itertools.product(*(range(count) for count in shape))):
            if point[axis] + 1 == shape[axis]:
                continue
            here, there = rows[place], rows[place + stride]
            if not turns(here, there):
                continue
            low, high = point[axis], point[axis] + 1
            found.append(
                _Open(
                    axis=axis,
                    point=grid.points[place],
                    low=(name.texts[low], here),
                    high=(name.texts[high], there),
                    ends=(name.numbers[low], name.numbers[high]) if name.numbers else None,
                )
            )
    return found


def _middle(axis: Axis, one: _Open) -> tuple[float, str]:
    assert one.ends is not None
    number = float(f"{(one.ends[0] + one.ends[1]) / 2:.12g}")
    return number, axis.text_of(number)


def _put(point: tuple[str, ...], axis: int, text: str) -> tuple[str, ...]:
    return (*point[:axis], text, *point[axis + 1 :])


def _border_told(grid: Grid, one: _Open) -> Border:
    fixed = {axis.name: text for place, (axis, text) in enumerate(zip(grid.axes, one.point)) if place != one.axis}
    return Border(axis=grid.axes[one.axis].name, fixed=fixed, low=_side(*one.low), high=_side(*one.high))


def _side(value: str, row: Row) -> Side:
    return Side(
        value=value,
        decision=decided(row),
        status=row["status"],
        cost_usd=row["cost_usd"],
        plan_sha256=row["plan_sha256"],
    )


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
            found[number] = _regret_told(since, row, row)  # it stands as it is
        else:
            there = grid.at(before)
            asked[number] = replace(grid.questions[number], held=(there.catalog, there.until))
    for number, held in zip(asked, ask(list(asked.values()))):
        found[number] = _regret_told(since, held, rows[number])
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


def _regret_told(since: str, held: Row, best: Row) -> Standing:
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
