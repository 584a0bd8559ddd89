"""Tables of a fleet's traffic: shares of buckets, weights of hours."""

from __future__ import annotations

import math

import numpy as np

from planner.carriers import dataclass
from planner.csvtable import Columns, Table
from planner.errors import Place, Problem
from planner.files import StrPath
from planner.traffic.arrivals import DAY_HOURS, WEEK_HOURS
from planner.traffic.lengths import SHARE_TOLERANCE
from planner.traffic.model import Array
from planner.traffic.names import PAIR, bucket_name, repeated
from planner.traffic.trace import LONGEST

MOST_BUCKETS = 10_000
_SHARES = Columns(
    kinds={"input_bucket": str, "output_bucket": str, "fraction": float},
    required=(*PAIR, "fraction"), filled=(*PAIR, "fraction"), zero_allowed=("fraction",),
    most={"fraction": 1.0}, most_rows=MOST_BUCKETS,
)  # fmt: skip
_WEIGHTS = Columns(
    kinds={"hour": int, "weight": float}, required=("hour", "weight"), filled=("hour", "weight"),
    zero_allowed=("hour", "weight"), most={"hour": WEEK_HOURS - 1.0}, most_rows=MOST_BUCKETS,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Shares of requests by bucket; lengths are the buckets' upper edges, nan where a name is no number."""

    file: str
    sha256: str
    buckets: tuple[str, ...]
    share: Array
    input_tokens: Array
    output_tokens: Array
    lines: tuple[int, ...]  # where each bucket stands in the file

    def unnamed(self) -> Problem | None:
        """What is wrong when lengths are wanted: the first bucket whose name is no length."""
        unknown = np.flatnonzero(np.isnan(self.input_tokens + self.output_tokens))
        if not unknown.size:
            return None
        first = int(unknown[0])
        message = f"the bucket '{self.buckets[first]}' has no length"
        hint = "name buckets by their upper edges in tokens, 512 and 128, or give rates: profile: rates.csv"
        place = Place(file=self.file, line=self.lines[first], column=1)
        return Problem(reference="no-length", message=message, places=(place,), hint=hint)


def read_histogram(path: StrPath) -> Histogram:
    """Columns input_bucket, output_bucket, fraction; a bucket's name is its upper edge in tokens, or free text.

    Requests count with the upper edges of their bucket: never with less than they have. Fractions may
    miss 1 by a hundredth and are then scaled.

    Raises
    ------
    InputError
        Every mistake of the file, each with line and column.
    """
    table = Table.open(path, _SHARES)
    seen: dict[str, int] = {}
    rows: list[tuple[str, float, float, float, int]] = []
    for line, row in table.rows():
        name = bucket_name(table, line, row)
        share = row.get("fraction")
        if name is None or share is None or repeated(table, line, f"the bucket '{name}'", name, seen):
            continue
        if share == 0:
            table.complain("no-requests", f"the bucket '{name}' has no requests", line, "fraction",
                           "leave its line out, or give it its share")  # fmt: skip
        rows.append((name, share, _edge(row["input_bucket"]), _edge(row["output_bucket"]), line))
    whole = math.fsum(row[1] for row in rows)
    if not table.problems and abs(whole - 1) > SHARE_TOLERANCE:
        table.complain("bad-sum", f"the fractions add up to {whole:.4g}; they must add up to 1", 1, "fraction",
                       "give every bucket its share of all requests")  # fmt: skip
    table.demand_none()
    return Histogram(
        file=table.file, sha256=table.sha256, buckets=tuple(row[0] for row in rows),
        share=np.array([row[1] for row in rows]) / whole, input_tokens=np.array([row[2] for row in rows]),
        output_tokens=np.array([row[3] for row in rows]), lines=tuple(row[4] for row in rows),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProfile:
    """Weights of the hours of a day or a week, mean 1."""

    file: str
    sha256: str
    weights: tuple[float, ...]


def read_load_profile(path: StrPath) -> LoadProfile:
    """Columns hour (0 to 23, or 0 to 167 from Monday, 0:00) and weight; every hour once, in any order.

    Raises
    ------
    InputError
        Every mistake of the file, each with line and column.
    """
    table = Table.open(path, _WEIGHTS)
    seen: dict[str, int] = {}
    found: dict[int, float] = {}
    for line, row in table.rows():
        hour, weight = row.get("hour"), row.get("weight")
        if hour is None or weight is None or repeated(table, line, f"hour {hour}", str(hour), seen, "hour"):
            continue
        found[hour] = weight
    slots = DAY_HOURS if all(hour < DAY_HOURS for hour in found) else WEEK_HOURS
    missing = [str(hour) for hour in range(slots) if hour not in found]
    if not table.problems and missing:
        few = ", ".join(missing[:6]) + (f" and {len(missing) - 6} more" if len(missing) > 6 else "")
        table.complain("missing-row", f"of the {slots} hours, these are missing: {few}", 1, "hour",
                       "give every hour of a day, 0 to 23, or of a week, 0 to 167")  # fmt: skip
    mean = math.fsum(found.values()) / slots
    if not table.problems and mean == 0:
        table.complain("bad-sum", "every weight is 0", 1, "weight", "give the busy hours a weight above 0")
    table.demand_none()
    return LoadProfile(file=table.file, sha256=table.sha256,
                       weights=tuple(found[hour] / mean for hour in range(slots)))  # fmt: skip


def _edge(name: str) -> float:
    """Upper edge of a bucket; nan when its name is no length.  [tokens]"""
    try:
        value = float(name) if "_" not in name else math.nan
    except ValueError:
        return math.nan
    return value if 1 <= value <= LONGEST else math.nan
