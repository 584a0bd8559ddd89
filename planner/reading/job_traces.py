"""Jobs and machines of published cluster traces: Alibaba, Acme, Helios, Philly and whatever names its columns so."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from planner.reading.columns import DayOrder, epoch_unit_s, iso_seconds, plain, unit_of, zone_of
from planner.reading.inventory import FIRST, MOST_JOBS, MOST_NODES, History, Job, Node, state_of, told_of
from planner.reading.jsonlines import document_of, head_keys, records_of
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading, Skips, fit
from planner.reading.measured_points import number_of
from planner.reading.requests import header_of, order_of
from planner.reading.slurm_jobs import elapsed_s
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, printable, records_by_role, rows_of, told

# role -> plain names of its column, the surest first
_ROLES: Mapping[str, Sequence[str]] = {
    "id": ("jobid", "jobname", "instid", "sourcetraceid", "taskname", "job", "name", "id"),
    "gpus": ("gpunum", "numgpu", "numgpus", "gpucount", "gpus", "ngpus", "gpu", "requestedgpus", "gpurequest"),
    "thousandths": ("gpumilli",),  # of one device
    "hundredths": ("plangpu",),  # of one device, of each instance
    "instances": ("instnum",),
    "submit": (
        "submittime",
        "submittedtime",
        "submissiontime",
        "submit",
        "creationtime",
        "arrivaltime",
        "timestamp",
        "submittimems",
        "submitted",
        "submittedat",
        "createdat",
        "queuedat",
    ),
    "start": ("starttime", "scheduledtime", "start", "starttimems", "started", "startedat"),
    "end": (
        "endtime",
        "deletiontime",
        "finishtime",
        "completiontime",
        "end",
        "endtimems",
        "finished",
        "finishedat",
        "ended",
        "endedat",
        "completed",
        "completedat",
    ),
    "seconds": (
        "duration",
        "runtime",
        "e2elatencys",
        "durations",
        "jobduration",
        "runtimes",
        "elapsed",
        "walltime",
        "durationsec",
        "durationseconds",
        "runtimesec",
        "runtimeseconds",
        "elapsedraw",
    ),
    "hours": ("durationhours", "durationh", "durationhrs", "runtimehours", "runtimeh", "elapsedhours"),
    "minutes": ("durationmin", "durationmins", "durationminutes", "runtimemin", "runtimeminutes"),
    "millis": ("durationms", "runtimems"),
    "wait": ("queue", "queuewaits", "queuetime", "waittime", "queuedelay"),
    "state": ("state", "status", "podphase", "jobstatus", "finalstatus"),
    "device": ("gputype", "gpuspec", "gpumodel"),
    "group": ("vc", "virtualcluster", "queuename", "partition", "type", "qos"),
}
_TIMED = ("submit", "start", "end")
_UNITS_S = (1.0, 60.0, 3600.0, 1e-3)
_WORDS = {1.0: "seconds", 60.0: "minutes", 3600.0: "hours", 1e-3: "milliseconds", 1e-6: "microseconds",
          1e-9: "nanoseconds"}  # fmt: skip
_MOST_TRIED = 1000  # jobs
_LENGTHS_S = {"seconds": 1.0, "hours": 3600.0, "minutes": 60.0, "millis": 1e-3}
_LONGEST_S = 3660 * 86_400.0
_LATEST_S = 5e9  # of a time: the year 2128, or 158 years into a trace
_MOST_GPUS = 1_000_000.0
_NEVER = "never started"


def _marks(names: Sequence[str]) -> dict[str, bool]:
    places = places_of(names, _ROLES)
    return {
        "a job": bool({"id", "state"} & set(places)),
        "its accelerators": bool({"gpus", "hundredths"} & set(places)),
        "when it came or started": bool({"submit", "start"} & set(places)),
        "how long it took, or its end": bool({"end", *_LENGTHS_S} & set(places)),
    }


def recognise_jobs(source: Source) -> Match:
    """A job with its accelerators, a time, and how long it took."""
    names, _ = header_of(source)
    tokens: list[Any] = []
    if not names:
        records = records_of(source)[:20]
        names = list(dict.fromkeys(name for record in records for name in record))
        tokens = [record.get(name) for record in records for name in ("prompt_tokens", "input_tokens")]
    if not names or any(token is not None for token in tokens):  # requests have accelerators, too
        return NOTHING
    if not tokens and {plain(name) for name in names} & {"prompttokens", "inputtokens", "inputlength"}:
        return NOTHING
    marks = _marks(names)
    # what has no accelerators may be calls or builds as well as jobs
    return fit(marks, tool="a trace of jobs", ceiling=0.96 if marks["its accelerators"] else 0.5)


def _rows(source: Source, skipped: Skips) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Line and cells by role, of a table or of JSON records."""
    if header_of(source)[0]:
        yield from rows_of(source, _ROLES, ("gpus",) if _has(source, "gpus") else ("hundredths",), skipped)
    else:
        yield from records_by_role(source, _ROLES, skipped)


def _row_times(source: Source) -> Iterator[str]:
    for _, row in _rows(source, Skips()):
        yield from (row[role] for role in _TIMED if role in row)


def _unit_of_lengths(source: Source, times: _Times) -> float:
    """The unit of lengths whose column names none: that in which most of the first jobs end when they end.  [s]"""
    fits, told_both = Counter[float](), 0
    for _, row in itertools.islice(_rows(source, Skips()), _MOST_TRIED):
        try:
            start, end = (times.of(row.get(role, "")) for role in ("start", "end"))
        except (ValueError, OverflowError):
            continue
        number = number_of(row.get("seconds", ""))
        if start and end and end > start and number:
            told_both += 1
            span = (end - start).total_seconds()
            fits.update(unit for unit in _UNITS_S if abs(number * unit - span) <= max(0.02 * span, 1.0))
    best, count = max(fits.items(), key=lambda each: each[1], default=(1.0, 0))
    return best if count > told_both / 2 and count > fits[1.0] else 1.0


def _has(source: Source, role: str) -> bool:
    return role in places_of(header_of(source)[0], _ROLES)


class _Times:
    """Times of a trace, of one form: written, epoch counts, or counted from its beginning."""

    def __init__(self, asked: Asked, order: DayOrder | None = None, named_s: float | None = None) -> None:
        self.zone = zone_of(asked.time_zone)
        self.order = order or DayOrder()
        self.form = ""
        self.unit_s = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}.get(asked.time_unit, named_s or 1.0)

    def of(self, text: str) -> datetime | None:
        """A time; `ValueError` for one that is none, or of another form than those before it."""
        number = number_of(text) if text else None
        if not text or text in ("-1", "-1.0"):
            return None
        if number is None:
            form, seconds = "written", iso_seconds(text, self.zone, self.order.day_first)
        elif (unit := epoch_unit_s(number)) is not None and self.unit_s in (1.0, unit):
            form, seconds = "epoch", number * unit
        else:
            form, seconds = "counted", number * self.unit_s
        if self.form and form != self.form:
            raise ValueError("another form")
        if not 0 <= seconds <= _LATEST_S:
            raise ValueError("out of range")
        self.form = form
        return FIRST + timedelta(seconds=seconds)


def read_jobs(source: Source, asked: Asked) -> Reading:
    """Jobs and GPU-hours by day."""
    reading = Reading(
        kind="job-trace", title="jobs of a cluster", source=source.name, tool="a trace of jobs", of="jobs"
    )
    names = header_of(source)[0] or [*dict.fromkeys(name for row in records_of(source)[:20] for name in row)]
    timed = [names[at] for role, at in places_of(names, _ROLES).items() if role in _TIMED]
    order, named_s = order_of(source, _row_times(source)), next(map(unit_of, timed), None)
    times = _Times(asked, order, named_s)
    length_s = _unit_of_lengths(source, _Times(asked, order, named_s))
    if length_s != 1.0:
        reading.understood["lengths"] = f"in {_WORDS[length_s]}, as most jobs' begins and ends tell"
    history = History()
    devices: Counter[str] = Counter()
    seen: set[int] = set()
    for line, row in _rows(source, reading.skipped):
        key = hash((row.get("id", ""), row.get("submit", ""), row.get("start", ""), row.get("end", "")))
        job = _job(row, times, length_s)
        if row.get("id") and key in seen:
            reading.skipped.add("a job that stands twice, by its name and times", line)
        elif isinstance(job, str):
            reading.skipped.add(job, line)
        elif reading.taken >= MOST_JOBS:
            reading.skipped.add(f"more than {MOST_JOBS:,} jobs", line)
        else:
            seen.add(key)
            reading.taken += 1
            history.counted = times.form == "counted"
            history.add(job)
            device = row.get("device", "")[:60]
            if device and job.gpus and (device in devices or len(devices) < 100):
                devices[device] += 1
    if not reading.taken:
        raise _nothing(source, reading)
    history.told(reading)
    _said(reading, times)
    if devices:
        reading.understood["devices"] = ", ".join(
            f"{printable(name)} of {n:,} jobs" for name, n in devices.most_common(8)
        )
    if history.sizes and any(size % 1 for size in history.sizes):
        reading.note("some jobs hold shares of a device: GPU-hours count the share")
    return reading


def _job(row: Mapping[str, str], times: _Times, length_s: float = 1.0) -> Job | str:
    """A job, or why it is none."""
    gpus = _gpus(row)
    if gpus is None:
        return "no number of accelerators"
    try:
        submit, start, end = (times.of(row.get(role, "")) for role in _TIMED)
    except (ValueError, OverflowError):
        return "a time that is none, or of another form than those before it"
    seconds, wait = _length_s(row, length_s), number_of(row.get("wait", ""))
    if seconds is None and start and end:
        seconds = (end - start).total_seconds()
    if wait is None and submit and start:
        wait = (start - submit).total_seconds()
    if start is None and submit is not None and wait is not None and abs(wait) <= _LONGEST_S:
        start = submit + timedelta(seconds=wait)
    if seconds is None:
        return _NEVER if start is None else "no end, and no time that it took"
    if seconds < 0:
        return "it ends before it starts"
    if seconds > _LONGEST_S:
        return "longer than ten years"
    state = state_of(row.get("state", ""))
    return Job(state=state, gpus=gpus, seconds=seconds, start=start or submit,
               wait_s=wait if wait is not None and abs(wait) <= _LONGEST_S else None,
               partition=row.get("group", "")[:100])  # fmt: skip


def _length_s(row: Mapping[str, str], plain_s: float) -> float | None:
    """How long a job took, by itself: a number in the unit of its column, or hours, minutes and seconds.  [s]"""
    for role, unit_s in _LENGTHS_S.items():
        number = number_of(row.get(role, ""))
        if number is not None:
            return number * (plain_s if role == "seconds" else unit_s)
    return elapsed_s(row.get("seconds", ""))


def _gpus(row: Mapping[str, str]) -> float | None:
    """Devices of a job, a share of one as a fraction; None for no number."""
    if row.get("hundredths"):
        share, instances = number_of(row["hundredths"]), number_of(row.get("instances", "") or "1")
        found = None if share is None or instances is None else share / 100 * instances
    else:
        found = number_of(row.get("gpus", "") or "0")
        milli = number_of(row.get("thousandths", ""))
        if found == 1 and milli is not None and 0 < milli < 1000:
            found = milli / 1000
    return found if found is not None and 0 <= found <= _MOST_GPUS else None


def _said(reading: Reading, times: _Times) -> None:
    reading.understood["times"] = {
        "written": "as written, in UTC where no zone stands", "epoch": "counted since 1970, in UTC",
        "counted": f"counted from the beginning of the trace, in {_WORDS[times.unit_s]} (--time-unit says another)",
    }.get(times.form, "none")  # fmt: skip
    if times.order.said:
        reading.understood["times"] += f"; {times.order.said}"


def _nothing(source: Source, reading: Reading) -> Exception:
    reasons = "; ".join(f"{count:,} of them: {why}" for why, (count, _) in reading.skipped.reasons.items())
    return refused(source, "nothing-taken", f"no {reading.of[:-1]} of {source.name} could be taken", reasons[:600])


# Philly: attempts of jobs below each job


def recognise_philly(source: Source) -> Match:
    """Jobs with attempts, of which each tells its devices."""
    if source.head_text.lstrip()[:1] != "[":
        return NOTHING
    keys = head_keys(source)
    marks = {each: each in keys for each in ("attempts", "submitted_time", "vc", "jobid", "detail")}
    return fit(marks, tool="Philly", ceiling=0.97)


def read_philly(source: Source, asked: Asked) -> Reading:
    """Attempts of jobs: each holds the devices of its detail between its times."""
    reading = Reading(kind="job-trace-philly", title="jobs of a cluster, by attempt", source=source.name, tool="Philly",
                      of="attempts")  # fmt: skip
    times, history = _Times(asked), History()
    document = document_of(source)
    number = 0
    for job in document if isinstance(document, list) else ():
        attempts = job.get("attempts") if isinstance(job, dict) else None
        for attempt in attempts if isinstance(attempts, list) and attempts else [None]:
            number += 1
            found = _attempt(job, attempt, times) if isinstance(attempt, dict) else "a job without attempts"
            if isinstance(found, str):
                reading.skipped.add(found, number)
            elif reading.taken >= MOST_JOBS:
                reading.skipped.add(f"more than {MOST_JOBS:,} attempts", number)
            else:
                reading.taken += 1
                history.add(found)
    if not reading.taken:
        raise _nothing(source, reading)
    history.told(reading)
    _said(reading, times)
    return reading


def _attempt(job: dict[str, Any], attempt: dict[str, Any], times: _Times) -> Job | str:
    detail = attempt.get("detail")
    held = [each.get("gpus") for each in detail if isinstance(each, dict)] if isinstance(detail, list) else []
    row = {
        "gpus": str(sum(len(gpus) for gpus in held if isinstance(gpus, list))),
        "submit": told(str(job.get("submitted_time") or "")), "start": told(str(attempt.get("start_time") or "")),
        "end": told(str(attempt.get("end_time") or "")), "state": str(job.get("status") or ""),
        "group": str(job.get("vc") or ""),
    }  # fmt: skip
    return _job(row, times)


# Gavel: lines of a job's command with steps, devices and arrival, without a first line of names

_LAYOUTS = {7: (6, 5), 9: (5, 8), 10: (6, 9)}  # cells of a line -> places of the devices and of the arrival


def _gavel_job(line: str) -> tuple[float, float] | None:
    """Devices and arrival [s] of a line; None for any other line."""
    cells = line[:20_000].split("\t")
    if len(cells) not in _LAYOUTS:
        return None
    gpus, arrival = (number_of(cells[at]) for at in _LAYOUTS[len(cells)])
    if gpus is None or arrival is None or gpus != int(gpus) or not 1 <= gpus <= 100_000:
        return None
    return (gpus, arrival) if 0 <= arrival <= _LATEST_S else None


def recognise_gavel(source: Source) -> Match:
    """Lines with a command, an argument for its steps, devices and the arrival."""
    lines = [line for line in source.first_lines[:50] if line.strip()]
    steps = [line for line in lines if _gavel_job(line) and re.search(r"\t--?[a-z_]{1,40}\t", line)]
    share = len(steps) / max(len(lines), 1)
    return Match(score=0.9 * share, tool="Gavel", found=("jobs with steps and an arrival",) if share > 0.5 else (),
                 missing=() if share > 0.5 else ("cells by tabs: command, steps, devices, arrival",))  # fmt: skip


def read_gavel(source: Source, asked: Asked) -> Reading:
    """How jobs arrive and what they ask for; how long they take depends on the device, and is not in the file."""
    reading = Reading(kind="job-trace-gavel", title="jobs of a cluster, by their steps", source=source.name,
                      tool="Gavel", of="jobs")  # fmt: skip
    history = History(counted=True)
    arrivals: list[float] = []
    for number, line in enumerate(source.lines(), start=1):
        if not line.strip():
            continue
        found = _gavel_job(line)
        if found is None:
            reading.skipped.add("no job with devices and an arrival", number)
        elif reading.taken >= MOST_JOBS:
            reading.skipped.add(f"more than {MOST_JOBS:,} jobs", number)
        else:
            reading.taken += 1
            arrivals.append(found[1])
            history.add(Job(state="", gpus=found[0], seconds=0.0, start=FIRST + timedelta(seconds=found[1])))
    if not reading.taken:
        raise _nothing(source, reading)
    history.told(reading, timed=False)
    span = max(arrivals) - min(arrivals)
    if span > 0:
        reading.show("jobs a day", (len(arrivals) - 1) / span * 86_400)
    reading.understood["times"] = "counted from the beginning of the trace, in seconds"
    reading.note("jobs are given by their steps: how long they hold their devices is not in the file")
    return reading


# one column of times that jobs took


def recognise_runtimes(source: Source) -> Match:
    """A first line that is the name of a time, and numbers below."""
    lines = [line.strip() for line in source.first_lines[:100] if line.strip()]
    named = bool(lines) and plain(lines[0]) in _ROLES["seconds"]
    numbers = sum(number_of(line) is not None for line in lines[1:])
    return Match(score=0.9 if named and numbers >= 0.8 * max(len(lines) - 1, 1) and numbers else 0.0,
                 missing=("one column of times that jobs took",))  # fmt: skip


def read_runtimes(source: Source, asked: Asked) -> Reading:
    """How long jobs took."""
    reading = Reading(kind="job-runtimes", title="times that jobs took", source=source.name, of="jobs")
    found: list[float] = []
    for number, line in enumerate(source.lines(), start=1):
        text = line.strip()
        if not text or plain(text) in _ROLES["seconds"]:
            continue
        seconds = number_of(text)
        if seconds is None or not 0 <= seconds <= _LONGEST_S:
            reading.skipped.add("no time, or a negative one", number)
        elif len(found) >= MOST_JOBS:
            reading.skipped.add(f"more than {MOST_JOBS:,} jobs", number)
        else:
            reading.taken += 1
            found.append(seconds)
    if not reading.taken:
        raise _nothing(source, reading)
    reading.show("jobs", len(found))
    reading.show("time of a job, mean", float(np.mean(found)), "s")
    for q in (50, 90, 95, 99):
        reading.show(f"time of a job, p{q}", float(np.percentile(found, q)), "s")
    reading.show("hours of all jobs", sum(found) / 3600, "h")
    reading.understood["times"] = "seconds, assumed"
    reading.note("no job tells of its accelerators or when it ran: no demand follows")
    return reading


# figures of whole clusters

_SUMMARY: Mapping[str, Sequence[str]] = {
    "name": ("id", "cluster", "name"), "jobs": ("jobnum", "jobs"), "gpu_jobs": ("gpujobnum",),
    "run": ("avgruntimegpu",), "wait": ("avgquetimegpu",), "gpus": ("avggpunum",), "most": ("maxgpu",),
    "complete": ("completegputime",), "cancel": ("cancelgputime",), "fail": ("failgputime",),
}  # fmt: skip


def recognise_summary(source: Source) -> Match:
    """A line for each cluster with its jobs, their times and their devices."""
    places = places_of(header_of(source)[0], _SUMMARY)
    return fit({role: role in places for role in ("name", "jobs", "gpu_jobs", "run", "gpus")}, tool="AcmeTrace",
               ceiling=0.97)  # fmt: skip


def read_summary(source: Source, asked: Asked) -> Reading:
    """Jobs, times, waits and GPU-hours of each cluster."""
    reading = Reading(kind="cluster-summary", title="figures of clusters", source=source.name, tool="AcmeTrace",
                      of="clusters")  # fmt: skip
    labels = {"jobs": ("jobs", ""), "gpu_jobs": ("jobs with GPUs", ""), "run": ("time of a job, mean", "s"),
              "wait": ("wait before a start, mean", "s"), "gpus": ("GPUs of a job, mean", ""),
              "most": ("GPUs of a job, largest", "")}  # fmt: skip
    for line, row in rows_of(source, _SUMMARY, ("name", "jobs"), reading.skipped):
        figures = {role: number_of(row.get(role, "")) for role in _SUMMARY if role != "name"}
        if any(value is not None and value < 0 for value in figures.values()) or figures["jobs"] is None:
            reading.skipped.add("no number of jobs, or a negative figure", line)
            continue
        reading.taken += 1
        if reading.taken > 20:
            continue
        name = printable(row["name"], 40)
        for role, (label, unit) in labels.items():
            reading.show(f"{name}: {label}", figures.get(role), unit)
        held = [figures[role] for role in ("complete", "cancel", "fail")]
        if all(value is not None for value in held):
            reading.show(f"{name}: GPU-hours", sum(value or 0.0 for value in held) / 3600, "h")
    if not reading.taken:
        raise _nothing(source, reading)
    reading.note("figures of whole clusters: the jobs themselves give a history of demand")
    return reading


# machines of a cluster

_NODES: Mapping[str, Sequence[str]] = {
    "name": ("sn", "node", "hostname", "machine", "nodename", "machineid", "host", "server"),
    "gpus": ("gpucount", "gpunum", "numgpus", "capgpu", "numgpu", "ngpus", "totalgpus", "gpus", "count", "gpu"),
    "device": ("model", "gpumodel", "gputype", "gpuspec", "gpuname", "accelerator", "gpuproduct", "device", "gpu"),
    "memory": ("gpumemorymib", "gpumemorymb", "gpumemmib", "gpumemmb"),
    "gigabytes": ("gpumemorygb", "gpumemorygib", "gpumemgb", "vramgb", "gpumemory", "gpumem", "vram"),
    "state": ("state", "status", "nodestate", "nodestatus", "machinestate", "health", "availability"),
}
_OUT = re.compile(
    r"down|drain|fail|fault|maint|off|broken|dead|not ?ready|unavail|unhealthy|cordon|decomm|retired|repair", re.I
)
_LARGEST_GB = 2000  # of a device: what is larger is in another unit
_SIZED = re.compile(r"^(V100)M(16|32)$", re.I)  # as Alibaba names it: with 16 or 32 GB


def recognise_nodes(source: Source) -> Match:
    """A line for each machine with its devices and their name, and no times of jobs."""
    names, _ = header_of(source)
    places = places_of(names, _NODES)
    marks = {role: role in places for role in ("name", "gpus", "device")}
    marks["device"] = marks["device"] and places["device"] != places.get("gpus")
    jobs = {"submit", "end", *_UNITS_S} & set(places_of(names, _ROLES))
    return fit(marks, tool="a list of machines", ceiling=0.88 if not jobs else 0.5)


def read_nodes(source: Source, asked: Asked) -> Reading:
    """Machines with accelerators."""
    reading = Reading(kind="node-table", title="machines of a cluster", source=source.name, tool="a list of machines",
                      of="machines")  # fmt: skip
    nodes: dict[str, Node] = {}
    for line, row in rows_of(source, _NODES, ("name", "gpus", "device"), reading.skipped):
        row["device"] = "" if row["device"] == row["gpus"] else row["device"]  # of one column
        count, name = number_of(row["gpus"]), row["name"][:300]
        if count == 0:
            reading.skipped.add("no accelerator", line)
        elif _OUT.search(row.get("state", "")[:100]):
            reading.skipped.add("out of use, as its state says", line)
        elif count is None or count != int(count) or not 1 <= count <= 1024:
            reading.skipped.add("no count of accelerators", line)
        elif not name or name in nodes:
            reading.skipped.add("a machine that stands above, or without a name", line)
        elif len(nodes) >= MOST_NODES:
            reading.skipped.add(f"more than {MOST_NODES:,} machines", line)
        else:
            reading.taken += 1
            nodes[name] = _node(name, row, int(count), asked)
    if not reading.taken:
        raise _nothing(source, reading)
    told_of(reading, list(nodes.values()))
    return reading


def _node(name: str, row: Mapping[str, str], count: int, asked: Asked) -> Node:
    memory, device = number_of(row.get("memory", "")), row["device"][:200] or asked.accelerator
    gigabytes = number_of(row.get("gigabytes", "").upper().rstrip("GIB "))
    if not memory and gigabytes and gigabytes < _LARGEST_GB:
        memory = gigabytes * 1024
    memory_bytes = memory * 2.0**20 if memory and memory > 0 else None
    if sized := _SIZED.match(device):
        device, memory_bytes = sized.group(1), float(sized.group(2)) * 2**30
    return Node(name=name, device=device, devices=count, memory_bytes=memory_bytes)


KINDS = (
    Kind(name="job-trace", title="jobs of a cluster",
         looks_for="job, gpu_num, submit or start time, duration or end, a row each (Acme, Helios, Alibaba)",
         recognise=recognise_jobs, read=read_jobs),
    Kind(name="job-trace-philly", title="jobs of a cluster, by attempt",
         looks_for="JSON of jobs with attempts and their detail (Philly)",
         recognise=recognise_philly, read=read_philly),
    Kind(name="job-trace-gavel", title="jobs of a cluster, by their steps",
         looks_for="lines by tabs with a command, steps, devices and an arrival (Gavel)",
         recognise=recognise_gavel, read=read_gavel),
    Kind(name="job-runtimes", title="times that jobs took", looks_for="one column of times that jobs took",
         recognise=recognise_runtimes, read=read_runtimes),
    Kind(name="cluster-summary", title="figures of clusters",
         looks_for="a line for each cluster with job_num, avg_run_time_gpu, avg_gpu_num (AcmeTrace)",
         recognise=recognise_summary, read=read_summary),
    Kind(name="node-table", title="machines of a cluster",
         looks_for="a line for each machine with its name, gpu and model (Alibaba, or your own list)",
         recognise=recognise_nodes, read=read_nodes),
)  # fmt: skip
