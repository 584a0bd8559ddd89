"""Weights come from the hub: whoever fetches them has its token, and the time that large ones take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml

from planner.export import Launch, ServingLaunch, TrainingLaunch, export

Read = Callable[..., list[Launch]]


def fleet(launches: Read) -> ServingLaunch:
    return next(launch for launch in launches("llama") if isinstance(launch, ServingLaunch))


def documents(form: str, launch: Launch) -> list[dict[str, Any]]:
    return [part for file in export(form, [launch]).files if file.name.endswith(".yaml")
            for part in yaml.safe_load_all(file.text)]  # fmt: skip


def container(launch: Launch) -> dict[str, Any]:
    found: dict[str, Any] = documents("kubernetes", launch)[0]["spec"]["template"]["spec"]["containers"][0]
    return found


@pytest.mark.parametrize("name", ["lora-8b", "tuned-8b", "7b"])
def test_jobs_have_the_token_of_the_hub(dozen: list[Launch], name: str) -> None:
    """Pods and tasks that tune a gated model (Llama) were refused its weights: no token reached them."""
    launch = next(one for one in dozen if one.stem == name and isinstance(one, TrainingLaunch))
    assert "HF_TOKEN" in [one["name"] for one in container(launch)["env"]]
    (task,) = documents("skypilot", launch)
    assert ("HF_TOKEN" in task.get("secrets", {})) == (name != "7b")  # which trains from nothing


def test_a_fleet_whose_weights_are_named_later_has_it_too(launches: Read) -> None:
    launch = fleet(launches)
    unnamed = replace(launch, model=replace(launch.model, hf_id=""))
    assert "HF_TOKEN" in [one["name"] for one in container(unnamed)["env"]]


@pytest.mark.parametrize(("parameters", "seconds"), [(8e9, 1800), (405e9, 3240), (671e9, 5368)])
def test_large_weights_have_the_time_to_arrive(launches: Read, parameters: float, seconds: int) -> None:
    """Half an hour was given to 671 billion parameters as to eight: pods were ended before they served."""
    launch = fleet(launches)
    large = replace(launch, model=replace(launch.model, parameters=int(parameters)))
    probe = container(large)["startupProbe"]
    assert 0 <= probe["periodSeconds"] * probe["failureThreshold"] - seconds < probe["periodSeconds"]
    (task,) = documents("skypilot", replace(large, machine=replace(large.machine, provider="aws")))
    assert task["service"]["readiness_probe"]["initial_delay_seconds"] == seconds


@pytest.mark.parametrize(("slices", "ports"), [(1, False), (3, True)])
def test_slices_are_named_to_their_servers(dozen: list[Launch], slices: int, ports: bool) -> None:
    """Each slice counts as a node: three of one card were three nodes, and all servers took the first slice."""
    (launch,) = [one for one in dozen if one.stem == "chat" and isinstance(one, ServingLaunch)]
    machine = replace(launch.machine, shape_kind="mig", shape_name="a100-sxm-80gb-3g.40gb", devices_per_node=1,
                      nodes=slices, devices=slices)  # fmt: skip
    cut = replace(launch, machine=machine, replicas=slices, replicas_needed=slices, replicas_always=slices)
    text = export("vllm", [cut]).files[0].text
    assert "CUDA_VISIBLE_DEVICES=MIG-..." in text
    assert ("a port of its own" in text) == ports
    assert "migStrategy: mixed" in export("kubernetes", [cut]).files[0].text
