"""Waits for steps that take in several prompts: oracles of queues, and a small simulation of the gate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.estimate import serving_wait
from planner.estimate.serving_wait import Steps


def steps(rate: float, prefill: list[float], shares: list[float], **changes: Any) -> Steps:
    each, weight = np.array(prefill)[:, None], np.array(shares)[:, None]
    given: dict[str, Any] = {
        "decode_s": np.array([0.02]), "requests_per_s": np.array([rate]), "prefill_s": each, "variation": 0 * each,
        "shares": weight, "unshared": np.zeros(1), "mean_s": np.array([0.1]),
    }  # fmt: skip
    return Steps(**{**given, **changes})


def gate(rate: float, prefill: list[float], shares: list[float], count: int = 300_000) -> tuple[Any, Any]:
    """Lengths of steps that each take in what came during the last, and waits: rest of a step and all of the next."""
    rng = np.random.default_rng(1)
    lengths, waits = [0.02], []
    for _ in range(count):
        last = lengths[-1]
        came = rng.poisson(rate * last)
        prompts = rng.choice(prefill, size=came, p=shares)
        total = float(prompts.sum())
        waits += [
            last * (1 - at) + total - prompt for at, prompt in zip(rng.random(came), prompts.tolist(), strict=True)
        ]
        lengths.append(0.02 + total)
    return np.array(lengths), np.array(waits)


@pytest.mark.parametrize("long", [0.05, 0.4])
def test_gate_against_its_simulation(long: float) -> None:
    prefill, shares, rate = [0.01, long], [0.9, 0.1], 8.0
    lengths, waits = gate(rate, prefill, shares, 60_000)
    found = steps(rate, prefill, shares, mean_s=np.array([waits.mean()]))
    for share in (0.5, 0.9, 0.95, 0.99):
        assert found.wait_s(share)[0] == pytest.approx(np.quantile(waits, share), rel=0.12, abs=0.006), share
    for share in (0.9, 0.95, 0.99):
        assert found.length_s(share)[0] == pytest.approx(np.quantile(lengths, share), rel=0.12, abs=0.015), share


def test_a_line_has_the_wait_of_pollaczek_and_khinchine() -> None:
    """Exponential prompts in a line, M/M/1: share rho waits, exponentially with mean 1 / (mu - x)."""
    found = steps(
        6.0, [0.1], [1.0], variation=np.ones((1, 1)), unshared=np.ones(1), mean_s=np.array([0.15]),
        decode_s=np.array([1e-6]),
    )  # fmt: skip
    for share in (0.9, 0.95, 0.99):
        assert found.wait_s(share)[0] == pytest.approx(0.25 * np.log(0.6 / (1 - share)), rel=0.05)


def test_waits_rise_with_the_share() -> None:
    found = steps(5.0, [0.01, 0.3], [0.9, 0.1]).wait_s(np.linspace(0.01, 0.999, 50)[:, None])
    assert (np.diff(found[:, 0]) >= 0).all()


@pytest.mark.parametrize("busy", [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
def test_a_replica_that_is_hardly_busy_lets_nobody_wait_longer_than_a_prompt(busy: float) -> None:
    """Waits finer than the lattice once came out as endless, so that no mix kept a target at p99, even when idle."""
    rate = busy / 0.02  # of a second, the prompts of a class taking 20 ms in the mean
    found = steps(
        rate, [0.012, 0.024], [1 / 3, 2 / 3], mean_s=np.array([0.02 * busy]), decode_s=np.array([0.016 * busy]),
    )  # fmt: skip
    assert found.wait_s(0.99)[0] < 0.024
    assert found.wait_s(0.999)[0] < 0.05


def test_classes_of_equal_prompts_are_transformed_once_each_with_its_own_share() -> None:
    """Three classes of two lengths, in no order, wait as two classes do; of other spread they stay apart."""
    apart = steps(4.0, [0.2, 0.01, 0.2], [0.1, 0.6, 0.3])
    joined = steps(4.0, [0.01, 0.2], [0.6, 0.4])
    assert len(apart._prompts[0]) == 2
    assert apart.wait_table[0] == pytest.approx(joined.wait_table[0], rel=1e-9, abs=1e-12)
    spread = steps(4.0, [0.2, 0.01, 0.2], [0.1, 0.6, 0.3], variation=np.array([[0.0], [0.0], [2.0]]))
    assert len(spread._prompts[0]) == 3


def test_the_turns_that_are_left_out_are_a_geometric_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an engine that is busy to nine tenths a hundred turns count: two dozen, and what follows from the last."""
    busy, at = steps(9.0, [0.1], [1.0]), np.array([[0.001 + 0.002j], [0.02j]])
    (short,) = busy._exponent(at)
    monkeypatch.setattr(serving_wait, "TURNS", 2_000)
    monkeypatch.setattr(serving_wait, "LINEAR", 0.0)
    (long,) = busy._exponent(at)
    assert np.abs(short / long - 1).max() < 1e-3


def test_each_exponent_is_what_it_is_alone() -> None:
    """One is done after a few turns, and does not go on with the other, which takes all."""
    found, slow, quick = steps(6.0, [0.1], [1.0]), np.array([[3.0 + 4.0j]]), np.array([[1e-6j]])
    for pair, alone in zip(found._exponent(slow, quick), (*found._exponent(slow), *found._exponent(quick))):
        assert (pair == alone).all()
