"""Which layouts programs of training take, as masks over arrays: what `planner.estimate.software` says in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from planner.architecture.model import Architecture
from planner.estimate.frameworks import COUNTS_AS, framework_can, named_framework, planned_framework
from planner.estimate.layout import Layout
from planner.estimate.software import (
    MOVED,
    MUON_STAGES,
    PACKED,
    PROGRAMS,
    SOFTWARE,
    STAGES,
    UNMASTERED,
    Software,
    equal_stages,
    experts_take_replicas,
    joins_slices,
    programs_of,
    whole_rounds,
)
from planner.estimate.software_models import titan_flavor
from planner.scenario.schema import TrainingJob

# Of mixtures of experts with sequences up to this length context parallelism is advised on many devices alone
SHORT_TOKENS, MANY_DEVICES = 8192, 128


def can(software: Software, layout: Layout) -> Any:
    """Mask of the layouts that the table says a program has.

    Parameters
    ----------
    software
        A row of the table.
    layout
        Layouts, as arrays.
    """

    def stage_in(names: tuple[str, ...]) -> Any:
        return np.array([name in names for name in STAGES])[np.asarray(layout.sharding)]

    def one_or(size: Any, able: Any) -> Any:
        return (np.asarray(size) == 1) | able

    shared = np.asarray(layout.dp) * np.asarray(layout.cp)
    mask = one_or(shared, stage_in(software.stages)) & one_or(layout.pp, stage_in(software.under_pipeline))
    mask = mask & one_or(layout.tp, stage_in(software.beside_tensors)) & one_or(layout.vpp, software.virtual)
    mask = mask & one_or(layout.cp, software.context) & one_or(layout.ep, software.experts)
    kept = np.array([name in software.recompute for name in ("none", "selective", "full")])
    return mask & kept[np.asarray(layout.recompute)]


def named_can(job: TrainingJob, layout: Layout) -> Any:
    """Mask of the layouts of what a job names: of its prediction and its program; None of nothing.

    Of a program that is predicted by a row of its own name, no pipeline unless it has one in its configuration or the
    job fixes `pp`, and no chunks of layers between stages unless it has these: DeepSpeed's pipeline is a class of the
    user's own model ("Pipeline Parallelism" of its documentation, read on 2026-11-28), and its context and expert
    parallelism are code, too: such sizes count where the job fixes them. Of Muon, and of optimizers without master
    weights, the stages that the program has them in, unless the job asks for none of these.

    Parameters
    ----------
    job
        Its word for the framework, its layout and its adapters count.
    layout
        Layouts, as arrays.
    """
    name = job.framework or ""
    framework = named_framework(name)
    if framework is None:
        return None
    mask = framework_can(framework, layout)
    if name in COUNTS_AS:
        mask = mask & can(SOFTWARE[name], layout)
    elif (software := SOFTWARE.get(name)) is not None:
        staged = bool(software.under_pipeline) or _fixes(job, "pp")
        mask = mask & ((np.asarray(layout.pp) == 1) | staged) & ((np.asarray(layout.vpp) == 1) | software.virtual)
        mask = mask & ((np.asarray(layout.cp) == 1) | software.context | _fixes(job, "cp"))
        mask = mask & ((np.asarray(layout.ep) == 1) | software.experts | _fixes(job, "ep"))
    if (own := SOFTWARE.get(PROGRAMS.get(name, name))) is not None and set(_kept(own, job)) & set(job.sharding):
        mask = mask & ((np.asarray(layout.devices) == 1) | _keeps(own, job, layout))
    return mask & cuts_base(job, layout) & _moves(job, layout)


def on_gpus(job: TrainingJob, arch: Architecture, layout: Layout) -> Any:
    """Mask of the layouts that some program has on GPUs, of jobs left open or of FSDP; None where nothing is exported.

    Megatron-LM and torchtitan together have all that is advised. Of other models, DeepSpeed and those that load them
    from the hub take fewer; a mixture of experts that none of them splits by experts is left to programs that are not
    exported. FSDP has no pipeline of its own: beside one it is torchtitan's, for the models that torchtitan ships.

    Parameters
    ----------
    job, arch
        What is trained.
    layout
        Layouts, as arrays.
    """
    named = named_framework(job.framework)
    if job.lora is not None or (named is not None and named.name != "fsdp"):
        return None
    own = SOFTWARE.get(job.framework or "")
    programs = [own] if own else [SOFTWARE[name] for name in programs_of(job, arch, "gpu")]
    if not programs or (arch.is_moe and not any(software.experts for software in programs)):
        return None
    masks = [can(one, layout) & _keeps(one, job, layout) & _cuts(one, arch, layout) for one in programs]
    return np.any(masks, axis=0) & _moves(job, layout)


def _cuts(software: Software, arch: Architecture, layout: Layout) -> Any:
    """Mask of the pipelines that a program makes of a model: torchtitan, of some of those it ships, as `_OWN` says."""
    flavor = titan_flavor(arch) if software.name == "torchtitan" else None
    if flavor is None:
        return np.full(np.shape(layout.pp), True)
    pp, vpp = np.asarray(layout.pp), np.asarray(layout.vpp)
    even = -(-flavor.layers // -(-flavor.layers // (pp * vpp))) == pp * vpp
    return (pp == 1) | (flavor.pipeline & ((vpp <= 2) | even))


def _keeps(software: Software, job: TrainingJob, layout: Layout) -> Any:
    """Mask of the layouts whose shards a program has with the optimizer of a job: as `_OWN` says it in words."""
    stages = _kept(software, job)
    return np.array([name in stages for name in STAGES])[np.asarray(layout.sharding)]


def _moves(job: TrainingJob, layout: Layout) -> Any:
    """Mask of the layouts whose activations some program moves to the host, if they are to; all where the job asks for
    none of these: as `_of_deepspeed` says it in words.
    """
    free = "activations" not in (job.offload or ()) or not set(MOVED) & set(job.recompute)
    return np.array([free or name in MOVED for name in ("none", "selective", "full")])[np.asarray(layout.recompute)]


def _kept(software: Software, job: TrainingJob) -> tuple[str, ...]:
    if software.name == "axolotl" and job.optimizer in UNMASTERED:
        return ("none",)
    return MUON_STAGES.get(software.name, ()) if job.optimizer == "muon" else STAGES


def open_can(job: TrainingJob, arch: Architecture, layout: Layout, kind: str, family: str) -> Any:
    """Mask of the layouts that some program of a kind of device has on one slice, of an open job; None: nobody knows.

    Where no program makes the model, those of the software that all its times are predicted by.

    Parameters
    ----------
    job, arch
        What is trained.
    layout
        Layouts, as arrays.
    kind
        Of device: gpu | tpu ...
    family
        Of the device.
    """
    if job.lora is not None:
        return None
    masks = [
        can(software, layout) & _JOINED[software.name](arch, layout)
        for software in SOFTWARE.values()
        if kind in software.kinds and software.name in _JOINED
    ]
    mask = np.any(masks, axis=0) if masks else None
    if mask is None or not mask.any():
        some = [planned_framework(None, family, stage) for stage in range(len(STAGES))]
        mask = framework_can(some[0], layout) if some[0] is some[-1] else None
    return mask


def open_advised(
    job: TrainingJob, able: Any, dp: Any, ep: Any, pp: Any, devices: Any, kind: str, slice_devices: int
) -> Any:
    """Mask of the layouts that are advised among those that some program has; all count where none has any.

    On TPUs sharded data parallelism and tensor parallelism are what is advised, and data parallelism between slices
    ("How to Scale Your Model", Austin et al. 2025, on training; MaxText's recipes); no measured row has a pipeline
    there. Unless the job fixes `pp`, one counts only where over as many chips there is nothing else.

    Parameters
    ----------
    job
        What is trained.
    able
        (n,) mask of `open_can`, or None.
    dp, ep, pp, devices
        (n,) degrees of parallelism and devices of each layout.
    kind
        Of device: gpu | tpu ...
    slice_devices
        Of one shape, which is a slice where devices are TPUs.
    """
    mask = np.full(np.shape(devices), True)
    if able is not None:
        slices = np.maximum(devices // slice_devices, 1) if kind == "tpu" else 1  # else a network joins all nodes
        joined = able & joins_slices(dp, ep, pp, slices)
        mask = joined if joined.any() else mask
    if kind != "tpu" or _fixes(job, "pp"):
        return mask
    piped = pp > 1
    return mask & ~(piped & np.isin(devices, devices[mask & ~piped]))


def adapters_can(job: TrainingJob, layout: Layout) -> Any:
    """Mask of the layouts in which some program of the table trains the adapters of a job.

    Parameters
    ----------
    job
        What its frozen weights are kept in, and whether it fixes `tp`.
    layout
        Layouts, as arrays.
    """
    masks = [can(software, layout) for software in SOFTWARE.values() if software.bases]
    return np.any(masks, axis=0) & cuts_base(job, layout) & _moves(job, layout)


def cuts_base(job: TrainingJob, layout: Layout) -> Any:
    """Mask of the layouts that frozen weights can be cut for; of a job that fixes `tp`, all.

    Packed ones are shared out by ZeRO or FSDP (PEFT, "DeepSpeed" and "Fully Sharded Data Parallel", read on
    2026-11-28); for tensor parallelism nothing of the kind is documented. Those of 16 bits are cut by programs that are
    not exported, as Megatron-Bridge, and must be named; DeepSpeed's tensor parallelism stops under adapters.
    """
    named = job.framework != "deepspeed" and named_framework(job.framework) is not None
    whole = job.lora is None or (named and job.lora.base not in PACKED)
    return (np.asarray(layout.tp) == 1) | (whole or _fixes(job, "tp"))


def _fixes(job: TrainingJob, size: str) -> bool:
    return job.layout is not None and size in job.layout.sizes


def _joined_by_maxtext(arch: Architecture, layout: Layout) -> Any:
    """Mask of the layouts that MaxText's rules between sizes allow on one slice: what `_of_maxtext` says in words."""
    dp, pp, vpp, ep = (np.asarray(size) for size in (layout.dp, layout.pp, layout.vpp, layout.ep))
    passes = np.asarray(layout.global_batch) // (dp * np.asarray(layout.micro_batch))
    apart = (ep == 1) | (np.asarray(layout.sharding) != STAGES.index("zero-1"))
    mask = equal_stages(arch.layer_count, pp, vpp) & whole_rounds(passes, pp) & experts_take_replicas(dp, ep)
    return mask & apart


_JOINED: Mapping[str, Callable[[Architecture, Layout], Any]] = MappingProxyType({"maxtext": _joined_by_maxtext})
