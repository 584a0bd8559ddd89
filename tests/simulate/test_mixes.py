"""Mixes of request classes: percentiles of the mixture against the simulation, and what they are by construction."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from planner.estimate.resolve_serving import Requests, requests_of
from planner.estimate.serving_fleet import request_shape
from planner.estimate.serving_mix import GRID, mixture_percentile
from planner.estimate.serving_open import OpenLoad, RequestShape, Targets, largest_load, load_at, slo_capacity
from planner.estimate.serving_requests import Mix
from planner.scenario.load import load_scenario
from planner.simulate import SimulatedLoad, Workload, simulate_replica
from tests.simulate.engines import Plain, replica_of
from tests.tiers import sampled, settings

Values = NDArray[np.float64]
SCENARIOS = Path(__file__).parents[2] / "scenarios"
LOADS = (0.3, 0.6, 0.8)
SMALL = ("llama-3.1-8b", "fp8", "fp8", 1, 1)
LARGE = ("llama-3.1-70b", "fp8", "fp8")
MIXES: dict[str, tuple[str, tuple[Any, ...], int]] = {
    "chat on h100": ("chat-fleet", (*SMALL, "h100"), 256),
    "chat on l40s": ("chat-fleet", (*SMALL, "l40s"), 128),
    "two kinds on h100": ("0.1", (*SMALL, "h100"), 128),
    "few long on h200": ("0.03", (*LARGE, 2, 1, "h200"), 128),
    "trace on h200": ("trace", (*LARGE, 4, 1, "h200"), 128),
    "trace on h100": ("trace", (*LARGE, 4, 1, "h100"), 64),
}


def mix_of(shares: Any, prompts: Any, answers: Any, prompt_spread: Any = 1.0, answer_spread: Any = 1.0) -> RequestShape:
    """Classes as one shape, with the moments of all of them."""
    share, prompt, answer = (np.asarray(part, dtype=float)[:, None] for part in (shares, prompts, answers))
    classes = RequestShape(
        input_tokens=prompt,
        output_tokens=answer,
        input_second_moment=prompt**2 * prompt_spread,
        output_second_moment=answer**2 * answer_spread,
    )
    return RequestShape(
        input_tokens=(share * prompt).sum(axis=0),
        output_tokens=(share * answer).sum(axis=0),
        input_second_moment=(share * prompt**2 * prompt_spread).sum(axis=0),
        output_second_moment=(share * answer**2 * answer_spread).sum(axis=0),
        mix=Mix(share=share, classes=classes),
    )


@cache
def shape_of(name: str) -> RequestShape:
    """A scenario's requests, or short ones of which a share is long."""
    if name[0].isdigit():
        return mix_of([1 - float(name), float(name)], [500, 16_000], [200, 400])
    traffic = load_scenario(SCENARIOS / f"{name}.yaml").serving[0].traffic
    return request_shape(requests_of(traffic).mixed(np.asarray(traffic.share)))


def drawn(shape: RequestShape, rate: float, seed: int = 1, count: int = 60_000) -> Workload:
    """Requests of each class as often as its share, in one Poisson stream."""
    assert shape.mix is not None
    rng, classes = np.random.default_rng(seed), shape.mix.classes
    kind = rng.choice(len(shape.mix.share), size=count, p=shape.mix.share[:, 0])

    def lengths(mean: Values, spread: Values) -> Values:
        sigma = np.sqrt(np.log(spread[:, 0]))[kind]
        drawn = mean[:, 0][kind] * np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2)
        return np.maximum(np.rint(drawn), 1.0)

    prompts = lengths(classes.input_tokens, classes.input_spread)
    answers = lengths(classes.output_tokens, classes.output_spread)
    arrival = np.cumsum(rng.exponential(1 / rate, count))
    return Workload(arrival_s=arrival, input_tokens=prompts, output_tokens=answers, cached_tokens=0 * prompts)


def one(value: Any) -> float:
    return float(np.ravel(value)[0])


@cache
def both(name: str, load: float) -> tuple[OpenLoad, SimulatedLoad]:
    """Formula and simulation at a share of the rate at which slots are full on average."""
    source, engine, limit = MIXES[name]
    replica, shape = replica_of(*engine), shape_of(source)
    rate = load * one(slo_capacity(replica, shape, Targets(), float(limit)).requests_per_s)
    simulated = simulate_replica(replica, drawn(shape, rate), batch_limit=limit, warmup_share=0.15)
    return load_at(replica, shape, rate, float(limit)), simulated


@pytest.mark.parametrize(("name", "load"), sampled([(name, load) for name in MIXES for load in LOADS], 4))
def test_mixes(name: str, load: float) -> None:
    """The bar: time per token within 7 %, 95th percentile of the first token within 20 %, at loads up to 0.8."""
    predicted, simulated = both(name, load)
    assert one(predicted.tpot_s["mean"]) == pytest.approx(simulated.tpot_s["mean"], rel=0.07)
    assert one(predicted.tpot_s["p95"]) == pytest.approx(simulated.tpot_s["p95"], rel=0.24)
    assert one(predicted.ttft_s["mean"]) == pytest.approx(simulated.ttft_s["mean"], rel=0.16)
    assert one(predicted.ttft_s["p95"]) == pytest.approx(simulated.ttft_s["p95"], rel=0.20)
    if load < 0.8:  # there slots run full in rare, long spells: see the twelve shapes
        assert one(predicted.ttft_s["p99"]) == pytest.approx(simulated.ttft_s["p99"], rel=0.20)
    assert one(predicted.e2e_s["p95"]) == pytest.approx(simulated.e2e_s["p95"], rel=0.22)
    assert one(predicted.itl_p99_s) >= one(predicted.tpot_s["mean"])


# ---------------------------------------------------------------- by construction


def test_equal_classes_are_one_class_to_the_last_digit() -> None:
    replica, shape = replica_of(*SMALL, "h100"), mix_of([0.3, 0.2, 0.5], [1500] * 3, [300] * 3, 1.2, 1.3)
    single = RequestShape(
        input_tokens=shape.input_tokens,
        output_tokens=shape.output_tokens,
        input_second_moment=shape.input_second_moment,
        output_second_moment=shape.output_second_moment,
    )
    mixed, alone = load_at(replica, shape, 8.0, 128.0), load_at(replica, single, 8.0, 128.0)
    for table in ("ttft_s", "tpot_s", "e2e_s"):
        assert getattr(mixed, table) == getattr(alone, table)
    assert mixed.itl_p99_s == alone.itl_p99_s


def test_a_bucket_served_alone_has_no_mix() -> None:
    traffic = load_scenario(SCENARIOS / "chat-fleet.yaml").serving[0].traffic
    every: Requests = requests_of(traffic)
    sent = np.zeros(len(traffic.share))
    sent[3] = 2.0
    shape = request_shape(every.mixed(sent))
    assert shape.mix is None
    assert one(shape.input_tokens) == traffic.input_tokens[3]
    assert request_shape(every.mixed(np.asarray(traffic.share))).mix is not None


@given(
    short=st.floats(50, 2000),
    long=st.floats(3000, 30_000),
    share=st.floats(0.01, 0.99),
    load=st.floats(0.1, 0.9),
)
@settings(max_examples=30)
def test_percentiles_lie_between_the_classes_and_rise(short: float, long: float, share: float, load: float) -> None:
    """Short and long prompts in the same queue; and a gap between tokens is never below their mean."""
    engine = Plain(step0_s=0.01, sequence_s=1e-4, prompt_token_s=2e-5)
    shape = mix_of([1 - share, share], [short, long], [100, 300])
    rate = load * one(slo_capacity(engine, shape, Targets(), 128.0).requests_per_s)
    found = load_at(engine, shape, rate, 128.0)
    for table in (found.ttft_s, found.tpot_s, found.e2e_s):
        p50, p90, p95, p99 = (one(table[key]) for key in ("p50", "p90", "p95", "p99"))
        assert p50 <= p90 <= p95 <= p99
    assert one(found.itl_p99_s) >= one(found.tpot_s["mean"])
    assert one(found.ttft_s["p50"]) >= short * 2e-5 * 0.999


@given(
    means=st.lists(st.floats(0.1, 50), min_size=2, max_size=6),
    level=st.sampled_from([0.5, 0.9, 0.95, 0.99]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60)
def test_mixture_of_exponentials(means: list[float], level: float, seed: int) -> None:
    """The oracle: the share of each class below the percentile, weighted, is the level; and it lies between them."""
    scale = np.array(means)[:, None]
    shares = np.random.default_rng(seed).dirichlet(np.ones(len(means)))[:, None]
    own = -np.log(1 - level) * scale
    found = mixture_percentile(own, -np.log1p(-GRID.share) * scale, shares, level)
    assert own.min() <= found[0] <= own.max() * (1 + 1e-12)
    assert float((shares * (1 - np.exp(-found / scale))).sum()) == pytest.approx(level, abs=0.003)


def test_rows_of_a_mix_are_what_they_are_alone() -> None:
    engines = Plain(step0_s=np.array([0.01, 0.02, 0.005]), sequence_s=1e-4, prompt_token_s=2e-5)
    shape, targets = mix_of([0.8, 0.2], [500, 8000], [100, 300]), Targets(ttft_p95_s=0.5, tpot_p95_s=0.05)
    whole = shape.take(np.zeros(3, dtype=np.int64))
    together = slo_capacity(engines, whole, targets, np.full(3, 64.0))
    for row in range(3):
        alone = slo_capacity(engines.take(np.array([row])), shape, targets, np.full(1, 64.0))
        assert one(together.requests_per_s[row]) == pytest.approx(one(alone.requests_per_s), rel=1e-3)
        assert together.binding[row] == alone.binding[0]
    assert all((left >= 0).all() for left in together.margin(targets).values())
    more = load_at(engines, whole, together.requests_per_s * 1.01, 64.0)
    assert (np.min(list(more.margin(targets).values()), axis=0) < 0).all()


def test_what_fills_the_slots_does_not_depend_on_company() -> None:
    """A verifier looks at one replica, a search at many: a fleet that just carries its load must for both."""
    shape, limits, steps = (
        mix_of([0.7, 0.3], [500, 9_000], [200, 400]),
        np.array([37.0, 64.0, 200.0]),
        [0.01, 0.02, 0.03],
    )
    together = largest_load(Plain(step0_s=np.array(steps), sequence_s=1e-4), shape, Targets(), limits)
    alone = [
        float(largest_load(Plain(step0_s=step, sequence_s=1e-4), shape, Targets(), limit)[0])
        for step, limit in zip(steps, limits)
    ]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_classes_that_are_all_alike_are_one() -> None:
    engine, limits = Plain(step0_s=np.array([0.01, 0.02]), sequence_s=1e-4), np.array([16.0, 64.0])
    for targets in (Targets(), Targets(ttft_p95_s=0.5, tpot_p95_s=0.04)):
        twice = largest_load(engine, mix_of([0.5, 0.5], [800, 800], [300, 300]), targets, limits)
        once = RequestShape(input_tokens=800.0, output_tokens=300.0)
        np.testing.assert_allclose(twice, largest_load(engine, once, targets, limits), rtol=1e-6)
