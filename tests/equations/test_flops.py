"""FLOP equations: against the closed forms of two papers, limits and identities; and whole models."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.architecture.load import coarse_model, list_presets, load_model
from planner.architecture.model import training_flop_per_token
from planner.equations import flops
from tests.published.equations.closed_forms import gpt_full_recompute_flop, gpt_model_flop, gpt_selective_recompute_flop
from tests.published.equations.flops import (
    causal_attention_training_flop_per_token,
    full_attention_training_flop_per_token,
    lora_training_flop_per_token,
)

GPT = [(22e9, 48, 64, 6144), (175e9, 96, 96, 12288), (530e9, 105, 128, 20480), (1e12, 128, 160, 25600)]


def gpt_parts(layers: int, heads: int, hidden: int) -> tuple[float, float, float]:
    """Layer weights, head weights and full attention FLOPs of a GPT with s = 2048 and V = 51200."""
    core = layers * flops.attention_forward_flop_per_token(heads, hidden / heads, hidden / heads, 2048)
    return 12 * layers * hidden**2, 51200 * hidden, float(core)


@pytest.mark.parametrize(("_", "layers", "heads", "hidden"), GPT)
def test_full_recompute_is_narayanan_eq_3(_: float, layers: int, heads: int, hidden: int) -> None:
    weights, head, core = gpt_parts(layers, heads, hidden)
    closed = gpt_full_recompute_flop(1, 2048, layers, hidden, 51200) / 2048
    assert flops.hardware_flop_per_token(weights, head, core, 2) == pytest.approx(float(closed), rel=1e-12)


@pytest.mark.parametrize(("_", "layers", "heads", "hidden"), GPT)
def test_no_recompute_is_korthikanti_eq_7(_: float, layers: int, heads: int, hidden: int) -> None:
    weights, head, core = gpt_parts(layers, heads, hidden)
    closed = gpt_model_flop(1, 2048, layers, hidden, 51200) / 2048
    assert flops.model_flop_per_token(weights + head, core) == pytest.approx(float(closed), rel=1e-12)
    assert flops.hardware_flop_per_token(weights, head, core, 0) == pytest.approx(float(closed), rel=1e-12)


@pytest.mark.parametrize(("_", "layers", "heads", "hidden"), GPT)
def test_selective_recompute_adds_a_third_of_what_eq_8_adds(_: float, layers: int, heads: int, hidden: int) -> None:
    """The text of Korthikanti et al. repeats 4 B s^2 h FLOPs a layer; their eq. 8 adds 12."""
    weights, head, core = gpt_parts(layers, heads, hidden)
    model = gpt_model_flop(1, 2048, layers, hidden, 51200) / 2048
    printed = gpt_selective_recompute_flop(1, 2048, layers, hidden, 51200) / 2048 - model
    ours = flops.hardware_flop_per_token(weights, head, core, 1) - model
    assert 3 * ours == pytest.approx(float(printed), rel=1e-9)


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_attended_tokens_is_the_mean_over_positions(sequence: int, window: int) -> None:
    seen = float(flops.attended_tokens(sequence, window))
    # Exact mean of min(i, w) over i = 1..s is at most half a token above the continuous one.
    width = min(window, sequence) or sequence
    exact = (width * (width + 1) / 2 + (sequence - width) * width) / sequence
    assert 0 <= exact - seen <= 0.5
    assert seen <= sequence / 2


def test_window_has_the_right_limits() -> None:
    assert flops.attended_tokens(10**9, 4096) == pytest.approx(4096, rel=1e-5)
    assert flops.attended_tokens(4096, 4096) == flops.attended_tokens(4096) == 2048
    np.testing.assert_array_equal(flops.attended_tokens(4096, np.array([0, 4096, 8192])), 2048)


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 256), st.integers(1, 10**6))
def test_causal_is_half_of_full(layers: int, heads: int, size: int, sequence: int) -> None:
    full = full_attention_training_flop_per_token(layers, heads, size, sequence)
    assert full == pytest.approx(12.0 * layers * heads * size * sequence, rel=1e-12)
    assert causal_attention_training_flop_per_token(layers, heads, size, sequence) == full / 2


def test_attention_share_at_8192() -> None:
    """s / (6 h) at s = 8192, h = 4096: +33 % in full, +17 % causal, over 72 L h^2 of a GPT layer."""
    linear = flops.linear_training_flop_per_token(12 * 4096**2)
    assert full_attention_training_flop_per_token(1, 32, 128, 8192) / linear == pytest.approx(0.33, abs=0.005)
    assert causal_attention_training_flop_per_token(1, 32, 128, 8192) / linear == pytest.approx(0.17, abs=0.005)


def test_adapters_cost_less_than_full_training_and_more_than_a_forward() -> None:
    frozen, adapters, core = 8e9, 42e6, 1e9
    lora = lora_training_flop_per_token(frozen, adapters, core)
    assert flops.linear_forward_flop_per_token(frozen) < lora < flops.model_flop_per_token(frozen + adapters, core)
    assert lora_training_flop_per_token(0, adapters) == flops.linear_training_flop_per_token(adapters)


@pytest.mark.parametrize("name", list_presets())
def test_whole_models(name: str) -> None:
    model = load_model(name)
    short, long = training_flop_per_token(model, 2048), training_flop_per_token(model, 32768)
    assert 6 * model.matmul_parameters < short < long
    assert training_flop_per_token(model, 2048, causal=False) > short
    np.testing.assert_allclose(training_flop_per_token(model, np.array([2048, 32768])), [short, long], rtol=1e-12)


def test_windows_save_attention() -> None:
    """Gemma 3 27B at 131,072 tokens: 52 of 62 layers see about 1,024 tokens, the others half the sequence."""
    model = load_model("gemma-3-27b")
    core = training_flop_per_token(model, 131072) - 6 * model.matmul_parameters
    per_token = 12 * 32 * 128  # 12 a e of one layer and attended token
    windowed = 1024 - 1024**2 / (2 * 131072)
    assert core == pytest.approx(per_token * (52 * windowed + 10 * 65536), rel=1e-12)


def test_coarse_model_costs_six_n() -> None:
    assert training_flop_per_token(coarse_model(8e9), 8192) == 48e9
