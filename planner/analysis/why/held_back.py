"""Which of the limits that workloads share leave no room: each is left out in turn, and the question asked again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from planner.analysis.why.relaxed import STRUCTURE
from planner.candidates.program import Program
from planner.candidates.shared_nodes import DEVICES_OF
from planner.optimize.break_even import BUDGET, FORCED
from planner.optimize.limited import PROVIDERS, Asker, limit_of
from planner.units import counted

MOST = 12  # limits, each of which is a program to solve
_NO_LIMITS = (STRUCTURE, DEVICES_OF, FORCED, BUDGET)


def held_back_by(program: Program, asker: Asker) -> list[str]:
    """Limits without any one of which the program has a plan, in words; else one entry of fewest that are too many.

    Parameters
    ----------
    program
        One that has no plan.
    asker
        How programs are solved.
    """
    told = {
        limit_of(row): f"{limit_of(row)} ({row.label.partition(', ')[0]})"
        for row in program.rows
        if not row.name.startswith(_NO_LIMITS)
    }
    if program.max_providers is not None:
        told[PROVIDERS] = f"{PROVIDERS} ({counted(program.max_providers, 'provider')})"
    if len(told) > MOST or not asker.feasible(_without(program, told)):
        return []
    alone = [name for name in told if asker.feasible(_without(program, [name]))]
    if alone:
        return [told[name] for name in alone]
    gone = dict(told)
    for name in told:
        rest = [one for one in gone if one != name]
        if asker.feasible(_without(program, rest)):
            del gone[name]
    return [" and ".join(gone.values())]


def _without(program: Program, names: Collection[str]) -> Program:
    rows = tuple(row for row in program.rows if limit_of(row) not in names)
    return replace(program, rows=rows, max_providers=None if PROVIDERS in names else program.max_providers)
