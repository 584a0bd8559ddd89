"""One workload and every way to run it, with all that this was worked out from: asked again, it need not be anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from planner.architecture.model import Architecture
from planner.candidates.calendar import Pool
from planner.candidates.contracts import reserved_sites
from planner.candidates.ledger import Ledger
from planner.candidates.mixed_space import MixSpace
from planner.candidates.offers import Site, names_on, sites_of
from planner.candidates.patience import Patience
from planner.candidates.placement import data_sets
from planner.candidates.plainer import Plainer
from planner.candidates.rates import rates_table, resolve_rates
from planner.candidates.serving import ServingQuestion, ServingTable, resolve_serving, serving_table
from planner.candidates.serving_question import Mixes
from planner.candidates.trained import ways_to_train
from planner.candidates.training import TrainingTable
from planner.candidates.training_question import TrainingQuestion
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.catalog.names import region_matches
from planner.estimate.given import given_offers
from planner.estimate.recall import Recall
from planner.scenario.schema import Scenario, ServingFleet, TrainingJob

Question = TrainingQuestion | ServingQuestion
Table = TrainingTable | ServingTable
Workload = TrainingJob | ServingFleet
Fresh = Mapping[str, tuple[Workload, Architecture]]  # workloads of which no ways are known yet, by name


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Around:
    """What the ways to run a workload depend on besides the workload itself.

    Parameters
    ----------
    catalog
        As it came, before what the scenario adds to it.
    """

    scenario: Scenario
    catalog: Catalog
    pools: tuple[Pool, ...]
    allow_suspect: bool = False
    every_layout: bool = False
    patience_s: float | None = None
    plainer: Plainer | None = None
    more_mixes: Mapping[str, Mixes] = field(default_factory=dict)  # of classes of requests, by fleet
    recall: Recall = field(default_factory=Recall)  # what the estimates answered; no way depends on it

    def same_for(self, workload: Workload, before: Around) -> bool:
        """Whether a workload of its own finds the same ways here as there; False also where that is not known."""
        if self.catalog is not before.catalog or self.pools != before.pools or said_of(self) != said_of(before):
            return False
        if self.more_mixes.get(workload.name) != before.more_mixes.get(workload.name):
            return False
        if isinstance(workload, TrainingJob) and workload.data is not None:
            return data_sets(self.scenario) == data_sets(before.scenario)
        return True


def said_of(around: Around, *, discounts: bool = True) -> tuple[object, ...]:
    """What a search reads of the scenario as a whole: all but its budget, which is a limit of the program alone.

    Parameters
    ----------
    discounts
        Without them: where the markets that they make are held against each other.
    """
    scenario = around.scenario
    return (
        scenario.hardware if discounts else scenario.hardware.model_copy(update={"discounts": ()}),
        scenario.limits.model_copy(update={"budget_microusd": None}),
        scenario.objective,
        scenario.horizon_s,
        scenario.periods_s,
        scenario.begin,
        scenario.scheduled,
        tuple(given_offers(scenario)),
        (around.allow_suspect, around.every_layout, around.patience_s, around.plainer),
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluated:
    """A workload, its ways, and what was dropped on the way to them."""

    workload: Workload
    arch: Architecture
    around: Around
    question: Question
    table: Table
    median: Table  # what would hold at the median of the error bands
    ledger: Ledger  # of this workload alone, before columns are held against each other
    space: MixSpace | None = None  # what mixes are made of, where the job may be mixed

    def answers(self, workload: Workload, arch: Architecture, around: Around) -> bool:
        """Whether these are the ways of a workload in another scenario.

        Parameters
        ----------
        workload
            As the other scenario has it.
        arch
            Its model there.
        around
            What else the other scenario says.
        """
        if isinstance(workload, ServingFleet) and workload.rates is not None:
            return False  # a table of the user's own: read anew in no time
        if isinstance(self.workload, ServingFleet) and self.workload.rates is not None:
            return False
        return workload == self.workload and arch == self.arch and around.same_for(workload, self.around)

    def asked_by(self, workload: Workload, around: Around) -> Evaluated:
        """The same ways as those of a scenario that was changed elsewhere."""
        question = replace(self.question, scenario=around.scenario)
        space = self.space
        if space is not None:
            assert isinstance(question, TrainingQuestion)
            space = replace(space, question=question)
        return replace(self, workload=workload, around=around, question=question, space=space)


def evaluated(workload: Workload, arch: Architecture, around: Around, market: Catalog, patience: Patience) -> Evaluated:
    """Every legal way to run one workload on every allowed offer.

    Parameters
    ----------
    market
        The catalog with what the scenario adds to it.
    patience
        Whether there is time for it.
    """
    ledger = Ledger(workload=workload.name)
    scenario = around.scenario
    if isinstance(workload, ServingFleet) and workload.rates is not None:
        asked = resolve_rates(workload, arch, scenario, market)
        table = rates_table(asked, ledger)
        return Evaluated(
            workload=workload, arch=arch, around=around, question=asked, table=table, median=table, ledger=ledger
        )
    sites = sites_of(scenario, market, ledger, allow_suspect=around.allow_suspect)
    sites += reserved_sites(around.pools, scenario, market)
    plainer = around.plainer
    involved = None if plainer is None else plainer.involved[workload.name]
    if plainer is not None:
        sites = [site for site in sites if site.offer.id in plainer.offers[workload.name]]
    sites = _in_its_regions(workload, sites, ledger)
    if isinstance(workload, ServingFleet):
        fleet = resolve_serving(workload, arch, scenario, market, around.recall)
        fleet = replace(fleet, involved=involved, more_mixes=around.more_mixes.get(workload.name, ()))
        lasting = _lasting(workload, sites, ledger)
        found = [] if patience.out(workload.name, lambda: False) else lasting
        served = serving_table(fleet, found, ledger, lambda: patience.over(workload.name))
        return Evaluated(
            workload=workload, arch=arch, around=around, question=fleet, table=served, median=served, ledger=ledger
        )
    trained = ways_to_train(
        workload,
        arch,
        sites,
        ledger,
        scenario,
        market,
        every_layout=around.every_layout,
        patience_s=around.patience_s,
        patience=patience,
        involved=involved,
        recall=around.recall,
    )
    return Evaluated(
        workload=workload,
        arch=arch,
        around=around,
        question=trained.question,
        table=trained.table,
        median=trained.median,
        space=trained.space,
        ledger=ledger,
    )


def in_turn(fresh: Fresh, around: Around, market: Catalog, patience: Patience) -> dict[str, Evaluated]:
    """The ways of workloads, one after the other; those of one model together, while it is known what was answered.

    Parameters
    ----------
    fresh
        Workloads and their models, by name.
    around
        What their ways depend on besides.
    market
        The catalog with what the scenario adds to it.
    patience
        Whether there is time for each; what is cut is noted there.
    """
    first: dict[str, int] = {}
    for _, arch in fresh.values():
        first.setdefault(arch.name, len(first))
    order = sorted(fresh, key=lambda name: first[fresh[name][1].name])
    found = {name: evaluated(*fresh[name], around, market, patience) for name in order}
    return {name: found[name] for name in fresh}


def _in_its_regions(workload: Workload, sites: Sequence[Site], ledger: Ledger) -> list[Site]:
    """Where a workload may stand, rented or owned."""
    there = [any(region_matches(site.offer, pattern) for pattern in workload.regions) for site in sites]
    away = [site for site, inside in zip(sites, there, strict=True) if not inside]
    ledger.drop("place", "offers", len(away), on=names_on(away))
    return [site for site, inside in zip(sites, there, strict=True) if inside]


def _lasting(fleet: ServingFleet, sites: Sequence[Site], ledger: Ledger) -> list[Site]:
    """Where a fleet can stay: nothing that is queued for, and spot only where it may be used."""
    queued = [site for site in sites if site.offer.price_model == "flex"]
    taken = [site for site in sites if site.spot and not fleet.max_spot_share]
    ledger.drop("flex", "offers", len(queued), on=names_on(queued))
    ledger.drop("spot", "offers", len(taken), on=names_on(taken))
    return [site for site in sites if site.offer.price_model != "flex" and (not site.spot or fleet.max_spot_share)]
