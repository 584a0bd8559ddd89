"""What one replica of a row does at the load that is planned for it: batch, terms, latencies against their targets.

Everything follows from the row's own facts: where it stands, how it is split, what is sent to it. The verifier works
the same cells out from the document.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device, PublishedRate, Shape
from planner.equations.registry import as_float
from planner.estimate.published import published_rate
from planner.estimate.recall import Recall
from planner.estimate.resolve import peaks_of, serving_machine
from planner.estimate.resolve_serving import Requests, requests_of, row_limits, speculation_of
from planner.estimate.serving import ReplicaLayout, ServingMemory
from planner.estimate.serving_constants import layout_kind
from planner.estimate.serving_fleet import (
    PREFILL,
    WHOLE,
    Replicas,
    capacity_within_targets,
    class_latencies_s,
    keeps_targets,
    load_of,
    replica_memory,
)
from planner.estimate.serving_open import OpenLoad
from planner.estimate.serving_step import Replica, ServingWork
from planner.estimate.serving_tiers import ServingTier, blended, fleet_ask, fleet_tier, tier_on
from planner.plan.rows.bands import quantiles
from planner.scenario.schema import ServingFleet

if TYPE_CHECKING:
    from planner.plan.model import fleet as told

Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ReplicaSite:
    """One replica of a fleet on a kind of machine, split in one way."""

    fleet: ServingFleet
    arch: Architecture
    catalog: Catalog
    device: Device
    shape: Shape
    inter_node_bytes_per_s: float | None
    split: Mapping[str, int]  # tp, pp, dp, ep
    role: int = WHOLE
    recall: Recall = field(default_factory=Recall)  # what was answered of replicas

    @property
    def analytic(self) -> bool:
        """Whether latencies are predicted at all."""
        return fleet_tier(self.fleet, self.arch) == "analytic" and self.published is None

    @property
    def published(self) -> PublishedRate | None:
        """What is published of the model here, which then stands in place of a prediction."""
        return published_rate(self.fleet, self.arch, self.device)

    @cached_property
    def tier(self) -> ServingTier:
        """Constants and bands."""
        machine = serving_machine(self.device, self.shape, self.inter_node_bytes_per_s)
        fast, pcie = float(machine.scale_up_devices), float(machine.pcie)
        devices = self.split["tp"] * self.split["pp"] * self.split["dp"]
        layout = layout_kind(devices, self.split["pp"], fast, pcie, apart=self.role != WHOLE)
        return tier_on(self.fleet, self.arch, self.device, self.catalog, layout)

    @cached_property
    def requests(self) -> Requests:
        """The fleet's requests by bucket."""
        return requests_of(self.fleet.traffic, self.fleet.prefix_cached or 0.0)

    @cached_property
    def replicas(self) -> Replicas:
        """The replica as the estimates take it, one row."""
        split = self.split
        layout = ReplicaLayout(
            devices=split["tp"] * split["pp"] * split["dp"],
            tp=split["tp"],
            pp=split["pp"],
            ep=split["ep"],
            cp=split["cp"],
        )
        replica = Replica(
            work=ServingWork.of(self.arch, self.fleet.weights, self.fleet.kv_cache),
            layout=layout,
            machine=serving_machine(self.device, self.shape, self.inter_node_bytes_per_s),
            peaks=peaks_of(self.arch, self.fleet.weights, self.device, self.shape, self.fleet.engine),
            constants=self.tier.constants,
            speculation=speculation_of(self.fleet),
        )
        by_engine = fleet_tier(self.fleet, self.arch) == "analytic"
        return Replicas(
            arch=self.arch,
            recall=self.recall,
            replica=replica,
            limits=row_limits(self.fleet, [(self.device, self.shape)], [1], split["dp"], by_engine=by_engine),
            margins=self.tier.margins(self.fleet.confidence_share),
        )

    def memory(self, requests: Requests) -> ServingMemory:
        """Memory with some requests, one row each."""
        return replica_memory(fleet_ask(self.fleet), self.replicas, requests)

    def bucket_rates(self) -> Values:
        """The largest rate of each bucket alone that keeps every target; 0 where none does.  [1/s]"""
        memory = self.memory(self.requests)
        count = len(self.requests.input_tokens)
        fits = np.broadcast_to(as_float(memory.missing_bytes) <= 0, (count,))
        rates = np.zeros(count)
        served = np.flatnonzero(fits)
        if len(served):
            batch = np.broadcast_to(as_float(memory.batch), (count,))[served]
            some = self.requests.take(served)
            load = capacity_within_targets(fleet_ask(self.fleet), self.replicas, some, batch, self.role)
            found = np.broadcast_to(as_float(load.requests_per_s), (len(served),))
            rates[served] = np.where(np.isfinite(found), found, 0.0)
        return rates

    def _could_be_sent(self) -> Values:
        """Shares of the buckets that a replica without requests could serve; of all where it could serve none."""
        share = np.asarray(self.fleet.traffic.share)
        apart = self.analytic and not blended(self.fleet, self.arch)
        served = share * (self.bucket_rates() > 0) if apart else share
        return served if served.sum() > 0 else share

    def point(self, load: Sequence[float]) -> Point:
        """The replica under a mix of requests: their rate by bucket, or users by what they send."""
        rates = np.asarray(load, dtype=np.float64)
        sent = rates if rates.sum() > 0 else self._could_be_sent()
        served = tuple(np.array(self.fleet.traffic.buckets)[sent > 0].tolist())
        mixed = self.requests.mixed(sent)
        return Point(site=self, requests=mixed, served=served, load=float(rates.sum()))


@dataclass(frozen=True, kw_only=True)
class Point:
    """A replica under a load."""

    site: ReplicaSite
    requests: Requests  # one row: all buckets mixed
    served: tuple[str, ...]  # names of these buckets
    load: float  # requests, or users  [1/s] or [count]

    @cached_property
    def requests_per_s(self) -> float:
        """What is sent to the replica, of users as often as not.  [1/s]"""
        return _one(self.predicted.requests_per_s) if self.site.fleet.users else self.load

    @cached_property
    def memory(self) -> ServingMemory:
        """Memory with this mix of requests."""
        return self.site.memory(self.requests)

    def under_load(self, *, at_confidence: bool) -> OpenLoad:
        """What the replica does, as predicted or at the confidence asked for."""
        return load_of(
            fleet_ask(self.site.fleet),
            self.site.replicas,
            self.requests,
            np.array([self.load]),
            as_float(self.memory.batch),
            at_confidence=at_confidence,
            role=self.site.role,
        )

    @cached_property
    def predicted(self) -> OpenLoad:
        """What the replica does as often as not."""
        return self.under_load(at_confidence=False)

    @cached_property
    def confident(self) -> OpenLoad:
        """What the replica does at the confidence asked for, the first token apart."""
        return self.under_load(at_confidence=True)

    def latency_s(self, name: str) -> float:
        """A latency at the confidence asked for, by its target's name.  [s]"""
        first = float(self.site.replicas.margins.first_token) if name.startswith("ttft") else 1.0
        return _one(self.confident.latency_s(name)) * first

    @cached_property
    def most(self) -> OpenLoad:
        """The replica at the largest rate of this mix at which every target is kept."""
        ask, batch = fleet_ask(self.site.fleet), as_float(self.memory.batch)
        return capacity_within_targets(ask, self.site.replicas, self.requests, batch, self.site.role)

    def capacity_per_s(self) -> float:
        """The largest rate of this mix at which every target is kept; 0 where there is none.  [1/s]

        Of users what the most of them send as often as not; at the confidence asked for they send less.
        """
        if not self.site.fleet.users:
            return _one(self.most.requests_per_s)
        return replace(self, load=self.most_users).requests_per_s

    @property
    def most_users(self) -> float:
        """The most users with whom every target is kept, by the law of response times; 0 where there are none."""
        return _one(self.most.requests_per_s * (self.site.fleet.traffic.think_s + self.most.e2e_s["mean"]))

    def missed(self) -> float:
        """The most by which a target is missed, as a share of it; not above 0 when all are kept.

        A class of requests that is served too much worse than all together counts as missed by all.
        """
        most = max((self.latency_s(name) / limit - 1.0 for name, limit in self.targets_s.items()), default=-1.0)
        return most if most > 0 or self.requests.classes is None or self.kept else 1.0

    @cached_property
    def kept(self) -> bool:
        """Whether every target is kept, those of each class of requests too."""
        ask, batch, load = fleet_ask(self.site.fleet), as_float(self.memory.batch), np.array([self.load])
        return bool(keeps_targets(ask, self.site.replicas, self.requests, batch, load).all())

    @property
    def targets_s(self) -> Mapping[str, float]:
        """The targets that the replica answers for: of pools each side has its own."""
        every = self.site.fleet.targets_s
        if self.site.role == WHOLE:
            return every
        return {name: limit for name, limit in every.items() if name.startswith("ttft") == (self.site.role == PREFILL)}

    def cells(self) -> told.Point:
        """The figures of the point, in base units."""
        load, memory = self.predicted, self.memory
        running = _one(load.sequences)
        replica = self.site.replicas.replica
        decode = replica.decode_step(max(running, 1.0), self.requests.resident_tokens)
        if self.site.role == PREFILL:
            decode = replica.first_token(*self._prompt)
        terms = {name: _one(value) for name, value in decode.items()}
        made = _one(self.requests.output_tokens)
        limited: Literal["max_num_seqs", "memory"] = (
            "max_num_seqs" if _one(memory.batch) < _one(memory.max_sequences) else "memory"
        )
        stops = str(np.asarray(self.most.binding).reshape(-1)[0])
        found: told.Point = {
            "requests_per_s": self.requests_per_s,
            "input_tokens": _one(self.requests.input_tokens),
            "output_tokens": made,
            "output_tokens_per_s": self.requests_per_s * made,
            "batch_limit": _one(memory.batch),
            "batch_limit_by": limited,
            "capacity_requests_per_s": self.capacity_per_s(),
            "sized_by": limited if stops == "batch" else stops,
            "sequences": running,
            "prefill_share": _one(load.prefill_share),
            "slot_wait_s": finite(_one(load.slot_wait_s)),
            "prefill_s": _one(self.site.replicas.replica.prefill_s(*self._prompt)),
            "decode_step_s": sum(terms.values()),
            "decode_terms_s": terms,
            "binds": max(terms, key=lambda name: terms[name]),
            "ttft_s": _percentiles(load.ttft_s),
            "tpot_s": _percentiles(load.tpot_s),
            "e2e_s": _percentiles(load.e2e_s),
            "itl_p99_s": finite(_one(load.itl_p99_s)),
            "targets": self._targets(),
        }
        if classes := self._classes():
            found["classes"] = classes
        if self.site.fleet.users:
            found["users"] = self.load
        return found

    def _classes(self) -> list[told.ClassServed]:
        """Each class of a histogram at its own percentiles, where replicas take several together."""
        fleet, ask = self.site.fleet, fleet_ask(self.site.fleet)
        told_apart = fleet.traffic.classes and blended(fleet, self.site.arch) and self.site.role == WHOLE
        if not told_apart or not ask.targets_s:
            return []
        at = (np.array([self.load]), as_float(self.memory.batch))
        found = class_latencies_s(ask, self.site.replicas, self.requests, *at)
        each = {name: np.broadcast_to(value[:, 0], len(self.served)) for name, value in found.items()}
        return [
            {
                "name": name,
                "targets": [
                    {
                        "name": target,
                        "at_confidence_s": finite(float(each[target][place])),
                        "most_s": limit * fleet.spread,
                    }
                    for target, limit in ask.targets_s.items()
                ],
            }
            for place, name in enumerate(self.served)
        ]

    @property
    def _prompt(self) -> tuple[Values, Values]:
        return self.requests.input_tokens, self.requests.cached_tokens

    def _targets(self) -> list[told.Target]:
        """Each target with what is predicted, what it may be at the confidence asked for, and what is left."""
        return [
            {
                "name": name,
                "target_s": limit,
                "predicted_s": finite(_one(self.predicted.latency_s(name))),
                "at_confidence_s": finite(self.latency_s(name)),
                "margin": finite(1.0 - self.latency_s(name) / limit),
            }
            for name, limit in self.targets_s.items()
        ]


def tier_cells(site: ReplicaSite) -> told.ServingTier:
    """The tier of a row: constants, where they are from, the error that they showed."""
    tier, margins = site.tier, site.replicas.margins
    return {
        "tier": tier.tier,
        "engine": tier.engine,
        "family": tier.family,
        "constants": tier.constants.name if tier.tier != "measured" else "",
        "tag": tier.tag,
        "inherited_from": tier.inherited_from,
        "confidence": site.fleet.confidence_share,
        "tpot": quantiles(tier.tpot, float(margins.engine)),
        "ttft": quantiles(tier.ttft, float(margins.engine) * float(margins.first_token)),
        "throughput": quantiles(tier.throughput, 1.0 / float(margins.engine)),
    }


def _percentiles(table: Mapping[str, Any]) -> told.Percentiles:
    mean, p50, p90, p95, p99 = (finite(_one(table[name])) for name in ("mean", "p50", "p90", "p95", "p99"))
    return {"mean": mean, "p50": p50, "p90": p90, "p95": p95, "p99": p99}


def finite(value: float) -> float | None:
    """A number as JSON can hold it."""
    return value if math.isfinite(value) else None


def _one(value: Any) -> float:
    return float(np.asarray(value, dtype=np.float64).reshape(-1)[0])
