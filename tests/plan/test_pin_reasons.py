"""Layouts that are fixed and go together nowhere: the reason that is told is the true one, with a way out."""

from __future__ import annotations

from typing import Any

import pytest

from planner import api
from planner.errors import InputError
from planner.scenario.schema import Scenario
from tests.worlds import scenario

JOB = {"name": "train", "model": "llama-3.1-70b", "tokens": "2B", "deadline": "30 days"}
FLEET = {"name": "chat", "model": "llama-3.1-70b", "weights": "fp8", "qpm": 60, "input_tokens": 1500,
         "output_tokens": 400}  # fmt: skip
DRAFTS = {"length": 2, "acceptance": 0.8}
HARDWARE = {"allow": ["h100-sxm-80gb"], "providers": ["hyperstack", "nebius"]}


def trained(layout: object, quota: int | None = None, **changes: Any) -> Scenario:
    quotas = {"quotas": [{"device": "h100-*", "max_devices": quota}]} if quota else {}
    return scenario([{**JOB, "layout": layout, **changes}], hardware={**HARDWARE, **quotas})


def served(layout: object, **changes: Any) -> Scenario:
    return scenario(serving=[{**FLEET, "layout": layout, **changes}], hardware=HARDWARE)


def test_tensor_ranks_of_a_replica_go_over_machines_where_they_are_fixed_so() -> None:
    """16 on two nodes of eight were "no machine that may be used" where eight in two stages were planned."""
    document = api.solve(served("tp16")).document
    (row,) = document["workloads"][0]["allocations"]
    assert (row["layout"]["tp"], row["devices"] % 16) == (16, 0)
    assert not api.verify(document)
    free = api.solve(served("tp4 pp1")).document
    assert all(row["layout"]["tp"] == 4 for row in free["workloads"][0]["allocations"])


def test_tensor_ranks_that_nobody_fixed_do_not_leave_a_machine() -> None:
    document: Any = api.solve(served("tp16")).document
    del document["scenario"]["serving"][0]["layout"]
    assert any("leaves the fast domain" in problem.message for problem in api.verify(document))


@pytest.mark.parametrize(
    ("asked", "why", "way_out"),
    [
        (
            trained("tp16"),
            "stay within the fast links of a machine, 8 devices at most",
            "tp8 pp2 is on as many devices",
        ),
        (trained("dp1000"), "with dp 1000 a global batch is a multiple of 1,000 sequences, and none is within the", ""),
        (
            trained("mb128", global_batch="64 sequences"),
            "with micro_batch 128 a global batch is a multiple of 128 sequences, and none is within the 58 to 70",
            "or write global_batch: 524288 tokens",
        ),
        (
            trained("dp64 tp8", quota=32),
            "it takes 512 devices at least, and 32 may be had for one job",
            "{dp: 4, tp: 8}",
        ),
        (
            trained("ep8 tp2 dp3", model="mixtral-8x7b"),
            "the 6 ranks of a stage (dp·cp·tp) do not share out over ep 8",
            "{dp: 4, tp: 2, ep: 8}",
        ),
        (
            trained("tp2", model="llama-3.1-8b", framework="trl", lora={"rank": 16}),
            "TRL has no layouts with tp above 1",
            "{tp: 1}",
        ),
        (served("cp2"), "copies of its heads, 16 of them at least", "or write layout: {tp: 16, cp: 2}"),
        (served("tp8 cp4"), "copies of its heads, and none would", "{tp: 8, cp: 1}"),
        (served("tp16 cp4"), "copies of its heads, 2 at most", "{tp: 16, cp: 1}"),
        (served("tp16 cp2", engine="sglang"), "sglang does not share out the tokens of a cache", "{tp: 16, cp: 1}"),
        (served("tp4 pp3"), "12 devices are more than a machine of 8 has, and fill no whole ones", ""),
        (served("tp8 pp80"), "640 devices are more than 16 machines of 8, the most of a replica", ""),
        (served("ep4 tp2 dp1", model="mixtral-8x7b"), "over all 2 ranks of a stage (tp·dp), or over one", "dp: 2"),
        (
            served("pp2 dp8", model="deepseek-v3"),
            "vllm puts all stages of an attention rank on one node, so that the experts of each stage would be",
            "",
        ),
        (
            served("tp8 pp4", engine="sglang", speculative=DRAFTS),
            "sglang drafts no tokens for a model in a pipeline",
            "{tp: 8, pp: 1}",
        ),
        (
            served("tp4 pp2", model="gemma-3-27b", speculative=DRAFTS),
            "vllm drafts no tokens by a head for a model of gemma3_text in a pipeline",
            "{tp: 4, pp: 1}",
        ),
        (
            served("tp2 pp2", engine="llama.cpp", weights="q8_0"),
            "llama.cpp splits a model by tensors or by stages alone",
            "",
        ),
    ],
)
def test_what_of_a_layout_goes_together_nowhere_is_told(asked: Scenario, why: str, way_out: str) -> None:
    """Most of these said that a network was unknown, of offers that nobody had asked for."""
    with pytest.raises(InputError) as error:
        api.solve(asked)
    (problem,) = error.value.problems
    assert problem.reference == "layout-does-not-fit"
    assert why in problem.message
    assert problem.hint.startswith("the nearest that works: {")
    assert way_out in problem.hint


def test_what_drafts_tokens_is_not_planned_in_a_pipeline_that_does_not_start() -> None:
    """SGLang stops at such arguments: DeepSeek-V3 on nodes of eight H100 stood in four stages."""
    fleet = {**FLEET, "model": "deepseek-v3", "weights": "fp8-block", "engine": "sglang", "speculative": DRAFTS}
    asked = scenario(serving=[fleet], hardware={"allow": ["h100-sxm-80gb"], "providers": ["nebius"]})
    document: Any = api.solve(asked).document
    (workload,) = document["workloads"]
    assert "drafts" in {one["reason"] for one in document["rejected"]["chat"]["reasons"]}
    assert {row["layout"]["pp"] for row in workload["allocations"]} == {1}
    for row in workload["allocations"]:
        row["layout"]["pp"] = 2
    assert any("drafts no tokens so for a model in 2 stages" in problem.message for problem in api.verify(document))


def test_virtual_stages_without_a_pipeline_are_told_as_such() -> None:
    with pytest.raises(InputError) as error:
        api.solve(trained("pp1 vpp2"))
    assert "virtual stages are of a pipeline, of pp 2 or more" in error.value.problems[0].message
