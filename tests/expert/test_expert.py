"""Questions with the answer that an expert expects: device class, layout family, order of cost; each with a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.yamlfile import read_yaml
from tests.tiers import sampled
from tests.worlds import scenario

FOLDER = Path(__file__).parent
QUESTIONS: list[dict[str, Any]] = [
    question for path in sorted(FOLDER.glob("*.yaml")) for question in read_yaml(path).data
]
FEW = 6  # in the default tier
CHECKED = {
    "layout", "least", "most", "never", "replica", "devices", "providers", "price_models", "status", "warns",
    "cheaper_first",
}  # fmt: skip


def rows_of(document: Any) -> list[Any]:
    return [row for workload in document["workloads"] for row in workload["allocations"]]


def differences(question: dict[str, Any]) -> list[str]:
    """What the planner answers other than is expected."""
    expect = question["expect"]
    documents: list[Any] = [
        api.solve(scenario(**one)).document for one in question.get("cases") or [question["scenario"]]
    ]
    rows, found = rows_of(documents[0]), []
    if documents[0]["status"] != expect.get("status", "optimal"):
        return [f"status {documents[0]['status']}"]
    for row in rows:
        layout = row["layout"]
        found += [f"{name} {layout[name]}" for name, value in expect.get("layout", {}).items() if layout[name] != value]
        found += [f"{name} {layout[name]}" for name, value in expect.get("least", {}).items() if layout[name] < value]
        found += [f"{name} {layout[name]}" for name, value in expect.get("most", {}).items() if layout[name] > value]
        never = expect.get("never")
        if never and layout["pp"] > never["pp_above"] and layout["sharding"] in never["sharding"]:
            found.append(f"{layout['sharding']} under pp {layout['pp']}")
        size, bounds = row.get("devices_per_replica", 0), expect.get("replica", {})
        if not bounds.get("least", 0) <= size <= bounds.get("most", size):
            found.append(f"{size} devices a replica")
        if row["price_model"] not in expect.get("price_models", [row["price_model"]]):
            found.append(row["price_model"])
        if row["device"] not in expect.get("devices", [row["device"]]):
            found.append(row["device"])
        if row["provider"] not in expect.get("providers", [row["provider"]]):
            found.append(row["provider"])
    if "warns" in expect and not any(expect["warns"] in text for text in documents[0]["warnings"]):
        found.append("no such warning")
    if "cheaper_first" in expect:
        costs = [
            (one.get("plain") or {}).get("cheapest_microusd", one["summary"]["cost_microusd"]) for one in documents
        ]
        found += [] if costs == sorted(costs) else [f"costs {costs}"]
    return found


@pytest.mark.parametrize("question", sampled(QUESTIONS, FEW), ids=lambda one: one["id"])
def test_the_answer_is_what_an_expert_expects(question: dict[str, Any]) -> None:
    found = differences(question)
    if "fails" in question:
        assert found, f"answered as an expert does by now: drop 'fails' of {question['id']}"
        pytest.xfail(question["fails"])
    assert found == [], question["question"]


def test_every_question_has_a_source_and_expects_something_that_is_looked_at() -> None:
    assert len({one["id"] for one in QUESTIONS}) == len(QUESTIONS) >= 40
    for one in QUESTIONS:
        assert len(one["source"]) > 20, one["id"]
        assert one["expect"], one["id"]
        assert len(one.get("fails", "a reason in words")) >= 17, one["id"]
        assert set(one["expect"]) <= CHECKED, one["id"]
