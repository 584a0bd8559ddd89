"""Stable ids of the equations: a printed id leads to a function, and the function to a paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatOrArray: TypeAlias = float | NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

_FLOAT64 = np.dtype(np.float64)  # asked for half a million times in a question, where a type costs twice as much
REGISTRY: dict[str, Callable[..., Any]] = {}


def equation(identifier: str) -> Callable[[Function], Function]:
    """Register a function under a stable id such as ``EQ-MEM-1``; an id is given once."""

    def register(function: Function) -> Function:
        if identifier in REGISTRY:
            raise ValueError(f"equation id {identifier} is taken by {REGISTRY[identifier].__name__}")
        REGISTRY[identifier] = function
        function.equation_id = identifier  # type: ignore[attr-defined]
        return function

    return register


def as_float(value: Any) -> NDArray[np.float64]:
    """Float64 view of a number or array; int64 products of token and FLOP counts overflow in silence."""
    return np.asarray(value, _FLOAT64)
