"""Errors of predictions against measured rows, row by row and in groups, of which a few figures tell.

An error is predicted / measured - 1, of the step time. A row that publishes tokens/s or TFLOP/s is turned into a step
time first, the latter in the row's own conventions. Rows of one configuration are held against their median, see
measured.py. Rows of trust C are predicted and shown, but count in no figure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from planner.carriers import dataclass
from planner.validate.measured import configuration, measured_step_time_s, medians, noise_of
from planner.validate.rows import MeasuredRow

FEWEST_ROWS = 10  # a group with fewer is reported without a bar
RESAMPLES = 2000
SEED = 20261121


class Counted(Protocol):
    """What a row that counts must tell of itself."""

    @property
    def error(self) -> float:
        """Predicted over target, less one: a share with its sign."""
        ...

    @property
    def measured(self) -> float:
        """The figure itself."""
        ...

    @property
    def source(self) -> str:
        """Publication of the row."""
        ...

    @property
    def configuration(self) -> Hashable:
        """What the row shares with another run of the same thing."""
        ...


class Shown(Counted, Protocol):
    """What a row that counts must tell, besides, to be shown on its own."""

    @property
    def row(self) -> Any:
        """The row, with its name, model and device."""
        ...

    @property
    def family(self) -> str:
        """Generation of its device."""
        ...

    @property
    def predicted(self) -> float:
        """What was predicted."""
        ...

    @property
    def target(self) -> float:
        """What the prediction is held against."""
        ...


Row = TypeVar("Row", bound=Counted)
One = TypeVar("One", bound=Shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Absolute errors of a group of rows, as shares."""

    group: str  # all | family | precision | kind | source | parallelism | memory
    name: str
    rows: int
    configurations: int
    sources: int
    mean: float
    median: float
    p90: float
    worst: float
    mean_of_sources: float
    low: float  # bootstrap 90 % interval of the mean
    high: float
    bias: float  # mean of the signed errors
    noise_floor: float | None

    @property
    def has_bar(self) -> bool:
        """Whether there are rows enough to hold a figure against."""
        return self.rows >= FEWEST_ROWS


def summarise(scored: Sequence[Counted], group: str = "all", name: str = "all") -> Summary:
    """The errors of some rows; ValueError for none.

    Parameters
    ----------
    scored
        Rows that count.
    group, name
        What they have in common, and the name of it, as `Summary` tells them; nothing is computed of them.

    Raises
    ------
    ValueError
        There are no rows.
    """
    if not scored:
        raise ValueError("a group of rows holds at least one")
    signed = np.array([item.error for item in scored])
    sizes = np.abs(signed)
    low, high = bootstrap_interval(sizes)
    sources = by_name(scored, lambda item: item.source)
    keys = [item.configuration for item in scored]
    return Summary(
        group=group,
        name=name,
        rows=len(scored),
        configurations=len(set(keys)),
        sources=len(sources),
        mean=float(sizes.mean()),
        median=float(np.median(sizes)),
        p90=float(np.percentile(sizes, 90)),
        worst=float(sizes.max()),
        mean_of_sources=float(np.mean([np.mean([abs(item.error) for item in part]) for part in sources.values()])),
        low=low,
        high=high,
        bias=float(signed.mean()),
        noise_floor=noise_of(keys, [item.measured for item in scored]),
    )


def bootstrap_interval(values: np.ndarray, *, share: float = 0.9) -> tuple[float, float]:
    """Percentile bootstrap interval of a mean, always the same for the same values."""
    chance = np.random.default_rng(SEED)
    means = values[chance.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
    tail = 50 * (1 - share)
    return float(np.percentile(means, tail)), float(np.percentile(means, 100 - tail))


def by_name(scored: Sequence[Row], name_of: Callable[[Row], str]) -> dict[str, list[Row]]:
    """Rows in groups, by the order in which their names appear."""
    parts: dict[str, list[Row]] = {}
    for item in scored:
        parts.setdefault(name_of(item), []).append(item)
    return parts


def worst_rows(scored: Sequence[One], most: int = 10) -> list[One]:
    """Rows with the largest errors, the largest first."""
    return sorted(scored, key=lambda item: (-abs(item.error), item.row.name))[:most]


class Predicted(Protocol):
    """What a prediction of one row offers; see planner.validate.training.Prediction."""

    @property
    def step_time_s(self) -> float | None: ...  # noqa: D102
    @property
    def tokens_per_s_per_device(self) -> float | None: ...  # noqa: D102
    @property
    def tflops_per_device(self) -> float | None: ...  # noqa: D102
    @property
    def peak_memory_bytes(self) -> float | None: ...  # noqa: D102
    @property
    def skipped(self) -> str | None: ...  # noqa: D102
    @property
    def family(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One row that counts: its prediction, what it measured, and the median of its configuration."""

    row: MeasuredRow
    family: str  # as the row names it: A100, GB200
    constants: str  # family whose constants the prediction used
    predicted: float  # [s] or [B]
    measured: float
    target: float

    @property
    def error(self) -> float:
        """Predicted over target, less one: a share with its sign."""
        return self.predicted / self.target - 1

    @property
    def source(self) -> str:
        """Publication of the row."""
        return self.row.source_key or ""

    @property
    def configuration(self) -> Hashable:
        """What the row shares with another run of the same thing."""
        return configuration(self.row)


def why_left_out(row: MeasuredRow) -> str | None:
    """Why a row counts in no error figure; None when it counts."""
    return "trust C" if row.trust == "C" else None


def score_step_times(rows: Sequence[MeasuredRow], predictions: Sequence[Predicted]) -> list[Scored]:
    """Every row that counts and has both a predicted and a measured step time."""
    pairs = zip(rows, predictions, strict=True)
    return _scored([(row, p, p.step_time_s, measured_step_time_s(row)) for row, p in pairs])


def score_memory(rows: Sequence[MeasuredRow], predictions: Sequence[Predicted]) -> list[Scored]:
    """Every row that counts and has both a predicted and a measured peak memory."""
    pairs = zip(rows, predictions, strict=True)
    return _scored([(row, p, p.peak_memory_bytes, row.measured_memory_bytes) for row, p in pairs])


def _scored(found: Iterable[tuple[MeasuredRow, Predicted, float | None, float | None]]) -> list[Scored]:
    kept = [
        (row, prediction, predicted, measured)
        for row, prediction, predicted, measured in found
        if predicted is not None and measured is not None and why_left_out(row) is None
    ]
    targets = medians([row for row, *_ in kept], [measured for *_, measured in kept])
    return [
        Scored(
            row=row,
            family=row.family or prediction.family,
            constants=prediction.family,
            predicted=predicted,
            measured=measured,
            target=target,
        )
        for (row, prediction, predicted, measured), target in zip(kept, targets, strict=True)
    ]


GROUPS: dict[str, Callable[[Scored], str]] = {
    "family": lambda item: item.family,
    "precision": lambda item: item.row.precision_class or "unstated",
    "kind": lambda item: item.row.kind,
    "source": lambda item: item.row.source_key or "unstated",
    "parallelism": lambda item: parallelism(item.row),
}


def summaries(scored: Sequence[Scored]) -> list[Summary]:
    """All rows together, then every group by family, precision, kind, source and parallelism."""
    if not scored:
        return []
    found = [summarise(scored)]
    for group, name_of in GROUPS.items():
        found += [summarise(part, group, name) for name, part in sorted(by_name(scored, name_of).items())]
    return found


def memory_summaries(scored: Sequence[Scored]) -> list[Summary]:
    """Peak memory by the kind of its reading, then by source."""
    by_kind = by_name(scored, lambda item: item.row.memory_kind or "unstated")
    by_source = by_name(scored, GROUPS["source"])
    found = [summarise(part, "memory kind", name) for name, part in sorted(by_kind.items())]
    return found + [summarise(part, "memory source", name) for name, part in sorted(by_source.items())]


def parallelism(row: MeasuredRow) -> str:
    """How a run was split: the degrees above one, and what data-parallel ranks share."""
    if row.tp is None and row.pp is None and row.dp is None:
        return "unstated"
    degrees = [name for name in ("tp", "pp", "cp", "ep") if (getattr(row, name) or 1) > 1]
    if (row.sharding or "").startswith(("fsdp", "zero3")):
        degrees.insert(0, "fsdp")
    elif not degrees:
        degrees = ["dp"] if (row.dp or 1) > 1 else ["one device"]
    return "+".join(degrees)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Which rows got a prediction, and why the others did not."""

    rows: int
    predicted: int
    refusals: Mapping[str, tuple[str, ...]]  # reason -> names of rows

    @property
    def share(self) -> float:
        """Predicted rows of all rows; 1 when there are none."""
        return self.predicted / self.rows if self.rows else 1.0


def coverage(
    rows: Sequence[MeasuredRow], predictions: Sequence[Predicted], *, of_trust: tuple[str, ...] = ("A", "B")
) -> Coverage:
    """Coverage of the rows of the trust named; a row that states no trust belongs to all.

    Parameters
    ----------
    rows, predictions
        One prediction a row, in the same order.
    of_trust
        Which trust counts: A, B, C.
    """
    pairs = zip(rows, predictions, strict=True)
    asked = [(row, p) for row, p in pairs if row.trust in (None, *of_trust)]
    refusals: dict[str, tuple[str, ...]] = {}
    for row, prediction in asked:
        if prediction.step_time_s is None:
            reason = prediction.skipped or "no reason given"
            refusals[reason] = (*refusals.get(reason, ()), row.name)
    refused = sum(map(len, refusals.values()))
    return Coverage(rows=len(asked), predicted=len(asked) - refused, refusals=refusals)
