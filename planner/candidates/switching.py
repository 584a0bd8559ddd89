"""A job that begins on spot machines and ends on demand: when it changes over, and where that pays.

Spot is cheaper by the hour and not there for long enough: a quota gives too few shapes of it to be done in time, or
what is taken away makes the run late. So a job may hold n1 shapes of a spot offer until a fixed hour, save, and go on
from that checkpoint on n2 shapes of the same kind in the same place on demand, each count in its own fastest layout,
whose batches differ by no more than a batch that was asked for may move (`BATCH_TOLERANCE`). The hour is one of a grid
(`switch_hours`), that of the least cost: cost counts predicted times, as everywhere, and the deadline holds at the
confidence asked for, with what spot surely gets done before the hour (EQ-REL-14) and the rest at its own margin.

**Which are listed.** Rates of work are constant, so that the end of a run that switches lies between those of its two
parts alone, but for the switch: one of them must be on time by itself. Spot that is on time by itself is cheaper than
any switch from it, and a switch back costs a second checkpoint and gains nothing, since no hour is worth more than
another where prices and quotas have no dates. What is left is spot that is late and on-demand shapes that are in
time. Of these a pair is listed when it costs less than its on-demand offer alone (of a job that shares no limit, than
any other way), when the on-demand shapes can be had (a stock as of `hardware/capacity.csv`, unless a quota grants
them), and when no pair of the same two offers with as few shapes of both costs less; its own bound is that
of rentals that are billed for just the time they are held.

Every hour of the grid is tried for each pair, in one pass of arrays; physics that offers share is worked out once.
In a calendar of several periods the cheapest hour of each choice of periods that the parts touch is listed, and pairs
are held against each other only when they have starts; of a job that may run in many periods the cheapest hour alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.candidates.layouts import BATCH_TOLERANCE
from planner.candidates.money import rental_microusd
from planner.candidates.offers import Site, quota_matches
from planner.candidates.program import tolerance_microusd
from planner.candidates.ties import plain_training
from planner.candidates.training_choice import busy_s
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import Switch, TrainingTable
from planner.carriers import dataclass
from planner.equations.machine_costs import billed_s
from planner.equations.preemption import switched_rest_s
from planner.estimate.layout import Layout
from planner.estimate.run import checkpoint_bytes_of, mean_within_s, switch_s
from planner.estimate.terms import Terms
from planner.scenario.periods import SHORT

Hours = NDArray[np.float64]
MOST_HOURS = 1024  # of the grid
MOST_PERIODS = 6  # that a job may run in, of which each choice for its parts is listed
ROUNDED_MICROUSD = 2  # by which costs may change when they are rounded exactly


def switch_hours(deadline_s: float) -> Hours:
    """Hours after its start at which a job may switch: each, or of longer deadlines every second, fourth, ...

    >>> switch_hours(3.5 * 3600.0).tolist(), switch_hours(2000 * 3600.0)[:3].tolist()
    ([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    """
    step = 1
    while deadline_s / 3600.0 / step > MOST_HOURS:
        step *= 2
    return np.arange(step, deadline_s / 3600.0, step, dtype=np.float64)


def with_switches(question: TrainingQuestion, table: TrainingTable, confidence: float) -> TrainingTable:
    """A table with more rows at its end, one for each switch that may pay.

    Parameters
    ----------
    table
        On-time ways of the job; those on spot that are late are its `late` rows.
    confidence
        At which the deadline must hold.
    """
    late = table.late
    if late is None or not len(late):
        return table
    bar, grid = bar_of(question, table), switch_hours(question.job.deadline_s)
    search = _Search(question=question, table=table, late=late, confidence=confidence, bar=bar, grid=grid)
    return _joined(table, late, list(search.found()))


class _First(NamedTuple):
    """A part on spot by the hour of the switch."""

    share: Hours  # of the work, as predicted
    surely: Hours  # of the work, at the confidence
    saved_s: float
    restart_s: float


class _Pair(NamedTuple):
    """Hours at which two counts of shapes may follow each other, and what they hold, whatever that costs."""

    first: _First
    hours: NDArray[np.int64]  # places in the grid
    until: Hours
    rest: Hours
    rest_held: Hours  # at the confidence


class _Priced(NamedTuple):
    """A pair at the prices of two offers."""

    low: float  # no hour costs less
    high: float  # the last hour costs this
    first: int
    second: int
    pair: _Pair


@dataclass(slots=True, kw_only=True)
class _Search:
    question: TrainingQuestion
    table: TrainingTable
    late: TrainingTable
    confidence: float
    bar: Bar
    grid: Hours
    pairs: dict[tuple[int, int], _Pair] = field(default_factory=dict)
    firsts: dict[int, _First] = field(default_factory=dict)
    known: dict[tuple[object, ...], int] = field(default_factory=dict)  # a number for each physics and count
    keys: dict[int, dict[int, int]] = field(default_factory=dict)  # those of rows, by table
    numbers: dict[int, tuple[object, ...]] = field(default_factory=dict)  # physics of sites, which stand in many rows

    @property
    def several_periods(self) -> bool:
        """Whether limits hold period by period, so that it matters which of them a part touches; not of many."""
        scenario = self.question.scenario
        within = min(self.question.job.deadline_s, scenario.horizon_s) / scenario.period_s
        return scenario.scheduled and scenario.periods > 1 and within <= MOST_PERIODS

    def found(self) -> Iterator[Switch]:
        """Every switch that may pay, by offers, then by shapes; where a plainer plan is asked for, of each degree."""
        listed: set[tuple[int, int]] = set()
        degrees = [_involved(table) for table in (self.late, self.table)]
        most = np.unique(np.concatenate(degrees)).tolist() if self.question.involved is not None else [math.inf]
        for degree in most:
            late, table = (np.flatnonzero(involved <= degree).tolist() for involved in degrees)
            found = list(self._among(_by_offer(self.late, "spot", late), _by_offer(self.table, "on_demand", table)))
            yield from (one for one in found if (one.first, one.second) not in listed)
            listed |= {(one.first, one.second) for one in found}

    def _among(self, firsts: Mapping[str, list[int]], seconds: Mapping[str, list[int]]) -> Iterator[Switch]:
        """Switches from some rows on spot to some on demand."""
        by_place: dict[tuple[str, ...], list[list[int]]] = {}
        for rows in seconds.values():
            by_place.setdefault(_place(self.table.sites[rows[0]]), []).append(rows)
        for rows in firsts.values():
            site = self.late.sites[rows[0]]
            for others in by_place.get(_place(site), ()):
                if _in_one_zone(site, self.table.sites[others[0]]):
                    yield from self._between(rows, others)

    def _between(self, firsts: Sequence[int], seconds: Sequence[int]) -> Iterator[Switch]:
        """Switches from one offer to another."""
        alone = min(self.table.cost_microusd[row] for row in seconds)
        most = alone - tolerance_microusd(alone)
        priced = [self._priced(first, second) for first, second in self._cheaper(firsts, seconds, most)]
        kept: list[tuple[int, int, float]] = []
        for one in sorted((one for one in priced if one is not None), key=lambda one: one[:4]):
            sizes = int(self.late.nodes[one.first]), int(self.table.nodes[one.second])
            below = min(most, float(self.bar.of(max(sizes) * self.table.sites[one.second].shape.devices)))
            less = any(n <= sizes[0] and m <= sizes[1] and high <= one.low for n, m, high in kept)
            if one.low >= below or (less and not self.several_periods):
                continue
            kept.append((*sizes, one.high))
            yield from (found for found in self._cheapest(one) if sum(found.cost_microusd) < below)

    def _cheaper(self, firsts: Sequence[int], seconds: Sequence[int], most: float) -> list[tuple[int, int]]:
        """Pairs of like batches that may cost less than the most that they may, by the work that spot can do in time.

        Were restarts free and hours not whole, a share s of the work could be done before the switch,
        s F1 + (1 - s) m F2 <= D with m F2 the time on demand at the confidence: no switch does more there.
        """
        late, table = self.late, self.table
        before, after = _work_microusd(late, firsts)[:, None], _work_microusd(table, seconds)
        slow, quick = late.finish_s[list(firsts)][:, None], table.finish_s[list(seconds)]
        margin = self._margins(table, seconds)
        room = self.question.job.deadline_s - margin * quick
        share = np.where(slow > quick, np.clip(room / np.maximum(slow - quick, 1e-9), 0.0, 1.0), 1.0)
        batch, other_batch = late.layout.global_batch[list(firsts)][:, None], table.layout.global_batch[list(seconds)]
        alike = np.maximum(batch, other_batch) <= (1 + BATCH_TOLERANCE) * np.minimum(batch, other_batch)
        nodes = np.maximum(late.nodes[list(firsts)][:, None], table.nodes[list(seconds)])
        below = np.minimum(most, self.bar.of(nodes * table.sites[seconds[0]].shape.devices))
        able = alike & self._there(firsts, seconds) & (before < after) & (after - share * (after - before) < below)
        return [(firsts[one], seconds[other]) for one, other in np.argwhere(able).tolist()]

    def _there(self, firsts: Sequence[int], seconds: Sequence[int]) -> NDArray[np.bool_]:
        """Pairs whose second part one may expect to get at the hour of the switch, or has been granted.

        Nobody has fifty nodes free for the last five hours of a job. More than the first part holds, and than the job
        would need at least without a switch, is listed up to the stock of such a seller.
        """
        site, quotas = self.table.sites[seconds[0]], self.question.scenario.hardware.quotas
        stock = self.question.catalog.stock_of(site.offer.provider, site.device.id)
        first, second = (t.nodes[list(rows)] for t, rows in ((self.late, firsts), (self.table, seconds)))
        if stock is None or any(quota_matches(site, quota) for quota in quotas):
            return np.ones((len(first), len(second)), dtype=bool)
        most = np.maximum(first, max(int(second.min()), stock.devices // site.shape.devices))
        return np.asarray(second <= most[:, None])

    def _priced(self, first: int, second: int) -> _Priced | None:
        pair = self._pair(first, second)
        if not len(pair.hours):
            return None
        ends = [(float(pair.until[at]), float(pair.rest[at])) for at in (0, -1)]
        low = min(self._least(self.late, first, until) + self._least(self.table, second, rest) for until, rest in ends)
        return _Priced(low=low, high=float(sum(self._exact(first, second, *ends[-1]))), first=first, second=second,
                       pair=pair)  # fmt: skip

    @staticmethod
    def _least(table: TrainingTable, row: int, hours: float) -> float:
        """What shapes cost at least for some hours, whatever is rounded up.  [micro-USD]"""
        site = table.sites[row]
        boot_s = site.bill.boot_s if site.bill is not None else 0.0
        return int(table.nodes[row]) * site.offer.price_microusd_per_hour * (hours + boot_s / 3600.0) - ROUNDED_MICROUSD

    def _cost(self, first: int, second: int, until: Hours, rest: Hours) -> Hours:
        """What both parts cost, without the last rounding.  [micro-USD]"""
        cost = np.zeros(np.shape(until))
        for table, row, hours in ((self.late, first, until), (self.table, second, rest)):
            site, held_s = table.sites[row], 3600.0 * hours
            if site.bill is not None:
                bill = site.bill
                held_s = np.asarray(billed_s(held_s, bill.boot_s, bill.step_s, bill.minimum_s))
            cost = cost + int(table.nodes[row]) * site.offer.price_microusd_per_hour * held_s / 3600.0
        return np.asarray(cost)

    def _pair(self, first: int, second: int) -> _Pair:
        """When two counts may follow each other: offers of one physics share it."""
        late, table = self.late, self.table
        key = self._key(late, first), self._key(table, second)
        if key not in self.pairs:
            part = self._first(first, key[0])
            whole_s, grid = float(table.finish_s[second]), self.grid
            margin = float(self._margins(table, [second])[0])
            held_s = np.asarray(switched_rest_s(part.surely, part.restart_s, whole_s * margin))
            late_s = 3600.0 * grid + held_s - self.question.job.deadline_s
            able = np.flatnonzero((late_s <= 0) & (part.share > 0) & (part.share < 1))
            rest = np.asarray(switched_rest_s(part.share[able], part.restart_s, whole_s)) / 3600.0
            self.pairs[key] = _Pair(part, able, grid[able], rest, held_s[able] / 3600.0)
        return self.pairs[key]

    def _key(self, table: TrainingTable, row: int) -> int:
        """A number for what a row takes, whatever it costs."""
        of_row = self.keys.setdefault(id(table), {})
        if row not in of_row:
            site = table.sites[row]
            known = self.numbers.setdefault(id(site), site.physics)
            margin = float(self._margins(table, [row])[0])
            facts = (*known, int(table.nodes[row]), float(table.finish_s[row]), margin)
            of_row[row] = self.known.setdefault(facts, len(self.known))
        return of_row[row]

    def _margins(self, table: TrainingTable, rows: Sequence[int]) -> NDArray[np.float64]:
        """What times of rows on one machine are multiplied with to hold at the confidence."""
        which = np.array(rows)
        return self.question.time_margins(
            table.sites[rows[0]], self.confidence, table.nodes[which], table.layout, which
        )

    def _first(self, row: int, key: int) -> _First:
        if key not in self.firsts:
            question, site = self.question, self.late.sites[row]
            spec, devices = question.spec_on(site), int(self.late.nodes[row]) * site.shape.devices
            size, whole_s = checkpoint_bytes_of(question.arch, spec), float(self.late.finish_s[row])
            assert spec.run is not None  # what may be taken away is saved
            saved_s, restart_s = switch_s(devices, size, spec.run)
            useful_s = 3600.0 * self.grid - float(saved_s)
            margin = float(self._margins(self.late, [row])[0])
            busy = float(busy_s(self.late.time.select(np.array([row])))[0])
            surely_s = mean_within_s(useful_s / margin, busy, devices, size, spec.run, self.confidence)
            self.firsts[key] = _First(useful_s / whole_s, surely_s / whole_s, float(saved_s), restart_s)
        return self.firsts[key]

    def _cheapest(self, one: _Priced) -> Iterator[Switch]:
        """At the hour of the least cost in whole micro-dollars, the earliest of equals; of each choice of periods."""
        pair, costs = one.pair, self._cost(one.first, one.second, one.pair.until, one.pair.rest)
        for alike in self._alike(pair) if self.several_periods else [np.arange(len(costs))]:
            yield self._at_least(one, alike[costs[alike] <= costs[alike].min() + ROUNDED_MICROUSD])

    def _alike(self, pair: _Pair) -> list[NDArray[np.int64]]:
        """Hours of a pair by the periods that its parts touch, and by how late it may begin."""
        scenario, job = self.question.scenario, self.question.job
        period = scenario.period_s / 3600.0
        until, end = pair.until / period, (pair.until + pair.rest_held) / period
        room = [(limit_s / scenario.period_s) - end for limit_s in (job.start_s + job.deadline_s, scenario.horizon_s)]
        kinds = [until + SHORT, 1 - until + SHORT, 1 - end + SHORT, *(left + SHORT for left in room)]
        numbers = np.unique(np.floor(kinds), axis=1, return_inverse=True)[1].reshape(-1)
        return [np.flatnonzero(numbers == number) for number in range(int(numbers.max()) + 1)]

    def _at_least(self, one: _Priced, near: NDArray[np.int64]) -> Switch:
        """At the hour of the least cost of some that cost about the same."""
        pair = one.pair
        exact = [self._exact(one.first, one.second, float(pair.until[k]), float(pair.rest[k])) for k in near.tolist()]
        best = min(range(len(near)), key=lambda place: sum(exact[place]))
        at, place = int(near[best]), int(pair.hours[near[best]])
        return Switch(
            first=one.first,
            second=one.second,
            hours=(float(pair.until[at]), float(pair.rest[at])),
            held_hours=(float(pair.until[at]), float(pair.rest_held[at])),
            share=float(pair.first.share[place]),
            share_at_confidence=float(pair.first.surely[place]),
            saved_s=pair.first.saved_s,
            restart_s=pair.first.restart_s,
            cost_microusd=exact[best],
        )

    def _exact(self, first: int, second: int, until: float, rest: float) -> tuple[int, int]:
        costs = []
        for table, row, hours in ((self.late, first, until), (self.table, second, rest)):
            site = table.sites[row]
            paid_s = site.bill.seconds(hours) if site.bill else None
            price = site.offer.price_microusd_per_hour
            costs.append(rental_microusd(int(table.nodes[row]), price, hours, paid_s))
        return costs[0], costs[1]


def _involved(table: TrainingTable) -> NDArray[np.int64]:
    """How involved the layout of each row is."""
    return plain_training(table.layout, np.array([site.domain for site in table.sites], dtype=np.int64))


def _by_offer(table: TrainingTable, price_model: str, rows: Sequence[int]) -> dict[str, list[int]]:
    """Of some rows those of each offer of a price model, the fastest of each number of shapes."""
    found: dict[str, dict[int, int]] = {}
    for row in rows:
        site = table.sites[row]
        if site.offer.price_model == price_model:
            mine, nodes = found.setdefault(site.offer.id, {}), int(table.nodes[row])
            if nodes not in mine or table.finish_s[row] < table.finish_s[mine[nodes]]:
                mine[nodes] = row
    return {offer: [rows[nodes] for nodes in sorted(rows)] for offer, rows in found.items()}


def _place(site: Site) -> tuple[str, ...]:
    return site.shape.id, site.offer.provider, site.offer.region


def _in_one_zone(one: Site, other: Site) -> bool:
    """Whether no two different zones are named: an offer without a zone can be had in any."""
    return not one.offer.zone or not other.offer.zone or one.offer.zone == other.offer.zone


def _joined(table: TrainingTable, late: TrainingTable, found: Sequence[Switch]) -> TrainingTable:
    """A table with a row for each switch: site and layout those on demand, the time that of both parts."""
    if not found:
        return table
    firsts, seconds = (np.array([getattr(one, name) for one in found]) for name in ("first", "second"))
    nodes = np.maximum(late.nodes[firsts], table.nodes[seconds])
    parts = _terms_of(late.time.select(firsts), table.time.select(seconds), found)
    return replace(
        table,
        sites=(*table.sites, *(table.sites[one.second] for one in found)),
        nodes=np.concatenate([table.nodes, nodes]),
        layout=Layout.concatenate([table.layout, table.layout.select(seconds)]),
        memory=Terms.concatenate([table.memory, table.memory.select(seconds)]),
        time=Terms.concatenate([table.time, Terms({name: sum(part[name] for part in parts) for name in parts[0]})]),
        finish_s=np.concatenate([table.finish_s, [3600.0 * sum(one.hours) for one in found]]),
        cost_microusd=(*table.cost_microusd, *(sum(one.cost_microusd) for one in found)),
        switches={len(table) + k: one for k, one in enumerate(found)},
    )


def part_terms(table: TrainingTable, one: Switch) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of both parts by term, what is saved for the switch among checkpoints, the restart after it."""
    assert table.late is not None
    before, after = table.late.time.select(np.array([one.first])), table.time.select(np.array([one.second]))
    first, second = _terms_of(before, after, [one])
    return first.row(0), second.row(0)


def _terms_of(first: Terms, second: Terms, found: Sequence[Switch]) -> tuple[Terms, Terms]:
    """Terms of the parts of some switches, from those of the whole runs."""
    share, saved, restart = (np.array([getattr(one, n) for one in found]) for n in ("share", "saved_s", "restart_s"))
    names = {**first, **second}
    parts = ((first, share, "checkpoints", saved), (second, 1.0 - share, "restarts", restart))
    before, after = (
        Terms({name: part * of.get(name, 0.0 * part) + (more if name == term else 0.0) for name in names})
        for of, part, term, more in parts
    )
    return before, after


def _work_microusd(table: TrainingTable, rows: Sequence[int]) -> NDArray[np.float64]:
    """What the whole job costs on each of some rows of an offer, for the time that it runs."""
    price = table.sites[rows[0]].offer.price_microusd_per_hour
    return np.asarray(table.nodes[list(rows)] * (price / 3600.0) * table.finish_s[list(rows)])


class Bar(NamedTuple):
    """What a switch must cost less than to be in a best plan, by the devices that it holds at most."""

    devices: NDArray[np.int64]  # ascending
    least_microusd: NDArray[np.float64]  # of the ways that hold no more

    def of(self, devices: NDArray[np.int64] | int) -> NDArray[np.float64]:
        """The cost; infinite where nothing holds so few.  [micro-USD]"""
        place = np.searchsorted(self.devices, devices, side="right")
        return np.concatenate([[math.inf], self.least_microusd])[place]


def bar_of(question: TrainingQuestion, table: TrainingTable) -> Bar:
    """What switches are held against.

    Of a job that shares no limit with anybody every way of its table can be taken, the cheapest of all too; where
    several share the number of devices alone, any that holds no more of them. Else nothing rules a switch out, nor in
    a calendar, where contracts pay for what costs nothing here and a way may not start when it would have to.
    """
    scenario, limits = question.scenario, question.scenario.limits
    several = len(scenario.workloads) > 1 or question.job.count > 1
    harmless = {"limits.budget", "limits.max_devices", *(() if several else ("limits.max_providers",))}
    held = not harmless.issuperset(limits.whole) or (several and scenario.hardware.quotas) or scenario.scheduled
    if scenario.objective[0] != "cost" or held:
        return Bar(devices=np.zeros(0, dtype=np.int64), least_microusd=np.zeros(0))
    free = [row for row, site in enumerate(table.sites) if not several or site.offer.max_shapes is None]
    devices = np.array([int(table.nodes[row]) * table.sites[row].shape.devices for row in free], dtype=np.int64)
    devices = devices if several and limits.max_devices is not None else 0 * devices
    costs = np.array([table.cost_microusd[row] for row in free], dtype=np.float64)
    order = np.lexsort((costs, devices))
    return Bar(devices=devices[order], least_microusd=np.minimum.accumulate(costs[order]))
