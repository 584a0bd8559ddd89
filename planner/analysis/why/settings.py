"""Limits of a scenario by name: what each says, and the --set text that says something else.

Names are scenario paths: training[0].deadline, hardware.quotas[1], limits.budget. Inside the optimiser every limit is
a whole number of its least unit; the text for another value is exact, so that a repair does when it is applied.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal

from planner.carriers import dataclass
from planner.scenario.schema import Scenario
from planner.units import format_duration, format_money

DEADLINE = re.compile(r"training\[(\d+)\]\.deadline")
QUOTA = re.compile(r"hardware\.quotas\[(\d+)\]")
CONTRACT = re.compile(r"hardware\.contracts\[(\d+)\]\.max_shapes")
OWNED = re.compile(r"hardware\.owned\[(\d+)\]")
DAY_S = 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One limit as the scenario states it, in whole units of the program."""

    name: str  # scenario path
    path: str  # what --set wants, without the value
    unit: str  # s | devices | shapes | microusd | microusd/h | mW | mg | providers
    value: int

    def setting(self, value: int) -> str:
        """The --set text for another value."""
        return f"{self.path}={written(self.unit, value)}"

    def shown(self, value: int, *, currency: str = "USD") -> str:
        """A value for people, rounded up: what is printed is enough."""
        return in_words(self.unit, value, currency=currency)


def written(unit: str, value: int) -> str:
    """A value as scenario files write it, exactly."""
    if unit == "s":
        return f"{value} s"
    if unit in ("microusd", "microusd/h"):
        return format_money(value, exact=True) + unit.removeprefix("microusd")
    if unit in ("mW", "mg"):
        thousandths = Decimal(value) / 1000
        half = Decimal("0.0005") if math.floor(float(thousandths) * 1000) < value else 0  # floats may fall short
        return f"{thousandths + half} {unit[-1]}"
    return str(value)


def in_words(unit: str, value: int, *, currency: str = "USD") -> str:
    """A value for people, never less than it is.

    Parameters
    ----------
    unit
        s, devices, shapes, microusd, microusd/h, mW, mg or providers.
    value
        So many of that unit.
    currency
        ISO code that stands behind money; USD: a dollar sign before it. Nothing is converted.
    """
    if unit == "s":
        return _duration_up(value)
    if unit == "microusd":
        return format_money(_up(value), currency=currency)
    if unit == "microusd/h":
        return format_money(_up(value), currency=currency) + " /h"
    if unit == "mW":
        return f"{_three_up(value / 1e6)} kW"
    if unit == "mg":
        return f"{_three_up(value / 1e6)} kg" if value < 1e9 else f"{_three_up(value / 1e9)} t"
    noun = unit.removesuffix("s") if value == 1 else unit
    return f"{value:,} {noun}"


def _up(microusd: int) -> int:
    """Money rounded up to what is printed of it: cents below 100 dollars, dollars above."""
    step = 10_000 if microusd < 100_000_000 else 1_000_000
    return -(-microusd // step) * step


def _duration_up(seconds: int) -> str:
    for size, least in ((DAY_S, 2), (3600, 2), (60, 2)):
        if seconds >= least * size:
            return format_duration(float(_three_up(seconds / size)) * size)
    return format_duration(float(seconds))


def _three_up(number: float) -> str:
    """Three significant digits, rounded up; whole above a thousand."""
    if number <= 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(number)))
    scaled = math.ceil(Decimal(repr(number)).scaleb(digits) - Decimal("1e-9"))
    text = f"{Decimal(scaled).scaleb(-digits):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def stated_limits(scenario: Scenario) -> Iterator[Stated]:
    """Every limit that the scenario states and that can be loosened by a number."""
    for index, job in enumerate(scenario.training):
        deadline = math.floor(job.deadline_s)
        yield Stated(name=f"training[{index}].deadline", path=f"training.{job.name}.deadline", unit="s", value=deadline)
    limits, hardware = scenario.limits, scenario.hardware
    for name, (unit, amount) in limits.whole.items():
        yield Stated(name=name, path=name, unit=unit, value=amount)
    for index, quota in enumerate(hardware.quotas):
        name = f"hardware.quotas[{index}]"
        if quota.max_devices is not None:
            yield Stated(name=name, path=f"{name}.max_devices", unit="devices", value=quota.max_devices)
        if quota.max_shapes is not None:
            yield Stated(name=name, path=f"{name}.max_shapes", unit="shapes", value=quota.max_shapes)
    for index, contract in enumerate(hardware.contracts):
        name = f"hardware.contracts[{index}].max_shapes"
        if contract.max_shapes is not None:
            yield Stated(name=name, path=name, unit="shapes", value=contract.max_shapes)
    for index, owned in enumerate(hardware.owned):
        name = f"hardware.owned[{index}]"
        yield Stated(name=name, path=f"{name}.count", unit="shapes", value=owned.count)


def stated(scenario: Scenario, name: str) -> tuple[Stated, ...]:
    """The limit, or the two limits, of a name: a quota may count devices and shapes."""
    return tuple(one for one in stated_limits(scenario) if one.name == name)


def shapes_the_search(name: str) -> bool:
    """Whether another value of a limit changes which ways are enumerated, not only which are chosen."""
    lifted = (DEADLINE, QUOTA, OWNED, CONTRACT)
    return any(one.fullmatch(name) for one in lifted) or name == "limits.max_devices"
