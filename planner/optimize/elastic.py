"""The cheapest combined repair: several limits loosened a little, where one alone may not be enough.

Elastic model. Every limit q of those named gets a slack s_q >= 0, and the sum of w_q s_q is minimised:

* rows: an optional column whose coefficient in each row of q is -step_q;
* filters: a column that needs more than the bound is open, at the price of what it needs more;
* providers: each number of providers is a model of its own.

w_q makes slack relative: loosening a limit by 1 % of itself weighs the same whatever its unit (a limit of
0 counts as 1). Rows are loosened in steps of at most 1/1000 of the limit, at least one unit. The least sum is
a solved integer program; the least cost with no more slack of each limit than that is a second one. Limits
are then stated as that plan uses them, so that the repair does when applied.

Late jobs of one workload weigh by the sum over its jobs. Where later deadlines bring new rows
(`Limited.steps`), the least sum is that of the rows as they are, and the repair is not called proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import OPTIONAL, IntArray, Program, Row, Task
from planner.carriers import dataclass
from planner.optimize.limited import PROVIDERS, Asker, Limited, limit_of, used_by
from planner.optimize.status import Solution, Status

WEIGHT = 1_000_000  # of loosening a limit by its own size
STEPS = 1000  # a limit is loosened in steps of this part of it
SLACK = "~slack"


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """Units by which each limit is loosened (only those that are), the least cost then, and the weighted sum."""

    more: Mapping[str, int]
    cost_microusd: int
    weight: int  # least weighted sum of slack; a limit doubled weighs a million
    proven: bool
    units: IntArray


def combined_repair(limited: Limited, names: Sequence[str], asker: Asker | None = None) -> Combined | None:
    """The least weighted loosening of these limits together that gives a plan.

    None when no loosening of them does, or none was found in time.

    Parameters
    ----------
    limited
        The program and its limits; those that are not named are held.
    names
        Limits that may be loosened.
    asker
        Solves the steps; None = HiGHS without a time limit.
    """
    asker = asker or Asker()
    model = _Elastic(limited=limited, names=tuple(names))
    best, extra, sure = _least(model, asker)
    if best is None:
        return None
    more = model.slack(best.units) | ({PROVIDERS: extra} if extra else {})
    final = asker.cheapest(*limited.at(more))
    if not final.has_plan:
        return None
    return Combined(
        more={name: units for name, units in model.used(more, final.units).items() if units > 0},
        cost_microusd=final.cost_microusd,
        weight=best.cost_microusd + model.provider_weight(extra),
        proven=sure and final.status is Status.OPTIMAL and not any(limited.steps.values()),
        units=final.units,
    )


def _least(model: _Elastic, asker: Asker) -> tuple[Solution | None, int, bool]:
    """The least weighted slack over all numbers of providers, that number, and whether it is proven."""
    best: Solution | None = None
    least, number, sure = 0, 0, True
    for extra in model.provider_counts():
        charge = model.provider_weight(extra)
        if best is not None and charge >= least:
            break
        answer = asker.any_plan(*model.limited.at({**dict.fromkeys(model.names), PROVIDERS: extra}))
        if answer.has_plan:
            answer = asker.cheapest(*model.program(extra, model.weight(answer.units)))
        sure &= answer.status in (Status.OPTIMAL, Status.INFEASIBLE)
        if answer.has_plan and (best is None or answer.cost_microusd + charge < least):
            best, least, number = answer, answer.cost_microusd + charge, extra
    return best, number, sure


def _share(units: int, bound: int) -> int:
    """Weight of loosening a limit; what there is of it, however small, weighs something."""
    return max(round(WEIGHT * units / max(bound, 1)), 1) if units > 0 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Elastic:
    """The limits that may be loosened, and how much each weighs."""

    limited: Limited
    names: tuple[str, ...]

    @property
    def loose(self) -> list[str]:
        """Those that have rows."""
        return [name for name in self.names if self.limited.rows_of(name)]

    def bound(self, name: str) -> int:
        return min(row.bound for row in self.limited.rows_of(name))

    def step(self, name: str) -> int:
        return max(1, self.bound(name) // STEPS)

    def step_weight(self, name: str) -> int:
        return _share(self.step(name), self.bound(name))

    def provider_counts(self) -> range:
        """Numbers of providers more to try."""
        most = self.limited.program.max_providers
        if most is None or PROVIDERS not in self.names:
            return range(1)
        return range(max(len(np.unique(self.limited.program.provider)) - most, 0) + 1)

    def provider_weight(self, extra: int) -> int:
        return _share(extra, self.limited.program.max_providers or 0)

    def lateness(self) -> IntArray:
        """(n,) weight of one unit of each column for what it needs beyond the filters."""
        weight = np.zeros(self.limited.program.column_count, dtype=np.int64)
        for one in self.limited.filters:
            if one.name in self.names:
                over = np.maximum(one.need - one.bound, 0)
                weight += np.array([_share(int(each), one.bound) for each in over], dtype=np.int64)
        return weight

    def over(self, name: str, units: IntArray) -> int:
        """Units by which a plan goes beyond a limit that has rows."""
        return max(0, *(used_by(row, units) - row.bound for row in self.limited.rows_of(name)))

    def weight(self, units: IntArray) -> int:
        """Weighted slack of a plan that keeps none of the limits."""
        steps = sum(-(-self.over(name, units) // self.step(name)) * self.step_weight(name) for name in self.loose)
        return steps + int(self.lateness() @ units)

    def columns(self) -> list[tuple[str, int]]:
        """Slack columns as (limit, provider): slack belongs to no provider, so there is some of each to take."""
        program = self.limited.program
        sellers = [0] if program.max_providers is None else np.unique(program.provider).tolist()
        return [(name, seller) for name in self.loose for seller in sellers]

    def program(self, providers: int, most: int) -> tuple[Program, NDArray[np.bool_]]:
        """The model in which only slack costs, for weighted sums of at most `most`."""
        late = {one.name: None for one in self.limited.filters if one.name in self.names}
        program, mask = self.limited.at({**late, PROVIDERS: providers})
        columns = self.columns()
        units = np.array([most // self.step_weight(name) for name, _ in columns], dtype=np.int64)
        weights = [self.step_weight(name) for name, _ in columns]
        wide = _appended(program, units, [seller for _, seller in columns])
        cost = np.append(self.lateness(), weights).astype(np.int64)
        rows = tuple(self._loosened(row, columns) for row in program.rows)
        return replace(wide, rows=rows, cost_microusd=cost), np.append(mask, units > 0)

    def _loosened(self, row: Row, columns: Sequence[tuple[str, int]]) -> Row:
        first, limit = self.limited.program.column_count, limit_of(row)
        mine = [first + number for number, (name, _) in enumerate(columns) if name == limit]
        supply = np.full(len(mine), -self.step(limit) if mine else 0, dtype=np.int64)
        with_slack = np.append(row.columns, np.array(mine, dtype=np.int64))
        return replace(row, columns=with_slack, coefficients=np.append(row.coefficients, supply))

    def slack(self, units: IntArray) -> dict[str, int]:
        """What the answer of the model loosens, in units of each limit."""
        first = self.limited.program.column_count
        more = dict.fromkeys(self.loose, 0)
        for (name, _), taken in zip(self.columns(), units[first:]):
            more[name] += int(taken) * self.step(name)
        return more | self._late(units[:first])

    def _late(self, units: IntArray) -> dict[str, int]:
        return {
            one.name: max(int((one.need[units > 0] - one.bound).max(initial=0)), 0)
            for one in self.limited.filters
            if one.name in self.names
        }

    def used(self, more: Mapping[str, int], units: IntArray) -> dict[str, int]:
        """The same limits as a plan uses them."""
        exact = {name: self.over(name, units) for name in self.loose} | self._late(units)
        if PROVIDERS in more:
            used = len(np.unique(self.limited.program.provider[units > 0]))
            exact[PROVIDERS] = used - (self.limited.program.max_providers or 0)
        return exact


def _appended(program: Program, most: IntArray, provider: Sequence[int]) -> Program:
    """The program with optional columns that take nothing."""
    count, first = len(most), program.column_count
    if not count:
        return program
    zeros = np.zeros(count, dtype=np.int64)
    arrays = ("cost_microusd", "carbon_mg", "nodes", "replicas", *OPTIONAL)
    nothing: dict[str, Any] = {name: np.append(getattr(program, name), zeros) for name in arrays}
    return replace(
        program,
        tasks=(*program.tasks, Task(name=SLACK, kind="optional", first=first, stop=first + count)),
        finish_s=np.append(program.finish_s, np.zeros(count)),
        capacity_micro_per_s=np.pad(program.capacity_micro_per_s, ((0, count), (0, 0))),
        max_units=np.append(program.max_units, np.maximum(most, 1)),
        offer=np.append(program.offer, zeros + (int(program.offer.max(initial=-1)) + 1)),
        provider=np.append(program.provider, np.array(provider, dtype=np.int64)),
        **nothing,
    )
