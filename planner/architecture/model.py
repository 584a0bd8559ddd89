"""What is run: the shape of a transformer, layer kind by layer kind, and its FLOPs per token.

The work of a whole model is summed over its layer kinds from EQ-FLOP-*.
"""

from __future__ import annotations

from planner.carriers import dataclass
from planner.equations import flops
from planner.equations.kinds_of_attention import (
    convolution_state_bytes,
    linear_attention_forward_flop_per_token,
    selective_scan_forward_flop_per_token,
    state_space_forward_flop_per_token,
)
from planner.equations.kv_cache import constant_state_bytes
from planner.equations.registry import FloatOrArray, as_float

SCAN = 1  # tokens that a scan works on at once: Mamba-1


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """`count` identical layers. Sizes are of one layer, in values, not bytes."""

    count: int
    attention: str  # gqa | mla | linear (a state of constant size in place of a cache)
    query_heads: int  # linear: heads of values and of the state
    kv_heads: int  # linear: heads of queries and of keys
    head_size: int  # e: of queries and keys (MLA: nope + rope)
    value_head_size: int  # MLA, linear: value size; else head_size
    output_gate: bool = False  # attention's output is multiplied with as many projected values
    kernel_tokens: int = 0  # linear: tokens under the short convolution
    # Mamba-2: tokens that its kernels work on at once, 1 of a scan (Mamba-1); linear with 0 is the gated delta rule
    chunk_tokens: int = 0
    values_of_keys: bool = False  # gqa: values are made of the projected keys, and cached as well
    kv_rank: int = 0  # MLA latent
    query_rank: int = 0  # MLA query latent, 0 = none
    rope_size: int = 0  # MLA decoupled rope
    index_heads: int = 0  # of the index that chooses what attention reads (DeepSeek Sparse Attention), 0 = reads all
    index_size: int = 0  # of an index head
    index_tokens: int = 0  # that a query reads at most
    window_tokens: int = 0  # sliding window, 0 = full attention
    mlp: str = "dense"  # dense | moe
    mlp_width: int = 0  # f of the dense MLP
    gated: bool = True
    experts: int = 0
    experts_per_token: int = 0
    expert_width: int = 0
    shared_expert_width: int = 0  # summed over shared experts
    attention_parameters: int = 0  # weights and biases of attention, its q/k norms included
    mlp_parameters: int = 0  # dense MLP and shared experts, biases included
    expert_parameters: int = 0  # all routed experts
    active_expert_parameters: int = 0  # the routed experts one token visits
    router_parameters: int = 0
    norm_parameters: int = 0
    matmul_parameters: int = 0  # weights one token is multiplied with: active, no biases, no norms

    @property
    def qkv_width(self) -> int:
        """Columns of the projections of a token into attention, gates included; 0 of latent attention."""
        if self.attention == "mla":
            return 0
        values = self.query_heads * self.value_head_size
        if self.attention == "linear":  # queries and keys, values and their gate, decay and write strength
            per_head = 1 if self.chunk_tokens else 2  # Mamba-2: its step is both
            return 2 * self.kv_heads * self.head_size + 2 * values + per_head * self.query_heads
        heads = self.query_heads * self.head_size + self.kv_heads * self.cache_projection
        return heads + (values if self.output_gate else 0)

    @property
    def cache_projection(self) -> int:
        """Columns of the projections that make one head's keys and values."""
        return self.head_size + (0 if self.values_of_keys else self.value_head_size)

    @property
    def parameters(self) -> int:
        """All parameters of one layer."""
        return (
            self.attention_parameters
            + self.mlp_parameters
            + self.expert_parameters
            + self.router_parameters
            + self.norm_parameters
        )

    @property
    def active_parameters(self) -> int:
        """Parameters of one layer that one token visits."""
        return self.parameters - self.expert_parameters + self.active_expert_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A model: its layers, embeddings and counts; `layers` is empty for {parameters: 8B}."""

    name: str
    family: str  # Hugging Face model_type, or "coarse"
    source: str
    hidden_size: int
    vocab_size: int
    tied_embeddings: bool
    max_positions: int
    layers: tuple[LayerGroup, ...]
    input_embedding_parameters: int  # token table
    position_parameters: int  # learned positions
    output_head_parameters: int  # V*h (+ bias), 0 when tied (the matrix is still multiplied)
    final_norm_parameters: int  # with any embedding norms
    parameters: int  # all
    active_parameters: int  # all but unrouted experts, embeddings included
    matmul_parameters: int  # weights one token is multiplied with: active, no biases, norms or lookups, head always

    @property
    def layer_count(self) -> int:
        """Layers of all kinds."""
        return sum(group.count for group in self.layers)

    @property
    def is_moe(self) -> bool:
        """True when any layer routes tokens to experts."""
        return any(group.experts for group in self.layers)


def is_text_part(family: str) -> bool:
    """Whether a Hugging Face model_type is that of the text within a model of text and pictures.

    Examples
    --------
    >>> is_text_part("gemma3_text"), is_text_part("gemma2")
    (True, False)
    """
    return family.endswith("_text")


def size_only(*, name: str, family: str, source: str, parameters: int = 0) -> Architecture:
    """A model of which at most the size is known: no layers, so no attention, activations or cache.

    Parameters
    ----------
    name
        Of the architecture.
    family
        In place of a `model_type`.
    source
        Where the size comes from, in words.
    parameters
        All of them; each counts as active and as multiplied with. 0 = not known.
    """
    return Architecture(
        name=name,
        family=family,
        source=source,
        hidden_size=0,
        vocab_size=0,
        tied_embeddings=False,
        max_positions=0,
        layers=(),
        input_embedding_parameters=0,
        position_parameters=0,
        output_head_parameters=0,
        final_norm_parameters=0,
        parameters=parameters,
        active_parameters=parameters,
        matmul_parameters=parameters,
    )


def state_bytes(group: LayerGroup) -> float:
    """What one layer with linear attention keeps of a sequence of any length, fp32 state; 0 of other layers.  [B]"""
    if group.attention != "linear":
        return 0.0
    values = group.query_heads * group.value_head_size
    channels = values if group.chunk_tokens == SCAN else values + 2 * group.kv_heads * group.head_size
    state = constant_state_bytes(1, group.query_heads, group.head_size, group.value_head_size)
    return float(state) + float(convolution_state_bytes(1, channels, group.kernel_tokens))


def linear_context_tokens(group: LayerGroup) -> float:
    """Context at which softmax attention of the same heads works as much as linear attention; 0 of other layers.

    Work of linear attention grows with the sequence, not with its square: what counts a sliding window
    counts it, with this many tokens as the window.  [tokens]
    """
    if group.attention != "linear":
        return 0.0
    one = flops.attention_forward_flop_per_token(group.query_heads, group.head_size, group.value_head_size, 1)
    return _state_forward_flop_per_token(group) / float(one)


def _state_forward_flop_per_token(group: LayerGroup) -> float:
    """Forward FLOPs of one layer's state per token, by the rule that the state follows.  [FLOP/token]"""
    heads, sizes = group.query_heads, (group.head_size, group.value_head_size)
    if group.chunk_tokens == SCAN:
        return float(selective_scan_forward_flop_per_token(heads * group.value_head_size, group.head_size))
    if group.chunk_tokens:
        return float(state_space_forward_flop_per_token(group.kv_heads, heads, *sizes, group.chunk_tokens))
    return float(linear_attention_forward_flop_per_token(heads, *sizes))


def core_forward_flop_per_token(
    group: LayerGroup, sequence_length: FloatOrArray, *, causal: bool = True
) -> FloatOrArray:
    """Forward FLOPs of one layer's attention core per token; linear attention's do not grow.  [FLOP/token]

    Parameters
    ----------
    group
        The layer; how many there are of it does not count.
    sequence_length
        Tokens of the sequence; the mean over all of them is taken.  [tokens]
    causal
        A query sees what stands before it and within its window; False: every key, whatever the window.
    """
    sizes = (group.query_heads, group.head_size, group.value_head_size)
    if group.attention == "linear":
        return _state_forward_flop_per_token(group) + 0 * as_float(sequence_length)
    seen = flops.attended_tokens(sequence_length, group.window_tokens) if causal else sequence_length
    return flops.attention_forward_flop_per_token(*sizes, seen)


def attention_forward_flop_per_token(
    architecture: Architecture, sequence_length: FloatOrArray, *, causal: bool = True
) -> FloatOrArray:
    """Forward FLOPs of all attention cores per token of a sequence, each kind with its own window.  [FLOP/token]

    With `causal=False` every query is counted against every key, as some publishers do.

    Parameters
    ----------
    architecture
        The model; one without layers has no attention.
    sequence_length
        Tokens of the sequence; the mean over all of them is taken.  [tokens]
    causal
        A query sees what stands before it and within its window; False: every key, whatever the window.
    """
    total: FloatOrArray = 0 * as_float(sequence_length)
    for group in architecture.layers:
        total = total + group.count * core_forward_flop_per_token(group, sequence_length, causal=causal)
    return total


def training_flop_per_token(
    architecture: Architecture, sequence_length: FloatOrArray, *, causal: bool = True
) -> FloatOrArray:
    """Model FLOPs of one training step per token (EQ-FLOP-7); of a coarse model the rule of six.  [FLOP/token]

    Parameters
    ----------
    architecture
        The model; a coarse one has no layers.
    sequence_length
        Tokens of the sequence; the mean over all of them is taken.  [tokens]
    causal
        A query sees what stands before it and within its window; False: every key, whatever the window.
    """
    core = attention_forward_flop_per_token(architecture, sequence_length, causal=causal)
    return flops.model_flop_per_token(architecture.matmul_parameters, core)
