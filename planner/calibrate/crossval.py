"""Predictions of rows that their fit has not seen, with bands: without a source, or without a device.

Everything is fitted again in each fold: constants, effects of parts and stacks, variances. Nothing of what is left out
is seen, and bands are those of a new source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from planner.calibrate.mixed_model import Values
from planner.calibrate.training import Point, fit_constants, strangers, vendor_deviation
from planner.calibrate.training_effects import BAND_NORMAL
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.validate.judgement import LEVEL, Fold, Judged, beyond_folds, weighted_quantile, weights_of

FEWEST = 8  # configurations of a corner, and of what is left to fit without it


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
        return self.stretched(self.stretches())

    def stretched(self, stretches: Values) -> Judged:
        """The same with spreads that are multiplied with what other predictions of these rows say."""
        reach = BAND_NORMAL * np.hypot(self.spread * stretches, self.vendor)
        return Judged(
            error=-np.log(self.measured_over_predicted),
            low=-reach,
            high=reach,
            weight=weights_of(self.points),
            cluster=tuple((point.source, point.device) for point in self.points),
            group=tuple(point.group for point in self.points),
        )


class Corner(NamedTuple):
    """Rows that lie beyond others in one size."""

    name: str  # as `Catalog.training_beyond` names it
    title: str
    holds: Callable[[Point], bool]


CORNERS = (
    Corner("devices above", "more than 256 devices", lambda point: (point.row.n_accel or 1) > 256),
    Corner("devices below", "fewer than 8 devices", lambda point: (point.row.n_accel or 1) < 8),
    Corner("parameters above", "dense models above 30B parameters", lambda point: _dense_b(point, 7.0) > 30.0),
    Corner("parameters below", "dense models below 2B parameters", lambda point: _dense_b(point, 7.0) < 2.0),
    Corner("sequence_length above", "sequences above 8,192 tokens", lambda point: (point.row.seq_len or 0) > 8192),
    Corner("pp above", "more than 8 pipeline stages", lambda point: (point.row.pp or 1) > 8),
    Corner("cp above", "context over several ranks", lambda point: (point.row.cp or 1) > 1),
    Corner("ep above", "experts over more than 8 ranks", lambda point: (point.row.ep or 1) > 8),
)


def _dense_b(point: Point, other: float) -> float:
    """Parameters of a dense model; another figure of other models, or where they are not stated.  [1e9]"""
    return (point.row.n_params_b or other) if point.kind == "dense" else other


def beyond(
    known: HeldOut, catalog: Catalog, tell: Callable[[str], None] = lambda _: None
) -> dict[str, tuple[Judged, Judged]]:
    """Rows of each corner as their folds predict them, and as a fit does that has seen no such row of anybody.

    Corners with fewer than `FEWEST` configurations, or of one source, say nothing, nor those that leave nothing to fit.

    Parameters
    ----------
    known
        Every row, predicted without its source.
    catalog
        Devices of the rows.
    tell
        Called with the name of each fold.

    Returns
    -------
    By name of the corner; bands are as wide as the folds of sources make them.
    """
    stretches, weight, found = known.stretches(), weights_of(known.points), {}
    for corner in CORNERS:
        which = np.array([corner.holds(point) for point in known.points])
        folds = beyond_folds(known.points, which)
        left = min((float(weight[~fold.out].sum()) for fold in folds), default=0.0)
        if len(folds) < 2 or min(left, float(weight[which].sum())) < FEWEST:
            continue
        tell(corner.title)
        unseen = hold_out(known.points, folds, catalog)
        found[corner.name] = known.stretched(stretches).chosen(which), unseen.stretched(stretches).chosen(which)
    return found


def power_beyond(seen: Judged, unseen: Judged) -> float:
    """By which power a band is wider outside of what rows cover: ends of four fifths of the errors over each other."""
    inside, outside = (weighted_quantile(np.abs(one.error), one.weight, LEVEL) for one in (seen, unseen))
    return max(1.0, outside / inside)


def hold_out(
    points: Sequence[Point], folds: Sequence[Fold], catalog: Catalog, tell: Callable[[str], None] = lambda _: None
) -> HeldOut:
    """Predict the rows of every fold by constants fitted without it.

    Parameters
    ----------
    points
        Sorted by family, as `points_of` gives them.
    folds
        Of `planner.validate.judgement`; rows that none of them judges have no prediction.
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
