"""The rows of a fleet in a plan: what is rented, what is sent to it, what it does at that load, what it costs.

Rates of its replicas are predicted, or given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from planner.candidates.offers import Site
from planner.candidates.program import Task
from planner.candidates.rates import RatesQuestion, RatesTable
from planner.candidates.search import Candidates
from planner.candidates.serving import ServingQuestion, ServingTable
from planner.catalog.offers import GIVEN
from planner.estimate.given import known
from planner.estimate.serving_fleet import DECODE, PREFILL, ROLES, WHOLE
from planner.optimize.solve import Solution
from planner.plan.rows.calendar import timing_of
from planner.plan.rows.fleet_cells import fleet_cells, load_cells, price_cells, speed_cells, users_cells
from planner.plan.rows.pools import Stand, stands_of
from planner.plan.rows.row_cells import NO_ENERGY, energy_document, memory_document, place_document, usd
from planner.plan.rows.serving_point import ReplicaSite
from planner.scenario.schema import ServingFleet

if TYPE_CHECKING:
    from planner.plan.model.fleet import FleetFigures, OnShared, OwnMix, ServingAllocation, ServingCells, ServingLayout
    from planner.plan.model.rows import Place


MICRO = 1_000_000
NEAR = 1e-6  # of all requests


def serving_rows(
    candidates: Candidates, solution: Solution, task: Task, table: ServingTable
) -> list[ServingAllocation]:
    """The chosen columns of a fleet as rows of the plan document.

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
    chosen = [c for c in range(task.first, task.stop) if solution.units[c] > 0]
    routed = routed_load(candidates, solution, task, chosen)
    stands = stands_of(candidates, solution)
    return [
        _row(candidates, solution, task, table, column, routed[place], len(chosen), stands.get(column))
        for place, column in enumerate(chosen)
    ]


def routed_load(candidates: Candidates, solution: Solution, task: Task, chosen: Sequence[int]) -> NDArray[np.float64]:
    """Peak requests of each bucket that go to each chosen column, (columns, buckets); or users by what they send.

    Requests of one bucket go to the replicas in proportion to what they can take; so do those of a mix, which each
    replica takes as the traffic brings them.

    Parameters
    ----------
    candidates
        The ways that the plan is made of.
    solution
        Units and flows of each column of their program.
    task
        The fleet in that program.
    chosen
        Columns of it with units.
    """
    question, demands = candidates.questions[task.name], np.asarray(task.demand_micro_per_s, dtype=np.float64)
    assert isinstance(question, ServingQuestion)
    columns, program = list(chosen), candidates.program
    if question.blended:
        table = candidates.tables[task.name]
        assert isinstance(table, ServingTable)
        capacity = program.capacity_micro_per_s[columns, : len(demands)] * solution.units[columns, None].astype(float)
        traffic = question.fleet.traffic
        peak = np.asarray(traffic.share) * traffic.peak_load
        mix = table.mix[candidates.rows[columns]]
        if (mix >= question.listed_mixes).any():
            return _as_they_can(capacity, demands) * peak
        return _at_their_mixes(capacity, mix == 0, demands) * peak
    if len(demands) == 1 and not program.role[columns].any():
        capacity = program.capacity_micro_per_s[columns, :1].astype(np.float64) * solution.units[columns, None]
        return np.asarray(capacity / max(capacity.sum(), 1.0) * (demands / MICRO))
    flows = np.asarray(solution.flows, dtype=np.float64)[columns, : len(demands)]
    table = candidates.tables[task.name]
    assert isinstance(table, ServingTable)
    rows = candidates.rows[columns]
    kinds = table.places[rows] * len(ROLES) + table.role[rows]
    flows = _exact(flows, table.role[rows], demands) / MICRO
    replicas = (program.replicas[columns] * solution.units[columns]).astype(np.float64)
    return flows if task.integer_slices else _evened(flows, kinds, replicas)


def _at_their_mixes(
    capacity: NDArray[np.float64], whole: NDArray[np.bool_], demands: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Share of each bucket's requests that goes to each column, (columns, buckets).

    Replicas of all buckets keep to the proportions of the traffic: with fewer of the short requests, which others have
    room for, the percentiles of what is left would be those of the long ones. All are as full as the fullest must be.

    Parameters
    ----------
    capacity
        Of all units of each column, by bucket; a column brings its rates of all of them at once.
    whole
        Columns that serve all buckets, in the proportions of the demands; others serve one each.
    """
    asked = demands > 0
    mixed, alone = capacity[whole].sum(axis=0), capacity[~whole].sum(axis=0)
    covered = float((mixed[asked] / demands[asked]).min(initial=np.inf)) if whole.any() else 0.0
    filled = float((demands[asked] / np.maximum(alone[asked] + covered * demands[asked], 1e-300)).max(initial=0.0))
    together = min(filled * covered, 1.0)
    shares = np.zeros_like(capacity)
    shares[whole] = together * capacity[whole] / np.maximum(mixed, 1e-300)
    shares[~whole] = (1.0 - together) * capacity[~whole] / np.maximum(alone, 1e-300)
    return shares


def _as_they_can(capacity: NDArray[np.float64], demands: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of each bucket's requests that goes to each column, where some serve mixes of their own.

    Each is sent its mix, in the parts that add up to the demands; where no parts do, what it can take of each bucket.

    Parameters
    ----------
    capacity
        Of all units of each column, by bucket.
    """
    asked = demands > 0
    parts = np.linalg.lstsq(capacity[:, asked].T, demands[asked], rcond=None)[0]
    sent = parts[:, None] * capacity
    off = np.abs(sent.sum(axis=0) - demands)
    if (off > NEAR * demands.sum()).any() or (parts < 0).any() or (parts > 1).any():
        sent = capacity
    return np.asarray(sent / np.maximum(sent.sum(axis=0), 1e-300) * asked)


def _exact(flows: NDArray[np.float64], role: NDArray[np.int64], demands: NDArray[np.float64]) -> NDArray[np.float64]:
    """Flows that add up to the demand of each bucket in each role, whatever the solver rounded."""
    whole, exact = flows[role == WHOLE].sum(axis=0), flows.copy()
    served = np.minimum(whole, demands)
    if not role.any():
        served = demands
    for part, wanted in ((WHOLE, served), (PREFILL, demands - served), (DECODE, demands - served)):
        mine = role == part
        exact[mine] = flows[mine] / np.maximum(flows[mine].sum(axis=0), 1e-300) * wanted
    return exact


def _evened(flows: NDArray[np.float64], kinds: NDArray[np.int64], replicas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equal replicas take equal shares of what is sent to their kind, whatever they are rented from."""
    shared = np.zeros_like(flows)
    for kind in np.unique(kinds):
        mine = kinds == kind
        shared[mine] = flows[mine].sum(axis=0) * (replicas[mine] / replicas[mine].sum())[:, None]
    return shared


def replica_site(question: ServingQuestion, site: Site, split: dict[str, int], role: int) -> ReplicaSite:
    """One replica of a fleet on a site.

    Parameters
    ----------
    question
        The fleet, and what was answered of its replicas before.
    site
        Where the replica stands.
    split
        Degrees of its layout: tp, pp, dp, ep, cp.
    role
        WHOLE, PREFILL or DECODE.
    """
    return ReplicaSite(
        recall=question.recall,
        fleet=question.fleet,
        arch=question.arch,
        catalog=question.catalog,
        device=site.device,
        shape=site.shape,
        inter_node_bytes_per_s=site.inter_node_bytes_per_s,
        split=split,
        role=role,
    )


def _row(
    candidates: Candidates,
    solution: Solution,
    task: Task,
    table: ServingTable,
    column: int,
    routed: NDArray[np.float64],
    kinds: int,
    stand: Stand | None,
) -> ServingAllocation:
    question, row = candidates.questions[task.name], int(candidates.rows[column])
    units, program = int(solution.units[column]), candidates.program
    assert isinstance(question, ServingQuestion)
    site, split = table.sites[row], table.layout_row(row)
    shapes, replicas = units * int(program.nodes[column]), units * int(program.replicas[column])
    timing = timing_of(candidates, solution, task, column, site, 0.0, table.horizon_hours)
    cost, hours = timing.cost_microusd if stand is None else stand.cost_microusd, table.hours(row)
    each = table.devices_per_replica(row)
    place: Place = {**place_document(site, shapes)}
    if stand is not None:
        place |= {"count": len(stand.nodes), "devices": replicas * each}
    needed = replicas - task.spare_replicas if kinds == 1 else replicas
    role = int(table.role[row])
    one = replica_site(question, site, split, role)
    alone = np.broadcast_to(table.bucket_requests_per_s[row], (len(question.fleet.traffic.share),))
    sent = [float(part) for part in routed]
    rates, requests, users = users_cells(one, [float(rate) for rate in alone], sent, needed)
    loads = load_cells(question.fleet, rates, requests, replicas)
    speed = speed_cells(one, sent, needed)
    terms = {name: _known(value) for name, value in speed.terms_bytes.items()}
    priced = cost if timing.cells["reserved_pool"] is None else None
    tokens = price_cells(question.fleet, priced, loads, replicas, hours, table.horizon_hours)
    return {
        **place,
        **timing.cells,
        "role": ROLES[role],
        "level": int(table.level[row]),
        "layout": cast("ServingLayout", split),  # its names are those of the row
        "devices_per_replica": each,
        "replicas": replicas,
        "replicas_needed": needed,
        "hours": hours,
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "device_hours": place["devices"] * hours,
        **loads,
        **users,
        "tier": speed.tier,
        "batch": speed.batch,
        **speed.predicted,
        **tokens,
        "memory": memory_document(terms, speed.usable_bytes),
        **energy_document(candidates.catalog, site, shapes if stand is None else float(stand.shapes), hours),
        **_own_mix(question, int(table.mix[row])),
        **_on_shared(stand),
    }


def _own_mix(question: ServingQuestion, mix: int) -> OwnMix:
    """Which of the fleet's own mixes a row serves, if any."""
    own = mix - question.listed_mixes if question.blended else -1
    return {"class_mix": own} if own >= 0 else {}


def _on_shared(stand: Stand | None) -> OnShared:
    """Where replicas stand that share their nodes."""
    return {} if stand is None else {"shared": list(stand.nodes)}


def _known(value: float) -> float:
    """A cache of unknown size counts as nothing."""
    return value if math.isfinite(value) else 0.0


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
