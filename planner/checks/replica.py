"""What one replica of a row can carry, and what it does at the load that is sent to it: straight from the estimates.

A row tells where a replica stands and how it is split; everything else is asked of `planner.estimate` once more, for
this one replica alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Band, Catalog, PublishedRate
from planner.checks.bands import error_cells
from planner.checks.facts import OfferFacts
from planner.estimate.published import published_rate
from planner.estimate.recall import Recall
from planner.estimate.resolve import peaks_of, serving_machine
from planner.estimate.resolve_serving import Requests, mixes_of, requests_of, row_limits, speculation_of
from planner.estimate.serving import (
    ReplicaLayout,
    ServingCapacity,
    ServingMemory,
    ServingSpec,
    can_make,
    given_throughput_capacity,
    serving_capacity,
)
from planner.estimate.serving_constants import layout_kind
from planner.estimate.serving_fleet import (
    PREFILL,
    WHOLE,
    Replicas,
    capacity_within_targets,
    class_latencies_s,
    full_load,
    load_of,
    load_within_targets,
    replica_memory,
)
from planner.estimate.serving_open import OpenLoad
from planner.estimate.serving_step import Replica, ServingWork
from planner.estimate.serving_tiers import ServingTier, blended, fleet_ask, fleet_tier, tier_on
from planner.scenario.schema import ServingFleet

if TYPE_CHECKING:
    from planner.plan.model.fleet import ClassServed, ClassTarget, Percentiles, Point, ServingLayout, Target
    from planner.plan.model.fleet import ServingTier as TierCells
    from planner.plan.model.rows import MeasuredError

Floats = NDArray[np.float64]


class ReplicaCells(TypedDict):
    """What a row says of one replica."""

    tier: TierCells
    batch: float | None
    tpot_s: float | None
    prefill_s: float | None
    decode_terms_s: dict[str, float]
    binds: str
    point: Point | None


class Rates(NamedTuple):
    """Requests of each bucket that a replica carries.  [1/s]"""

    within_targets: list[float]
    full: list[float]  # whatever that does to latencies


@dataclass(frozen=True, slots=True, kw_only=True)
class OneReplica:
    """One replica, as the estimates take it: arrays of one element."""

    fleet: ServingFleet
    arch: Architecture
    role: int
    tier: ServingTier
    requests: Requests  # by bucket
    engine: Replicas
    published: PublishedRate | None = None

    @property
    def predicted(self) -> bool:
        """Whether its latencies are predicted at all."""
        return fleet_tier(self.fleet, self.arch) == "analytic" and self.published is None

    def memory(self, requests: Requests) -> ServingMemory:
        """Memory of one device, an element for each kind of requests."""
        return replica_memory(fleet_ask(self.fleet), self.engine, requests)

    @property
    def mixed(self) -> bool:
        """Whether it is planned at a mix of buckets."""
        return blended(self.fleet, self.arch)

    def rates_per_s(self, served: Sequence[bool] = (), own: Sequence[float] = ()) -> Rates:
        """Requests of each bucket alone that it carries, or of those that it serves together; 0 where none.  [1/s]

        Parameters
        ----------
        served
            Which buckets a replica at a mix of them serves; where that is none of the mixes there are, all.
        own
            Where it serves a mix of the plan's own: of each bucket the part of the traffic's requests.
        """
        if not self.predicted:
            textbook = self._textbook_rates()
            return Rates(textbook, textbook)
        if not self.mixed:
            return self._rates(self.requests)
        mixes = mixes_of(self.fleet.traffic)
        mix = next((one for one in mixes if np.array_equal(one > 0, served)), mixes[0])
        mix = np.array(own, dtype=np.float64) if own else mix
        found = self._rates(self.requests.mixed(mix * np.asarray(self.fleet.traffic.share)))
        return Rates(*(((mix > 0) * rate[0]).tolist() for rate in found))

    def _rates(self, requests: Requests) -> Rates:
        """An element for each kind of requests; 0 where it does not fit."""
        memory, count = self.memory(requests), len(requests.input_tokens)
        missing, batch = (np.resize(value, count) for value in (memory.missing_bytes, memory.batch))
        fitting, ask = np.flatnonzero(missing <= 0), fleet_ask(self.fleet)
        if not len(fitting):
            return Rates([0.0] * count, [0.0] * count)
        some = (self.engine, requests if len(fitting) == count else requests.take(fitting), batch[fitting], self.role)
        carried = [load_within_targets(ask, *some), full_load(ask, *some)]
        rates = np.zeros((2, count))
        rates[:, fitting] = [np.resize(one, len(fitting)) for one in carried]
        return Rates(*np.where(np.isfinite(rates), rates, 0.0).tolist())

    def _textbook_rates(self) -> list[float]:
        """Where latencies are not predicted: the throughput that was given, else the roofline's."""
        requests, given = self.requests, self.fleet.throughput_tokens_per_s_per_device
        if _first(self.memory(self._asked_mix()).missing_bytes) > 0:
            return [0.0] * len(requests.input_tokens)
        layout = self.engine.replica.layout
        if self.published is not None:
            rate = self.published.output_tokens_per_s if _first(layout.tp) == self.published.devices else 0.0
            return [rate / float(tokens) for tokens in requests.output_tokens]
        if given is not None:
            machine, batch = self.engine.replica.machine, self.memory(self._asked_mix()).batch
            if not can_make(given, self.arch, self.fleet.weights, layout, machine, batch).all():
                return [0.0] * len(requests.input_tokens)
            return [float(given_throughput_capacity(given, layout, tokens)) for tokens in requests.output_tokens]
        pairs = zip(requests.input_tokens, requests.output_tokens)
        return [_first(self._roofline(float(asked), float(made)).requests_per_s) for asked, made in pairs]

    def _roofline(self, input_tokens: float, output_tokens: float) -> ServingCapacity:
        spec = ServingSpec(
            weights=self.fleet.weights,
            kv_cache=self.fleet.kv_cache,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
        )
        one = self.engine.replica
        memory = self.memory(self._asked_mix())
        return serving_capacity(self.arch, spec, one.layout, one.machine, peaks=one.peaks, memory=memory)

    def _asked_mix(self) -> Requests:
        return self.requests.mixed(np.asarray(self.fleet.traffic.share))

    def users_send(self, users: Sequence[float]) -> float:
        """What users of this replica send, by the bucket that they are counted at, as often as not.  [1/s]"""
        mixed = self.mix(users)
        batch = np.array([_first(self.memory(mixed).batch)])
        return _first(self._load(mixed, float(sum(users)), batch, confident=False).requests_per_s)

    def mix(self, sent: Sequence[float]) -> Requests:
        """The buckets in the proportions in which they are sent; of an idle replica those that it could serve."""
        return self.requests.mixed(self._weights(sent))

    def _names(self, sent: Sequence[float]) -> list[str]:
        """Of the buckets of that mix, where they are classes that somebody told apart."""
        told_apart = self.fleet.traffic.classes and self.fleet.targets_s and self.mixed and self.role == WHOLE
        named = zip(self.fleet.traffic.buckets, self._weights(sent)) if told_apart else ()
        return [name for name, weight in named if weight > 0]

    def _weights(self, sent: Sequence[float]) -> Floats:
        if sum(sent) > 0:
            return np.asarray(sent, dtype=np.float64)
        share = np.asarray(self.fleet.traffic.share, dtype=np.float64)
        apart = self.predicted and not self.mixed
        able = share * (np.asarray(self.rates_per_s().within_targets) > 0) if apart else share
        return able if able.sum() > 0 else share

    def cells(self, sent: Sequence[float]) -> ReplicaCells:
        """What a row says of one replica that is sent so many requests of each bucket, or serves so many users."""
        mixed = self.mix(sent)
        memory = self.memory(mixed)
        batch = _first(memory.batch)
        tier, running = self._tier_cells(), _known(batch)
        if self.predicted:
            point = self._point(mixed, memory, float(sum(sent)), self._names(sent))
            told = point["binds"].replace("_", " ")
            return {
                "tier": tier,
                "batch": running,
                "tpot_s": point["tpot_s"]["mean"],
                "prefill_s": point["prefill_s"],
                "decode_terms_s": point["decode_terms_s"],
                "binds": f"{told}, batch by {point['batch_limit_by']}",
                "point": point,
            }
        if self.published is not None:
            return {
                "tier": tier,
                "batch": running,
                "tpot_s": 1.0 / self.published.output_tokens_per_s,
                "prefill_s": None,
                "decode_terms_s": {},
                "binds": "published rate of one user at a time",
                "point": None,
            }
        if self.fleet.throughput_tokens_per_s_per_device is not None:
            return {
                "tier": tier,
                "batch": running,
                "tpot_s": None,
                "prefill_s": None,
                "decode_terms_s": {},
                "binds": "given throughput",
                "point": None,
            }
        asked = self._asked_mix()
        most = self._roofline(_first(asked.input_tokens), _first(asked.output_tokens))
        return {
            "tier": tier,
            "batch": running,
            "tpot_s": _known(_first(most.tpot_s)),
            "prefill_s": _known(_first(most.prefill_s)),
            "decode_terms_s": {name: _first(value) for name, value in most.decode_step.items()},
            "binds": f"{_word(most.binding)}, batch by {_word(most.batch_limit)}",
            "point": None,
        }

    def _tier_cells(self) -> TierCells:
        tier, margins = self.tier, self.engine.margins
        engine = float(margins.engine)
        return {
            "tier": tier.tier,
            "engine": tier.engine,
            "family": tier.family,
            "constants": "" if tier.tier == "measured" else tier.constants.name,
            "tag": tier.tag,
            "inherited_from": tier.inherited_from,
            "confidence": self.fleet.confidence_share,
            "tpot": _band(tier.tpot, engine),
            "ttft": _band(tier.ttft, engine * float(margins.first_token)),
            "throughput": _band(tier.throughput, 1.0 / engine),
        }

    def _point(self, mixed: Requests, memory: ServingMemory, load: float, classes: Sequence[str]) -> Point:
        """Latencies, terms and targets at a rate of this mix, or with so many users who send it."""
        ask, batch = fleet_ask(self.fleet), np.array([_first(memory.batch)])
        median = self._load(mixed, load, batch, confident=False)
        rate = _first(median.requests_per_s) if self.fleet.users else load
        most = capacity_within_targets(ask, self.engine, mixed, batch, self.role)
        terms = self._step_terms(mixed, max(_first(median.sequences), 1.0))
        limited: Literal["memory", "max_num_seqs"] = (
            "max_num_seqs" if batch[0] < _first(memory.max_sequences) else "memory"
        )
        stops, made = _word(most.binding), _first(mixed.output_tokens)
        capacity = _first(most.requests_per_s)
        if self.fleet.users:  # who send more than that as often as not
            users = capacity * (self.fleet.traffic.think_s + _first(most.e2e_s["mean"]))
            capacity = _first(self._load(mixed, users, batch, confident=False).requests_per_s)
        found: Point = {
            "requests_per_s": rate,
            "input_tokens": _first(mixed.input_tokens),
            "output_tokens": made,
            "output_tokens_per_s": rate * made,
            "batch_limit": float(batch[0]),
            "batch_limit_by": limited,
            "capacity_requests_per_s": capacity,
            "sized_by": limited if stops == "batch" else stops,
            "sequences": _first(median.sequences),
            "prefill_share": _first(median.prefill_share),
            "slot_wait_s": _known(_first(median.slot_wait_s)),
            "prefill_s": _first(self.engine.replica.prefill_s(mixed.input_tokens, mixed.cached_tokens)),
            "decode_step_s": sum(terms.values()),
            "decode_terms_s": terms,
            "binds": max(terms, key=lambda name: terms[name]),
            "ttft_s": _percentiles(median.ttft_s),
            "tpot_s": _percentiles(median.tpot_s),
            "e2e_s": _percentiles(median.e2e_s),
            "itl_p99_s": _known(_first(median.itl_p99_s)),
            "targets": self._targets(median, self._load(mixed, load, batch, confident=True)),
            "classes": self._classes(mixed, load, batch, classes) if classes else [],
        }
        return {**found, "users": load} if self.fleet.users else found

    def _classes(self, mixed: Requests, load: float, batch: Floats, names: Sequence[str]) -> list[ClassServed]:
        """What each class of the mix waits at its own percentiles, and the most that it may."""
        late = class_latencies_s(fleet_ask(self.fleet), self.engine, mixed, np.array([load]), batch)
        limits = {name: self.fleet.spread * limit for name, limit in self.fleet.targets_s.items()}
        rows: list[ClassServed] = []
        for place, bucket in enumerate(names):
            figures = {name: float(late[name][min(place, len(late[name]) - 1), 0]) for name in limits}
            targets: list[ClassTarget] = [
                {"name": name, "at_confidence_s": _known(figures[name]), "most_s": most}
                for name, most in limits.items()
            ]
            rows.append({"name": bucket, "targets": targets})
        return rows

    def _load(self, mixed: Requests, load: float, batch: Floats, *, confident: bool) -> OpenLoad:
        ask = fleet_ask(self.fleet)
        return load_of(ask, self.engine, mixed, np.array([load]), batch, at_confidence=confident, role=self.role)

    def _step_terms(self, mixed: Requests, sequences: float) -> dict[str, float]:
        """Of one decode step; of replicas that only prefill, of the first token."""
        one = self.engine.replica
        if self.role == PREFILL:
            step = one.first_token(mixed.input_tokens, mixed.cached_tokens)
        else:
            step = one.decode_step(sequences, mixed.resident_tokens)
        return {name: _first(value) for name, value in step.items()}

    def _targets(self, median: OpenLoad, confident: OpenLoad) -> list[Target]:
        """The targets that this side of a fleet answers for."""
        rows: list[Target] = []
        for name, limit in self.fleet.targets_s.items():
            first = name.startswith("ttft")
            if self.role != WHOLE and first != (self.role == PREFILL):
                continue
            late = _first(confident.latency_s(name)) * (float(self.engine.margins.first_token) if first else 1.0)
            rows.append(
                {
                    "name": name,
                    "target_s": limit,
                    "predicted_s": _known(_first(median.latency_s(name))),
                    "at_confidence_s": _known(late),
                    "margin": _known(1.0 - late / limit),
                }
            )
        return rows


def one_replica(
    fleet: ServingFleet,
    arch: Architecture,
    catalog: Catalog,
    facts: OfferFacts,
    split: ServingLayout,
    role: int,
    recall: Recall,
) -> OneReplica:
    """The replica of a row.

    Parameters
    ----------
    fleet, arch
        What is served, and how.
    catalog
        Fitted constants and error bands of serving.
    facts
        The offer looked up again.
    split
        Sizes tp, pp, dp, ep and cp.
    role
        WHOLE, PREFILL or DECODE: what it does of a request.
    recall
        What the estimates answered before; answers are added.
    """
    machine = serving_machine(facts.device, facts.shape, facts.inter_node_bytes_per_s)
    devices = split["tp"] * split["pp"] * split["dp"]
    fast, pcie = float(machine.scale_up_devices), float(machine.pcie)
    tier = tier_on(
        fleet, arch, facts.device, catalog, layout_kind(devices, split["pp"], fast, pcie, apart=role != WHOLE)
    )
    layout = ReplicaLayout(
        devices=devices,
        tp=split["tp"],
        pp=split["pp"],
        ep=split["ep"],
        cp=split["cp"],
    )
    replica = Replica(
        work=ServingWork.of(arch, fleet.weights, fleet.kv_cache),
        layout=layout,
        machine=machine,
        peaks=peaks_of(arch, fleet.weights, facts.device, facts.shape, fleet.engine),
        constants=tier.constants,
        speculation=speculation_of(fleet),
    )
    published = published_rate(fleet, arch, facts.device)
    by_engine = fleet_tier(fleet, arch) == "analytic"
    engine = Replicas(
        arch=arch,
        recall=recall,
        replica=replica,
        limits=row_limits(fleet, [(facts.device, facts.shape)], [1], split["dp"], by_engine=by_engine),
        margins=tier.margins(fleet.confidence_share),
    )
    requests = requests_of(fleet.traffic, fleet.prefix_cached or 0.0)
    return OneReplica(
        fleet=fleet, arch=arch, role=role, tier=tier, requests=requests, engine=engine, published=published
    )


def _band(band: Band | None, margin: float) -> MeasuredError | None:
    return None if band is None else {**error_cells(band), "margin": margin}


def _percentiles(table: Mapping[str, Any]) -> Percentiles:
    return {
        "mean": _known(_first(table["mean"])),
        "p50": _known(_first(table["p50"])),
        "p90": _known(_first(table["p90"])),
        "p95": _known(_first(table["p95"])),
        "p99": _known(_first(table["p99"])),
    }


def _known(value: float) -> float | None:
    """JSON holds no infinity: what is not finite is not stated."""
    return value if math.isfinite(value) else None


def _first(value: Any) -> float:
    return float(np.asarray(value, dtype=np.float64).flat[0])


def _word(value: Any) -> str:
    return str(np.asarray(value).flat[0])
