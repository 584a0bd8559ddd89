"""Predictions of rows that their fit has not seen: without their source, or without their model.

A row whose kind (device family, with or without experts) has several sources is predicted by
constants fitted without its source; in a kind of one source, without its model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.calibrate.fit import Values
from planner.calibrate.training import SHARED_STACKS, Constants, Point, fit_constants
from planner.carriers import dataclass
from planner.catalog.model import Catalog

Kind = tuple[str, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Every point with the step time that a fit without it predicts  [s]."""

    points: tuple[Point, ...]
    predicted_s: Values

    @property
    def measured_over_predicted(self) -> Values:
        """What the error bands are quantiles of."""
        return np.array([point.measured_s for point in self.points]) / self.predicted_s


def hold_out(points: Sequence[Point], whole: Constants, catalog: Catalog, tell: Callable[[str], None]) -> HeldOut:
    """Predict every point by constants that have not seen its source, or its model.

    Parameters
    ----------
    points
        Sorted by family, as `points_of` gives them.
    whole
        Constants of all points: what a fold does not touch stays as there.
    tell
        Called with the name of each fold.
    """
    single = _single_source_kinds(points)
    folds: dict[tuple[object, ...], list[int]] = {}
    for i, point in enumerate(points):
        alone = _kind(point) in single
        folds.setdefault((point.family, *point.model) if alone else ("source", point.source), []).append(i)
    predicted = np.zeros(len(points))
    for name, members in folds.items():
        tell(" ".join(str(part) for part in name if part))
        out = [points[i] for i in members]
        constants = _without(points, out, whole, catalog, by_model=name[0] != "source")
        predicted[members] = constants.predict(out, catalog)  # sorted by family, as `out` is
    return HeldOut(points=tuple(points), predicted_s=predicted)


def _kind(point: Point) -> Kind:
    return point.family, point.row.is_moe


def _single_source_kinds(points: Sequence[Point]) -> set[Kind]:
    sources: dict[Kind, set[str]] = {}
    for point in points:
        sources.setdefault(_kind(point), set()).add(point.source)
    return {kind for kind, found in sources.items() if len(found) == 1}


def _without(
    points: Sequence[Point], out: Sequence[Point], whole: Constants, catalog: Catalog, *, by_model: bool
) -> Constants:
    """Constants of the families concerned, fitted without the source or the model of `out`."""
    source, model, family = out[0].source, out[0].model, out[0].family
    if by_model:
        rest = [p for p in points if p.family == family and p.model != model]
        found = fit_constants(rest, catalog, whole.overheads)
    else:
        touched = {p.family for p in out}
        shared = any(p.framework in SHARED_STACKS for p in out)
        rest = [p for p in points if p.source != source and (shared or p.family in touched)]
        found = fit_constants(rest, catalog, None if shared else whole.overheads)
    untouched: Mapping[str, Mapping[str, float]] = {f: c for f, c in whole.families.items() if f != family}
    if by_model:
        return replace(found, families={**untouched, **found.families})
    return replace(found, families={**_others(points, source, whole), **found.families})


def _others(points: Sequence[Point], source: str, whole: Constants) -> dict[str, Mapping[str, float]]:
    """Families in which the source has no row; one that loses all its rows goes back to its priors."""
    seen = {p.family for p in points if p.source == source}
    return {family: own for family, own in whole.families.items() if family not in seen}
