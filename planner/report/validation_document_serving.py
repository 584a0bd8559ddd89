"""The part of docs/validation.md that speaks of serving, written from its evidence alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner import units
from planner.report.blocks import Block, Grid, Items, Lines, columns
from planner.report.validation import percent
from planner.report.validation_serving import kind_cells
from planner.validate.result import errors_of
from planner.validate.serving import batch_of
from planner.validate.serving_bars import FOLDS, counted_folds
from planner.validate.serving_evidence import ServingEvidence, serving_obstacles, serving_verdicts
from planner.validate.serving_lint import lint
from planner.validate.serving_result import coverage_of
from planner.validate.serving_score import PEAK_MEMORY, ScoredPoint, kind_summaries
from planner.validate.summary import by_name, summarise, worst_rows

Sections = list[tuple[str, list[Block]]]
COUNTING = (
    "The error of a figure is predicted / measured - 1; figures are of its size. A row has up to two figures: TPOT and "
    "TTFT of closed loops and static batches, the latency of a static batch, or output tokens per second of the whole "
    "deployment.",
    "Every figure is predicted three times by constants that have not seen it: fitted without its device, without its "
    "model (width, layers, experts), without its publication. The last counts where a kind of figure has two "
    "publications or more. A bar holds the worst of these.",
    "TPOT and TTFT of requests that are sent all at once, and latencies of MLPerf (99th percentiles under limits), are "
    "queueing times that no closed form of ours describes: only their throughput counts. TTFT of more clients than fit "
    "the memory waits for room, and counts in no figure either.",
    "A figure below the physical floor (weights and cache once at full bandwidth) is wrong or of another "
    "configuration, and counts in no figure.",
    "What a row does not state is its engine's default or the convention of its benchmark. Where a table hides how "
    "experts and attention were split, or how many devices served one copy, the fastest layout that fits is "
    "predicted.",
    "The bands of plans are p10 and p90 of measured / predicted over the three folds, by device family where it has 20 "
    "rows, else over all.",
    "Each figure is held against what was printed, not against a median of repeated runs.",
)
_HEADS = columns("Figure", ">number", ">median, %", ">mean, %", ">p90, %", ">by source, %", ">bias, %", ">noise, %")


def serving_sections(evidence: ServingEvidence, reasons: Sequence[Mapping[str, str]]) -> Sections:
    """Titles and blocks, after the table of figures."""
    scored = evidence.scored()
    return [
        ("Serving: errors of each fold", [_folds(evidence), _sources(evidence)]),
        ("Serving: errors with the shipped constants", _shipped(scored)),
        ("Serving: peak memory", [_memory(scored)]),
        ("Serving: what stands in the way", _obstacles(evidence, reasons)),
        ("Serving: the largest errors", [_worst(evidence)]),
        ("Serving: odd measurements", _lint(evidence)),
        ("Serving: rows without a prediction", _refusals(evidence)),
        ("Serving: how errors are counted", [Items(title="Rules", items=COUNTING)]),
    ]


def _folds(evidence: ServingEvidence) -> Grid:
    kinds = sorted({item.kind for part in evidence.folds.values() for item in part})
    rows = [
        [kind, f"the {fold}", *kind_cells("", errors_of(summarise(part)))[1:]]
        for kind in kinds
        for fold, part in counted_folds(kind, evidence.folds).items()
    ]
    heads = (_HEADS[0], *columns("Without"), *_HEADS[1:])
    return Grid(title="Every kind of figure, by what the fit was not shown", columns=heads, rows=rows, grouped=True)


def _sources(evidence: ServingEvidence) -> Grid:
    """Medians of each publication in the fold that decides a bar."""
    rows = [
        [verdict.bar.name, f"the {verdict.worst}", source, f"{own.rows:,}", percent(own.median), percent(own.mean),
         percent(own.bias, sign=True)]
        for verdict in serving_verdicts(evidence)
        for source, own in verdict.sources.items()
    ]  # fmt: skip
    heads = columns("Bar", "Without", "Source", ">number", ">median", ">mean", ">bias")
    return Grid(title="By publication, in the fold that decides", columns=heads, rows=rows, grouped=True)


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
    missed: dict[str, tuple[str, list[str]]] = {}
    for verdict in serving_verdicts(evidence):
        if verdict.reached is False:
            missed.setdefault(verdict.bar.kind, (verdict.worst, []))[1].append(verdict.bar.name)
    blocks: list[Block] = [_obstacle_grid(kind, fold, names, evidence) for kind, (fold, names) in missed.items()]
    if reasons:
        items = tuple(f"{reason['rows']}: {reason['why']}" for reason in reasons)
        blocks.append(Items(title="What is known about them", items=items))
    return blocks or [Lines(lines=("Every figure that can be judged is reached.",))]


def _obstacle_grid(kind: str, fold: str, names: Sequence[str], evidence: ServingEvidence) -> Grid:
    found = serving_obstacles([item for item in evidence.folds[fold] if item.kind == kind])
    rows = [
        [one.source, one.model, one.device, f"{one.rows:,}", percent(one.mean), percent(one.bias, sign=True),
         percent(one.share)]
        for one in found
    ]  # fmt: skip
    heads = columns("Source", "Model", "Device", ">number", ">mean", ">bias", ">share of the error")
    return Grid(title=f"{'; '.join(names)}: without the {fold}", columns=heads, rows=rows)


def _worst(evidence: ServingEvidence, most: int = 3) -> Grid:
    """The largest errors of every kind, each in the fold where it is largest."""
    rows = []
    every = [item for fold in FOLDS for item in evidence.folds.get(fold, ())]
    for kind, part in sorted(by_name(every, lambda item: item.kind).items()):
        largest = {item.row.name: item for item in reversed(worst_rows(part, len(part)))}
        for item in worst_rows(list(largest.values()), most):
            cells = [kind, item.row.name, item.row.model or "", f"{item.row.n_accel} × {item.row.accelerator}"]
            numbers = [f"{item.predicted:.4g}", f"{item.measured:.4g}", percent(item.error, sign=True)]
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
