"""What each program of training can run: the one table that exporters, messages and plans read.

A row says which layouts, devices, recipes and adapters a program takes when it is configured, not programmed; what it
refuses beyond that stands in a function beside the table. `lack` tells the first thing that is missing, and what of the
scenario to change for it. What a program has no words for in a model's own config is the exporter's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Device, Shape
from planner.estimate.frameworks import planned_framework, software_stage
from planner.estimate.layout import ENDS, chunk_layers, cut_chunks, equal_chunks
from planner.estimate.resolve import framework_of, sequence_length_of
from planner.estimate.software_models import MEGATRON_FAMILIES, maxtext_model, titan_flavor
from planner.scenario.schema import TrainingJob

STAGES = ("none", "zero-1", "zero-2", "zero-3")
OLD_FAMILIES = ("kepler", "maxwell", "pascal", "volta", "turing")  # which Transformer Engine does not run on
_ADAM = ("adamw", "adam")
_BASES = ("bf16", "fp16", "nf4", "int8")
PROGRAMS = {"megatron": "torchrun"}  # what a job names, where the format that starts it has another name
# libraries that a job may name, and what of the table stands on them
LIBRARIES: Mapping[str, tuple[str, ...]] = MappingProxyType({"jax": ("maxtext",), "tensorflow": ()})
UNMASTERED = ("adamw-8bit-no-master", "adamw-pure-bf16")  # without a copy of the weights in 32 bits
PACKED = ("nf4", "int8")  # of bitsandbytes: whole matrices in blocks with scales, which no tensor parallelism cuts


class Lack(NamedTuple):
    """What a program does not have, and what of the scenario to change for it; "" where that does not help."""

    reason: str
    way: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How one job is split, as far as programs differ in it."""

    dp: int
    tp: int
    pp: int
    vpp: int
    cp: int
    ep: int
    micro_batches: int
    sharding: str
    recompute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One allocation of a job, as far as programs differ in it."""

    job: TrainingJob
    arch: Architecture | None
    model: str  # its name
    sequence_length: int
    layout: Split
    device: str
    kind: str  # gpu | tpu | npu ...; "" unknown
    family: str
    part: bool = False  # several parts of devices, which do not join in collectives
    slices: int = 1  # nodes of one job; of TPUs, slices
    mixed: bool = False  # the batch is shared with machines of another offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """One program of training."""

    name: str  # of its format in `plan export`
    program: str
    predicted: tuple[str, ...]  # rows of planner.estimate.frameworks that time and memory of it are predicted by
    kinds: tuple[str, ...] = ("gpu", "")  # of devices
    stages: tuple[str, ...] = STAGES
    under_pipeline: tuple[str, ...] = ()  # stages beside a pipeline; () no pipeline
    beside_tensors: tuple[str, ...] = STAGES  # stages beside tensor parallelism
    virtual: bool = False  # several chunks of layers a stage
    context: bool = False
    experts: bool = False
    recompute: tuple[str, ...] = ("none", "selective", "full")
    whole: bool = True  # trains all weights
    bases: tuple[str, ...] = ()  # formats of frozen weights under adapters
    precisions: tuple[str, ...]
    optimizers: tuple[str, ...]
    offload: tuple[str, ...] = ()
    because: tuple[tuple[str, str], ...] = ()  # in place of the plain words, by what is missing


# Read from the sources that each exporter names, with version and date
SOFTWARE: Mapping[str, Software] = MappingProxyType(
    {
        software.name: software
        for software in (
            Software(
                name="torchrun", program="Megatron-LM",
                predicted=("megatron", "megatron-2022", "megatron-bridge", "megatron-bridge-graphs"),
                under_pipeline=("none", "zero-1"), virtual=True, context=True, experts=True,
                precisions=("fp32", "fp16", "bf16", "fp8"), offload=("optimizer",),
                optimizers=(*_ADAM, "adamw-megatron", "adamw-fsdp", "adamw-deepspeed", "adamw-bf16-moments", "sgd",
                            "sgd-momentum", "muon"),
                because=(("adapters", "Megatron-LM's own script trains no adapters"),
                         ("pipeline stage", "Megatron-FSDP was not seen to take a pipeline")),
            ),
            Software(
                name="torchtitan", program="torchtitan", predicted=("fsdp",), stages=("none", "zero-2", "zero-3"),
                under_pipeline=("none", "zero-2", "zero-3"), virtual=True, context=True, experts=True,
                precisions=("fp32", "bf16", "fp8"), offload=("optimizer",),
                optimizers=(*_ADAM, "adamw-fsdp", "adamw-pure-bf16"),
                because=(("precision", "torchtitan has no fp16 with loss scaling"),),
            ),
            Software(
                name="deepspeed", program="DeepSpeed", predicted=("deepspeed", "megatron-deepspeed"), bases=_BASES,
                beside_tensors=("none", "zero-1", "zero-2"), precisions=("fp32", "fp16", "bf16"),
                offload=("optimizer", "activations"),
                optimizers=(*_ADAM, "adamw-deepspeed", "adamw-megatron", "adamw-fsdp", "adamw-pure-bf16", "muon", "sgd",
                            "sgd-momentum", "adafactor"),
                because=(("pipeline", "a pipeline is code in DeepSpeed (PipelineModule), not configuration"),
                         ("context", "context parallelism is code in DeepSpeed (Ulysses), not configuration"),
                         ("experts", "experts are split by code in DeepSpeed's MoE layer"),
                         ("precision", "DeepSpeed's configuration has no fp8 products")),
            ),
            Software(
                name="trl", program="TRL", predicted=("hf",), beside_tensors=(), recompute=("none", "full"),
                whole=False, bases=_BASES, precisions=("fp32", "fp16", "bf16"),
                optimizers=("adamw", "adamw-fsdp", "adamw-deepspeed", "adamw-megatron", "adamw-8bit", "adafactor",
                            "sgd"),
            ),
            Software(
                name="axolotl", program="Axolotl", predicted=("hf",), beside_tensors=(), recompute=("none", "full"),
                bases=_BASES, precisions=("fp32", "fp16", "bf16"),
                optimizers=("adamw", "adamw-fsdp", "adamw-deepspeed", "adamw-megatron", "adamw-8bit", "adafactor",
                            "sgd", *UNMASTERED),
                because=(("tensors", "Axolotl splits tensors beside FSDP2 alone, which is not exported"),
                         ("context", "Axolotl's ring attention is not exported")),
            ),
            Software(
                name="maxtext", program="MaxText", predicted=("maxtext", "jax"), kinds=("tpu",),
                under_pipeline=("none", "zero-1", "zero-3"), stages=("none", "zero-1", "zero-3"), virtual=True,
                context=True, experts=True, precisions=("fp32", "bf16"), optimizers=("adamw", "adam", "sgd"),
                offload=("optimizer",),
            ),
        )
    }
)  # fmt: skip


def lack(name: str, asked: Asked) -> Lack | None:
    """What a program lacks for an allocation: the first thing; None where it runs it.

    Parameters
    ----------
    name
        Of SOFTWARE.
    asked
        The allocation.
    """
    return next(_lacks(name, asked), None)


def _lacks(name: str, asked: Asked) -> Iterator[Lack]:
    return (found for look in (_common, _by_table, _OWN[name]) for found in look(SOFTWARE[name], asked))


def able(asked: Asked) -> list[str]:
    """Programs that run an allocation: those that its time and memory were predicted for, then the others.

    Parameters
    ----------
    asked
        The allocation.
    """
    return [name for name in _foreseen_first(asked) if lack(name, asked) is None]


def closest(asked: Asked) -> tuple[str, Lack]:
    """Of an allocation that no program runs: the program nearest to it, "" where none runs on its device, and why.

    Parameters
    ----------
    asked
        The allocation, of which `able` names no program.
    """
    there = [name for name in _foreseen_first(asked) if asked.kind in SOFTWARE[name].kinds]
    if not there:  # of Trainium, Gaudi ...: naming one of them would say that it is this one that lacks something
        none = f"{asked.device} is neither GPU nor TPU, and all that it writes for runs on those alone"
        return "", next(_common(next(iter(SOFTWARE.values())), asked), Lack(none))
    lacks = {name: list(_lacks(name, asked)) for name in there}
    named = [name for name, found in lacks.items() if len(found) == 1 and found[0].way == _NAME_AXOLOTL]
    asks = PROGRAMS.get(asked.job.framework or "", asked.job.framework)
    # the one that is asked for, or one that only has to be, before what would change the job
    first = next((name for name in (asks, *named, there[0]) if name in lacks), there[0])
    return first, lacks[first][0]


def _foreseen_first(asked: Asked) -> list[str]:
    stage = STAGES.index(asked.layout.sharding)
    devices = asked.layout.dp * asked.layout.tp * asked.layout.pp * asked.layout.cp
    row = planned_framework(framework_of(asked.job), asked.family, int(software_stage(stage, devices))).name
    return sorted(SOFTWARE, key=lambda name: row not in SOFTWARE[name].predicted)  # which keeps the order of equals


def asked_on(
    job: TrainingJob,
    arch: Architecture,
    split: Mapping[str, Any],
    device: Device,
    shape: Shape,
    nodes: int,
    *,
    mixed: bool = False,
) -> Asked:
    """What programs are asked to run, of an allocation of a plan.

    Parameters
    ----------
    job, arch
        What is trained.
    split
        Its layout, as a plan tells it.
    device, shape, nodes
        What one job rents.
    mixed
        Whether machines of another offer share its batch.
    """
    sizes = {name: split[name] for name in ("dp", "tp", "pp", "vpp", "cp", "ep", "micro_batches")}
    return Asked(
        job=job,
        arch=arch,
        model=arch.name,
        sequence_length=sequence_length_of(job, arch),
        layout=Split(sharding=split["sharding"], recompute=split["recompute"], **sizes),
        device=device.id,
        kind=device.kind,
        family=device.family,
        part=shape.kind in ("mig", "share") and nodes * shape.devices > 1,
        slices=nodes,
        mixed=mixed,
    )


def programs_of(job: TrainingJob, arch: Architecture, kind: str) -> tuple[str, ...]:
    """Programs that train a job on a kind of device, split in some way; their names in SOFTWARE.

    Parameters
    ----------
    job, arch
        What is trained.
    kind
        Of device: gpu | tpu ...
    """
    names = []
    for software in SOFTWARE.values():
        one = Split(dp=2, tp=1, pp=1, vpp=1, cp=1, ep=1, micro_batches=1, sharding="", recompute=software.recompute[0])
        asked = Asked(job=job, arch=arch, model=arch.name, sequence_length=sequence_length_of(job, arch), layout=one,
                      device="", kind=kind, family="")  # fmt: skip
        kinds = ((stage, recompute) for stage in software.stages for recompute in software.recompute)
        trials = (
            replace(asked, layout=replace(one, sharding=stage, recompute=recompute)) for stage, recompute in kinds
        )
        if any(lack(software.name, trial) is None for trial in trials):
            names.append(software.name)
    return tuple(names)


def _common(_: Software, asked: Asked) -> Iterator[Lack]:
    """What no program does."""
    if asked.mixed:
        yield Lack("the job runs on several offers at once, and no program shares a batch between unequal groups",
                   "solve with mix_within_job: false, or write the outer loop between the groups yourself")  # fmt: skip
    if asked.part:
        yield Lack(f"slices of {asked.device} do not join in collectives", "allow whole devices")
    if asked.job.gradient_compression not in (None, 1.0):
        yield Lack("gradients are compressed, which is code of one's own", "drop gradient_compression")


def _by_table(software: Software, asked: Asked) -> Iterator[Lack]:
    """What the table says that a program does not have."""
    job, layout, program = asked.job, asked.layout, software.program

    def lacks(what: str, plain: str, way: str = "") -> Lack:
        return Lack(dict(software.because).get(what, plain), way)

    if asked.kind not in software.kinds:
        wanted = "TPU" if software.kinds == ("tpu",) else "GPU"
        kind = "a TPU" if asked.kind == "tpu" else f"no {wanted}"
        yield Lack(f"{asked.device} is {kind}, and {program} is exported for {wanted}s alone")
    if job.lora is not None and not software.bases:
        able = [one.program for one in SOFTWARE.values() if one.bases and asked.kind not in one.kinds]
        where = f"{', '.join(able)} do, on GPUs (hardware.allow)" if able else ""
        yield lacks("adapters", f"{program} trains no adapters", where)
    elif job.lora is not None and job.lora.base not in software.bases:
        yield Lack(f"{program} has no adapters on a {job.lora.base} base", f"write base: {software.bases[0]}")
    if job.lora is None and not software.whole:
        yield Lack(f"{program} is exported for adapters alone, and this trains all weights")
    if job.optimizer not in software.optimizers:
        able = [
            one.name
            for one in SOFTWARE.values()
            if job.optimizer in one.optimizers and asked.kind in one.kinds and (one.whole or job.lora is not None)
        ]
        open_job = job.framework is None and job.layout is None
        named = f"framework: {able[0]}, which has it, or " if able and open_job else ""
        yield Lack(f"{program} has no optimizer '{job.optimizer}'", f"write {named}optimizer: adamw")
    if job.precision not in software.precisions:
        yield lacks("precision", f"{program} has no {job.precision} products", "write precision: bf16")
    for what in job.offload or ():
        if what not in software.offload:
            yield Lack(f"{program} does not offload {what}s of its own" if what == "optimizer" else
                       f"{program} does not offload {what}", "leave offload out")  # fmt: skip
    if layout.sharding not in software.stages and layout.dp * layout.cp > 1:
        yield Lack(f"{program} has no {layout.sharding}", f"write sharding: {software.stages[-1]}")
    if layout.recompute not in software.recompute:
        yield Lack(f"{program} has no {layout.recompute} recomputation", f"write recompute: {software.recompute[-1]}")
    if layout.pp > 1 and not software.under_pipeline:
        yield lacks("pipeline", f"{program} has no pipeline", "write layout: {pp: 1}")
    elif layout.pp > 1 and layout.sharding not in software.under_pipeline:
        reason = dict(software.because).get("pipeline stage", f"{program} has none under a pipeline")
        yield Lack(f"{layout.sharding} under a pipeline: {reason}", f"write sharding: {software.under_pipeline[-1]}")
    if layout.vpp > 1 and not software.virtual:
        yield Lack(f"{program} has no virtual stages", "write layout: {vpp: 1}")
    if layout.tp > 1 and not software.beside_tensors:
        yield lacks("tensors", f"{program} does not split tensors", "write layout: {tp: 1}")
    elif layout.tp > 1 and job.lora is not None and job.lora.base in PACKED:
        yield Lack(f"{program} does not cut a packed {job.lora.base} base by tensors", "write layout: {tp: 1}")
    elif layout.tp > 1 and job.lora is not None:  # hiyouga/LlamaFactory#10140, #8206: the shapes do not go together
        yield Lack(f"{program}'s tensor parallelism stops under adapters", "write layout: {tp: 1}")
    elif layout.tp > 1 and layout.sharding not in software.beside_tensors:
        stages = f"{software.beside_tensors[0]} to {software.beside_tensors[-1]}"
        yield Lack(f"{program}'s tensor parallelism was read to go with {stages}, not with {layout.sharding}",
                   f"write sharding: {software.beside_tensors[-1]}")  # fmt: skip
    if layout.cp > 1 and not software.context:
        yield lacks("context", f"{program} has no context parallelism", "write layout: {cp: 1}")
    if layout.ep > 1 and not software.experts:
        yield lacks("experts", f"{program} has no expert parallelism", "write layout: {ep: 1}")


# Where Muon's states are whole matrices: shared out layer by layer, or gathered by ZeRO
MUON_STAGES = {"torchrun": ("none", "zero-1"), "deepspeed": ("zero-1", "zero-2", "zero-3")}

GROUPED = ("bf16", "fp8")  # precisions of Megatron-LM's experts: `validate_args` of its arguments.py, commit 000c4ac


def _of_megatron(_: Software, asked: Asked) -> Iterator[Lack]:
    job, layout = asked.job, asked.layout
    offloads = "optimizer" in (job.offload or ())
    if job.stack.cross_entropy == "chunked":
        yield Lack("Megatron-LM has no chunked loss, so logits would take more memory than planned",
                   "plan with stack: {cross_entropy: fused}")  # fmt: skip
    if offloads and job.optimizer in ("sgd", "sgd-momentum", "muon"):
        yield Lack("Megatron-LM offloads Adam only", "write optimizer: adamw")
    aware = offloads or job.optimizer == "adamw-bf16-moments"
    if aware and layout.sharding == "none" and layout.dp * layout.cp > 1:
        yield Lack("16-bit moments and an optimizer in host memory want the distributed optimizer",
                   "plan with sharding: zero-1")  # fmt: skip
    if asked.arch is not None and asked.arch.is_moe and job.precision not in GROUPED:
        yield Lack("Megatron-LM computes experts, whose products it groups, in bf16 alone", "write precision: bf16")
    if job.optimizer == "muon" and layout.sharding not in MUON_STAGES["torchrun"]:
        yield Lack("Megatron-LM shards Muon's states alone, by layers", "plan with sharding: zero-1")
    if layout.vpp > 1 and layout.micro_batches % layout.pp:
        yield Lack(
            f"the interleaved schedule wants micro-batches ({layout.micro_batches}) in multiples of pp ({layout.pp})",
            "solve again with another global_batch",
        )
    if layout.cp > 1 and asked.sequence_length % (2 * layout.cp):
        yield Lack(f"a sequence of {asked.sequence_length} does not divide into {2 * layout.cp} parts",
                   "choose a sequence_length that does")  # fmt: skip
    arch = asked.arch
    if arch is None or not arch.layers:
        yield Lack("only the size of the model is known", "give the scenario a preset or {config: path/to/config.json}")
        return
    if arch.family not in MEGATRON_FAMILIES or not {layer.attention for layer in arch.layers} <= {"gqa", "mla"}:
        yield Lack(f"models of type '{arch.family}' are not exported: Megatron-LM's GPT model has no options for all "
                   "that it is made of")  # fmt: skip
    if len({(layer.query_heads, layer.kv_heads, layer.window_tokens) for layer in arch.layers}) > 1:
        yield Lack("its layers differ in attention, which Megatron-LM's options do not say")
    if uneven_stages(layout.pp, layout.vpp, arch.layer_count) is None:
        yield Lack(f"{arch.layer_count} layers do not divide over {layout.pp} stages of {layout.vpp} parts, nor with "
                   "other ends", "plan with another pp")  # fmt: skip


def uneven_stages(pp: int, vpp: int, layers: int) -> tuple[int, int] | None:
    """Layers of the first and the last stage of a pipeline, no stage above what was planned; None: there is no such.

    Parameters
    ----------
    pp, vpp
        Stages, and chunks of each.
    layers
        Of the model.

    Examples
    --------
    >>> uneven_stages(4, 1, 80), uneven_stages(4, 1, 61), uneven_stages(16, 8, 126), uneven_stages(16, 2, 61)
    ((20, 20), (14, 15), (7, 7), (3, 3))
    >>> uneven_stages(32, 1, 61)  # of 30 in the middle 29 hold two
    (1, 1)
    """
    if layers % (pp * vpp) == 0:
        return layers // pp, layers // pp
    if vpp > 1 and equal_chunks(layers, pp, vpp):  # embedding and loss count as a layer each
        return (layers + ENDS) // pp - 1, (layers + ENDS) // pp - 1
    fullest = -(-layers // pp)
    for middle in (fullest, fullest - 1):
        rest = layers - max(pp - 2, 0) * middle
        first, last = rest // 2, rest - rest // 2
        if vpp == 1 and 1 <= first <= fullest and 1 <= last <= fullest and (middle or pp == 2):
            return first, last
    if pp > layers or (vpp > 1 and not cut_chunks(layers, pp, vpp)):
        return None
    chunks = chunk_layers(layers, pp, vpp)
    return sum(chunks[::pp]), sum(chunks[pp - 1 :: pp])


def _of_torchtitan(_: Software, asked: Asked) -> Iterator[Lack]:
    layout, flavor = asked.layout, titan_flavor(asked.arch)
    if asked.arch is None or not asked.arch.layers:
        yield Lack("only the size of the model is known", "give the scenario a preset or its config.json")
        return
    if flavor is None:
        yield Lack(f"torchtitan 0.2.2 ships no model of the shape of {asked.model}")
        return
    if layout.sharding == "none" and layout.dp > 1 and layout.tp * layout.pp * layout.cp > 1:
        yield Lack("torchtitan replicates only models that are not split", "plan with sharding: zero-3")
    if layout.sharding == "none" and layout.cp > 1:
        yield Lack("torchtitan shards over context-parallel ranks, too", "plan with sharding: zero-3")
    if layout.pp > 1 and not flavor.pipeline:
        yield Lack(f"torchtitan cannot cut its {flavor.name} into pipeline stages", "write layout: {pp: 1}")
    stages = layout.pp * layout.vpp
    if layout.vpp > 2 and -(-flavor.layers // -(-flavor.layers // stages)) != stages:
        yield Lack(f"torchtitan cannot cut {flavor.layers} layers into {stages} stages", "write layout: {vpp: 1}")
    shared = layout.cp * layout.tp  # ranks of experts take those of context and of tensors first
    if layout.ep > 1 and layout.ep % shared:
        yield Lack(
            f"torchtitan spreads experts over groups of {shared} ranks that share a sequence", "plan with another ep"
        )
    if asked.job.offload and layout.sharding == "none":
        yield Lack("torchtitan offloads what is sharded only", "plan with sharding: zero-3")


MOVED = ("full",)  # recomputation whose inputs DeepSpeed keeps on the host (cpu_checkpointing of its configuration)


def _of_deepspeed(_: Software, asked: Asked) -> Iterator[Lack]:
    job, plain = asked.job, asked.layout.sharding == "none"
    if job.optimizer == "muon" and asked.layout.sharding not in MUON_STAGES["deepspeed"]:
        yield Lack("Muon wants zero-1 to zero-3 in DeepSpeed", "plan with sharding: zero-1")
    if job.optimizer == "adamw-pure-bf16" and plain:
        yield Lack("DeepSpeed keeps 16-bit master weights with ZeRO only", "plan with sharding: zero-1")
    if "activations" in (job.offload or ()) and asked.layout.recompute not in MOVED:
        yield Lack("DeepSpeed moves the inputs of layers that it computes again to the host, and nothing else",
                   "write recompute: full")  # fmt: skip
    if "optimizer" in (job.offload or ()) and plain:
        yield Lack("DeepSpeed offloads an optimizer that ZeRO shards", "plan with sharding: zero-1")


def _of_hub(_: Software, asked: Asked) -> Iterator[Lack]:
    """TRL and Axolotl take a model from the hub, whatever it is made of."""
    if asked.arch is None or not asked.arch.layers:
        yield Lack("only the size of the model is known", "give the scenario a preset or its config.json")


_NAME_AXOLOTL = "write framework: axolotl"


def _of_axolotl(software: Software, asked: Asked) -> Iterator[Lack]:
    yield from _of_hub(software, asked)
    if asked.job.lora is None and asked.job.framework != "axolotl":
        yield Lack("Axolotl goes on from trained weights, and the scenario does not say that this job does",
                   _NAME_AXOLOTL)  # fmt: skip
    if asked.job.optimizer in UNMASTERED and asked.layout.sharding != "none":
        yield Lack("ZeRO of DeepSpeed, by which Axolotl shards, keeps a copy of the weights in 32 bits",
                   "plan with sharding: none, or with optimizer: adamw-8bit")  # fmt: skip


SINGLE_SLICES = ("tpu-v2", "tpu-v3")  # Cloud TPU Multislice: v4 and newer (its introduction, read on 2026-11-23)


def joins_slices(dp: Any, ep: Any, pp: Any, slices: Any) -> Any:
    """Whether slices divide what may lie between them: replicas that hold all experts, else stages of a pipeline.

    Parameters
    ----------
    dp, ep, pp
        Degrees of data and expert parallelism, and stages; numbers or arrays.
    slices
        Of one job; 1 always joins.
    """
    return ((dp // ep) % slices == 0) | (pp % slices == 0)


def equal_stages(layers: int, pp: Any, vpp: Any) -> Any:
    """Whether layers divide over the chunks of a pipeline; of arrays, elementwise.

    Parameters
    ----------
    layers
        Of the model.
    pp, vpp
        Stages, and chunks of each.
    """
    return (pp == 1) | (layers % (pp * vpp) == 0)


def whole_rounds(micro_batches: Any, pp: Any) -> Any:
    """Whether the micro-batches of a step are whole rounds of a pipeline's stages."""
    return (pp == 1) | (micro_batches % pp == 0)


def experts_take_replicas(dp: Any, ep: Any) -> Any:
    """Whether experts can take ranks of data parallelism."""
    return (ep == 1) | (dp % ep == 0)


def _of_maxtext(_: Software, asked: Asked) -> Iterator[Lack]:
    job, layout, name = asked.job, asked.layout, maxtext_model(asked.arch)
    if asked.slices > 1 and asked.device in SINGLE_SLICES:
        yield Lack(
            f"{asked.device} does not join slices to one job (Multislice begins with TPU v4)", "allow newer TPUs"
        )
    elif not joins_slices(layout.dp, layout.ep, layout.pp, asked.slices):
        yield Lack(f"{asked.slices} slices divide neither {layout.dp // layout.ep} replicas nor {layout.pp} stages",
                   "allow larger slices")  # fmt: skip
    if asked.arch is None or not asked.arch.layers:
        yield Lack("only the size of the model is known", "give the scenario a preset or its config.json")
    elif name is None:
        yield Lack(f"MaxText 0.2.5 ships no model of the shape of {asked.model}")
    elif layout.pp > 1 and name.startswith("gemma2"):
        yield Lack("MaxText makes one layer of two in its gemma2, which pipelines of the plan do not count",
                   "write layout: {pp: 1}")  # fmt: skip
    elif not equal_stages(asked.arch.layer_count, layout.pp, layout.vpp):
        yield Lack(f"MaxText cuts {asked.arch.layer_count} layers into equal stages only", "plan with another pp")
    if not whole_rounds(layout.micro_batches, layout.pp):
        yield Lack(f"MaxText wants micro-batches ({layout.micro_batches}) in multiples of pp ({layout.pp})",
                   "solve again with another global_batch")  # fmt: skip
    if not experts_take_replicas(layout.dp, layout.ep):
        yield Lack(f"MaxText splits experts over the ranks of dp, of which there are {layout.dp}, not a multiple of "
                   f"{layout.ep}", "plan with another layout: ep that divides dp")  # fmt: skip
    if layout.sharding == "zero-1" and layout.ep > 1:
        yield Lack("MaxText's optimizer sharding was not seen to go with experts split over ranks",
                   "write sharding: zero-3")  # fmt: skip
    if job.stack.attention == "eager":
        yield Lack("MaxText keeps no attention scores on TPUs", "write stack: {attention: flash}")


_OWN: Mapping[str, Callable[[Software, Asked], Iterator[Lack]]] = MappingProxyType(
    {
        "torchrun": _of_megatron,
        "torchtitan": _of_torchtitan,
        "deepspeed": _of_deepspeed,
        "trl": _of_hub,
        "axolotl": _of_axolotl,
        "maxtext": _of_maxtext,
    }
)
