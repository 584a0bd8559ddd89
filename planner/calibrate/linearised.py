"""Fits coefficients of a curved model as a mixed model in logarithms: Gauss and Newton on `mixed.py`.

What a coefficient moves is said by columns: which logarithms of which rows, by how much. Training and serving bring
their own columns and their own curve. All counts of steps are fixed, so that the result is a smooth function of the
rows and the same on every processor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import field

import numpy as np

from planner.calibrate.mixed import (
    PRIOR_GROUPS,
    Grouping,
    Index,
    Rows,
    Solution,
    Values,
    Variances,
    better_variances,
    solve,
    source_tail_weights,
    tail_weights,
)
from planner.carriers import dataclass

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
