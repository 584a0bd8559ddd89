"""Deadlines on spot: the run time at a quantile, against runs played out, and in the choice of columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from planner import api
from planner.candidates.search import enumerate_candidates
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import TrainingTable
from planner.equations.preemption import preempted_quantile
from planner.estimate.run import preemption_margin, run_figures, run_overheads
from planner.estimate.training_spec import RunSpec
from tests.worlds import catalog, job, offer, scenario

HOUR_S = 3600.0


def played(useful_s: float, stops_per_s: float, width_s: float, restart_s: float, runs: int) -> NDArray[np.float64]:
    """Wall times of runs in which every stop undoes a uniform share of an interval and restarts."""
    rng = np.random.default_rng(7)
    walls = np.empty(runs)
    for i in range(runs):
        clock, left = 0.0, useful_s
        while True:
            gap = rng.exponential(1 / stops_per_s)
            if gap >= left:
                walls[i] = clock + left
                break
            clock += gap
            left += -gap + rng.uniform(0, width_s) + restart_s
    return walls


@pytest.mark.parametrize("confidence", [0.75, 0.9, 0.95])
@pytest.mark.parametrize(("stops_an_hour", "width_h"), [(0.05, 1.0), (0.2, 0.5), (0.5, 0.5)])
def test_the_quantile_holds_in_runs_played_out(confidence: float, stops_an_hour: float, width_h: float) -> None:
    useful_h, restart_h = 100.0, 0.2
    walls = played(useful_h * HOUR_S, stops_an_hour / HOUR_S, width_h * HOUR_S, restart_h * HOUR_S, 4000)
    loss_h = width_h / 2 + restart_h
    lost = stops_an_hour * loss_h
    mean_s = useful_h * HOUR_S / (1 - lost)
    assert walls.mean() == pytest.approx(mean_s, rel=0.01)
    ratio = float(
        preempted_quantile(mean_s, stops_an_hour / HOUR_S, loss_h * HOUR_S, width_h * HOUR_S, lost, confidence)
    )
    assert np.mean(walls <= mean_s * ratio) == pytest.approx(confidence, abs=0.03)


def test_the_margin_is_one_off_spot_and_grows_with_confidence() -> None:
    run = RunSpec(
        mtbf_per_device_s=1e6, restart_s=600.0, checkpoint_every_s=3600.0, checkpoint_bandwidth_bytes_per_s=1e8
    )
    assert preemption_margin(np.array([1e5, 1e6]), 8, 1e9, run, 0.9).tolist() == [1.0, 1.0]
    spot = replace(run, preemptions_per_s=0.1 / HOUR_S, preemption_restart_s=300.0)
    margins = [float(preemption_margin(1e5, 8, 1e9, spot, share)) for share in (0.5, 0.75, 0.9, 0.99)]
    assert margins[0] == 1.0
    assert margins == sorted(margins)
    assert margins[2] > 1.01
    longer = float(preemption_margin(1e7, 8, 1e9, spot, 0.9))
    assert longer < margins[2]  # over a long run chance evens out


def test_a_warning_leaves_less_to_chance() -> None:
    spot = RunSpec(preemptions_per_s=0.1 / HOUR_S, preemption_restart_s=300.0, checkpoint_every_s=3600.0,
                   checkpoint_bandwidth_bytes_per_s=1e9)  # fmt: skip
    warned = replace(spot, preemption_warning_s=120.0)
    assert float(preemption_margin(1e5, 8, 1e10, warned, 0.9)) < float(preemption_margin(1e5, 8, 1e10, spot, 0.9))
    figures = run_figures(1e5, 8, 1e10, warned)
    assert float(figures.wall_s) > 1e5


def test_a_run_that_stops_more_often_than_it_restarts_never_ends() -> None:
    """Of two sizes the larger one: told as a time without end, and nothing is divided by zero on the way."""
    spot = RunSpec(preemptions_per_s=2.0 / HOUR_S, preemption_restart_s=600.0, checkpoint_every_s=600.0,
                   checkpoint_bandwidth_bytes_per_s=1e9)  # fmt: skip
    sizes = np.array([8, 800])
    with np.errstate(all="raise"):
        figures = run_figures(np.array([1e5, 1e5]), sizes, 1e9, spot)
        margins = preemption_margin(np.array([1e5, 1e5]), sizes, 1e9, spot, 0.9)
        terms = run_overheads(np.array([1e5, 1e5]), sizes, 1e9, spot)
    assert np.isfinite(figures.wall_s).tolist() == [True, False]
    assert figures.wall_s[0] == figures.useful_s[0] / figures.goodput[0] > 1e5
    assert margins[0] > margins[1] == 1.0
    assert np.isinf(np.asarray(terms.total)).tolist() == [False, True]


@pytest.mark.parametrize(("confidence", "meets"), [("p50", True), ("p95", False)])
def test_a_deadline_on_spot_holds_at_the_quantile(confidence: str, meets: bool) -> None:
    """A deadline between the mean and the p95 of the run: kept at p50, missed at p95."""
    own = catalog(offers=[offer(price_model="spot", dollars=0.2, max_shapes=1)])
    hardware = {"pricing": "spot", "spot": {"interruptions": "0.5 /h", "restart": "10 min"}}
    long_job = job(tokens="20B", deadline="100 h", failures="none", checkpoint_every="30 min")
    loose = enumerate_candidates(scenario(training=[long_job], hardware=hardware), own, api.load_model)
    table, question = loose.tables["job"], loose.questions["job"]
    assert isinstance(table, TrainingTable)
    assert isinstance(question, TrainingQuestion)
    mean_s, site = float(table.finish_s[0]), table.sites[0]
    busy = np.array([20 * 6000.0])
    chance = float(question.preemption_margin(site, busy, np.array([1]), 0.95)[0])
    assert 1.02 < chance < 1.5
    tight = {**long_job, "deadline": f"{mean_s * (1 + chance) / 2:.3f} s", "confidence": confidence}
    found = enumerate_candidates(scenario(training=[tight], hardware=hardware), own, api.load_model)
    assert (len(found.tables["job"]) > 0) == meets
    if not meets:
        assert {drop.reason for drop in found.ledgers["job"]} >= {"deadline"}


def test_a_calendar_holds_spot_machines_at_the_quantile() -> None:
    """The mean fits two periods, the p95 does not: three are held, and the deadline counts them."""
    own = catalog(offers=[offer(price_model="spot", dollars=0.2, max_shapes=1)])
    hardware = {
        "pricing": "spot",
        "spot": {"interruptions": "0.5 /h", "restart": "10 min"},
        "quotas": [{"max_shapes": 1}],
    }
    long_job = job(tokens="20B", deadline="100 h", failures="none", checkpoint_every="30 min")
    plain = enumerate_candidates(scenario(training=[long_job], hardware=hardware), own, api.load_model)
    table = plain.tables["job"]
    assert isinstance(table, TrainingTable)
    mean_h = float(table.finish_s[0]) / HOUR_S
    top: dict[str, Any] = {"periods": f"{mean_h / 1.98:.4f} h", "horizon": "200 h", "hardware": hardware}
    for confidence, span in (("p50", 2), ("p95", 3)):
        asked = scenario(training=[{**long_job, "confidence": confidence}], **top)
        calendar = enumerate_candidates(asked, own, api.load_model).calendar
        assert calendar is not None
        assert set((calendar.stop - calendar.start).tolist()) == {span}
