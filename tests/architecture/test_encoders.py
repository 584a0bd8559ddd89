"""Encoders and what stands beside the text model: totals of published checkpoints, exactly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner.architecture.build import build
from planner.architecture.config import Config
from planner.architecture.encoders import is_encoder, vision_parts, whole_parts
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
