"""What is refused names what launches it: every format is asked for every plan, and each suggestion is followed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from planner import api
from planner.catalog.load import load_catalog
from planner.estimate.software import SOFTWARE, able
from planner.export import FORMATS, Launch, TrainingLaunch, export, launches_of, launching, suggested
from planner.export.skypilot_names import rents
from planner.export.trainer import asked_of
from tests.worlds import scenario

NONE = "no format of plan export launches it"
# allocations that nothing launches, each with what all formats say of it
UNLAUNCHED = {
    ("mixed-job", "pretrain-8b-1"): "several offers",
    ("mixed-job", "pretrain-8b-2"): "several offers",
    ("tpu", "bert-sized"): "pythia",  # no JAX software that is exported has a GPT-NeoX
}


def follow(launch: Launch) -> set[str]:
    """Formats that launch it; every refusal of the others is followed to files, or says that there are none."""
    told = {form: export(form, [launch]) for form in FORMATS}
    able = {form for form, result in told.items() if result.files}
    for form in set(FORMATS) - able:
        (refusal,) = told[form].refusals
        assert refusal.reason
        if not able:
            assert refusal.instead.startswith(NONE), (form, refusal)
            continue
        named = re.fullmatch(r"use ([a-z.-]+(?:, [a-z.-]+)*)", refusal.instead)
        assert named, (form, refusal)
        others = set(named[1].split(", "))
        assert others <= able - {form}
        assert able - others <= ({"skypilot"} if not rents(launch) else set())
        for other in others:
            assert export(other, [launch]).files
    return able


def test_every_shipped_plan_is_launched_or_said_not_to_be(
    plans: dict[str, Any], launches: Callable[..., list[Launch]]
) -> None:
    unlaunched = set()
    for name in plans:
        for launch in launches(name):
            if not follow(launch):
                unlaunched.add((name, launch.stem))
                wanted = UNLAUNCHED[name, launch.stem]
                assert any(wanted in export(form, [launch]).refusals[0].reason for form in FORMATS)
    assert unlaunched == set(UNLAUNCHED)


@pytest.mark.parametrize(
    ("shape", "engine", "said", "able"),
    [
        ("gaudi3-x8", "vllm", "vllm runs there by vllm-gaudi, a package", set()),
        ("m2-ultra-192gb-x1", "vllm", "vllm runs there by vllm-metal, a package", {"llama.cpp"}),
        ("m2-ultra-192gb-x1", "llama.cpp", "", {"llama.cpp"}),
        ("sn40l-x16", None, "no program that plan export writes for runs there", set()),
        ("arc-pro-b60-x1", "vllm", "", {"vllm", "sglang", "llama.cpp"}),
    ],
)
def test_a_fleet_that_nothing_launches_is_told_with_the_plan(
    shape: str, engine: str | None, said: str, able: set[str]
) -> None:
    """Nothing was said; only plan export did, that vLLM did not run where it had just been planned."""
    asked = {"name": "chat", "model": "llama-3.1-8b", "qpm": 1, "input_tokens": 300, "output_tokens": 50}
    hardware = {"exclude": ["*"], "owned": [{"shape": shape, "count": 1, "price": "$1/h"}]}
    plan = api.solve(scenario(serving=[asked | ({"engine": engine} if engine else {})], hardware=hardware))
    (row,) = plan.document["workloads"][0]["allocations"]
    warned = [text for text in plan.document["warnings"] if text.startswith(f"chat on {row['device']}: ")]
    assert any(said in text for text in warned) if said else not any("plan export" in text for text in warned)
    (launch,) = launches_of(plan.document, load_catalog(), command="")
    assert follow(launch) == able
    (refusal,) = export("vllm", [launch]).refusals or [None]
    if refusal and "package" in said:
        assert re.fullmatch(r"vLLM runs on [a-z0-9-]+ by vllm-[a-z]+, a package that is not exported", refusal.reason)


def test_sglang_on_tpus_is_told_to_be_another_package() -> None:
    """It was planned there, and vllm was told to launch it."""
    asked = {"name": "chat", "model": "llama-3.1-8b", "engine": "sglang", "qpm": 60, "input_tokens": 300}
    plan = api.solve(scenario(serving=[asked | {"output_tokens": 50}], hardware={"allow": ["tpu-v6e"]}))
    assert any("chat on tpu-v6e: sglang runs there by sglang-jax" in text for text in plan.document["warnings"])


def test_mixtures_that_share_a_slice_of_tpus_are_told_to_have_no_launch_file() -> None:
    """Each is a server of its own, and which chips it may have is nothing that a command line says."""
    asked = {"name": "chat", "model": "qwen3-30b-a3b", "weights": "fp8", "qpm": 1, "input_tokens": 300}
    asked |= {"output_tokens": 50, "min_replicas": 2, "layout": "tp4"}
    for shape, told in (("gcp/tpu-v6e-8", True), ("gcp/tpu-v6e-4", False)):
        hardware = {"exclude": ["*"], "owned": [{"shape": shape, "count": 2, "price": "$1/h"}]}
        plan = api.solve(scenario(serving=[asked], hardware=hardware))
        assert any("plan export gives no server its own chips" in text for text in plan.document["warnings"]) == told
        launches = launches_of(plan.document, load_catalog(), command="")
        assert [bool(follow(launch)) for launch in launches] == [not told] * len(launches)


def test_a_dozen_others(dozen: list[Launch]) -> None:
    able = {launch.stem: follow(launch) for launch in dozen}
    assert {name for name, formats in able.items() if not formats} == {"13b-fsdp"}  # tp, ZeRO-3
    assert {"torchrun", "deepspeed", "slurm", "kubernetes"} <= able["7b"]
    assert {"trl", "deepspeed", "slurm", "kubernetes"} <= able["qlora-13b"]
    assert {"maxtext", "skypilot"} <= able["tpu-8b"]
    assert {"sglang", "kubernetes"} <= able["experts"]


def test_a_suggestion_that_does_not_work_is_noticed(dozen: list[Launch], monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.export import registry

    monkeypatch.setattr(registry, "launching", lambda launch: ("torchrun", "torchtitan"))
    with pytest.raises(AssertionError):
        follow(next(launch for launch in dozen if launch.stem == "7b"))


def test_the_table_and_the_exporters_say_the_same(
    plans: dict[str, Any], launches: Callable[..., list[Launch]], dozen: list[Launch]
) -> None:
    """What a plan names as the software of a row is what writes files for it, those of the prediction first."""
    everyone = [*dozen, *(launch for name in plans for launch in launches(name))]
    jobs = [launch for launch in everyone if isinstance(launch, TrainingLaunch)]
    for launch in jobs:
        named = able(asked_of(launch))
        assert set(named) == set(SOFTWARE) & set(launching(launch)), launch.stem
        foreseen = [launch.software in SOFTWARE[name].predicted for name in named]
        assert foreseen == sorted(foreseen, reverse=True)
    assert len(jobs) > 20


def test_the_next_command_works(
    plans: dict[str, Any], launches: Callable[..., list[Launch]], dozen: list[Launch]
) -> None:
    asked = {name: launches(name) for name in plans} | {launch.stem: [launch] for launch in dozen}
    for name, some in asked.items():
        form = suggested(some)
        if form is None:
            assert not any(launching(launch) for launch in some), name
            continue
        result = export(form, some)
        assert len(result.refusals) == min(len(export(other, some).refusals) for other in FORMATS), name
        if form == "skypilot":
            assert not any("cannot rent" in file.text for file in result.files)
    assert suggested(asked["7b"]) == "torchrun"  # at Hyperstack, which is no cloud of SkyPilot
    assert suggested(asked["tpu-8b"]) == "skypilot"
    assert suggested(asked["13b-fsdp"]) is None
    assert suggested([]) is None


def test_the_trainer_that_was_predicted_is_suggested_before_others() -> None:
    """torchrun was, of Megatron-LM, beside a note that the prediction is of other software; deepspeed of adapters."""
    hardware = {"owned": [{"shape": "dgx-h100", "count": 8, "price": "$10/h"}], "allow": ["h100-sxm-80gb"]}
    whole = {"model": "qwen3-8b", "tokens": "20B", "deadline": "20 days", "framework": "fsdp", "sharding": "zero-3"}
    adapters = {"model": "llama-3.1-8b", "tokens": "100M", "deadline": "2 days", "lora": {"rank": 16}}
    for asked, expected in ((whole, "torchtitan"), (adapters, "trl")):
        plan = api.solve(scenario([{"name": "tune", **asked}], estimator="analytic", hardware=hardware))
        assert suggested(launches_of(plan.document, load_catalog(), command="")) == expected


@pytest.mark.parametrize(
    ("provider", "missing"), [("verda", "open ports"), ("hyperbolic", "open ports"), ("nebius", ""), ("lambda", "")]
)
def test_skypilot_opens_ports_only_where_it_does(dozen: list[Launch], provider: str, missing: str) -> None:
    fleet = next(launch for launch in dozen if launch.stem == "chat")
    moved = replace(fleet, machine=replace(fleet.machine, provider=provider))
    result = export("skypilot", [moved])
    assert [missing in refusal.reason for refusal in result.refusals] == ([True] if missing else [])


def test_skypilot_joins_nodes_and_bids_only_where_it_does(dozen: list[Launch]) -> None:
    job = next(launch for launch in dozen if launch.stem == "70b")
    assert job.machine.nodes > 1
    for provider, price, missing in (
        ("runpod", "on_demand", "several nodes"),
        ("lambda", "on_demand", ""),
        ("lambda", "spot", "spot machines"),
    ):
        moved = replace(job, machine=replace(job.machine, provider=provider, price_model=price))
        reasons = [refusal.reason for refusal in export("skypilot", [moved]).refusals]
        assert [missing in reason for reason in reasons] == ([True] if missing else []), (provider, price)


def test_machines_of_ones_own_are_not_referred_to_what_rents(
    plans: dict[str, Any], launches: Callable[..., Any]
) -> None:
    """SkyPilot rents: torchtitan's refusal of a job on an owned V100 names programs, and what starts them there."""
    (job,) = launches("gpt2-xl")
    assert job.machine.price_model == "owned"
    (refusal,) = export("torchtitan", [job]).refusals
    assert refusal.instead == "use torchrun, deepspeed, slurm, kubernetes"
    rented = replace(job, machine=replace(job.machine, provider="lambda", price_model="on_demand"))
    (refusal,) = export("torchtitan", [rented]).refusals
    assert "skypilot" in refusal.instead
