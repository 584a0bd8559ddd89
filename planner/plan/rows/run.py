"""What a row of a plan says of failures and checkpoints, and of the run that is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.layouts import RECOMPUTE, SHARDING
from planner.equations import checkpoints as ckp
from planner.estimate.resolve_run import checkpoints_kept, storage_price_usd
from planner.estimate.run import TERMS, checkpoint_bytes_of, run_figures
from planner.estimate.training_spec import RunSpec

if TYPE_CHECKING:
    from planner.candidates.offers import Site
    from planner.candidates.training_question import TrainingQuestion
    from planner.candidates.under_way import UnderWay
    from planner.estimate.layout import Layout
    from planner.plan.model.rows import RunFigures, TrainingLayout
    from planner.plan.model.workloads import UnderWay as UnderWayDocument


def run_document(
    question: TrainingQuestion, site: Site, terms: dict[str, float], devices: int, jobs: int
) -> RunFigures:
    """Checkpoints, failures and the share of the time that counts; empty values where nothing fails or is saved.

    Parameters
    ----------
    question
        The job.
    site
        Where it runs; spot is taken away now and then.
    terms
        Wall time of a whole run by what takes it, failures and checkpoints included.  [s]
    devices
        Of one job.
    jobs
        Identical ones, which keep their checkpoints side by side.
    """
    return run_cells_of(question, question.spec_on(site).run, terms, devices, jobs)


def run_cells_of(
    question: TrainingQuestion, run: RunSpec | None, terms: dict[str, float], devices: int, jobs: int
) -> RunFigures:
    """`run_document` of a job that fails and saves in a given way.

    Parameters
    ----------
    question
        The job.
    run
        How it fails and saves; None: nothing fails and nothing is saved.
    terms
        Wall time of a whole run by what takes it, failures and checkpoints included.  [s]
    devices
        Of one job.
    jobs
        Identical ones, which keep their checkpoints side by side.
    """
    busy_s = sum(seconds for name, seconds in terms.items() if name not in TERMS)
    if run is None:
        return {"modelled": False, "goodput": 1.0}
    size = checkpoint_bytes_of(question.arch, question.spec)
    figures = run_figures(busy_s, devices, size, run)
    stored = float(ckp.checkpoint_storage_bytes(size, checkpoints_kept(question.job))) * jobs
    price = storage_price_usd(question.job)
    hours = sum(terms.values()) / 3600.0
    mtbf_s = float(figures.mtbf_s)
    return {
        "modelled": True,
        "goodput": busy_s / (hours * 3600.0),
        "checkpoint_bytes": size,
        "checkpoint_s": float(figures.checkpoint_s),
        "checkpoint_every_s": float(figures.interval_s),
        "mtbf_hours": mtbf_s / 3600.0 if np.isfinite(mtbf_s) else None,
        "expected_failures": float(figures.failures),
        "storage_bytes": stored,
        "storage_usd": None if price is None else float(ckp.checkpoint_storage_cost(stored, price, hours)),
    }


def under_way_document(run: UnderWay | None) -> UnderWayDocument | None:
    """Where a step time was measured, and what that does to predictions for such devices."""
    if run is None:
        return None
    return {
        "device": run.device,
        "shape": run.shape,
        "count": run.count,
        "layout": split_document(run.layout, 0),
        "measured_step_s": run.measured_step_s,
        "predicted_step_s": run.predicted_step_s,
        "ratio": run.ratio,
    }


def split_document(layout: Layout, row: int) -> TrainingLayout:
    """One layout of many, stages and levels by name."""
    layout, row = layout.select(np.array([row])), 0  # what follows from its sizes is worked out of it alone
    return {
        "dp": int(layout.dp[row]),
        "tp": int(layout.tp[row]),
        "pp": int(layout.pp[row]),
        "vpp": int(layout.vpp[row]),
        "cp": int(layout.cp[row]),
        "ep": int(layout.ep[row]),
        "micro_batch": int(layout.micro_batch[row]),
        "sharding": SHARDING[int(layout.sharding[row])],
        "recompute": RECOMPUTE[int(layout.recompute[row])],
        "global_batch_sequences": int(layout.global_batch[row]),
        "micro_batches": int(np.asarray(layout.micro_batches)[row]),
    }
