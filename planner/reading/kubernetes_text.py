"""Nodes of Kubernetes as kubectl prints them: described one by one, or a line each with columns of devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from planner.reading.columns import plain
from planner.reading.kinds import NOTHING, Asked, Kind, Match, fit
from planner.reading.kubernetes import nodes_told
from planner.reading.reading import Reading
from planner.reading.source import Source, refused

_HINT = "kubectl get nodes -o json > FILE"
_SECTION = re.compile(r"([A-Z][\w ]{0,40}):\s*(.*)$")
_PAIR = re.compile(r"\s*([\w./-]{1,200})[=:]\s*(\S*)\s*$")
_READY = re.compile(r"\s+Ready\s+(\w+)\s")
_COLUMN = re.compile(r"\S+(?: \S+)*")  # names of columns stand two blanks apart at least
_APART = re.compile(r" {2,}|\t+")  # of what was pasted, too, and stands below its name no more
# name of a column, without case and signs -> what it stands for, as the end of a name that a user gave
_LABELS = {
    "gpuproduct": "nvidia.com/gpu.product", "product": "nvidia.com/gpu.product", "gpumemory":
    "nvidia.com/gpu.memory", "gkeaccelerator": "cloud.google.com/gke-accelerator", "instancetype":
    "node.kubernetes.io/instance-type", "gpumodel": "nvidia.com/gpu.product",
}  # fmt: skip
_CUSTOM = re.compile(
    r"NAME(?: {2,}[A-Z0-9_./-]+)+ *\n[a-z0-9][a-z0-9.-]* {2,}(?:.* {2,})?[0-9]+\b"
)  # of -o custom-columns
_COUNTS = (
    "gpu",
    "gpus",
    "gpucount",
    "nvidiacomgpu",
    "nvidiacomgpucount",
    "accelerators",
    "gpuallocatable",
    "allocatable",
    "gpucapacity",
    "amdcomgpu",
    "gpualloc",
)


def recognise_described(source: Source) -> Match:
    """Name, labels, capacity and allocatable, each a section."""
    lines = {line.split(":")[0] for line in source.head_text.splitlines() if re.match(r"[A-Z][\w ]{0,40}:", line)}
    if not source.is_text or "Roles" not in lines:
        return NOTHING
    return fit({each: each in lines for each in ("Name", "Labels", "Capacity", "Allocatable", "Conditions")},
               tool="kubectl describe", ceiling=0.97)  # fmt: skip


def read_described(source: Source, asked: Asked) -> Reading:
    """Machines that are ready and have devices."""
    reading = Reading(kind="k8s-described", title="nodes of a Kubernetes cluster", source=source.name,
                      tool="kubectl describe", of="nodes")  # fmt: skip
    return nodes_told(source, reading, _described(source), asked)


def _described(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    node: dict[str, Any] = {}
    begin, section = 0, ""
    for number, line in enumerate(source.lines(), start=1):
        found = _SECTION.match(line)
        if found:
            section = found.group(1)
            if section == "Name":
                if node:
                    yield begin, node
                begin, node = number, _empty(found.group(2).strip())
            line = found.group(2)
        if not node:
            continue
        status = node["status"]
        pair = _PAIR.match(line[:400])
        if section == "Labels" and pair:
            node["metadata"]["labels"][pair.group(1)] = pair.group(2)
        elif section in ("Capacity", "Allocatable") and pair:
            status[section.lower()][pair.group(1)] = pair.group(2)
        elif section == "Unschedulable":
            node["spec"]["unschedulable"] = line.strip() == "true"
        elif section == "Conditions" and (ready := _READY.match(line)):
            status["conditions"] = [{"type": "Ready", "status": ready.group(1)}]
    if node:
        yield begin, node


def _empty(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {}}, "spec": {}, "status": {"capacity": {}, "allocatable": {}}}


def _columns(line: str) -> dict[str, slice]:
    """Where columns stand, by their plain names: each begins below its name and ends before the next."""
    found = list(_COLUMN.finditer(line[:4000]))
    ends = [*(each.start() for each in found), None][1:]
    return {plain(each.group()): slice(each.start(), end) for each, end in zip(found, ends)}


def _head(source: Source) -> dict[str, slice]:
    return _columns(next((line for line in source.first_lines if line.strip()), ""))


def recognise_printed(source: Source) -> Match:
    """NAME with STATUS, ROLES, AGE and VERSION, or with a column of devices."""
    names = _head(source) if source.is_text else {}
    marks = {each: each.lower() in names for each in ("NAME", "STATUS", "ROLES", "AGE", "VERSION")}
    told = any(name in names for name in _LABELS) or _CUSTOM.match(source.head_text)
    counted = any(name in names for name in _COUNTS) and "name" in names and bool(told)
    if counted and not marks["STATUS"]:
        return Match(score=0.9, found=("NAME", "devices"), tool="kubectl")
    return fit(marks, tool="kubectl", ceiling=0.95)


def read_printed(source: Source, asked: Asked) -> Reading:
    """Machines of lines that tell their devices."""
    reading = Reading(kind="k8s-printed", title="nodes of a Kubernetes cluster", source=source.name, tool="kubectl",
                      of="nodes")  # fmt: skip
    if not set(_COUNTS) & set(_head(source)):
        raise refused(source, "no-devices", f"{source.name} lists nodes without their devices", _HINT)
    return nodes_told(source, reading, _printed(source), asked)


def _printed(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    columns: dict[str, slice] = {}
    for number, line in enumerate(source.lines(), start=1):
        if not line.strip():
            continue
        again = _columns(line)
        if not columns or set(again) == set(columns):  # of a further file
            columns = again
            continue
        apart = _APART.split(line.strip())
        cells = dict(zip(columns, apart)) if len(apart) == len(columns) else {
            name: line[place].strip() for name, place in columns.items()}  # fmt: skip
        cells = {name: "" if cell == "<none>" else cell for name, cell in cells.items()}
        node = _empty(cells.get("name", ""))
        node["metadata"]["labels"] = {label: cells[name] for name, label in _LABELS.items() if cells.get(name)}
        node["status"]["allocatable"] = {"nvidia.com/gpu": next((cells[each] for each in _COUNTS if each in cells), "")}
        words = cells.get("status", "Ready").split(",")
        node["status"]["conditions"] = [{"type": "Ready", "status": "True" if "Ready" in words else "False"}]
        node["spec"]["unschedulable"] = "SchedulingDisabled" in words
        yield number, node


KINDS = (
    Kind(name="k8s-described", title="nodes of a Kubernetes cluster, described",
         looks_for="Name, Labels, Capacity and Allocatable of nodes (kubectl describe nodes)",
         recognise=recognise_described, read=read_described),
    Kind(name="k8s-printed", title="nodes of a Kubernetes cluster, printed",
         looks_for="NAME, STATUS … and a column of devices (kubectl get nodes -L nvidia.com/gpu.count)",
         recognise=recognise_printed, read=read_printed),
)  # fmt: skip
