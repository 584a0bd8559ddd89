"""What other tools and rules of thumb say of the same model, side by side with ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.architecture.model import Architecture
from planner.equations.activations import founding_activation_values
from planner.equations.memory import adam_mixed_precision_state_bytes
from planner.equations.rules import estimate_memory_tool_bytes

if TYPE_CHECKING:
    from planner.memory.model import Rule

_VALUE_BYTES = 2  # the founding rule counts 16-bit values


def training_rules(arch: Architecture, batch: int, sequence_length: int, state_bytes: float | None) -> list[Rule]:
    """ZeRO's 16 bytes, the founding activation rule, and the largest-part rule of another tool.

    Parameters
    ----------
    arch
        The model.
    batch
        Sequences of one pass of one model copy.
    sequence_length
        Of each sequence.  [tokens]
    state_bytes
        Weight, gradient and optimizer state of one parameter; None where most of them are frozen.  [B]
    """
    states = float(adam_mixed_precision_state_bytes(arch.parameters))
    matches = "if all weights were trained"
    if state_bytes is not None:
        matches = "matches" if state_bytes == states / arch.parameters else f"this recipe takes {state_bytes:g} B/param"
    rules = [
        _rule("16·Φ (ZeRO)", states, "model states", f"Adam, 16-bit mixed precision: {matches}", "EQ-MEM-1"),
        _rule(
            "4 × weights (accelerate estimate-memory)",
            float(estimate_memory_tool_bytes(arch.parameters)),
            "",
            "largest part of a step, not the sum; no activations",
            "EQ-RULE-11",
        ),
    ]
    if arch.layers:
        values = float(founding_activation_values(arch.hidden_size, batch, sequence_length, arch.layer_count))
        note = f"{values / 1e9:.3g}e9 values of 2 bytes: leaves out attention scores and masks"
        rules.insert(1, _rule("12·h·b·s·L values (founding)", values * _VALUE_BYTES, "activations", note, "EQ-ACT-20"))
    return rules


def serving_rules(arch: Architecture) -> list[Rule]:
    """Weights alone at 16 bits: what a model card tells."""
    return [_rule("2·Φ", 2.0 * arch.parameters, "weights", "no cache, no workspace", "EQ-SRV-1")]


def _rule(name: str, value_bytes: float, of_what: str, note: str, equation: str) -> Rule:
    return {"rule": name, "bytes": value_bytes, "of": of_what, "note": note, "equation": equation}
