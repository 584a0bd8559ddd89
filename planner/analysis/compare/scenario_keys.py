"""What sets two scenarios apart, key by key, and a scenario in between.

Keys are those of --set, as their steps: ("training", "pretrain-8b", "deadline"). Workloads are matched by name; one
that is in one scenario alone is a key by itself. Lists of anything else are one value.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Data = Mapping[str, object]
Key = tuple[str, ...]
NAMED = ("training", "serving")  # lists of mappings with a name
WORDS = ("schema", "name", "title")  # what a scenario is called decides nothing


def leaves(data: Data) -> dict[Key, Any]:
    """Every value of a resolved scenario by its key."""
    found: dict[Key, Any] = {}
    for key, value in data.items():
        if key in NAMED and isinstance(value, list):
            for item in _listed(value):
                found |= _below((key, str(item.get("name"))), {k: v for k, v in item.items() if k != "name"})
        elif key not in WORDS:
            found |= _below((key,), value)
    return found


def _below(key: Key, value: Any) -> dict[Key, Any]:
    if not isinstance(value, Mapping) or not value:
        return {key: value}
    return {path: leaf for step, inner in value.items() for path, leaf in _below((*key, str(step)), inner).items()}


def workloads(data: Data) -> dict[Key, Data]:
    """Every workload by its kind and name."""
    return {(kind, str(item.get("name"))): item for kind in NAMED for item in _listed(data.get(kind))}


def _listed(found: object) -> list[Data]:
    """Mappings of a list; nothing where a scenario was edited into something else."""
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def changed_keys(old: Data, new: Data) -> Iterator[tuple[Key, Any, Any]]:
    """Key, old and new value of everything that differs, None where it is not stated; workloads of one side whole."""
    before, after = workloads(old), workloads(new)
    alone = [*(key for key in before if key not in after), *(key for key in after if key not in before)]
    for key in alone:
        yield key, before.get(key), after.get(key)
    one, other = leaves(old), leaves(new)
    for key in dict.fromkeys([*one, *other]):
        if key[:2] not in alone and one.get(key) != other.get(key):
            yield key, one.get(key), other.get(key)


def blended(old: Data, new: Data, keys: Iterable[Key]) -> dict[str, Any]:
    """The old scenario with some keys as they are in the new one.

    Parameters
    ----------
    old, new
        Resolved scenarios.
    keys
        What to take from the new one; what that does not state is taken away.
    """
    data: dict[str, Any] = copy.deepcopy(dict(old))
    values, after = leaves(new), workloads(new)
    for key in keys:
        if key[0] in NAMED and len(key) == 2:
            _put_workload(data, key, after.get(key))
        else:
            _put(data, key, copy.deepcopy(values.get(key)))
    return data


def _put_workload(data: dict[str, Any], key: Key, workload: Data | None) -> None:
    kind, name = key
    rest = [item for item in data.get(kind) or [] if str(item.get("name")) != name]
    data[kind] = rest if workload is None else [*rest, copy.deepcopy(dict(workload))]
    if not data[kind]:
        del data[kind]


def _put(data: dict[str, Any], key: Key, value: Any) -> None:
    """Set a value at a key; None takes the key away, and the mappings that it leaves empty."""
    at, path = data, key
    if key[0] in NAMED:
        at, path = next(item for item in data[key[0]] if str(item.get("name")) == key[1]), key[2:]
    above = []
    for step in path[:-1]:
        inner = at.get(step)
        if not isinstance(inner, dict):
            inner = at[step] = {}
        above.append((at, step))
        at = inner
    if value is not None:
        at[path[-1]] = value
        return
    at.pop(path[-1], None)
    for owner, step in reversed(above):
        if not owner[step]:
            del owner[step]
