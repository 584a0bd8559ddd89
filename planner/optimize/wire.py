"""How the planner and its solver process talk: frames of a JSON header and plain arrays.

A frame is its length in 8 bytes, the length of the header in 4, the header, and the arrays one
after another, each as its bytes; the header says which they are. Nothing in a frame is ever run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.optimize.model import Lines, Model

Arrays = dict[str, NDArray[Any]]
Buffer = bytes | memoryview
HEAD = 8  # bytes of the length before each frame
KINDS = frozenset({"float64", "int64", "bool"})


def parts_of(header: Mapping[str, Any], **arrays: NDArray[Any]) -> list[Buffer]:
    """One frame, its length in front, in parts to be sent one after another: large arrays are not copied."""
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    shapes = [(name, array.dtype.name, len(array)) for name, array in plain.items()]
    head = json.dumps({**header, "arrays": shapes}).encode()
    size = 4 + len(head) + sum(array.nbytes for array in plain.values())
    bodies = [array.data.cast("B") for array in plain.values() if array.size]
    return [size.to_bytes(HEAD, "big") + len(head).to_bytes(4, "big") + head, *bodies]


def unpacked(frame: bytes) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a frame without its length; raises `ValueError` for anything else."""
    size = 4 + int.from_bytes(frame[:4], "big")
    header = json.loads(frame[4:size])
    if not isinstance(header, dict) or not isinstance(header.get("arrays"), list):
        raise ValueError("a frame without a header")
    arrays: Arrays = {}
    for name, kind, count in header.pop("arrays"):
        if kind not in KINDS:
            raise ValueError(f"a frame with an array of {kind}")
        dtype = np.dtype(kind)
        arrays[name] = np.frombuffer(frame, dtype=dtype, count=count, offset=size)
        size += count * dtype.itemsize
    if size != len(frame):
        raise ValueError("a frame of another length than its header says")
    return header, arrays


def header_of(model: Model) -> dict[str, Any]:
    """The families of variables and lines, each with how many follow one another."""
    kinds = [(kind, sum(1 for _ in same)) for kind, same in groupby(model.table().kinds)]
    return {"variables": model.families, "lines": kinds}


def arrays_of(model: Model) -> Arrays:
    """Numbers of variables and lines."""
    table = model.table()
    rows = {"starts": table.starts, "entries": table.variables, "coefficients": table.coefficients}
    sides = {"low": table.low, "high": table.high}
    return {"upper": model.upper, "integer": model.integer, "objective": model.objective, **rows, **sides}


def model_of(header: dict[str, Any], arrays: Arrays) -> Model:
    """The model again, without what only the planner knows of it: columns, flows and routes."""
    lines = Lines(
        kinds=tuple(kind for kind, count in header["lines"] for _ in range(count)),
        starts=arrays["starts"],
        variables=arrays["entries"],
        coefficients=arrays["coefficients"],
        low=arrays["low"],
        high=arrays["high"],
    )
    return Model.of(
        columns=np.arange(len(arrays["upper"])),
        families=[(prefix, count) for prefix, count in header["variables"]],
        upper=arrays["upper"],
        integer=arrays["integer"],
        objective=arrays["objective"],
        lines=lines,
    )
