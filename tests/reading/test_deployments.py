"""Deployments of engines become fleets as they stand; what is not carried over is said."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from planner.api.asking import export_plan
from planner.api.solving import solve
from planner.errors import InputError
from planner.reading.kinds import Asked, Reading, read
from planner.reading.piece_writing import still_wanted, write_into
from planner.reading.source import Source
from planner.scenario.load import load_scenario
from tests.reading import deployment_writers as writers

SAMPLES = os.environ.get("PLAN_SAMPLES")


def read_of(folder: Path, text: str, **asked: str) -> Reading:
    (folder / "made.yaml").write_text(text)
    return read(Source(folder / "made.yaml"), Asked(**asked))  # type: ignore[arg-type]


def fleets(reading: Reading) -> list[dict[str, Any]]:
    return list(reading.pieces[0].fragment["serving"])


@pytest.mark.parametrize(
    ("text", "fleet"),
    [
        pytest.param(writers.production_stack(),
            {"name": "chat", "model": "llama-3.1-70b", "weights": "fp8", "kv_cache": "fp8", "engine": "vllm",
             "limits": {"max_num_seqs": 128}, "layout": {"tp": 2, "pp": 1}, "min_replicas": 3}, id="production-stack"),
        pytest.param(writers.llm_d(),
            {"name": "llama-3-1-70b-instruct", "model": "llama-3.1-70b", "engine": "vllm",
             "limits": {"max_num_batched_tokens": 16384}, "layout": {"tp": 4, "pp": 1}, "min_replicas": 3,
             "disaggregated": "true"}, id="llm-d"),
        pytest.param(writers.kserve(),
            {"name": "chat", "model": "gpt-oss-120b", "weights": "mxfp4", "engine": "vllm",
             "limits": {"max_num_seqs": 64, "memory_fraction": 0.85}, "layout": {"tp": 1, "pp": 1},
             "min_replicas": 2}, id="kserve"),
        pytest.param(writers.dynamo(),
            {"name": "graph", "model": "deepseek-v3", "weights": "fp8-block", "kv_cache": "fp8", "engine": "trt-llm",
             "limits": {"max_num_seqs": 256, "memory_fraction": 0.8}, "layout": {"tp": 1, "pp": 1, "dp": 8, "ep": 8},
             "min_replicas": 3}, id="dynamo"),
        pytest.param(writers.compose(),
            {"name": "engine", "model": "qwen2.5-72b-instruct", "weights": "int4", "engine": "sglang",
             "limits": {"memory_fraction": 0.8}, "layout": {"tp": 2, "pp": 1}, "min_replicas": 2}, id="compose"),
    ],
)  # fmt: skip
def test_what_stands_becomes_a_fleet(text: str, fleet: dict[str, Any], tmp_path: Path) -> None:
    assert fleets(read_of(tmp_path, text))[0] == fleet


def test_pools_are_told_by_who_makes_the_cache(tmp_path: Path) -> None:
    text = "servingEngineSpec:\n  modelSpec:\n"
    for name, role in (("in", "kv_producer"), ("out", "kv_consumer")):
        text += f"    - {{name: {name}, modelURL: org/m-8B, replicaCount: 2, lmcacheConfig: {{kvRole: {role}}}}}\n"
    (fleet,) = fleets(read_of(tmp_path, text))
    assert (fleet["disaggregated"], fleet["min_replicas"]) == ("true", 4)


def test_devices_of_all_nodes_of_a_replica_are_counted(tmp_path: Path) -> None:
    shown = {each.label: each.value for each in read_of(tmp_path, writers.dynamo()).look}
    assert (shown["replicas"], shown["devices"]) == (3, 24)


def test_experts_spread_over_all_ranks_of_an_engine(tmp_path: Path) -> None:
    text = (
        "kind: Deployment\nmetadata: {name: moe}\nspec:\n  replicas: 2\n  template: {spec: {containers: [{image: vllm, "
        'args: ["serve", "deepseek-ai/DeepSeek-V3", "-tp", "2", "-dp=4", "--enable-expert-parallel"]}]}}\n'
    )
    (fleet,) = fleets(read_of(tmp_path, text))
    assert (fleet["layout"], fleet["min_replicas"]) == ({"tp": 2, "pp": 1, "dp": 4, "ep": 8}, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (writers.production_stack(), "routerSpec"),
        (writers.production_stack(), "enforce-eager"),
        (writers.production_stack(), "small: no format of the weights is said"),
        (writers.kserve(), "grows to 6 replicas"),
        (writers.kserve().split("---")[0], "'ours' is not among the files"),
        (writers.production_stack().replace("requestGPU: 2", "requestGPU: 4"), "use 2 devices, 4 are asked for"),
        (writers.llm_d().replace("NVIDIA-H200", "NVIDIA-X9"), "'NVIDIA-X9' is no device"),
        (writers.compose().replace("--tp 2 --dp 2", ""), "how 4 devices share the model is not said"),
        (writers.compose().replace("--tp 2", "--tp $RANKS"), "tp: a variable that the file does not set"),
        (writers.llm_d().replace("tensor: 4", "tensor: 2", 1), "split in different ways"),
        (writers.compose().replace("Qwen/Qwen2.5-72B-Instruct-AWQ", "org/ours"), "'org/ours' is no model that ships"),
    ],
)
def test_what_is_not_carried_over_is_said(text: str, said: str, tmp_path: Path) -> None:
    assert any(said in note for note in read_of(tmp_path, text).notes)


def test_the_runtime_may_stand_in_another_file(tmp_path: Path) -> None:
    service, runtime = writers.kserve().split("---")
    (tmp_path / "a.yaml").write_text(service)
    (tmp_path / "b.yaml").write_text(runtime)
    together = fleets(read(Source(tmp_path / "a.yaml", tmp_path / "b.yaml")))
    assert together == fleets(read_of(tmp_path, writers.kserve()))


def test_devices_come_of_labels_machines_or_the_command_line(tmp_path: Path) -> None:
    assert read_of(tmp_path, writers.llm_d()).pieces[0].fragment["hardware"] == {"allow": ["h200-sxm"]}
    assert read_of(tmp_path, writers.kserve()).pieces[0].fragment["hardware"] == {"allow": ["h100-sxm-80gb"]}
    asked = read_of(tmp_path, writers.compose(), accelerator="l40s")
    assert asked.pieces[0].fragment["hardware"] == {"allow": ["l40s"]}
    assert "hardware" not in read_of(tmp_path, writers.compose()).pieces[0].fragment


def test_into_a_scenario_every_fleet_goes_and_its_hardware_stays(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(
        "schema: plan/v1\nname: mine\nserving:\n  - name: old\n    model: llama-3.1-8b\n    qpm: 30\n"
        "    input_tokens: 9\n    output_tokens: 9\nhardware:\n  allow: [a100-*]\n"
    )
    write_into(read_of(tmp_path, writers.production_stack(), accelerator="h100"), str(scenario), Asked())
    wanted = still_wanted(str(scenario))
    assert len(wanted) == 6  # rate and lengths of two fleets
    assert all("missing in serving" in each and "add" in each for each in wanted)
    text = scenario.read_text()
    assert "[a100-*]" in text
    assert [text.count(f"name: {name}\n") for name in ("old", "chat", "small")] == [1, 1, 1]


def test_with_its_load_it_is_a_plan_and_what_replaces_it_may_stay_with_it(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    write_into(read_of(tmp_path, writers.compose(), accelerator="h100-sxm-80gb"), str(scenario), Asked())
    load = ["serving.engine.qpm=60", "serving.engine.input_tokens=900", "serving.engine.output_tokens=200"]
    stands: Any = solve(load_scenario(scenario, settings=load)).document
    row = stands["workloads"][0]["allocations"][0]
    assert row["replicas"] == 2
    assert row["layout"]["tp"] == 2


def test_what_we_export_is_read_as_it_was_planned(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "schema: plan/v1\nname: mine\nserving:\n  - {name: chat, model: llama-3.1-70b, weights: fp8, kv_cache: fp8,\n"
        "     qpm: 300, input_tokens: 1500, output_tokens: 400, layout: {tp: 4, pp: 1}}\n"
        "hardware: {allow: [h100-sxm-80gb], providers: [aws]}\n"
    )
    plan = solve(load_scenario(tmp_path / "mine.yaml"))
    made = export_plan(plan, "kubernetes")
    text = next(file.text for file in made.files if file.name.endswith(".yaml"))
    fleet = fleets(read_of(tmp_path, text))[0]
    planned: Any = plan.document["workloads"][0]["allocations"][0]
    assert fleet["layout"] == {"tp": 4, "pp": 1}
    assert (fleet["model"], fleet["weights"], fleet["kv_cache"]) == ("llama-3.1-70b", "fp8", "fp8")
    assert fleet["min_replicas"] == planned["replicas"]


def test_quotas_are_the_most_devices(tmp_path: Path) -> None:
    reading = read_of(tmp_path, writers.kueue())
    assert (reading.kind, reading.taken) == ("queues", 2)
    assert reading.pieces[0].fragment == {"limits": {"max_devices": 24}}
    assert reading.skipped.reasons == {"a quota of no accelerators": (2, 1)}


def test_a_template_is_refused_with_a_way_out(tmp_path: Path) -> None:
    text = writers.production_stack().replace("routerSpec", "{{ if .Values.router }}\nrouterSpec")
    with pytest.raises(InputError, match="is a template of Helm") as caught:
        read_of(tmp_path, text)
    assert "helm template" in caught.value.problems[0].hint


def test_a_mistake_has_its_line_in_the_whole_file(tmp_path: Path) -> None:
    text = writers.kserve() + "---\na: [1\n"
    with pytest.raises(InputError) as caught:
        read_of(tmp_path, text)
    assert caught.value.problems[0].places[0].line >= text.count("\n")


@pytest.mark.campaign
@pytest.mark.skipif(not SAMPLES, reason="PLAN_SAMPLES names no folder of samples")
def test_samples_are_told_apart_and_taken_or_listed() -> None:
    for path in sorted(Path(str(SAMPLES), "deploy").iterdir()):
        reading = read(Source(path))
        assert reading.kind == ("queues" if path.name.startswith("kueue") else "deployment")
        assert reading.taken + reading.skipped.count > 0
        assert bool(reading.pieces) == (path.name.split("_")[0] not in ("kueue",) and "deployer" not in path.name)
