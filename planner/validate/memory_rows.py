"""Peak memory of measured rows: of the kind and the rank that a row names, by the model that scenarios use.

What a row does not state of its memory-relevant software is the documented default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from planner.architecture.config import Config
from planner.architecture.from_config import build
from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.equations.activations import CHUNK_TOKENS
from planner.equations.device_memory import process_bytes
from planner.equations.memory import usable_memory_bytes
from planner.equations.recipes import RECIPES
from planner.errors import InputError
from planner.estimate.layout import RECOMPUTE_FULL, RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, Layout
from planner.estimate.memory_stack import BASE_BYTES, FRAGMENTATION_SHARE, LOGIT_BYTES, MemoryStack, memory_stack
from planner.estimate.terms import Terms
from planner.estimate.training_memory import rank_memory
from planner.estimate.training_spec import TrainingSpec
from planner.validate.rows import MeasuredRow
from planner.validate.rows_facts import architecture_of, device_of
from planner.validate.rows_setup import (
    chunked_loss,
    framework_of,
    fused_kernels,
    imbalance_of,
    is_unfused,
    layout_of,
    no_fused_kernels,
    offloaded_of,
)

CHOSEN_RANKS = {"rank0": "rank0", "last": "last"}  # of mem_rank; any other reading is of the fullest rank
_SOFTWARE = {  # frameworks of rows by whose memory they have
    "megatron": "megatron",
    "megatron-bridge": "megatron",
    "megatron-bridge-graphs": "megatron",
    "megatron-deepspeed": "deepspeed",
    "deepspeed": "deepspeed",
    "fsdp": "fsdp",
    "maxtext": "maxtext",
    "hf": "hf",
    "torchtune": "torchtune",
}
_FUSED_LOSS = ("llm-foundry", "flash-attention", "llm.c")  # flash-attention's in-place cross entropy, or their own
_NO_DROPOUT = ("llm-foundry", "flash-attention", "llm.c")
_ADAPTER_RANK = 32  # Megatron-Bridge, peft/lora.py: dim
_STATES = {
    "megatron18": "adam-megatron",
    "fsdp_mixed": "adam-fsdp",
    "fsdp_pure": "adam-pure-bf16",
    "low_precision_moments": "adam-bf16-states",
    "pure_bf16": "adam-pure-bf16",
    "pure_bf16_sr": "adam-pure-bf16",
    "amp16": "adam-mixed",
    "8bit_adam": "adam-8bit-no-master",
    "adafactor": "adafactor",
    "muon": "muon",
    "sgd": "sgd",
    "lion": "sgd-momentum",  # one moment
    "lora": "adam-pure-bf16",
    "qlora": "adam-pure-bf16",
}
_OTHER_STATES = ("bf16_first_moment", "optimizer_in_backward")  # words that are no recipe of their own
_HEAD_SIZE = 128


def memory_architecture(row: MeasuredRow) -> Architecture:
    """The row's model: layers and heads that the table leaves out follow from its size and width."""
    arch = _as_untied(architecture_of(_completed(row)), row)
    latent = any(group.attention == "mla" for group in arch.layers)
    return _latent(row) if row.n_experts and not latent and re.search(r"\bMLA\b", row.model or "") else arch


def _completed(row: MeasuredRow) -> MeasuredRow:
    if not row.hidden or row.n_experts:
        return row
    layers = row.layers or _layers_of_size(row)
    heads = row.heads or max(round(row.hidden / _HEAD_SIZE), 1)
    while heads < row.hidden and row.hidden % heads:
        heads += 1
    return replace(row, layers=layers, heads=heads) if layers else row


def _layers_of_size(row: MeasuredRow) -> int | None:
    """Layers of a dense model with multi-head attention that has the row's size."""
    if not row.n_params_b or not row.hidden:
        return None
    h, f = row.hidden, row.ffn_hidden or 4 * row.hidden
    layer = 4 * h * h + (3 if row.gated_mlp else 2) * h * f
    return round((row.n_params_b * 1e9 - (row.vocab or 0) * h) / layer) or None


def _latent(row: MeasuredRow) -> Architecture:
    """A mixture of experts with multi-head latent attention of Megatron-LM's default sizes."""
    config = {
        "model_type": "deepseek_v3",
        "hidden_size": row.hidden,
        "num_hidden_layers": row.layers,
        "num_attention_heads": row.heads,
        "num_key_value_heads": row.heads,
        "q_lora_rank": 512,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "intermediate_size": 4 * (row.hidden or 0),
        "moe_intermediate_size": row.ffn_hidden,
        "n_routed_experts": row.n_experts,
        "num_experts_per_tok": row.top_k,
        "n_shared_experts": 0,
        "first_k_dense_replace": 0,
        "vocab_size": row.vocab or 50257,
        "max_position_embeddings": row.seq_len,
        "tie_word_embeddings": False,
    }
    return _built(json.dumps(config, sort_keys=True))


@lru_cache(maxsize=64)
def _built(text: str) -> Architecture:
    return build(Config(json.loads(text), "row", text), name="row", source="measured row")


def _as_untied(arch: Architecture, row: MeasuredRow) -> Architecture:
    """The same model with a head of its own, or with that of its embedding, where that is nearer to the row's size."""
    if not (arch.layers and row.n_params_b):
        return arch
    head = arch.vocab_size * arch.hidden_size
    size = row.n_params_b * 1e9
    if not arch.tied_embeddings:
        if abs(arch.parameters - head - size) >= abs(arch.parameters - size):
            return arch
        return replace(
            arch,
            tied_embeddings=True,
            output_head_parameters=0,
            parameters=arch.parameters - head,
            active_parameters=arch.active_parameters - head,
        )
    if abs(arch.parameters + head - size) >= abs(arch.parameters - size):
        return arch
    return replace(
        arch,
        tied_embeddings=False,
        output_head_parameters=head,
        parameters=arch.parameters + head,
        active_parameters=arch.active_parameters + head,
    )


def row_stack(row: MeasuredRow, arch: Architecture) -> MemoryStack:
    """What the row's software keeps: as stated, else by its documented defaults."""
    framework = framework_of(row)
    spec = TrainingSpec(
        tokens=1.0,
        sequence_length=float(row.seq_len or 0),
        precision="fp8" if row.precision_class in ("fp8", "fp4") else "bf16",
        attention="eager" if _stores_scores(row) else "flash",
        framework=_SOFTWARE.get(framework.name),
    )
    stack = memory_stack(spec)
    stack = replace(
        stack,
        logit_bytes=_logit_bytes(row),
        recomputed=_recomputed(row, stack),
        compiled=row.compiled == 1,
        sequence_parallel=_sequence_parallel(row),
        offload=offloaded_of(row) & {"optimizer", "activations"},
        predicted_tokens=_predicted_tokens(row),
        expert_imbalance=_imbalance(row, stack),
        dropout=False if framework.name in _NO_DROPOUT else None,
        adapter_rank=_ADAPTER_RANK if row.adapters else 0,
        base_bytes=BASE_BYTES["nf4" if row.adapters == "qlora" else "bf16"],
        score_bytes=stack.score_bytes if _has_dropout(arch) else 2.0,
    )
    if framework.name == "fsdp":
        stack = _fsdp(row, stack)
    fused = row.loss == "fused" or chunked_loss(row)
    if fused and framework.name in ("hf", "torchtune", "deepspeed"):
        stack = replace(stack, logit_chunk_tokens=float(CHUNK_TOKENS))  # Liger's, torchtune's: a chunk at a time
    if "optimizer_in_backward" in (row.states_recipe or ""):
        stack = replace(stack, recipe=replace(RECIPES["adam-pure-bf16"], gradient=0.0))
    recipe = _states(row) or _usual_states(row, framework.name, arch)
    return replace(stack, recipe=RECIPES[recipe]) if recipe else stack


def _states(row: MeasuredRow) -> str:
    """The recipe that a cell names; of several joined by +, the one of the optimizer."""
    if row.adapters and not framework_of(row).name.startswith("megatron"):
        return _STATES["lora"]
    words = (row.states_recipe or "").split("+")
    return next((_STATES[word] for word in ("8bit_adam", *words) if word in words and word in _STATES), "")


def _fsdp(row: MeasuredRow, stack: MemoryStack) -> MemoryStack:
    """torchtitan: expandable segments; until 2024 embedding and head were one unit."""
    return replace(
        stack,
        end_units=1 if _before_2025(row) else 2,
        pooled_logit_bytes=0.0 if _compiled_loss(row) else 2.0,
        fragmentation_share=FRAGMENTATION_SHARE["expandable"],
    )


def _usual_states(row: MeasuredRow, framework: str, arch: Architecture) -> str | None:
    """Recipes of Megatron-Bridge: 16-bit gradients and moments with latent attention, 8-bit weights in fp8."""
    if not framework.startswith("megatron-bridge"):
        return None
    if arch.is_moe and any(group.attention == "mla" for group in arch.layers):
        return "adam-bf16-states"
    narrow = row.precision_class in ("fp8", "fp4") and not (row.fp8_recipe or "").startswith("blockwise")
    return "adam-fp8-weights" if narrow else None


def _has_dropout(arch: Architecture) -> bool:
    return not any(group.gated for group in arch.layers)


def _stores_scores(row: MeasuredRow) -> bool:
    if row.attention_kernel is not None:
        return is_unfused(row.attention_kernel)
    return framework_of(row).attention == "eager"


def _sequence_parallel(row: MeasuredRow) -> bool:
    stated = row.sequence_parallel
    return bool(framework_of(row).sequence_parallel if stated is None else stated)


def _logit_bytes(row: MeasuredRow) -> float:
    """Bytes of a logit by the loss that the software of the row's time computes."""
    framework = framework_of(row).name
    old = (row.year or 2025) <= 2022
    if framework == "fsdp":
        if row.tp and row.tp > 1:
            return LOGIT_BYTES["loss_parallel"]
        return LOGIT_BYTES["compiled" if _compiled_loss(row) else "eager"]
    if row.loss == "fused" or framework.startswith("megatron-bridge") or framework in _FUSED_LOSS:
        return LOGIT_BYTES["in_place"]
    if framework == "hf":
        # GPTBigCodeForCausalLM computes its loss in the weights' format; a 4-bit base has what stays whole in 32 bits
        if no_fused_kernels(row) and row.adapters != "qlora":
            return LOGIT_BYTES["shifted_16bit"]
        return LOGIT_BYTES["fused_upcast" if fused_kernels(row) else "upcast"]
    if framework in ("maxtext", "jax"):
        return LOGIT_BYTES["compiled"]
    if "megatron" in framework:
        return LOGIT_BYTES["shifted" if old else "vocab_parallel"]
    return LOGIT_BYTES["eager"]


def _compiled_loss(row: MeasuredRow) -> bool:
    """torchtitan compiles the loss with the model since 2025."""
    return row.compiled == 1 and not _before_2025(row)


def _before_2025(row: MeasuredRow) -> bool:
    return (row.year or 2025) < 2025


def _recomputed(row: MeasuredRow, stack: MemoryStack) -> frozenset[str]:
    """Modules in brackets, as in `selective (moe_act, layernorm)`; else the framework's own policy."""
    named = re.search(r"selective \(([^)]*)\)", row.recompute or "")
    return frozenset(re.split(r",\s*", named[1])) if named else stack.recomputed


def _predicted_tokens(row: MeasuredRow) -> int:
    named = re.search(r"\bMTP (\d)", row.model or "")
    return int(named[1]) if named else 0


def _imbalance(row: MeasuredRow, stack: MemoryStack) -> float:
    """Routed tokens of the rank that was read over the mean: even when forced, or on a rank that is not chosen."""
    if imbalance_of(row) == 1.0 or row.mem_rank in CHOSEN_RANKS:
        return 1.0
    return stack.expert_imbalance


_FITS_WITHIN = 1.1  # an unstated policy counts as possible up to the model's own error


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBand:
    """Measured over predicted memory of the rows of one kind."""

    kind: str  # allocated | reserved | process
    p10: float
    p50: float
    p90: float
    mean_error: float  # absolute, share of the measured
    worst_error: float
    rows: int
    sources: int


def predict_peak_memory(row: MeasuredRow, catalog: Catalog) -> float | None:
    """Peak memory of a row, of the kind and the rank that it names.

    Returns
    -------
    Bytes [B]; None where layers, devices or kind are not given: a pool of states that an unknown
    number of ranks share has no size.
    """
    try:
        terms = memory_terms(row, catalog)
    except InputError:  # a shape that no model has
        return None
    return None if terms is None else _of_kind(terms, row)


def memory_terms(row: MeasuredRow, catalog: Catalog) -> Terms | None:
    """The terms behind `predict_peak_memory`  [B], before the kind of the reading is looked at."""
    arch = memory_architecture(row)
    unshaped = row.is_moe and not row.n_experts  # its layers are those of what a token uses, not of all that is stored
    words = row.states_recipe.split("+") if row.states_recipe and not row.adapters else ()
    unread = any(word not in _STATES and word not in _OTHER_STATES for word in words)
    if unread or unshaped or not arch.layers or row.n_accel is None or row.seq_len is None:
        return None
    stack = row_stack(row, arch)
    layout = Layout(**layout_of(row))
    rank = CHOSEN_RANKS.get(row.mem_rank or "", "max")
    if row.recompute is not None or layout_of(row)["recompute"] != RECOMPUTE_NONE:  # stated, or a known default
        return rank_memory(arch, stack, float(row.seq_len), layout, rank)
    return _least_recompute_that_fits(row, catalog, arch, stack, layout, rank)


def _of_kind(terms: Terms, row: MeasuredRow) -> float:
    kind, total = row.memory_kind, float(terms.total)
    if kind == "formula":
        return float(sum(terms[name] for name in ("weights", "gradients", "optimizer", "activations")))
    if kind == "reserved":
        return total
    if kind == "process":
        return total + float(process_bytes(_communicators(row)))
    return total - float(terms["fragmentation"])


def _communicators(row: MeasuredRow) -> float:
    """Groups of ranks: all, and one for each way in which the job is split."""
    layout = layout_of(row)
    return 1.0 + sum(layout[name] > 1 for name in ("dp", "tp", "pp", "cp", "ep"))


def _least_recompute_that_fits(
    row: MeasuredRow, catalog: Catalog, arch: Architecture, stack: MemoryStack, layout: Layout, rank: str
) -> Terms:
    """An unstated policy is the fastest that fits."""
    device = device_of(row, catalog)
    room = float(usable_memory_bytes(device.memory_bytes)) * _FITS_WITHIN if device else np.inf
    for level in (RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL):
        chosen = replace(layout, recompute=float(level))
        terms = rank_memory(arch, stack, float(row.seq_len or 0), chosen, rank)
        if float(rank_memory(arch, stack, float(row.seq_len or 0), chosen).total) <= room:
            return terms
    return terms


def memory_bands(rows: Sequence[MeasuredRow], catalog: Catalog) -> list[MemoryBand]:
    """Measured over predicted memory by kind of reading; rows without a prediction count in none."""
    found: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        measured = row.measured_memory_bytes
        predicted = predict_peak_memory(row, catalog) if measured else None
        if measured and predicted:
            found.setdefault(row.memory_kind, []).append((measured / predicted, row.source_key or ""))
    return [_band(kind, pairs) for kind, pairs in sorted(found.items())]


def _band(kind: str, pairs: Sequence[tuple[float, str]]) -> MemoryBand:
    ratios = np.array([ratio for ratio, _ in pairs])
    errors = np.abs(1.0 / ratios - 1.0)
    p10, p50, p90 = (float(value) for value in np.quantile(ratios, (0.1, 0.5, 0.9)))
    return MemoryBand(
        kind=kind,
        p10=p10,
        p50=p50,
        p90=p90,
        mean_error=float(np.mean(errors)),
        worst_error=float(np.max(errors)),
        rows=len(pairs),
        sources=len({source for _, source in pairs}),
    )
