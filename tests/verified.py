"""What `verify` finds wrong with a plan; that it is merely not proven is no mistake of it."""

from __future__ import annotations

from typing import Any

from planner import api
from planner.errors import Problem


def errors(document: dict[str, Any], *catalog: Any) -> list[Problem]:
    """The problems that contradict a document."""
    return [problem for problem in api.verify(document, *catalog) if problem.severity == "error"]
