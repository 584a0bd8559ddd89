"""The page itself: one file with its style, its figures and the one script that draws them.

The content security policy lets nothing run but the two scripts that are written here, by their hashes: whatever
a name in a scenario says, it cannot become code. Data of figures travel as JSON in a block that is no script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from planner.carriers import dataclass
from planner.files import read_package_text
from planner.report.blocks import Grid, Items
from planner.report.escape import terminal
from planner.report.html import opening
from planner.report.html.parts import Figure
from planner.report.html.sections import sections_of
from planner.report.model import ReportDocument
from planner.report.plan_words import merged

_ROOM = "report/html/"
_MANY = 12  # a longer list is folded: nobody reads it in one go


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
    figures = {part.id: part for section in sections for part in section.parts if isinstance(part, Figure)}
    scripts = _scripts() if figures else ()
    text = _template().render(
        title=plan["title"] or plan["name"],
        name=plan["name"],
        case=plan["case"],
        opening=opening,
        report=report,
        plan=plan,
        sections=sections,
        figures={name: {"data": figure.traces, "layout": figure.layout} for name, figure in figures.items()},
        scripts=scripts,
        policy=policy(scripts),
        style=_style(),
        many=_MANY,
    )
    return Page(text=text + "\n", sections=len(sections) + 1, warnings=len(merged(plan, plan["warnings"])))


def policy(scripts: Sequence[str]) -> str:
    """The content security policy of a page: its own scripts, its own style, nothing from anywhere."""
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _scripts() -> tuple[str, ...]:
    """Plotly, and what draws with it; line ends as an HTML parser leaves them."""
    from plotly.offline import get_plotlyjs

    return tuple(text.replace("\r\n", "\n").replace("\r", "\n") for text in (get_plotlyjs(), _read("figures.js")))


def _style() -> str:
    return _read("page.css")


def _read(name: str) -> str:
    return read_package_text(_ROOM + name)


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def cleaned(value: Any) -> Any:
        return terminal(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    made = Environment(
        autoescape=True, finalize=cleaned, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    made.tests |= {"figure": _is(Figure), "grid": _is(Grid), "items": _is(Items)}
    return made.from_string(_read("page.html"))


def _is(kind: type) -> Any:
    return lambda part: isinstance(part, kind)
