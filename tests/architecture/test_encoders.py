"""Encoders and what stands beside the text model: totals of published checkpoints, exactly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner.architecture.config import Config
from planner.architecture.encoders import is_encoder, whole_parts
from planner.architecture.from_config import build
from planner.architecture.vision import vision_parts
from planner.errors import InputError

BERT = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 768, "num_hidden_layers": 12,
        "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512,
        "type_vocab_size": 2}  # fmt: skip
ROBERTA = {**BERT, "model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"], "hidden_size": 1024,
           "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 250002,
           "max_position_embeddings": 8194, "type_vocab_size": 1}  # fmt: skip
DISTIL = {"model_type": "distilbert", "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072,
          "vocab_size": 30522, "max_position_embeddings": 512}  # fmt: skip
T5 = {"model_type": "t5", "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_heads": 8, "num_layers": 6,
      "vocab_size": 32128}  # fmt: skip
WHISPER = {"model_type": "whisper", "d_model": 1280, "vocab_size": 51865, "num_mel_bins": 80,
           **{f"{side}_layers": 32 for side in ("encoder", "decoder")},
           **{f"{side}_attention_heads": 20 for side in ("encoder", "decoder")},
           **{f"{side}_ffn_dim": 5120 for side in ("encoder", "decoder")}}  # fmt: skip


def config_of(data: dict[str, Any]) -> Config:
    return Config(data, "config.json", json.dumps(data))


# Looked up on 2026-11-25: `params` of the presets of keras-team/keras-hub (bert, distil_bert, whisper; t5 in an earlier
# version of it), and mteb's n_parameters of a checkpoint tuned from bge-m3, whose own entry says 568,000,000
# (embeddings-benchmark/mteb@1f4e077: mteb/models/model_implementations/bge_models.py)
@pytest.mark.parametrize(
    ("data", "published"),
    [
        pytest.param(BERT, 109_482_240, id="bert-base-uncased"),
        pytest.param(ROBERTA, 567_754_752, id="bge-m3"),
        pytest.param(DISTIL, 66_362_880, id="distilbert-base-uncased"),
        pytest.param(T5, 60_506_624, id="t5-small"),
        pytest.param(WHISPER, 1_543_304_960, id="whisper-large-v2"),
    ],
)
def test_encoders_have_the_parameters_of_their_checkpoints(data: dict[str, Any], published: int) -> None:
    config = config_of(data)
    assert is_encoder(config.model_type)
    assert sum(whole_parts(config).values()) == published


V3 = {"model_type": "deberta-v2", "type_vocab_size": 0, "relative_attention": True, "position_buckets": 256,
      "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p", "position_biased_input": False,
      "max_relative_positions": -1}  # fmt: skip
LITE = {**BERT, "model_type": "albert", "architectures": ["AlbertModel"], "vocab_size": 30000, "embedding_size": 128,
        "num_hidden_groups": 1, "inner_group_num": 1}  # fmt: skip
SMALL = {**BERT, "model_type": "electra", "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024,
         "embedding_size": 128}  # fmt: skip
MP = {**BERT, "model_type": "mpnet", "architectures": ["MPNetModel"], "vocab_size": 30527,
      "max_position_embeddings": 514}  # fmt: skip
NOMIC = {"model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_inner": 3072, "n_layer": 12, "n_positions": 8192,
         "vocab_size": 30528, "type_vocab_size": 2, "qkv_proj_bias": False, "mlp_fc1_bias": False,
         "mlp_fc2_bias": False, "activation_function": "swiglu", "rotary_emb_fraction": 1.0}  # fmt: skip
GTE = {**BERT, "model_type": "new", "architectures": ["NewModel"], "vocab_size": 250048, "type_vocab_size": 1}
JINA = {**BERT, "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048,
        "vocab_size": 30528, "max_position_embeddings": 8192, "position_embedding_type": "alibi",
        "feed_forward_type": "geglu"}  # fmt: skip
RATES = {**BERT, **V3, "architectures": ["DebertaV2ForSequenceClassification"]}


# Looked up on 2026-11-27, but for ELECTRA (with its head, from memory). DeBERTa 3, ALBERT: `params` of the presets of
# keras-hub; others: the hub's counts of all-mpnet-base-v2, nomic-embed-text-v1.5, arctic-embed-m-v2.0, Prompt Guard 2
# and jina-embeddings-v2-small as public lists of models repeat them. Heads of few classes, stored positions left out.
@pytest.mark.parametrize(
    ("data", "published"),
    [
        pytest.param({**BERT, **V3, "vocab_size": 128100, "architectures": []}, 183_831_552, id="deberta-v3-base"),
        pytest.param({**RATES, "vocab_size": 251000}, 278_810_882 - 2 * 769, id="prompt-guard-2-86m"),
        pytest.param(LITE, 11_683_584, id="albert-base"),
        pytest.param({**LITE, "hidden_size": 4096, "num_attention_heads": 64, "intermediate_size": 16384}, 222_595_584,
                     id="albert-xxl"),
        pytest.param({**SMALL, "architectures": ["ElectraForPreTraining"]}, 13_548_800, id="electra-small"),
        pytest.param(MP, 109_486_978 - 514, id="all-mpnet-base-v2"),
        pytest.param(NOMIC, 136_731_648, id="nomic-embed-text-v1.5"),
        pytest.param(GTE, 305_368_320, id="arctic-embed-m-v2.0"),
        pytest.param(JINA, 32_690_688, id="jina-embeddings-v2-small"),
    ],
)  # fmt: skip
def test_further_encoders_have_the_parameters_of_their_checkpoints(data: dict[str, Any], published: int) -> None:
    assert sum(whole_parts(config_of(data)).values()) == published


@pytest.mark.parametrize(
    "data",
    [{**ROBERTA, "lora_adaptations": ["retrieval"]}, {**BERT, "feed_forward_type": "other"},
     {**NOMIC, "num_experts": 8}, {**BERT, "position_embedding_type": "of tomorrow"},
     {**GTE, "position_embedding_type": "absolute"}],
)  # fmt: skip
def test_what_the_code_of_an_encoder_adds_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="not counted"):
        whole_parts(config_of(data))


def test_parts_of_an_encoder_that_its_config_asks_for() -> None:
    """Distances and keys of their own in each layer, a convolution, a table narrower than the layers."""
    plain = {**BERT, **V3, "architectures": []}
    whole = sum(whole_parts(config_of(plain)).values())

    def more(**keys: Any) -> int:
        return sum(whole_parts(config_of({**plain, **keys})).values()) - whole

    square = 768 * 768 + 768
    assert more(share_att_key=False) == 12 * 2 * square
    assert more(conv_kernel_size=3) == 3 * 768 * 768 + 768 + 2 * 768
    assert more(embedding_size=128, type_vocab_size=2) == 30522 * (128 - 768) + 128 * 768 + 2 * 128
    assert more(position_biased_input=True) == 512 * 768
    far = {**BERT, "position_embedding_type": "relative_key_query"}
    assert sum(whole_parts(config_of(far)).values()) == 109_482_240 + 12 * 1023 * 64


GEMMA = {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 5376,
         "num_hidden_layers": 62, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128,
         "intermediate_size": 21504, "vocab_size": 262208},
         "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "patch_size": 14,
                           "num_attention_heads": 16, "num_hidden_layers": 27, "vision_use_head": False}}  # fmt: skip
# gemma-3-27b: tests/published; Qwen3-VL and Qwen2.5-VL: parameters that the hub counts in their checkpoints, as
# listings of models repeat them (looked up on 2026-11-25)
QWEN3 = {"model_type": "qwen3_vl_moe", "text_config": {"model_type": "qwen3_vl_moe_text", "hidden_size": 2048,
         "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
         "moe_intermediate_size": 768, "intermediate_size": 6144, "num_experts": 128, "num_experts_per_tok": 8,
         "vocab_size": 151936},
         "vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16,
                           "deepstack_visual_indexes": [8, 16, 24], "num_position_embeddings": 2304,
                           "out_hidden_size": 2048, "patch_size": 16, "spatial_merge_size": 2}}  # fmt: skip
QWEN25 = {"model_type": "qwen2_5_vl", "text_config": {"model_type": "qwen2_5_vl_text", "hidden_size": 3584,
          "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
          "vocab_size": 152064},
          "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
                            "out_hidden_size": 3584, "patch_size": 14}}  # fmt: skip


@pytest.mark.parametrize(
    ("data", "published"),
    [
        pytest.param(GEMMA, 27_432_406_640, id="gemma-3-27b"),
        pytest.param(QWEN3, 31_070_754_032, id="qwen3-vl-30b-a3b"),
        pytest.param(QWEN25, 8_292_166_656, id="qwen2.5-vl-7b"),
    ],
)
def test_text_and_pictures_together_are_the_checkpoint(data: dict[str, Any], published: int) -> None:
    config = config_of(data)
    text = build(config, name="m", source="s").parameters
    assert text + sum(vision_parts(config).values()) == published


def test_width_of_qwen_1_is_of_two_matrices() -> None:
    data = {"model_type": "qwen", "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64,
            "intermediate_size": 49152, "vocab_size": 152064, "seq_length": 8192}  # fmt: skip
    # half of 144,575,840,256 bytes, which the index of the shards of Qwen-72B gives
    assert build(config_of(data), name="m", source="s").parameters == 72_287_920_128


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "molmo9"}, "is not counted"),
        ({"vision_config": {**GEMMA["vision_config"], "hidden_size": 1153}}, "not a multiple"),  # type: ignore[dict-item]
        ({"vision_config": {**GEMMA["vision_config"], "vision_use_head": True}}, "head of SigLIP"),  # type: ignore[dict-item]
        ({"vision_config": None, "mm_vision_tower": "clip"}, "has no shape"),
    ],
)
def test_an_encoder_of_pictures_that_is_not_counted_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        vision_parts(config_of({**GEMMA, **change}))


def test_a_decoder_alone_has_no_encoder() -> None:
    config = config_of(GEMMA["text_config"])  # type: ignore[arg-type]
    assert vision_parts(config) == {}
    assert not is_encoder(config.model_type)


def test_the_text_of_qwen_3_vl_is_qwen_3() -> None:
    text = {**QWEN3["text_config"], "intermediate_size": 6144}  # type: ignore[dict-item]
    counts = {
        name: build(config_of({**text, "model_type": name}), name="m", source="s").parameters
        for name in ("qwen3", "qwen3_vl_text", "qwen3_moe", "qwen3_vl_moe_text")
    }
    assert counts["qwen3"] == counts["qwen3_vl_text"] < counts["qwen3_moe"] == counts["qwen3_vl_moe_text"]


def inside(kind: str, hidden: int, inner: int, heads: int, pairs: int, layers: int, words: int, **more: Any) -> Any:
    return {"model_type": kind, "hidden_size": hidden, "intermediate_size": inner, "num_attention_heads": heads,
            "num_key_value_heads": pairs, "num_hidden_layers": layers, "vocab_size": words, **more}  # fmt: skip


def tower(hidden: int, inner: int, heads: int, layers: int, pixels: int, patch: int = 14, **more: Any) -> Any:
    return {"hidden_size": hidden, "intermediate_size": inner, "num_attention_heads": heads, "image_size": pixels,
            "num_hidden_layers": layers, "patch_size": patch, **more}  # fmt: skip


CLIP, SIGLIP = tower(1024, 4096, 16, 24, 336, model_type="clip_vision_model"), tower(1152, 4304, 16, 27, 384)
VIT = tower(1024, 4096, 16, 24, 448, norm_type="layer_norm", qkv_bias=True, qk_normalization=False)
VIT_6B = tower(3200, 12800, 25, 45, 448, norm_type="rms_norm", qkv_bias=False, qk_normalization=True)
INTERN_7B = inside("internlm2", 4096, 14336, 32, 8, 32, 92553, bias=False)
INTERN_20B = inside("internlm2", 6144, 16384, 48, 8, 48, 92553, bias=False)
LOOKING = {"model_type": "mllama", "text_config": inside("mllama_text_model", 4096, 14336, 32, 8, 40, 128256,
                                                         cross_attention_layers=[3, 8, 13, 18, 23, 28, 33, 38]),
           "vision_config": {"hidden_size": 1280, "intermediate_size": 5120, "attention_heads": 16, "image_size": 560,
                             "num_hidden_layers": 32, "num_global_layers": 8, "patch_size": 14, "max_num_tiles": 4,
                             "vision_output_dim": 7680}}  # fmt: skip
SMOL = inside("llama", 576, 1536, 9, 3, 30, 49280)


HF_VIT = tower(1024, 4096, 16, 24, 448, norm_type="layer_norm", attention_bias=True, use_qk_norm=False) | {
    "patch_size": [14, 14], "image_size": [448, 448]}  # fmt: skip
GLM_VIT = {"depth": 24, "hidden_size": 1536, "num_heads": 12, "out_hidden_size": 4096, "patch_size": 14,
           "image_size": 336, "spatial_merge_size": 2, "temporal_patch_size": 2}  # fmt: skip
PIXTRAL = tower(1024, 4096, 16, 24, 1540, model_type="pixtral", head_dim=64)


# Elements that the hub counts in the checkpoints. Looked up on 2026-11-27 as others repeat them: InternVL 2.5 and
# Llama 3.2 Vision in a list of sizes of models (floschne/gimmick), Ministral 3, LLaVA 1.5, PaliGemma, Qwen2.5-VL 3B and
# SmolVLM's kin in tests and tables of others; LLaVA 1.6, InternVL 3, GLM and SmolVLM 2.2B from memory, before anything
# was counted; OneVision from memory, too, which its config met once the vocabulary was Qwen2's own
@pytest.mark.parametrize(
    ("data", "published"),
    [
        pytest.param({"model_type": "llava", "vision_config": CLIP, "text_config":
                      {"model_type": "llama", "vocab_size": 32064}}, 7_063_427_072, id="llava-1.5-7b"),
        pytest.param({"model_type": "llava_next", "vision_config": CLIP, "text_config":
                      {"model_type": "mistral", "vocab_size": 32064}}, 7_566_747_648, id="llava-v1.6-mistral-7b"),
        pytest.param({"model_type": "internvl_chat", "vision_config": VIT, "llm_config": INTERN_7B,
                      "downsample_ratio": 0.5}, 8_075_365_376, id="internvl2.5-8b"),
        pytest.param({"model_type": "internvl_chat", "vision_config": VIT_6B, "llm_config": INTERN_20B,
                      "downsample_ratio": 0.5}, 25_514_186_112, id="internvl2.5-26b"),
        pytest.param({"model_type": "paligemma", "text_config": inside("gemma", 2048, 16384, 8, 1, 18, 257216),
                      "vision_config": {key: value for key, value in SIGLIP.items() if key != "image_size"} | {
                          "vision_use_head": False}}, 2_923_466_480, id="paligemma-3b"),
        pytest.param({"model_type": "idefics3", "scale_factor": 3, "vision_config": SIGLIP, "text_config":
                      inside("llama", 2048, 8192, 32, 32, 24, 49155)}, 2_246_272_880, id="smolvlm-2.2b"),
        pytest.param({"model_type": "idefics3", "scale_factor": 4, "text_config": SMOL, "vision_config": {
            "hidden_size": 768, "num_attention_heads": 12, "image_size": 512, "patch_size": 16}}, 256_484_928,
            id="smolvlm-256m"),
        pytest.param(LOOKING, 10_670_220_835, id="llama-3.2-11b-vision"),
        pytest.param({"model_type": "internvl", "vision_config": HF_VIT, "text_config":
                      inside("qwen2", 3584, 18944, 28, 4, 28, 151674), "downsample_ratio": 0.5}, 7_944_373_760,
                     id="internvl3-8b-hf"),
        pytest.param({"model_type": "glm4v", "vision_config": GLM_VIT | {"intermediate_size": 13696}, "text_config":
                      inside("glm4v_text", 4096, 13696, 32, 2, 40, 151552)}, 10_292_777_472, id="glm-4.1v-9b"),
        pytest.param({"model_type": "glm4v_moe", "vision_config": GLM_VIT | {"intermediate_size": 10944}, "text_config":
                      inside("glm4v_moe_text", 4096, 10944, 96, 8, 46, 151552, head_dim=128, n_routed_experts=128,
                             n_shared_experts=1, num_experts_per_tok=8, moe_intermediate_size=1408,
                             first_k_dense_replace=1)}, 107_710_933_120, id="glm-4.5v"),
        pytest.param({"model_type": "mistral3", "tie_word_embeddings": True, "vision_config": PIXTRAL, "text_config":
                      inside("ministral3", 3072, 9216, 32, 8, 26, 131072, head_dim=128)}, 3_849_090_048,
                     id="ministral-3-3b"),
        pytest.param({"model_type": "qwen2_5_vl", "tie_word_embeddings": True, "vision_config": QWEN25["vision_config"]
                      | {"out_hidden_size": 2048}} | inside("qwen2_5_vl", 2048, 11008, 16, 2, 36, 151936),
                     3_754_622_976, id="qwen2.5-vl-3b"),
        pytest.param({"model_type": "llava_onevision", "vision_config": tower(
            1152, 4304, 16, 26, 384, model_type="siglip_vision_model", vision_use_head=False), "text_config":
            inside("qwen2", 3584, 18944, 28, 4, 28, 152064)}, 8_030_348_832, id="llava-onevision-7b"),
    ],
)  # fmt: skip
def test_further_models_that_see_are_their_checkpoints(data: dict[str, Any], published: int) -> None:
    config = config_of(data)
    assert build(config, name="m", source="s").parameters + sum(vision_parts(config).values()) == published


def test_pixtral_in_llava_is_that_of_mistral_3_projected_twice() -> None:
    """Pixtral 12B: what its file leaves out its class says; two matrices with biases where Mistral 3 merges patches."""
    text = inside("mistral", 5120, 14336, 32, 8, 40, 131072, head_dim=128)
    data = {"model_type": "llava", "text_config": text, "vision_config": {"model_type": "pixtral", "patch_size": 16}}
    parts = vision_parts(config_of(data))
    assert parts.pop("projector") == 1024 * 5120 + 5120 + 5120 * 5120 + 5120
    merged = {"model_type": "mistral3", "text_config": text, "vision_config": PIXTRAL | {"patch_size": 16}}
    assert sum(parts.values()) == sum(each for part, each in vision_parts(config_of(merged)).items() if part in parts)
    assert build(config_of(data), name="m", source="s").parameters == 12_247_782_400  # Mistral Nemo


def test_the_text_of_llama_that_sees_is_llama() -> None:
    """Layers that look at pictures keep no cache of words."""
    text = build(config_of(LOOKING), name="m", source="s")
    assert (text.layer_count, text.parameters) == (32, 8_030_261_248)


MODERN = {"model_type": "modernbert", "hidden_size": 768, "intermediate_size": 1152, "num_attention_heads": 12,
          "num_hidden_layers": 22, "vocab_size": 50368}  # fmt: skip


@pytest.mark.parametrize(
    ("made_for", "published"), [("ModernBertForMaskedLM", 149_655_232), ("ModernBertModel", 149_014_272)]
)
def test_modernbert_is_counted(made_for: str, published: int) -> None:
    """The checkpoint as a list of models repeats it, looked up on 2026-11-27; without its head by 640,960 less."""
    assert sum(whole_parts(config_of({**MODERN, "architectures": [made_for]})).values()) == published


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"model_type": "llava", "text_config": {"model_type": "llama"}, "vision_config": {"model_type": "siglip2"}},
         "'siglip2' is not counted"),
        ({"model_type": "internvl", "text_config": INTERN_7B, "vision_config": HF_VIT | {"patch_size": [14, 16]}},
         "whole number"),
        ({"model_type": "internvl_chat", "llm_config": INTERN_7B, "vision_config": VIT, "downsample_ratio": 0.3},
         "downsample_ratio"),
        ({"model_type": "internvl_chat", "llm_config": INTERN_7B, "vision_config": VIT, "downsample_ratio": [1]},
         "downsample_ratio"),
    ],
)  # fmt: skip
def test_what_of_an_encoder_is_not_known_is_refused(data: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        vision_parts(config_of(data))


def test_an_encoder_that_is_to_be_planned_is_told_as_one() -> None:
    """`plan read` counts BERT, and a scenario said that it is not known."""
    with pytest.raises(InputError, match="'bert' is or has an encoder, and decoders alone are planned") as error:
        build(Config({"model_type": "bert", "hidden_size": 1024}, "my models/config.json", ""), name="bert", source="")
    assert error.value.problems[0].hint == "plan read 'my models/config.json' counts its parameters"
