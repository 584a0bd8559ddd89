"""Parameter equations: vectors worked by hand, identities, and the closed form against the sum of parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.architecture.load import load_model
from planner.equations import parameters as par
from tests.published.equations.closed_forms import gpt_parameters

sizes = st.integers(min_value=1, max_value=20_000)
counts = st.integers(min_value=1, max_value=256)


def test_llama_3_70b_from_its_parts() -> None:
    attention = par.attention_parameters(8192, 64, 8, 128)
    layer = attention + par.mlp_parameters(8192, 28672) + par.norm_parameters(8192, 2)
    tables = par.embedding_parameters(128256, 8192, tables=2)
    assert 80 * layer + tables + par.norm_parameters(8192, 1) == 70_553_706_496


def test_deepseek_v3_attention_and_total() -> None:
    attention = par.mla_parameters(7168, 128, 1536, 512, 128, 64, 128)
    assert attention / 1e6 == pytest.approx(187.1, abs=0.05)
    assert load_model("deepseek-v3").parameters / 1e9 == pytest.approx(671.0, abs=0.05)


def test_mpt_7b_closed_form_and_final_norm() -> None:
    """13 h biases and norms a layer, tied, learned positions: eq. 2 of Narayanan et al. plus the final norm."""
    assert gpt_parameters(32, 4096, 50368, 2048) + 2 * 4096 == 6_658_859_008


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 300_000), st.integers(1, 10_000))
def test_closed_form_is_the_sum_of_parts(layers: int, heads: int, vocab: int, positions: int) -> None:
    hidden = 64 * heads
    attention = par.attention_parameters(hidden, heads, heads, 64, qkv_bias=1, output_bias=1)
    mlp = par.mlp_parameters(hidden, 4 * hidden, gated=0, bias=1)
    layer = attention + mlp + par.norm_parameters(hidden, 2, bias=1)
    total = layers * layer + par.embedding_parameters(vocab, hidden, positions=positions)
    assert gpt_parameters(layers, hidden, vocab, positions) == pytest.approx(float(total), rel=1e-12)


@given(sizes, counts, counts, sizes)
def test_fewer_kv_heads_take_fewer_parameters(hidden: int, heads: int, shared: int, size: int) -> None:
    kv_heads = min(heads, shared)
    full = par.attention_parameters(hidden, heads, heads, size)
    assert full - par.attention_parameters(hidden, heads, kv_heads, size) == 2 * hidden * size * (heads - kv_heads)


@given(sizes, sizes, counts)
def test_experts_are_so_many_mlps(hidden: int, width: int, experts: int) -> None:
    one = par.mlp_parameters(hidden, width, gated=1, bias=1)
    assert par.expert_parameters(hidden, width, experts, gated=1, bias=1) == experts * one
    assert par.router_parameters(hidden, experts, 1) == experts * (hidden + 1)


def test_mla_without_query_compression() -> None:
    """DeepSeek-V2-Lite: no query latent."""
    weights = par.mla_parameters(2048, 16, 0, 512, 128, 64, 128)
    assert weights == 2048 * 16 * 192 + 2048 * 576 + 512 * 16 * 256 + 16 * 128 * 2048
    both = par.mla_parameters(np.array([2048, 2048]), 16, np.array([0, 256]), 512, 128, 64, 128)
    assert both[0] == weights
    assert both[1] != weights


@given(st.integers(1, 128), sizes, counts, counts, st.integers(1, 256), sizes)
def test_adapters_of_a_layer_are_those_of_its_matrices(
    rank: int, hidden: int, heads: int, kv_heads: int, size: int, width: int
) -> None:
    matrices = [
        (hidden, heads * size),
        (hidden, kv_heads * size),
        (hidden, kv_heads * size),
        (heads * size, hidden),
        (hidden, width),
        (hidden, width),
        (width, hidden),
    ]
    total = sum(par.lora_parameters(rank, a, b) for a, b in matrices)
    assert par.lora_layer_parameters(rank, hidden, heads, kv_heads, size, width) == total
