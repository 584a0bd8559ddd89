"""The budget of an uncertain plan: what is expected, and the dearest case, month by month."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from planner.budget.model import CaseMoney, CasesMoney, Monthly
from planner.budget.split import weighed
from planner.plan.model.plan import PlanDocument


def cases_document(
    document: PlanDocument, written: Sequence[int], others: Mapping[str, Sequence[int]]
) -> CasesMoney | None:
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
    rows: list[CaseMoney] = []
    for number, case in enumerate(section["cases"]):
        months = written if number == 0 else others.get(case["name"])
        rows.append(
            {
                "name": case["name"],
                "probability": case["probability"],
                "months_microusd": None if months is None else list(months),
                "total_microusd": None if months is None else sum(months),
            }
        )
    worst = max(rows, key=lambda row: -1 if row["total_microusd"] is None else row["total_microusd"])
    return {"cases": rows, "expected": _expected(rows), "worst": worst.copy()}


def _expected(rows: Sequence[CaseMoney]) -> Monthly | None:
    """Mean by probability; None when some case has no plan, whose cost nobody knows."""
    known = [months for row in rows if (months := row["months_microusd"]) is not None]
    if len(known) < len(rows):
        return None
    months = weighed(known, [Fraction(repr(float(row["probability"]))) for row in rows])
    return {"months_microusd": months, "total_microusd": sum(months)}
