"""The budget of an uncertain plan: what is expected, and the dearest case, month by month."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from planner.plan.budget.split import weighed

Document = dict[str, Any]


def cases_document(
    document: Mapping[str, Any], written: Sequence[int], others: Mapping[str, Sequence[int]]
) -> Document | None:
    """Every case by month, their mean by probability, and the dearest; None for a plan of one future.

    Parameters
    ----------
    document
        The plan, with its cases.
    written
        Money by month of the scenario as written, which is the first case.  [micro-USD]
    others
        Of each other case that has a plan, by its name.  [micro-USD]
    """
    section = document.get("uncertainty")
    if not section:
        return None
    rows = []
    for number, case in enumerate(section["cases"]):
        months = list(written) if number == 0 else others.get(case["name"])
        told = {"name": case["name"], "probability": case["probability"]}
        rows.append({**told, "months_microusd": months and list(months), "total_microusd": months and sum(months)})
    known = [row for row in rows if row["months_microusd"] is not None]
    worst = max(known, key=lambda row: row["total_microusd"])
    return {"cases": rows, "expected": _expected(rows), "worst": dict(worst)}


def _expected(rows: Sequence[Document]) -> Document | None:
    """Mean by probability; None when some case has no plan, whose cost nobody knows."""
    if any(row["months_microusd"] is None for row in rows):
        return None
    weights = [Fraction(repr(float(row["probability"]))) for row in rows]
    months = weighed([row["months_microusd"] for row in rows], weights)
    return {"months_microusd": months, "total_microusd": sum(months)}
