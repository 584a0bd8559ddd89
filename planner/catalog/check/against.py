"""One catalog held against another: figures a factor of two apart, and devices that are known to be otherwise.

A factor of two is how a sparse peak, both directions of a link, or a board in place of a chip shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from planner.catalog.check.findings import warning
from planner.catalog.model import Catalog, Device, Offer, Shape
from planner.errors import Problem

TOLERANCE = 1e-6  # of "exactly" a factor of two
DISAGREES = 0.05  # share by which a fact may differ from the device table
_OWN = ("user", "measured")  # stated or found out by whoever wrote the catalog


def check_against(catalog: Catalog, other: Catalog) -> Iterator[Problem]:
    """Facts and prices that are exactly twice or half of what another catalog says."""
    ours, theirs = _figures(catalog), _figures(other)
    for key in sorted(ours.keys() & theirs.keys()):
        kind, owner, name = key
        mine, their = ours[key], theirs[key]
        if any(math.isclose(mine * factor, their, rel_tol=TOLERANCE) for factor in (2.0, 0.5)) and mine:
            message = f"{owner}: {name} is {mine:g} here and {their:g} in {other.name}, a factor of two"
            yield warning(
                "factor-of-two", message, kind, "sparse against dense, both ways against one, node against card?"
            )


def check_table(catalog: Catalog, table: Mapping[str, Device]) -> Iterator[Problem]:
    """Facts of devices that disagree with a table of devices, unless a user states or measured them."""
    by_name = {name.lower(): device for device in table.values() for name in (device.id, *device.aliases)}
    for device in catalog.devices.values():
        known = next((by_name[n.lower()] for n in (device.id, *device.aliases) if n.lower() in by_name), None)
        if known is None:
            continue
        theirs = device_figures(known)
        for name, mine in device_figures(device).items():
            fact, their = device.facts.get(_FACTS.get(name, name)), theirs.get(name)
            stated = fact is not None and fact.status in _OWN
            if their and not stated and abs(mine - their) > DISAGREES * their:
                message = f"{device.id}: {name} is {mine:g}, the device table has {their:g} ({mine / their:.3g} times)"
                yield warning("device-table", message, "devices", "status: user or measured, where you know better")


_FACTS = {"scale_up": "scale_up.one_way"}


def _figures(catalog: Catalog) -> dict[tuple[str, str, str], float]:
    """Every number that two catalogs can be a factor of two apart in."""
    found: dict[tuple[str, str, str], float] = {}
    for device in catalog.devices.values():
        found |= {("devices", device.id, name): value for name, value in device_figures(device).items()}
    for shape in catalog.shapes.values():
        found |= {("shapes", shape.id, name): value for name, value in _shape_figures(shape).items()}
    for offer in catalog.offers:
        found[_offer_key(offer)] = offer.price_microusd_per_hour / 1e6
    return found


def _offer_key(offer: Offer) -> tuple[str, str, str]:
    return f"offers/{offer.provider}.csv", offer.id, "price"


def device_figures(device: Device) -> dict[str, float]:
    """Numbers of a device by the name of their fact."""
    found: dict[str, float | None] = {f"peak_flop_per_s.{name}": rate for name, rate in device.peak_flop_per_s.items()}
    found |= {
        "memory_bytes": device.memory_bytes,
        "memory_bandwidth_bytes_per_s": device.memory_bandwidth_bytes_per_s,
        "scale_up": device.scale_up.one_way_bytes_per_s if device.scale_up else None,
        "host_link_bytes_per_s": device.host_link_bytes_per_s,
        "tdp_w": device.tdp_w,
    }
    return {name: float(value) for name, value in found.items() if value}


def _shape_figures(shape: Shape) -> dict[str, float]:
    found: dict[str, float | None] = {
        "devices": shape.devices,
        "host memory": shape.host_memory_bytes,
        "memory per device": shape.memory_bytes_per_device,
        "rate between shapes": shape.inter_node_bytes_per_s_per_device,
    }
    return {name: float(value) for name, value in found.items() if value}
