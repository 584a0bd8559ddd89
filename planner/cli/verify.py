"""`plan verify`: is a plan what it says it is? Checked without the search and without the solver."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import options
from planner.cli.frame import Form, Frame, command

PlanFile = Annotated[str | None, typer.Argument(metavar="[PLAN]", help="Plan file; default: the only one in .plan/.")]


def verify(
    frame: Frame,
    plan: PlanFile = None,
    output: options.Output = Form.table,
    out: options.OutFile = None,
    hardware: options.HardwareFolder = None,
) -> None:
    """Check a plan file against its scenario, its catalog and itself, and its bound without any solver."""
    from planner.cli.planfile import plan_file, read_plan
    from planner.report import problems as report
    from planner.report.certificate import certificate_words

    path = plan_file(plan)
    document = read_plan(path)
    from planner import api

    found = api.verify(document, api.load_catalog(hardware) if hardware else None)
    proven = certificate_words(document)
    frame.emit(report.findings(found, path, output.value, proven=proven, **frame.view(out)), out)
    raise typer.Exit(3 if any(problem.severity == "error" for problem in found) else 0)


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = ("plan verify .plan/llama.plan.json", "plan verify .plan/llama.plan.json -o json")
    command(app, "verify", examples=examples)(verify)
