"""Plans with one leaf changed: every change that a forger may make to a number, a word, a key or a list."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from planner.plan.document import digest_of

Document = dict[str, Any]
Path = tuple[str | int, ...]
INSERTED = "smuggled"


class Forgery(NamedTuple):
    """One change: where, what is done there, and what stands there afterwards."""

    path: Path
    kind: str
    value: Any = None

    @property
    def name(self) -> str:
        """As it is printed: "workloads[0].allocations[0].hours ×2"."""
        return f"{spelled(self.path)} {self.kind}"


def spelled(path: Path) -> str:
    """A path as people write it."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def without_indexes(path: Path) -> str:
    """A path with the indexes of lists left out, which leaves of one kind share."""
    return spelled(tuple("*" if isinstance(step, int) else step for step in path))


def forgeries(document: Any, path: Path = ()) -> Iterator[Forgery]:
    """Every change of one leaf, every key left out or put in, every element taken or added."""
    if isinstance(document, dict):
        if path and document:
            yield Forgery((*path, INSERTED), "inserted", 1)
        for key, value in document.items():
            yield Forgery((*path, key), "left out")
            yield from forgeries(value, (*path, key))
        if not document:
            yield Forgery((*path, INSERTED), "inserted", 1)
    elif isinstance(document, list):
        yield Forgery((*path, len(document)), "added", copy.deepcopy(document[-1]) if document else INSERTED)
        for number, value in enumerate(document):
            yield Forgery((*path, number), "taken")
            yield from forgeries(value, (*path, number))
    else:
        yield from (Forgery(path, kind, value) for kind, value in other_values(document))


def other_values(value: Any) -> Iterator[tuple[str, Any]]:
    """What a forger may put in the place of a value: other numbers, other words, the same number as another type."""
    if value is None:
        yield from (("0", 0), ("a word", INSERTED))
        return
    yield "null", None
    if isinstance(value, bool):
        yield from (("negated", not value), ("as a number", int(value)))
    elif isinstance(value, str):
        yield from (("another word", value + "x"), ("emptied" if value else "filled", "" if value else "x"))
    elif value == 0:
        yield from (("1", type(value)(1)), ("-1", type(value)(-1)), ("true", bool(value)), ("as text", str(value)))
    else:
        more = max(abs(value) // 100, 1) if isinstance(value, int) else value * 0.01
        yield from (("+1 %", value + more), ("-1 %", value - more), ("×2", value * 2), ("sign", -value))
        yield "as text", str(value)
        other = float(value) if isinstance(value, int) else int(value) if value.is_integer() else None
        if other is not None:
            yield "as another type", other


def forged(document: Document, forgery: Forgery) -> Document:
    """A copy of a document with one change, under a seal that fits it; what did not change is shared."""
    copied: Document = dict(document)
    node: Any = copied
    for step in forgery.path[:-1]:
        node[step] = node[step].copy()
        node = node[step]
    last = forgery.path[-1]
    if forgery.kind in ("left out", "taken"):
        del node[last]
    elif forgery.kind == "added":
        node.append(forgery.value)
    else:
        node[last] = forgery.value
    return copied if forgery.path == ("sha256",) else {**copied, "sha256": digest_of(copied)}
