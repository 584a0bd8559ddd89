"""What a row of a plan says it rents, looked up again in the catalog and the scenario; its money in exact fractions.

Money of the verifier is fractions from end to end, with one rounding.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from planner.catalog.load import find_shape
from planner.catalog.model import Catalog, Device, Grid, Offer, Provenance, Shape
from planner.equations.machine_costs import capital_per_hour, power_per_hour
from planner.estimate.bill import Bill, bill_of
from planner.estimate.resolve import inter_node_rate, owned_shape
from planner.scenario.hardware_keys import RESERVING, Owned
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.model.bought import PoolPlace
    from planner.plan.model.plan import Allocation
    from planner.plan.model.rows import Place, TrainingAllocation


class ExactHour(NamedTuple):
    """What an hour of an owned shape costs, and its parts; no parts where one price was given.  [micro-USD]"""

    price: int
    capital: int = 0
    power: int = 0
    staff: int = 0


def exact_hourly(owned: Owned) -> ExactHour:
    """An hour of an owned shape: the equations to 14 digits, each part half to even once, and their sum."""
    if owned.price_microusd_per_hour is not None:
        return ExactHour(owned.price_microusd_per_hour)
    bought, drawn, staff = owned.capital, owned.power, owned.staff_microusd_per_hour or 0
    parts = [0.0, 0.0]
    if bought is not None:
        parts[0] = float(capital_per_hour(bought.price_microusd, bought.residual_microusd, bought.years))
    if drawn is not None:
        parts[1] = float(power_per_hour(drawn.power_w, drawn.price_microusd_per_kwh, drawn.pue))
    capital, power = (round(Fraction(f"{part:.13e}")) for part in parts)
    return ExactHour(capital + power + staff, capital, power, staff)


def exact_cost(shapes: int, price_microusd_per_hour: int, hours: float) -> int:
    """Shapes × price × hours in fractions, hours to ten significant digits, half to even once.  [micro-USD]

    Parameters
    ----------
    shapes
        How many are paid for.
    price_microusd_per_hour
        Of one shape.  [micro-USD/h]
    hours
        Paid time, not rounded up.  [h]
    """
    ten_digits = Fraction(f"{Decimal(repr(hours)):.9e}")
    return round(shapes * price_microusd_per_hour * ten_digits)


def exact_rental(shapes: int, price_microusd_per_hour: int, hours: float, bill: Bill | None) -> int:
    """Shapes × price × billed time in fractions, half to even once; without a bill that of the run.  [micro-USD]

    Parameters
    ----------
    shapes
        How many are rented and billed alike.
    price_microusd_per_hour
        Of one shape.  [micro-USD/h]
    hours
        Time of the run.  [h]
    bill
        Boot, increment and minimum of the seller; None = the time of the run alone is paid.
    """
    if bill is None:
        return exact_cost(shapes, price_microusd_per_hour, hours)
    return round(Fraction(repr(bill.seconds(hours))) * shapes * price_microusd_per_hour / 3600)


RESERVED: Final = "reserved"  # price model of rows on nodes of a pool


class OfferFacts(NamedTuple):
    """What a row says it rents, looked up again."""

    offer: Offer
    shape: Shape
    device: Device
    owned: int | None
    inter_node_bytes_per_s: float | None
    bill: Bill | None = None  # how a job on it is billed; None: for the time that it runs
    grid: Grid | None = None  # of what is owned, where somebody knows; of what is rented the catalog has it
    drawn_w: float | None = None  # by one shape, as its owner says

    @property
    def power_w(self) -> float | None:
        """Of one shape: as its owner says, or as its devices are rated.  [W]"""
        rated = self.device.tdp_w
        return self.drawn_w or (rated and rated * self.shape.devices * self.shape.compute_share)


def facts_of_row(row: Place, scenario: Scenario, catalog: Catalog) -> OfferFacts | None:
    """The offer of a row from the catalog or from what the scenario owns; None when there is none.

    Parameters
    ----------
    row
        A row of a plan; one on reserved nodes must stand where the catalog sells some contract.
    scenario
        What it owns, the network that it assumes between shapes, and its time to boot.
    catalog
        The catalog with the scenario's discounts and contracts.

    Raises
    ------
    InputError
        The scenario owns a shape that the catalog lacks.
    """
    if _owned_index(row["offer"], scenario, catalog) is None and row["price_model"] == RESERVED:
        found = _reserved(row, scenario, catalog)
    else:
        found = facts_of_offer(row["offer"], scenario, catalog)
    jobs = cast("TrainingAllocation", row).get("jobs", 0)
    if found is None or not jobs or "shared" not in row:
        return found
    return _part(found, row["devices"] // jobs)


def _part(facts: OfferFacts, devices: int) -> OfferFacts:
    """Some devices of one node, with their part of its host, for a job that shares it."""
    shape, size = facts.shape, facts.shape.devices
    if not 0 < devices < size:
        return facts
    host, drawn_w = shape.host_memory_bytes, facts.drawn_w
    part = replace(
        shape,
        devices=devices,
        scale_up_devices=devices,
        host_memory_bytes=None if host is None else host * devices // size,
        max_shapes_per_job=1,
    )
    drawn_w = None if drawn_w is None else drawn_w * devices / size
    return facts._replace(shape=part, inter_node_bytes_per_s=None, drawn_w=drawn_w)


def facts_of_offer(identifier: str, scenario: Scenario, catalog: Catalog) -> OfferFacts | None:
    """What the scenario owns or the catalog offers by a name; None when there is none.

    Parameters
    ----------
    identifier
        Id of an offer of the catalog, or `owned:INDEX:SHAPE` of what the scenario owns.
    scenario
        What it owns, the network that it assumes between shapes, and its time to boot.
    catalog
        The catalog with the scenario's discounts and contracts.

    Raises
    ------
    InputError
        The scenario owns a shape that the catalog lacks.
    """
    owned, grid, drawn_w = _owned_index(identifier, scenario, catalog), None, None
    if owned is not None:
        entry = scenario.hardware.owned[owned]
        shape = owned_shape(entry, catalog)
        offer = Offer(
            id=identifier,
            provider="owned",
            region=entry.region or "owned",
            zone="",
            country="",
            shape=shape.id,
            price_model="owned",
            price_microusd_per_hour=exact_hourly(entry).price,
            provenance=Provenance(source="scenario", as_of="", status="user"),
        )
        grid, drawn_w = _grid(entry, offer, catalog), entry.power.power_w if entry.power else None
    else:
        found = [offer for offer in catalog.offers if offer.id == identifier]
        if len(found) != 1:
            return None
        offer, shape = found[0], catalog.shapes[found[0].shape]
    rate = inter_node_rate(shape, catalog, scenario.hardware.assume_inter_node_bytes_per_s)
    bill = bill_of(offer, catalog, scenario.hardware)
    return OfferFacts(offer, shape, catalog.devices[shape.device], owned, rate, bill, grid, drawn_w)


def _grid(owned: Owned, offer: Offer, catalog: Catalog) -> Grid | None:
    """Of what is owned: with the overhead in what the scenario says of carbon, or else as it says of power."""
    known = catalog.grid_named(offer.region)
    gco2_per_kwh, pue = (known.gco2_per_kwh, known.pue) if known else (None, 1.0)
    if owned.gco2_per_kwh is not None:
        gco2_per_kwh, pue = owned.gco2_per_kwh, 1.0
    elif owned.power is not None:
        pue = owned.power.pue
    if gco2_per_kwh is None:
        return None
    return Grid(
        provider=offer.provider,
        region=offer.region,
        gco2_per_kwh=gco2_per_kwh,
        pue=pue,
        provenance=offer.provenance,
    )


def _owned_index(identifier: str, scenario: Scenario, catalog: Catalog) -> int | None:
    for index, owned in enumerate(scenario.hardware.owned):
        if identifier == f"owned:{index}:{find_shape(catalog, owned.shape).id}":
            return index
    return None


def _reserved(row: Place, scenario: Scenario, catalog: Catalog) -> OfferFacts | None:
    """Nodes of a pool, which bear its name: some contract must be sold there; what they cost is the contract's."""
    sold = [offer for offer in catalog.offers if offer.price_model in RESERVING and _same_place(row, offer)]
    if not sold or row["offer"] != f"{RESERVED}:{pool_of_row(row)}":
        return None
    shape = catalog.shapes[sold[0].shape]
    offer = Offer(
        id=row["offer"],
        provider=sold[0].provider,
        region=sold[0].region,
        zone=sold[0].zone,
        country=sold[0].country,
        shape=shape.id,
        price_model=RESERVED,
        price_microusd_per_hour=0,
        provenance=Provenance(source="contracts of the plan", as_of="", status="user"),
    )
    rate = inter_node_rate(shape, catalog, scenario.hardware.assume_inter_node_bytes_per_s)
    return OfferFacts(offer, shape, catalog.devices[shape.device], None, rate)


def _same_place(row: Place, offer: Offer) -> bool:
    there = row["provider"], row["region"], row["zone"], row["shape"]
    return there == (offer.provider, offer.region, offer.zone, offer.shape)


def jobs_of(row: Allocation) -> int:
    """Jobs of a row; one of a fleet."""
    return cast("TrainingAllocation", row).get("jobs", 1)


def pool_of_row(row: PoolPlace) -> str:
    """The pool that a row or a contract stands in, by its place: "aws/us-east-1/p5.48xlarge"."""
    place = f"{row['region']}/{row['zone']}" if row["zone"] else row["region"]
    return f"{row['provider']}/{place}/{row['shape'].rsplit('/', 1)[-1]}"


def wait_hours(facts: OfferFacts, scenario: Scenario) -> float:
    """Expected time in a queue before nodes are there.  [h]"""
    if facts.offer.price_model != "flex":
        return 0.0
    if facts.offer.wait_hours is not None:
        return facts.offer.wait_hours
    return scenario.hardware.flex.wait_s / 3600.0 if scenario.hardware.flex else 0.0
