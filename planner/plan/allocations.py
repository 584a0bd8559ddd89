"""What was chosen, workload by workload: the rows of the candidates' own arrays, never recomputed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.candidates.machines import carbon_mg_per_hour, power_w
from planner.candidates.offers import Site
from planner.candidates.program import Task
from planner.candidates.search import Candidates
from planner.candidates.serving import ServingQuestion, ServingTable
from planner.candidates.training import TrainingTable
from planner.candidates.training_question import TrainingQuestion
from planner.estimate.binding import bound_by
from planner.estimate.utilisation import achieved_mfu
from planner.optimize.solve import Solution
from planner.plan.band_rows import row_band
from planner.plan.run_rows import run_document, split_document
from planner.plan.work_rows import busy_s_of, rule_hours, work_document

MICRO = 1_000_000
Document = dict[str, Any]


def usd(microusd: int) -> float:
    """Dollars for people; the exact figure is the integer beside it."""
    return microusd / MICRO


def allocations_of(candidates: Candidates, solution: Solution, task: Task) -> list[Document]:
    """The chosen columns of one workload, dearest first, as rows of the plan document."""
    chosen = [c for c in range(task.first, task.stop) if solution.units[c] > 0]
    table = candidates.tables[task.name]
    if isinstance(table, TrainingTable):
        rows = [_training(candidates, task, table, c, int(solution.units[c])) for c in chosen]
    else:
        rows = _serving_rows(candidates, solution, task, table, chosen)
    return sorted(rows, key=lambda row: (-row["cost_microusd"], row["offer"]))


def _place(site: Site, shapes: int) -> Document:
    offer, shape = site.offer, site.shape
    return {
        "offer": offer.id,
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone,
        "country": offer.country,
        "device": site.device.id,
        "shape": shape.id,
        "price_model": offer.price_model,
        "price_microusd_per_hour": offer.price_microusd_per_hour,
        "price_as_of": offer.provenance.as_of,
        "price_status": offer.provenance.status,
        "price_source": offer.provenance.source,
        "count": shapes,
        "devices": shapes * shape.devices,
        "devices_per_shape": shape.devices,
    }


def memory_document(terms: dict[str, float], usable_bytes: float) -> Document:
    """Needed against usable memory of one device, with its terms.  [B]"""
    needed = float(sum(terms.values()))
    return {
        "needed_bytes": needed,
        "usable_bytes": usable_bytes,
        "free_bytes": usable_bytes - needed,
        "terms_bytes": terms,
    }


def _energy(candidates: Candidates, site: Site, shapes: int, hours: float) -> Document:
    known = site.device.tdp_w is not None
    grid = (site.offer.provider, site.offer.region) in candidates.catalog.grids
    carbon = carbon_mg_per_hour(site, candidates.catalog) * shapes * hours / 1e6
    return {
        "power_w": power_w(site) * shapes if known else None,
        "carbon_kg": carbon if known and grid else None,
    }


def _training(candidates: Candidates, task: Task, table: TrainingTable, column: int, jobs: int) -> Document:
    row = int(candidates.rows[column])
    site, question = table.sites[row], candidates.questions[task.name]
    assert isinstance(question, TrainingQuestion)
    hours = float(table.finish_s[row]) / 3600.0
    shapes, devices = int(table.nodes[row]) * jobs, int(table.nodes[row]) * site.shape.devices
    cost, terms = table.cost_microusd[row] * jobs, table.time.row(row)
    memory = memory_document(table.memory.row(row), site.usable_bytes)
    figures = {"hours": hours, "cost_usd": usd(cost), "needed_bytes": memory["needed_bytes"]}
    return {
        **_place(site, shapes),
        "jobs": jobs,
        "layout": split_document(table.layout, row),
        "hours": hours,
        "finish_hours": question.job.start_s / 3600.0 + hours,
        "deadline_hours": (question.job.start_s + question.job.deadline_s) / 3600.0,
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "memory": memory,
        "time_terms_s": terms,
        "binds": bound_by(terms),
        "run": run_document(question, site, terms, devices, jobs),
        "step_time_ratio": question.step_time_ratio(site),
        **_speed(candidates, question, site, terms, devices),
        "error_band": row_band(question, site, figures),
        "device_hours": shapes * site.shape.devices * hours,
        **_energy(candidates, site, shapes, hours),
    }


def _speed(
    candidates: Candidates, question: TrainingQuestion, site: Site, terms: Mapping[str, float], devices: int
) -> Document:
    """The share of the peak that is sustained: asked of the rule, measured, or what the predicted time amounts to."""
    spec, machine = question.spec_on(site), question.machine(site)
    peak = site.device.peak_flop_per_s[question.job.precision] * site.shape.compute_share
    band, tier = question.band(site), question.tier(site)
    busy = busy_s_of(terms)
    mfu = float(machine.mfu)
    source = "scenario (measured)" if tier == "measured" else _rule_source(candidates, site)
    if tier == "analytic":
        mfu = achieved_mfu(question.arch, spec, busy, devices, peak)
        heir = f", inherited from {band.inherited_from}" if band.inherited_from else ""
        source = f"analytic tier, constants {band.family} {band.constants_id}{heir}"
    return {
        "mfu": mfu,
        "mfu_source": source,
        "peak_flop_per_s": peak,
        "work": work_document(question.arch, spec, busy, devices),
        "rule_hours": rule_hours(question.arch, spec, candidates.catalog, site.device.family, devices * peak),
    }


def _rule_source(candidates: Candidates, site: Site) -> str:
    rule = candidates.catalog.efficiencies[site.device.family]
    if rule.inherited_from:
        return f"rule tier, inherited from {rule.inherited_from}: {rule.provenance.source}"
    return f"rule tier, {rule.family}: {rule.provenance.source}"


def _serving_rows(
    candidates: Candidates, solution: Solution, task: Task, table: ServingTable, chosen: list[int]
) -> list[Document]:
    """Requests go to the chosen replicas in proportion to what they can take."""
    question = candidates.questions[task.name]
    assert isinstance(question, ServingQuestion)
    program = candidates.program
    units = {c: int(solution.units[c]) for c in chosen}
    capacity = {c: int(program.capacity_micro_per_s[c, 0]) * units[c] for c in chosen}
    whole = max(sum(capacity.values()), 1)
    peak = task.demand_micro_per_s[0] / MICRO
    return [
        _serving(candidates, question, table, column, units[column], peak * capacity[column] / whole, len(chosen))
        for column in chosen
    ]


def _serving(
    candidates: Candidates,
    question: ServingQuestion,
    table: ServingTable,
    column: int,
    units: int,
    planned_per_s: float,
    kinds: int,
) -> Document:
    row = int(candidates.rows[column])
    site, fleet = table.sites[row], question.fleet
    shapes, replicas = units * int(table.nodes[row]), units * int(table.replicas[row])
    each = float(table.requests_per_s[row])
    cost = table.cost_microusd[row] * units
    hours = table.horizon_hours
    terms, usable = table.memory_row(row)
    return {
        **_place(site, shapes),
        "layout": table.layout_row(row),
        "devices_per_replica": table.devices_per_replica(row),
        "replicas": replicas,
        "replicas_needed": replicas - fleet.spare_replicas if kinds == 1 else replicas,
        "replica_requests_per_s": each,
        "planned_requests_per_s": planned_per_s,
        "load_at_peak": planned_per_s / (each * replicas) if each else 0.0,
        **table.estimate_row(row),
        "output_tokens_per_s_per_replica": each * fleet.output_tokens,
        "hours": hours,
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "memory": memory_document(terms, usable),
        **_cost_per_token(question, cost, planned_per_s, each * replicas, hours),
        "device_hours": shapes * site.shape.devices * hours,
        **_energy(candidates, site, shapes, hours),
    }


def _cost_per_token(
    question: ServingQuestion, cost: int, planned_per_s: float, full_per_s: float, hours: float
) -> Document:
    """Cost of a million output tokens at the mean load that is planned, and with every replica full."""
    seconds, tokens = hours * 3600.0, question.fleet.output_tokens
    mean = planned_per_s / question.fleet.peak_factor * seconds * tokens
    full = full_per_s * seconds * tokens
    return {
        "usd_per_million_output_tokens_mean": usd(cost) / mean * 1e6 if mean else 0.0,
        "usd_per_million_output_tokens_full": usd(cost) / full * 1e6 if full else 0.0,
    }
