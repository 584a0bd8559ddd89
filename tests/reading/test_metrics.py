"""Metrics of Prometheus: load, lengths and latencies of engines, and devices as owned; each sample taken or counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.reading.kinds import Asked, Reading, read
from planner.reading.metrics import Series
from planner.reading.piece_writing import write_into
from planner.reading.prometheus import Sample, sample_of
from planner.reading.source import Source
from planner.scenario.load import load_scenario
from planner.traffic.tables import read_load_profile
from tests.reading.trace_writers import answer, counter, counters, day_of_load, dcgm, engine_series, scrape, triton


def reading_of(folder: Path, *contents: str, asked: Asked | None = None) -> Reading:
    paths = []
    for number, content in enumerate(contents):
        paths.append(folder / f"file-{number}")
        paths[-1].write_text(content)
    return read(Source(*paths), asked)


def figures(reading: Reading) -> dict[str, Any]:
    return {each.label: each.value for each in reading.look}


def skips(reading: Reading) -> dict[str, int]:
    return {why: count for why, (count, _) in reading.skipped.reasons.items()}


def fleet(reading: Reading) -> dict[str, Any]:
    (found,) = [piece.fragment["serving"][0] for piece in reading.pieces if "serving" in piece.fragment]
    return dict(found)


def test_a_scrape_gives_lengths_and_latencies_and_no_rate(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, scrape(), asked=Asked(model="qwen2.5-7b"))
    found = figures(reading)
    assert reading.kind == "metrics-scrape"
    assert skips(reading) == {"no metric with a value": 1, "no number for a value (NaN and Inf, too)": 1}
    assert (found["requests that finished"], found["TTFT, mean"]) == (100, 0.25)
    assert (found["running at once, mean"], found["waiting, mean"]) == (7, 3)
    assert found["prompt tokens from the prefix cache"] == 0.25
    # of 100 prompts 80 lie below 1,000 and 20 up to 2,000: the 95th lies three quarters up
    assert found["prompt, p95 (chat-7b)"] == pytest.approx(1000 + 0.75 * 1000)
    assert fleet(reading) == {
        "name": "chat-7b", "model": "qwen2.5-7b", "input_tokens": {"mean": 600, "p95": 1750},
        "output_tokens": {"mean": 120, "p95": 350}, "prefix_cached": "25.00 %",
    }  # fmt: skip
    assert any("no rate follows" in note for note in reading.notes)


def test_requests_that_were_aborted_are_told_among_those_that_finished(tmp_path: Path) -> None:
    text = "".join(f'vllm:request_success_total{{finished_reason="{why}",model_name="m"}} {count}\n'
                   for why, count in (("stop", 900), ("length", 90), ("abort", 500), ("error", 10)))  # fmt: skip
    (tmp_path / "metrics").write_text(text)
    reading = read(Source(tmp_path / "metrics"))
    found = {each.label: each.value for each in reading.look}
    assert (found["requests that finished"], found["of them aborted or failed"]) == (1500, 510)
    assert any("count in the rate" in note for note in reading.notes)


def test_two_scrapes_with_times_give_the_rate_between(tmp_path: Path) -> None:
    first, second = scrape(100, at_ms=1_780_000_000_000), scrape(400, at_ms=1_780_000_600_000)
    reading = reading_of(tmp_path, first, second)
    assert figures(reading)["rate"] == 0.5
    assert fleet(reading)["qpm"] == 30.0


def test_a_range_becomes_a_fleet_with_its_load_over_the_day(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, day_of_load(), asked=Asked(model="llama-3.1-8b"))
    assert (reading.taken, reading.skipped.count) == (3 * 97, 0)
    assert fleet(reading) == {
        "name": "chat-7b", "model": "llama-3.1-8b", "qpm": pytest.approx(20 / 60, rel=1e-5), "input_tokens": 400,
        "output_tokens": 100, "load_profile": "chat-7b.load.csv",
    }  # fmt: skip
    path = tmp_path / "mine.yaml"
    assert write_into(reading, str(path), Asked()) == [str(tmp_path / "chat-7b.load.csv"), str(path)]
    weights = read_load_profile(tmp_path / "chat-7b.load.csv").weights
    assert weights == pytest.approx([0.5] * 12 + [1.5] * 12)
    loaded = load_scenario(path).serving[0]
    assert loaded.traffic.peak_factor == pytest.approx(1.5)


def test_the_hours_are_those_of_the_time_zone(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, day_of_load(), asked=Asked(time_zone="Asia/Kolkata"))  # 5:30 h ahead
    text = next(piece.text for piece in reading.pieces if piece.what == "profile")
    weights = [float(line.split(",")[1]) * 3600 for line in text.splitlines()[1:]]
    assert [round(weight) for weight in weights] == [30] * 5 + [20] + [10] * 11 + [20] + [30] * 6


def test_seven_days_make_a_week(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, day_of_load(7))
    text = next(piece.text for piece in reading.pieces if piece.what == "profile")
    assert len(text.splitlines()) == 1 + 168


def test_hours_that_are_missing_give_no_profile(tmp_path: Path) -> None:
    range_of = json.loads(day_of_load())
    for each in range_of["data"]["result"]:
        each["values"] = each["values"][:80]
    reading = reading_of(tmp_path, json.dumps(range_of))
    assert [piece.what for piece in reading.pieces] == ["scenario"]
    assert "load_profile" not in fleet(reading)


def test_a_counter_that_falls_began_again(tmp_path: Path) -> None:
    assert Series(name="a_total", labels={}, values=[5.0, 9.0, 2.0, 3.0]).total == 4 + 2 + 1
    reading = reading_of(tmp_path, answer(counter("vllm:request_success_total", [50, 90, 20, 30])))
    assert figures(reading)["requests that finished"] == 70
    assert any("began again 1 times" in note for note in reading.notes)


def test_times_that_jump_and_values_that_are_none_are_counted(tmp_path: Path) -> None:
    series = counter("vllm:request_success_total", [1, 2, "NaN", -4, 5])
    series["values"] += [series["values"][0], [series["values"][4][0], "5"], ["soon", "1"], [1]]
    reading = reading_of(tmp_path, answer(series, {"no": "metric"}))
    assert reading.taken == 3
    assert skips(reading) == {
        "no number for a value (NaN and Inf, too)": 1, "a negative count": 1, "a time before the one above it": 1,
        "a time that stands twice in its series": 1, "no time with a value": 2, "JSON, but no series": 1,
    }  # fmt: skip


def test_a_query_that_failed_says_so(tmp_path: Path) -> None:
    text = json.dumps(
        {"status": "error", "errorType": "timeout", "error": "too long", "resultType": "", "result": [], "data": 0}
    )
    with pytest.raises(InputError, match="failed: too long"):
        reading_of(tmp_path, text)


def test_truncated_json_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not whole JSON"):
        reading_of(tmp_path, day_of_load()[:-10])


def test_devices_of_dcgm_are_owned(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, dcgm())
    found = figures(reading)
    assert found["device busy, mean"] == 40.0
    assert found["power of a device, p95"] == pytest.approx(52.85)
    (piece,) = reading.pieces
    assert piece.fragment == {"hardware": {"owned": [{"shape": "onprem/l4-x4", "count": 1, "price": "$0/h"}]}}


def test_devices_that_nobody_names_are_not_owned(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, dcgm(name=""))
    assert not reading.pieces
    assert any("no metric names its device" in note for note in reading.notes)


def test_triton_counts_requests(tmp_path: Path) -> None:
    found = figures(reading_of(tmp_path, triton()))
    assert (found["bert: requests that succeeded"], found["bert: inferences of an execution"]) == (90, 4.0)
    assert found["bert: compute, mean"] == pytest.approx(0.002)


def test_sglang_has_other_names(tmp_path: Path) -> None:
    label = '{model_name="m"}'
    lines = [f"sglang:prompt_tokens_total{label} 9000", f"sglang:generation_tokens_total{label} 3000",
             f"sglang:num_requests_total{label} 30", f"sglang:token_usage{label} 0.25",
             f"sglang:num_queue_reqs{label} 2", f"sglang:cache_hit_rate{label} 0.5"]  # fmt: skip
    reading = reading_of(tmp_path, "\n".join(lines) + "\n")
    found = figures(reading)
    assert reading.tool == "sglang"
    assert (found["KV cache in use, mean"], found["waiting, mean"]) == (0.25, 2)
    assert (fleet(reading)["input_tokens"], fleet(reading)["output_tokens"]) == (300, 100)
    assert fleet(reading)["prefix_cached"] == "50.00 %"


def test_models_are_told_apart(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, scrape() + scrape(50).replace("chat-7b", "other"))
    found = figures(reading)
    assert (found["org/chat-7b: requests that finished"], found["org/other: requests that finished"]) == (100, 50)
    assert len([piece for piece in reading.pieces if "serving" in piece.fragment]) == 2


def test_metrics_of_nothing_known_are_shown(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, answer({"metric": {}, "value": [1.7e9, "4"]}, {"metric": {}, "value": [1.7e9, "6"]}))
    assert figures(reading)["a query without a name, mean"] == 4.0  # the second stands at the same time
    assert any("none of these metrics is known" in note for note in reading.notes)


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        ("a 1", Sample(name="a", labels={}, value=1.0)),
        ('a{b="c",} 1e3', Sample(name="a", labels={"b": "c"}, value=1000.0)),
        ('a:b { c = "x\\"}y" } -2 1700000000000', Sample(name="a:b", labels={"c": 'x\\"}y'}, value=-2.0, time_s=1.7e9)),
        ("a{} 7 # {trace_id=\"1\"} 0.5", Sample(name="a", labels={}, value=7.0)),
        ("a{b=1} 7", "no metric with a value"),
        ("a", "no metric with a value"),
        ("a +Inf", "no number for a value (NaN and Inf, too)"),
        ("1a 7", "no metric with a value"),
    ],
)  # fmt: skip
def test_lines_of_a_scrape(line: str, sample: Sample | str) -> None:
    if line.startswith("a:b {"):
        line = line.replace("a:b {", "a:b{")
    assert sample_of(line) == sample


def test_counters_of_dcgm_say_what_is_missing(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, counters())
    found = figures(reading)
    assert (reading.taken, skips(reading)) == (3, {"no counter with its type": 1})
    assert (found["DCGM_FI_DEV_FB_USED"], found["DCGM_FI_DEV_FB_FREE"]) == ("collected", "not collected")


def test_statistics_over_time(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, engine_series())
    assert (reading.taken, skips(reading)) == (10, {"a time before the one above it": 1})
    assert figures(reading)["answer tokens, mean"] == pytest.approx(225.0)


def test_tokens_from_the_cache_are_shared_over_the_whole_time(tmp_path: Path) -> None:
    label = '{model_name="m"}'
    sglang = (
        f"# TYPE sglang:prompt_tokens_total counter\nsglang:prompt_tokens_total{label} 1000\n"
        f"sglang:cached_tokens_total{label} 250\nsglang:cache_hit_rate{label} 0.01\n"
    )
    assert figures(reading_of(tmp_path, sglang))["prompt tokens from the prefix cache"] == 0.25
    vllm = f"vllm:prompt_tokens_total{label} 1000\nvllm:gpu_prefix_cache_hit_rate{label} 0.4\n"
    assert figures(reading_of(tmp_path, vllm))["prompt tokens from the prefix cache"] == 0.4


def test_a_quantile_beyond_the_last_bound_is_at_least_that(tmp_path: Path) -> None:
    lines = "".join(
        f'tgi_{name}_bucket{{le="100"}} 50\ntgi_{name}_bucket{{le="+Inf"}} 100\ntgi_{name}_sum {total}\n'
        f"tgi_{name}_count 100\n"
        for name, total in (("request_input_length", 9000), ("request_generated_tokens", 20_000),
                            ("request_duration", 30_000), ("request_queue_duration", 2))
    )  # fmt: skip
    reading = reading_of(tmp_path, "# TYPE tgi_request_success counter\ntgi_request_success 100\n" + lines)
    assert reading.tool == "tgi"
    high = next(each for each in reading.look if each.label == "whole request, p95")
    assert (high.value, high.unit) == (100, "s at least, beyond all buckets")
    assert (figures(reading)["whole request, mean"], figures(reading)["wait in the queue, mean"]) == (300, 0.02)
    assert (fleet(reading)["input_tokens"], fleet(reading)["output_tokens"]) == (90, 200)


def test_metrics_of_other_engines_are_known(tmp_path: Path) -> None:
    trtllm = ('trtllm_request_success_total{model_name="m"} 10\ntrtllm_time_to_first_token_seconds_sum'
              '{model_name="m"} 2\ntrtllm_time_to_first_token_seconds_count{model_name="m"} 10\n')  # fmt: skip
    assert figures(reading_of(tmp_path, trtllm))["TTFT, mean"] == 0.2
    dynamo = "".join(f'dynamo_frontend_{name}{{model="m"}} {value}\n' for name, value in (
        ("requests_total", 10), ("input_sequence_tokens_sum", 9000), ("input_sequence_tokens_count", 10),
        ("output_sequence_tokens_sum", 2000), ("output_sequence_tokens_count", 10)))  # fmt: skip
    written = fleet(reading_of(tmp_path, dynamo))
    assert (written["input_tokens"], written["output_tokens"]) == (900, 200)


def test_memory_of_slices_is_not_that_of_their_device(tmp_path: Path) -> None:
    lines = "".join(
        f'DCGM_FI_DEV_FB_{part}{{gpu="0",UUID="GPU-0",GPU_I_PROFILE="3g.40gb",GPU_I_ID="{n}",modelName="NVIDIA L40S"'
        f',Hostname="h"}} 20000\n' for n in (1, 2) for part in ("USED", "FREE"))  # fmt: skip
    reading = reading_of(tmp_path, "# TYPE DCGM_FI_DEV_FB_USED gauge\n" + lines)
    assert figures(reading)["of them l40s"] == 1


def test_a_query_that_failed_without_a_result_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a query that failed: bad query"):
        reading_of(tmp_path, json.dumps({"status": "error", "errorType": "bad_data", "error": "bad query"}))


def test_tables_of_grafana_are_series(tmp_path: Path) -> None:
    names = [f'"vllm:{name}_total{{model_name=""m""}}"' for name in ("request_success", "prompt_tokens")]
    rows = [f"2026-01-05 00:{n:02d}:00,{n * 60},{n * 60_000},,much\n" for n in range(10)]
    text = f'Time,{",".join(names)},"vllm:num_requests_running{{model_name=""m""}}",other\n' + "".join(rows)
    reading = reading_of(tmp_path, text + "when,1,2,3,4\n" + '2026-01-05 00:10:00,"1\n')
    there = figures(reading)
    assert (reading.taken, there["rate"], there["prompt tokens a second"]) == (20, 1.0, 1000.0)
    assert skips(reading) == {"no time, or more or fewer cells than columns": 2}
    assert any("other is no name" in note for note in reading.notes)
    assert any("name no zone" in note for note in reading.notes)
    long = 'Series;Time;Value\nvllm:num_requests_running{model_name="m"};1767571200000;3\n' \
           'vllm:num_requests_running{model_name="m"};1767571260000;x\n'  # fmt: skip
    reading = reading_of(tmp_path, long)
    assert (reading.taken, figures(reading)["running at once, mean"]) == (1, 3)
    assert skips(reading) == {"no number for a value": 1}


def test_a_table_of_times_and_other_names_is_none_of_metrics(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="of no kind that is read"):
        reading_of(tmp_path, "Time,GPU 0,GPU 1\n2026-01-05 00:00:00,50%,60%\n")


def test_series_a_line_with_times_beside_the_values(tmp_path: Path) -> None:
    lines = [json.dumps({"metric": {"__name__": f"vllm:{name}", "model_name": "m"}, "values": [0, 60, 120],
                         "timestamps": [1767571200000, 1767571260000, 1767571320000]}) for name in (
                             "request_success_total", "prompt_tokens_total")]  # fmt: skip
    reading = reading_of(tmp_path, "\n".join([*lines, '{"metric": {"__na']))
    assert (reading.taken, figures(reading)["rate"]) == (6, 1.0)
    assert sum(skips(reading).values()) == 1


def native(count: int, *buckets: tuple[float, float, int]) -> dict[str, Any]:
    """A native histogram, as the API of Prometheus writes it: what is empty is left out."""
    inside = [[0, str(low), str(high), str(each)] for low, high, each in buckets]
    return {"count": str(count), "sum": str(count * 0.25), "buckets": inside}


def test_native_histograms_are_histograms(tmp_path: Path) -> None:
    name = {"__name__": "vllm:time_to_first_token_seconds", "model_name": "m"}
    now = native(100, (0.0625, 0.125, 60), (0.125, 0.25, 20), (0.25, 0.5, 20))
    vector = {"resultType": "vector", "result": [{"metric": name, "histogram": [1735689600, now]}]}
    found = figures(reading_of(tmp_path, json.dumps({"status": "success", "data": vector})))
    assert (found["TTFT, mean"], found["TTFT, p95"]) == (0.25, pytest.approx(0.25 + 0.25 * 0.75))
    later = native(1100, (0.0625, 0.125, 60), (0.125, 0.25, 1020), (0.25, 0.5, 20))  # 1,000 more, all within one bucket
    pairs = [[1735689600, now], [1735690600, later], [1735690700, {"count": "1"}]]
    matrix = {"resultType": "matrix", "result": [{"metric": name, "histograms": pairs}]}
    reading = reading_of(tmp_path, json.dumps({"status": "success", "data": matrix}))
    assert figures(reading)["TTFT, p95"] == pytest.approx(0.125 + 0.125 * 0.95)
    assert skips(reading) == {"a histogram without a time, count and sum": 1}
    first = native(60, (0.0625, 0.125, 60))  # the other buckets come later
    matrix["result"][0]["histograms"] = [[1735689600, first], [1735690600, later]]
    found = figures(reading_of(tmp_path, json.dumps({"status": "success", "data": matrix})))
    assert found["TTFT, p95"] == pytest.approx(0.125 + 0.125 * 0.95 * 1040 / 1020)


def test_an_answer_of_loki_says_how_its_lines_are_read(tmp_path: Path) -> None:
    lines = [[str(1764493200000000000 + n * 10**9), json.dumps({"prompt_tokens": 100 + n, "completion_tokens": 50})]
             for n in range(5)]  # fmt: skip
    answer = {"resultType": "streams", "result": [{"stream": {"app": "vllm"}, "values": lines}], "stats": {}}
    path = tmp_path / "loki.json"
    path.write_text(json.dumps({"status": "success", "data": answer}))
    with pytest.raises(InputError, match="an answer of Loki") as caught:
        read(Source(path))
    assert "logcli query" in caught.value.problems[0].hint
    path.write_text(
        "".join(json.dumps({"timestamp": time, "line": line}) + "\n" for time, line in lines)
    )  # of the hint
    reading = read(Source(path))
    assert (reading.kind, reading.taken) == ("requests-json", 5)
