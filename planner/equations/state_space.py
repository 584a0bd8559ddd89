"""Layers of Mamba-2: a state that decays in place of keys and values, chosen by the token itself.

Heads of the state stand beside each other as heads of attention do; several share one projection into the state (B) and
one out of it (C), as query heads share keys and values. A state takes what EQ-KV-5 and EQ-KV-7 count.
"""

from __future__ import annotations

from planner.equations.registry import FloatOrArray, as_float, equation


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
