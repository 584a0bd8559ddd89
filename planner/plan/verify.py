"""An independent check of a plan document: nothing here is shared with the search or the program.

The scenario is read again from the document, the facts again from the catalog; memory and time of
each chosen layout are computed again from the equations, money in exact fractions, capacity by
sweeping over the moments at which something starts.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from planner.architecture.model import Architecture
from planner.catalog.model import Catalog
from planner.errors import InputError, Problem
from planner.estimate.given import NO_MODEL, known
from planner.estimate.market import market
from planner.estimate.resolve import sequence_length_of
from planner.estimate.serving_tiers import fleet_demand
from planner.plan.checks.allocation import AllocationCheck
from planner.plan.checks.bands import total_band_findings, workload_band_findings
from planner.plan.checks.calendar import order_findings, schedule_findings
from planner.plan.checks.cells import training_demand
from planner.plan.checks.contracts import contract_findings
from planner.plan.checks.data import data_findings
from planner.plan.checks.findings import TOLERANCE, Finding, cell_findings, problems_of
from planner.plan.checks.given import given_findings
from planner.plan.checks.limits import limit_findings, limit_table_findings
from planner.plan.checks.under_way import under_way_findings
from planner.scenario.load import parse_scenario
from planner.scenario.schema import ModelRef, Scenario, ServingFleet, TrainingJob

Document = dict[str, Any]
ModelLoader = Callable[[ModelRef | None], Architecture]


def verify(document: Document, catalog: Catalog, load_model: ModelLoader) -> list[Problem]:
    """Every way in which a plan document contradicts its own scenario, its catalog or itself.

    Parameters
    ----------
    document
        A plan as `plan solve` writes it.
    catalog
        The catalog that it names.
    load_model
        Turns a model reference into an architecture.

    Returns
    -------
    Problems; empty when the plan holds.
    """
    findings: list[Finding] = []
    try:
        for finding in _findings(document, catalog, load_model):  # one by one: a later error loses none
            findings.append(finding)
    except InputError as error:
        return [*problems_of(findings), *error.problems]
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        findings.append(Finding("malformed-plan", f"the document is not a plan: {type(error).__name__} {error}"))
    return problems_of(findings)


def _findings(document: Document, catalog: Catalog, load_model: ModelLoader) -> Iterator[Finding]:
    yield from _seal(document)
    yield from _catalog(document, catalog)
    yield from _proof(document)
    if document["status"] not in ("optimal", "feasible"):
        return
    scenario = parse_scenario(json.dumps(document["scenario"]), file=document["scenario_file"])
    named = {"name": scenario.name, "title": scenario.title or ""}
    yield from cell_findings("wrong-workload", "scenario", document, named)
    catalog = market(scenario, catalog)
    yield from _workloads(document, scenario, catalog, load_model)
    yield from order_findings(document, scenario)
    yield from schedule_findings(document, scenario)
    yield from contract_findings(document, scenario, catalog)
    yield from data_findings(document, scenario, catalog)
    yield from limit_findings(document, scenario, catalog)
    yield from limit_table_findings(document, scenario, catalog)
    yield from _totals(document, scenario)


def _seal(document: Document) -> Iterator[Finding]:
    """The digest covers everything; a change anywhere shows."""
    if document.get("schema") != "plan/result/v1":
        yield Finding("unknown-schema", f"schema is {document.get('schema')!r}, not 'plan/result/v1'")
    content = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if hashlib.sha256(text.encode()).hexdigest() != document.get("sha256"):
        yield Finding("changed-plan", "the sha256 does not cover this content: the plan was changed after it was made")


def _catalog(document: Document, catalog: Catalog) -> Iterator[Finding]:
    stated = document["provenance"]["catalog"]["sha256"]
    if stated != catalog.digest:
        yield Finding(
            "other-catalog", f"the plan was made from catalog {stated[:12]}, this one is {catalog.digest[:12]}"
        )
    else:
        named = {"name": catalog.name, "as_of": catalog.as_of}
        yield from cell_findings("other-catalog", "catalog", document["provenance"]["catalog"], named)


def _proof(document: Document) -> Iterator[Finding]:
    """Status, bound and gap must tell one story."""
    status, summary = document["status"], document["summary"]
    if status not in ("optimal", "feasible", "infeasible", "stopped", "failed"):
        yield Finding("unknown-status", f"status {status!r}")
        return
    if status not in ("optimal", "feasible"):
        if summary["cost_microusd"] is not None or any(w["allocations"] for w in document["workloads"]):
            yield Finding("wrong-proof", f"a plan that is {status} has neither rows nor a cost")
        return
    cost, bound = summary["cost_microusd"], summary["bound_microusd"]
    if bound is not None and bound > cost:
        yield Finding("wrong-proof", f"the bound {bound} is above the cost {cost}")


def _workloads(document: Document, scenario: Scenario, catalog: Catalog, load_model: ModelLoader) -> Iterator[Finding]:
    by_name = {workload["name"]: workload for workload in document["workloads"]}
    names = [workload.name for workload in scenario.workloads]
    if [workload["name"] for workload in document["workloads"]] != names:
        yield Finding("missing-workload", f"the scenario asks for {names}, the plan has {list(by_name)}")
    for workload in scenario.workloads:
        if workload.name in by_name:
            given = isinstance(workload, ServingFleet) and workload.profile is not None
            arch = NO_MODEL if given and workload.model is None else load_model(workload.model)
            stated = by_name[workload.name]
            yield from cell_findings("wrong-workload", workload.name, stated, _asked(workload, arch))
            yield from cell_findings("wrong-workload", workload.name, stated["demand"], _demand(workload, arch))
            if isinstance(workload, ServingFleet) and given:
                yield from given_findings(workload, scenario, stated["allocations"], stated["fleet"])
                continue
            check = AllocationCheck(scenario=scenario, catalog=catalog, arch=arch, under_way=stated.get("under_way"))
            if isinstance(workload, TrainingJob):
                yield from under_way_findings(workload, arch, scenario, catalog, stated.get("under_way"))
            yield from check.workload(workload, stated)


def _asked(workload: TrainingJob | ServingFleet, arch: Architecture) -> Document:
    """What the plan must say of a workload that it is for."""
    return {
        "kind": "training" if isinstance(workload, TrainingJob) else "serving",
        "model": arch.name,
        "parameters": arch.parameters,
        "active_parameters": arch.active_parameters,
        "count": workload.count if isinstance(workload, TrainingJob) else 1,
    }


def _demand(workload: TrainingJob | ServingFleet, arch: Architecture) -> Document:
    if isinstance(workload, TrainingJob):
        return training_demand(workload, sequence_length_of(workload, arch))
    return known(fleet_demand(workload)) if workload.profile is not None else fleet_demand(workload)


def _totals(document: Document, scenario: Scenario) -> Iterator[Finding]:
    """Sums are exact in micro-dollars."""
    for workload in document["workloads"]:
        total = sum(row["cost_microusd"] for row in workload["allocations"])
        yield from _same(workload["cost_microusd"], total, f"cost of {workload['name']}")
        yield from _dollars(workload, f"cost of {workload['name']}")
        for row in workload["allocations"]:
            yield from _dollars(row, f"cost of {row['offer']}")
    rows = [row for workload in document["workloads"] for row in workload["allocations"]]
    summary = document["summary"]
    bought = [*document["contracts"], *document["copies"]]
    yield from _same(summary["cost_microusd"], sum(row["cost_microusd"] for row in (*rows, *bought)), "total cost")
    yield from _dollars(summary, "total cost")
    yield from _same(summary["devices"], sum(row["devices"] for row in rows), "total of devices")
    hours = sum(row["device_hours"] for row in rows)
    if not math.isclose(summary["device_hours"], hours, rel_tol=TOLERANCE):
        yield Finding("wrong-total", f"device-hours {summary['device_hours']}, the rows sum to {hours}")
    yield from cell_findings("wrong-total", "summary", summary, _summary_cells(document, scenario))
    for workload in document["workloads"]:
        yield from workload_band_findings(workload["name"], workload)
    yield from total_band_findings(document)


def _summary_cells(document: Document, scenario: Scenario) -> Document:
    def dollars_of(kind: str) -> float:
        return float(sum(w["cost_microusd"] for w in document["workloads"] if w["kind"] == kind)) / 1e6

    bound = document["summary"]["bound_microusd"]
    return {
        "training_usd": dollars_of("training"),
        "serving_usd": dollars_of("serving"),
        "bound_usd": None if bound is None else bound / 1e6,
        "horizon_hours": scenario.horizon_s / 3600.0,
        "objective": list(scenario.objective),
    }


def _same(stated: int, computed: int, what: str) -> Iterator[Finding]:
    if stated != computed:
        yield Finding("wrong-total", f"{what}: {stated} stated, {computed} computed")


def _dollars(row: Document, what: str) -> Iterator[Finding]:
    if abs(Fraction(row["cost_usd"]) * 1_000_000 - row["cost_microusd"]) > Fraction(1, 2):
        yield Finding("wrong-total", f"{what}: ${row['cost_usd']} is not {row['cost_microusd']} micro-dollars")
