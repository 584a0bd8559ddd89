"""Commands that start engines are fleets as they stand, whoever's shell they were written for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.reading.kinds import Reading, read
from planner.reading.source import Source


def told(folder: Path, text: str, name: str = "start.sh") -> Reading:
    path = folder / name
    path.write_text(text)
    return read(Source(path))


def fleets(reading: Reading) -> list[dict[str, Any]]:
    fragment = next(piece.fragment for piece in reading.pieces if piece.what == "scenario")
    return list(fragment["serving"])


SCRIPTS: dict[str, tuple[str, dict[str, Any]]] = {
    "equals signs and continued lines": (
        "vllm serve meta-llama/Llama-3.1-70B-Instruct \\\n  --tensor-parallel-size=8 \\\n"
        "  --max-num-seqs 256 --gpu-memory-utilization 0.92 --quantization fp8  # --tensor-parallel-size 2\n",
        {"model": "llama-3.1-70b", "weights": "fp8", "engine": "vllm", "layout": {"tp": 8, "pp": 1},
         "limits": {"max_num_seqs": 256, "memory_fraction": 0.92}, "min_replicas": 1},
    ),
    "short names behind a variable of the line": (
        "CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve deepseek-ai/DeepSeek-V3 -tp 8 -pp 2 --trust-remote-code\n",
        {"model": "deepseek-v3", "weights": "fp8-block", "layout": {"tp": 8, "pp": 2}},
    ),
    "docker, whose own options are not the engine's": (
        "docker run --runtime nvidia --gpus all -v ~/.cache:/cache -p 8000:8000 --name vllm --ipc=host \\\n"
        "  -e HF_TOKEN=x vllm/vllm-openai:v0.8.5 --model mistralai/Mistral-7B-v0.1 --dtype bfloat16\n",
        {"model": "mistral-7b", "weights": "bf16", "engine": "vllm", "layout": {"tp": 1, "pp": 1}},
    ),
    "SGLang by module, with ranks of attention": (
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 --enable-dp-attention\n",
        {"model": "deepseek-v3", "engine": "sglang", "layout": {"tp": 1, "pp": 1, "dp": 8}},
    ),
    "trtllm-serve with its word for serving": (
        "trtllm-serve serve nvidia/DeepSeek-R1-FP4 --max_batch_size 128 --tp_size 8 --ep_size 8\n",
        {"model": "deepseek-v3", "engine": "trt-llm", "weights": "nvfp4", "layout": {"tp": 8, "pp": 1, "ep": 8}},
    ),
    "llama.cpp, the model by its file": (
        "./llama-server -m models/llama-3.1-70b-q4_k_m.gguf -ngl 99 -np 8\n",
        {"model": "llama-3.1-70b", "engine": "llama.cpp", "weights": "q4_k_m", "limits": {"max_num_seqs": 8}},
    ),
    "a job of Slurm with names of its own": (
        "#!/bin/bash\n#SBATCH --nodes=2\nMODEL=meta-llama/Llama-3.1-405B-Instruct; TP=8\nPP=${SLURM_NNODES}\n"
        "ARGS=(\n  --max-num-seqs 64\n)\nsrun vllm serve $MODEL -tp $TP --pipeline-parallel-size $PP \"${ARGS[@]}\"\n",
        {"model": "llama-3.1-405b", "layout": {"tp": 8, "pp": 2}, "limits": {"max_num_seqs": 64}},
    ),
    "defaults in quotes of their own": (
        'MODEL=${MODEL:-"meta-llama/Llama-3.1-70B-Instruct"}\nTP="${1:-"4"}"\n'
        "vllm serve $MODEL -tp $TP --max-num-seqs ${SEQS:-'64'}\n",
        {"model": "llama-3.1-70b", "layout": {"tp": 4, "pp": 1}, "limits": {"max_num_seqs": 64}},
    ),
    "a command within the words of another": (
        "docker exec box bash -c 'cd /x && vllm serve Qwen/Qwen2.5-7B-Instruct -tp 2'\n",
        {"model": "qwen2.5-7b-instruct", "layout": {"tp": 2, "pp": 1}},
    ),
    "a task of SkyPilot": (
        "resources:\n  accelerators: H100:8\nservice:\n  replicas: 3\nrun: |\n"
        "  vllm serve meta-llama/Llama-3.1-405B-Instruct-FP8 --tensor-parallel-size 8\n",
        {"model": "llama-3.1-405b", "weights": "fp8", "min_replicas": 3},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_command_is_a_fleet_as_it_stands(name: str, tmp_path: Path) -> None:
    """`vllm serve …`, as people have it at hand, was of no kind that is read."""
    text, wanted = SCRIPTS[name]
    (fleet,) = fleets(told(tmp_path, text))
    assert {key: fleet.get(key) for key in wanted} == wanted


def test_engines_alike_are_replicas_and_further_machines_are_none(tmp_path: Path) -> None:
    serve = "vllm serve Qwen/Qwen2.5-7B-Instruct -tp 2"
    reading = told(tmp_path, f"CUDA_VISIBLE_DEVICES=0,1 {serve} --port 8000 &\n{serve} --port 8001 &\n"
                             f"ssh b {serve} --headless --data-parallel-start-rank 1\n")  # fmt: skip
    assert [fleet["min_replicas"] for fleet in fleets(reading)] == [2]
    assert list(reading.skipped.reasons) == ["a further machine of an engine"]


@pytest.mark.parametrize(
    ("model", "layout", "replicas"),
    [("deepseek-ai/DeepSeek-V3", {"tp": 2, "pp": 1, "dp": 4}, 1), ("Qwen/Qwen2.5-7B", {"tp": 2, "pp": 1}, 4)],
)
def test_experts_are_shared_by_ranks_of_data(model: str, layout: dict[str, int], replicas: int, tmp_path: Path) -> None:
    """What `plan export vllm` writes was read back as four replicas of DeepSeek-V3 on two devices each."""
    (fleet,) = fleets(told(tmp_path, f"vllm serve {model} --tensor-parallel-size 2 --data-parallel-size 4\n"))
    assert (fleet["layout"], fleet["min_replicas"]) == (layout, replicas)


def test_what_a_script_does_not_set_is_told(tmp_path: Path) -> None:
    reading = told(tmp_path, "vllm serve Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size $GPUS --foo-bar 3\n")
    assert any("tensor-parallel-size: a variable that the file does not set" in note for note in reading.notes)
    assert "Not carried over: foo-bar." in reading.notes
    assert "layout" not in fleets(reading)[0]


def test_a_file_of_settings_says_no_replicas(tmp_path: Path) -> None:
    reading = told(tmp_path, "model: meta-llama/Llama-3.1-8B-Instruct\ntensor-parallel-size: 2\nmax-num-seqs: 128\n",
                   "vllm.yaml")  # fmt: skip
    (fleet,) = fleets(reading)
    assert (fleet["model"], fleet["engine"], fleet["layout"]) == ("llama-3.1-8b", "vllm", {"tp": 2, "pp": 1})
    assert "min_replicas" not in fleet
    assert any("How many replicas of Llama-3.1-8B-Instruct" in note for note in reading.notes)


def test_options_of_tensorrt_llm_in_a_file(tmp_path: Path) -> None:
    text = "enable_attention_dp: true\nkv_cache_config:\n  dtype: fp8\n  free_gpu_memory_fraction: 0.85\n"
    (fleet,) = fleets(told(tmp_path, text + "tensor_parallel_size: 8\nmoe_expert_parallel_size: 8\n", "extra.yaml"))
    assert (fleet["engine"], fleet["kv_cache"]) == ("trt-llm", "fp8")
    assert fleet["layout"] == {"tp": 1, "pp": 1, "dp": 8, "ep": 8}


def test_one_pod_with_an_engine_is_a_deployment(tmp_path: Path) -> None:
    """It was told as what a pod asks for, without its model."""
    reading = told(tmp_path, "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\nspec:\n  containers:\n  - name: vllm\n"
                             "    image: vllm/vllm-openai:v0.9.1\n"
                             "    args: [--model=meta-llama/Llama-3.1-8B-Instruct]\n"
                             "    resources: {limits: {nvidia.com/gpu: 1}}\n")  # fmt: skip
    assert fleets(reading)[0]["model"] == "llama-3.1-8b"


def test_replicas_that_are_no_count_are_told(tmp_path: Path) -> None:
    """`replicas: four` was a fleet of none, without a word."""
    reading = told(tmp_path, "kind: Deployment\nmetadata: {name: one}\nspec:\n  replicas: four\n  template:\n"
                             "    spec:\n"
                             "      containers:\n      - image: vllm/vllm-openai:v0.9.1\n"
                             "        args: [--model=meta-llama/Llama-3.1-8B-Instruct]\n")  # fmt: skip
    assert any(note.startswith("How many replicas of one") for note in reading.notes)
    assert "replicas" not in [figure.label for figure in reading.look]


@pytest.mark.parametrize("text", ["echo vllm is served\n", "pip install vllm\ndocker run --rm ubuntu ls\n"])
def test_scripts_that_start_no_engine_are_none(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        told(tmp_path, text)


def test_a_command_within_a_call_and_the_device_of_a_job_of_slurm(tmp_path: Path) -> None:
    call = 'subprocess.Popen("vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 2", shell=True)\n'
    (tmp_path / "a.py").write_text(call)
    assert {each.label: each.value for each in read(Source(tmp_path / "a.py")).look}["devices"] == 2
    for asks in ("--gres=gpu:h100:8", "--gpus-per-node=h100:8"):
        (tmp_path / "a.sh").write_text(f"#!/bin/bash\n#SBATCH {asks}\nvllm serve meta-llama/Llama-3.1-8B -tp 8\n")
        (piece,) = read(Source(tmp_path / "a.sh")).pieces
        assert piece.fragment["hardware"] == {"allow": ["h100-sxm-80gb"]}


def test_a_word_of_quotes_starts_no_engine(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text('"' * 250_000)  # a scan to the end of the word from each of them took minutes
    with pytest.raises(InputError):
        read(Source(path))
