"""What Slurm tells of jobs as a history of demand: sacct and squeue as tables, in columns or as JSON, scontrol's."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from planner.reading.columns import epoch_unit_s, plain
from planner.reading.inventory import FIRST, MOST_JOBS, MOST_KEYS, History, Job, state_of
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import Asked, Kind, Match, Reading, Skips, fit
from planner.reading.measured_points import number_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, printable, rows_of, told

# columns of sacct, then those of squeue and of the tables that sacct reads
_ROLES = {
    "id": ("jobid", "jobidraw", "idjob"),
    "state": ("state", "st", "statecompact"),
    "elapsed": ("elapsed", "time", "timeused"),
    "seconds": ("elapsedraw",),
    "start": ("start", "starttime", "timestart"),
    "end": ("end", "endtime", "timeend"),
    "submit": ("submit", "submittime", "timesubmit"),
    "tres": ("alloctres", "allocgres", "gresused", "tresalloc"),
    "each": ("trespernode", "gres"),  # of each node
    "wanted": ("reqtres", "reqgres"),
    "nodes": ("nnodes", "allocnodes", "nodes", "nodesalloc"),
    "cpus": ("alloccpus", "ncpus", "cpus"),
    "partition": ("partition",),
}
_NUMBERED = (
    "PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
    "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY",
)  # fmt: skip
_COMPACT = {"R": "RUNNING", "PD": "PENDING", "CG": "COMPLETING", "S": "SUSPENDED", "CF": "CONFIGURING"}  # of squeue
# fields of scontrol show job, an older name of what a job holds among them
_FIELDS = {
    "JobId": "id", "JobState": "state", "RunTime": "elapsed", "SubmitTime": "submit", "StartTime": "start",
    "EndTime": "end", "Partition": "partition", "NumNodes": "nodes", "AllocTRES": "tres", "TRES": "tres",
    "ReqTRES": "wanted", "TresPerNode": "each", "Gres": "each",
}  # fmt: skip
_FIELD = re.compile(rf"(?:^|\s)({'|'.join(_FIELDS)})=(\S*)")
_RULER = re.compile(r"-+(?: +-+)*\s*")  # what sacct prints below its columns, without --parsable
_QUOTED = re.compile(r'(?m),"[^"\n]*"(?:,|$)')  # a cell of a table by commas
_COUNT = re.compile(r"[0-9]{1,12}")
MIG_SLICE = re.compile(r"\d+g\.\d+gb")
_ELAPSED = re.compile(r"^(?:(\d{1,5})-)?(?:(\d{1,3}):)?(\d{1,2}):(\d{2})(?:\.\d+)?$")
_GPU = re.compile(r"(?:^|,)(?:gres[/:])?gpu(?::([A-Za-z][\w.-]{0,60}))?[=:](\d{1,7})(?=$|,|\()")
_LONGEST_DAYS = 3660
_NUMBER = re.compile(r"\d{1,12}(?:[_+][^|.]{1,60})?(?:\.\w{1,20})?")  # of a job or a step
_MOST_OF = 0.9


def recognise_sacct(source: Source) -> Match:
    """JobID with a state and the time that it took."""
    if source.head_text.lstrip().startswith("{"):
        keys = head_keys(source)
        of_controller = {each: each in keys for each in ("jobs", "job_id", "job_state", "submit_time")}
        if all(of_controller.values()):
            return fit(of_controller, tool="scontrol or squeue --json", ceiling=0.97)
        return fit({each: each in keys for each in ("jobs", "job_id", "submission", "elapsed", "tres")},
                   tool="sacct --json", ceiling=0.97)  # fmt: skip
    if re.search(r"^JobId=\d", source.head_text, re.M):
        head = source.head_text
        return fit({each: each in head for each in ("JobId=", "JobState=", "RunTime=")}, tool="scontrol", ceiling=0.97)
    places = places_of(header_of(source)[0] or _columns(source)[0], _ROLES)
    if "id" not in places and (rows := _unnamed(source)):
        if _roles_of(rows):
            return Match(score=0.85, found=("rows of jobs",), tool="sacct -n")
        return Match(score=0.5, found=("rows of jobs",), missing=("a first line of names: sacct without -n",))
    marks = {
        "JobID": "id" in places,
        "State": "state" in places,
        "Elapsed": bool({"elapsed", "seconds"} & set(places)) or {"start", "end"} <= set(places),
        "AllocTRES, NNodes or another column of sacct": bool({"tres", "each", "nodes", "cpus", "wanted"} & set(places)),
    }
    there = tuple(mark for mark, is_there in marks.items() if is_there)
    missing = tuple(mark for mark, is_there in marks.items() if not is_there)
    if not marks["JobID"] or not marks["Elapsed"]:
        return Match(score=0.2 * len(there), found=there, missing=missing)
    return Match(score=0.97 if not missing else 0.8, found=there, missing=missing, tool="sacct")


def _columns(source: Source) -> tuple[list[str], list[slice]]:
    """Names that stand above columns of text, and the places of these where a ruler tells them; none of a table."""
    lines = [line for line in source.first_lines[:5] if line.strip()]
    for line, below in zip(lines, [*lines[1:], ""]):
        names = line.split()
        if "id" not in places_of(names, _ROLES) or set("|,;\t") & set(line):
            continue
        if not _RULER.fullmatch(below):
            return names, []
        spans = [slice(*found.span()) for found in re.finditer("-+", below)]
        return [line[span].strip() for span in spans], spans
    return [], []


def _printed_rows(source: Source, skipped: Skips) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of columns of text: cut where a ruler stands, else at blanks, of which the last cell may hold some."""
    names, spans = _columns(source)
    places = places_of(names, _ROLES)
    for number, line in enumerate(source.lines(), start=1):
        cells = [line[span].strip() for span in spans] or line.split(None, max(len(names) - 1, 0))
        if not line.strip() or _RULER.fullmatch(line) or "id" in places_of(line.split(), _ROLES):
            continue
        if len(cells) != len(names):
            skipped.add("more or fewer cells than columns", number)
            continue
        row = {role: told(cells[place]) for role, place in places.items()}
        if row.get("tres", "").endswith("+"):
            skipped.add("resources that are cut short: sacct --parsable2 gives all of them", number)
            continue
        yield number, row


def _json_rows(source: Source, skipped: Skips) -> Iterator[tuple[int, dict[str, str]]]:
    """Jobs of sacct --json, as rows."""
    number = 0
    for part in source.parts:
        whole = document_of(part)
        for job in whole.get("jobs") or () if isinstance(whole, dict) else ():
            number += 1
            if isinstance(job, dict) and "job_state" in job:
                yield number, _of_controller(job, whole)
                continue
            if not isinstance(job, dict) or not all(isinstance(job.get(key), dict) for key in ("time", "tres")):
                skipped.add("JSON, but no job", number)
                continue
            times, state = job["time"], job.get("state")
            current = state.get("current") if isinstance(state, dict) else state
            held = job["tres"].get("allocated")
            yield number, {
                "id": str(job.get("job_id", "")), "seconds": str(times.get("elapsed", "")),
                "state": str(current[0] if isinstance(current, list) and current else current or ""),
                "start": str(times.get("start") or ""), "submit": str(times.get("submission") or ""),
                "partition": str(job.get("partition") or ""), "tres": ",".join(
                    f"gres/{each.get('name')}={each.get('count')}" for each in held if isinstance(each, dict)
                    and each.get("type") == "gres") if isinstance(held, list) else "",
            }  # fmt: skip


def _set(value: Any) -> str:
    """A number of Slurm's JSON, which newer versions write with whether it is set; "" for none."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else ""


def _of_controller(job: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, str]:
    """A job of scontrol or squeue --json, as a row; one that runs has run until the answer was made."""
    state = job["job_state"]
    state = str(state[0] if isinstance(state, list) and state else state or "")
    start, end = _set(job.get("start_time")), _set(job.get("end_time"))
    if state in ("RUNNING", "COMPLETING", "SUSPENDED"):  # the end that is told is its limit
        end = _set(whole.get("last_update"))
    seconds = str(max(int(end) - int(start), 0)) if start and end and state != "PENDING" else ""
    row = {
        "id": _set(job.get("job_id")),
        "state": state,
        "start": start,
        "submit": _set(job.get("submit_time")),
        "partition": str(job.get("partition") or ""),
        "seconds": "0" if state == "PENDING" or not start else seconds,
    }
    held = {"tres": job.get("tres_alloc_str"), "wanted": job.get("tres_req_str")}
    return row | {role: str(value) for role, value in held.items() if isinstance(value, str)}


def _shown_rows(source: Source) -> Iterator[tuple[int, dict[str, str]]]:
    """Jobs of scontrol show job, each over several lines or on one."""
    job: dict[str, str] = {}
    begin = 0
    for number, line in enumerate(source.lines(), start=1):
        fields: dict[str, str] = {}
        for name, value in _FIELD.findall(line[:20_000]):
            fields.setdefault(_FIELDS[name], "" if value in ("(null)", "N/A") else value)
        if line.startswith("JobId="):
            if job:
                yield begin, job
            job, begin = {}, number
        if begin:
            job = fields | job
    if job:
        yield begin, job


def _unnamed(source: Source) -> list[list[str]]:
    """Cells of the first rows of sacct -n -P: numbers and states of jobs between bars; none of anything else."""
    rows = [line.split("|") for line in source.first_lines if line.strip()]
    jobs = [row for row in rows if len(row) == len(rows[0]) > 3 and _NUMBER.fullmatch(row[0])]
    named = [row for row in jobs if any(state_of(cell) in _NUMBERED for cell in row)]
    return jobs if rows and len(named) >= _MOST_OF * len(rows) else []


def _roles_of(rows: list[list[str]]) -> dict[str, int]:
    """Columns of rows without names; none where their contents leave something open.

    A start and an end are as far apart as the job took; of two columns of resources either may be what it held.
    """
    columns = list(zip(*rows))
    found = {"id": 0}
    for at, column in enumerate(columns):
        if all(not cell or state_of(cell) in _NUMBERED for cell in column) and any(column):
            found.setdefault("state", at)
    held = [at for at, column in enumerate(columns) if any("cpu=" in cell or "gres/" in cell for cell in column)]
    times = {at: [_time(cell) for cell in column] for at, column in enumerate(columns) if any(map(_written, column))}
    lasts = {at: [_seconds_of(cell) for cell in column] for at, column in enumerate(columns[1:], start=1)}
    surest = _MOST_OF
    for first, last in itertools.permutations(times, 2):
        apart = [(b - a).total_seconds() if a and b else None for a, b in zip(times[first], times[last])]
        ended = [at for at, seconds in enumerate(apart) if seconds]
        for place, seconds in lasts.items():
            share = sum(seconds[at] == apart[at] for at in ended) / max(len(ended), 1)
            if share > surest or (share == surest and "start" not in found):
                surest = share
                others = [at for at in times if at not in (first, last)]
                found |= {"start": first, "end": last, "elapsed": place, "seconds": place}
                found.pop("submit", None)
                found |= {"submit": others[0]} if len(others) == 1 else {}
    return found | {"tres": held[0]} if {"state", "start"} <= set(found) and len(held) == 1 else {}


def _written(cell: str) -> bool:
    return "T" in cell and _time(cell) is not None


def _seconds_of(cell: str) -> float | None:
    return float(cell) if _COUNT.fullmatch(cell) else elapsed_s(cell)


def _unnamed_rows(source: Source, skipped: Skips) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of sacct -n -P by what their columns hold."""
    head = _unnamed(source)
    places = _roles_of(head)
    for number, line in enumerate(source.lines(), start=1):
        cells = line.split("|")
        if not line.strip():
            continue
        if len(cells) != len(head[0]):
            skipped.add("more or fewer cells than columns", number)
            continue
        row = {role: told(cells[at]) for role, at in places.items()}
        if ":" in row["elapsed"]:
            del row["seconds"]
        yield number, row


def _rows(source: Source, skipped: Skips) -> Iterator[tuple[int, dict[str, str]]]:
    if source.head_text.lstrip().startswith("{"):
        return _json_rows(source, skipped)
    if re.search(r"^JobId=\d", source.head_text, re.M):
        return _shown_rows(source)
    if _columns(source)[0]:
        return _printed_rows(source, skipped)
    if "id" not in places_of(header_of(source)[0], _ROLES) and _roles_of(_unnamed(source)):
        return _unnamed_rows(source, skipped)
    names, separator = header_of(
        source
    )  # sacct quotes nothing; tables of the database and those written anew are quoted
    quoted = "gresused" in map(plain, names) or (separator == "," and bool(_QUOTED.search(source.head_text)))
    return rows_of(source, _ROLES, ("id",), skipped, quoted=quoted)


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
    if _COUNT.fullmatch(text):  # SLURM_TIME_FORMAT=%s, JSON and tables of the database
        return FIRST + timedelta(seconds=int(text)) if epoch_unit_s(int(text)) == 1.0 else None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None) if text and text != "Unknown" else None
    except ValueError:
        return None


def _job(row: dict[str, str], types: Counter[str]) -> Job | str:
    seconds = number_of(row.get("seconds", ""))
    if seconds is None:
        seconds = elapsed_s(row.get("elapsed", ""))
    start, end, submit = (_time(row.get(role, "")) for role in ("start", "end", "submit"))
    if seconds is None and start and end:
        seconds = (end - start).total_seconds()
    if seconds is None or seconds < 0:
        return "no time that it took"
    if seconds > _LONGEST_DAYS * 86_400:
        return f"longer than {_LONGEST_DAYS} days"
    numbered = int(row["state"]) if _COUNT.fullmatch(row.get("state", "")) else len(_NUMBERED)
    state = _NUMBERED[numbered] if numbered < len(_NUMBERED) else state_of(row.get("state", ""))
    state = _COMPACT.get(row.get("state", ""), state)
    if row.get("state") and not state:
        return "no state of a job"
    gpus = gpus_of(row.get("tres", ""))
    if not gpus and row.get("each"):
        nodes = int(min(number_of(row.get("nodes", "")) or 1, MOST_KEYS))
        gpus = {kind: count * nodes for kind, count in gpus_of(row["each"]).items()}
    if state == "PENDING":
        start = None  # one that is told is a guess of the scheduler
    if not gpus and (state == "PENDING" or not {"tres", "each"} & set(row)):
        gpus = gpus_of(row.get("wanted", ""))
    typed = sum(count for kind, count in gpus.items() if kind)
    for kind, count in gpus.items():
        if kind and (kind in types or len(types) < MOST_KEYS):
            types[kind] += count
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
    epochs = 0
    if not header_of(source)[0] and _unnamed(source):
        reading.understood["columns"] = "by what they hold: start and end are as far apart as the job took"
    for line, row in _rows(source, reading.skipped):
        columns = columns or row
        epochs += row.get("start", "").isdecimal()
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
    if any(MIG_SLICE.search(kind) for kind in types):
        reading.note("some jobs hold slices of MIG: each slice counts as a GPU")
    reading.understood["days"] = (
        "in UTC: times are counted since 1970" if epochs
        else "as written: sacct gives times of the cluster without a zone"
    )  # fmt: skip
    if not {"tres", "wanted", "each"} & set(columns):
        reading.note("no column tells of devices: ask sacct for AllocTRES too")
    elif not {"tres", "each"} & set(columns):
        reading.note("no column tells what jobs held: what they asked for (ReqTRES) counts, also of those cancelled")
    elif not history.gpu_jobs:
        reading.note("no job has gres/gpu among its resources: there are no GPU-hours")
    return reading


KINDS = (
    Kind(name="sacct", title="jobs of Slurm",
         looks_for="a first line of JobID, State, Elapsed, AllocTRES … (sacct, squeue), their --json, scontrol's jobs",
         recognise=recognise_sacct, read=read_sacct),
)  # fmt: skip
