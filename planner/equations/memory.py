"""Model states and everything else on a training device that is not an activation.

A *recipe* says how many bytes one parameter takes as weight, gradient and optimizer state;
sharding says which of the three are divided over the ranks that hold the same parameters.
"""

from __future__ import annotations

import math

import numpy as np

from planner.equations.recipes import OPTIMIZERS, RECIPES, StateRecipe, state_recipe
from planner.equations.registry import FloatOrArray, as_float, equation

__all__ = ["OPTIMIZERS", "RECIPES", "StateRecipe", "state_recipe"]  # beside the equations below

GIB = 2.0**30
LIBRARY_BYTES = (
    0.3 * GIB
)  # cuBLAS and cuDNN workspaces inside the process: with it 8 SimuMax B200 readings fit within 1.2 %
DEFAULT_RESERVE_BYTES = 1.5e9  # upper end of the 0.5-1.5 GB that a CUDA context with its libraries takes
LARGEST_RESERVED_SHARE = 0.07  # 93-99 % of a device's memory is usable: never reserve more than 7 %


@equation("EQ-MEM-1")
def adam_mixed_precision_state_bytes(parameter_count: FloatOrArray) -> FloatOrArray:
    """Memory of weights, gradients and optimizer state under mixed-precision Adam.

    Parameters
    ----------
    parameter_count
        Trainable parameters Φ.  [count]

    Returns
    -------
    Bytes held for the whole model, before any sharding.  [B]

    Notes
    -----
    Eq. (1):  M = (2 + 2 + 4 + 4 + 4) Φ = 16 Φ

    for 16-bit weights, 16-bit gradients, 32-bit master weights, momentum and variance.

    References
    ----------
    [1] S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
        Models," SC20, 2020, arXiv 1910.02054, sec. 3.1.

    Examples
    --------
    >>> float(adam_mixed_precision_state_bytes(1_500_000_000)) / 1e9
    24.0
    """
    return 16.0 * as_float(parameter_count)


@equation("EQ-MEM-2")
def weight_memory_bytes(
    parameter_count: FloatOrArray, bytes_per_weight: FloatOrArray, shard_devices: FloatOrArray, stage: FloatOrArray
) -> FloatOrArray:
    """Weights of one rank: whole up to ZeRO-2, divided over the shard group from ZeRO-3 on.

    Parameters
    ----------
    parameter_count
        Parameters P of the rank before sharding.  [count]
    bytes_per_weight
        Bytes w of one stored weight.  [B]
    shard_devices
        Ranks D that share the states.  [count]
    stage
        ZeRO stage 0 to 3.

    Returns
    -------
    Bytes of weights on one device.  [B]

    Notes
    -----
    Eq. (1):  M_w = w P / (D if stage >= 3 else 1)

    References
    ----------
    [1] S. Rajbhandari et al., arXiv 1910.02054, sec. 5.3.

    Examples
    --------
    >>> float(weight_memory_bytes(7.5e9, 2, 64, 3)) / 1e9
    0.234375
    """
    return as_float(parameter_count) * bytes_per_weight / np.where(as_float(stage) >= 3, as_float(shard_devices), 1.0)


@equation("EQ-MEM-3")
def gradient_memory_bytes(
    parameter_count: FloatOrArray, bytes_per_gradient: FloatOrArray, shard_devices: FloatOrArray, stage: FloatOrArray
) -> FloatOrArray:
    """Gradients of one rank: whole up to ZeRO-1, divided over the shard group from ZeRO-2 on.

    Parameters
    ----------
    parameter_count
        Parameters P of the rank before sharding.  [count]
    bytes_per_gradient
        Bytes q of one stored gradient.  [B]
    shard_devices
        Ranks D that share the states.  [count]
    stage
        ZeRO stage 0 to 3.

    Returns
    -------
    Bytes of gradients on one device.  [B]

    Notes
    -----
    Eq. (1):  M_q = q P / (D if stage >= 2 else 1)

    References
    ----------
    [1] S. Rajbhandari et al., arXiv 1910.02054, sec. 5.2.

    Examples
    --------
    >>> float(gradient_memory_bytes(7.5e9, 2, 64, 1)) / 1e9
    15.0
    """
    return as_float(parameter_count) * bytes_per_gradient / np.where(as_float(stage) >= 2, as_float(shard_devices), 1.0)


@equation("EQ-MEM-4")
def optimizer_memory_bytes(
    parameter_count: FloatOrArray, bytes_per_state: FloatOrArray, shard_devices: FloatOrArray, stage: FloatOrArray
) -> FloatOrArray:
    """Master weights and moments of one rank: divided over the shard group from ZeRO-1 on.

    Parameters
    ----------
    parameter_count
        Parameters P of the rank before sharding.  [count]
    bytes_per_state
        Bytes o of master weight and moments of one parameter.  [B]
    shard_devices
        Ranks D that share the states.  [count]
    stage
        ZeRO stage 0 to 3; stage 1 is also called distributed optimizer.

    Returns
    -------
    Bytes of optimizer state on one device.  [B]

    Notes
    -----
    Eq. (1):  M_o = o P / (D if stage >= 1 else 1)

    References
    ----------
    [1] S. Rajbhandari et al., arXiv 1910.02054, sec. 5.1.

    Examples
    --------
    >>> float(optimizer_memory_bytes(7.5e9, 12, 64, 1)) / 1e9
    1.40625
    """
    return as_float(parameter_count) * bytes_per_state / np.where(as_float(stage) >= 1, as_float(shard_devices), 1.0)


@equation("EQ-MEM-6")
def effective_sharding_stage(
    stage: FloatOrArray, pipeline_stages: FloatOrArray, micro_batches: FloatOrArray
) -> FloatOrArray:
    """ZeRO stage that is left of the one asked for when a pipeline accumulates gradients.

    Parameters
    ----------
    stage
        ZeRO stage asked for, 0 to 3.
    pipeline_stages
        Pipeline stages p.  [count]
    micro_batches
        Micro-batches m of a step.  [count]

    Returns
    -------
    Stage in effect: 2 becomes 1 when p > 1 and m > 1, because gradients stay whole until the last micro-batch.

    Notes
    -----
    Eq. (1):  k' = 1 if k = 2 and p > 1 and m > 1, else k

    References
    ----------
    [1] DeepSpeed documentation: ZeRO-2 cannot be combined with its pipeline engine.

    Examples
    --------
    >>> float(effective_sharding_stage(2, 8, 16)), float(effective_sharding_stage(2, 1, 16))
    (1.0, 2.0)
    """
    whole = (as_float(stage) == 2) & (as_float(pipeline_stages) > 1) & (as_float(micro_batches) > 1)
    return np.where(whole, 1.0, as_float(stage))[()]


@equation("EQ-MEM-7")
def expert_shard_devices(
    data_parallel: FloatOrArray,
    context_parallel: FloatOrArray,
    tensor_parallel: FloatOrArray,
    expert_parallel: FloatOrArray,
    expert_tensor_parallel: FloatOrArray,
) -> FloatOrArray:
    """Ranks that hold the same expert weights and may share their states.

    Parameters
    ----------
    data_parallel, context_parallel, tensor_parallel
        Degrees d, c, t of one pipeline stage.  [count]
    expert_parallel, expert_tensor_parallel
        Degrees ep and et that divide the experts.  [count]

    Returns
    -------
    Size of the expert shard group.  [count]

    Notes
    -----
    Eq. (1):  D_e = d c t / (ep et);  dense weights: D = d c

    References
    ----------
    [1] NVIDIA/Megatron-LM, MoE parallel folding.

    Examples
    --------
    >>> float(expert_shard_devices(16, 1, 4, 8, 4))
    2.0
    """
    ranks = as_float(data_parallel) * context_parallel * tensor_parallel
    return ranks / (as_float(expert_parallel) * expert_tensor_parallel)


@equation("EQ-MEM-10")
def gathered_layer_bytes(
    layer_parameters: FloatOrArray,
    bytes_per_weight: FloatOrArray = 2,
    bytes_per_gradient: FloatOrArray = 2,
    prefetched_layers: FloatOrArray = 2,
) -> FloatOrArray:
    """Whole layers that ZeRO-3 or FSDP holds while it computes: gathered weights and unreduced gradients.

    Parameters
    ----------
    layer_parameters
        Parameters of the largest layer on the rank, P_layer / t.  [count]
    bytes_per_weight
        Bytes of a gathered weight.  [B]
    bytes_per_gradient
        Bytes of a gradient before it is reduced and scattered.  [B]
    prefetched_layers
        Layers gathered at once: the one in use and the next.  [count]

    Returns
    -------
    Bytes of gathered weights and of one layer's gradients.  [B]

    Notes
    -----
    Eq. (1):  M = (2 w_c + q) P_layer / t

    References
    ----------
    [1] Y. Zhao et al., "PyTorch FSDP," VLDB 2023, arXiv 2304.11277, sec. 3-4.
    [2] DeepSpeed documentation, "Memory Requirements": one layer, 2 + 2 bytes a parameter.

    Examples
    --------
    >>> float(gathered_layer_bytes(32e6, prefetched_layers=1)) / 1e6
    128.0
    """
    layer = as_float(layer_parameters)
    return layer * (as_float(prefetched_layers) * bytes_per_weight + bytes_per_gradient)


@equation("EQ-MEM-11")
def gathered_stage_bytes(
    rank_parameters: FloatOrArray, bytes_per_weight: FloatOrArray = 2, bytes_per_gradient: FloatOrArray = 4
) -> FloatOrArray:
    """Whole stage that FSDP keeps under a pipeline: weights stay gathered, gradients unsharded.

    Parameters
    ----------
    rank_parameters
        Parameters P_r of the rank before sharding.  [count]
    bytes_per_weight
        Bytes of a gathered weight.  [B]
    bytes_per_gradient
        Bytes of an unsharded gradient.  [B]

    Returns
    -------
    Bytes held from the first to the last micro-batch of a step.  [B]

    Notes
    -----
    Eq. (1):  M = (w_c + q) P_r

    References
    ----------
    [1] pytorch/torchtitan, benchmarks of Llama 3.1 405B with FSDP and pipeline parallelism.

    Examples
    --------
    >>> float(gathered_stage_bytes(1e9)) / 1e9
    6.0
    """
    return as_float(rank_parameters) * (as_float(bytes_per_weight) + bytes_per_gradient)


@equation("EQ-MEM-12")
def weight_gradient_scratch_bytes(
    hidden_size: FloatOrArray,
    matrix_width: FloatOrArray,
    tensor_parallel: FloatOrArray = 1,
    bytes_per_value: FloatOrArray = 2,
) -> FloatOrArray:
    """Fresh weight gradients that wait to be added to the accumulated ones.

    Parameters
    ----------
    hidden_size
        Width h of the residual stream.  [values]
    matrix_width
        Other side of the largest weight matrix: f, or 2 f when gate and up projections are one.  [values]
    tensor_parallel
        Tensor-parallel degree t.  [count]
    bytes_per_value
        Bytes of one value of the product.  [B]

    Returns
    -------
    Bytes of two such gradients in flight.  [B]

    Notes
    -----
    Eq. (1):  M = 2 * 2 h f' / t

    Needed when a second gradient is added to a first: gradient accumulation, or fp32 main gradients.

    References
    ----------
    [1] MooreThreads/SimuMax, B200 results: layers of Llama 3 405B size (factor 2 chosen on those rows).

    Examples
    --------
    >>> float(weight_gradient_scratch_bytes(4096, 2 * 14336)) / 1e6
    469.762048
    """
    return 2.0 * bytes_per_value * as_float(hidden_size) * matrix_width / as_float(tensor_parallel)


@equation("EQ-MEM-13")
def gradient_bucket_bytes(
    bucket_elements: FloatOrArray, bytes_per_element: FloatOrArray, buckets: FloatOrArray = 2
) -> FloatOrArray:
    """Communication buckets of data parallelism: one being filled, one being reduced.

    Parameters
    ----------
    bucket_elements
        Elements of a bucket; DeepSpeed 5e8, PyTorch 25 MiB of bytes.  [count]
    bytes_per_element
        Bytes of one element.  [B]
    buckets
        Buckets held at once.  [count]

    Returns
    -------
    Bytes of communication buffers.  [B]

    Notes
    -----
    Eq. (1):  M = 2 n_b q

    References
    ----------
    [1] DeepSpeed documentation, reduce_bucket_size; PyTorch DistributedDataParallel, bucket_cap_mb = 25.

    Examples
    --------
    >>> float(gradient_bucket_bytes(5e8, 2)) / 1e9
    2.0
    """
    return as_float(buckets) * bucket_elements * bytes_per_element


@equation("EQ-MEM-14")
def fragmentation_bytes(dynamic_bytes: FloatOrArray, share: FloatOrArray = 0.05) -> FloatOrArray:
    """Memory that the allocator holds but cannot hand out.

    Parameters
    ----------
    dynamic_bytes
        Bytes allocated and freed within a step: activations, logits, gathered weights, scratch.  [B]
    share
        0.03 with expandable segments or a static graph, 0.05 by default, 0.15 with variable shapes.  [1]

    Returns
    -------
    Bytes lost.  [B]

    Notes
    -----
    Eq. (1):  M = (phi - 1) M_dynamic,  phi = 1.03, 1.05 or 1.15

    The founding rule of thumb gives 5 to 15 % of memory.

    References
    ----------
    [1] MooreThreads/SimuMax B200 results: reserved exceeds allocated memory by 3-7 %.

    Examples
    --------
    >>> float(fragmentation_bytes(20e9)) / 1e9
    1.0
    """
    return as_float(dynamic_bytes) * share


@equation("EQ-MEM-15")
def usable_memory_bytes(capacity_bytes: FloatOrArray, reserved_bytes: FloatOrArray = math.nan) -> FloatOrArray:
    """Memory of a device that a training or serving process may fill.

    Parameters
    ----------
    capacity_bytes
        Capacity of the device, not its label.  [B]
    reserved_bytes
        What driver, context and communication library take; not a number = unknown.  [B]

    Returns
    -------
    Usable bytes.  [B]

    Notes
    -----
    Eq. (1):  M_usable = capacity - reserved,  reserved = min(1.5e9, 0.07 capacity) when unknown

    The default is an assumption: a CUDA context with its libraries takes 0.5 to 1.5 GB, and
    93 to 99 % of the memory of published devices is usable.

    References
    ----------
    [1] stas00/ml-engineering, accelerators: context memory before the first tensor.

    Examples
    --------
    >>> float(usable_memory_bytes(80 * 2**30)) / 1e9
    84.39934592
    """
    capacity, reserved = as_float(capacity_bytes), as_float(reserved_bytes)
    assumed = np.minimum(DEFAULT_RESERVE_BYTES, LARGEST_RESERVED_SHARE * capacity)
    return capacity - np.where(np.isnan(reserved), assumed, reserved)


@equation("EQ-MEM-16")
def layers_of_fullest_stage(layers: FloatOrArray, pipeline_stages: FloatOrArray) -> FloatOrArray:
    """Layers on the fullest pipeline stage when they do not divide evenly.

    Parameters
    ----------
    layers
        Layers L of the model.  [count]
    pipeline_stages
        Pipeline stages p.  [count]

    Returns
    -------
    ceil(L / p).  [count]

    Notes
    -----
    Eq. (1):  n = ceil(L / p)

    References
    ----------
    [1] A. Dubey et al., "The Llama 3 Herd of Models," 2024, sec. 3.3.2: 126 layers on 16 stages.

    Examples
    --------
    >>> float(layers_of_fullest_stage(126, 16))
    8.0
    """
    return np.ceil(as_float(layers) / as_float(pipeline_stages))
