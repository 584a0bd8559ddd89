"""JSON Schemas of the documents, as they ship (`planner.api.made_schemas` makes them from the types)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from planner.files import read_package_text

if TYPE_CHECKING:
    from planner.plan.document_schemas import Schema

FILES = {
    "plan": "plan/plan.schema.json",
    "frontier": "analysis/frontier/frontier.schema.json",
    "compare": "analysis/compare/compare.schema.json",
    "report": "report/report.schema.json",
    "reserve": "analysis/reserve/reserve.schema.json",
    "sweep": "sweeps/sweep.schema.json",
    "validation": "validate/validation.schema.json",
}


def plan_schema() -> Schema:
    """JSON Schema of the plan document."""
    return shipped("plan")


def frontier_schema() -> Schema:
    """JSON Schema of the frontier document."""
    return shipped("frontier")


def compare_schema() -> Schema:
    """JSON Schema of the comparison of plans."""
    return shipped("compare")


def reserve_schema() -> Schema:
    """JSON Schema of the document of `plan reserve`."""
    return shipped("reserve")


def report_schema() -> Schema:
    """JSON Schema of the report document."""
    return shipped("report")


def sweep_schema() -> Schema:
    """JSON Schema of the document of `plan sweep`."""
    return shipped("sweep")


def validation_schema() -> Schema:
    """JSON Schema of what `plan validate` prints."""
    return shipped("validation")


def shipped(name: str) -> Schema:
    """The schema of a kind of document: one of `FILES`."""
    schema: Schema = json.loads(read_package_text(FILES[name]))
    return schema
