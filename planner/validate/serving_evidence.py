"""What docs/validation.md reports of serving, worked out once: figures, verdicts, bands, and what stands in the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from planner.carriers import dataclass
from planner.validate.evidence import BAND, COVERAGE, SLACK, Figure
from planner.validate.serving import Entry, ServingPrediction, batch_of
from planner.validate.serving_bars import Folds, ServingVerdict, judge_serving
from planner.validate.serving_result import (
    BAND_OF,
    Bands,
    coverage_of,
    figures_of,
    memory_fit,
    said_of,
    share_in_bands,
)
from planner.validate.serving_rows import ServingRow
from planner.validate.serving_score import ScoredPoint, score_points
from planner.validate.summary import FEWEST_ROWS, by_name, summarise

ACCEPTED = 0.95  # of cells that ran


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingEvidence:
    """Rows with a prediction by the shipped constants, and every figure as predicted without what it shares."""

    rows: Sequence[ServingRow]
    entries: Sequence[Entry]
    shipped: Sequence[ServingPrediction]
    folds: Folds  # device | model | source -> figures, by constants fitted without it
    bands: Bands

    def scored(self) -> list[ScoredPoint]:
        """Figures that count, with the shipped constants."""
        points = figures_of(self.rows, batch_of(self.entries) if self.entries else None)
        return score_points(points, [said_of(self.shipped, point) for point in points], self.entries)


def serving_verdicts(evidence: ServingEvidence) -> list[ServingVerdict]:
    """The bars that hold errors."""
    return judge_serving(evidence.folds)


def serving_figures(evidence: ServingEvidence) -> list[Figure]:
    """Every figure to reach, with what was reached."""
    found = [_of_verdict(verdict) for verdict in serving_verdicts(evidence)]
    return [*found, *_of_memory(evidence), _of_coverage(evidence), _of_bands(evidence)]


def _of_verdict(verdict: ServingVerdict) -> Figure:
    statistic = verdict.bar.statistic
    other = "mean" if statistic == "median" else "median"
    apart = [f"{fold} {100 * getattr(own, statistic):.1f} %" for fold, own in verdict.folds.items()]
    worst = verdict.folds.get(verdict.worst)
    detail = ""
    if worst is not None:
        detail = f"without the {', the '.join(apart)}; {other} {100 * getattr(worst, other):.1f} %"
    return Figure(
        name=verdict.bar.name,
        rows=worst.rows if worst else 0,
        value=verdict.value,
        limit=f"≤ {100 * verdict.bar.limit:.0f} %",
        reached=verdict.reached,
        detail=detail,
        best_known=verdict.bar.best_known,
    )


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


def _of_bands(evidence: ServingEvidence) -> Figure:
    held = [item for part in evidence.folds.values() for item in part]
    inside, rows = share_in_bands(held, evidence.bands)
    share = inside / rows if rows else None
    detail = [f"{name} {100 * _share(held, name, evidence.bands):.0f} %" for name in evidence.bands]
    crossed = share_in_crossed_bands(evidence.folds)
    if crossed is not None:
        detail.append(f"{100 * crossed:.1f} % when the band, too, is drawn without what the fold leaves out")
    return Figure(
        name="left-out figures within their p10-p90 band",
        rows=rows,
        value=share,
        limit=f"{100 * BAND:.0f} ± {100 * SLACK:.0f} %",
        reached=None if share is None else abs(share - BAND) <= SLACK,
        detail="; ".join(detail),
    )


def _share(held: Sequence[ScoredPoint], name: str, bands: Bands) -> float:
    inside, rows = share_in_bands([item for item in held if BAND_OF.get(item.kind) == name], bands)
    return inside / rows if rows else float("nan")


def share_in_crossed_bands(folds: Folds) -> float | None:
    """Share of figures within the p10-p90 of those that do not share what their fold leaves out.

    Bands are drawn from the very figures that they are judged on: this is the harder test of them.
    """
    inside: list[bool] = []
    for fold, part in folds.items():
        for own in by_name([item for item in part if item.kind in BAND_OF], lambda one: BAND_OF[one.kind]).values():
            keys = np.array([_key(item, fold) for item in own])
            ratios = np.array([item.measured / item.predicted for item in own])
            for key in sorted(set(keys)):
                others = ratios[keys != key]
                if len(others) >= FEWEST_ROWS:
                    low, high = np.quantile(others, (0.1, 0.9))
                    inside += ((ratios[keys == key] >= low) & (ratios[keys == key] <= high)).tolist()
    return sum(inside) / len(inside) if inside else None


def _key(item: ScoredPoint, fold: str) -> str:
    return str(getattr(item.point, fold))


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
