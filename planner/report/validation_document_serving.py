"""The part of docs/validation.md that speaks of serving, written from its evidence alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planner import units
from planner.report.blocks import Block, Grid, Items, Lines, columns
from planner.report.validation_serving import kind_cells
from planner.report.validation_tables import percent
from planner.validate.result import errors_of
from planner.validate.serving import batch_of
from planner.validate.serving_bars import QUANTITIES, ServingErrors, errors_of_fold
from planner.validate.serving_evidence import ServingEvidence, serving_obstacles, serving_verdicts
from planner.validate.serving_lint import lint
from planner.validate.serving_result import coverage_of
from planner.validate.serving_score import PEAK_MEMORY, ScoredPoint, kind_summaries
from planner.validate.summary import by_name, worst_rows

Sections = list[tuple[str, list[Block]]]
COUNTING = (
    "The error of a figure is predicted / measured - 1; figures are of its size, and a configuration weighs one "
    "however often it was published. A row has up to two figures: TPOT and TTFT of closed loops and static batches, "
    "the latency of a static batch, or output tokens per second of the whole deployment.",
    "A campaign is a publication, a release of an engine, and a model. Every figure is predicted by constants fitted "
    "without its campaign, and again without its device: constants, factors and variances are all fitted again, and "
    "the scores of its band are those of the other folds. A fold leaves out several whole campaigns, or devices.",
    "TPOT and TTFT of requests that are sent all at once, and latencies of MLPerf (99th percentiles under limits), are "
    "queueing times: only their throughput counts. TTFT of more clients than fit the memory waits for room, and counts "
    "in no figure either. Piles, open loops and rates under limits are predicted and judged, but not fitted to.",
    "A figure below the physical floor (weights and cache once at full bandwidth) is wrong or of another "
    "configuration, and counts in no figure.",
    "What a row does not state is its engine's default or the convention of its benchmark. Where a table hides how "
    "experts and attention were split, or how many devices served one copy, the fastest layout that fits is "
    "predicted.",
    "Winkler: width of the band in logarithms, and ten times what lies outside of it; beside it the score of one band "
    "for all figures of the line, drawn with them in view.",
)
_HEADS = columns("Figure", ">number", ">median, %", ">mean, %", ">p90, %", ">by source, %", ">bias, %", ">noise, %")


def serving_sections(evidence: ServingEvidence, reasons: Sequence[Mapping[str, str]]) -> Sections:
    """Titles and blocks, after the table of figures."""
    scored = evidence.scored()
    return [
        ("Serving: campaigns and devices left out", [_folds(evidence), _parts_of_fold(evidence)]),
        ("Serving: peak memory", [_memory(scored)]),
        ("Serving: what stands in the way", _obstacles(evidence, reasons)),
        ("Serving: the largest errors", [_worst(evidence)]),
        ("Serving: odd measurements", _lint(evidence)),
        ("Serving: rows without a prediction", _refusals(evidence)),
        ("Serving: how errors are counted", [Items(title="Rules", items=COUNTING)]),
        ("Serving: constants that have seen the row (in-sample)", _shipped(scored)),
    ]


_FOLD_HEADS = columns(
    ">figures", ">configurations", ">campaigns", ">median", ">mean", ">p90", ">bias", ">in the band", ">Winkler",
    ">one band",
)  # fmt: skip


def _fold_cells(own: ServingErrors) -> list[str]:
    return [
        f"{own.rows:,}", f"{own.configurations:,.0f}", str(own.campaigns), percent(own.median), percent(own.mean),
        percent(own.p90), percent(own.bias, sign=True), percent(own.coverage), f"{own.winkler:.2f}",
        f"{own.one_band:.2f}",
    ]  # fmt: skip


def _folds(evidence: ServingEvidence) -> Grid:
    kinds = sorted({item.kind for fold in evidence.folds.values() for item in fold.scored})
    rows = [
        [kind, f"the {name}", *_fold_cells(own)]
        for kind in kinds
        for name, fold in evidence.folds.items()
        if (own := errors_of_fold(fold, fold.of_kinds(kind)))
    ]
    heads = (*columns("Figure", "Without"), *_FOLD_HEADS)
    return Grid(title="Every kind of figure, by what the fit was not shown", columns=heads, rows=rows, grouped=True)


def _parts_of_fold(evidence: ServingEvidence) -> Grid:
    """Figures that plans have bands of, by engine, family, and whether the model has experts."""
    fold = evidence.folds["campaign"]
    names = [
        (group.split()[0], f"{item.engine} on {item.family}{', experts' if ' ' in group else ''}")
        for item, group in zip(fold.scored, fold.judged.group, strict=True)
    ]
    rows = []
    for kind, name in sorted(set(names)):
        own = errors_of_fold(fold, np.array([each == (kind, name) for each in names]))
        if own and kind in QUANTITIES:
            rows.append([QUANTITIES[kind], name, *_fold_cells(own)])
    heads = (*columns("Figure", "Engine and family"), *_FOLD_HEADS)
    title = "Figures of plans without their campaign, by engine, device family and kind of model"
    return Grid(title=title, columns=heads, rows=rows, grouped=True, folded=True)


def _shipped(scored: Sequence[ScoredPoint]) -> list[Block]:
    found = kind_summaries(scored)
    whole = [kind_cells(kind, errors_of(own[0])) for kind, own in found.items()]
    parts = [[kind, one.group, *kind_cells(one.name, errors_of(one))] for kind, own in found.items() for one in own[1:]]
    heads = columns("Figure", "By", "")
    return [
        Grid(columns=_HEADS, rows=whole),
        Grid(title="In parts", columns=(*heads, *_HEADS[1:]), rows=parts, grouped=True, folded=True),
    ]


def _memory(scored: Sequence[ScoredPoint]) -> Grid:
    rows = [
        [item.row.name, item.row.model or "", f"{item.row.concurrency or 0:,.0f}", units.format_bytes(item.predicted),
         units.format_bytes(item.measured), percent(item.error, sign=True)]
        for item in scored if item.kind == PEAK_MEMORY
    ]  # fmt: skip
    heads = columns("Row", "Model", ">sequences", ">predicted", ">printed", ">error")
    return Grid(title="Peak memory of a device, where it was printed", columns=heads, rows=rows)


def _obstacles(evidence: ServingEvidence, reasons: Sequence[Mapping[str, str]]) -> list[Block]:
    missed: dict[tuple[str, ...], list[str]] = {}
    for verdict in serving_verdicts(evidence):
        if verdict.reached is False:
            missed.setdefault(verdict.bar.kinds, []).append(verdict.bar.name)
    blocks: list[Block] = [_obstacle_grid(kinds, names, evidence) for kinds, names in missed.items()]
    if reasons:
        items = tuple(f"{reason['rows']}: {reason['why']}" for reason in reasons)
        blocks.append(Items(title="What is known about them", items=items))
    return blocks or [Lines(lines=("Every figure that can be judged is reached.",))]


def _obstacle_grid(kinds: Sequence[str], names: Sequence[str], evidence: ServingEvidence) -> Grid:
    found = serving_obstacles([item for item in evidence.folds["campaign"].scored if item.kind in kinds])
    rows = [
        [one.source, one.model, one.device, f"{one.rows:,}", percent(one.mean), percent(one.bias, sign=True),
         percent(one.share)]
        for one in found
    ]  # fmt: skip
    heads = columns("Source", "Model", "Device", ">number", ">mean", ">bias", ">share of the error")
    return Grid(title=f"{'; '.join(names)}: without the campaign", columns=heads, rows=rows)


def _worst(evidence: ServingEvidence, most: int = 3) -> Grid:
    """The largest errors of every kind, without the campaign."""
    rows = []
    for kind, part in sorted(by_name(evidence.folds["campaign"].scored, lambda item: item.kind).items()):
        for item in worst_rows(part, most):
            cells = [kind, item.row.name, item.row.model or "", f"{item.row.n_accel} × {item.row.accelerator}"]
            numbers = [
                units.format_number(item.predicted, 4),
                units.format_number(item.measured, 4),
                percent(item.error, sign=True),
            ]
            rows.append([*cells, item.row.engine or "", *numbers])
    heads = columns("Figure", "Row", "Model", "Devices", "Engine", ">predicted", ">measured", ">error")
    return Grid(columns=heads, rows=rows, notes=("Times in seconds, throughput in tokens per second.",), grouped=True)


def _lint(evidence: ServingEvidence) -> list[Block]:
    kinds: dict[str, list[str]] = {}
    for one in lint(evidence.rows, batch_of(evidence.entries)) if evidence.entries else ():
        kinds.setdefault(one.kind, []).append(f"{one.name} ({one.detail})")
    return [Items(title=f"A row {kind}", items=tuple(names)) for kind, names in kinds.items()]


def _refusals(evidence: ServingEvidence) -> list[Block]:
    found = coverage_of(evidence.rows, evidence.shipped).refusals
    items = tuple(f"{reason}: {', '.join(names)}" for reason, names in sorted(found.items()))
    return [Items(title="Reason and rows", items=items)] if items else [Lines(lines=("None.",))]
