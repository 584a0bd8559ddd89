"""The cheapest plan by brute force, straight from the files: nothing of candidates/ or optimize/.

Layouts are listed with nested loops, money is added in fractions, combinations are all tried. The
equations and their composition (`planner.estimate`) are shared with the product: they are tested
against published values elsewhere, here it is the search, the program and the money that are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from planner.architecture.load import load_model
from planner.architecture.model import Architecture
from planner.catalog.load import find_shape, load_catalog
from planner.catalog.model import Catalog, Device, Shape
from planner.estimate.layout import Layout
from planner.estimate.resolve import (
    inter_node_rate,
    peaks_of,
    serving_machine,
    training_machine,
    training_spec,
    usable_bytes,
)
from planner.estimate.resolve_serving import PLAIN_FRACTION
from planner.estimate.serving import (
    ReplicaLayout,
    ServingSpec,
    given_throughput_capacity,
    serving_capacity,
    serving_memory,
)
from planner.estimate.software_layouts import on_gpus
from planner.estimate.training import training_memory, training_time
from planner.scenario.load import load_scenario
from planner.scenario.schema import Scenario, ServingFleet, TrainingJob

POWERS = (1, 2, 4, 8, 16, 32, 64)
MICRO_BATCHES: Sequence[int] = POWERS
CHUNKS = range(2, 129)  # of a stage, where there is a pipeline
FABRIC_BYTES_PER_S = 12.5e9  # of each device: 100 Gbit/s


@dataclass(frozen=True)
class Rented:
    """A kind of shape that can be had, at a price."""

    name: str
    provider: str
    shape: Shape
    device: Device
    price: int  # micro-USD/h
    owned: int | None
    rate: float | None


@dataclass(frozen=True)
class Option:
    """One way to run one whole workload: what it costs and what it holds while it is active."""

    cost: int
    shapes: tuple[tuple[Rented, int], ...]
    task: int = field(default=0)


def cheapest(scenario_file: str, hardware: str) -> tuple[int | None, int | None]:
    """Cost of the cheapest plan, and of each workload's own best added up; None = impossible."""
    scenario, catalog = load_scenario(scenario_file), load_catalog(hardware)
    rented = list(_rented(scenario, catalog))
    choices = [_job_options(job, scenario, catalog, rented) for job in scenario.training]
    choices += [_fleet_options(fleet, scenario, rented) for fleet in scenario.serving]
    if not all(choices):
        return None, None
    alone = sum(min(option.cost for option in options) for options in choices)
    return _combine(scenario, choices), alone


def _rented(scenario: Scenario, catalog: Catalog) -> Iterator[Rented]:
    assumed = scenario.hardware.assume_inter_node_bytes_per_s
    for offer in catalog.offers:
        shape = catalog.shapes[offer.shape]
        if offer.price_model == "on_demand":
            rate = inter_node_rate(shape, catalog, assumed)
            device = catalog.devices[shape.device]
            yield Rented(offer.id, offer.provider, shape, device, offer.price_microusd_per_hour, None, rate)
    for index, owned in enumerate(scenario.hardware.owned):
        shape = find_shape(catalog, owned.shape)
        device, rate = catalog.devices[shape.device], inter_node_rate(shape, catalog, assumed)
        yield Rented(f"owned {index}", "owned", shape, device, owned.price_microusd_per_hour, index, rate)


def _money(shapes: int, price: int, hours: float) -> int:
    """Hours to ten significant digits, then exact, rounded half to even once."""
    return round(shapes * price * Fraction(f"{Decimal(repr(hours)):.9e}"))


# ---- training


def _job_options(job: TrainingJob, scenario: Scenario, catalog: Catalog, rented: list[Rented]) -> list[Option]:
    arch = load_model(job.model.preset or "")
    most = scenario.limits.max_devices or 16
    single: list[tuple[int, Rented, int]] = []
    for kind in rented:
        counts = range(1, most // kind.shape.devices + 1) if kind.rate is not None else [1]
        for count in counts:
            hours = _fastest_hours(job, arch, catalog, kind, count)
            if hours is not None:
                single.append((_money(count, kind.price, hours), kind, count))
    return [
        Option(cost=sum(cost for cost, _, _ in some), shapes=tuple((kind, count) for _, kind, count in some))
        for some in itertools.combinations_with_replacement(single, job.count)
    ]


def _fastest_hours(job: TrainingJob, arch: Architecture, catalog: Catalog, kind: Rented, count: int) -> float | None:
    layouts = list(
        _layouts(job, arch, count * kind.shape.devices, max(kind.shape.devices, kind.shape.scale_up_devices))
    )
    if not layouts:
        return None
    layout = Layout(**{name: np.array([one[name] for one in layouts]) for name in layouts[0]})
    needed = training_memory(arch, training_spec(job, arch), layout, kind.device.family).total
    machine = training_machine(kind.device, kind.shape, job, arch, catalog, kind.rate)
    seconds = training_time(arch, training_spec(job, arch, kind.device, kind.shape), layout, machine).total
    late, more = _margins(job, catalog, kind.device.family)
    good = (needed * more <= usable_bytes(kind.device, kind.shape)) & (seconds * late <= job.deadline_s)
    launched = on_gpus(job, arch, layout)  # of some models no program that is exported makes a pipeline
    good &= True if launched is None else launched
    return float(np.min(seconds[good])) / 3600.0 if good.any() else None


def _margins(job: TrainingJob, catalog: Catalog, family: str) -> tuple[float, float]:
    """Quantiles of the error bands of time and memory at the confidence asked for, not below one."""
    known = catalog.training_families[family]
    steps = NormalDist().inv_cdf(job.confidence_share) / NormalDist().inv_cdf(0.9)
    memory = known.memory_band.p50 * (known.memory_band.p90 / known.memory_band.p50) ** steps
    if job.tier == "analytic":
        time = known.time_band.p50 * (known.time_band.p90 / known.time_band.p50) ** steps
    else:  # the rule of these instances: no device is of the family that its error is known for
        spread = catalog.rule_error.max / math.sqrt(2.0 / math.pi)
        time = math.exp(spread * NormalDist().inv_cdf(job.confidence_share))
    return max(time, 1.0), max(memory, 1.0)


def _layouts(job: TrainingJob, arch: Architecture, devices: int, domain: int) -> Iterator[dict[str, int]]:
    group, layers = arch.layers[0], arch.layer_count
    asked = job.global_batch.min_sequences
    for tp in POWERS:
        heads = group.query_heads % tp == 0 and (group.kv_heads % tp == 0 or tp % group.kv_heads == 0)
        if tp > domain or not heads or group.mlp_width % tp or devices % tp:
            continue
        for pp in range(1, layers + 1):
            if devices % (tp * pp):
                continue
            dp = devices // (tp * pp)
            # whole chunks of layers, embedding and loss for a layer each where that makes them whole
            chunks = [v for v in CHUNKS if pp > 1 and (layers % (pp * v) == 0 or (layers + 2) % (pp * v) == 0)]
            for vpp, micro in itertools.product([1, *chunks], MICRO_BATCHES):
                step = dp * micro * (pp if vpp > 1 else 1)
                batch = max(round(asked / step) * step, step)
                if abs(batch - asked) > 0.1 * asked + 1e-9:
                    continue
                for stage, level in itertools.product(_stages(job, dp, pp, batch > dp * micro), job.recompute):
                    yield {
                        "devices": devices,
                        "dp": dp,
                        "tp": tp,
                        "pp": pp,
                        "vpp": vpp,
                        "cp": 1,
                        "ep": 1,
                        "micro_batch": micro,
                        "sharding": stage,
                        "recompute": ("none", "selective", "full").index(level),
                        "global_batch": batch,
                    }


def _stages(job: TrainingJob, dp: int, pp: int, accumulates: bool) -> list[int]:
    """Stages that differ and that somebody advises: one rank shards nothing, and a pipeline shards no gradients."""
    allowed = sorted(("none", "zero-1", "zero-2", "zero-3").index(stage) for stage in job.sharding)
    if pp > 1:
        allowed = [stage for stage in allowed if stage < 2]
    if dp == 1:
        return allowed[:1]
    return [stage for stage in allowed if not (stage == 2 and 1 in allowed and pp > 1 and accumulates)]


# ---- serving


@dataclass(frozen=True)
class Unit:
    """The smallest addition to a fleet."""

    kind: Rented
    shapes: int
    replicas: int
    each: int  # micro-requests/s of one replica that may be planned
    cost: int


def _fleet_options(fleet: ServingFleet, scenario: Scenario, rented: list[Rented]) -> list[Option]:
    """All minimal covers: an optimal fleet with the fewest units has no feasible part of itself."""
    units = _useful([unit for kind in rented for unit in _units(fleet, scenario, kind)], fleet)
    demand = math.ceil(fleet.qpm / 60 * fleet.peak_factor * 1_000_000 - 1e-6)
    most = scenario.limits.max_devices or 16
    found: list[Option] = []

    def grow(chosen: list[Unit], first: int, devices: int) -> None:
        if chosen and _covers(chosen, fleet, demand):
            found.append(_as_option(chosen))
            return
        for index in range(first, len(units)):
            more = units[index].shapes * units[index].kind.shape.devices
            if devices + more <= most:
                grow([*chosen, units[index]], index, devices + more)

    grow([], 0, 0)
    return found


def serving_spec(fleet: ServingFleet) -> ServingSpec:
    """The fleet as plain numbers; the cache is kept at 16 bits when the scenario does not say."""
    return ServingSpec(
        weights=fleet.weights,
        kv_cache=fleet.kv_cache or "bf16",
        input_tokens=fleet.input_tokens,
        output_tokens=fleet.output_tokens,
        max_num_seqs=fleet.limits.max_num_seqs,
        memory_fraction=fleet.limits.memory_fraction or PLAIN_FRACTION,
    )


def _units(fleet: ServingFleet, scenario: Scenario, kind: Rented) -> Iterator[Unit]:
    arch, per_shape = load_model(fleet.model.preset or ""), kind.shape.devices
    group = arch.layers[0]
    machine, spec = serving_machine(kind.device, kind.shape, kind.rate), serving_spec(fleet)
    link, domain = kind.device.scale_up, max(per_shape, kind.shape.scale_up_devices)
    linked = link is not None and link.pattern != "pcie"
    simplest = math.inf  # devices of the smallest replica without a pipeline
    for pp, tp in itertools.product(POWERS, POWERS):
        devices = tp * pp
        heads = group.query_heads % tp == 0 and (group.kv_heads % tp == 0 or tp % group.kv_heads == 0)
        inside = devices <= per_shape
        if tp > per_shape or not heads or group.mlp_width % tp or pp > arch.layer_count:
            continue
        if not inside and (devices % per_shape or kind.rate is None):
            continue
        stated = kind.shape.inter_node_bytes_per_s_per_device is None  # by the scenario
        if not inside and not stated and kind.rate < FABRIC_BYTES_PER_S:  # nobody stretches a replica over that
            continue
        whole = group.query_heads % devices == 0 and group.mlp_width % devices == 0
        if pp > 1 and devices > simplest:  # it fits without one
            continue
        if (
            pp > 1 and linked and devices <= domain and whole and group.kv_heads % devices == 0
        ):  # tensor parallelism does
            continue
        layout = ReplicaLayout(devices=devices, tp=tp, pp=pp)
        memory = serving_memory(arch, spec, layout, machine)
        if float(memory.missing_bytes) > 0:
            continue
        if pp == 1 and (tp == 1 or linked):
            simplest = min(simplest, devices)
        rate = _rate(fleet, arch, layout, machine, memory, kind)
        each = math.floor(rate * fleet.target_load * 1_000_000 + 1e-6) if math.isfinite(rate) else 0
        if each > 0:
            shapes = 1 if inside else devices // per_shape
            replicas = per_shape // devices if inside else 1
            yield Unit(kind, shapes, replicas, each, _money(shapes, kind.price, scenario.horizon_s / 3600))


def _rate(fleet, arch, layout, machine, memory, kind) -> float:  # type: ignore[no-untyped-def]
    if fleet.throughput_tokens_per_s_per_device is not None:
        return float(given_throughput_capacity(fleet.throughput_tokens_per_s_per_device, layout, fleet.output_tokens))
    peaks = peaks_of(arch, fleet.weights, kind.device, kind.shape)
    capacity = serving_capacity(arch, serving_spec(fleet), layout, machine, peaks=peaks, memory=memory)
    return float(capacity.requests_per_s)


def _useful(units: list[Unit], fleet: ServingFleet) -> list[Unit]:
    """Without units that others on the same shape replace: as many shapes, no less capacity, no
    larger replicas, no fewer of them. Exact: the exchange costs nothing and breaks nothing."""

    def replaces(one: Unit, other: Unit) -> bool:
        if one.kind is not other.kind or other.shapes % one.shapes:
            return False
        times = other.shapes // one.shapes
        better = (
            times * one.replicas * one.each >= other.replicas * other.each
            and one.each <= other.each
            and times * one.replicas >= other.replicas
            and times * one.cost <= other.cost
        )
        same = (one.shapes, one.replicas, one.each, one.cost) == (other.shapes, other.replicas, other.each, other.cost)
        return better and (not same or units.index(one) < units.index(other))

    return [unit for unit in units if not any(replaces(other, unit) for other in units if other is not unit)]


def _covers(chosen: list[Unit], fleet: ServingFleet, demand: int) -> bool:
    capacity = sum(unit.replicas * unit.each for unit in chosen)
    lost = fleet.spare_replicas * max(unit.each for unit in chosen)
    return capacity - lost >= demand and sum(unit.replicas for unit in chosen) >= fleet.min_replicas


def _as_option(chosen: list[Unit]) -> Option:
    return Option(cost=sum(unit.cost for unit in chosen), shapes=tuple((unit.kind, unit.shapes) for unit in chosen))


# ---- all together


def _combine(scenario: Scenario, choices: list[list[Option]]) -> int | None:
    """The cheapest combination that every joint limit allows."""
    moments = _active(scenario)
    rows = list(_rows(scenario))
    bounds = np.array([bound for _, _, bound in rows], dtype=np.float64)
    ordered = [sorted(options, key=lambda option: option.cost) for options in choices]
    uses = [np.array([[use(option) for _, use, _ in rows] for option in options]) for options in ordered]
    masks = [[_providers(option) for option in options] for options in ordered]
    fleets, fleet_use = ordered[-1], uses[-1]
    fleet_cost = np.array([option.cost for option in fleets], dtype=np.int64)
    limits, best = scenario.limits, None
    for picked in itertools.product(*(range(len(options)) for options in ordered[:-1])):
        spent = sum(ordered[task][index].cost for task, index in enumerate(picked))
        if best is not None and spent + fleet_cost[0] >= best:
            continue
        room = np.full(len(bounds), np.inf)
        alone_ok = True
        for active in moments:
            held = sum((uses[task][index] for task, index in enumerate(picked) if active[task]), np.zeros(len(bounds)))
            alone_ok = alone_ok and bool((held <= bounds).all())
            if active[-1]:
                room = np.minimum(room, bounds - held)
        if not alone_ok:
            continue
        good = (fleet_use <= room).all(axis=1)
        if limits.budget_microusd is not None:
            good &= spent + fleet_cost <= limits.budget_microusd
        if limits.max_providers is not None:
            mine = 0
            for task, index in enumerate(picked):
                mine |= masks[task][index]
            good &= np.array([(other | mine).bit_count() <= limits.max_providers for other in masks[-1]])
        if good.any():
            total = spent + int(fleet_cost[good].min())
            best = total if best is None else min(best, total)
    return best


def _active(scenario: Scenario) -> list[list[bool]]:
    """For every moment at which something starts: which workloads hold their shapes then."""
    windows = [(job.start_s, job.start_s + job.deadline_s) for job in scenario.training]
    windows += [(0.0, scenario.horizon_s) for _ in scenario.serving]
    starts = sorted({start for start, _ in windows})
    return [[start <= moment < end for start, end in windows] for moment in starts]


def _rows(scenario: Scenario):  # type: ignore[no-untyped-def]
    """(name, use of an option, bound) of every limit on what is held at one moment."""
    limits, hardware = scenario.limits, scenario.hardware

    def counting(amount, belongs):  # type: ignore[no-untyped-def]
        return lambda option: sum(count * amount(kind) for kind, count in option.shapes if belongs(kind))

    def everyone(kind: Rented) -> bool:
        return True

    if limits.max_devices is not None:
        yield "devices", counting(lambda kind: kind.shape.devices, everyone), limits.max_devices
    if limits.power_w is not None:
        yield "power", counting(lambda kind: kind.shape.devices * kind.device.tdp_w, everyone), limits.power_w
    if limits.spend_microusd_per_hour is not None:
        yield "spend", counting(lambda kind: kind.price, everyone), limits.spend_microusd_per_hour
    for index, quota in enumerate(hardware.quotas):

        def belongs(kind: Rented, quota=quota) -> bool:  # type: ignore[no-untyped-def]
            asked = (quota.provider is None or fnmatchcase(kind.provider, quota.provider)) and (
                quota.device is None or fnmatchcase(kind.device.id, quota.device)
            )
            return kind.owned is None and asked

        if quota.max_devices is not None:
            yield f"quota {index}", counting(lambda kind: kind.shape.devices, belongs), quota.max_devices
        if quota.max_shapes is not None:
            yield f"quota shapes {index}", counting(lambda kind: 1, belongs), quota.max_shapes
    for index, owned in enumerate(hardware.owned):
        yield f"owned {index}", counting(lambda kind: 1, lambda kind, i=index: kind.owned == i), owned.count


def _providers(option: Option) -> int:
    names = ("north", "south", "owned")
    mask = 0
    for kind, _ in option.shapes:
        mask |= 1 << names.index(kind.provider)
    return mask
