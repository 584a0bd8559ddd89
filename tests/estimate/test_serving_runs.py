"""Runs that end, against runs that are followed request by request; laws of closed loops and static batches."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.equations.kv_cache import mean_resident_tokens
from planner.estimate.serving_closed import closed_loop, static_batch, timely_requests_per_s
from planner.estimate.serving_constants import TEXTBOOK, ServingConstants
from planner.estimate.serving_runs import open_run, pile_s, pile_through_http_s
from planner.estimate.serving_step import ReplicaLayout
from tests.tiers import settings

ONE_DEVICE = ReplicaLayout(devices=1.0)
FIXED, EACH, PROMPT = 10e-3, 0.1e-3, 4e-3  # of a step, of a sequence in it, of a prompt  [s]


@dataclass(frozen=True)
class Engine:
    """A step takes a time, and more with every sequence; a prompt takes a time."""

    constants: ServingConstants = TEXTBOOK
    layout: ReplicaLayout = ONE_DEVICE

    @property
    def request_s(self) -> float:
        return 0.0

    def take(self, index: object) -> Engine:
        return self

    def token_s(self, sequences: Any, context_tokens: Any) -> Any:
        return FIXED + EACH * np.asarray(sequences, dtype=float)

    def prefill_s(self, input_tokens: Any, cached_tokens: Any = 0, prompts: Any = 1) -> Any:
        return PROMPT + 0.0 * np.asarray(input_tokens, dtype=float)

    def prefill_alone_s(self, input_tokens: Any, cached_tokens: Any = 0) -> Any:
        return PROMPT + 0.0 * np.asarray(input_tokens, dtype=float)


ENGINE: Any = Engine()
ONE = np.ones(1)


def followed(lengths: list[int], slots: int, arrivals: list[float] | None = None) -> tuple[float, float, float]:
    """Makespan, mean first token and mean time per token: prompts first, then one step for all that run."""
    waiting = sorted(zip(arrivals or [0.0] * len(lengths), lengths, strict=True))
    now, running, first, each = 0.0, [], [], []
    while waiting or running:
        while waiting and waiting[0][0] <= now and len(running) < slots:
            came, length = waiting.pop(0)
            now += PROMPT
            first.append(now - came)
            running.append([length - 1, now, length])
        if not running:
            now = waiting[0][0]
            continue
        now += FIXED + EACH * len(running)
        for one in running:
            one[0] -= 1
        each += [(now - since) / (length - 1) for left, since, length in running if left == 0]
        running = [one for one in running if one[0] > 0]
    return now, fmean(first), fmean(each)


def varied(count: int, mean: float, variation: float) -> list[int]:
    drawn = random.Random(7)
    sigma = float(np.sqrt(np.log1p(variation**2)))
    return [max(round(drawn.lognormvariate(np.log(mean) - sigma**2 / 2, sigma)), 2) for _ in range(count)]


@pytest.mark.parametrize(("count", "slots", "variation"), [(200, 256, 0.95), (600, 64, 0.95), (100, 100, 0.4)])
def test_a_pile_ends_with_its_longest_answers(count: int, slots: int, variation: float) -> None:
    lengths = varied(count, 150.0, variation)
    true = followed(lengths, slots)[0]
    mean = fmean(lengths)
    said = float(pile_s(ENGINE, 100.0 * ONE, mean * ONE, float(count), float(slots), variation=variation)[0])
    alike = float(pile_s(ENGINE, 100.0 * ONE, mean * ONE, float(count), float(slots))[0])
    assert said == pytest.approx(true, rel=0.15)
    if count <= slots:
        assert alike < 0.75 * true  # a pile of equal answers would end long before


def test_a_pile_of_equal_answers_is_waves() -> None:
    said = float(pile_s(ENGINE, 100.0, 100.0, 50.0, 64.0))
    assert said == pytest.approx(followed([101] * 50, 64)[0], rel=0.01)


def test_the_server_in_front_is_a_ceiling() -> None:
    slow: Any = Engine(constants=replace(TEXTBOOK, front_request_s=0.05, front_token_s=1e-3))
    assert float(pile_through_http_s(slow, 100.0, 4.0, 1000.0, 1000.0)) == pytest.approx(1000 * 0.054)
    assert float(pile_through_http_s(ENGINE, 100.0, 4.0, 1000.0, 1000.0)) == float(
        pile_s(ENGINE, 100.0, 4.0, 1000.0, 1000.0)
    )


@pytest.mark.parametrize("rate", [2.0, 8.0, 14.0, 60.0])
def test_a_run_at_a_rate_is_as_followed(rate: float) -> None:
    """Below what 64 slots carry (18/s here) and above it."""
    drawn, now = random.Random(3), 0.0
    arrivals = [now := now + drawn.expovariate(rate) for _ in range(300)]
    makespan, first, each = followed([200] * 300, 64, arrivals)
    said = open_run(ENGINE, 100.0 * ONE, 200.0 * ONE, rate, 300.0, 64.0)
    assert said.tpot_s[0] == pytest.approx(each, rel=0.12)
    assert said.requests_per_s[0] == pytest.approx(300 / makespan, rel=0.12)
    if rate > 18:
        assert said.ttft_s[0] == pytest.approx(first, rel=0.12)
    assert bool(said.behind[0]) == (rate > 18)


def test_a_queue_grows_as_long_as_requests_come() -> None:
    short, long = (open_run(ENGINE, 100.0 * ONE, 200.0 * ONE, 80.0, count, 64.0) for count in (300.0, 1200.0))
    assert 3 * short.ttft_s[0] < long.ttft_s[0] < 6 * short.ttft_s[0]
    assert long.tpot_s[0] == pytest.approx(short.tpot_s[0], rel=0.1)


@settings(max_examples=60)
@given(
    burst=st.floats(0.0, 3.0),
    clients=st.integers(1, 400),
    answer=st.integers(2, 2000),
    limit=st.integers(1, 400),
)
def test_what_a_cycle_needs_is_conserved(burst: float, clients: int, answer: int, limit: int) -> None:
    """However much of it stands before the first token, a client's cycle holds all work; no token beats a step."""
    engine: Any = Engine(constants=replace(TEXTBOOK, burst=burst))
    loop = closed_loop(engine, 100.0, float(answer), float(clients), float(limit))
    inside = min(clients, limit)
    step = FIXED + EACH * float(loop.sequences)
    assert float(loop.tpot_s) >= step * (1 - 1e-12)
    queue = max(clients - inside, 0) / float(loop.requests_per_s)
    cycle = float(loop.ttft_s) - queue + (answer - 1) * float(loop.tpot_s)
    assert cycle == pytest.approx(inside * PROMPT + (answer + 0.5) * step)  # no work twice, and none left out


def test_a_static_batch_beyond_memory_takes_waves() -> None:
    whole, half = (static_batch(ENGINE, 100.0, 200.0, 64.0, batch_limit=limit) for limit in (64.0, 16.0))
    assert float(half.latency_s) == pytest.approx(followed([200] * 64, 16)[0], rel=0.15)
    assert float(whole.latency_s) < float(half.latency_s)
    assert float(static_batch(ENGINE, 100.0, 200.0, 64.0).latency_s) == float(whole.latency_s)


def test_a_pipeline_fills_and_drains_once() -> None:
    """Four parts of a batch on four stages: seven times the stages' share of the prompts in place of four."""
    deep: Any = Engine(layout=ReplicaLayout(devices=4.0, pp=4.0))
    flat, piped = (float(static_batch(one, 100.0, 2.0, 4.0).first_token_s) for one in (ENGINE, deep))
    assert piped == pytest.approx(flat * 7 / 4)
    alone = closed_loop(deep, 100.0, 100.0, 1.0)
    full = closed_loop(deep, 100.0, 100.0, 4.0)
    shallow = closed_loop(ENGINE, 100.0, 100.0, 1.0)
    assert 1 / float(alone.requests_per_s) == pytest.approx(1 / float(shallow.requests_per_s) + 3 * PROMPT)
    assert float(full.requests_per_s) > 3.5 * float(alone.requests_per_s)


@pytest.mark.parametrize("tpot", [12e-3, 15e-3, 30e-3])
def test_a_rate_within_limits_keeps_them(tpot: float) -> None:
    limits = {"ttft_s": 2.0, "tpot_s": tpot}
    rate = float(timely_requests_per_s(ENGINE, 100.0, 200.0, 256.0, **limits))
    drawn, now = random.Random(5), 0.0
    arrivals = [now := now + drawn.expovariate(rate) for _ in range(3000)]
    _, first, each = followed([200] * 3000, 256, arrivals)
    assert each < tpot
    assert each > 0.7 * min(tpot, followed([200] * 2000, 256)[2])
    assert first < 0.5
    assert mean_resident_tokens(100.0, 200.0) > 100.0
