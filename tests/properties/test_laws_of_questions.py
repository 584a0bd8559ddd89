"""Random small questions: every plan verifies, more choice is never dearer, and other words change nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.errors import InputError
from tests.properties.questions import Data, asked, market, question, same, wider
from tests.tiers import sampled
from tests.verified import errors

SEEDS = range(120)
NOT_SOLD = "no-offer"  # a price model that nobody sells there is refused by name


def cost_of(data: Data, known: Catalog) -> float | None:
    """The cost of the plan, which verifies; None without one.  [USD]"""
    document: Any = api.solve(asked(data), known).document
    assert document["status"] in ("optimal", "feasible", "infeasible")
    assert errors(document, known) == []
    told = document.get("uncertainty")
    cost: float | None = told["expected_usd"] if told else document["summary"]["cost_usd"]
    return cost


def near(cost: float) -> float:
    """Within which costs are equal."""
    return 2e-6 * cost + 0.02


@pytest.mark.parametrize("seed", sampled(SEEDS, 3))
def test_more_choice_is_never_dearer_and_words_change_nothing(seed: int) -> None:
    chance = random.Random(seed)
    known, data = market(chance), question(chance)
    try:
        cost = cost_of(data, known)
    except InputError:
        return  # what the file itself refuses
    for name, more in wider(data):
        try:
            found = cost_of(more, known)
        except InputError as error:
            if any(problem.reference != NOT_SOLD for problem in error.problems):
                raise
            continue
        assert cost is None or (found is not None and found <= cost + near(cost)), name
    for name, other in same(data):
        found = cost_of(other, known)
        assert (found is None) == (cost is None), name
        assert cost is None or found is None or abs(found - cost) <= near(cost), name
