"""How much memory does a model need, what fits on a card, and how much of it would do?

The question of `plan memory`, answered with the functions of `estimate/` alone, as a plain
document (`plan/memory/v1`) that views only draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.equations import activations as act
from planner.equations import memory as mem
from planner.errors import UsageError
from planner.estimate.layout import Layout
from planner.estimate.terms import Terms
from planner.estimate.training import training_memory
from planner.estimate.training_spec import TrainingSpec
from planner.memory.cards import Card, card_devices, change_on, training_rules, unfit
from planner.memory.model import (
    AnswerRow,
    CardFit,
    Found,
    Least,
    ModelHead,
    ParameterBytes,
    TrainingAsked,
    TrainingColumn,
    TrainingLayer,
    TrainingMemory,
    WaysOut,
)

SHARDING = ("none", "zero-1", "zero-2", "zero-3")
RECOMPUTE = ("none", "selective", "full")
_EQUATIONS = (
    "EQ-MEM-2", "EQ-MEM-3", "EQ-MEM-4", "EQ-MEM-14", "EQ-MEM-15", "EQ-ACT-5", "EQ-ACT-6", "EQ-ACT-7", "EQ-ACT-17",
)  # fmt: skip
LARGEST = 2**20  # nothing is searched beyond


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to keep activations: a column of the answer."""

    name: str
    attention: str  # flash | eager
    recompute: str  # none | selective | full


DEFAULT_VARIANTS = (
    Variant(name="no recompute", attention="eager", recompute="none"),
    Variant(name="flash attention", attention="flash", recompute="none"),
    Variant(name="full recompute", attention="eager", recompute="full"),
    Variant(name="flash + full", attention="flash", recompute="full"),
)


def variants(attention: str | None, recompute: str | None) -> tuple[Variant, ...]:
    """The columns asked for; the four usual ones when nothing is."""
    if attention is None and recompute is None:
        return DEFAULT_VARIANTS
    attentions = [attention] if attention else ["eager", "flash"]
    levels = [recompute] if recompute else list(RECOMPUTE)
    return tuple(
        Variant(name=f"{kind}, {level} recompute" if level != "none" else f"{kind}, no recompute",
                attention=kind, recompute=level)
        for level in levels
        for kind in attentions
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingQuestion:
    """What is trained and how it is split; `batch` is of one pass of one model copy, in sequences."""

    arch: Architecture
    batch: int = 1
    sequence_length: int = 1024
    optimizer: str = "adamw"
    precision: str = "bf16"
    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    sharding: str = "none"
    lora_rank: int | None = None  # None: all weights are trained
    lora_base: str = "bf16"  # format of the frozen weights
    variants: tuple[Variant, ...] = field(default=DEFAULT_VARIANTS)

    def layout(self, variant: Variant, **changed: Any) -> Layout:
        """The layout of a column; a pipeline is kept full with as many micro-batches as stages."""
        batch, dp = changed.get("batch", self.batch), changed.get("dp", self.dp)
        return Layout(
            devices=dp * self.tp * self.pp * self.cp,
            dp=dp,
            tp=self.tp,
            pp=self.pp,
            vpp=1,
            cp=self.cp,
            ep=self.ep,
            micro_batch=batch,
            sharding=changed.get("sharding", SHARDING.index(self.sharding)),
            recompute=RECOMPUTE.index(variant.recompute),
            global_batch=batch * dp * self.pp,
        )

    def memory(self, variant: Variant, **changed: Any) -> Terms:
        """Terms of one column, with batch, dp, sharding or sequence_length changed."""
        spec = TrainingSpec(
            tokens=1.0,
            sequence_length=changed.get("sequence_length", self.sequence_length),
            precision=self.precision,
            optimizer=self.optimizer,
            attention=variant.attention,
            lora_rank=self.lora_rank,
            lora_base=self.lora_base,
        )
        return training_memory(self.arch, spec, self.layout(variant, **changed))

    def total_bytes(self, variant: Variant, **changed: Any) -> float:
        """Bytes of the fullest device."""
        return float(np.max(self.memory(variant, **changed).total))


def check_training(question: TrainingQuestion) -> None:
    """Refuse splits that the model does not allow."""
    layers = max(question.arch.layer_count, 1)
    if question.pp > layers:
        raise UsageError.of("out-of-range", f"--pp {question.pp}: {question.arch.name} has {layers} layers")
    check_shards(question.arch, question.tp, question.ep)
    if (question.dp * question.cp * question.tp) % question.ep:
        raise UsageError.of("out-of-range", f"--ep {question.ep} does not divide dp × cp × tp")


def check_shards(arch: Architecture, tp: int, ep: int) -> None:
    """Refuse splits of tensors and of experts that some layer of a model does not allow."""
    undivided = next((group.query_heads for group in arch.layers if group.query_heads % tp), 0)
    if undivided:
        raise UsageError.of("out-of-range", f"--tp {tp} does not divide {undivided} query heads")
    experts = [group.experts for group in arch.layers if group.experts]
    undivided = next((count for count in experts if count % ep), 0)
    if undivided or (ep > 1 and not experts):
        what = f"{undivided} experts" if experts else "a model without experts"
        raise UsageError.of("out-of-range", f"--ep {ep} does not divide {what}")


def training_document(
    question: TrainingQuestion, *, cards: Sequence[Card] = (), solve_for: str | None = None, per_layer: bool = False
) -> TrainingMemory:
    """Memory of every column, what fits on which card, the answer asked for, and other tools' rules.

    Parameters
    ----------
    question
        What is trained, how it is split, and the columns asked for.
    cards
        Sizes to fit it on; none: only what it needs is told.
    solve_for
        batch, context or devices, answered for each card and column; None: nothing is solved for.
    per_layer
        Also tell of each kind of layer alone.

    Raises
    ------
    UsageError
        The model does not allow the split, or training cannot be solved for that.
    """
    check_training(question)
    columns = [_column(question, variant) for variant in question.variants]
    told = [_fit(question, one, columns) for one in cards]
    least = _minimum(question, columns)
    return {
        "schema": "plan/memory/v1",
        "kind": "training",
        "model": model_head(question.arch),
        "asked": _asked(question),
        "per_parameter_bytes": _recipe(question),
        "columns": columns,
        "cards": told,
        "ways_out": training_ways(question, unfit(cards, told), least["column"]),
        "answer": _solve(question, cards, solve_for) if solve_for else None,
        "rules": training_rules(
            question.arch,
            question.batch,
            question.sequence_length,
            _recipe(question)["total"] if question.lora_rank is None else None,
        ),
        "layers": _layers(question) if per_layer else None,
        "minimum": least,
        "equations": list(_EQUATIONS),
    }


def model_head(arch: Architecture) -> ModelHead:
    """Name and shape of a model."""
    attending = [group for group in arch.layers if group.attention != "linear"] or list(arch.layers)
    first = attending[0] if attending else None
    return {
        "name": arch.name,
        "parameters": arch.parameters,
        "active_parameters": arch.active_parameters,
        "layers": arch.layer_count,
        "hidden_size": arch.hidden_size,
        "query_heads": first.query_heads if first else 0,
        "kv_heads": first.kv_heads if first else 0,
        "max_positions": arch.max_positions,
    }


def _asked(question: TrainingQuestion) -> TrainingAsked:
    return {
        "batch": question.batch,
        "sequence_length": question.sequence_length,
        "optimizer": question.optimizer,
        "precision": question.precision,
        "dp": question.dp,
        "tp": question.tp,
        "pp": question.pp,
        "cp": question.cp,
        "ep": question.ep,
        "sharding": question.sharding,
        "lora_rank": question.lora_rank,
        "lora_base": None if question.lora_rank is None else question.lora_base,
        "devices": question.dp * question.tp * question.pp * question.cp,
    }


def _recipe(question: TrainingQuestion) -> ParameterBytes:
    recipe = mem.state_recipe(question.optimizer, question.precision)
    return {
        "weights": recipe.weight,
        "gradients": recipe.gradient,
        "optimizer": recipe.optimizer,
        "total": recipe.total,
        "source": recipe.source,
    }


def _column(question: TrainingQuestion, variant: Variant) -> TrainingColumn:
    terms = question.memory(variant)
    stored = _stored_inputs(question) if variant.recompute == "full" else None
    activations = float(np.max(terms["activations"]))
    return {
        "name": variant.name,
        "attention": variant.attention,
        "recompute": variant.recompute,
        "terms_bytes": terms.row(0),
        "total_bytes": float(np.max(terms.total)),
        "stored_inputs_bytes": stored,
        "live_layer_bytes": activations - stored if stored is not None else None,
    }


def _minimum(question: TrainingQuestion, columns: Sequence[TrainingColumn]) -> Least:
    """The least of the columns, and what it would be with one sequence at a time."""
    least = min(range(len(columns)), key=lambda index: float(columns[index]["total_bytes"]))
    return {
        "column": columns[least]["name"],
        "total_bytes": columns[least]["total_bytes"],
        "one_sequence_bytes": question.total_bytes(question.variants[least], batch=1),
    }


def _stored_inputs(question: TrainingQuestion) -> float | None:
    """What full recomputation keeps: the input of every layer; None when a pipeline keeps several."""
    if question.pp > 1 or not question.arch.layers:
        return None
    tokens = question.batch * question.sequence_length / question.cp
    width = 4 if question.precision == "fp32" else 2
    one = act.layer_input_bytes(tokens, question.arch.hidden_size, question.tp, width)
    return float(one) * question.arch.layer_count


def _fit(question: TrainingQuestion, one: Card, columns: Sequence[TrainingColumn]) -> CardFit:
    return {
        "label": one.label,
        "capacity_bytes": one.capacity_bytes,
        "usable_bytes": one.usable_bytes,
        "devices": list(one.devices),
        "offers": one.offers,
        "columns": {
            variant.name: {
                "fits": column["total_bytes"] <= one.usable_bytes,
                "largest_batch": _batch(question, variant, one.usable_bytes),
            }
            for variant, column in zip(question.variants, columns)
        },
    }


def largest(needed_bytes: Callable[[int], float], usable_bytes: float) -> int:
    """The largest whole number whose need fits; 0 when not even 1 does, at most `LARGEST`."""
    if needed_bytes(1) > usable_bytes:
        return 0
    low, high = 1, 2
    while high <= LARGEST and needed_bytes(high) <= usable_bytes:
        low, high = high, high * 2
    high = min(high, LARGEST + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed_bytes(middle) <= usable_bytes else (low, middle)
    return low


def _solve(question: TrainingQuestion, cards: Sequence[Card], solve_for: str) -> list[AnswerRow]:
    """The answer for each card and column."""
    solvers: Mapping[str, Callable[[TrainingQuestion, Variant, float], Found]] = {
        "batch": _largest_batch,
        "context": _largest_context,
        "devices": _fewest_devices,
    }
    if solve_for not in solvers:
        hint = "training: batch, context or devices; bits is a question of serving"
        raise UsageError.of("unknown-goal", f"training cannot be solved for {solve_for}", hint=hint)
    return [
        {
            "card": one.label,
            "column": variant.name,
            "solve_for": solve_for,
            **solvers[solve_for](question, variant, one.usable_bytes),
        }
        for one in cards
        for variant in question.variants
    ]


def _batch(question: TrainingQuestion, variant: Variant, usable_bytes: float) -> int:
    return largest(lambda n: question.total_bytes(variant, batch=n), usable_bytes)


def _largest_batch(question: TrainingQuestion, variant: Variant, usable_bytes: float) -> Found:
    batch = _batch(question, variant, usable_bytes)
    return {"value": batch or None, "unit": "sequences per device", "note": _beyond(batch)}


def _largest_context(question: TrainingQuestion, variant: Variant, usable_bytes: float) -> Found:
    tokens = largest(lambda n: question.total_bytes(variant, sequence_length=n), usable_bytes)
    limit = question.arch.max_positions
    over = f"the model itself ends at {limit:,}" if 0 < limit < tokens else ""
    return {"value": tokens or None, "unit": "tokens", "note": _beyond(tokens) or over}


def _beyond(value: int) -> str:
    return f"not searched beyond {LARGEST:,}" if value >= LARGEST else ""


def _fewest_devices(question: TrainingQuestion, variant: Variant, usable_bytes: float) -> Found:
    """Fewest data-parallel copies of the split such that the states are sharded thin enough."""
    found = [(fewest_devices(question, variant, stage)(usable_bytes), name) for stage, name in enumerate(SHARDING)]
    enough = [(devices, name) for devices, name in found if devices is not None]
    if not enough:
        return {"value": None, "unit": "devices", "note": "does not fit, however thin the states are sharded"}
    devices, name = min(enough, key=lambda one: one[0])
    return {"value": devices, "unit": "devices", "note": f"sharding {name}"}


def single_layers(arch: Architecture) -> list[tuple[str, int, Architecture]]:
    """A model cut up: each kind of layer alone, and what stands around the layers."""
    parts = []
    for group in arch.layers:
        feed = f"{group.experts} experts" if group.experts else f"dense {group.mlp_width}"
        window = f", window {group.window_tokens}" if group.window_tokens else ""
        name = f"{group.attention} {group.query_heads}/{group.kv_heads} heads, {feed}{window}"
        alone = replace(
            arch, layers=(replace(group, count=1),), input_embedding_parameters=0, position_parameters=0,
            output_head_parameters=0, final_norm_parameters=0, vocab_size=0, parameters=group.parameters,
            active_parameters=group.active_parameters,
        )  # fmt: skip
        parts.append((name, group.count, alone))
    return parts


def _layers(question: TrainingQuestion) -> list[TrainingLayer]:
    """One row a kind of layer, of one layer, not split and not sharded; the rest of the model last."""
    plain = replace(question, dp=1, tp=1, pp=1, cp=1, ep=1, sharding="none")
    rows = [_layer_row(replace(plain, arch=alone), name, count) for name, count, alone in single_layers(question.arch)]
    whole = _layer_row(plain, "", 1)
    logits = float(plain.memory(DEFAULT_VARIANTS[1])["logits"])
    around: TrainingLayer = {
        "name": "embeddings, head, final norm; logits",
        "count": 1,
        "parameters": whole["parameters"] - sum(row["count"] * row["parameters"] for row in rows),
        "states_bytes": whole["states_bytes"] - sum(row["count"] * row["states_bytes"] for row in rows),
        "eager_bytes": logits,
        "flash_bytes": logits,
        "stored_input_bytes": 0.0,
    }
    return [*rows, around]


def _layer_row(alone: TrainingQuestion, name: str, count: int) -> TrainingLayer:
    eager, flash, full = (alone.memory(DEFAULT_VARIANTS[index]) for index in (0, 1, 3))
    return {
        "name": name,
        "count": count,
        "parameters": alone.arch.parameters,
        "states_bytes": float(flash["weights"] + flash["gradients"] + flash["optimizer"]),
        "eager_bytes": float(eager["activations"]),
        "flash_bytes": float(flash["activations"]),
        "stored_input_bytes": float(full["activations"]) - float(flash["activations"]),
    }


SHARDED = ("zero-1", "zero-2", "zero-3")
MOST_DEVICES = 2**16
LORA_RANK = 16  # of the example: what the base takes hardly depends on it
_ADAMS = ("adamw", "adam", "adamw-megatron", "adamw-fsdp", "adamw-deepspeed", "adamw-bf16-moments")
_Way = tuple[str, str, "TrainingQuestion", "Variant"]  # what is changed, the flags that ask for it, the question then


def fewest_devices(question: TrainingQuestion, variant: Variant, sharding: int) -> Callable[[float], int | None]:
    """From the usable bytes of a device to the fewest devices that do, of whole copies of the split.

    Parameters
    ----------
    question
        What is trained; its own data parallelism does not count.
    variant
        How activations are kept.
    sharding
        Stage of ZeRO, 0 to 3; 0 = states are whole on every copy.
    """
    counts = np.arange(1, MOST_DEVICES + 1)
    counts = counts[(counts * question.cp * question.tp) % question.ep == 0]
    total = np.broadcast_to(question.memory(variant, dp=counts, sharding=sharding).total, counts.shape)
    split = question.tp * question.pp * question.cp

    def fewest(usable_bytes: float) -> int | None:
        fits = np.flatnonzero(total <= usable_bytes)
        return int(counts[fits[0]]) * split if len(fits) else None

    return fewest


def training_ways(question: TrainingQuestion, cards: Sequence[Card], least: str) -> WaysOut | None:
    """More devices, with the least of the columns; or the same devices and another batch, optimizer or method.

    Parameters
    ----------
    question
        What was asked.
    cards
        Those on which nothing fits as it was asked; none: there is nothing to mend.
    least
        Name of the column that takes least.
    """
    if not cards:
        return None
    variant = next(one for one in question.variants if one.name == least)
    counters = {name: fewest_devices(question, variant, stage) for stage, name in enumerate(SHARDED, start=1)}
    return {
        "column": least,
        "more_devices": [
            card_devices(one, {name: counter(one.usable_bytes) for name, counter in counters.items()}) for one in cards
        ],
        "changes": [
            change_on(change, flags, held.total_bytes(kind), cards, [one.usable_bytes for one in cards])
            for change, flags, held, kind in _training_changes(question, variant)
        ],
    }


def _training_changes(question: TrainingQuestion, variant: Variant) -> list[_Way]:
    """Each change alone; those that lose nothing of the method together; then adapters."""
    one, eight, lean = question, question, variant
    ways: list[_Way] = []
    if variant.recompute != "full":
        lean = replace(variant, name="full recompute", recompute="full")
        ways.append(("full recomputation", "--recompute full", question, lean))
    if question.batch > 1:
        one = replace(question, batch=1)
        ways.append(("one sequence at a time", "--batch 1", one, variant))
    if question.lora_rank is None and question.optimizer in _ADAMS and question.precision != "fp32":
        eight = replace(question, optimizer="adamw-8bit")
        ways.append(("8-bit optimizer states", "--optimizer adamw-8bit", eight, variant))
    if len(ways) > 1:
        flags = " ".join(way[1] for way in ways)
        ways.append(("these together", flags, replace(eight, batch=one.batch), lean))
    if eight is not question:
        bare = replace(question, optimizer="adamw-8bit-no-master")
        ways.append(("8-bit states, no fp32 weights", "--optimizer adamw-8bit-no-master", bare, variant))
    return ways + _adapters(question, variant)


def _adapters(question: TrainingQuestion, variant: Variant) -> list[_Way]:
    """Frozen weights, of 16 and of 4 bits, where they are not so already."""
    if question.lora_rank is not None:
        narrow = replace(question, lora_base="nf4")
        quantised = ("frozen weights in 4 bits (QLoRA)", "--lora-base nf4", narrow, variant)
        return [] if question.lora_base == "nf4" else [quantised]
    ways = []
    for base, name in (("bf16", "LoRA"), ("nf4", "QLoRA, base in 4 bits")):
        flags = f"--lora {LORA_RANK}" + (f" --lora-base {base}" if base != "bf16" else "")
        adapters = replace(question, lora_rank=LORA_RANK, lora_base=base)
        ways.append((f"{name}, rank {LORA_RANK}", flags, adapters, variant))
    return ways
