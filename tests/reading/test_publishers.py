"""Files as other publishers and versions write them: each was refused, or lost a part without a word."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from planner.cli.find import is_scenario
from planner.errors import InputError
from planner.reading.kinds import Asked, Reading, read
from planner.reading.source import Source


def read_of(folder: Path, text: str | bytes, name: str = "anything", **asked: Any) -> Reading:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(Source(path), Asked(**asked))


def figures(reading: Reading) -> dict[str, Any]:
    return {each.label: each.value for each in reading.look}


def clock(second: int) -> str:
    return f"10:{second // 60:02d}:{second % 60:02d}"


SUMS = {
    "table": "timestamp,prompt_tokens,total_tokens\n" + "".join(f"2025-08-01T{clock(i)}Z,200,300\n" for i in range(90)),
    "table of answers": "ts,completion_tokens,total_tokens\n"
    + "".join(f"2025-08-01T{clock(i)}Z,100,300\n" for i in range(90)),
    "lines": "".join(
        json.dumps({"created": 1754000000 + i, "usage": {"prompt_tokens": 200, "total_tokens": 300}}) + "\n"
        for i in range(90)
    ),
}


@pytest.mark.parametrize("form", SUMS)
def test_a_sum_of_prompt_and_answer_gives_the_one_that_is_not_told(form: str, tmp_path: Path) -> None:
    reading = read_of(tmp_path, SUMS[form])
    found = figures(reading)
    assert (found["requests"], found["prompt, mean"], found["answer, mean"]) == (90, 200, 100)
    assert any(" less " in each for each in reading.understood.values())


def test_lengths_by_a_sum_and_a_part(tmp_path: Path) -> None:
    found = figures(read_of(tmp_path, "prompt_tokens,total_tokens\n" + "200,300\n" * 9))
    assert (found["prompt, mean"], found["answer, mean"]) == (200, 100)


def test_a_sum_alone_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    text = "timestamp,model,total_tokens\n" + "".join(f"2025-08-01T{clock(i)}Z,m,300\n" for i in range(90))
    with pytest.raises(InputError, match="counts prompt and answer together") as caught:
        read_of(tmp_path, text)
    assert "--column input=NAME" in str(caught.value.problems[0].hint)


def test_a_sum_of_no_less_than_its_part_is_no_answer(tmp_path: Path) -> None:
    text = SUMS["table"] + "2025-08-01T10:05:00Z,300,300\n"
    reading = read_of(tmp_path, text)
    assert (reading.taken, reading.skipped.count) == (90, 1)


@pytest.mark.parametrize(
    "text",
    [
        "time_local,prompt_tokens,completion_tokens\n"
        + "".join(f"[01/Aug/2025:{clock(i)} +0200],50,20\n" for i in range(60)),
        "".join(
            json.dumps({"time_local": f"01/Aug/2025:{clock(i)} +0200", "prompt_tokens": 50, "completion_tokens": 20})
            + "\n"
            for i in range(60)
        ),
        "time_iso8601,prompt_tokens,completion_tokens\n"
        + "".join(f"2025-08-01T{clock(i)}+02:00,50,20\n" for i in range(60)),
    ],
)
def test_times_of_web_servers(text: str, tmp_path: Path) -> None:
    reading = read_of(tmp_path, text)
    found = figures(reading)
    assert (found["requests"], found["time"], found["prompt, mean"]) == (60, 60, 50)
    assert reading.understood["time zone"].startswith("as written")


def test_answers_of_gemini_with_what_it_thought(tmp_path: Path) -> None:
    usage = {"promptTokenCount": 500, "candidatesTokenCount": 40, "thoughtsTokenCount": 60, "totalTokenCount": 600}
    rows = [{"timestamp": f"2025-08-01T{clock(i)}Z", "usageMetadata": usage} for i in range(30)]
    found = figures(read_of(tmp_path, json.dumps(rows)))
    assert (found["prompt, mean"], found["answer, mean"]) == (500, 100)


RUN = {"backend": "vllm", "model_id": "m", "num_prompts": 100, "request_rate": "inf", "duration": 50.0,
       "completed": 100, "total_input_tokens": 102400, "total_output_tokens": 12800, "request_throughput": 2.0,
       "output_throughput": 256.0, "mean_ttft_ms": 100.0, "median_ttft_ms": 90.0, "mean_tpot_ms": 20.0}  # fmt: skip


@pytest.mark.parametrize(("indent", "between"), [(2, "\n"), (None, ""), (None, " ")])
def test_runs_that_stand_one_after_the_other(indent: int | None, between: str, tmp_path: Path) -> None:
    runs = [
        json.dumps({**RUN, "max_concurrency": each, "mean_ttft_ms": 10.0 * each}, indent=indent) for each in (8, 16)
    ]
    reading = read_of(tmp_path, between.join(runs))
    found = figures(reading)
    assert (reading.taken, found["8 at once: TTFT mean"], found["16 at once: TTFT mean"]) == (2, 80, 160)
    cut = read_of(tmp_path, between.join([*runs, runs[0][:90]]))
    assert (cut.taken, cut.skipped.count) == (2, 1)


def test_records_of_several_lines_one_after_the_other_are_requests(tmp_path: Path) -> None:
    rows = [{"timestamp": 1754000000 + i, "input_tokens": 10, "output_tokens": 5} for i in range(30)]
    found = figures(read_of(tmp_path, "\n".join(json.dumps(row, indent=1) for row in rows)))
    assert (found["requests"], found["prompt, mean"]) == (30, 10)


def test_tokens_of_trtllm_bench_before_it_said_which(tmp_path: Path) -> None:
    text = ("= PERFORMANCE OVERVIEW\n====\nNumber of requests:             3000\n"
            "Average Input Length (tokens):  128.0000\nAverage Output Length (tokens): 128.0000\n"
            "Token Throughput (tokens/sec):  23405.4927\nRequest Throughput (req/sec):   182.8554\n"
            "Total Latency (ms):             16406.4100\n")  # fmt: skip
    shown = {each.unit: each.value for each in read_of(tmp_path, text).look}
    assert shown["output tokens/s"] == pytest.approx(23405.4927)  # 182.8554 a second, of 128 each
    assert "tokens/s" not in shown


@pytest.mark.parametrize(
    ("text", "nodes", "devices"),
    [
        ("NAME                 GPU\ngke-a3-1   8\ngke-a3-2   8\ncpu-1      <none>\n", 2, 16),
        ("NAME    STATUS   ROLES    AGE   VERSION   GPU.PRODUCT             GPU.COUNT\n"
         "n1   Ready    <none>   10d   v1.30.1   NVIDIA-H100-80GB-HBM3   8\n", 1, 8),
    ],
)  # fmt: skip
def test_columns_of_kubectl_that_were_pasted(text: str, nodes: int, devices: int, tmp_path: Path) -> None:
    """Cells that stand below their names no more were looked for there: no accelerator was seen."""
    found = figures(read_of(tmp_path, text, accelerator="h100-sxm-80gb"))
    assert (found["nodes with accelerators"], found["accelerators"]) == (nodes, devices)


def test_a_log_beside_itself_packed_counts_once(tmp_path: Path) -> None:
    text = SUMS["table"].encode()
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "iso.csv").write_bytes(text)
    (folder / "iso.csv.gz").write_bytes(gzip.compress(text))
    (folder / "other.csv.gz").write_bytes(gzip.compress(text.replace(b",200,300", b",400,500")))
    reading = read(Source(folder))
    assert (reading.taken, figures(reading)["prompt, mean"]) == (180, 300)
    assert "iso.csv.gz is iso.csv, packed: it counts once" in reading.notes


def test_of_a_plan_no_more_is_read_than_tells_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, mine, late = (tmp_path / name for name in ("plan.json", "mine.json", "late.json"))
    plan.write_text('{"schema": "plan/result/v1", "x": "' + "a" * 1_000_000 + '"}')
    mine.write_text('{"name": "x", "schema": "plan/v1"}')
    late.write_text('{"notes": "' + "a" * 65_515 + '", "schema": "plan/v1"}')  # its schema lies in two blocks
    monkeypatch.setattr("planner.files.read_text", lambda *_, **__: pytest.fail("read whole"))
    assert [is_scenario(str(each)) for each in (plan, mine, late)] == [False, True, True]


@pytest.mark.parametrize(
    "content", [b'{"jobs": [{"job_id": 1, "tres": {"allocated": [}]}', b'{"metadata": {}, "weight_map": {"a" "b"}}',
                b"GGUF\x03\x00\x00\x00" + b"\xff" * 40]
)  # fmt: skip
def test_what_cannot_be_read_is_told_with_a_way_out(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_of(tmp_path, content)
    assert all(problem.hint for problem in caught.value.problems)
