"""Memory of a serving replica: weights by format, cache for so many requests, what fits where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.errors import UsageError
from planner.estimate.engines import DEFAULT_ENGINE, ENGINES, EngineRules
from planner.estimate.machine import Machine
from planner.estimate.serving import (
    ReplicaLayout,
    ServingMemory,
    ServingSpec,
    kv_cache_bytes_of_token,
    serving_memory,
    weight_bytes_of_model,
)
from planner.estimate.serving_formats import FORMATS
from planner.estimate.serving_step import sequence_cache_bytes
from planner.memory.cards import Card, card_devices, change_told, serving_rules, unfit
from planner.memory.model import (
    AnswerRow,
    CardFit,
    Fits,
    Found,
    ServingColumn,
    ServingLayer,
    ServingMemoryTold,
    WaysOut,
)
from planner.memory.question import check_shards, largest, model_head, single_layers

DEFAULT_FORMATS = ("bf16", "fp8", "int4")
PLENTY_BYTES = 2.0**60
_DEGREES = tuple(2**exponent for exponent in range(11))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingQuestion:
    """What one replica must hold: `concurrency` requests that each fill `context` tokens."""

    arch: Architecture
    context: int = 4096
    concurrency: int = 1
    formats: tuple[str, ...] = DEFAULT_FORMATS
    kv_cache: str | None = None  # None: 16 bits
    tp: int = 1
    pp: int = 1
    ep: int = 1
    engine: str = DEFAULT_ENGINE
    on_bytes: float = PLENTY_BYTES  # of the one card that is asked about: engines take smaller steps on small ones

    @property
    def rules(self) -> EngineRules:
        """What the engine takes of a device."""
        return ENGINES[self.engine]

    def cache_format(self) -> str:
        """Storage of keys and values."""
        return self.kv_cache or "bf16"

    def memory(self, weights: str, memory_bytes: float, **changed: Any) -> ServingMemory:
        """The replica's fullest device, of a capacity; context, concurrency and tp may be changed."""
        tp = changed.get("tp", self.tp)
        spec = ServingSpec(
            weights=weights,
            kv_cache=self.cache_format(),
            input_tokens=changed.get("context", self.context),
            output_tokens=0,
            max_num_seqs=changed.get("concurrency", self.concurrency),
            memory_fraction=self.rules.memory_fraction,
            fraction=self.rules.fraction,
        )
        layout = ReplicaLayout(devices=tp * self.pp, tp=tp, pp=self.pp, ep=self.ep)
        return serving_memory(self.arch, spec, layout, _machine(memory_bytes))

    def needed(self, weights: str) -> dict[str, float]:
        """Bytes of the fullest device with all requests, part by part, whether it has them or not."""
        whole = self.memory(weights, PLENTY_BYTES).terms.row(0)
        return {**whole, "workspace": self.memory(weights, self.on_bytes).terms.row(0)["workspace"]}

    def needed_bytes(self, weights: str) -> float:
        """The sum of these."""
        return sum(self.needed(weights).values())

    def fits(self, weights: str, one: Card, **changed: Any) -> bool:
        """Whether all requests fit together."""
        held = self.memory(weights, one.capacity_bytes, **changed)
        return bool(held.feasible) and float(held.batch) >= changed.get("concurrency", self.concurrency)


def _machine(memory_bytes: float) -> Machine:
    return Machine(peak_flop_per_s=1.0, mfu=1.0, memory_bytes=memory_bytes, pair_bytes_per_s=1.0, all_bytes_per_s=1.0)


def serving_document(
    question: ServingQuestion, *, cards: Sequence[Card] = (), solve_for: str | None = None, per_layer: bool = False
) -> ServingMemoryTold:
    """Memory by weight format, what fits on which card, and the answer asked for.

    Parameters
    ----------
    question
        What a replica holds, how it is split, and the formats of weights asked for.
    cards
        Sizes to fit it on; none: only what it needs is told.
    solve_for
        batch, context, devices or bits, answered for each card and format; None: nothing is solved for.
    per_layer
        Also tell of each kind of layer alone.

    Raises
    ------
    UsageError
        Only the size of the model is known, or it does not allow the split.
    """
    arch = question.arch
    if not arch.layers:
        raise UsageError.of("no-layers", f"the cache of {arch.name} is unknown: only its size is given")
    _check_split(question)
    if len(cards) == 1:
        question = replace(question, on_bytes=cards[0].capacity_bytes)
    told = [_fit(question, one) for one in cards]
    token_bytes = float(kv_cache_bytes_of_token(arch, question.cache_format(), 1))
    return {
        "schema": "plan/memory/v1",
        "kind": "serving",
        "model": model_head(arch),
        "asked": {
            "context": question.context,
            "concurrency": question.concurrency,
            "tp": question.tp,
            "pp": question.pp,
            "ep": question.ep,
            "engine": question.engine,
            "memory_fraction": question.rules.memory_fraction,
            "kv_cache": question.cache_format(),
            "devices": question.tp * question.pp,
        },
        "kv_bytes_per_token": token_bytes,
        "columns": [_column(question, weights) for weights in question.formats],
        "cards": told,
        "ways_out": serving_ways(question, unfit(cards, told)),
        "answer": _solve(question, cards, solve_for) if solve_for else None,
        "rules": serving_rules(arch),
        "layers": _layers(question) if per_layer else None,
        "minimum": None,
        "equations": ["EQ-SRV-1", "EQ-SRV-2", "EQ-SRV-3", "EQ-SRV-4", "EQ-SRV-6", "EQ-KV-1", "EQ-KV-3"],
    }


def _check_split(question: ServingQuestion) -> None:
    check_shards(question.arch, question.tp, question.ep)
    if question.tp % question.ep:
        hint = f"experts lie on the ranks of a replica: --tp {question.ep} has as many"
        raise UsageError.of("out-of-range", f"--ep {question.ep} does not divide --tp {question.tp}", hint=hint)
    if question.pp > question.arch.layer_count:
        raise UsageError.of("out-of-range", f"--pp {question.pp}: there are {question.arch.layer_count} layers")


def _column(question: ServingQuestion, weights: str) -> ServingColumn:
    return {
        "name": weights,
        "weights": weights,
        "whole_model_bytes": weight_bytes_of_model(question.arch, weights),
        "terms_bytes": question.needed(weights),
        "total_bytes": question.needed_bytes(weights),
    }


def _fit(question: ServingQuestion, one: Card) -> CardFit:
    columns: dict[str, Fits] = {}
    for weights in question.formats:
        most = int(float(question.memory(weights, one.capacity_bytes, concurrency=None).max_sequences))
        columns[weights] = {"fits": question.fits(weights, one), "largest_batch": most}
    usable = float(question.memory(question.formats[0], one.capacity_bytes).usable_bytes)
    return {
        "label": one.label,
        "capacity_bytes": one.capacity_bytes,
        "usable_bytes": usable,
        "devices": list(one.devices),
        "offers": one.offers,
        "columns": columns,
    }


def _solve(question: ServingQuestion, cards: Sequence[Card], solve_for: str) -> list[AnswerRow]:
    if solve_for == "bits":
        return [_formats_that_fit(question, one) for one in cards]
    solvers: Mapping[str, Callable[[ServingQuestion, str, Card], Found]] = {
        "batch": _most_requests,
        "context": _longest_context,
        "devices": _fewest_devices,
    }
    return [
        {"card": one.label, "column": weights, "solve_for": solve_for, **solvers[solve_for](question, weights, one)}
        for one in cards
        for weights in question.formats
    ]


def _most_requests(question: ServingQuestion, weights: str, one: Card) -> Found:
    most = int(float(question.memory(weights, one.capacity_bytes, concurrency=None).max_sequences))
    return {"value": most or None, "unit": "requests at once", "note": "" if most else "not even one fits"}


def _longest_context(question: ServingQuestion, weights: str, one: Card) -> Found:
    # a context that does not fit counts as needing more than any card has
    tokens = largest(lambda n: 0.0 if question.fits(weights, one, context=n) else 1.0, 0.5)
    limit = question.arch.max_positions
    note = f"the model itself ends at {limit:,}" if 0 < limit < tokens else ""
    return {"value": tokens or None, "unit": "tokens", "note": note if tokens else "not even one token fits"}


def fewest_split(question: ServingQuestion, weights: str, one: Card) -> int | None:
    """Fewest devices over which tensors, as the heads allow, are split thin enough; None where no split is enough.

    Parameters
    ----------
    question
        What a replica holds; its own tensor split does not count, its pipeline does.
    weights
        Format of the weights.
    one
        The card.
    """
    for tp in _DEGREES:
        legal = all(group.query_heads % tp == 0 for group in question.arch.layers)
        if legal and question.fits(weights, one, tp=tp):
            return int(tp * question.pp)
    return None


def _fewest_devices(question: ServingQuestion, weights: str, one: Card) -> Found:
    devices = fewest_split(question, weights, one)
    if devices is None:
        return {"value": None, "unit": "devices", "note": "no tensor split that the heads allow is enough"}
    return {"value": devices, "unit": "devices", "note": f"tp{devices // question.pp}"}


def _formats_that_fit(question: ServingQuestion, one: Card) -> AnswerRow:
    fitting = [name for name in FORMATS if question.fits(name, one)]
    widest = max(fitting, key=lambda name: FORMATS[name].bits, default=None)
    return {
        "card": one.label,
        "column": "",
        "solve_for": "bits",
        "value": FORMATS[widest].bits if widest else None,
        "unit": "bits a weight",
        "note": f"fit: {', '.join(fitting)}" if fitting else "no weight format fits",
    }


def _layers(question: ServingQuestion) -> list[ServingLayer]:
    """One row a kind of layer, of one layer; the rest of the model last."""
    cache, weights = question.cache_format(), question.formats[0]
    rows: list[ServingLayer] = []
    for name, count, alone in single_layers(question.arch):
        rows.append(
            {
                "name": name,
                "count": count,
                "parameters": alone.parameters,
                "weight_bytes": weight_bytes_of_model(alone, weights),
                "kv_bytes_per_token": float(kv_cache_bytes_of_token(alone, cache, 1)),
                "kv_bytes_per_request": float(sequence_cache_bytes(alone, cache, question.context)),
            }
        )
    whole = question.arch
    rest = weight_bytes_of_model(whole, weights) - sum(row["count"] * row["weight_bytes"] for row in rows)
    parameters = whole.parameters - sum(row["count"] * row["parameters"] for row in rows)
    around: ServingLayer = {
        "name": "embeddings, head, final norm",
        "count": 1,
        "parameters": parameters,
        "weight_bytes": rest,
        "kv_bytes_per_token": 0.0,
        "kv_bytes_per_request": 0.0,
    }
    return [*rows, around]


def serving_ways(question: ServingQuestion, cards: Sequence[Card]) -> WaysOut | None:
    """A tensor split over more devices, by format of weights; or narrower weights, cache or fewer requests."""

    if not cards:
        return None
    narrowest = min(question.formats, key=question.needed_bytes)
    changes = []
    for change, flags, held, weights in _serving_changes(question, narrowest):
        fits = [one.label for one in cards if held.fits(weights, one)]
        changes.append(change_told(change, flags, held.needed_bytes(weights), fits))
    return {
        "column": narrowest,
        "more_devices": [
            card_devices(one, {weights: fewest_split(question, weights, one) for weights in question.formats})
            for one in cards
        ],
        "changes": changes,
    }


def _serving_changes(question: ServingQuestion, narrowest: str) -> list[tuple[str, str, ServingQuestion, str]]:
    ways = []
    if not set(question.formats) & {"int4", "nf4", "nvfp4", "mxfp4"}:
        ways.append(("weights in 4 bits", "--weights int4", question, "int4"))
    if question.cache_format() in ("bf16", "fp16", "fp32"):
        ways.append(("cache in 8 bits", "--kv-cache fp8", replace(question, kv_cache="fp8"), narrowest))
    if question.concurrency > 1:
        ways.append(("one request at a time", "--concurrency 1", replace(question, concurrency=1), narrowest))
    return ways
