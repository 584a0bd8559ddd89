"""Layers that keep a state of constant size in place of keys and values, and attention that reads part of its context.

Linear attention is written for the gated delta rule (Qwen3-Next, Qwen3.5): key and value heads of their own sizes, a
short convolution over queries, keys and values, a decay and a write strength for each value head, a gated output. In
Mamba-2 a state decays, chosen by the token itself. Its heads stand beside each other as heads of attention do; several
share one projection into the state (B) and one out of it (C), as query heads share keys and values. A state takes what
EQ-KV-5 and EQ-KV-7 count. Sparse attention has an index of small heads that scores all tokens; the best are read.
"""

from __future__ import annotations

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-PAR-11")
def linear_attention_matrix_parameters(
    hidden_size: FloatOrArray,
    key_heads: FloatOrArray,
    value_heads: FloatOrArray,
    key_size: FloatOrArray,
    value_size: FloatOrArray,
) -> FloatOrArray:
    """Weights of the projections of one layer with gated linear attention.

    Parameters
    ----------
    hidden_size
        Width of the residual stream h.  [values]
    key_heads, value_heads
        Heads a_k of queries and of keys, heads a_v of values and of the state.  [count]
    key_size, value_size
        Sizes e_k and e_v of a head.  [values]

    Returns
    -------
    Weights that a token is multiplied with.  [count]

    Notes
    -----
    Eq. (1):  A = h (2 a_k e_k + 2 a_v e_v + 2 a_v) + a_v e_v h
    for queries and keys, values and the output's gate, decay and write strength, and the output.

    References
    ----------
    [1] S. Yang et al., "Gated Delta Networks: Improving Mamba2 with Delta Rule," ICLR 2025, arXiv 2412.06464.
    [2] huggingface/transformers, src/transformers/models/qwen3_next/modular_qwen3_next.py@043bb8d,
        Qwen3NextGatedDeltaNet.

    Examples
    --------
    >>> float(linear_attention_matrix_parameters(2048, 16, 32, 128, 128))
    33685504.0
    """
    h, heads = as_float(hidden_size), as_float(value_heads)
    keys, values = as_float(key_heads) * as_float(key_size), heads * as_float(value_size)
    return h * (2 * keys + 2 * values + 2 * heads) + values * h


@equation("EQ-PAR-12")
def linear_attention_parameters(
    hidden_size: FloatOrArray,
    key_heads: FloatOrArray,
    value_heads: FloatOrArray,
    key_size: FloatOrArray,
    value_size: FloatOrArray,
    kernel_tokens: FloatOrArray = 4,
) -> FloatOrArray:
    """Parameters of gated linear attention in one layer.

    Parameters
    ----------
    hidden_size
        Width of the residual stream h.  [values]
    key_heads, value_heads
        Heads a_k of queries and of keys, heads a_v of values and of the state.  [count]
    key_size, value_size
        Sizes e_k and e_v of a head.  [values]
    kernel_tokens
        Tokens c under the convolution.  [tokens]

    Returns
    -------
    Projections, convolution, two values a head for its decay, the gain of the output norm.  [count]

    Notes
    -----
    Eq. (1):  P = A + c (2 a_k e_k + a_v e_v) + 2 a_v + e_v  with A of EQ-PAR-11

    References
    ----------
    [1] huggingface/transformers, src/transformers/models/qwen3_next/modular_qwen3_next.py@043bb8d,
        Qwen3NextGatedDeltaNet.

    Examples
    --------
    >>> float(linear_attention_parameters(2048, 16, 32, 128, 128, 4))
    33718464.0
    """
    heads, size = as_float(value_heads), as_float(value_size)
    weights = linear_attention_matrix_parameters(hidden_size, key_heads, heads, key_size, size)
    channels = 2 * as_float(key_heads) * as_float(key_size) + heads * size
    return weights + as_float(kernel_tokens) * channels + 2 * heads + size


@equation("EQ-FLOP-16")
def linear_attention_forward_flop_per_token(
    heads: FloatOrArray, key_size: FloatOrArray, value_size: FloatOrArray, chunk_tokens: FloatOrArray = 64
) -> FloatOrArray:
    """Forward FLOPs of one layer's linear attention per token: the same for every length of the sequence.

    Parameters
    ----------
    heads
        Heads a of the state.  [count]
    key_size, value_size
        Sides e_k and e_v of one head's state matrix.  [values]
    chunk_tokens
        Tokens C that kernels of training and prefill work on at once; 0 = one token after the other, as in
        decoding.  [tokens]

    Returns
    -------
    FLOPs without the projections.  [FLOP/token]

    Notes
    -----
    Eq. (1):  F = a (6 e_k e_v + 3/2 C (e_k + e_v) + C^2)
    [1] gives 6 e^2 + 3 C e + C^2 a head of equal sizes: the state is read, corrected and read again, and a
    chunk attends to itself.

    References
    ----------
    [1] Kimi Team, "Kimi Linear: An Expressive, Efficient Attention Architecture," arXiv 2510.26692, 2025,
        eq. 13 (as quoted by a reader of it); with C = 0 also the count of a step of Qwen3.5-397B from its code.

    Examples
    --------
    >>> float(linear_attention_forward_flop_per_token(32, 128, 128))
    4063232.0
    >>> float(linear_attention_forward_flop_per_token(32, 128, 128, 0))
    3145728.0
    """
    e_k, e_v, chunk = as_float(key_size), as_float(value_size), as_float(chunk_tokens)
    return as_float(heads) * (6 * e_k * e_v + 1.5 * chunk * (e_k + e_v) + chunk**2)


@equation("EQ-KV-7")
def convolution_state_bytes(
    layers: FloatOrArray, channels: FloatOrArray, kernel_tokens: FloatOrArray, bytes_per_value: FloatOrArray = 2
) -> FloatOrArray:
    """What the short convolutions of linear-attention layers keep of the last tokens of a sequence.

    Parameters
    ----------
    layers
        Layers of this kind.  [count]
    channels
        Values of a token that go through the convolution: queries, keys and values.  [values]
    kernel_tokens
        Tokens c under the kernel.  [tokens]
    bytes_per_value
        2: inputs are kept at 16 bits.  [B]

    Returns
    -------
    Bytes of one sequence, whole model.  [B]

    Notes
    -----
    Eq. (1):  S = L (c - 1) n b;  the newest token is at hand.

    References
    ----------
    [1] A. Gu and T. Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces," arXiv 2312.00752,
        2023, sec. 3.4 (the short convolution).

    Examples
    --------
    >>> float(convolution_state_bytes(24, 8192, 4))
    1179648.0
    """
    kept = as_float(kernel_tokens) - 1
    return as_float(layers) * kept * as_float(channels) * as_float(bytes_per_value)


@equation("EQ-ACT-28")
def linear_attention_activation_bytes(
    tokens: FloatOrArray,
    key_heads: FloatOrArray,
    value_heads: FloatOrArray,
    key_size: FloatOrArray,
    value_size: FloatOrArray,
    tensor_parallel: FloatOrArray = 1,
) -> FloatOrArray:
    """Activations that gated linear attention keeps in one layer, in place of Q, K, V and the attention output.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    key_heads, value_heads
        Heads a_k of queries and of keys, heads a_v of values and of the state.  [count]
    key_size, value_size
        Sizes e_k and e_v of a head.  [values]
    tensor_parallel
        Degree t.  [count]

    Returns
    -------
    Bytes kept on one device, 16-bit values.  [B]

    Notes
    -----
    Eq. (1):  T 2 [ 2 (2 a_k e_k + a_v e_v) + 3 a_v e_v + 2 a_v ] / t
    queries, keys and values before and after the convolution; gate, state's output and gated output; decay and
    write strength. The states between chunks are computed again. Counted from the code of [1], not measured.

    References
    ----------
    [1] huggingface/transformers, src/transformers/models/qwen3_next/modular_qwen3_next.py@043bb8d,
        Qwen3NextGatedDeltaNet.

    Examples
    --------
    >>> float(linear_attention_activation_bytes(1, 16, 32, 128, 128))
    57472.0
    """
    heads = as_float(value_heads)
    keys, values = as_float(key_heads) * as_float(key_size), heads * as_float(value_size)
    kept = 2 * (2 * keys + values) + 3 * values + 2 * heads
    return as_float(tokens) * 2 * kept / as_float(tensor_parallel)


@equation("EQ-PAR-14")
def state_space_matrix_parameters(
    hidden_size: FloatOrArray,
    groups: FloatOrArray,
    heads: FloatOrArray,
    state_size: FloatOrArray,
    head_size: FloatOrArray,
) -> FloatOrArray:
    """Weights of the projections of one Mamba-2 layer.

    Parameters
    ----------
    hidden_size
        Width of the residual stream h.  [values]
    groups, heads
        Groups g that share B and C, heads a of the state.  [count]
    state_size, head_size
        Sides n and e of one head's state matrix.  [values]

    Returns
    -------
    Weights that a token is multiplied with.  [count]

    Notes
    -----
    Eq. (1):  A = h (2 a e + 2 g n + a) + a e h
    for the gate and the values, B and C, the step of each head, and the output.

    References
    ----------
    [1] T. Dao and A. Gu, "Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State
        Space Duality," ICML 2024, arXiv 2405.21060, sec. 7.1 (parallel projections) and 7.2 (grouped heads).
    [2] transformers 5.23.0, models/mamba2/modeling_mamba2.py, Mamba2Mixer.

    Examples
    --------
    >>> float(state_space_matrix_parameters(4096, 8, 128, 128, 64))
    109576192.0
    """
    h, inner = as_float(hidden_size), as_float(heads) * as_float(head_size)
    return h * (2 * inner + 2 * as_float(groups) * as_float(state_size) + as_float(heads)) + inner * h


@equation("EQ-PAR-15")
def state_space_parameters(
    hidden_size: FloatOrArray,
    groups: FloatOrArray,
    heads: FloatOrArray,
    state_size: FloatOrArray,
    head_size: FloatOrArray,
    kernel_tokens: FloatOrArray = 4,
    kernel_bias: FloatOrArray = 1,
    biases: FloatOrArray = 0,
) -> FloatOrArray:
    """Parameters of one Mamba-2 layer without the norm before it.

    Parameters
    ----------
    hidden_size
        Width of the residual stream h.  [values]
    groups, heads
        Groups g that share B and C, heads a of the state.  [count]
    state_size, head_size
        Sides n and e of one head's state matrix.  [values]
    kernel_tokens
        Tokens c under the short convolution.  [tokens]
    kernel_bias, biases
        1 where the convolution, and where the projections have biases, else 0.  [count]

    Returns
    -------
    Projections, convolution, three values a head (decay, step, way around the state), the gain of the inner norm.
    [count]

    Notes
    -----
    Eq. (1):  P = A + (c + c_b) (a e + 2 g n) + 3 a + a e + b (2 a e + 2 g n + a + h)  with A of EQ-PAR-14

    References
    ----------
    [1] transformers 5.23.0, models/mamba2/modeling_mamba2.py, Mamba2Mixer.

    Examples
    --------
    >>> float(state_space_parameters(4096, 8, 128, 128, 64))
    109635968.0
    """
    h, count = as_float(hidden_size), as_float(heads)
    inner, shared = count * as_float(head_size), 2 * as_float(groups) * as_float(state_size)
    weights = state_space_matrix_parameters(h, groups, count, state_size, head_size)
    convolution = (as_float(kernel_tokens) + as_float(kernel_bias)) * (inner + shared)
    return weights + convolution + 3 * count + inner + as_float(biases) * (2 * inner + shared + count + h)


@equation("EQ-FLOP-17")
def state_space_forward_flop_per_token(
    groups: FloatOrArray,
    heads: FloatOrArray,
    state_size: FloatOrArray,
    head_size: FloatOrArray,
    chunk_tokens: FloatOrArray = 256,
) -> FloatOrArray:
    """Forward FLOPs of one Mamba-2 layer's state per token: the same for every length of the sequence.

    Parameters
    ----------
    groups, heads
        Groups g that share B and C, heads a of the state.  [count]
    state_size, head_size
        Sides n and e of one head's state matrix.  [values]
    chunk_tokens
        Tokens C that kernels of training and prefill work on at once; 0 = one token after the other, as in
        decoding.  [tokens]

    Returns
    -------
    FLOPs without the projections.  [FLOP/token]

    Notes
    -----
    Eq. (1):  F = 4 a n e + 2 C (a e + g n)
    each chunk's tokens go into the state and the state into its tokens (2 n e each), and the chunk attends to itself
    in whole blocks: scores once a group, values once a head.

    References
    ----------
    [1] T. Dao and A. Gu, "Transformers are SSMs," ICML 2024, arXiv 2405.21060, sec. 6 (block decomposition).

    Examples
    --------
    >>> float(state_space_forward_flop_per_token(8, 128, 128, 64, 256))
    8912896.0
    >>> float(state_space_forward_flop_per_token(8, 128, 128, 64, 0))
    4194304.0
    """
    inner, n = as_float(heads) * as_float(head_size), as_float(state_size)
    return 4 * inner * n + 2 * as_float(chunk_tokens) * (inner + as_float(groups) * n)


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


@equation("EQ-PAR-16")
def selective_scan_matrix_parameters(
    hidden_size: FloatOrArray, channels: FloatOrArray, state_size: FloatOrArray, step_rank: FloatOrArray
) -> FloatOrArray:
    """Weights of the projections of one Mamba-1 layer.

    Parameters
    ----------
    hidden_size
        Width of the residual stream h.  [values]
    channels
        Channels i of the inner stream, each with a state of its own.  [count]
    state_size, step_rank
        Values n of a channel's state, and the narrow width r that the steps of all channels are made of.  [values]

    Returns
    -------
    Weights that a token is multiplied with.  [count]

    Notes
    -----
    Eq. (1):  A = 2 h i + i (r + 2 n) + r i + i h
    for the channels and their gate, the step with B and C, the step of each channel, and the output.

    References
    ----------
    [1] A. Gu and T. Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces," arXiv 2312.00752, 2023,
        sec. 3.4 and 3.6.
    [2] transformers 5.24.0, models/mamba/modeling_mamba.py, MambaMixer.

    Examples
    --------
    >>> float(selective_scan_matrix_parameters(2560, 5120, 16, 160))
    41123840.0
    """
    inner, rank = as_float(channels), as_float(step_rank)
    return 3 * as_float(hidden_size) * inner + 2 * inner * (rank + as_float(state_size))


@equation("EQ-PAR-17")
def selective_scan_parameters(
    hidden_size: FloatOrArray,
    channels: FloatOrArray,
    state_size: FloatOrArray,
    step_rank: FloatOrArray,
    kernel_tokens: FloatOrArray = 4,
    convolution_bias: FloatOrArray = 1,
    projection_bias: FloatOrArray = 0,
) -> FloatOrArray:
    """Parameters of one Mamba-1 layer, its norms left out.

    Parameters
    ----------
    hidden_size
        Width of the residual stream h.  [values]
    channels
        Channels i of the inner stream, each with a state of its own.  [count]
    state_size, step_rank
        Values n of a channel's state, and the narrow width r that the steps of all channels are made of.  [values]
    kernel_tokens
        Tokens c under the convolution.  [tokens]
    convolution_bias, projection_bias
        1 where the convolution, or the first and the last projection, have biases.  [1]

    Returns
    -------
    Projections, convolution, decays, what goes past the state, and biases.  [count]

    Notes
    -----
    Eq. (1):  P = A + i (c + n + 2) + b_c i + b_p (2 i + h)  with A of EQ-PAR-16: decays of i n, one value a channel
    past the state, one bias of its step.

    References
    ----------
    [1] transformers 5.24.0, models/mamba/modeling_mamba.py, MambaMixer.

    Examples
    --------
    >>> float(selective_scan_parameters(2560, 5120, 16, 160, 4))
    41241600.0
    """
    inner = as_float(channels)
    weights = selective_scan_matrix_parameters(hidden_size, inner, state_size, step_rank)
    kept = inner * (as_float(kernel_tokens) + as_float(state_size) + 2 + as_float(convolution_bias))
    return weights + kept + as_float(projection_bias) * (2 * inner + as_float(hidden_size))


@equation("EQ-FLOP-18")
def selective_scan_forward_flop_per_token(channels: FloatOrArray, state_size: FloatOrArray) -> FloatOrArray:
    """Forward FLOPs of one Mamba-1 layer's state per token: the same for every length of the sequence.

    Parameters
    ----------
    channels
        Channels i, each with a state of its own.  [count]
    state_size
        Values n of it.  [values]

    Returns
    -------
    FLOPs without the projections.  [FLOP/token]

    Notes
    -----
    Eq. (1):  F = 9 i n: its author's count of the scan.

    References
    ----------
    [1] A. Gu in state-spaces/mamba, issue 110, 2024-02 ("9LN" for each channel).

    Examples
    --------
    >>> float(selective_scan_forward_flop_per_token(5120, 16))
    737280.0
    """
    return 9 * as_float(channels) * as_float(state_size)
