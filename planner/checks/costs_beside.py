"""Whether a plan says rightly what stands beside its costs.

What capital, power and staff are of the cost of owned machines, and what the same devices for the same time cost at
other sellers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from planner.catalog.load import find_shape
from planner.catalog.model import Catalog, Device, Offer
from planner.catalog.names import device_matches, provider_matches, region_matches
from planner.checks.facts import exact_cost, exact_hourly, exact_rental
from planner.checks.findings import Finding, cell_findings
from planner.estimate.bill import bill_of
from planner.estimate.market import METERED
from planner.estimate.resolve import inter_node_rate
from planner.scenario.hardware_keys import Owned
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument


def owned_hour_findings(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """A row for each group of owned machines whose price has parts, in a plan that runs something; no other.

    Parameters
    ----------
    document
        A plan, with rows or without.
    scenario
        The one that the plan carries, read: what it owns.
    catalog
        The shapes of what is owned.
    """
    has_plan = document["status"] in ("optimal", "feasible")
    due = list(_cost_due(document, scenario, catalog)) if has_plan else []
    stated = document.get("owned_hours", [])
    if len(stated) != len(due):
        yield Finding("wrong-total", f"{len(stated)} rows of what an owned hour costs, {len(due)} have parts")
        return
    for row, cells in zip(stated, due):
        yield from cell_findings("wrong-total", str(cells["place"]), row, cells)


def _given(owned: Owned) -> Mapping[str, object]:
    """What the scenario says that an hour is made of."""
    bought, drawn = owned.capital, owned.power
    return {
        "bought_microusd": None if bought is None else bought.price_microusd,
        "residual_microusd": None if bought is None else bought.residual_microusd,
        "years": None if bought is None else bought.years,
        "power_w": None if drawn is None else drawn.power_w,
        "energy_microusd_per_kwh": None if drawn is None else drawn.price_microusd_per_kwh,
        "pue": None if drawn is None else drawn.pue,
    }


def _cost_due(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Mapping[str, object]]:
    for index, owned in enumerate(scenario.hardware.owned):
        if owned.price_microusd_per_hour is not None:
            continue
        hour, shape = exact_hourly(owned), find_shape(catalog, owned.shape)
        offer = f"owned:{index}:{shape.id}"
        rows = [row for workload in document["workloads"] for row in workload["allocations"] if row["offer"] == offer]
        cost = sum(row["cost_microusd"] for row in rows)
        capital, others = (
            round(Fraction(cost) * part / hour.price) if hour.price else 0
            for part in (hour.capital, hour.capital + hour.power)
        )
        yield {
            "place": f"hardware.owned[{index}]",
            "shape": owned.shape,
            "offer": offer,
            "devices_per_shape": shape.devices,
            **_given(owned),
            "capital_microusd_per_hour": hour.capital,
            "power_microusd_per_hour": hour.power,
            "staff_microusd_per_hour": hour.staff,
            "price_microusd_per_hour": hour.price,
            "price_usd_per_device_hour": hour.price / shape.devices / 1e6,
            "cost_microusd": cost,
            "capital_microusd": capital,
            "power_microusd": others - capital,
            "staff_microusd": cost - others,
        }


LARGE = ("aws", "gcp", "azure")


def elsewhere_findings(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """Every seller that there is something to say of, each cost from all offers: none is left out.

    Parameters
    ----------
    document
        A plan with rows.
    scenario
        The one that the plan carries, read: which marketplaces, regions and recalled prices it allows.
    catalog
        The catalog with the scenario's discounts: offers of every seller.
    """
    rows: list[Any] = [row for workload in document["workloads"] for row in workload["allocations"]]
    rows = [row for row in rows if row["price_model"] in METERED and row["provider"] in catalog.providers]
    due = list(_price_due(rows, scenario, catalog)) if rows else []
    stated = document.get("elsewhere", [])
    if [row["seller"] for row in stated] != [cells["seller"] for cells in due]:
        named = ", ".join(row["seller"] for row in stated)
        yield Finding("wrong-alternative", f"elsewhere is told of {named or 'nobody'}, not of who else may sell it")
        return
    for row, cells in zip(stated, due):
        told = {"unjoined": [], **row}
        if "instead" not in told:  # nothing is proposed there, nor by the plans that were saved before this was told
            cells = {name: value for name, value in cells.items() if name != "instead"}
        # "dearer" is what is left of a share of about one: of sellers that ask the same but for a fraction, no digit is
        yield from cell_findings("wrong-alternative", f"elsewhere, {cells['seller']}", told, cells, scale=1.0)


def _price_due(rows: Sequence[Any], scenario: Scenario, catalog: Catalog) -> Iterator[Mapping[str, object]]:
    markets = {name for name, one in catalog.providers.items() if one.kind == "marketplace"}
    renting = {row["provider"] for row in rows}
    groups = {name: {name} for name in LARGE if name in catalog.providers and renting != {name}}
    groups = {name: one for name, one in groups.items() if not _excluded(name, scenario)}
    if scenario.hardware.kinds is None and not markets & renting:
        groups["marketplaces"] = {name for name in markets if _seller_allowed(name, scenario)}
    here = sum(row["cost_microusd"] for row in rows)
    for name, sellers in groups.items():
        priced = [_least(row, sellers, scenario, catalog) for row in rows]
        missing = sorted({row["device"] for row, found in zip(rows, priced) if found is None})
        unjoined = {
            row["device"]
            for row, found in zip(rows, priced)
            if found is None and _least(row, sellers, scenario, catalog, joined=True)
        }
        costs = [] if missing else [found for found in priced if found is not None]
        cost = None if missing else sum(microusd for microusd, _ in costs)
        yield {
            "seller": name,
            "here_microusd": here,
            "cost_microusd": cost,
            "cost_usd": None if cost is None else cost / 1e6,
            "dearer": None if cost is None or here == 0 else float(Fraction(cost, here) - 1),
            "offers": [offer for _, offer in costs],
            "missing": missing,
            "unjoined": sorted(unjoined),
            "instead": sorted(_rentable(sellers, scenario, catalog)) if missing else [],
        }


def _rentable(sellers: set[str], scenario: Scenario, catalog: Catalog) -> set[str]:
    """Devices that a scenario allows and that these sellers rent out as it wants them rented."""
    hardware = scenario.hardware
    sellers = {name for name in sellers if hardware.kinds is None or catalog.providers[name].kind in hardware.kinds}
    offered = [o for o in catalog.offers if o.provider in sellers and o.price_model in hardware.pricing]
    found = {catalog.shapes[offer.shape].device for offer in offered if _counts(offer, scenario)}
    return {name for name in found if _wanted(catalog.devices[name], scenario)}


def _wanted(device: Device, scenario: Scenario) -> bool:
    allowed, denied = scenario.hardware.allow, scenario.hardware.deny
    fits = any(device_matches(device, pattern) for pattern in allowed)
    return fits and not any(device_matches(device, pattern) for pattern in denied)


def _seller_allowed(name: str, scenario: Scenario) -> bool:
    named = any(provider_matches(name, pattern) for pattern in scenario.hardware.providers)
    return named and not _excluded(name, scenario)


def _excluded(name: str, scenario: Scenario) -> bool:
    return any(provider_matches(name, pattern) for pattern in scenario.hardware.exclude)


def _least(
    row: Any, sellers: set[str], scenario: Scenario, catalog: Catalog, *, joined: bool = False
) -> tuple[int, str] | None:
    found = []
    for offer in catalog.offers:
        shape = catalog.shapes[offer.shape]
        if offer.provider not in sellers or shape.device != row["device"] or offer.price_model != row["price_model"]:
            continue
        if not _counts(offer, scenario):
            continue
        jobs = row.get("jobs", 1)
        size = row["devices"] // jobs if "jobs" in row else row["devices_per_replica"]
        machines = -(-size // shape.devices)
        count = machines * jobs if "jobs" in row else -(-row["devices"] // shape.devices)
        rate = inter_node_rate(shape, catalog, scenario.hardware.assume_inter_node_bytes_per_s)
        if machines > 1 and rate is None and not joined:
            continue
        if shape.max_shapes_per_job is not None and machines > shape.max_shapes_per_job:
            continue
        if offer.max_shapes is not None and count > offer.max_shapes:
            continue
        price = offer.price_microusd_per_hour
        if "jobs" in row:
            cost = exact_rental(count, price, row["hours"], bill_of(offer, catalog, scenario.hardware))
        else:
            cost = exact_cost(count, price, row["hours"])
        found.append((cost, offer.id))
    return min(found) if found else None


def _counts(offer: Offer, scenario: Scenario) -> bool:
    """Whether a plan may rest on the price of an offer."""
    if offer.quality or offer.id.startswith("contract:"):
        return False
    if offer.provenance.status == "recalled" and not scenario.hardware.allow_recalled:
        return False
    return any(region_matches(offer, pattern) for pattern in scenario.hardware.regions)
