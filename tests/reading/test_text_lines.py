"""Requests that stand in lines of words or in cells of tables, and timings that local engines print."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.reading.kinds import Asked, Reading, read
from planner.reading.source import Source

TIMES = [f"2025-09-01T08:{minute:02d}:05" for minute in range(30)]


def read_text(folder: Path, text: str, name: str = "file", **asked: Any) -> Reading:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read(Source(path), Asked(**asked))


def figures(reading: Reading) -> dict[str, Any]:
    return {each.label: each.value for each in reading.look}


def table(rows: list[dict[str, Any]], folder: Path) -> Reading:
    path = folder / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return read(Source(path))


@pytest.mark.parametrize(
    "line",
    [
        'ts={time}Z level=info msg="done" prompt_tokens={given} completion_tokens={made} status=200',
        "{time},123 - gateway - INFO - usage: input_tokens: {given}, output_tokens: {made}",
        "[{time}] Finish: obj=GenerateReqInput(rid='1'), out={{'meta_info': {{'prompt_tokens': {given}, "
        "'completion_tokens': {made}, 'cached_tokens': 0}}}}",
    ],
)
def test_requests_of_lines_of_words(line: str, tmp_path: Path) -> None:
    lines = [line.format(time=time, given=800 + n, made=n) for n, time in enumerate(TIMES)]
    reading = read_text(tmp_path, "\n".join([*lines, f"{TIMES[0]} GET /health 200"]))
    assert (reading.kind, reading.taken) == ("requests-lines", 29)
    assert reading.skipped.reasons == {"no answer: it failed or was cancelled": (1, 1)}
    found = figures(reading)
    assert found["prompt, mean"] == pytest.approx(815)
    assert (found["answer, max"], found["lines of other things"], found["time"]) == (29, 1, 29 * 60)


@pytest.mark.parametrize(
    ("line", "ended", "broken"),
    [("ts={time}Z prompt_tokens={given} completion_tokens=9 cached_tokens=400 status={how}", "200", "503"),
     ("ts={time}Z level={how} prompt_tokens={given} completion_tokens=9 cached_tokens=400", "info", "error"),
     ("[{time}] Finish: obj=GenerateReqInput(rid='1'), out={{'meta_info': {{'finish_reason': {{'type': '{how}'}}, "
      "'prompt_tokens': {given}, 'completion_tokens': 9, 'cached_tokens': 400}}}}", "stop", "abort")],
)  # fmt: skip
def test_lines_of_requests_that_were_broken_off_are_no_load(
    line: str, ended: str, broken: str, tmp_path: Path
) -> None:  # fmt: skip
    """SGLang tells what was aborted, and what its cache held, in the line of each request: neither was looked at."""
    lines = [line.format(time=time, given=800, how=ended if n % 3 else broken) for n, time in enumerate(TIMES)]
    reading = read_text(tmp_path, "\n".join(lines) + "\n")
    assert (reading.taken, reading.skipped.count) == (20, 10)
    assert figures(reading)["prompt tokens from a cache"] == 0.5
    assert reading.pieces[-1].fragment["serving"][0]["prefix_cached"] == "50.00 %"


@pytest.mark.parametrize("words", ["level=info prompt_tokens={} completion_tokens=9",
                                   'msg="done, all of it" input_tokens={} output_tokens=9'])  # fmt: skip
def test_lines_of_words_within_records_are_requests(words: str, tmp_path: Path) -> None:
    """As jq takes them out of an answer of Loki, and as logcli writes them."""
    rows = [{"timestamp": str((1772438400 + 60 * n) * 10**9), "line": words.format(800 + n)} for n in range(30)]
    reading = read_text(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    assert (reading.kind, reading.taken, figures(reading)["prompt, mean"]) == ("requests-lines", 30, 814.5)


def test_lines_whose_time_is_of_another_kind_are_counted(tmp_path: Path) -> None:
    lines = [f"ts={time}Z input_tokens=9 output_tokens=9" for time in TIMES]
    reading = read_text(tmp_path, "\n".join([*lines, "ts=1756713600 input_tokens=9 output_tokens=9",
                                             "input_tokens=9 output_tokens=9"]))  # fmt: skip
    assert (reading.taken, reading.skipped.reasons) == (30, {"its time is not readable": (2, 31)})
    turned = ["ts=1756713600 input_tokens=9 output_tokens=9", *lines]
    assert read_text(tmp_path, "\n".join(turned)).skipped.count == 30
    counted = [f"level=info ts={1_756_713_600 + 7 * n}.5 input_tokens=9 output_tokens=9" for n in range(30)]
    assert figures(read_text(tmp_path, "\n".join(counted)))["time"] == 30 * 7


SLOT = """slot print_timing: id  0 | task {n} |
prompt eval time =     {prompt}.00 ms /   {given} tokens (    0.38 ms per token,  2666.00 tokens per second)
       eval time =    2000.00 ms /   {made} tokens (   20.00 ms per token,    50.00 tokens per second)
      total time =    2300.00 ms /   900 tokens
"""
CLI = """llama_perf_context_print:        load time =    1853.03 ms
llama_perf_context_print: prompt eval time =     100.00 ms /    12 tokens
llama_perf_context_print:        eval time =    2500.00 ms /   125 runs
"""
OLLAMA = """total duration:       4.648158958s
load duration:        4.071084ms
prompt eval count:    26 token(s)
prompt eval duration: 500ms
prompt eval rate:     52 tokens/s
eval count:           130 token(s)
eval duration:        1m5s
eval rate:            2 tokens/s
"""


def test_timings_of_a_server_are_lengths_and_no_points(tmp_path: Path) -> None:
    text = "".join(SLOT.format(n=n, prompt=400, given=800 + n, made=100) for n in range(11))
    reading = read_text(tmp_path, text, model="llama-3.1-8b", accelerator="rtx-4090")
    found = figures(reading)
    assert (reading.kind, reading.taken, found["prompt, mean"]) == ("printed-timings", 11, 805)
    assert found["answer, median of a request"] == 50
    assert [piece.what for piece in reading.pieces] == ["scenario"]


@pytest.mark.parametrize(("text", "prompts", "answers"), [(CLI, 120, 50), (OLLAMA, 52, 2)])
def test_timings_of_one_sequence_are_points(text: str, prompts: float, answers: float, tmp_path: Path) -> None:
    reading = read_text(tmp_path, text, model="llama-3.1-8b", accelerator="rtx-4090")
    found = figures(reading)
    assert (found["prompt, median of a request"], found["answer, median of a request"]) == (prompts, answers)
    assert [piece.what for piece in reading.pieces] == ["rows", "scenario"]


def test_a_log_of_vllm_without_statistics_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no line of"):
        read_text(tmp_path, "INFO 09-01 08:00:05 [logger.py:39] Received request chatcmpl-1: prompt: 'hi', params: "
                            "SamplingParams(n=1, temperature=0.7), prompt_token_ids: None\n")  # fmt: skip


@pytest.mark.parametrize(
    ("column", "record"),
    [
        ("usage", {"input": 800, "output": 100, "total": 900, "unit": "TOKENS"}),
        ("usageDetails", {"input": 750, "input_cached_tokens": 50, "output": 100, "total": 900}),
        ("usage", {"promptTokens": 800, "completionTokens": 100, "totalTokens": 900}),
        ("@message", {"requestId": "q", "input": {"inputTokenCount": 800}, "output": {"outputTokenCount": 100}}),
    ],
)
def test_records_in_cells_are_looked_into(column: str, record: dict[str, Any], tmp_path: Path) -> None:
    rows = [{"startTime": time, "type": "GENERATION", column: json.dumps(record)} for time in TIMES]
    reading = table([*rows, {**rows[0], column: "{"}], tmp_path)
    assert (reading.taken, reading.skipped.reasons) == (30, {"a number of tokens is missing or no number": (1, 32)})
    found = figures(reading)
    assert (found["prompt, max"], found["answer, max"]) == (800, 100)


def test_cells_with_ends_of_lines_are_one_row(tmp_path: Path) -> None:
    rows = [{"created_at": time, "prompt": 'one\n"two", three\n\nfour', "prompt_tokens": 800, "completion_tokens": 100,
             "response": "a\nb"} for time in TIMES]  # fmt: skip
    reading = table(rows * 800, tmp_path)  # more than a block of a megabyte
    assert (reading.taken, reading.skipped.count) == (24_000, 0)


def test_a_quote_that_does_not_end_takes_no_other_row_away(tmp_path: Path) -> None:
    lines = [f"{time},9,9,{'x' if n else chr(34) + 'open'}" for n, time in enumerate(TIMES)]
    reading = read_text(tmp_path, "time,input_tokens,output_tokens,note\n" + "\n".join(lines) + "\n")
    assert reading.taken == 30


def test_tokens_of_a_cache_stand_beside_those_of_the_prompt(tmp_path: Path) -> None:
    usage = {"input_tokens": 4, "cache_creation_input_tokens": 1000, "cache_read_input_tokens": 9000,
             "output_tokens": 100}  # fmt: skip
    lines = [json.dumps({"timestamp": time, "message": {"usage": usage}}) for time in TIMES]
    assert figures(read_text(tmp_path, "\n".join(lines)))["prompt, mean"] == 10_004


@pytest.mark.parametrize(("time", "given", "made"), [("time_of_generation", "prompt_token", "response_token"),
                                                    ("created_at", "prompt_eval_count", "eval_count")])  # fmt: skip
def test_names_of_further_gateways(time: str, given: str, made: str, tmp_path: Path) -> None:
    assert table([{time: when, given: 800, made: 100} for when in TIMES], tmp_path).kind == "requests-table"


def test_metrics_of_azure_are_usage(tmp_path: Path) -> None:
    rows = [{"Timestamp": f"09/01/2025 {8 + n}:00:00 AM", "Processed Prompt Tokens (Sum)": 8000,
             "Generated Completion Tokens (Sum)": 900, "Azure OpenAI Requests (Sum)": 5} for n in range(3)]  # fmt: skip
    reading = table(rows, tmp_path)
    assert (reading.kind, figures(reading)["requests"]) == ("usage", 15)


ROWS = [{"timestamp": time, "input_tokens": 800, "output_tokens": 100} for time in TIMES]
FRAMES: dict[str, Any] = {
    "a column each": {name: {str(n): row[name] for n, row in enumerate(ROWS)} for name in ROWS[0]},
    "a numbered record each": {str(n): row for n, row in enumerate(ROWS)},
    "names apart": {"columns": list(ROWS[0]), "index": list(range(30)), "data": [list(row.values()) for row in ROWS]},
    "a list each": {name: [row[name] for row in ROWS] for name in ROWS[0]},
    "hits": {"took": 1, "hits": {"total": {"value": 30}, "hits": [{"_index": "x", "_source": row} for row in ROWS]}},
}


@pytest.mark.parametrize("form", FRAMES)
def test_tables_as_pandas_and_elasticsearch_write_them(form: str, tmp_path: Path) -> None:
    for indent in (None, 1):
        reading = read_text(tmp_path, json.dumps(FRAMES[form], indent=indent))
        assert (reading.kind, reading.taken, figures(reading)["prompt, mean"]) == ("requests-json", 30, 800)


@pytest.mark.parametrize("cell", ["1 200", "1\u202f200", "1'200", "1\u2019200"])
def test_thousands_with_a_blank_or_an_apostrophe(cell: str, tmp_path: Path) -> None:
    text = "timestamp;input_tokens;output_tokens\n" + "".join(f"{time};{cell};100\n" for time in TIMES)
    assert figures(read_text(tmp_path, text))["prompt, mean"] == 1200


def test_lines_that_end_in_a_return_alone(tmp_path: Path) -> None:
    text = "\r".join(["timestamp,input_tokens,output_tokens", *(f"{time},800,100" for time in TIMES)])
    path = tmp_path / "mac.csv"
    path.write_bytes(text.encode())
    assert read(Source(path)).taken == 30


def test_records_as_python_prints_them(tmp_path: Path) -> None:
    assert read_text(tmp_path, "\n".join(map(str, ROWS))).taken == 30
