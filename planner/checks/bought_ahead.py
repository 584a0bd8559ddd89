"""What is bought ahead and where data are copied to, from the offers and the terms of the catalog.

Of contracts: fees, terms, and whether every pool is covered. Of data: residency, a copy for every place that needs one,
and what it costs at prices of the scenario, else the catalog's. Money is worked out again in exact fractions; the nodes
in use are counted from the rows, period by period.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, cast

from planner.catalog.load import device_matches
from planner.catalog.model import Catalog, Offer
from planner.catalog.names import region_matches
from planner.checks.calendar import Grid, counted, date_after, grid_of, held_by, owned_nodes, owned_window_s
from planner.checks.facts import RESERVED, OfferFacts, exact_cost, facts_of_row, jobs_of, pool_of_row
from planner.checks.findings import TOLERANCE, Finding, cell_findings
from planner.checks.pools import Pool, period_hours, pool_cells, rent_microusd_per_hour, shares_of, use_cells, use_of
from planner.checks.unasked import seller_findings
from planner.estimate.market import is_own_contract
from planner.scenario.hardware_keys import COMMITMENT_HOURS, RESERVING
from planner.scenario.schema import Data, Scenario, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.bought import Contract, PoolPlace, Schedule, SharedNodesRow, Spend
    from planner.plan.model.plan import Allocation, PlanDocument


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


ON_DEMAND = "on_demand"
_SHORT = 1e-9


class HeldRow(NamedTuple):
    """A row of a workload or the nodes that several share, its facts, and the nodes that it holds in every period."""

    workload: str  # "": shared nodes
    row: Allocation | SharedNodesRow
    facts: OfferFacts
    nodes: list[int]

    @property
    def pool(self) -> str | None:
        """Whose nodes it holds; None of what is not reserved."""
        return pool_of_row(self.row) if self.facts.offer.price_model == RESERVED else None


def contract_findings(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """Everything wrong with what is bought ahead and with the use of what is bought or owned.

    Parameters
    ----------
    document
        A plan with rows.
    scenario
        The one that the plan carries, read.
    catalog
        The catalog with the scenario's discounts and contracts.
    """
    grid, contracts = grid_of(scenario), document["contracts"]
    yield from _sunk(document, scenario)
    yield from _spend(document)
    if grid is None:
        if contracts:
            yield Finding("wrong-contract", "contracts are bought without a calendar")
        return
    offers = {offer.id: offer for offer in catalog.offers}
    for contract in contracts:
        if contract["offer"] not in offers:
            yield Finding("unknown-offer", f"contract: the catalog has no offer {contract['offer']!r}")
        else:
            yield from _contract(contract, offers[contract["offer"]], scenario, catalog, grid)
    yield from _counts(contracts, offers, grid)
    yield from _pools(document, scenario, catalog, grid)


def _contract(contract: Contract, offer: Offer, scenario: Scenario, catalog: Catalog, grid: Grid) -> Iterator[Finding]:
    """Place, price, term and fee of one purchase."""
    shape, where = catalog.shapes[offer.shape], f"contract {contract['offer']}"
    cells = {
        "kind": offer.price_model,
        "pool": pool_of_row(contract),
        **{name: getattr(offer, name) for name in ("provider", "region", "shape")},
        "zone": contract["zone"] if contract["kind"] == ON_DEMAND else offer.zone,
        "device": shape.device,
        "devices": contract["count"] * shape.devices,
        "price_microusd_per_hour": offer.price_microusd_per_hour,
        "price_as_of": offer.provenance.as_of,
        "price_status": offer.provenance.status,
        "price_source": offer.provenance.source,
        "start_date": date_after(scenario, contract["start_hours"]),
        "end_date": date_after(scenario, contract["end_hours"]),
        "cost_usd": contract["cost_microusd"] / 1e6,
    }
    yield from cell_findings("wrong-contract", where, contract, cells)
    if contract["zone"] not in ("", offer.zone):
        yield Finding("wrong-contract", f"{where}: it stands in {offer.zone!r}, its pool in {contract['zone']!r}")
    if contract["count"] < 1:
        yield Finding("wrong-count", f"{where}: {contract['count']} nodes are bought")
    if offer.price_model not in (*RESERVING, ON_DEMAND) or not _allowed(offer, scenario, catalog):
        yield Finding("not-allowed", f"{where}: the scenario does not allow it")
    yield from seller_findings(where, offer, scenario, catalog)
    first = grid.at(contract["start_hours"])
    if first is None or first != contract["first_period"] or contract["end_period"] <= first:
        yield Finding("wrong-contract", f"{where}: it does not start with the period that it names")
    elif contract["kind"] == ON_DEMAND:
        yield from _topped_up(contract, offer, grid, where)
    else:
        yield from _term(contract, offer, scenario, grid, where)


def _allowed(offer: Offer, scenario: Scenario, catalog: Catalog) -> bool:
    """Contracts that the scenario brings along are allowed by being there."""
    hardware, device = scenario.hardware, catalog.devices[catalog.shapes[offer.shape].device]
    return (
        any(device_matches(device, pattern) for pattern in hardware.allow)
        and not any(device_matches(device, pattern) for pattern in hardware.deny)
        and any(region_matches(offer, pattern) for pattern in hardware.regions)
        and (offer.price_model in hardware.pricing or is_own_contract(offer))
    )


def _topped_up(contract: Contract, offer: Offer, grid: Grid, where: str) -> Iterator[Finding]:
    """Nodes on demand for whole periods: each period is paid for by itself."""
    periods = range(contract["first_period"], min(contract["end_period"], grid.periods))
    lengths = [grid.edge(number + 1) - grid.edge(number) for number in periods]
    fee = sum(exact_cost(1, offer.price_microusd_per_hour, length) for length in lengths)
    cost = contract["count"] * fee
    cells = {
        "end_hours": grid.edge(contract["end_period"]),
        "end_period": min(contract["end_period"], grid.periods),
        "term_hours": grid.edge(contract["end_period"]) - contract["start_hours"],
        "prorated": False,
        **{"fee_microusd": fee, "full_microusd": cost, "prorated_microusd": cost, "cost_microusd": cost},
    }
    yield from cell_findings("wrong-fee", where, contract, cells)


def _term(contract: Contract, offer: Offer, scenario: Scenario, grid: Grid, where: str) -> Iterator[Finding]:
    """A term that is sold, and its fee, whole or within the horizon."""
    term, start, count = contract["term_hours"], contract["start_hours"], contract["count"]
    if not _sold(offer, term):
        yield Finding("wrong-contract", f"{where}: it is not sold for {term:.6g} h")
    within = min(term, grid.horizon_hours - start)
    whole, part = (exact_cost(1, offer.price_microusd_per_hour, hours) for hours in (term, within))
    # what begins later than the plan would be bought for its last weeks alone: nobody sells that
    prorated = part < whole and scenario.hardware.beyond_horizon == "prorate" and contract["first_period"] == 0
    to_the_end = start + term >= grid.horizon_hours - _SHORT * grid.period_hours
    whole_periods = contract["first_period"] + math.floor(term / grid.period_hours + _SHORT)
    cells = {
        "end_hours": start + within,
        "end_period": grid.periods if to_the_end else min(whole_periods, grid.periods),
        "fee_microusd": whole,
        "prorated": prorated,
        "full_microusd": count * whole,
        "prorated_microusd": count * part,
        "cost_microusd": count * (part if prorated else whole),
    }
    yield from cell_findings("wrong-fee", where, contract, cells)


def _sold(offer: Offer, term_hours: float) -> bool:
    """Whether an offer is sold for a term."""
    if offer.price_model in COMMITMENT_HOURS:
        return term_hours == (offer.min_term_hours or COMMITMENT_HOURS[offer.price_model])
    least, most, step = offer.min_term_hours, offer.max_term_hours, offer.term_step_hours
    if (least or 0.0) > term_hours * (1 + TOLERANCE) or (most is not None and term_hours > most * (1 + TOLERANCE)):
        return False
    steps = (term_hours - (least or 0.0)) / step if step else 0.0
    return math.isclose(steps, round(steps), abs_tol=1e-6)


def _counts(contracts: Sequence[Contract], offers: dict[str, Offer], grid: Grid) -> Iterator[Finding]:
    """No more of an offer at once than is sold; a block that a catalog lists has its most for each block."""
    known = [(contract, offers[contract["offer"]]) for contract in contracts if contract["offer"] in offers]
    for contract, offer in known:
        if offer.max_shapes is not None and contract["count"] > offer.max_shapes:
            message = f"{offer.id} is sold up to {offer.max_shapes}, {contract['count']} are bought"
            yield Finding("limit-exceeded", message)
    steady = [pair for pair in known if pair[1].price_model != "block" or is_own_contract(pair[1])]
    for number in range(grid.periods):
        counts: dict[str, int] = {}
        for contract, offer in steady:
            if contract["first_period"] <= number < contract["end_period"]:
                counts[offer.id] = counts.get(offer.id, 0) + contract["count"]
        for name, count in counts.items():
            most = offers[name].max_shapes
            if most is not None and count > most:
                yield Finding("limit-exceeded", f"{name} is sold up to {most}, {count} are held in period {number}")


def _pools(document: PlanDocument, scenario: Scenario, catalog: Catalog, grid: Grid) -> Iterator[Finding]:
    """Every pool is covered in every period, and the plan says how far."""
    uses = pool_uses(document, scenario, catalog, grid)
    for use in uses:
        for number in range(grid.periods):
            held = use.reserved[number] + use.on_demand[number]
            if use.used[number] > held:
                message = f"{use.name}: {use.used[number]} nodes in use in period {number}, {held} are there"
                yield Finding("limit-exceeded", message)
    stated = document["schedule"]["use"] if document["schedule"] else []
    if [use["pool"] for use in stated] != [use.name for use in uses]:
        yield Finding("wrong-schedule", f"pools in use are {[use.name for use in uses]}")
        return
    for use, told in zip(uses, stated):
        yield from cell_findings("wrong-schedule", use.name, told, pool_cells(use))
    yield from _shares(document, uses, scenario, catalog)
    by_pool = {use.name: use for use in uses}
    for contract in document["contracts"]:
        span = contract["first_period"], min(contract["end_period"], grid.periods)
        if contract["pool"] in by_pool and 0 <= span[0] < span[1]:
            cost, use = contract["cost_microusd"], by_pool[contract["pool"]]
            figures = use_cells(use, contract["kind"], contract["count"], range(*span), cost)
            yield from cell_findings("wrong-contract", f"contract {contract['offer']}", contract, figures)


def _shares(document: PlanDocument, uses: Sequence[Pool], scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """Who uses a pool bears its cost, by node-hours."""
    users: dict[str, dict[str, list[Fraction]]] = {}
    nodes = {one["offer"]: one for one in document.get("shared_nodes", [])}
    rows = [row for workload in document["workloads"] for row in workload["allocations"] if "shared" in row]
    used = {offer: sum(use_of(row) for row in rows if row["offer"] == offer) for offer in nodes}
    for held in _held_rows(document, scenario, catalog):
        if held.workload and held.pool is not None:
            part, of_pool, row = Fraction(0), users.setdefault(held.pool, {}), held.row
            if "shared" in row and used.get(row["offer"]):  # idle devices are borne by those in use
                part = nodes[row["offer"]]["count"] * use_of(cast("Allocation", row)) / used[row["offer"]]
            before = of_pool.get(held.workload, [Fraction(0)] * len(held.nodes))
            of_pool[held.workload] = [was + count + part for was, count in zip(before, held.nodes)]
    costs = {use.name: 0 for use in uses}
    for contract in document["contracts"]:
        costs[contract["pool"]] = costs.get(contract["pool"], 0) + contract["cost_microusd"]
    shared = [one for use in uses for one in shares_of(use, users.get(use.name, {}), costs[use.name])]
    stated = cast("Schedule", document["schedule"])["shares"]
    if len(shared) != len(stated):
        yield Finding("wrong-schedule", f"{len(stated)} shares of pools, {len(shared)} computed")
        return
    for one, told in zip(shared, stated):
        yield from cell_findings("wrong-schedule", f"share of {one['pool']}", told, one)


def pool_uses(document: PlanDocument, scenario: Scenario, catalog: Catalog, grid: Grid) -> list[Pool]:
    """Nodes of every pool counted from the rows and the contracts, then of what is owned.

    Those that play no part are left out. Pools stand in the order of their names, as do those of the plan, and what is
    owned in the order of the scenario.

    Parameters
    ----------
    document
        A plan with rows.
    scenario
        The one that the plan carries, read; it has a calendar.
    catalog
        The catalog with the scenario's discounts and contracts.
    grid
        Periods of that calendar.
    """
    rows = list(_held_rows(document, scenario, catalog))
    places: dict[str, PoolPlace] = {one.pool: one.row for one in rows if one.pool is not None}
    places |= {contract["pool"]: contract for contract in document["contracts"]}
    found = [_pool_use(name, places[name], document, rows, catalog, grid) for name in sorted(places)]
    for index, owned in enumerate(scenario.hardware.owned):
        there = owned_nodes(scenario, owned, grid.edges_s())
        used = _summed([count for _, _, facts, count in rows if facts.owned == index], grid.periods)
        region = owned.region or "owned"
        place: PoolPlace = {"provider": "owned", "region": region, "zone": "", "shape": owned.shape}
        found.append(
            Pool(
                name=f"owned/{region}/{owned.shape.rsplit('/', 1)[-1]}",
                kind="owned",
                place=place,
                hours=period_hours(grid.edges_s()),
                reserved=there,
                on_demand=[0] * grid.periods,
                used=used,
            )
        )
    return [use for use in found if any(use.used) or any(use.on_demand) or any(use.reserved)]


def _held_rows(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[HeldRow]:
    """Workloads and their rows, with the facts of a row and the nodes that it holds in every period."""
    grid, asked = grid_of(scenario), {workload.name: workload for workload in scenario.workloads}
    assert grid is not None
    for workload in document["workloads"]:
        for row in workload["allocations"] if workload["name"] in asked else ():
            facts = facts_of_row(row, scenario, catalog)
            if facts is not None:
                per_job = 0 if "shared" in row else row["count"] // max(jobs_of(row), 1)  # the nodes are held instead
                held = held_by(asked[workload["name"]], row, facts, scenario)
                yield HeldRow(workload["name"], row, facts, counted(held, grid.periods, per_job))
    for nodes in document.get("shared_nodes", []):
        facts = facts_of_row(nodes, scenario, catalog)
        if facts is not None:
            yield HeldRow("", nodes, facts, [nodes["count"]] * grid.periods)


def _pool_use(
    name: str, place: PoolPlace, document: PlanDocument, rows: Sequence[HeldRow], catalog: Catalog, grid: Grid
) -> Pool:
    mine = [contract for contract in document["contracts"] if contract["pool"] == name]
    stand: PoolPlace = {
        "provider": place["provider"],
        "region": place["region"],
        "zone": place["zone"],
        "shape": place["shape"],
    }
    return Pool(
        name=name,
        kind=RESERVED,
        place=stand,
        hours=period_hours(grid.edges_s()),
        reserved=_bought([one for one in mine if one["kind"] != ON_DEMAND], grid),
        on_demand=_bought([one for one in mine if one["kind"] == ON_DEMAND], grid),
        used=_summed([one.nodes for one in rows if one.pool == name], grid.periods),
        rent_microusd_per_hour=rent_microusd_per_hour(catalog, stand),
    )


def _bought(contracts: Sequence[Contract], grid: Grid) -> list[int]:
    found = [0] * grid.periods
    for contract in contracts:
        for period in range(max(contract["first_period"], 0), min(contract["end_period"], grid.periods)):
            found[period] += contract["count"]
    return found


def _summed(counts: Sequence[Sequence[int]], periods: int) -> list[int]:
    return [sum(count[number] for count in counts) for number in range(periods)]


def _sunk(document: PlanDocument, scenario: Scenario) -> Iterator[Finding]:
    """What is owned costs so much whether it runs or not."""
    paid = [owned for owned in scenario.hardware.owned if owned.sunk_microusd_per_hour is not None]
    if len(paid) != len(document["owned"]):
        yield Finding("wrong-total", f"{len(document['owned'])} rows of what is owned, {len(paid)} have a price")
        return
    for owned, stated in zip(paid, document["owned"]):
        begin, end = owned_window_s(scenario, owned)
        sunk = exact_cost(owned.count, owned.sunk_microusd_per_hour or 0, (end - begin) / 3600.0)
        cells = {"shape": owned.shape, "region": owned.region or "owned", "count": owned.count}
        cells |= {"hours": (end - begin) / 3600.0, "sunk_microusd": sunk, "sunk_usd": sunk / 1e6}
        yield from cell_findings("wrong-total", f"owned {owned.shape}", stated, cells)


def _spend(document: PlanDocument) -> Iterator[Finding]:
    """The total by what it depends on."""
    ran = sum(row["cost_microusd"] for workload in document["workloads"] for row in workload["allocations"])
    bought = [sum(one["cost_microusd"] for one in document["contracts"] if (one["kind"] == ON_DEMAND) is top_up)
              for top_up in (False, True)]  # fmt: skip
    copied = sum(copy["cost_microusd"] for copy in document["copies"])
    cells = {
        "workloads_microusd": ran,
        "topped_up_microusd": bought[True],
        "copies_microusd": copied,
        "committed_microusd": bought[False],
        "variable_microusd": ran + bought[True] + copied,
        "sunk_microusd": sum(owned["sunk_microusd"] for owned in document["owned"]),
    }
    yield from cell_findings("wrong-total", "spend", cast("Spend", document["spend"]), cells)
