"""Other forms of what benchmarks and providers write: the same kinds, told by other keys, with figures worked out."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError, OutputError, UsageError
from planner.reading.kinds import Asked, Piece, Reading, read
from planner.reading.measured_points import number_of
from planner.reading.piece_writing import write_into, write_piece
from planner.reading.source import LONGEST_LINE, Source
from planner.scenario.load import load_scenario
from tests.reading.cluster_writers import table

ASKED = Asked(model="m", accelerator="h100-sxm-80gb", devices=1)


def reading_of(folder: Path, content: str, asked: Asked = ASKED) -> Reading:
    path = folder / "file"
    path.write_text(content)
    return read(Source(path), asked)


def figures(reading: Reading) -> dict[str, Any]:
    return {each.label: each.value for each in reading.look}


def rows_of(reading: Reading) -> list[dict[str, str]]:
    (text,) = [piece.text for piece in reading.pieces if piece.what == "rows"]
    return list(csv.DictReader(io.StringIO(text)))


def skips(reading: Reading) -> dict[str, int]:
    return {why: count for why, (count, _) in reading.skipped.reasons.items()}


def test_single_requests_of_aiperf_are_one_point(tmp_path: Path) -> None:
    def request(begin_s: float, end_s: float, ttft_ms: float) -> str:
        values = {"time_to_first_token": (ttft_ms, "ms"), "input_sequence_length": (500, "tokens"),
                  "output_sequence_length": (100, "tokens")}  # fmt: skip
        return json.dumps({"metadata": {"request_start_ns": begin_s * 1e9, "request_end_ns": end_s * 1e9},
                           "metrics": {name: {"value": v, "unit": u} for name, (v, u) in values.items()}})  # fmt: skip

    failed = '{"metadata": {}, "metrics": {}, "error": "x"}'
    lines = [request(0, 10, 100), request(0, 10, 300), request(9, 8, 1), failed]
    reading = reading_of(tmp_path, "\n".join(lines) + "\n")
    assert (reading.taken, skips(reading)) == (2, {"no begin and end": 1, "failed, or no metrics": 1})
    (row,) = rows_of(reading)
    assert (float(row["ttft_ms"]), row["ttft_stat"], float(row["concurrency"])) == (200, "median", 2)
    assert float(row["output_tokens_per_s_total"]) == 2 * 100 / 10


def test_columns_with_their_unit_in_brackets_are_read(tmp_path: Path) -> None:
    """Output_throughput (tok/s) was said to leave open what it is, and E2E p95 (s) to be no latency."""
    head = "model,concurrency,input_len,output_len,output_throughput (tok/s),Total throughput (tokens/s),E2E p95 (s)"
    reading = reading_of(tmp_path, f"{head}\nllama-3.1-8b,8,1024,128,812.1,7300,1.5\n")
    found = {(each.label, each.unit): each.value for each in reading.look}
    assert found["8 at once: throughput", "output tokens/s"] == 812.1
    assert found["8 at once: throughput", "tokens/s"] == 7300
    assert found["8 at once: E2E p95", "ms"] == 1500
    assert reading.notes == []


def test_samples_of_devices_are_shown_and_make_nothing(tmp_path: Path) -> None:
    lines = [json.dumps({"gpu_uuid": f"G{n}", "gpu_model_name": "H100", "telemetry_data": {"gpu_power_usage": 100 * n}})
             for n in (1, 3)]  # fmt: skip
    reading = reading_of(tmp_path, "\n".join([*lines, '{"gpu_uuid": "G1", "telemetry_data": 0}']) + "\n")
    assert (figures(reading)["devices"], figures(reading)["gpu_power_usage, mean"], reading.pieces) == (2, 200, [])
    assert skips(reading) == {"no telemetry_data": 1}


def test_single_requests_of_llmperf_are_one_point(tmp_path: Path) -> None:
    def request(ttft: float, **more: object) -> dict[str, object]:
        return {"ttft_s": ttft, "end_to_end_latency_s": 2.0, "inter_token_latency_s": 0.02, "number_input_tokens": 400,
                "number_output_tokens": 80, **more}  # fmt: skip

    reading = reading_of(tmp_path, json.dumps([request(0.1), request(0.3), request(9, error_code=500), 7]))
    assert skips(reading) == {"failed, or no record": 2}
    (row,) = rows_of(reading)
    assert (float(row["ttft_ms"]), float(row["tpot_ms"]), float(row["input_tokens"])) == (200, 22.7848, 400)


def test_throughput_and_latency_modes_of_vllm(tmp_path: Path) -> None:
    offline = {"elapsed_time": 10.0, "num_requests": 100, "total_num_tokens": 60_000, "requests_per_second": 10.0,
               "tokens_per_second": 6000.0}  # fmt: skip
    (row,) = rows_of(reading_of(tmp_path, json.dumps(offline)))
    assert (row["scenario"], float(row["requests_per_s"]), float(row["total_tokens_per_s"])) == ("offline", 10, 6000)
    latency = {"avg_latency": 2.5, "latencies": [2.0, 3.0], "percentiles": {"50": 2.4, "99": 3.0}}
    reading = reading_of(tmp_path, json.dumps(latency))
    assert figures(reading) == {"one batch: E2E mean": 2500, "one batch: E2E median": 2400, "one batch: E2E p99": 3000}
    assert not reading.pieces  # of how many sequences nobody says
    assert any("--batch-size" in note for note in reading.notes)


VLLM_CI = """## Latency tests

| Test name | GPU | Mean latency (ms) | P99 latency (ms) |
| --- | --- | --- | --- |
| latency_llama8B_tp1 | H100 | 812.1 | 830.1 |

## Throughput tests

| Test name | GPU | # of req. | Total # of tokens | Tput (req/s) | Tput (tok/s) |
| --- | --- | --- | --- | --- | --- |
| throughput_llama8B_tp2 | H100 | 200 | 82000 | 20 | 8200 |

## Serving tests

| Test name | GPU | # of req. | Tput (req/s) | Output Tput (tok/s) | Total Tput (tok/s) | Median TTFT (ms) |
| --- | --- | --- | --- | --- | --- | --- |
| serving_llama8B_tp4_sharegpt_qps_4 | H100 | 200 | 3.9 | 780 | 1560 | 52.1 |
| serving_llama8B_tp4_sharegpt_qps_inf | H100 | 200 | 21 | 4200 | 8400 | 1052.1 |
"""


def test_tables_of_vllms_own_benchmarks(tmp_path: Path) -> None:
    """Only the first table of a file was seen, and of what the name of a test tells nothing."""
    reading = reading_of(tmp_path, VLLM_CI, Asked(model="m"))
    offline, sent, burst = rows_of(reading)
    assert (reading.taken, reading.skipped.count) == (4, 0)
    assert figures(reading)["one batch: E2E mean"] == 812.1
    assert (offline["scenario"], offline["tp"], offline["requests_per_s"]) == ("offline", "2", "20")
    assert (sent["scenario"], sent["request_rate"], sent["requests_per_s"]) == ("open loop", "4", "3.9")
    assert (sent["n_accel"], sent["output_tokens_per_s_total"], sent["total_tokens_per_s"]) == ("4", "780", "1560")
    assert (burst["scenario"], burst["request_rate"], burst["ttft_ms"]) == ("all requests at once", "", "1052.1")


def test_requests_that_were_sent_are_no_throughput(tmp_path: Path) -> None:
    """qps beside a throughput is what was asked for; 4 were told as answered where 2.8 were."""
    names = ["Test name", "Model", "Input Len", "Output Len", "TP Size", "GPU", "qps", "# of max concurrency.",
             "Tput (req/s)", "Total Token Tput (tok/s)", "Output Tput (tok/s)", "Mean TTFT (ms)"]  # fmt: skip
    rows = [["serving_a_tp2", "m", 1024, 128, 2, "H100", rate, 64, 2.8, 3225.6, 358.4, 61.2] for rate in (4, "inf")]
    text = "".join(f"| {' | '.join(map(str, row))} |\n" for row in [names, ["---"] * len(names), *rows])
    for row, rate in zip(rows_of(reading_of(tmp_path, text, Asked())), ("4", "")):
        assert (row["requests_per_s"], row["request_rate"], row["concurrency"]) == ("2.8", rate, "64")
        assert (row["output_tokens_per_s_total"], row["total_tokens_per_s"]) == ("358.4", "3225.6")


TABLE = "model,gpu,num_gpus,concurrency,isl,osl,output_throughput,ttft,tpot,e2e\nm,H100,4,32,1024,256,{}\n"


@pytest.mark.parametrize(
    ("cells", "ttft_ms", "tpot_ms", "e2e_ms"),
    [("1234.5,210,22,5845", 210, 22, 5845), ("1234.5,0.21,0.022,5.845", 210, 22, 5845),
     ("1234.5,1.2,22,5.845", 1200, 22, 5845), ("1234.5,120,,6", 120, None, 6000),
     ('"1,234.5 tok/s",210 ms,22 ms,5.845 s', 210, 22, 5845),
     ("1234.5 tokens/s,0.21 s,22000 us,5845ms", 210, 22, 5845)],
)  # fmt: skip
def test_latencies_without_a_unit_are_told_by_their_size_or_their_cells(
    cells: str, ttft_ms: float, tpot_ms: float | None, e2e_ms: float, tmp_path: Path
) -> None:
    """A column tpot of 22 was 22 seconds a token, and a row to calibrate by; cells with units were passed over."""
    (row,) = rows_of(reading_of(tmp_path, TABLE.format(cells)))
    assert float(row["output_tokens_per_s_total"]) == 1234.5
    assert float(row["ttft_ms"]) == pytest.approx(ttft_ms)
    assert row["tpot_ms"] == ("" if tpot_ms is None else f"{tpot_ms:g}")
    assert float(row["e2e_latency_ms"]) == pytest.approx(e2e_ms)


def test_a_unit_of_a_cell_that_contradicts_its_column_is_not_taken(tmp_path: Path) -> None:
    text = "model,gpu,num_gpus,concurrency,output_throughput,TTFT (ms),TPOT (ms)\nm,H100,4,32,1234.5,1.2 s,22 ms\n"
    (row,) = rows_of(reading_of(tmp_path, text))
    assert (row["ttft_ms"], row["tpot_ms"]) == ("", "22")


def test_a_throughput_alone_has_the_unit_of_its_cells(tmp_path: Path) -> None:
    text = "model,gpu,num_gpus,concurrency,throughput\nm,H100,4,32,1234.5 tok/s\nm,H100,4,64,2 req/s\n"
    tokens, requests = rows_of(reading_of(tmp_path, text))
    assert (tokens["output_tokens_per_s_total"], requests["requests_per_s"]) == ("1234.5", "2")


def test_a_printed_llama_bench(tmp_path: Path) -> None:
    text = """  Device 0: NVIDIA L4, compute capability 8.9
| model         | size    | params | backend | ngl | test          | t/s            |
| ------------- | ------: | -----: | ------- | --: | ------------: | -------------: |
| llama 8B Q4_0 | 4.3 GiB | 8.0 B  | CUDA    |  99 |         pp512 | 3000.00 ± 2.00 |
| llama 8B Q4_0 | 4.3 GiB | 8.0 B  | CUDA    |  99 | tg128 @ d4096 |   50.00 ± 0.10 |
"""
    assert figures(reading_of(tmp_path, text))["pp512"] == 3000
    assert figures(reading_of(tmp_path, text))["tg128 @ d4096"] == 50


USAGE = ["day", "api_requests", "prompt_tokens", "completion_tokens", "spend"]


def test_usage_as_a_table(tmp_path: Path) -> None:
    rows = [("2026-05-01", 100, 50_000, 10_000, 1.5), ("2026-05-02", 300, 150_000, 30_000, 4.5),
            ("2026-05-02", 1, -5, 1, 0), ("2026-05-03", 1, "", "", "")]  # fmt: skip
    text = table(USAGE, rows) + "2026-05-04,1\n"
    reading = reading_of(tmp_path, text)
    found = figures(reading)
    assert (reading.kind, reading.taken) == ("usage", 2)
    assert skips(reading) == {"negative tokens or cost": 1, "neither tokens nor cost": 1,
                              "more or fewer cells than columns": 1}  # fmt: skip
    assert (found["cost"], found["requests"], found["time that is covered"]) == (6.0, 400, 2 * 86_400)
    (piece,) = reading.pieces
    fleet = piece.fragment["serving"][0]
    assert (fleet["input_tokens"], fleet["output_tokens"]) == (500, 100)
    assert fleet["qpm"] == pytest.approx(400 / (2 * 86_400) * 60, rel=1e-5)


def test_usage_by_line(tmp_path: Path) -> None:
    lines = [{"timestamp": 1_780_000_000 + 3600 * n, "input_tokens": 600, "output_tokens": 60, "num_requests": 6}
             for n in range(3)]  # fmt: skip
    text = "\n".join(map(json.dumps, lines)) + '\n{"timestamp": 17800'
    reading = read(_written(tmp_path, text), ASKED, "usage")
    assert (reading.taken, figures(reading)["requests"]) == (3, 18)
    assert skips(reading) == {"the last line, half written": 1}


@pytest.mark.parametrize(("days", "hours"), [(2, 24), (14, 168)])
def test_usage_by_the_hour_tells_the_load_of_a_day_or_week(days: int, hours: int, tmp_path: Path) -> None:
    """Its peak was the planner's default of twice the mean; an hour that no bucket tells of had no requests."""
    busy = [0, 0, *range(1, 21), 100, 5]  # requests by hour of the day
    buckets = [{"start_time": 1772409600 + 3600 * n, "end_time": 1772413200 + 3600 * n,  # Monday 2026-03-02, 0:00 UTC
                "results": [{"input_tokens": 300 * part, "output_tokens": 60 * part, "num_model_requests": part}
                            for part in (busy[n % 24] * 3, busy[n % 24])]}
               for n in range(24 * days) if busy[n % 24] or n == 0]  # fmt: skip
    reading = reading_of(tmp_path, json.dumps({"data": buckets}), Asked())
    (profile,) = [piece for piece in reading.pieces if piece.what == "profile"]
    weights = [float(row["weight"]) for row in csv.DictReader(io.StringIO(profile.text))]
    assert weights == pytest.approx([each * 4 / 3600 for each in busy] * (hours // 24), rel=1e-5)
    assert figures(reading)["peak over mean"] == pytest.approx(100 * 24 / sum(busy))
    assert reading.pieces[-1].fragment["serving"][0]["load_profile"] == profile.name
    write_into(reading, str(tmp_path / "mine.yaml"), Asked())
    (fleet,) = load_scenario(tmp_path / "mine.yaml").serving
    assert fleet.peak_factor == pytest.approx(100 * 24 / sum(busy), rel=1e-4)


def test_usage_by_the_day_tells_no_hours(tmp_path: Path) -> None:
    rows = [[f"2026-03-{day:02d}", 100, 30_000, 6_000, 1.0] for day in range(1, 15)]
    reading = reading_of(tmp_path, table(USAGE, rows), Asked())
    assert [piece.what for piece in reading.pieces] == ["scenario"]
    assert any("the peak, burstiness" in note for note in reading.notes)


def test_usage_of_one_time_gives_no_rate(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, table(USAGE, [("2026-05-01 00:00:00", 100, 50_000, 10_000, 1.5)]))
    assert not reading.pieces
    assert any("no rate follows" in note for note in reading.notes)


def test_usage_of_one_day_covers_that_day(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, table(USAGE, [("5/1/2026", 100, 50_000, 10_000, 1.5)]))
    assert (figures(reading)["time that is covered"], reading.pieces[0].fragment["serving"][0]["input_tokens"]) == (
        86_400, 500)  # fmt: skip
    assert "no day after the 12th tells" in reading.understood["time that is covered"]


def test_usage_with_empty_buckets_at_its_ends_covers_them(tmp_path: Path) -> None:
    full = [{"input_tokens": 1000, "output_tokens": 200, "num_model_requests": 10}]
    buckets = [{"start_time": 3600 * n, "end_time": 3600 * (n + 1), "results": full if n == 409602 else []}
               for n in range(409600, 409604)]  # fmt: skip
    reading = reading_of(tmp_path, json.dumps({"object": "page", "data": buckets}))
    assert (reading.taken, figures(reading)["time that is covered"], reading.skipped.count) == (1, 4 * 3600, 0)


def test_usage_that_a_report_divides_anew_counts_once(tmp_path: Path) -> None:
    one = {"spend": 1.0, "prompt_tokens": 1000, "completion_tokens": 500, "api_requests": 11}
    days = [{"date": f"2026-03-0{n}", "metrics": one, "breakdown": {"models": {"m": {"metrics": one}},
             "api_keys": {"k": {"metrics": one}}}} for n in (1, 2)]  # fmt: skip
    document = {"results": days, "metadata": {"total_spend": 2.0, "total_prompt_tokens": 2000}}
    reading = reading_of(tmp_path, json.dumps(document))
    found = figures(reading)
    assert (found["prompt tokens"], found["requests"], found["cost"], reading.taken) == (2000, 22, 2.0, 2)
    assert (found["time that is covered"], reading.skipped.count) == (2 * 86_400, 1)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_usage_of_prompts_without_cached_ones_gets_them_added(form: str, tmp_path: Path) -> None:
    if form == "csv":
        text = table(["usage_date_utc", "usage_input_tokens_no_cache", "usage_input_tokens_cache_write_5m",
                      "usage_input_tokens_cache_write_1h", "usage_input_tokens_cache_read", "usage_output_tokens"],
                     [("2026-03-01", 1500, 500, 1000, 2000, 500)])  # fmt: skip
    else:
        result = {"uncached_input_tokens": 1500, "cache_read_input_tokens": 2000, "output_tokens": 500,
                  "cache_creation": {"ephemeral_1h_input_tokens": 1000, "ephemeral_5m_input_tokens": 500}}  # fmt: skip
        text = json.dumps({"data": [{"starting_at": "2026-03-01T00:00:00Z", "ending_at": "2026-03-02T00:00:00Z",
                                     "results": [result]}]})  # fmt: skip
    found = figures(reading_of(tmp_path, text))
    assert (found["prompt tokens"], found["prompt tokens from a cache"]) == (5000, 0.4)
    assert (found["answer tokens"], found["time that is covered"]) == (500, 86_400)


def test_costs_alone_show_no_tokens(tmp_path: Path) -> None:
    buckets = [{"start_time": 1736600400, "end_time": 1736604000, "results": [
        {"amount": {"value": 1.5, "currency": "usd"}, "line_item": None}]}]  # fmt: skip
    found = figures(reading_of(tmp_path, json.dumps({"object": "page", "data": buckets})))
    assert found == {"cost": 1.5, "time that is covered": 3600}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_lengths_without_times(form: str, tmp_path: Path) -> None:
    rows = [(f"r{n}", 100 * n, 10 * n) for n in range(1, 21)] + [("bad", -1, 5)]
    text = table(["request_id", "input_tokens", "output_tokens"], rows)
    if form == "jsonl":
        records = [dict(zip(("request_id", "input_tokens", "output_tokens"), row)) for row in rows]
        text = "\n".join(map(json.dumps, records)) + "\n"
    reading = reading_of(tmp_path, text)
    assert (reading.kind, reading.taken, skips(reading)) == (
        "request-lengths", 20, {"no prompt, or negative tokens": 1})  # fmt: skip
    assert figures(reading)["prompt, mean"] == 1050
    assert reading.pieces[0].fragment["serving"][0]["output_tokens"] == {"mean": 105, "p95": pytest.approx(190, abs=2)}


def _written(folder: Path, text: str) -> Source:
    path = folder / "file"
    path.write_text(text)
    return Source(path)


# writing


def test_a_reading_that_makes_nothing_says_so(tmp_path: Path) -> None:
    empty = Reading(kind="k", title="t", source="s", notes=["it is only shown"])
    with pytest.raises(UsageError, match="nothing follows from it") as caught:
        write_piece(empty, str(tmp_path / "a"))
    assert caught.value.problems[0].hint == "it is only shown"
    with pytest.raises(UsageError, match="gives nothing that stands in a scenario"):
        write_into(empty, str(tmp_path / "a.yaml"), Asked())
    assert not list(tmp_path.iterdir())


def test_a_fragment_alone_is_a_scenario_of_its_own(tmp_path: Path) -> None:
    reading = Reading(kind="k", title="t", source="s")
    fleet = {"name": "a", "model": "m", "qpm": 1}
    reading.pieces.append(Piece(what="scenario", name="x", fragment={"serving": [fleet]}))
    text = write_piece(reading, "-")
    assert "schema: plan/v1" in text
    assert "allow:" in text
    with pytest.raises(UsageError, match="is no name of a scenario"):
        write_into(reading, str(tmp_path / "a.csv"), Asked())


def test_what_was_read_is_never_replaced_by_what_follows(tmp_path: Path) -> None:
    (tmp_path / "a.trace.csv").write_text("x")
    reading = Reading(kind="k", title="t", source=str(tmp_path / "a.trace.csv"))
    reading.pieces += [Piece(what="trace", name="a.trace.csv", text="y"),
                       Piece(what="scenario", name="x", fragment={"serving": [{"name": "a", "qpm": 1}]})]  # fmt: skip
    with pytest.raises(OutputError, match="would be replaced"):
        write_into(reading, str(tmp_path / "mine.yaml"), Asked())
    assert (tmp_path / "a.trace.csv").read_text() == "x"


# sources


def test_a_line_that_does_not_end_is_cut_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"a" * (LONGEST_LINE + 3_000_000) + b"\nnext\n")
    source = Source(path)
    lines = list(source.lines())
    assert (len(lines[0]), lines[1:], source.cut_lines) == (LONGEST_LINE, ["next"], 1)


def test_text_of_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "wide"
    path.write_bytes("request_id,input_tokens,output_tokens\na,5,6\nb,7,8\n".encode("utf-16"))
    assert Source(path).head_text.startswith("request_id")
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    assert list(Source(path).lines()) == ["one", "two"]


def test_a_folder_of_nothing_and_too_many_bytes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no file"):
        Source(tmp_path / "empty")
    (tmp_path / "a").write_text("12345")
    with pytest.raises(InputError, match="more than 3 bytes"):
        Source(tmp_path / "a").text(3)


def test_a_log_of_several_engines_says_what_all_of_them_do(tmp_path: Path) -> None:
    text = "".join(
        f"INFO 08-01 10:05:{10 * n} [loggers.py:1] Engine {engine:03d}: Avg prompt throughput: 100.0 tokens/s, Avg"
        " generation throughput: 50.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 10.0%\n"
        for n in range(3) for engine in range(4)
    )  # fmt: skip
    reading = reading_of(tmp_path, text)
    found = figures(reading)
    assert (found["answer tokens, mean"], found["answer tokens of all 4 engines, mean"]) == (50, 200)
    assert any("are of one of them" in note for note in reading.notes)


@pytest.mark.parametrize(("rank", "more"), [("TP0", ""), ("DP0 TP0", " [7]"), ("DP1 TP0", " [7]")])
def test_a_log_of_sglang(rank: str, more: str, tmp_path: Path) -> None:
    text = "server_args=ServerArgs(model_path='m')\n" + "".join(
        f"[2026-03-01 10:00:{10 * n:02d} {rank}] Prefill batch{more}, #new-seq: 2, #new-token: 100, #cached-token: 300,"
        " token usage: 0.90, #running-req: 0, #queue-req: 9,\n"
        f"[2026-03-01 10:00:{10 * n:02d} {rank}] Decode batch{more}, #running-req: {n}, #token: 4, token usage: 0.12,"
        f" cuda graph: True, gen throughput (token/s): {100 * n}.00, #queue-req: 1,\n"
        for n in range(3)
    )
    reading = reading_of(tmp_path, text)
    found = figures(reading)
    assert (reading.kind, reading.taken) == ("sglang-log", 6)
    assert (found["answer tokens, mean"], found["running at once, mean"], found["waiting, mean"]) == (100, 1, 1)
    assert found["KV cache in use, mean"] == pytest.approx(12)
    assert found["prompt tokens that were computed, over that time"] == 300 / 20
    assert found["prefix cache hits, of all prompt tokens"] == 75
    with pytest.raises(InputError, match="statistics of the engine"):
        reading_of(tmp_path, "server_args=ServerArgs(model_path='m')\n")


def test_a_log_of_sglang_that_prefills_alone(tmp_path: Path) -> None:
    text = "".join(f"[2026-03-01 10:00:{n:02d} DP0 TP0] Prefill batch. #new-token: 100, #cached-token: 300,"
                   " token usage: 0.10, #queue-req: 0,\n" for n in range(3))  # fmt: skip
    reading = reading_of(tmp_path, text)
    assert (reading.kind, figures(reading)["prefix cache hits, of all prompt tokens"]) == ("sglang-log", 75)
    assert "answer tokens" not in reading.understood


def test_usage_beside_cached_tokens_gets_them_added_and_its_sum_is_none(tmp_path: Path) -> None:
    one = {
        "inputTokens": 100,
        "outputTokens": 500,
        "cacheCreationTokens": 1000,
        "cacheReadTokens": 2000,
        "totalCost": 1,
    }
    days = [{"date": f"2026-03-0{n}", **one, "modelBreakdowns": [{"modelName": "m", **one}]} for n in (1, 2)]
    reading = reading_of(tmp_path, json.dumps({"daily": days, "totals": one}))
    found = figures(reading)
    assert (found["prompt tokens"], found["answer tokens"], found["cost"]) == (6200, 1000, 2)
    assert reading.skipped.count == 1


def test_usage_with_a_decimal_comma(tmp_path: Path) -> None:
    text = (
        "Date;Requests;Prompt tokens;Completion tokens;Cost\n01.03.2026;10;1.000;500;1,50\n02.03.2026;9;1.000;500;2\n"
    )
    reading = reading_of(tmp_path, text)
    found = figures(reading)
    assert (found["prompt tokens"], found["answer tokens"], found["cost"]) == (2000, 1000, 3.5)
    assert reading.understood["numbers"] == "with a decimal comma"


@pytest.mark.parametrize(("column", "percent"), [("kv_cache_usage_perc", 50), ("kv_cache_pct", 0.5)])
def test_a_share_of_the_cache_is_no_percent_of_it(column: str, percent: float, tmp_path: Path) -> None:
    text = f"timestamp,prompt_throughput,generation_throughput,running,waiting,{column}\n0,100,50,3,1,0.5\n"
    assert figures(reading_of(tmp_path, text))["KV cache in use, mean"] == percent


@pytest.mark.parametrize("name", ["hour", "bucket", "period_start"])
def test_usage_by_hour(name: str, tmp_path: Path) -> None:
    rows = [(f"2026-03-01 {n:02d}:00", 10, 1000, 200) for n in (0, 1, 5)]
    text = table([name, "requests", "input_tokens", "output_tokens"], rows)
    assert figures(reading_of(tmp_path, text))["time that is covered"] == 6 * 3600


@pytest.mark.parametrize(
    ("text", "value"),
    [("2,5", None), ("1000,0", None), ("0,250", None), ("12,34,567", None), ("1,5e9", None), ("1,234.5", 1234.5),
     ("1,234,567", 1234567.0), ("-1,234", -1234.0), ("4,376,", 4376.0), ("1,000 %", 1000.0), ("2.5x", 2.5)],
)  # fmt: skip
def test_a_decimal_comma_is_not_passed_over(text: str, value: float | None) -> None:
    """2,5 was taken as 25."""
    assert number_of(text) == value


def test_a_table_with_decimal_commas_is_not_taken_tenfold(tmp_path: Path) -> None:
    rows = "\n".join(f"{at},0;1000,0;{at * 50},0;{at};0;10,0" for at in range(1, 11))
    path = tmp_path / "series.csv"
    path.write_text(f"t;prompt_throughput;gen_throughput;running;waiting;kv_cache_pct\n{rows}\n")
    with pytest.raises(InputError):
        read(Source(path))


def test_a_damaged_time_of_a_log_of_sglang_covers_nothing(tmp_path: Path) -> None:
    line = "[2026-03-01 10:{}:00 TP0] Prefill batch. #new-seq: 1, #new-token: 10, #cached-token: 0, #queue-req: 0\n"
    reading = reading_of(tmp_path, "server_args=ServerArgs(model_path='m')\n" + line.format("00") + line.format("99"))
    assert reading.taken == 2


@pytest.mark.parametrize("written", [True, False], ids=["kwargs", "message"])
def test_calls_of_langsmith_that_count_in_their_answers(written: bool, tmp_path: Path) -> None:
    def call(n: int) -> dict[str, Any]:
        counts = {"usage_metadata": {"input_tokens": 100 + n, "output_tokens": 20 + n, "total_tokens": 120 + 2 * n}}
        answer = {"text": "x", "message": {"lc": 1, "kwargs": counts} if written else counts}
        return {"id": str(n), "name": "ChatOpenAI", "run_type": "llm", "start_time": f"2026-11-30T09:00:{n:02d}.000000",
                "end_time": f"2026-11-30T09:00:{n + 2:02d}.500000", "inputs": {"messages": []},
                "outputs": {"generations": [[answer]]}, "parent_run_id": None}  # fmt: skip

    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(call(n)) + "\n" for n in range(10)))
    reading = read(Source(path))
    shown = {each.label: each.value for each in reading.look}
    assert (reading.kind, reading.taken) == ("requests-json", 10)
    assert (shown["prompt, mean"], shown["answer, mean"], shown["rate"]) == (104.5, 24.5, 1.0)


def test_answers_without_counts_are_no_buckets_of_usage(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    runs = [{"start_time": f"2026-11-30T09:00:0{n}", "outputs": {"generations": [[{"text": "x"}], [{"text": "y"}]]}}
            for n in range(5)]  # fmt: skip
    path.write_text("".join(json.dumps(run) + "\n" for run in runs))
    with pytest.raises(InputError):
        read(Source(path))
