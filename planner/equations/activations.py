"""Activations that a layer keeps for its backward pass, for any widths, and those of head and embedding.

Bytes of one layer and one micro-batch of T tokens, values of 16 bits. How many micro-batches are alive
at once is in `pipeline`.
"""

from __future__ import annotations

from planner.equations.registry import FloatOrArray, as_float, equation

# Bytes a logit takes until its gradient is gone: the 16-bit value and fp32 work of a fused kernel, or
# 16-bit logits, fp32 copy, fp32 gradient and its 16-bit form when every step of the loss is stored.
FUSED_BYTES_PER_LOGIT = 6.0  # fits MooreThreads/SimuMax B200 readings (Megatron-LM, fused loss)
CHUNK_TOKENS = 1024  # tokens whose logits exist at once in a chunked loss (assumed)
EXPERT_IMBALANCE = 1.1  # tokens of the fullest expert-parallel rank over the mean (assumed)


@equation("EQ-ACT-5")
def layer_input_bytes(
    tokens: FloatOrArray, hidden_size: FloatOrArray, shards: FloatOrArray = 1, bytes_per_value: FloatOrArray = 2
) -> FloatOrArray:
    """What full recomputation stores of a layer: its input.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    hidden_size
        Width h.  [values]
    shards
        z = t when the stored input is sharded over the sequence, else 1.  [count]
    bytes_per_value
        Bytes of one value.  [B]

    Returns
    -------
    Bytes stored per layer.  [B]

    Notes
    -----
    Eq. (1):  2 T h / z

    References
    ----------
    [1] V. Korthikanti et al., arXiv 2205.05198, Table 2.

    Examples
    --------
    >>> round(48 * float(layer_input_bytes(32 * 1000, 1600)) / 1e9, 2)
    4.92
    """
    return as_float(bytes_per_value) * tokens * hidden_size / as_float(shards)


@equation("EQ-ACT-6")
def layer_activation_bytes(
    tokens: FloatOrArray,
    hidden_size: FloatOrArray,
    query_heads: FloatOrArray,
    kv_heads: FloatOrArray,
    head_size: FloatOrArray,
    mlp_width: FloatOrArray,
    gated: FloatOrArray = 1,
    tensor_parallel: FloatOrArray = 1,
    sequence_shards: FloatOrArray = 1,
    dropout: FloatOrArray = 0,
    log_sum_exp: FloatOrArray = 1,
) -> FloatOrArray:
    """Activations of a layer with flash attention and fused norms, any widths.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    hidden_size, mlp_width
        Widths h and f.  [values]
    query_heads, kv_heads, head_size
        a, g and e.  [count], [count], [values]
    gated
        1 when the MLP has a gate (three matrices), else 0.
    tensor_parallel
        Degree t.  [count]
    sequence_shards
        z = t with sequence parallelism, else 1.  [count]
    dropout
        1 when two dropout masks are stored.
    log_sum_exp
        1 when attention keeps the fp32 log-sum-exp of each head and token, as flash does; [1] counts none.

    Returns
    -------
    Bytes kept on one device.  [B]

    Notes
    -----
    Eq. (1):  T [ (8 + 2 dropout) h / z + (4 a e + 4 g e + 4 lse a) / t + (4 + 2 gated) f / t ]

    two norm inputs and outputs, Q, K, V, attention output, log-sum-exp, MLP pre-activation and product.
    With a e = g e = h, f = 4 h, z = t, dropout and no log-sum-exp this is 34 T h / t of [1].

    References
    ----------
    [1] V. Korthikanti et al., arXiv 2205.05198, sec. 4.1 (terms counted there).
    [2] T. Dao et al., "FlashAttention," NeurIPS 2022: only log-sum-exp is kept of the scores.

    Examples
    --------
    >>> round(float(layer_activation_bytes(8192, 4096, 32, 8, 128, 14336)) / 1e9, 3)
    1.142
    """
    norms = (8.0 + 2.0 * as_float(dropout)) * hidden_size / as_float(sequence_shards)
    heads = 4.0 * as_float(query_heads) * (as_float(head_size) + log_sum_exp) + 4.0 * as_float(kv_heads) * head_size
    mlp = (4.0 + 2.0 * as_float(gated)) * mlp_width
    return as_float(tokens) * (norms + (heads + mlp) / as_float(tensor_parallel))


@equation("EQ-ACT-7")
def attention_score_bytes(
    sequence_length: FloatOrArray,
    micro_batch: FloatOrArray,
    heads: FloatOrArray,
    tensor_parallel: FloatOrArray = 1,
    context_parallel: FloatOrArray = 1,
    bytes_per_score: FloatOrArray = 5,
) -> FloatOrArray:
    """Attention scores that eager attention stores.

    Parameters
    ----------
    sequence_length, micro_batch, heads
        s, b, a.  [tokens], [sequences], [count]
    tensor_parallel, context_parallel
        Degrees t and c.  [count]
    bytes_per_score
        5: softmax output, dropout mask, dropped output; 11 with an fp32 softmax.  [B]

    Returns
    -------
    Bytes kept of one layer.  [B]

    Notes
    -----
    Eq. (1):  5 a s^2 b / (t c)

    References
    ----------
    [1] V. Korthikanti et al., arXiv 2205.05198, eq. 1.

    Examples
    --------
    >>> float(attention_score_bytes(1000, 32, 25)) / 1e9
    4.0
    """
    squares = as_float(sequence_length) ** 2 * micro_batch
    return as_float(bytes_per_score) * heads * squares / (as_float(tensor_parallel) * context_parallel)


@equation("EQ-ACT-8")
def mla_activation_bytes(
    tokens: FloatOrArray,
    heads: FloatOrArray,
    head_size: FloatOrArray,
    value_head_size: FloatOrArray,
    query_rank: FloatOrArray,
    kv_rank: FloatOrArray,
    tensor_parallel: FloatOrArray = 1,
) -> FloatOrArray:
    """Queries, keys, values, output and latents that multi-head latent attention keeps in one layer.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    heads
        Attention heads a.  [count]
    head_size
        Size e_n + e_r of a query or key, its rotary part included.  [values]
    value_head_size
        Size e_v of a value.  [values]
    query_rank, kv_rank
        Ranks r_q and r_kv of the latents.  [values]
    tensor_parallel
        Degree t; latents are split over the sequence by the same degree.  [count]

    Returns
    -------
    Bytes that stand in place of Q, K, V and the attention output.  [B]

    Notes
    -----
    Eq. (1):  T [ 2 a (2 (e_n + e_r) + 2 e_v) + 2 (r_q + r_kv) ] / t

    References
    ----------
    [1] DeepSeek-AI, "DeepSeek-V2," 2024, sec. 2.1 (the tensors counted here).

    Examples
    --------
    >>> float(mla_activation_bytes(1, 128, 192, 128, 1536, 512))
    167936.0
    """
    per_head = 4.0 * (as_float(head_size) + value_head_size)
    latents = 2.0 * (as_float(query_rank) + kv_rank)
    return as_float(tokens) * (as_float(heads) * per_head + latents) / as_float(tensor_parallel)


@equation("EQ-ACT-9")
def moe_activation_bytes(
    tokens: FloatOrArray,
    hidden_size: FloatOrArray,
    experts: FloatOrArray,
    experts_per_token: FloatOrArray,
    expert_width: FloatOrArray,
    shared_width: FloatOrArray = 0,
    tensor_parallel: FloatOrArray = 1,
    imbalance: FloatOrArray = 1,
) -> FloatOrArray:
    """Activations of a mixture-of-experts MLP in one layer.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    hidden_size
        Width h.  [values]
    experts, experts_per_token
        E and k.  [count]
    expert_width, shared_width
        f_e of one expert; f_s E_s of all shared experts.  [values]
    tensor_parallel
        Degree that splits tokens or experts, t.  [count]
    imbalance
        Tokens of the fullest rank over the mean.  [1]

    Returns
    -------
    Bytes that stand in place of the dense MLP's.  [B]

    Notes
    -----
    Eq. (1):  T [ i k (6 f_e + 4 h) + 6 f_s E_s + 8 E ] / t

    routed pre-activations and products, dispatched and combined tokens, router logits and probabilities.

    References
    ----------
    [1] NVIDIA/Megatron-LM, MoE layer (the tensors counted here).

    Examples
    --------
    >>> float(moe_activation_bytes(1, 4096, 8, 2, 14336))
    204864.0
    """
    routed = as_float(imbalance) * experts_per_token * (6.0 * as_float(expert_width) + 4.0 * as_float(hidden_size))
    always = 6.0 * as_float(shared_width) + 8.0 * as_float(experts)
    return as_float(tokens) * (routed + always) / as_float(tensor_parallel)


@equation("EQ-ACT-10")
def fp8_saved_bytes(
    tokens: FloatOrArray,
    hidden_size: FloatOrArray,
    attention_width: FloatOrArray,
    mlp_width: FloatOrArray,
    tensor_parallel: FloatOrArray = 1,
) -> FloatOrArray:
    """What keeping the inputs of the linear layers in 8 bits saves.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    hidden_size, attention_width, mlp_width
        h, a e and f.  [values]
    tensor_parallel
        Degree t.  [count]

    Returns
    -------
    Bytes less than with 16-bit inputs; may be negative.  [B]

    Notes
    -----
    Eq. (1):  T (2 h + f - a e) / t

    Norm outputs and the MLP's product are kept once, in 8 bits. The attention output is kept twice: in 16 bits
    by attention, whose backward pass reads it, and in 8 bits by the projection.

    References
    ----------
    [1] NVIDIA/TransformerEngine, pytorch/module/linear.py: the quantised input is saved; pytorch/attention: out is.

    Examples
    --------
    >>> float(fp8_saved_bytes(1, 4096, 4096, 14336))
    18432.0
    """
    inputs = 2.0 * as_float(hidden_size) + as_float(mlp_width) - attention_width
    return as_float(tokens) * inputs / as_float(tensor_parallel)


@equation("EQ-ACT-11")
def full_recompute_bytes(
    stored_bytes: FloatOrArray, layer_bytes: FloatOrArray, layers: FloatOrArray, block_layers: FloatOrArray = 1
) -> FloatOrArray:
    """Activations under full recomputation by blocks of layers.

    Parameters
    ----------
    stored_bytes
        Input of one block, kept through the forward pass.  [B]
    layer_bytes
        Activations of one layer while it is recomputed.  [B]
    layers
        Layers on the rank.  [count]
    block_layers
        Layers n recomputed together.  [count]

    Returns
    -------
    Bytes of stored inputs and one live block.  [B]

    Notes
    -----
    Eq. (1):  2 T h / z * L / n + n act

    References
    ----------
    [1] T. Chen et al., "Training Deep Nets with Sublinear Memory Cost," 2016, arXiv 1604.06174.

    Examples
    --------
    >>> float(full_recompute_bytes(2.0, 34.0, 48))
    130.0
    """
    n = as_float(block_layers)
    return as_float(stored_bytes) * layers / n + n * layer_bytes


@equation("EQ-ACT-17")
def logits_bytes(
    tokens: FloatOrArray,
    vocab_size: FloatOrArray,
    tensor_parallel: FloatOrArray = 1,
    bytes_per_logit: FloatOrArray = FUSED_BYTES_PER_LOGIT,
) -> FloatOrArray:
    """Logits and the work of the cross-entropy loss on the last stage.

    Parameters
    ----------
    tokens
        Tokens whose logits exist at once: T, or a chunk of it.  [tokens]
    vocab_size
        Vocabulary V.  [count]
    tensor_parallel
        Degree t that splits the vocabulary.  [count]
    bytes_per_logit
        6 with a fused loss; 8 to 12 when fp32 copies are stored.  [B]

    Returns
    -------
    Bytes on one device.  [B]

    Notes
    -----
    Eq. (1):  kappa T V / t

    References
    ----------
    [1] MooreThreads/SimuMax, B200 results (kappa = 6 fits Megatron-LM's fused loss).
    [2] pytorch/torchtitan, benchmarks (kappa = 12 fits within 3 %).

    Examples
    --------
    >>> round(float(logits_bytes(32_000, 50257)) / 1e9, 2)
    9.65
    """
    return as_float(bytes_per_logit) * tokens * vocab_size / as_float(tensor_parallel)


@equation("EQ-ACT-20")
def founding_activation_values(
    hidden_size: FloatOrArray, micro_batch: FloatOrArray, sequence_length: FloatOrArray, layers: FloatOrArray
) -> FloatOrArray:
    """Rule of thumb of the founding texts: stored activation values of a transformer.

    Parameters
    ----------
    hidden_size, micro_batch, sequence_length, layers
        h, b, s, L.  [values], [sequences], [tokens], [count]

    Returns
    -------
    Values, 2 bytes each in 16 bit.  [values]

    Notes
    -----
    Eq. (1):  12 h b s L  values = 24 bytes per (s b h)

    against 34 with flash attention and 34 + 5 a s / h without [2]: the rule leaves out attention
    scores and masks. For GPT-2 XL with batch 32 and sequence 1000 it gives 59 GB.

    References
    ----------
    [1] S. Rajbhandari et al., arXiv 1910.02054, sec. 3.2 (footnote: 12 x hidden x batch x sequence x layers).
    [2] V. Korthikanti et al., arXiv 2205.05198, eq. 1.

    Examples
    --------
    >>> float(founding_activation_values(1600, 32, 1000, 48)) / 1e9
    29.4912
    """
    return 12.0 * as_float(hidden_size) * micro_batch * sequence_length * layers
