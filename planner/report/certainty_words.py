"""How sure a plan is, in words: how far figures may be off, what is known of it, what margins cost, what is proven."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner import units
from planner.plan.parts import rows_of
from planner.report import plan_words as words
from planner.units import format_money, format_percentile
from planner.units import format_number as number

if TYPE_CHECKING:
    from planner.plan.model.others import Infeasible
    from planner.plan.model.plan import PlanDocument, Workload
    from planner.plan.model.rows import Spread, TrainingAllocation


_MICRO = 1e6


def banded(document: PlanDocument) -> list[tuple[Workload, TrainingAllocation]]:
    """Workloads and rows that carry a band."""
    return [(workload, row) for workload in document["workloads"] for row in rows_of(workload) if "error_band" in row]


def band_row(document: PlanDocument, workload: Workload, row: TrainingAllocation) -> list[str]:
    """One line: what time, cost and memory may turn out to be.

    Parameters
    ----------
    document
        The plan, for its currency.
    workload
        The job that the row is of.
    row
        An allocation with an error band, as `banded` gives it.
    """
    band = row["error_band"]
    timed, stored = band["time"] is not None, band["memory"] is not None
    return [
        workload["name"],
        row["device"],
        _days(band["hours"]) if timed else "as measured" if _measured(row) else "no band",
        _span(band["cost_usd"], lambda dollars: words.money(document, dollars * _MICRO)) if timed else "",
        _span(band["needed_bytes"], units.format_bytes) if stored else "not known",
    ]


def _measured(row: TrainingAllocation) -> bool:
    """Whether its speed was: on such devices, or on a run under way; else times without a band were not."""
    return row["error_band"]["tier"] == "measured" or row["step_time_ratio"] is not None


def _days(hours: Spread) -> str:
    size, unit = (24.0, "days") if hours["p90"] >= 48 else (1.0, "h")
    return f"{words.short(hours['p10'] / size)} to {words.short(hours['p90'] / size)} {unit}"


def _span(spread: Spread, show: Callable[[float], str]) -> str:
    low, high = show(spread["p10"]), show(spread["p90"])
    return low if low == high else f"{low} to {high}"


def known_from(row: TrainingAllocation) -> str:
    """The tier with its constants, and the error that it showed: "analytic tier, hopper e0027a8b: off by 7 % ..."."""
    band = row["error_band"]
    time = band["time"]
    head = f"{band['tier']} tier, {band['family']}" + (f" {band['constants']}" if band["constants"] else "")
    if time is None:
        if _measured(row):
            return f"{head}: {'your own figure' if band['tier'] == 'measured' else 'scaled by what you measured'}"
        return f"{head}: times have no band: errors says how far they err, or nothing is known of it"
    if _measured(row):
        least, most = (number(time[end] / time["p50"], 3) for end in ("p10", "p90"))
        return f"{head}: scaled by what you measured; another layout or machine may take {least} to {most} of that"
    if band["inherited_from"] and band["tier"] == "analytic":
        head += f" (constants of {band['inherited_from']}, band widened)"
    if band["tier"] == "analytic" and not time["rows"]:
        place = "its family" if band["tag"] == "inherited" else "another family"
        return (
            f"{head}, {band['tag']}: no such job was measured on this device; others of {place} lead to expect "
            f"an error of {number(100 * time['median_error'], 2)} % in the median"
        )
    error = (
        f"{head}: off by {number(100 * time['median_error'], 2)} % in the median, "
        f"{number(100 * time['mean_error'], 2)} % on average"
    )
    if not time["rows"]:
        return error
    sources = f"{time['sources']} source{'s' * (time['sources'] != 1)}"
    seen = "published runs" if band["tier"] == "rule" else f"rows of this device, of {sources}, none of them fitted to"
    narrower = time["median_error"] > time["p90"] / time["p50"] - 1 and band["tier"] == "analytic"
    why = "; the band is narrower: its constants are fitted to those rows, too" if narrower else ""
    return f"{error}, on {time['rows']} {seen}{why}"


def band_notes(document: PlanDocument) -> list[str]:
    """Where bands are from, until when jobs are done, what the total may be, and what the margins cost."""
    known = dict.fromkeys(known_from(row) for _, row in banded(document))
    return [*known, *_deadlines(document), *_total(document), *_margins(document)]


def _deadlines(document: PlanDocument) -> Iterator[str]:
    for workload, row in banded(document):
        band = row["error_band"]
        first = "switch" in row and row["switch"]["part"] == 1
        if band["time"] is None or band["time"]["margin"] <= 1.0 or first:
            continue
        done = words.of_deadline(late_hours(row), row["deadline_hours"])
        yield f"{workload['name']}: done by {done} at {format_percentile(band['confidence'])}"


def late_hours(row: TrainingAllocation) -> float:
    """Finish at the confidence asked for, [h] after the begin; the finish itself where no band is known.

    A job that may pause is taken to be done with its last whole period: its periods hold the margin already.
    """
    band = row["error_band"]
    if band["time"] is None or row["runs"]:
        return row["finish_hours"]
    return row["finish_hours"] - row["hours"] + band["hours"]["at_confidence"]


def _total(document: PlanDocument) -> Iterator[str]:
    band = document["summary"].get("cost_band")
    if band and band["p10"] != band["p90"]:
        low, high = (words.money(document, band[name] * _MICRO) for name in ("p10", "p90"))
        yield f"total cost {low} to {high} (p10 to p90; errors are taken to go together, so that they add up)"


def _margins(document: PlanDocument) -> Iterator[str]:
    margins = document["summary"].get("margins")
    if not margins or margins["confidence"] <= 0.5:
        return
    extra, at = margins["margins_microusd"], format_percentile(margins["confidence"])
    cost = document["summary"]["cost_microusd"]
    share = f" ({number(100 * extra / cost, 2)} % of the total)" if cost and extra else ""
    cheaper = "nothing: the same plan is best" if not extra else words.money(document, extra) + share
    yield f"deadlines and memory hold at {at}; over holding at p50 the margins cost {cheaper}"


def infeasible_note(facts: Infeasible, document: PlanDocument) -> Sequence[str]:
    """What could be had if times and memory had to hold as often as not."""
    cost = facts["median_cost_usd"]
    if cost is None:
        return ()
    return (f" At confidence p50 every limit can be met, for {words.money(document, cost * _MICRO)}",)


def certificate_words(document: Mapping[str, Any], columns: int) -> str:
    """What is proven without a solver, over how many columns; empty where there is no certificate of a plan."""
    certificate = document["certificate"]
    if certificate is None or certificate["criterion"] == "limits":
        return ""
    bound, gap = certificate["bound"], certificate["gap"]
    least = format_money(bound) if certificate["criterion"] == "cost" else f"{bound / 1e6:,.1f} kg of CO2"
    when = "" if certificate["latest_s"] is None else f" by {certificate['latest_s'] / 3600:,.1f} h"
    apart = "the plan is that" if gap == 0 else f"the plan is within {gap:.2%} of it"
    aside = any(one["reason"] == "unadvised" for each in document["rejected"].values() for one in each["reasons"])
    among = "; what nobody advises (ZeRO-2 and ZeRO-3 under a pipeline and the like) is not among them" if aside else ""
    return f"without a solver: none of {columns:,} columns makes less than {least}{when}, {apart}{among}"
