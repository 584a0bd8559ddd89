"""Where a decision turns: between neighbours of a grid, narrowed, and claimed only where both sides are known."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.sweeps.axes import borders_of, grid_of
from planner.sweeps.question import Question, Row, lost, without_plan
from tests.sweeps.told import row
from tests.tiers import settings


def value_of(asked: Question, name: str) -> float:
    return float(next(text for text in asked.settings if text.startswith(f"{name}=")).partition("=")[2])


def turning(at: float) -> Row:
    return row(1.0, "x: low" if at < 3.3 else "x: high")


def asked_at(asked: Sequence[Question]) -> list[Row]:
    return [turning(value_of(one, "a")) for one in asked]


def test_a_border_between_two_neighbours_is_narrowed() -> None:
    grid = grid_of(["a=0..8/3"])
    rows = asked_at(grid.questions)
    found = borders_of(grid, rows, asked_at)
    assert [(one["low"]["value"], one["high"]["value"]) for one in found] == [("0", "4")]
    found = borders_of(grid, rows, asked_at, 3)
    assert [(one["low"]["value"], one["high"]["value"]) for one in found] == [("3", "3.5")]
    assert (found[0]["low"]["decision"], found[0]["high"]["decision"]) == ("x: low", "x: high")
    assert found[0]["axis"] == "a"
    assert found[0]["fixed"] == {}


def test_every_side_of_every_axis() -> None:
    grid = grid_of(["a=1,2", "b=1,2,3"])
    letters = "XYYXXZ"
    rows = [row(1.0, letter) for letter in letters]
    found = borders_of(grid, rows, lambda asked: [])
    told = {(one["axis"], tuple(one["fixed"].items()), one["low"]["value"], one["high"]["value"]) for one in found}
    assert told == {
        ("a", (("b", "2"),), "1", "2"),
        ("a", (("b", "3"),), "1", "2"),
        ("b", (("a", "1"),), "1", "2"),
        ("b", (("a", "2"),), "2", "3"),
    }


@pytest.mark.parametrize("status", ["feasible", "stopped", "refused"])
def test_no_border_where_a_side_is_not_known(status: str) -> None:
    grid = grid_of(["a=1,2,3"])
    rows = [row(1.0, "X"), {**row(1.0, "Y"), "status": status}, row(1.0, "Z")]
    assert borders_of(grid, rows, asked_at, 2) == []


def test_impossible_is_a_decision() -> None:
    grid = grid_of(["a=1,2"])
    found = borders_of(grid, [without_plan("infeasible", None), row(1.0, "X")], lambda asked: [])
    assert [(one["low"]["decision"], one["high"]["decision"]) for one in found] == [("infeasible", "X")]


def test_a_middle_without_an_answer_leaves_the_border_as_it_was() -> None:
    """The first form lost the border: it took a refused middle for its upper side."""
    grid = grid_of(["a=2,3"])
    asked: list[int] = []

    def ask(questions: Sequence[Question]) -> list[Row]:
        asked.append(len(questions))
        return [lost("refused", "2.5 is no whole number", "") for _ in questions]

    found = borders_of(grid, [row(1.0, "X"), row(1.0, "Y")], ask, 5)
    assert [(one["low"]["value"], one["high"]["value"]) for one in found] == [("2", "3")]
    assert asked == [1]


def test_words_have_no_middle() -> None:
    grid = grid_of(["case=low,high"])
    found = borders_of(grid, [row(1.0, "X"), row(1.0, "Y")], lambda asked: pytest.fail("asked"), 5)
    assert len(found) == 1


@settings(40)
@given(st.lists(st.sampled_from("XY"), min_size=2, max_size=9), st.integers(0, 8))
def test_both_sides_of_what_is_found_are_decided_as_told(letters: list[str], halvings: int) -> None:
    """A world of known turns: wherever a border is told, it is as the world is."""
    grid = grid_of([f"a=0..{len(letters) - 1}/{len(letters)}"])

    def world(asked: Sequence[Question]) -> list[Row]:
        return [row(1.0, letters[round(value_of(one, "a"))]) for one in asked]

    found = borders_of(grid, world(grid.questions), world, halvings)
    assert len(found) == sum(one != other for one, other in itertools.pairwise(letters))
    for border in found:
        for side in (border["low"], border["high"]):
            assert world([grid.at([side["value"]])])[0]["decision"] == side["decision"]
        assert border["low"]["decision"] != border["high"]["decision"]
        wide = float(border["high"]["value"]) - float(border["low"]["value"])
        assert wide == pytest.approx(0.5**halvings)
