"""`plan validate`: predictions held against published or your own measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from planner.cli import flags
from planner.cli.frame import Frame, PageForm, command

app = typer.Typer(help="Predictions held against measurements, with their errors.", no_args_is_help=True)


class Tier(StrEnum):
    """Estimators of whole runs."""

    rule = "rule"
    analytic = "analytic"


DataFile = Annotated[
    str | None, typer.Option("--data", metavar="FILE", help="A CSV of your own; default: the published rows.")
]  # fmt: skip
Patterns = list[str] | None


def training(
    frame: Frame,
    data: DataFile = None,
    family: Annotated[Patterns, typer.Option("--family", metavar="PATTERN", help="Only these; repeatable.")] = None,
    source: Annotated[Patterns, typer.Option("--source", metavar="PATTERN", help="Only these; repeatable.")] = None,
    output: flags.PageOutput = PageForm.table,
    out: flags.OutFile = None,
    hardware: flags.HardwareFolder = None,
) -> None:
    """Predict step time and peak memory of training runs and compare with what was measured."""
    from planner.catalog.load import load_catalog
    from planner.report.validation_view import render_validation
    from planner.validate import result, rows, training

    table = rows.read_training_table(data) if data else rows.ReadRows(rows=rows.shipped_training_rows())
    _tell_refused(frame, table.ignored, table.refused)
    catalog = load_catalog(hardware)
    with frame.progress("predicting"):
        predictions = training.predict_training(table.rows, catalog)
    kept, said = result.chosen(table.rows, predictions, family or (), source or ())
    found = result.validate_training(kept, said, own_rows=data is None, refused=table.refused)
    frame.emit(render_validation(found, output.value, **frame.view(out)), out)


def _tell_refused(frame: Frame, ignored: Sequence[str], refused: Mapping[str, str]) -> None:
    if ignored:
        frame.say(f"columns that are no inputs of a prediction, passed over: {', '.join(ignored)}")
    for name, why in refused.items():
        frame.say(f"{name} refused: {why}")


def serving(
    frame: Frame,
    data: DataFile = None,
    engine: Annotated[Patterns, typer.Option("--engine", metavar="PATTERN", help="Only these; repeatable.")] = None,
    device: Annotated[Patterns, typer.Option("--device", metavar="PATTERN", help="Only these; repeatable.")] = None,
    source: Annotated[Patterns, typer.Option("--source", metavar="PATTERN", help="Only these; repeatable.")] = None,
    output: flags.PageOutput = PageForm.table,
    out: flags.OutFile = None,
    hardware: flags.HardwareFolder = None,
) -> None:
    """Predict latencies, throughput and memory of serving engines and compare with what was measured."""
    from planner.catalog.load import load_catalog
    from planner.report.validation_view import render_validation
    from planner.validate import serving, serving_result, serving_rows
    from planner.validate.serving_entries import entries_of

    own = serving_rows.read_serving_table(data) if data else None
    table = own or serving_rows.ReadServing(rows=serving_rows.shipped_serving_rows())
    _tell_refused(frame, table.ignored, table.refused)
    measured = serving_rows.chosen_serving(table.rows, engines=engine or (), devices=device or (), sources=source or ())
    catalog = load_catalog(hardware)
    with frame.progress("predicting"):
        predictions = serving.predict_serving(measured, catalog)
        entries = entries_of(measured, catalog)
    found = serving_result.validate_serving(
        measured, entries, predictions, own_rows=data is None, refused=table.refused
    )
    frame.emit(render_validation(found, output.value, **frame.view(out)), out)


def totals(
    frame: Frame,
    data: DataFile = None,
    tier: Annotated[Tier, typer.Option("--tier", help="The estimator to judge.")] = Tier.analytic,
    output: flags.PageOutput = PageForm.table,
    out: flags.OutFile = None,
    hardware: flags.HardwareFolder = None,
) -> None:
    """Predict the device hours of whole training runs and compare with published budgets."""
    from planner.catalog.load import load_catalog
    from planner.report.validation_view import render_validation
    from planner.validate import rows, totals

    budgets, refused, ignored = rows.read_totals_table(data) if data else (rows.shipped_totals(), {}, ())
    _tell_refused(frame, ignored, refused)
    catalog = load_catalog(hardware)
    with frame.progress("predicting"):
        predictions = totals.predict_totals(budgets, catalog, tier.value)
    found = totals.validate_totals(budgets, predictions, refused=refused)
    frame.emit(render_validation(found, output.value, **frame.view(out)), out)


def register(parent: typer.Typer) -> None:
    """Add the command and its parts."""
    examples = (
        "plan validate training --family 'H100' -o md",
        "plan validate training -o html --out validation.html",
    )
    command(app, "training", examples=examples)(training)
    serving_examples = ("plan validate serving", "plan validate serving --engine vllm --device 'H100*' -o md")
    command(app, "serving", examples=serving_examples)(serving)
    command(app, "totals", examples=("plan validate totals", "plan validate totals --tier rule -o csv"))(totals)
    parent.add_typer(app, name="validate")
