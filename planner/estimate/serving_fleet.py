"""What a replica carries of a fleet's requests within its latency targets, over flat arrays of replicas and buckets.

A prediction holds with the confidence that the scenario asks for: every time of the engine is taken as longer by the
quantile of the error band of the time per token, and the time to the first token by that of its own band where it is
wider still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.equations.registry import FloatOrArray, as_float
from planner.equations.replicas import cache_transfer_s, transfers_per_s
from planner.estimate.machine import Machine
from planner.estimate.recall import Recall, figures_of
from planner.estimate.resolve_serving import Requests, RowLimits, with_fallbacks
from planner.estimate.serving import Draft, ServingMemory, ServingSpec, serving_memory
from planner.estimate.serving_open import (
    OpenLoad,
    RequestShape,
    Targets,
    idle_at,
    keeps,
    keeps_idle,
    largest_load,
    load_at,
    of_classes,
    slo_capacity,
    users_at,
)
from planner.estimate.serving_pools import decode_pool_capacity, prefill_pool_capacity
from planner.estimate.serving_requests import Mix
from planner.estimate.serving_step import Replica, ReplicaLayout, sequence_cache_bytes
from planner.estimate.serving_work import taken

Values = NDArray[np.float64]
Rows = NDArray[np.int64]
Answer = TypeVar("Answer")
_RATES = tuple(each.name for each in fields(Machine) if each.name not in ("constants", "family", "overheads"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowed:
    """A replica whose every time is longer by a factor: one end of its error band."""

    replica: Replica
    factor: FloatOrArray

    def take(self, index: Rows) -> Slowed:
        """The rows of `index`."""
        factor = as_float(self.factor)
        return Slowed(replica=self.replica.take(index), factor=factor[index] if factor.ndim else factor)

    @property
    def ranks(self) -> FloatOrArray:
        """Attention ranks.  [count]"""
        return self.replica.ranks

    @property
    def request_s(self) -> FloatOrArray:
        """Time that a request spends outside the engine.  [s]"""
        return as_float(self.replica.request_s) * self.factor

    def step_s(self, sequences: FloatOrArray, context_tokens: FloatOrArray) -> FloatOrArray:
        """One decode step of the engine.  [s]"""
        return as_float(self.replica.step_s(sequences, context_tokens)) * self.factor

    def token_s(self, sequences: FloatOrArray, context_tokens: FloatOrArray) -> FloatOrArray:
        """Mean time per output token of a sequence, no prefill in between.  [s]"""
        return as_float(self.replica.token_s(sequences, context_tokens)) * self.factor

    def prefill_s(self, input_tokens: FloatOrArray, cached_tokens: FloatOrArray = 0) -> FloatOrArray:
        """Engine time that a prompt takes from decoding.  [s]"""
        return as_float(self.replica.prefill_s(input_tokens, cached_tokens)) * self.factor

    def prefill_alone_s(self, input_tokens: FloatOrArray, cached_tokens: FloatOrArray = 0) -> FloatOrArray:
        """First token of a prompt on an idle engine.  [s]"""
        return as_float(self.replica.prefill_alone_s(input_tokens, cached_tokens)) * self.factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """What times are multiplied with to hold at a confidence; numbers, or arrays with one element a replica."""

    engine: Any = 1.0  # every time of the engine
    first_token: Any = 1.0  # the time to the first token, beyond that

    def take(self, index: Rows) -> Margins:
        """The margins of these rows."""
        return taken(self, index)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAsk:
    """What is asked of every replica of a fleet."""

    weights: str
    kv_cache: str
    targets_s: Mapping[str, float]  # "ttft_p95" -> seconds
    arrival_variability: float = 1.0
    spread: float = np.inf  # no class of requests is served worse than so many times a target
    think_s: float = np.inf  # of users who wait for each answer; then loads are users, not requests/s
    target_load: float = 1.0  # of users: share of the rate that fills a replica at which those who fill it are counted
    draft: Draft | None = None  # what drafts tokens beside the model, and takes memory
    sent_tokens: int = 0  # of a sequence in a step, of engines that send them to experts by buffers

    @property
    def closed(self) -> bool:
        """Whether the load is users."""
        return bool(np.isfinite(self.think_s))

    def targets(self, margins: Margins) -> Targets:
        """The targets as predictions must keep them, less what the first token may take beyond the engine."""
        return Targets(
            spread=self.spread,
            **{
                f"{name}_s": value / as_float(margins.first_token) if name.startswith("ttft") else value
                for name, value in self.targets_s.items()
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """Replicas side by side; every part holds arrays (n,)."""

    arch: Architecture
    replica: Replica
    limits: RowLimits
    margins: Margins
    recall: Recall = field(default_factory=Recall)  # what was answered of such replicas

    def take(self, index: Rows) -> Replicas:
        """The replicas of these rows, in any order and as often as named."""
        return Replicas(
            arch=self.arch,
            recall=self.recall,
            replica=self.replica.take(index),
            limits=self.limits.take(index),
            margins=self.margins.take(index),
        )

    def recalled(self, what: str, ask: FleetAsk, work: Callable[[], Answer], *figures: Any) -> Answer:
        """An answer to a question of these replicas, worked out where it was not asked before.

        Parameters
        ----------
        what
            Kind of the question: it tells apart questions that are asked with the same figures.
        ask
            What is asked of every replica; all of it counts.
        work
            Works the answer out.
        *figures
            What else the answer depends on: numbers, arrays, dataclasses and tuples of them.
        """
        constants = with_fallbacks(self.replica.constants)
        names = [each.name for each in fields(constants) if each.name not in ("name", "error", "error_source")]
        asked = figures_of(
            (self.replica.work, self.replica.layout, self.replica.peaks, self.replica.speculation),
            [getattr(self.replica.machine, name) for name in _RATES],
            [getattr(constants, name) for name in names],
            (self.limits, self.margins, *figures),
            texts=True,
        )
        targets = tuple(sorted(ask.targets_s.items()))
        told = (ask.weights, ask.kv_cache, targets, ask.arrival_variability, ask.spread, ask.think_s, ask.target_load)
        return self.recall.of((what, told, ask.draft, self.arch, asked), work)


def replica_memory(ask: FleetAsk, replicas: Replicas, requests: Requests) -> ServingMemory:
    """Memory of each replica with the requests of its element.

    Parameters
    ----------
    ask
        Formats of weights and cache.
    replicas
        Replicas side by side, with the limits of their engine.
    requests
        Those of each replica.
    """
    return fleet_memory(
        replicas.arch, ask, replicas.replica.layout, replicas.replica.machine, replicas.limits, requests
    )


def fleet_memory(
    arch: Architecture, ask: FleetAsk, layout: ReplicaLayout, machine: Machine, limits: RowLimits, requests: Requests
) -> ServingMemory:
    """Memory of layouts on machines with the requests of each element.

    Parameters
    ----------
    arch
        The model.
    ask
        Formats of weights and cache.
    layout
        How each replica lies on its devices.
    machine
        What it runs on; only the memory of a device counts.
    limits
        Of its engine.
    requests
        Those of each replica.
    """
    spec = ServingSpec(
        weights=ask.weights,
        kv_cache=ask.kv_cache,
        input_tokens=requests.input_tokens,
        output_tokens=requests.output_tokens,
        max_num_seqs=limits.max_num_seqs,
        memory_fraction=limits.memory_fraction,
        fraction=limits.fraction,
        resident_tokens=requests.resident_tokens,
        longest_tokens=requests.longest_tokens,
        draft=ask.draft,
        sent_tokens=ask.sent_tokens,
    )
    return serving_memory(arch, spec, layout, machine)


def request_shape(requests: Requests) -> RequestShape:
    """The requests as the models of the load take them; of a mix each class as well."""
    names = [field.name for field in fields(RequestShape) if field.name != "mix"]
    shape = RequestShape(**{name: getattr(requests, name) for name in names})
    if requests.classes is None or requests.share is None:
        return shape
    classes = RequestShape(**{name: getattr(requests.classes, name)[:, None] for name in names})
    share = requests.share[:, None] if requests.share.ndim == 1 else requests.share.T
    return replace(shape, mix=Mix(share=share, classes=classes))


def _open_loop(ask: FleetAsk, replicas: Replicas, requests: Requests, *, at_confidence: bool = True) -> dict[str, Any]:
    """What the models of an open loop (`serving_open`) are asked about, all but the limit on sequences."""
    return {
        "replica": Slowed(replica=replicas.replica, factor=replicas.margins.engine if at_confidence else 1.0),
        "shape": request_shape(requests),
        "arrival_variability": ask.arrival_variability,
        "max_batched_tokens": replicas.limits.max_batched_tokens,
        "think_s": ask.think_s,
    }


WHOLE, PREFILL, DECODE = 0, 1, 2  # what a replica does of a request
ROLES: tuple[Literal["whole", "prefill", "decode"], ...] = ("whole", "prefill", "decode")


def transfer_time_s(ask: FleetAsk, replicas: Replicas, requests: Requests) -> Values:
    """Time that the cache of a prompt takes through the network of one side; nan where that is not known.  [s]

    Parameters
    ----------
    ask
        Format of the cache.
    replicas
        Those of one side; all their devices send at once.
    requests
        Those of each replica; only the mean prompt counts.
    """
    machine, layout = replicas.replica.machine, replicas.replica.layout
    sent = sequence_cache_bytes(replicas.arch, ask.kv_cache, requests.input_tokens)
    return as_float(cache_transfer_s(sent, machine.inter_node_bytes_per_s, layout.devices))


def capacity_within_targets(
    ask: FleetAsk, replicas: Replicas, requests: Requests, batch: FloatOrArray, role: int = WHOLE
) -> OpenLoad:
    """The largest rate of each replica that keeps every target at the confidence asked for.

    Of pools the prefill side answers for the first token, less the time in which it sends the cache, the
    decode side for the others, with the time in which it takes the cache in: each counts its own network.

    Parameters
    ----------
    ask
        Targets, how requests come, and how long users think.
    replicas
        Replicas side by side, or one for all requests.
    requests
        Those of each replica.
    batch
        Sequences that each may run at once, as its memory allows.  [count]
    role
        What a replica does of a request: WHOLE, PREFILL or DECODE.
    """

    def asked() -> OpenLoad:
        if role != WHOLE:
            return _pool(ask, replicas, requests, batch, role, None, at_confidence=True)
        targets = ask.targets(replicas.margins)
        return slo_capacity(targets=targets, batch_limit=batch, **_open_loop(ask, replicas, requests))

    return replicas.recalled(f"capacity {role}", ask, asked, requests, batch)


def full_load(ask: FleetAsk, replicas: Replicas, requests: Requests, batch: FloatOrArray, role: int = WHOLE) -> Values:
    """The load that fills each replica at the confidence asked for, whatever that does to latencies.  [1/s] or users

    The target load is one of rates: of users those count who send that share of the rate that fills it, over the share.

    Parameters
    ----------
    ask
        How requests come, how long users think, and at which share of the full rate they are counted; no targets.
    replicas
        Replicas side by side, or one for all requests.
    requests
        Those of each replica.
    batch
        Sequences that each may run at once, as its memory allows.  [count]
    role
        What a replica does of a request: WHOLE, PREFILL or DECODE.
    """
    idle = replace(ask, targets_s={}, think_s=np.inf)
    full = _largest_load(idle, replicas, requests, batch, role)
    return _users_of(ask, replicas, requests, batch, full * ask.target_load) / ask.target_load if ask.closed else full


def load_within_targets(
    ask: FleetAsk, replicas: Replicas, requests: Requests, batch: FloatOrArray, role: int = WHOLE
) -> Values:
    """The load at the rate of `capacity_within_targets`, and no more than fills a replica.  [1/s] or users

    Parameters
    ----------
    ask
        Targets, how requests come, and how long users think.
    replicas
        Replicas side by side, or one for all requests.
    requests
        Those of each replica.
    batch
        Sequences that each may run at once, as its memory allows.  [count]
    role
        What a replica does of a request: WHOLE, PREFILL or DECODE.
    """
    found = _largest_load(ask, replicas, requests, batch, role)
    return np.fmin(found, full_load(ask, replicas, requests, batch, role)) if ask.closed else found


def _largest_load(ask: FleetAsk, replicas: Replicas, requests: Requests, batch: FloatOrArray, role: int) -> Values:
    if role != WHOLE:
        return capacity_within_targets(ask, replicas, requests, batch, role).requests_per_s

    def asked() -> Values:
        targets = ask.targets(replicas.margins)
        return largest_load(targets=targets, batch_limit=batch, **_open_loop(ask, replicas, requests))

    return replicas.recalled("load", ask, asked, requests, batch)


def _users_of(
    ask: FleetAsk, replicas: Replicas, requests: Requests, batch: FloatOrArray, requests_per_s: FloatOrArray
) -> Values:
    """Users who send so many requests, at the confidence asked for; 0 where there are none."""

    def asked() -> Values:
        sent: dict[str, Any] = {"requests_per_s": requests_per_s, "batch_limit": batch}
        found = users_at(**sent, **_open_loop(ask, replicas, requests))
        return np.where(as_float(requests_per_s) > 0, found, 0.0)

    return replicas.recalled("users", ask, asked, requests, batch, requests_per_s)


def load_of(
    ask: FleetAsk,
    replicas: Replicas,
    requests: Requests,
    load: FloatOrArray,
    batch: FloatOrArray,
    *,
    at_confidence: bool,
    role: int = WHOLE,
) -> OpenLoad:
    """What each replica does at a load: as predicted, or at the confidence asked for (first token apart).

    Parameters
    ----------
    ask
        How requests come, how long users think, and of pools the format of the cache.
    replicas
        Replicas side by side, or one for all requests.
    requests
        Those of each replica.
    load
        Of each replica: requests, or users where the fleet has them.  [1/s] or [count]
    batch
        Sequences that each may run at once, as its memory allows.  [count]
    at_confidence
        Every time of the engine is longer by its margin; what the first token may take beyond that is left out.
    role
        What a replica does of a request: WHOLE, PREFILL or DECODE.
    """

    def asked() -> OpenLoad:
        if role != WHOLE:
            return _pool(ask, replicas, requests, batch, role, load, at_confidence=at_confidence)
        asked_of = _open_loop(ask, replicas, requests, at_confidence=at_confidence)
        return load_at(load=load, batch_limit=batch, **asked_of)

    return replicas.recalled(f"load {role} {at_confidence}", ask, asked, requests, batch, load)


def keeps_targets(
    ask: FleetAsk, replicas: Replicas, requests: Requests, batch: FloatOrArray, load: FloatOrArray
) -> NDArray[np.bool_]:
    """Whether each replica keeps every target at a load at the confidence asked for; see `serving_open.keeps`.

    Parameters
    ----------
    ask
        Targets, how requests come, and how long users think.
    replicas
        Replicas side by side, or one for all requests.
    requests
        Those of each replica.
    batch
        Sequences that each may run at once, as its memory allows.  [count]
    load
        Of each replica: requests, or users where the fleet has them.  [1/s] or [count]
    """

    def asked() -> NDArray[np.bool_]:
        sent: dict[str, Any] = {"load": load, "batch_limit": batch}
        return keeps(targets=ask.targets(replicas.margins), **sent, **_open_loop(ask, replicas, requests))

    return replicas.recalled("keeps", ask, asked, requests, batch, load)


def keeps_targets_idle(ask: FleetAsk, replicas: Replicas, requests: Requests, batch: FloatOrArray) -> NDArray[np.bool_]:
    """Whether each replica keeps every target at any rate at the confidence asked for; see `serving_open`.

    Parameters
    ----------
    ask
        Targets, how requests come, and how long users think.
    replicas
        Replicas side by side, or one for all requests.
    requests
        Those of each replica.
    batch
        Sequences that each may run at once, as its memory allows.  [count]
    """
    targets = ask.targets(replicas.margins)
    return keeps_idle(targets=targets, batch_limit=batch, **_open_loop(ask, replicas, requests))


def idle_latencies_s(ask: FleetAsk, replicas: Replicas, requests: Requests, batch: FloatOrArray) -> dict[str, Values]:
    """Of each target the latency of replicas that hardly anything is sent to, at the confidence asked for.  [s]

    Parameters
    ----------
    ask
        Targets, how requests come, and how long users think.
    replicas
        Replicas side by side, or one for all requests.
    requests
        Those of each replica.
    batch
        Sequences that each may run at once, as its memory allows.  [count]
    """
    load = idle_at(batch_limit=batch, **_open_loop(ask, replicas, requests))
    first = as_float(replicas.margins.first_token)
    return {name: load.latency_s(name) * (first if name.startswith("ttft") else 1.0) for name in ask.targets_s}


def class_latencies_s(
    ask: FleetAsk, replicas: Replicas, requests: Requests, load: FloatOrArray, batch: FloatOrArray
) -> dict[str, Values]:
    """Of each target the latency of each class of a mix at a load, at the confidence asked for: (classes, n).  [s]

    Parameters
    ----------
    ask
        Targets, how requests come, and how long users think.
    replicas
        Replicas side by side, or one for all requests.
    requests
        Those of each replica, with the classes of the mix.
    load
        Of each replica: requests, or users where the fleet has them.  [1/s] or [count]
    batch
        Sequences that each may run at once, as its memory allows.  [count]
    """
    asked: dict[str, Any] = {"names": ask.targets_s, "load": load, "batch_limit": batch}
    found = of_classes(**asked, **_open_loop(ask, replicas, requests))
    first = as_float(replicas.margins.first_token)
    return {name: value * (first if name.startswith("ttft") else 1.0) for name, value in found.items()}


def network_rate_per_s(ask: FleetAsk, replicas: Replicas, requests: Requests) -> Values:
    """Requests whose caches the network of one side carries.  [1/s]

    Parameters
    ----------
    ask
        Format of the cache.
    replicas
        Those of one side; all their devices send at once.
    requests
        Those of each replica; only the mean prompt counts.
    """
    return as_float(transfers_per_s(transfer_time_s(ask, replicas, requests)))


def _pool(
    ask: FleetAsk,
    replicas: Replicas,
    requests: Requests,
    batch: FloatOrArray,
    role: int,
    requests_per_s: FloatOrArray | None,
    *,
    at_confidence: bool,
) -> OpenLoad:
    """A replica of a prefill or a decode pool: at a rate, or at the largest that keeps its targets and its network."""
    slowed = Slowed(replica=replicas.replica, factor=replicas.margins.engine if at_confidence else 1.0)
    shape, variability = request_shape(requests), ask.arrival_variability
    transfer_s = transfer_time_s(ask, replicas, requests)
    targets = ask.targets(replicas.margins)

    def load(rate: FloatOrArray | None) -> OpenLoad:
        if role == DECODE:
            return decode_pool_capacity(
                slowed, shape, targets, batch, kv_transfer_s=transfer_s, arrival_variability=variability,
                requests_per_s=rate,
            )  # fmt: skip
        less = replace(targets, **{f"{name}_s": limit - transfer_s for name, limit in _first_tokens(targets).items()})
        found = prefill_pool_capacity(slowed, shape, less, arrival_variability=variability, requests_per_s=rate)
        return replace(found, ttft_s={key: value + transfer_s for key, value in found.ttft_s.items()})

    if requests_per_s is not None:
        return load(requests_per_s)
    found, most = load(None), network_rate_per_s(ask, replicas, requests)
    rate = np.minimum(found.requests_per_s, most)
    by_network = np.asarray(found.requests_per_s > most)
    return replace(found, requests_per_s=rate, binding=np.where(by_network, "network", found.binding))


def _first_tokens(targets: Targets) -> dict[str, Values]:
    return {name: limit for name, limit in targets.asked.items() if name.startswith("ttft")}
