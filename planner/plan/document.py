"""The plan document: everything a reader, a verifier or a later command needs, in plain JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from planner import __version__
from planner.candidates.blended import endless
from planner.candidates.program import Task
from planner.candidates.rates import RatesQuestion
from planner.candidates.search import Candidates
from planner.candidates.serving import ServingQuestion
from planner.candidates.training_question import TrainingQuestion
from planner.optimize.solve import Solution
from planner.plan.named import host_warnings, idle_warnings, named_of, network_warnings, rack_warnings
from planner.plan.notes.assumptions import assumptions_of, facts_of, notes_of, warnings_of
from planner.plan.parts import most_devices, rows_of, spent_on
from planner.plan.plainest import plain_document, ties_of
from planner.plan.plan_files import catalog_used
from planner.plan.proof import summary_proof
from planner.plan.reasons import (
    IN_HASTE,
    MOST_ALTERNATIVES,
    MOST_IN_HASTE,
    alternatives_of,
    because_of,
    kinds_of,
    on_sure_units,
)
from planner.plan.rows.allocations import allocations_of
from planner.plan.rows.bands import budget_warnings, cost_band, margins_document, workload_band
from planner.plan.rows.calendar import calendar_document
from planner.plan.rows.costs_beside import elsewhere_of, owned_hours
from planner.plan.rows.crosscheck import cross_checks, term_sources
from planner.plan.rows.fleet_cells import fleet_cells
from planner.plan.rows.limits import limits_of
from planner.plan.rows.pools import idle_devices, shared_rows
from planner.plan.rows.row_cells import under_way_document, usd
from planner.plan.rows.serving import given_fleet_cells

if TYPE_CHECKING:
    from planner.plan.model.bought import Bought, SharedNodesRow
    from planner.plan.model.fleet import FleetFigures, ServingAllocation
    from planner.plan.model.others import Certificate, Infeasible, Reason, Rejected, Simulated, SingleKind
    from planner.plan.model.plan import Allocation, PlanDocument, Provenance, Status, Summary, Workload

SCHEMA: Final = "plan/result/v1"
STATUS_WITH_PLAN = ("optimal", "feasible")


def build_document(
    candidates: Candidates,
    solution: Solution,
    *,
    proposed: tuple[Candidates, Solution] | None = None,
    weighed: bool = False,
    single_kind: SingleKind | None = None,
    infeasible: Infeasible | None = None,
    median_microusd: int | None = None,
    certificate: Certificate | None = None,
    seed: int = 0,
    threads: int = 1,
    gap: float = 0.0,
    over: Callable[[], bool] = endless,
) -> PlanDocument:
    """The plan as a JSON document; its `sha256` covers everything else in it.

    Parameters
    ----------
    proposed
        The plan that is proposed, where that is not the cheapest one, and its ways; all that is told beside it is
        worked out of the cheapest.
    weighed
        Whether a plainer plan was looked for.
    over
        Whether the time is up: ways on other devices are then told as far as they are known.
    """
    scenario = candidates.scenario
    candidates = on_sure_units(candidates, over)
    has_plan = solution.status in STATUS_WITH_PLAN
    asked = [task for task in candidates.program.tasks if task.kind != "optional"]
    most = MOST_ALTERNATIVES
    if over():
        most = max(min(most, MOST_IN_HASTE // max(len(asked), 1)), 1)
    workloads = [_workload(candidates, solution, task, has_plan, most) for task in asked]
    cheapest, least, chosen = workloads, solution, candidates
    if proposed is not None:
        chosen, solution = proposed
        workloads = [_proposed(candidates, chosen, solution, one, task, most) for one, task in zip(cheapest, asked)]
    plain = plain_document(scenario, cheapest, workloads) if has_plan and weighed else None
    bought = calendar_document(chosen, solution, workloads)
    shared = shared_rows(chosen, solution, workloads) if has_plan else []
    summary = _summary(candidates, solution, workloads, bought, shared, certificate)
    summary["margins"] = margins_document(least.cost_microusd, median_microusd, workloads) if has_plan else None
    warnings = [
        *warnings_of(candidates, workloads, bought),
        *idle_warnings(candidates, workloads),
        *rack_warnings(candidates, workloads),
        *host_warnings(candidates, workloads),
        *network_warnings(candidates),
        *budget_warnings(scenario.limits.budget_microusd, summary),
        *([IN_HASTE] if most < MOST_ALTERNATIVES else []),
    ]
    document: PlanDocument = {
        "schema": SCHEMA,
        "status": cast("Status", str(solution.status)),  # the names of both are the same
        "name": scenario.name,
        "title": scenario.title or "",
        "summary": summary,
        "workloads": workloads,
        "limits": limits_of(chosen, solution) if has_plan else [],
        "single_kind": single_kind
        if len({row["device"] for one in workloads for row in one["allocations"]}) > 1
        else None,
        "named": named_of(candidates, workloads, bought["contracts"], has_plan=has_plan),
        "rejected": _rejected(candidates, most),
        "infeasible": infeasible,
        **bought,  # type: ignore[typeddict-item]  # what else is asked for is added later
        "certificate": certificate,
        "uncertainty": None,
        "assumed": assumptions_of(candidates, workloads, bought),
        "warnings": [*warnings, *solution.messages],
        "notes": notes_of(candidates, workloads),
        "provenance": _provenance(candidates, solution, workloads, bought, seed, threads, gap),
        "scenario": scenario.resolved,
        "scenario_file": scenario.file.encode(errors="replace").decode(),  # a name may hold bytes that are no text
        "case": scenario.case,
        "sha256": "",
    }
    elsewhere = elsewhere_of(candidates, workloads) if has_plan else []
    if elsewhere:
        document["elsewhere"] = elsewhere
    hours = owned_hours(candidates, workloads) if has_plan else []
    if hours:
        document["owned_hours"] = hours
    if shared:
        document["shared_nodes"] = shared
    if scenario.settings:
        document["settings"] = list(scenario.settings)
    ties = ties_of(candidates, least)
    if ties is not None:
        document["ties"] = ties
    if plain is not None:
        document["plain"] = plain
    return resealed(document)


def with_simulation(document: PlanDocument, rows: Sequence[Simulated]) -> PlanDocument:
    """The plan with what a simulation of its replicas showed, under a new seal."""
    return resealed({**document, "simulation": list(rows)})


def resealed(document: PlanDocument) -> PlanDocument:
    """A document that was added to, under a new seal."""
    content = {key: value for key, value in document.items() if key != "sha256"}
    return cast("PlanDocument", {**content, "sha256": digest_of(content)})  # the keys that it had, the seal last


def digest_of(document: Mapping[str, Any]) -> str:
    """SHA-256 of a document's canonical JSON, its own `sha256` left out."""
    content = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _workload(candidates: Candidates, solution: Solution, task: Task, has_plan: bool, most: int) -> Workload:
    question = candidates.questions[task.name]
    allocations = allocations_of(candidates, solution, task) if has_plan else []
    cost = sum(row["cost_microusd"] for row in allocations)
    document = {
        "name": task.name,
        "kind": task.kind,
        "model": question.arch.name,
        "parameters": question.arch.parameters,
        "active_parameters": question.arch.active_parameters,
        "estimator": question.estimator,
        "count": task.count,
        "demand": question.demand(),
        "allocations": allocations,
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "because": because_of(candidates, solution, task, allocations) if has_plan else [],
        "alternatives": alternatives_of(candidates, task, allocations)[:most],
        "cross_check": cross_checks(candidates, task.name, allocations),
        "fleet": fleet_document(candidates, question, task, allocations),
        "error_band": workload_band(allocations),
        "under_way": under_way_document(question.under_way) if isinstance(question, TrainingQuestion) else None,
        "equations": question.equations(),
        "term_sources": term_sources(question),
    }
    return cast("Workload", document)  # rows and figures are of the kind of the question


def _proposed(
    candidates: Candidates, chosen: Candidates, solution: Solution, cheapest: Workload, task: Task, most: int
) -> Workload:
    """A workload as it is proposed: its rows in place of those of the cheapest plan."""
    mine = next(one for one in chosen.program.tasks if one.name == task.name)
    question, rows = candidates.questions[task.name], allocations_of(chosen, solution, mine)
    cost = sum(row["cost_microusd"] for row in rows)
    if rows == cheapest["allocations"]:
        return cheapest
    document = {
        **cheapest,
        "allocations": rows,
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "because": because_of(candidates, solution, task, rows, chosen=chosen, cheapest=cheapest["cost_microusd"]),
        "alternatives": alternatives_of(candidates, task, rows)[:most],
        "cross_check": cross_checks(chosen, task.name, rows),
        "fleet": fleet_document(chosen, question, mine, rows),
        "error_band": workload_band(rows),
    }
    return cast("Workload", document)


def fleet_document(
    candidates: Candidates, question: TrainingQuestion | ServingQuestion, task: Task, rows: Sequence[Allocation]
) -> FleetFigures | None:
    """Figures of a fleet over all its rows.

    Parameters
    ----------
    candidates
        The ways that the rows are of; of the scenario only the horizon counts.
    question
        Of the workload; a job has no such figures, and None is told.
    task
        The workload in the program: with the spares that were planned in the end; without a plan those asked for are
        told.
    rows
        What was chosen for it; empty without a plan.
    """
    if not isinstance(question, ServingQuestion):
        return None
    mine = cast("Sequence[ServingAllocation]", rows)  # of a fleet
    if isinstance(question, RatesQuestion):
        return given_fleet_cells(question.fleet, mine, task.spare_replicas, candidates.scenario.horizon_s / 3600.0)
    hours, spot = candidates.scenario.horizon_s / 3600.0, candidates.scenario.hardware.spot
    spares = task.spare_replicas if mine else question.fleet.spare_replicas
    cells = fleet_cells(question.fleet, mine, spares, hours, spot)
    return {**cells, "mixes": [list(one) for one in question.more_mixes]} if question.more_mixes else cells


def _summary(
    candidates: Candidates,
    solution: Solution,
    workloads: Sequence[Workload],
    bought: Bought,
    shared: Sequence[SharedNodesRow],
    certificate: Certificate | None,
) -> Summary:
    rows, has_plan = [row for workload in workloads for row in workload["allocations"]], solution.has_plan
    horizon_hours = candidates.scenario.horizon_s / 3600.0
    idle = idle_devices(shared)  # rented like those in use
    jobs = [row for row in rows if "shared" in row and "jobs" in row]  # on nodes that are there all the time
    hours = float(sum(row["device_hours"] for row in rows if row not in jobs))
    hours += (idle + sum(row["devices"] for row in jobs)) * horizon_hours
    ahead_usd = sum(row["cost_usd"] for row in (*bought["contracts"], *bought["copies"]))

    spent = spent_on(workloads, bought)
    proof = summary_proof(certificate if has_plan else None)
    bound = proof["bound_microusd"]
    found: Summary = {
        "cost_microusd": solution.cost_microusd if has_plan else None,
        "cost_usd": usd(solution.cost_microusd) if has_plan else None,
        "bound_microusd": bound,
        "bound_usd": None if bound is None else usd(bound),
        "gap": proof["gap"],
        "training_usd": usd(spent["training"]) if has_plan else None,
        "serving_usd": usd(spent["serving"]) if has_plan else None,
        "horizon_hours": horizon_hours,
        "devices": sum(most_devices(rows_of(workload)) for workload in workloads) + idle if has_plan else None,
        "device_hours": hours if has_plan else None,
        "objective": list(candidates.program.objective),
        "cost_band": cost_band(workloads, ahead_usd) if has_plan else None,
        "margins": None,
    }
    return {**found, "unused_usd": usd(spent["unused"])} if has_plan and spent["unused"] else found


def _rejected(candidates: Candidates, most: int) -> dict[str, Rejected]:
    task_of = {task.name: task for task in candidates.program.tasks}
    return {
        name: {
            "devices": min(kinds_of(candidates, task_of[name]), most),
            "offers_seen": ledger.offers_seen,
            "layouts_seen": ledger.layouts_seen,
            "columns": len(candidates.tables[name]),
            "reasons": cast("list[Reason]", ledger.reasons()),
        }
        for name, ledger in candidates.ledgers.items()
    }


def _provenance(
    candidates: Candidates,
    solution: Solution,
    workloads: Sequence[Workload],
    bought: Bought,
    seed: int,
    threads: int,
    gap: float,
) -> Provenance:
    catalog = candidates.catalog
    priced = [*(row for workload in workloads for row in workload["allocations"]), *bought["contracts"]]
    dates = {row["price_as_of"] for row in priced if row["price_as_of"]}
    return {
        "planner": __version__,
        "catalog": catalog_used(catalog, candidates.scenario),
        "prices_as_of": min(dates) if dates else "",
        "solver": solution.solver,
        "modelling": solution.modelling,
        "seed": seed,
        "threads": threads,
        "gap_asked": gap,
        "solver_gap": solution.gap if solution.has_plan else None,
        "columns": candidates.columns_before,
        "columns_pruned": candidates.pruned,
        "facts": facts_of(candidates, workloads, bought),
    }
