"""Attention that reads a part of its context: an index of small heads scores all tokens, and the best are read."""

from __future__ import annotations

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-PAR-13")
def index_parameters(
    hidden_size: FloatOrArray, query_rank: FloatOrArray, index_heads: FloatOrArray, index_size: FloatOrArray
) -> FloatOrArray:
    """Weights of the index of one layer with sparse attention, without the norm of its key.

    Parameters
    ----------
    hidden_size
        Width of the residual stream h.  [values]
    query_rank
        Width r of what its queries are projected from: the compressed query.  [values]
    index_heads, index_size
        Heads a_i and their size e_i; 0 = no index.  [count], [values]

    Returns
    -------
    Weights.  [count]

    Notes
    -----
    Eq. (1):  X = r a_i e_i + h e_i + h a_i: queries of all heads, one key, and a weight for each head.

    References
    ----------
    [1] DeepSeek-AI, "DeepSeek-V3.2-Exp: Boosting Long-Context Efficiency with DeepSeek Sparse Attention," 2025,
        sec. 2.1 (lightning indexer).

    Examples
    --------
    >>> float(index_parameters(7168, 1536, 64, 128)) / 1e6
    13.959168
    """
    h, heads, size = as_float(hidden_size), as_float(index_heads), as_float(index_size)
    return as_float(query_rank) * heads * size + h * size + h * heads


@equation("EQ-KV-8")
def index_cache_bytes_per_token(layers: FloatOrArray, index_size: FloatOrArray) -> FloatOrArray:
    """Keys that the index keeps of one token: 8 bits a value and one scale, whatever the format of the cache.

    Parameters
    ----------
    layers
        Layers L with an index.  [count]
    index_size
        Size e_i of an index head; all heads share one key; 0 = no index.  [values]

    Returns
    -------
    Bytes of one token, whole model, one copy.  [B]

    Notes
    -----
    Eq. (1):  k = L (e_i + 4)  for e_i > 0

    References
    ----------
    [1] DeepSeek-AI, "DeepSeek-V3.2-Exp," 2025, sec. 2.1: the index runs in FP8; DeepGEMM, fp8_mqa_logits (a scale of
        fp32 for each key).

    Examples
    --------
    >>> float(index_cache_bytes_per_token(61, 128))
    8052.0
    """
    size = as_float(index_size)
    return as_float(layers) * (size + 4.0 * (size > 0))
