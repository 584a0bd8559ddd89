"""Where every number comes from: the trace of the report as tables, one for each kind of source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from planner.plan.model.plan import PlanDocument
from planner.report import plan_words as words
from planner.report.blocks import Grid, columns
from planner.report.model import TraceKind, TraceRow

_TITLES = {
    "fact": "Facts of the catalog",
    "scenario": "Lines of the scenario",
    "assumption": "Assumed, since the scenario does not say",
    "equation": "Computed: equations and rules",
}
_HEADS = {
    "fact": columns("Figure", ">Value", "Unit", "Source", "As of", "Status"),
    "scenario": columns("Figure", ">Value", "Unit", "Where"),
    "assumption": columns("Assumption", ">Value", "Unit", "Source"),
    "equation": columns("Figure", ">Value", "Unit", "Equation", "Source"),
}
_CELLS: dict[TraceKind, Callable[[TraceRow], list[str]]] = {
    "fact": lambda entry: [entry["source"], entry["as_of"], entry["status"]],
    "scenario": lambda entry: [entry["place"]],
    "assumption": lambda entry: [entry["source"]],
    "equation": lambda entry: [entry["id"], entry["source"]],
}


def source_tables(document: PlanDocument, trace: Sequence[TraceRow]) -> list[Grid]:
    """The trace, folded: facts first, then what the reader wrote, what was assumed, and what was computed."""
    grids = []
    for kind, title in _TITLES.items():
        rows = [_row(document, entry) for entry in trace if entry["kind"] == kind]
        rows = [list(row) for row in dict.fromkeys(map(tuple, rows))]
        if rows:
            grids.append(Grid(title=f"{title} ({len(rows):,})", columns=_HEADS[kind], rows=rows, folded=True))
    return grids


def _row(document: PlanDocument, entry: TraceRow) -> list[str]:
    value = entry["value"]
    if entry["kind"] == "fact":  # numbers of the catalog are texts in a plan
        value = _number(value)
    value, unit = _shown(document, value, entry["unit"])
    return [entry["figure"], value, unit, *_CELLS[entry["kind"]](entry)]


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _shown(document: PlanDocument, value: Any, unit: str) -> tuple[str, str]:
    """A value and its unit as people read them."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower(), unit
    if isinstance(value, str):
        return value, unit
    if unit.lower() == "micro-usd":
        return words.money(document, value), ""
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:.6g}", unit
