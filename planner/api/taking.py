"""What the functions of the library take: a plan, its document or its file; a scenario, its file or its name."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

from planner.answers import Plan
from planner.candidates.program import MOST_SHARE
from planner.catalog.own_prices import OwnPrices, load_priced
from planner.deadline import Deadline
from planner.errors import UsageError
from planner.files import StrPath
from planner.plan.document import digest_of
from planner.plan.plan_files import read_document, read_plan
from planner.scenario.load import load_scenario
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.catalog.model import Catalog
    from planner.plan.model.plan import PlanDocument

MOST_COUNT = 2**31 - 1
PlanLike = Plan | Mapping[str, Any] | StrPath
ScenarioLike = Scenario | Mapping[str, Any] | StrPath


def document_of(plan: PlanLike) -> PlanDocument:
    """The document of a plan, however it is given, held against its types.

    Raises
    ------
    InputError
        It is no plan; or something in it is missing, unknown or of another type: each with its path.
    TypeError
        It is none of the three.
    """
    if isinstance(plan, Plan):
        return plan.document if not plan.read_from and _sealed(plan.document) else read_document(plan.document)
    if isinstance(plan, str | os.PathLike):
        return read_plan(plan)
    if isinstance(plan, Mapping):
        return read_document(plan)
    raise TypeError(f"a plan, its document or the path of its file is wanted, not {type(plan).__name__}")


def _sealed(document: Any) -> bool:
    """Whether a document is as it was when it was made: what was solved here has the types that it must have."""
    return isinstance(document, dict) and document.get("sha256") == digest_of(document)


def scenario_of(scenario: ScenarioLike) -> Scenario:
    """A scenario, however it is given.

    Raises
    ------
    InputError
        Its file is none, or is wrong; nothing ships by that name.
    TypeError
        It is none of a scenario, its mapping and a path.
    """
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, str | os.PathLike | Mapping):
        return load_scenario(scenario)
    raise TypeError(
        f"a scenario, its mapping, the path of its file or the name of one is wanted, not {type(scenario).__name__}"
    )


def catalog_of(
    scenario: ScenarioLike,
    hardware: str | None = None,
    *,
    prices: Iterable[str] | None = None,
    price: Iterable[str] | None = None,
) -> Catalog:
    """The catalog to use: `hardware`, then the scenario's own, else the packaged one, at one's own prices.

    Parameters
    ----------
    hardware
        A folder or frozen file.
    prices
        Files of prices, or one ISO date: only prices of that day or earlier.
    price
        Prices of a device-hour: "h100-sxm=$2.50/h".
    """
    scenario = scenario_of(scenario)
    return load_priced(hardware or scenario.hardware.catalog, OwnPrices.of(prices, price, scenario.rates))


def checked_share(share: float, name: str = "the tie tolerance", most: float = MOST_SHARE) -> float:
    """A share of the cost, as the float that documents hold: that within which costs are equal, or another.

    Parameters
    ----------
    share
        0 is written as 0.0 is.
    name
        What it is called where it is refused.
    most
        It is at most; of the tie tolerance, a plan would not be the cheapest any more beyond.

    Raises
    ------
    UsageError
        It is no number, below 0 or above the most.
    """
    if not _number(share) or not 0 <= share <= most:
        beyond = "" if math.isinf(most) else f" and at most {most:g}"
        text = f"{name} is {_shown(share)}; it must be a number, at least 0{beyond}"
        raise UsageError.of("out-of-range", text, hint="1e-6 is a millionth of the cost; 0: exactly the cheapest")
    return float(share)


def checked_count(count: float, name: str, least: int = 0, most: int = MOST_COUNT) -> int:
    """A whole number, as the int that documents hold: 2.0 is 2.

    Parameters
    ----------
    count
        It may be a float, or a number of another library.
    name
        What it is called where it is refused.
    least, most
        It is between them.

    Raises
    ------
    UsageError
        It is no whole number, below the least or above the most.
    """
    if not _number(count) or not least <= count <= most or count != int(count):
        text = f"{name} is {_shown(count)}; it must be a whole number from {least} to {most:,}"
        raise UsageError.of("out-of-range", text, hint="write it without quotes: 3")
    return int(count)


def checked_limit(limit: float | Deadline | None) -> float | Deadline | None:
    """A time limit: seconds, a deadline that runs already, or none.

    Raises
    ------
    UsageError
        It is none of them.
    """
    if limit is not None and not isinstance(limit, Deadline) and (not _number(limit) or math.isnan(limit)):
        raise UsageError.of("wrong-type", f"a time limit is {_shown(limit)}; it must be seconds", hint="60, for 60 s")
    return limit


def _number(value: object) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)[:80]
