"""The step time that a measured row states, whatever its publisher printed.

How far published figures of one and the same configuration lie apart is the floor under any model's error.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

from planner.errors import InputError
from planner.validate.rows import MeasuredRow, typed_inputs
from planner.validate.rows_facts import (
    architecture_of,
    counted_tflops_per_device,
    measured_tflops_per_device,
    parameters_of,
)
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
    if published is None or not row.flops_convention or not row.attention_flops:
        return None
    try:
        known = architecture_of(row).layers or parameters_of(row) is not None
    except InputError:  # a shape that no model has: FLOPs of it cannot be counted
        return None
    if not known:
        return None
    counted = replace(row, global_batch=row.global_batch or round(batch))
    at_one_second = counted_tflops_per_device(counted, architecture_of(row), 1.0)
    return at_one_second / published if at_one_second else None


# A later release of the same software is the same configuration run again: its drift is noise to a model.
_RELEASE = ("year", "framework", "software_release")
_VERSION = re.compile(r"\s+\(?[0-9].*$")
_VARIANT = re.compile(r"\(([^)]*)\)")  # other kernels or another branch of the same release: not the same run


def configuration(row: MeasuredRow) -> Hashable:
    """What two rows share when they are the same run in everything that a prediction may read.

    The name of the software counts, its release and the year of publication do not.
    """
    variant = _VARIANT.search(row.software_release or "")
    named = variant[1] if variant else ""
    return (_VERSION.sub("", row.framework or ""), named, *typed_inputs(row, besides=_RELEASE))


def medians(rows: Sequence[MeasuredRow], values: Sequence[float]) -> list[float]:
    """Of each row, the median of all values of its configuration."""
    return _medians([configuration(row) for row in rows], values)


def noise_floor(rows: Sequence[MeasuredRow], values: Sequence[float]) -> float | None:
    """Mean distance of repeated rows from their median, as a share of it; None when nothing was repeated.

    This is the error that a model would show which knew every median and nothing else.
    """
    return noise_of([configuration(row) for row in rows], values)


def noise_of(keys: Sequence[Hashable], values: Sequence[float]) -> float | None:
    """As `noise_floor`, of values whose configurations are given."""
    counts = Counter(keys)
    triples = zip(keys, values, _medians(keys, values), strict=True)
    apart = [abs(value / middle - 1) for key, value, middle in triples if counts[key] > 1]
    return sum(apart) / len(apart) if apart else None


def repeated_rows(rows: Sequence[MeasuredRow]) -> int:
    """Rows that share their configuration with another one."""
    return sum(number for number in Counter(map(configuration, rows)).values() if number > 1)


def _medians(keys: Sequence[Hashable], values: Sequence[float]) -> list[float]:
    groups: dict[Hashable, list[float]] = {}
    for key, value in zip(keys, values, strict=True):
        groups.setdefault(key, []).append(value)
    return [statistics.median(groups[key]) for key in keys]
