"""Formats of training: accepted by their programs' options, and the same job as the plan in every product and sum."""

from __future__ import annotations

import copy
import csv
import json
import math
import re
import shlex
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from planner import api, files
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.estimate.layout import chunk_layers, cut_chunks, equal_chunks
from planner.estimate.software import uneven_stages
from planner.export import Launch, NotExpressible, TrainingLaunch, export, launches_of
from planner.export.chosen_program import training_command
from planner.export.torchtitan import job_config
from planner.export.trainer import steps_between_checkpoints
from tests.export.scripts import RECORDED, Started, recorded_parser, started, syntax_error, torchrun_words
from tests.tiers import settings

TRAINING = ("torchrun", "torchtitan", "deepspeed", "slurm")
Read = Callable[..., list[Launch]]


def jobs_of(launches: list[Launch]) -> list[TrainingLaunch]:
    return [launch for launch in launches if isinstance(launch, TrainingLaunch)]


def check_launcher(launch: TrainingLaunch, told: Started) -> None:
    """torchrun starts as many processes as the layout has ranks."""
    nodes = int(told.launcher.nnodes)
    assert nodes == launch.nodes_per_job
    assert nodes * told.launcher.nproc_per_node == launch.layout.devices
    assert told.launcher.standalone is (nodes == 1)


def check_megatron(launch: TrainingLaunch, told: Started) -> None:
    layout, arch = launch.layout, launch.model.arch
    options = recorded_parser("megatron").parse_args(told.options)
    world = int(told.launcher.nnodes) * told.launcher.nproc_per_node
    split = options.tensor_model_parallel_size * options.pipeline_model_parallel_size * options.context_parallel_size
    assert world % split == 0
    replicas = world // split
    assert replicas == layout.dp
    assert options.global_batch_size == options.micro_batch_size * replicas * layout.micro_batches
    tokens = options.train_iters * options.global_batch_size * options.seq_length
    assert 0 <= tokens - launch.tokens * launch.epochs < options.global_batch_size * options.seq_length
    assert (replicas * options.context_parallel_size * options.tensor_model_parallel_size) % layout.ep == 0
    assert (options.expert_model_parallel_size or 1) == layout.ep
    assert arch is not None
    assert (options.num_layers, options.hidden_size) == (arch.layer_count, arch.hidden_size)
    sharded = {"none": None, "zero-1": None, "zero-2": "optim_grads", "zero-3": "optim_grads_params"}
    assert options.data_parallel_sharding_strategy == sharded[layout.sharding]
    assert options.use_distributed_optimizer or layout.sharding == "none"
    assert options.use_distributed_optimizer or not options.use_precision_aware_optimizer
    assert (options.recompute_granularity or "none") == layout.recompute
    assert options.data_path == ["/blank data_path"]


def check_titan(launch: TrainingLaunch, config: dict[str, Any]) -> None:
    layout, split, training = launch.layout, config["parallelism"], config["training"]
    replicas = split["data_parallel_replicate_degree"] * split["data_parallel_shard_degree"]
    degrees = [split[f"{kind}_parallel_degree"] for kind in ("tensor", "context", "pipeline")]
    assert replicas == layout.dp
    assert replicas * math.prod(degrees) == layout.devices
    assert training["global_batch_size"] % (training["local_batch_size"] * replicas) == 0
    assert training["global_batch_size"] == layout.global_batch_sequences
    tokens = training["steps"] * training["global_batch_size"] * training["seq_len"]
    assert 0 <= tokens - launch.tokens * launch.epochs < launch.tokens_per_step
    for section, field, value in flat(config):
        kind, choices = recorded_fields()[section, field]
        assert is_a(value, kind), (section, field, value, kind)
        assert not choices or value in choices, (section, field, value)


def flat(config: dict[str, Any], path: str = "") -> list[tuple[str, str, Any]]:
    rows = []
    for key, value in config.items():
        inside = f"{path}.{key}" if path else key
        rows += flat(value, inside) if isinstance(value, dict) else [(path, key, value)]
    return rows


def recorded_fields(name: str = "torchtitan") -> dict[tuple[str, str], tuple[str, list[str]]]:
    with (RECORDED / f"{name}.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {
        (row["section"], row.get("field") or row.get("key") or ""): (row["type"], row["choices"].split())
        for row in rows
    }


def is_a(value: Any, kind: str) -> bool:
    """Whether a value is of a type as the record writes it: "int", "str | None", "list[str]"."""
    kinds = {"int": int, "float": (int, float), "str": str, "bool": bool, "dict": dict}
    for part in kind.split(" | "):
        if part.startswith("list[") and isinstance(value, list):
            return True
        if part in kinds and isinstance(value, kinds[part]) and (part == "bool" or not isinstance(value, bool)):
            return True
    return False


def check_deepspeed(launch: TrainingLaunch, config: dict[str, Any], told: Started) -> None:
    world = int(told.launcher.nnodes) * told.launcher.nproc_per_node
    replicas = world // config.get("tensor_parallel", {}).get("autotp_size", 1)
    per_step = config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"] * replicas
    assert config["train_batch_size"] == per_step == launch.layout.global_batch_sequences
    assert config["zero_optimization"]["stage"] == ("none", "zero-1", "zero-2", "zero-3").index(launch.layout.sharding)
    known = recorded_fields("deepspeed")
    for section, key, value in flat({key: value for key, value in config.items() if key != "_comment"}):
        if section == "optimizer.params":
            continue  # of the optimizer's own constructor
        kind, choices = known[section, key]
        assert is_a(value, kind), (section, key, value)
        assert not choices or str(value) in choices, (section, key, value)


def check_files(form: str, launch: TrainingLaunch, folder: Path | None) -> int:
    """Every file of one launch through its parser, scripts by a real shell where there is a folder; how many."""
    texts = {file.name: file.text for file in export(form, [launch]).files}
    for name, text in texts.items():
        if name.endswith((".sh", ".sbatch")):
            assert folder is None or syntax_error(text) == ""
            assert launch.origin.plan_sha256 in text
            told = started(text, folder)
            check_launcher(launch, told)
            if told.program.endswith("pretrain_gpt.py"):
                check_megatron(launch, told)
            if "--deepspeed_config" in told.options:
                config = texts.get(f"{launch.stem}.deepspeed.json") or configuration_in(text)
                check_deepspeed(launch, json.loads(config), told)
        if name.endswith(".toml"):
            check_titan(launch, tomllib.loads(text))
    return len(texts)


def configuration_in(text: str) -> str:
    """What a script writes before it starts."""
    return text.partition("<<'CONFIGURATION_ENDS'\n")[2].partition("\nCONFIGURATION_ENDS\n")[0]


@pytest.mark.parametrize("changes", [{"optimizer": "muon"}, {"framework": "deepspeed"}, {}])
@pytest.mark.parametrize("form", ["slurm", "kubernetes", "skypilot"])
def test_starters_have_deepspeed_where_no_other_trains_or_it_is_asked_for(
    launches: Read, form: str, changes: dict[str, Any]
) -> None:
    """Of a Muon over ZeRO-2 it was said to use deepspeed, whose script each of many nodes wants by hand."""
    layout = {"layout": {"sharding": "zero-2", "pp": 1, "vpp": 1}}
    launch = jobs_of(launches("llama", changed({"job": changes, **layout})))[0]
    (own,) = [file for file in export("deepspeed", [launch]).files if file.name.endswith(".json")]
    (file,) = export(form, [launch]).files
    text = "\n".join(line.strip() for line in file.text.splitlines())
    if not changes:
        assert "TRAIN_SCRIPT" not in text
        return
    wanted = {key: value for key, value in json.loads(own.text).items() if key != "_comment"}
    assert json.loads(configuration_in(text)) == wanted
    assert "torchrun \\" in text
    assert '"$TRAIN_SCRIPT" \\\n--deepspeed_config "$CONFIGURATION" \\' in text


@pytest.mark.parametrize("form", TRAINING)
def test_every_shipped_scenario_is_accepted_or_told(
    plans: dict[str, Any], launches: Read, tmp_path: Path, form: str
) -> None:
    written = refused = 0
    for name in plans:
        for launch in jobs_of(launches(name)):
            written += check_files(form, launch, tmp_path)
            for refusal in export(form, [launch]).refusals:
                assert refusal.reason
                assert refusal.instead
                refused += 1
    assert written >= 4
    assert refused >= 3  # TPUs and a mixed job are among them


def test_slurm_asks_for_what_is_rented(launches: Read) -> None:
    options = {row["option"]: row["takes_value"] for row in csv.DictReader((RECORDED / "sbatch.csv").open(newline=""))}
    for name in ("llama", "fleet"):
        for launch in jobs_of(launches(name)):
            (file,) = export("slurm", [launch]).files
            lines = file.text.splitlines()
            first = next(number for number, line in enumerate(lines) if line and not line.startswith("#"))
            directives = [line.removeprefix("#SBATCH ") for line in lines[:first] if line.startswith("#SBATCH ")]
            assert not any(line.startswith("#SBATCH") for line in lines[first:])
            given = dict(re.fullmatch(r"(--[a-z-]+)(?:=(.*))?", line).groups() for line in directives)  # type: ignore[union-attr]
            assert set(given) <= set(options)
            assert all(value is None or options[option] != "no" for option, value in given.items())
            assert int(given["--nodes"]) * int(given["--gpus-per-node"]) == launch.layout.devices
            days, clock = given["--time"].split("-")
            hours, minutes, seconds = map(int, clock.split(":"))
            limit_h = int(days) * 24 + hours + minutes / 60 + seconds / 3600
            assert 0 <= limit_h - 1.2 * launch.timing.at_confidence_hours < 1 / 60 + 1e-9
            assert given.get("--array") == (f"1-{launch.jobs}" if launch.jobs > 1 else None)


@pytest.mark.parametrize(("kind", "alone"), [("instance", True), ("onprem", True), ("mig", False)])
def test_a_slice_of_a_device_leaves_its_node_to_others(launches: Read, kind: str, alone: bool) -> None:
    """One of seven slices of an A100 was asked for with the whole node, where the other six are."""
    launch = jobs_of(launches("llama"))[0]
    machine = replace(launch.machine, shape_kind=kind, nodes=1, devices_per_node=1, devices=1)
    layout = replace(launch.layout, dp=1, sharding="none", micro_batches=launch.layout.micro_batches * launch.layout.dp)
    (file,) = export("slurm", [replace(launch, machine=machine, layout=layout)]).files
    assert ("#SBATCH --exclusive\n" in file.text) == alone
    assert ("by the type that your cluster gives it" in file.text) != alone


@pytest.mark.parametrize("form", ["torchrun", "deepspeed", "slurm"])
def test_devices_that_cuda_left_out_are_told(launches: Read, form: str) -> None:
    """A training on K80 was written for programs whose wheels have no code for them, without a word."""
    for family, told in (("kepler", True), ("volta", False)):
        change = changed({"job": {"precision": "fp32"}, "layout": {"sharding": "zero-1"}})
        launch = jobs_of(launches("llama", change))[0]
        old = replace(launch, machine=replace(launch.machine, family=family))
        assert any("CUDA 12 left these devices out" in file.text for file in export(form, [old]).files) == told


def test_identical_runs_do_not_share_a_folder(launches: Read, tmp_path: Path) -> None:
    launch = next(launch for launch in jobs_of(launches("fleet")) if launch.jobs == 4)
    assert launch.machine.devices == 4 * launch.layout.devices
    (file,) = export("slurm", [launch]).files
    folders = set()
    for run in "1234":
        (words,) = torchrun_words([file.text], tmp_path, SLURM_ARRAY_TASK_ID=run)
        folders.add(
            words[words.index("--save") + 1] if "--save" in words else words[words.index("--checkpoint.folder") + 1]
        )
    assert folders == {f"/blank checkpoint_dir/run-{run}" for run in "1234"}


def test_a_blank_that_is_not_filled_in_stops_the_script(launches: Read, tmp_path: Path) -> None:
    (file,) = export("torchrun", jobs_of(launches("llama"))).files
    with pytest.raises(AssertionError, match="TOKENIZER"):
        torchrun_words([file.text], tmp_path, TOKENIZER="")
    assert len(torchrun_words([file.text], tmp_path)) == 1


def changed(change: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """Changes of the first training job: of its row, its layout, and what the scenario says of it."""

    def apply(document: dict[str, Any]) -> None:
        row = document["workloads"][0]["allocations"][0]
        row["layout"].update(change.get("layout", {}))
        row.update(change.get("row", {}))
        document["scenario"]["training"][0].update(change.get("job", {}))

    return apply


LORA = {"lora": {"rank": 16}}
REFUSED = [
    ("torchrun", {"layout": {"pp": 2, "dp": 8, "sharding": "zero-3", "micro_batches": 62}}, "pipeline"),
    ("torchrun", {"job": LORA}, "adapters"),
    ("torchrun", {"job": {"optimizer": "adafactor"}}, "adafactor"),
    ("torchrun", {"job": {"stack": {"cross_entropy": "chunked"}}}, "chunked"),
    ("torchrun", {"job": {"offload": ["activations"]}}, "activations"),
    ("torchrun", {"job": {"model": {"parameters": "8B"}}}, "only the size"),
    ("torchrun", {"job": {"model": "gemma-2-9b"}}, "gemma2"),
    ("torchrun", {"job": {"optimizer": "muon"}}, "Muon"),
    ("torchrun", {"job": {"model": "mixtral-8x7b", "precision": "fp16"}}, "experts, whose products it groups"),
    ("torchrun", {"job": {"model": "mixtral-8x7b", "precision": "fp32"}}, "experts, whose products it groups"),
    ("torchrun", {"job": {"offload": ["optimizer"]}, "layout": {"sharding": "none"}}, "distributed optimizer"),
    ("torchrun", {"job": {"offload": ["optimizer"], "optimizer": "sgd"}}, "Adam only"),
    ("torchrun", {"layout": {"dp": 8, "micro_batches": 31}}, "takes 8 devices of 16"),
    ("torchrun", {"layout": {"micro_batches": 30}}, "do not divide"),
    ("torchrun", {"layout": {"pp": 8, "vpp": 3, "dp": 2, "micro_batches": 248, "sharding": "zero-1"}}, "do not divide"),
    ("torchrun", {"layout": {"pp": 2, "vpp": 2, "dp": 8, "sharding": "none", "global_batch_sequences": 488,
                             "micro_batches": 61}}, "multiples of pp"),
    ("torchtitan", {"layout": {"sharding": "zero-1"}}, "zero-1"),
    ("torchtitan", {"job": {"precision": "fp16"}}, "fp16"),
    ("torchtitan", {"job": {"model": "deepseek-v3"}, "layout": {"tp": 4, "dp": 4, "ep": 2, "micro_batches": 124}},
     "groups of 4 ranks"),
    ("torchtitan", {"job": {"model": "gpt2-xl"}}, "ships no model"),
    ("torchtitan", {"layout": {"sharding": "none", "tp": 2, "dp": 8, "micro_batches": 62}}, "replicates"),
    ("deepspeed", {"layout": {"pp": 2, "dp": 8, "micro_batches": 62}}, "PipelineModule"),
    ("deepspeed", {"layout": {"cp": 2, "dp": 8, "micro_batches": 62}}, "Ulysses"),
    ("deepspeed", {"layout": {"ep": 2}}, "experts"),
    ("deepspeed", {"layout": {"tp": 2, "dp": 8, "micro_batches": 62, "sharding": "zero-3"}}, "tensor parallelism"),
    ("deepspeed", {"job": {"precision": "fp8"}}, "fp8"),
    ("deepspeed", {"job": {"optimizer": "muon"}, "layout": {"sharding": "none"}}, "Muon wants zero-1"),
    ("deepspeed", {"job": {"optimizer": "adamw-pure-bf16"}, "layout": {"sharding": "none"}}, "16-bit master weights"),
    ("deepspeed", {"job": {"offload": ["optimizer"]}, "layout": {"sharding": "none"}}, "offloads an optimizer"),
    ("deepspeed", {"job": {"offload": ["activations"]}}, "computes again"),
    ("slurm", {"row": {"device": "tpu-v6e"}}, "TPU"),
    ("slurm", {"row": {"shape": "mig/a100-sxm-80gb-1g.10gb", "device": "a100-sxm-80gb"}}, "slice"),
    ("slurm", {"job": LORA, "layout": {"pp": 2, "dp": 8, "micro_batches": 62}}, "PipelineModule"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "change", "reason"), REFUSED, ids=[f"{row[0]}-{row[2]}" for row in REFUSED])
def test_what_a_target_cannot_say_is_refused(launches: Read, form: str, change: dict[str, Any], reason: str) -> None:
    launch = jobs_of(launches("llama", changed(change)))[0]
    result = export(form, [launch])
    assert not result.files
    assert reason in result.refusals[0].reason
    assert result.refusals[0].instead


@pytest.mark.parametrize("sharding", ["zero-1", "zero-2", "zero-3"])
def test_what_wants_zero_is_launched_with_it(launches: Read, sharding: str) -> None:
    for job in ({"optimizer": "muon"}, {"optimizer": "adamw-pure-bf16"}, {"offload": ["optimizer"]}):
        result = export(
            "deepspeed", [jobs_of(launches("llama", changed({"job": job, "layout": {"sharding": sharding}})))[0]]
        )
        assert result.files
        assert not result.refusals


@pytest.mark.parametrize(("sharding", "name"), [("none", "muon"), ("zero-1", "dist_muon")])
def test_megatron_shards_muon_by_another_name(launches: Read, sharding: str, name: str) -> None:
    """It was launched with DeepSpeed alone, and saved in a format at which that commit of Megatron-LM stops."""
    change = changed({"job": {"optimizer": "muon", "framework": "megatron"}, "layout": {"sharding": sharding}})
    (file,) = export("torchrun", [jobs_of(launches("llama", change))[0]]).files
    words = file.text.split()
    assert words[words.index("--optimizer") + 1] == name
    assert words[words.index("--ckpt-format") + 1] == "torch"
    assert not {"--use-distributed-optimizer", "--overlap-grad-reduce", "--overlap-param-gather"} & set(words)
    assert "Muon overlaps no exchange" in file.text


STAGES = {"pp": 5, "dp": 2, "sharding": "none", "global_batch_sequences": 480, "micro_batches": 240}
TEN = {"count": 5, "devices": 10, "devices_per_shape": 2}
EXPERTS = {"ep": 8, "sharding": "zero-1"}
ACCEPTED: list[tuple[dict[str, Any], list[str]]] = [
    ({"layout": {"sharding": "zero-1", "recompute": "full"}}, ["--recompute-method", "--use-distributed-optimizer"]),
    ({"layout": {"tp": 4, "dp": 4, "micro_batches": 124}}, ["--sequence-parallel"]),
    ({"layout": STAGES, "row": TEN}, ["--decoder-first-pipeline-num-layers"]),
    ({"job": {"precision": "fp8"}}, ["--fp8-format", "--bf16", "--fp8-recipe", "tensorwise"]),
    ({"job": {"precision": "fp8"}, "row": {"device": "b200-sxm"}}, ["--fp8-recipe", "mxfp8"]),  # as rows were measured
    ({"job": {"optimizer": "adamw-bf16-moments"}}, ["--exp-avg-dtype"]),
    ({"job": {"framework": "pytorch"}, "layout": {"sharding": "zero-1"}}, ["--grad-reduce-in-bf16"]),  # 16 bytes
    ({"job": {"model": "mixtral-8x7b"}, "layout": EXPERTS}, ["--expert-model-parallel-size"]),
    ({"job": {"model": "deepseek-v3"}, "layout": EXPERTS}, ["--multi-latent-attention", "--no-rope-fusion"]),
    ({"job": {"model": "mistral-7b"}}, ["--window-size"]),
    ({"job": {"model": "qwen2.5-7b"}}, ["--add-qkv-bias"]),
    ({"job": {"model": "nemotron-4-15b"}}, ["--squared-relu"]),
    ({"job": {"offload": ["optimizer"]}}, ["--optimizer-cpu-offload"]),
]


@pytest.mark.parametrize(("change", "words"), ACCEPTED, ids=[" ".join(row[1]) for row in ACCEPTED])
def test_what_megatron_can_say_is_said(
    launches: Read, tmp_path: Path, change: dict[str, Any], words: list[str]
) -> None:
    launch = jobs_of(launches("llama", changed(change)))[0]
    assert check_files("torchrun", launch, tmp_path) == 1
    (file,) = export("torchrun", [launch]).files
    assert all(word in file.text.split() for word in words)


SCALED = [
    ("llama-3.1-8b", {"rope_type": "llama3", "factor": 8.0}, "--use-rope-scaling --rope-scaling-factor 8.0"),
    ("deepseek-v3", {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0},
     "--rope-type yarn --rotary-scaling-factor 40.0 --mscale 1.0 --mscale-all-dim 1.0"),
    ("llama-3.1-8b", {"type": "yarn", "factor": 4}, ""),
    ("llama-3.1-8b", {"rope_type": "llama3", "factor": "8; reboot"}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("model", "scaling", "options"), SCALED)
def test_a_config_of_ones_own(
    launches: Read, tmp_path: Path, model: str, scaling: dict[str, Any], options: str
) -> None:
    """What the config.json of a checkpoint says of its positions is said to Megatron-LM, or refused."""
    from planner.architecture.load import preset_card

    routing = {"n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0}
    config = {**preset_card(model).config, **routing, "rope_scaling": scaling, "rms_norm_eps": 1e-5, "rope_theta": 5e5}
    (tmp_path / "config.json").write_text(json.dumps(config))
    change = changed({"job": {"model": {"config": str(tmp_path / "config.json")}}})
    with files.outside_allowed():  # it lies in no folder of the scenario's
        result = export("torchrun", jobs_of(launches("llama", change)))
    if options:
        assert options in result.files[0].text.replace(" \\\n  ", " ")
        assert "leaves out" not in result.files[0].text
    else:
        assert not result.files
        assert result.refusals[0].reason


ROUTED = [
    ("deepseek-v3", {"n_group": 8, "topk_group": 4, "routed_scaling_factor": 2.5},
     "--moe-router-enable-expert-bias --moe-router-num-groups 8 --moe-router-group-topk 4 "
     "--moe-router-topk-scaling-factor 2.5 --moe-grouped-gemm"),
    ("deepseek-v2-lite", {"n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0, "norm_topk_prob": False},
     "--moe-shared-expert-intermediate-size 2816 --moe-router-pre-softmax --moe-grouped-gemm"),
    ("qwen3-30b-a3b", {"norm_topk_prob": True}, "--moe-router-topk 8 --moe-grouped-gemm"),
    ("deepseek-v3", {"routed_scaling_factor": "2; reboot"}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("model", "routing", "options"), ROUTED)
def test_tokens_find_their_experts_as_the_config_says(
    launches: Read, tmp_path: Path, model: str, routing: dict[str, Any], options: str
) -> None:
    """Groups, scale and order of the softmax were left out, so that a checkpoint was routed in another way."""
    from planner.architecture.load import preset_card

    (tmp_path / "config.json").write_text(json.dumps({**preset_card(model).config, **routing}))
    change = changed({"job": {"model": {"config": str(tmp_path / "config.json")}}, "layout": EXPERTS})
    with files.outside_allowed():
        result = export("torchrun", jobs_of(launches("llama", change)))
    if not options:
        assert "routed_scaling_factor" in result.refusals[0].reason
        return
    text = result.files[0].text
    assert options in text.replace(" \\\n  ", " ")
    assert not any(f"{key} (--moe" in text for key in routing)
    assert ("no loss keeps the experts evenly used" in text) == (model != "deepseek-v3")
    (plain,) = jobs_of(launches("llama", changed({"job": {"model": model}, "layout": EXPERTS})))[:1]
    assert all(f"{key} (--moe-router-" in export("torchrun", [plain]).files[0].text for key in routing)


def test_every_model_has_megatron_options_or_a_reason(launches: Read, tmp_path: Path) -> None:
    """Options of each shipped model are accepted; the sizes in them count up to the model's own parameters."""
    from planner.architecture.load import list_presets

    exported = []
    for name in list_presets():
        launch = jobs_of(launches("llama", changed({"job": {"model": name}})))[0]
        try:
            command = training_command(launch)
        except NotExpressible:
            continue
        if command.target.name == "Megatron-LM":
            line = " ".join(" ".join(option) for option in command.options).replace('"$LEARNING_RATE"', "3e-4")
            parsed = recorded_parser("megatron").parse_args(shlex.split(line))
            assert parsed.multi_latent_attention is name.startswith(("deepseek", "kimi"))
            assert parsed.no_rope_fusion is parsed.multi_latent_attention
            assert parsed.vocab_size == launch.model.arch.vocab_size  # type: ignore[union-attr]
            exported.append(name)
    assert {"llama-2-7b", "qwen2.5-7b", "mixtral-8x7b", "deepseek-v3", "gpt2", "nemotron-4-15b"} <= set(exported)
    assert not {"falcon-7b", "bloom-176b", "gemma-2-9b", "qwen3-next-80b-a3b", "gpt-oss-20b"} & set(exported)


def test_layers_that_make_no_equal_chunks_are_laid_out_for_megatron(launches: Read, tmp_path: Path) -> None:
    """61 layers in 32 chunks of two but for three, as recipes write it; options that count chunks would be refused."""
    layout = {"pp": 16, "vpp": 2, "dp": 1, "ep": 1, "sharding": "zero-1", "micro_batches": 496}
    change = changed({"job": {"model": "deepseek-v3"}, "layout": layout})
    (launch,) = jobs_of(launches("llama", change))
    assert check_files("torchrun", launch, tmp_path) == 1
    (file,) = export("torchrun", [launch]).files
    assert "--pipeline-model-parallel-layout 'Et|(tt|)*29t|tL'" in file.text
    assert not any(f"--{name}" in file.text for name in ("num-virtual", "decoder-first", "account-for"))


def test_stages_without_chunks_are_laid_out_where_their_ends_do_not_make_up_for_it(
    launches: Read, tmp_path: Path
) -> None:
    """61 layers in 32 stages, two in each of 29: the plan was told that no program runs it, or to take another pp."""
    layout = {"pp": 32, "vpp": 1, "dp": 1, "ep": 1, "sharding": "zero-1", "micro_batches": 496}
    row = {"devices": 32, "count": 4, "devices_per_shape": 8}
    change = changed({"job": {"model": "deepseek-v3"}, "layout": layout, "row": row})
    (launch,) = jobs_of(launches("llama", change))
    assert check_files("torchrun", launch, tmp_path) == 1
    (file,) = export("torchrun", [launch]).files
    assert "--pipeline-model-parallel-layout 'Et|(tt|)*29t|tL'" in file.text
    assert not any(f"--{name}" in file.text for name in ("num-virtual", "decoder-", "account-for"))


@pytest.mark.parametrize("layers", range(8, 130))
def test_chunks_of_two_sizes_hold_the_layers_and_load_no_stage_more(layers: int) -> None:
    for pp in range(2, 33):
        for vpp in range(2, layers // pp + 1):
            if not cut_chunks(layers, pp, vpp) or equal_chunks(layers, pp, vpp):
                continue
            chunks = chunk_layers(layers, pp, vpp)
            assert len(chunks) == pp * vpp
            assert sum(chunks) == layers
            assert 1 <= max(chunks) - 1 <= min(chunks) <= max(chunks)
            assert max(sum(chunks[rank::pp]) for rank in range(pp)) <= -(-layers // pp)
            assert uneven_stages(pp, vpp, layers) == (sum(chunks[::pp]), sum(chunks[pp - 1 :: pp]))


def test_stages_hold_no_more_layers_than_planned(launches: Read) -> None:
    for layers in range(2, 100):
        for pp in range(2, min(layers, 17) + 1):
            ends = uneven_stages(pp, 1, layers)
            assert ends is not None
            fullest = -(-layers // pp)
            first, last = ends
            middle, left = divmod(layers - first - last, pp - 2) if pp > 2 else (0, layers - first - last)
            if left:  # stages that a layout tells
                stages = chunk_layers(layers, pp, 1)
                assert (sum(stages), len(stages)) == (layers, pp)
                assert 1 <= min(stages) <= max(stages) == fullest
                assert (stages[0], stages[-1]) == ends
                continue
            assert 1 <= first <= fullest
            assert 1 <= last <= fullest
            assert pp == 2 or 1 <= middle <= fullest


SIZES = st.sampled_from((1, 2, 4, 8))
LAYOUTS = st.fixed_dictionaries(
    {
        "dp": st.integers(1, 12), "tp": SIZES, "pp": st.integers(1, 8), "vpp": st.integers(1, 3), "cp": SIZES,
        "micro_batch": st.integers(1, 4), "micro_batches": st.integers(1, 40),
        "sharding": st.sampled_from(("none", "zero-1", "zero-2", "zero-3")),
        "recompute": st.sampled_from(("none", "selective", "full")),
    }
)  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    layout=LAYOUTS,
    per_node=st.sampled_from((1, 2, 4, 8)),
    tokens=st.integers(1, 10**12),
    sequence_length=st.sampled_from((1024, 8192)),
)
def test_products_and_sums_hold_for_any_layout(
    launches: Read, layout: dict[str, Any], per_node: int, tokens: int, sequence_length: int
) -> None:
    ranks = layout["dp"] * layout["tp"] * layout["pp"] * layout["cp"]
    assume(ranks % per_node == 0 and (layout["vpp"] == 1 or layout["pp"] > 1))
    layout = layout | {"global_batch_sequences": layout["dp"] * layout["micro_batch"] * layout["micro_batches"]}
    row = {"count": ranks // per_node, "devices": ranks, "devices_per_shape": per_node}

    def change(document: dict[str, Any]) -> None:
        changed({"layout": layout, "row": row})(document)
        document["workloads"][0]["demand"].update(tokens=float(tokens), sequence_length=sequence_length)

    launch = jobs_of(launches("llama", change))[0]
    for form in TRAINING:
        check_files(form, launch, None)


def test_checkpoints_come_as_often_as_the_plan_says(launches: Read) -> None:
    (launch,) = jobs_of(launches("llama"))
    step_s = launch.timing.hours * 3600 / launch.steps
    assert launch.checkpoint_every_s is not None
    assert abs(steps_between_checkpoints(launch) * step_s - launch.checkpoint_every_s) <= step_s / 2
    assert job_config(launch)["checkpoint"] == {"enable": True, "interval": steps_between_checkpoints(launch)}


def test_a_large_batch_takes_the_steps_that_the_plan_counted(launches: Read) -> None:
    (plain,) = jobs_of(launches("llama"))
    (launch,) = jobs_of(launches("llama", changed({"job": {"critical_batch": "2M tokens"}})))
    factor = 1 + plain.tokens_per_step / 2e6
    assert launch.steps == math.ceil(launch.tokens * factor / launch.tokens_per_step)
    assert any("above the critical one" in file.text for file in export("torchrun", [launch]).files)


@pytest.mark.parametrize(
    ("split", "option"),
    [({"tp": 2, "dp": 8, "ep": 8}, "1 "), ({"tp": 4, "dp": 4, "ep": 8}, "1 "), ({"tp": 2, "dp": 8, "ep": 1}, "")],
)  # of experts that are not spread Megatron-LM's default is tp
def test_experts_are_split_as_memory_was_counted(
    launches: Read, tmp_path: Path, split: dict[str, int], option: str
) -> None:
    layout = {**split, "sharding": "zero-1", "micro_batches": 496 // split["dp"]}
    (launch,) = jobs_of(launches("llama", changed({"job": {"model": "mixtral-8x7b"}, "layout": layout})))
    assert check_files("torchrun", launch, tmp_path) == 1
    _, _, told = export("torchrun", [launch]).files[0].text.partition("--expert-tensor-parallel-size ")
    assert told[:2] == option


def test_a_run_under_way_goes_on(launches: Read, tmp_path: Path) -> None:
    (launch,) = jobs_of(launches("under-way"))
    assert launch.steps_done == int(90e9 // launch.tokens_per_step)
    files = export("torchtitan", [launch]).files
    assert any("goes on from its checkpoint" in file.text for file in files)


def test_pauses_and_starts_are_told(launches: Read) -> None:
    windows = [
        {"start_hours": 24.0, "end_hours": 48.0, "jobs": 1},
        {"start_hours": 96.0, "end_hours": 200.0, "jobs": 1},
    ]
    (launch,) = jobs_of(launches("llama", changed({"row": {"runs": windows, "start_hours": 24.0}})))
    for form in TRAINING:
        told = "runs from hour 24 to hour 48, hour 96 to hour 200"
        assert any(told in file.text for file in export(form, [launch]).files), form


def test_a_date_in_the_calendar_is_kept_by_slurm(launches: Read) -> None:
    def change(document: dict[str, Any]) -> None:
        changed({"row": {"start_hours": 36.0}})(document)
        document["schedule"] = {"begin": "2026-12-07"}

    (launch,) = jobs_of(launches("llama", change))
    (file,) = export("slurm", [launch]).files
    assert "#SBATCH --begin=2026-12-08T12:00:00\n" in file.text
    assert "the plan starts this job 2026-12-08 12:00" in file.text


def test_the_command_line_of_torchtitan_says_what_its_job_file_says(launches: Read, tmp_path: Path) -> None:
    launch = next(launch for launch in jobs_of(launches("fleet")) if launch.layout.sharding == "zero-3")
    (file,) = export("slurm", [launch]).files
    options = started(file.text, tmp_path).options
    given = {
        word.removeprefix("--"): options[number + 1] for number, word in enumerate(options) if word.startswith("--")
    }
    for section, field, value in flat(job_config(launch)):
        if value is False:
            assert f"{section}.{field}" not in given
        elif value is not True:
            assert given[f"{section}.{field}"] == (",".join(value) if isinstance(value, list) else str(value))
    assert {tuple(name.rsplit(".", 1)) for name in given} <= set(recorded_fields())


FORM = jsonschema.Draft202012Validator(api.plan_schema())
STRANGE = (None, -1, 0, "x", "$(id)", 1.5, 1e300, math.nan, math.inf, 10**30, True, [], {}, [None], {"a": 1})


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, as the keys that lead there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [(*path, key) for key, _ in inner]
    return found + [place for key, one in inner for place in places(one, (*path, key))]


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_edited_plan_documents_are_input_errors(plans: dict[str, Any], catalog: Catalog, data: st.DataObject) -> None:
    """Whatever stands anywhere in the plan of a job: files, reasons, or an error for people; no traceback."""
    document = copy.deepcopy(plans[data.draw(st.sampled_from(["llama", "fleet", "under-way", "mixed-job"]))])
    jobs = [workload for workload in document["workloads"] if workload["kind"] == "training"]
    row = jobs[0]["allocations"][0]
    document["workloads"] = [{**jobs[0], "allocations": [row]}]
    part = data.draw(st.sampled_from(["layout", "row", "demand", "scenario"]))
    whole = {"layout": row["layout"], "row": row, "demand": jobs[0]["demand"], "scenario": document["scenario"]}[part]
    *before, last = data.draw(st.sampled_from(places(whole)))
    for key in before:
        whole = whole[key]
    whole[last] = data.draw(st.sampled_from(STRANGE))
    if not FORM.is_valid(document):  # refused where it is read
        return
    try:
        launches = launches_of(document, catalog, command="plan export FORMAT plan.json")
    except InputError:
        return
    for form in TRAINING:
        export(form, launches)


def test_a_plan_that_lacks_something_is_an_input_error(catalog: Catalog, plans: dict[str, Any]) -> None:
    document = copy.deepcopy(plans["llama"])
    del document["scenario"]["training"]
    with pytest.raises(InputError):
        launches_of(document, catalog, command="plan export torchrun")
