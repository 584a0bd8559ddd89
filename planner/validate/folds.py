"""Which rows are left out together when a prediction is judged: a publication, a part of it, or a whole device.

A source is left out of everything. Where one source has over half of the configurations of a family and kind (one has
nearly all mixtures of experts on Blackwell), leaving it out would judge how a family is guessed and not how it is
known: there, what is left out is each release of the software with each model. Rows that share a configuration with
one that is left out go with it, so that no other release of the same run stays behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
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
