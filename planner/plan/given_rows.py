"""Rows of a fleet whose rates are given, and their check from the numbers of the file alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from planner.candidates.offers import Site
from planner.candidates.program import Task
from planner.candidates.rates import RatesQuestion, RatesTable, given_offers, known
from planner.candidates.search import Candidates
from planner.catalog.given import GIVEN
from planner.estimate.resolve_serving import bucket_demands
from planner.optimize.solve import Solution
from planner.plan.check_routing import routing_findings
from planner.plan.exact import exact_cost
from planner.plan.findings import Finding, cell_findings
from planner.plan.fleet_cells import fleet_cells
from planner.plan.place import memory_document, place_document, usd
from planner.plan.serving_cells import load_cells, price_cells
from planner.plan.serving_rows import routed_requests_per_s
from planner.scenario.schema import Scenario, ServingFleet

Document = dict[str, Any]
MICRO = 1_000_000
TIER: Document = {
    "tier": "measured",
    "engine": "",
    "family": GIVEN,
    "constants": "",
    "tag": GIVEN,
    "inherited_from": "",
    "tpot": None,
    "ttft": None,
}
_UNKNOWN: Document = {
    "batch": None,
    "tpot_s": None,
    "prefill_s": None,
    "decode_terms_s": {},
    "binds": "given rate",
    "point": None,
    "share_kept": 1.0,
    "power_w": None,
    "carbon_kg": None,
}


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
        cost = table.cost_microusd[row] * units
        rows.append({**placed, **_cells(question.fleet, rates, sent, units, needed, cost, table.horizon_hours)})
    return rows


def _cells(
    fleet: ServingFleet, rates: Sequence[float], sent: Sequence[float], units: int, needed: int, cost: int, hours: float
) -> Document:
    """Everything in a row that follows from the file and from what is sent to it."""
    loads = load_cells(fleet, rates, sent, units)
    found: Document = known(
        {
            "layout": {"tp": 1, "pp": 1, "dp": 1, "ep": 1},
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
            **_UNKNOWN,
            "tier": {**TIER, "confidence": fleet.confidence_share},
            "memory": memory_document({}, 0.0),
        }
    )
    return found


def given_fleet_cells(fleet: ServingFleet, rows: Sequence[Document], spares: int, hours: float) -> Document:
    """The figures of such a fleet over all its rows; None for those that need lengths that nobody gave."""
    name = "output_tokens_per_s_per_replica"
    numbers = [{**row, name: math.nan if row[name] is None else row[name]} for row in rows]
    found: Document = known(fleet_cells(fleet, numbers, spares, hours))
    return found


def given_assumptions(question: RatesQuestion) -> Iterator[str]:
    """What was not in the scenario."""
    fleet = question.fleet
    if fleet.peak_factor_given is None:
        yield f"{fleet.name}: peak {fleet.peak_factor:g} × the mean rate"
    if "target_load" not in fleet.model_fields_set:
        yield f"{fleet.name}: replicas planned to {fleet.target_load:.0%} of what they can"
    yield f"{fleet.name}: rates and prices as given; loads of buckets add up; each offer counts as one device"


def given_findings(
    fleet: ServingFleet, scenario: Scenario, rows: Sequence[Document], stated: Document
) -> Iterator[Finding]:
    """Everything wrong with the rows of a fleet whose rates are given, from the file read again."""
    rates = fleet.rates
    assert rates is not None
    offers = {one.offer.id: (one, place) for place, one in enumerate(_own(scenario, fleet))}
    hours, spares = scenario.horizon_s / 3600.0, stated["spare_replicas"]
    if fleet.availability is None and spares != fleet.spare_replicas:
        yield Finding("demand-unmet", f"{fleet.name}: {spares} spares, {fleet.spare_replicas} asked for")
    carried: list[tuple[Document, list[int]]] = []
    for row in rows:
        if row["offer"] not in offers:
            yield Finding("unknown-offer", f"{fleet.name}: the table of rates has no offer {row['offer']!r}")
            continue
        one, place = offers[row["offer"]]
        price = one.price_microusd_per_hour
        if row["price_microusd_per_hour"] != price:
            yield Finding("wrong-price", f"{fleet.name}: {row['price_microusd_per_hour']} stated, given is {price}")
        each = [float(rate) for rate in rates.max_requests_per_s[place]]
        cost = exact_cost(1, price, hours) * row["count"]
        if row["cost_microusd"] != cost:
            yield Finding("wrong-cost", f"{fleet.name}: {row['cost_microusd']} stated, {cost} computed")
        needed = row["count"] - spares if len(rows) == 1 else row["count"]
        cells = _cells(fleet, each, row["routed_requests_per_s"], row["count"], needed, cost, hours)
        site = Site(offer=one.offer, shape=one.shape, device=one.device)
        place_cells = place_document(site, row["count"])
        yield from cell_findings("wrong-load", fleet.name, row, {**place_cells, **cells})
        carried.append((row, [math.floor(rate * fleet.target_load * MICRO + 1e-6) for rate in each]))
    yield from routing_findings(fleet, bucket_demands(fleet), carried, spares)
    if sum(row["replicas"] for row in rows) < fleet.min_replicas:
        yield Finding("demand-unmet", f"{fleet.name}: fewer than {fleet.min_replicas} replicas")
    yield from cell_findings("wrong-fleet", fleet.name, stated, given_fleet_cells(fleet, rows, spares, hours))


def _own(scenario: Scenario, fleet: ServingFleet) -> list[Any]:
    return [one for one in given_offers(scenario) if one.fleet == fleet.name]
