"""`plan verify`: is a plan what it says it is? Checked without the search and without the solver."""

from __future__ import annotations

import typer

from planner.cli import options
from planner.cli.frame import Form, Frame, command


def verify(
    frame: Frame,
    plan: options.PlanFile = None,
    output: options.Output = Form.table,
    out: options.OutFile = None,
    hardware: options.HardwareFolder = None,
    prices: options.Prices = None,
    price: options.Price = None,
) -> None:
    """Check a plan file against its scenario, its catalog and itself, and its bound without any solver."""
    from planner.cli.find import plan_file
    from planner.plan.reading import read_plan
    from planner.report import problems as report
    from planner.report.certificate import certificate_words

    path = plan_file(plan)
    document = read_plan(path)
    from planner import api
    from planner.plan.made_with import catalog_of_plan

    found = api.verify(document, catalog_of_plan(document, hardware, prices=prices, price=price))
    proven = certificate_words(document)
    frame.emit(report.findings(found, path, output.value, proven=proven, **frame.view(out)), out)
    raise typer.Exit(3 if any(problem.severity == "error" for problem in found) else 0)


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = ("plan verify .plan/llama.plan.json", "plan verify .plan/llama.plan.json -o json")
    command(app, "verify", examples=examples)(verify)
