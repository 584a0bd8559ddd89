"""What `plan memory` and `plan models show` answer (`plan/memory/v1`, `plan/model/v1`), as types."""

from __future__ import annotations

from typing import Literal, final

from typing_extensions import TypedDict


class ModelHead(TypedDict):
    """Name and shape of a model."""

    name: str
    parameters: int
    active_parameters: int
    layers: int
    hidden_size: int
    query_heads: int
    kv_heads: int
    max_positions: int


class TrainingAsked(TypedDict):
    """What is trained, and how it is split."""

    batch: int
    sequence_length: int
    optimizer: str
    precision: str
    dp: int
    tp: int
    pp: int
    cp: int
    ep: int
    sharding: str
    lora_rank: int | None
    lora_base: str | None
    devices: int


class ServingAsked(TypedDict):
    """What a replica holds, and how it is split."""

    context: int
    concurrency: int
    tp: int
    pp: int
    ep: int
    engine: str
    memory_fraction: float
    kv_cache: str
    devices: int


class ParameterBytes(TypedDict):
    """Model states of one parameter."""

    weights: float
    gradients: float
    optimizer: float
    total: float
    source: str


class Column(TypedDict):
    """One way to keep activations or weights: what the fullest device holds."""

    name: str
    terms_bytes: dict[str, float]
    total_bytes: float


class TrainingColumn(Column):
    """One way to keep activations."""

    attention: str
    recompute: str
    stored_inputs_bytes: float | None
    live_layer_bytes: float | None


class ServingColumn(Column):
    """One format of weights."""

    weights: str
    whole_model_bytes: float


class Fits(TypedDict):
    """Whether a column fits a card, and the largest batch that does."""

    fits: bool
    largest_batch: int


class CardFit(TypedDict):
    """What fits on one card, by column; of the catalog: the devices of that size and how often they are offered."""

    label: str
    capacity_bytes: float
    usable_bytes: float
    devices: list[str]
    offers: int
    columns: dict[str, Fits]


class FewestDevices(TypedDict):
    """Least number of devices of a card that hold what one does not, by sharding or by format of weights."""

    card: str
    devices: dict[str, int | None]


class WithChange(TypedDict):
    """One thing changed and all else as asked: what a device holds then, and on which cards that fits."""

    change: str
    flags: str
    total_bytes: float
    fits_on: list[str]


class WaysOut(TypedDict):
    """What would mend it on the cards that hold nothing of what was asked."""

    column: str
    more_devices: list[FewestDevices]
    changes: list[WithChange]


class Found(TypedDict):
    """The most or fewest that fits; null where nothing does."""

    value: int | float | None
    unit: str
    note: str


class AnswerRow(Found):
    """The answer for one card and column."""

    card: str
    column: str
    solve_for: str


class Rule(TypedDict):
    """What another tool or a rule of thumb says of the same model."""

    rule: str
    bytes: float
    of: str
    note: str
    equation: str


class Layer(TypedDict):
    """One kind of layer, of one layer; the rest of the model last."""

    name: str
    count: int
    parameters: float


class TrainingLayer(Layer):
    """One kind of layer that is trained, not split and not sharded."""

    states_bytes: float
    eager_bytes: float
    flash_bytes: float
    stored_input_bytes: float


class ServingLayer(Layer):
    """One kind of layer that serves."""

    weight_bytes: float
    kv_bytes_per_token: float
    kv_bytes_per_request: float


class Least(TypedDict):
    """The least of the columns, and what it would be with one sequence at a time."""

    column: str
    total_bytes: float
    one_sequence_bytes: float


class MemoryCells(TypedDict):
    """What answers about training and serving share."""

    schema: Literal["plan/memory/v1"]
    model: ModelHead
    cards: list[CardFit]
    ways_out: WaysOut | None
    answer: list[AnswerRow] | None
    rules: list[Rule]
    equations: list[str]


@final
class TrainingMemory(MemoryCells):
    """Memory of training on one device."""

    kind: Literal["training"]
    asked: TrainingAsked
    per_parameter_bytes: ParameterBytes
    columns: list[TrainingColumn]
    layers: list[TrainingLayer] | None
    minimum: Least


@final
class ServingMemoryTold(MemoryCells):
    """Memory of a replica on one device."""

    kind: Literal["serving"]
    asked: ServingAsked
    kv_bytes_per_token: float
    columns: list[ServingColumn]
    layers: list[ServingLayer] | None
    minimum: None


MemoryDocument = TrainingMemory | ServingMemoryTold


class LayerFacts(TypedDict):
    """One kind of layer of a model."""

    count: int
    attention: str
    query_heads: int
    kv_heads: int
    head_size: int
    window_tokens: int | None
    mlp: str
    mlp_width: int
    experts: int
    experts_per_token: int
    expert_width: int
    parameters: int
    active_parameters: int


class ModelFacts(TypedDict):
    """What a model is made of."""

    schema: Literal["plan/model/v1"]
    name: str
    family: str
    source: str
    parameters: int
    active_parameters: int
    matmul_parameters: int
    hidden_size: int
    vocab_size: int
    max_positions: int
    tied_embeddings: bool
    parts: dict[str, int]
    layers: list[LayerFacts]
    sequence_length: int
    forward_flop_per_token: float
    training_flop_per_token: float
    kv_bytes_per_token: dict[str, float | None]
    state_bytes: float
    weight_bytes: dict[str, float]
    equations: list[str]
