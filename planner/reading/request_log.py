"""Requests as they are read, in columns; what they show, and the trace or the numbers that a scenario takes."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import field
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.reading.columns import SYMBOLS, Roles
from planner.reading.kinds import Asked
from planner.reading.reading import Piece, Reading, Skips
from planner.reading.source import Source, refused
from planner.reading.times import EPOCH_FROM_S, epoch_unit_s
from planner.traffic import arrivals
from planner.traffic.lengths import HIGHEST_P95_OVER_MEAN
from planner.traffic.trace import MOST_ROWS

Array = NDArray[np.float64]
_YEAR_S = 366 * 86_400.0
_MONDAY_S = 4 * 86_400.0  # 1970-01-05
_LARGEST_ID = 400_000_000  # of a block, as a bit of a map
_MOST_NAMES = 4_000_000  # ids of blocks that are no numbers
_UNITS_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_PERCENTILES = (50, 90, 95, 99)
MODEL = "llama-3.1-8b"


@dataclass(slots=True, kw_only=True)
class RequestLog:
    """Requests in the order of the file."""

    source: Source
    roles: Roles
    asked: Asked
    tool: str = ""
    written: bool = False  # times are written out, not counted
    zones: set[bool] = field(default_factory=set)  # whether times name their zone
    ids: array[int] = field(default_factory=lambda: array("q"))
    blocks: PrefixBlocks = field(default_factory=lambda: PrefixBlocks())
    _few: tuple[array[float], array[float], array[float]] = field(
        default_factory=lambda: (array("d"), array("d"), array("d"))
    )
    _first: list[tuple[int, int]] = field(default_factory=list)  # request so many -> line
    _many: list[tuple[Array, NDArray[np.uint32], NDArray[np.uint32]]] = field(default_factory=list)
    _count: int = 0

    def add(self, time: float, given: float, made: float, line: int) -> None:
        """One request."""
        for column, value in zip(self._few, (time, given, made)):
            column.append(value)
        if not self._count % 4096:
            self._first.append((self._count, line))
        self._count += 1
        if len(self._few[0]) >= 65_536:
            self._flush()

    def add_many(self, times: Array, given: Array, made: Array, line: int) -> None:
        """Requests of consecutive lines."""
        self._flush()
        self._first.append((self._count, line))
        self._many.append((times, given.astype(np.uint32), made.astype(np.uint32)))
        self._count += times.size

    def add_blocks(self, ids: Any, given: float) -> None:
        """Ids of the blocks of a prompt, of which equal leading ones are a shared prefix."""
        if isinstance(ids, list) and ids:
            self.blocks.add(ids, given)

    def _flush(self) -> None:
        times, given, made = (np.array(column, dtype=np.float64) for column in self._few)
        if times.size:
            self._many.append((times, given.astype(np.uint32), made.astype(np.uint32)))
            for column in self._few:
                del column[:]

    def _line(self, request: int) -> int:
        """About the line of a request by its number."""
        before = [each for each in self._first if each[0] <= request]
        return before[-1][1] + request - before[-1][0] if before else request + 1

    def reading(self, kind: str, title: str, skipped: Skips, cut_lines: int) -> Reading:
        """What the requests show, and what follows.

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
        if cut_lines:
            reading.note(f"{cut_lines:,} lines of more than 8 MiB were cut")
        times, given, made = self._columns()
        keep = self._kept(times, reading)
        if not keep.all():
            times, given, made = times[keep], given[keep], made[keep]
        unit_s, counted = self._unit(times, reading)
        times *= unit_s
        self._zone(reading, counted)
        back = int((np.diff(times) < 0).sum())
        if back:
            reading.note(f"{back:,} requests are earlier than the one before them: they were sorted by time")
            order = np.argsort(times, kind="stable") if times.size <= MOST_ROWS else None
            if order is None:
                times.sort()  # lengths need no order when no trace is written
            else:
                times, given, made = times[order], given[order], made[order]
        reading.taken = int(times.size)
        self._show(reading, times, given, made, counted)
        return reading

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
                reading.note(f"the column {self.roles.of['id']} does not tell requests apart: not used")
            elif first.size < times.size:
                keep[:] = False
                keep[first] = True
                self._skip(~keep, "the same request again, by its id", reading)
        middle = float(np.median(times[:: max(times.size // 100_000, 1)]))
        far_s = _YEAR_S / (self._given_unit() or epoch_unit_s(middle) or 1.0)
        if max(float(times.max()) - middle, middle - float(times.min())) > far_s:
            far = (np.abs(times - middle) > far_s) & keep
            if far.any():
                self._skip(far, "its time is more than a year from the others, or in another unit", reading)
            keep &= ~far
        return keep

    def _skip(self, which: NDArray[np.bool_], reason: str, reading: Reading) -> None:
        reading.skipped.add(reason, self._line(int(np.argmax(which))), int(which.sum()))

    def _given_unit(self) -> float | None:
        """The unit of times that is said: written out, on the command line, by the column's name."""
        if self.written:
            return 1.0
        return _UNITS_S.get(self.asked.time_unit) or self.roles.time_unit_s

    def _unit(self, times: Array, reading: Reading) -> tuple[float, bool]:
        """Seconds in the unit of the times, and whether they are of the calendar."""
        column = self.roles.of.get("time", "time")
        middle = float(np.median(times[:: max(times.size // 100_000, 1)]))
        unit, why = self._given_unit(), "written out" if self.written else "as its name or --time-unit says"
        if unit is None:
            unit, why = epoch_unit_s(middle), "since 1970, by its size"
        if unit is None and self.tool == "Mooncake":
            unit, why = 1e-3, "milliseconds from the start, as Mooncake writes them"
        if unit is None:
            unit, why = 1.0, "taken as seconds from the start; --time-unit ms says otherwise"
        reading.understood["time"] = f"{column}, {SYMBOLS[unit]}: {why}"
        reading.understood["prompt"] = f"{self.roles.of['input']}, tokens"
        reading.understood["answer"] = f"{self.roles.of['output']}, tokens"
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

    def _show(
        self, reading: Reading, times: Array, given: NDArray[np.uint32], made: NDArray[np.uint32], counted: bool
    ) -> None:
        low = float(times[0])
        shift = _MONDAY_S if counted else min(low, 0.0)
        times -= shift
        seconds = arrivals.observed_s(times)
        reading.show("requests", int(times.size))
        reading.show("time", seconds, "s")
        lengths = {name: lengths_of(tokens) for name, tokens in (("prompt", given), ("answer", made))}
        rates = arrivals.slot_rates(times) if seconds > 0 else np.zeros(0)
        rate = arrivals.mean_rate(times, rates) if seconds > 0 else 0.0
        plain_rate = times.size / seconds if seconds > 0 else 0.0
        if seconds > 0:
            peak, burst = arrivals.peak_factor(times, rates), arrivals.burstiness(times)
            reading.show("rate", plain_rate, "requests/s")
            reading.show("peak over mean", peak)
            reading.show("burstiness (squared variation of gaps)", burst)
            gaps = float(np.diff(times).max()) if times.size > 1 else 0.0
            reading.show("longest time without a request", gaps, "s")
        for name, facts in lengths.items():
            for fact, value in facts.items():
                reading.show(f"{name}, {fact}", value, "tokens")
        if rates.size:
            busiest = int(np.argmax(rates))
            reading.show("busiest hour of the " + ("week" if rates.size > 24 else "day"), busiest)
        share = self.blocks.share()
        if share is not None:
            reading.show("prompt tokens of a prefix seen before", share)
            reading.note("the share of prefixes seen before holds for a cache that forgets nothing, on one replica")
            if self.blocks.stopped:
                reading.note("ids of blocks were too many: the share is that of the first requests")
        if seconds <= 0 or times.size < 2:
            reading.note("all requests have one time: no rate follows, and no piece of a scenario")
            return
        name = name_of(self.asked.name or PurePath(self.source.name.split(" and ")[0]).name.split(".")[0])
        fleet: dict[str, Any] = {"name": name, "model": self.asked.model or MODEL}
        if not self.asked.model:
            reading.note(f"no model is named: {MODEL} stands in the scenario; --model names another")
        if times.size <= MOST_ROWS:
            stem = f"{name}.trace.csv"
            fleet["trace"] = stem
            kept = times + (_MONDAY_S if counted else 0.0)
            text = "timestamp,input_tokens,output_tokens\n" + "".join(_rows(kept, given, made))
            reading.pieces.append(Piece(what="trace", name=stem, text=text, says="the requests, for trace:"))
        else:
            fleet["qpm"] = float(f"{rate * 60:.6g}")
            fleet["peak_factor"] = float(f"{max(peak, 1.0):.4g}")
            fleet["arrival_variability"] = float(f"{burst:.4g}")
            fleet["input_tokens"], fleet["output_tokens"] = (spread_of(lengths[key]) for key in ("prompt", "answer"))
            reading.note(f"more than {MOST_ROWS:,} requests: the scenario takes their figures, no trace is written")
        if share:
            fleet["prefix_cached"] = f"{share:.2%}".replace("%", " %")
        says = f"a fleet for {times.size:,} requests of {self.source.name}"
        reading.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment={"serving": [fleet]}, says=says))


class PrefixBlocks:
    """Which blocks of prompts were seen before, and how many prompt tokens that saves."""

    def __init__(self) -> None:
        self._map = bytearray()
        self._names: set[Any] = set()
        self._size = 0  # tokens of a block, by the longest prompts that have few
        self._shared: list[tuple[int, int]] = []  # leading blocks seen before, all blocks
        self._given: array[float] = array("d")
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
        self._shared.append((leading, len(ids)))
        self._given.append(given)
        self.stopped = len(self._names) > _MOST_NAMES

    def _seen(self, each: int | str) -> bool:
        if isinstance(each, int) and 0 <= each < _LARGEST_ID:
            at, bit = each >> 3, 1 << (each & 7)
            if at >= len(self._map):
                self._map.extend(bytes(max(at + 1 - len(self._map), len(self._map))))
            known = bool(self._map[at] & bit)
            self._map[at] |= bit
            return known
        if each in self._names:
            return True
        self._names.add(each)
        return False

    def share(self) -> float | None:
        """Prompt tokens of blocks seen before, over all prompt tokens; None without blocks."""
        if not self._shared:
            return None
        counts, given = np.array(self._shared, dtype=np.float64), np.array(self._given)
        size = _block_size(given, counts[:, 1])
        return float(np.minimum(counts[:, 0] * size, given).sum() / given.sum())


def _block_size(given: Array, blocks: Array) -> float:
    """Tokens of a block: the power of two that explains the most prompts, each with a last block that may be part."""
    sizes = [float(2**power) for power in range(0, 15)]
    return max(sizes, key=lambda size: (float((np.ceil(given / size) == blocks).mean()), size))


def lengths_of(tokens: NDArray[np.uint32]) -> dict[str, float]:
    """Mean, percentiles and maximum of lengths.  [tokens]"""
    found = dict(zip((f"p{each}" for each in _PERCENTILES), map(float, np.percentile(tokens, _PERCENTILES))))
    return {"mean": float(tokens.mean(dtype=np.float64)), **found, "max": float(tokens.max())}


def spread_of(facts: dict[str, float]) -> Any:
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
