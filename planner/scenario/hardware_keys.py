"""Keys of hardware: what is there already, and on which terms, and where, more may be had and data may lie.

Of what is there: where, how many, and what an hour of it costs.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field, field_validator, model_validator

from planner.scenario.fields import (
    FIELD,
    CarbonIntensity,
    Change,
    Count,
    Date,
    Duration,
    Effectiveness,
    Many,
    Mass,
    Name,
    Pattern,
    Power,
    Size,
    Title,
    Watts,
    Years,
    parse_date,
    refuse,
)
from planner.scenario.money_fields import EnergyPrice, Money, Price, StoragePrice, TransferPrice
from planner.scenario.workload_parts import Part


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


ContractModel = Literal["commitment_1y", "commitment_3y", "block", "calendar", "flex"]
PriceModel = Literal["on_demand", "spot", ContractModel]
RENTED: tuple[str, ...] = get_args(PriceModel)  # what is owned, and nodes of a pool that contracts pay for, is not
ProviderKind = Literal["hyperscaler", "cloud", "marketplace", "owned"]
COMMITMENT_HOURS = {"commitment_1y": 8760.0, "commitment_3y": 26280.0}
RESERVING = (*COMMITMENT_HOURS, "block", "calendar")  # price models that are bought ahead and pay for nodes of a pool


class Discount(Part):
    """A share off the list price; where several match an offer, the first one counts."""

    provider: Pattern | None = Field(None, description="of this provider only")
    device: Pattern | None = Field(None, description="for these devices only")
    region: Pattern | None = Field(None, description="in these regions only")
    price_model: PriceModel | None = Field(None, description="on this price model only")
    fraction: Change = Field(description="share taken off the list price; below zero: put on it")

    @field_validator("fraction")
    @classmethod
    def _leaves_a_price(cls, fraction: float) -> float:
        if fraction >= 1:
            refuse("out-of-range", f"{FIELD} is 100 %; it must leave a price",
                   "what costs nothing belongs under hardware.owned")  # fmt: skip
        return fraction


class Flex(Part):
    """Capacity that one queues for."""

    wait_s: Duration = Field(alias="wait", description="expected wait in the queue; it counts against deadlines")


class Contract(Part):
    """A price that was negotiated or read elsewhere: a shape in a place, on terms."""

    shape: Pattern = Field(description="shapes that the price is for")
    region: Pattern = Field(description="region that it holds in")
    zone: Pattern | None = Field(None, description="zone that it holds in; left out: any of the region")
    price_model: ContractModel = Field(description="kind of contract")
    price_microusd_per_hour: Price = Field(alias="price", description="of one shape, for every hour of the term")
    term_s: Duration | None = Field(None, alias="term", description="the only length; else min_term to max_term")
    min_term_s: Duration | None = Field(None, alias="min_term", description="shortest length")
    max_term_s: Duration | None = Field(None, alias="max_term", description="greatest length")
    term_step_s: Duration | None = Field(None, alias="term_step", description="lengths come in steps of this")
    max_shapes: Count | None = Field(None, description="most shapes to be had on these terms")
    wait_s: Duration | None = Field(None, alias="wait", description="flex: expected wait in the queue")
    source: Title = Field("", description="where the price was read")

    @model_validator(mode="after")
    def _terms_fit(self) -> Contract:
        committed = self.price_model in COMMITMENT_HOURS
        lengths = {"min_term": self.min_term_s, "max_term": self.max_term_s, "term_step": self.term_step_s}
        given = [name for name, length in lengths.items() if length is not None]
        if given and (self.term_s is not None or committed):
            why = "'term' is given" if self.term_s is not None else f"a {self.price_model} has one term"
            refuse("conflict", f"'{given[0]}' does not act: {why}", f"leave {given[0]} out")
        if self.min_term_s and self.max_term_s and self.max_term_s < self.min_term_s:
            refuse("out-of-range", "'max_term' is below 'min_term'", "swap the two")
        if self.wait_s is not None and self.price_model != "flex":
            refuse("conflict", f"'wait' does not act: a {self.price_model} does not queue", "leave wait out")
        return self

    @property
    def hours(self) -> tuple[float | None, float | None, float | None]:
        """Least and greatest term, and the step between; None where nothing is said.  [h]"""
        if self.term_s is not None or self.price_model in COMMITMENT_HOURS:
            term = COMMITMENT_HOURS[self.price_model] if self.term_s is None else self.term_s / 3600.0
            return term, term, None
        least, most, step = (
            None if length is None else length / 3600.0
            for length in (self.min_term_s, self.max_term_s, self.term_step_s)
        )
        return least, most, step


class SiteLimit(Part):
    """What a site may draw or emit: a region, a provider, or a provider's region."""

    provider: Pattern | None = Field(None, description="of this provider")
    region: Pattern | None = Field(None, description="in these regions")
    power_w: Power | None = Field(None, alias="power", description="most power drawn there at any time, counted so")
    carbon_g: Mass | None = Field(
        None, alias="carbon", description="most CO2-equivalent emitted there over the horizon"
    )

    @model_validator(mode="after")
    def _limits_something(self) -> SiteLimit:
        if self.provider is None and self.region is None:
            refuse("missing-field", "a site needs a region or a provider", 'add "region: us-east-1"')
        if self.power_w is None and self.carbon_g is None:
            refuse("missing-field", "a site needs power or carbon", 'add "power: 120 kW"')
        return self


class Data(Part):
    """Where the training data lie and may go; jobs that name the same data share its copies."""

    name: Name | None = Field(None, description="of the data set; left out: the job's own")
    size_bytes: Size = Field(alias="size", description="size of the data set")
    at: Pattern = Field(description="provider/region, such as gcp/us-central1; where you own machines, owned/REGION")
    residency: Many[Pattern] = Field((), description="regions that it may be copied to; left out: all")
    egress_usd_per_gb: TransferPrice | None = Field(
        None, alias="egress", description="price of moving it out of its place; else the catalog's"
    )
    storage_usd_per_gb_month: StoragePrice | None = Field(
        None, alias="storage", description="price of keeping a copy; else the catalog's"
    )

    @field_validator("at")
    @classmethod
    def _one_place(cls, at: str) -> str:
        provider, _, region = at.partition("/")
        if not provider or not region or set(at) & set("*?[]!"):
            own = f"write owned/{at} where you own machines there, or gcp/us-central1" if provider == at else ""
            hint = own or "write gcp/us-central1, or owned/REGION where you own machines"
            refuse("wrong-type", f"{FIELD} is '{at}', which is not a provider and a region", hint)
        return at

    @property
    def provider(self) -> str:
        """Where the data lie."""
        return self.at.partition("/")[0]

    @property
    def region(self) -> str:
        """Where the data lie."""
        return self.at.partition("/")[2]
