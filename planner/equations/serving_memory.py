"""Memory of a serving engine: weights by format, workspace, overhead, room for sequences.

Bytes are those of one device unless a docstring says otherwise. 1 GiB = 2^30 B.
"""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation

GIB = 1024.0**3

# Peak forward workspace that vLLM's warm-up finds on an H100 80 GB at its default 8192 batched
# tokens: 4.76-5.64 GiB for dense models from 0.6B to 70B, 7.38 GiB for mixture-of-experts models;
# independent of context length and of tensor parallelism. llm-d/llm-d-benchmark,
# config_explorer/empirical-vllm-memory-results.md@2593348 (older engine than v0.19, which needs
# 0.8-2.9 GiB: llm-d-planner, docs/accuracy/vllm-v0.19.0-accuracy-report.md@2d557dc; the older and
# larger figure is kept as the default, so that a plan fits both).
DENSE_WORKSPACE_BYTES = 5.2 * GIB
EXPERT_WORKSPACE_BYTES = 7.4 * GIB
WORKSPACE_MEASURED_ON_BYTES = 80 * GIB

# Memory outside the tensor allocator, same source: 0.13 GiB on one device, 0.55 GiB with
# communication buffers for tensor parallelism; rounded up.
SINGLE_OVERHEAD_BYTES = 0.15 * GIB
GROUP_OVERHEAD_BYTES = 0.6 * GIB

LOCAL_STEP_TOKENS, LOCAL_OVERHEAD_BYTES = 512.0, 0.5e9  # of llama.cpp; its device context (recalled)
PREEMPTION_RESERVE = 0.05  # of the cache pool, against sequences that outgrow the mean


@equation("EQ-SRV-1")
def quantised_bytes_per_parameter(
    bits: FloatOrArray, scale_bytes: FloatOrArray = 0, group_values: FloatOrArray = 1
) -> FloatOrArray:
    """Storage of one weight in a block-scaled format, its share of the scale included.

    Parameters
    ----------
    bits
        Bits of a stored value.  [bit]
    scale_bytes
        Scale and zero point kept for each group, 0 = none.  [B]
    group_values
        Values g that share one scale.  [count]

    Returns
    -------
    Bytes per parameter.  [B]

    Notes
    -----
    Eq. (1):  w = bits / 8 + scale / g
    fp8 in 128 x 128 blocks with an fp32 scale: 1 + 4/16384; int8 per output channel with an fp16
    scale: 1 + 2/h; int4 in groups of 128: 0.5 + 2/128; mxfp4: 0.5 + 1/32; nvfp4: 0.5 + 1/16.

    References
    ----------
    [1] Open Compute Project, "OCP Microscaling Formats (MX) Specification v1.0," 2023, sec. 5.
    [2] DeepSeek-AI, "DeepSeek-V3 Technical Report," arXiv 2412.19437, 2024, sec. 3.3.2.

    Examples
    --------
    >>> float(quantised_bytes_per_parameter(4, 1, 32))
    0.53125
    """
    return as_float(bits) / 8 + as_float(scale_bytes) / as_float(group_values)


@equation("EQ-SRV-2")
def activation_workspace_bytes(has_experts: FloatOrArray, device_memory_bytes: FloatOrArray) -> FloatOrArray:
    """Memory that a forward pass needs beside weights and cache.

    Parameters
    ----------
    has_experts
        1 for mixture-of-experts models, else 0.
    device_memory_bytes
        Memory M of the device.  [B]

    Returns
    -------
    Workspace of one device, whatever the split.  [B]

    Notes
    -----
    Eq. (1):  A = A_80 min(1, M / 80 GiB),  A_80 = 5.2 GiB dense, 7.4 GiB with experts.
    A_80 was measured at the engine's default batch limits on an 80 GB device. Engines set these
    limits by memory (a quarter as many tokens and sequences below 70 GiB), and the workspace is
    proportional to them; we scale in proportion to memory, which is never below that.

    References
    ----------
    [1] llm-d/llm-d-benchmark, config_explorer/empirical-vllm-memory-results.md@2593348.

    Examples
    --------
    >>> float(activation_workspace_bytes(0, 24 * 2**30)) / 2**30
    1.56
    """
    measured = np.where(as_float(has_experts) > 0, EXPERT_WORKSPACE_BYTES, DENSE_WORKSPACE_BYTES)
    return measured * np.minimum(1.0, as_float(device_memory_bytes) / WORKSPACE_MEASURED_ON_BYTES)


@equation("EQ-SRV-3")
def engine_overhead_bytes(tensor_parallel: FloatOrArray) -> FloatOrArray:
    """Libraries and communication buffers of the engine, outside its tensor allocator.

    Parameters
    ----------
    tensor_parallel
        Ranks t that reduce together.  [count]

    Returns
    -------
    Overhead of one device.  [B]

    Notes
    -----
    Eq. (1):  O = 0.15 GiB for t = 1, 0.6 GiB for t > 1

    References
    ----------
    [1] llm-d/llm-d-benchmark, config_explorer/empirical-vllm-memory-results.md@2593348.

    Examples
    --------
    >>> float(engine_overhead_bytes(2)) / 2**30
    0.6
    """
    return np.where(as_float(tensor_parallel) > 1, GROUP_OVERHEAD_BYTES, SINGLE_OVERHEAD_BYTES)


@equation("EQ-SRV-28")
def exchange_buffer_bytes(tokens: FloatOrArray, hidden_size: FloatOrArray, experts: FloatOrArray) -> FloatOrArray:
    """Buffers by which an attention rank sends tokens to experts on other ranks, and takes their outputs back.

    Parameters
    ----------
    tokens
        Tokens T that a rank sends in one step at most.  [tokens]
    hidden_size
        Width h of the model.  [values]
    experts
        Routed experts E of a layer, on all ranks together.  [count]

    Returns
    -------
    Bytes of one device.  [B]

    Notes
    -----
    Eq. (1):  X = 2^30 + 4 T E (2 h + h / 32)

    The kernels of DeepEP for answers keep two buffers to send and two to receive, each with room for every token at
    every expert, of 16-bit values with a least and a largest value to each 128 of them; vLLM adds 1 GiB for what goes
    over NVLink.

    References
    ----------
    [1] deepseek-ai/DeepEP, csrc/config.hpp@030cdf0 (LowLatencyLayout).
    [2] vllm 0.33.0, distributed/device_communicators/all2all.py (VLLM_DEEPEP_BUFFER_SIZE_MB).

    Examples
    --------
    >>> float(exchange_buffer_bytes(128, 7168, 256) - GIB) / 1e9
    1.90840832
    """
    wide = as_float(hidden_size) * (2 + 1 / 32)
    return GIB + 4 * as_float(tokens) * as_float(experts) * wide


@equation("EQ-SRV-26")
def local_buffer_bytes(vocab_size: FloatOrArray) -> FloatOrArray:
    """Buffers that llama.cpp computes a step in: the logits of its largest step, at 32 bits.

    Parameters
    ----------
    vocab_size
        Entries V of the vocabulary.  [count]

    Returns
    -------
    Bytes of the device that holds the head.  [B]

    Notes
    -----
    Eq. (1):  B = 512 * 4 V: a step takes up to 512 tokens, its default, and room is kept for as many logits.

    References
    ----------
    [1] ggml-org/llama.cpp, common/common.h (n_ubatch); src/llama-context.cpp (graph of the worst case).

    Examples
    --------
    >>> float(local_buffer_bytes(128256)) / 1e6
    262.668288
    """
    return LOCAL_STEP_TOKENS * 4.0 * as_float(vocab_size)


@equation("EQ-SRV-4")
def kv_pool_bytes(
    memory_fraction: FloatOrArray,
    device_memory_bytes: FloatOrArray,
    weight_bytes: FloatOrArray,
    workspace_bytes: FloatOrArray,
    overhead_bytes: FloatOrArray,
) -> FloatOrArray:
    """Memory left for the cache when the engine may take a fraction of the device.

    Parameters
    ----------
    memory_fraction
        Share u of the device that the engine may use (vLLM gpu_memory_utilization).
    device_memory_bytes
        Memory M of the device.  [B]
    weight_bytes, workspace_bytes, overhead_bytes
        W, A and O of the device.  [B]

    Returns
    -------
    Cache pool of one device; negative = so much is missing.  [B]

    Notes
    -----
    Eq. (1):  K = u M - W - A - O

    References
    ----------
    [1] W. Kwon et al., "PagedAttention," SOSP 2023, sec. 4.2.
    [2] llm-d/llm-d-benchmark, config_explorer/empirical-vllm-memory-results.md@2593348.

    Examples
    --------
    >>> round(float(kv_pool_bytes(0.9, 79.18, 14.99, 4.76, 0.13)), 2)
    51.38
    """
    taken = as_float(weight_bytes) + as_float(workspace_bytes) + as_float(overhead_bytes)
    return as_float(memory_fraction) * as_float(device_memory_bytes) - taken


@equation("EQ-SRV-5")
def free_fraction_kv_pool_bytes(
    free_fraction: FloatOrArray,
    device_memory_bytes: FloatOrArray,
    weight_bytes: FloatOrArray,
    workspace_bytes: FloatOrArray,
    overhead_bytes: FloatOrArray,
) -> FloatOrArray:
    """Memory left for the cache when the engine takes a fraction of what weights leave free.

    Parameters
    ----------
    free_fraction
        Share f of the free memory (TensorRT-LLM free_gpu_memory_fraction).
    device_memory_bytes
        Memory M of the device.  [B]
    weight_bytes, workspace_bytes, overhead_bytes
        W, A and O of the device.  [B]

    Returns
    -------
    Cache pool of one device; negative = so much is missing.  [B]

    Notes
    -----
    Eq. (1):  K = f (M - W - A - O)

    References
    ----------
    [1] NVIDIA, TensorRT-LLM documentation, "Memory Usage of TensorRT-LLM."

    Examples
    --------
    >>> float(free_fraction_kv_pool_bytes(0.9, 80e9, 16e9, 3e9, 1e9)) / 1e9
    54.0
    """
    taken = as_float(weight_bytes) + as_float(workspace_bytes) + as_float(overhead_bytes)
    free = as_float(device_memory_bytes) - taken
    return np.where(free > 0, as_float(free_fraction) * free, free)


@equation("EQ-SRV-6")
def largest_running_batch(
    pool_bytes: FloatOrArray, sequence_bytes: FloatOrArray, reserve: FloatOrArray = PREEMPTION_RESERVE
) -> FloatOrArray:
    """Sequences that run at once in a cache pool, with a reserve against preemption.

    Parameters
    ----------
    pool_bytes
        Cache pool K.  [B]
    sequence_bytes
        Cache of one sequence at its mean resident length, on the same device.  [B]
    reserve
        Share of the pool kept free.

    Returns
    -------
    Whole sequences, 0 when the pool is empty or negative.  [count]

    Notes
    -----
    Eq. (1):  B = floor((1 - reserve) K / k), at least 0

    References
    ----------
    [1] W. Kwon et al., "PagedAttention," SOSP 2023, sec. 4.5 (preemption).

    Examples
    --------
    >>> float(largest_running_batch(50e9, 0.25e9))
    190.0
    """
    return np.maximum(whole_below((1 - as_float(reserve)) * as_float(pool_bytes) / as_float(sequence_bytes)), 0.0)


def whole_below(value: FloatOrArray) -> FloatOrArray:
    """Floor that forgives rounding: a value within 1e-12 (relative) of a whole number is that number."""
    value, nearest = as_float(value), np.rint(value)
    return np.where(np.abs(value - nearest) <= 1e-12 * np.maximum(1.0, np.abs(value)), nearest, np.floor(value))


def whole_above(value: FloatOrArray) -> FloatOrArray:
    """Ceiling that forgives rounding: a value within 1e-12 (relative) of a whole number is that number."""
    return -as_float(whole_below(-as_float(value)))
