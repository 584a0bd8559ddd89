"""Where a job's data may go, and what a copy of them costs: residency, egress, storage.

A job runs where its data lie for nothing more; anywhere else it needs a copy, which is paid once for all jobs that
share the data (optimisation.md 4.3, catalog.md 3.7). A price that nobody states excludes the place: unknown is not
zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase

import numpy as np

from planner.candidates.ledger import Ledger
from planner.candidates.limits import ColumnFacts
from planner.candidates.offers import OWNED, Site, names_on
from planner.candidates.program import IntArray, Task
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.catalog.names import region_matches
from planner.errors import InputError, Problem
from planner.scenario.schema import Data, Scenario, TrainingJob
from planner.spelling import closest

GB = 1e9
MONTH_S = 730 * 3600.0
Place = tuple[str, str]  # provider, region


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """Data that some jobs read, and for how long a copy of them is kept."""

    name: str
    data: Data
    jobs: tuple[str, ...]
    months: float  # from the first start to the last deadline of these jobs


def data_sets(scenario: Scenario) -> tuple[DataSet, ...]:
    """The data sets of a scenario, in the order of the jobs; one without a name is its job's own."""
    readers: dict[str, list[TrainingJob]] = {}
    for job in scenario.training:
        if job.data is not None:
            readers.setdefault(job.data.name or f"{job.name}:data", []).append(job)
    return tuple(
        DataSet(name=name, data=jobs[0].data, jobs=tuple(job.name for job in jobs), months=_months(jobs))
        for name, jobs in readers.items()
        if jobs[0].data is not None
    )


def _months(jobs: Sequence[TrainingJob]) -> float:
    first = min(job.start_s for job in jobs)
    return (max(job.start_s + job.deadline_s for job in jobs) - first) / MONTH_S


def place_of(site: Site) -> Place:
    """Provider and region of a site."""
    return site.offer.provider, site.offer.region


def copy_microusd(wanted: DataSet, place: Place, catalog: Catalog) -> int | None:
    """Price of a copy: moving the data there, and keeping them; None when either is unknown.  [micro-USD]

    Parameters
    ----------
    wanted
        The data, and for how long a copy is kept.
    place
        Where to.
    catalog
        Prices of transfers and storage where the scenario gives none.
    """
    moved, kept = egress_usd(wanted.data, place, catalog), storage_usd_per_month(wanted.data, place, catalog)
    if moved is None or kept is None:
        return None
    return int(
        ((Decimal(repr(moved)) + Decimal(repr(kept * wanted.months))) * 10**6).to_integral_value(ROUND_HALF_EVEN)
    )


def egress_usd(data: Data, place: Place, catalog: Catalog) -> float | None:
    """Price of moving the data to a place; None when it is unknown.  [USD]

    Parameters
    ----------
    data
        Their size and where they lie; a price of their own wins.
    place
        Where to; within a provider the price between regions holds, else that of leaving it.
    catalog
        Prices of transfers.
    """
    gigabytes = data.size_bytes / GB
    if data.egress_usd_per_gb is not None:
        return data.egress_usd_per_gb * gigabytes
    kind = "inter-region" if data.provider == place[0] else "egress"
    known = catalog.transfers.get((data.provider, kind))
    return None if known is None else known.usd(gigabytes)


def storage_usd_per_month(data: Data, place: Place, catalog: Catalog) -> float | None:
    """Price of keeping a copy at a place; None when it is unknown.  [USD]

    Parameters
    ----------
    data
        Their size; a price of their own wins.
    place
        Where the copy is kept.
    catalog
        Prices of storage, by provider.
    """
    gigabytes = data.size_bytes / GB
    if data.storage_usd_per_gb_month is not None:
        return data.storage_usd_per_gb_month * gigabytes
    known = catalog.transfers.get((place[0], "storage"))
    return None if known is None else known.usd(gigabytes)


def sites_with_data(
    job: TrainingJob, sites: Iterable[Site], scenario: Scenario, catalog: Catalog, ledger: Ledger
) -> list[Site]:
    """Sites that the data of a job are at, or may be copied to at a known price; drops go to the ledger.

    Parameters
    ----------
    job
        One without data runs anywhere.
    sites
        Offers that it may run on.
    scenario
        Its jobs may share the data.
    catalog
        Regions, and prices of transfers and storage.
    ledger
        Is told of the sites that are left out, and why.

    Raises
    ------
    InputError
        The residency names no region of the catalog.
    """
    if job.data is None:
        return list(sites)
    _check_residency(job, scenario, catalog)
    wanted = next(one for one in data_sets(scenario) if job.name in one.jobs)
    kept = []
    for site in sites:
        reason = _refusal(wanted, site, catalog)
        if reason:
            nearest = f"{'/'.join(place_of(site))}: {_WHY[reason]}"
            ledger.drop(reason, "offers", nearest=nearest, on=names_on([site]))
        else:
            kept.append(site)
    return kept


_WHY = {
    "residency": "the data may not go there",
    "egress-unknown": "what moving the data there costs is unknown (training[].data.egress)",
    "storage-unknown": "what keeping the data there costs is unknown (training[].data.storage)",
}


def _refusal(wanted: DataSet, site: Site, catalog: Catalog) -> str:
    place, data = place_of(site), wanted.data
    if place == (data.provider, data.region):
        return ""
    if data.residency and not any(region_matches(site.offer, pattern) for pattern in data.residency):
        return "residency"
    if egress_usd(data, place, catalog) is None:
        return "egress-unknown"
    return "storage-unknown" if storage_usd_per_month(data, place, catalog) is None else ""


def _check_residency(job: TrainingJob, scenario: Scenario, catalog: Catalog) -> None:
    """A pattern that no region of the catalog has is a slip of the pen."""
    assert job.data is not None
    own = {(one.region or OWNED).lower() for one in scenario.hardware.owned}
    for pattern in job.data.residency:
        sold = any(region_matches(offer, pattern) for offer in catalog.offers)
        if not sold and not any(fnmatchcase(region, pattern.lower()) for region in own):
            known = sorted(own | {offer.region for offer in catalog.offers})
            raise InputError(_nowhere(job, pattern, scenario, closest(pattern, known)))


def _nowhere(job: TrainingJob, pattern: str, scenario: Scenario, near: Sequence[str]) -> Problem:
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    index = [one.name for one in scenario.training].index(job.name)
    place = scenario.places.get(f"training[{index}].data.residency")
    return Problem(
        reference="bad-reference",
        message=f"'residency' of {job.name} is '{pattern}', which is no region of the catalog",
        places=(place,) if place else (),
        hint=meant + 'write a region or a pattern, such as "us-*"; plan catalog list shows every region',
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A data set at a place other than its own, and the columns that need it there."""

    wanted: DataSet
    place: Place
    cost_microusd: int
    columns: IntArray  # of every job that reads the data


def copies_of(scenario: Scenario, catalog: Catalog, facts: Sequence[ColumnFacts], tasks: Sequence[Task]) -> list[Copy]:
    """Every copy that some column needs, in the order of data sets and places.

    Parameters
    ----------
    scenario
        Its jobs name the data.
    catalog
        Prices of transfers and storage.
    facts
        (columns,) where each column runs.
    tasks
        Whose columns those are.
    """
    found = []
    for wanted in data_sets(scenario):
        readers = [column for task in tasks if task.name in wanted.jobs for column in range(task.first, task.stop)]
        of_place: dict[Place, list[int]] = {}
        for column in readers:
            of_place.setdefault(place_of(facts[column].site), []).append(column)
        for place, columns in sorted(of_place.items()):
            cost = (
                None if place == (wanted.data.provider, wanted.data.region) else copy_microusd(wanted, place, catalog)
            )
            if cost is not None:
                found.append(Copy(wanted=wanted, place=place, cost_microusd=cost, columns=np.array(columns)))
    return found
