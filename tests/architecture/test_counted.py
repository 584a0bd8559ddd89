"""Models that are counted and not planned, and further ones that see: published counts, or those of the classes.

Those of transformers 5.24.0's classes were counted on no device (2026-11-30). Checkpoints of Gemma 3n and 4 hold keys
and values of layers that use those of others, which the classes leave out: their published counts are the larger ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.architecture.counted import counted_parts, why_counted
from planner.architecture.encoders import whole_parts
from planner.architecture.from_config import build
from planner.architecture.vision import vision_parts
from planner.errors import InputError
from planner.reading.kinds import read
from planner.reading.source import Source
from tests.architecture.test_encoders import inside, tower
from tests.architecture.test_hybrids import built, config_of

THIRD = {"model_type": "gemma3n_text", "hidden_size": 2048, "num_hidden_layers": 35, "intermediate_size": [16384] * 35,
         "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 262400,
         "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144, "num_kv_shared_layers": 15,
         "altup_num_inputs": 4, "laurel_rank": 64}  # fmt: skip
EYE_3N = {"model_type": "gemma3n_vision", "architecture": "mobilenetv5_300m_enc", "hidden_size": 2048,
          "vocab_size": 128}  # fmt: skip
EAR_3N = {"model_type": "gemma3n_audio", "hidden_size": 1536, "vocab_size": 128, "conf_num_attention_heads": 8,
          "conf_num_hidden_layers": 12, "conf_conv_kernel_size": 5, "sscp_conv_channel_size": [128, 32],
          "input_feat_size": 128}  # fmt: skip
SMALL = {"model_type": "gemma4_text", "num_attention_heads": 8, "head_dim": 256, "global_head_dim": 512,
         "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144, "vocab_size": 262144}  # fmt: skip
E4B = {**SMALL, "hidden_size": 2560, "num_hidden_layers": 42, "intermediate_size": 10240, "num_key_value_heads": 2,
       "num_kv_shared_layers": 18, "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 7}  # fmt: skip
E2B = {**SMALL, "hidden_size": 1536, "num_hidden_layers": 35, "intermediate_size": 6144, "num_key_value_heads": 1,
       "num_kv_shared_layers": 20, "use_double_wide_mlp": True,
       "layer_types": [*["sliding_attention"] * 4, "full_attention"] * 7}  # fmt: skip
BESIDE_4 = {
    "vision_config": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 16, "num_attention_heads": 12,
                      "head_dim": 64, "patch_size": 16, "position_embedding_size": 10240},
    "audio_config": {"hidden_size": 1024, "num_hidden_layers": 12, "num_attention_heads": 8, "conv_kernel_size": 5,
                     "output_proj_dims": 1536, "subsampling_conv_channels": [128, 32]}}  # fmt: skip
ZAMBA_7B = {"model_type": "zamba", "hidden_size": 3712, "num_hidden_layers": 76, "vocab_size": 32000,
            "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 14848, "mamba_d_state": 16,
            "mamba_d_conv": 4, "mamba_expand": 2, "n_mamba_heads": 2, "mamba_dt_rank": 232,
            "attn_layer_period": 6, "attn_layer_offset": 4}  # fmt: skip
ZAMBA2_7B = {"model_type": "zamba2", "hidden_size": 3584, "num_hidden_layers": 81, "vocab_size": 32000,
             "num_attention_heads": 32, "num_mem_blocks": 2, "mamba_d_state": 64, "mamba_expand": 2, "mamba_d_conv": 4,
             "mamba_ngroups": 2, "n_mamba_heads": 112, "intermediate_size": 14336, "adapter_rank": 128,
             "hybrid_layer_ids": [6, 11, 17, 23, 29, 35, 41, 47, 53, 59, 65, 71, 77]}  # fmt: skip
WORLD = {"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 65536, "attention_hidden_size": 4096,
         "intermediate_size": None}  # fmt: skip
SEVEN = {"model_type": "rwkv7", "hidden_size": 2560, "num_hidden_layers": 32, "vocab_size": 65536, "head_dim": 64,
         "intermediate_size": 10240, "decay_low_rank_dim": 96, "gate_low_rank_dim": 320, "a_low_rank_dim": 96,
         "v_low_rank_dim": 64}  # fmt: skip

V4 = {"model_type": "deepseek_v4", "hidden_size": 4096, "num_hidden_layers": 43, "num_attention_heads": 64,
      "head_dim": 512, "q_lora_rank": 1024, "o_groups": 8, "o_lora_rank": 1024, "hc_mult": 4, "index_n_heads": 64,
      "index_head_dim": 128, "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
      "num_experts_per_tok": 6, "vocab_size": 129280, "num_nextn_predict_layers": 1}  # fmt: skip


@pytest.mark.parametrize(
    ("data", "counted"),
    [
        pytest.param(V4, 284_325_869_015, id="deepseek-v4-flash"),
        pytest.param({"model_type": "gemma3n", "text_config": THIRD, "vision_config": EYE_3N, "audio_config": EAR_3N},
                     7_849_978_192, id="gemma-3n-e4b"),
        pytest.param({"model_type": "gemma4", "text_config": E4B, **BESIDE_4}, 7_996_156_448, id="gemma-4-e4b"),
        pytest.param({"model_type": "gemma4", "text_config": E2B, **BESIDE_4}, 5_123_178_016, id="gemma-4-e2b"),
        pytest.param(ZAMBA_7B, 7_232_490_496, id="zamba-7b"),
        pytest.param(ZAMBA2_7B, 7_356_749_648, id="zamba2-7b"),
        pytest.param({**ZAMBA2_7B, "num_mem_blocks": 1, "use_shared_attention_adapter": True}, 7_094_332_752,
                     id="zamba2, one block that attention adapts, too"),
        pytest.param({"model_type": "rwkv", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 50277},
                     7_392_649_216, id="rwkv-4-7b"),
        pytest.param({"model_type": "rwkv5", **WORLD}, 7_518_044_160, id="rwkv-5-7b"),
        pytest.param({"model_type": "rwkv6", **WORLD}, 7_635_746_816, id="rwkv-6-7b"),
        pytest.param(SEVEN, 2_947_735_040, id="rwkv-7-2.9b"),
    ],
)  # fmt: skip
def test_counts_are_those_of_the_checkpoints(data: dict[str, Any], counted: int) -> None:
    config = config_of(data)
    assert why_counted(config)
    assert sum(counted_parts(config).values()) + sum(vision_parts(config).values()) == counted


def test_what_is_counted_and_not_planned_says_why(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "gemma4", "text_config": E2B, **BESIDE_4}))
    reading = read(Source(path))
    shown = {figure.label: figure.value for figure in reading.look}
    assert (shown["parameters"], shown["parameters, sound encoder"]) == (5_123_178_016, 304_824_608 + 1536 * 1536)
    assert not reading.pieces
    assert any("no equation of serving here is of such layers" in note for note in reading.notes)
    with pytest.raises(InputError, match="counted and not planned: its layers keep a state of another kind"):
        build(config_of(SEVEN), name="m", source="s")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({**THIRD, "intermediate_size": [16384]}, "must be one width, or 35"),
        ({**ZAMBA2_7B, "add_bias_linear": True}, "biases of all projections"),
        ({**ZAMBA2_7B, "layers_block_type": ["mamba"]}, "list of 81 words"),
        ({**ZAMBA2_7B, "n_mamba_heads": 111}, "not a multiple of 111 heads"),
        ({**E4B, "enable_moe_block": True}, "experts or keys for values"),
        ({**E4B, "hidden_size_per_layer_input": "many"}, "must be a whole number"),
        ({**V4, "compress_ratios": [4] * 42}, "for each of 43 layers"),
        ({**V4, "o_groups": 5}, "not divided into 5 groups"),
        ({**WORLD, "model_type": "rwkv", "architecture_version": "rwkv7"}, "another version of RWKV"),
    ],
)
def test_what_of_them_is_not_counted_is_refused(data: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        counted_parts(config_of(data))


def test_the_past_of_deepseek_v4_is_told_by_ratios_or_words(tmp_path: Path) -> None:
    ratios = [128, 128, *[128, 4] * 20, 128]
    by_ratio = counted_parts(config_of({**V4, "compress_ratios": [*ratios, 0]}))  # one more, of the layer ahead
    assert by_ratio == counted_parts(config_of(V4))
    names = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
    assert by_ratio == counted_parts(config_of({**V4, "layer_types": [names[each] for each in ratios]}))
    plain = counted_parts(config_of({**V4, "compress_ratios": [0, 0, *ratios[2:]]}))
    assert by_ratio["attention"] - plain["attention"] == 2 * (128 * 512 + 2 * 4096 * 512 + 512)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(V4))
    notes = read(Source(path)).notes
    assert any("num_nextn_predict_layers: 1" in note for note in notes)
    assert not any("a job takes" in note for note in notes)  # it would be taken for a dense one


def test_layers_of_zamba_with_attention_may_be_listed_by_kind() -> None:
    named = [{True: "hybrid", False: "mamba"}[at in ZAMBA2_7B["hybrid_layer_ids"]] for at in range(81)]  # type: ignore[operator]
    listed = {**ZAMBA2_7B, "hybrid_layer_ids": None, "layers_block_type": named}
    assert counted_parts(config_of(listed)) == counted_parts(config_of(ZAMBA2_7B))


def test_gemma_4_without_words_for_each_layer_is_planned() -> None:
    assert not why_counted(config_of({**E4B, "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0}))
    assert why_counted(config_of({**E4B, "hidden_size_per_layer_input": None}))  # its class has them unless told
    assert not why_counted(config_of({"model_type": "llama"}))


GEMMA2 = {"model_type": "t5_gemma_module", "hidden_size": 2304, "intermediate_size": 9216, "num_attention_heads": 8,
          "num_key_value_heads": 4, "head_dim": 256, "num_hidden_layers": 26, "vocab_size": 256000}  # fmt: skip
GEMMA2_9B = {**GEMMA2, "hidden_size": 3584, "intermediate_size": 14336, "num_attention_heads": 16,
             "num_key_value_heads": 8, "num_hidden_layers": 42}  # fmt: skip


@pytest.mark.parametrize(("encoder", "counted"), [(GEMMA2, 5_596_853_760), (GEMMA2_9B, 12_292_375_296)])
def test_t5gemma_is_two_of_gemma_2(encoder: dict[str, Any], counted: int) -> None:
    data = {"model_type": "t5gemma", "architectures": ["T5GemmaForConditionalGeneration"], "encoder": encoder,
            "decoder": GEMMA2}  # fmt: skip
    assert vision_parts(config_of(data)) == {}
    assert sum(whole_parts(config_of(data)).values()) == counted


SO400M = tower(1152, 4304, 16, 27, 512, patch=16, vision_use_head=False)
GEMMA = inside("gemma", 2048, 16384, 8, 1, 18, 257216)
KIMI = {"model_type": "deepseek_v3", "hidden_size": 2048, "intermediate_size": 11264, "moe_intermediate_size": 1408,
        "num_hidden_layers": 27, "num_attention_heads": 16, "n_shared_experts": 2, "n_routed_experts": 64,
        "kv_lora_rank": 512, "q_lora_rank": None, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128,
        "num_experts_per_tok": 6, "first_k_dense_replace": 1, "vocab_size": 163840}  # fmt: skip
LFM2 = {"model_type": "lfm2", "hidden_size": 1024, "num_hidden_layers": 16, "num_attention_heads": 16,
        "num_key_value_heads": 8, "block_ff_dim": 6656, "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": True, "vocab_size": 65536,
        "full_attn_idxs": [2, 5, 8, 10, 12, 14]}  # fmt: skip


@pytest.mark.parametrize(
    ("data", "counted", "within"),
    [
        pytest.param({"model_type": "cohere2_vision", "downsample_factor": 2, "alignment_intermediate_size": 36864,
                      "text_config": inside("cohere2", 12288, 36864, 96, 8, 64, 256000, head_dim=128),
                      "vision_config": SO400M}, 111_867_525_360, 0, id="command-a-vision"),
        pytest.param({"model_type": "kimi_vl", "text_config": KIMI, "vision_config": {
            "model_type": "moonvit", "patch_size": 14, "num_attention_heads": 16, "num_hidden_layers": 27,
            "hidden_size": 1152, "intermediate_size": 4304, "init_pos_emb_height": 64, "init_pos_emb_width": 64}},
                     16_407_657_776, 2000, id="kimi-vl-a3b"),
        pytest.param({"model_type": "lfm2_vl", "downsample_factor": 2, "projector_hidden_size": 2560,
                      "text_config": LFM2, "vision_config": {"hidden_size": 768, "vision_use_head": False}},
                     450_822_656, 0, id="lfm2-vl-450m"),
        # its matrix of 128 values of each word and its bias are left out
        pytest.param({"model_type": "colpali", "architectures": ["ColPaliForRetrieval"], "text_config": GEMMA,
                      "vlm_config": {"model_type": "paligemma", "text_config": GEMMA, "vision_config": tower(
                          1152, 4304, 16, 27, 448, vision_use_head=False)}}, 2_924_613_488, 262_272, id="colpali"),
    ],
)  # fmt: skip
def test_further_models_that_see(data: dict[str, Any], counted: int, within: int) -> None:
    assert abs(counts(data) - counted) <= within


ERNIE = {**inside("ernie4_5_moe_vl", 2560, 12288, 20, 4, 28, 103424), "moe_intermediate_size": [1536, 512],
         "moe_num_experts": [64, 64], "moe_num_shared_experts": 2, "moe_k": 6, "moe_layer_start_index": [1, 1],
         "moe_layer_end_index": [29, 28], "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 1280,
                                                            "num_heads": 16, "mlp_ratio": 4, "patch_size": 14,
                                                            "spatial_merge_size": 2}}  # fmt: skip


def test_experts_for_pictures_are_counted_beside_those_for_words(tmp_path: Path) -> None:
    assert counts(ERNIE) == 29_399_294_336  # of the class of transformers 5.24.0
    text = {key: value for key, value in ERNIE.items() if key != "vision_config"}
    told = {"moe_num_experts": 64, "mlp_layer_types": ["dense", *["sparse"] * 27], "model_type": "ernie4_5_vl_moe_text"}
    later = {"model_type": "ernie4_5_vl_moe", "text_config": {**text, **told}, "vision_config": ERNIE["vision_config"]}
    assert counts(later) == counts(ERNIE)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(ERNIE))
    shown = {figure.label: figure.value for figure in read(Source(path)).look}
    words = built(ERNIE)  # a word visits none of the experts for pictures
    idle = 27 * (64 * 3 * 2560 * 512 + 64 * 2560 + 64)
    assert shown["active parameters"] == words.active_parameters + 29_399_294_336 - words.parameters - idle


def counts(data: dict[str, Any]) -> int:
    beside = sum(vision_parts(config_of(data)).values())
    return built(data).parameters + beside


def test_a_picture_encoder_of_no_known_name_or_place_is_refused() -> None:
    for data, said in (
        ({"model_type": "gemma3n", "text_config": THIRD, "vision_config": {"architecture": "resnet50"}}, "resnet50"),
        ({"model_type": "lfm2_vl", "text_config": LFM2, "vision_config": {"num_patches": 255}}, "no square"),
        ({"model_type": "gemma3n", "text_config": THIRD, "audio_config": {"sscp_conv_channel_size": [1]}}, "channels"),
        ({"model_type": "pi0", "vlm_config": {"text_config": GEMMA}}, "not known"),  # an expert of actions beside
    ):
        with pytest.raises(InputError, match=said):
            counts(data)


GROK = {"model_type": "git", "architectures": ["Grok1ForCausalLM"], "hidden_size": 8192, "intermediate_size": 32768,
        "moe_intermediate_size": 16384, "num_hidden_layers": 64, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 131072, "num_local_experts": 8, "num_experts_per_tok": 2, "residual_moe": True,
        "tie_word_embeddings": False}  # fmt: skip


def test_grok_is_known_by_its_class() -> None:
    grok = built(GROK)
    assert grok.parameters == 269_515_497_472  # of grok-2's checkpoint
    assert round(grok.active_parameters / 1e9) == 115
    first = {"model_type": "grok-1", **{key: GROK[key] for key in ("head_dim", "vocab_size", "num_key_value_heads")},
             "hidden_size": 6144, "intermediate_size": 32768, "num_hidden_layers": 64, "num_attention_heads": 48,
             "num_experts": 8, "num_experts_per_tok": 2}  # fmt: skip
    assert built(first).parameters == 315_684_820_992  # 316,490,127,360 where its table is stored twice
