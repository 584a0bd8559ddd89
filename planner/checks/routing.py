"""Whether what is sent where adds up to what is asked for, and whether replicas can carry it, spares lost or not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from planner.checks.findings import Finding
from planner.estimate.resolve_serving import mixes_of
from planner.scenario.schema import ServingFleet

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
