"""Logs of training runs: step times, memory, throughput and stops, whichever trainer wrote them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from datetime import UTC
from itertools import pairwise
from typing import Any

import numpy as np

from planner.reading.benchmarks import stem_of
from planner.reading.columns import DecimalSign, epoch_unit_s, iso_seconds, number_in, plain, signs_of
from planner.reading.event_files import looks_like_events, scalars_of
from planner.reading.inventory import machines_of
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Piece, Reading, fit
from planner.reading.measured_points import number_of
from planner.reading.request_log import name_of
from planner.reading.requests import header_of
from planner.reading.source import Source, refused
from planner.reading.tables import printable
from planner.reading.training_lines import MARKS, Steps, breaks_off, plain_text, says_something, take_line


def recognise_text(source: Source) -> Match:
    """Lines of a trainer, wherever they begin in the log."""
    if not source.is_text:
        return NOTHING
    text = plain_text(source.head_text)
    for tool, (pattern, _) in MARKS.items():
        if pattern.search(text):
            return Match(score=0.95, found=(f"lines of {tool}",), tool=tool)
    if not source.whole and re.search(r"(?i)\b(torchrun|OMP_NUM_THREADS|megatron|deepspeed|using world size)", text):
        return Match(score=0.62, found=("the beginning of a training run",))
    if len(re.findall(r"^\d{1,12} \d{1,6}\.\d{1,20}\r?$", text, re.M)) > 10:
        return Match(score=0.7, found=("step and loss, a line each",), tool="torchtitan")
    if re.search(r"\|\s*TPS/GPU\s*\|\s*Memory", text):
        return Match(score=0.8, found=("a table of TPS/GPU and memory",), tool="torchtitan")
    return Match(score=0.1, missing=tuple(mark for _, mark in MARKS.values()))


def read_text(source: Source, asked: Asked) -> Reading:
    """Steps of a log of Megatron-LM, DeepSpeed, NeMo, MaxText or torchtitan."""
    reading = Reading(kind="training-log", title="log of a training run", source=source.name, of="steps")
    if re.search(r"\|\s*TPS/GPU\s*\|\s*Memory", source.head_text):
        return _titan_table(source, reading)
    steps = Steps()
    losses: list[float] = []
    overflows = 0
    for number, line in _pieces(source):
        if not says_something(line):
            if line[:1].isdigit():
                pair = re.fullmatch(r"(\d{1,12}) (-?[0-9.eE+]+)", line.strip()[:80])
                value = number_of(pair.group(2)) if pair else None
                if pair and value is not None:
                    steps.step(int(pair.group(1)))
                    losses.append(value)
            overflows += "OVERFLOW!" in line
            continue
        line = plain_text(line[:20_000])
        if source.unended and steps.lines and breaks_off(line):
            reading.skipped.add("the last line, half written", number)
            continue
        take_line(line, steps, number)
    steps.settle()
    if not steps.lines:
        raise refused(source, "nothing-taken", f"no step stands in {source.name}",
                      "looked for: " + "; ".join(mark for _, mark in MARKS.values()))  # fmt: skip
    if steps.bad:
        reading.skipped.add("a step whose time is not readable", steps.first_bad, steps.bad)
    if overflows:
        reading.note(f"{overflows:,} steps were skipped by the loss scaler: they cost time and learn nothing")
    if losses and not steps.seconds:
        reading.show("loss, last", losses[-1])
    return _follow(reading, steps, asked, source)


def _pieces(source: Source) -> Iterator[tuple[int, str]]:
    """Lines, and what a progress bar wrote over itself in one, with the number of the line."""
    for number, line in enumerate(source.lines(), start=1):
        if "\r" in line:
            yield from ((number, piece) for piece in line.split("\r"))
        else:
            yield number, line


def _titan_table(source: Source, reading: Reading) -> Reading:
    names: list[str] = []
    for line in source.text(4_000_000).splitlines():
        cells = [cell.strip() for cell in line[:2000].strip().strip("|").split("|")]
        if "TPS/GPU" in cells:
            names = cells
        elif names and len(cells) == len(names) and not set(cells[0]) <= set("-: "):
            row = dict(zip(names, cells))
            speed = number_of(row["TPS/GPU"])
            if speed is None:
                continue
            reading.taken += 1
            label = ", ".join(cell for name, cell in row.items() if name not in ("TPS/GPU", "Memory(GiB)"))
            reading.show(label[:60], speed, "tokens/s of a device")
        elif not line.strip():
            names = []
    reading.of = "measured configurations"
    reading.note("the text around the tables says what ran; write it into measurement rows by hand")
    return reading


def _follow(reading: Reading, steps: Steps, asked: Asked, source: Source) -> Reading:
    """Figures of the steps, and the job that is under way."""
    reading.taken = steps.lines
    reading.tool = reading.tool or steps.tool
    known = sorted(steps.seconds)
    times = np.array([steps.seconds[number] for number in known])
    if steps.samples_per_s:
        reading.show("samples, median", float(np.median(steps.samples_per_s)), "samples/s")
        reading.understood["samples"] = "of the whole job, as the trainer counts them"
    middle = 0.0
    if times.size:
        later = times[1:] if times.size > 2 else times  # the first step compiles and warms up
        middle = float(np.median(later))
        reading.show("step time, median without the first", middle, "s")
        reading.show("step time, mean", float(times.mean()), "s")
        reading.show("step time, p95", float(np.percentile(times, 95)), "s")
        slow = int((later > 3 * middle).sum())
        if slow:
            reading.note(
                f"{slow:,} steps took more than three times the median: checkpoints, evaluations or stragglers"
            )
        reading.understood["step time"] = (
            "the time between the clocks of two steps, by the steps between"
            if steps.clocked
            else "seconds of an optimizer step; an average where the log writes every Nth"
        )
    elif steps.mean_s:
        middle = steps.mean_s
        reading.show("step time, mean", middle, "s")
        reading.understood["step time"] = (
            "the median of micro-batches, by how many an optimizer step has" if steps.micro
            else "the time of the run, by its steps"
        )  # fmt: skip
    elif steps.micro:
        reading.note("too few optimizer steps end between the lines: how many micro-batches one has is not told")
    reading.show("last step", steps.last if steps.last or times.size else None)
    if steps.of:
        reading.show("steps in all", steps.of)
    if steps.batch:
        reading.show("global batch", steps.batch, "sequences")
    if steps.devices:
        reading.show("devices", steps.devices)
    if steps.tflops:
        reading.show("useful operations, median", float(np.median(steps.tflops)), "TFLOP/s of a device")
    if steps.tokens_per_s:
        reading.show("tokens, median", float(np.median(steps.tokens_per_s)), "tokens/s of a device")
    if steps.memory_bytes:
        reading.show("memory, most of a device", steps.memory_bytes / 1e9, "GB")
    if steps.restarts:
        reading.show("restarts from an earlier step", steps.restarts)
    if middle and steps.of > steps.last:
        reading.show("left at this pace", (steps.of - steps.last) * middle, "s")
    if steps.generating:
        reading.show("of it making answers, median", float(np.median(steps.generating)), "s")
        reading.note("a step makes answers and rates them before it trains on them: no step time of a training job "
                     "follows, and what makes the answers is a fleet of its own")  # fmt: skip
    elif middle:
        _job(reading, asked, source, step_time_s=middle, steps=steps)
    return reading


def _job(reading: Reading, asked: Asked, source: Source, *, step_time_s: float, steps: Steps) -> None:
    """The job as a scenario takes it: what is trained already, and the step time where it was measured."""
    job: dict[str, Any] = {"name": asked.name or name_of(stem_of(source))}
    missing = []
    if asked.model:
        job["model"] = asked.model
    else:
        missing.append("--model")
    if steps.sequence:
        job["sequence_length"] = steps.sequence
    if steps.batch >= 1:
        job["global_batch"] = f"{steps.batch:.0f} sequences"
    tokens = steps.batch * steps.sequence
    if tokens and steps.of:
        job["tokens"] = f"{tokens * steps.of / 1e6:.6f}".rstrip("0").rstrip(".") + "M"
        if 0 < steps.last < steps.of:
            job["progress"] = f"{tokens * steps.last / 1e6:.6f}".rstrip("0").rstrip(".") + "M"
    devices = steps.devices or asked.devices  # what a run says of itself is surer than what is remembered of it
    machines = machines_of(asked.accelerator, devices) if asked.accelerator and devices else None
    if machines:
        job["step_time"] = {"measured": f"{step_time_s:.6g} s", "shape": machines[0], "count": machines[1]}
        if asked.devices not in (0, devices, machines[1]):
            reading.note(f"its log says {devices} devices: --devices {asked.devices} is not taken")
    elif asked.accelerator and devices:
        reading.note(f"{devices} devices are no whole number of machines '{printable(asked.accelerator)}' of the "
                     "catalog: no step_time is written")  # fmt: skip
    else:
        wanted = [*([] if asked.accelerator else ["--accelerator SHAPE"]), *([] if devices else ["--devices COUNT"])]
        missing.append(f"{' '.join(wanted)} (all that the step time was measured on)")
    if missing:
        reading.note(f"for a job in a scenario, add {' and '.join(missing)}")
    if asked.model or "step_time" in job or "tokens" in job:
        says = "a job under way" + (", with its step time" if "step_time" in job else "")
        reading.pieces.append(Piece(what="scenario", name="scenario.yaml", says=says, fragment={"training": [job]}))


# Hugging Face Trainer


def recognise_trainer(source: Source) -> Match:
    """trainer_state.json, all_results.json and their kin."""
    keys = head_keys(source)
    if {"train_runtime", "train_steps_per_second"} <= keys:
        return Match(score=0.9, found=("train_runtime",), tool="Hugging Face Trainer")
    return fit({name: name in keys for name in ("log_history", "global_step", "epoch")}, tool="Hugging Face Trainer",
               ceiling=0.97)  # fmt: skip


def read_trainer(source: Source, asked: Asked) -> Reading:
    """The history of a run, or its results."""
    reading = Reading(kind="training-trainer", title="state of a Hugging Face Trainer", source=source.name,
                      tool="Hugging Face Trainer", of="log entries")  # fmt: skip
    whole = document_of(source)
    if not isinstance(whole, dict):
        raise refused(source, "bad-json", f"{source.name} is no JSON object", "see the file")
    history = whole.get("log_history")
    entries = history if isinstance(history, list) else [whole]
    steps = Steps()
    runtime = steps_per_s = samples_per_s = None
    finished: list[int] = []  # steps at which a run ended and told its time
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            reading.skipped.add("no record", number)
            continue
        reading.taken += 1
        step = number_of(entry.get("step"))
        if step is not None and 0 <= step < 1e12:
            steps.step(int(step))
        if number_of(entry.get("train_runtime")):
            runtime = number_of(entry["train_runtime"])
            finished.append(steps.last)
        steps_per_s = number_of(entry.get("train_steps_per_second")) or steps_per_s
        samples_per_s = number_of(entry.get("train_samples_per_second")) or samples_per_s
    last, most = number_of(whole.get("global_step")) or float(steps.last), number_of(whole.get("max_steps"))
    reading.show("last step", int(last) if last else None)
    reading.show("steps in all", int(most) if most and 0 < most < 1e12 else None)
    reading.show("time of training", runtime, "s")
    reading.show("samples", samples_per_s, "samples/s")
    batch = number_of(whole.get("train_batch_size"))
    reading.show("batch of a device", batch, "sequences")
    pace = None
    begun = _resumed_at(entries, last, finished)
    if begun:
        reading.note(f"It was resumed at about step {begun:,.0f}, and the time is of what followed: step times are by "
                     "the steps since. Samples a second as the trainer wrote them count all.")  # fmt: skip
    if runtime and last and last > begun:
        pace = runtime / (last - begun)
    elif steps_per_s and not begun:
        pace = 1 / steps_per_s
    if pace:
        reading.show("step time, mean", pace, "s")
        done = Steps(last=int(last), of=int(most) if most and most < 1e12 else 0)
        _job(reading, asked, source, step_time_s=pace, steps=done)
    else:
        reading.note("it holds no time: step times follow from a finished run (train_runtime) or the event file")
    return reading


_RESUMED = 0.95  # of the loss of all steps: less was summed by a run that began later


def _resumed_at(entries: list[Any], last: float, finished: list[int]) -> float:
    """The step at which the run that told its time had begun; 0 for one from the beginning, or that does not tell.

    Parameters
    ----------
    entries
        The log: one that ended before and told its time is what a later one went on from.
    last
        Step that was reached.
    finished
        Steps at which runs told their time, in order.
    """
    if len(finished) > 1 and finished[-2] < finished[-1]:
        return finished[-2]
    # the trainer divides the losses since it was resumed by all steps: what is missing was learnt before
    told = [entry for entry in entries if isinstance(entry, dict)]
    mean = next((value for entry in reversed(told) if (value := number_of(entry.get("train_loss")))), None)
    marks = {0: 0.0}
    for entry in told:
        step, loss = number_of(entry.get("step")), number_of(entry.get("loss"))
        if step and loss and step > max(marks):
            marks[int(step)] = loss
    steps = sorted(marks)
    if mean is None or not last or len(steps) < 3 or last - steps[-1] > steps[-1] - steps[-2]:
        return 0.0
    summed, below = mean * last, 0.0
    whole = sum(marks[step] * (step - before) for before, step in pairwise(steps))
    for before, step in pairwise(steps) if 0 < summed < _RESUMED * whole else ():
        share = marks[step] * (step - before)
        if below + share >= whole - summed:
            return before + (whole - summed - below) / share * (step - before)
        below += share
    return 0.0


# mllog


def recognise_mllog(source: Source) -> Match:
    """Lines that begin with :::MLLOG."""
    there = ":::MLLOG" in source.head_text
    return Match(score=0.98 if there else 0.0, found=(":::MLLOG",) if there else (), missing=() if there else (
        ":::MLLOG lines",), tool="MLPerf mllog")  # fmt: skip


def read_mllog(source: Source, asked: Asked) -> Reading:
    """Events of an MLPerf training run."""
    reading = Reading(kind="training-mllog", title="MLPerf training log", source=source.name, tool="MLPerf mllog",
                      of="events")  # fmt: skip
    said: dict[str, Any] = {}
    begin: dict[str, float] = {}
    end: dict[str, float] = {}
    step_times: list[float] = []
    speeds: list[float] = []
    for number, line in enumerate(source.lines(), start=1):
        at = line.find(":::MLLOG")
        if at < 0:
            if line.strip():
                reading.skipped.add("no event", number)
            continue
        try:
            event = json.loads(line[at + 8 :])
        except (ValueError, RecursionError):
            reading.skipped.add("an event that is not whole JSON", number)
            continue
        if not isinstance(event, dict) or not isinstance(event.get("key"), str):
            reading.skipped.add("an event without a key", number)
            continue
        reading.taken += 1
        key, value, time = event["key"], event.get("value"), number_of(event.get("time_ms"))
        if time is not None and key in ("run_start", "run_stop", "init_start", "init_stop"):
            begin.setdefault(key, time)
            end[key] = time
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            said[key] = value
        if key == "tracked_stats" and isinstance(value, dict):
            found = number_of(value.get("train_step_time")) or number_of(value.get("step_time"))
            if found and found > 0:
                step_times.append(found)
            speed = number_of(value.get("throughput"))
            if speed and speed > 0:
                speeds.append(speed)
        if key == "run_stop" and isinstance(event.get("metadata"), dict):
            status = str(event["metadata"].get("status") or "")[:40]
            if status and status != "success":
                reading.note(f"The run ended as '{status}'.")
    for key in ("submission_benchmark", "submission_org", "submission_platform"):
        if key in said:
            reading.understood[key.removeprefix("submission_")] = str(said[key])[:100]
    for key, unit in (("global_batch_size", "sequences"), ("max_sequence_length", "tokens"),
                      ("gradient_accumulation_steps", ""), ("tensor_parallelism", ""), ("pipeline_parallelism", ""),
                      ("context_parallelism", ""), ("opt_base_learning_rate", "")):  # fmt: skip
        value = number_of(said.get(key))
        if value is not None:
            reading.show(key.replace("_", " "), int(value) if value == int(value) else value, unit)
    if "run_start" in begin and "run_stop" in end and end["run_stop"] > begin["run_start"]:
        reading.show("time of the run", (end["run_stop"] - begin["run_start"]) / 1e3, "s")
    elif "run_start" in begin:
        reading.note("the run has no run_stop: it was stopped, or goes on")
    if speeds:
        reading.show("samples, median", float(np.median(speeds)), "samples/s")
    if step_times:
        middle = float(np.median(step_times))
        reading.show("step time, median", middle, "s")
        _job(reading, asked, source, step_time_s=middle, steps=Steps())
    return reading


# recorded values of Megatron-LM's functional tests


def recognise_golden(source: Source) -> Match:
    """A curve for each metric: start_step, end_step, values."""
    keys = head_keys(source)
    marks = {"start_step": "start_step" in keys, "step_interval": "step_interval" in keys,
             "iteration-time": bool(keys & {"iteration-time", "lm loss"})}  # fmt: skip
    return fit(marks, tool="Megatron-LM recorded values", ceiling=0.95)


def read_golden(source: Source, asked: Asked) -> Reading:
    """Step times and memory by step."""
    reading = Reading(
        kind="training-golden", title="recorded values of a training run", source=source.name, of="values"
    )
    whole = document_of(source)
    steps = Steps()
    for name, curve in whole.items() if isinstance(whole, dict) else ():
        values = curve.get("values") if isinstance(curve, dict) else None
        for place, (step, value) in enumerate(values.items() if isinstance(values, dict) else (), start=1):
            number = number_of(value)
            if number is None or not str(step).isdigit():
                reading.skipped.add(f"no value of {name}"[:60], place)
                continue
            reading.taken += 1
            if plain(name) == "iterationtime":
                steps.step(int(str(step)[:12]), number)
            elif plain(name) == "memmaxallocatedbytes":
                steps.memory_bytes = max(steps.memory_bytes, number)
    taken = reading.taken
    reading = _follow(reading, steps, asked, source)
    reading.taken = taken
    return reading


# TensorBoard event files, tables of W&B


def recognise_events(source: Source) -> Match:
    """Records with lengths and sums, as TensorBoard writes them."""
    there = looks_like_events(source.head)
    return Match(score=0.97 if there else 0.0, found=("records of events",) if there else (),
                 missing=() if there else ("records of events",), tool="TensorBoard")  # fmt: skip


def read_events(source: Source, asked: Asked) -> Reading:
    """Scalars of a TensorBoard event file; steps timed by the clock of the file."""
    reading = Reading(kind="training-tensorboard", title="TensorBoard event file", source=source.name,
                      tool="TensorBoard", of="records")  # fmt: skip
    found = scalars_of(source, reading)
    said: dict[str, list[tuple[float, int, float]]] = {}
    for wall, step, tag, value in found:
        said.setdefault(tag, []).append((wall, step, value))
    for tag, values in list(said.items())[:24]:
        reading.show(f"{tag[:50]}, last of {len(values):,}", values[-1][2])
    best = max(said.values(), key=len, default=[])
    pairs = sorted({step: wall for wall, step, _ in best}.items())
    paces = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(pairs) if b[0] > a[0] and b[1] > a[1]]
    timed = next((tag for tag in said if _seconds_in(tag)), "")
    if timed:
        paces = [value * _seconds_in(timed) for _, _, value in said[timed] if value > 0]
    if paces:
        middle = float(np.median(paces))
        reading.show("step time, median" + ("" if timed else " by the clock"), middle, "s")
        _job(reading, asked, source, step_time_s=middle, steps=Steps())
    return reading


# a name that tells the time of a step, and its unit
_TIMED = re.compile(r"\w*?(?:iteration|step)tim(?:e|ing)(?:in)?(s|sec|seconds|ms)?|timemetricsendtoend(s)")


def _seconds_in(name: str) -> float:
    """Seconds in one unit of a column or curve of step times; 0 for any other."""
    found = _TIMED.fullmatch(_stem(name))
    return 0.0 if found is None else 1e-3 if found.group(1) == "ms" else 1.0


def _stem(name: str) -> str:
    """A column by what it holds: W&B puts the run before it."""
    return plain(name.rsplit(" - ", 1)[-1])


# "step" comes last: W&B counts in it what was logged, every tenth step of the trainer, say
_WANDB = ("globalstep", "trainglobalstep", "trainerglobalstep", "iteration", "step")
_CLOCKS = ("runtime", "timestamp", "walltime", "relativetime", "relativetimeprocess")


def recognise_metrics(source: Source) -> Match:
    """A table of W&B: a step, and a run time or losses."""
    names, _ = header_of(source)
    stems = {_stem(name) for name in names}
    step = bool(stems & set(_WANDB))
    timed = bool(stems & set(_CLOCKS)) or any(map(_seconds_in, names))
    tool = "W&B" if any(" - " in name or name.startswith("_") for name in names) else ""
    losses = any("loss" in stem for stem in stems)
    return fit({"a column of steps": step, "a run time or clock": timed, "a loss": losses}, tool=tool, ceiling=0.9
               ) if names else NOTHING  # fmt: skip


def read_metrics(source: Source, asked: Asked) -> Reading:
    """Rows of a W&B export; steps timed by their run time or clock."""
    reading = Reading(kind="training-metrics", title="table of a training run", source=source.name, of="rows")
    names, separator = header_of(source)
    stems = [_stem(name) for name in names]
    step_at = next((stems.index(name) for name in _WANDB if name in stems), None)
    time_at = next((stems.index(name) for name in _CLOCKS if name in stems), None)
    timed_at = next((at for at, name in enumerate(names) if _seconds_in(name)), None)
    if step_at is None:
        raise refused(source, "missing-column", "no column of steps is seen", "columns: " + ", ".join(names[:30]), 1)
    reading.understood["steps"] = names[step_at]
    if names[step_at] == "_step":
        reading.understood["steps"] += ", which counts what was logged: steps of the optimizer if each of them was"
    runs = dict.fromkeys(name.rsplit(" - ", 1)[0] for name in names if " - " in name)
    if len(runs) > 1:
        told = names[timed_at if timed_at is not None else time_at or 0]
        read = told.rsplit(" - ", 1)[0] if " - " in told else next(iter(runs))
        reading.note(f"It holds {len(runs)} runs; {read[:60]} is read: give a table of each other one.")
    columns = {names[at]: at for at in (step_at, time_at, timed_at) if at is not None}
    marks = {name: DecimalSign() for name in columns}
    for number, cells in _rows(source, separator):
        for name, at in columns.items():
            marks[name].see(cells[at].strip() if len(cells) > at else "", number)
    signs, said = signs_of(source, marks, separator)
    if said:
        reading.understood["numbers"] = said
    pairs: dict[int, float] = {}
    steps = Steps()
    for number, cells in _rows(source, separator):
        said_of = {at: _number(cells[at].strip(), signs[name]) for name, at in columns.items() if len(cells) > at}
        step = said_of.get(step_at)
        if step is None or not 0 <= step < 1e12:
            reading.skipped.add("no step", number)
            continue
        reading.taken += 1
        seconds = said_of.get(timed_at) if timed_at is not None else None
        steps.step(int(step), seconds * _seconds_in(names[timed_at]) if seconds and timed_at is not None else None)
        time = said_of.get(time_at) if time_at is not None else None
        if time is None and time_at is not None and len(cells) > time_at:
            time = _written(cells[time_at])
        if time is not None:
            pairs[int(step)] = time * (epoch_unit_s(time) or 1.0)
    for step, time in sorted(pairs.items()) if not steps.seconds else ():
        steps.tick(step, time)
    taken = reading.taken
    reading = _follow(reading, steps, asked, source)
    reading.taken = taken
    if not steps.seconds:
        reading.note("No column tells a time that is known: looked for a run time, a clock or a time of steps.")
    return reading


def _rows(source: Source, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Rows below the names, with the numbers of their lines."""
    for number, line in enumerate(source.lines(), start=1):
        if number == 1 or not line.strip():
            continue
        try:
            yield number, next(csv.reader([line], delimiter=separator), [])
        except csv.Error:
            yield number, []


def _number(text: str, sign: str) -> float | None:
    value = number_in(text, sign)
    return None if value is None else number_of(float(value))


def _written(text: str) -> float | None:
    """A time that is written out; None for anything else.  [s]"""
    try:
        return iso_seconds(text[:60], UTC)
    except (ValueError, OverflowError):
        return None


KINDS = (
    Kind(name="training-log", title="log of a training run",
         looks_for="lines of steps as Megatron-LM, DeepSpeed, NeMo, MaxText, torchtitan, nanoGPT … print them",
         recognise=recognise_text, read=read_text),
    Kind(name="training-trainer", title="state of a Hugging Face Trainer",
         looks_for="trainer_state.json with log_history and global_step, or results with train_runtime",
         recognise=recognise_trainer, read=read_trainer),
    Kind(name="training-mllog", title="MLPerf training log", looks_for="lines that begin with :::MLLOG",
         recognise=recognise_mllog, read=read_mllog),
    Kind(name="training-golden", title="recorded values of a training run",
         looks_for="JSON with start_step, step_interval and values for each metric",
         recognise=recognise_golden, read=read_golden),
    Kind(name="training-tensorboard", title="TensorBoard event file", looks_for="records of a tfevents file",
         recognise=recognise_events, read=read_events),
    Kind(name="training-metrics", title="table of a training run",
         looks_for="CSV with a step, a run time or clock, and losses (W&B)",
         recognise=recognise_metrics, read=read_metrics),
)  # fmt: skip
