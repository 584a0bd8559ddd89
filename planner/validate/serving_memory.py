"""Memory of a serving row: whether what it states can have run, and the peak that its engine would show.

Engines that page their cache run as many sequences as fit and keep the others waiting; engines of 2022 and compiled
ones allocate the cache of the whole batch before they begin, and fail where it does not fit.
"""

from __future__ import annotations

import numpy as np

from planner.carriers import dataclass
from planner.equations.registry import as_float
from planner.estimate.serving import weight_bytes_of_model
from planner.estimate.serving_step import sequence_cache_bytes
from planner.validate.serving_entries import Entry, machine_of, paged_memory
from planner.validate.serving_rows import ServingRow

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
