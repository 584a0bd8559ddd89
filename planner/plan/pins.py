"""Layouts that a scenario fixes and that cannot be: which, why, and the nearest that works."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import get_args

import numpy as np

from planner.architecture.model import Architecture
from planner.candidates.evaluated import Table
from planner.candidates.layouts import splits_context, splits_experts, splits_tensors
from planner.candidates.search import Candidates
from planner.candidates.serving import ServingTable
from planner.catalog.load import device_matches, find_shape
from planner.catalog.model import Catalog, Device
from planner.errors import InputError, Problem
from planner.estimate.engines import engine_rules
from planner.estimate.frameworks import named_framework, runs_on
from planner.estimate.kernels import no_cache, not_run
from planner.estimate.layout import cut_chunks
from planner.estimate.resolve import sequence_length_of
from planner.estimate.serving_formats import FORMATS
from planner.estimate.software import SOFTWARE
from planner.estimate.software_models import titan_flavor
from planner.plan.pin_reasons import why_nothing_fits
from planner.plan.rows.row_cells import split_document
from planner.scenario.load import with_settings
from planner.scenario.schema import ModelRef, Scenario, ServingFleet, TrainingJob
from planner.scenario.training_job import Framework

DIFFERENT = 1.0  # what any other size or policy counts for, beside its doublings
LARGEST = 1024  # sizes that are tried for one that is near
STAGES = ("none", "zero-1", "zero-2", "zero-3")
FRAMEWORK_WORDS: tuple[str, ...] = get_args(Framework)
Workload = TrainingJob | ServingFleet


def check_pins(scenario: Scenario, catalog: Catalog, load_model: Callable[[ModelRef | None], Architecture]) -> None:
    """Refuse layouts that no machine of the catalog, no model of this shape or no software of the job can have.

    Parameters
    ----------
    scenario
        The scenario, with the places of its keys.
    catalog
        Its shapes bound what can be split, its devices say which software runs on them.
    load_model
        The model that a workload names.

    Raises
    ------
    InputError
        One problem for each part of a layout that is not legal, with the nearest that is.
    """
    problems = [*_software_problems(scenario, catalog, load_model), *_batch_problems(scenario, load_model)]
    problems += _length_problems(scenario, load_model)
    for path, workload in _pinned(scenario):
        given = isinstance(workload, ServingFleet) and workload.rates is not None
        if given:
            hint = "leave layout out: what its replicas carry is given (profile)"
            problems.append(_at(scenario, f"{path}.layout", "'layout' does not act: rates are given", hint))
            continue
        arch = load_model(workload.model)
        problems += [
            _at(scenario, f"{path}.layout.{name}", *words) for name, words in _illegal(workload, arch, catalog)
        ]
    if problems:
        raise InputError(*problems)


def _batch_problems(scenario: Scenario, load_model: Callable[[ModelRef | None], Architecture]) -> Iterator[Problem]:
    """Batches of less than one sequence, which no step has, and of more than there is to train on."""
    for index, job in enumerate(scenario.training):
        batch, length = job.global_batch, sequence_length_of(job, load_model(job.model))
        most, tokens = batch.max_tokens if batch else None, job.tokens * job.epochs
        least = (batch.min_tokens or (batch.min_sequences or 0.0) * length) if batch else 0.0
        if max(least, length) > tokens:
            what, key = ("a batch", "global_batch") if least > length else ("one sequence", "tokens")
            larger = f"{what} of {max(least, length):,.0f} tokens"
            text = f"{larger} is more than the {tokens:,.0f} of {job.name}: not one step"
            hint = f"write global_batch: {length} tokens, or up to {tokens / 100:,.0f} for 100 steps"
            hint = hint if tokens >= 100 * length else "write a shorter sequence_length, or more tokens"
            yield _at(scenario, f"training[{index}].{key}", text, hint)
        elif most is not None and most < length:
            text = f"a batch of {most:,.0f} tokens is less than one sequence of {length:,}"
            hint = f"write global_batch: {length} tokens, or more"
            yield _at(scenario, f"training[{index}].global_batch", text, hint)


def _length_problems(scenario: Scenario, load_model: Callable[[ModelRef | None], Architecture]) -> Iterator[Problem]:
    """Fleets of which hardly a request fits into the positions of their model: an engine refuses each of them.

    vLLM and SGLang do not start with a longer limit than the model's own, and answer longer requests with an error.
    Whoever has measured a fleet runs a model that was stretched.
    """
    for index, fleet in enumerate(scenario.serving):
        if fleet.model is None or fleet.throughput_tokens_per_s_per_device is not None:
            continue
        arch, traffic = load_model(fleet.model), fleet.traffic
        lengths = np.asarray(traffic.input_tokens + traffic.output_tokens)
        squares = traffic.input_second_moment - traffic.input_tokens**2
        squares = squares + traffic.output_second_moment - traffic.output_tokens**2
        short = lengths - np.sqrt(np.maximum(squares, 0.0))  # one standard deviation below: some are no longer
        if not arch.max_positions or (short[np.asarray(traffic.share) > 0] <= arch.max_positions).any():
            continue
        keys = [key for key in ("trace", "histogram") if getattr(fleet, key) is not None]
        mean = float(np.average(lengths, weights=traffic.share))
        text = (
            f"requests of {fleet.name} are longer than the {arch.max_positions:,} positions of {arch.name} "
            f"({mean:,.0f} tokens on average, prompt and answer): engines refuse them"
        )
        hint = (
            "name a model with longer contexts (plan models list), or the config.json of one that was stretched, with "
            "its max_position_embeddings"
        )
        place = f"serving[{index}].{keys[0] if keys else 'input_tokens'}"
        yield _at(scenario, place, text, hint, reference="out-of-range")


def _software_problems(
    scenario: Scenario, catalog: Catalog, load_model: Callable[[ModelRef | None], Architecture]
) -> Iterator[Problem]:
    """Software that runs on none of the devices that are allowed, or that does not train such a job."""
    hardware = scenario.hardware
    allowed = [
        device
        for device in catalog.devices.values()
        if any(device_matches(device, pattern) for pattern in hardware.allow)
        and not any(device_matches(device, pattern) for pattern in hardware.deny)
    ]
    if "*" in hardware.exclude or set(hardware.kinds or ()) == {"owned"}:  # nothing is rented
        owned = {find_shape(catalog, one.shape).device for one in hardware.owned}
        allowed = [device for device in allowed if device.id in owned]
    for index, job in enumerate(scenario.training):
        path, name = f"training[{index}].framework", job.framework
        there = [device for device in allowed if "training" in device.uses]
        if name and there and not any(runs_on(name, device.frameworks) for device in there):
            able = {one for device in there for one in FRAMEWORK_WORDS if runs_on(one, device.frameworks)}
            text = f"{name} runs on none of the devices that are allowed: {_some(there)}"
            yield _both(scenario, path, text, f"write framework: {' or '.join(sorted(able))}" if able else "")
        software = SOFTWARE.get(name or "")
        if software is not None and job.lora is not None and not software.bases:
            yield _both(scenario, path, f"{software.program} trains no adapters", "leave framework out", "lora")
        if name == "torchtitan" and titan_flavor(load_model(job.model)) is None:
            hint = "write framework: fsdp, which plans the same without its launch file"
            yield _both(scenario, path, f"torchtitan 0.2.2 ships no model of the shape of that of {job.name}", hint, "")
        if software is not None and job.lora is None and not software.whole:
            hint = "write lora: {rank: 16}, or another framework"
            yield _both(scenario, path, f"{software.program} is planned for adapters alone", hint, "")
    for index, fleet in enumerate(scenario.serving):
        there = [device for device in allowed if "serving" in device.uses]
        if (lacks := no_cache(fleet)) is not None:
            yield _both(scenario, f"serving[{index}].kv_cache", *lacks, "")
            continue
        reasons = [not_run(fleet, device) for device in there] if fleet.engine else []
        if reasons and all(reasons):
            text = f"{fleet.engine} serves {fleet.name} on none of the devices that are allowed: {reasons[0]}"
            rules = engine_rules(fleet.engine)
            formats = rules.formats if rules is not None and fleet.weights not in rules.formats else ()
            bits = int(FORMATS[fleet.weights].bits)
            near = sorted(formats, key=lambda one: abs(int(FORMATS[one].bits) - bits))[:3]
            served = f"write weights: {' or '.join(near)}, or " if near else ""
            yield _both(
                scenario, f"serving[{index}].engine", text, f"{served}name another engine, or allow other devices"
            )


def _some(devices: Sequence[Device]) -> str:
    names = [device.id for device in devices]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _both(scenario: Scenario, path: str, text: str, hint: str, other: str = "hardware.allow") -> Problem:
    """A problem with the line of the software and that of what it does not go with: the devices, or a key beside it."""
    beside = path.rpartition(".")[0] + f".{other}" if other == "lora" else other
    found = (scenario.places.get(path), scenario.places.get(beside) if beside else None)
    places = tuple(place for place in found if place is not None)
    return Problem(reference="software-does-not-run", message=text, places=places, hint=hint)


def demand_ways(listed: Candidates, search: Callable[[Scenario], Candidates]) -> None:
    """Refuse a layout that nothing fits, where the workload could run in another one.

    Parameters
    ----------
    search
        The ways of another scenario.

    Raises
    ------
    InputError
        What came nearest with the layout, and the layout nearest to it that works.
    """
    for path, workload in _pinned(listed.scenario):
        if len(listed.tables[workload.name]) or workload.name in listed.cut:
            continue
        near = _nearest_that_works(listed.scenario, f"{path.split('[')[0]}.{workload.name}.layout", workload, search)
        if not near:
            continue  # the layout is not why
        why, way_out = why_nothing_fits(listed, workload.name)
        if not why:
            drops = [drop for drop in listed.ledgers[workload.name] if drop.nearest and drop.what != "offers"]
            why = f"{drops[-1].reason}: {drops[-1].nearest}" if drops else "it fits no machine that may be used"
        hint = f"the nearest that works: {near}" + (f"; {way_out}" if way_out else "")
        text = f"no way to run {workload.name} with layout {pinned_text(workload)}; {why}"
        raise InputError(_at(listed.scenario, f"{path}.layout", text, hint, "layout-does-not-fit"))


def _nearest_that_works(
    scenario: Scenario, key: str, workload: Workload, search: Callable[[Scenario], Candidates]
) -> str:
    """The layout nearest to the one that is fixed; "" where there is none.

    One part freed leaves few layouts; two parts that differ are further away than one that differs by half or double.
    """
    pin, found = workload.layout, list[tuple[float, int, str]]()
    assert pin is not None
    fixed: dict[str, Sequence[object]] = {**pin.sizes}
    fixed |= {name: getattr(pin, name) for name in ("sharding", "recompute") if getattr(pin, name, None)}
    for freed in fixed if len(fixed) > 1 else ():
        rest = {name: list(sizes) for name, sizes in fixed.items() if name != freed}
        table = search(with_settings(scenario, [f"{key}={json.dumps(rest)}"])).tables[workload.name]
        found += [_nearest(table, workload)] if len(table) else []
    if found and min(found)[0] <= 2 * DIFFERENT:
        return min(found)[-1]
    free = search(with_settings(scenario, [f"{key}=null"])).tables[workload.name]
    found += [_nearest(free, workload)] if len(free) else []
    return min(found)[-1] if found else ""


def pinned_text(workload: Workload) -> str:
    """What is fixed, in words: "tp2 pp1 zero-3"."""
    pin = workload.layout
    assert pin is not None
    parts = [f"{name}{'/'.join(map(str, sizes))}".replace("micro_batch", "mb") for name, sizes in pin.sizes.items()]
    policies = [getattr(pin, name, None) or () for name in ("sharding", "recompute")]
    return " ".join([*parts, *("/".join(policy) for policy in policies if policy)])


def _pinned(scenario: Scenario) -> Iterator[tuple[str, Workload]]:
    named = [("training", scenario.training), ("serving", scenario.serving)]
    for kind, workloads in named:
        for index, workload in enumerate(workloads):
            if workload.layout is not None:  # type: ignore[attr-defined]
                yield f"{kind}[{index}]", workload  # type: ignore[misc]


def _at(scenario: Scenario, path: str, message: str, hint: str, reference: str = "illegal-layout") -> Problem:
    place = scenario.places.get(path) or scenario.places.get(path.rpartition(".")[0])
    return Problem(reference=reference, message=message, places=(place,) if place else (), hint=hint)


def _illegal(workload: Workload, arch: Architecture, catalog: Catalog) -> Iterator[tuple[str, tuple[str, str]]]:
    """Name of each part of a layout that cannot be, why, and what to write in its place."""
    pin = workload.layout
    assert pin is not None
    for name, able, why in _rules(workload, arch, catalog):
        fixed = pin.sizes.get(name, ())
        wrong = [size for size in fixed if not able(size)]
        if wrong and len(wrong) == len(fixed):
            near = _near(wrong[0], able)
            hint = f"write {name}: {' or '.join(map(str, near))}" if near else f"leave {name} out"
            yield name, (f"{name} {wrong[0]}: {why}", hint)
    if isinstance(workload, TrainingJob):
        yield from _by_software(workload)


def _rules(
    workload: Workload, arch: Architecture, catalog: Catalog
) -> Iterator[tuple[str, Callable[[int], bool], str]]:
    pin = workload.layout
    assert pin is not None
    sizes, layers = pin.sizes, max(arch.layer_count, 1)
    widest = max((shape.domain_devices for shape in catalog.shapes.values()), default=1)
    heads = (
        ", ".join(dict.fromkeys(f"{group.query_heads} heads" for group in arch.layers)) or "a model of unknown shape"
    )
    yield "tp", lambda tp: tp <= widest and splits_tensors(arch, tp), f"it does not divide {heads} and their widths"
    yield "pp", lambda pp: pp <= (layers if arch.layers else 1), f"the model has {arch.layer_count} layers"
    experts = max((group.experts for group in arch.layers), default=0)
    yield "ep", lambda ep: splits_experts(arch, ep), f"the model has {experts or 'no'} experts"
    if isinstance(workload, ServingFleet):
        yield "dp", lambda dp: dp == 1 or arch.is_moe, "only replicas with experts spread attention over ranks"
        return
    length = sequence_length_of(workload, arch)
    yield "cp", lambda cp: splits_context(arch, length, cp), f"{length} tokens make no two chunks for each rank"
    stages = sizes.get("pp", tuple(range(1, layers + 1)))

    def chunks(vpp: int) -> bool:
        return vpp == 1 or any(pp > 1 and cut_chunks(layers, pp, vpp) for pp in stages)

    many = "/".join(map(str, stages[:4]))
    text = f"{layers} layers make no chunks of nearly one size of it for {many} stages"
    yield "vpp", chunks, "virtual stages are of a pipeline, of pp 2 or more" if set(stages) == {1} else text


def _by_software(job: TrainingJob) -> Iterator[tuple[str, tuple[str, str]]]:
    """What the software that the job names does not have."""
    framework, pin = named_framework(job.framework), job.layout
    if framework is None or pin is None:
        return
    stages = [STAGES[stage] for stage in framework.stages]
    if pin.sharding and not set(pin.sharding) & set(stages):
        yield "sharding", (f"{framework.name} has no {pin.sharding[0]}", f"write sharding: {stages[-1]}")
    if pin.pp and min(pin.pp) > 1 and not framework.pipeline:
        yield "pp", (f"{framework.name} has no pipeline", "write pp: 1")
    software = SOFTWARE.get(job.framework or "")
    if pin.vpp and min(pin.vpp) > 1 and software is not None and not software.virtual:
        yield "vpp", (f"{software.program} has no virtual stages", "write vpp: 1")


def _near(size: int, able: Callable[[int], bool]) -> list[int]:
    """The nearest sizes that can be, one below and one above."""
    below = next((one for one in range(size - 1, 0, -1) if able(one)), None)
    above = next((one for one in range(size + 1, min(2 * size, LARGEST) + 1) if able(one)), None)
    return [one for one in (below, above) if one is not None]


def _nearest(table: Table, workload: Workload) -> tuple[float, int, str]:
    """The way of a table that differs least from what is fixed: by how much, at what cost, and in words."""
    pin = workload.layout
    assert pin is not None
    policies = {name: getattr(pin, name, None) for name in ("sharding", "recompute")}
    named = [*pin.sizes, *(name for name, fixed in policies.items() if fixed)]

    def far(row: int) -> float:
        split = _split(table, row)
        off = sum(_off(split[name], sizes) for name, sizes in pin.sizes.items())
        return off + sum(DIFFERENT for name, fixed in policies.items() if fixed and split[name] not in fixed)

    if isinstance(table, ServingTable):
        off, cost, best = min((far(row), table.alone_cost_microusd(row), row) for row in range(len(table)))
    else:  # a million rows have few layouts
        keys = np.zeros(len(table), dtype=np.int64)
        for part in (np.asarray(getattr(table.layout, name), dtype=np.int64) for name in named):
            keys = keys * (int(part.max()) + 1) + part
        _, firsts, of = np.unique(keys, return_index=True, return_inverse=True)
        offs = np.array([far(int(row)) for row in firsts])[of]
        rows = np.flatnonzero(offs == offs.min())
        best = int(rows[np.argmin(np.asarray(table.cost_microusd)[rows])])
        off, cost = float(offs[best]), int(table.cost_microusd[best])
    split = _split(table, best)
    return off, cost, f"{{{', '.join(f'{name}: {split[name]}' for name in named)}}} on {table.sites[best].device.id}"


def _split(table: Table, row: int) -> Mapping[str, object]:
    return table.layout_row(row) if isinstance(table, ServingTable) else split_document(table.layout, row)


def _off(size: object, wanted: Sequence[int]) -> float:
    """How far a size is from the nearest one that is wanted, in doublings; anything at all counts for one."""
    assert isinstance(size, int)
    least = min(abs(math.log2(size / one)) for one in wanted)
    return least + (DIFFERENT if least > 0 else 0.0)
