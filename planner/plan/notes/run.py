"""Sentences on failures, checkpoints and a run under way: what is taken for granted, what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.candidates.training_question import TrainingQuestion
from planner.equations.reliability import useful_price
from planner.estimate import resolve_run as defaults
from planner.estimate.resolve import base_tier
from planner.scenario.schema import Failures, TrainingJob
from planner.units import format_bytes, format_duration

if TYPE_CHECKING:
    from planner.plan.model.rows import TrainingAllocation


def run_assumptions(question: TrainingQuestion) -> Iterator[str]:
    """What is taken for granted of failures, checkpoints and progress."""
    job = question.job
    analytic = base_tier(job, question.arch) == "analytic"
    if job.failures is None and not analytic and not (job.mfu or job.step_time):
        yield f"{job.name}: no failures on top: the rule of thumb comes from budgets of whole runs, restarts included"
    elif job.failures is None:
        yield f"{job.name}: failures as at Llama 3 405B, {_rates(Failures.model_validate({}), job, analytic)}"
    elif isinstance(job.failures, Failures):
        yield f"{job.name}: failures: {_rates(job.failures, job, analytic)}"
    if job.progress_tokens:
        yield f"{job.name}: {question.spec.remaining_share:.1%} of the tokens are left to train"
    yield from _under_way(question)


def _rates(given: Failures, job: TrainingJob, analytic: bool) -> str:
    mtbf_s = given.mtbf_per_device_s or defaults.DEFAULT_MTBF_PER_DEVICE_S
    bandwidth = given.checkpoint_bandwidth_bytes_per_s or defaults.DEFAULT_CHECKPOINT_BANDWIDTH_BYTES_PER_S
    sigma = defaults.DEFAULT_STRAGGLER_SIGMA if given.stragglers is None else given.stragglers
    restart_s = (given.restart_s or defaults.DEFAULT_RESTART_S) + (given.detection_s or 0.0)
    loss = defaults.scale_loss_of(given, analytic)
    size = f", {loss:.0%} lost over many hosts" if loss else ""
    interval = "saved when it loses least" if job.checkpoint_every_s is None else "saved as often as given"
    return (
        f"one in {mtbf_s / 3600:,.0f} h of a device, {format_duration(restart_s)} to go on, checkpoints at "
        f"{format_bytes(bandwidth)}/s per host of up to {defaults.DEVICES_PER_HOST} devices, "
        f"step times spread by {sigma:.1%}{size}, spare machines at hand, {interval}"
    )


def _under_way(question: TrainingQuestion) -> Iterator[str]:
    run, job = question.under_way, question.job
    if run is None or job.step_time is None:
        return
    given = job.step_time.layout.model_fields_set
    layout = "as given" if given else "taken to be the fastest that fits"
    yield (
        f"{job.name}: times on {run.device} are the model's × {run.ratio:.3g}: a step took "
        f"{format_duration(run.measured_step_s)} on {run.count} × {run.shape}, predicted "
        f"{format_duration(run.predicted_step_s)} (layout {layout}); other devices are predicted as ever"
    )


def run_reasons(row: TrainingAllocation) -> Iterator[str]:
    """What failures and checkpoints take of the wall time of one row."""
    run = row["run"]
    if not run["modelled"]:
        return
    lost = 1.0 - run["goodput"]
    what = "failures and preemptions" if row["price_model"] == "spot" else "failures"
    fails = "nothing fails" if run["mtbf_hours"] is None else f"{_about(run['expected_failures'], what)} expected"
    every = format_duration(run["checkpoint_every_s"])
    yield (
        f"{lost:.1%} of the time goes to failures, checkpoints and scale: {fails}, "
        f"{format_bytes(run['checkpoint_bytes'])} saved every {every} in {format_duration(run['checkpoint_s'])}"
    )
    if run["storage_usd"] is not None:
        dollars = f"${run['storage_usd']:,.2f}"
        yield f"checkpoints take up to {format_bytes(run['storage_bytes'])} of storage: {dollars}, not in the cost"

    if row["price_model"] == "spot":
        price = row["price_microusd_per_hour"] / 1e6
        useful = float(useful_price(price, run["goodput"]))
        yield f"spot: ${price:,.2f} an hour are ${useful:,.2f} an hour of steps that count"


def _about(count: float, what: str) -> str:
    if count < 0.1:
        return f"less than 0.1 {what}"
    shown = f"{count:.1f}" if count < 10 else f"{math.floor(count + 0.5):,}"
    return f"about {shown} {what}"
