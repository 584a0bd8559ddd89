"""Rows of a calendar program: limits period by period, reserved nodes against supply, orders, pauses, copies.

Names of rows that state a limit are scenario paths with the period, "hardware.quotas[0]@3". Rows that say what the
columns *mean* begin with "~": nobody can loosen them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.calendar import NO_POOL
from planner.candidates.grid import Grid
from planner.candidates.limits import Coefficient, ColumnFacts, offer_caps, peak_limits
from planner.candidates.offers import Site
from planner.candidates.placement import Copy
from planner.candidates.program import IntArray, Row
from planner.candidates.purchases import Bought
from planner.candidates.slots import Slots, Ways
from planner.carriers import dataclass
from planner.catalog.model import Catalog, Offer
from planner.estimate.market import CAP, is_own_contract
from planner.scenario.hardware_keys import Owned
from planner.scenario.schema import Scenario
from planner.units import format_duration

STRUCTURE = "~"  # how the names of rows begin that are no limits
_OWNED = "hardware.owned["
OF_PURCHASES = ("hardware.quotas", "limits.spend", CAP)  # what is bought for a time counts as well


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit that holds in every period."""

    name: str
    label: str
    bounds: IntArray  # (periods,)
    values: IntArray  # (ways,) that one unit of each way takes at most
    coefficient: Coefficient
    parts: tuple[IntArray, IntArray] | None = None  # (ways,) before jobs change machines, and after; None: none does

    def of(self, ways: IntArray) -> Limit:
        """The limit over some of the ways."""
        parts = None if self.parts is None else (self.parts[0][ways], self.parts[1][ways])
        return replace(self, values=self.values[ways], parts=parts)

    def in_turn(self, period: int, first: IntArray, stop: IntArray) -> IntArray:
        """What ways take in a period.

        Parameters
        ----------
        first, stop
            (ways,) the first period that the second part of each touches, and the first one that its first does not.
        """
        if self.parts is None:
            return self.values
        return np.where(period < first, self.parts[0], np.where(period >= stop, self.parts[1], self.values))


def limits_of(
    scenario: Scenario, facts: Sequence[ColumnFacts], grid: Grid, topping_up: Iterable[Site]
) -> Iterator[Limit]:
    """The limits of a scenario, over ways to run its workloads; offers that top up pools have limits of their own.

    Parameters
    ----------
    scenario
        Its limits, quotas and owned machines; the latter count in periods that they are there for whole.
    facts
        (ways,) what limits ask of each.
    grid
        Periods of the calendar.
    topping_up
        Sites of the offers on demand that pools are topped up with.
    """
    turning = [way for way, fact in enumerate(facts) if fact.phases]
    sites: dict[str, Site] = {fact.site.offer.id: fact.site for fact in facts}
    sites |= {fact.site.offer.id: fact.site for fact in facts if fact.site.whole_devices is None}
    sites |= {part.site.offer.id: part.site for way in turning for part in facts[way].phases}
    number = {name: index for index, name in enumerate(sites)}
    of = np.array([number[fact.site.offer.id] for fact in facts], dtype=np.int64)
    nodes = np.array([fact.nodes for fact in facts], dtype=np.int64)
    for name, label, bound, coefficient in (*peak_limits(scenario), *offer_caps([*sites.values(), *topping_up])):
        each = np.array([coefficient(_one_node(site)) for site in sites.values()], dtype=np.int64)
        bounds = np.full(grid.periods, bound, dtype=np.int64)
        if name.startswith(_OWNED):
            bounds = np.where(_there(scenario.hardware.owned[int(name[len(_OWNED) : -1])], scenario, grid), bounds, 0)
        values = each[of] * nodes
        values[turning] = [facts[way].takes(coefficient) for way in turning]
        parts = (values.copy(), values.copy()) if turning and grid.periods > 1 else None
        for part, taken in enumerate(parts or ()):
            taken[turning] = [coefficient(facts[way].phases[part]) for way in turning]
        yield Limit(name=name, label=label, bounds=bounds, values=values, coefficient=coefficient, parts=parts)


def _one_node(site: Site) -> ColumnFacts:
    return ColumnFacts(task=0, site=site, nodes=1, cost_microusd=0, carbon_mg=0)


def _there(owned: Owned, scenario: Scenario, grid: Grid) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Periods in which owned machines are there from beginning to end."""
    periods = np.arange(grid.periods)
    first = scenario.since_begin_s(owned.from_date) if owned.from_date else None
    last = scenario.since_begin_s(owned.until_date) if owned.until_date else None
    there = np.ones(grid.periods, dtype=bool)
    if first is not None:
        there &= grid.start_s(periods) >= first - 1e-6
    if last is not None:
        there &= grid.start_s(periods + 1) <= last + 1e-6
    return there


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """The columns of the calendar program: those with a start, then those that are bought."""

    ways: Ways
    grid: Grid
    slots: Slots
    bought: Bought
    start: IntArray
    stop: IntArray
    turns: tuple[IntArray, IntArray]  # (columns,) first period of the second part of a job that changes machines, and
    # the first one that its first part does not touch; of all others where they begin
    way: IntArray  # (columns,) that a column, or the plan whose running period it is, goes back to; -1: none
    holds: np.ndarray[tuple[int], np.dtype[np.bool_]]  # columns that take nodes themselves

    @property
    def first_bought(self) -> int:
        return len(self.slots.way)

    def held(self, values: IntArray) -> IntArray:
        """What every column takes while it is held, from what every way takes."""
        return np.where(self.holds, values[self.way], 0)

    def held_in(self, limit: Limit, values: IntArray, columns: IntArray, period: int) -> IntArray:
        """What some columns take of a limit in a period: of jobs that change machines what they hold then."""
        if limit.parts is None:
            return values[columns]
        way = self.way[columns]
        own = self.holds[columns] & (self.ways.turn_s[way] > 0)
        first, stop = (turn[columns] for turn in self.turns)
        return np.where(own, limit.of(way).in_turn(period, first, stop), values[columns])

    def suffix(self, period: int) -> str:
        return f"@{period}" if self.grid.periods > 1 else ""

    def label(self, text: str, period: int) -> str:
        if self.grid.periods == 1:
            return text
        return f"{text}, from {format_duration(float(self.grid.start_s(period)))} on" if period else f"{text}, at first"


def calendar_rows(
    ways: Ways, grid: Grid, limits: Sequence[Limit], slots: Slots, bought: Bought, copies: Sequence[Copy],
    whole: Sequence[Row], cost_microusd: IntArray,
) -> Iterator[Row]:  # fmt: skip
    """All rows of a calendar program.

    Parameters
    ----------
    whole
        Limits on the plan as a whole, over the ways.
    cost_microusd
        (columns,) of the calendar program.
    """
    runs = np.array(bought.slots, dtype=np.int64)
    until = ways.turn_s[slots.way]
    turns = grid.covered(slots.start, until), np.where(until > 0, grid.touched(slots.start, until), slots.start)
    frame = _Frame(
        ways=ways,
        grid=grid,
        slots=slots,
        bought=bought,
        start=np.concatenate([slots.start, bought.start]),
        stop=np.concatenate([slots.stop, bought.stop]),
        turns=(np.concatenate([turns[0], bought.start]), np.concatenate([turns[1], bought.start])),
        way=np.concatenate([slots.way, np.where(runs >= 0, slots.way[runs], -1)]) if len(runs) else slots.way,
        holds=np.concatenate([~slots.elastic, runs >= 0]),
    )
    yield from _whole(frame, whole, cost_microusd)
    for limit in limits:
        yield from _limited(frame, limit)
    yield from _supplied(frame)
    yield from _offered(frame)
    yield from _paused(frame)
    yield from _ordered(frame)
    yield from _copied(frame, copies)


def _row(name: str, label: str, bound: int, dense: IntArray) -> Row:
    columns = np.flatnonzero(dense)
    return Row(name=name, label=label, bound=bound, columns=columns, coefficients=dense[columns])


def _whole(frame: _Frame, whole: Sequence[Row], cost_microusd: IntArray) -> Iterator[Row]:
    more = np.zeros(len(frame.bought.purchases), dtype=np.int64)
    for row in whole:
        dense = np.zeros(frame.ways.program.column_count, dtype=np.int64)
        dense[row.columns] = row.coefficients
        spread = cost_microusd if row.name == "limits.budget" else np.concatenate([dense[frame.slots.way], more])
        found = _row(row.name, row.label, row.bound, spread)
        if len(found.columns):
            yield found


def _limited(frame: _Frame, limit: Limit) -> Iterator[Row]:
    """A limit in every period; periods in which the same columns meet the same bound are told once."""
    values = frame.held(limit.values)
    if limit.name.startswith(OF_PURCHASES):
        values[frame.first_bought :] += _of_purchases(frame, limit.coefficient)
    before: tuple[int, bytes, bytes] | None = None
    touched = np.flatnonzero(values)
    for period in range(frame.grid.periods):
        here = touched[(frame.start[touched] <= period) & (period < frame.stop[touched])]
        taken = frame.held_in(limit, values, here, period)
        here, taken = here[taken != 0], taken[taken != 0]
        same = int(limit.bounds[period]), here.tobytes(), taken.tobytes()
        if not len(here) or same == before:
            continue
        before = same
        yield Row(
            name=limit.name + frame.suffix(period),
            label=frame.label(limit.label, period),
            bound=int(limit.bounds[period]),
            columns=here,
            coefficients=taken,
        )


def _of_purchases(frame: _Frame, coefficient: Coefficient) -> IntArray:
    """What one unit of each contract and each period on demand takes of a limit."""
    catalog, known = frame.ways.catalog, dict[str, int]()
    values = []
    for purchase, pool in zip(frame.bought.purchases, frame.bought.pools):
        offer = purchase.offer
        if offer is None or pool == NO_POOL:
            values.append(0)
            continue
        if offer.id not in known:
            known[offer.id] = coefficient(_one_node(site_of(offer, catalog)))
        values.append(known[offer.id])
    return np.array(values, dtype=np.int64)


def site_of(offer: Offer, catalog: Catalog) -> Site:
    """What is bought, as a site."""
    shape = catalog.shapes[offer.shape]
    return Site(offer=offer, shape=shape, device=catalog.devices[shape.device])


def _supplied(frame: _Frame) -> Iterator[Row]:
    """Nodes used of a pool are at most those contracted and those on demand, in every period."""
    nodes = frame.held(frame.ways.program.nodes)
    bought_pool = frame.bought.pool
    for number, pool in enumerate(frame.ways.pools):
        uses = np.zeros(len(nodes), dtype=np.int64)
        workload_pool = np.append(frame.slots.pool, NO_POOL)
        runs = np.array(frame.bought.slots, dtype=np.int64)
        of = np.concatenate([frame.slots.pool, workload_pool[runs]]) if len(runs) else frame.slots.pool
        uses[of == number] = nodes[of == number]
        uses[frame.first_bought :][bought_pool == number] = -1
        touched = np.flatnonzero(uses)
        for period in range(frame.grid.periods):
            here = touched[(frame.start[touched] <= period) & (period < frame.stop[touched])]
            if (uses[here] > 0).any():
                yield Row(
                    name=f"{STRUCTURE}{pool.name}@{period}",
                    label=frame.label(f"reserved nodes of {pool.name}", period),
                    bound=0,
                    columns=here,
                    coefficients=uses[here],
                )


def _offered(frame: _Frame) -> Iterator[Row]:
    """The most nodes of a contract at one time, however many purchases they come from.

    A block that a catalog lists has a largest size for each block, which bounds its column alone.
    """
    for offer in {pool_offer.id: pool_offer for pool in frame.ways.pools for pool_offer in pool.contracts}.values():
        own = is_own_contract(offer)
        if offer.max_shapes is None or (offer.price_model == "block" and not own):
            continue
        mine = [k for k, one in enumerate(frame.bought.purchases) if one.offer is not None and one.offer.id == offer.id]
        columns = np.array(mine, dtype=np.int64) + frame.first_bought
        name = f"hardware.contracts[{offer.id.split(':')[1]}].max_shapes" if own else f"{STRUCTURE}{offer.id}"
        for period in range(frame.grid.periods):
            here = columns[(frame.start[columns] <= period) & (period < frame.stop[columns])]
            alone = 0 if frame.ways.movable else 1  # one column has its bound, unless limits are to be moved
            if len(here) > alone:
                yield Row(
                    name=name + frame.suffix(period),
                    label=frame.label(f"at most {offer.max_shapes} shapes of {offer.id}", period),
                    bound=offer.max_shapes,
                    columns=here,
                    coefficients=np.ones_like(here),
                )


def _paused(frame: _Frame) -> Iterator[Row]:
    """A run with pauses is in as many periods as it takes, in none when it is not chosen."""
    runs = np.array(frame.bought.slots, dtype=np.int64)
    counts = {column: task.count for task in frame.slots.tasks for column in range(task.first, task.stop)}
    for slot in np.flatnonzero(frame.slots.elastic).tolist():
        mine = np.flatnonzero(runs == slot) + frame.first_bought
        span, ones = int(frame.slots.span[slot]), np.ones(len(mine), dtype=np.int64)
        columns = np.append([slot], mine)
        name = f"{STRUCTURE}runs@{slot}"
        yield Row(name=name, label="runs long enough", bound=0, columns=columns, coefficients=np.append([span], -ones))
        yield Row(name=name, label="runs no longer", bound=0, columns=columns, coefficients=np.append([-span], ones))
        for run in mine.tolist() if counts[slot] > 1 else ():
            pair = np.array([slot, run])
            yield Row(name=name, label="runs at most once", bound=0, columns=pair, coefficients=np.array([-1, 1]))


def _ordered(frame: _Frame) -> Iterator[Row]:
    """While a job is not done, what comes after it does not run."""
    spans = {task.name: range(task.first, task.stop) for task in frame.slots.tasks}
    for index, job in enumerate(frame.ways.scenario.training):
        for name in job.after or ():
            after, before = spans[job.name], spans[name]
            yield from _order(frame, f"training[{index}].after", f"{job.name} after {name}", before, after)


def _order(frame: _Frame, name: str, label: str, before: range, after: range) -> Iterator[Row]:
    first, second = _Running.of(frame, before), _Running.of(frame, after)
    own = frame.slots.elastic[before.start : before.stop]
    most = int(frame.slots.span[before.start : before.stop][own].max(initial=1))
    for period in range(frame.grid.periods):
        # a run without pauses is not done before its end; one with pauses while it has periods to run
        open_ = first.columns[frame.stop[first.columns] > period]
        # what started by now, or runs now
        start = frame.start[second.columns]
        begun = second.columns[np.where(second.running, start == period, start <= period)]
        if not len(open_) or not len(begun):
            continue
        coefficients = np.append(np.ones(len(open_), dtype=np.int64), np.full(len(begun), most))
        yield Row(name=name + frame.suffix(period), label=label, bound=most, columns=np.append(open_, begun),
                  coefficients=coefficients)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Running:
    """Columns that say when a job runs: its starts, and its running periods where it pauses."""

    columns: IntArray
    running: NDArray[np.bool_]  # which of them are periods

    @classmethod
    def of(cls, frame: _Frame, columns: range) -> _Running:
        own = np.arange(columns.start, columns.stop)
        starts = own[~frame.slots.elastic[own]]
        runs = np.flatnonzero(np.isin(frame.bought.slots, own)) + frame.first_bought
        return cls(np.append(starts, runs), np.repeat([False, True], [len(starts), len(runs)]))


def _copied(frame: _Frame, copies: Sequence[Copy]) -> Iterator[Row]:
    """Who runs where the data do not lie needs a copy; one row for each reader keeps the relaxation tight."""
    for index, copy in enumerate(copies):
        bought = [column + frame.first_bought for column, which in enumerate(frame.bought.copies) if which == index]
        for task in frame.slots.tasks:
            own = np.arange(task.first, task.stop)
            mine = own[np.isin(frame.slots.way[own], copy.columns)]
            if len(mine):
                ones = np.ones(len(mine), dtype=np.int64)
                yield Row(
                    name=f"{STRUCTURE}copy:{copy.wanted.name}:{'/'.join(copy.place)}",
                    label=f"{copy.wanted.name} at {'/'.join(copy.place)}",
                    bound=0,
                    columns=np.append(mine, bought),
                    coefficients=np.append(ones, np.full(len(bought), -task.count)),
                )
