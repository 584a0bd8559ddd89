"""The ways to run training jobs: as part of a search, or of each job by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.architecture.model import Architecture
from planner.candidates.ledger import Ledger
from planner.candidates.mixed_space import MixSpace
from planner.candidates.mixed_table import add_mixes
from planner.candidates.node_parts import with_parts
from planner.candidates.offers import Site, sites_of
from planner.candidates.patience import Patience
from planner.candidates.placement import sites_with_data
from planner.candidates.training import TrainingTable, training_tables
from planner.candidates.training_question import TrainingQuestion, resolve_training
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.estimate.market import market
from planner.estimate.recall import Recall
from planner.scenario.schema import ModelRef, Scenario, TrainingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """One job and the ways to run it."""

    question: TrainingQuestion
    table: TrainingTable
    median: TrainingTable  # what would hold at the median of the error bands
    space: MixSpace | None  # what mixes are made of, where the job may be mixed


def ways_to_train(
    job: TrainingJob,
    arch: Architecture,
    sites: Sequence[Site],
    ledger: Ledger,
    scenario: Scenario,
    catalog: Catalog,
    *,
    every_layout: bool = False,
    patience_s: float | None = None,
    patience: Patience | None = None,
    recall: Recall | None = None,
    involved: int | None = None,
) -> Trained:
    """Every legal way to run a job on some sites; those where its data cannot be are left out.

    Parameters
    ----------
    involved
        Only layouts that are no more involved than this, and of each count of machines the fastest of every degree.
    """
    question = resolve_training(job, arch, scenario, catalog, recall)
    question = replace(question, patience_s=patience_s, involved=involved)
    there = sites_with_data(job, list(sites), scenario, catalog, ledger)

    def tables_of(some: Sequence[Site], told: Ledger) -> tuple[TrainingTable, TrainingTable]:
        return training_tables(question, some, told, every_layout=every_layout, patience=patience)

    table, median = tables_of(there, ledger)
    if patience_s is None:
        table, median = with_parts(job, scenario, there, (table, median), tables_of)
    if not job.mix_within_job or (patience is not None and patience.out(job.name, lambda: True)):
        return Trained(question=question, table=table, median=median, space=None)
    mixing = add_mixes(question, there, ledger, table, median)
    return Trained(question=question, table=mixing.table, median=mixing.median, space=mixing.space)


def each_job_alone(
    scenario: Scenario,
    catalog: Catalog,
    load_model: Callable[[ModelRef | None], Architecture],
    *,
    allow_suspect: bool = False,
    patience: float = 1.0,
) -> dict[str, Trained]:
    """Ways to run each training job, for itself and at prices by the hour: nothing that is shared or bought ahead.

    Parameters
    ----------
    load_model
        Turns a model reference of the scenario into an architecture.
    patience
        Keep ways that take so many times the job's deadline.
    """
    catalog = market(scenario, catalog)
    found = {}
    for job in scenario.training:
        ledger = Ledger(workload=job.name)
        sites = sites_of(scenario, catalog, ledger, allow_suspect=allow_suspect)
        patience_s = patience * job.deadline_s
        found[job.name] = ways_to_train(
            job, load_model(job.model), sites, ledger, scenario, catalog, patience_s=patience_s
        )
    return found
