"""From the offers of a scenario to what may be mixed for one job: groups, their layouts, their times by their share.

A group is legal on its own terms: its layout is one that the job may have on so many devices, and its memory holds
the whole batch, so that it holds any share of it (memory never falls with the micro-batches of a step). The time of a
step is linear in the micro-batches from the second one on, in every tier, so that three evaluations of each layout
tell it for every share; what is chosen is evaluated again at its own share. Of layouts with one least share those that
another one beats at every share are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.counts import count_grid, single_device, window
from planner.candidates.layouts import enumerate_layouts, offered
from planner.candidates.ledger import Ledger
from planner.candidates.limits import ColumnFacts, offer_caps, peak_limits
from planner.candidates.machines import carbon_mg_per_hour, training_refusal
from planner.candidates.mixed import Batches, Block, Pace, Source
from planner.candidates.mixed_search import MixedJob
from planner.candidates.offers import Site, group_by_physics, shape_cap
from planner.candidates.training_choice import least_policies, policy_runs
from planner.candidates.training_question import TrainingQuestion
from planner.carriers import dataclass
from planner.estimate.layout import Layout
from planner.estimate.mixed import Between, gradient_bytes, group_step_terms, network_bytes_per_s
from planner.estimate.resolve import host_bytes_per_device
from planner.estimate.run import checkpoint_bytes_of
from planner.estimate.training import training_memory
from planner.estimate.training_memory import host_bytes

Rows = NDArray[np.int64]
PRICE_MODELS = ("on_demand", "owned")  # paid by the hour; one group taken away would stop all of them
FEWEST = 2  # groups of a mix


@dataclass(frozen=True, slots=True, kw_only=True)
class MixSpace:
    """What may be mixed for one job."""

    question: TrainingQuestion
    sites: tuple[Site, ...]
    layouts: Layout  # of all paces; the global batch is the least share
    job: MixedJob

    def layout_of(self, pace: Pace, units: int) -> Layout:
        """The layout of a group with its share as its global batch; arrays of one element."""
        one = self.layouts.select(np.array([pace.row]))
        return replace(one, global_batch=np.array([pace.quantum * units], dtype=np.int64))


def mix_space(
    question: TrainingQuestion, sites: Sequence[Site], ledger: Ledger, between: Between | None, confidence: float
) -> MixSpace | None:
    """What may be mixed for a job at a confidence; None when there are no two offers to mix.

    Parameters
    ----------
    question
        The job.
    sites
        Offers that it may run on.
    ledger
        Is told of offers that join no other for lack of a known network.
    between
        Network between zones; None: unknown, so that a mix stays within one zone.
    confidence
        At which groups fit the memory and mixes are on time.
    """
    able = list(_able(question, sites, ledger))
    sources: list[Source] = []
    places: list[Site] = []
    layouts: list[Layout] = []
    first_row = 0
    for group in group_by_physics(able, host_memory=bool(question.job.offload)):
        layout, blocks = _blocks(question, group, confidence, first_row)
        if not blocks:
            continue
        layouts.append(layout)
        first_row += len(np.asarray(layout.devices))
        for site in group:
            own = tuple(block for block in blocks if block.nodes <= shape_cap(question.scenario, site))
            if own:
                sources.append(_source(question, site, len(places), own, confidence))
                places.append(site)
    if len(sources) < FEWEST:
        return None
    order = sorted(range(len(sources)), key=lambda k: sources[k].name)
    ranked = tuple(sources[k] for k in order)
    return MixSpace(
        question=question,
        sites=tuple(places),
        layouts=Layout.concatenate(layouts),
        job=_job(question, ranked, places, between),
    )


def _able(question: TrainingQuestion, sites: Sequence[Site], ledger: Ledger) -> list[Site]:
    """Offers that can train the job, are paid by the hour, and have a known network."""
    able = [
        site
        for site in sites
        if site.offer.price_model in PRICE_MODELS
        and not training_refusal(site, question.job, question.scenario, question.catalog)
    ]
    known = [site for site in able if site.inter_node_bytes_per_s is not None]
    unknown = [site for site in able if site.inter_node_bytes_per_s is None]
    if unknown:
        text = f"{unknown[0].shape.id}: its network is unknown, so it joins no other offer (assume_inter_node)"
        ledger.drop("mix-network", "offers", len(unknown), nearest=text)
    return known


def _job(
    question: TrainingQuestion, sources: tuple[Source, ...], sites: Sequence[Site], between: Between | None
) -> MixedJob:
    spec, rules = question.spec, question.rules
    limits = [*peak_limits(question.scenario), *offer_caps(sites[source.site] for source in sources)]
    usage = [
        [coefficient(ColumnFacts(task=0, site=sites[s.site], nodes=1, cost_microusd=0, carbon_mg=0)) for s in sources]
        for _, _, _, coefficient in limits
    ]
    critical = spec.critical_batch_tokens
    return MixedJob(
        sources=sources,
        batches=Batches(
            asked=rules.batches,
            allowed=rules.batch_range,
            critical=None if critical is None else critical / spec.sequence_length,
        ),
        between=between,
        sequences=spec.tokens * spec.epochs * spec.remaining_share / spec.sequence_length,
        deadline_s=question.job.deadline_s,
        checkpoint_bytes=checkpoint_bytes_of(question.arch, spec),
        usage=np.array(usage, dtype=np.int64).reshape(len(limits), len(sources)),
        bounds=np.array([bound for _, _, bound, _ in limits], dtype=np.int64),
        one_provider=question.scenario.limits.max_providers is not None,
    )


def _source(question: TrainingQuestion, site: Site, place: int, blocks: tuple[Block, ...], confidence: float) -> Source:
    offer = site.offer
    return Source(
        name=offer.id,
        machines=f"{offer.provider}/{offer.region}/{site.shape.id}/{offer.price_model}/{site.owned}",
        site=place,
        zone=(offer.provider, offer.region, offer.zone),
        price_microusd_per_hour=offer.price_microusd_per_hour,
        carbon_mg_per_hour=carbon_mg_per_hour(site, question.catalog),
        time_margin=question.mix_band(site).time_margin(confidence),
        spot=site.spot,
        network_scale=float(np.asarray(question.machine(site).network_scale)),
        run=question.spec_on(site).run,
        blocks=blocks,
        bill=site.bill,
    )


def group_counts(question: TrainingQuestion, group: Sequence[Site]) -> tuple[int, ...]:
    """Numbers of shapes that a group may have: the steps of the search for one offer, but also too few alone."""
    site = group[0]
    _, least_devices = single_device(question, site)
    caps = {shape_cap(question.scenario, candidate) for candidate in group}
    largest = min(window(question, site, least_devices), max(caps))
    return tuple(sorted(count for count in {*count_grid(largest), *caps} if 1 <= count <= largest))


def _blocks(
    question: TrainingQuestion, group: Sequence[Site], confidence: float, first_row: int
) -> tuple[Layout, tuple[Block, ...]]:
    """Every number of shapes of one physics with the layouts that may be best; rows count from `first_row`."""
    site = group[0]
    counts = group_counts(question, group)
    layout = _fitting(question, site, counts, confidence) if counts else None
    if layout is None or not len(np.asarray(layout.devices)):
        return _no_layout(), ()
    times, sent = _step_times(question, site, layout)
    kept = _unbeaten(layout, times, sent)
    layout, times, sent = layout.select(kept), times[:, kept], sent[kept]
    devices = np.asarray(layout.devices)
    hosts_share = question.spec_on(site).run
    per_host = hosts_share.devices_per_host if hosts_share else float(site.shape.devices)
    machine = question.machine(site)
    blocks = []
    for count in counts:
        rows = np.flatnonzero(devices == count * site.shape.devices)
        if len(rows):
            blocks.append(
                Block(
                    nodes=count,
                    devices=count * site.shape.devices,
                    hosts=math.ceil(count * site.shape.devices / per_host),
                    paces=tuple(_pace(layout, times, sent, int(row), first_row) for row in rows),
                    network_bytes_per_s=network_bytes_per_s(machine, count * site.shape.devices),
                )
            )
    return layout, tuple(blocks)


def _no_layout() -> Layout:
    none: Rows = np.zeros(0, dtype=np.int64)
    return Layout(**dict.fromkeys(Layout.__slots__, none))


def _pace(layout: Layout, times: NDArray[np.float64], sent: NDArray[np.float64], row: int, first_row: int) -> Pace:
    return Pace(
        row=first_row + row,
        quantum=int(layout.global_batch[row]),
        first_s=float(times[0, row]),
        second_s=float(times[1, row]),
        more_s=float(times[2, row] - times[1, row]),
        gradient_bytes=float(sent[row]),
    )


def _fitting(question: TrainingQuestion, site: Site, counts: Sequence[int], confidence: float) -> Layout:
    """Layouts whose memory holds the whole batch, with their least share as the global batch."""
    high = question.rules.batch_range[1]
    shape = site.shape
    rules = replace(
        question.rules,
        domain_devices=shape.domain_devices,
        batches=(high,),
        batch_range=(1.0, high),
    )
    every = enumerate_layouts(question.arch, [count * shape.devices for count in counts], rules)
    layout = offered(question.job, rules, every)
    needed = np.asarray(training_memory(question.arch, question.spec, layout, site.device.family).total)
    fits = needed * question.band(site).memory_margin(confidence) <= site.usable_bytes
    most = host_bytes_per_device(shape)
    if question.spec.offload and most is not None:
        fits &= np.asarray(host_bytes(question.arch, question.spec, layout, site.device.family).total) <= most
    rows = np.flatnonzero(fits)
    if "activations" not in question.spec.offload:
        rows = least_policies(layout, policy_runs(layout), rows)
    layout = layout.select(rows)
    chunks = np.where(np.asarray(layout.vpp) > 1, layout.pp, 1)  # an interleaved schedule takes whole rounds of stages
    return replace(layout, global_batch=np.asarray(layout.dp) * layout.micro_batch * chunks)


def _step_times(
    question: TrainingQuestion, site: Site, layout: Layout
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(3, layouts) seconds of a step with one, two and three least shares, and the gradients that a step sends."""
    spec, machine = question.spec_on(site), question.machine(site)
    shares = [replace(layout, global_batch=np.asarray(layout.global_batch) * units) for units in (1, 2, 3)]
    times = [np.asarray(group_step_terms(question.arch, spec, share, machine).total) for share in shares]
    return np.stack(times), gradient_bytes(question.arch, spec, layout, machine)


def _unbeaten(layout: Layout, times: NDArray[np.float64], sent: NDArray[np.float64]) -> Rows:
    """Layouts that no other one of equal size and least share beats at every share; the first of equal ones."""
    more = times[2] - times[1]
    usable = np.isfinite(times).all(axis=0) & (times[0] > 0) & (more > 0) & (times[1] >= times[0])
    kept: list[int] = []
    front: dict[tuple[int, int], list[tuple[float, float, float, float]]] = {}
    order = np.lexsort((np.arange(len(more)), sent, more, times[1], times[0]))
    for row in order[usable[order]].tolist():
        key = (int(layout.devices[row]), int(layout.global_batch[row]))
        mine = (float(times[0, row]), float(times[1, row]), float(more[row]), float(sent[row]))
        ahead = front.setdefault(key, [])
        if any(all(a <= b for a, b in zip(other, mine)) for other in ahead):
            continue
        ahead.append(mine)
        kept.append(row)
    return np.array(sorted(kept), dtype=np.int64)
