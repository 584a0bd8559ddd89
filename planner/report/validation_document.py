"""docs/validation.md: how far predictions are from measurements, written from the evidence alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner import files
from planner.calibrate.gather import gather
from planner.calibrate.serving_gather import gather_serving
from planner.catalog.load import load_catalog
from planner.errors import PlanError
from planner.report import json, markdown
from planner.report.blocks import Block, Grid, Items, Lines, columns
from planner.report.validation_document_serving import serving_sections
from planner.report.validation_tables import group_cells, percent, refusal_items
from planner.units import format_number
from planner.validate.evidence import Evidence, Figure, accepted, figures, obstacles, verdicts
from planner.validate.fingerprint import fingerprint
from planner.validate.judgement import Judged
from planner.validate.judgement import verdicts as verdicts_of
from planner.validate.result import errors_of, validate_training
from planner.validate.rows import HOUSE, shipped_left_out, shipped_reasons
from planner.validate.score import Scored, memory_summaries, score_step_times, summaries
from planner.validate.serving_evidence import ServingEvidence, accepted_serving, serving_figures
from planner.validate.summary import Summary, worst_rows

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
        print(f"fitted without {fold}", file=sys.stderr)

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
