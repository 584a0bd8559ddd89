"""Machines and jobs of a cluster as they were found: which devices of the catalog, and what jobs held of them.

Machines go by the names of their devices, and say what is owned. Jobs are a history of demand: what they held, by day,
and how they came and waited.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np

from planner.carriers import dataclass
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog, Shape
from planner.reading.columns import plain
from planner.reading.kinds import Piece, Reading
from planner.reading.tables import csv_text, printable
from planner.spelling import closest

_MAKERS = ("nvidia", "tesla", "amd", "instinct", "geforce", "intel", "habana", "google")
_FILLERS = ("gpu", "gpus", "tensor", "core", "hbm2", "hbm2e", "hbm3", "hbm3e", "gddr6", "gddr6x", "oam")
_SUFFIXES = ("shared", "oam", "nvlink80gb", "nvlink", "sxm6ac", "mi300xhf", "podslice", "slice")
_NEAR = 0.88  # of a device's memory that its driver shows at least; a driver keeps some of it
_LABELLED = 1.08  # of it that a label in GB shows at most: 48 "GB" are 48 GiB there, and 48e9 bytes elsewhere
_LARGEST_BYTES = 1e13  # of a device: there is none of 10 TB
_FREE = "$0/h"
MOST_NODES = 100_000
_MOST_ENTRIES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One machine: its devices are all of one kind."""

    name: str
    device: str  # as the file names it
    devices: int
    memory_bytes: float | None = None  # of one device, as its driver shows it
    machine: str = ""  # type of the instance, where one is told
    linked: int = 0  # chips of the slice that it is part of, over several machines; 0: it is by itself


@lru_cache(maxsize=1)
def _names(catalog_digest: str) -> Mapping[str, str]:
    """Plain name -> id of the device, of every id and alias that ships."""
    catalog = load_catalog()
    return {plain(alias): device for alias, device in catalog.aliases.items()} | {
        plain(device): device for device in catalog.devices
    }


@lru_cache(maxsize=1)
def _by_words(catalog_digest: str) -> Mapping[frozenset[str], str]:
    """Words of a name, in whatever order -> id of the device; words that are of several devices are left out."""
    catalog = load_catalog()
    names = [*catalog.aliases.items(), *((device, device) for device in catalog.devices)]
    found: dict[frozenset[str], set[str]] = {}
    for name, device in names:
        found.setdefault(_words(name), set()).add(device)
    return {words: min(devices) for words, devices in found.items() if len(devices) == 1}


def _words(name: str) -> frozenset[str]:
    """What a name says, without its maker and its kind of memory: 8x H100 (80 GB SXM5) says h100, 80gb, sxm."""
    joined = re.sub(r"(\d) ?gi?b?\b", r"\1gb", re.sub(r"^\d+ ?x ", "", name[:200].lower().strip()))
    words = re.sub(r"\bsxm\d\b", "sxm", joined)
    return frozenset(re.findall(r"[a-z0-9+]+", words)) - {*_MAKERS, *_FILLERS}


def _in_other_words(catalog: Catalog, name: str, memory_bytes: float | None) -> str:
    """As `device_of`, of a name whose words stand in another order or tell its memory where no other has another."""
    known, words = _by_words(catalog.digest), _words(name)
    sizes = [word for word in words if re.fullmatch(r"\d{1,4}gb", word)]
    bare = words.difference(sizes)
    told_bytes = float(sizes[0][:-2]) * 2.0**30 if len(sizes) == 1 else None
    devices = [(known.get(words), memory_bytes), (known.get(bare), memory_bytes or told_bytes)]
    if not any(each.startswith(f"{word}-pcie") for word in bare for each in catalog.devices):  # it has one form
        devices.append((known.get(bare - {"pcie"}), memory_bytes or told_bytes))
    return next((device for device, size in devices if device and _fits(catalog, device, size)), "")


def device_of(name: str, memory_bytes: float | None = None) -> str:
    """Id in the catalog of a device that a driver, a label or a report names; "" for none that fits its memory."""
    catalog = load_catalog()
    known = _names(catalog.digest)
    for stem in _stems(name):
        sized = _gigabytes(memory_bytes)
        for each in (*(f"{stem}{size}gb" for size in sized), stem):
            found = known.get(each)
            if found is not None and _fits(catalog, found, memory_bytes):
                return found
    return _in_other_words(catalog, name, memory_bytes)


def _stems(name: str) -> list[str]:
    """Ways to write a name plainly: as it stands, then with less and less of its maker's words."""
    stem = plain(name[:200])
    found = [stem]
    for suffix in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    found.append(stem)
    for _ in _MAKERS:
        maker = next((maker for maker in _MAKERS if stem.startswith(maker)), "")
        if not maker:
            break
        stem = stem[len(maker) :]
        found.append(stem)
    return [each for each in dict.fromkeys(found) if each]


def _gigabytes(memory_bytes: float | None) -> list[int]:
    """What the label of a device of that memory may say, a few gigabytes up."""
    if not memory_bytes or memory_bytes > _LARGEST_BYTES:
        return []
    shown = memory_bytes / 2**30
    return [size for size in range(int(shown), int(shown / _NEAR) + 2) if size]


def _fits(catalog: Catalog, device: str, memory_bytes: float | None) -> bool:
    return not memory_bytes or _NEAR <= memory_bytes / catalog.devices[device].memory_bytes <= _LABELLED


def _of_machine(catalog: Catalog, machine: str) -> str:
    """The device of a type of machine that ships with one only; "" for any other."""
    devices = {shape.device for shape in catalog.shapes.values() if machine and shape.name.lower() == machine.lower()}
    return devices.pop() if len(devices) == 1 else ""


def _told_apart(catalog: Catalog, node: Node, device: str) -> str:
    """What else the bare name of a family may be, as H100 of SXM and of PCIe; "" where it is told apart."""
    family = device.split("-")[0]
    if plain(node.device) != family:
        return ""
    return " or ".join(each for each in sorted(catalog.devices) if each.split("-")[0] == family and each != device
                       and _fits(catalog, each, node.memory_bytes))  # fmt: skip


def _shape_of(catalog: Catalog, node: Node, device: str) -> Shape | None:
    """The shape of a machine: of its type where one is told and known, else the plainest with its devices."""
    wanted = [shape for shape in catalog.shapes.values() if shape.device == device and shape.devices == node.devices
              and shape.compute_share == 1.0]  # fmt: skip
    named = [shape for shape in wanted if node.machine and shape.name.lower() == node.machine.lower()]
    onprem = [shape for shape in wanted if shape.kind == "onprem"]
    return min(named or onprem or wanted, key=lambda shape: (len(shape.id), shape.id), default=None)


def machines_of(name: str, devices: int) -> tuple[str, int] | None:
    """Shape and count of the machines that hold so many devices in all; of a device's name the plainest full boxes.

    None where the catalog has no machine of that name, or none of which a whole number holds them.
    """
    catalog = load_catalog()
    named = catalog.shapes.get(name) or catalog.shapes.get(f"onprem/{name}")
    shapes = [named] if named else [one for one in catalog.shapes.values() if one.name.lower() == name.lower()]
    if not shapes:
        device = device_of(name)
        shapes = [one for one in catalog.shapes.values() if one.device == device and one.compute_share == 1.0]
    whole = [shape for shape in shapes if devices % shape.devices == 0]
    plainest = min(whole, key=lambda one: (one.kind != "onprem", -one.devices, len(one.id), one.id), default=None)
    if plainest is None:
        return None
    return name if named else plainest.id, devices // plainest.devices


def _nearest(catalog: Catalog, node: Node, device: str) -> str:
    """What of the catalog is nearest to a machine that is not in it."""
    if device:
        same = [shape for shape in catalog.shapes.values() if shape.device == device and shape.compute_share == 1.0]
        near = min(
            same, key=lambda each: (abs(each.devices - node.devices), each.kind != "onprem", each.id), default=None
        )
        return f"nearest: {near.id} with {near.devices} of them" if near else "no shape of the catalog has it"
    stems = _stems(node.device)
    near_names = [name for stem in reversed(stems) for name in closest(stem, _names(catalog.digest))]
    ids = list(dict.fromkeys(_names(catalog.digest)[name] for name in near_names))[:2]
    return f"nearest: {' or '.join(ids)}" if ids else "nothing in the catalog is near"


def told_of(reading: Reading, nodes: list[Node]) -> None:
    """Figures of what was found, and `hardware.owned` of what the catalog knows."""
    catalog = load_catalog()
    reading.show("nodes with accelerators", len(nodes))
    reading.show("accelerators", sum(node.devices for node in nodes))
    found: Counter[str] = Counter()
    owned: Counter[str] = Counter()
    for (device_name, devices, memory_bytes, machine, linked), count in sorted(_alike(nodes).items(), key=str):
        if linked > devices:
            parts = count
            count, rest = divmod(parts * devices, linked)
            if rest:
                reading.note(f"{parts} machines of {devices} chips are no whole number of slices of {linked}: "
                             f"{rest} chips are left out")  # fmt: skip
            if not count:
                continue
            devices, machine = linked, ""
        node = Node(name="", device=device_name, devices=devices, memory_bytes=memory_bytes, machine=machine)
        of_machine = _of_machine(catalog, machine)
        surest = of_machine if of_machine and _fits(catalog, of_machine, memory_bytes) else ""
        device = surest or device_of(device_name, memory_bytes)
        if not surest and (others := _told_apart(catalog, node, device)):
            reading.note(f"{printable(device_name)} is taken as {device}: it may be {others}, nothing tells")
        found[device or printable(device_name) or "no name"] += count * devices
        shape = _shape_of(catalog, node, device) if device else None
        if shape is not None:
            owned[shape.id] += count
            if shape.kind != "onprem" and not machine and not linked:
                reading.note(f"{count} × {devices} {device}: no plain box of the catalog; taken as {shape.id}")
            continue
        if not device_name and not device:
            reading.note(f"{count} × {devices} devices without a name: --accelerator says which they are")
            continue
        what = f"{count} × {devices} {printable(device_name) or device}"
        why = "the catalog has the device, but no such shape" if device else "not in the catalog"
        reading.note(f"{what}: {why}; {_nearest(catalog, node, device)}")
    for device, count in found.most_common(20):
        reading.show(f"of them {device}", count)
    if not owned:
        return
    entries = [{"shape": shape, "count": count, "price": _FREE} for shape, count in sorted(owned.items())]
    if len(entries) > _MOST_ENTRIES:
        reading.note(f"of {len(entries)} kinds of machines {_MOST_ENTRIES} are written")
    reading.understood["shapes"] = ", ".join(f"{count} × {shape}" for shape, count in sorted(owned.items()))[:400]
    reading.understood["price"] = f"{_FREE}, assumed: put in what power and hosting of one shape cost"
    says = f"hardware.owned: {sum(owned.values())} machines; its prices are yours to fill in"
    reading.pieces.append(Piece(what="scenario", name="owned", fragment={"hardware": {"owned": entries}}, says=says))


def _alike(nodes: list[Node]) -> Counter[tuple[str, int, float | None, str, int]]:
    return Counter((node.device, node.devices, node.memory_bytes, node.machine, node.linked) for node in nodes)


def mebibytes(text: str) -> float | None:
    """Bytes of a cell as "81559 MiB" or "81559", which is MiB; None when it is none.  [B]"""
    found = re.fullmatch(r"(\d{1,12})(?:\.\d+)? ?(MiB|GiB|MB|GB)?", text.strip())
    if not found or not int(found.group(1)):
        return None
    return int(found.group(1)) * {"GiB": 2.0**30, "GB": 1e9, "MB": 1e6}.get(found.group(2) or "", 2.0**20)


MOST_JOBS = 5_000_000
MOST_KEYS = 20_000
_MOST_STATES = 40
FIRST = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job: devices [count] for so long [s], from a start and after a wait [s] where they are told."""

    state: str
    gpus: float
    seconds: float
    start: datetime | None = None
    wait_s: float | None = None
    partition: str = ""


def state_of(text: str) -> str:
    """The word of a state, CANCELLED of "CANCELLED by 1000"; "" for what is none."""
    word = text.split(" ")[0].rstrip("+").upper()
    return word if re.fullmatch(r"[A-Z_]{2,30}", word) else ""


class History:
    """Sums over jobs, by day; `counted` when times count from the beginning of a trace: days have numbers then."""

    def __init__(self, *, counted: bool = False) -> None:
        self.counted = counted
        self.jobs: Counter[str] = Counter()  # by day of the start
        self.hours: defaultdict[str, float] = defaultdict(float)  # GPU-hours by day
        self.busy: defaultdict[str, float] = defaultdict(float)  # job-hours by day
        self.states: Counter[str] = Counter()
        self.partitions: defaultdict[str, float] = defaultdict(float)
        self.sizes: Counter[float] = Counter()
        self.waits: list[float] = []
        self.lengths: list[float] = []
        self.gpu_hours = self.hours_all = 0.0
        self.gpu_jobs = self.undated = self.jumped = 0

    def add(self, job: Job) -> None:
        """One job."""
        self.states[job.state if job.state in self.states or len(self.states) < _MOST_STATES else "other"] += 1
        hours = job.gpus * job.seconds / 3600
        self.gpu_hours += hours
        self.hours_all += job.seconds / 3600
        self.lengths.append(job.seconds)
        if job.gpus:
            self.gpu_jobs += 1
            self.sizes[job.gpus] += 1
            known = job.partition in self.partitions or len(self.partitions) < MOST_KEYS
            self.partitions[job.partition if known else "others"] += hours
        if job.wait_s is not None and job.wait_s >= 0:
            self.waits.append(job.wait_s)
        self.jumped += job.wait_s is not None and job.wait_s < 0
        if job.start is None:
            self.undated += 1
            return
        self.jobs[self._day(job.start)] += 1
        for start, seconds in by_day(job.start, job.seconds):
            day = self._day(start)
            self.hours[day] += job.gpus * seconds / 3600
            self.busy[day] += seconds / 3600

    def _day(self, time: datetime) -> str:
        return f"{(time - FIRST).days:06d}" if self.counted else time.date().isoformat()

    def told(self, reading: Reading, *, timed: bool = True) -> None:
        """Figures, and the history as a table; `timed` when the jobs say how long they took."""
        reading.show("jobs", reading.taken)
        reading.show("jobs with GPUs", self.gpu_jobs)
        days = sorted(set(self.jobs) | set(self.hours))
        if timed:
            reading.show("GPU-hours", self.gpu_hours, "h")
            reading.show("hours of all jobs", self.hours_all, "h")
            _shown(reading, "time of a job", self.lengths)
        if days:
            reading.show("first day", self._said(days[0]))
            reading.show("last day", self._said(days[-1]))
            reading.show("jobs started on the busiest day", max(self.jobs.values(), default=0))
        if days and timed:
            most = max(self.hours.values(), default=0.0)
            reading.show("GPU-hours of the busiest day", most, "h")
            reading.show("GPUs in use, mean of the busiest day", most / 24)
        if self.sizes:
            reading.show("GPUs of a job, median", _median(self.sizes))
            reading.show("GPUs of a job, largest", max(self.sizes))
        _shown(reading, "wait before a start", self.waits)
        for state, count in self.states.most_common(8):
            if state:
                reading.show(f"jobs {state}", count)
        if timed and set(self.partitions) != {""}:
            for name, hours in sorted(self.partitions.items(), key=lambda each: -each[1])[:10]:
                reading.show(f"GPU-hours in {printable(name) or 'no partition'}", hours, "h")
        if self.undated:
            reading.note(f"{self.undated:,} jobs have no start: they count in sums, and in no day")
        if self.jumped:
            reading.note(f"{self.jumped:,} jobs start before they were submitted: their waits are left out")
        if days:
            columns = ["day", "jobs_started", "job_hours", "gpu_hours"] if timed else ["day", "jobs_started"]
            rows = ([self._said(day), self.jobs[day], self.busy[day], self.hours[day]][: len(columns)] for day in days)
            says = f"demand by day, {len(days):,} days"
            reading.pieces.append(Piece(what="history", name="demand.csv", text=csv_text(columns, rows), says=says))

    def _said(self, day: str) -> str:
        return str(int(day)) if self.counted else day


def _shown(reading: Reading, label: str, seconds: list[float]) -> None:
    if seconds:
        reading.show(f"{label}, mean", float(np.mean(seconds)), "s")
        reading.show(f"{label}, p95", float(np.percentile(seconds, 95)), "s")


def _median(counts: Mapping[float, int]) -> float:
    """The median of values that stand so many times."""
    values = sorted(counts)
    below = np.cumsum([counts[value] for value in values])
    last = int(below[-1])
    low, high = (values[int(np.searchsorted(below, place, side="right"))] for place in ((last - 1) // 2, last // 2))
    return float((low + high) / 2)


def by_day(start: datetime, seconds: float) -> Iterator[tuple[datetime, float]]:
    """Parts of a time from a start that each lie in one day: when they begin, and their seconds.  [s]"""
    while seconds > 0:
        try:
            midnight = start.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        except OverflowError:
            return
        here = min(seconds, (midnight - start).total_seconds())
        yield start, here
        seconds -= here
        start = midnight
