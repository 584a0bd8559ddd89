"""Numbers that tests state, read from their source: how many cases, instances, fixtures `make campaign` tries now.

A reference is one of

- ``tests/a.py::NAME``       an int, a range, or the `max_examples` of settings that the module binds to NAME
- ``tests/a.py::test_name``  the cases of a test: its `max_examples`, or the range that it is parametrized with or walks
- ``tests/folder/*.yaml``    files
- ``tests/a.csv``            rows below the head
- ``tests/a.yaml:values``    items of a list, of every file that the pattern matches
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from planner.yamlfile import parse_yaml

ROOT = Path(__file__).parents[2]
TIMES = 20  # as many random inputs in `make campaign` as the settings of a test say


def count(reference: str) -> int:
    """What a reference counts.

    Raises
    ------
    LookupError
        There is no such file, name or number.
    """
    if "::" in reference:
        path, name = reference.split("::")
        return _stated(path, name)
    pattern, _, key = reference.partition(":")
    paths = sorted(ROOT.glob(pattern))
    if not paths:
        raise LookupError(f"no file {pattern}")
    if key:
        return sum(len(parse_yaml(path.read_text(encoding="utf-8"), str(path)).data[key]) for path in paths)
    if pattern.endswith(".csv"):
        return sum(len(path.read_text(encoding="utf-8").splitlines()) - 1 for path in paths)
    return len(paths)


def tests_of(path: str) -> set[str]:
    """Names of the test functions of a file."""
    return {node.name for node in _module(path).body if isinstance(node, ast.FunctionDef) and node.name[:5] == "test_"}


@cache
def _module(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def _stated(path: str, name: str) -> int:
    for node in _module(path).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            found = next(_numbers(node.value, path), None)
        elif isinstance(node, ast.FunctionDef) and node.name == name:
            marks = (number for mark in node.decorator_list for number in _numbers(mark, path))
            walks = (n for loop in ast.walk(node) if isinstance(loop, ast.For) for n in _numbers(loop.iter, path))
            found = next(marks, None) or next(walks, None)
        else:
            continue
        if found is not None:
            return found
    raise LookupError(f"{path} states no number for {name}")


def _numbers(node: ast.AST, path: str) -> Iterator[int]:
    """Numbers that an expression stands for: itself, a range's length, max_examples, what a name is bound to."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        yield node.value
    elif isinstance(node, ast.Name) and node.id.isupper():
        yield _stated(path, node.id)
    elif isinstance(node, ast.Call):
        yield from _of_call(node, path)


def _of_call(node: ast.Call, path: str) -> Iterator[int]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name == "range":
        bounds = [next(_numbers(argument, path)) for argument in node.args]
        yield bounds[0] if len(bounds) == 1 else bounds[1] - bounds[0]
    elif name == "settings":
        examples = [keyword.value for keyword in node.keywords if keyword.arg == "max_examples"]
        yield from (TIMES * number for one in examples for number in _numbers(one, path))
    elif name == "cases":
        yield from _numbers(node.args[1], path)
    elif name == "sampled":
        yield from _numbers(node.args[0], path)
    elif name in ("parametrize", "seeds"):
        for argument in node.args[1:]:
            yield from _numbers(argument, path)
