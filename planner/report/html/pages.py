"""Pages: the sections of a report for every kind of plan, in one file without a script; and reserve or rent as another.

Among the sections: how full each pool is over the calendar, in nodes in use against those that are contracted or
owned; and the trace of the report as tables, one for each kind of source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from planner import units
from planner.analysis.reserve.model import ReserveDocument
from planner.budget.model import Budget
from planner.carriers import dataclass
from planner.plan.model.bought import PoolUseRow
from planner.plan.model.frontier_document import FrontierDocument
from planner.plan.model.plan import Alternative, PlanDocument, Workload
from planner.plan.parts import currency_of
from planner.report import plan_formats
from planner.report import plan_view as view
from planner.report import plan_words as words
from planner.report import report_view as budgets
from planner.report import screen_words as said
from planner.report import serving_words as serving
from planner.report.alternatives_view import elsewhere_lines, others_blocks, uncertain_blocks
from planner.report.blocks import Block, Grid, Items, Lines, columns
from planner.report.charts import Axis, Box, Chart, Panel, Series, chart, cut, linear
from planner.report.frontier_view import frontier_blocks, frontier_chart
from planner.report.html import cost_figures, page_parts, prediction_figures
from planner.report.html.page_parts import Part, Section, captioned, render_sheet, rendered, shown, without
from planner.report.html.prediction_figures import Calendar, band_figure, calendar_figure
from planner.report.model import ReportDocument, TraceKind, TraceRow
from planner.report.plan_words import money
from planner.report.reserve_view import reserve_blocks
from planner.report.schedule_view import schedule_blocks

_TITLES = {
    "fact": "Facts of the catalog",
    "scenario": "Lines of the scenario",
    "assumption": "Assumed, since the scenario does not say",
    "equation": "Computed: equations and rules",
}
_HEADS = {
    "fact": columns("Figure", ">Value", "Unit", "Source", "As of", "Status"),
    "scenario": columns("Figure", ">Value", "Unit", "Where"),
    "assumption": columns("Assumption", ">Value", "Unit", "Source"),
    "equation": columns("Figure", ">Value", "Unit", "Equation", "Source"),
}
_CELLS: dict[TraceKind, Callable[[TraceRow], list[str]]] = {
    "fact": lambda entry: [entry["source"], entry["as_of"], entry["status"]],
    "scenario": lambda entry: [entry["place"]],
    "assumption": lambda entry: [entry["source"]],
    "equation": lambda entry: [entry["id"], entry["source"]],
}


def source_tables(document: PlanDocument, trace: Sequence[TraceRow]) -> list[Grid]:
    """The trace, folded: facts first, then what the reader wrote, what was assumed, and what was computed."""
    grids = []
    for kind, title in _TITLES.items():
        rows = [_row(document, entry) for entry in trace if entry["kind"] == kind]
        rows = [list(row) for row in dict.fromkeys(map(tuple, rows))]
        if rows:
            grids.append(Grid(title=f"{title} ({len(rows):,})", columns=_HEADS[kind], rows=rows, folded=True))
    return grids


def _row(document: PlanDocument, entry: TraceRow) -> list[str]:
    value = entry["value"]
    if entry["kind"] == "fact":  # numbers of the catalog are texts in a plan
        value = _number(value)
    value, unit = _shown(document, value, entry["unit"])
    return [entry["figure"], value, unit, *_CELLS[entry["kind"]](entry)]


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _shown(document: PlanDocument, value: Any, unit: str) -> tuple[str, str]:
    """A value and its unit as people read them."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower(), unit
    if isinstance(value, str):
        return value, unit
    if unit.lower() == "micro-usd":
        return words.money(document, value), ""
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:.6g}", unit


TITLE = "Nodes of each pool"
_MOST = 4  # pools that are drawn, those with the most nodes; the table has all
_PANEL = 80  # height of one pool [px]


def pool_figure(document: PlanDocument) -> Chart | None:
    """A panel a pool, one below the other on one axis; None without a calendar."""
    plan = document.get("schedule")
    used = sorted(plan["use"], key=lambda use: -max(use["used"], default=0))[:_MOST] if plan else []
    if not plan or not used:
        return None
    calendar = Calendar(plan["begin"], document["summary"]["horizon_hours"])
    horizon = calendar.horizon_hours
    edges = [calendar.at(min(n * plan["period_hours"], horizon)) for n in range(plan["periods"] + 1)]
    axis = calendar.axis()
    return chart(
        id="pools-figure",
        title=TITLE,
        summary=f"Nodes in use over {calendar.length} in {len(used)} pools, against the nodes under contract or owned; "
        "the table below gives the most of each",
        panels=[_panel(use, edges, axis._replace(title="") if use is not used[-1] else axis) for use in used],
    )


def _panel(use: PoolUseRow, edges: Sequence[float], axis: Axis) -> Panel:
    """Steps of what runs, filled, and of what is held."""
    running = [
        Box(begin, end, 0.0, count, f"{count:,} nodes in use") for begin, end, count in _runs(use["used"], edges)
    ]
    held = [((begin, count), (end, count)) for begin, end, count in _runs(use["reserved"], edges)]
    most = max([*use["used"], *use["reserved"], 1])
    return Panel(
        x=axis,
        y=linear(0.0, most, "nodes", most=2 if most > 1 else 1),
        height=_PANEL,
        series=[
            Series(name="nodes in use", look="area", boxes=running),
            Series(name="contracted or owned", look="dashes", paths=held),
        ],
        title=cut(use["pool"]),
    )


def _runs(counts: Sequence[int], edges: Sequence[float]) -> list[tuple[float, float, int]]:
    """Periods in a row with the same count, as one: begin, end, count; those of none are left out."""
    found: list[tuple[float, float, int]] = []
    for number, count in enumerate(counts):
        if found and found[-1][2] == count:
            found[-1] = (found[-1][0], edges[number + 1], count)
        else:
            found.append((edges[number], edges[number + 1], count))
    return [run for run in found if run[2]]


_WAYS = "What would be enough, the cheapest way first; each command solves with that change."
_WARNINGS = 3  # that are told at once
_ALONE = (
    "Each job by itself, begun as soon as it may, up to twice its deadline: what workloads share (a budget, devices, "
    "contracts, a calendar) is left out. Finishes are predictions; a deadline has to hold at the confidence asked for."
)


def sections_of(report: ReportDocument) -> list[Section]:
    """The sections of a page in their order; what is asked for less often is folded, at the end."""
    plan, budget = report["plan"], report["budget"]
    decided = [_allocation(plan), _timeline(plan), _memory(plan), _cost(report, budget)] if budget else []
    return [
        _decision(plan),
        *decided,
        _tradeoff(report),
        *(replace(section, folded=True) for section in (_alternatives(plan), _sources(report), _rejected(plan))),
        Section(id="made", title="Made from", parts=[page_parts.provenance(plan)], folded=True),
    ]


def _decision(plan: PlanDocument) -> Section:
    """What is told below the answer itself: ways out, cases, warnings."""
    matters, facts = said.matters(plan), plan["infeasible"]
    blocks: list[Block] = [
        *((plan_formats.ways_out_said(plan, facts), *view.infeasible_blocks(plan, facts)) if facts else ()),
        *uncertain_blocks(plan),
        Items(title="Warnings", items=tuple(matters[:_WARNINGS]), tone="fair"),
        Items(title="More warnings", items=tuple(matters[_WARNINGS:]), tone="fair", folded=True),
    ]
    return Section(id="decision", title="Decision", lead=_WAYS if facts else "", parts=shown(blocks))


def _allocation(plan: PlanDocument) -> Section:
    parts: list[Part] = shown(
        [
            captioned(view.allocation_grid(plan), "What runs where"),
            Lines(lines=tuple(words.shared_lines(plan))),
            captioned(without(view.limit_grid(plan), 3), "Limits and how much of them is used"),
            *_bought(plan),
            *serving_tables(plan),
            Items(title="More reasons", items=tuple(page_parts.reasons(plan)[1]), folded=True),
            replace(captioned(view.named_grid(plan), "What the scenario names", "Name"), folded=True),
        ]
    )
    return Section(id="allocation", title="Allocation", parts=parts)


def _bought(plan: PlanDocument) -> list[Block]:
    """Contracts, shares of them, copies of data, what is spent whatever happens."""
    return schedule_blocks(plan)[2:]


def serving_tables(plan: PlanDocument) -> list[Block]:
    """Where requests go, what a million tokens cost, how often spares are enough."""
    lines = [
        line.strip()
        for workload in plan["workloads"]
        if workload["kind"] == "serving"
        for line in (*serving.price_lines(plan, workload), serving.availability_line(workload))
        if line
    ]
    return [serving.routing_block(plan), Items(title="Per token, and when replicas fail", items=tuple(lines))]


def _timeline(plan: PlanDocument) -> Section:
    jobs, pools = schedule_blocks(plan)[:2] if plan.get("schedule") else (None, None)
    table = None if plan.get("schedule") else prediction_figures.finish_table(plan)
    latencies = captioned(serving.latency_block(plan), prediction_figures.TITLE, "Workload", "Device", "Latency")
    classes = captioned(
        serving.class_block(plan), "Each class of requests", "Workload", "Device", "Requests", "Latency"
    )
    parts = shown(
        [
            calendar_figure(plan) if plan.get("schedule") else prediction_figures.timeline_figure(plan),
            table,
            jobs,
            pool_figure(plan),
            pools,
            prediction_figures.latency_figure(plan),
            latencies,
            classes,
            serving.simulation_block(plan),
        ]
    )
    lead = "" if parts else "No job has a deadline and no fleet a target for its latency."
    return Section(id="timeline", title="Timeline and targets", lead=lead, parts=parts)


def _memory(plan: PlanDocument) -> Section:
    parts = shown([prediction_figures.memory_figure(plan), prediction_figures.memory_table(plan)])
    lead = "" if parts else "No memory is predicted: the rates of these replicas were given."
    return Section(id="memory", title="Memory per device", lead=lead, parts=parts)


def _cost(report: ReportDocument, budget: Budget) -> Section:
    plan, budget = report["plan"], cost_figures.dearest_first(budget)
    parts = shown(
        [
            cost_figures.month_figure(plan, budget),
            captioned(budgets.month_grid(plan, budget), "Cost by month", "Month"),
            captioned(budgets.year_grid(plan, budget), "Cost by fiscal year"),
            cost_figures.workload_figure(plan, budget),
            captioned(budgets.workload_grid(plan, budget), "Cost by workload", "Workload"),
            cost_figures.provider_figure(plan, budget),
            _several(captioned(budgets.provider_grid(plan, budget), "Cost by provider", "Provider")),
            _several(captioned(budgets.category_grid(plan, budget), "Cost by how it is bought")),
            captioned(budgets.case_grid(plan, budget), "Cost of what may happen"),
            *(replace(block, title="What the margins cost") for block in budgets.margin_blocks(report)),
            cost_figures.hours_table(plan),
            Items(title="How the budget is laid out", items=tuple(budget["notes"]), folded=True),
        ]
    )
    return Section(id="cost", title="Cost and device-hours", parts=parts)


def _several(grid: Grid) -> Grid | None:
    """A table of shares; one of a single row says no more than the total."""
    return grid if len(grid.rows) > 1 else None


def _tradeoff(report: ReportDocument) -> Section:
    plan, frontier, alone = report["plan"], report["frontier"], report["tradeoffs"]
    parts: list[Part] = []
    if frontier:
        parts += shown([frontier_chart(frontier), *_frontier_tables(frontier)])
    if any(job["points"] for job in alone):
        parts += shown(
            [Lines(lines=(_ALONE,)), *cost_figures.job_figures(plan, alone), cost_figures.job_table(plan, alone)]
        )
    lead = "" if parts else "Nothing here trades cost against finish."
    return Section(id="tradeoff", title="Cost against deadline", lead=lead, parts=parts)


def _frontier_tables(frontier: FrontierDocument) -> list[Block]:
    found = [block for block in frontier_blocks(frontier) if isinstance(block, Grid | Items)]
    return [replace(block, title="Every plan of the frontier") if isinstance(block, Grid) else block for block in found]


def _alternatives(plan: PlanDocument) -> Section:
    rows = [
        [*words.alternative_row(plan, workload, other), would_win(plan, workload, other)]
        for workload in plan["workloads"]
        for other in workload["alternatives"]
        if other["device"] not in {row["device"] for row in workload["allocations"]}
    ]
    heads = columns("Workload", "Device", ">Shapes", ">Devices", ">Hours", ">Cost", ">Dearer", "Note", "Would win if")
    lead = (
        "The best way on each other device, each workload alone. What would win over the whole plan, limits and "
        "contracts included, is solved by: plan explain SCENARIO --break-even."
    )
    single = Lines(lines=tuple(line.strip() for line in (*words.single_kind(plan), *elsewhere_lines(plan))))
    table = Grid(title="Best way on each other device", columns=heads, rows=rows, grouped=True)
    parts = shown([table, single, *others_blocks(plan)])
    return Section(
        id="alternatives",
        title="Alternatives",
        lead=lead if rows else "No other device that is allowed could run this.",
        parts=parts,
    )


def would_win(plan: PlanDocument, workload: Workload, other: Alternative) -> str:
    """At what price of a device-hour the other way would cost as much as what is chosen, by itself.

    Its cost is its price times its device-hours, so the price falls in the proportion of the costs.

    Parameters
    ----------
    plan
        The plan, for its currency.
    workload
        As it was decided, for its cost; under contract, or without one, there is no such price: "".
    other
        The way on the other device.
    """
    reserved = any(row.get("funding") == "reserved" for row in workload["allocations"])
    chosen, hours = workload["cost_microusd"], other["devices"] * other["hours"]
    if reserved or not chosen or not hours or not other["cost_microusd"]:
        return ""
    if other["cost_microusd"] <= chosen:
        return "alone it is no dearer: limits or other workloads speak against it"
    now, even = (_rate(plan, cost / hours) for cost in (other["cost_microusd"], chosen))
    return f"its price fell below {even} /device-h (now {now})"


def _rate(plan: PlanDocument, microusd: float) -> str:
    """A price of an hour, to the cent."""
    return units.format_money(round(microusd / 1e4) * 10_000, exact=True, currency=currency_of(plan))


def _sources(report: ReportDocument) -> Section:
    plan = report["plan"]
    table = view.band_grid(plan)
    notes = [*table.notes, *dict.fromkeys(serving.tier_words(row["tier"]) for _, row, _ in serving.pointed(plan))]
    errors = captioned(replace(table, notes=tuple(notes)), "Error bands of this plan", "Workload")
    checks = Items(title="Rules of thumb beside the answer", items=tuple(view.cross_check_lines(plan)))
    parts = shown(
        [
            band_figure(plan),
            errors if errors.rows else Items(title="Error bands", items=tuple(notes)),
            checks,
            captioned(replace(view.price_grid(plan), folded=False), "Prices", "Shape"),
            Items(title="Notes", items=words.merged(plan, plan["notes"])),
            *source_tables(plan, report["trace"]),
        ]
    )
    lead = (
        "Every figure of this page leads to an equation, to a fact with source and date, to a line of the scenario or "
        "to an assumption that is written down here. Folded tables open with a click."
    )
    return Section(id="sources", title="Error bands, assumptions and sources", lead=lead, parts=parts)


def _rejected(plan: PlanDocument) -> Section:
    heads = ("Workload", "Dropped", "Why", "Nearest miss")
    grid = replace(captioned(view.rejected_grid(plan, full=True), "Dropped on the way", *heads), folded=False)
    return Section(id="rejected", title="What was not considered, and why", parts=shown([grid]))


_FEW = 4  # workloads that are told beside the answer


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
    text = rendered(
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
        reasons=page_parts.reasons(plan)[0],
        savings=report["savings"],
        cards=plan_formats.workload_cards(plan) if len(plan["workloads"]) <= _FEW else None,
        amounts=page_parts.amounts(report),
        budget=page_parts.budget_share(plan),
        command=page_parts.command(plan),
        sections=sections,
    )
    return Page(text=text, sections=len(sections), warnings=len(said.matters(plan)))


def render_reserve_page(document: ReserveDocument) -> str:
    """The page; it works offline, and what a scenario says is escaped."""
    return render_sheet(f"Reserve or rent: {document['name']}", reserve_blocks(document))
