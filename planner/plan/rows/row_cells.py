"""Cells of a row: where it stands, what it draws and holds; of a run, its work, failures, checkpoints and what is done.

How fast a run is stands beside what the rule of thumb says of the same devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from planner.architecture.model import training_flop_per_token
from planner.candidates.layouts import RECOMPUTE, SHARDING
from planner.candidates.machines import carbon_mg_per_hour, grid_of, power_w
from planner.equations import reliability as rel
from planner.equations.rules import training_hours
from planner.estimate.resolve_run import checkpoints_kept, storage_price_usd
from planner.estimate.run import TERMS, checkpoint_bytes_of, run_figures
from planner.estimate.run import TERMS as RUN_TERMS
from planner.estimate.training_spec import RunSpec
from planner.estimate.utilisation import tokens_left

if TYPE_CHECKING:
    from planner.architecture.model import Architecture
    from planner.candidates.offers import Site
    from planner.candidates.training_question import TrainingQuestion
    from planner.candidates.under_way import UnderWay
    from planner.catalog.model import Catalog
    from planner.estimate.layout import Layout
    from planner.estimate.training_spec import TrainingSpec
    from planner.plan.model.plan import UnderWay as UnderWayDocument
    from planner.plan.model.rows import Energy, Memory, Place, RunFigures, TrainingLayout, Work


MICRO = 1_000_000
NO_ENERGY: Energy = {"power_w": None, "carbon_kg": None}  # of what nobody knows the power of


def usd(microusd: int) -> float:
    """Dollars for people; the exact figure is the integer beside it."""
    return microusd / MICRO


def place_document(site: Site, shapes: int) -> Place:
    """What is rented, where, and where its price is from."""
    offer, shape = site.offer, site.shape
    return {
        "offer": offer.id,
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone,
        "country": offer.country,
        "device": site.device.id,
        "shape": shape.id,
        "price_model": offer.price_model,
        "price_microusd_per_hour": offer.price_microusd_per_hour,
        "price_as_of": offer.provenance.as_of,
        "price_status": offer.provenance.status,
        "price_source": offer.provenance.source,
        "count": shapes,
        "devices": shapes * shape.devices,
        "devices_per_shape": shape.devices,
    }


def memory_document(terms: dict[str, float], usable_bytes: float) -> Memory:
    """Needed against usable memory of one device, with its terms.  [B]"""
    needed = float(sum(terms.values()))
    return {
        "needed_bytes": needed,
        "usable_bytes": usable_bytes,
        "free_bytes": usable_bytes - needed,
        "terms_bytes": terms,
    }


def energy_document(catalog: Catalog, site: Site, shapes: float, hours: float) -> Energy:
    """Power drawn, rated where the owner says nothing, and carbon over the hours; None where a fact is missing.

    Parameters
    ----------
    catalog
        Has the carbon of each grid.
    site
        Where the shapes stand.
    shapes
        In use; a part of one where replicas of others stand on it too.
    hours
        That they run; only the carbon counts them.  [h]
    """
    drawn_w, grid = power_w(site), grid_of(site, catalog)
    carbon = carbon_mg_per_hour(site, catalog) * shapes * hours / 1e6
    return {
        "power_w": None if drawn_w is None else drawn_w * shapes,
        "carbon_kg": None if drawn_w is None or grid is None else carbon,
    }


def busy_s_of(terms: Mapping[str, float]) -> float:
    """Time of the optimizer steps alone, without failures and checkpoints.  [s]"""
    return sum(seconds for name, seconds in terms.items() if name not in RUN_TERMS)


def work_document(arch: Architecture, spec: TrainingSpec, busy_s: float, devices: int) -> Work:
    """Model FLOPs of a token and of the run, and the rate of them that one device reaches in its busy time.

    Parameters
    ----------
    arch
        The model.
    spec
        What is trained; what was trained before does not count.
    busy_s
        Time of the optimizer steps that are left.  [s]
    devices
        Of one job; in a mix those of one group.
    """
    per_token, tokens = float(training_flop_per_token(arch, spec.sequence_length)), tokens_left(spec)
    return {
        "flop_per_token": per_token,
        "tokens": tokens,
        "flop_count": per_token * tokens,
        "flop_per_s_per_device": per_token * tokens / busy_s / devices,
    }


def rule_hours(arch: Architecture, spec: TrainingSpec, catalog: Catalog, family: str, peak_flop_per_s: float) -> float:
    """Hours by the rule of thumb at the family's usual share of the peak of all devices together.  [h]

    Parameters
    ----------
    arch
        The model.
    spec
        What is trained; what was trained before does not count.
    catalog
        Has the rule's share of the peak by family.
    family
        Of the devices.
    peak_flop_per_s
        Of all its devices together.  [FLOP/s]
    """
    sustained = peak_flop_per_s * catalog.efficiencies[family].mfu
    hours = training_hours(spec.tokens, arch.active_parameters, spec.epochs, 1.0, sustained)
    return float(hours) * spec.remaining_share


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
    stored = float(rel.checkpoint_storage_bytes(size, checkpoints_kept(question.job))) * jobs
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
        "storage_usd": None if price is None else float(rel.checkpoint_storage_cost(stored, price, hours)),
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
