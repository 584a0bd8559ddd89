"""Whether a split is legal, by rules written a second time: nothing here is shared with the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.architecture.load import stored_format
from planner.architecture.model import Architecture
from planner.catalog.model import Shape
from planner.checks.findings import Finding
from planner.estimate.engines import CONTEXT_PARALLEL_ENGINES, ONE_MACHINE_ENGINES
from planner.estimate.frameworks import named_framework
from planner.estimate.layout import ENDS, cut_chunks
from planner.estimate.resolve import batch_bounds, sequence_length_of
from planner.estimate.serving_tiers import fleet_engine
from planner.estimate.serving_work import cache_heads
from planner.estimate.software_layouts import MANY_DEVICES, SHORT_TOKENS
from planner.scenario.schema import ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.fleet import ServingLayout
    from planner.plan.model.rows import TrainingLayout

FABRIC_BYTES_PER_S = 12.5e9 * (1 - 1e-9)  # of a device: a network that replicas are stretched over
BATCH_TOLERANCE = 0.10  # of one asked batch; a range is kept to
TRAINING_SIZES = ("dp", "tp", "pp", "vpp", "cp", "ep", "micro_batch", "global_batch_sequences", "micro_batches")
STAGES = ("none", "zero-1", "zero-2", "zero-3")
SERVING_SIZES = ("tp", "pp", "dp", "ep", "cp")


def training_layout_findings(
    job: TrainingJob,
    arch: Architecture,
    split: TrainingLayout,
    shape: Shape,
    devices: int,
    *,
    shared: bool = False,
    stated: bool = False,
) -> Iterator[Finding]:
    """Everything illegal about the split of one job over a number of devices.

    Parameters
    ----------
    shared
        The batch is only a share.
    stated
        The scenario says that it runs so: nobody need advise it.
    """
    where = job.name
    if not _whole(split, TRAINING_SIZES):
        yield _illegal(where, "a size is not a positive whole number")
        return
    product = split["dp"] * split["tp"] * split["pp"] * split["cp"]
    if product != devices:
        yield _illegal(where, f"dp·tp·pp·cp = {product}, not {devices} devices")
    if split["sharding"] not in job.sharding:
        yield _illegal(where, f"sharding {split['sharding']} is not among {job.sharding}")
    if split["recompute"] not in job.recompute:
        yield _illegal(where, f"recompute {split['recompute']} is not among {job.recompute}")
    yield from _framework_findings(where, job.framework or "", split)
    pinned = {} if job.layout is None else job.layout.sizes
    yield from _pin_findings(where, pinned, split)
    named = stated or named_framework(job.framework) is not None or "pp" in pinned
    if not named and split["pp"] > 1 and STAGES.index(split["sharding"]) >= 2:
        yield _illegal(where, f"{split['sharding']} under a pipeline, which neither framework nor layout asks for")
    wide = stated or {"pp", "cp", "ep"} & pinned.keys() or devices >= MANY_DEVICES or job.lora is not None
    if not wide and split["cp"] > 1 and split["ep"] > 1 and sequence_length_of(job, arch) <= SHORT_TOKENS:
        yield _illegal(where, "a short sequence and experts both split on few devices, which no layout asks for")
    alone = split["pp"] == split["cp"] == split["ep"] == 1 and (split["tp"] == 1 or split["sharding"] != "zero-3")
    if not named and job.lora is not None and not alone:
        yield _illegal(where, "adapters in a layout that no program has, nor framework or layout asks for")
    other = job.framework != "deepspeed" and named_framework(job.framework) is not None
    whole = job.lora is None or (other and job.lora.base not in ("nf4", "int8"))
    if not whole and split["tp"] > 1 and not stated and "tp" not in pinned:
        yield _illegal(where, "a base under adapters cut by tensors, which no layout asks for")
    if job.framework == "deepspeed" and split["pp"] > 1 and not stated and (split["vpp"] > 1 or "pp" not in pinned):
        yield _illegal(where, "a pipeline that DeepSpeed's configuration does not make, and no layout asks for")
    for size in ("cp", "ep") if job.framework == "deepspeed" and not stated else ():
        if split[size] > 1 and size not in pinned:
            yield _illegal(where, f"{size} {split[size]}, which DeepSpeed has by code alone, and no layout asks for")
    yield from _tensor_findings(where, arch, split["tp"], shape)
    yield from _pipeline_findings(where, arch, split)
    yield from _sequence_findings(where, arch, split, sequence_length_of(job, arch))
    yield from _expert_findings(where, arch, split["ep"], split["dp"] * split["cp"] * split["tp"])
    yield from _batch_findings(job, arch, split, shared=shared)


# of sglang 0.5.23: those whose forward takes no pp_proxy_tensors
_UNSTAGED = frozenset(
    {"afmoe", "baichuan", "chatglm", "cohere", "cohere2", "dbrx", "ernie4_5", "ernie4_5_moe", "exaone", "falcon_h1",
     "falcon_mamba", "gemma", "gemma2", "gemma3_text", "gpt2", "gpt_bigcode", "gptj", "granite", "granitemoe",
     "grok-1", "hunyuan_v1_dense", "hunyuan_v1_moe", "internlm2", "lfm2", "lfm2_moe", "longcat_flash", "mamba",
     "mamba2", "mimo", "minicpm", "minicpm3", "olmo", "olmo2", "phi", "phimoe", "qwen", "qwen3_next", "stablelm",
     "starcoder2", "step3_text", "xverse"}
)  # fmt: skip


def serving_layout_findings(
    fleet: ServingFleet, arch: Architecture, split: ServingLayout, shape: Shape
) -> Iterator[Finding]:
    """Everything illegal about the split of one replica.

    Parameters
    ----------
    fleet
        Its engine decides what can be split; sizes that it fixes must be kept.
    arch
        The model, whose heads, widths, layers and experts are split.
    split
        Sizes tp, pp, dp, ep and cp of one replica.
    shape
        What the replica stands on; where it takes several, the network between them counts.
    """
    where, pinned = fleet.name, {} if fleet.layout is None else fleet.layout.sizes
    if not _whole(split, SERVING_SIZES):
        yield _illegal(where, "a size is not a positive whole number")
        return
    yield from _tensor_findings(where, arch, split["tp"], shape, named="tp" in pinned)
    if split["pp"] > max(arch.layer_count, 1):
        yield _illegal(where, f"{split['pp']} stages, {arch.layer_count} layers")
    if split["dp"] > 1 and not arch.is_moe:
        yield _illegal(where, "attention is spread over data-parallel ranks only beside experts")
    yield from _expert_findings(where, arch, split["ep"], split["tp"] * split["dp"])
    yield from _cache_findings(where, arch, split, fleet_engine(fleet))
    engine = fleet_engine(fleet)
    ranks, rest = split["tp"] * split["pp"], split["dp"] * split["ep"] * split["cp"]
    both = min(split["tp"], split["pp"]) > 1
    if engine in ONE_MACHINE_ENGINES and (rest > 1 or both or ranks > shape.devices):
        yield _illegal(where, f"{engine} splits by tensors or by stages alone, on one machine")
    whole = ("afmoe", "dbrx", "ernie4_5_moe", "grok-1", "hunyuan_v1_moe", "lfm2_moe", "mixtral", "olmoe")
    if engine == "sglang" and split["dp"] > 1 and (arch.family in whole or arch.family.startswith("granitemoe")):
        yield _illegal(where, f"sglang runs no attention ranks for models of {arch.family}")
    if engine == "sglang" and split["pp"] > 1 and arch.family in _UNSTAGED:
        yield _illegal(where, f"sglang runs no stages of models of {arch.family}")
    if fleet.speculative and split["pp"] > 1:
        head = fleet.speculative.model is None and not fleet.drafts_itself
        handed_on = arch.family in ("llama", "llama4_text", "mistral", "phi3", "qwen2", "qwen3")
        if engine == "sglang" or (engine == "vllm" and head and not handed_on):
            yield _illegal(where, f"{engine} drafts no tokens so for a model in {split['pp']} stages")
    stored = stored_format(fleet.model.preset, fleet.model.config) if fleet.model else ""
    blocks = fleet.weights == "fp8-block" or (fleet.weights, stored) == ("fp8", "fp8-block")
    yield from _block_findings(where, arch, split, engine if blocks else "")
    yield from _group_findings(where, arch, split, engine, {"int4": 128, "int4-g32": 32}.get(fleet.weights, 0))
    yield from _pin_findings(where, pinned, split)
    own = shape.inter_node_bytes_per_s_per_device  # None: the scenario says what there is
    stretched = split["tp"] * split["pp"] * split["dp"] > shape.domain_devices
    if stretched and own is not None and own < FABRIC_BYTES_PER_S and not {"tp", "pp"} & set(pinned):
        yield _illegal(where, f"a replica over several {shape.id}, at {8e-9 * own:.3g} Gbit/s a device")


def _block_findings(where: str, arch: Architecture, split: ServingLayout, engine: str) -> Iterator[Finding]:
    """vLLM and SGLang load weights in blocks where ranks hold whole ones; SGLang cuts dense MLPs over all ranks."""
    everywhere = split["tp"] * split["dp"]
    dense = {"vllm": split["tp"], "sglang": everywhere}.get(engine, 1)
    of_experts = everywhere / split["ep"] if engine in ("vllm", "sglang") else 1
    for group in arch.layers:
        whole = [group.expert_width % (of_experts * 128) == 0 or of_experts <= 1]
        whole += [width % (dense * 128) == 0 or dense == 1 for width in (group.mlp_width, group.shared_expert_width)]
        heads = group.query_heads * group.value_head_size
        whole.append(group.attention == "linear" or engine == "" or split["tp"] == 1 or not heads % (split["tp"] * 128))
        if not all(whole):
            yield _illegal(where, f"{engine} loads whole blocks of 128 x 128 weights, and this split cuts them")
            return


def _group_findings(
    where: str, arch: Architecture, split: ServingLayout, engine: str, group_values: int
) -> Iterator[Finding]:
    """vLLM and SGLang cut no scale of 4-bit weights in two; those of experts they make anew, down to 32 values."""
    if engine not in ("vllm", "sglang") or not group_values:
        return
    tp, experts = split["tp"], split["tp"] * split["dp"] // split["ep"]
    filled = {29568: 29696}  # Qwen's 72B in 4 bits
    for group in arch.layers:
        whole = [experts <= 1 or group.expert_width % (experts * 32) == 0]
        if not arch.is_moe and tp > 1:
            heads = 0 if group.attention == "linear" else group.query_heads * group.value_head_size
            widths = (filled.get(group.mlp_width, group.mlp_width), heads)
            whole += [width % (tp * group_values) == 0 for width in widths]
        if not all(whole):
            yield _illegal(where, f"{engine} loads whole groups of 4-bit weights, and this split cuts them")
            return


def _pin_findings(where: str, pinned: Mapping[str, Sequence[int]], split: Mapping[str, object]) -> Iterator[Finding]:
    """Sizes that the scenario fixes are as it fixes them."""
    for name, sizes in pinned.items():
        if split[name] not in sizes:
            yield _illegal(where, f"{name} is {split[name]}, the scenario fixes {' or '.join(map(str, sizes))}")


def _cache_findings(where: str, arch: Architecture, split: ServingLayout, engine: str) -> Iterator[Finding]:
    """Only tensor ranks that would hold the same heads may share out their tokens, and only where the engine can."""
    if split["cp"] == 1:
        return
    if engine not in CONTEXT_PARALLEL_ENGINES:
        yield _illegal(where, f"{engine} does not share out the tokens of a cache")
    for group in arch.layers:
        if group.attention == "linear":
            continue
        copies = split["tp"] // min(split["tp"], cache_heads(group))
        if copies % split["cp"]:
            yield _illegal(where, f"cp {split['cp']}, but only {copies} ranks hold the same heads")


def _illegal(where: str, text: str) -> Finding:
    return Finding("illegal-layout", f"{where}: {text}")


def _whole(split: Mapping[str, object], names: tuple[str, ...]) -> bool:
    return all(type(size) is int and size >= 1 for size in (split[name] for name in names))


def _framework_findings(where: str, name: str, split: TrainingLayout) -> Iterator[Finding]:
    """What the table of frameworks says that a framework does not have."""
    framework = named_framework(name)
    if framework is None:
        return
    stage, stages = STAGES.index(split["sharding"]), split["pp"]
    alone = split["dp"] * split["tp"] * split["cp"] * stages == 1  # nothing to share
    if stage not in framework.stages and not alone:
        yield _illegal(where, f"{name} has no {split['sharding']}")
    if stages > 1 and not framework.pipeline:
        yield _illegal(where, f"{name} has no pipeline")
    if name in ("trl", "axolotl") and split["tp"] * split["cp"] * split["ep"] > 1:
        yield _illegal(where, f"{name} is not planned with tensors, sequences or experts split")
    if name in ("trl", "axolotl") and split["recompute"] == "selective":
        yield _illegal(where, f"{name} recomputes all or nothing")
    if name == "deepspeed" and stages > 1 and stage >= 2:
        yield _illegal(where, f"{name} shards no gradients under a pipeline")


def _tensor_findings(
    where: str, arch: Architecture, tp: int, shape: Shape, *, named: bool = False
) -> Iterator[Finding]:
    domain = shape.domain_devices
    if tp > domain and not (named and tp % domain == 0):
        yield _illegal(where, f"tp {tp} leaves the fast domain of {shape.id}")
    if tp > 1 and not arch.layers:
        yield _illegal(where, "a model of unknown shape cannot be split inside its layers")
    for group in arch.layers:
        sizes = (group.query_heads, group.mlp_width, group.expert_width, group.shared_expert_width)
        replicated = tp % group.kv_heads == 0  # fewer key-value heads than ranks: each has copies
        if any(size % tp for size in sizes) or not (group.kv_heads % tp == 0 or replicated):
            yield _illegal(where, f"tp {tp} does not divide heads and widths")
            return


def _pipeline_findings(where: str, arch: Architecture, split: TrainingLayout) -> Iterator[Finding]:
    pp, vpp, layers = split["pp"], split["vpp"], arch.layer_count
    if pp > max(layers, 1) or pp * vpp > layers + ENDS:
        yield _illegal(where, f"{pp} × {vpp} stages, {layers} layers")
    elif vpp > 1 and (pp == 1 or not cut_chunks(layers, pp, vpp) or split["micro_batches"] % pp):
        yield _illegal(
            where, f"{vpp} chunks of {pp} stages want chunks of nearly one size and micro-batches in multiples of {pp}"
        )


def _sequence_findings(
    where: str, arch: Architecture, split: TrainingLayout, sequence_length: int
) -> Iterator[Finding]:
    cp = split["cp"]
    if cp > 1 and (not arch.layers or sequence_length % (2 * cp)):
        yield _illegal(where, f"{sequence_length} tokens do not make two chunks for each of {cp} context ranks")


def _expert_findings(where: str, arch: Architecture, ep: int, ranks: int) -> Iterator[Finding]:
    experts = [group.experts for group in arch.layers if group.experts]
    if ep > 1 and (not experts or ranks % ep or any(count % ep for count in experts)):
        yield _illegal(where, f"ep {ep} does not divide the experts and the {ranks} ranks that share them")


def _batch_findings(job: TrainingJob, arch: Architecture, split: TrainingLayout, *, shared: bool) -> Iterator[Finding]:
    step, batch = split["dp"] * split["micro_batch"], split["global_batch_sequences"]
    if batch % step or batch // step != split["micro_batches"]:
        yield _illegal(job.name, f"batch {batch} is not {split['micro_batches']} × {step}")
    if shared:
        return
    low, high = batch_bounds(job, arch, sequence_length_of(job, arch))
    slack = BATCH_TOLERANCE if high <= low * (1 + 1e-12) else 0.0
    if not low * (1 - slack) - 1e-6 <= batch <= high * (1 + slack) + 1e-6:
        yield _illegal(job.name, f"batch {batch} is too far from {low:g} to {high:g} sequences")
