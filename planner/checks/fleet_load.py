"""The load of a fleet: whether what is sent where adds up to what is asked for, and whether replicas can carry it.

Spares lost or not; what a plan says of the load of each row and of the fleet as a whole is added up again in plain
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypedDict, cast

import numpy as np

from planner.checks.facts import RESERVED
from planner.checks.findings import Finding
from planner.estimate.resolve_serving import fleet_levels, mixes_of
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


if TYPE_CHECKING:
    from planner.plan.model.fleet import ServingAllocation

    # rows with micro-requests/s of one replica by bucket, at target load
    Carried = Sequence[tuple[ServingAllocation, list[int]]]

MICRO = 1_000_000


def routing_findings(
    fleet: ServingFleet,
    demands: Sequence[int],
    carried: Carried,
    spares: int,
    levels: Sequence[Sequence[int]] = (),
    *,
    together: bool = False,
    mixes: Sequence[Sequence[float]] = (),
) -> Iterator[Finding]:
    """Everything wrong with the routing of a fleet's peak.

    Parameters
    ----------
    demands
        Peak of each bucket.  [micro-requests/s]
    carried
        The rows, each with what one of its replicas may be planned to carry of each bucket alone.
    spares
        Replicas that may be lost.
    levels
        Of an autoscaled fleet, the demand at every level of load, least first; each is carried by what runs then.
    together
        A replica is planned at a mix of buckets, and carries their rates at the same time.
    mixes
        Of the plan's own, which a row names by number: of each bucket the part of the traffic's requests.
    """
    yield from _sums(fleet, carried)
    yield from _loads(fleet, carried)
    parts = _parts(fleet) if together else None
    boxes = carried
    if parts is not None:
        boxes = [(row, _box(planned, _own_parts(parts, row, mixes))) for row, planned in carried]
    yield from _spot(fleet, demands, boxes, together=together)
    for level, wanted in enumerate(levels or (demands,)):
        running = [(row, planned) for row, planned in boxes if row.get("level", 0) <= level]
        if parts is not None:
            yield from _lines(fleet, [sum(wanted)] if len(parts) == 1 else wanted, running, spares)
        elif len(wanted) == 1 and all(row["role"] == "whole" for row, _ in running):
            yield from _lines(fleet, wanted, running, spares)
        else:
            yield from _losses(fleet, wanted, running, spares)


def sent_load(fleet: ServingFleet, row: ServingAllocation) -> list[float]:
    """What a row says that it is sent of each bucket: requests, or users by what they send.  [1/s] or [count]"""
    if not fleet.users:
        return row["routed_requests_per_s"]
    return [row.get("users", 0.0) * float(share) for share in fleet.traffic.share]


def _parts(fleet: ServingFleet) -> list[float]:
    """Share of the traffic of each bucket that replicas of its own may serve; of all of it where there are many."""
    return [float(share) for share in fleet.traffic.share] if len(mixes_of(fleet.traffic)) > 1 else [1.0]


def _own_parts(parts: Sequence[float], row: ServingAllocation, mixes: Sequence[Sequence[float]]) -> Sequence[float]:
    """The parts, of a row that serves a mix of the plan's own as much of each as it takes."""
    return [part * taken for part, taken in zip(parts, mixes[row["class_mix"]])] if "class_mix" in row else parts


def _box(planned: Sequence[int], parts: Sequence[float]) -> list[int]:
    """Micro-requests/s of each part, of a replica that carries so many of all that it serves."""
    if len(parts) == 1:
        return [max(planned)]
    served = math.fsum(part for part, rate in zip(parts, planned) if rate)
    return [math.floor(rate * part / served + 1e-6) if rate else 0 for part, rate in zip(parts, planned)]


def _lines(fleet: ServingFleet, demands: Sequence[int], carried: Carried, spares: int) -> Iterator[Finding]:
    """The peak of each part is met at the target load, also after the loss of the largest spares; in whole numbers."""
    for part, demand in enumerate(demands):
        capacity = sum(planned[part] * row["replicas"] for row, planned in carried)
        lost = spares * max((planned[part] for _, planned in carried), default=0)
        if capacity - lost < demand:
            spare = f" less {spares} spares" if spares else ""
            text = f"{capacity - lost} micro-requests/s planned{spare}, the peak is {demand}"
            yield Finding("demand-unmet", f"{fleet.name}: {text}")


def _sums(fleet: ServingFleet, carried: Carried) -> Iterator[Finding]:
    """Together the rows are sent the peak of every bucket."""
    traffic = fleet.traffic
    for bucket, share in enumerate(traffic.share):
        asked = float(share) * traffic.peak_load
        for side in ("prefill", "decode"):
            mine = [sent_load(fleet, row) for row, _ in carried if row["role"] in ("whole", side)]
            sent = math.fsum(routed[bucket] for routed in mine)
            if not math.isclose(sent, asked, rel_tol=1e-6, abs_tol=1.5 / MICRO):
                unit = "users" if fleet.users else "requests/s"
                text = f"{sent:.9g} {unit} of {traffic.buckets[bucket]} are planned for {side}, not {asked:.9g}"
                yield Finding("wrong-load", f"{fleet.name}: {text}")


def _loads(fleet: ServingFleet, carried: Carried) -> Iterator[Finding]:
    """No row is sent what it cannot serve, nor more than its replicas carry."""
    for row, planned in carried:
        routed = sent_load(fleet, row)
        if len(routed) != len(planned) or any(part < 0 for part in routed):
            yield Finding("wrong-load", f"{fleet.name}: the routing of {row['offer']} does not fit the buckets")
            continue
        if any(part > 0 and not rate for part, rate in zip(routed, planned)):
            yield Finding("demand-unmet", f"{fleet.name}: {row['offer']} is sent requests that it cannot serve")
            continue
        load = math.fsum(part * MICRO / rate for part, rate in zip(routed, planned) if rate)
        if load > row["replicas"] * (1 + 1e-6):
            text = f"{load:.6g} replicas of load on {row['replicas']}"
            yield Finding("demand-unmet", f"{fleet.name}: {row['offer']} has {text} at the target load")


def _spot(fleet: ServingFleet, demands: Sequence[int], carried: Carried, *, together: bool) -> Iterator[Finding]:
    """At every level and in every role spot replicas bring at most their share of what all bring."""
    if fleet.max_spot_share is None:
        return
    limit = Fraction(repr(float(fleet.max_spot_share)))
    for level in sorted({row.get("level", 0) for row, _ in carried}):
        for role in ("whole", "prefill", "decode"):
            mine = [(r, p) for r, p in carried if r["role"] == role and r.get("level", 0) <= level]
            rate_of = sum if together else partial(_fleet_rate, demands)
            rates = [rate_of(planned) * row["replicas"] for row, planned in mine]
            spot = sum(rate for rate, (row, _) in zip(rates, mine) if row["price_model"] == "spot")
            if spot > limit * sum(rates):
                share = f"{float(Fraction(spot, max(sum(rates), 1))):.1%}"
                yield Finding("limit-exceeded", f"{fleet.name}: {share} of its {role} rate is on spot, {limit} allowed")


def _fleet_rate(demands: Sequence[int], planned: Sequence[int]) -> int:
    """Rate of one replica on the fleet's own traffic, of the buckets that it can serve.  [micro-requests/s]"""
    able = [(demand, rate) for demand, rate in zip(demands, planned) if demand > 0 and rate > 0]
    load = sum((Fraction(demand, rate) for demand, rate in able), Fraction(0))
    return int(sum(demand for demand, _ in able) / load) if load else 0


def _losses(fleet: ServingFleet, demands: Sequence[int], carried: Carried, spares: int) -> Iterator[Finding]:
    """With several buckets: whichever row loses the spares, some routing carries the peak."""
    lost_rows = range(len(carried)) if spares else (-1,)
    for lost in lost_rows:
        counts = [row["replicas"] - spares * (i == lost) for i, (row, _) in enumerate(carried)]
        roles = [row["role"] for row, _ in carried]
        rates = [planned for _, planned in carried]
        if min(counts, default=0) >= 0 and _shifted(demands, counts, carried):
            continue
        if min(counts, default=0) < 0 or not _carries(demands, counts, rates, roles):
            where = f" once {carried[lost][0]['offer']} lacks {spares} replicas" if lost >= 0 else ""
            yield Finding("demand-unmet", f"{fleet.name}: no routing carries the peak of every bucket{where}")


def _shifted(demands: Sequence[int], counts: Sequence[int], carried: Carried) -> bool:
    """Whether the stated routing will do once rows with too much give it to rows with room; quick, not complete."""
    if any(row["role"] != "whole" for row, _ in carried):
        return False
    rates = np.array([planned for _, planned in carried], dtype=np.float64)
    sent = np.array([row["routed_requests_per_s"] for row, _ in carried]) * MICRO
    sent = sent * (np.asarray(demands, dtype=np.float64) / np.maximum(sent.sum(axis=0), 1e-300))
    if ((sent > 0) & (rates <= 0)).any() or (sent.sum(axis=0) < np.asarray(demands) * (1 - 1e-9)).any():
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = np.where(rates > 0, 1.0 / rates, np.inf)  # of a request, in replicas
    room = np.asarray(counts, dtype=np.float64) - (sent * np.where(rates > 0, cost, 0.0)).sum(axis=1)
    for full in np.flatnonzero(room < 0):
        others = [i for i in np.flatnonzero(room > 0) if i != full]
        ways = sorted((cost[i, b] / cost[full, b], i, b) for i in others for b in np.flatnonzero(sent[full] > 0))
        for ratio, i, b in ways:
            moved = min(sent[full, b], max(-room[full], 0.0) / cost[full, b], max(room[i], 0.0) / cost[i, b])
            if moved > 0 and np.isfinite(ratio):
                sent[full, b] -= moved
                room[full] += moved * cost[full, b]
                room[i] -= moved * cost[i, b]
    return bool((room >= -1e-9).all())


def _carries(
    demands: Sequence[int], counts: Sequence[int], rates: Sequence[Sequence[int]], roles: Sequence[str]
) -> bool:
    """Whether a routing exists: the least share of the replicas that any routing fills is at most all of them."""
    from scipy.optimize import linprog

    arcs = [(i, b) for i, row in enumerate(rates) for b, rate in enumerate(row) if rate > 0]
    flow = np.zeros((2 * len(demands), len(arcs) + 1))  # what is prefilled, then what is decoded
    load = np.zeros((len(counts), len(arcs) + 1))
    for place, (i, b) in enumerate(arcs):
        flow[b, place] = roles[i] != "decode"
        flow[len(demands) + b, place] = roles[i] != "prefill"
        load[i, place] = demands[b] / rates[i][b]
    load[:, -1] = -np.asarray(counts, dtype=np.float64)
    cost = np.zeros(len(arcs) + 1)
    cost[-1] = 1.0
    found = linprog(cost, A_ub=load, b_ub=np.zeros(len(counts)), A_eq=flow, b_eq=np.ones(2 * len(demands)))
    return bool(found.status == 0 and found.x[-1] <= 1 + 1e-6)
