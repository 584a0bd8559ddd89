"""Price lists of clouds, as offers that `plan solve --prices` takes: SkyPilot, gpuhunt, Azure, AWS.

What a list sells is told by the shapes of the catalog (`planner/catalog/importers/`); this module recognises a list,
finds whose prices it holds by the machines in it, and shows what a device costs.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import PurePath

from planner.carriers import dataclass
from planner.catalog.importers import tool_lists
from planner.catalog.importers.cloud_lists import ListTerms
from planner.catalog.importers.imported import NOT_OFFERED, UNREADABLE, Imported, price_of
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.catalog.offers import PRICE
from planner.catalog.refresh import MOST_BYTES, list_of, refreshed
from planner.errors import InputError
from planner.reading.inventory import device_of
from planner.reading.jsonlines import head_keys
from planner.reading.kinds import Asked, Kind, Match, Piece, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import printable

_PAIR = re.compile(r'"[a-z0-9-]+\.[a-z0-9-]+/[a-z]{2}(?:-[a-z]+)+-\d"\s*:\s*(?:[0-9.eE+-]+|null)\s*[,}]')
_SURE_PAIRS = 3
_SHARE = 0.5  # of the machines of a list that a provider must sell for it to be theirs
_ANY_MODEL = "on_demand"  # stands for terms that nobody said, while prices are shown only
_SHOWN = 24
_SAID = {"on_demand": "on demand", "commitment_1y": "for 1 year", "commitment_3y": "for 3 years"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one device costs an hour in a row of a list [USD/h]."""

    device: str
    price: Decimal
    terms: str


def recognise(source: Source) -> Match:
    """Machines with prices under the names of a publisher."""
    if source.head_text.lstrip()[:1] in ("{", "["):
        pairs = len(_PAIR.findall(source.head_text[:20_000]))
        if pairs >= _SURE_PAIRS:
            return Match(score=0.97, found=("TYPE/REGION with a price",), tool="AWS")
        keys = head_keys(source)
        marks = {"skuName": "skuName" in keys, "productName": "productName" in keys,
                 "retailPrice or pricePerHour": bool({"retailPrice", "pricePerHour"} & keys),
                 "unitOfMeasure": "unitOfMeasure" in keys}  # fmt: skip
        api = ("description", "serviceRegions", "pricingInfo", "usageUnit", "tieredRates")
        rows = ("sku", "geo_taxonomy", "pricing_unit", "tiered_rates")
        google = (fit({name: name in keys for name in form}, tool="Google Cloud SKUs", ceiling=0.97)
                  for form in (api, rows))  # fmt: skip
        matches = [fit(marks, tool="Azure Retail Prices", ceiling=0.97), *google]
        return max(matches, key=lambda match: match.score)
    names = set(header_of(source)[0])
    forms = {"SkyPilot": tool_lists.SKYPILOT_COLUMNS, "gpuhunt": tool_lists.GPUHUNT_COLUMNS}
    matches = [fit({name: name in names for name in needed}, tool=tool, ceiling=0.98) for tool, needed in forms.items()]
    return max(matches, key=lambda match: match.score)


def read(source: Source, asked: Asked) -> Reading:
    """Offers of each list; where it is not told whose they are, or on which terms, what a device costs is shown."""
    reading = Reading(kind="price-list", title="price list of a cloud", source=source.name, of="prices")
    catalog = load_catalog()
    lists: list[Imported] = []
    seen: list[Seen] = []
    for path in source.paths:
        part = source if len(source.paths) == 1 else Source(path)
        text = part.text(MOST_BYTES)
        found, told = _offers(part, text, catalog, asked, reading)
        if told:
            lists.append(found)
            reading.taken += found.taken
            for skip in found.skipped:
                reading.skipped.add(skip.reason, skip.line)
            seen += seen_of(found, catalog)
        else:
            seen += _unsold(found, text, catalog, reading)
    if not reading.taken:
        reasons = "; ".join(f"{count:,} of them: {why}" for why, (count, _) in reading.skipped.reasons.items())
        raise refused(source, "nothing-taken", f"no price of {source.name} could be taken", reasons[:600])
    told_of(reading, lists, seen, catalog)
    return reading


def _offers(
    part: Source, text: str, catalog: Catalog, asked: Asked, reading: Reading
) -> tuple[Imported, bool]:  # fmt: skip
    """The offers of a list, and whether all is told of them; else the file as far as it can be shown."""
    given = {"source": f"file {PurePath(part.name).name}"[:200], "copied": asked.today}
    pairs = text.lstrip()[:1] == "{" and recognise(part).tool == "AWS"
    provider = "" if text.lstrip()[:1] in ("[", "{") else provider_of(part, text, catalog)
    try:
        if pairs:
            reading.note("the list does not say on which terms its prices are, so no offers are written: plan catalog "
                         "refresh FILE --price-model commitment_1y --into my-hardware")  # fmt: skip
            return list_of(text, part.name, catalog, ListTerms(), price_model=_ANY_MODEL, **given), False
        if not provider and text.lstrip()[:1] not in ("[", "{"):
            reading.note("the list does not say whose prices it holds, so no offers are written: plan catalog refresh "
                         "FILE --provider NAME --into my-hardware")  # fmt: skip
            return Imported(file=part.name, provider=""), False
        if provider:
            reading.understood["provider"] = provider
        return list_of(text, part.name, catalog, ListTerms(), provider=provider, **given), True
    except InputError as error:
        problem = error.problems[0]
        hint = f"plan catalog refresh FILE --into my-hardware asks: {problem.hint}"
        raise refused(part, problem.reference, problem.message, hint if problem.hint else "see the file") from None


def provider_of(part: Source, text: str, catalog: Catalog) -> str:
    """Whose machines most of a table's are; else whose name its folder or file bears; "" for nobody's.

    Parameters
    ----------
    part
        One file, of which the path may tell it.
    text
        What the file holds: a table with a first line of names.
    catalog
        Whose shapes tell which machines a provider sells.
    """
    machines: set[str] = set()
    slices = False  # of TPUs, which Google alone sells, and which no column of machines names
    for row in _table(text):
        device, name = (
            row.get("AcceleratorName") or row.get("gpu_name"),
            row.get("InstanceType") or row.get("instance_name"),
        )
        slices = slices or bool(device and device.startswith("tpu-") and not name)
        if device and name:
            machines.add(name)
    if slices:
        return "gcp"
    sold = Counter({shape.provider: 0 for shape in catalog.shapes.values()})
    for shape in catalog.shapes.values():
        sold[shape.provider] += shape.name in machines
    named = [
        (PurePath(part.name).parent.name, tool_lists.SKYPILOT_FOLDERS),
        (PurePath(part.name).stem, tool_lists.GPUHUNT_PROVIDERS),
    ]
    path = next((whose for name, known in named if (whose := known.get(name, name)) in sold), "")
    (best, count), (_, second) = sold.most_common(2)
    if count > second and count >= _SHARE * len(machines):
        return best
    return path


def _table(text: str) -> Iterator[dict[str, str]]:
    try:
        for row in csv.DictReader(io.StringIO(text.replace("\0", "\ufffd"), newline="")):
            yield {key.strip(): value.strip() for key, value in row.items() if key and isinstance(value, str)}
    except csv.Error:
        return


def seen_of(found: Imported, catalog: Catalog) -> list[Seen]:
    """What a device costs in each offer."""
    seen = []
    for row in found.offers.values():
        shape = catalog.shapes[f"{row['provider']}/{row['shape']}"]
        if not row["quality"]:
            price = Decimal(row[PRICE]) / Decimal(str(shape.devices * shape.compute_share))
            seen.append(Seen(device=shape.device, terms=row["price_model"], price=price))
    return seen


def _unsold(found: Imported, text: str, catalog: Catalog, reading: Reading) -> list[Seen]:
    """What devices cost in a list of which something is not told; no offers follow from it."""
    if found.offers:
        reading.taken += found.taken
        for skip in found.skipped:
            reading.skipped.add(skip.reason, skip.line)
        return [Seen(device=each.device, price=each.price, terms="terms not said") for each in seen_of(found, catalog)]
    seen = []
    for line, row in enumerate(_table(text), start=2):
        name = row.get("AcceleratorName") or row.get("gpu_name") or ""
        count = number_of(row.get("AcceleratorCount") or row.get("gpu_count") or "")
        memory = number_of(row.get("gpu_memory", ""))
        device = device_of(name, memory * 2.0**30 if memory and memory > 0 else None) or printable(name, 40)
        prices = [("on_demand", price_of(row.get("Price") or row.get("price") or "")),
                  ("spot", price_of(row.get("SpotPrice") or ""))]  # fmt: skip
        if row.get("spot", "").lower() == "true":
            prices = [("spot", prices[0][1])]
        paid = [(terms, price) for terms, price in prices if not isinstance(price, str)]
        if not name or not count or not 0 < count <= 100_000:
            reading.skipped.add("no accelerator", line)
        elif not paid:
            reading.skipped.add(UNREADABLE if UNREADABLE in dict(prices).values() else NOT_OFFERED, line)
        else:
            reading.taken += 1
            seen += [Seen(device=device, terms=terms, price=price / Decimal(str(count))) for terms, price in paid]
    return seen


def told_of(reading: Reading, lists: list[Imported], seen: Iterable[Seen], catalog: Catalog) -> None:
    """What a device costs, and the offers as a file of prices.

    Parameters
    ----------
    reading
        Takes figures and the piece.
    lists
        Files whose offers are written; of two equal ids that of the first file stays. Without offers nothing is
        written.
    seen
        What devices cost in each row, to be shown.
    catalog
        What the offers are held against.
    """
    by_device: defaultdict[tuple[str, str], list[Decimal]] = defaultdict(list)
    for each in seen:
        by_device[each.device, each.terms].append(each.price)
    for (device, terms), prices in sorted(by_device.items())[:_SHOWN]:
        what = f"{device} {_SAID.get(terms, terms)}"
        reading.show(f"{what}, cheapest", float(min(prices)), "USD/h a device")
        if max(prices) > min(prices):
            reading.show(f"{what}, dearest", float(max(prices)), "USD/h a device")
    reading.understood["prices"] = "US dollars an hour of a machine, without tax"
    every = Imported(file="", provider="", offers=dict(pair for one in reversed(lists) for pair in one.offers.items()))
    if not every.offers:
        return
    changes = refreshed(lists, catalog)
    for label, changed in (("new", changes.new), ("dearer", changes.dearer), ("cheaper", changes.cheaper),
                           ("as before", changes.same)):  # fmt: skip
        reading.show(f"offers against the catalog: {label}", len(changed))
    if any(row["status"] == "date-unknown" for row in every.offers.values()):
        reading.understood["date"] = "not told: the day on which the list was read"
    says = f"{len(every.offers):,} offers: plan solve SCENARIO --prices FILE takes them"
    reading.pieces.append(Piece(what="prices", name="prices.csv", text=every.text(), says=says))


KINDS = (
    Kind(name="price-list", title="price list of a cloud",
         looks_for="InstanceType, AcceleratorName, Price (SkyPilot); instance_name, gpu_name, price (gpuhunt); skuName "
                   "(Azure); TYPE/REGION (AWS)",
         recognise=recognise, read=read),
)  # fmt: skip
