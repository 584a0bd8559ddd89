"""The open loop: capacities keep their targets and nothing above does; oracles of queues; relations of tiers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.equations.queueing import others_in_window, running_variance, slot_wait_probability, wait_percentile_s
from planner.equations.serving_load import steady_state_requests_per_s
from planner.estimate import serving_open
from planner.estimate.serving import given_throughput_capacity
from planner.estimate.serving_latency import Demand
from planner.estimate.serving_open import RequestShape, Targets, load_at, slo_capacity
from planner.estimate.serving_pools import decode_pool_capacity, prefill_pool_capacity
from planner.estimate.serving_root import crossing, crossing_of_rows
from tests.published.equations.replicas import erlang_c
from tests.simulate.engines import Plain, replica_of

CHAT = RequestShape(input_tokens=1500.0, output_tokens=400.0)
TARGETS = Targets(ttft_p95_s=np.array([0.3, 0.5, 2.0, np.inf]), tpot_p95_s=np.array([0.1, 0.02, np.inf, 0.03]))


def seventy() -> Any:
    return replica_of("llama-3.1-70b", "fp8", "fp8", 4, 1, "h100")


# ---------------------------------------------------------------- capacities


def test_a_capacity_keeps_every_target_and_a_little_more_does_not() -> None:
    found = slo_capacity(seventy(), CHAT, TARGETS, np.full(4, 256.0))
    assert found.binding.tolist() == ["ttft_p95", "tpot_p95", "ttft_p95", "tpot_p95"]
    for name, left in found.margin(TARGETS).items():
        assert (left >= 0).all(), name
    more = load_at(seventy(), CHAT, found.requests_per_s * 1.005, 256.0)
    assert (np.min(list(more.margin(TARGETS).values()), axis=0) < 0).all()


def test_the_load_at_the_capacity_is_that_of_the_capacity() -> None:
    found = slo_capacity(seventy(), CHAT, TARGETS, np.full(4, 256.0))
    again = load_at(seventy(), CHAT, found.requests_per_s, np.full(4, 256.0))
    for name in ("ttft_s", "tpot_s", "e2e_s"):
        for key, value in getattr(found, name).items():
            np.testing.assert_allclose(getattr(again, name)[key], value, rtol=1e-3, err_msg=f"{name} {key}")
    np.testing.assert_allclose(again.sequences, found.sequences, rtol=1e-3)


def test_targets_out_of_reach_and_no_slots_give_no_rate() -> None:
    targets = Targets(ttft_p95_s=np.array([0.01, 1.0, 1.0]), tpot_p95_s=np.array([1.0, 0.001, 1.0]))
    found = slo_capacity(seventy(), CHAT, targets, np.array([64.0, 64.0, 0.0]))
    assert found.requests_per_s.tolist() == [0.0, 0.0, 0.0]
    assert found.binding[:2].tolist() == ["ttft_p95", "tpot_p95"]
    assert (found.margin(targets)["ttft_p95"][0], found.margin(targets)["tpot_p95"][1]) < (0, 0)


def test_rates_that_a_replica_cannot_follow_wait_for_ever() -> None:
    load = load_at(seventy(), CHAT, np.array([0.0, 1.0, 1000.0]), 64.0)
    assert np.isfinite(load.ttft_s["p95"]).tolist() == [True, True, False]
    assert load.margin(Targets(ttft_p95_s=1.0))["ttft_p95"][2] == -np.inf
    assert load.requests_per_s.tolist() == [0.0, 1.0, 1000.0]
    assert float(load.sequences[2]) == 64.0


def test_slots_bind_where_targets_are_wide() -> None:
    found = slo_capacity(seventy(), CHAT, Targets(), np.array([1.0, 16.0, 64.0]))
    assert found.binding.tolist() == ["batch"] * 3
    np.testing.assert_allclose(found.sequences, [1.0, 16.0, 64.0], rtol=1e-3)


def test_a_prompt_is_cut_into_what_its_own_rank_takes_a_step() -> None:
    """Of 8,192 tokens of eight ranks each takes 1,024: a prompt of 8,000 goes through eight steps, not one."""
    shape = RequestShape(input_tokens=8000.0, output_tokens=100.0)
    one, eight = (Demand.of(Plain(ranks=ranks), shape, 0.0, 1.0, 8192.0) for ranks in (1.0, 8.0))
    assert (float(one.chunks), float(eight.chunks)) == (1.0, 8.0)


def test_blocks_and_rows_that_cannot_be_taken_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    count = 300
    engine = Plain(step0_s=rng.uniform(0.005, 0.03, count), sequence_s=1e-4)
    shape = RequestShape(
        input_tokens=rng.uniform(100, 5000, count),
        output_tokens=rng.uniform(1, 900, count),
        input_second_moment=None,
    )
    targets = Targets(ttft_p95_s=rng.uniform(0.05, 2, count), tpot_p99_s=0.05, e2e_p95_s=40.0)
    limit = np.floor(rng.uniform(1, 300, count))
    whole = slo_capacity(engine, shape, targets, limit)
    monkeypatch.setattr(serving_open, "BLOCK", 64)
    blocks = slo_capacity(engine, shape, targets, limit)
    np.testing.assert_allclose(blocks.requests_per_s, whole.requests_per_s, rtol=1e-9)
    assert blocks.binding.tolist() == whole.binding.tolist()

    class Fixed:  # knows its times, not its rows
        request_s, ranks, step_s, token_s = 0.0, 1.0, engine.step_s, engine.token_s
        prefill_s, prefill_alone_s = engine.prefill_s, engine.prefill_alone_s

    fixed: Any = Fixed
    np.testing.assert_allclose(
        slo_capacity(fixed, shape, targets, limit).requests_per_s, whole.requests_per_s, rtol=2e-4
    )


def test_a_row_alone_is_the_row_among_others() -> None:
    found = slo_capacity(seventy(), CHAT, TARGETS, 256.0)
    alone = slo_capacity(seventy(), CHAT, Targets(ttft_p95_s=0.5, tpot_p95_s=0.02), 256.0)
    assert float(alone.requests_per_s) == pytest.approx(float(found.requests_per_s[1]), rel=2e-4)


def test_one_token_answers_and_cached_prompts() -> None:
    engine = Plain(step0_s=0.01, prompt_token_s=1e-4)
    classify = RequestShape(input_tokens=1000.0, output_tokens=1.0)
    found = slo_capacity(engine, classify, Targets(ttft_p95_s=0.5), 64.0)
    assert 0 < float(found.requests_per_s) < 10
    half = RequestShape(input_tokens=1000.0, output_tokens=1.0, cached_tokens=500.0)
    assert float(slo_capacity(engine, half, Targets(ttft_p95_s=0.5), 64.0).requests_per_s) > 1.8 * float(
        found.requests_per_s
    )


# ---------------------------------------------------------------- tiers


def test_the_rule_with_the_rate_found_is_the_rate_found() -> None:
    """T0 with throughput := output tokens per second and device of T2 is T2."""
    engine = seventy()
    found = slo_capacity(engine, CHAT, Targets(tpot_p95_s=0.04), 256.0)
    throughput = found.requests_per_s * 400 / 4
    assert given_throughput_capacity(throughput, engine.layout, 400) == pytest.approx(found.requests_per_s, rel=1e-12)


def test_without_targets_the_batch_is_full() -> None:
    """T2 without targets keeps the batch of T1 full: x = 1 / (P + O D(B) / B), but for waits before the first token."""
    engine = seventy()
    for limit in (8.0, 64.0, 256.0):
        found = slo_capacity(engine, CHAT, Targets(), limit)
        full = steady_state_requests_per_s(
            engine.prefill_s(1500.0), engine.step_s(limit, CHAT.context_tokens), 400, limit
        )
        assert float(found.requests_per_s) == pytest.approx(float(full), rel=0.04)
        assert float(found.requests_per_s) <= float(full) * 1.0025  # one token less is decoded


def test_a_lone_request_is_that_of_an_idle_engine() -> None:
    engine = seventy()
    idle = load_at(engine, CHAT, 1e-4, 64.0)
    assert float(idle.ttft_s["p95"]) == pytest.approx(
        float(engine.prefill_alone_s(1500.0) + engine.request_s), rel=1e-3
    )
    assert float(idle.tpot_s["p95"]) == pytest.approx(float(engine.token_s(1.0, 1700.0)), rel=5e-3)


# ---------------------------------------------------------------- oracles of the queues


def chain(finish: Any, slots: int, rate: float, longest: int = 6000) -> tuple[float, float, float]:
    """Birth-death chain by its product form: probability of waiting, mean wait, mean running."""
    number = np.arange(longest)
    logs = np.concatenate([[0.0], np.cumsum(np.log(rate / finish(np.minimum(number[1:], slots))))])
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    running = float((np.minimum(number, slots) * weight).sum())
    return float(weight[slots:].sum()), float((np.maximum(number - slots, 0) * weight).sum()) / rate, running


@pytest.mark.parametrize(("servers", "load"), [(2, 1.0), (10, 7.0), (50, 40.0), (200, 180.0)])
def test_the_chain_is_erlangs_without_slowing(servers: int, load: float) -> None:
    assert chain(lambda n: n * 1.0, servers, load)[0] == pytest.approx(float(erlang_c(servers, load)), rel=1e-9)


@pytest.mark.parametrize("slowing", [0.0, 0.005, 0.02])
@pytest.mark.parametrize(("slots", "mean"), [(48, 36), (48, 40), (128, 100), (128, 115), (256, 230)])
def test_slot_waits_are_those_of_the_chain(slots: int, mean: int, slowing: float) -> None:
    """Where waiting matters, one in a hundred and up, the normal form is within a quarter of the exact chain."""

    def finish(number: Any) -> Any:
        return number / (1 + slowing * number)

    rate = float(finish(mean))
    variance = running_variance(mean, slowing * mean / (1 + slowing * mean), 1)
    full = float(finish(slots))
    exact, wait, _ = chain(finish, slots, rate)
    found = float(slot_wait_probability(slots, mean, variance, rate / full))
    if exact > 0.01:
        assert found == pytest.approx(exact, rel=0.25)
        assert found / (full - rate) == pytest.approx(wait, rel=0.25)
    assert found == pytest.approx(exact, rel=0.25, abs=0.005)


def test_percentiles_of_one_exponential_server() -> None:
    """M/M/1: P[W > t] = rho exp(-(mu - x) t)."""
    for load in (0.1, 0.3, 0.6, 0.9):
        late = float(wait_percentile_s(load, 1 / (1 - load), 0.95))
        assert load * np.exp(-(1 - load) * late) == pytest.approx(0.05, rel=1e-12)


@pytest.mark.parametrize("variability", [2.0, 4.0, 8.0])
@pytest.mark.parametrize("expected", [0.1, 0.3, 1.0, 3.0])
def test_bursts_are_those_of_gamma_gaps(variability: float, expected: float) -> None:
    """The renewal function of gamma gaps, drawn: others within a time after an arrival."""
    rng = np.random.default_rng(1)
    gaps = rng.gamma(1 / variability, variability, (20_000, 60))
    drawn = float((np.cumsum(gaps, axis=1) < expected).sum(axis=1).mean())
    assert float(others_in_window(expected, variability)) == pytest.approx(drawn, rel=0.35)


def test_crossings_are_found_on_the_safe_side() -> None:
    roots = np.linspace(-6, 4, 101)

    def function(where: Any) -> Any:
        steep = np.exp(3 * (where - roots)) - 1
        return np.clip(np.where(roots > 0, steep, where - roots + 0.1 * (where - roots) ** 3), -50, 1)

    low, high = np.full(101, -7.0), np.full(101, 5.0)
    found = crossing(function, low, function(low), high, function(high))
    assert (found <= roots + 1e-12).all()
    np.testing.assert_allclose(found, roots, atol=2e-4)

    def of_rows(rows: Any) -> Any:
        def part(where: Any) -> Any:
            whole = np.zeros(101)
            whole[rows] = where
            return function(whole)[rows]

        return part

    np.testing.assert_allclose(crossing_of_rows(of_rows, low, function(low), high, function(high)), found, atol=2e-4)


# ---------------------------------------------------------------- pools


def test_pools_are_freed_of_each_other() -> None:
    """A decode pool carries more within its targets than a replica that also prefills; P bounds a prefill pool."""
    engine = seventy()
    targets = Targets(ttft_p95_s=0.6, tpot_p95_s=0.025)
    both = slo_capacity(engine, CHAT, targets, 256.0)
    decode = decode_pool_capacity(engine, CHAT, targets, 256.0)
    prefill = prefill_pool_capacity(engine, CHAT, targets)
    assert float(decode.requests_per_s) > float(both.requests_per_s)
    assert float(prefill.requests_per_s) < 1 / float(engine.prefill_alone_s(1500.0))
    assert float(prefill.margin(targets)["ttft_p95"]) == pytest.approx(0, abs=1e-3)
    slower = decode_pool_capacity(engine, CHAT, targets, 256.0, kv_transfer_s=1.0)
    assert float(slower.requests_per_s) < float(decode.requests_per_s)
    assert float(decode.prefill_share) == 0


def test_a_pipeline_takes_the_next_prompt_while_the_last_walks_on() -> None:
    deep = replica_of("llama-3.1-70b", "fp8", "fp8", 2, 4, "h100")
    found = prefill_pool_capacity(deep, CHAT, Targets(ttft_p95_s=60.0))
    walk = float(deep.prefill_alone_s(1500.0))
    assert 1.5 / walk < float(found.requests_per_s) < 1 / float(deep.prefill_s(1500.0))
    idle = prefill_pool_capacity(deep, CHAT, Targets(), requests_per_s=1e-6)
    assert float(idle.ttft_s["p95"]) == pytest.approx(walk + float(deep.request_s), rel=1e-4)


def test_pools_out_of_reach() -> None:
    engine = seventy()
    assert float(prefill_pool_capacity(engine, CHAT, Targets(ttft_p95_s=0.01)).requests_per_s) == 0
    assert float(decode_pool_capacity(engine, CHAT, Targets(tpot_p95_s=0.001), 64.0).requests_per_s) == 0


def test_a_load_of_rows_is_cut_and_joined() -> None:
    found = slo_capacity(seventy(), CHAT, TARGETS, np.full(4, 256.0))
    halves = serving_open.OpenLoad.joined([found.take(np.array([0, 1])), found.take(np.array([2, 3]))])
    np.testing.assert_array_equal(halves.requests_per_s, found.requests_per_s)
    np.testing.assert_array_equal(halves.ttft_s["p95"], found.ttft_s["p95"])
    assert halves.binding.tolist() == found.binding.tolist()
