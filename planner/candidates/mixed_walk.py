"""Every mix whose bound is low enough: a walk over the offers with all numbers of shapes at once.

The bound v of a mix is that of `mixed_search`: hours at the best speeds, with what size and failures cost at least,
times the weighed prices, plus traffic and what the joint limits charge. Of the groups taken so far let W', s', P' be
the sums of weighed prices per hour, best speeds and charges, g' L/3600 =: f' the hours at one sequence per second with
what their number of devices costs, y' the least reduction of one group more over the batch, T' its traffic. For any
completion with W, s, P over all its groups

    (v - t) s  =  f W (1 + y s) + (T + P - t) s
               >= f' W' (1 + y' s') + (T' + P' - t) s' + sum over the groups added of
                  f' w (1 + y' s') + (T' + P' - t) u + f' y' W' u + p s'

with w, u, p of an added group: f, y and T grow with every group, and the products left out are of numbers >= 0. The sum
is at least that of the least term below 0 of each source that is left. If the whole is above 0, no completion has
v <= t, and the walk turns back.
"""

from __future__ import annotations

import math
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.mixed import Batches, Source
from planner.candidates.program import FloatArray, IntArray
from planner.carriers import dataclass
from planner.equations.mixed import group_traffic_bytes, groups_all_reduce_s
from planner.equations.registry import as_float
from planner.estimate.mixed import Between, one_zone, within_one_zone
from planner.estimate.run import run_figures

MOST_GROUPS = 4  # of one mix: every further one adds its part to each reduction
MOST_MIXES = 20_000  # that one walk keeps; beyond it those with the least v
MOST_STEPS = 60_000  # of one walk; beyond it the bound of any mix is that of its best block
ROUNDING = 1e-9  # relative: what a bound may be off by
SIZES = 200  # numbers of devices for which the least cost of size is worked out

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
    one_provider: bool = False  # providers are counted, and a column has one


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
class _Blocks:
    """The blocks of all sources under each other, those of a source together."""

    first: IntArray  # (sources + 1,) where each source's blocks begin
    hourly: FloatArray  # weighed price of an hour
    charge: FloatArray  # of the joint limits
    rate: FloatArray  # best speed  [1/s]
    nodes: IntArray
    devices: IntArray
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
            network=np.array([block.network_bytes_per_s for _, _, block in every]),
        )

    def of_source(self, number: int) -> slice:
        return slice(int(self.first[number]), int(self.first[number + 1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """What size and failures cost a run of at least so many devices, at the least; non-decreasing."""

    devices: FloatArray
    factor: FloatArray

    @classmethod
    def of(cls, job: MixedJob) -> _Sizes:
        """On every host that so many devices may have, with the rarest failures of any source."""
        runs = [source.run for source in job.sources]
        known = [run for run in runs if run is not None]
        blocks = [block for source in job.sources for block in source.blocks]
        per_host = [block.devices / block.hosts for block in blocks]
        most = sum(max(block.devices for block in source.blocks) for source in job.sources)
        grid = np.unique(np.floor(np.geomspace(1, max(most, 1) + 1, SIZES)))
        if len(known) < len(runs) or not known:
            return cls(devices=grid, factor=np.ones(len(grid)))
        rarest = replace(
            known[0],
            mtbf_per_device_s=max(run.mtbf_per_device_s for run in known),
            devices_per_host=max(per_host),
            straggler_sigma=min(run.straggler_sigma for run in known),
            scale_loss=min(run.scale_loss for run in known),
            preemptions_per_s=0.0,
        )
        more = np.append(grid[1:], grid[-1] + 1)  # the next size writes faster, this one fails less
        written = job.checkpoint_bytes * grid / more * min(per_host) / max(per_host)
        figures = run_figures(job.deadline_s, grid, written, rarest)
        factor = figures.wall_s / job.deadline_s
        return cls(devices=grid, factor=np.minimum.accumulate(factor[::-1])[::-1] * (1 - ROUNDING))

    def at(self, devices: IntArray) -> FloatArray:
        """The factor on the time of the steps of a run on so many devices or more."""
        return self.factor[np.maximum(np.searchsorted(self.devices, as_float(devices), side="right") - 1, 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """Sums over the blocks taken so far: one entry for each block that may be the last of them."""

    choice: Choice = ()  # without the last
    zones: tuple[tuple[str, str, str], ...] = ()
    margin: float = 1.0
    hourly: FloatArray = field(default_factory=lambda: np.zeros(1))
    charge: FloatArray = field(default_factory=lambda: np.zeros(1))
    rate: FloatArray = field(default_factory=lambda: np.zeros(1))
    devices: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    network: FloatArray = field(default_factory=lambda: np.full(1, np.inf))
    abroad: FloatArray = field(default_factory=lambda: np.full(1, np.inf))  # rate to other zones
    usage: IntArray = field(default_factory=lambda: np.zeros((1, 0), dtype=np.int64))  # (entries, limits)

    def one(self, index: int, choice: Choice) -> _Taken:
        """One of the entries."""
        names = ("hourly", "charge", "rate", "devices", "network", "abroad", "usage")
        return replace(self, choice=choice, **{name: getattr(self, name)[index : index + 1] for name in names})


@dataclass(slots=True, kw_only=True)
class Walk:
    """One walk over all mixes; `found` holds (v, choice), `complete` the v up to which it holds all."""

    job: MixedJob
    prices: Prices
    guess: float  # v up to which mixes are looked for
    least: bool  # a mix with a lower v is the next guess; else all of them are kept
    most: int = MOST_MIXES
    groups: int = MOST_GROUPS  # of one mix
    found: list[tuple[float, Choice]] = field(default_factory=list)
    complete: float = field(init=False)
    steps: int = 0
    blocks: _Blocks = field(init=False)
    sizes: _Sizes = field(init=False)
    per_hour: float = field(init=False)  # hours that one sequence per second takes for the run
    message: float = field(init=False)  # least gradients on the wire  [B]

    def __post_init__(self) -> None:
        """Put the blocks under each other."""
        self.blocks, self.sizes = _Blocks.of(self.job, self.prices), _Sizes.of(self.job)
        least = self.job.batches.factor(self.job.batches.allowed[0]) * (1 - ROUNDING)
        self.per_hour, self.complete = self.job.sequences * least / 3600.0, self.guess
        every = [pace.gradient_bytes for source in self.job.sources for block in source.blocks for pace in block.paces]
        self.message = min(every, default=0.0)

    def run(self) -> None:
        """Look at every mix that may be good enough, from the sources with the best ratio on."""
        nothing = _Taken(usage=np.zeros((1, len(self.job.bounds)), dtype=np.int64))
        ratio = self.blocks.hourly / np.maximum(self.blocks.rate, 1e-300)
        best = [float(ratio[self.blocks.of_source(i)].min()) for i in range(len(self.job.sources))]
        self._extend(nothing, tuple(sorted(range(len(best)), key=lambda i: (best[i], i))))
        if self.steps > MOST_STEPS and best:
            floor = self.per_hour * float(self.sizes.factor[0]) * min(best)
            self.complete = min(self.complete, floor)
        elif not self.least:
            self.complete = self.guess

    def _extend(self, taken: _Taken, left: tuple[int, ...]) -> None:
        for place, number in enumerate(left):
            self.steps += 1
            if self.steps > MOST_STEPS:
                return
            rest = tuple(other for other in left[place + 1 :] if self._go_together(number, other))
            entries, more = self._with(taken, number)
            if not len(entries):
                continue
            if len(more.zones) > 1:
                self._note(more, number, entries)
            if not rest or len(more.zones) == self.groups:
                continue
            for index in np.flatnonzero(self._may_lead(more, rest))[::-1].tolist():  # the fastest first
                self._extend(more.one(index, (*taken.choice, (number, int(entries[index])))), rest)

    def _go_together(self, number: int, other: int) -> bool:
        """Whether two offers may be in one mix: a known network, and not the same machines under two names."""
        one, two = self.job.sources[number], self.job.sources[other]
        near = one_zone(one.zone, two.zone)
        if self.job.one_provider and one.zone[0] != two.zone[0]:
            return False
        return (near or self.job.between is not None) and not (near and one.machines == two.machines)

    def _with(self, taken: _Taken, number: int) -> tuple[IntArray, _Taken]:
        """One more group of a source: the places of its blocks that no limit forbids, and the sums with them."""
        blocks, source, part = self.blocks, self.job.sources[number], self.blocks.of_source(number)
        usage = taken.usage + blocks.nodes[part, None] * self.job.usage[None, :, number]
        kept = np.flatnonzero((usage <= self.job.bounds[None, :]).all(axis=1) & (blocks.rate[part] > 0))
        between, network = self.job.between, blocks.network[part][kept]
        abroad = np.minimum(network, blocks.nodes[part][kept] * between.bytes_per_s_per_shape) if between else network
        return kept, _Taken(
            choice=taken.choice,
            zones=(*taken.zones, source.zone),
            margin=max(taken.margin, source.time_margin),
            hourly=taken.hourly + blocks.hourly[part][kept],
            charge=taken.charge + blocks.charge[part][kept],
            rate=taken.rate + blocks.rate[part][kept],
            devices=taken.devices + blocks.devices[part][kept],
            network=np.minimum(taken.network, network),
            abroad=np.minimum(taken.abroad, abroad),
            usage=usage[kept],
        )

    def _note(self, mixes: _Taken, number: int, entries: IntArray) -> None:
        """Keep the mixes with a bound that is low enough."""
        sync, traffic = self._exchange(mixes, len(mixes.zones), within_one_zone(mixes.zones))
        hours = self.per_hour * self.sizes.at(mixes.devices) * (1.0 / mixes.rate + sync)
        bound = hours * mixes.hourly + traffic + mixes.charge
        on_time = hours * mixes.margin <= self.job.deadline_s / 3600.0 * (1 + ROUNDING)
        kept = np.flatnonzero(on_time & (bound < self.guess if self.least else bound <= self.guess * (1 + ROUNDING)))
        if self.least and len(kept):
            kept = kept[[int(np.argmin(bound[kept]))]]
            self.guess, self.found = float(bound[kept[0]]), []
        self.found += [
            (float(bound[k]), tuple(sorted((*mixes.choice, (number, int(entries[k])))))) for k in kept.tolist()
        ]
        if len(self.found) > 2 * self.most:  # keep the lowest; the walk is complete up to the highest of them
            self.found = sorted(self.found)[: self.most]
            self.guess = self.found[-1][0]

    def _exchange(self, mixes: _Taken, groups: int, near: bool) -> tuple[FloatArray, float]:
        """Reduction among groups over the batch [s], and the weighed traffic of the run, both at the least."""
        between, batch = self.job.between, self.job.batches.allowed[1]
        slowest = mixes.network if near else mixes.abroad
        latency = 0.0 if near or between is None else between.latency_s
        sync_s = np.asarray(groups_all_reduce_s(self.message, groups, slowest, latency))
        sync = np.where(np.isnan(sync_s), np.inf, sync_s) / batch
        if near or between is None:
            return sync, 0.0
        usd = groups * float(group_traffic_bytes(self.message, groups)) * between.usd_per_byte
        return sync, self.prices.cost * 1e6 * usd * self.job.sequences / batch * (1 - ROUNDING)

    def _may_lead(self, taken: _Taken, rest: tuple[int, ...]) -> NDArray[np.bool_]:
        """Whether more groups of the sources left can make a mix that is good enough, entry by entry."""
        blocks = self.blocks
        places = np.concatenate([np.arange(blocks.first[i], blocks.first[i + 1]) for i in rest])
        starts = np.cumsum([0, *(int(blocks.first[i + 1] - blocks.first[i]) for i in rest)])[:-1]
        per_hour = self.per_hour * self.sizes.at(taken.devices)
        most = self.groups - len(taken.zones)
        fastest = np.sort(np.maximum.reduceat(blocks.rate[places], starts))[::-1][:most].sum()
        needed = taken.margin * per_hour / (self.job.deadline_s / 3600.0)
        in_time = taken.rate + fastest >= needed * (1 - ROUNDING)
        if math.isinf(self.guess):
            return np.asarray(in_time)
        near = within_one_zone(taken.zones) and any(
            within_one_zone((*taken.zones, self.job.sources[other].zone)) for other in rest
        )
        sync, traffic = self._exchange(taken, len(taken.zones) + 1, near)
        owed = taken.charge + traffic - self.guess
        slower = per_hour * (1.0 + sync * taken.rate)
        paid = per_hour * sync * taken.hourly
        gain = (
            slower[:, None] * blocks.hourly[None, places]
            + (owed + paid)[:, None] * blocks.rate[None, places]
            + taken.rate[:, None] * blocks.charge[None, places]
        )
        gain = np.minimum(np.minimum.reduceat(gain, starts, axis=1), 0.0)
        if gain.shape[1] > most:
            gain = np.partition(gain, most - 1, axis=1)[:, :most]
        least = slower * taken.hourly + owed * taken.rate + gain.sum(axis=1)
        room = ROUNDING * (slower * taken.hourly + self.guess * (taken.rate + fastest))
        return np.asarray((least <= room) & in_time & np.isfinite(sync))
