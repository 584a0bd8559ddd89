"""Configurations of trainers: what is said becomes a job, what is left to the trainer is left out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from planner.cli.main import ROOMS, app_of
from planner.errors import InputError
from planner.reading.kinds import Asked, Reading, read
from planner.reading.piece_writing import write_into
from planner.reading.source import Source
from planner.scenario.training_job import TrainingJob
from planner.yamlfile import read_yaml
from tests.reading import writers

SAMPLES = os.environ.get("PLAN_SAMPLES")


def read_of(folder: Path, text: str, model: str = "") -> Reading:
    (folder / "run.txt").write_text(text)
    return read(Source(folder / "run.txt"), Asked(model=model))


@pytest.mark.parametrize(
    ("text", "job"),
    [
        pytest.param(writers.megatron_script(),
            {"framework": "megatron", "sequence_length": 2048, "global_batch": "512 sequences", "tokens": "1048.576M",
             "precision": "fp16", "sharding": "zero-1", "layout": {"tp": 4, "micro_batch": 2}}, id="megatron"),
        pytest.param(writers.titan_toml(),
            {"framework": "torchtitan", "model": "llama-3.1-8b", "sequence_length": 8192, "tokens": "5.24288M",
             "global_batch": "64 sequences", "sharding": "zero-3", "recompute": "selective",
             "layout": {"tp": 2, "micro_batch": 2}}, id="torchtitan"),
        pytest.param(writers.deepspeed_config(),
            {"framework": "deepspeed", "global_batch": "64 sequences", "precision": "bf16", "sharding": "zero-2"},
            id="deepspeed"),
        pytest.param(writers.axolotl(),
            {"framework": "axolotl", "model": "llama-3.2-3b", "sequence_length": 512, "precision": "bf16",
             "sharding": "zero-3", "recompute": "full", "layout": {"micro_batch": 16}}, id="axolotl"),
        pytest.param(writers.accelerate(),
            {"framework": "fsdp", "precision": "bf16", "sharding": "zero-2"}, id="accelerate"),
        pytest.param(writers.maxtext_script(),
            {"framework": "maxtext", "model": "llama-3.1-8b", "sequence_length": 4096, "recompute": "full",
             "global_batch": "16 sequences", "sharding": "zero-3", "layout": {"tp": 8, "micro_batch": 8}},
            id="maxtext"),
        pytest.param(writers.nemo_config(),
            {"framework": "megatron", "sequence_length": 2048, "global_batch": "2048 sequences", "tokens": "419.4304M",
             "precision": "bf16", "sharding": "zero-1", "layout": {"tp": 4, "pp": 8, "vpp": 6, "micro_batch": 1}},
            id="nemo"),
        pytest.param(writers.torchtune_config(),
            {"framework": "fsdp", "model": "llama-3.1-70b", "sequence_length": 4096, "epochs": 3, "precision": "bf16",
             "sharding": "zero-3", "recompute": "full", "optimizer": "adamw-8bit",
             "offload": ["optimizer", "activations"], "layout": {"micro_batch": 2}}, id="torchtune"),
        pytest.param(writers.neox_config(),
            {"framework": "deepspeed", "sequence_length": 2048, "precision": "fp16", "sharding": "zero-1",
             "recompute": "full", "layout": {"tp": 2, "pp": 1, "micro_batch": 4}}, id="gpt-neox"),
    ],
)  # fmt: skip
def test_what_is_said_becomes_a_job(text: str, job: dict[str, Any], tmp_path: Path) -> None:
    reading = read_of(tmp_path, text)
    assert reading.pieces[0].fragment["training"] == [{"name": "run", **job}]
    (left,) = [note for note in reading.notes if "does not give" in note]
    said = {"model": "the model", "tokens": "tokens", "deadline": "deadline"}
    assert {key for key, words in said.items() if words in left} == {key for key in said if key not in job}


@pytest.mark.parametrize(
    ("text", "allow"),
    [
        (writers.maxtext_script(), ["tpu-*"]),
        (writers.maxtext_script() + " hardware=tpu\n", ["tpu-*"]),
        (writers.maxtext_script() + " hardware=gpu\n", None),
        (writers.torchtune_config(), None),
    ],
)
def test_maxtext_runs_on_tpus_unless_it_says_otherwise(text: str, allow: list[str] | None, tmp_path: Path) -> None:
    """Solved as it is read, the job was shown on GPUs alone."""
    assert read_of(tmp_path, text).pieces[0].fragment.get("hardware", {}).get("allow") == allow


ADAPTERS = writers.axolotl() + "adapter: qlora\nlora_r: 16\nload_in_4bit: true\ndp_shard_size: 4\n"


def test_adapters_and_what_is_in_host_memory_are_carried_over(tmp_path: Path) -> None:
    text = ADAPTERS + "gradient_accumulation_steps: 8\nactivation_offloading: true\n"
    job = read_of(tmp_path, text).pieces[0].fragment["training"][0]
    assert job["lora"] == {"rank": 16, "base": "nf4"}
    assert job["offload"] == ["activations"]
    assert job["global_batch"] == "512 sequences"  # 16 a device, 8 times, on 4 of them


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (writers.megatron_script() + "  --rampup-batch-size 16 16 1000\n", "batch grows at first"),
        (writers.nemo_config(), "runs on 128 devices"),
        (writers.torchtune_config(), "weights in host memory"),
        (writers.axolotl() + "optimizer: lion\n", "the optimizer 'lion'"),
        (writers.axolotl() + "gradient_accumulation_steps: 4\n", "4 micro-batches of each device"),
        (writers.neox_config(), "its shape is that of pythia-1.4b"),
        (writers.megatron_script(), "deadline: 30 days"),
    ],
)
def test_what_is_not_carried_over_or_not_given_is_said(text: str, said: str, tmp_path: Path) -> None:
    assert any(said in note for note in read_of(tmp_path, text).notes)


def test_without_a_deadline_it_is_asked_for_and_then_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(writers.maxtext_script() + "steps=1000\n")
    first = CliRunner().invoke(app_of(*ROOMS), ["read", "run.sh", "--into", "mine.yaml"])
    assert first.exit_code == 0, first.output
    assert "still wanted: 'deadline' is missing" in first.stderr
    solving = ["solve", "mine.yaml", "--set", "hardware.allow=h100-sxm-80gb"]
    asked = CliRunner().invoke(app_of(*ROOMS), solving)
    assert asked.exit_code == 3, asked.output
    assert 'add "deadline: 30 days"' in asked.stderr
    text = (tmp_path / "mine.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(
        text.replace("    framework: maxtext", "    deadline: 30 days\n    framework: jax")
    )
    solved = CliRunner().invoke(app_of(*ROOMS), [*solving, "-o", "json"])
    assert solved.exit_code == 0, solved.output


def test_a_job_is_written_as_a_scenario_that_is_read(tmp_path: Path) -> None:
    made = tmp_path / "mine.yaml"
    write_into(read_of(tmp_path, writers.megatron_script(), "llama-3.1-8b"), str(made), Asked())
    job = read_yaml(made).data["training"][0]
    assert (job["model"], job["layout"], job["tokens"]) == ("llama-3.1-8b", {"tp": 4, "micro_batch": 2}, "1048.576M")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (writers.titan_toml() + "[broken\n", "not whole"),
        (writers.axolotl() + "  - : [\n", "YAML|expected|line"),
    ],
)
def test_a_broken_configuration_is_refused_in_words(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as caught:
        read_of(tmp_path, text)
    assert caught.value.problems[0].places


def test_a_number_that_readers_of_yaml_take_differently_is_counted_and_left_out(tmp_path: Path) -> None:
    reading = read_of(tmp_path, writers.axolotl().replace("sequence_len: 512", "sequence_len: 10_000"))
    assert reading.skipped.reasons == {"ambiguous-number": (1, 4)}
    assert "sequence_length" not in reading.pieces[0].fragment["training"][0]


@pytest.mark.campaign
@pytest.mark.skipif(not SAMPLES, reason="PLAN_SAMPLES names no folder of samples")
def test_samples_of_nine_trainers_are_told_apart() -> None:
    files = sorted(Path(str(SAMPLES), "train_config").iterdir())
    assert files
    for file in files:
        reading = read(Source(file))
        assert reading.kind == "train-config"
        assert reading.tool.lower().startswith(file.name.split("_")[0])
        assert reading.taken > 0
        for piece in reading.pieces:
            job = piece.fragment["training"][0]
            TrainingJob.model_validate({"model": "llama-3.1-8b", "tokens": "1B", "deadline": "9 days", **job})


MODEL = "--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --micro-batch-size 1"


@pytest.mark.parametrize(
    ("text", "job"),
    [
        pytest.param(f"tp=4\nseq=8192\nlocal len=$seq\npretrain {MODEL} --tensor-model-parallel-size ${{tp}} "
            "--seq-length $len --pipeline-model-parallel-size ${PP:-2} --global-batch-size 64 "
            "--num-layers-per-virtual-pipeline-stage 10 --recompute-activations\n",
            {"sequence_length": 8192, "recompute": "selective",
             "layout": {"tp": 4, "pp": 2, "vpp": 4, "micro_batch": 1}}, id="names of a script in small letters"),
        pytest.param("MODEL_ARGS:\n  --num-layers: 12\n  --micro-batch-size: 4\n  --global-batch-size: 32\n"
            "  --seq-length: 1024\n  --train-iters: 50\n",
            {"sequence_length": 1024, "global_batch": "32 sequences", "tokens": "1.6384M",
             "layout": {"micro_batch": 4}}, id="arguments as YAML"),
        pytest.param('[model]\nname = "llama3"\nflavor = "405B"\n[training]\nbatch_size = 1\nseq_len = 8192\n'
            "tensor_parallel_degree = 2\n[experimental]\npipeline_parallel_degree = 4\n[float8]\n"
            "enable_float8_linear = true\n",
            {"model": "llama-3.1-405b", "precision": "fp8", "layout": {"tp": 2, "pp": 4, "micro_batch": 1}},
            id="torchtitan of 2024"),
        pytest.param("trainer:\n  num_nodes: 8\n  devices: 8\n  max_steps: 10\n  strategy:\n"
            "    tensor_model_parallel_size: 4\nmodel:\n  config:\n    seq_length: 8192\ndata:\n"
            "  global_batch_size: 512\n  micro_batch_size: 1\n",
            {"sequence_length": 8192, "global_batch": "512 sequences", "tokens": "41.94304M",
             "layout": {"tp": 4, "micro_batch": 1}}, id="NeMo 2, sections in sections"),
        pytest.param("model_name: llama2-70b\nper_device_batch_size: 0.5\nmax_target_length: 4096\nsteps: 30\n"
            "ici_fsdp_parallelism: 64\nici_tensor_parallelism: 4\ngradient_accumulation_steps: 4\n"
            "quantization: fp8\nhardware: gpu\n",
            {"global_batch": "512 sequences", "precision": "fp8", "layout": {"tp": 4, "micro_batch": 2}},
            id="MaxText, half a sequence a device, four micro-batches a step"),
        pytest.param("base_model: Qwen/Qwen2.5-7B\ndatasets:\n  - path: x\nsequence_len: 2048\nmicro_batch_size: 1\n"
            "gradient_accumulation_steps: 2\ndp_shard_size: 4\ntensor_parallel_size: 2\ncontext_parallel_size: 2\n"
            "bf16: auto\ngradient_checkpointing: unsloth\ndeepspeed: deepspeed_configs/zero3_bf16.json\n",
            {"global_batch": "8 sequences", "precision": "bf16", "recompute": "full", "sharding": "zero-3"},
            id="Axolotl: ranks that shard are those that read"),
        pytest.param("distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 16\ndeepspeed_config:\n"
            "  zero_stage: 2\n  offload_optimizer_device: cpu\n  gradient_accumulation_steps: 16\n",
            {"sharding": "zero-2", "offload": ["optimizer"]}, id="accelerate with DeepSpeed"),
        pytest.param("distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 32\nfsdp_config:\n"
            "  fsdp_version: 2\n  fsdp_reshard_after_forward: true\nparallelism_config:\n"
            "  parallelism_config_tp_size: 4\n",
            {"sharding": "zero-3", "layout": {"tp": 4}}, id="accelerate with FSDP 2"),
        pytest.param("model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nstage: sft\nfinetuning_type: lora\n"
            "lora_rank: 8\ncutoff_len: 2048\nper_device_train_batch_size: 1\nnum_train_epochs: 3.0\nbf16: true\n"
            "quantization_bit: 4\ndeepspeed: examples/deepspeed/ds_z3_config.json\n",
            {"framework": "trl", "model": "llama-3-8b", "sequence_length": 2048, "epochs": 3, "sharding": "zero-3",
             "lora": {"rank": 8, "base": "nf4"}, "layout": {"micro_batch": 1}}, id="LLaMA-Factory"),
        pytest.param("accelerate launch --num_processes 8 sft.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 "
            "--per_device_train_batch_size 2 --gradient_accumulation_steps 8 --max_length 4096\n",
            {"framework": "fsdp", "model": "qwen2.5-7b", "sequence_length": 4096, "global_batch": "128 sequences",
             "precision": "bf16"}, id="a script of TRL"),
        pytest.param("accelerate launch run_clm.py --model_name_or_path Qwen/Qwen2.5-7B --dataset_name x "
            "--per_device_train_batch_size 2 --gradient_accumulation_steps 8 --block_size 4096 --optim adamw_8bit\n",
            {"sequence_length": 4096, "optimizer": "adamw-8bit"}, id="a script of Transformers"),
        pytest.param("TP=8; PP=4\nMBS=1 && GBS=64\npretrain_gpt.py --num-layers 80 --seq-length 8192 "
            "--tensor-model-parallel-size ${TP} --pipeline-model-parallel-size ${PP} "
            "--num-layers-per-virtual-pipeline-stage 5 --micro-batch-size $MBS --global-batch-size $GBS\n",
            {"global_batch": "64 sequences", "layout": {"tp": 8, "pp": 4, "vpp": 4, "micro_batch": 1}},
            id="several names of a script in one line"),
    ],
)  # fmt: skip
def test_other_versions_of_trainers_say_the_same_in_other_places(
    text: str, job: dict[str, Any], tmp_path: Path
) -> None:
    (piece,) = read_of(tmp_path, text).pieces
    (found,) = piece.fragment["training"]
    assert {key: found.get(key) for key in job} == job


@pytest.mark.parametrize(("products", "told"), [("int8", True), ("intmp", True), ("fp8", False), ('""', False)])
def test_products_of_maxtext_in_integers_are_said_not_to_be_planned(products: str, told: bool, tmp_path: Path) -> None:
    """int8 was taken for bf16 without a word."""
    text = "model_name: llama2-70b\nper_device_batch_size: 2\nmax_target_length: 4096\nsteps: 30\ndtype: bfloat16\n" \
           f"ici_fsdp_parallelism: 64\nquantization: {products}\n"  # fmt: skip
    notes = read_of(tmp_path, text).notes
    assert any(f"products in {products} (quantization)" in note for note in notes) is told


def test_what_a_script_works_out_is_said_to_be_unknown(tmp_path: Path) -> None:
    text = f"pretrain {MODEL} --seq-length $1 --global-batch-size 8 --train-iters $((10 * 5))\n"
    notes = read_of(tmp_path, text).notes
    assert "Not known, as it is worked out or set elsewhere: --seq-length, --train-iters." in notes


def test_virtual_stages_wait_for_the_pipeline(tmp_path: Path) -> None:
    """Where the number of stages is set elsewhere, that of virtual stages was counted as if there were one stage."""
    text = "pretrain_gpt.py --num-layers 80 --seq-length 8192 --global-batch-size 64 --tensor-model-parallel-size 8 " \
           "--pipeline-model-parallel-size $PP --num-layers-per-virtual-pipeline-stage 5\n"  # fmt: skip
    (piece,) = read_of(tmp_path, text).pieces
    assert piece.fragment["training"][0]["layout"] == {"tp": 8}


NEMO = """import nemo_run as run
from nemo.collections import llm
NODES = 8
def configure():
    recipe = llm.llama31_70b.pretrain_recipe(dir="/c", num_nodes=NODES, num_gpus_per_node=8, plugins=bf16_mixed())
    recipe.trainer.strategy.tensor_model_parallel_size = 4
    recipe.trainer.strategy.pipeline_model_parallel_size = 4
    recipe.trainer.strategy.virtual_pipeline_model_parallel_size = 5
    recipe.data.micro_batch_size = 1
    recipe.data.global_batch_size = 512
    recipe.data.seq_length = 8192
    recipe.trainer.max_steps = 1000
    return recipe
def finetune_recipe(tensor_parallelism=1):
    recipe.trainer.strategy.tensor_model_parallel_size = 1
raise SystemExit("never run")
"""
NEMO_WHOLE = """import nemo_run as run
def trainer(tensor_parallelism: int = 4, num_nodes: int = 4, num_gpus_per_node: int = 8, max_steps: int = 1000):
    strategy = run.Config(nl.MegatronStrategy, tensor_model_parallel_size=tensor_parallelism)
    return run.Config(nl.Trainer, devices=num_gpus_per_node, num_nodes=num_nodes, max_steps=max_steps,
                      strategy=strategy)
def pretrain_recipe():
    model = run.Config(LlamaModel, config=run.Config(Llama31Config70B))
    data = run.Config(MockDataModule, seq_length=8192, global_batch_size=512, micro_batch_size=1)
    return run.Partial(pretrain, model=model, trainer=trainer(), data=data, plugins=bf16_with_fp8_mixed())
"""
BRIDGE = """from megatron.bridge.recipes.llama import llama31_70b_pretrain_config
cfg = llama31_70b_pretrain_config()
cfg.model.tensor_model_parallel_size = 4
cfg.train.global_batch_size, = 512,
cfg.train.global_batch_size = 512
cfg.train.micro_batch_size = 1
cfg.train.train_iters = 1000
cfg.dataset.sequence_length = 8192
"""
TITAN = """from torchtitan.trainer import Trainer
def llama3_70b() -> Trainer.Config:
    return Trainer.Config(
        hf_assets_path="./assets/hf/Llama-3.1-70B",
        training=TrainingConfig(local_batch_size=1, global_batch_size=512, seq_len=8192, steps=1000),
        parallelism=ParallelismConfig(tensor_parallel_degree=4),
    )
def llama3_405b() -> Trainer.Config:
    return Trainer.Config(training=TrainingConfig(local_batch_size=9, seq_len=9), parallelism=ParallelismConfig())
"""
SFT = """from trl import SFTConfig, SFTTrainer
MODEL = "meta-llama/Llama-3.1-70B"
model = AutoModelForCausalLM.from_pretrained(MODEL)
args = SFTConfig(per_device_train_batch_size=1, gradient_accumulation_steps=8, max_length=8192, bf16=True)
SFTTrainer(model=model, args=args).train()
"""


@pytest.mark.parametrize(
    ("text", "tool", "layout", "precision"),
    [(NEMO, "NeMo", {"tp": 4, "pp": 4, "vpp": 5, "micro_batch": 1}, "bf16"),
     (NEMO_WHOLE, "NeMo", {"tp": 4, "micro_batch": 1}, "fp8"),
     (BRIDGE, "NeMo", {"tp": 4, "micro_batch": 1}, None), (TITAN, "torchtitan", {"tp": 4, "micro_batch": 1}, None),
     (SFT, "Hugging Face Trainer", {"micro_batch": 1}, "bf16")],
)  # fmt: skip
def test_recipes_in_python_are_looked_through_and_never_run(
    text: str, tool: str, layout: dict[str, int], precision: str | None, tmp_path: Path
) -> None:
    reading = read_of(tmp_path, text)
    (job,) = reading.pieces[0].fragment["training"]
    assert (reading.tool, job["model"], job["sequence_length"]) == (tool, "llama-3.1-70b", 8192)
    assert (job["layout"], job.get("precision")) == (layout, precision)
    assert job.get("tokens") == (None if text == SFT else "4194.304M")
    assert any("not read: finetune_recipe" in note for note in reading.notes) == (text == NEMO)
    assert any("not read: llama3_405b" in note for note in reading.notes) == (text == TITAN)


def test_a_recipe_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    for broken in (BRIDGE + "def (", BRIDGE + "x = " + "(" * 5000):
        with pytest.raises(InputError, match="is not whole"):
            read_of(tmp_path, broken)


def test_settings_of_megatron_in_sections_of_anybody_s(tmp_path: Path) -> None:
    text = """modules:
  pre_trainer:
    model: llama3.1_70B.yaml
    overrides: {train_iters: 50, micro_batch_size: 1, global_batch_size: 256, seq_length: 8192}
    more:
      tensor_model_parallel_size: 2
"""
    text = text.replace("overrides: {", "overrides:\n      ").replace(", ", "\n      ").replace("}", "")
    (job,) = read_of(tmp_path, text).pieces[0].fragment["training"]
    assert (job["model"], job["layout"], job["global_batch"]) == (
        "llama-3.1-70b", {"tp": 2, "micro_batch": 1}, "256 sequences")  # fmt: skip


def test_arguments_of_a_trainer_without_the_name_of_a_model(tmp_path: Path) -> None:
    text = "swift sft --model Qwen/Qwen2.5-7B --per_device_train_batch_size 1 --gradient_accumulation_steps 16 \\\n" \
           "  --max_length 8192 --deepspeed zero3\n"  # fmt: skip
    (job,) = read_of(tmp_path, text).pieces[0].fragment["training"]
    assert (job["model"], job["sharding"], job["sequence_length"]) == ("qwen2.5-7b", "zero-3", 8192)
    assert job["framework"] == "deepspeed"  # TRL is planned for adapters alone: its scenario was refused


def test_steps_are_those_of_the_whole_run_and_not_of_an_epoch(tmp_path: Path) -> None:
    text = "--model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 --gradient_accumulation_steps 4 " \
           "--num_processes 8 --max_length 4096 --num_train_epochs 3"  # fmt: skip
    assert read_of(tmp_path, text).pieces[0].fragment["training"][0]["epochs"] == 3
    (job,) = read_of(tmp_path, text + " --max_steps 1000").pieces[0].fragment["training"]
    assert (job["tokens"], "epochs" in job) == ("262.144M", False)


def test_axolotl_with_tensors_split_is_planned_as_what_lies_below_it(tmp_path: Path) -> None:
    text = writers.axolotl() + "\ntensor_parallel_size: 2\n"
    (job,) = read_of(tmp_path, text).pieces[0].fragment["training"]
    assert (job["framework"], job["layout"]["tp"]) == ("fsdp", 2)
