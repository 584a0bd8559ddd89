"""What a plainer plan may be made of: the offers of the cheapest, and layouts that are no more involved than its own.

The cheapest plan is found and proven first. Then the ways of each workload on the offers that it uses are listed again,
and of each count of machines the fastest of every degree of plainness (`ties.plain_training`, `ties.plain_serving`).
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.carriers import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Plainer:
    """Bounds of the ways of a plainer plan, by workload."""

    offers: Mapping[str, frozenset[str]]
    involved: Mapping[str, int]  # layouts that are more involved are not looked at
