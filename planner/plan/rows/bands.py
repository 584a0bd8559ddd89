"""What a plan says of its own errors: bands of rows, of workloads, of the total, and what the margins cost.

Errors within a device family go together, since one set of constants made them: quantiles of a sum are sums of
quantiles, never roots of summed squares. Families are combined in the same way, as if they went together too:
nothing measured says that they do not, and the sum is the widest band that such rows can have short of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, cast

from planner.units import format_money

if TYPE_CHECKING:
    from planner.catalog.model import Band
    from planner.estimate.bands import ErrorBand
    from planner.plan.model.plan import Allocation, Margins, Summary, Workload, WorkloadBand
    from planner.plan.model.rows import MeasuredError, RowBand, Spread, Tag, Tier


def row_band(band: ErrorBand, confidence: float, figures: Mapping[str, float]) -> RowBand:
    """The band of one row: of its hours, its cost and its memory, with the error that it comes from.

    Parameters
    ----------
    band
        Of the row's machine and layout.
    confidence
        Which the job asks for.
    figures
        Predicted `hours`, `cost_usd` and `needed_bytes`.
    """
    time_margin, memory_margin = band.time_margin(confidence), band.memory_margin(confidence)
    return {
        "confidence": confidence,
        "tier": cast("Tier", band.tier),  # of the three that `ErrorBand` names
        "family": band.family,
        "constants": band.constants_id,
        "inherited_from": band.inherited_from,
        "tag": cast("Tag", band.tag),
        "time": quantiles(band.time, time_margin),
        "memory": quantiles(band.memory, memory_margin),
        "hours": spread(band.time, figures["hours"], time_margin),
        "cost_usd": spread(band.time, figures["cost_usd"], time_margin),
        "needed_bytes": spread(band.memory, figures["needed_bytes"], memory_margin),
    }


def quantiles(band: Band | None, margin: float) -> MeasuredError | None:
    """Quantiles of measured over predicted, and what they were measured on."""
    if band is None:
        return None
    return {
        "p10": band.p10,
        "p50": band.p50,
        "p90": band.p90,
        "rows": band.rows,
        "sources": band.sources,
        "median_error": band.median_error,
        "mean_error": band.mean_error,
        "p90_error": band.p90_error,
        "margin": margin,
    }


def spread(band: Band | None, value: float, margin: float) -> Spread:
    """A predicted value over its band, and at the confidence asked for; the value itself where there is none.

    Parameters
    ----------
    band
        Measured over predicted; None: nothing is known of the error.
    value
        As predicted; the unit is that of what is told.
    margin
        What the value is multiplied with at the confidence asked for; 1 where none is asked for.
    """
    p10, p50, p90 = (band.p10, band.p50, band.p90) if band else (1.0, 1.0, 1.0)
    return {"p10": value * p10, "p50": value * p50, "p90": value * p90, "at_confidence": value * margin}


def workload_band(allocations: Sequence[Allocation]) -> WorkloadBand | None:
    """The band of a workload: its rows' costs summed quantile by quantile, the time of the row that ends last."""
    bands = [row["error_band"] for row in allocations if "error_band" in row]
    if not bands:
        return None
    longest, costs = _ways_hours(allocations), [band["cost_usd"] for band in bands]
    return {
        "confidence": bands[0]["confidence"],
        "tiers": sorted({band["tier"] for band in bands}),
        "families": sorted({band["family"] for band in bands}),
        "hours": _quantile_by_quantile(max, longest),
        "cost_usd": _quantile_by_quantile(sum, costs),
    }


def _ways_hours(allocations: Sequence[Allocation]) -> list[Spread]:
    """The time of each row, of a job that changes machines that of both parts."""
    ways: dict[str, list[Spread]] = {}
    for place, row in enumerate(allocations):
        if "error_band" in row:
            ways.setdefault(row["switch"]["name"] if "switch" in row else str(place), []).append(
                row["error_band"]["hours"]
            )
    return [_quantile_by_quantile(sum, parts) for parts in ways.values()]


def _quantile_by_quantile(combined: Callable[[list[float]], float], spreads: Sequence[Spread]) -> Spread:
    return {
        "p10": combined([one["p10"] for one in spreads]),
        "p50": combined([one["p50"] for one in spreads]),
        "p90": combined([one["p90"] for one in spreads]),
        "at_confidence": combined([one["at_confidence"] for one in spreads]),
    }


def cost_band(workloads: Sequence[Workload], bought_usd: float = 0.0) -> Spread:
    """The total cost over its band: rows of all families together, what has no band as it is.  [USD]

    Parameters
    ----------
    bought_usd
        What contracts and copies of data cost, however long anything takes.  [USD]
    """
    parts = [_same(bought_usd)]
    parts += [own["cost_usd"] if (own := w["error_band"]) else _same(w["cost_usd"]) for w in workloads]
    return _quantile_by_quantile(lambda values: reduce(add, values), parts)  # `sum` rounds anew from Python 3.12 on


def _same(value: float) -> Spread:
    """What has no band."""
    return {"p10": value, "p50": value, "p90": value, "at_confidence": value}


def budget_warnings(budget_microusd: int | None, summary: Summary) -> Iterator[str]:
    """The budget holds for what is predicted; whether it also would where times turn out longer."""
    band = summary["cost_band"]
    if budget_microusd is None or band is None or band["at_confidence"] * 1e6 <= budget_microusd:
        return
    over, limit = format_money(round(band["at_confidence"] * 1e6)), format_money(budget_microusd)
    yield f"the budget of {limit} holds for the predicted cost; at the confidence asked for it may be {over}"


def margins_document(cost_microusd: int, median_microusd: int | None, workloads: Sequence[Workload]) -> Margins | None:
    """What holding at the confidence asked for costs over holding as often as not; None where that is not known.

    Parameters
    ----------
    cost_microusd
        Of the plan, which holds at the confidence.  [micro-USD]
    median_microusd
        Of the best plan that holds at the median of the errors; None: not known.  [micro-USD]
    workloads
        As they stand in the plan; their error bands say which confidence was asked for.
    """
    bands = [workload["error_band"] for workload in workloads if workload["error_band"]]
    if median_microusd is None or not bands:
        return None
    extra = cost_microusd - median_microusd
    return {
        "confidence": max(band["confidence"] for band in bands),
        "median_cost_microusd": median_microusd,
        "median_cost_usd": median_microusd / 1e6,
        "margins_microusd": extra,
        "margins_usd": extra / 1e6,
    }


def tie(cost_usd: float, own: ErrorBand, other_usd: float, other: ErrorBand) -> bool:
    """Whether two costs cannot be told apart with the errors that they carry.

    Within a family errors go together, so that what is predicted cheaper is cheaper. Of two families the one may
    be off without the other: they tie when the dearer is the cheaper one in more than a tenth of the cases, their
    errors independent and log-normal on either side of the median.

    Parameters
    ----------
    cost_usd
        Of one way.  [USD]
    own
        The error that its time carries.
    other_usd
        Of another way.  [USD]
    other
        The error that its time carries.
    """
    if (own.family, own.tier) == (other.family, other.tier) or not cost_usd or not other_usd:
        return cost_usd == other_usd
    mine, theirs = _logarithms(own.time), _logarithms(other.time)
    lead = math.log(other_usd) + theirs[1] - math.log(cost_usd) - mine[1]
    if lead < 0:
        mine, theirs, lead = theirs, mine, -lead
    return lead <= math.hypot(mine[2] - mine[1], theirs[1] - theirs[0])


def _logarithms(band: Band | None) -> tuple[float, float, float]:
    return (math.log(band.p10), math.log(band.p50), math.log(band.p90)) if band else (0.0, 0.0, 0.0)
