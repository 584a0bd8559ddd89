"""docs/validation.md: how far predictions of training and of serving are from measurements, from the evidence alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planner import files, units
from planner.calibrate.calibration import gather, gather_serving
from planner.catalog.load import load_catalog
from planner.errors import PlanError
from planner.report import json, markdown
from planner.report.blocks import Block, Grid, Items, Lines, columns
from planner.report.validation_view import group_cells, kind_cells, percent, refusal_items
from planner.units import format_number
from planner.validate.evidence import Evidence, Figure, accepted, figures, obstacles, verdicts
from planner.validate.fingerprint import fingerprint
from planner.validate.judgement import Judged
from planner.validate.judgement import verdicts as verdicts_of
from planner.validate.result import errors_of, validate_training
from planner.validate.rows import HOUSE, shipped_left_out, shipped_reasons
from planner.validate.score import Scored, Summary, by_name, memory_summaries, score_step_times, summaries, worst_rows
from planner.validate.serving import batch_of
from planner.validate.serving_evidence import (
    ServingEvidence,
    accepted_serving,
    serving_figures,
    serving_obstacles,
    serving_verdicts,
)
from planner.validate.serving_result import coverage_of, lint
from planner.validate.serving_score import (
    PEAK_MEMORY,
    QUANTITIES,
    ScoredPoint,
    ServingErrors,
    errors_of_fold,
    kind_summaries,
)

Sections = list[tuple[str, list[Block]]]
COUNTING_OF_SERVING = (
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
        ("Serving: peak memory", [_serving_memory(scored)]),
        ("Serving: what stands in the way", _obstacles_of_serving(evidence, reasons)),
        ("Serving: the largest errors", [_worst_of_serving(evidence)]),
        ("Serving: odd measurements", _lint(evidence)),
        ("Serving: rows without a prediction", _serving_refusals(evidence)),
        ("Serving: how errors are counted", [Items(title="Rules", items=COUNTING_OF_SERVING)]),
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


def _serving_memory(scored: Sequence[ScoredPoint]) -> Grid:
    rows = [
        [item.row.name, item.row.model or "", f"{item.row.concurrency or 0:,.0f}", units.format_bytes(item.predicted),
         units.format_bytes(item.measured), percent(item.error, sign=True)]
        for item in scored if item.kind == PEAK_MEMORY
    ]  # fmt: skip
    heads = columns("Row", "Model", ">sequences", ">predicted", ">printed", ">error")
    return Grid(title="Peak memory of a device, where it was printed", columns=heads, rows=rows)


def _obstacles_of_serving(evidence: ServingEvidence, reasons: Sequence[Mapping[str, str]]) -> list[Block]:
    missed: dict[tuple[str, ...], list[str]] = {}
    for verdict in serving_verdicts(evidence):
        if verdict.reached is False:
            missed.setdefault(verdict.bar.kinds, []).append(verdict.bar.name)
    blocks: list[Block] = [_serving_obstacle_grid(kinds, names, evidence) for kinds, names in missed.items()]
    if reasons:
        items = tuple(f"{reason['rows']}: {reason['why']}" for reason in reasons)
        blocks.append(Items(title="What is known about them", items=items))
    return blocks or [Lines(lines=("Every figure that can be judged is reached.",))]


def _serving_obstacle_grid(kinds: Sequence[str], names: Sequence[str], evidence: ServingEvidence) -> Grid:
    found = serving_obstacles([item for item in evidence.folds["campaign"].scored if item.kind in kinds])
    rows = [
        [one.source, one.model, one.device, f"{one.rows:,}", percent(one.mean), percent(one.bias, sign=True),
         percent(one.share)]
        for one in found
    ]  # fmt: skip
    heads = columns("Source", "Model", "Device", ">number", ">mean", ">bias", ">share of the error")
    return Grid(title=f"{'; '.join(names)}: without the campaign", columns=heads, rows=rows)


def _worst_of_serving(evidence: ServingEvidence, most: int = 3) -> Grid:
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


def _serving_refusals(evidence: ServingEvidence) -> list[Block]:
    found = coverage_of(evidence.rows, evidence.shipped).refusals
    items = tuple(f"{reason}: {', '.join(names)}" for reason, names in sorted(found.items()))
    return [Items(title="Reason and rows", items=items)] if items else [Lines(lines=("None.",))]


_GROUPS = columns(
    "Rows by", "", ">rows", ">runs", ">sources", ">mean", ">90 % of means", ">median", ">p90", ">by source", ">bias",
    ">noise",
)  # fmt: skip
_WORDS = {True: "yes", False: "NO", None: "cannot be judged"}

COUNTING = (
    "The error of a step time is |ln(predicted / measured)|, and a configuration weighs one however many rows it has. "
    "Every prediction is of a fit that has not seen the row's source (the text of its origin before the first colon), "
    "or its device: constants, effects of parts and stacks, and variances are all fitted again. Where one source has "
    "over half of the configurations of a family and kind, what is left out is each release with each model, together "
    "with rows of the same configuration in other releases.",
    "In the band: share of configurations between p10 and p90 of a new source, which should be 80 %; its interval is "
    "of sources (on a device each) drawn again. Winkler: width of the band, and ten times what lies outside of it. "
    "With one constant: what is left when the median ratio of the very rows is taken off.",
    "The error of a peak memory, and of the in-sample table, is predicted / measured - 1.",
    "A row that prints no step time is turned into one: from its tokens/s, else from its TFLOP/s or utilisation with "
    "the operations counted as the row's conventions say (useful or executed, attention full, causal or left out).",
    "Counted are rows of trust A and B. The others are predicted and shown, and count in no figure.",
    "Rows that agree in every typed input are one configuration; a later release of the same software and the year of "
    "publication do not make another input.",
    "What a row does not state takes the documented default of its framework; an unstated recomputation policy is the "
    "fastest one that fits the memory.",
    "Intervals are percentile bootstraps of the mean over rows, 90 %, always with the same seed. By source is the mean "
    "over sources of the mean within each.",
    "Groups of fewer than 10 rows (marked *) are reported without a bar.",
)


def render_document(
    evidence: Evidence,
    fingerprint: str,
    left_out: Mapping[tuple[str, str], str],
    reasons: Sequence[Mapping[str, str]] = (),
    serving: ServingEvidence | None = None,
) -> str:
    """The page, in Markdown.

    Parameters
    ----------
    evidence
        Rows, predictions and checks.
    fingerprint
        Of the code, constants and rows that the evidence was made with.
    left_out
        Why a row counts in no figure, by (file, id).
    reasons
        What is known about rows that stand in the way: `rows`, `file` and `why`.
    serving
        Rows, predictions and folds of serving.
    """
    times, seen = evidence.times(), score_step_times(evidence.rows, evidence.shipped)
    training, others = _split(reasons)
    sections: list[tuple[str, list[Block]]] = [
        ("Figures", _figures(figures(evidence))),
        ("Step time without the source", _judged(evidence.sources)),
        ("Step time without the device", _judged(evidence.devices)),
        ("Peak memory", _memory(evidence)),
        ("What stands in the way", _obstacles(evidence, training)),
        ("The largest errors", [_worst(times)]),
        ("Rows without a prediction", _refusals(evidence)),
        ("How errors are counted", [Items(title="Rules", items=COUNTING)]),
    ]
    last: tuple[str, list[Block]] = (
        "Step time with constants that have seen the row (in-sample)",
        [_groups(summaries(seen))],
    )
    if serving is not None:
        sections.insert(1, ("Figures of serving", _figures(serving_figures(serving))))
        sections += serving_sections(serving, others)
    sections += [("Rows that count in no figure", [_left_out(left_out)]), last]
    parts = [_head(fingerprint)]
    parts += [f"## {title}\n\n{markdown.draw(blocks)}" for title, blocks in sections]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _split(reasons: Sequence[Mapping[str, str]]) -> tuple[list[Mapping[str, str]], list[Mapping[str, str]]]:
    """Reasons of training rows, and of serving rows."""
    serving = [reason for reason in reasons if reason.get("file") == "serving.csv"]
    return [reason for reason in reasons if reason not in serving], serving


def _head(fingerprint: str) -> str:
    return (
        "# Validation\n\n"
        "Generated by `make validation`; do not edit. Predictions of the analytic tier against the published rows of\n"
        "`planner/measurements/`. `make test` checks the fingerprint and predicts every row again.\n\n"
        f"Fingerprint of equations, constants and rows: `{fingerprint}`"
    )


def _figures(found: Sequence[Figure]) -> list[Block]:
    rows = [
        [one.name, f"{one.rows:,}", percent(one.value), one.limit, _WORDS[one.reached], one.detail,
         one.best_known]
        for one in found
    ]  # fmt: skip
    heads = columns("Rows", ">number", ">measured", "figure", "reached", "spread", "best known elsewhere")
    return [Grid(columns=heads, rows=rows)]


def _judged(judged: Judged | None) -> list[Block]:
    """Errors and coverage of rows that no fit has seen, by device, kind and precision."""
    if judged is None:
        return [Lines(lines=("Not worked out.",))]
    rows = [
        [one.name, f"{one.rows:,}", f"{one.configurations:.0f}", f"{one.clusters}", percent(one.mean),
         f"{100 * one.mean_low:.1f} … {percent(one.mean_high)}", percent(one.median), percent(one.bias, sign=True),
         percent(one.coverage), f"{100 * one.coverage_low:.0f} … {100 * one.coverage_high:.0f} %",
         f"{one.winkler:.2f}", percent(one.one_constant)]
        for one in verdicts_of(judged)
    ]  # fmt: skip
    heads = columns(
        "Rows", ">rows", ">configurations", ">sources and devices", ">mean", ">90 %", ">median", ">bias",
        ">in the band", ">90 %", ">Winkler", ">with one constant",
    )  # fmt: skip
    return [Grid(columns=heads, rows=rows)]


def _groups(found: Sequence[Summary]) -> Grid:
    return Grid(columns=_GROUPS, rows=[group_cells(errors_of(summary)) for summary in found])


def _memory(evidence: Evidence) -> list[Block]:
    scored = evidence.memory()
    heads = columns("Row", "Model", "Reading", ">predicted", ">measured", ">error")
    rows = [
        [item.row.name, item.row.model or "", item.row.memory_kind, f"{item.predicted / 1e9:.1f} GB",
         f"{item.target / 1e9:.1f} GB", percent(item.error, sign=True)]
        for item in worst_rows(scored)
    ]  # fmt: skip
    worst = Grid(title="The largest errors", columns=heads, rows=rows, folded=True)
    return [_groups(memory_summaries(scored)), worst]


def _obstacles(evidence: Evidence, reasons: Sequence[Mapping[str, str]]) -> list[Block]:
    missed: dict[tuple[str, ...], list[str]] = {}
    for verdict in verdicts(evidence):
        if verdict.reached is False:
            held = tuple(item.row.name for item in _pool(verdict.bar.name, evidence) if verdict.bar.holds(item))
            missed.setdefault(held, []).append(verdict.bar.name)
    blocks: list[Block] = [_obstacle_grid(names, rows, evidence) for rows, names in missed.items()]
    if reasons:
        items = tuple(f"{reason['rows']}: {reason['why']}" for reason in reasons)
        blocks.append(Items(title="What is known about them", items=items))
    return blocks or [Lines(lines=("Every figure that can be judged is reached.",))]


def _obstacle_grid(names: Sequence[str], rows: Sequence[str], evidence: Evidence) -> Grid:
    """The sources and models that hold most of the error of the rows of missed figures."""
    heads = columns("Source", "Model", ">rows", ">mean", ">bias", ">share of the error")
    found = obstacles([item for item in _pool(names[0], evidence) if item.row.name in rows])
    cells = [
        [one.source, one.model, f"{one.rows:,}", percent(one.mean), percent(one.bias, sign=True), percent(one.share)]
        for one in found
    ]
    return Grid(title="; ".join(names), columns=heads, rows=cells)


def _pool(name: str, evidence: Evidence) -> Sequence[Scored]:
    if name.startswith("peak memory"):
        return evidence.memory()
    return evidence.korthikanti if name.startswith("fitted on") else evidence.times()


def _worst(times: Sequence[Scored]) -> Grid:
    heads = columns("Row", "Model", "Devices", "Precision", ">predicted [s]", ">measured [s]", ">error")
    rows = [
        [item.row.name, item.row.model or "", f"{item.row.n_accel} × {item.row.accelerator}", item.row.precision or "",
         format_number(item.predicted, 4), format_number(item.target, 4), percent(item.error, sign=True)]
        for item in worst_rows(times, 25)
    ]  # fmt: skip
    return Grid(columns=heads, rows=rows)


def _refusals(evidence: Evidence) -> list[Block]:
    items = refusal_items(validate_training(evidence.rows, evidence.shipped), most=1000)
    plain = [Items(title="Reason and rows", items=one.items) for one in items]
    return list(plain) or [Lines(lines=("None: every pre-training row is predicted.",))]


def _left_out(left_out: Mapping[tuple[str, str], str]) -> Grid:
    reasons: dict[tuple[str, str], list[str]] = {}
    for (file, name), why in left_out.items():
        reasons.setdefault((file, why), []).append(name)
    rows = [[file, why, f"{len(names):,}", ", ".join(names)] for (file, why), names in reasons.items()]
    return Grid(columns=columns("Table", "Why", ">rows", "Ids"), rows=rows)


def main() -> None:
    """Gather the evidence and write docs/validation.md and measurements/accepted.json into the checkout."""
    import sys

    def tell(fold: str) -> None:
        print(f"fitted without {fold.removeprefix('without ')}", file=sys.stderr)

    catalog = load_catalog()
    serving, found = gather_serving(catalog, tell), gather(catalog, tell)
    mark = fingerprint()
    files.write_text(HOUSE / "accepted.json", json.render({**accepted(found, mark), **accepted_serving(serving)}))
    page = render_document(found, mark, shipped_left_out(), shipped_reasons(), serving)
    files.write_text(HOUSE.parents[1] / "docs" / "validation.md", page)


if __name__ == "__main__":
    try:
        main()
    except PlanError as error:
        raise SystemExit(f"{error}") from None
