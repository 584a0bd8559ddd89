"""Hybrids and families with heads or blocks of their own: published counts, and what no family may misread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.architecture.encoders import whole_parts
from planner.architecture.vision import vision_parts
from planner.errors import InputError
from planner.reading.kinds import read
from planner.reading.source import Source
from tests.architecture.test_hybrids import built, config_of


def sizes(family: str, hidden: int, layers: int, heads: int, pairs: int, inner: int, vocab: int,
          **more: Any) -> dict[str, Any]:  # fmt: skip
    """A config by the names that most publishers use."""
    named = {"model_type": family, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
             "num_key_value_heads": pairs, "intermediate_size": inner, "vocab_size": vocab}  # fmt: skip
    return {**named, "tie_word_embeddings": False, **more}


LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
LFM2 = {"conv_L_cache": 3, "conv_bias": False, "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256}
CHATGLM = {"model_type": "chatglm", "hidden_size": 4096, "num_attention_heads": 32, "kv_channels": 128,
           "multi_query_attention": True, "multi_query_group_num": 2, "ffn_hidden_size": 13696, "add_qkv_bias": True,
           "add_bias_linear": False, "seq_length": 8192, "rmsnorm": True}  # fmt: skip
SSM = {"mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_d_head": 64, "mamba_d_state": 128}

# Looked up on 2026-11-30: totals of safetensors as the hub shows them, but for Step 3.5 Flash, MiMo-V2-Flash, LongCat
# and Bamba (rounded, of their cards), for Step3 and Ring-linear (recalled, rounded: their layers are those of vLLM's
# code, vllm/model_executor/models/step3_text.py and bailing_moe_linear.py) and for InternLM and Orion (their papers).
PUBLISHED: dict[str, tuple[float, dict[str, Any]]] = {
    "dbrx": (131_596_523_520, {
        "model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352,
        "tie_word_embeddings": False, "attn_config": {"kv_n_heads": 8},
        "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}}),
    "lfm2-1.2b": (1_170_340_608, sizes("lfm2", 2048, 16, 32, 8, 12288, 65536, **LFM2, tie_word_embeddings=None,
                                       full_attn_idxs=[2, 5, 8, 10, 12, 14])),
    "lfm2-8b-a1b": (8_339_929_856, sizes(
        "lfm2_moe", 2048, 24, 32, 8, 7168, 65536, **LFM2, moe_intermediate_size=1792, num_dense_layers=2,
        tie_word_embeddings=None, num_experts=32, num_experts_per_tok=4,
        layer_types=["full_attention" if i in (2, 6, 10, 14, 18, 21) else "conv" for i in range(24)])),
    "kimi-linear-48b-a3b": (49_122_681_728, sizes(
        "kimi_linear", 2304, 27, 32, 32, 9216, 163840, **LATENT, moe_intermediate_size=1024, num_experts=256,
        num_experts_per_token=8, num_shared_experts=1, first_k_dense_replace=1, q_lora_rank=None,
        linear_attn_config={"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim": 128, "num_heads": 32,
                            "short_conv_kernel_size": 4})),
    "step3": (316e9, {
        **sizes("step3_text", 7168, 61, 64, 1, 18432, 128815, head_dim=256, share_q_dim=2048, num_attention_groups=1,
                moe_num_experts=48, moe_top_k=3, moe_intermediate_size=5120, share_expert_dim=5120,
                moe_layers_enum=",".join(map(str, range(4, 60)))), "num_key_value_heads": None}),
    "ring-mini-linear-2.0": (16.4e9, sizes(
        "bailing_moe_linear", 2048, 20, 16, 4, 5120, 157184, head_dim=128, moe_intermediate_size=512, num_experts=256,
        num_experts_per_tok=8, num_shared_experts=1, first_k_dense_replace=1, layer_group_size=5, use_qk_norm=True,
        moe_router_enable_expert_bias=True)),
    "step-3.5-flash": (196.81e9, {
        **sizes("step3p5", 4096, 45, 64, 8, 11264, 128896, head_dim=128, moe_num_experts=288, moe_top_k=8,
                moe_intermediate_size=1280, share_expert_dim=1280, sliding_window=512,
                moe_layers_enum=",".join(map(str, range(3, 45))),
                layer_types=["full_attention", *["sliding_attention"] * 3] * 12, num_attention_groups=8,
                attention_other_setting={"num_attention_heads": 96, "num_attention_groups": 8, "head_dim": 128}),
        "num_key_value_heads": None}),
    "mimo-v2-flash": (309e9, sizes(
        "mimo_v2_flash", 4096, 48, 64, 4, 16384, 152576, head_dim=192, v_head_dim=128, swa_num_attention_heads=64,
        swa_num_key_value_heads=8, swa_head_dim=192, swa_v_head_dim=128, sliding_window=128, n_routed_experts=256,
        n_shared_experts=None, num_experts_per_tok=8, moe_intermediate_size=2048, moe_layer_freq=[0] + [1] * 47,
        hybrid_layer_pattern=[0, 1, 1, 1, 1, *[0, 1, 1, 1, 1, 1] * 7, 0])),
    "minimax-text-01": (456_089_655_296, sizes(
        "minimax_text_01", 6144, 80, 64, 8, 9216, 200064, head_dim=128, num_local_experts=32, num_experts_per_tok=2,
        attn_type_list=[0, 0, 0, 0, 0, 0, 0, 1] * 10)),
    "longcat-flash": (560e9, {
        "model_type": "longcat_flash", "hidden_size": 6144, "num_layers": 28, "num_attention_heads": 64, **LATENT,
        "q_lora_rank": 1536, "ffn_hidden_size": 12288, "expert_ffn_hidden_size": 2048, "n_routed_experts": 512,
        "zero_expert_num": 256, "moe_topk": 12, "vocab_size": 131072}),
    "falcon-h1-0.5b": (521_411_104, sizes("falcon_h1", 1024, 36, 8, 2, 2048, 32784, **SSM, head_dim=64,
                                          mamba_d_ssm=1536, mamba_n_heads=24)),
    "bamba-9b": (9.78e9, sizes("bamba", 4096, 32, 32, 8, 14336, 128256, **SSM, mamba_n_heads=128,
                               attn_layer_indices=[9, 18, 27])),
    "chatglm3-6b": (6_243_584_000, {**CHATGLM, "num_layers": 28, "padded_vocab_size": 65024}),
    "glm-4-9b": (9_399_951_360, {**CHATGLM, "num_layers": 40, "padded_vocab_size": 151552}),
    "internlm-7b": (7.32e9, sizes("internlm", 4096, 32, 32, 32, 11008, 103168, bias=True)),
    "minicpm-2b": (2_724_880_896, sizes("minicpm", 2304, 40, 36, 36, 5760, 122753, tie_word_embeddings=None)),
    "minicpm3-4b": (4_073_875_968, sizes("minicpm3", 2560, 62, 40, 40, 6400, 73448, q_lora_rank=768, kv_lora_rank=256,
                                         qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64,
                                         tie_word_embeddings=None)),
    "gpt-neo-2.7b": (2_651_307_520, {"model_type": "gpt_neo", "hidden_size": 2560, "num_layers": 32, "num_heads": 20,
                                     "vocab_size": 50257, "max_position_embeddings": 2048}),
    "orion-14b": (14.5e9, sizes("orion", 5120, 40, 40, 40, 15360, 84608)),
}  # fmt: skip

# Of the classes of transformers 5.24.0 with the sizes that they have of themselves, counted on no device.
OF_CLASSES: dict[str, tuple[int, dict[str, Any]]] = {
    "afmoe": (19_232_600_000, sizes("afmoe", 2048, 32, 16, 16, 6144, 200192, moe_intermediate_size=1408, head_dim=128,
                                    num_dense_layers=1, num_experts=64, num_experts_per_tok=6, num_shared_experts=2,
                                    sliding_window=1024)),
    "bitnet": (2_741_155_840, sizes("bitnet", 2560, 30, 20, 5, 6912, 128256)),
    "cwm": (32_581_097_472, sizes("cwm", 6144, 64, 48, 8, 21504, 128256, head_dim=128, sliding_window=8192)),
    "exaone_moe": (28_550_639_616, sizes("exaone_moe", 4096, 32, 32, 32, 16384, 102400, moe_intermediate_size=1024,
                                         num_experts=64, num_experts_per_tok=8, num_shared_experts=1,
                                         first_k_dense_replace=1, sliding_window=4096)),
    "flex_olmo": (33_270_665_216, sizes("flex_olmo", 4096, 32, 32, 32, 11008, 100352, num_experts=7,
                                        num_experts_per_tok=5)),
    "hy_v3": (295_033_528_320, sizes("hy_v3", 4096, 80, 64, 8, 13312, 120832, head_dim=128, num_experts=192,
                                     num_experts_per_tok=8, num_shared_experts=1, moe_intermediate_size=1536,
                                     mlp_layer_types=["dense", *["sparse"] * 79])),
    "jais2": (8_090_401_280, sizes("jais2", 3328, 32, 26, 26, 26624, 150272, attention_bias=True, mlp_bias=True)),
    "mistral4": (118_972_826_624, sizes("mistral4", 4096, 36, 32, 32, 12288, 131072, moe_intermediate_size=2048,
                                        n_shared_experts=1, n_routed_experts=128, kv_lora_rank=256, q_lora_rank=1024,
                                        qk_rope_head_dim=64, qk_nope_head_dim=64, v_head_dim=128,
                                        num_experts_per_tok=4)),
    "olmo_hybrid": (7_430_870_688, sizes("olmo_hybrid", 3840, 32, 30, 30, 11008, 100352, linear_num_key_heads=30,
                                         linear_num_value_heads=30, linear_key_head_dim=96,
                                         linear_value_head_dim=192)),
    "solar_open": (102_651_793_408, sizes("solar_open", 4096, 48, 64, 8, 1, 196608, moe_intermediate_size=1280,
                                          n_shared_experts=1, n_routed_experts=128, head_dim=128,
                                          num_experts_per_tok=8)),
    "youtu": (1_961_560_064, sizes("youtu", 2048, 32, 16, 16, 6144, 128256, **LATENT, q_lora_rank=1536,
                                   tie_word_embeddings=True)),
}  # fmt: skip


@pytest.mark.parametrize(("published", "data"), [*PUBLISHED.values(), *OF_CLASSES.values()],
                         ids=[*PUBLISHED, *OF_CLASSES])  # fmt: skip
def test_counts_are_those_of_the_publishers(published: float, data: dict[str, Any]) -> None:
    assert built(data).parameters == pytest.approx(published, rel=0.0015)


def test_a_layer_without_attention_adds_its_width_to_the_one_before() -> None:
    block = {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}}
    without = {"attention": {"no_op": True}, "ffn": {"ffn_mult": 2.625, "no_op": False}}
    bare = {"attention": {"n_heads_in_group": 8}, "ffn": {"no_op": True}}
    data = sizes("nemotron-nas", 8192, 3, 64, 1, 1, 1000, block_configs=[block, without, bare])
    layers = built(data).layers
    assert [(group.kv_heads, group.mlp_width) for group in layers] == [(8, 28672 + 14336), (8, 0)]
    for parts, said in (([], "must tell the parts"), ([{"attention": {"n_heads_in_group": 4}}, bare], "differ between"),
                        ([{**bare, "ffn": {"replace_with_linear": True}}], "plain matrix")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            built(data, block_configs=parts)


def test_layers_with_a_window_have_heads_of_their_own() -> None:
    windows = {group.window_tokens: group for group in built(PUBLISHED["step-3.5-flash"][1]).layers if group.experts}
    assert {size: group.query_heads for size, group in windows.items()} == {0: 64, 512: 96}
    full = built(PUBLISHED["mimo-v2-flash"][1]).layers[0]
    assert (full.kv_heads, full.head_size, full.value_head_size) == (4, 192, 128)


def test_step3_keeps_one_head_of_keys_and_ring_linear_a_state_in_four_of_five_layers() -> None:
    (step,) = {(group.query_heads, group.kv_heads, group.head_size) for group in built(PUBLISHED["step3"][1]).layers}
    assert step == (64, 1, 256)
    kinds = {"gqa": 0, "linear": 0}
    for group in built(PUBLISHED["ring-mini-linear-2.0"][1]).layers:
        kinds[group.attention] += group.count
    assert kinds == {"gqa": 4, "linear": 16}


def test_a_token_of_longcat_visits_experts_that_do_something() -> None:
    assert built(PUBLISHED["longcat-flash"][1]).active_parameters == pytest.approx(27e9, rel=0.04)


@pytest.mark.parametrize("name", ["lfm2-1.2b", "kimi-linear-48b-a3b", "minimax-text-01", "falcon-h1-0.5b",
                                  "mimo-v2-flash", "step3", "ring-mini-linear-2.0"])  # fmt: skip
def test_further_hybrids_are_planned(name: str, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(PUBLISHED[name][1]))
    path = tmp_path / "mine.yaml"
    path.write_text("schema: plan/v1\nname: mine\nserving:\n  - {name: chat, model: {config: m.json}, qpm: 6, "
                    "input_tokens: 1000, output_tokens: 100}\nhardware: {allow: [h200]}\n")  # fmt: skip
    assert planner.solve(path).status == "optimal"


def test_distilbert_is_no_params_of_mistral(tmp_path: Path) -> None:
    data = {"model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"], "dim": 768, "n_layers": 6,
            "n_heads": 12, "hidden_dim": 3072, "vocab_size": 30522, "max_position_embeddings": 512}  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(data))
    assert {each.label: each.value for each in read(Source(path)).look}["parameters"] == 66_985_530


def test_words_of_an_encoder_may_go_out_by_a_matrix_of_their_own() -> None:
    data = {"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 768, "num_hidden_layers": 12,
            "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522,
            "max_position_embeddings": 512}  # fmt: skip
    assert sum(whole_parts(config_of(data)).values()) == 109_514_298
    assert sum(whole_parts(config_of(data, tie_word_embeddings=False)).values()) == 132_955_194


def test_nomic_as_transformers_has_it() -> None:
    data = {"model_type": "nomic_bert", "architectures": ["NomicBertForMaskedLM"], "hidden_size": 768,
            "vocab_size": 30528, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
            "max_position_embeddings": 2048, "type_vocab_size": 2}  # fmt: skip
    assert sum(whole_parts(config_of(data)).values()) == 137_354_304


@pytest.mark.parametrize(("version", "tied"), [("4.57.1", True), ("5.24.0", False)])
def test_whose_word_counts_for_tied_tables_depends_on_the_version(version: str, tied: bool) -> None:
    text = sizes("qwen3_vl_moe_text", 64, 2, 4, 4, 64, 1000, num_experts=4, num_experts_per_tok=2,
                 moe_intermediate_size=16, tie_word_embeddings=True)  # fmt: skip
    data = {"model_type": "qwen3_vl_moe", "text_config": text, "tie_word_embeddings": False,
            "transformers_version": version}  # fmt: skip
    assert built(data).tied_embeddings is tied


def test_layers_that_are_listed_as_dense_are_dense() -> None:
    data = sizes("deepseek_v3", 64, 3, 4, 4, 128, 1000, **LATENT, n_routed_experts=8, num_experts_per_tok=2,
                 moe_intermediate_size=16, mlp_layer_types=["dense", "sparse", "dense"])  # fmt: skip
    assert [(group.count, group.experts) for group in built(data).layers] == [(2, 0), (1, 8)]


def test_heads_of_qwen_3_with_experts_divide_its_width() -> None:
    data = sizes("qwen3_moe", 2048, 2, 32, 4, 6144, 1000, num_experts=8, num_experts_per_tok=2,
                 moe_intermediate_size=16)  # fmt: skip
    assert {group.head_size for group in built(data).layers} == {64}


def test_pictures_of_qwen_3_5_are_seen_as_by_qwen_3_vl() -> None:
    text = sizes("qwen3_5_text", 4096, 32, 16, 4, 12288, 248320)
    eye = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "patch_size": 16,
           "out_hidden_size": 3584, "num_position_embeddings": 2304}  # fmt: skip
    config = config_of({"model_type": "qwen3_5", "text_config": text, "vision_config": eye})
    assert built(config.outer).parameters + sum(vision_parts(config).values()) == 9_407_453_936  # of the class


def test_sizes_of_moonvit_go_by_two_names() -> None:
    eye = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 128}
    text = sizes("kimi_k2", 32, 1, 4, 4, 64, 100, **LATENT)
    parts = [vision_parts(config_of({"model_type": "kimi_k25", "text_config": text, "vision_config": one}))
             for one in (eye, {f"vt_{key}": value for key, value in eye.items()})]  # fmt: skip
    assert parts[0] == parts[1]
