"""Errors of serving predictions, figure by figure, and the figures that they are held to.

An error is predicted / measured - 1 of one figure of one row. A row may have several figures; each has a kind, by what
it is and by how load was applied. They are held to bars on campaigns that the constants have not seen: a campaign is a
publication, a release of an engine, and a model; a configuration weighs one however often it was published. The same
figures without a whole device stand beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.validate.judgement import Judged, interval_score, one_band_score, weighted_quantile
from planner.validate.score import FEWEST_ROWS, Summary, by_name, summarise
from planner.validate.serving_entries import Entry
from planner.validate.serving_points import Point
from planner.validate.serving_rows import ServingRow

_CARDS = ("rtx-", "geforce-", "quadro-", "titan-")  # ids of cards for desks and workstations
_OLD_ENGINES = ("fastertransformer",)

TPOT, TTFT = "TPOT, closed loop", "TTFT, closed loop"
OPEN_TPOT, OPEN_TTFT = "TPOT, open loop", "TTFT, open loop"
OFFLINE = "output throughput, offline tables"
MLPERF_OFFLINE, MLPERF_SERVER = "throughput, MLPerf Offline", "throughput, MLPerf Server"
MLPERF_INTERACTIVE = "throughput, MLPerf Interactive"
STATIC, CARDS = "latency, static batches of 2022 engines on A100", "batch-1 decode, consumer and workstation cards"
OTHER_SINGLE, OTHER_STATIC = "batch-1 decode, other devices", "latency, other static batches"
PEAK, BURST = "throughput, best static batch", "throughput, all requests at once"
STATIC_TPOT, FIRST = "TPOT, static batches", "TTFT, static batches and single prompts"
CLOSED_RATE, OPEN_RATE = "throughput, closed loop", "throughput, open loop"
ANSWER = "latency of requests, closed and open loops"
PEAK_MEMORY, PROMPT = "peak memory", "prompt throughput, batch 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPoint:
    """One figure that counts, with what was predicted for it."""

    point: Point
    predicted: float
    engine: str
    family: str  # of the catalog
    device_id: str

    @property
    def row(self) -> ServingRow:
        """The row of the figure."""
        return self.point.row

    @property
    def measured(self) -> float:
        """The figure, in base units."""
        return self.point.measured

    @property
    def target(self) -> float:
        """What the prediction is held against: the figure itself."""
        return self.point.measured

    @property
    def error(self) -> float:
        """Predicted over measured, less one: a share with its sign."""
        return self.predicted / self.point.measured - 1

    @property
    def source(self) -> str:
        """Publication of the row."""
        return self.point.source

    @property
    def configuration(self) -> Hashable:
        """What two figures share when they are of the same run in everything that a prediction may read."""
        return self.point.configuration

    @property
    def kind(self) -> str:
        """Which figures it is judged with."""
        return _KINDS.get((self.point.metric, self.row.load)) or _by_device(self)


_KINDS = {
    ("tpot_s", "closed"): TPOT,
    ("tpot_s", "static"): STATIC_TPOT,
    ("ttft_s", "closed"): TTFT,
    ("tpot_s", "open"): OPEN_TPOT,
    ("ttft_s", "open"): OPEN_TTFT,
    ("ttft_s", "static"): FIRST,
    ("ttft_s", "first"): FIRST,
    ("output_tokens_per_s", "offline"): OFFLINE,
    ("output_tokens_per_s", "peak"): PEAK,
    ("output_tokens_per_s", "static"): PEAK,
    ("output_tokens_per_s", "burst"): BURST,
    ("output_tokens_per_s", "closed"): CLOSED_RATE,
    ("output_tokens_per_s", "open"): OPEN_RATE,
    ("batch_latency_s", "closed"): ANSWER,
    ("batch_latency_s", "open"): ANSWER,
}
_APART = {"peak_memory_bytes": PEAK_MEMORY, "prefill_tokens_per_s": PROMPT}


_MLPERF = (("offline", MLPERF_OFFLINE), ("interactive", MLPERF_INTERACTIVE))


def _by_device(item: ScoredPoint) -> str:
    if item.row.load == "mlperf":
        text = (item.row.scenario or "").lower()
        return next((kind for word, kind in _MLPERF if word in text), MLPERF_SERVER)
    if item.point.metric == "batch_latency_s":
        old = any(name in (item.row.engine or "").lower() for name in _OLD_ENGINES)
        return STATIC if old and item.device_id.startswith("a100") else OTHER_STATIC
    if item.point.metric in _APART:
        return _APART[item.point.metric]
    if item.row.load == "single":
        return CARDS if item.device_id.startswith(_CARDS) else OTHER_SINGLE
    return f"{item.point.metric}, {item.row.load}"


def score_points(
    points: Sequence[Point], predicted: Sequence[float | None] | np.ndarray, entries: Sequence[Entry]
) -> list[ScoredPoint]:
    """Every figure that counts and has a prediction.

    Parameters
    ----------
    points, predicted
        One number a figure, in the same order; nan or None where there is none.
    entries
        As `entries_of` gives them: the engine and the device of each row.
    """
    first: dict[int, Entry] = {}
    for entry in entries:
        first.setdefault(entry.row, entry)
    return [
        ScoredPoint(
            point=point,
            predicted=float(said),
            engine=first[point.position].engine,
            family=first[point.position].device.family,
            device_id=first[point.position].device.id,
        )
        for point, said in zip(points, predicted, strict=True)
        if said is not None and np.isfinite(said) and not point.left_out
    ]


GROUPS: Mapping[str, Callable[[ScoredPoint], str]] = {
    "source": lambda item: item.source or "unstated",
    "engine": lambda item: item.engine or "unstated",
    "device": lambda item: item.device_id,
}


def kind_summaries(scored: Sequence[ScoredPoint]) -> dict[str, list[Summary]]:
    """By kind of figure: all of them, then by source, engine and device."""
    return {
        kind: [summarise(part), *_parts(part)] for kind, part in sorted(by_name(scored, lambda item: item.kind).items())
    }


def _parts(part: Sequence[ScoredPoint]) -> list[Summary]:
    return [
        summarise(own, group, name)
        for group, name_of in GROUPS.items()
        for name, own in sorted(by_name(part, name_of).items())
    ]


FOLDS = ("campaign", "device")
QUANTITIES = {"tpot": "TPOT", "ttft": "TTFT", "throughput": "throughput"}  # that have bands in plans


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFold:
    """Figures as predicted without their campaign or device, each beside its band."""

    scored: Sequence[ScoredPoint]
    judged: Judged  # groups: engine, family, kind of band, dense or experts

    def chosen(self, which: Callable[[ScoredPoint], bool]) -> NDArray[np.bool_]:
        """Which figures something holds of."""
        return np.array([which(item) for item in self.scored], dtype=bool)

    def of_kinds(self, *kinds: str) -> NDArray[np.bool_]:
        """Which figures are of some kinds."""
        return self.chosen(lambda item: item.kind in kinds)

    def of_bands(self, *kinds: str, pair: tuple[str, str] | None = None) -> NDArray[np.bool_]:
        """Which figures have bands of some kinds, of all pairs of engine and family or of one."""
        return self.chosen(lambda item: item.point.band_kind in kinds and pair in (None, (item.engine, item.family)))


Folds = Mapping[str, ServingFold]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingErrors:
    """Errors of some figures, predicted over measured less one, a configuration weighing one."""

    rows: int
    configurations: float
    campaigns: int
    median: float
    mean: float
    p90: float
    bias: float  # median with its sign
    coverage: float
    winkler: float
    one_band: float  # the same score of one band for all of these figures, drawn with them in view


def errors_of_fold(fold: ServingFold, which: NDArray[np.bool_]) -> ServingErrors | None:
    """The errors of some figures of a fold; None without one."""
    if not which.any():
        return None
    own = fold.judged.chosen(which)
    signed = np.expm1(own.error)
    sizes = np.abs(signed)
    return ServingErrors(
        rows=int(which.sum()),
        configurations=float(own.weight.sum()),
        campaigns=len({item.point.campaign for item, mine in zip(fold.scored, which, strict=True) if mine}),
        median=weighted_quantile(sizes, own.weight, 0.5),
        mean=float(np.average(sizes, weights=own.weight)),
        p90=weighted_quantile(sizes, own.weight, 0.9),
        bias=weighted_quantile(signed, own.weight, 0.5),
        coverage=float(np.average(own.inside, weights=own.weight)),
        winkler=interval_score(own),
        one_band=one_band_score(own),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingBar:
    """One figure to reach, over the figures of some kinds."""

    name: str
    kinds: tuple[str, ...]
    statistic: str  # a field of ServingErrors
    limit: float  # a share


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingVerdict:
    """A bar with what was reached; `reached` is None when the rows are too few to say."""

    bar: ServingBar
    errors: ServingErrors | None
    without_device: ServingErrors | None
    value: float | None
    reached: bool | None


BARS = (
    ServingBar(name="TPOT, closed loop, median", kinds=(TPOT,), statistic="median", limit=0.14),
    ServingBar(name="TPOT, closed loop, p90", kinds=(TPOT,), statistic="p90", limit=0.38),
    ServingBar(name="TTFT, closed loop within memory, median", kinds=(TTFT,), statistic="median", limit=0.27),
    ServingBar(name="TTFT, closed loop within memory, mean", kinds=(TTFT,), statistic="mean", limit=0.55),
    ServingBar(name="throughput, offline tables, median", kinds=(OFFLINE,), statistic="median", limit=0.12),
    ServingBar(name="MLPerf Offline, median", kinds=(MLPERF_OFFLINE,), statistic="median", limit=0.18),
    ServingBar(name="MLPerf Server, median", kinds=(MLPERF_SERVER,), statistic="median", limit=0.20),
    ServingBar(name="MLPerf Interactive, median", kinds=(MLPERF_INTERACTIVE,), statistic="median", limit=0.33),
    *(
        ServingBar(
            name=f"static batches, latency, {statistic}",
            kinds=(STATIC, OTHER_STATIC),
            statistic=statistic,
            limit=limit,
        )
        for statistic, limit in (("median", 0.14), ("mean", 0.20))
    ),
    ServingBar(name="piles at once, throughput, median", kinds=(BURST,), statistic="median", limit=0.40),
    ServingBar(name="open loops, TPOT, median", kinds=(OPEN_TPOT,), statistic="median", limit=0.18),
    ServingBar(name="open loops, TTFT, median", kinds=(OPEN_TTFT,), statistic="median", limit=0.35),
    ServingBar(name="decode of one card, median", kinds=(CARDS, OTHER_SINGLE), statistic="median", limit=0.08),
    ServingBar(name="prompt speed of one card, median", kinds=(PROMPT,), statistic="median", limit=0.35),
)


def judge_serving(folds: Folds, bars: Sequence[ServingBar] = BARS) -> list[ServingVerdict]:
    """Each bar held against the figures of its kinds, without their campaigns."""
    return [_verdict(bar, folds) for bar in bars]


def _verdict(bar: ServingBar, folds: Folds) -> ServingVerdict:
    campaign, device = (errors_of_fold(folds[name], folds[name].of_kinds(*bar.kinds)) for name in FOLDS)
    value = None if campaign is None else float(getattr(campaign, bar.statistic))
    enough = campaign is not None and campaign.rows >= FEWEST_ROWS
    return ServingVerdict(
        bar=bar,
        errors=campaign,
        without_device=device,
        value=value,
        reached=value <= bar.limit if enough and value is not None else None,
    )


def campaigns_of_pairs(fold: ServingFold) -> dict[tuple[str, str], int]:
    """Campaigns of every pair of engine and device family."""
    seen = {
        (item.engine, item.family, item.point.campaign) for item in fold.scored if item.point.band_kind in QUANTITIES
    }
    return dict(Counter((engine, family) for engine, family, _ in seen))
