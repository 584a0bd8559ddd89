"""Configurations of trainers: what is said becomes a job, what is left to the trainer is left out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.reading.kinds import Asked
from planner.reading.reading import Reading
from planner.reading.registry import read
from planner.reading.source import Source
from planner.reading.writing import write_into
from planner.yamlfile import read_yaml
from tests.reading import writers

SAMPLES = os.environ.get("PLAN_SAMPLES")


def read_of(folder: Path, text: str, model: str = "") -> Reading:
    (folder / "run.txt").write_text(text)
    return read(Source(folder / "run.txt"), Asked(model=model))


@pytest.mark.parametrize(
    ("text", "job"),
    [
        pytest.param(writers.megatron_script(),
            {"framework": "megatron", "sequence_length": 2048, "global_batch": "512 sequences", "tokens": "1048.576M",
             "precision": "fp16", "sharding": "zero-1", "layout": {"tp": 4, "micro_batch": 2}}, id="megatron"),
        pytest.param(writers.titan_toml(),
            {"framework": "torchtitan", "model": "llama-3.1-8b", "sequence_length": 8192, "tokens": "5.24288M",
             "global_batch": "64 sequences", "sharding": "zero-3", "recompute": "selective",
             "layout": {"tp": 2, "micro_batch": 2}}, id="torchtitan"),
        pytest.param(writers.deepspeed_config(),
            {"framework": "deepspeed", "global_batch": "64 sequences", "precision": "bf16", "sharding": "zero-2"},
            id="deepspeed"),
        pytest.param(writers.axolotl(),
            {"framework": "axolotl", "model": "llama-3.2-3b", "sequence_length": 512, "precision": "bf16",
             "sharding": "zero-3", "recompute": "full", "layout": {"micro_batch": 16}}, id="axolotl"),
        pytest.param(writers.accelerate(),
            {"framework": "fsdp", "precision": "bf16", "sharding": "zero-2"}, id="accelerate"),
        pytest.param(writers.maxtext_script(),
            {"framework": "maxtext", "model": "llama-3.1-8b", "sequence_length": 4096, "recompute": "full",
             "layout": {"tp": 8, "micro_batch": 1}}, id="maxtext"),
    ],
)  # fmt: skip
def test_what_is_said_becomes_a_job(text: str, job: dict[str, Any], tmp_path: Path) -> None:
    reading = read_of(tmp_path, text)
    assert reading.pieces[0].fragment == {"training": [{"name": "run", **job}]}
    assert any("does not give" in note for note in reading.notes) == ("model" not in job or "tokens" not in job)


def test_a_job_is_written_as_a_scenario_that_is_read(tmp_path: Path) -> None:
    made = tmp_path / "mine.yaml"
    write_into(read_of(tmp_path, writers.megatron_script(), "llama-3.1-8b"), str(made), Asked())
    job = read_yaml(made).data["training"][0]
    assert (job["model"], job["layout"], job["tokens"]) == ("llama-3.1-8b", {"tp": 4, "micro_batch": 2}, "1048.576M")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (writers.titan_toml() + "[broken\n", "not whole"),
        (writers.axolotl() + "  - : [\n", "YAML|expected|line"),
    ],
)
def test_a_broken_configuration_is_refused_in_words(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as caught:
        read_of(tmp_path, text)
    assert caught.value.problems[0].places


def test_a_number_that_readers_of_yaml_take_differently_is_counted_and_left_out(tmp_path: Path) -> None:
    reading = read_of(tmp_path, writers.axolotl().replace("sequence_len: 512", "sequence_len: 10_000"))
    assert reading.skipped.reasons == {"ambiguous-number": (1, 4)}
    assert "sequence_length" not in reading.pieces[0].fragment["training"][0]


# GPT-NeoX, NeMo and torchtune are configurations of none of the six
THEIRS = ("accelerate_", "axolotl_", "deepspeed_", "maxtext_", "megatron_", "torchtitan_")


@pytest.mark.campaign
@pytest.mark.skipif(not SAMPLES, reason="PLAN_SAMPLES names no folder of samples")
def test_samples_of_six_trainers_are_told_apart() -> None:
    files = [each for each in sorted(Path(str(SAMPLES), "train_config").iterdir()) if each.name.startswith(THEIRS)]
    assert files
    for file in files:
        reading = read(Source(file))
        assert reading.kind == "train-config"
        assert reading.tool.lower().startswith(file.name.split("_")[0])
        assert reading.taken > 0
