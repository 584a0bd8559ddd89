"""Configurations of models: counted as published or refused in words, and put into a scenario that finds them."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.architecture.load import format_of, load_config, of_hub
from planner.errors import InputError
from planner.reading.kinds import Asked, Reading, read
from planner.reading.piece_writing import write_into
from planner.reading.source import Source
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
        ({**LLAMA, "model_type": "zamba2", "add_bias_linear": True, "time_step_limit": [0.0, float("inf")]}, "biases"),
        ({"model_type": "molmo", "hidden_size": 8, "num_hidden_layers": 2}, "'vocab_size' is missing"),
        ({**LLAMA, "model_type": "llamma"}, "'llamma' is not known"),
        ({**LLAMA, "hidden_size": "many"}, "whole number"),
        ({**LLAMA, "model_type": "granitemoehybrid", "layer_types": ["rwkv"] * 32}, 'holds "rwkv"'),
        ({**LLAMA, "encoder_config": {"hidden_size": 3}}, "part 'encoder_config' is not counted"),
        ({**LLAMA, "audio_config": {"hidden_size": 3}}, "encoder of sound of 'llama' is not counted"),
        ({**LLAMA, "model_type": "phi4mm", "embd_layer": {}}, "no shape in this file"),
        (
            {"model_type": "modernbert", "hidden_size": 8, "num_hidden_layers": 1, "vision_config": {"hidden_size": 3}},
            "encoder of pictures of 'modernbert'",
        ),
        (
            {
                "model_type": "qwen2_5_omni",
                "architectures": ["Qwen2_5OmniModel"],
                "thinker_config": {"model_type": "qwen2_5_omni_thinker"},
            },
            "'qwen2_5_omni_thinker' is not known",
        ),
        ({**LLAMA, "model_type": "hunyuan_v1_moe", "num_experts": 64, "moe_topk": [8, 4]}, "differs between layers"),
        ({**LLAMA, "model_type": "ernie4_5_moe", "moe_num_experts": [64, 64]}, "experts for pictures"),
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
        ({"quant_method": "compressed-tensors",
          "config_groups": {"a": {"weights": {"type": "float", "num_bits": 4, "group_size": 32}}}}, "mxfp4"),
        ({"quant_method": "compressed-tensors",
          "config_groups": {"a": {"weights": {"type": "float", "num_bits": 4, "group_size": 16}}}}, "nvfp4"),
        ({"quant_method": "compressed-tensors",
          "config_groups": {"a": {"weights": {"type": "float", "num_bits": 8, "strategy": "block"}}}}, "fp8-block"),
        ({"quant_method": "intel/auto-round", "bits": 4}, "int4"),
        ({"quant_method": "awq", "w_bit": 4}, "int4"),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 32}, "int4-g32"),
        ({"quant_method": "compressed-tensors",  # as Kimi K2 Thinking
          "config_groups": {"a": {"weights": {"type": "int", "num_bits": 4, "group_size": 32}}}}, "int4-g32"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "modelopt_fp4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}}, "fp8"),
        ({"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "int4"),
        ({"group_size": 64, "bits": 4}, "int4"),
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
    assert any("otherwise, as 5;" in note for note in reading.notes)
    assert any("try it first" in note for note in reading.notes)
    path = tmp_path / "mine.yaml"
    path.write_text(
        "schema: plan/v1\nname: mine\nhorizon: 1 day\nserving:\n"
        "  - name: small\n    model: llama-3.1-8b\n    qpm: 6\n    input_tokens: 100\n    output_tokens: 10\n"
    )
    write_into(reading, str(path), Asked())
    plan = planner.solve(path)
    assert plan.status == "optimal"
    assert sum("layers that keep a state are timed" in line for line in plan.document["warnings"]) == 1


def shape(hidden: int, inner: int, heads: int, pairs: int, layers: int, words: int, **more: Any) -> dict[str, Any]:
    """Sizes of a decoder, of which `pairs` are its heads of keys."""
    named = {"hidden_size": hidden, "intermediate_size": inner, "num_attention_heads": heads,
             "num_key_value_heads": pairs, "num_hidden_layers": layers, "vocab_size": words}  # fmt: skip
    return {**named, "tie_word_embeddings": False, **more}


ROUTED = {"moe_intermediate_size": 1408, "num_experts_per_tok": 4}
DEEPSEEK = {**ROUTED, "n_routed_experts": 64, "n_shared_experts": 2, "first_k_dense_replace": 1}
# model_type -> sizes and the elements of a checkpoint as its page counts them: from memory, before anything was counted
CHECKPOINTS: dict[str, tuple[dict[str, Any], int]] = {
    "baichuan": (shape(4096, 11008, 32, 32, 32, 125696), 7_505_973_248),
    "cohere2": (shape(4096, 14336, 32, 8, 32, 256000, tie_word_embeddings=True, sliding_window=4096), 8_028_033_024),
    "deepseek": (shape(2048, 10944, 16, 16, 28, 102400, **DEEPSEEK), 16_375_728_128),
    "exaone": (shape(4096, 14336, 32, 8, 32, 102400), 7_818_448_896),
    "glm4": (shape(4096, 13696, 32, 2, 40, 151552, head_dim=128, attention_bias=True), 9_400_279_040),
    "gpt_bigcode": ({"n_embd": 6144, "n_head": 48, "n_inner": 24576, "n_layer": 40, "n_positions": 8192,
                     "vocab_size": 49152}, 15_517_456_384),
    "gptj": ({"n_embd": 4096, "n_head": 16, "n_inner": None, "n_layer": 28, "n_positions": 2048, "vocab_size": 50400},
             6_050_882_784),
    "granitemoehybrid": (shape(2560, 8192, 40, 8, 40, 100352, tie_word_embeddings=True, num_local_experts=0,
                               shared_intermediate_size=8192, layer_types=["attention"] * 40), 3_402_836_480),
    "granite": (shape(4096, 12800, 32, 8, 40, 49155, tie_word_embeddings=True), 8_170_848_256),
    "internlm2": (shape(4096, 14336, 32, 8, 32, 92544, bias=False), 7_737_708_544),
    "olmo": (shape(4096, 11008, 32, 32, 32, 50304), 6_888_095_744),
    "olmo2": (shape(4096, 11008, 32, 32, 32, 100352), 7_298_617_344),
    "olmoe": (shape(2048, 1024, 16, 16, 16, 50304, num_experts=64, num_experts_per_tok=8), 6_919_161_856),
    "phi": (shape(2560, 10240, 32, 32, 32, 51200), 2_779_683_840),
    "phimoe": (shape(4096, 6400, 32, 8, 32, 32064, num_local_experts=16, num_experts_per_tok=2, attention_bias=True),
               41_873_153_344),
    "qwen2_moe": (shape(2048, 5632, 16, 16, 24, 151936, **ROUTED, num_experts=60,
                        shared_expert_intermediate_size=5632), 14_315_784_192),
    "seed_oss": (shape(5120, 27648, 80, 8, 64, 155136, head_dim=128, attention_bias=True), 36_151_104_512),
    "smollm3": (shape(2048, 11008, 16, 4, 36, 128256, tie_word_embeddings=None), 3_075_098_624),
    "stablelm": (shape(2560, 6912, 32, 32, 32, 50304), 2_795_443_200),
    "starcoder2": (shape(6144, 24576, 48, 4, 40, 49152, sliding_window=4096), 15_957_889_024),
    "apertus": (shape(4096, 21504, 32, 8, 32, 131072, qk_norm=True), 8_053_338_240),
    "bailing_moe": (shape(2048, 5120, 16, 4, 20, 157184, head_dim=128, moe_intermediate_size=512, num_experts=256,
                          num_shared_experts=1, num_experts_per_tok=8, first_k_dense_replace=1, use_qk_norm=True,
                          use_bias=False, use_qkv_bias=False), 16_255_643_392),
    "ernie4_5": (shape(1024, 3072, 16, 2, 18, 103424, tie_word_embeddings=True, use_bias=False), 360_748_032),
    "ernie4_5_moe": (shape(2560, 12288, 20, 4, 28, 103424, tie_word_embeddings=True, head_dim=128, moe_k=6,
                           moe_num_experts=64, moe_num_shared_experts=2, moe_intermediate_size=1536,
                           moe_layer_start_index=1, moe_layer_end_index=27), 21_825_437_888),
    "exaone4": (shape(5120, 27392, 40, 8, 64, 102400, head_dim=128, sliding_window=4096,
                      sliding_window_pattern="LLLG"), 32_003_216_384),
    "hunyuan_v1_moe": (shape(4096, 3072, 32, 8, 32, 128167, tie_word_embeddings=True, attention_head_dim=128,
                             num_experts=64, moe_topk=[8] * 32, num_shared_expert=[1] * 32,
                             moe_intermediate_size=[3072] * 32, use_qk_norm=True), 80_393_183_232),
    "internlm3": (shape(4096, 10240, 32, 2, 48, 128512, head_dim=128, qkv_bias=False, bias=False), 8_804_241_408),
    # with the layer that guesses tokens ahead the page has 7,833,409,536: 210,790,400 more
    "mimo": (shape(4096, 11008, 32, 8, 36, 151680, attention_bias=True, head_dim=128), 7_622_619_136),
}  # fmt: skip


@pytest.mark.parametrize("family", CHECKPOINTS)
def test_families_without_a_preset_are_counted_as_published(family: str, tmp_path: Path) -> None:
    sizes, published = CHECKPOINTS[family]
    found = figures(read_of(tmp_path, {"model_type": family, **sizes}))
    assert found["parameters"] == pytest.approx(published, rel=3e-5)  # biases of a head of words are left out


def test_layers_of_granite_4_with_mamba_2_and_experts_are_counted_as_published(tmp_path: Path) -> None:
    kinds = (["mamba"] * 5 + ["attention"] + ["mamba"] * 4) * 4
    small = {"model_type": "granitemoehybrid", "layer_types": kinds, "mamba_conv_bias": True, "mamba_d_conv": 4,
             "mamba_d_head": 64, "mamba_d_state": 128, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 128,
             "mamba_proj_bias": False, "num_experts_per_tok": 10, "num_local_experts": 72,
             "shared_intermediate_size": 1536,
             **shape(4096, 768, 32, 8, 40, 100352, tie_word_embeddings=True)}  # fmt: skip
    assert figures(read_of(tmp_path, small))["parameters"] == 32_207_337_984


def test_windows_of_exaone_4_follow_their_letters(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    sizes, _ = CHECKPOINTS["exaone4"]
    path.write_text(json.dumps({"model_type": "exaone4", **sizes}))
    assert {group.window_tokens: group.count for group in load_config(path).layers} == {4096: 48, 0: 16}
    path.write_text(json.dumps({"model_type": "exaone4", **sizes, "sliding_window": None}))
    assert {group.window_tokens: group.count for group in load_config(path).layers} == {0: 64}


def test_a_checkpoint_is_of_the_family_of_its_class(tmp_path: Path) -> None:
    data = {
        "architectures": ["MiniMaxM2ForCausalLM"],
        "model_type": "minimax",
        "num_experts_per_tok": 8,
        "num_local_experts": 256,
        "use_qk_norm": True,
        **shape(3072, 1536, 48, 8, 62, 200064, head_dim=128),
    }
    assert figures(read_of(tmp_path, data))["parameters"] == 228_689_764_864


def test_pictures_of_further_families_are_counted_as_published(tmp_path: Path) -> None:
    qwen = {"model_type": "qwen2_vl", **shape(3584, 18944, 28, 4, 28, 152064),
            "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4, "num_heads": 16,
                              "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}}  # fmt: skip
    text = shape(5120, 32768, 32, 8, 40, 131072, head_dim=128)
    mistral = {"model_type": "mistral3", "spatial_merge_size": 2, "text_config": {"model_type": "mistral", **text},
               "vision_config": {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16,
                                 "num_hidden_layers": 24, "patch_size": 14, "head_dim": 64}}  # fmt: skip
    text = shape(5120, 8192, 40, 8, 48, 202048, head_dim=128, num_local_experts=16, num_experts_per_tok=1)
    llama = {"model_type": "llama4", "text_config": {"model_type": "llama4_text", **text},
             "vision_config": {"hidden_size": 1408, "image_size": 336, "intermediate_size": 5632,
                               "num_attention_heads": 16, "num_hidden_layers": 34, "patch_size": 14,
                               "projector_input_dim": 4096, "projector_output_dim": 4096,
                               "vision_output_dim": 4096}}  # fmt: skip
    for data, published in ((qwen, 8_291_375_616), (mistral, 24_011_361_280), (llama, 108_641_793_536)):
        assert figures(read_of(tmp_path, data))["parameters"] == published
    wider = figures(read_of(tmp_path, {**mistral, "spatial_merge_size": 4}))
    assert wider["parameters"] == 24_011_361_280 + 12 * 1024 * 1024


@pytest.mark.parametrize("made_for", ["LlamaForSequenceClassification", "LlamaModel"])
def test_what_embeds_or_rates_has_no_head_of_words(made_for: str, tmp_path: Path) -> None:
    reading = read_of(tmp_path, {**LLAMA, "architectures": [made_for]})
    assert figures(reading)["parameters"] == 8_030_261_248 - 4096 * 128256
    assert any("no output head of words" in note for note in reading.notes)


def test_an_encoder_of_t5_has_no_decoder(tmp_path: Path) -> None:
    data = {"model_type": "t5", "architectures": ["T5EncoderModel"], "d_model": 4096, "d_kv": 64, "d_ff": 10240,
            "num_heads": 64, "num_layers": 24, "feed_forward_proj": "gated-gelu", "vocab_size": 32128}  # fmt: skip
    assert figures(read_of(tmp_path, data))["parameters"] == 4_762_310_656


def test_a_part_of_a_diffusion_model_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a part of a diffusion model, 'UNet2DConditionModel'"):
        read_of(tmp_path, {"_class_name": "UNet2DConditionModel", "_diffusers_version": "0.19.0", "in_channels": 4})


def test_a_cache_that_the_checkpoint_scales_is_taken_over(tmp_path: Path) -> None:
    kept = {"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}
    (fleet,) = read_of(tmp_path, {**LLAMA, "quantization_config": kept}).pieces[1].fragment["serving"]
    assert (fleet["weights"], fleet["kv_cache"]) == ("fp8", "fp8")


@pytest.mark.parametrize(
    ("left", "tool"),
    [
        ({"bits": 4, "group_size": 128, "desc_act": False, "sym": True}, "AutoGPTQ"),
        ({"zero_point": True, "q_group_size": 128, "w_bit": 4, "version": "GEMM"}, "AutoAWQ"),
    ],
)
def test_what_older_quantisers_left_beside_a_model_is_read(left: dict[str, Any], tool: str, tmp_path: Path) -> None:
    reading = read_of(tmp_path, left)
    (fleet,) = reading.pieces[0].fragment["serving"]
    assert (reading.tool, fleet["weights"]) == (tool, "int4")


def test_of_several_revisions_in_the_cache_the_one_that_the_hub_shows_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--some--model"
    for revision in ("aaa", "bbb"):
        (folder / "snapshots" / revision).mkdir(parents=True)
        (folder / "snapshots" / revision / "config.json").write_text("{}")
    assert of_hub("some/model") == folder / "snapshots" / "bbb" / "config.json"
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("aaa")
    assert of_hub("some/model") == folder / "snapshots" / "aaa" / "config.json"


@pytest.mark.parametrize(
    ("left", "form"),
    [
        ({"compression_config": {"quant_method": "compressed-tensors",
                                 "config_groups": {"a": {"weights": {"type": "int", "num_bits": 4}}}}}, "int4"),
        ({"quantization": {"group_size": 64, "bits": 4}}, "int4"),
        ({"torch_dtype": "torch.float16"}, "fp16"),
        ({"torch_dtype": "float8_e4m3fn"}, "fp8"),
        ({"torch_dtype": None, "dtype": "float32"}, "fp32"),
    ],
)  # fmt: skip
def test_formats_that_older_and_newer_tools_leave_in_a_config(left: dict[str, Any], form: str, tmp_path: Path) -> None:
    reading = read_of(tmp_path, {**LLAMA, **left})
    (fleet,) = reading.pieces[1].fragment["serving"]
    assert fleet["weights"] == form
    assert ("weight bytes as bf16" in figures(reading)) is False


def test_a_format_of_no_known_name_is_told(tmp_path: Path) -> None:
    reading = read_of(tmp_path, {**LLAMA, "torch_dtype": "auto"})
    assert "weights" not in reading.pieces[1].fragment["serving"][0]
    assert any("'auto', is no format" in note for note in reading.notes)


@pytest.mark.parametrize(("ahead", "told"), [(1, True), (0, False)])
def test_layers_that_guess_tokens_ahead_are_told_and_not_counted(ahead: int, told: bool, tmp_path: Path) -> None:
    reading = read_of(tmp_path, {**LLAMA, "num_nextn_predict_layers": ahead})
    assert figures(reading)["parameters"] == 8_030_261_248
    assert any("num_nextn_predict_layers: 1" in note for note in reading.notes) == told


def test_checkpoints_of_qwen3_next_hold_a_layer_that_their_file_does_not_tell(tmp_path: Path) -> None:
    text = {**LLAMA, "model_type": "qwen3_next", "num_experts": 8, "num_experts_per_tok": 2, "head_dim": 256,
            "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512}  # fmt: skip
    notes = read_of(tmp_path, text).notes
    assert any("larger by about 2 %" in note for note in notes)


def test_hunyuan_is_known_by_its_class(tmp_path: Path) -> None:
    sizes = {**LLAMA, "model_type": "hunyuan", "architectures": ["HunYuanDenseV1ForCausalLM"]}
    assert read_of(tmp_path, sizes).understood["family"] == "hunyuan_v1_dense"


SEES = {"hidden_size": 1024, "num_channels": 3, "patch_size": 14, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "adapter_bias": False, "spatial_merge_size": 2, "image_size": 1540}  # fmt: skip
WIDE = {"dim": 5120, "n_layers": 40, "head_dim": 128, "hidden_dim": 32768, "n_heads": 32, "n_kv_heads": 8,
        "norm_eps": 1e-5, "vocab_size": 131072, "max_position_embeddings": 131072}  # fmt: skip


@pytest.mark.parametrize(
    ("params", "parameters"),
    [  # as their publishers count them: Mistral 7B v0.3, Mixtral 8x7B, Mistral Small 3 and 3.1, Llama 3 8B
        ({"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8,
          "vocab_size": 32768}, 7_248_023_552),
        ({"dim": 4096, "n_layers": 32, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 32000,
          "moe": {"num_experts": 8, "num_experts_per_tok": 2}}, 46_702_792_704),
        (WIDE, 23_572_403_200),
        (WIDE | {"vision_encoder": SEES}, 24_011_361_280),
        ({"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256, "multiple_of": 1024,
          "ffn_dim_multiplier": 1.3}, 8_030_261_248),
        ({"dim": 7168, "n_layers": 61, "hidden_dim": 18432, "n_heads": 128, "vocab_size": 129280, "q_lora_rank": 1536,
          "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
          "moe": {"num_experts": 256, "num_experts_per_tok": 8, "expert_hidden_dim": 2048, "num_shared_experts": 1,
                  "first_k_dense_replace": 3}}, 671_026_404_352),
    ],
)  # fmt: skip
def test_params_of_mistral_and_meta_are_counted_as_published(
    params: dict[str, Any], parameters: int, tmp_path: Path
) -> None:
    reading = read_of(tmp_path, params, "params.json")
    assert figures(reading)["parameters"] == pytest.approx(parameters, rel=1e-4)
    (tmp_path / "card.json").write_text(next(piece.text for piece in reading.pieces if piece.what == "card"))
    assert load_config(tmp_path / "card.json").parameters == pytest.approx(parameters, rel=0.02)  # the text alone


def test_params_tell_their_format_and_what_they_lack(tmp_path: Path) -> None:
    reading = read_of(tmp_path, WIDE | {"quantization": {"qformat_weight": "fp8_e4m3"}}, "params.json")
    assert reading.pieces[1].fragment["serving"][0]["weights"] == "fp8"
    for odd in ({"vocab_size": -1}, {"moe": 7, "hidden_dim": "x"}, {"multiple_of": 0, "hidden_dim": None}):
        with pytest.raises(InputError):
            read_of(tmp_path, WIDE | odd, "params.json")
