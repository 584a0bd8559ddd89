"""What one layer of each kind weighs, as numbers that layouts only scale."""

from __future__ import annotations

from planner.architecture.model import Architecture, LayerGroup
from planner.carriers import dataclass
from planner.equations import activations as act
from planner.equations import kinds_of_attention as lin
from planner.equations import layer_parts as part
from planner.equations import parameters as par
from planner.estimate.memory_stack import MemoryStack


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBytes:
    """Activations of one token in one layer at t = 1; the three parts scale differently."""

    stream: float  # divided by t with sequence parallelism only
    split: float  # divided by t
    routed: float  # of `split`, what uneven routing multiplies


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerScalars:
    """One group of layers."""

    count: int
    split_parameters: float  # divided by t
    replicated_parameters: float  # whole on every tensor-parallel rank
    expert_parameters: float  # divided by ep and et
    attention_matrices: float  # weights of attention
    other_matrices: float  # weights of MLP, router and one expert: all experts have one shape
    adapter_parameters: float  # of low-rank adapters, divided by t
    kv_heads: float  # 0: keys and values never replicate (MLA, linear attention)
    kv_parameters_per_head: float
    kv_token_bytes_per_head: float
    kept: TokenBytes  # nothing recomputed
    selective: TokenBytes  # under the stack's selective policy
    score_bytes: float  # stored scores of one sequence at t = c = 1
    scores_recomputed: bool  # by the selective policy
    input_bytes: float  # of a token, kept by full recomputation
    gradient_values: float  # widest gradient of a token, at t = 1
    widest_matrix: float  # columns of the largest weight matrix


def layer_scalars(arch: Architecture, stack: MemoryStack, sequence_length: float) -> tuple[LayerScalars, ...]:
    """The layer groups of a model in order; neighbours that weigh the same are one.

    Parameters
    ----------
    arch
        The model; nothing where only its size is known.
    stack
        What its software keeps.
    sequence_length
        Of stored attention scores.  [tokens]
    """
    merged: list[LayerScalars] = []
    for group in arch.layers:
        scalars = _layer_scalars(arch, stack, sequence_length, group, group.count)
        if merged and _same(merged[-1], scalars):
            count = merged.pop().count + scalars.count
            scalars = _layer_scalars(arch, stack, sequence_length, group, count)
        merged.append(scalars)
    return tuple(merged)


def _same(one: LayerScalars, other: LayerScalars) -> bool:
    names = [name for name in LayerScalars.__slots__ if name != "count"]
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _layer_scalars(
    arch: Architecture, stack: MemoryStack, sequence_length: float, group: LayerGroup, count: int
) -> LayerScalars:
    h, mla = float(arch.hidden_size), group.attention == "mla"
    split_heads = group.attention != "gqa"  # linear attention has more key heads than ranks
    latent = h * (group.query_rank + group.kv_rank + group.rope_size) if mla else 0.0
    scale = stack.value_bytes / 2.0  # the equations count values of 16 bits
    scores = act.attention_score_bytes(sequence_length, 1, group.query_heads, bytes_per_score=stack.score_bytes)
    kept = _kept(h, stack, group)
    one_expert = group.expert_parameters / group.experts if group.experts else 0.0
    return LayerScalars(
        count=count,
        split_parameters=float(group.attention_parameters + group.mlp_parameters) - latent,
        replicated_parameters=float(group.norm_parameters + group.router_parameters) + latent,
        expert_parameters=float(group.expert_parameters),
        attention_matrices=float(group.attention_parameters),
        other_matrices=float(group.mlp_parameters + group.router_parameters) + one_expert,
        adapter_parameters=_adapter_parameters(h, stack, group),
        kv_heads=0.0 if split_heads else float(group.kv_heads),
        kv_parameters_per_head=0.0 if split_heads else h * group.cache_projection,
        kv_token_bytes_per_head=0.0 if split_heads else scale * 2.0 * (group.head_size + group.value_head_size),
        kept=_scaled(kept, scale),
        selective=_scaled(_selective(h, stack, group, kept), scale),
        score_bytes=float(scores) * scale if stack.stored_scores and group.attention != "linear" else 0.0,
        scores_recomputed=bool(stack.recomputed & {"core_attn", "operators"}),
        input_bytes=float(act.layer_input_bytes(1, h)) * scale,
        gradient_values=_gradient_values(h, stack, group, sequence_length),
        widest_matrix=_widest_matrix(group),
    )


def _scaled(token: TokenBytes, scale: float) -> TokenBytes:
    return TokenBytes(stream=token.stream * scale, split=token.split * scale, routed=token.routed * scale)


def _kept(h: float, stack: MemoryStack, group: LayerGroup) -> TokenBytes:
    """Everything that the backward pass reads, 16-bit, t = 1."""
    dropout = not group.gated if stack.dropout is None else stack.dropout
    log_sum_exp = 0.0 if dropout or stack.stored_scores or group.attention == "linear" else 1.0
    kv_heads, head_size = (group.kv_heads, group.head_size) if group.attention == "gqa" else (0, 0)
    stream = act.layer_activation_bytes(1, h, 0, 0, 0, 0, group.gated, 1, 1, dropout)
    split = act.layer_activation_bytes(
        1, 0, group.query_heads, kv_heads, head_size, group.mlp_width, group.gated, 1, 1, dropout, log_sum_exp
    )
    split = split + _other_attention(group)
    routed = _routed(h, stack, group)
    if group.experts:
        shared = act.moe_activation_bytes(1, 0, group.experts, 0, 0, group.shared_expert_width)
        split = split + shared + routed
    if not stack.narrow_inputs:
        return TokenBytes(stream=float(stream), split=float(split), routed=routed)
    width = group.mlp_width + group.experts_per_token * group.expert_width + group.shared_expert_width
    norms = act.fp8_saved_bytes(1, h, 0, 0)
    inner = act.fp8_saved_bytes(1, 0, group.query_heads * group.value_head_size, width)
    return TokenBytes(stream=float(stream - norms), split=float(split - inner), routed=routed)


def _other_attention(group: LayerGroup) -> float:
    """What latent, linear or gated attention keeps for a token beyond the heads of plain attention, 16-bit."""
    heads, sizes = group.query_heads, (group.head_size, group.value_head_size)
    if group.attention == "mla":
        return float(act.mla_activation_bytes(1, heads, *sizes, group.query_rank, group.kv_rank))
    if group.attention == "linear":
        return float(lin.linear_attention_activation_bytes(1, group.kv_heads, heads, *sizes))
    return 4.0 * heads * group.value_head_size if group.output_gate else 0.0  # the gate, and the gated output


def _routed(h: float, stack: MemoryStack, group: LayerGroup) -> float:
    """Activations of the routed experts for one token."""
    if not group.experts:
        return 0.0
    both = act.moe_activation_bytes(1, h, 0, group.experts_per_token, group.expert_width)
    outputs = 0.0 if stack.expert_outputs else 2.0 * group.experts_per_token * h
    inputs = group.experts_per_token * h if stack.narrow_inputs else 0.0  # dispatched tokens in 8 bits
    return float(both) - outputs - inputs


def _selective(h: float, stack: MemoryStack, group: LayerGroup, kept: TokenBytes) -> TokenBytes:
    """What the stack's selective policy leaves; stored scores are dealt with apart."""
    if "operators" in stack.recomputed:
        return _operators(h, stack, group)
    drops, gated, k = stack.recomputed, group.gated, group.experts_per_token
    stream, split, routed = kept.stream, kept.split, kept.routed
    narrow = 0.5 if stack.narrow_inputs else 1.0
    if "layernorm" in drops:
        stream -= narrow * float(part.norm_output_bytes(1, h))
    if "mla_up_proj" in drops and group.attention == "mla":
        split -= float(part.mla_expanded_bytes(1, group.query_heads, group.head_size, group.value_head_size))
    if "mlp" in drops:
        split -= float(part.mlp_inner_bytes(1, group.mlp_width, gated))
    if {"shared_experts", "moe"} & drops:
        split -= float(part.mlp_inner_bytes(1, group.shared_expert_width, gated))
    dropped = 0.0
    if "moe" in drops:
        dropped = routed
    elif "moe_act" in drops:
        dropped = narrow * float(part.activation_output_bytes(k, group.expert_width))
    return TokenBytes(stream=max(stream, 0.0), split=max(split - dropped, 0.0), routed=routed - dropped)


def _operators(h: float, stack: MemoryStack, group: LayerGroup) -> TokenBytes:
    """Per-operator policy: every second product; of routed experts what the exchanges brought."""
    fused, sizes = float(stack.compiled), (group.query_heads, group.kv_heads, group.head_size)
    width = group.mlp_width + group.shared_expert_width
    stream = part.operator_kept_bytes(1, h, 0, 0, 0, 0, 1, 1, fused)
    split = part.operator_kept_bytes(1, 0, *sizes, width)
    exchanged = 4.0 * group.experts_per_token * h if group.experts else 0.0
    return TokenBytes(stream=float(stream), split=float(split) + exchanged, routed=exchanged)


def _up_projections(group: LayerGroup) -> float:
    return 2.0 if group.gated else 1.0


def _gradient_values(h: float, stack: MemoryStack, group: LayerGroup, sequence_length: float) -> float:
    """Values per token of the widest gradient: of MLP, routed tokens, queries with keys and values, stored scores."""
    up = _up_projections(group)
    routed = group.experts_per_token * (up * group.expert_width + h) if group.experts else 0.0
    expanded = group.query_heads * (2 * group.head_size + group.value_head_size)  # of latent attention
    attention = expanded if group.attention == "mla" else group.qkv_width
    stored = stack.stored_scores and group.attention != "linear"
    scores = 2.0 * group.query_heads * sequence_length if stored else 0.0  # of the softmax: in and out
    return max(up * group.mlp_width, routed, float(attention), scores)


def _widest_matrix(group: LayerGroup) -> float:
    widest_mlp = max(group.mlp_width, group.expert_width, group.shared_expert_width)
    latent = (group.query_heads + 2.0 * group.kv_heads) * group.head_size
    return max(_up_projections(group) * widest_mlp, latent if group.attention == "mla" else float(group.qkv_width))


def _adapter_parameters(h: float, stack: MemoryStack, group: LayerGroup) -> float:
    """Low-rank adapters on attention and on the dense or shared MLP; routed experts have none."""
    if not stack.adapter_rank:
        return 0.0
    width = group.mlp_width or group.shared_expert_width
    heads = (group.query_heads, group.kv_heads, group.head_size)
    return float(par.lora_layer_parameters(stack.adapter_rank, h, *heads, width, group.gated))
