"""Price lists of gpuhunt's catalog (PROVIDER.csv) and SkyPilot's (catalogs/vN/PROVIDER/vms.csv) as offers.

A row is a price in a place, not availability. Machines are told by the shapes of the catalog alone. Nothing is guessed:
a row without a shape, a price or a meaning is skipped, and listed with the reason.

Of gpuhunt `spot` is a column of True and False, not a second price. The file's name is the provider. A count of
accelerators without a name says nothing, and a memory of 0 (TPU rows) is no fact. Source of the layout:
dstackai/gpuhunt 0.1.34, seen 2026-11-21.

What SkyPilot's file says of memory and hosts is wrong too often (`GpuInfo` has six spellings, and holds GB, MiB or
products of both) and is not read.

* Columns stand in any order; lines end in either way; an empty price is one that is not asked for.
* A spot price above the one on demand means that the columns are swapped, or worse: both are suspect. One that equals
  it, or is exactly a tenth of it, is a placeholder: suspect.
* 700.0 stands for no price (TPU v6e): a sentinel, never chosen.
* Google sells hosts and accelerators in separate rows, which are added where both have a price in a zone; of the B200
  the accelerator's row holds the host already. Far cheaper rows of one machine are probably sold on other terms.
* TPU rows have the slice in their name; the count of their accelerators is always 1.
* Prices of Mithril are floors of an auction.

Source of the layout: skypilot-org/skypilot-catalog, files seen 2026-11-21.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import PurePath

from planner.carriers import dataclass
from planner.catalog.importers.imported import NOT_OFFERED, UNREADABLE, Imported, countries_of, price_of
from planner.catalog.model import Catalog, Shape
from planner.errors import InputError, Place
from planner.files import StrPath, list_files, read_text

GPUHUNT_COLUMNS = ("instance_name", "location", "price", "gpu_count", "gpu_name", "spot")
GPUHUNT_PROVIDERS = {"lambdalabs": "lambda"}  # gpuhunt's name -> ours
MOST_BYTES = 64_000_000


def read_gpuhunt(
    path: StrPath, catalog: Catalog, *, provider: str = "", source: str = "", as_of: str = "", copied: str = "",
    text: str | None = None,
) -> Imported:  # fmt: skip
    """One PROVIDER.csv as offers; the file's name is the provider unless `provider` is given, `text` what it holds.

    Parameters
    ----------
    path
        The file; messages name it.
    catalog
        Whose shapes tell what a row sells.
    provider
        Whose prices it holds; empty: as the file is called.
    source
        Where the file is from, as path@commit; empty: the file's own path.
    as_of
        ISO date of the prices; empty: not known.
    copied
        ISO date of the import, which stands where `as_of` is not known.
    text
        What the file holds, where it was read already; None: it is read.

    Raises
    ------
    InputError
        The file cannot be read, or lacks a column.
    """
    name = str(path)
    stem = PurePath(name).stem
    provider = provider or GPUHUNT_PROVIDERS.get(stem, stem)
    found = Imported(file=name, provider=provider, copied=copied, countries=countries_of(catalog, provider))
    held = read_text(name, limit_bytes=MOST_BYTES) if text is None else text
    table = csv.DictReader(io.StringIO(held, newline=""))
    try:
        missing = [column for column in GPUHUNT_COLUMNS if column not in (table.fieldnames or ())]
        if missing:
            place = Place(file=name, line=1, column=1)
            hint = "a file of gpuhunt's catalog has " + ", ".join(GPUHUNT_COLUMNS)
            raise InputError.of("missing-column", f"there is no column {missing[0]}", place=place, hint=hint)
        for row in table:
            cells = {key: (value or "").strip() for key, value in row.items() if key and not isinstance(value, list)}
            found.rows += 1
            _take(found, catalog, table.line_num, cells, source or name, as_of)
    except csv.Error as error:
        place = Place(file=name, line=table.line_num, column=1)
        raise InputError.of("bad-csv", f"not a CSV table: {error}", place=place) from None
    return found


def read_folder(
    folder: StrPath, catalog: Catalog, *, source: str = "", as_of: str = "", copied: str = ""
) -> list[Imported]:
    """Every CSV file of a folder, in order of their names.

    Parameters
    ----------
    folder
        Of files PROVIDER.csv; those in folders below are not read.
    catalog
        Whose shapes tell what a row sells.
    source
        Where the files are from, as path@commit; empty: each file's own path.
    as_of
        ISO date of the prices; empty: not known.
    copied
        ISO date of the import, which stands where `as_of` is not known.

    Raises
    ------
    InputError
        The folder holds none, or a file cannot be read.
    """
    files = list_files(folder, "*.csv")
    if not files:
        raise InputError.of(
            "file-not-found", f"{folder} holds no price list", hint="name a folder of PROVIDER.csv files"
        )
    return [read_gpuhunt(file, catalog, source=source, as_of=as_of, copied=copied) for file in files]


def _take(found: Imported, catalog: Catalog, line: int, row: dict[str, str], source: str, as_of: str) -> None:
    what = f"{row['instance_name'] or '(no name)'} in {row['location']}"
    reason = _refusal(found, catalog, row)
    price = price_of(row["price"])
    if reason:
        found.skip(line, what, reason)
        return
    shape = catalog.shapes[f"{found.provider}/{row['instance_name']}"]
    model = "spot" if row["spot"].lower() == "true" else "on_demand"
    if isinstance(price, str):
        found.no_price(line, what, price, (shape.name, row["location"], model))
        return
    new = found.offer(
        shape=shape.name, region=row["location"], zone="", price_model=model, price=price, source=source, as_of=as_of
    )
    if new:
        found.taken += 1
    else:
        found.skip(line, what, "the same row again")


def _refusal(found: Imported, catalog: Catalog, row: dict[str, str]) -> str:
    """Why a row cannot be an offer; empty when it can."""
    count = row["gpu_count"]
    if count in ("", "0"):
        return "no accelerator"
    if not row["gpu_name"]:
        return "accelerators without a name"
    if row["spot"].lower() not in ("true", "false"):
        return f"spot is '{row['spot'][:20]}', neither True nor False"
    shape = catalog.shapes.get(f"{found.provider}/{row['instance_name']}")
    if shape is None:
        return "no shape of this machine"
    if count != str(shape.devices):
        return f"the row has {count[:10]} accelerators, the shape {shape.devices}"
    return ""


SKYPILOT_COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "SpotPrice", "Region")
SENTINEL = Decimal(700)
SKYPILOT_FOLDERS = {"do": "digitalocean"}  # the folder's name -> ours
AUCTIONS = ("mithril",)
# machines whose hosts are billed apart from these accelerators: Google Cloud document "GPU machine types", 2026-11-21
GCP_MACHINES = {
    "A100": ("a2-highgpu", "a2-megagpu"),
    "A100-80GB": ("a2-ultragpu",),
    "H100": ("a3-highgpu",),
    "H100-MEGA": ("a3-megagpu",),
    "H200": ("a3-ultragpu",),
    "L4": ("g2-standard",),
}
GCP_WHOLE = {"B200": ("a4-highgpu",)}  # the accelerator's price holds the host
LEVEL = Decimal("0.75")  # of the dearest zone: below it a Google price is one of other terms
MODELS = (("on_demand", "Price"), ("spot", "SpotPrice"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One line of the file, cells by name."""

    line: int
    cells: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.cells.get(name, "").strip()

    @property
    def what(self) -> str:
        """How the file names it."""
        name = self["InstanceType"] or self["AcceleratorName"] or "(no name)"
        place = self["AvailabilityZone"] or self["Region"]
        return f"{name} in {place}" if place else name

    @property
    def prices(self) -> dict[str, Decimal]:
        """Price by model, of those that are asked."""
        found = {model: price_of(self[column]) for model, column in MODELS}
        return {model: price for model, price in found.items() if not isinstance(price, str)}

    @property
    def unread(self) -> bool:
        """Whether a price is written that is no number: then no other of the row is believed either."""
        return any(price_of(self[column]) == UNREADABLE for _, column in MODELS)

    @property
    def count(self) -> float | None:
        """Accelerators, where a number is given."""
        try:
            return float(self["AcceleratorCount"]) if self["AcceleratorCount"] else None
        except ValueError:
            return None


def read_skypilot(
    path: StrPath, catalog: Catalog, *, provider: str = "", source: str = "", as_of: str = "", copied: str = "",
    text: str | None = None,
) -> Imported:  # fmt: skip
    """One vms.csv as offers.

    Parameters
    ----------
    path
        The file; its folder names the provider unless `provider` is given.
    catalog
        Whose shapes and devices tell what a row sells.
    source
        Where the file is from, as path@commit; default: the file's own path.
    as_of
        ISO date of the prices; empty: not known.
    copied
        ISO date of the import, which stands where `as_of` is not known.
    text
        What the file holds, where it was read already.

    Raises
    ------
    InputError
        The file cannot be read, or lacks a column.
    """
    name = str(path)
    folder = name.replace("\\", "/").rsplit("/", 2)
    provider = provider or SKYPILOT_FOLDERS.get(folder[-2], folder[-2]) if len(folder) > 1 else provider
    if not provider or not provider.replace("-", "").replace("_", "").isalnum():
        raise InputError.of("missing-field", f"{name} does not say whose prices it holds", hint="give --provider")
    found = Imported(file=name, provider=provider, copied=copied, countries=countries_of(catalog, provider))
    reader = _Reader(catalog=catalog, found=found, source=source or name, as_of=as_of)
    reader.read(_rows(name, read_text(name, limit_bytes=MOST_BYTES) if text is None else text))
    return reader.found


def _rows(name: str, text: str) -> list[_Row]:
    table = csv.reader(io.StringIO(text, newline=""))
    try:
        header = [cell.strip() for cell in next(table, [])]
        missing = [column for column in SKYPILOT_COLUMNS if column not in header]
        if missing:
            place = Place(file=name, line=1, column=1)
            hint = "a file vms.csv of SkyPilot's catalog has " + ", ".join(SKYPILOT_COLUMNS)
            raise InputError.of("missing-column", f"there is no column {missing[0]}", place=place, hint=hint)
        return [_Row(line=table.line_num, cells=dict(zip(header, cells))) for cells in table if any(cells)]
    except csv.Error as error:
        place = Place(file=name, line=table.line_num, column=1)
        raise InputError.of("bad-csv", f"not a CSV table: {error}", place=place) from None


@dataclass(slots=True, kw_only=True)
class _Reader:
    catalog: Catalog
    found: Imported
    source: str
    as_of: str

    def read(self, rows: list[_Row]) -> None:
        """Turn every row into offers or a reason."""
        self.found.rows = len(rows)
        if self.found.provider == "gcp":
            self._google(rows)
            return
        for row in rows:
            self._machine(row)

    def _machine(self, row: _Row) -> None:
        """A row that sells one whole machine."""
        shape = self.catalog.shapes.get(f"{self.found.provider}/{row['InstanceType']}")
        if shape is None:
            known = row["AcceleratorName"] and row.count != 0
            self.found.skip(row.line, row.what, "no shape of this machine" if known else "no accelerator")
            return
        wrong = self._contradiction(row, shape)
        if wrong:
            self.found.skip(row.line, row.what, wrong)
            return
        self._offer(row, shape, row.prices)

    def _contradiction(self, row: _Row, shape: Shape) -> str:
        """What the row says of the accelerators against what the shape has; empty when nothing."""
        count, name = row.count, row["AcceleratorName"]
        whole = shape.devices * shape.compute_share
        if count and name and count not in (shape.devices, whole):
            return f"the row has {count:g} accelerators, the shape {shape.devices}"
        device = self.catalog.aliases.get(name.lower(), name.lower()) if name else ""
        if device in self.catalog.devices and device.split("-")[0] != shape.device.split("-")[0]:
            return f"the row sells {name}, the shape holds {shape.device}"
        return ""

    def _offer(
        self, row: _Row, shape: Shape, prices: Mapping[str, Decimal], note: str = "", quality: str = "",
        host: _Row | None = None,
    ) -> None:  # fmt: skip
        unread = row.unread or (host is not None and host.unread)
        if unread or not prices:
            place = row["AvailabilityZone"] or row["Region"]
            models = ("auction",) if self.found.provider in AUCTIONS else tuple(model for model, _ in MODELS)
            self.found.no_price(row.line, row.what, UNREADABLE if unread else NOT_OFFERED,
                                *((shape.name, place, model) for model in models))  # fmt: skip
            return
        flags = _flags(prices)
        kept = [
            self.found.offer(
                shape=shape.name,
                region=row["Region"],
                zone=row["AvailabilityZone"],
                price_model="auction" if self.found.provider in AUCTIONS else model,
                price=price,
                source=self.source,
                as_of=self.as_of,
                quality="suspect" if self.found.provider in AUCTIONS else flags[model][0] or quality,
                note="the floor of an auction" if self.found.provider in AUCTIONS else flags[model][1] or note,
            )
            for model, price in prices.items()
            if not (self.found.provider in AUCTIONS and model == "spot")
        ]
        if any(kept):
            self.found.taken += 1
        else:
            self.found.skip(row.line, row.what, "the same row again")

    # ---- Google

    def _google(self, rows: list[_Row]) -> None:
        hosts: dict[tuple[str, str], _Row] = {}
        for row in rows:
            if row["InstanceType"]:
                hosts.setdefault((row["InstanceType"], row["AvailabilityZone"]), row)
        dearest: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        for row in rows:
            for price in row.prices.values() if not row["InstanceType"] else ():
                if price != SENTINEL and price == row.prices.get("on_demand"):
                    key = (row["AcceleratorName"], row["AcceleratorCount"])
                    dearest[key] = max(dearest[key], price)
        used: set[int] = set()
        for row in rows:
            if not row["InstanceType"]:
                used |= self._accelerator(row, hosts, dearest[row["AcceleratorName"], row["AcceleratorCount"]])
        self._left_hosts(rows, used)

    def _accelerator(self, row: _Row, hosts: Mapping[tuple[str, str], _Row], dearest: Decimal) -> set[int]:
        """A row without a machine: a slice of TPUs, or the accelerators of machines; lines of the hosts used."""
        name = row["AcceleratorName"]
        if name.startswith("tpu-"):
            shape = self.catalog.shapes.get(f"gcp/{name}")
            if shape is None:
                self.found.skip(row.line, row.what, "no such slice is known")
            else:
                self._offer(row, shape, row.prices)
            return set()
        low = 0 < row.prices.get("on_demand", Decimal(0)) < LEVEL * dearest
        note = "far below the other zones: probably sold on other terms" if low else ""
        whole = list(self._machines(row, GCP_WHOLE))
        if whole:
            self._offer(row, whole[0], row.prices, note, "suspect" if low else "")
            return set()
        used = set()
        for shape in self._machines(row, GCP_MACHINES):
            host = hosts.get((shape.name, row["AvailabilityZone"]))
            if host is not None:
                prices = {m: row.prices[m] + host.prices[m] for m in row.prices if m in host.prices}
                self._offer(row, shape, prices, note, "suspect" if low else "", host)
                used.add(host.line)
        if not used:
            self.found.skip(row.line, row.what, "an accelerator without a machine in its zone")
        return used

    def _machines(self, row: _Row, families: Mapping[str, tuple[str, ...]]) -> Iterator[Shape]:
        """Shapes of the catalog that take so many of these accelerators."""
        for family in families.get(row["AcceleratorName"], ()):
            for shape in self.catalog.shapes.values():
                if shape.provider == "gcp" and shape.name.startswith(f"{family}-") and shape.devices == row.count:
                    yield shape

    def _left_hosts(self, rows: list[_Row], used: set[int]) -> None:
        for row in rows:
            if row["InstanceType"] and row.line in used:
                self.found.taken += 1
            elif row["InstanceType"]:
                self.found.skip(row.line, row.what, "a host without a price of its accelerators in its zone")


def _flags(prices: Mapping[str, Decimal]) -> dict[str, tuple[str, str]]:
    """Quality and note of each price."""
    flags = {model: ("sentinel", "700.0 stands for no price") if price == SENTINEL else ("", "")
             for model, price in prices.items()}  # fmt: skip
    full, spot = prices.get("on_demand"), prices.get("spot")
    if full is None or spot is None or SENTINEL in (full, spot):
        return flags
    if spot > full:
        return dict.fromkeys(prices, ("suspect", "spot above on demand: columns swapped, or a price of other terms"))
    if spot == full:
        flags["spot"] = ("suspect_spot", "equals the price on demand: no real spot market")
    elif spot * 10 == full:
        flags["spot"] = ("suspect_spot", "exactly a tenth of the price on demand: a placeholder")
    return flags
