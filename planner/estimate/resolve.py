"""From a scenario's words and a catalog's facts to the numbers that the physics takes.

Shared by the search, which asks about every layout, and by the verifier, which asks about one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.catalog.load import device_matches, find_shape
from planner.catalog.model import Catalog, Device, Shape
from planner.equations.flops import linear_training_flop_per_token
from planner.equations.memory import usable_memory_bytes
from planner.equations.rules import batch_tokens_of_compute, optimizer_steps, tokens_per_step
from planner.estimate.bands import ErrorBand, StepMeasured, error_band, kind_of_job
from planner.estimate.device_constants import fitted_on, step_constants
from planner.estimate.engines import engine_rules
from planner.estimate.frameworks import COUNTS_AS, named_framework
from planner.estimate.layout import Layout
from planner.estimate.machine import Machine
from planner.estimate.resolve_run import run_spec
from planner.estimate.serving import ServingPeaks, serving_peaks
from planner.estimate.training import training_time
from planner.estimate.training_spec import TrainingSpec
from planner.scenario.hardware_keys import Owned
from planner.scenario.schema import DEFAULT_ESTIMATOR, Spot, TrainingJob
from planner.scenario.workload_parts import TRAINING_SIZES

DEFAULT_SEQUENCE_LENGTH = 4096
MOST_BATCH_TOKENS = 4e6  # of a step where the scenario does not say: of Llama 2 in every size, arXiv:2307.09288
ADAPTER_BATCH_SEQUENCES = 128  # of all GPT-3 experiments in Hu et al., LoRA, arXiv:2106.09685, appendix D.4
FEW_SEQUENCES = 5  # of fewer, a tenth more or less, which a batch may move by, need not hold a whole one


def sequence_length_of(job: TrainingJob, arch: Architecture) -> int:
    """The job's sequence length, or 4,096 cut to what the model can hold.  [tokens]"""
    return job.sequence_length or min(arch.max_positions or DEFAULT_SEQUENCE_LENGTH, DEFAULT_SEQUENCE_LENGTH)


def batch_bounds(job: TrainingJob, arch: Architecture, sequence_length: int) -> tuple[float, float]:
    """The asked global batch, as a range of sequences; no more than there are to train on, one figure of few whole.

    Parameters
    ----------
    job
        As the scenario says it. Where it does not, the batch follows from the compute of the run, up to
        `MOST_BATCH_TOKENS`; of adapters it is `ADAPTER_BATCH_SEQUENCES`.
    arch
        Its model.
    sequence_length
        [tokens]
    """
    batch, most = job.global_batch, sequences_of(job, sequence_length)
    if batch is None:
        low = high = float(ADAPTER_BATCH_SEQUENCES) if job.lora else batch_tokens_assumed(job, arch) / sequence_length
    elif batch.min_sequences is not None and batch.max_sequences is not None:
        low, high = batch.min_sequences, batch.max_sequences
    else:
        low, high = ((tokens or 0.0) / sequence_length for tokens in (batch.min_tokens, batch.max_tokens))
    if low == high < FEW_SEQUENCES:
        low = high = float(round(low))
    return max(min(low, most), 1.0), max(min(high, most), 1.0)


def batch_tokens_advised(job: TrainingJob, arch: Architecture) -> float:
    """The global batch that suits the compute of a job, to two digits.  [tokens]"""
    flop_count = linear_training_flop_per_token(arch.active_parameters) * job.tokens * job.epochs
    return float(f"{float(batch_tokens_of_compute(flop_count)):.1e}")


def batch_tokens_assumed(job: TrainingJob, arch: Architecture) -> float:
    """The global batch of a job that trains all weights and says none.  [tokens]"""
    return min(MOST_BATCH_TOKENS, batch_tokens_advised(job, arch))


def larger_batches_tokens(job: TrainingJob, arch: Architecture) -> list[float]:
    """Powers of two above a batch that nobody chose, the largest first, as far as they suit the compute.  [tokens]"""
    if job.global_batch is not None or job.lora is not None:
        return []
    advised = batch_tokens_advised(job, arch)
    times = (2**power for power in range(1, 6))
    return [MOST_BATCH_TOKENS * each for each in times if MOST_BATCH_TOKENS * each <= advised][::-1]


def sequences_of(job: TrainingJob, sequence_length: int) -> float:
    """Sequences that a job trains on, all epochs together: a step has no more of them."""
    return job.tokens * job.epochs / sequence_length


def training_spec(
    job: TrainingJob,
    arch: Architecture,
    device: Device | None = None,
    shape: Shape | None = None,
    step_time_ratio: float | None = None,
    spot: Spot | None = None,
    erring: float = 1.0,
) -> TrainingSpec:
    """The job as plain numbers, on one kind of machine.

    A speed that the user measured on `device` replaces the model and its penalties.

    Parameters
    ----------
    device, shape
        Where it runs; None: on any, by the tier that predicts where nothing was measured.
    step_time_ratio
        Measured over predicted step time of a run under way on such devices; None where none was measured.
    spot
        How often spot shapes are taken away, where the job runs on such.
    erring
        What predicted times are multiplied with where a scenario says to which quantile they err (`errors`). It is no
        measurement: what size costs is still added to what benchmarks of few machines said.
    """
    tier = base_tier(job, arch) if device is None else tier_on(job, arch, device)
    measured = tier == "measured"
    thumb, benchmarks = (tier == name and step_time_ratio is None for name in ("rule", "analytic"))
    return TrainingSpec(
        tokens=job.tokens,
        epochs=job.epochs,
        sequence_length=sequence_length_of(job, arch),
        precision=job.precision,
        optimizer=job.optimizer,
        attention=job.stack.attention,
        cross_entropy=job.stack.cross_entropy,
        allocator=job.stack.allocator,
        critical_batch_tokens=job.critical_batch_tokens,
        framework=framework_of(job),
        measured_mfu=measured,
        tier=tier,
        offload=job.offload or (),
        gradient_compression=job.gradient_compression or 1.0,
        lora_rank=job.lora.rank if job.lora else None,
        lora_base=job.lora.base if job.lora else "bf16",
        run=run_spec(job, shape, rule_of_thumb=thumb, from_benchmarks=benchmarks, spot=spot),
        step_time_s=job.step_time.measured_s if job.step_time else None,
        step_time_ratio=(1.0 if step_time_ratio is None else step_time_ratio) * erring,
        progress_tokens=job.progress_tokens or 0.0,
        confidence=job.confidence_share,
    )


def framework_of(job: TrainingJob) -> str | None:
    """What a job is predicted by, where it says so: a row of `planner.estimate.frameworks`, or a word of its own.

    Adapters that are left open are predicted by the Hugging Face Trainer: the programs that train them stand on it, and
    nearly all rows of adapters were measured in it.
    """
    if job.lora is not None and named_framework(job.framework) is None:
        return "hf"
    return COUNTS_AS.get(job.framework or "", job.framework)


def predicted_step_s(arch: Architecture, spec: TrainingSpec, layout: Layout, machine: Machine) -> NDArray[np.float64]:
    """One optimizer step as the model predicts it, without failures, progress or anything measured on it.  [s]

    Parameters
    ----------
    arch
        The model.
    spec
        The job; failures, progress, the ratio of step times and a critical batch are left out.
    layout
        Layouts to time.
    machine
        What all of them run on.
    """
    bare = replace(spec, run=None, progress_tokens=0.0, step_time_ratio=1.0, critical_batch_tokens=None)
    batch_tokens = tokens_per_step(layout.as_floats().global_batch, spec.sequence_length)
    steps = optimizer_steps(spec.tokens, spec.epochs, batch_tokens)
    return np.asarray(training_time(arch, bare, layout, machine).total / steps)


def base_tier(job: TrainingJob, arch: Architecture) -> str:
    """The tier that predicts where nothing was measured: the rule of thumb where only a model's size is known."""
    if not arch.layers:
        return "rule"
    return DEFAULT_ESTIMATOR if job.tier == "measured" else job.tier


def tier_on(job: TrainingJob, arch: Architecture, device: Device) -> str:
    """The tier that predicts on a device: `measured` where the user gives a speed for it.

    Parameters
    ----------
    job
        Its `mfu` gives speeds by device.
    arch
        The model.
    device
        What it runs on.
    """
    return "measured" if measured_mfu(device, job.mfu) is not None else base_tier(job, arch)


def band_on(
    job: TrainingJob, arch: Architecture, device: Device, catalog: Catalog, *, measured: StepMeasured = ""
) -> ErrorBand:
    """The error band of a job on a device.

    Where the scenario says to which quantile times err, nothing is left open of them.

    Parameters
    ----------
    job
        As the scenario says it.
    arch
        The model.
    device
        What it runs on.
    catalog
        Holds the bands of the families and the error of the rule.
    measured
        Whether a step was timed on such devices, see `step_measured`.
    """
    kind = kind_of_job(experts=arch.is_moe, adapters=job.lora is not None)
    band = error_band(catalog, device, tier_on(job, arch, device), kind=kind, measured=measured)
    return band if job.errors_share is None else replace(band, time=None)


def errors_ratio(
    job: TrainingJob, arch: Architecture, device: Device, catalog: Catalog, *, measured: StepMeasured = ""
) -> float:
    """What times on a device are multiplied with where the scenario says to which quantile they err; else 1.

    Parameters
    ----------
    job
        Its `errors_share` is that quantile.
    arch
        The model.
    device
        What it runs on.
    catalog
        Holds the bands of the families and the error of the rule.
    measured
        Whether a step was timed on such devices, see `step_measured`.
    """
    if job.errors_share is None:
        return 1.0
    kind = kind_of_job(experts=arch.is_moe, adapters=job.lora is not None)
    band = error_band(catalog, device, tier_on(job, arch, device), kind=kind, measured=measured)
    return band.time_margin(job.errors_share)


def step_measured(job: TrainingJob, shape: Shape, run: Mapping[str, Any] | None) -> StepMeasured:
    """Whether a step was timed on the devices of a shape, and in the very layout that the job is held to.

    Parameters
    ----------
    job
        What its `layout` leaves open may be chosen otherwise than it was.
    shape
        The machine that the job may run on.
    run
        Device, shape and layout that the step was timed on; None = none was.
    """
    if run is None or run["device"] != shape.device:
        return ""
    fixed, names = job.layout, (*TRAINING_SIZES, "sharding", "recompute")
    held = fixed is not None and all(getattr(fixed, name) == (run["layout"][name],) for name in names)
    return "same" if held and run["shape"] == shape.id else "another"


def measured_mfu(device: Device, mfu: Mapping[str, float]) -> float | None:
    """The share of peak that the user measured on this device, if any; the most exact pattern wins."""
    matches = [
        (pattern != device.id, -len(pattern), value)
        for pattern, value in mfu.items()
        if device_matches(device, pattern)
    ]
    return min(matches)[2] if matches else None


def training_machine(
    device: Device,
    shape: Shape,
    job: TrainingJob,
    arch: Architecture,
    catalog: Catalog,
    inter_node_bytes_per_s: float | None,
) -> Machine:
    """The machine that a job sees by the tier that predicts on it.

    The rule tier and a measured share of peak count in the peak of the job's precision. The analytic tier computes
    linear products at that peak and attention at the 16-bit one, and sustains the family's fitted shares of them.

    Parameters
    ----------
    device
        Peaks, memory and links.
    shape
        How many devices it has, and which share of one.
    job
        Its precision, and the shares of the peak that the user measured.
    arch
        The model.
    catalog
        Holds the efficiencies and the fitted constants of the families.
    inter_node_bytes_per_s
        Network of one device, one way; None = unknown: what needs it takes forever.  [B/s]

    Raises
    ------
    InputError
        The catalog names a constant of the family that the equations do not know.
    """
    measured = measured_mfu(device, job.mfu)
    mfu = measured if measured is not None else catalog.efficiencies[device.family].mfu
    peak = device.peak_flop_per_s.get(job.precision, 0.0)
    if tier_on(job, arch, device) != "analytic":
        return machine_of(device, shape, peak, mfu, inter_node_bytes_per_s)
    wide = core_peak_flop_per_s(device, job.precision)
    machine = machine_of(device, shape, wide, mfu, inter_node_bytes_per_s)
    constants = step_constants(catalog, device)
    return replace(
        machine,
        linear_flop_per_s=peak * shape.compute_share,
        multiprocessors=float(device.multiprocessors or 0) * shape.compute_share,
        link_efficiency=constants.link,
        network_efficiency=constants.network,
        network_scale=constants.scale,
        constants=constants,
        family=device.family,
        overheads=tuple(sorted(fitted_on(catalog, device).items())),
    )


def core_peak_flop_per_s(device: Device, precision: str) -> float:
    """Dense peak of what is not a linear product: 16 bits where the products are narrower.  [FLOP/s]"""
    peaks = device.peak_flop_per_s
    if precision == "fp8":
        return peaks.get("bf16") or peaks.get("fp16") or peaks.get("fp8", 0.0)
    return peaks.get(precision, 0.0)


def machine_of(
    device: Device, shape: Shape, peak_flop_per_s: float, mfu: float, inter_node_bytes_per_s: float | None
) -> Machine:
    """Rates of one device of a shape; a share of a device has its share of each rate.

    Parameters
    ----------
    device
        Memory and links.
    shape
        How many devices it has, and which share of one.
    peak_flop_per_s
        Dense, of a whole device; nan where its peaks are told apart elsewhere, as in serving.  [FLOP/s]
    mfu
        Share of the peak that is sustained.
    inter_node_bytes_per_s
        Network of one device, one way; None = unknown: what needs it takes forever.  [B/s]
    """
    link, share = device.scale_up, shape.compute_share
    host = device.host_link_bytes_per_s or 0.0
    return Machine(
        peak_flop_per_s=peak_flop_per_s * share,
        mfu=mfu,
        memory_bytes=memory_bytes(device, shape),
        memory_bandwidth_bytes_per_s=(device.memory_bandwidth_bytes_per_s or 0.0) * shape.bandwidth_share,
        pair_bytes_per_s=link.one_way_pair_bytes_per_s if link else host,
        all_bytes_per_s=link.one_way_bytes_per_s if link else host,
        scale_up_devices=max(shape.scale_up_devices, 1),
        node_devices=shape.devices,
        host_bytes_per_s=host,
        pcie=float(link is None or link.pattern == "pcie"),
        inter_node_bytes_per_s=math.nan if inter_node_bytes_per_s is None else inter_node_bytes_per_s,
    )


def memory_bytes(device: Device, shape: Shape) -> float:
    """Memory of one device, or of one slice of it.  [B]"""
    return float(shape.memory_bytes_per_device or device.memory_bytes)


def usable_bytes(device: Device, shape: Shape) -> float:
    """Memory of one device that a workload may fill.  [B]"""
    reserved = device.reserved_memory_bytes
    return float(usable_memory_bytes(memory_bytes(device, shape), math.nan if reserved is None else reserved))


HOST_MEMORY_SHARE = 0.9  # the rest is for the system, data loading and communication


def owned_shape(owned: Owned, catalog: Catalog) -> Shape:
    """The shape of a group of owned machines, with the memory of its hosts where the scenario says it.

    Parameters
    ----------
    owned
        The group.
    catalog
        Where its shape is.

    Raises
    ------
    InputError
        The catalog has no such shape.
    """
    shape, held = find_shape(catalog, owned.shape), owned.host_memory_bytes
    return shape if held is None else replace(shape, host_memory_bytes=round(held))


def host_bytes_per_device(shape: Shape) -> float | None:
    """Host memory that offloading may fill for one device of a shape; None: unknown.  [B]"""
    return None if shape.host_memory_bytes is None else HOST_MEMORY_SHARE * shape.host_memory_bytes / shape.devices


def inter_node_rate(shape: Shape, catalog: Catalog, assumed_bytes_per_s_per_shape: float | None) -> float | None:
    """Inter-node bandwidth of one device that steps are predicted with.  [B/s]

    The constants are of networks with RDMA: of a published rate there counts what the fabric sustains beside those.

    Parameters
    ----------
    shape
        Its published rate, where one is known, and its kind of network.
    catalog
        Holds the fabrics.
    assumed_bytes_per_s_per_shape
        What the scenario says of networks that are not known; it counts as said.  [B/s]
    """
    if shape.inter_node_bytes_per_s_per_device is not None:
        fabric = catalog.fabrics.get(shape.network_kind)
        return shape.inter_node_bytes_per_s_per_device * (fabric.sustained_share if fabric else 1.0)
    if assumed_bytes_per_s_per_shape is None or shape.kind in ("mig", "share"):
        return None
    return assumed_bytes_per_s_per_shape / shape.devices


def strange_network(shape: Shape, catalog: Catalog) -> bool:
    """Whether machines of a shape talk over a network of a kind that no measured step used."""
    fabric = catalog.fabrics.get(shape.network_kind)
    return shape.inter_node_bytes_per_s_per_device is not None and fabric is not None and fabric.sustained_share < 1


def serving_machine(device: Device, shape: Shape, inter_node_bytes_per_s: float | None) -> Machine:
    """The machine that a replica sees; its compute peaks come from `peaks_of`.

    Parameters
    ----------
    device
        Memory and links.
    shape
        How many devices it has, and which share of one.
    inter_node_bytes_per_s
        Network of one device, one way; None = unknown: what needs it has no rate.  [B/s]
    """
    return machine_of(device, shape, math.nan, 1.0, inter_node_bytes_per_s)


def peaks_of(arch: Architecture, weights: str, device: Device, shape: Shape, engine: str | None = None) -> ServingPeaks:
    """Peaks at which a share of a device computes a model in a format, by an engine's kernels.

    Parameters
    ----------
    arch
        The model.
    weights
        Format, a key of `serving_formats.FORMATS`.
    device
        Its peaks by number format.
    shape
        Which share of a device it has.
    engine
        As the scenario names it; None = the default engine, and one that is not known adds up at 32 bits.
    """
    rules = engine_rules(engine)
    sums = rules is not None and rules.narrow_sums
    return serving_peaks(arch, weights, device.peak_flop_per_s, narrow_sums=sums).shared(shape.compute_share)
