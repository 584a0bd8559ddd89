"""What the verifier says: a reference and a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from planner.errors import Problem

TOLERANCE = 1e-9  # relative, for what is printed as a float


class Finding(NamedTuple):
    """One contradiction in a plan."""

    reference: str
    message: str


def problems_of(findings: Iterable[Finding]) -> list[Problem]:
    """Findings as problems with a way out."""
    return [
        Problem(reference=finding.reference, message=finding.message, hint="solve the scenario again")
        for finding in findings
    ]


def cell_findings(
    reference: str, where: str, stated: Mapping[str, Any], computed: Mapping[str, Any], *, scale: float = 0.0
) -> Iterator[Finding]:
    """Cells of a document that differ from what was computed again.

    Floats may differ by `TOLERANCE` of themselves or of `scale`, terms by as much of the largest term:
    what is left of a difference of two large numbers has lost digits.
    """
    for name, value in computed.items():
        if name not in stated:
            yield Finding(reference, f"{where}: {name} is missing")
        elif not _same(stated[name], value, scale):
            yield Finding(reference, f"{where}: {name} is {stated[name]!r} in the plan, {value!r} computed again")


def _same(stated: Any, computed: Any, scale: float) -> bool:
    if isinstance(stated, bool) or isinstance(computed, bool):
        return stated is computed
    if isinstance(computed, Mapping):
        if not isinstance(stated, Mapping) or set(stated) != set(computed):
            return False
        numbers = [abs(value) for value in computed.values() if isinstance(value, int | float)]
        scale = max([scale, *numbers])
        return all(_same(stated[name], value, scale) for name, value in computed.items())
    if isinstance(computed, list):
        pairs = zip(stated, computed) if isinstance(stated, list) and len(stated) == len(computed) else None
        return pairs is not None and all(_same(one, other, scale) for one, other in pairs)
    if isinstance(stated, int) and isinstance(computed, int):
        return stated == computed
    if isinstance(stated, int | float) and isinstance(computed, int | float):
        return math.isclose(stated, computed, rel_tol=TOLERANCE, abs_tol=TOLERANCE * scale)
    return bool(stated == computed)
