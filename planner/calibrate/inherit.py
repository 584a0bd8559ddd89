"""Families without rows of their own take over the constants of a near generation, with a wider band.

How much further they may be off than families differ anyhow was fixed by what they share: vendor, years, instructions.
"""

from __future__ import annotations

# family: (inherits from, because, deviation of its logarithm besides that between families)
HEIRS: dict[str, tuple[str, str, float]] = {
    "kepler": ("ampere", "older card of the same vendor; no matrix units", 0.20),
    "pascal": ("ampere", "older card of the same vendor; no matrix units", 0.20),
    "volta": ("ampere", "the generation before", 0.05),
    "turing": ("ampere", "the generation before, less bandwidth", 0.10),
    "ada": ("hopper", "same generation, less memory bandwidth per FLOP", 0.05),
    "rubin": ("blackwell", "successor", 0.10),
    "cdna1": ("ampere", "same years, another vendor", 0.20),
    "cdna2": ("ampere", "same years, another vendor", 0.15),
    "cdna3": ("hopper", "same generation, another vendor", 0.10),
    "cdna4": ("blackwell", "same generation, another vendor", 0.10),
    "cdna5": ("blackwell", "successor, another vendor", 0.15),
    "gaudi2": ("ampere", "same years, another vendor", 0.15),
    "gaudi3": ("hopper", "same generation, another vendor", 0.15),
    "xe2": ("hopper", "same generation, another vendor", 0.20),
    "neuron-v2": ("hopper", "same years, another vendor", 0.20),
    "neuron-v3": ("hopper", "same generation, another vendor", 0.15),
    "neuron-v4": ("blackwell", "same generation, another vendor", 0.15),
    "tpu-v2": ("tpu-v4", "the oldest TPU with rows", 0.10),
    "tpu-v3": ("tpu-v4", "the oldest TPU with rows", 0.05),
    "tpu-v7x": ("tpu-v6e", "the newest TPU with rows", 0.10),
}
