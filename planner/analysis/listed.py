"""What a plan tells of the ways that were looked at, held against all of them listed again.

Counts of offers, layouts and columns, and why ways were dropped, are what the scenario and the catalog give rise to:
they are equal on every machine. Two kinds of plans look at more than a listing has: jobs that are mixed, whose columns
are made as they are needed, and fleets whose rates are cut until targets hold, whose other ways are then dearer. Where
a time limit ended the listing, which the plan says, it has no more than all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from planner.analysis.why.widen import allowed, in_regions
from planner.candidates.search import Candidates
from planner.checks.findings import Finding, cell_findings
from planner.optimize.status import LISTING_ENDED, RATES_ENDED
from planner.plan.reasons import IN_HASTE, MOST_ALTERNATIVES, cheapest_by_device
from planner.scenario.load import parse_scenario, with_settings
from planner.scenario.schema import Scenario, ServingFleet

if TYPE_CHECKING:
    from planner.plan.model.others import Rejected
    from planner.plan.model.plan import PlanDocument, Workload

WRONG = "wrong-columns"


def listing_findings(document: PlanDocument, listed: Candidates) -> Iterator[Finding]:
    """Everything wrong with what a plan tells of the ways that were listed.

    Parameters
    ----------
    listed
        Every column of its scenario.
    """
    made, more = document["provenance"], 0
    if any(ended in warning for warning in document["warnings"] for ended in (LISTING_ENDED, RATES_ENDED)):
        if made["columns"] > listed.columns_before:
            yield Finding(WRONG, f"{made['columns']} columns are told of, the scenario has {listed.columns_before}")
        return
    for workload in document["workloads"]:
        name, told = workload["name"], document["rejected"][workload["name"]]
        columns = len(listed.tables[name])
        mixed = told["columns"] - columns if name in listed.spaces else 0
        yield from _story(name, told, listed, columns + max(mixed, 0))
        yield from _others(workload, listed, in_haste=IN_HASTE in document["warnings"])
        more += mixed
    yield from _contradicts(document, listed)
    if listed.whole_calendar is not None and more:
        return  # a mix has a column for each of its starts
    cells = {"columns": listed.columns_before + more, "columns_pruned": listed.pruned}
    yield from cell_findings(WRONG, "provenance", made, cells)


def _story(name: str, told: Rejected, listed: Candidates, columns: int) -> Iterator[Finding]:
    """What was looked at for a workload, and how much of it was dropped for which reason."""
    ledger = listed.ledgers[name]
    cells = {"offers_seen": ledger.offers_seen, "layouts_seen": ledger.layouts_seen, "columns": columns}
    yield from cell_findings(WRONG, name, told, cells)
    stated = [(one["reason"], one["what"], one["count"]) for one in told["reasons"]]
    counted = [(drop.reason, drop.what, drop.count) for drop in ledger]
    if stated != counted:
        yield Finding(WRONG, f"{name}: dropped are {stated}, listed again {counted}")


def _others(workload: Workload, listed: Candidates, *, in_haste: bool) -> Iterator[Finding]:
    """The way that is told on each device is the cheapest there is; dearer where rates may have been cut."""
    name = workload["name"]
    task = next(task for task in listed.program.tasks if task.name == name)
    asked = next(one for one in listed.scenario.workloads if one.name == name)
    cut = isinstance(asked, ServingFleet) and bool(asked.targets_s or asked.availability is not None)
    least = {device: cost for device, (cost, _) in cheapest_by_device(listed, task).items()}
    if not (cut or in_haste) and len(workload["alternatives"]) != min(len(least), MOST_ALTERNATIVES):
        text = f"{len(workload['alternatives'])} ways are told, there are such on {len(least)} kinds of devices"
        yield Finding("wrong-alternative", f"{name}: {text}")
    for one in workload["alternatives"]:
        cost, there = one["cost_microusd"], least.pop(one["device"], None)
        if there is None or cost < there or (cost > there and not cut):
            text = f"the cheapest way on {one['device']} costs {there}, not {cost}"
            yield Finding("wrong-alternative", f"{name}: {text}")
    told = [one["cost_microusd"] for one in workload["alternatives"]]
    missing = sorted(device for device, cost in least.items() if cost < max(told, default=0)) if not cut else []
    if missing:
        yield Finding("wrong-alternative", f"{name}: a way on {missing[0]} is cheaper than some that are told")


def _contradicts(document: PlanDocument, listed: Candidates) -> Iterator[Finding]:
    """One job is in no conflict by itself where a way of it keeps every limit: another that it needs was left out."""
    told = document["infeasible"]
    members = {one["name"] for one in told["conflict"]} if told is not None else set()
    tasks = [task for task in listed.program.tasks if task.name in members]
    if len(tasks) != 1 or tasks[0].kind != "training" or listed.whole_calendar is not None:
        return
    if tasks[0].count > 1:  # jobs alike are in each other's way
        return
    keeps = np.full(tasks[0].stop, True)
    keeps[: tasks[0].first] = False
    for row in listed.program.rows:
        over = row.columns[row.coefficients > row.bound]
        keeps[over[over < tasks[0].stop]] = False
    if keeps.any():
        yield Finding("wrong-way-out", f"{tasks[0].name} alone keeps every limit, and nothing else is in the conflict")


def choice_findings(document: PlanDocument, search: Callable[[Scenario], Candidates]) -> Iterator[Finding]:
    """Wider choices that were to be tried for a conflict and are not told of.

    Parameters
    ----------
    search
        Every way of a scenario.
    """
    told = document["infeasible"]
    if told is None or not told["minimal"]:  # for lack of time, or not asked for: `again.searched_findings`
        return
    scenario = parse_scenario(json.dumps(document["scenario"]), file=document["scenario_file"])
    tried = {one["limit"] for one in told["ways_out"]}
    for name, within in (("allow", allowed), ("regions", in_regions)):
        stated = getattr(scenario.hardware, name)
        if stated == ("*",) or f"hardware.{name}" in tried:
            continue
        wide = search(with_settings(scenario, [f'hardware.{name}="*"']))
        sites = (site for table in wide.tables.values() for site in table.sites if site.owned is None)
        if not all(any(within(site, one) for one in stated) for site in sites):
            yield Finding("wrong-way-out", f"hardware.{name}: other choices are there, and nothing is told of them")
