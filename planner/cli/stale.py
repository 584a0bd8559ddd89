"""Plans that are older than their scenario or catalog: refused, or told on stderr with --allow-stale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.frame import Frame
from planner.errors import InputError, Place

if TYPE_CHECKING:
    from planner.api.checking import Checked
    from planner.catalog.model import Catalog
    from planner.plan.model.plan import PlanDocument
    from planner.scenario.schema import Scenario

AllowStale = Annotated[
    bool, typer.Option("--allow-stale", help="Go on although the scenario or the catalog changed since the plan.")
]


def fresh(
    frame: Frame,
    plan: PlanDocument,
    *,
    hardware: str | None,
    allow_stale: bool,
    prices: Sequence[str] | None = None,
    price: Sequence[str] | None = None,
) -> tuple[Scenario | None, Catalog]:
    """The scenario of a plan as its file is now (None: gone), and the catalog, after a look at their age.

    Parameters
    ----------
    frame
        Where warnings and remarks go.
    plan
        A plan document.
    hardware
        Folder or frozen file of a catalog; None: that of the plan's scenario, else the packaged one.
    allow_stale
        What changed is told as a warning.
    prices, price
        Texts after `--prices` and `--price`, in place of those that the plan records; None: nothing was said.

    Raises
    ------
    InputError
        One of them changed since the plan was made, and nobody allowed for it.
    """
    from planner.plan.plan_files import catalog_of_plan, scenario_of, stale_problems

    scenario = scenario_of(plan)
    catalog = catalog_of_plan(plan, hardware, prices=prices, price=price)
    found = stale_problems(plan, catalog, scenario)
    if found and not allow_stale:
        raise InputError(*found)
    for problem in found:
        frame.warn(replace(problem, severity="warning", hint=""))
    if scenario is None and not found:
        where = "is not readable here, or lies outside of this folder (--allow-outside)"
        frame.say(f"{plan['scenario_file']} {where}: the plan was held against the catalog only")
    return scenario, catalog


def as_proven(frame: Frame, document: PlanDocument, catalog: Catalog | None = None, *, file: str = "") -> PlanDocument:
    """The document as far as it is proven, for showing; a warning on stderr where that is less than it says.

    Parameters
    ----------
    frame
        Where warnings go.
    document
        Of a plan; it stays as it is.
    catalog
        That it is held against; None: the one that it says it was made with.
    file
        That warnings name; empty: none.
    """
    from planner.api.checking import looked_at

    return told(frame, looked_at(document, catalog), file=file)


def told(frame: Frame, checked: Checked, *, file: str = "") -> PlanDocument:
    """What was checked as far as it is proven; a warning on stderr where that is less than it says.

    Parameters
    ----------
    frame
        Where warnings go.
    checked
        A document after its check.
    file
        That warnings name; empty: none.
    """
    document, warnings = checked.shown()
    for warning in warnings:
        frame.warn(replace(warning, places=(Place(file=file),)) if file else warning)
    return document
