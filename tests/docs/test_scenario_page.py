"""The reference of scenarios is whole: every key is told, with a scenario that uses it and loads."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenario_page import anchor, mappings, used
from scenario_words import MAPPINGS

from planner.scenario import load_scenario
from planner.scenario.jsonschema import scenario_json_schema

EXAMPLES = Path(__file__).parents[2] / "docs" / "generate" / "examples"
SCHEMA = scenario_json_schema()
KEYS = [(name, key) for name, part in mappings(SCHEMA).items() for key in part["properties"]]


def test_every_mapping_has_a_section_and_every_section_a_mapping() -> None:
    assert set(mappings(SCHEMA)) == set(MAPPINGS) == {"Scenario", *SCHEMA["$defs"]}
    assert len({anchor(title) for title, _ in MAPPINGS.values()}) == len(MAPPINGS)


@pytest.mark.parametrize(("mapping", "key"), KEYS)
def test_every_key_is_described_and_used(mapping: str, key: str) -> None:
    part = SCHEMA if mapping == "Scenario" else SCHEMA["$defs"][mapping]
    assert part["properties"][key].get("description"), "say in planner/scenario what the key changes"
    assert (mapping, key) in used(), "use the key in a scenario of docs/generate/examples"


@pytest.mark.parametrize("name", ["training.yaml", "serving.yaml"])
def test_examples_load(name: str) -> None:
    assert load_scenario(EXAMPLES / name).workloads
