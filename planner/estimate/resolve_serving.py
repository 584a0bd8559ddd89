"""From a fleet's words and a catalog's facts to the numbers that serving estimates take.

Shared by the search, which asks about every replica, and by the verifier, which asks about one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.catalog.model import Device, Shape
from planner.equations.kv_cache import mean_resident_tokens
from planner.estimate.engines import Fraction, engine_limits
from planner.estimate.machine import Machine
from planner.estimate.serving_constants import ServingConstants
from planner.estimate.serving_formats import ServingPeaks
from planner.estimate.serving_step import Speculation
from planner.estimate.serving_work import ServingWork
from planner.scenario.schema import ServingFleet
from planner.traffic import Traffic
from planner.traffic.model import LoadLevels, load_levels

Values = NDArray[np.float64]
MICRO = 1_000_000
MOST_CLASSES = 6  # of requests, to which replicas of their own may be given
LONGEST_SPREADS = 3.0  # standard deviations above the mean that the longest request is taken to have


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests by bucket, as a replica sees them; arrays (b,).  [tokens], [tokens^2]"""

    input_tokens: Values
    output_tokens: Values
    input_second_moment: Values
    output_second_moment: Values
    cached_tokens: Values  # of a prompt, found in the prefix cache
    resident_tokens: Values  # mean length in the cache, weighted by how long a request stays
    longest_tokens: Values
    classes: Requests | None = None  # of a mix: the buckets that it is made of
    share: Values | None = None  # and how many of the requests are of each: (classes,), or (n, classes)

    def take(self, buckets: NDArray[np.int64]) -> Requests:
        """The requests of some buckets, in any order and as often as named."""
        return Requests(**{name: getattr(self, name)[buckets] for name in self.measures()})

    @classmethod
    def measures(cls) -> tuple[str, ...]:
        """Names of the arrays that there is one element of for each bucket."""
        return tuple(field.name for field in fields(cls) if field.name not in ("classes", "share"))

    def mixed(self, weights: Values) -> Requests:
        """One class of requests that mixes the buckets by their rates.

        Parameters
        ----------
        weights
            Rate of each bucket, (b,); or of several mixes side by side, (n, b).

        Returns
        -------
        Arrays (1,), of the buckets that are asked for; or (n,), of all buckets.
        """
        share = np.atleast_2d(weights / weights.sum(axis=-1, keepdims=True))
        stays = share * self.output_tokens
        mean = {
            name: share @ getattr(self, name)
            for name in self.measures()
            if name not in ("resident_tokens", "longest_tokens")
        }
        served = np.arange(share.shape[1]) if weights.ndim > 1 else np.flatnonzero(share[0] > 0)
        several = len(served) > 1
        return Requests(
            **mean,
            resident_tokens=stays @ self.resident_tokens / stays.sum(axis=1),
            longest_tokens=np.where(share > 0, self.longest_tokens, 0.0).max(axis=1),
            classes=self.take(served) if several else None,
            share=(share if weights.ndim > 1 else share[0, served]) if several else None,
        )


def requests_of(traffic: Traffic, prefix_cached: float = 0.0) -> Requests:
    """The requests of a traffic by bucket; prompt and answer of one bucket are independent."""
    given, made = traffic.input_tokens, traffic.output_tokens
    spread = np.sqrt(
        np.maximum(traffic.input_second_moment - given**2, 0.0)
        + np.maximum(traffic.output_second_moment - made**2, 0.0)
    )
    stays = np.asarray(traffic.output_second_moment / np.where(made > 0, made, 1.0))
    return Requests(
        input_tokens=given,
        output_tokens=made,
        input_second_moment=traffic.input_second_moment,
        output_second_moment=traffic.output_second_moment,
        cached_tokens=given * prefix_cached,
        resident_tokens=np.asarray(mean_resident_tokens(given, stays), dtype=np.float64),
        longest_tokens=given + made + LONGEST_SPREADS * spread,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLimits:
    """What each replica may run at once, all attention ranks together; arrays (n,), or numbers."""

    max_num_seqs: Any
    max_batched_tokens: Any
    memory_fraction: Any
    fraction: Fraction

    def take(self, index: NDArray[np.int64]) -> RowLimits:
        """The limits of these rows."""
        names = ("max_num_seqs", "max_batched_tokens", "memory_fraction")
        return RowLimits(fraction=self.fraction, **{name: _rows(getattr(self, name), index) for name in names})


PLAIN_FRACTION = 0.9  # of the device, where no engine is asked


def row_limits(
    fleet: ServingFleet,
    places: Sequence[tuple[Device, Shape]],
    sizes: Sequence[int],
    ranks: Any = 1.0,
    *,
    by_engine: bool = True,
) -> RowLimits:
    """The engine's limits on each kind of machine, each as often as it has replicas; without one only what is given.

    Where rates are published they are of one user at a time.

    Parameters
    ----------
    fleet
        Its engine, and the limits that it gives.
    places
        Device and shape of each kind of machine.
    sizes
        Replicas on each of them, in the same order; n together.
    ranks
        Attention ranks of each replica, (n,) or a number: some engines count the limits of each by itself.
    by_engine
        What is not given is the default of the engine; False: it is no limit then, and PLAIN_FRACTION of the memory.
    """
    given = fleet.limits
    alone = [bool(device.engine) and fleet.throughput_tokens_per_s_per_device is None for device, _ in places]
    if not by_engine:
        most = float(given.max_num_seqs or math.inf)
        return RowLimits(
            max_num_seqs=np.repeat([1.0 if one else most for one in alone], sizes) if any(alone) else most,
            max_batched_tokens=math.inf,
            memory_fraction=given.memory_fraction or PLAIN_FRACTION,
            fraction="of_device",
        )
    each = [
        engine_limits(
            fleet.engine,
            device,
            shape,
            max_num_seqs=1 if one else given.max_num_seqs,
            max_batched_tokens=given.max_num_batched_tokens,
            memory_fraction=given.memory_fraction,
        )
        for (device, shape), one in zip(places, alone, strict=True)
    ]
    names = ("max_num_seqs", "max_batched_tokens", "memory_fraction")
    columns = {name: np.repeat([float(getattr(one, name)) for one in each], sizes) for name in names}
    if each[0].of_ranks:
        columns["max_batched_tokens"] = columns["max_batched_tokens"] * ranks
        columns["max_num_seqs"] = columns["max_num_seqs"] * np.where(np.repeat(alone, sizes), 1.0, ranks)
    return RowLimits(fraction=each[0].fraction, **columns)


def speculation_of(fleet: ServingFleet) -> Speculation | None:
    """How the fleet drafts tokens, if it does."""
    given = fleet.speculative
    if given is None:
        return None
    work = None if given.draft is None else ServingWork.of(given.draft, fleet.draft_format, fleet.kv_cache)
    return Speculation(length=float(given.length), acceptance=given.acceptance, draft=work)


def bucket_demands(fleet: ServingFleet) -> tuple[int, ...]:
    """Peak of each bucket, rounded up: a rate, or users by what they send.  [micro-requests/s] or [micro-users]"""
    traffic = fleet.traffic
    return tuple(math.ceil(share * traffic.peak_load * MICRO - 1e-6) for share in traffic.share)


def mixes_of(traffic: Traffic, more: Sequence[Sequence[float]] = ()) -> Values:
    """Which part of the requests of each bucket the replicas of each mix serve together, the largest 1: (mixes, b).

    All of them, in the proportions of the traffic; where they are classes that can be told apart and few enough, each
    by itself; and what `more` there is.
    """
    asked = np.asarray(traffic.share) > 0
    alone = np.eye(len(asked))[asked]
    apart = traffic.classes and len(alone) <= MOST_CLASSES and not traffic.users  # who send requests of all classes
    known = [asked[None, :].astype(float), alone if apart else alone[:0]]
    return np.concatenate([*known, np.array(more, dtype=np.float64)] if more else known)


def fleet_levels(fleet: ServingFleet, horizon_s: float) -> LoadLevels | None:
    """Levels of load between which an autoscaled fleet moves; None where all replicas always run."""
    if fleet.autoscaling is None or not fleet.traffic.profile:
        return None
    levels = load_levels(fleet.traffic, fleet.autoscaling.start_up_s, horizon_s)
    return levels if len(levels.hours) > 1 else None


def level_demands(fleet: ServingFleet, levels: LoadLevels | None) -> tuple[tuple[int, ...], ...]:
    """Demand of each bucket at every level, rounded up; nothing without levels.  [micro-requests/s]"""
    if levels is None:
        return ()
    shares = fleet.traffic.share
    below = [tuple(math.ceil(s * rate * MICRO - 1e-6) for s in shares) for rate in levels.load[:-1]]
    return (*below, bucket_demands(fleet))


def repeated_machines(parts: Sequence[Machine], sizes: Sequence[int]) -> Machine:
    """Machines as arrays: each one as often as it has layouts."""
    rates = [field.name for field in fields(Machine) if isinstance(getattr(parts[0], field.name), int | float)]
    columns: dict[str, Any] = {name: np.repeat([float(getattr(part, name)) for part in parts], sizes) for name in rates}
    return Machine(**columns)


def repeated_peaks(parts: Sequence[ServingPeaks], sizes: Sequence[int]) -> ServingPeaks:
    """Peaks as arrays: each set as often as its machine has layouts."""
    names = [field.name for field in fields(ServingPeaks)]
    return ServingPeaks(**{name: np.repeat([float(getattr(part, name)) for part in parts], sizes) for name in names})


_FALL_BACK = {  # a share that is not fitted is that of a more general one
    "cache_bandwidth": "bandwidth",
    "expert_bandwidth": "bandwidth",
    "attention_compute": "compute",
    "expert_compute": "compute",
}


def repeated_constants(parts: Sequence[ServingConstants], sizes: Sequence[int]) -> ServingConstants:
    """Constants as arrays: each set as often as its machine has layouts; what names a set is that of the first."""
    first, columns = parts[0], {}
    for field in fields(ServingConstants):
        values = [_share(part, field.name) for part in parts]
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            columns[field.name] = np.repeat([float(value) for value in values], sizes)
    kept = {field.name: getattr(first, field.name) for field in fields(ServingConstants)}
    return ServingConstants(**{**kept, **columns})


def with_fallbacks(constants: ServingConstants) -> ServingConstants:
    """With shares that are not fitted as those of more general ones."""
    return replace(constants, **{name: _share(constants, name) for name in _FALL_BACK})


def _share(part: ServingConstants, name: str) -> Any:
    value = getattr(part, name)
    return getattr(part, _FALL_BACK[name]) if value is None and name in _FALL_BACK else value


def _rows(value: Any, index: NDArray[np.int64]) -> Any:
    return value[index] if isinstance(value, np.ndarray) and value.ndim else value
