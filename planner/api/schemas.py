"""JSON Schemas of the documents: made from their types, and shipped as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from planner.files import read_package_text

if TYPE_CHECKING:
    from planner.plan.jsonschema import Schema


def plan_schema() -> Schema:
    """JSON Schema of the plan document."""
    return shipped("plan")


def frontier_schema() -> Schema:
    """JSON Schema of the frontier document."""
    return shipped("frontier")


def compare_schema() -> Schema:
    """JSON Schema of the comparison of plans."""
    return shipped("compare")


def report_schema() -> Schema:
    """JSON Schema of the report document."""
    return shipped("report")


def validation_schema() -> Schema:
    """JSON Schema of what `plan validate` prints."""
    return shipped("validation")


FILES = {
    "plan": "plan/plan.schema.json",
    "frontier": "plan/frontier/frontier.schema.json",
    "compare": "plan/compare/compare.schema.json",
    "report": "report/report.schema.json",
    "validation": "validate/validation.schema.json",
}


def shipped(name: str) -> Schema:
    """The schema of a kind of document, as it ships."""
    schema: Schema = json.loads(read_package_text(FILES[name]))
    return schema


def _frontier() -> Schema:
    from planner.plan.frontier.model import FrontierDocument
    from planner.plan.jsonschema import document_schema

    title = "Frontier of plan frontier: every Pareto point of a limit"
    return document_schema(FrontierDocument, "plan/frontier/v1", title)


def _compare() -> Schema:
    from planner.plan.compare.model import CompareDocument
    from planner.plan.jsonschema import document_schema

    return document_schema(
        CompareDocument, "plan/compare/v1", "Comparison of plan compare: plans held against the first"
    )


def _report() -> Schema:
    from planner.plan.jsonschema import document_schema
    from planner.report.model import ReportDocument

    return document_schema(ReportDocument, "plan/report/v1", "A plan, its budget, and where every figure is from")


def _validation() -> Schema:
    from planner.plan.jsonschema import document_schema
    from planner.validate.model import ValidationDocument

    return document_schema(
        ValidationDocument, "plan/validation/v1", "Predictions held against measurements, by plan validate"
    )


def _plan() -> Schema:
    from planner.plan.jsonschema import plan_json_schema

    return plan_json_schema()


MADE: dict[str, Callable[[], Schema]] = {
    "plan": _plan, "frontier": _frontier, "compare": _compare, "report": _report, "validation": _validation,
}  # fmt: skip


if __name__ == "__main__":
    from pathlib import Path

    from planner.files import write_text
    from planner.plan.jsonschema import schema_text

    for document, make in MADE.items():
        write_text(Path(__file__).parents[1] / FILES[document], schema_text(make()))
