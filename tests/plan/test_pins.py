"""Layouts that are fixed: kept, priced beside the choice, or refused with the nearest that works."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from planner import api
from planner.analysis.why.layouts import _aside
from planner.api.sessions import Session
from planner.architecture.load import load_model
from planner.candidates.ledger import Ledger
from planner.candidates.offers import sites_of
from planner.candidates.serving_layouts import needless_pipelines, pipelines_of_what_fits, replica_layouts
from planner.catalog.load import load_catalog
from planner.errors import InputError
from planner.plan.document import resealed
from planner.report.certainty_words import certificate_words
from planner.report.plan_formats import render_plan
from planner.scenario.load import parse_scenario, with_settings
from planner.scenario.schema import Scenario
from planner.scenario.workload_parts import layout_branch
from tests.worlds import scenario

JOB = {"name": "train", "model": "llama-2-13b", "tokens": "2B", "deadline": "30 days"}
FLEET = {"name": "chat", "model": "llama-3.1-70b", "weights": "fp8", "qpm": 300, "input_tokens": 1500,
         "output_tokens": 400}  # fmt: skip
ALLOW = {"allow": ["h100-sxm-80gb"]}


def trained(layout: object, **changes: Any) -> Scenario:
    return scenario([{**JOB, "layout": layout, **changes}], hardware=ALLOW)


def served(layout: object, **changes: Any) -> Scenario:
    return scenario(serving=[{**FLEET, "layout": layout}], hardware={**ALLOW, **changes})


@pytest.mark.parametrize(
    ("layout", "kept"),
    [
        ({"tp": 2, "pp": 1}, {"tp": 2, "pp": 1}),
        ("tp4 pp2 vpp4 zero-1", {"tp": 4, "pp": 2, "vpp": 4, "sharding": "zero-1"}),
        ("dp12 mb3", {"dp": 12, "micro_batch": 3}),  # sizes that the planner does not try by itself
        ("pp2 zero-3 full", {"pp": 2, "sharding": "zero-3", "recompute": "full"}),  # nobody advises it: asked for
    ],
)
def test_a_job_keeps_the_layout_that_is_fixed(layout: object, kept: dict[str, object]) -> None:
    document = api.solve(trained(layout)).document
    (row,) = document["workloads"][0]["allocations"]
    assert {name: row["layout"][name] for name in kept} == kept  # type: ignore[literal-required]
    assert not api.verify(document)


def test_a_list_leaves_the_choice_and_costs_no_more_than_any_of_it() -> None:
    costs = {}
    for layout in ("tp2", "tp4", "tp8", {"tp": [2, 4, 8]}):
        costs[str(layout)] = api.solve(trained(layout)).document["summary"]["cost_microusd"]
    *each, together = costs.values()
    assert together == min(each)


@pytest.mark.parametrize(("layout", "kept"), [("tp8", {"tp": 8}), ("tp4 pp2", {"tp": 4, "pp": 2}), ("pp3", {"pp": 3})])
def test_a_replica_keeps_the_layout_that_is_fixed(layout: str, kept: dict[str, int]) -> None:
    document = api.solve(served(layout)).document
    for row in document["workloads"][0]["allocations"]:
        assert {name: row["layout"][name] for name in kept} == kept  # type: ignore[literal-required]
    assert not api.verify(document)


def test_a_replica_is_stretched_over_ordinary_machines_only_when_that_is_fixed() -> None:
    small: dict[str, Any] = {"allow": ["t4"], "providers": ["azure"]}  # four cards in a machine at most
    assert api.solve(served(None, **small)).document["status"] == "infeasible"
    document = api.solve(served("pp8", **small)).document
    assert document["status"] == "optimal"
    assert not api.verify(document)


def test_on_fast_links_a_replica_is_a_pipeline_only_where_tensors_cannot_be_split_or_it_is_fixed() -> None:
    """vLLM's guide: tensor parallel within a machine; a pipeline without fast links or where sizes do not divide."""
    slow = {"ttft_p95": "1 s"}
    fast = api.solve(scenario(serving=[{**FLEET, "slo": slow}], hardware=ALLOW)).document
    assert {row["layout"]["pp"] for row in fast["workloads"][0]["allocations"]} == {1}
    assert "tensor parallelism over as many devices" in str(fast["rejected"])
    fixed = api.solve(served("tp2 pp4", providers=["hyperstack"])).document
    assert {row["layout"]["pp"] for row in fixed["workloads"][0]["allocations"]} == {4}
    assert not api.verify(fixed)


def test_a_model_that_fits_on_one_device_is_given_no_pipeline_unless_one_is_fixed() -> None:
    fleet = {"name": "chat", "model": "llama-3.1-8b", "weights": "fp8", "qpm": 3000, "input_tokens": 800}
    fleet |= {"output_tokens": 40, "spare_replicas": 1, "slo": {"ttft_p99": "1 s", "tpot_p95": "20 ms"}}
    free, fixed = (
        api.solve(scenario(serving=[{**fleet, **more}], hardware={"allow": ["l40s"]})).document
        for more in ({}, {"layout": "pp4"})
    )
    assert [{row["layout"]["pp"] for row in each["workloads"][0]["allocations"]} for each in (free, fixed)] == [
        {1},
        {4},
    ]
    assert "fits on fewer devices without one" in str(free["rejected"])
    assert not api.verify(free)


def test_tensor_ranks_that_are_fixed_open_no_pipelines_that_nobody_was_offered() -> None:
    """Pools of tp4 over eight devices in two stages were cheaper than anything that was open to the same question."""
    fleet = {"name": "chat", "model": "llama-3.1-70b", "weights": "fp8", "qpm": 600, "input_tokens": 4000}
    fleet |= {"output_tokens": 500, "disaggregated": True, "slo": {"ttft_p95": "2 s", "tpot_p95": "50 ms"}}
    free, fixed = (
        api.solve(scenario(serving=[{**fleet, **more}], hardware={"allow": ["h100-sxm-80gb"]})).document
        for more in ({}, {"layout": "tp4"})
    )
    assert fixed["summary"]["cost_microusd"] >= free["summary"]["cost_microusd"]
    assert {row["layout"]["pp"] for row in fixed["workloads"][0]["allocations"]} == {1}
    assert "fits on fewer devices without one (layout: pp says otherwise)" in str(fixed["rejected"])
    assert not api.verify(fixed)


def test_where_the_cache_would_be_copied_a_model_is_cut_by_fewer_tensor_ranks() -> None:
    """Eight ranks would copy the four heads of the cache of qwen2.5-7b, one device holds the whole model."""
    asked = scenario(serving=[{**FLEET, "model": "qwen2.5-7b"}], hardware={"allow": ["h100-sxm-80gb"]})
    site = next(s for s in sites_of(asked, load_catalog(), Ledger(workload="chat")) if s.shape.devices == 8)
    layout, _, _ = replica_layouts(load_model("qwen2.5-7b"), site)
    assert needless_pipelines(load_model("qwen2.5-7b"), site, layout)[layout.devices == 8].sum() == 0
    fits = layout.devices >= 4
    needless = pipelines_of_what_fits(site, layout, fits)
    assert needless[(layout.devices == 8) & (layout.pp > 1)].all()
    assert not needless[layout.devices <= 4].any()  # nothing smaller fits
    assert not needless[layout.pp == 1].any()


@pytest.mark.parametrize(("device", "heads", "needless"), [("h100-sxm-80gb", 8, True), ("l40s", 8, False),
                                                           ("h100-sxm-80gb", 2, False)])  # fmt: skip
def test_pipelines_stay_over_the_bus_of_a_host_and_where_ranks_would_copy_the_cache(
    device: str, heads: int, needless: bool
) -> None:
    arch = load_model("llama-3.1-8b")
    arch = replace(arch, layers=tuple(replace(group, kv_heads=heads) for group in arch.layers))
    asked = scenario(serving=[FLEET], hardware={"allow": [device]})
    sites = sites_of(asked, load_catalog(), Ledger(workload="chat"))
    site = next(each for each in sites if each.shape.devices == 8)
    layout, _, _ = replica_layouts(arch, site)
    found = needless_pipelines(arch, site, layout)[(layout.tp == 2) & (layout.pp == 2)]
    assert found.tolist() == [needless]


def test_a_slice_of_tpus_runs_no_pipeline_unless_it_is_fixed() -> None:
    hardware = {"allow": ["tpu-v6e"]}
    job = {"name": "train", "model": "llama-3.1-8b", "tokens": "50B", "deadline": "30 days"}
    free, fixed = (
        api.solve(scenario([{**job, **more}], hardware=hardware)).document for more in ({}, {"layout": "tp4 pp2"})
    )
    assert [document["workloads"][0]["allocations"][0]["layout"]["pp"] for document in (free, fixed)] == [1, 2]
    assert fixed["workloads"][0]["allocations"][0]["count"] == 1  # inside a slice of eight


def test_another_layout_than_the_fixed_one_is_refused_by_the_verifier() -> None:
    document: Any = copy.deepcopy(api.solve(trained("tp2")).document)
    document["scenario"]["training"][0]["layout"] = "tp4"
    assert "illegal-layout" in {problem.reference for problem in api.verify(resealed(document))}


@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        (trained("tp3"), "tp 3: it does not divide 40 heads", "write tp: 2 or 4"),
        (trained("pp41"), "pp 41: the model has 40 layers", "write pp: 40"),
        (trained("pp1 vpp2"), "vpp 2: virtual stages are of a pipeline", "write vpp: 1"),
        (trained("ep2"), "ep 2: the model has no experts", "write ep: 1"),
        (trained("zero-3", framework="megatron"), "megatron has no zero-3", "write sharding: zero-2"),
        (served("dp2"), "dp 2: only replicas with experts", "write dp: 1"),
    ],
)
def test_a_layout_that_is_not_legal_is_refused_with_the_nearest_that_is(
    asked: Scenario, message: str, hint: str
) -> None:
    with pytest.raises(InputError) as error:
        api.solve(asked)
    (problem,) = error.value.problems
    assert problem.reference == "illegal-layout"
    assert problem.message.startswith(message)
    assert problem.hint == hint
    assert problem.places


LONG = """schema: plan/v1
name: long
serving:
  - {name: chat, model: llama-3-8b, qpm: 60, input_tokens: 8000, output_tokens: OUT}
hardware: {allow: [h100-sxm-80gb]}
"""


def test_a_fleet_of_which_hardly_a_request_fits_its_model_is_refused_where_it_says_how_long_they_are() -> None:
    """It was given a price and a launch file with --max-model-len 8192, by which each of its requests is refused."""
    with pytest.raises(InputError, match="longer than the 8,192 positions of llama-3-8b") as caught:
        api.solve(parse_scenario(LONG.replace("OUT", "193")))
    (problem,) = caught.value.problems
    assert (problem.places[0].line, problem.reference) == (4, "out-of-range")
    assert "config.json" in problem.hint
    assert api.solve(parse_scenario(LONG.replace("OUT", "192"))).document["status"] == "optimal"
    some = parse_scenario(LONG.replace("OUT", "193").replace("8000", "{mean: 8000, p95: 14000}"))
    assert any("no engine takes them" in line for line in api.solve(some).document["warnings"])
    with pytest.raises(InputError, match="longer than the 8,192 positions"):
        api.solve(parse_scenario(LONG.replace("OUT", "193").replace("8000", "{mean: 30000, p95: 60000}")))
    measured = parse_scenario(LONG.replace("OUT", "193, throughput: 2000 tokens/s"))  # of a model that was stretched
    assert api.solve(measured).document["status"] == "optimal"


def test_a_layout_that_does_not_fit_is_refused_with_the_nearest_that_does() -> None:
    with pytest.raises(InputError) as error:
        api.solve(served("tp1 pp1"))
    (problem,) = error.value.problems
    assert problem.reference == "layout-does-not-fit"
    assert "memory: needs" in problem.message
    assert problem.hint == "the nearest that works: {tp: 2, pp: 1} on h100-sxm-80gb"


def test_words_that_are_no_layout_are_refused() -> None:
    with pytest.raises(InputError) as error:
        trained("tensor2")
    assert "'tensor2', which is no part of a layout" in error.value.problems[0].message


@pytest.mark.parametrize(
    "words",
    ["tp=8,pp=2,mb=4,zero=1", "tp8, pp2, mb4, zero1", "TP=8 PP=2 micro_batch=4 sharding=zero-1", "tp8 pp2 mb4 zero-1"],
)
def test_a_layout_is_read_as_people_write_it(words: str) -> None:
    """Commas and equal signs, which launch scripts have, were no part of a layout."""
    assert layout_branch(words) == {"tp": 8, "pp": 2, "micro_batch": 4, "sharding": "zero-1"}


def test_two_sizes_of_one_kind_are_refused() -> None:
    """The last of "tp2 tp4" counted, and the first was lost."""
    with pytest.raises(InputError) as error:
        trained("tp2 tp4")
    assert "has two values of tp" in error.value.problems[0].message
    assert error.value.problems[0].hint == "write one of them, or a list: {tp: [2, 4]}"


@pytest.mark.parametrize("words", ["tensor2", "tp2 tp4", ","])
def test_what_is_no_layout_is_not_told_as_impossible(words: str) -> None:
    with pytest.raises(InputError, match="layout"):
        Session(trained("tp1")).layout_price(words)


def test_a_layout_is_priced_beside_the_choice() -> None:
    session = Session(scenario([JOB], [FLEET], hardware=ALLOW))
    cost = session.solve().document["workloads"][0]["cost_microusd"]
    (job,) = session.layout_price("tp4", workload="train")
    assert job["here"] is not None
    assert job["anywhere"] is not None
    assert {row["layout"]["tp"] for row in job["here"]["rows"]} == {4}
    assert job["here"]["cost_microusd"] >= job["anywhere"]["cost_microusd"] > cost
    assert job["here"]["dearer"] == pytest.approx(job["here"]["cost_microusd"] / cost - 1)
    refused = session.layout_price("tp3")
    assert [one["workload"] for one in refused] == ["train", "chat"]
    assert all(one["refused"].startswith("tp 3") and one["hint"] == "write tp: 2 or 4" for one in refused)


PINNED = (
    ({"layout": {"pp": [1, 2]}}, True),
    ({"layout": {"pp": [1, 2], "sharding": ["zero-1", "zero-3"]}}, False),
    ({"layout": {"pp": [1, 2]}, "framework": "fsdp"}, False),
)


def test_layouts_that_nobody_advises_are_counted_and_kept_out_of_the_proof_in_words() -> None:
    """ZeRO-2 and 3 under a pipeline: left out whatever trains, as a named program is no wider a choice; tried where pp
    and how to shard, or the software, are fixed. Of a fixed pp alone ZeRO-3 was 8 % cheaper than ZeRO-1, which it is
    not: both are predicted by rows of other software."""
    document = Session(scenario([JOB], hardware=ALLOW)).solve().document
    reasons = {one["reason"]: one["count"] for one in document["rejected"]["train"]["reasons"]}
    assert reasons["unadvised"] > 0
    assert "ZeRO-2 and ZeRO-3 under a pipeline, which few trainers allow" in " ".join(
        render_plan(document, "table").split()
    )
    assert certificate_words(document, 9).endswith(
        "; what nobody advises (ZeRO-2 and ZeRO-3 under a pipeline and the like) is not among them"
    )
    for change, left_out in (({"framework": "fsdp"}, True), *PINNED):
        other = Session(scenario([{**JOB, **change}], hardware=ALLOW)).solve().document
        assert ("unadvised" in {one["reason"] for one in other["rejected"]["train"]["reasons"]}) == left_out
        assert certificate_words(other, 9).endswith("among them") == left_out


def test_a_cheaper_layout_says_why_the_plan_did_not_weigh_it() -> None:
    (train,) = scenario([JOB], hardware=ALLOW).training
    named = train.model_copy(update={"framework": "torchtitan"})

    def priced(stage: str, stages: int, dearer: float) -> Any:
        return {"rows": [{"layout": {"sharding": stage, "pp": stages}}], "dearer": dearer}

    known = "zero-3 under a pipeline, which few trainers allow: pin pp and sharding"
    assert _aside(train, [priced("zero-3", 2, 0.1), priced("zero-3", 2, -0.1)]) == known
    assert _aside(train, [None, priced("zero-3", 2, 0.0)]) == ""
    assert _aside(named, [priced("zero-3", 2, -0.1)]) == known
    for asked, plan in ((train, priced("zero-3", 1, -0.1)), (train, priced("zero-1", 2, -0.1))):
        assert _aside(asked, [plan]) == "layouts of this kind are tried only where layout names them"


@pytest.mark.parametrize(
    ("batch", "tokens", "message"),
    [
        ("4M tokens", "3M", "a batch of 4,000,000 tokens is more than the 3,000,000 of train: not one step"),
        (
            {"min": "800 sequences", "max": "900 sequences"},
            "3M",
            "a batch of 3,276,800 tokens is more",
        ),
        ("4 sequences", "4095", "a batch of 16,384 tokens is more than the 4,095"),
        (None, "4095", "one sequence of 4,096 tokens is more than the 4,095 of train: not one step"),
        (None, "4096", None),
        ("3M tokens", "3M", None),
    ],
)
def test_a_batch_of_more_than_there_is_to_train_on_is_refused(batch: object, tokens: str, message: str | None) -> None:
    """A part of a step was planned, and a whole one launched."""
    lora = {"name": "train", "model": "llama-3.2-1b", "tokens": tokens, "deadline": "1 day", "lora": {"rank": 8}}
    given = {"global_batch": batch} if batch else {}
    asked = scenario([{**lora, **given}], hardware=ALLOW)
    if message:
        with pytest.raises(InputError) as error:
            api.solve(asked)
        assert error.value.problems[0].message.startswith(message)
        return
    document = api.solve(asked).document
    (row,) = document["workloads"][0]["allocations"]
    assert row["layout"]["global_batch_sequences"] * 4096 <= float(tokens.replace("M", "e6"))
    assert any("are few to learn from" in line for line in document["warnings"])


def test_few_steps_are_told_with_a_batch_that_makes_a_hundred() -> None:
    lora = {"name": "train", "model": "llama-3.2-1b", "tokens": "50M", "deadline": "1 day", "lora": {"rank": 8}}
    document = Session(scenario([lora], hardware=ALLOW)).solve().document
    assert any("global batch 128 sequences (GPT-3 in the LoRA paper" in line for line in document["assumed"])
    (told,) = [line for line in document["warnings"] if "few to learn from" in line]
    assert told.startswith("train: 96.9 steps of 516,096 tokens")
    mended = Session(with_settings(scenario([lora], hardware=ALLOW), [told.split("'")[1]])).solve().document
    assert not [line for line in mended["warnings"] if "few to learn from" in line]


def test_a_batch_of_fewer_sequences_than_a_tenth_of_them_moves_is_planned_and_told() -> None:
    """1.3 million tokens are no whole sequence of a million, nor is anything within a tenth of them: it is one."""
    long = {"name": "long", "model": "qwen2.5-7b", "tokens": "5B", "deadline": "14 days", "sequence_length": "1M"}
    only = {"allow": ["h100-sxm-80gb"], "providers": ["hyperstack"]}
    document = api.solve(scenario([long], hardware=only)).document
    assert document["workloads"][0]["allocations"][0]["layout"]["global_batch_sequences"] == 1
    said = "global batch 1 sequence, whole ones of 1.3 M tokens (as DeepSeek's law advises"
    assert any(said in line for line in document["assumed"])


@pytest.mark.parametrize(("batch", "able"), [("1 tokens", False), ("4095 tokens", False), ("4096 tokens", True)])
def test_a_batch_of_less_than_one_sequence_is_refused(batch: str, able: bool) -> None:
    """One token became one sequence of 4,096, and two and a half times the cost, without a word."""
    text = (
        "schema: plan/v1\nname: small\ntraining:\n"
        f"  - {{name: a, model: llama-3.2-1b, tokens: 1B, deadline: 30 days, global_batch: {batch}}}\n"
        "hardware: {allow: [h100-sxm-80gb]}\n"
    )
    if able:
        assert api.solve(parse_scenario(text)).document["status"] == "optimal"
        return
    with pytest.raises(InputError, match="less than one sequence of 4,096") as caught:
        api.solve(parse_scenario(text))
    assert [place.line for place in caught.value.problems[0].places] == [4]


def test_a_slip_in_one_size_lists_few_ways_for_its_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways of the model were listed, a million of an 8B: half a minute for a slip of the pen."""
    asked: list[str] = []
    searched = Session.search

    def noted(session: Session, other: Scenario, **more: Any) -> Any:
        asked.append(str(other.training[0].layout and other.training[0].layout.sizes))
        return searched(session, other, **more)

    monkeypatch.setattr(Session, "search", noted)
    data = {"name": "j", "model": "llama-3.1-8b", "tokens": "5B", "deadline": "20 days", "layout": {"tp": 16, "pp": 7}}
    with pytest.raises(InputError) as error:
        api.solve(scenario([data], hardware={"allow": "h100-*"}))
    assert error.value.problems[0].hint == "the nearest that works: {tp: 8, pp: 7} on h100-sxm-80gb"
    assert asked == ["{'pp': (7,)}", "{'tp': (16,)}"]
