"""Requests as they are read, in columns; what they show, and the trace or the numbers that a scenario takes."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import date, datetime
from itertools import chain
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.architecture.load import preset_of
from planner.carriers import dataclass
from planner.reading.columns import EPOCH_FROM_S, SYMBOLS, DayOrder, Roles, Signs, epoch_unit_s
from planner.reading.kinds import Asked, Piece, Reading, Skips
from planner.reading.long_log import RUN, LengthCounts, LongLog
from planner.reading.source import Source, refused
from planner.traffic import request_trace
from planner.traffic.model import HIGHEST_P95_OVER_MEAN
from planner.traffic.request_trace import MOST_ROWS, Times

Array = NDArray[np.float64]
_YEAR_S = 366 * 86_400.0
_MONDAY_S = 4 * 86_400.0  # 1970-01-05
_LARGEST_ID = 400_000_000  # of a block, as a bit of a map
_MOST_NAMES = 2_000_000  # ids of blocks that are no numbers
_SHEET_DAYS = (36_526.0, 73_051.0)  # 2000-01-01 to 2099-12-31
_SHEET_BEGIN = date(1899, 12, 30).toordinal()
_UNITS_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SIZES = tuple(float(2**power) for power in range(15))  # of a block  [tokens]
_PEAK, _BURST = "peak over mean", "burstiness (squared variation of gaps)"
_FEW, _BACK = 20, 0.2  # requests that tell nothing; share of them that may stand before an earlier one
_PERCENTILES = (50, 90, 95, 99)
_LONGEST_NAME = 200
MODEL = "llama-3.1-8b"


@dataclass(slots=True, kw_only=True)
class RequestLog:
    """Requests in the order of the file."""

    source: Source
    roles: Roles
    asked: Asked
    tool: str = ""
    written: bool = False  # times are written out, not counted
    order: DayOrder = field(default_factory=DayOrder)  # of dates with slashes
    signs: Signs = field(default_factory=Signs)  # of numbers that are written
    models: list[str] = field(default_factory=list)  # that the first requests name
    zones: set[bool] = field(default_factory=set)  # whether times name their zone
    turns: dict[str, Any] = field(default_factory=dict)  # session -> time of its last request
    failed: int = 0  # requests that their log says were not answered to their end
    reused: float = 0.0  # of prompts, by the cache of the servers, as the log tells it  [tokens]
    held: float = 0.0  # of prompts of which it is told  [tokens]
    waited: int = 0  # requests whose time is that of the one before and a delay
    ids: array[int] = field(default_factory=lambda: array("q"))
    blocks: PrefixBlocks = field(default_factory=lambda: PrefixBlocks())
    _few: tuple[array[float], array[float], array[float]] = field(
        default_factory=lambda: (array("d"), array("d"), array("d"))
    )
    _first: list[tuple[int, int]] = field(default_factory=list)  # request so many -> line
    _long: LongLog | None = None  # where they are too many for a trace
    _many: list[tuple[Array, NDArray[np.uint32], NDArray[np.uint32]]] = field(default_factory=list)
    _count: int = 0

    def add(self, time: float, given: float, made: float, line: int) -> None:
        """One request.

        Parameters
        ----------
        time
            In seconds since 1970 where it is written out, which `written` says; else as the file counts it.
        given, made
            Tokens of the prompt and of the answer, whole and in bounds.  [tokens]
        line
            Of the file, from 1, or place of the record.
        """
        for column, value in zip(self._few, (time, given, made)):
            column.append(value)
        if not self._count % 4096:
            self._first.append((self._count, line))
        self._count += 1
        if len(self._few[0]) >= 65_536:
            self._flush()

    def add_many(self, times: Array, given: Array, made: Array, line: int) -> None:
        """Requests of consecutive lines.

        Parameters
        ----------
        times
            In seconds since 1970 where they are written out, which `written` says; else as the file counts them, (n,).
        given, made
            Tokens of the prompts and of the answers, whole and in bounds, (n,).  [tokens]
        line
            Of the first request.
        """
        self._flush()
        self._first.append((self._count, line))
        self._count += times.size
        self._hold(times, given.astype(np.uint32), made.astype(np.uint32))

    def add_blocks(self, ids: Any, given: float) -> None:
        """Ids of the blocks of a prompt, of which equal leading ones are a shared prefix."""
        if isinstance(ids, list) and ids:
            self.blocks.add(ids, given)

    def turn(self, session: Any, time: Any, delay: Any) -> Any:
        """The time of a request of a session; of a later one that tells none that of the one before and a delay.

        Parameters
        ----------
        session
            Its name.
        time
            As the file has it; None where it has none.
        delay
            In the unit of times, as AIPerf writes both; how long the answer before it took nobody tells.
        """
        if time is None:
            numbers = [each for each in (self.turns.get(str(session)), delay) if isinstance(each, int | float)]
            time = sum(numbers) if len(numbers) > 1 else None
            self.waited += time is not None
        self.turns[str(session)] = time
        return time

    def _flush(self) -> None:
        times, given, made = (np.array(column, dtype=np.float64) for column in self._few)
        if times.size:
            for column in self._few:
                del column[:]
            self._hold(times, given.astype(np.uint32), made.astype(np.uint32))

    def _hold(self, times: Array, given: NDArray[np.uint32], made: NDArray[np.uint32]) -> None:
        """Keep requests as they are, or count them where a trace would have too many."""
        if self._long is None:
            self._many.append((times, given, made))
            if sum(part[0].size for part in self._many) <= MOST_ROWS:
                return
            times, given, made = self._columns()
            middle = _middle(times)
            self._long = LongLog(middle=middle, far=_YEAR_S / self._unit_of(middle)[0])
        ids = np.array(self.ids[: times.size], dtype=np.int64)
        del self.ids[: times.size]
        self._long.add(times, given, made, ids)

    def _line(self, request: int) -> int:
        """About the line of a request by its number."""
        before = [each for each in self._first if each[0] <= request]
        return before[-1][1] + request - before[-1][0] if before else request + 1

    def reading(self, kind: str, title: str, skipped: Skips, cut_lines: int) -> Reading:
        """What the requests show, and what follows.

        Parameters
        ----------
        kind
            Name of the kind of file.
        title
            What such a file is, for people.
        skipped
            Rows that were not taken until now; it grows.
        cut_lines
            Lines that were too long and lost their ends.  [count]

        Raises
        ------
        InputError
            Not one request could be taken.
        """
        self._flush()
        reading = Reading(kind=kind, title=title, source=self.source.name, tool=self.tool, of="requests",
                          skipped=skipped)  # fmt: skip
        if not self._count:
            reasons = "; ".join(f"{count:,} of them: {why}" for why, (count, _) in skipped.reasons.items())
            raise refused(self.source, "nothing-taken", f"no request of {self.source.name} could be taken",
                          reasons or "it has a first line and no rows")  # fmt: skip
        if self.waited:
            reading.note(f"{self.waited:,} requests tell no time: they follow the one before in their session by its "
                         "delay, as if its answer took none")  # fmt: skip
        if cut_lines:
            reading.note(f"{cut_lines:,} lines of more than 8 MiB were cut")
        if self._long is not None:
            self._figures(reading, self._long)
            return reading
        times, given, made = self._columns()
        keep = self._kept(times, reading)
        if not keep.all():
            times, given, made = times[keep], given[keep], made[keep]
        self._demand_no_days(times)
        unit_s, counted = self._unit(_middle(times), reading)
        times *= unit_s
        self._zone(reading, counted)
        back = int((np.diff(times) < 0).sum())
        if not self.waited:
            self._demand_clock(back, times.size, counted)
        if back:
            self._sorted(back, reading)
            order = np.argsort(times, kind="stable")
            times, given, made = times[order], given[order], made[order]
        reading.taken = int(times.size)
        times -= _shift(counted, float(times[0]))
        fleet = self._show(reading, times, {"prompt": lengths_of(given), "answer": lengths_of(made)})
        if fleet:
            stem = fleet["trace"] = f"{fleet['name']}.trace.csv"
            kept = times + (_MONDAY_S if counted else 0.0)
            text = "timestamp,input_tokens,output_tokens\n" + "".join(_rows(kept, given, made))
            reading.pieces.append(Piece(what="trace", name=stem, text=text, says="the requests, for trace:"))
            self._scenario(reading, fleet)
        return reading

    def _figures(self, reading: Reading, log: LongLog) -> None:
        """Of a log too long for a trace its figures, and a fleet by them."""
        log.settle()
        for reason, (count, first) in log.skipped.items():
            reading.skipped.add(reason, self._line(first), count)
        if not log.times.size:
            reasons = "; ".join(f"{count:,} of them: {why}" for why, (count, _) in reading.skipped.reasons.items())
            raise refused(self.source, "nothing-taken", f"no request of {self.source.name} could be taken", reasons)
        unit_s, counted = self._unit(log.middle, reading)
        self._zone(reading, counted)
        self._demand_clock(log.back, log.times.size, counted)
        if log.back:
            self._sorted(log.back, reading)
        if "id" in self.roles.of and log.apart:
            reading.note(f"Ids were held against those of the {RUN:,} to {2 * RUN:,} requests before.")
        elif "id" in self.roles.of:
            self._not_apart(reading)
        reading.taken = log.times.size
        log.times.scale = unit_s
        log.times.shift = _shift(counted, float(log.times[0]))
        lengths = {name: facts_of(counts) for name, counts in (("prompt", log.given), ("answer", log.made))}
        fleet = self._show(reading, log.times, lengths)
        if fleet:
            figures = {each.label: float(each.value) for each in reading.look}
            rates = request_trace.slot_rates(log.times)
            fleet["qpm"] = float(f"{request_trace.mean_rate(log.times, rates) * 60:.6g}")
            fleet["peak_factor"] = float(f"{max(figures[_PEAK], 1.0):.4g}")
            fleet["arrival_variability"] = float(f"{figures[_BURST]:.4g}")
            fleet["input_tokens"], fleet["output_tokens"] = (spread_of(lengths[key]) for key in ("prompt", "answer"))
            reading.note(f"more than {MOST_ROWS:,} requests: the scenario takes their figures, no trace is written")
            self._scenario(reading, fleet)

    def _scenario(self, reading: Reading, fleet: dict[str, Any]) -> None:
        share = self.blocks.share()
        share = self.reused / self.held if share is None and self.held else share
        if share:
            fleet["prefix_cached"] = f"{share:.2%}".replace("%", " %")
        says = f"a fleet for {reading.taken:,} requests of {self.source.name}"
        reading.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment={"serving": [fleet]}, says=says))

    def _demand_clock(self, back: int, requests: int, counted: bool) -> None:
        """Refuse a count of seconds that goes back and forth: it is how long requests took, not when they came."""
        if not counted and requests > _FEW and back > _BACK * requests:
            column = self.roles.of["time"]
            message = (
                f"'{column[:80]}' goes back in {back:,} of {requests:,} requests: it is no clock, maybe a time that "
            )
            raise refused(
                self.source, "no-clock", f"{message}each took", "--column time=NAME names another; or sort it"
            )

    @staticmethod
    def _sorted(back: int, reading: Reading) -> None:
        reading.note(f"{back:,} requests are earlier than the one before them: they were sorted by time")

    def _columns(self) -> tuple[Array, NDArray[np.uint32], NDArray[np.uint32]]:
        """The columns whole, one after the other: parts and wholes of all would fill the memory."""
        times, given, made = (list(parts) for parts in zip(*self._many))
        self._many.clear()
        whole = np.concatenate(times)
        times.clear()
        prompts = np.concatenate(given)
        given.clear()
        return whole, prompts, np.concatenate(made)

    def _kept(self, times: Array, reading: Reading) -> NDArray[np.bool_]:
        """Requests but those that stand twice, or whose time is in another unit or year than that of the others."""
        keep = np.ones(times.size, dtype=bool)
        if len(self.ids) == times.size and "id" in self.roles.of:
            first = np.unique(np.array(self.ids, dtype=np.int64), return_index=True)[1]
            if first.size < times.size // 2 and times.size > 10:
                self._not_apart(reading)
            elif first.size < times.size:
                keep[:] = False
                keep[first] = True
                self._skip(~keep, "the same request again, by its id", reading)
        middle = _middle(times)
        far_s = _YEAR_S / self._unit_of(middle)[0]
        if max(float(times.max()) - middle, middle - float(times.min())) > far_s:
            far = (np.abs(times - middle) > far_s) & keep
            if far.any():
                self._skip(far, "its time is more than a year from the others, or in another unit", reading)
            keep &= ~far
        return keep

    def _not_apart(self, reading: Reading) -> None:
        reading.note(f"the column {self.roles.of['id']} does not tell requests apart: not used")

    def _skip(self, which: NDArray[np.bool_], reason: str, reading: Reading) -> None:
        reading.skipped.add(reason, self._line(int(np.argmax(which))), int(which.sum()))

    def _unit_of(self, middle: float) -> tuple[float, str]:
        """The unit of times by the middle one, and how it is known.  [s]"""
        if self.written:
            return 1.0, f"written out, {self.order.said}" if self.order.said else "written out"
        said = _UNITS_S.get(self.asked.time_unit) or self.roles.time_unit_s
        if said:
            return said, "as its name or --time-unit says"
        by_size = epoch_unit_s(middle)
        if by_size:
            return by_size, "since 1970, by its size"
        if self.tool in ("Mooncake", "AIPerf"):
            return 1e-3, f"milliseconds from the start, as {self.tool} writes them"
        if self.tool == "Qwen-Bailian":
            return 1.0, "seconds from the start, as Qwen-Bailian's traces have them"
        if digits := _date_in_digits(middle):
            message = f"times as {digits} are dates that are written without signs"
            hint = "write them as 2025-03-01T12:00:00; --time-unit s says that they are seconds"
            raise refused(self.source, "dates-as-numbers", message, hint)
        return 1.0, "taken as seconds from the start; --time-unit ms says otherwise"

    def _demand_no_days(self, times: Array) -> None:
        """Refuse times that are days as spreadsheets count them, of 2000 to 2099, which no log of seconds begins at."""
        said = self.written or self.asked.time_unit or self.roles.time_unit_s
        first, last = float(times.min()), float(times.max())
        if said or not (_SHEET_DAYS[0] <= first and last < _SHEET_DAYS[1]) or not (times % 1).any():
            return
        day = date.fromordinal(_SHEET_BEGIN + int(first)).isoformat()
        message = f"times as {first:.6g} are days as a spreadsheet counts them ({day})"
        hint = "format the column as date and time, and save it again; --time-unit s says that they are seconds"
        raise refused(self.source, "dates-as-numbers", message, hint)

    def _unit(self, middle: float, reading: Reading) -> tuple[float, bool]:
        """Seconds in the unit of the times, and whether they are of the calendar."""
        column = " + ".join(self.roles.of[role] for role in ("day", "time") if role in self.roles.of)
        unit, why = self._unit_of(middle)
        reading.understood["time"] = f"{column}, {SYMBOLS[unit]}: {why}"
        parts = [self.roles.of[role] for role in ("input", "cache_read", "cache_write") if role in self.roles.of]
        reading.understood["prompt"] = f"{' + '.join(parts)}, tokens"
        parts = [self.roles.of[role] for role in ("output", "thoughts") if role in self.roles.of]
        reading.understood["answer"] = f"{' + '.join(parts)}, tokens"
        if self.roles.whole:
            both, part = self.roles.of[self.roles.whole], "input" if self.roles.whole == "output" else "output"
            reading.understood["prompt" if part == "output" else "answer"] = (
                f"{both} less {self.roles.of[part]}, tokens"
            )
        if self.signs.said:
            reading.understood["numbers"] = self.signs.said
        return unit, middle * unit >= EPOCH_FROM_S

    def _zone(self, reading: Reading, counted: bool) -> None:
        if not counted:
            reading.understood["time zone"] = "none: time 0 is taken as a Monday, 0:00"
        elif not self.written:
            reading.understood["time zone"] = "UTC: seconds since 1970"
        elif self.zones == {True}:
            reading.understood["time zone"] = "as written with each time; turned into UTC"
        elif True in self.zones:
            reading.understood["time zone"] = "as written where it is, else " + (self.asked.time_zone or "UTC")
        else:
            said = self.asked.time_zone
            reading.understood["time zone"] = (
                f"{said}, as --time-zone says" if said else "none is written: taken as UTC"
            )

    def _show(self, reading: Reading, times: Times, lengths: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
        """Show the figures of sorted times and of lengths; the fleet that they are of, empty when no rate follows."""
        seconds = request_trace.observed_s(times)
        reading.show("requests", times.size)
        reading.show("time", seconds, "s")
        rates = request_trace.slot_rates(times) if seconds > 0 else np.zeros(0)
        if seconds > 0:
            reading.show("rate", times.size / seconds, "requests/s")
            reading.show(_PEAK, request_trace.peak_factor(times, rates))
            reading.show(_BURST, request_trace.burstiness(times))
            reading.show("longest time without a request", request_trace.longest_gap_s(times), "s")
        for name, facts in lengths.items():
            for fact, value in facts.items():
                reading.show(f"{name}, {fact}", value, "tokens")
        if rates.size:
            busiest = int(np.argmax(rates))
            reading.show("busiest hour of the " + ("week" if rates.size > 24 else "day"), busiest)
        if self.failed:
            did = "what engines did for them comes on top"
            reading.note(f"{self.failed:,} requests without an end are no load here; {did}")
        share = self.blocks.share()
        if share is None and self.held:
            reading.show("prompt tokens from a cache", self.reused / self.held)
            reading.note("prefix_cached is the share of prompts that the servers of this log had in their caches")
        if share is not None:
            reading.show("prompt tokens of a prefix seen before", share)
            reading.note("the share of prefixes seen before holds for a cache that forgets nothing, on one replica")
            if self.blocks.stopped:
                reading.note("ids of blocks were too many: the share is that of the first requests")
        if seconds <= 0 or times.size < 2:
            reading.note("all requests have one time: no rate follows, and no piece of a scenario")
            return {}
        if len(self.models) > 1:
            named = ", ".join(each[:40] for each in self.models[:4])
            reading.note(f"requests name {len(self.models)} models at least ({named}): they count as one fleet of one "
                         "model; give those of one model to plan for it")  # fmt: skip
        name = name_of(self.asked.name or PurePath(self.source.name.split(" and ")[0]).name.split(".")[0])
        return {"name": name, "model": fleet_model(reading, self.asked, self.models)}


def fleet_model(reading: Reading, asked: Asked, named: Sequence[str]) -> str:
    """The model of a fleet: as asked, else the one that the file names where it is known, else a stand-in; it is said.

    Parameters
    ----------
    reading
        Takes what is said.
    asked
        What the command line says; its model wins.
    named
        Models that the file names.
    """
    if asked.model:
        return asked.model
    if len(named) == 1 and len(named[0]) < _LONGEST_NAME and preset_of(named[0]):
        reading.understood["model"] = f"{named[0][:80]}, as the file names it; --model names another"
        return named[0]
    known = f" (the file names {named[0][:60]}, whose shape is not known)" if len(named) == 1 else ""
    reading.note(
        f"{'' if known else 'no model is named: '}{MODEL} stands in the scenario; --model names another{known}"
    )
    return MODEL


def _date_in_digits(middle: float) -> str:
    """A number whose digits are those of a day or of a time, as 20250301 and 20250301120000; "" for others."""
    digits = f"{middle:.0f}"
    forms = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
    try:
        year = datetime.strptime(digits, forms.get(len(digits), "")).year
    except ValueError:
        return ""
    return digits if year in range(2000, 2100) else ""


def _middle(times: Array) -> float:
    """About the median: the time of a request, and none between two of different units."""
    some = np.sort(times[:: max(times.size // 100_000, 1)])
    return float(some[(some.size - 1) // 2])


def _shift(counted: bool, low: float) -> float:
    """What is taken off times, so that weeks begin at 0 or none is negative.  [s]"""
    return _MONDAY_S if counted else min(low, 0.0)


class PrefixBlocks:
    """Which blocks of prompts were seen before, and how many prompt tokens that saves."""

    def __init__(self) -> None:
        self._map = bytearray()
        self._names: set[int] = set()  # hashes of ids that are no small numbers
        self._prompts: tuple[array[float], array[float], array[float]] = (array("d"), array("d"), array("d"))
        self._fit = np.zeros(len(_SIZES))  # prompts that a size of blocks explains
        self._saved = np.zeros(len(_SIZES))  # tokens that were seen before, by size
        self._tokens = 0.0
        self.stopped = False

    def add(self, ids: list[Any], given: float) -> None:
        """Blocks of one prompt, in order."""
        if self.stopped:
            return
        leading, seen = 0, True
        for each in ids:
            if not isinstance(each, int | str):
                return
            known = self._seen(each)
            seen = seen and known
            leading += seen
        for column, value in zip(self._prompts, (leading, len(ids), given)):
            column.append(value)
        if len(self._prompts[0]) >= 65_536:
            self._flush()
        self.stopped = len(self._names) > _MOST_NAMES

    def add_many(self, prompts: list[Any], given: Array) -> None:
        """Blocks of many prompts at once, where their ids are small numbers; else one prompt after the other."""
        if set(map(type, prompts)) != {list} or not all(prompts):
            there = [(ids, tokens) for ids, tokens in zip(prompts, given) if isinstance(ids, list) and ids]
            prompts, given = [ids for ids, _ in there], np.array([tokens for _, tokens in there])
        flat = list(chain.from_iterable(prompts))
        small = bool(flat) and set(map(type, flat)) == {int} and 0 <= min(flat) <= max(flat) < _LARGEST_ID
        counts = np.array(list(map(len, prompts)), dtype=np.int64)
        if not small or not self.add_arrays(np.array(flat, dtype=np.int64), counts, given):
            for ids, tokens in zip(prompts, given.tolist()):
                self.add(ids, tokens)

    def add_arrays(self, blocks: NDArray[np.int64], counts: NDArray[np.int64], given: Array) -> bool:
        """Blocks of prompts one after the other, with how many each has; False where ids are not small, or enough.

        Parameters
        ----------
        blocks
            Ids of the blocks of all prompts, in order; one at least.
        counts
            Blocks of each prompt, (n,).  [count]
        given
            Tokens of each prompt, (n,).  [tokens]
        """
        if self.stopped or not 0 <= blocks.min() <= blocks.max() < _LARGEST_ID:
            return False
        self._grow(int(blocks.max()))
        marks = np.frombuffer(self._map, dtype=np.uint8)
        bits = np.left_shift(1, blocks & 7).astype(np.uint8)
        seen = (marks[blocks >> 3] & bits) != 0
        once, first = np.unique(blocks, return_index=True)
        again = np.ones(blocks.size, dtype=bool)
        again[first] = False
        np.bitwise_or.at(marks, once >> 3, bits[first])
        starts = np.cumsum(counts) - counts
        fresh = np.append(np.flatnonzero(~(seen | again)), blocks.size)
        leading = np.minimum(fresh[np.searchsorted(fresh, starts)] - starts, counts)
        self._count(leading, counts, given)
        return True

    def _flush(self) -> None:
        leading, blocks, given = (np.array(column) for column in self._prompts)
        for column in self._prompts:
            del column[:]
        self._count(leading, blocks, given)

    def _count(self, leading: NDArray[Any], blocks: NDArray[Any], given: Array) -> None:
        """Hold prompts against each size of a block: a power of two, each prompt with a last block that may be part."""
        for n, size in enumerate(_SIZES):
            self._fit[n] += float((np.ceil(given / size) == blocks).sum())
            self._saved[n] += float(np.minimum(leading * size, given).sum())
        self._tokens += float(given.sum())

    def _grow(self, most: int) -> None:
        lacks = (most >> 3) + 1 - len(self._map)
        if lacks > 0:
            self._map.extend(bytes(max(lacks, len(self._map))))

    def _seen(self, each: int | str) -> bool:
        if isinstance(each, int) and 0 <= each < _LARGEST_ID:
            at, bit = each >> 3, 1 << (each & 7)
            self._grow(each)
            known = bool(self._map[at] & bit)
            self._map[at] |= bit
            return known
        name = hash(each)
        if name in self._names:
            return True
        self._names.add(name)
        return False

    def share(self) -> float | None:
        """Prompt tokens of blocks seen before, over all prompt tokens; None without blocks."""
        self._flush()
        if not self._tokens:
            return None
        best = len(_SIZES) - 1 - int(np.argmax(self._fit[::-1]))  # of sizes that explain as many the largest
        return float(self._saved[best] / self._tokens)


def lengths_of(tokens: NDArray[np.uint32]) -> dict[str, float]:
    """Mean, percentiles and maximum of lengths.  [tokens]"""
    counts = LengthCounts()
    counts.add(tokens)
    return facts_of(counts)


def facts_of(counts: LengthCounts) -> dict[str, float]:
    """As `lengths_of`, of counted lengths.  [tokens]"""
    found = dict(zip((f"p{each}" for each in _PERCENTILES), counts.percentiles(_PERCENTILES)))
    return {"mean": counts.total / counts.size, **found, "max": float(counts.most)}


def spread_of(facts: Mapping[str, float]) -> Any:
    """Lengths as a scenario takes them: mean and p95 where those make a distribution, else the mean.  [tokens]"""
    mean, p95 = round(facts["mean"]), round(facts["p95"])
    return {"mean": mean, "p95": p95} if mean and 1 <= p95 / mean <= HIGHEST_P95_OVER_MEAN else max(mean, 1)


def _rows(times: Array, given: NDArray[np.uint32], made: NDArray[np.uint32]) -> Iterator[str]:
    digits = 6
    for time, prompt, answer in zip(times.tolist(), given.tolist(), made.tolist()):
        yield f"{time:.{digits}f},{prompt},{answer}\n"


def name_of(text: str) -> str:
    """A text as the name of a workload: small letters, digits and dashes, beginning with a letter."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    return name if name[:1].isalpha() else f"requests-{name}".strip("-")
