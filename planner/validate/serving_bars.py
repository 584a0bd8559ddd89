"""The figures that serving predictions are held to: each is the worst over what the fit was not shown.

A fold predicts every figure by constants fitted without its device, without its model, or without its publication;
the last only counts where the figures of a kind come from two publications or more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.carriers import dataclass
from planner.validate import serving_score as kinds
from planner.validate.serving_score import ScoredPoint
from planner.validate.summary import FEWEST_ROWS, Summary, by_name, summarise

FOLDS = ("device", "model", "source")
Folds = Mapping[str, Sequence[ScoredPoint]]  # fold -> figures as predicted without it


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingBar:
    """One figure to reach, over the figures of a kind."""

    name: str
    kind: str
    statistic: str  # a field of Summary
    limit: float  # a share
    best_known: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingVerdict:
    """A bar with what each fold reached; `reached` is None when the rows are too few to say."""

    bar: ServingBar
    folds: Mapping[str, Summary]
    worst: str  # fold that decides; "" without rows
    sources: Mapping[str, Summary]  # in the fold that decides
    value: float | None
    reached: bool | None


BARS = (
    ServingBar(
        name="TPOT, closed loop, median",
        kind=kinds.TPOT,
        statistic="median",
        limit=0.11,
        best_known="14.0 % (prototype); 20.4 % (aiconfigurator)",
    ),
    ServingBar(
        name="TPOT, closed loop, mean",
        kind=kinds.TPOT,
        statistic="mean",
        limit=0.18,
        best_known="20.0 % (prototype); 30.0 % (aiconfigurator)",
    ),
    ServingBar(
        name="TTFT, closed loop, batch within memory, median",
        kind=kinds.TTFT,
        statistic="median",
        limit=0.28,
        best_known="34.8 % (prototype); 54 % (aiconfigurator)",
    ),
    ServingBar(
        name="output throughput, offline tables, median",
        kind=kinds.OFFLINE,
        statistic="median",
        limit=0.13,
        best_known="16.1 % (prototype)",
    ),
    ServingBar(name="throughput, MLPerf server and offline, median", kind=kinds.MLPERF, statistic="median", limit=0.20),
    ServingBar(
        name="latency, static batches of 2022 engines on A100, median",
        kind=kinds.STATIC,
        statistic="median",
        limit=0.12,
    ),
    ServingBar(
        name="batch-1 decode, consumer and workstation cards, median",
        kind=kinds.CARDS,
        statistic="median",
        limit=0.12,
        best_known="28.6 % (LLM-Viewer, on other rows)",
    ),
)


def judge_serving(folds: Folds, bars: Sequence[ServingBar] = BARS) -> list[ServingVerdict]:
    """Each bar held against the figures of its kind, fold by fold."""
    return [_verdict(bar, folds) for bar in bars]


def _verdict(bar: ServingBar, folds: Folds) -> ServingVerdict:
    parts = counted_folds(bar.kind, folds)
    if not parts:
        return ServingVerdict(bar=bar, folds={}, worst="", sources={}, value=None, reached=None)
    summaries = {fold: summarise(part, "fold", fold) for fold, part in parts.items()}
    worst = max(summaries, key=lambda fold: float(getattr(summaries[fold], bar.statistic)))
    by_source = by_name(parts[worst], lambda item: item.source)
    value = float(getattr(summaries[worst], bar.statistic))
    enough = min(summary.rows for summary in summaries.values()) >= FEWEST_ROWS
    return ServingVerdict(
        bar=bar,
        folds=summaries,
        worst=worst,
        sources={name: summarise(part, "source", name) for name, part in sorted(by_source.items())},
        value=value,
        reached=value <= bar.limit if enough else None,
    )


def counted_folds(kind: str, folds: Folds) -> dict[str, list[ScoredPoint]]:
    """The figures of a kind in every fold that counts for it."""
    parts = {fold: [item for item in folds.get(fold, ()) if item.kind == kind] for fold in FOLDS}
    several = len({item.source for part in parts.values() for item in part}) > 1
    return {fold: part for fold, part in parts.items() if part and (fold != "source" or several)}
