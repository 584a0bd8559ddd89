"""The columns that a bound rests on, recomputed by the verifier's own code.

A bound is as good as the columns that it is the least of. Those of each workload that weigh least at the prices of the
certificate (of a fleet: for what they earn) are written down as rows of a plan, a whole workload on each, and held
against `planner.checks`: price, memory, legality, time, rate and cost from the scenario, the catalog and the
equations. What the listing says of a column it must also charge in the bound. Left out are calendars, where a column
is a start as well, tables of given rates, and pools of one role or one level, which serve with others only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from planner.architecture.model import Architecture
from planner.candidates.program import WHOLE, FloatArray, IntArray, Task
from planner.candidates.rates import RatesQuestion
from planner.candidates.search import Candidates, with_tables
from planner.candidates.serving import ServingQuestion, ServingTable
from planner.candidates.training_question import TrainingQuestion
from planner.carriers import dataclass
from planner.checks.allocation import AllocationCheck
from planner.checks.findings import Finding
from planner.plan.certificate import settled
from planner.plan.document import fleet_document
from planner.plan.least_weights import line_of, parts_of, priced_weights
from planner.plan.rows.allocations import allocations_of
from planner.plan.rows.pools import alone_on_shared
from planner.scenario.schema import ModelRef

if TYPE_CHECKING:
    from planner.optimize.solve import Solution
    from planner.plan.model.others import Selection
    from planner.plan.model.plan import Workload

MOST_OF_JOB, MOST_OF_FLEET = 20, 4  # columns of each workload; the rate of a replica takes a search for each bucket
OF_THE_PLAN = ("limit-exceeded", "not-available")  # what depends on how many are run, of all columns together


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alone:
    """A whole workload on one column, as rows of a plan are made from it."""

    units: IntArray
    flows: FloatArray
    level_flows: tuple[FloatArray, ...]


def support_findings(
    candidates: Candidates, priced: Selection, load_model: Callable[[ModelRef | None], Architecture]
) -> Iterator[Finding]:
    """Where the verifier's own code does not agree with the columns that a bound rests on.

    Parameters
    ----------
    candidates
        Every column of the scenario.
    priced
        The prices of a certificate.
    """
    if candidates.whole_calendar is not None:
        return
    candidates = settled(candidates, priced)
    whole = _over_all(candidates)
    weights = priced_weights(whole.program, priced)
    for asked in candidates.scenario.workloads:
        task = next(one for one in whole.program.tasks if one.name == asked.name)
        question = candidates.questions[task.name]
        if isinstance(question, RatesQuestion):
            continue
        under_way = question.under_way if isinstance(question, TrainingQuestion) else None
        if under_way is not None:
            continue
        check = AllocationCheck(
            scenario=candidates.scenario, catalog=candidates.catalog, arch=load_model(asked.model), under_way=None
        )
        most = MOST_OF_JOB if task.kind == "training" else MOST_OF_FLEET
        columns = _least(whole, task, weights, priced)[:most]
        bounded, whole = whole, _exact(whole, task, columns)
        if (whole.program.capacity_micro_per_s > bounded.program.capacity_micro_per_s).any():
            yield Finding("wrong-column", f"{task.name}: a replica carries more than its bound")
        for column in columns:
            alone = None if _at_own_mix(whole, task, column) else _alone(whole, task, column)
            if alone is None:
                continue
            rows = allocations_of(whole, cast("Solution", alone), task)
            charged = int(whole.program.cost_microusd @ alone.units)
            if sum(row["cost_microusd"] for row in rows) != charged:
                yield Finding("wrong-column", f"{task.name}: {rows[0]['offer']} is charged {charged} in the bound")
            told = {"allocations": rows, "fleet": fleet_document(whole, question, task, rows)}
            for finding in check.workload(asked, cast("Workload", told)):  # which asks for no more of it
                if finding.reference not in OF_THE_PLAN:
                    yield Finding("wrong-column", f"a column of the bound, {rows[0]['offer']}: {finding.message}")


def _exact(candidates: Candidates, task: Task, columns: Sequence[int]) -> Candidates:
    """With exact rates of columns that only bounds were known of."""
    table, question = candidates.tables[task.name], candidates.questions[task.name]
    rows = [int(candidates.rows[column]) for column in columns]
    if isinstance(table, ServingTable) and isinstance(question, ServingQuestion):
        bounded = [row for row in rows if table.bounded(row)]
        if bounded:
            found = with_tables(candidates, {task.name: table.exactly(question, bounded)}, {})
            return _over_all(found)
    return candidates


def _over_all(candidates: Candidates) -> Candidates:
    """With every column in the program."""
    return replace(candidates, program=candidates.whole, rows=candidates.whole_rows, shared=candidates.whole_shared)


def _least(candidates: Candidates, task: Task, weights: Any, priced: Selection) -> list[int]:
    """Columns that weigh least, of a fleet those for what they earn."""
    columns, here = range(task.first, task.stop), weights[task.first : task.stop].tolist()
    if task.kind == "training":
        return sorted(columns, key=lambda k: (here[k - task.first], k))
    lines = [line for part in parts_of(priced["requests"], task) for line in part.lines]
    earned = line_of(candidates.program, task, lines[0])[0] if lines else [1] * len(here)
    able = [k for k in columns if earned[k - task.first] > 0]
    return sorted(able, key=lambda k: (Fraction(here[k - task.first], earned[k - task.first]), k))


def _at_own_mix(candidates: Candidates, task: Task, column: int) -> bool:
    """Whether a column serves a mix of the plan's own, in which the requests of a fleet do not come."""
    question, table = candidates.questions[task.name], candidates.tables[task.name]
    if not isinstance(question, ServingQuestion) or not isinstance(table, ServingTable) or not question.blended:
        return False
    return bool(table.mix[candidates.rows[column]] >= question.listed_mixes)


def _alone(candidates: Candidates, task: Task, column: int) -> _Alone | None:
    """The whole of a task on one column; None where that does not carry it."""
    program = candidates.program
    units = np.zeros(program.column_count, dtype=np.int64)
    flows = np.zeros(program.capacity_micro_per_s.shape)
    if task.kind == "training":
        units[column] = task.count
        _with_nodes(candidates, column, units)
        return _Alone(units=units, flows=flows, level_flows=(flows,))
    rates = program.capacity_micro_per_s[column].tolist()
    peak = task.demands[-1]
    if program.role[column] != WHOLE or program.level[column] or task.levels or not all(rates[: len(peak)]):
        return None
    replicas = max(int(program.replicas[column]), 1)
    spare, least = Fraction(task.spare_replicas, replicas), -(-task.min_replicas // replicas)
    loads = [Fraction(demand, rate) for demand, rate in zip(peak, rates)]
    load = spare + (max(loads) if task.boxed else sum(loads))
    units[column] = max(-(-load.numerator // load.denominator), least, 1)
    _with_nodes(candidates, column, units)
    flows[column, : len(peak)] = peak
    return _Alone(units=units, flows=flows, level_flows=(flows,))


def _with_nodes(candidates: Candidates, column: int, units: IntArray) -> None:
    """The nodes that a share stands on beside it."""
    if candidates.shared is not None and candidates.shared.is_share(column):
        node, count = alone_on_shared(candidates, column, int(units[column]))
        units[node] = count
