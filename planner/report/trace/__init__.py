"""Where every figure of a report comes from: an equation or rule, a fact with source and date, a line of the scenario.

A row names the place of its figure in the report document (`path`); what lies below that place is covered by it.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.plan.model.plan import PlanDocument
from planner.report.model import Reported, TraceRow
from planner.report.trace.budget import budget_rows, solved_rows
from planner.report.trace.plan import bought_rows, summary_rows, workload_rows
from planner.report.trace.row import Places, leaves, traced, where

KINDS = ("equation", "fact", "scenario", "assumption")


def trace_of(report: Reported, places: Places | None = None) -> list[TraceRow]:
    """Rows for every figure of a report.

    Parameters
    ----------
    report
        A report document without its trace.
    places
        Path in the scenario -> where it is written; without, a scenario line is told by its path in the plan.
    """
    plan = report["plan"]
    return [
        *summary_rows(plan, places),
        *(row for number in range(len(plan["workloads"])) for row in workload_rows(plan, number, places)),
        *bought_rows(plan, places),
        *budget_rows(report["budget"], plan, places),
        *solved_rows(report),
        *_facts(plan),
        *_scenario(plan, places),
        *_assumptions(plan),
    ]


def _facts(plan: PlanDocument) -> Iterator[TraceRow]:
    for number, fact in enumerate(plan["provenance"]["facts"]):
        figure, path = f"{fact['subject']}: {fact['fact']}", f"plan.provenance.facts[{number}]"
        yield traced(figure, path, "fact", value=fact["value"], source=fact["source"], as_of=fact["as_of"],
                     status=fact["status"])  # fmt: skip


def _scenario(plan: PlanDocument, places: Places | None) -> Iterator[TraceRow]:
    """Every value that the scenario gives."""
    for path, value in leaves(plan["scenario"]):
        yield traced(path, f"plan.scenario.{path}", "scenario", value=value, place=where(places, path))


def _assumptions(plan: PlanDocument) -> Iterator[TraceRow]:
    for number, sentence in enumerate(plan["assumed"]):
        yield traced(sentence, f"plan.assumed[{number}]", "assumption")
