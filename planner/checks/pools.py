"""Nodes of pools and nodes that fleets and jobs share, counted again from the rows.

How full a pool is, period by period, what its contracts save, and who bears their cost; who stands on shared nodes,
whether it fits, and who bears what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple

from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.checks.cells import energy_cells, place_cells
from planner.checks.facts import RESERVED, OfferFacts, exact_cost, facts_of_row
from planner.checks.findings import TOLERANCE, Finding, cell_findings
from planner.estimate.market import METERED
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.model.bought import ContractUse, PoolPlace, PoolShare, PoolUseRow, SharedNodesRow
    from planner.plan.model.fleet import ServingAllocation
    from planner.plan.model.plan import Allocation, PlanDocument
    from planner.plan.model.rows import TrainingAllocation


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


WRONG = "wrong-shared-nodes"


class Tenant(NamedTuple):
    """A row on shared nodes, and whose it is."""

    workload: str
    row: ServingAllocation | TrainingAllocation

    @property
    def number(self) -> int:
        """Its replicas, or jobs."""
        return self.row["replicas"] if "replicas" in self.row else self.row["jobs"]

    @property
    def each(self) -> int:
        """Devices of one of them."""
        return self.row["devices_per_replica"] if "replicas" in self.row else self.row["devices_per_shape"]


def use_of(row: Allocation) -> Fraction:
    """Device-hours of a row on shared nodes, by which their users bear what they cost."""
    return row["devices"] * Fraction(float(row["hours"]))


def shared_findings(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """Everything wrong with the shared nodes of a plan.

    Parameters
    ----------
    document
        A plan with rows.
    scenario
        The one that the plan carries, read.
    catalog
        The catalog with the scenario's discounts and contracts.
    """
    tenants: dict[str, list[Tenant]] = {}
    for workload in document["workloads"]:
        for row in workload["allocations"]:
            if "shared" in row:
                tenants.setdefault(row["offer"], []).append(Tenant(workload["name"], row))
    stated = document.get("shared_nodes", [])
    if sorted(one["offer"] for one in stated) != sorted(tenants):
        yield Finding(WRONG, f"shared are nodes of {sorted(tenants)}, told of are {[one['offer'] for one in stated]}")
        return
    if stated and not scenario.hardware.share_nodes:
        yield Finding(WRONG, "the scenario has every fleet on nodes of its own")
    for one in stated:
        facts = facts_of_row(one, scenario, catalog)
        if facts is None:
            yield Finding("unknown-offer", f"shared nodes: there is no offer {one['offer']!r}")
            continue
        wrong = list(_standing(one, facts, tenants[one["offer"]]))
        yield from wrong
        if not wrong:
            yield from _figures(one, facts, tenants[one["offer"]], scenario, catalog)
    yield from _there(tenants, scenario)


def _there(tenants: Mapping[str, Sequence[Tenant]], scenario: Scenario) -> Iterator[Finding]:
    """Jobs that run through, beside fleets, while the nodes are there."""
    for users in tenants.values():
        for name, row in users:
            if "jobs" not in row:
                continue
            until, horizon = row["start_hours"] + row["held_hours"], scenario.horizon_s / 3600.0
            if until > horizon * (1 + TOLERANCE):
                yield Finding(WRONG, f"{name}: runs until {until:.6g} h, nodes are shared until {horizon:.6g} h")
            if row["runs"] or "mix" in row or "switch" in row:
                yield Finding(WRONG, f"{name}: such a job has nodes of its own")


def _standing(one: SharedNodesRow, facts: OfferFacts, tenants: Sequence[Tenant]) -> Iterator[Finding]:
    """Nodes that stay, on each of which no device is used twice."""
    size, offer = facts.shape.devices, facts.offer
    if facts.owned is None and (offer.price_model not in (*METERED, RESERVED) or offer.price_model == "spot"):
        yield Finding(WRONG, f"{offer.id}: such nodes are not shared")
    used: dict[int, int] = {}
    for tenant in tenants:
        name, row = tenant.workload, tenant.row
        nodes = [stand["node"] for stand in row["shared"]]
        placed = sum(stand["replicas"] for stand in row["shared"])
        if len(set(nodes)) < len(nodes) or any(stand["replicas"] < 1 for stand in row["shared"]):
            yield Finding(WRONG, f"{name}: nodes {nodes} of {offer.id} are not each told of once, with some replica")
        if placed != tenant.number or ("replicas" in row and (row["role"] != "whole" or row.get("level", 0))):
            what = "replicas" if "replicas" in row else "jobs"
            yield Finding(WRONG, f"{name}: {placed} of {tenant.number} {what} stand on nodes of {offer.id}")
        for stand in row["shared"]:
            used[stand["node"]] = used.get(stand["node"], 0) + tenant.each * stand["replicas"]
    if not set(used) <= set(range(one["count"])):
        yield Finding(WRONG, f"{offer.id}: nodes {sorted(used)} are in use, {one['count']} are there")
    for node, devices in sorted(used.items()):
        if devices > size:
            yield Finding(WRONG, f"{offer.id}: {devices} devices of node {node} are in use, it has {size}")


def _figures(
    one: SharedNodesRow, facts: OfferFacts, tenants: Sequence[Tenant], scenario: Scenario, catalog: Catalog
) -> Iterator[Finding]:
    """Money, energy and counts of the nodes and of each who stands on them."""
    hours, count = scenario.horizon_s / 3600.0, one["count"]
    cost = count * exact_cost(1, facts.offer.price_microusd_per_hour, hours)
    taken = [tenant.number * tenant.each for tenant in tenants]
    used = sum(use_of(row) for _, row in tenants)
    cells = {
        **place_cells(facts.offer, facts.shape),
        "price_microusd_per_hour": facts.offer.price_microusd_per_hour,
        "devices": count * facts.shape.devices,
        "used_devices": sum(taken),
        "hours": hours,
        "cost_microusd": cost,
        "cost_usd": cost / 1e6,
    }
    yield from cell_findings(WRONG, facts.offer.id, one, cells)
    for (name, row), devices in zip(tenants, taken):
        part, stands = use_of(row) / used, len(row["shared"]) if "replicas" in row else row["jobs"]
        yield from cell_findings(WRONG, name, row, {"devices": devices, "count": stands})
        if abs(row["cost_microusd"] - cost * part) >= len(tenants):
            yield Finding(
                "wrong-cost", f"{name}: it bears {row['cost_microusd']} of {cost} for {float(part):.6g} of device-hours"
            )
        energy = energy_cells(catalog, facts, float(count * part), hours)
        yield from cell_findings("wrong-energy", name, row, energy)
    if sum(row["cost_microusd"] for _, row in tenants) != cost:
        yield Finding("wrong-cost", f"{facts.offer.id}: its shared nodes cost {cost}, their users bear another sum")
    yield from _users(one, tenants)


def _users(one: SharedNodesRow, tenants: Sequence[Tenant]) -> Iterator[Finding]:
    """What the users of the nodes have and bear, and what the loss of one node takes of each."""
    names = list(dict.fromkeys(tenant.workload for tenant in tenants))
    if [user["workload"] for user in one["users"]] != names:
        yield Finding(WRONG, f"{one['offer']}: its nodes are shared by {names}")
        return
    for user in one["users"]:
        rows = [row for name, row in tenants if name == user["workload"]]
        on_node = [
            sum(stand["replicas"] for row in rows for stand in row["shared"] if stand["node"] == node)
            for node in range(one["count"])
        ]
        cost = sum(row["cost_microusd"] for row in rows)
        cells = {
            "devices": sum(row["devices"] for row in rows),
            "replicas": sum(on_node),
            "lost_with_a_node": max(on_node),
            "cost_microusd": cost,
            "cost_usd": cost / 1e6,
        }
        yield from cell_findings(WRONG, user["workload"], user, cells)
