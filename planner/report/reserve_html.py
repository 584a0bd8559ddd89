"""Reserve or rent as a section of a page, and as a page of its own; works offline, what a scenario says is escaped."""

from __future__ import annotations

from planner.files import read_package_text
from planner.plan.reserve.model import ReserveDocument
from planner.report.escape import terminal
from planner.report.notebook import blocks_html
from planner.report.reserve import reserve_blocks

TEMPLATE = "report/templates/reserve.html"


def reserve_section(document: ReserveDocument) -> str:
    """The decision, all terms at once, other futures and break-evens, as HTML."""
    return blocks_html(reserve_blocks(document))


def render_reserve_page(document: ReserveDocument) -> str:
    """The section as a page."""
    from jinja2 import Environment

    template = Environment(autoescape=True).from_string(read_package_text(TEMPLATE))
    title = terminal(f"Reserve or rent: {document['name']}")
    page: str = template.render(title=title, section=reserve_section(document))
    return page + "\n"
