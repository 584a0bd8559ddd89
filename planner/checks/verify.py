"""An independent check of a plan document: nothing here is shared with the search or the program.

The scenario is read again from the document, the facts again from the catalog; memory and time of
each chosen layout are computed again from the equations, money in exact fractions, capacity by
sweeping over the moments at which something starts.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypedDict, cast

from planner.architecture.model import Architecture
from planner.catalog.model import Catalog
from planner.checks.allocation import AllocationCheck
from planner.checks.bands import total_band_findings, workload_band_findings
from planner.checks.bought_ahead import contract_findings, data_findings
from planner.checks.calendar import order_findings, schedule_findings
from planner.checks.cells import rule_findings, training_demand
from planner.checks.costs_beside import elsewhere_findings, owned_hour_findings
from planner.checks.findings import TOLERANCE, Finding, Memo, cell_findings, gathered
from planner.checks.fleet_load import fleet_cells
from planner.checks.given import given_alternative_findings, given_findings
from planner.checks.leaves import leaf_findings
from planner.checks.limits import limit_findings, limit_table_findings
from planner.checks.others import alternative_findings, infeasible_findings, single_kind_findings
from planner.checks.plans_beside import other_plan_findings, plain_findings
from planner.checks.pools import shared_findings
from planner.checks.run import under_way_findings
from planner.checks.sources import fact_findings, ledger_findings, named_findings, source_findings
from planner.errors import Problem
from planner.estimate.given import NO_MODEL, known
from planner.estimate.market import market
from planner.estimate.recall import Recall
from planner.estimate.resolve import sequence_length_of
from planner.estimate.serving_tiers import fleet_demand
from planner.scenario.load import parse_scenario
from planner.scenario.schema import ModelRef, Scenario, ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument, ServingWorkload

MOST_SCENARIOS = 16  # that are kept read
ModelLoader = Callable[[ModelRef | None], Architecture]


def verify(
    document: PlanDocument, catalog: Catalog, load_model: ModelLoader, recall: Recall | None = None
) -> list[Problem]:
    """Every way in which a plan document contradicts its own scenario, its catalog or itself.

    Parameters
    ----------
    document
        A plan as `plan solve` writes it.
    catalog
        The catalog that it names.
    load_model
        Turns a model reference into an architecture.
    recall
        What the estimates answered before, by the figures that they were asked with.

    Returns
    -------
    Problems; empty when the plan holds.
    """
    return Checker(catalog, load_model, recall).problems(document)


class Checker:
    """Verifies plans of one catalog, one after another: what two plans have in common is worked out once."""

    def __init__(self, catalog: Catalog, load_model: ModelLoader, recall: Recall | None = None) -> None:
        self._catalog, self._load_model, self._recall = catalog, load_model, recall
        self._asked: dict[str, _Asked] = {}

    def problems(self, document: PlanDocument) -> list[Problem]:
        """Every way in which a plan contradicts its scenario, the catalog or itself; empty when it holds."""
        return gathered(self.findings(document))

    def findings(self, document: PlanDocument) -> Iterator[Finding]:
        """The same one by one, as they are found; what cannot be read raises."""
        yield from _seal(document)
        yield from leaf_findings(document)
        yield from _catalog(document, self._catalog)
        yield from _proof(document)
        asked = self._of(document)
        scenario, catalog = asked.scenario, asked.catalog
        named = {"name": scenario.name, "title": scenario.title or ""}
        yield from cell_findings("wrong-workload", "scenario", document, named)
        has_plan = document["status"] in ("optimal", "feasible")
        yield from _workloads(document, asked, self._load_model, has_plan=has_plan)
        yield from infeasible_findings(document, scenario, catalog)
        yield from ledger_findings(document)
        yield from fact_findings(document, scenario, catalog)
        yield from named_findings(document, scenario, catalog)
        yield from owned_hour_findings(document, scenario, catalog)
        if not has_plan:
            yield from _nothing(document, scenario)
            return
        yield from order_findings(document, scenario)
        yield from schedule_findings(document, scenario)
        yield from contract_findings(document, scenario, catalog)
        yield from data_findings(document, scenario, catalog)
        yield from shared_findings(document, scenario, catalog)
        yield from limit_findings(document, scenario, catalog)
        yield from limit_table_findings(document, scenario, catalog)
        yield from single_kind_findings(document, scenario, catalog)
        yield from elsewhere_findings(document, scenario, catalog)
        checks = self._checks(document, asked)
        yield from other_plan_findings(document, scenario, checks)
        yield from plain_findings(document, scenario, checks)
        yield from _totals(document, scenario)

    def _checks(self, document: PlanDocument, asked: _Asked) -> dict[str, AllocationCheck]:
        """What checks rows of each workload, for the other plans beside this one; none where rates are given."""
        measured = {workload["name"]: workload.get("under_way") for workload in document["workloads"]}
        return {
            workload.name: AllocationCheck(
                scenario=asked.scenario, catalog=asked.catalog, arch=self._load_model(workload.model),
                under_way=measured[workload.name], memo=asked.memo,
            )
            for workload in (asked.scenario.workloads if document.get("others") or document.get("plain") else ())
            if isinstance(workload, TrainingJob) or workload.profile is None
        }  # fmt: skip

    def _of(self, document: PlanDocument) -> _Asked:
        """The scenario that a plan carries, read, with the market that it sees."""
        text = json.dumps(document["scenario"])
        if text not in self._asked:
            scenario = parse_scenario(text, file=document["scenario_file"])
            if len(self._asked) >= MOST_SCENARIOS:
                self._asked.clear()
            self._asked[text] = _Asked(scenario, market(scenario, self._catalog), Memo(self._recall))
        return self._asked[text]


class Priced(TypedDict):
    """A cost, exactly and for people."""

    cost_microusd: int
    cost_usd: float


class _Asked(NamedTuple):
    """A scenario, its market, and what was worked out of both."""

    scenario: Scenario
    catalog: Catalog
    memo: Memo


def _nothing(document: PlanDocument, scenario: Scenario) -> Iterator[Finding]:
    """What a document says that has no plan: nothing of money, machines and times."""
    summary: Mapping[str, object] = dict.fromkeys(
        ("cost_usd", "bound_microusd", "bound_usd", "gap", "training_usd", "serving_usd", "devices", "device_hours")
    )
    horizon = {
        "cost_band": None,
        "margins": None,
        "horizon_hours": scenario.horizon_s / 3600.0,
        "objective": list(scenario.objective),
    }
    yield from cell_findings("wrong-proof", "summary", document["summary"], {**summary, **horizon})
    nothing: Mapping[str, object] = {
        "limits": [],
        "single_kind": None,
        "contracts": [],
        "copies": [],
        "schedule": None,
        "spend": None,
    }
    yield from cell_findings("wrong-proof", "without a plan", document, nothing)
    for workload in document["workloads"]:
        cells = {"allocations": [], "cost_microusd": 0, "cost_usd": 0.0, "error_band": None}
        yield from cell_findings("wrong-proof", workload["name"], workload, cells)


def _seal(document: PlanDocument) -> Iterator[Finding]:
    """The digest covers everything; a change anywhere shows."""
    if document.get("schema") != "plan/result/v1":
        yield Finding("unknown-schema", f"schema is {document.get('schema')!r}, not 'plan/result/v1'")
    content = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if hashlib.sha256(text.encode()).hexdigest() != document.get("sha256"):
        yield Finding("changed-plan", "the sha256 does not cover this content: the plan was changed after it was made")


def _catalog(document: PlanDocument, catalog: Catalog) -> Iterator[Finding]:
    stated = document["provenance"]["catalog"]["sha256"]
    if stated != catalog.digest:
        yield Finding(
            "other-catalog", f"the plan was made from catalog {stated[:12]}, this one is {catalog.digest[:12]}"
        )
    else:
        named = {"name": catalog.name, "as_of": catalog.as_of}
        yield from cell_findings("other-catalog", "catalog", document["provenance"]["catalog"], named)


def _proof(document: PlanDocument) -> Iterator[Finding]:
    """Status, bound and gap must tell one story."""
    status, summary = document["status"], document["summary"]
    if status not in ("optimal", "feasible", "infeasible", "stopped", "failed"):
        yield Finding("unknown-status", f"status {status!r}")
        return
    if status not in ("optimal", "feasible"):
        if summary["cost_microusd"] is not None or any(w["allocations"] for w in document["workloads"]):
            yield Finding("wrong-proof", f"a plan that is {status} has neither rows nor a cost")
        return
    cost, bound = cast("int", summary["cost_microusd"]), summary["bound_microusd"]
    if bound is not None and bound > cost:
        yield Finding("wrong-proof", f"the bound {bound} is above the cost {cost}")
    certificate = document["certificate"]
    money = certificate is not None and certificate["criterion"] == "cost"
    due = {
        "bound_microusd": certificate["bound"] if certificate is not None and money else None,
        "gap": certificate and certificate["gap"],
    }
    told: Mapping[str, object] = summary
    for name, value in due.items():
        if told[name] != value:
            yield Finding("wrong-proof", f"{name} is {told[name]!r}, its certificate says {value!r}")


def _workloads(document: PlanDocument, asked: _Asked, load_model: ModelLoader, *, has_plan: bool) -> Iterator[Finding]:
    scenario, catalog = asked.scenario, asked.catalog
    by_name = {workload["name"]: workload for workload in document["workloads"]}
    names = [workload.name for workload in scenario.workloads]
    if [workload["name"] for workload in document["workloads"]] != names:
        yield Finding("missing-workload", f"the scenario asks for {names}, the plan has {list(by_name)}")
    for workload in scenario.workloads:
        if workload.name not in by_name:
            continue
        given = isinstance(workload, ServingFleet) and workload.profile is not None
        arch = NO_MODEL if given and workload.model is None else load_model(workload.model)
        stated = by_name[workload.name]
        yield from cell_findings("wrong-workload", workload.name, stated, _cells(workload, arch))
        demand = _demand(workload, arch)
        yield from cell_findings("wrong-workload", workload.name, stated["demand"], demand)  # each by its own size
        yield from cell_findings(
            "wrong-workload", workload.name, {"asks": sorted(stated["demand"])}, {"asks": sorted(demand)}
        )
        yield from source_findings(workload, arch, stated)
        yield from rule_findings(workload, arch, stated)
        check = AllocationCheck(
            scenario=scenario, catalog=catalog, arch=arch, under_way=stated.get("under_way"), memo=asked.memo
        )
        if isinstance(workload, TrainingJob):
            yield from under_way_findings(workload, arch, scenario, catalog, stated["under_way"])
            yield from cell_findings("wrong-fleet", workload.name, stated, {"fleet": None})
        else:
            yield from cell_findings("wrong-run", workload.name, stated, {"under_way": None})
        if isinstance(workload, ServingFleet) and given:
            yield from given_alternative_findings(workload, scenario, stated["alternatives"])
            if has_plan:
                told = cast("ServingWorkload", stated)
                yield from given_findings(workload, scenario, told["allocations"], told["fleet"])
            continue
        yield from alternative_findings(check, workload, stated)
        if has_plan:
            yield from check.workload(workload, stated)
        elif isinstance(workload, ServingFleet):
            cells = fleet_cells(workload, [], workload.spare_replicas, scenario.horizon_s / 3600.0)
            yield from cell_findings("wrong-fleet", workload.name, stated, {"fleet": cells})


def _cells(workload: TrainingJob | ServingFleet, arch: Architecture) -> Mapping[str, object]:
    """What the plan must say of a workload that it is for."""
    return {
        "kind": "training" if isinstance(workload, TrainingJob) else "serving",
        "model": arch.name,
        "parameters": arch.parameters,
        "active_parameters": arch.active_parameters,
        "count": workload.count if isinstance(workload, TrainingJob) else 1,
    }


def _demand(workload: TrainingJob | ServingFleet, arch: Architecture) -> Mapping[str, object]:
    if isinstance(workload, TrainingJob):
        return training_demand(workload, sequence_length_of(workload, arch))
    return known(fleet_demand(workload)) if workload.profile is not None else fleet_demand(workload)


def _totals(document: PlanDocument, scenario: Scenario) -> Iterator[Finding]:
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
    yield from _same(
        cast("int", summary["cost_microusd"]), sum(row["cost_microusd"] for row in (*rows, *bought)), "total cost"
    )
    yield from _dollars(cast("Priced", summary), "total cost")
    nodes = document.get("shared_nodes", [])
    own = [row for row in rows if "shared" not in row]
    held = sum(row["devices"] for row in (*own, *nodes)) - _held_in_turn(document)
    yield from _same(cast("int", summary["devices"]), held, "total of devices")
    hours = sum(row["device_hours"] for row in own) + sum(node["devices"] * node["hours"] for node in nodes)
    if not math.isclose(cast("float", summary["device_hours"]), hours, rel_tol=TOLERANCE):
        yield Finding("wrong-total", f"device-hours {summary['device_hours']}, the rows sum to {hours}")
    yield from cell_findings("wrong-total", "summary", summary, _summary_cells(document, scenario))
    for workload in document["workloads"]:
        yield from workload_band_findings(workload["name"], workload)
    yield from total_band_findings(document)


def _held_in_turn(document: PlanDocument) -> int:
    """Devices that jobs which change machines have given back before, or take later: those of their smaller part."""
    parts: dict[tuple[str, str], list[int]] = {}
    for workload in document["workloads"]:
        for row in workload["allocations"]:
            if "switch" in row:
                parts.setdefault((workload["name"], row["switch"]["name"]), []).append(row["devices"])
    return sum(sum(devices) - max(devices) for devices in parts.values())


def _summary_cells(document: PlanDocument, scenario: Scenario) -> Mapping[str, object]:
    bears = {kind: _borne(document, kind) for kind in ("training", "serving")}
    bears["training"] += sum(copy["cost_microusd"] for copy in document["copies"])
    unused = cast("int", document["summary"]["cost_microusd"]) - sum(bears.values())
    bound = document["summary"]["bound_microusd"]
    return {
        "training_usd": bears["training"] / 1e6,
        "serving_usd": bears["serving"] / 1e6,
        **({"unused_usd": unused / 1e6} if unused or "unused_usd" in document["summary"] else {}),
        "bound_usd": None if bound is None else bound / 1e6,
        "horizon_hours": scenario.horizon_s / 3600.0,
        "objective": list(scenario.objective),
    }


def _borne(document: PlanDocument, kind: str) -> int:
    """What the rows of workloads of a kind cost, and their shares of pools.  [micro-USD]"""
    mine = {
        workload["name"]: workload["cost_microusd"] for workload in document["workloads"] if workload["kind"] == kind
    }
    shares = document["schedule"]["shares"] if document["schedule"] else []
    return sum(mine.values()) + sum(one["cost_microusd"] for one in shares if one["workload"] in mine)


def _same(stated: int, computed: int, what: str) -> Iterator[Finding]:
    if stated != computed:
        yield Finding("wrong-total", f"{what}: {stated} stated, {computed} computed")


def _dollars(row: Priced, what: str) -> Iterator[Finding]:
    usd, microusd = row["cost_usd"], row["cost_microusd"]  # from 9 billion dollars on a float skips micro-dollars
    if usd != microusd / 1e6 and abs(Fraction(usd) * 1_000_000 - microusd) > Fraction(1, 2):
        yield Finding("wrong-total", f"{what}: ${row['cost_usd']} is not {row['cost_microusd']} micro-dollars")
