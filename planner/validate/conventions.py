"""FLOPs of a step as publishers count them: which operations, and how much of attention."""

from __future__ import annotations

from planner.architecture.model import Architecture, attention_forward_flop_per_token
from planner.equations.flops import hardware_flop_per_token, model_flop_per_token
from planner.validate.rows import MeasuredRow

_RECOMPUTE = {"none": 0, "selective": 1, "full": 2}


def counted_flop_per_step(row: MeasuredRow, architecture: Architecture) -> float | None:
    """FLOPs of one optimizer step in the row's `flops_convention` and `attention_flops`.

    Unstated conventions read as those of Megatron-LM since 2025 and MaxText: model FLOPs,
    attention counted causally. Under `hardware` the repeated forward passes that `recompute`
    names count too; what it says beyond none, selective and full counts as none.

    Returns
    -------
    [FLOP], or None when the batch or the sequence is unknown.
    """
    if row.tokens_per_step is None or row.seq_len is None:
        return None
    core = _attention(row, architecture, float(row.seq_len))
    head = float(architecture.vocab_size * architecture.hidden_size)
    if row.flops_convention == "hardware":
        again = _RECOMPUTE.get((row.recompute or "none").split(" ")[0], 0)
        flop = hardware_flop_per_token(architecture.matmul_parameters - head, head, core, again)
    else:
        flop = model_flop_per_token(architecture.matmul_parameters, core)
    return float(flop) * row.tokens_per_step


def _attention(row: MeasuredRow, architecture: Architecture, sequence_length: float) -> float:
    if row.attention_flops == "none":
        return 0.0
    causal = row.attention_flops != "full"
    return float(attention_forward_flop_per_token(architecture, sequence_length, causal=causal))


def counted_tflops_per_device(row: MeasuredRow, architecture: Architecture, step_time_s: float) -> float | None:
    """Throughput of a step in the row's conventions [1e12 FLOP/s per device]; None when it cannot be counted.

    Parameters
    ----------
    row
        Its conventions, batch, sequence and number of devices; nothing measured is read.
    architecture
        Shape of its model.
    step_time_s
        Of the step, predicted or measured.  [s]
    """
    flop = counted_flop_per_step(row, architecture)
    return None if flop is None or not row.n_accel else flop / step_time_s / row.n_accel / 1e12


def measured_tflops_per_device(row: MeasuredRow) -> float | None:
    """What the row publishes [1e12 FLOP/s per device]: as printed, else its utilisation times its peak."""
    if row.tflops_per_device is not None:
        return row.tflops_per_device
    if row.mfu_pct is None or row.mfu_peak_tflops is None:
        return None
    return row.mfu_pct / 100 * row.mfu_peak_tflops
