"""Logs of training runs: step times, memory and progress, as each trainer prints them."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.reading.kinds import Asked
from planner.reading.reading import Reading
from planner.reading.registry import read
from planner.reading.source import Source
from tests.reading import writers


def told(tmp_path: Path, content: str | bytes, asked: Asked | None = None) -> Reading:
    path = tmp_path / "run.log"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(Source(path), asked)


def figures(reading: Reading) -> dict[str, float]:
    return {each.label: float(each.value) for each in reading.look}


MEDIAN = "step time, median without the first"
SAID = {
    "megatron": {MEDIAN: 2.016, "last step": 30, "steps in all": 100, "global batch": 64,
                 "memory, most of a device": 12000 * 2**20 / 1e9,
                 "useful operations, median": 150.5, "left at this pace": 70 * 2.016},
    "deepspeed": {"samples, median": 120.0, "last step": 30, "memory, most of a device": 20 * 2**30 / 1e9},
    "nemo": {MEDIAN: 6.475, "last step": 49, "steps in all": 100, "memory, most of a device": 120.0},
    "maxtext": {MEDIAN: 0.5, "last step": 8, "tokens, median": 16000.0},
    "torchtitan": {"last step": 5, "tokens, median": 4376.0, "memory, most of a device": 40 * 2**30 / 1e9},
    "trainer_state": {"step time, mean": 0.5, "last step": 1000, "samples": 16.0},
    "mllog": {"time of the run": 100.0, "step time, median": 1.5, "global batch size": 64},
    "golden": {MEDIAN: 0.6, "last step": 3},
    "events": {"train/loss, last of 5": 5.0, "step time, median by the clock": 2.0},
    "wandb": {MEDIAN: 3.0, "last step": 10},
}  # fmt: skip


@pytest.mark.parametrize("trainer", SAID)
def test_figures_are_those_of_the_log(trainer: str, tmp_path: Path) -> None:
    found = figures(told(tmp_path, getattr(writers, trainer)()))
    for label, value in SAID[trainer].items():
        assert found[label] == pytest.approx(value), label


def test_a_job_under_way_is_written(tmp_path: Path) -> None:
    asked = Asked(model="llama-3.1-8b", accelerator="dgx-h100", devices=4, name="mine")
    reading = told(tmp_path, writers.megatron(), asked)
    (piece,) = reading.pieces
    (job,) = piece.fragment["training"]
    assert job["progress"] == f"{64 * 2048 * 30 / 1e6:.6f}".rstrip("0") + "M"
    assert job["tokens"] == f"{64 * 2048 * 100 / 1e6:.6f}".rstrip("0") + "M"
    assert job["step_time"] == {"measured": "2.016 s", "shape": "dgx-h100", "count": 4}


def test_a_run_that_began_again_is_told(tmp_path: Path) -> None:
    text = writers.megatron(20)
    again = [line for line in text.splitlines() if "iteration" in line][9:]
    reading = told(tmp_path, text + "\n".join(again) + "\n")
    assert figures(reading)["restarts from an earlier step"] >= 1


def test_a_cut_event_file_gives_what_is_whole(tmp_path: Path) -> None:
    reading = told(tmp_path, writers.events()[:-5])
    assert figures(reading)["train/loss, last of 4"] == 4.0
    assert reading.skipped.reasons == {"the last record, half written": (1, 6)}


def test_several_ranks_share_a_line(tmp_path: Path) -> None:
    lines = writers.megatron(6).splitlines()
    joined = "\n".join([*lines[:-2], lines[-2] + lines[-1]])
    assert figures(told(tmp_path, joined))["last step"] == 6
