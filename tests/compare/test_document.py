"""The comparison as a document: against its schema, the same both ways round, from plans of any age."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner import api
from planner.analysis.compare.scenario_keys import blended, changed_keys, leaves
from planner.report.explanation_view import render_explanation
from planner.scenario.load import parse_scenario
from tests.compare import worlds
from tests.compare.worlds import OFFERS, at_prices, base, market, question, side
from tests.tiers import settings
from tests.worlds import catalog, device, fleet, offer, scenario, shape

RUNPOD, A100 = "runpod:US-CA-1:1x_A100-80GB_SECURE:on_demand", "hyperstack:CANADA-1:n3-A100x1:on_demand"
VALIDATOR = jsonschema.Draft202012Validator(api.compare_schema())


def checked(*sides: Any, **options: Any) -> dict[str, Any]:
    """The only comparison of a document that keeps to its schema."""
    document = api.compare(*sides, **options).document
    VALIDATOR.validate(json.loads(json.dumps(document)))
    found: dict[str, Any] = document["comparisons"][0]
    return found


def nowhere(plan: Any) -> dict[str, Any]:
    """A plan of an older planner, whose catalog is not at hand."""
    document = copy.deepcopy(dict(plan))
    document["provenance"]["catalog"]["sha256"] = "0" * 64
    document["provenance"]["planner"] = "0.0.9"
    return document


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(api.compare_schema())


@pytest.mark.parametrize("training", [5, ["job"], {"name": "job"}])
def test_a_plan_whose_scenario_was_edited_into_something_else(training: object) -> None:
    """Its own part of the document is as its user wrote it: no type holds it."""
    edited = copy.deepcopy(dict(base().document))
    edited["scenario"] = {**edited["scenario"], "training": training}
    found = api.compare(base(), edited, cause=False).document["comparisons"][0]
    assert found["inputs"]["scenario"]
    assert "training" in {row["key"].split(".")[0] for row in found["inputs"]["scenario"]}


def test_a_plan_beside_itself() -> None:
    found = api.compare(base(), base())
    assert found.same
    assert found.largest_increase == 0.0
    one = checked(base(), base())
    assert not one["inputs"]["scenario"]
    assert one["inputs"]["catalog"]["same"]
    assert {row["sign"] for row in one["workloads"]} == {" "}
    assert {row["difference_microusd"] for row in (*one["workloads"], *one["money"])} == {0}
    assert not one["cause"]["looked_for"]


FACTORS = st.lists(st.sampled_from([0.3, 0.7, 1.0, 1.5, 4.0]), min_size=len(OFFERS), max_size=len(OFFERS))


def scaled(factors: list[float]) -> Any:
    prices = {o.id: o.price_microusd_per_hour / 1e6 * f for o, f in zip(market().offers, factors)}
    return at_prices(market(), prices)


@settings(max_examples=3)
@given(FACTORS)
def test_both_ways_round_mirror_each_other(factors: list[float]) -> None:
    other = side("B", scaled(factors))
    there, back = checked(base(), other), checked(other, base())
    assert there["same"] == back["same"]
    mirrored = {"+": "-", "-": "+"}
    by_name = {row["name"]: row for row in back["workloads"]}
    for row in there["workloads"]:
        twin = by_name[row["name"]]
        assert (row["old"], row["new"], row["changed"]) == (twin["new"], twin["old"], twin["changed"])
        assert mirrored.get(row["sign"], row["sign"]) == twin["sign"]
        assert row["difference_microusd"] == -twin["difference_microusd"]
    for row, twin in zip(there["money"], back["money"], strict=True):
        assert (row["old_usd"], row["new_usd"]) == (twin["new_usd"], twin["old_usd"])
    if there["cause"]["looked_for"]:
        assert there["cause"]["level"] == back["cause"]["level"]
        assert there["cause"]["changes"] == back["cause"]["changes"]


@settings(max_examples=2)
@given(FACTORS)
def test_any_market_beside_itself_is_the_same(factors: list[float]) -> None:
    assert api.compare(side("A", scaled(factors)), side("B", scaled(factors))).same


def test_training_and_serving_are_told_apart_and_add_up() -> None:
    one = checked(base(), side("B", None, "serving.chat.qpm=600", "training.tune.tokens=12B"))
    parts = {row["part"]: row for row in one["money"]}
    assert set(parts) == {"training", "serving", "total"}
    for name in ("old_usd", "new_usd", "difference_usd"):
        assert parts["training"][name] + parts["serving"][name] == pytest.approx(parts["total"][name])
    assert {row["key"] for row in one["inputs"]["scenario"]} == {"serving.chat.qpm", "training.tune.tokens"}


def test_workloads_of_other_names_come_and_go() -> None:
    text = worlds.QUESTION.replace("chat", "assistant")
    one = checked(base(), api.side_of("B", question(text=text), market()))
    signs = {row["name"]: (row["sign"], row["old"] is None, row["new"] is None) for row in one["workloads"]}
    assert signs == {
        "tune": (" ", False, False), "assistant": ("+", True, False), "chat": ("-", False, True),
    }  # fmt: skip


def test_what_moved_is_not_asked_of_plans_of_different_things() -> None:
    text = worlds.QUESTION.replace("chat", "assistant").replace("tune", "train")
    one = checked(base(), api.side_of("B", question(text=text), market()))
    assert one["cause"] == {"looked_for": False, "reason": "the two have no workload in common"}


def test_a_side_without_a_plan_is_told_not_refused() -> None:
    other = side("B", None, "limits.budget=$100")
    found = api.compare(base(), other)
    one = checked(base(), other)
    assert found.largest_increase is None
    assert found.exceeds(10.0)
    assert one["workloads"][0]["new"]["rows"] == []
    assert "budget" in found.document["sides"][1]["reason"]
    assert [row["name"] for row in one["cause"]["found"]] == ["limits.budget"]
    assert not api.compare(other, base()).exceeds(0.0), "there was nothing to be over"


def test_neither_side_has_a_plan() -> None:
    sides = (side(budget, None, f"limits.budget={budget}") for budget in ("$1", "$2"))
    one = checked(*sides)
    assert {(row["changed"], row["difference_microusd"]) for row in one["workloads"]} == {("nothing", None)}
    assert {row["difference_microusd"] for row in one["money"]} == {None}


def test_plans_without_their_catalog_are_compared_as_they_stand() -> None:
    other = side("B", at_prices(market(), {RUNPOD: 1.0}))
    one = checked(nowhere(base().document), other.document)
    assert [row["changed"] for row in one["workloads"]] == ["nothing", "decision"]
    assert not one["cause"]["looked_for"]
    assert "not at hand" in one["cause"]["reason"]
    assert one["inputs"]["planner"] == {"old": "0.0.9", "new": planner.__version__, "same": False}
    assert one["inputs"]["catalog"]["known"] is False


def test_a_plan_of_another_planner_is_solved_again_and_told_when_it_differs() -> None:
    document = copy.deepcopy(dict(base().document))
    document["summary"]["cost_microusd"] += 5_000_000
    old = replace(base(), name="old", document=document)
    one = checked(old, side("B", at_prices(market(), {RUNPOD: 1.0})))
    (row,) = one["cause"]["sides"]
    assert row["name"] == "old"
    assert row["plan_usd"] - row["again_usd"] == pytest.approx(5.0)


def test_a_plan_finds_the_catalog_that_it_was_made_with() -> None:
    plan = base().document
    assert api.side_of_plan("P", plan, market()).catalog is not None
    left = api.side_of_plan("P", plan)
    assert left.catalog is None
    assert "not at hand" in left.missing
    broken = {**plan, "scenario": {**plan["scenario"], "training": [{"name": "x"}]}}
    assert "cannot be read again" in api.side_of_plan("P", broken, market()).missing


def test_three_sides_each_beside_the_first() -> None:
    found = planner.compare(base(), question("serving.chat.qpm=600"), question("limits.budget=$3000"), catalog=market())
    assert [row["new"] for row in found.document["comparisons"]] == ["B", "C"]
    assert found.largest_increase is not None
    assert found.exceeds(found.largest_increase - 1e-6)
    assert not found.exceeds(found.largest_increase + 1e-6)
    frame = found.to_frame()
    assert set(frame["new"]) == {"B", "C"}
    assert json.loads(found.to_json()) == json.loads(json.dumps(found.document))


def test_what_touches_a_plan_is_listed_and_the_rest_counted() -> None:
    prices = {o.id: o.price_microusd_per_hour / 1e6 * 1.001 for o in market().offers}
    one = checked(base(), side("B", at_prices(market(), prices)))
    catalog = one["inputs"]["catalog"]
    assert catalog["prices"] == len(OFFERS)
    used = {row["offer"] for workload in base().document["workloads"] for row in workload["allocations"]}
    assert {row["id"] for row in catalog["touching"]} == used


def test_no_cause_is_looked_for_when_that_is_said() -> None:
    one = checked(base(), side("B", at_prices(market(), {RUNPOD: 1.0})), cause=False)
    assert one["cause"] == {"looked_for": False, "reason": "--no-cause"}


def test_the_least_of_two_sides() -> None:
    with pytest.raises(ValueError, match="two sides"):
        api.compare(base())


@pytest.mark.parametrize("path", ["llama", "fleet", "portfolio", "old-cards", "chat-fleet"])
def test_a_scenario_with_every_key_of_another_is_the_other(path: str) -> None:
    """Blending all that differs gives back the other scenario, whatever the two are."""
    one, other = question().resolved, api.load_scenario(worlds.ROOT / f"scenarios/{path}.yaml").resolved
    for old, new in ((one, other), (other, one)):
        keys = [key for key, _, _ in changed_keys(old, new)]
        assert leaves(blended(old, new, keys)) == leaves(new)
        assert leaves(blended(old, new, ())) == leaves(old)


def test_keys_of_nested_mappings() -> None:
    old = question("training.tune.mfu={h100-sxm-80gb: 42 %}").resolved
    new = question("training.tune.mfu={h100-sxm-80gb: 50 %, l40s: 30 %}", "limits.max_devices=64").resolved
    found = {".".join(key): (was, now) for key, was, now in changed_keys(old, new)}
    assert found == {
        "training.tune.mfu.h100-sxm-80gb": ("42 %", "50 %"),
        "training.tune.mfu.l40s": (None, "30 %"),
        "limits.max_devices": (None, 64),
    }
    part = blended(old, new, [("training", "tune", "mfu", "l40s")])
    assert parse_scenario(json.dumps(part)).training[0].mfu == {"h100-sxm-80gb": 0.42, "l40s": 0.3}


def test_plans_for_several_futures_are_held_against_each_other_by_what_is_expected() -> None:
    """Renting looked 11 % cheaper than reserving for what may happen: the other cases' costs were in no total."""
    there = catalog(
        [device()], [shape()], [offer("north/one", 1.0), offer("north/one", 0.5, price_model="commitment_1y")]
    )
    more = {"name": "busy", "probability": 0.75, "set": {"serving.chat.qpm": 3600}}
    rented = scenario([], [fleet("chat", qpm=1200)], horizon="8760 h", uncertainty=[more])
    reserved = rented.with_({"hardware.pricing": ["on_demand", "commitment_1y"]})
    plans = [api.solve(one, there) for one in (reserved, rented)]
    found = api.compare(*plans, catalog=there)
    (one,) = found.document["comparisons"]
    VALIDATOR.validate(json.loads(json.dumps(found.document)))
    money = {row["part"]: (row["old_usd"], row["new_usd"]) for row in one["money"]}
    assert money == {
        "serving": (0, 8760 * 2),
        "contracts": (8760 * 3, 0),
        "cases": (0, 8760 * 3),
        "total": (8760 * 3, 8760 * 5),
    }
    assert found.largest_increase == pytest.approx(2 / 3)
    assert [side["cost_usd"] for side in found.document["sides"]] == [8760 * 3, 8760 * 5]
    assert not one["same"]
    assert "other cases, on average" in str(found)
    assert "the mean of what their cases cost" in " ".join(str(found).split())
    swept = api.sweep(api.Session(rented, there), api.grid("price:plain=0%,+100%"))
    assert [point["cost_usd"] for point in swept.document["points"]] == [8760 * 5, 8760 * 10]
    assert "what it costs is the mean of 2 cases (uncertainty)" in str(swept)
    answers = {"marginal_values": api.Session(reserved, there).marginal_values()}
    assert "asked of the scenario as written alone" in render_explanation(plans[0].document, "table", answers=answers)
