"""Ways out by a wider choice: another device, or another region, beside those that are allowed.

One search with the choice wide open; then, for each further device or region, the columns of those allowed and of it
are solved. The cheapest that gives a plan is told; when no single one does, whether all of them together would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.candidates.offers import Site
from planner.candidates.program import Program, restrict
from planner.candidates.prune import prune
from planner.candidates.search import Candidates
from planner.catalog.load import device_matches
from planner.catalog.regions import region_matches
from planner.optimize.limited import Asker
from planner.optimize.solve import Solution
from planner.optimize.status import Status
from planner.plan.rows.place import usd
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.model.others import WayOut

Search = Callable[..., Candidates]
MOST = 60  # further choices that are tried one by one
EVERY = "*"


def wider_choices(scenario: Scenario, search: Search, asker: Asker) -> Iterator[WayOut]:
    """At most one way out for hardware.allow and one for hardware.regions.

    Parameters
    ----------
    scenario
        Says which devices and regions are allowed; where all are, there is no wider choice.
    search
        Enumerates a scenario with the same catalog.
    asker
        How programs are solved.
    """
    hardware = scenario.hardware
    if hardware.allow != ("*",):
        yield from _wider(scenario, "hardware.allow", hardware.allow, _device_of, allowed, search, asker)
    if hardware.regions != ("*",):
        yield from _wider(scenario, "hardware.regions", hardware.regions, _region_of, in_regions, search, asker)


def _device_of(site: Site) -> str:
    return site.device.id


def allowed(site: Site, pattern: str) -> bool:
    """Whether a pattern of hardware.allow names the device of a site."""
    return device_matches(site.device, pattern)


def _region_of(site: Site) -> str:
    return site.offer.region


def in_regions(site: Site, pattern: str) -> bool:
    """Whether a pattern of hardware.regions has the place of a site."""
    return site.owned is not None or region_matches(site.offer, pattern)


def _wider(
    scenario: Scenario,
    name: str,
    stated: tuple[str, ...],
    key: Callable[[Site], str],
    matches: Callable[[Site, str], bool],
    search: Search,
    asker: Asker,
) -> Iterator[WayOut]:
    wide = search(with_settings(scenario, [f'{name}="*"']))
    program = replace(wide.whole, objective=("cost",))
    keys = column_keys(wide, key)
    inside = {key(site): any(matches(site, one) for one in stated) for site in _sites(wide)}
    open_already = np.array([one == "" or inside[one] for one in keys], dtype=bool)
    others = sorted(one for one, allowed in inside.items() if not allowed)[:MOST]
    answers = [(other, _solved(program, open_already | (keys == other), asker)) for other in others]
    if len(others) > 1 and not any(answer.has_plan for _, answer in answers):
        answers.append((EVERY, _solved(program, np.ones(len(keys), dtype=bool), asker)))
    if others or wide.cut:
        way = _way_out(scenario, name, stated, answers)
        way["proven"] = way["proven"] and not wide.cut  # what was not listed in time may be a way, or a cheaper one
        yield way


def _sites(candidates: Candidates) -> Iterator[Site]:
    for table in candidates.tables.values():
        yield from table.sites


def column_keys(candidates: Candidates, key: Callable[[Site], str]) -> NDArray[np.str_]:
    """A key of the site of each column of `whole`; empty for columns that stand nowhere."""
    keys = [""] * candidates.whole.column_count
    for task in candidates.whole.tasks:
        if task.kind != "optional":
            table = candidates.tables[task.name]
            for column in range(task.first, task.stop):
                keys[column] = key(table.sites[int(candidates.whole_rows[column])])
    return np.array(keys, dtype=np.str_)


def _solved(program: Program, mask: NDArray[np.bool_], asker: Asker) -> Solution:
    small = restrict(program, mask)[0]
    return asker.cheapest(restrict(small, np.isin(np.arange(small.column_count), prune(small)))[0])


def _way_out(scenario: Scenario, name: str, stated: tuple[str, ...], answers: list[tuple[str, Solution]]) -> WayOut:
    """The cheapest choice that gives a plan."""
    place, with_plan = scenario.places.get(name), [(one.cost_microusd, key) for key, one in answers if one.has_plan]
    cost, chosen = min(with_plan) if with_plan else (None, "")
    written = ", ".join(f'"{one}"' for one in ((*stated, chosen) if chosen != EVERY else (EVERY,)))
    return {
        "limit": name,
        "place": str(place) if place else "",
        "unit": "choices",
        "from": len(stated),
        "to": None if not chosen else 1 if chosen == EVERY else len(stated) + 1,  # as many as the setting names
        "from_text": ", ".join(stated),
        "to_text": "+ several others" if chosen == EVERY else f"+ {chosen}" if chosen else "",
        "more_text": chosen,
        "setting": f"{name}=[{written}]" if chosen else "",
        "cost_microusd": cost,
        "cost_usd": None if cost is None else usd(cost),
        "proven": all(one.status in (Status.OPTIMAL, Status.INFEASIBLE) for _, one in answers),
    }
