"""Nodes that fleets and jobs share, counted again from the rows: who stands where, whether it fits, who bears what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from planner.catalog.model import Catalog
from planner.checks.cells import energy_cells, place_cells
from planner.checks.exact import exact_cost
from planner.checks.facts import RESERVED, OfferFacts, facts_of_row
from planner.checks.findings import TOLERANCE, Finding, cell_findings
from planner.estimate.market import METERED
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.model.bought import SharedNodesRow
    from planner.plan.model.fleet import ServingAllocation
    from planner.plan.model.plan import PlanDocument
    from planner.plan.model.rows import TrainingAllocation
    from planner.plan.model.workloads import Allocation

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
    jobs = {job.name: job for job in scenario.training}
    for users in tenants.values():
        for name, row in users:
            if "jobs" not in row:
                continue
            until, horizon = row["start_hours"] + row["held_hours"], scenario.horizon_s / 3600.0
            if until > horizon * (1 + TOLERANCE):
                yield Finding(WRONG, f"{name}: runs until {until:.6g} h, nodes are shared until {horizon:.6g} h")
            if jobs[name].schedule != "fixed" or scenario.uncertainty or "mix" in row or "switch" in row:
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
