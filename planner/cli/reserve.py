"""`plan reserve`: what to commit to and what to rent."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import flags
from planner.cli.flags import deadline_of, share_of
from planner.cli.frame import Frame, command, usage
from planner.cli.interrupts import on_time

if TYPE_CHECKING:
    from planner.analysis.reserve.model import ReserveDocument


class ReserveForm(StrEnum):
    """Output formats of `plan reserve`."""

    table = "table"
    json = "json"
    csv = "csv"
    md = "md"
    html = "html"
    xlsx = "xlsx"


def reserve(
    frame: Frame,
    scenario: flags.ScenarioFile = None,
    term: Annotated[
        list[str] | None,
        typer.Option("--term", metavar="MODEL", help="commitment_1y, commitment_3y, block; repeatable."),
    ] = None,
    otherwise: Annotated[
        bool, typer.Option("--otherwise/--no-otherwise", help="Also less demand, lower prices, an early end.")
    ] = True,
    output: Annotated[ReserveForm, typer.Option("--output", "-o", help="Output format.")] = ReserveForm.table,
    out: flags.OutFile = None,
    settings: flags.Settings = None,
    case: flags.Case = None,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
    allow_suspect: flags.AllowSuspect = False,
    solver: flags.SolverName = flags.Solver.highs,
    gap: flags.Gap = "0",
    time_limit: flags.TimeLimit = None,
    threads: flags.Threads = 1,
    seed: flags.Seed = 0,
) -> None:
    """Find what to reserve and what to rent, what it saves, and what it costs when things turn out otherwise."""
    from planner.cli.find import load

    deadline = deadline_of(time_limit)
    threads = flags.within_cores(frame, threads)
    asked: dict[str, Any] = {"solver": solver.value, "gap": share_of(gap), "time_limit_s": deadline}
    with on_time(deadline):
        question, catalog = load(
            scenario, settings=settings, case=case, hardware=hardware, prices=prices, price=price, frame=frame
        )
        from planner import api
    from planner.report.escape import file_stem
    from planner.report.reserve_view import render_reserve

    asked |= {"threads": threads, "seed": seed, "allow_suspect": allow_suspect, "otherwise": otherwise}
    if term:
        asked["terms"] = term
    started = time.monotonic()
    with on_time(deadline), frame.progress(f"weighing commitments for {question.name}"):
        found = api.reserve(question, catalog, **asked)
    elapsed_s = time.monotonic() - started
    if output in (ReserveForm.html, ReserveForm.xlsx):
        _write(frame, found.document, output, out or f".plan/{file_stem(question.name)}.reserve.{output.value}")
    else:
        frame.emit(render_reserve(found.document, output.value, elapsed_s=elapsed_s, **frame.view(out)), out)
    raise typer.Exit(found.exit_code)


def _write(frame: Frame, document: ReserveDocument, form: ReserveForm, path: str) -> None:
    """A page or a workbook, as a file; a page also on stdout."""
    from planner import files
    from planner.report.html.pages import render_reserve_page
    from planner.report.workbook.reserve_sheets import reserve_workbook

    if form is ReserveForm.html:
        page = render_reserve_page(document)
        if path == "-":
            frame.emit(page)
            return
        files.write_text(path, page)
    elif path == "-":
        raise usage("binary-output", "a workbook is no text", "--out FILE.xlsx")
    else:
        files.write_bytes(path, reserve_workbook(document))
    frame.emit(f"wrote {path}\n")


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = (
        "plan reserve scenarios/chat-fleet.yaml --set hardware.providers=aws",
        "plan reserve scenarios/chat-fleet.yaml --term commitment_1y -o xlsx --out reserve.xlsx",
    )
    command(app, "reserve", examples=examples)(reserve)
