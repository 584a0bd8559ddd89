"""What stands beside the cost of rows: capital, power and staff of owned machines, and what others would take.

Others are each large cloud, and marketplaces that were left out, for the same devices for the same time. Nothing is
solved again: rows that are rented by the hour are priced anew, at the cheapest offer of the same device on the same
price model. A plan made for another seller may well be another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.candidates.money import rental_microusd
from planner.candidates.offers import allowed_devices, is_suspect
from planner.candidates.search import Candidates
from planner.candidates.sellers import MARKETPLACE, is_excluded, is_seller
from planner.catalog.load import find_shape
from planner.catalog.model import Catalog, Offer
from planner.catalog.names import region_matches
from planner.estimate.bill import bill_of
from planner.estimate.market import METERED, is_own_contract
from planner.estimate.ownership import hourly_of, split_microusd
from planner.estimate.resolve import inter_node_rate
from planner.plan.rows.row_cells import usd
from planner.scenario.schema import Hardware

if TYPE_CHECKING:
    from planner.plan.model.bought import OwnedHour
    from planner.plan.model.others import Elsewhere
    from planner.plan.model.plan import Allocation, Workload


def owned_hours(candidates: Candidates, workloads: Sequence[Workload]) -> list[OwnedHour]:
    """A row for each group of owned machines whose price is given by its parts."""
    found: list[OwnedHour] = []
    for index, owned in enumerate(candidates.scenario.hardware.owned):
        if not owned.has_parts:
            continue
        hourly, shape = hourly_of(owned), find_shape(candidates.catalog, owned.shape)
        mine = f"owned:{index}:{shape.id}"
        rows = (row for workload in workloads for row in workload["allocations"] if row["offer"] == mine)
        cost = sum(row["cost_microusd"] for row in rows)
        capital, power, staff = split_microusd(cost, hourly)
        found.append(
            {
                "place": f"hardware.owned[{index}]",
                "shape": owned.shape,
                "offer": mine,
                "devices_per_shape": shape.devices,
                "bought_microusd": owned.capital.price_microusd if owned.capital else None,
                "residual_microusd": owned.capital.residual_microusd if owned.capital else None,
                "years": owned.capital.years if owned.capital else None,
                "power_w": owned.power.power_w if owned.power else None,
                "energy_microusd_per_kwh": owned.power.price_microusd_per_kwh if owned.power else None,
                "pue": owned.power.pue if owned.power else None,
                "capital_microusd_per_hour": hourly.capital_microusd,
                "power_microusd_per_hour": hourly.power_microusd,
                "staff_microusd_per_hour": hourly.staff_microusd,
                "price_microusd_per_hour": hourly.price_microusd,
                "price_usd_per_device_hour": hourly.price_microusd / shape.devices / 1e6,
                "cost_microusd": cost,
                "capital_microusd": capital,
                "power_microusd": power,
                "staff_microusd": staff,
            }
        )
    return found


LARGE_CLOUDS = ("aws", "gcp", "azure")
MARKETPLACES = "marketplaces"


def elsewhere_of(candidates: Candidates, workloads: Sequence[Workload]) -> list[Elsewhere]:
    """What is rented by the hour, priced anew at each large cloud, and on marketplaces where nobody asked for them.

    A large cloud from which all of it is rented already is left out, one that the scenario excludes, and all where
    nothing is rented.
    """
    catalog, hardware = candidates.catalog, candidates.scenario.hardware
    rows = [row for workload in workloads for row in workload["allocations"] if _rented(row, catalog)]
    if not rows:
        return []
    offers = _sold(rows, catalog, hardware)
    return [_at(name, there, rows, offers, candidates) for name, there in _sellers(rows, catalog, hardware)]


def _rented(row: Allocation, catalog: Catalog) -> bool:
    """Whether a row is rented by the hour from a provider that the catalog lists."""
    return row["price_model"] in METERED and row["provider"] in catalog.providers


def _sellers(
    rows: Sequence[Allocation], catalog: Catalog, hardware: Hardware
) -> Iterator[tuple[str, Callable[[Offer], bool]]]:
    here = {row["provider"] for row in rows}
    for name in LARGE_CLOUDS:
        if name in catalog.providers and here != {name} and not is_excluded(name, hardware):
            yield name, lambda offer, name=name: offer.provider == name  # type: ignore[misc]
    markets = {name for name, seller in catalog.providers.items() if seller.kind == MARKETPLACE}
    if hardware.kinds is None and not here & markets:
        yield MARKETPLACES, lambda offer: offer.provider in markets and is_seller(offer, hardware)


def _sold(rows: Sequence[Allocation], catalog: Catalog, hardware: Hardware) -> Mapping[tuple[str, str], list[Offer]]:
    """Offers of the devices and price models of the rows, from whomever, on which a plan may rest."""
    wanted, found = {(row["device"], row["price_model"]) for row in rows}, defaultdict(list)
    for offer in catalog.offers:
        key = catalog.shapes[offer.shape].device, offer.price_model
        if key in wanted and _usable(offer, hardware):
            found[key].append(offer)
    return found


def _usable(offer: Offer, hardware: Hardware) -> bool:
    if is_suspect(offer) or is_own_contract(offer):
        return False
    if offer.provenance.status == "recalled" and not hardware.allow_recalled:
        return False
    return any(region_matches(offer, pattern) for pattern in hardware.regions)


def _at(
    name: str,
    there: Callable[[Offer], bool],
    rows: Sequence[Allocation],
    offers: Mapping[tuple[str, str], list[Offer]],
    candidates: Candidates,
) -> Elsewhere:
    sold = [[o for o in offers.get((row["device"], row["price_model"]), ()) if there(o)] for row in rows]
    best = [_cheapest(row, some, candidates) for row, some in zip(rows, sold)]
    missing = sorted({row["device"] for row, found in zip(rows, best) if found is None})
    unjoined = {
        row["device"]
        for row, some, found in zip(rows, sold, best)
        if found is None and any(_cost(row, offer, candidates, joined=True) is not None for offer in some)
    }
    costs = [found for found in best if found is not None]
    cost = None if missing else sum(one for one, _ in costs)
    here = sum(row["cost_microusd"] for row in rows)
    return {
        "seller": name,
        "here_microusd": here,
        "cost_microusd": cost,
        "cost_usd": None if cost is None else usd(cost),
        "dearer": None if cost is None or not here else cost / here - 1.0,
        "offers": [] if missing else [offer for _, offer in costs],
        "missing": missing,
        **({"unjoined": sorted(unjoined)} if unjoined else {}),  # type: ignore[typeddict-item]
        **({"instead": instead} if missing and (instead := _instead(there, candidates)) else {}),  # type: ignore[typeddict-item]
    }


def _instead(there: Callable[[Offer], bool], candidates: Candidates) -> list[str]:
    """Devices of a seller that the scenario allows, on price models that it allows: without any, no plan is there."""
    catalog, hardware = candidates.catalog, candidates.scenario.hardware
    allowed = allowed_devices(hardware, catalog)
    return sorted(
        {
            catalog.shapes[offer.shape].device
            for offer in catalog.offers
            if there(offer)
            and offer.price_model in hardware.pricing
            and allowed[catalog.shapes[offer.shape].device]
            and _of_kind(offer, catalog, hardware)
            and _usable(offer, hardware)
        }
    )


def _of_kind(offer: Offer, catalog: Catalog, hardware: Hardware) -> bool:
    return hardware.kinds is None or catalog.providers[offer.provider].kind in hardware.kinds


def _cheapest(row: Allocation, offers: Sequence[Offer], candidates: Candidates) -> tuple[int, str] | None:
    """The least that the devices of a row cost for its time, and where."""
    found = [(cost, offer.id) for offer in offers if (cost := _cost(row, offer, candidates)) is not None]
    return min(found, default=None)


def _cost(row: Allocation, offer: Offer, candidates: Candidates, *, joined: bool = False) -> int | None:
    """What the devices of a row cost on an offer, in whole shapes of it; None where a job does not fit on it.

    Parameters
    ----------
    row
        Of the plan.
    offer
        Of the same device and price model.
    candidates
        For the catalog and the scenario.
    joined
        Whether machines work together, known or not.
    """
    catalog, hardware = candidates.catalog, candidates.scenario.hardware
    shape = catalog.shapes[offer.shape]
    if "jobs" not in row:  # replicas are jobs of their own
        nodes, count = -(-row["devices_per_replica"] // shape.devices), -(-row["devices"] // shape.devices)
    else:
        nodes = -(-(row["devices"] // row["jobs"]) // shape.devices)
        count = nodes * row["jobs"]
    if nodes > 1 and not joined and inter_node_rate(shape, catalog, hardware.assume_inter_node_bytes_per_s) is None:
        return None
    if nodes > (shape.max_shapes_per_job or nodes) or count > (offer.max_shapes or count):
        return None
    bill = bill_of(offer, catalog, hardware) if "jobs" in row else None
    billed_s = None if bill is None else bill.seconds(row["hours"])
    return rental_microusd(count, offer.price_microusd_per_hour, row["hours"], billed_s)
