"""Reads hardware/shapes: rentable instances (CSV), owned machines, slices of one card (YAML), slices of TPUs.

Every slice topology of TPUs that can be rented is a shape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from planner.catalog.model import Device, Provenance, Shape
from planner.catalog.reading import (
    KNOWN,
    Facts,
    Fields,
    Origin,
    Problems,
    Row,
    defaults_of,
    open_csv,
    open_yaml,
    parsed,
)
from planner.errors import Place
from planner.units import parse_bytes, parse_rate_bytes
from planner.yamlfile import Node

GBIT_BYTES = 1e9 / 8.0
KINDS = ("instance", "slice", "mig", "share", "onprem")
_RATE = "inter_node_bytes_per_s_per_device"
_SHAPE_KEYS = ("kind", "device", "devices", "vcpus", "scale_up_devices", "network_kind", "max_shapes_per_job")
REQUIRED = ("shape", "kind", "device", "devices", "as_of", "status", "source")
OPTIONAL = (
    "compute_share", "memory_bytes_per_device", "vcpus", "host_memory_gib", "scale_up_devices",
    "inter_node_gbit_per_s_per_device", "network_kind", "network_status", "cluster_required",
    "max_shapes_per_job", "network_source", "note",
)  # fmt: skip


def read_instances(path: Path, devices: dict[str, Device], problems: Problems) -> list[Shape]:
    """Instance types of one provider, named by the file.

    Parameters
    ----------
    path
        A table PROVIDER.csv, whose name is the id of the provider.
    devices
        Devices of the catalog, by id.
    problems
        Where mistakes go: a device that is not among them, too.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    rows = list(open_csv(path, REQUIRED, OPTIONAL, problems))
    for row in rows:
        if row["device"] not in devices:
            message = f"shape {row['shape']} is of '{row['device']}', which is no device"
            problems.add("unknown-device", message, row.place, "see hardware/devices")
    return [_instance(row, path.stem, problems) for row in rows]


def _instance(row: Row, provider: str, problems: Problems) -> Shape:
    name, kind = row["shape"], row["kind"]
    if kind not in KINDS:
        problems.add("unknown-value", f"kind of {name} is '{kind}'", row.place, "one of: " + ", ".join(KINDS))
    count = row.whole("devices", problems)
    if count is None:
        problems.add("missing-key", f"{name} has no devices", row.place, "how many devices one shape holds")
    share = row.number("compute_share", problems, least=1e-6, most=1.0)
    host = row.number("host_memory_gib", problems)
    facts = {"devices": row.provenance(problems)}
    network = row.provenance(problems, "network_")
    rate = row.number("inter_node_gbit_per_s_per_device", problems, least=1e-9)
    if rate is not None:
        facts["inter_node_bytes_per_s_per_device"] = network
    return Shape(
        id=f"{provider}/{name}",
        provider=provider,
        name=name,
        kind=kind,
        device=row["device"],
        devices=count or 1,
        compute_share=share or 1.0,
        bandwidth_share=share or 1.0,
        memory_bytes_per_device=row.whole("memory_bytes_per_device", problems),
        vcpus=row.whole("vcpus", problems),
        host_memory_bytes=None if host is None else round(host * 2**30),
        scale_up_devices=row.whole("scale_up_devices", problems) or 1,
        inter_node_bytes_per_s_per_device=known_rate(rate and rate * GBIT_BYTES, network),
        network_kind=row["network_kind"],
        cluster_required=row["cluster_required"] == "yes",
        max_shapes_per_job=row.whole("max_shapes_per_job", problems),
        facts=facts,
    )


def known_rate(rate: float | None, provenance: Provenance | None) -> float | None:
    """A network rate that may be planned with: only what a source said, or was worked out from one."""
    return rate if rate and provenance and provenance.status in KNOWN else None


def read_onprem(path: Path, devices: dict[str, Device], problems: Problems) -> list[Shape]:
    """Machines that one can own: named nodes, and boxes of n cards.

    Parameters
    ----------
    path
        The file onprem.yaml.
    devices
        Devices of the catalog, by id.
    problems
        Where mistakes go: a device that is not among them, too.

    Raises
    ------
    InputError
        The file cannot be read, or is not YAML.
    """
    fields = open_yaml(path, "catalog/onprem/v1", problems)
    origin, defaults = defaults_of(fields)
    if defaults:
        defaults.done()
    shapes = [_node(item, origin, devices) for item in fields.items("nodes")]
    if boxes := fields.below("boxes"):
        shapes += _boxes(boxes, origin, devices)
    fields.done()
    return shapes


def _node(fields: Fields, above: Origin, devices: dict[str, Device]) -> Shape:
    fields.what = fields.text("id", required=True) or fields.what
    facts = Facts(fields.origin(above))
    facts.note("devices", facts.origin)
    rate = facts.value(fields, "network", parse_rate_bytes, "inter_node_bytes_per_s_per_device", "network")
    count = fields.whole("devices", 1, required=True)
    shape = Shape(
        id=f"onprem/{fields.what}",
        provider="onprem",
        name=fields.what,
        kind="onprem",
        device=known_device(fields, devices),
        devices=count,
        scale_up_devices=count,
        inter_node_bytes_per_s_per_device=known_rate(rate, facts.found.get("inter_node_bytes_per_s_per_device")),
        network_kind=fields.text("network_kind"),
        facts=facts.found,
    )
    fields.done()
    return shape


def _boxes(fields: Fields, above: Origin, devices: dict[str, Device]) -> list[Shape]:
    facts = Facts(fields.origin(above))
    facts.note("devices", facts.origin)
    listed = fields.below("devices", "boxes")
    shapes = []
    for name, node in (dict(listed.left) if listed else {}).items():
        if name not in devices:
            problem_of_device(fields, name, node.place)
        for count in _counts(fields, name, node):
            shapes.append(_box(name, count, devices.get(name), facts))
    fields.done()
    return shapes


def _counts(fields: Fields, name: str, node: Node) -> list[int]:
    counts = [item.value for item in node.value] if type(node.value) is list else [node.value]
    if all(isinstance(count, int) and count > 0 for count in counts):
        return counts
    fields.problems.add("wrong-type", f"{name} wants a list of counts", node.place, "[1, 2, 4, 8]")
    return []


def _box(name: str, count: int, device: Device | None, facts: Facts) -> Shape:
    return Shape(
        id=f"onprem/{name}-x{count}",
        provider="onprem",
        name=f"{name}-x{count}",
        kind="onprem",
        device=name,
        devices=count,
        scale_up_devices=min(count, device.scale_up.max_devices) if device and device.scale_up else 1,
        facts=facts.found,
    )


def read_shape(fields: Fields, above: Origin, known: Mapping[str, Shape], devices: dict[str, Device]) -> Shape:
    """A shape of catalog.yaml: a new one, or what is changed of a known one.

    Parameters
    ----------
    fields
        Entry of one shape; its keys are taken, and mistakes name it by its id.
    above
        What facts inherit that do not say where they are from.
    known
        Shapes by id that the entry may change: what it does not say of them stays.
    devices
        Devices of the catalog, by id.
    """
    name = fields.what = fields.text("id", required=True) or fields.what
    provider, _, own_name = name.partition("/")
    if not own_name:
        fields.problems.add("unsafe-name", f"'{name}' is no id of a shape", fields.node.place, "PROVIDER/NAME")
    base, facts = known.get(name), Facts(fields.origin(above))
    blank = Shape(id=name, provider=provider, name=own_name, kind="instance", device="", devices=1)
    shape = base or blank
    written = [key for key in _SHAPE_KEYS if key in fields.left]
    rate = facts.value(fields, "network", parse_rate_bytes, _RATE, "network")
    host = facts.value(fields, "host_memory", parse_bytes, "host_memory_bytes", "host_memory")
    memory = facts.value(fields, "memory_per_device", parse_bytes, "memory_bytes_per_device", "memory_per_device")
    found = replace(
        shape,
        kind=fields.text("kind", shape.kind, among=KINDS),
        device=known_device(fields, devices) if base is None or "device" in fields.left else shape.device,
        devices=fields.whole("devices", shape.devices, required=base is None),
        vcpus=fields.whole("vcpus") or shape.vcpus,
        host_memory_bytes=shape.host_memory_bytes if host is None else round(host),
        memory_bytes_per_device=shape.memory_bytes_per_device if memory is None else round(memory),
        scale_up_devices=fields.whole("scale_up_devices") or shape.scale_up_devices,
        inter_node_bytes_per_s_per_device=shape.inter_node_bytes_per_s_per_device
        if rate is None
        else known_rate(rate, facts.found[_RATE]),
        network_kind=fields.text("network_kind", shape.network_kind),
        max_shapes_per_job=fields.whole("max_shapes_per_job") or shape.max_shapes_per_job,
    )
    for key in (*written, *(() if base else ("devices",))):
        facts.note(key, facts.origin)
    fields.done()
    device = devices.get(found.device)
    if base is None and device and device.scale_up and "scale_up_devices" not in written:
        found = replace(found, scale_up_devices=min(found.devices, device.scale_up.max_devices))
    return replace(found, facts={**shape.facts, **facts.found})


def known_device(fields: Fields, devices: dict[str, Device]) -> str:
    """The id of a device that a file names, known or not; "" where it names none."""
    node = fields.take("device", required=True)
    if node is None:
        return ""
    name = str(node.value)  # whatever it holds: a list is the name of no device
    if name not in devices:
        problem_of_device(fields, name[:100], node.place)
    return name


def problem_of_device(fields: Fields, name: str, place: Place) -> None:
    """Note a device that the catalog does not hold.

    Parameters
    ----------
    fields
        Of the file; its problems take the mistake.
    name
        As the file calls the device.
    place
        Where the name stands.
    """
    fields.problems.add("unknown-device", f"there is no device '{name}'", place, "see hardware/devices")


def read_mig(path: Path, devices: dict[str, Device], problems: Problems) -> list[Shape]:
    """Slices of one card, each with its own memory and share of the compute.

    Parameters
    ----------
    path
        The file mig.yaml.
    devices
        Devices of the catalog, by id.
    problems
        Where mistakes go: a device that is not among them, too.

    Raises
    ------
    InputError
        The file cannot be read, or is not YAML.
    """
    fields = open_yaml(path, "catalog/mig/v1", problems)
    origin, defaults = defaults_of(fields)
    if defaults:
        defaults.done()
    origin = fields.origin(origin)
    processors = fields.whole("multiprocessors", 1, required=True)
    slices = fields.whole("memory_slices", 1, required=True)
    shapes: list[Shape] = []
    for card in fields.items("cards"):
        memory_origin = Origin(card.text("memory_source"), origin.as_of, origin.status)
        named = card.texts("devices")
        for name in named:
            if name not in devices:
                problem_of_device(card, name, card.node.place)
        for profile in card.items("profiles"):
            shapes += _mig_slices(profile, named, processors, slices, origin, memory_origin)
        card.done()
    fields.done()
    return shapes


def _mig_slices(
    fields: Fields, devices: tuple[str, ...], processors: int, slices: int, origin: Origin, memory_origin: Origin
) -> list[Shape]:
    name = fields.text("name", required=True)
    fields.what = f"profile {name}"
    facts = Facts(memory_origin)
    memory = facts.value(fields, "memory", parse_bytes, "memory_bytes_per_device", "memory")
    facts.note("devices", origin)
    share = fields.whole("multiprocessors", 1, required=True) / processors
    bandwidth = fields.whole("slices", 1, required=True) / slices
    most = fields.whole("most", 1, required=True)
    fields.done()
    return [
        Shape(
            id=f"mig/{device}-{name}",
            provider="mig",
            name=f"{device}-{name}",
            kind="mig",
            device=device,
            devices=1,
            compute_share=share,
            bandwidth_share=bandwidth,
            memory_bytes_per_device=round(memory or 0),
            slices_per_device=most,
            facts=facts.found,
        )
        for device in devices
    ]


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
