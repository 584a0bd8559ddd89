"""Configurations of models: counted as published or refused in words, and put into a scenario that finds them."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.architecture.load import load_config
from planner.architecture.stored import format_of
from planner.errors import InputError
from planner.reading.kinds import Asked
from planner.reading.reading import Reading
from planner.reading.registry import read
from planner.reading.source import Source
from planner.reading.writing import write_into
from tests.reading.writers import adapter_config, model_config, quant_config

SAMPLES = os.environ.get("PLAN_SAMPLES")
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
         "torch_dtype": "bfloat16"}  # fmt: skip


def read_of(folder: Path, data: dict[str, Any] | str, name: str = "anything") -> Reading:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return read(Source(path))


def figures(reading: Reading) -> dict[str, Any]:
    return {each.label: each.value for each in reading.look}


def test_a_config_gives_counts_bytes_and_a_fleet(tmp_path: Path) -> None:
    reading = read_of(tmp_path, LLAMA, "llama-3.1-8b_config.json")
    found = figures(reading)
    assert (reading.kind, reading.taken) == ("model-config", 1)
    assert found["parameters"] == 8_030_261_248
    assert found["weight bytes as bf16"] == 2 * 8_030_261_248
    assert "active parameters" not in found
    card, fleet = reading.pieces
    assert card.text == json.dumps(LLAMA)
    assert fleet.fragment == {
        "serving": [{"name": "llama-3-1-8b", "model": {"config": "llama-3-1-8b.config.json"}, "weights": "bf16"}]
    }


def test_pictures_are_counted_beside_the_text(tmp_path: Path) -> None:
    reading = read_of(tmp_path, model_config())
    found = figures(reading)
    assert found["parameters of the picture encoder"] == sum((
        3 * 14 * 14 * 32 + 32 + 4 * 32,  # patches and positions
        3 * (4 * (32 * 32 + 32) + 2 * 32 * 64 + 64 + 32 + 4 * 32) + 2 * 32,
        32 * 64 + 32,
    ))  # fmt: skip
    assert found["parameters"] == found["parameters of the text model"] + found["parameters of the picture encoder"]
    assert reading.understood["quantization"] == "fp8, taken as fp8"
    assert any("picture encoder" in note for note in reading.notes)


def test_a_scenario_takes_the_model_that_was_read_for_the_one_it_has(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(
        "schema: plan/v1\nname: mine\nserving:\n  - name: chat\n    model: llama-2-7b  # old\n    qpm: 30\n"
    )
    (tmp_path / "in").mkdir()
    wrote = write_into(read_of(tmp_path / "in", LLAMA, "mine_config.json"), str(scenario), Asked())
    assert wrote == [str(tmp_path / "mine.config.json"), str(scenario)]
    text = scenario.read_text()
    assert "llama-2-7b" not in text
    assert "qpm: 30" in text
    assert "model: {config: mine.config.json}" in text
    assert load_config(tmp_path / "mine.config.json").parameters == 8_030_261_248


def test_encoders_are_counted_and_give_no_fleet(tmp_path: Path) -> None:
    data = {"model_type": "t5", "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_heads": 8, "num_layers": 6,
            "vocab_size": 32128}  # fmt: skip
    reading = read_of(tmp_path, data)
    assert figures(reading)["parameters"] == 60_506_624
    assert reading.pieces == []
    assert any("no decoder alone" in note for note in reading.notes)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({**LLAMA, "model_type": "jamba", "time_step_limit": [0.0, float("inf")]}, "keep a state"),
        ({"model_type": "molmo", "hidden_size": 8, "num_hidden_layers": 2}, "'vocab_size' is missing"),
        ({**LLAMA, "model_type": "llamma"}, "'llamma' is not known"),
        ({**LLAMA, "hidden_size": "many"}, "whole number"),
        ({**LLAMA, "vision_config": {"hidden_size": 3}}, "encoder of pictures of 'llama' is not counted"),
        ({**LLAMA, "hidden_size": -1}, "must be 1 to"),
    ],
)
def test_what_is_not_counted_is_refused_in_words(data: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as caught:
        read_of(tmp_path, data)
    assert all(problem.hint and problem.places for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("settings", "form"),
    [
        ({"quant_method": "awq", "bits": 4}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "gptq", "bits": 3}, ""),
        ({"quant_method": "gptq", "bits": [4]}, ""),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"}, "int4"),
        ({"quant_method": "compressed-tensors",
          "config_groups": {"a": {"weights": {"type": "int", "num_bits": 4}}}}, "int4"),
        ({"quant_method": "compressed-tensors",
          "config_groups": {"a": {"weights": {"type": "int", "num_bits": 4}},
                            "b": {"weights": {"type": "float", "num_bits": 8}}}}, ""),
        ({"quant_method": "of-tomorrow"}, ""),
    ],
)  # fmt: skip
def test_settings_of_quantisers_mean_a_format_or_none(settings: dict[str, Any], form: str) -> None:
    assert format_of(settings) == form


def test_a_format_that_modelopt_left_changes_the_fleet(tmp_path: Path) -> None:
    reading = read_of(tmp_path, quant_config(), "my_hf_quant_config.json")
    assert (reading.tool, reading.version) == ("modelopt", "0.31.0")
    fleet = reading.pieces[0].fragment["serving"][0]
    assert (fleet["weights"], fleet["kv_cache"]) == ("nvfp4", "fp8")


def test_an_adapter_names_its_base(tmp_path: Path) -> None:
    reading = read_of(tmp_path, adapter_config())
    assert reading.understood["base model"] == "org/base"
    assert figures(reading)["rank"] == 8
    assert reading.pieces == []


# published totals: tests/published where a preset has them, the index of the shards of Qwen-72B and those that
# tests/architecture/test_encoders.py names; Yi-34B: 34.389 billion in the requests of the Open LLM Leaderboard
# (looked up on 2026-11-25); bert-base-chinese: keras-hub's bert_base_zh, which has the pooler and no head of words;
# llama_awq_defaults has the shape of Llama 2 7B
PRESET = {"deepseek-ai__DeepSeek-V3": "deepseek-v3", "meta-llama__Meta-Llama-3.1-8B": "llama-3.1-8b",
          "mistralai__Mixtral-8x7B-v0.1": "mixtral-8x7b", "nvidia__Llama-3.1-70B-Instruct-FP8": "llama-3.1-70b",
          "openai__gpt-oss-20b": "gpt-oss-20b", "Qwen__Qwen3-235B-A22B": "qwen3-235b-a22b",
          "Qwen__Qwen3-32B-FP8": "qwen3-32b", "medgemma-27b_gemma3": "gemma-3-27b"}  # fmt: skip
# the first four: tests/architecture/test_hybrids.py says where each stands; of Nemotron-H 56B two digits
# are published, which 56.32 rounds to, and two other checkpoints of its family are met to the parameter there
PUBLISHED = {"google__gemma-4-26B-A4B": 25_805_933_872, "logics-thinking_vlm": 9_469_118_880,
             "mamba2_defaults": 7_285_403_648, "molmo7b_bitsandbytes_nf4": 8_021_025_280,
             "qwen-72b_2023": 72_287_920_128, "bge-m3": 567_754_752, "bert-base-chinese": 102_267_648,
             "t5": 60_506_624, "whisper-large-v2": 1_543_304_960, "llama_awq_defaults": 6_738_415_616,
             "yi-34b": 34_389_000_000,
             "Qwen__Qwen3-VL-30B-A3B-Instruct": 31_070_754_032}  # fmt: skip
TABLE = Path(__file__).parents[1] / "published" / "data" / "models.csv"


@pytest.mark.campaign
@pytest.mark.skipif(not SAMPLES, reason="PLAN_SAMPLES names no folder of samples")
def test_every_sample_is_counted_as_published() -> None:
    rows = {row["id"]: row for row in csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines())}
    held = set()
    for path in sorted(Path(str(SAMPLES), "model_config").iterdir()):
        name = path.name.removesuffix("_config.json")
        found = figures(read(Source(path)))
        published = PUBLISHED.get(name) or (int(rows[PRESET[name]]["params_published"]) if name in PRESET else 0)
        if published:
            held.add(name)
            other = (
                int(rows[PRESET[name]]["params_other"] or 0) if name in PRESET and name != "medgemma-27b_gemma3" else 0
            )
            assert found["parameters"] + other == pytest.approx(published, rel=0.005), name
        if name == "nvidia__Nemotron-H-56B-Base-8K":
            assert round(found["parameters"] / 1e9) == 56
    assert held == {*PUBLISHED, *PRESET}


def test_a_hybrid_is_read_and_planned_with_a_warning(tmp_path: Path) -> None:
    data = {"model_type": "nemotron_h", "hidden_size": 1024, "num_hidden_layers": 5, "intermediate_size": 4096,
            "hybrid_override_pattern": "M-M*-", "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 32000,
            "mamba_num_heads": 32, "mamba_head_dim": 64, "torch_dtype": "bfloat16", "auto_map": {"AutoConfig": "x.Y"},
            "time_step_limit": [0.0, float("inf")]}  # fmt: skip
    reading = read_of(tmp_path, data, "small_config.json")
    assert figures(reading)["layers"] == 3
    assert any("apart, as 5 layers" in note for note in reading.notes)
    assert any("try it first" in note for note in reading.notes)
    path = tmp_path / "mine.yaml"
    path.write_text(
        "schema: plan/v1\nname: mine\nhorizon: 1 day\nserving:\n"
        "  - name: small\n    model: llama-3.1-8b\n    qpm: 6\n    input_tokens: 100\n    output_tokens: 10\n"
    )
    write_into(reading, str(path), Asked())
    plan = planner.solve(path)
    assert plan.status == "optimal"
    assert sum("Mamba-2 layers are timed" in line for line in plan.document["warnings"]) == 1
