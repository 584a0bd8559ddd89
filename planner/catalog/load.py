"""Loads a hardware folder, or a frozen file, into a Catalog, checked and frozen; what ships is kept as it was read.

A folder stands alone, or `extends:` another catalog (`default`, or a folder or frozen file inside its own or beside
it): then it holds only what it adds and changes.

The shipped catalog is kept where Python keeps the bytecode of this package and under the same switches. Reading its
files takes several times as long as reading what is kept. That holds for the very files of the catalog and of the
program it was made from, by path, time of the last change and length, as Python's bytecode does. Where Python writes no
bytecode (`PYTHONDONTWRITEBYTECODE`, a folder that nobody may write to), nothing is kept, and the files are read every
time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.catalog import model
from planner.catalog.frozen import digest_of, read_frozen
from planner.catalog.layer import NOTHING, Layer
from planner.catalog.model import Catalog, Provenance
from planner.catalog.names import device_matches, find_device, find_shape, match_devices
from planner.catalog.own import read_changes
from planner.catalog.pricing import with_doubtful
from planner.catalog.reading import NOWHERE, Fields, Origin, Problems, is_date, open_yaml
from planner.errors import InputError, Place, PlanError
from planner.files import StrPath, contained_path, data_folder, read_bytes, stamps_of, write_bytes
from planner.yamlfile import Node

_PROGRAM = Path(__file__).parents[1]
_KEY_BYTES = hashlib.sha256().digest_size
_TUPLE, _MAPPING, _TOLD = 0, 1, 2  # what a list that is no class of the catalog stands for, written before its items


def kept(folder: Path, read: Callable[[], Catalog]) -> Catalog:
    """The catalog of a folder: what is kept of it, else read now and kept.

    Parameters
    ----------
    folder
        The shipped one.
    read
        Reads it.

    Raises
    ------
    InputError
        As `read` does.
    """
    path = _path()
    if path is None:
        return read()
    key = _key(folder)
    with contextlib.suppress(PlanError):
        data = read_bytes(path)
        body = data[2 * _KEY_BYTES :]
        if data[: 2 * _KEY_BYTES] == key + hashlib.sha256(body).digest():
            facts, listed = json.loads(body)
            kinds = _kinds()
            found: Catalog = _built(listed, kinds, [_built(each, kinds, []) for each in facts])
            return found
    catalog = read()
    told: dict[Provenance, int] = {}
    listed = _listed(catalog, told)
    body = json.dumps([[_listed(each, None) for each in told], listed], separators=(",", ":")).encode()
    with contextlib.suppress(PlanError):
        write_bytes(path, key + hashlib.sha256(body).digest() + body)
    return catalog


def _path() -> Path | None:
    """Beside the bytecode of this module; None where Python writes none."""
    if sys.dont_write_bytecode:
        return None
    try:
        bytecode = importlib.util.cache_from_source(__file__)
    except NotImplementedError:
        return None
    return Path(bytecode).with_suffix(".catalog")


def _key(folder: Path) -> bytes:
    """SHA-256 of what a catalog follows from: its files, and the modules of the program."""
    stamps = stamps_of(folder), stamps_of(_PROGRAM, ".py")
    return hashlib.sha256(repr((sys.version, stamps)).encode()).digest()


def _kinds() -> dict[str, tuple[type, list[Callable[[Any, Any], None]]]]:
    """Classes of the catalog, and what sets the fields of each: the constructor has seen their values before."""
    classes = [one for one in vars(model).values() if isinstance(one, type) and is_dataclass(one)]
    return {one.__name__: (one, [vars(one)[field.name].__set__ for field in fields(one)]) for one in classes}


def _listed(value: Any, told: dict[Provenance, int] | None) -> Any:
    """A value of the catalog as lists, each with what it stands for before its items, in the order of the fields.

    Where a fact is from is the same of thousands: `told` has each once, and its number stands for it.
    """
    if isinstance(value, tuple):
        return [_TUPLE, *(_listed(item, told) for item in value)]
    if isinstance(value, dict):
        return [_MAPPING, *(_listed(item, told) for pair in value.items() for item in pair)]
    if told is not None and isinstance(value, Provenance):
        return [_TOLD, told.setdefault(value, len(told))]
    if is_dataclass(value):
        return [type(value).__name__, *(_listed(getattr(value, field.name), told) for field in fields(value))]
    return value


def _built(listed: list[Any], kinds: Mapping[str, tuple[type, list[Any]]], told: Sequence[Any]) -> Any:
    """What `_listed` was given."""
    what = listed[0]
    if what == _TOLD:
        return told[listed[1]]
    items = [_built(item, kinds, told) if type(item) is list else item for item in listed[1:]]
    if what == _TUPLE:
        return tuple(items)
    if what == _MAPPING:
        return dict(zip(items[::2], items[1::2]))
    kind, setters = kinds[what]
    made: Any = object.__new__(kind)
    for put, item in zip(setters, items, strict=True):
        put(made, item)
    return made


Chain = tuple[Path, ...]  # catalogs from the one that was asked for to the one being read, links followed

LONGEST = 200  # characters of a name that is looked for; no file system takes one much longer
MOST_LAYERS = 8
_HINT = "write default, a folder inside this one such as base, or one beside it such as ../base"


def base_of(node: Node, folder: Path, chain: Chain, problems: Problems) -> Path | None:
    """The catalog that the text of a node names, seen from a folder; None after a problem was noted.

    Parameters
    ----------
    node
        What stands after `extends:`; a text is `default`, or a path within the folder or within that around it.
    folder
        Folder of the catalog that extends another.
    chain
        Catalogs from the one that was asked for to that of `folder`; one that stands there already makes a circle.
    problems
        Where mistakes go.
    """
    if not isinstance(node.value, str):
        problems.add("wrong-type", "'extends' wants the name of a catalog", node.place, _HINT)
        return None
    if len(node.value) > LONGEST:
        problems.add("no-catalog", f"'{node.value[:40]}…' is no catalog", node.place, _HINT)
        return None
    try:
        found = _resolved(node.value, folder)
    except InputError as error:
        problems.add(error.problems[0].reference, error.problems[0].message, node.place, _HINT)
        return None
    if found in chain:
        circle = " -> ".join(path.name for path in (*chain[chain.index(found) :], found))
        problems.add("circular-extends", f"the catalog extends itself: {circle}", node.place, "leave one 'extends' out")
    elif len(chain) >= MOST_LAYERS:
        problems.add("too-deep", f"more than {MOST_LAYERS} catalogs extend each other", node.place, "merge some")
    elif not ((found / "catalog.yaml").is_file() or found.is_file()):
        problems.add("no-catalog", f"'{node.value}' is no catalog", node.place, _HINT)
    else:
        return found
    return None


def _resolved(text: str, folder: Path) -> Path:
    if text == "default":
        return data_folder("hardware").resolve()
    here = folder.resolve()
    if text.startswith("../"):
        return contained_path(here.parent, text.removeprefix("../"))
    return contained_path(here, text)


__all__ = ["device_matches", "find_device", "find_shape", "load_catalog", "match_devices"]

SCHEMA = "catalog/v1"
DEFAULT = "default"  # the one that ships, where others are named beside it


def load_catalog(path: StrPath | None = None, *, prices_until: str = "") -> Catalog:
    """The catalog of a folder or a frozen file, or the one that ships.

    Parameters
    ----------
    path
        A folder with a catalog.yaml, or a file that `plan catalog freeze` wrote. A folder replaces the shipped
        catalog as a whole unless its catalog.yaml says `extends:`.
    prices_until
        ISO date: only prices of that day or earlier count. Of an offer with prices of several dates the newest is
        taken; one that has none is left out.

    Raises
    ------
    InputError
        Everything that is wrong with the files at once, with file, line and column.
    """
    if path is None:
        shipped = data_folder("hardware")
        return _known(shipped, prices_until, stamps_of(shipped))
    return dataclasses.replace(_loaded(Path(path), prices_until), named=os.fspath(path))


@lru_cache(maxsize=4)
def _known(folder: Path, prices_until: str, stamps: tuple[tuple[str, int, int], ...]) -> Catalog:
    """What ships is read once in a process, and again when its files were changed; of all prices also between two."""
    return _loaded(folder, prices_until) if prices_until else kept(folder, lambda: _loaded(folder, ""))


def _loaded(path: Path, prices_until: str) -> Catalog:
    problems = Problems()
    catalog = _read(path, prices_until, (), problems)
    problems.demand_none()
    if prices_until and not catalog.offers:
        message, hint = f"no price of catalog {catalog.name} is as old as {prices_until}", "name a later date"
        days = sorted(one.provenance.as_of for one in _read(path, "", (), Problems()).offers if one.provenance.as_of)
        hint += f": its oldest price is of {days[0]}" if days else ""
        raise InputError.of("no-prices", message, place=Place(file=catalog.path), hint=hint)
    catalog = with_doubtful(catalog)
    return dataclasses.replace(catalog, digest=digest_of(catalog))


def _read(path: Path, until: str, above: Chain, problems: Problems) -> Catalog:
    if path.is_file() and path.name != "catalog.yaml":
        return _until(read_frozen(path), until)
    folder = path.parent if path.is_file() else path
    fields = open_yaml(folder / "catalog.yaml", SCHEMA, problems)
    base = _base(fields, folder, until, (*above, folder.resolve()), problems)
    alone = base is NOTHING
    name = fields.text("name", folder.resolve().name)
    place = fields.left.get("as_of", fields.node).place
    as_of = fields.text("as_of", required=alone)
    if as_of and not is_date(as_of):
        problems.add("bad-date", f"as_of of the catalog is '{as_of}'", place, "write 2026-11-21")
    fields.text("currency", "USD", among=("USD",))
    origin = NOWHERE if alone else Origin(f"{name}/catalog.yaml", as_of, "user")
    changes = read_changes(fields, Origin(f"{name}/catalog.yaml", as_of, "user"), until)
    fields.done()
    layer = Layer(
        folder=folder,
        name=name,
        as_of=as_of or base.as_of,
        base=base,
        origin=origin,
        changes=changes,
        until=until,
        problems=problems,
    )
    return layer.read()


def _base(fields: Fields, folder: Path, until: str, chain: Chain, problems: Problems) -> Catalog:
    """The catalog that is extended, or nothing; its own mistakes end the reading."""
    node = fields.take("extends")
    if node is None:
        return NOTHING
    found = base_of(node, folder, chain, problems)
    problems.demand_none()
    if found is None:
        return NOTHING
    shipped = data_folder("hardware")
    if not until and found in (shipped, shipped / "catalog.yaml"):
        return _known(shipped, until, stamps_of(shipped))
    base = _read(found, until, chain, problems)
    problems.demand_none()
    return base


def _until(catalog: Catalog, date: str) -> Catalog:
    if not date:
        return catalog
    return dataclasses.replace(catalog, offers=tuple(o for o in catalog.offers if o.provenance.as_of <= date))
