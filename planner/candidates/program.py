"""The question put to the optimiser: numbers only, no physics, no names to parse.

Every workload is a *task* that owns a slice of the columns. A column is one concrete way
to run the task, bought in whole *units*:

* training: a unit is one whole job on one layout; the units of a task sum to its `count`;
* serving: a unit is the smallest thing that can be added, one shape full of replicas, or
  the several shapes of one replica; units bring capacity, requests flow to them;
* optional: units are taken or left, none are asked for. What is bought ahead (a reserved node, a
  node on demand in one period, a copy of a data set) *supplies* joint rows: its coefficients there
  are negative. So contracts and calendars need no variables of their own.

Serving in full. Requests come in *buckets*; the flow of a bucket is split freely among the
columns that can serve it, and the loads of a column, sum over its buckets of flow / capacity
of one unit, are at most its units. What else a fleet may ask for:

* **roles**: a column serves whole requests, or only their prefill, or only their decode. Of
  every bucket, whole + prefill = whole + decode = its demand: what one pool prefills, some
  other pool decodes, in each bucket.
* **levels** of a load-duration curve, least first (`Task.levels`): a column of level m runs
  whenever the load is at level m or above, and its cost counts those hours only. At every
  level the columns of that level and below carry the demand of that level.
* **spares**: the fleet carries its demand, at every level, after the loss of any k replicas.
  With several buckets each type in use has a routing of its own in which it lacks k
  replicas; a mixture of losses is carried by the weighted mean of these routings. A type in
  use has at least k replicas.
* **failure domains**: likewise after the loss of all units of any one domain.
* **least replicas**: of the columns of level 0, which always run.
* **share on spot**: at every level and in every role, sum over the spot units of their
  `fleet_rate` is at most `max_spot_share` of the sum over all units that run.
* **slices**: in normal operation the flow of a bucket to a column is a whole number of equal
  slices of the bucket; after a loss requests are routed freely.

A serving task is **boxed** (`Task.boxed`) where its columns are replicas at a fixed mix and rate of
requests. One unit then brings its capacity C_kb of *every* bucket b at the same time: the rates
that it can be sent are a box, flow_kb <= C_kb u_k for each b by itself, not sum_b flow_kb / C_kb <= u_k.
There are no flows to decide. At every level a fleet carries its demand when sum_k C_kb u_k >= D_b for
every bucket that is asked for, over the columns that run, and after a loss of k replicas of a type j in use

    sum_i C_ib u_i - (k / R_j) C_jb  >=  D_b      for every such bucket b,

also where u_j has fewer than k replicas: a mixture of losses is then carried by the weighted mean of
these lines, and of one bucket they say what they say of any fleet. Boxed columns serve whole requests,
and there are no slices. What else holds of a mix, such as how many of its requests may be late, stands
in joint rows, with coefficients of either sign.

Money, request rates and carbon are integers (micro-dollars, micro-requests/s, milligrams),
so that sums are exact and an independent check can be exact too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import field, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.brief import brief, some
from planner.carriers import dataclass

WHOLE, PREFILL, DECODE = 0, 1, 2  # roles
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
SHARE, MOST_SHARE = 1e-6, 1e-3  # of the cost, within which costs are equal: by default; at most
MOST_CHOICES = 200  # of providers, gone through one by one
CENT = 10_000  # micro-USD: the least that costs may differ by and be equal


def tolerance_microusd(cost_microusd: int, share: float = SHARE) -> int:
    """By how much two costs may differ and still be equal: a share of the lower one, a cent at least; 0 with no share.

    Examples
    --------
    >>> tolerance_microusd(80_000_000), tolerance_microusd(48_806_000_000), tolerance_microusd(10**12, 0.0)
    (10000, 48806, 0)
    """
    return max(int(cost_microusd * share), CENT) if share > 0 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One workload. `first:stop` is its slice of the columns."""

    name: str
    kind: str  # training | serving | optional
    first: int
    stop: int
    count: int = 1  # identical training jobs
    demand_micro_per_s: tuple[int, ...] = ()  # serving: peak request rate of each bucket
    spare_replicas: int = 0
    min_replicas: int = 0
    levels: tuple[tuple[int, ...], ...] = ()  # demand of each bucket by level of load; the last is the peak
    max_spot_share: float | None = None  # read as the decimal number that it prints as
    integer_slices: int = 0  # equal slices of each bucket; 0 = any split
    survive_domain: bool = False  # carries its demand without any one failure domain
    boxed: bool = False  # serving: a unit brings its capacity of every bucket at the same time

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if self.boxed and self.integer_slices:
            raise ValueError(f"{self.name}: a boxed task has no slices")

    @property
    def demands(self) -> tuple[tuple[int, ...], ...]:
        """Demand of each bucket at every level of load, least level first; one level when none are given."""
        return self.levels or (self.demand_micro_per_s,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A joint limit: sum(coefficient * units of column) <= bound, in integers.

    A coefficient below zero is a supply: of capacity by an optional column, or of time in "b starts after
    a ends", end of a - start of b <= 0, where both stand in one row.
    """

    name: str  # scenario path of the limit, e.g. limits.max_devices or hardware.quotas[0]
    label: str  # for people: "at most 64 h100-* of gcp, 1 Dec to 31 Dec"
    bound: int
    columns: IntArray
    coefficients: IntArray


class Units(NamedTuple):
    """One unit of each column of a task, as parallel arrays; meanings as in `Program`."""

    cost_microusd: Sequence[int]
    finish_s: FloatArray
    nodes: IntArray
    replicas: IntArray
    capacity_micro_per_s: IntArray  # (n,) of the only bucket
    max_units: IntArray


OPTIONAL = (
    "role", "place", "level", "spot", "domain", "devices", "delay_ms", "pipelined", "plain", "undated", "bounded",
)  # fmt: skip


def _none() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Program:
    """Columns as parallel arrays of length n, tasks, and joint rows."""

    tasks: tuple[Task, ...]
    cost_microusd: IntArray  # (n,) of one unit
    finish_s: FloatArray  # (n,) of the plan's time: when a job is done, when a running period ends; else 0
    carbon_mg: IntArray  # (n,) of one unit; 0 when carbon plays no part
    nodes: IntArray  # (n,) shapes of one unit
    replicas: IntArray  # (n,) serving: replicas of one unit; training: 0
    capacity_micro_per_s: IntArray  # (n, buckets) serving: planned rate of one *unit* on each bucket alone, or, of a
    # boxed task, on each bucket beside all others
    max_units: IntArray  # (n,) upper bound of the unit variable, >= 1
    provider: IntArray  # (n,) index; -1 = nobody's
    offer: IntArray  # (n,) rank of the offer id in sorted order: the last tie-breaker
    rows: tuple[Row, ...] = ()
    max_providers: int | None = None
    objective: tuple[str, ...] = ("cost",)  # cost | time | carbon, most important first
    # serving; arrays of length n, or left out for zeros
    role: IntArray = field(default_factory=_none)  # WHOLE | PREFILL | DECODE
    place: IntArray = field(default_factory=_none)  # of a pool 1 + the number of its place; those of a fleet share one
    level: IntArray = field(default_factory=_none)  # runs at this level of its task and above
    spot: IntArray = field(default_factory=_none)  # 1 = counts towards the share on spot
    domain: IntArray = field(default_factory=_none)  # failure domain, by number
    # for ties (`planner.candidates.ties`); arrays of length n
    devices: IntArray = field(default_factory=_none)  # of one unit; left out: its nodes
    delay_ms: IntArray = field(default_factory=_none)  # a running period: by how much it puts off its job; left out: 0
    pipelined: IntArray = field(default_factory=_none)  # of a fleet, in replicas cut into a pipeline; left out: 0
    plain: IntArray = field(default_factory=_none)  # how involved its layout is, times devices; left out: 0
    undated: IntArray = field(default_factory=_none)  # devices at a price of an unknown day; left out: 0
    bounded: IntArray = field(default_factory=_none)  # 1 + number of the way in its table where a rate is only known
    # not to be higher; 0, or left out: rates are exact
    tie_share: float = 0.0  # of the cost, within which costs are equal
    most_tie_microusd: int = 0  # by which equal costs differ at most, however much the plan costs

    def __post_init__(self) -> None:
        """Fill what was left out, also when other columns replace those of a program without it."""
        for name in OPTIONAL:
            given = getattr(self, name)
            if len(given) != len(self.cost_microusd) and not given.any():
                plain = self.nodes if name == "devices" else np.zeros(len(self.cost_microusd), dtype=np.int64)
                object.__setattr__(self, name, plain)
            elif len(given) != len(self.cost_microusd):
                raise ValueError(f"{name}: {len(given)} of {len(self.cost_microusd)} columns")
        for task in self.tasks:
            if task.boxed and self.role[task.first : task.stop].any():
                raise ValueError(f"{task.name}: columns of a boxed task serve whole requests")

    def __repr__(self) -> str:
        tasks = some(task.name for task in self.tasks)
        return brief("Program", f"{self.column_count:,} columns", f"{len(self.rows):,} limits", tasks)

    @property
    def column_count(self) -> int:
        """Number of columns n."""
        return len(self.cost_microusd)

    def tie_microusd(self, cost_microusd: int) -> int:
        """By how much a plan may be dearer than the cheapest and still be as cheap.  [micro-USD]"""
        return min(tolerance_microusd(cost_microusd, self.tie_share), self.most_tie_microusd)


def restrict(program: Program, column_mask: NDArray[np.bool_]) -> tuple[Program, IntArray]:
    """The program with only the masked columns, and their indices in the old one.

    For re-solving with one kind of device, one provider and so on. A task may end up
    without columns, which `optimize` reports as infeasible by name.
    """
    kept = np.flatnonzero(np.asarray(column_mask, dtype=bool))
    position = np.full(program.column_count, -1, dtype=np.int64)
    position[kept] = np.arange(len(kept))

    def narrowed(row: Row) -> Row:
        inside = position[row.columns] >= 0
        return replace(row, columns=position[row.columns[inside]], coefficients=row.coefficients[inside])

    def moved(task: Task) -> Task:
        first, stop = np.searchsorted(kept, (task.first, task.stop))
        return replace(task, first=int(first), stop=int(stop))

    arrays = ("cost_microusd", "finish_s", "carbon_mg", "nodes", "replicas", "capacity_micro_per_s", "max_units")
    small = replace(
        program,
        tasks=tuple(moved(task) for task in program.tasks),
        rows=tuple(narrowed(row) for row in program.rows),
        **{name: getattr(program, name)[kept] for name in (*arrays, "provider", "offer", *OPTIONAL)},
    )
    return small, kept


def units_of(program: Program, among: Collection[int] | None = None) -> IntArray:
    """(n,) units that there are of each column; `among`: of some providers, and of what is nobody's, alone."""
    units = np.array(program.max_units, dtype=np.int64)
    if among is not None:
        units[~np.isin(program.provider, [-1, *among])] = 0
    return units


def choices_of_providers(program: Program) -> list[tuple[int, ...]]:
    """Every choice of as many providers as may be used; none where all may, or where there are too many choices."""
    providers, most = np.unique(program.provider[program.provider >= 0]).tolist(), program.max_providers
    if most is None or most >= len(providers) or math.comb(len(providers), most) > MOST_CHOICES:
        return []
    return list(combinations(providers, most))


def splits_simply(program: Program, task: Task) -> bool:
    """Whether total capacity alone tells if a fleet carries its demand: one bucket, one level, whole requests."""
    plain = not (task.levels or task.survive_domain or task.integer_slices)
    return plain and len(task.demand_micro_per_s) == 1 and not program.role[task.first : task.stop].any()


def task_of(program: Program) -> IntArray:
    """Number of the task of each column."""
    of = np.zeros(program.column_count, dtype=np.int64)
    for number, task in enumerate(program.tasks):
        of[task.first : task.stop] = number
    return of


def optional_columns(program: Program) -> NDArray[np.bool_]:
    """(n,) whether each column is bought for others to use, and asked for by nobody."""
    optional = np.zeros(program.column_count, dtype=bool)
    for task in program.tasks:
        optional[task.first : task.stop] = task.kind == "optional"
    return optional


def supplies(program: Program, task: Task) -> bool:
    """Whether more of a column of the task can give room in a joint row: a coefficient below zero."""
    for row in program.rows:
        less = row.columns[row.coefficients < 0]
        if len(less) and ((less >= task.first) & (less < task.stop)).any():
            return True
    return False


def earnings(task: Task, rates: NDArray[Any], prices: Sequence[int]) -> NDArray[Any]:
    """The most that one unit of each column earns at prices of the requests of each bucket.

    A column serves the bucket that pays best; a boxed one brings its rates of all of them.

    Parameters
    ----------
    rates
        (columns, buckets) of one unit, as whole numbers of any size.  [micro-requests/s]

    Examples
    --------
    >>> task, rates = Task(name="f", kind="serving", first=0, stop=1), np.array([[4, 12]], dtype=object)
    >>> earnings(task, rates, [2, 1]), earnings(replace(task, boxed=True), rates, [2, 1])
    (array([12], dtype=object), array([20], dtype=object))
    """
    each = rates * np.array(prices, dtype=object)
    return np.asarray(each.sum(axis=1) if task.boxed else each.max(axis=1))


def fleet_rates(program: Program, task: Task, columns: Sequence[int] | None = None) -> IntArray:
    """Rate of one unit of each column of a task, or of some of them, on the task's own traffic.  [micro-requests/s]

    Of the buckets that the column can serve, in the proportions of the peak:
    sum of demands / sum of (demand / capacity), rounded down; 0 when it can serve none.
    Of a boxed task, the sum of what it brings of the buckets that are asked for.

    Parameters
    ----------
    program
        With the columns of the task.
    task
        A fleet.
    columns
        Numbers in the program, columns of the task among them alone; None: all of the task.

    Examples
    --------
    Half the requests at 4/s, half at 12/s: 2 / (1/4 + 1/12) = 6/s.

    >>> ints = lambda *v: np.array(v, dtype=np.int64)
    >>> task = Task(name="f", kind="serving", first=0, stop=1, demand_micro_per_s=(5, 5))
    >>> program = Program(tasks=(task,), cost_microusd=ints(1), finish_s=np.zeros(1), carbon_mg=ints(0),
    ...     nodes=ints(1), replicas=ints(1), capacity_micro_per_s=np.array([[4, 12]]), max_units=ints(9),
    ...     provider=ints(0), offer=ints(0))
    >>> fleet_rates(program, task)
    array([6])
    """
    part = slice(task.first, task.stop) if columns is None else list(columns)
    if task.boxed:
        asked = np.array(task.demand_micro_per_s) > 0
        return np.asarray(program.capacity_micro_per_s[part, : len(asked)][:, asked].sum(axis=1))
    rates = []
    for capacity in program.capacity_micro_per_s[part].tolist():
        able = [(d, c) for d, c in zip(task.demand_micro_per_s, capacity) if d > 0 and c > 0]
        load = sum((Fraction(d, c) for d, c in able), Fraction(0))
        rates.append(int(sum(d for d, _ in able) / load) if load else 0)
    return np.array(rates, dtype=np.int64)


def decimal_share(share: float) -> Fraction:
    """A share as the decimal number that it prints as: 0.3 is 3/10."""
    return Fraction(repr(float(share)))
