"""Joint limits as they stand in a plan: how much of each is used, and whether one more shape would fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.calendar import CONTRACT, RUN
from planner.candidates.limits import ColumnFacts, Window, concurrent_sets, peak_limits, whole_plan_rows
from planner.candidates.offers import owned_key
from planner.candidates.program import Row
from planner.candidates.shared_nodes import DEVICES_OF
from planner.candidates.training_table import TrainingTable
from planner.estimate.market import CAP, OWN_CONTRACT
from planner.plan.rows.calendar import owned_periods

if TYPE_CHECKING:
    from planner.candidates.search import Candidates
    from planner.optimize.solve import Solution
    from planner.plan.model.others import Limit

# unit of the integer program -> unit that is told, and how many of the first are one of the second
_TOLD = {"microusd": ("USD", 1e6), "microusd/h": ("USD/h", 1e6), "mW": ("W", 1e3), "mg": ("kg", 1e6)}
_FROM = re.compile(r", (at first|from .* on)$")
Key = tuple[str, str]  # name and label, without the time


def limits_of(candidates: Candidates, solution: Solution) -> list[Limit]:
    """Every limit of the scenario on several workloads; with a calendar in the period that uses most of it.

    One that nothing listed takes from is not used at all; of what offers state themselves, those that are used.
    """
    told = [row for row in limit_rows(candidates, solution) if not row.name.startswith(CAP) or _used(row, solution)]
    seen = {(row.name, row.label) if candidates.calendar is None else _key(row) for row in told}
    for name, label, bound in _stated(candidates):
        if (name, label) not in seen:
            nothing = np.zeros(0, dtype=np.int64)
            told.append(Row(name=name, label=label, bound=bound, columns=nothing, coefficients=nothing))
    told += [row for row in _contract_rows(candidates, solution) if _key(row) not in seen]
    return [_limit(candidates, row, solution) for row in told]


def _contract_rows(candidates: Candidates, solution: Solution) -> Iterator[Row]:
    """Nodes of each of the scenario's own contracts: a program has no row where one purchase alone is bounded.

    Several of them follow each other then, so that the largest says how many are held at once.
    """
    calendar = candidates.calendar
    for index, contract in enumerate(candidates.scenario.hardware.contracts if calendar is not None else ()):
        for offer in candidates.catalog.offers:
            if contract.max_shapes is None or not offer.id.startswith(f"{OWN_CONTRACT}{index}:"):
                continue
            bought = enumerate(calendar.purchases) if calendar is not None else ()
            mine = [
                column
                for column, one in bought
                if one is not None and one.kind == CONTRACT and one.offer is not None and one.offer.id == offer.id
            ]
            most = [max(mine, key=lambda column: int(solution.units[column]))] if mine else []
            yield Row(
                name=f"hardware.contracts[{index}].max_shapes",
                label=f"at most {contract.max_shapes} shapes of {offer.id}",
                bound=contract.max_shapes,
                columns=np.array(most, dtype=np.int64),
                coefficients=np.ones(len(most), dtype=np.int64),
            )


def limit_rows(candidates: Candidates, solution: Solution) -> Iterator[Row]:
    """Rows that are limits of the scenario, not the meaning of columns or the order of jobs."""
    rows = [row for row in candidates.program.rows if not row.name.startswith(("~", "training[", DEVICES_OF))]
    if candidates.calendar is None:
        yield from rows
        return
    fullest: dict[Key, Row] = {}
    for row in rows:
        known = fullest.setdefault(_key(row), row)
        fuller = _used(row, solution) * known.bound > _used(known, solution) * row.bound
        if row.bound > 0 and (fuller or known.bound == 0):  # what is not there yet is not full
            fullest[_key(row)] = row
    yield from fullest.values()


def binds(candidates: Candidates, row: Row, solution: Solution) -> bool:
    """Whether what is left of a limit is less than one more shape takes of those in use.

    Parameters
    ----------
    candidates
        The ways that the plan is made of.
    row
        A limit over columns of their program.
    solution
        Units of each of these columns.
    """
    left = row.bound - _used(row, solution)
    nodes, units = candidates.program.nodes[row.columns].copy(), solution.units[row.columns]
    taken = (units > 0) & (row.coefficients > 0)
    for place in np.flatnonzero(taken).tolist():
        nodes[place] = _nodes_that_take(candidates, row, place)
    return left <= 0 or any(
        left * max(int(count), 1) < int(each) for count, each in zip(nodes[taken], row.coefficients[taken])
    )


def _nodes_that_take(candidates: Candidates, row: Row, place: int) -> int:
    """Shapes of a column of a row; of a switch those of the part that takes most of it, where one alone does."""
    column = int(row.columns[place])
    nodes = int(candidates.program.nodes[column])
    bought = candidates.calendar.purchases[column] if candidates.calendar is not None else None
    if bought is not None and bought.kind == RUN:  # a period in which a job that may pause runs
        return int(candidates.tables[bought.workload].nodes[bought.row])
    task = next((one for one in candidates.program.tasks if one.first <= column < one.stop), None)
    table = candidates.tables.get(task.name) if task is not None else None
    switch = table.switches.get(int(candidates.rows[column])) if isinstance(table, TrainingTable) else None
    if switch is None or not isinstance(table, TrainingTable):
        return nodes
    name, told = _key(row)
    takes = next((taken for known, label, _, taken in peak_limits(candidates.scenario)
                  if (known, label) == (name, told)), None)  # fmt: skip
    if takes is None:
        return int(row.coefficients[place]) if name.startswith(CAP) else nodes
    parts = [
        ColumnFacts(task=0, site=site, nodes=count, cost_microusd=0, carbon_mg=0)
        for site, count in switch.rented(table)
    ]
    held = [(takes(part), part.nodes) for part in parts]  # with a calendar one part alone may be there
    return max(part for part in held if part[0] <= row.coefficients[place])[1]


def _key(row: Row) -> Key:
    return row.name.split("@")[0], _FROM.sub("", row.label)


def _stated(candidates: Candidates) -> Iterator[tuple[str, str, int]]:
    """Limits of the scenario that may have no row: nothing listed takes from them."""
    for row in whole_plan_rows(candidates.scenario, ()):
        yield row.name, row.label, row.bound
    moments, absent = _moments(candidates) if candidates.calendar is None else 1, _never_there(candidates)
    for number in range(moments):
        suffix = f"@{number}" if moments > 1 else ""
        for name, label, bound, _ in peak_limits(candidates.scenario):
            yield name + suffix, label, 0 if name in absent else bound


def _never_there(candidates: Candidates) -> set[str]:
    """Limits of owned machines that are there for no whole period of the calendar."""
    calendar, scenario = candidates.calendar, candidates.scenario
    edges = calendar.edges_s().tolist() if calendar is not None else []
    return {
        owned_key(index) for index, owned in enumerate(scenario.hardware.owned)
        if edges and not any(owned_periods(scenario, owned, edges))
    }  # fmt: skip


def _moments(candidates: Candidates) -> int:
    """How many different sets of workloads run at the same time."""
    scenario = candidates.scenario
    jobs = [Window(start_s=job.start_s, end_s=job.start_s + job.deadline_s) for job in scenario.training]
    return len(concurrent_sets([*jobs, *(Window(start_s=0.0, end_s=scenario.horizon_s) for _ in scenario.serving)]))


def _limit(candidates: Candidates, row: Row, solution: Solution) -> Limit:
    base = row.name.split("@")[0]
    counted = "shapes" if "shapes" in row.label or "owned" in base else "devices"
    whole, _ = candidates.scenario.limits.whole.get(base, (counted, 0))
    unit, divide = _TOLD.get(whole, (whole, 1.0))
    return {
        "name": row.name,
        "label": row.label,
        "bound": row.bound / divide,
        "used": _used(row, solution) / divide,
        "unit": unit,
        "binding": binds(candidates, row, solution),
    }


def _used(row: Row, solution: Solution) -> int:
    return int(np.dot(row.coefficients, solution.units[row.columns]))
