"""What margins cost: solved again without them, together and one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.budget.margins import margins_taken
from planner.scenario.load import with_settings
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

Document = dict[str, Any]


def world() -> Any:
    return catalog([device()], [shape("north/one")], [offer("north/one", 1.0)])


def solved(asked: Any) -> Document:
    return api.solve(asked, world()).document


def test_margins_are_told_by_what_takes_them() -> None:
    asked = scenario(
        [job("a")], [fleet("one", spare_replicas=2, peak_factor=3, target_load=0.8), fleet("two", peak_factor=2)]
    )
    taken = {margin.name: margin for margin in margins_taken(asked)}
    assert set(taken) == {"confidence", "peak_factor", "target_load", "spares"}
    assert taken["peak_factor"].taken == "3 (one), 2 (two)"
    assert taken["target_load"].taken == "80% (one)"
    assert taken["spares"].taken == "2 (one)"
    off = with_settings(asked, [text for margin in taken.values() for text in margin.settings])
    assert margins_taken(off) == []


def test_an_availability_is_a_margin_like_spares() -> None:
    asked = scenario([], [fleet("one", availability="99.9 %")])
    spares = next(margin for margin in margins_taken(asked) if margin.name == "spares")
    off = with_settings(asked, spares.settings)
    assert off.serving[0].availability is None
    assert not [margin for margin in margins_taken(off) if margin.name == "spares"]


def test_all_margins_together_cost_less_than_their_sum() -> None:
    """100 requests a second at the mean, a device carries 10 for $730: each figure worked out by hand.

    With all margins 200 / 7 -> 29 and a spare; at the mean 15 + 1; at full load 20 + 1; without a spare 29;
    without any of them 10.
    """
    asked = scenario([], [fleet("one", qpm=6000, spare_replicas=1, peak_factor=2, target_load=0.7)])
    found = api.margins(asked, world(), plan=solved(asked), each=True)
    device_microusd = 730_000_000
    assert found["cost_microusd"] == 30 * device_microusd
    assert found["without_microusd"] == 10 * device_microusd
    assert found["together_microusd"] == 20 * device_microusd
    alone = {row["name"]: row["without_microusd"] // device_microusd for row in found["each"]}
    assert alone == {"confidence": 30, "peak_factor": 16, "target_load": 21, "spares": 29}
    assert sum(row["saves_microusd"] for row in found["each"]) == (14 + 9 + 1) * device_microusd
    assert "need not be" in found["notes"][0]


def test_margins_of_a_plainer_plan_are_those_of_the_cheapest() -> None:
    """Less what the cheapest plan without margins costs, the plainer layout would count as a margin."""
    asked = scenario([], [fleet("one", qpm=6000, spare_replicas=1)])
    document = solved(asked)
    cheapest = document["summary"]["cost_microusd"]
    plainer = {**document, "summary": {**document["summary"], "cost_microusd": cheapest * 101 // 100}}
    plainer["plain"] = {
        "within": 0.02, "cheapest_microusd": cheapest, "cheapest_usd": cheapest / 1e6, "above": 0.01, "workloads": []
    }  # fmt: skip
    found = api.margins(asked, world(), plan=plainer)
    assert found["together_microusd"] == api.margins(asked, world(), plan=document)["together_microusd"]
    assert found["notes"] == ["held against the cheapest plan, $8,030, not the plainer one"]


def test_margins_of_a_job_are_those_of_a_plan_at_the_median(tmp_path: Path) -> None:
    """Against `summary.margins` of a plan, which is worked out in another way."""
    file = tmp_path / "job.yaml"
    file.write_text(
        "schema: plan/v1\nname: late\ntraining:\n  - {name: job, model: llama-3.1-8b, tokens: 20B, deadline: 60 h,"
        " sequence_length: 8192, global_batch: 512 sequences, estimator: rule}\n"
        "hardware: {allow: [h100-sxm-80gb], regions: us-east-2}\n",
        encoding="utf-8",
    )
    asked = api.load_scenario(file)
    plan = api.solve(asked).document
    found = api.margins(asked, plan=plan)
    told = plan["summary"]["margins"]
    assert found["without_microusd"] == told["median_cost_microusd"]
    assert found["together_microusd"] == told["margins_microusd"]


def test_without_each_only_the_joint_cost_is_solved() -> None:
    asked = scenario([job("a")], [fleet("one")])
    found = api.margins(asked, world(), plan=solved(asked))
    assert found["each"] is None
    assert found["together_microusd"] >= 0
    assert found["notes"] == []


def test_margins_of_contracts_are_solved_where_each_is_asked_for() -> None:
    """As by hand: the same question without them, solved by itself. They were left out, asked for or not."""
    there = catalog([device()], [shape("north/one")], [offer("north/one", 1.0, price_model="commitment_1y")])
    settings = {"serving.one.spare_replicas": 0, "serving.one.target_load": 1, "serving.one.peak_factor": 1}
    asked = scenario([], [fleet("one", spare_replicas=1, target_load=0.5)], horizon="60 days",
                     hardware={"pricing": ["commitment_1y"]})  # fmt: skip
    plan = api.solve(asked, there)
    assert plan.document["contracts"]
    assert api.margins(asked, there, plan=plan)["together_microusd"] is None
    found = api.margins(asked, there, plan=plan, each=True)
    least = api.solve(asked.with_({**settings, "serving.one.confidence": "p50"}), there).document["summary"]
    assert found["without_microusd"] == least["cost_microusd"] < found["cost_microusd"]
    assert {row["name"] for row in found["each"] or ()} == {one["name"] for one in found["taken"]}
    assert all(row["saves_microusd"] is not None for row in found["each"] or ())


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (scenario([job("a")], horizon="90 days", periods="1 week"), "calendar"),
        (
            scenario(
                [], [fleet("one")], uncertainty=[{"name": "x", "probability": "10 %", "set": {"serving.one.qpm": 1}}]
            ),
            "futures",
        ),
        (scenario([job("a")], objective="time"), "made for time"),
    ],
)
def test_what_is_not_worked_out_is_said(asked: Any, why: str) -> None:
    found = api.margins(asked, world(), plan=solved(scenario([job("a")])))
    assert found["without_microusd"] is None
    assert found["taken"]
    assert why in found["notes"][0]


def test_without_a_plan_nothing_is_solved() -> None:
    asked = scenario([job("a", tokens="100000B", deadline="1 h")], limits={"max_devices": 1})
    plan = solved(asked)
    assert plan["status"] == "infeasible"
    found = api.margins(asked, world(), plan=plan)
    assert found["together_microusd"] is None
