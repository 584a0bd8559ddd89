"""One hash over what validated predictions are made of: equations, constants, measured rows.

docs/validation.md and measurements/accepted.json carry it, so that nobody changes the physics
and leaves yesterday's errors standing.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterable

from planner.files import data_folder, list_files, read_package_text, read_text
from planner.validate.rows import TABLES, TOTALS_TABLES
from planner.validate.serving_rows import SERVING_TABLES
from planner.validate.totals_inputs import SETTINGS_TABLE

TRAINING = ("planner.validate.training", "planner.validate.memory_rows")
SERVING = ("planner.validate.serving", "planner.validate.serving_entries", "planner.validate.serving_points")
_ROOMS = ("equations", "estimate", "validate")
_SHOWING = "planner.report."  # how a catalog is drawn in a notebook leads everywhere, and predicts nothing
_TABLES = (*TABLES, *TOTALS_TABLES, SETTINGS_TABLE, *SERVING_TABLES)
_CONSTANTS = ("training*.yaml", "serving*.yaml")


def fingerprint() -> str:
    """SHA-256 over the code that predictions run through, the shipped constants and the shipped rows.

    Comments, docstrings and layout of the code do not count, nor do line ends.
    """
    parts = [f"{name}\n{essence(_source(name))}" for name in sorted(physics((*TRAINING, *SERVING)))]
    folder = data_folder("hardware") / "calibration"
    parts += [read_text(path) for pattern in _CONSTANTS for path in list_files(folder, pattern)]
    parts += [read_package_text(f"measurements/{name}") for name in _TABLES]
    return hashlib.sha256("\0".join(part.replace("\r\n", "\n") for part in parts).encode()).hexdigest()


def physics(roots: Iterable[str]) -> set[str]:
    """The roots, and the modules of equations and estimates that they import, directly or through others."""
    found: set[str] = set()
    waiting = [name for name in roots if _is_module(name)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _imports(_source(name))
    return {name for name in found if name.split(".")[1] in _ROOMS}


def _imports(source: str) -> list[str]:
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module]
    names = [name for node in nodes for name in (node.module, *(f"{node.module}.{part.name}" for part in node.names))]
    ours = (name for name in names if name and name.startswith("planner.") and not name.startswith(_SHOWING))
    return [name for name in ours if _is_module(name)]


def _is_module(name: str) -> bool:
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except ModuleNotFoundError:  # a name inside a module
        return False
    return spec is not None and str(spec.origin).endswith(".py") and not str(spec.origin).endswith("__init__.py")


def _source(name: str) -> str:
    return read_package_text(name.removeprefix("planner.").replace(".", "/") + ".py")


def essence(source: str) -> str:
    """A module's text without comments, docstrings and white space, the same under every version of Python."""
    lines = source.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column] + "\n"
    for first, last in _docstrings(source):
        lines[first - 1 : last] = ["\n"] * (last - first + 1)
    return "".join("".join(lines).split())


def _docstrings(source: str) -> list[tuple[int, int]]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    heads = [node.body[0] for node in ast.walk(ast.parse(source)) if isinstance(node, kinds) and node.body]
    texts = [head for head in heads if isinstance(head, ast.Expr) and isinstance(head.value, ast.Constant)]
    return [(head.lineno, head.end_lineno or head.lineno) for head in texts]
