"""Prices for a certificate: what a unit of each joint limit, and a request, is worth at the least cost.

They are the multipliers of one linear program over all columns,

    min  sum_k c_k u_k
    with sum_k u_k = count                        for every job,
         sum_k a_rk u_k <= b_r                    for every joint row,
         sum_k f_bk = 1 (prefill and decode)      for every bucket of a fleet at every level of its load,
         sum_b (D_b / C_bk) f_bk <= u_k           for every column that runs at the level,
         sum_k (C_bk / D_b) u_k >= 1              in their place for every bucket of a boxed fleet,

rounded to integers. Whoever holds them can prove a bound without any solver
(`planner.plan.certificate`), however they were found.

Where nothing meets every limit they are those of min sum_r x_r / |a_r| with sum_k a_rk u_k - x_r <= b_r: what the
limits would have to give way. Where the relaxation takes parts of units, `violated_line` finds prices of requests that
some whole units do not earn: the least cover of several such lines is the fleet in whole units.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import DECODE, PREFILL, IntArray, Program, Task, units_of
from planner.carriers import dataclass
from planner.optimize import highs
from planner.optimize.criteria import weights_of
from planner.optimize.status import FloatArray

ROW_STEPS = 1000  # prices of limits are whole thousandths of the criterion's unit
LINE_STEPS = 2**20  # of a line's dearest price
MISSING = 1e-9  # of a fleet's demand: less is rounding
REQUEST_STEPS = 2**40  # prices of requests are whole parts of a fleet's dearest


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPrices:
    """Of one fleet at one level of its load: whole numbers >= 0 by bucket, on the fleet's own scale."""

    task: str
    level: int
    prefill: tuple[int, ...]
    decode: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Multipliers: of rows by their number (in thousandths of the criterion's unit), and of requests."""

    rows: dict[int, int]
    requests: tuple[RequestPrices, ...]


def prices_of(
    program: Program,
    criterion: str,
    latest_s: float | None = None,
    *,
    among: Collection[int] | None = None,
    time_limit_s: float | None = None,
) -> Prices | None:
    """Prices that bound a linear criterion, or show that limits cannot be met; None without an answer, or one in time.

    Parameters
    ----------
    criterion
        ``cost``, ``carbon``, or ``limits``: by how much they would have to give way.
    latest_s
        Only columns that finish by then count.  [s]
    among
        Only columns of these providers count, and nobody's; None: all.
    time_limit_s
        For the relaxation; None: no limit.  [s]
    """
    elastic = criterion == "limits"
    matrix = _Matrix(program, elastic=elastic)
    upper = units_of(program, among).astype(np.float64)
    if latest_s is not None:
        upper[program.finish_s > latest_s] = 0.0
    weights = np.zeros(program.column_count) if elastic else weights_of(program, criterion).astype(np.float64)
    size = float(np.abs(weights).max(initial=0.0)) or 1.0
    duals = matrix.solve(weights / size, upper, time_limit_s)
    if duals is None:
        return None
    charged = {number: max(-float(dual), 0.0) for number, dual in enumerate(duals[matrix.rows])}
    if elastic:  # prices of nothing in particular: the least of them a million
        size = 1e6 / (min((price for price in charged.values() if price > 1e-12), default=1.0) * ROW_STEPS)
    rows = {number: price for number, dual in charged.items() if (price := round(dual * size * ROW_STEPS)) > 0}
    return Prices(rows=rows, requests=tuple(matrix.request_prices(duals)))


def violated_line(
    program: Program, task: Task, units: Mapping[int, int], *, sides: tuple[bool, bool] = (True, True)
) -> RequestPrices | None:
    """Prices at which some units do not earn what the demand of a fleet is worth; None when they carry it all.

    The demand of each level is carried by the units that run there, all of them or after the loss of the spare
    replicas of one column in use. The dual of routing it,

        max  sum_b (p_b + q_b) D_b - sum_k z_k v_k   with   z_k >= C_kb (p_b + q_b) for every bucket b (p_b, q_b alone
        in a pool of one role),   sum_b (p_b + q_b) D_b = 1,

    is above 0 where that is not possible; v_k are the units that are left. The level and loss with the most is taken.
    Of a boxed fleet the z_k are sums over the buckets, so the bucket that is shortest is priced alone.

    Parameters
    ----------
    units
        By column of the program.
    sides
        Whether prefill and decode are priced.
    """
    found: list[tuple[float, int, FloatArray]] = []
    used = [column for column, count in units.items() if count]
    if not used:
        return None
    for level, demand in enumerate(task.demands):
        runs = [column for column in used if program.level[column] <= level]
        for lost in (None, *runs) if task.spare_replicas else (None,):
            left = [
                units[k] - (task.spare_replicas / max(int(program.replicas[k]), 1) if k == lost else 0.0) for k in runs
            ]
            here = np.array(runs, dtype=np.int64)
            if task.boxed:
                missing = _shortest(program, here, left, demand)
            else:
                missing = _missing(program, here, left, demand, sides)
            if missing is not None and missing[0] > MISSING:
                found.append((missing[0], level, missing[1]))
    if not found:
        return None
    _, level, prices = max(found, key=lambda one: (one[0], -one[1]))
    dearest = float(prices.max())
    whole = [round(price / dearest * LINE_STEPS) for price in prices.tolist()]
    width = len(task.demands[level])
    return RequestPrices(task=task.name, level=level, prefill=tuple(whole[:width]), decode=tuple(whole[width:]))


def _missing(
    program: Program, columns: IntArray, left: Sequence[float], demand: Sequence[int], sides: tuple[bool, bool]
) -> tuple[float, FloatArray] | None:
    """What a share of the demand's worth is not earned at most, and the prices of prefill and decode at which."""
    width, count, size = len(demand), len(columns), float(sum(demand))
    role = program.role[columns]
    rates = program.capacity_micro_per_s[columns, :width] / size
    priced = np.concatenate([np.full(width, side) for side in sides])
    worth = np.concatenate([np.array(demand, dtype=np.float64) / size] * 2) * priced
    starts, variables, values = [0], list[int](), list[float]()
    for k in range(count):
        for bucket in range(width):
            variables.append(2 * width + k)
            values.append(1.0)
            for side, other in ((0, DECODE), (1, PREFILL)):
                if role[k] != other and rates[k, bucket] > 0 and sides[side]:
                    variables.append(side * width + bucket)
                    values.append(-float(rates[k, bucket]))
            starts.append(len(variables))
    variables += np.flatnonzero(worth).tolist()
    values += worth[worth > 0].tolist()
    starts.append(len(variables))
    low = np.concatenate([np.zeros(count * width), [1.0]])
    high = np.concatenate([np.full(count * width, np.inf), [1.0]])
    lines = highs.Lines(
        starts=np.array(starts), variables=np.array(variables), values=np.array(values), low=low, high=high
    )
    cost = np.concatenate([-worth, np.array(left, dtype=np.float64)])
    upper = np.concatenate([np.where(worth > 0, np.inf, 0.0), np.full(count, np.inf)])
    found = highs.optimum(highs.program(cost, upper, lines))
    return None if found is None else (-float(cost @ found[0]), found[0][: 2 * width])


def _shortest(
    program: Program, columns: IntArray, left: Sequence[float], demand: Sequence[int]
) -> tuple[float, FloatArray] | None:
    """Of a boxed fleet: what a share of the shortest bucket's demand is not brought, and a price of it alone."""
    asked = np.array(demand, dtype=np.float64)
    brought = np.array(left) @ program.capacity_micro_per_s[columns, : len(demand)]
    missing = np.where(asked > 0, 1.0 - brought / np.maximum(asked, 1.0), 0.0)
    prices = np.zeros(2 * len(demand))
    prices[int(np.argmax(missing))] = 1.0
    return float(missing.max()), prices


class _Matrix:
    """Lines of the relaxation as (line, variable, coefficient), with their sides."""

    def __init__(self, program: Program, *, elastic: bool = False) -> None:
        self.program = program
        self.given = len(program.rows) if elastic else 0  # how far each joint row gives way, after the columns
        self.count = program.column_count + self.given
        self.entries: list[tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]] = []
        self.low: list[float] = []
        self.high: list[float] = []
        for number, row in enumerate(program.rows):
            # money rows are of the order of 10^12: brought to one
            size = float(max(np.abs(row.coefficients).max(initial=1), 1))
            own, gives = ([program.column_count + number], [-1.0]) if elastic else ([], [])
            variables = np.concatenate([row.columns, np.array(own, dtype=np.int64)])
            self.line(variables, np.concatenate([row.coefficients / size, gives]), high=row.bound / size)
        self.rows = slice(0, len(program.rows))
        self.sizes = [float(max(np.abs(row.coefficients).max(initial=1), 1)) for row in program.rows]
        self.routes: dict[tuple[str, int, int, bool], int] = {}
        for task in program.tasks:
            if task.kind == "training":
                columns = np.arange(task.first, task.stop)
                self.line(columns, np.ones(len(columns)), low=task.count, high=task.count)
            elif task.kind == "serving":
                self._fleet(task)

    def line(self, variables: IntArray, coefficients: FloatArray, *, low: float = -np.inf, high: float = np.inf) -> int:
        """Add a line; its number."""
        number = len(self.low)
        self.entries.append((np.full(len(variables), number), np.asarray(variables), np.asarray(coefficients)))
        self.low.append(low)
        self.high.append(high)
        return number

    def _fleet(self, task: Task) -> None:
        program, columns = self.program, np.arange(task.first, task.stop)
        if task.min_replicas:
            running = columns[program.level[columns] == 0]
            self.line(running, program.replicas[running].astype(np.float64), low=task.min_replicas)
        for level, demand in enumerate(task.demands):
            running = columns[program.level[columns] <= level]
            if task.boxed:
                self._boxes(task, running, level)
                continue
            role = program.role[running]
            load: list[tuple[IntArray, IntArray, FloatArray]] = []
            for bucket, rate in enumerate(demand):
                able = np.flatnonzero(program.capacity_micro_per_s[running, bucket] > 0)
                if rate <= 0 or not len(able):
                    continue
                flows = self.count + np.arange(len(able))
                self.count += len(able)
                for decode, part in ((False, role[able] != DECODE), (True, role[able] != PREFILL)):
                    if decode and not role.any():
                        break
                    self.routes[task.name, level, bucket, decode] = self.line(
                        flows[part], np.ones(int(part.sum())), low=1.0
                    )
                load.append((flows, able, rate / program.capacity_micro_per_s[running[able], bucket]))
            if load:
                self._loads(running, load)

    def _boxes(self, task: Task, running: IntArray, level: int) -> None:
        """One line for every bucket that is asked for: what the units bring is all of it."""
        for bucket, rate in enumerate(task.demands[level]):
            brought = self.program.capacity_micro_per_s[running, bucket]
            if rate > 0 and brought.any():
                self.routes[task.name, level, bucket, False] = self.line(
                    running[brought > 0], brought[brought > 0] / rate, low=1.0
                )

    def _loads(self, running: IntArray, load: list[tuple[IntArray, IntArray, FloatArray]]) -> None:
        """One line for every column that runs: its loads, less its units, are at most 0."""
        flows, able, values = (np.concatenate(parts) for parts in zip(*load))
        first = len(self.low)
        self.entries.append((first + able, flows, values))
        self.entries.append((first + np.arange(len(running)), running, -np.ones(len(running))))
        self.low += [-np.inf] * len(running)
        self.high += [0.0] * len(running)

    def solve(self, weights: FloatArray, upper: FloatArray, time_limit_s: float | None) -> FloatArray | None:
        """Multipliers of all lines in the weights' unit; those of rows count one unit of their bound."""
        lines, variables, values = (
            (np.concatenate(parts) for parts in zip(*self.entries)) if self.entries else ((),) * 3
        )
        order = np.argsort(lines, kind="stable")
        starts = np.searchsorted(np.asarray(lines)[order], np.arange(len(self.low) + 1))
        extra = self.count - len(weights)
        give, flow = np.ones(self.given), extra - self.given
        cost = np.concatenate([weights, give, np.zeros(flow)])
        most = np.concatenate([upper, np.inf * give, np.ones(flow)])
        if not len(self.low) or not len(cost):
            return np.zeros(len(self.low))
        if not highs.available():
            return None
        sides = {"low": np.array(self.low), "high": np.array(self.high)}
        entries = highs.Lines(
            starts=starts, variables=np.asarray(variables)[order], values=np.asarray(values)[order], **sides
        )
        found = highs.optimum(highs.program(cost, most, entries, time_limit_s=time_limit_s))
        if found is None:
            return None
        duals = found[1]
        duals[self.rows] /= np.array(self.sizes)
        return duals

    def request_prices(self, duals: FloatArray) -> Iterator[RequestPrices]:
        """Of every fleet and level, on one scale for a fleet."""
        for task in self.program.tasks:
            mine = {key: max(float(duals[line]), 0.0) for key, line in self.routes.items() if key[0] == task.name}
            worth = {
                key: price / task.demands[key[1]][key[2]] for key, price in mine.items()
            }  # of one request, not of the whole bucket
            dearest = max(worth.values(), default=0.0)
            if dearest <= 0:
                continue
            for level, demand in enumerate(task.demands):
                sides = [
                    tuple(
                        round(worth.get((task.name, level, bucket, decode), 0.0) / dearest * REQUEST_STEPS)
                        for bucket in range(len(demand))
                    )
                    for decode in (False, True)
                ]
                if any(map(any, sides)):
                    yield RequestPrices(task=task.name, level=level, prefill=sides[0], decode=sides[1])
