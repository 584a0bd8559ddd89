"""Reads hardware/devices/*.yaml: the physics of one accelerator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from planner.catalog.model import Device, Link, PublishedRate
from planner.catalog.reading import NOWHERE, Facts, Fields, Origin, Problems, defaults_of, open_yaml
from planner.units import parse_bytes, parse_count, parse_flop_rate, parse_power, parse_rate_bytes

SCHEMA = "catalog/devices/v1"
KINDS = ("gpu", "tpu", "npu", "rdu", "wafer", "lpu")
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
PATTERNS = ("switched", "full-mesh", "mesh", "pair", "pcie", "torus")
USES = ("training", "serving")
NO_LINK = Link(name="", one_way_bytes_per_s=0.0, one_way_pair_bytes_per_s=0.0, pattern="", max_devices=1)
BLANK = Device(
    id="", vendor="", kind="", family="", aliases=(), memory_label="", memory_bytes=0, reserved_memory_bytes=None,
    memory_bandwidth_bytes_per_s=None, peak_flop_per_s={}, measured_matmul_flop_per_s={}, scale_up=None,
    host_link_bytes_per_s=None, tdp_w=None, frameworks=(), uses=USES,
)  # fmt: skip


def read_devices(
    path: Path, problems: Problems, known: Mapping[str, Device] | None = None, above: Origin = NOWHERE
) -> list[Device]:
    """Every device of one file.

    Parameters
    ----------
    known
        Devices that the file may change: what it does not say of them stays.
    above
        What facts inherit that do not say where they are from.
    """
    fields = open_yaml(path, SCHEMA, problems)
    vendor = fields.text("vendor")
    origin, defaults = defaults_of(fields, above)
    frameworks = defaults.texts("frameworks") if defaults else ()
    uses = defaults.texts("uses", USES) if defaults else USES
    if defaults:
        defaults.done()
    blank = replace(BLANK, vendor=vendor, frameworks=frameworks, uses=uses)
    devices = [read_device(item, origin, known or {}, blank) for item in fields.items("devices")]
    fields.done()
    return devices


def read_device(fields: Fields, above: Origin, known: Mapping[str, Device], blank: Device = BLANK) -> Device:
    """A device, or what a file changes of a known one.

    Parameters
    ----------
    fields
        Entry of one device; its keys are taken, and mistakes name it by its id.
    above
        What facts inherit that do not say where they are from.
    known
        Devices by id that the entry may change: what it does not say of them stays.
    blank
        What a new device is where its entry does not say it: vendor, frameworks and uses are those of its file.
    """
    fields.what = fields.text("id", required=True) or fields.what
    new, base = fields.what not in known, known.get(fields.what, blank)
    problems, statuses = fields.problems, _statuses(fields)
    facts = Facts(fields.origin(above), statuses)
    label, memory, reserved, bandwidth = _memory(fields, facts, base)
    peaks = _rates(fields, "peak_dense", "peak_flop_per_s", facts)
    measured = _rates(fields, "measured_matmul", "measured_matmul_flop_per_s", facts, default_status="measured")
    scale_up, host = _links(fields, facts, base)
    processors = facts.value(fields, "multiprocessors", _whole, "multiprocessors", "multiprocessors")
    device = Device(
        id=fields.what,
        vendor=fields.text("vendor", base.vendor),
        kind=fields.text("kind", base.kind, required=new, among=KINDS),
        family=fields.text("family", base.family, required=new),
        aliases=fields.texts("aliases", base.aliases),
        memory_label=label,
        memory_bytes=memory,
        reserved_memory_bytes=reserved,
        memory_bandwidth_bytes_per_s=bandwidth,
        peak_flop_per_s={**base.peak_flop_per_s, **peaks},
        measured_matmul_flop_per_s={**base.measured_matmul_flop_per_s, **measured},
        scale_up=scale_up,
        host_link_bytes_per_s=host,
        tdp_w=_tdp(fields, facts, base),
        frameworks=fields.texts("frameworks", base.frameworks),
        uses=fields.texts("uses", base.uses),
        refusals={**base.refusals, **_texts_by_use(fields, "refusals")},
        claims=fields.texts("claims", base.claims),
        multiprocessors=base.multiprocessors if processors is None else processors,
        notes=fields.text("notes", base.notes),
        engine=fields.text("engine", base.engine),
        published=_published(fields, facts) or base.published,
        facts={**base.facts, **facts.found},
    )
    for path in sorted(facts.unused):
        problems.add("unknown-fact", f"'{path}' of {fields.what} is no fact of it", fields.node.place, "drop it")
    fields.done()
    return device


def _published(fields: Fields, facts: Facts) -> tuple[PublishedRate, ...]:
    """Rates of single models, each a fact with a source of its own."""
    rates = []
    for item in fields.items("published"):
        rate = PublishedRate(
            model=item.text("model", required=True),
            weights=item.text("weights", required=True),
            devices=item.whole("devices", required=True),
            output_tokens_per_s=float(item.whole("output_tokens_per_s", required=True)),
        )
        facts.note(f"published.{rate.model}.{rate.weights}", item.origin(facts.origin))
        rates.append(rate)
        item.done()
    return tuple(rates)


def _tdp(fields: Fields, facts: Facts, base: Device) -> float | None:
    power = fields.below("power")
    if power is None:
        return base.tdp_w
    tdp = facts.value(power, "tdp", parse_power, "tdp_w", "power.tdp")
    power.text("term")
    power.done()
    return base.tdp_w if tdp is None else tdp


def _statuses(fields: Fields) -> dict[str, str]:
    return {path: status for status in ("recalled", "inferred") for path in fields.texts(status)}


def _memory(fields: Fields, facts: Facts, base: Device) -> tuple[str, int, int | None, float | None]:
    memory = fields.below("memory")
    if memory is None:
        if not base.memory_bytes:
            fields.problems.add("missing-key", f"{fields.what} has no 'memory'", fields.node.place, "add memory:")
        reserved_bytes = base.reserved_memory_bytes
        return base.memory_label, base.memory_bytes, reserved_bytes, base.memory_bandwidth_bytes_per_s
    label = memory.text("label", base.memory_label)
    capacity = facts.value(memory, "capacity", parse_bytes, "memory_bytes", "memory.capacity") or base.memory_bytes
    if not capacity:
        fields.problems.add(
            "missing-key", f"{fields.what} has no memory.capacity", memory.node.place, "capacity: 80 GiB"
        )
    reserved = facts.value(memory, "reserved", parse_bytes, "reserved_memory_bytes", "memory.reserved")
    reserved = base.reserved_memory_bytes if reserved is None else reserved
    bandwidth = facts.value(memory, "bandwidth", parse_rate_bytes, "memory_bandwidth_bytes_per_s", "memory.bandwidth")
    memory.text("type")
    memory.done()
    bandwidth = base.memory_bandwidth_bytes_per_s if bandwidth is None else bandwidth
    return label, round(capacity), None if reserved is None else round(reserved), bandwidth


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


def _links(fields: Fields, facts: Facts, base: Device) -> tuple[Link | None, float | None]:
    links = fields.below("links")
    if links is None:
        return base.scale_up, base.host_link_bytes_per_s
    scale_up, host_rate = links.below("scale_up", f"scale_up of {fields.what}"), base.host_link_bytes_per_s
    if host := links.below("host"):
        host.text("name")
        rate = facts.value(host, "one_way", parse_rate_bytes, "host_link_bytes_per_s", "links.host.one_way")
        host_rate = host_rate if rate is None else rate
        host.done()
    links.done()
    return (_scale_up(scale_up, facts, base.scale_up) if scale_up else base.scale_up), host_rate


def _scale_up(fields: Fields, facts: Facts, base: Link | None) -> Link:
    path, name, known = "links.scale_up", "scale_up", base or NO_LINK
    everyone = facts.value(fields, "one_way_all", parse_rate_bytes, f"{name}.one_way", f"{path}.one_way_all")
    pair = facts.value(fields, "one_way_pair", parse_rate_bytes, f"{name}.one_way_pair", f"{path}.one_way_pair")
    both = facts.value(fields, "both_ways", parse_rate_bytes, f"{name}.both_ways", f"{path}.both_ways")
    most = facts.value(fields, "max_devices", _whole, f"{name}.max_devices", f"{path}.max_devices")
    if not base and not (everyone and pair and most):
        message = f"{fields.what} needs one_way_all, one_way_pair and max_devices"
        fields.problems.add("missing-key", message, fields.node.place, "a rate counts one direction: 450 GB/s")
    link = Link(
        name=fields.text("name", known.name),
        one_way_bytes_per_s=everyone or known.one_way_bytes_per_s,
        one_way_pair_bytes_per_s=pair or known.one_way_pair_bytes_per_s,
        pattern=fields.text("pattern", known.pattern, required=not base, among=PATTERNS),
        max_devices=most or known.max_devices,
        both_ways_bytes_per_s=both or known.both_ways_bytes_per_s,
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
