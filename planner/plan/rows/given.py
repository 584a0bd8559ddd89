"""Rows of a fleet whose rates are given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.candidates.program import Task
from planner.candidates.rates import RatesQuestion, RatesTable
from planner.candidates.search import Candidates
from planner.optimize.solve import Solution
from planner.plan.checks.given import given_cells
from planner.plan.rows.calendar import timing_of
from planner.plan.rows.place import place_document
from planner.plan.rows.serving import routed_requests_per_s

Document = dict[str, Any]


def given_rows(candidates: Candidates, solution: Solution, task: Task, table: RatesTable) -> list[Document]:
    """The chosen offers of a fleet whose rates are given, as rows of the plan document."""
    question = candidates.questions[task.name]
    assert isinstance(question, RatesQuestion)
    chosen = [c for c in range(task.first, task.stop) if solution.units[c] > 0]
    routed = routed_requests_per_s(candidates, solution, task, chosen)
    rows = []
    for place, column in enumerate(chosen):
        row, units = int(candidates.rows[column]), int(solution.units[column])
        site = table.sites[row]
        placed = place_document(site, units)
        rates = [float(rate) for rate in table.bucket_requests_per_s[row]]
        sent = [float(rate) for rate in routed[place]]
        needed = units - task.spare_replicas if len(chosen) == 1 else units
        timing = timing_of(candidates, solution, task, column, site, 0.0, table.horizon_hours)
        cells = given_cells(question.fleet, rates, sent, units, needed, timing.cost_microusd, table.horizon_hours)
        rows.append({**placed, **timing.cells, **cells})
    return rows


def given_assumptions(question: RatesQuestion) -> Iterator[str]:
    """What was not in the scenario."""
    fleet = question.fleet
    if fleet.peak_factor_given is None:
        yield f"{fleet.name}: peak {fleet.peak_factor:g} × the mean rate"
    if "target_load" not in fleet.model_fields_set:
        yield f"{fleet.name}: replicas planned to {fleet.target_load:.0%} of what they can"
    yield f"{fleet.name}: rates and prices as given; loads of buckets add up; each offer counts as one device"
