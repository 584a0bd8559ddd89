"""The last of the rule of ties: among offers that are alike to the last, a place that does for several workloads.

By names alone each workload took the first region that sells what it runs on, so that two of them stood in two regions
where one sells both at the same prices. Nothing is decided by it but the order of what is equally good.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.candidates.offers import Site
from planner.candidates.program import Program, Task

ALIKE = 1 + 1e-6  # times the least: costs that are equal but for rounding


def ranks(names: Sequence[str]) -> NDArray[np.int64]:
    """Rank of each name among the sorted distinct ones."""
    rank = {name: index for index, name in enumerate(sorted(set(names)))}
    return np.array([rank[name] for name in names], dtype=np.int64)


def offer_ranks(program: Program, sites: Sequence[Site], offers: Sequence[str]) -> NDArray[np.int64]:
    """Rank of the offer of each column: where most workloads are as cheap as anywhere, by itself each, then by name.

    Parameters
    ----------
    program
        All columns.
    sites
        Of each column; of one on several, the first.
    offers
        Ids, those of several in one text.
    """
    tasks = [task for task in program.tasks if task.kind != "optional"]
    if len(tasks) < 2:
        return ranks(offers)
    regions, sellers = Counter[tuple[str, str]](), Counter[str]()
    for task in tasks:
        best = task.first + np.flatnonzero(_as_cheap(program, task))
        there = {(sites[column].offer.provider, sites[column].offer.region) for column in best.tolist()}
        regions.update(there)
        sellers.update({provider for provider, _ in there})
    order = {}
    for name, site in zip(offers, sites):
        place = site.offer.provider, site.offer.region
        order[name] = (-regions[place] if regions[place] > 1 else 0, -sellers[place[0]] if sellers[place[0]] > 1 else 0)
    rank = {name: index for index, name in enumerate(sorted(order, key=lambda name: (order[name], name)))}
    return np.array([rank[name] for name in offers], dtype=np.int64)


def _as_cheap(program: Program, task: Task) -> NDArray[np.bool_]:
    """The columns of a workload of which so many as carry it cost the least."""
    mine = slice(task.first, task.stop)
    cost = program.cost_microusd[mine].astype(np.float64)
    if task.kind == "serving":
        demand = np.asarray(task.demand_micro_per_s, dtype=np.float64)
        capacity = program.capacity_micro_per_s[mine, : len(demand)]
        full = np.divide(demand, capacity, out=np.full(capacity.shape, np.inf), where=capacity > 0)
        units = np.ceil(np.where(demand > 0, full, 0.0).sum(axis=1) - 1e-9)
        cost = np.where(np.isfinite(units), cost * np.maximum(units, 1.0), np.inf)
    least = cost.min(initial=np.inf)
    return np.asarray((cost <= least * ALIKE) & np.isfinite(cost))
