"""Each printed number of each source, against our equations; `pytest tests/published -rP` shows the digits.

The format of the data files is described in `comparer.py`: one YAML file a source in `data/`, each row
with table, quantity, equation id and arguments (or an expression), and the number as printed.
"""

from __future__ import annotations

import re

import pytest

from tests.published.comparer import DATA, Published, matching_digits, read, read_all

VALUES = read_all()


@pytest.mark.parametrize("value", VALUES, ids=[value.identifier for value in VALUES])
def test_published_value(value: Published, record_property: pytest.RecordProperty) -> None:
    computed = value.computed()
    expected = float(value.expected)
    digits = matching_digits(computed, expected)
    record_property("matching_digits", round(digits, 2))
    print(f"{digits:5.1f} digits  {value.quantity}: {computed:.8g}, printed {value.expected}  [{value.source}]")
    assert abs(computed - value.target) <= value.allowed, (
        f"{value.quantity} ({value.source}, {value.table}): computed {computed:.8g}, printed {value.expected}, "
        f"{digits:.1f} digits agree, allowed difference {value.allowed:.3g}"
    )


def test_values_are_given_once() -> None:
    identifiers = [value.identifier for value in VALUES]
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("path", sorted(DATA.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_file_has_a_source_and_says_how_it_was_checked(path) -> None:
    import yaml

    document = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert document["source"].strip()
    assert document["checked"].strip()
    assert read(path)


def test_there_are_enough_values_that_somebody_has_seen() -> None:
    """At least 100 values from at least 10 sources, counts of parameters and recalled rows left out."""
    seen = [value for value in VALUES if value.status == "seen" and not value.quantity.startswith("parameters of")]
    sources = {work(value.source) for value in seen}
    print(f"{len(seen)} values from {len(sources)} works: {', '.join(sorted(sources))}")
    assert len(seen) >= 100
    assert len(sources) >= 10


def work(source: str) -> str:
    """The paper or repository of a source, so that two files on one paper count once."""
    found = re.search(r"arXiv[ :]*(\d{4}\.\d{4,5})", source) or re.search(r"([\w.-]+/[\w.-]+)[:@]", source)
    return found[1] if found else source


def test_a_wrong_value_is_caught() -> None:
    value = Published(
        file="self",
        source="this test",
        table="none",
        quantity="two",
        status="derived",
        expression={"sum": [1, {"product": [2, 0.5]}]},
        divide_by=1,
        expected="2.01",
        tolerance=None,
        digits=None,
    )
    assert value.computed() == 2.0
    assert abs(value.computed() - 2.01) > value.allowed
    assert value.allowed == pytest.approx(0.005)
