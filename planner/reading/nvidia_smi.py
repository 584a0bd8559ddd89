"""What nvidia-smi tells of a machine: as CSV of a query, as XML, as it is printed, its links; and gpustat."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from pathlib import PurePath
from typing import Any
from xml.parsers import expat

from planner.reading.columns import iso_seconds, plain
from planner.reading.inventory import Node, device_of, mebibytes, told_of
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, SURE, Asked, Kind, Match, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import printable, rows_of

_ROLES = {
    "name": ("name", "gpuname"),
    "memory": ("memorytotalmib", "memorytotal", "fbmemorytotal"),
    "uuid": ("uuid", "gpuuuid"),
    "bus": ("pcibusid", "gpubusid"),
    "index": ("index",),
    "mig": ("migmodecurrent",),
    "host": ("hostname", "host", "node", "nodename"),
    "time": ("timestamp",),
}
_OTHERS = re.compile(r"^(memory|utilization|temperature|power|clocks|pci|pstate|fan|ecc|mig|driver|vbios|compute)")
_PLAIN = {"driver_version", "vbios_version", "compute_cap", "pstate"}  # names of a query without a dot
_DEEP, _LARGEST_BYTES, _MOST_GPUS, _LONGEST_TEXT = 40, 64_000_000, 100_000, 400
_CARD = re.compile(r"^\|\s+(\d{1,4})\s+(\S.{0,60}?)\s+(?:On|Off|N/A|Enabled|Disabled)\s*\|")
_MAKER = re.compile(r"(?:NVIDIA|Tesla|GeForce|Quadro) ")
_MEMORY = re.compile(r"\|\s*\d+MiB\s*/\s*(\d+)MiB\s*\|")

_QUERY = "nvidia-smi --query-gpu=index,uuid,name,memory.total --format=csv"
_ONE_QUERY_S = 0.9  # that it takes at most; samples of a loop are a second apart

Gpu = dict[str, str]  # name, memory, mig


def _parts(source: Source) -> Iterator[tuple[str, Source]]:
    """Each file is one machine."""
    for path in source.paths:
        yield PurePath(str(path)).name, source if len(source.paths) == 1 else Source(path)


def _reading(source: Source, form: str) -> Reading:
    return Reading(kind=f"nvidia-smi{form}", title="accelerators of a machine", source=source.name, tool="nvidia-smi",
                   of="accelerators")  # fmt: skip


def _by_host(gpus: list[Gpu]) -> dict[str, list[Gpu]]:
    """Devices by the machine that stands beside them, where one does."""
    found: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        found.setdefault(gpu.get("host", ""), []).append(gpu)
    return found


def _told(source: Source, reading: Reading, machines: list[tuple[str, list[Gpu]]]) -> Reading:
    nodes = []
    cut = 0
    for name, gpus in ((f"{name} {host}".strip(), part) for name, all_of in machines
                       for host, part in _by_host(all_of).items()):  # fmt: skip
        alike: dict[tuple[str, float | None], int] = {}
        # one that fails and tells no memory is as the others
        sizes = {gpu["name"]: size for gpu in gpus if (size := mebibytes(gpu.get("memory", "")))}
        for gpu in gpus:
            key = (gpu["name"], mebibytes(gpu.get("memory", "")) or sizes.get(gpu["name"]))
            alike[key] = alike.get(key, 0) + 1
            cut += gpu.get("mig", "").lower() == "enabled"
        if len(alike) > 1:
            reading.note(f"{printable(name)} holds {len(alike)} kinds of devices: each counts as a machine of its own")
        nodes += [Node(name=name, device=device, devices=count, memory_bytes=memory_bytes)
                  for (device, memory_bytes), count in alike.items()]  # fmt: skip
    if not nodes:
        raise refused(source, "nothing-taken", f"no accelerator of {source.name} could be taken", _QUERY)
    if cut:
        reading.note(f"{cut} of the devices are cut into MIG slices: they count as whole devices")
    told_of(reading, nodes)
    return reading


def _seconds(text: str) -> float | None:
    try:
        return iso_seconds(text, UTC)
    except (ValueError, OverflowError):
        return None


def _keep(reading: Reading, gpus: dict[Any, Gpu], key: object, gpu: Gpu, number: int) -> bool:
    """Whether a device is a further one; another sample of one, and one too many, are counted as skipped."""
    if key in gpus:
        reading.skipped.add("a device that stands above: another sample of it", number)
    elif len(gpus) >= _MOST_GPUS:
        reading.skipped.add(f"more than {_MOST_GPUS:,} devices", number)
    else:
        gpus[key] = gpu
        reading.taken += 1
        return True
    return False


def recognise_csv(source: Source) -> Match:
    """Columns of --query-gpu: a name, and figures as only nvidia-smi names them."""
    names, _ = header_of(source)
    lower = [name.lower() for name in names]
    figures = [name for name in lower if _OTHERS.match(name) and ("." in name or name in _PLAIN)]
    marks = {
        "name of the device": bool({plain(name) for name in lower} & set(_ROLES["name"])),
        "memory.total, uuid or another figure of --query-gpu": bool(figures) or "uuid" in lower,
        "two figures of --query-gpu": len(figures) + len({"uuid", "index", "count"} & set(lower)) >= 2,
    }
    return fit(marks, tool="nvidia-smi", ceiling=0.97)


def read_csv(source: Source, asked: Asked) -> Reading:
    """Distinct devices of each file; a row of one that was seen already is a further sample of it."""
    reading = _reading(source, "")
    machines = []
    for name, part in _parts(source):
        gpus: dict[str, Gpu] = {}
        times: list[float] = []  # of rows that do not tell which device it is
        for line, row in rows_of(part, _ROLES, ("name", "memory"), reading.skipped):
            if not row.get("name") or row["name"].startswith("["):
                reading.skipped.add("no name of a device", line)
                continue
            key = row.get("uuid") or row.get("bus") or row.get("index") or f"line {line}"
            if key.startswith("line ") and (time := _seconds(row.get("time", ""))) is not None:
                times.append(time)
                if abs(time - times[0]) >= _ONE_QUERY_S:
                    message = "rows of several times do not tell which device they are of"
                    raise refused(part, "devices-not-apart", message, f"{_QUERY}; or give the rows of one time", line)
            key = f"{row.get('host', '')} {key}".strip()
            _keep(reading, gpus, key, row, line)
        machines.append((name, list(gpus.values())))
        if any(re.search(r"(?:^| )line ", key) for key in gpus):
            reading.note("rows have no uuid, bus id or index: each counts as a device of its own")
    return _told(source, reading, machines)


def recognise_xml(source: Source) -> Match:
    """The root of nvidia-smi -q -x."""
    if not source.head_text.lstrip().startswith("<"):
        return NOTHING
    marks = {"<nvidia_smi_log>": "<nvidia_smi_log" in source.head_text, "<gpu id=": "<gpu id" in source.head_text}
    return fit(marks, tool="nvidia-smi -q -x")


class _Refused(Exception):
    """XML that is not read."""


class _Gpus:
    """Devices of an XML document as it goes by; nothing is kept of it but them, and no entity is followed."""

    _WANTED = (("product_name", "name"), ("fb_memory_usage/total", "memory"), ("mig_mode/current_mig", "mig"))

    def __init__(self) -> None:
        self.found: list[Gpu] = []
        self.versions: dict[str, str] = {}
        self.half = False
        self._path: list[str] = []
        self._text = ""
        self._wanted = {f"nvidia_smi_log/gpu/{path}": name for path, name in self._WANTED}
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._more
        self.parser.EntityDeclHandler = self._entity
        self.parser.ExternalEntityRefHandler = self._entity

    def _entity(self, *_: Any) -> int:
        raise _Refused("it declares entities, which no nvidia-smi does")

    def _begin(self, tag: str, _: Any) -> None:
        if len(self._path) >= _DEEP:
            raise _Refused(f"it is nested more than {_DEEP} deep")
        self._path.append(tag)
        self._text = ""
        if self._path == ["nvidia_smi_log", "gpu"]:
            if len(self.found) >= _MOST_GPUS:
                raise _Refused(f"it has more than {_MOST_GPUS:,} devices")
            self.found.append({"name": ""})
            self.half = True

    def _more(self, text: str) -> None:
        self._text = (self._text + text)[:_LONGEST_TEXT]

    def _end(self, tag: str) -> None:
        path = "/".join(self._path)
        if path in self._wanted and self.found:
            self.found[-1][self._wanted[path]] = self._text.strip()
        elif path in ("nvidia_smi_log/driver_version", "nvidia_smi_log/cuda_version"):
            self.versions[tag] = printable(self._text.strip(), 40)
        elif path == "nvidia_smi_log/gpu":
            self.half = False
        self._path.pop()
        self._text = ""


def read_xml(source: Source, asked: Asked) -> Reading:
    """Devices that stand whole in the document; what ends early is taken as far as it goes."""
    reading = _reading(source, "-xml")
    machines = []
    for name, part in _parts(source):
        gpus = _Gpus()
        taken = 0
        early = ""
        try:
            for block in part.blocks():
                taken += len(block)
                if taken > _LARGEST_BYTES:
                    raise refused(part, "too-large", f"{part.name} has more than {_LARGEST_BYTES:,} bytes")
                gpus.parser.Parse(block, False)
            gpus.parser.Parse(b"", True)
        except _Refused as error:
            raise refused(part, "bad-xml", f"{part.name} is not read: {error}", "nvidia-smi -q -x > FILE") from None
        except (expat.ExpatError, ValueError) as error:
            early = str(error)[:200]
        if early:
            reading.note(f"{printable(part.name)} is no whole XML ({early}): devices before that place were taken")
        whole = gpus.found[:-1] if gpus.half else gpus.found
        if gpus.half:
            reading.skipped.add("a device whose entry ends early", gpus.parser.CurrentLineNumber)
        named = [gpu for gpu in whole if gpu["name"]]
        if len(named) < len(whole):
            reading.skipped.add("no name of a device", 1, len(whole) - len(named))
        reading.taken += len(named)
        reading.understood.update(gpus.versions)
        machines.append((name, named))
    return _told(source, reading, machines)


def recognise_printed(source: Source) -> Match:
    """The table that nvidia-smi prints."""
    text = source.head_text
    marks = {"NVIDIA-SMI": bool(re.search(r"\|\s*NVIDIA-SMI \d", text)), "a table of GPU and name":
             bool(re.search(r"\|\s*GPU\s+(?:Name|Fan)", text)), "Memory-Usage": "Memory-Usage" in text}  # fmt: skip
    version = re.search(r"NVIDIA-SMI (\d[\d.]{0,20})", text)
    return fit(
        marks,
        tool="nvidia-smi, printed",
        version=version.group(1) if version else "",
        ceiling=1.0 if "NVIDIA-SMI" in text[:2000] else SURE,
    )


def read_printed(source: Source, asked: Asked) -> Reading:
    """Devices by their number; names that are cut short in print are compared by their beginning."""
    reading = _reading(source, "-printed")
    machines = []
    for name, part in _parts(source):
        gpus: dict[str, Gpu] = {}
        last: Gpu | None = None
        for number, line in enumerate(part.lines(), start=1):
            card = _CARD.match(line[:200])
            if card:
                gpu = {"name": card.group(2).rstrip(". ")}
                last = gpu if _keep(reading, gpus, card.group(1), gpu, number) else None
            elif last is not None:
                found = _MEMORY.search(line[:200])
                if found and "memory" not in last:
                    last["memory"] = f"{found.group(1)} MiB"
                elif re.search(r"\|\s*Enabled\s*\|\s*$", line[:200]):
                    last["mig"] = "enabled"
        machines.append((name, list(gpus.values())))
    return _told(source, reading, machines)


# without a first line of names: nvidia-smi -L, and --format=csv,noheader

_LISTED = re.compile(r"^(?:([\w.-]{1,200}):\s+)?GPU (\d{1,4}): (.{1,100}?) \(UUID: ([\w-]{1,80})\)\s*$")
_SIZE = re.compile(r"\d{3,7} MiB")
_ON_BUS = re.compile(
    r"[0-9a-f:]{5,12}\.\d (?:3D|VGA|Display)[^:]*: NVIDIA Corporation [^\[]*\[([^\]]{1,80})\]"
)  # lspci
_UNITLESS = re.compile(r"\d{4,6}")  # of memory in MiB, with nounits


def _bare(line: str) -> Gpu | None:
    """A device of a line: as -L lists it, or a name between other cells, with the first memory that stands there."""
    listed = _LISTED.match(line[:400])
    if listed:
        return {"host": listed.group(1) or "", "name": listed.group(3), "uuid": listed.group(4)}
    if bus := _ON_BUS.match(line[:400]):
        return {"name": bus.group(1), "uuid": "0000" + line.split(" ")[0]}
    cells = [cell.strip() for cell in line[:2000].split(",")]
    memory = next((cell for cell in cells if _SIZE.fullmatch(cell)), "")
    uuid = next((cell for cell in cells if cell.startswith(("GPU-", "0000"))), "")
    named = next((cell for cell in cells if _MAKER.match(cell)), "")
    if not memory and not uuid and not named:  # looked at first: comparing names with the catalog's takes longer
        return None
    name = named or next((cell for cell in cells if device_of(cell)), "")
    if not name:
        return None
    if not memory:  # a clock or a power may look like memory: only what fits the device is it
        memory = next((cell for cell in cells if _UNITLESS.fullmatch(cell) and device_of(name, mebibytes(cell))), "")
    if not memory and not uuid and not device_of(name):
        return None
    return {"name": name, "memory": memory, "uuid": uuid or next((cell for cell in cells if cell.isdigit()), "")}


def recognise_bare(source: Source) -> Match:
    """Lines that each name a device and its memory or uuid, with no names above."""
    lines = [line for line in source.first_lines[:100] if line.strip() and not line.startswith("  MIG")]
    found = [
        gpu
        for line in lines
        if (gpu := _bare(line))
        and (gpu.get("memory") or gpu["uuid"].startswith(("GPU-", "0000")) or device_of(line.strip()))
    ]
    share = len(found) / max(len(lines), 1)
    return Match(score=0.9 * share if lines and source.is_text else 0.0, tool="nvidia-smi",
                 found=("names of devices",) if found else (),
                 missing=() if found else ("lines as GPU 0: NVIDIA … (UUID: …), or a name and MiB",))  # fmt: skip


def read_bare(source: Source, asked: Asked) -> Reading:
    """Distinct devices of each file."""
    reading = _reading(source, "-bare")
    machines = []
    for name, part in _parts(source):
        gpus: dict[str, Gpu] = {}
        for number, line in enumerate(part.lines(), start=1):
            if not line.strip():
                continue
            gpu = _bare(line)
            key = gpu["uuid"] or f"line {number}" if gpu else ""
            if line.startswith("  MIG"):
                reading.skipped.add("a MIG slice of the device above", number)
            elif gpu is None:
                reading.skipped.add("no name of a device", number)
            else:
                _keep(reading, gpus, key, gpu, number)
        machines.append((name, list(gpus.values())))
    return _told(source, reading, machines)


# the text of nvidia-smi -q

_DEVICE = re.compile(r"GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s*$")
_DETAIL = re.compile(r"( *)([^:]{1,60}?)\s*(?:: (.{0,200}))?$")
_DETAILS = {
    (None, "Product Name"): "name", (None, "GPU UUID"): "uuid", ("FB Memory Usage", "Total"): "memory",
    ("MIG Mode", "Current"): "mig",
}  # fmt: skip


def recognise_queried(source: Source) -> Match:
    """The heading of nvidia-smi -q, and devices by their bus."""
    head = source.head_text
    marks = {"NVSMI LOG": "NVSMI LOG" in head, "Attached GPUs": "Attached GPUs" in head,
             "GPU with its bus": any(map(_DEVICE.match, source.first_lines))}  # fmt: skip
    return fit(marks, tool="nvidia-smi -q", ceiling=1.0 if "NVSMI LOG" in head[:2000] else SURE)


def read_queried(source: Source, asked: Asked) -> Reading:
    """Devices, each with what stands below its line."""
    reading = _reading(source, "-queried")
    machines = []
    for name, part in _parts(source):
        gpus: list[Gpu] = []
        seen: set[str] = set()
        group = ""
        for number, line in enumerate(part.lines(), start=1):
            found = _DETAIL.match(line[:400])
            if _DEVICE.match(line):
                gpus.append({"bus": line.strip(), "line": str(number)})
            elif gpus and found:
                indent, key, value = found.groups()
                group = key if value is None else group if len(indent) > 4 else ""
                role = _DETAILS.get((group or None, key))
                if role and value is not None:
                    gpus[-1].setdefault(role, value.strip())
        taken = []
        for gpu in gpus[:_MOST_GPUS]:
            if not gpu.get("name"):
                reading.skipped.add("no name of a device", int(gpu["line"]))
            elif gpu["bus"] in seen:
                reading.skipped.add("a device that stands above: another sample of it", int(gpu["line"]))
            else:
                seen.add(gpu["bus"])
                taken.append(gpu)
        reading.taken += len(taken)
        machines.append((name, taken))
    return _told(source, reading, machines)


# gpustat, which asks the same driver

_STATED = re.compile(r"\[(\d{1,4})\] (.{1,100}?) *\|.{0,200}?\d+ */ *(\d+) MB(?: |$|\|)")
_HEADED = re.compile(r"(\S{1,200}) +\w{3} +\w{3} +\d+ +\d+:\d+:\d+ +\d{4}(?: |$)")
_COLOURS = re.compile(r"\x1b\[[0-9;]{0,20}m")


def recognise_gpustat(source: Source) -> Match:
    """Lines of gpustat, or its JSON."""
    if source.head_text.lstrip().startswith("{"):
        keys = head_keys(source)
        return fit({each: each in keys for each in ("hostname", "query_time", "gpus", "memory.total")}, tool="gpustat")
    lines = [_COLOURS.sub("", line) for line in source.first_lines[:50] if line.strip()]
    devices, heads = sum(map(bool, map(_STATED.match, lines))), sum(map(bool, map(_HEADED.match, lines)))
    share = (devices + heads) / max(len(lines), 1) if devices else 0.0
    return Match(score=0.95 * share, tool="gpustat", found=("lines of devices",) if devices else (),
                 missing=() if devices else ("lines as [0] NVIDIA … | 35'C, 0 % | 4 / 81559 MB |",))  # fmt: skip


def read_gpustat(source: Source, asked: Asked) -> Reading:
    """Devices of each machine; the same machine again is a further sample of it."""
    reading = Reading(kind="gpustat", title="accelerators of machines, by gpustat", source=source.name, tool="gpustat",
                      of="accelerators")  # fmt: skip
    gpus: dict[tuple[str, str], Gpu] = {}
    as_json = source.head_text.lstrip().startswith("{")
    for number, gpu in _gpustat_json(source) if as_json else _gpustat_lines(source):
        key = (gpu["host"], gpu["index"])
        if not gpu["name"]:
            reading.skipped.add("no name of a device", number)
        else:
            _keep(reading, gpus, key, gpu, number)
    return _told(source, reading, [("", list(gpus.values()))])


def _gpustat_lines(source: Source) -> Iterator[tuple[int, Gpu]]:
    host = ""
    for number, line in enumerate(source.lines(), start=1):
        line = _COLOURS.sub("", line[:1000])
        if found := _STATED.match(line):
            yield number, {"host": host, "index": found[1], "name": found[2], "memory": f"{found[3]} MiB"}
        elif found := _HEADED.match(line):
            host = found[1]
        elif line.strip():
            yield number, {"host": host, "index": "", "name": ""}


def _gpustat_json(source: Source) -> Iterator[tuple[int, Gpu]]:
    number = 0
    for part in source.parts:
        whole = document_of(part)
        listed = whole.get("gpus") if isinstance(whole, dict) else None
        for gpu in listed if isinstance(listed, list) else ():
            number += 1
            gpu = gpu if isinstance(gpu, dict) else {}
            name, memory = gpu.get("name"), gpu.get("memory.total")
            yield number, {"host": str(whole.get("hostname") or ""), "index": str(gpu.get("index")),
                           "name": name if isinstance(name, str) else "", "memory": f"{memory} MiB"}  # fmt: skip


# nvidia-smi dmon

_FIGURES = {
    "pwr": ("power", "W"), "sm": ("busy", "%"), "mem": ("memory busy", "%"), "fb": ("memory in use", "MiB"),
    "gtemp": ("temperature", "°C"),
}  # fmt: skip


def _dmon_names(line: str) -> list[str]:
    """Columns of a line of names, as `# gpu pwr gtemp …`, with the date and time before them or not; else none."""
    names = [name.lower() for name in re.split(r"[\s,]+", line[:1000].lstrip("# ").strip())]
    return names if line.lstrip().startswith("#") and "gpu" in names[:3] and len(set(names) & set(_FIGURES)) > 1 else []


def recognise_dmon(source: Source) -> Match:
    """A line of names behind a #, and one of units below it."""
    lines = source.first_lines[:5] if source.is_text else []
    named = next((at for at, line in enumerate(lines) if _dmon_names(line)), None)
    units = named is not None and any(re.match(r"\s*#.*\bIdx\b", line[:1000]) for line in lines[named + 1 :])
    return fit({"# gpu with pwr, sm, mem or fb": named is not None, "# Idx below it": units}, tool="nvidia-smi dmon",
               ceiling=0.96)  # fmt: skip


def read_dmon(source: Source, asked: Asked) -> Reading:
    """Means over the samples of all devices; it names none of them."""
    reading = Reading(kind="nvidia-smi-dmon", title="samples of accelerators", source=source.name,
                      tool="nvidia-smi dmon", of="samples")  # fmt: skip
    names: list[str] = []
    devices: set[str] = set()
    sums: dict[str, list[float]] = {}  # figure -> how many, their sum, the largest
    for number, line in enumerate(source.lines(), start=1):
        if line.lstrip().startswith("#") or not line.strip():
            names = _dmon_names(line) or names
            continue
        cells = re.split(r"\s*,\s*|\s+", line[:1000].strip())
        row = dict(zip(names, cells)) if len(cells) == len(names) else {}
        if not row.get("gpu", "").isdecimal() or (row["gpu"] not in devices and len(devices) >= _MOST_GPUS):
            reading.skipped.add("no device, or more or fewer cells than columns", number)
            continue
        reading.taken += 1
        devices.add(row["gpu"])
        for name in _FIGURES.keys() & row.keys():
            if (value := number_of(row[name])) is not None:  # "-" where a device does not tell it
                count, total, most = sums.get(name, [0.0, 0.0, value])
                sums[name] = [count + 1, total + value, max(most, value)]
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no sample of {source.name} could be taken", "nvidia-smi dmon -s pum")
    reading.show("accelerators", len(devices))
    for name, (label, unit) in _FIGURES.items():
        if name in sums:
            count, total, most = sums[name]
            reading.show(f"{label}, mean", total / count, unit)
            reading.show(f"{label}, most", most, unit)
    reading.note("It names no devices: nvidia-smi -L does, which becomes hardware.owned.")
    return reading


# nvidia-smi topo -m

_LINKS = re.compile(r"NV(\d{1,3})|(PIX|PXB|PHB|NODE|SYS|SOC)")


def recognise_topo(source: Source) -> Match:
    """The matrix of links between devices."""
    head = source.head_text[:20_000]
    return fit({"GPU0 above": bool(re.search(r"^[ \t]*(?:\x1b\[\d{1,2}m)?GPU0\b", head, re.M)),
                "GPU0 … X beside": bool(re.search(r"^GPU0\s.*\bX\b", head, re.M)),
                "CPU Affinity or the legend": "CPU Affinity" in head or "X    = Self" in head},
               tool="nvidia-smi topo -m", ceiling=0.96)  # fmt: skip


def read_topo(source: Source, asked: Asked) -> Reading:
    """Links between the devices of a machine; it names none of them."""
    reading = Reading(kind="nvidia-smi-topo", title="links between accelerators of a machine", source=source.name,
                      tool="nvidia-smi topo -m", of="accelerators")  # fmt: skip
    rows: dict[str, list[str]] = {}
    columns: list[str] = []
    for number, line in enumerate(source.lines(), start=1):
        words = re.sub(r"\x1b\[[0-9;]*m", "", line[:20_000]).split()
        if words[:1] == ["GPU0"] and "X" not in words:
            columns = list(itertools.takewhile(lambda word: re.fullmatch(r"(?:GPU|NIC|mlx\w+_)\d+", word), words))
        elif columns and words and re.fullmatch(r"GPU\d{1,4}", words[0]):
            if words[0] in rows or len(words) <= len(columns):
                reading.skipped.add("a row that stands above, or ends early", number)
                continue
            rows[words[0]] = words[1 : len(columns) + 1]
    reading.taken = len(rows)
    if not rows:
        raise refused(source, "nothing-taken", f"no row of {source.name} could be taken", "nvidia-smi topo -m")
    links = Counter(rows[one][columns.index(other)] for one, other in itertools.combinations(rows, 2)
                    if other in columns)  # fmt: skip
    reading.show("accelerators", len(rows))
    reading.show("network cards beside them", sum(not name.startswith("GPU") for name in columns) or None)
    for link, count in links.most_common(12):
        found = _LINKS.fullmatch(link)
        if found is None:
            reading.skipped.add("a link of an unknown name", 1, count)
        else:
            said = f"by {found[1]} NVLinks" if found[1] else f"over PCIe ({link})"
            reading.show(f"pairs joined {said}", count)
    if links and all(link.startswith("NV") for link in links):
        reading.note("Every pair is joined by NVLink: these are devices of an SXM board, or pairs with a bridge.")
    elif any(link.startswith("NV") for link in links):
        reading.note("Some pairs are joined by NVLink, others are not: tensor ranks across the others go over PCIe.")
    reading.note("It names no devices: nvidia-smi -L does, which becomes hardware.owned.")
    return reading


KINDS = (
    Kind(name="nvidia-smi", title="accelerators of a machine",
         looks_for="a first line of name, memory.total, uuid … (nvidia-smi --query-gpu --format=csv)",
         recognise=recognise_csv, read=read_csv),
    Kind(name="nvidia-smi-xml", title="accelerators of a machine, XML", looks_for="<nvidia_smi_log> (nvidia-smi -q -x)",
         recognise=recognise_xml, read=read_xml),
    Kind(name="nvidia-smi-printed", title="accelerators of a machine, printed",
         looks_for="the table that nvidia-smi prints", recognise=recognise_printed, read=read_printed),
    Kind(name="nvidia-smi-queried", title="accelerators of a machine, one by one",
         looks_for="the text of nvidia-smi -q", recognise=recognise_queried, read=read_queried),
    Kind(name="nvidia-smi-bare", title="accelerators of a machine, without names of columns",
         looks_for="nvidia-smi -L, or lines of a name and MiB (--format=csv,noheader)",
         recognise=recognise_bare, read=read_bare),
    Kind(name="gpustat", title="accelerators of machines, by gpustat",
         looks_for="lines as [0] NVIDIA … | 35'C, 0 % | 4 / 81559 MB |, or its JSON",
         recognise=recognise_gpustat, read=read_gpustat),
    Kind(name="nvidia-smi-dmon", title="samples of accelerators",
         looks_for="lines below # gpu pwr sm mem … and # Idx W % … (nvidia-smi dmon)",
         recognise=recognise_dmon, read=read_dmon),
    Kind(name="nvidia-smi-topo", title="links between accelerators of a machine",
         looks_for="the matrix of nvidia-smi topo -m", recognise=recognise_topo, read=read_topo),
)  # fmt: skip
