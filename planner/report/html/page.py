"""The page itself: one file with its style and its figures, and no script at all.

The content security policy lets nothing run and nothing load: whatever a name in a scenario says, it cannot become
code. Figures are drawings in the page, made before anybody opens it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from planner.carriers import dataclass
from planner.files import read_package_text
from planner.report import screen
from planner.report import screen_words as said
from planner.report.blocks import Block, Grid, Items, Said
from planner.report.chart import draw
from planner.report.chart.model import Chart
from planner.report.escape import terminal
from planner.report.html import opening
from planner.report.html.parts import Section, shown
from planner.report.html.sections import sections_of
from planner.report.model import ReportDocument
from planner.report.plan_words import merged, money

_ROOM = "report/html/"
_MANY = 12  # a longer list is folded: nobody reads it in one go
_FEW = 4  # workloads that are told beside the answer
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page and what its maker says of it."""

    text: str
    sections: int
    warnings: int


def render_page(report: ReportDocument) -> Page:
    """A report document (`plan/report/v1`) as a page that needs nothing else.

    Raises
    ------
    ValueError
        A figure that is no number: a bug.
    """
    plan, sections = report["plan"], sections_of(report)
    text = _rendered(
        "page.html",
        title=plan["title"] or plan["name"],
        name=plan["name"],
        case=plan["case"],
        total=money(plan, cost) if (cost := plan["summary"]["cost_microusd"]) is not None else "",
        lasting=said.money_parts(plan)[0],
        split=said.money_parts(plan)[1:],
        likely=said.likely(plan),
        decision=said.decided(plan),
        sure="" if plan["infeasible"] else said.sure_line(plan, None),
        reasons=opening.reasons(plan)[0],
        savings=report["savings"],
        cards=screen.workload_cards(plan) if len(plan["workloads"]) <= _FEW else None,
        amounts=opening.amounts(report),
        budget=opening.budget_share(plan),
        command=opening.command(plan),
        sections=sections,
    )
    return Page(text=text, sections=len(sections), warnings=len(merged(plan, plan["warnings"])))


def render_sheet(title: str, blocks: Sequence[Block | Chart | None]) -> str:
    """Blocks and figures under a title as a page of the same look."""
    return _rendered("sheet.html", title=title, section=Section(id="all", title=title, parts=shown(blocks)))


def _rendered(template: str, **given: Any) -> str:
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
