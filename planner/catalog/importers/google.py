"""Price lists of Google Cloud by SKU as offers: a machine is the sum of its accelerators, cores and memory.

Two forms are read: answers of the Cloud Billing Catalog API (services.skus.list), and the pricing export to BigQuery,
as JSON or as JSON lines. Cores and memory of a machine are those of the catalog's shape; where it does not know them no
price follows. Commitments, reservations, calendars and licences are other terms, and left out; local disks are billed
apart and are in no price.

Source of the layouts: Google Cloud documents "Method: services.skus.list" and "Structure of pricing data export", read
2026-11; names of SKUs as in both.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from planner.carriers import dataclass
from planner.catalog.importers.imported import Imported, countries_of, price_of
from planner.catalog.importers.terms import ListTerms, in_dollars
from planner.catalog.model import Catalog, Shape

PROVIDER = "gcp"
# series of machines -> how SKUs call their hosts and their accelerators: Google Cloud document "GPU machine types"
MACHINES = {
    "a2-highgpu": ("A2", "A100"),
    "a2-megagpu": ("A2", "A100"),
    "a2-ultragpu": ("A2", "A100 80GB"),
    "a3-highgpu": ("A3", "H100 80GB"),
    "a3-megagpu": ("A3Plus", "H100 80GB Mega"),
    "a3-ultragpu": ("A3Ultra", "H200 141GB"),
    "g2-standard": ("G2", "L4"),
}
_HOST = re.compile(r"(?:Spot Preemptible )?(A2|A3Plus|A3Ultra|A3|G2) Instance (Core|Ram) running in ")
_CARD = re.compile(
    r"(?:Nvidia )?(?:Tesla )?(A100 80GB|A100|H100 80GB Mega|H100 Mega 80GB|H100 80GB Plus|H100 80GB|H200 141GB|L4) GPU"
    r"(?: attached to Spot Preemptible VMs)? running in "
)
_SAME = {"H100 Mega 80GB": "H100 80GB Mega", "H100 80GB Plus": "H100 80GB Mega"}
_UNITS = {"Core": "h", "Ram": "GiBy.h", "GPU": "h"}
_MODELS = {"OnDemand": "on_demand", "Preemptible": "spot"}
_OTHER_TERMS = re.compile(r"Commitment|Reserved|Calendar|DWS|Licensing Fee|Sole Tenancy|Committed", re.IGNORECASE)
_GIB = 2**30

Key = tuple[str, str, str, str]  # what it is (A3, H100 80GB), part (Core, Ram, GPU), region, price model


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sku:
    """What is read of one SKU."""

    number: int
    name: str
    what: str
    part: str
    model: str
    regions: tuple[str, ...]
    price: str
    currency: str
    unit: str
    tiers: int
    day: str


def is_google(data: object) -> bool:
    """Whether a JSON document is such a list."""
    items = _items(data)
    return bool(items) and all(isinstance(one, Mapping) and ("pricingInfo" in one or "sku" in one) for one in items)


def read_google(
    data: object, file: str, catalog: Catalog, terms: ListTerms, *, source: str = "", as_of: str = "", copied: str = ""
) -> Imported:
    """The SKUs of a JSON document as offers of machines.

    Parameters
    ----------
    data
        The document: a list of SKUs, or the answer of the API with them under skus.
    terms
        Rate and tax, where the list is not in dollars or says something of tax.

    Raises
    ------
    InputError
        The list is in a currency of which no rate is given, or says something of tax and nobody says what it is.
    """
    found = Imported(file=file, provider=PROVIDER, copied=copied, countries=countries_of(catalog, PROVIDER))
    parts: dict[Key, tuple[Decimal, _Sku]] = {}
    unread: set[Key] = set()
    for number, raw in enumerate(_items(data), start=1):
        found.rows += 1
        sku = _sku(number, raw)
        if reason := _refusal(sku):
            found.skip(number, sku.name[:80] or "(no name)", reason)
            continue
        price = price_of(sku.price)
        keys = [(sku.what, sku.part, region, sku.model) for region in sku.regions]
        if isinstance(price, str):
            found.skip(number, sku.name[:80], price)
            unread.update(keys)
            continue
        for key in keys:
            parts.setdefault(key, (in_dollars(price, sku.currency, terms, file), sku))
    _machines(found, catalog, parts, unread, source or file, as_of)
    return found


def _machines(
    found: Imported, catalog: Catalog, parts: Mapping[Key, tuple[Decimal, _Sku]], unread: set[Key], source: str,
    as_of: str,
) -> None:  # fmt: skip
    """Offers of machines of which a region has all parts, by zone where the catalog has them so; the rest is listed."""
    zones: dict[tuple[str, str, str], list[str]] = defaultdict(list)  # where the catalog has an offer by its zone
    for offer in catalog.offers:
        zones[offer.shape, offer.region, offer.price_model].append(offer.zone)
    used: set[int] = set()
    why: dict[int, str] = defaultdict(str)
    for (what, part, region, model), (_, card) in parts.items():
        for shape in _shapes(catalog, what) if part == "GPU" else ():
            series = MACHINES[shape.name.rpartition("-")[0]][0]
            wanted: list[Key] = [(what, "GPU", region, model)]
            wanted += [(series, each, region, model) for each in ("Core", "Ram")]
            places = zones.get((shape.id, region, model), [""])  # a price holds for all zones of its region
            if unread.intersection(wanted):
                found.unread.update(found.name_of(shape.name, zone or region, model) for zone in places)
            if shape.vcpus is None or shape.host_memory_bytes is None:
                why[card.number] = why[card.number] or f"cores and memory of {shape.name} are not known"
            elif lacks := [each[1] for each in wanted if each not in parts]:
                why[card.number] = (
                    why[card.number] or f"accelerators without {series} {' and '.join(lacks)} in {region}"
                )
            else:
                amounts = (Decimal(shape.devices), Decimal(shape.vcpus), Decimal(shape.host_memory_bytes) / _GIB)
                price = sum((parts[key][0] * amount for key, amount in zip(wanted, amounts)), Decimal(0))
                for zone in places:
                    found.offer(shape=shape.name, region=region, zone=zone, price_model=model, price=price,
                                source=source, as_of=as_of or card.day)  # fmt: skip
                used.update(parts[key][1].number for key in wanted)
    for sku in {sku.number: sku for _, sku in parts.values()}.values():
        if sku.number not in used:
            reason = why[sku.number] or ("no shape of this machine" if sku.part == "GPU" else "a host without machines")
            found.skip(sku.number, sku.name[:80], reason)
    found.taken += len(used)
    if used:
        found.notes.append("local disks are billed apart: no price holds them")


def _shapes(catalog: Catalog, card: str) -> Iterator[Shape]:
    for shape in catalog.shapes.values():
        if shape.provider == PROVIDER and MACHINES.get(shape.name.rpartition("-")[0], ("", ""))[1] == card:
            yield shape


def _items(data: object) -> Sequence[Any]:
    items = data.get("skus") if isinstance(data, Mapping) else data
    return items if isinstance(items, list) else ()


def _sku(number: int, raw: Mapping[str, Any]) -> _Sku:
    """One SKU of either form."""
    exported = isinstance(raw.get("sku"), Mapping)
    name = str(_at(raw, "sku", "description") if exported else raw.get("description") or "")
    host, card = _HOST.match(name), _CARD.match(name)
    spot = "Spot Preemptible" in name or name.startswith("Preemptible ")
    usage = str(_at(raw, "category", "usageType") or ("Preemptible" if spot else "OnDemand"))
    price, currency, unit, tiers = _exported(raw) if exported else _listed(raw)
    regions = _at(raw, "geo_taxonomy", "regions") if exported else raw.get("serviceRegions")
    called = card.group(1) if card else ""
    return _Sku(
        number=number, name=name, what=host.group(1) if host else _SAME.get(called, called),
        part=host.group(2) if host else "GPU" if card else "", model=_MODELS.get(usage, ""),
        regions=tuple(str(one) for one in regions) if isinstance(regions, list) else (), price=price,
        currency=currency, unit=unit, tiers=tiers, day=str(raw.get("pricing_as_of_time") or "")[:10],
    )  # fmt: skip


def _listed(raw: Mapping[str, Any]) -> tuple[str, str, str, int]:
    """Price, currency, unit and tiers as the API has them, of the newest of its prices."""
    infos = raw.get("pricingInfo")
    told = [one for one in infos if isinstance(one, Mapping)] if isinstance(infos, list) else []
    rates = _tiers(_at(told[-1], "pricingExpression", "tieredRates") if told else None)
    unit = str(_at(told[-1], "pricingExpression", "usageUnit") or "") if told else ""
    if not rates:
        return "", "USD", unit, 0
    price = rates[-1].get("unitPrice")
    price = price if isinstance(price, Mapping) else {}
    try:
        whole = Decimal(str(price.get("units") or 0)) + Decimal(str(price.get("nanos") or 0)).scaleb(-9)
    except InvalidOperation:
        return json.dumps(price.get("units")), "USD", unit, len(rates)
    return format(whole, "f"), str(price.get("currencyCode") or "USD"), unit, len(rates)


def _exported(raw: Mapping[str, Any]) -> tuple[str, str, str, int]:
    """As `_listed`, of the export: the price of the account where it is told, else that of the list; in dollars."""
    own = _tiers(_at(raw, "billing_account_price", "tiered_rates"))
    rates = own or _tiers(_at(raw, "list_price", "tiered_rates"))
    unit = str(raw.get("pricing_unit") or "")
    if not rates:
        return "", "USD", unit, 0
    if rates[-1].get("usd_amount") is not None:
        return str(rates[-1]["usd_amount"]), "USD", unit, len(rates)
    currency = str(raw.get("account_currency_code") or raw.get("currency") or "USD")
    return str(rates[-1].get("account_currency_amount") or ""), currency, unit, len(rates)


def _tiers(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _refusal(sku: _Sku) -> str:
    """Why a SKU is no part of a machine that is sold by the hour; empty when it may be."""
    if _OTHER_TERMS.search(sku.name) or not sku.model:
        return "sold on other terms"
    if not sku.part:
        return "no accelerator, core or memory of a machine with accelerators"
    if sku.unit and sku.unit != _UNITS[sku.part]:
        return f"priced by '{sku.unit[:20]}', not by the hour"
    if sku.tiers > 1:
        return "several prices by amount"
    return "" if sku.regions else "no region"
