"""A catalog as one normalised file with its digest, and back.

One entry a line in a stable order, so that two frozen catalogs can be compared line by line. The digest is of the
content, however it was written down, and the one that plans record: a folder and its frozen file have the same. Numbers
keep their kind: 4 stays a whole number and 4.0 a float, so that a catalog read back has the same digest.
"""

from __future__ import annotations

import hashlib
import json
import math
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from planner.catalog import model
from planner.catalog.check import facts_of
from planner.catalog.layer import aliases_of
from planner.catalog.model import Catalog, Fabric, TrainingFamily
from planner.catalog.offers import PRICE_MODELS, QUALITIES, is_price
from planner.catalog.reading import STATUSES, Problems, is_date
from planner.errors import InputError, Place
from planner.files import StrPath, read_text

NOT_CONTENT = ("path", "digest", "aliases", "own_prices", "named")
# fields that came later count where they say something: catalogs that were frozen before keep their name
_LATER: Mapping[type[Any], Mapping[str, object]] = {
    Fabric: {"sustained_share": 1.0, "facts": {}},
    TrainingFamily: {"work": 1.0},
}
_GETTERS: dict[type[Any], Callable[[object], tuple[object, ...]]] = {}
_PLAIN = frozenset({str, int, float, bool, type(None)})


def digest_of(catalog: Catalog) -> str:
    """SHA-256 over every fact in a canonical order; files, line ends, comments and order do not count."""
    later = () if catalog.training_beyond else ("training_beyond",)
    names = [name for name in catalog.__slots__ if name not in (*NOT_CONTENT, *later)]
    parts = [f"{name}={_canonical(getattr(catalog, name))}" for name in names]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _canonical(value: object) -> str:
    if isinstance(value, str | int | float | None):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = zip(map(repr, value), _all_canonical(value.values()))
        return "{" + ",".join(sorted(f"{key}:{item}" for key, item in pairs)) + "}"
    if isinstance(value, tuple):
        return "(" + ",".join(_all_canonical(value)) + ")"
    kind: type[Any] = type(value)
    return kind.__name__ + "(" + ",".join(_all_canonical(_fields_of(kind)(value))) + ")"


def _all_canonical(values: Iterable[object]) -> list[str]:
    """Each on its own; most are plain, which is seen without a call."""
    return [repr(value) if type(value) in _PLAIN else _canonical(value) for value in values]


def _fields_of(kind: type[Any]) -> Callable[[object], tuple[object, ...]]:
    if kind not in _GETTERS:
        names: tuple[str, ...] = getattr(kind, "__slots__", ())
        plain = len(names) > 1 and kind not in _LATER
        _GETTERS[kind] = attrgetter(*names) if plain else _one_by_one
    return _GETTERS[kind]


def _one_by_one(value: object) -> tuple[object, ...]:
    fields = [(name, getattr(value, name)) for name in getattr(type(value), "__slots__", ())]
    later = _LATER.get(type(value), {})
    return tuple(field for name, field in fields if name not in later or field != later[name])


class PlainError(ValueError):
    """Plain data is not of the type that is wanted; `path` are the keys on the way to it."""

    def __init__(self, message: str, path: tuple[str, ...]) -> None:
        super().__init__(message)
        self.path = path


def to_plain(value: Any) -> Any:
    """A value as dict, list, str, int, float, bool or None; a mapping by pairs of names becomes a list of pairs."""
    if isinstance(value, Mapping):
        if any(isinstance(key, tuple) for key in value):
            return [[list(key), to_plain(value[key])] for key in sorted(value)]
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if is_dataclass(value):
        return {part.name: to_plain(getattr(value, part.name)) for part in fields(value)}
    return value


def from_plain(kind: Any, value: Any, path: tuple[str, ...] = ()) -> Any:
    """Plain data as a value of a type.

    Parameters
    ----------
    kind
        What is wanted: a class of the catalog, or a type hint of one of its fields.
    value
        As `to_plain` gives it.
    path
        Keys and places on the way to the value, for errors; empty at the top.

    Raises
    ------
    PlainError
        The data are of another type, lack a field, have one too many, or hold a number that is not finite.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else from_plain(next(arm for arm in inner if arm is not type(None)), value, path)
    if origin is tuple:
        items = _wanted(value, list, path)
        kinds = [inner[0]] * len(items) if inner[-1] is ... else inner
        if len(kinds) != len(items):
            raise PlainError(f"wants {len(kinds)} values, not {len(items)}", path)
        return tuple(from_plain(arm, item, (*path, str(i))) for i, (arm, item) in enumerate(zip(kinds, items)))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(inner, value, path)
    if is_dataclass(kind):
        return _instance(kind, value, path)
    return _scalar(kind, value, path)


def _mapping(inner: tuple[Any, ...], value: Any, path: tuple[str, ...]) -> dict[Any, Any]:
    key_kind, item_kind = inner
    if key_kind is str:
        rows = _wanted(value, dict, path)
        return {key: from_plain(item_kind, item, (*path, key)) for key, item in rows.items()}
    found = {}
    for number, pair in enumerate(_wanted(value, list, path)):
        here = (*path, str(number))
        if len(_wanted(pair, list, here)) != 2:
            raise PlainError("wants a pair", here)
        found[from_plain(key_kind, pair[0], here)] = from_plain(item_kind, pair[1], here)
    return found


def _instance(kind: Any, value: Any, path: tuple[str, ...]) -> Any:
    rows, hints, parts = _wanted(value, dict, path), _hints(kind), fields(kind)
    strange = rows.keys() - {part.name for part in parts}
    if strange:
        raise PlainError(f"has no '{min(strange)[:60]}'", path)
    found = {}
    for part in parts:
        if part.name in rows:
            found[part.name] = from_plain(hints[part.name], rows[part.name], (*path, part.name))
        elif part.default is MISSING and part.default_factory is MISSING:
            raise PlainError(f"lacks '{part.name}'", path)
    return kind(**found)


def _scalar(kind: Any, value: Any, path: tuple[str, ...]) -> Any:
    if kind is float and type(value) is int:
        return value
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        raise PlainError(f"wants a {kind.__name__}", path)
    return value


def _wanted(value: Any, kind: type, path: tuple[str, ...]) -> Any:
    if type(value) is not kind:
        raise PlainError(f"wants a {'list' if kind is list else 'mapping'}", path)
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, vars(model))


SCHEMA = "catalog/frozen/v1"
_HINT = "freeze the folder again: plan catalog freeze --hardware DIR --out FILE"


def frozen_text(catalog: Catalog) -> str:
    """The catalog as the text of a frozen file: everything in it that is content, in a stable order."""
    parts = [f'"schema": {json.dumps(SCHEMA)}', f'"sha256": {json.dumps(catalog.digest)}']
    for part in sorted(fields(catalog), key=lambda part: part.name):
        if part.name not in NOT_CONTENT:
            parts.append(f"{json.dumps(part.name)}: {_lines(to_plain(getattr(catalog, part.name)))}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(value: Any) -> str:
    """Entries of a list or mapping on a line of their own."""
    if isinstance(value, dict):
        rows = [f"{_one(key)}: {_one(value[key])}" for key in sorted(value)]
        return "{\n" + ",\n".join(rows) + "\n}" if rows else "{}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(_one, value)) + "\n]" if value else "[]"
    return _one(value)


def _one(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def read_frozen(path: StrPath) -> Catalog:
    """The catalog of a frozen file.

    Raises
    ------
    InputError
        The file is no frozen catalog, was changed after it was frozen, or holds what no catalog may.
    """
    name, text = str(path), read_text(path)
    document = _document(name, text)
    stated = document.pop("sha256", None)
    made = {"path": name, "digest": "", "aliases": {}, "own_prices": [], "named": ""}
    try:
        catalog: Catalog = from_plain(Catalog, document | made)
    except PlainError as error:
        where = ".".join(error.path) or "the file"
        place = _place(name, text, error.path)
        raise InputError.of("wrong-type", f"{where} of {name} {error}", place=place, hint=_HINT) from None
    problems = Problems()
    aliases = aliases_of(catalog.devices.values(), problems, Path(name))
    catalog = replace(catalog, aliases=aliases)
    for reference, message, path_of in (*_unsound(catalog), *_undated(catalog)):
        problems.add(reference, message, _place(name, text, path_of), _HINT)
    problems.demand_none()
    digest = digest_of(catalog)
    if digest != stated:
        message = (
            f"{name} holds catalog {digest[:12]} but says {str(stated)[:12]}: it was changed, or is of another version"
        )
        raise InputError.of("changed-catalog", message, place=Place(file=name, line=3, column=1), hint=_HINT)
    return replace(catalog, digest=digest)


def _document(name: str, text: str) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = Place(file=name, line=error.lineno, column=error.colno)
        message = f"{name} is neither a catalog folder nor a frozen catalog: {error.msg}"
        raise InputError.of("bad-json", message, place=place, hint="name the folder that holds catalog.yaml") from None
    except (ValueError, RecursionError):
        raise InputError.of("bad-json", f"{name} is no frozen catalog", place=Place(file=name), hint=_HINT) from None
    if not isinstance(document, dict) or document.pop("schema", None) != SCHEMA:
        raise InputError.of("wrong-schema", f"{name} is no frozen catalog", place=Place(file=name), hint=_HINT)
    return document


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _place(name: str, text: str, path: tuple[str, ...]) -> Place:
    """The line on which an entry begins, where the file still has one entry a line."""
    if path[:1] == ("offers",) and path[1:]:
        begin = text.find('\n"offers": [\n')
        lines = text[:begin].count("\n") + 3 + int(path[1]) if begin >= 0 and path[1].isdigit() else 0
        return Place(file=name, line=lines, column=1)
    for key in path[1::-1]:
        begin = text.find(f"\n{json.dumps(key, ensure_ascii=False)}: ")
        if begin >= 0:
            return Place(file=name, line=text[: begin + 1].count("\n") + 1, column=1)
    return Place(file=name)


def _unsound(catalog: Catalog) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """What the reader of a folder would have refused: reference, sentence, way to the entry."""
    for kind, found in (("devices", catalog.devices), ("shapes", catalog.shapes)):
        yield from _misnamed(kind, found)
    for device in catalog.devices.values():
        if device.memory_bytes <= 0:
            yield "out-of-range", f"device {device.id} has no memory", ("devices", device.id)
    for shape in catalog.shapes.values():
        if shape.device not in catalog.devices:
            yield "unknown-device", f"{shape.id} is of '{shape.device}', which is no device", ("shapes", shape.id)
        if shape.devices < 1 or not 0 < shape.compute_share <= 1:
            yield "out-of-range", f"{shape.id} has {shape.devices} devices", ("shapes", shape.id)
    ids: set[str] = set()
    for number, offer in enumerate(catalog.offers):
        here = ("offers", str(number))
        if offer.shape not in catalog.shapes:
            yield "unknown-shape", f"{offer.id}: there is no shape '{offer.shape}'", here
        if not is_price(offer.price_microusd_per_hour):
            yield "bad-price", f"{offer.id} costs {offer.price_microusd_per_hour} micro-dollars", here
        if offer.price_model not in PRICE_MODELS or offer.quality not in QUALITIES:
            yield "unknown-value", f"{offer.id} is '{offer.price_model}', '{offer.quality}'", here
        if offer.id in ids:
            yield "duplicate-id", f"offer {offer.id} is given twice", here
        ids.add(offer.id)


def _undated(catalog: Catalog) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Dates that the calendar does not hold, and words that are no status."""
    if not is_date(catalog.as_of):
        yield "bad-date", f"as_of of the catalog is '{catalog.as_of[:40]}'", ("as_of",)
    for file, owner, name, fact in facts_of(catalog):
        if fact.as_of and not is_date(fact.as_of):
            yield "bad-date", f"{owner}: as_of of {name} is '{fact.as_of[:40]}'", (file, owner)
        if fact.status not in ("", *STATUSES):
            yield "unknown-value", f"{owner}: status of {name} is '{fact.status[:40]}'", (file, owner)


def _misnamed(kind: str, found: Mapping[str, Any]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for name, item in found.items():
        if item.id != name:
            yield "duplicate-id", f"{name} of {kind} says it is '{item.id}'", (kind, name)
