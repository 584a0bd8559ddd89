"""`plan models`: the shipped models, and what one of them is made of."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import flags
from planner.cli.frame import Form, Frame, command

app = typer.Typer(help="Models by name: parameters, FLOPs and cache per token.", no_args_is_help=True)


def list_models(frame: Frame, output: flags.Output = Form.table, out: flags.OutFile = None) -> None:
    """List the shipped models with their computed counts."""
    from planner.architecture.load import preset_summary
    from planner.report.memory_view import render_models

    frame.emit(render_models(preset_summary(), output.value, **frame.view(out)), out)


def show(
    frame: Frame,
    model: flags.Model,
    sequence: Annotated[
        int, typer.Option("--sequence", min=1, max=flags.MOST_LENGTH, help="Tokens that attention looks over.")
    ] = 4096,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
) -> None:
    """Show one model: parameters, FLOPs per token, cache bytes per token by format, layer kinds."""
    from planner.architecture.load import load_model
    from planner.memory.model_facts import model_facts
    from planner.report.memory_view import render_model

    facts = model_facts(load_model(model), sequence)
    frame.emit(render_model(facts, output.value, **frame.view(out)), out)


def register(parent: typer.Typer) -> None:
    """Add the command and its two parts."""
    command(app, "list", examples=("plan models list", "plan models list -o csv"))(list_models)
    command(app, "show", examples=("plan models show llama-3.1-8b", "plan models show deepseek-v3 -o json"))(show)
    parent.add_typer(app, name="models")
