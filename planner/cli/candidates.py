"""`plan candidates`: every way to run each workload that the optimiser may choose from."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import flags
from planner.cli.frame import Form, Frame, command


def candidates(
    frame: Frame,
    scenario: flags.ScenarioFile = None,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
    every: Annotated[bool, typer.Option("--all", help="Those that were pruned or dropped, too.")] = False,
    settings: flags.Settings = None,
    case: flags.Case = None,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
    allow_suspect: flags.AllowSuspect = False,
) -> None:
    """List the ways to run each workload, with memory, time and cost."""
    from planner.cli.find import load
    from planner.report.lists import render_candidates

    question, catalog = load(
        scenario, settings=settings, case=case, hardware=hardware, prices=prices, price=price, frame=frame
    )
    from planner import api

    with frame.progress(f"enumerating {question.name}"):
        rows = api.candidates_table(question, catalog, every=every, allow_suspect=allow_suspect)
    frame.emit(render_candidates(rows, output.value, full=frame.verbose > 0, **frame.view(out)), out)


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = ("plan candidates scenarios/llama.yaml", "plan candidates scenarios/gpt2-xl.yaml -o csv --all")
    command(app, "candidates", examples=examples)(candidates)
