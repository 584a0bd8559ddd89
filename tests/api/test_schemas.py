"""The JSON Schemas that ship are those of the types; each takes what is printed, and nothing of another type."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from planner.api.made_schemas import made_schemas
from planner.api.schemas import FILES, shipped
from planner.files import read_package_text
from planner.plan.document_schemas import schema_text
from tests.tiers import cases
from tests.verified import follow_schema

CLI = Path(__file__).parents[1] / "cli"
PRINTED = {
    "plan": [CLI / "samples" / f"{name}.json" for name in ("llama", "fleet", "infeasible", "stopped")],
    "frontier": [CLI / "samples" / "frontier" / f"{name}.json" for name in ("budget", "deadline")],
    "validation": [CLI / "golden" / f"{name}.json" for name in ("validate", "validate-serving")],
}
FREE = ("scenario",)  # of a document, what is as its user wrote it
SAMPLES = [(name, path) for name, paths in PRINTED.items() for path in paths]


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return made_schemas()


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_that_of_the_types(name: str, made: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(made[name])
    told = schema_text(made[name])
    assert told == read_package_text(FILES[name]), "run: python -m planner.api.made_schemas"


def closed(schema: Any, path: str = "") -> Iterator[str]:
    """Mappings with named keys that take others too."""
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("additionalProperties") is not False:
            yield path
        for key, inner in schema.items():
            yield from closed(inner, f"{path}.{key}")
    if isinstance(schema, list):
        for number, inner in enumerate(schema):
            yield from closed(inner, f"{path}[{number}]")


@pytest.mark.parametrize("name", FILES)
def test_no_mapping_takes_keys_that_nobody_named(name: str) -> None:
    inside = (".properties.plan", ".properties.frontier.anyOf[0]") if name == "report" else ()  # documents of their own
    assert [path for path in closed(shipped(name)) if path not in inside] == []


@pytest.mark.parametrize(("name", "path"), SAMPLES, ids=lambda value: getattr(value, "stem", value))
def test_it_takes_what_is_printed(name: str, path: Path) -> None:
    follow_schema(json.loads(path.read_text(encoding="utf-8")), name)


def leaves(value: Any, above: tuple[Any, ...] = (), kind: str = "") -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Every leaf but null, as the keys that lead to it, with its path less indexes."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if not (isinstance(key, str) and key in FREE):
            yield from leaves(inner, (*above, key), f"{kind}.{key}" if isinstance(key, str) else f"{kind}[]")
    if isinstance(value, bool | int | float | str):
        yield kind, above


@pytest.mark.parametrize(("name", "path"), [SAMPLES[0], *SAMPLES[4:]], ids=lambda value: getattr(value, "stem", value))
def test_a_leaf_of_another_type_is_refused(name: str, path: Path) -> None:
    """Each path once: a list, where no leaf is one; and a mapping."""
    validator = jsonschema.Draft202012Validator(shipped(name))
    document = json.loads(path.read_text(encoding="utf-8"))
    for kind, keys in dict(leaves(document)).items():
        spoilt = copy.copy(document)
        inner: Any = spoilt
        for key in keys[:-1]:
            inner[key] = copy.copy(inner[key])
            inner = inner[key]
        for wrong in ([], {"a": 1})[: cases(1, 2)]:
            inner[keys[-1]] = wrong
            assert not validator.is_valid(spoilt), kind
