"""What stands around the sections of a page: the answer and its reasons first, what it was made from last."""

from __future__ import annotations

from itertools import zip_longest

from planner.plan.model.plan import PlanDocument
from planner.plan.model.workloads import Workload
from planner.report import plan_words as words
from planner.report.blocks import Grid, columns
from planner.report.commands import asking_report
from planner.report.model import ReportDocument

REASONS = 3


def reasons(document: PlanDocument) -> tuple[list[str], list[str]]:
    """The three that say most, and the others: the first of each workload, the largest first, then the second ones."""
    found = words.because_lines(document)
    own = [
        [line for line in found if line.startswith(f"{workload['name']}:")]
        for workload in sorted(document["workloads"], key=_device_hours, reverse=True)
    ]
    ranked = [line for lines in zip_longest(*own) for line in lines if line]
    told = [line for line in found if line not in ranked]
    first = (told + ranked)[:REASONS]
    return first, [line for line in found if line not in first]


def _device_hours(workload: Workload) -> float:
    """What a workload takes, paid for by itself or not."""
    return sum(row["device_hours"] for row in workload["allocations"])


def amounts(report: ReportDocument) -> list[tuple[str, str]]:
    """Figures beside the total: term and amount."""
    document, budget = report["plan"], report["budget"]
    summary = document["summary"]
    if summary["cost_microusd"] is None or budget is None:
        return []
    totals = budget["totals"]
    found = []
    if totals["committed_microusd"]:
        found.append(("committed, used or not", words.money(document, totals["committed_microusd"])))
        found.append(("variable", words.money(document, totals["variable_microusd"])))
    if totals["contingency_microusd"]:
        share = f"contingency of {100 * budget['contingency']:g} %, beside it"
        found.append((share, words.money(document, totals["contingency_microusd"])))
    if summary["devices"] and not document.get("schedule"):
        found.append(("devices", f"{summary['devices']:,}"))
    if summary["device_hours"]:
        found.append(("device-hours", f"{summary['device_hours']:,.0f}"))
    return found


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
    return asking_report(document, "-o", "html")


def provenance(document: PlanDocument) -> Grid:
    """What the plan was made from and with."""
    made, summary = document["provenance"], document["summary"]
    catalog, schedule = made["catalog"], document.get("schedule")
    gap = "unknown" if summary["gap"] is None else f"{100 * summary['gap']:.2f} %"
    threads = f"{made['threads']} thread{'' if made['threads'] == 1 else 's'}"
    rows = [
        ["Scenario", document["scenario_file"] + (f", case {document['case']}" if document["case"] else "")],
        *([["Begins", schedule["begin"]]] if schedule and schedule["begin"] else []),
        ["Prices of", words.price_days(document) or "no dated price"],
        ["Catalog", f"{catalog['name']} {catalog['as_of']}, sha256 {catalog['sha256']}"],
        ["Plan", f"sha256 {document['sha256']}"],
        ["Solver", f"{made['solver']} through {made['modelling']}, {threads}, seed {made['seed']}"],
        *([["Gap", f"{gap}, asked for {100 * made['gap_asked']:g} %"]] if summary["cost_microusd"] is not None else []),
        ["Ways", f"{made['columns']:,}, {made['columns_pruned']:,} of them never best"],
        ["Made by", f"plan {made['planner']}"],
    ]
    return Grid(title="What this page was made from", columns=columns("Of", "Is"), rows=rows)
