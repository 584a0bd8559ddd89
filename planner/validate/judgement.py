"""How predictions with bands are judged: errors and coverage of rows that their fit has not seen.

Everything is in the natural logarithm of time, and a configuration weighs one however often it was published. Rows of
one source err together, so intervals come from drawing whole clusters (source and device) again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass

Values = NDArray[np.float64]
LEVEL = 0.80  # of the band p10 to p90
RESAMPLES, SEED = 2000, 20261123
_OUTSIDE = 2.0 / (1.0 - LEVEL)  # penalty of Winkler's score for what lies outside


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Figures that a fit has not seen, with their bands; element i of every array belongs to row i."""

    error: Values  # ln(predicted / measured)
    low: Values  # ln(p10 / predicted)
    high: Values  # ln(p90 / predicted)
    weight: Values  # one over the rows of the configuration
    cluster: tuple[Hashable, ...]  # what errs together: source and device
    group: tuple[str, ...]  # as reported: device, kind and precision

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Whether what was measured lies within the band."""
        return np.asarray((-self.error >= self.low) & (-self.error <= self.high))

    @property
    def winkler(self) -> Values:
        """Width of the band, and ten times what lies outside of it (Winkler 1972, at 80 %)."""
        below, above = np.maximum(self.low + self.error, 0.0), np.maximum(-self.error - self.high, 0.0)
        return np.asarray(self.high - self.low + _OUTSIDE * (below + above))

    def chosen(self, which: NDArray[np.bool_]) -> Judged:
        """Some of the rows."""
        index = np.flatnonzero(which)
        return Judged(
            error=self.error[index],
            low=self.low[index],
            high=self.high[index],
            weight=self.weight[index],
            cluster=tuple(self.cluster[i] for i in index),
            group=tuple(self.group[i] for i in index),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One group of rows in a few figures; errors are |ln(predicted / measured)|."""

    name: str
    rows: int
    configurations: float
    clusters: int
    mean: float
    median: float
    bias: float
    coverage: float
    coverage_low: float  # 90 % interval, clusters drawn again
    coverage_high: float
    mean_low: float
    mean_high: float
    winkler: float
    one_constant: float  # mean error when the group's median ratio is taken off, as a constant of its own would


def verdict(name: str, judged: Judged) -> Verdict:
    """The figures of a group; ValueError for none."""
    if not len(judged.error):
        raise ValueError("a group of rows holds at least one")
    size, weight = np.abs(judged.error), judged.weight
    middle = weighted_quantile(judged.error, weight, 0.5)
    inside = judged.inside.astype(float)
    cover_low, cover_high = cluster_interval(inside, weight, judged.cluster)
    mean_low, mean_high = cluster_interval(size, weight, judged.cluster)
    return Verdict(
        name=name,
        rows=len(size),
        configurations=float(weight.sum()),
        clusters=len(set(judged.cluster)),
        mean=float(np.average(size, weights=weight)),
        median=weighted_quantile(size, weight, 0.5),
        bias=float(np.average(judged.error, weights=weight)),
        coverage=float(np.average(inside, weights=weight)),
        coverage_low=cover_low,
        coverage_high=cover_high,
        mean_low=mean_low,
        mean_high=mean_high,
        winkler=float(np.average(judged.winkler, weights=weight)),
        one_constant=float(np.average(np.abs(judged.error - middle), weights=weight)),
    )


def verdicts(judged: Judged, name_of: Callable[[str], str] = lambda name: name) -> list[Verdict]:
    """All rows together, then each group, by name."""
    names = np.array([name_of(name) for name in judged.group])
    found = [verdict("all", judged)]
    return found + [verdict(name, judged.chosen(names == name)) for name in sorted(set(names.tolist()))]


def interval_score(judged: Judged) -> float:
    """Winkler's score of the rows' own bands, a configuration weighing one."""
    return float(np.average(judged.winkler, weights=judged.weight))


def one_band_score(judged: Judged) -> float:
    """Winkler's score of one band for all rows: the quantiles of all errors, which no planner can know beforehand."""
    low, high = (weighted_quantile(-judged.error, judged.weight, share) for share in (0.1, 0.9))
    flat = np.full(len(judged.error), 1.0)
    one = Judged(
        error=judged.error,
        low=low * flat,
        high=high * flat,
        weight=judged.weight,
        cluster=judged.cluster,
        group=judged.group,
    )
    return interval_score(one)


def weighted_quantile(values: Values, weights: Values, share: float) -> float:
    """The value below which a share of the weight lies, half of each value's own weight counted.

    Parameters
    ----------
    values, weights
        At least one, in any order, (n,).
    share
        Of the weight, 0 to 1; near the ends the smallest or the largest value.
    """
    order = np.argsort(values, kind="stable")
    reach = np.cumsum(weights[order]) - 0.5 * weights[order]
    return float(np.interp(share * weights.sum(), reach, values[order]))


def cluster_interval(
    values: Values, weights: Values, clusters: Sequence[Hashable], *, share: float = 0.9
) -> tuple[float, float]:
    """Bootstrap interval of a weighted mean with whole clusters drawn again; always the same for the same values.

    Parameters
    ----------
    values, weights
        What the mean is of, (n,).
    clusters
        What errs together with what: a name of each value.
    share
        Of the drawn means, that lie in the interval; as many lie below it as above.
    """
    names = list(dict.fromkeys(clusters))
    index = np.array([names.index(cluster) for cluster in clusters])
    sums = np.bincount(index, weights=weights * values, minlength=len(names))
    totals = np.bincount(index, weights=weights, minlength=len(names))
    drawn = np.random.default_rng(SEED).integers(0, len(names), (RESAMPLES, len(names)))
    means = sums[drawn].sum(axis=1) / totals[drawn].sum(axis=1)
    tail = 50.0 * (1.0 - share)
    return float(np.percentile(means, tail)), float(np.percentile(means, 100.0 - tail))
