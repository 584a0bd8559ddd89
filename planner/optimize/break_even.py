"""At what share of its price would hardware that is not chosen enter the plan? And what would forcing it cost?

Let z be the cost of the best plan, in which hardware h is not used, and for a share t of h's price

    a(t) = min over the plans that use h of  A + t B,

A what such a plan spends on everything else, B what it spends on h at the full price. a is a minimum of
finitely many rising lines: concave, rising, piecewise linear. h is in every best plan when a(t) < z and in none
when a(t) > z, so the break-even share is the t* with a(t*) = z.

*Iteration.* A plan (A, B) of least A + t B gives the next t = (z - A) / B; the first is the cheapest at the full price,
which is most often the last one, too. The line of a plan lies above a everywhere, so a reaches z no earlier than the
line does: t* is never passed, and where that is below 0 the iteration begins there. As long as a(t) < z the new
plan's line lies below the old one's at t, so t rises strictly, and no plan comes twice: finite, and at the end
a(t) = z, proven by the last solve. t* is a ratio of two whole numbers of micro-dollars, and kept as one.

"Uses h" is a joint row, -sum of the units of h's columns <= -1. Shares are put to the solver as whole costs:
exactly, q A + p B for t = p / q, while those stay below 2**45, else rounded to whole micro-dollars, as prices are;
plans are compared in fractions either way.

*Pruning* at the full price holds at every share between columns that are alike in whether their price is h's, and in
whether they count as its use: their order by cost stays. It is done without the row, which is met by as many units
of h as before: where a column takes the place of all others (`candidates.prune`), those of h stay, at no more cost.

The budget is left out: plans that matter cost at most z, which is within it. A limit on spend per hour counts
list prices.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import IntArray, Program, Row, restrict
from planner.candidates.prune import prune
from planner.carriers import dataclass
from planner.optimize.limited import Asker, limit_of
from planner.optimize.status import Status

FORCED = "uses"
BUDGET = "limits.budget"
EXACT = 2**45  # whole costs below this are told apart by every solver
MOST_STEPS = 200
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """What forcing hardware costs, and the share of its price below which it is chosen.

    `share` is None when not even free hardware would be chosen; `forced_microusd` is None when no plan can use it.
    """

    share: Fraction | None = None
    forced_microusd: int | None = None
    forced_units: IntArray | None = None  # (n,) of the cheapest plan that uses it, at the full price
    spend_microusd: int = 0  # on it, in that plan
    proven: bool = True


def break_even(
    program: Program,
    priced: Mask,
    best_microusd: int,
    *,
    uses: Mask | None = None,
    asker: Asker | None = None,
    known: BreakEven | None = None,
) -> BreakEven:
    """The break-even share of the price of some columns.

    Parameters
    ----------
    program
        All columns: not pruned, since pruning drops what only another price would bring in.
    priced
        (n,) columns whose cost is h's.
    best_microusd
        Least cost without h, proven.
    uses
        (n,) columns of which at least one unit must be taken; default: those priced.
    known
        Of the same columns that must be taken, when the price of others falls: what forcing them costs at full prices
        is the same, and not asked again.
    """
    asker = asker or Asker()
    forced, kept = forced_program(program, priced, priced if uses is None else uses)
    if known is not None and known.forced_microusd is not None and known.forced_units is not None:
        units, cost, proven = known.forced_units, known.forced_microusd, known.proven
    else:
        full = asker.cheapest(forced)
        if not full.has_plan:
            return BreakEven(proven=full.status is Status.INFEASIBLE)
        units = np.zeros(program.column_count, dtype=np.int64)
        units[kept] = full.units
        cost, proven = full.cost_microusd, full.status is Status.OPTIMAL
    spend = _spend(program, priced, units)
    share, sure = _share(forced, priced[kept], best_microusd, asker, (_spend(program, ~priced, units), spend))
    return BreakEven(
        share=share, forced_microusd=cost, forced_units=units, spend_microusd=spend, proven=proven and sure
    )  # fmt: skip


def forced_program(program: Program, priced: Mask, uses: Mask) -> tuple[Program, IntArray]:
    """The pruned program in which some of these columns are used, without a budget; and its columns in the old one."""
    columns = np.flatnonzero(uses)
    row = Row(name=FORCED, label="used", bound=-1, columns=columns, coefficients=np.full(len(columns), -1))
    rows = tuple(one for one in program.rows if limit_of(one) != BUDGET)
    free = replace(program, rows=rows, objective=("cost",))
    kept = prune(free, within=2 * uses.astype(np.int64) + priced)
    return restrict(replace(free, rows=(*rows, row)), np.isin(np.arange(program.column_count), kept))


def _share(forced: Program, mine: Mask, best: int, asker: Asker, line: tuple[int, int]) -> tuple[Fraction | None, bool]:
    """The iteration of the module's proof, from the line of a plan on: (A, B); None when a(0) >= z."""
    rest, spend = line
    share, proven = max(Fraction(best - rest, spend), Fraction(0)) if spend else Fraction(0), True
    for _ in range(MOST_STEPS):
        answer = asker.cheapest(replace(forced, cost_microusd=costs_at(forced, mine, share)))
        proven &= answer.status is Status.OPTIMAL
        if not answer.has_plan:
            return None, False
        rest, spend = _spend(forced, ~mine, answer.units), _spend(forced, mine, answer.units)
        if rest + share * spend >= best or spend == 0:
            break
        share = Fraction(best - rest, spend)
    else:
        proven = False
    return (share if share > 0 else None), proven


def costs_at(program: Program, mine: Mask, share: Fraction) -> IntArray:
    """Cost of one unit of each column at a share of the price of some, times its denominator where that fits.

    Parameters
    ----------
    program
        With the full prices.
    mine
        (n,) columns whose price is changed.
    share
        Of their price; 0 = they are free.

    Returns
    -------
    (n,) costs, times the denominator of the share; where that is too large for solvers, rounded to whole micro-dollars.
    """
    largest = int(program.cost_microusd.max(initial=0)) * int(program.max_units.max(initial=1))
    if largest * max(share.numerator, share.denominator) * max(len(program.tasks), 1) < EXACT:
        factors = np.where(mine, share.numerator, share.denominator)
        return np.asarray(program.cost_microusd * factors, dtype=np.int64)
    cost = [round(share * int(c)) if h else int(c) for c, h in zip(program.cost_microusd, mine)]
    return np.array(cost, dtype=np.int64)


def _spend(program: Program, columns: Mask, units: IntArray) -> int:
    return sum(int(program.cost_microusd[k]) * int(units[k]) for k in np.flatnonzero(columns & (units > 0)))
