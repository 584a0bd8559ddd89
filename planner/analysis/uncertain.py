"""What is decided before it is known what happens: one set of contracts for all cases, a plan for each.

The contracts are those of least expected cost (or of the mean of that and the cost at risk), from one program of all
cases (`planner.candidates.cases`). Each case is then planned with these contracts, by the way that every scenario is.
Beside that stand two measures of Birge and Louveaux (2011, section 4.1-4.2): what it would be worth to know the case
beforehand, and what it saves to have thought of all cases in place of the one that is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from planner.analysis.beside import NO_TIME
from planner.analysis.tighten import solve_within_targets
from planner.analysis.why.repairs import BOTH
from planner.candidates.cases import Case, Combined, Risk, combine, contract_keys
from planner.candidates.program import IntArray, Row
from planner.candidates.search import Candidates
from planner.carriers import dataclass
from planner.deadline import Deadline, is_up
from planner.errors import InputError, PlanError
from planner.optimize.solve import Solution, optimize
from planner.optimize.status import as_far_as_listed, uninterrupted
from planner.plan.document import digest_of
from planner.plan.rows.row_cells import usd
from planner.scenario.load import cases_of
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.model.others import Infeasible, WayOut
    from planner.plan.model.plan import PlanDocument, Uncertainty

Key = tuple[str, int, int]  # offer of a contract, its first period, the first after it
Held = Mapping[Key, int]  # nodes by contract
Planned = Callable[[Candidates, Callable[[Candidates], Solution]], "PlanDocument"]  # the plan of one case by a solver
LARGEST = 2**62
CHOICES = ("hardware.allow", "hardware.regions", "hardware.providers", "hardware.kinds")  # told whatever comes of them
NONE_FOUND = {"to": None, "to_text": "", "more_text": "", "setting": "", "proven": False, "cost_microusd": None,
              "cost_usd": None}  # fmt: skip
CONTRACTS_SHARE = 0.6  # of the time that is left, for the contracts; the plans of the cases have the rest
MEASURES = "what each case would cost by itself, and with the contracts of the case as written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Contracts for all cases and what is known of them."""

    held: Held
    solution: Solution
    combined: Combined


def risk_of(scenario: Scenario) -> Risk | None:
    """The risk that a scenario asks to weigh, in decimals as written."""
    if scenario.risk is None or not scenario.risk.weight:
        return None
    level, weight = (Fraction(repr(each)) for each in (scenario.risk.cvar, scenario.risk.weight))
    return Risk(level=level, weight=weight)


def listed_cases(scenario: Scenario, listed: Callable[[Scenario, int], Candidates]) -> list[Case]:
    """The scenario as written and what may happen, each with its ways, by a function of it and its number from 1."""
    return [
        Case(name=one.name, probability=one.probability, candidates=listed(one.scenario, number))
        for number, one in enumerate(cases_of(scenario), 1)
    ]


def choose_contracts(cases: Sequence[Case], risk: Risk | None, **options: Any) -> Chosen:
    """The contracts of least expected cost, or of least cost and risk.

    Raises
    ------
    InputError
        Costs times probabilities would leave 64 bits.
    """
    try:
        combined = combine(cases, risk)
        sizes = combined.program.cost_microusd.astype(object) * combined.program.max_units
    except OverflowError:
        sizes = np.array([LARGEST], dtype=object)
    if len(sizes) and max(sizes) >= LARGEST:
        raise InputError.of(
            "out-of-range",
            "the costs of the cases, weighed with such fine probabilities, are too large to add up exactly",
            hint="round the probabilities to whole percents",
        )
    solution = uninterrupted(optimize(combined.program, **options))
    solution = as_far_as_listed(solution, sorted({name for case in cases for name in case.candidates.cut}))
    held: dict[Key, int] = {}
    for case, where in zip(cases, combined.columns) if solution.has_plan else ():
        held |= _held(case.candidates, solution.units[where])
    return Chosen(held=held, solution=solution, combined=combined)


def _held(candidates: Candidates, units: IntArray) -> dict[Key, int]:
    return {key[:3]: int(units[column]) for column, key in contract_keys(candidates).items()}


def with_contracts(candidates: Candidates, held: Held) -> Candidates:
    """The candidates with the contracts as they are: no more, no fewer."""
    program, keys = candidates.program, contract_keys(candidates)
    most = np.array(program.max_units, dtype=np.int64)
    rows: list[Row] = []
    for column, key in keys.items():
        nodes = held.get(key[:3], 0)
        most[column] = max(nodes, 1)
        rows += _exactly(column, nodes)
    return replace(candidates, program=replace(program, max_units=most, rows=(*program.rows, *rows)))


def _exactly(column: int, nodes: int) -> list[Row]:
    columns = np.array([column], dtype=np.int64)
    return [
        Row(
            name="contracts",
            label="contracts of all cases",
            bound=bound,
            columns=columns,
            coefficients=columns * 0 + sign,
        )
        for sign, bound in ((1, nodes), (-1, -nodes))
    ]


def solve_cases(
    scenario: Scenario,
    cases: Sequence[Case],
    planned: Planned,
    whole: Callable[[Candidates, Mapping[str, Any]], Solution],
    options: Mapping[str, Any],
    *,
    again: Callable[[Sequence[str]], Sequence[Case]],
) -> PlanDocument:
    """The plan of the scenario as written, with the cases and what they cost beside it.

    Parameters
    ----------
    cases
        The scenario as written, then what may happen.
    planned
        Makes the plan document of candidates, given what solves them.
    whole
        Solves candidates with options of the solver.
    options
        These; each case has an equal part of the time that is left until a deadline.
    again
        Lists the cases with some settings more: for ways out, which have to hold in all of them.
    """
    risk = risk_of(scenario)
    limit = options.get("time_limit_s")
    first_of_all = {"time_limit_s": limit.portion(CONTRACTS_SHARE)} if isinstance(limit, Deadline) else {}
    chosen = choose_contracts(cases, risk, **{**options, **first_of_all})
    if not chosen.solution.has_plan:
        unmet = [case.name for case in cases if not is_up(limit) and not whole(case.candidates, options).has_plan]
        message = "no contracts serve all cases of the uncertainty"
        message += f"; without a plan even by itself: {', '.join(unmet)}" if unmet else ""

        def holds(settings: Sequence[str]) -> bool:
            try:
                return not is_up(limit) and choose_contracts(again(settings), risk, **options).solution.has_plan
            except PlanError:
                return False

        unplanned = planned(cases[0].candidates, lambda _: _nothing(cases[0].candidates, chosen.solution, message))
        return _sealed({**unplanned, "infeasible": _in_all_cases(unplanned["infeasible"], holds)}, scenario, None)

    def shared(held: Held | None, left: int, known: IntArray | None = None) -> Callable[[Candidates], Solution]:
        """What solves one of so many cases that are left, under contracts; with a plan for when there is no time."""
        asked = {**options, "time_limit_s": limit.portion(1 / left)} if isinstance(limit, Deadline) else options

        def solve(ready: Candidates) -> Solution:
            fits = known is not None and len(known) == ready.program.column_count
            first = known if fits and isinstance(limit, Deadline) else None
            return whole(ready if held is None else with_contracts(ready, held), {**asked, "first": first})

        return solve

    documents = [
        planned(case.candidates, shared(chosen.held, len(cases) - number, chosen.solution.units[where]))
        for number, (case, where) in enumerate(zip(cases, chosen.combined.columns))
    ]
    if is_up(limit):
        nothing: list[int | None] = [None] * len(cases)
        section = _section(cases, chosen, risk, documents, nothing, nothing)
        told = [*documents[0]["warnings"], f"{NO_TIME}: {MEASURES}"]
        return _sealed({**documents[0], "warnings": told}, scenario, section)
    if not any(contract_keys(case.candidates) for case in cases):  # each is planned as it would be by itself
        costs = [document["summary"]["cost_microusd"] for document in documents]
        return _sealed(documents[0], scenario, _section(cases, chosen, risk, documents, costs, costs))
    rest = 2 * len(cases)
    alone = [solve_within_targets(case.candidates, shared(None, rest - number))[1] for number, case in enumerate(cases)]
    first = alone[0]
    written = _held(cases[0].candidates, first.units) if first.has_plan else {}
    guessed = [
        solve_within_targets(case.candidates, shared(written, len(cases) - number))[1]
        for number, case in enumerate(cases)
    ]
    return _sealed(documents[0], scenario, _section(cases, chosen, risk, documents, _costs(alone), _costs(guessed)))


def _costs(solutions: Sequence[Solution]) -> list[int | None]:
    return [solution.cost_microusd if solution.has_plan else None for solution in solutions]


def _in_all_cases(told: Infeasible | None, holds: Callable[[Sequence[str]], bool]) -> Infeasible | None:
    """What is told of the first case alone, with those of its ways out that hold in all: the others are none found.

    What all cases cost then is another question, and is not told.
    """
    if told is None:
        return None
    against = {one["name"] for one in told["conflict"]}
    ways: list[WayOut] = []
    for way in told["ways_out"]:
        if way["to"] is not None and holds(way["setting"].split(BOTH)):  # the least of one case is least of all
            ways.append({**way, "cost_microusd": None, "cost_usd": None})
        elif way["limit"] in against or way["limit"] in CHOICES:
            ways.append({**way, **NONE_FOUND})  # type: ignore[typeddict-item]
    together = told["combined"]
    if together and not holds([text for one in together["changes"] for text in one["setting"].split(BOTH) if text]):
        together = None
    return {**told, "ways_out": ways, "combined": together}


def _nothing(candidates: Candidates, solution: Solution, message: str) -> Solution:
    """That there is no plan for all cases, said of the scenario as written."""
    program = candidates.program
    units = np.zeros(program.column_count, dtype=np.int64)
    return replace(
        solution, units=units, flows=np.zeros(program.capacity_micro_per_s.shape), level_flows=(),
        messages=(*solution.messages, message),
    )  # fmt: skip


def _sealed(document: PlanDocument, scenario: Scenario, section: Uncertainty | None) -> PlanDocument:
    content: dict[str, object] = {key: value for key, value in document.items() if key not in ("sha256", "settings")}
    content |= {"scenario": scenario.resolved, "uncertainty": section}
    content |= {"settings": list(scenario.settings)} if scenario.settings else {}
    return cast("PlanDocument", {**content, "sha256": digest_of(content)})  # what it had, of the whole scenario


def _section(
    cases: Sequence[Case],
    chosen: Chosen,
    risk: Risk | None,
    documents: Sequence[PlanDocument],
    known: Sequence[int | None],
    blind: Sequence[int | None],
) -> Uncertainty:
    shares = [case.probability for case in cases]
    costs = [document["summary"]["cost_microusd"] for document in documents]
    known_costs, expected = [cost for cost in costs if cost is not None], mean_cost(shares, costs)
    informed, unprepared = mean_cost(shares, known), mean_cost(shares, blind)
    return {
        "cases": [
            {
                "name": case.name,
                "probability": float(case.probability),
                "cost_microusd": cost,
                "cost_usd": None if cost is None else usd(cost),
                "known_beforehand_usd": None if before is None else usd(before),
                "contracts_of_written_usd": None if after is None else usd(after),
                "plan": None if number == 0 else document,
            }
            for number, (case, cost, before, after, document) in enumerate(zip(cases, costs, known, blind, documents))
        ],
        "expected_usd": _dollars(expected),
        "bound_usd": _bound_usd(chosen),
        "risk": None if risk is None else {"level": float(risk.level), "weight": float(risk.weight)},
        "at_risk_usd": _dollars(
            None if None in costs else cost_at_risk(shares, known_costs, risk.level if risk else Fraction(19, 20))
        ),
        "perfect_information_usd": _difference(expected, informed),
        "stochastic_solution_usd": _difference(unprepared, expected),
    }


def _bound_usd(chosen: Chosen) -> float | None:
    """No contracts have a lower expected cost (with risk: a lower weighed sum); of rates before any tightening.

    None where a number of providers is limited: one program counts those of all cases together, each plan its own.
    """
    bound = chosen.solution.bound_microusd
    return (
        None
        if bound is None or chosen.combined.program.max_providers is not None
        else float((bound / chosen.combined.scale - chosen.combined.rounding) / 1_000_000)
    )


def mean_cost(shares: Sequence[Fraction], costs: Sequence[int | None]) -> Fraction | None:
    """Expected cost; None when some case has no plan.  [micro-USD]

    Examples
    --------
    >>> mean_cost([Fraction(3, 4), Fraction(1, 4)], [100, 300])
    Fraction(150, 1)
    """
    if any(cost is None for cost in costs):
        return None
    return sum((share * int(cost or 0) for share, cost in zip(shares, costs)), start=Fraction(0))


def cost_at_risk(shares: Sequence[Fraction], costs: Sequence[int], level: Fraction) -> Fraction:
    """Mean cost of the worst 1 - level of the cases, the last one counted in part.  [micro-USD]

    Conditional value at risk of a discrete distribution; Rockafellar and Uryasev, J. Banking & Finance 26 (2002),
    proposition 8.

    Parameters
    ----------
    shares
        Probability of each case; they add up to 1.
    costs
        Of each case.  [micro-USD]
    level
        Share of the cases that is left out, the cheapest ones; 1: the dearest case counts alone.

    Examples
    --------
    The worst tenth costs 300, the next 15 hundredths of the worst quarter 200.

    >>> cost_at_risk([Fraction(1, 10), Fraction(4, 10), Fraction(1, 2)], [300, 200, 100], Fraction(3, 4))
    Fraction(240, 1)
    """
    left, total = 1 - level, Fraction(0)
    if left <= 0:
        return Fraction(max(costs))
    for cost, share in sorted(zip(costs, shares), reverse=True):
        taken = min(share, left)
        total, left = total + taken * cost, left - taken
    return total / (1 - level)


def _difference(one: Fraction | None, other: Fraction | None) -> float | None:
    return None if one is None or other is None else _dollars(one - other)


def _dollars(microusd: Fraction | None) -> float | None:
    return None if microusd is None else float(microusd / 1_000_000)
