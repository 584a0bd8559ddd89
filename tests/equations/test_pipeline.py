"""Pipeline equations, and a schedule simulated pass by pass."""

from __future__ import annotations

import numpy as np
import pytest

from planner.equations import pipeline
from tests.published.equations.pipeline import zero_bubble_idle_s


def simulate_gpipe(stages: int, micro_batches: int, forward: float, backward: float) -> float:
    """Finish time of all-forward-then-all-backward, by its dependences."""
    done = np.zeros((micro_batches, stages))
    clock = np.zeros(stages)
    for k in range(micro_batches):
        for i in range(stages):
            start = max(clock[i], done[k, i - 1] if i else 0.0)
            clock[i] = done[k, i] = start + forward
    back = np.zeros((micro_batches, stages))
    for k in range(micro_batches):
        for i in reversed(range(stages)):
            start = max(clock[i], back[k, i + 1] if i < stages - 1 else done[k, i])
            clock[i] = back[k, i] = start + backward
    return float(clock.max())


@pytest.mark.parametrize(("p", "m"), [(1, 4), (2, 4), (4, 8), (8, 8), (4, 1)])
def test_closed_form_is_the_simulated_schedule(p: int, m: int) -> None:
    assert pipeline.pipeline_time_s(m, p, 1, 3.0, 3.0) == pytest.approx(simulate_gpipe(p, m, 1.0, 2.0))


def test_bubble_is_what_the_time_has_above_busy() -> None:
    for p, m, v in ((4, 8, 1), (4, 8, 2), (16, 32, 4)):
        time = pipeline.pipeline_time_s(m, p, v, 1.0, 1.0)
        assert time / m - 1 == pytest.approx(pipeline.bubble_fraction(p, m, v))


def test_one_stage_has_no_bubble() -> None:
    assert pipeline.bubble_fraction(1, 8) == 0
    assert zero_bubble_idle_s(1, 1, 1, 1, 0) == 0


def test_more_chunks_less_time() -> None:
    times = pipeline.pipeline_time_s(8, 4, np.array([1, 2, 4]), 1.0, 1.0)
    assert np.all(np.diff(times) < 0)


def test_zero_bubble_schedules_in_order() -> None:
    plain, h1, h2 = (zero_bubble_idle_s(8, 1.0, 1.0, 0.9, moved) for moved in (0, 2, 3))
    assert plain == pytest.approx(7 * 2.9)
    assert h1 == pytest.approx(7 * (1 + 1 - 0.9))
    assert h2 == pytest.approx(7 * (1 + 1 - 1.8))


def test_uneven_stages_and_transfers() -> None:
    assert pipeline.uneven_stage_fraction(80, 10, 8) == 0
    assert pipeline.uneven_stage_fraction(126, 8, 16) == pytest.approx(2 / 126)
    assert pipeline.stage_transfer_bytes(4096, 8192, 8) == 2 * 4096 * 8192 / 8
