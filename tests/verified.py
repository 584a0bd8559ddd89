"""What `verify` finds wrong with a plan, and whether a document follows its schema."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema

from planner import api
from planner.api.schemas import shipped
from planner.errors import InputError, Problem


def errors(document: dict[str, Any], *catalog: Any) -> list[Problem]:
    """The problems that contradict a document, those that make it none among them; that it is not proven is none."""
    try:
        found = api.verify(document, *catalog)
    except InputError as error:
        return list(error.problems)
    return [problem for problem in found if problem.severity == "error"]


@cache
def validator(name: str) -> Any:
    """Of a schema that ships; that it is a schema is looked at once, in tests/api/test_schemas.py."""
    return jsonschema.Draft202012Validator(shipped(name))


def follow_schema(document: Any, name: str = "plan") -> None:
    """A `ValidationError` where the document does not follow the schema."""
    error = jsonschema.exceptions.best_match(validator(name).iter_errors(document))
    if error is not None:
        raise error
