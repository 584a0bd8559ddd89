"""Published values as data: read them, evaluate them with our equations, count matching digits.

One YAML file a source in ``tests/published/data/``::

    source: "A. Author et al., Title, year, arXiv 1234.56789"   # cited in every report line
    status: seen            # seen = read at the source or in a stored copy | derived | recalled
    checked: "where and how it was read"
    values:
      - quantity: 22B, no recompute                     # says what the number is
        table: Figure 1                                 # place in the source
        call: EQ-MEM-7                                  # an equation id ...
        arguments: {sequence_length: 2048, hidden_size: 6144, layers: 48}
        divide_by: 1073741824                           # optional: from base units to the printed unit
        expected: "59.25"                               # a string, with the digits printed
      - quantity: ratio of two equations
        table: eq. 5
        value: {ratio: [{call: EQ-FLOP-9, arguments: {...}}, {call: EQ-FLOP-10, arguments: {...}}]}
        expected: "1.03"
        tolerance: 0.001                                # optional, relative; else half a unit of the last digit
        digits: 3                                       # optional instead: significant digits that must agree
        rounding: down                                  # optional: the source cuts digits off instead of rounding
        status: recalled                                # optional, overrides the file's

An argument is a number, a list, or again an expression: ``{call:, arguments:}``, ``{sum: [...]}``,
``{difference: [a, b]}``, ``{product: [...]}``, ``{ratio: [a, b]}``, ``{model: preset, field: matmul_parameters}``,
``{estimate: "planner.estimate.serving:function", arguments: {...}, term: name}`` for composed estimates
(``term: total`` or the name of one term; without ``term`` the result is taken as a number).
"""

from __future__ import annotations

import functools
import importlib
import math
import pkgutil
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import yaml

import planner.equations
import tests.published.equations
from planner.equations.registry import REGISTRY

DATA = Path(__file__).parent / "data"
STATUSES = {"seen", "derived", "recalled"}
FILE_KEYS = {"source", "status", "checked", "values", "as_of"}
ROW_KEYS = {
    *("quantity", "table", "call", "arguments", "value", "divide_by", "expected", "tolerance", "digits"),
    *("rounding", "status", "note"),
}


def register_all() -> list[ModuleType]:
    """Every module with equations, the planner's and those that only check: imported, REGISTRY is whole."""
    return [
        importlib.import_module(f"{package.__name__}.{module.name}")
        for package in (planner.equations, tests.published.equations)
        for module in pkgutil.iter_modules(package.__path__)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One printed number and the expression that should give it."""

    file: str
    source: str
    table: str
    quantity: str
    status: str
    expression: Any
    divide_by: float
    expected: str
    tolerance: float | None
    digits: int | None
    cut_off: bool = False

    @property
    def identifier(self) -> str:
        return f"{self.file}:{self.table}:{self.quantity}".replace(" ", "-")

    @property
    def allowed(self) -> float:
        """Largest absolute difference that still counts as equal."""
        expected = abs(float(self.expected))
        if self.tolerance is not None:
            return self.tolerance * expected
        if self.digits is not None:
            return 0.5 * 10.0 ** (math.floor(math.log10(expected)) + 1 - self.digits)
        # A hair more than half a unit of the last printed digit: printed halves may round either way.
        exponent = Decimal(self.expected).as_tuple().exponent
        return 0.5 * 10.0 ** int(exponent) * (1 + 1e-9)

    @property
    def target(self) -> float:
        """The printed value, or the middle of what is printed so when digits are cut off."""
        return float(self.expected) + (self.allowed if self.cut_off else 0.0)

    def computed(self) -> float:
        """Our value, in the printed unit."""
        return number(self.expression) / self.divide_by


def matching_digits(computed: float, expected: float) -> float:
    """Common leading digits, as a base-10 logarithm of the relative difference; at most 15."""
    if computed == expected:
        return 15.0
    scale = abs(expected) or 1.0
    return min(15.0, max(0.0, -math.log10(abs(computed - expected) / scale)))


def number(expression: Any) -> float:
    """An expression that must come out as one number."""
    result = np.asarray(evaluate(expression), dtype=np.float64)
    if result.size != 1:
        raise ValueError(f"expected one number, got shape {result.shape}")
    return float(result.reshape(()))


def evaluate(expression: Any) -> Any:
    """Numbers stand for themselves; a mapping is one of the forms in the module docstring."""
    if isinstance(expression, list):
        return [evaluate(item) for item in expression]
    if isinstance(expression, str):
        return _text(expression)
    if not isinstance(expression, dict):
        return expression
    for key, operation in OPERATIONS.items():
        if key in expression:
            return operation(expression)
    raise ValueError(f"unknown expression {expression!r}")


def _text(text: str) -> float | str:
    """YAML 1.1 reads 1e9 as text; it is meant as a number."""
    try:
        return float(text)
    except ValueError:
        return text


def _arguments(expression: dict[str, Any]) -> dict[str, Any]:
    return {name: evaluate(value) for name, value in expression.get("arguments", {}).items()}


def _call(expression: dict[str, Any]) -> Any:
    register_all()
    return REGISTRY[expression["call"]](**_arguments(expression))


def _model(expression: dict[str, Any]) -> Any:
    from planner.architecture.load import load_model

    return getattr(load_model(expression["model"]), expression["field"])


def _estimate(expression: dict[str, Any]) -> Any:
    module, _, name = expression["estimate"].partition(":")
    result = getattr(importlib.import_module(module), name)(**_arguments(expression))
    term = expression.get("term")
    if term is None:
        return result
    return result.total if term == "total" else result[term]


OPERATIONS: dict[str, Any] = {
    "call": _call,
    "model": _model,
    "estimate": _estimate,
    "sum": lambda e: sum(number(item) for item in e["sum"]),
    "difference": lambda e: number(e["difference"][0]) - number(e["difference"][1]),
    "product": lambda e: math.prod(number(item) for item in e["product"]),
    "ratio": lambda e: number(e["ratio"][0]) / number(e["ratio"][1]),
}


@functools.cache
def read_all() -> tuple[Published, ...]:
    """Every value of every data file, in file order."""
    return tuple(value for path in sorted(DATA.glob("*.yaml")) for value in read(path))


def read(path: Path) -> list[Published]:
    """The values of one file; keys that the format does not know are refused."""
    document = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if unknown := set(document) - FILE_KEYS:
        raise ValueError(f"{path.name}: unknown keys {sorted(unknown)}")
    return [_row(path, document, row) for row in document["values"]]


def _row(path: Path, document: dict[str, Any], row: dict[str, Any]) -> Published:
    if unknown := set(row) - ROW_KEYS:
        raise ValueError(f"{path.name}: unknown keys {sorted(unknown)} in {row.get('quantity')}")
    status = row.get("status", document["status"])
    if status not in STATUSES or not isinstance(row["expected"], str) or row.get("rounding", "down") != "down":
        raise ValueError(f"{path.name}: {row['quantity']}: status, rounding or expected (a string) is off")
    expression = row["value"] if "value" in row else {"call": row["call"], "arguments": row.get("arguments", {})}
    return Published(
        file=path.stem,
        source=str(document["source"]),
        table=str(row["table"]),
        quantity=str(row["quantity"]),
        status=status,
        expression=expression,
        divide_by=float(row.get("divide_by", 1)),
        expected=row["expected"],
        tolerance=float(row["tolerance"]) if "tolerance" in row else None,
        digits=row.get("digits"),
        cut_off=row.get("rounding", "nearest") == "down",
    )
