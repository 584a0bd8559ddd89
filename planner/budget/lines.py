"""Lines of a budget: a charge, the workload that bears it, and what of it falls into each month."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

from planner.budget.charges import Charge
from planner.budget.model import WorkloadKind
from planner.budget.months import Month, hours_by_month
from planner.budget.split import by_time, two_ways
from planner.carriers import dataclass
from planner.plan.model.plan import PlanDocument

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
