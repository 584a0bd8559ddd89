"""The step time that a measured row states, whatever its publisher printed."""

from __future__ import annotations

from dataclasses import replace

from planner.validate.conventions import counted_tflops_per_device, measured_tflops_per_device
from planner.validate.rows import MeasuredRow
from planner.validate.rows_model import architecture_of, parameters_of
from planner.validate.rows_setup import layout_of


def measured_step_time_s(row: MeasuredRow) -> float | None:
    """Step time of a row: as printed, from tokens/s, or from TFLOP/s in the row's conventions.

    A batch that is not stated is that of `layout_of`; the prediction is made for the same one.

    Returns
    -------
    [s], or None when nothing of it was measured, or what was cannot be counted.
    """
    if row.step_time_s is not None:
        return row.step_time_s
    if not row.n_accel:
        return None
    batch = layout_of(row)["global_batch"]
    if row.tokens_per_s_per_device and row.seq_len:
        return batch * row.seq_len / row.tokens_per_s_per_device / row.n_accel
    return _from_tflops(row, batch)


def _from_tflops(row: MeasuredRow, batch: float) -> float | None:
    published = measured_tflops_per_device(row)
    known = architecture_of(row).layers or parameters_of(row) is not None
    if published is None or not known or not row.flops_convention or not row.attention_flops:
        return None
    counted = replace(row, global_batch=row.global_batch or round(batch))
    at_one_second = counted_tflops_per_device(counted, architecture_of(row), 1.0)
    return at_one_second / published if at_one_second else None
