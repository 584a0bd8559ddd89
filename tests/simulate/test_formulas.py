"""The open loop's formulas against the simulation: twelve shapes at three loads, even arrivals, bursts, pools."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from planner.estimate.serving_open import OpenLoad, RequestShape, Targets, load_at, slo_capacity
from planner.estimate.serving_pools import decode_pool_capacity, prefill_pool_capacity
from planner.simulate import SimulatedLoad
from tests.simulate.drawn import simulate_drawn
from tests.simulate.engines import Case, Plain, twelve
from tests.tiers import sampled

LOADS = (0.3, 0.6, 0.8)
CASES = {case.name: case for case in twelve()}


@cache
def both(name: str, load: float, variability: float = 1.0) -> tuple[OpenLoad, SimulatedLoad]:
    """Formula and simulation of a case at a share of the rate at which its slots are full on average."""
    case: Case = CASES[name]
    full = slo_capacity(case.replica, case.shape, Targets(), float(case.limit), arrival_variability=variability)
    rate = load * float(full.requests_per_s)
    predicted = load_at(case.replica, case.shape, rate, float(case.limit), arrival_variability=variability)
    simulated = simulate_drawn(
        case.replica,
        case.shape,
        batch_limit=case.limit,
        requests_per_s=rate,
        requests=case.requests,
        lengths=case.lengths,
        seed=1,
        warmup_share=0.15,
        arrival_variability=variability,
    )
    return predicted, simulated


def error(predicted: Any, simulated: float) -> float:
    return float(predicted) / simulated - 1


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("name", sampled(CASES, 4))
def test_twelve_shapes(name: str, load: float) -> None:
    """The bar: time per token within 7 %, 95th percentile of the first token within 20 %, at loads up to 0.8."""
    predicted, simulated = both(name, load)
    assert abs(error(predicted.tpot_s["mean"], simulated.tpot_s["mean"])) < 0.07
    assert abs(error(predicted.tpot_s["p50"], simulated.tpot_s["p50"])) < 0.09
    assert abs(error(predicted.tpot_s["p95"], simulated.tpot_s["p95"])) < 0.18
    assert abs(error(predicted.ttft_s["mean"], simulated.ttft_s["mean"])) < 0.10
    assert abs(error(predicted.ttft_s["p95"], simulated.ttft_s["p95"])) < 0.20
    assert abs(error(predicted.e2e_s["mean"], simulated.e2e_s["mean"])) < 0.07
    assert predicted.prefill_share == pytest.approx(simulated.prefill_share, rel=0.06, abs=0.005)
    assert predicted.sequences == pytest.approx(simulated.sequences, rel=0.08)


@pytest.mark.parametrize("variability", [0.0, 0.5, 2.0])
def test_time_per_token_holds_for_even_and_bursty_arrivals(variability: float) -> None:
    for name in ("8b-document", "70b-chat", "gpt-oss"):
        predicted, simulated = both(name, 0.6, variability)
        assert abs(error(predicted.tpot_s["mean"], simulated.tpot_s["mean"])) < 0.07, name
        assert abs(error(predicted.ttft_s["mean"], simulated.ttft_s["mean"])) < 0.25, name


def test_prompts_partly_in_the_cache() -> None:
    case = CASES["gpt-oss"]
    shape = RequestShape(
        input_tokens=3000.0, output_tokens=300.0, cached_tokens=1500.0, input_second_moment=1.2 * 3000.0**2
    )
    cold = RequestShape(input_tokens=3000.0, output_tokens=300.0, input_second_moment=1.2 * 3000.0**2)
    rate = 0.7 * float(slo_capacity(case.replica, shape, Targets(), 128.0).requests_per_s)
    predicted = load_at(case.replica, shape, rate, 128.0)
    simulated = simulate_drawn(case.replica, shape, batch_limit=128, requests_per_s=rate, requests=12_000)
    assert abs(error(predicted.tpot_s["mean"], simulated.tpot_s["mean"])) < 0.05
    assert abs(error(predicted.ttft_s["p95"], simulated.ttft_s["p95"])) < 0.15
    assert predicted.prefill_share == pytest.approx(simulated.prefill_share, rel=0.05)
    assert float(predicted.ttft_s["p95"]) < float(load_at(case.replica, cold, rate, 128.0).ttft_s["p95"])


def test_waits_for_a_slot() -> None:
    """Few slots at a high load: the mean wait is that of the simulation, and nearly none at a low load."""
    case = CASES["mixtral-few-slots"]
    predicted, _ = both("mixtral-few-slots", 0.8)
    waits = [
        simulate_drawn(
            case.replica,
            case.shape,
            batch_limit=case.limit,
            requests_per_s=float(predicted.requests_per_s),
            requests=60_000,
            lengths="geometric",
            seed=seed,
        ).slot_wait_s
        for seed in range(4)  # spells of waiting are rare and long
    ]
    assert predicted.slot_wait_s == pytest.approx(np.mean(waits), rel=0.35)
    low, _ = both("mixtral-few-slots", 0.3)
    assert float(low.slot_wait_s) < 1e-3 * float(predicted.slot_wait_s)


def test_even_arrivals_reach_the_steady_state() -> None:
    """T3 goes to T2: one request at a time, evenly spaced and all alike, has no waits but for the step under way."""
    engine = Plain(step0_s=0.01, sequence_s=2e-4, request_s=0.05)
    shape = RequestShape(input_tokens=1000.0, output_tokens=200.0)
    rate = 3.1
    simulated = simulate_drawn(
        engine, shape, batch_limit=64, requests_per_s=rate, requests=4000, arrival_variability=0.0
    )
    predicted = load_at(engine, shape, rate, 64.0, arrival_variability=0.0)
    step, share = simulated.tpot_s["mean"] * (1 - rate * 0.1), rate * 0.1
    running = rate * 199 * simulated.tpot_s["mean"]
    assert step == pytest.approx(0.01 + 2e-4 * running, rel=0.03)  # TPOT = D(b) / (1 - rho) with b of Little's law
    assert simulated.prefill_share == pytest.approx(share, rel=0.01)
    assert predicted.tpot_s["mean"] == pytest.approx(simulated.tpot_s["mean"], rel=0.04)
    assert simulated.tpot_s["p99"] == pytest.approx(simulated.tpot_s["p50"], rel=0.03)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.8])
def test_prefill_pool_is_a_line(share: float) -> None:
    """One-token answers on an engine without decoding: M/D/1 and, with spread prompts, M/G/1."""
    engine = Plain(step0_s=1e-9, prompt_token_s=1e-4, request_s=0.02)
    for spread in (1.0, 1.4):
        shape = RequestShape(input_tokens=1000.0, output_tokens=1.0, input_second_moment=spread * 1e6)
        pool = prefill_pool_capacity(engine, shape, Targets(), requests_per_s=share * 10)
        simulated = _line(share * 10, spread)
        assert pool.ttft_s["mean"] == pytest.approx(simulated["mean"], rel=0.05)
        assert pool.ttft_s["p95"] == pytest.approx(simulated["p95"], rel=0.20)


def _line(rate: float, spread: float, count: int = 200_000) -> dict[str, float]:
    """Lindley's recursion of the same line."""
    rng = np.random.default_rng(5)
    gaps, sigma = rng.exponential(1 / rate, count), np.sqrt(np.log(spread))
    service = 0.1 * np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2)
    waits, wait = np.empty(count), 0.0
    for index, (gap, last) in enumerate(zip(gaps.tolist(), [0.0, *service[:-1].tolist()], strict=True)):
        wait = max(wait + last - gap, 0.0)
        waits[index] = wait
    first = 0.02 + waits + service
    return {"mean": float(first.mean()), "p95": float(np.quantile(first, 0.95))}


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_decode_pool(load: float) -> None:
    """An engine whose prompts cost nothing is a decode pool; the transfer lengthens the gap after the first token."""
    engine = Plain(step0_s=0.01, sequence_s=2e-4, prompt_token_s=0.0)
    shape = RequestShape(input_tokens=1000.0, output_tokens=100.0)
    full = decode_pool_capacity(engine, shape, Targets(), 64.0)
    rate = load * float(full.requests_per_s)
    pool = decode_pool_capacity(engine, shape, Targets(), 64.0, requests_per_s=rate)
    simulated = simulate_drawn(engine, shape, batch_limit=64, requests_per_s=rate, requests=40_000)
    # the first step of the simulation gives the token that the other pool gives here
    decode_s = simulated.tpot_s["mean"]
    assert float(pool.tpot_s["mean"]) == pytest.approx(decode_s, rel=0.03)
    late = decode_pool_capacity(engine, shape, Targets(), 64.0, requests_per_s=rate, kv_transfer_s=0.2)
    assert float(late.tpot_s["mean"] - pool.tpot_s["mean"]) == pytest.approx(0.2 / 99)
    assert float(late.e2e_s["mean"] - pool.e2e_s["mean"]) == pytest.approx(0.2)
