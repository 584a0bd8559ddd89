"""FLOPs of training and inference per token; one multiply-add is 2 FLOPs.

*Model* FLOPs are what the mathematics needs; *hardware* FLOPs add what recomputation repeats.
Publishers count attention in full (every query against every key) or causally (half of it):
compare tokens per second, never FLOP/s, across sources.
"""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-FLOP-1")
def linear_forward_flop_per_token(matmul_parameters: FloatOrArray) -> FloatOrArray:
    """Forward FLOPs of all matrix products with weights, per token.

    Parameters
    ----------
    matmul_parameters
        Weights P that one token is multiplied with: active experts only, the output head
        always, no lookup tables.  [count]

    Returns
    -------
    Forward FLOPs.  [FLOP/token]

    Notes
    -----
    Eq. (1):  F = 2 P

    References
    ----------
    [1] J. Kaplan et al., "Scaling Laws for Neural Language Models," arXiv 2001.08361, 2020, sec. 2.1.

    Examples
    --------
    >>> float(linear_forward_flop_per_token(7e9))
    14000000000.0
    """
    return 2 * as_float(matmul_parameters)


@equation("EQ-FLOP-2")
def linear_training_flop_per_token(matmul_parameters: FloatOrArray) -> FloatOrArray:
    """Model FLOPs of all matrix products with weights in one training step, per token.

    Parameters
    ----------
    matmul_parameters
        Weights P that one token is multiplied with, as in EQ-FLOP-1.  [count]

    Returns
    -------
    Forward and backward FLOPs.  [FLOP/token]

    Notes
    -----
    Eq. (1):  F = 2 P + 2 P + 2 P = 6 P
    for the forward pass, the gradient of the inputs and the gradient of the weights.

    References
    ----------
    [1] J. Kaplan et al., "Scaling Laws for Neural Language Models," arXiv 2001.08361, 2020, sec. 2.1.

    Examples
    --------
    >>> float(linear_training_flop_per_token(7e9))
    42000000000.0
    """
    return 3 * linear_forward_flop_per_token(matmul_parameters)


@equation("EQ-FLOP-3")
def attended_tokens(sequence_length: FloatOrArray, window_tokens: FloatOrArray = 0) -> FloatOrArray:
    """Mean number of tokens a query sees under a causal mask, with or without a sliding window.

    Parameters
    ----------
    sequence_length
        Tokens s of the sequence.  [tokens]
    window_tokens
        Sliding window w; 0 = none.  [tokens]

    Returns
    -------
    Mean attended length over the sequence.  [tokens]

    Notes
    -----
    Eq. (1):  c = u - u^2 / (2 s)  with u = min(w, s), or u = s without a window
    so that c = s / 2 for the plain causal mask and c -> w for s >> w. The diagonal (half a
    token) is left out, as is usual.

    References
    ----------
    [1] A. Q. Jiang et al., "Mistral 7B," arXiv 2310.06825, 2023, sec. 2 (sliding window attention).
    [2] T. Dao, "FlashAttention-2," arXiv 2307.08691, 2023, sec. 3.1.1 (half of the blocks under a causal mask).

    Examples
    --------
    >>> float(attended_tokens(8192))
    4096.0
    >>> float(attended_tokens(8192, 4096))
    3072.0
    """
    s, w = as_float(sequence_length), as_float(window_tokens)
    seen = np.where(w > 0, np.minimum(w, s), s)
    return seen - seen**2 / (2 * s)


@equation("EQ-FLOP-4")
def attention_forward_flop_per_token(
    query_heads: FloatOrArray,
    score_head_size: FloatOrArray,
    value_head_size: FloatOrArray,
    context_tokens: FloatOrArray,
) -> FloatOrArray:
    """Forward FLOPs of one layer's attention core, per query token.

    Parameters
    ----------
    query_heads
        Query heads a.  [count]
    score_head_size
        Size of a query or key head e_qk.  [values]
    value_head_size
        Size of a value head e_v.  [values]
    context_tokens
        Keys c that the token attends to: s for the full count, s / 2 on average under a
        causal mask (EQ-FLOP-3), the context length when decoding.  [tokens]

    Returns
    -------
    FLOPs of the scores and of the weighted values.  [FLOP/token]

    Notes
    -----
    Eq. (1):  F = 2 a (e_qk + e_v) c

    References
    ----------
    [1] D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters
        Using Megatron-LM," SC21, 2021, arXiv 2104.04473, appendix.

    Examples
    --------
    >>> float(attention_forward_flop_per_token(32, 128, 128, 4096))
    67108864.0
    """
    sizes = as_float(score_head_size) + as_float(value_head_size)
    return 2 * as_float(query_heads) * sizes * as_float(context_tokens)


@equation("EQ-FLOP-7")
def model_flop_per_token(
    matmul_parameters: FloatOrArray, attention_forward_flop_per_token: FloatOrArray
) -> FloatOrArray:
    """Model FLOPs of one training step, per token.

    Parameters
    ----------
    matmul_parameters
        Weights P that one token is multiplied with.  [count]
    attention_forward_flop_per_token
        Forward FLOPs A of the attention cores of all layers.  [FLOP/token]

    Returns
    -------
    Forward and backward FLOPs.  [FLOP/token]

    Notes
    -----
    Eq. (1):  F = 6 P + 3 A

    References
    ----------
    [1] A. Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways," arXiv 2204.02311,
        2022, app. B.

    Examples
    --------
    >>> float(model_flop_per_token(6e9, 1e9))
    39000000000.0
    """
    return linear_training_flop_per_token(matmul_parameters) + 3 * as_float(attention_forward_flop_per_token)


@equation("EQ-FLOP-8")
def hardware_flop_per_token(
    layer_matmul_parameters: FloatOrArray,
    head_parameters: FloatOrArray,
    attention_forward_flop_per_token: FloatOrArray,
    recompute: FloatOrArray,
) -> FloatOrArray:
    """FLOPs that the device carries out in one training step, per token, recomputation included.

    Parameters
    ----------
    layer_matmul_parameters
        Weights P_l of the layers that one token is multiplied with.  [count]
    head_parameters
        Weights P_h of the output head, which is never recomputed.  [count]
    attention_forward_flop_per_token
        Forward FLOPs A of the attention cores of all layers.  [FLOP/token]
    recompute
        0 none, 1 selective (attention cores), 2 full (whole layers).

    Returns
    -------
    Forward, backward and repeated forward FLOPs.  [FLOP/token]

    Notes
    -----
    Eq. (1):  F = 6 (P_l + P_h) + 3 A + [selective or full] A + [full] 2 P_l
    The backward pass of a fused attention kernel repeats the scores as well; that is never
    counted as model or hardware FLOPs.

    References
    ----------
    [1] V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models,"
        arXiv 2205.05198, 2022, app. A.
    [2] D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters
        Using Megatron-LM," SC21, 2021, arXiv 2104.04473, appendix.

    Examples
    --------
    >>> [float(hardware_flop_per_token(6e9, 1e9, 2e9, r)) / 1e9 for r in (0, 1, 2)]
    [48.0, 50.0, 62.0]
    """
    layer, core = as_float(layer_matmul_parameters), as_float(attention_forward_flop_per_token)
    kind = as_float(recompute)
    repeated = (kind >= 1) * core + (kind >= 2) * linear_forward_flop_per_token(layer)
    return model_flop_per_token(layer + as_float(head_parameters), core) + repeated


@equation("EQ-FLOP-15")
def model_flop_utilisation(
    tokens_per_s: FloatOrArray, flop_per_token: FloatOrArray, peak_flop_per_s: FloatOrArray
) -> FloatOrArray:
    """Share of the peak that useful work takes.

    Parameters
    ----------
    tokens_per_s
        Observed training rate R.  [tokens/s]
    flop_per_token
        Model FLOPs F of one token.  [FLOP/token]
    peak_flop_per_s
        Peak P of the devices that reach that rate together.  [FLOP/s]

    Returns
    -------
    Model FLOPs utilisation (MFU).  [fraction]

    Notes
    -----
    Eq. (1):  MFU = R F / P

    References
    ----------
    [1] A. Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways," arXiv 2204.02311,
        2022, app. B.

    Examples
    --------
    >>> float(model_flop_utilisation(1000, 156e9, 312e12))
    0.5
    """
    return as_float(tokens_per_s) * as_float(flop_per_token) / as_float(peak_flop_per_s)
