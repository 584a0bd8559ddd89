"""Requests of a trace in buckets: quantiles of the prompts, and within each, quantiles of the answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.traffic.model import INPUT_QUANTILES, OUTPUT_QUANTILES, Array

LEAST_SHARE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Buckets with exact shares and moments."""

    buckets: tuple[str, ...]  # "upper edge of the prompts/upper edge of the answers"
    share: Array
    input_tokens: Array
    output_tokens: Array
    input_second_moment: Array
    output_second_moment: Array


def quantile_grid(input_tokens: Array, output_tokens: Array) -> Grid:
    """At most 20 buckets of at least 0.5 % of the requests each (or one request), with the exact moments of each."""
    rows, row_edges = _binned(input_tokens, INPUT_QUANTILES)
    label = np.zeros(rows.size, dtype=np.int64)
    names: list[str] = []
    for row, edge in enumerate(row_edges):
        inside = np.flatnonzero(rows == row)
        columns, edges = _binned(output_tokens[inside], OUTPUT_QUANTILES)
        label[inside] = len(names) + columns
        names += [f"{edge:.0f}/{upper:.0f}" for upper in edges]
    count = np.bincount(label, minlength=len(names)).astype(float)

    def mean(values: Array) -> Array:
        return np.asarray(np.bincount(label, weights=values, minlength=len(names)) / count)

    return Grid(
        buckets=tuple(names),
        share=count / count.sum(),
        input_tokens=mean(input_tokens),
        output_tokens=mean(output_tokens),
        input_second_moment=mean(input_tokens**2),
        output_second_moment=mean(output_tokens**2),
    )


def _binned(values: Array, quantiles: tuple[float, ...]) -> tuple[NDArray[np.int64], Array]:
    """The bin of each value and the upper edges of the bins, which are values that occur; no bin is empty."""
    edges = np.unique(np.quantile(values, quantiles, method="higher"))
    return np.searchsorted(edges, values, side="left"), edges
