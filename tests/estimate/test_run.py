"""From busy time to wall time: worked by hand, against brute force, and against what large runs reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.architecture.load import load_model
from planner.equations import reliability as rel
from planner.estimate.run import TERMS, checkpoint_bytes_of, run_figures, run_overheads
from planner.estimate.training_spec import RunSpec, TrainingSpec
from tests.tiers import cases

DAY_S = 86400.0
LLAMA_3 = RunSpec(
    mtbf_per_device_s=54 * DAY_S * 16384 / 419, restart_s=600, checkpoint_bandwidth_bytes_per_s=2e9, devices_per_host=8
)


def test_a_run_by_hand() -> None:
    """100 devices fail every 1e6 s each: the job every 1e4 s; a checkpoint of 26 GB from 13 hosts takes 1 s."""
    run = RunSpec(
        mtbf_per_device_s=1e6,
        restart_s=150,
        detection_s=50,
        checkpoint_bandwidth_bytes_per_s=2e9,
        checkpoint_every_s=100,
    )
    terms = run_overheads(1e6, 100, 26e9, run)
    wall = 1e6 * (1 + 1 / 100) / (1 - (50 + 150 + 50) / 1e4)
    assert float(terms["checkpoints"]) == pytest.approx(1e4)
    assert float(terms["lost_work"]) == pytest.approx(wall / 1e4 * 50)
    assert float(terms["restarts"]) == pytest.approx(wall / 1e4 * 200)
    assert 1e6 + float(terms.total) == pytest.approx(wall)
    figures = run_figures(1e6, 100, 26e9, run)
    assert float(figures.failures) == pytest.approx(wall / 1e4)
    assert float(figures.goodput) == pytest.approx(1e6 / wall)


def test_nothing_fails_and_nothing_is_saved() -> None:
    assert float(run_overheads(1e6, 8, 1e12, RunSpec()).total) == 0.0


def test_a_run_is_saved_at_its_end_even_if_nothing_fails() -> None:
    run = RunSpec(checkpoint_bandwidth_bytes_per_s=1e9)
    assert float(run_overheads(1e6, 8, 5e11, run)["checkpoints"]) == pytest.approx(500.0)
    assert float(run_figures(1e6, 8, 5e11, run).interval_s) == 1e6


def test_many_hosts_cost_a_share_that_saturates() -> None:
    """128 devices on 16 hosts, 15/16 of the loss; 16,384 on 2,048 not twice as much, before anything fails."""
    run = RunSpec(scale_loss=0.2, devices_per_host=8)
    terms = run_overheads(1e6, np.array([8.0, 128.0]), 0.0, run)
    assert terms["scale_loss"].tolist() == pytest.approx([0, 0.1875e6])
    largest = float(run_overheads(1e6, 16384, 0.0, run)["scale_loss"])
    assert largest == pytest.approx(0.2e6 * 2047 / 2048)
    both = run_overheads(1e6, 128, 0.0, replace(run, straggler_sigma=0.01))
    assert float(both["stragglers"]) == pytest.approx(1.1875e6 * 0.01 * np.sqrt(2 * np.log(128)))


def test_llama_3_405b_kept_more_than_nine_tenths_of_its_time() -> None:
    """419 stops in 54 days on 16,384 devices; more than 90 % of the time was effective."""
    size = checkpoint_bytes_of(load_model("llama-3.1-405b"), TrainingSpec(tokens=1e12, sequence_length=8192))
    figures = run_figures(0.93 * 54 * DAY_S, 16384, size, LLAMA_3)
    assert size == pytest.approx(14 * 405.85e9, rel=1e-3)
    assert float(figures.mtbf_s) / 3600 == pytest.approx(3.09, abs=0.005)
    assert 0.90 < float(figures.goodput) < 0.95
    assert float(figures.failures) == pytest.approx(419, rel=0.02)


def test_the_default_interval_is_the_best_of_many() -> None:
    """Brute force over many intervals finds none that loses less, with and without preemption."""
    spot = replace(LLAMA_3, preemptions_per_s=1e-6, preemption_restart_s=900, straggler_sigma=0.01)
    warned = replace(spot, preemption_warning_s=120)
    for run in (LLAMA_3, spot, warned):
        for devices in (64, 1024, 16384):
            best = float(run_overheads(1e7, devices, 5.7e12, run).total)
            tau = float(run_figures(1e7, devices, 5.7e12, run).interval_s)
            tries = tau * np.geomspace(0.1, 10, cases(401, 4001))
            brute = [
                float(run_overheads(1e7, devices, 5.7e12, replace(run, checkpoint_every_s=t)).total) for t in tries
            ]
            assert best <= min(brute) * (1 + 1e-12)
            assert best == pytest.approx(min(brute), rel=1e-5)


def test_a_job_that_fails_faster_than_it_restarts_never_ends() -> None:
    run = RunSpec(mtbf_per_device_s=1e6, restart_s=600)
    terms = run_overheads(1e6, np.array([100.0, 2000.0]), 1e9, run)
    assert np.isfinite(terms.total).tolist() == [True, False]
    assert run_figures(1e6, 2000, 1e9, run).goodput == 0.0
    assert not any(np.isnan(terms[name]).any() for name in TERMS)


def test_an_unknown_busy_time_stays_unknown() -> None:
    terms = run_overheads(np.array([1e6, np.inf]), 64, 1e11, LLAMA_3)
    assert np.isfinite(terms.total).all()
    assert terms.total[0] == pytest.approx(float(run_overheads(1e6, 64, 1e11, LLAMA_3).total))


def test_asynchronous_checkpoints_stop_the_job_for_the_copy_alone() -> None:
    both = {
        run.asynchronous_checkpoint: run_figures(1e7, 512, 5.7e12, run)
        for run in (LLAMA_3, replace(LLAMA_3, asynchronous_checkpoint=True))
    }
    assert float(both[True].checkpoint_s) == pytest.approx(5.7e12 / (512 * 10e9))
    assert float(both[False].checkpoint_s) == pytest.approx(5.7e12 / (64 * 2e9))
    assert both[True].goodput > both[False].goodput
    assert both[True].interval_s >= both[False].checkpoint_s  # the last one must have reached storage


def test_a_warning_long_enough_for_a_checkpoint_saves_the_work() -> None:
    spot = RunSpec(
        checkpoint_bandwidth_bytes_per_s=2e9, preemptions_per_s=1e-5, preemption_restart_s=300, checkpoint_every_s=3600
    )
    warned = replace(spot, preemption_warning_s=120)
    lost, kept = (float(run_overheads(1e6, 64, 1.6e11, run)["lost_work"]) for run in (spot, warned))
    assert lost == pytest.approx(180 * kept, rel=0.2)  # 1,800 s against a checkpoint of 10 s


def test_preemptions_take_shapes_not_devices() -> None:
    run = RunSpec(preemptions_per_s=1e-6, devices_per_shape=8)
    assert float(run_figures(1e6, 64, 1e9, run).mtbf_s) == pytest.approx(1e6 / 8)


def test_checkpoints_follow_the_recipe_and_adapters_are_small() -> None:
    arch = load_model("llama-3.1-8b")
    spec = TrainingSpec(tokens=1e9, sequence_length=4096)
    sizes = {
        key: checkpoint_bytes_of(arch, replace(spec, **{key[0]: key[1]}))
        for key in (("framework", None), ("framework", "fsdp"), ("optimizer", "adamw-8bit"), ("lora_rank", 16))
    }
    per_parameter = [size / arch.parameters for size in sizes.values()]
    assert per_parameter[:3] == pytest.approx([14, 12, 8])
    assert sizes["lora_rank", 16] == pytest.approx(14 * 41_943_040)


def test_figures_agree_with_the_equation() -> None:
    figures = run_figures(1e7, 4096, 5.7e12, LLAMA_3)
    inverse = rel.inverse_goodput(figures.checkpoint_s, figures.interval_s, figures.mtbf_s, LLAMA_3.restart_s)
    assert 1 / float(figures.goodput) == pytest.approx(float(inverse), rel=1e-12)
