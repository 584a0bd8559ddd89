"""A linear mixed model: coefficients with Gaussian priors, group offsets, and the variances of offsets and of scatter.

    z = X b + u[first] + v[second] + e

b has a prior precision each; u and v are offsets of nested groups with variances by kind of row; e has a heavy tail
(Student's t with four degrees of freedom), so that single odd rows count ever less. Variances are found by expectation
and maximisation (Dempster, Laird and Rubin 1977; Harville 1977), pulled to a guess that weighs as much as some groups.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass

Values = NDArray[np.float64]
Index = NDArray[np.intp]
TAIL = 4.0  # degrees of freedom of the scatter
PRIOR_GROUPS, PRIOR_ROWS = 4.0, 10.0  # what the guess of a variance weighs


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Which offset each row has, and of which kind each offset is."""

    of_row: Index
    kind: Index  # by group

    @property
    def count(self) -> int:
        """Groups."""
        return len(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variances:
    """By kind of row: of the offset of a source, of a model within it, and of the scatter  [squared logarithms]."""

    source: Values
    model: Values
    scatter: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The most likely coefficients and offsets at given variances."""

    coefficients: Values
    covariance: Values
    source: Values  # offsets
    source_variance: Values
    model: Values
    model_variance: Values
    residual: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What is observed; `weight` is one over the rows of a configuration."""

    weight: Values
    kind: Index
    source: Grouping
    model: Grouping


def solve(
    design: Values, target: Values, precision: Values, rows: Rows, variances: Variances, tail: Values
) -> Solution:
    """Coefficients and offsets at given variances; `tail` are the weights of the heavy tail.

    Offsets of models are eliminated exactly, those of sources stand beside the coefficients.
    """
    weight = rows.weight * tail / variances.scatter[rows.kind]
    sources = np.zeros((len(target), rows.source.count))
    sources[np.arange(len(target)), rows.source.of_row] = 1.0
    full = np.hstack([design, sources])
    prior = np.concatenate([precision, 1.0 / variances.source[rows.source.kind]])
    weighted = weight[:, None] * full
    order = np.argsort(rows.model.of_row, kind="stable")
    begins = np.searchsorted(rows.model.of_row[order], np.arange(rows.model.count))
    sums = np.add.reduceat(weighted[order], begins, axis=0)
    held = np.bincount(rows.model.of_row, weights=weight, minlength=rows.model.count)
    aims = np.bincount(rows.model.of_row, weights=weight * target, minlength=rows.model.count)
    shrink = 1.0 / (held + 1.0 / variances.model[rows.model.kind])
    normal = full.T @ weighted - sums.T @ (shrink[:, None] * sums)
    normal[np.diag_indices_from(normal)] += prior
    aim = full.T @ (weight * target) - sums.T @ (shrink * aims)
    covariance = np.asarray(np.linalg.inv(normal), dtype=np.float64)
    found = covariance @ aim
    model = shrink * (aims - sums @ found)
    spread = ((sums @ covariance) * sums).sum(axis=1)
    count = design.shape[1]
    fitted = full @ found + model[rows.model.of_row]
    return Solution(
        coefficients=found[:count],
        covariance=covariance[:count, :count],
        source=found[count:],
        source_variance=np.diag(covariance)[count:],
        model=model,
        model_variance=shrink + shrink**2 * spread,
        residual=target - fitted,
    )


def tail_weights(residual: Values, rows: Rows, variances: Variances) -> Values:
    """What a row counts by the size of its residual: 5/4 at none, ever less beyond one deviation."""
    size = rows.weight * residual**2 / variances.scatter[rows.kind]
    return np.asarray((TAIL + 1.0) / (TAIL + size))


def better_variances(found: Solution, rows: Rows, guess: Variances, tail: Values) -> Variances:
    """One step of expectation and maximisation; `guess` is what the variances are pulled to."""
    kinds = len(guess.scatter)

    def of_groups(offset: Values, variance: Values, grouping: Grouping, prior: Values) -> Values:
        total = np.bincount(grouping.kind, weights=offset**2 + variance, minlength=kinds)
        counts = np.bincount(grouping.kind, minlength=kinds)
        return np.asarray((PRIOR_GROUPS * prior + total) / (PRIOR_GROUPS + counts))

    error = np.bincount(rows.kind, weights=rows.weight * tail * found.residual**2, minlength=kinds)
    freedom = np.bincount(rows.kind, weights=rows.weight, minlength=kinds)
    used = np.bincount(rows.model.kind, minlength=kinds)  # an offset each takes some of the scatter with it
    rest = np.maximum(freedom - 0.5 * used, 0.5 * freedom)
    return Variances(
        source=of_groups(found.source, found.source_variance, rows.source, guess.source),
        model=of_groups(found.model, found.model_variance, rows.model, guess.model),
        scatter=np.asarray((PRIOR_ROWS * guess.scatter + error) / (PRIOR_ROWS + rest)),
    )
