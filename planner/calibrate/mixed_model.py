"""A mixed model: coefficients with Gaussian priors, group offsets, and the variances of offsets and of scatter.

    z = X b + u[first] + v[second] + e

b has a prior precision each; u and v are offsets of nested groups with variances by kind of row; e has a heavy tail
(Student's t with four degrees of freedom), so that single odd rows count ever less. Variances are found by expectation
and maximisation (Dempster, Laird and Rubin 1977; Harville 1977), pulled to a guess that weighs as much as some groups.

Coefficients of a curved model are fitted in logarithms by Gauss and Newton. What a coefficient moves is said by
columns: which logarithms of which rows, by how much. Training and serving bring their own columns and their own curve.
All counts of steps are fixed, so that the result is a smooth function of the rows and the same on every processor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import field

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


TAIL_WIDTH = 1.43  # of a t with four degrees of freedom over a normal of the same scale, squared, at p90
BAND_NORMAL = 1.2815515655446004  # of a normal distribution: p90
NUDGE = 1e-6  # of a logarithm, to differentiate
_MOST_STEP = 1.0  # of a logarithm, in one linearisation

Name = tuple[str, ...]
Curve = Callable[[Values], Values]  # logarithms moved (moves, rows) -> logarithms of what is predicted (rows,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One coefficient: its name, what it moves and by how much, in which rows."""

    name: Name
    moves: tuple[tuple[int, float], ...]
    rows: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What a fit found: coefficients by name, their covariance, and the variances of offsets."""

    coefficients: Mapping[Name, float]
    covariance: Values
    variances: Variances
    sources: Mapping[Hashable, float] = field(default_factory=dict)  # offsets
    deviations: Mapping[str, float] = field(default_factory=dict)  # of groups of coefficients, where estimated

    def value(self, *name: str) -> float:
        """A coefficient; 0 for what no row speaks of."""
        return self.coefficients.get(name, 0.0)

    def deviation_of(self, *names: Name) -> float:
        """Standard deviation of a sum of coefficients, given the rows."""
        order = {name: i for i, name in enumerate(self.coefficients)}
        index = [order[name] for name in names if name in order]
        return float(np.sqrt(self.covariance[np.ix_(index, index)].sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Rows to fit or to predict: a curve, and the coefficients that move along it."""

    columns: Sequence[Column]
    curve: Curve
    moves: int  # logarithms that the curve takes of each row
    rows: int
    deviation: Callable[[Name], float]  # how far a coefficient is expected to go

    def moved(self, found: Values) -> Values:
        """What the coefficients come to, of each logarithm and row."""
        sums = np.zeros((self.moves, self.rows))
        for column, value in zip(self.columns, found, strict=True):
            for which, factor in column.moves:
                sums[which, column.rows] += value * factor
        return sums

    def linearised(self, moved: Values) -> tuple[Values, Values]:
        """What is predicted, and its derivative by each coefficient, (rows, coefficients)."""
        base = self.curve(moved)
        slopes = np.zeros((self.moves, self.rows))
        for i in range(self.moves):
            there = moved.copy()
            there[i] += NUDGE
            slopes[i] = (self.curve(there) - base) / NUDGE
        design = np.zeros((self.rows, len(self.columns)))
        for j, column in enumerate(self.columns):
            for which, factor in column.moves:
                design[column.rows, j] += factor * slopes[which, column.rows]
        return base, design


def fit(
    problem: Problem,
    measured: Values,
    rows: Rows,
    guess: Variances,
    *,
    steps: int,
    inner: int,
    near: Effects | None = None,
    estimated: Collection[str] = (),
    sources: Sequence[Hashable] = (),
    odd_sources: bool = False,
    last: int = 0,
) -> Effects:
    """Coefficients, their covariance and the variances of all offsets.

    Parameters
    ----------
    problem, measured, rows
        The model, logarithms of what was measured, and how rows err together.
    guess
        What variances are pulled to.
    steps, inner
        Linearisations, and steps of the variances at each.
    near
        A fit to begin at, of nearly the same rows: fewer steps come to the same end.
    estimated
        Groups of coefficients (first parts of their names) whose deviation is estimated as well; it is pulled to
        what `problem.deviation` says.
    sources
        Name of each row's source, for its offset.
    odd_sources
        Whether offsets of sources have a heavy tail as the scatter has.
    last
        Steps of the variances after the last linearisation, in place of those at each; 0 = at each.
    """
    groups = [column.name[0] for column in problem.columns]
    known = near.deviations if near is not None else {}
    prior = np.array([problem.deviation(column.name) for column in problem.columns])
    spread = np.array([known.get(group, own) for group, own in zip(groups, prior, strict=True)])
    members = {name: np.flatnonzero([group == name for group in groups]) for name in dict.fromkeys(groups)}
    members = {name: own for name, own in members.items() if name in estimated}
    variances = guess if near is None else near.variances
    found = np.array([near.value(*column.name) if near else 0.0 for column in problem.columns])
    tail, source_tail = np.ones(problem.rows), np.ones(rows.source.count)
    solution: Solution | None = None
    for _ in range(steps):
        base, design = problem.linearised(problem.moved(found))
        target = measured - base + design @ found
        for _ in range(inner):
            solution = solve(design, target, spread**-2.0, rows, variances, tail, source_tail)
            tail = tail_weights(solution.residual, rows, variances)
            if odd_sources:
                source_tail = source_tail_weights(solution, rows, variances)
            if not last:
                variances = better_variances(solution, rows, guess, tail, source_tail)
            for own in members.values():
                total = float((solution.coefficients[own] ** 2 + np.diag(solution.covariance)[own]).sum())
                spread[own] = np.sqrt((PRIOR_GROUPS * prior[own[0]] ** 2 + total) / (PRIOR_GROUPS + len(own)))
        assert solution is not None
        found = found + np.clip(solution.coefficients - found, -_MOST_STEP, _MOST_STEP)
    assert solution is not None
    for _ in range(last):
        solution = solve(design, target, spread**-2.0, rows, variances, tail, source_tail)
        tail = tail_weights(solution.residual, rows, variances)
        if odd_sources:
            source_tail = source_tail_weights(solution, rows, variances)
        variances = better_variances(solution, rows, guess, tail, source_tail)
    return Effects(
        coefficients={column.name: float(value) for column, value in zip(problem.columns, found, strict=True)},
        covariance=solution.covariance,
        variances=variances,
        sources=dict(zip(dict.fromkeys(sources), solution.source.tolist(), strict=False)),
        deviations={name: float(spread[own[0]]) for name, own in members.items()},
    )


def predict(
    problem: Problem, effects: Effects, alias: Callable[[Name, Collection[Name]], Name] = lambda name, _: name
) -> tuple[Values, Values]:
    """Logarithms of what is predicted, and their variance by the coefficients alone.

    Parameters
    ----------
    problem
        Rows; nothing measured is looked at.
    effects
        Of a fit. What it does not know is at its expectation, as uncertain as it is expected to go.
    alias
        The coefficient that stands for one, given those that are known.
    """
    order = {name: i for i, name in enumerate(effects.coefficients)}
    names = [alias(column.name, order) for column in problem.columns]
    found = np.array([effects.coefficients.get(name, 0.0) for name in names])
    base, design = problem.linearised(problem.moved(found))
    known = [j for j, name in enumerate(names) if name in order]
    index = [order[names[j]] for j in known]
    held = design[:, known]
    variance = ((held @ effects.covariance[np.ix_(index, index)]) * held).sum(axis=1)
    for j, column in enumerate(problem.columns):
        if column.name not in order:  # of its own, however near what stands for it
            own = effects.deviations.get(column.name[0], problem.deviation(column.name))
            variance = variance + design[:, j] ** 2 * own**2
    return base, np.asarray(variance)


def grouping(names: Sequence[Hashable], kind: Index) -> Grouping:
    """Offsets by name, numbered as they appear."""
    order = {name: i for i, name in enumerate(dict.fromkeys(names))}
    of_row = np.array([order[name] for name in names], dtype=np.intp)
    kinds = np.zeros(len(order), dtype=np.intp)
    kinds[of_row] = kind
    return Grouping(of_row=of_row, kind=kinds)
