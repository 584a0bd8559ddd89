"""Key-value cache of a serving engine: bytes of a token, tokens that stay, shares of ranks."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation
from planner.equations.serving_memory import whole_above


@equation("EQ-KV-1")
def kv_cache_bytes_per_token(
    layers: FloatOrArray,
    kv_heads: FloatOrArray,
    key_size: FloatOrArray,
    value_size: FloatOrArray,
    bytes_per_value: FloatOrArray = 2,
) -> FloatOrArray:
    """Keys and values of one token under multi-head, grouped-query or multi-query attention.

    Parameters
    ----------
    layers
        Layers L that attend in this way.  [count]
    kv_heads
        Key-value heads g of a layer.  [count]
    key_size, value_size
        Size of one key head and of one value head.  [values]
    bytes_per_value
        2 at 16 bits, 1 at 8 bits.  [B]

    Returns
    -------
    Bytes of one token, whole model, one copy.  [B]

    Notes
    -----
    Eq. (1):  k = L g (e_k + e_v) b

    References
    ----------
    [1] J. Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from
        Multi-Head Checkpoints," EMNLP 2023, sec. 2.2.
    [2] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with
        PagedAttention," SOSP 2023, sec. 3 (800 KB a token for OPT-13B).

    Examples
    --------
    >>> float(kv_cache_bytes_per_token(80, 8, 128, 128))
    327680.0
    """
    width = as_float(key_size) + as_float(value_size)
    return as_float(layers) * as_float(kv_heads) * width * as_float(bytes_per_value)


@equation("EQ-KV-2")
def latent_cache_bytes_per_token(
    layers: FloatOrArray, kv_rank: FloatOrArray, rope_size: FloatOrArray, bytes_per_value: FloatOrArray = 2
) -> FloatOrArray:
    """Cache of one token under multi-head latent attention: one latent and one rotary key a layer.

    Parameters
    ----------
    layers
        Layers L.  [count]
    kv_rank
        Width r of the latent.  [values]
    rope_size
        Width p of the rotary key that the heads share.  [values]
    bytes_per_value
        2 at 16 bits, 1 at 8 bits.  [B]

    Returns
    -------
    Bytes of one token, whole model, one copy.  [B]

    Notes
    -----
    Eq. (1):  k = L (r + p) b.  The latent serves all heads, so tensor parallelism copies it.

    References
    ----------
    [1] DeepSeek-AI, "DeepSeek-V2," arXiv 2405.04434, 2024, sec. 2.1.4 and table 1.

    Examples
    --------
    >>> float(latent_cache_bytes_per_token(61, 512, 64))
    70272.0
    """
    return as_float(layers) * (as_float(kv_rank) + as_float(rope_size)) * as_float(bytes_per_value)


@equation("EQ-KV-3")
def resident_tokens(
    tokens: FloatOrArray, window_tokens: FloatOrArray = 0, page_tokens: FloatOrArray = 1
) -> FloatOrArray:
    """Tokens of a sequence that one layer keeps: all, or the last window, in whole pages.

    Parameters
    ----------
    tokens
        Length s of the sequence.  [tokens]
    window_tokens
        Sliding window, 0 = the layer keeps all.  [tokens]
    page_tokens
        Tokens of one cache page, 1 = no rounding.  [tokens]

    Returns
    -------
    Tokens that occupy memory.  [tokens]

    Notes
    -----
    Eq. (1):  s' = page * ceil(min(s, window) / page)

    References
    ----------
    [1] W. Kwon et al., "PagedAttention," SOSP 2023, sec. 4.1 (pages).
    [2] A. Q. Jiang et al., "Mistral 7B," arXiv 2310.06825, 2023, sec. 2 (rolling buffer).

    Examples
    --------
    >>> float(resident_tokens(1000, 0, 16)), float(resident_tokens(1000, 128))
    (1008.0, 128.0)
    """
    window, page = as_float(window_tokens), as_float(page_tokens)
    kept = np.minimum(as_float(tokens), np.where(window > 0, window, np.inf))
    return whole_above(kept / page) * page


@equation("EQ-KV-4")
def kv_share_of_rank(
    kv_heads: FloatOrArray, tensor_parallel: FloatOrArray, context_parallel: FloatOrArray = 1
) -> FloatOrArray:
    """Share of a layer's cache that one tensor-parallel rank holds.

    Parameters
    ----------
    kv_heads
        Key-value heads g; 1 for a latent cache, which every rank needs whole.  [count]
    tensor_parallel
        Ranks t.  [count]
    context_parallel
        Ranks c among them that share out the tokens of heads which they would hold in copies.  [count]

    Returns
    -------
    Share, 1 = a full copy on every rank.

    Notes
    -----
    Eq. (1):  share = ceil(g / t) / (g c), so heads are copied once t > g, unless copies share out the tokens.

    References
    ----------
    [1] R. Pope et al., "Efficiently Scaling Transformer Inference," MLSys 2023, sec. 3.3.
    [2] vLLM documentation, "Context Parallel Deployment": decode context parallelism inside tensor parallelism.

    Examples
    --------
    >>> float(kv_share_of_rank(8, 4)), float(kv_share_of_rank(8, 16)), float(kv_share_of_rank(1, 8, 4))
    (0.25, 0.125, 0.25)
    """
    heads = as_float(kv_heads)
    return np.ceil(heads / as_float(tensor_parallel)) / (heads * as_float(context_parallel))


@equation("EQ-KV-5")
def constant_state_bytes(
    layers: FloatOrArray,
    heads: FloatOrArray,
    key_size: FloatOrArray,
    value_size: FloatOrArray,
    bytes_per_value: FloatOrArray = 4,
) -> FloatOrArray:
    """State of linear-attention or state-space layers: constant for a sequence, however long.

    Parameters
    ----------
    layers
        Layers of this kind.  [count]
    heads
        Heads of a layer.  [count]
    key_size, value_size
        Sides of one head's state matrix.  [values]
    bytes_per_value
        4: the state is kept in fp32.  [B]

    Returns
    -------
    Bytes of one sequence, whole model.  [B]

    Notes
    -----
    Eq. (1):  S = L a e_k e_v b

    References
    ----------
    [1] T. Dao and A. Gu, "Transformers are SSMs," ICML 2024, sec. 3.

    Examples
    --------
    >>> float(constant_state_bytes(36, 32, 128, 128)) / 2**20
    72.0
    """
    state = as_float(heads) * as_float(key_size) * as_float(value_size)
    return as_float(layers) * state * as_float(bytes_per_value)


@equation("EQ-KV-6")
def mean_resident_tokens(input_tokens: FloatOrArray, output_tokens: FloatOrArray) -> FloatOrArray:
    """Length of a running sequence, averaged over its decode steps.

    Parameters
    ----------
    input_tokens
        Prompt length.  [tokens]
    output_tokens
        Generated length.  [tokens]

    Returns
    -------
    Mean tokens in cache while the sequence decodes.  [tokens]

    Notes
    -----
    Eq. (1):  s = input + output / 2.  Over a distribution of requests take the mean weighted by
    output length, since a longer output stays longer.

    References
    ----------
    [1] W. Kwon et al., "PagedAttention," SOSP 2023, sec. 4.3 (memory is taken as it is needed).

    Examples
    --------
    >>> float(mean_resident_tokens(1024, 1024))
    1536.0
    """
    return as_float(input_tokens) + as_float(output_tokens) / 2
