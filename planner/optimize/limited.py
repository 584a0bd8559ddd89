"""A program whose limits can be moved: joint rows, limits on single columns, the number of providers.

Every limit goes by the name of the business limit that it stands for, the scenario path: rows
``limits.max_devices@0`` and ``limits.max_devices@1`` of two sets of concurrent jobs are one limit.
To *loosen* a limit by m whole units means

* rows: m is added to the bound of each of them (rows with supplies as well: what they ask for
  beyond their supplies may be m more);
* a `Filter`, such as a deadline in seconds: columns that need up to m more are open too;
* ``limits.max_providers``: m providers more.

Plans under looser limits include those under tighter ones, so "can be met" is monotone in every
m, and a least m can be found by bisection. One thing breaks that: with a later deadline two jobs
may come to run at the same time and then share limits. `steps` holds, for each filter, the values
of m from which on the rows are others, and `rows_at` gives them; between two steps it is monotone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import IntArray, Program, Row, restrict
from planner.carriers import dataclass
from planner.deadline import left_s
from planner.optimize.solve import bounds_noted, optimize
from planner.optimize.status import Solution, Status, uninterrupted

PROVIDERS, BUDGET = "limits.max_providers", "limits.budget"
More = Mapping[str, int | None]  # units by which limits are loosened; None = left out


class BoundedRates(Exception):
    """A plan was found that rests on rates which are only known not to be higher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A limit on single columns: those that need more than `bound` are closed.

    Parameters
    ----------
    need
        (n,) whole units that each column needs, 0 where the limit does not concern it; a deadline's are
        seconds from the start of the job to its end at the confidence asked for, rounded up.
    """

    name: str
    label: str
    bound: int
    need: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """A program, limits on its columns, and names of rows that are no limits but define the plan."""

    program: Program
    filters: tuple[Filter, ...] = ()
    fixed: frozenset[str] = frozenset()  # never loosened, never left out
    steps: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rows_at: Callable[[More], tuple[Row, ...]] | None = None

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the workloads."""
        return tuple(task.name for task in self.program.tasks if task.kind != "optional")

    @property
    def limits(self) -> tuple[str, ...]:
        """Names of what can be loosened, each once: filters, the provider limit, rows."""
        names = [one.name for one in self.filters]
        names += [PROVIDERS] if self.program.max_providers is not None else []
        names += [limit_of(row) for row in self.program.rows]
        return tuple(name for name in dict.fromkeys(names) if name not in self.fixed)

    def rows_of(self, name: str) -> tuple[Row, ...]:
        """The rows of a limit."""
        return tuple(row for row in self.program.rows if limit_of(row) == name)

    def filter_of(self, name: str) -> Filter | None:
        """The filter of that name."""
        return next((one for one in self.filters if one.name == name), None)

    def at(self, more: More) -> tuple[Program, NDArray[np.bool_]]:
        """The program with some limits loosened or left out, and the columns that are open in it."""
        rows = self.program.rows if self.rows_at is None else self.rows_at(more)
        mask = np.ones(self.program.column_count, dtype=bool)
        for one in self.filters:
            extra = more.get(one.name, 0)
            if extra is not None:
                mask &= one.need <= one.bound + extra
        most, extra = self.program.max_providers, more.get(PROVIDERS, 0)
        loosened = replace(
            self.program,
            rows=tuple(row for row in (_loosened(row, more.get(limit_of(row), 0)) for row in rows) if row),
            max_providers=None if most is None or extra is None else most + extra,
        )
        return loosened, mask

    def only(self, names: Collection[str]) -> Program:
        """The program with the demands and limits of these names alone, and with what is fixed."""
        kept = set(names) | self.fixed
        program, mask = self.at({name: None for name in self.limits if name not in kept})
        tasks = tuple(task for task in program.tasks if task.name in kept or task.kind == "optional")
        mine = np.zeros(program.column_count, dtype=bool)
        for task in tasks:
            mine[task.first : task.stop] = True
        return restrict(replace(program, tasks=tasks), mine & mask)[0]


def limit_of(row: Row) -> str:
    """Name of the business limit that a row belongs to."""
    return row.name.split("@")[0]


def _loosened(row: Row, extra: int | None) -> Row | None:
    if extra is None:
        return None
    return replace(row, bound=row.bound + extra) if extra else row


def used_by(row: Row, units: IntArray) -> int:
    """Left side of a row in whole units."""
    return sum(int(a) * int(units[k]) for k, a in zip(row.columns, row.coefficients) if units[k])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Puts programs to the optimiser; `options` are those of `optimize` (solver, time_limit_s of each, threads).

    Parameters
    ----------
    exact
        A plan of rates that are only bounded ends the question: whoever asks makes them exact and asks again.
    stop_at
        Time of the monotonic clock from which on nothing is solved any more: answers are then `stopped`.  [s]
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    stop_at: float | None = None
    exact: bool = False

    @property
    def spent(self) -> bool:
        """Whether nothing is solved any more."""
        return self.stop_at is not None and time.monotonic() >= self.stop_at

    def cheapest(self, program: Program, mask: NDArray[np.bool_] | None = None) -> Solution:
        """The least cost.

        Raises
        ------
        BoundedRates
            Exact rates are asked for, and a plan is made of others.
        """
        asked, most = _without_budget(replace(program, objective=("cost",)))
        options = dict(self.options)
        if self.stop_at is not None:
            left = self.stop_at - time.monotonic()
            if left <= 0:
                return _stopped(program)
            limit = left_s(options.get("time_limit_s"))
            options["time_limit_s"] = left if limit is None else min(limit, left)
        answer = uninterrupted(optimize(asked, columns=mask, cost_only=True, **options))
        if most is not None and answer.has_plan and answer.cost_microusd > most:
            proven = answer.status is Status.OPTIMAL
            return replace(_stopped(program), status=Status.INFEASIBLE if proven else Status.STOPPED)
        if self.exact and bounds_noted():
            raise BoundedRates
        return answer

    def within(self, share: float) -> Asker:
        """The same for a share of the time that is left."""
        if self.stop_at is None:
            return self
        now = time.monotonic()
        return replace(self, stop_at=now + share * max(self.stop_at - now, 0.0))

    def any_plan(self, program: Program, mask: NDArray[np.bool_] | None = None) -> Solution:
        """Some plan, or a proof that there is none: every plan costs nothing."""
        return self.cheapest(replace(program, cost_microusd=0 * program.cost_microusd), mask)

    def feasible(self, program: Program, mask: NDArray[np.bool_] | None = None) -> bool | None:
        """Whether there is a plan; None = neither shown."""
        return verdict(self.any_plan(program, mask))


def _without_budget(program: Program) -> tuple[Program, int | None]:
    """The program without a budget, and the most that its plan may cost then; as it is, None, where there is none.

    Whether anything is within a budget is slow to tell of costs near it: parts of units are. What costs least is quick.
    """
    rows = [row for row in program.rows if row.name == BUDGET]
    if len(rows) != 1:
        return program, None
    costs = np.zeros(program.column_count, dtype=np.int64)
    costs[rows[0].columns] = rows[0].coefficients
    if (costs < 0).any() or (program.cost_microusd.any() and not np.array_equal(costs, program.cost_microusd)):
        return program, None
    others = tuple(row for row in program.rows if row.name != BUDGET)
    return replace(program, cost_microusd=costs, rows=others, tie_share=0.0), rows[0].bound


def _stopped(program: Program) -> Solution:
    units = np.zeros(program.column_count, dtype=np.int64)
    flows = np.zeros(program.capacity_micro_per_s.shape)
    return Solution(status=Status.STOPPED, units=units, flows=flows, stopped_by="time-limit")


def verdict(solution: Solution) -> bool | None:
    """Has a plan, proven to have none, or None = neither shown."""
    return True if solution.has_plan else False if solution.status is Status.INFEASIBLE else None
