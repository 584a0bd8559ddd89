"""The catalog that a plan was made with, loaded again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.catalog.model import Catalog
from planner.catalog.own_prices import OwnPrices, load_priced
from planner.errors import InputError
from planner.files import demand_inside
from planner.scenario.load import parse_scenario
from planner.scenario.schema import Scenario
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
