"""The calendar of a plan as it stands in the document: when rows run, what is bought ahead, how full each pool is.

Dates and windows are from the scenario alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.candidates.calendar import CONTRACT, COPY, NO_POOL, ON_DEMAND, RESERVED, RUN, Calendar, Purchase
from planner.candidates.grid import Grid, grid_of
from planner.candidates.holding import wait_s
from planner.candidates.money import cost_microusd
from planner.candidates.offers import Site
from planner.candidates.placement import egress_usd
from planner.candidates.program import Task
from planner.candidates.search import Candidates
from planner.candidates.shared_nodes import NODES
from planner.candidates.training import TrainingTable
from planner.candidates.training_choice import busy_s
from planner.candidates.training_question import TrainingQuestion
from planner.carriers import dataclass
from planner.optimize.solve import Solution
from planner.plan.rows.pools import PoolUse, contract_figures, on_demand_price, share_rows, stands_of
from planner.plan.rows.row_cells import usd
from planner.scenario.hardware_keys import Owned
from planner.scenario.schema import Scenario, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model import bought as told
    from planner.plan.model import rows
    from planner.plan.model.plan import Allocation, Workload


_SHORT_S = 1e-6  # a window that misses the edge of a period by so little reaches it


def date_after(scenario: Scenario, hours: float) -> str | None:
    """The date some hours after the plan's begin, to the minute; None when the plan has no date."""
    if scenario.begin is None:
        return None
    moment = datetime.fromisoformat(scenario.begin) + timedelta(hours=hours)
    return moment.isoformat(sep=" ", timespec="minutes").removesuffix(" 00:00")


def owned_window_s(scenario: Scenario, owned: Owned) -> tuple[float, float]:
    """When owned hardware is there, within the horizon; begin = end when it is not.  [s] after the begin"""
    first = scenario.since_begin_s(owned.from_date) if owned.from_date else None
    last = scenario.since_begin_s(owned.until_date) if owned.until_date else None
    begin = min(max(first or 0.0, 0.0), scenario.horizon_s)
    end = scenario.horizon_s if last is None else min(max(last, 0.0), scenario.horizon_s)
    return begin, max(begin, end)


def owned_periods(scenario: Scenario, owned: Owned, edges_s: Sequence[float]) -> list[bool]:
    """Periods that owned hardware is there for throughout.

    Parameters
    ----------
    scenario
        Its begin, from which dates are counted, and its horizon.
    owned
        Some hardware of it, with the dates from and until which it is there.
    edges_s
        (periods + 1,) where periods begin and end, after the begin.  [s]
    """
    begin, end = owned_window_s(scenario, owned)
    return [begin <= first + _SHORT_S and last <= end + _SHORT_S for first, last in pairwise(edges_s)]


def calendar_of(candidates: Candidates) -> Calendar | None:
    """The calendar of a program; None where everything runs at once."""
    return candidates.calendar


class Timing(NamedTuple):
    """When one row of the plan runs and what its units cost, the running periods of a job that pauses included."""

    cells: rows.Timing
    cost_microusd: int


def timing_of(
    candidates: Candidates, solution: Solution, task: Task, column: int, site: Site, start_s: float, hours: float
) -> Timing:
    """Cells of a row that say when it runs and who pays.

    Parameters
    ----------
    start_s
        Where its workload may start; with a calendar the column knows better.  [s]
    hours
        How long one unit of it runs.  [h]
    """
    calendar, start = candidates.calendar, start_s / 3600.0
    cost = int(candidates.program.cost_microusd[column]) * int(solution.units[column])
    cells: rows.Timing = {
        "start_hours": start,
        "end_hours": start + hours,
        "funding": site.offer.price_model,
        "reserved_pool": None,
        "runs": None,
    }
    if calendar is None:
        return Timing(cells, cost)
    if calendar.pool[column] != NO_POOL:
        cells |= {"funding": RESERVED, "reserved_pool": calendar.pools[int(calendar.pool[column])].name}
    if not calendar.pausable[column]:
        first = float(calendar.edges_s()[calendar.start[column]]) / 3600.0 + wait_s(site, candidates.scenario) / 3600.0
        return Timing({**cells, "start_hours": first, "end_hours": first + hours}, cost)
    taken = list(_running(candidates, solution, task.name, int(candidates.rows[column])))
    job = next(one for one in candidates.scenario.training if one.name == task.name)
    grid, latest_s = grid_of(candidates.scenario), job.start_s + job.deadline_s
    runs = [_run(grid, int(calendar.start[run]), int(solution.units[run]), latest_s) for run in taken]
    start, end = runs[0]["start_hours"], runs[-1]["end_hours"]
    return Timing({**cells, "start_hours": start, "end_hours": end, "runs": runs}, cost)


def held_hours(candidates: Candidates, task: Task, column: int, site: Site, hours: float) -> float:
    """How long a job is planned to hold its machines: its run at the confidence asked for.  [h]

    Parameters
    ----------
    candidates
        The ways that the plan is made of.
    task
        A job.
    column
        Of it, in the program of the candidates.
    site
        Where the column stands.
    hours
        How long one job is predicted to run there.  [h]
    """
    question, table = candidates.questions[task.name], candidates.tables[task.name]
    assert isinstance(question, TrainingQuestion)
    assert isinstance(table, TrainingTable)
    row, share = [int(candidates.rows[column])], question.spec.confidence
    chance = question.preemption_margin(site, np.asarray(busy_s(table.time))[row], table.nodes[row], share)
    (margin,) = question.time_margins(site, share, table.nodes[row], table.layout, np.array(row))
    return hours * float(margin) * float(chance[0])


def _running(candidates: Candidates, solution: Solution, name: str, row: int) -> Iterator[int]:
    """Columns of the running periods of a job that pauses, first period first."""
    calendar = candidates.calendar
    assert calendar is not None
    found = [c for c in _taken(calendar, solution, RUN) if _of(calendar, c).workload == name]
    mine = [c for c in found if _of(calendar, c).row == row]
    yield from sorted(mine, key=lambda column: int(calendar.start[column]))


def _run(grid: Grid, period: int, jobs: int, latest_s: float) -> rows.Run:
    """A period in which jobs run."""
    begin_s, end_s = float(grid.start_s(period)), grid.run_ends_s(period, latest_s)
    return {"start_hours": begin_s / 3600.0, "end_hours": end_s / 3600.0, "jobs": jobs}


def _taken(calendar: Calendar, solution: Solution, kind: str) -> list[int]:
    """Optional columns of a kind that were taken."""
    bought = enumerate(calendar.purchases)
    return [column for column, one in bought if one is not None and one.kind == kind and solution.units[column] > 0]


def _of(calendar: Calendar, column: int) -> Purchase:
    found = calendar.purchases[column]
    assert found is not None
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """What a solution buys, pool by pool and period by period."""

    candidates: Candidates
    calendar: Calendar
    solution: Solution

    def uses(self) -> list[PoolUse]:
        """Nodes of every pool that is bought or used, and of what is owned, in the order of the pools."""
        calendar = self.calendar
        pools = sorted((self._pool(index) for index in range(len(calendar.pools))), key=lambda use: use.pool)
        owned = [self._owned(index) for index in range(len(self.candidates.scenario.hardware.owned))]
        return [use for use in (*pools, *owned) if any(use.used) or any(use.on_demand) or any(use.reserved)]

    def _pool(self, index: int) -> PoolUse:
        pool = self.calendar.pools[index]
        place: told.PoolPlace = {
            "provider": pool.provider,
            "region": pool.region,
            "zone": pool.zone,
            "shape": pool.shape,
        }
        mine = self.calendar.pool == index
        used = self._with_shared(self._held(mine), mine)
        return PoolUse(
            pool=pool.name,
            kind=RESERVED,
            place=place,
            edges_s=self.calendar.edges_s().tolist(),
            reserved=self._supplied(CONTRACT, index),
            on_demand=self._supplied(ON_DEMAND, index),
            used=used,
            on_demand_microusd_per_hour=on_demand_price(self.candidates.catalog, place),
        )

    def _owned(self, index: int) -> PoolUse:
        scenario, owned = self.candidates.scenario, self.candidates.scenario.hardware.owned[index]
        edges, sites = self.calendar.edges_s().tolist(), self._sites()
        mine = np.array([site is not None and site.owned == index for site in sites], dtype=np.bool_)
        shared = self.candidates.shared
        of_nodes = [shared is not None and (node := shared.node_at(k)) is not None and node.owned == index
                    for k in range(len(mine))]  # fmt: skip
        used = self._with_shared(self._held(mine), np.array(of_nodes, dtype=np.bool_))
        there = [owned.count if present else 0 for present in owned_periods(scenario, owned, edges)]
        region = owned.region or "owned"
        return PoolUse(
            pool=f"owned/{region}/{owned.shape.rsplit('/', 1)[-1]}",
            kind="owned",
            place={"provider": "owned", "region": region, "zone": "", "shape": owned.shape},
            edges_s=edges,
            reserved=there,
            on_demand=[0] * len(there),
            used=used,
            on_demand_microusd_per_hour=None,
        )

    def _sites(self) -> list[Site | None]:
        """Where each column stands; None for what is bought."""
        found: list[Site | None] = [None] * self.candidates.program.column_count
        for task, column in self._columns():
            found[column] = self.candidates.tables[task.name].sites[int(self.candidates.rows[column])]
        return found

    def _columns(self) -> Iterator[tuple[Task, int]]:
        """Columns of workloads that were taken."""
        for task in self.candidates.program.tasks:
            if task.kind != "optional":
                yield from ((task, c) for c in range(task.first, task.stop) if self.solution.units[c] > 0)

    def _supplied(self, kind: str, pool: int) -> list[int]:
        calendar, supplied = self.calendar, np.zeros(self.calendar.periods, dtype=np.int64)
        for column in _taken(calendar, self.solution, kind):
            if calendar.pool[column] == pool:
                supplied[calendar.start[column] : calendar.stop[column]] += int(self.solution.units[column])
        return [int(nodes) for nodes in supplied]

    def _held(self, mine: NDArray[np.bool_]) -> list[int]:
        """Nodes that the masked columns of workloads hold in each period."""
        held = [self.held_by(task, column) for task, column in self._columns() if mine[column]]
        return [sum(counts) for counts in zip(*held)] if held else [0] * self.calendar.periods

    def _with_shared(self, held: list[int], mine: NDArray[np.bool_]) -> list[int]:
        """Nodes in each period, with the masked ones that fleets share, which are held all the time."""
        nodes = self._shared_nodes() & mine
        return [count + int(self.solution.units[nodes].sum()) for count in held]

    def _shared_nodes(self) -> NDArray[np.bool_]:
        """Columns that are nodes which fleets share."""
        found = np.zeros(self.candidates.program.column_count, dtype=np.bool_)
        for task in self.candidates.program.tasks:
            found[task.first : task.stop] = task.name == NODES
        return found

    def held_by(self, task: Task, column: int) -> list[int]:
        """Nodes that a column holds in each period; of a job that pauses in its running periods."""
        calendar, held = self.calendar, np.zeros(self.calendar.periods, dtype=np.int64)
        row = int(self.candidates.rows[column])
        nodes = int(self.candidates.program.nodes[column])  # none of a share: the nodes that it stands on are held
        paused = bool(calendar.pausable[column])
        for one in _running(self.candidates, self.solution, task.name, row) if paused else (column,):
            held[calendar.start[one] : calendar.stop[one]] += nodes * int(self.solution.units[one])
        return [int(count) for count in held]

    def users(self, pool: str) -> dict[str, list[Fraction]]:
        """Nodes of a reserved pool that each workload holds in each period; of those that it shares, by its devices."""
        found: dict[str, list[Fraction]] = {}
        stands = stands_of(self.candidates, self.solution)
        for task, column in self._columns():
            index = int(self.calendar.pool[column])
            if index != NO_POOL and self.calendar.pools[index].name == pool:
                before = found.get(task.name, [Fraction(0)] * self.calendar.periods)
                more = stands[column].shapes if column in stands else Fraction(0)
                found[task.name] = [was + held + more for was, held in zip(before, self.held_by(task, column))]
        return found

    def contracts(self, uses: Sequence[PoolUse]) -> list[told.Contract]:
        """What is bought: contracts, then nodes on demand by runs of equal periods; in the order of the pools."""
        by_pool = {use.pool: use for use in uses}
        rows = [self._contract(column, by_pool) for column in _taken(self.calendar, self.solution, CONTRACT)]
        rows += [row for index in range(len(self.calendar.pools)) for row in self._top_ups(index, by_pool)]
        return sorted(rows, key=lambda row: (row["pool"], row["kind"] == ON_DEMAND, row["start_hours"], row["offer"]))

    def _contract(self, column: int, uses: Mapping[str, PoolUse]) -> told.Contract:
        calendar, bought = self.calendar, _of(self.calendar, column)
        pool = calendar.pools[int(calendar.pool[column])]
        count, span = int(self.solution.units[column]), (int(calendar.start[column]), int(calendar.stop[column]))
        assert bought.offer is not None
        begin = float(calendar.edges_s()[span[0]]) / 3600.0
        within = min(bought.hours, calendar.horizon_s / 3600.0 - begin)
        price = bought.offer.price_microusd_per_hour
        money: told.ContractMoney = {
            "fee_microusd": bought.fee_microusd,
            "prorated": bought.prorated,
            "full_microusd": count * bought.fee_microusd,
            "prorated_microusd": count * cost_microusd(1, price, within),
            "cost_microusd": count * bought.cost_microusd,
        }
        return self._row(uses[pool.name], bought, count, span, begin, begin + within, money)

    def _top_ups(self, pool: int, uses: Mapping[str, PoolUse]) -> Iterator[told.Contract]:
        """Nodes on demand for whole periods: one row a run of periods with equally many."""
        calendar = self.calendar
        mine = [c for c in _taken(calendar, self.solution, ON_DEMAND) if calendar.pool[c] == pool]
        runs: list[list[int]] = []
        for column in sorted(mine, key=lambda c: int(calendar.start[c])):
            last = runs[-1][-1] if runs else None
            joins = last is not None and calendar.stop[last] == calendar.start[column]
            if joins and last is not None and self.solution.units[last] == self.solution.units[column]:
                runs[-1].append(column)
            else:
                runs.append([column])
        for run in runs:
            bought, count = _of(calendar, run[0]), int(self.solution.units[run[0]])
            span = (int(calendar.start[run[0]]), int(calendar.stop[run[-1]]))
            fee = sum(_of(calendar, column).cost_microusd for column in run)
            begin, end = (float(calendar.edges_s()[edge]) / 3600.0 for edge in span)
            money: told.ContractMoney = {
                "fee_microusd": fee,
                "prorated": False,
                "full_microusd": count * fee,
                "prorated_microusd": count * fee,
                "cost_microusd": count * fee,
            }
            yield self._row(uses[calendar.pools[pool].name], bought, count, span, begin, end, money)

    def _row(
        self,
        use: PoolUse,
        bought: Purchase,
        count: int,
        span: tuple[int, int],
        begin: float,
        end: float,
        money: told.ContractMoney,
    ) -> told.Contract:
        scenario, offer = self.candidates.scenario, bought.offer
        assert offer is not None
        kind = ON_DEMAND if bought.kind == ON_DEMAND else offer.price_model
        return {
            "kind": kind,
            "offer": offer.id,
            "pool": use.pool,
            **use.place,
            "device": self.candidates.catalog.shapes[offer.shape].device,
            "count": count,
            "devices": count * self.candidates.catalog.shapes[offer.shape].devices,
            "first_period": span[0],
            "end_period": span[1],
            "start_hours": begin,
            "end_hours": end,
            "start_date": date_after(scenario, begin),
            "end_date": date_after(scenario, end),
            "term_hours": end - begin if kind == ON_DEMAND else bought.hours,
            "price_microusd_per_hour": offer.price_microusd_per_hour,
            "price_as_of": offer.provenance.as_of,
            "price_status": offer.provenance.status,
            "price_source": offer.provenance.source,
            **money,
            "cost_usd": usd(money["cost_microusd"]),
            **contract_figures(use, kind, count, span, money["cost_microusd"]),
        }


def calendar_document(candidates: Candidates, solution: Solution, workloads: Sequence[Workload]) -> told.Bought:
    """The top-level cells of a plan that say what is bought ahead and when everything runs.

    Parameters
    ----------
    candidates
        The ways that the plan is made of.
    solution
        Units of each column of their program; without a plan nothing is bought, and owned hardware alone is told of.
    workloads
        As they stand in the plan: their rows say when each runs and what it costs.
    """
    calendar, sunk = candidates.calendar, sunk_rows(candidates)
    if calendar is None or not solution.has_plan:
        nothing: told.BoughtParts = {"contracts": [], "copies": [], "schedule": None, "owned": sunk}
        return {**nothing, "spend": spend_document(workloads, nothing) if solution.has_plan else None}
    bought = Bought(candidates=candidates, calendar=calendar, solution=solution)
    uses = bought.uses()
    jobs = [_job(candidates, workload, row) for workload in workloads for row in workload["allocations"]]
    contracts = bought.contracts(uses)
    found: told.BoughtParts = {
        "contracts": contracts,
        "copies": list(copies_of(candidates, calendar, solution)),
        "schedule": {
            "begin": candidates.scenario.begin,
            "period_hours": calendar.period_s / 3600.0,
            "periods": calendar.periods,
            "jobs": jobs,
            "use": [use.document() for use in uses],
            "shares": [row for use in uses for row in share_rows(use, bought.users(use.pool), contracts)],
        },
        "owned": sunk,
    }
    return {**found, "spend": spend_document(workloads, found)}


def spend_document(workloads: Sequence[Workload], found: told.BoughtParts) -> told.Spend:
    """The total by what it depends on: contracts are paid whether used or not, the rest by use."""
    ran = sum(row["cost_microusd"] for workload in workloads for row in workload["allocations"])
    bought = dict.fromkeys((False, True), 0)
    for contract in found["contracts"]:
        bought[contract["kind"] == ON_DEMAND] += contract["cost_microusd"]
    copied = sum(copy["cost_microusd"] for copy in found["copies"])
    return {
        "workloads_microusd": ran,
        "topped_up_microusd": bought[True],
        "copies_microusd": copied,
        "committed_microusd": bought[False],
        "variable_microusd": ran + bought[True] + copied,
        "sunk_microusd": sum(owned["sunk_microusd"] for owned in found["owned"]),
    }


def _job(candidates: Candidates, workload: Workload, row: Allocation) -> told.ScheduledJob:
    """When one row runs, of the time that it has."""
    scenario, start, end = candidates.scenario, row["start_hours"], row["end_hours"]
    jobs, deadline, late = 1, None, 0.0
    if "jobs" in row:  # of a training job
        jobs, deadline = row["jobs"], row["deadline_hours"]
        late = row["held_hours"] - row["hours"] if row["runs"] is None else 0.0
    whole: list[rows.Run] = [{"start_hours": start, "end_hours": end, "jobs": jobs}]
    return {
        "workload": workload["name"],
        "place": " ".join(dict.fromkeys([row["device"], row["provider"], row["zone"] or row["region"]])),
        "jobs": jobs,
        "release_hours": workload["demand"]["start_hours"] if workload["kind"] == "training" else 0.0,
        "start_hours": start,
        "finish_hours": end,
        "deadline_hours": deadline,
        "slack_hours": None if deadline is None else deadline - end - late,
        "start_date": date_after(scenario, start),
        "finish_date": date_after(scenario, end),
        "runs": row["runs"] or whole,
    }


def copies_of(candidates: Candidates, calendar: Calendar, solution: Solution) -> Iterator[told.Copy]:
    """Data sets that are copied to where they are trained on; money is the column's, split by what it is for.

    Parameters
    ----------
    candidates
        The ways that the plan is made of: jobs with data, and the fees for moving them.
    calendar
        Of their program.
    solution
        Units of each column of it.
    """
    readers: dict[str, list[TrainingJob]] = {}
    for job in candidates.scenario.training:
        if job.data is not None:
            readers.setdefault(job.data.name or f"{job.name}:data", []).append(job)
    for column in _taken(calendar, solution, COPY):
        bought = _of(calendar, column)
        jobs = readers[bought.workload]
        data, cost = jobs[0].data, int(candidates.program.cost_microusd[column]) * int(solution.units[column])
        assert data is not None
        moved = egress_usd(data, (bought.provider, bought.region), candidates.catalog)
        egress = min(_microusd(moved or 0.0), cost)
        first = min(job.start_s for job in jobs)
        yield {
            "data": bought.workload,
            "provider": bought.provider,
            "region": bought.region,
            "from": data.at,
            "size_bytes": data.size_bytes,
            "kept_hours": (max(job.start_s + job.deadline_s for job in jobs) - first) / 3600.0,
            "egress_microusd": egress,
            "storage_microusd": cost - egress,
            "cost_microusd": cost,
            "cost_usd": usd(cost),
        }


def _microusd(dollars: float) -> int:
    return int((Decimal(repr(dollars)) * 10**6).to_integral_value(ROUND_HALF_EVEN))


def sunk_rows(candidates: Candidates) -> list[told.Owned]:
    """What owned hardware costs whether it runs or not, over the part of the horizon that it is there."""
    scenario = candidates.scenario
    found: list[told.Owned] = []
    for owned in scenario.hardware.owned:
        if owned.sunk_microusd_per_hour is not None:
            begin, end = owned_window_s(scenario, owned)
            sunk = cost_microusd(owned.count, owned.sunk_microusd_per_hour, (end - begin) / 3600.0)
            found.append({"shape": owned.shape, "region": owned.region or "owned", "count": owned.count,
                          "hours": (end - begin) / 3600.0, "sunk_microusd": sunk, "sunk_usd": usd(sunk)})  # fmt: skip
    return found
