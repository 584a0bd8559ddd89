"""The cases of an uncertain plan: each a plan of its own, all on the same contracts, their mean as stated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from planner.checks.findings import Finding, cell_findings, problems_of, slack
from planner.errors import Problem
from planner.scenario.load import cases_of
from planner.scenario.schema import Scenario

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
    return [
        *problems,
        *problems_of([*_cases(section, scenario, plans), *_contracts(plans), *_figures(section, scenario)]),
    ]


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
    """What is bought ahead is bought before it is known what happens; nodes on demand beside it are taken then."""
    held = [
        sorted(
            (one["offer"], one["start_hours"], one["end_hours"], one["count"])
            for one in plan.get("contracts") or ()
            if one["kind"] != "on_demand"
        )
        for plan in plans
        if plan["status"] in ("optimal", "feasible")
    ]
    if any(other != held[0] for other in held[1:]):
        yield Finding("wrong-case", "the cases hold different contracts")


def _figures(section: Uncertainty, scenario: Scenario) -> Iterator[Finding]:
    """Means of the costs told of the cases; nobody is better off for knowing less.

    What a case costs by itself, and with the contracts of the case as written, are plans of their own: they are held
    against the costs beside them here, and solved again by `plan verify --solve`.
    """
    cases = section["cases"]
    shares = [Fraction(repr(case["probability"])) for case in cases]
    costs = [case["cost_microusd"] for case in cases]
    known, blind = (
        [_micro(case[name]) for case in cases] for name in ("known_beforehand_usd", "contracts_of_written_usd")
    )
    expected, informed, unprepared = (_mean(shares, each) for each in (costs, known, blind))
    asked = scenario.risk if scenario.risk is not None and scenario.risk.weight else None
    level = Fraction(repr(asked.cvar)) if asked is not None else Fraction(19, 20)
    cells = {
        "expected_usd": _usd(expected),
        "at_risk_usd": None if None in costs else _usd(_worst(shares, [cost or 0 for cost in costs], 1 - level)),
        "perfect_information_usd": None if None in (expected, informed) else _usd((expected or 0) - (informed or 0)),
        "stochastic_solution_usd": None
        if None in (expected, unprepared)
        else _usd((unprepared or 0) - (expected or 0)),
        "risk": None if asked is None else {"level": asked.cvar, "weight": asked.weight},
    }
    yield from cell_findings("wrong-total", "uncertainty", section, cells, scale=float(expected or 0) / 1e6)
    for case, cost, before, after in zip(cases, costs, known, blind):
        yield from cell_findings("wrong-total", case["name"], case, {"cost_usd": None if cost is None else cost / 1e6})
        for other in (cost, after):
            if before is not None and other is not None and other < before - slack(before):
                yield Finding("wrong-proof", f"{case['name']}: {before} if known beforehand, {other} if not")
    if known[0] is not None and blind[0] is not None and abs(known[0] - blind[0]) > slack(known[0]):
        yield Finding("wrong-total", "the case as written costs one thing by itself and another with its own contracts")
    bound = section["bound_usd"]
    if (
        bound is not None
        and asked is None
        and expected is not None
        and bound > expected * (1 + Fraction(1, 10**9)) / 10**6
    ):
        yield Finding("wrong-proof", f"the bound of the expected cost, {bound}, is above it")


def _micro(usd: float | None) -> int | None:
    return None if usd is None else round(Fraction(usd) * 1_000_000)


def _usd(microusd: Fraction | int | None) -> float | None:
    return None if microusd is None else float(Fraction(microusd) / 1_000_000)


def _mean(shares: Sequence[Fraction], costs: Sequence[int | None]) -> Fraction | None:
    """Expected cost; None when some case has none.  [micro-USD]"""
    if None in costs:
        return None
    return sum((share * (cost or 0) for share, cost in zip(shares, costs)), start=Fraction(0))


def _worst(shares: Sequence[Fraction], costs: Sequence[int], tail: Fraction) -> Fraction:
    """Mean cost of the dearest cases that make up a share of all, the last of them in part.  [micro-USD]"""
    if tail <= 0:
        return Fraction(max(costs))
    reached, total = Fraction(0), Fraction(0)
    for number in sorted(range(len(costs)), key=lambda each: -costs[each]):
        part = max(min(shares[number], tail - reached), Fraction(0))
        reached, total = reached + part, total + part * costs[number]
    return total / tail
