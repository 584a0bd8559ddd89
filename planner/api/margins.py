"""What the margins of a scenario cost: solved again without them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from planner.api.sessions import Session
from planner.api.taking import PlanLike, ScenarioLike, document_of, scenario_of
from planner.catalog.model import Catalog
from planner.deadline import Deadline
from planner.plan.parts import currency_of
from planner.scenario.load import with_settings
from planner.units import format_money

if TYPE_CHECKING:
    from planner.budget.model import MarginsCost


def margins(
    scenario: ScenarioLike | Session,
    catalog: Catalog | None = None,
    *,
    plan: PlanLike,
    each: bool = False,
    solver: str = "highs",
    gap: float = 0.0,
    time_limit_s: float | Deadline | None = None,
    threads: int = 1,
    seed: int = 0,
    allow_suspect: bool = False,
) -> MarginsCost:
    """What confidence, peak factor, target load and spares cost together, over a plan that takes none of them.

    Parameters
    ----------
    scenario
        The question, with its margins; or a session of it, whose catalog and options are taken.
    plan
        That answers it: a plan, its document or the path of its file.
    each
        Also solve without each margin alone; a calendar, whose solves take long, is solved again for this only.
    solver, gap, time_limit_s, threads, seed, allow_suspect
        As for `solve`; a time limit is that of listing and of each solving.

    Raises
    ------
    InputError, StoppedError
        As `solve`.
    """
    from planner.budget.margins import margins_document, margins_taken, why_not_solved

    session = scenario if isinstance(scenario, Session) else None
    scenario = scenario_of(scenario) if not isinstance(scenario, Session) else scenario.scenario
    taken, why_not = margins_taken(scenario), why_not_solved(scenario, each)
    document = document_of(plan)
    cost = document["summary"]["cost_microusd"]
    if why_not or cost is None or not taken:
        return margins_document(taken, cost, None if taken else cost, None, why_not)
    options: dict[str, Any] = {"solver": solver, "gap": gap, "time_limit_s": time_limit_s}
    options |= {"allow_suspect": allow_suspect, "threads": threads, "seed": seed}
    asked = session or Session(scenario, catalog, **options)

    def least_microusd(settings: Iterable[str]) -> int | None:
        solution = asked.on(with_settings(scenario, list(settings))).answer()[1]
        return solution.cost_microusd if solution.has_plan else None

    together = least_microusd(text for one in taken for text in one.settings)
    alone = {one.name: least_microusd(one.settings) for one in taken} if each else None
    plain = document.get("plain")
    if plain is None or plain["cheapest_microusd"] == cost:
        return margins_document(taken, cost, together, alone)
    found = margins_document(taken, plain["cheapest_microusd"], together, alone)  # the cheapest beside the cheapest
    money = format_money(plain["cheapest_microusd"], currency=currency_of(document))
    return {**found, "notes": [*found["notes"], f"held against the cheapest plan, {money}, not the plainer one"]}
