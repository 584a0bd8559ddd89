"""Results of benchmarks: the same run told by each tool gives the same figures, in milliseconds."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from planner.reading.kinds import Asked, Reading, read
from planner.reading.source import Source
from planner.validate.serving_rows import read_serving_table
from tests.reading import writers

WHERE = Asked(model="llama-3.1-8b", accelerator="H100-80GB-SXM", devices=1)


def told(tmp_path: Path, text: str, asked: Asked | None = None) -> Reading:
    (tmp_path / "result").write_text(text)
    return read(Source(tmp_path / "result"), asked)


def rows_of(reading: Reading) -> list[dict[str, str]]:
    text = next(piece.text for piece in reading.pieces if piece.what == "rows")
    return list(csv.DictReader(io.StringIO(text)))


# tool -> what its file says of one run; "" where it does not say
RUNS = {
    "vllm_bench": {"ttft_ms": 100.25, "tpot_ms": 11.5, "requests_per_s": 2.0, "concurrency": 8},
    "vllm_console": {"ttft_ms": 100.25, "tpot_ms": 11.5, "requests_per_s": 2.0},
    "trtllm_console": {"ttft_ms": 120.0, "tpot_ms": 12.0, "requests_per_s": 2.0},
    "guidellm": {"ttft_ms": 108.0, "tpot_ms": 10.8, "requests_per_s": 2.0, "concurrency": 8},
    "aiperf": {"ttft_ms": 100.0, "tpot_ms": 11.0, "requests_per_s": 2.0, "concurrency": 8},
    "inference_perf": {"ttft_ms": 108.0, "tpot_ms": 10.8, "requests_per_s": 2.0, "request_rate": 2.0},
    "llmperf": {"ttft_ms": 100.0, "tpot_ms": 10.8661, "requests_per_s": 2.0, "concurrency": 8},
}


@pytest.mark.parametrize("tool", RUNS)
def test_a_run_is_the_same_whoever_tells_it(tool: str, tmp_path: Path) -> None:
    (row,) = rows_of(told(tmp_path, getattr(writers, tool)(), WHERE))
    assert float(row["output_tokens_per_s_total"]) == 256.0
    for column, value in RUNS[tool].items():
        assert float(row[column]) == pytest.approx(value), column
    if tool not in ("trtllm_console", "aiperf"):
        assert (float(row["input_tokens"]), float(row["output_tokens"])) == (1024, 128)


def test_rows_are_taken_by_validation(tmp_path: Path) -> None:
    reading = told(tmp_path, writers.sglang_bench(), WHERE)
    (tmp_path / "rows.csv").write_text(next(piece.text for piece in reading.pieces))
    table = read_serving_table(tmp_path / "rows.csv")
    assert not table.refused
    assert not table.ignored
    assert [(row.concurrency, row.ttft_ms, row.load) for row in table.rows] == [
        (4, 100.25, "closed"),
        (16, 100.25, "closed"),
    ]


def test_what_the_file_says_of_machines_is_kept(tmp_path: Path) -> None:
    reading = told(tmp_path, writers.sglang_bench(), Asked(accelerator="H100"))
    assert {(row["model"], row["n_accel"], row["tp"]) for row in rows_of(reading)} == {(writers.MODEL, "2", "2")}


def test_without_a_device_there_are_no_rows_and_it_is_said(tmp_path: Path) -> None:
    reading = told(tmp_path, writers.vllm_bench())
    assert not reading.pieces
    assert any("--accelerator, --devices" in note for note in reading.notes)


def test_latencies_without_a_unit_are_seconds_and_those_of_vllm_are_not(tmp_path: Path) -> None:
    record = json.loads(writers.vllm_bench())
    plain = {key.removesuffix("_ms"): value / 1e3 if key.endswith("_ms") else value for key, value in record.items()}
    for text in (json.dumps(record), json.dumps(plain)):
        assert float(rows_of(told(tmp_path, text, WHERE))[0]["ttft_ms"]) == pytest.approx(100.25)


def test_summaries_are_made_of_the_requests_where_there_is_none(tmp_path: Path) -> None:
    record = json.loads(writers.vllm_bench())
    record = {key: value for key, value in record.items() if not key.endswith("_ms")}
    record |= {"ttfts": [0.1, 0.2, 0.6], "itls": [[0.01, 0.03], [0.02], []]}
    (row,) = rows_of(told(tmp_path, json.dumps(record), WHERE))
    assert float(row["ttft_ms"]) == pytest.approx(200)
    assert float(row["tpot_ms"]) == pytest.approx(20)


def test_a_run_of_which_nothing_succeeded_is_listed_not_taken(tmp_path: Path) -> None:
    failed = writers.vllm_bench(completed=0, failed=100, mean_ttft_ms=0.0, median_ttft_ms=0.0, output_throughput=0.0,
                                request_throughput=0.0)  # fmt: skip
    reading = told(tmp_path, failed, WHERE)
    assert (reading.taken, reading.skipped.reasons) == (0, {"every request failed": (1, 1)})
    assert not reading.pieces


def test_a_throughput_without_a_unit_is_taken_when_its_latency_proves_one(tmp_path: Path) -> None:
    reading = told(tmp_path, writers.points_table())
    (row,) = rows_of(reading)
    assert float(row["total_tokens_per_s"]) == 2048
    assert reading.skipped.reasons == {"a throughput without a unit, and its latency proves none": (1, 3)}


def test_prompt_and_decode_tests_are_told_apart(tmp_path: Path) -> None:
    first, second = rows_of(told(tmp_path, writers.llama_bench()))
    assert (float(first["prefill_tokens_per_s"]), first["output_tokens_per_s_total"]) == (1500.5, "")
    assert (float(second["output_tokens_per_s_total"]), float(second["input_tokens"])) == (50.25, 4096)
