"""The simulation itself: requests by hand, laws that hold for any queue, the same seed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from planner.equations.queueing import prefill_queue_wait_s
from planner.estimate.serving_open import RequestShape
from planner.simulate import Workload, simulate_replica
from tests.simulate.drawn import drawn, simulate_drawn
from tests.simulate.engines import Plain, replica_of
from tests.tiers import cases

ENGINE = Plain(step0_s=0.01, sequence_s=1e-3, prompt_token_s=1e-4, request_s=0.02)


def work(*rows: tuple[float, float, float]) -> Workload:
    """Requests as (arrival, prompt, output)."""
    arrival, prompt, output = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return Workload(arrival_s=arrival, input_tokens=prompt, output_tokens=output, cached_tokens=0 * prompt)


def test_one_request_by_hand() -> None:
    load = simulate_replica(ENGINE, work((1.0, 1000, 11)), batch_limit=4, warmup_share=0.0)
    assert load.ttft_s["mean"] == pytest.approx(0.02 + 0.1)
    assert load.tpot_s["mean"] == pytest.approx(0.011)
    assert load.e2e_s["mean"] == pytest.approx(0.02 + 0.1 + 10 * 0.011)


def test_second_request_waits_for_the_step_and_slows_the_first() -> None:
    """It comes in the middle of a step, prefills in the next, and both decode together."""
    load = simulate_replica(ENGINE, work((0.0, 1000, 101), (0.1 + 0.0055, 500, 11)), batch_limit=4, warmup_share=0.0)
    # step under way ends at 0.111; the mixed step takes 0.011 + 0.05
    assert load.ttft_s["mean"] == pytest.approx((0.12 + 0.02 + 0.0055 + 0.061) / 2)
    both = 10 * 0.012
    first = 0.011 + 0.061 + both + 0.011 * (100 - 12)
    assert load.e2e_s["mean"] == pytest.approx((0.12 + first + 0.02 + 0.0055 + 0.061 + both) / 2)


def test_one_slot_is_a_line() -> None:
    """With one slot requests follow each other: the second waits for the end of the first."""
    load = simulate_replica(ENGINE, work((0.0, 1000, 11), (0.0, 1000, 11)), batch_limit=1, warmup_share=0.0)
    assert load.e2e_s["mean"] == pytest.approx(0.02 + (0.21 + 0.42) / 2)
    assert load.slot_wait_s == pytest.approx(0.21 / 2, rel=0.01)


def test_long_prompts_are_cut_and_others_decode_meanwhile() -> None:
    """A prompt of 4,000 tokens takes four steps of 1,000, each of which gives the first request a token."""
    rows = work((0.0, 100, 51), (0.0105, 4000, 2))
    load = simulate_replica(ENGINE, rows, batch_limit=4, max_batched_tokens=1001, warmup_share=0.0)
    assert load.e2e_s["p99"] == pytest.approx(0.02 + 0.01 + 4 * (0.011 + 0.1) + 0.012 + 45 * 0.011, rel=0.02)


def test_same_seed_same_figures() -> None:
    shape = RequestShape(input_tokens=500.0, output_tokens=100.0, input_second_moment=1.3 * 500.0**2)
    first, again, other = (
        simulate_drawn(ENGINE, shape, batch_limit=32, requests_per_s=4.0, requests=2000, seed=seed)
        for seed in (7, 7, 8)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize("rate", [0.5, 2.0, 4.0])
def test_little_and_work(rate: float) -> None:
    """Sequences = rate times time in a slot; share of prefill = rate times prefill."""
    shape = RequestShape(input_tokens=800.0, output_tokens=120.0)
    load = simulate_drawn(ENGINE, shape, batch_limit=500, requests_per_s=rate, requests=20_000)
    assert load.prefill_share == pytest.approx(load.requests_per_s * 0.08, rel=0.02)
    decoding = load.requests_per_s * (load.e2e_s["mean"] - load.ttft_s["mean"])
    assert load.sequences == pytest.approx(decoding + load.prefill_share, rel=0.02)


def test_prefill_line_is_that_of_pollaczek_and_khinchine() -> None:
    """Prompts too long to share a step, one token each: an M/D/1 line."""
    engine = Plain(step0_s=1e-9, prompt_token_s=1e-4)
    shape = RequestShape(input_tokens=1000.0, output_tokens=1.0)
    load = simulate_drawn(
        engine,
        shape,
        batch_limit=100_000,
        requests_per_s=6.0,
        requests=cases(10_000, 100_000),
        max_batched_tokens=50,
        seed=3,
    )
    # the step under way, 50 tokens, adds nothing on average: work is conserved to the step
    assert load.ttft_s["mean"] == pytest.approx(float(prefill_queue_wait_s(6.0, 0.1, 0.01)) + 0.1, rel=0.04)


def test_lengths_have_the_moments_of_the_shape() -> None:
    shape = RequestShape(
        input_tokens=900.0, output_tokens=300.0, input_second_moment=1.5 * 900.0**2, output_second_moment=1.2 * 9e4
    )
    made = drawn(shape, 5.0, 200_000, seed=1, arrival_variability=3.0)
    assert made.input_tokens.mean() == pytest.approx(900, rel=0.01)
    assert (made.input_tokens**2).mean() == pytest.approx(1.5 * 900**2, rel=0.05)
    assert (made.output_tokens**2).mean() == pytest.approx(1.2 * 9e4, rel=0.05)
    gaps = np.diff(made.arrival_s)
    assert gaps.mean() == pytest.approx(0.2, rel=0.02)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(3.0, rel=0.05)
    geometric = drawn(shape, 5.0, 200_000, seed=1, lengths="geometric").output_tokens
    assert (geometric**2).mean() / geometric.mean() ** 2 == pytest.approx(2.0, rel=0.03)


def test_the_table_is_the_step_model() -> None:
    """Against a replica whose steps are computed one by one: the same figures to a thousandth."""
    engine = replica_of("gpt-oss-120b", "mxfp4", "bf16", 2, 1, "h100")
    rows = work(*((0.3 * k, 600 + 37 * k, 40 + k) for k in range(30)))
    load = simulate_replica(engine, rows, batch_limit=16, warmup_share=0.0)
    alone = float(engine.prefill_alone_s(600.0)) + float(engine.request_s)
    assert load.ttft_s["p50"] >= alone
    batch = load.requests_per_s * (load.e2e_s["mean"] - load.ttft_s["mean"])
    step = float(engine.step_s(max(batch, 1.0), 1200.0))
    assert load.tpot_s["p50"] == pytest.approx(step, rel=0.35)


def test_speculation_gives_more_tokens_a_step() -> None:
    @dataclasses.dataclass(frozen=True)
    class Faster(Plain):
        def token_s(self, sequences: object, context_tokens: object) -> object:
            return self.step_s(sequences, context_tokens) / 2

    engine = Faster(step0_s=0.01, prompt_token_s=1e-4)
    load = simulate_replica(engine, work((0.0, 100, 101)), batch_limit=4, warmup_share=0.0)
    assert load.tpot_s["mean"] == pytest.approx(0.005)


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(ValueError, match="one slot"):
        simulate_replica(ENGINE, work((0.0, 500, 100)), batch_limit=0)
