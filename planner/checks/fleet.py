"""What a plan says of the load of each row of a fleet and of the fleet as a whole, added up again in plain numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, cast

from planner.checks.facts import RESERVED
from planner.estimate.resolve_serving import fleet_levels
from planner.estimate.serving_spares import away_s, frailty, repair_s, time_within_spares
from planner.scenario.schema import ServingFleet, Spot

if TYPE_CHECKING:
    from planner.plan.model.fleet import (
        ApiPrice,
        Availability,
        FleetFigures,
        Level,
        ServingAllocation,
        TokenPrices,
        UsersServed,
    )


class LoadCells(TypedDict):
    """What a replica carries, and how full all of a row are."""

    bucket_requests_per_s: list[float]
    replica_requests_per_s: float
    planned_requests_per_s: float
    load_at_peak: float
    output_tokens_per_s_per_replica: float
    mean_output_tokens: float


def load_cells(fleet: ServingFleet, rates: Sequence[float], sent: Sequence[float], replicas: int) -> LoadCells:
    """What one replica of a row carries of its own mix, and how full those of the row are at peak.

    Parameters
    ----------
    rates
        Of each bucket alone, of one replica.  [requests/s]
    sent
        Of each bucket, to the whole row.  [requests/s]
    """
    total = sum(sent)
    mix = [part / total for part in sent] if total else [float(share) for share in fleet.traffic.share]
    busy_s = made = busy_replicas = 0.0
    able = True
    for part, share, rate, tokens in zip(sent, mix, rates, fleet.traffic.output_tokens):
        busy_replicas += part / rate if rate else 0.0
        busy_s += share / rate if rate else 0.0
        made += share * float(tokens)
        able = able and (rate > 0 or share == 0)
    each = 1.0 / busy_s if able and busy_s else 0.0
    return {
        "bucket_requests_per_s": list(rates),
        "replica_requests_per_s": each,
        "planned_requests_per_s": total,
        "load_at_peak": busy_replicas / replicas,
        "output_tokens_per_s_per_replica": each * made,
        "mean_output_tokens": made,
    }


def price_cells(
    fleet: ServingFleet, loads: LoadCells, cost_microusd: int | None, replicas: int, hours: float, horizon_hours: float
) -> TokenPrices:
    """Micro-dollars of an output token are dollars of a million: at the mean load, and with every replica full.

    Parameters
    ----------
    fleet
        Its peak over its mean rate.
    loads
        Of the row, as `load_cells` gives them.
    cost_microusd
        Of the row over the horizon; None where contracts pay for it.  [micro-USD]
    replicas
        Of the row, spares included.
    hours
        How long they run within the horizon.  [h]
    horizon_hours
        Over which requests arrive.  [h]
    """
    if cost_microusd is None:
        return {"usd_per_million_output_tokens_mean": None, "usd_per_million_output_tokens_full": None}
    tokens = loads["mean_output_tokens"]
    mean = loads["planned_requests_per_s"] / fleet.peak_factor * tokens * horizon_hours * 3600.0
    full = loads["replica_requests_per_s"] * tokens * replicas * hours * 3600.0
    return {
        "usd_per_million_output_tokens_mean": cost_microusd / mean if mean else 0.0,
        "usd_per_million_output_tokens_full": cost_microusd / full if full else 0.0,
    }


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
    fleet
        What is asked for.
    rows
        Rows of the fleet; empty where there is no plan.
    spares
        Replicas that may be lost.
    horizon_hours
        Over which requests arrive.  [h]
    spot
        How often spot shapes are taken away, as the scenario says.
    """
    cost_usd = sum(row["cost_microusd"] for row in rows) / 1e6
    requests = mean_requests_per_s(fleet, rows) * horizon_hours * 3600.0
    peak = _peak(fleet, rows)
    made, most = requests * fleet.output_tokens, _most_tokens(rows)
    found: FleetFigures = {
        "buckets": [
            {
                "name": name,
                "input_tokens": float(fleet.traffic.input_tokens[place]),
                "output_tokens": float(fleet.traffic.output_tokens[place]),
                "share": float(fleet.traffic.share[place]),
                "peak_requests_per_s": None if peak is None else peak * float(fleet.traffic.share[place]),
            }
            for place, name in enumerate(fleet.traffic.buckets)
        ],
        "levels": _levels(fleet, horizon_hours),
        "spare_replicas": spares,
        "availability": _availability(fleet, rows, spares, spot),
        "usd_per_million_output_tokens_mean": 1e6 * cost_usd / made if made else 0.0,
        "usd_per_million_output_tokens_full": 1e6 * cost_usd / most if most else 0.0,
        "api": _api(fleet, cost_usd, requests, horizon_hours * 3600.0),
    }
    if fleet.users and peak:
        found["users"] = _users(fleet, peak)
    if any(row["funding"] == RESERVED for row in rows):  # contracts pay, for others too
        found |= {"usd_per_million_output_tokens_mean": None, "usd_per_million_output_tokens_full": None}
        found["api"] = found["api"] and {**found["api"], "break_even_requests_per_s": None}
    return found


def _peak(fleet: ServingFleet, rows: Sequence[ServingAllocation]) -> float | None:
    """Rate of the peak; of users what the rows are sent, None where there are none.  [requests/s]"""
    if not fleet.users:
        return fleet.traffic.peak_requests_per_s
    return math.fsum(sum(row["routed_requests_per_s"]) for row in rows) if rows else None


def mean_requests_per_s(fleet: ServingFleet, rows: Sequence[ServingAllocation]) -> float:
    """Rate over the day; of users as if they were answered as slowly all day as at the peak."""
    return (_peak(fleet, rows) or 0.0) / fleet.peak_factor if fleet.users else fleet.traffic.requests_per_s


def _users(fleet: ServingFleet, peak: float) -> UsersServed:
    """Little's law of the users at the peak: each cycle is a time to think and a response."""
    count, think = fleet.traffic.users * fleet.peak_factor, fleet.traffic.think_s
    return {"users": count, "think_time_s": think, "response_s": count / peak - think, "requests_per_s": peak}


def _most_tokens(rows: Sequence[ServingAllocation]) -> float:
    """Output tokens of replicas that are full while they run; two pools carry what the slower one does."""
    tokens: dict[str, float] = {}
    for row in rows:
        seconds = row["replicas"] * row["hours"] * 3600.0
        tokens[row["role"]] = tokens.get(row["role"], 0.0) + seconds * cast(
            "float", row["output_tokens_per_s_per_replica"]
        )
    return tokens.get("whole", 0.0) + min(tokens.get("prefill", 0.0), tokens.get("decode", 0.0))


def _levels(fleet: ServingFleet, horizon_hours: float) -> list[Level]:
    found = fleet_levels(fleet, horizon_hours * 3600.0)
    told: list[Level] = []
    for step in range(len(found.hours) if found else 0):
        assert found is not None
        load = float(found.load[step])
        level: Level = {
            "requests_per_s": None if fleet.users else load,
            "hours": float(found.hours[step]),
            "hours_at_least": float(found.hours_at_least[step]),
        }
        told.append({**level, "users": load} if fleet.users else level)
    return told


def _availability(
    fleet: ServingFleet, rows: Sequence[ServingAllocation], spares: int, spot: Spot | None
) -> Availability | None:
    """Whether spares will do: all replicas are taken to be as frail as those of the worst row."""
    if not rows:
        return None
    interrupted = spot if spot is not None and spot.interruptions_per_s > 0 else None
    replicas, on_spot, worst = sum(row["replicas"] for row in rows), 0, (2.0, 2.0)
    for row in rows:
        devices, away = row["devices_per_replica"], interrupted if row["price_model"] == "spot" else None
        on_spot += row["replicas"] if away else 0
        kind = frailty(fleet, devices, away, max(row["devices"] // max(row["count"], 1), 1))
        worst = min(worst, (time_within_spares(replicas, spares, kind), kind.alone * kind.there))
    found: Availability = {
        "asked": fleet.availability,
        "replica": worst[1],
        "repair_s": repair_s(fleet),
        "time_within_spares": worst[0],
    }
    if interrupted is not None and on_spot:
        rate, gone = interrupted.interruptions_per_s, away_s(fleet, interrupted)
        found["spot"] = {"replicas": on_spot, "interruptions_per_s": rate, "away_s": gone}
    return found


def _api(fleet: ServingFleet, cost_usd: float, requests: float, seconds: float) -> ApiPrice | None:
    """The same requests at the price of an API, and the rate from which the fleet is cheaper."""
    if fleet.api_usd_per_token is None:
        return None
    usd, kind = fleet.api_usd_per_token
    paid = {"input": fleet.input_tokens, "output": fleet.output_tokens}.get(
        kind, fleet.input_tokens + fleet.output_tokens
    )
    each = usd * paid
    return {
        "price": cast("str", fleet.api_price),
        "usd_per_request": each,
        "usd_per_million_output_tokens": 1e6 * each / fleet.output_tokens if fleet.output_tokens else 0.0,
        "cost_usd": each * requests,
        "break_even_requests_per_s": cost_usd / (each * seconds) if each else 0.0,
    }
