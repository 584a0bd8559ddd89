"""The rows of one fleet against its demand: memory, speed, latencies, peak, spares, money.

Shares the estimates with the search, not the search: every rate and latency is worked out again from the row's own
facts, and what is sent where is held against what is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from planner.architecture.model import Architecture
from planner.catalog.model import Catalog
from planner.estimate.kernels import lacks_kernels
from planner.estimate.resolve import peaks_of
from planner.estimate.resolve_serving import bucket_demands, fleet_levels, level_demands
from planner.estimate.serving import ServingSpec, given_throughput_capacity, serving_capacity
from planner.estimate.serving_fleet import ROLES, WHOLE
from planner.estimate.serving_tiers import fleet_engine
from planner.plan.checks.cells import energy_cells, memory_cells
from planner.plan.checks.exact import exact_cost
from planner.plan.checks.findings import TOLERANCE, Finding, cell_findings
from planner.plan.checks.layout import serving_layout_findings
from planner.plan.checks.routing import routing_findings
from planner.plan.rows.facts import OfferFacts
from planner.plan.rows.fleet_cells import fleet_cells
from planner.plan.rows.serving_cells import load_cells, price_cells, speed_cells
from planner.plan.rows.serving_point import ReplicaSite
from planner.scenario.schema import Scenario, ServingFleet

Document = dict[str, Any]
MICRO = 1_000_000


def serving_findings(
    fleet: ServingFleet,
    scenario: Scenario,
    catalog: Catalog,
    arch: Architecture,
    rows: Sequence[tuple[Document, OfferFacts | None]],
    stated: Document,
) -> Iterator[Finding]:
    """Everything wrong with the rows of a fleet; `stated` is what the plan says of all of them together."""
    spares = fleet.spare_replicas if fleet.availability is None else stated["spare_replicas"]
    carried: list[tuple[Document, list[int]]] = []  # rows with the planned micro-requests/s of one replica by bucket
    for row, facts in rows:
        if facts is None:
            continue
        problems = list(serving_layout_findings(fleet.name, arch, row["layout"], facts.shape, fleet_engine(fleet)))
        problems = problems or list(_legal(fleet, row, facts))
        yield from problems
        if problems:
            continue
        one = _replica(fleet, arch, catalog, row, facts)
        rates = _rates(one)
        yield from _row(fleet, scenario, catalog, row, facts, one, rates)
        kept = row["share_kept"]
        if not 0 < kept <= 1:
            yield Finding("wrong-load", f"{fleet.name}: {kept:g} of the rates of {row['offer']} may not be planned")
        carried.append((row, [math.floor(rate * kept * fleet.target_load * MICRO + 1e-6) for rate in rates]))
    levels = fleet_levels(fleet, scenario.horizon_s)
    yield from routing_findings(fleet, bucket_demands(fleet), carried, spares, level_demands(fleet, levels))
    known = [row for row, facts in rows if facts is not None]
    yield from _counts(fleet, known, spares)
    yield from _spares(fleet, stated)
    cells = fleet_cells(fleet, known, spares, scenario.horizon_s / 3600.0)
    yield from cell_findings("wrong-fleet", fleet.name, stated, cells)


def _replica(
    fleet: ServingFleet, arch: Architecture, catalog: Catalog, row: Document, facts: OfferFacts
) -> ReplicaSite:
    return ReplicaSite(
        fleet=fleet,
        arch=arch,
        catalog=catalog,
        device=facts.device,
        shape=facts.shape,
        inter_node_bytes_per_s=facts.inter_node_bytes_per_s,
        split=row["layout"],
        role=ROLES.index(row["role"]),
    )


def _row(
    fleet: ServingFleet,
    scenario: Scenario,
    catalog: Catalog,
    row: Document,
    facts: OfferFacts,
    one: ReplicaSite,
    rates: Sequence[float],
) -> Iterator[Finding]:
    """Everything wrong with one row."""
    routed, horizon = row["routed_requests_per_s"], scenario.horizon_s / 3600.0
    levels = fleet_levels(fleet, scenario.horizon_s)
    hours = horizon if levels is None else float(levels.hours_at_least[row["level"]])
    if row["level"] and levels is None:
        yield Finding("wrong-load", f"{fleet.name}: {row['offer']} is scaled, and the fleet is not")
    loads = load_cells(fleet, rates, routed, row["replicas"])
    speed = speed_cells(one, routed, row["replicas_needed"])
    terms, usable = speed.pop("memory")
    yield from _memory(fleet, row, terms, usable, float(np.max(one.memory(one.requests).missing_bytes)), rates)
    yield from cell_findings("wrong-speed", fleet.name, row, _split(loads, ("bucket_requests_per_s", *_SPEEDS)))
    if row["point"] is not None and speed["point"] is not None:  # each figure by its own size
        yield from cell_findings("wrong-speed", fleet.name, row["point"], speed.pop("point"))
    yield from cell_findings("wrong-speed", fleet.name, row, speed)
    if one.role != WHOLE and fleet.disaggregated == "false":
        yield Finding("not-allowed", f"{fleet.name}: {row['offer']} only serves {row['role']}, which is not asked for")
    yield from _missed(fleet, row)
    yield from _money(fleet, row, facts, hours)
    prices = price_cells(fleet, row["cost_microusd"], loads, row["replicas"], hours, horizon)
    load = {"hours": hours, "device_hours": row["devices"] * hours, **prices}
    load |= _split(loads, ("planned_requests_per_s", "load_at_peak", "mean_output_tokens"))
    yield from cell_findings("wrong-load", fleet.name, row, load)
    yield from cell_findings("wrong-energy", fleet.name, row, energy_cells(catalog, facts, row["count"], hours))


_SPEEDS = ("replica_requests_per_s", "output_tokens_per_s_per_replica")


def _split(cells: Document, names: Sequence[str]) -> Document:
    return {name: cells[name] for name in names}


def _legal(fleet: ServingFleet, row: Document, facts: OfferFacts) -> Iterator[Finding]:
    split, per_shape = row["layout"], facts.shape.devices
    if lacks_kernels(fleet, facts.device):
        yield Finding("no-kernels", f"{fleet.name}: its engine does not serve {fleet.weights} on {facts.device.id}")
    devices = split["tp"] * split["pp"] * split["dp"]
    if devices != row["devices_per_replica"]:
        yield Finding("illegal-layout", f"{fleet.name}: tp·pp·dp = {devices}, not {row['devices_per_replica']}")
    shapes_each = -(-devices // per_shape)
    fitting = row["count"] * (per_shape // devices) if devices <= per_shape else row["count"] // shapes_each
    if not 1 <= row["replicas"] <= fitting:
        yield Finding("wrong-count", f"{fleet.name}: {row['replicas']} replicas do not fit {row['count']} shapes")
    if shapes_each > 1 and facts.inter_node_bytes_per_s is None:
        yield Finding("network-unknown", f"{fleet.name}: a replica on {row['offer']} may not span shapes")


def _memory(
    fleet: ServingFleet, row: Document, stated: dict[str, float], usable: float, missing: float, rates: Sequence[float]
) -> Iterator[Finding]:
    # the cache of a model of unknown shape is not counted, as the plan's warning says
    terms = {name: 0.0 if math.isnan(value) else value for name, value in stated.items()}
    needed, memory = sum(terms.values()), row["memory"]
    if not math.isclose(memory["needed_bytes"], needed, rel_tol=TOLERANCE):
        yield Finding("wrong-memory", f"{fleet.name}: {memory['needed_bytes']:.6g} B stated, {needed:.6g} B computed")
    if not math.isclose(memory["usable_bytes"], usable, rel_tol=TOLERANCE):
        yield Finding("wrong-memory", f"{fleet.name}: usable {memory['usable_bytes']:.6g} B stated, {usable:.6g} B")
    yield from cell_findings("wrong-memory", fleet.name, memory, memory_cells(terms, usable), scale=usable)
    if missing > 0 and not any(rates):
        yield Finding("does-not-fit", f"{fleet.name}: {missing:.6g} B per device are missing")


def _rates(one: ReplicaSite) -> list[float]:
    """Requests per second of one full replica on each bucket alone."""
    fleet, requests = one.fleet, one.requests
    given, layout = fleet.throughput_tokens_per_s_per_device, one.replicas.replica.layout
    if one.analytic:
        return [float(rate) for rate in one.bucket_rates()]
    fits = np.asarray(one.memory(requests.mixed(np.asarray(fleet.traffic.share))).missing_bytes).reshape(-1)[0] <= 0
    if not fits:
        return [0.0] * len(requests.input_tokens)
    if given is not None:
        return [float(given_throughput_capacity(given, layout, tokens)) for tokens in requests.output_tokens]
    return _roofline_rates(one)


def _roofline_rates(one: ReplicaSite) -> list[float]:
    fleet, requests = one.fleet, one.requests
    peaks = peaks_of(one.arch, fleet.weights, one.device, one.shape)
    memory = one.memory(requests.mixed(np.asarray(fleet.traffic.share)))
    rates = []
    for given, made in zip(requests.input_tokens, requests.output_tokens):
        spec = ServingSpec(
            weights=fleet.weights, kv_cache=fleet.kv_cache, input_tokens=float(given), output_tokens=float(made)
        )
        layout, machine = one.replicas.replica.layout, one.replicas.replica.machine
        found = serving_capacity(one.arch, spec, layout, machine, peaks=peaks, memory=memory)
        rates.append(float(np.asarray(found.requests_per_s).reshape(-1)[0]))
    return rates


def _missed(fleet: ServingFleet, row: Document) -> Iterator[Finding]:
    """Targets that the row's own figures miss."""
    point = row["point"] or {"requests_per_s": 0.0}
    for target in point["targets"] if point["requests_per_s"] > 0 else ():
        if target["at_confidence_s"] is None or target["at_confidence_s"] > target["target_s"] * (1 + TOLERANCE):
            said = "not stable" if target["at_confidence_s"] is None else f"{target['at_confidence_s']:.6g} s"
            yield Finding(
                "target-missed", f"{fleet.name}: {target['name']} is {said}, {target['target_s']:.6g} s asked"
            )


def _money(fleet: ServingFleet, row: Document, facts: OfferFacts, hours: float) -> Iterator[Finding]:
    """One unit is rounded once; a row is whole units."""
    per_shape, devices = facts.shape.devices, row["devices_per_replica"]
    nodes = max(devices // per_shape, 1)
    unit = exact_cost(nodes, facts.offer.price_microusd_per_hour, hours)
    units, rest = divmod(row["count"], nodes)
    if rest:
        yield Finding("wrong-count", f"{fleet.name}: {row['count']} shapes in units of {nodes}")
    if row["cost_microusd"] != units * unit:
        yield Finding("wrong-cost", f"{fleet.name}: {row['cost_microusd']} stated, {units * unit} computed")


def _spares(fleet: ServingFleet, stated: Document) -> Iterator[Finding]:
    """Spares as asked for, or as many as hold the availability asked for."""
    if fleet.availability is None and stated["spare_replicas"] != fleet.spare_replicas:
        text = f"{stated['spare_replicas']} spares, {fleet.spare_replicas} asked for"
        yield Finding("wrong-fleet", f"{fleet.name}: {text}")
    if fleet.availability is not None and stated["availability"]["time_within_spares"] < fleet.availability:
        text = f"up {stated['availability']['time_within_spares']:.6%} of the time, {fleet.availability:.6%} asked for"
        yield Finding("demand-unmet", f"{fleet.name}: {text}")


def _counts(fleet: ServingFleet, rows: Sequence[Document], spares: int) -> Iterator[Finding]:
    """Replicas without spares, and the least number of them."""
    for row in rows:
        needed = row["replicas"] - spares if len(rows) == 1 else row["replicas"]
        yield from cell_findings("wrong-load", fleet.name, row, {"replicas_needed": needed})
    replicas = sum(row["replicas"] for row in rows)
    if replicas < fleet.min_replicas:
        yield Finding("demand-unmet", f"{fleet.name}: {replicas} replicas, at least {fleet.min_replicas} asked for")
