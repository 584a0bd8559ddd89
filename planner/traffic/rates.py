"""Measured rates of offers by bucket: what each can serve, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from planner.carriers import dataclass
from planner.csvtable import Columns, Table
from planner.files import StrPath
from planner.traffic.model import Array
from planner.traffic.names import PAIR, bucket_name, is_name, repeated

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
