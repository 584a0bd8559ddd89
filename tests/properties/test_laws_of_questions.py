"""Random small questions: every plan verifies, more choice is never dearer, and other words change nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest

from planner import api
from planner.api.checking import case_problems
from planner.catalog.model import Catalog
from planner.errors import InputError
from tests.properties.questions import Data, alike, asked, market, question, same, wider
from tests.tiers import sampled
from tests.verified import errors
from tests.worlds import catalog, device, fleet, job, offer, shape

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


def test_a_case_that_is_the_same_changes_nothing() -> None:
    """The scenario as written stood without what its cases had: no change from spot to on demand, no job beside fleets.

    A job of 100B tokens cost $24,128 and "more of it", 101B, $11,343.
    """
    known = catalog([device()], [shape("north/eight", devices=8)],
                    [offer("north/eight", 8.0), offer("north/eight", 2.0, price_model="spot")])  # fmt: skip
    hardware = {"pricing": ["on_demand", "spot"], "spot": {"interruptions": "0 /h"},
                "quotas": [{"price_model": "spot", "max_shapes": 1}]}  # fmt: skip
    late = job("late", tokens="200B", deadline="30 h")  # 41.7 h on one node of spot
    data: Data = {"training": [late], "serving": [], "hardware": hardware, "prefer": "cheapest"}
    there = fleet("chat", qpm=2400)  # half of a node, whose other half does the job in 83 h
    owned = {"owned": [{"shape": "north/eight", "count": 1, "price": "$1/h"}]}
    beside: Data = {"training": [job("small", tokens="200B", deadline="100 h")], "serving": [there],
                    "hardware": owned, "horizon": "120 h", "prefer": "cheapest"}  # fmt: skip
    for one, cost in ((data, None), (beside, 120.0)):
        plain: Any = api.solve(asked(one), known).document
        told: Any = api.solve(asked({**one, "uncertainty": [alike(one)]}), known).document
        assert errors(told, known) == []
        assert told["summary"]["cost_usd"] == plain["summary"]["cost_usd"]
        assert {case["cost_usd"] for case in told["uncertainty"]["cases"]} == {plain["summary"]["cost_usd"]}
        assert cost in (None, plain["summary"]["cost_usd"])
    rows = api.solve(asked({**data, "uncertainty": [alike(data)]}), known).document["workloads"][0]["allocations"]
    assert [row["price_model"] for row in rows] == ["spot", "on_demand"]


def test_cases_top_up_their_contracts_as_each_needs() -> None:
    """Nodes on demand beside contracted ones are no contracts: a plan in which they differed was refused as a bug."""
    known = catalog([device()], [shape("north/one")],
                    [offer("north/one", 1.0), offer("north/one", 0.5, price_model="commitment_1y")])  # fmt: skip
    short = job("short", tokens="28B", deadline="24 h")  # two nodes for 23.3 h
    busy = {"name": "busy", "probability": 0.9, "set": {"serving.chat.qpm": 1200}}
    data: Data = {
        "training": [short], "serving": [fleet("chat", qpm=600)], "prefer": "cheapest", "horizon": "240 h",
        "periods": "24 h", "uncertainty": [busy],
        "hardware": {"pricing": ["on_demand", "commitment_1y"], "beyond_horizon": "prorate"},
    }  # fmt: skip
    told: Any = api.solve(asked(data), known).document
    assert errors(told, known) == []
    bought = [[(one["kind"], one["count"]) for one in plan["contracts"]]
              for plan in (told, told["uncertainty"]["cases"][1]["plan"])]  # fmt: skip
    assert bought[0] == [("commitment_1y", 2), ("on_demand", 1)]  # what stands idle, and one for a day beside it
    assert bought[1] != bought[0]
    assert bought[1][0] == bought[0][0]
    other: Any = {**told, "contracts": [{**told["contracts"][0], "count": 3}, *told["contracts"][1:]]}
    assert "the cases hold different contracts" in {problem.message for problem in case_problems(other, known)}


def test_no_bound_is_told_where_providers_are_limited() -> None:
    """One program for all cases counted the providers of all together: it proved that its own plans were too cheap."""
    known = catalog([device()], [shape("north/one"), shape("south/two", devices=2)],
                    [offer("north/one", 1.0, max_shapes=1), offer("south/two", 1.5)])  # fmt: skip
    more = {"name": "more", "probability": 0.5, "set": {"serving.chat.qpm": 1200}}
    data: Data = {"training": [], "serving": [fleet("chat", qpm=600)], "prefer": "cheapest", "horizon": "100 h",
                  "hardware": {}, "limits": {"max_providers": 1}, "uncertainty": [more]}  # fmt: skip
    told: Any = api.solve(asked(data), known).document
    assert errors(told, known) == []
    assert [case["cost_usd"] for case in told["uncertainty"]["cases"]] == [100.0, 150.0]
    assert told["uncertainty"]["bound_usd"] is None
    free: Any = api.solve(asked({**data, "limits": {}}), known).document
    assert free["uncertainty"]["bound_usd"] == free["uncertainty"]["expected_usd"] == 125.0
