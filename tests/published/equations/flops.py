"""FLOPs of training a token as publishers count them: attention in full, causal, beside adapters."""

from __future__ import annotations

from planner.equations.flops import attended_tokens, attention_forward_flop_per_token, linear_training_flop_per_token
from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-FLOP-6")
def causal_attention_training_flop_per_token(
    layers: FloatOrArray,
    query_heads: FloatOrArray,
    head_size: FloatOrArray,
    sequence_length: FloatOrArray,
    window_tokens: FloatOrArray = 0,
) -> FloatOrArray:
    """Model FLOPs of the attention core in training when only what the mask leaves is counted.

    Parameters
    ----------
    layers
        Layers L.  [count]
    query_heads
        Query heads a.  [count]
    head_size
        Size e of a head.  [values]
    sequence_length
        Tokens s of the sequence.  [tokens]
    window_tokens
        Sliding window; 0 = none.  [tokens]

    Returns
    -------
    Forward and backward FLOPs of all layers.  [FLOP/token]

    Notes
    -----
    Eq. (1):  F = 12 L a e c,  c of EQ-FLOP-3;  6 L a e s without a window

    References
    ----------
    [1] T. Dao, "FlashAttention-2," arXiv 2307.08691, 2023, sec. 4.1.

    Examples
    --------
    >>> float(causal_attention_training_flop_per_token(32, 32, 128, 2048))
    1610612736.0
    """
    seen = attended_tokens(sequence_length, window_tokens)
    return full_attention_training_flop_per_token(layers, query_heads, head_size, seen)


@equation("EQ-FLOP-13")
def lora_training_flop_per_token(
    frozen_parameters: FloatOrArray,
    adapter_parameters: FloatOrArray,
    attention_forward_flop_per_token: FloatOrArray = 0,
) -> FloatOrArray:
    """Model FLOPs of one training step when only adapters learn, per token.

    Parameters
    ----------
    frozen_parameters
        Frozen weights P_frozen that one token is multiplied with.  [count]
    adapter_parameters
        Adapter weights P_lora.  [count]
    attention_forward_flop_per_token
        Forward FLOPs A of the attention cores of all layers.  [FLOP/token]

    Returns
    -------
    Forward and backward FLOPs.  [FLOP/token]

    Notes
    -----
    Eq. (1):  F = 4 P_frozen + 6 P_lora + 3 A
    A frozen weight takes part in the forward pass and in the gradient of the inputs, but has
    no gradient of its own.

    References
    ----------
    [1] E. J. Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models," ICLR 2022,
        arXiv 2106.09685, sec. 4.2.

    Examples
    --------
    >>> float(lora_training_flop_per_token(8e9, 42e6)) / 1e9
    32.252
    """
    learned = linear_training_flop_per_token(adapter_parameters)
    return 4 * as_float(frozen_parameters) + learned + 3 * as_float(attention_forward_flop_per_token)


@equation("EQ-FLOP-5")
def full_attention_training_flop_per_token(
    layers: FloatOrArray, query_heads: FloatOrArray, head_size: FloatOrArray, sequence_length: FloatOrArray
) -> FloatOrArray:
    """Model FLOPs of the attention core in training when every query is counted against every key.

    Parameters
    ----------
    layers
        Layers L.  [count]
    query_heads
        Query heads a.  [count]
    head_size
        Size e of a head.  [values]
    sequence_length
        Tokens s of the sequence.  [tokens]

    Returns
    -------
    Forward and backward FLOPs of all layers.  [FLOP/token]

    Notes
    -----
    Eq. (1):  F = 12 L a e s

    References
    ----------
    [1] A. Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways," arXiv 2204.02311,
        2022, app. B.

    Examples
    --------
    >>> float(full_attention_training_flop_per_token(32, 32, 128, 2048))
    3221225472.0
    """
    forward = attention_forward_flop_per_token(query_heads, head_size, head_size, sequence_length)
    return 3 * as_float(layers) * forward
