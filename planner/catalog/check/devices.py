"""Physics of one device: rates of one direction, dense peaks, memory that fits its label."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.catalog.check.findings import error, warning
from planner.catalog.model import Device
from planner.errors import Problem

LEAST_MEASURED_SHARE = 0.45  # of the dense peak; below it the peak may be a sparse figure
_PEAK_BOUNDS = (1e11, 1e18)  # FLOP/s of one device, from a 2012 card to a wafer
_MEMORY_TOLERANCE = 0.10  # label against capacity, GB read as GiB


def check_device(device: Device) -> Iterator[Problem]:
    """What cannot be true of one device, and what seldom is."""
    file = "devices"
    link = device.scale_up
    if link and link.both_ways_bytes_per_s and link.one_way_bytes_per_s * 2 > link.both_ways_bytes_per_s * 1.001:
        message = (
            f"{device.id}: {link.name} does {link.one_way_bytes_per_s / 1e9:g} GB/s one way, more than half of both"
        )
        yield error("two-way-rate", message, file, "give the rate of one direction")
    if link and link.one_way_pair_bytes_per_s > link.one_way_bytes_per_s:
        yield error("two-way-rate", f"{device.id}: a pair is faster than all links together", file)
    for name, rate in device.peak_flop_per_s.items():
        if not (math.isfinite(rate) and _PEAK_BOUNDS[0] <= rate <= _PEAK_BOUNDS[1]):
            yield error("out-of-range", f"{device.id}: the {name} peak is {rate:g} FLOP/s", file, "TFLOP/s?")
    for name, measured in device.measured_matmul_flop_per_s.items():
        peak = device.peak_flop_per_s.get(name, 0.0)
        if measured > peak:
            yield error("above-peak", f"{device.id}: measured {name} is above the dense peak", file)
        elif measured < LEAST_MEASURED_SHARE * peak:
            message = f"{device.id}: measured {name} is {measured / peak:.0%} of the peak: is the peak a sparse figure?"
            yield warning("sparse-peak", message, file)
    yield from _check_memory(device)


def _check_memory(device: Device) -> Iterator[Problem]:
    number, _, unit = device.memory_label.partition(" ")
    if unit == "GB" and number.replace(".", "", 1).isdigit():
        label_bytes = float(number) * 2**30
        if abs(device.memory_bytes - label_bytes) > _MEMORY_TOLERANCE * label_bytes:
            message = f"{device.id}: {device.memory_bytes / 2**30:.1f} GiB do not fit the label {device.memory_label}"
            yield warning("memory-label", message, "devices")
    for use in ("training", "serving"):
        if use not in device.uses and use not in device.refusals:
            yield warning("no-reason", f"{device.id} is not for {use}, and no reason is given", "devices")
