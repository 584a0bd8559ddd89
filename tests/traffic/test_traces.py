"""Traces: what was put in comes out; broken files give one error a mistake, at its line and column."""

from __future__ import annotations

import math
import runpy
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.traffic import request_trace
from planner.traffic import request_trace as trace_module
from planner.traffic.request_trace import quantile_grid, read_trace
from tests.tiers import settings

ROOT = Path(__file__).parents[2]
HEAD = "timestamp,input_tokens,output_tokens\n"
DAY_S = 86_400.0


LEAST_SHARE = 0.005  # of the requests, in a bucket


def poisson(rate: float, seconds: float, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return np.sort(draw.random(draw.poisson(rate * seconds)) * seconds)


@pytest.mark.parametrize("count", [2, 3, 1000])
def test_even_arrivals_have_the_rate_of_their_gaps(count: int) -> None:
    """What is seen of n requests lasts n gaps: half of one before the first, half of one after the last."""
    times = 100.0 + 0.25 * np.arange(count)
    assert request_trace.observed_s(times) == pytest.approx(0.25 * count)
    assert request_trace.mean_rate(times, np.zeros(0)) == pytest.approx(4.0)


def test_one_request_has_no_rate() -> None:
    assert request_trace.observed_s(np.array([5.0])) == 0.0
    assert request_trace.mean_rate(np.array([5.0]), np.zeros(0)) == 0.0


def written(folder: Path, text: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return path


# ---- arrivals


def test_poisson_arrivals_have_variation_one() -> None:
    times = poisson(2.0, 20_000)
    assert request_trace.burstiness(times) == pytest.approx(1.0, abs=0.05)
    assert request_trace.mean_rate(times, np.zeros(0)) == pytest.approx(2.0, rel=0.02)


def test_hyperexponential_arrivals_keep_their_variation() -> None:
    draw = np.random.default_rng(3)
    share = (1 + math.sqrt(3 / 5)) / 2  # balanced means, squared variation 4
    often = draw.random(60_000) < share
    gaps = draw.exponential(1 / (2 * np.where(often, share, 1 - share)))
    assert request_trace.burstiness(np.cumsum(gaps)) == pytest.approx(4.0, rel=0.1)


def test_equal_gaps_have_variation_zero() -> None:
    assert request_trace.burstiness(np.arange(10_000) * 0.5) == pytest.approx(0.0, abs=1e-3)


def test_the_daily_profile_is_no_burstiness() -> None:
    """Poisson arrivals whose rate varies tenfold within the day: the raw gaps vary, the stretched ones as Poisson."""
    times = poisson(4.0, 3 * DAY_S, seed=5)
    keep = np.random.default_rng(6).random(times.size) < 0.55 + 0.45 * np.sin(2 * np.pi * times / DAY_S)
    times = times[keep]
    gaps = np.diff(times)
    assert gaps.var() / gaps.mean() ** 2 > 1.5
    assert request_trace.burstiness(times) == pytest.approx(1.0, abs=0.05)


def test_whole_seconds_are_no_burstiness() -> None:
    times = np.floor(poisson(20.0, 5_000))
    gaps = np.diff(times)
    assert gaps.var() / gaps.mean() ** 2 > 10
    assert request_trace.burstiness(times) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("days", [1, 2, 7, 10])
def test_profile_is_the_rate_of_the_hours(days: int) -> None:
    base = poisson(3.0, days * DAY_S, seed=days)
    weight = np.where((base // 3600) % 24 < 8, 0.2, 1.0)
    times = base[np.random.default_rng(1).random(base.size) < weight]
    rates = request_trace.slot_rates(times)
    assert rates.size == (168 if days >= 7 else 24)
    assert rates.reshape(-1, 24)[:, :8] == pytest.approx(0.6, rel=0.15)
    assert rates.reshape(-1, 24)[:, 8:] == pytest.approx(3.0, rel=0.08)
    assert request_trace.mean_rate(times, rates) == pytest.approx((8 * 0.6 + 16 * 3.0) / 24, rel=0.02)
    assert request_trace.peak_factor(times, rates) == pytest.approx(rates.max() / rates.mean())


def test_a_day_and_a_half_does_not_count_its_second_night_twice() -> None:
    base = poisson(1.0, 1.5 * DAY_S)
    times = base[((base // 3600) % 24 < 12)]
    rates = request_trace.slot_rates(times)
    assert rates[:12] == pytest.approx(1.0, rel=0.15)
    assert rates[12:].max() == 0


def test_few_requests_have_no_profile() -> None:
    assert request_trace.slot_rates(poisson(0.005, 8 * DAY_S)).size == 24  # 3,456 requests: 20 an hour of the week
    assert request_trace.slot_rates(poisson(0.001, 8 * DAY_S)).size == 0


def test_peak_of_a_short_trace_is_the_busiest_minute() -> None:
    quiet, rush = poisson(5.0, 3_600), 3_600 + poisson(20.0, 300)
    mean = (5 * 3_600 + 20 * 300) / 3_900
    assert request_trace.peak_factor(np.concatenate([quiet, rush]), np.zeros(0)) == pytest.approx(20 / mean, rel=0.15)
    # few requests: crowding by chance is not a peak
    assert request_trace.peak_factor(poisson(0.02, 80_000), np.zeros(0)) < 1.4
    assert request_trace.peak_factor(np.array([0.0, 1.0, 2.0]), np.zeros(0)) == 1.0


# ---- buckets


@settings(max_examples=60)
@given(data=st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 3000)), min_size=1, max_size=600))
def test_buckets_keep_both_moments(data: list[tuple[int, int]]) -> None:
    given_tokens, made = np.array(data, dtype=np.float64).T
    grid = quantile_grid(given_tokens, made)
    assert len(grid.buckets) == len(set(grid.buckets)) == grid.share.size <= 24
    assert grid.share.sum() == pytest.approx(1)
    assert grid.share.min() >= min(LEAST_SHARE, 1 / len(data))
    for values, mean, second in (
        (given_tokens, grid.input_tokens, grid.input_second_moment),
        (made, grid.output_tokens, grid.output_second_moment),
    ):
        assert grid.share @ mean == pytest.approx(values.mean())
        assert grid.share @ second == pytest.approx((values**2).mean())
        assert np.all(second >= mean**2 * (1 - 1e-12))


def test_no_bucket_of_a_long_trace_is_tiny() -> None:
    draw = np.random.default_rng(2)
    grid = quantile_grid(np.ceil(draw.lognormal(6, 1, 50_000)), np.ceil(draw.lognormal(5, 1, 50_000)))
    assert len(grid.buckets) == 20
    assert grid.share.min() >= LEAST_SHARE
    for name, mean in zip(grid.buckets, grid.input_tokens, strict=True):
        assert mean <= float(name.split("/")[0])


# ---- files


def test_seconds_and_iso_read_alike(tmp_path: Path) -> None:
    begin = datetime(2026, 11, 2, tzinfo=UTC)  # a Monday
    seconds = [0.25, 7200.5, 3600.0]
    plain = read_trace(written(tmp_path, HEAD + "".join(f"{s},100,20\n" for s in seconds)))
    for form in ("{}", "{}Z", "{}+00:00"):
        stamps = [form.format((begin + timedelta(seconds=s)).replace(tzinfo=None).isoformat()) for s in seconds]
        iso = read_trace(written(tmp_path, HEAD + "".join(f"{s},100,20\n" for s in stamps)))
        assert iso.calendar
        week = 7 * DAY_S
        assert np.mod(iso.arrival_s, week) == pytest.approx(plain.arrival_s)
    epoch = read_trace(written(tmp_path, HEAD + "".join(f"{begin.timestamp() + s!r},1,1\n" for s in seconds)))
    assert np.mod(epoch.arrival_s, 7 * DAY_S) == pytest.approx(plain.arrival_s)
    assert not plain.calendar
    assert list(plain.arrival_s) == sorted(seconds)


def test_zones_and_columns_in_any_order(tmp_path: Path) -> None:
    text = "output_tokens,timestamp,input_tokens\n7,2026-11-02T02:00:00+02:00,100\n9,2026-11-02 00:00:10.5,300\n"
    trace = read_trace(written(tmp_path, "\ufeff" + text.replace("\n", "\r\n")))
    assert np.diff(trace.arrival_s) == pytest.approx(10.5)
    assert list(trace.input_tokens) == [100, 300]
    assert list(trace.output_tokens) == [7, 9]


def test_a_shuffled_trace_is_the_same_trace(tmp_path: Path) -> None:
    times = poisson(1.0, 5_000)
    rows = [f"{t:.3f},{100 + i % 50},{10 + i % 7}\n" for i, t in enumerate(times)]
    one = read_trace(written(tmp_path, HEAD + "".join(rows))).traffic()
    np.random.default_rng(0).shuffle(rows)
    other = read_trace(written(tmp_path, HEAD + "".join(rows))).traffic()
    assert other.arrival_variability == pytest.approx(one.arrival_variability)
    assert np.array_equal(other.share, one.share)
    assert other.requests_per_s == one.requests_per_s


BROKEN = {
    "1,100,20\nsoon,100,20\n2,1,1\n": [(3, 1, "bad-timestamp")],
    "1,100,20\n2,-5,20\n": [(3, 3, "bad-number")],
    "1,100,20\n2,5,0\n": [(3, 5, "bad-number")],
    "1,100,20\n2,5.5,2\n": [(3, 3, "bad-number")],
    "1,100,20\n2,1.000,2\n": [(3, 3, "mixed-numbers")],
    "1,100,20\n2.000,100,12.000\n": [(3, 11, "mixed-numbers")],
    "1,100,20\n2,nan,2\n": [(3, 3, "bad-number")],
    "1,100,20\n2,1e400,2\n": [(3, 3, "bad-number")],
    "1,100,20\n2,1e12,2\n": [(3, 3, "bad-number")],
    "1,100,20\n2,1_0,2\n": [(3, 3, "bad-number")],
    "1,100,20\n2,=1+1,2\n": [(3, 3, "bad-number")],
    "1,100,20\n2,,2\n": [(3, 3, "empty-cell")],
    "1,100,20\n,3,2\n": [(3, 1, "empty-cell")],
    "1,100,20\n2,3\n": [(3, 3, "bad-row")],
    "1,100,20\n2,3,4,5\n": [(3, 5, "bad-row")],
    "1,100,20\n-1,3,4\n": [(3, 1, "bad-timestamp")],
    "1,100,20\ninf,3,4\n": [(3, 1, "bad-timestamp")],
    "1,100,20\n1_0,3,4\n": [(3, 1, "bad-timestamp")],
    "1,100,20\n1762041600000,3,4\n": [(3, 1, "bad-timestamp")],
    "1,100,20\n1762041600,3,4\n": [(3, 1, "bad-timestamp")],
    "1,100,20\n2026-13-02,3,4\n": [(3, 1, "bad-timestamp")],
    "1,100,20\n1999-01-02,3,4\n": [(3, 1, "bad-timestamp")],
    "1,100,20\n1:30,3,4\n": [(3, 1, "bad-timestamp")],
    '1,100,20\n"2,3,4\n': [(3, 1, "bad-csv")],
    "1,100,20\n\x00,3,4\n": [(3, 1, "bad-timestamp")],
    "x,y,20\n2,3,z\n": [(2, 1, "bad-timestamp"), (2, 3, "bad-number"), (3, 5, "bad-number")],
    "": [(1, 1, "too-short")],
    "1,2,3\n": [(1, 1, "too-short")],
    "1,2,3\n\r0": [(4, 1, "bad-row")],
    "1,2,3\n1,2,3\n": [(1, 1, "too-short")],
}


@pytest.mark.parametrize("rows", BROKEN, ids=repr)
def test_one_error_a_mistake(tmp_path: Path, rows: str) -> None:
    path = written(tmp_path, HEAD + rows)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    problems = caught.value.problems
    found = sorted((p.places[0].line, p.places[0].column, p.reference) for p in problems)
    assert found == BROKEN[rows], str(caught.value)
    assert all(p.hint and p.places[0].file == str(path) for p in problems)


@pytest.mark.parametrize("other", ["1024.000", "512.0", "7."])
def test_a_dot_that_another_number_shows_to_be_decimal_is_no_sign_between_thousands(tmp_path: Path, other: str) -> None:
    trace = read_trace(written(tmp_path, f"{HEAD}1,5.000,20\n2,{other},2\n"))
    assert trace.input_tokens.tolist() == [5, float(other)]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("", [("missing-column", ""), ("missing-column", ""), ("missing-column", "")]),
        ("timestamp,input_tokens\n", [("missing-column", "")]),
        ("timestamp,input_token,output_tokens\n", [("unknown-column", "did you mean 'input_tokens'?")]),
        ("timestamp;input_tokens;output_tokens\n", [("unknown-column", "columns are separated by commas")]),
        ("timestamp,input_tokens,output_tokens,timestamp\n", [("duplicate-column", "keep one")]),
        ("timestamp,input_tokens,output_tokens,user\n", [("unknown-column", "columns: timestamp")]),
    ],
)
def test_first_line(tmp_path: Path, head: str, expected: list[tuple[str, str]]) -> None:
    with pytest.raises(InputError) as caught:
        read_trace(written(tmp_path, head + "1,2,3\n" if head else ""))
    problems = caught.value.problems
    assert [p.reference for p in problems][: len(expected)] == [reference for reference, _ in expected]
    assert expected[0][1] in problems[0].hint
    assert {p.places[0].line for p in problems} == {1}


def test_many_mistakes_are_counted(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_trace(written(tmp_path, HEAD + "x,1,1\n" * 500))
    assert len(caught.value.problems) == 51
    assert caught.value.problems[-1].message == "450 mistakes more"


@settings(max_examples=150)
@given(text=st.text(alphabet=st.sampled_from(list("0123456789,.-+eE:TZ\n\r\"' =@_infa\x00\x1b;\t")), max_size=120))
def test_no_text_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / "t.csv"
    path.write_bytes((HEAD + text).encode())
    try:
        traffic = read_trace(path).traffic()
    except InputError:
        return
    assert traffic.share.sum() == pytest.approx(1)
    assert math.isfinite(traffic.requests_per_s)
    assert traffic.requests_per_s > 0
    assert traffic.peak_factor >= 1


def test_too_many_rows_are_refused_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "MOST_ROWS", 3)
    assert read_trace(written(tmp_path, HEAD + "1,2,3\n2,2,3\n3,2,3\n")).arrival_s.size == 3
    with pytest.raises(InputError, match="too-large"):
        read_trace(written(tmp_path, HEAD + "1,2,3\n2,2,3\n3,2,3\n4,2,3\n"))
    monkeypatch.setattr(trace_module, "LIMIT_BYTES", 20)
    with pytest.raises(InputError, match="too-large"):
        read_trace(written(tmp_path, HEAD + "1,2,3\n2,2,3\n"))


def test_long_files_are_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"{i},{i + 1},{i + 2}\n" for i in range(103))
    whole = read_trace(written(tmp_path, HEAD + rows))
    monkeypatch.setattr(trace_module, "_BLOCK", 10)
    parts = read_trace(written(tmp_path, HEAD + rows))
    assert np.array_equal(whole.arrival_s, parts.arrival_s)
    assert np.array_equal(whole.output_tokens, np.arange(103) + 2)
    monkeypatch.setattr(trace_module, "_fast", lambda table: None)
    careful = read_trace(written(tmp_path, HEAD + rows))
    assert careful.traffic() == whole.traffic()


# ---- the shipped trace


def test_the_script_writes_the_shipped_bytes(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "scenarios" / "make_requests.py"))
    text = "\n".join(script["rows"]()) + "\n"
    shipped = (ROOT / "scenarios" / "requests.csv").read_bytes()
    assert text.encode() == shipped
    assert len(shipped) < 100_000


def test_the_shipped_trace_shows_what_the_script_put_in() -> None:
    traffic = read_trace(ROOT / "scenarios" / "requests.csv").traffic()
    assert traffic.requests_per_s * DAY_S == pytest.approx(2600, rel=0.02)
    assert traffic.mean_input_tokens == pytest.approx(16_000, rel=0.05)
    assert traffic.mean_output_tokens == pytest.approx(600, rel=0.05)
    assert traffic.arrival_variability == pytest.approx(2.0, rel=0.2)
    assert len(traffic.profile) == 24
    assert np.mean(traffic.profile) == pytest.approx(1)
    assert traffic.peak_factor == max(traffic.profile)
