"""How far the rates of a replica are cut that misses its targets on the mix that it was sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.analysis import tighten
from planner.analysis.tighten import DEEPEST_CUT, LEAST_CUT
from planner.analysis.why import alternatives
from planner.api.sessions import Session
from planner.optimize.solve import noting_bounds, optimize
from tests.worlds import scenario


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


CLASSES: dict[str, Any] = {
    "name": "chat", "model": "llama-3.1-70b", "weights": "fp8", "requests": "4 /s",
    "input_tokens": {"histogram": [{"tokens": 300, "share": "60 %"}, {"tokens": 4000, "share": "40 %"}]},
    "output_tokens": {"histogram": [{"tokens": 100, "share": "60 %"}, {"tokens": 500, "share": "40 %"}]},
    "slo": {"ttft_p95": "1.5 s", "tpot_p95": "35 ms"},
}  # fmt: skip


def asked(**more: Any) -> Session:
    hardware = {"providers": ["hyperstack", "lambda"]}
    return Session(scenario(serving=[{**CLASSES, **more}], hardware=hardware, prefer="cheapest"))


def test_rates_that_a_relaxation_rests_on_are_exact_before_whole_units_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fleet of classes with a tight target was solved in whole units nine times, three such fleets for minutes."""
    solved, plain = list[int](), Session.solved

    def counted(session: Session, *candidates: Any, **more: Any) -> Any:
        solved.append(1)
        return plain(session, *candidates, **more)

    monkeypatch.setattr(Session, "solved", counted)
    cost = asked().answer()[1].cost_microusd
    few = len(solved)
    monkeypatch.setattr(tighten, "MOST_RELAXED", 0)
    assert asked().answer()[1].cost_microusd == cost
    assert few <= 3 < len(solved) - few


def test_plans_of_rates_that_are_only_bounded_are_not_told_apart() -> None:
    program = asked().candidates.program
    whole = optimize(program)
    with noting_bounds() as noted:
        first = optimize(program)
    assert noted
    assert first.cost_microusd == whole.cost_microusd == first.bound_microusd
    assert not first.untold
    assert (program.bounded[first.units > 0] > 0).any()


def test_one_kind_of_device_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rate that became exact began the walk over all kinds of devices anew."""
    session = asked(requests="6 /s")
    candidates, solution = session.answer()
    held, plain = list[bytes](), alternatives.optimize

    def noted(program: Any, **options: Any) -> Any:
        held.append(program.bounded.tobytes() + program.cost_microusd.tobytes())
        return plain(program, **options)

    monkeypatch.setattr(alternatives, "optimize", noted)
    alternatives.best_single_kind(candidates, solution)
    assert 1 < len(held) == len(set(held))
