"""The budget of a plan as plain data: months, fiscal years, workloads, providers, contingency, cases.

All money is integer micro-dollars. The months of every line add up to the line, the lines to the plan's total.
Training is paid once, serving for as long as it runs: the two stand apart, and their sum is that of the horizon.

The budget of an uncertain plan: what is expected, and the dearest case, month by month.

What a reader of a budget must know: how months, payments and shares were laid out, and what is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import TypeVar

from pydantic import ValidationError

from planner.budget.charges import (
    COMMITTED,
    INSTALMENTS,
    MONTH_HOURS,
    MONTHS,
    MOST_MONTHS,
    UNUSED,
    UPFRONT,
    VARIABLE,
    Charge,
    Line,
    Month,
    begin_of,
    by_time,
    charges_of,
    lines_of,
    months_until,
    weighed,
)
from planner.budget.model import (
    Beside,
    Budget,
    BudgetLine,
    CaseMoney,
    CasesMoney,
    CategoryMoney,
    FiscalYear,
    Monthly,
    MonthRow,
    ProviderMoney,
    Totals,
    WorkloadMoney,
)
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.errors import InputError, PlanError
from planner.plan.model.plan import PlanDocument
from planner.plan.parts import currency_of, report_asked, rows_of
from planner.scenario.schema import ReportOptions
from planner.spelling import closest
from planner.units import format_duration, format_money


def notes_of(
    document: PlanDocument, charges: Sequence[Charge], months: Sequence[Month], options: ReportOptions
) -> list[str]:
    """Sentences, in the order in which a reader meets what they are about.

    Parameters
    ----------
    document
        A plan.
    charges
        Everything that it pays for.
    months
        Of the budget, at least one.
    options
        How the budget is reported; only whether there is a contingency counts.
    """
    return [
        *_of_months(document, months, options),
        *_of_payments(document, charges),
        *_of_shares(charges),
        *_left_out(document),
    ]


def _of_months(document: PlanDocument, months: Sequence[Month], options: ReportOptions) -> Iterator[str]:
    if months[0].first is None:
        yield (
            f"the scenario names no date: months are {MONTH_HOURS} h each from the plan's begin, and no fiscal year "
            "can be told (write begin: 2026-12-01)"
        )
    else:
        first = months[0].first.date().isoformat()
        yield f"calendar months from {first}; a fiscal year is named by the year in which it ends"
    if len(months) == MOST_MONTHS:
        yield f"no more than {MOST_MONTHS:,} months are told apart: the last one holds all that falls due later"
    horizon = document["summary"]["horizon_hours"]
    if float(months[-1].end) > horizon * (1 + 1e-9):
        span = format_duration(float(months[-1].end) * 3600)
        yield f"money is spent for {span}, beyond the {format_duration(horizon * 3600)} that serving is paid for"
    if any(workload["kind"] == "training" for workload in document["workloads"]):
        yield "training is spread over the hours that it is predicted to run, serving over the whole horizon"
    if _scaled(document):
        yield "fleets that are scaled with their load are spread evenly: a week of load repeats, months do not differ"
    if options.contingency:
        yield "the contingency stands beside the total, never in it"
    yield "each running total is rounded down to whole micro-dollars at the end of a month; the last month has the rest"


def _scaled(document: PlanDocument) -> bool:
    fleets = [workload["fleet"] for workload in document["workloads"] if workload["fleet"]]
    return any(fleet["levels"] for fleet in fleets)


def _of_payments(document: PlanDocument, charges: Sequence[Charge]) -> Iterator[str]:
    if any(charge.payment == UPFRONT for charge in charges):
        yield "what is due up front (blocks whole, else as the catalog says) falls into the month in which it starts"
    if any(charge.payment == INSTALMENTS for charge in charges):
        yield "the rest of a contract's fee is paid evenly over the time that it counts for"
    rest = [one for one in document.get("contracts") or () if one["full_microusd"] > one["cost_microusd"]]
    if rest:
        after = sum(one["full_microusd"] - one["cost_microusd"] for one in rest)
        yield (
            f"contracts bind beyond the horizon: {format_money(after)} more falls due after it, which this budget does "
            "not count (beyond_horizon: prorate)"
        )


def _of_shares(charges: Sequence[Charge]) -> Iterator[str]:
    if any(charge.pool is not None for charge in charges):
        yield "nodes under contract are shared by node-hours over the whole plan, in every month by the same shares"


def _left_out(document: PlanDocument) -> Iterator[str]:
    if document.get("uncertainty"):
        yield "lines are those of the scenario as written; what else may happen is told by month below them"
    fleets = [workload["name"] for workload in document["workloads"] if workload["kind"] == "serving"]
    if fleets:
        yield "no growth or season of the load is known: serving costs the same in every month of equal length"


def cases_document(
    document: PlanDocument, written: Sequence[int], others: Mapping[str, Sequence[int]]
) -> CasesMoney | None:
    """Every case by month, their mean by probability, and the dearest; None for a plan of one future.

    Parameters
    ----------
    document
        The plan, with its cases.
    written
        Money by month of the scenario as written, which is the first case.  [micro-USD]
    others
        Of each other case that has a plan, by its name.  [micro-USD]
    """
    section = document.get("uncertainty")
    if not section:
        return None
    rows: list[CaseMoney] = []
    for number, case in enumerate(section["cases"]):
        months = written if number == 0 else others.get(case["name"])
        rows.append(
            {
                "name": case["name"],
                "probability": case["probability"],
                "months_microusd": None if months is None else list(months),
                "total_microusd": None if months is None else sum(months),
            }
        )
    worst = max(rows, key=lambda row: -1 if row["total_microusd"] is None else row["total_microusd"])
    return {"cases": rows, "expected": _expected(rows), "worst": worst.copy()}


def _expected(rows: Sequence[CaseMoney]) -> Monthly | None:
    """Mean by probability; None when some case has no plan, whose cost nobody knows."""
    known = [months for row in rows if (months := row["months_microusd"]) is not None]
    if len(known) < len(rows):
        return None
    months = weighed(known, [Fraction(repr(float(row["probability"]))) for row in rows])
    return {"months_microusd": months, "total_microusd": sum(months)}


Key = TypeVar("Key")
TRAINING, SERVING = "training", "serving"
Amounts = Mapping[str, Sequence[int]]  # by month, by what they are for
_SPLITS: dict[str, Callable[[Line], bool]] = {
    TRAINING: lambda line: line.kind == TRAINING,
    SERVING: lambda line: line.kind == SERVING,
    UNUSED: lambda line: line.kind == UNUSED,
    COMMITTED: lambda line: line.charge.commitment == COMMITTED,
    VARIABLE: lambda line: line.charge.commitment == VARIABLE,
    "up_front": lambda line: line.charge.payment == UPFRONT,
    "total": lambda line: True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Booked:
    """A plan whose charges are booked by month."""

    document: PlanDocument
    months: list[Month]
    lines: list[Line]

    def amounts(self, wanted: Callable[[Line], bool]) -> list[int]:
        """Sum by month of the lines that are wanted.  [micro-USD]"""
        columns = [line.months_microusd for line in self.lines if wanted(line)]
        return [sum(column[i] for column in columns) for i in range(len(self.months))]


def budget_document(
    document: PlanDocument,
    catalog: Catalog,
    *,
    fiscal_year_start: str | None = None,
    contingency: float | None = None,
) -> Budget | None:
    """The budget of a plan; None when the document holds no plan.

    Parameters
    ----------
    document
        A plan document.
    catalog
        That the plan was made with: it says which part of a contract is due when it starts.
    fiscal_year_start
        First month of the fiscal year, "april"; default that of the scenario's `report`, else january.
    contingency
        Share of the total to set aside beside it; default that of the scenario's `report`, else none.

    Raises
    ------
    InputError
        The scenario in the document has a `report` that is none.
    """
    if document["summary"]["cost_microusd"] is None:
        return None
    options = report_options(document, fiscal_year_start=fiscal_year_start, contingency=contingency)
    plans = {"": document, **_plans_of_cases(document)}
    charges = {name: charges_of(plan, catalog) for name, plan in plans.items()}
    months = months_until(begin_of(document), max(_last_hour(plan, charges[name]) for name, plan in plans.items()))
    booked = {
        name: _Booked(document=plan, months=months, lines=lines_of(plan, charges[name], months))
        for name, plan in plans.items()
    }
    return _document(booked.pop(""), options, booked, charges[""])


def report_options(
    document: PlanDocument, *, fiscal_year_start: str | None = None, contingency: float | None = None
) -> ReportOptions:
    """How budgets are reported: as asked, else as the scenario of the plan says.

    Parameters
    ----------
    document
        A plan document.
    fiscal_year_start
        First month of the fiscal year, "april"; None: as the scenario says, else january.
    contingency
        Share of the total to set aside beside it; None: as the scenario says, else nothing.

    Raises
    ------
    InputError
        An option, or the `report` of the scenario in the document, is not usable.
    """
    given = {"fiscal_year_start": fiscal_year_start, "contingency": contingency}
    asked = {name: value for name, value in given.items() if value is not None}
    try:
        return ReportOptions.model_validate({**report_asked(document), **asked})
    except ValidationError as error:
        raise _unusable(str(error.errors()[0]["loc"][0]), error.errors()[0]["input"]) from None


def _unusable(name: str, value: object) -> PlanError:
    """What is wrong with an option of the report, and a way out."""
    hint, wanted = "write report: {fiscal_year_start: april, contingency: 10 %}", "a share from 0 to 1"
    if name == "fiscal_year_start":
        near, wanted = closest(str(value), MONTHS), "the name of a month"
        hint = f"did you mean '{near[0]}'?" if near else f"one of {', '.join(MONTHS)}"
    return InputError.of("out-of-range", f"report.{name} is {str(value)[:40]!r}; it must be {wanted}", hint=hint)


def _plans_of_cases(document: PlanDocument) -> dict[str, PlanDocument]:
    """The plans of an uncertain scenario's other cases, by name."""
    found = document.get("uncertainty")
    cases = found["cases"] if found else []
    return {case["name"]: plan for case in cases if (plan := case["plan"]) and case["cost_microusd"] is not None}


def _last_hour(document: PlanDocument, charges: Sequence[Charge]) -> Fraction:
    """When nothing more is paid for; not before the horizon ends where something is served.  [h]"""
    serves = any(workload["kind"] == SERVING for workload in document["workloads"])
    ends = [end for charge in charges for _, end, _ in charge.spans]
    horizon = Fraction(float(document["summary"]["horizon_hours"]))
    return max([*ends, horizon] if serves or not ends else ends)


def _document(
    booked: _Booked, options: ReportOptions, cases: Mapping[str, _Booked], charges: Sequence[Charge]
) -> Budget:
    document, start = booked.document, options.fiscal_year_start
    columns = {name: booked.amounts(wanted) for name, wanted in _SPLITS.items()}
    total = sum(columns["total"])
    asked = Decimal(repr(options.contingency))
    reserve = int((asked * total).to_integral_value(ROUND_HALF_EVEN))
    columns["contingency"] = by_time(reserve, [Fraction(amount) for amount in columns["total"]])
    months = [_month(booked, i, columns, start) for i in range(len(booked.months))]
    begin = booked.months[0].first
    return {
        "currency": currency_of(document),
        "begin": None if begin is None else begin.isoformat(sep=" ").removesuffix(" 00:00:00"),
        "horizon_hours": document["summary"]["horizon_hours"],
        "month_hours": MONTH_HOURS if begin is None else None,
        "fiscal_year_start": start,
        "contingency": options.contingency,
        "months": months,
        "fiscal_years": _fiscal_years(months),
        "totals": _totals({name: sum(amounts) for name, amounts in columns.items()}),
        "by_workload": _by_workload(booked),
        "by_provider": _by_provider(booked),
        "by_category": _by_category(booked),
        "lines": [_line(line) for line in booked.lines],
        "beside": _beside(document),
        "cases": cases_document(document, columns["total"], {n: b.amounts(_SPLITS["total"]) for n, b in cases.items()}),
        "notes": notes_of(document, charges, booked.months, options),
    }


def _month(booked: _Booked, i: int, columns: Amounts, start: str) -> MonthRow:
    month = booked.months[i]
    return {
        "label": month.label,
        "number": i + 1,
        "start_hours": float(month.begin),
        "end_hours": float(month.end),
        "start_date": None if month.first is None else month.first.date().isoformat(),
        "end_date": month.last_day,
        "fiscal_year": month.fiscal_year(start),
        "after_horizon": float(month.begin) >= booked.document["summary"]["horizon_hours"],
        **_totals({name: amounts[i] for name, amounts in columns.items()}),
    }


def _totals(amounts: Mapping[str, int]) -> Totals:
    return {
        "training_microusd": amounts[TRAINING],
        "serving_microusd": amounts[SERVING],
        "unused_microusd": amounts[UNUSED],
        "committed_microusd": amounts[COMMITTED],
        "variable_microusd": amounts[VARIABLE],
        "up_front_microusd": amounts["up_front"],
        "total_microusd": amounts["total"],
        "contingency_microusd": amounts["contingency"],
    }


def _fiscal_years(months: Sequence[MonthRow]) -> list[FiscalYear]:
    """Sums by fiscal year; none where the plan has no date."""
    years = dict.fromkeys(year for month in months if (year := month["fiscal_year"]) is not None)
    found: list[FiscalYear] = []
    for year in years:
        mine = [month for month in months if month["fiscal_year"] == year]
        found.append(
            {
                "label": year,
                "first_month": mine[0]["label"],
                "last_month": mine[-1]["label"],
                "training_microusd": sum(month["training_microusd"] for month in mine),
                "serving_microusd": sum(month["serving_microusd"] for month in mine),
                "unused_microusd": sum(month["unused_microusd"] for month in mine),
                "committed_microusd": sum(month["committed_microusd"] for month in mine),
                "variable_microusd": sum(month["variable_microusd"] for month in mine),
                "up_front_microusd": sum(month["up_front_microusd"] for month in mine),
                "total_microusd": sum(month["total_microusd"] for month in mine),
                "contingency_microusd": sum(month["contingency_microusd"] for month in mine),
            }
        )
    return found


def _by_workload(booked: _Booked) -> list[WorkloadMoney]:
    """Every workload in the order of the plan, then copies of data and what nobody uses."""
    order = {workload["name"]: number for number, workload in enumerate(booked.document["workloads"])}
    groups = _grouped(booked, lambda line: (line.workload, line.kind))
    rows: list[WorkloadMoney] = [
        {"workload": workload, "kind": kind, **_monthly(lines)} for (workload, kind), lines in groups.items()
    ]
    return sorted(rows, key=lambda row: order.get(row["workload"], len(order)))


def _by_provider(booked: _Booked) -> list[ProviderMoney]:
    groups = _grouped(booked, lambda line: line.charge.provider)
    return [{"provider": provider, **_monthly(lines)} for provider, lines in groups.items()]


def _by_category(booked: _Booked) -> list[CategoryMoney]:
    groups = _grouped(booked, lambda line: (line.charge.category, line.charge.commitment))
    return [
        {"category": category, "commitment": commitment, **_monthly(lines)}
        for (category, commitment), lines in groups.items()
    ]


def _grouped(booked: _Booked, key_of: Callable[[Line], Key]) -> dict[Key, list[Line]]:
    """Lines by a key, in the order in which the keys appear."""
    groups: dict[Key, list[Line]] = {}
    for line in booked.lines:
        groups.setdefault(key_of(line), []).append(line)
    return groups


def _monthly(lines: Sequence[Line]) -> Monthly:
    """Months and total of some lines."""
    return {
        "months_microusd": [sum(column) for column in zip(*(line.months_microusd for line in lines))],
        "total_microusd": sum(line.total_microusd for line in lines),
    }


def _line(line: Line) -> BudgetLine:
    charge = line.charge
    return {
        "workload": line.workload,
        "kind": line.kind,
        "provider": charge.provider,
        "place": charge.place,
        "item": charge.item,
        "category": charge.category,
        "commitment": charge.commitment,
        "payment": charge.payment,
        "source": charge.source,
        "count": charge.count,
        "hours": charge.hours,
        "price_microusd_per_hour": charge.price_microusd_per_hour,
        "part_of_price": float(charge.share),
        "charge_microusd": charge.cost_microusd,
        "share": float(line.share),
        "month_hours": [float(hours) for hours in line.month_hours],
        "months_microusd": list(line.months_microusd),
        "total_microusd": line.total_microusd,
    }


def _beside(document: PlanDocument) -> list[Beside]:
    """Money that the plan tells of and does not count: sunk costs of owned hardware, checkpoints that are kept."""
    return [*_sunk(document), *_checkpoints(document)]


def _sunk(document: PlanDocument) -> Iterator[Beside]:
    for number, owned in enumerate(document.get("owned") or ()):
        what = f"sunk cost of {owned['count']} × {owned['shape']}"
        yield {"what": what, "source": f"owned[{number}]", "total_microusd": owned["sunk_microusd"]}


def _checkpoints(document: PlanDocument) -> Iterator[Beside]:
    for w, workload in enumerate(document["workloads"]):
        for a, row in enumerate(rows_of(workload)):
            stored = row["run"]["storage_usd"] if "run" in row and row["run"]["modelled"] else None
            if stored:
                yield {
                    "what": f"storage of checkpoints of {workload['name']}",
                    "source": f"workloads[{w}].allocations[{a}].run.storage_usd",
                    "total_microusd": round(stored * 1e6),
                }
