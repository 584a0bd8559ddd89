"""Random infeasible programs with limits on columns too, and exact answers by trying everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from planner.candidates.program import Program, restrict
from planner.optimize.break_even import BreakEven, break_even
from planner.optimize.conflict import find_conflict
from planner.optimize.elastic import Combined, combined_repair
from planner.optimize.limited import PROVIDERS, Filter, Limited, limit_of, used_by
from planner.optimize.repair import Repair, single_repair
from tests.optimize.brute import best, random_program, ways
from tests.optimize.instances import ints

KINDS = 3  # of hardware in break-even instances


def limited_program(seed: int) -> Limited:
    """A random program; half of its tasks have a deadline on their columns."""
    rng = np.random.default_rng(seed + 10**6)
    program = random_program(seed)
    filters = []
    for task in program.tasks:
        if rng.random() < 0.5:
            need = np.zeros(program.column_count, dtype=np.int64)
            need[task.first : task.stop] = rng.integers(1, 9, task.stop - task.first)
            filters.append(Filter(name=f"{task.name}.deadline", label="", bound=int(rng.integers(1, 6)), need=need))
    return Limited(program=program, filters=tuple(filters))


def cheapest_by_brute_force(limited: Limited, more: dict[str, int | None]) -> int | None:
    """Least cost under loosened limits; None when there is no plan."""
    program, mask = limited.at(more)
    found = best(replace(restrict(program, mask)[0], objective=("cost",)))
    return None if found is None else int(found[0][0])


def infeasible_instances(seeds: Sequence[int]) -> Iterator[tuple[int, Limited]]:
    """Those of the seeds that have no plan, by brute force."""
    for seed in seeds:
        limited = limited_program(seed)
        if cheapest_by_brute_force(limited, {}) is None:
            yield seed, limited


@dataclass(slots=True)
class Tally:
    """What was checked of one instance, and what was wrong."""

    conflict_members: int = 0
    repairs: int = 0
    not_enough: int = 0
    combined: int = 0  # limits loosened together; 0 = no loosening does
    wrong: list[str] = field(default_factory=list)


def checked(limited: Limited) -> Tally:
    """The conflict set, every single repair and the combined one, each held against brute force."""
    tally = Tally()
    names = find_conflict(limited).names
    tally.conflict_members = len(names)
    tally.wrong += list(_wrong_conflict(limited, names))
    for name in limited.limits:
        repair = single_repair(limited, name)
        tally.wrong += list(_wrong_repair(limited, names, repair))
        tally.repairs += repair.more is not None
        tally.not_enough += repair.more is None
    together = combined_repair(limited, limited.limits)
    tally.combined = len(together.more) if together else 0
    tally.wrong += list(_wrong_combination(limited, together))
    return tally


def _wrong_conflict(limited: Limited, names: Sequence[str]) -> Iterator[str]:
    if not names or best(limited.only(names)) is not None:
        yield f"conflict {names} can be met"
    for name in names:
        if best(limited.only([other for other in names if other != name])) is None:
            yield f"conflict {names} without {name} cannot be met"


def _wrong_repair(limited: Limited, conflict: Sequence[str], repair: Repair) -> Iterator[str]:
    name, more = repair.name, repair.more
    if not repair.proven:
        yield f"{name}: not proven"
    if more is None:
        if cheapest_by_brute_force(limited, {name: None}) is not None:
            yield f"{name}: called not enough, and is"
        return
    if name not in conflict:
        yield f"{name}: repairs, but is no member of the conflict set"
    if cheapest_by_brute_force(limited, {name: more}) != repair.cost_microusd:
        yield f"{name} + {more}: does not cost {repair.cost_microusd}"
    if cheapest_by_brute_force(limited, {name: more - 1}) is not None:
        yield f"{name} + {more - 1}: is enough already"


def _wrong_combination(limited: Limited, together: Combined | None) -> Iterator[str]:
    if together is None:
        if cheapest_by_brute_force(limited, dict.fromkeys(limited.limits)) is not None:
            yield "no combination found, and there is one"
        return
    if not together.proven:
        yield "combination not proven"
    if cheapest_by_brute_force(limited, dict(together.more)) != together.cost_microusd:
        yield f"combination {together.more} does not cost {together.cost_microusd}"
    least = least_weight(limited)
    if least is not None and together.weight != least:
        yield f"combination weighs {together.weight}, the least is {least}"


def least_weight(limited: Limited) -> int | None:
    """Least weighted slack over every plan, whatever the limits; None where limits move in steps of more than one."""
    if any(row.bound >= 2000 for row in limited.program.rows):
        return None
    program = limited.at(dict.fromkeys(limited.limits))[0]
    return min((_weight(limited, units) for units in _all_plans(program)), default=None)


def _all_plans(program: Program) -> Iterator[Any]:
    plans = [np.zeros(program.column_count, dtype=np.int64)]
    for task in program.tasks:
        options = []
        for way in ways(program, task):
            units = np.zeros(program.column_count, dtype=np.int64)
            for column, amount in way:
                units[column] = amount
            options.append(units)
        plans = [one + other for one in plans for other in options]
    yield from plans


def _weight(limited: Limited, units: Any) -> int:
    """As stated: each limit by the share of itself that it is loosened by, late units one by one."""
    program, total = limited.program, 0
    for name in {limit_of(row) for row in program.rows}:
        rows = limited.rows_of(name)
        over = max(0, *(used_by(row, units) - row.bound for row in rows))
        total += over * _share(1, min(row.bound for row in rows))
    for one in limited.filters:
        for column in np.flatnonzero(units):
            total += int(units[column]) * _share(max(int(one.need[column]) - one.bound, 0), one.bound)
    if PROVIDERS in limited.limits:
        most = program.max_providers or 0
        total += _share(max(len(np.unique(program.provider[units > 0])) - most, 0), most)
    return total


def _share(units: int, bound: int) -> int:
    return max(round(1_000_000 * units / max(bound, 1)), 1) if units else 0


# ---- break-even


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceCase:
    """A feasible program with hardware that its best plan does not use."""

    program: Program
    priced: Any
    best_microusd: int

    def break_even(self) -> BreakEven:
        """What is tested."""
        return break_even(self.program, self.priced, self.best_microusd)

    def best_at(self, share: Fraction) -> tuple[int, bool]:
        """Least cost times the share's denominator at a share of the price, and whether the plan uses the hardware."""
        factors = np.where(self.priced, share.numerator, share.denominator)
        cost = [int(factor) * int(cost) for factor, cost in zip(factors, self.program.cost_microusd)]
        found = best(replace(self.program, cost_microusd=ints(cost)))
        assert found is not None
        return int(found[0][0]), bool((found[1][self.priced] > 0).any())


def price_cases(seeds: Sequence[int]) -> Iterator[tuple[int, PriceCase]]:
    """Every kind of hardware that is not in the best plan of each feasible program."""
    for seed in seeds:
        rng = np.random.default_rng(seed + 7)
        program = random_program(seed)
        program = replace(
            program,
            cost_microusd=ints(rng.integers(100, 999, program.column_count)),
            objective=("cost",),
            rows=tuple(row for row in program.rows if row.name != "limits.budget"),
        )
        kind = rng.integers(0, KINDS, program.column_count)
        found = best(program)
        used = set() if found is None else set(kind[found[1] > 0].tolist())
        for number in range(KINDS) if found is not None else ():
            if number not in used and (kind == number).any():
                assert found is not None
                yield seed, PriceCase(program=program, priced=kind == number, best_microusd=int(found[0][0]))
