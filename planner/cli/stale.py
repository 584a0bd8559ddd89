"""Plans that are older than their scenario or catalog: refused, or told on stderr with --allow-stale."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.frame import Frame
from planner.errors import InputError

if TYPE_CHECKING:
    from planner.catalog.model import Catalog
    from planner.scenario.schema import Scenario

AllowStale = Annotated[
    bool, typer.Option("--allow-stale", help="Go on although the scenario or the catalog changed since the plan.")
]


def fresh(
    frame: Frame, plan: dict[str, Any], *, hardware: str | None, allow_stale: bool
) -> tuple[Scenario | None, Catalog]:
    """The scenario of a plan as its file is now (None: gone), and the catalog, after a look at their age.

    Raises
    ------
    InputError
        One of them changed since the plan was made, and nobody allowed for it.
    """
    from planner.plan.made_with import catalog_of_plan
    from planner.plan.stale import scenario_of, stale_problems
    from planner.report import problems

    scenario = scenario_of(plan)
    catalog = catalog_of_plan(plan, hardware)
    found = stale_problems(plan, catalog, scenario)
    if found and not allow_stale:
        raise InputError(*found)
    if found:
        told = [replace(problem, severity="warning", hint="") for problem in found]
        sys.stderr.write(problems.render(told, colour=frame.colour(sys.stderr)))
    elif scenario is None:
        frame.say(f"{plan['scenario_file']} is not readable here: the plan was held against the catalog only")
    return scenario, catalog
