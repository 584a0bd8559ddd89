"""What the verifier says: a reference and a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from planner.errors import InputError, Problem
from planner.estimate.recall import Recall

TOLERANCE = 1e-9  # relative, for what is printed as a float
LOST = 1e-13  # of the largest number beside it, for what may be the rest of a difference

Value = TypeVar("Value")


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


def proven_microusd(document: Mapping[str, Any]) -> int:
    """The cost that the certificate is of: the plan's, or that of the cheapest where a plainer one is proposed."""
    plain = document.get("plain")
    return int(plain["cheapest_microusd"] if plain else document["summary"]["cost_microusd"])


def gathered(findings: Iterator[Finding]) -> list[Problem]:
    """Findings as problems, those before an error and the error: what cannot be read is no plan."""
    found: list[Finding] = []
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):  # a row of no machines, say
            for finding in findings:  # one by one: a later error loses none
                found.append(finding)
    except InputError as error:
        return [*problems_of(found), *error.problems]
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        found.append(Finding("malformed-plan", f"the document is not a plan: {type(error).__name__} {error}"))
    return problems_of(found)


class Memo:
    """What was worked out once of a scenario and a catalog, by what it depends on.

    A plan asks the same of equal rows, and so do many plans of one scenario.
    """

    def __init__(self, recall: Recall | None = None) -> None:
        self._found: dict[Hashable, Any] = {}
        self.recall = recall or Recall()  # what the estimates answered

    def of(self, key: Hashable, work: Callable[[], Value]) -> Value:
        """What `work` gives, worked out at most once for a key."""
        if key not in self._found:
            self._found[key] = work()
        found: Value = self._found[key]
        return found


def slack(microusd: int) -> int:
    """How far two machines may be apart on the cost of one best plan: a millionth, or a cent.  [micro-USD]"""
    return max(10_000, abs(microusd) // 1_000_000)


def cell_findings(
    reference: str, where: str, stated: Mapping[str, object], computed: Mapping[str, object], *, scale: float = 0.0
) -> Iterator[Finding]:
    """Cells of a document that differ from what was computed again.

    Floats may differ by `TOLERANCE` of themselves, or by `LOST` of `scale` and of the largest number beside them:
    what is left of a difference of two large numbers has lost digits. Types are not compared here: the table of
    leaves has them (`planner.checks.leaves`).

    Parameters
    ----------
    reference
        Of the findings, such as "wrong-time".
    where
        What is wrong, as messages begin: the name of a workload, or of a part of the plan.
    stated
        A part of the document; cells that were not computed again are not looked at.
    computed
        What the cells must be.
    scale
        Size of the numbers whose difference a cell may be, in its unit; 0 = only numbers beside it count.
    """
    for name, value in computed.items():
        if name not in stated:
            yield Finding(reference, f"{where}: {name} is missing")
        elif not same(stated[name], value, scale):
            yield Finding(reference, f"{where}: {name} is {stated[name]!r} in the plan, {value!r} computed again")


def same(stated: object, computed: object, scale: float = 0.0) -> bool:
    """Whether a part of a document is what was computed, key by key and element by element.

    Parameters
    ----------
    stated
        Part of a document; keys that were not computed make it another, as does another number of elements.
    computed
        What it must be.
    scale
        As of `cell_findings`; within a mapping the largest number there counts, too.
    """
    if isinstance(stated, bool) or isinstance(computed, bool):
        return stated is computed
    if isinstance(computed, Mapping):
        if not isinstance(stated, Mapping) or set(stated) != set(computed):
            return False
        numbers = [abs(value) for value in computed.values() if isinstance(value, int | float)]
        scale = max([scale, *numbers])
        return all(same(stated[name], value, scale) for name, value in computed.items())
    if isinstance(computed, list):
        pairs = zip(stated, computed) if isinstance(stated, list) and len(stated) == len(computed) else None
        return pairs is not None and all(same(one, other, scale) for one, other in pairs)
    if isinstance(stated, int) and isinstance(computed, int):
        return stated == computed
    if isinstance(stated, int | float) and isinstance(computed, int | float):
        return math.isclose(stated, computed, rel_tol=TOLERANCE, abs_tol=LOST * scale)
    return bool(stated == computed)
