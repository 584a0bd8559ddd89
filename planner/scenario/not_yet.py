"""Keys that plan/v1 defines and this version does not act on yet: refused when used, never ignored.

The one place that knows. When a feature arrives, its lines are deleted here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from planner.carriers import dataclass
from planner.scenario.mistakes import Mistake, mistake
from planner.yamlfile import BAD, Document, Steps


def _always(value: object) -> bool:
    return True


def _name_other_than(*accepted: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value not in accepted


def _structured(value: object) -> bool:
    return isinstance(value, dict | list)


@dataclass(frozen=True, slots=True)
class NotYet:
    """A key ("[]" stands for every item of a list), when it counts as used, and what to do instead."""

    path: str
    instead: str
    used: Callable[[object], bool] = _always


NOT_YET = (
    NotYet("currency", "write the rate, currency: {EUR: 1.08, as_of: 2026-11-01}", _name_other_than("USD")),
)  # fmt: skip


def not_yet(data: dict[str, Any], document: Document) -> Iterator[Mistake]:
    """Every use of a key that is not acted on yet."""
    for entry in NOT_YET:
        for path, value in _matches(data, entry.path.split("."), ()):
            if value is not BAD and entry.used(value):
                what = "'" + ".".join(str(step) for step in path if isinstance(step, str)) + "'"
                if entry.used is not _always and not _structured(value):
                    what += f" other than {_default(entry)}"
                yield mistake(document, path, "not-yet", f"{what} is part of plan/v1 but not implemented yet",
                              entry.instead, places=[document.key_place(path)])  # fmt: skip


def _default(entry: NotYet) -> str:
    for value in ("rule", "USD", "none", False, "fixed", 1, "on_demand"):
        if not entry.used(value):
            return "false" if value is False else str(value)
    return "a plain number"


def _matches(value: Any, parts: list[str], path: Steps) -> Iterator[tuple[Steps, Any]]:
    if not parts:
        yield path, value
        return
    key, many = parts[0].removesuffix("[]"), parts[0].endswith("[]")
    if not isinstance(value, dict) or key not in value:
        return
    below, path = value[key], (*path, key)
    if not many:
        yield from _matches(below, parts[1:], path)
    elif isinstance(below, list):
        for i, item in enumerate(below):
            yield from _matches(item, parts[1:], (*path, i))
    elif len(parts) == 1:  # one value where a list may stand
        yield from _matches(below, [], path)
