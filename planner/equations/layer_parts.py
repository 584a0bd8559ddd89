"""Parts of a layer's activations that a policy recomputes, and what its backward pass holds for a moment.

Bytes of one layer and one micro-batch of T tokens, values of 16 bits, as in `activations`.
"""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-ACT-21")
def norm_output_bytes(
    tokens: FloatOrArray, hidden_size: FloatOrArray, shards: FloatOrArray = 1, norms: FloatOrArray = 2
) -> FloatOrArray:
    """Outputs of the norms of a layer: what recomputing the norms saves.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    hidden_size
        Width h.  [values]
    shards
        Degree z that splits the sequence.  [count]
    norms
        Norms of the layer.  [count]

    Returns
    -------
    Bytes kept for the products that follow the norms.  [B]

    Notes
    -----
    Eq. (1):  2 n T h / z

    References
    ----------
    [1] NVIDIA/Megatron-LM, recompute_modules = layernorm.

    Examples
    --------
    >>> float(norm_output_bytes(1, 4096))
    16384.0
    """
    return 2.0 * as_float(norms) * tokens * hidden_size / as_float(shards)


@equation("EQ-ACT-22")
def mlp_inner_bytes(
    tokens: FloatOrArray, mlp_width: FloatOrArray, gated: FloatOrArray = 1, tensor_parallel: FloatOrArray = 1
) -> FloatOrArray:
    """What an MLP keeps inside: pre-activations and their product; recomputing the MLP saves it.

    Parameters
    ----------
    tokens
        Tokens T that pass the MLP on the rank; routed ones count as often as they are routed.  [tokens]
    mlp_width
        Width f.  [values]
    gated
        1 when the MLP has a gate (three matrices), else 0.
    tensor_parallel
        Degree t.  [count]

    Returns
    -------
    Bytes kept.  [B]

    Notes
    -----
    Eq. (1):  T (4 + 2 gated) f / t

    References
    ----------
    [1] V. Korthikanti et al., arXiv 2205.05198, sec. 4.1.

    Examples
    --------
    >>> float(mlp_inner_bytes(1, 14336))
    86016.0
    """
    return as_float(tokens) * (4.0 + 2.0 * as_float(gated)) * mlp_width / as_float(tensor_parallel)


@equation("EQ-ACT-23")
def activation_output_bytes(
    tokens: FloatOrArray, mlp_width: FloatOrArray, tensor_parallel: FloatOrArray = 1
) -> FloatOrArray:
    """Output of an activation function, the input of the last product: recomputing the function saves it.

    Parameters
    ----------
    tokens
        Tokens T that pass on the rank; routed ones count as often as they are routed.  [tokens]
    mlp_width
        Width f.  [values]
    tensor_parallel
        Degree t.  [count]

    Returns
    -------
    Bytes kept.  [B]

    Notes
    -----
    Eq. (1):  2 T f / t

    References
    ----------
    [1] NVIDIA/Megatron-LM, recompute_modules = moe_act.

    Examples
    --------
    >>> float(activation_output_bytes(8, 1536))
    24576.0
    """
    return 2.0 * as_float(tokens) * mlp_width / as_float(tensor_parallel)


@equation("EQ-ACT-24")
def mla_expanded_bytes(
    tokens: FloatOrArray,
    heads: FloatOrArray,
    head_size: FloatOrArray,
    value_head_size: FloatOrArray,
    tensor_parallel: FloatOrArray = 1,
) -> FloatOrArray:
    """Queries, keys and values that multi-head latent attention expands from its latents.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    heads
        Attention heads a.  [count]
    head_size, value_head_size
        e_n + e_r and e_v.  [values]
    tensor_parallel
        Degree t.  [count]

    Returns
    -------
    Bytes that recomputing the up-projections saves.  [B]

    Notes
    -----
    Eq. (1):  2 T a (2 (e_n + e_r) + e_v) / t

    References
    ----------
    [1] NVIDIA/Megatron-LM, recompute_modules = mla_up_proj.

    Examples
    --------
    >>> float(mla_expanded_bytes(1, 16, 192, 128))
    16384.0
    """
    values = as_float(heads) * (2.0 * as_float(head_size) + value_head_size)
    return 2.0 * as_float(tokens) * values / as_float(tensor_parallel)


@equation("EQ-ACT-25")
def operator_kept_bytes(
    tokens: FloatOrArray,
    hidden_size: FloatOrArray,
    query_heads: FloatOrArray,
    kv_heads: FloatOrArray,
    head_size: FloatOrArray,
    mlp_width: FloatOrArray,
    tensor_parallel: FloatOrArray = 1,
    sequence_shards: FloatOrArray = 1,
    fused: FloatOrArray = 0,
) -> FloatOrArray:
    """What per-operator selective recomputation keeps of a layer: every second product and the attention output.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    hidden_size, mlp_width
        Widths h and f.  [values]
    query_heads, kv_heads, head_size
        a, g and e.  [count], [count], [values]
    tensor_parallel
        Degree t.  [count]
    sequence_shards
        z = t with sequence parallelism, else 1.  [count]
    fused
        1 when a compiler drops the output of the last product, which nothing in the backward pass reads.

    Returns
    -------
    Bytes kept on one device.  [B]

    Notes
    -----
    Eq. (1):  T [ (4 - 2 fused) h / z + (4 a e + 2 g e + 4 a + 2 f) / t ]

    the layer's input, Q, V, the attention output with its log-sum-exp, the first product of the MLP and
    its last: products 1, 3, 5 and 7 of Q, K, V, projection, gate, up, down.

    References
    ----------
    [1] pytorch/torchtitan, torchtitan/parallelisms/parallelize_llama.py: selective_ac_option = op, every
        second aten.mm is recomputed, scaled_dot_product_attention never.

    Examples
    --------
    >>> round(float(operator_kept_bytes(1, 4096, 32, 8, 128, 14336)))
    63616
    """
    stream = (4.0 - 2.0 * as_float(fused)) * hidden_size / as_float(sequence_shards)
    heads = 4.0 * as_float(query_heads) * (as_float(head_size) + 1.0) + 2.0 * as_float(kv_heads) * head_size
    return as_float(tokens) * (stream + (heads + 2.0 * as_float(mlp_width)) / as_float(tensor_parallel))


@equation("EQ-ACT-26")
def layer_gradient_bytes(
    tokens: FloatOrArray,
    hidden_size: FloatOrArray,
    widest_values: FloatOrArray,
    tensor_parallel: FloatOrArray = 1,
    sequence_shards: FloatOrArray = 1,
) -> FloatOrArray:
    """Gradients of activations alive at once while a layer goes backward.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    hidden_size
        Width h of the residual stream.  [values]
    widest_values
        Values per token of the widest activation: 2 f of a gated MLP, k 2 f_e + k h of routed tokens.  [values]
    tensor_parallel
        Degree t.  [count]
    sequence_shards
        z = t with sequence parallelism, else 1.  [count]

    Returns
    -------
    Bytes of that gradient and of the residual stream's.  [B]

    Notes
    -----
    Eq. (1):  2 T (w / t + h / z)

    When the gradient of the widest activation is complete, the gradient that it was made of stands in the
    place of the activation's output, which is free by then.

    References
    ----------
    [1] arithmetic: order in which PyTorch's autograd frees what it stored.

    Examples
    --------
    >>> float(layer_gradient_bytes(4096, 8192, 2 * 28672)) / 2**30
    0.5
    """
    return (
        2.0 * as_float(tokens) * (as_float(widest_values) / tensor_parallel + hidden_size / as_float(sequence_shards))
    )


@equation("EQ-ACT-27")
def loss_peak_bytes(
    tokens: FloatOrArray,
    vocab_size: FloatOrArray,
    hidden_size: FloatOrArray,
    tensor_parallel: FloatOrArray = 1,
    bytes_per_logit: FloatOrArray = 6,
    gathered: FloatOrArray = 0,
) -> FloatOrArray:
    """Logits at their peak: inside the loss, or when the head multiplies their gradient.

    Parameters
    ----------
    tokens
        Tokens whose logits exist at once.  [tokens]
    vocab_size, hidden_size
        V and h.  [count], [values]
    tensor_parallel
        Degree t that splits the vocabulary.  [count]
    bytes_per_logit
        kappa of the loss: 2 when it works in place, 6 to 16 with fp32 copies.  [B]
    gathered
        1 when sequence parallelism gathers the head's input.

    Returns
    -------
    Bytes on one device.  [B]

    Notes
    -----
    Eq. (1):  T [ 2 h gathered + max( kappa V / t, 2 V / t + 2 h ) ]

    The second form is the 16-bit gradient of the logits and the gradient of the head's input.

    References
    ----------
    [1] MooreThreads/SimuMax, B200 results: eight readings and four more with experts within 1 %.

    Examples
    --------
    >>> float(loss_peak_bytes(4096, 128256, 8192, 8, 2, 1)) / 2**20
    253.25
    """
    inside = as_float(bytes_per_logit) * vocab_size / as_float(tensor_parallel)
    stream = 2.0 * as_float(hidden_size)
    after = 2.0 * as_float(vocab_size) / tensor_parallel + stream
    return as_float(tokens) * (stream * gathered + np.maximum(inside, after))
