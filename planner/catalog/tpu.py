"""Reads hardware/shapes/tpu.yaml: every slice topology that can be rented is a shape."""

from __future__ import annotations

import math
from pathlib import Path

from planner.catalog.model import Device, Shape
from planner.catalog.reading import Facts, Fields, Origin, Problems, defaults_of, open_yaml, parsed
from planner.catalog.shapes import known_device, known_rate
from planner.units import parse_rate_bytes

_RATE = "inter_node_bytes_per_s_per_device"


def read_slices(path: Path, devices: dict[str, Device], problems: Problems) -> list[Shape]:
    """Every slice of every family.

    Parameters
    ----------
    path
        The file tpu.yaml.
    devices
        Devices of the catalog, by id.
    problems
        Where mistakes go: a device that is not among them, too.

    Raises
    ------
    InputError
        The file cannot be read, or is not YAML.
    """
    fields = open_yaml(path, "catalog/tpu/v1", problems)
    origin, defaults = defaults_of(fields)
    provider = defaults.text("provider", "gcp") if defaults else "gcp"
    if defaults:
        defaults.done()
    shapes = [shape for item in fields.items("families") for shape in _family(item, origin, provider, devices)]
    fields.done()
    return shapes


def _family(fields: Fields, above: Origin, provider: str, devices: dict[str, Device]) -> list[Shape]:
    fields.what = device = known_device(fields, devices)
    recalled = dict.fromkeys(fields.texts("recalled"), "recalled")
    facts = Facts(fields.origin(above), recalled)
    status = recalled.get("topologies", facts.origin.status)
    facts.note("devices", facts.origin)
    facts.note("torus", Origin(facts.origin.source, facts.origin.as_of, status))
    rate = facts.value(fields, "between_slices", parse_rate_bytes, _RATE, "between_slices")
    rate = known_rate(rate, facts.found.get(_RATE))
    pattern, per_chip = fields.text("name", required=True), fields.whole("number_per_chip", 1, required=True)
    whole, axis = fields.whole("wrap_whole"), fields.whole("wrap_axis")
    most_chips = fields.whole("max_chips_per_job")
    topologies = fields.take("topologies", required=True)
    exceptions = _exceptions(fields)
    shapes = []
    for text in str(topologies.value).split() if topologies else ():
        torus = _topology(text)
        if torus is None or topologies is None:
            place = topologies.place if topologies else fields.node.place
            fields.problems.add("bad-topology", f"'{text}' is not a topology", place, "write 2x2x4")
            continue
        chips = math.prod(torus)
        name = pattern.replace("{}", str(chips * per_chip))
        shapes.append(
            Shape(
                id=f"{provider}/{name}",
                provider=provider,
                name=name,
                kind="slice",
                device=device,
                devices=chips,
                scale_up_devices=chips,
                inter_node_bytes_per_s_per_device=exceptions.get(name, rate),
                network_kind="dcn" if rate else "",
                max_shapes_per_job=most_chips // chips if most_chips else None,
                torus=torus,
                wraparound=wraparound(torus, whole, axis),
                facts=facts.found,
            )
        )
    fields.done()
    return shapes


def _topology(text: str) -> tuple[int, ...] | None:
    parts = text.split("x")
    if not all(part.isdigit() and part != "0" for part in parts):
        return None
    return tuple(int(part) for part in parts)


def wraparound(torus: tuple[int, ...], whole: int, axis: int) -> tuple[bool, ...]:
    """Which axes close into a ring: all of them in slices of whole cubes, else those of the full size.

    Parameters
    ----------
    torus
        Chips along each axis.  [count]
    whole
        Chips along the edge of a cube: all axes close when each is a multiple of it; 0: `axis` decides.  [count]
    axis
        Chips along an axis that closes by itself; 0: none closes.  [count]
    """
    if whole:
        closed = all(size % whole == 0 for size in torus)
        return (closed,) * len(torus)
    return tuple(bool(axis) and size == axis for size in torus)


def _exceptions(fields: Fields) -> dict[str, float]:
    below = fields.below("exceptions")
    if below is None:
        return {}
    rates = {name: parsed(node, parse_rate_bytes, name, fields.problems) for name, node in below.left.items()}
    return {name: rate for name, rate in rates.items() if rate is not None}
