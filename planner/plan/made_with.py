"""The catalog that a plan was made with, loaded again, and whether the plan still answers its scenario and its catalog.

Either may have been edited since (reliability.md F7).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.catalog.model import Catalog
from planner.catalog.own_prices import OwnPrices, load_priced
from planner.errors import InputError, Place, Problem
from planner.files import demand_inside
from planner.scenario.load import load_scenario, parse_scenario
from planner.scenario.schema import Scenario
from planner.scenario.shipped import is_shipped
from planner.units import NO_RATES

if TYPE_CHECKING:
    from planner.plan.model.plan import CatalogUsed


def catalog_used(catalog: Catalog, scenario: Scenario) -> CatalogUsed:
    """What documents say of the catalog that they were made with: enough to find it again, and to know it."""
    used: CatalogUsed = {"name": catalog.name, "as_of": catalog.as_of, "sha256": catalog.digest}
    if catalog.own_prices:
        used["own_prices"] = list(catalog.own_prices)
    if catalog.named and catalog.named != scenario.hardware.catalog:
        used["hardware"] = catalog.named
    return used


def catalog_of_plan(
    plan: Mapping[str, Any],
    hardware: str | None = None,
    *,
    prices: Iterable[str] | None = None,
    price: Iterable[str] | None = None,
) -> Catalog:
    """The catalog of a plan: the one that was named for it, its scenario's own or the packaged one, at its own prices.

    A folder that was named is read where it lies in the working folder, as what plans name is, unless that was
    allowed. Whether the catalog still is what it was, its digest tells.

    Parameters
    ----------
    plan
        A plan document.
    hardware
        A folder or frozen file in place of the scenario's.
    prices, price
        As on the command line, in place of those that the plan records.

    Raises
    ------
    InputError, UsageError
        The catalog or a file of prices is gone or invalid.
    """
    scenario = _scenario(plan)
    rates = NO_RATES if scenario is None else scenario.rates
    own = OwnPrices.of(prices, price, rates)
    if not own.flags:
        own = OwnPrices.from_flags(_recorded(plan), rates)
        for file in own.files:
            _demand_inside(file)
    if hardware is None and (named := hardware_of(plan)) and not outside(named):
        hardware = named
    return load_priced(hardware or (scenario.hardware.catalog if scenario is not None else None), own)


def hardware_of(plan: Mapping[str, Any]) -> str:
    """The folder or file that was named for a plan in place of its scenario's own catalog; "" where none was."""
    try:
        named = plan["provenance"]["catalog"].get("hardware", "")
    except (LookupError, TypeError, AttributeError):
        return ""
    return named if isinstance(named, str) else ""


def outside(path: str) -> bool:
    """Whether a path that a plan names is not followed: it leads out of the working folder, or to nothing."""
    try:
        demand_inside(".", path)
        return not Path(path).exists()
    except (InputError, OSError, ValueError):
        return True


def _demand_inside(file: str) -> None:
    try:
        demand_inside(".", file)
    except InputError:
        message = f"this plan was made with prices of '{file}', a file outside of the working folder"
        hint = "name its prices again, all of them (--prices, --price), or allow it: --allow-outside"
        raise InputError.of("unsafe-path", message, hint=hint) from None


def _recorded(plan: Mapping[str, Any]) -> list[str]:
    """The flags that a plan records; none where the document is not a plan."""
    try:
        flags = plan["provenance"]["catalog"].get("own_prices", [])
    except (LookupError, TypeError, AttributeError):
        return []
    return [flag for flag in flags if isinstance(flag, str)] if isinstance(flags, list) else []


def _scenario(plan: Mapping[str, Any]) -> Scenario | None:
    """The scenario of a plan, its paths seen from the scenario's file; None where it cannot be read."""
    try:
        return parse_scenario(json.dumps(plan["scenario"]), file=plan["scenario_file"])
    except (InputError, LookupError, TypeError, ValueError, RecursionError):  # what is wrong, `verify` says
        return None


def scenario_of(plan: Mapping[str, Any]) -> Scenario | None:
    """The scenario file of a plan as it is now, with the case and the --set texts of the plan.

    None: not readable, or outside of the working folder, where a plan is not followed unless that was allowed.
    """
    try:
        if not is_shipped(plan["scenario_file"]):
            demand_inside(".", plan["scenario_file"])
        return load_scenario(plan["scenario_file"], settings=plan.get("settings", ()), case=plan["case"])
    except InputError:
        return None


def question_of(plan: Mapping[str, Any], scenario: Scenario | None) -> Scenario | None:
    """The question that a plan answers: its scenario file where that did not change, else the plan's own copy.

    None: what the copy names, a file of requests or a model, is not here.
    """
    if scenario is not None and asks_the_same(plan["scenario"], scenario.resolved):
        return scenario
    try:
        return parse_scenario(json.dumps(plan["scenario"]), file=plan["scenario_file"])
    except InputError:
        return None


def stale_problems(plan: Mapping[str, Any], catalog: Catalog, scenario: Scenario | None) -> list[Problem]:
    """What changed since the plan was made, a problem each; empty: nothing.

    Parameters
    ----------
    scenario
        Its scenario file as it is now; None: gone or no longer valid, and the plan is as good as its own copy.
    """
    found = []
    if scenario is not None and not asks_the_same(plan["scenario"], scenario.resolved):
        keys = ", ".join(changed_keys(plan["scenario"], scenario.resolved))
        found.append(_stale(f"the scenario changed since this plan was made: {keys}", plan["scenario_file"]))
    made_with = plan["provenance"]["catalog"]
    if catalog.digest != made_with["sha256"]:
        found.append(
            _stale(
                f"the catalog changed since this plan was made: it was {made_with['name']} {made_with['as_of']} "
                f"(sha256 {made_with['sha256'][:8]}…), it is {catalog.name} {catalog.as_of} "
                f"(sha256 {catalog.digest[:8]}…)",
                hint=f"or name the catalog that it was made with: --hardware {_where(plan, catalog)}",
            )
        )
    return found


def _where(plan: Mapping[str, Any], catalog: Catalog) -> str:
    """The folder that was named for a plan, for a shell; DIR where it is the very one that is another now."""
    named = hardware_of(plan)
    return "DIR" if named in ("", catalog.named) else shlex.quote(named)


def asks_the_same(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two resolved scenarios have the same answer; how it is reported is no part of the question."""
    return {**before, "report": None} == {**after, "report": None}


def changed_keys(before: Any, after: Any, path: str = "") -> list[str]:
    """Paths at which two resolved scenarios differ, as --set writes them; parts of lists by their names.

    Parameters
    ----------
    before, after
        Two resolved scenarios, or what they have at one path.
    path
        Where that stands; empty: the whole scenario.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        keys = dict.fromkeys([*before, *after])
        return [
            line
            for key in keys
            for line in changed_keys(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
        ]
    was, now = _by_name(before), _by_name(after)
    if was is not None and now is not None:
        return changed_keys(was, now, path)
    return [] if before == after else [path]


def _by_name(entries: Any) -> dict[str, Any] | None:
    """A list of workloads by their names; None where they have none."""
    if not isinstance(entries, list) or not entries:
        return None
    if not all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in entries):
        return None
    return {entry["name"]: entry for entry in entries}


def _stale(message: str, file: str = "", hint: str = "") -> Problem:
    return Problem(
        reference="stale-plan",
        message=message,
        places=(Place(file=file),) if file else (),
        hint="; ".join(filter(None, ["plan solve it again", hint, "or go on with the plan as it is: --allow-stale"])),
    )
