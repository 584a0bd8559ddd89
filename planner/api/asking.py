"""Questions to a solved scenario: what limits are worth, which prices would change it, why not another, ways out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.api.solving import Way, catalog_of, enumerate_candidates
from planner.catalog.model import Catalog
from planner.plan.tighten import solve_within_targets
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.why.asked import Asked

Document = dict[str, Any]


def asked(scenario: Scenario, catalog: Catalog | None = None, *, allow_suspect: bool = False, **options: Any) -> Asked:
    """A scenario, solved, to ask what its limits are worth, what other devices cost, why not this one, what mends it.

    Parameters
    ----------
    options
        Of the solver, as for `solve`; a time limit is that of each program.
    """
    from planner.plan.why.asked import Asked

    way = Way(catalog=catalog or catalog_of(scenario), options=options, allow_suspect=allow_suspect)
    listed = enumerate_candidates(scenario, way.catalog, allow_suspect=allow_suspect)
    candidates, solution = solve_within_targets(listed, way.solved)
    return Asked(candidates=candidates, solution=solution, catalog=way.catalog, search=way.search, options=options)


def marginal_values(scenario: Scenario, catalog: Catalog | None = None, **options: Any) -> list[Document]:
    """What one step more of every limit saves, each by solving again.  [micro-USD]"""
    return asked(scenario, catalog, **options).marginal_values()


def break_even(scenario: Scenario, catalog: Catalog | None = None, **options: Any) -> list[Document]:
    """What forcing each device that is not chosen costs, and the price at which it would be chosen."""
    return asked(scenario, catalog, **options).break_even()


def why_not(
    scenario: Scenario, device: str, catalog: Catalog | None = None, *, workload: str | None = None, **options: Any
) -> list[Document]:
    """Why a device is not in the plan: dearer by how much, or impossible and what came nearest."""
    return asked(scenario, catalog, **options).why_not(device, workload=workload)


def repairs(scenario: Scenario, catalog: Catalog | None = None, **options: Any) -> Document | None:
    """Conflict set and ways out of a scenario that nothing meets; None when there is a plan."""
    return asked(scenario, catalog, **options).repairs()
