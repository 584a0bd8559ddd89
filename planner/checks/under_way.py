"""A run under way: whether the ratio of its measured step time to the predicted one is what the plan says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.architecture.model import Architecture
from planner.catalog.load import find_shape
from planner.catalog.model import Catalog, Shape
from planner.checks.findings import Finding, cell_findings
from planner.checks.layout import training_layout_findings
from planner.estimate.layout import Layout
from planner.estimate.resolve import inter_node_rate, predicted_step_s, training_machine, training_spec, usable_bytes
from planner.estimate.training import training_memory
from planner.scenario.schema import Scenario, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.plan import UnderWay
    from planner.plan.model.rows import TrainingLayout

STAGES = {"none": 0, "zero-1": 1, "zero-2": 2, "zero-3": 3}
LEVELS = {"none": 0, "selective": 1, "full": 2}


def layout_of(split: TrainingLayout, devices: int) -> Layout:
    """The layout that a document spells out."""
    return Layout(
        devices=devices,
        sharding=STAGES[split["sharding"]],
        recompute=LEVELS[split["recompute"]],
        global_batch=split["global_batch_sequences"],
        dp=split["dp"],
        tp=split["tp"],
        pp=split["pp"],
        vpp=split["vpp"],
        cp=split["cp"],
        ep=split["ep"],
        micro_batch=split["micro_batch"],
    )


def ratio_on(under_way: UnderWay | None, device: str) -> float | None:
    """Measured over predicted step time on a device; None where none was measured."""
    return float(under_way["ratio"]) if under_way and under_way["device"] == device else None


def under_way_findings(
    job: TrainingJob, arch: Architecture, scenario: Scenario, catalog: Catalog, stated: UnderWay | None
) -> Iterator[Finding]:
    """Everything wrong with what a plan says of the run under way.

    Parameters
    ----------
    job
        A job of the scenario, with a measured step time or without.
    arch
        Its model.
    scenario
        Its first owned hardware is what the step was timed on, unless the job says on what.
    catalog
        Shapes, devices, and the constants that predict a step.
    stated
        What the plan says; None = nothing, which is right where no step time was measured.
    """
    if job.step_time is None:
        if stated is not None:
            yield Finding("wrong-run", f"{job.name}: the scenario gives no step time")
        return
    if stated is None:
        yield Finding("wrong-run", f"{job.name}: the measured step time is left out")
        return
    shape, count = _measured_on(job, scenario, catalog)
    devices, given = count * shape.devices, job.step_time.layout.model_dump(exclude_none=True)
    named = "pp" in given and "sharding" in given
    problems = list(training_layout_findings(job, arch, stated["layout"], shape, devices, stated=named))
    yield from problems
    yield from cell_findings("wrong-run", job.name, stated["layout"], given)
    if problems:
        return
    layout, device = layout_of(stated["layout"], devices), catalog.devices[shape.device]
    spec = training_spec(job, arch, device, shape)
    if float(training_memory(arch, spec, layout, device.family).total) > usable_bytes(device, shape):
        yield Finding("does-not-fit", f"{job.name}: the run under way does not fit {device.id}")
    rate = inter_node_rate(shape, catalog, scenario.hardware.assume_inter_node_bytes_per_s)
    machine = training_machine(device, shape, job, arch, catalog, rate)
    predicted_s = float(predicted_step_s(arch, spec, layout, machine))
    cells = {
        "device": device.id,
        "shape": shape.id,
        "count": count,
        "measured_step_s": job.step_time.measured_s,
        "predicted_step_s": predicted_s,
        "ratio": job.step_time.measured_s / predicted_s,
    }
    yield from cell_findings("wrong-run", job.name, stated, cells)


def _measured_on(job: TrainingJob, scenario: Scenario, catalog: Catalog) -> tuple[Shape, int]:
    given, owned = job.step_time, scenario.hardware.owned
    shape, count = (given.shape, given.count) if given is not None else (None, None)
    return find_shape(catalog, shape or owned[0].shape), count or owned[0].count
