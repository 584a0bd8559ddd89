"""How many shapes are worth trying for one training job on one kind of machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from planner.candidates.layouts import replica_sizes
from planner.candidates.ledger import Ledger
from planner.candidates.offers import LARGEST_JOB, Site, names_on, shape_cap
from planner.candidates.training_question import TrainingQuestion
from planner.equations.rules import training_hours
from planner.estimate.frameworks import least_factor
from planner.estimate.machine import Machine
from planner.units import format_duration

EVERY_COUNT_TO = 32  # shapes; above it counts go in steps of 1/32, which changes cost by at most 3 %
SMALLEST_WINDOW = 64  # devices
LEAST_SHAPES = 4  # that are always tried, however large one is: a later deadline shall not take the second pod away
FROZEN_SHARE = 2.0 / 3.0  # of the work of a trained weight: forward and input gradient
SLACK_COUNTS = 8  # times the fewest devices that could do it: more only waits for memory or shortens the run


def node_counts(
    question: TrainingQuestion, group: Sequence[Site], ledger: Ledger, *, reach: int = 0, hosts: bool = False
) -> tuple[int, ...]:
    """Numbers of shapes worth trying: enough for the deadline at ideal speed, within every cap.

    The fewest that could do it and the most that each offer of the group allows are always among them,
    so that the steps of the grid never make a job impossible.

    Parameters
    ----------
    question
        The job.
    group
        Sites of equal physics; each has a cap of its own.
    ledger
        Is told of what caps, an unknown network and the deadline rule out.
    reach
        Devices up to which counts are tried, within every cap, where that is beyond the window.
    hosts
        Whether whole hosts are among the sites (`whole_hosts`): a stated network is theirs then.

    Returns
    -------
    Ascending, without repetition; none where caps or the deadline leave none.
    """
    site, per_shape, band = group[0], group[0].shape.devices, question.band(group[0])
    ideal_s, least_devices = single_device(question, site)
    least_margin = band.time_margin(min(question.confidences))
    fewest = max(1, math.ceil(ideal_s * least_margin / (question.latest_s * per_shape) - 1e-9))
    most = window(question, site, least_devices)
    caps = {shape_cap(question.scenario, candidate) for candidate in group}
    if max(caps) < 1:
        _note_cap(ledger, group)
        return ()
    parts = hosts and site.on_stated_network and site.part_of_host and not question.rules.choices("dp", ())
    if (parts or site.inter_node_bytes_per_s is None) and min(most, max(caps)) > 1:
        _note_network(ledger, group, fewest, parts=parts)
        caps = {1}
    largest, fixed = min(max(most, reach // per_shape), max(caps)), _fixed_counts(question, site, max(caps))
    tries = {*count_grid(largest), fewest, *caps, *fixed}
    largest = max(largest, *fixed, 0)
    if question.scenario.objective[0] == "time":  # more than is needed may still be faster: doublings of the window
        largest = min(max(LARGEST_JOB // per_shape, most), max(caps))
        tries |= {most << k for k in range(1, largest.bit_length())} | {largest}
    counts = tuple(sorted(count for count in tries if fewest <= count <= largest))
    if question.switches and site.spot:  # too few for the deadline may still be where a job begins
        counts = tuple(sorted({*counts, *count_grid(min(max(caps), fewest - 1))}))
    _note_counts(question, ledger, group, ideal_s * least_margin, min(fewest - 1, max(caps)))
    return counts


def window(question: TrainingQuestion, site: Site, least_devices: float) -> int:
    """Shapes of a site up to which counts are tried.

    Parameters
    ----------
    least_devices
        That hold the sharded states of the model.
    """
    asked, band, per_shape = question.spec.confidence, question.band(site), site.shape.devices
    needed = max(
        typical_s(question, site) * band.time_margin(asked) / question.job.deadline_s,
        least_devices * band.memory_margin(asked),
    )
    devices = min(max(SMALLEST_WINDOW, math.ceil(SLACK_COUNTS * needed)), LARGEST_JOB)
    return max(devices // per_shape, min(LEAST_SHAPES, LARGEST_JOB // per_shape), 1)


def _fixed_counts(question: TrainingQuestion, site: Site, most: int) -> set[int]:
    """Numbers of shapes that layouts of fixed data parallelism amount to."""
    rules, per_shape = question.rules, site.shape.devices
    replicas = rules.choices("dp", ())
    if not replicas:
        return set()
    each = replica_sizes(question.arch, replace(rules, domain_devices=site.domain))
    devices = {size * count for size in each for count in replicas}
    return {count // per_shape for count in devices if count % per_shape == 0 and count <= most * per_shape}


def count_grid(largest: int) -> Iterator[int]:
    """1, 2, 3, ... to `EVERY_COUNT_TO`, then in steps of a 1/32 of the power of two below."""
    count = 1
    while count <= largest:
        yield count
        count += max(1, (1 << (count.bit_length() - 1)) // EVERY_COUNT_TO)


def single_device(question: TrainingQuestion, site: Site) -> tuple[float, float]:
    """Ideal seconds on one device, and the fewest devices that hold the sharded model states."""
    machine = question.machine(site)
    size, rate = float(question.arch.active_parameters), float(machine.sustained_flop_per_s)
    if question.tier(site) == "analytic":
        size, rate = _least_work(question), _best_rate(machine)
    return _run_s(question, site, size, rate), question.state_bytes / site.usable_bytes


def typical_s(question: TrainingQuestion, site: Site) -> float:
    """Seconds on one device by the founding rule: how many devices are worth trying, whatever the tier."""
    rate = float(question.machine(site).sustained_flop_per_s)
    return _run_s(question, site, float(question.arch.active_parameters), rate)


def _run_s(question: TrainingQuestion, site: Site, parameters: float, flop_per_s: float) -> float:
    spec = question.spec
    hours = training_hours(spec.tokens, parameters, spec.epochs, 1.0, flop_per_s)
    return (
        float(hours) * 3600.0 * spec.remaining_share * (question.step_time_ratio(site) or 1.0) * question.erring(site)
    )


def _least_work(question: TrainingQuestion) -> float:
    """Parameters whose products every token meets; frozen ones need no gradient of their own."""
    share = 1.0 if question.spec.lora_rank is None else FROZEN_SHARE
    return float(question.arch.matmul_parameters) * share


def _best_rate(machine: Machine) -> float:
    """No product runs faster than the family's large ones at the fastest peak, by the leanest software.  [FLOP/s]"""
    peak = max(float(machine.linear_flop_per_s), float(machine.peak_flop_per_s))
    low = max(1.0, float(machine.constants.low_precision))
    return peak * float(machine.constants.gemm) * low / _leanest(machine.overheads)


@lru_cache(maxsize=256)
def _leanest(overheads: tuple[tuple[str, float], ...]) -> float:
    """Of the software of a family, by its fitted overheads; a question asks for hundreds of machines of few."""
    return least_factor(dict(overheads))


def _note_cap(ledger: Ledger, group: Sequence[Site]) -> None:
    site, devices = group[0], group[0].shape.devices
    text = f"one {site.shape.id} has {devices} device{'s' * (devices > 1)}, more than the limits allow"
    ledger.drop("quota", "counts", len(group), nearest=text, miss=float(devices), on=names_on(group))


def whole_hosts(groups: Sequence[Sequence[Site]]) -> bool:
    """Whether some machines are whole hosts of GPUs that a job may be spread over: one on a part of a host then stays.

    What a scenario states of networks is one machine's, and parts of a host share its cards: at 400 Gbit/s for each of
    84 rented machines of one B200 a job of 70B parameters was the cheapest there.
    """
    sites = (group[0] for group in groups)
    return any(
        site.device.kind == "gpu" and not site.part_of_host and site.inter_node_bytes_per_s is not None
        for site in sites
    )


def _note_network(ledger: Ledger, group: Sequence[Site], fewest: int, *, parts: bool) -> None:
    nearest = f"{group[0].shape.id}: more than one shape needs a known inter-node bandwidth (assume_inter_node)"
    if parts:
        nearest = (
            f"{group[0].shape.id}: a part of a host, whose network it shares: what is stated is that of whole hosts "
            "(layout: dp says otherwise)"
        )
    ledger.drop(
        "host-network" if parts else "network-unknown",
        "counts",
        len(group),
        nearest=nearest,
        miss=float(fewest),
        on=names_on(group),
    )


def _note_counts(
    question: TrainingQuestion,
    ledger: Ledger,
    group: Sequence[Site],
    held_s: float,
    too_few: int,
) -> None:
    site = group[0]
    if too_few > 0:
        finish_s = held_s / (too_few * site.shape.devices)
        late = finish_s - question.latest_s
        bound = "in matrix products alone" if question.tier(site) == "analytic" else "at best"
        text = (
            f"{too_few:,} × {site.shape.id} would take {format_duration(finish_s)} {bound}, margin for errors "
            f"included, {format_duration(late)} late"
        )
        ledger.drop("deadline", "counts", too_few * len(group), nearest=text, miss=late, on=names_on(group))
