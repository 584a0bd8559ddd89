"""A frontier as one HTML page: the figure and the table. Works offline; what a scenario says is escaped."""

from __future__ import annotations

from planner.files import read_package_text
from planner.plan.frontier.figure import figure_of
from planner.plan.frontier.model import FrontierDocument
from planner.report.blocks import Grid, Headline, Lines
from planner.report.escape import terminal
from planner.report.frontier import frontier_blocks

TEMPLATE = "report/templates/frontier.html"


def render_page(document: FrontierDocument) -> str:
    """The page, with the script of its figure inside."""
    from jinja2 import Environment
    from plotly.offline import get_plotlyjs

    blocks = frontier_blocks(document)
    several = len(document["points"]) > 1
    figure = ""
    if several:
        figure = figure_of(document).to_html(
            include_plotlyjs=False, full_html=False, div_id="frontier", config={"displaylogo": False}
        )
    titles = [terminal(line) for block in blocks if isinstance(block, Lines) for line in block.lines]
    head = next(block for block in blocks if isinstance(block, Headline))
    grid = next(block for block in blocks if isinstance(block, Grid))
    template = Environment(autoescape=True).from_string(read_package_text(TEMPLATE))
    page: str = template.render(
        title=titles[0],
        lines=[*titles[1:], terminal(f"{head.word}  {head.text}"), *map(terminal, head.right)],
        figure=figure,
        summary=f"{len(document['points'])} plans; the table below gives the same figures",
        heads=[(column.head, column.right) for column in grid.columns],
        rows=[[terminal(cell) for cell in row] for row in grid.rows],
        notes=[terminal(note) for note in grid.notes],
        warnings=[terminal(message) for message in document["messages"]],
        script=get_plotlyjs() if several else "",
    )
    return page + "\n"
