"""Layouts by hand: edge cases of batches, splits, counts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import api
from planner.api import load_model
from planner.architecture.load import coarse_model, list_presets
from planner.architecture.model import Architecture
from planner.candidates.counts import EVERY_COUNT_TO, count_grid
from planner.candidates.layouts import (
    LayoutRules,
    enumerate_layouts,
    finer_layouts,
    nearest_multiple,
    tensor_splits,
)
from planner.candidates.training_question import asked_batches
from planner.estimate.layout import Layout
from tests.tiers import sampled
from tests.worlds import job, scenario


def rules(batch: float = 64.0, sequence: int = 4096, domain: int = 8) -> LayoutRules:
    return LayoutRules(
        sequence_length=sequence,
        batches=(batch,),
        batch_range=(0.9 * batch, 1.1 * batch),
        sharding=(0, 1, 2, 3),
        recompute=(0, 1, 2),
        domain_devices=domain,
    )


def found(layout: Layout, **wanted: int) -> int:
    """How many layouts have these values."""
    mask = np.ones(np.shape(layout.devices), dtype=bool)
    for name, value in wanted.items():
        mask &= np.asarray(getattr(layout, name)) == value
    return int(mask.sum())


# ---- batches


@pytest.mark.parametrize(
    ("asked", "step", "low", "high", "expected"),
    [
        (64, 16, 57.6, 70.4, 64),  # a multiple already
        (61, 8, 54.9, 67.1, 64),  # 64 is nearer than 56
        (60, 8, 54.0, 66.0, 64),  # half way between 56 and 64: to the even multiple
        (68, 8, 61.2, 74.8, 64),  # half way between 64 and 72: to the even multiple
        (52, 8, 46.8, 57.2, 48),  # half way between 48 and 56: to the even multiple
        (61, 16, 54.9, 60.0, 0),  # 64 lies outside, 48 too
        (61, 4, 54.9, 60.0, 60),  # the nearest, 61, is above the range: the largest inside
        (61, 4, 62.5, 99.0, 64),  # the nearest is below the range: the smallest inside
        (1, 1, 0.9, 1.1, 1),
        (1, 2, 0.9, 1.1, 0),  # a batch of one cannot be shared by two
        (0.4, 1, 0.36, 0.44, 0),  # less than one sequence is no batch
        (10, 10, 10, 10, 10),  # both ends are inside
        (30, 10, 29.9999999999, 30.0000000001, 30),
        (1e9, 7, 0.9e9, 1.1e9, 1_000_000_001),  # 7 × 142,857,143
    ],
)
def test_nearest_multiple(asked: float, step: int, low: float, high: float, expected: int) -> None:
    result = nearest_multiple(np.array([float(asked)]), np.array([step]), (low, high))
    assert result.tolist() == [expected]


@given(
    asked=st.floats(min_value=1, max_value=1e7),
    step=st.integers(min_value=1, max_value=10**5),
    down=st.floats(min_value=0.01, max_value=1.0),
    up=st.floats(min_value=1.0, max_value=10.0),
)
def test_nearest_multiple_is_nearest(asked: float, step: int, down: float, up: float) -> None:
    low, high = asked * down, asked * up
    value = int(nearest_multiple(np.array([asked]), np.array([step]), (low, high))[0])
    if value:
        assert value % step == 0
        assert low * (1 - 1e-6) <= value <= high * (1 + 1e-6)
        for other in (value - step, value + step):
            if low <= other <= high and other > 0:
                assert abs(Fraction(value) - Fraction(asked)) <= abs(Fraction(other) - Fraction(asked))
    else:
        first = -(-int(np.ceil(low * (1 + 1e-6))) // step) * step  # the first multiple that is safely inside
        assert first > high * (1 - 1e-6)


def batches_of(**changes: object) -> tuple[tuple[float, ...], tuple[float, float]]:
    return asked_batches(scenario([job(**changes)]).training[0], coarse_model(1e9), 1024)


def test_one_batch_may_move_by_a_tenth() -> None:
    assert batches_of(global_batch="64 sequences") == ((64.0,), pytest.approx((57.6, 70.4)))


def test_tokens_become_sequences() -> None:
    assert batches_of(global_batch="1M tokens")[0] == (pytest.approx(1e6 / 1024),)


def test_a_range_is_tried_at_its_ends_and_at_doublings() -> None:
    tries, allowed = batches_of(global_batch={"min": "16 sequences", "max": "100 sequences"})
    assert tries == (16.0, 32.0, 64.0, 100.0)
    assert allowed == (16.0, 100.0)


@pytest.mark.parametrize(
    ("tokens", "extra"),
    [("51200 tokens", 50.0), ("1024 tokens", None), ("10M tokens", None)],  # inside, below and above the range
)
def test_a_range_is_tried_at_the_critical_batch(tokens: str, extra: float | None) -> None:
    batch = {"min": "16 sequences", "max": "100 sequences"}
    tries, _ = batches_of(global_batch=batch, critical_batch=tokens.split()[0] + " tokens")
    assert tries == tuple(sorted({16.0, 32.0, 64.0, 100.0} | ({extra} if extra else set())))


def test_a_batch_is_at_least_one_sequence() -> None:
    assert batches_of(global_batch="100 tokens")[0] == (1.0,)


# ---- splits


def test_a_model_of_unknown_shape_is_not_split_inside_layers() -> None:
    arch = coarse_model(8e9)
    assert tensor_splits(arch, 64) == [1]
    layout = enumerate_layouts(arch, [8], rules())
    assert found(layout) > 0
    for name in ("tp", "pp", "vpp", "cp", "ep"):
        assert set(np.asarray(getattr(layout, name))) == {1}


@pytest.mark.parametrize(
    ("preset", "domain", "expected"),
    [
        ("llama-3.1-8b", 8, [1, 2, 4, 8]),  # 32 heads, 8 KV heads, width 14,336
        ("llama-3.1-8b", 16, [1, 2, 4, 8, 16]),  # KV heads are replicated
        ("llama-3.1-8b", 1, [1]),
        ("llama-3.1-8b", 6, [1, 2, 4]),  # a domain that is no power of two
        ("gpt2-xl", 8, [1]),  # 25 heads
        ("gpt2", 8, [1, 2, 4]),  # 12 heads
        ("qwen2.5-1.5b", 8, [1, 2, 4]),  # 12 heads, 2 KV heads
        ("phi-3-medium", 8, [1, 2]),  # 40 heads but 10 KV heads: 4 divides neither way
        ("mixtral-8x7b", 8, [1, 2, 4, 8]),
    ],
)
def test_tensor_splits_divide_heads_and_widths(preset: str, domain: int, expected: list[int]) -> None:
    assert tensor_splits(load_model(preset), domain) == expected


@pytest.mark.parametrize("preset", list_presets())
def test_every_preset_has_layouts_on_one_node(preset: str) -> None:
    layout = enumerate_layouts(load_model(preset), [8], rules(64, 2048))
    assert found(layout, dp=8, tp=1, pp=1) > 0
    assert np.array_equal(layout.dp * layout.tp * layout.pp * layout.cp, layout.devices)


def test_a_context_rank_keeps_4096_tokens() -> None:
    arch = load_model("llama-3.1-8b")
    for sequence, largest in ((4096, 1), (8192, 2), (16384, 4), (131072, 8)):
        layout = enumerate_layouts(arch, [8], rules(64, sequence))
        assert max(layout.cp) == largest, sequence


def test_stages_need_layers_and_chunks_need_equal_ones() -> None:
    layout = enumerate_layouts(load_model("gpt2"), [1, 5, 8, 12, 13], rules())  # 12 layers
    assert max(layout.pp) == 12
    assert found(layout, pp=5) > 0  # uneven stages are legal,
    assert found(layout, pp=5, vpp=2) == 0  # uneven chunks are not
    assert found(layout, pp=2, vpp=2) > 0  # 4 chunks of 3 layers
    assert found(layout, pp=2, vpp=8) == 0  # 16 chunks, 12 layers
    assert found(layout, pp=1, vpp=2) == 0
    assert found(layout, devices=13, pp=13) == 0


def test_embedding_and_loss_may_count_as_a_layer_each() -> None:
    """Llama 3 405B: 126 layers on 16 stages of 8 chunks, as it was trained (Dubey et al. 2024, sec. 3.3.2)."""
    arch = load_model("llama-3.1-405b")
    layout = enumerate_layouts(arch, [1024], rules(128, 8192))
    assert found(layout, tp=8, pp=16, vpp=8) > 0  # 128 chunks
    assert found(layout, tp=8, pp=16, vpp=2) > 0
    assert found(layout, pp=8, vpp=2) > 0
    assert found(layout, pp=4, vpp=2) > 0
    assert found(layout, tp=8, pp=32, vpp=8) == 0  # 256


def test_chunks_want_micro_batches_in_multiples_of_stages() -> None:
    layout = enumerate_layouts(load_model("gpt2"), [4], rules(62))
    passes = np.asarray(layout.micro_batches)
    assert (passes[np.asarray(layout.vpp) > 1] % np.asarray(layout.pp)[np.asarray(layout.vpp) > 1] == 0).all()
    assert found(layout, pp=4, vpp=2) == 0  # neither 12 layers nor 14 make eight chunks
    # 62 sequences on two ranks are 31 passes: the batch moves to whole rounds of the two stages
    assert found(layout, dp=2, pp=2, vpp=2, micro_batch=1, global_batch=62) == 0
    assert found(layout, dp=2, pp=2, vpp=1, micro_batch=1, global_batch=62) > 0
    assert found(layout, dp=2, pp=2, vpp=2, micro_batch=1, global_batch=64) > 0
    assert (passes[np.asarray(layout.vpp) == 1] % np.asarray(layout.pp)[np.asarray(layout.vpp) == 1] != 0).any()


def test_experts_spread_over_the_ranks_of_a_stage() -> None:
    arch = load_model("mixtral-8x7b")  # 8 experts
    assert set(enumerate_layouts(arch, [1], rules()).ep) == {1}
    assert set(enumerate_layouts(arch, [8], rules()).ep) == {1, 2, 4, 8}
    assert set(enumerate_layouts(arch, [16], rules()).ep) == {1, 2, 4, 8}  # never more ranks than experts
    twelve = enumerate_layouts(arch, [12], rules())
    assert found(twelve, pp=1, ep=8) == 0  # 12 ranks do not form groups of 8
    assert found(twelve, pp=1, ep=4) > 0
    assert set(enumerate_layouts(load_model("llama-3.1-8b"), [8], rules()).ep) == {1}


# ---- counts


def test_counts_are_every_one_then_thirty_seconds() -> None:
    grid = list(count_grid(200))
    assert grid[:EVERY_COUNT_TO] == list(range(1, EVERY_COUNT_TO + 1))
    assert grid[32:] == [*range(33, 64), *range(64, 128, 2), *range(128, 201, 4)]


@pytest.mark.parametrize("largest", [0, 1, 31, 32, 33, 64, 65, 1000, 16384])
def test_counts_stay_below_the_largest_and_close_to_each_other(largest: int) -> None:
    grid = list(count_grid(largest))
    assert grid == sorted(set(grid))
    assert all(1 <= count <= largest for count in grid)
    assert all(after <= before * (1 + 1 / EVERY_COUNT_TO) + 1 for before, after in itertools.pairwise(grid))
    assert (not grid) == (largest < 1)
    powers = [2**k for k in range(15) if 2**k <= largest]
    assert set(powers) <= set(grid)


def test_large_counts_do_not_overflow() -> None:
    devices = 16384
    layout = enumerate_layouts(load_model("llama-3.1-405b"), [devices, 15872], rules(16384, 8192, 8))
    product = np.asarray(layout.dp, dtype=object) * layout.tp * layout.pp * layout.cp
    assert set(product) == {devices, 15872}
    assert min(layout.dp) >= 1
    assert max(layout.global_batch) <= 16384 * 1.1
    huge = enumerate_layouts(coarse_model(1e12), [10**6], rules(1e9))
    assert np.asarray(huge.global_batch, dtype=object).max() <= 1.1e9
    assert (np.asarray(huge.global_batch) % (np.asarray(huge.dp) * np.asarray(huge.micro_batch)) == 0).all()


def test_no_layout_is_an_empty_layout() -> None:
    layout = enumerate_layouts(coarse_model(1e9), [64], rules(1.0))  # 64 ranks cannot share one sequence
    assert np.shape(layout.devices) == (0,)
    assert layout.micro_batches.shape == (0,)


# ---- between the sizes that are tried


def near(arch: Architecture, asked: LayoutRules, **wanted: int) -> Layout:
    layout = enumerate_layouts(arch, [8], asked)
    mask = np.ones(np.shape(layout.devices), dtype=bool)
    for name, value in wanted.items():
        mask &= np.asarray(getattr(layout, name)) == value
    return layout.select(mask)


def test_between_two_micro_batches_lie_the_whole_numbers() -> None:
    arch, asked = load_model("llama-3.1-8b"), rules(batch=960)
    base = near(arch, asked, tp=1, pp=1, cp=1, micro_batch=4, sharding=3)
    finer = finer_layouts(arch, base, asked)
    assert set(np.unique(finer.micro_batch).tolist()) == {3, 5, 6, 7}
    assert set(np.unique(finer.recompute).tolist()) == {0, 1, 2}
    assert set(np.unique(finer.sharding).tolist()) == {3}  # that of the layout beside which they lie
    assert (np.asarray(finer.global_batch) % (np.asarray(finer.dp) * finer.micro_batch) == 0).all()


def test_where_no_power_of_two_makes_up_the_batch_all_numbers_are_looked_at() -> None:
    """Five ranks and 280 sequences: 8 makes 280, neither 16, 32 nor 64 comes within a tenth, 56 makes 280 at once."""
    arch, asked = load_model("gpt2-xl"), rules(batch=280, sequence=1024)
    layout = enumerate_layouts(arch, [5], asked)
    base = layout.select((np.asarray(layout.micro_batch) == 8) & (np.asarray(layout.sharding) == 3))
    sizes = set(np.unique(finer_layouts(arch, base, asked).micro_batch).tolist())
    assert 56 in sizes
    assert 4 not in sizes  # tried already


def test_virtual_stages_are_all_that_make_equal_chunks() -> None:
    arch, asked = load_model("llama-3.1-70b"), rules(batch=960)  # 80 layers, 82 with embedding and loss
    assert set(np.unique(near(arch, asked, tp=1, pp=8, micro_batch=1).vpp).tolist()) == {1, 2, 5, 10}
    assert set(np.unique(near(arch, asked, tp=2, pp=4, micro_batch=1).vpp).tolist()) == {1, 2, 4, 5, 10, 20}
    assert set(np.unique(near(arch, asked, tp=1, pp=2, micro_batch=1).vpp).tolist()) == {1, 2, 4, 5, 8, 10, 20, 40, 41}
    assert set(np.unique(near(arch, asked, tp=8, pp=1, micro_batch=1).vpp).tolist()) == {1}
    fixed = replace(asked, pinned=(("vpp", (2, 3, 5)),))
    assert set(np.unique(near(arch, fixed, tp=1, pp=8, micro_batch=1).vpp).tolist()) == {2, 5}


def test_layers_that_make_no_equal_chunks_make_nearly_equal_ones() -> None:
    """61 layers: 3, 7, 9 and 21 stages have equal chunks with embedding and loss, powers of two have none."""
    arch, asked = load_model("deepseek-v3"), rules(batch=960)
    found = {}
    for pp in (4, 5, 7, 8, 16):
        layout = enumerate_layouts(arch, [8 * pp], replace(asked, pinned=(("pp", (pp,)),)))
        found[pp] = set(np.unique(layout.vpp).tolist())
    assert found == {4: {1, 2, 4, 8}, 5: {1}, 7: {1, 3, 9}, 8: {1, 2, 4}, 16: {1, 2}}
    fixed = replace(asked, pinned=(("pp", (12,)), ("vpp", (2, 5))))  # 24 chunks leave eleven places empty, 60 as many
    assert not np.size(enumerate_layouts(arch, [12], fixed).devices)


def test_what_is_fixed_has_nothing_beside_it() -> None:
    arch, asked = load_model("llama-3.1-8b"), rules(batch=960)
    base = near(arch, asked, tp=1, pp=1, cp=1, micro_batch=4)
    assert not np.size(finer_layouts(arch, base, replace(asked, pinned=(("micro_batch", (4,)),))).devices)


def test_tensor_ranks_may_be_any_divisor_of_a_switched_domain() -> None:
    arch = load_model("gpt3-175b")  # 96 heads
    assert tensor_splits(arch, 72) == [1, 2, 4, 8, 16, 32]
    assert tensor_splits(arch, 72, (8, 72)) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]


NINE = ("phi-3-medium", "falcon-7b", "qwen3-30b-a3b", "gpt2-xl", "llama-3.1-8b", "llama-3.1-70b", "qwen2.5-14b",
        "mistral-7b", "gpt-neox-20b")  # fmt: skip


@pytest.mark.parametrize("model", sampled(NINE, 2))
def test_a_search_over_all_whole_numbers_is_hardly_cheaper(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = scenario([job(model=model, tokens="50B", deadline="30 days")], hardware={}, prefer="cheapest")
    found = api.solve(asked).document["summary"]["cost_usd"]
    monkeypatch.setattr("planner.candidates.training_fit._finer", lambda *_: (None, {}))
    coarse = api.solve(asked).document["summary"]["cost_usd"]
    choices = LayoutRules.choices

    def every(asked: LayoutRules, name: str, otherwise: Sequence[int]) -> list[int]:
        return choices(asked, name, range(1, 2 * max(otherwise)) if name == "micro_batch" else otherwise)

    monkeypatch.setattr(LayoutRules, "choices", every)
    best = api.solve(asked).document["summary"]["cost_usd"]
    assert best <= coarse
    assert found <= 1.003 * best
