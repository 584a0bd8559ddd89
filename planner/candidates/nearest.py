"""Which replica comes nearest to latency targets that no replica keeps on a mix of requests, and what it would keep.

Replicas that hardly anything is sent to are held against each target: that of all requests together, what the spread
leaves each class, and, where a class has replicas of its own, its target there. Of the ways to serve all classes, all
of them together or each by itself, the one counts that asks for the least looser target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.candidates.blended import Blend
from planner.carriers import dataclass
from planner.equations.registry import as_float
from planner.estimate.resolve_serving import Requests
from planner.estimate.serving_fleet import idle_latencies_s
from planner.estimate.serving_levels import SHARE
from planner.units import format_duration

Rows = NDArray[np.int64]
Values = NDArray[np.float64]


def beside(latency_s: float, limit_s: float) -> str:
    """A latency beyond a limit as people read it, also where both are written alike.

    Examples
    --------
    >>> beside(4.1, 3.0), beside(1.50004, 1.5)
    ('4.1 s', 'just over 1.5 s')
    """
    told = format_duration(latency_s)
    return told if told != format_duration(limit_s) else f"just over {told}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """One target of some requests on one kind of replica."""

    row: int
    target: str  # "ttft_p95"
    of: str  # a class of requests, or all
    latency_s: float
    limit_s: float
    times: float = 1.0  # the target that the limit is

    @property
    def over(self) -> float:
        """How much looser the target would have to be, as a share of it."""
        return self.latency_s / self.limit_s - 1

    def told(self, where: str, confidence: float) -> str:
        """ "ttft_p95 of 12000/300: 4.1 s on an idle h200-sxm tp8 at p90; 3 s asked"."""
        apart = f" ({self.times:g} × {format_duration(self.limit_s / self.times)})" if self.times != 1 else ""
        idle = f"{beside(self.latency_s, self.limit_s)} on an idle {where} at p{100 * confidence:g}"
        return f"{self.target} of {self.of}: {idle}; {format_duration(self.limit_s)}{apart} asked"


def nearest_miss(blends: Sequence[Blend], names: Sequence[str]) -> Miss | None:
    """What the least looser target that all classes can be served with is missed by; None where all are within theirs.

    Parameters
    ----------
    blends
        Of all classes together, then, or not at all, of each by itself.
    names
        Of the classes.
    """
    whole, *apart = blends
    lacking = [(blend, name) for blend, name in zip(apart, names) if not blend.able.any()]
    if whole.able.any() or (apart and not lacking):
        return None
    ways = [_nearest(whole, names)]
    hardest = [_nearest(blend, [name]) for blend, name in lacking]
    if hardest and None not in hardest:
        ways.append(max((miss for miss in hardest if miss), key=lambda miss: miss.over))
    return min((miss for miss in ways if miss), key=lambda miss: miss.over, default=None)


def _nearest(blend: Blend, names: Sequence[str]) -> Miss | None:
    """Of replicas that have room for the requests of a mix, the one that comes nearest to its targets."""
    rows = np.flatnonzero((blend.full > 0) & ~blend.able)
    if not len(rows):
        return None
    row = int(rows[np.argmin([max(miss.over for miss in each) for each in _misses(blend, rows, names)])])
    (each,) = _misses(blend, np.array([row]), names)
    return max(each, key=lambda miss: miss.over)


def _misses(blend: Blend, rows: Rows, names: Sequence[str]) -> Iterator[list[Miss]]:
    """How each replica stands to each target; of all requests together by their classes, exactly of a single one."""
    several = blend.requests.classes
    shares = np.ones(1) if blend.requests.share is None else blend.requests.share
    each = several or blend.requests
    of_class = _idle(blend, np.repeat(rows, len(names)), each.take(np.tile(np.arange(len(names)), len(rows))))
    together = _idle(blend, rows, blend.requests) if len(rows) == 1 else {}
    for place, row in enumerate(rows.tolist()):
        found = []
        for target, limit in blend.ask.targets_s.items():
            mine = of_class[target].reshape(len(rows), len(names))[place]
            slowest = names[int(mine.argmax())]
            told = slowest if several is None else f"all requests (slowest {slowest})"
            share = SHARE[target.partition("_")[2]]
            held = float(together[target][0]) if together else _held(mine, shares, share)
            found.append(Miss(row=row, target=target, of=told, latency_s=held, limit_s=limit))
            if several is not None and np.isfinite(blend.ask.spread):
                times = float(blend.ask.spread)
                late = float(mine.max())
                found.append(
                    Miss(row=row, target=target, of=slowest, latency_s=late, limit_s=times * limit, times=times)
                )
        yield found


def _idle(blend: Blend, rows: Rows, requests: Requests) -> dict[str, Values]:
    """Latencies of idle replicas, one a row, each with requests of its own or all with the same.  [s]"""
    one, batch = blend.replicas.take(rows), blend.batch[rows]
    found = idle_latencies_s(blend.ask, one, requests, batch)
    return {name: np.broadcast_to(as_float(values), rows.shape) for name, values in found.items()}


def _held(of_class: Values, shares: Values, share: float) -> float:
    """The latency that so many requests keep, where all of a class take as long as its own percentile.  [s]"""
    order = np.argsort(of_class)
    last = int(np.searchsorted(np.cumsum(shares[order]), share * (1 - 1e-9)))
    return float(of_class[order[min(last, len(order) - 1)]])
