"""Nodes of one pool, period by period: contracted, taken on demand, in use; and what that says of its contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from planner.carriers import dataclass
from planner.catalog.model import Catalog

if TYPE_CHECKING:
    from planner.plan.model.bought import Contract, ContractUse, PoolPlace, PoolShare, PoolUseRow


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """Counts of nodes by period; periods may differ in length."""

    pool: str
    kind: Literal["reserved", "owned"]
    place: PoolPlace
    edges_s: Sequence[float]  # (periods + 1,) [s]
    reserved: Sequence[int]  # contracted, or owned
    on_demand: Sequence[int]  # taken on demand for the whole period
    used: Sequence[int]
    on_demand_microusd_per_hour: int | None  # of one node; None: not sold on demand there

    def hours(self, period: int) -> Fraction:
        """Length of a period.  [h]"""
        return (Fraction(float(self.edges_s[period + 1])) - Fraction(float(self.edges_s[period]))) / 3600

    def filled(self, period: int) -> Fraction:
        """Share of the contracted nodes that is used; on-demand nodes are what lies above."""
        held, used = int(self.reserved[period]), int(self.used[period])
        return Fraction(min(held, used), held) if held else Fraction(0)

    def topped(self, period: int) -> Fraction:
        """Share of the nodes taken on demand that is used."""
        taken, above = int(self.on_demand[period]), int(self.used[period]) - int(self.reserved[period])
        return Fraction(min(taken, max(above, 0)), taken) if taken else Fraction(0)

    def used_share(self) -> float | None:
        """Share of the contracted node-hours that is used; None without any."""
        held = sum((self.hours(t) * int(self.reserved[t]) for t in range(len(self.reserved))), start=Fraction(0))
        used = sum(
            (self.hours(t) * min(int(self.reserved[t]), int(self.used[t])) for t in range(len(self.reserved))),
            start=Fraction(0),
        )
        return float(used / held) if held else None

    def document(self) -> PoolUseRow:
        """As it stands in the plan."""
        return {
            "pool": self.pool,
            "kind": self.kind,
            **self.place,
            "used_share": self.used_share(),
            "reserved": [int(n) for n in self.reserved],
            "on_demand": [int(n) for n in self.on_demand],
            "used": [int(n) for n in self.used],
        }


def parts_of(cost_microusd: int, node_hours: Sequence[Fraction]) -> list[int]:
    """A cost shared out by node-hours, in whole micro-dollars that add up to it; none where nothing is used.

    Examples
    --------
    >>> parts_of(100, [Fraction(1), Fraction(1), Fraction(1)])
    [33, 33, 34]
    """
    whole = sum(node_hours, start=Fraction(0))
    if not whole:
        return [0] * len(node_hours)
    ends = [cost_microusd * part // whole for part in accumulate(node_hours)]
    return [int(end - begin) for begin, end in zip([0, *ends], ends)]


def share_rows(use: PoolUse, users: Mapping[str, Sequence[Fraction]], contracts: Sequence[Contract]) -> list[PoolShare]:
    """What a pool costs, shared out among the workloads on it by the node-hours that they hold.

    Parameters
    ----------
    users
        Nodes of each workload by period; parts of those that fleets share.
    contracts
        All that the plan buys, top-ups included.
    """
    cost = sum(contract["cost_microusd"] for contract in contracts if contract["pool"] == use.pool)
    held = [node_hours(use, counts) for counts in users.values()]
    parts = parts_of(cost, held)
    return [
        {"pool": use.pool, "workload": name, "node_hours": float(hours), "cost_microusd": part, "cost_usd": part / 1e6}
        for name, hours, part in zip(users, held, parts)
    ]


def node_hours(use: PoolUse, counts: Sequence[Fraction]) -> Fraction:
    """Node-hours of counts of nodes by period.  [h]"""
    return sum((use.hours(t) * count for t, count in enumerate(counts) if count), start=Fraction(0))


def on_demand_price(catalog: Catalog, place: PoolPlace) -> int | None:
    """Of one node at a place, whether plans may use it or not; None: not sold on demand.  [micro-USD/h]

    A pool of a whole region, one without a zone, compares with the cheapest zone.
    """
    prices = [
        offer.price_microusd_per_hour
        for offer in catalog.offers
        if offer.price_model == "on_demand"
        and not offer.quality
        and (offer.provider, offer.region, offer.shape) == (place["provider"], place["region"], place["shape"])
        and place["zone"] in ("", offer.zone)
    ]
    return min(prices, default=None)


def contract_figures(use: PoolUse, kind: str, count: int, span: tuple[int, int], cost_microusd: int) -> ContractUse:
    """How full what is bought is, and whether it pays.

    A reservation of R nodes is right for a load curve when the R-th node is in use for at least the share
    fee / (price on demand) of the time and one more would be used less: the newsvendor's quantile
    (Arrow, Harris and Marschak 1951).

    Parameters
    ----------
    span
        First period that it supplies, and the first after.
    cost_microusd
        Of all `count` nodes.  [micro-USD]
    """
    periods = range(*span)
    lasts = sum((use.hours(t) for t in periods), start=Fraction(0))
    if kind == "on_demand":
        above = sum((use.hours(t) * use.topped(t) for t in periods), start=Fraction(0))
        return {
            "used_share": float(above / lasts),
            "last_node_share": None,
            "next_node_share": None,
            "on_demand_microusd": None,
            "saved_microusd": None,
            "break_even_share": None,
        }
    used = sum((use.hours(t) * use.filled(t) for t in periods), start=Fraction(0))
    price = use.on_demand_microusd_per_hour
    rented = None if price is None else round(price * count * used)
    return {
        "used_share": float(used / lasts),
        "last_node_share": float(_time(use, periods, 0) / lasts),
        "next_node_share": float(_time(use, periods, 1) / lasts),
        "on_demand_microusd": rented,
        "saved_microusd": None if rented is None else rented - cost_microusd,
        "break_even_share": float(cost_microusd / (price * count * lasts)) if price else None,
    }


def _time(use: PoolUse, periods: range, more: int) -> Fraction:
    """Time in which all contracted nodes and `more` would be in use.  [h]"""
    busy = (use.hours(t) for t in periods if int(use.used[t]) >= int(use.reserved[t]) + more)
    return sum(busy, start=Fraction(0))
