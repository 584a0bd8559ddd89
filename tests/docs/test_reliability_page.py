"""The page of promises names tests that exist, and takes its numbers from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import counts
import pytest
from reliability_page import promises

from tests import tiers

ROOT = Path(__file__).parents[2]
PROMISES = list(promises())


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise["name"])
def test_every_promise_names_tests_that_exist(promise: dict[str, object]) -> None:
    assert promise["shown_by"]
    for test in promise["shown_by"]:
        path, _, name = test.partition("::")
        assert (ROOT / path).is_file(), path
        assert not name or name in counts.tests_of(path), test


def test_random_inputs_are_counted_as_the_long_tier_tries_them() -> None:
    assert counts.TIMES == tiers.TIMES


def test_names_are_given_once() -> None:
    names = [promise["name"] for promise in PROMISES]
    assert len(names) == len(set(names))


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(counts, "ROOT", tmp_path)
    counts._module.cache_clear()
    text = """
        CASES = cases(12, 120)
        SEEDS = range(10, 30)
        FEW = settings(max_examples=60, deadline=None)
        LAW = settings(max_examples=40)

        @FEW
        def test_bound() -> None: ...

        @settings(max_examples=7)
        def test_own() -> None: ...

        @pytest.mark.parametrize("seed", sampled(range(CASES), 3))
        def test_range() -> None: ...

        def test_loop() -> None:
            for seed in range(25):
                print(seed)

        def test_none() -> None: ...
    """
    (tmp_path / "test_a.py").write_text(dedent(text))
    (tmp_path / "a.csv").write_text("head\n1\n2\n")
    (tmp_path / "a.yaml").write_text("values: [1, 2, 3]\n")
    yield "test_a.py"
    counts._module.cache_clear()


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("CASES", 120), ("SEEDS", 20), ("FEW", 1200), ("LAW", 800), ("test_bound", 1200), ("test_own", 140),
        ("test_range", 120), ("test_loop", 25),
    ],
)  # fmt: skip
def test_numbers_are_those_of_the_tests(sample: str, name: str, number: int) -> None:
    assert counts.count(f"{sample}::{name}") == number


@pytest.mark.parametrize(("reference", "number"), [("a.csv", 2), ("*.yaml", 1), ("*.yaml:values", 3)])
def test_files_rows_and_items_are_counted(sample: str, reference: str, number: int) -> None:
    assert counts.count(reference) == number


@pytest.mark.parametrize("reference", ["test_a.py::test_none", "test_a.py::test_gone", "b.csv"])
def test_what_states_no_number_is_an_error(sample: str, reference: str) -> None:
    with pytest.raises(LookupError):
        counts.count(reference)
