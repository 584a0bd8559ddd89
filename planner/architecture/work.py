"""FLOPs of a whole model per token, summed over its layer kinds from EQ-FLOP-*."""

from __future__ import annotations

from planner.architecture.model import Architecture, LayerGroup
from planner.equations import flops
from planner.equations.kv_cache import constant_state_bytes
from planner.equations.linear_attention import convolution_state_bytes, linear_attention_forward_flop_per_token
from planner.equations.registry import FloatOrArray, as_float
from planner.equations.state_space import state_space_forward_flop_per_token


def state_bytes(group: LayerGroup) -> float:
    """What one layer with linear attention keeps of a sequence of any length, fp32 state; 0 of other layers.  [B]"""
    if group.attention != "linear":
        return 0.0
    channels = 2 * group.kv_heads * group.head_size + group.query_heads * group.value_head_size
    state = constant_state_bytes(1, group.query_heads, group.head_size, group.value_head_size)
    return float(state) + float(convolution_state_bytes(1, channels, group.kernel_tokens))


def linear_context_tokens(group: LayerGroup) -> float:
    """Context at which softmax attention of the same heads works as much as linear attention; 0 of other layers.

    Work of linear attention grows with the sequence, not with its square: what counts a sliding window
    counts it, with this many tokens as the window.  [tokens]
    """
    if group.attention != "linear":
        return 0.0
    one = flops.attention_forward_flop_per_token(group.query_heads, group.head_size, group.value_head_size, 1)
    return _state_forward_flop_per_token(group) / float(one)


def _state_forward_flop_per_token(group: LayerGroup) -> float:
    """Forward FLOPs of one layer's state per token, by the rule that the state follows.  [FLOP/token]"""
    heads, sizes = group.query_heads, (group.head_size, group.value_head_size)
    if group.chunk_tokens:
        return float(state_space_forward_flop_per_token(group.kv_heads, heads, *sizes, group.chunk_tokens))
    return float(linear_attention_forward_flop_per_token(heads, *sizes))


def core_forward_flop_per_token(
    group: LayerGroup, sequence_length: FloatOrArray, *, causal: bool = True
) -> FloatOrArray:
    """Forward FLOPs of one layer's attention core per token; linear attention's do not grow.  [FLOP/token]

    Parameters
    ----------
    group
        The layer; how many there are of it does not count.
    sequence_length
        Tokens of the sequence; the mean over all of them is taken.  [tokens]
    causal
        A query sees what stands before it and within its window; False: every key, whatever the window.
    """
    sizes = (group.query_heads, group.head_size, group.value_head_size)
    if group.attention == "linear":
        return _state_forward_flop_per_token(group) + 0 * as_float(sequence_length)
    seen = flops.attended_tokens(sequence_length, group.window_tokens) if causal else sequence_length
    return flops.attention_forward_flop_per_token(*sizes, seen)


def attention_forward_flop_per_token(
    architecture: Architecture, sequence_length: FloatOrArray, *, causal: bool = True
) -> FloatOrArray:
    """Forward FLOPs of all attention cores per token of a sequence, each kind with its own window.  [FLOP/token]

    With `causal=False` every query is counted against every key, as some publishers do.

    Parameters
    ----------
    architecture
        The model; one without layers has no attention.
    sequence_length
        Tokens of the sequence; the mean over all of them is taken.  [tokens]
    causal
        A query sees what stands before it and within its window; False: every key, whatever the window.
    """
    total: FloatOrArray = 0 * as_float(sequence_length)
    for group in architecture.layers:
        total = total + group.count * core_forward_flop_per_token(group, sequence_length, causal=causal)
    return total


def training_flop_per_token(
    architecture: Architecture, sequence_length: FloatOrArray, *, causal: bool = True
) -> FloatOrArray:
    """Model FLOPs of one training step per token (EQ-FLOP-7); of a coarse model the rule of six.  [FLOP/token]

    Parameters
    ----------
    architecture
        The model; a coarse one has no layers.
    sequence_length
        Tokens of the sequence; the mean over all of them is taken.  [tokens]
    causal
        A query sees what stands before it and within its window; False: every key, whatever the window.
    """
    core = attention_forward_flop_per_token(architecture, sequence_length, causal=causal)
    return flops.model_flop_per_token(architecture.matmul_parameters, core)


def prefill_flop_per_token(architecture: Architecture, sequence_length: FloatOrArray) -> FloatOrArray:
    """Forward FLOPs per token of a prompt; the head is counted for every token."""
    core = attention_forward_flop_per_token(architecture, sequence_length)
    return flops.linear_forward_flop_per_token(architecture.matmul_parameters) + core
