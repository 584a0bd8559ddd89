"""Why nothing works, and the ways out: the conflict set, single repairs, wider choices, the cheapest combination.

Every way out is the least that does: applied, there is a plan of the cost printed beside it; one unit less, and there
is none. Repairs are found on one search with all limits lifted (`relaxed`); only members of the conflict set can
repair alone, since without any other limit the conflict stays. Where a search under the repaired limit could find
other ways than the lifted one (`Relaxed.covers`), the repair is put to the whole search itself, and one unit less too;
so is every way out where a fleet has targets or an availability to hold, since plans are then solved in rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.analysis.tighten import cheapest_within_targets, on_exact_rates, tightens
from planner.analysis.why.in_turn import in_turn
from planner.analysis.why.least import least_from_below, least_that_works
from planner.analysis.why.relaxed import COUNTED, LIFTED, PATIENCE_S, Relaxed, Search, lifted_ways, relaxed
from planner.analysis.why.settings import OWNED, Stated, shapes_the_search, stated, stated_limits
from planner.analysis.why.widen import (
    EVERY,
    MOST,
    Texts,
    column_keys,
    in_another_form,
    larger_batch,
    less_to_carry,
    looser_targets,
    other_terms,
    tried,
    wider_choices,
)
from planner.candidates.node_parts import may_stand_beside
from planner.candidates.program import restrict
from planner.candidates.prune import prune
from planner.candidates.search import Candidates
from planner.carriers import dataclass
from planner.catalog.names import region_matches
from planner.errors import InputError
from planner.optimize.break_even import BUDGET
from planner.optimize.conflict import Conflict, find_conflict
from planner.optimize.elastic import Combined, combined_repair
from planner.optimize.limited import Asker, limit_of, verdict
from planner.optimize.repair import Repair, single_repair
from planner.optimize.solve import Solution
from planner.optimize.status import Status
from planner.plan.rows.row_cells import usd
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario, ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model import others as told
    from planner.plan.model.others import WayOut


BOTH = "; "  # between the two limits of a quota that counts devices and shapes
MOST_TIMES = 1000  # what seems to be enough of a limit that has no end of its own: beyond that nothing is tried
CONFLICT_SHARE = 0.5  # of the time, when there is a limit; the ways out have the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What contradicts itself, and what would mend it."""

    conflict: Conflict
    repairs: tuple[Repair, ...]
    combined: Combined | None
    wider: tuple[told.WayOut, ...]


def diagnose(candidates: Candidates, search: Search, asker: Asker | None = None) -> Diagnosis:
    """The conflict set of an infeasible scenario and its repairs.

    Parameters
    ----------
    search
        Enumerates a scenario with the same catalog: ``search(scenario, patience_s=None)``.
    asker
        How programs are solved; default HiGHS without a time limit.
    """
    asker, scenario = asker or Asker(), candidates.scenario
    forms = (in_another_form, larger_batch, looser_targets)
    less = [way for form in forms for way in form(candidates, search, asker)]
    ways, found = on_exact_rates(lifted_ways(scenario, search), lambda ways: _found(ways, scenario, asker))
    loose, conflict, single, combined = relaxed(ways, scenario), *found
    return Diagnosis(
        conflict=conflict,
        repairs=tuple(_confirmed(one, scenario, loose, search, asker) for one in single),
        combined=combined and _together(combined, scenario, search, asker),
        wider=(
            *less,
            *less_to_carry(candidates, conflict.names, search, asker),
            *in_turn(replace(ways, scenario=scenario), conflict.names, search, asker),
            *wider_choices(scenario, search, asker),
            *other_terms(candidates, search, asker),
            *elsewhere(candidates, search, asker),
        ),
    )


def _found(ways: Candidates, scenario: Scenario, asker: Asker) -> tuple[Conflict, list[Repair], Combined | None]:
    """What contradicts itself among ways without limits that shape them, and what would mend it there."""
    loose = relaxed(ways, scenario)
    if loose.empty:
        return Conflict(names=(), minimal=True), [], None
    conflict = find_conflict(loose.limited, asker=asker.within(CONFLICT_SHARE))
    numbers = [name for name in loose.limited.limits if stated(scenario, name)]
    if tightens(scenario) and not conflict.names:  # what is lacking are spares: any of the limits may be in the way
        return conflict, [Repair(name=name, more=1) for name in numbers], None
    single = [single_repair(loose.limited, name, asker) for name in conflict.names if name in numbers]
    return conflict, single, combined_repair(loose.limited, numbers, asker)


def _confirmed(one: Repair, scenario: Scenario, loose: Relaxed, search: Search, asker: Asker) -> Repair:
    """The repair as the whole question has it, where that may find other ways, or need more machines."""
    limits, beside = stated(scenario, one.name), any(may_stand_beside(job, scenario) for job in scenario.training)
    if not limits or (one.more is None and (not beside or limits[0].unit == "s")):
        return one
    if not _otherwise(scenario) and (not shapes_the_search(one.name) or _certain(one, scenario, loose)):
        return one
    answers: dict[int, Solution] = {}

    def works(more: int) -> bool:
        if more not in answers:
            try:
                applied = with_settings(scenario, [limit.setting(limit.value + more) for limit in limits])
            except InputError:  # a deadline beyond the calendar
                return False
            if asker.spent:  # to list the ways may take longer than to solve them
                raise _Unknown
            answers[more] = cheapest_within_targets(search(applied), asker)
        found = verdict(answers[more])
        if found is None:
            raise _Unknown
        return found

    value = max(limit.value for limit in limits)
    most = {"s": PATIENCE_S, **dict.fromkeys(COUNTED, LIFTED)}.get(
        limits[0].unit, MOST_TIMES * (value + (one.more or value))
    )
    most = int(most) - value
    try:
        if one.more is None and not works(most):
            return one
        if one.name == BUDGET:  # the least that is enough is what the cheapest plan costs
            return _budget(one, answers[most], value) if works(most) else Repair(name=one.name, more=None, proven=False)
        more = least_from_below(works, most) if one.more is None else least_that_works(one.more, works, most)
    except _Unknown:
        return replace(one, proven=False)
    if more is None:
        return Repair(name=one.name, more=None, proven=False)
    below = answers.get(more - 1)
    sure = answers[more].status is Status.OPTIMAL and (more == 1 or (below is not None and verdict(below) is False))
    return Repair(name=one.name, more=more, cost_microusd=answers[more].cost_microusd, proven=sure)


def _otherwise(scenario: Scenario) -> bool:
    """Whether the whole question has plans that the lifted search has not, or lacks some that it has.

    Fleets may need more for their targets; jobs stand beside fleets, which without a deadline they cannot.
    """
    return tightens(scenario) or any(may_stand_beside(job, scenario) for job in scenario.training)


def _budget(one: Repair, cheapest: Solution, value: int) -> Repair:
    """The budget for the cheapest plan of all, and no less."""
    cost, proven = cheapest.cost_microusd, cheapest.status is Status.OPTIMAL
    return Repair(name=one.name, more=max(cost - value, 1), cost_microusd=cost, proven=proven)


def _together(combined: Combined, scenario: Scenario, search: Search, asker: Asker) -> Combined | None:
    """Limits loosened together as the whole question has them; None where it has no plan even so."""
    if not _otherwise(scenario):
        return combined
    settings = [one.setting(one.value + more) for name, more in combined.more.items() for one in stated(scenario, name)]
    answer = cheapest_within_targets(search(with_settings(scenario, settings)), asker)
    if not answer.has_plan:
        return None
    proven = combined.proven and answer.status is Status.OPTIMAL
    return replace(combined, cost_microusd=answer.cost_microusd, proven=proven)


def _certain(one: Repair, scenario: Scenario, loose: Relaxed) -> bool:
    """Whether a search under the limit as repaired, and one unit less, has the columns of the lifted one."""
    if one.units is None or one.more is None or not loose.small(one.units):
        return False
    values = (
        [limit.setting(limit.value + more) for limit in stated(scenario, one.name)] for more in (one.more, one.more - 1)
    )
    return all(loose.covers(with_settings(scenario, settings)) for settings in values)


class _Unknown(Exception):
    """Neither a plan nor a proof that there is none."""


def infeasible_document(diagnosis: Diagnosis, candidates: Candidates) -> told.Conflicts:
    """Conflict, ways out and the combined repair, as the plan document carries them."""
    return {
        "conflict": list(_members(diagnosis.conflict, candidates)),
        "minimal": diagnosis.conflict.minimal,
        "ways_out": [
            *(row for one in diagnosis.repairs for row in _way_out(one, candidates.scenario)),
            *diagnosis.wider,
        ],
        "combined": _combined(diagnosis.combined, candidates.scenario),
    }


def _members(conflict: Conflict, candidates: Candidates) -> Iterator[told.Conflict]:
    scenario = candidates.scenario
    labels = _labels(candidates)
    limits = {one.name: one for one in stated_limits(scenario)}
    for name in conflict.names:
        label = labels.get(name, name)
        if match := OWNED.fullmatch(name):  # without a way, nothing counts them
            owned = scenario.hardware.owned[int(match[1])]
            label = f"{owned.count} owned {owned.shape}"
        elif name in limits and (name not in labels or not name.startswith("hardware.")):
            label = limits[name].shown(limits[name].value, currency=scenario.currency)
        yield {"name": name, "label": label, "place": place_of(scenario, name)}


def _labels(candidates: Candidates) -> dict[str, str]:
    """What each limit says; where it has rows for several times, what they have in common."""
    labels: dict[str, list[str]] = {}
    for row in candidates.program.rows:
        labels.setdefault(limit_of(row), []).append(row.label)
    return {name: said[0] if len(set(said)) == 1 else said[0].rsplit(", ", 1)[0] for name, said in labels.items()}


def place_of(scenario: Scenario, name: str) -> str:
    """Where a limit is written; empty when nowhere."""
    for path in (name, name.rsplit(".", 1)[0]):
        place = scenario.places.get(path) if "." in name else None
        if place is not None:
            return str(place)
    return ""


def _way_out(one: Repair, scenario: Scenario) -> Iterator[told.WayOut]:
    """The limit from what to what; a quota that counts devices and shapes moves in both."""
    moved = [_moved(limit, one.more, scenario.currency) for limit in stated(scenario, one.name)]
    if not moved:
        return
    yield {
        "limit": one.name,
        "place": place_of(scenario, one.name),
        **moved[0],
        "from_text": _both(other["from_text"] for other in moved),
        "to_text": _both(other["to_text"] for other in moved),
        "more_text": _both(other["more_text"] for other in moved),
        "setting": _both(other["setting"] for other in moved),
        "cost_microusd": one.cost_microusd,
        "cost_usd": None if one.cost_microusd is None else usd(one.cost_microusd),
        "proven": one.proven,
    }


def _both(texts: Iterable[str]) -> str:
    return BOTH.join(filter(None, texts))


def _moved(limit: Stated, more: int | None, currency: str) -> told.Moved:
    """From what to what, in whole units and in words; the setting that does it."""
    value = None if more is None else limit.value + more
    return {
        "unit": limit.unit,
        "from": limit.value,
        "to": value,
        "from_text": limit.shown(limit.value, currency=currency),
        "to_text": "" if value is None else limit.shown(value, currency=currency),
        "more_text": "" if more is None else limit.shown(more, currency=currency),
        "setting": "" if value is None else limit.setting(value),
    }


def _combined(combined: Combined | None, scenario: Scenario) -> told.Combined | None:
    if combined is None:
        return None
    changes: list[told.Change] = [
        {"limit": name, **_moved(limit, more, scenario.currency)}
        for name, more in combined.more.items()
        for limit in stated(scenario, name)
    ]
    return {
        "changes": changes,
        "cost_microusd": combined.cost_microusd,
        "cost_usd": usd(combined.cost_microusd),
        "loosening": _loosening(changes, combined.weight),
        "proven": combined.proven,
    }


def _loosening(changes: Sequence[told.Change], weight: int) -> float:
    """How much larger the limits are in all, each by its own size; by its weight what starts from nothing."""
    ratios = [one["to"] / one["from"] - 1.0 for one in changes if one["from"] and one["to"] is not None]
    return sum(ratios, 0.0) if len(ratios) == len(changes) else weight / 1e6


def elsewhere(candidates: Candidates, search: Search, asker: Asker) -> Iterator[WayOut]:
    """For each workload that names its regions the region in which it would be cheapest beside them, where one will do.

    Parameters
    ----------
    candidates
        The ways of the scenario.
    search
        Enumerates a scenario with the same catalog.
    asker
        How programs are solved.
    """
    scenario = candidates.scenario
    places: list[tuple[str, TrainingJob | ServingFleet]] = []
    places += [(f"training[{index}].regions", job) for index, job in enumerate(scenario.training)]
    places += [(f"serving[{index}].regions", fleet) for index, fleet in enumerate(scenario.serving)]
    for limit, asked in places:
        if asked.regions == (EVERY,) or asker.spent:
            continue
        setting = f"{limit.partition('[')[0]}.{asked.name}.regions"
        region = _cheapest(asked, search(with_settings(scenario, [f'{setting}=["{EVERY}"]'])), asker)
        if region is None:
            continue
        written, before = ", ".join(f'"{one}"' for one in (*asked.regions, region)), ", ".join(asked.regions)
        texts = Texts(limit, f"{setting}=[{written}]", before, f"+ {region}", region)
        held = len(asked.regions), len(asked.regions) + 1
        if way := tried(scenario, texts, "choices", held, search, asker):
            yield way


def _cheapest(asked: TrainingJob | ServingFleet, wide: Candidates, asker: Asker) -> str | None:
    """Of the regions that a workload does not name the one with the cheapest plan; None where none has one."""
    task, table = next(one for one in wide.whole.tasks if one.name == asked.name), wide.tables[asked.name]
    keys = column_keys(wide, lambda site: site.offer.region)
    named = {site.offer.region for site in table.sites if any(region_matches(site.offer, one) for one in asked.regions)}
    always = np.ones(wide.whole.column_count, dtype=bool)
    always[task.first : task.stop] = np.isin(keys[task.first : task.stop], sorted(named))
    found: list[tuple[int, str]] = []
    for region in sorted({site.offer.region for site in table.sites} - named)[:MOST]:
        opened = always.copy()
        opened[task.first : task.stop] |= keys[task.first : task.stop] == region
        small = restrict(replace(wide.whole, objective=("cost",)), opened)[0]
        answer = asker.cheapest(restrict(small, np.isin(np.arange(small.column_count), prune(small)))[0])
        found += [(answer.cost_microusd, region)] if answer.has_plan else []
    return min(found)[1] if found else None
