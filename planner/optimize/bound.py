"""Prices for a certificate: what a unit of each joint limit, and a request, is worth at the least cost.

They are the multipliers of one linear program over all columns,

    min  sum_k c_k u_k
    with sum_k u_k = count                        for every job,
         sum_k a_rk u_k <= b_r                    for every joint row,
         sum_k f_bk = 1 (prefill and decode)      for every bucket of a fleet at every level of its load,
         sum_b (D_b / C_bk) f_bk <= u_k           for every column that runs at the level,

rounded to integers. Whoever holds them can prove a bound without any solver
(`planner.plan.certificate`), however they were found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import DECODE, PREFILL, IntArray, Program, Task
from planner.optimize import highs
from planner.optimize.criteria import weights_of
from planner.optimize.status import FloatArray

ROW_STEPS = 1000  # prices of limits are whole thousandths of the criterion's unit
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
    program: Program, criterion: str, latest_s: float | None = None, *, time_limit_s: float | None = None
) -> Prices | None:
    """Prices that bound a linear criterion; None when the relaxation has no answer, or none in time.

    Parameters
    ----------
    criterion
        ``cost`` or ``carbon``.
    latest_s
        Only columns that finish by then count.  [s]
    """
    matrix = _Matrix(program)
    upper = np.array(program.max_units, dtype=np.float64)
    if latest_s is not None:
        upper[program.finish_s > latest_s] = 0.0
    weights = weights_of(program, criterion).astype(np.float64)
    size = float(np.abs(weights).max(initial=0.0)) or 1.0
    duals = matrix.solve(weights / size, upper, time_limit_s)
    if duals is None:
        return None
    rows = {
        number: price
        for number, dual in enumerate(duals[matrix.rows])
        if (price := round(max(-float(dual), 0.0) * size * ROW_STEPS)) > 0
    }
    return Prices(rows=rows, requests=tuple(matrix.request_prices(duals)))


class _Matrix:
    """Lines of the relaxation as (line, variable, coefficient), with their sides."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.count = program.column_count
        self.entries: list[tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]] = []
        self.low: list[float] = []
        self.high: list[float] = []
        for row in program.rows:
            # money rows are of the order of 10^12: brought to one
            size = float(max(np.abs(row.coefficients).max(initial=1), 1))
            self.line(row.columns, row.coefficients / size, high=row.bound / size)
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
        cost, most = np.concatenate([weights, np.zeros(extra)]), np.concatenate([upper, np.ones(extra)])
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
