"""The JSON Schema that ships is the one that the models give, and it takes what the loader takes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import planner.scenario
from planner.scenario.jsonschema import scenario_json_schema, schema_text
from planner.yamlfile import parse_yaml

SHIPPED = Path(planner.scenario.__file__).with_name("scenario.schema.json")
CASES = Path(__file__).parents[1] / "faults" / "good"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SHIPPED.read_text(encoding="utf-8")))


def test_shipped_file_is_up_to_date() -> None:
    text = schema_text()
    assert SHIPPED.read_text(encoding="utf-8") == text, "run: python -m planner.scenario.jsonschema"


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(scenario_json_schema())


@pytest.mark.parametrize("path", sorted(CASES.glob("*.yaml")), ids=lambda path: path.stem)
def test_it_takes_good_scenarios(path: Path, validator: jsonschema.Draft202012Validator) -> None:
    data = parse_yaml(path.read_text(encoding="utf-8"), str(path)).data
    assert [error.message for error in validator.iter_errors(data)] == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("num_epochs", 1),
        ("deadline", 30),
        ("deadline", "80 GB"),
        ("precision", "bf32"),
        ("recompute", ["some"]),
        ("global_batch", 512),
        ("mfu", {"h100": "42 GB"}),
    ],
)
def test_it_refuses_what_the_loader_refuses(
    path: str, value: object, validator: jsonschema.Draft202012Validator
) -> None:
    job = {"name": "a", "model": "gpt2", "tokens": "1B", "deadline": "1 h"}
    assert not list(validator.iter_errors({"schema": "plan/v1", "name": "a", "training": [job]}))
    assert list(validator.iter_errors({"schema": "plan/v1", "name": "a", "training": [{**job, path: value}]}))
