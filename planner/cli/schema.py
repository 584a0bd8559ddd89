"""`plan schema`: the JSON Schemas of scenarios and of every document that is printed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from planner.cli import flags
from planner.cli.frame import Frame, command


class Which(StrEnum):
    """Documents that have a schema."""

    scenario = "scenario"
    plan = "plan"
    frontier = "frontier"
    report = "report"
    compare = "compare"
    validation = "validation"


def schema(
    frame: Frame,
    which: Annotated[Which, typer.Argument(help="Of which document.")] = Which.scenario,
    out: flags.OutFile = None,
) -> None:
    """Print the JSON Schema of scenario files, of plan documents, of frontiers, reports, comparisons or validations."""
    from planner.report import json

    frame.emit(json.render(_schema(which)), out)


def _schema(which: Which) -> dict[str, object]:
    if which is not Which.scenario:
        from planner.api.schemas import shipped

        return shipped(which.value)
    from planner.scenario.jsonschema import scenario_json_schema

    return dict(scenario_json_schema())


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "schema", examples=("plan schema", "plan schema plan --out .plan/plan.schema.json"))(schema)
