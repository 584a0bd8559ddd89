"""The fingerprint of a catalog: its content, however it was written down."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

from planner.catalog.model import Catalog, Fabric

NOT_CONTENT = ("path", "digest", "aliases", "own_prices", "named")
# fields that came later count where they say something: catalogs that were frozen before keep their name
_LATER: Mapping[type[Any], Mapping[str, object]] = {Fabric: {"sustained_share": 1.0, "facts": {}}}
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
