"""Scenarios that say what may happen: solved, verified, refused where they say too much."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from planner import api
from planner.errors import InputError
from planner.plan.document import digest_of
from planner.report.certainty_words import band_notes
from planner.report.plan_formats import render_first
from planner.scenario.load import parse_scenario, with_settings
from tests.verified import errors

TEXT = """\
schema: plan/v1
name: uncertain
serving:
  - name: assistant
    model: llama-3.1-8b
    estimator: rule
    qpm: 600
    input_tokens: 1500
    output_tokens: 400
    throughput: 900 tokens/s
hardware: {allow: [h100-sxm-80gb], regions: ["us-*"]}
uncertainty:
  - {name: busy, probability: 30 %, set: {serving.assistant.qpm: 1800}}
  - {name: quiet, probability: 10 %, set: {serving.assistant.qpm: 100}}
"""


@pytest.fixture(scope="module")
def plan() -> Any:
    return api.solve(parse_scenario(TEXT, file="uncertain.yaml"))


def test_each_case_has_its_plan_and_the_mean_is_theirs(plan: Any) -> None:
    section = plan.document["uncertainty"]
    assert [case["name"] for case in section["cases"]] == ["as written", "busy", "quiet"]
    alone = [
        api.solve(
            parse_scenario(TEXT.split("uncertainty")[0].replace("qpm: 600", f"qpm: {qpm}"), file="uncertain.yaml")
        )
        for qpm in (600, 1800, 100)
    ]
    costs = [one.document["summary"]["cost_microusd"] for one in alone]
    assert [case["cost_microusd"] for case in section["cases"]] == costs
    assert section["expected_usd"] == pytest.approx((6 * costs[0] + 3 * costs[1] + costs[2]) / 1e7, rel=1e-12)
    assert section["perfect_information_usd"] == 0  # nothing is bought ahead
    assert not errors(plan.document)


def _no_plan(section: Any) -> None:
    section["cases"][2]["cost_microusd"] = None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda u: u.update(expected_usd=1.0), "expected_usd is 1.0 in the plan"),
        (lambda u: u.update(bound_usd=1e9), "is above it"),
        (lambda u: u["cases"][1].update(probability=0.2), "the scenario has the cases"),
        (lambda u: u["cases"].pop(), "the scenario has the cases"),
        (lambda u: u["cases"][1].update(cost_microusd=5), "busy: its cost is not that of its plan"),
        (lambda u: u["cases"][1]["plan"]["scenario"]["serving"][0].update(qpm=1700), "its plan is of another scenario"),
        (_no_plan, "None computed again"),
    ],
)
def test_a_changed_case_is_found(plan: Any, change: Any, words: str) -> None:
    document = copy.deepcopy(plan.document)
    change(document["uncertainty"])
    document["sha256"] = digest_of(document)
    assert any(words in problem.message for problem in api.verify(document))


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("30 %", "95 %", 13, "leave nothing"),
        ("name: quiet", "name: busy", 14, "two cases"),
        ("serving.assistant.qpm: 100", "serving.asistant.qpm: 100", 14, "does not exist"),
        ("qpm: 100}", "qpm: many}", 14, "many"),
        ("30 %", "0.30001", 13, "finer"),
    ],
)
def test_mistakes_have_a_place(old: str, new: str, line: int, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_scenario(TEXT.replace(old, new), file="uncertain.yaml")
    found = [(problem.places[0].line, str(problem)) for problem in caught.value.problems]
    assert any(said in text and place == line for place, text in found), found


def test_risk_wants_cases() -> None:
    text = TEXT.split("uncertainty")[0] + "risk: {cvar: 95 %, weight: 0.5}\n"
    with pytest.raises(InputError, match="there are none"):
        parse_scenario(text, file="uncertain.yaml")


TRAINING = """\
schema: plan/v1
name: erring
training:
  - {name: job, model: llama-3.1-8b, tokens: 20B, global_batch: 4M tokens, sequence_length: 8192,
     deadline: 20 days, failures: none}
hardware: {allow: [h100-sxm-80gb, a100-sxm-80gb], regions: ["us-*"]}
"""


def test_predictions_that_err_to_a_quantile_take_as_much_longer() -> None:
    """The same layout takes the quantile of its band longer, and the deadline then needs no other margin."""
    plain = api.solve(parse_scenario(TRAINING, file="erring.yaml"))
    erring = api.solve(parse_scenario(TRAINING + "errors: p90\n", file="erring.yaml"))
    row, slow = (plan.document["workloads"][0]["allocations"][0] for plan in (plain, erring))
    assert (row["offer"], row["count"], row["layout"]) == (slow["offer"], slow["count"], slow["layout"])
    assert slow["hours"] == pytest.approx(row["error_band"]["hours"]["p90"], rel=1e-9)
    assert slow["error_band"]["time"] is None
    assert not errors(erring.document)


@pytest.mark.parametrize(
    "more",
    [
        "pricing: [on_demand]",
        "pricing: [on_demand, spot], spot: {interruptions: 0.5 /day}",
    ],
)
def test_predictions_that_err_lose_to_scale_what_others_do(more: str) -> None:
    """The factor passed for a measured step time, to which nothing is added: plans were refused by their verifier."""
    text = """\
schema: plan/v1
name: erring
training:
  - {name: job, model: llama-3.1-70b, tokens: 100B, global_batch: 4M tokens, sequence_length: 8192, deadline: 60 days}
"""
    hardware = f"hardware: {{allow: [h100-sxm-80gb], providers: [aws], {more}}}\n"
    plain, slow = (
        api.solve(parse_scenario(text + hardware + errors_, file="erring.yaml")) for errors_ in ("", "errors: p90\n")
    )
    assert not errors(slow.document)
    for plan in (plain, slow):
        row = plan.document["workloads"][0]["allocations"][0]
        assert row["count"] > 1
        assert row["time_terms_s"]["scale_loss"] > 0
    told = "\n".join(band_notes(slow.document))
    assert "errors says how far they err" in told
    assert "you measured" not in told
    assert slow.document["summary"]["cost_microusd"] > plain.document["summary"]["cost_microusd"]


def test_errors_can_be_a_case() -> None:
    text = TRAINING + "uncertainty:\n  - {name: slow, probability: 20 %, set: {errors: p90}}\n"
    plan = api.solve(parse_scenario(text, file="erring.yaml"))
    plain, slow = (case["cost_microusd"] for case in plan.document["uncertainty"]["cases"])
    assert slow > plain
    assert not errors(plan.document)


def test_ways_out_hold_in_all_cases() -> None:
    """They were those of the case as written: followed, each of them was as impossible as before."""
    least = {
        name: api.solve(parse_scenario(TEXT.split("uncertainty")[0].replace("qpm: 600", f"qpm: {qpm}"), file="u.yaml"))
        for name, qpm in (("written", 600), ("busy", 1800))
    }
    written, busy = (least[name].document["summary"]["cost_usd"] for name in ("written", "busy"))
    for budget, members in ((written / 2, True), ((written + busy) / 2, False)):
        asked = parse_scenario(f"{TEXT}limits: {{budget: ${budget:.2f}}}\n", file="uncertain.yaml")
        found = api.solve(asked)
        assert found.document["status"] == "infeasible"
        told = found.document["infeasible"]
        assert [one["name"] for one in told["conflict"]] == (["assistant", "limits.budget"] if members else [])
        ways = [way for way in told["ways_out"] if way["to"] is not None]
        for way in ways:
            there = api.solve(with_settings(asked, way["setting"].split("; ")))
            assert there.document["status"] in ("optimal", "feasible"), way["setting"]
        kept = [way["limit"] for way in told["ways_out"] if way["to"] is None]
        assert ("limits.budget" in kept) == members  # enough for the case as written, and not for the busy one
        (line,) = [one for one in found.document["warnings"] if "cases of the uncertainty" in one]
        assert line.endswith("without a plan even by itself: as written, busy" if members else "itself: busy")
        assert line in " ".join(render_first(found.document, "table").split())
        assert not errors(found.document)


def test_what_may_happen_is_compared_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twenty cases the cost at the median of the errors was worked out for each, and told of none."""
    compared: list[str] = []

    def noted(candidates: Any, *_: Any, **__: Any) -> None:
        compared.append(candidates.scenario.name)

    monkeypatch.setattr("planner.analysis.beside.median_cost", noted)
    monkeypatch.setattr("planner.analysis.beside.best_single_kind", noted)
    more = [{"name": "more", "probability": "50 %", "set": {"training.gpt2-xl.tokens": "3B"}}]
    plan = api.solve({**api.load_scenario("gpt2-xl").resolved, "uncertainty": more})
    assert len(compared) == 2
    assert plan.verify() == []
