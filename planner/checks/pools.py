"""How full a pool of nodes is, what its contracts save, and who bears their cost: counted again, period by period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from planner.carriers import dataclass
from planner.catalog.model import Catalog

if TYPE_CHECKING:
    from planner.plan.model.bought import ContractUse, PoolPlace, PoolShare, PoolUseRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes of one place in every period."""

    name: str
    kind: Literal["reserved", "owned"]
    place: PoolPlace
    hours: Sequence[Fraction]  # of each period
    reserved: Sequence[int]
    on_demand: Sequence[int]
    used: Sequence[int]
    rent_microusd_per_hour: int | None = None  # of one node on demand there; None where nobody rents one


def period_hours(edges_s: Sequence[float]) -> list[Fraction]:
    """Lengths of periods, exactly as their edges are.  [h]"""
    edges = [Fraction(edge) for edge in edges_s]
    return [(edges[number + 1] - edges[number]) / 3600 for number in range(len(edges) - 1)]


def pool_cells(pool: Pool) -> PoolUseRow:
    """A pool as it stands in the schedule."""
    there = _node_hours(pool.hours, pool.reserved)
    busy = _node_hours(pool.hours, [min(pair) for pair in zip(pool.reserved, pool.used)])
    return {
        "pool": pool.name,
        "kind": pool.kind,
        **pool.place,
        "used_share": float(busy / there) if there else None,
        "reserved": list(pool.reserved),
        "on_demand": list(pool.on_demand),
        "used": list(pool.used),
    }


def _node_hours(hours: Sequence[Fraction], nodes: Sequence[int | Fraction]) -> Fraction:
    return sum((each * count for each, count in zip(hours, nodes)), start=Fraction(0))


def use_cells(pool: Pool, kind: str, count: int, span: range, cost_microusd: int) -> ContractUse:
    """How full what is bought for some periods is, and what the same nodes would have cost by the hour.

    Parameters
    ----------
    kind
        A contract's price model, or `on_demand` for nodes taken for whole periods.
    count
        Nodes that are bought.
    """
    lasts = sum((pool.hours[period] for period in span), start=Fraction(0))
    busy, full, beyond = Fraction(0), Fraction(0), Fraction(0)
    for period in span:
        hours, held, used = pool.hours[period], pool.reserved[period], pool.used[period]
        if kind == "on_demand":
            held, used = pool.on_demand[period], max(used - held, 0)
        busy += hours * Fraction(min(held, used), held) if held else 0
        full += hours if used >= held else 0
        beyond += hours if used > held else 0
    found: ContractUse = {
        "used_share": float(busy / lasts),
        "last_node_share": None,
        "next_node_share": None,
        "on_demand_microusd": None,
        "saved_microusd": None,
        "break_even_share": None,
    }
    if kind == "on_demand":
        return found
    found |= {"last_node_share": float(full / lasts), "next_node_share": float(beyond / lasts)}
    rent = pool.rent_microusd_per_hour
    if rent is not None:
        rented = round(busy * count * rent)
        paid = lasts * count * rent
        found |= {"on_demand_microusd": rented, "saved_microusd": rented - cost_microusd}
        found["break_even_share"] = float(cost_microusd / paid) if paid else None
    return found


def shares_of(pool: Pool, users: Mapping[str, Sequence[Fraction]], cost_microusd: int) -> list[PoolShare]:
    """What each workload bears of the cost of a pool, by its node-hours; whole micro-dollars that add up to it.

    Parameters
    ----------
    pool
        Its name, and how long its periods are.
    users
        Nodes that each workload uses in every period, (periods,), in the order in which rounding is passed on.
    cost_microusd
        Of all contracts of the pool; where nobody uses it, nobody bears it.  [micro-USD]
    """
    hours = {name: _node_hours(pool.hours, nodes) for name, nodes in users.items()}
    whole, before = sum(hours.values(), start=Fraction(0)), Fraction(0)
    rows: list[PoolShare] = []
    for name, mine in hours.items():
        begin, end = ((cost_microusd * part // whole if whole else 0) for part in (before, before + mine))
        cost, before = int(end - begin), before + mine
        rows.append({"pool": pool.name, "workload": name, "node_hours": float(mine), "cost_microusd": cost,
                     "cost_usd": cost / 1e6})  # fmt: skip
    return rows


def rent_microusd_per_hour(catalog: Catalog, place: PoolPlace) -> int | None:
    """The least price of one node on demand at a place; in any zone where the pool is a whole region's."""
    least: int | None = None
    for offer in catalog.offers:
        here = (offer.provider, offer.region, offer.shape) == (place["provider"], place["region"], place["shape"])
        here = here and place["zone"] in ("", offer.zone) and offer.price_model == "on_demand" and not offer.quality
        if here and (least is None or offer.price_microusd_per_hour < least):
            least = offer.price_microusd_per_hour
    return least
