"""What is varied: `KEY=a,b,c`, `KEY=low..high`, `price:h100-*=-30%..+30%`, and the grid of questions they span.

Where along an axis a decision turns, and what standing still would have cost. It turns between two values of an axis
that are next to each other, both of them solved. A border is claimed by two plans, each the best of its own question:
on the one side one decision, on the other another. Where there are values between the two, the middle is solved, and of
the two halves the one over which the decision turns is kept, as often as asked for; a middle to which there is no
answer ends that. What lies between is not told: there may be more turns in it.

Where days of prices, or catalogs of different days, are an axis, the plan of the earliest day is held on each later one
at the prices of that day, and set against the best plan there. What it costs is a question of its own, so that it is
worked out wherever the others are and kept in the same journal.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import Any

from typing_extensions import TypedDict

from planner.carriers import dataclass
from planner.errors import UsageError
from planner.sweeps.question import Question, Row, Told
from planner.units.parsing import KNOWN

PRICE = "price:"
# axes that are no key of a scenario, and what they are called in a question
WHOLE = {"scenario": "scenario", "case": "case", "catalog": "catalog", "prices": "until", "seed": "seed"}
DATES, CATALOG = "prices", "catalog"
_MONTH = re.compile(r"([12][0-9]{3})-(0[1-9]|1[0-2])")
STEPS = 7  # values of a range of which no number is given
_PLACES_OF_STEP = 3  # to which values between the ends of a range are rounded: 466.7 of 300..800/4
MOST_VALUES = 100_000  # of one axis
MOST_QUESTIONS = 1_000_000  # of one grid
MOST_AXES = 6
_MOST_DIGITS = 9  # of a number of values, which is too large with more
_EXAMPLE = (
    "--over serving.assistant.qpm=300,600, --over 'price:h100-*=-30%..+30%' or --over training.NAME.deadline=7d..60d/5"
)
_CODES = "|".join(("USD", *KNOWN))
_GROUPED_MONEY = re.compile(
    rf"[$€£]\s*[0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9])|(?<![0-9.])[0-9]{{1,3}}(?:,[0-9]{{3}})+(?=(?:\.[0-9]+)?\s*(?:{_CODES}))"
)
_END = re.compile(r"\s*([+-]?)\s*(\$?)\s*([0-9]+(?:\.[0-9]+)?)\s*([^\s0-9.,/][^/,]*)?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One thing that is varied and its values, in their order.

    Parameters
    ----------
    texts
        The values as they are written.
    numbers
        The same as numbers, where there are values between them; () where there are none.
    before, after
        What stands around a number: "$" and " days".
    """

    name: str
    texts: tuple[str, ...]
    numbers: tuple[float, ...] = ()
    before: str = ""
    after: str = ""

    def text_of(self, number: float) -> str:
        """A number of this axis as it is written."""
        sign = "+" if self.relative and number > 0 else ""
        return f"{sign}{'-' if number < 0 else ''}{self.before}{abs(number):.12g}{self.after}"

    @property
    def relative(self) -> bool:
        """Whether values are changes of a price by a share."""
        return self.name.startswith(PRICE) and self.after == "%"

    def put(self, question: Question, text: str) -> Question:
        """A question with a value of this axis in it.

        Raises
        ------
        UsageError
            The value is none of this axis.
        """
        if self.name.startswith(PRICE):
            if self.relative and float(text.rstrip("%")) == 0:
                return question
            if self.relative and text[:1].isdigit():
                text = f"+{text}"  # a change: as `plan solve --price` wants it written
            return replace(question, prices=(*question.prices, f"{self.name.removeprefix(PRICE)}={text}"))
        if self.name == "seed":
            if not text.isdecimal() or int(text) >= 2**31:
                raise UsageError.of("bad-value", f"'{text[:40]}' is no seed", hint="a whole number below 2147483648")
            return replace(question, seed=int(text))
        if self.name == DATES and not _is_date(text):
            hint = "write 2026-09-01, or months as 2026-01..2026-09"
            raise UsageError.of("bad-value", f"'{text[:40]}' is no day", hint=hint)
        if self.name in WHOLE:
            named: dict[str, Any] = {WHOLE[self.name]: text}
            return replace(question, **named)
        return replace(question, settings=(*question.settings, f"{self.name}={text}"))


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Every combination of the values of some axes; the last axis changes fastest."""

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis."""
        return tuple(len(axis.texts) for axis in self.axes)

    @cached_property
    def points(self) -> tuple[tuple[str, ...], ...]:
        """Values on the axes of every question."""
        return tuple(itertools.product(*(axis.texts for axis in self.axes)))

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """In the order of the points."""
        return tuple(map(self.at, self.points))

    def at(self, texts: Sequence[str]) -> Question:
        """The question at a value of each axis."""
        question = Question()
        for axis, text in zip(self.axes, texts):
            question = axis.put(question, text)
        return question


def grid_of(over: Sequence[str]) -> Grid:
    """The grid of some `--over` texts.

    Raises
    ------
    UsageError
        There is none, one cannot be read, two vary the same, or there are too many questions.
    """
    if not over:
        raise UsageError.of("missing-option", "what is varied?", hint=_EXAMPLE)
    if len(over) > MOST_AXES:
        raise UsageError.of("too-many", f"{len(over)} axes are more than {MOST_AXES}", hint="ask in several sweeps")
    axes = tuple(map(axis_of, over))
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise UsageError.of("given-twice", f"'{name[:60]}' is varied twice", hint="write one --over for it")
    grid = Grid(axes=axes)
    count = 1
    for values in grid.shape:
        count *= values
    if count > MOST_QUESTIONS:
        hint = f"at most {MOST_QUESTIONS:,}: take fewer values, /5 behind a range takes five"
        raise UsageError.of("too-many", f"that makes {count:,} questions", hint=hint)
    return grid


def axis_of(text: str) -> Axis:
    """One axis.

    Raises
    ------
    UsageError
        It cannot be read, or has a value twice.
    """
    name, equals, values = text.partition("=")
    name = name.strip()
    if not equals or not name or name == PRICE or not values.strip():
        raise UsageError.of("bad-axis", f"'{text[:80]}' varies nothing", hint=_EXAMPLE)
    values = _without_thousands(values)
    ends = values.split("..")
    axis = _months(ends) if len(ends) == 2 and name == DATES else None
    if len(ends) == 2 and name not in WHOLE:
        axis = _range(name, ends)
    if axis is None:
        texts = tuple(_split(values))
        axis = Axis(name=name, texts=texts, **_as_numbers(texts))
    if any(not one for one in axis.texts):
        raise UsageError.of("bad-axis", f"'{text[:80]}' has an empty value", hint=_EXAMPLE)
    if len(set(axis.texts)) < len(axis.texts):
        raise UsageError.of("given-twice", f"'{text[:80]}' has a value twice", hint="name each once")
    if len(axis.texts) > MOST_VALUES:
        raise UsageError.of(
            "too-many", f"'{name[:60]}' has {len(axis.texts):,} values", hint=f"at most {MOST_VALUES:,}"
        )
    if axis.numbers and list(axis.numbers) != sorted(axis.numbers):
        axis = replace(axis, numbers=())  # in an order of one's own: nothing lies between two of them
    for one in axis.texts:
        axis.put(Question(), one)
    return axis


def _range(name: str, ends: Sequence[str]) -> Axis:
    high, slash, steps = ends[1].partition("/")
    low_end, high_end = _END.fullmatch(ends[0]), _END.fullmatch(high)
    if low_end is None or high_end is None or (slash and not steps.strip().isdecimal()):
        raise UsageError.of("bad-range", f"'{'..'.join(ends)[:80]}' is no range", hint=_EXAMPLE)
    first, last = _number(low_end), _number(high_end)
    units = [(one[2], (one[4] or "").strip()) for one in (low_end, high_end)]
    if units[0] != units[1]:
        said = " and ".join(repr("".join(unit) or "no unit") for unit in units)
        raise UsageError.of("bad-range", f"the ends of '{name[:60]}' are in {said}", hint="write both in one unit")
    count = int(steps.strip()[:_MOST_DIGITS]) if slash else STEPS
    if not first < last or not 2 <= count <= MOST_VALUES:
        hint = f"from the smaller to the larger, /N behind it with N of 2 to {MOST_VALUES:,}"
        raise UsageError.of("bad-range", f"'{'..'.join(ends)[:80]}' holds no values", hint=hint)
    spaced = " " if ends[0].rstrip()[: -len(units[0][1]) or None].endswith(" ") else ""
    axis = Axis(name=name, texts=(), before=units[0][0], after=spaced + units[0][1] if units[0][1] else "")
    apart = (last - first) / (count - 1)
    places = _PLACES_OF_STEP - math.floor(math.log10(apart))
    inner = (_rounded(round(first + apart * step, places)) for step in range(1, count - 1))
    numbers = (_rounded(first), *inner, _rounded(last))
    return replace(axis, numbers=numbers, texts=tuple(map(axis.text_of, numbers)))


def _months(ends: Sequence[str]) -> Axis:
    """The first day of each month from the one to the other."""
    found = [_MONTH.fullmatch(end.strip()) for end in ends]
    if None in found:
        hint = "write prices=2026-01..2026-09, or days between commas"
        raise UsageError.of("bad-range", f"'{'..'.join(ends)[:80]}' are no months", hint=hint)
    first, last = (int(one[1]) * 12 + int(one[2]) - 1 for one in found if one)
    if last < first:
        hint = "from the earlier month to the later"
        raise UsageError.of("bad-range", f"'{'..'.join(ends)[:80]}' holds no month", hint=hint)
    return Axis(name=DATES, texts=tuple(f"{month // 12:04}-{month % 12 + 1:02}-01" for month in range(first, last + 1)))


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _as_numbers(texts: Sequence[str]) -> dict[str, Any]:
    """Numbers of values that were listed, where all are of one unit."""
    found = [_END.fullmatch(text) for text in texts]
    units = {(one[2], (one[4] or "")) for one in found if one}
    if len(texts) < 2 or None in found or len(units) != 1:
        return {}
    before, after = units.pop()
    spaced = " " if texts[0].rstrip()[: -len(after) or None].endswith(" ") else ""
    return {
        "numbers": tuple(_number(one) for one in found if one),
        "before": before,
        "after": spaced + after if after else "",
    }


def _number(match: re.Match[str]) -> float:
    return float(match[3]) * (-1 if match[1] == "-" else 1)


def _rounded(number: float) -> float:
    """To 12 digits, so that a value is what is written."""
    return float(f"{number:.12g}")


def _without_thousands(values: str) -> str:
    """Money without the commas between its thousands, which are none between values: $2,400,$5,500 are two."""
    if re.search(r"['\"\[{(]", values):
        return values
    return _GROUPED_MONEY.sub(lambda found: found[0].replace(",", ""), values)


def _split(values: str) -> list[str]:
    """Values between commas; those within brackets or quotes are left alone."""
    parts, depth, quote, begin = [], 0, "", 0
    for place, sign in enumerate(values):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "[{(":
            depth += 1
        elif sign in "]})":
            depth -= 1
        elif sign == "," and depth <= 0:
            parts.append(values[begin:place].strip())
            begin = place + 1
    return [*parts, values[begin:].strip()]


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
