"""The faults of benchmarks/mutants.toml still stand in the code that they change."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MUTANTS = tomllib.loads((ROOT / "benchmarks" / "mutants.toml").read_text(encoding="utf-8"))["mutant"]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: str(mutant["id"]))
def test_what_a_mutant_changes_stands_once_in_its_file(mutant: dict[str, str]) -> None:
    assert (ROOT / mutant["file"]).read_text(encoding="utf-8").count(mutant["old"]) == 1
    assert mutant["new"] != mutant["old"]


def test_enough_of_them() -> None:
    assert len({mutant["id"] for mutant in MUTANTS}) == len(MUTANTS) >= 120
