"""A log of any length in bounded memory: times in order on disk, lengths as counts, figures by parts."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner import files
from planner.carriers import dataclass

Array = NDArray[np.float64]
Counts = NDArray[np.uint32]
Whole = NDArray[np.int64]
RUN = 1 << 20  # requests that are held at once
_SAMPLED = 1024  # each so many times of a run stands for it
_EXACT = 1 << 20  # tokens up to which every length is counted by itself; beyond in steps
_STEP = 1024  # tokens


class SortedTimes:
    """Times of requests, in order once `settle` was called: read by index and slice, times `scale` less `shift`."""

    def __init__(self) -> None:
        self._file = files.scratch()
        self._runs: list[tuple[int, int, Array]] = []  # first, count, samples of it
        self._last = -np.inf
        self._ordered = True
        self.size = 0
        self.scale, self.shift = 1.0, 0.0

    def add(self, times: Array) -> None:
        """One run of times in any order."""
        run = np.sort(times)
        self._ordered &= bool(run[0] >= self._last)
        self._last = float(run[-1])
        self._runs.append((self.size, run.size, run[_SAMPLED // 2 :: _SAMPLED].copy()))
        self._file.write(run.tobytes())
        self.size += run.size

    def settle(self) -> None:
        """Put all runs in one order: by ranges of time, each gathered from all runs."""
        if self._ordered:
            return
        samples = np.sort(np.concatenate([sample for *_, sample in self._runs]))
        ranges = -(-self.size // RUN)
        bounds = samples[np.linspace(0, samples.size - 1, ranges + 1).astype(int)[1:-1]]
        cuts = [np.pad(np.searchsorted(self._read(first, first + count), bounds), 1, constant_values=(0, count))
                for first, count, _ in self._runs]  # fmt: skip
        made = files.scratch()
        for n in range(ranges):
            parts = [self._read(run[0] + cut[n], run[0] + cut[n + 1]) for run, cut in zip(self._runs, cuts)]
            made.write(np.sort(np.concatenate(parts)).tobytes())
        self._file.close()
        self._file, self._ordered = made, True

    def _read(self, begin: int, end: int) -> Array:
        self._file.seek(begin * 8)
        return np.frombuffer(self._file.read(max(end - begin, 0) * 8), dtype=np.float64)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            begin, end, _ = at.indices(self.size)
            return self._read(begin, end) * self.scale - self.shift
        begin = at + self.size if at < 0 else at
        return float(self._read(begin, begin + 1)[0]) * self.scale - self.shift


class LengthCounts:
    """How many requests have each number of tokens; above a million in steps of 1,024."""

    def __init__(self) -> None:
        self._exact = np.zeros(_EXACT, dtype=np.int64)
        self._steps = np.zeros(0, dtype=np.int64)
        self.size, self.total, self.most = 0, 0, 0

    def add(self, tokens: Counts) -> None:
        """Some requests."""
        small = tokens[tokens < _EXACT]
        found = np.bincount(small)
        self._exact[: found.size] += found
        if small.size < tokens.size:
            steps = np.bincount((tokens[tokens >= _EXACT] - _EXACT) // _STEP)
            grown = np.zeros(max(steps.size, self._steps.size), dtype=np.int64)
            grown[: self._steps.size] += self._steps
            grown[: steps.size] += steps
            self._steps = grown
        self.size += tokens.size
        self.total += int(tokens.sum(dtype=np.int64))
        self.most = max(self.most, int(tokens.max(initial=0)))

    def percentiles(self, shares: tuple[int, ...]) -> list[float]:
        """Percentiles between the two lengths beside each, as numpy takes them.  [tokens]"""
        passed = np.cumsum(np.concatenate([self._exact, self._steps]))
        places = np.array(shares) / 100 * (self.size - 1)
        low, high = (self._length(np.searchsorted(passed, each, side="right")) for each in
                     (np.floor(places), np.ceil(places)))  # fmt: skip
        return [float(each) for each in low + (high - low) * (places % 1)]

    @staticmethod
    def _length(place: Any) -> Whole:
        found: Whole = np.where(place < _EXACT, place, _EXACT + (place - _EXACT) * _STEP)
        return found


@dataclass(slots=True, kw_only=True)
class LongLog:
    """Requests in the order of the file, of which only figures are kept."""

    middle: float  # of the times, by the first requests
    far: float  # a time so far from it is another unit's or year's
    times: SortedTimes = field(default_factory=SortedTimes)
    given: LengthCounts = field(default_factory=LengthCounts)
    made: LengthCounts = field(default_factory=LengthCounts)
    back: int = 0  # requests earlier than the one before
    skipped: dict[str, tuple[int, int]] = field(default_factory=dict)  # reason -> how many, number of the first
    seen: int = 0
    apart: bool = True  # whether ids tell requests apart, by the first run
    _held: list[tuple[Array, Counts, Counts, Whole]] = field(default_factory=list)
    _before: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # ids of the run before
    _last: float = -np.inf

    def add(self, times: Array, given: Counts, made: Counts, ids: Whole) -> None:
        """Some requests, with ids where they are told apart by them.

        Parameters
        ----------
        times
            As `RequestLog.add_many` takes them, in the order of the file, (n,).
        given, made
            Tokens of the prompts and of the answers, (n,).  [tokens]
        ids
            (n,), equal for the same request; (0,): the log has none.
        """
        self._held.append((times, given, made, ids))
        if sum(part[0].size for part in self._held) >= RUN:
            self.settle(whole=False)

    def settle(self, *, whole: bool = True) -> None:
        """Count what is held; with `whole` put the times in order, too."""
        if self._held:
            times, given, made, ids = (np.concatenate(column) for column in zip(*self._held))
            self._held.clear()
            for begin in range(0, times.size, RUN):
                part = slice(begin, begin + RUN)
                self._count(times[part], given[part], made[part], ids[part] if ids.size == times.size else ids[:0])
        if whole:
            self.times.settle()

    def _count(self, times: Array, given: Counts, made: Counts, ids: Whole) -> None:
        keep = np.abs(times - self.middle) <= self.far
        self._skip(~keep, "its time is more than a year from the others, or in another unit")
        if ids.size and not self.seen:
            self.apart = np.unique(ids).size >= times.size // 2
        if ids.size and self.apart:
            first = np.zeros(times.size, dtype=bool)
            first[np.unique(ids, return_index=True)[1]] = True
            first &= ~np.isin(ids, self._before)
            self._skip(keep & ~first, "the same request again, by its id")
            keep, self._before = keep & first, ids
        self.seen += times.size
        times = times[keep]
        if not times.size:
            return
        self.back += int((np.diff(times, prepend=self._last) < 0).sum())
        self._last = float(times[-1])
        self.times.add(times)
        self.given.add(given[keep])
        self.made.add(made[keep])

    def _skip(self, which: NDArray[np.bool_], reason: str) -> None:
        count = int(which.sum())
        if count:
            before, first = self.skipped.get(reason, (0, self.seen + int(np.argmax(which))))
            self.skipped[reason] = (before + count, first)
