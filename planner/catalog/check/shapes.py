"""Shapes: a device that there is, a slice that can be rented, memory that the device has."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.catalog.check.findings import error, warning
from planner.catalog.model import Catalog, Device, Shape
from planner.errors import Problem

# Slices of the 3D tori below one cube of 4x4x4, and the sides of the 2D ones: AI-Hypercomputer/xpk,
# src/xpk/core/system_characteristics.py@02b0c09, and the slice names of Google's price list.
SMALL_SLICES = ((1, 1, 1), (1, 1, 2), (1, 2, 2), (2, 2, 2), (2, 2, 4), (2, 4, 4))
CUBE = 4
LONGEST_2D = 32
_LESS_MEMORY = 0.90  # of the device's own


def check_shape(shape: Shape, catalog: Catalog) -> Iterator[Problem]:
    """What cannot be true of one shape."""
    device = catalog.devices.get(shape.device)
    if device is None:
        yield error("unknown-device", f"{shape.id} is of '{shape.device}', which is no device", "shapes")
        return
    if shape.kind == "slice":
        yield from _check_slice(shape)
    elif device.kind == "tpu":
        yield error("bad-topology", f"{shape.id}: a TPU is rented as a slice of a known topology", "shapes")
    yield from _check_memory(shape, device)


def _check_slice(shape: Shape) -> Iterator[Problem]:
    name = "x".join(map(str, shape.torus)) or "none"
    if math.prod(shape.torus or (0,)) != shape.devices:
        yield error("bad-topology", f"{shape.id}: no topology {name} has {shape.devices} chips", "shapes")
    elif not is_slice(shape.torus):
        hint = "2D: powers of two, one side at most twice the other; 3D: whole cubes of 4x4x4, or 2x2x1 to 2x4x4"
        yield error("bad-topology", f"{shape.id}: {name} is not among the topologies that are rented", "shapes", hint)


def is_slice(torus: tuple[int, ...]) -> bool:
    """Whether a topology is of a form that is rented.

    Examples
    --------
    >>> is_slice((4, 8)), is_slice((3, 5)), is_slice((2, 2, 1)), is_slice((4, 4, 12)), is_slice((4, 4, 6))
    (True, False, True, True, False)
    """
    if len(torus) == 2:
        short, long = sorted(torus)
        return _is_power_of_two(short) and _is_power_of_two(long) and long <= min(2 * short, LONGEST_2D)
    if len(torus) == 3:
        return tuple(sorted(torus)) in SMALL_SLICES or all(side % CUBE == 0 for side in torus)
    return False


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _check_memory(shape: Shape, device: Device) -> Iterator[Problem]:
    memory = shape.memory_bytes_per_device
    if memory is None:
        return
    if memory > device.memory_bytes:
        yield error("memory-label", f"{shape.id} has more memory per device than a {device.id}", "shapes")
    elif shape.kind == "instance" and memory < _LESS_MEMORY * device.memory_bytes:
        message = f"{shape.id}: {memory / 2**30:.1f} GiB a device, a {device.id} has {device.memory_bytes / 2**30:.1f}"
        yield warning("memory-label", message, "shapes", "another device, or a share of one: kind share")
