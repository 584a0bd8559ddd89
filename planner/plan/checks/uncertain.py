"""The cases of an uncertain plan: each a plan of its own, all on the same contracts, their mean as stated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from planner.errors import Problem
from planner.plan.checks.findings import Finding, problems_of
from planner.scenario.schema import Scenario
from planner.scenario.uncertain import cases_of

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument, Uncertainty


def uncertainty_problems(
    document: PlanDocument, scenario: Scenario, check: Callable[[PlanDocument], Sequence[Problem]]
) -> list[Problem]:
    """What is wrong with the cases of a plan.

    Parameters
    ----------
    check
        Verifies the plan of one case.
    """
    section = document.get("uncertainty")
    if section is None:
        missing = scenario.uncertainty and document["status"] in ("optimal", "feasible")
        return problems_of([Finding("missing-case", "the plan says nothing of the cases")] if missing else [])
    plans = [case["plan"] or document for case in section["cases"]]
    problems = [problem for plan in plans[1:] for problem in check(plan)]
    return [*problems, *problems_of([*_cases(section, scenario, plans), *_contracts(plans), *_figures(section)])]


def _cases(section: Uncertainty, scenario: Scenario, plans: Sequence[PlanDocument]) -> Iterator[Finding]:
    asked = cases_of(scenario)
    stated = [(case["name"], case["probability"]) for case in section["cases"]]
    if stated != [(case.name, float(case.probability)) for case in asked]:
        yield Finding("wrong-case", f"the scenario has the cases {[case.name for case in asked]}, the plan {stated}")
        return
    for one, case, plan in zip(asked, section["cases"], plans):
        if case["plan"] is not None and plan["scenario"] != one.scenario.resolved:
            yield Finding("wrong-case", f"{case['name']}: its plan is of another scenario")
        if case["cost_microusd"] != plan["summary"]["cost_microusd"]:
            yield Finding("wrong-total", f"{case['name']}: its cost is not that of its plan")


def _contracts(plans: Sequence[PlanDocument]) -> Iterator[Finding]:
    """What is bought ahead is bought before it is known what happens."""
    held = [
        sorted(
            (one["offer"], one["start_hours"], one["end_hours"], one["count"]) for one in plan.get("contracts") or ()
        )
        for plan in plans
        if plan["status"] in ("optimal", "feasible")
    ]
    if any(other != held[0] for other in held[1:]):
        yield Finding("wrong-case", "the cases hold different contracts")


def _figures(section: Uncertainty) -> Iterator[Finding]:
    costs = [case["cost_microusd"] for case in section["cases"]]
    expected = section["expected_usd"]
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        if expected is not None:
            yield Finding("wrong-total", "an expected cost is stated, but some case has no plan")
        return
    shares = [Fraction(repr(case["probability"])) for case in section["cases"]]
    mean = sum((share * cost for share, cost in zip(shares, known)), start=Fraction(0)) / 1_000_000
    if expected is None or not math.isclose(expected, mean, rel_tol=1e-12):
        yield Finding("wrong-total", f"the expected cost is stated as {expected}, the cases give {float(mean)}")
    bound = section["bound_usd"]
    if bound is not None and section["risk"] is None and bound > mean * (1 + Fraction(1, 10**9)):
        yield Finding("wrong-proof", f"the bound of the expected cost, {bound}, is above it")
