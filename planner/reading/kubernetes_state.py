"""What Kubernetes tells of a cluster: its nodes with their devices, what pods ask of them, and what they used.

Nodes are JSON or YAML, or as kubectl prints them: described one by one, or a line each with columns of devices.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from planner.reading.columns import plain
from planner.reading.inventory import MOST_NODES, Node, told_of
from planner.reading.jsonlines import JsonLines, document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Piece, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import csv_text, places_of, printable, rows_of
from planner.yamlfile import parse_yaml

# labels that name a device, the surest first
_PRODUCTS = (
    "nvidia.com/gpu.product", "amd.com/gpu.product-name", "beta.amd.com/gpu.product-name", "gpu.nvidia.com/model",
    "cloud.google.com/gke-accelerator", "cloud.google.com/gke-tpu-accelerator", "gpu.nvidia.com/class",
    "karpenter.k8s.aws/instance-gpu-name", "k8s.amazonaws.com/accelerator", "accelerator",
)  # fmt: skip
_MACHINES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_DEVICES = re.compile(
    r"^(nvidia\.com/gpu(\.shared)?|amd\.com/gpu|gpu\.intel\.com/(i915|xe)|habana\.ai/gaudi|google\.com/tpu"
    r"|aws\.amazon\.com/neuron(device)?)$"
)
_MIG = re.compile(r"^nvidia\.com/mig-")
_MOST_DEVICES = 1024  # of one node
_LIMIT_BYTES = 64_000_000  # of YAML
_NO_PHASE = "no phase"
_MOST_PODS = 2_000_000
_MOST_KEYS = 200_000
# what Google calls its devices; its A100 without a size has 40 GB, the other is nvidia-a100-80gb
_GKE = re.compile(r"^nvidia-(tesla-)?")
_GKE_SIZES = {"nvidia-tesla-a100": 40 * 2.0**30}
_GKE_SLICE, _GKE_CLIENTS = "cloud.google.com/gke-gpu-partition-size", "cloud.google.com/gke-max-shared-clients-per-gpu"
_MAKERS = {"nvidia", "amd", "intel", "true"}  # a label that says no more names no device
_AMD_COUNTED = re.compile(r"^(?:beta\.)?amd\.com/gpu\.product-name\.(.{1,100})$")  # name in the key, count as value
_AMD_ID = re.compile(r"^(?:beta\.)?amd\.com/gpu\.device-id(?:\.([0-9a-f]{4}))?$", re.I)
# PCI ids of vendor 1002, of whole devices and of virtual functions (as Azure passes them on); 740c is of two products
# ROCm/gpu-operator:helm-charts-k8s/templates/gpu-nfd-default-rule.yaml@33e9097, 2026-11-21
_AMD_NAMES = {
    "738c": "MI100", "738e": "MI100", "740f": "MI210", "7410": "MI210", "7408": "MI250X", "74a0": "MI300A",
    "74a1": "MI300X", "74a9": "MI300X", "74b5": "MI300X", "74bd": "MI300X", "74a2": "MI308X", "74a8": "MI308X",
    "74b6": "MI308X", "74bc": "MI308X", "74a5": "MI325X", "74b9": "MI325X", "75a0": "MI350X", "75b0": "MI350X",
    "75a3": "MI355X", "75b3": "MI355X",
}  # fmt: skip
_SLICE = re.compile(r"\d{1,3}(?:x\d{1,3}){1,2}")  # of TPUs: chips that are linked, over all machines that hold them
_MEMORIES = {
    "nvidia.com/gpu.memory": 2.0**20, "karpenter.k8s.aws/instance-gpu-memory": 2.0**20, "gpu.nvidia.com/vram": 2.0**30,
    "amd.com/gpu.vram": 2.0**30, "beta.amd.com/gpu.vram": 2.0**30,
}  # fmt: skip


def _items(source: Source) -> Iterator[tuple[int, Any]]:
    """Objects of a List, of a bare list, or one alone, or one a line; several files as one."""
    number = 0
    for part in source.parts:
        for whole in _documents(part):
            rows = whole.get("items") if isinstance(whole, dict) and isinstance(whole.get("items"), list) else whole
            for row in rows if isinstance(rows, list) else [rows]:
                number += 1
                yield number, row


def _documents(part: Source) -> Iterator[Any]:
    """What a file holds as JSON, as JSON lines or as documents of YAML."""
    lines = [line for line in part.first_lines[:20] if line.strip()]
    if not _is_json(part):
        for text in re.split(r"(?m)^---[^\n]*$", part.text(_LIMIT_BYTES)):
            listed = re.search(r"(?m)^items:\s*$((?:\n(?:[ -]|$).*)*)", text)  # each by itself: a list may be long
            for item in re.split(r"(?m)^(?=- )", listed.group(1)) if listed else [text]:
                if item.strip():
                    yield parse_yaml(item, part.name, problems=[]).data
    elif len(lines) > 1 and all(line.startswith("{") for line in lines[:2]):
        yield from (record for _, record in JsonLines(part))
    else:
        yield document_of(part)


def _is_json(source: Source) -> bool:
    return source.head_text.lstrip()[:1] in ("{", "[")


def _match(source: Source, kind: str, marks: dict[str, bool]) -> Match:
    if not _is_json(source):
        named = re.search(r"(?m)^[ -]{0,2}kind: (\w+)\s*$", source.head_text)
        below = re.search(r"(?m)^  kind: (\w+)\s*$", source.head_text) if named and named.group(1) == "List" else named
        there = below is not None and below.group(1).removesuffix("List") == kind and source.is_text
        return fit({mark: there and f"{mark}:" in source.head_text for mark in marks}, tool="kubectl", ceiling=0.96)
    # a workload counts where it is the item, not where it owns a pod
    named = re.search(r'"kind"\s*:\s*"(?:(NodeList|PodList|Node|Pod)"|(?:Deployment|StatefulSet)"\s*,\s*"metadata")',
                      source.head_text)  # fmt: skip
    if named and (named.group(1) or "").removesuffix("List") != kind:
        return NOTHING
    return fit(marks, tool="kubectl", ceiling=0.96)


def recognise_nodes(source: Source) -> Match:
    """Metadata, capacity and allocatable."""
    keys = head_keys(source)
    marks = {each: each in keys for each in ("metadata", "capacity", "allocatable", "status")}
    return _match(source, "Node", marks)


def read_nodes(source: Source, asked: Asked) -> Reading:
    """Machines that are ready and have devices."""
    reading = Reading(kind="k8s-nodes", title="nodes of a Kubernetes cluster", source=source.name, tool="kubectl",
                      of="nodes")  # fmt: skip
    return nodes_told(source, reading, _items(source), asked)


def nodes_told(source: Source, reading: Reading, items: Iterator[tuple[int, Any]], asked: Asked) -> Reading:
    """Machines of nodes, each taken or counted, with their place in the file."""
    nodes: list[Node] = []
    seen: set[str] = set()
    for number, item in items:
        node = node_of(item, asked)
        if isinstance(node, Node) and node.name and node.name in seen:
            node = "a node that stands above"
        if isinstance(node, str):
            reading.skipped.add(node, number)
        elif len(nodes) >= MOST_NODES:
            reading.skipped.add(f"more than {MOST_NODES:,} nodes", number)
        else:
            seen.add(node.name)
            nodes.append(node)
            reading.taken += 1
    if not reading.taken and not reading.skipped.count:
        raise refused(source, "nothing-taken", f"{source.name} lists no node", "kubectl get nodes -o json > FILE")
    if any("MIG" in why for why in reading.skipped.reasons):
        reading.note("slices of MIG are not told as machines: name the whole devices under hardware.owned yourself")
    told_of(reading, nodes)
    return reading


def node_of(item: Any, asked: Asked) -> Node | str:
    """A machine with its devices, or why it is none."""
    if not isinstance(item, dict):
        return "JSON, but no node"
    metadata, spec, status = (_map(item.get(key)) for key in ("metadata", "spec", "status"))
    there, whole = _map(status.get("allocatable")) or _map(status.get("capacity")), _map(status.get("capacity"))
    if not there:
        return "neither capacity nor allocatable"
    counts = {key: number_of(value) for key, value in there.items() if _DEVICES.match(str(key)[:200])}
    if any(_MIG.match(str(key)[:200]) and number_of(value) for key, value in whole.items()):
        return "cut into MIG slices"
    devices = max((count for count in counts.values() if count), default=0.0)
    labels = _map(metadata.get("labels"))
    if devices <= 0:
        unready = [number_of(whole.get(key)) for key in whole if _DEVICES.match(str(key)[:200])]
        return "none of its accelerators can be allocated" if any(unready) else "no accelerator"
    product = _product(labels)
    if "-MIG-" in product or labels.get(_GKE_SLICE):
        return "cut into MIG slices"
    if devices != int(devices) or devices > _MOST_DEVICES:
        return "no count of accelerators"
    if _condition(status) is False:
        return "not ready"
    if spec.get("unschedulable") is True:
        return "cordoned"
    times = number_of(labels.get(_GKE_CLIENTS)) or number_of(labels.get("nvidia.com/gpu.replicas")) or 1
    physical = number_of(labels.get("nvidia.com/gpu.count")) if product.endswith("-SHARED") or times > 1 else None
    physical = physical or devices // max(times, 1)
    count = int(physical) if physical and 1 <= physical <= devices else int(devices)
    return Node(
        name=str(metadata.get("name", ""))[:300],
        device=_device(product) or asked.accelerator,
        devices=count,
        memory_bytes=_memory(labels) or _GKE_SIZES.get(product),
        machine=next((str(labels[key])[:100] for key in _MACHINES if labels.get(key)), ""),
        linked=_linked(labels),
    )


def _linked(labels: dict[str, Any]) -> int:
    """Chips of the slice of TPUs that a machine is part of; 0 for what is none.  [count]"""
    topology = str(labels.get("cloud.google.com/gke-tpu-topology", ""))
    return math.prod(map(int, topology.split("x"))) if _SLICE.fullmatch(topology) else 0


def _product(labels: dict[str, Any]) -> str:
    """What the labels call a device; "" where they name none, or its maker only."""
    named = (str(labels[key]) for key in _PRODUCTS if labels.get(key))
    counted = (found.group(1) for key in labels if (found := _AMD_COUNTED.match(str(key)[:200])))
    ids = (str(found.group(1) or value) for key, value in labels.items() if (found := _AMD_ID.match(str(key)[:200])))
    by_id = (_AMD_NAMES.get(each.lower().removeprefix("0x"), "") for each in ids)
    return next((name for name in (*named, *counted, *by_id) if name and name.lower() not in _MAKERS), "")


def _memory(labels: dict[str, Any]) -> float | None:
    """Memory of a device as the first label tells that does.  [B]"""
    for key, unit_bytes in _MEMORIES.items():
        memory = number_of(str(labels.get(key, "")).rstrip("GgiBb"))
        if memory and memory > 0:
            return memory * unit_bytes
    return None


def _device(product: str) -> str:
    return _GKE.sub("", product[:200]).replace("-mega-", "-")


def _condition(status: dict[str, Any]) -> bool | None:
    """Whether a node says that it is ready; None when it does not say."""
    conditions = status.get("conditions")
    for each in conditions if isinstance(conditions, list) else []:
        if isinstance(each, dict) and each.get("type") == "Ready":
            return bool(each.get("status") == "True")
    return None


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def recognise_pods(source: Source) -> Match:
    """Containers with resources, and a phase."""
    keys = head_keys(source)
    marks = {each: each in keys for each in ("metadata", "containers", "resources", "phase")}
    return _match(source, "Pod", marks)


def read_pods(source: Source, asked: Asked) -> Reading:
    """Devices that pods ask for, by phase, namespace and node."""
    reading = Reading(kind="k8s-pods", title="pods of a Kubernetes cluster", source=source.name, tool="kubectl",
                      of="pods")  # fmt: skip
    phases: Counter[str] = Counter()
    spaces: Counter[str] = Counter()
    hosts: Counter[str] = Counter()
    for number, item in _items(source):
        metadata, spec, status = (_map(_map(item).get(key)) for key in ("metadata", "spec", "status"))
        containers = spec.get("containers")
        if not isinstance(containers, list):
            reading.skipped.add("no containers", number)
            continue
        if reading.taken >= _MOST_PODS:
            reading.skipped.add(f"more than {_MOST_PODS:,} pods", number)
            continue
        devices = sum(_asked_of(each) for each in containers)
        if not devices:
            reading.skipped.add("no accelerator", number)
            continue
        reading.taken += 1
        phase = printable(str(status.get("phase", "")), 20) or _NO_PHASE
        phases[phase] += devices
        if phase in ("Running", "Pending"):
            _count(spaces, printable(str(metadata.get("namespace", ""))) or "no namespace", devices)
        if phase == "Running":
            _count(hosts, str(spec.get("nodeName", ""))[:300], devices)
    if not reading.taken and not reading.skipped.count:
        raise refused(source, "nothing-taken", f"{source.name} lists no pod", "kubectl get pods -A -o json > FILE")
    for phase, devices in phases.most_common(6):
        reading.show(f"accelerators of pods that are {phase}" if phase != _NO_PHASE else
                     "accelerators of pods that tell no phase", devices)  # fmt: skip
    reading.show("nodes with running pods", len(hosts))
    for space, devices in spaces.most_common(20):
        reading.show(f"asked for in {space}", devices)
    reading.note("pods say what is asked for, not what is there: read the nodes for hardware.owned")
    return reading


def _asked_of(container: Any) -> int:
    resources = _map(_map(container).get("resources"))
    for part in ("limits", "requests"):
        counts = [
            number_of(value) for key, value in _map(resources.get(part)).items() if _DEVICES.match(str(key)[:200])
        ]
        whole = [int(count) for count in counts if count and 0 < count <= _MOST_DEVICES]
        if whole:
            return max(whole)
    return 0


def _count(into: Counter[str], key: str, value: int) -> None:
    into[key if key in into or len(into) < _MOST_KEYS else "others"] += value


_USED = {
    "node": ("node", "nodename"),
    "uuid": ("gpuuuid", "uuid"),
    "device": ("gpumodelname", "modelname"),
    "memory": ("gpumemorycapacitymib",),
    "seconds": ("gpupoduptime",),
    "day": ("intervalstart",),
    "space": ("namespace",),
    "slice": ("migprofile",),
}


def recognise_used(source: Source) -> Match:
    """Devices of pods by interval."""
    names, _ = header_of(source)
    places = places_of(names, _USED)
    return fit({role: role in places for role in ("node", "uuid", "device", "seconds", "day")},
               tool="OpenShift cost management", ceiling=0.97)  # fmt: skip


def read_used(source: Source, asked: Asked) -> Reading:
    """GPU-hours by day and namespace, and the machines that the devices stand in."""
    reading = Reading(kind="k8s-gpu-usage", title="accelerators of pods by hour", source=source.name, of="rows")
    gpus: dict[tuple[str, str], tuple[str, float | None]] = {}
    days: defaultdict[str, float] = defaultdict(float)
    spaces: defaultdict[str, float] = defaultdict(float)
    cut = 0
    for line, row in rows_of(source, _USED, ("node", "uuid", "device", "seconds"), reading.skipped):
        seconds = number_of(row.get("seconds", ""))
        day = row.get("day", "")[:10]
        if seconds is None or not 0 <= seconds <= 1e7:
            reading.skipped.add("no seconds that a device was used", line)
        elif not re.fullmatch(r"\d{4}-\d\d-\d\d", day):
            reading.skipped.add("no day of the interval", line)
        elif not row.get("uuid") or not row.get("device"):
            reading.skipped.add("no device", line)
        elif len(gpus) >= _MOST_KEYS or len(days) >= _MOST_KEYS or len(spaces) >= _MOST_KEYS:
            reading.skipped.add(f"more than {_MOST_KEYS:,} devices, days or namespaces", line)
        else:
            reading.taken += 1
            memory = number_of(row.get("memory", ""))
            gpus.setdefault((row["node"][:300], row["uuid"][:100]),
                            (row["device"][:200], memory * 2.0**20 if memory and memory > 0 else None))  # fmt: skip
            days[day] += seconds / 3600
            spaces[row.get("space", "")[:200]] += seconds / 3600
            cut += bool(row.get("slice"))
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no row of {source.name} could be taken", "see what was skipped")
    reading.show("GPU-hours", sum(days.values()), "h")
    reading.show("days", len(days))
    for space, hours in sorted(spaces.items(), key=lambda each: -each[1])[:10]:
        reading.show(f"GPU-hours of {printable(space) or 'no namespace'}", hours, "h")
    if cut:
        reading.note(f"{cut:,} rows are of MIG slices: their hours are hours of slices")
    alike = Counter((node, *device) for (node, _), device in gpus.items())
    text = csv_text(["day", "gpu_hours"], ([day, hours] for day, hours in sorted(days.items())))
    reading.pieces.append(Piece(what="history", name="gpu-hours.csv", text=text, says="GPU-hours by day"))
    told_of(reading, [Node(name=node, device=device, devices=count, memory_bytes=memory_bytes)
                      for (node, device, memory_bytes), count in alike.items()])  # fmt: skip
    return reading


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
    Kind(name="k8s-nodes", title="nodes of a Kubernetes cluster",
         looks_for="JSON or YAML of nodes with capacity and allocatable (kubectl get nodes -o json)",
         recognise=recognise_nodes, read=read_nodes),
    Kind(name="k8s-pods", title="pods of a Kubernetes cluster",
         looks_for="JSON or YAML of pods with containers, resources and a phase (kubectl get pods -A -o json)",
         recognise=recognise_pods, read=read_pods),
    Kind(name="k8s-gpu-usage", title="accelerators of pods by hour",
         looks_for="a first line of node, gpu_uuid, gpu_model_name, gpu_pod_uptime, interval_start (OpenShift)",
         recognise=recognise_used, read=read_used),
    Kind(name="k8s-described", title="nodes of a Kubernetes cluster, described",
         looks_for="Name, Labels, Capacity and Allocatable of nodes (kubectl describe nodes)",
         recognise=recognise_described, read=read_described),
    Kind(name="k8s-printed", title="nodes of a Kubernetes cluster, printed",
         looks_for="NAME, STATUS … and a column of devices (kubectl get nodes -L nvidia.com/gpu.count)",
         recognise=recognise_printed, read=read_printed),
)  # fmt: skip
