"""Every legal way to run a scenario, listed: what all other answers of the library are found among."""

from __future__ import annotations

from typing import Any

from planner.api.taking import ScenarioLike, catalog_of, checked_share, scenario_of
from planner.candidates.patience import Spent, endless
from planner.candidates.program import SHARE
from planner.candidates.search import Candidates
from planner.candidates.search import enumerate_candidates as _enumerate
from planner.catalog.model import Catalog
from planner.plan.pins import check_pins
from planner.plan.references import check_references, loader_of


def enumerate_candidates(
    scenario: ScenarioLike,
    catalog: Catalog | None = None,
    *,
    allow_suspect: bool = False,
    every_layout: bool = False,
    known: Candidates | None = None,
    spent: Spent = endless,
    tie_tolerance: float = SHARE,
    workers: int = 1,
) -> Candidates:
    """Every legal way to run every workload, with memory, time and cost; drops are in its ledgers.

    Parameters
    ----------
    known
        Candidates of another scenario: what they have in common with this one is not worked out again.
    spent
        Share of the time for it that is gone: at 1 what is not listed yet is left out.
    tie_tolerance
        Share of the cost within which costs are equal: what else is as cheap is kept.
    workers
        Processes of this machine that list workloads beside each other; the ways are the same.

    Raises
    ------
    InputError
        The scenario names what the catalog or the presets do not have.
    """
    scenario = scenario_of(scenario)
    catalog = catalog or catalog_of(scenario)
    check_references(scenario, catalog)
    check_pins(scenario, catalog, loader_of(scenario))
    asked: dict[str, Any] = {"allow_suspect": allow_suspect, "every_layout": every_layout, "known": known}
    asked["tie_share"] = checked_share(tie_tolerance)
    if workers != 1:
        from planner.api.listing import Beside

        asked["lists"] = Beside(workers)
    return _enumerate(scenario, catalog, loader_of(scenario), spent=spent, **asked)
