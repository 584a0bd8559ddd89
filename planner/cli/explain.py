"""`plan explain`: the evaluated terms behind the chosen rows of a plan, as they were computed."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Any

import typer

from planner.cli import options
from planner.cli.frame import Form, Frame, command, usage

_SCENARIO_SUFFIXES = (".yaml", ".yml")


def explain(
    frame: Frame,
    plan: Annotated[
        str | None,
        typer.Argument(metavar="[PLAN|SCENARIO]", help="Plan file, or a scenario, which is solved first."),
    ] = None,
    workload: Annotated[str | None, typer.Option("--workload", metavar="NAME", help="Only this one.")] = None,
    rejected: Annotated[bool, typer.Option("--rejected", help="Why the other ways were dropped.")] = False,
    output: options.Output = Form.table,
    out: options.OutFile = None,
    settings: options.Settings = None,
    case: options.Case = None,
    hardware: options.HardwareFolder = None,
    allow_suspect: options.AllowSuspect = False,
) -> None:
    """Show what stands behind a plan: terms of time and memory, what binds, errors, prices, sources, equations."""
    from planner.report.explanation import render_explanation

    asked = {"settings": settings, "case": case, "hardware": hardware}
    if plan is not None and PurePath(plan).suffix in _SCENARIO_SUFFIXES:
        document, code = _solved(frame, plan, allow_suspect=allow_suspect, **asked)
    else:
        document, code = _read(plan, allow_suspect=allow_suspect, **asked), 0
    names = [entry["name"] for entry in document["workloads"]]
    if workload is not None and workload not in names:
        raise usage("unknown-workload", f"the plan has no workload '{workload}'", f"it has {', '.join(names)}")
    view = frame.view(out)
    frame.emit(render_explanation(document, output.value, workload=workload, rejected=rejected, **view), out)
    raise typer.Exit(code)


def _read(plan: str | None, **asked: Any) -> dict[str, Any]:
    """A plan file; what changes the question makes no sense for an answer."""
    from planner.cli.planfile import plan_file, read_plan

    if any(asked.values()):
        hint = "plan explain SCENARIO.yaml --set ..."
        raise usage("not-a-scenario", "--set, --case, --hardware and --allow-suspect want a scenario file", hint)
    return read_plan(plan_file(plan))


def _solved(frame: Frame, scenario: str, *, allow_suspect: bool, **asked: Any) -> tuple[dict[str, Any], int]:
    """The plan of a scenario, and the exit code of its status."""
    from planner.cli.find import load

    question, catalog = load(scenario, **asked)
    from planner import api

    with frame.progress(f"solving {question.name}"):
        plan = api.solve(question, catalog, allow_suspect=allow_suspect)
    return plan.document, plan.exit_code


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = (
        "plan explain .plan/llama.plan.json",
        "plan explain scenarios/llama.yaml --workload pretrain-8b",
    )
    command(app, "explain", examples=examples)(explain)
