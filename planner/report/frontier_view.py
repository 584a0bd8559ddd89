"""A frontier in every output format, with its points on two axes, drawn with characters or as a chart.

The chart is a step line, since between two points the tighter plan's limit rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from planner import units
from planner.analysis.why.settings import in_words
from planner.plan.model.frontier_document import FrontierDocument, FrontierPoint, SweepTold
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Headline, Lines, columns, warned
from planner.report.charts import Chart, Dot, Panel, Series, chart, linear, steps
from planner.report.html.page_parts import render_sheet
from planner.report.next_words import asking_at_loosest
from planner.report.plan_words import rented_as

_SHOWN = {
    "deadline": ("deadline", "days", 24.0),
    "time": ("finish", "days", 24.0),
    "budget": ("budget", "USD", 1.0),
    "cost": ("cost", "USD", 1.0),
    "carbon": ("carbon", "kg CO2", 1.0),
}
_HEIGHT = 260  # [px]


def frontier_chart(document: FrontierDocument) -> Chart | None:
    """A plan a point, a step where the next becomes possible; None where there is one plan or none."""
    points, sweep = document["points"], document["sweep"]
    if len(points) < 2:
        return None
    over, unit, size = _SHOWN[sweep["over"]]
    against, other, scale = _SHOWN[sweep["against"]]
    placed = [(point["from"] / size, point["against"] / scale) for point in points]
    dots = [Dot(x, y, f"{_rented(point)}: {over} {x:,.4g} {unit}, {against} {y:,.5g} {other}")
            for (x, y), point in zip(placed, points)]  # fmt: skip
    low, high = placed[0][0], placed[-1][0]
    room = 0.04 * (high - low)
    series = [
        Series(name="", look="steps", paths=[steps(placed)]),
        *(
            Series(name=name, look=look, dots=[dot for dot, point in zip(dots, points) if point["here"] == here])
            for here, name, look in ((False, "a plan", "circle"), (True, "within the scenario's own limit", "star"))
        ),
    ]
    x_axis = linear(low - room, high + room, f"{over} at least, {unit}")
    y_axis = linear(0.0, 1.06 * max(y for _, y in placed), other, most=4)
    return chart(
        id="frontier-figure",
        title=f"Frontier: {against} against {over}",
        summary=f"{len(points)} plans, each the best for some {over}; the table below gives the same figures",
        panels=[Panel(x=x_axis, y=y_axis, height=_HEIGHT, series=series)],
    )


def _rented(point: FrontierPoint) -> str:
    """What each workload rents."""
    return ", ".join(
        f"{workload['name']}: {row['count']} × {row['offer']}"
        for workload in point["workloads"]
        for row in workload["allocations"]
    )


HEIGHT = 8  # lines of the drawing, without the axis
LABELS = 5  # on the axis below, at most


def scatter(
    xs: Sequence[float],
    ys: Sequence[float],
    marks: Sequence[str],
    *,
    width: int,
    x_label: Callable[[float], str],
    y_label: Callable[[float], str],
    legend: Sequence[str] = (),
) -> list[str]:
    """Lines of a plot of at most `width` characters; a mark per point, later ones on top.

    Parameters
    ----------
    xs, ys
        Places of the points, at least one, (n,).
    marks
        A character a point.
    width
        Of the plot; a legend stands beyond it.  [characters]
    x_label, y_label
        A value of an axis as text.
    legend
        Words at the right of the first lines, one a line.

    Examples
    --------
    >>> for line in scatter([0, 9], [0, 10], "xo", width=20, x_label="{:.0f}".format, y_label="{:.0f}".format):
    ...     print(line.rstrip())
     10┤            o
       │
       │
       │
       │
       │
       │
      0┤x
       └┬─────┬─────┬─
        0     4     9
    """
    low_x, high_x, low_y, high_y = min(xs), max(xs), min(ys), max(ys)
    labels = (
        [y_label(high_y), y_label((low_y + high_y) / 2), y_label(low_y)] if high_y > low_y else ["", y_label(low_y)]
    )
    margin = max(map(len, labels)) + 1
    inner = max(12, width - margin - 4)
    cells = [[" "] * inner for _ in range(HEIGHT)]
    for x, y, mark in zip(xs, ys, marks):
        row = HEIGHT - 1 - _place(y, low_y, high_y, HEIGHT)
        cells[row][_place(x, low_x, high_x, inner)] = mark
    named = {0: labels[0], HEIGHT - 1: labels[-1]}
    lines = []
    for number, row_cells in enumerate(cells):
        tick = "┤" if named.get(number) else "│"
        note = f"   {legend[number]}" if number < len(legend) else ""
        lines.append(f"{named.get(number, ''):>{margin}}{tick}{''.join(row_cells)}{note}".rstrip())
    return [*lines, *_axis(low_x, high_x, inner, margin, x_label)]


def _place(value: float, low: float, high: float, count: int) -> int:
    return round((value - low) / (high - low) * (count - 1)) if high > low else 0


def _axis(low: float, high: float, inner: int, margin: int, label: Callable[[float], str]) -> list[str]:
    """The axis and its labels: both ends, and as many between as leave room between labels."""
    longest = max(len(label(low)), len(label(high))) + 3
    count = max(2, min(LABELS, inner // longest)) if high > low else 1
    places = [round(number * (inner - 1) / (count - 1)) for number in range(count)] if count > 1 else [0]
    rule = ["─"] * inner
    texts = [" "] * (inner + longest)
    for place in places:
        rule[place] = "┬"
        text = label(low + (high - low) * place / max(1, inner - 1))
        start = min(max(0, place - len(text) // 2), inner + longest - len(text))
        texts[start : start + len(text)] = text
    return [f"{'':>{margin}}└{''.join(rule)}─", f"{'':>{margin}} {''.join(texts)}".rstrip()]


HEADS = {"deadline": "Deadline from", "budget": "Budget from", "carbon": "Carbon from"}
OBJECTIVES = {"cost": "cost", "time": "finish", "carbon": "carbon"}
STEPS = {"deadline": "saved per day", "budget": "saved per $1,000", "carbon": "saved per t"}
_PLOT = 72


def render_frontier(
    document: FrontierDocument,
    form: str,
    rows: list[dict[str, object]],
    *,
    width: int = 100,
    colour: bool = False,
    elapsed_s: float | None = None,
    journal: str = "",
) -> str:
    """A frontier document as table, json, csv, md or html.

    Parameters
    ----------
    rows
        The points flat, for csv.
    journal
        Where the points are kept for another run; told in the table.
    """
    if form == "json":
        return json.render(document)
    if form == "csv":
        return csv.render(rows, csv.columns_of(rows))
    if form == "html":
        return _page(document)
    blocks = frontier_blocks(document, elapsed_s=elapsed_s)
    if form == "md":
        return markdown.draw(blocks)
    if len(document["points"]) > 1:
        blocks.insert(2, Lines(lines=tuple(plot_lines(document, min(width, 100)))))
    if journal:
        blocks.append(Lines(lines=(f" Points are kept in {journal}: a run that was stopped goes on from there",)))
    return text.draw(blocks, width=width, style=text.Style(colour))


def _page(document: FrontierDocument) -> str:
    """The figure and the table as one HTML page; what a scenario says is escaped."""
    title, headline, *others = frontier_blocks(document)
    name, facts = title.lines if isinstance(title, Lines) else ("", "")
    return render_sheet(name, [Lines(lines=(facts,)), headline, frontier_chart(document), *others])


def frontier_blocks(document: FrontierDocument, *, elapsed_s: float | None = None) -> list[Block]:
    """What a sweep found, most important first."""
    return [_title(document), _headline(document, elapsed_s), _grid(document), warned(document["messages"])]


def _title(document: FrontierDocument) -> Block:
    name = document["name"] + (f" (case {document['case']})" if document["case"] else "")
    title = f"{name} · {document['title']}" if document["title"] else name
    catalog = document["provenance"]["catalog"]
    facts = f"catalog {catalog['name']} {catalog['as_of']} (sha256 {catalog['sha256'][:8]}…)"
    return Lines(lines=(title, facts), strong_first=True)


def _headline(document: FrontierDocument, elapsed_s: float | None) -> Block:
    sweep, count = document["sweep"], len(document["points"])
    whose = f" of {sweep['workload']}" if sweep["workload"] else ""
    traded = f"{OBJECTIVES[sweep['against']]} against {sweep['over']}{whose}"
    seconds = f", {elapsed_s:.1f} s" if elapsed_s is not None else ""
    if document["status"] == "infeasible":
        whatever = f", whatever the {sweep['over']}"
        most = whatever if sweep["high"] is None else f" at a {sweep['over']} of {shown_limit(document, sweep['high'])}"
        text_ = f"nothing meets every limit{most} (proven{seconds})"
        why = f"why: {asking_at_loosest(document)}"
        return Headline(word="INFEASIBLE", text=text_, right=(why,), tone="bad")
    if not count:
        return Headline(word="NO PLAN", text=f"{document['status']}: no point was found{seconds}", tone="bad")
    proven = "proven" if document["complete"] else "not all proven, or not all"
    points = f"{count} Pareto point{'s' if count > 1 else ''}"
    right = tuple(
        f"{same['name']} {money(document, same['cost_microusd'])} in each"
        for same in document["unchanging"]
        if count > 1
    )
    text_ = f"{traded} · {points}, {proven} ({document['provenance']['solves']} programs{seconds})"
    return Headline(word="FRONTIER", text=text_, right=right, tone="good" if document["complete"] else "fair")


def _grid(document: FrontierDocument) -> Block:
    sweep, points = document["sweep"], document["points"]
    shown = cells_of(document)
    rows = [[cell(point) for _, cell in shown] for point in points]
    return Grid(columns=columns(*(head for head, _ in shown)), rows=rows, notes=tuple(_notes(document, sweep, points)))


def cells_of(document: FrontierDocument) -> list[tuple[str, Callable[[FrontierPoint], str]]]:
    """Heads and what stands under them."""
    sweep = document["sweep"]
    over, against = sweep["over"], sweep["against"]
    found: list[tuple[str, Callable[[FrontierPoint], str]]] = [
        (f">{HEADS[over]}", lambda point: enough(document, point["from"]) + (" *" if point["here"] else "")),
        ("Plan", lambda point: plan_of(document, point)),
        (">Devices", lambda point: f"{point['devices']:,}"),
    ]
    if any(point["finish_hours"] is not None for point in document["points"]):
        found.append((">Finish", lambda point: units.format_duration((point["finish_hours"] or 0.0) * 3600)))
    if over != "budget":
        found.append((">Cost", lambda point: money(document, point["cost_microusd"])))
    if "carbon" in (over, against):
        found.append((">Carbon", lambda point: f"{point['carbon_kg']:,.0f} kg"))
    found.append((f">{STEPS[over]}", lambda point: _saved(document, point["saved"])))
    return found


def _notes(document: FrontierDocument, sweep: SweepTold, points: list[FrontierPoint]) -> list[str]:
    notes = []
    if any(point["here"] for point in points):
        notes.append(f"* what the scenario's own {sweep['over']} of {shown_limit(document, sweep['own'])} allows")
    if points and document["infeasible_below"] is not None:
        least = shown_limit(document, document["infeasible_below"])
        notes.append(f"below {least} nothing meets every limit (proven)")
    if points and sweep["high"] is not None and document["complete"]:
        most = shown_limit(document, sweep["high"])
        notes.append(f"from the last one to {most} nothing is saved by a looser {sweep['over']}")
    if sweep["over"] == "deadline" and points:
        notes.append("a deadline allows for the error of the prediction; finish is the prediction itself")
    if any(point["status"] != "optimal" for point in points):
        notes.append("some points were not proven before their time was up: better ones may exist")
    return notes


def plan_of(document: FrontierDocument, point: FrontierPoint) -> str:
    """What the workloads that change from point to point rent."""
    same = {workload["name"] for workload in document["unchanging"]} if len(document["points"]) > 1 else set()
    changing = [workload for workload in point["workloads"] if workload["name"] not in same]
    texts = []
    for workload in changing:
        rented = " + ".join(rented_as(row) for row in workload["allocations"])
        texts.append(f"{workload['name']}: {rented}" if len(changing) > 1 else rented)
    return "; ".join(texts)


def shown_limit(document: FrontierDocument, value: float | None) -> str:
    """A limit of the sweep for people."""
    if value is None:
        return "no limit"
    if document["sweep"]["over"] == "deadline":
        return units.format_duration(value * 3600)
    if document["sweep"]["over"] == "budget":
        return money(document, round(value * 1e6))
    return f"{value:,.0f} kg"


def enough(document: FrontierDocument, value: float) -> str:
    """A limit from which on there is a plan, rounded up: as it is told it is asked for, and a little less has none."""
    unit, whole = {"deadline": ("s", 3600), "budget": ("microusd", 1e6), "carbon": ("mg", 1e6)}[
        document["sweep"]["over"]
    ]
    return in_words(unit, math.ceil(round(value * whole, 3)), currency=document["currency"])


def money(document: FrontierDocument, microusd: float) -> str:
    """Money in the scenario's currency."""
    return units.format_money(round(microusd), currency=document["currency"])


def _saved(document: FrontierDocument, value: float | None) -> str:
    if value is None:
        return "–"
    against = document["sweep"]["against"]
    if against == "cost":
        return money(document, value * 1e6)
    return units.format_duration(value * 3600) if against == "time" else f"{value:,.1f} kg"


def plot_lines(document: FrontierDocument, width: int) -> list[str]:
    """The frontier drawn with characters."""
    sweep, points = document["sweep"], document["points"]
    days = 24.0 if sweep["over"] == "deadline" else 1.0
    units_x = {"deadline": "days", "budget": document["currency"], "carbon": "kg"}[sweep["over"]]
    xs = [point["from"] / days for point in points]
    scale = {"cost": 1000.0, "time": 24.0, "carbon": 1.0}[sweep["against"]]
    ys = [point["against"] / scale for point in points]
    what = {"cost": "cost, thousands", "time": "finish, days", "carbon": "carbon, kg"}[sweep["against"]]
    legend = ("x  a plan", "*  at the own limit") if any(point["here"] for point in points) else ("x  a plan",)
    drawn = scatter(
        xs,
        ys,
        ["*" if point["here"] else "x" for point in points],
        width=min(_PLOT, width - 24),
        x_label=lambda value: f"{value:,.3g}" if value < 1000 else f"{value:,.0f}",
        y_label=lambda value: f"{value:,.3g}" if value < 1000 else f"{value:,.0f}",
        legend=legend,
    )
    return [f" {what}", *drawn, f"{'':>8}{HEADS[sweep['over']].lower()}, {units_x}"]
