"""Offers as a list: sorted by what a useful unit of compute costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

from typing_extensions import TypedDict

from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device, Offer
from planner.catalog.names import device_matches, provider_matches, region_matches
from planner.catalog.offers import PRICE_MODELS
from planner.errors import UsageError
from planner.plan.references import area_meant
from planner.report import lists
from planner.report.lists import Field
from planner.spelling import closest
from planner.units import counted

Group = Literal["device", "provider", "region"]
GROUPS: tuple[Group, ...] = ("device", "provider", "region")
_SIXTEEN = ("bf16", "fp16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which offers to list."""

    device: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    provider: tuple[str, ...] = ()
    pricing: str | None = None
    suspect: bool = False


def group_key(given: str | None) -> Group | None:
    """A key to group by; UsageError when there is none of that name."""
    if given in (None, *GROUPS):
        return given
    raise UsageError.of("unknown-key", f"cannot group by '{given}'", hint=f"one of {', '.join(GROUPS)}")


class OfferRow(TypedDict):
    """An offer with what a unit of it costs."""

    offer: str
    device: str
    devices: int
    shape: str
    provider: str
    region: str
    zone: str
    country: str
    price_model: str
    usd_per_hour: float
    usd_per_device_hour: float
    usd_per_pflop_hour: float | None
    memory_bytes: int
    as_of: str
    status: str
    source: str
    quality: str


def offer_rows(catalog: Catalog, wanted: Filter) -> list[OfferRow]:
    """Offers that match, cheapest dense 16-bit compute first; those of unknown peak last.

    UsageError where a word of the filter is of nothing in the catalog: "0 offers" would pass for a fact of the market.
    """
    _demand_known(catalog, wanted)
    rows = [_row(catalog, offer) for offer in catalog.offers if _matches(catalog, offer, wanted)]
    return sorted(rows, key=lambda row: (_sort_value(row), row["usd_per_device_hour"], row["offer"]))


def _demand_known(catalog: Catalog, wanted: Filter) -> None:
    if wanted.pricing is not None and wanted.pricing not in PRICE_MODELS:
        near = closest(wanted.pricing, PRICE_MODELS)
        hint = (f"did you mean {near[0]}? " if near else "") + f"one of {', '.join(PRICE_MODELS)}"
        raise UsageError.of("unknown-value", f"there is no price model '{wanted.pricing[:40]}'", hint=hint)
    for pattern in wanted.device:
        if not any(device_matches(device, pattern) for device in catalog.devices.values()):
            near = closest(pattern.lower()[:100], list(catalog.aliases))
            hint = f"did you mean '{near[0]}'?" if near else "plan catalog list --group-by device shows every device"
            raise UsageError.of("unknown-device", f"there is no device '{pattern[:80]}'", hint=hint)
    for pattern in wanted.region:
        if not any(_lies_in(offer, pattern) for offer in catalog.offers):
            near = closest(pattern.lower()[:100], sorted({offer.region for offer in catalog.offers}))
            hint = f"did you mean '{near[0]}'?" if near else "plan catalog list --group-by region shows every region"
            hint = area_meant(pattern) or hint
            raise UsageError.of("unknown-value", f"nobody sells in a region '{pattern[:80]}'", hint=hint)

    for pattern in wanted.provider:
        if not any(provider_matches(offer.provider, pattern) for offer in catalog.offers):
            hint = "plan catalog list --group-by provider shows every provider"
            near = closest(pattern.lower()[:100], sorted({offer.provider for offer in catalog.offers}))
            hint = f"did you mean '{near[0]}'?" if near else hint
            raise UsageError.of("unknown-provider", f"there is no provider '{pattern[:80]}'", hint=hint)


def _sort_value(row: OfferRow) -> float:
    value = row["usd_per_pflop_hour"]
    return math.inf if value is None else float(value)


def _matches(catalog: Catalog, offer: Offer, wanted: Filter) -> bool:
    device = catalog.devices[catalog.shapes[offer.shape].device]
    return (
        (wanted.suspect or not offer.quality)
        and (wanted.pricing is None or offer.price_model == wanted.pricing)
        and (not wanted.device or any(device_matches(device, pattern) for pattern in wanted.device))
        and (not wanted.provider or any(provider_matches(offer.provider, pattern) for pattern in wanted.provider))
        and (not wanted.region or any(_lies_in(offer, pattern) for pattern in wanted.region))
    )


def _lies_in(offer: Offer, pattern: str) -> bool:
    """As a scenario's regions are read, or by the provider: "gcp/us-*"."""
    return region_matches(offer, pattern) or fnmatchcase(f"{offer.provider}/{offer.region}", pattern)


def dense_16_bit(device: Device) -> float | None:
    """Dense peak at 16 bits; None when the device has no such units."""
    return next((device.peak_flop_per_s[name] for name in _SIXTEEN if device.peak_flop_per_s.get(name)), None)


def _row(catalog: Catalog, offer: Offer) -> OfferRow:
    shape = catalog.shapes[offer.shape]
    device = catalog.devices[shape.device]
    hourly = offer.price_microusd_per_hour / 1e6
    whole_devices = shape.devices * shape.compute_share
    peak = dense_16_bit(device)
    return {
        "offer": offer.id,
        "device": device.id,
        "devices": shape.devices,
        "shape": shape.id,
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone,
        "country": offer.country,
        "price_model": offer.price_model,
        "usd_per_hour": hourly,
        "usd_per_device_hour": hourly / shape.devices,
        "usd_per_pflop_hour": hourly / (whole_devices * peak / 1e15) if peak else None,
        "memory_bytes": shape.memory_bytes_per_device or device.memory_bytes,
        "as_of": offer.provenance.as_of,
        "status": offer.provenance.status,
        "source": offer.provenance.source,
        "quality": offer.quality,
    }


_FIELDS = (
    Field(key="usd_per_pflop_hour", head="$/PFLOP-h", show="{:,.2f}".format, right=True),
    Field(key="device", head="Device"),
    Field(key="devices", head="×", show=str, right=True),
    Field(key="provider", head="Provider"),
    Field(key="region", head="Region"),
    Field(key="price_model", head="Pricing"),
    Field(key="usd_per_hour", head="$/h shape", show="{:,.2f}".format, right=True),
    Field(key="usd_per_device_hour", head="$/h device", show="{:,.2f}".format, right=True),
    Field(key="as_of", head="As of"),
)


def render_offers(
    rows: Sequence[OfferRow], form: str, *, group_by: Group | None = None, width: int = 100, colour: bool = False
) -> str:
    """The list in any format; the title names the sort key.

    Parameters
    ----------
    rows
        As `offer_rows` sorts them.
    form
        table, json, csv or md.
    group_by
        Only the first row of each device, provider or region, in every format; None = all rows.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    shown = _cheapest_each(rows, group_by) if group_by else rows
    title = counted(len(shown), "offer")
    if group_by:
        title = f"the best of {counted(len(rows), 'offer')} for each {group_by}"
    title += ", sorted by $ per hour of a dense 16-bit PFLOP/s (peak, not sustained)"
    keys = list(rows[0]) if rows else [field.key for field in _FIELDS]
    return lists.render(shown, _FIELDS, form=form, title=title, width=width, colour=colour, keys=keys)


def _cheapest_each(rows: Sequence[OfferRow], key: Group) -> list[OfferRow]:
    first: dict[str, OfferRow] = {}
    for row in rows:
        first.setdefault(row[key], row)
    return list(first.values())
