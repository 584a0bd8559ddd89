"""The rows that a fit of the analytic training tier may use, the constants found, and predictions of rows not seen.

Those have bands, and are made without a source, or without a device. Everything is fitted again in each fold:
constants, effects of parts and stacks, variances. Nothing of what is left out is seen, and bands are those of a new
source.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from planner.calibrate.mixed_model import Values
from planner.calibrate.training_effects import (
    BAND_NORMAL,
    HEIRS,
    PRIORS,
    SUSTAINED_OF_BEST,
    Effects,
    Labels,
    Sample,
    constants_of,
    fit_effects,
    moved_of,
    predicted,
)
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.estimate.constants import NAMES
from planner.estimate.device_constants import product_ratio, product_share
from planner.validate.judgement import LEVEL, Fold, Judged, beyond_folds, weighted_quantile, weights_of
from planner.validate.measured import configuration, measured_step_time_s
from planner.validate.rows import MeasuredRow
from planner.validate.score import why_left_out
from planner.validate.training import architecture_of, batch_of, device_of, framework_of, refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One row that a fit may use."""

    row: MeasuredRow
    family: str  # of the catalog
    part: str  # device of the catalog
    framework: str
    measured_s: float
    configuration: Hashable

    @property
    def source(self) -> str:
        """Publication of the row."""
        return self.row.source_key or self.row.file

    @property
    def kind(self) -> str:
        """dense | experts | hybrid | tuning."""
        return self.row.kind

    @property
    def kin(self) -> Hashable:
        """Rows among which a source may dominate: of a family and kind."""
        return self.family, self.kind

    @property
    def device(self) -> str:
        """The device as tables name its generation, such as GB200."""
        return self.row.family or self.part

    @property
    def group(self) -> str:
        """What errors are reported by: device, kind and precision."""
        return f"{self.device} {self.kind} {self.row.precision_class or 'unstated'}"

    @property
    def release_and_model(self) -> Hashable:
        """What is left out together where one source has most of a family's rows."""
        return self.row.software_release, self.row.model, self.row.task

    @property
    def offset(self) -> Hashable:
        """Rows that err together: of a source, on a device, at a precision, of a kind."""
        return self.source, self.part, self.row.precision_class, self.kind


def points_of(rows: Sequence[MeasuredRow], catalog: Catalog) -> list[Point]:
    """The rows that may be fitted, sorted by family: trust A and B, shape and time known."""
    found = [_point(row, catalog) for row in rows]
    return sorted((point for point in found if point is not None), key=lambda point: point.family)


def _point(row: MeasuredRow, catalog: Catalog) -> Point | None:
    if why_left_out(row) is not None or refusal(row, catalog) is not None:
        return None
    measured = measured_step_time_s(row)
    device = device_of(row, catalog)
    if measured is None or device is None or not architecture_of(row).layers:
        return None
    return Point(
        row=row,
        family=device.family,
        part=device.id,
        framework=framework_of(row).name,
        measured_s=measured,
        configuration=configuration(row),
    )


def by_family(points: Sequence[Point]) -> list[tuple[str, list[Point]]]:
    """Points of each family, in the order in which families appear; the points must be sorted by family."""
    families = dict.fromkeys(point.family for point in points)
    return [(family, [point for point in points if point.family == family]) for family in families]


def priors(family: str, catalog: Catalog) -> dict[str, float]:
    """Every constant at its expectation; of products, a share of the best one measured on the family's devices."""
    found = {name: prior.value for name, prior in PRIORS.items()}
    shares = [product_share(device) for device in catalog.devices.values() if device.family == family]
    best = max((share for share in shares if share is not None), default=None)
    return found if best is None else found | {"gemm": min(SUSTAINED_OF_BEST * best, PRIORS["gemm"].most - 0.01)}


def sample_of(points: Sequence[Point], catalog: Catalog) -> Sample:
    """Points as arrays, a configuration weighing one."""
    starts = {family: priors(family, catalog) for family in {point.family for point in points}}
    ratios = {point.part: product_ratio(catalog.devices[point.part], point.family, catalog) for point in points}
    return Sample(
        batch=batch_of([point.row for point in points], catalog),
        measured_s=np.array([point.measured_s for point in points]),
        weight=weights_of(points),
        labels=Labels(
            family=[point.family for point in points],
            part=[point.part for point in points],
            stack=[point.framework for point in points],
            size=[point.row.size for point in points],
            release=[point.row.software_release or "" for point in points],
            kind=[point.kind for point in points],
            source=[point.offset for point in points],
            model=[(point.offset, point.row.model) for point in points],
            site=[f"{point.source} {point.part}" for point in points],
        ),
        start={name: np.array([starts[point.family][name] for point in points]) for name in NAMES},
        ratio=np.array([ratios[point.part] for point in points]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """The result of one fit."""

    effects: Effects

    def predict(
        self, points: Sequence[Point], catalog: Catalog, *, family: str = "", another: bool = False
    ) -> tuple[Values, Values]:
        """Logarithm of the step time of each point, and the deviation of a new source from it.

        Parameters
        ----------
        points, catalog
            What ran on which device.
        family
            Bands as if the device were of this family.
        another
            Bands as if nothing were known of the device.
        """
        sample = sample_of(points, catalog)
        labels = replace(sample.labels, site=[_ANOTHER] * len(points))  # a new source, whoever measured
        labels = replace(labels, part=[_ANOTHER] * len(points)) if another else labels
        labels = replace(labels, family=[family] * len(points)) if family else labels
        return predicted(replace(sample, labels=labels), self.effects, HEIRS)

    def of_family(self, family: str, catalog: Catalog) -> dict[str, float]:
        """Constants of a family at its best measured device; without rows, of the one it inherits from."""
        own = family if (family, NAMES[0]) in self.effects.coefficients else HEIRS[family].parent
        start = {name: np.asarray(value) for name, value in priors(own, catalog).items()}
        moved = {name: np.asarray(value) for name, value in moved_of(self.effects, family).items()}
        return {name: float(getattr(constants_of(start, moved), name)) for name in NAMES}

    def work_of(self, family: str) -> float:
        """What a family's software takes over a tuned vendor's; 1 of NVIDIA's and Google's."""
        return float(np.exp(moved_of(self.effects, family)["work"]))

    @property
    def stacks(self) -> dict[str, float]:
        """Factors of stacks on the device's work and on the host's, as `frameworks.fitted_factors` takes them."""
        names = {
            "stack": "{}", "experts": "{}/experts", "host": "{}/host", "dispatch": "dispatch/{}", "hybrid": "hybrid/{}",
        }  # fmt: skip
        found = {
            names[name[0]].format(name[1]): float(np.exp(value))
            for name, value in self.effects.coefficients.items()
            if name[0] in names and name[1]
        }
        return dict(sorted(found.items()))


_ANOTHER = "another"


def fit_constants(points: Sequence[Point], catalog: Catalog) -> Constants:
    """All constants from these points alone."""
    return Constants(effects=fit_effects(sample_of(points, catalog)))


FEWEST = 8  # configurations of a corner, and of what is left to fit without it


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Every point with the step time that a fit without it predicts, and how far a new source may be off."""

    points: tuple[Point, ...]
    predicted_s: Values
    spread: Values  # standard deviation of the logarithm, as the model has it

    @property
    def measured_over_predicted(self) -> Values:
        """Ratio of each point."""
        return np.array([point.measured_s for point in self.points]) / self.predicted_s

    @property
    def stretch(self) -> float:
        """What the spread is multiplied with so that bands hold four fifths of these rows."""
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
        reach = BAND_NORMAL * self.spread * stretches
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
    log_s, spread = np.full(len(points), np.nan), np.full(len(points), np.nan)
    for fold in folds:
        tell(fold.name)
        known = [point for point, out in zip(points, fold.out, strict=True) if not out]
        judged = [point for point, mine in zip(points, fold.judged, strict=True) if mine]
        constants = fit_constants(known, catalog)
        log_s[fold.judged], spread[fold.judged] = constants.predict(judged, catalog)
    return HeldOut(points=tuple(points), predicted_s=np.exp(log_s), spread=spread)
