"""Rows of a fleet whose rates are given."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planner.candidates.program import Task
from planner.candidates.rates import RatesQuestion, RatesTable
from planner.candidates.search import Candidates
from planner.catalog.given import GIVEN
from planner.estimate.given import known
from planner.optimize.solve import Solution
from planner.plan.rows.calendar import timing_of
from planner.plan.rows.fleet_cells import fleet_cells
from planner.plan.rows.place import NO_ENERGY, place_document, usd
from planner.plan.rows.serving import routed_load
from planner.plan.rows.serving_cells import load_cells, price_cells
from planner.scenario.schema import ServingFleet

if TYPE_CHECKING:
    from planner.plan.model.fleet import FleetFigures, ServingAllocation, ServingCells


def given_cells(
    fleet: ServingFleet, rates: Sequence[float], sent: Sequence[float], units: int, needed: int, cost: int, hours: float
) -> ServingCells:
    """Everything in a row that follows from the file and from what is sent to it.

    Parameters
    ----------
    fleet
        One whose rates are given.
    rates
        Of one unit on each bucket alone.  [requests/s]
    sent
        Of each bucket to all units, at the peak.  [requests/s]
    units
        Chosen ones; each is one replica and counts as one device.
    needed
        Of these without spares.
    cost
        Of all units over the horizon.  [micro-USD]
    hours
        The horizon, over which they run.  [h]
    """
    loads = load_cells(fleet, rates, sent, units)
    cells: ServingCells = {
        "layout": {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1},
        "role": "whole",
        "devices_per_replica": 1,
        "replicas": units,
        "replicas_needed": needed,
        "hours": hours,
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "device_hours": units * hours,
        **loads,
        **price_cells(fleet, cost, loads, units, hours),
        "batch": None,
        "tpot_s": None,
        "prefill_s": None,
        "decode_terms_s": {},
        "binds": "given rate",
        "point": None,
        **NO_ENERGY,  # type: ignore[typeddict-item]  # no level: they always run
        "tier": {
            "tier": "measured",
            "engine": "",
            "family": GIVEN,
            "constants": "",
            "tag": GIVEN,
            "inherited_from": "",
            "tpot": None,
            "ttft": None,
            "throughput": None,
            "confidence": fleet.confidence_share,
        },
        "memory": {"needed_bytes": 0.0, "usable_bytes": 0.0, "free_bytes": 0.0, "terms_bytes": {}},
    }
    found: ServingCells = known(cells)
    return found


def given_fleet_cells(
    fleet: ServingFleet, rows: Sequence[ServingAllocation], spares: int, hours: float
) -> FleetFigures:
    """The figures of such a fleet over all its rows; None for those that need lengths that nobody gave.

    Parameters
    ----------
    fleet
        One whose rates are given.
    rows
        Its allocations as they stand in the plan.
    spares
        Replicas that may be lost.
    hours
        The horizon.  [h]
    """
    numbers: list[ServingAllocation] = []
    for row in rows:
        each = row["output_tokens_per_s_per_replica"]
        numbers.append({**row, "output_tokens_per_s_per_replica": math.nan if each is None else each})
    found: FleetFigures = known(fleet_cells(fleet, numbers, spares, hours))
    return found


def given_rows(candidates: Candidates, solution: Solution, task: Task, table: RatesTable) -> list[ServingAllocation]:
    """The chosen offers of a fleet whose rates are given, as rows of the plan document.

    Parameters
    ----------
    candidates
        The ways that the plan is made of.
    solution
        Units and flows of each column of their program.
    task
        The fleet in that program.
    table
        Of the fleet.
    """
    question = candidates.questions[task.name]
    assert isinstance(question, RatesQuestion)
    chosen = [c for c in range(task.first, task.stop) if solution.units[c] > 0]
    routed = routed_load(candidates, solution, task, chosen)
    rows: list[ServingAllocation] = []
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
        yield f"{fleet.name}: replicas planned to {fleet.target_load:.0%} of the full load"
    yield f"{fleet.name}: rates and prices as given; loads of buckets add up; each offer counts as one device"
