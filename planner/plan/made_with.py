"""The catalog that a plan was made with, loaded again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from planner.catalog.model import Catalog
from planner.catalog.own_prices import OwnPrices, load_priced
from planner.errors import InputError
from planner.files import demand_inside
from planner.scenario.load import parse_scenario
from planner.scenario.schema import Scenario
from planner.units import NO_RATES


def catalog_of_plan(
    plan: Mapping[str, Any],
    hardware: str | None = None,
    *,
    prices: Iterable[str] | None = None,
    price: Iterable[str] | None = None,
) -> Catalog:
    """The catalog of a plan: its scenario's own or the packaged one, at the prices that the plan says it was given.

    Whether it still is what it was, its digest tells.

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
    return load_priced(hardware or (scenario.hardware.catalog if scenario is not None else None), own)


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
