"""Price lists of clouds, as offers that `plan solve --prices` takes: SkyPilot, gpuhunt, Azure, AWS.

And what `sky show-gpus` (later: `sky gpus list`) prints: quantities, prices of machines, nodes of your clusters.

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
from planner.catalog.importers.imported import NOT_OFFERED, UNREADABLE, Imported, countries_of, price_of
from planner.catalog.importers.tool_lists import SKYPILOT_FOLDERS
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.catalog.offers import PRICE
from planner.catalog.refresh import MOST_BYTES, list_of, refreshed
from planner.errors import InputError
from planner.reading import inventory
from planner.reading.inventory import Node, device_of
from planner.reading.jsonlines import head_keys
from planner.reading.kinds import Asked, Kind, Match, Piece, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, printable, rows_of

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


_CELLS = re.compile(r"\s{2,}")
_QUANTITIES = re.compile(r"\d{1,5}(?:\s*,\s*\d{1,5})*")
_DEVICE = ("GPU_NAME", "GPU", "COMMON_GPU", "OTHER_GPU", "GOOGLE_TPU")
_SKY_PRICES = (("on_demand", "HOURLY_PRICE"), ("spot", "HOURLY_SPOT_PRICE"))
_COUNTS = ("AVAILABLE_QUANTITIES", "REQUESTABLE_QTY_PER_NODE", "QTY_PER_NODE")
_UTILIZATIONS = ("UTILIZATION", "GPU UTILIZATION")
_UNUSABLE = re.compile(r"cordon|not.?ready|unhealthy", re.I)
_SIZES = {"A100": 40 * 2.0**30}  # what it calls so has 40 GB: the other is A100-80GB
_SKY_SHOWN = 60
_USE = re.compile(r"(\d{1,5}) of (\d{1,5}) free")


def _sky_head(line: str) -> list[str]:
    """Columns of one of its tables; none for any other line."""
    cells = _CELLS.split(line.strip()[:1000])
    prices = "HOURLY_PRICE" in cells and "INSTANCE_TYPE" in cells
    counts = len(cells) >= 2 and bool(set(_COUNTS) & set(cells))
    nodes = bool({"NODE_NAME", "NODE"} & set(cells)) and bool({"TOTAL_GPUS", *_UTILIZATIONS} & set(cells))
    return cells if prices or counts or nodes else []


def recognise_sky(source: Source) -> Match:
    """A table of accelerators with quantities, with prices, or by node."""
    heads = [head for line in source.first_lines if (head := _sky_head(line))]
    missing = () if heads else ("a line of GPU and AVAILABLE_QUANTITIES, or of INSTANCE_TYPE and HOURLY_PRICE",)
    return Match(score=0.97 if heads else 0.0, found=tuple(heads[0][:4]) if heads else (), missing=missing,
                 tool="sky show-gpus")  # fmt: skip


class _Found:
    """What the rows of its tables come to."""

    def __init__(self, reading: Reading, asked: Asked) -> None:
        self.reading, self.asked = reading, asked
        self.catalog: Catalog = load_catalog()
        self.lists: dict[str, Imported] = {}
        self.nodes: list[Node] = []
        self.seen: list[Seen] = []
        self.unknown: dict[str, None] = {}

    def take(self, row: dict[str, str]) -> str:
        """Take one row, or say why it is not taken."""
        named = next((row[key] for key in _DEVICE if key in row), next(iter(row.values())))
        name = printable(named)
        size = number_of(row.get("DEVICE_MEM", "").upper().rstrip("GB")) or 0
        memory_bytes = size * 2.0**30 or _SIZES.get(name)
        device = device_of(name, memory_bytes) or device_of(name)
        if not device and re.search(r"\w", name) and len(self.unknown) < 100:
            self.unknown[name] = None
        if node := row.get("NODE_NAME") or row.get("NODE"):
            return self._node(node, name, row, memory_bytes)
        if "HOURLY_PRICE" in row:
            return self._price(row, device or name)
        counts = next((row[key] for key in _COUNTS if row.get(key)), "")
        if not _QUANTITIES.fullmatch(counts.strip()):
            return "no device with quantities"
        if self.reading.taken < _SKY_SHOWN:
            found = ", ".join(re.findall(r"\d+", counts))
            self.reading.show(f"{name} ({device or 'not in the catalog'})", found, "a node")
        return ""

    def _node(self, node: str, name: str, row: dict[str, str], memory_bytes: float | None) -> str:
        use = _USE.search(next((row[key] for key in _UTILIZATIONS if key in row), ""))
        if _UNUSABLE.search(row.get("NODE STATUS", "")):
            return "cordoned or not ready"
        count = number_of(use.group(2) if use else row.get("TOTAL_GPUS", ""))
        if count is None or count != int(count) or not 1 <= count <= 1024:
            return "no count of accelerators"
        self.nodes.append(Node(name=node[:300], device=name, devices=int(count), memory_bytes=memory_bytes))
        return ""

    def _price(self, row: dict[str, str], device: str) -> str:
        count = number_of(row.get("QTY", ""))
        cells = {terms: row.get(column, "").replace("$", "").replace(",", "") for terms, column in _SKY_PRICES}
        prices = {terms: price_of(cell) for terms, cell in cells.items()}
        paid = {terms: price for terms, price in prices.items() if not isinstance(price, str)}
        if not paid or not count or not 0 < count <= 100_000:
            return "no price of a count of accelerators"
        self.seen += [Seen(device=device, terms=terms, price=price / Decimal(str(count)))
                      for terms, price in paid.items()]  # fmt: skip
        cloud = row.get("CLOUD", "").lower()
        provider = SKYPILOT_FOLDERS.get(cloud, cloud)
        shape = self.catalog.shapes.get(f"{provider}/{row.get('INSTANCE_TYPE', '')}")
        if shape is None or shape.devices * shape.compute_share != count:
            return ""  # it is shown, and no offer
        if provider not in self.lists:
            self.lists[provider] = Imported(file=self.reading.source, provider=provider, copied=self.asked.today,
                                            countries=countries_of(self.catalog, provider))  # fmt: skip
        for terms, price in paid.items():
            self.lists[provider].offer(shape=shape.name, region=row.get("REGION", "")[:80], zone="", price=price,
                                       price_model=terms, source="sky show-gpus", as_of="")  # fmt: skip
        return ""


def read_sky(source: Source, asked: Asked) -> Reading:
    """Quantities on offer, prices of machines as offers, and nodes of one's own clusters as hardware that is owned."""
    reading = Reading(kind="sky-gpus", title="accelerators that SkyPilot sees", source=source.name, of="rows",
                      tool="sky show-gpus")  # fmt: skip
    found = _Found(reading, asked)
    head: list[str] = []
    for number, line in enumerate(source.lines(), start=1):
        cells = _CELLS.split(line.strip()[:2000])
        if again := _sky_head(line):
            head = again
        elif not line.strip() or (len(cells) == 1 and not _QUANTITIES.search(line)):
            continue  # titles of tables
        elif not head or len(cells) != len(head):
            reading.skipped.add("no row of a table of accelerators", number)
        elif reason := found.take(dict(zip(head, cells))):
            reading.skipped.add(reason, number)
        else:
            reading.taken += 1
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no row of {source.name} could be taken", "sky show-gpus > FILE")
    if found.unknown:
        reading.note(f"not in the catalog: {', '.join(list(found.unknown)[:20])}")
    if found.seen:
        told_of(reading, list(found.lists.values()), found.seen, found.catalog)
    if found.nodes:
        inventory.told_of(reading, found.nodes)
    if not found.seen and not found.nodes:
        reading.note("it says what can be asked for, without prices: sky show-gpus H100:8 prints them")
    return reading


# accelerators and who offers them, as a table

_OFFERED = {"device": ("acceleratorname", "gpu", "accelerator"), "providers": ("providers", "clouds")}


def recognise_offered(source: Source) -> Match:
    """AcceleratorName and Providers."""
    places = places_of(header_of(source)[0], _OFFERED)
    return fit({role: role in places for role in _OFFERED}, tool="SkyPilot", ceiling=0.95)


def read_offered(source: Source, asked: Asked) -> Reading:
    """Which providers have which device."""
    reading = Reading(kind="sky-accelerators", title="accelerators by provider", source=source.name, tool="SkyPilot",
                      of="rows")  # fmt: skip
    unknown: list[str] = []
    for line, row in rows_of(source, _OFFERED, ("device", "providers"), reading.skipped):
        name, providers = (
            printable(row["device"]),
            [each.strip() for each in row["providers"].split(",") if each.strip()],
        )
        if not name or not providers:
            reading.skipped.add("no accelerator with a provider", line)
            continue
        reading.taken += 1
        device = device_of(name)
        if not device:
            unknown.append(name)
        if reading.taken <= 60:
            reading.show(f"{name} ({device or 'not in the catalog'})", len(providers), printable(", ".join(providers)))
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no row of {source.name} could be taken", "see the file")
    if unknown:
        reading.note(f"not in the catalog: {', '.join(unknown[:20])}")
    reading.note("it says who offers what, without prices")
    return reading


KINDS = (
    Kind(name="price-list", title="price list of a cloud",
         looks_for="InstanceType, AcceleratorName, Price (SkyPilot); instance_name, gpu_name, price (gpuhunt); skuName "
                   "(Azure); TYPE/REGION (AWS)",
         recognise=recognise, read=read),
    Kind(name="sky-gpus", title="accelerators that SkyPilot sees",
         looks_for="a line of GPU and AVAILABLE_QUANTITIES, or of INSTANCE_TYPE and HOURLY_PRICE (sky show-gpus)",
         recognise=recognise_sky, read=read_sky),
    Kind(name="sky-accelerators", title="accelerators by provider",
         looks_for="a first line of AcceleratorName and Providers", recognise=recognise_offered, read=read_offered),
)  # fmt: skip
