"""Fits the constants of serving as a mixed model in logarithms of times and rates.

A constant is common to all engines and devices; an engine, its releases, a device family, its parts and the pair of
engine and family move all work by a factor each, an engine and a family some of it by another. A campaign (publisher,
release, model) has an offset for each kind of figure, a setup in it another, and ways of its own in three things that
its rows do not state: how many clients send together, how tokens crowd on experts, and what stands in front.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.calibrate import linearised
from planner.calibrate.linearised import Column, Effects, Name, Problem, grouping
from planner.calibrate.mixed import Rows, Values, Variances
from planner.calibrate.serving_priors import (
    ESTIMATED,
    GROUPS,
    OFFSETS,
    SERVERS,
    SERVING_PRIORS,
    UNFITTED,
    WAYS_OF_A_CAMPAIGN,
)
from planner.carriers import dataclass
from planner.estimate.serving_constants import (
    MOVES,
    ONE_CARD,
    UNSTATED,
    ServingConstants,
    card_of,
    format_kind,
    sustained,
)
from planner.validate.folds import weights_of
from planner.validate.serving import METRICS, ServingBatch, layout_kind_of, protocol_of
from planner.validate.serving_entries import Entry
from planner.validate.serving_points import Point

NAMES = tuple(SERVING_PRIORS)
KINDS = tuple(f"{kind}{tail}" for kind in OFFSETS for tail in ("", " experts"))
STEPS, INNER, LAST = 5, 2, 8  # linearisations, tail weights at each, and steps of the variances at the last
_CLOSED = ("tpot", "ttft")


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Of each figure: what its coefficients and offsets are named after."""

    engine: Sequence[str]
    release: Sequence[str]  # with its engine
    family: Sequence[str]
    part: Sequence[str]
    pair: Sequence[str]
    format: Sequence[str]  # with its engine; "" for 16 bits
    layout: Sequence[str]  # "" inside one fast domain
    mixture: Sequence[str]  # the pair, of a model with experts; "" for dense ones
    card: Sequence[str]  # with its engine, of engines of one card; "" in servers
    protocol: Sequence[str]  # of a contest, whose rows are tuned for it; "" for all others
    campaign: Sequence[str]
    setup: Sequence[Hashable]
    kind: Sequence[str]  # with " experts" where the model has some
    experts: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Figures beside the entries that predict them, which lie in batches by kind of load."""

    batches: tuple[ServingBatch, ...]
    points: tuple[Point, ...]
    layouts: NDArray[np.intp]  # (points, most layouts of a row): entries of the row of each point
    point_of: NDArray[np.intp]  # a point of each entry's row
    labels: Labels

    @classmethod
    def of(cls, batches: Sequence[ServingBatch], points: Sequence[Point]) -> Sample:
        """Figures with the entries of their rows."""
        first: dict[int, int] = {}
        for i, point in enumerate(points):
            first.setdefault(point.position, i)
        kept: list[ServingBatch] = []
        for batch in batches:
            used = [i for i, entry in enumerate(batch.entries) if entry.row in first]
            kinds = dict.fromkeys(batch.entries[i].load.kind for i in used)
            for kind in kinds:
                own = [i for i in used if batch.entries[i].load.kind == kind]
                kept.append(batch.take(np.array(own, dtype=np.int64)))
        entries = [entry for batch in kept for entry in batch.entries]
        of_row: dict[int, list[int]] = {}
        for number, entry in enumerate(entries):
            of_row.setdefault(entry.row, []).append(number)
        most = max((len(of_row[point.position]) for point in points), default=1)
        padded = [(of_row[p.position] + [of_row[p.position][0]] * most)[:most] for p in points]
        layouts = np.array(padded, dtype=np.intp).reshape(len(points), most)
        return cls(
            batches=tuple(kept),
            points=tuple(points),
            layouts=layouts,
            point_of=np.array([first[entry.row] for entry in entries], dtype=np.intp),
            labels=_labels(points, [entries[own[0]] for own in layouts]),
        )

    @property
    def entries(self) -> list[Entry]:
        """Of all batches."""
        return [entry for batch in self.batches for entry in batch.entries]

    def take(self, chosen: NDArray[np.bool_]) -> Sample:
        """Some of the figures."""
        return Sample.of(self.batches, [p for p, mine in zip(self.points, chosen, strict=True) if mine])

    def __len__(self) -> int:
        """Figures."""
        return len(self.points)

    @property
    def log_measured(self) -> Values:
        """Logarithm of what was measured, in base units."""
        return np.log(np.array([point.measured for point in self.points], dtype=np.float64))

    def log_predicted(self, constants: ServingConstants) -> Values:
        """Logarithm of each figure; of several layouts that a row may have had, the fastest."""
        parts, begin = [], 0
        for batch in self.batches:
            end = begin + len(batch.entries)
            parts.append(batch.predict(_some(constants, slice(begin, end))))
            begin = end
        metric = np.array([point.metric for point in self.points])
        result = np.full(len(self), np.nan)
        for name in METRICS:
            mine = metric == name
            values = np.concatenate([part[name] for part in parts])[self.layouts[mine]]
            result[mine] = np.max(values, axis=1) if name == "output_tokens_per_s" else values[:, 0]
        with np.errstate(all="ignore"):
            return np.asarray(np.log(result))

    def moved(self, moved: Values) -> Values:
        """Logarithm of each figure with the constants moved by a logarithm each, (constants, points)."""
        return self.log_predicted(constants_of(moved[:, self.point_of]))


def constants_of(moved: Values) -> ServingConstants:
    """Constants at their expectation, moved by a logarithm each, (constants, entries)."""
    found = {name: SERVING_PRIORS[name].value * np.exp(own) for name, own in zip(NAMES, moved, strict=True)}
    return ServingConstants(name="fit", **sustained(found))


def _some(constants: ServingConstants, which: slice) -> ServingConstants:
    return ServingConstants(name=constants.name, **{name: getattr(constants, name)[which] for name in NAMES})


def _labels(points: Sequence[Point], entries: Sequence[Entry]) -> Labels:
    experts = np.array([entry.arch.is_moe for entry in entries], dtype=bool)
    kinds = [f"{point.band_kind}{' experts' if has else ''}" for point, has in zip(points, experts, strict=True)]
    campaigns = [" · ".join(map(str, point.campaign)) for point in points]
    formats = [format_kind(entry.weights, entry.device) for entry in entries]
    engines = [entry.engine or UNSTATED for entry in entries]
    pairs = [f"{engine} on {entry.device.family}" for entry, engine in zip(entries, engines, strict=True)]
    return Labels(
        engine=engines,
        release=[f"{engine} {point.release}" for point, engine in zip(points, engines, strict=True)],
        family=[entry.device.family for entry in entries],
        part=[entry.device.id for entry in entries],
        pair=pairs,
        format=[f"{engine} {own}" if own else "" for engine, own in zip(engines, formats, strict=True)],
        layout=[layout_kind_of(entry) for entry in entries],
        mixture=[pair if has else "" for pair, has in zip(pairs, experts, strict=True)],
        card=[card_of(engine, entry.device) for entry, engine in zip(entries, engines, strict=True)],
        protocol=[protocol_of(entry) for entry in entries],
        campaign=campaigns,
        setup=[
            (campaign, kind, entry.device.id, entry.weights, entry.split)
            for campaign, kind, entry in zip(campaigns, kinds, entries, strict=True)
        ],
        kind=kinds,
        experts=experts,
    )


def columns_of(labels: Labels) -> list[Column]:
    """Every coefficient, with the constants that it moves and its rows."""
    every = np.arange(len(labels.engine))
    found = [Column(name=("all", name), moves=((i, 1.0),), rows=every) for i, name in enumerate(NAMES)]
    closed = np.isin([kind.split()[0] for kind in labels.kind], _CLOSED)
    everywhere, experts = np.ones(len(every), dtype=bool), labels.experts
    where = {
        "engine host": ~np.isin(labels.engine, SERVERS),
        "engine prompt": np.isin(labels.engine, ONE_CARD),
        "card prompt": np.array([kind.split()[0] == "prompt" for kind in labels.kind]),
        "engine burst": closed,
        "engine request": closed,
        "engine experts": experts,
        "burst": closed,
        "skew": experts,
        "wait": closed,
    }
    named = dict.fromkeys(WAYS_OF_A_CAMPAIGN, labels.campaign)
    for group, (move, _) in GROUPS.items():
        names = np.array(named.get(group) or getattr(labels, group.split()[0]))
        mine = where.get(group, everywhere) & (names != "")
        moves = tuple((NAMES.index(name), float(power)) for name, power in MOVES[move].items())
        for name in sorted(set(names[mine].tolist())):
            found.append(Column(name=(group, name), moves=moves, rows=np.flatnonzero(mine & (names == name))))
    return found


def deviation(name: Name) -> float:
    """How far a coefficient is expected to go: a standard deviation of a logarithm."""
    return SERVING_PRIORS[name[1]].spread if name[0] == "all" else GROUPS[name[0]][1]


def problem_of(sample: Sample) -> Problem:
    """A sample as the fitting engine takes it."""
    return Problem(
        columns=columns_of(sample.labels),
        curve=sample.moved,
        moves=len(NAMES),
        rows=len(sample),
        deviation=deviation,
    )


def fitted_to(sample: Sample) -> NDArray[np.bool_]:
    """Which figures the fit is shown."""
    return ~np.isin([kind.split()[0] for kind in sample.labels.kind], UNFITTED)


def fit_serving(sample: Sample) -> Effects:
    """Coefficients, their covariance and the variances of all offsets, from figures that are fitted to."""
    kind = np.array([KINDS.index(name) for name in sample.labels.kind], dtype=np.intp)
    sources = list(zip(sample.labels.campaign, sample.labels.kind, strict=True))
    rows = Rows(
        weight=weights_of(sample.points),
        kind=kind,
        source=grouping(sources, kind),
        model=grouping(sample.labels.setup, kind),
    )
    guess = np.array([OFFSETS[name.split()[0]] for name in KINDS]) ** 2
    return linearised.fit(
        problem_of(sample),
        sample.log_measured,
        rows,
        Variances(source=guess[:, 0], model=guess[:, 1], scatter=guess[:, 2]),
        steps=STEPS,
        inner=INNER,
        last=LAST,
        estimated=ESTIMATED,
        odd_sources=True,
    )
