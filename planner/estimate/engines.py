"""What serving engines allow when they are not told otherwise: sequences, tokens of a step, memory.

The defaults are those of the engines' own servers, read on 2026-11-21; a scenario's `limits` win over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Device, Shape
from planner.estimate.serving_formats import FILE_FORMATS

GIB = 1024**3
LARGE_BYTES = 70 * GIB  # from here on vLLM schedules as for an H100
MIDDLE_BYTES, HUGE_BYTES = 35 * GIB, 160 * GIB  # where SGLang changes its chunk

Fraction = Literal["of_device", "of_free", "static", "local"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRules:
    """Defaults of one engine."""

    name: str
    max_num_seqs: int
    max_batched_tokens: int
    memory_fraction: float
    # of the device; of what weights leave free; of the device for weights and cache alone; of the device, the table
    # of the input embedding in the host's memory
    fraction: Fraction
    source: str
    narrow_sums: bool = False  # products are added up at 16 bits
    of_ranks: bool = False  # sequences and tokens of a step are of one attention rank, not of all of a replica
    vendors: tuple[str, ...] = ()  # whose devices it runs on; () = not known to be fewer than all
    but: tuple[tuple[str, str], ...] = ()  # vendors and kinds of devices of theirs on which it does not
    formats: tuple[str, ...] = ()  # of weights that it serves; () = all but files of llama.cpp
    caches: tuple[str, ...] = ()  # formats that it keeps keys and values in; () = not known to be fewer than all


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an engine on a device may run at once, as given or by default, in the words of its own options."""

    max_num_seqs: int
    max_batched_tokens: int
    memory_fraction: float
    fraction: Fraction
    of_ranks: bool = False  # sequences and tokens are of one attention rank


# Whose devices and which weights: installation pages and lists of quantisations of each project (recalled, 2026-11-23)
_FILES = ("fp32", "fp16", "bf16", *FILE_FORMATS, "mxfp4")
_PLAIN = ("fp32", "fp16", "bf16", "int8")
# Limits of ranks: each of vLLM's is an engine of its own, and TensorRT-LLM's executors are one a rank; SGLang divides
# both by the ranks (ai-dynamo/dynamo pull request 11982, sgl-project/sglang pull requests 20063 and 28884; read on
# 2026-12-01)
# Of the cache: choices of --kv-cache-dtype of vLLM 0.33.0 and SGLang 0.5.23, of kv_cache_config of trtllm-serve and of
# --cache-type-k of llama.cpp, as recorded of each; `plan export` has a word for every one of them
_EIGHT_BITS = ("bf16", "fp16", "fp8", "nvfp4")
_TYPES = ("fp32", "fp16", "bf16", "int8", "int4", "q8_0", "q5_0", "q4_1", "q4_0")
_VLLM = "vllm-project/vllm: vllm/engine/arg_utils.py, get_batch_defaults; gpu_memory_utilization"
ENGINES: Mapping[str, EngineRules] = MappingProxyType(
    {
        rules.name: rules
        for rules in (
            EngineRules(name="vllm", max_num_seqs=256, max_batched_tokens=2048, memory_fraction=0.9,
                        fraction="of_device", of_ranks=True, source=_VLLM, caches=(*_EIGHT_BITS, "int8", "int4")),
            EngineRules(name="sglang", max_num_seqs=2048, max_batched_tokens=8192, memory_fraction=0.88,
                        fraction="static", vendors=("nvidia", "amd", "intel", "huawei", "google"), caches=_EIGHT_BITS,
                        source="sgl-project/sglang: python/sglang/srt/server_args.py (mem_fraction_static)"),
            EngineRules(name="trt-llm", max_num_seqs=2048, max_batched_tokens=8192, memory_fraction=0.9,
                        fraction="of_free", of_ranks=True, vendors=("nvidia",), caches=_EIGHT_BITS,
                        source="NVIDIA TensorRT-LLM: Tuning Max Batch Size and Max Num Tokens; Memory Usage"),
            EngineRules(name="fastertransformer", max_num_seqs=256, max_batched_tokens=8192, memory_fraction=0.9,
                        fraction="of_free", vendors=("nvidia",), formats=_PLAIN,
                        source="static batches of the size that is asked for; assumed as above"),
            EngineRules(name="llama.cpp", max_num_seqs=256, max_batched_tokens=2048, memory_fraction=0.99,
                        fraction="local", narrow_sums=True, formats=_FILES, caches=_TYPES,
                        vendors=("nvidia", "amd", "apple", "intel", "huawei"), but=(("intel", "npu"),),
                        source="ggml-org/llama.cpp: common/common.h (n_batch), src/llama-model.cpp (host input); "
                        "README.md, supported backends (SYCL: GPUs of Intel)"),
            EngineRules(name="jetstream", max_num_seqs=256, max_batched_tokens=8192, memory_fraction=0.9,
                        fraction="of_device", vendors=("google", "nvidia"), formats=(*_PLAIN, "int4", "fp8"),
                        source="assumed as vLLM: JetStream runs the slots asked for"),
            EngineRules(name="neuron", max_num_seqs=256, max_batched_tokens=8192, memory_fraction=0.9,
                        fraction="of_device", vendors=("aws",), formats=(*_PLAIN, "fp8"),
                        source="assumed as vLLM: Neuron compiles for the batch asked for"),
        )
    }
)  # fmt: skip
DEFAULT_ENGINE = "vllm"
# Whose tensor ranks may share out the tokens of a cache (vLLM: --decode-context-parallel-size)
CONTEXT_PARALLEL_ENGINES = frozenset({"vllm"})
# Whose replicas stay within one machine, split by tensors or by stages alone (ggml-org/llama.cpp: docs/multi-gpu.md,
# read on 2026-11-23), and what does not split tensors there: other vendors, caches of few bits, families of models
# by their names in config.json
ONE_MACHINE_ENGINES = frozenset({"llama.cpp"})
# Whose nodes hold all stages of an attention rank, however many such ranks there are, so that a stage reaches over all
# nodes of a replica (vllm-project/vllm: vllm/engine/arg_utils.py, data_parallel_size_local of nnodes;
# vllm/distributed/parallel_state.py, the order of ranks; read on 2026-11-30)
_STAGES_TOGETHER = frozenset({"vllm"})
_TENSOR_VENDORS = ("nvidia", "amd")
_TENSOR_CACHES = ("fp32", "fp16", "bf16")
_WHOLE_TENSORS = frozenset(
    {
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "glm4_moe_lite",
        "granitemoehybrid",
        "kimi_k2",
        "glm_moe_dsa",
        "minimax_m2",
        "mpt",
        "nemotron_h",
        "olmo2",
    }
)
# Families with experts whose code in SGLang splits attention over all ranks and gathers no tokens, so that ranks with
# requests of their own add up each other's sums (sglang 0.5.23: srt/models, read on 2026-12-01)
_ONE_RANK = frozenset(
    {"afmoe", "dbrx", "ernie4_5_moe", "granitemoe", "granitemoehybrid", "granitemoeshared", "grok-1", "hunyuan_v1_moe",
     "lfm2_moe", "mixtral", "olmoe"}
)  # fmt: skip
# Families whose code in SGLang takes no stage of a model, which it asserts as it starts (the same: forward without
# pp_proxy_tensors)
_ONE_STAGE = frozenset(
    {"afmoe", "baichuan", "chatglm", "cohere", "cohere2", "dbrx", "ernie4_5", "ernie4_5_moe", "exaone", "falcon_h1",
     "falcon_mamba", "gemma", "gemma2", "gemma3_text", "gpt2", "gpt_bigcode", "gptj", "granite", "granitemoe", "grok-1",
     "hunyuan_v1_dense", "hunyuan_v1_moe", "internlm2", "lfm2", "lfm2_moe", "longcat_flash", "mamba", "mamba2", "mimo",
     "minicpm", "minicpm3", "olmo", "olmo2", "phi", "phimoe", "qwen", "qwen3_next", "stablelm", "starcoder2",
     "step3_text", "xverse"}
)  # fmt: skip
# Engines that refuse weights in blocks or groups where a rank's part of a matrix is no whole number of them, and
# whether ranks of attention's data parallelism cut dense and shared MLPs, too (vllm-project/vllm issue 17569,
# sgl-project/sglang issue 26107, read on 2026-11-27)
_BLOCK_ENGINES = MappingProxyType({"vllm": False, "sglang": True})
BLOCK_VALUES = 128  # of each side of a block: DeepSeek-V3, arXiv:2412.19437, section 3.3.2
# Values that share a scale along the inputs of a matrix. Of experts whose groups do not fit both engines make smaller
# ones as they load, down to this many (vllm 0.33.0: quantization/auto_awq.py, moe_wna16.py, distributed/utils.py;
# sglang 0.5.23: srt/layers/quantization/awq and gptq; read on 2026-12-01)
_GROUP_VALUES = MappingProxyType({"int4": 128, "int4-g32": 32})
_LEAST_GROUP = 32
# Widths that are filled up with zeros in checkpoints of 4 bits, so that eight ranks hold whole groups
# (Qwen/Qwen2-VL-72B-Instruct-AWQ and Qwen/Qwen2.5-72B-Instruct-AWQ: config.json, read on 2026-12-01)
_FILLED_UP = MappingProxyType({29568: 29696})
_OTHER_NAMES = MappingProxyType(
    {"tensorrt-llm": "trt-llm", "trtllm": "trt-llm", "llamacpp": "llama.cpp", "llama-cpp": "llama.cpp", "sgl": "sglang",
     "ft": "fastertransformer"}
)  # fmt: skip


def runs_on(rules: EngineRules, vendor: str, kind: str) -> bool:
    """Whether an engine runs on a vendor's devices of a kind, as far as is known.

    Parameters
    ----------
    rules
        The engine.
    vendor, kind
        Of the device.

    Examples
    --------
    >>> runs_on(ENGINES["llama.cpp"], "intel", "gpu"), runs_on(ENGINES["llama.cpp"], "intel", "npu")
    (True, False)
    """
    return (not rules.vendors or vendor in rules.vendors) and (vendor, kind) not in rules.but


def engine_rules(name: str | None) -> EngineRules | None:
    """The rules of an engine by any of its names, the default one for None; None when it is not known."""
    if name is None:
        return ENGINES[DEFAULT_ENGINE]
    plain = name.lower()
    return ENGINES.get(_OTHER_NAMES.get(plain, plain))


def no_split(
    name: str,
    split: Mapping[str, int],
    *,
    machine_devices: int,
    joined_devices: int,
    vendor: str,
    family: str,
    kv_cache: str,
) -> tuple[str, str]:
    """Why an engine does not split a replica so, and what of the scenario to change; two empty strings where it does.

    Parameters
    ----------
    name
        Of ENGINES.
    split
        Sizes tp, pp, dp, ep and cp of one replica.
    machine_devices, joined_devices
        Devices of one machine, and those that fast links join.
    vendor, family, kv_cache
        Of the device, of the model, and the format of the cache.

    Examples
    --------
    >>> two = {"tp": 2, "pp": 1, "dp": 1, "ep": 1, "cp": 1}
    >>> pair = {"machine_devices": 2, "joined_devices": 2, "family": "llama", "kv_cache": "fp16"}
    >>> no_split("llama.cpp", two, vendor="intel", **pair)
    ('llama.cpp does not split tensors on devices of intel', 'write layout: {tp: 1}')
    """
    tp, pp, dp = split["tp"], split["pp"], split["dp"]
    reason, way = not_in_code(name, family, dp=dp, pp=pp)
    if reason:
        return reason, way
    if name in _STAGES_TOGETHER and min(pp, dp) > 1 and tp * pp * dp > max(machine_devices, joined_devices):
        return (
            f"{name} puts all stages of an attention rank on one node, so that the experts of each stage would be "
            "exchanged between nodes",
            "write layout: {dp: 1}, or {pp: 1}",
        )
    if name not in ONE_MACHINE_ENGINES:
        return "", ""
    if min(tp, pp) > 1 or dp * split["ep"] * split["cp"] > 1:
        return f"{name} splits a model by tensors or by stages alone", "write layout: {tp: 1}"
    if tp * pp > machine_devices:
        return f"{name} joins machines by a backend of its own, which is not planned for", "allow larger machines"
    if tp > 1 and vendor not in _TENSOR_VENDORS:
        return f"{name} does not split tensors on devices of {vendor}", "write layout: {tp: 1}"
    if tp > 1 and family in _WHOLE_TENSORS:
        return f"{name} does not split tensors of {family}", "write layout: {tp: 1}"
    if tp > 1 and kv_cache not in _TENSOR_CACHES:
        return f"{name} does not split tensors beside a cache in {kv_cache}", "write kv_cache: fp16"
    return "", ""


def not_in_code(name: str, family: str, *, dp: int, pp: int) -> tuple[str, str]:
    """Why an engine's code of a model has no such split, and what to write; two empty strings where it has.

    Parameters
    ----------
    name
        Of ENGINES.
    family
        Of the model, by its name in `config.json`.
    dp, pp
        Attention ranks, and stages.  [count]

    Examples
    --------
    >>> not_in_code("sglang", "mixtral", dp=8, pp=1)
    ('sglang has no attention data parallelism for models of mixtral', 'write layout: {dp: 1}')
    >>> not_in_code("sglang", "gemma3_text", dp=1, pp=2)
    ('sglang has no pipeline for models of gemma3_text', 'write layout: {pp: 1}')
    >>> not_in_code("vllm", "mixtral", dp=8, pp=1), not_in_code("sglang", "qwen3_moe", dp=8, pp=2)
    (('', ''), ('', ''))
    """
    if name == "sglang" and dp > 1 and family in _ONE_RANK:
        return f"{name} has no attention data parallelism for models of {family}", "write layout: {dp: 1}"
    if name == "sglang" and pp > 1 and family in _ONE_STAGE:
        return f"{name} has no pipeline for models of {family}", "write layout: {pp: 1}"
    return "", ""


def as_stored(weights: str, stored: str) -> str:
    """The format that engines load: as asked for, or as the repository holds weights of 8 bits.

    Parameters
    ----------
    weights
        Format of the scenario.
    stored
        Format in the repository; "" 16 bits or unknown.

    Examples
    --------
    >>> as_stored("fp8", "fp8-block"), as_stored("fp8", ""), as_stored("bf16", "fp8-block")
    ('fp8-block', 'fp8', 'bf16')
    """
    return stored if (weights, stored) == ("fp8", "fp8-block") else weights


def cut_block(name: str, arch: Architecture, weights: str, split: Mapping[str, int]) -> str:
    """Why an engine does not load weights in blocks (fp8-block) or groups (int4) so; empty where it does.

    Parameters
    ----------
    name
        Of ENGINES.
    arch
        The model.
    weights
        Format that is loaded, of `as_stored`.
    split
        Sizes tp, dp and ep of one replica.

    Examples
    --------
    >>> from planner.architecture.load import load_model
    >>> cut_block("vllm", load_model("qwen3-235b-a22b"), "fp8-block", {"tp": 8, "dp": 1, "ep": 1})
    "vllm wants whole blocks of 128 x 128 values on each rank: an expert's width of 1536 over 8 ranks is 192"
    >>> cut_block("vllm", load_model("qwen3-235b-a22b"), "fp8-block", {"tp": 8, "dp": 1, "ep": 8})
    ''
    >>> cut_block("sglang", load_model("qwen2.5-14b"), "int4", {"tp": 8, "dp": 1, "ep": 1})
    "sglang wants whole groups of 128 values on each rank: a dense MLP's width of 13824 over 8 ranks is 1728"
    """
    group_values, blocks = _GROUP_VALUES.get(weights, 0), weights == "fp8-block"
    if name not in _BLOCK_ENGINES or not (blocks or group_values):
        return ""
    ranks, tp = split["tp"] * split["dp"], split["tp"]
    dense = ranks if _BLOCK_ENGINES[name] else tp
    of_experts = BLOCK_VALUES if blocks else _LEAST_GROUP
    of_rest = BLOCK_VALUES if blocks else 0 if arch.is_moe else group_values  # of experts alone, where there are some
    for group in arch.layers:
        heads = 0 if group.attention == "linear" else group.query_heads * group.value_head_size
        for whose, width, parts, values in (
            ("an expert's", group.expert_width, max(ranks // split["ep"], 1), of_experts),
            ("a dense MLP's", group.mlp_width, dense, of_rest),
            ("the shared experts'", group.shared_expert_width, dense, of_rest),
            ("the heads'", heads, tp, of_rest),
        ):
            held = width if blocks else _FILLED_UP.get(width, width)
            if parts > 1 and values and held % (parts * values):
                of = f"blocks of {values} x {values}" if blocks else f"groups of {values}"
                return (
                    f"{name} wants whole {of} values on each rank: "
                    f"{whose} width of {width} over {parts} ranks is {width / parts:g}"
                )
    return ""


def engine_limits(
    name: str | None,
    device: Device,
    shape: Shape | None = None,
    *,
    max_num_seqs: int | None = None,
    max_batched_tokens: int | None = None,
    memory_fraction: float | None = None,
) -> Limits:
    """What an engine may run on a device; what is given wins over its defaults.

    Parameters
    ----------
    name
        The engine; unknown ones are taken as the default engine.
    device, shape
        vLLM and SGLang set their limits by the memory of a device.
    """
    rules = engine_rules(name) or ENGINES[DEFAULT_ENGINE]
    held = (shape.memory_bytes_per_device if shape else None) or device.memory_bytes
    sequences, tokens = _by_memory(rules, device, float(held))
    return Limits(
        max_num_seqs=max_num_seqs or sequences,
        max_batched_tokens=max_batched_tokens or tokens,
        memory_fraction=memory_fraction or rules.memory_fraction,
        fraction=rules.fraction,
        of_ranks=rules.of_ranks,
    )


def _by_memory(rules: EngineRules, device: Device, held_bytes: float) -> tuple[int, int]:
    """Sequences and tokens of a step that an engine chooses by the memory of a device."""
    if rules.name == "vllm" and held_bytes >= LARGE_BYTES and not device.id.startswith("a100"):
        return 1024, 8192  # a large budget of tokens slows an A100 down: vLLM keeps its small one there
    if rules.name == "sglang":
        chunk = 2048 if held_bytes < MIDDLE_BYTES else 8192 if held_bytes < HUGE_BYTES else 16384
        return rules.max_num_seqs, chunk
    return rules.max_num_seqs, rules.max_batched_tokens
