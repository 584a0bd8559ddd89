"""Families without rows of their own take over those of a near generation, with a wider band."""

from __future__ import annotations

# family: (inherits from, because, power by which the band widens)
HEIRS: dict[str, tuple[str, str, float]] = {
    "kepler": ("ampere", "older card of the same vendor; no matrix units", 3.0),
    "pascal": ("ampere", "older card of the same vendor; no matrix units", 3.0),
    "volta": ("ampere", "the generation before", 1.5),
    "turing": ("ampere", "the generation before, less bandwidth", 2.0),
    "ada": ("hopper", "same generation, less memory bandwidth per FLOP", 1.5),
    "rubin": ("blackwell", "successor", 2.0),
    "cdna1": ("ampere", "same years, another vendor", 3.0),
    "cdna2": ("ampere", "same years, another vendor", 2.5),
    "cdna3": ("hopper", "same generation, another vendor", 2.0),
    "cdna4": ("blackwell", "same generation, another vendor", 2.0),
    "cdna5": ("blackwell", "successor, another vendor", 2.5),
    "gaudi2": ("ampere", "same years, another vendor", 2.5),
    "gaudi3": ("hopper", "same generation, another vendor", 2.5),
    "xe2": ("hopper", "same generation, another vendor", 3.0),
    "neuron-v2": ("hopper", "same years, another vendor", 3.0),
    "neuron-v3": ("hopper", "same generation, another vendor", 2.5),
    "neuron-v4": ("blackwell", "same generation, another vendor", 2.5),
    "tpu-v2": ("tpu-v4", "the oldest TPU with rows", 2.0),
    "tpu-v3": ("tpu-v4", "the oldest TPU with rows", 1.5),
    "tpu-v7x": ("tpu-v6e", "the newest TPU with rows", 2.0),
}
