"""The types of the plan document: the JSON Schema that they give, and that both refuse the same."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.files import read_package_text
from planner.plan.document_schemas import plan_json_schema, schema_text
from planner.plan.plan_files import read_document
from tests.verified import validator

SAMPLES = Path(__file__).parents[1] / "cli" / "samples"


def test_the_shipped_schema_is_that_of_the_types() -> None:
    told = schema_text(plan_json_schema())
    assert told == read_package_text("plan/plan.schema.json"), "run python -m planner.api.made_schemas"


def test_texts_below_keys_describe_them_in_rows_of_every_kind() -> None:
    parts = plan_json_schema()["$defs"]
    for row in ("TrainingAllocation", "ServingAllocation"):
        assert parts[row]["properties"]["count"]["description"] == "shapes"
        assert parts[row]["properties"]["end_hours"]["description"].startswith("when it is expected to be done")
    contract = parts["Contract"]["properties"]
    assert contract["cost_microusd"]["description"] == "what counts in the total"
    assert contract["price_microusd_per_hour"]["description"] == "integer micro-dollars"


def test_a_case_holds_a_whole_plan() -> None:
    assert {"$ref": "#"} in plan_json_schema()["$defs"]["CaseRow"]["properties"]["plan"]["anyOf"]


def spoilt(document: dict[str, Any], how: str) -> dict[str, Any]:
    row, summary = document["workloads"][0]["allocations"][0], document["summary"]
    if how == "a negative count":
        row["count"] = -1
    elif how == "half a device":
        row["devices"] = 1.5
    elif how == "an unknown key":
        row["layout"]["sp"] = 2
    elif how == "a word for a number":
        summary["gap"] = "0"
    elif how == "a row of the other kind":
        other = "serving" if document["workloads"][0]["kind"] == "training" else "training"
        document["workloads"][0]["kind"] = other
    elif how == "a missing key":
        del row["offer"]
    return document


@pytest.mark.parametrize(
    "how",
    [
        "nothing",
        "a negative count",
        "half a device",
        "an unknown key",
        "a word for a number",
        "a row of the other kind",
        "a missing key",
    ],
)
@pytest.mark.parametrize("name", ["llama", "fleet"])
def test_types_and_schema_refuse_the_same(name: str, how: str) -> None:
    document = spoilt(json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8")), how)
    taken = how == "nothing"
    with nullcontext() if taken else pytest.raises(InputError, match="malformed-plan"):
        read_document(document)
    assert validator("plan").is_valid(document) == taken
