"""Serving equations against oracles that are computed another way."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from planner.equations.kv_cache import (
    constant_state_bytes,
    kv_share_of_rank,
    mean_resident_tokens,
    resident_tokens,
)
from planner.equations.replicas import replicas_needed, share_of_time_within_spares
from planner.equations.serving import (
    causal_pair_count,
    distinct_experts,
    expert_imbalance,
    group_bandwidth_bytes_per_s,
    kernel_group_time_s,
    layer_kernel_units,
)
from planner.equations.serving_load import (
    loaded_time_per_output_token_s,
    offline_makespan_s,
    steady_state_requests_per_s,
)
from planner.equations.serving_memory import (
    GIB,
    activation_workspace_bytes,
    engine_overhead_bytes,
    free_fraction_kv_pool_bytes,
    kv_pool_bytes,
    largest_running_batch,
    whole_above,
    whole_below,
)
from tests.published.equations.replicas import erlang_c
from tests.published.equations.serving import decode_floor_s, knee_batch


@pytest.mark.parametrize(("batch", "touched"), [(1, 8), (16, 102), (64, 222), (128, 252)])
def test_experts_touched_of_256_with_8_per_token(batch: int, touched: int) -> None:
    assert round(float(distinct_experts(256, 8, batch))) == touched


def test_experts_touched_equals_a_simulation_of_uniform_routing() -> None:
    random = np.random.default_rng(7)
    seen = [
        len(set(np.concatenate([random.choice(32, size=4, replace=False) for _ in range(10)]))) for _ in range(2000)
    ]
    assert float(distinct_experts(32, 4, 10)) == pytest.approx(np.mean(seen), rel=0.01)


def _erlang_c_by_sums(servers: int, load: Fraction) -> Fraction:
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(load**k / math.factorial(k) for k in range(servers)) + last)


@pytest.mark.parametrize(("servers", "load"), [(1, "1/2"), (2, "1"), (3, "2"), (14, "10"), (50, "45"), (200, "190")])
def test_erlang_c_equals_the_sums_in_exact_arithmetic(servers: int, load: str) -> None:
    exact = _erlang_c_by_sums(servers, Fraction(load))
    assert float(erlang_c(servers, float(Fraction(load)))) == pytest.approx(float(exact), rel=1e-12)


def test_erlang_c_of_two_servers_and_one_erlang_is_a_third() -> None:
    assert float(erlang_c(2, 1.0)) == pytest.approx(1 / 3, rel=1e-15)


def test_erlang_c_is_certain_waiting_when_overloaded_and_takes_arrays() -> None:
    assert erlang_c(np.array([1, 2, 2, 5]), np.array([1.0, 1.0, 3.0, 0.0])).tolist() == [
        1.0,
        pytest.approx(1 / 3),
        1.0,
        0.0,
    ]


@pytest.mark.parametrize(
    ("peak", "rate", "load", "spare", "least", "needed"),
    [
        (8, 10, 0.8, 0, 0, 1),  # the quotient is 1 in decimals, a hair above in binary or not
        (0.3, 0.1, 1, 0, 0, 3),  # 0.3 / 0.1 is 2.9999999999999996 in binary
        (0.7, 0.1, 1, 0, 0, 7),  # and 0.7 / 0.1 is 6.999999999999999
        (2.4, 0.8, 1, 0, 0, 3),  # while 2.4 / 0.8 is 2.9999999999999996
        (1.1 * 3, 1.1, 1, 0, 0, 3),  # 3.3000000000000003 / 1.1 is 3.0000000000000004
        (20, 3, 0.8, 1, 0, 10),
        (0.001, 3, 0.8, 0, 0, 1),
        (0.001, 3, 0.8, 1, 5, 5),
        (0, 3, 0.8, 0, 2, 2),
    ],
)
def test_replicas_at_integer_boundaries(
    peak: float, rate: float, load: float, spare: int, least: int, needed: int
) -> None:
    assert float(replicas_needed(peak, rate, load, spare, least)) == needed


def test_a_replica_that_sustains_nothing_is_never_enough() -> None:
    assert math.isinf(float(replicas_needed(1, 0.0)))


@pytest.mark.parametrize("whole", [1, 7, 1000, 123456789])
def test_rounding_forgives_a_hair_and_no_more(whole: int) -> None:
    for slack in (0.0, 1e-13 * whole, -1e-13 * whole):
        assert float(whole_below(whole + slack)) == whole
        assert float(whole_above(whole + slack)) == whole
    assert float(whole_below(whole + 0.999)) == whole
    assert float(whole_above(whole + 0.001 * whole)) > whole


def test_kernel_group_is_the_slower_of_memory_and_arithmetic() -> None:
    assert float(kernel_group_time_s(10, 0, 2, 1, 0.5, 1)) == 10.0
    assert float(kernel_group_time_s(10, 100, 2, 5, 0.5, 0.5)) == 40.0


def test_decode_floor_of_70b_in_fp8_on_four_h100() -> None:
    assert round(float(decode_floor_s(70.6e9 / 4, 0, 3.35e12)) * 1e3, 2) == 5.27


def test_knee_is_where_the_growing_part_equals_the_weight_reads() -> None:
    weights, cache, flop, bandwidth, peak = 16e9, 2e8, 16e9, 3.35e12, 989e12
    batch = float(knee_batch(weights, cache, flop, bandwidth, peak))
    assert batch * (cache / bandwidth + flop / peak) == pytest.approx(weights / bandwidth)


@pytest.mark.parametrize(("tokens", "window"), [(100, 0), (100, 30), (30, 100), (64, 64)])
def test_causal_pairs_equal_the_area_under_a_fine_mask(tokens: int, window: int) -> None:
    cells = 8  # subdivision of a token: the sum tends to the area
    query, key = np.meshgrid(np.arange(tokens * cells), np.arange(tokens * cells), indexing="ij")
    seen = (key < query) & (query - key < (window or tokens) * cells)
    assert float(causal_pair_count(tokens, window)) == pytest.approx(seen.sum() / cells**2, rel=0.01)


def test_resident_tokens_saturate_at_the_window_and_fill_pages() -> None:
    tokens = np.array([1, 16, 17, 127, 128, 129, 5000])
    assert resident_tokens(tokens, 0, 16).tolist() == [16, 16, 32, 128, 128, 144, 5008]
    assert resident_tokens(tokens, 128, 16).tolist() == [16, 16, 32, 128, 128, 128, 128]
    assert resident_tokens(tokens, 128).tolist() == [1, 16, 17, 127, 128, 128, 128]


@pytest.mark.parametrize(
    ("heads", "ranks", "share"), [(8, 1, 1), (8, 2, 0.5), (8, 8, 0.125), (8, 16, 0.125), (1, 8, 1)]
)
def test_cache_heads_are_copied_once_ranks_outnumber_them(heads: int, ranks: int, share: float) -> None:
    assert float(kv_share_of_rank(heads, ranks)) == share


def test_mean_length_is_the_average_over_the_decode_steps() -> None:
    lengths = 700 + np.arange(300) + 0.5
    assert float(mean_resident_tokens(700, 300)) == pytest.approx(lengths.mean())


def test_linear_layers_keep_a_state_that_does_not_grow() -> None:
    assert float(constant_state_bytes(2, 3, 4, 5)) == 2 * 3 * 4 * 5 * 4


def test_workspace_and_overhead_are_the_measured_ones_at_80_gib() -> None:
    assert float(activation_workspace_bytes(0, 80 * GIB)) / GIB == pytest.approx(5.2)
    assert float(activation_workspace_bytes(1, 141 * GIB)) / GIB == pytest.approx(7.4)
    assert float(activation_workspace_bytes(1, 16 * GIB)) / GIB == pytest.approx(7.4 / 5)
    assert (np.asarray(engine_overhead_bytes([1, 2, 8])) / GIB).tolist() == [0.15, 0.6, 0.6]


def test_pool_fractions_of_the_device_and_of_what_is_free() -> None:
    assert float(kv_pool_bytes(0.9, 100, 40, 5, 1)) == pytest.approx(44)
    assert float(free_fraction_kv_pool_bytes(0.9, 100, 40, 5, 1)) == pytest.approx(48.6)
    assert float(free_fraction_kv_pool_bytes(0.9, 100, 120, 5, 1)) == pytest.approx(-26)  # all that is missing


def test_batch_is_whole_reserved_and_never_negative() -> None:
    assert np.asarray(largest_running_batch([100.0, 100.0, -5.0], [10.0, 9.6, 1.0])).tolist() == [9, 9, 0]
    assert float(largest_running_batch(0.3, 0.1, 0.0)) == 3


def test_steady_state_solves_its_fixed_point() -> None:
    prefill_s, step_s, output, batch = 0.12, 0.018, 400, 37
    rate = float(steady_state_requests_per_s(prefill_s, step_s, output, batch))
    tpot_s = float(loaded_time_per_output_token_s(step_s, prefill_s, rate))
    assert rate * output * tpot_s == pytest.approx(batch)  # Little's law


def test_decode_stops_when_prefill_fills_the_engine() -> None:
    assert math.isinf(float(loaded_time_per_output_token_s(0.02, 0.5, 2.0)))


def test_offline_run_tends_to_the_steady_state() -> None:
    rate = float(steady_state_requests_per_s(0.1, 0.02, 500, 20))
    many = 1e7
    assert many / float(offline_makespan_s(many, 0.1, 0.02, 500, 20)) == pytest.approx(rate, rel=1e-5)
    assert float(offline_makespan_s(10, 0.1, 0.02, 500, 20)) == pytest.approx(11)


def test_group_rate_by_tier() -> None:
    rates = {"pair_bytes_per_s": 64.0, "all_bytes_per_s": 448.0, "scale_up_devices": 4, "host_bytes_per_s": 31.0}
    ranks = np.array([1, 2, 4, 8, 16])
    found = np.asarray(group_bandwidth_bytes_per_s(ranks, **rates, node_devices=8, inter_node_bytes_per_s=25.0))
    assert found.tolist() == [math.inf, 64, 192, 31, 25]
    unknown = np.asarray(group_bandwidth_bytes_per_s(ranks, **rates, node_devices=8, inter_node_bytes_per_s=math.nan))
    assert np.isnan(unknown).tolist() == [False, False, False, False, True]


def test_kernel_units_of_the_kinds_of_layers() -> None:
    assert float(layer_kernel_units()) == 1.0
    assert float(layer_kernel_units(has_experts=1)) == 1.1
    assert float(layer_kernel_units(latent_attention=1, has_experts=1, has_shared_expert=1)) == 2.3
    assert float(layer_kernel_units(latent_attention=1, has_experts=1, has_shared_expert=1, sparse_index=1)) == 3.1


def test_imbalance_grows_with_the_ranks() -> None:
    factors = np.asarray(expert_imbalance([1, 2, 4, 8, 16, 32, 64]))
    assert factors[0] == 1.0
    assert factors[3] == pytest.approx(1.2)
    assert factors[-2:].tolist() == [1.5, 1.5]
    assert (np.diff(factors) >= 0).all()


@pytest.mark.parametrize(("replicas", "spares", "up"), [(20, 3, 0.9), (400, 60, 0.85), (5, 5, 0.5), (7, 2, 0.01)])
def test_time_within_spares_is_the_binomial_sum(replicas: int, spares: int, up: float) -> None:
    told = float(share_of_time_within_spares(replicas, spares, up))
    terms = (math.comb(replicas, k) * (1 - up) ** k * up ** (replicas - k) for k in range(spares + 1))
    assert told == pytest.approx(math.fsum(terms), rel=1e-12)


def test_a_million_spares_need_not_a_million_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two fleets at once, neither is cut before its own terms have faded."""
    asked, where = [], np.where
    monkeypatch.setattr(np, "where", lambda *given: asked.append(1) or where(*given))
    told = share_of_time_within_spares(np.array([10**6, 3]), np.array([10**6, 1]), np.array([0.9999, 0.5]))
    assert told == pytest.approx([1.0, 0.5])
    assert len(asked) < 2000


@pytest.mark.parametrize(("replicas", "spares"), [(4, 2), (100, 20), (1000, 30), (20_000, 300), (20_000, 999)])
def test_replicas_lost_with_their_nodes_are_a_sum_of_two_binomials(replicas: int, spares: int) -> None:
    """Eight on a node that is away 1 % of the time, in full: what hardly ever happens may be left out, no more."""
    up, there, each = 0.999, 0.99, 8

    def log_binomial(count: int, down: int, alive: float) -> float:
        ways = math.lgamma(count + 1) - math.lgamma(down + 1) - math.lgamma(count - down + 1)
        return ways + down * math.log(1 - alive) + (count - down) * math.log(alive)

    nodes, total = -(-replicas // each), 0.0
    for gone in range(min(spares // each, nodes) + 1):
        left, most = max(replicas - each * gone, 0), spares - each * gone
        alone = sum(math.exp(log_binomial(left, down, up)) for down in range(min(most, left) + 1))
        total += math.exp(log_binomial(nodes, gone, there)) * alone
    told = float(share_of_time_within_spares(replicas, spares, up, there, each))
    assert told == pytest.approx(min(total, 1.0), rel=1e-9)
