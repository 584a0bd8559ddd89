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
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from planner.catalog import model
from planner.catalog.model import Catalog
from planner.errors import PlanError
from planner.files import read_bytes, stamps_of, write_bytes

_PROGRAM = Path(__file__).parents[1]
_KEY_BYTES = hashlib.sha256().digest_size
_TUPLE, _MAPPING = 0, 1  # what a list that is no class of the catalog stands for, written before its items


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
            found: Catalog = _built(json.loads(body), _names())
            return found
    catalog = read()
    body = json.dumps(_listed(catalog), separators=(",", ":")).encode()
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


def _names() -> dict[str, tuple[type, tuple[str, ...]]]:
    """Classes of the catalog, and the names of their fields."""
    classes = [one for one in vars(model).values() if isinstance(one, type) and is_dataclass(one)]
    return {one.__name__: (one, tuple(field.name for field in fields(one))) for one in classes}


def _listed(value: Any) -> Any:
    """A value of the catalog as lists, each with what it stands for before its items, in the order of the fields."""
    if isinstance(value, tuple):
        return [_TUPLE, *map(_listed, value)]
    if isinstance(value, dict):
        return [_MAPPING, *(_listed(item) for pair in value.items() for item in pair)]
    if is_dataclass(value):
        return [type(value).__name__, *(_listed(getattr(value, field.name)) for field in fields(value))]
    return value


def _built(listed: list[Any], names: dict[str, tuple[type, tuple[str, ...]]]) -> Any:
    """What `_listed` was given."""
    what, *items = [_built(item, names) if type(item) is list else item for item in listed]
    if what == _TUPLE:
        return tuple(items)
    if what == _MAPPING:
        return dict(zip(items[::2], items[1::2]))
    kind, parts = names[what]
    return kind(**dict(zip(parts, items)))
