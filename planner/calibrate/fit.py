"""Minimises the mean of |ln(predicted / measured)| over a few constants, pulled to their priors.

Every source weighs the square root of its rows, so that one long table does not decide alone, and what a whole source
is off counts ever less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.calibrate.priors import FEW_ROWS, PRIORS, PULL, USUAL_ERROR
from planner.carriers import dataclass
from planner.estimate.constants import StepConstants
from planner.validate.training import Batch

Values = NDArray[np.float64]
_WORST = 3.0  # |ln| of a prediction that is no number
_ROUNDS, _EVALUATIONS = 2, 900
_FIRST_STEP = 0.5  # of a spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Rows with their measured step times  [s] and the publication of each."""

    batch: Batch
    measured_s: Values
    sources: tuple[str, ...]

    def ratio(self, constants: StepConstants, overheads: Mapping[str, float]) -> Values:
        """Predicted over measured."""
        return np.asarray(self.batch.predict(constants, overheads).total / self.measured_s)

    def loss(self, constants: StepConstants, overheads: Mapping[str, float]) -> float:
        """Mean over sources of their mean |ln(predicted / measured)|, flattened where a whole source is off."""
        with np.errstate(all="ignore"):
            size = np.abs(np.log(self.ratio(constants, overheads)))
        size = np.where(np.isfinite(size), size, _WORST)
        names, index = np.unique(self.sources, return_inverse=True)
        counts = np.bincount(index, minlength=len(names))
        means = np.bincount(index, weights=size, minlength=len(names)) / counts
        weights = np.sqrt(counts)
        return float(weights @ flattened(means) / weights.sum())


def flattened(mean_error: Values) -> Values:
    """What the mean error of a source counts: all of a small one, ever less of what exceeds `USUAL_ERROR`.

    A source whose rows are all off by a quarter tells of its machines, not of the device.
    """
    return np.asarray(USUAL_ERROR * np.log1p(mean_error / USUAL_ERROR))


def constants_at(offsets: Values, names: Sequence[str], known: Mapping[str, float]) -> StepConstants:
    """Constants of a family: those named moved by `offsets` of their logarithm, the others as `known`."""
    values = dict(known)
    for name, offset in zip(names, offsets, strict=True):
        values[name] = min(known[name] * float(np.exp(offset)), PRIORS[name].most)
    return StepConstants(**values)


def fit(
    sample: Sample, names: Sequence[str], known: Mapping[str, float], overheads: Mapping[str, float]
) -> dict[str, float]:
    """The named constants that lose least, pulled to their `known` values; Nelder and Mead's simplex, twice."""
    from scipy.optimize import minimize

    spread = np.array([PRIORS[name].spread for name in names])
    pull = PULL * (1.0 + FEW_ROWS / len(sample.measured_s))

    def objective(offsets: Values) -> float:
        pulled = pull * float(np.sum((offsets / spread) ** 2))
        return sample.loss(constants_at(offsets, names, known), overheads) + pulled

    best = np.zeros(len(names))
    for _ in range(_ROUNDS):
        simplex = np.vstack([best, best + np.diag(_FIRST_STEP * spread)])
        options = {"maxfev": _EVALUATIONS, "xatol": 2e-3, "fatol": 2e-5, "initial_simplex": simplex}
        best = minimize(objective, best, method="Nelder-Mead", options=options).x
    found = constants_at(best, names, known)
    return {name: float(getattr(found, name)) for name in names}


def curvature(
    sample: Sample, names: Sequence[str], constants: Mapping[str, float], overheads: Mapping[str, float]
) -> dict[str, float]:
    """How much the rows mind each constant: rise of the loss when it moves by one spread of its prior.

    Near 0 the rows say nothing about the constant, and the prior decides.
    """
    base = sample.loss(StepConstants(**constants), overheads)
    rises = {}
    for name in names:
        moved = [constants[name] * float(np.exp(sign * PRIORS[name].spread)) for sign in (-1.0, 1.0)]
        losses = [sample.loss(StepConstants(**{**constants, name: value}), overheads) for value in moved]
        rises[name] = float(np.mean(losses) - base)
    return rises
