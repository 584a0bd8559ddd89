"""Mixes inside one job against plain enumeration: every set of blocks, every layout, every split of the batch."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from planner.candidates.mixed import Batches, Block, Pace, Source, best_split, facts_of, fewest_seconds
from planner.candidates.mixed_search import MixedJob, Prices, cheapest, evaluate, least_bound, listed, wall_time_s
from planner.estimate.mixed import Between, synchronisation_s
from planner.estimate.training_spec import RunSpec
from tests.tiers import sampled

INSTANCES = 400


def random_pace(rng: np.random.Generator, row: int) -> Pace:
    more = float(rng.uniform(0.05, 1.0))
    first = more + float(rng.choice([0.0, rng.uniform(0, 1)]))
    return Pace(
        row=row, quantum=int(rng.choice([1, 2, 3, 4, 6])), first_s=first,
        second_s=first + more * float(rng.choice([1.0, rng.uniform(1, 1.5)])), more_s=more,
        gradient_bytes=float(rng.choice([5e7, 1e8])),
    )  # fmt: skip


def random_source(rng: np.random.Generator, number: int, failing: bool) -> Source:
    devices = int(rng.choice([1, 4, 8]))
    counts = sorted(rng.choice(np.arange(1, 6), size=int(rng.integers(1, 4)), replace=False).tolist())
    run = RunSpec(
        mtbf_per_device_s=float(rng.choice([math.inf, 4e6])), restart_s=600.0, straggler_sigma=0.005,
        checkpoint_bandwidth_bytes_per_s=2e9, devices_per_host=float(devices), scale_loss=0.06,
        devices_per_shape=float(devices), preemptions_per_s=float(rng.choice([0.0, 1e-6])),
        preemption_restart_s=300.0,
    )  # fmt: skip
    return Source(
        name=f"offer-{number}",
        machines=f"machine-{number}",
        site=number,
        zone=("p", str(rng.choice(["east", "east", "west"])), str(rng.choice(["", "a", "b"]))),
        price_microusd_per_hour=int(rng.integers(1_000_000, 9_000_000)) * devices,
        carbon_mg_per_hour=float(rng.uniform(0, 1e6)),
        time_margin=float(rng.choice([1.0, 1.1, 1.3])),
        spot=bool(rng.random() < 0.3),
        network_scale=float(rng.choice([0.0, 0.1])),
        run=run if failing else None,
        blocks=tuple(
            Block(
                nodes=count, devices=count * devices, hosts=count,
                paces=tuple(random_pace(rng, k) for k in range(int(rng.integers(1, 3)))),
                network_bytes_per_s=float(rng.choice([1e9, 5e9, math.nan], p=[0.45, 0.45, 0.1])) * count,
            )
            for count in counts
        ),
    )  # fmt: skip


def random_job(seed: int) -> tuple[MixedJob, Prices]:
    rng = np.random.default_rng(seed)
    failing = bool(rng.random() < 0.5)
    sources = tuple(random_source(rng, k, failing) for k in range(int(rng.integers(2, 5))))
    asked = float(rng.integers(8, 40)) + float(rng.choice([0.0, 0.3]))
    limits = int(rng.integers(0, 3)) if rng.random() < 0.5 else 0
    between = Between(bytes_per_s_per_shape=5e8, latency_s=0.01, usd_per_byte=2e-13) if rng.random() < 0.8 else None
    job = MixedJob(
        sources=sources,
        batches=Batches(
            asked=(asked,), allowed=(0.9 * asked, 1.1 * asked), critical=20.0 if rng.random() < 0.2 else None
        ),
        between=between,
        sequences=1e5,
        deadline_s=float(rng.choice([2e4, 5e4, 2e5])),
        checkpoint_bytes=1e11,
        usage=rng.integers(0, 4, size=(limits, len(sources))),
        bounds=rng.integers(2, 20, size=limits),
    )
    job = hurried(job, rng) if rng.random() < 0.7 else job
    node = np.zeros(len(sources))
    if rng.random() < 0.5:
        node = rng.uniform(0, 3e7, size=len(sources)) * (rng.random(len(sources)) < 0.7)
    return job, Prices(cost=1.0, carbon=float(rng.choice([0.0, 1.0])), node=node)


def hurried(job: MixedJob, rng: np.random.Generator) -> MixedJob:
    """The job with a deadline that some of its mixes meet: often few, of many groups."""
    unhurried = replace(job, deadline_s=1e9)
    mixes = [(choice, evaluate(unhurried, choice)) for choice in every_choice(unhurried)]
    late = [mix.wall_s * max(job.sources[s].time_margin for s, _ in choice) for choice, mix in mixes if mix]
    if not late:
        return job
    return replace(job, deadline_s=1.0001 * sorted(late)[int(len(late) * rng.random() ** 4)])


def every_choice(job: MixedJob):  # type: ignore[no-untyped-def]
    """Every mix that keeps to the limits."""
    options = [[None, *range(len(source.blocks))] for source in job.sources]
    for picked in itertools.product(*options):
        choice = tuple((s, b) for s, b in enumerate(picked) if b is not None)
        used = sum((job.usage[:, s] * job.sources[s].blocks[b].nodes for s, b in choice), np.zeros(len(job.bounds)))
        if len(choice) > 1 and not (used > job.bounds).any():
            yield choice


def whole_sums(quanta: list[int], batch: int):  # type: ignore[no-untyped-def]
    """Every way to fill a batch with at least one of each."""
    if len(quanta) == 1:
        if batch > 0 and batch % quanta[0] == 0:
            yield (batch // quanta[0],)
        return
    for units in range(1, batch // quanta[0] + 1):
        for rest in whole_sums(quanta[1:], batch - units * quanta[0]):
            yield (units, *rest)


def plain_split_s(job: MixedJob, choice) -> float:  # type: ignore[no-untyped-def]
    """Least seconds per sequence of a mix, by trying everything."""
    chosen = [(job.sources[s], job.sources[s].blocks[b]) for s, b in choice]
    best = math.inf
    for paces in itertools.product(*(block.paces for _, block in chosen)):
        sync = synchronisation_s(facts_of(chosen, max(p.gradient_bytes for p in paces)), job.between)
        quantum = math.gcd(*(p.quantum for p in paces))
        low, high = job.batches.allowed
        legal = [b for b in range(1, 100) if b % quantum == 0 and low - 1e-9 <= b <= high + 1e-9]
        if not legal or not math.isfinite(sync):
            continue
        batch = min(legal, key=lambda b: (abs(b - job.batches.asked[0]), b))
        tie = [b for b in legal if abs(b - job.batches.asked[0]) == abs(batch - job.batches.asked[0])]
        batch = max(tie, key=lambda b: b / quantum % 2 == 0) if len(tie) > 1 else batch  # halves go to even multiples
        critical = job.batches.critical
        factor = 1.0 if critical is None or batch <= critical else 1.0 + batch / critical
        for units in whole_sums([p.quantum for p in paces], batch):
            slowest = max(p.first_s if u == 1 else p.second_s + (u - 2) * p.more_s for p, u in zip(paces, units))
            best = min(best, (slowest + sync) / batch * factor)
    return best


def plain_value(job: MixedJob, prices: Prices, choice) -> float:  # type: ignore[no-untyped-def]
    chosen = [(job.sources[s], job.sources[s].blocks[b]) for s, b in choice]
    per_sequence = plain_split_s(job, choice)
    if not math.isfinite(per_sequence):
        return math.inf
    mix = evaluate(job, choice)
    wall = wall_time_s(job, per_sequence * job.sequences, chosen)
    if wall * max(source.time_margin for source, _ in chosen) > job.deadline_s:
        assert mix is None
        return math.inf
    assert mix is not None
    assert mix.wall_s == pytest.approx(wall, rel=1e-12)
    hours = mix.wall_s / 3600
    rent = sum(source.price_microusd_per_hour * block.nodes for source, block in chosen) * hours
    carbon = sum(source.carbon_mg_per_hour * block.nodes for source, block in chosen) * hours
    charge = sum(prices.node[s] * job.sources[s].blocks[b].nodes for s, b in choice)
    return prices.cost * (rent + sum(mix.traffic_microusd)) + prices.carbon * carbon + float(charge)


@pytest.mark.parametrize("seed", sampled(range(INSTANCES), 60))
def test_cheapest_mix_is_that_of_plain_enumeration(seed: int) -> None:
    job, prices = random_job(seed)
    values = {choice: plain_value(job, prices, choice) for choice in every_choice(job)}
    least = min(values.values(), default=math.inf)
    mix, bound = cheapest(job, prices, math.inf)
    if math.isinf(least):
        assert mix is None
        return
    assert mix is not None
    assert mix.value(job, prices) == pytest.approx(least, rel=1e-9, abs=4.0)
    assert bound <= mix.value(job, prices) * (1 + 1e-9)


@pytest.mark.parametrize("seed", sampled(range(60), 20))
def test_a_walk_lists_every_mix_below_a_value(seed: int) -> None:
    job, prices = random_job(seed + 10_000)
    values = {choice: plain_value(job, prices, choice) for choice in every_choice(job)}
    finite = sorted(value for value in values.values() if math.isfinite(value))
    if not finite:
        return
    cutoff = finite[len(finite) // 2]
    found, complete = listed(job, prices, cutoff)
    assert complete == cutoff
    assert {choice for choice, value in values.items() if value <= cutoff} <= {choice for _, choice in found}
    for bound, choice in found:
        assert bound <= values[choice] * (1 + 1e-9) + 4
    few, complete = listed(job, prices, cutoff, most=3)
    assert {choice for choice, value in values.items() if value < complete} <= {choice for _, choice in few}


@pytest.mark.parametrize("seed", sampled(range(60), 20))
def test_dinkelbach_ends_at_the_least_bound(seed: int) -> None:
    job, prices = random_job(seed + 20_000)
    found, _ = listed(job, prices, math.inf)
    start, _ = least_bound(job, prices, math.inf)
    if not found:
        assert start is None
        return
    assert start is not None
    bounds = {choice: bound for bound, choice in found}
    assert bounds[start] == pytest.approx(min(bounds.values()), rel=1e-12)


@pytest.mark.parametrize("seed", range(200))
def test_whole_shares_are_the_best_ones(seed: int) -> None:
    rng = np.random.default_rng(seed + 30_000)
    paces = [random_pace(rng, k) for k in range(int(rng.integers(2, 5)))]
    batch = int(rng.integers(4, 60))
    best = min(
        (max(p.step_s(u) for p, u in zip(paces, units)) for units in whole_sums([p.quantum for p in paces], batch)),
        default=math.inf,
    )
    found = fewest_seconds(paces, batch)
    if found is None:
        assert math.isinf(best)
        return
    slowest, units = found
    assert sum(p.quantum * u for p, u in zip(paces, units)) == batch
    assert slowest == best == max(p.step_s(u) for p, u in zip(paces, units))


def test_two_equal_groups_share_evenly_and_save_no_money() -> None:
    """Closed form: without overheads two like groups take half the time of one at the same cost."""
    pace = Pace(row=0, quantum=1, first_s=1.0, second_s=2.0, more_s=1.0, gradient_bytes=0.0)
    block = Block(nodes=1, devices=8, hosts=1, paces=(pace,), network_bytes_per_s=1e9)
    sources = tuple(
        Source(
            name=name, machines=name, site=k, zone=("p", "east", ""), price_microusd_per_hour=1_000_000,
            carbon_mg_per_hour=0.0, time_margin=1.0, spot=False, network_scale=0.0, run=None, blocks=(block,),
        )
        for k, name in enumerate("ab")
    )  # fmt: skip
    batches = Batches(asked=(10.0,), allowed=(9.0, 11.0))
    split = best_split([(source, block) for source in sources], batches, None)
    assert split is not None
    assert (split.units, split.batch) == ((5, 5), 10)
    assert split.s_per_sequence == pytest.approx(0.5 + 2 * 25e-6 / 10)
