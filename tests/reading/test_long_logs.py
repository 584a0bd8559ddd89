"""Logs of more requests than a trace takes: in bounded memory the same figures as of those held whole."""

from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from planner.reading import long_log, request_log
from planner.reading.kinds import Reading, read
from planner.reading.long_log import LengthCounts, LongLog, SortedTimes
from planner.reading.source import Source
from planner.traffic import request_trace
from tests.reading.writers import azure, mooncake, requests


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many runs of few requests, and few requests that are held whole."""
    monkeypatch.setattr(request_log, "MOST_ROWS", 300)
    monkeypatch.setattr(long_log, "RUN", 128)
    monkeypatch.setattr(long_log, "_SAMPLED", 8)
    monkeypatch.setattr(request_trace, "_AT_ONCE", 200)


def logs() -> dict[str, str]:
    """In order; out of order; with ids that come again and times that are none of its."""
    lots = random.Random(5)
    plain = azure(requests(2000)).splitlines(keepends=True)
    mixed = plain[1:]
    lots.shuffle(mixed)
    numbered = ["id,timestamp,input_tokens,output_tokens\n"]
    numbered += [f"r{n},{at},{given},{made}\n" for n, (at, given, made) in enumerate(requests(2000))]
    for at in range(1990, 10, -100):
        numbered.insert(at, numbered[at - 3])
    numbered.insert(700, "far,1e12,5,5\n")
    coarse = ["timestamp,input_tokens,output_tokens\n"]
    coarse += [f"{n // 4},{given},{made}\n" for n, (_, given, made) in enumerate(requests(2000))]
    return {"in order": "".join(plain), "mixed": plain[0] + "".join(mixed), "numbered": "".join(numbered),
            "coarse": "".join(coarse), "blocks": mooncake(requests(2000))}  # fmt: skip


def both(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Reading, Reading]:
    """As read from counts, and as held whole."""
    (folder / "log").write_text(text)
    long = read(Source(folder / "log"))
    monkeypatch.setattr(request_log, "MOST_ROWS", 2_000_000)
    return long, read(Source(folder / "log"))


@pytest.mark.parametrize("name", logs())
@pytest.mark.usefixtures("short_runs")
def test_figures_are_those_of_the_whole(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long, short = both(logs()[name], tmp_path, monkeypatch)
    assert any("no trace is written" in note for note in long.notes)
    assert (long.taken, long.understood) == (short.taken, short.understood)
    assert {why: count for why, (count, _) in long.skipped.reasons.items()} == {
        why: count for why, (count, _) in short.skipped.reasons.items()
    }
    assert [each.label for each in long.look] == [each.label for each in short.look]
    earlier = [[note for note in reading.notes if "earlier than" in note] for reading in (long, short)]
    assert earlier[0] == earlier[1]
    assert bool(earlier[0]) == (name == "mixed")
    spread = 0.02 if name == "coarse" else 1e-9  # stamps of a second are spread at random, within each part
    for one, other in zip(long.look, short.look):
        assert one.value == pytest.approx(other.value, rel=spread), one.label


@pytest.mark.usefixtures("short_runs")
def test_the_fleet_has_the_figures_in_place_of_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long, _ = both(logs()["in order"], tmp_path, monkeypatch)
    (piece,) = long.pieces
    fleet = piece.fragment["serving"][0]
    shown = {each.label: each.value for each in long.look}
    assert fleet["qpm"] == pytest.approx(60 * float(shown["rate"]), rel=1e-3)
    assert fleet["input_tokens"]["mean"] == round(float(shown["prompt, mean"]))
    assert "trace" not in fleet


@pytest.mark.usefixtures("short_runs")
def test_times_are_put_in_order_by_ranges() -> None:
    lots = np.random.default_rng(2)
    given = lots.normal(0.0, 1e6, 5000).round(2)
    times = SortedTimes()
    for part in np.array_split(given, 41):
        times.add(part)
    times.settle()
    times.scale, times.shift = 1e-3, 7.0
    assert np.array_equal(times[:], np.sort(given) * 1e-3 - 7.0)
    assert times[-1] == np.sort(given)[-1] * 1e-3 - 7.0
    assert np.array_equal(times[17:23], np.sort(given)[17:23] * 1e-3 - 7.0)


def test_gaps_between_parts_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_trace, "_AT_ONCE", 2)
    assert request_trace.longest_gap_s(np.array([0.0, 1.0, 9.0, 10.0])) == 8.0


def test_percentiles_are_those_of_numpy_and_beyond_a_million_within_a_thousandth() -> None:
    lots = np.random.default_rng(4)
    for tokens in (lots.lognormal(7, 1, 9999), lots.lognormal(15, 1, 9999)):
        counts = LengthCounts()
        for part in np.array_split(tokens.astype(np.uint32), 7):
            counts.add(part)
        assert counts.percentiles((50, 95, 99)) == pytest.approx(
            np.percentile(tokens.astype(np.uint32), (50, 95, 99)), rel=1e-9 if tokens.max() < 2**20 else 1e-3
        )
        assert (counts.total, counts.most) == (int(tokens.astype(int).sum()), int(tokens.max()))


def test_ids_that_tell_nothing_apart_are_not_used() -> None:
    log = LongLog(middle=0.0, far=1e9)
    ones = np.ones(1000, dtype=np.uint32)
    log.add(np.arange(1000.0), ones, ones, np.arange(1000) % 7)
    log.settle()
    assert (log.times.size, log.apart, log.skipped) == (1000, False, {})


def test_memory_does_not_grow_with_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_log, "RUN", 8192)
    monkeypatch.setattr(long_log, "_SAMPLED", 32)
    monkeypatch.setattr(request_trace, "_AT_ONCE", 8192)

    def peak_bytes(runs: int) -> int:
        log = LongLog(middle=0.0, far=1e9)
        lots = np.random.default_rng(1)
        tracemalloc.start()
        for _ in range(runs):
            tokens = lots.integers(1, 5000, 8192).astype(np.uint32)
            log.add(lots.random(8192) * 1e6, tokens, tokens, np.zeros(0, dtype=np.int64))
        log.settle()
        assert request_trace.burstiness(log.times) > 0
        assert request_trace.longest_gap_s(log.times) > 0
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    more_bytes = 140 * 8192 * 16  # of requests that are held whole
    assert peak_bytes(160) - peak_bytes(20) < 0.05 * more_bytes


def test_a_request_that_stands_twice_by_its_id_counts_once(tmp_path: Path) -> None:
    rows = [{"request_id": f"r{n}", "timestamp": n, "input_length": 5, "output_length": 3} for n in [0, 1, 2, 1, 3]]
    (tmp_path / "log").write_text("\n".join(map(json.dumps, rows)))
    reading = read(Source(tmp_path / "log"))
    assert reading.skipped.reasons == {"the same request again, by its id": (1, 4)}


def test_halves_of_a_record_on_two_lines_are_none(tmp_path: Path) -> None:
    whole = '{"timestamp": 1, "input_length": 5, "output_length": 3}\n'
    (tmp_path / "log").write_text(whole * 3 + '{"timestamp": 1, "input_length": 5\n"output_length": 3}\n' + whole * 2)
    reading = read(Source(tmp_path / "log"))
    assert reading.taken == 5
    assert reading.skipped.reasons == {"not JSON": (2, 4)}


def test_milliseconds_of_a_day_are_no_years(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(mooncake([(at * 400, given, made) for at, given, made in requests()]))
    reading = read(Source(tmp_path / "log"))
    assert reading.taken == 400
    assert {each.label: each.value for each in reading.look}["time"] > 86_400


def test_prefixes_are_counted_by_parts_of_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.dumps({"timestamp": n, "input_length": 1000, "output_length": 1, "hash_ids": [7, n + 100]})
             for n in range(66_000)]  # fmt: skip
    (tmp_path / "log").write_text("\n".join(lines))
    shown = {each.label: each.value for each in read(Source(tmp_path / "log")).look}
    assert shown["prompt tokens of a prefix seen before"] == pytest.approx(512 * 65_999 / (1000 * 66_000))
