"""What `sky show-gpus` (later: `sky gpus list`) prints: quantities, prices of machines, nodes of your clusters."""

from __future__ import annotations

import re
from decimal import Decimal

from planner.catalog.importers.imported import Imported, countries_of, price_of
from planner.catalog.importers.tool_lists import SKYPILOT_FOLDERS
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.reading.inventory import Node, device_of
from planner.reading.inventory import told_of as machines_told
from planner.reading.kinds import Asked, Kind, Match, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.price_lists import Seen, told_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, printable, rows_of

_CELLS = re.compile(r"\s{2,}")
_QUANTITIES = re.compile(r"\d{1,5}(?:\s*,\s*\d{1,5})*")
_DEVICE = ("GPU_NAME", "GPU", "COMMON_GPU", "OTHER_GPU", "GOOGLE_TPU")
_PRICES = (("on_demand", "HOURLY_PRICE"), ("spot", "HOURLY_SPOT_PRICE"))
_COUNTS = ("AVAILABLE_QUANTITIES", "REQUESTABLE_QTY_PER_NODE", "QTY_PER_NODE")
_UTILIZATIONS = ("UTILIZATION", "GPU UTILIZATION")
_UNUSABLE = re.compile(r"cordon|not.?ready|unhealthy", re.I)
_SIZES = {"A100": 40 * 2.0**30}  # what it calls so has 40 GB: the other is A100-80GB
_SHOWN = 60
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
        if self.reading.taken < _SHOWN:
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
        prices = {terms: price_of(row.get(column, "").replace("$", "").replace(",", "")) for terms, column in _PRICES}
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
        machines_told(reading, found.nodes)
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
    Kind(name="sky-gpus", title="accelerators that SkyPilot sees",
         looks_for="a line of GPU and AVAILABLE_QUANTITIES, or of INSTANCE_TYPE and HOURLY_PRICE (sky show-gpus)",
         recognise=recognise_sky, read=read_sky),
    Kind(name="sky-accelerators", title="accelerators by provider",
         looks_for="a first line of AcceleratorName and Providers", recognise=recognise_offered, read=read_offered),
)  # fmt: skip
