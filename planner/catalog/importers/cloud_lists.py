"""Price lists of Azure, AWS and Google Cloud as offers; what they leave open only whoever downloaded them can say.

Azure (items of its Retail Prices API, whole or cut down to a few keys): an item is a price of one meter in one region.
Machines are told by the shapes of the catalog, their names compared without "Standard_", underscores and spaces.
Windows, dedicated hosts, promotions and low priority are other terms and left out; so is a machine of which a region
has several prices with nothing that says on which terms. Source of the layout: Microsoft, "Azure Retail Prices REST API
overview", read 2026-11; the short form as files on GitHub have it (Jumbo2020/gpu_prices).

AWS by machine and region, {"p5.48xlarge/us-east-1": 55.04}: such a file says neither when nor on which terms, and the
price model is the user's to say. Source of the layout: opencost/opencost, configs/awsreservationofferings.json.

Google Cloud by SKU: a machine is the sum of its accelerators, cores and memory. Two forms are read: answers of the
Cloud Billing Catalog API (services.skus.list), and the pricing export to BigQuery, as JSON or as JSON lines. Cores and
memory of a machine are those of the catalog's shape; where it does not know them no price follows. Commitments,
reservations, calendars and licences are other terms, and left out; local disks are billed apart and are in no price.
Source of the layouts: Google Cloud documents "Method: services.skus.list" and "Structure of pricing data export", read
2026-11; names of SKUs as in both.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal, InvalidOperation
from typing import Any

from planner.carriers import dataclass
from planner.catalog.importers.imported import Imported, countries_of, price_of
from planner.catalog.model import Catalog, Shape
from planner.catalog.offers import PRICE_MODELS
from planner.errors import InputError, UsageError
from planner.units import CURRENCIES

_RATE = re.compile(r"([A-Z]{3})=([0-9]+(?:\.[0-9]+)?)")
_TAX = re.compile(r"(excluded)|included:([0-9]+(?:\.[0-9]+)?) ?%?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTerms:
    """Dollars for one unit of other currencies, and the share of tax in the prices; None where nobody said."""

    dollars: Mapping[str, Decimal] = field(default_factory=dict)
    tax: Decimal | None = None

    @classmethod
    def of(cls, rates: tuple[str, ...], tax: str) -> ListTerms:
        """From what stands after `--rate` and `--tax`.

        Raises
        ------
        UsageError
            A rate or a tax cannot be read.

        Examples
        --------
        >>> ListTerms.of(("EUR=1.08",), "included:19%")
        ListTerms(dollars={'EUR': Decimal('1.08')}, tax=Decimal('0.19'))
        """
        dollars: dict[str, Decimal] = {}
        for text in rates:
            match = _RATE.fullmatch(text.strip())
            rate = Decimal(match[2]) if match else Decimal(0)
            if match is None or match[1] not in CURRENCIES or not Decimal("1e-6") <= rate <= 10**6:
                hint = "write --rate EUR=1.08, dollars for one EUR; known: " + ", ".join(CURRENCIES)
                raise UsageError.of("bad-rate", f"--rate '{text[:40]}' is no rate to the dollar", hint=hint)
            dollars[match[1]] = rate
        if not tax:
            return cls(dollars=dollars)
        said = _TAX.fullmatch(tax.strip())
        if said is None or (said[2] and Decimal(said[2]) > 100):
            hint = "write --tax excluded, or --tax included:19%"
            raise UsageError.of("bad-tax", f"--tax '{tax[:40]}' does not say what tax the prices hold", hint=hint)
        return cls(dollars=dollars, tax=Decimal(0) if said[1] else Decimal(said[2]) / 100)


def in_dollars(price: Decimal, currency: str, terms: ListTerms, file: str) -> Decimal:
    """A price of a list in dollars without tax.

    Parameters
    ----------
    price
        As the list has it.
    currency
        ISO 4217 code, in letters of either size; empty: dollars.
    terms
        Rate and tax, as far as the user said them; dollars without a word of tax are taken to hold none.
    file
        Name of the list, for messages.

    Raises
    ------
    InputError
        It is in another currency, and nobody said its rate, or whether tax is in it: both are asked, not guessed.
    """
    code = currency.upper() or "USD"
    if code != "USD":
        if code not in terms.dollars:
            hint = f"give the day's rate, dollars for one {code[:3]}: --rate {code[:3]}=1.08"
            raise InputError.of("mixed-currency", f"{file}: its prices are in {code[:20]}", hint=hint)
        if terms.tax is None:
            hint = "say it: --tax excluded, or --tax included:19%"
            raise InputError.of("tax-unknown", f"{file}: is tax in its prices in {code[:20]}?", hint=hint)
    return price * terms.dollars.get(code, Decimal(1)) / (1 + (terms.tax or 0))


AZURE = "azure"
_AZURE_TERMS = ("Windows", "Dedicated Host", "Low Priority", "Promo", "CloudServices", "Cloud Services")
_TERMS = {"1 Year": ("commitment_1y", 8760), "3 Years": ("commitment_3y", 26280)}  # of a Reservation: price of it whole


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """What is read of one item."""

    number: int
    name: str
    product: str
    region: str
    price: str
    currency: str
    unit: str
    kind: str
    term: str

    @property
    def model(self) -> str:
        """Price model; empty where it is none of ours."""
        if self.kind == "Reservation":
            return _TERMS.get(self.term, ("", 0))[0]
        return "spot" if "Spot" in self.name else "on_demand"


def is_azure(data: object) -> bool:
    """Whether a JSON document is such a list."""
    items = _azure_items(data)
    return bool(items) and all(isinstance(item, Mapping) and "skuName" in item for item in items)


def read_azure(
    data: object, file: str, catalog: Catalog, terms: ListTerms, *, source: str = "", as_of: str = "", copied: str = ""
) -> Imported:
    """The items of a JSON document as offers.

    Parameters
    ----------
    data
        The document: a list of items, or the answer of the API with them under Items.
    terms
        Rate and tax, where the list is not in dollars or says something of tax.

    Raises
    ------
    InputError
        The list is in a currency of which no rate is given, or says something of tax and nobody says what it is.
    """
    found = Imported(file=file, provider=AZURE, copied=copied, countries=countries_of(catalog, AZURE))
    shapes = {_plain(shape.name): shape for shape in catalog.shapes.values() if shape.provider == AZURE}
    groups: dict[tuple[str, str, str], list[_Item]] = defaultdict(list)
    for number, raw in enumerate(_azure_items(data), start=1):
        found.rows += 1
        item = _item(number, raw)
        what = f"{item.name or '(no name)'} in {item.region}"
        reason = _azure_refusal(item, _plain(item.name) in shapes)
        if reason:
            found.skip(number, what, reason)
        else:
            groups[_plain(item.name), item.region, item.model].append(item)
    for (name, region, model), items in groups.items():
        shape, prices = shapes[name], {item.price for item in items}
        for item in items:
            price = price_of(item.price)
            if isinstance(price, str):
                found.no_price(item.number, f"{item.name} in {region}", price, (shape.name, region, model))
            elif len(prices) > 1:
                found.skip(item.number, f"{item.name} in {region}", "several prices, and nothing says on which terms")
            else:
                hours = _TERMS[item.term][1] if item.kind == "Reservation" else 1
                dollars = in_dollars(price / hours, item.currency, terms, file)
                if found.offer(shape=shape.name, region=region, zone="", price_model=model, price=dollars,
                               source=source or file, as_of=as_of):  # fmt: skip
                    found.taken += 1
                else:
                    found.skip(item.number, f"{item.name} in {region}", "the same row again")
    return found


def _azure_items(data: object) -> Sequence[Any]:
    items = data.get("Items") if isinstance(data, Mapping) else data
    return items if isinstance(items, list) else ()


def _item(number: int, raw: Mapping[str, Any]) -> _Item:
    def text(*names: str) -> str:
        return next((str(raw[name]).strip() for name in names if raw.get(name) not in (None, "")), "")

    arm, sku, meter = text("armSkuName"), text("skuName"), text("meterName")
    special = " ".join(word for word in ("Spot", "Low Priority") if word in sku or word in meter)
    return _Item(
        number=number, name=f"{arm} {special}".strip() if arm else sku, product=f"{text('productName')} {sku} {meter}",
        region=text("armRegionName", "region"), price=_number(raw, "retailPrice", "pricePerHour"),
        currency=text("currencyCode", "currency"), unit=text("unitOfMeasure"), kind=text("type"),
        term=text("reservationTerm"),
    )  # fmt: skip


def _number(raw: Mapping[str, Any], *names: str) -> str:
    for name in names:
        value = raw.get(name)
        if value is not None:
            return json.dumps(value)  # a text keeps its quotes: it is no number
    return ""


def _plain(name: str) -> str:
    text = name.removeprefix("Standard_").replace("Spot", "").replace("Low Priority", "")
    return "".join(letter for letter in text.lower() if letter.isalnum())


def _azure_refusal(item: _Item, known: bool) -> str:
    """Why an item cannot be an offer; empty when it can."""
    if not known:
        return "no shape of this machine"
    other = next((words for words in _AZURE_TERMS if words in item.product), "")
    if other:
        return f"sold on other terms: {other}"
    if item.unit not in ("", "1 Hour"):
        return f"priced by '{item.unit[:20]}', not by the hour"
    return "" if item.model else f"a term that is none of ours: '{(item.term or item.kind)[:20]}'"


AWS = "aws"
_KEY = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+/[a-z]{2}(?:-[a-z]+)+-\d")


def is_pairs(data: object) -> bool:
    """Whether a JSON document is such a list."""
    return isinstance(data, dict) and bool(data) and all(_KEY.fullmatch(str(key)) for key in data)


def read_pairs(
    data: object, file: str, catalog: Catalog, terms: ListTerms, *, price_model: str, source: str = "", as_of: str = "",
    copied: str = "",
) -> Imported:  # fmt: skip
    """The prices of a JSON document as offers.

    Parameters
    ----------
    data
        The document.
    file
        Its name, for messages and where nothing is said of the source.
    catalog
        Whose shapes tell what a pair sells.
    terms
        Tax, where the user says that it is in the prices; they are in dollars.
    price_model
        On which terms the prices are; empty: nobody said it.
    source
        Where the file is from; empty: its name.
    as_of
        ISO date of the prices; empty: not known.
    copied
        ISO date of the import, which stands where `as_of` is not known.

    Raises
    ------
    InputError, UsageError
        Nobody said on which terms the prices are, or there are no such terms.
    """
    if not price_model:
        hint = "say it: --price-model commitment_1y; one of " + ", ".join(PRICE_MODELS)
        raise InputError.of("missing-field", f"{file} does not say on which terms its prices are", hint=hint)
    if price_model not in PRICE_MODELS:
        hint = "one of: " + ", ".join(PRICE_MODELS)
        raise UsageError.of("unknown-value", f"there is no price model '{price_model[:40]}'", hint=hint)
    found = Imported(file=file, provider=AWS, copied=copied, countries=countries_of(catalog, AWS))
    for number, (key, value) in enumerate(data.items() if isinstance(data, dict) else (), start=1):
        found.rows += 1
        name, _, region = str(key).partition("/")
        price = price_of(json.dumps(value))  # a text keeps its quotes: it is no number
        if f"{AWS}/{name}" not in catalog.shapes:
            found.skip(number, str(key), "no shape of this machine")
        elif isinstance(price, str):
            found.no_price(number, str(key), price, (name, region, price_model))
        else:
            found.offer(shape=name, region=region, zone="", price_model=price_model, source=source or file, as_of=as_of,
                        price=in_dollars(price, "USD", terms, file))  # fmt: skip
            found.taken += 1
    return found


GOOGLE = "gcp"
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
_GOOGLE_TERMS = re.compile(r"Commitment|Reserved|Calendar|DWS|Licensing Fee|Sole Tenancy|Committed", re.IGNORECASE)
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
    items = _google_items(data)
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
    found = Imported(file=file, provider=GOOGLE, copied=copied, countries=countries_of(catalog, GOOGLE))
    parts: dict[Key, tuple[Decimal, _Sku]] = {}
    unread: set[Key] = set()
    for number, raw in enumerate(_google_items(data), start=1):
        found.rows += 1
        sku = _sku(number, raw)
        if reason := _google_refusal(sku):
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
        if shape.provider == GOOGLE and MACHINES.get(shape.name.rpartition("-")[0], ("", ""))[1] == card:
            yield shape


def _google_items(data: object) -> Sequence[Any]:
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


def _google_refusal(sku: _Sku) -> str:
    """Why a SKU is no part of a machine that is sold by the hour; empty when it may be."""
    if _GOOGLE_TERMS.search(sku.name) or not sku.model:
        return "sold on other terms"
    if not sku.part:
        return "no accelerator, core or memory of a machine with accelerators"
    if sku.unit and sku.unit != _UNITS[sku.part]:
        return f"priced by '{sku.unit[:20]}', not by the hour"
    if sku.tiers > 1:
        return "several prices by amount"
    return "" if sku.regions else "no region"
