"""The shipped catalog between two processes: what is kept is what would be read, and only of these very files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from planner.catalog import load
from planner.files import data_folder


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for bytecode of its own, and a small catalog and program whose files may change."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "bytecode"))
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware" / "catalog.yaml").write_text("a")
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "module.py").write_text("a")
    monkeypatch.setattr(load, "_PROGRAM", tmp_path / "program")
    return tmp_path


def asked(place: Path) -> list[int]:
    """Read once more; how often the files themselves were read."""
    catalog, times = load.load_catalog(), [0]

    def read() -> load.Catalog:
        times[0] += 1
        return catalog

    assert load.kept(place / "hardware", read) == catalog
    return times


def test_what_is_kept_is_what_would_be_read(place: Path) -> None:
    shipped = data_folder("hardware")
    first = load.kept(shipped, lambda: load._loaded(shipped, ""))
    again = load.kept(shipped, lambda: pytest.fail("read again"))
    assert again is not first
    assert again == first
    assert again.digest == load.digest_of(again)


@pytest.mark.parametrize("changed", ["hardware/catalog.yaml", "hardware/new.csv", "program/module.py"])
def test_it_is_read_again_once_a_file_of_it_or_of_the_program_changed(place: Path, changed: str) -> None:
    assert asked(place) == [1]
    assert asked(place) == [0]
    (place / changed).write_text("b")
    os.utime(place / changed, ns=(1, 1))
    assert asked(place) == [1]
    assert asked(place) == [0]


@pytest.mark.parametrize("damage", [b"", b"\0" * 100, None])
def test_damage_is_read_over(place: Path, damage: bytes | None) -> None:
    asked(place)
    (path,) = (place / "bytecode").rglob("*.catalog")
    path.write_bytes(path.read_bytes()[:-1] if damage is None else damage)
    assert asked(place) == [1]
    assert asked(place) == [0]


def test_nothing_is_kept_where_python_keeps_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert asked(place) == asked(place) == [1]
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (place / "bytecode").write_text("a file where the folder would be")
    assert asked(place) == asked(place) == [1]
