"""Least covers at the edge of what there is, and what two machines may differ by."""

from __future__ import annotations

from typing import Any

import pytest

from planner.plan.cover import UNMET, _least_cover, least_cover
from planner.plan.proof import gap_of, reaches, slack


@pytest.mark.parametrize(("need", "least"), [(0, 0), (1, 2), (5, 2), (6, 4), (14, 6), (15, 6), (16, UNMET)])
def test_a_cover_takes_all_units_and_no_more(need: int, least: int) -> None:
    """Three units that earn 5 and weigh 2."""
    assert least_cover([2], [3], [[5]], [need]).bound == least


@pytest.mark.parametrize(
    ("need", "least"),
    [(15, 6), (16, 14), (20, 14), (21, 16), (25, 16), (26, 24), (30, 24), (31, 26), (35, 26), (36, UNMET)],
)
def test_what_is_dear_is_taken_when_the_cheap_is_gone(need: int, least: int) -> None:
    assert least_cover([2, 10], [3, 2], [[5, 10]], [need]).bound == least


@pytest.mark.parametrize(("need", "least"), [(10, 6), (11, 8), (15, 8), (16, UNMET)])
def test_one_unit_is_spare(need: int, least: int) -> None:
    """Four units that earn 5, of which one may be lost."""
    assert least_cover([2], [4], [[5]], [need], replicas=[1], spare=1).bound == least


@pytest.mark.parametrize(("needs", "least"), [((5, 4), 3), ((6, 4), 6), ((5, 5), 6), ((10, 8), 6), ((11, 0), UNMET)])
def test_several_lines_are_met_at_once(needs: tuple[int, int], least: int) -> None:
    assert least_cover([3], [2], [[5], [4]], needs).bound == least


def test_the_cheapest_unit_is_one_that_earns() -> None:
    """Of a search without a step the bound is that of the dearest line: a whole unit of what earns on it."""
    assert least_cover([1, 5], [9, 9], [[0, 3], [1, 0]], [1, 1]).bound == 6
    assert least_cover([1, 5], [9, 9], [[0, 3], [1, 0]], [1, 1], steps=0).bound == 5


ASKED: dict[str, Any] = {"weights": [2, 3], "upper": [9, 9], "earned": [[3, 5]], "needs": [14], "replicas": [2, 1]}
ASKED |= {"spare": 1, "steps": 1000}


@pytest.mark.parametrize(
    "changed",
    [
        {"weights": [1, 3]},
        {"upper": [5, 9]},
        {"earned": [[3, 8]]},
        {"needs": [20]},
        {"replicas": [1, 2]},
        {"spare": 0},
    ],
)
def test_whatever_a_cover_is_asked_with_tells_it_from_one_that_was_kept(changed: dict[str, Any]) -> None:
    before, found = least_cover(**ASKED), least_cover(**ASKED | changed)
    _least_cover.cache_clear()
    assert found == least_cover(**ASKED | changed) != before


def test_what_is_done_with_a_cover_is_not_kept() -> None:
    found = least_cover(**ASKED)
    whole = dict(found.units or {})
    assert found.units is not None
    assert whole
    found.units.clear()
    assert least_cover(**ASKED).units == whole


@pytest.mark.parametrize(("value", "apart"), [(0, 10_000), (10**10, 10_000), (10**10 + 10**6, 10_001), (10**12, 10**6)])
def test_two_machines_agree_to_a_cent_or_a_millionth(value: int, apart: int) -> None:
    assert slack(value) == slack(-value) == apart


@pytest.mark.parametrize(("bound", "proven"), [(10**11, True), (10**11 - 10**5, True), (10**11 - 10**5 - 1, False)])
def test_a_bound_reaches_what_is_no_farther(bound: int, proven: bool) -> None:
    assert reaches(10**11, bound) == proven
    assert gap_of(10**11, bound) == (0.0 if proven else (10**11 - bound) / 10**11)
