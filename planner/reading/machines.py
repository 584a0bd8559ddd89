"""Machines that a cloud lists as running, by their types, and the nodes of a Ray cluster."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from planner.carriers import dataclass
from planner.catalog.load import load_catalog
from planner.reading.columns import plain
from planner.reading.inventory import MOST_NODES, Node, told_of
from planner.reading.jsonlines import document_of, flat, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading, fit
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, printable, rows_of

_DEEP = 8
_TYPES = ("instancetype", "machinetype", "vmsize", "shape")
_STATES = ("instancestate", "state", "status", "powerstate", "lifecyclestate", "vmstatus")
_ROLES = {"machine": _TYPES, "state": _STATES}
_OTHERS = {"price", "pricehourly", "hourlyprice", "spotprice", "operatingsystem", "sku", "workloadtype"}  # of a list
_RUNS = {"running", "vmrunning", "ready", "active", "provisioning", "staging", "pending", "starting"}
_BOX = re.compile(r"^[|+\-=\s]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """One line of a list: the type of a machine, whether it runs, and devices that are told beside its type."""

    kind: str
    state: str
    device: str = ""
    devices: int = 0


def _json_machines(value: Any, depth: int = 0) -> Iterator[_Machine]:
    """Records with a type of machine and a state, wherever they lie."""
    if depth > _DEEP:
        return
    if isinstance(value, list):
        for each in value:
            yield from _json_machines(each, depth + 1)
    elif isinstance(value, dict):
        told = {plain(name.rpartition(".")[2]): each for name, each in flat(value, 2).items() if isinstance(each, str)}
        kind = next((told[name] for name in _TYPES if name in told), "")
        state = value.get("State")
        named = state.get("Name") if isinstance(state, dict) else None
        said = str(named or next((told[name] for name in _STATES if name in told), ""))
        if kind and said:
            beside = value.get("guestAccelerators")
            first = beside[0] if isinstance(beside, list) and beside and isinstance(beside[0], dict) else {}
            count = first.get("acceleratorCount")
            yield _Machine(kind=kind.rpartition("/")[2], state=said,
                           device=str(first.get("acceleratorType") or "").rpartition("/")[2],
                           devices=count if isinstance(count, int) and 0 < count < 100 else 0)  # fmt: skip
            return
        for each in value.values():
            if isinstance(each, list | dict):
                yield from _json_machines(each, depth + 1)


def _columns(line: str) -> dict[str, tuple[int, int]]:
    """Where the columns of a printed first line begin and end; none for any other line."""
    words = [(found.group(), found.start()) for found in re.finditer(r"\S+(?: \S+)*", line)]
    ends = [*(begin for _, begin in words[1:]), 10_000]
    places = places_of([word.strip("| ") for word, _ in words], _ROLES)
    at = {role: (words[place][1], ends[place]) for role, place in places.items()}
    return at if len(at) == len(_ROLES) else {}


def _printed_machines(source: Source, reading: Reading) -> Iterator[tuple[int, _Machine]]:
    """Rows below a first line whose columns stand under each other, or between bars."""
    places: dict[str, tuple[int, int]] = {}
    bars: dict[str, int] = {}
    for number, line in enumerate(source.lines(), start=1):
        text = line[:4000]
        cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
        boxed = "|" in text and len(cells) > 1
        if not text.strip() or _BOX.match(text):
            continue
        if boxed and (again := places_of(cells, _ROLES)).keys() == _ROLES.keys():
            bars = again
        elif not boxed and (found := _columns(text)):
            places = found
        elif boxed and bars and max(bars.values()) < len(cells):
            yield number, _Machine(kind=cells[bars["machine"]], state=cells[bars["state"]])
        elif places and not boxed:
            told = {role: text[begin:end].strip() for role, (begin, end) in places.items()}
            if told["machine"] and told["state"] and " " not in told["machine"]:
                yield number, _Machine(kind=told["machine"], state=told["state"])
            else:
                reading.skipped.add("no type of machine with a state", number)


def _listed(source: Source, reading: Reading) -> Iterator[tuple[int, _Machine]]:
    if source.head_text.lstrip()[:1] in ("{", "["):
        yield from enumerate(_json_machines(document_of(source)), start=1)
    elif places_of(header_of(source)[0], _ROLES).keys() == _ROLES.keys():
        for number, row in rows_of(source, _ROLES, ("machine", "state"), reading.skipped):
            yield number, _Machine(kind=row["machine"], state=row["state"])
    else:
        yield from _printed_machines(source, reading)


def recognise_instances(source: Source) -> Match:
    """Types of machines with a state each, as JSON, CSV or printed."""
    if not source.is_text:
        return NOTHING
    if source.head_text.lstrip()[:1] in ("{", "["):
        keys = {plain(key) for key in head_keys(source)}
        marks = {"a type of machine": bool(keys & set(_TYPES)), "a state": bool(keys & set(_STATES)),
                 "of instances": bool(keys & {"instanceid", "selflink", "hardwareprofile", "lifecyclestate",
                                              "guestaccelerators", "launchtime"})}  # fmt: skip
        return fit(marks, ceiling=0.0 if keys & _OTHERS else 0.9)
    names = header_of(source)[0]
    if places_of(names, _ROLES).keys() == _ROLES.keys():
        there = {plain(name) for name in names}
        near = bool(there & {"instanceid", "name", "resourcegroup", "zone"}) and not there & _OTHERS
        return Match(score=0.85 if near else 0.3, found=("a type of machine", "a state"))
    lines = [line[:4000] for line in source.first_lines[:20]]
    cells = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines)
    boxed = any(places_of(each, _ROLES).keys() == _ROLES.keys() for each in cells if len(each) > 1)
    return Match(score=0.9 if boxed or any(map(_columns, lines)) else 0.0,
                 missing=("a type of machine with a state",))  # fmt: skip


def read_instances(source: Source, asked: Asked) -> Reading:
    """Machines with accelerators that run, by their types."""
    reading = Reading(kind="instances", title="machines that a cloud lists", source=source.name, of="machines")
    shapes = {plain(shape.name): shape for shape in load_catalog().shapes.values() if shape.kind == "instance"}
    nodes: list[Node] = []
    others: Counter[str] = Counter()
    for number, machine in _listed(source, reading):
        shape = shapes.get(plain(machine.kind).removeprefix("standard")) or shapes.get(plain(machine.kind))
        if plain(machine.state) not in _RUNS:
            reading.skipped.add(f"a machine that does not run: {printable(machine.state.lower(), 30)}", number)
        elif len(nodes) >= MOST_NODES:
            reading.skipped.add(f"more than {MOST_NODES:,} machines", number)
        elif machine.devices and machine.device:
            reading.taken += 1
            nodes.append(Node(name="", device=machine.device, devices=machine.devices, machine=machine.kind))
        elif shape is None:
            others[machine.kind] += 1
            reading.skipped.add("a type of machine that the catalog has no accelerators of", number)
        else:
            reading.taken += 1
            nodes.append(Node(name="", device=shape.device, devices=shape.devices, machine=shape.name))
    if others:
        kinds = ", ".join(f"{count} × {printable(kind, 40)}" for kind, count in others.most_common(8))
        reading.note(f"Types that the catalog does not have, or that have no accelerators: {kinds}.")
    if not nodes:
        raise refused(
            source,
            "nothing-taken",
            f"no machine of {source.name} runs with known accelerators",
            "; ".join(reading.notes) or "kubectl get nodes -o json, or nvidia-smi -L, tells devices",
        )
    told_of(reading, nodes)
    reading.note("They are rented: put in what an hour of each costs you, or leave out of hardware.owned what may go.")
    return reading


_RAY = re.compile(r"^[ \t]*([0-9.]+)/([0-9.]+) (GPU|accelerator_type:(\S+))", re.M)
_RAY_JSON = ("Resources", "resources_total", "resources")


def recognise_ray(source: Source) -> Match:
    """What ray status prints, or nodes with their resources as JSON."""
    head = source.head_text
    if head.lstrip()[:1] in ("{", "["):
        keys = head_keys(source)
        return fit({"resources of nodes": bool(keys & set(_RAY_JSON)), "GPU": "GPU" in keys,
                    "a node of Ray": bool(keys & {"NodeID", "node_id", "NodeManagerAddress", "object_store_memory"})},
                   tool="Ray", ceiling=0.93)  # fmt: skip
    return fit({"Node status": "Node status" in head, "GPU of Usage": bool(_RAY.search(head))}, tool="ray status",
               ceiling=0.93)  # fmt: skip


def _ray_nodes(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Resources of each node that is alive."""
    if depth > _DEEP:
        return
    if isinstance(value, list):
        for each in value:
            yield from _ray_nodes(each, depth + 1)
    elif isinstance(value, dict):
        resources = next((value[key] for key in _RAY_JSON if isinstance(value.get(key), dict)), None)
        if resources is None:
            for each in value.values():
                yield from _ray_nodes(each, depth + 1)
        elif value.get("Alive", value.get("alive", True)) is True and str(value.get("state", "ALIVE")) == "ALIVE":
            yield resources


def read_ray(source: Source, asked: Asked) -> Reading:
    """Nodes with GPUs: each has a resource that is called by the type of its accelerator."""
    reading = Reading(kind="ray", title="nodes of a Ray cluster", source=source.name, tool="Ray", of="nodes")
    nodes: list[Node] = []
    if source.head_text.lstrip()[:1] in ("{", "["):
        for place, resources in enumerate(_ray_nodes(document_of(source)), start=1):
            count = resources.get("GPU")
            kind = next((key.partition(":")[2] for key in resources if key.startswith("accelerator_type:")), "")
            if isinstance(count, int | float) and 1 <= count <= 100:
                nodes.append(Node(name="", device=kind or asked.accelerator, devices=int(count)))
            else:
                reading.skipped.add("a node without GPUs", place)
    else:
        found = {name: (float(used), float(total)) for used, total, name, _ in _RAY.findall(source.text())
                 if used.count(".") < 2 and total.count(".") < 2}  # fmt: skip
        used, devices = found.pop("GPU", (0.0, 0.0))
        reading.show("GPUs", devices or None)
        reading.show("GPUs in use", used if devices else None)
        kinds = {name.partition(":")[2]: round(total) for name, (_, total) in found.items() if total >= 1}
        count = next(iter(kinds.values()), 0)
        if len(kinds) == 1 and 0 < count <= MOST_NODES and devices % count == 0 and devices:
            nodes = [Node(name="", device=next(iter(kinds)), devices=int(devices // count))] * count
        elif devices:
            reading.taken = 1
            reading.of = "clusters"
            reading.note("Which node has how many of them is not told: ray list nodes --detail --format json does.")
            return reading
    if not nodes:
        raise refused(source, "nothing-taken", f"no node of {source.name} has GPUs", "ray list nodes --format json")
    reading.taken = len(nodes)
    told_of(reading, nodes)
    return reading


KINDS = (
    Kind(name="instances", title="machines that a cloud lists",
         looks_for="types of machines with a state each (aws ec2 describe-instances, gcloud compute instances list, "
         "az vm list -d), as JSON, CSV or printed",
         recognise=recognise_instances, read=read_instances),
    Kind(name="ray", title="nodes of a Ray cluster",
         looks_for="Node status and Usage of GPU (ray status), or nodes with resources (ray list nodes)",
         recognise=recognise_ray, read=read_ray),
)  # fmt: skip
