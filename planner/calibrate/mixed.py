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
    design: Values,
    target: Values,
    precision: Values,
    rows: Rows,
    variances: Variances,
    tail: Values,
    source_tail: Values | float = 1.0,
) -> Solution:
    """Coefficients and offsets at given variances.

    Offsets are eliminated exactly, those of models first and then those of sources: a model lies in one source.

    Parameters
    ----------
    design
        X: derivative of each row by each coefficient, (rows, coefficients).
    target
        z, logarithms, (rows,).
    precision
        Of each coefficient's prior: one over its squared deviation, (coefficients,).
    rows
        Weight, kind and groups of each row.
    variances
        Of offsets and scatter, by kind.
    tail
        Weights of the heavy tail, as `tail_weights` gives them, (rows,).
    source_tail
        The same of sources, as `source_tail_weights` gives them, (sources,); 1 where their offsets are normal.
    """
    weight = rows.weight * tail / variances.scatter[rows.kind]
    weighted = weight[:, None] * design
    source_of = np.zeros(rows.model.count, dtype=np.intp)
    source_of[rows.model.of_row] = rows.source.of_row
    sums = _summed(weighted, rows.model.of_row, rows.model.count)
    held = np.bincount(rows.model.of_row, weights=weight, minlength=rows.model.count)
    aims = np.bincount(rows.model.of_row, weights=weight * target, minlength=rows.model.count)
    shrink = 1.0 / (held + 1.0 / variances.model[rows.model.kind])
    left = 1.0 - shrink * held
    across = _summed(left[:, None] * sums, source_of, rows.source.count)
    seen = np.asarray(
        np.bincount(source_of, weights=left * held, minlength=rows.source.count)
        + source_tail / variances.source[rows.source.kind],
        dtype=np.float64,
    )
    aim_of_source = np.bincount(source_of, weights=left * aims, minlength=rows.source.count)
    normal = design.T @ weighted - sums.T @ (shrink[:, None] * sums) - across.T @ (across / seen[:, None])
    normal[np.diag_indices_from(normal)] += precision
    aim = design.T @ (weight * target) - sums.T @ (shrink * aims) - across.T @ (aim_of_source / seen)
    covariance = np.asarray(np.linalg.inv(normal), dtype=np.float64)
    found = covariance @ aim
    source = (aim_of_source - across @ found) / seen
    model = shrink * (aims - held * source[source_of] - sums @ found)
    moved = across / seen[:, None]
    beside = sums - held[:, None] * moved[source_of]
    spread = held**2 / seen[source_of] + ((beside @ covariance) * beside).sum(axis=1)
    fitted = design @ found + source[rows.source.of_row] + model[rows.model.of_row]
    return Solution(
        coefficients=found,
        covariance=covariance,
        source=source,
        source_variance=1.0 / seen + ((moved @ covariance) * moved).sum(axis=1),
        model=model,
        model_variance=shrink + shrink**2 * spread,
        residual=target - fitted,
    )


def _summed(values: Values, group: Index, count: int) -> Values:
    """Sums of rows by group, each of which has at least one."""
    order = np.argsort(group, kind="stable")
    return np.asarray(np.add.reduceat(values[order], np.searchsorted(group[order], np.arange(count)), axis=0))


def tail_weights(residual: Values, rows: Rows, variances: Variances) -> Values:
    """What a row counts by the size of its residual: 5/4 at none, ever less beyond one deviation.

    Parameters
    ----------
    residual
        What coefficients and offsets leave of each row's logarithm, (rows,).
    rows
        Weight, kind and groups of each row.
    variances
        Of offsets and scatter, by kind.
    """
    return _heavy(rows.weight * residual**2 / variances.scatter[rows.kind])


def source_tail_weights(found: Solution, rows: Rows, variances: Variances) -> Values:
    """The same of the offsets of sources, where these have a heavy tail too.

    Parameters
    ----------
    found
        Offsets of sources and how uncertain they are.
    rows
        Weight, kind and groups of each row.
    variances
        Of offsets and scatter, by kind.
    """
    return _heavy((found.source**2 + found.source_variance) / variances.source[rows.source.kind])


def _heavy(size: Values) -> Values:
    """Weights of a Student's t at squared deviations."""
    return np.asarray((TAIL + 1.0) / (TAIL + size))


def better_variances(
    found: Solution, rows: Rows, guess: Variances, tail: Values, source_tail: Values | float = 1.0
) -> Variances:
    """One step of expectation and maximisation.

    Parameters
    ----------
    found
        Offsets and residuals at the variances so far.
    rows
        Weight, kind and groups of each row.
    guess
        What the variances are pulled to.
    tail
        Weights of the heavy tail, as `tail_weights` gives them, (rows,).
    source_tail
        The same of sources, as `source_tail_weights` gives them, (sources,); 1 where their offsets are normal.
    """
    kinds = len(guess.scatter)

    def of_groups(moments: Values, grouping: Grouping, prior: Values) -> Values:
        total = np.bincount(grouping.kind, weights=moments, minlength=kinds)
        counts = np.bincount(grouping.kind, minlength=kinds)
        return np.asarray((PRIOR_GROUPS * prior + total) / (PRIOR_GROUPS + counts))

    error = np.bincount(rows.kind, weights=rows.weight * tail * found.residual**2, minlength=kinds)
    freedom = np.bincount(rows.kind, weights=rows.weight, minlength=kinds)
    used = np.bincount(rows.model.kind, minlength=kinds)  # an offset each takes some of the scatter with it
    rest = np.maximum(freedom - 0.5 * used, 0.5 * freedom)
    return Variances(
        source=of_groups(source_tail * (found.source**2 + found.source_variance), rows.source, guess.source),
        model=of_groups(found.model**2 + found.model_variance, rows.model, guess.model),
        scatter=np.asarray((PRIOR_ROWS * guess.scatter + error) / (PRIOR_ROWS + rest)),
    )
