"""Lines of a budget: a charge, the workload that bears it, and what of it falls into each month.

Months are those of the calendar where the plan has a date, else 730 hours each from its begin. Money is shared out in
whole micro-dollars, nothing lost and nothing made: a running total is rounded down at each step, so that parts add up
to the whole exactly, and the micro-dollar that a fraction leaves is placed in the last part that has a share of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Final

from planner.budget.charges import Charge
from planner.budget.model import WorkloadKind
from planner.carriers import dataclass
from planner.plan.model.plan import PlanDocument
from planner.plan.parts import workloads_asked
from planner.plan.rows.pools import parts_of
from planner.scenario.fields import parse_date


def by_time(cost_microusd: int, hours: Sequence[Fraction]) -> list[int]:
    """A cost spread evenly over time: one part for each stretch of it.  [micro-USD]

    Parameters
    ----------
    hours
        Length of each part; all zero puts everything into the first.  [h]

    Examples
    --------
    >>> by_time(100, [Fraction(1), Fraction(0), Fraction(2)])
    [33, 0, 67]
    """
    if not any(hours):
        return [cost_microusd, *([0] * (len(hours) - 1))]
    return parts_of(cost_microusd, hours)


def two_ways(amounts: Sequence[int], shares: Sequence[int]) -> list[list[int]]:
    """A table of whole numbers with given sums by row and by column, as near to proportional as that allows.

    Cell (i, j) is what the running totals A_i and S_j leave: floor(A_i S_j / T) - floor(A_i S_j-1 / T) -
    floor(A_i-1 S_j / T) + floor(A_i-1 S_j-1 / T); it is less than two micro-dollars away from a_i s_j / T.

    Parameters
    ----------
    amounts
        Sums of the rows.
    shares
        Sums of the columns; they add up to what the rows add up to.

    Examples
    --------
    >>> two_ways([50, 50, 1], [33, 68])
    [[16, 34], [16, 34], [1, 0]]
    """
    total = sum(amounts)
    down, across = [0, *accumulate(amounts)], [0, *accumulate(shares)]
    if not total:
        return [[0] * len(shares) for _ in amounts]
    corner = [[above * left // total for left in across] for above in down]
    return [
        [corner[i + 1][j + 1] - corner[i + 1][j] - corner[i][j + 1] + corner[i][j] for j in range(len(shares))]
        for i in range(len(amounts))
    ]


def weighed(parts: Sequence[Sequence[int]], weights: Sequence[Fraction]) -> list[int]:
    """Weighed sums of several rows, column by column, in whole micro-dollars that add up to the weighed total.

    Examples
    --------
    >>> weighed([[10, 11], [20, 20]], [Fraction(1, 2), Fraction(1, 2)])
    [15, 15]
    """
    columns = [sum((w * row[i] for row, w in zip(parts, weights)), start=Fraction(0)) for i in range(len(parts[0]))]
    ends = [0, *(int(end // 1) for end in accumulate(columns))]
    return [end - begin for begin, end in pairwise(ends)]


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


UNUSED: Final = "unused"  # kind of what is bought for nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one workload bears of one charge."""

    charge: Charge
    workload: str
    kind: WorkloadKind
    share: Fraction  # of the charge
    month_hours: tuple[Fraction, ...]  # of the charge that fall due in each month  [h]
    months_microusd: tuple[int, ...]

    @property
    def total_microusd(self) -> int:
        """Over all months."""
        return sum(self.months_microusd)


def lines_of(document: PlanDocument, charges: Sequence[Charge], months: Sequence[Month]) -> list[Line]:
    """Lines whose months add up to every charge, and whose workloads to every share of a pool that the plan states.

    Parameters
    ----------
    document
        A plan; its schedule says who bears what of each pool.
    charges
        Everything that it pays for; lines are in the same order.
    months
        In order, until nothing more is paid for.
    """
    due = {charge: _due(charge, months) for charge in charges}
    own = [
        Line(
            charge=charge,
            workload=charge.workload,
            kind=charge.kind or UNUSED,
            share=Fraction(1),
            month_hours=tuple(due[charge]),
            months_microusd=tuple(by_time(charge.cost_microusd, due[charge])),
        )
        for charge in charges
        if charge.pool is None
    ]
    pools = dict.fromkeys(charge.pool for charge in charges if charge.pool is not None)
    shared = [
        line
        for pool in pools
        for line in _pool_lines(document, pool, [charge for charge in charges if charge.pool == pool], due)
    ]
    place = {charge.source: number for number, charge in enumerate(charges)}
    return sorted([*own, *shared], key=lambda line: place[line.charge.source])


def _due(charge: Charge, months: Sequence[Month]) -> list[Fraction]:
    """Time of each month in which a charge falls due; a single moment counts as an hour of its month.  [h]"""
    hours = hours_by_month(months, charge.spans)
    if any(hours):
        return hours
    moment = charge.spans[0][0]
    month = max((i for i, one in enumerate(months) if one.begin <= moment), default=0)
    return [Fraction(int(i == month)) for i in range(len(months))]


def _pool_lines(
    document: PlanDocument, pool: str, charges: Sequence[Charge], due: Mapping[Charge, Sequence[Fraction]]
) -> Iterator[Line]:
    """What each user of a pool bears of its charges, in every month the same share."""
    pieces = [by_time(charge.cost_microusd, due[charge]) for charge in charges]
    bearers = _bearers(document, pool, sum(charge.cost_microusd for charge in charges))
    whole = sum(cost for _, _, cost in bearers)
    table = two_ways([amount for piece in pieces for amount in piece], [cost for _, _, cost in bearers])
    size = len(pieces[0])
    for c, charge in enumerate(charges):
        rows = table[c * size : (c + 1) * size]
        for b, (workload, kind, cost) in enumerate(bearers):
            amounts = tuple(row[b] for row in rows)
            yield Line(
                charge=charge,
                workload=workload,
                kind=kind,
                share=Fraction(cost, whole),
                month_hours=tuple(due[charge]),
                months_microusd=amounts,
            )


def _bearers(document: PlanDocument, pool: str, cost_microusd: int) -> list[tuple[str, WorkloadKind, int]]:
    """Workload, kind and cost of everyone who bears a pool; what nobody uses stands by itself."""
    kinds: dict[str, WorkloadKind] = {workload["name"]: workload["kind"] for workload in document["workloads"]}
    schedule = document.get("schedule")
    shares = [one for one in schedule["shares"] if one["pool"] == pool] if schedule else []
    bearers: list[tuple[str, WorkloadKind, int]] = [
        (one["workload"], kinds[one["workload"]], one["cost_microusd"]) for one in shares
    ]
    left = cost_microusd - sum(cost for _, _, cost in bearers)
    bearers.append(("", UNUSED, left))
    return [one for one in bearers if one[2]]
