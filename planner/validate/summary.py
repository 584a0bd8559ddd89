"""Errors of a group of rows in a few figures, whatever kind of rows they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from planner.carriers import dataclass
from planner.validate.measured import noise_of

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
