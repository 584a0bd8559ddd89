"""Reserve or rent as one HTML page: the decision, all terms at once, other futures and break-evens."""

from __future__ import annotations

from planner.analysis.reserve.model import ReserveDocument
from planner.report.html.sheet import render_sheet
from planner.report.reserve import reserve_blocks


def render_reserve_page(document: ReserveDocument) -> str:
    """The page; it works offline, and what a scenario says is escaped."""
    return render_sheet(f"Reserve or rent: {document['name']}", reserve_blocks(document))
