"""Jobs of published traces as a history of demand, each taken or counted; machines of their lists as owned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.reading.inventory import state_of
from planner.reading.kinds import Asked, Reading, kind_of, read
from planner.reading.source import Source
from tests.reading.cluster_writers import table
from tests.reading.trace_writers import (
    ACME,
    acme,
    gavel,
    jobs_json,
    machines,
    pai,
    philly,
    pods,
    runtimes,
    summary,
)


def reading_of(folder: Path, content: str, asked: Asked | None = None) -> Reading:
    path = folder / "file"
    path.write_text(content)
    return read(Source(path), asked)


def figures(reading: Reading) -> dict[str, Any]:
    return {each.label: each.value for each in reading.look}


def skips(reading: Reading) -> dict[str, int]:
    return {why: count for why, (count, _) in reading.skipped.reasons.items()}


def test_jobs_hold_devices_by_day_and_odd_ones_are_counted(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, acme())
    found = figures(reading)
    assert (reading.kind, reading.taken) == ("job-trace", 2)
    assert skips(reading) == {"a job that stands twice, by its name and times": 1, "it ends before it starts": 1}
    assert found["GPU-hours"] == 8 * 12 + 2
    assert found["GPUs of a job, median"] == 5.0
    assert found["wait before a start, mean"] == (3600 + 30) / 2
    assert found["GPU-hours in Train"] == 96
    assert reading.pieces[0].text == (
        "day,jobs_started,job_hours,gpu_hours\n2024-01-01,1,6,48\n2024-01-02,1,7,50\n"
    )  # 18:00 to 6:00 lies in two days


def test_shares_of_a_device_count_as_shares_and_days_are_numbered(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, pods())
    found = figures(reading)
    assert (reading.taken, skips(reading)) == (3, {"never started": 1})
    assert found["GPU-hours"] == pytest.approx(0.5 * 2 + 8 * 1)
    assert found["jobs with GPUs"] == 2
    assert (found["first day"], found["last day"]) == ("0", "1")
    assert reading.pieces[0].text.splitlines()[1:] == ["0,2,3,1", "1,1,1,8"]
    assert "some jobs hold shares of a device: GPU-hours count the share" in reading.notes


def test_hundredths_of_each_instance(tmp_path: Path) -> None:
    assert figures(reading_of(tmp_path, pai()))["GPU-hours"] == 4 * 0.5 * 1


def test_records_of_json_without_a_token_are_jobs(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, jobs_json())
    assert (reading.kind, reading.taken) == ("job-trace", 2)
    assert skips(reading) == {"no end, and no time that it took": 1}
    assert figures(reading)["GPU-hours"] == pytest.approx(64 + 8 / 60)
    assert reading.understood["devices"] == "A100 of 2 jobs"


def test_a_log_of_requests_stays_one_though_it_names_devices(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(jobs_json().replace('"prompt_tokens": null', '"prompt_tokens": 5, "output_tokens": 7'))
    assert kind_of(Source(path))[0].name == "requests-json"


def test_times_of_two_forms_are_not_mixed(tmp_path: Path) -> None:
    good = (
        "j",
        "u",
        1,
        2,
        8,
        "t",
        "COMPLETED",
        "2024-01-01 00:00:00",
        "2024-01-01 00:00:00",
        "2024-01-01 01:00:00",
        1,
        0,
    )
    for start in ("1704067200", "100", "yesterday"):
        odd = ("k", *good[1:7], start, start, start, 1, 0)
        reading = reading_of(tmp_path, table(ACME, [good, odd]))
        assert skips(reading) == {"a time that is none, or of another form than those before it": 1}


@pytest.mark.parametrize(
    ("number", "first"), [("1704067200", "2024-01-01"), ("1704067200000", "2024-01-01"), ("90000", "1")]
)
def test_counted_times_say_what_they_are(number: str, first: str, tmp_path: Path) -> None:
    row = ("j", "u", 1, 2, 8, "t", "COMPLETED", number, number, number, 60, 0)
    reading = reading_of(tmp_path, table(ACME, [row]))
    assert figures(reading)["first day"] == first
    assert ("counted from" in reading.understood["times"]) == (first == "1")


def test_the_unit_of_counted_times_may_be_told(tmp_path: Path) -> None:
    row = ("j", "u", 1, 2, 8, "t", "COMPLETED", "172800000", "172800000", "172800000", 60, 0)
    assert figures(reading_of(tmp_path, table(ACME, [row]), Asked(time_unit="ms")))["first day"] == "2"


@pytest.mark.parametrize(
    ("gpus", "seconds", "why"),
    [("-1", 60, "no number of accelerators"), ("many", 60, "no number of accelerators"),
     ("2", 4e8, "longer than ten years"), ("1e9", 60, "no number of accelerators")],
)  # fmt: skip
def test_figures_that_no_job_has_are_counted(gpus: str, seconds: float, why: str, tmp_path: Path) -> None:
    good = ("j", "u", 1, 2, 8, "t", "COMPLETED", "2024-01-01", "2024-01-01", "2024-01-01", 60, 0)
    odd = ("k", "u", 1, gpus, 8, "t", "COMPLETED", "2024-01-01", "2024-01-01", "2024-01-01", seconds, 0)
    assert skips(reading_of(tmp_path, table(ACME, [good, odd]))) == {why: 1}


def test_a_trace_of_nothing_is_refused_with_its_reasons(tmp_path: Path) -> None:
    row = ("j", "u", 1, -2, 8, "t", "COMPLETED", "2024-01-01", "2024-01-01", "2024-01-01", 60, 0)
    with pytest.raises(InputError, match="no job of") as caught:
        reading_of(tmp_path, table(ACME, [row]))
    assert "1 of them: no number of accelerators" in caught.value.problems[0].hint


def test_attempts_of_philly_hold_what_their_detail_lists(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, philly())
    assert (reading.kind, reading.taken) == ("job-trace-philly", 2)
    assert skips(reading) == {"no end, and no time that it took": 1, "a job without attempts": 1}
    assert figures(reading)["GPU-hours"] == 2 * 2 + 8 * 1


def test_jobs_by_steps_have_arrivals_and_no_hours(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, gavel())
    found = figures(reading)
    assert (reading.taken, found["jobs a day"], found["GPUs of a job, largest"]) == (4, 1.0, 8)
    assert "GPU-hours" not in found
    assert reading.pieces[0].text == "day,jobs_started\n0,1\n1,1\n2,1\n3,1\n"


@pytest.mark.parametrize(("cells", "gpus"), [(7, 6), (9, 5), (10, 6)])
def test_each_layout_of_gavel(cells: int, gpus: int, tmp_path: Path) -> None:
    arrival = {7: 5, 9: 8, 10: 9}[cells]
    lines = []
    for n in range(3):
        row = ["type", "python3 x.py", "--steps", "1", "100", "1", "1", "1", "1", "1"][:cells]
        row[gpus], row[arrival] = "4", str(43_200.0 * n)
        lines.append("\t".join(row) + "\n")
    found = figures(reading_of(tmp_path, "".join(lines)))
    assert (found["GPUs of a job, largest"], found["jobs a day"]) == (4, 2.0)


def test_times_alone(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, runtimes())
    assert (reading.taken, skips(reading)) == (3, {"no time, or a negative one": 1})
    assert figures(reading)["time of a job, mean"] == 20.0


def test_figures_of_clusters(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, summary())
    found = figures(reading)
    assert (reading.taken, reading.skipped.count) == (1, 1)
    assert (found["East: jobs"], found["East: GPU-hours"]) == (100, 2.0)


def test_machines_of_a_list_are_owned(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, machines())
    assert reading.taken == 3
    assert skips(reading) == {"no accelerator": 1, "a machine that stands above, or without a name": 1}
    owned = reading.pieces[0].fragment["hardware"]["owned"]
    assert [(each["shape"], each["count"]) for each in owned] == [("onprem/dgx-1-v100-32gb", 1), ("onprem/t4-x4", 1)]
    assert any("8 G2: not in the catalog" in note for note in reading.notes)


@pytest.mark.parametrize(
    ("text", "state"), [("CANCELLED by 1000", "CANCELLED"), ("Running", "RUNNING"), ("", ""), ("7", "")]
)
def test_states(text: str, state: str) -> None:
    assert state_of(text) == state


def test_jobs_that_start_before_they_came_are_told_and_do_not_wait(tmp_path: Path) -> None:
    odd = ("j", "u", 1, 2, 8, "t", "COMPLETED", "2024-01-02", "2024-01-01", "2024-01-03", "", "")
    reading = reading_of(tmp_path, table(ACME, [odd]))
    assert "1 jobs start before they were submitted: their waits are left out" in reading.notes
    assert "wait before a start, mean" not in figures(reading)


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("duration_hours", ("26.5", "0.5")), ("duration_min", ("1590", "30")), ("duration_ms", ("95400000", "1800000")),
        ("duration", ("1-02:30:00", "00:30:00")), ("elapsed", ("95400", "1800")),
    ],
)  # fmt: skip
def test_times_that_jobs_took_are_in_the_unit_of_their_column(
    column: str, cells: tuple[str, str], tmp_path: Path
) -> None:
    rows = [(n, 8, "2026-01-05 10:00:00", cell) for n, cell in enumerate(cells)]
    reading = reading_of(tmp_path, table(["job_id", "num_gpus", "start_time", column], rows))
    assert (reading.taken, figures(reading)["GPU-hours"]) == (2, 216.0)


def test_jobs_of_which_no_column_tells_devices_have_no_gpu_hours(tmp_path: Path) -> None:
    names = ["job_name", "inst_id", "user", "status", "start_time", "end_time"]
    with pytest.raises(InputError, match="of no kind that is read"):
        reading_of(tmp_path, table(names, [("j", "i", "u", "Terminated", "1000", "4600")]))


@pytest.mark.parametrize(("column", "cell"), [("gpu_memory_gb", "40"), ("gpu_mem", "40GB"), ("gpu_memory_mb", "40960")])
def test_memory_in_a_list_of_machines_tells_devices_apart(column: str, cell: str, tmp_path: Path) -> None:
    reading = reading_of(tmp_path, table(["hostname", "gpu_count", "gpu_model", column], [("h", 8, "A100", cell)]))
    assert figures(reading)["of them a100-sxm-40gb"] == 8


@pytest.mark.parametrize(("column", "cell"), [
    ("duration", 5400), ("duration_hours", 1.5), ("duration_min", 90), ("duration_ms", 5_400_000),
    ("duration", "01:30:00"), ("runtime", "0-01:30:00"),
])  # fmt: skip
def test_a_length_is_in_the_unit_of_its_column(column: str, cell: object, tmp_path: Path) -> None:
    text = table(["job_id", "num_gpus", "state", "start_time", column], [("j", 2, "ok", "2026-03-01 10:00:00", cell)])
    assert figures(reading_of(tmp_path, text))["GPU-hours"] == 3


@pytest.mark.parametrize(("begin", "day"), [(1_772_359_200_000, "2026-03-01"), (90_000_000, "1")])
def test_a_time_is_in_the_unit_of_its_column(begin: int, day: object, tmp_path: Path) -> None:
    text = table(["job_id", "num_gpus", "state", "submit_time_ms", "start_time_ms", "end_time_ms"],
                 [("j", 2, "ok", begin, begin + 60_000, begin + 3_660_000)])  # fmt: skip
    found = figures(reading_of(tmp_path, text))
    assert (found["GPU-hours"], found["first day"], found["wait before a start, mean"]) == (2, day, 60)


@pytest.mark.parametrize(("number", "said"), [(120, "minutes"), (2, "hours"), (7_200_000, "milliseconds"), (7200, "")])
def test_a_length_without_a_unit_is_held_against_begin_and_end(number: int, said: str, tmp_path: Path) -> None:
    rows = [(f"j{n}", 2, "ok", f"2026-03-01 0{n}:00:00", f"2026-03-01 0{n + 2}:00:00", number) for n in range(4)]
    rows.append(("odd", 2, "ok", "2026-03-01 10:00:00", "2026-03-01 10:00:10", number))
    text = table(["job_id", "num_gpus", "state", "start_time", "end_time", "duration"], rows)
    reading = reading_of(tmp_path, text)
    assert figures(reading)["GPU-hours"] == 5 * 2 * 2
    assert said in reading.understood.get("lengths", "")
    assert ("lengths" in reading.understood) == bool(said)


def test_a_cell_that_is_called_as_a_column_makes_no_first_line(tmp_path: Path) -> None:
    rows = "".join(f"{at},u,gpu,COMPLETED,01:00:00,8,2025-06-01T0{at}:00:00\n" for at in range(9))
    (tmp_path / "jobs.csv").write_text("job_id,user,partition,state,elapsed,num_gpus,start\n" + rows)
    reading = read(Source(tmp_path / "jobs.csv"))
    shown = {each.label: each.value for each in reading.look}
    assert (reading.taken, shown["GPU-hours"], shown["GPU-hours in gpu"]) == (9, 72.0, 72.0)
