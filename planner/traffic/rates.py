"""Measured rates of offers by bucket: what each can serve, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

from planner.traffic.model import Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rates:
    """What one unit of each offer serves of each bucket when it serves nothing else, within the user's targets."""

    offers: tuple[str, ...]
    price_microusd_per_hour: tuple[int, ...]
    buckets: tuple[str, ...]  # as in the traffic that the rates are joined with
    max_requests_per_s: Array  # (offers, buckets); 0 = cannot serve  [1/s]
    files: tuple[tuple[str, str], ...] = ()  # what was read: name, sha256
