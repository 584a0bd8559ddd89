"""A way out by one place more for a workload that says where it may stand (`regions` of a job or a fleet)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.analysis.why.widen import EVERY, MOST, Search, Texts, column_keys, tried
from planner.candidates.program import restrict
from planner.candidates.prune import prune
from planner.candidates.search import Candidates
from planner.catalog.names import region_matches
from planner.optimize.limited import Asker
from planner.scenario.load import with_settings
from planner.scenario.schema import ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.others import WayOut


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
