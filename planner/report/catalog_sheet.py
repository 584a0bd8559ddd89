"""One device, shape or offer with the provenance of each fact; a vendor's claim beside the catalog's figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal

from typing_extensions import TypedDict

from planner import units
from planner.catalog.load import find_device
from planner.catalog.model import Catalog, Device, Offer, Provenance, Shape
from planner.catalog.names import shapes_named
from planner.errors import InputError
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Items, Lines, columns
from planner.report.catalog_view import dense_16_bit
from planner.units import counted

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
        return _offer_sheet(catalog, offer)
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


def _offer_sheet(catalog: Catalog, offer: Offer) -> EntrySheet:
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
