"""Ways out by a wider choice: another device, or another region, beside those that are allowed.

One search with the choice wide open; then, for each further device or region, the columns of those allowed and of it
are solved. The cheapest that gives a plan is told; when no single one does, whether all of them together would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

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
from planner.plan.place import usd
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario

Document = dict[str, Any]
Search = Callable[..., Candidates]
MOST = 60  # further choices that are tried one by one
EVERY = "*"


def wider_choices(scenario: Scenario, search: Search, asker: Asker) -> Iterator[Document]:
    """At most one way out for hardware.allow and one for hardware.regions."""
    hardware = scenario.hardware
    if hardware.allow != ("*",):
        yield from _wider(scenario, "hardware.allow", hardware.allow, _device_of, _allowed, search, asker)
    if hardware.regions != ("*",):
        yield from _wider(scenario, "hardware.regions", hardware.regions, _region_of, _in_regions, search, asker)


def _device_of(site: Site) -> str:
    return site.device.id


def _allowed(site: Site, pattern: str) -> bool:
    return device_matches(site.device, pattern)


def _region_of(site: Site) -> str:
    return site.offer.region


def _in_regions(site: Site, pattern: str) -> bool:
    return site.owned is not None or region_matches(site.offer, pattern)


def _wider(
    scenario: Scenario,
    name: str,
    stated: tuple[str, ...],
    key: Callable[[Site], str],
    matches: Callable[[Site, str], bool],
    search: Search,
    asker: Asker,
) -> Iterator[Document]:
    wide = search(with_settings(scenario, [f'{name}="*"']))
    program = replace(wide.whole, objective=("cost",))
    keys = column_keys(wide, key)
    inside = {key(site): any(matches(site, one) for one in stated) for site in _sites(wide)}
    open_already = np.array([one == "" or inside[one] for one in keys], dtype=bool)
    others = sorted(one for one, allowed in inside.items() if not allowed)[:MOST]
    best: tuple[Solution, str] | None = None
    for other in others:
        answer = _solved(program, open_already | (keys == other), asker)
        if answer is not None and (best is None or answer.cost_microusd < best[0].cost_microusd):
            best = (answer, other)
    if best is None and len(others) > 1:
        every = _solved(program, np.ones(len(keys), dtype=bool), asker)
        best = None if every is None else (every, EVERY)
    if others:
        yield _way_out(scenario, name, stated, best)


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


def _solved(program: Program, mask: NDArray[np.bool_], asker: Asker) -> Solution | None:
    small = restrict(program, mask)[0]
    if any(task.first == task.stop for task in small.tasks if task.kind != "optional"):
        return None
    answer = asker.cheapest(restrict(small, np.isin(np.arange(small.column_count), prune(small)))[0])
    return answer if answer.has_plan else None


def _way_out(scenario: Scenario, name: str, stated: tuple[str, ...], best: tuple[Solution, str] | None) -> Document:
    place, chosen = scenario.places.get(name), best[1] if best else ""
    written = ", ".join(f'"{one}"' for one in ((*stated, chosen) if chosen != EVERY else (EVERY,)))
    return {
        "limit": name,
        "place": str(place) if place else "",
        "unit": "choices",
        "from": len(stated),
        "to": len(stated) + 1 if best else None,
        "from_text": ", ".join(stated),
        "to_text": "" if best is None else "+ several others" if chosen == EVERY else f"+ {chosen}",
        "more_text": chosen,
        "setting": f"{name}=[{written}]" if best else "",
        "cost_microusd": best[0].cost_microusd if best else None,
        "cost_usd": usd(best[0].cost_microusd) if best else None,
        "proven": best is None or best[0].status is Status.OPTIMAL,
    }
