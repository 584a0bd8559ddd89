"""Dataclasses that cost little to declare: the planner has some three hundred, and a question makes few of them.

The decorator of the standard library writes and compiles each method of each class when it is imported, which took
half of the time of all imports. Here the fields are the standard library's (`fields`, `replace` and `asdict` work),
made when somebody first asks for them; comparing, hashing and printing are the same few functions for all, and a
constructor is written when some objects were made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields, make_dataclass
from dataclasses import dataclass as declared
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, slots=False, kw_only=False):
        """The standard decorator, as far as the planner uses it."""

        def carrier(kind):
            own = vars(kind)
            made = _slotted(kind) if slots else kind
            made.__dataclass_fields__ = _Fields(kind, kw_only)
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


class _Fields:
    """Stands for the fields of a carrier until somebody asks for them: few carriers of a run are ever asked."""

    def __init__(self, kind: Any, kw_only: bool) -> None:
        self.kind, self.kw_only = kind, kw_only

    def __get__(self, carrier: object, made: Any) -> Any:
        owner = next(each for each in made.__mro__ if vars(each).get("__dataclass_fields__") is self)
        declared(self.kind, init=False, repr=False, eq=False, match_args=False, kw_only=self.kw_only)
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            setattr(owner, name, vars(self.kind)[name])
        return vars(owner)["__dataclass_fields__"]


def _slotted(kind: Any) -> Any:
    """The same class with a slot for each field."""
    own = [name for name, type_ in vars(kind).get("__annotations__", {}).items() if "ClassVar" not in str(type_)]
    above = [each.name for base in kind.__mro__[1:] if "__dataclass_fields__" in vars(base) for each in fields(base)]
    known = {name for base in kind.__mro__[1:] for name in vars(base).get("__slots__", ())}
    names = dict.fromkeys((*above, *own))
    space = {name: value for name, value in vars(kind).items() if name not in {*names, "__dict__", "__weakref__"}}
    space["__slots__"] = tuple(name for name in names if name not in known)
    made = type(kind)(kind.__name__, kind.__bases__, space)
    made.__qualname__ = kind.__qualname__
    return made


FEW = 100  # objects of a class that are filled field by field; a constructor is written for those that follow


def _add_constructor(kind: Any) -> None:
    made = 0
    known: tuple[Field[Any], ...] = ()
    places: list[str] = []

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        nonlocal made, known, places
        if not made:
            known = fields(kind)
            places = [each.name for each in known if each.init and not each.kw_only]
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
