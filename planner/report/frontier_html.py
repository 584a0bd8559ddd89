"""A frontier as one HTML page: the figure and the table. Works offline; what a scenario says is escaped."""

from __future__ import annotations

from planner.plan.frontier.model import FrontierDocument
from planner.report.blocks import Lines
from planner.report.frontier import frontier_blocks
from planner.report.frontier_chart import frontier_chart
from planner.report.html.page import render_sheet


def render_page(document: FrontierDocument) -> str:
    """The page."""
    title, headline, *others = frontier_blocks(document)
    name, facts = title.lines if isinstance(title, Lines) else ("", "")
    return render_sheet(name, [Lines(lines=(facts,)), headline, frontier_chart(document), *others])
