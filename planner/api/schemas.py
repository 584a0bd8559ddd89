"""JSON Schemas of the documents."""

from __future__ import annotations

import json
from typing import Any

from planner.files import read_package_text

Document = dict[str, Any]


def plan_schema() -> Document:
    """JSON Schema of the plan document."""
    schema: Document = json.loads(read_package_text("plan/plan.schema.json"))
    return schema


def frontier_schema() -> Document:
    """JSON Schema of the frontier document."""
    schema: Document = json.loads(read_package_text("plan/frontier/frontier.schema.json"))
    return schema


def compare_schema() -> Document:
    """JSON Schema of the comparison of plans."""
    schema: Document = json.loads(read_package_text("plan/compare/compare.schema.json"))
    return schema


def report_schema() -> Document:
    """JSON Schema of the report document."""
    schema: Document = json.loads(read_package_text("report/report.schema.json"))
    return schema
