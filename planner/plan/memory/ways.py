"""Ways out where a question about memory fits no card as it was asked: each worked out with the same equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.plan.memory.cards import Card

if TYPE_CHECKING:
    from planner.plan.memory.model import CardFit, FewestDevices, WaysOut, WithChange
    from planner.plan.memory.question import TrainingQuestion, Variant
    from planner.plan.memory.serving import ServingQuestion

SHARDED = ("zero-1", "zero-2", "zero-3")
MOST_DEVICES = 2**16
LORA_RANK = 16  # of the example: what the base takes hardly depends on it
_ADAMS = ("adamw", "adam", "adamw-megatron", "adamw-fsdp", "adamw-deepspeed", "adamw-bf16-moments")


def unfit(cards: Sequence[Card], told: Sequence[CardFit]) -> list[Card]:
    """Cards on which nothing fits as it was asked, smallest first."""
    empty = [one for one, fit in zip(cards, told) if not any(column["fits"] for column in fit["columns"].values())]
    return sorted(empty, key=lambda one: one.usable_bytes)


def fewest_devices(question: TrainingQuestion, variant: Variant, sharding: int) -> Callable[[float], int | None]:
    """From the usable bytes of a device to the fewest devices that do, of whole copies of the split."""
    counts = np.arange(1, MOST_DEVICES + 1)
    counts = counts[(counts * question.cp * question.tp) % question.ep == 0]
    total = np.broadcast_to(question.memory(variant, dp=counts, sharding=sharding).total, counts.shape)
    split = question.tp * question.pp * question.cp

    def fewest(usable_bytes: float) -> int | None:
        fits = np.flatnonzero(total <= usable_bytes)
        return int(counts[fits[0]]) * split if len(fits) else None

    return fewest


def training_ways(question: TrainingQuestion, cards: Sequence[Card], least: str) -> WaysOut | None:
    """More devices, with the least of the columns; or the same devices and another batch, optimizer or method."""
    if not cards:
        return None
    variant = next(one for one in question.variants if one.name == least)
    counters = {name: fewest_devices(question, variant, stage) for stage, name in enumerate(SHARDED, start=1)}
    return {
        "column": least,
        "more_devices": [
            _fewest(one, {name: counter(one.usable_bytes) for name, counter in counters.items()}) for one in cards
        ],
        "changes": [
            _changed(change, flags, held.total_bytes(kind), cards, [one.usable_bytes for one in cards])
            for change, flags, held, kind in _training_changes(question, variant)
        ],
    }


_Way = tuple[str, str, "TrainingQuestion", "Variant"]  # what is changed, the flags that ask for it, the question then


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


def serving_ways(question: ServingQuestion, cards: Sequence[Card]) -> WaysOut | None:
    """A tensor split over more devices, by format of weights; or narrower weights, cache or fewer requests."""
    from planner.plan.memory.serving import fewest_split

    if not cards:
        return None
    narrowest = min(question.formats, key=question.needed_bytes)
    changes = []
    for change, flags, held, weights in _serving_changes(question, narrowest):
        fits = [one.label for one in cards if held.fits(weights, one)]
        changes.append(_told(change, flags, held.needed_bytes(weights), fits))
    return {
        "column": narrowest,
        "more_devices": [
            _fewest(one, {weights: fewest_split(question, weights, one) for weights in question.formats})
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


def _fewest(one: Card, devices: Mapping[str, int | None]) -> FewestDevices:
    return {"card": one.label, "devices": dict(devices)}


def _changed(
    change: str, flags: str, total_bytes: float, cards: Sequence[Card], usable_bytes: Sequence[float]
) -> WithChange:
    fits = [one.label for one, usable in zip(cards, usable_bytes) if total_bytes <= usable]
    return _told(change, flags, total_bytes, fits)


def _told(change: str, flags: str, total_bytes: float, fits: list[str]) -> WithChange:
    return {"change": change, "flags": flags, "total_bytes": total_bytes, "fits_on": fits}
