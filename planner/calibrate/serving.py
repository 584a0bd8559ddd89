"""Calibrates serving: fits all rows, then again without some campaigns or devices, and judges what it has not seen.

A campaign is a publication, a release of an engine, and a model. Everything is fitted again in each fold: constants,
factors, variances. The scores that make a band of a deviation are those of the other folds.

What a fit says is written as the catalog reads it, `calibration/serving.yaml`. Factors of each level are the
exponentials of its coefficients. What rows leave open is told level by level, in two senses (all work; the time to a
first token), as the deviation of a figure's logarithm: plans add up the levels that they use, with that of an unknown
name where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.calibrate.mixed_model import BAND_NORMAL, TAIL_WIDTH, Effects, Index, Values
from planner.calibrate.serving_fit import (
    DISAGGREGATED,
    GROUPS,
    KINDS,
    NAMES,
    OFFSETS,
    SERVING_PRIORS,
    UNFITTED,
    WAYS_OF_A_CAMPAIGN,
    Sample,
    deviation,
    fit_serving,
    fitted_to,
    problem_of,
)
from planner.carriers import dataclass
from planner.catalog.fitted_constants import LEVELS, SERVING_SCHEMA, identity
from planner.catalog.model import Catalog, Provenance, ServingCalibration, ServingSpread, ServingTrait
from planner.errors import InputError
from planner.validate.judgement import Judged, joint_folds, weighted_quantile, weights_of
from planner.validate.serving import batch_of, calibrated_entries, layout_kind_of, side_by_side
from planner.validate.serving_entries import entries_of
from planner.validate.serving_points import Point, points_of
from planner.validate.serving_rows import ServingRow

_SENSES: Mapping[str, tuple[str, ...]] = {"work": ("tpot", "throughput", "served", "static"), "first": ("ttft",)}
_NORMAL_SCORES = (-BAND_NORMAL, 0.0, BAND_NORMAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted:
    """A fit beside the design of its own rows."""

    sample: Sample
    effects: Effects
    design: Values  # (rows, coefficients)
    names: Sequence[tuple[str, ...]]

    def groups_of(self, level: str) -> list[str]:
        return [group for group in GROUPS if group.split()[0] == level]

    def columns(self, level: str, name: str) -> Index:
        groups = self.groups_of(level)
        return _index(j for j, own in enumerate(self.names) if own[0] in groups and own[1] == name)

    def of_sense(self, sense: str) -> NDArray[np.bool_]:
        kinds = np.array([kind.split()[0] for kind in self.sample.labels.kind])
        return np.isin(kinds, _SENSES[sense])

    def left_open(self, level: str, name: str, sense: str) -> float:
        """Deviation that the rows leave of a name's effect, as its own rows feel it; as all do where it has none."""
        columns = self.columns(level, name)
        mine = self.of_sense(sense)
        own = mine & (np.array(getattr(self.sample.labels, level)) == name)
        held = self.design[np.ix_(np.flatnonzero(own if own.any() else mine), columns)]
        if not own.any():  # what every row would feel of the first of them, its work
            held = np.where(np.arange(len(columns)) == 0, 1.0, 0.0)[None, :]
        covariance = self.effects.covariance[np.ix_(columns, columns)]
        return float(np.sqrt(np.mean(((held @ covariance) * held).sum(axis=1))))

    def unknown(self, level: str, sense: str) -> float:
        """The same of a name that no row speaks of: it may go as far as such names do."""
        rows, total = np.flatnonzero(self.of_sense(sense)), 0.0
        for group in self.groups_of(level):
            own = self.effects.deviations.get(group, GROUPS[group][1])
            felt = np.zeros(len(self.sample))
            for j, name in enumerate(self.names):
                if name[0] == group:
                    felt += self.design[:, j] ** 2
            some = felt[rows][felt[rows] > 0]
            total += own**2 * (float(np.mean(some)) if len(some) else 1.0)
        return float(np.sqrt(total))


def _index(found: Iterable[int]) -> Index:
    return np.array(list(found), dtype=np.intp)


Three = tuple[float, float, float]


def calibration_of(
    sample: Sample,
    effects: Effects,
    *,
    source: str,
    as_of: str,
    scores: Mapping[str, Three] | None = None,
    errors: Mapping[str, Three] | None = None,
) -> ServingCalibration:
    """A fit as the catalog keeps it.

    Parameters
    ----------
    sample, effects
        The figures that were fitted, and what was found.
    source, as_of
        Where the rows are from.
    scores
        p10, p50 and p90 of campaigns left out, in deviations, by kind of figure; those of a normal without.
    errors
        Median, mean and p90 of |ln| of campaigns left out, by kind with its tail.
    """
    problem = problem_of(sample)
    found = np.array([effects.coefficients[column.name] for column in problem.columns])
    _, design = problem.linearised(problem.moved(found))
    fitted = _Fitted(sample=sample, effects=effects, design=design, names=[c.name for c in problem.columns])
    common = {name: prior.value * float(np.exp(effects.value("all", name))) for name, prior in SERVING_PRIORS.items()}
    traits = {level: _traits(fitted, level) for level in LEVELS}
    unknown = {level: {sense: fitted.unknown(level, sense) for sense in _SENSES} for level in LEVELS}
    traits["layout"]["disaggregated"] = ServingTrait(factors={}, spread=dict.fromkeys(_SENSES, DISAGGREGATED), rows={})
    return ServingCalibration(
        common=common,
        traits=traits,
        unknown=unknown,
        bands={kind: _bands(fitted, kind, scores or {}, errors or {}) for kind in OFFSETS},
        constants_id=identity(common, traits),
        provenance=Provenance(source=source, as_of=as_of, status="inferred"),
    )


def _traits(fitted: _Fitted, level: str) -> dict[str, ServingTrait]:
    labels = getattr(fitted.sample.labels, level)
    found = {}
    for name in sorted(set(labels) - {""}):
        moves = {GROUPS[group][0]: fitted.effects.value(group, name) for group in fitted.groups_of(level)
                 if (group, name) in fitted.effects.coefficients}  # fmt: skip
        spread = {sense: fitted.left_open(level, name, sense) for sense in _SENSES}
        if level == "layout":  # no plan is made faster or slower by it: what it did to rows makes the band wide
            spread = {sense: float(np.hypot(own, moves["work"])) for sense, own in spread.items()}
            moves = {}
        found[name] = ServingTrait(
            factors={move: float(np.exp(value)) for move, value in moves.items()},
            spread=spread,
            rows=_rows(fitted.sample, level, name) if level in ("pair", "layout") else {},
        )
    return found


def _rows(sample: Sample, level: str, name: str) -> dict[str, tuple[int, int]]:
    """Configurations and campaigns of a pair or a kind of layout, by kind of figure with its tail."""
    seen: dict[str, tuple[set[object], set[str]]] = {}
    for point, kind, own, campaign in zip(
        sample.points, sample.labels.kind, getattr(sample.labels, level), sample.labels.campaign, strict=True
    ):
        if own == name:
            configurations, campaigns = seen.setdefault(kind, (set(), set()))
            configurations.add(point.configuration)
            campaigns.add(campaign)
    return {kind: (len(own), len(campaigns)) for kind, (own, campaigns) in sorted(seen.items())}


def _bands(
    fitted: _Fitted,
    kind: str,
    scores: Mapping[str, Three],
    errors: Mapping[str, Three],
) -> dict[str, ServingSpread]:
    found = {}
    for name, tail in (("dense", ""), ("experts", " experts")):
        none = (0.0, 0.0, 0.0)
        median, mean, p90 = errors.get(kind + tail) or errors.get(kind) or none
        found[name] = ServingSpread(
            spread=_spread(fitted, kind, tail),
            scores=scores.get(kind, _NORMAL_SCORES),
            median_error=median,
            mean_error=mean,
            p90_error=p90,
        )
    return found


def _spread(fitted: _Fitted, kind: str, tail: str) -> float:
    """Deviation of a new campaign's figures when all is known of its engine, device and format."""
    if kind in UNFITTED:
        return float(np.sqrt(np.sum(np.square(OFFSETS[kind]))))
    offsets, number = fitted.effects.variances, KINDS.index(kind + tail)
    total = offsets.source[number] + offsets.model[number] + TAIL_WIDTH * offsets.scatter[number]
    mine = np.array([own == kind + tail for own in fitted.sample.labels.kind])
    if mine.any():
        for group in ("release", *WAYS_OF_A_CAMPAIGN):
            columns = _index(j for j, name in enumerate(fitted.names) if name[0] == group)
            felt = np.square(fitted.design[np.ix_(np.flatnonzero(mine), columns)]).sum(axis=1)
            total = total + deviation((group, "")) ** 2 * float(np.mean(felt))
        every = _index(j for j, name in enumerate(fitted.names) if name[0] == "all")
        held = fitted.design[np.ix_(np.flatnonzero(mine), every)]
        total = total + float(np.mean(((held @ fitted.effects.covariance[np.ix_(every, every)]) * held).sum(axis=1)))
    return float(np.sqrt(total))


_HEAD = (
    "# The analytic tier of serving. Constants that all engines and devices share; factors of engines, families of",
    "# devices, parts, pairs, formats and layouts on them, of pairs for models with experts (mixtures), of cards in",
    "# engines of one card, and of contests (protocols), which no plan takes; what each leaves open, as deviation of a",
    "# logarithm (work: times and rates, first: times to a first token), and that of a name without rows; and bands:",
    "# the deviation of a new campaign, and scores p10, p50, p90 of ln(measured / predicted) of campaigns left out.",
    "# Written by `plan calibrate serving`; `make calibrate` makes the shipped one from the shipped rows.",
)


def serving_yaml(found: ServingCalibration) -> str:
    """The text of the file."""
    lines = [*_HEAD, f"schema: {SERVING_SCHEMA}", f"defaults: {{as_of: {found.provenance.as_of}, status: inferred}}"]
    lines += [f'source: "{found.provenance.source}"', f"common: {_mapping(found.common)}"]
    for level, key in LEVELS.items():
        traits = found.traits.get(level, {})
        lines += [f"{key}:" if traits else f"{key}: {{}}"]
        lines += [f"  {_name(name)}: {_trait(trait)}" for name, trait in traits.items()]
    lines += ["unknown:", *(f"  {level}: {_mapping(own)}" for level, own in found.unknown.items()), "bands:"]
    for kind, groups in found.bands.items():
        lines.append(f"  {kind}:")
        lines += [f"    {name}: {_mapping(_cells(spread))}" for name, spread in groups.items()]
    return "\n".join([*lines, ""])


def _trait(trait: ServingTrait) -> str:
    rows = {kind: f"[{campaigns}, {number}]" for kind, (number, campaigns) in trait.rows.items()}
    parts = {"factors": _mapping(trait.factors)} if trait.factors else {}
    parts["spread"] = _mapping(trait.spread)
    if rows:
        parts["rows"] = "{" + ", ".join(f"{kind}: {text}" for kind, text in rows.items()) + "}"
    return "{" + ", ".join(f"{name}: {text}" for name, text in parts.items()) + "}"


def _cells(spread: ServingSpread) -> dict[str, float]:
    low, middle, high = spread.scores
    return {
        "spread": spread.spread, "p10": low, "p50": middle, "p90": high, "median_error": spread.median_error,
        "mean_error": spread.mean_error, "p90_error": spread.p90_error,
    }  # fmt: skip


def _mapping(values: Mapping[str, float]) -> str:
    return "{" + ", ".join(f"{name}: {_short(value)}" for name, value in values.items()) + "}"


def _name(name: str) -> str:
    return name if name.replace("-", "").replace(".", "").isalnum() else f'"{name}"'


def _short(value: float) -> str:
    """Five digits; YAML wants a point in a number with an exponent."""
    text = f"{value:.5g}"
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


FOLDS: Mapping[str, tuple[Callable[[Point], object], int]] = {
    "campaign": (lambda point: point.campaign, 16),
    "device": (lambda point: point.device, 10),
}
FEWEST_CAMPAIGNS = 8  # left out, below which a band has the scores of a normal
Scores = Mapping[str, tuple[float, float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingHeldOut:
    """Every figure as predicted by constants that have not seen its campaign, or its device."""

    sample: Sample
    log_predicted: Values
    deviation: Values  # of the logarithm, of a new campaign
    tags: tuple[str, ...]
    fold: np.ndarray  # number of the fold that left it out

    @property
    def log_ratio(self) -> Values:
        """ln(measured / predicted)."""
        return self.sample.log_measured - self.log_predicted

    @property
    def kinds(self) -> np.ndarray:
        """Kind of each figure, without the tail of models with experts."""
        return np.array([kind.split()[0] for kind in self.sample.labels.kind])

    def scores(self, used: np.ndarray | None = None) -> Scores:
        """p10, p50 and p90 of ln(measured / predicted) in deviations, by kind of figure."""
        weight, found = weights_of(self.sample.points), {}
        used = np.ones(len(self.sample), dtype=bool) if used is None else used
        for kind in sorted(set(self.kinds.tolist())):
            mine = used & (self.kinds == kind) & np.isfinite(self.log_ratio)
            campaigns = {own for own, is_mine in zip(self.sample.labels.campaign, mine, strict=True) if is_mine}
            if len(campaigns) >= FEWEST_CAMPAIGNS:
                score = self.log_ratio[mine] / self.deviation[mine]
                low, middle, high = (weighted_quantile(score, weight[mine], share) for share in (0.1, 0.5, 0.9))
                found[kind] = (low, middle, high)
        return found

    def errors(self) -> dict[str, tuple[float, float, float]]:
        """Median, mean and p90 of |ln(predicted / measured)|, by kind and by kind with its tail."""
        weight, size, found = weights_of(self.sample.points), np.abs(self.log_ratio), {}
        labels = np.array(self.sample.labels.kind)
        for names in (self.kinds, labels):
            for kind in sorted(set(names.tolist())):
                mine = (names == kind) & np.isfinite(size)
                if mine.any():
                    found[kind] = (
                        weighted_quantile(size[mine], weight[mine], 0.5),
                        float(np.average(size[mine], weights=weight[mine])),
                        weighted_quantile(size[mine], weight[mine], 0.9),
                    )
        return found

    def judged(self, scores_of: ServingHeldOut | None = None) -> Judged:
        """Errors and bands, each band with the scores of the other folds of campaigns."""
        low, high = np.empty(len(self.sample)), np.empty(len(self.sample))
        other = scores_of or self
        for number in sorted(set(self.fold.tolist())):
            mine = self.fold == number
            gone = {point for point, own in zip(self.sample.points, mine, strict=True) if own}
            scores = other.scores(np.array([point not in gone for point in other.sample.points]))
            for kind in sorted(set(self.kinds[mine].tolist())):
                these = mine & (self.kinds == kind)
                ends = scores.get(kind, (-BAND_NORMAL, 0.0, BAND_NORMAL))
                low[these], high[these] = ends[0] * self.deviation[these], ends[2] * self.deviation[these]
        labels = self.sample.labels
        return Judged(
            error=-self.log_ratio,
            low=low,
            high=high,
            weight=weights_of(self.sample.points),
            cluster=tuple(zip(labels.campaign, labels.part, strict=True)),
            group=tuple(labels.kind),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCalibrationRun:
    """Constants with the errors that they showed on rows left out."""

    sample: Sample
    found: ServingCalibration
    held_out: Mapping[str, ServingHeldOut]  # campaign | device

    @property
    def points(self) -> tuple[Point, ...]:
        """The figures that count."""
        return self.sample.points

    def to_yaml(self) -> str:
        """The file that the catalog reads, `calibration/serving.yaml`."""
        return serving_yaml(self.found)


def calibrate_serving(
    rows: Sequence[ServingRow],
    catalog: Catalog,
    *,
    source: str,
    as_of: str,
    folds: Sequence[str] = ("campaign",),
    tell: Callable[[str], None] = lambda text: None,
) -> ServingCalibrationRun:
    """Fit everything that the rows measured, then again without some campaigns, or devices.

    Parameters
    ----------
    rows
        Measured; figures that count in no error are left out.
    catalog
        Devices of the rows.
    source, as_of
        Where the rows are from, and their ISO date: provenance of the written file.
    folds
        What is left out in turn: campaign, which must be among them, and device.
    tell
        Called with what is fitted next: each fold by name, then all rows.

    Raises
    ------
    InputError
        No row can be fitted: unknown devices or shapes, or nothing measured.
    """
    sample = sample_of(rows, catalog)
    if sample is None:
        hint = "a row needs a device of the catalog, the shape of its model, its load, and a latency or tokens/s"
        raise InputError.of("nothing-to-fit", "no row of the table can be fitted", hint=hint)
    held_out = {name: hold_out(sample, name, source=source, as_of=as_of, tell=tell) for name in folds}
    tell("all rows")
    mine = sample.take(fitted_to(sample))
    campaigns = held_out["campaign"]
    found = calibration_of(
        mine, fit_serving(mine), source=source, as_of=as_of, scores=campaigns.scores(), errors=campaigns.errors()
    )
    return ServingCalibrationRun(sample=sample, found=found, held_out=held_out)


def sample_of(rows: Sequence[ServingRow], catalog: Catalog) -> Sample | None:
    """The figures that count, with a prediction; None without one."""
    entries = entries_of(rows, catalog)
    if not entries:
        return None
    batch = batch_of(entries)
    points = [point for point in points_of(rows, batch) if not point.left_out]
    if not points:
        return None
    sample = Sample.of([batch], points)
    at_start = sample.moved(np.zeros((len(NAMES), len(sample))))
    usable = np.isfinite(at_start)
    return sample.take(usable) if (usable & fitted_to(sample)).any() else None


def hold_out(
    sample: Sample, what: str, *, source: str, as_of: str, tell: Callable[[str], None] = lambda text: None
) -> ServingHeldOut:
    """Predict the figures of every fold by constants fitted without it.

    Parameters
    ----------
    sample
        Figures with a prediction. Those that no constants are fitted to are predicted too.
    what
        Left out in turn: campaign or device.
    source, as_of
        Provenance of the constants of each fold, which no figure goes by.
    tell
        Called with the name of each fold.
    """
    key, count = FOLDS[what]
    log_predicted, deviation = np.full(len(sample), np.nan), np.full(len(sample), np.nan)
    number, tags = np.zeros(len(sample), dtype=int), np.full(len(sample), "", dtype=object)
    usable = fitted_to(sample)
    for i, fold in enumerate(joint_folds([key(point) for point in sample.points], count)):
        if not (usable & ~fold.out).any():
            continue
        tell(f"without {what}s, {fold.name}")
        shown = sample.take(usable & ~fold.out)
        found = calibration_of(shown, fit_serving(shown), source=source, as_of=as_of)
        log_predicted[fold.judged], deviation[fold.judged], tags[fold.judged] = told(found, sample.take(fold.judged))
        number[fold.judged] = i
    return ServingHeldOut(
        sample=sample, log_predicted=log_predicted, deviation=deviation, tags=tuple(tags), fold=number
    )


def told(found: ServingCalibration, sample: Sample) -> tuple[Values, Values, list[str]]:
    """What a calibration says of figures, as plans and validation are told it: logarithm, deviation, tag."""
    entries, firsts = sample.entries, sample.layouts[:, 0]
    own = calibrated_entries(found, entries)
    log_predicted = sample.log_predicted(side_by_side(own))
    deviation = [
        own[i].deviation(point.band_kind, experts=entries[i].arch.is_moe, layout=layout_kind_of(entries[i]))
        for i, point in zip(firsts, sample.points, strict=True)
    ]
    return log_predicted, np.array(deviation), [own[i].tag for i in firsts]
