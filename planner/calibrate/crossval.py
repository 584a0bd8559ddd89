"""Predictions of rows that their fit has not seen, with bands: without a source, or without a device.

Everything is fitted again in each fold: constants, effects of parts and stacks, variances. Nothing of what is left out
is seen, and bands are those of a new source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from planner.calibrate.effects import BAND_NORMAL
from planner.calibrate.mixed import Values
from planner.calibrate.training import Point, fit_constants, strangers, vendor_deviation
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.validate.folds import Fold, weights_of
from planner.validate.judgement import LEVEL, Judged, weighted_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Every point with the step time that a fit without it predicts, and how far a new source may be off."""

    points: tuple[Point, ...]
    predicted_s: Values
    spread: Values  # standard deviation of the logarithm, as the model has it
    vendor: Values  # and beyond it, where the family is an heir of another vendor (`vendor_deviation`)

    @property
    def measured_over_predicted(self) -> Values:
        """Ratio of each point."""
        return np.array([point.measured_s for point in self.points]) / self.predicted_s

    @property
    def stretch(self) -> float:
        """What the spread is multiplied with so that bands hold four fifths of these rows.

        What is learnt of other vendors stands beside it: that a band of theirs is wider narrows no other one.
        """
        return weighted_quantile(self._sizes, weights_of(self.points), LEVEL)

    @property
    def _sizes(self) -> Values:
        """Errors in widths of the band that the spread alone makes."""
        return np.asarray(np.abs(np.log(self.measured_over_predicted)) / (BAND_NORMAL * self.spread))

    def stretches(self) -> Values:
        """The same for each row, learnt from the rows of other sources alone; 1 where there are none."""
        sources, sizes, weight = np.array([point.source for point in self.points]), self._sizes, weights_of(self.points)
        found = np.ones(len(sources))
        for source in sorted(set(sources.tolist())):
            rest = sources != source
            if rest.any():
                found[~rest] = weighted_quantile(sizes[rest], weight[rest], LEVEL)
        return found

    def judged(self) -> Judged:
        """Errors and bands, for `planner.validate.judgement`; no source has a say in the width of its own bands."""
        reach = BAND_NORMAL * np.hypot(self.spread * self.stretches(), self.vendor)
        return Judged(
            error=-np.log(self.measured_over_predicted),
            low=-reach,
            high=reach,
            weight=weights_of(self.points),
            cluster=tuple((point.source, point.device) for point in self.points),
            group=tuple(point.group for point in self.points),
        )


def hold_out(
    points: Sequence[Point], folds: Sequence[Fold], catalog: Catalog, tell: Callable[[str], None] = lambda _: None
) -> HeldOut:
    """Predict the rows of every fold by constants fitted without it.

    Parameters
    ----------
    points
        Sorted by family, as `points_of` gives them.
    folds
        Of `planner.validate.folds`; every row is judged in one of them.
    tell
        Called with the name of each fold.
    """
    log_s, spread, vendor = np.full(len(points), np.nan), np.full(len(points), np.nan), np.zeros(len(points))
    families = np.array([point.family for point in points])
    for fold in folds:
        tell(fold.name)
        known = [point for point, out in zip(points, fold.out, strict=True) if not out]
        judged = [point for point, mine in zip(points, fold.judged, strict=True) if mine]
        constants = fit_constants(known, catalog)
        log_s[fold.judged], spread[fold.judged] = constants.predict(judged, catalog)
        if unknown := strangers(judged) - strangers(known):
            vendor[fold.judged & np.isin(families, list(unknown))] = vendor_deviation(known, catalog)
    return HeldOut(points=tuple(points), predicted_s=np.exp(log_s), spread=spread, vendor=vendor)
