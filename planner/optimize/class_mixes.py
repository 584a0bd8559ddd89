"""Mixes of classes of requests that would make a fleet cheaper, found by pricing replicas at many mixes at once.

The listed columns of a fleet are replicas of all classes in the traffic's own proportions, and of each class alone
(`planner.candidates.serving_question`). A replica may carry any other mix: a small machine a part of two classes, a
large one what is left. Here the kinds of replicas that are cheapest at some listed mix stand at every mix of a grid,
and the cheapest fleet of them is a small program over whole units n_kg,

    min sum c_k n_kg   with   D <= sum R_k v_kg y_kg <= 1.15 D for each class,   y_kg <= n_kg:

what is sent to a replica is about its mix, and requests that there are not do not keep the percentiles of others down.

What a replica carries of a mix, v_kg, takes the distribution of its waits, some 20 ms. First all slots are taken to be
full, which nothing exceeds: where no fleet is cheaper even so, none is. Then rates of a few mixes of each kind are
exact, those between them take over how far the moments of the mix were off nearby, and what the program chooses is
rated exactly before anything is believed, until what it chooses is all exact or it finds nothing cheaper. What is found
becomes columns like all others (`ServingQuestion.more_mixes`): the program of the plan decides, the verifier rates them
once more, and a mix that is not found costs money and no truth.

Source: column generation, after Gilmore and Gomory, Operations Research 9(6) (1961).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.blended import endless
from planner.candidates.program import Program, Row, Task
from planner.candidates.search import Candidates
from planner.candidates.serving import ServingTable
from planner.candidates.serving_question import Mixes, ServingQuestion
from planner.carriers import dataclass
from planner.equations.registry import as_float
from planner.estimate.resolve_serving import Requests, mixes_of
from planner.estimate.serving_fleet import Replicas, full_load, load_within_targets, replica_memory
from planner.optimize import highs
from planner.optimize.highs import Lines
from planner.optimize.solve import Solution

STEPS = {2: 16, 3: 6, 4: 3}  # parts of a class's share of the traffic on the grid, by number of classes
FEWEST_STEPS = 2
KINDS = 8  # of replicas that are looked at
PER_MIX = 2  # of them the cheapest at each listed mix
LOOSER = 25  # percent: limits beyond those of the scenario within which mixes are looked for where there is no plan
SAVED = 1e-3  # relative, of the cost: less is not looked for
ROUNDS = 30  # in which what is chosen is rated
NEARBY = 4.0  # power of the distance between two mixes with which their likeness falls
PROGRAM_NODES = 30  # of one small program, whatever the machine: results hang on no clock
PROGRAM_GAP = 0.005
COLUMNS = 120  # of one small program, those that are worth most for their cost
MUCH = 1.15  # times what is asked for of a class: more is no mix that is sent
MICRO = 1_000_000

Rows = NDArray[np.int64]
Values = NDArray[np.float64]


def better_mixes(candidates: Candidates, solution: Solution, over: Callable[[], bool] = endless) -> dict[str, Mixes]:
    """Mixes of each fleet with which it would be cheaper than it is in a plan; fleets without any are left out.

    Parameters
    ----------
    over
        Whether the time for it is up: what is found by then is all.
    """
    found: dict[str, Mixes] = {}
    if not highs.available() or candidates.scenario.scheduled:
        return found
    for task, question, table in _able(candidates):
        part = slice(task.first, task.stop)
        paid = float((candidates.program.cost_microusd[part] * solution.units[part]).sum())
        mixes = _Search.of(question, table, task).below(paid, over)
        if mixes:
            found[task.name] = mixes
    return found


def mixes_may_help(candidates: Candidates) -> bool:
    """Whether mixes are looked for of some fleet."""
    return highs.available() and not candidates.scenario.scheduled and any(_able(candidates))


def able_to_mix(candidates: Candidates) -> list[str]:
    """Fleets that may be cheaper at mixes of their own, whether they are looked for or not."""
    return [task.name for task, _, _ in _able(candidates)]


def within_looser_limits(candidates: Candidates) -> Candidates:
    """The ways with limits of the scenario that are a quarter larger: better mixes save no more."""

    def freed(program: Program) -> Program:
        rows = (row if not row.name.startswith("limits.") else _looser(row) for row in program.rows)
        return replace(program, rows=tuple(rows))

    return replace(candidates, program=freed(candidates.program), whole=freed(candidates.whole))


def _looser(row: Row) -> Row:
    return replace(row, bound=-(-row.bound * (100 + LOOSER) // 100))


def _able(candidates: Candidates) -> Iterator[tuple[Task, ServingQuestion, ServingTable]]:
    for task in candidates.program.tasks:
        question, table = candidates.questions.get(task.name), candidates.tables.get(task.name)
        if not isinstance(question, ServingQuestion) or not isinstance(table, ServingTable):
            continue
        if _worth_it(question, table, task):
            yield task, question, table


def _worth_it(question: ServingQuestion, table: ServingTable, task: Task) -> bool:
    """Whether a fleet has classes that can be told apart, targets, one load all the time, and no spares.

    Where a replica may be lost the others would have to serve what it did in mixes of their own: that is not asked.
    """
    return (
        table.blended
        and task.boxed
        and len(question.mixes) > 1
        and bool(question.fleet.targets_s)
        and not table.level_demands
        and not task.spare_replicas
        and question.fleet.availability is None
        and question.fleet.max_spot_share is None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kinds:
    """Kinds of replicas that a fleet may be made of; arrays (k,)."""

    places: Rows  # in the evaluated arrays
    unit_microusd: Values
    replicas: Rows  # of one unit
    caps: Rows  # units that may be had


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """One fleet, the kinds of replicas that it may be made of, and the mixes that are looked at."""

    question: ServingQuestion
    everyone: Replicas
    kinds: _Kinds
    demand: Values  # (classes,) [1/s]
    grid: Values  # (g, buckets) parts of the traffic's own requests
    least_replicas: int

    @classmethod
    def of(cls, question: ServingQuestion, table: ServingTable, task: Task) -> _Search:
        """The kinds that are cheapest at some listed mix."""
        assert table.evaluated is not None
        asked = np.asarray(question.fleet.traffic.share) > 0
        return cls(
            question=question,
            everyone=table.evaluated.blends[0].replicas,
            kinds=_cheapest_kinds(table),
            demand=np.asarray(task.demand_micro_per_s, dtype=np.float64)[asked] / MICRO,
            grid=_grid(asked),
            least_replicas=task.min_replicas,
        )

    def below(self, paid: float, over: Callable[[], bool]) -> Mixes:
        """Mixes of the cheapest fleet at less than what is paid, as far as it is found; () where there is none."""
        least: Mixes = ()
        most = self._moments(full=True)
        if not len(self.kinds.places) or over() or self._units(most, paid) is None:
            return least
        rates, exact = self._moments(), np.zeros(most.shape, dtype=bool)
        off = rates.copy()  # of the moments, that exact rates are held against
        for kind, point in itertools.product(range(len(rates)), self._listed_points()):
            rates[kind, point], exact[kind, point] = self._exact(kind, point), True
        for _ in range(ROUNDS):
            units = self._units(np.where(exact, rates, np.minimum(self._corrected(off, rates, exact), most)), paid)
            if units is None or over():
                break
            chosen = np.argwhere((units > 0) & ~exact)
            for kind, point in chosen.tolist():
                rates[kind, point], exact[kind, point] = self._exact(kind, point), True
            if not len(chosen):
                used = np.flatnonzero((units > 0).any(axis=0))
                least = tuple(tuple(map(float, self.grid[point])) for point in used)
                paid = float((units.sum(axis=1) * self.kinds.unit_microusd).sum())
        known = {tuple(one) for one in mixes_of(self.question.fleet.traffic).tolist()}
        return tuple(one for one in least if one not in known)

    def _listed_points(self) -> list[int]:
        """The mixes of the grid that every such fleet has: all classes, and each alone."""
        served = self.grid > 0
        return np.flatnonzero((served.sum(axis=1) == 1) | (self.grid == self.grid.max(axis=0)).all(axis=1)).tolist()

    def _corrected(self, moments: Values, rates: Values, exact: NDArray[np.bool_]) -> Values:
        """Rates by moments, off by as much as at the mixes nearby of which the exact rate is known.  [1/s], (k, g)"""
        likeness = 1.0 / np.maximum(self._distances(), 1e-9) ** NEARBY
        found = np.empty_like(rates)
        for kind, known in enumerate(exact):
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(moments[kind, known] > 0, rates[kind, known] / moments[kind, known], 1.0)
            weight = likeness[:, known]
            found[kind] = moments[kind] * (weight @ ratio) / weight.sum(axis=1)
        return found

    def _distances(self) -> Values:
        """Between mixes, of their shares of the requests, (g, g)."""
        share = self._shares()
        return np.asarray(np.abs(share[:, None, :] - share[None, :, :]).sum(axis=2))

    def _shares(self) -> Values:
        """Of each mix the share of the requests that is of each class that is asked for, (g, classes)."""
        weights = self.grid * np.asarray(self.question.fleet.traffic.share)
        weights = weights[:, weights.any(axis=0)]
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def _moments(self, *, full: bool = False) -> Values:
        """Rates of every kind at every mix by the moments of the mix alone, or with all slots full.  [1/s], (k, g)"""
        kinds, points = len(self.kinds.places), len(self.grid)
        weights = np.tile(self.grid * np.asarray(self.question.fleet.traffic.share), (kinds, 1))
        mixed = replace(self.question.requests.mixed(weights), classes=None, share=None)
        return self._rates(np.repeat(self.kinds.places, points), mixed, full=full).reshape(kinds, points)

    def _exact(self, kind: int, point: int) -> float:
        """What may be planned of one replica at a mix, by the distribution of the waits, as a verifier rates it."""
        mixed = self.question.requests.mixed(self.grid[point] * np.asarray(self.question.fleet.traffic.share))
        return float(self._rates(self.kinds.places[[kind]], mixed)[0])

    def _rates(self, places: Rows, requests: Requests, *, full: bool = False) -> Values:
        """What may be planned of replicas at some places, each with the requests of its element.  [1/s]"""
        ask, some = self.question.ask, self.everyone.take(places)
        memory = replica_memory(ask, some, requests)
        batch = np.broadcast_to(as_float(memory.batch), (len(places),))
        fits = np.broadcast_to(as_float(memory.missing_bytes), (len(places),)) <= 0
        found = as_float(full_load(ask, some, requests, batch)) * self.question.fleet.target_load
        if not full:
            found = np.minimum(found, as_float(load_within_targets(ask, some, requests, batch)))
        return np.where(fits & np.isfinite(found), found, 0.0)

    def _units(self, rates: Values, paid: float) -> Rows | None:
        """The cheapest units of each kind at each mix, (k, g), that carry the peak; None: none is cheaper."""
        kinds, points = rates.shape
        each = (rates[:, :, None] * self._shares()).reshape(kinds * points, -1)  # of one replica
        replicas = np.repeat(self.kinds.replicas, points).astype(np.float64)
        cost = np.repeat(self.kinds.unit_microusd, points) / max(paid, 1.0)
        most = np.minimum(np.repeat(self.kinds.caps, points), np.floor(1.0 / np.maximum(cost, 1e-9)))
        some = self._promising(each * replicas[:, None], cost, np.where(each.any(axis=1), most, 0.0))
        found = None if some is None else self._chosen(some, each[some], replicas[some], cost[some], most[some])
        if some is None or found is None:
            return None
        units = np.zeros(len(cost), dtype=np.int64)
        units[some] = found
        return units.reshape(kinds, points)

    def _promising(self, carried: Values, cost: Values, most: Values) -> Rows | None:
        """Places of the units that cost least for what they are worth to fleets of parts of units; None: none is able.

        Parameters
        ----------
        carried
            By each unit, (units, classes).  [1/s]
        """
        rows, every = _Rows(), np.arange(len(cost))
        for place, demand in enumerate(self.demand.tolist()):
            rows.add(every, carried[:, place], low=demand)
        found = highs.optimum(highs.program(cost, most, rows.lines()))
        if found is None or found[0] @ cost > 1 - SAVED:
            return None
        worth = carried @ found[1]
        order = np.argsort(np.where(most > 0, (cost - worth) / cost, np.inf), kind="stable")
        return np.sort(order[: min(COLUMNS, int((most > 0).sum()))])

    def _chosen(self, places: Rows, each: Values, replicas: Values, cost: Values, most: Values) -> Rows | None:
        """The cheapest of some units that carry the peak; None: none of them is cheaper than what is paid.

        Parameters
        ----------
        places
            Kind and mix of each unit, as one number.
        each
            Rates of one replica, (units, classes).  [1/s]
        cost
            As a part of what is paid.
        """
        kind_of = places // len(self.grid)
        count, rows = len(cost), _Rows()
        every = np.arange(count)  # the units; after them how many of each are full
        for place, demand in enumerate(self.demand.tolist()):
            rows.add(count + every, replicas * each[:, place], low=demand, high=demand * MUCH)
        rows.add(every, cost, high=1 - SAVED)
        rows.add(every, replicas, low=float(self.least_replicas))
        for kind in np.unique(kind_of).tolist():
            mine = np.flatnonzero(kind_of == kind)
            rows.add(mine, np.ones(len(mine)), high=float(self.kinds.caps[kind]))
        for unit in every.tolist():
            rows.add(np.array([count + unit, unit]), np.array([1.0, -1.0]), high=0.0)
        objective, integer = np.concatenate([cost, 0 * cost]), np.arange(2 * count) < count
        solver = highs.program(
            objective,
            np.concatenate([most, most]),
            rows.lines(),
            integer=integer,
            mip_max_nodes=PROGRAM_NODES,
            mip_rel_gap=PROGRAM_GAP,
        )
        found = highs.best_point(solver)
        return None if found is None else np.rint(found[:count]).astype(np.int64)


class _Rows:
    """Lines of a small program, one after another."""

    def __init__(self) -> None:
        self.parts: list[tuple[Rows, Values]] = []
        self.low, self.high = list[float](), list[float]()

    def add(self, *entries: NDArray[np.generic], low: float = -np.inf, high: float = np.inf) -> None:
        """A line of variables and their coefficients, in pairs of arrays, between two sides."""
        variables, values = np.concatenate(entries[::2]), np.concatenate(entries[1::2])
        kept = values != 0
        self.parts.append((variables[kept].astype(np.int64), values[kept].astype(np.float64)))
        self.low.append(low)
        self.high.append(high)

    def lines(self) -> Lines:
        """All of them."""
        return Lines(
            starts=np.cumsum([0, *(len(one) for one, _ in self.parts)]),
            variables=np.concatenate([one for one, _ in self.parts]),
            values=np.concatenate([one for _, one in self.parts]),
            low=np.array(self.low),
            high=np.array(self.high),
        )


def _grid(asked: NDArray[np.bool_]) -> Values:
    """Parts of the traffic's own requests of the buckets that are asked for, the largest of them 1: (g, buckets)."""
    places = np.flatnonzero(asked)
    parts = np.linspace(0.0, 1.0, STEPS.get(len(places), FEWEST_STEPS) + 1)
    some = [one for one in itertools.product(parts.tolist(), repeat=len(places)) if max(one) == 1.0]
    grid = np.zeros((len(some), len(asked)))
    grid[:, places] = some
    return grid


def _cheapest_kinds(table: ServingTable) -> _Kinds:
    """The kinds that cost least for what they carry of some listed mix."""
    assert table.evaluated is not None
    least: dict[int, int] = {}  # row of each place
    for row in range(len(table)):
        place = int(table.places[row])
        if place not in least or table.cost_microusd[row] < table.cost_microusd[least[place]]:
            least[place] = row
    rows = np.array([row for _, row in sorted(least.items())], dtype=np.int64)
    places, cost = table.places[rows], np.array(table.cost_microusd, dtype=np.float64)[rows]
    chosen: dict[int, None] = {}
    with np.errstate(divide="ignore"):
        each = [cost / (table.replicas[rows] * blend.guess(places)) for blend in table.evaluated.blends]
    for nth in range(min(PER_MIX, len(rows))):
        for paid in each:
            kind = int(np.argsort(paid, kind="stable")[nth])
            if np.isfinite(paid[kind]):
                chosen.setdefault(kind)
    kept = np.array(list(chosen)[:KINDS], dtype=np.int64)
    return _Kinds(
        places=places[kept],
        unit_microusd=cost[kept],
        replicas=table.replicas[rows[kept]],
        caps=table.unit_caps[rows[kept]],
    )
