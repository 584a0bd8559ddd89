"""Values written as YAML are read back as they were."""

from __future__ import annotations

from planner.scenario import load_scenario
from planner.scenario.shipped import shipped_names
from planner.yamlfile import parse_yaml
from planner.yamlfile.writing import block_text

AWKWARD = {
    "*": {"h100-*": 0.4, "no": False, "a: b": 1, "#": [1, 2]},
    "list": [{}, {"a": {}}, {"b": [{"c": "- d"}, {"e": "'"}]}],
    "text": ["yes", "a #b", "", " x", "{", "ü", "30 days", '"'],
    "deep": {"a": {"b": {"c": {"d": [[1, 2], []]}}}},
}


def test_every_scenario_that_ships_is_the_same_when_it_is_written() -> None:
    for name in shipped_names():
        data = load_scenario(name).resolved
        assert parse_yaml(block_text(data), name).data == data


def test_keys_and_texts_that_yaml_would_read_otherwise() -> None:
    assert parse_yaml(block_text(AWKWARD), "any").data == AWKWARD
