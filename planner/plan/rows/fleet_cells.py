"""What a plan says of a whole fleet: buckets, spares, cost of a million tokens beside an API, load at which both break
even. Worked out from the fleet and the figures of its rows; the verifier does the same from the document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from planner.estimate.resolve_serving import fleet_levels
from planner.estimate.serving_spares import away_s, frailty, repair_s, time_within_spares
from planner.scenario.schema import ServingFleet, Spot

if TYPE_CHECKING:
    from planner.plan.model.fleet import (
        ApiPrice,
        Availability,
        Bucket,
        FleetFigures,
        Level,
        ServingAllocation,
        UsersServed,
    )


def fleet_cells(
    fleet: ServingFleet,
    rows: Sequence[ServingAllocation],
    spares: int,
    horizon_hours: float,
    spot: Spot | None = None,
) -> FleetFigures:
    """The figures of a fleet over all its rows.

    Parameters
    ----------
    rows
        Its allocations as they stand in the plan.
    spares
        Replicas that may be lost.
    spot
        How often spot shapes are taken away.
    """
    ahead = any(row["reserved_pool"] for row in rows)  # what such nodes cost is shared with others
    cost = None if ahead else sum(row["cost_microusd"] for row in rows) / 1e6
    seconds = horizon_hours * 3600.0
    mean = mean_requests_per_s(fleet, rows) * seconds * fleet.output_tokens
    full = _full_tokens(rows)
    found: FleetFigures = {
        "buckets": _buckets(fleet, rows),
        "levels": _levels(fleet, horizon_hours),
        "spare_replicas": spares,
        "availability": _availability(fleet, rows, spares, spot),
        "usd_per_million_output_tokens_mean": _each(cost, mean),
        "usd_per_million_output_tokens_full": _each(cost, full),
        "api": _api(fleet, cost, seconds, mean_requests_per_s(fleet, rows)),
    }
    users = _users(fleet, rows)
    return {**found, "users": users} if users else found


def _each(cost_usd: float | None, tokens: float) -> float | None:
    """Cost of a million tokens."""
    if cost_usd is None:
        return None
    return cost_usd / tokens * 1e6 if tokens else 0.0


def mean_requests_per_s(fleet: ServingFleet, rows: Sequence[ServingAllocation]) -> float:
    """Mean rate of a fleet; of users as if answers took as long at all hours as at the peak: it is no less.  [1/s]"""
    return _peak_requests_per_s(fleet, rows) / fleet.peak_factor if fleet.users else fleet.traffic.requests_per_s


def _peak_requests_per_s(fleet: ServingFleet, rows: Sequence[ServingAllocation]) -> float:
    return sum(row["planned_requests_per_s"] for row in rows) if fleet.users else fleet.traffic.peak_requests_per_s


def _users(fleet: ServingFleet, rows: Sequence[ServingAllocation]) -> UsersServed | None:
    """The users at the peak, and how often they send what, by the law of response times."""
    users, think, sent = fleet.traffic.peak_load, fleet.traffic.think_s, _peak_requests_per_s(fleet, rows)
    if not fleet.users or not sent:
        return None
    return {"users": users, "think_time_s": think, "response_s": users / sent - think, "requests_per_s": sent}


def _full_tokens(rows: Sequence[ServingAllocation]) -> float:
    """Output tokens with every replica full while it runs; of two pools the slower one decides."""
    by_role = dict.fromkeys(("whole", "prefill", "decode"), 0.0)
    for row in rows:
        each = cast(float, row["output_tokens_per_s_per_replica"])  # of rows without one the caller makes it nan
        by_role[row["role"]] += each * row["replicas"] * row["hours"] * 3600.0
    return by_role["whole"] + min(by_role["prefill"], by_role["decode"])


def _buckets(fleet: ServingFleet, rows: Sequence[ServingAllocation]) -> list[Bucket]:
    traffic, peak = fleet.traffic, _peak_requests_per_s(fleet, rows)
    known = rows or not fleet.users
    columns = (traffic.buckets, traffic.input_tokens, traffic.output_tokens, traffic.share)
    return [
        {
            "name": name,
            "input_tokens": float(given),
            "output_tokens": float(made),
            "share": float(share),
            "peak_requests_per_s": float(share) * peak if known else None,
        }
        for name, given, made, share in zip(*columns)
    ]


def _levels(fleet: ServingFleet, horizon_hours: float) -> list[Level]:
    """Levels of load that the fleet is scaled to, least first."""
    levels = fleet_levels(fleet, horizon_hours * 3600.0)
    if levels is None:
        return []
    columns = (levels.load, levels.hours, levels.hours_at_least)
    rows = [(float(load), float(hours), float(longer)) for load, hours, longer in zip(*columns)]
    if fleet.users:
        return [{"users": n, "requests_per_s": None, "hours": here, "hours_at_least": at} for n, here, at in rows]
    return [{"requests_per_s": rate, "hours": here, "hours_at_least": at} for rate, here, at in rows]


def _availability(
    fleet: ServingFleet, rows: Sequence[ServingAllocation], spares: int, spot: Spot | None
) -> Availability | None:
    if not rows:
        return None
    taken = [row for row in rows if row["price_model"] == "spot" and spot is not None and spot.interruptions_per_s]
    kinds = {
        frailty(fleet, row["devices_per_replica"], spot if row in taken else None, row["devices"] // row["count"])
        for row in rows
    }
    replicas = sum(row["replicas"] for row in rows)
    share, up = min((time_within_spares(replicas, spares, kind), kind.up) for kind in kinds)
    found: Availability = {
        "asked": fleet.availability,
        "replica": up,
        "repair_s": repair_s(fleet),
        "time_within_spares": share,
    }
    if taken and spot is not None:
        found["spot"] = {
            "replicas": sum(row["replicas"] for row in taken),
            "interruptions_per_s": spot.interruptions_per_s,
            "away_s": away_s(fleet, spot),
        }
    return found


def _api(fleet: ServingFleet, cost_usd: float | None, seconds: float, mean_per_s: float) -> ApiPrice | None:
    """The price of an API for the same requests; above the break-even load the fleet is cheaper."""
    price = fleet.api_usd_per_token
    if price is None:
        return None
    usd, kind = price
    counted = {"input": fleet.input_tokens, "output": fleet.output_tokens}
    tokens = counted.get(kind, fleet.input_tokens + fleet.output_tokens)
    each, requests = usd * tokens, mean_per_s * seconds
    even = None if cost_usd is None else cost_usd / (each * seconds) if each else 0.0
    return {
        "price": fleet.api_price or "",
        "usd_per_request": each,
        "usd_per_million_output_tokens": each / fleet.output_tokens * 1e6 if fleet.output_tokens else 0.0,
        "cost_usd": each * requests,
        "break_even_requests_per_s": even,
    }
