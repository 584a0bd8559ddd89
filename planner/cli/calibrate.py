"""`plan calibrate`: constants of the estimators, fitted to measurements."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import flags
from planner.cli.frame import Form, Frame, command

app = typer.Typer(help="Fit the constants of the estimators to measurements.", no_args_is_help=True)


def training(
    frame: Frame,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="FILE", help="A CSV of your own runs; default: the published rows."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Write the constants there, as calibration/training.yaml."),
    ] = None,
    family: Annotated[
        list[str] | None, typer.Option("--family", metavar="PATTERN", help="Only rows of these; repeatable.")
    ] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="DATE", help="Date of the measurements; default: today.")
    ] = None,
    output: flags.Output = Form.table,
    hardware: flags.HardwareFolder = None,
) -> None:
    """Fit step-time constants by device family, and measure the error on rows left out."""
    from planner.calibrate.calibration import calibrate
    from planner.catalog.load import load_catalog
    from planner.report.calibration_view import render_calibration
    from planner.validate import rows

    measured = rows.of_families(rows.read_training_rows(data) if data else rows.shipped_training_rows(), family or ())
    date = _date(as_of) if as_of or data else rows.COLLECTED
    catalog = load_catalog(hardware)
    with frame.progress("fitting"):
        found = calibrate(measured, catalog, source=data or rows.SHIPPED, as_of=date)
    if out:
        from planner import files

        files.write_text(out, found.to_yaml())
        frame.say(f"wrote {out}; a catalog reads it as calibration/training.yaml")
    frame.emit(render_calibration(found, output.value, **frame.view()))


def serving(
    frame: Frame,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="FILE", help="A CSV of your own rows; default: the published ones."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Write the constants there, as calibration/serving.yaml."),
    ] = None,
    engine: Annotated[
        list[str] | None, typer.Option("--engine", metavar="PATTERN", help="Only rows of these; repeatable.")
    ] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="DATE", help="Date of the measurements; default: today.")
    ] = None,
    output: flags.Output = Form.table,
    hardware: flags.HardwareFolder = None,
) -> None:
    """Fit the constants of serving, and measure errors and bands on campaigns left out."""
    from planner.calibrate.serving import calibrate_serving
    from planner.catalog.load import load_catalog
    from planner.report.calibration_view import render_serving_calibration
    from planner.validate import rows, serving_rows
    from planner.validate.serving_entries import entries_of

    every = serving_rows.read_serving_rows(data) if data else serving_rows.shipped_serving_rows()
    measured = serving_rows.chosen_serving(every, engines=engine or ())
    date = _date(as_of) if as_of or data else rows.COLLECTED
    catalog = load_catalog(hardware)
    with frame.progress("fitting"):
        found = calibrate_serving(measured, catalog, source=data or serving_rows.SHIPPED_SERVING, as_of=date)
    if out:
        from planner import files

        files.write_text(out, found.to_yaml())
        frame.say(f"wrote {out}; a catalog reads it as calibration/serving.yaml")
    entries = entries_of(measured, catalog)
    frame.emit(render_serving_calibration(found, entries, output.value, **frame.view()))


def _date(given: str | None) -> str:
    """An ISO date, or today's."""
    from datetime import date

    from planner.catalog.reading import is_date
    from planner.cli.frame import usage

    if given and not is_date(given):
        raise usage("bad-date", f"--as-of '{given}' is no date", "write 2026-11-21")
    return given or date.today().isoformat()


def register(parent: typer.Typer) -> None:
    """Add the command and its parts."""
    examples = (
        "plan calibrate training --family TPU-v4",
        "plan calibrate training --family 'TPU-v5p' --out calibration.yaml -q",
    )
    command(app, "training", examples=examples, renews=True)(training)
    examples = (
        "plan calibrate serving --engine mlc-llm",
        "plan calibrate serving --engine vllm-tpu --out serving.yaml -q",
    )
    command(app, "serving", examples=examples, renews=True)(serving)
    parent.add_typer(app, name="calibrate")
