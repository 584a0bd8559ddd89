"""Faults in the builder: the tool that puts them in, and a sample of what becomes of them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
# money, the story of the search, the proof, rows, alternatives, words
FEW = (
    "candidates.ledger.Ledger.reasons dropped",
    "optimize.ways._ways dropped",
    "plan.document._provenance scaled",
    "plan.rows.row_cells.place_document scaled",
    "plan.reasons.alternatives_of dropped",
    "plan.reasons.because_of dropped",
)
SEEN = {"no matter", "refused", "found", "claims less", "as good", "solve"}


@pytest.fixture(scope="module")
def faults() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("faults", ROOT / "benchmarks" / "faults.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["faults"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["faults"]


class Pair(NamedTuple):
    name: str
    number: int


@dataclass(frozen=True)
class Row:
    hours: float
    flag: bool


@pytest.mark.parametrize(
    ("value", "mode", "then"),
    [
        (2.0, "scaled", 2.14),
        (2, "scaled", 3),
        (1000, "scaled", 1070),
        ([1, "a", None], "scaled", [2, "a", None]),
        ({"a": (1.0, True)}, "scaled", {"a": (1.07, True)}),
        (Pair("a", 1), "scaled", Pair("a", 2)),
        (Row(0.0, True), "scaled", Row(1.07 - 1, True)),
        ([1, 2], "dropped", [2]),
        ({"a": 1, "b": 2}, "dropped", {"b": 2}),
        (True, "negated", False),
        ("memory", "renamed", "memoryx"),
    ],
)
def test_a_value_with_a_fault(faults: ModuleType, value: Any, mode: str, then: Any) -> None:
    assert mode in set(faults.modes_of(value))
    found = faults.changed(value, mode)
    assert found == then if not isinstance(then, float) else found == pytest.approx(then)


def test_arrays_and_iterators_with_a_fault(faults: ModuleType) -> None:
    assert faults.changed(np.array([1, 100]), "scaled").tolist() == [2, 107]
    assert faults.changed(np.array([True, False]), "negated").tolist() == [False, True]
    assert list(faults.changed((n for n in (1, 2)), "dropped")) == [2]
    assert list(faults.changed((n for n in (1, 2)), "scaled")) == [2, 3]


def test_the_functions_of_the_builder_are_found_and_none_of_the_verifier(faults: ModuleType) -> None:
    found = faults.functions()
    assert len(found) > 1000
    assert {"candidates.search.Candidates.columns_before", "plan.document._summary", "optimize.solve.optimize"} <= {
        *found
    }
    assert not [name for name in found if name.startswith(("plan.checks", "plan.verify", "plan.standing"))]


def verdicts(folder: Path, names: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """What becomes of faults in gpt2-xl; of all that it calls when none is named.

    In a process of one thread: it forks, and those of a run of tests in parallel have more.
    """
    out = folder / "verdicts.json"
    command = [sys.executable, "benchmarks/faults.py", "--scenario", "gpt2-xl", "--json", str(out)]
    asked = subprocess.run(
        [*command, *(names or ["--all"])], cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False
    )
    assert out.exists(), asked.stderr
    found: dict[str, tuple[str, str]] = {
        name: (verdict, why) for name, (verdict, why) in json.loads(out.read_text()).items()
    }
    assert not names or set(found) == set(names)
    return found


def test_a_sample_of_faults_is_seen(tmp_path: Path) -> None:
    found = {name: verdict for name, (verdict, _) in verdicts(tmp_path, FEW).items()}
    assert found == {
        "candidates.ledger.Ledger.reasons dropped": "found",
        "optimize.ways._ways dropped": "claims less",
        "plan.document._provenance scaled": "found",
        "plan.rows.row_cells.place_document scaled": "refused",
        "plan.reasons.alternatives_of dropped": "refused",
        "plan.reasons.because_of dropped": "no matter",
    }


@pytest.mark.campaign
def test_every_fault_in_what_a_plan_calls_is_seen(tmp_path: Path) -> None:
    found = verdicts(tmp_path, ())
    assert [f"{name}: {why}" for name, (verdict, why) in found.items() if verdict not in SEEN] == []
