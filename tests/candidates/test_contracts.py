"""What a contract costs and covers: fees at the edges of a horizon, blocks at the edges of their steps."""

from __future__ import annotations

import pytest

from planner.candidates.contracts import _supply, block_hours
from planner.candidates.grid import Grid
from tests.worlds import offer

WEEKS = Grid(period_s=168 * 3600.0, periods=4, horizon_s=4 * 168 * 3600.0)


@pytest.mark.parametrize(
    ("start", "weeks", "prorate", "stop", "counted"),
    [
        (0, 4, True, 4, 4),
        (0, 52, True, 4, 4),  # what lies beyond the horizon is left out
        (0, 52, False, 4, 52),
        (1, 52, True, 4, 52),  # a later one is not sold by the week
        (3, 52, True, 4, 52),
        (1, 2, True, 3, 2),
        (0, 2, True, 2, 2),
    ],
)
def test_only_what_begins_with_the_plan_is_prorated(
    start: int, weeks: int, prorate: bool, stop: int, counted: int
) -> None:
    found = _supply(0, offer(dollars=2.0), WEEKS, start, 168.0 * weeks, prorate)
    week = 168 * 2_000_000
    assert (found.fee_microusd, found.cost_microusd, found.stop) == (weeks * week, counted * week, stop)


@pytest.mark.parametrize(
    ("needed", "hours"),
    [(1.0, 48.0), (48.0, 48.0), (48.001, 72.0), (72.0, 72.0), (72.0 + 1e-9, 72.0), (96.0, 96.0), (96.1, None)],
)
def test_a_block_lasts_at_least_as_long_as_needed(needed: float, hours: float | None) -> None:
    """Sold for two to four days, by the day."""
    sold = offer(price_model="block", min_term_hours=48.0, max_term_hours=96.0, term_step_hours=24.0)
    assert block_hours(sold, needed) == hours
