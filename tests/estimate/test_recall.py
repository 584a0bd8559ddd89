"""What was answered before: kept by everything that it depends on, bounded, and of no influence on an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.carriers import dataclass
from planner.estimate import recall as kept
from planner.estimate.recall import Recall, figures_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Figures of some kinds."""

    number: Any = 1.0
    rates: Any = (2.0, None)
    name: str = "a"


def test_an_answer_is_worked_out_once_for_its_figures() -> None:
    known, calls = Recall(), []

    def asked(key: object) -> Any:
        return known.of(key, lambda: calls.append(key) or np.ones(3))

    assert asked("one") is asked("one")
    asked("two")
    assert calls == ["one", "two"]


@pytest.mark.parametrize(
    "changed",
    [{"number": np.nextafter(1.0, 2.0)}, {"rates": (2.0,)}, {"rates": (2.0, 0.0)}, {"rates": (None, 2.0)}],
)
def test_every_figure_tells(changed: dict[str, Any]) -> None:
    assert figures_of(Asked()) != figures_of(replace(Asked(), **changed))
    assert figures_of(Asked(), 1.0) != figures_of(Asked())


def test_what_has_no_figures_is_refused() -> None:
    with pytest.raises(TypeError, match="set"):
        figures_of(Asked(rates={2.0}))


def test_a_number_is_an_array_of_one_and_texts_tell_where_they_are_asked_for() -> None:
    one, other = Asked(), Asked(number=np.array([1.0]), rates=(np.float64(2.0), None))
    assert figures_of(one) == figures_of(other)
    assert figures_of(one) == figures_of(replace(one, name="b"))
    assert figures_of(one, texts=True) != figures_of(replace(one, name="b"), texts=True)


def test_the_oldest_answers_go_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_BYTES", 3 * (kept.ENTRY_BYTES + 800))
    known = Recall()
    for number in range(5):
        known.keep(number, np.full(100, number))
    assert [number for number in range(5) if known.known(number) is not None] == [2, 3, 4]
    known.keep("large", np.zeros(10_000))
    assert known.known("large") is None
    assert known.known(4) is not None
