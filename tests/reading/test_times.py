"""Times as people's tools write them, and files whose dates tell only together which number is the day."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest

from planner.reading.columns import has_zone, iso_seconds, written_day
from planner.reading.kinds import Reading, read
from planner.reading.source import Source

NOON_S = 1741003200  # 2025-03-03T12:00Z  [s]


def reading_of(folder: Path, content: str) -> Reading:
    path = folder / "file"
    path.write_text(content)
    return read(Source(path))


@pytest.mark.parametrize("text", [
    "3/3/2025 12:00:00 PM", "03/03/2025, 12:00:00\u202fPM", "3/3/25 12:00", "3.3.2025 12:00:00", "03-03-2025 12:00",
    "2025-03-03 12:00:00 +0000 UTC", "2025/03/03 12:00:00.000", "Mar 3, 2025 @ 12:00:00.000", "20250303 12:00:00",
    "Mon, 03 Mar 2025 12:00:00 GMT", "03/Mar/2025:13:00:00 +0100", "3-Mar-2025 07:00:00 -0500",
    "2025-03-03 12:00:00.000000000 UTC", "March 3, 2025 12:00 p.m.",
])  # fmt: skip
def test_a_time_is_read_as_it_is_written(text: str) -> None:
    assert iso_seconds(text, UTC) == NOON_S


def test_midnight_is_twelve_before_noon_and_a_day_alone_its_midnight() -> None:
    assert iso_seconds("3/3/2025 12:00:00 AM", UTC) == iso_seconds("3/3/2025", UTC) == NOON_S - 43_200
    assert iso_seconds("2/3/2025 1:30 pm", UTC, day_first=True) == iso_seconds("2025-03-02T13:30", UTC)


@pytest.mark.parametrize("text", [
    "3/3/2025 13:00 PM", "3/3/2025 0:30 AM", "31/31/2025", "3/3/2025 noon", "202533", "Foo 3, 2025", "3/3/202",
])  # fmt: skip
def test_what_is_no_time_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        iso_seconds(text, UTC)


def test_a_zone_is_not_the_end_of_a_day() -> None:
    assert [has_zone(each) for each in ("01-03-2025", "2025-03-01T10:00-0300", "2025-03-01 10:00:00+00")] == [
        False, True, True]  # fmt: skip
    assert written_day("20250301T10", False)[1] == "T10"


def test_days_of_jobs_are_ordered_by_the_whole_file(tmp_path: Path) -> None:
    rows = "".join(f"j{n},2,done,{n}/02/2024 9:00 AM,{n}/02/2024 11:00 AM\n" for n in (1, 2, 28))
    reading = reading_of(tmp_path, "job_id,gpu_num,state,start_time,end_time\n" + rows)
    figures = {each.label: each.value for each in reading.look}
    assert (reading.taken, figures["first day"], figures["last day"]) == (3, "2024-02-01", "2024-02-28")
    assert reading.understood["times"].endswith("day/month/year")
    rows = "j1,2,done,1/2/2024 9:00 AM,1/2/2024 11:00 AM\n"
    reading = reading_of(tmp_path, "job_id,gpu_num,state,start_time,end_time\n" + rows)
    assert "no day after the 12th tells" in reading.understood["times"]


def test_days_of_allotted_costs_are_ordered_by_the_whole_file(tmp_path: Path) -> None:
    rows = "".join(f"{n}/03/2025,ns,1.0,2.0,3.0\n" for n in (1, 2, 28))
    reading = reading_of(tmp_path, "Date,Namespace,CPUCost,RAMCost,TotalCost\n" + rows)
    figures = {each.label: each.value for each in reading.look}
    assert (reading.taken, figures["first day"], figures["last day"]) == (3, "2025-03-01", "2025-03-28")
    assert reading.understood["days"] == "day/month/year"
