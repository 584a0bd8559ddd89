"""The shipped catalog as it was read, kept where Python keeps the bytecode of this package and under the same switches.

Reading its files takes several times as long as reading what is kept. That holds for the very files of the catalog and
of the program it was made from, by path, time of the last change and length, as Python's bytecode does. Where Python
writes no bytecode (`PYTHONDONTWRITEBYTECODE`, a folder that nobody may write to), nothing is kept, and the files are
read every time.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from planner.catalog import model
from planner.catalog.model import Catalog, Provenance
from planner.errors import PlanError
from planner.files import read_bytes, stamps_of, write_bytes

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
