"""What prices leave open when units are whole: pools of a fleet by role, nodes that fleets share.

A fleet may prefill and decode in pools of their own, beside replicas that do both. At prices of the requests, the same
for prefill and decode, what replicas of whole requests earn, W, and each pool earns must come to N: W + P >= N and
W + D >= N, also after the loss of k replicas of any type in use. Prices alone weigh a replica of whole requests half
here and half there, and prove too little where pools are a few replicas. W is a whole number, though: without any such
replica the pools are apart, and each is the least cover of its own; with some, W lies between two numbers, and the
whole weighs what W takes at least and what the pools take at least at the larger of the two. The numbers are halved
where that is the least, until it reaches what is asked or `MOST_PARTS` are looked at. Both pools of a fleet lie in one
place, so that this is done for each place.

Count among the nodes n_o of an offer, which fleets may share, also those that a fleet has for itself. At a price l_o
of each of their devices every plan costs at least

    sum over the workloads of their least weight, what stands on the nodes weighing l_o for each device that it takes
    +  sum_o (c_o - G_o l_o) n_o.

At l_o = c_o / G_o a node may be bought in parts, which no one sells: a bound that falls short by the devices that
stand idle. So the numbers of nodes are walked through, and at each the prices are moved: below c_o / G_o where at least
some nodes are there to be paid for, above where a fixed number of them is too small for what stands on it, and with
none nothing stands there. Prices are multiples of c_o / G_o from a short list, or one for the devices of all nodes that
are there: what a device costs elsewhere. So who checks walks the same tree; no number of it stands in a file.

Where a limit is on such nodes and on jobs alone, jobs have what the nodes leave of it, each job by itself. A job that
may stand on devices of shared nodes weighs the least of that, at their price, and of nodes of its own.

Before that, columns that no plan below the value can use are closed, by what one unit of them adds to the least of
their fleet in parts of units (fixing by reduced costs, Crowder, Johnson and Padberg, Operations Research 31(5) 1983,
section 2), and offers of which one node alone costs too much. A share is counted up to one replica less than
fill a node: as many as fill it are as well a node of the fleet's own at the same cost.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.candidates.dominance import compressed
from planner.candidates.program import (
    DECODE,
    PREFILL,
    WHOLE,
    Program,
    Task,
    earnings,
    restrict,
    task_of,
)
from planner.candidates.prune import alone_units
from planner.candidates.shared_nodes import DEVICES_OF, SharedNodes
from planner.carriers import dataclass
from planner.plan.cover import UNMET, least_cover

if TYPE_CHECKING:
    from planner.plan.model.others import RequestPrices


MOST_PRICES = 4  # of the requests of a fleet, at which its roles are told apart
MOST_PARTS = 64  # of what whole requests earn
STEPS = 40_000  # of one search for a least cover


class _Side(NamedTuple):
    """Columns of one role: weights of a unit, how many there are, what one earns, replicas of one."""

    weights: list[int]
    upper: list[int]
    earned: list[int]
    replicas: list[int]

    def least(self, need: int, spare: int = 0) -> int:
        """The least weight of units that earn so much, after the loss of so many replicas of a type."""
        if need <= 0:
            return 0
        lost = self.replicas if spare else None
        return least_cover(
            self.weights, self.upper, [self.earned], [need], replicas=lost, spare=spare, steps=STEPS
        ).bound

    def least_loss(self, spare: int) -> int:
        """What the loss of so many replicas takes at least, of a type that earns anything."""
        return min((spare * e // r for e, r, m in zip(self.earned, self.replicas, self.upper) if e and m), default=0)

    def cheapest(self) -> int:
        """The least weight of a unit that earns anything."""
        return min((w for w, e, m in zip(self.weights, self.earned, self.upper) if e and m), default=UNMET)


def more_by_role(
    program: Program,
    lines: Mapping[str, Sequence[Sequence[RequestPrices]]],
    weights: NDArray[Any],
    upper: NDArray[np.int64],
    alone: Mapping[str, int],
    short: int,
) -> int:
    """What fleets with pools weigh more than prices alone prove, as far as that is short.

    Parameters
    ----------
    lines
        Prices of the requests of each workload, by line and level.
    weights, upper
        Of a unit of each column; and how many there are.
    alone
        What prices alone prove of each workload.
    short
        Of no interest beyond.
    """
    found = 0
    for task in program.tasks:
        part = slice(task.first, task.stop)
        if task.kind != "serving" or not program.role[part].any() or (weights[part] < 0).any():
            continue
        peak = len(task.demands) - 1
        worth = {
            tuple(p + q for p, q in zip(one["prefill"], one["decode"]))
            for line in lines[task.name]
            for one in line
            if one["level"] == peak
        }
        known, upto = alone[task.name], alone[task.name] + short - found
        for prices in sorted(each for each in worth if any(each))[:MOST_PRICES]:
            known = max(known, min(least_by_role(program, task, weights, upper, prices, upto), upto))
        found += known - alone[task.name]
    return found


def least_by_role(
    program: Program, task: Task, weights: NDArray[Any], upper: NDArray[np.int64], prices: Sequence[int], upto: int
) -> int:
    """No way to meet a fleet at its peak weighs less, as far as some prices of its requests show it.

    Parameters
    ----------
    program, task
        A fleet of the program.
    weights, upper
        Of a unit of each column of the program, >= 0 where it counts; and how many there are.
    prices
        Of a request of each bucket, as much for its prefill as for its decode.
    upto
        Of no interest beyond.

    Returns
    -------
    `UNMET` where nothing meets it.
    """
    part, peak = slice(task.first, task.stop), len(task.demands) - 1
    demand = task.demands[peak]
    rates = program.capacity_micro_per_s[part, : len(demand)].astype(object)
    earned = np.where(program.level[part] <= peak, earnings(task, rates, prices), 0)
    need = sum(price * rate for price, rate in zip(prices, demand))
    spare = task.spare_replicas

    def side(where: NDArray[np.bool_]) -> _Side:
        return _Side(
            weights=[max(int(w), 0) for w in weights[part][where]],
            upper=upper[part][where].tolist(),
            earned=[int(e) for e in earned[where]],
            replicas=[max(int(r), 1) for r in program.replicas[part][where]],
        )

    role, place = program.role[part], program.place[part]
    whole, least = side(role == WHOLE), UNMET
    for one in np.unique(place[role != WHOLE]).tolist():
        pools = side((role == PREFILL) & (place == one)), side((role == DECODE) & (place == one))
        least = min(least, _least_beside(whole, pools, need, spare, min(upto, least)))
    return min(least, whole.least(need, spare))


def _least_beside(whole: _Side, pools: tuple[_Side, _Side], need: int, spare: int, upto: int) -> int:
    """The least weight with the pools of one place, or without."""
    apart = sum(pool.least(need, spare) for pool in pools)
    loss = whole.least_loss(spare)
    # that do not survive a loss by themselves, so that both pools stand by
    beyond = whole.least(need + loss) + sum(pool.cheapest() for pool in pools)

    def between(least: int, most: int) -> int:
        """With replicas of whole requests that earn at least so much, and less than that."""
        beside = (max(pool.least(need - most, spare), pool.least(need + loss - most + 1)) for pool in pools)
        return whole.least(max(least, 1)) + sum(beside)

    heap = [(between(0, need + loss), 0, need + loss)]
    for _ in range(MOST_PARTS):
        bound, least, most = heap[0]
        if bound >= min(upto, apart, beyond) or most - least < 2:
            break
        middle = (least + most) // 2
        heapq.heapreplace(heap, (between(least, middle), least, middle))
        heapq.heappush(heap, (between(middle, most), middle, most))
    return min(apart, beyond, heap[0][0])


TIMES = (0, 4, 8, 11, 13, 14, 15, 16, 17, 18, 20, 24, 32, 48, 96, 400)  # sixteenths of c_o / G_o
PLAIN = 7  # of them: a node in parts
CLOSED = -1  # no share of an offer
ELSEWHERE = 12  # prices of devices elsewhere, the lowest
MOST_WEIGHED = 1_500  # fleets weighed at some prices: what is not proven by then takes minutes, or is not at all
STEPS_OF_WEIGHING, MOST_STEPS = 20_000, 1_000_000  # of the search for the least of one fleet, and of all of them
HALF = 2
ROUNDS = 2  # in which the price of each offer is moved

Weights = NDArray[Any]  # whole numbers of any size
Least = Callable[[Program, Task, Weights, NDArray[np.int64]], tuple[int, int]]  # and the steps that it took
Prices = tuple[int, ...]  # by offer: of one device, or CLOSED
Nodes = Mapping[int, int]  # how many there are of some offers
# what jobs weigh at least beside so many nodes, each on nodes of its own or on a part of one that weighs so much
Jobs = Callable[[Nodes, Sequence[int | None]], Sequence[int]]


class TooManyError(Exception):
    """More was weighed than may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A program at some prices of its limits."""

    program: Program
    shared: SharedNodes
    weights: Weights  # of a unit of each column with what limits charge, but nothing for devices of shared nodes
    upper: NDArray[np.int64]  # units that there are
    own_node: NDArray[np.int64]  # (columns,) offer, by its place in `shared.sites`, of which a unit is nodes for one
    # fleet; -1: any other
    earned: Mapping[str, Sequence[tuple[Sequence[int], int]]]  # of each fleet: by line, what a unit of each of its
    # columns earns at most and what is needed
    least: Least  # the least weight of a task alone, of some columns of the program
    rest: int  # what everything else weighs at least
    jobs: Jobs
    upto: int  # of no interest beyond
    limits: tuple[tuple[tuple[int, ...], int], ...] = ()  # on nodes alone: what a node of each offer takes, the bound


def least_with_whole_nodes(asked: Asked) -> int:
    """The least that any plan weighs whose shared nodes are whole, or `upto`; a bound below it when that takes long."""
    walk = _Walk.of(asked)
    try:
        walk.close()
        return walk.least((), walk.plain)
    except TooManyError:
        return min(walk.reached, asked.upto)


@dataclass(slots=True, kw_only=True)
class _Walk:
    """The tree of numbers of nodes."""

    program: Program  # columns that a plan below the value can use
    shared: SharedNodes
    weights: Weights
    upper: NDArray[np.int64]
    offer: NDArray[np.int64]  # (columns,) whose nodes a column of a fleet stands on; -1: others
    taken: NDArray[np.int64]  # (columns,) devices of these nodes
    tasks: tuple[Task, ...]  # fleets
    least_of: Least
    others: int
    jobs: Jobs
    parts: Sequence[tuple[int, Sequence[tuple[int, int, int]]]]  # of each job: how many of it there are, and by part of
    # a node that it may stand on offer, devices and weight
    upto: int
    limits: tuple[tuple[tuple[int, ...], int], ...]
    levels: list[list[int]]  # by offer: prices of a device that are tried
    elsewhere: list[int]  # prices of all devices that are tried
    node_weights: list[int]  # by offer
    offers_of: Mapping[str, list[int]]  # of each fleet: what its columns stand on; prices of others are nothing to it
    known: dict[tuple[str, Prices], int]  # by prices of these offers alone
    steps: int  # taken so far
    reached: int  # what is proven so far
    plain: Prices

    @classmethod
    def of(cls, asked: Asked) -> _Walk:
        """With columns that cost too much left out."""
        program, shared, own_node = asked.program, asked.shared, asked.own_node
        columns = [shared.node_of(number) for number in range(len(shared.sites))]
        node_weights = [0 if column is None else int(asked.weights[column]) for column in columns]
        sizes = np.array([site.shape.devices for site in shared.sites], dtype=np.int64)
        tasks = tuple(task for task in program.tasks if task.kind == "serving")
        offer, taken = shared.site.copy(), shared.devices.copy()
        share = taken > 0
        upper = np.where(share, np.minimum(asked.upper, sizes[offer] // np.maximum(taken, 1) - 1), asked.upper)
        weights = asked.weights.copy()
        for task in tasks:
            for k in np.flatnonzero(own_node[task.first : task.stop] >= 0) + task.first:
                nodes = int(program.nodes[k])
                offer[k], taken[k] = own_node[k], nodes * sizes[own_node[k]]
                weights[k] -= nodes * node_weights[offer[k]]
        parts = []
        for task in [task for task in program.tasks if task.kind == "training"]:
            mine = [k for k in range(task.first, task.stop) if share[k] and asked.upper[k] > 0]
            parts.append((task.count, [(int(offer[k]), int(taken[k]), int(weights[k])) for k in mine]))
        walk = cls(
            program=program,
            shared=shared,
            weights=weights,
            upper=upper,
            offer=offer,
            taken=taken,
            tasks=tasks,
            least_of=asked.least,
            others=asked.rest,
            jobs=asked.jobs,
            parts=parts,
            upto=asked.upto,
            limits=asked.limits,
            levels=[[w * t // (TIMES[PLAIN] * int(size)) for t in TIMES] for w, size in zip(node_weights, sizes)],
            elsewhere=[],
            node_weights=node_weights,
            offers_of={},
            known={},
            steps=0,
            reached=0,
            plain=tuple(w // int(size) for w, size in zip(node_weights, sizes)),
        )
        return walk._without_dearer()._narrowed(asked.earned)

    def _without_dearer(self) -> _Walk:
        """Without offers whose nodes weigh no less than those of another one on which everything can stand as well.

        Whatever stands on nodes of the first moves to as many of the second: the same replicas, as many as carry their
        fleet alone, and no limit on their number.
        """
        program, upper = self.program, self.upper.copy()
        enough = np.concatenate([alone_units(program, task) for task in program.tasks])
        of = task_of(program)
        physics = [
            self.taken,
            program.replicas,
            program.level,
            program.role,
            program.spot,
            *program.capacity_micro_per_s.T,
        ]
        alike = compressed(of, *physics)
        stands: list[dict[int, int]] = [{} for _ in self.node_weights]
        able = [not any(taken[offer] for taken, _ in self.limits) for offer in range(len(self.node_weights))]
        for k in np.flatnonzero((self.taken > 0) & (self.upper > 0)).tolist():
            mine, kind = stands[int(self.offer[k])], int(alike[k])
            mine[kind] = min(int(self.weights[k]), mine.get(kind, int(self.weights[k])))
            able[int(self.offer[k])] &= bool(self.shared.devices[k] > 0 or self.upper[k] >= enough[k])
        gone: set[int] = set()
        for offer in sorted(self._paid(), key=lambda o: (-self.node_weights[o], o)):
            for other in range(len(stands)):
                cheaper = able[other] and self.node_weights[other] <= self.node_weights[offer]
                if other in gone or other == offer or not cheaper:
                    continue
                if all(kind in stands[other] and stands[other][kind] <= w for kind, w in stands[offer].items()):
                    gone.add(offer)
                    break
        upper[(self.taken > 0) & np.isin(self.offer, sorted(gone))] = 0
        parts = [(count, [part for part in mine if part[0] not in gone]) for count, mine in self.parts]
        return replace(self, upper=upper, parts=parts)

    def _narrowed(self, earned: Mapping[str, Sequence[tuple[Sequence[int], int]]]) -> _Walk:
        """Without columns of which one unit adds more to its fleet than the bound is short of the value."""
        weights, upper = self._at(self.plain)
        least = {task.name: self.least_of(self.program, task, weights, upper)[0] for task in self.tasks}
        self.reached = self.rest({}, self.plain) + sum(least.values())
        room = self.upto - self.reached
        mask = np.zeros(self.program.column_count, dtype=bool)
        for task in self.tasks:
            here = weights[task.first : task.stop]
            dearest = np.zeros(len(here), dtype=object)
            for each, need in earned[task.name]:
                worth = [(int(w), int(e)) for w, e in zip(here, each) if e > 0]
                if need <= 0 or not worth:
                    continue
                low, gain = min(worth, key=lambda pair: (pair[0] << 128) // pair[1])
                forced = [(need * low + int(w) * gain - int(e) * low) // gain for w, e in zip(here, each)]
                dearest = np.maximum(dearest, np.array(forced, dtype=object))
            mask[task.first : task.stop] = dearest < least[task.name] + room
        mask &= upper > 0
        small, kept = restrict(replace(self.program, rows=()), mask)
        names = {task.name for task in self.tasks}
        tasks = tuple(task for task in small.tasks if task.name in names)
        offer, taken = self.offer[kept], self.taken[kept]
        stands, weights = np.where(taken > 0, offer, -1), self.weights[kept]
        alone = [int(w) // int(small.devices[k]) for k, w in enumerate(weights) if not taken[k] and small.devices[k]]
        paid = [self.plain[number] for number, weight in enumerate(self.node_weights) if weight > 0]
        for own, (count, some) in zip(self.jobs({}, [None] * len(self.parts)), self.parts):
            alone += [own // (count * devices) for devices in sorted({devices for _, devices, _ in some})]
        return replace(
            self,
            elsewhere=sorted({*alone, *paid} - {0})[:ELSEWHERE],
            program=small,
            weights=weights,
            upper=self.upper[kept],
            offer=offer,
            taken=taken,
            tasks=tasks,
            offers_of={task.name: sorted(set(stands[task.first : task.stop].tolist()) - {-1}) for task in tasks},
        )

    def rest(self, nodes: Nodes, prices: Prices) -> int:
        """What all but the fleets weighs at least: jobs on their own nodes, or at some prices on devices of others."""
        least = [
            min((weight + prices[o] * devices for o, devices, weight in parts if prices[o] != CLOSED), default=None)
            for _, parts in self.parts
        ]
        return self.others + sum(self.jobs(nodes, least))

    def close(self) -> None:
        """Close offers of which one shared node alone costs too much, the dearest first."""
        offers = sorted(self._paid(), key=lambda o: (-self.node_weights[o], o))
        changed = True
        while changed:
            changed = False
            for offer in offers:
                if self.plain[offer] == CLOSED:
                    continue
                stood_on = (self.offer == offer).any() or any(
                    part[0] == offer for _, mine in self.parts for part in mine
                )
                if not stood_on or any(
                    self._bound(self._with(self.plain, offer, self.levels[offer][place]), {offer: 1}) >= self.upto
                    for place in (0, HALF)
                ):
                    self.plain, changed = self._with(self.plain, offer, CLOSED), True
            self.reached = max(self.reached, min(self._bound(self.plain, {}), self.upto))
            if self.reached >= self.upto:
                return

    def _paid(self) -> list[int]:
        """Offers whose nodes weigh anything; of others there may be any number."""
        return [offer for offer, weight in enumerate(self.node_weights) if weight > 0]

    def least(self, fixed: tuple[tuple[int, int], ...], prices: Prices) -> int:
        """The least over all numbers of nodes of the offers that are not fixed."""
        done = {offer for offer, _ in fixed}
        prices, bound = self._dearest(prices, dict(fixed))
        open_ = [offer for offer in self._paid() if self.plain[offer] != CLOSED and offer not in done]
        if bound >= self.upto or not open_:
            return min(bound, self.upto)
        bounded = {offer for taken, _ in self.limits for offer, each in enumerate(taken) if each}
        offer = max(open_, key=lambda o: (o in bounded, self.node_weights[o], -o))
        best = self.upto
        for count in itertools.count():
            at_least = {**dict(fixed), offer: count}
            if not self._within(at_least):
                break
            if count and self._bound(self._free(prices, at_least), at_least) >= best:
                break
            now = self._with(prices, offer, self.levels[offer][PLAIN] if count else CLOSED)
            best = min(best, self.least((*fixed, (offer, count)), now))
        return best

    def _within(self, nodes: Mapping[int, int]) -> bool:
        """Whether so many nodes are within the limits on them."""
        return all(sum(taken[offer] * count for offer, count in nodes.items()) <= most for taken, most in self.limits)

    def _dearest(self, prices: Prices, nodes: Mapping[int, int]) -> tuple[Prices, int]:
        """Prices that prove most of some numbers of nodes: of two offers tried together, of more in turn."""
        there = [offer for offer, count in nodes.items() if count]
        starts = [prices, self._free(prices, nodes)]
        for price in self.elsewhere if there else ():
            starts.append(prices)
            for offer in there:
                starts[-1] = self._with(starts[-1], offer, price)
        best = -1, prices
        for one in starts:
            best = max(best, (self._bound(one, nodes), one))
            if best[0] >= self.upto:
                return best[1], best[0]
        for _ in range(ROUNDS):
            before = best
            for pair in zip(there, [*there[1:], *there[:1]]):
                for times in itertools.product(*(self.levels[offer] for offer in dict.fromkeys(pair))):
                    if best[0] >= self.upto:
                        return best[1], best[0]
                    tried = best[1]
                    for offer, each in zip(dict.fromkeys(pair), times):
                        tried = self._with(tried, offer, each)
                    best = max(best, (self._bound(tried, nodes), tried))
            if best == before or len(there) < 3:
                break
        return best[1], best[0]

    def _free(self, prices: Prices, nodes: Mapping[int, int]) -> Prices:
        """Prices at which the nodes that are there are paid for whole, and their devices cost nothing."""
        for offer, count in nodes.items():
            prices = self._with(prices, offer, 0) if count else prices
        return prices

    def _bound(self, prices: Prices, nodes: Mapping[int, int]) -> int:
        """What plans weigh at least at some prices, with at least or, where devices are dearer, just so many nodes."""
        total = self.rest(nodes, prices)
        for offer, count in nodes.items():
            total += (self.node_weights[offer] - self._of_devices(prices, offer)) * count
        keys = {task.name: (task.name, tuple(prices[o] for o in self.offers_of[task.name])) for task in self.tasks}
        missing = [task for task in self.tasks if keys[task.name] not in self.known]
        if missing:
            weights, upper = self._at(prices)
            for task in missing:
                if len(self.known) >= MOST_WEIGHED or self.steps >= MOST_STEPS:
                    raise TooManyError
                self.known[keys[task.name]], taken = self.least_of(self.program, task, weights, upper)
                self.steps += taken
        return total + sum(self.known[key] for key in keys.values())

    def _of_devices(self, prices: Prices, offer: int) -> int:
        """What all devices of a node are charged."""
        return self._device(prices, offer) * self.shared.sites[offer].shape.devices

    def _device(self, prices: Prices, offer: int) -> int:
        return 0 if prices[offer] == CLOSED else prices[offer]

    def _at(self, prices: Prices) -> tuple[Weights, NDArray[np.int64]]:
        """Weights and most units of all columns at some prices."""
        each = np.array([self._device(prices, offer) for offer in range(len(prices))], dtype=object)
        open_ = np.array([price != CLOSED for price in prices], dtype=bool)
        there = self.taken > 0
        weights = self.weights.copy()
        weights[there] = weights[there] + each[self.offer[there]] * self.taken[there]
        return weights, np.where(there & ~open_[self.offer], 0, self.upper)

    @staticmethod
    def _with(prices: Prices, offer: int, price: int) -> Prices:
        return (*prices[:offer], price, *prices[offer + 1 :])


def counted_rows(
    program: Program, shared: SharedNodes, own_node: NDArray[np.int64], *, jobs: bool
) -> dict[int, tuple[tuple[int, ...], int]]:
    """Joint limits that say how many of some nodes there may be: by number what a node of each offer takes, the bound.

    What stands in them is nodes of offers that fleets share; `jobs`: and jobs; and nothing else.
    """
    works = np.zeros(program.column_count, dtype=bool)
    for task in program.tasks if jobs else ():
        works[task.first : task.stop] = task.kind == "training"
    found: dict[int, tuple[tuple[int, ...], int]] = {}
    for number, row in enumerate(program.rows):
        nodes = shared.site[row.columns] >= 0
        if row.name.startswith(DEVICES_OF) or (row.coefficients < 0).any():
            continue
        if not (nodes | (own_node[row.columns] >= 0) | works[row.columns]).all() or not nodes.any():
            continue
        taken = [0] * len(shared.sites)
        for column, each in zip(row.columns[nodes].tolist(), row.coefficients[nodes].tolist()):
            taken[int(shared.site[column])] = int(each)
        found[number] = tuple(taken), int(row.bound)
    return found
