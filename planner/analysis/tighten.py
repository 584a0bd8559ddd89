"""Solve, look at what each replica does with the requests that it is sent, and solve again where a target is missed.

The program adds up loads of buckets, each at the rate that a replica carries of it alone. That is exact for the
engine's time, not for percentiles: on a mix a few long prompts may hold up many short ones. A kind of replica that
misses a target on its mix may then be planned for less of its rates, until no target is missed. Spares that an
availability asks for depend on the replicas chosen, and are found in the same rounds: more of them each time, so that
fleets of fewer replicas, which hold it with fewer spares, are looked at once more afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from planner.analysis.certified import relaxed_prices
from planner.candidates.program import Program, Row, Task, restrict, units_of
from planner.candidates.search import Candidates, with_tables
from planner.candidates.serving import ServingQuestion, ServingTable
from planner.deadline import Deadline, TimeIsUp, is_up, left_s, parting
from planner.estimate.serving_spares import replicas_within, spares_for
from planner.optimize.bound import prices_of
from planner.optimize.limited import Asker, BoundedRates
from planner.optimize.solve import Solution, noting_bounds
from planner.optimize.status import RATES_ENDED, Status, uninterrupted
from planner.plan.least_weights import least_of_task, parts_of, priced_weights
from planner.plan.rows.serving import replica_site, routed_load
from planner.plan.rows.serving_point import Point
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.model.others import Selection

MOST_RELAXED = 40  # relaxations before whole units are asked for
ROUNDS = 16  # a handful is enough, save where hardly anything keeps the targets
PATIENCE = 8  # rounds after which a kind of replica that still misses one is not used
LEAST_CUT = 0.98  # of the rates, so that rounds end
AVAILABILITY = "replicas within spares"  # a limit of what is tried, not of the scenario
NO_ROUTING = "no routing was found in which every replica keeps its targets on its mix of requests"
NO_FEWER = "a smaller fleet holds its availability with fewer spare replicas: none was looked for"
DEEPEST_CUT = 0.5  # where not even an idle replica keeps its targets on the mix

Answer = TypeVar("Answer")
Kept = dict[tuple[int, int], float]  # place of a replica in the evaluated arrays and its role -> share of its rates


def solve_within_targets(
    candidates: Candidates,
    solve: Callable[[Candidates], Solution],
    *,
    prepare: Callable[[Candidates], Candidates] = lambda same: same,
    limit: float | Deadline | None = None,
    rank: Callable[[Candidates, Solution], tuple[int, ...]] = lambda _, solution: (solution.cost_microusd,),
) -> tuple[Candidates, Solution]:
    """The best plan whose replicas keep their targets on what they are sent.

    Parameters
    ----------
    prepare
        Makes what `solve` is asked of candidates with new rates: another choice of columns, say.
    limit
        When it is up, plans are made of the ways whose rates are exact by then, and proven as far as the others allow.
    rank
        Of plans with other numbers of spares the least is taken: the cheapest.

    Returns
    -------
    The candidates with the rates that were planned with, and their solution.
    """
    rounds = partial(_rounds, solve=solve, prepare=prepare, limit=limit)
    best, scenario = rounds(candidates, {}), candidates.scenario
    held = {fleet.name for fleet in scenario.serving if fleet.availability is not None}
    fewest = {task.name: task.spare_replicas for task in candidates.whole.tasks}  # in any plan
    spared = [one for one in best[0].program.tasks if one.name in held and one.spare_replicas > fewest[one.name]]
    able = scenario.objective[0] == "cost" and not scenario.scheduled and candidates.whole_shared is None
    if able and not is_up(limit):
        for task in spared:
            try:
                best = _fewer_spares(best, candidates, task, rounds, prepare, limit, rank)
            except (TimeIsUp, KeyboardInterrupt) as error:  # what was found stays, and is proven no further
                return best[0], _unproven(
                    best[1], "interrupt" if isinstance(error, KeyboardInterrupt) else "time-limit"
                )
    elif spared and not best[1].has_plan:
        best = best[0], _not_proven(best[1], NO_FEWER)
    return (candidates, best[1]) if spared and not best[1].has_plan else best


def cheapest_within_targets(candidates: Candidates, asker: Asker) -> Solution:
    """The plan of least cost whose replicas keep their targets on what they are sent.

    Of several classes of requests it is one at the mixes that were listed, and not proven: others may do with less.
    """
    solution = solve_within_targets(candidates, lambda ways: asker.cheapest(ways.program))[1]
    mixed = any(fleet.slo is not None and fleet.traffic.classes for fleet in candidates.scenario.serving)
    return replace(solution, status=Status.FEASIBLE) if mixed and solution.status is Status.OPTIMAL else solution


def tightens(scenario: Scenario) -> bool:
    """Whether plans of its program may have to be solved again: a fleet has targets, or an availability to hold."""
    return any(fleet.slo is not None or fleet.availability is not None for fleet in scenario.serving)


def _unproven(solution: Solution, stopped_by: str) -> Solution:
    """A plan, or none, beside which others, of fewer spares, were not looked at to the end."""
    status = Status.FEASIBLE if solution.has_plan else Status.STOPPED
    return replace(solution, status=status, bound_microusd=None, gap=None, stopped_by=stopped_by)


Found = tuple[Candidates, Solution]


def _fewer_spares(
    best: Found,
    candidates: Candidates,
    task: Task,
    rounds: Callable[[Candidates, dict[str, int]], Found],
    prepare: Callable[[Candidates], Candidates],
    limit: float | Deadline | None,
    rank: Callable[[Candidates, Solution], tuple[int, ...]],
) -> Found:
    """The best plan of a fleet with any number of spares that holds the availability asked for.

    So many spares suffice for a number of replicas, which falls with how often the frailest is down: each number of
    spares below those of the best plan so far is tried with a fleet of no more replicas than that, of each frailty.
    """
    question, table = candidates.questions[task.name], candidates.tables[task.name]
    assert isinstance(question, ServingQuestion)
    assert isinstance(table, ServingTable)
    raised = {one.name: one.spare_replicas for one in best[0].program.tasks if one.spare_replicas}
    whole = next(one for one in candidates.whole.tasks if one.name == task.name)
    part = slice(whole.first, whole.stop)
    every = table.frailties(question)
    kinds = [every[int(row)] for row in candidates.whole_rows[part]]
    replicas = candidates.whole.replicas[part]
    first, stopped_by = best[1], ""
    sure = first.status in (Status.OPTIMAL, Status.INFEASIBLE)
    for spares in range(whole.spare_replicas, raised.get(task.name, 0)):
        within = {kind: replicas_within(question.fleet, spares, kind) for kind in dict.fromkeys(kinds)}
        for most in sorted(set(within.values()), reverse=True):
            sturdy = np.array([within[kind] >= most for kind in kinds], dtype=bool)
            if most < max(int(replicas[sturdy].min(initial=most + 1)), spares + 1):
                continue
            if is_up(limit):
                return best[0], _unproven(best[1], "time-limit")
            cap = Row(
                name=AVAILABILITY,
                label=f"replicas of {task.name} that {spares} spares suffice for",
                bound=most,
                columns=np.arange(part.start, part.stop),
                coefficients=np.where(sturdy, replicas, most + 1),
            )
            capped = replace(candidates, whole=replace(candidates.whole, rows=(*candidates.whole.rows, cap)))
            given = {**raised, task.name: spares}
            found, solution = rounds(prepare(with_tables(capped, {}, given)), given)
            same = next(one for one in found.program.tasks if one.name == task.name).spare_replicas == spares
            better = not best[1].has_plan or (solution.has_plan and rank(found, solution) < rank(*best))
            if solution.has_plan and same and better:  # of more spares one may be cheaper, if that is open
                best = _without_cap(found), solution if sure else _unproven(solution, first.stopped_by)
            if solution.status not in (Status.OPTIMAL, Status.INFEASIBLE):
                stopped_by = solution.stopped_by or "time-limit"
                if stopped_by == "interrupt":
                    break
    return (best[0], _unproven(best[1], stopped_by)) if stopped_by else best


def _without_cap(candidates: Candidates) -> Candidates:
    """Without the limit of replicas, which is no limit of the scenario."""

    def freed(program: Program) -> Program:
        return replace(program, rows=tuple(row for row in program.rows if row.name != AVAILABILITY))

    return replace(candidates, program=freed(candidates.program), whole=freed(candidates.whole))


def _rounds(
    candidates: Candidates,
    given: dict[str, int],
    *,
    solve: Callable[[Candidates], Solution],
    prepare: Callable[[Candidates], Candidates],
    limit: float | Deadline | None,
) -> Found:
    """The best plan whose replicas keep their targets, of fleets with at least the spares that are given."""
    kept: dict[str, Kept] = {}
    spares = dict(given)
    for turn in range(ROUNDS):
        candidates, solution = _by(limit, candidates, solve, prepare, spares)
        if not solution.has_plan:
            return candidates, _not_proven(solution) if kept else solution
        with parting():  # a plan that is not checked is none
            cuts, more = dict(_cuts(candidates, solution, kept)), dict(more_spares(candidates, solution))
        if not cuts and not more:
            return candidates, solution
        uninterrupted(solution)  # a plan whose targets are missed is none to keep
        if turn >= PATIENCE:
            cuts = {name: _given_up(own, kept.get(name, {})) for name, own in cuts.items()}
        kept |= cuts
        spares |= more
        candidates = prepare(with_tables(candidates, _tightened(candidates, cuts), spares))
    return candidates, _not_proven(replace(solution, status=Status.INFEASIBLE))


def _by(
    limit: float | Deadline | None,
    candidates: Candidates,
    solve: Callable[[Candidates], Solution],
    prepare: Callable[[Candidates], Candidates],
    spares: Mapping[str, int],
) -> tuple[Candidates, Solution]:
    """The best plan of exact rates; once the time is up of those that are exact by then."""
    answers: list[Solution] = []  # whose rates may only be bounded: what they prove holds
    listed = [candidates]  # each with the rates exact that the answer before rests on

    def asked(now: Candidates) -> Solution:
        listed.append(now)
        if answers and is_up(limit):
            raise TimeIsUp
        answers.append(solve(now))
        return answers[-1]

    try:
        likely = _on_likely_rates(candidates, prepare, spares, limit)
        listed.append(likely)
        return on_exact_rates(likely, asked, prepare, spares)
    except TimeIsUp:
        if not answers:
            raise
    candidates, bounded = listed[-1], answers[-1]
    exact = candidates.program.bounded == 0
    program, kept = restrict(candidates.program, exact)
    calendar = candidates.calendar.select(kept) if candidates.calendar else None
    shared = candidates.shared.select(kept) if candidates.shared else None
    known = replace(candidates, program=program, rows=candidates.rows[kept], calendar=calendar, shared=shared)
    solution = solve(known)
    bound = bounded.cost_microusd if bounded.status is Status.OPTIMAL else bounded.bound_microusd
    status = Status.FEASIBLE if solution.has_plan else Status.STOPPED
    gap = None
    if solution.has_plan and bound is not None:
        gap = max(1 - bound / solution.cost_microusd, 0.0) if solution.cost_microusd else 0.0
    messages = (*solution.messages, f"{RATES_ENDED}: what was not looked at may cost less")
    found = replace(solution, status=status, bound_microusd=bound, gap=gap, messages=messages, stopped_by="time-limit")
    return known, found


def _on_likely_rates(
    candidates: Candidates,
    prepare: Callable[[Candidates], Candidates],
    spares: Mapping[str, int] | None,
    limit: float | Deadline | None,
) -> Candidates:
    """With exact rates of what each fleet would be made of at the prices of a relaxation, which is soon asked.

    Whole units are asked for of little else, each time for as long as hundreds of relaxations take.
    """
    for _ in range(MOST_RELAXED):
        noted = set() if is_up(limit) else set(_likely(candidates, left_s(limit)))
        if not noted:
            break
        with parting():
            candidates = prepare(_with_exact(candidates, noted, spares))
    return candidates


def _likely(candidates: Candidates, time_limit_s: float | None) -> Iterator[tuple[str, int]]:
    """Ways whose rates are only bounded in the least cover of a fleet at the prices of the relaxation."""
    program, first = candidates.program, candidates.program.objective[0]
    if first != "cost" or not (program.bounded > 0).any():
        return
    found = prices_of(program, "cost", time_limit_s=time_limit_s)
    if found is None:
        return
    priced: Selection = {"criterion": "cost", "latest_s": None, **relaxed_prices(program, found)}
    weights, upper = priced_weights(program, priced), units_of(program)
    for task in program.tasks:
        if task.kind != "serving" or not (program.bounded[task.first : task.stop] > 0).any():
            continue
        least = least_of_task(program, task, weights, upper, parts_of(priced["requests"], task))
        for column in least.units or ():
            if program.bounded[column] > 0:
                yield task.name, int(program.bounded[column]) - 1


def on_exact_rates(
    candidates: Candidates,
    ask: Callable[[Candidates], Answer],
    prepare: Callable[[Candidates], Candidates] = lambda same: same,
    spares: Mapping[str, int] | None = None,
) -> tuple[Candidates, Answer]:
    """What is asked of candidates, once the rates of all that plans found on the way are made of are exact.

    Parameters
    ----------
    spares
        Of each fleet; left out: as they are.

    Returns
    -------
    The candidates with the rates that the answer rests on, and the answer.
    """
    while True:
        with noting_bounds() as noted, suppress(BoundedRates):
            answer = ask(candidates)
            if not noted:
                return candidates, answer
        with parting():  # once the time is up, what was found is all that there is to make a plan of
            candidates = prepare(_with_exact(candidates, noted, spares))


def _with_exact(
    candidates: Candidates, noted: AbstractSet[tuple[str, int]], spares: Mapping[str, int] | None
) -> Candidates:
    """The same with the rates of some ways exact: workload, and number in its table."""
    tables: dict[str, ServingTable] = {}
    for name in sorted({name for name, _ in noted}):
        table, question = candidates.tables[name], candidates.questions[name]
        assert isinstance(table, ServingTable)
        assert isinstance(question, ServingQuestion)
        tables[name] = table.exactly(question, sorted(row for other, row in noted if other == name))
    kept = {task.name: task.spare_replicas for task in candidates.program.tasks} if spares is None else spares
    return with_tables(candidates, tables, kept)


def _given_up(cuts: Kept, before: Kept) -> Kept:
    """Cuts where those that are new leave nothing."""
    return {place: share if before.get(place) == share else 0.0 for place, share in cuts.items()}


def _not_proven(solution: Solution, message: str = NO_ROUTING) -> Solution:
    """Nothing was found with lowered rates, which proves nothing: other routings might keep the targets."""
    if solution.status != Status.INFEASIBLE:
        return solution
    nothing = replace(solution, units=0 * solution.units, flows=0 * solution.flows, cost_microusd=0)
    return replace(
        nothing, status=Status.STOPPED, bound_microusd=None, gap=None, messages=(*solution.messages, message)
    )


def more_spares(candidates: Candidates, solution: Solution) -> Iterator[tuple[str, int]]:
    """Fleets whose replicas are down together more often than the availability that is asked for allows."""
    for task in candidates.program.tasks:
        question = candidates.questions.get(task.name)  # none of what is bought
        if not isinstance(question, ServingQuestion) or question.fleet.availability is None:
            continue
        table = candidates.tables[task.name]
        assert isinstance(table, ServingTable)
        chosen = [c for c in range(task.first, task.stop) if solution.units[c] > 0]
        replicas = int(sum(solution.units[c] * candidates.program.replicas[c] for c in chosen))
        every = table.frailties(question)
        kinds = {every[int(candidates.rows[column])] for column in chosen}
        wanted = max(spares_for(question.fleet, replicas, kind) for kind in kinds)
        if wanted > task.spare_replicas:
            yield task.name, wanted


def _tightened(candidates: Candidates, cuts: Mapping[str, Kept]) -> Mapping[str, ServingTable]:
    tables: dict[str, ServingTable] = {}
    for name, kept in cuts.items():
        question, table = candidates.questions[name], candidates.tables[name]
        assert isinstance(question, ServingQuestion)
        assert isinstance(table, ServingTable)
        tables[name] = table.tightened(question, kept)
    return tables


def _cuts(candidates: Candidates, solution: Solution, kept: Mapping[str, Kept]) -> Iterator[tuple[str, Kept]]:
    """Fleets with a kind of replica that misses a target, and the shares of their rates that may be planned."""
    for task in candidates.program.tasks:
        question = candidates.questions.get(task.name)  # none of what is bought
        if not isinstance(question, ServingQuestion) or question.tier != "analytic":
            continue
        before = kept.get(task.name, {})
        found = dict(_missing(candidates, solution, task, question, before))
        if found:
            yield task.name, {**before, **found}


def _missing(
    candidates: Candidates, solution: Solution, task: Task, question: ServingQuestion, before: Kept
) -> Iterator[tuple[tuple[int, int], float]]:
    table = candidates.tables[task.name]
    assert isinstance(table, ServingTable)
    chosen = [c for c in range(task.first, task.stop) if solution.units[c] > 0]
    routed = routed_load(candidates, solution, task, chosen)
    for sent, column in zip(routed, chosen):
        row = int(candidates.rows[column])
        replicas = int(solution.units[column]) * int(candidates.program.replicas[column])
        needed = replicas - task.spare_replicas if len(chosen) == 1 else replicas
        role = int(table.role[row])
        one = replica_site(question, table.sites[row], table.layout_row(row), role)
        point = one.point(sent / max(needed, 1))
        if point.load > 0 and point.missed() > 0:
            place = (int(table.places[row]), int(table.part[row]))
            with np.errstate(divide="ignore"):
                used = np.divide(sent, table.bucket_requests_per_s[row], out=np.zeros(len(sent)), where=sent > 0)
            full = float(used.sum()) / max(needed, 1)
            planned = min(full, before.get(place, 1.0))
            yield place, planned * _cut(point)


def _cut(point: Point) -> float:
    """The share of its load at which a replica keeps its targets on this mix."""
    most = point.capacity_per_s()
    share = most / point.requests_per_s if most > 0 else DEEPEST_CUT
    return float(np.clip(share, DEEPEST_CUT, LEAST_CUT))
