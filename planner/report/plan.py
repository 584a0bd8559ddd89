"""A plan document in any format: the one door that commands use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.report import csv, json, markdown, table
from planner.report.plan_view import plan_blocks

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument


def render_plan(document: PlanDocument, form: str, **view: Any) -> str:
    """A plan document as table, json, csv or md; `view` (width, colour, saved ...) is for the table."""
    if form == "json":
        return json.render(document)
    if form == "csv":
        return csv.render_plan(document)
    if form == "md":
        return markdown.draw(plan_blocks(document, full=bool(view.get("full"))), summary="Prices, assumptions, checks")
    return table.render_plan(document, **view)
