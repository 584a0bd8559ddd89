"""Cells of a row that say where it stands, what it draws and what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.candidates.machines import carbon_mg_per_hour, grid_of, power_w

if TYPE_CHECKING:
    from planner.candidates.offers import Site
    from planner.catalog.model import Catalog
    from planner.plan.model.rows import Energy, Memory, Place

MICRO = 1_000_000
NO_ENERGY: Energy = {"power_w": None, "carbon_kg": None}  # of what nobody knows the power of


def usd(microusd: int) -> float:
    """Dollars for people; the exact figure is the integer beside it."""
    return microusd / MICRO


def place_document(site: Site, shapes: int) -> Place:
    """What is rented, where, and where its price is from."""
    offer, shape = site.offer, site.shape
    return {
        "offer": offer.id,
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone,
        "country": offer.country,
        "device": site.device.id,
        "shape": shape.id,
        "price_model": offer.price_model,
        "price_microusd_per_hour": offer.price_microusd_per_hour,
        "price_as_of": offer.provenance.as_of,
        "price_status": offer.provenance.status,
        "price_source": offer.provenance.source,
        "count": shapes,
        "devices": shapes * shape.devices,
        "devices_per_shape": shape.devices,
    }


def memory_document(terms: dict[str, float], usable_bytes: float) -> Memory:
    """Needed against usable memory of one device, with its terms.  [B]"""
    needed = float(sum(terms.values()))
    return {
        "needed_bytes": needed,
        "usable_bytes": usable_bytes,
        "free_bytes": usable_bytes - needed,
        "terms_bytes": terms,
    }


def energy_document(catalog: Catalog, site: Site, shapes: float, hours: float) -> Energy:
    """Power drawn, rated where the owner says nothing, and carbon over the hours; None where a fact is missing.

    Parameters
    ----------
    catalog
        Has the carbon of each grid.
    site
        Where the shapes stand.
    shapes
        In use; a part of one where replicas of others stand on it too.
    hours
        That they run; only the carbon counts them.  [h]
    """
    drawn_w, grid = power_w(site), grid_of(site, catalog)
    carbon = carbon_mg_per_hour(site, catalog) * shapes * hours / 1e6
    return {
        "power_w": None if drawn_w is None else drawn_w * shapes,
        "carbon_kg": None if drawn_w is None or grid is None else carbon,
    }
