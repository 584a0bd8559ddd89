"""Measured serving rows as layouts that they may have had, each with the memory of its engine.

The model of a serving row is the preset of its name, one of the same shape, that of its cells, or a mere size. Memory
says whether what a row states can have run, and the peak that its engine would show. Engines that page their cache run
as many sequences as fit and keep the others waiting; engines of 2022 and compiled ones allocate the cache of the whole
batch before they begin, and fail where it does not fit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.architecture.config import Config
from planner.architecture.from_config import build
from planner.architecture.load import coarse_model, load_model, preset_config, preset_of
from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device
from planner.equations.registry import as_float
from planner.errors import InputError
from planner.estimate.engines import engine_rules
from planner.estimate.machine import Machine
from planner.estimate.serving import (
    ReplicaLayout,
    ServingMemory,
    ServingSpec,
    serving_memory,
    serving_peaks,
    weight_bytes_of_model,
)
from planner.estimate.serving_step import sequence_cache_bytes
from planner.validate.rows import MeasuredRow
from planner.validate.rows_facts import REFERENCE_NETWORK_BYTES_PER_S, expert_configs, parameters_of, with_shape
from planner.validate.serving_rows import ServingRow
from planner.validate.serving_setup import (
    Load,
    Split,
    cache_format,
    load_of,
    sequence_limit,
    serving_device,
    serving_engine,
    splits_of,
    unknown_task,
    unread_cell,
    weight_format,
)

_LONGEST = 131_072  # positions, of models whose own number plays no part
_UNGATED = 4  # a feed-forward of four times the width or more has two matrices, unless the size says three
_LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
# Heads of the two latent families: DeepSeek-V3 (arXiv 2412.19437, sec. 4.2) and GLM-5 (config.json, recalled).
_LATENT_HEADS = ((128, {"qk_nope_head_dim": 128, "v_head_dim": 128, "q_lora_rank": 1536}),
                 (64, {"qk_nope_head_dim": 192, "v_head_dim": 256, "q_lora_rank": 2048}))  # fmt: skip


def serving_architecture(row: ServingRow) -> Architecture:
    """What a row served; without its layers where neither they nor a dense size are given."""
    config = _named_preset(row)
    if config is None and row.layers and row.hidden:
        config = _like_preset(row) or _own_config(row)
    if config is None:
        return coarse_model(max((parameters_of(_as_training(row)) or 0.0), 1.0))
    return _built(json.dumps(config, sort_keys=True))


@lru_cache(maxsize=1024)
def _built(text: str) -> Architecture:
    return build(Config(json.loads(text), "row", text), name="row", source="measured row")


def _as_training(row: ServingRow) -> MeasuredRow:
    """The cells that both kinds of rows have in common."""
    return MeasuredRow(
        model=row.model,
        n_params_b=row.n_params_b,
        n_active_params_b=row.n_active_params_b,
        layers=row.layers,
        hidden=row.hidden,
        heads=row.heads,
        kv_heads=row.kv_heads,
        ffn_hidden=row.ffn_hidden,
        vocab=row.vocab,
        n_experts=row.n_experts,
        top_k=row.top_k,
    )


def _named_preset(row: ServingRow) -> dict[str, Any] | None:
    """The config of the preset that the row's name speaks of, unless a cell contradicts it."""
    name = preset_of(row.model or "")
    if name is None:
        return None
    arch = load_model(name)
    experts = max((group.experts for group in arch.layers), default=0)
    stated = ((row.layers, arch.layer_count), (row.hidden, arch.hidden_size), (row.n_experts, experts))
    if any(cell and cell != own for cell, own in stated):
        return None
    return preset_config(name)


def _like_preset(row: ServingRow) -> dict[str, Any] | None:
    """The config of the mixture-of-experts preset of the same width, heads and experts, with the row's layers."""
    if not row.is_moe:
        return None
    for config in expert_configs():
        width = config.get("moe_intermediate_size") or config.get("intermediate_size")
        same = (config.get("hidden_size"), config.get("num_attention_heads"), width)
        if same != (row.hidden, row.heads, row.ffn_hidden):
            continue
        key = next(name for name in ("n_routed_experts", "num_experts", "num_local_experts") if config.get(name))
        own = {name: value for name, value in config.items() if name != "layer_types"}
        own |= {"num_hidden_layers": row.layers, key: row.n_experts}
        if config.get("model_type") == "llama4_text":  # Maverick routes in every second layer, Scout in each
            own["interleave_moe_layer_step"] = 2 if (row.n_experts or 0) > 64 else 1
        return own
    return None


def _own_config(row: ServingRow) -> dict[str, Any] | None:
    """A config in the words of Hugging Face; None where the shape is not known."""
    if row.is_moe and "MLA" in (row.arch_source or ""):
        return _latent(row)
    shaped = with_shape(_as_training(row))
    if not (shaped.hidden and shaped.layers and shaped.heads):
        return None
    hidden, heads = shaped.hidden, shaped.heads
    kv_heads = shaped.kv_heads or heads
    ffn = shaped.ffn_hidden or _UNGATED * hidden
    gated = ffn < _UNGATED * hidden or _three_matrices(row, ffn)
    config: dict[str, Any] = {
        "model_type": "llama" if gated else "gpt2" if kv_heads == heads else "nemotron",
        "hidden_size": hidden,
        "num_hidden_layers": shaped.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": row.head_dim or max(round(hidden / heads), 1),
        "intermediate_size": ffn,
        "vocab_size": row.vocab or 50257,
        "max_position_embeddings": 2048 if not gated and kv_heads == heads else _LONGEST,
    }
    if row.is_moe:
        experts = {"num_local_experts": row.n_experts, "num_experts_per_tok": row.top_k or 1}
        config |= {"model_type": "mixtral", **experts}
    elif not gated and kv_heads == heads:
        config["tie_word_embeddings"] = True
    return config


def _three_matrices(row: ServingRow, ffn: int) -> bool:
    """Whether the stated size is nearer to three feed-forward matrices a layer than to two."""
    hidden, layers, heads = row.hidden or 0, row.layers or 0, row.heads or 1
    if not (row.n_params_b and hidden and layers) or row.is_moe:
        return False
    size = row.head_dim or hidden / heads
    attention = 2 * hidden * size * (heads + (row.kv_heads or heads))
    rest = row.n_params_b * 1e9 - layers * attention - (row.vocab or 0) * hidden
    return rest / (layers * hidden * ffn) > 2.5


def _latent(row: ServingRow) -> dict[str, Any]:
    """A model with latent attention and no preset: three leading dense layers, one shared expert."""
    heads = row.heads or 128
    sizes = next((own for number, own in _LATENT_HEADS if number == heads), _LATENT_HEADS[0][1])
    return _LATENT | sizes | {
        "model_type": "deepseek_v3",
        "hidden_size": row.hidden,
        "num_hidden_layers": row.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "intermediate_size": 2 * (row.hidden or 0),
        "moe_intermediate_size": row.ffn_hidden,
        "n_routed_experts": row.n_experts,
        "num_experts_per_tok": row.top_k,
        "n_shared_experts": 1,
        "first_k_dense_replace": 3,
        "vocab_size": row.vocab,
        "max_position_embeddings": _LONGEST,
    }  # fmt: skip


Values = NDArray[np.float64]
_NETWORK = 25e9  # one way, per device, of generations without a reference system  [B/s]
TIGHT_FRACTION, TIGHT_WORKSPACE = 0.98, 0.25  # of the memory; of the workspace of a full step


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row in one layout that it may have had."""

    row: int  # position among the rows
    split: Split
    load: Load
    arch: Architecture
    device: Device
    engine: str
    weights: str
    kv_cache: str
    batch_limit: float = np.inf  # by memory and the engine's own limit
    fits: bool = True  # one request, at all


def serving_refusal(row: ServingRow, catalog: Catalog) -> str | None:
    """Why a row gets no prediction; None when it gets one."""
    device = serving_device(row, catalog)
    if device is None:
        return f"device '{row.accelerator}' is not in the catalog"
    try:
        arch = serving_architecture(row)
    except InputError as error:
        return f"the shape of the model is not possible: {error.problems[0].message}"
    if not arch.layers:
        return "the shape of the model is not known, and so neither is that of its cache"
    if row.load == "mlperf" and (unknown := unknown_task(row.model, row.scenario or "")):
        return unknown
    if unread := unread_cell(row):
        return unread
    if np.isnan(serving_peaks(arch, weight_format(row), device.peak_flop_per_s).linear):
        return f"{device.id} has no peak for {weight_format(row)}"
    return None


def entries_of(rows: Sequence[ServingRow], catalog: Catalog) -> list[Entry]:
    """Each row that can be predicted, once for every layout that it may have had and that fits."""
    found: list[Entry] = []
    for position, row in enumerate(rows):
        if serving_refusal(row, catalog) is not None:
            continue
        arch, device = serving_architecture(row), serving_device(row, catalog)
        assert device is not None
        for split in splits_of(row, arch, device):
            entry = Entry(
                row=position,
                split=split,
                load=load_of(row),
                arch=arch,
                device=device,
                engine=serving_engine(row),
                weights=weight_format(row),
                kv_cache=cache_format(row),
            )
            found.append(_limited(entry, row))
    return _fitting(found)


def _limited(entry: Entry, row: ServingRow) -> Entry:
    """The entry with the sequences that its memory and its engine allow."""
    memory = paged_memory(entry)
    by_memory = float(np.max(memory.max_sequences))
    most = min(by_memory, sequence_limit(row, entry.device) * entry.split.dp)
    return replace(entry, batch_limit=most, fits=bool(np.all(memory.feasible)))


def paged_memory(entry: Entry) -> ServingMemory:
    """Memory of an engine that pages its cache, by the defaults of its server."""
    compiled = entry.engine.startswith("trt-llm")
    rules = engine_rules("trt-llm" if compiled else entry.engine)
    load = entry.load
    longest = load.input_tokens + load.output_tokens * load.beams  # beams share the prompt
    spec = ServingSpec(
        weights=entry.weights,
        kv_cache=entry.kv_cache,
        input_tokens=load.input_tokens,
        output_tokens=load.output_tokens,
        memory_fraction=rules.memory_fraction if rules else 0.9,
        fraction=rules.fraction if rules else "of_device",
        # TensorRT-LLM admits a request only when its longest answer fits (its default: GUARANTEED_NO_EVICT); sequences
        # that begin together are all at their longest at the end
        resident_tokens=longest if compiled or load.kind == "static" else None,
        longest_tokens=longest,
    )
    layout, machine = layout_of([entry.split]), machine_of([entry.device])
    found = serving_memory(entry.arch, spec, layout, machine)
    if np.all(found.feasible) or spec.fraction == "local":
        return found
    # Where defaults leave no room for a request, who starts the engine raises its share and makes steps smaller.
    tight = replace(spec, memory_fraction=TIGHT_FRACTION, fraction="of_device", workspace_share=TIGHT_WORKSPACE)
    return serving_memory(entry.arch, tight, layout, machine)


def _fitting(found: Sequence[Entry]) -> list[Entry]:
    """Without the layouts that do not fit, where another one of the row does."""
    able = {entry.row for entry in found if entry.fits}
    return [entry for entry in found if entry.fits or entry.row not in able]


def layout_of(splits: Sequence[Split]) -> ReplicaLayout:
    """Layouts as arrays."""
    names = ("devices", "tp", "pp", "ep")
    return ReplicaLayout(**{name: np.array([getattr(one, name) for one in splits], dtype=np.float64) for name in names})


def machine_of(devices: Sequence[Device]) -> Machine:
    """Machines as arrays: nodes of eight devices on the reference network of their generation."""
    columns: dict[str, list[float]] = {
        "memory_bytes": [float(device.memory_bytes) for device in devices],
        "memory_bandwidth_bytes_per_s": [float(device.memory_bandwidth_bytes_per_s or np.nan) for device in devices],
        "pair_bytes_per_s": [d.scale_up.one_way_pair_bytes_per_s if d.scale_up else 0.0 for d in devices],
        "all_bytes_per_s": [d.scale_up.one_way_bytes_per_s if d.scale_up else 0.0 for d in devices],
        "scale_up_devices": [domain_of(device) for device in devices],
        "pcie": [float(d.scale_up is None or d.scale_up.pattern == "pcie") for d in devices],
        "host_bytes_per_s": [float(device.host_link_bytes_per_s or _NETWORK) for device in devices],
        "inter_node_bytes_per_s": [REFERENCE_NETWORK_BYTES_PER_S.get(d.family, _NETWORK) for d in devices],
    }
    arrays: dict[str, Any] = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
    node = np.maximum(arrays["scale_up_devices"], 8.0)
    return Machine(peak_flop_per_s=np.ones(len(devices)), mfu=1.0, node_devices=node, **arrays)


def domain_of(device: Device) -> float:
    """Devices that the fast links of a server join: of GPUs up to the eight of a node, of other devices all."""
    most = float(device.scale_up.max_devices) if device.scale_up else 1.0
    return min(most, 8.0) if device.kind == "gpu" else most


WHOLE_BATCH = ("fastertransformer", "neuron")  # names of engines that allocate for the batch that is asked for
# What FasterTransformer holds beside weights and cache: 2.7e9 B, and 53 B per unit of width for each token of the
# prompts. Read off the memory column of its guide for GPT 1.3B and 6.7B (27 cells, within 3.4 %):
# NVIDIA/FasterTransformer, docs/gpt_guide.md@df4a753, read 2026-11-21.
WHOLE_BATCH_OVERHEAD_BYTES = 2.7e9
WHOLE_BATCH_BYTES_PER_PROMPT_VALUE = 53.0
DRIVER_SHARE = 0.01  # of a device's memory, which no program gets: 79.2 of 80 GiB on an A100 or H100


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMemory:
    """Memory of one device, for one layout of a row.  [B]"""

    needed_bytes: float  # at least, before the engine begins: of the whole batch, or of one longest request
    available_bytes: float
    peak_bytes: float  # that a monitor of the device would show
    batch_limit: float  # sequences that run at once

    @property
    def runs(self) -> bool:
        """Whether the engine can begin at all."""
        return self.needed_bytes <= self.available_bytes


def memory_of(row: ServingRow, entry: Entry) -> RowMemory:
    """Memory of a row in one of its layouts."""
    if any(name in (row.engine or "").lower() for name in WHOLE_BATCH):
        return _whole_batch(entry)
    found = paged_memory(entry)
    weights, cache = float(np.max(found.terms["weights"])), float(np.max(found.kv_pool_bytes))
    beside = float(np.max(as_float(found.terms["workspace"]) + as_float(found.terms["overhead"])))
    missing = float(np.max(found.missing_bytes))
    available = float(np.max(found.usable_bytes))
    return RowMemory(
        needed_bytes=available + missing if missing else weights + beside,
        available_bytes=available,
        peak_bytes=weights + beside + max(cache, 0.0),
        batch_limit=entry.batch_limit,
    )


def _whole_batch(entry: Entry) -> RowMemory:
    """Weights, cache of every sequence at its full length, and the activations of all prompts."""
    arch, load, split = entry.arch, entry.load, entry.split
    held = float(machine_of([entry.device]).memory_bytes[0])
    stages = split.tp * split.pp
    sequence = float(sequence_cache_bytes(arch, entry.kv_cache, load.input_tokens + load.output_tokens, split.tp))
    weights = weight_bytes_of_model(arch, entry.weights) / stages
    fixed = weights + WHOLE_BATCH_OVERHEAD_BYTES
    prompts = WHOLE_BATCH_BYTES_PER_PROMPT_VALUE * arch.hidden_size * load.input_tokens
    each = (sequence + prompts) / split.pp  # a pipeline cuts the batch into as many parts as it has stages
    available = (1 - DRIVER_SHARE) * held
    needed = fixed + load.clients * each
    return RowMemory(
        needed_bytes=needed,
        available_bytes=available,
        peak_bytes=needed,
        batch_limit=float(np.floor(max(available - fixed, 0.0) / each)),
    )
