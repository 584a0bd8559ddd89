"""The budget of a plan as plain data: months, fiscal years, workloads, providers, contingency, cases.

All money is integer micro-dollars. The months of every line add up to the line, the lines to the plan's total.
Training is paid once, serving for as long as it runs: the two stand apart, and their sum is that of the horizon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from planner.catalog.model import Catalog
from planner.errors import InputError, PlanError
from planner.plan.budget.cases import cases_document
from planner.plan.budget.charges import COMMITTED, UPFRONT, VARIABLE, Charge, charges_of
from planner.plan.budget.lines import UNUSED, Line, lines_of
from planner.plan.budget.months import MONTH_HOURS, MONTHS, Month, begin_of, months_until
from planner.plan.budget.notes import notes_of
from planner.plan.budget.split import by_time
from planner.scenario.schema import ReportOptions
from planner.spelling import closest

Document = dict[str, Any]
TRAINING, SERVING = "training", "serving"
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

    document: Mapping[str, Any]
    months: list[Month]
    lines: list[Line]

    def amounts(self, wanted: Callable[[Line], bool]) -> list[int]:
        """Sum by month of the lines that are wanted.  [micro-USD]"""
        columns = [line.months_microusd for line in self.lines if wanted(line)]
        return [sum(column[i] for column in columns) for i in range(len(self.months))]


def budget_document(
    document: Mapping[str, Any],
    catalog: Catalog,
    *,
    fiscal_year_start: str | None = None,
    contingency: float | None = None,
) -> Document | None:
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
    document: Mapping[str, Any], *, fiscal_year_start: str | None = None, contingency: float | None = None
) -> ReportOptions:
    """How budgets are reported: as asked, else as the scenario of the plan says."""
    given = {"fiscal_year_start": fiscal_year_start, "contingency": contingency}
    asked = {name: value for name, value in given.items() if value is not None}
    try:
        return ReportOptions.model_validate({**(document["scenario"].get("report") or {}), **asked})
    except ValidationError as error:
        raise _unusable(str(error.errors()[0]["loc"][0]), error.errors()[0]["input"]) from None


def _unusable(name: str, value: object) -> PlanError:
    """What is wrong with an option of the report, and a way out."""
    hint, what = "write report: {fiscal_year_start: april, contingency: 10 %}", f"{name} is {str(value)[:40]!r}"
    if name == "fiscal_year_start":
        near = closest(str(value), MONTHS)
        hint = f"did you mean '{near[0]}'?" if near else f"one of {', '.join(MONTHS)}"
    return InputError.of("out-of-range", f"'report' is not usable: {what}", hint=hint)


def _plans_of_cases(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The plans of an uncertain scenario's other cases, by name."""
    cases = (document.get("uncertainty") or {}).get("cases", [])
    return {case["name"]: case["plan"] for case in cases if case["plan"] and case["cost_microusd"] is not None}


def _last_hour(document: Mapping[str, Any], charges: Sequence[Charge]) -> Fraction:
    """When nothing more is paid for; not before the horizon ends where something is served.  [h]"""
    serves = any(workload["kind"] == SERVING for workload in document["workloads"])
    ends = [end for charge in charges for _, end, _ in charge.spans]
    horizon = Fraction(float(document["summary"]["horizon_hours"]))
    return max([*ends, horizon] if serves or not ends else ends)


def _document(
    booked: _Booked, options: ReportOptions, cases: Mapping[str, _Booked], charges: Sequence[Charge]
) -> Document:
    document, start = booked.document, options.fiscal_year_start
    columns = {name: booked.amounts(wanted) for name, wanted in _SPLITS.items()}
    total = sum(columns["total"])
    asked = Decimal(repr(options.contingency))
    reserve = int((asked * total).to_integral_value(ROUND_HALF_EVEN))
    columns["contingency"] = by_time(reserve, [Fraction(amount) for amount in columns["total"]])
    months = [_month(booked, i, columns, start) for i in range(len(booked.months))]
    begin = booked.months[0].first
    return {
        "currency": document["scenario"].get("currency", "USD"),
        "begin": None if begin is None else begin.isoformat(sep=" ").removesuffix(" 00:00:00"),
        "horizon_hours": document["summary"]["horizon_hours"],
        "month_hours": MONTH_HOURS if begin is None else None,
        "fiscal_year_start": start,
        "contingency": options.contingency,
        "months": months,
        "fiscal_years": _fiscal_years(months),
        "totals": {f"{name}_microusd": sum(amounts) for name, amounts in columns.items()},
        "by_workload": _by_workload(booked),
        "by_provider": _grouped(booked, lambda line: {"provider": line.charge.provider}),
        "by_category": _grouped(
            booked, lambda line: {"category": line.charge.category, "commitment": line.charge.commitment}
        ),
        "lines": [_line(line) for line in booked.lines],
        "beside": _beside(document),
        "cases": cases_document(document, columns["total"], {n: b.amounts(_SPLITS["total"]) for n, b in cases.items()}),
        "notes": notes_of(document, charges, booked.months, options),
    }


def _month(booked: _Booked, i: int, columns: Mapping[str, Sequence[int]], start: str) -> Document:
    month = booked.months[i]
    following = booked.months[i + 1].first if i + 1 < len(booked.months) else None
    return {
        "label": month.label,
        "number": i + 1,
        "start_hours": float(month.begin),
        "end_hours": float(month.end),
        "start_date": None if month.first is None else month.first.date().isoformat(),
        "end_date": None if following is None else following.date().isoformat(),
        "fiscal_year": month.fiscal_year(start),
        "after_horizon": float(month.begin) >= booked.document["summary"]["horizon_hours"],
        **{f"{name}_microusd": amounts[i] for name, amounts in columns.items()},
    }


def _fiscal_years(months: Sequence[Document]) -> list[Document]:
    """Sums by fiscal year; none where the plan has no date."""
    years = dict.fromkeys(month["fiscal_year"] for month in months if month["fiscal_year"] is not None)
    names = [name for name in months[0] if name.endswith("_microusd")]
    found = []
    for year in years:
        mine = [month for month in months if month["fiscal_year"] == year]
        span = {"first_month": mine[0]["label"], "last_month": mine[-1]["label"]}
        found.append({"label": year, **span, **{name: sum(month[name] for month in mine) for name in names}})
    return found


def _by_workload(booked: _Booked) -> list[Document]:
    """Every workload in the order of the plan, then copies of data and what nobody uses."""
    order = {workload["name"]: number for number, workload in enumerate(booked.document["workloads"])}
    rows = _grouped(booked, lambda line: {"workload": line.workload, "kind": line.kind})
    return sorted(rows, key=lambda row: order.get(row["workload"], len(order)))


def _grouped(booked: _Booked, key_of: Callable[[Line], Document]) -> list[Document]:
    """Months and totals by a key, in the order in which the keys appear."""
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in booked.lines:
        groups.setdefault(tuple(key_of(line).values()), []).append(line)
    return [
        {
            **key_of(lines[0]),
            "months_microusd": [sum(column) for column in zip(*(line.months_microusd for line in lines))],
            "total_microusd": sum(line.total_microusd for line in lines),
        }
        for lines in groups.values()
    ]


def _line(line: Line) -> Document:
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


def _beside(document: Mapping[str, Any]) -> list[Document]:
    """Money that the plan tells of and does not count: sunk costs of owned hardware, checkpoints that are kept."""
    return [*_sunk(document), *_checkpoints(document)]


def _sunk(document: Mapping[str, Any]) -> Iterator[Document]:
    for number, owned in enumerate(document.get("owned") or ()):
        what = f"sunk cost of {owned['count']} × {owned['shape']}"
        yield {"what": what, "source": f"owned[{number}]", "total_microusd": owned["sunk_microusd"]}


def _checkpoints(document: Mapping[str, Any]) -> Iterator[Document]:
    for w, workload in enumerate(document["workloads"]):
        for a, row in enumerate(workload["allocations"]):
            stored = (row.get("run") or {}).get("storage_usd")
            if stored:
                yield {
                    "what": f"storage of checkpoints of {workload['name']}",
                    "source": f"workloads[{w}].allocations[{a}].run.storage_usd",
                    "total_microusd": round(stored * 1e6),
                }
