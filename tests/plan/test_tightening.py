"""How far the rates of a replica are cut that misses its targets on the mix that it was sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.analysis import tighten
from planner.analysis.tighten import DEEPEST_CUT, LEAST_CUT


def share(before: float | None, *, most_per_s: float = 3.6, missed: float = 1.0) -> float | None:
    """What is left of the rates of one replica of 10 requests/s, which is sent 4 a second."""
    point = SimpleNamespace(load=4.0, requests_per_s=4.0, missed=lambda: missed, capacity_per_s=lambda: most_per_s)
    site = SimpleNamespace(point=lambda _: point)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tighten, "ServingTable", SimpleNamespace)
        patch.setattr(tighten, "routed_load", lambda *_: [np.array([4.0])])
        patch.setattr(tighten, "replica_site", lambda *_: site)
        table = SimpleNamespace(
            replicas=[1], role=[0], part=[0], places=[7], sites=[None], bucket_requests_per_s=[np.array([10.0])],
            layout_row=lambda _: None,
        )  # fmt: skip
        task: Any = SimpleNamespace(name="f", first=0, stop=1, spare_replicas=0)
        candidates: Any = SimpleNamespace(tables={"f": table}, rows=[0], program=SimpleNamespace(replicas=[1]))
        solution: Any = SimpleNamespace(units=[1])
        question: Any = SimpleNamespace()
        kept = {} if before is None else {(7, 0): before}
        found = dict(tighten._missing(candidates, solution, task, question, kept))
    return found.get((7, 0))


@pytest.mark.parametrize(("before", "left"), [(None, 0.36), (0.9, 0.36), (0.4, 0.36), (0.3, 0.27)])
def test_what_was_sent_is_cut_or_what_was_left_before(before: float | None, left: float) -> None:
    """4 of 10 are four tenths of what it carries, of which it can do nine tenths."""
    assert share(before) == pytest.approx(left)


@pytest.mark.parametrize(("most", "cut"), [(3.0, 0.75), (3.999, LEAST_CUT), (1.0, DEEPEST_CUT), (0.0, DEEPEST_CUT)])
def test_a_cut_is_neither_nothing_nor_more_than_half(most: float, cut: float) -> None:
    assert share(None, most_per_s=most) == pytest.approx(0.4 * cut)


def test_what_keeps_its_targets_is_left_alone() -> None:
    assert share(None, missed=0.0) is None
