"""Mamba-1, what is built of it, and RecurrentGemma: counts of the classes of transformers 5.24.0 (2026-11-30)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.architecture.model import core_forward_flop_per_token, state_bytes
from planner.errors import InputError
from tests.architecture.test_hybrids import built

MAMBA = {"model_type": "mamba", "hidden_size": 2560, "num_hidden_layers": 64, "vocab_size": 50280, "state_size": 16,
         "conv_kernel": 4, "expand": 2, "time_step_rank": 160, "use_bias": False, "use_conv_bias": True}  # fmt: skip
FALCON = {**MAMBA, "model_type": "falcon_mamba", "hidden_size": 4096, "intermediate_size": 8192, "vocab_size": 65024,
          "expand": 16, "time_step_rank": 256, "tie_word_embeddings": False}  # fmt: skip
JAMBA = {"model_type": "jamba", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "vocab_size": 65536, "num_attention_heads": 32, "num_key_value_heads": 8, "num_experts": 16,
         "num_experts_per_tok": 2, "attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2,
         "expert_layer_offset": 1, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 256,
         "tie_word_embeddings": False, "max_position_embeddings": 262144}  # fmt: skip
GRIFFIN = {"model_type": "recurrent_gemma", "hidden_size": 2560, "intermediate_size": 15360, "num_hidden_layers": 26,
           "vocab_size": 256000, "num_attention_heads": 10, "num_key_value_heads": 1, "lru_width": 2560,
           "conv1d_width": 4, "attention_window_size": 2048, "attention_bias": False, "head_dim": 256,
           "block_types": ["recurrent", "recurrent", "attention"]}  # fmt: skip
SMALL = {"hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1024}

OF_CLASSES: dict[str, tuple[int, dict[str, Any]]] = {
    "mamba-2.8b": (2_768_345_600, MAMBA),
    "mamba with biases": (28_323_072, {**MAMBA, "hidden_size": 256, "num_hidden_layers": 4, "use_bias": True,
                                       "use_conv_bias": False, "state_size": 8, "conv_kernel": 3, "expand": 3,
                                       "time_step_rank": 20, "tie_word_embeddings": False}),
    "falcon-mamba-7b": (7_272_665_088, FALCON),
    "jamba-v0.1": (51_570_323_328, JAMBA),
    "jamba without experts": (118_840_128, {**JAMBA, **SMALL, "num_experts": 1, "num_hidden_layers": 16,
                                            "mamba_d_state": 32, "mamba_dt_rank": "auto", "mamba_proj_bias": True}),
    "jamba in other periods": (74_888_938, {**JAMBA, **SMALL, "num_experts": 4, "num_hidden_layers": 9,
                                            "attn_layer_period": 3, "attn_layer_offset": 1, "expert_layer_period": 3,
                                            "expert_layer_offset": 0, "mamba_dt_rank": 7,
                                            "tie_word_embeddings": True}),
    "recurrentgemma-2b": (2_682_862_080, GRIFFIN),
    "recurrentgemma wider inside": (13_585_152, {**GRIFFIN, **SMALL, "num_attention_heads": 4, "num_key_value_heads": 2,
                                                 "lru_width": 640, "num_hidden_layers": 7, "attention_bias": True,
                                                 "vocab_size": 1000, "head_dim": 128}),
}  # fmt: skip


@pytest.mark.parametrize(("counted", "data"), OF_CLASSES.values(), ids=list(OF_CLASSES))
def test_every_parameter_is_counted(counted: int, data: dict[str, Any]) -> None:
    assert built(data).parameters == counted


def test_a_rank_that_is_worked_out_is_a_sixteenth_of_the_width() -> None:
    assert built(MAMBA, time_step_rank="auto") == built(MAMBA)


def test_a_scan_keeps_a_state_of_each_channel_and_the_last_tokens() -> None:
    (layer,) = built(MAMBA).layers
    assert state_bytes(layer) == 5120 * 16 * 4 + 5120 * 3 * 2
    assert core_forward_flop_per_token(layer, 1000) == core_forward_flop_per_token(layer, 9) == 9 * 5120 * 16


def test_jamba_attends_in_one_layer_of_eight_and_routes_in_every_other() -> None:
    kinds = {(group.attention, group.experts): group.count for group in built(JAMBA).layers}
    assert kinds == {("gqa", 0): 4, ("linear", 0): 12, ("linear", 16): 16}
    assert built(JAMBA).active_parameters == pytest.approx(12e9, rel=0.02)  # of its paper


def test_recurrent_gemma_keeps_a_value_a_channel_and_looks_back_in_every_third_layer() -> None:
    kinds = {(group.attention, group.window_tokens): group for group in built(GRIFFIN).layers}
    assert {kind: group.count for kind, group in kinds.items()} == {("linear", 0): 18, ("gqa", 2048): 8}
    assert state_bytes(kinds["linear", 0]) == 2560 * 4 + 2560 * 3 * 2
    for wrong in ([], "recurrent", ["recurrent", "mamba"]):
        with pytest.raises(InputError, match="must be a list of recurrent and attention"):
            built(GRIFFIN, block_types=wrong)
    with pytest.raises(InputError, match="'lru_width' 2561 is not a multiple of 10 heads"):
        built(GRIFFIN, lru_width=2561)


def test_an_offset_beyond_its_period_is_refused() -> None:
    with pytest.raises(InputError, match="'attn_layer_offset' 8 is not below its period of 8"):
        built(JAMBA, attn_layer_offset=8)


@pytest.mark.parametrize("data", [FALCON, JAMBA, GRIFFIN], ids=["falcon-mamba", "jamba", "recurrentgemma"])
def test_fleets_of_scans_are_planned(data: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(data))
    path = tmp_path / "mine.yaml"
    path.write_text("schema: plan/v1\nname: mine\nserving:\n  - {name: chat, model: {config: m.json}, qpm: 6, "
                    "input_tokens: 1000, output_tokens: 100}\nhardware: {allow: [h200]}\n")  # fmt: skip
    assert planner.solve(path).status == "optimal"
