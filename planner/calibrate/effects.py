"""Fits the constants of the step model as a mixed model in the logarithm of time.

A constant is that of all devices, moved by its family; a part (B200, GB200 ...) and a stack each work by a factor of
their own on the device's work; a source on a device at a precision has an offset, and each model in it another. What
moves how far is said by priors (`priors.py`); the sizes of the offsets are estimated (`mixed.py`).

The step model is linearised at the constants found so far (Gauss and Newton); all counts of steps are fixed, so that
the result is a smooth function of the rows and the same on every processor.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from planner.calibrate import priors as known
from planner.calibrate.mixed import (
    Grouping,
    Index,
    Rows,
    Solution,
    Values,
    Variances,
    better_variances,
    solve,
    tail_weights,
)
from planner.carriers import dataclass
from planner.estimate.constants import NAMES, StepConstants
from planner.validate.training import Batch

KINDS = ("dense", "experts", "hybrid", "tuning")
STEPS = 7  # linearisations
INNER = 4  # of the variances at each
TAIL_WIDTH = 1.43  # of a t with four degrees of freedom over a normal of the same scale, squared, at p90
_NUDGE = 1e-6  # of a logarithm, to differentiate
_MOST_STEP = 1.0  # of a logarithm, in one linearisation


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Of each row: what its effects are named after."""

    family: Sequence[str]
    part: Sequence[str]
    stack: Sequence[str]
    release: Sequence[str]
    size: Sequence[str]  # parameters, and those of a token
    kind: Sequence[str]
    source: Sequence[Hashable]  # source, device, precision, kind
    model: Sequence[Hashable]  # the same, and the model


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What a fit found: coefficients by name, their covariance, and the variances of offsets."""

    coefficients: Mapping[tuple[str, ...], float]
    covariance: Values
    variances: Variances
    sources: Mapping[Hashable, float] = field(default_factory=dict)  # offsets

    def value(self, *name: str) -> float:
        """A coefficient; 0 for what no row speaks of."""
        return self.coefficients.get(name, 0.0)

    def deviation_of(self, *names: tuple[str, ...]) -> float:
        """Standard deviation of a sum of coefficients, given the rows."""
        order = {name: i for i, name in enumerate(self.coefficients)}
        index = [order[name] for name in names if name in order]
        return float(np.sqrt(self.covariance[np.ix_(index, index)].sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Rows as arrays, with what was measured."""

    batch: Batch
    measured_s: Values
    weight: Values
    labels: Labels
    start: Mapping[str, Values]  # expectation of each constant of each row, before any row is seen
    ratio: Values  # large products of the part over its family's best, as measured or by power

    def __len__(self) -> int:
        """Rows."""
        return len(self.measured_s)


def constants_of(start: Mapping[str, Values], moved: Mapping[str, Values]) -> StepConstants:
    """Constants at their expectation moved by a logarithm each; those with a largest value near it ever less."""
    values = {}
    for name in NAMES:
        most, first = known.PRIORS[name].most, np.asarray(start[name], dtype=np.float64)
        if np.isinf(most):
            values[name] = first * np.exp(moved[name])
        else:
            room = first / (most - first) * np.exp(moved[name] / (1.0 - first / most))
            values[name] = most * room / (1.0 + room)
    return StepConstants(**values)


def log_time(sample: Sample, moved: Mapping[str, Values], overhead: Values) -> Values:
    """Logarithm of the predicted step times."""
    constants = constants_of(sample.start, moved)
    total = sample.batch.predict(replace(constants, gemm=constants.gemm * sample.ratio), np.exp(overhead)).total
    return np.asarray(np.log(np.asarray(total, dtype=np.float64)))


def columns_of(labels: Labels) -> list[tuple[tuple[str, ...], int, Index]]:
    """Name, derivative that it multiplies (the last: of the overhead), and rows of every coefficient."""
    rows = np.arange(len(labels.family))
    families, parts, stacks = (np.array(part) for part in (labels.family, labels.part, labels.stack))
    releases, kinds = np.array(labels.release), np.array(labels.kind)
    experts, hybrid = np.isin(kinds, ("experts", "hybrid")), kinds == "hybrid"
    found: list[tuple[tuple[str, ...], int, Index]] = []
    for i, name in enumerate(NAMES):
        found.append((("all", name), i, rows))
        found += [((family, name), i, rows[families == family]) for family in sorted(set(families.tolist()))]
    work = len(NAMES)
    found += [(("part", part), work, rows[parts == part]) for part in sorted(set(parts.tolist()))]
    found += [(("stack", stack), work, rows[stacks == stack]) for stack in sorted(set(stacks.tolist()))]
    host, expert_host = NAMES.index("host_s"), NAMES.index("expert_host_s")
    found += [(("host", stack), host, rows[stacks == stack]) for stack in sorted(set(stacks.tolist()))]
    for group, names, which in (
        ("experts", stacks, work),
        ("expert_part", parts, work),
        ("dispatch", releases, expert_host),
    ):
        for name in sorted(set(names[experts].tolist())):
            found.append(((group, name), which, rows[(names == name) & experts]))
    if hybrid.any():
        found.append((("hybrid", "all"), work, rows[hybrid]))
    sizes = np.array(labels.size)
    found += [(("hybrid", size), work, rows[hybrid & (sizes == size)]) for size in sorted(set(sizes[hybrid].tolist()))]
    return found


def deviation(name: tuple[str, ...]) -> float:
    """How far a coefficient is expected to go: a standard deviation of a logarithm."""
    if name[0] in known.EFFECTS:
        return known.EFFECTS[name[0]]
    share = known.SHARED if name[0] == "all" else 1.0 - known.SHARED
    return float(known.PRIORS[name[1]].spread * np.sqrt(share))


def fit_effects(sample: Sample, near: Effects | None = None, steps: int | None = None) -> Effects:
    """Coefficients, their covariance and the variances of all offsets.

    `near` is a fit to begin at, of nearly the same rows: fewer `steps` come to the same end.
    """
    labels, count = sample.labels, len(sample)
    columns = columns_of(labels)
    precision = np.array([deviation(name) ** -2.0 for name, *_ in columns])
    rows = _rows(sample)
    guess = _guess()
    variances = guess if near is None else near.variances
    found = np.array([near.value(*name) if near else 0.0 for name, *_ in columns])
    tail = np.ones(count)
    solution: Solution | None = None
    for _ in range(STEPS if steps is None else steps):
        moved, overhead = _effect(columns, found, count)
        base, slopes = _linearised(sample, moved, overhead)
        design = _design(columns, slopes)
        target = np.log(sample.measured_s) - base + design @ found
        for _ in range(INNER):
            solution = solve(design, target, precision, rows, variances, tail)
            tail = tail_weights(solution.residual, rows, variances)
            variances = better_variances(solution, rows, guess, tail)
        assert solution is not None
        found = found + np.clip(solution.coefficients - found, -_MOST_STEP, _MOST_STEP)
    assert solution is not None
    names = list(dict.fromkeys(labels.source))
    return Effects(
        coefficients={name: float(value) for (name, *_), value in zip(columns, found, strict=True)},
        covariance=solution.covariance,
        variances=variances,
        sources=dict(zip(names, solution.source.tolist(), strict=True)),
    )


def _guess() -> Variances:
    return Variances(
        source=np.array([known.SOURCE_OFFSET[kind] ** 2 for kind in KINDS]),
        model=np.array([known.MODEL_OFFSET[kind] ** 2 for kind in KINDS]),
        scatter=np.array([known.SCATTER[kind] ** 2 for kind in KINDS]),
    )


def _rows(sample: Sample) -> Rows:
    labels = sample.labels
    kind = np.array([KINDS.index(name) for name in labels.kind], dtype=np.intp)
    return Rows(
        weight=sample.weight,
        kind=kind,
        source=_grouping(labels.source, kind),
        model=_grouping(labels.model, kind),
    )


def _grouping(names: Sequence[Hashable], kind: Index) -> Grouping:
    order = {name: i for i, name in enumerate(dict.fromkeys(names))}
    of_row = np.array([order[name] for name in names], dtype=np.intp)
    kinds = np.zeros(len(order), dtype=np.intp)
    kinds[of_row] = kind
    return Grouping(of_row=of_row, kind=kinds)


def _effect(
    columns: Sequence[tuple[tuple[str, ...], int, Index]], found: Values, count: int
) -> tuple[dict[str, Values], Values]:
    sums = np.zeros((len(NAMES) + 1, count))
    for (_, which, rows), value in zip(columns, found, strict=True):
        sums[which, rows] += value
    return dict(zip(NAMES, sums[:-1], strict=True)), sums[-1]


def _linearised(sample: Sample, moved: Mapping[str, Values], overhead: Values) -> tuple[Values, Values]:
    base = log_time(sample, moved, overhead)
    slopes = np.zeros((len(NAMES) + 1, len(base)))
    for i, name in enumerate(NAMES):
        slopes[i] = (log_time(sample, {**moved, name: moved[name] + _NUDGE}, overhead) - base) / _NUDGE
    slopes[-1] = (log_time(sample, moved, overhead + _NUDGE) - base) / _NUDGE
    return base, slopes


def _design(columns: Sequence[tuple[tuple[str, ...], int, Index]], slopes: Values) -> Values:
    design = np.zeros((slopes.shape[1], len(columns)))
    for j, (_, which, rows) in enumerate(columns):
        design[rows, j] = slopes[which, rows]
    return design


def predicted(sample: Sample, effects: Effects, parents: Mapping[str, tuple[str, str, float]]) -> tuple[Values, Values]:
    """Logarithm of predicted step times, and the standard deviation of what a new source would measure.

    Parameters
    ----------
    sample
        Rows; what was measured of them is not looked at.
    effects
        Of a fit. What it does not know (a family, a part, a stack) is at its expectation, as uncertain as its prior.
    parents
        The family from which a family without rows takes its constants, why, and how much further it may be off.
    """
    columns = columns_of(sample.labels)
    order = {name: i for i, name in enumerate(effects.coefficients)}
    names = [_known(name, order, parents) for name, *_ in columns]
    found = np.array([effects.coefficients.get(name, 0.0) for name in names])
    moved, overhead = _effect(columns, found, len(sample))
    base, slopes = _linearised(sample, moved, overhead)
    design = _design(columns, slopes)
    known_columns = [j for j, name in enumerate(names) if name in order]
    index = [order[names[j]] for j in known_columns]
    held = design[:, known_columns]
    variance = ((held @ effects.covariance[np.ix_(index, index)]) * held).sum(axis=1)
    for j, (name, *_) in enumerate(columns):
        if name not in order:  # of its own, however near its parent
            variance = variance + design[:, j] ** 2 * deviation(name) ** 2
    further = {name: own for name, (_, _, own) in parents.items() if (name, NAMES[0]) not in order}
    variance = variance + np.array([further.get(family, 0.0) ** 2 for family in sample.labels.family])
    kinds = np.array([KINDS.index(kind) for kind in sample.labels.kind], dtype=np.intp)
    offsets = effects.variances
    variance = variance + offsets.source[kinds] + offsets.model[kinds] + TAIL_WIDTH * offsets.scatter[kinds]
    return base, np.asarray(np.sqrt(variance))


def _known(
    name: tuple[str, ...], order: Mapping[tuple[str, ...], int], parents: Mapping[str, tuple[str, str, float]]
) -> tuple[str, ...]:
    """The coefficient that stands for one: itself, or its parent family's where the fit has none."""
    parent = (parents[name[0]][0] if name[0] in parents else name[0], *name[1:])
    return parent if name not in order and parent in order else name


BAND_NORMAL = 1.2815515655446004  # of a normal distribution: p90
