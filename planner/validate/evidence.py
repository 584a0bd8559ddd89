"""Everything that docs/validation.md reports, worked out once: errors, verdicts, and what stands in their way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from planner.carriers import dataclass
from planner.validate.bars import KORTHIKANTI, MEMORY_BARS, TIME_BARS, Verdict, judge
from planner.validate.rows import MeasuredRow
from planner.validate.score import Predicted, Scored, coverage, score_memory, score_step_times, share_in_band
from planner.validate.summary import FEWEST_ROWS, summarise

COVERAGE = 0.97
BAND, BAND_SLACK = 0.80, 0.07
TOTALS_LIMITS = {"rule": 0.25, "analytic": 0.18}
GROWTH = 0.05  # by which share a family's error may grow before `make test` fails


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Rows with two predictions each, and the checks that need a fit of their own."""

    rows: Sequence[MeasuredRow]
    shipped: Sequence[Predicted]  # constants fitted to all rows
    held_out: Sequence[Predicted]  # constants fitted without the row's source; its model where a family has one source
    bands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    korthikanti: Sequence[Scored] = ()
    totals: Mapping[str, Sequence[tuple[str, float, float]]] = field(default_factory=dict)  # tier: run, said, was [h]

    def times(self) -> list[Scored]:
        """Step times that count, predicted without their source."""
        return score_step_times(self.rows, self.held_out)

    def memory(self) -> list[Scored]:
        """Peak memories that count; no constant of the memory model is fitted to a source."""
        return score_memory(self.rows, self.shipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table of figures."""

    name: str
    rows: int
    value: float | None
    limit: str
    reached: bool | None
    detail: str = ""
    best_known: str = ""


def verdicts(evidence: Evidence) -> list[Verdict]:
    """The bars that hold errors of step time and peak memory."""
    found = judge(evidence.times(), TIME_BARS)
    found += judge(evidence.korthikanti, [KORTHIKANTI])
    return found + judge(evidence.memory(), MEMORY_BARS)


def figures(evidence: Evidence) -> list[Figure]:
    """Every figure to reach, with what was reached."""
    found = [_of_verdict(verdict) for verdict in verdicts(evidence)]
    found += [_of_totals(tier, evidence.totals.get(tier, ())) for tier in TOTALS_LIMITS]
    return [*found, _of_coverage(evidence), _of_bands(evidence)]


def _of_verdict(verdict: Verdict) -> Figure:
    summary = verdict.summary
    limit = f"≤ {100 * verdict.limit:.1f} %"
    if verdict.bar.above_noise:
        limit += f" (noise {100 * (verdict.limit - verdict.bar.limit):.1f} + {100 * verdict.bar.limit:.0f})"
    detail = ""
    if summary is not None:
        detail = f"mean {100 * summary.mean:.1f} % ({100 * summary.low:.1f} to {100 * summary.high:.1f})"
        if summary.sources > 1:
            detail += f"; {summary.sources} sources, mean of their means {100 * summary.mean_of_sources:.1f} %"
    return Figure(
        name=verdict.bar.name,
        rows=summary.rows if summary else 0,
        value=verdict.value,
        limit=limit,
        reached=verdict.reached,
        detail=detail,
        best_known=verdict.bar.best_known,
    )


def _of_totals(tier: str, runs: Sequence[tuple[str, float, float]]) -> Figure:
    sizes = [abs(said / was - 1) for _, said, was in runs]
    mean = float(np.mean(sizes)) if sizes else None
    limit = TOTALS_LIMITS[tier]
    return Figure(
        name=f"whole runs, {tier} tier, mean",
        rows=len(runs),
        value=mean,
        limit=f"≤ {100 * limit:.0f} %",
        reached=None if mean is None else mean <= limit,
        detail="" if mean is None else f"median {100 * float(np.median(sizes)):.1f} %, worst {100 * max(sizes):.0f} %",
        best_known="20 % A100, 36 % H100" if tier == "rule" else "",
    )


def _of_coverage(evidence: Evidence) -> Figure:
    found = coverage(evidence.rows, evidence.shipped)
    every = coverage(evidence.rows, evidence.shipped, of_trust=("A", "B", "C"))
    return Figure(
        name="coverage of pre-training rows of trust A and B",
        rows=found.rows,
        value=found.share,
        limit=f"≥ {100 * COVERAGE:.0f} %",
        reached=found.share >= COVERAGE,
        detail=f"{100 * every.share:.1f} % of the {every.rows} pre-training rows of any trust",
    )


def _of_bands(evidence: Evidence) -> Figure:
    times = evidence.times()
    inside, rows = share_in_band(times, evidence.bands)
    share = inside / rows if rows else None
    apart = share_in_crossed_bands(times)
    return Figure(
        name="left-out rows within the p10-p90 band of their family",
        rows=rows,
        value=share,
        limit=f"{100 * BAND:.0f} ± {100 * BAND_SLACK:.0f} %",
        reached=None if share is None else abs(share - BAND) <= BAND_SLACK,
        detail="" if apart is None else f"{100 * apart:.1f} % when the band, too, is drawn without the row's source",
    )


def share_in_crossed_bands(scored: Sequence[Scored]) -> float | None:
    """Share of rows within the p10-p90 of the other sources of their family; None when no family has two.

    Bands are drawn from the very rows that they are judged on: this is the harder test of them.
    """
    ratios = np.array([item.measured / item.predicted for item in scored])
    families = np.array([item.kin for item in scored])
    sources = np.array([item.row.source_key or "" for item in scored])
    inside: list[bool] = []
    for family, source in sorted(set(zip(families.tolist(), sources.tolist(), strict=True))):
        own = (families == family) & (sources == source)
        others = ratios[(families == family) & ~own]
        if len(others) >= FEWEST_ROWS:
            low, high = np.quantile(others, (0.1, 0.9))
            inside += ((ratios[own] >= low) & (ratios[own] <= high)).tolist()
    return sum(inside) / len(inside) if inside else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Rows of one source and model, and how much of a figure's error they hold."""

    source: str
    model: str
    rows: int
    mean: float
    bias: float
    share: float  # of the summed absolute error of the figure's rows


def obstacles(scored: Sequence[Scored], most: int = 6) -> list[Obstacle]:
    """The sources and models that hold most of the error of some rows."""
    parts: dict[tuple[str, str], list[Scored]] = {}
    for item in scored:
        parts.setdefault((item.row.source_key or "", item.row.model or ""), []).append(item)
    whole = sum(abs(item.error) for item in scored) or 1.0
    found = [_obstacle(source, model, part, whole) for (source, model), part in parts.items()]
    return sorted(found, key=lambda one: (-one.share, one.source, one.model))[:most]


def _obstacle(source: str, model: str, part: Sequence[Scored], whole: float) -> Obstacle:
    summary = summarise(part)
    return Obstacle(
        source=source,
        model=model,
        rows=summary.rows,
        mean=summary.mean,
        bias=summary.bias,
        share=summary.mean * summary.rows / whole,
    )


def accepted(evidence: Evidence, fingerprint: str) -> dict[str, Any]:
    """What `make test` holds the code to: errors with the shipped constants, and the rows that got no prediction."""
    return {
        "fingerprint": fingerprint,
        "step_time": family_errors(score_step_times(evidence.rows, evidence.shipped)),
        "peak_memory": family_errors(evidence.memory()),
        "refused": refused(evidence.rows, evidence.shipped),
        "figures": {figure.name: [figure.value, figure.reached] for figure in figures(evidence)},
    }


def family_errors(scored: Sequence[Scored]) -> dict[str, dict[str, float]]:
    """Mean absolute error and number of rows by family."""
    names = sorted({item.family for item in scored})
    parts = {name: summarise([item for item in scored if item.family == name]) for name in names}
    return {name: {"rows": part.rows, "mean": round(part.mean, 6)} for name, part in parts.items()}


def refused(rows: Sequence[MeasuredRow], predictions: Sequence[Predicted]) -> list[str]:
    """Names of the rows without a predicted step time."""
    return [row.name for row, said in zip(rows, predictions, strict=True) if said.step_time_s is None]


def regressions(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """What got worse since the accepted state: grown errors, lost rows; empty when nothing did."""
    found = [
        f"{name} is no longer predicted"
        for key in ("refused", "serving_refused")
        for name in now.get(key, ())
        if name not in then.get(key, ())
    ]
    for quantity in [name for name in ("step_time", "peak_memory", "serving") if name in now]:
        for family, before in then.get(quantity, {}).items():
            after = now[quantity].get(family, {"rows": 0, "mean": float("inf")})
            if after["mean"] > before["mean"] * (1 + GROWTH):
                grew = f"{100 * before['mean']:.2f} % grew to {100 * after['mean']:.2f} %"
                found.append(f"{quantity} of {family}: mean error {grew}")
            if after["rows"] < before["rows"]:
                found.append(f"{quantity} of {family}: {before['rows']} rows became {after['rows']}")
    return found
