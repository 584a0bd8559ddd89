"""The figures that serving predictions are held to, on campaigns that the constants have not seen.

A campaign is a publication, a release of an engine, and a model; a configuration weighs one however often it was
published. The same figures without a whole device stand beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.validate import serving_score as kinds
from planner.validate.judgement import Judged, interval_score, one_band_score, weighted_quantile
from planner.validate.serving_score import ScoredPoint
from planner.validate.summary import FEWEST_ROWS

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
    ServingBar(name="TPOT, closed loop, median", kinds=(kinds.TPOT,), statistic="median", limit=0.14),
    ServingBar(name="TPOT, closed loop, p90", kinds=(kinds.TPOT,), statistic="p90", limit=0.38),
    ServingBar(name="TTFT, closed loop within memory, median", kinds=(kinds.TTFT,), statistic="median", limit=0.27),
    ServingBar(name="TTFT, closed loop within memory, mean", kinds=(kinds.TTFT,), statistic="mean", limit=0.55),
    ServingBar(name="throughput, offline tables, median", kinds=(kinds.OFFLINE,), statistic="median", limit=0.12),
    ServingBar(name="MLPerf Offline, median", kinds=(kinds.MLPERF_OFFLINE,), statistic="median", limit=0.18),
    ServingBar(name="MLPerf Server, median", kinds=(kinds.MLPERF_SERVER,), statistic="median", limit=0.20),
    ServingBar(name="MLPerf Interactive, median", kinds=(kinds.MLPERF_INTERACTIVE,), statistic="median", limit=0.33),
    *(
        ServingBar(
            name=f"static batches, latency, {statistic}",
            kinds=(kinds.STATIC, kinds.OTHER_STATIC),
            statistic=statistic,
            limit=limit,
        )
        for statistic, limit in (("median", 0.14), ("mean", 0.20))
    ),
    ServingBar(name="piles at once, throughput, median", kinds=(kinds.BURST,), statistic="median", limit=0.40),
    ServingBar(name="open loops, TPOT, median", kinds=(kinds.OPEN_TPOT,), statistic="median", limit=0.18),
    ServingBar(name="open loops, TTFT, median", kinds=(kinds.OPEN_TTFT,), statistic="median", limit=0.35),
    ServingBar(
        name="decode of one card, median", kinds=(kinds.CARDS, kinds.OTHER_SINGLE), statistic="median", limit=0.08
    ),
    ServingBar(name="prompt speed of one card, median", kinds=(kinds.PROMPT,), statistic="median", limit=0.35),
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
