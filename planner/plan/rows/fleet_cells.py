"""Cells of a fleet and of its rows that follow from rates, routing and money.

Of the whole: buckets, spares, cost of a million tokens beside an API, load at which both break even. All is worked out
from the fleet and the figures of its rows; the verifier does the same from the document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from planner.estimate.resolve_serving import fleet_levels
from planner.estimate.serving import ServingSpec, serving_capacity
from planner.estimate.serving_spares import away_s, frailty, repair_s, time_within_spares
from planner.plan.rows.serving_point import Point, ReplicaSite, finite, tier_cells
from planner.scenario.schema import ServingFleet, Spot

if TYPE_CHECKING:
    from planner.plan.model.fleet import (
        ApiPrice,
        Availability,
        Bucket,
        FleetFigures,
        Level,
        Loads,
        Predicted,
        ServingAllocation,
        ServingTier,
        TokenPrices,
        Users,
        UsersServed,
    )


class SpeedCells(NamedTuple):
    """What a replica does, by which tier, and with what memory."""

    tier: ServingTier
    batch: float | None
    predicted: Predicted
    terms_bytes: dict[str, float]
    usable_bytes: float


def users_cells(
    one: ReplicaSite, rates: Sequence[float], routed: Sequence[float], replicas_needed: int
) -> tuple[Sequence[float], Sequence[float], Users]:
    """Rates of one replica and of what is sent to a row; where those are users, what they send, and the users beside.

    Parameters
    ----------
    rates, routed
        As `load_cells` takes them, or users.
    """
    if not one.fleet.users:
        return rates, routed, {}
    most, here = max(rates), sum(routed)
    full = one.point([most * share for share in one.fleet.traffic.share]).requests_per_s
    each = one.point([part / max(replicas_needed, 1) for part in routed]).requests_per_s
    sent = [each * max(replicas_needed, 1) * (part / here if here else 0.0) for part in routed]
    return [full] * len(rates), sent, {"users": here, "replica_users": most}


def load_cells(fleet: ServingFleet, rates: Sequence[float], routed: Sequence[float], replicas: int) -> Loads:
    """What a replica can take, what is sent to all of them, and how full that makes them.

    Parameters
    ----------
    rates
        Requests per second of one replica on each bucket alone, within the targets.
    routed
        Peak requests per second of each bucket that go to the row.
    """
    planned = float(sum(routed))
    busy = sum(part / rate for part, rate in zip(routed, rates) if rate)
    shares = [part / planned if planned else float(share) for part, share in zip(routed, fleet.traffic.share)]
    load = sum(share / rate for share, rate in zip(shares, rates) if rate and share)
    served = all(rate for share, rate in zip(shares, rates) if share)
    each = 1.0 / load if load and served else 0.0
    made = float(np.dot(shares, fleet.traffic.output_tokens))
    return {
        "bucket_requests_per_s": list(rates),
        "routed_requests_per_s": list(routed),
        "replica_requests_per_s": each,
        "planned_requests_per_s": planned,
        "load_at_peak": busy / replicas,
        "output_tokens_per_s_per_replica": each * made,
        "mean_output_tokens": made,
    }


def price_cells(
    fleet: ServingFleet,
    cost_microusd: int | None,
    loads: Loads,
    replicas: int,
    hours: float,
    horizon_hours: float | None = None,
) -> TokenPrices:
    """Cost of a million output tokens at the mean load that is planned, and with every replica full.

    Parameters
    ----------
    fleet
        Says how far the peak lies above the mean.
    cost_microusd
        Of all replicas of the row; None: their nodes are bought ahead, and no row's alone.  [micro-USD]
    loads
        As `load_cells` tells them of the row.
    replicas
        Of the row, spares among them.
    hours
        How long the replicas run; where they are scaled, that is less than the horizon.  [h]
    horizon_hours
        Over which requests come; None: as long as the replicas run.  [h]
    """
    if cost_microusd is None:
        return {"usd_per_million_output_tokens_mean": None, "usd_per_million_output_tokens_full": None}
    made = cast(float, loads["mean_output_tokens"])  # as `load_cells` has it; nan where lengths are not given
    mean = loads["planned_requests_per_s"] / fleet.peak_factor * (horizon_hours or hours) * 3600.0 * made
    full = loads["replica_requests_per_s"] * replicas * hours * 3600.0 * made
    return {
        "usd_per_million_output_tokens_mean": cost_microusd / mean if mean else 0.0,
        "usd_per_million_output_tokens_full": cost_microusd / full if full else 0.0,
    }


def speed_cells(one: ReplicaSite, routed: Sequence[float], replicas_needed: int) -> SpeedCells:
    """What one replica does at its share of the peak, by the tier that predicts it.

    Parameters
    ----------
    one
        A replica of the row.
    routed
        Peak requests of each bucket that go to the row, or users by what they send.  [requests/s] or [users]
    replicas_needed
        Replicas of the row without spares, which share them equally.
    """
    point = one.point([part / max(replicas_needed, 1) for part in routed])
    memory = point.memory
    return SpeedCells(
        tier=tier_cells(one),
        batch=finite(float(np.asarray(memory.batch).reshape(-1)[0])),
        predicted=_predicted(one, point),
        terms_bytes=memory.terms.row(0),
        usable_bytes=float(np.asarray(memory.usable_bytes).reshape(-1)[0]),
    )


def _predicted(one: ReplicaSite, point: Point) -> Predicted:
    if one.analytic:
        cells = point.cells()
        return {
            "tpot_s": cells["tpot_s"]["mean"],
            "prefill_s": cells["prefill_s"],
            "decode_terms_s": cells["decode_terms_s"],
            "binds": f"{_spaced(cells['binds'])}, batch by {cells['batch_limit_by']}",
            "point": cells,
        }
    if one.published:
        rate = one.published.output_tokens_per_s
        return {
            "tpot_s": 1.0 / rate,
            "prefill_s": None,
            "decode_terms_s": {},
            "binds": "published rate of one user at a time",
            "point": None,
        }
    if one.fleet.throughput_tokens_per_s_per_device is not None:
        return {"tpot_s": None, "prefill_s": None, "decode_terms_s": {}, "binds": "given throughput", "point": None}
    return _roofline(one)


def _roofline(one: ReplicaSite) -> Predicted:
    """The roofline at the batch that memory allows."""
    traffic, replicas = one.fleet.traffic, one.replicas
    mixed = one.requests.mixed(np.asarray(traffic.share))
    spec = ServingSpec(
        weights=one.fleet.weights,
        kv_cache=one.fleet.kv_cache,
        input_tokens=mixed.input_tokens,
        output_tokens=mixed.output_tokens,
    )
    found = serving_capacity(
        one.arch,
        spec,
        replicas.replica.layout,
        replicas.replica.machine,
        peaks=replicas.replica.peaks,
        memory=one.memory(mixed),
    )

    def first(value: Any) -> Any:
        return np.asarray(value).reshape(-1)[0]

    return {
        "tpot_s": finite(float(first(found.tpot_s))),
        "prefill_s": finite(float(first(found.prefill_s))),
        "decode_terms_s": {name: float(first(value)) for name, value in found.decode_step.items()},
        "binds": f"{first(found.binding)}, batch by {first(found.batch_limit)}",
        "point": None,
    }


def _spaced(name: str) -> str:
    return name.replace("_", " ")


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
