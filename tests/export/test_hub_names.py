"""A model named as on Hugging Face is launched under that very name, tuned or not, with the shape of its preset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.architecture.load import PRESETS, config_card, preset_card
from tests.worlds import fleet, scenario


def test_a_plan_of_a_name_of_the_hub_launches_that_name() -> None:
    name = "meta-llama/Llama-3.1-8B-Instruct"
    fleets = [fleet("chat", model=name, qpm=60, input_tokens=500, output_tokens=100)]
    plan = api.solve(scenario(serving=fleets, hardware={"allow": ["h100-sxm-80gb"]}))
    texts = [file.text for file in plan.export("vllm").files if file.name.endswith(".sh")]
    assert texts
    assert all(name in text for text in texts)


def test_the_card_of_a_name_is_its_presets_or_the_config_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert preset_card("meta-llama/Llama-3.1-8B-Instruct").config == preset_card("llama-3.1-8b").config
    folder = tmp_path / "models--nobody--strange-8b" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    config = json.loads((PRESETS / "llama-3.1-8b.json").read_text())["config"]
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    card = preset_card("nobody/strange-8b")
    assert (card.hf_id, card.config["hidden_size"]) == ("nobody/strange-8b", 4096)


@pytest.mark.parametrize(
    ("name", "checkpoint"),
    [
        ("deepseek-v3", "fp8-block"),
        ("kimi-k2", "fp8-block"),
        ("gpt-oss-20b", "mxfp4"),
        ("llama-3.1-8b", ""),
        ("deepseek-ai/DeepSeek-R1-0528", "fp8-block"),
        ("moonshotai/Kimi-K2-Thinking", "int4-g32"),  # published in another format than Kimi K2 itself
        ("kimi-k2.5", "int4-g32"),
        ("Qwen/Qwen3-32B-FP8", "fp8-block"),  # as all of Qwen's own are
        ("RedHatAI/Qwen3-32B-FP8-dynamic", "fp8"),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", "int4"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "int4"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8", "int8"),
        ("unsloth/Llama-3.3-70B-Instruct-bnb-4bit", "int4"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "int4"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", "int8"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "fp8"),
        ("nvidia/DeepSeek-R1-0528-FP4-v2", "nvfp4"),
        ("amd/Llama-3.1-405B-Instruct-FP8-KV", "fp8"),
        ("bartowski/Qwen2.5-32B-Instruct-GGUF", ""),  # files of many formats
        ("unsloth/gpt-oss-20b-BF16", ""),
    ],
)
def test_a_card_tells_the_format_in_which_its_repository_holds_the_weights(name: str, checkpoint: str) -> None:
    assert preset_card(name).checkpoint == checkpoint


@pytest.mark.parametrize(
    ("config", "checkpoint"),
    [({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"), ({"quant_method": "of-tomorrow"}, "")],
)
def test_a_config_of_ones_own_tells_it_too(tmp_path: Path, config: dict[str, Any], checkpoint: str) -> None:
    file = tmp_path / "config.json"
    shipped = json.loads((PRESETS / "deepseek-v3.json").read_text())["config"]
    file.write_text(json.dumps({**shipped, "quantization_config": config}))
    assert config_card(str(file)).checkpoint == checkpoint


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("model", "weights", "launched"),
    [
        ("deepseek-v3", "fp8-block", "deepseek-ai/DeepSeek-V3"),
        ("deepseek-v3", "fp8", "deepseek-ai/DeepSeek-V3"),
        ("deepseek-v3", "bf16", '"$MODEL"'),
        ("gpt-oss-120b", "mxfp4", "openai/gpt-oss-120b"),
        ("gpt-oss-120b", "fp8", '"$MODEL"'),
    ],
)
def test_what_is_published_in_a_format_is_launched_without_making_it(
    engine: str, model: str, weights: str, launched: str
) -> None:
    """Engines refuse --quantization beside another method in the checkpoint's own config."""
    fleets = [fleet("chat", model=model, weights=weights, qpm=60, layout={"tp": 8}, throughput=None)]
    plan = api.solve(scenario(serving=fleets, hardware={"allow": ["mi300x", "b200-sxm"]}))
    (text,) = [file.text for file in plan.export(engine).files if file.name.endswith(".sh")]
    command = text[text.index("exec ") :]
    assert launched in command
    assert "--quantization" not in command
    assert ("MODEL must hold a checkpoint in that format, which " in text) == (launched == '"$MODEL"')


@pytest.mark.parametrize(("model", "trusted"), [
    ("kimi-k2", True), ("deepseek-v3", False), ("baichuan2-7b", True), ("internlm2.5-7b", True),
    ("llama-3.3-nemotron-super-49b", True), ("olmo-2-7b", False)])  # fmt: skip
@pytest.mark.parametrize(
    ("engine", "flag"),
    [("vllm", "--trust-remote-code"), ("sglang", "--trust-remote-code"), ("trt-llm", "--trust_remote_code")],
)
def test_code_of_a_repository_runs_where_nothing_does_without_it(
    engine: str, flag: str, model: str, trusted: bool
) -> None:
    """Kimi K2's tokenizer is such code: each of the three stopped before it had read the weights."""
    fleets = [fleet("chat", model=model, engine=engine, qpm=60, layout={"tp": 8}, throughput=None)]
    plan = api.solve(scenario(serving=fleets, hardware={"allow": ["b300-sxm"]}))
    if (engine, model) == ("vllm", "baichuan2-7b"):
        pytest.skip("has left vLLM: test_models_that_left_an_engine_are_refused")
    (text,) = [file.text for file in plan.export(engine).files if file.name.endswith(".sh")]
    assert (f" {flag} " in text[text.index("exec ") :]) == trusted
    assert ("look at it first" in text) == trusted


@pytest.mark.parametrize(("model", "last"), [("mpt-30b", "0.28.0"), ("baichuan2-7b", "0.23.0")])
def test_models_that_left_an_engine_are_refused(model: str, last: str) -> None:
    """A server of vLLM 0.33.0 stops as it reads the class of such a model; the plan was launched with that version."""
    plan = api.solve(scenario(serving=[fleet("chat", model=model, qpm=60, throughput=None)]))
    (refusal,) = plan.export("vllm").refusals
    assert f"any more: {last} was the last release that did" in refusal.reason


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_weights_of_llama_cpp_are_a_file(engine: str) -> None:
    """It was "a folder, or a repository of the Hugging Face hub", neither of which is read as such weights."""
    fleets = [fleet("chat", model="llama-3.1-8b", weights="q4_k_m", engine=engine, qpm=60, throughput=None)]
    plan = api.solve(scenario(serving=fleets, hardware={"allow": ["l40s"]}))
    (text,) = [file.text for file in plan.export(engine).files if file.name.endswith(".sh")]
    assert ': "${MODEL:?the weights: one GGUF file, in q4_k_m}"' in text


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_fleets_on_amd_devices_start_no_build_for_cuda(engine: str) -> None:
    """Pods pulled lmsysorg/sglang and tasks installed vllm from pip, neither of which finds a device of AMD's."""
    fleets = [fleet("chat", model="llama-3.1-8b", engine=engine, qpm=60, throughput=None)]
    plan = api.solve(scenario(serving=fleets, hardware={"allow": ["mi300x"]}))
    pods, task, script = (
        next(file.text for file in plan.export(name).files if file.name.endswith(ending))
        for name, ending in (("kubernetes", ".yaml"), ("skypilot", ".yaml"), (engine, ".sh"))
    )
    image = {"vllm": "vllm/vllm-openai-rocm:v", "sglang": "SERVER_IMAGE"}[engine]
    assert f"image: {image}" in pods
    assert "pip install" not in task[task.index("resources:") :]
    for text in (pods, task, script):
        assert "on AMD devices" in text
    assert "add it as setup: or as image_id:" in task


@pytest.mark.parametrize(
    ("name", "repository", "checkpoint"),
    [
        ("llama-3.1-8b", "meta-llama/Llama-3.1-8B", ""),
        ("deepseek-r1", "deepseek-ai/DeepSeek-R1", "fp8-block"),
        ("gpt-oss:20b", "openai/gpt-oss-20b", "mxfp4"),
        ("Llama-3.3-70B-Instruct", "", ""),  # the shape of Llama 3.1 70B, whose weights are others
        ("qwen3-32b-fp8", "", "fp8"),
    ],
)
def test_a_name_without_its_publisher_launches_no_other_weights(name: str, repository: str, checkpoint: str) -> None:
    card = preset_card(name)
    assert (card.hf_id, card.checkpoint) == (repository, checkpoint)


@pytest.mark.parametrize(("model", "told"), [("Llama-3.3-70B-Instruct", True), ("llama-3.1-70b", False)])
def test_a_model_of_anothers_shape_is_told(model: str, told: bool) -> None:
    fleets = [fleet("chat", model=model, weights="fp8")]
    asked = scenario(serving=fleets, hardware={"allow": ["h100-sxm-80gb"]})
    assumed = api.solve(asked).document["assumed"]
    assert (f"chat: {model} has the shape of llama-3.1-70b" in assumed) is told
