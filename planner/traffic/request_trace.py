"""Request traces: time, prompt and answer of each request; rate, profile, peak and burstiness of their arrivals.

Requests of a trace go into buckets: quantiles of the prompts, and within each, quantiles of the answers.
What `plan traffic` says of a trace is a document of plain data.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import PurePath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from planner.carriers import dataclass
from planner.csvtable import Columns, Table
from planner.equations.lengths import peak_over_mean, squared_variation
from planner.files import StrPath
from planner.traffic.model import HIGHEST_P95_OVER_MEAN, INPUT_QUANTILES, OUTPUT_QUANTILES, Array, Traffic

HOUR_S = 3600.0
DAY_HOURS, WEEK_HOURS = 24, 168
_MISSING_S = HOUR_S / 2  # a day or week whose last half hour is missing still counts as one
_SLOT_REQUESTS = 50  # on average, else the weights of a profile would be noise
_WINDOW_REQUESTS = 100.0  # on average, in a window of the operational time and of the peak
_FEWEST_GAPS = 20  # below, burstiness says nothing: Poisson is taken
_AT_ONCE = 4_000_000  # gaps
_RESOLUTIONS_S = (60.0, 1.0, 1e-3)


class Times(Protocol):
    """Sorted times: an array, or what is read from disk a slice at a time."""

    @property
    def size(self) -> int:
        """How many there are."""

    def __getitem__(self, at: Any, /) -> Any:
        """One, or a slice."""


def observed_s(arrival_s: Times) -> float:
    """Time that n sorted arrivals stand for: n mean gaps.  [s]"""
    n = arrival_s.size
    return float(arrival_s[-1] - arrival_s[0]) * n / (n - 1) if n > 1 else 0.0


def mean_rate(arrival_s: Times, profile_rates: Array) -> float:
    """Mean rate: over the slots of the profile, each as long as the other, else over the trace.  [1/s]"""
    if profile_rates.size:
        return float(profile_rates.mean())
    seconds = observed_s(arrival_s)
    return arrival_s.size / seconds if seconds > 0 else 0.0


def slot_rates(arrival_s: Times) -> Array:
    """Rate in each hour of the week, or of the day, or none: the first that sorted arrivals cover.

    To cover is to span all hours with 50 requests an hour slot on average. Slot 0 begins at time 0.
    Hours seen only in part count for the part that was seen.  [1/s]
    """
    span_s = observed_s(arrival_s) + _MISSING_S
    for slots in (WEEK_HOURS, DAY_HOURS):
        if span_s >= slots * HOUR_S and arrival_s.size >= slots * _SLOT_REQUESTS:
            return _rates_of(arrival_s, slots)
    return np.zeros(0)


def _rates_of(arrival_s: Times, slots: int) -> Array:
    # the trace is seen from half a mean gap before its first request to half a one after its last
    half_gap_s = (float(arrival_s[-1]) - float(arrival_s[0])) / (arrival_s.size - 1) / 2
    first, last = float(arrival_s[0]) - half_gap_s, float(arrival_s[-1]) + half_gap_s
    hours = np.arange(np.floor(first / HOUR_S), np.floor(last / HOUR_S) + 1)
    seen_s = np.minimum((hours + 1) * HOUR_S, last) - np.maximum(hours * HOUR_S, first)
    seen_s = np.bincount((hours % slots).astype(int), weights=seen_s, minlength=slots)
    count = np.zeros(slots, dtype=int)
    for part in _parts(arrival_s):
        count += np.bincount((np.floor(part / HOUR_S) % slots).astype(int), minlength=slots)
    rates: Array = count / np.maximum(seen_s, 1.0)
    return rates


def peak_factor(arrival_s: Times, profile_rates: Array) -> float:
    """Busiest hour of the profile over the mean; without a profile, the busiest of all but 1 % of the minutes.

    Where a minute holds fewer than 100 requests on average, the time that 100 take stands for it: the chance
    that arrivals crowd is the queue's matter (`burstiness`), not the peak's (EQ-TRF-4).
    """
    if profile_rates.size:
        return float(peak_over_mean(profile_rates.max(), profile_rates.mean()))
    first, last = float(arrival_s[0]), float(arrival_s[-1])
    window_s = max(60.0, _WINDOW_REQUESTS * (last - first) / arrival_s.size)
    windows = int((last - first) // window_s)
    if windows < 2:
        return 1.0
    count = np.zeros(windows + 2, dtype=int)
    for part in _parts(arrival_s):
        seen = np.bincount(((part - first) // window_s).astype(int), minlength=windows + 2)
        count += seen[: windows + 2]
    count = count[:windows]
    return float(peak_over_mean(np.quantile(count, 0.99), count.mean()))


def burstiness(arrival_s: Times) -> float:
    """Squared variation of the gaps between sorted arrivals, the daily profile removed (EQ-TRF-3).

    Time is stretched so that every window has the same rate: an hour, or as long as 100 requests
    take on average. What is left varies within windows, which is what makes requests queue.
    Arrivals that share a coarse time stamp are spread over its length at random, with a fixed seed.
    """
    if arrival_s.size <= _FEWEST_GAPS or arrival_s[-1] <= arrival_s[0]:
        return 1.0
    parts = _spread(arrival_s)
    first, last = float(next(parts())[0]), 0.0
    for part in parts():
        last = float(part[-1])
    span = last - first
    windows = int(np.ceil(span / max(HOUR_S, _WINDOW_REQUESTS * span / arrival_s.size)))
    edges = np.minimum(first + np.arange(windows + 1) * (span / windows), last)
    count = np.zeros(windows, dtype=np.int64)
    for part in parts():
        count += np.histogram(part, edges)[0]
    passed = np.concatenate([[0.0], np.cumsum(count)])
    mean = square = 0.0
    before = np.zeros(0)
    for part in parts():  # long traces in parts: the columns of all would fill the memory
        gaps = np.diff(np.interp(np.concatenate([before, part]), edges, passed))
        share = gaps.size / (arrival_s.size - 1)
        before = part[-1:]
        if gaps.size:
            mean, square = mean + gaps.mean() * share, square + (gaps**2).mean() * share
    return float(squared_variation(mean, square))


def longest_gap_s(arrival_s: Times) -> float:
    """The longest time between two sorted arrivals.  [s]"""
    longest, before = 0.0, np.zeros(0)
    for part in _parts(arrival_s):
        longest = max(longest, float(np.diff(np.concatenate([before, part])).max(initial=0.0)))
        before = part[-1:]
    return longest


def _parts(arrival_s: Times) -> Iterator[Array]:
    """A long trace a part at a time."""
    for begin in range(0, arrival_s.size, _AT_ONCE):
        yield arrival_s[begin : begin + _AT_ONCE]


def _spread(arrival_s: Times) -> Callable[[], Iterator[Array]]:
    """Arrivals with equal time stamps apart, by parts: each somewhere within the resolution of the stamps."""

    def whole() -> Iterator[Array]:
        return _parts(arrival_s)

    before, apart = -np.inf, True
    for part in whole():
        apart = apart and bool(part[0] > before) and bool(np.all(part[1:] > part[:-1]))
        before = part[-1]
    if apart:
        return whole
    base_s = np.floor(arrival_s[0])
    for resolution_s in _RESOLUTIONS_S:
        if all(_in_steps(part - base_s, resolution_s) for part in whole()):

            def spread(resolution_s: float = resolution_s) -> Iterator[Array]:
                lots = np.random.default_rng(0)
                for part in whole():
                    yield np.sort(part + resolution_s * lots.random(part.size))

            return spread
    return whole


def _in_steps(since_s: Array, resolution_s: float) -> bool:
    steps = since_s / resolution_s
    return bool(np.all(np.abs(steps - np.round(steps)) < 1e-3))


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
        return observed_s(self.arrival_s)

    def grid(self) -> Grid:
        """Buckets of lengths with exact moments."""
        return quantile_grid(self.input_tokens, self.output_tokens)

    def traffic(self) -> Traffic:
        """Rate, burstiness, buckets, profile and peak of the trace."""
        rates = slot_rates(self.arrival_s)
        grid = self.grid()
        return Traffic(
            buckets=grid.buckets,
            share=grid.share,
            input_tokens=grid.input_tokens,
            output_tokens=grid.output_tokens,
            input_second_moment=grid.input_second_moment,
            output_second_moment=grid.output_second_moment,
            requests_per_s=mean_rate(self.arrival_s, rates),
            peak_factor=peak_factor(self.arrival_s, rates),
            arrival_variability=burstiness(self.arrival_s),
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


_PERCENTILES = (50, 90, 95, 99)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_EQUATIONS = ("EQ-TRF-3", "EQ-TRF-4")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")


class Lengths(TypedDict):
    """Tokens of prompts or answers."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float
    squared_variation: float


class BucketSeen(TypedDict):
    """Requests of one bucket of lengths."""

    bucket: str
    share: float
    input_tokens: float
    output_tokens: float
    requests_per_s: float


class DaySeen(TypedDict):
    """Weights of the hours of a day."""

    day: str
    weights: list[float]


class TrafficDocument(TypedDict):
    """What a trace shows, and the scenario lines that say the same."""

    file: str
    sha256: str
    requests: int
    seconds: float
    calendar: bool
    requests_per_s: float
    requests_per_minute: float
    peak_factor: float
    peak_of: str
    arrival_variability: float
    input_tokens: Lengths
    output_tokens: Lengths
    buckets: list[BucketSeen]
    profile: list[DaySeen]
    equations: list[str]
    scenario_trace: str
    scenario_numbers: list[str]


def traffic_document(trace: Trace) -> TrafficDocument:
    """Rate, burstiness, lengths, buckets, profile and peak of a trace, and the scenario lines that say the same."""
    traffic = trace.traffic()
    prompts, answers = _lengths(trace.input_tokens), _lengths(trace.output_tokens)
    return {
        "file": trace.file,
        "sha256": trace.sha256,
        "requests": int(trace.arrival_s.size),
        "seconds": trace.seconds,
        "calendar": trace.calendar,
        "requests_per_s": traffic.requests_per_s,
        "requests_per_minute": traffic.requests_per_s * 60,
        "peak_factor": traffic.peak_factor,
        "peak_of": "busiest hour of the profile" if traffic.profile else "busiest of all but 1 % of the minutes",
        "arrival_variability": traffic.arrival_variability,
        "input_tokens": prompts,
        "output_tokens": answers,
        "buckets": _buckets(traffic),
        "profile": _profile(traffic, trace.calendar),
        "equations": list(_EQUATIONS),
        "scenario_trace": f"trace: {_path(trace.file)}",
        "scenario_numbers": [
            f"qpm: {_short(traffic.requests_per_s * 60)}",
            f"peak_factor: {_short(traffic.peak_factor)}",
            f"arrival_variability: {_short(traffic.arrival_variability)}",
            f"input_tokens: {_distribution(prompts)}",
            f"output_tokens: {_distribution(answers)}",
        ],
    }


def _lengths(tokens: Array) -> Lengths:
    p50, p90, p95, p99 = map(float, np.percentile(tokens, _PERCENTILES))
    return {
        "mean": float(tokens.mean()),
        "p50": p50,
        "p90": p90,
        "p95": p95,
        "p99": p99,
        "max": float(tokens.max()),
        "squared_variation": float(tokens.var() / tokens.mean() ** 2),
    }


def _buckets(traffic: Traffic) -> list[BucketSeen]:
    return [
        {
            "bucket": name,
            "share": float(traffic.share[i]),
            "input_tokens": float(traffic.input_tokens[i]),
            "output_tokens": float(traffic.output_tokens[i]),
            "requests_per_s": float(traffic.bucket_requests_per_s[i]),
        }
        for i, name in enumerate(traffic.buckets)
    ]


def _profile(traffic: Traffic, calendar: bool) -> list[DaySeen]:
    """One row a day: its name and the weights of its hours."""
    days = [list(traffic.profile[i : i + DAY_HOURS]) for i in range(0, len(traffic.profile), DAY_HOURS)]
    names = [f"day {number + 1}" for number in range(len(days))]
    if calendar and len(days) == len(_DAYS):
        names = list(_DAYS)
    return [{"day": name if len(days) > 1 else "every day", "weights": day} for name, day in zip(names, days)]


def _distribution(facts: Lengths) -> str:
    mean, p95 = round(facts["mean"]), round(facts["p95"])
    if mean and 1 <= p95 / mean <= HIGHEST_P95_OVER_MEAN:
        return f"{{mean: {mean}, p95: {p95}}}"
    return _short(facts["mean"])


def _short(value: float) -> str:
    """Four digits, without an exponent."""
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")


def _path(file: str) -> str:
    name = PurePath(file).name
    return name if _PLAIN.fullmatch(name) else json.dumps(name)
