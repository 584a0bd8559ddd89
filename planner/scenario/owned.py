"""Keys of hardware that is there already: where, how many, and what an hour of it costs."""

from __future__ import annotations

from pydantic import Field, model_validator

from planner.scenario.fields import (
    CarbonIntensity,
    Count,
    Date,
    Effectiveness,
    Pattern,
    Size,
    Watts,
    Years,
    parse_date,
    refuse,
)
from planner.scenario.money import EnergyPrice, Money, Price
from planner.scenario.part import Part


class Capital(Part):
    """What buying one shape costs, spread evenly over the hours that it is kept."""

    price_microusd: Money = Field(alias="price", description="of one shape, with what it takes to run it")
    years: Years = Field(description="that it is kept, of 8760 h each")
    residual_microusd: Money = Field(0, alias="residual", description="what one shape is sold for in the end")

    @model_validator(mode="after")
    def _loses_value(self) -> Capital:
        if self.residual_microusd > self.price_microusd:
            refuse("out-of-range", "'residual' is above 'price': an hour would earn money", "swap the two")
        return self


class Energy(Part):
    """What the power of one shape costs while it runs."""

    power_w: Watts = Field(
        alias="watts", description="drawn by one shape; a limit of power or carbon counts it, not what is rated"
    )
    price_microusd_per_kwh: EnergyPrice = Field(alias="price", description="of energy")
    pue: Effectiveness = Field(description="power of the whole site over that of its machines, at least 1")


class Owned(Part):
    """Hardware that is there already; the price is what running it costs, or comes of capital, power and staff."""

    shape: Pattern = Field(description="shape of the catalog that you own")
    count: Count = Field(description="shapes that are there")
    price_microusd_per_hour: Price | None = Field(
        None, alias="price", description="what running one shape costs: power and hosting; $0/h when it is free"
    )
    capital: Capital | None = Field(None, description="in place of price: what one shape costs to buy")
    power: Energy | None = Field(None, description="in place of price: what one shape costs in power")
    staff_microusd_per_hour: Price | None = Field(
        None, alias="staff", description="in place of price: people and hosting of one shape, such as $900/month"
    )
    sunk_microusd_per_hour: Price | None = Field(
        None, alias="sunk", description="what it costs whether it runs or not; told beside the plan, never minimised"
    )
    region: Pattern | None = Field(
        None, description="where it stands, for residency, sites and carbon; hardware.regions is of what is rented"
    )
    gco2_per_kwh: CarbonIntensity | None = Field(
        None,
        alias="carbon",
        description="emitted for what the machines draw, the building's overhead included; else as grids.csv has it of "
        "the region",
    )
    host_memory_bytes: Size | None = Field(
        None, alias="host_memory", description="of one shape, which holds what a job offloads; else the catalog's"
    )
    from_date: Date | None = Field(None, alias="from", description="first day that it may be used (wants periods)")
    until_date: Date | None = Field(
        None,
        alias="until",
        description="day from which it is gone (wants periods); a fleet uses what is there for the whole plan",
    )

    @property
    def has_parts(self) -> bool:
        """Whether its price comes of capital, power and staff."""
        return self.price_microusd_per_hour is None

    @model_validator(mode="after")
    def _forwards(self) -> Owned:
        first, last = (parse_date(date) if date else None for date in (self.from_date, self.until_date))
        if first and last and last <= first:
            refuse("out-of-range", "'until' is not after 'from'", "swap the two dates")
        return self
