"""Which mixes are worth having at some prices of the joint limits: exact, without a solver.

A mix x takes a block of each of at least two sources. With W its weighed prices per hour, s its best speed, L the
sequences of the whole run and P what its shapes are charged by the joint limits,

    V(x) = hours(x) W(x) + traffic(x) + P(x),    hours(x) >= h(x) = L g(x) (1 / s(x) + sync(x) / B) / 3600,

since the groups get through a batch B in B / s at best (s sums the best speed of each block at any share of the
batch), reduce gradients in sync(x) at least, and lose g(x) >= 1 to waiting for each other and to size; failures and
checkpoints only add to it. So v(x) = h W + traffic + P <= V(x) is a bound: without limits a ratio of two sums.

**The least v** is found by Dinkelbach's iterations [1]: for a guess t the mix with the least (v(x) - t) s(x) is looked
for; if that is below 0, the v of this mix is the next guess, else t is the least v. Each guess is the v of a mix,
guesses fall strictly, mixes are finitely many: the iterations end, at the minimum.

**The inner problem** is a walk over the sources in their order, a block of each or none, all blocks of a source at
once as arrays. What is still to come is bounded source by source: with W', P', s', g' of what is taken so far,
(v - t) s of any completion is at least

    L/3600 g' W' + (P' - t) s' + sum over the sources left of min(0, min over blocks of L/3600 g' w + (P' - t) s + p s')

because g grows with devices and hosts, sync and traffic are not negative, and neither are the cross products p s of
two blocks that are left out. A completion below 0 is a mix with v < t, so that a walk which keeps what can be at most 0
meets every mix with v <= t: the same walk lists them all.

**The least V** then is exact: mixes with v <= the least V found so far are evaluated from the lowest v on with whole
micro-batches, failures and money rounded as it is paid, until v passes the least V.

References
----------
[1] W. Dinkelbach, "On Nonlinear Fractional Programming," Management Science 13 (7), 1967.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.mixed import Batches, Block, Source, Split, best_split, facts_of
from planner.candidates.money import DEAREST_MICROUSD, cost_microusd
from planner.candidates.program import FloatArray, IntArray
from planner.equations.mixed import groups_all_reduce_s
from planner.equations.registry import as_float
from planner.equations.scale import scale_loss_factor, straggler_factor
from planner.estimate.mixed import Between, joined_run, one_zone, traffic_usd_per_step, within_one_zone
from planner.estimate.run import run_overheads

MOST_MIXES = 20_000  # that one walk keeps; beyond it those with the least v
ROUNDING = 1e-9  # relative: what a bound may be off by

Choice = tuple[tuple[int, int], ...]  # (source, block) of each group, by source


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedJob:
    """What may be mixed for one job, and what every mix must keep to."""

    sources: tuple[Source, ...]  # by offer id
    batches: Batches
    between: Between | None
    sequences: float  # that are left to train
    deadline_s: float
    checkpoint_bytes: float
    usage: IntArray  # (limits, sources) what one shape takes of each limit at the peak
    bounds: IntArray  # (limits,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What things weigh: V = cost * micro-USD + carbon * mg + sum over shapes of `node`."""

    cost: float
    carbon: float
    node: FloatArray  # (sources,) of one shape, >= 0

    @classmethod
    def of_cost(cls, job: MixedJob) -> Prices:
        """Money alone."""
        return cls(cost=1.0, carbon=0.0, node=np.zeros(len(job.sources)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """A mix evaluated: how it shares the batch, how long it takes, what it costs."""

    choice: Choice
    split: Split
    busy_s: float  # of all optimizer steps
    wall_s: float
    cost_microusd: tuple[int, ...]  # of each group, its traffic included
    traffic_microusd: tuple[int, ...]  # of each group
    carbon_mg: int

    def value(self, job: MixedJob, prices: Prices) -> float:
        """V at some prices."""
        charged = sum(prices.node[s] * job.sources[s].blocks[b].nodes for s, b in self.choice)
        return prices.cost * sum(self.cost_microusd) + prices.carbon * self.carbon_mg + float(charged)


def evaluate(job: MixedJob, choice: Choice, *, within_s: float = math.inf) -> Mix | None:
    """A mix as it is paid for; None when it cannot share the batch, or is late, or takes longer than `within_s`."""
    chosen = [(job.sources[s], job.sources[s].blocks[b]) for s, b in choice]
    margin = max(source.time_margin for source, _ in chosen)
    longest = min(within_s, job.deadline_s / margin)
    split = best_split(chosen, job.batches, job.between, within_s_per_sequence=longest / job.sequences)
    if split is None:
        return None
    busy_s = job.sequences * split.s_per_sequence
    facts = facts_of(chosen, max(pace.gradient_bytes for pace in split.paces))
    wall_s = wall_time_s(job, busy_s, chosen)
    if not wall_s * margin <= job.deadline_s:
        return None
    steps = job.sequences / split.batch * job.batches.factor(split.batch)
    hours = wall_s / 3600.0
    traffic = tuple(round(usd * steps * 1e6) for usd in traffic_usd_per_step(facts, job.between))
    dollars = sum(block.nodes * source.price_microusd_per_hour for source, block in chosen) * hours
    if dollars + sum(traffic) > DEAREST_MICROUSD:
        return None
    rents = [cost_microusd(block.nodes, source.price_microusd_per_hour, hours) for source, block in chosen]
    carbon = sum(block.nodes * source.carbon_mg_per_hour for source, block in chosen) * hours
    return Mix(
        choice=choice,
        split=split,
        busy_s=busy_s,
        wall_s=wall_s,
        cost_microusd=tuple(rent + sent for rent, sent in zip(rents, traffic)),
        traffic_microusd=traffic,
        carbon_mg=round(carbon),
    )


def wall_time_s(job: MixedJob, busy_s: float, chosen: Sequence[tuple[Source, Block]]) -> float:
    """Wall time of a run on some groups: failures, checkpoints and what size costs included.  [s]"""
    run = joined_run(facts_of(chosen))
    if run is None:
        return busy_s
    devices = sum(block.devices for _, block in chosen)
    return busy_s + float(run_overheads(busy_s, devices, job.checkpoint_bytes, run).total)


def cheapest(job: MixedJob, prices: Prices, cutoff: float) -> tuple[Mix | None, float]:
    """The mix with the least V below a cutoff, and a bound: no mix has a V below it."""
    start = least_bound(job, prices, cutoff)
    if start is None:
        return None, cutoff
    best = evaluate(job, start)
    value = min(cutoff, best.value(job, prices) if best else math.inf)
    best = best if best and best.value(job, prices) < cutoff else None
    found, complete = listed(job, prices, value)
    for bound, choice in found:
        if bound > value * (1 + ROUNDING):
            return best, value
        mix = evaluate(job, choice)
        if mix is not None and mix.value(job, prices) < value:
            best, value = mix, mix.value(job, prices)
    return best, min(value, complete)


def least_bound(job: MixedJob, prices: Prices, cutoff: float) -> Choice | None:
    """The mix with the least bound v, by Dinkelbach's iterations; None when none has a v below the cutoff."""
    guess, best = cutoff, None
    while True:
        walk = _Walk(job=job, prices=prices, guess=guess, least=True)
        walk.run()
        if not walk.found or walk.found[0][0] >= guess:
            return best
        guess, best = walk.found[0]


def listed(
    job: MixedJob, prices: Prices, cutoff: float, most: int = MOST_MIXES
) -> tuple[list[tuple[float, Choice]], float]:
    """Every mix with a bound v up to a cutoff, by v; and the v up to which that is complete."""
    walk = _Walk(job=job, prices=prices, guess=cutoff, least=False, most=most)
    walk.run()
    return sorted(walk.found), walk.guess


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blocks:
    """The blocks of all sources under each other, those of a source together."""

    first: IntArray  # (sources + 1,) where each source's blocks begin
    hourly: FloatArray  # weighed price of an hour
    charge: FloatArray  # of the joint limits
    rate: FloatArray  # best speed  [1/s]
    nodes: IntArray
    devices: IntArray
    hosts: IntArray
    network: FloatArray

    @classmethod
    def of(cls, job: MixedJob, prices: Prices) -> _Blocks:
        every = [(i, source, block) for i, source in enumerate(job.sources) for block in source.blocks]
        nodes = np.array([block.nodes for _, _, block in every], dtype=np.int64)
        each = [prices.cost * s.price_microusd_per_hour + prices.carbon * s.carbon_mg_per_hour for _, s, _ in every]
        most = job.batches.allowed[1]
        return cls(
            first=np.cumsum([0, *(len(source.blocks) for source in job.sources)]),
            hourly=nodes * np.array(each),
            charge=nodes * np.array([prices.node[i] for i, _, _ in every]),
            rate=np.array([max(pace.best_rate(most) for pace in block.paces) for _, _, block in every]),
            nodes=nodes,
            devices=np.array([block.devices for _, _, block in every], dtype=np.int64),
            hosts=np.array([block.hosts for _, _, block in every], dtype=np.int64),
            network=np.array([block.network_bytes_per_s for _, _, block in every]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """Sums over the blocks taken so far: numbers, or one entry for each block that may come next."""

    choice: Choice = ()
    zones: tuple[tuple[str, str, str], ...] = ()
    margin: float = 1.0
    hourly: FloatArray = field(default_factory=lambda: np.zeros(1))
    charge: FloatArray = field(default_factory=lambda: np.zeros(1))
    rate: FloatArray = field(default_factory=lambda: np.zeros(1))
    nodes: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    devices: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    hosts: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    network: FloatArray = field(default_factory=lambda: np.full(1, np.inf))
    abroad: FloatArray = field(default_factory=lambda: np.full(1, np.inf))  # rate to other zones
    usage: IntArray = field(default_factory=lambda: np.zeros((1, 0), dtype=np.int64))  # (entries, limits)

    def select(self, which: IntArray) -> _Taken:
        names = ("hourly", "charge", "rate", "nodes", "devices", "hosts", "network", "abroad", "usage")
        return _Taken(
            choice=self.choice, zones=self.zones, margin=self.margin, **{n: getattr(self, n)[which] for n in names}
        )


@dataclass(slots=True, kw_only=True)
class _Walk:
    """One walk over all mixes; `found` holds (v, choice)."""

    job: MixedJob
    prices: Prices
    guess: float  # v up to which mixes are looked for
    least: bool  # keep only the one with the least (v - guess) * speed
    most: int = MOST_MIXES
    found: list[tuple[float, Choice]] = field(default_factory=list)
    blocks: _Blocks = field(init=False)
    per_hour: float = field(init=False)  # hours that one sequence per second takes for the run
    slack: float = 0.0  # the least (v - guess) * speed found so far
    loss: float = field(init=False)
    sigma: float = field(init=False)
    message: float = field(init=False)

    def __post_init__(self) -> None:
        sources = self.job.sources
        runs = [source.run for source in sources]
        self.blocks = _Blocks.of(self.job, self.prices)
        self.per_hour = self.job.sequences / 3600.0
        self.loss = min((run.loss_per_doubling if run else 0.0 for run in runs), default=0.0)
        self.sigma = min((run.straggler_sigma if run else 0.0 for run in runs), default=0.0)
        every = [pace.gradient_bytes for source in sources for block in source.blocks for pace in block.paces]
        self.message = min(every, default=0.0)

    def run(self) -> None:
        """Look at every mix that may be good enough."""
        nothing = _Taken(usage=np.zeros((1, len(self.job.bounds)), dtype=np.int64))
        self._extend(nothing, tuple(range(len(self.job.sources))))

    def _extend(self, taken: _Taken, left: tuple[int, ...]) -> None:
        for place, number in enumerate(left):
            if self.least and self.found and math.isinf(self.guess):
                return  # any mix is a first guess
            source = self.job.sources[number]
            rest = left[place + 1 :]
            if self.job.between is None:
                rest = tuple(other for other in rest if one_zone(source.zone, self.job.sources[other].zone))
            entries, more = self._with(taken, number)
            if len(more.choice) >= 1 and len(entries):
                self._note(more, number, entries)
            if not rest or not len(entries):
                continue
            for index in np.flatnonzero(self._may_lead(more, rest)):
                chosen = (*taken.choice, (number, int(entries[index])))
                one = more.select(np.array([index]))
                self._extend(replace(one, choice=chosen), rest)

    def _with(self, taken: _Taken, number: int) -> tuple[IntArray, _Taken]:
        """One more group of a source: the places of its blocks that no limit forbids, and the sums with them."""
        blocks, source = self.blocks, self.job.sources[number]
        part = slice(int(blocks.first[number]), int(blocks.first[number + 1]))
        usage = taken.usage + blocks.nodes[part, None] * self.job.usage[None, :, number]
        kept = np.flatnonzero((usage <= self.job.bounds[None, :]).all(axis=1))
        between, network = self.job.between, blocks.network[part][kept]
        abroad = np.minimum(network, blocks.nodes[part][kept] * between.bytes_per_s_per_shape) if between else network
        return kept, _Taken(
            choice=taken.choice,
            zones=(*taken.zones, source.zone),
            margin=max(taken.margin, source.time_margin),
            hourly=taken.hourly + blocks.hourly[part][kept],
            charge=taken.charge + blocks.charge[part][kept],
            rate=taken.rate + blocks.rate[part][kept],
            nodes=taken.nodes + blocks.nodes[part][kept],
            devices=taken.devices + blocks.devices[part][kept],
            hosts=taken.hosts + blocks.hosts[part][kept],
            network=np.minimum(taken.network, network),
            abroad=np.minimum(taken.abroad, abroad),
            usage=usage[kept],
        )

    def _note(self, mixes: _Taken, number: int, entries: IntArray) -> None:
        """Keep the mixes with a bound that is low enough."""
        if not mixes.choice:
            return
        hours, traffic = self._least_hours(mixes), self._least_traffic(mixes)
        bound = hours * mixes.hourly + traffic + mixes.charge
        on_time = hours * mixes.margin <= self.job.deadline_s / 3600.0 * (1 + ROUNDING)
        kept = np.flatnonzero(on_time & (bound <= self.guess * (1 + ROUNDING)) & (mixes.rate > 0))
        if self.least:
            self._keep_least(mixes, number, entries, kept, bound)
            return
        self.found += [(float(bound[k]), (*mixes.choice, (number, int(entries[k])))) for k in kept]
        if len(self.found) > 2 * self.most:
            self._shorten()

    def _keep_least(self, mixes: _Taken, number: int, entries: IntArray, kept: IntArray, bound: FloatArray) -> None:
        if not len(kept):
            return
        slack = (bound[kept] - self.guess) * mixes.rate[kept]
        k = int(np.argmin(slack))
        if float(slack[k]) < self.slack:
            self.slack = float(slack[k])
            self.found = [(float(bound[kept[k]]), (*mixes.choice, (number, int(entries[kept[k]]))))]

    def _shorten(self) -> None:
        """Keep the lowest bounds; the walk is complete up to the highest of them, and looks no further."""
        self.found = sorted(self.found)[: self.most]
        self.guess = self.found[-1][0]

    def _size_factor(self, mixes: _Taken) -> FloatArray:
        size = scale_loss_factor(self.loss, as_float(mixes.hosts))
        return np.asarray(size * straggler_factor(self.sigma, as_float(mixes.devices)))

    def _least_hours(self, mixes: _Taken) -> FloatArray:
        near = within_one_zone(mixes.zones)
        slowest = mixes.network if near else mixes.abroad
        sync_s = np.asarray(groups_all_reduce_s(self.message, len(mixes.zones), slowest))
        sync_s = np.where(np.isnan(sync_s), np.inf, sync_s)
        per_sequence = 1.0 / np.maximum(mixes.rate, 1e-300) + sync_s / self.job.batches.allowed[1]
        return np.asarray(self.per_hour * self._size_factor(mixes) * per_sequence)

    def _least_traffic(self, mixes: _Taken) -> float:
        between = self.job.between
        if between is None or within_one_zone(mixes.zones):
            return 0.0
        sent = 2.0 * (len(mixes.zones) - 1.0) * self.message * between.usd_per_byte
        return self.prices.cost * 1e6 * sent * self.job.sequences / self.job.batches.allowed[1]

    def _may_lead(self, taken: _Taken, rest: tuple[int, ...]) -> NDArray[np.bool_]:
        """Whether more groups of the sources left can make a mix that is good enough, block by block."""
        blocks = self.blocks
        places = np.concatenate([np.arange(blocks.first[i], blocks.first[i + 1]) for i in rest])
        starts = np.cumsum([0, *(int(blocks.first[i + 1] - blocks.first[i]) for i in rest)])[:-1]
        factor = self.per_hour * self._size_factor(taken)
        fastest = np.maximum.reduceat(blocks.rate[places], starts).sum()
        needed = taken.margin * factor / (self.job.deadline_s / 3600.0)
        in_time = taken.rate + fastest >= needed * (1 - ROUNDING)
        if math.isinf(self.guess):
            return np.asarray(in_time)
        owed = taken.charge - self.guess
        gain = (
            factor[:, None] * blocks.hourly[None, places]
            + owed[:, None] * blocks.rate[None, places]
            + taken.rate[:, None] * blocks.charge[None, places]
        )
        best = np.minimum(np.minimum.reduceat(gain, starts, axis=1), 0.0).sum(axis=1)
        least = factor * taken.hourly + owed * taken.rate + best
        room = ROUNDING * (factor * taken.hourly + self.guess * (taken.rate + fastest))
        enough = least <= room if not self.least else least < self.slack + room
        return np.asarray(enough & in_time)
