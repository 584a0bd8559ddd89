"""The plan that is proposed: which of several equally cheap ones, and plainer layouts that cost little more.

Of plans of one cost are told the ways to run the whole of one workload alike, the others staying as they are, that cost
no more than the plan may and break no limit; and what decided: the first criterion of the tie rule in which each of
them is worse.

An optimiser goes where its model is least tested. Among layouts of one offer whose predicted costs differ by less than
predictions err, what the guides of the software advise is the better choice (`planner.candidates.ties` has the order).
Of each workload in turn the least degree is taken up to which its layouts may go with no workload costing more than the
share allows, none taking more devices (a fleet hardly more: by the same share, at least one), and with what is asked
for after the cost (time, carbon) no more above the cheapest plan's; the plan is the cheapest of these, by the same rule
for ties. Then each fleet on machines of several offers is put on one of them, else on those of one device, if that
costs no more than the share allows: nobody runs one odd machine at another seller for a thousandth. The certificate is
of the cheapest plan of all, which is told beside.

Of many workloads each trial asks for the cost alone: plans of one cost are told apart once, when all has been tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, cast

import numpy as np

from planner.candidates.offers import Site
from planner.candidates.plainer import Plainer
from planner.candidates.program import WHOLE, IntArray, Program, Task, restrict
from planner.candidates.prune import alone_units, prune
from planner.candidates.rates import RatesQuestion
from planner.candidates.search import Candidates, places_in_whole, select
from planner.candidates.ties import TIE_RULE, tie_weights
from planner.candidates.training_table import TrainingTable
from planner.optimize.check import violations
from planner.optimize.scope import Scope, scope_of
from planner.optimize.solve import Solution
from planner.plan.parts import workload_row
from planner.plan.rows.pools import workload_costs
from planner.plan.rows.row_cells import usd
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.model.others import Plain
    from planner.plan.model.plan import TieCriterion, TieRow, Ties, Untold, Workload


MOST = 20  # other ways of a workload that are looked at, the cheapest


def ties_of(candidates: Candidates, solution: Solution) -> Ties | None:
    """What the plan says of ties; None without a plan, or where more than the cost is asked for."""
    program = candidates.program
    if not solution.has_plan or program.objective != ("cost",):
        return None
    rows = list(_rows(candidates, solution)) if candidates.calendar is None and not candidates.spaces else []
    return {"tolerance": candidates.tie_share, "rows": rows, "untold": cast("Untold", solution.untold)}


def _rows(candidates: Candidates, solution: Solution) -> Iterator[TieRow]:
    """Workloads that have other ways as cheap."""
    whole = candidates.whole
    units = _over_all(candidates, solution)
    least = solution.cost_microusd if solution.bound_microusd is None else solution.bound_microusd
    room = least + whole.tie_microusd(least) - solution.cost_microusd
    scope = scope_of(whole)

    @cache
    def weights(criterion: str) -> IntArray:
        return tie_weights(whole, criterion)

    for task in (one for one in whole.tasks if one.kind != "optional"):
        decided: list[str] = []
        for other in _as_cheap(scope, task, units, room):
            changed = [(name, int(weights(name) @ other) - int(weights(name) @ units)) for name in TIE_RULE]
            worse = next(((name, by) for name, by in changed if by), ("offers", 1))
            if worse[1] > 0:
                decided.append(worse[0])
        if decided:
            by = [name for name in (*TIE_RULE, "offers") if name in decided]
            yield {"workload": task.name, "others": len(decided), "by": cast("list[TieCriterion]", by)}


def _over_all(candidates: Candidates, solution: Solution) -> IntArray:
    """The units of a plan over all columns that were listed."""
    units = np.zeros(candidates.whole.column_count, dtype=np.int64)
    units[places_in_whole(candidates)] = solution.units
    return units


def _as_cheap(scope: Scope, task: Task, units: IntArray, room: int) -> Iterator[IntArray]:
    """Plans that run one workload another way, all of it alike, and cost no more than may be; the cheapest first."""
    program, part = scope.program, slice(task.first, task.stop)
    alone = alone_units(program, task)
    paid = program.cost_microusd[part].astype(np.float64) * alone
    mine = int(program.cost_microusd[part] @ units[part])
    able = (paid <= mine + room + 1) & (alone <= scope.upper[part]) & _serves(program, task)
    places = np.flatnonzero(able)
    for place in places[np.argsort(paid[places], kind="stable")][: MOST + 1].tolist():
        other = units.copy()
        other[part] = 0
        other[task.first + place] = alone[place]
        dearer = int(program.cost_microusd[part] @ other[part]) - mine
        if (other != units).any() and dearer <= room and next(violations(scope, other, tasks=[task]), None) is None:
            yield other


def _serves(program: Program, task: Task) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Columns that can do all of a workload."""
    part = slice(task.first, task.stop)
    if task.kind == "training":
        return np.ones(task.stop - task.first, dtype=bool)
    asked = np.array(task.demands).max(axis=0) > 0 if task.demand_micro_per_s else np.zeros(0, dtype=bool)
    rates = program.capacity_micro_per_s[part, : len(asked)]
    able = (program.role[part] == WHOLE) & (program.level[part] == 0) & (rates[:, asked] > 0).all(axis=1)
    return np.asarray(able)


MOST_TRIED = 2  # of each sort of offers
FEW = 4  # workloads, up to which each trial tells plans of one cost apart
Answer = tuple[Candidates, Solution]
Ready = Callable[[Candidates], Candidates]


def weighs_plainness(scenario: Scenario) -> bool:
    """Whether a plainer plan than the cheapest is looked for.

    Calendars, mixes within a job and several futures are left as they are, and plans in which something else than the
    cost is minimised first.
    """
    mixed = scenario.mixes
    asked = scenario.prefer == "plain" and scenario.plain_within > 0 and scenario.objective[0] == "cost"
    return asked and not (scenario.scheduled or scenario.uncertainty or mixed)


def plainest(
    candidates: Candidates,
    solution: Solution,
    search: Callable[[Plainer], Candidates],
    solve: Callable[[Candidates, Ready, bool], Answer],
) -> Answer:
    """The plan that is proposed beside the cheapest one: that itself where nothing plainer costs little more.

    Parameters
    ----------
    candidates, solution
        The cheapest plan and its ways.
    search
        The ways that a plainer plan may be made of.
    solve
        The best plan of some ways, made ready, whose replicas keep their targets; the last: any that costs the least.
    """
    asked = _plainer_of(candidates, solution)
    if asked is None:
        return candidates, solution
    within = 1 + candidates.scenario.plain_within
    most = {name: int(cost * within) for name, cost in workload_costs(candidates, solution).items()}
    worst = [within * value for value in _further(candidates, solution)]
    machines = _most_devices(candidates, solution)
    ways, bounds, best = search(asked), dict(asked.involved), (candidates, solution)
    offers: dict[str, frozenset[str]] = {}

    def better(tried: Mapping[str, int], on: Mapping[str, frozenset[str]], *, cost_only: bool = False) -> Answer | None:
        """The best plan of layouts up to some degrees, on some offers, where it costs little more."""
        found, plainer = solve(ways, lambda each: _upto(each, tried, on), cost_only)
        if not plainer.has_plan or any(cost > most[name] for name, cost in workload_costs(found, plainer).items()):
            return None
        more = any(count > machines[name] for name, count in _devices(found, plainer).items())
        far = any(value > most_of for value, most_of in zip(_further(found, plainer), worst))
        if not more and not far:
            return found, plainer
        return better(tried, on) if cost_only else None

    tasks = _workloads(ways.whole)
    many = len(tasks) > FEW
    for task in tasks:
        for degree in _degrees(ways, task, asked.involved[task.name], most[task.name]):
            tried = {**bounds, task.name: degree}
            if (answer := better(tried, offers, cost_only=many)) is not None:
                bounds, best = tried, answer
                break
    for task in tasks:
        for fewer in _fewer_offers(*best, task.name):
            on = {**offers, task.name: fewer}
            if (answer := better(bounds, on, cost_only=many)) is not None:
                offers, best = on, answer
                break
    untold = solution.untold
    if many and best[0] is not candidates:
        told = better(bounds, offers)
        best, untold = (best, untold or TIE_RULE[0]) if told is None else (told, untold)
    found, plainer = best
    if found is candidates:
        return best
    proven = replace(plainer, status=solution.status, bound_microusd=solution.bound_microusd, gap=solution.gap)
    return found, replace(proven, untold=untold, messages=solution.messages)


def _plainer_of(candidates: Candidates, solution: Solution) -> Plainer | None:
    """What a plainer plan than the cheapest may be made of; None where none is asked for, or all is plain."""
    given = any(isinstance(question, RatesQuestion) for question in candidates.questions.values())
    if given or not weighs_plainness(candidates.scenario) or not solution.has_plan:
        return None
    offers: dict[str, frozenset[str]] = {}
    involved: dict[str, int] = {}
    for task in _workloads(candidates.program):
        used = task.first + np.flatnonzero(solution.units[task.first : task.stop] > 0)
        table, rows = candidates.tables[task.name], candidates.rows[used].tolist()
        mine = [table.sites[row] for row in rows]
        if isinstance(table, TrainingTable):  # of a job that changes over, both parts
            mine += [site for row in rows if row in table.switches for site, _ in table.switches[row].rented(table)]
        sizes = _other_sizes(candidates, task.name, mine) if task.kind == "serving" else {}
        offers[task.name] = frozenset({site.offer.id for site in mine}.union(*sizes.values()))
        involved[task.name] = int(_involved(candidates, task)[used - task.first].max(initial=0))
    several = any(_fewer_offers(candidates, solution, task.name) for task in _workloads(candidates.program))
    return Plainer(offers=offers, involved=involved) if several or any(involved.values()) else None


def _fewer_offers(candidates: Candidates, solution: Solution, name: str) -> list[frozenset[str]]:
    """Some of the offers of a fleet's machines, the plainest first; none of a job, of pools, or where one is all.

    One offer, those of one device in one place, of one device from one provider, of one device; of each sort those of
    the most devices. Beside those of a device that is used go `_other_sizes` of its machines.
    """
    used = _used_sites(candidates, solution, name)
    if not used:
        return []
    sizes = _other_sizes(candidates, name, [site for site, _ in used])
    sorts: list[dict[tuple[str, ...], dict[str, int]]] = [{} for _ in range(4)]
    for site, held in used:
        offer = site.offer
        whole = site.device.id, offer.provider, offer.region, offer.id
        for sort, group in zip(sorts, (whole, whole[:3], whole[:2], whole[:1])):
            mine = sort.setdefault(group, {})
            mine[offer.id] = mine.get(offer.id, 0) + held
    found = [
        frozenset([*group, *(other for one in group for other in sizes.get(one, ()) if whole_place)])
        for whole_place, sort in zip((False, True, True, True), sorts)
        for group in sorted(sort.values(), key=lambda group: -sum(group.values()))[:MOST_TRIED]
        if len(group) < len(sorts[0])
    ]
    return list(dict.fromkeys(found))


def _used_sites(candidates: Candidates, solution: Solution, name: str) -> list[tuple[Site, int]]:
    """Sites of a fleet's replicas, with the devices of each row; none of a job or of pools."""
    program = candidates.program
    (task,) = (one for one in program.tasks if one.name == name)
    used = task.first + np.flatnonzero(solution.units[task.first : task.stop] > 0)
    if task.kind != "serving" or program.role[used].any():
        return []
    sites = candidates.tables[name].sites
    return [(sites[int(candidates.rows[one])], int(program.devices[one] * solution.units[one])) for one in used]


def _other_sizes(candidates: Candidates, name: str, used: Sequence[Site]) -> dict[str, tuple[str, ...]]:
    """Of a fleet on several kinds of devices: other machines of each, sold beside those that are used.

    A fleet on pairs of one card and a few of another one stood on one card alone for 1 % more, in machines of one.

    Returns
    -------
    Ids of offers by that of a used one: the same device, seller, place and terms, in machines of other sizes.
    """
    if len({site.device.id for site in used}) < 2:
        return {}
    there: dict[tuple[object, ...], dict[str, None]] = {}
    for site in candidates.tables[name].sites:
        there.setdefault(_sold_as(site), {})[site.offer.id] = None
    return {site.offer.id: tuple(there[_sold_as(site)]) for site in used if site.owned is None}


def _sold_as(site: Site) -> tuple[object, ...]:
    offer = site.offer
    return site.device.id, offer.provider, offer.region, offer.zone, offer.price_model, site.owned


def _workloads(program: Program) -> list[Task]:
    """Tasks that are asked for: what is bought for them has no layout."""
    return [task for task in program.tasks if task.kind != "optional"]


def _involved(candidates: Candidates, task: Task, *, whole: bool = False) -> IntArray:
    """How involved the layout of each column of a task is; `task` and columns are of `program`, or of `whole`."""
    program, part = candidates.whole if whole else candidates.program, slice(task.first, task.stop)
    each = np.maximum(program.devices[part], 1) if task.kind == "serving" else 1
    return np.asarray(program.plain[part] // each)


def _devices(candidates: Candidates, solution: Solution) -> dict[str, int]:
    """Devices of each workload that is asked for, all its rows together."""
    program = candidates.program
    held = program.devices * solution.units
    return {task.name: int(held[task.first : task.stop].sum()) for task in _workloads(program)}


def _most_devices(candidates: Candidates, solution: Solution) -> dict[str, int]:
    """Devices that each workload may take in a plainer plan: those of the cheapest one, of a fleet hardly more.

    What is plainer is no reason to ask for more machines, which nobody may have; but replicas of one size seldom fill
    as many devices as an odd one beside them did: 232 in machines of four stand for 228 and two.
    """
    share = candidates.scenario.plain_within
    kinds = {task.name: task.kind for task in _workloads(candidates.program)}
    return {
        name: held + (ceil(share * held) if kinds[name] == "serving" else 0)
        for name, held in _devices(candidates, solution).items()
    }


def _further(candidates: Candidates, solution: Solution) -> list[float]:
    """What is made least after the cost: the last finish [s], the carbon [mg]."""
    program, units = candidates.program, solution.units
    values = {
        "time": float(program.finish_s[units > 0].max(initial=0.0)),
        "carbon": float(program.carbon_mg @ units),
        "cost": 0.0,
    }
    return [values[name] for name in program.objective[1:]]


def _degrees(ways: Candidates, task: Task, chosen: int, most: int) -> list[int]:
    """Degrees of plainness below the one chosen, the plainest first; of a job without those that cost too much."""
    involved = _involved(ways, task, whole=True)
    degrees = sorted(degree for degree in set(involved.tolist()) if degree < chosen)
    if task.kind != "training":
        return degrees
    cost = ways.whole.cost_microusd[task.first : task.stop] * task.count
    return [degree for degree in degrees if int(cost[involved <= degree].min()) <= most]


def _upto(candidates: Candidates, bounds: Mapping[str, int], offers: Mapping[str, frozenset[str]]) -> Candidates:
    """With the columns up to a degree of plainness of each workload, as far as no other is better in everything.

    Parameters
    ----------
    bounds
        The degree, by workload.
    offers
        Offers of each workload that is to run on some alone.
    """
    allowed = []
    for task in candidates.whole.tasks:
        mine = _involved(candidates, task, whole=True) <= bounds.get(task.name, 0)  # nodes have none
        if task.name in offers:
            sites = candidates.tables[task.name].sites
            rows = candidates.whole_rows[task.first : task.stop].tolist()
            mine &= np.array([sites[row].offer.id in offers[task.name] for row in rows], dtype=bool)
        allowed.append(mine)
    small, kept = restrict(candidates.whole, np.concatenate(allowed))
    return select(candidates, kept[prune(small)])


def plain_document(scenario: Scenario, cheapest: Sequence[Workload], proposed: Sequence[Workload]) -> Plain | None:
    """What the plan says of the cheapest one: its cost, and how it runs what is run more plainly here.

    Parameters
    ----------
    scenario
        Says how much dearer a plainer plan may be; None is told where it looks for none.
    cheapest
        The workloads as the cheapest plan runs them.
    proposed
        The same workloads in the same order, as they are proposed.
    """
    if not weighs_plainness(scenario):
        return None
    paid, least = (sum(one["cost_microusd"] for one in some) for some in (proposed, cheapest))
    return {
        "within": scenario.plain_within,
        "cheapest_microusd": least,
        "cheapest_usd": usd(least),
        "above": paid / least - 1.0 if least else 0.0,
        "workloads": [
            workload_row(one) for one, other in zip(cheapest, proposed) if one["allocations"] != other["allocations"]
        ],
    }
