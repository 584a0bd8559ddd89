"""JSON Schemas of the documents, made from their types; `python -m planner.api.made_schemas` writes those that ship."""

from __future__ import annotations

from planner.analysis.compare.model import CompareDocument
from planner.analysis.reserve.model import ReserveDocument
from planner.plan.document_schemas import Schema, document_schema, plan_json_schema
from planner.plan.model.frontier_document import FrontierDocument
from planner.report.model import ReportDocument
from planner.sweeps.document import SweepDocument
from planner.validate.model import ValidationDocument

TITLES = {
    "frontier": (FrontierDocument, "plan/frontier/v1", "Frontier of plan frontier: every Pareto point of a limit"),
    "compare": (CompareDocument, "plan/compare/v1", "Comparison of plan compare: plans held against the first"),
    "report": (ReportDocument, "plan/report/v1", "A plan, its budget, and where every figure is from"),
    "reserve": (ReserveDocument, "plan/reserve/v1", "Commitments: where they break even, and what plan reserve takes"),
    "sweep": (SweepDocument, "plan/sweep/v1", "Sweep of plan sweep: many questions, and where the decision turns"),
    "validation": (ValidationDocument, "plan/validation/v1", "Predictions held against measurements, by plan validate"),
}


def made_schemas() -> dict[str, Schema]:
    """Every schema, by the name of its document."""
    made = {name: document_schema(kind, identifier, title) for name, (kind, identifier, title) in TITLES.items()}
    return {"plan": plan_json_schema(), **made}


if __name__ == "__main__":
    from pathlib import Path

    from planner.api.schemas import FILES
    from planner.files import write_text
    from planner.plan.document_schemas import schema_text

    for document, schema in made_schemas().items():
        write_text(Path(__file__).parents[1] / FILES[document], schema_text(schema))
