"""Closed forms of papers: GPT parameters and FLOPs of a step, the rules of six and of eight.

They need a shape or a size only, and check the sums of `planner.equations.parameters` and `flops`.
"""

from __future__ import annotations

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-PAR-8")
def gpt_parameters(
    layers: FloatOrArray, hidden_size: FloatOrArray, vocab_size: FloatOrArray, sequence_length: FloatOrArray
) -> FloatOrArray:
    """Parameters of a GPT model in closed form: biases everywhere, f = 4 h, tied head, learned positions.

    Parameters
    ----------
    layers
        Transformer layers L.  [count]
    hidden_size
        Width of the residual stream h.  [values]
    vocab_size
        Tokens V in the vocabulary, padding included.  [count]
    sequence_length
        Learned positions s.  [count]

    Returns
    -------
    Parameters, without the final norm (2 h), which the closed form leaves out.  [count]

    Notes
    -----
    Eq. (2) of [1]:  P = 12 L h^2 (1 + 13 / (12 h) + (V + s) / (12 L h))

    References
    ----------
    [1] D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters
        Using Megatron-LM," SC21, 2021, arXiv 2104.04473, eq. 2.

    Examples
    --------
    >>> round(float(gpt_parameters(96, 12288, 51200, 2048)) / 1e9, 1)
    174.6
    """
    layer_count, h = as_float(layers), as_float(hidden_size)
    tables = (as_float(vocab_size) + as_float(sequence_length)) / (12 * layer_count * h)
    return 12 * layer_count * h**2 * (1 + 13 / (12 * h) + tables)


@equation("EQ-FLOP-9")
def gpt_full_recompute_flop(
    batch: FloatOrArray,
    sequence_length: FloatOrArray,
    layers: FloatOrArray,
    hidden_size: FloatOrArray,
    vocab_size: FloatOrArray,
) -> FloatOrArray:
    """Hardware FLOPs of one step of a GPT model with every layer recomputed.

    Parameters
    ----------
    batch
        Global batch B.  [sequences]
    sequence_length
        Tokens s of a sequence.  [tokens]
    layers
        Transformer layers L.  [count]
    hidden_size
        Width of the residual stream h.  [values]
    vocab_size
        Tokens V in the vocabulary.  [count]

    Returns
    -------
    FLOPs of the step on all devices; attention counted in full.  [FLOP]

    Notes
    -----
    Eq. (3) of [1]:  F = 96 B s L h^2 (1 + s / (6 h) + V / (16 L h))

    References
    ----------
    [1] D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters
        Using Megatron-LM," SC21, 2021, arXiv 2104.04473, eq. 3.

    Examples
    --------
    >>> round(float(gpt_full_recompute_flop(1536, 2048, 96, 12288, 51200)) / 1e18, 3)
    4.511
    """
    s, layer_count, h = as_float(sequence_length), as_float(layers), as_float(hidden_size)
    share = 1 + s / (6 * h) + as_float(vocab_size) / (16 * layer_count * h)
    return 96 * as_float(batch) * s * layer_count * h**2 * share


@equation("EQ-FLOP-10")
def gpt_model_flop(
    batch: FloatOrArray,
    sequence_length: FloatOrArray,
    layers: FloatOrArray,
    hidden_size: FloatOrArray,
    vocab_size: FloatOrArray,
) -> FloatOrArray:
    """Model FLOPs of one step of a GPT model.

    Parameters
    ----------
    batch
        Global batch B.  [sequences]
    sequence_length
        Tokens s of a sequence.  [tokens]
    layers
        Transformer layers L.  [count]
    hidden_size
        Width of the residual stream h.  [values]
    vocab_size
        Tokens V in the vocabulary.  [count]

    Returns
    -------
    FLOPs of the step on all devices; attention counted in full.  [FLOP]

    Notes
    -----
    Eq. (7) of [1]:  F = 72 B L s h^2 (1 + s / (6 h) + V / (12 h L))

    References
    ----------
    [1] V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models,"
        arXiv 2205.05198, 2022, app. A, eq. 7.

    Examples
    --------
    >>> round(float(gpt_model_flop(64, 2048, 96, 12288, 51200)) / 1e15, 1)
    141.1
    """
    s, layer_count, h = as_float(sequence_length), as_float(layers), as_float(hidden_size)
    share = 1 + s / (6 * h) + as_float(vocab_size) / (12 * h * layer_count)
    return 72 * as_float(batch) * layer_count * s * h**2 * share


@equation("EQ-FLOP-11")
def gpt_selective_recompute_flop(
    batch: FloatOrArray,
    sequence_length: FloatOrArray,
    layers: FloatOrArray,
    hidden_size: FloatOrArray,
    vocab_size: FloatOrArray,
) -> FloatOrArray:
    """Hardware FLOPs of one step of a GPT model with the attention cores recomputed.

    Parameters
    ----------
    batch
        Global batch B.  [sequences]
    sequence_length
        Tokens s of a sequence.  [tokens]
    layers
        Transformer layers L.  [count]
    hidden_size
        Width of the residual stream h.  [values]
    vocab_size
        Tokens V in the vocabulary.  [count]

    Returns
    -------
    FLOPs of the step on all devices as [1] counts them; attention in full.  [FLOP]

    Notes
    -----
    Eq. (8) of [1]:  F = 72 B L s h^2 (1 + s / (3 h) + V / (12 h L))
    The repeated core is 4 B L s^2 h, which is s / (18 h) in these brackets; [1] prints s / (6 h),
    three times that. EQ-FLOP-8 counts the repeated core once.

    References
    ----------
    [1] V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models,"
        arXiv 2205.05198, 2022, app. A, eq. 8.

    Examples
    --------
    >>> ratio = gpt_selective_recompute_flop(64, 2048, 96, 12288, 51200) / gpt_model_flop(64, 2048, 96, 12288, 51200)
    >>> round(float(ratio) - 1, 3)
    0.027
    """
    s, layer_count, h = as_float(sequence_length), as_float(layers), as_float(hidden_size)
    share = 1 + s / (3 * h) + as_float(vocab_size) / (12 * h * layer_count)
    return 72 * as_float(batch) * layer_count * s * h**2 * share


@equation("EQ-FLOP-12")
def six_nd_flop(parameters: FloatOrArray, tokens: FloatOrArray) -> FloatOrArray:
    """Training FLOPs of a whole run by the rule of six.

    Parameters
    ----------
    parameters
        Parameters N; of a mixture of experts, the active ones.  [count]
    tokens
        Tokens D, epochs included.  [tokens]

    Returns
    -------
    FLOPs of the run, attention scores not counted.  [FLOP]

    Notes
    -----
    Eq. (1):  C = 6 N D

    References
    ----------
    [1] J. Kaplan et al., "Scaling Laws for Neural Language Models," arXiv 2001.08361, 2020, sec. 2.1.

    Examples
    --------
    >>> float(six_nd_flop(405e9, 15.6e12))
    3.7908e+25
    """
    return 6 * as_float(parameters) * as_float(tokens)


@equation("EQ-FLOP-14")
def gpt_training_time_s(
    tokens: FloatOrArray, parameters: FloatOrArray, devices: FloatOrArray, sustained_flop_per_s: FloatOrArray
) -> FloatOrArray:
    """Wall time of a whole run with full recompute, by the rule of eight.

    Parameters
    ----------
    tokens
        Tokens T of the run.  [tokens]
    parameters
        Parameters P.  [count]
    devices
        Devices n.  [count]
    sustained_flop_per_s
        Hardware FLOP/s X that one device sustains, recomputation counted.  [FLOP/s]

    Returns
    -------
    Duration of the run.  [s]

    Notes
    -----
    Eq. (4) of [1]:  t = 8 T P / (n X)

    References
    ----------
    [1] D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters
        Using Megatron-LM," SC21, 2021, arXiv 2104.04473, eq. 4.

    Examples
    --------
    >>> round(float(gpt_training_time_s(300e9, 175e9, 1024, 140e12)) / 86400)
    34
    """
    work = 8 * as_float(tokens) * as_float(parameters)
    return work / (as_float(devices) * as_float(sustained_flop_per_s))
