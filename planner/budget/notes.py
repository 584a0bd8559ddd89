"""What a reader of a budget must know: how months, payments and shares were laid out, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.budget.charges import INSTALMENTS, UPFRONT, Charge
from planner.budget.months import MONTH_HOURS, MOST_MONTHS, Month
from planner.plan.model.plan import PlanDocument
from planner.scenario.schema import ReportOptions
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
