"""Models that hear, and those that speak: counts of the classes of transformers 5.24.0 (2026-11-30)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.architecture.load import config_card
from planner.architecture.vision import vision_parts
from planner.errors import InputError
from planner.reading.kinds import Reading, read
from planner.reading.source import Source
from tests.architecture.test_hybrids import built, config_of
from tests.architecture.test_newest import sizes

EARS = {"d_model": 1280, "encoder_layers": 32, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120,
        "num_mel_bins": 128, "max_source_positions": 1500}  # fmt: skip
QWEN2_AUDIO = {  # its text leaves out what the class says by itself
    "model_type": "qwen2_audio", "audio_config": EARS,
    "text_config": {"model_type": "qwen2", "intermediate_size": 11008, "vocab_size": 156032}}  # fmt: skip
VOXTRAL = {
    "model_type": "voxtral",
    "audio_config": {"hidden_size": 1280, "num_hidden_layers": 32, "num_attention_heads": 20, "intermediate_size": 5120,
                     "num_mel_bins": 128, "max_source_positions": 1500},
    "text_config": sizes("llama", 3072, 30, 32, 8, 8192, 131072, head_dim=128)}  # fmt: skip
FLAMINGO = {"model_type": "audioflamingo3", "audio_config": VOXTRAL["audio_config"], "projector_bias": True,
            "text_config": sizes("qwen2", 3584, 28, 28, 4, 18944, 151672)}  # fmt: skip
OMNI = {
    "model_type": "qwen2_5_omni", "architectures": ["Qwen2_5OmniModel"],
    "talker_config": {"hidden_size": 896, "num_hidden_layers": 24}, "token2wav_config": {"dit_config": {}},
    "thinker_config": {
        "model_type": "qwen2_5_omni_thinker", "audio_config": {**EARS, "output_dim": 3584},
        "text_config": sizes("qwen2_5_omni_text", 3584, 28, 28, 4, 18944, 152064),
        "vision_config": {"hidden_size": 1280, "depth": 32, "num_heads": 16, "intermediate_size": 3420,
                          "patch_size": 14, "temporal_patch_size": 2, "spatial_merge_size": 2,
                          "out_hidden_size": 3584}}}  # fmt: skip
OMNI_3 = {
    "model_type": "qwen3_omni_moe", "architectures": ["Qwen3OmniMoeForConditionalGeneration"],
    "talker_config": {}, "code2wav_config": {"hidden_size": 1024},
    "thinker_config": {
        "model_type": "qwen3_omni_moe_thinker",
        "audio_config": {**EARS, "output_dim": 2048, "downsample_hidden_size": 480},
        "text_config": sizes("qwen3_omni_moe_text", 2048, 48, 32, 4, 768, 152064, head_dim=128, num_experts=128,
                             num_experts_per_tok=8, moe_intermediate_size=768),
        "vision_config": {"hidden_size": 1152, "depth": 27, "num_heads": 16, "intermediate_size": 4304,
                          "patch_size": 16, "temporal_patch_size": 2, "spatial_merge_size": 2,
                          "num_position_embeddings": 2304, "out_hidden_size": 2048,
                          "deepstack_visual_indexes": [8, 16, 24]}}}  # fmt: skip

SPEECH = {
    "model_type": "granite_speech", "downsample_rate": 5, "window_size": 15,
    "text_config": sizes("granite", 4096, 40, 32, 8, 12800, 49160, tie_word_embeddings=True),
    "encoder_config": {"conv_expansion_factor": 2, "conv_kernel_size": 15, "dim_head": 128, "feedforward_mult": 4,
                       "hidden_dim": 1024, "input_dim": 160, "max_pos_emb": 512, "num_heads": 8, "num_layers": 16,
                       "output_dim": 256},
    "projector_config": {"cross_attention_frequency": 1, "encoder_hidden_size": 1024, "hidden_size": 1024,
                         "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 2}}  # fmt: skip
PHI_4 = {**sizes("phi4mm", 3072, 32, 24, 8, 8192, 200064, tie_word_embeddings=True), "embd_layer": {},
         "vision_lora": {"r": 256}, "speech_lora": {"r": 320}}  # fmt: skip

OF_CLASSES: dict[str, tuple[int, dict[str, Any]]] = {
    "qwen2-audio-7b": (8_397_094_912, QWEN2_AUDIO),
    "voxtral-mini-3b": (4_676_271_104, VOXTRAL),
    "audio-flamingo-3": (8_267_215_360, FLAMINGO),
    "qwen2.5-omni-7b": (8_931_813_888, OMNI),  # its thinker
    "qwen3-omni-30b-a3b": (31_719_205_488, OMNI_3),
    "granite-speech-3.3-8b": (8_648_645_888, SPEECH),
    "phi-4-multimodal": (5_574_476_224, PHI_4),  # its page: 5,574,460,384
}


def looked_at(data: dict[str, Any], folder: Path) -> Reading:
    path = folder / "config.json"
    path.write_text(json.dumps(data))
    return read(Source(path))


@pytest.mark.parametrize(("counted", "data"), OF_CLASSES.values(), ids=list(OF_CLASSES))
def test_every_parameter_is_counted(counted: int, data: dict[str, Any]) -> None:
    config = config_of(data)
    assert built(data).parameters + sum(vision_parts_after(config, data).values()) == counted


def vision_parts_after(config: Any, data: dict[str, Any]) -> dict[str, int]:
    config.data = {"hidden_size": built(data).hidden_size, **config.data}
    return vision_parts(config)


def test_what_hears_and_what_sees_stand_apart(tmp_path: Path) -> None:
    reading = looked_at(OMNI, tmp_path)
    shown = {each.label: each.value for each in reading.look}
    assert shown["parameters of the sound encoder"] == 639_647_232
    assert shown["parameters of the picture encoder"] == 676_550_144
    assert any("the sound encoder is 1.28 GB more" in note for note in reading.notes)
    alone = {each.label for each in looked_at(VOXTRAL, tmp_path).look}
    assert "parameters of the sound encoder" in alone
    assert "parameters of the picture encoder" not in alone


def test_what_speaks_is_told_and_not_counted(tmp_path: Path) -> None:
    (note,) = [note for note in looked_at(OMNI, tmp_path).notes if "makes sound" in note]
    assert "talker_config, token2wav_config" in note
    assert "neither counted nor planned" in note
    assert not any("makes sound" in note for note in looked_at(VOXTRAL, tmp_path).notes)


@pytest.mark.parametrize("data", [QWEN2_AUDIO, OMNI_3], ids=["qwen2-audio", "qwen3-omni"])
def test_the_text_of_what_hears_is_planned(data: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(data))
    path = tmp_path / "mine.yaml"
    path.write_text("schema: plan/v1\nname: mine\nserving:\n  - {name: chat, model: {config: m.json}, qpm: 6, "
                    "input_tokens: 1000, output_tokens: 100}\nhardware: {allow: [h200]}\n")  # fmt: skip
    assert planner.solve(path).status == "optimal"


def test_the_card_of_an_omni_model_is_that_of_its_thinker(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(OMNI))
    assert config_card(str(tmp_path)).config["num_hidden_layers"] == 28


def test_a_mistake_of_the_thinker_has_its_line(tmp_path: Path) -> None:
    wrong = json.loads(json.dumps(OMNI))
    wrong["thinker_config"]["text_config"]["num_hidden_layers"] = -1
    path = tmp_path / "config.json"
    path.write_text(json.dumps(wrong, indent=1))
    with pytest.raises(InputError) as caught:
        read(Source(path))
    (place,) = caught.value.problems[0].places
    assert '"num_hidden_layers": -1' in path.read_text().splitlines()[(place.line or 0) - 1]


def test_ears_that_are_not_counted_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the encoder of sound of 'granite_speech' is not counted"):
        looked_at({**VOXTRAL, "model_type": "granite_speech"}, tmp_path)
