"""Request traces: time, prompt and answer of each request.

Requests of a trace in buckets: quantiles of the prompts, and within each, quantiles of the answers.
"""

from __future__ import annotations

import csv
import io
import math
import re
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.csvtable import Columns, Table
from planner.files import StrPath
from planner.traffic import arrivals
from planner.traffic.model import INPUT_QUANTILES, OUTPUT_QUANTILES, Array, Traffic

LEAST_SHARE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Buckets with exact shares and moments."""

    buckets: tuple[str, ...]  # "upper edge of the prompts/upper edge of the answers"
    share: Array
    input_tokens: Array
    output_tokens: Array
    input_second_moment: Array
    output_second_moment: Array


def quantile_grid(input_tokens: Array, output_tokens: Array) -> Grid:
    """At most 20 buckets of at least 0.5 % of the requests each (or one request), with the exact moments of each."""
    rows, row_edges = _binned(input_tokens, INPUT_QUANTILES)
    label = np.zeros(rows.size, dtype=np.int64)
    names: list[str] = []
    for row, edge in enumerate(row_edges):
        inside = np.flatnonzero(rows == row)
        columns, edges = _binned(output_tokens[inside], OUTPUT_QUANTILES)
        label[inside] = len(names) + columns
        names += [f"{edge:.0f}/{upper:.0f}" for upper in edges]
    count = np.bincount(label, minlength=len(names)).astype(float)

    def mean(values: Array) -> Array:
        return np.asarray(np.bincount(label, weights=values, minlength=len(names)) / count)

    return Grid(
        buckets=tuple(names),
        share=count / count.sum(),
        input_tokens=mean(input_tokens),
        output_tokens=mean(output_tokens),
        input_second_moment=mean(input_tokens**2),
        output_second_moment=mean(output_tokens**2),
    )


def _binned(values: Array, quantiles: tuple[float, ...]) -> tuple[NDArray[np.int64], Array]:
    """The bin of each value and the upper edges of the bins, which are values that occur; no bin is empty."""
    edges = np.unique(np.quantile(values, quantiles, method="higher"))
    return np.searchsorted(edges, values, side="left"), edges


LIMIT_BYTES = 128_000_000
MOST_ROWS = 2_000_000
LONGEST = 1e9  # tokens
_COLUMNS = Columns(
    kinds={"timestamp": str, "input_tokens": int, "output_tokens": int},
    required=("timestamp", "input_tokens", "output_tokens"),
    filled=("timestamp", "input_tokens", "output_tokens"),
    most={"input_tokens": LONGEST, "output_tokens": LONGEST},
    most_rows=MOST_ROWS + 1,
)
_CALENDAR_FROM_S = 1e9  # seconds above this count from 1970 (2001 and later), below from a Monday, 0:00
_LATEST_S = 1e11  # seconds since 1970 in the year 5138: more are milliseconds
_MONDAY_S = 4 * 86400.0  # 1970-01-05, a Monday
_BLOCK = 50_000
_EITHER = re.compile(r"[1-9]\d{0,2}\.000")  # one, or a thousand with a sign between thousands
_DECIMAL = re.compile(r"0\.\d+|\d{4,}\.\d*|\d+\.\d{0,2}")
_HINT = "write seconds, 12.5, or ISO 8601, 2026-11-02T08:30:00.250Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Requests in order of arrival, and what they show."""

    file: str
    sha256: str
    arrival_s: Array  # from a Monday, 0:00  [s]
    input_tokens: Array
    output_tokens: Array
    calendar: bool  # whether the days of the week are those of the calendar (UTC)

    @property
    def seconds(self) -> float:
        """Time that the requests stand for: n mean gaps.  [s]"""
        return arrivals.observed_s(self.arrival_s)

    def grid(self) -> Grid:
        """Buckets of lengths with exact moments."""
        return quantile_grid(self.input_tokens, self.output_tokens)

    def traffic(self) -> Traffic:
        """Rate, burstiness, buckets, profile and peak of the trace."""
        rates = arrivals.slot_rates(self.arrival_s)
        grid = self.grid()
        return Traffic(
            buckets=grid.buckets,
            share=grid.share,
            input_tokens=grid.input_tokens,
            output_tokens=grid.output_tokens,
            input_second_moment=grid.input_second_moment,
            output_second_moment=grid.output_second_moment,
            requests_per_s=arrivals.mean_rate(self.arrival_s, rates),
            peak_factor=arrivals.peak_factor(self.arrival_s, rates),
            arrival_variability=arrivals.burstiness(self.arrival_s),
            profile=tuple((rates / rates.mean()).tolist()) if rates.size else (),
            files=((self.file, self.sha256),),
        )


def read_trace(path: StrPath) -> Trace:
    """A trace with the columns timestamp (seconds or ISO 8601), input_tokens, output_tokens; rows in any order.

    Seconds from 2001 on count from 1970, UTC; smaller ones from the beginning of a Monday.
    ISO times without a zone are UTC.

    Raises
    ------
    InputError
        Every mistake of the file, each with line and column; fewer than two requests, or no time between them.
    """
    table = Table.open(path, _COLUMNS, limit_bytes=LIMIT_BYTES)
    if table.text.count("\n") > MOST_ROWS + 1:
        table.complain("too-large", f"the trace has more than {MOST_ROWS:,} rows", 1, 0, "take a part of the time")
    table.demand_none()
    columns = _fast(table) or _careful(table)
    table.demand_none()
    _note_either(table)
    table.demand_none()
    seconds, given, made = columns
    if seconds.size < 2 or seconds.max() <= seconds.min():
        what = "fewer than two requests" if seconds.size < 2 else "all requests at one time"
        table.complain("too-short", f"the trace has {what}: no rate follows", 1, 0, "give a longer trace")
    table.demand_none()
    order = np.argsort(seconds, kind="stable")
    calendar = bool(seconds.min() >= _CALENDAR_FROM_S)
    if calendar:
        seconds = seconds - _MONDAY_S
    return Trace(file=table.file, sha256=table.sha256, arrival_s=seconds[order], input_tokens=given[order],
                 output_tokens=made[order], calendar=calendar)  # fmt: skip


Columns3 = tuple[Array, Array, Array]


def _fast(table: Table) -> Columns3 | None:
    """The three columns, block by block, when nothing is wrong with the file; else None."""
    reader = csv.reader(io.StringIO(table.text, newline=""), strict=True)
    parts: list[NDArray[Any]] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        if sorted(header) != sorted(_COLUMNS.required):
            return None
        while block := [cells for cells in islice(reader, _BLOCK) if cells]:
            columns = dict(zip(header, zip(*block, strict=True), strict=True))
            times = list(map(_seconds, columns["timestamp"]))
            tokens = [list(map(float, columns[key])) for key in ("input_tokens", "output_tokens")]
            parts.append(np.array([times, *tokens]))
    except (ValueError, csv.Error):
        return None
    if not parts or "_" in table.text.partition("\n")[2]:
        return None
    seconds, given, made = np.concatenate(parts, axis=1)
    lengths = np.stack([given, made])
    sound = np.all((lengths >= 1) & (lengths <= LONGEST) & (lengths == np.floor(lengths)))
    mixed = seconds.min() < _CALENDAR_FROM_S <= seconds.max()
    return (seconds, given, made) if sound and not mixed else None


def _careful(table: Table) -> Columns3:
    """The three columns cell by cell, every mistake noted."""
    found: list[tuple[float, float, float]] = []
    first: float | None = None
    for line, row in table.rows():
        text, given, made = row.get("timestamp"), row.get("input_tokens"), row.get("output_tokens")
        if text is None:
            continue
        try:
            seconds = _seconds(text)
        except ValueError as error:
            table.complain("bad-timestamp", f"timestamp is '{text[:80]}'", line, "timestamp", str(error) or _HINT)
            continue
        first = seconds if first is None else first
        if (seconds >= _CALENDAR_FROM_S) != (first >= _CALENDAR_FROM_S):
            message = f"timestamp is '{text[:80]}', years from the first one"
            table.complain("bad-timestamp", message, line, "timestamp", "count all seconds from the same time")
        elif given is not None and made is not None:
            found.append((seconds, given, made))
    columns = np.array(found, dtype=np.float64).reshape(-1, 3).T
    return columns[0], columns[1], columns[2]


def _note_either(table: Table) -> None:
    """A mistake where 1.000 tokens may be one or a thousand, and no number of the file has a dot that is decimal."""
    if ".000" not in table.text:
        return
    found: tuple[int, int, str] | None = None
    for line, cells in table.lines():
        for at, cell in enumerate(map(str.strip, cells)):
            if "." not in cell or table.header[at] == "timestamp":
                continue
            if _DECIMAL.fullmatch(cell):
                return
            if not found and _EITHER.fullmatch(cell):
                found = (line, at, cell)
    if found:
        line, at, cell = found
        one = cell.partition(".")[0]
        table.complain("mixed-numbers", f"{table.header[at]} is '{cell}', which may be {one} or {one}000, and no other "
                       "number tells", line, at, f"write whole numbers without a sign: {one}000 or {one}")  # fmt: skip


class _BadTimeError(ValueError):
    """A time stamp with a way out of its own."""


def _seconds(text: str) -> float:
    """A time stamp in seconds; ISO times count from 1970, UTC."""
    try:
        value = float(text)
    except ValueError:
        return _iso_seconds(text)
    if not 0 <= value < _LATEST_S or "_" in text:
        milli = math.isfinite(value) and value >= _LATEST_S
        raise _BadTimeError("divide by 1000: the column is in seconds" if milli else _HINT)
    return value


def _iso_seconds(text: str) -> float:
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise _BadTimeError(_HINT) from None
    seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    if seconds < _CALENDAR_FROM_S:
        raise _BadTimeError("times before 2001-09-09 are not read")
    return seconds
