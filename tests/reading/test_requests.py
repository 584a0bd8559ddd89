"""Logs of requests: figures equal to those that pandas gives, and every bad row counted."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from planner.cli.main import ROOMS, app_of
from planner.errors import InputError, UsageError
from planner.reading.columns import has_zone
from planner.reading.kinds import Asked, Reading, read
from planner.reading.source import Source
from planner.traffic.request_trace import read_trace
from tests.reading.writers import azure, burstgpt, litellm, mooncake, requests


def told(tmp_path: Path, text: str | bytes, asked: Asked | None = None, name: str = "log.csv") -> Reading:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(Source(path), asked)


def figure(reading: Reading, label: str) -> float:
    return next(float(each.value) for each in reading.look if each.label == label)


@pytest.mark.parametrize("form", [azure, burstgpt, mooncake, litellm])
def test_figures_are_those_of_pandas(form, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = requests()
    reading = told(tmp_path, form(rows))
    frame = pd.DataFrame(rows, columns=["at", "given", "made"])
    span = frame["at"].max() - frame["at"].min()
    assert reading.taken == len(frame)
    assert figure(reading, "rate") == pytest.approx((len(frame) - 1) / span, rel=2e-4)
    for name, column in (("prompt", "given"), ("answer", "made")):
        assert figure(reading, f"{name}, mean") == pytest.approx(frame[column].mean(), rel=1e-9)
        assert figure(reading, f"{name}, p95") == pytest.approx(frame[column].quantile(0.95), rel=1e-9)


def test_reuse_of_prefixes_is_that_of_a_cache_that_forgets_nothing(tmp_path: Path) -> None:
    text = mooncake(requests())
    seen: set[int] = set()
    shared = total = 0
    for record in map(json.loads, text.splitlines()):
        leading = next((n for n, each in enumerate(record["hash_ids"]) if each not in seen), len(record["hash_ids"]))
        shared += min(leading * 512, record["input_length"])
        total += record["input_length"]
        seen.update(record["hash_ids"])
    assert figure(told(tmp_path, text, name="m.jsonl"), "prompt tokens of a prefix seen before") == pytest.approx(
        shared / total
    )


def test_the_trace_that_is_written_says_the_same(tmp_path: Path) -> None:
    reading = told(tmp_path, azure(requests()))
    piece = next(piece for piece in reading.pieces if piece.what == "trace")
    (tmp_path / piece.name).write_text(piece.text)
    traffic = read_trace(tmp_path / piece.name).traffic()
    assert traffic.requests_per_s == pytest.approx(figure(reading, "rate"), rel=1e-6)
    assert traffic.arrival_variability == pytest.approx(
        figure(reading, "burstiness (squared variation of gaps)"), rel=1e-3
    )


BAD = [
    ("2025-03-03 10:00:00,-1,5", "negative tokens"),
    ("2025-03-03 10:00:00,10,0", "no answer: it failed or was cancelled"),
    ("2025-03-03 10:00:00,0,10", "no prompt"),
    ("2025-03-03 10:00:00,ten,10", "a number of tokens is missing or no number"),
    ("2025-03-03 10:00:00,1.5,10", "tokens that are no whole number"),
    ("2025-03-03 10:00:00,10,99999999999", "more than 1,000,000,000 tokens"),
    ("yesterday,10,10", "its time is not readable"),
    ("2025-03-03 10:00:00,10", "fewer cells than columns, or a quote that does not end"),
    ("1998-01-01 00:00:00,10,10", "its time is more than a year from the others, or in another unit"),
]


@pytest.mark.parametrize(("row", "reason"), BAD)
def test_a_bad_row_is_counted_with_its_reason_and_line(row: str, reason: str, tmp_path: Path) -> None:
    lines = azure(requests()).split("\r\n")
    reading = told(tmp_path, "\n".join([*lines[:100], row, *lines[100:]]))
    assert reading.taken == 400
    assert reading.skipped.reasons == {reason: (1, 101)}


def test_a_time_in_another_unit_is_not_mixed_in(tmp_path: Path) -> None:
    lines = ["timestamp,input_tokens,output_tokens", *(f"{1_741_000_000 + n},10,10" for n in range(50))]
    reading = told(tmp_path, "\n".join([*lines, "1741000050000,10,10"]))
    assert reading.taken == 50
    assert reading.skipped.count == 1


@pytest.mark.parametrize(
    ("column", "factor", "asked"),
    [
        ("arrival_time_ns", 1e9, Asked()),
        ("arrival (ms)", 1e3, Asked()),
        ("ts", 1e6, Asked(time_unit="us")),
        ("created_at", 1.0, Asked()),
    ],
)
def test_units_come_from_names_and_flags(column: str, factor: float, asked: Asked, tmp_path: Path) -> None:
    rows = "".join(f"{int(n * 2 * factor)},100,10\n" for n in range(100))
    assert figure(told(tmp_path, f"{column},prompt tokens,completion tokens\n{rows}", asked), "rate") == pytest.approx(
        0.5, rel=0.02
    )


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_order_case_blanks_and_further_columns_do_not_matter(separator: str, tmp_path: Path) -> None:
    rows = "".join(separator.join([str(n), "x y", str(50 + n % 3), str(n * 2.5)]) + "\n" for n in range(60))
    head = separator.join(["Completion_Tokens", "note", "PROMPT tokens", "Arrival Time"])
    reading = told(tmp_path, f"{head}\n{rows}")
    assert reading.taken == 59  # the first has no answer
    assert figure(reading, "rate") == pytest.approx(0.4, rel=0.05)


SLASHED = [
    (["03/11/2026", "04/11/2026", "13/11/2026"], 10, "written out, day/month/year"),
    (["11/03/2026", "11/04/2026", "11/13/2026"], 10, "written out, month/day/year"),
    (["11/03/2026", "11/04/2026"], 1, "written out, taken as month/day/year: no day after the 12th tells"),
]


@pytest.mark.parametrize(("days", "span", "said"), SLASHED)
@pytest.mark.parametrize("form", ["table", "json"])
def test_the_order_of_day_and_month_is_that_of_the_whole_log(
    days: list[str], span: int, said: str, form: str, tmp_path: Path
) -> None:
    times = [f"{day} 10:00:00" for day in [*days[:-1] * 300, days[-1]]]  # what tells stands last
    if form == "json":
        text = "".join(json.dumps({"time": each, "input_tokens": 10, "output_tokens": 5}) + "\n" for each in times)
    else:
        text = "time;input_tokens;output_tokens\n" + "".join(f"{each};10;5\n" for each in times)
    reading = told(tmp_path, text)
    assert (reading.taken, reading.skipped.count) == (len(times), 0)
    assert figure(reading, "time") == pytest.approx(span * 86_400, rel=5e-3)  # and one gap more
    assert reading.understood["time"].endswith(said)


@pytest.mark.parametrize(("status", "failed"), [("500.0", 1), ("404", 1), ("200.0", 0), ("4e2", 1), ("600", 0)])
def test_a_status_is_a_number_however_it_is_written(status: str, failed: int, tmp_path: Path) -> None:
    rows = [f"2025-03-03 10:00:0{second},10,5,{status if second == 3 else 200}\n" for second in range(6)]
    reading = told(tmp_path, "time,input_tokens,output_tokens,status\n" + "".join(rows))
    assert (reading.taken, reading.skipped.count) == (6 - failed, failed)


@pytest.mark.parametrize(
    ("text", "zone"),
    [("2026-11-01 10:00:00+01", True), ("2026-11-01T10:00:00.5-03", True), ("2026-11-01 10:00:00+0530", True),
     ("2026-11-01T10:00Z", True), ("2026-11-01", False), ("2026-11-01 10:00:00", False)],
)  # fmt: skip
def test_an_offset_of_hours_alone_is_a_zone(text: str, zone: bool, tmp_path: Path) -> None:
    assert has_zone(text) is zone
    rows = "".join(f"{text},{given},5\n" for given in (10, 20))
    said = told(tmp_path, "time,input_tokens,output_tokens\n" + rows).understood["time zone"]
    assert said.startswith("as written" if zone else "none is written")


def test_a_zone_is_said_and_obeyed(tmp_path: Path) -> None:
    text = azure(requests())
    here, there = told(tmp_path, text), told(tmp_path, text, Asked(time_zone="Asia/Tokyo"))
    assert "UTC" in here.understood["time zone"]
    assert "Asia/Tokyo" in there.understood["time zone"]
    first = [
        float(piece.text.split("\n")[1].split(",")[0]) for reading in (here, there) for piece in reading.pieces[:1]
    ]
    assert first[0] - first[1] == pytest.approx(9 * 3600)
    with pytest.raises(UsageError, match="no time zone"):
        told(tmp_path, text, Asked(time_zone="Mars/Base"))


def test_the_same_request_twice_counts_once(tmp_path: Path) -> None:
    records = json.loads(litellm(requests(100)))
    reading = told(tmp_path, json.dumps(records + records[:7]), name="a.json")
    assert (reading.taken, reading.skipped.count) == (100, 7)


def test_failed_requests_are_counted(tmp_path: Path) -> None:
    records = json.loads(litellm(requests(50)))
    records[3]["status"] = "failure"
    reading = told(tmp_path, "\n".join(map(json.dumps, records)), name="a.jsonl")
    assert reading.skipped.reasons == {"its status says that it failed": (1, 4)}


def test_an_access_log_is_told_to_have_no_tokens(tmp_path: Path) -> None:
    line = '10.0.0.1 - - [02/Mar/2026:08:00:00 +0000] "POST /v1/chat/completions HTTP/1.1" 200 512 "-" "curl/8"\n'
    with pytest.raises(InputError, match="no tokens"):
        told(tmp_path, line * 30, name="access.log")


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [("n_prompt_tokens", "n_completion_tokens"), ("tokens_evaluated", "tokens_predicted"),
     ("n_input_tokens", "n_output_tokens")],
)  # fmt: skip
def test_more_names_of_lengths(prompt: str, answer: str, tmp_path: Path) -> None:
    rows = "".join(f"{1.7e9 + n},{500 + n},64\n" for n in range(30))
    assert figure(told(tmp_path, f"time,{prompt},{answer}\n{rows}"), "prompt, mean") == pytest.approx(514.5)


OUTCOMES = [  # of what ended, and of what did not: whatever a log calls it
    ({"success": True}, {"success": False}),
    ({"success": "yes"}, {"success": "no"}),
    ({"error": None}, {"error": {"code": 502, "message": "upstream"}}),
    ({"error": ""}, {"error": "TimeoutError"}),
    ({"error_code": 0}, {"error_code": 429}),
    ({"http_status": 200}, {"http_status": 429}),
    ({"status": "done", "response_status": "200.0"}, {"status": "done", "response_status": "503.0"}),
    ({"finish_reason": "stop"}, {"finish_reason": "abort"}),
    ({"choices": [{"finish_reason": "length"}]}, {"choices": [{"finish_reason": "abort"}]}),
    ({"cancelled": 0}, {"cancelled": 1}),
    ({"aborted": "false"}, {"aborted": "true"}),
]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(("ended", "broken"), OUTCOMES)
def test_what_was_not_answered_to_its_end_is_no_load(
    ended: dict[str, object], broken: dict[str, object], nested: bool, tmp_path: Path
) -> None:
    """They counted as load where no column was called status: one request of four more than was answered."""
    records = [{"time": 1.7e9 + n, "prompt_tokens": 500 + n, "completion_tokens": 64, **(ended if n % 4 else broken)}
               for n in range(40)]  # fmt: skip
    text = "".join(json.dumps({"_source": each} if nested else each) + "\n" for each in records)
    reading = told(tmp_path, text, name="log.jsonl")
    assert (reading.taken, reading.skipped.count) == (30, 10)
    assert any(note.startswith("10 requests without an end") for note in reading.notes)
    if not nested and not any(isinstance(each, dict | list) for each in broken.values()):
        assert told(tmp_path, pd.DataFrame(records).to_csv(index=False)).taken == 30


@pytest.mark.parametrize("form", ["json", "table"])
def test_blocks_of_requests_say_what_each_of_them_says(form: str, tmp_path: Path) -> None:
    """Sound blocks are taken whole; one request that was broken off has its block taken one by one."""
    rows = [{"time": 1.7e9 + n, "prompt_tokens": 500 + n % 100, "completion_tokens": 64, "error": None,
             "status_code": 200, "cached_tokens": n % 300, "finish_reason": "stop"} for n in range(30_000)]  # fmt: skip

    def text() -> str:
        if form == "table":
            return pd.DataFrame(rows).to_csv(index=False)
        return "".join(json.dumps(row) + "\n" for row in rows)

    whole = told(tmp_path, text())
    rows[7] |= {"error": "TimeoutError"}
    rows[29_990] |= {"finish_reason": "abort"}
    parted = told(tmp_path, text())
    for reading, left in ((whole, rows), (parted, [*rows[:7], *rows[8:29_990], *rows[29_991:]])):
        frame = pd.DataFrame(left)
        share = np.minimum(frame["cached_tokens"], frame["prompt_tokens"]).sum() / frame["prompt_tokens"].sum()
        assert (reading.taken, reading.skipped.count) == (len(left), 30_000 - len(left))
        assert figure(reading, "prompt tokens from a cache") == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize("details", ["usage.prompt_tokens_details", "usage.input_tokens_details", ""])
def test_what_a_cache_held_of_prompts_is_told_and_planned(details: str, tmp_path: Path) -> None:
    """Each request of OpenAI's form tells it, and the fleet was sized as if its servers had kept nothing."""
    part = "input" if "input" in details else "prompt"
    rows = [{"created": 1.7e9 + n, "usage": {f"{part}_tokens": 1000 + n, "output_tokens": 64}} for n in range(40)]
    cached = [n * 20 for n in range(40)]
    for row, held in zip(rows, cached):
        if details:
            row["usage"][details.partition(".")[2]] = {"cached_tokens": held}  # type: ignore[index]
        else:
            row["cached_tokens"] = held
    reading = told(tmp_path, "".join(json.dumps(each) + "\n" for each in rows), name="log.jsonl")
    share = sum(cached) / sum(1000 + n for n in range(40))
    assert figure(reading, "prompt tokens from a cache") == pytest.approx(share)
    assert reading.pieces[-1].fragment["serving"][0]["prefix_cached"] == f"{share:.2%}".replace("%", " %")


@pytest.mark.parametrize("column", ["request_model", "model_permaslug"])
def test_the_model_of_a_gateways_export_is_the_fleets(column: str, tmp_path: Path) -> None:
    """Helicone's and OpenRouter's names of that column were not known, and llama-3.1-8b stood in the scenario."""
    rows = [f"2026-11-01 10:00:{n:02d},qwen3-32b,{500 + n},64" for n in range(30)]
    text = f"created_at,{column},prompt_tokens,completion_tokens\n" + "\n".join(rows) + "\n"
    reading = told(tmp_path, text)
    assert reading.understood["model"].startswith("qwen3-32b, as the file names it")


def test_half_of_the_times_in_another_unit_are_told(tmp_path: Path) -> None:
    """The middle of seconds and milliseconds is near neither: all were left out, which was an error of ours."""
    rows = [
        {"ts": (1_790_000_000 + 7 * n) * (1 if n % 2 else 1000), "prompt_tokens": 100, "completion_tokens": 20}
        for n in range(200)
    ]
    reading = told(tmp_path, "\n".join(map(json.dumps, rows)), name="a.jsonl")
    assert reading.taken == 100
    assert reading.skipped.reasons == {"its time is more than a year from the others, or in another unit": (100, 1)}
    assert reading.understood["time"].startswith("ts, s: ")


def test_the_half_line_of_a_running_log_is_left_for_later(tmp_path: Path) -> None:
    reading = told(tmp_path, mooncake(requests(50))[:-30], name="a.jsonl")
    assert reading.skipped.reasons == {"the last line, half written": (1, 50)}


def test_rows_out_of_order_are_sorted_and_said(tmp_path: Path) -> None:
    rows = requests(100)
    rows[10], rows[60] = rows[60], rows[10]
    reading = told(tmp_path, azure(rows))
    assert any("sorted by time" in note for note in reading.notes)
    assert figure(reading, "rate") == pytest.approx(99 / (requests(100)[-1][0] - requests(100)[0][0]), rel=1e-6)


def test_columns_by_name(tmp_path: Path) -> None:
    text = "wann,rein,raus\n" + "".join(f"{n},100,10\n" for n in range(1, 40))
    with pytest.raises(InputError, match="no kind"):
        told(tmp_path, text)
    asked = Asked(columns={"time": "wann", "input": "rein", "output": "raus"})
    path = tmp_path / "log.csv"
    assert read(Source(path), asked, "requests-table").taken == 39
    with pytest.raises(InputError, match="no column 'hin'"):
        read(Source(path), Asked(columns={"time": "hin"}), "requests-table")


def test_both_readers_take_the_same(tmp_path: Path) -> None:
    """A quote sends a block through the careful reader: the figures must not change."""
    text = azure(requests())
    fast = told(tmp_path, text)
    slow = told(
        tmp_path,
        text.replace("ContextTokens", '"ContextTokens"').replace("\r\n20", '\r\n"20', 1).replace("0,", '0",', 1),
    )
    for one, other in zip(slow.look, fast.look):
        assert one.value == pytest.approx(other.value, rel=1e-6), one.label


def test_long_columns_are_cut_into_parts_without_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.traffic import request_trace

    times = np.cumsum(np.random.default_rng(3).exponential(1.0, 5000))
    whole = request_trace.burstiness(times)
    monkeypatch.setattr(request_trace, "_AT_ONCE", 700)
    assert request_trace.burstiness(times) == pytest.approx(whole, rel=1e-12)


def test_from_a_file_to_a_plan_in_two_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(azure(requests()))
    first = CliRunner().invoke(app_of(*ROOMS), ["read", "log.csv", "--into", "mine.yaml", "--model", "llama-3.1-8b"])
    assert first.exit_code == 0, first.output
    before = (tmp_path / "log.csv").read_text()
    second = CliRunner().invoke(app_of(*ROOMS), ["solve", "mine.yaml", "-o", "json"])
    assert second.exit_code == 0, second.output
    assert json.loads(second.stdout)["workloads"]
    assert (tmp_path / "log.csv").read_text() == before


def test_stdin_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe:
        buffer = io.BytesIO(azure(requests()).encode())

    monkeypatch.setattr("sys.stdin", Pipe())
    assert read(Source("-")).taken == 400


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_a_log_in_utf_16_is_read_as_the_same_in_utf_8(tmp_path: Path, name: str) -> None:
    """Windows writes such: its rows were refused as having fewer cells than columns."""
    if name.endswith("csv"):
        lines = ["timestamp,input_tokens,output_tokens"]
        lines += [f"2026-03-02T10:{n // 60:02}:{n % 60:02}Z,{100 + n},{10 + n}" for n in range(300)]
    else:
        lines = [json.dumps({"timestamp": 1000 * n, "input_length": 100 + n, "output_length": 10 + n, "hash_ids": [n]})
                 for n in range(300)]  # fmt: skip
    text = "\n".join(lines) + "\n"
    found = []
    for coding in ("utf-8", "utf-16", "utf-16-be"):
        path = tmp_path / coding / name
        path.parent.mkdir()
        mark = "\ufeff" if coding == "utf-16-be" else ""
        path.write_bytes((mark + text).encode(coding))
        reading = read(Source(path))
        found.append((reading.kind, reading.taken, [str(one) for one in reading.look]))
    assert found[0] == found[1] == found[2]
    assert found[0][1] == 300


def _figures(reading: Reading) -> dict[str, object]:
    return {each.label: each.value for each in reading.look}


def test_seconds_of_qwen_bailian_are_no_milliseconds_of_mooncake(tmp_path: Path) -> None:
    rows = [{"chat_id": n, "parent_chat_id": -1, "timestamp": 1.5 * n, "input_length": 30, "output_length": 10,
             "turn": 1, "hash_ids": [n, n + 1]} for n in range(5)]  # fmt: skip
    reading = told(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    assert (reading.tool, _figures(reading)["time"]) == ("Qwen-Bailian", 7.5)
    assert "seconds" in reading.understood["time"]


@pytest.mark.parametrize("dotted", [True, False])
def test_tokens_lie_in_records_of_any_name(dotted: bool, tmp_path: Path) -> None:
    tokens = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20}
    deep = {"attributes": tokens}
    if not dotted:
        deep = {"request": {"inputTokenCount": 100}, "answer": {"outputTokenCount": 20}}
    rows = [{"id": f"r{n}", "start_time": f"2026-03-01T10:00:{n:02d}Z", "end_time": "x", **deep} for n in range(5)]
    reading = told(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    assert (reading.kind, reading.taken, _figures(reading)["prompt, mean"]) == ("requests-json", 5, 100)


_OF_ANTHROPIC = ("cache_read_input_tokens", "cache_creation_input_tokens")


@pytest.mark.parametrize(
    ("name", "cache"),
    [
        *((name, _OF_ANTHROPIC) for name in ("usage.input_tokens", "usage.prompt_tokens", "input_tokens")),
        ("input.inputTokenCount", ("cacheReadInputTokenCount", "cacheWriteInputTokenCount")),  # logs of Bedrock
        ("usage.inputTokens", ("cacheReadInputTokens", "cacheWriteInputTokens")),  # its Converse
    ],
)
def test_prompts_without_cached_tokens_get_them_added(name: str, cache: tuple[str, str], tmp_path: Path) -> None:
    *above, last = name.split(".")
    tokens = {last: 10, cache[0]: 1000, cache[1]: 500, "output_tokens": 20}
    rows = [{"time": f"2026-03-01T10:00:{n:02d}Z", **({above[0]: tokens} if above else tokens)} for n in range(5)]
    reading = told(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    whole = 10 if last == "prompt_tokens" else 1510  # prompt tokens hold the cached ones
    assert _figures(reading)["prompt, mean"] == whole
    assert reading.understood["prompt"].count("+") == (2 if whole > 10 else 0)


def test_prompts_of_opentelemetry_hold_the_cached_tokens(tmp_path: Path) -> None:
    used = {"input_tokens": 1000, "cache_read.input_tokens": 900, "cache_creation.input_tokens": 0, "output_tokens": 20}
    attributes = {f"gen_ai.usage.{name}": count for name, count in used.items()}
    rows = [{"timestamp": f"2026-03-01T10:00:{n:02d}Z", "attributes": attributes} for n in range(5)]
    reading = told(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    assert _figures(reading)["prompt, mean"] == 1000


def test_calls_without_accelerators_are_no_jobs(tmp_path: Path) -> None:
    text = "id,startTime,endTime,promptUnits\n" + "a,2026-03-01T10:00:00Z,2026-03-01T10:00:09Z,5\n" * 3
    with pytest.raises(InputError, match="of no kind that is read"):
        told(tmp_path, text)


def test_a_time_lies_beside_the_tokens(tmp_path: Path) -> None:
    rows = [{"_id": str(n), "user": {"created": 5}, "_source": {"@timestamp": f"2026-03-01T10:00:{n:02d}Z", "usage": {
             "prompt_tokens": 100, "completion_tokens": 20}}} for n in range(5)]  # fmt: skip
    reading = told(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    assert (reading.kind, reading.taken) == ("requests-json", 5)
    assert reading.understood["time"].startswith("_source.@timestamp")


def test_a_zone_may_stand_in_the_name_of_a_time(tmp_path: Path) -> None:
    rows = "".join(f'"3/{n}/2026, 2:05:33.123 PM",100,20\n' for n in (1, 28))
    reading = told(tmp_path, "TimeGenerated [UTC],PromptTokens,CompletionTokens\n" + rows)
    assert (reading.taken, reading.understood["time"]) == (
        2, "TimeGenerated [UTC], s: written out, month/day/year")  # fmt: skip


def test_a_record_is_no_number_of_tokens(tmp_path: Path) -> None:
    rows = [{"time": n, "usage": {"input_tokens": {} if n == 3 else 10, "output_tokens": 5}} for n in range(6)]
    reading = told(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    assert (reading.taken, reading.skipped.reasons) == (5, {"a number of tokens is missing or no number": (1, 4)})


def _rows(first: list[str], second: list[str], sign: str = ";") -> str:
    times = [f"2025-03-03 10:00:{at:02d}" for at in range(len(first))]
    lines = map(sign.join, zip(times, first, second))
    return "\n".join([sign.join(("timestamp", "input_tokens", "output_tokens")), *lines, ""])


@pytest.mark.parametrize(
    ("first", "second", "prompt", "answer"),
    [
        (["1.000", "950", "2.000"], ["5", "6", "7"], 3950 / 3, 6),  # no number of three thousands is beyond 999
        (["1.000", "2.000", "1.234"], ["5", "6", "7"], 4234 / 3, 6),  # 1.234 tokens are no whole number
        (["1.000", "2.000", "3.000"], ["1.234", "6", "7"], 2000, 1247 / 3),  # by the column beside it
        (["1.234.567", "2.000", "3.000"], ["5", "6", "7"], 1_239_567 / 3, 6),
        (["100,0", "200,0", "300,0"], ["5,0", "6,0", "7,0"], 200, 6),  # of a table with a decimal comma
        (["1,000", "2,500", "999"], ["5", "6", "7"], 4499 / 3, 6),
        (["1000.000", "2000.000", "3000.000"], ["5.000", "6.000", "7.000"], 2000, 6),
        (["812.0", "813.0", "1.000"], ["5", "6", "7"], 1626 / 3, 6),
    ],
)
def test_a_sign_between_thousands_is_no_decimal_one(
    first: list[str], second: list[str], prompt: float, answer: float, tmp_path: Path
) -> None:
    """1.000 was taken as one token, 100,0 as a thousand."""
    reading = told(tmp_path, _rows(first, second))
    assert reading.taken == 3
    assert figure(reading, "prompt, mean") == pytest.approx(prompt)
    assert figure(reading, "answer, mean") == pytest.approx(answer)


@pytest.mark.parametrize(("first", "sign"), [(["1.000", "2.000"], ","), (["1,000", "2,000"], ";")])
def test_what_may_be_one_or_a_thousand_is_refused(first: list[str], sign: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="may be 1 or 1000"):
        told(tmp_path, _rows(first, ["5", "6"], sign))
    lines = [{"timestamp": at, "input_tokens": each, "output_tokens": 5} for at, each in enumerate(["1.000", "2.000"])]
    with pytest.raises(InputError, match="may be 1 or 1000"):
        told(tmp_path, "".join(json.dumps(each) + "\n" for each in lines), name="log.jsonl")


def test_tokens_of_both_signs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contradict each other"):
        told(tmp_path, _rows(["1.234,0", "1,234.0"], ["5", "6"]))


def test_counted_times_with_a_decimal_comma(tmp_path: Path) -> None:
    text = _rows(["10", "20", "30"], ["5", "6", "7"]).replace("2025-03-03 10:00:0", "1740996000,")
    assert figure(told(tmp_path, text), "time") == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("day", "clock", "first"),
    [
        ("2025-03-03", "10:00:05", 1740996005.0),
        ("3/4/2025", "10:00:05 PM", 1741125605.0),
        ("03.03.2025", "10:00:05,250", 1740996005.25),
        ("2025-03-03 00:00:00", "9:00:05", 1740992405.0),  # as a spreadsheet writes a day
        ("20250303", "10:00:05", 1740996005.0),
    ],
)
def test_day_and_time_may_stand_in_two_columns(day: str, clock: str, first: float, tmp_path: Path) -> None:
    table = f"Date;Time;input_tokens;output_tokens\n{day};{clock};10;20\n{day};{clock.replace(':05', ':15')};10;20\n"
    rows = [dict(zip(table.splitlines()[0].split(";"), line.split(";"))) for line in table.splitlines()[1:]]
    for name, text in (("log.csv", table), ("log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))):
        reading = told(tmp_path, text, name=name)
        trace = next(piece.text for piece in reading.pieces if piece.what == "trace")
        assert float(trace.splitlines()[1].split(",")[0]) == first, name
        assert reading.understood["time"].startswith("Date + Time"), name


def test_a_time_of_an_unknown_day_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column tells which day"):
        told(tmp_path, "time,input_tokens,output_tokens\n10:00:05,10,20\n10:00:15,10,20\n")


@pytest.mark.parametrize(
    "times", [("20250303", "20250304"), ("20250303100000", "20250303100100"), ("202503031000",) * 2]
)
def test_dates_without_signs_are_not_counted_as_seconds(times: tuple[str, str], tmp_path: Path) -> None:
    """Two days were taken as a second apart."""
    text = "timestamp,input_tokens,output_tokens\n" + "".join(f"{each},10,20\n" for each in times)
    with pytest.raises(InputError, match="dates that are written without signs"):
        told(tmp_path, text)
    assert told(tmp_path, text, Asked(time_unit="s")).taken == 2


def test_how_long_requests_took_is_no_clock(tmp_path: Path) -> None:
    """nginx names it request_time; the rate came out as if all had come within seconds."""
    rows = "".join(f"{0.5 + at * 7 % 11 / 10},10,20\n" for at in range(40))
    with pytest.raises(InputError, match="it is no clock"):
        told(tmp_path, "request_time,input_tokens,output_tokens\n" + rows)
    few = "".join(f"{at + (3 if at % 10 == 0 else 0)},10,20\n" for at in range(40))  # some end before others
    assert told(tmp_path, "request_time,input_tokens,output_tokens\n" + few).taken == 40


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_requests_of_several_models_are_one_fleet_and_say_so(name: str, tmp_path: Path) -> None:
    rows = [{"timestamp": at, "model": f"m{at % 2}", "input_tokens": 10, "output_tokens": 20} for at in range(8)]
    table = "timestamp,model,input_tokens,output_tokens\n" + "".join(
        ",".join(map(str, row.values())) + "\n" for row in rows
    )
    text = table if name.endswith("csv") else "".join(json.dumps(row) + "\n" for row in rows)
    assert any("2 models at least (m0, m1)" in note for note in told(tmp_path, text, name=name).notes)
    assert not any("models" in note for note in told(tmp_path, text.replace("m1", "m0"), name=name).notes)


@pytest.mark.parametrize("hit", ["True", "true"])
def test_answers_from_a_cache_of_answers_are_no_load(hit: str, tmp_path: Path) -> None:
    rows = [f"r{n},2025-03-01 10:00:0{n},100,50,{hit if n == 1 else 'False'}" for n in range(4)]
    head = "request_id,startTime,prompt_tokens,completion_tokens,cache_hit"
    reason = "its answer came from a cache of answers, from no model"
    reading = told(tmp_path, "\n".join([head, *rows]) + "\n")
    assert (reading.taken, reading.skipped.reasons) == (3, {reason: (1, 3)})
    records = [dict(zip(head.split(","), row.split(","))) for row in rows]
    reading = told(tmp_path, "".join(json.dumps({**each, "prompt_tokens": 100, "completion_tokens": 50}) + "\n"
                                     for each in records))  # fmt: skip
    assert (reading.taken, reading.skipped.reasons) == (3, {reason: (1, 2)})


@pytest.mark.parametrize("names", [
    "Zeit (s);Eingabe-Tokens;Ausgabe-Tokens", "Zeitstempel [s];Eingabelänge (Token);Antwortlänge (Token)",
    "Arrival Time (s);Input Length (tokens);Output Length (tokens)", "time [s];prompt_tokens [tok];completion_tokens",
    "ts_s;in_tok;out_tok", "start;PromptTokens_d;CompletionTokens_d",
])  # fmt: skip
def test_names_in_german_and_units_behind_names(names: str, tmp_path: Path) -> None:
    rows = "".join(f"{at},5;{100 + at};{10 + at}\n" for at in range(50))
    reading = told(tmp_path, f"{names}\n{rows}")
    assert (reading.kind, reading.taken) == ("requests-table", 50)
    assert figure(reading, "rate") == pytest.approx(50 / 50, rel=0.03)
    assert (figure(reading, "prompt, mean"), figure(reading, "answer, mean")) == (124.5, 34.5)


def test_tokens_a_second_are_no_tokens(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        told(tmp_path, "time,input tokens,output tokens (1/s)\n" + "1,100,200\n" * 9)


@pytest.mark.parametrize("listed", [True, False])
def test_a_key_that_is_given_twice_leaves_open_which_counts(listed: bool, tmp_path: Path) -> None:
    rows = [f'{{"timestamp": {at}, "input_tokens": {100 + at}, "output_tokens": 10}}' for at in range(50)]
    rows[7] = '{"timestamp": 7, "input_tokens": 1, "output_tokens": 10, "input_tokens": 107}'
    rows[8] = '{"timestamp": 8, "input_tokens": 108, "output_tokens": 10, "input_tokens": 108}'
    text = "[" + ",\n".join(rows) + "]" if listed else "\n".join(rows) + "\n"
    reading = told(tmp_path, text, name="log.json")
    assert reading.taken == 49
    assert list(reading.skipped.reasons.items()) == [
        ("input_tokens is given twice: which one counts is not told", (1, 8))
    ]
    with pytest.raises(InputError, match="could be taken"):
        told(tmp_path, (rows[7] + "\n") * 3, name="all.jsonl")


def test_records_deep_in_answers_and_below_a_key_beside_others(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 5}
    rows = [{"id": at, "response": {"body": {"created": 1.74e9 + at, "usage": usage}}} for at in range(30)]
    assert told(tmp_path, "\n".join(map(json.dumps, rows)), name="batch.jsonl").taken == 30
    flat = [{"time": at, "input_tokens": 9, "output_tokens": 5} for at in range(30)]
    reading = told(tmp_path, json.dumps({"meta": {"n": 1}, "requests": flat}, indent=1), name="wrapped.json")
    assert (reading.kind, reading.taken) == ("requests-json", 30)


def test_later_turns_of_a_session_wait_behind_the_one_before(tmp_path: Path) -> None:
    rows = [{"session_id": str(one), "input_length": 100, "output_length": 10,
             **({"timestamp": one * 1000} if turn == 0 else {"delay": 250})}
            for one in range(20) for turn in range(3)]  # fmt: skip
    reading = told(tmp_path, "\n".join(map(json.dumps, rows)), name="sessions.jsonl")
    assert reading.taken == 60
    assert any(note.startswith("40 requests tell no time") for note in reading.notes)
    assert figure(reading, "rate") == pytest.approx(60 / 19.5, rel=0.03)  # milliseconds


@pytest.mark.parametrize(("named", "model"), [("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"), ("my-own", "llama-3.1-8b")])
def test_the_model_that_a_log_names_is_the_fleet_s_where_it_is_known(named: str, model: str, tmp_path: Path) -> None:
    rows = "".join(f"{at},100,10,{named}\n" for at in range(50))
    reading = told(tmp_path, "timestamp,input_tokens,output_tokens,model\n" + rows)
    fleet = next(piece.fragment["serving"][0] for piece in reading.pieces if piece.what == "scenario")
    assert fleet["model"] == model
    assert any("my-own" in note for note in reading.notes) == (named == "my-own")


def test_tokens_and_times_of_tracers_lie_in_parts_of_their_records(tmp_path: Path) -> None:
    langfuse = [{"id": str(at), "startTime": f"2025-06-01T00:00:{at:02d}Z", "usage": {"input": 100, "output": 10}}
                for at in range(40)]  # fmt: skip
    reading = told(tmp_path, json.dumps({"data": langfuse, "meta": {"page": 1}}), name="a.json")
    assert (reading.taken, figure(reading, "prompt, mean")) == (40, 100)
    datadog = [{"id": str(at), "attributes": {"start_ns": 1740000000000000000 + at * 10**9,
                                              "metrics": {"input_tokens": 100, "output_tokens": 10}}}
               for at in range(40)]  # fmt: skip
    assert figure(told(tmp_path, json.dumps({"data": datadog}), name="b.json"), "rate") == pytest.approx(1.0, rel=0.03)


def test_a_sum_below_a_log_says_nothing_of_its_times(tmp_path: Path) -> None:
    rows = "".join(f"{1740000000000 + 500 * at},100,10\n" for at in range(60))
    reading = told(tmp_path, "timestamp,input_tokens,output_tokens\n" + rows + "Total,6000,600\n")
    assert (reading.taken, reading.skipped.count) == (60, 1)
    assert figure(reading, "rate") == pytest.approx(2.0, rel=0.03)  # milliseconds, by their size


def test_spans_as_a_collector_writes_them(tmp_path: Path) -> None:
    def span(at: int, **tokens: int) -> dict[str, object]:
        said = [{"key": f"gen_ai.usage.{name}", "value": {"intValue": str(value)}} for name, value in tokens.items()]
        return {"spanId": str(at), "startTimeUnixNano": str(1740000000000000000 + at * 10**9), "attributes": said}

    lines = [{"resourceSpans": [{"scopeSpans": [{"spans": [
        span(2 * at, input_tokens=100, output_tokens=10), span(2 * at + 1, input_tokens=200, output_tokens=10),
        span(2 * at)]}]}]} for at in range(20)]  # fmt: skip
    reading = told(tmp_path, "\n".join(map(json.dumps, lines)) + "\n", name="traces.json")
    assert (reading.taken, reading.skipped.count) == (40, 20)
    assert figure(reading, "prompt, mean") == 150
    assert figure(reading, "rate") == pytest.approx(1.0, rel=0.03)


def test_records_below_several_keys_are_requests(tmp_path: Path) -> None:
    rows = [{"timestamp": 3.0 * n, "prompt_tokens": 100 + n, "completion_tokens": 10} for n in range(50)]
    for indent in (None, 1):
        reading = told(tmp_path, json.dumps({"data": {"requests": rows}}, indent=indent), name="log.json")
        assert (reading.kind, reading.taken) == ("requests-json", 50)
        assert figure(reading, "prompt, mean") == pytest.approx(124.5)
    lines = "\n".join(json.dumps({**row, "data": {"events": [{"n": 1}]}}) for row in rows)
    assert told(tmp_path, lines, name="log.jsonl").taken == 50


def test_a_column_of_a_file_in_latin_1_is_named(tmp_path: Path) -> None:
    text = "horodatage;jetons entrée;jetons sortie\n" + "".join(f"{3 * n};{100 + n};10\n" for n in range(50))
    columns = {"time": "horodatage", "input": "jetons entrée", "output": "jetons sortie"}
    for encoding in ("utf-8", "latin-1"):
        assert told(tmp_path, text.encode(encoding), Asked(columns=columns)).taken == 50
    with pytest.raises(InputError, match="no column 'jetons sorti'"):
        told(tmp_path, text.encode("latin-1"), Asked(columns=columns | {"output": "jetons sorti"}))


def test_times_of_opentelemetry_by_themselves(tmp_path: Path) -> None:
    begin = 1_793_520_000 * 10**9
    rows = "".join(f"{begin + n * 2 * 10**9},100,10\n" for n in range(50))
    reading = told(tmp_path, "time_unix_nano,gen_ai.usage.input_tokens,gen_ai.usage.output_tokens\n" + rows)
    assert figure(reading, "rate") == pytest.approx(0.5, rel=0.03)
