"""Reads hardware/devices/*.yaml: the physics of one accelerator."""

from __future__ import annotations

from pathlib import Path

from planner.catalog.model import Device, Link
from planner.catalog.reading import Facts, Fields, Origin, Problems, defaults_of, open_yaml
from planner.units import parse_bytes, parse_count, parse_flop_rate, parse_power, parse_rate_bytes

SCHEMA = "catalog/devices/v1"
KINDS = ("gpu", "tpu", "npu", "rdu", "wafer", "lpu")
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
PATTERNS = ("switched", "full-mesh", "mesh", "pair", "pcie", "torus")
USES = ("training", "serving")


def read_devices(path: Path, problems: Problems) -> list[Device]:
    """Every device of one file."""
    fields = open_yaml(path, SCHEMA, problems)
    vendor = fields.text("vendor")
    origin, defaults = defaults_of(fields)
    frameworks = defaults.texts("frameworks") if defaults else ()
    uses = defaults.texts("uses", USES) if defaults else USES
    if defaults:
        defaults.done()
    devices = []
    for item in fields.items("devices"):
        item.what = item.text("id", required=True) or item.what
        devices.append(_device(item, origin, vendor, frameworks, uses))
    fields.done()
    return devices


def _device(fields: Fields, above: Origin, vendor: str, frameworks: tuple[str, ...], uses: tuple[str, ...]) -> Device:
    problems, statuses = fields.problems, _statuses(fields)
    facts = Facts(fields.origin(above), statuses)
    label, memory, reserved, bandwidth = _memory(fields, facts)
    peaks = _rates(fields, "peak_dense", "peak_flop_per_s", facts)
    measured = _rates(fields, "measured_matmul", "measured_matmul_flop_per_s", facts, default_status="measured")
    scale_up, host = _links(fields, facts)
    tdp = None
    if power := fields.below("power"):
        tdp = facts.value(power, "tdp", parse_power, "tdp_w", "power.tdp")
        power.text("term")
        power.done()
    device = Device(
        id=fields.what,
        vendor=fields.text("vendor", vendor),
        kind=fields.text("kind", required=True, among=KINDS),
        family=fields.text("family", required=True),
        aliases=fields.texts("aliases"),
        memory_label=label,
        memory_bytes=memory,
        reserved_memory_bytes=reserved,
        memory_bandwidth_bytes_per_s=bandwidth,
        peak_flop_per_s=peaks,
        measured_matmul_flop_per_s=measured,
        scale_up=scale_up,
        host_link_bytes_per_s=host,
        tdp_w=tdp,
        frameworks=fields.texts("frameworks", frameworks),
        uses=fields.texts("uses", uses),
        refusals=_texts_by_use(fields, "refusals"),
        claims=fields.texts("claims"),
        multiprocessors=facts.value(fields, "multiprocessors", _whole, "multiprocessors", "multiprocessors"),
        notes=fields.text("notes"),
        facts=facts.found,
    )
    for path in sorted(facts.unused):
        problems.add("unknown-fact", f"'{path}' of {fields.what} is no fact of it", fields.node.place, "drop it")
    fields.done()
    return device


def _statuses(fields: Fields) -> dict[str, str]:
    return {path: status for status in ("recalled", "inferred") for path in fields.texts(status)}


def _memory(fields: Fields, facts: Facts) -> tuple[str, int, int | None, float | None]:
    memory = fields.below("memory")
    if memory is None:
        fields.problems.add("missing-key", f"{fields.what} has no 'memory'", fields.node.place, "add memory:")
        return "", 0, None, None
    label = memory.text("label")
    capacity = facts.value(memory, "capacity", parse_bytes, "memory_bytes", "memory.capacity")
    if not capacity:
        fields.problems.add(
            "missing-key", f"{fields.what} has no memory.capacity", memory.node.place, "capacity: 80 GiB"
        )
    reserved = facts.value(memory, "reserved", parse_bytes, "reserved_memory_bytes", "memory.reserved")
    bandwidth = facts.value(memory, "bandwidth", parse_rate_bytes, "memory_bandwidth_bytes_per_s", "memory.bandwidth")
    memory.text("type")
    memory.done()
    return label, round(capacity or 0), None if reserved is None else round(reserved), bandwidth


def _rates(fields: Fields, key: str, name: str, facts: Facts, default_status: str = "") -> dict[str, float]:
    below = fields.below(key)
    if below is None:
        return {}
    rates = {}
    for precision in PRECISIONS:
        rate = facts.value(below, precision, parse_flop_rate, f"{name}.{precision}", f"{key}.{precision}")
        if rate is not None:
            rates[precision] = rate
            found = facts.found[f"{name}.{precision}"]
            if default_status and found.status == "seen":
                facts.note(f"{name}.{precision}", Origin(found.source, found.as_of, default_status))
    below.done()
    return rates


def _links(fields: Fields, facts: Facts) -> tuple[Link | None, float | None]:
    links = fields.below("links")
    if links is None:
        return None, None
    scale_up, host_rate = links.below("scale_up", f"scale_up of {fields.what}"), None
    if host := links.below("host"):
        host.text("name")
        host_rate = facts.value(host, "one_way", parse_rate_bytes, "host_link_bytes_per_s", "links.host.one_way")
        host.done()
    links.done()
    return (_scale_up(scale_up, facts) if scale_up else None), host_rate


def _scale_up(fields: Fields, facts: Facts) -> Link:
    path, name = "links.scale_up", "scale_up"
    everyone = facts.value(fields, "one_way_all", parse_rate_bytes, f"{name}.one_way", f"{path}.one_way_all")
    pair = facts.value(fields, "one_way_pair", parse_rate_bytes, f"{name}.one_way_pair", f"{path}.one_way_pair")
    both = facts.value(fields, "both_ways", parse_rate_bytes, f"{name}.both_ways", f"{path}.both_ways")
    most = facts.value(fields, "max_devices", _whole, f"{name}.max_devices", f"{path}.max_devices")
    if not everyone or not pair or not most:
        message = f"{fields.what} needs one_way_all, one_way_pair and max_devices"
        fields.problems.add("missing-key", message, fields.node.place, "a rate counts one direction: 450 GB/s")
    link = Link(
        name=fields.text("name"),
        one_way_bytes_per_s=everyone or 0.0,
        one_way_pair_bytes_per_s=pair or 0.0,
        pattern=fields.text("pattern", required=True, among=PATTERNS),
        max_devices=most or 1,
        both_ways_bytes_per_s=both,
    )
    fields.done()
    return link


def _whole(value: object, *, field: str) -> int:
    return parse_count(value, field=field)


def _texts_by_use(fields: Fields, key: str) -> dict[str, str]:
    below = fields.below(key)
    if below is None:
        return {}
    texts = {use: below.text(use) for use in USES if use in below.left}
    below.done()
    return texts
