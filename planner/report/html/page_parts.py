"""What all pages are made of: sections of figures and tables, what stands around them, and the templates.

A page opens with the answer and its reasons and closes with what it was made from. The content security policy lets
nothing run and nothing load: whatever a name in a scenario says, it cannot become code. Figures are drawings in the
page, made before anybody opens it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from typing import Any, TypeAlias

from planner.carriers import dataclass
from planner.files import read_package_text
from planner.plan.model.plan import PlanDocument, Workload
from planner.report import chart_drawing
from planner.report import plan_words as words
from planner.report.alternatives_view import because_lines
from planner.report.blocks import Block, Cards, Column, Grid, Headline, Items, Lines, Said, Timeline, columns, is_empty
from planner.report.charts import Chart
from planner.report.escape import terminal
from planner.report.model import ReportDocument
from planner.report.next_words import asking_report

Part: TypeAlias = Chart | Grid | Items | Lines | Said
_WIDE = 6  # columns of a table that has room beside a figure
_LONG = 8  # rows of a table beside a figure; a longer one is folded, since the figure says it already


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What stands side by side where there is room: figures, and what is read with them."""

    charts: Sequence[Chart]
    parts: Sequence[Part]

    @property
    def beside(self) -> bool:
        """Whether a figure stands beside its table, not above it: a wide or a folded table leaves no room for that."""
        return len(self.charts) == 1 and all(
            isinstance(part, Grid) and not part.folded and len(part.columns) <= _WIDE for part in self.parts
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One numbered part of the page."""

    id: str
    title: str
    parts: Sequence[Part]
    lead: str = ""
    folded: bool = False

    @property
    def rows(self) -> list[Row]:
        """Its parts, a figure with the table that gives the same figures."""
        return rows_of(self.parts)


def rows_of(parts: Sequence[Part]) -> list[Row]:
    """Figures that follow each other, and the table after them, are a row; everything else is one of its own."""
    rows: list[Row] = []
    charts: list[Chart] = []
    for part in parts:
        if isinstance(part, Chart):
            charts.append(part)
        elif charts:
            rows.append(Row(charts=charts, parts=[_told(part, charts[-1])]))
            charts = []
        else:
            rows.append(Row(charts=[], parts=[part]))
    return [*rows, *([Row(charts=charts, parts=[])] if charts else [])]


def _told(part: Part, beside: Chart) -> Part:
    """The table of a figure: folded where it is long, and never without a name."""
    if not isinstance(part, Grid) or len(part.rows) <= _LONG:
        return part
    return replace(part, folded=True, title=part.title or beside.title)


def shown(blocks: Iterable[Block | Chart | None]) -> list[Part]:
    """Parts that have something to show; timelines as tables, since a page draws its bars as figures."""
    parts: list[Part] = []
    for block in blocks:
        if isinstance(block, Timeline):
            block = table_of(block)
        if isinstance(block, Headline):
            block = Said(
                mark="", rows=[(f"{block.word}  {block.text}",), *((line,) for line in block.right)], tone=block.tone
            )
        if isinstance(block, Chart) or not (block is None or isinstance(block, Cards) or is_empty(block)):
            parts.append(block)
    return parts


def table_of(timeline: Timeline) -> Grid:
    """A timeline without its bars."""
    return Grid(
        columns=(*timeline.before, *timeline.after),
        rows=[[*before, *after] for before, _, after in timeline.rows],
        title=timeline.title,
        notes=timeline.notes,
    )


def captioned(grid: Grid, title: str, *heads: str) -> Grid:
    """A table under a title of its own; its first columns get heads that say what stands in them."""
    columns = list(grid.columns)
    for number, head in enumerate(heads):
        columns[number] = Column(head=head, right=columns[number].right)
    return replace(grid, title=title, columns=tuple(columns), folded=False)


def without(grid: Grid, *places: int) -> Grid:
    """A table without some of its columns."""
    kept = [number for number in range(len(grid.columns)) if number not in places]
    return replace(
        grid, columns=tuple(grid.columns[n] for n in kept), rows=[[row[n] for n in kept] for row in grid.rows]
    )


_ROOM = "report/html/"
_MANY = 12  # a longer list is folded: nobody reads it in one go
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render_sheet(title: str, blocks: Sequence[Block | Chart | None]) -> str:
    """Blocks and figures under a title as a page of the same look."""
    return rendered("sheet.html", title=title, section=Section(id="all", title=title, parts=shown(blocks)))


def rendered(template: str, **given: Any) -> str:
    """A page of one of the templates, with the figures and texts that it asks for."""
    style = chart_drawing.style() + read_package_text(_ROOM + "page.css")
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
        "drawn": lambda chart: Markup(chart_drawing.svg(chart)),
        "mark": lambda look: Markup(chart_drawing.mark(look)),
        "patterns": lambda: Markup(chart_drawing.patterns()),
    }
    return made


def _is(kind: type) -> Any:
    return lambda part: isinstance(part, kind)


REASONS = 3


def reasons(document: PlanDocument) -> tuple[list[str], list[str]]:
    """The three that say most, and the others: the first of each workload, the largest first, then the second ones."""
    found = because_lines(document)
    own = [
        [line for line in found if line.startswith(f"{workload['name']}:")]
        for workload in sorted(document["workloads"], key=_device_hours, reverse=True)
    ]
    ranked = [line for lines in zip_longest(*own) for line in lines if line]
    told = [line for line in found if line not in ranked]
    first = (told + ranked)[:REASONS]
    return first, [line for line in found if line not in first]


def _device_hours(workload: Workload) -> float:
    """What a workload takes, paid for by itself or not."""
    return sum(row["device_hours"] for row in workload["allocations"])


def amounts(report: ReportDocument) -> list[tuple[str, str]]:
    """Figures beside the total: term and amount."""
    document, budget = report["plan"], report["budget"]
    summary = document["summary"]
    if summary["cost_microusd"] is None or budget is None:
        return []
    totals = budget["totals"]
    found = []
    if totals["committed_microusd"]:
        found.append(("committed, used or not", words.money(document, totals["committed_microusd"])))
        found.append(("variable", words.money(document, totals["variable_microusd"])))
    if totals["contingency_microusd"]:
        share = f"contingency of {100 * budget['contingency']:g} %, beside it"
        found.append((share, words.money(document, totals["contingency_microusd"])))
    if summary["devices"] and not document.get("schedule"):
        found.append(("devices", f"{summary['devices']:,}"))
    if summary["device_hours"]:
        found.append(("device-hours", f"{summary['device_hours']:,.0f}"))
    return found


def budget_share(document: PlanDocument) -> tuple[float, str] | None:
    """How much of the budget is used: a share, and words; None where none is set."""
    for limit in document["limits"]:
        if limit["name"] == "limits.budget" and limit["bound"]:
            scale = 1 if "micro" in limit["unit"].lower() else 1e6
            used, bound = (words.money(document, limit[name] * scale) for name in ("used", "bound"))
            share = limit["used"] / limit["bound"]
            return share, f"{used} of a budget of {bound}, {100 * (1 - share):.0f} % free"
    return None


def command(document: PlanDocument) -> str:
    """What makes this page again."""
    return asking_report(document, "-o", "html")


def provenance(document: PlanDocument) -> Grid:
    """What the plan was made from and with."""
    made, summary = document["provenance"], document["summary"]
    catalog, schedule = made["catalog"], document.get("schedule")
    gap = "unknown" if summary["gap"] is None else f"{100 * summary['gap']:.2f} %"
    threads = f"{made['threads']} thread{'' if made['threads'] == 1 else 's'}"
    rows = [
        ["Scenario", document["scenario_file"] + (f", case {document['case']}" if document["case"] else "")],
        *([["Begins", schedule["begin"]]] if schedule and schedule["begin"] else []),
        ["Prices of", words.price_days(document) or "no dated price"],
        ["Catalog", f"{catalog['name']} {catalog['as_of']}, sha256 {catalog['sha256']}"],
        ["Plan", f"sha256 {document['sha256']}"],
        ["Solver", f"{made['solver']} through {made['modelling']}, {threads}, seed {made['seed']}"],
        *([["Gap", f"{gap}, asked for {100 * made['gap_asked']:g} %"]] if summary["cost_microusd"] is not None else []),
        ["Ways", f"{made['columns']:,}, {made['columns_pruned']:,} of them never best"],
        ["Made by", f"plan {made['planner']}"],
    ]
    return Grid(title="What this page was made from", columns=columns("Of", "Is"), rows=rows)
