"""Levels of load: they cover what is asked for, lose the least that so few can, and keep the hours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.traffic import Traffic
from planner.traffic.model import load_levels, look_ahead, nested_levels
from tests.tiers import settings

loads = st.lists(st.integers(0, 12).map(float), min_size=1, max_size=9)


def lost(load: np.ndarray, shares: np.ndarray, levels: np.ndarray) -> float:
    """What is there above what is asked for, each load rounded up to its level."""
    above = levels[np.searchsorted(levels, load)]
    return float(shares @ (above - load))


@settings(max_examples=200)
@given(load=loads, most=st.integers(1, 5), seed=st.integers(0, 99))
def test_levels_cover_and_lose_least(load: list[float], most: int, seed: int) -> None:
    values = np.array(load)
    shares = np.random.default_rng(seed).dirichlet(np.ones(values.size))
    levels, portions = nested_levels(values, shares, most)
    distinct = np.unique(values)
    assert levels.size == portions.size == min(most, distinct.size)
    assert np.all(np.diff(levels) > 0)
    assert levels[-1] == values.max()
    assert portions.sum() == pytest.approx(1)
    best = min(
        lost(values, shares, np.array([*chosen, distinct[-1]]))
        for chosen in itertools.combinations(distinct[:-1], levels.size - 1)
    )
    assert lost(values, shares, levels) == pytest.approx(best, abs=1e-9)
    for level, portion in zip(levels, portions, strict=True):
        assert portion == pytest.approx(shares[levels[np.searchsorted(levels, values)] == level].sum())


@settings(max_examples=100)
@given(load=loads, delay=st.floats(0, 12))
def test_what_is_ready_covers_the_load_until_a_replica_is_up(load: list[float], delay: float) -> None:
    """Against a fine grid of time: at each moment the most from now until the delay has passed."""
    values, fine = np.array(load), 64
    times = (np.arange(values.size * fine) + 0.5) / fine
    ahead = np.linspace(0, delay, max(2, int(delay * 2 * fine) + 2))
    exact = values[np.floor(times[:, None] + ahead[None, :]).astype(int) % values.size].max(axis=1)
    ready, shares = look_ahead(values, delay)
    assert shares.sum() == pytest.approx(1)
    assert shares @ ready == pytest.approx(exact.mean(), abs=12 * 2 / fine)
    assert ready.max() == values.max()


def test_ten_minutes_before_the_rush() -> None:
    ready, shares = look_ahead([1.0, 5.0, 1.0], 1 / 6)
    assert shares @ ready == pytest.approx((1 * 5 / 6 + 5 / 6 + 5 + 1) / 3)


def fleet(**given: object) -> Traffic:
    return Traffic.of_lengths(100, 50, requests_per_s=6.0, **given)  # type: ignore[arg-type]


def test_a_flat_fleet_has_one_level() -> None:
    levels = load_levels(fleet(peak_factor=1.5), 600, 730 * 3600)
    assert levels.load == pytest.approx([9.0])
    assert levels.hours == pytest.approx([730.0])


def test_levels_of_a_day() -> None:
    profile = (0.5,) * 12 + (1.5,) * 12
    levels = load_levels(fleet(peak_factor=1.5, profile=profile), 1800, 730 * 3600)
    assert levels.load == pytest.approx([3.0, 9.0])
    assert levels.hours == pytest.approx([730 * 11.5 / 24, 730 * 12.5 / 24])
    assert levels.hours_at_least == pytest.approx([730.0, 730 * 12.5 / 24])
    # the margin that the user asks for holds at night too
    assert load_levels(fleet(peak_factor=3, profile=profile), 1800, 730 * 3600).load == pytest.approx([6, 18])


def test_a_start_up_longer_than_the_profile_needs_the_peak_always() -> None:
    levels = load_levels(fleet(peak_factor=1.5, profile=(0.5,) * 12 + (1.5,) * 12), 2 * 86400, 3600)
    assert levels.load == pytest.approx([9.0])


def test_the_hours_of_a_week_are_levels_at_once() -> None:
    week = np.abs(np.random.default_rng(0).normal(1, 0.4, 168))
    levels = load_levels(fleet(peak_factor=2, profile=tuple(week / week.mean())), 420, 1e6)
    assert levels.load.size == 6
    assert levels.hours.sum() == pytest.approx(1e6 / 3600)
