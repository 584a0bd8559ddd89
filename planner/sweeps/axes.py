"""What is varied: `KEY=a,b,c`, `KEY=low..high`, `price:h100-*=-30%..+30%`, and the grid of questions they span."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import Any

from planner.carriers import dataclass
from planner.errors import UsageError
from planner.sweeps.question import Question
from planner.units.currency import KNOWN

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
