"""In which order answers stand, and which catalog a plan is read with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from planner.analysis.why import marginals
from planner.answers.shown import Rows
from planner.api.comparing import _catalog_by_digest
from tests.worlds import catalog


def test_the_limit_that_costs_most_stands_first(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"d": 5, "a": None, "c": 9, "b": 5, "e": 0}
    monkeypatch.setattr(marginals, "stated_limits", lambda _: list(values))
    monkeypatch.setattr(marginals._Marginal, "row", lambda _, name: {"limit": name, "value_microusd": values[name]})
    candidates: Any = SimpleNamespace(scenario=None)
    found = marginals.marginal_values(candidates, SimpleNamespace(), None, SimpleNamespace())  # type: ignore[arg-type]
    assert [row["limit"] for row in found] == ["c", "b", "d", "a", "e"]


def test_a_plan_is_read_with_the_catalog_that_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = catalog(digest="1" * 64), catalog(digest="2" * 64)
    monkeypatch.setattr("planner.api.comparing.catalog_of_plan", lambda _: other)
    monkeypatch.setattr("planner.api.comparing.load_catalog", lambda: other)
    made = {"provenance": {"catalog": {"sha256": "1" * 64}}}
    assert _catalog_by_digest(made, mine) is mine
    assert _catalog_by_digest(made, other) is None
    assert _catalog_by_digest({"provenance": {"catalog": {"sha256": "2" * 64}}}, mine) is other


@pytest.mark.parametrize(("count", "note"), [(19, False), (20, False), (21, True)])
def test_a_table_says_when_it_shows_a_part(count: int, note: bool) -> None:
    page = Rows({"n": number} for number in range(count))._repr_html_()
    assert (f"{count} rows, the first 20 of them" in page) == note
    assert page.count("<tr") == min(count, 20) + 1
