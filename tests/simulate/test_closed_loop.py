"""Users who think: exact closed forms, what a loop is by construction, and the formulas against simulated loops."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.equations.serving_load import crowd_in_line_s
from planner.estimate.resolve_serving import requests_of
from planner.estimate.serving_fleet import request_shape
from planner.estimate.serving_open import RequestShape, Targets, largest_load, load_at, slo_capacity, users_at
from planner.simulate import SimulatedLoad, Workload, simulate_replica
from planner.traffic import LengthMoments, Traffic
from tests.simulate.drawn import drawn
from tests.simulate.engines import Case, Plain, case, twelve
from tests.tiers import cases, sampled, while_time_lasts

Values = NDArray[np.float64]
CASES = {one.name: one for one in twelve()}


def loop(
    engine: Any, prompts: Values, answers: Values, users: int, think_s: float, *, limit: int, seed: int = 1, **more: Any
) -> SimulatedLoad:
    """Users who begin with a time to think, and send requests of the given lengths as they come."""
    rng = np.random.default_rng(seed)
    work = Workload(
        arrival_s=np.sort(rng.exponential(think_s, users)),
        input_tokens=prompts,
        output_tokens=answers,
        cached_tokens=0 * prompts,
        think_s=rng.exponential(think_s, len(prompts)),
    )
    return simulate_replica(engine, work, batch_limit=limit, warmup_share=0.15, **more)


def simulated(of: Case, users: int, think_s: float, seed: int = 1) -> SimulatedLoad:
    """Users of a case's replica, each with at least thirty requests."""
    count = max(20_000, 30 * users)
    made = drawn(of.shape, 1.0, count, seed=seed, lengths=of.lengths)
    return loop(of.replica, made.input_tokens, made.output_tokens, users, think_s, limit=of.limit, seed=seed)


def filled_per_s(of: Case) -> float:
    """The rate at which the slots of a replica are full on average."""
    return float(slo_capacity(of.replica, of.shape, Targets(), float(of.limit)).requests_per_s)


# ---------------------------------------------------------------- the simulation against exact results


def repairmen_rate(users: int, think_s: float, service_s: float) -> float:
    """Throughput of users who think for exponential times before one exponential server, exactly: M/M/1//N.

    State k has the weight N! / (N - k)! (S / Z)^k; the server works in all but the first.
    """
    weight, total = 1.0, 1.0
    for k in range(users):
        weight *= (users - k) * service_s / think_s
        total += weight
    return (1 - 1 / total) / service_s


@pytest.mark.parametrize("users", sampled([1, 3, 8, 20], 2))
def test_the_simulation_is_the_machine_repair_model(users: int) -> None:
    """Prompts of exponential lengths one after the other, one token each: a single exponential server."""
    rng = np.random.default_rng(4)
    prompts = np.maximum(np.rint(rng.exponential(20_000, cases(10_000, 100_000))), 1.0)
    engine = Plain(step0_s=1e-9, prompt_token_s=1e-5)
    load = loop(engine, prompts, 0 * prompts + 1, users, 1.6, limit=1000, max_batched_tokens=1000)
    assert load.requests_per_s == pytest.approx(repairmen_rate(users, 1.6, 0.2), rel=0.03)


def test_the_formulas_are_near_the_machine_repair_model() -> None:
    """The same server by the formulas, to a load of 95 %; as if the line kept nobody from coming it is 9 % off.

    Responses: 12 % off at most; 16 % with the work that waits spread like an exponential, as if the server never idled.
    """
    engine = Plain(step0_s=1e-9, prompt_token_s=1e-5)
    shape = RequestShape(input_tokens=20_000.0, output_tokens=1.0, input_second_moment=2 * 20_000.0**2)
    for users, think in ((1, 1.0), (2, 1.6), (8, 1.6), (20, 3.0), (40, 8.0)):
        found = load_at(engine, shape, float(users), 1000.0, think_s=think)
        exact = repairmen_rate(users, think, 0.2)
        assert float(found.requests_per_s) == pytest.approx(exact, rel=0.025)
        assert float(found.ttft_s["mean"]) == pytest.approx(users / exact - think, rel=0.12)
        assert float(found.e2e_s["mean"]) == pytest.approx(float(found.ttft_s["mean"]), rel=1e-3)  # one token


@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_who_stands_in_a_line_and_the_work_that_waits_there(sigma: float) -> None:
    """One server, Poisson arrivals, lengths all alike or log-normal: both as they are between one arrival and the next.

    The work V falls by a second a second; n falls by one at each end. Both are known in between, so that the means over
    time of V, n and V n are sums over the spells in which n stays as it is.
    """
    rng, rate, count = np.random.default_rng(3), 0.6, cases(100_000, 1_000_000)
    lengths, ends = np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2), []
    comes, end = np.cumsum(rng.exponential(1 / rate, count)), 0.0
    for came, length in zip(comes.tolist(), lengths.tolist(), strict=True):
        end = max(end, came) + length
        ends.append(end)
    times = np.concatenate([comes, ends])
    order = np.argsort(times, kind="stable")
    inside = np.cumsum(np.where(order < count, 1, -1))[:-1]
    spell = np.diff(times[order])
    come = np.searchsorted(comes, times[order][:-1], side="right")
    work = np.where(inside > 0, np.array(ends)[come - 1] - times[order][:-1], 0.0)  # at the begin of each spell
    whole, held = spell.sum(), work * spell - np.where(inside > 0, spell**2, 0.0) / 2
    wait, standing = held.sum() / whole, (inside * spell).sum() / whole
    seen = ((inside * held).sum() / whole - wait * standing) / wait
    moments = [float(np.exp(k * (k - 1) / 2 * sigma**2)) for k in (1, 2, 3)]
    assert float(crowd_in_line_s(rate, *moments)) == pytest.approx(seen, rel=0.15 if sigma else 0.03)


def test_without_company_or_waits_the_response_time_law_is_all() -> None:
    """An engine that slows nobody: users answer each other's absence, X = N / (Z + R) with R of an idle replica."""
    engine, users, think = Plain(step0_s=0.01, prompt_token_s=0.0, request_s=0.5), 40, 3.0
    shape = RequestShape(input_tokens=100.0, output_tokens=101.0)
    answers = np.full(20_000, 101.0)
    load = loop(engine, 0 * answers + 100, answers, users, think, limit=1000)
    found = load_at(engine, shape, float(users), 1000.0, think_s=think)
    law = users / (think + 0.5 + 0.015 + 100 * 0.01)
    assert load.requests_per_s == pytest.approx(law, rel=0.01)
    assert float(found.requests_per_s) == pytest.approx(law, rel=0.01)


def test_one_user_meets_nobody() -> None:
    """Exactly: each request finds an idle replica."""
    engine = Plain(step0_s=0.01, sequence_s=1e-3, prompt_token_s=1e-4, request_s=0.02)
    shape = RequestShape(input_tokens=1000.0, output_tokens=101.0)
    alone = 0.02 + 0.1 + 100 * 0.011
    found = load_at(engine, shape, 1.0, 64.0, think_s=2.0)
    assert float(found.requests_per_s) == pytest.approx(1 / (2.0 + alone), rel=2e-3)
    answers = np.full(2000, 101.0)
    load = loop(engine, 0 * answers + 1000, answers, 1, 2.0, limit=64)
    assert load.e2e_s["p99"] == pytest.approx(alone, rel=1e-6)


# ---------------------------------------------------------------- laws of the formulas


def test_little_holds_of_every_loop() -> None:
    """Users are those who think and those who wait: N = X (Z + R), at any load."""
    for name, users in (("8b-spread", 3.0), ("8b-spread", 60.0), ("70b-chat", 150.0), ("mixtral-few-slots", 200.0)):
        of = CASES[name]
        found = load_at(of.replica, of.shape, users, float(of.limit), think_s=12.0)
        assert float(found.requests_per_s * (12.0 + found.e2e_s["mean"])) == pytest.approx(users, rel=1e-9)


def test_more_users_send_more_and_wait_longer() -> None:
    of, users = CASES["70b-spread"], np.array([1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 150.0])
    found = load_at(of.replica, of.shape, users, float(of.limit), think_s=10.0)
    for rising in (found.requests_per_s, found.e2e_s["mean"], found.ttft_s["p95"], found.tpot_s["p95"]):
        assert (np.diff(rising) > 0).all()
    assert (np.diff(found.requests_per_s / users) < 0).all()


def test_users_and_the_rate_that_they_send_are_inverse() -> None:
    of = CASES["70b-chat"]
    rate = 0.6 * filled_per_s(of)
    users = users_at(of.replica, of.shape, float(of.limit), rate, think_s=8.0)
    again = load_at(of.replica, of.shape, users, float(of.limit), think_s=8.0)
    assert float(again.requests_per_s) == pytest.approx(rate, rel=1e-3)


def test_who_think_for_ever_are_an_open_loop() -> None:
    """At a fixed N / Z, the longer users think the nearer they are to arrivals that know nothing of each other."""
    of, targets = CASES["70b-chat"], Targets(ttft_p95_s=0.8, tpot_p95_s=0.05)
    open_rate = float(largest_load(of.replica, of.shape, targets, float(of.limit)))
    held = [
        float(largest_load(of.replica, of.shape, targets, float(of.limit), think_s=think)) / think
        for think in (10.0, 100.0, 1e4, 1e6)
    ]
    assert held[-1] == pytest.approx(open_rate, rel=1e-3)
    assert held == sorted(held, reverse=True)  # while they are answered they send nothing


def test_a_loop_that_fits_its_slots_does_not_wait_for_one() -> None:
    """Sixty users of sixty-four slots: an open loop at their rate would find them all taken at times."""
    of = CASES["8b-spread"]
    found = load_at(of.replica, of.shape, 60.0, 64.0, think_s=1.0)
    alone = load_at(of.replica, of.shape, float(found.requests_per_s), 64.0)
    assert float(found.slot_wait_s) < 1e-3 * float(alone.slot_wait_s)


# ---------------------------------------------------------------- the formulas against the simulation

# The bar of the plan: throughput within 5 % and the 95th percentile of the first token within 10 %, at loads up to 0.9.
# Beyond it, and said in docs/decisions/0052: requests that are all alike with hardly any thinking between them stay in
# step with each other, and one in twenty that waits for a slot stands on a cliff.
ALIKE = {"8b-document", "70b-short"}
CLIFF = "mixtral-few-slots"


@pytest.mark.parametrize("load", sampled([0.3, 0.6, 0.8, 0.9], 2))
@pytest.mark.parametrize("name", sampled(sorted(set(CASES) - ALIKE), 3))
def test_shapes_of_loops(name: str, load: float) -> None:
    of = CASES[name]
    rate = load * filled_per_s(of)
    think = 2 * float(load_at(of.replica, of.shape, rate, float(of.limit)).e2e_s["mean"])
    users = round(float(users_at(of.replica, of.shape, float(of.limit), rate, think_s=think)))
    found, seen = (
        load_at(of.replica, of.shape, float(users), float(of.limit), think_s=think),
        simulated(of, users, think),
    )
    assert float(found.requests_per_s) == pytest.approx(seen.requests_per_s, rel=0.03)
    assert float(found.e2e_s["mean"]) == pytest.approx(seen.e2e_s["mean"], rel=0.10)
    rough = 0.25 if name == CLIFF and load > 0.8 else 0.15
    assert float(found.ttft_s["p95"]) == pytest.approx(seen.ttft_s["p95"], rel=rough)
    assert float(found.prefill_share) == pytest.approx(seen.prefill_share, rel=0.05)


ENGINES = [
    ("llama-3.1-8b", "bf16", "bf16", 1, 1, "h100"), ("llama-3.1-8b", "fp8", "fp8", 1, 1, "l40s"),
    ("llama-3.1-8b", "bf16", "bf16", 1, 1, "a100"), ("llama-3.1-70b", "fp8", "fp8", 4, 1, "h100"),
    ("llama-3.1-70b", "fp8", "fp8", 2, 1, "h200"), ("gpt-oss-120b", "mxfp4", "bf16", 4, 1, "h100"),
    ("deepseek-v3", "fp8", "fp8", 8, 1, "h200"), ("mixtral-8x7b", "bf16", "bf16", 2, 1, "h100"),
    ("llama-3.1-70b", "fp8", "fp8", 2, 1, "b200"),
]  # fmt: skip


class Compared(NamedTuple):
    """Formula over simulation, less 1."""

    rate: float
    late_first_token: float
    slot_wait_s: float


def compared(seed: int) -> Compared:
    """A random loop: engine, lengths of 50 to 8,000 tokens, their spread, slots, load to 0.9, thinking to ten answers.

    Lengths are those that a fleet with `{mean:, p95:}` has, in its twenty classes.
    """
    rng = np.random.default_rng(seed)
    engine = ENGINES[rng.integers(len(ENGINES))]
    prompt, prompt_spread = float(np.exp(rng.uniform(np.log(100), np.log(8000)))), rng.uniform(1.1, 2.0)
    answer, answer_spread = float(np.exp(rng.uniform(np.log(50), np.log(1000)))), rng.uniform(1.1, 2.0)
    of = case("random", engine, (prompt, prompt_spread, answer, answer_spread), int(rng.choice([48, 64, 128, 256])))
    lengths = [
        LengthMoments(mean=mean, second_moment=spread * mean**2, sigma=float(np.sqrt(np.log(spread))))
        for mean, spread in ((prompt, prompt_spread), (answer, answer_spread))
    ]
    traffic = Traffic.of_lengths(*lengths, requests_per_s=1.0)
    shape, slots = request_shape(requests_of(traffic).mixed(np.asarray(traffic.share))), float(of.limit)
    rate = rng.uniform(0.1, 0.9) * one(slo_capacity(of.replica, shape, Targets(), slots).requests_per_s)
    answered = one(load_at(of.replica, shape, rate, slots).e2e_s["mean"])
    think = answered * float(np.exp(rng.uniform(np.log(0.2), np.log(10))))
    users = max(int(one(users_at(of.replica, shape, slots, rate, think_s=think))), 1)
    found, seen = load_at(of.replica, shape, float(users), slots, think_s=think), simulated(of, users, think, seed)
    return Compared(
        rate=one(found.requests_per_s) / seen.requests_per_s - 1,
        late_first_token=one(found.ttft_s["p95"]) / seen.ttft_s["p95"] - 1,
        slot_wait_s=one(found.slot_wait_s),
    )


def one(value: Any) -> float:
    return float(np.ravel(value)[0])


def test_random_loops() -> None:
    """24 of 25 within the bar; beyond it rates within 8 %, first tokens within 16 % where slots are free."""
    loops = [compared(seed) for seed in while_time_lasts(range(100, 100 + cases(4, 140)))]
    kept = [abs(each.rate) < 0.05 and abs(each.late_first_token) < 0.10 for each in loops]
    assert sum(kept) >= 0.96 * len(loops)
    assert max(abs(each.rate) for each in loops) < 0.08
    assert max(abs(each.late_first_token) for each in loops if each.slot_wait_s < 1e-3) < 0.16
