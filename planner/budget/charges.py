"""Everything that a plan pays for, one by one: what, to whom, how much, and when it falls due.

Read from the plan document; the sum of all charges is the plan's total, to the micro-dollar. Charges that are metered
are nodes × hours × price, as a reader multiplies them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Final

from planner.budget.model import BudgetLine, Commitment, Payment, WorkloadKind
from planner.candidates.money import significant_hours
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.plan.model.bought import Contract
from planner.plan.model.plan import Allocation, PlanDocument
from planner.plan.parts import rows_of, workloads_asked
from planner.plan.rows.pools import parts_of
from planner.scenario.fields import parse_date

Span = tuple[Fraction, Fraction, int]  # from, until [h] after the plan's begin, units at work

COMMITTED: Final = "committed"
VARIABLE: Final = "variable"
BY_USE: Final = "by use"
UPFRONT: Final = "up front"
INSTALMENTS: Final = "instalments"
PAID_AHEAD = {"block": Fraction(1)}  # share of a fee due when it starts, where the catalog does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One thing that is paid for, with the quantity and the price that its cost is the product of."""

    source: str  # path in the plan document: "workloads[0].allocations[1]"
    workload: str  # "" where several share it
    kind: WorkloadKind | None  # None where several share it
    pool: str | None  # pool whose users share it
    provider: str
    place: str
    item: str  # id of the offer, or what is paid for
    category: str  # on_demand | spot | commitment_1y | block | owned | egress | storage | traffic ...
    commitment: Commitment  # committed: due whether used or not; variable: by use
    payment: Payment
    cost_microusd: int
    count: int  # nodes
    hours: float  # that each is paid for  [h]
    price_microusd_per_hour: int | None  # of one node; None: the cost is no product of nodes, hours and price
    share: Fraction  # of count × hours × price that this charge is
    spans: tuple[Span, ...]  # when it falls due: evenly over these, or where they are a moment, at once


def charges_of(document: PlanDocument, catalog: Catalog) -> list[Charge]:
    """All charges of a plan in the order of its document; those that cost nothing are left out.

    Parameters
    ----------
    document
        A plan with allocations.
    catalog
        Says which part of a contract's fee is due when it starts.
    """
    found = [*_allocations(document), *_contracts(document, catalog), *_copies(document)]
    return [charge for charge in found if charge.cost_microusd]


def _allocations(document: PlanDocument) -> Iterator[Charge]:
    shared = {nodes["offer"]: nodes for nodes in document.get("shared_nodes", [])}
    there = [row for workload in document["workloads"] for row in rows_of(workload) if "shared" in row]
    used = {offer: sum(_use_of(row) for row in there if row["offer"] == offer) for offer in shared}
    for w, workload in enumerate(document["workloads"]):
        for a, row in enumerate(rows_of(workload)):
            sent = row["mix"]["traffic_microusd"] if "mix" in row else 0
            nodes = shared.get(row["offer"]) if "shared" in row else None
            rented = Charge(
                source=f"workloads[{w}].allocations[{a}]",
                workload=workload["name"],
                kind=workload["kind"],
                pool=None,
                provider=row["provider"],
                place=row["zone"] or row["region"],
                item=row["offer"],
                category=row["price_model"],
                commitment=VARIABLE,
                payment=BY_USE,
                cost_microusd=row["cost_microusd"] - sent,
                count=row["count"] if nodes is None else nodes["count"],
                hours=nodes["hours"] if nodes else row["billed_hours"] if "billed_hours" in row else row["hours"],
                price_microusd_per_hour=row["price_microusd_per_hour"],
                share=Fraction(1) if nodes is None else _use_of(row) / used[row["offer"]],
                spans=_spans(row) if nodes is None else ((Fraction(0), _exact(nodes["hours"]), 1),),
            )
            yield rented
            yield replace(
                rented,
                item=f"traffic of {row['offer']}",
                category="traffic",
                cost_microusd=sent,
                count=1,
                hours=0.0,
                price_microusd_per_hour=None,
            )


def _use_of(row: Allocation) -> Fraction:
    """Device-hours of a row, by which the users of shared nodes bear what they cost, as long as those are there."""
    return row["devices"] * _exact(row["hours"])


def _spans(row: Allocation) -> tuple[Span, ...]:
    """When a row runs; of a job that pauses its running periods."""
    runs = row["runs"] or [{"start_hours": row["start_hours"], "end_hours": row["end_hours"], "jobs": 1}]
    return tuple((_exact(run["start_hours"]), _exact(run["end_hours"]), int(run["jobs"])) for run in runs)


def _exact(hours: float) -> Fraction:
    return Fraction(float(hours))


def _contracts(document: PlanDocument, catalog: Catalog) -> Iterator[Charge]:
    ahead = {offer.id: offer.upfront_fraction for offer in catalog.offers if offer.upfront_fraction is not None}
    for c, contract in enumerate(document.get("contracts") or ()):
        kind, begin = contract["kind"], _exact(contract["start_hours"])
        hours = contract["end_hours"] - contract["start_hours"] if contract["prorated"] else contract["term_hours"]
        share = _upfront_share(contract, ahead)
        first = round(contract["cost_microusd"] * share)
        ahead_of_use = Charge(
            source=f"contracts[{c}]",
            workload="",
            kind=None,
            pool=contract["pool"],
            provider=contract["provider"],
            place=contract["zone"] or contract["region"],
            item=contract["offer"],
            category=kind,
            commitment=VARIABLE if kind == "on_demand" else COMMITTED,
            payment=UPFRONT,
            cost_microusd=first,
            count=contract["count"],
            hours=hours,
            price_microusd_per_hour=contract["price_microusd_per_hour"],
            share=share,
            spans=((begin, begin, 1),),
        )
        yield ahead_of_use
        yield replace(
            ahead_of_use,
            payment=BY_USE if kind == "on_demand" else INSTALMENTS,
            cost_microusd=contract["cost_microusd"] - first,
            share=1 - share,
            spans=((begin, begin + _exact(hours), 1),),
        )


def _upfront_share(contract: Contract, ahead: Mapping[str, float]) -> Fraction:
    """Share of a contract's fee that is due when it starts: as the catalog says, else as its kind is sold."""
    if contract["kind"] == "on_demand":
        return Fraction(0)
    told = ahead.get(contract["offer"])
    return PAID_AHEAD.get(contract["kind"], Fraction(0)) if told is None else Fraction(repr(told))


def _copies(document: PlanDocument) -> Iterator[Charge]:
    """Copies of data: sent before the first job that reads them starts, kept until the last deadline."""
    schedule = document.get("schedule")
    jobs = {job["workload"]: job["release_hours"] for job in schedule["jobs"]} if schedule else {}
    for c, copy in enumerate(document.get("copies") or ()):
        begin = min((jobs[name] for name in _readers(document, copy["data"]) if name in jobs), default=0.0)
        sender = str(copy["from"]).partition("/")[0]
        start, kept = _exact(begin), _exact(copy["kept_hours"])
        sent = Charge(
            source=f"copies[{c}]",
            workload=copy["data"],
            kind="training",
            pool=None,
            provider=sender,
            place=copy["region"],
            item=f"egress of {copy['data']}",
            category="egress",
            commitment=VARIABLE,
            payment=BY_USE,
            cost_microusd=copy["egress_microusd"],
            count=1,
            hours=0.0,
            price_microusd_per_hour=None,
            share=Fraction(1),
            spans=((start, start, 1),),
        )
        yield sent
        yield replace(
            sent,
            provider=copy["provider"],
            item=f"storage of {copy['data']}",
            category="storage",
            cost_microusd=copy["storage_microusd"],
            spans=((start, start + kept, 1),),
        )


def _readers(document: PlanDocument, data: str) -> list[str]:
    """Jobs that read a data set."""
    names = []
    for job in workloads_asked(document, "training"):
        held = job.get("data")
        if isinstance(held, Mapping) and (held.get("name") or f"{job['name']}:data") == data:
            names.append(str(job["name"]))
    return names


_HALF_A_CENT_MICROUSD = 5_000


def metered_hours(line: BudgetLine) -> float | None:
    """Hours that each node of a charge is paid for; None where the charge is no product of them and of a price.  [h]"""
    hours, price = float(significant_hours(line["hours"])), line["price_microusd_per_hour"]
    if price is None:
        return None
    product = line["count"] * hours * line["part_of_price"] * price
    return hours if abs(product - line["charge_microusd"]) <= _HALF_A_CENT_MICROUSD else None


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
