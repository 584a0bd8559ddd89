"""Everything that a report shows: one document, and that as text in any format but the page and the spreadsheet.

The document has the plan, its budget, what margins cost, and where figures are from; all views read it alone
(`report.html` and `report.workbook` too). The budget is drawn as blocks: months, fiscal years, who and what it is for,
what may happen, margins. In CSV it is one long table: a row for each workload, charge and month, which pivot tables
sum. Where a charge is metered, `count` × `billed_hours` × `price_usd_per_hour` is the amount; `hours_due` is the time
of the month in which it falls due.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planner.budget.charges import metered_hours
from planner.budget.document import budget_document
from planner.budget.model import (
    AMOUNTS,
    Budget,
    BudgetLine,
    CaseMoney,
    MarginAlone,
    MarginsCost,
    Monthly,
    MonthRow,
    Totals,
    What,
)
from planner.catalog.model import Catalog
from planner.errors import Place
from planner.plan.model.frontier_document import FrontierDocument, Tradeoff
from planner.plan.model.plan import PlanDocument
from planner.report import csv, json, markdown, text
from planner.report import plan_words as words
from planner.report.blocks import Block, Column, Grid, Items, Lines, Said, columns
from planner.report.model import ReportDocument, Reported, Saving
from planner.report.plan_formats import answer_blocks
from planner.report.plan_view import (
    allocation_grid,
    alternative_grid,
    because_items,
    infeasible_blocks,
    limit_grid,
    made_with,
    price_grid,
    rejected_grid,
)
from planner.report.schedule_view import KINDS, contract_block
from planner.report.trace import trace_of
from planner.units import format_money, format_percent, parse_money

ROUNDED = "each amount is rounded by itself, so that sums may miss by a dollar: -o json has them whole"

_SHOWN: dict[What, str] = {"training": "Training", "serving": "Serving", "unused": "Unused", "committed": "Committed",
          "variable": "Variable", "total": "Total", "contingency": "Contingency"}  # fmt: skip
_MARGINS = {"confidence": "confidence of predictions", "peak_factor": "peak factor", "target_load": "target load",
            "spares": "spare replicas"}  # fmt: skip


def budget_blocks(report: ReportDocument) -> list[Block]:
    """Everything about money and time; what does not fit a comment is folded in Markdown. Empty without a plan."""
    budget = report["budget"]
    if budget is None:
        return []
    plan = report["plan"]
    return [
        month_grid(plan, budget),
        year_grid(plan, budget),
        workload_grid(plan, budget),
        category_grid(plan, budget),
        provider_grid(plan, budget),
        case_grid(plan, budget),
        case_month_grid(plan, budget),
        *margin_blocks(report),
        Items(title="How the budget is laid out", items=tuple(budget["notes"]), folded=True),
    ]


def month_grid(plan: PlanDocument, budget: Budget) -> Grid:
    """Money by month; training and serving apart, their sum with the horizon that it is for."""
    shown = [key for key in _SHOWN if _is_shown(budget, key)]
    heads = [*(_head(budget, key) for key in shown), *(["With it"] if budget["contingency"] else [])]
    rows = [
        [month["label"] + (" *" if month["after_horizon"] else ""), *_amounts(plan, month, shown)]
        for month in budget["months"]
    ]
    if len(rows) > 1:
        served = any(workload["kind"] == "serving" for workload in plan["workloads"])
        label = f"{words.horizon(plan)} horizon" if served else "in all"
        rows.append([label, *_amounts(plan, budget["totals"], shown)])
    notes = ["training one-off; serving recurring, paid for the horizon"]
    if "contingency" in shown:
        notes.append(f"{_head(budget, 'contingency')}: contingency, beside the total")
    notes += [
        f"{one['what']}: {words.money(plan, one['total_microusd'])}, beside the total"
        for one in budget["beside"]
        if one["source"].startswith("owned[")
    ]
    if any(month["after_horizon"] for month in budget["months"]):
        notes.append("* after the horizon")
    by_month = [([month[AMOUNTS[key]] for month in budget["months"]], budget["totals"][AMOUNTS[key]]) for key in shown]
    kinds: tuple[What, ...] = ("training", "serving", "unused")
    both = [
        ([row[AMOUNTS[key]] for key in kinds], row["total_microusd"]) for row in (*budget["months"], budget["totals"])
    ]
    notes += [ROUNDED] if any(misses(*one) for one in (*by_month, *both)) else []
    return Grid(columns=(Column(head="Budget"), *(Column(head=head, right=True) for head in heads)), rows=rows,
                notes=tuple(notes))  # fmt: skip


def misses(parts: Sequence[int], whole: int) -> bool:
    """Whether amounts as they are printed add up to something else than their sum as it is printed.

    Parameters
    ----------
    parts, whole
        Amounts, and their sum.  [micro-USD]
    """
    *printed, total = (parse_money(format_money(one), rates=None) for one in (*parts, whole))
    return sum(printed) != total


def _is_shown(budget: Budget, key: What) -> bool:
    if key == "contingency":
        return bool(budget["contingency"])
    if key in ("committed", "variable"):
        return bool(budget["totals"]["committed_microusd"])
    return key == "total" or bool(budget["totals"][AMOUNTS[key]])


def _head(budget: Budget, key: What) -> str:
    return f"+ {format_percent(budget['contingency'])}" if key == "contingency" else _SHOWN[key]


def _amounts(plan: PlanDocument, row: Totals, shown: list[What]) -> list[str]:
    """Amounts of a month, a year or all; with the contingency at the end, beside the total."""
    cells = [words.money(plan, row[AMOUNTS[key]]) for key in shown]
    both = row["total_microusd"] + row["contingency_microusd"]
    return [*cells, *([words.money(plan, both)] if "contingency" in shown else [])]


def year_grid(plan: PlanDocument, budget: Budget) -> Grid:
    """Money by fiscal year; no rows where the plan has no date."""
    shown = [key for key in _SHOWN if _is_shown(budget, key)]
    heads = [*(_head(budget, key) for key in shown), *(["With it"] if budget["contingency"] else [])]
    rows = [
        [f"{year['label']} ({year['first_month']} to {year['last_month']})", *_amounts(plan, year, shown)]
        for year in budget["fiscal_years"]
    ]
    first = Column(head=f"Fiscal year from {budget['fiscal_year_start'].capitalize()}")
    return Grid(columns=(first, *(Column(head=head, right=True) for head in heads)), rows=rows)


def workload_grid(plan: PlanDocument, budget: Budget) -> Grid:
    """What each workload costs, its share of contracts included."""
    rows = [
        [row["workload"] or "nobody", _kind(row["kind"]), _money(plan, row), _share(budget, row)]
        for row in budget["by_workload"]
    ]
    parts = [row["total_microusd"] for row in budget["by_workload"]]
    notes = (ROUNDED,) if misses(parts, budget["totals"]["total_microusd"]) else ()
    return Grid(columns=columns("Cost of", "Paid", ">Total", ">Share"), rows=rows, notes=notes)


def _kind(kind: str) -> str:
    return {"training": "one-off", "serving": "recurring"}.get(kind, "unused")


def category_grid(plan: PlanDocument, budget: Budget) -> Grid:
    """What is bought: on demand, under contract, copies of data."""
    rows = [
        [KINDS.get(row["category"], words.spaced(row["category"])), row["commitment"], _money(plan, row),
         _share(budget, row)]
        for row in budget["by_category"]
    ]  # fmt: skip
    return Grid(columns=columns("Bought as", "Due", ">Total", ">Share"), rows=rows, folded=True)


def provider_grid(plan: PlanDocument, budget: Budget) -> Grid:
    """Who is paid."""
    rows = [
        [row["provider"], _money(plan, row), _share(budget, row)] for row in budget["by_provider"]
    ]  # fmt: skip
    return Grid(columns=columns("Paid to", ">Total", ">Share"), rows=rows, folded=True)


def _money(plan: PlanDocument, row: Monthly) -> str:
    return words.money(plan, row["total_microusd"])


def _share(budget: Budget, row: Monthly) -> str:
    total = budget["totals"]["total_microusd"]
    return f"{100 * row['total_microusd'] / total:.1f} %" if total else ""


def case_grid(plan: PlanDocument, budget: Budget) -> Grid:
    """What may happen, what is expected and what is the worst."""
    section, heads = budget["cases"], columns("Budget of", ">Probability", ">Total")
    if not section:
        return Grid(columns=heads, rows=())
    rows = [[case["name"], f"{100 * case['probability']:.4g} %", _known(plan, case)] for case in section["cases"]]
    rows.append(["expected", "", _known(plan, section["expected"])])
    worst = section["worst"]
    rows.append([f"worst: {worst['name']}", f"{100 * worst['probability']:.4g} %", _known(plan, worst)])
    return Grid(columns=heads, rows=rows)


def case_month_grid(plan: PlanDocument, budget: Budget) -> Grid:
    """Month by month: as written, what is expected, and the worst; nothing where there is one month, or one future."""
    section, months = budget["cases"], [month["label"] for month in budget["months"]]
    heads = columns("By month", ">As written", ">Expected", ">Worst")
    if not section or len(months) < 2:
        return Grid(columns=heads, rows=())
    told = [section["cases"][0], section["expected"], section["worst"]]
    rows = [
        [
            label,
            *(
                words.money(plan, known[place]) if (known := one and one["months_microusd"]) else "no plan"
                for one in told
            ),
        ]
        for place, label in enumerate(months)
    ]
    return Grid(columns=heads, rows=rows)


def _known(plan: PlanDocument, row: CaseMoney | Monthly | None) -> str:
    return "no plan" if row is None or row["total_microusd"] is None else words.money(plan, row["total_microusd"])


def margin_blocks(report: ReportDocument) -> list[Grid]:
    """The margins that are taken, what they cost together, and each alone where that was asked for."""
    margins = report["margins"]
    if not margins or not margins["taken"]:
        return []
    alone = {row["name"]: row for row in margins["each"] or ()}
    rows = [
        [_MARGINS[one["name"]], one["taken"], one["without"], _saves(report, alone.get(one["name"]))]
        for one in margins["taken"]
    ]
    heads = columns("Margin", "Taken", "Without", ">Alone costs")
    notes = [*_together(report, margins), *margins["notes"]]
    return [Grid(columns=heads, rows=rows, notes=tuple(notes))]


def _saves(report: ReportDocument, row: MarginAlone | None) -> str:
    if row is None:
        return ""
    return "no plan" if row["saves_microusd"] is None else words.money(report["plan"], row["saves_microusd"])


def _together(report: ReportDocument, margins: MarginsCost) -> list[str]:
    """What all margins cost, in one sentence; none where it was not worked out."""
    cost, whole, rest = margins["together_microusd"], margins["cost_microusd"], margins["without_microusd"]
    if cost is None or rest is None:
        return []
    share = f" ({100 * cost / whole:.1f} % of the total)" if whole else ""
    without = words.money(report["plan"], rest)
    return [f"together they cost {words.money(report['plan'], cost)}{share}: without any of them {without}"]


def report_document(
    plan: PlanDocument,
    catalog: Catalog,
    *,
    margins: MarginsCost | None = None,
    frontier: FrontierDocument | None = None,
    tradeoffs: Sequence[Tradeoff] = (),
    savings: Sequence[Saving] = (),
    fiscal_year_start: str | None = None,
    contingency: float | None = None,
    places: Mapping[str, Place] | None = None,
) -> ReportDocument:
    """The report of a plan.

    Parameters
    ----------
    plan
        A plan document; one without a plan has no budget.
    catalog
        That it was made with.
    margins
        What its margins cost (`planner.budget.margins`).
    frontier
        A frontier document.
    tradeoffs
        Cost against finish of single jobs.
    savings
        What would make it cheaper.
    fiscal_year_start, contingency
        In place of those of the scenario's `report`.
    places
        Path in the scenario -> where it is written (`Scenario.places`); without, lines are told by their path.

    Raises
    ------
    InputError
        The scenario's `report`, or what is asked for in its place, cannot be used.
    """
    budget = budget_document(plan, catalog, fiscal_year_start=fiscal_year_start, contingency=contingency)
    report: Reported = {
        "schema": "plan/report/v1",
        "plan": plan.copy(),
        "budget": budget,
        "margins": margins,
        "frontier": frontier,
        "tradeoffs": list(tradeoffs),
        "savings": list(savings),
    }
    return {**report, "trace": trace_of(report, places)}


COLUMNS = (
    "plan", "case", "month", "month_start", "month_end", "fiscal_year", "after_horizon", "workload", "kind", "provider",
    "place", "item", "category", "commitment", "payment", "count", "billed_hours", "price_usd_per_hour",
    "hours_due", "amount_microusd", "amount_usd",
    "contingency_microusd", "contingency_usd", "horizon_hours", "source",
)  # fmt: skip


def render_budget(report: ReportDocument) -> str:
    """Amounts add up to the plan's total, contingencies to the contingency: two columns, never one."""
    return csv.render(budget_rows(report), COLUMNS)


def budget_rows(report: ReportDocument) -> Iterator[dict[str, object]]:
    """One row a line and month with money in it, then the contingency of each month; none without a plan."""
    budget, plan = report["budget"], report["plan"]
    if budget is None:
        return
    head = {"plan": plan["name"], "case": plan["case"], "horizon_hours": budget["horizon_hours"]}
    for line in budget["lines"]:
        for month, hours, amount in zip(budget["months"], line["month_hours"], line["months_microusd"]):
            if amount:
                known: Mapping[str, object] = line
                cells = {name: known[name] for name in COLUMNS if name in known}
                money = {"amount_microusd": amount, "amount_usd": amount / 1e6, "hours_due": hours}
                yield {**head, **_month(month), **cells, **money, **_metered(line, amount)}
    for month in budget["months"]:
        if month["contingency_microusd"]:
            aside = month["contingency_microusd"]
            money = {"contingency_microusd": aside, "contingency_usd": aside / 1e6}
            yield {**head, **_month(month), "kind": "contingency", **money}


def _metered(line: BudgetLine, amount_microusd: int) -> dict[str, object]:
    """What of the hours of each node an amount pays for, and their price; empty where none is metered."""
    hours, price = metered_hours(line), line["price_microusd_per_hour"]
    if hours is None or price is None:
        return {}
    billed = hours * line["part_of_price"] * (amount_microusd / line["charge_microusd"])
    return {"billed_hours": billed, "price_usd_per_hour": price / 1e6}


def _month(month: MonthRow) -> dict[str, object]:
    dates = {"month_start": month["start_date"], "month_end": month["end_date"]}
    return {"month": month["label"], **dates, "fiscal_year": month["fiscal_year"],
            "after_horizon": "yes" if month["after_horizon"] else "no"}  # fmt: skip


FOLDED = "Prices, assumptions, what was not considered, how the budget is laid out"


def render_report(
    report: ReportDocument, form: str, *, width: int = 100, colour: bool = False, full: bool = False
) -> str:
    """A report as table, md, csv or json.

    Parameters
    ----------
    form
        table (for a terminal of `width` columns), md (a comment on a pull request), csv (one long table), json.
    full
        Long lists whole.
    """
    if form == "json":
        return json.render(report)
    if form == "csv":
        return render_budget(report)
    if form == "md":
        return markdown.draw(report_blocks(report, full=full), summary=FOLDED)
    return text.draw(terminal_blocks(report, full=full), width=width, style=text.Style(colour))


def report_blocks(report: ReportDocument, *, full: bool = False) -> list[Block]:
    """What was decided, what it costs and when, what else there was; the rest folded."""
    plan = report["plan"]
    prices = [price_grid(plan)] if report["budget"] is not None else []
    assumed = Items(title="Assumed (not in the scenario)", items=words.merged(plan, plan["assumed"]), folded=True)
    return [*terminal_blocks(report, full=full), *prices, assumed, rejected_grid(plan, full)]


def terminal_blocks(report: ReportDocument, *, full: bool = False) -> list[Block]:
    """The decision and its money; prices, assumptions and what was not considered are those of `plan explain`."""
    plan = report["plan"]
    blocks = answer_blocks(plan)
    if plan["infeasible"]:
        blocks += infeasible_blocks(plan, plan["infeasible"])
    if report["budget"] is not None:
        blocks += [allocation_grid(plan), contract_block(plan), *budget_blocks(report), limit_grid(plan)]
    warnings = Items(title="Warnings", items=words.merged(plan, plan["warnings"]), tone="fair")
    made = Lines(lines=(made_with(plan),))
    savings = Said(mark=">", rows=[(one["text"], one["command"]) for one in report["savings"]], tone="good")
    return [*blocks, savings, because_items(plan), alternative_grid(plan, full), warnings, made]
