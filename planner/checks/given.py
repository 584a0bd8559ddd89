"""Cells of a fleet whose rates are given, and their check from the numbers of the file alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from planner.catalog.offers import GIVEN
from planner.checks.cells import NO_ENERGY, place_cells
from planner.checks.facts import exact_cost
from planner.checks.findings import Finding, cell_findings
from planner.checks.fleet_load import fleet_cells, load_cells, price_cells, routing_findings
from planner.checks.others import ranking_findings
from planner.estimate.given import given_offers, known
from planner.estimate.resolve_serving import bucket_demands
from planner.scenario.schema import Scenario, ServingFleet

if TYPE_CHECKING:
    from planner.plan.model.fleet import FleetFigures, ServingAllocation
    from planner.plan.model.plan import Alternative

MICRO = 1_000_000


def given_cells(
    fleet: ServingFleet, rates: Sequence[float], sent: Sequence[float], row: ServingAllocation, cost: int, hours: float
) -> Mapping[str, object]:
    """A row of a table of rates: each unit is one replica on one device, of which nothing else is known.

    Parameters
    ----------
    fleet
        One whose rates are given.
    rates
        Of each bucket alone, of one unit.  [requests/s]
    sent
        Of each bucket, to the whole row.  [requests/s]
    row
        Only its number of units counts.
    cost
        Of the whole row.  [micro-USD]
    hours
        The horizon, over which all units run.  [h]
    """
    loads, units = load_cells(fleet, rates, sent, row["count"]), row["count"]
    tier: dict[str, object] = dict.fromkeys(("engine", "constants", "inherited_from"), "")
    tier |= {"tier": "measured", "family": GIVEN, "tag": GIVEN, "tpot": None, "ttft": None, "throughput": None}
    tier["confidence"] = fleet.confidence_share
    nothing = dict.fromkeys(("needed_bytes", "usable_bytes", "free_bytes"), 0.0)
    found: Mapping[str, object] = known(
        {
            "layout": dict.fromkeys(("tp", "pp", "dp", "ep", "cp"), 1),
            "role": "whole",
            "devices_per_replica": 1,
            "replicas": units,
            "hours": hours,
            "cost_microusd": cost,
            "cost_usd": cost / 1e6,
            "device_hours": units * hours,
            **loads,
            **price_cells(fleet, loads, cost, units, hours, hours),
            **dict.fromkeys(("batch", "tpot_s", "prefill_s", "point")),
            **NO_ENERGY,
            "decode_terms_s": {},
            "binds": "given rate",
            "tier": tier,
            "memory": {**nothing, "terms_bytes": {}},
        }
    )
    return found


def given_findings(
    fleet: ServingFleet, scenario: Scenario, rows: Sequence[ServingAllocation], stated: FleetFigures
) -> Iterator[Finding]:
    """Everything wrong with the rows of a fleet whose rates are given, from the file read again.

    Parameters
    ----------
    fleet
        One whose rates are given.
    scenario
        The one that the plan carries, read.
    rows
        Rows of the fleet in the plan.
    stated
        What the plan says of the fleet as a whole.
    """
    rates = fleet.rates
    assert rates is not None
    offers = {one.offer.id: (one, place) for place, one in enumerate(_own(scenario, fleet))}
    hours, spares = scenario.horizon_s / 3600.0, stated["spare_replicas"]
    if fleet.availability is None and spares != fleet.spare_replicas:
        yield Finding("demand-unmet", f"{fleet.name}: {spares} spares, {fleet.spare_replicas} asked for")
    carried: list[tuple[ServingAllocation, list[int]]] = []
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
        cells = given_cells(fleet, each, row["routed_requests_per_s"], row, cost, hours)
        placed: dict[str, object] = {
            **place_cells(one.offer, one.shape),
            "devices": row["count"],
            "replicas_needed": needed,
        }
        placed |= {"funding": one.offer.price_model, "reserved_pool": None, "runs": None}
        placed |= {"start_hours": 0.0, "end_hours": hours}
        yield from cell_findings("wrong-load", fleet.name, row, {**placed, **cells})
        carried.append((row, [_planned_micro_per_s(fleet, rate) for rate in each]))
    yield from routing_findings(fleet, bucket_demands(fleet), carried, spares)
    if sum(row["replicas"] for row in rows) < fleet.min_replicas:
        yield Finding("demand-unmet", f"{fleet.name}: fewer than {fleet.min_replicas} replicas")
    numbers = [_number(row) for row in rows]
    yield from cell_findings("wrong-fleet", fleet.name, stated, known(fleet_cells(fleet, numbers, spares, hours)))


def given_alternative_findings(
    fleet: ServingFleet, scenario: Scenario, told: Sequence[Alternative]
) -> Iterator[Finding]:
    """Everything wrong with the other ways of such a fleet: one offer alone, enough of it to carry the peak.

    Parameters
    ----------
    fleet
        One whose rates are given.
    scenario
        The one that the plan carries, read.
    told
        The other ways in the plan.
    """
    rates = fleet.rates
    assert rates is not None
    yield from ranking_findings(fleet.name, told)
    offers = {one.offer.id: (one, place) for place, one in enumerate(_own(scenario, fleet))}
    hours = scenario.horizon_s / 3600.0
    for other in told:
        if other["offer"] not in offers:
            yield Finding("unknown-offer", f"{fleet.name}: the table of rates has no offer {other['offer']!r}")
            continue
        one, place = offers[other["offer"]]
        planned = [_planned_micro_per_s(fleet, float(rate)) for rate in rates.max_requests_per_s[place]]
        pairs = [pair for pair in zip(bucket_demands(fleet), planned) if pair[0]]
        if not all(rate for _, rate in pairs):
            yield Finding("demand-unmet", f"{fleet.name}: {other['offer']} does not serve every bucket")
            continue
        load = math.ceil(sum(Fraction(demand, rate) for demand, rate in pairs))
        units = max(load + fleet.spare_replicas, fleet.min_replicas, 1)
        cost = exact_cost(1, one.price_microusd_per_hour, hours) * units
        cells = {
            "device": one.shape.device,
            "count": units,
            "devices": units,
            "replicas": units,
            "layout": dict.fromkeys(("tp", "pp", "dp", "ep", "cp"), 1),
            "cost_microusd": cost,
            "cost_usd": cost / 1e6,
            "hours": hours,
            "note": "over the horizon",
            "tie": False,
        }
        yield from cell_findings("wrong-alternative", fleet.name, other, cells)


def _planned_micro_per_s(fleet: ServingFleet, requests_per_s: float) -> int:
    return math.floor(requests_per_s * fleet.target_load * MICRO + 1e-6)


def _number(row: ServingAllocation) -> ServingAllocation:
    """With nan where its tokens are not known."""
    rate = row["output_tokens_per_s_per_replica"]
    return {**row, "output_tokens_per_s_per_replica": math.nan if rate is None else rate}


def _own(scenario: Scenario, fleet: ServingFleet) -> list[Any]:
    return [one for one in given_offers(scenario) if one.fleet == fleet.name]
