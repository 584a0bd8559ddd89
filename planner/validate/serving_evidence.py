"""What docs/validation.md reports of serving, worked out once: figures, verdicts, bands, and what stands in the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from planner.carriers import dataclass
from planner.validate.evidence import BAND, COVERAGE, DEVICE_SLACK, SLACK, Figure
from planner.validate.judgement import cluster_interval, interval_score, one_band_score
from planner.validate.score import by_name, summarise
from planner.validate.serving import ServingPrediction, batch_of
from planner.validate.serving_entries import Entry
from planner.validate.serving_result import coverage_of, figures_of, memory_fit, said_of
from planner.validate.serving_rows import ServingRow
from planner.validate.serving_score import (
    QUANTITIES,
    Folds,
    ScoredPoint,
    ServingFold,
    ServingVerdict,
    campaigns_of_pairs,
    judge_serving,
    score_points,
)

ACCEPTED = 0.99  # of cells that ran
MANY_CAMPAIGNS = 8  # of a pair, from which its bands are judged


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingEvidence:
    """Rows with a prediction by the shipped constants, and every figure as predicted without what it shares."""

    rows: Sequence[ServingRow]
    entries: Sequence[Entry]
    shipped: Sequence[ServingPrediction]
    folds: Folds  # campaign | device

    def scored(self) -> list[ScoredPoint]:
        """Figures that count, with the shipped constants: in-sample."""
        points = figures_of(self.rows, batch_of(self.entries) if self.entries else None)
        return score_points(points, [said_of(self.shipped, point) for point in points], self.entries)


def serving_verdicts(evidence: ServingEvidence) -> list[ServingVerdict]:
    """The bars that hold errors."""
    return judge_serving(evidence.folds)


def serving_figures(evidence: ServingEvidence) -> list[Figure]:
    """Every figure to reach, with what was reached."""
    errors = [_of_verdict(verdict) for verdict in serving_verdicts(evidence)]
    return [*_of_bands(evidence.folds), *errors, *_of_memory(evidence), _of_coverage(evidence)]


def _of_verdict(verdict: ServingVerdict) -> Figure:
    own, other = verdict.errors, verdict.without_device
    detail = ""
    if own is not None:
        detail = f"{own.configurations:,.0f} configurations of {own.campaigns} campaigns, bias {100 * own.bias:+.1f} %"
    if other is not None:
        detail += f"; without the device {100 * getattr(other, verdict.bar.statistic):.1f} %"
    return Figure(
        name=verdict.bar.name,
        rows=own.rows if own else 0,
        value=verdict.value,
        limit=f"≤ {100 * verdict.bar.limit:.0f} %",
        reached=verdict.reached,
        detail=detail,
    )


def _of_bands(folds: Folds) -> list[Figure]:
    """How often a band p10 to p90 holds what a campaign or device that was not seen measured."""
    found = []
    for name, slack in (("campaign", SLACK), ("device", DEVICE_SLACK)):
        fold = folds[name]
        for kind, words in QUANTITIES.items():
            found += _of_cover(f"{words} in its band, without the {name}", fold, fold.of_bands(kind), slack)
    fold = folds["campaign"]
    for (engine, family), campaigns in sorted(campaigns_of_pairs(fold).items()):
        if campaigns >= MANY_CAMPAIGNS:
            mine = fold.of_bands(*QUANTITIES, pair=(engine, family))
            found += _of_cover(f"{engine} on {family} in its band, {campaigns} campaigns", fold, mine, DEVICE_SLACK)
    every = fold.judged.chosen(fold.of_bands(*QUANTITIES))
    if len(every.error):
        own, flat = interval_score(every), one_band_score(every)
        found.append(
            Figure(
                name="interval score of the bands (Winkler, of the logarithm)",
                rows=len(every.error),
                value=own,
                limit=f"< {100 * flat:.1f} %, of one band for all rows",
                reached=own < flat,
            )
        )
    return found


def _of_cover(name: str, fold: ServingFold, which: np.ndarray, slack: float) -> list[Figure]:
    if not which.any():
        return []
    own = fold.judged.chosen(which)
    inside = own.inside.astype(float)
    share = float(np.average(inside, weights=own.weight))
    low, high = cluster_interval(inside, own.weight, own.cluster)
    return [
        Figure(
            name=name,
            rows=len(inside),
            value=share,
            limit=f"{100 * BAND:.0f} ± {100 * slack:.0f} %",
            reached=abs(share - BAND) <= slack,
            detail=f"{100 * low:.0f} to {100 * high:.0f} % when campaigns are drawn again",
        )
    ]


def _of_memory(evidence: ServingEvidence) -> list[Figure]:
    found = memory_fit(evidence.rows, evidence.shipped)
    refused = found.refused / found.out_of_memory if found.out_of_memory else None
    return [
        Figure(
            name="memory fit, cells out of memory refused",
            rows=found.out_of_memory,
            value=refused,
            limit="100 %",
            reached=None if refused is None else refused == 1.0,
        ),
        Figure(
            name="memory fit, cells that ran accepted",
            rows=found.fitting,
            value=found.accepted_share,
            limit=f"≥ {100 * ACCEPTED:.0f} %",
            reached=found.accepted_share >= ACCEPTED,
        ),
    ]


def _of_coverage(evidence: ServingEvidence) -> Figure:
    found = coverage_of(evidence.rows, evidence.shipped)
    return Figure(
        name="coverage of serving rows",
        rows=found.rows,
        value=found.share,
        limit=f"≥ {100 * COVERAGE:.0f} %",
        reached=found.share >= COVERAGE,
        best_known="138 of 190 (aiconfigurator)",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingObstacle:
    """Figures of one source, model and device, and how much of a bar's error they hold."""

    source: str
    model: str
    device: str
    rows: int
    mean: float
    bias: float
    share: float  # of the summed absolute error


def serving_obstacles(scored: Sequence[ScoredPoint], most: int = 6) -> list[ServingObstacle]:
    """Where most of the error of some figures comes from."""
    parts: dict[tuple[str, str, str], list[ScoredPoint]] = {}
    for item in scored:
        parts.setdefault((item.source, item.row.model or "", item.point.device), []).append(item)
    whole = sum(abs(item.error) for item in scored) or 1.0
    found = [_obstacle(key, part, whole) for key, part in parts.items()]
    return sorted(found, key=lambda one: (-one.share, one.source, one.model, one.device))[:most]


def _obstacle(key: tuple[str, str, str], part: Sequence[ScoredPoint], whole: float) -> ServingObstacle:
    own = summarise(part)
    source, model, device = key
    return ServingObstacle(
        source=source,
        model=model,
        device=device,
        rows=own.rows,
        mean=own.mean,
        bias=own.bias,
        share=own.mean * own.rows / whole,
    )


def kind_errors(scored: Sequence[ScoredPoint]) -> dict[str, dict[str, float]]:
    """Mean absolute error and number of figures by kind."""
    parts = {kind: summarise(part) for kind, part in sorted(by_name(scored, lambda item: item.kind).items())}
    return {kind: {"rows": own.rows, "mean": round(own.mean, 6)} for kind, own in parts.items()}


def refused_rows(rows: Sequence[ServingRow], shipped: Sequence[ServingPrediction]) -> list[str]:
    """Names of the rows without a prediction."""
    return [row.name for row, said in zip(rows, shipped, strict=True) if said.skipped]


def accepted_serving(evidence: ServingEvidence) -> Mapping[str, Any]:
    """What `make test` holds the code to, as `planner.validate.evidence.accepted` for training."""
    return {
        "serving": kind_errors(evidence.scored()),
        "serving_refused": refused_rows(evidence.rows, evidence.shipped),
        "serving_figures": {figure.name: [figure.value, figure.reached] for figure in serving_figures(evidence)},
    }
