"""How far published figures of one and the same configuration lie apart: the floor under any model's error."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Hashable, Sequence

from planner.validate.rows import MeasuredRow, typed_inputs

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
