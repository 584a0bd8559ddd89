"""Where data lie and are copied to: residency, a copy for every place that needs one, and what it costs.

Prices are those of the scenario, else the catalog's; the sum is worked out here again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING

from planner.catalog.model import Catalog
from planner.catalog.names import region_matches
from planner.checks.facts import facts_of_row
from planner.checks.findings import Finding, cell_findings
from planner.scenario.schema import Data, Scenario, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument

_GB = 1e9
_MONTH_HOURS = 730.0


def data_findings(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """Everything wrong with where jobs run for their data, and with the copies.

    Parameters
    ----------
    document
        A plan with rows.
    scenario
        The one that the plan carries, read: which jobs have data, where they lie, and where they may go.
    catalog
        Fees of providers for moving and keeping data, where the scenario states none.
    """
    readers: dict[str, list[TrainingJob]] = {}
    for job in scenario.training:
        if job.data is not None:
            readers.setdefault(job.data.name or f"{job.name}:data", []).append(job)
    rows = {workload["name"]: workload["allocations"] for workload in document["workloads"]}
    needed: dict[tuple[str, str, str], None] = {}
    for name, jobs in readers.items():
        for job in jobs:
            for row in rows.get(job.name, ()):
                facts, data = facts_of_row(row, scenario, catalog), job.data
                if facts is None or data is None or (row["provider"], row["region"]) == (data.provider, data.region):
                    continue
                needed[name, row["provider"], row["region"]] = None
                if data.residency and not any(region_matches(facts.offer, pattern) for pattern in data.residency):
                    yield Finding("not-allowed", f"{job.name}: its data may not go to {row['region']}")
    yield from _copies(document, needed, readers, catalog)


def _copies(
    document: PlanDocument,
    needed: dict[tuple[str, str, str], None],
    readers: dict[str, list[TrainingJob]],
    catalog: Catalog,
) -> Iterator[Finding]:
    stated = [(copy["data"], copy["provider"], copy["region"]) for copy in document["copies"]]
    for name, provider, region in needed:
        if (name, provider, region) not in stated:
            yield Finding("wrong-copy", f"{name}: no copy at {provider}/{region}, where it is trained on")
    for key, copy in zip(stated, document["copies"]):
        if key not in needed or stated.count(key) > 1:
            yield Finding("wrong-copy", f"{key[0]}: a copy at {key[1]}/{key[2]} that nothing needs")
            continue
        data = readers[key[0]][0].data
        assert data is not None
        cells = copy_cells(data, kept_hours(readers[key[0]]), key[1], catalog)
        if cells is None:
            yield Finding("wrong-copy", f"{key[0]}: what a copy at {key[1]}/{key[2]} costs is unknown")
        else:
            yield from cell_findings("wrong-copy", key[0], copy, cells)


def kept_hours(jobs: list[TrainingJob]) -> float:
    """From the first start to the last deadline of the jobs that read the data.  [h]"""
    return (max(job.start_s + job.deadline_s for job in jobs) - min(job.start_s for job in jobs)) / 3600.0


def copy_cells(data: Data, hours: float, provider: str, catalog: Catalog) -> Mapping[str, object] | None:
    """What moving a data set to a provider and keeping it there costs; None when either price is unknown.

    Parameters
    ----------
    hours
        How long the copy is kept.  [h]
    """
    gigabytes = data.size_bytes / _GB
    moves = catalog.transfers.get((data.provider, "inter-region" if data.provider == provider else "egress"))
    keeps = catalog.transfers.get((provider, "storage"))
    moved = moves.usd(gigabytes) if moves else None
    kept = keeps.usd(gigabytes) if keeps else None
    moved = moved if data.egress_usd_per_gb is None else data.egress_usd_per_gb * gigabytes
    kept = kept if data.storage_usd_per_gb_month is None else data.storage_usd_per_gb_month * gigabytes
    if moved is None or kept is None:
        return None
    storage = Decimal(repr(kept * (hours / _MONTH_HOURS)))
    cost = _micro(Decimal(repr(moved)) + storage)
    egress = min(_micro(Decimal(repr(moved))), cost)
    return {
        "from": data.at,
        "size_bytes": data.size_bytes,
        "kept_hours": hours,
        "egress_microusd": egress,
        "storage_microusd": cost - egress,
        "cost_microusd": cost,
        "cost_usd": cost / 1e6,
    }


def _micro(dollars: Decimal) -> int:
    return int((dollars * 10**6).to_integral_value(ROUND_HALF_EVEN))
