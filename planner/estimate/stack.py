"""What the training software does, in numbers that a step is computed with."""

from __future__ import annotations

from typing import Any

from planner.carriers import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Numbers, or arrays with one element a layout or a job. Flags are 0 or 1, or a share between."""

    # kernels
    overhead: Any = 1.0  # device work of this software over that of a tuned one
    traffic: Any = 1.0  # of EQ-TIME-5: less with compiled or fused norms and activation functions
    eager: Any = 0.0  # attention stores its scores
    attention_rate: Any = 0.5  # best rate of the attention kernel, share of the 16-bit peak
    logit_bytes: Any = 16.0  # moved per logit by loss and gradient
    host_share: Any = 1.0  # of the host time of a layer's pass: little with CUDA graphs or a compiled step
    expert_host: Any = 0.0  # share of the host time that routing adds
    recompute_share: Any = 0.0  # share of a layer's forward pass that a selective policy repeats
    # low precision
    low_precision: Any = 0.0  # linear products in fp8 or fp4
    low_rate: Any = 1.0  # rate of the recipe's products over that of per-tensor scales
    cast: Any = 1.0  # traffic of the recipe's quantisation over that of per-tensor scales
    # on the wire
    value_bytes: Any = 2.0  # of an activation
    exchange_bytes: Any = 2.0  # of a routed value, mean of dispatch and combination
    gather_bytes: Any = 2.0  # of a weight
    reduce_bytes: Any = 2.0  # of a gradient
    imbalance: Any = 1.0  # routed tokens of the fullest rank over the mean
    shard_ranks: Any = 0.0  # devices that share one copy of the weights; 0: all, fewer: hybrid sharding
    # what runs beside compute
    sequence_parallel: Any = 1.0
    tensor_hidden: Any = 0.0  # share of tensor-parallel communication hidden behind products
    expert_hidden: Any = 0.0  # share of the expert exchange hidden behind compute
    gradient_overlap: Any = 1.0  # gradients are reduced beside the last backward pass
    gather_overlap: Any = 1.0  # weights of a sharded optimizer are gathered beside the first forward pass
    hide_transfers: Any = 0.0  # interleaved stages send beside compute
    context_all_to_all: Any = 0.0  # context parallelism exchanges heads instead of a ring of keys and values
    bubble: Any = 1.0  # idle time of the pipeline's schedule over that of 1F1B
    # optimizer and memory
    trained: Any = 1.0  # share of the parameters that is trained (LoRA: adapters)
    weight_gradients: Any = 1.0  # 0: frozen weights need none
    adapters: Any = 0.0  # 1: low-rank adapters beside every linear product
    adapter_rank: Any = 0.0
    adapter_fused: Any = 0.0  # 1: their kernels read inputs and add outputs once
    dequantise_bytes: Any = 0.0  # read and written per frozen weight and pass to unpack it
    accumulation: Any = 1.0  # 0: the product of a weight gradient adds to the sum itself, behind its compute
    optimizer_bytes: Any = 30.0  # read and written per updated parameter
    optimizer_offload: Any = 0.0  # the optimizer runs on the host
    activation_offload: Any = 0.0  # hidden states of a layer that go to the host and come back
    weight_offload: Any = 0.0  # weights come from the host in every pass
