"""Prices an hour as people keep them, and as clouds answer: a device or machine, whose it is, on which terms.

A table of one's own, Lambda's /instance-types, the price list of AWS (offers, get-products, history of spot) and offers
of Vast are opened into rows by role; what they sell is looked for among the offers of the catalog, which get the price.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from datetime import date
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from planner.carriers import dataclass
from planner.catalog.importers.imported import STEP, Imported, price_of
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog, Offer, Shape
from planner.catalog.offers import PRICE
from planner.catalog.pricing import OfferPattern
from planner.reading.columns import DecimalSign, english, number_in, plain, signs_of
from planner.reading.engine_arguments import listed, mapping
from planner.reading.inventory import device_of
from planner.reading.jsonlines import document_of, head_keys, loads, records_of
from planner.reading.kinds import Asked, Kind, Match, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.price_lists import Seen, told_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, printable, records_by_role, rows_of

# role -> plain names of its column, the surest first; a price has its own test
_ROLES = {
    "device": ("gpumodel", "gpuname", "gputype", "acceleratorname", "accelerator", "device", "gpudescription", "gpu",
               "chip", "model", "displayname"),
    "machine": ("instancetype", "instancename", "machinetype", "instance", "machine", "shape", "flavor", "sku"),
    "provider": ("provider", "cloud", "cloudprovider", "vendor", "csp"),
    "count": ("gpucount", "numgpus", "gpus", "acceleratorcount", "ngpus", "devices", "count"),
    "memory": ("memoryingb", "memorygb", "gpumemorygb", "vramgb", "vram", "gpumemory", "gpuram"),
    "region": ("region", "location"),
    "terms": ("pricemodel", "pricingmodel", "pricing", "terms", "term", "commitment", "billing"),
    "currency": ("currency", "billingcurrency"),
    "day": ("asof", "date", "effectivedate"),
}  # fmt: skip
_MONEY = re.compile(r"(?i)price|cost|rate|usd|eur|gbp|[$€£]")
_HOUR = re.compile(r"(?i)hour|stunde|\bstd\b|(?:\b|_|/)h(?:r|rs)?\b|_h$")
_MEASURED = re.compile(r"(?i)throughput|latency|ttft|tpot|tokens?[ _]*(?:/|per)")
_OF_DEVICE = re.compile(
    r"(?i)(?:gpu|device|accelerator|chip|card)s?[ _-]*(?:h\b|hr|hour)|(?:per|/|_)[ _]*(?:gpu|device)"
)
_CURRENCIES = {"eur": "EUR", "€": "EUR", "gbp": "GBP", "£": "GBP", "usd": "USD", "$": "USD"}
_TERMS = (  # what is said of terms, and the price model that it is
    (re.compile(r"(?i)spot|preempt|interrupt"), "spot"),
    (re.compile(r"(?i)(?:\b|_)1[ -]?y(?:ea)?r|commitment_1y|12[ -]?mo|\b1y\b"), "commitment_1y"),
    (re.compile(r"(?i)(?:\b|_)3[ -]?y(?:ea)?r|commitment_3y|36[ -]?mo|\b3y\b"), "commitment_3y"),
    (re.compile(r"(?i)reserv|commit|contract|month|week|savings|community"), ""),
)
_PROVIDERS = {
    "amazon": "aws", "amazonwebservices": "aws", "google": "gcp", "googlecloud": "gcp", "googlecloudplatform": "gcp",
    "microsoft": "azure", "microsoftazure": "azure", "oracle": "oci", "oraclecloud": "oci", "lambdalabs": "lambda",
    "lambdacloud": "lambda", "datacrunch": "verda", "vastai": "vast", "runpodio": "runpod",
}  # fmt: skip
_PLAIN = {"operatingSystem": "Linux", "tenancy": "Shared", "capacitystatus": "Used", "preInstalledSw": "NA"}
_RUNPOD = {  # its prices of one device an hour, which their names do not tell: whose, on which terms
    "secureprice": ("runpod", "on_demand"), "communityprice": ("runpod-community", "on_demand"),
    "securespotprice": ("runpod", "spot"), "communityspotprice": ("runpod-community", "spot"),
}  # fmt: skip
_MOST_ROWS = 50_000
_OTHER_TERMS = "on terms that the catalog does not have"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quote:
    """A price of an hour, as a file tells it."""

    price: Decimal
    of_device: bool  # of one device; else of the machine
    device: str = ""
    machine: str = ""
    provider: str = ""
    region: str = ""
    count: float | None = None
    gigabytes: str = ""  # of one device, where its name does not tell them
    terms: str = "on_demand"  # "" for terms that are none of the catalog's
    day: str = ""
    line: int = 1


@dataclass(slots=True, kw_only=True)
class _Found:
    """What was read: figures to show, and offers by provider."""

    seen: list[Seen] = field(default_factory=list)
    lists: dict[str, Imported] = field(default_factory=dict)
    unsold: dict[str, None] = field(default_factory=dict)
    known: dict[_Quote, tuple[Shape | None, str, list[Offer]]] = field(default_factory=dict)


def _prices_of(names: list[str]) -> list[str]:
    """Columns of an hour's price."""
    return [name for name in names if plain(name) in _RUNPOD or (_MONEY.search(english(name)) and _HOUR.search(name)
            and not re.search(r"(?i)token|throughput|upfront|total", name))]  # fmt: skip


def recognise(source: Source) -> Match:
    """A price of an hour with a device or machine, or a cloud's own answer."""
    tool = next((tool for tool, keys, _ in _ANSWERS if keys <= head_keys(source)), "")
    if source.head_text.lstrip()[:1] in ("{", "[") and tool:
        return Match(score=0.96, found=("prices by machine",), tool=tool)
    names = header_of(source)[0] or list(dict.fromkeys(name for record in records_of(source)[:20] for name in record))
    places = places_of(names, _ROLES)
    marks = {"a price per hour": bool(_prices_of(names)),
             "a device or machine": bool({"device", "machine"} & set(places))}  # fmt: skip
    if not marks["a price per hour"]:
        return Match(score=0.2 * any(marks.values()), missing=("a price per hour",))
    if any(_MEASURED.search(name) for name in names):  # points that were measured, with what they cost
        return fit(marks, ceiling=0.5)
    tool = "RunPod" if any(plain(name) in _RUNPOD for name in names) else ""
    whose = bool(tool) or "provider" in places  # machines of one's own have no provider
    return fit(marks, tool=tool, ceiling=0.92 if whose else 0.75)


def read(source: Source, asked: Asked) -> Reading:
    """What an hour costs by device and provider, and the offers of the catalog that get that price."""
    reading = Reading(kind="quotes", title="prices by the hour", source=source.name, of="prices")
    catalog, found = load_catalog(), _Found()
    for quote in _quotes(source, reading, asked):
        if reading.taken >= _MOST_ROWS:
            reading.skipped.add(f"more than {_MOST_ROWS:,} prices", quote.line)
        else:
            reading.taken += _take(quote, catalog, found, reading, asked)
    if not reading.taken:
        reasons = "; ".join(f"{count:,} of them: {why}" for why, (count, _) in reading.skipped.reasons.items())
        raise refused(source, "nothing-taken", f"no price of {source.name} could be taken", reasons[:600] or "see it")
    told_of(reading, list(found.lists.values()), found.seen, catalog)
    reading.understood["prices"] = "US dollars an hour, " + reading.understood.pop("price", "of a machine")
    if found.unsold:
        known = [each for each in found.seen if each.terms == "on_demand" and each.device in catalog.devices]
        known.sort(key=lambda each: not any(text.startswith(f"{each.device} ") for text in found.unsold))
        device, price = (known[0].device, known[0].price) if known else ("DEVICE", Decimal(2))
        reading.note(f"the catalog has no such offer of {', '.join(list(found.unsold)[:12])}: it gets no price; plan "
                     f"solve --price '{device}=${price:.6g}/h' gives all offers of a device one")  # fmt: skip
    return reading


def _take(quote: _Quote, catalog: Catalog, found: _Found, reading: Reading, asked: Asked) -> bool:
    alike = replace(quote, price=Decimal(), day="", line=1)  # of what is sold alike the offers are looked for once
    if alike not in found.known:
        shape = _shape_of(quote, catalog)
        provider = quote.provider or (shape.provider if shape else "")
        device = shape.device if shape else _device_of(quote)
        offers = _offers_of(replace(quote, provider=provider), catalog, shape, device)
        found.known[alike] = (shape, device, offers)
    shape, device, offers = found.known[alike]
    quote = replace(quote, provider=quote.provider or (shape.provider if shape else ""))
    count = shape.devices * shape.compute_share if shape else quote.count
    if not quote.of_device and (not count or not 0 < count <= 100_000):
        reading.skipped.add("no accelerator, or no count of them", quote.line)
        return False
    each = quote.price if quote.of_device else quote.price / Decimal(str(count))
    name = device or printable(quote.device or quote.machine, 40)
    found.seen.append(Seen(device=name, price=each, terms=quote.terms or _OTHER_TERMS))
    source = f"file {PurePath(reading.source).name}"[:200]
    listed = found.lists.setdefault(quote.provider, Imported(
        file=reading.source, provider=quote.provider, copied=asked.today))  # fmt: skip
    for offer in offers:
        sold = catalog.shapes[offer.shape]
        price = quote.price if shape and not quote.of_device else each * Decimal(str(sold.devices * sold.compute_share))
        listed.offers[offer.id] = {
            "offer": offer.id, "provider": offer.provider, "shape": sold.name, "region": offer.region,
            "zone": offer.zone or "", "country": offer.country or "", "price_model": offer.price_model,
            PRICE: format(price.quantize(STEP).normalize(), "f"), "as_of": quote.day or asked.today,
            "status": "seen" if quote.day else "date-unknown", "quality": "", "source": source, "note": "",
        }  # fmt: skip
    if not offers and shape and quote.region and quote.terms and not quote.of_device:
        listed.offer(shape=shape.name, region=quote.region, zone="", price_model=quote.terms, price=quote.price,
                     source=source, as_of=quote.day)  # fmt: skip
    elif not offers:
        where = f" in {printable(quote.region, 40)}" if quote.region else ""
        found.unsold[f"{name} at {printable(quote.provider, 40) or 'a provider that is not told'}{where}"] = None
    return True


def _shape_of(quote: _Quote, catalog: Catalog) -> Shape | None:
    """The machine that a row names; of a provider that is not told the only one that has such a machine."""
    name = quote.machine or quote.device
    found = [
        shape for shape in catalog.shapes.values() if shape.name == name and quote.provider in ("", shape.provider)
    ]
    return found[0] if len(found) == 1 else None


def _device_of(quote: _Quote) -> str:
    """The device of a row, by its memory where that tells devices of one name apart."""
    said = quote.device or quote.machine
    if quote.gigabytes and (told := device_of(said, float(quote.gigabytes) * 2**30)):
        return told
    return device_of(said) or (device_of(f"{said} {quote.gigabytes}GB") if quote.gigabytes else "")


def _offers_of(quote: _Quote, catalog: Catalog, shape: Shape | None, device: str) -> list[Offer]:
    """Offers of the catalog that a price is of; none without a provider, a device and terms that are known."""
    if not (quote.provider and device and quote.terms):
        return []
    pattern = OfferPattern(provider=quote.provider, shape=shape.id if shape else None, device=None if shape else device,
                           region=quote.region or None, price_model=quote.terms)  # fmt: skip
    offers = _by_provider(catalog, quote.provider)
    covered = [each for each in offers if pattern.covers(each, catalog.devices[catalog.shapes[each.shape].device])]
    sized = [each for each in covered if catalog.shapes[each.shape].devices == quote.count]
    return covered if shape or quote.of_device else sized


def _by_provider(catalog: Catalog, provider: str) -> list[Offer]:
    return [offer for offer in catalog.offers if offer.provider == provider]


def _model_of(*said: str) -> str:
    """The price model of what is said of terms; on demand where nothing is, "" for other terms."""
    text = " ".join(said)
    return next((model for pattern, model in _TERMS if pattern.search(text)), "on_demand")


def _provider_of(name: str) -> str:
    """A provider as the catalog calls it."""
    return _PROVIDERS.get(plain(name), "-".join(name.lower().split()))[:60]


# tables, and records, of one's own


def _quotes(source: Source, reading: Reading, asked: Asked) -> Iterator[_Quote]:
    keys = head_keys(source)
    for tool, needed, opened in _ANSWERS:
        if source.head_text.lstrip()[:1] in ("{", "[") and needed <= keys:
            reading.tool = tool
            for part in source.parts:
                yield from opened(document_of(part), reading)
            return
    names, separator = header_of(source)
    names = names or list(dict.fromkeys(name for record in records_of(source)[:20] for name in record))
    columns = _prices_of(names)
    roles = {**_ROLES, **{f"price {number}": (plain(name),) for number, name in enumerate(columns)}}
    places = places_of(names, roles)
    alone = "count" not in places and "device" in places  # a price stands for one device
    rows = list(rows_of(source, roles, ("price 0",), reading.skipped) if separator and header_of(source)[0]
                else records_by_role(source, roles, reading.skipped))  # fmt: skip
    marks = {f"price {number}": DecimalSign() for number in range(len(columns))}
    for line, row in rows:
        for role, mark in marks.items():
            mark.see(_bare(row.get(role, ""))[0], line)
    told, said = signs_of(source, {name: marks[f"price {number}"] for number, name in enumerate(columns)}, separator)
    signs = {f"price {number}": told[name] for number, name in enumerate(columns)}
    if said:
        reading.understood["numbers"] = said
    of_device = [bool(_OF_DEVICE.search(english(name))) or alone or plain(name) in _RUNPOD for name in columns]
    reading.understood["price"] = (
        "of one device"
        if all(of_device)
        else "as each column says"
        if any(of_device)
        else "of a machine, with all its devices"
    )
    for line, row in rows:
        for number, name in enumerate(columns):
            yield from _quoted(row, f"price {number}", name, signs[f"price {number}"], of_device[number], line, reading)


def _quoted(
    row: Mapping[str, str], role: str, name: str, sign: str, of_device: bool, line: int, reading: Reading
) -> Iterator[_Quote]:
    """The price of one cell, or why it is none."""
    bare, currency = _bare(row.get(role, ""))
    currency = currency or row.get("currency", "").upper() or _currency_in(name) or "USD"
    number = number_in(bare, sign)
    price = price_of(str(number)) if number is not None else price_of(bare)
    if isinstance(price, str):
        reading.skipped.add(price, line)
    elif currency != "USD":
        reading.skipped.add(f"in {currency[:3]}: give the price in US dollars", line)
    elif not row.get("device") and not row.get("machine"):
        reading.skipped.add("no device or machine", line)
    else:
        provider, terms = _RUNPOD.get(plain(name), (row.get("provider", ""), _model_of(name, row.get("terms", ""))))
        price = price / 100 if re.search(r"(?i)(?:\b|_)cents?(?:\b|_)|¢", name) else price
        yield _Quote(price=price, of_device=of_device, device=row.get("device", ""), machine=row.get("machine", ""),
                     provider=_provider_of(provider), region=row.get("region", ""),
                     count=number_of(row.get("count", "")), terms=terms, line=line,
                     gigabytes=_gigabytes(row.get("memory", "")),
                     day=_day(row.get("day", "")))  # fmt: skip


def _gigabytes(text: str) -> str:
    """Whole gigabytes of a cell as 80, 80.0, 80 GB or 80 GiB; "" for another unit."""
    found = re.fullmatch(r"(\d{1,3})(?:\.0)?\s*(?:gi?b)?", text.strip(), re.I)
    return found.group(1) if found else ""


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text[:10]).isoformat()
    except ValueError:
        return ""


def _bare(cell: str) -> tuple[str, str]:
    """A price without its currency and what it is for, and the currency: $2.99/hr gives 2.99, USD."""
    found = re.fullmatch(r"\s*([A-Za-z]{3}|[$€£])?\s*([0-9][0-9.,]*)\s*([A-Za-z]{3}|[$€£])?\s*(?:(?:/|per).{0,20})?",
                         cell[:80])  # fmt: skip
    return (found.group(2), _currency_in(found.group(1) or found.group(3) or "")) if found else (cell[:80].strip(), "")


def _currency_in(text: str) -> str:
    return next((code for sign, code in _CURRENCIES.items() if sign in text.lower()), "")


# answers of clouds


def _lambda(document: Any, reading: Reading) -> Iterator[_Quote]:
    """Lambda's /instance-types: a price in cents for each type of machine."""
    reading.understood["price"] = "of a machine, in every region"
    for number, each in enumerate(mapping(mapping(document).get("data")).values(), start=1):
        kind = mapping(mapping(each).get("instance_type"))
        cents = price_of(str(kind.get("price_cents_per_hour") or ""))
        if isinstance(cents, str):
            reading.skipped.add(cents, number)
            continue
        yield _Quote(price=cents / 100, of_device=False, provider="lambda", machine=str(kind.get("name"))[:200],
                     device=str(kind.get("gpu_description") or kind.get("description"))[:200],
                     count=number_of(mapping(kind.get("specs")).get("gpus")), line=number)  # fmt: skip


def _aws_offers(document: Any, reading: Reading) -> Iterator[_Quote]:
    """The price list of EC2: products, and terms of each."""
    terms = mapping(mapping(document).get("terms"))
    for number, (sku, product) in enumerate(mapping(mapping(document).get("products")).items(), start=1):
        yield from _aws_product(product, {kind: mapping(of).get(sku) for kind, of in terms.items()}, reading, number)


def _aws_answers(document: Any, reading: Reading) -> Iterator[_Quote]:
    """Answers of aws pricing get-products: each a product with its terms, as text."""
    for number, each in enumerate(listed(mapping(document).get("PriceList")), start=1):
        try:
            said = mapping(loads(each) if isinstance(each, str) else each)
        except ValueError:
            said = {}
        yield from _aws_product(said.get("product"), mapping(said.get("terms")), reading, number)


def _aws_product(product: Any, terms: Mapping[str, Any], reading: Reading, number: int) -> Iterator[_Quote]:
    """Prices of a plain Linux machine with accelerators, by its terms."""
    reading.understood["price"] = "of a machine with Linux, shared tenancy and no software"
    about = mapping(mapping(product).get("attributes"))
    machine, count = str(about.get("instanceType") or "")[:200], number_of(about.get("gpu"))
    if not count and f"aws/{machine}" not in load_catalog().shapes:
        reading.skipped.add("no machine with accelerators", number)
        return
    if any(str(about.get(key, value)) != value for key, value in _PLAIN.items()):
        reading.skipped.add("another system, tenancy or software", number)
        return
    for kind, offers in terms.items():
        for offer in map(mapping, mapping(offers).values()):
            said = mapping(offer.get("termAttributes"))
            plainest = said.get("PurchaseOption") == "No Upfront" and said.get("OfferingClass") == "standard"
            model = "on_demand" if kind == "OnDemand" else _model_of(str(said.get("LeaseContractLength")), "term")
            if kind != "OnDemand" and not (plainest and model.startswith("commitment")):
                reading.skipped.add("another reservation than standard without upfront", number)
                continue
            for part in map(mapping, mapping(offer.get("priceDimensions")).values()):
                price = price_of(str(mapping(part.get("pricePerUnit")).get("USD") or ""))
                if isinstance(price, str) or part.get("unit") != "Hrs":
                    reading.skipped.add(price if isinstance(price, str) else "not by the hour", number)
                    continue
                yield _Quote(price=price, of_device=False, provider="aws", machine=machine, count=count, terms=model,
                             region=str(about.get("regionCode") or "")[:60], line=number,
                             day=_day(str(offer.get("effectiveDate") or "")))  # fmt: skip


def _aws_spot(document: Any, reading: Reading) -> Iterator[_Quote]:
    """aws ec2 describe-spot-price-history: the newest price of each machine and zone, the cheapest zone of a region."""
    reading.understood["price"] = "of a machine, in the cheapest zone of its region"
    newest: dict[tuple[str, str], tuple[str, str, int]] = {}
    for number, row in enumerate(map(mapping, listed(mapping(document).get("SpotPriceHistory"))), start=1):
        if "Linux" not in str(row.get("ProductDescription")):
            reading.skipped.add("no price of a machine with Linux", number)
            continue
        key = (str(row.get("InstanceType"))[:60], str(row.get("AvailabilityZone"))[:60])
        said = (str(row.get("Timestamp")), str(row.get("SpotPrice")), number)
        if key in newest:
            reading.skipped.add("an older price of a machine and zone", min(number, newest[key][2]))
        newest[key] = max(said, newest.get(key, said))
    cheapest: dict[tuple[str, str], tuple[Decimal, str, int]] = {}
    for (machine, zone), (time, text, number) in newest.items():
        price = price_of(text)
        if isinstance(price, str) or f"aws/{machine}" not in load_catalog().shapes:
            why = price if isinstance(price, str) else "no machine with accelerators that is known"
            reading.skipped.add(why, number)
            continue
        key = (machine, zone.rstrip("abcdef"))
        cheapest[key] = min((price, time, number), cheapest.get(key, (price, time, number)))
    for (machine, region), (price, time, number) in cheapest.items():
        yield _Quote(price=price, of_device=False, provider="aws", machine=machine, region=region, terms="spot",
                     day=_day(time), line=number)  # fmt: skip


def _runpod(document: Any, reading: Reading) -> Iterator[_Quote]:
    """RunPod's gpuTypes: prices of one device of each kind; 0 or none where it is not sold so."""
    reading.understood["price"] = "of one device"
    rows = listed(mapping(mapping(document).get("data")).get("gpuTypes")) or listed(document)
    for number, row in enumerate(map(mapping, rows), start=1):
        for name, value in row.items():
            if plain(name) in _RUNPOD and value:
                told = {"price": str(value), "device": str(row.get("displayName") or row.get("id"))[:200],
                        "memory": str(row.get("memoryInGb") or "")}  # fmt: skip
                yield from _quoted(told, "price", name, ".", True, number, reading)


def _vast(document: Any, reading: Reading) -> Iterator[_Quote]:
    """Offers of Vast: machines of many hosts, each with its price."""
    reading.understood["price"] = "of a machine"
    rows = listed(mapping(document).get("offers")) or listed(document)
    for number, row in enumerate(map(mapping, rows), start=1):
        price = price_of(str(row.get("dph_total") or ""))
        if isinstance(price, str):
            reading.skipped.add(price, number)
            continue
        yield _Quote(price=price, of_device=False, device=str(row.get("gpu_name"))[:200], terms="",
                     count=number_of(row.get("num_gpus")), line=number)  # fmt: skip


_ANSWERS: tuple[tuple[str, set[str], Callable[[Any, Reading], Iterator[_Quote]]], ...] = (
    ("Lambda instance types", {"instance_type", "price_cents_per_hour", "specs"}, _lambda),
    ("AWS price list", {"offerCode", "products", "instanceType"}, _aws_offers),
    ("aws pricing get-products", {"PriceList"}, _aws_answers),
    ("aws ec2 describe-spot-price-history", {"SpotPriceHistory", "SpotPrice"}, _aws_spot),
    ("RunPod", {"securePrice", "displayName", "memoryInGb"}, _runpod),
    ("Vast offers", {"dph_total", "num_gpus", "gpu_name"}, _vast),
)

KINDS = (
    Kind(name="quotes", title="prices by the hour",
         looks_for="a device or machine with a price per hour, a row each; instance types of Lambda, prices of AWS",
         recognise=recognise, read=read),
)  # fmt: skip
