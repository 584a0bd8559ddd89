"""The first screen of a page: what is decided, in one sentence, what it costs, how to make it again."""

from __future__ import annotations

import shlex

from planner.plan.model.plan import PlanDocument
from planner.plan.model.workloads import Allocation, Workload
from planner.plan.parts import rows_of
from planner.plan.proof import is_proven
from planner.report import plan_words as words
from planner.report.model import ReportDocument

_FEW = 3
_LESS = {"cost": "cheaper", "time": "sooner", "carbon": "lower in carbon"}


def decision(document: PlanDocument) -> str:
    """The answer in one sentence, and how sure it is in a second one."""
    rows = [(workload, row) for workload in document["workloads"] for row in rows_of(workload)]
    status = document["status"]
    if status == "infeasible":
        sure = "that is proven" if is_proven(document) else f"so says {words.solver_of(document)}: it is not proven"
        return f"Nothing meets every limit of {_named(document)}, and {sure}."
    if not rows:
        return f"There is no plan: the solver ended as {status}."
    return f"{_rented(document, rows)}. {_proven(document)}"


def _named(document: PlanDocument) -> str:
    return f"{document['name']}, case {document['case']}" if document["case"] else str(document["name"])


def _rented(document: PlanDocument, rows: list[tuple[Workload, Allocation]]) -> str:
    contracts = document.get("contracts") or ()
    if len(rows) <= _FEW and not contracts:
        return "Rent " + _listed([_one(workload, row) for workload, row in rows])
    devices = sum(row["devices"] for _, row in rows)
    kinds = list(dict.fromkeys(row["device"] for _, row in rows))
    places = list(dict.fromkeys(row["provider"] for _, row in rows if row["provider"]))
    bought = f", and buy {_count(len(contracts), 'contract')} ahead" if contracts else ""
    if document.get("schedule"):  # machines are used one job after the other: counts of rows do not add up
        what = f"Run {_count(len(document['workloads']), 'workload')} on {_listed(kinds)} in turn"
        return f"{what}{_at(places)}{bought}"
    what = _listed(kinds) if len(kinds) <= _FEW else f"{len(kinds)} kinds"
    return (
        f"Rent {devices:,} devices ({what}){_at(places)} for {_count(len(document['workloads']), 'workload')}{bought}"
    )


def _at(places: list[str]) -> str:
    return f" at {_listed(places) if len(places) <= _FEW else f'{len(places)} providers'}" if places else ""


def _one(workload: Workload, row: Allocation) -> str:
    many = f" ×{row['devices_per_shape']}" if row["devices_per_shape"] > 1 else ""
    return f"{row['count']:,} × {row['device']}{many} at {words.place_of(row) or 'no provider'} for {workload['name']}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _proven(document: PlanDocument) -> str:
    summary = document["summary"]
    less = _LESS.get(summary["objective"][0], "better")
    if is_proven(document):
        return f"No plan that meets every limit is {less}: that is proven."
    if document["status"] == "optimal":
        return f"No plan is {less}, says {words.solver_of(document)}; {words.certified(document)}."
    if not summary["gap"]:
        return f"Whether another plan is {less} was not proven."
    return f"Not proven best: one that is {less} by up to {100 * summary['gap']:.2g} % may exist."


def amounts(report: ReportDocument) -> list[tuple[str, str]]:
    """Figures beside the total: term and amount; what a workload bears of contracts is part of its own."""
    document, budget = report["plan"], report["budget"]
    summary = document["summary"]
    if summary["cost_microusd"] is None or budget is None:
        return []
    totals = budget["totals"]
    found = []
    if totals["training_microusd"] and totals["serving_microusd"]:
        found.append(("training, one-off", words.money(document, totals["training_microusd"])))
        found.append((f"serving, for {words.horizon(document)}", words.money(document, totals["serving_microusd"])))
    if totals["committed_microusd"]:
        found.append(("committed, used or not", words.money(document, totals["committed_microusd"])))
        found.append(("variable", words.money(document, totals["variable_microusd"])))
    band = summary.get("cost_band")
    if band and band["p10"] != band["p90"]:
        low, high = (words.money(document, 1e6 * band[name]) for name in ("p10", "p90"))
        found.append(("p10 to p90 of the total", f"{low} to {high}"))
    if totals["contingency_microusd"]:
        share = f"contingency of {100 * budget['contingency']:g} %, beside it"
        found.append((share, words.money(document, totals["contingency_microusd"])))
    if summary["devices"] and not document.get("schedule"):
        found.append(("devices", f"{summary['devices']:,}"))
    if summary["device_hours"]:
        found.append(("device-hours", f"{summary['device_hours']:,.0f}"))
    return found


def total(document: PlanDocument) -> tuple[str, str] | None:
    """The total and its period: ("$27,822", "for 1 month"); None without a plan."""
    cost = document["summary"]["cost_microusd"]
    if cost is None:
        return None
    lasting = any(workload["kind"] == "serving" for workload in document["workloads"]) or document.get("contracts")
    return words.money(document, cost), f"for {words.horizon(document)}" if lasting else "one-off"


def budget_share(document: PlanDocument) -> tuple[float, str] | None:
    """How much of the budget is used: a share, and words; None where none is set."""
    for limit in document["limits"]:
        if limit["name"] == "limits.budget" and limit["bound"]:
            scale = 1 if "micro" in limit["unit"].lower() else 1e6
            used, bound = (words.money(document, limit[name] * scale) for name in ("used", "bound"))
            share = limit["used"] / limit["bound"]
            return share, f"{used} of a budget of {bound}, {100 * (1 - share):.0f} % free"
    return None


def command(document: PlanDocument) -> str:
    """What makes this page again."""
    parts = ["plan", "report", document["scenario_file"]]
    parts += ["--case", document["case"]] if document["case"] else []
    for setting in document.get("settings", ()):
        parts += ["--set", setting]
    for flag in document["provenance"]["catalog"].get("own_prices", ()):
        parts += flag.split(" ", 1)
    return shlex.join([*map(str, parts), "-o", "html"])


def provenance(document: PlanDocument) -> list[tuple[str, str]]:
    """Term and detail of what the plan was made from."""
    made = document["provenance"]
    catalog = made["catalog"]
    found = [
        ("Prices of", words.price_days(document) or "no dated price"),
        ("Catalog", f"{catalog['name']} {catalog['as_of']}, sha256 {catalog['sha256'][:16]}…"),
        ("Scenario", document["scenario_file"] + (f", case {document['case']}" if document["case"] else "")),
        ("Plan", f"sha256 {document['sha256'][:16]}…"),
    ]
    schedule = document.get("schedule")
    begin = schedule["begin"] if schedule else None
    return [*found, *([("Begins", begin)] if begin else [])]


def footer(document: PlanDocument) -> list[str]:
    """Solver, gap, version, seed."""
    made, summary = document["provenance"], document["summary"]
    gap = "gap unknown" if summary["gap"] is None else f"gap {100 * summary['gap']:.2f} %"
    return [
        f"{made['solver']} through {made['modelling']}",
        *([gap] if summary["cost_microusd"] is not None else []),
        f"gap asked for {100 * made['gap_asked']:g} %",
        f"plan {made['planner']}",
        f"seed {made['seed']}",
        f"{made['threads']} thread" + ("s" if made["threads"] != 1 else ""),
        f"{made['columns']:,} ways, {made['columns_pruned']:,} of them never best",
    ]
