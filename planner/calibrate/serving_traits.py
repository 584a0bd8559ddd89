"""What a fit of serving says, in the form in which the catalog keeps it and plans read it.

Factors of each level are the exponentials of its coefficients. What rows leave open is told level by level, in two
senses (all work; the time to a first token), as the deviation of a figure's logarithm: plans add up the levels that
they use, with that of an unknown name where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.calibrate.mixed_model import BAND_NORMAL, TAIL_WIDTH, Effects, Index, Values
from planner.calibrate.serving_fit import (
    DISAGGREGATED,
    GROUPS,
    KINDS,
    OFFSETS,
    SERVING_PRIORS,
    UNFITTED,
    WAYS_OF_A_CAMPAIGN,
    Sample,
    deviation,
    problem_of,
)
from planner.carriers import dataclass
from planner.catalog.fitted_constants import LEVELS, identity
from planner.catalog.model import Provenance, ServingCalibration, ServingSpread, ServingTrait

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
