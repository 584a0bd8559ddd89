"""Tables of a fleet's traffic: shares of buckets, weights of hours, measured rates of offers by bucket.

A rate is what an offer can serve of a bucket, and what it costs. Names are of buckets and offers, and no row stands
twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from planner.carriers import dataclass
from planner.csvtable import Columns, Table
from planner.errors import Place, Problem
from planner.files import StrPath
from planner.traffic.model import SHARE_TOLERANCE, Array
from planner.traffic.request_trace import DAY_HOURS, LONGEST, WEEK_HOURS

PAIR = ("input_bucket", "output_bucket")
_LONGEST_NAME = 80


def bucket_name(table: Table, line: int, row: dict[str, Any]) -> str | None:
    """The name of the bucket of a row; None, and a mistake noted, when it cannot be one.

    Parameters
    ----------
    table
        Takes the mistakes.
    line
        Where the row begins, from 1.
    row
        Typed cells by column; one that is missing or wrong has been noted by the table.
    """
    pair = [row.get(column) for column in PAIR]
    good = [name is not None and is_name(table, line, column, name) for column, name in zip(PAIR, pair)]
    if not all(good):
        return None
    return "/".join(str(name) for name in pair)


def is_name(table: Table, line: int, column: str, name: str) -> bool:
    """Whether a text may name a bucket or an offer; a mistake is noted when not.

    Parameters
    ----------
    table
        Takes the mistake.
    line
        Where the row begins, from 1.
    column
        Of the text; those of buckets may hold no slash.
    name
        The text.
    """
    barred = "/" if column in PAIR else ""
    good = name.isprintable() and len(name) <= _LONGEST_NAME and not (barred and barred in name)
    if not good:
        hint = f"a name without control characters{' and /' if barred else ''}, of at most {_LONGEST_NAME} characters"
        table.complain("unsafe-name", f"{column} is {name[:_LONGEST_NAME]!r}", line, column, hint)
    return good


def repeated(table: Table, line: int, what: str, key: str, seen: dict[str, int], column: str = PAIR[0]) -> bool:
    """Whether a key was seen in an earlier row; a mistake is noted when so.

    Parameters
    ----------
    table
        Takes the mistake.
    line
        Where the row begins, from 1.
    what
        The row as the message calls it.
    key
        What only one row may have.
    seen
        Line of the first row of each key; a new key is put in.
    column
        Where the mistake is shown.
    """
    if key not in seen:
        seen[key] = line
        return False
    table.complain("duplicate-row", f"{what} stands in line {seen[key]} already", line, column, "keep one of the two")
    return True


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


_FIGURES = ("price_usd_per_hour", "max_requests_per_s")
_NAMES = ("offer", *PAIR, *_FIGURES)
_COLUMNS = Columns(
    kinds=dict.fromkeys(("offer", *PAIR), str) | dict.fromkeys(_FIGURES, float),
    required=_NAMES, filled=_NAMES, zero_allowed=_FIGURES, most=dict.fromkeys(_FIGURES, 1e9),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rates:
    """What one unit of each offer serves of each bucket when it serves nothing else, within the user's targets."""

    offers: tuple[str, ...]
    price_microusd_per_hour: tuple[int, ...]
    buckets: tuple[str, ...]  # as in the traffic that the rates are joined with
    max_requests_per_s: Array  # (offers, buckets); 0 = cannot serve  [1/s]
    files: tuple[tuple[str, str], ...] = ()  # what was read: name, sha256


@dataclass(slots=True)
class _Offer:
    """One offer while its rows are read."""

    price: float
    line: int
    rates: dict[str, float] = field(default_factory=dict)


def read_rates(path: StrPath, buckets: Sequence[str]) -> Rates:
    """Columns offer, price_usd_per_hour, input_bucket, output_bucket, max_requests_per_s, joined with buckets.

    Every offer has one price and, for each of `buckets`, one rate, 0 where it cannot serve; buckets
    that nobody asks for are left out.

    Raises
    ------
    InputError
        Every mistake of the file, each with line and column.
    """
    table = Table.open(path, _COLUMNS)
    offers = _offers(table)
    if not table.problems:
        _complete(table, offers, buckets)
    table.demand_none()
    rates = [[offer.rates[bucket] for bucket in buckets] for offer in offers.values()]
    return Rates(
        offers=tuple(offers),
        price_microusd_per_hour=tuple(round(offer.price * 1e6) for offer in offers.values()),
        buckets=tuple(buckets),
        max_requests_per_s=np.array(rates, dtype=np.float64),
        files=((table.file, table.sha256),),
    )


def _offers(table: Table) -> dict[str, _Offer]:
    offers: dict[str, _Offer] = {}
    seen: dict[str, int] = {}
    for line, row in table.rows():
        bucket = bucket_name(table, line, row)
        name, price, rate = row.get("offer"), row.get("price_usd_per_hour"), row.get("max_requests_per_s")
        if name is None or bucket is None or price is None or rate is None or not is_name(table, line, "offer", name):
            continue
        what = f"the offer '{name}' with the bucket '{bucket}'"
        if repeated(table, line, what, f"{name}\n{bucket}", seen, "offer"):
            continue
        offer = offers.setdefault(name, _Offer(price, line))
        offer.rates[bucket] = rate
        if offer.price != price:
            message = f"the offer '{name}' costs {price:g} here and {offer.price:g} in line {offer.line}"
            table.complain("conflict", message, line, "price_usd_per_hour", "give an offer one price")
    return offers


def _complete(table: Table, offers: Mapping[str, _Offer], buckets: Sequence[str]) -> None:
    """Note the offers that do not say what they serve of each bucket."""
    for name, offer in offers.items():
        missing = [bucket for bucket in buckets if bucket not in offer.rates]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            message = f"the offer '{name}' has no rate for the bucket '{missing[0]}'{more}"
            hint = "write 0 for what it cannot serve; names join the histogram's"
            table.complain("missing-row", message, offer.line, "offer", hint)
    if not offers:
        table.complain("missing-row", "the table has no offer", 1, 0, "give each offer a row for each bucket")
