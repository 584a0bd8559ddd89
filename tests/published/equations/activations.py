"""Activations of parts that no estimate counts, and of a recomputation by operator."""

from __future__ import annotations

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-ACT-12")
def operator_recompute_bytes(layer_bytes: FloatOrArray, kept_share: FloatOrArray = 0.6) -> FloatOrArray:
    """Activations under selective recomputation operator by operator.

    Parameters
    ----------
    layer_bytes
        Activations of a layer, nothing recomputed.  [B]
    kept_share
        Share that is kept; about 0.5 to 0.6.  [1]

    Returns
    -------
    Bytes kept.  [B]

    Notes
    -----
    Eq. (1):  0.6 act

    References
    ----------
    [1] pytorch/torchtitan, per-operator selective activation checkpointing (every second product is kept).

    Examples
    --------
    >>> float(operator_recompute_bytes(10.0))
    6.0
    """
    return as_float(layer_bytes) * kept_share


@equation("EQ-ACT-18")
def embedding_dropout_bytes(
    tokens: FloatOrArray, hidden_size: FloatOrArray, in_flight: FloatOrArray = 1, shards: FloatOrArray = 1
) -> FloatOrArray:
    """Dropout mask after the embedding, on the first stage.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    hidden_size
        Width h.  [values]
    in_flight
        Micro-batches alive at once.  [count]
    shards
        Degree z that splits the sequence.  [count]

    Returns
    -------
    Bytes on one device.  [B]

    Notes
    -----
    Eq. (1):  T h / z min(m, p)

    References
    ----------
    [1] V. Korthikanti et al., arXiv 2205.05198, sec. 4.3.

    Examples
    --------
    >>> float(embedding_dropout_bytes(2048, 12288, 8)) / 2**20
    192.0
    """
    return as_float(tokens) * hidden_size * in_flight / as_float(shards)


@equation("EQ-ACT-19")
def final_norm_bytes(tokens: FloatOrArray, hidden_size: FloatOrArray, shards: FloatOrArray = 1) -> FloatOrArray:
    """Input and output of the final norm, on the last stage.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    hidden_size
        Width h.  [values]
    shards
        Degree z that splits the sequence.  [count]

    Returns
    -------
    Bytes on one device.  [B]

    Notes
    -----
    Eq. (1):  4 T h / z

    References
    ----------
    [1] V. Korthikanti et al., arXiv 2205.05198, sec. 4.3.

    Examples
    --------
    >>> float(final_norm_bytes(2048, 12288)) / 2**20
    96.0
    """
    return 4.0 * as_float(tokens) * hidden_size / as_float(shards)
