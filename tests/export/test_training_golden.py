"""What is written for two shipped scenarios, letter by letter; PLAN_UPDATE_GOLDEN=1 writes the files anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.export import Launch, export

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("scenario", ["llama", "gpt2-xl"])
@pytest.mark.parametrize("form", ["torchrun", "torchtitan", "deepspeed", "slurm"])
def test_files_are_as_kept(launches: Callable[..., list[Launch]], scenario: str, form: str) -> None:
    folder = GOLDEN / scenario
    written = {file.name: file.text for file in export(form, launches(scenario)).files}
    if os.environ.get("PLAN_UPDATE_GOLDEN"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in written.items():
            (folder / name).write_text(text, encoding="utf-8")
    mark = ".sbatch" if form == "slurm" else f".{form}."
    kept = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*") if mark in path.name}
    assert written == kept
