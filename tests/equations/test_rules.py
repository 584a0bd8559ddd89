"""Rules of thumb and what they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from planner.equations import reliability, rules
from tests.published.equations.reliability import daly_interval_s, young_interval_s
from tests.published.equations.rules import implied_sustained_flop_per_s


def test_the_constant_is_an_utilisation() -> None:
    assert pytest.approx(125.3e12, rel=1e-3) == rules.A100_SUSTAINED_FLOP_PER_S
    assert pytest.approx(0.402, abs=5e-4) == rules.A100_RULE_MFU
    assert implied_sustained_flop_per_s(13.3) == rules.A100_SUSTAINED_FLOP_PER_S


def test_hours_and_devices_are_inverse() -> None:
    hours = rules.training_hours(200e9, 8e9, 2, 64)
    assert hours == 13.3 * 200 * 2 * 8 / 64
    assert rules.devices_for_deadline(200e9, 8e9, 2, hours) == pytest.approx(64)


def test_twice_the_sustained_rate_halves_the_time() -> None:
    fast = rules.training_hours(1e12, 7e9, 1, 8, 2 * rules.A100_SUSTAINED_FLOP_PER_S)
    assert fast == pytest.approx(rules.training_hours(1e12, 7e9, 1, 8) / 2)


def test_the_rule_is_six_flop_a_parameter_and_token() -> None:
    """Independent arithmetic: 6 N D over what the devices sustain."""
    seconds = 6 * 8e9 * 200e9 / (64 * rules.A100_SUSTAINED_FLOP_PER_S)
    assert rules.training_hours(200e9, 8e9, 1, 64) * 3600 == pytest.approx(seconds)


def test_critical_batch() -> None:
    factor = rules.critical_batch_token_factor(np.array([1e6, 8e6, 16e6]), 8e6)
    assert factor.tolist() == [1, 1, 3]
    assert rules.critical_batch_token_factor(16e6, np.nan) == 1


def test_recompute_range_of_the_founding_rule() -> None:
    low, high = rules.FULL_RECOMPUTE_TIME_RANGE
    assert rules.full_recompute_time_factor(low) == 1.25
    assert rules.full_recompute_time_factor() == 1 + high


def test_both_readings_of_throughput() -> None:
    assert rules.serving_devices(200, 2100, 1000) == pytest.approx(1.587, abs=1e-3)
    assert rules.serving_concurrency(200, 50, 1000) == pytest.approx(66.67, abs=1e-2)


def test_steps() -> None:
    per_step = rules.tokens_per_step(512, 8192)
    assert rules.optimizer_steps(200e9, 1, per_step) == pytest.approx(47683.7, abs=0.1)


def test_young_interval_is_the_best_of_all_intervals() -> None:
    delta, mtbf = 60.0, 3.09 * 3600
    best = young_interval_s(delta, mtbf)
    loss = reliability.inverse_goodput(delta, best * np.array([0.5, 0.9, 1.0, 1.1, 2.0]), mtbf)
    assert loss.argmin() in (1, 2)
    assert daly_interval_s(delta, mtbf) == pytest.approx(best - delta)


def test_a_job_that_fails_faster_than_it_restarts_never_ends() -> None:
    assert reliability.inverse_goodput(60, 600, 100, 600) == np.inf
    assert reliability.inverse_goodput(0, 1e-9, 1e12) == pytest.approx(1)


@pytest.mark.parametrize(("warning_s", "lost_s"), [(0.0, 300.0), (59.9, 300.0), (60.0, 60.0), (61.0, 60.0)])
def test_a_warning_as_long_as_a_checkpoint_saves_the_work(warning_s: float, lost_s: float) -> None:
    """Work of half an interval of 600 s is undone, or a checkpoint of 60 s is written in time."""
    assert reliability.preemption_lost_s(600.0, 60.0, warning_s) == lost_s


def test_a_warning_never_costs_more_than_it_saves() -> None:
    assert reliability.preemption_lost_s(100.0, 60.0, 60.0) == 50.0
