"""Fits the constants of serving as a mixed model in logarithms of times and rates.

A constant is common to all engines and devices; an engine, its releases, a device family, its parts and the pair of
engine and family move all work by a factor each, an engine and a family some of it by another. A campaign (publisher,
release, model) has an offset for each kind of figure, a setup in it another, and ways of its own in three things that
its rows do not state: how many clients send together, how tokens crowd on experts, and what stands in front.

What is expected before any row is seen is an engineer's round figure: the share of memory bandwidth that a streaming
read reaches, five microseconds for a kernel launch, ten for an all-reduce of a few kilobytes over NVLink. Spreads of
the logarithm are wide, so that the rows decide; nothing is expected of one engine or device and not of another.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from planner.calibrate import mixed_model
from planner.calibrate.mixed_model import Column, Effects, Name, Problem, Rows, Values, Variances, grouping
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
from planner.validate.judgement import weights_of
from planner.validate.serving import METRICS, ServingBatch, layout_kind_of, protocol_of
from planner.validate.serving_entries import Entry
from planner.validate.serving_points import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Expectation of one constant and spread of its logarithm."""

    value: float
    spread: float
    meaning: str


SERVING_PRIORS: Mapping[str, Expected] = MappingProxyType(
    {
        "bandwidth": Expected(value=0.85, spread=0.10, meaning="share of the memory bandwidth, weights"),
        "cache_bandwidth": Expected(value=0.80, spread=0.14, meaning="the same, reading the cache"),
        "expert_bandwidth": Expected(value=0.80, spread=0.14, meaning="the same, reading experts"),
        "compute": Expected(value=0.65, spread=0.14, meaning="share of the peak, linear products"),
        "prompt_compute": Expected(value=1.00, spread=0.01, meaning="of that, for prompts"),
        "low_precision": Expected(value=0.85, spread=0.07, meaning="of what 8 bits promise beyond 16"),
        "unpack": Expected(value=0.80, spread=0.20, meaning="of products whose weights are unpacked first"),
        "expert_compute": Expected(value=0.30, spread=0.21, meaning="share of the peak, grouped products"),
        "attention_compute": Expected(value=0.25, spread=0.21, meaning="share of the peak, attention"),
        "link": Expected(value=0.65, spread=0.14, meaning="share of the links"),
        "pcie": Expected(value=0.50, spread=0.20, meaning="share of links over PCIe"),
        "routing_skew": Expected(value=0.30, spread=0.21, meaning="share of tokens that visit experts visited"),
        "kernel_unit_s": Expected(value=50e-6, spread=0.21, meaning="launching ten kernels  [s]"),
        "collective_s": Expected(value=10e-6, spread=0.28, meaning="a collective of a few bytes  [s]"),
        "step_s": Expected(value=200e-6, spread=0.35, meaning="the engine's loop, once a step  [s]"),
        "sequence_unit_s": Expected(value=0.25e-6, spread=0.35, meaning="a sequence and ten kernels  [s]"),
        "prompt_step_s": Expected(value=2e-3, spread=0.35, meaning="a step that holds prompts  [s]"),
        "prompt_unit_s": Expected(value=80e-6, spread=0.28, meaning="ten kernels of such a step  [s]"),
        "request_s": Expected(value=30e-3, spread=0.35, meaning="a request outside the engine  [s]"),
        "front_request_s": Expected(value=4e-3, spread=0.30, meaning="a request in the server before the engine  [s]"),
        "front_token_s": Expected(value=50e-6, spread=0.30, meaning="a token of its answer there  [s]"),
        "burst": Expected(value=0.30, spread=0.35, meaning="clients of a closed loop that send at once"),
    }
)
# Groups of coefficients: what each moves (`serving_constants.MOVES`), and how far it is expected to go.
GROUPS: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        "engine": ("work", 0.10),
        "engine host": ("host", 0.50),
        "engine prompt": ("prompt", 1.00),
        "engine burst": ("burst", 0.50),
        "engine request": ("request", 0.60),
        "engine experts": ("experts", 0.15),
        "release": ("work", 0.03),
        "family": ("work", 0.08),
        "part": ("work", 0.03),
        "pair": ("work", 0.08),
        "format": ("work", 0.10),
        "layout": ("work", 0.20),
        "mixture": ("work", 0.10),
        "protocol": ("work", 0.10),
        "card": ("work", 0.15),
        "card prompt": ("prompt", 0.50),
        "burst": ("burst", 0.40),
        "skew": ("skew", 0.25),
        "wait": ("request", 0.60),
    }
)
# What its rows do not state: clients that send at once, tokens that crowd on experts, what is in front of the engine.
WAYS_OF_A_CAMPAIGN = ("burst", "skew", "wait")
# Servers of today replay graphs of kernels and differ little in it; engines of static batches and of one card launch
# in ways of their own.
SERVERS = ("vllm", "sglang", "trt-llm", "tgi", "mindie")
# Whose deviation the rows decide; the guess weighs as four of them
ESTIMATED = ("engine", "family", "pair", "format", "mixture")
# By kind of figure: deviations of the offset of a campaign, of a setup in it, and of the scatter. What a figure weighs
# in the fit is by these; bands are by what is estimated of them. Those of steady loads are half of the scatter: what a
# campaign's rows have in common is explained by its engine and device first. Piles, open loops and rates under limits
# are not fitted to: their queues hide the engine.
OFFSETS: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {
        "tpot": (0.04, 0.04, 0.08),
        "ttft": (0.06, 0.12, 0.20),
        "throughput": (0.04, 0.04, 0.08),
        "served": (0.12, 0.10, 0.08),
        "static": (0.12, 0.08, 0.06),
        "first": (0.20, 0.15, 0.10),
        "single": (0.06, 0.06, 0.05),
        "prompt": (0.05, 0.30, 0.25),
        "timely": (0.20, 0.15, 0.15),
        "pile": (0.30, 0.15, 0.20),
        "open": (0.25, 0.15, 0.20),
    }
)
UNFITTED = ("timely", "pile", "open")
DISAGGREGATED = 0.30  # deviation of pools that send each other caches: no row is of one


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
    return mixed_model.fit(
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
