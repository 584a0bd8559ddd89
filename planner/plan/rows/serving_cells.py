"""Cells of a fleet's rows that follow from rates, routing and money; the verifier works them out from the document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from planner.estimate.serving import ServingSpec, serving_capacity
from planner.plan.rows.serving_point import Point, ReplicaSite, finite, tier_cells
from planner.scenario.schema import ServingFleet

if TYPE_CHECKING:
    from planner.plan.model.fleet import Loads, Predicted, ServingTier, TokenPrices, Users


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
