"""Activation equations against each other and against hand counts of the stored tensors."""

from __future__ import annotations

import numpy as np
import pytest

from planner.equations import activations as act
from planner.equations import pipeline
from tests.published.equations.activations import embedding_dropout_bytes, final_norm_bytes, operator_recompute_bytes
from tests.published.equations.gpt_activations import (
    gpt_layer_bytes,
    gpt_layer_selective_bytes,
    gpt_layer_sequence_parallel_bytes,
    gpt_layer_tensor_parallel_bytes,
)
from tests.published.equations.pipeline import in_flight_1f1b, interleaved_memory_factor


def test_general_form_is_the_gpt_form_where_both_hold() -> None:
    s, b, h, a, t = 2048, 4, 6144, 64, 8
    general = act.layer_activation_bytes(s * b, h, a, a, h // a, 4 * h, 0, t, t, 1, 0)
    assert general == gpt_layer_selective_bytes(s, b, h, t)
    scores = act.attention_score_bytes(s, b, a, t)
    assert general + scores == pytest.approx(gpt_layer_sequence_parallel_bytes(s, b, h, a, t))


def test_tensor_parallel_form_without_splitting_is_the_plain_form() -> None:
    plain = gpt_layer_bytes(2048, 1, 12288, 96)
    assert gpt_layer_tensor_parallel_bytes(2048, 1, 12288, 96, 1) == plain
    assert gpt_layer_sequence_parallel_bytes(2048, 1, 12288, 96, 1) == plain


def test_hand_count_of_a_gated_layer() -> None:
    """Llama 3 8B, one token: tensors of a layer in bytes, counted one by one."""
    h, a, g, e, f = 4096, 32, 8, 128, 14336
    norms = 2 * (2 * h) + 2 * (2 * h)
    attention = 2 * a * e + 2 * (2 * g * e) + 2 * a * e + 4 * a
    mlp = 2 * f + 2 * f + 2 * f
    assert act.layer_activation_bytes(1, h, a, g, e, f) == norms + attention + mlp


def test_founding_gap_to_the_gpt_form() -> None:
    """24 bytes per (s b h) against 34 with flash and 112 with eager attention."""
    shape = {"sequence_length": 1000, "micro_batch": 32, "hidden_size": 1600}
    unit = 32 * 1000 * 1600
    rule = 2 * act.founding_activation_values(1600, 32, 1000, 1) / unit
    assert rule == 24
    assert gpt_layer_selective_bytes(**shape, tensor_parallel=1) / unit / rule == pytest.approx(1.4, abs=0.02)
    assert gpt_layer_bytes(**shape, heads=25) / unit / rule == pytest.approx(4.67, abs=0.01)


@pytest.mark.parametrize(("p", "v", "m"), [(8, 3, 64), (35, 3, 280), (4, 2, 16)])
def test_interleaved_first_stage_is_the_published_factor(p: int, v: int, m: int) -> None:
    assert pipeline.in_flight_micro_batches(m, p, v) == pytest.approx(p * interleaved_memory_factor(p, v))


def test_in_flight_of_schedules() -> None:
    stages = np.arange(4)
    assert in_flight_1f1b(8, 4, stages).tolist() == [4, 3, 2, 1]
    assert pipeline.in_flight_micro_batches(8, 4, 1, stages).tolist() == [4, 3, 2, 1]
    assert pipeline.in_flight_micro_batches(2, 4, 1, 0) == 2
    assert pipeline.in_flight_micro_batches(6, 1, 1, 0) == 1
    assert pipeline.in_flight_zero_bubble(100, 8, 1) == 15


def test_block_recompute_has_its_least_at_the_root() -> None:
    blocks = np.array([1.0, 2, 4, 8])
    sizes = act.full_recompute_bytes(16.0, 1.0, 16, blocks)
    assert sizes.tolist() == [257, 130, 68, 40]


def test_moe_imbalance_touches_routed_tokens_only() -> None:
    balanced, uneven = (act.moe_activation_bytes(10, 64, 8, 2, 32, 16, 1, i) for i in (1.0, 1.5))
    assert uneven - balanced == pytest.approx(10 * 0.5 * 2 * (6 * 32 + 4 * 64))


def test_fp8_keeps_norms_and_products_narrow_and_the_attention_output_twice() -> None:
    h, f, ae = 4096, 14336, 4096
    wide = 2 * (2 * h) + 2 * f + 2 * ae  # two norm outputs, the MLP's product, the attention output
    narrow = 2 * h + f + (2 + 1) * ae
    assert act.fp8_saved_bytes(1, h, ae, f) == wide - narrow


def test_operator_recompute_and_edges() -> None:
    assert operator_recompute_bytes(100) == pytest.approx(60)
    assert act.logits_bytes(16384, 128256, 1, 12) / 2**30 == pytest.approx(23.5, abs=0.1)
    assert embedding_dropout_bytes(10, 64, 4, 2) == 10 * 64 * 4 / 2
    assert final_norm_bytes(10, 64, 2) == 4 * 10 * 64 / 2
    assert act.mla_activation_bytes(1, 2, 3, 5, 7, 11, 1) == 2 * 2 * (2 * 3 + 2 * 5) + 2 * (7 + 11)
