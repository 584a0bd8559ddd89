"""Offers as a list, sorted by what a useful unit of compute costs; and one device, shape or offer, fact by fact.

Each fact has its provenance, and a vendor's claim stands beside the catalog's figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from fnmatch import fnmatchcase
from typing import Any, Literal

from typing_extensions import TypedDict

from planner import units
from planner.carriers import dataclass
from planner.catalog.load import find_device
from planner.catalog.model import Catalog, Device, Offer, Provenance, Shape
from planner.catalog.names import device_matches, match_devices, provider_matches, region_matches, shapes_named
from planner.catalog.offers import PRICE_MODELS
from planner.errors import InputError, UsageError
from planner.plan.references import area_meant
from planner.report import csv, json, lists, markdown, text
from planner.report.blocks import Block, Grid, Items, Lines, columns
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


def unsold(catalog: Catalog, wanted: Filter) -> str:
    """Devices that were asked for and that nobody sells, with the way in for them; "" where something is sold."""
    asked = sorted({device.id for pattern in wanted.device for device in match_devices(catalog, pattern)})
    sold = {catalog.shapes[offer.shape].device for offer in catalog.offers}
    if not asked or sold & set(asked):
        return ""
    more = f" and {len(asked) - 3} more" if len(asked) > 3 else ""
    return f"nobody sells {', '.join(asked[:3])}{more}: own them (hardware.owned), or give a price (hardware.contracts)"


def render_offers(
    rows: Sequence[OfferRow],
    form: str,
    *,
    group_by: Group | None = None,
    why_none: str = "",
    width: int = 100,
    colour: bool = False,
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
    why_none
        What is said of a table without rows.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    shown = _cheapest_each(rows, group_by) if group_by else rows
    title = counted(len(shown), "offer")
    if group_by:
        title = f"the best of {counted(len(rows), 'offer')} for each {group_by}"
    if not rows and why_none:
        title = f"0 offers: {why_none}"
    else:
        title += ", sorted by $ per hour of a dense 16-bit PFLOP/s (peak, not sustained)"
    keys = list(rows[0]) if rows else [field.key for field in _FIELDS]
    return lists.render(shown, _FIELDS, form=form, title=title, width=width, colour=colour, keys=keys)


def _cheapest_each(rows: Sequence[OfferRow], key: Group) -> list[OfferRow]:
    first: dict[str, OfferRow] = {}
    for row in rows:
        first.setdefault(row[key], row)
    return list(first.values())


YARDSTICKS = ("a100-sxm-80gb", "h100-sxm-80gb")  # what a vendor's claim is held against
_BOUND_BY = (
    "decoding is bound by memory bandwidth, prompts and training by the 16-bit peak: no plan is faster than that"
)
_APART = ("id", "aliases", "facts", "claims", "notes", "note", "refusals", "provenance")


class FactTold(TypedDict):
    """A fact with its provenance."""

    fact: str
    value: Any
    source: str
    as_of: str
    status: str


class Against(TypedDict):
    """A device as multiples of a well-known one; null: not known."""

    device: str
    peak_16_bit: float | None
    memory_bandwidth: float | None
    memory: float | None


class EntrySheet(TypedDict):
    """Everything the catalog says about one device, shape or offer."""

    schema: Literal["plan/catalog-entry/v1"]
    kind: Literal["device", "shape", "offer"]
    id: str
    aliases: list[str]
    facts: list[FactTold]
    refusals: dict[str, str]
    claims: list[str]
    against: list[Against]
    notes: str
    shapes: list[str]
    offers: int


def sheet(catalog: Catalog, identifier: str) -> EntrySheet:
    """Everything the catalog says about one id; InputError when it knows none of that name."""
    for name in (identifier, f"onprem/{identifier}"):  # machines one owns go by their name alone, as in scenarios
        if name in catalog.shapes:
            return _shape_sheet(catalog, catalog.shapes[name])
    offer = next((offer for offer in catalog.offers if offer.id == identifier), None)
    if offer is not None:
        return _offer_sheet(offer)
    try:
        return _device_sheet(catalog, find_device(catalog, identifier))
    except InputError as error:
        machines = shapes_named(catalog, identifier)
        if len(machines) == 1:
            return _shape_sheet(catalog, machines[0])
        problem = error.problems[0]
        if machines:
            message, ids = f"'{identifier}' is a machine of several providers", [shape.id for shape in machines]
            raise InputError.of("unknown-id", message, hint=f"name one: {', '.join(ids[:5])}") from None
        message = f"no device, shape or offer '{identifier}'"
        raise InputError.of("unknown-id", message, hint=problem.hint or "plan catalog list") from None


def _device_sheet(catalog: Catalog, device: Device) -> EntrySheet:
    shapes = [shape for shape in catalog.shapes.values() if shape.device == device.id]
    ids = {shape.id for shape in shapes}
    offers = [offer for offer in catalog.offers if offer.shape in ids]
    return {
        "schema": "plan/catalog-entry/v1",
        "kind": "device",
        "id": device.id,
        "aliases": list(device.aliases),
        "facts": _facts(device, device.facts),
        "refusals": dict(device.refusals),
        "claims": list(device.claims),
        "against": _against(catalog, device) if device.claims else [],
        "notes": device.notes,
        "shapes": sorted(ids),
        "offers": len(offers),
    }


def _shape_sheet(catalog: Catalog, shape: Shape) -> EntrySheet:
    offers = [offer.id for offer in catalog.offers if offer.shape == shape.id]
    return {
        "schema": "plan/catalog-entry/v1", "kind": "shape", "id": shape.id, "aliases": [],
        "facts": _facts(shape, shape.facts),
        "refusals": {}, "claims": [], "against": [], "notes": "", "shapes": [], "offers": len(offers),
    }  # fmt: skip


def _offer_sheet(offer: Offer) -> EntrySheet:
    own = {field.name: offer.provenance for field in fields(offer)}
    return {
        "schema": "plan/catalog-entry/v1", "kind": "offer", "id": offer.id, "aliases": [], "facts": _facts(offer, own),
        "refusals": {}, "claims": [], "against": [], "notes": offer.note, "shapes": [offer.shape], "offers": 1,
    }  # fmt: skip


def _facts(entry: Any, provenance: Mapping[str, Provenance]) -> list[FactTold]:
    rows: list[FactTold] = []
    for field in fields(entry):
        if field.name in _APART:
            continue
        value = getattr(entry, field.name)
        known = _provenance(provenance, field.name)
        for name, part in _parts(field.name, value):
            row = _provenance(provenance, name) or known
            rows.append(
                {
                    "fact": name,
                    "value": part,
                    "source": row.source if row else "",
                    "as_of": row.as_of if row else "",
                    "status": row.status if row else "",
                }
            )
    return rows


def _provenance(provenance: Mapping[str, Provenance], name: str) -> Provenance | None:
    keys = (name, name.removesuffix("_bytes_per_s"), name.split(".")[0])
    return next((provenance[key] for key in keys if key in provenance), None)


def _parts(name: str, value: Any) -> list[tuple[str, Any]]:
    """A fact, or the facts of a mapping or link, as plain values."""
    if name == "published":
        return [
            (f"{name}.{one.model}.{one.weights}", f"{one.output_tokens_per_s:,.0f} tokens/s, one user on {one.devices}")
            for one in value
        ]
    if isinstance(value, Mapping):
        return [(f"{name}.{key}", part) for key, part in value.items()]
    if hasattr(value, "__dataclass_fields__"):
        return [(f"{name}.{field.name}", getattr(value, field.name)) for field in fields(value)]
    return [(name, list(value) if isinstance(value, tuple) else value)]


def _against(catalog: Catalog, device: Device) -> list[Against]:
    """Peak and bandwidth as multiples of well-known devices: what a claim can rest on."""
    rows: list[Against] = []
    for name in YARDSTICKS:
        other = catalog.devices.get(name)
        if other is not None:
            peak = _ratio(dense_16_bit(device), dense_16_bit(other))
            speed = _ratio(device.memory_bandwidth_bytes_per_s, other.memory_bandwidth_bytes_per_s)
            memory = _ratio(device.memory_bytes, other.memory_bytes)
            rows.append({"device": name, "peak_16_bit": peak, "memory_bandwidth": speed, "memory": memory})
    return rows


def _ratio(mine: float | None, other: float | None) -> float | None:
    return mine / other if mine and other else None


def render_sheet(facts: EntrySheet, form: str, *, width: int = 100, colour: bool = False) -> str:
    """A sheet in any format.

    Parameters
    ----------
    facts
        As `sheet` gives them.
    form
        table, json, csv or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    if form == "json":
        return json.render(facts)
    if form == "csv":
        head = {"kind": facts["kind"], "id": facts["id"]}
        flat = [{**head, **row, "value": _plain(row["value"])} for row in facts["facts"]]
        return csv.render(flat, ["kind", "id", "fact", "value", "source", "as_of", "status"])
    blocks = _blocks(facts)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def _blocks(facts: EntrySheet) -> list[Block]:
    head = f"{facts['kind']} {facts['id']}"
    also = (f"also {', '.join(facts['aliases'])}",) if facts["aliases"] else ()
    told = [row for row in facts["facts"] if row["value"] not in (None, "", [])]
    sources = list(dict.fromkeys(row["source"] for row in told if row["source"]))
    number = {source: f"[{index + 1}]" for index, source in enumerate(sources)}
    rows = [
        [row["fact"], _shown(row["fact"], row["value"]), row["status"], row["as_of"], number.get(row["source"], "")]
        for row in told
    ]
    refusals = tuple(f"not for {use}: {reason}" for use, reason in facts["refusals"].items())
    against = [
        [row["device"], *(_times(row[key]) for key in ("peak_16_bit", "memory_bandwidth", "memory"))]
        for row in facts["against"]
    ]
    heads = columns("What the model says, against", ">16-bit peak", ">memory bandwidth", ">memory")
    had = f" Shapes  {', '.join(facts['shapes']) or 'none'} · {counted(facts['offers'], 'offer')}"
    return [
        Lines(lines=(head, *also), strong_first=True),
        Grid(columns=columns("Fact", "Value", "Status", "As of", "Source"), rows=rows),
        Items(title="Refused", items=refusals, tone="fair"),
        Items(title="The vendor claims", items=tuple(facts["claims"])),
        Grid(columns=heads, rows=against, notes=(_BOUND_BY,) if against else ()),
        Lines(lines=(f" Notes  {facts['notes']}",) if facts["notes"] else ()),
        Lines(lines=(had,) if facts["kind"] == "device" else ()),
        Grid(columns=columns("", "Sources"), rows=[[number[source], source] for source in sources]),
    ]


def _times(ratio: float | None) -> str:
    return "unknown" if ratio is None else f"× {ratio:.2f}"


def _plain(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _shown(name: str, value: Any) -> str:
    """A value in the unit that its name promises, scaled for people."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if "flop_per_s" in name:
        return f"{units.format_number(value / 1e12, 4, apart=True)} TFLOP/s"
    if "bytes_per_s" in name:
        return units.format_rate_bytes(value)
    if "bytes" in name:
        return f"{units.format_bytes(value)} ({value:,} B)"
    if "microusd" in name:
        return f"{units.format_money(int(value), exact=True)} /h"
    return f"{value:,.6g} W" if name.endswith("_w") else f"{value:,.6g}"
