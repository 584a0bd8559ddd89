"""How predictions with bands are judged: errors and coverage of rows that their fit has not seen.

Left out together are a publication, a part of it, or a whole device. A source is left out of everything. Where one
source has over half of the configurations of a family and kind (one has nearly all mixtures of experts on Blackwell),
leaving it out would judge how a family is guessed and not how it is known: there, what is left out is each release of
the software with each model. Rows that share a configuration with one that is left out go with it, so that no other
release of the same run stays behind.

Everything is in the natural logarithm of time, and a configuration weighs one however often it was published. Rows of
one source err together, so intervals come from drawing whole clusters (source and device) again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass

DOMINANT = 0.5  # share of a kin's configurations from which on a source is split
Mask = NDArray[np.bool_]


class Placed(Protocol):
    """What a row must tell to be put into a fold."""

    @property
    def source(self) -> str: ...  # noqa: D102
    @property
    def kin(self) -> Hashable: ...  # noqa: D102
    @property
    def device(self) -> str: ...  # noqa: D102
    @property
    def release_and_model(self) -> Hashable: ...  # noqa: D102
    @property
    def configuration(self) -> Hashable: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Rows to predict, by constants fitted without all rows of `out`."""

    name: str
    judged: Mask
    out: Mask


class Configured(Protocol):
    """What a row must tell to be weighed."""

    @property
    def configuration(self) -> Hashable: ...  # noqa: D102


def weights_of(points: Sequence[Configured]) -> NDArray[np.float64]:
    """One over the rows of each row's configuration: a configuration weighs one."""
    counts = Counter(point.configuration for point in points)
    return np.array([1.0 / counts[point.configuration] for point in points])


def source_folds(points: Sequence[Placed]) -> list[Fold]:
    """Every row in one fold: without its source, or without its release and model where a source dominates."""
    dominant = dominant_sources(points)
    sources = np.array([point.source for point in points])
    split = np.array([(point.source, point.kin) in dominant for point in points])
    folds = []
    for source in sorted(set(sources.tolist())):
        judged = (sources == source) & ~split
        if judged.any():
            folds.append(Fold(name=source, judged=judged, out=sources == source))
    groups: dict[tuple[str, Hashable, Hashable], list[int]] = {}
    for i, point in enumerate(points):
        if split[i]:
            groups.setdefault((point.source, point.kin, point.release_and_model), []).append(i)
    for key, members in sorted(groups.items(), key=lambda item: str(item[0])):
        judged = np.zeros(len(points), dtype=bool)
        judged[members] = True
        gone = {points[i].configuration for i in members}
        out = judged | np.array([point.source == key[0] and point.configuration in gone for point in points])
        folds.append(Fold(name=" · ".join(map(str, (key[0], *_flat(key[2])))), judged=judged, out=out))
    return folds


def device_folds(points: Sequence[Placed]) -> list[Fold]:
    """Every row of a device is left out."""
    devices = np.array([point.device for point in points])
    return [
        Fold(name=device, judged=devices == device, out=devices == device) for device in sorted(set(devices.tolist()))
    ]


def beyond_folds(points: Sequence[Placed], beyond: Mask) -> list[Fold]:
    """Rows beyond what a fit sees, by source: without all of them, and without the rest of a source that is not split.

    Parameters
    ----------
    points
        Rows.
    beyond
        (n,) which of them no fit sees.
    """
    dominant = dominant_sources(points)
    sources = np.array([point.source for point in points])
    split = np.array([(point.source, point.kin) in dominant for point in points])
    return [
        Fold(name=source, judged=beyond & (sources == source), out=beyond | ((sources == source) & ~split))
        for source in sorted(set(sources[beyond].tolist()))
    ]


def joint_folds(keys: Sequence[Hashable], count: int) -> list[Fold]:
    """Rows that share a key are left out together, several keys at once, in folds of about the same size.

    Parameters
    ----------
    keys
        Of each row.
    count
        Folds, where there are as many keys.
    """
    sizes = sorted(Counter(keys).items(), key=lambda item: (-item[1], str(item[0])))
    members: list[list[Hashable]] = [[] for _ in range(min(count, len(sizes)))]
    filled = [0] * len(members)
    for key, size in sizes:
        least = filled.index(min(filled))
        members[least].append(key)
        filled[least] += size
    found = []
    for number, own in enumerate(members):
        out = np.array([key in set(own) for key in keys])
        found.append(Fold(name=f"{number + 1} of {len(members)}", judged=out, out=out))
    return found


def dominant_sources(points: Sequence[Placed]) -> set[tuple[str, Hashable]]:
    """(source, kin) where the source has over half of the kin's configurations."""
    configurations: dict[Hashable, dict[Hashable, set[str]]] = {}
    for point in points:
        configurations.setdefault(point.kin, {}).setdefault(point.configuration, set()).add(point.source)
    found = set()
    for kin, own in configurations.items():
        counts = Counter(source for sources in own.values() for source in sources)
        found |= {(source, kin) for source, count in counts.items() if count > DOMINANT * len(own)}
    return found


def _flat(key: Hashable) -> tuple[object, ...]:
    return key if isinstance(key, tuple) else (key,)


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
