"""How checkpoints are written, and how many stay: each trainer is told, or its file says what it does not do."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml

from planner.export import Launch, TrainingLaunch, export
from planner.scenario.workload_parts import Failures

Read = Callable[..., list[Launch]]
BEHIND = {"failures": {"checkpoint": "async"}}
STOPS, OLDER = "this trainer stops for each", "in storage: delete older ones yourself"


@pytest.fixture
def jobs(dozen: list[Launch]) -> dict[str, TrainingLaunch]:
    return {launch.stem: launch for launch in dozen if isinstance(launch, TrainingLaunch)}


def of_llama(launches: Read, job: dict[str, Any], **layout: Any) -> TrainingLaunch:
    """The shipped job with other wishes."""

    def apply(document: dict[str, Any]) -> None:
        document["workloads"][0]["allocations"][0]["layout"].update(layout)
        document["scenario"]["training"][0].update(job)

    return next(launch for launch in launches("llama", apply) if isinstance(launch, TrainingLaunch))


def wished(launch: TrainingLaunch, **failures: Any) -> TrainingLaunch:
    """A launch whose scenario speaks of checkpoints."""
    job = launch.job.model_copy(update={"failures_given": Failures.model_validate(failures)})
    return replace(launch, job=job, checkpoint_every_s=3600.0)


def text_of(form: str, launch: TrainingLaunch) -> str:
    return "\n".join(file.text for file in export(form, [launch]).files)


def test_megatron_saves_behind_training(launches: Read) -> None:
    """The plan counted the copy into host memory alone, and the file stopped for the whole of each checkpoint."""
    behind = text_of("torchrun", of_llama(launches, BEHIND, sharding="zero-1"))
    assert "--async-save" in behind.split()
    assert STOPS not in behind
    assert "--async-save" not in text_of("torchrun", of_llama(launches, {}, sharding="zero-1")).split()


@pytest.mark.parametrize("sharding", ["zero-2", "zero-3"])
def test_megatrons_fsdp_says_that_it_stops(launches: Read, sharding: str) -> None:
    """`save_checkpoint` writes no format but torch_dist behind training, and raises for others."""
    text = text_of("torchrun", of_llama(launches, BEHIND, sharding=sharding))
    assert "--async-save" not in text.split()
    assert STOPS in text


def test_torchtitan_saves_behind_training_and_keeps_as_many(launches: Read) -> None:
    told = {"failures": {"checkpoint": "async", "checkpoints_kept": 3}}
    launch = of_llama(launches, told, sharding="zero-3")
    config, _ = export("torchtitan", [launch]).files
    checkpoint = tomllib.loads(config.text)["checkpoint"]
    assert (checkpoint["async_mode"], checkpoint["keep_latest_k"]) == ("async", 3)
    plain = tomllib.loads(export("torchtitan", [of_llama(launches, {}, sharding="zero-3")]).files[0].text)["checkpoint"]
    assert not {"async_mode", "keep_latest_k"} & plain.keys()


def test_torchtitan_keeps_no_single_checkpoint(launches: Read) -> None:
    text = text_of("torchtitan", of_llama(launches, {"failures": {"checkpoints_kept": 1}}, sharding="zero-3"))
    assert "keep_latest_k" not in text
    assert OLDER in text


def test_deepspeed_and_megatron_delete_nothing(launches: Read) -> None:
    for form in ("deepspeed", "torchrun"):
        text = text_of(form, of_llama(launches, {"failures": {"checkpoints_kept": 3}}, sharding="zero-1"))
        assert f"the plan keeps 3 checkpoints {OLDER}" in text
        assert OLDER not in text_of(form, of_llama(launches, {}, sharding="zero-1"))
    assert STOPS in text_of("deepspeed", of_llama(launches, BEHIND, sharding="zero-1"))


def test_storage_that_is_paid_for_holds_as_many_as_were_counted(jobs: dict[str, TrainingLaunch]) -> None:
    launch = wished(next(job for job in jobs.values() if job.job.lora is not None), storage_price="$0.02/GB-month")
    words = text_of("trl", launch).split()
    assert words[words.index("--save_total_limit") + 1] == "2"
    settings = yaml.safe_load(export("axolotl", [launch]).files[0].text)
    assert settings["save_total_limit"] == 2


def test_fine_tuning_says_that_it_stops(jobs: dict[str, TrainingLaunch]) -> None:
    launch = wished(next(job for job in jobs.values() if job.job.lora is not None), checkpoint="async")
    for form in ("trl", "axolotl"):
        assert STOPS in text_of(form, launch)
        assert "save_total_limit" not in text_of(form, launch)


def test_maxtext_is_told_both(jobs: dict[str, TrainingLaunch]) -> None:
    one = next(job for job in jobs.values() if job.machine.device_kind == "tpu" and job.nodes_per_job == 1)
    words = text_of("maxtext", wished(one, checkpoint="async", checkpoints_kept=4)).split()
    assert {"async_checkpointing=true", "max_num_checkpoints_to_keep=4"} <= set(words)
