"""Every equation: one number or many, int or float, the same answer; and a docstring a reader can check.

An equation gets its sample arguments from the table below or, when it is not named there, from the first
example of its docstring. An id that has neither fails.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import inspect
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planner
from planner.equations.registry import REGISTRY
from tests.published.comparer import register_all

MODULES = register_all()
SECTIONS = ("Parameters", "Returns", "Notes", "References", "Examples")

# Where the first docstring example cannot be taken as it is (it makes no call, or with arrays).
# compute of large runs is beyond int64
SAMPLES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {"EQ-RULE-12": ((6 * 10**18,), {})}


def _example_calls(identifier: str) -> list[tuple[list[Any], dict[str, Any]]]:
    """Arguments of the calls that the docstring examples make, recorded while they run."""
    function = REGISTRY[identifier]
    calls: list[tuple[list[Any], dict[str, Any]]] = []

    def recorder(*positional: Any, **keywords: Any) -> Any:
        calls.append((list(positional), dict(keywords)))
        return function(*positional, **keywords)

    names = {**vars(inspect.getmodule(function)), function.__name__: recorder}
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(function) or ""):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(example.source, identifier, "single"), names)
    return calls


def sample(identifier: str) -> tuple[list[Any], dict[str, Any]]:
    """Sample arguments of an equation; a failure when there are none."""
    if identifier in SAMPLES:
        positional, keywords = SAMPLES[identifier]
        return list(positional), dict(keywords)
    calls = _example_calls(identifier)
    if not calls:
        pytest.fail(f"{identifier} has no example that calls it: add one to its docstring or to SAMPLES")
    return calls[0]


def as_kind(value: Any, kind: str) -> Any:
    """A sample value as int, int64 array or float64 array; texts and flags stay, fractions stay float."""
    if isinstance(value, str | bool | None):
        return value
    if isinstance(value, list | tuple):
        return value
    whole = float(value).is_integer()
    if kind == "int":
        return int(value) if whole else value
    if kind == "int64 array":
        return np.array([value, value], dtype=np.int64 if whole else np.float64)
    return np.array([value, value], dtype=np.float64)


def leaves(result: Any) -> list[np.ndarray]:
    """The numbers of a result: one array, a tuple of arrays or a mapping of named terms."""
    if isinstance(result, Mapping):
        return [leaf for key in sorted(result) for leaf in leaves(result[key])]
    if isinstance(result, tuple | list):
        return [leaf for item in result for leaf in leaves(item)]
    return [np.asarray(result)]


@pytest.mark.parametrize("identifier", sorted(REGISTRY))
@pytest.mark.parametrize("kind", ["int", "int64 array", "float64 array"])
def test_scalar_and_array_agree(identifier: str, kind: str) -> None:
    function = REGISTRY[identifier]
    positional, keywords = sample(identifier)
    expected = leaves(
        function(
            *(float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in positional),
            **{k: float(v) if isinstance(v, int) and not isinstance(v, bool) else v for k, v in keywords.items()},
        )
    )
    result = leaves(
        function(*(as_kind(v, kind) for v in positional), **{k: as_kind(v, kind) for k, v in keywords.items()})
    )
    assert len(result) == len(expected)
    for ours, wanted in zip(result, expected, strict=True):
        assert np.isfinite(wanted).all(), f"{identifier}: the sample gives {wanted}"
        np.testing.assert_allclose(ours, np.broadcast_to(wanted, ours.shape), rtol=1e-12, atol=0)


@pytest.mark.parametrize("identifier", sorted(REGISTRY))
def test_arrays_are_elementwise(identifier: str) -> None:
    """A column of two different rows gives what the rows give one by one."""
    function = REGISTRY[identifier]
    positional, keywords = sample(identifier)

    def second(value: Any) -> Any:
        return value if isinstance(value, str | bool | None) or value in (0, 1, 2) else value * 2

    def call(transform: Any) -> list[np.ndarray]:
        return leaves(function(*map(transform, positional), **{k: transform(v) for k, v in keywords.items()}))

    def both(value: Any) -> Any:
        return value if isinstance(value, str | bool | None) else np.array([value, second(value)], dtype=np.float64)

    for column, first, other in zip(call(both), call(lambda v: v), call(second), strict=True):
        if column.ndim == 1 and first.ndim == 0:
            np.testing.assert_allclose(column, [float(first), float(other)], rtol=1e-12, atol=0)


def test_no_integer_overflow() -> None:
    """405e9 parameters times 15.6e12 tokens times 6 is beyond int64."""
    flop_count = REGISTRY["EQ-FLOP-12"](np.array([405_000_000_000]), np.array([15_600_000_000_000]))
    assert float(flop_count[0]) == pytest.approx(3.7908e25, rel=1e-12)


@pytest.mark.parametrize("identifier", sorted(REGISTRY))
def test_docstring_has_every_section(identifier: str) -> None:
    text = inspect.getdoc(REGISTRY[identifier]) or ""
    lines = text.splitlines()
    for title in SECTIONS:
        assert title in lines, f"{identifier} has no section {title}"
        assert set(lines[lines.index(title) + 1]) == {"-"}
    assert "[1]" in text, f"{identifier} cites nothing"
    assert lines[0].endswith("."), "one-line summary"
    described = {name.strip() for line in lines if line[:1].strip() for name in line.split(",")}
    missing = set(inspect.signature(REGISTRY[identifier]).parameters) - described
    assert not missing, f"{identifier} does not describe {sorted(missing)}"


def test_ids_are_reached_from_their_functions() -> None:
    for identifier, function in REGISTRY.items():
        assert function.equation_id == identifier
        assert function.__name__ in vars(inspect.getmodule(function))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rsplit(".", 1)[-1])
def test_doctests(module: Any) -> None:
    failures, _ = doctest.testmod(module)
    assert failures == 0


def test_a_missing_sample_fails() -> None:
    def undocumented(value: float) -> float:
        """No example here."""
        return value

    REGISTRY["EQ-TEST-0"] = undocumented
    try:
        with pytest.raises(pytest.fail.Exception, match="EQ-TEST-0"):
            sample("EQ-TEST-0")
    finally:
        del REGISTRY["EQ-TEST-0"]


def test_what_no_prediction_is_made_of_stands_with_the_tests() -> None:
    """The planner's equations are all used by it; those that only check others live in tests/published/equations."""
    package = Path(planner.__file__).parent
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in package.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    used = {node.id for node in nodes if isinstance(node, ast.Name)} | {
        node.attr for node in nodes if isinstance(node, ast.Attribute)
    }
    mine = {each.__name__ for each in REGISTRY.values() if each.__module__.startswith("planner.")}
    assert len(mine) > 150
    assert mine <= used, sorted(mine - used)
