"""Moments of lengths: exact against sampling, limits of what a log-normal can be, hostile pairs."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.equations.lengths import NORMAL_P95, lognormal_second_moment, lognormal_sigma, squared_variation
from planner.traffic import LengthMoments, Traffic
from planner.traffic.model import HIGHEST_P95_OVER_MEAN
from tests.tiers import settings

means = st.floats(1.0, 1e6)
ratios = st.floats(1.0, HIGHEST_P95_OVER_MEAN * (1 - 1e-9))


def test_the_normal_percentile() -> None:
    assert statistics.NormalDist().inv_cdf(0.95) == pytest.approx(NORMAL_P95, rel=1e-12)


@given(mean=means, ratio=ratios)
def test_mean_and_percentile_come_back(mean: float, ratio: float) -> None:
    sigma = float(lognormal_sigma(mean, mean * ratio))
    assert 0 <= sigma <= NORMAL_P95
    mu = math.log(mean) - sigma**2 / 2
    assert math.exp(mu + NORMAL_P95 * sigma) == pytest.approx(mean * ratio, rel=1e-9)


def test_moments_against_sampling() -> None:
    moments = LengthMoments.lognormal(1500, 4000)
    sigma = float(lognormal_sigma(1500, 4000))
    sample = np.random.default_rng(1).lognormal(math.log(1500) - sigma**2 / 2, sigma, 2_000_000)
    assert sample.mean() == pytest.approx(1500, rel=0.005)
    assert np.quantile(sample, 0.95) == pytest.approx(4000, rel=0.01)
    assert (sample**2).mean() == pytest.approx(moments.second_moment, rel=0.02)


@pytest.mark.parametrize("p95", [0.99, 0.1, 3.87, 100.0])
def test_impossible_pairs(p95: float) -> None:
    assert np.isnan(lognormal_sigma(1.0, p95))
    with pytest.raises(ValueError, match="no log-normal"):
        LengthMoments.lognormal(1.0, p95)


def test_the_edges_of_the_possible() -> None:
    assert float(lognormal_sigma(7.0, 7.0)) == 0.0
    # at the highest ratio p95 / mean, the spread is z itself
    assert float(lognormal_sigma(1.0, HIGHEST_P95_OVER_MEAN * (1 - 1e-12))) == pytest.approx(NORMAL_P95, rel=1e-5)


@given(classes=st.lists(st.tuples(st.floats(1, 1e5), st.floats(0.01, 1)), min_size=1, max_size=20))
def test_histogram_moments_are_those_of_the_classes(classes: list[tuple[float, float]]) -> None:
    tokens, shares = np.array(classes).T
    moments = LengthMoments.histogram(classes)
    assert moments.mean == pytest.approx(np.average(tokens, weights=shares))
    assert moments.second_moment == pytest.approx(np.average(tokens**2, weights=shares))
    assert moments.second_moment >= moments.mean**2 * (1 - 1e-12)


@settings(max_examples=30)
@given(sigma=st.floats(0, 2), mean=means)
def test_variation_of_a_lognormal(sigma: float, mean: float) -> None:
    found = squared_variation(mean, lognormal_second_moment(mean, sigma))
    assert float(found) == pytest.approx(math.expm1(sigma**2), rel=1e-6, abs=1e-9)


def test_plain_numbers_are_one_bucket() -> None:
    traffic = Traffic.of_lengths(1500, 400, requests_per_s=10, peak_factor=2)
    assert traffic.buckets == ("all",)
    assert traffic.input_second_moment[0] == 1500**2
    assert (traffic.mean_input_tokens, traffic.mean_output_tokens) == (1500, 400)
    assert traffic.peak_requests_per_s == 20
    assert traffic == Traffic.of_lengths(1500, 400, requests_per_s=10, peak_factor=2)
    assert traffic != Traffic.of_lengths(1500, LengthMoments.lognormal(400, 1200), requests_per_s=10, peak_factor=2)


@settings(max_examples=50)
@given(mean=means, ratio=ratios)
def test_parts_of_a_lognormal_add_up(mean: float, ratio: float) -> None:
    """Shares, means and second moments; each part has lengths within its edges."""
    whole = LengthMoments.lognormal(mean, mean * ratio)
    parts = whole.cut((0.3, 0.6, 0.8, 0.92, 1.0))
    assert sum(part.share for part in parts) == pytest.approx(1)
    assert sum(part.share * part.mean for part in parts) == pytest.approx(mean)
    assert sum(part.share * part.second_moment for part in parts) == pytest.approx(whole.second_moment)
    assert all(part.second_moment >= part.mean**2 * (1 - 1e-9) for part in parts)
    assert [part.mean for part in parts] == sorted(part.mean for part in parts)


def test_parts_of_a_lognormal_against_sampling() -> None:
    """The buckets that a trace of such lengths has."""
    sigma = float(lognormal_sigma(1500, 4000))
    sample = np.sort(np.random.default_rng(1).lognormal(math.log(1500) - sigma**2 / 2, sigma, 1_000_000))
    edges = np.cumsum([0.3, 0.3, 0.2, 0.12, 0.08])
    parts = LengthMoments.lognormal(1500, 4000).cut(tuple(edges.round(2)))
    for part, found in zip(parts, np.split(sample, (edges[:-1] * len(sample)).astype(int))):
        assert part.mean == pytest.approx(found.mean(), rel=0.01)
        assert part.second_moment == pytest.approx((found**2).mean(), rel=0.03)
        assert part.name.endswith("+") == (part is parts[-1])
        assert float(part.name.rstrip("+")) == pytest.approx(found[0] if part is parts[-1] else found[-1], rel=0.01)


def test_parts_of_a_histogram_are_its_classes_in_order() -> None:
    parts = LengthMoments.histogram([(30, 0.5), (10, 0.2), (20, 0.3)]).cut((0.4, 1.0))
    assert [(part.name, round(part.share, 9)) for part in parts] == [("20", 0.5), ("30", 0.5)]
    assert parts[0].mean == pytest.approx((10 * 0.2 + 20 * 0.3) / 0.5)
    assert [part.name for part in LengthMoments.histogram([(10, 0.5), (20, 0.5)]).cut((1.0,))] == ["15"]
