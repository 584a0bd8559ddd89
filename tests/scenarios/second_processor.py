"""Solve and verify as on another processor: what it computes of floats differs by one unit in the last place.

Libraries of mathematics round `exp`, `log` and powers differently from processor to processor, and sums are taken in
another order where vectors are wider. Modules of the planner's mathematics are given a `numpy`, a `math`, a `sum` and a
`**` of which each result that is not a whole number is moved up by one unit, down by one, or left, by a hash of the
seed and of the result: as on a real processor, the same arguments give the same result. Whole numbers are those that
every processor gets right.

    python -m tests.scenarios.second_processor SEED FOLDER llama trace

verifies FOLDER/llama.plan.json and so on, which another processor made, and leaves its own plans in their place.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ROOMS = ("equations", "estimate", "traffic", "architecture", "candidates")
ROUNDED = {
    np: ("exp", "expm1", "log", "log1p", "log2", "log10", "power", "sum", "cumsum", "dot", "mean", "matmul", "prod"),
    math: ("exp", "expm1", "log", "log1p", "log2", "log10", "pow", "erf", "erfc", "lgamma", "gamma", "prod"),
}
POWER, METHOD = "_rounded_power", "_rounded_method"
METHODS = ("sum", "cumsum", "mean", "dot", "prod")


class Processor:
    """Another one: the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.state = np.uint64(seed) * np.uint64(0xD1B54A32D192ED03)
        self.moved = 0

    def rounded(self, value: Any) -> Any:
        """A result as this processor would have it."""
        found = np.asarray(value)
        if found.dtype != np.float64 or not found.size:
            return value
        with np.errstate(over="ignore"):
            mixed = (found.copy().view(np.uint64) ^ self.state) * np.uint64(0x9E3779B97F4A7C15)
        turn = (mixed >> np.uint64(33)) % np.uint64(3)
        there = np.isfinite(found) & (found != np.rint(found)) & (turn > 0)
        self.moved += int(np.count_nonzero(there))
        moved = np.where(there, np.nextafter(found, np.where(turn == 1, -np.inf, np.inf)), found)
        return moved if isinstance(value, np.ndarray) else type(value)(moved[()])

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose results are rounded."""
        return lambda *arguments, **options: self.rounded(function(*arguments, **options))

    def library(self, module: ModuleType) -> ModuleType:
        """A library in which what processors round is rounded."""
        other = ModuleType(module.__name__)
        other.__dict__.update({name: self.of(getattr(module, name)) for name in ROUNDED[module]})
        other.__dict__["__getattr__"] = lambda name: getattr(module, name)
        return other

    def method(self, owner: Any, name: str, *arguments: Any, **options: Any) -> Any:
        """`owner.name(...)`, rounded if owner is an array."""
        found = getattr(owner, name)(*arguments, **options)
        return self.rounded(found) if isinstance(owner, np.ndarray) else found


class Rewritten(ast.NodeTransformer):
    """`a ** b` and `array.sum()` as calls."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow):
            return node
        return ast.Call(ast.Name(POWER, ast.Load()), [node.left, node.right], [])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            owner = node.func.value
            if not (isinstance(owner, ast.Name) and owner.id in ("np", "math")):
                name = ast.Constant(node.func.attr)
                return ast.Call(ast.Name(METHOD, ast.Load()), [owner, name, *node.args], node.keywords)
        return node


class Loader(importlib.machinery.SourceFileLoader):
    """Modules of the planner's mathematics, on another processor."""

    processor: Processor

    def get_code(self, fullname: str) -> Any:  # compiled files hold the mathematics of this processor
        path = self.get_filename(fullname)
        tree = ast.fix_missing_locations(Rewritten().visit(ast.parse(self.get_data(path), path)))
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        own = self.processor
        module.__dict__.update({
            POWER: lambda one, other: own.rounded(one**other),
            METHOD: own.method,
            "sum": own.of(sum),
        })  # fmt: skip
        super().exec_module(module)
        for library in ROUNDED:
            for name, value in list(module.__dict__.items()):
                if value is library:
                    module.__dict__[name] = own.library(library)


class Finder(importlib.abc.MetaPathFinder):
    """Finds them."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if not fullname.startswith(tuple(f"planner.{room}" for room in ROOMS)):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        spec.loader = Loader(fullname, spec.origin)
        return spec


def main(seed: int, folder: Path, names: Sequence[str]) -> None:
    """Print how many results were moved, and what is wrong with each plan."""
    assert not any(name.startswith("planner") for name in sys.modules)
    Loader.processor = Processor(seed)
    sys.meta_path.insert(0, Finder())
    from planner import api
    from tests import shipped

    found: dict[str, list[str]] = {}
    for name in names:
        file = folder / f"{name}.plan.json"
        found[name] = [str(problem) for problem in api.verify(json.loads(file.read_text(encoding="utf-8")))]
        with shipped.unhurried(name):
            plan = api.solve(api.load_scenario(f"scenarios/{name}.yaml"))
        file.write_text(plan.to_json(), encoding="utf-8")
    print(json.dumps({"moved": Loader.processor.moved, "found": found}))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
