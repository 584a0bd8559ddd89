"""Why a device was not chosen for a workload: its best plan with it, what that costs more, and what would change that.

Where no way to use it exists, the nearest miss of each filter, from a search on that device alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.analysis.tighten import on_exact_rates
from planner.analysis.why.break_evens import Prices
from planner.analysis.why.relaxed import STRUCTURE, Search
from planner.analysis.why.widen import column_keys
from planner.candidates.ledger import LAST
from planner.candidates.machines import UNLAUNCHED
from planner.candidates.offers import Site, owned_key
from planner.candidates.program import IntArray, Program, Task, restrict
from planner.candidates.prune import prune
from planner.candidates.search import Candidates
from planner.candidates.shared_nodes import DEVICES_OF
from planner.candidates.training_question import TrainingQuestion
from planner.carriers import dataclass
from planner.catalog.load import device_matches, find_shape
from planner.catalog.model import Device
from planner.errors import InputError
from planner.optimize.break_even import BUDGET, FORCED, BreakEven, forced_program
from planner.optimize.check import flows_of
from planner.optimize.limited import PROVIDERS, Asker, limit_of
from planner.optimize.solve import Solution
from planner.optimize.status import Status
from planner.plan.named import kept_off, owned_name
from planner.plan.rows.allocations import allocations_of
from planner.plan.rows.row_cells import MICRO, usd
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario
from planner.units import counted

if TYPE_CHECKING:
    from planner.analysis.why.model import ComparedWith, NotCompared, WhyNot, WithinNoLimits
    from planner.plan.model.plan import Allocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked about: a device, or a group of machines that are owned."""

    name: str
    group: int | None = None  # of hardware.owned; None: the device of that name

    def key(self, site: Site) -> str:
        """The name where a site is of it, else another."""
        if self.group is None:
            return site.device.id
        return self.name if site.owned == self.group else f"not {self.name}"

    def of_row(self, row: Allocation) -> bool:
        """Whether a row of a plan is of it."""
        return row["device"] == self.name if self.group is None else row["offer"].startswith(f"owned:{self.group}:")


def groups_named(scenario: Scenario, name: str) -> list[Asked]:
    """Groups of owned machines of a shape, or the one of a place or name, each with what tells it from the others.

    Parameters
    ----------
    scenario
        Says what is owned.
    name
        A shape, with "onprem/" or without, "hardware.owned[0]", or a group as plans call it.

    Raises
    ------
    InputError
        A place that no group has.
    """
    plain, groups = name.removeprefix("onprem/"), enumerate(scenario.hardware.owned)
    found = [
        (owned.shape.removeprefix("onprem/"), index, owned_name(scenario.hardware, index)) for index, owned in groups
    ]
    named = [
        Asked(name=told, group=index)
        for shape, index, told in found
        if shape == plain or name in (owned_key(index), told)
    ]
    if not named and name.startswith("hardware.owned"):
        listed = "; ".join(f"{owned_key(index)}: {told}" for _, index, told in found)
        raise InputError.of("unknown-device", f"there is no {name}", hint=listed or "hardware.owned lists no machines")
    return named


def why_not(
    candidates: Candidates,
    solution: Solution,
    device: Asked,
    search: Search,
    *,
    workload: str | None = None,
    asker: Asker | None = None,
) -> list[WhyNot]:
    """One entry a workload: chosen, dearer (by how much, and at what price it would win), or impossible and why.

    Parameters
    ----------
    device
        A device of the catalog, or a group of owned machines.
    search
        Enumerates a scenario with the same catalog; used to look at a device that the scenario does not allow, and
        for its nearest misses.
    workload
        Only this one.
    """
    asker = replace(asker or Asker(), exact=True)
    tasks = [t for t in candidates.program.tasks if t.kind != "optional" and workload in (None, t.name)]
    once = _Once(search)
    return [_entry(candidates, solution, device, task, once, asker) for task in tasks]


class _Once:
    """A search that lists each scenario once: each workload asks for the same."""

    def __init__(self, search: Search) -> None:
        """Without any."""
        self.search = search
        self.found: dict[str, Candidates] = {}

    def __call__(self, scenario: Scenario) -> Candidates:
        """As it was listed before, or now."""
        asked = json.dumps(scenario.resolved, sort_keys=True, default=str)
        if asked not in self.found:
            self.found[asked] = self.search(scenario)
        return self.found[asked]


def _entry(
    candidates: Candidates, solution: Solution, device: Asked, task: Task, search: Search, asker: Asker
) -> WhyNot:
    entry: NotCompared = {
        "workload": task.name, "device": device.name, "state": "impossible", "allowed": True, "misses": [],
    }  # fmt: skip
    if device.name in _chosen(candidates, solution, task, device):
        return {**entry, "state": "chosen"}
    if device.group is not None and (away := kept_off(candidates, device.group, task.name)):
        return {**entry, "misses": [away]}
    open_to_all = candidates
    if not _columns_of(candidates, task.name, device):
        if device.group is not None:
            drop = candidates.ledgers[task.name].nearest_on.get(owned_key(device.group))
            entry["misses"] = [] if drop is None else [f"{drop.reason}: {drop.nearest}"]
            return entry
        unasked = _unlaunched(candidates, task.name, device.name)
        open_to_all = _opened(candidates, device.name, search, unasked=unasked)
        entry["allowed"] = not _left_out(candidates, device.name)
        if unasked:
            entry["unlaunched"] = True
        entry["misses"] = _misses(open_to_all, task.name, device, search)
    if not solution.has_plan or not _columns_of(open_to_all, task.name, device):
        return entry

    def compared(exact: Candidates) -> NotCompared | WithinNoLimits | ComparedWith:
        prices = Prices.of(exact, device.key)
        whole_task = next(one for one in exact.whole.tasks if one.name == task.name)
        if not (prices.used[whole_task.first : whole_task.stop] == device.name).any():
            return {**entry, "misses": ["deadline: no period leaves it in time"]}
        # A price that falls moves the other workloads, too, with this one on the device and without: it wins by its own
        alone = not prices.bought_apart(device.name)
        found = prices.break_even(device.name, solution.cost_microusd, asker, task=whole_task, task_alone=alone)
        return _compared(candidates, solution, exact, entry, (found, alone), asker, device)

    return on_exact_rates(open_to_all, compared)[1]


def _chosen(candidates: Candidates, solution: Solution, task: Task, device: Asked) -> set[str]:
    used = [c for c in range(task.first, task.stop) if solution.units[c] > 0]
    return {device.key(Prices.site_of(candidates, task, column)) for column in used}


def _columns_of(candidates: Candidates, workload: str, device: Asked) -> bool:
    return any(device.key(site) == device.name for site in candidates.tables[workload].sites)


def _left_out(candidates: Candidates, device: str) -> bool:
    """Whether the scenario's own list leaves the device out."""
    hardware, facts = candidates.scenario.hardware, candidates.catalog.devices[device]
    inside = any(device_matches(facts, one) for one in hardware.allow)
    return not inside or any(device_matches(facts, one) for one in hardware.deny)


def _unlaunched(candidates: Candidates, workload: str, device: str) -> bool:
    """Whether ways on the device are left out as nothing that is exported runs them, and nobody named it."""
    drop = candidates.ledgers[workload].nearest_on.get(device)
    return drop is not None and drop.reason == UNLAUNCHED


def _opened(candidates: Candidates, device: str, search: Search, *, unasked: bool) -> Candidates:
    """The search with the device allowed beside the others, by name where it is left out unasked."""
    hardware = candidates.scenario.hardware
    if not _left_out(candidates, device) and not unasked:
        return search(candidates.scenario)
    facts = candidates.catalog.devices
    allow = ", ".join(f'"{one}"' for one in dict.fromkeys((*hardware.allow, device)))
    denied = {name: None for one in hardware.deny for name in _without(one, device, facts)}  # a pattern by what is left
    kept = ", ".join(f'"{one}"' for one in denied)
    return search(with_settings(candidates.scenario, [f"hardware.allow=[{allow}]", f"hardware.deny=[{kept}]"]))


def _without(pattern: str, device: str, known: Mapping[str, Device]) -> list[str]:
    """The pattern, where it does not mean the device; else the other devices that it means."""
    if not device_matches(known[device], pattern):
        return [pattern]
    return [name for name, facts in known.items() if name != device and device_matches(facts, pattern)]


def _misses(candidates: Candidates, workload: str, asked: Asked, search: Search) -> list[str]:
    """The nearest miss of each filter on that device alone; none when there are ways to use it."""
    if _columns_of(candidates, workload, asked):
        return []
    device = asked.name
    scenario, catalog = candidates.scenario, candidates.catalog
    sold = {offer.price_model for offer in catalog.offers if catalog.shapes[offer.shape].device == device}
    settings = [f'hardware.allow=["{device}"]', "hardware.deny=[]"]
    if pricing := [model for model in scenario.hardware.pricing if model in sold]:
        settings.append(f"hardware.pricing=[{', '.join(pricing)}]")  # what it is not sold on is refused if asked for
    elif sold:
        return [f"price-model: it is offered as {', '.join(sorted(sold))}"]
    owned = _owned_of(candidates, device)
    try:
        alone = search(with_settings(scenario, [*settings, *owned]))
    except InputError:  # a run or a measured step is of machines that are owned
        alone = search(with_settings(scenario, settings))
    drops = [drop for drop in alone.ledgers[workload] if drop.nearest]
    # What fits and is too slow came furthest; then what one machine alone lacks
    drops.sort(key=lambda drop: (drop.reason not in LAST, drop.reason == "network-unknown"))
    told = [f"{drop.reason}: {drop.nearest}" for drop in drops]
    refused = [
        f"{counted(drop.count, 'offer')}: {drop.reason}" for drop in alone.ledgers[workload] if drop.what == "offers"
    ]
    found = [*told, *(text for text in refused if not text.endswith(": not-allowed"))]
    if not found and not sold:
        return ["the catalog has no offer of it: own it (hardware.owned), or give a price (hardware.contracts)"]
    return found


def _owned_of(candidates: Candidates, device: str) -> list[str]:
    """The setting that leaves what is owned of a device alone: other machines have misses of their own."""
    groups, shapes = candidates.scenario.hardware.owned, candidates.catalog
    if all(find_shape(shapes, group.shape).device == device for group in groups):
        return []
    stated = candidates.scenario.resolved["hardware"]["owned"]
    mine = [one for one, group in zip(stated, groups) if find_shape(shapes, group.shape).device == device]
    return [f"hardware.owned={json.dumps(mine)}"]


def _compared(
    candidates: Candidates,
    solution: Solution,
    other: Candidates,
    entry: NotCompared,
    forced: tuple[BreakEven, bool],
    asker: Asker,
    asked: Asked,
) -> WithinNoLimits | ComparedWith:
    """The cheapest plan with the device beside the plan without; whether its price fell for the workload alone."""
    workload, (found, task_alone) = entry["workload"], forced
    if found.forced_microusd is None or found.forced_units is None:
        misses = _held_back(other, workload, asked, asker) if found.proven else []
        return {**entry, "state": "limits", "misses": misses, "proven": found.proven}
    alone = _forced_alone(other, found, workload, asked) or _alone(other, workload, asked, asker)
    if alone.status is Status.INFEASIBLE:
        entry = {**entry, "misses": [_too_few(other, workload, asked, asker)]}
    worse = not alone.has_plan or found.forced_microusd < solution.cost_microusd < alone.cost_microusd
    cost, units = (found.forced_microusd, found.forced_units) if worse else (alone.cost_microusd, alone.units)
    rows = _rows(other, units, workload)
    mine = [row for row in rows if asked.of_row(row)]
    task = next(one for one in candidates.program.tasks if one.name == workload)
    chosen = allocations_of(candidates, solution, task)
    price = _price(mine)
    share = None if found.share is None else float(found.share)
    regret = cost - solution.cost_microusd
    if abs(regret) <= candidates.program.tie_microusd(solution.cost_microusd):
        regret = 0  # as cheap
    return {
        **entry,
        "state": "dearer" if regret > 0 else "as cheap" if regret == 0 else "cheaper",
        "rows": rows,
        "alone": len(mine) == len(rows),
        "plan_microusd": cost,
        "plan_usd": usd(cost),
        "regret_microusd": regret,
        "regret_usd": usd(regret),
        "regret_share": regret / solution.cost_microusd if solution.cost_microusd else 0.0,
        "device_hours_factor": _ratio(_hours(rows), _hours(chosen)),
        "price_factor": None if _paid_apart([*rows, *chosen]) else _ratio(_price(rows), _price(chosen)),
        "share": share,
        "share_exact": None if found.share is None else f"{found.share.numerator}/{found.share.denominator}",
        "price_usd_per_device_hour": price,
        "break_even_usd_per_device_hour": None if share is None or price is None else price * share,
        "break_even_mfu": _break_even_mfu(other, solution, workload, mine, asker, asked, (found, task_alone)),
        "proven": found.proven and solution.status is Status.OPTIMAL,
    }


def _held_back(candidates: Candidates, workload: str, asked: Asked, asker: Asker) -> list[str]:
    """The limits that leave no plan in which a workload uses it."""
    used = column_keys(candidates, asked.key) == asked.name
    task = next(one for one in candidates.whole.tasks if one.name == workload)
    used[: task.first] = used[task.stop :] = False
    return held_back_by(forced_program(candidates.whole, used, used)[0], replace(asker, exact=False))


def _too_few(candidates: Candidates, workload: str, asked: Asked, asker: Asker) -> str:
    """Why it runs the workload beside others only."""
    if asked.group is not None:
        return f"too few are owned for {workload} alone"
    small = _on_it_alone(candidates, workload, asked)[0]
    told = held_back_by(small, replace(asker, exact=False))
    return f"too few may be had for {workload} alone" + (f": {'; '.join(told)}" if told else "")


def _forced_alone(candidates: Candidates, found: BreakEven, workload: str, asked: Asked) -> Solution | None:
    """The plan that was forced, where it has the workload on the device alone, within every limit; None elsewhere.

    None is cheaper then: whatever has it there alone was open to it. Its budget was left out, and may stand in the way.
    """
    whole, units = candidates.whole, found.forced_units
    assert units is not None
    assert found.forced_microusd is not None
    task = next(one for one in whole.tasks if one.name == workload)
    on_it = column_keys(candidates, asked.key)[task.first : task.stop] == asked.name
    if (units[task.first : task.stop] > 0)[~on_it].any() or any(limit_of(row) == BUDGET for row in whole.rows):
        return None
    status = Status.OPTIMAL if found.proven else Status.FEASIBLE
    flows = np.zeros(whole.capacity_micro_per_s.shape)
    return Solution(status=status, units=units, flows=flows, cost_microusd=found.forced_microusd)


def _alone(candidates: Candidates, workload: str, device: Asked, asker: Asker) -> Solution:
    """The cheapest plan with the workload on the device alone, within every limit, over the columns of `whole`."""
    small, kept = _on_it_alone(candidates, workload, device)
    answer = asker.cheapest(small)
    units = np.zeros(candidates.whole.column_count, dtype=np.int64)
    units[kept] = answer.units
    return replace(answer, units=units)


def _on_it_alone(candidates: Candidates, workload: str, device: Asked) -> tuple[Program, IntArray]:
    """The pruned program in which the workload is on the device alone, and its columns in `whole`."""
    whole = replace(candidates.whole, objective=("cost",))
    task = next(one for one in whole.tasks if one.name == workload)
    mask = np.ones(whole.column_count, dtype=bool)
    mask[task.first : task.stop] = column_keys(candidates, device.key)[task.first : task.stop] == device.name
    small, open_columns = restrict(whole, mask)
    kept = prune(small)
    return restrict(small, np.isin(np.arange(small.column_count), kept))[0], open_columns[kept]


def _rows(candidates: Candidates, units: IntArray, workload: str) -> list[Allocation]:
    """The rows of a workload in a plan over all columns, as the plan document has them."""
    whole: Program = candidates.whole
    flows = flows_of(whole, units, None, None)
    plan = Solution(status=Status.OPTIMAL, units=units, flows=flows[-1], level_flows=flows)
    over_all = replace(candidates, program=whole, rows=candidates.whole_rows)
    if getattr(candidates, "whole_shared", None) is not None:
        over_all = replace(over_all, shared=candidates.whole_shared)
    if getattr(candidates, "whole_calendar", None) is not None:
        over_all = replace(over_all, calendar=candidates.whole_calendar)
    task = next(one for one in whole.tasks if one.name == workload)
    return allocations_of(over_all, plan, task)


def _hours(rows: Sequence[Allocation]) -> float:
    return float(sum(row["device_hours"] for row in rows))


def _price(rows: Sequence[Allocation]) -> float | None:
    """Mean price of a device-hour.  [USD]"""
    hours = _hours(rows)
    return sum(row["cost_microusd"] for row in rows) / MICRO / hours if hours > 0 else None


def _paid_apart(rows: Sequence[Allocation]) -> bool:
    """Whether contracts, which have costs of their own, pay for some of them."""
    return any(row.get("funding") == "reserved" for row in rows)


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _break_even_mfu(
    candidates: Candidates,
    solution: Solution,
    workload: str,
    rows: Sequence[Allocation],
    asker: Asker,
    asked: Asked,
    forced: tuple[BreakEven, bool] | None = None,
) -> float | None:
    """MFU on the device from which on it would be chosen for a job; None above 100 %, and for fleets.

    The cost of a job is its hours times a price, and its hours are its work over its MFU: with 1 / t of the MFU its
    ways on the device cost t as much on the same nodes. So t is the break-even share of the job's own columns alone.
    """
    if not isinstance(candidates.questions[workload], TrainingQuestion) or len(rows) != 1:
        return None
    (row,) = rows
    if "mfu" not in row or not row["mfu"]:
        return None
    task = next(one for one in candidates.whole.tasks if one.name == workload)
    known, task_alone = forced or (None, False)
    found = known if known is not None and task_alone else None
    if found is None:
        prices, best = Prices.of(candidates, asked.key), solution.cost_microusd
        found = prices.break_even(asked.name, best, asker, task=task, task_alone=True, known=known)
    if found.share is None:
        return None
    needed = row["mfu"] / float(found.share)
    return needed if needed <= 1.0 else None


MOST = 12  # limits, each of which is a program to solve
_NO_LIMITS = (STRUCTURE, DEVICES_OF, FORCED, BUDGET)


def held_back_by(program: Program, asker: Asker) -> list[str]:
    """Limits without any one of which the program has a plan, in words; else one entry of fewest that are too many.

    Parameters
    ----------
    program
        One that has no plan.
    asker
        How programs are solved.
    """
    told = {
        limit_of(row): f"{limit_of(row)} ({row.label.partition(', ')[0]})"
        for row in program.rows
        if not row.name.startswith(_NO_LIMITS)
    }
    if program.max_providers is not None:
        told[PROVIDERS] = f"{PROVIDERS} ({counted(program.max_providers, 'provider')})"
    if len(told) > MOST or not asker.feasible(_without_rows(program, told)):
        return []
    alone = [name for name in told if asker.feasible(_without_rows(program, [name]))]
    if alone:
        return [told[name] for name in alone]
    gone = dict(told)
    for name in told:
        rest = [one for one in gone if one != name]
        if asker.feasible(_without_rows(program, rest)):
            del gone[name]
    return [" and ".join(gone.values())]


def _without_rows(program: Program, names: Collection[str]) -> Program:
    rows = tuple(row for row in program.rows if limit_of(row) not in names)
    return replace(program, rows=rows, max_providers=None if PROVIDERS in names else program.max_providers)
