"""Fits the constants of serving: least squares on logarithms that a few bad rows cannot move, pulled to expectations.

One common value for each constant, times a factor by engine and a factor by device family. A row belongs to one engine
and one family, so that its derivative by their factors is its derivative by the common value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.calibrate.serving_priors import (
    ENGINE_EXPECTATIONS,
    FULL_ROWS,
    HIDDEN_LAYOUT,
    LOAD_WEIGHTS,
    METRIC_WEIGHTS,
    PULL,
    SERVING_PRIORS,
    USUAL_ERROR,
)
from planner.carriers import dataclass
from planner.estimate.serving_constants import ServingConstants
from planner.validate.serving import METRICS, ServingBatch
from planner.validate.serving_points import Point

Values = NDArray[np.float64]
_STEP = 0.02  # of a logarithm, for derivatives
_ROUNDS, _TRIES = 80, 6
_LITTLE = 1e-5  # relative gain at which the search ends
_FIRST_DAMPING, _MORE, _LESS, _LEAST_DAMPING = 1e-2, 4.0, 3.0, 1e-4
_FARTHEST = 0.5  # that one round may move a logarithm
_WORST = 3.0  # |ln| of a prediction that is no number


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFactors:
    """The result of one fit: common constants, and factors by engine and by device family."""

    common: Mapping[str, float]
    engines: Mapping[str, Mapping[str, float]]
    families: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Figures beside the entries that predict them."""

    batch: ServingBatch
    points: tuple[Point, ...]
    layouts: NDArray[np.int64]  # (points, most layouts of a row): entries of the row of each point
    engines: tuple[str, ...]
    families: tuple[str, ...]

    @classmethod
    def of(cls, batch: ServingBatch, points: Sequence[Point]) -> Sample:
        """Figures of the rows of a batch."""
        of_row: dict[int, list[int]] = {}
        for number, entry in enumerate(batch.entries):
            of_row.setdefault(entry.row, []).append(number)
        most = max(len(found) for found in of_row.values())
        padded = [(of_row[p.position] + [of_row[p.position][0]] * most)[:most] for p in points]
        return cls(
            batch=batch,
            points=tuple(points),
            layouts=np.array(padded, dtype=np.int64).reshape(len(points), most),
            engines=tuple(sorted({entry.engine for entry in batch.entries})),
            families=tuple(sorted({entry.device.family for entry in batch.entries})),
        )

    @property
    def measured(self) -> Values:
        """What was measured, in base units."""
        return np.array([point.measured for point in self.points], dtype=np.float64)

    def predict(self, constants: ServingConstants) -> Values:
        """Each figure; of several layouts that a row may have had, the fastest."""
        said = self.batch.predict(constants)
        metric = np.array([point.metric for point in self.points])
        result = np.full(len(self.points), np.nan)
        for name in METRICS:
            if name not in said:
                continue
            mine = metric == name
            values = said[name][self.layouts[mine]]
            result[mine] = np.max(values, axis=1) if name == "output_tokens_per_s" else values[:, 0]
        return result

    def weights(self) -> Values:
        """What each figure counts: by its kind, and less in a long table of one model on one device."""
        keys = [(p.source, p.row.engine, p.device, p.row.model, p.metric) for p in self.points]
        counts = {key: keys.count(key) for key in set(keys)}
        stated = [1.0 if len(set(own)) == 1 else HIDDEN_LAYOUT for own in self.layouts]
        kind = [METRIC_WEIGHTS[p.metric] * LOAD_WEIGHTS.get(p.row.load, 1.0) for p in self.points]
        kind = [k * s for k, s in zip(kind, stated, strict=True)]
        return np.array([0.0 if p.left_out else k * counts[key] ** -0.25 for p, k, key in zip(self.points, kind, keys)])


@dataclass(frozen=True, slots=True)
class _Unknown:
    """One number that is fitted: the common value of a constant, or a factor on it."""

    kind: str  # common | engine | family
    constant: str
    of: str  # engine or family


class ServingFit:
    """A sample with its unknowns: predict and fit."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        common = [_Unknown("common", name, "") for name in SERVING_PRIORS]
        engines = [
            _Unknown("engine", n, e) for n, prior in SERVING_PRIORS.items() if prior.engine for e in sample.engines
        ]
        families = [
            _Unknown("family", n, f) for n, prior in SERVING_PRIORS.items() if prior.family for f in sample.families
        ]
        self.unknowns = (*common, *engines, *families)
        self.expected = np.array([_expected(each) for each in self.unknowns])
        self.spread = np.array([getattr(SERVING_PRIORS[each.constant], each.kind) for each in self.unknowns])
        self._place = {(u.kind, u.constant, u.of): i for i, u in enumerate(self.unknowns)}
        entries = sample.batch.entries
        self._engine = np.array([sample.engines.index(entry.engine) for entry in entries])
        self._family = np.array([sample.families.index(entry.device.family) for entry in entries])
        self._measured = np.log(sample.measured)
        self._usual = np.array([USUAL_ERROR[point.metric] for point in sample.points])
        self._weights = sample.weights()

    def constants(self, logs: Values) -> ServingConstants:
        """Constants of every entry."""
        found = {}
        for name, prior in SERVING_PRIORS.items():
            value = np.full(len(self._engine), logs[self._place["common", name, ""]])
            if prior.engine:
                value = (
                    value + np.array([logs[self._place["engine", name, e]] for e in self.sample.engines])[self._engine]
                )
            if prior.family:
                value = (
                    value + np.array([logs[self._place["family", name, f]] for f in self.sample.families])[self._family]
                )
            found[name] = np.minimum(np.exp(value), prior.most)
        return ServingConstants(name="fit", **found)

    def predict(self, logs: Values) -> Values:
        """Each figure at these constants."""
        return self.sample.predict(self.constants(logs))

    def fit(self, used: NDArray[np.bool_], start: Values | None = None) -> Values:
        """Logarithms of the unknowns that lose least on the figures in use; damped Gauss-Newton steps.

        Figures that are further off than usual count ever less.
        """
        weights = self._weights * used
        pull = (PULL / self.spread) ** 2 * np.sqrt(max(float((weights > 0).sum()), 1.0) / FULL_ROWS)
        logs: Values = np.array(self.expected if start is None else start)
        off, damping = self._off(logs), _FIRST_DAMPING
        cost = self._cost(off, weights, logs, pull)
        for _ in range(_ROUNDS):
            slopes = self._slopes(logs, off) * (weights > 0)[:, None]
            robust = weights / np.sqrt(1 + (off / self._usual) ** 2)
            curvature = slopes.T @ (slopes * robust[:, None]) + np.diag(pull)
            gradient = slopes.T @ (robust * off) + pull * (logs - self.expected)
            for _ in range(_TRIES):
                move = -np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), gradient)
                there = logs + np.clip(move, -_FARTHEST, _FARTHEST)
                off_there = self._off(there)
                cost_there = self._cost(off_there, weights, there, pull)
                if cost_there < cost:
                    break
                damping *= _MORE
            else:
                return logs
            gain, logs, off, cost = (cost - cost_there) / cost, np.asarray(there), off_there, cost_there
            damping = max(damping / _LESS, _LEAST_DAMPING)
            if gain < _LITTLE:
                return logs
        return logs

    def factors(self, logs: Values, used: NDArray[np.bool_]) -> ServingFactors:
        """The fitted numbers by name; engines and families that no used figure speaks of are left out."""
        entries = [self.sample.batch.entries[i] for i in self.sample.layouts[used & (self._weights > 0), 0]]
        engines, families = {e.engine for e in entries}, {e.device.family for e in entries}
        number = {each: float(np.exp(value)) for each, value in zip(self.unknowns, logs, strict=True)}
        return ServingFactors(
            common={
                u.constant: min(v, SERVING_PRIORS[u.constant].most) for u, v in number.items() if u.kind == "common"
            },
            engines={
                e: {u.constant: v for u, v in number.items() if u.of == e and u.kind == "engine"}
                for e in sorted(engines)
            },
            families={
                f: {u.constant: v for u, v in number.items() if u.of == f and u.kind == "family"}
                for f in sorted(families)
            },
        )

    def _off(self, logs: Values) -> Values:
        with np.errstate(all="ignore"):
            off = np.log(self.predict(logs)) - self._measured
        return np.asarray(np.where(np.isfinite(off), np.clip(off, -_WORST, _WORST), _WORST))

    def _cost(self, off: Values, weights: Values, logs: Values, pull: Values) -> float:
        loss = 2 * self._usual**2 * (np.sqrt(1 + (off / self._usual) ** 2) - 1)
        return float(weights @ loss + pull @ (logs - self.expected) ** 2)

    def _slopes(self, logs: Values, off: Values) -> Values:
        """Derivative of each figure's logarithm by each unknown."""
        slopes = np.zeros((len(off), len(self.unknowns)))
        first = self.sample.layouts[:, 0]
        engine, family = self._engine[first], self._family[first]
        for i, each in enumerate(self.unknowns):
            if each.kind == "common":
                there = logs.copy()
                there[i] += _STEP
                slopes[:, i] = (self._off(there) - off) / _STEP
                continue
            whole = slopes[:, self._place["common", each.constant, ""]]
            names, index = (self.sample.engines, engine) if each.kind == "engine" else (self.sample.families, family)
            slopes[:, i] = np.where(index == names.index(each.of), whole, 0.0)
        return slopes


def _expected(unknown: _Unknown) -> float:
    if unknown.kind == "common":
        return float(np.log(SERVING_PRIORS[unknown.constant].value))
    return (
        float(np.log(ENGINE_EXPECTATIONS.get((unknown.of, unknown.constant), 1.0))) if unknown.kind == "engine" else 0.0
    )
