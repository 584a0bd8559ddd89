"""Our dataclasses against the standard library's: the same objects, filled field by field or by a constructor."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from planner import carriers


def point(dataclass: Any) -> Any:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Point:
        """A frozen one with slots."""

        x: int
        y: float = 2.0
        tags: tuple[str, ...] = dataclasses.field(default_factory=lambda: ("a",))
        length: float = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", self.x + self.y)

    return Point


def pair(dataclass: Any) -> Any:
    @dataclass(slots=True)
    class Pair:
        """One that may change, filled by place."""

        first: int
        second: list[int] = dataclasses.field(default_factory=list)

    return Pair


def plain(dataclass: Any) -> Any:
    @dataclass(frozen=True)
    class Plain:
        """Without slots, with a default."""

        name: str = "n"

    return Plain


MADE = {
    "point": (point, [{"x": 1}, {"x": 1, "y": 3.0}, {"x": 2, "tags": ("b",)}]),
    "pair": (pair, [{"first": 1}, {"first": 1, "second": [2]}]),
    "plain": (plain, [{}, {"name": "m"}]),
}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("before", [0, carriers.FEW])
def test_objects_are_those_of_the_standard_library(kind: str, before: int) -> None:
    make, cases = MADE[kind]
    ours, theirs = make(carriers.dataclass), make(dataclasses.dataclass)
    for _ in range(before):
        ours(**cases[0])
    for case in cases:
        one, other = ours(**case), theirs(**case)
        assert dataclasses.asdict(one) == dataclasses.asdict(other)
        assert repr(one) == repr(other)
        assert one == ours(**case)
        assert one != object()
        assert [one == ours(**another) for another in cases] == [other == theirs(**another) for another in cases]
        assert (ours.__hash__ is None) == (theirs.__hash__ is None)
        if ours.__hash__ is not None:
            assert hash(one) == hash(ours(**case))
        assert copy.deepcopy(one) == one
        fields = [each.name for each in dataclasses.fields(ours) if each.init]
        assert dataclasses.replace(one, **{fields[0]: 7}) == ours(**{**case, fields[0]: 7})
        assert hasattr(one, "__dict__") == hasattr(other, "__dict__")
    assert [each.name for each in dataclasses.fields(ours)] == [each.name for each in dataclasses.fields(theirs)]


@pytest.mark.parametrize("before", [0, carriers.FEW])
@pytest.mark.parametrize(
    ("make", "values", "named"),
    [
        *[(point, (), {}), (point, (1,), {}), (point, (), {"x": 1, "z": 2}), (point, (), {"x": 1, "length": 2.0})],
        *[(pair, (), {}), (pair, (1, [], 3), {}), (pair, (1,), {"first": 2})],
    ],
)
def test_wrong_arguments_are_refused(
    make: Callable[[Any], Any], values: tuple[Any, ...], named: dict[str, Any], before: int
) -> None:
    ours, theirs = make(carriers.dataclass), make(dataclasses.dataclass)
    for _ in range(before):
        ours(**({"x": 1} if make is point else {"first": 1}))
    with pytest.raises(TypeError) as asked:
        theirs(*values, **named)
    with pytest.raises(TypeError) as found:
        ours(*values, **named)
    assert str(found.value).rpartition("()")[2] == str(asked.value).rpartition("()")[2]


def test_what_is_frozen_does_not_change() -> None:
    one = point(carriers.dataclass)(x=1)
    for change in (lambda: setattr(one, "x", 2), lambda: delattr(one, "x"), lambda: setattr(one, "new", 2)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    two = pair(carriers.dataclass)(1)
    two.first = 2
    assert two.first == 2


@carriers.dataclass(frozen=True, slots=True)
class Frozen:
    """One that pickles find."""

    x: int


def test_frozen_ones_go_through_a_pickle() -> None:
    assert pickle.loads(pickle.dumps(Frozen(3))) == Frozen(3)
