"""What amd-smi and rocm-smi, neuron-ls, npu-smi info and hl-smi tell of a machine.

Of AMD as JSON, as CSV or as text; of AWS Neuron, Huawei Ascend and Intel Gaudi as they print it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any

from planner.catalog.load import load_catalog
from planner.reading.inventory import Node, mebibytes, told_of
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, rows_of

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


_AMD_NAMES = ("marketname", "cardseries", "devicename", "productname")
_AMD_ROLES = {
    "gpu": ("gpu", "device", "card"),
    "name": _AMD_NAMES,
    "bytes": ("vramtotalmemoryb",),
    "megabytes": ("vramsize", "size", "vramsizemb", "totalvram"),
}
_PRINTED = re.compile(r"GPU\[(\d{1,4})\]\s*:\s*([^:]{1,60}?)\s*:\s*(.{1,200})$")
_STATIC = re.compile(r"\s*(GPU|MARKET_NAME|SIZE)\s*:\s*(.{1,200})$")
_BOXED = re.compile(r"\|\s*[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d\s+(\S[^|]{1,60}?)\s*\|")
_BOXED_MB = re.compile(r"\|[^|]*\s\d+/(\d+) MB\s*\|\s*$")
_AMD = re.compile(r"ROCm System Management Interface|VRAM Total Memory \(B\)|^GPU +POWER +", re.M)  # without names
_AMD_HINT = "amd-smi static --asic --vram --json > FILE, or rocm-smi --showproductname --showmeminfo vram --json > FILE"


def _amd_json(part: Source) -> Iterator[Device]:
    whole = document_of(part)
    whole = whole.get("gpu_data", whole) if isinstance(whole, dict) else whole
    cards = whole.items() if isinstance(whole, dict) else enumerate(whole if isinstance(whole, list) else ())
    for key, card in cards:
        if not isinstance(card, dict) or key == "system":
            continue
        parts: dict[str, Any] = dict(card)
        for below in ("asic", "board"):
            parts |= card[below] if isinstance(card.get(below), dict) else {}
        places = places_of(list(parts), {"name": _AMD_NAMES, "bytes": _AMD_ROLES["bytes"]})
        values = [str(value) for value in parts.values()]
        vram = card.get("vram")
        size = vram.get("size") if isinstance(vram, dict) else None
        memory = f"{size.get('value')} {size.get('unit')}" if isinstance(size, dict) else str(size or "")
        held = number_of(values[places["bytes"]]) if "bytes" in places else _mebibytes(memory)
        yield str(card.get("gpu", key)), values[places["name"]] if "name" in places else "", held


def _mebibytes(text: str) -> float | None:
    """Memory as amd-smi writes it: its MB are MiB.  [B]"""
    return mebibytes(text.replace("MB", "MiB").replace("GB", "GiB"))


def _amd_csv(part: Source, reading: Reading) -> Iterator[Device]:
    for _, row in rows_of(part, _AMD_ROLES, ("gpu", "name"), reading.skipped):
        held = number_of(row.get("bytes", "")) or _mebibytes(row.get("megabytes", ""))
        yield row["gpu"], row["name"], held


def _amd_text(part: Source) -> Iterator[Device]:
    gpus: dict[str, list[str]] = {}
    last = ""
    for line in part.lines():
        if boxed := _BOXED.match(line[:400]):
            last = str(len(gpus))
            gpus[last] = [boxed.group(1), ""]
        elif last and (shown := _BOXED_MB.search(line[:400])):
            gpus[last][1] = f"{shown.group(1)} MB"
        elif printed := _PRINTED.match(line[:400]):
            number, key, value = printed.groups()
            role = next(iter(places_of([key], _AMD_ROLES)), "")
            cells = gpus.setdefault(number, ["", ""])
            if role == "name":
                cells[0] = cells[0] or value.strip()
            elif role == "bytes":
                cells[1] = value.strip()
        elif static := _STATIC.match(line[:400]):
            key, value = static.groups()
            if key == "GPU":
                last = value.strip()
                gpus.setdefault(last, ["", ""])
            elif last:
                cells = gpus[last]
                cells[key == "SIZE"] = cells[key == "SIZE"] or value.strip()
    for number, (name, memory) in gpus.items():
        yield number, name, number_of(memory) if memory.isdecimal() and len(memory) > 7 else _mebibytes(memory)


def recognise_amd(source: Source) -> Match:
    """Names of AMD's devices as its two tools write them."""
    head = source.head_text
    if not source.is_text:
        return NOTHING
    if head.lstrip()[:1] in ("{", "["):
        keys = head_keys(source)
        names = {"market_name", "Card series", "Card Series", "Device Name", "Card model", "Card Model"} & keys
        marks = {
            "gpu or card0": "gpu" in keys or any(re.fullmatch(r"card\d+", key) for key in keys),
            "market_name or Card Series": bool(names),
        }
        if _AMD.search(head) and not names:
            return Match(score=0.7, found=("memory of devices",), missing=("their names",), tool="rocm-smi")
        return fit(marks, tool="amd-smi" if "market_name" in keys else "rocm-smi", ceiling=0.97)
    columns = header_of(source)[0]
    places = places_of(columns, _AMD_ROLES)
    if "gpu" in places and "bytes" in places and "name" not in places:
        return Match(score=0.7, found=("memory of devices",), missing=("their names",), tool="rocm-smi")
    if "gpu" in places and "name" in places:
        return fit({"a device": True, "its name": True, "more of amd-smi or rocm-smi": len(columns) > 3},
                   tool="amd-smi or rocm-smi", ceiling=0.95)  # fmt: skip
    lines = source.first_lines
    if any(map(_BOXED.match, lines)) and "AMD-SMI" in head:
        return Match(score=0.95, found=("a table of devices",), tool="amd-smi")
    printed = any((found := _PRINTED.match(line[:400])) and "name" in places_of([found.group(2)], _AMD_ROLES)
                  for line in lines)  # fmt: skip
    return Match(
        score=0.95 if printed or ("MARKET_NAME:" in head and "GPU:" in head) else 0.7 if _AMD.search(head) else 0.0,
        tool="rocm-smi" if printed else "amd-smi",
        missing=("names of devices, as amd-smi static or rocm-smi give them",),
    )


def read_amd(source: Source, asked: Asked) -> Reading:
    """Devices of each file, which is a machine."""
    reading = Reading(kind="amd-smi", title="accelerators of a machine", source=source.name, of="accelerators")
    nodes: list[Node] = []
    for part in source.parts:
        if part.head_text.lstrip()[:1] in ("{", "["):
            gpus = _amd_json(part)
        else:
            gpus = _amd_csv(part, reading) if "name" in places_of(header_of(part)[0], _AMD_ROLES) else _amd_text(part)
        alike: Counter[tuple[str, float | None]] = Counter()
        seen: set[str] = set()
        for place, (number, name, memory_bytes) in enumerate(gpus, start=1):
            if not name or name.startswith("0x"):
                reading.skipped.add("no name of a device", place)
            elif number in seen:
                reading.skipped.add("a device that stands above: another sample of it", place)
            elif len(seen) < _MOST_DEVICES:
                seen.add(number)
                alike[name[:200], memory_bytes] += 1
                reading.taken += 1
        nodes += [Node(name=PurePath(part.name).name, device=name, devices=count, memory_bytes=memory_bytes)
                  for (name, memory_bytes), count in alike.items()]  # fmt: skip
    if not nodes:
        raise refused(source, "nothing-taken", f"no accelerator of {source.name} could be taken", _AMD_HINT)
    told_of(reading, nodes)
    return reading


KINDS = (
    Kind(name="amd-smi", title="accelerators of a machine, of AMD",
         looks_for="devices as amd-smi static or rocm-smi --showproductname give them (JSON, CSV or text)",
         recognise=recognise_amd, read=read_amd),
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
