"""Values of the catalog's classes as plain JSON data and back, by their type hints.

Numbers keep their kind: 4 stays a whole number and 4.0 a float, so that a catalog read back has the same digest.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any

from planner.catalog import model


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
