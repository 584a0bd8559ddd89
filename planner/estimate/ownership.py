"""What an hour of a machine that is owned costs: one price, or what capital, power and staff come to."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

from planner.carriers import dataclass
from planner.equations.machine_costs import capital_per_hour, power_per_hour
from planner.scenario.hardware_keys import Owned

_DIGITS = 14  # of a float that reach money: the last bits do not


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyCost:
    """What an hour of one shape costs, in whole micro-dollars: either the parts are nothing, or they are all of it."""

    price_microusd: int
    capital_microusd: int = 0
    power_microusd: int = 0
    staff_microusd: int = 0


def hourly_of(owned: Owned) -> HourlyCost:
    """Cost of an hour of one owned shape; each part is rounded once, half to even, and the price is their sum."""
    if owned.price_microusd_per_hour is not None:
        return HourlyCost(price_microusd=owned.price_microusd_per_hour)
    capital = power = 0
    if (bought := owned.capital) is not None:
        capital = _whole(capital_per_hour(bought.price_microusd, bought.residual_microusd, bought.years))
    if (drawn := owned.power) is not None:
        power = _whole(power_per_hour(drawn.power_w, drawn.price_microusd_per_kwh, drawn.pue))
    staff = owned.staff_microusd_per_hour or 0
    return HourlyCost(
        price_microusd=capital + power + staff, capital_microusd=capital, power_microusd=power, staff_microusd=staff
    )


def split_microusd(cost_microusd: int, hourly: HourlyCost) -> tuple[int, int, int]:
    """A cost on owned machines by capital, power and staff: whole micro-dollars that add up to it.

    >>> split_microusd(100, HourlyCost(price_microusd=3, capital_microusd=1, power_microusd=1, staff_microusd=1))
    (33, 34, 33)
    """
    if not hourly.price_microusd:
        return 0, 0, 0
    first, second = (
        int((Decimal(cost_microusd) * part / hourly.price_microusd).to_integral_value(ROUND_HALF_EVEN))
        for part in (hourly.capital_microusd, hourly.capital_microusd + hourly.power_microusd)
    )
    return first, second - first, cost_microusd - second


def _whole(microusd: object) -> int:
    return int(Decimal(f"{float(microusd):.{_DIGITS}g}").to_integral_value(ROUND_HALF_EVEN))  # type: ignore[arg-type]
