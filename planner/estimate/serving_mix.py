"""Requests of several classes in one stream: percentiles of the mixture, not of a class with its moments.

All classes wait for the same engine; each has a first-token time, a time per token and a length of its own. The share
of requests within a time is that of each class, weighted: F(t) = sum of share_i F_i(t).
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.equations.registry import as_float
from planner.estimate.serving_latency import Demand, Point
from planner.estimate.serving_levels import Level
from planner.estimate.serving_requests import RequestShape
from planner.estimate.serving_step import StepTimes
from planner.estimate.serving_wait import Steps

Values = NDArray[np.float64]
SCORES = np.linspace(-4.5, 4.5, 91)[:, None, None]  # at which the distribution of each class is known
GRID = Level(share=np.vectorize(NormalDist().cdf)(SCORES), score=SCORES)
CLASS_SHARES = GRID.share[:, 0, 0]
CLOSE = 1e-9  # share of requests
LAST_PARTS = 0.5  # the last part of a prompt that is cut does share its step; between the two models, by simulation


def demand_of(
    replica: StepTimes,
    shape: RequestShape,
    limit: Any,
    variability: Any,
    max_batched_tokens: Any,
    think_s: Any = np.inf,
) -> Demand:
    """What requests ask of a replica, of one class or of several.

    Parameters
    ----------
    replica
        Times of one replica, or of several side by side.
    shape
        Lengths of the requests of each; of a mix those of its classes, too.
    limit
        Sequences that may run at once.  [count]
    variability
        Squared coefficient of variation of the times between arrivals; 1 = Poisson.
    max_batched_tokens
        Most tokens of one step, those of running sequences among them.  [tokens]
    think_s
        Mean time from an answer to the next request of the same user; infinite: requests come by themselves.  [s]
    """
    whole = Demand.of(replica, shape, limit, variability, max_batched_tokens, think_s)
    if shape.mix is None or shape.mix.alike:
        return whole
    each = Demand.of(replica, shape.mix.classes, limit, variability, max_batched_tokens, think_s)
    parts = {field.name: getattr(whole, field.name) for field in fields(Demand)}
    return MixedDemand(**parts, classes=each, shares=shape.mix.share)


def kind_of(demand: Demand) -> type[Point]:
    """The kind of point that a demand has."""
    return MixedPoint if isinstance(demand, MixedDemand) else Point


@dataclass(frozen=True, kw_only=True)
class MixedDemand(Demand):
    """What a mix asks of a replica: moments of the engine time over the classes as they are."""

    classes: Demand  # arrays (classes, n)
    shares: Values  # of the requests (classes, 1), or (classes, n) where rows have mixes of their own

    def mean(self, of_classes: Any) -> Values:
        """Mean over requests; that of classes that are all alike is theirs to the last digit."""
        each = np.atleast_2d(as_float(of_classes))
        return np.asarray(each[0] + (self.shares * (each - each[0])).sum(axis=0))

    @cached_property
    def prefill_s(self) -> Values:
        """Mean engine time of a prompt."""
        return self.mean(self.classes.prefill_s)

    @cached_property
    def prefill_second_moment(self) -> Values:
        """Mean square of it."""
        return self.mean(self.classes.prefill_second_moment)

    @cached_property
    def prefill_third_moment(self) -> Values:
        """Mean cube of it."""
        return self.mean(self.classes.prefill_third_moment)

    @cached_property
    def unshared(self) -> Values:
        """Share of prompts too long to share a step with another."""
        return self.mean(self.classes.unshared)

    @cached_property
    def cut_share(self) -> Values:
        """Share of the prefill in prompts too long to share a step with another."""
        return np.asarray(self.mean(self.classes.unshared * self.classes.prefill_s) / self.prefill_s)

    @cached_property
    def chunks(self) -> Values:
        """Steps that prompts are cut into, on average."""
        return self.mean(self.classes.chunks)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of arrays over the rows."""
        names = [field.name for field in fields(Demand) if field.name != "replica"]
        return np.broadcast_shapes(*(np.shape(getattr(self, name)) for name in names))

    def take(self, index: NDArray[np.intp]) -> MixedDemand:
        """The rows of `index`."""
        replica: Any = self.replica
        rows = replica.take(index)
        whole, each = (
            {name: _columns(value, index) for name, value in _parts(part).items() if name != "replica"}
            for part in (self, self.classes)
        )
        return MixedDemand(
            replica=rows, **whole, classes=Demand(replica=rows, **each), shares=_columns(self.shares, index)
        )


def _parts(demand: Demand) -> dict[str, Any]:
    return {field.name: getattr(demand, field.name) for field in fields(Demand)}


def _columns(value: Any, index: NDArray[np.intp]) -> Any:
    same_for_all = np.ndim(value) == 0 or np.shape(value)[-1] == 1
    return value if same_for_all else value[..., index]


@dataclass(frozen=True, kw_only=True)
class ClassPoint(Point):
    """One class of a mix: its own prompt and answer in an engine that it shares with the others."""

    whole: MixedPoint

    @cached_property
    def decoding(self) -> Values:
        """Of all classes."""
        return self.whole.decoding

    @cached_property
    def held_s(self) -> Values:
        """By prompts of all classes."""
        return self.whole.held_s

    @cached_property
    def before_s(self) -> Values:
        """Of all classes."""
        return self.whole.before_s

    @cached_property
    def variance(self) -> Values:
        """Of all that decode."""
        return self.whole.variance

    @cached_property
    def queue_s(self) -> Values:
        """For the step that prefill starts in: prompts of all classes wait in one line."""
        return self.whole.queue_s

    @cached_property
    def slot_probability(self) -> Values:
        """The same for all classes."""
        return self.whole.slot_probability

    @cached_property
    def slot_mean_s(self) -> Values:
        """The same for all classes."""
        return self.whole.slot_mean_s

    def waits_at(self, level: Level) -> tuple[Values, ...]:
        """The same for all classes."""
        return self.whole.waits_at(level)

    @property
    def work_dispersion(self) -> Values:
        """Of prompts of all classes."""
        return self.whole.work_dispersion

    @cached_property
    def tpot_s(self) -> Values:
        """Mean time per output token after the first, over tokens of the class."""
        return (self.token_s + self.held_s / self.demand.later) / (1 - self.share)


@dataclass(frozen=True, kw_only=True)
class MixedPoint(Point):
    """A replica under a mix."""

    demand: MixedDemand

    @cached_property
    def each(self) -> ClassPoint:
        """Its classes; arrays (classes, n)."""
        own = {field.name: getattr(self, field.name) for field in fields(Point) if field.name != "demand"}
        return ClassPoint(demand=self.demand.classes, whole=self, **own)

    @cached_property
    def first_s(self) -> Values:
        """From the start of a prompt's prefill to its first token, mean over requests."""
        return self.demand.mean(self.each.first_s)

    @cached_property
    def queue_s(self) -> Values:
        """Mean wait for the step that the prefill starts in; prompts that share no step wait in a line."""
        demand, gated = self.demand, self.gated_s
        line = self.rate * self.gathered / (2 * (1 - self.share)) + self.step_s * self.busy / 2
        return np.asarray(gated + LAST_PARTS * demand.cut_share * (line - gated))

    @cached_property
    def request_tpot_s(self) -> Values:
        """Mean time per output token, over requests."""
        return self.demand.mean(self.each.request_tpot_s)

    def ttft_at(self, level: Level) -> Values:
        """Time to the first token that a share of the requests of all classes keep."""
        return self._mixed(self.each.ttft_at(level), self.ttft_grid, level)

    def tpot_at(self, level: Level) -> Values:
        """Time per output token that a share of the requests of all classes keep."""
        return self._mixed(self.each.tpot_at(level), self.tpot_grid, level)

    def e2e_at(self, level: Level) -> Values:
        """Time from arrival to the last token that a share of the requests of all classes keep."""
        return self._mixed(self.each.e2e_at(level), self.e2e_grid, level)

    @cached_property
    def ttft_grid(self) -> Values:
        """The time to the first token at every share of `GRID`, of each class; (scores, classes, n)."""
        return self.each.ttft_at(GRID)

    @cached_property
    def tpot_grid(self) -> Values:
        """The same of the time per output token."""
        return self.each.tpot_at(GRID)

    @cached_property
    def e2e_grid(self) -> Values:
        """The same of the time to the last token."""
        return self.each.e2e_at(GRID)

    def waits_at(self, level: Level) -> tuple[Values, ...]:
        """The wait for the step that prefill starts in, over its mean: of steps that hold prompts of all classes."""
        return ((self.steps.wait_s(level.share) - self.queue_s) * np.sqrt(self.relief),)

    @cached_property
    def steps(self) -> Steps:
        """The engine's steps as arrivals see them."""
        classes, ones = self.demand.classes, np.ones(np.shape(np.atleast_1d(self.rate)))
        mean = as_float(classes.prefill_s) * ones
        return Steps(
            decode_s=self.step_s * self.busy * ones,
            requests_per_s=self.rate * ones,
            prefill_s=mean,
            variation=classes.prefill_second_moment / mean**2 - 1,
            shares=self.demand.shares,
            unshared=self.demand.cut_share * ones,
            mean_s=self.queue_s * ones,
        )

    @cached_property
    def late_step_s(self) -> Values:
        """99th percentile of the engine's steps, prompts being cut into as many steps as they need."""
        demand, steps = self.demand, self.steps
        chunks = demand.shares * demand.classes.chunks
        cut = replace(
            steps,
            decode_s=self.step_s + 0 * steps.decode_s,
            requests_per_s=steps.requests_per_s * chunks.sum(axis=0),
            prefill_s=steps.prefill_s / demand.classes.chunks,
            shares=chunks / chunks.sum(axis=0),
        )
        return np.asarray(np.minimum(cut.length_s(0.99), self.step_s + self.each.full_step_s.max(axis=0)))

    def _mixed(self, at_level: Values, at_grid: Values, level: Level) -> Values:
        return mixture_percentile(np.atleast_2d(at_level), at_grid, self.demand.shares, level.share)


def late_shares(point: Point, metric: str, limit_s: Any) -> Values:
    """Share of the requests that take longer than a limit; of a mix of each class, (classes, n).

    Parameters
    ----------
    metric
        ``ttft``, ``tpot`` or ``e2e``.
    limit_s
        Numbers that go with the rows, (n,), or one for all.  [s]
    """
    if isinstance(point, MixedPoint):
        grid: Values = getattr(point, f"{metric}_grid")
        return shares_above(grid, np.broadcast_to(as_float(limit_s), grid.shape[1:]))
    plain = Level(share=GRID.share[:, :, 0], score=GRID.score[:, :, 0])
    times = np.asarray(getattr(point, f"{metric}_at")(plain))
    return shares_above(times, np.broadcast_to(as_float(limit_s), times.shape[1:]))


def shares_above(grid: Values, limits: Values) -> Values:
    """Share above a limit, where times are known at the shares of `GRID` and straight in between.

    Parameters
    ----------
    grid
        Times that rise with the share, (scores, ...).
    limits
        One each, (...).
    """
    last = len(CLASS_SHARES) - 1
    place = np.minimum(np.maximum((grid <= limits).sum(axis=0) - 1, 0), last - 1)
    flat, column = grid.reshape(len(grid), -1), np.arange(place.size)
    left, right = (flat[at.ravel(), column].reshape(place.shape) for at in (place, place + 1))
    wide = np.isfinite(right) & (right > left)
    part = np.where(
        wide, (limits - np.where(wide, left, 0.0)) / np.where(wide, right - np.where(wide, left, 0.0), 1.0), 0
    )
    part = np.minimum(np.maximum(part, 0.0), 1.0)
    below = CLASS_SHARES[place] + part * (CLASS_SHARES[place + 1] - CLASS_SHARES[place])
    return np.asarray(np.where(limits < grid[0], 1.0, np.where(limits >= grid[-1], 0.0, 1.0 - below)))


def mixture_percentile(at_level: Values, at_grid: Values, shares: Values, share: float) -> Values:
    """The value that a share of a mixture stays below, between the classes' own.

    Parameters
    ----------
    at_level
        The value that this share of each class stays below, (classes, n).
    at_grid
        The same at the shares of `GRID`, (scores, classes, n).
    shares
        Share of each class, (classes, 1) or (classes, n).
    share
        Share of the whole.

    Returns
    -------
    The value, (n,); never outside those of the classes, and theirs where all classes have the same.
    """
    low, high = at_level.min(axis=0), at_level.max(axis=0)
    each, found = np.broadcast_to(shares, at_level.shape), np.array(high)
    for i in np.flatnonzero(np.isfinite(high) & (low < high)):
        found[i] = _quantile(at_grid[:, :, i], each[:, i], float(low[i]), float(high[i]), share)
    return found


def _quantile(grid: Values, weights: Values, low: float, high: float, share: float) -> float:
    """The same for one row, (scores, classes): the mixture is straight between the grid points of all classes."""
    inside = grid[(grid > low) & (grid < high)]
    points = np.unique(np.concatenate(([low, high], inside)))
    below = sum(weight * _share_at(grid[:, i], points) for i, weight in enumerate(weights))
    place = int(np.argmax(below >= share)) if below[-1] >= share else len(points) - 1
    if place == 0:
        return float(points[0])
    left, right = float(below[place - 1]), float(below[place])
    part = (share - left) / (right - left) if right > left else 1.0
    value = float(points[place - 1] + part * (points[place] - points[place - 1]))
    reached = sum(weight * float(_share_at(grid[:, i], np.array([value]))[0]) for i, weight in enumerate(weights))
    return value if reached >= share - CLOSE else float(points[place])  # a step of a class of one value


def _share_at(grid: Values, values: Values) -> Values:
    """Share of one class below each of some values: linear between the scores of the grid."""
    last = len(SCORES) - 1
    place = np.minimum(np.maximum(np.searchsorted(grid, values, side="right") - 1, 0), last - 1)
    left, right = grid[place], grid[place + 1]
    part = np.minimum(np.maximum((values - left) / np.maximum(right - left, 1e-300), 0.0), 1.0)
    return np.asarray(CLASS_SHARES[place] + part * (CLASS_SHARES[place + 1] - CLASS_SHARES[place]))
