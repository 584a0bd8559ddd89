"""Minimises the weighted mean of |ln(predicted / measured)| over a few constants, pulled to their priors.

Every source weighs the square root of its rows, so that one long table does not decide alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.calibrate.priors import FEW_ROWS, PRIORS, PULL
from planner.estimate.constants import StepConstants
from planner.validate.training import Batch

Values = NDArray[np.float64]
_WORST = 3.0  # |ln| of a prediction that is no number
_ROUNDS, _EVALUATIONS = 2, 900
_FIRST_STEP = 0.5  # of a spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Rows with their measured step times  [s], and what they weigh; weights add up to 1."""

    batch: Batch
    measured_s: Values
    weights: Values

    def ratio(self, constants: StepConstants, overheads: Mapping[str, float]) -> Values:
        """Predicted over measured."""
        return np.asarray(self.batch.predict(constants, overheads).total / self.measured_s)

    def loss(self, constants: StepConstants, overheads: Mapping[str, float]) -> float:
        """Weighted mean of |ln(predicted / measured)|."""
        with np.errstate(all="ignore"):
            size = np.abs(np.log(self.ratio(constants, overheads)))
        return float(self.weights @ np.where(np.isfinite(size), size, _WORST))


def source_weights(sources: Sequence[str]) -> Values:
    """One row of a source with n rows weighs 1 / sqrt(n); normalised."""
    counts = {source: sources.count(source) for source in set(sources)}
    weights = np.array([counts[source] ** -0.5 for source in sources])
    return np.asarray(weights / weights.sum())


def constants_at(offsets: Values, names: Sequence[str], fixed: Mapping[str, float]) -> StepConstants:
    """Constants whose logarithms lie `offsets` beside their priors; the others as given, else at their priors."""
    values = {name: prior.value for name, prior in PRIORS.items()} | dict(fixed)
    for name, offset in zip(names, offsets, strict=True):
        values[name] = min(PRIORS[name].value * float(np.exp(offset)), PRIORS[name].most)
    return StepConstants(**values)


def fit(
    sample: Sample, names: Sequence[str], fixed: Mapping[str, float], overheads: Mapping[str, float]
) -> dict[str, float]:
    """The named constants that lose least; deterministic (Nelder and Mead's simplex, twice)."""
    from scipy.optimize import minimize

    spread = np.array([PRIORS[name].spread for name in names])
    pull = PULL * (1.0 + FEW_ROWS / len(sample.measured_s))

    def objective(offsets: Values) -> float:
        pulled = pull * float(np.sum((offsets / spread) ** 2))
        return sample.loss(constants_at(offsets, names, fixed), overheads) + pulled

    best = np.zeros(len(names))
    for _ in range(_ROUNDS):
        simplex = np.vstack([best, best + np.diag(_FIRST_STEP * spread)])
        options = {"maxfev": _EVALUATIONS, "xatol": 2e-3, "fatol": 2e-5, "initial_simplex": simplex}
        best = minimize(objective, best, method="Nelder-Mead", options=options).x
    found = constants_at(best, names, fixed)
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
