"""A page of blocks and charts, and the templates that all pages are drawn by.

The content security policy lets nothing run and nothing load: whatever a name in a scenario says, it cannot become
code. Figures are drawings in the page, made before anybody opens it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from planner.files import read_package_text
from planner.report.blocks import Block, Grid, Items, Said
from planner.report.chart import draw
from planner.report.chart.model import Chart
from planner.report.escape import terminal
from planner.report.html.parts import Section, shown

_ROOM = "report/html/"
_MANY = 12  # a longer list is folded: nobody reads it in one go
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render_sheet(title: str, blocks: Sequence[Block | Chart | None]) -> str:
    """Blocks and figures under a title as a page of the same look."""
    return rendered("sheet.html", title=title, section=Section(id="all", title=title, parts=shown(blocks)))


def rendered(template: str, **given: Any) -> str:
    """A page of one of the templates, with the figures and texts that it asks for."""
    style = draw.style() + read_package_text(_ROOM + "page.css")
    text: str = templates().get_template(template).render(policy=POLICY, style=style, many=_MANY, **given)
    return text + "\n"


@cache
def templates() -> Any:
    """The templates of pages, with what draws figures; texts are escaped, and no control character passes."""
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    def cleaned(value: Any) -> Any:
        return terminal(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    files = {name: read_package_text(_ROOM + name) for name in ("parts.html", "page.html", "sheet.html")}
    made = Environment(
        loader=DictLoader(files),
        autoescape=True,
        finalize=cleaned,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.tests |= {"grid": _is(Grid), "items": _is(Items), "told": _is(Said)}
    made.globals |= {
        "drawn": lambda chart: Markup(draw.svg(chart)),
        "mark": lambda look: Markup(draw.mark(look)),
        "patterns": lambda: Markup(draw.patterns()),
    }
    return made


def _is(kind: type) -> Any:
    return lambda part: isinstance(part, kind)
