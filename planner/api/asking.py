"""Questions to a solved scenario: what limits are worth, which prices would change it, why not another, ways out.

Each is a session of one question; who asks several holds a `planner.session`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.api.sessions import Session
from planner.api.taking import ScenarioLike
from planner.catalog.model import Catalog

if TYPE_CHECKING:
    from planner.analysis.why.model import BreakEvenRow, MarginalValue, WhyNot
    from planner.plan.model.others import Infeasible


def marginal_values(scenario: ScenarioLike, catalog: Catalog | None = None, **options: Any) -> list[MarginalValue]:
    """What one step more of every limit saves, each by solving again.  [micro-USD]"""
    return Session(scenario, catalog, **options).marginal_values()


def break_even(scenario: ScenarioLike, catalog: Catalog | None = None, **options: Any) -> list[BreakEvenRow]:
    """What forcing each device that is not chosen costs, and the price at which it would be chosen."""
    return Session(scenario, catalog, **options).break_even()


def why_not(
    scenario: ScenarioLike, device: str, catalog: Catalog | None = None, *, workload: str | None = None, **options: Any
) -> list[WhyNot]:
    """Why a device is not in the plan: dearer by how much, or impossible and what came nearest.

    Parameters
    ----------
    scenario
        A scenario, the path of its file, or the name of one that ships.
    device
        Id of a device of the catalog, or a name or pattern that means just one.
    catalog
        Default: the scenario's own, else the packaged one.
    workload
        Only this one; None: each.
    **options
        As for `planner.session`.

    Raises
    ------
    InputError
        The catalog has no such device, or several go by that name; the scenario names what is not there.
    """
    return Session(scenario, catalog, **options).why_not(device, workload=workload)


def repairs(scenario: ScenarioLike, catalog: Catalog | None = None, **options: Any) -> Infeasible | None:
    """Conflict set and ways out of a scenario that nothing meets; None when there is a plan."""
    return Session(scenario, catalog, **options).repairs()
