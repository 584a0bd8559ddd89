"""What every answer has in common: its document, its JSON, and short words for itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from planner.brief import brief
from planner.carriers import dataclass
from planner.plan.exit_codes import EXIT_CODES


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Answer:
    """A document and what it says; every number in it comes from the document."""

    document: Mapping[str, Any]

    def to_json(self) -> str:
        """The document as stable JSON text."""
        return json.dumps(self.document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Solved(Answer):
    """An answer of a solver, which may have ended in several ways."""

    @property
    def status(self) -> str:
        """optimal, feasible, infeasible, stopped or failed."""
        return str(self.document["status"])

    @property
    def exit_code(self) -> int:
        """Exit code of the command for this status."""
        return EXIT_CODES[self.status]

    def __repr__(self) -> str:
        return brief(type(self).__name__, f"{self.document.get('name', '')}: {self.document.get('status', '')}")
