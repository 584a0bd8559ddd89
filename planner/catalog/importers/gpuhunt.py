"""Price lists of gpuhunt's catalog (PROVIDER.csv) as offers.

One row is one price: `spot` is a column of True and False, not a second price. The file's name is the provider.
Machines are told by the shapes of the catalog; a count of accelerators without a name says nothing, and a memory of 0
(TPU rows) is no fact. Source of the layout: dstackai/gpuhunt 0.1.34, seen 2026-11-21.
"""

from __future__ import annotations

import csv
import io
from pathlib import PurePath

from planner.catalog.importers.imported import Imported, countries_of, price_of
from planner.catalog.model import Catalog
from planner.errors import InputError, Place
from planner.files import StrPath, list_files, read_text

NEEDED = ("instance_name", "location", "price", "gpu_count", "gpu_name", "spot")
PROVIDERS = {"lambdalabs": "lambda"}  # gpuhunt's name -> ours
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
    provider = provider or PROVIDERS.get(stem, stem)
    found = Imported(file=name, provider=provider, copied=copied, countries=countries_of(catalog, provider))
    held = read_text(name, limit_bytes=MOST_BYTES) if text is None else text
    table = csv.DictReader(io.StringIO(held, newline=""))
    try:
        missing = [column for column in NEEDED if column not in (table.fieldnames or ())]
        if missing:
            place = Place(file=name, line=1, column=1)
            hint = "a file of gpuhunt's catalog has " + ", ".join(NEEDED)
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
