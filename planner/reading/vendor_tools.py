"""What neuron-ls, npu-smi info and hl-smi print of a machine: AWS Neuron, Huawei Ascend and Intel Gaudi."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import PurePath

from planner.catalog.load import load_catalog
from planner.reading.inventory import Node, mebibytes, told_of
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.source import Source, refused

_MOST_DEVICES = 100_000
_LONGEST = 400  # characters of a line that are looked at
_NEAR = 0.05  # of a device's memory, by which what its tool shows may differ
# neuron-ls
_TYPE = re.compile(r"\s*instance-type\s*:\s*([\w.-]{3,40})\s*$")
_NEURON = re.compile(r"\|\s*(\d{1,3})\s*\|\s*\d{1,3}\s*\|(?:[^|]*\|)??\s*(\d{1,4} GB)\s*\|")
_LINES = {"inf": "inferentia", "trn": "trainium"}
# npu-smi info: a line of the name, and one of the chip below it
_NPU = re.compile(r"\|\s*(\d{1,4})\s+(\S[^|]{0,40}?)\s*\|\s*([A-Za-z]\w{0,20})\s*\|\s*[\d.-]")
_CHIP = re.compile(r"\|\s*(\d{1,4})(?:\s+\d{1,4})?\s*\|\s*[0-9A-Fa-f:.]{7,20}\s*\|(.*)\|\s*$")
_USED = re.compile(r"(\d+)\s*/\s*(\d+)")
# hl-smi
_AIP = re.compile(r"\|\s*(\d{1,4})\s+(HL-\d{3}\w?)\b")
_MIB = re.compile(r"\d+ ?MiB ?/ ?(\d+ ?MiB)")

Device = tuple[str, str, float | None]  # what tells it from others, name, memory [B]


def _neuron_devices(part: Source, reading: Reading) -> tuple[list[Device], str]:
    """Devices without a name, and the type of their machine where the table tells it."""
    if part.head_text.lstrip()[:1] in ("[", "{"):
        whole = document_of(part)
        whole = whole.get("neuron_devices", whole) if isinstance(whole, dict) else whole
        rows = [row for row in whole if isinstance(row, dict)] if isinstance(whole, list) else []
        return [(str(row.get("neuron_device")), "", number_of(str(row.get("memory_size", "")))) for row in rows], ""
    found, machine = [], ""
    for line in part.lines():
        if told := _TYPE.match(line[:_LONGEST]):
            machine = told.group(1)
        elif row := _NEURON.match(line[:_LONGEST]):
            found.append((row.group(1), "", mebibytes(row.group(2).replace("GB", "GiB"))))
    return found, machine


def _npus(part: Source, reading: Reading) -> Iterator[Device]:
    card = ("", "")
    for number, line in enumerate(part.lines(), start=1):
        if named := _NPU.match(line[:_LONGEST]):
            card = (named.group(1), named.group(2))
            if named.group(3).lower() not in ("ok", "warning"):
                reading.skipped.add(f"a device whose health is {named.group(3)[:20]}", number)
                card = ("", "")
        elif card[1] and (chip := _CHIP.match(line[:_LONGEST])):
            pairs = _USED.findall(chip.group(2))
            memory = max((int(total) for _, total in pairs), default=0)  # of HBM where there is some, else of DDR
            yield f"{card[0]}/{chip.group(1)}", f"Ascend {card[1]}", memory * 2.0**20 or None


def _aips(part: Source, reading: Reading) -> Iterator[Device]:
    last = ("", "")
    for line in part.lines():
        if named := _AIP.match(line[:_LONGEST]):
            last = (named.group(1), named.group(2))
        elif last[1] and (memory := _MIB.search(line[:_LONGEST])):
            yield *last, mebibytes(memory.group(1))
            last = ("", "")


def _without_letter(name: str) -> str:
    """HL-225 of HL-225H and HL-225B, which are boards of one device."""
    return re.sub(r"^(HL-\d{3})[A-Z]$", r"\1", name)


def _of_neuron(count: int, memory_bytes: float | None) -> list[str]:
    """Devices of AWS that come so many to a machine, with such a memory."""
    catalog = load_catalog()
    return sorted({
        shape.device
        for shape in catalog.shapes.values()
        if catalog.devices[shape.device].family.startswith("neuron")
        and shape.devices == count
        and memory_bytes
        and abs(memory_bytes / catalog.devices[shape.device].memory_bytes - 1) < _NEAR
    })  # fmt: skip


def _alike(reading: Reading, devices: Iterator[Device] | list[Device]) -> Counter[tuple[str, float | None]]:
    """How many there are of each name and memory, each counted once."""
    found: Counter[tuple[str, float | None]] = Counter()
    seen: set[str] = set()
    for place, (key, name, memory_bytes) in enumerate(devices, start=1):
        if key in seen:
            reading.skipped.add("a device that stands above: another sample of it", place)
        elif len(seen) < _MOST_DEVICES:
            seen.add(key)
            found[_without_letter(name), memory_bytes] += 1
            reading.taken += 1
    return found


def _told(reading: Reading, source: Source, nodes: list[Node], hint: str) -> Reading:
    if not nodes:
        raise refused(source, "nothing-taken", f"no accelerator of {source.name} could be taken", hint)
    told_of(reading, nodes)
    return reading


def recognise_neuron(source: Source) -> Match:
    """The table of neuron-ls with the type of its machine above, or its JSON."""
    head = source.head_text
    if not source.is_text:
        return NOTHING
    if head.lstrip()[:1] in ("[", "{"):
        keys = head_keys(source)
        return fit({each: each in keys for each in ("neuron_device", "nc_count", "memory_size")}, tool="neuron-ls",
                   ceiling=0.97)  # fmt: skip
    rows = any(map(_NEURON.match, source.first_lines))
    return fit({"a table of NEURON": "NEURON" in head and rows, "DEVICE, CORES, MEMORY": "CORES" in head and rows},
               tool="neuron-ls", ceiling=0.97)  # fmt: skip


def read_neuron(source: Source, asked: Asked) -> Reading:
    """Devices of each file, which is a machine."""
    reading = Reading(kind="neuron-ls", title="accelerators of a machine", source=source.name, tool="neuron-ls",
                      of="accelerators")  # fmt: skip
    nodes = []
    for part in source.parts:
        devices, machine = _neuron_devices(part, reading)
        for (_, memory_bytes), count in _alike(reading, devices).items():
            line = _LINES.get(machine[:3], "")  # trn1.32xlarge
            kinds = [kind for kind in _of_neuron(count, memory_bytes) if kind.startswith(line)]
            if len(kinds) > 1:
                reading.note(f"{count} devices of {(memory_bytes or 0) / 2**30:.0f} GiB are {' or '.join(kinds)}: its "
                             "JSON does not tell which, its table does (instance-type)")  # fmt: skip
            name = kinds[0] if len(kinds) == 1 else ""
            nodes.append(Node(name=PurePath(part.name).name, device=name, devices=count, memory_bytes=memory_bytes,
                              machine=machine))  # fmt: skip
    return _told(reading, source, nodes, "neuron-ls > FILE")


def _reader(kind: str, tool: str, devices: Callable[[Source, Reading], Iterator[Device]],
            hint: str) -> Callable[[Source, Asked], Reading]:  # fmt: skip
    """A reader of printed tables in which each device has a name."""

    def read(source: Source, asked: Asked) -> Reading:
        reading = Reading(kind=kind, title="accelerators of a machine", source=source.name, tool=tool,
                          of="accelerators")  # fmt: skip
        nodes = [Node(name=PurePath(part.name).name, device=name, devices=count, memory_bytes=memory_bytes)
                 for part in source.parts
                 for (name, memory_bytes), count in _alike(reading, devices(part, reading)).items()]  # fmt: skip
        return _told(reading, source, nodes, hint)

    return read


def recognise_npu(source: Source) -> Match:
    """The table that npu-smi info prints."""
    if not source.is_text:
        return NOTHING
    head = source.head_text
    version = re.search(r"npu-smi (\d[\w.]{0,20})", head)
    rows = any(map(_NPU.match, source.first_lines))
    return fit({"npu-smi": version is not None, "a table of NPU and name": rows and "NPU" in head},
               tool="npu-smi", version=version.group(1) if version else "", ceiling=0.98)  # fmt: skip


def recognise_hl(source: Source) -> Match:
    """The table that hl-smi prints."""
    if not source.is_text:
        return NOTHING
    head = source.head_text
    version = re.search(r"HL-SMI Version:\s*(\S{1,40})", head)
    rows = any(map(_AIP.match, source.first_lines))
    return fit({"HL-SMI": version is not None, "a table of AIP and name": rows, "Memory-Usage": "Memory-Usage" in head},
               tool="hl-smi", version=version.group(1) if version else "", ceiling=0.98)  # fmt: skip


KINDS = (
    Kind(name="neuron-ls", title="accelerators of a machine, of AWS",
         looks_for="the table of neuron-ls with NEURON DEVICE, CORES and MEMORY, or its JSON",
         recognise=recognise_neuron, read=read_neuron),
    Kind(name="npu-smi", title="accelerators of a machine, of Huawei",
         looks_for="the table that npu-smi info prints, with NPU, name and health",
         recognise=recognise_npu, read=_reader("npu-smi", "npu-smi", _npus, "npu-smi info > FILE")),
    Kind(name="hl-smi", title="accelerators of a machine, of Intel",
         looks_for="the table that hl-smi prints, with AIP and names such as HL-225",
         recognise=recognise_hl, read=_reader("hl-smi", "hl-smi", _aips, "hl-smi > FILE")),
)  # fmt: skip
