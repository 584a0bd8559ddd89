"""What must hold for every run: goodput is a share, trouble is never free, the chosen interval is the best one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.equations import reliability as rel
from planner.estimate.run import TERMS, run_figures, run_overheads
from planner.estimate.training_spec import RunSpec
from tests.tiers import settings

FEW = settings(max_examples=150, few=60)
MANY_S = st.floats(1e4, 1e9)
SIZES = st.floats(1e8, 2e13)
DEVICES = st.integers(1, 100_000)


@st.composite
def runs(draw: st.DrawFn) -> RunSpec:
    return RunSpec(
        mtbf_per_device_s=draw(st.floats(1e6, 1e10)),
        restart_s=draw(st.floats(0, 7200)),
        detection_s=draw(st.floats(0, 1800)),
        checkpoint_bandwidth_bytes_per_s=draw(st.floats(1e8, 1e11)),
        asynchronous_checkpoint=draw(st.booleans()),
        straggler_sigma=draw(st.floats(0, 0.05)),
        preemptions_per_s=draw(st.sampled_from([0.0, 1e-9, 1e-6, 1e-5])),
        preemption_restart_s=draw(st.floats(0, 3600)),
        preemption_warning_s=draw(st.sampled_from([0.0, 30.0, 120.0])),
    )


@FEW
@given(busy=MANY_S, devices=DEVICES, size=SIZES, run=runs())
def test_goodput_is_a_share_and_the_terms_sum_to_it(busy: float, devices: int, size: float, run: RunSpec) -> None:
    figures, terms = run_figures(busy, devices, size, run), run_overheads(busy, devices, size, run)
    assert 0.0 <= float(figures.goodput) <= 1.0
    assert all(float(terms[name]) >= 0.0 for name in TERMS)
    assume(np.isfinite(terms.total))
    wall = float(figures.useful_s) / float(figures.goodput)
    np.testing.assert_allclose(busy + float(terms.total), wall, rtol=1e-9)


WORSE = {
    "mtbf_per_device_s": 0.5,
    "restart_s": 2.0,
    "detection_s": 2.0,
    "checkpoint_bandwidth_bytes_per_s": 0.5,
    "straggler_sigma": 2.0,
    "preemptions_per_s": 3.0,
    "preemption_restart_s": 2.0,
}


@FEW
@given(busy=MANY_S, devices=DEVICES, size=SIZES, run=runs(), name=st.sampled_from(sorted(WORSE)))
def test_trouble_is_never_free(busy: float, devices: int, size: float, run: RunSpec, name: str) -> None:
    run = replace(run, preemption_warning_s=0.0)  # with a warning, a slower one may also save work
    worse = replace(run, **{name: getattr(run, name) * WORSE[name]})
    before, after = (float(run_overheads(busy, devices, size, each).total) for each in (run, worse))
    assert after >= before * (1 - 1e-9)


@FEW
@given(busy=MANY_S, devices=DEVICES, size=SIZES, run=runs(), factor=st.floats(0.2, 5.0))
def test_no_other_interval_loses_less(busy: float, devices: int, size: float, run: RunSpec, factor: float) -> None:
    """Neither a neighbour nor a far one, of those that storage and the length of the run allow."""
    run = replace(run, preemption_warning_s=0.0)  # unit tests search by brute force with one
    best = float(run_overheads(busy, devices, size, run).total)
    assume(np.isfinite(best))
    chosen = float(run_figures(busy, devices, size, run).interval_s)
    other = replace(run, checkpoint_every_s=max(chosen * factor, 1e-6))
    assert best <= float(run_overheads(busy, devices, size, other).total) * (1 + 1e-9)


@FEW
@given(delta=st.floats(1e-3, 1e4), mtbf=st.floats(1e3, 1e8), stop=st.floats(0, 0.5), factor=st.floats(0.05, 20))
def test_the_closed_form_is_the_minimum(delta: float, mtbf: float, stop: float, factor: float) -> None:
    tau = float(rel.best_interval_s(delta, mtbf, stop * mtbf))
    here, there = (float(rel.inverse_goodput(delta, t, mtbf, stop * mtbf)) for t in (tau, tau * factor))
    assert here <= there * (1 + 1e-12)


@FEW
@given(busy=MANY_S, size=SIZES, run=runs(), devices=st.lists(DEVICES, min_size=2, max_size=6))
def test_a_column_is_its_rows(busy: float, size: float, run: RunSpec, devices: list[int]) -> None:
    column = run_overheads(busy, np.array(devices), size, run)
    rows = [run_overheads(busy, count, size, run) for count in devices]
    for name in TERMS:
        np.testing.assert_allclose(column[name], [float(row[name]) for row in rows], rtol=1e-12)
