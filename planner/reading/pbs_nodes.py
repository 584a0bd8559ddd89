"""What PBS tells of nodes: pbsnodes -a of PBS Pro, OpenPBS and Torque, as text or as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.reading.inventory import mebibytes
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading, fit
from planner.reading.slurm_nodes import NodesByName
from planner.reading.source import Source

_FIELD = re.compile(r"\s+([A-Za-z_][\w.]{0,100}) = (.*)$")
_NAME = re.compile(r"[A-Za-z0-9][\w.\[\]-]{0,200}")
_AVAILABLE = "resources_available."
_COUNT = re.compile(r"[0-9]{1,6}")
_GPUS = ("ngpus", "gpus", "ngpu", "accelerators")
# what sites call the resource that tells the kind of a device: PBS has none of its own
_TYPES = ("gputype", "gpu_type", "gpu_model", "gpumodel", "accelerator_model", "accelerator_type", "gpu_name")
_PRODUCT = re.compile(r"gpu_product_name=([^;,]{2,80})")
_MEMORY = re.compile(r"gpu_memory_total=(\d{3,7} MB)")
_USABLE = {"free", "job-busy", "job-exclusive", "busy", "resv-exclusive", "job-sharing", "provisioning", "sleep"}
_ASK = "pbsnodes -a, where a resource such as gputype says which devices they are"


def _text_nodes(source: Source) -> Iterator[tuple[int, dict[str, str]]]:
    """Line and fields of each node: its name stands at the margin, its fields below it."""
    node: dict[str, str] = {}
    begin = 0
    for number, line in enumerate(source.lines(), start=1):
        if field := _FIELD.match(line[:20_000]):
            if node:
                node.setdefault(field.group(1), field.group(2).strip())
        elif line.strip() and not line[0].isspace():
            if node:
                yield begin, node
            node, begin = ({"": line.strip()}, number) if _NAME.fullmatch(line.strip()) else ({}, number)
    if node:
        yield begin, node


def _json_nodes(source: Source) -> Iterator[tuple[int, dict[str, str]]]:
    whole = document_of(source)
    nodes: Any = whole.get("nodes") if isinstance(whole, dict) else None
    for number, (name, row) in enumerate(nodes.items() if isinstance(nodes, Mapping) else (), start=1):
        row = row if isinstance(row, Mapping) else {}
        held = row.get("resources_available")
        resources = held.items() if isinstance(held, Mapping) else ()
        yield number, {"": str(name)[:200], "state": str(row.get("state") or "")} | {
            f"{_AVAILABLE}{key}": str(value) for key, value in resources}  # fmt: skip


def _devices(node: Mapping[str, str]) -> tuple[str, int, float | None]:
    """Kind, count and memory of a node's devices, by its resources or by what Torque's mom shows of them."""
    counts = [node.get(f"{_AVAILABLE}{key}", "") for key in _GPUS] + [node.get("gpus", "")]
    count = next((int(each) for each in counts if _COUNT.fullmatch(each)), 0)
    kinds = [node.get(f"{_AVAILABLE}{key}", "") for key in _TYPES]
    shown = node.get("gpu_status", "")
    product, memory = _PRODUCT.search(shown), _MEMORY.search(shown)
    kind = next((each for each in kinds if each), product.group(1) if product else "")
    return kind[:200], count, mebibytes(memory.group(1).replace("MB", "MiB")) if memory else None


def recognise(source: Source) -> Match:
    """Names at the margin with state = and resources or properties below them, or the nodes of its JSON."""
    head = source.head_text
    if not source.is_text:
        return NOTHING
    if head.lstrip().startswith("{"):
        keys = head_keys(source)
        return fit({each: each in keys for each in ("pbs_version", "nodes", "resources_available")},
                   tool="pbsnodes -a -F json", ceiling=0.97)  # fmt: skip
    marks = {
        "state =": bool(re.search(r"^[ \t]{1,40}state = \S", head, re.M)),
        "Mom = or np =": bool(re.search(r"^[ \t]{1,40}(?:Mom|np) = \S", head, re.M)),
        "resources_available or ntype": bool(
            re.search(r"^[ \t]{1,40}(?:resources_available\.\w{1,60}|ntype) = ", head, re.M)
        ),
    }
    return fit(marks, tool="pbsnodes", ceiling=0.97)


def read(source: Source, asked: Asked) -> Reading:
    """Nodes by state, and the machines of those with devices."""
    reading = Reading(kind="pbsnodes", title="nodes of PBS", source=source.name, tool="pbsnodes", of="nodes")
    found = NodesByName(reading, _ASK)
    for number, node in _json_nodes(source) if source.head_text.lstrip()[:1] == "{" else _text_nodes(source):
        states = [each.strip().lower() for each in node.get("state", "").split(",") if each.strip()]
        kind, count, memory_bytes = _devices(node)
        if not states:
            reading.skipped.add("no node with a state", number)
            continue
        usable = set(states) <= _USABLE
        found.take_one(node[""], "+".join(states)[:60], kind, count if usable else 0, memory_bytes, number)
    return found.told(source)


KINDS = (
    Kind(name="pbsnodes", title="nodes of PBS",
         looks_for="names of nodes with state = and resources_available or np below them (pbsnodes -a), or its JSON",
         recognise=recognise, read=read),
)  # fmt: skip
