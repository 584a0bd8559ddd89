"""The best plan on one kind of device, and why nothing works: both by solving again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from planner.analysis.tighten import more_spares, on_exact_rates
from planner.candidates.evaluated import Table
from planner.candidates.program import Program, restrict
from planner.candidates.prune import prune
from planner.candidates.search import MIXED, Candidates, program_of
from planner.candidates.serving import ServingTable
from planner.estimate.bands import MEDIAN
from planner.optimize.limited import BoundedRates
from planner.optimize.solve import Solution, bounds_noted, optimize
from planner.optimize.status import uninterrupted
from planner.plan.rows.row_cells import usd

if TYPE_CHECKING:
    from planner.plan.model.others import SingleKind


def best_single_kind(candidates: Candidates, solution: Solution, **options: Any) -> SingleKind | None:
    """The cheapest plan that uses one kind of device throughout; None when the plan already does.

    None too with a calendar, where one more program is no small thing to solve.
    """
    if candidates.calendar is not None:
        return None
    chosen = candidates.devices(candidates.program, candidates.rows)[solution.units > 0]
    if (
        len({device for names in chosen for device in str(names).split(MIXED)}) < 2
        or candidates.program.objective[0] != "cost"
    ):
        return None
    known: dict[str, int | None] = {}
    return on_exact_rates(candidates, lambda exact: _best_alone(exact, solution.cost_microusd, known, options))[1]


def _best_alone(
    candidates: Candidates, chosen_microusd: int, known: dict[str, int | None], options: Mapping[str, Any]
) -> SingleKind | None:
    """The cheapest plan on one kind of device, of those that were asked about before and of the others.

    Parameters
    ----------
    candidates
        The ways, with as many exact rates as are known.
    chosen_microusd
        What the plan costs that is compared with it.
    known
        By device, what was found: its least cost of exact rates, which others that become exact leave as it is; None:
        no plan, or none below the best of those before. Filled in.
    options
        Of `optimize`.

    Raises
    ------
    BoundedRates
        A plan of one device is made of rates that are only bounded: those before it are known.
    """
    whole, device_of = candidates.whole, candidates.devices(candidates.whole, candidates.whole_rows)
    best: tuple[int, str] | None = None
    kinds = [str(device) for device in np.unique(device_of) if MIXED not in str(device)]
    floors = {device: _floor(whole, device_of == device) for device in kinds}
    for floor, device in sorted((floor, device) for device, floor in floors.items() if floor is not None):
        if best is not None and floor >= best[0]:
            break
        if device in known:
            cost = known[device]
            best = (cost, device) if cost is not None and (best is None or cost < best[0]) else best
            continue
        alone, mine = restrict(whole, (device_of == device) | (device_of == ""))  # copies of data are of no device
        small, kept = restrict(alone, np.isin(np.arange(alone.column_count), prune(alone)))
        most = None if best is None else best[0] - 1
        asked = replace(small, objective=("cost",))
        answer = uninterrupted(optimize(asked, cost_only=True, most_microusd=most, **options))
        if bounds_noted():
            raise BoundedRates
        known[device] = None
        if answer.status == "optimal" and (best is None or answer.cost_microusd < best[0]):
            over = replace(candidates, program=small, rows=candidates.whole_rows[mine[kept]])
            if not any(more_spares(over, answer)):  # else it holds no availability
                best = (answer.cost_microusd, device)
                known[device] = answer.cost_microusd
    if best is None:
        return None
    cost, device = best
    return {
        "device": device,
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "dearer": cost / chosen_microusd - 1.0 if chosen_microusd else 0.0,
    }


def _floor(program: Program, mask: NDArray[np.bool_]) -> int | None:
    """What the tasks cost at least on the masked columns, each alone; None when one cannot run."""
    total = 0
    for task in program.tasks:
        if task.kind == "optional":
            continue
        inside = np.flatnonzero(mask[task.first : task.stop]) + task.first
        if not len(inside):
            return None
        if task.kind == "training":
            total += int(program.cost_microusd[inside].min()) * task.count
        else:
            buckets = len(task.demand_micro_per_s)
            capacity = program.capacity_micro_per_s[inside, :buckets].astype(np.float64)
            cost = np.broadcast_to(program.cost_microusd[inside, None], capacity.shape)
            # Of a request of each bucket; what takes none of them has no price, also where it costs nothing by itself
            each = np.divide(cost, capacity, out=np.full(capacity.shape, np.inf), where=capacity > 0)
            whole, prefill, decode = (
                np.where((program.role[inside] == role)[:, None], each, np.inf).min(axis=0) for role in range(3)
            )
            least = np.minimum(whole, prefill + decode)
            if not np.isfinite(least).all():
                return None
            paid = least * np.asarray(task.demand_micro_per_s)  # boxed: the units that bring one bucket may bring all
            total += int((paid.max() if task.boxed else paid.sum()) * (1 - 1e-9))
    return total


def median_cost(candidates: Candidates, solution: Solution | None, **options: Any) -> int | None:
    """What the scenario would cost if times and memory had to hold at the median of their errors.  [micro-USD]

    None when that was not proven, or when the cost is not what is minimised first.
    """
    if candidates.program.objective[0] != "cost" or (solution is not None and solution.status != "optimal"):
        return None
    if solution is not None and same_at_median(candidates):
        return solution.cost_microusd
    if candidates.calendar is not None:  # one more program of this kind is no small thing to solve
        return None
    found = on_exact_rates(candidates, lambda exact: _at_median(exact, options))[1]
    if found is None:
        return None
    cost, tie_microusd = found
    if solution is not None and 0 <= solution.cost_microusd - cost <= tie_microusd:
        return solution.cost_microusd  # as cheap
    return cost


def _at_median(candidates: Candidates, options: Mapping[str, Any]) -> tuple[int, int] | None:
    """Least cost at the median of the errors, and what costs as much; fleets have the rates of their confidence."""
    asked, catalog = candidates.scenario, candidates.catalog
    fleets = {name: table for name, table in candidates.tables.items() if isinstance(table, ServingTable)}
    median = {**candidates.median_tables, **fleets}
    whole = program_of(asked, catalog, median, candidates.questions, candidates.pools, confidence=MEDIAN).program
    small = restrict(whole, np.isin(np.arange(whole.column_count), prune(whole)))[0]
    answer = uninterrupted(optimize(replace(small, objective=("cost",)), cost_only=True, **options))
    return (answer.cost_microusd, small.tie_microusd(answer.cost_microusd)) if answer.status == "optimal" else None


def same_at_median(candidates: Candidates) -> bool:
    """Whether no margin changed what there is to choose from."""
    asked, median = candidates.tables, candidates.median_tables
    if candidates.calendar is not None:
        return False  # a margin may also cost a period
    return all(_columns(asked[name]) == _columns(median[name]) for name in asked)


def _columns(table: Table) -> list[tuple[str, int, int]]:
    return [(site.offer.id, int(n), cost) for site, n, cost in zip(table.sites, table.nodes, table.cost_microusd)]
