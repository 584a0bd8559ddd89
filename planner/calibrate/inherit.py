"""Families without rows of their own take over the constants of a near generation, with a wider band.

How much further they may be off than families differ anyhow was fixed by what they share: vendor, years, instructions.
That is a guess. How much further still those of another vendor are off is learnt from those that have rows, each
predicted as if it had none (`crossval.vendor_deviation`).
"""

from __future__ import annotations

from typing import NamedTuple


class Heir(NamedTuple):
    """What a family without rows takes over."""

    parent: str  # family
    because: str
    further: float  # deviation of its logarithm besides that between families, as guessed
    other_vendor: bool = False  # the same on paper, not in the years that its software was tuned


HEIRS: dict[str, Heir] = {
    "kepler": Heir("ampere", "older card of the same vendor; no matrix units", 0.20),
    "pascal": Heir("ampere", "older card of the same vendor; no matrix units", 0.20),
    "volta": Heir("ampere", "the generation before", 0.05),
    "turing": Heir("ampere", "the generation before, less bandwidth", 0.10),
    "ada": Heir("hopper", "same generation, less memory bandwidth per FLOP", 0.05),
    "rubin": Heir("blackwell", "successor", 0.10),
    "cdna1": Heir("ampere", "same years, another vendor", 0.20, other_vendor=True),
    "cdna2": Heir("ampere", "same years, another vendor", 0.15, other_vendor=True),
    "cdna3": Heir("hopper", "same generation, another vendor", 0.10, other_vendor=True),
    "cdna4": Heir("blackwell", "same generation, another vendor", 0.10, other_vendor=True),
    "cdna5": Heir("blackwell", "successor, another vendor", 0.15, other_vendor=True),
    "gaudi2": Heir("ampere", "same years, another vendor", 0.15, other_vendor=True),
    "gaudi3": Heir("hopper", "same generation, another vendor", 0.15, other_vendor=True),
    "xe2": Heir("hopper", "same generation, another vendor", 0.20, other_vendor=True),
    "neuron-v2": Heir("hopper", "same years, another vendor", 0.20, other_vendor=True),
    "neuron-v3": Heir("hopper", "same generation, another vendor", 0.15, other_vendor=True),
    "neuron-v4": Heir("blackwell", "same generation, another vendor", 0.15, other_vendor=True),
    "tpu-v2": Heir("tpu-v4", "the oldest TPU with rows", 0.10),
    "tpu-v3": Heir("tpu-v4", "the oldest TPU with rows", 0.05),
    "tpu-v7x": Heir("tpu-v6e", "the newest TPU with rows", 0.10),
}
