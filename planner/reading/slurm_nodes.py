"""What Slurm tells of nodes: those of sinfo and of scontrol show node, by their state and with their devices.

And what PBS tells: pbsnodes -a of PBS Pro, OpenPBS and Torque, as text or as JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from planner.reading.inventory import MOST_NODES, Node, mebibytes, told_of
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading, fit
from planner.reading.slurm_jobs import MIG_SLICE, gpus_of
from planner.reading.source import Source, refused
from planner.reading.tables import places_of

_CONF = re.compile(r"(?m)^(?:ClusterName|PartitionName|SlurmctldHost)=")  # in slurm.conf, beside its nodes
_STATES = {
    "allocated", "alloc", "completing", "comp", "down", "drained", "drain", "draining", "drng", "fail", "failing",
    "future", "idle", "maint", "mixed", "mix", "perfctrs", "planned", "plnd", "power_down", "powered_down", "reserved",
    "resv", "unknown", "reboot", "inval", "blocked",
}  # fmt: skip
_USABLE = {"allocated", "alloc", "completing", "comp", "idle", "mixed", "mix", "planned", "plnd", "reserved", "resv"}
# what stands behind a state, as idle+drain, and keeps jobs away
_KEPT = {
    "drain", "draining", "drained", "down", "fail", "failing", "maint", "maintenance", "not_responding", "invalid_reg",
    "reboot_issued", "reboot_requested", "blocked",
}  # fmt: skip
_ROLES = {
    "node": ("nodelist", "hostnames", "nodehost", "nodename", "node", "hostname"),
    "state": ("statelong", "state", "statecompact", "statecomplete"),
    "gres": ("gres",),
}
_HOST = re.compile(r"([^\[\]]*)\[([^\[\]]*)\](.*)")
_OUTSIDE = re.compile(r",(?![^\[(]*[\])])")  # a comma that stands in no brackets
_LONGEST_LIST, _MOST_RANGES = 100_000, 8
_INDEX = re.compile(r"[0-9]{1,9}")
_FIELD = re.compile(r"(?:^|\s)(NodeName|State|Gres|CfgTRES)=(\S*)")
_NODE = re.compile(r"[A-Za-z][\w.,\[\]-]{0,4000}")
_NO_GRES = ("(null)", "N/A")
_MOST_COLUMNS = 40
_MOST_LINES = 0.8  # share of the lines whose cell must be of a kind
_ASK = "sinfo -N -O NodeList,StateLong,Gres"


def hosts_of(text: str) -> Iterator[str]:
    """Names of a list of nodes, gpu[01-03,7],login as Slurm writes it; no more than there may be."""
    for part in _OUTSIDE.split(text[:_LONGEST_LIST]):
        found = _HOST.fullmatch(part) if part.count("[") <= _MOST_RANGES else None
        if not found:
            yield part
            continue
        before, ranges, after = found.groups()
        for each in ranges.split(","):
            low, _, high = each.partition("-")
            if not (_INDEX.fullmatch(low) and _INDEX.fullmatch(high or low)):
                continue
            for number in range(int(low), min(int(high or low), int(low) + MOST_NODES) + 1):
                yield from hosts_of(f"{before}{number:0{len(low)}d}{after}")


def _words(line: str, separator: str | None) -> list[str]:
    line = line.strip()[:4000]
    return [word.strip('" ') for word in (_OUTSIDE.split(line) if separator == "," else line.split(separator))]


def _separator(line: str) -> str | None:
    return next((each for each in "|;," if each in line and "[" not in line), None)


def _head(line: str) -> tuple[dict[str, int], str | None]:
    """Places of the columns that a first line names, and what stands between them; none for any other line."""
    separator = _separator(line)
    places = places_of(_words(line, separator), _ROLES)
    return (places if "node" in places and len(places) > 1 else {}), separator


def _state(text: str) -> str:
    state = re.sub(r"[*~#!%$@^-]+(?=\+|$)|\+$", "", text.lower())
    return state if state.split("+")[0] in _STATES else ""


def _without_head(lines: list[str]) -> dict[str, int]:
    """Places of nodes, states and devices in lines without a first line of names, by what stands in them (sinfo -h)."""
    rows = [_words(line, _separator(line)) for line in lines]
    width = min(map(len, rows), default=0)

    def share(place: int, fits: Callable[[str], bool]) -> float:
        return sum(fits(row[place]) for row in rows) / max(len(rows), 1)

    places: dict[str, int] = {}
    for role, fits in (("state", lambda cell: bool(_state(cell))), ("gres", _is_gres), ("node", _is_node)):
        rest = [place for place in range(min(width, _MOST_COLUMNS)) if place not in places.values()]
        best = max(rest, key=lambda place: (share(place, fits), -place), default=None)
        if best is not None and share(best, fits) >= _MOST_LINES:
            places[role] = best
    return places if {"node", "state"} <= places.keys() else {}


def _is_gres(cell: str) -> bool:
    return cell in _NO_GRES or bool(gpus_of(_gres(cell)))


def _is_node(cell: str) -> bool:
    return bool(_NODE.fullmatch(cell)) and any(map(str.isdigit, cell))


def recognise_sinfo(source: Source) -> Match:
    """Nodes with their states or devices, with a first line of names or without one."""
    lines = [line for line in source.first_lines if line.strip()][:100]
    if not lines or not source.is_text:
        return NOTHING
    at = next((at for at, line in enumerate(lines[:3]) if _head(line)[0]), None)
    if at is None:
        at_cells = _without_head(lines)
        found = [_state(words[at_cells["state"]]) if at_cells else "" for line in lines
                 for words in [_words(line, _separator(line))]]  # fmt: skip
        if not at_cells:
            found = [_state(words[1]) if len(words := _words(line, _separator(line))) == 2 else "" for line in lines]
    else:
        places, separator = _head(lines[at])
        rows = [_words(line, separator) for line in lines[at + 1 :]]
        place = places.get("state", places.get("gres", 0))
        found = [row[place] if place < len(row) else "" for row in rows]
        found = [_state(cell) for cell in found] if "state" in places else [
            cell if _is_gres(cell) else "" for cell in found]  # fmt: skip
    share = sum(map(bool, found)) / max(len(found), 1)
    if share < 0.8:
        return Match(score=0.3 * share, missing=("states of nodes",))
    return Match(score=0.95, found=("nodes", "states"), tool="sinfo")


def _gres(text: str) -> str:
    return re.sub(r"\([^)]*\)", "", text)


class NodesByName:
    """Nodes by name, each taken once."""

    def __init__(self, reading: Reading, ask: str = _ASK) -> None:
        self.reading, self.ask = reading, ask
        self.states: Counter[str] = Counter()
        self.nodes: dict[str, Node | None] = {}

    def take(self, names: Iterator[str], state: str, gres: str, number: int) -> None:
        """Nodes of one line; `state` is empty where no column tells it: they count as usable then."""
        devices = gpus_of(_gres(gres))
        whole = {kind: count for kind, count in devices.items() if not MIG_SLICE.search(kind)}
        if len(whole) < len(devices):
            self.reading.note("slices of MIG are not told as machines: name the whole devices under hardware.owned")
        kind = max(whole, key=lambda each: (bool(each), whole[each]), default="")  # "" is the sum of all
        first, *flags = (state or "idle").split("+")
        usable = bool(whole) and first in _USABLE and not _KEPT & set(flags)
        for name in islice(names, MOST_NODES):
            self.take_one(name, state, kind, whole[kind] if usable else 0, None, number)

    def take_one(
        self, name: str, state: str, device: str, devices: int, memory_bytes: float | None, number: int
    ) -> None:
        """A node with its devices, of which there are none that can be used where it is down.

        Parameters
        ----------
        name
            Of the node.
        state
            In the words of what told it; empty where nothing did.
        device
            As the file names it; empty where it does not.
        devices
            That can be used.  [count]
        memory_bytes
            Of one device, where it is told.  [B]
        number
            Line that it stands in.
        """
        if name in self.nodes:
            self.reading.skipped.add("a node that stands above (of another partition)", number)
        elif len(self.nodes) >= MOST_NODES:
            self.reading.skipped.add(f"more than {MOST_NODES:,} nodes", number)
        else:
            self.reading.taken += 1
            self.states[state] += 1
            node = Node(name=name, device=device, devices=devices, memory_bytes=memory_bytes)
            self.nodes[name] = node if devices else None

    def told(self, source: Source) -> Reading:
        """The reading with its figures and what is owned."""
        if not self.reading.taken:
            raise refused(source, "nothing-taken", f"no node of {source.name} could be taken", self.ask)
        self.reading.show("nodes", len(self.nodes))
        for state, count in self.states.most_common(12):
            self.reading.show(f"nodes {state or 'without a state'}", count)
        if self.states[""]:
            self.reading.note(f"{self.states['']:,} nodes tell no state: they count as usable")
        found = [node for node in self.nodes.values() if node is not None]
        if found:
            told_of(self.reading, found)
        else:
            self.reading.note(f"no usable node tells of its devices: {self.ask} does")
        return self.reading


def read_sinfo(source: Source, asked: Asked) -> Reading:
    """Nodes by state, and the machines of those with devices."""
    reading = Reading(kind="sinfo", title="nodes of Slurm", source=source.name, tool="sinfo", of="nodes")
    places: dict[str, int] = {}
    separator: str | None = None
    found = NodesByName(reading)
    bare = _without_head([line for line in source.first_lines if line.strip()][:100]) or {"node": 0, "state": 1}
    for number, line in enumerate(source.lines(), start=1):
        again, between = _head(line)
        if again:
            places, separator = again, between
        if again or not line.strip():
            continue
        at = places or bare
        words = _words(line, separator if places else _separator(line))
        cells = {role: words[place] for role, place in at.items() if place < len(words)}
        state = _state(cells.get("state", ""))
        if not cells.get("node") or ("state" in at and not state) or ("gres" in at and "gres" not in cells):
            reading.skipped.add("no node with a state", number)
        else:
            found.take(hosts_of(cells["node"][:4000]), state, cells.get("gres", ""), number)
    return found.told(source)


def recognise_shown(source: Source) -> Match:
    """NodeName=, State= and Gres= of scontrol, or the nodes of its JSON."""
    head = source.head_text
    if head.lstrip().startswith("{"):
        keys = head_keys(source)
        more = ("hostname", "architecture") if "architecture" in keys else ("sinfo",)
        return fit({each: each in keys for each in ("nodes", "gres", "state", *more)},
                   tool="scontrol show node --json", ceiling=0.95)  # fmt: skip
    begins = bool(re.search(r"^NodeName=\S", head, re.M))
    return fit({"NodeName=": begins, "State=": begins and "State=" in head, "Gres= or CfgTRES=":
                begins and ("Gres=" in head or "CfgTRES=" in head)}, tool="scontrol", ceiling=0.96)  # fmt: skip


def read_shown(source: Source, asked: Asked) -> Reading:
    """Nodes by state, and the machines of those with devices."""
    reading = Reading(kind="scontrol-nodes", title="nodes of Slurm", source=source.name, tool="scontrol", of="nodes")
    found = NodesByName(reading)
    shown = _json_nodes(source) if source.head_text.lstrip().startswith("{") else _shown_nodes(source)
    configured = bool(_CONF.search(source.head_text))
    if configured:
        reading.note("slurm.conf says which machines there are meant to be: none of them is known to be down")
    for number, node in shown:
        gres, state = node.get("Gres", ""), _state(node.get("State", ""))
        state = "" if configured and state in ("", "unknown") else state
        if not node.get("NodeName") or not (state or configured):
            reading.skipped.add("no node with a state", number)
        else:
            gres = gres if gpus_of(_gres(gres)) else node.get("CfgTRES", "")
            found.take(hosts_of(node["NodeName"]), state, gres, number)
    return found.told(source)


def _shown_nodes(source: Source) -> Iterator[tuple[int, dict[str, str]]]:
    node: dict[str, str] = {}
    begin = 0
    for number, line in enumerate(source.lines(), start=1):
        fields = dict(_FIELD.findall(line[:20_000]))
        if "NodeName" in fields:
            if node:
                yield begin, node
            node, begin = {}, number
        if begin:
            node |= fields
    if node:
        yield begin, node


def _json_nodes(source: Source) -> Iterator[tuple[int, dict[str, str]]]:
    whole = document_of(source)
    whole = whole if isinstance(whole, dict) else {}
    rows: list[Any] = next((whole[key] for key in ("nodes", "sinfo") if isinstance(whole.get(key), list)), [])
    for number, row in enumerate(rows, start=1):
        row = row if isinstance(row, dict) else {}
        names, gres, shown = (row.get(key) for key in ("nodes", "gres", "node"))  # of sinfo, each with more below
        state = shown.get("state") if isinstance(shown, dict) else row.get("state")
        listed = names.get("nodes") if isinstance(names, dict) else None
        yield number, {
            "NodeName": ",".join(map(str, listed)) if isinstance(listed, list) else str(row.get("name") or ""),
            "Gres": str((gres.get("total") if isinstance(gres, dict) else gres) or ""),
            "CfgTRES": str(row.get("tres") or ""),
            "State": "+".join(map(str, state)) if isinstance(state, list) else str(state or ""),
        }  # fmt: skip


_PBS_FIELD = re.compile(r"\s+([A-Za-z_][\w.]{0,100}) = (.*)$")
_PBS_NAME = re.compile(r"[A-Za-z0-9][\w.\[\]-]{0,200}")
_AVAILABLE = "resources_available."
_COUNT = re.compile(r"[0-9]{1,6}")
_PBS_GPUS = ("ngpus", "gpus", "ngpu", "accelerators")
# what sites call the resource that tells the kind of a device: PBS has none of its own
_PBS_TYPES = ("gputype", "gpu_type", "gpu_model", "gpumodel", "accelerator_model", "accelerator_type", "gpu_name")
_PRODUCT = re.compile(r"gpu_product_name=([^;,]{2,80})")
_MEMORY = re.compile(r"gpu_memory_total=(\d{3,7} MB)")
_PBS_USABLE = {"free", "job-busy", "job-exclusive", "busy", "resv-exclusive", "job-sharing", "provisioning", "sleep"}
_PBS_ASK = "pbsnodes -a, where a resource such as gputype says which devices they are"


def _pbs_text_nodes(source: Source) -> Iterator[tuple[int, dict[str, str]]]:
    """Line and fields of each node: its name stands at the margin, its fields below it."""
    node: dict[str, str] = {}
    begin = 0
    for number, line in enumerate(source.lines(), start=1):
        if field := _PBS_FIELD.match(line[:20_000]):
            if node:
                node.setdefault(field.group(1), field.group(2).strip())
        elif line.strip() and not line[0].isspace():
            if node:
                yield begin, node
            node, begin = ({"": line.strip()}, number) if _PBS_NAME.fullmatch(line.strip()) else ({}, number)
    if node:
        yield begin, node


def _pbs_json_nodes(source: Source) -> Iterator[tuple[int, dict[str, str]]]:
    whole = document_of(source)
    nodes: Any = whole.get("nodes") if isinstance(whole, dict) else None
    for number, (name, row) in enumerate(nodes.items() if isinstance(nodes, Mapping) else (), start=1):
        row = row if isinstance(row, Mapping) else {}
        held = row.get("resources_available")
        resources = held.items() if isinstance(held, Mapping) else ()
        yield number, {"": str(name)[:200], "state": str(row.get("state") or "")} | {
            f"{_AVAILABLE}{key}": str(value) for key, value in resources}  # fmt: skip


def _pbs_devices(node: Mapping[str, str]) -> tuple[str, int, float | None]:
    """Kind, count and memory of a node's devices, by its resources or by what Torque's mom shows of them."""
    counts = [node.get(f"{_AVAILABLE}{key}", "") for key in _PBS_GPUS] + [node.get("gpus", "")]
    count = next((int(each) for each in counts if _COUNT.fullmatch(each)), 0)
    kinds = [node.get(f"{_AVAILABLE}{key}", "") for key in _PBS_TYPES]
    shown = node.get("gpu_status", "")
    product, memory = _PRODUCT.search(shown), _MEMORY.search(shown)
    kind = next((each for each in kinds if each), product.group(1) if product else "")
    return kind[:200], count, mebibytes(memory.group(1).replace("MB", "MiB")) if memory else None


def recognise_pbs(source: Source) -> Match:
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


def read_pbs(source: Source, asked: Asked) -> Reading:
    """Nodes by state, and the machines of those with devices."""
    reading = Reading(kind="pbsnodes", title="nodes of PBS", source=source.name, tool="pbsnodes", of="nodes")
    found = NodesByName(reading, _PBS_ASK)
    for number, node in _pbs_json_nodes(source) if source.head_text.lstrip()[:1] == "{" else _pbs_text_nodes(source):
        states = [each.strip().lower() for each in node.get("state", "").split(",") if each.strip()]
        kind, count, memory_bytes = _pbs_devices(node)
        if not states:
            reading.skipped.add("no node with a state", number)
            continue
        usable = set(states) <= _PBS_USABLE
        found.take_one(node[""], "+".join(states)[:60], kind, count if usable else 0, memory_bytes, number)
    return found.told(source)


KINDS = (
    Kind(name="sinfo", title="nodes of Slurm", looks_for="nodes and their states or devices (sinfo -N)",
         recognise=recognise_sinfo, read=read_sinfo),
    Kind(name="scontrol-nodes", title="nodes of Slurm, one by one",
         looks_for="NodeName=, State= and Gres= (scontrol show node), or its JSON",
         recognise=recognise_shown, read=read_shown),
    Kind(name="pbsnodes", title="nodes of PBS",
         looks_for="names of nodes with state = and resources_available or np below them (pbsnodes -a), or its JSON",
         recognise=recognise_pbs, read=read_pbs),
)  # fmt: skip
