"""One job on groups of several offers, in plain numbers: the groups to choose from, and the best split of a batch.

A *group* is a `Block`, a number of shapes of one `Source` (an offer), run by one of its `Pace`s (a layout). A *mix*
takes a block of each of at least two sources. The global batch is the multiple of the greatest common divisor of the
groups' least shares that is nearest to what was asked, as it is for one offer alone; every group gets a whole number
of its least shares (micro-batches of all its ranks), and the shares sum to the batch. Of all splits of a mix, with all
paces of its groups, the one that takes least time per sequence is meant (a tie: the first in the order of paces).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.candidates.layouts import nearest_multiple
from planner.carriers import dataclass
from planner.equations.mixed import least_group_s, mixed_step_s
from planner.equations.registry import as_float
from planner.equations.rules import critical_batch_token_factor
from planner.estimate.bill import Bill
from planner.estimate.mixed import Between, GroupFacts, synchronisation_s
from planner.estimate.training_spec import RunSpec

ROUNDING = 1e-12  # relative: what a bound may be off by


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long a layout of a block takes for 1, 2, ... times `quantum` sequences."""

    row: int  # in the layouts of the space
    quantum: int  # sequences of the least share: one micro-batch of every data-parallel rank
    first_s: float
    second_s: float
    more_s: float  # every further one
    gradient_bytes: float  # of the whole model on the wire

    def step_s(self, units: int) -> float:
        """Time of a step with so many times the least share.  [s]"""
        return self.first_s if units == 1 else self.second_s + (units - 2) * self.more_s

    def steps_s(self, units: NDArray[np.int64]) -> NDArray[np.float64]:
        """`step_s` of many.  [s]"""
        return np.where(units == 1, self.first_s, self.second_s + (units - 2) * self.more_s)

    @property
    def fixed_s(self) -> float:
        """A time a with step_s(u) >= a + u * more_s for every u.  [s]"""
        return min(self.first_s - self.more_s, self.second_s - 2.0 * self.more_s)

    def best_rate(self, batch: float) -> float:
        """The most sequences per second at any share up to a batch.  [1/s]"""
        most = int(batch // self.quantum)
        if most < 1:
            return 0.0
        tried = {1, min(2, most), most}  # u / (second + (u - 2) more) is monotone in u
        return max(units * self.quantum / self.step_s(units) for units in tried)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A number of shapes of a source, with every layout that may be the best for some share."""

    nodes: int
    devices: int
    hosts: int
    paces: tuple[Pace, ...]
    network_bytes_per_s: float  # of all its devices together


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An offer that groups may be taken of."""

    name: str  # offer id
    machines: str  # provider, region, shape and price model: offers that differ in nothing but their zone share them
    site: int  # index into the sites of the space
    zone: tuple[str, str, str]
    price_microusd_per_hour: int  # of one shape
    carbon_mg_per_hour: float  # of one shape
    time_margin: float
    spot: bool
    network_scale: float
    run: RunSpec | None  # how groups on it fail
    blocks: tuple[Block, ...]  # by number of shapes, ascending
    bill: Bill | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """Which global batches are legal, and what one above the critical size costs."""

    asked: tuple[float, ...]  # [sequences]
    allowed: tuple[float, float]  # [sequences]
    critical: float | None = None  # [sequences]

    def each(self, quantum: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """For each batch that was asked the nearest multiples of some least shares; 0 where none is allowed."""
        for asked in self.asked:
            yield nearest_multiple(np.full(len(quantum), asked), quantum, self.allowed)

    def factor(self, batch: float) -> float:
        """Tokens of a run at a batch over those of a small one; never less at a larger batch."""
        return 1.0 if self.critical is None else float(critical_batch_token_factor(batch, self.critical))

    def factors(self, batch: NDArray[np.int64]) -> NDArray[np.float64] | float:
        """`factor` of many batches."""
        return 1.0 if self.critical is None else np.asarray(critical_batch_token_factor(as_float(batch), self.critical))


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How the groups of a mix share a batch."""

    paces: tuple[Pace, ...]
    units: tuple[int, ...]  # of their least shares
    batch: int  # [sequences]
    compute_s: float  # of the slowest group
    synchronisation_s: float
    s_per_sequence: float  # step time over batch, times the factor of a large batch


def best_split(
    chosen: Sequence[tuple[Source, Block]],
    batches: Batches,
    between: Between | None,
    *,
    within_s_per_sequence: float = math.inf,
) -> Split | None:
    """The fastest split of a batch over blocks; None when there is none, or none as fast as asked.

    For each choice of paces and batch the least time of a batch that can be split at will (EQ-MIX-3) is a bound;
    choices are tried from the lowest bound on, until it is no better than a split that was found.

    Parameters
    ----------
    chosen
        Source and block of each group.
    batches
        Global batches that are legal.
    between
        Network between zones; None: unknown, so that groups in different zones have no split.
    within_s_per_sequence
        Only splits that take no longer for a sequence, the factor of a large batch included.  [s]
    """
    best: Split | None = None
    limit = within_s_per_sequence * (1 + ROUNDING)
    for choice in _choices(chosen, batches, between, limit):
        if choice.bound > (best.s_per_sequence if best else limit):
            break
        found = fewest_seconds(choice.paces, choice.batch)
        if found is None:
            continue
        compute_s, units = found
        value = float(mixed_step_s(compute_s, choice.sync_s)) / choice.batch * batches.factor(choice.batch)
        if value <= limit and (best is None or value < best.s_per_sequence):
            best = Split(
                paces=choice.paces, units=units, batch=choice.batch, compute_s=compute_s,
                synchronisation_s=choice.sync_s, s_per_sequence=value,
            )  # fmt: skip
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """Paces and a batch, with the least that a sequence can take with them."""

    bound: float
    paces: tuple[Pace, ...]
    batch: int
    sync_s: float


def _choices(
    chosen: Sequence[tuple[Source, Block]], batches: Batches, between: Between | None, limit: float
) -> Iterator[_Choice]:
    """Every choice of paces and batch whose bound is within the limit, from the lowest on."""
    every = [block.paces for _, block in chosen]
    index = np.indices([len(paces) for paces in every]).reshape(len(every), -1)

    def of(read: Callable[[Pace], float]) -> list[NDArray[np.float64]]:
        """A figure of each group's pace, for every combination."""
        return [np.array([read(pace) for pace in paces])[at] for paces, at in zip(every, index)]

    rates = of(lambda pace: pace.quantum / pace.more_s)
    done = np.sum([r * a for r, a in zip(rates, of(lambda pace: pace.fixed_s))], axis=0)
    first, sent = np.max(of(lambda pace: pace.first_s), axis=0), np.max(of(lambda pace: pace.gradient_bytes), axis=0)
    quantum = np.gcd.reduce([steps.astype(np.int64) for steps in of(lambda pace: pace.quantum)])
    sync_of = {size: synchronisation_s(facts_of(chosen, size), between) for size in np.unique(sent).tolist()}
    sync = np.array([sync_of[size] for size in sent.tolist()])
    found: list[tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]] = []
    for batch in batches.each(quantum):
        whole = np.maximum(batch, 1)
        least = np.maximum(least_group_s(whole, done, np.sum(rates, axis=0)), first) * (1 - ROUNDING)
        bound = np.asarray(mixed_step_s(least, sync)) / whole * batches.factors(whole)
        kept = np.flatnonzero((batch > 0) & (bound <= limit) & np.isfinite(bound))
        found.append((bound[kept], batch[kept], kept))
    joined, batch, number = (np.concatenate([part[k] for part in found]) for k in range(3))
    for k in np.lexsort((batch, number, joined)).tolist():
        at = index[:, number[k]].tolist()
        paces = tuple(own[place] for own, place in zip(every, at))
        yield _Choice(bound=float(joined[k]), paces=paces, batch=int(batch[k]), sync_s=float(sync[number[k]]))


def facts_of(chosen: Sequence[tuple[Source, Block]], message_bytes: float = 0.0) -> list[GroupFacts]:
    """What the groups have to know of each other to reduce gradients of some size."""
    return [
        GroupFacts(
            devices=block.devices,
            hosts=block.hosts,
            shapes=block.nodes,
            spot=source.spot,
            zone=source.zone,
            network_bytes_per_s=block.network_bytes_per_s,
            network_scale=source.network_scale,
            gradient_bytes=message_bytes,
            run=source.run,
        )
        for source, block in chosen
    ]


def fewest_seconds(paces: Sequence[Pace], batch: int) -> tuple[float, tuple[int, ...]] | None:
    """Whole least shares that sum to a batch, with the least time of the slowest group; None when none do.

    Exact: the answer is one of the times that some group takes for some share. With two groups all are tried; with
    more, the times are searched by halving, and the sums that shares within a time can reach are bits of an integer.
    """
    quantum = math.gcd(*(pace.quantum for pace in paces))
    if batch % quantum:
        return None
    total, weights = batch // quantum, [pace.quantum // quantum for pace in paces]
    if sum(weights) > total:
        return None
    return _two(paces, weights, total) if len(paces) == 2 else _many(paces, weights, total)


def _two(paces: Sequence[Pace], weights: Sequence[int], total: int) -> tuple[float, tuple[int, ...]] | None:
    one = np.arange(1, (total - weights[1]) // weights[0] + 1, dtype=np.int64)
    rest = total - one * weights[0]
    one, rest = one[rest % weights[1] == 0], rest[rest % weights[1] == 0]
    if not len(one):
        return None
    other = rest // weights[1]
    slowest = np.maximum(paces[0].steps_s(one), paces[1].steps_s(other))
    place = int(np.argmin(slowest))
    return float(slowest[place]), (int(one[place]), int(other[place]))


def _many(paces: Sequence[Pace], weights: Sequence[int], total: int) -> tuple[float, tuple[int, ...]] | None:
    most = [(total - sum(weights) + weight) // weight for weight in weights]
    times = [pace.steps_s(np.arange(1, count + 1, dtype=np.int64)) for pace, count in zip(paces, most)]
    limits = np.unique(np.concatenate(times))
    low, high = 0, len(limits)  # the least index whose time is enough
    while low < high:
        middle = (low + high) // 2
        if _reaches(weights, _within(times, float(limits[middle])), total)[-1] >> total & 1:
            high = middle
        else:
            low = middle + 1
    if low == len(limits):
        return None
    counts = _within(times, float(limits[low]))
    reached = _reaches(weights, counts, total)
    units: list[int] = []
    for group in range(len(weights) - 1, -1, -1):  # the most that the last one can do, then the one before
        before = reached[group]
        fits = (u for u in range(counts[group], 0, -1) if total >= u * weights[group])
        units.append(next(u for u in fits if before >> (total - u * weights[group]) & 1))
        total -= units[-1] * weights[group]
    return float(limits[low]), tuple(reversed(units))


def _within(times: Sequence[NDArray[np.float64]], limit_s: float) -> list[int]:
    """How many least shares each group gets through in a time; they take longer the more they are."""
    return [int(np.searchsorted(own, limit_s, side="right")) for own in times]


def _reaches(weights: Sequence[int], counts: Sequence[int], total: int) -> list[int]:
    """Sums that the first 0, 1, 2, ... groups can make with 1 to `counts` times their weights, as bits."""
    mask, reached = (1 << (total + 1)) - 1, [1]
    for weight, count in zip(weights, counts):
        sums, more = (reached[-1] << weight) & mask if count else 0, count - 1
        step = 1
        while more > 0:  # one, two, four, ... more of them
            take = min(step, more)
            sums |= (sums << (take * weight)) & mask
            more, step = more - take, step * 2
        reached.append(sums)
    return reached
