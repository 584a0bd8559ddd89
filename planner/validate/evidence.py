"""Everything that docs/validation.md reports, worked out once: errors, verdicts, and what stands in their way.

The figures that predictions are held to, group by group, and whether they are reached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from planner.carriers import dataclass
from planner.validate.judgement import Judged, interval_score, one_band_score, verdict, weighted_quantile
from planner.validate.judgement import Verdict as Judgement
from planner.validate.judgement import verdicts as verdicts_of
from planner.validate.rows import MeasuredRow
from planner.validate.score import (
    FEWEST_ROWS,
    Predicted,
    Scored,
    Summary,
    coverage,
    score_memory,
    score_step_times,
    summarise,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One figure to reach, over the rows that a test picks."""

    name: str
    holds: Callable[[Scored], bool]
    statistic: str  # a field of Summary
    limit: float  # a share
    above_noise: bool = False  # the limit comes on top of the noise floor
    fewest: int = FEWEST_ROWS
    best_known: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A bar with what was reached; `reached` is None when the rows are too few to say."""

    bar: Bar
    summary: Summary | None
    value: float | None
    limit: float
    reached: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBar:
    """One figure to reach by rows that their fit has not seen; groups are "device kind precision"."""

    name: str
    devices: tuple[str, ...]  # how their names begin; none: all
    kinds: tuple[str, ...]
    precisions: tuple[str, ...]
    limits: Mapping[str, float]  # by statistic of a verdict: mean, median

    def holds(self, group: str) -> bool:
        """Whether a group of rows belongs to this figure."""
        device, kind, precision = group.split(" ")
        near = not self.devices or device.startswith(self.devices)
        return near and kind in self.kinds and (not self.precisions or precision in self.precisions)


_HOPPER, _BLACKWELL = ("H100", "H200"), ("B200", "GB200", "B300", "GB300")
_WIDE, _NARROW = ("16bit",), ("fp8",)


def _bar(
    name: str, devices: tuple[str, ...], kind: str, precisions: tuple[str, ...], mean: float, median: float = 0.0
) -> JudgedBar:
    limits = {"mean": mean, "median": median} if median else {"mean": mean}
    return JudgedBar(name=name, devices=devices, kinds=(kind,), precisions=precisions, limits=limits)


TIME_BARS = (
    _bar("A100 dense 16-bit", ("A100",), "dense", _WIDE, 0.09, 0.065),
    _bar("Hopper dense 16-bit", _HOPPER, "dense", _WIDE, 0.07),
    _bar("Hopper dense fp8", _HOPPER, "dense", _NARROW, 0.11),
    _bar("Blackwell dense 16-bit", _BLACKWELL, "dense", _WIDE, 0.10),
    _bar("Blackwell dense fp8", _BLACKWELL, "dense", _NARROW, 0.11),
    _bar("mixtures of experts", (), "experts", (), 0.15),
    _bar("hybrids without shape", (), "hybrid", (), 0.25),
    _bar("TPU dense 16-bit", ("TPU",), "dense", _WIDE, 0.08),
    _bar("TPU dense 8-bit", ("TPU",), "dense", _NARROW, 0.12),
    _bar("LoRA, QLoRA and full fine-tuning", (), "tuning", (), 0.15),
)
# few rows: reported, and held against one constant for the device
FEW = ("MI300X", "Trainium1", "V100", "RTX-4090")
KORTHIKANTI = Bar(
    name="fitted on MPT and vTrain, tested on Korthikanti Table 5, mean",
    holds=lambda item: True,
    statistic="mean",
    limit=0.04,
    fewest=1,
    best_known="3.7 % (Calculon, tuned near those rows)",
)
MEMORY_BARS = (
    Bar(
        name="peak memory allocated, pre-training, mean",
        holds=lambda item: item.row.memory_kind == "allocated" and item.row.kind != "tuning",
        statistic="mean",
        limit=0.03,
        best_known="0.36 % (SimuMax, on its own rows)",
    ),
    Bar(
        name="peak memory reserved or of the device, pre-training, mean",
        holds=lambda item: item.row.memory_kind in ("reserved", "process") and item.row.kind != "tuning",
        statistic="mean",
        limit=0.11,
    ),
    Bar(
        name="peak memory of LoRA, QLoRA and full fine-tuning, mean",
        holds=lambda item: item.row.kind == "tuning",
        statistic="mean",
        limit=0.12,
    ),
)


def judge(scored: Sequence[Scored], bars: Sequence[Bar]) -> list[Verdict]:
    """Each bar held against the rows that it speaks of."""
    return [_verdict(bar, [item for item in scored if bar.holds(item)]) for bar in bars]


def _verdict(bar: Bar, part: Sequence[Scored]) -> Verdict:
    if not part:
        return Verdict(bar=bar, summary=None, value=None, limit=bar.limit, reached=None)
    summary = summarise(part, "bar", bar.name)
    value = float(getattr(summary, bar.statistic))
    limit = bar.limit + (summary.noise_floor or 0.0) * bar.above_noise
    reached = value <= limit if summary.rows >= bar.fewest else None
    return Verdict(bar=bar, summary=summary, value=value, limit=limit, reached=reached)


COVERAGE = 0.97
BAND, SLACK, DEVICE_SLACK = 0.80, 0.07, 0.10
FEWEST_CONFIGURATIONS = 8
TOTALS_LIMITS = {"rule": 0.25, "analytic": 0.25}
GROWTH = 0.05  # by which share a family's error may grow before `make test` fails


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Rows with two predictions each, and the checks that need a fit of their own."""

    rows: Sequence[MeasuredRow]
    shipped: Sequence[Predicted]  # constants fitted to all rows
    held_out: Sequence[Predicted]  # constants fitted without the row's source; its model where a family has one source
    sources: Judged | None = None  # predicted without their source, with the bands of such fits
    devices: Judged | None = None  # predicted without their device
    beyond: Mapping[str, tuple[Judged, Judged]] = field(default_factory=dict)  # their source unseen; all such rows
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
    """The bars that hold errors of peak memory, and of one publication by others."""
    return judge(evidence.korthikanti, [KORTHIKANTI]) + judge(evidence.memory(), MEMORY_BARS)


def figures(evidence: Evidence) -> list[Figure]:
    """Every figure to reach, with what was reached."""
    found = [] if evidence.sources is None else judged_figures(evidence.sources)
    if evidence.sources is not None and evidence.devices is not None:
        found = [*band_figures(evidence.sources, evidence.devices), *found]
    found += [_beyond_figure(name, *pair) for name, pair in evidence.beyond.items()]
    found += [_of_verdict(verdict) for verdict in verdicts(evidence)]
    found += [_of_totals(tier, evidence.totals.get(tier, ())) for tier in TOTALS_LIMITS]
    return [*found, _of_coverage(evidence)]


def judged_figures(sources: Judged) -> list[Figure]:
    """Errors of step times without their source, in the groups that have a figure to reach."""
    found = []
    for bar in TIME_BARS:
        part = sources.chosen(np.array([bar.holds(group) for group in sources.group], dtype=bool))
        if not len(part.error):
            continue
        one = verdict(bar.name, part)
        for statistic, limit in bar.limits.items():
            value = float(getattr(one, statistic))
            found.append(
                Figure(
                    name=f"{bar.name}, {statistic}",
                    rows=one.rows,
                    value=value,
                    limit=f"≤ {100 * limit:.3g} %",
                    reached=value <= limit if one.configurations >= FEWEST_CONFIGURATIONS else None,
                    detail=_detail(one),
                )
            )
    for device in FEW:
        part = sources.chosen(np.array([group.startswith(device) for group in sources.group], dtype=bool))
        if len(part.error):
            one = verdict(device, part)
            found.append(
                Figure(
                    name=f"{device}, mean",
                    rows=one.rows,
                    value=one.mean,
                    limit="reported",
                    reached=None,
                    detail=f"{_detail(one)}; one constant for the device, fitted to these rows: "
                    f"{100 * one.one_constant:.1f} %",
                )
            )
    return found


def _detail(one: Judgement) -> str:
    return (
        f"{one.configurations:.0f} configurations of {one.clusters} sources and devices, mean {100 * one.mean_low:.1f} "
        f"to {100 * one.mean_high:.1f} %, bias {100 * one.bias:+.1f} %"
    )


def band_figures(sources: Judged, devices: Judged) -> list[Figure]:
    """How often the band p10 to p90 holds what was measured, and what it costs to be as wide as it is."""
    one, other = verdict("all", sources), verdict("all", devices)
    own, flat = interval_score(sources), one_band_score(sources)
    found = [
        _coverage_figure("band coverage without the source, pooled", one, SLACK),
        _coverage_figure("band coverage without the device, pooled", other, DEVICE_SLACK),
        Figure(
            name="interval score of the bands (Winkler, of ln time)",
            rows=one.rows,
            value=own,
            limit=f"< {100 * flat:.1f} %, of one band for all rows",
            reached=own < flat,
        ),
    ]
    for part in family_verdicts(sources):
        if part.configurations >= FEWEST_CONFIGURATIONS:
            found.append(_coverage_figure(f"band coverage, {part.name}", part, DEVICE_SLACK))
        else:
            within = part.coverage_low <= BAND <= part.coverage_high
            found.append(replace(_coverage_figure(f"band coverage, {part.name}", part, 0.0), reached=within))
    return found


def _beyond_figure(name: str, seen: Judged, unseen: Judged) -> Figure:
    before, after = verdict(name, seen), verdict(name, unseen)
    known, value = (weighted_quantile(np.abs(one.error), one.weight, BAND) for one in (seen, unseen))
    return Figure(
        name=f"beyond what a fit saw, four fifths within: {name}",
        rows=after.rows,
        value=value,
        limit=f"reported; {100 * known:.1f} % where such rows of others were seen",
        reached=None,
        detail=f"mean {100 * after.mean:.1f} % ({100 * before.mean:.1f}), median {100 * after.median:.1f} % "
        f"({100 * before.median:.1f}), in the band as it is inside {100 * after.coverage:.0f} % "
        f"({100 * before.coverage:.0f}), {after.clusters} sources and devices",
    )


def _coverage_figure(name: str, one: Judgement, slack: float) -> Figure:
    return Figure(
        name=name,
        rows=one.rows,
        value=one.coverage,
        limit=f"{100 * BAND:.0f} ± {100 * slack:.0f} %" if slack else f"{100 * BAND:.0f} % in its interval",
        reached=abs(one.coverage - BAND) <= slack,
        detail=f"{100 * one.coverage_low:.0f} to {100 * one.coverage_high:.0f} % when sources are drawn again",
    )


def family_verdicts(judged: Judged) -> list[Judgement]:
    """Rows by device generation and kind."""
    return verdicts_of(judged, lambda group: " ".join(group.split(" ")[:2]))[1:]


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
    sizes = [abs(np.log(said / was)) for _, said, was in runs]
    mean = float(np.mean(sizes)) if sizes else None
    limit = TOTALS_LIMITS[tier]
    return Figure(
        name=f"whole runs, {tier} tier, mean of |ln|",
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
        name="coverage of rows of trust A and B",
        rows=found.rows,
        value=found.share,
        limit=f"≥ {100 * COVERAGE:.0f} %",
        reached=found.share >= COVERAGE,
        detail=f"{100 * every.share:.1f} % of the {every.rows} rows of any trust",
    )


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
