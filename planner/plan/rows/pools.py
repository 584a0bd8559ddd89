"""Nodes of pools, period by period, and nodes that replicas of several fleets share.

Of a pool: contracted, taken on demand, in use; and what that says of its contracts. Of shared nodes: who stands where,
and who bears what. Their cost is borne by the devices in use, idle ones with them, in whole micro-dollars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

import numpy as np

from planner.candidates.search import Candidates
from planner.candidates.training_table import TrainingTable
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.optimize.solve import Solution
from planner.plan.rows.row_cells import place_document, usd

if TYPE_CHECKING:
    from planner.plan.model.bought import (
        Contract,
        ContractUse,
        PoolPlace,
        PoolShare,
        PoolUseRow,
        SharedNodesRow,
        SharedUser,
    )
    from planner.plan.model.plan import Workload
    from planner.plan.model.rows import OnNode


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """The replicas of one column on shared nodes, or the jobs of one."""

    nodes: tuple[OnNode, ...]  # each with how many of them
    cost_microusd: int  # that they bear
    shapes: Fraction  # nodes that this amounts to, all the time


def stands_of(candidates: Candidates, solution: Solution) -> dict[int, Stand]:
    """What stands on shared nodes, by column of the program."""
    shared, program = candidates.shared, candidates.program
    stands: dict[int, Stand] = {}
    for number in range(len(shared.sites)) if shared is not None else ():
        assert shared is not None
        node, size = shared.node_of(number), shared.sites[number].shape.devices
        used = [k for k in np.flatnonzero(shared.site == number).tolist() if shared.is_share(k) and solution.units[k]]
        if node is None or not used:
            continue
        count = int(solution.units[node])
        replicas = [int(solution.units[k]) for k in used]
        devices = [int(shared.devices[k]) for k in used]
        owner = [next(i for i, task in enumerate(program.tasks) if task.first <= k < task.stop) for k in used]
        placed = placed_on(count, size, devices, replicas, owner)
        hours = [_hours(candidates, program.tasks[one].name, k) for one, k in zip(owner, used)]
        taken = [each * number_of * run for each, number_of, run in zip(devices, replicas, hours)]
        costs = borne(count * int(program.cost_microusd[node]), taken)
        for k, where, cost, part in zip(used, placed, costs, taken):
            nodes: tuple[OnNode, ...] = tuple({"node": n, "replicas": r} for n, r in sorted(where.items()))
            stands[k] = Stand(nodes=nodes, cost_microusd=cost, shapes=count * part / sum(taken))
    return stands


def _hours(candidates: Candidates, name: str, column: int) -> Fraction:
    """How long what stands on shared nodes runs.  [h]"""
    table, row = candidates.tables[name], int(candidates.rows[column])
    hours = table.finish_s[row] / 3600.0 if isinstance(table, TrainingTable) else candidates.scenario.horizon_s / 3600.0
    return Fraction(float(hours))


def workload_costs(candidates: Candidates, solution: Solution) -> dict[str, int]:
    """What each workload costs, with what it bears of shared nodes.  [micro-USD]"""
    program, stands = candidates.program, stands_of(candidates, solution)
    costs: dict[str, int] = {}
    for task in program.tasks:
        if task.kind != "optional" or candidates.shared is None:
            part = slice(task.first, task.stop)
            borne_here = sum(stand.cost_microusd for k, stand in stands.items() if task.first <= k < task.stop)
            costs[task.name] = int(program.cost_microusd[part] @ solution.units[part]) + borne_here
    return costs


def placed_on(
    nodes: int, size: int, devices: Sequence[int], replicas: Sequence[int], owner: Sequence[int]
) -> list[dict[int, int]]:
    """Replicas of each kind by node: the largest first, those of one fleet as far apart as there is room.

    Whatever node with room is taken, all fit where their devices do (`planner.candidates.shared_nodes`).

    Parameters
    ----------
    nodes, size
        How many there are, and devices of each.
    devices, replicas
        Of each kind: of one replica, and how many.
    owner
        Fleet of each kind.

    Examples
    --------
    Two replicas of 4 devices and three of one, on two nodes of 8.

    >>> placed_on(2, 8, [1, 4], [3, 2], [0, 1])
    [{0: 2, 1: 1}, {0: 1, 1: 1}]
    """
    free, held = [size] * nodes, dict[tuple[int, int], int]()
    placed: list[dict[int, int]] = [{} for _ in devices]
    for kind in sorted(range(len(devices)), key=lambda k: (-devices[k], owner[k], k)):
        for _ in range(replicas[kind]):
            room = [n for n in range(nodes) if free[n] >= devices[kind]]
            node = min(room, key=lambda n: (held.get((owner[kind], n), 0), -free[n], n))
            free[node] -= devices[kind]
            held[owner[kind], node] = held.get((owner[kind], node), 0) + 1
            placed[kind][node] = placed[kind].get(node, 0) + 1
    return placed


def borne(cost_microusd: int, use: Sequence[int | Fraction]) -> list[int]:
    """A cost shared out in proportion to what is used, in whole micro-dollars; what is left over to the first.

    >>> borne(100, [1, 2])
    [34, 66]
    """
    total = sum(use)
    parts = [int(cost_microusd * each // total) for each in use]
    for place in range(cost_microusd - sum(parts)):
        parts[place] += 1
    return parts


def shared_rows(candidates: Candidates, solution: Solution, workloads: Sequence[Workload]) -> list[SharedNodesRow]:
    """The shared nodes of each offer, with who stands on them and what the loss of one takes.

    Parameters
    ----------
    candidates
        The ways that the plan is made of.
    solution
        Units of each column of their program: of nodes, how many there are.
    workloads
        As they stand in the plan: their rows say on which nodes their replicas are, and what they bear.
    """
    shared = candidates.shared
    found: list[SharedNodesRow] = []
    hours = candidates.scenario.horizon_s / 3600.0
    for number, site in enumerate(shared.sites if shared is not None else ()):
        assert shared is not None
        node = shared.node_of(number)
        users = list(_users(workloads, site.offer.id))
        if node is None or not users:
            continue
        cost = sum(user["cost_microusd"] for user in users)
        found.append(
            {
                **place_document(site, int(solution.units[node])),
                "used_devices": sum(user["devices"] for user in users),
                "hours": hours,
                "cost_microusd": cost,
                "cost_usd": usd(cost),
                "users": users,
            }
        )
    return found


def _users(workloads: Sequence[Workload], offer: str) -> list[SharedUser]:
    users: list[SharedUser] = []
    for workload in workloads:
        rows = [row for row in workload["allocations"] if "shared" in row and row["offer"] == offer]
        on_node: dict[int, int] = {}
        for row in rows:
            for one in row["shared"]:
                on_node[one["node"]] = on_node.get(one["node"], 0) + one["replicas"]
        if rows:
            cost = sum(row["cost_microusd"] for row in rows)
            users.append(
                {
                    "workload": workload["name"],
                    "devices": sum(row["devices"] for row in rows),
                    "replicas": sum(on_node.values()),
                    "lost_with_a_node": max(on_node.values()),
                    "cost_microusd": cost,
                    "cost_usd": usd(cost),
                }
            )
    return users


def idle_devices(rows: Sequence[SharedNodesRow]) -> int:
    """Devices of shared nodes that nobody uses."""
    return sum(row["devices"] - row["used_devices"] for row in rows)


def alone_on_shared(candidates: Candidates, column: int, replicas: int) -> tuple[int, int]:
    """The column of the nodes that a share stands on, and how many of them it needs by itself.

    Parameters
    ----------
    candidates
        With a program in which nodes are shared.
    column
        Of that program, of which a unit is one replica on shared nodes.
    replicas
        Units of it.
    """
    shared = candidates.shared
    assert shared is not None
    number = int(shared.site[column])
    node = shared.node_of(number)
    assert node is not None
    return node, -(-replicas * int(shared.devices[column]) // shared.sites[number].shape.devices)
