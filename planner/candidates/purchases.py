"""What is bought ahead, as optional columns: contracts, whole periods on demand, copies of data, running periods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np

from planner.candidates.calendar import CONTRACT, COPY, NO_POOL, ON_DEMAND, RUN, Pool, Purchase
from planner.candidates.contracts import Supply, most_of, supplies_of
from planner.candidates.grid import Grid
from planner.candidates.limits import ColumnFacts
from planner.candidates.money import cost_microusd
from planner.candidates.placement import Copy
from planner.candidates.program import FloatArray, IntArray, Program, Task
from planner.candidates.slots import Slots
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.scenario.schema import Scenario

BOUGHT, COPIES, RUNS = "~bought", "~copies", "~runs:"  # names of their tasks; no workload's name begins so
LAST = 0.1  # of the way to the last period of a calendar: by how much more a running period there puts off its job


@dataclass(slots=True)
class Bought:
    """Purchases as they are collected: parallel lists, then arrays."""

    purchases: list[Purchase] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)
    pools: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)  # units
    slots: list[int] = field(default_factory=list)  # run: column of the plan that runs; else -1
    copies: list[int] = field(default_factory=list)  # copy: which one; else -1
    delays: list[int] = field(default_factory=list)  # run: by how much it puts off the job; else 0  [ms]
    ends: list[float] = field(default_factory=list)  # run: of its period; else 0  [s]
    names: list[str] = field(default_factory=list)  # rank among offers: the last tie-breaker
    providers: list[str] = field(default_factory=list)
    segments: list[tuple[str, int]] = field(default_factory=list)  # name of each task and where it ends

    def add(
        self, purchase: Purchase, start: int, stop: int, *, name: str, provider: str, most: int, pool: int = NO_POOL,
        slot: int = -1, copy: int = -1, delay_ms: int = 0, finish_s: float = 0.0,
    ) -> None:  # fmt: skip
        """One more optional column.

        Parameters
        ----------
        purchase
            What one unit of it is.
        start, stop
            First period that it is for, and the first after it.
        name
            Its rank among offers follows from it: the last tie-breaker.
        provider
            Whom it is bought from.
        most
            Units that may be bought.
        pool
            Whose nodes it supplies; `NO_POOL` = none.
        slot
            Of a running period: column of the plan that runs; -1 = it is none.
        copy
            Of a copy of data: which one; -1 = it is none.
        delay_ms
            Of a running period: by how much it puts off the mean of those that the job runs in.
        finish_s
            Of a running period: its end; the job is done with the last one.
        """
        self.purchases.append(purchase)
        self.starts.append(start)
        self.stops.append(stop)
        self.pools.append(pool)
        self.most.append(most)
        self.slots.append(slot)
        self.copies.append(copy)
        self.delays.append(delay_ms)
        self.ends.append(finish_s)
        self.names.append(name)
        self.providers.append(provider)

    def close(self, name: str) -> None:
        """What was added since the last one is a task."""
        before = self.segments[-1][1] if self.segments else 0
        if len(self.purchases) > before:
            self.segments.append((name, len(self.purchases)))

    def tasks(self, offset: int) -> Iterator[Task]:
        """The optional tasks, whose columns begin at an offset."""
        first = 0
        for name, stop in self.segments:
            yield Task(name=name, kind="optional", first=offset + first, stop=offset + stop)
            first = stop

    @property
    def start(self) -> IntArray:
        """First period of each."""
        return np.array(self.starts, dtype=np.int64)

    @property
    def stop(self) -> IntArray:
        """First period after each."""
        return np.array(self.stops, dtype=np.int64)

    @property
    def pool(self) -> IntArray:
        """Pool that each supplies."""
        return np.array(self.pools, dtype=np.int64)

    @property
    def finish_s(self) -> FloatArray:
        """When a job that runs in each is done at the earliest.  [s]"""
        return np.array(self.ends, dtype=np.float64)

    @property
    def delay_ms(self) -> IntArray:
        """By how much each puts off its job.  [ms]"""
        return np.array(self.delays, dtype=np.int64)

    @property
    def max_units(self) -> IntArray:
        """Most units of each."""
        return np.array(self.most, dtype=np.int64)

    @property
    def cost_microusd(self) -> IntArray:
        """What each unit adds to the plan's cost."""
        return np.array([purchase.cost_microusd for purchase in self.purchases], dtype=np.int64)


def bought_of(
    scenario: Scenario,
    catalog: Catalog,
    grid: Grid,
    pools: tuple[Pool, ...],
    slots: Slots,
    copies: Sequence[Copy],
    ways: Program,
    facts: Sequence[ColumnFacts],
) -> Bought:
    """Everything that may be bought for the columns of a calendar.

    Parameters
    ----------
    scenario
        Its limits cap what may be bought, and it says what counts of contracts beyond the horizon.
    catalog
        Shapes and devices of the offers.
    grid
        Periods of the calendar.
    pools
        What may be reserved; one that no column uses is left out.
    slots
        Columns of the workloads, each with a start.
    copies
        Copies of data that columns need.
    ways
        The columns before they had starts, to which `slots.way` refers.
    facts
        What limits ask of each of `ways`.
    """
    bought = Bought()
    for number, pool in enumerate(pools):
        need = _most_nodes(number, slots, ways)
        if need:
            _reserve(bought, scenario, catalog, grid, number, pool, need)
    bought.close(BOUGHT)
    for index, copy in enumerate(copies):
        provider, region = copy.place
        purchase = Purchase(kind=COPY, workload=copy.wanted.name, provider=provider, region=region,
                            cost_microusd=copy.cost_microusd, fee_microusd=copy.cost_microusd)  # fmt: skip
        name = f"copy:{copy.wanted.name}:{provider}/{region}"
        bought.add(purchase, 0, grid.periods, name=name, provider=provider, most=1, copy=index)
    bought.close(COPIES)
    latest_s = {job.name: job.start_s + job.deadline_s for job in scenario.training}
    for task, whole in zip(slots.tasks, ways.tasks):
        for slot in range(task.first, task.stop):
            if slots.elastic[slot]:
                row = int(slots.way[slot]) - whole.first
                _runs(bought, grid, slots, slot, task, row, facts, latest_s[task.name])
        bought.close(RUNS + task.name)
    return bought


def _most_nodes(number: int, slots: Slots, ways: Program) -> int:
    """Nodes of a pool that all workloads together can use at one time."""
    total = 0
    for task in slots.tasks:
        mine = np.flatnonzero(slots.pool[task.first : task.stop] == number) + task.first
        if len(mine):
            nodes = ways.nodes[slots.way[mine]]
            units = ways.max_units[slots.way[mine]]
            total += int(nodes.max()) * task.count if task.kind == "training" else int((nodes * units).sum())
    return total


def _reserve(
    bought: Bought, scenario: Scenario, catalog: Catalog, grid: Grid, number: int, pool: Pool, need: int
) -> None:
    """Contracts of a pool at every start, and its nodes on demand in every period."""
    for supply in supplies_of(number, pool, grid, prorate=scenario.hardware.beyond_horizon == "prorate"):
        offer = supply.offer
        most = min(need, most_of(offer, scenario, catalog), offer.max_shapes or need)
        if most:
            bought.add(_contract(supply), supply.start, supply.stop, name=offer.id, provider=offer.provider, most=most,
                       pool=number)  # fmt: skip
    steady = pool.on_demand
    most = min(need, most_of(steady, scenario, catalog)) if steady else 0
    for period in range(grid.periods if most else 0):
        assert steady is not None
        hours = grid.hours(period, period + 1)
        cost = cost_microusd(1, steady.price_microusd_per_hour, hours)
        purchase = Purchase(kind=ON_DEMAND, offer=steady, hours=hours, fee_microusd=cost, cost_microusd=cost)
        bought.add(purchase, period, period + 1, name=steady.id, provider=steady.provider, most=most, pool=number)


def _contract(supply: Supply) -> Purchase:
    return Purchase(
        kind=CONTRACT,
        offer=supply.offer,
        hours=supply.hours,
        fee_microusd=supply.fee_microusd,
        cost_microusd=supply.cost_microusd,
        prorated=supply.cost_microusd < supply.fee_microusd,
    )


def _runs(
    bought: Bought, grid: Grid, slots: Slots, slot: int, task: Task, row: int, facts: Sequence[ColumnFacts],
    latest_s: float,
) -> None:  # fmt: skip
    """The periods in which a plan of an elastic job may run; `row` is that of the plan in the job's table.

    A later period puts the job off by more than its distance, a little: the last one is when the job ends.
    """
    offer = facts[int(slots.way[slot])].site.offer
    first, span = int(slots.start[slot]), int(slots.span[slot])
    for period in range(first, int(slots.stop[slot])):
        hours = grid.hours(period, period + 1)
        purchase = Purchase(kind=RUN, offer=offer, workload=task.name, row=row, hours=hours)
        later = (period - first) * (1 + LAST * (period - first) / grid.periods)
        bought.add(purchase, period, period + 1, name=offer.id, provider=offer.provider, most=task.count, slot=slot,
                   delay_ms=round(1e3 * grid.period_s * later / span),
                   finish_s=grid.run_ends_s(period, latest_s))  # fmt: skip
