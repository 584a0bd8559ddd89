"""Nodes that replicas of fleets and jobs share, as a plan tells of them: who stands where, and who bears what.

The cost of the shared nodes of an offer is borne by the device-hours in use, idle ones with them, in whole
micro-dollars: fleets run all the time, jobs for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.search import Candidates
from planner.candidates.training_table import TrainingTable
from planner.carriers import dataclass
from planner.optimize.solve import Solution
from planner.plan.rows.place import place_document, usd

if TYPE_CHECKING:
    from planner.plan.model.bought import SharedNodesRow, SharedUser
    from planner.plan.model.rows import OnNode
    from planner.plan.model.workloads import Workload


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
