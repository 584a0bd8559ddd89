"""The months of a budget: those of the calendar where the plan has a date, else 730 hours each from its begin."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction

from planner.carriers import dataclass
from planner.plan.model.plan import PlanDocument
from planner.plan.parts import workloads_asked
from planner.scenario.fields import parse_date

MONTH_HOURS = 730  # of a month that is not one of the calendar; the same in every quantity of a scenario
MOST_MONTHS = 1200  # a hundred years; what is later counts in the last one
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """One month of a budget, within the time that the plan spends money in."""

    label: str  # "2026-12", or "month 1"
    begin: Fraction  # [h] after the plan's begin
    end: Fraction  # [h]
    first: datetime | None  # the moment it begins, None where the plan has no date

    @property
    def last_day(self) -> str | None:
        """The day before which the month ends: the first of the next, or what the last one reaches into; or None.

        Examples
        --------
        >>> Month(label="2026-12", begin=Fraction(0), end=Fraction(25), first=datetime(2026, 12, 1)).last_day
        '2026-12-03'
        """
        if self.first is None:
            return None
        whole = self.first + timedelta(seconds=round(3600 * (self.end - self.begin)))
        reached = datetime(whole.year, whole.month, whole.day)
        return (reached + timedelta(days=reached < whole)).date().isoformat()

    def overlap(self, begin: Fraction, end: Fraction) -> Fraction:
        """Time of [begin, end) that lies in the month.  [h]"""
        return max(min(end, self.end) - max(begin, self.begin), Fraction(0))

    def fiscal_year(self, start: str) -> str | None:
        """The fiscal year that the month lies in, by the calendar year it ends in: "FY2027"; None without a date.

        Examples
        --------
        >>> Month(label="2026-12", begin=Fraction(0), end=Fraction(1), first=datetime(2026, 12, 1)).fiscal_year("april")
        'FY2027'
        """
        if self.first is None:
            return None
        number = MONTHS.index(start) + 1
        return f"FY{self.first.year + (number > 1 and self.first.month >= number)}"


def begin_of(document: PlanDocument) -> datetime | None:
    """The date that the hours of a plan count from; None when its scenario names none."""
    begin = document["scenario"].get("begin")
    named = [begin] if begin else [job.get("start") for job in workloads_asked(document, "training")]
    dates = [parse_date(str(text)) for text in named if text]
    return min((date for date in dates if date is not None), default=None)


def months_until(begin: datetime | None, end: Fraction) -> list[Month]:
    """Months from the plan's begin until the last hour that something is paid for.

    Parameters
    ----------
    begin
        The plan's date; None: months of 730 h.
    end
        [h] after the begin.
    """
    return list(_counted(end) if begin is None else _dated(begin, end))


def _counted(end: Fraction) -> list[Month]:
    edges = [Fraction(MONTH_HOURS * n) for n in range(MOST_MONTHS) if n == 0 or MONTH_HOURS * n < end]
    return [
        Month(label=f"month {number + 1}", begin=first, end=last, first=None)
        for number, (first, last) in enumerate(zip(edges, [*edges[1:], end]))
    ]


def _dated(begin: datetime, end: Fraction) -> list[Month]:
    moments = [begin]
    while len(moments) < MOST_MONTHS:
        following = _next_month(moments[-1])
        if following is None or _hours(following, begin) >= end:
            break
        moments.append(following)
    edges = [_hours(moment, begin) for moment in moments]
    return [
        Month(label=f"{moment.year:04}-{moment.month:02}", begin=first, end=last, first=moment)
        for moment, first, last in zip(moments, edges, [*edges[1:], end])
    ]


def _hours(moment: datetime, begin: datetime) -> Fraction:
    passed = moment - begin
    return Fraction(passed.days * 86_400_000_000 + passed.seconds * 1_000_000 + passed.microseconds, 3_600_000_000)


def _next_month(moment: datetime) -> datetime | None:
    """The first moment of the month after; None at the end of the calendar."""
    year, month = (moment.year + 1, 1) if moment.month == 12 else (moment.year, moment.month + 1)
    return None if year > 9999 else datetime(year, month, 1, tzinfo=moment.tzinfo)


def hours_by_month(months: Sequence[Month], spans: Sequence[tuple[Fraction, Fraction, int]]) -> list[Fraction]:
    """Time of some spans in each month, a span of several units counted as often.  [h]"""
    return [sum((m.overlap(a, b) * units for a, b, units in spans), start=Fraction(0)) for m in months]
