"""What `verify` finds wrong with a plan; that it is merely not proven is no mistake of it."""

from __future__ import annotations

from typing import Any

from planner import api
from planner.errors import InputError, Problem


def errors(document: dict[str, Any], *catalog: Any) -> list[Problem]:
    """The problems that contradict a document, those that make it none among them."""
    try:
        found = api.verify(document, *catalog)
    except InputError as error:
        return list(error.problems)
    return [problem for problem in found if problem.severity == "error"]
