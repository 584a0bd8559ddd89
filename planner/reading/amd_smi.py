"""What amd-smi and rocm-smi tell of a machine: as JSON, as CSV or as text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from planner.reading.inventory import Node, mebibytes, told_of
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, rows_of

_NAMES = ("marketname", "cardseries", "devicename", "productname")
_ROLES = {
    "gpu": ("gpu", "device", "card"),
    "name": _NAMES,
    "bytes": ("vramtotalmemoryb",),
    "megabytes": ("vramsize", "size", "vramsizemb", "totalvram"),
}
_MOST_GPUS = 100_000
_PRINTED = re.compile(r"GPU\[(\d{1,4})\]\s*:\s*([^:]{1,60}?)\s*:\s*(.{1,200})$")
_STATIC = re.compile(r"\s*(GPU|MARKET_NAME|SIZE)\s*:\s*(.{1,200})$")
_BOXED = re.compile(r"\|\s*[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d\s+(\S[^|]{1,60}?)\s*\|")
_BOXED_MB = re.compile(r"\|[^|]*\s\d+/(\d+) MB\s*\|\s*$")
_TOOLS = re.compile(r"ROCm System Management Interface|VRAM Total Memory \(B\)|^GPU +POWER +", re.M)  # without names
_HINT = "amd-smi static --asic --vram --json > FILE, or rocm-smi --showproductname --showmeminfo vram --json > FILE"

Gpu = tuple[str, str, float | None]  # number, name, memory [B]


def _json_gpus(part: Source) -> Iterator[Gpu]:
    whole = document_of(part)
    whole = whole.get("gpu_data", whole) if isinstance(whole, dict) else whole
    cards = whole.items() if isinstance(whole, dict) else enumerate(whole if isinstance(whole, list) else ())
    for key, card in cards:
        if not isinstance(card, dict) or key == "system":
            continue
        parts: dict[str, Any] = dict(card)
        for below in ("asic", "board"):
            parts |= card[below] if isinstance(card.get(below), dict) else {}
        places = places_of(list(parts), {"name": _NAMES, "bytes": _ROLES["bytes"]})
        values = [str(value) for value in parts.values()]
        vram = card.get("vram")
        size = vram.get("size") if isinstance(vram, dict) else None
        memory = f"{size.get('value')} {size.get('unit')}" if isinstance(size, dict) else str(size or "")
        held = number_of(values[places["bytes"]]) if "bytes" in places else _mebibytes(memory)
        yield str(card.get("gpu", key)), values[places["name"]] if "name" in places else "", held


def _mebibytes(text: str) -> float | None:
    """Memory as amd-smi writes it: its MB are MiB.  [B]"""
    return mebibytes(text.replace("MB", "MiB").replace("GB", "GiB"))


def _csv_gpus(part: Source, reading: Reading) -> Iterator[Gpu]:
    for _, row in rows_of(part, _ROLES, ("gpu", "name"), reading.skipped):
        held = number_of(row.get("bytes", "")) or _mebibytes(row.get("megabytes", ""))
        yield row["gpu"], row["name"], held


def _text_gpus(part: Source) -> Iterator[Gpu]:
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
            role = next(iter(places_of([key], _ROLES)), "")
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


def recognise(source: Source) -> Match:
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
        if _TOOLS.search(head) and not names:
            return Match(score=0.7, found=("memory of devices",), missing=("their names",), tool="rocm-smi")
        return fit(marks, tool="amd-smi" if "market_name" in keys else "rocm-smi", ceiling=0.97)
    columns = header_of(source)[0]
    places = places_of(columns, _ROLES)
    if "gpu" in places and "bytes" in places and "name" not in places:
        return Match(score=0.7, found=("memory of devices",), missing=("their names",), tool="rocm-smi")
    if "gpu" in places and "name" in places:
        return fit({"a device": True, "its name": True, "more of amd-smi or rocm-smi": len(columns) > 3},
                   tool="amd-smi or rocm-smi", ceiling=0.95)  # fmt: skip
    lines = source.first_lines
    if any(map(_BOXED.match, lines)) and "AMD-SMI" in head:
        return Match(score=0.95, found=("a table of devices",), tool="amd-smi")
    printed = any((found := _PRINTED.match(line[:400])) and "name" in places_of([found.group(2)], _ROLES)
                  for line in lines)  # fmt: skip
    return Match(
        score=0.95 if printed or ("MARKET_NAME:" in head and "GPU:" in head) else 0.7 if _TOOLS.search(head) else 0.0,
        tool="rocm-smi" if printed else "amd-smi",
        missing=("names of devices, as amd-smi static or rocm-smi give them",),
    )


def read(source: Source, asked: Asked) -> Reading:
    """Devices of each file, which is a machine."""
    reading = Reading(kind="amd-smi", title="accelerators of a machine", source=source.name, of="accelerators")
    nodes: list[Node] = []
    for part in source.parts:
        if part.head_text.lstrip()[:1] in ("{", "["):
            gpus = _json_gpus(part)
        else:
            gpus = _csv_gpus(part, reading) if "name" in places_of(header_of(part)[0], _ROLES) else _text_gpus(part)
        alike: Counter[tuple[str, float | None]] = Counter()
        seen: set[str] = set()
        for place, (number, name, memory_bytes) in enumerate(gpus, start=1):
            if not name or name.startswith("0x"):
                reading.skipped.add("no name of a device", place)
            elif number in seen:
                reading.skipped.add("a device that stands above: another sample of it", place)
            elif len(seen) < _MOST_GPUS:
                seen.add(number)
                alike[name[:200], memory_bytes] += 1
                reading.taken += 1
        nodes += [Node(name=PurePath(part.name).name, device=name, devices=count, memory_bytes=memory_bytes)
                  for (name, memory_bytes), count in alike.items()]  # fmt: skip
    if not nodes:
        raise refused(source, "nothing-taken", f"no accelerator of {source.name} could be taken", _HINT)
    told_of(reading, nodes)
    return reading


KINDS = (
    Kind(name="amd-smi", title="accelerators of a machine, of AMD",
         looks_for="devices as amd-smi static or rocm-smi --showproductname give them (JSON, CSV or text)",
         recognise=recognise, read=read),
)  # fmt: skip
