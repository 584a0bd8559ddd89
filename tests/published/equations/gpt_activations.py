"""Closed forms of Korthikanti et al. for the activations of a GPT layer.

GPT layers have an MLP of width 4h, dropout, and a heads of size h/a; bytes of one layer and one
micro-batch of b sequences of s tokens, values of 16 bits.
"""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-ACT-2")
def gpt_layer_tensor_parallel_bytes(
    sequence_length: FloatOrArray,
    micro_batch: FloatOrArray,
    hidden_size: FloatOrArray,
    heads: FloatOrArray,
    tensor_parallel: FloatOrArray,
) -> FloatOrArray:
    """Activations of a GPT layer under tensor parallelism without sequence parallelism.

    Parameters
    ----------
    sequence_length, micro_batch, hidden_size, heads
        s, b, h, a.  [tokens], [sequences], [values], [count]
    tensor_parallel
        Degree t.  [count]

    Returns
    -------
    Bytes kept on one device.  [B]

    Notes
    -----
    Eq. (1):  s b h (10 + 24 / t + 5 a s / (h t))

    References
    ----------
    [1] V. Korthikanti et al., arXiv 2205.05198, eq. 2.

    Examples
    --------
    >>> round(48 * float(gpt_layer_tensor_parallel_bytes(2048, 4, 6144, 64, 8)) / 2**30, 2)
    59.25
    """
    s, h, t = as_float(sequence_length), as_float(hidden_size), as_float(tensor_parallel)
    return s * micro_batch * h * (10.0 + 24.0 / t + 5.0 * as_float(heads) * s / (h * t))


@equation("EQ-ACT-3")
def gpt_layer_sequence_parallel_bytes(
    sequence_length: FloatOrArray,
    micro_batch: FloatOrArray,
    hidden_size: FloatOrArray,
    heads: FloatOrArray,
    tensor_parallel: FloatOrArray,
) -> FloatOrArray:
    """Activations of a GPT layer under tensor and sequence parallelism.

    Parameters
    ----------
    sequence_length, micro_batch, hidden_size, heads
        s, b, h, a.  [tokens], [sequences], [values], [count]
    tensor_parallel
        Degree t.  [count]

    Returns
    -------
    Bytes kept on one device.  [B]

    Notes
    -----
    Eq. (1):  s b h / t (34 + 5 a s / h)

    References
    ----------
    [1] V. Korthikanti et al., arXiv 2205.05198, eq. 4.

    Examples
    --------
    >>> float(gpt_layer_sequence_parallel_bytes(2048, 4, 6144, 64, 1) / gpt_layer_bytes(2048, 4, 6144, 64))
    1.0
    """
    return gpt_layer_bytes(sequence_length, micro_batch, hidden_size, heads) / as_float(tensor_parallel)


@equation("EQ-ACT-4")
def gpt_layer_selective_bytes(
    sequence_length: FloatOrArray,
    micro_batch: FloatOrArray,
    hidden_size: FloatOrArray,
    tensor_parallel: FloatOrArray,
    sequence_parallel: FloatOrArray = 1,
) -> FloatOrArray:
    """Activations of a GPT layer whose attention core is recomputed, or never stored (flash attention).

    Parameters
    ----------
    sequence_length, micro_batch, hidden_size
        s, b, h.  [tokens], [sequences], [values]
    tensor_parallel
        Degree t.  [count]
    sequence_parallel
        1 with sequence parallelism, 0 without.

    Returns
    -------
    Bytes kept on one device.  [B]

    Notes
    -----
    Eq. (1):  34 s b h / t  with sequence parallelism,  s b h (10 + 24 / t)  without

    References
    ----------
    [1] V. Korthikanti et al., arXiv 2205.05198, Table 2, eq. 6.

    Examples
    --------
    >>> round(48 * float(gpt_layer_selective_bytes(2048, 4, 6144, 8)) / 2**30, 2)
    9.56
    """
    t = as_float(tensor_parallel)
    kept = np.where(as_float(sequence_parallel) > 0, 34.0 / t, 10.0 + 24.0 / t)
    return as_float(sequence_length) * micro_batch * hidden_size * kept


@equation("EQ-ACT-1")
def gpt_layer_bytes(
    sequence_length: FloatOrArray, micro_batch: FloatOrArray, hidden_size: FloatOrArray, heads: FloatOrArray
) -> FloatOrArray:
    """Activations of a GPT layer on one device, nothing recomputed.

    Parameters
    ----------
    sequence_length
        Tokens s of a sequence.  [tokens]
    micro_batch
        Sequences b of a micro-batch.  [sequences]
    hidden_size
        Width h.  [values]
    heads
        Attention heads a.  [count]

    Returns
    -------
    Bytes kept for the backward pass.  [B]

    Notes
    -----
    Eq. (1):  s b h (34 + 5 a s / h)

    References
    ----------
    [1] V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models,"
        MLSys 2023, arXiv 2205.05198, eq. 1.

    Examples
    --------
    >>> round(48 * float(gpt_layer_bytes(1000, 32, 1600, 25)) / 1e9, 2)
    275.56
    """
    s, h = as_float(sequence_length), as_float(hidden_size)
    return s * micro_batch * h * (34.0 + 5.0 * as_float(heads) * s / h)
