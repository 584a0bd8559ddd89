"""Dataclasses that cost little to declare: the planner has some three hundred, and a question makes few of them.

The decorator of the standard library writes and compiles each method of each class when it is imported, which took
half of the time of all imports. Here the fields are the standard library's (`fields`, `replace` and `asdict` work),
comparing, hashing and printing are the same few functions for all, and a constructor is written when the first object
is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields, make_dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    from dataclasses import dataclass as declared

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, slots=False, kw_only=False):
        """The standard decorator, as far as the planner uses it."""

        def carrier(kind):
            own = vars(kind)
            made = declared(kind, init=False, repr=False, eq=False, match_args=False, slots=slots, kw_only=kw_only)
            _add_constructor(made)
            if repr and "__repr__" not in own:
                made.__repr__ = _shown
            if eq and "__eq__" not in own:
                made.__eq__ = _equal
                if "__hash__" not in own:
                    made.__hash__ = _hashed if frozen else None
            if frozen:
                made.__setattr__, made.__delattr__ = _not_set, _not_deleted
                if slots and "__getstate__" not in own:
                    made.__getstate__, made.__setstate__ = _state, _restored
            return made

        return carrier if cls is None else carrier(cls)


FEW = 16  # objects of a class that are filled field by field; a constructor is written for those that follow


def _add_constructor(kind: Any) -> None:
    made, known = 0, fields(kind)
    places = [each.name for each in known if each.init and not each.kw_only]

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        nonlocal made
        made += 1
        given = dict(zip(places, values)) | named
        if made > FEW or len(given) != len(values) + len(named) or not _filled(self, known, given):
            kind.__init__ = _constructor(kind)  # which also says what is wrong with what was given
            kind.__init__(self, *values, **named)

    kind.__init__ = __init__


def _filled(carrier: Any, known: Sequence[Field[Any]], given: Mapping[str, Any]) -> bool:
    """Whether what was given is what there are fields for; then they have it."""
    taken = 0
    for each in known:
        if each.init and each.name in given:
            value, taken = given[each.name], taken + 1
        elif each.default is not MISSING:
            value = each.default
        elif each.default_factory is not MISSING:
            value = each.default_factory()
        elif each.init:
            return False
        else:
            continue
        object.__setattr__(carrier, each.name, value)
    if taken == len(given) and hasattr(carrier, "__post_init__"):
        carrier.__post_init__()
    return taken == len(given)


def _constructor(kind: Any) -> Callable[..., None]:
    """The `__init__` that the standard decorator writes for such fields."""
    asked: list[tuple[str, Any, Any]] = [
        (each.name, object, field(default=each.default, default_factory=each.default_factory,
                                  init=each.init, kw_only=each.kw_only))
        for each in fields(kind)
    ]  # fmt: skip
    more = {"__post_init__": None} if hasattr(kind, "__post_init__") else {}
    like: Any = make_dataclass(
        kind.__name__, asked, namespace=more, frozen=kind.__setattr__ is _not_set, repr=False, eq=False
    )
    constructor: Callable[..., None] = like.__init__
    constructor.__qualname__, constructor.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    return constructor


def _values(carrier: Any) -> Any:
    """What is compared: the values of all fields."""
    kind = type(carrier)
    found = _getters.get(kind)
    if found is None:
        names = [each.name for each in fields(kind) if each.compare]
        found = _getters[kind] = attrgetter(*names, "__class__")  # a tuple, however few the fields
    return found(carrier)


_getters: dict[type, Callable[[Any], Any]] = {}


def _equal(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _values(self) == _values(other)


def _hashed(self: Any) -> int:
    return hash(_values(self))


def _shown(self: Any) -> str:
    cells = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({cells})"


def _not_set(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _not_deleted(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _restored(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state):
        object.__setattr__(self, each.name, value)
