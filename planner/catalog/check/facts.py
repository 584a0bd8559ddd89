"""Every fact says where it is from and of which day it is, and every number is one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from planner.catalog.check.findings import error, warning
from planner.catalog.model import Catalog, Device, Link, Provenance
from planner.catalog.reading import STATUSES
from planner.errors import Problem

_DEVICE_FACTS = (
    "memory_bytes", "memory_bandwidth_bytes_per_s", "host_link_bytes_per_s", "tdp_w", "multiprocessors",
    "reserved_memory_bytes",
)  # fmt: skip
_LINK_FACTS = {
    "one_way_bytes_per_s": "scale_up.one_way",
    "one_way_pair_bytes_per_s": "scale_up.one_way_pair",
    "both_ways_bytes_per_s": "scale_up.both_ways",
    "max_devices": "scale_up.max_devices",
}


def check_facts(catalog: Catalog) -> Iterator[Problem]:
    """Facts without a source, a date or a status; how many are weak; numbers that nothing stands behind."""
    weak: Counter[str] = Counter()
    for file, owner, name, fact in facts_of(catalog):
        if not fact.source:
            yield error("no-source", f"{owner}: {name} has no source", file, "add source:")
        if not fact.as_of and not fact.source.startswith("--price "):  # of the question, not of a day
            yield error("no-date", f"{owner}: {name} has no date", file, "add as_of:")
        if fact.status not in STATUSES:
            yield error("no-status", f"{owner}: {name} is '{fact.status}'", file, "one of: " + ", ".join(STATUSES))
        weak[fact.status] += 1
    for device in catalog.devices.values():
        for name in _unaccounted(device):
            yield error("no-source", f"{device.id}: {name} has no source", "devices", "add source:")
    for shape in catalog.shapes.values():
        if "devices" not in shape.facts:
            yield error("no-source", f"{shape.id}: devices has no source", "shapes", "add source:")
    for status in ("recalled", "inferred"):
        if weak[status]:
            hint = "plan catalog show ID tells which; a catalog of your own that extends this one may state them"
            yield warning(f"{status}-facts", f"{weak[status]} of {weak.total()} facts are {status}", "", hint)


def facts_of(catalog: Catalog) -> Iterator[tuple[str, str, str, Provenance]]:
    """Every fact of a catalog: file, what it is of, its name, where it is from."""
    for device in catalog.devices.values():
        yield from (("devices", device.id, name, fact) for name, fact in device.facts.items())
    for shape in catalog.shapes.values():
        yield from (("shapes", shape.id, name, fact) for name, fact in shape.facts.items())
    yield from ((f"offers/{offer.provider}.csv", offer.id, "price", offer.provenance) for offer in catalog.offers)
    yield from (("calibration/rule.yaml", row.family, "mfu", row.provenance) for row in catalog.efficiencies.values())
    if catalog.rule_error is not None:
        yield "calibration/rule.yaml", "error", "error", catalog.rule_error.provenance
    for family in catalog.training_families.values():
        yield "calibration/training.yaml", family.family, "constants", family.provenance
    if catalog.serving is not None:
        yield "calibration/serving.yaml", "serving", "constants", catalog.serving.provenance
    for fabric in catalog.fabrics.values():
        facts = {"fabric": fabric.provenance, **fabric.facts}
        yield from (("fabrics.yaml", fabric.id, name, fact) for name, fact in facts.items())
    yield from (("grids.csv", "/".join(key), "carbon", grid.provenance) for key, grid in catalog.grids.items())
    yield from (("transfer.csv", key[0], key[1], fact.provenance) for key, fact in catalog.transfers.items())


def _unaccounted(device: Device) -> Iterator[str]:
    """Numbers of a device that are there without a word on where they are from."""
    held = {name: getattr(device, name) for name in _DEVICE_FACTS}
    for name in ("peak_flop_per_s", "measured_matmul_flop_per_s"):
        held |= {f"{name}.{precision}": rate for precision, rate in getattr(device, name).items()}
    if device.scale_up is not None:
        held |= {fact: getattr(device.scale_up, name) for name, fact in _LINK_FACTS.items()}
    return (name for name, value in held.items() if value is not None and name not in device.facts)


def check_numbers(catalog: Catalog) -> Iterator[Problem]:
    """Numbers that are not finite, and quantities below zero, wherever they stand."""
    groups: tuple[tuple[str, Iterable[tuple[str, Any]]], ...] = (
        ("devices", catalog.devices.items()),
        ("shapes", catalog.shapes.items()),
        ("offers", ((offer.id, offer) for offer in catalog.offers)),
        ("grids.csv", (("/".join(key), grid) for key, grid in catalog.grids.items())),
        ("transfer.csv", (("/".join(key), transfer) for key, transfer in catalog.transfers.items())),
        ("calibration/rule.yaml", catalog.efficiencies.items()),
    )
    for file, items in groups:
        for owner, item in items:
            for name, value in _numbers(item):
                if not math.isfinite(value) or value < 0:
                    yield error("not-finite", f"{owner}: {name} is {value}", file, "leave out what is unknown")


def _numbers(item: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Numbers of an entry with their names, one level of links, rates and tiers deep; prices are checked as prices."""
    for part in fields(item):
        value, name = getattr(item, part.name), f"{path}{part.name}"
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items() if _is_number(inner))
        elif isinstance(value, Link):
            yield from _numbers(value, f"{name}.")
        elif isinstance(value, tuple):
            flat = (cell for row in value for cell in (row if isinstance(row, tuple) else (row,)))
            yield from ((name, cell) for cell in flat if _is_number(cell))
        elif _is_number(value) and part.name != "price_microusd_per_hour":
            yield name, value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
