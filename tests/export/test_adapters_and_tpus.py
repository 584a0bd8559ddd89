"""TRL, Axolotl and MaxText: options that the programs have, and the job of the plan in every product and sum."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from planner.architecture.load import list_presets, load_model
from planner.estimate.software_models import MAXTEXT_MODELS, maxtext_model
from planner.export import Launch, NotExpressible, TrainingLaunch, export
from planner.export.maxtext import maxtext_command
from planner.export.trl import RESUME
from tests.export.scripts import RECORDED, recorded_parser, started, syntax_error, torchrun_words
from tests.export.shells import stub_folder, words_of
from tests.tiers import settings


def read_yaml_text(text: str) -> Any:
    return yaml.safe_load(text)


@pytest.fixture
def jobs(dozen: list[Launch]) -> dict[str, TrainingLaunch]:
    return {launch.stem: launch for launch in dozen if isinstance(launch, TrainingLaunch)}


def trl_options(launch: TrainingLaunch, folder: Path | None) -> tuple[Any, int]:
    """What TRL's script is given, parsed by its recorded options; and the processes of all nodes."""
    (file,) = export("trl", [launch]).files
    assert syntax_error(file.text) == ""
    told = started(file.text if folder else file.text.replace(RESUME, ""), folder)
    options = recorded_parser("trl").parse_args(told.options)
    return options, int(told.launcher.nnodes) * told.launcher.nproc_per_node


def check_trl(launch: TrainingLaunch, options: Any, processes: int) -> None:
    layout, lora = launch.layout, launch.job.lora
    assert lora is not None
    assert processes == layout.dp == layout.devices
    step = options.per_device_train_batch_size * options.gradient_accumulation_steps * processes
    assert step == layout.global_batch_sequences
    assert options.max_length == launch.sequence_length
    tokens = options.max_steps * step * options.max_length
    assert 0 <= tokens - launch.tokens * launch.epochs < launch.tokens_per_step
    assert (options.use_peft, options.lora_r) == ("True", lora.rank)
    assert (options.load_in_4bit == "True") == (lora.base == "nf4")
    assert (options.load_in_8bit == "True") == (lora.base == "int8")
    stage = json.loads(options.deepspeed)["zero_optimization"]["stage"] if options.deepspeed else 0
    assert ("none", "zero-1", "zero-2", "zero-3")[stage] == layout.sharding
    assert options.gradient_checkpointing == str(layout.recompute == "full")


@pytest.mark.parametrize("name", ["lora-8b", "qlora-13b"])
def test_adapters_are_trained_as_planned(jobs: dict[str, TrainingLaunch], tmp_path: Path, name: str) -> None:
    check_trl(jobs[name], *trl_options(jobs[name], tmp_path))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dp=st.sampled_from((1, 2, 4, 8, 16)),
    micro=st.integers(1, 8),
    passes=st.integers(1, 40),
    sharding=st.sampled_from(("none", "zero-1", "zero-2", "zero-3")),
    recompute=st.sampled_from(("none", "full")),
    base=st.sampled_from(("bf16", "fp16", "nf4", "int8")),
)
def test_adapters_of_any_layout(
    jobs: dict[str, TrainingLaunch], dp: int, micro: int, passes: int, sharding: str, recompute: str, base: str
) -> None:
    launch = jobs["lora-8b"]
    layout = replace(launch.layout, dp=dp, micro_batch=micro, micro_batches=passes, sharding=sharding,
                     recompute=recompute, global_batch_sequences=dp * micro * passes)  # fmt: skip
    per_node = min(dp, 8)
    machine = replace(launch.machine, nodes=dp // per_node, devices_per_node=per_node, devices=dp)
    assert launch.job.lora is not None
    job = launch.job.model_copy(update={"lora": launch.job.lora.model_copy(update={"base": base})})
    asked = replace(launch, layout=layout, machine=machine, job=job, jobs=1)
    check_trl(asked, *trl_options(asked, None))


def test_a_run_goes_on_from_its_last_checkpoint(jobs: dict[str, TrainingLaunch], tmp_path: Path) -> None:
    (file,) = export("trl", [jobs["lora-8b"]]).files
    for made, last in ((), None), ((900, 1000, 99), 1000):
        for step in made:
            (tmp_path / f"out put/checkpoint-{step}").mkdir(parents=True)
        (words,) = torchrun_words([file.text], tmp_path / "stubs", CHECKPOINT_DIR=str(tmp_path / "out put"))
        told = words[words.index("--resume_from_checkpoint") + 1] if "--resume_from_checkpoint" in words else None
        assert told == (last and str(tmp_path / f"out put/checkpoint-{last}"))


def configured(launch: TrainingLaunch) -> dict[str, Any]:
    """The configuration that Axolotl is given, each key of a name, type and choice that it has."""
    config, text = export("axolotl", [launch]).files
    assert syntax_error(text.text) == ""
    keys: dict[str, Any] = read_yaml_text(config.text)
    known = recorded("axolotl")
    for key, value in keys.items():
        kind, choices = known[key]
        held = {"flag": bool, "int": int, "float": float | int, "str": str, "dict": dict}[kind]
        assert isinstance(value, held), (key, value)
        assert kind == "flag" or not isinstance(value, bool), (key, value)
        assert not choices or value in choices, (key, value)
    return keys


def check_axolotl(launch: TrainingLaunch, keys: dict[str, Any]) -> None:
    layout, lora = launch.layout, launch.job.lora
    processes = launch.machine.devices // launch.jobs
    assert processes == layout.dp == layout.devices
    step = keys["micro_batch_size"] * keys["gradient_accumulation_steps"] * processes
    assert step == layout.global_batch_sequences
    assert keys["sequence_len"] == launch.sequence_length
    tokens = keys["max_steps"] * step * keys["sequence_len"]
    assert 0 <= tokens - launch.tokens * launch.epochs < launch.tokens_per_step
    stage = keys["deepspeed"]["zero_optimization"]["stage"] if "deepspeed" in keys else 0
    assert ("none", "zero-1", "zero-2", "zero-3")[stage] == layout.sharding
    assert keys["gradient_checkpointing"] == (layout.recompute == "full")
    assert keys["bf16"] + keys["fp16"] == (launch.job.precision != "fp32")
    if lora is None:
        assert not {"adapter", "load_in_4bit", "load_in_8bit", "lora_r"} & keys.keys()
        return
    assert (keys["adapter"], keys["lora_r"]) == ("qlora" if lora.base == "nf4" else "lora", lora.rank)
    assert (keys["load_in_4bit"], keys["load_in_8bit"]) == (lora.base == "nf4", lora.base == "int8")


@pytest.mark.parametrize("name", ["lora-8b", "qlora-13b", "tuned-8b"])
def test_axolotl_trains_as_planned(jobs: dict[str, TrainingLaunch], name: str, tmp_path: Path) -> None:
    launch = jobs[name]
    keys = configured(launch)
    check_axolotl(launch, keys)
    config, text = export("axolotl", [launch]).files
    told = started(text.text, tmp_path)
    path, *options = told.options
    assert Path(path).name == config.name
    given = dict(zip(options[::2], options[1::2]))
    assert {option.removeprefix("--") for option in given} <= recorded("axolotl").keys()
    assert json.loads(given["--datasets"]) == [{"path": "/blank dataset", "type": "/blank dataset_type"}]
    hostile = "a'b\"c\\d $(e) [f]"
    (words,) = torchrun_words([text.text], tmp_path, DATASET=hostile)
    assert json.loads(words[words.index("--datasets") + 1])[0]["path"] == hostile
    assert not {option.removeprefix("--") for option in given} & keys.keys()  # nothing is said twice
    assert int(told.launcher.nnodes) * told.launcher.nproc_per_node == launch.layout.dp


def test_a_starter_writes_the_same_configuration(jobs: dict[str, TrainingLaunch], tmp_path: Path) -> None:
    """Slurm, Kubernetes and SkyPilot start what stands by itself."""
    launch = jobs["tuned-8b"]
    (file,) = export("slurm", [launch]).files
    text = re.search(r"<<'CONFIGURATION_ENDS'\n(.*?)\nCONFIGURATION_ENDS\n", file.text, re.DOTALL)
    assert text is not None
    assert read_yaml_text(text[1]) == configured(launch)
    assert syntax_error(file.text) == ""


@pytest.mark.parametrize("nodes", [1, 2])
def test_all_nodes_that_slurm_gives_have_the_configuration(jobs: dict[str, TrainingLaunch], nodes: int) -> None:
    """The batch script runs on the first: what it writes into its own /tmp the others do not see."""
    launch = jobs["tuned-8b"]
    layout = replace(launch.layout, dp=8 * nodes, global_batch_sequences=8 * nodes, micro_batch=1, micro_batches=1)
    machine = replace(launch.machine, nodes=nodes, devices_per_node=8, devices=8 * nodes)
    (file,) = export("slurm", [replace(launch, layout=layout, machine=machine, jobs=1)]).files
    lines = file.text.splitlines()
    spread = [number for number, line in enumerate(lines) if line.startswith("sbcast ")]
    assert len(spread) == (nodes > 1)
    if spread:
        assert lines[spread[0]] == 'sbcast --force "$CONFIGURATION" "$CONFIGURATION"'
        assert lines.index("CONFIGURATION_ENDS") < spread[0] < lines.index("srun --kill-on-bad-exit=1 torchrun \\")


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dp=st.sampled_from((1, 2, 4, 8, 16)),
    micro=st.integers(1, 8),
    passes=st.integers(1, 40),
    sharding=st.sampled_from(("none", "zero-1", "zero-2", "zero-3")),
    recompute=st.sampled_from(("none", "full")),
    base=st.sampled_from(("bf16", "fp16", "nf4", "int8", "")),
)
def test_axolotl_in_any_layout(
    jobs: dict[str, TrainingLaunch], dp: int, micro: int, passes: int, sharding: str, recompute: str, base: str
) -> None:
    launch = jobs["lora-8b" if base else "tuned-8b"]
    layout = replace(launch.layout, dp=dp, tp=1, pp=1, cp=1, ep=1, micro_batch=micro, micro_batches=passes,
                     sharding=sharding, recompute=recompute, global_batch_sequences=dp * micro * passes)  # fmt: skip
    per_node = min(dp, 8)
    machine = replace(launch.machine, nodes=dp // per_node, devices_per_node=per_node, devices=dp)
    job = launch.job
    if job.lora is not None:
        job = job.model_copy(update={"lora": job.lora.model_copy(update={"base": base})})
    asked = replace(launch, layout=layout, machine=machine, job=job, jobs=1)
    check_axolotl(asked, configured(asked))


@pytest.mark.parametrize(("sharding", "whole"), [("zero-2", False), ("zero-3", True)])
def test_weights_of_shards_are_saved_whole(jobs: dict[str, TrainingLaunch], sharding: str, whole: bool) -> None:
    """Axolotl stopped when all was trained: its last save asks for what these settings did not allow."""
    launch = jobs["tuned-8b"]
    asked = replace(launch, layout=replace(launch.layout, sharding=sharding))
    settings = configured(asked)["deepspeed"]["zero_optimization"]
    assert settings.get("stage3_gather_16bit_weights_on_model_save", False) is whole


@pytest.mark.parametrize(("loss", "chunked"), [("fused", True), ("chunked", True), ("standard", False)])
def test_axolotl_holds_no_more_logits_than_planned(jobs: dict[str, TrainingLaunch], loss: str, chunked: bool) -> None:
    """Its own loss holds all of them in 32 bits and more, 14 bytes and up each; 9 were planned."""
    launch = jobs["tuned-8b"]
    stack = launch.job.stack.model_copy(update={"cross_entropy": loss})
    keys = configured(replace(launch, job=launch.job.model_copy(update={"stack": stack})))
    assert keys.get("chunked_cross_entropy", False) is chunked


def test_axolotl_goes_on_from_trained_weights(jobs: dict[str, TrainingLaunch]) -> None:
    (refusal,) = export("axolotl", [jobs["7b"]]).refusals
    assert "goes on from trained weights" in refusal.reason
    assert jobs["tuned-8b"].layout.tp == jobs["tuned-8b"].layout.pp == 1  # `framework: axolotl` plans what it can run


def recorded(name: str = "maxtext") -> dict[str, tuple[str, list[str]]]:
    with (RECORDED / f"{name}.csv").open(newline="") as stream:
        return {row["option"]: (row["type"], row["choices"].split()) for row in csv.DictReader(stream)}


def maxtext_settings(launch: TrainingLaunch, folder: Path) -> dict[str, str]:
    """The settings that MaxText gets of the script, each of a name, type and choice that it has."""
    (file,) = export("maxtext", [launch]).files
    assert syntax_error(file.text) == ""
    folder.mkdir(exist_ok=True)
    blanks = {"DATASET_FILES": "gs://a b/*", "TOKENIZER": "t", "CHECKPOINT_DIR": "gs://c", "LEARNING_RATE": "3e-4",
              "RUN": "1", "MASTER_ADDR": "10.0.0.1", "NODE_RANK": "0"}  # fmt: skip
    (words,) = words_of([file.text], stub_folder(folder), {"LC_ALL": "C.UTF-8", **blanks})
    assert words[:3] == ["python3", "-m", "maxtext.trainers.pre_train.train"]
    return dict(check_settings(words[3:]))


def check_settings(words: list[str]) -> Iterator[tuple[str, str]]:
    known = recorded()
    for word in words:
        key, _, value = word.partition("=")
        kind, choices = known[key]
        assert not choices or value in choices, word
        assert kind != "flag" or value in ("true", "false"), word
        assert kind not in ("int", "float") or math.isfinite({"int": int, "float": float}[kind](value)), word
        yield key, value


def check_maxtext(launch: TrainingLaunch, told: dict[str, str]) -> None:
    layout = launch.layout
    within, between = (
        {key.split("_")[1]: int(value) for key, value in told.items() if key.startswith(net)}
        for net in ("ici_", "dcn_")
    )
    assert within.keys() == between.keys()
    assert math.prod(between.values()) == launch.nodes_per_job
    assert math.prod(within.values()) == launch.machine.devices_per_node
    assert {axis for axis, size in between.items() if size > 1} <= {"data", "fsdp", "pipeline"}
    axes = {axis: size * between[axis] for axis, size in within.items()}
    assert math.prod(axes.values()) == layout.devices == launch.machine.devices // launch.jobs
    assert axes["data"] * axes["fsdp"] * axes["expert"] == layout.dp  # what the batch is split over
    assert (axes["tensor"], axes["context"], axes["pipeline"]) == (layout.tp, layout.cp, layout.pp)
    assert axes["expert"] == layout.ep
    assert (axes["fsdp"] > 1) == (layout.sharding == "zero-3" and layout.dp > layout.ep)
    assert (told["shard_optimizer_over_data"] == "true") == (layout.sharding == "zero-1" and layout.dp > 1)
    # as MaxText 0.2.5 counts: whole sequences of a pass over all devices, times the passes of a step
    forward = float(told["per_device_batch_size"]) * layout.devices
    assert forward == int(forward)
    assert forward * int(told["gradient_accumulation_steps"]) == layout.global_batch_sequences
    if layout.pp > 1:
        parts = int(told["num_pipeline_microbatches"])
        assert forward / parts == layout.micro_batch * layout.dp
        assert parts % layout.pp == 0
        assert launch.model.arch is not None
        stages = launch.model.arch.layer_count // int(told["num_layers_per_pipeline_stage"])
        assert stages == layout.pp * layout.vpp
    else:
        assert forward == layout.micro_batch * layout.dp
    tokens = int(told["steps"]) * layout.global_batch_sequences * int(told["max_target_length"])
    assert 0 <= tokens - launch.tokens * launch.epochs < launch.tokens_per_step


def test_slices_are_trained_on_as_planned(jobs: dict[str, TrainingLaunch], dozen: list[Launch], tmp_path: Path) -> None:
    for name in ("tpu-8b", "tpu-mixtral"):
        check_maxtext(jobs[name], maxtext_settings(jobs[name], tmp_path))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dp=st.sampled_from((1, 2, 4, 6, 8)), tp=st.sampled_from((1, 2, 4)), pp=st.sampled_from((1, 2, 4)),
    vpp=st.sampled_from((1, 2)), cp=st.sampled_from((1, 2)), ep=st.sampled_from((1, 2, 8)), micro=st.integers(1, 4),
    passes=st.integers(1, 40), sharding=st.sampled_from(("none", "zero-1", "zero-2", "zero-3")),
    slices=st.sampled_from((1, 1, 2, 4)),
)  # fmt: skip
def test_slices_of_any_layout(
    jobs: dict[str, TrainingLaunch], dp: int, tp: int, pp: int, vpp: int, cp: int, ep: int, micro: int, passes: int,
    sharding: str, slices: int,
) -> None:  # fmt: skip
    launch = jobs["tpu-mixtral"]
    devices = dp * tp * pp * cp
    layout = replace(launch.layout, dp=dp, tp=tp, pp=pp, vpp=vpp if pp > 1 else 1, cp=cp, ep=ep, micro_batch=micro,
                     micro_batches=passes, sharding=sharding, global_batch_sequences=dp * micro * passes)  # fmt: skip
    assume(devices % slices == 0)
    machine = replace(launch.machine, nodes=slices, devices_per_node=devices // slices, devices=devices)
    asked = replace(launch, layout=layout, machine=machine, jobs=1)
    if (
        dp % ep
        or (pp > 1 and passes % pp)
        or (sharding == "zero-1" and ep > 1)
        or (sharding == "zero-2" and dp * cp > 1)
        or ((dp // ep) % slices and pp % slices)
    ):
        with pytest.raises(NotExpressible):
            maxtext_command(asked)
        return
    command = maxtext_command(asked)
    told = [option[0].strip("'") for option in command.options if "$" not in option[0]]
    check_maxtext(asked, dict(check_settings(told)))


def test_slices_join_from_v4_on(jobs: dict[str, TrainingLaunch]) -> None:
    launch = jobs["tpu-mixtral"]
    layout = replace(launch.layout, dp=8, tp=4, pp=1, cp=1, ep=1, micro_batch=1, micro_batches=4, sharding="zero-3",
                     global_batch_sequences=32)  # fmt: skip
    machine = replace(launch.machine, nodes=2, devices_per_node=16, devices=32)
    asked = replace(launch, layout=layout, machine=machine, jobs=1)
    (file,) = export("maxtext", [asked]).files
    assert "--node-count 2" in file.text
    assert "dcn_fsdp_parallelism=2" in file.text
    assert "ici_fsdp_parallelism=4" in file.text
    small = replace(asked, machine=replace(machine, nodes=4, devices_per_node=8))
    for form in ("slurm", "kubernetes", "skypilot"):  # none of which makes slices one job
        assert not export(form, [asked]).files
        assert not export(form, [small]).files
    old = replace(asked, machine=replace(machine, device="tpu-v3"))
    (refusal,) = export("maxtext", [old]).refusals
    assert "does not join slices" in refusal.reason


def test_models_of_maxtext_are_those_that_it_ships() -> None:
    """Each name of ours is a model of theirs, and presets of the same name have its sizes."""
    assert set(MAXTEXT_MODELS.values()) <= set(recorded()["model_name"][1])
    named = {name: maxtext_model(load_model(name)) for name in list_presets()}
    assert named["llama-3.1-8b"] == "llama3.1-8b"
    assert named["llama-2-7b"] == "llama2-7b"
    assert named["mixtral-8x7b"] == "mixtral-8x7b"
    assert named["gemma-2-9b"] == "gemma2-9b"
    assert named["pythia-1.4b"] is None
    for preset, theirs in named.items():
        for word in ("7b", "8b", "9b", "13b", "70b", "405b"):
            assert theirs is None or (word in preset.split("-")) == (word in theirs.split("-")), (preset, theirs)
