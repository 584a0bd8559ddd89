"""What fleets are asked for, by each way a scenario may say it, and what wins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.errors import InputError
from planner.scenario import ServingFleet, load_scenario, parse_scenario
from planner.traffic import Traffic

HEAD = "schema: plan/v1\nname: t\nserving:\n  - name: f\n    model: gpt2-xl\n"
NUMBERS = "    qpm: 60\n    input_tokens: 100\n    output_tokens: 50\n"
DAY = "hour,weight\n" + "".join(f"{hour},{3 if hour == 9 else 1}\n" for hour in range(24))
SLO = "    slo: {ttft_p95: 1 s}\n"
SHARES = "input_bucket,output_bucket,fraction\n512,128,0.75\n4096,128,0.25\n"
NAMED = "input_bucket,output_bucket,fraction\nshort,any,0.75\nlong,any,0.25\n"
RATES = (
    "offer,price_usd_per_hour,input_bucket,output_bucket,max_requests_per_s\n"
    "A,1.5,long,any,1\nA,1.5,short,any,4\nB,2,short,any,9\nB,2,long,any,0\n"
)


def fleet(folder: Path, text: str, **files: str) -> ServingFleet:
    for name, content in files.items():
        (folder / f"{name}.csv").write_text(content, encoding="utf-8")
    (folder / "s.yaml").write_text(HEAD + text, encoding="utf-8")
    return load_scenario(folder / "s.yaml").serving[0]


def refused(folder: Path, text: str, **files: str) -> list[tuple[str, str, int]]:
    with pytest.raises(InputError) as caught:
        fleet(folder, text, **files)
    return [(p.reference, Path(p.places[-1].file).name, p.places[-1].line) for p in caught.value.problems]


def test_numbers() -> None:
    traffic = parse_scenario(HEAD + NUMBERS).serving[0].traffic
    assert traffic == Traffic.of_lengths(100, 50, requests_per_s=1.0, peak_factor=2.0)


def test_a_mean_and_a_percentile() -> None:
    text = HEAD + NUMBERS.replace("100", "{mean: 1500, p95: 4000}")
    found = parse_scenario(text).serving[0]
    assert found.input_tokens == 1500
    traffic = found.traffic
    assert traffic.share @ traffic.input_second_moment == pytest.approx(1500**2 * np.exp(0.7824**2), rel=1e-3)
    assert not traffic.classes


def test_an_inline_histogram(tmp_path: Path) -> None:
    found = fleet(tmp_path, NUMBERS.replace("50", "[{tokens: 10, share: 50 %}, {tokens: 30, share: 50 %}]"))
    assert found.traffic.mean_output_tokens == 20
    assert found.traffic.share @ found.traffic.output_second_moment == 500
    assert found.traffic.buckets == ("all",)
    together = fleet(tmp_path, NUMBERS.replace("50", "[{tokens: 10, share: 50 %}, {tokens: 30, share: 50 %}]") + SLO)
    assert together.traffic.buckets == ("100/10", "100/30")
    apart = fleet(tmp_path, NUMBERS.replace("50", "{mean: 10, p95: 30}") + SLO + "    disaggregated: true\n")
    assert apart.traffic.buckets == ("all",)


def test_requests_a_second(tmp_path: Path) -> None:
    found = fleet(tmp_path, NUMBERS.replace("qpm: 60", "requests: 16 /s"))
    assert found.traffic.requests_per_s == 16
    assert found.qpm == 960


def test_a_load_profile_says_the_peak(tmp_path: Path) -> None:
    found = fleet(tmp_path, NUMBERS + "    load_profile: week.csv\n", week=DAY)
    assert found.peak_factor == pytest.approx(3 * 24 / 26)
    assert len(found.traffic.profile) == 24
    given = fleet(tmp_path, NUMBERS + "    load_profile: week.csv\n    peak_factor: 1.2\n")
    assert given.peak_factor == 1.2
    assert given.traffic.profile == found.traffic.profile
    assert [name for name, _ in found.traffic.files] == [str(tmp_path / "week.csv")]


def test_a_histogram(tmp_path: Path) -> None:
    found = fleet(tmp_path, "    qpm: 60\n    histogram: h.csv\n", h=SHARES)
    assert found.traffic.buckets == ("512/128", "4096/128")
    assert found.input_tokens == pytest.approx(0.75 * 512 + 0.25 * 4096)
    assert found.peak_factor == 2


def test_measured_rates_need_no_lengths_and_no_model(tmp_path: Path) -> None:
    text = "    requests: 16 /s\n    histogram: h.csv\n    profile: r.csv\n    peak_factor: 1\n"
    (tmp_path / "h.csv").write_text(NAMED, encoding="utf-8")
    (tmp_path / "r.csv").write_text(RATES, encoding="utf-8")
    (tmp_path / "s.yaml").write_text(HEAD.replace("    model: gpt2-xl\n", "") + text, encoding="utf-8")
    found = load_scenario(tmp_path / "s.yaml").serving[0]
    assert found.traffic.buckets == ("short/any", "long/any")
    assert np.isnan(found.traffic.input_tokens).all()
    assert found.rates is not None
    assert found.rates.max_requests_per_s.tolist() == [[4, 1], [9, 0]]
    assert found.rates.buckets == found.traffic.buckets


def test_free_text_without_rates_is_refused_in_the_table(tmp_path: Path) -> None:
    assert refused(tmp_path, "    qpm: 60\n    histogram: h.csv\n", h=NAMED) == [("no-length", "h.csv", 2)]


def test_a_trace_and_what_the_user_says_of_it(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    times = np.cumsum(draw.exponential(2.0, 3000))
    trace = "timestamp,input_tokens,output_tokens\n" + "".join(f"{t:.3f},{100 + int(t) % 9},20\n" for t in times)
    found = fleet(tmp_path, "    trace: t.csv\n", t=trace)
    assert found.qpm == pytest.approx(30, rel=0.05)
    assert found.arrival_variability == pytest.approx(1.0, abs=0.12)
    assert 1 < found.peak_factor < 1.5
    assert found.traffic.share.sum() == pytest.approx(1)
    own = fleet(tmp_path, "    trace: t.csv\n    peak_factor: 2.5\n")
    assert own.peak_factor == 2.5
    assert own.arrival_variability == found.arrival_variability


def test_mistakes_of_every_file_at_once(tmp_path: Path) -> None:
    text = "    qpm: 60\n    histogram: h.csv\n    load_profile: w.csv\n"
    found = refused(tmp_path, text, h=SHARES.replace("0.25", "x"), w=DAY.replace("9,3", "9,-3"))
    assert sorted(found) == [("bad-number", "h.csv", 3), ("bad-number", "w.csv", 11)]
    # a file that is not there is pointed at where the scenario names it
    assert refused(tmp_path, "    trace: none.csv\n") == [("file-not-found", "s.yaml", 6)]
    assert refused(tmp_path, "    trace: .\n") == [("not-a-file", "s.yaml", 6)]


def test_paths_start_at_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    fleet(tmp_path / "below", NUMBERS + "    load_profile: week.csv\n", week=DAY)
    monkeypatch.chdir(tmp_path)
    found = load_scenario("below/s.yaml").serving[0]
    assert [name for name, _ in found.traffic.files] == ["below/week.csv"]


def test_a_scenario_loads_twice_alike(tmp_path: Path) -> None:
    text = NUMBERS + "    load_profile: week.csv\n"
    assert fleet(tmp_path, text, week=DAY) == fleet(tmp_path, text)
