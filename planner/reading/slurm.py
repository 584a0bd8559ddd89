"""What Slurm tells: jobs of sacct as a history of demand, and nodes of sinfo by their state."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime

from planner.reading.inventory import MOST_NODES, Node, told_of
from planner.reading.job_history import MOST_JOBS, MOST_KEYS, History, Job, state_of
from planner.reading.kinds import NOTHING, Asked, Kind, Match
from planner.reading.points import number_of
from planner.reading.reading import Reading
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, printable, rows_of

_ROLES = {
    "id": ("jobid", "jobidraw"),
    "state": ("state",),
    "elapsed": ("elapsed",),
    "seconds": ("elapsedraw",),
    "start": ("start",),
    "end": ("end",),
    "submit": ("submit",),
    "tres": ("alloctres", "allocgres"),
    "wanted": ("reqtres", "reqgres"),
    "nodes": ("nnodes", "allocnodes"),
    "cpus": ("alloccpus", "ncpus"),
    "partition": ("partition",),
}
_ELAPSED = re.compile(r"^(?:(\d{1,5})-)?(?:(\d{1,3}):)?(\d{1,2}):(\d{2})(?:\.\d+)?$")
_GPU = re.compile(r"(?:^|,)(?:gres/)?gpu(?::([A-Za-z][\w.-]{0,60}))?[=:](\d{1,7})(?=$|,|\()")
_LONGEST_DAYS = 3660
_STATES = {
    "allocated", "alloc", "completing", "comp", "down", "drained", "drain", "draining", "drng", "fail", "failing",
    "future", "idle", "maint", "mixed", "mix", "perfctrs", "planned", "plnd", "power_down", "powered_down", "reserved",
    "resv", "unknown", "reboot", "inval", "blocked",
}  # fmt: skip
_USABLE = {"allocated", "alloc", "completing", "comp", "idle", "mixed", "mix", "planned", "plnd", "reserved", "resv"}
_NODES_ROLES = {
    "node": ("nodelist", "hostnames", "nodehost", "nodename", "node", "hostname"),
    "state": ("statelong", "state", "statecompact"),
    "gres": ("gres",),
}


def recognise_sacct(source: Source) -> Match:
    """JobID with a state and the time that it took."""
    names, _ = header_of(source)
    places = places_of(names, _ROLES)
    marks = {
        "JobID": "id" in places,
        "State": "state" in places,
        "Elapsed": "elapsed" in places or "seconds" in places,
        "AllocTRES, NNodes or another column of sacct": bool({"tres", "nodes", "cpus", "wanted"} & set(places)),
    }
    there = tuple(mark for mark, is_there in marks.items() if is_there)
    missing = tuple(mark for mark, is_there in marks.items() if not is_there)
    if not marks["JobID"] or not marks["Elapsed"]:
        return Match(score=0.2 * len(there), found=there, missing=missing)
    return Match(score=0.97 if not missing else 0.8, found=there, missing=missing, tool="sacct")


def elapsed_s(text: str) -> float | None:
    """Seconds of D-HH:MM:SS; None for anything else.  [s]"""
    found = _ELAPSED.match(text)
    if not found:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60.0 + seconds


def gpus_of(tres: str) -> dict[str, int]:
    """Devices of a list of resources by type, "" for what stands without one: gres/gpu=8,gres/gpu:a100=8."""
    found: dict[str, int] = {}
    for kind, count in _GPU.findall(tres[:2000]):
        found[kind.lower()] = found.get(kind.lower(), 0) + int(count)
    return found


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None) if text and text != "Unknown" else None
    except ValueError:
        return None


def _job(row: dict[str, str], types: Counter[str]) -> Job | str:
    seconds = number_of(row.get("seconds", ""))
    if seconds is None:
        seconds = elapsed_s(row.get("elapsed", ""))
    if seconds is None or seconds < 0:
        return "no time that it took"
    if seconds > _LONGEST_DAYS * 86_400:
        return f"longer than {_LONGEST_DAYS} days"
    state = state_of(row.get("state", ""))
    if row.get("state") and not state:
        return "no state of a job"
    gpus = gpus_of(row.get("tres", ""))
    if not gpus and state == "PENDING":
        gpus = gpus_of(row.get("wanted", ""))
    typed = sum(count for kind, count in gpus.items() if kind)
    for kind, count in gpus.items():
        if kind and (kind in types or len(types) < MOST_KEYS):
            types[kind] += count
    start, submit = _time(row.get("start", "")), _time(row.get("submit", ""))
    wait_s = (start - submit).total_seconds() if start and submit else None
    return Job(state=state, gpus=gpus.get("", typed), seconds=seconds, start=start,
               wait_s=wait_s,
               partition=row.get("partition", "")[:100])  # fmt: skip


def read_sacct(source: Source, asked: Asked) -> Reading:
    """Jobs and GPU-hours by day; steps belong to their job and count in it."""
    reading = Reading(kind="sacct", title="jobs of Slurm", source=source.name, tool="sacct", of="jobs")
    history = History()
    seen: set[int] = set()
    types: Counter[str] = Counter()
    columns: dict[str, str] = {}
    for line, row in rows_of(source, _ROLES, ("id",), reading.skipped, quoted=False):
        columns = columns or row
        number = row.get("id", "")
        if not re.match(r"\d", number):
            reading.skipped.add("no number of a job", line)
        elif "." in number:
            reading.skipped.add("a step, which counts in its job", line)
        elif (key := hash((number, row.get("start", ""), row.get("submit", "")))) in seen:
            reading.skipped.add("a job that stands twice, by its number and times", line)
        elif len(seen) >= MOST_JOBS:
            reading.skipped.add(f"more than {MOST_JOBS:,} jobs", line)
        else:
            job = _job(row, types)
            if isinstance(job, str):
                reading.skipped.add(job, line)
                continue
            seen.add(key)
            reading.taken += 1
            history.add(job)
    if not reading.taken:
        hint = "sacct -a -X --parsable2 --format=JobID,State,ElapsedRaw,Submit,Start,End,AllocTRES,NNodes"
        raise refused(source, "nothing-taken", f"no job of {source.name} could be taken", hint)
    history.told(reading)
    if types:
        reading.understood["types of GPUs"] = ", ".join(printable(kind) for kind, _ in types.most_common(10))
    reading.understood["days"] = "as written: sacct gives times of the cluster without a zone"
    if "tres" not in columns and "wanted" not in columns:
        reading.note("no column tells of devices: ask sacct for AllocTRES too")
    elif not history.gpu_jobs:
        reading.note("no job has gres/gpu among its resources: there are no GPU-hours")
    return reading


def recognise_sinfo(source: Source) -> Match:
    """Nodes with their states, with a first line of names or without one."""
    lines = [line for line in source.first_lines if line.strip()][:100]
    if not lines or not source.is_text:
        return NOTHING
    places = places_of(_words(lines[0]), _NODES_ROLES)
    if "node" in places and "state" in places:
        named = [_state(_words(line), places["state"]) for line in lines[1:]]
    else:
        named = [_state(words, 1) if len(words) == 2 else "" for words in map(_words, lines)]
    share = sum(bool(state) for state in named) / max(len(named), 1)
    if share < 0.8:
        return Match(score=0.3 * share, missing=("states of nodes",))
    return Match(score=0.95, found=("nodes", "states"), tool="sinfo")


def _words(line: str) -> list[str]:
    line = line.strip()[:4000]
    separator = next((each for each in "|,;" if each in line and "[" not in line), None)
    return [word.strip() for word in line.split(separator)]


def _state(words: list[str], place: int) -> str:
    state = re.sub(r"[*~#!%$@+^-]+$", "", words[place].lower()) if len(words) > place else ""
    return state if state.split("+")[0] in _STATES else ""


def read_sinfo(source: Source, asked: Asked) -> Reading:
    """Nodes by state, and the machines of those with devices."""
    reading = Reading(kind="sinfo", title="nodes of Slurm", source=source.name, tool="sinfo", of="nodes")
    places: dict[str, int] = {}
    states: Counter[str] = Counter()
    nodes: dict[str, Node | None] = {}
    for number, line in enumerate(source.lines(), start=1):
        words = _words(line)
        again = places_of(words, _NODES_ROLES)
        if "node" in again and "state" in again:
            places = again
            continue
        if not line.strip():
            continue
        at = places or {"node": 0, "state": 1}
        state = _state(words, at["state"])
        name = words[at["node"]][:300] if len(words) > at["node"] else ""
        if not state or not name:
            reading.skipped.add("no node with a state", number)
        elif name in nodes:
            reading.skipped.add("a node that stands above (of another partition)", number)
        elif len(nodes) >= MOST_NODES:
            reading.skipped.add(f"more than {MOST_NODES:,} nodes", number)
        else:
            reading.taken += 1
            states[state] += 1
            gres = re.sub(r"\([^)]*\)", "", words[at["gres"]]) if "gres" in at and len(words) > at["gres"] else ""
            devices = gpus_of(gres)
            kind = max(devices, key=lambda each: devices[each], default="")
            usable = bool(devices) and state.split("+")[0] in _USABLE
            nodes[name] = Node(name=name, device=kind, devices=devices[kind]) if usable else None
    if not reading.taken:
        raise refused(
            source, "nothing-taken", f"no node of {source.name} could be taken", "sinfo -N -O NodeList,StateLong,Gres"
        )
    reading.show("nodes", len(nodes))
    for state, count in states.most_common(12):
        reading.show(f"nodes {state}", count)
    found = [node for node in nodes.values() if node is not None]
    if found:
        told_of(reading, found)
    else:
        reading.note("no usable node tells of its devices: sinfo -N -O NodeList,StateLong,Gres does")
    return reading


KINDS = (
    Kind(name="sacct", title="jobs of Slurm", looks_for="a first line of JobID, State, Elapsed, AllocTRES … (sacct)",
         recognise=recognise_sacct, read=read_sacct),
    Kind(name="sinfo", title="nodes of Slurm", looks_for="nodes and their states (sinfo -N)",
         recognise=recognise_sinfo, read=read_sinfo),
)  # fmt: skip
