"""Plans parted by how many units of a column they have, each part at prices of its own: a tree that anyone can walk.

Prices of limits prove little where what is limited is bought whole, as a node of eight devices that stands half empty:
whatever a device is priced, either a node is had in parts, which no one sells, or it stands there for nothing. So all
plans are parted in two, those with at most m units of a column and those with more, or those whose job uses no more
than so much of a limit and those whose job does; and each side again. At prices l of a side's own every plan of it,
with numbers of units between `lower` and `upper`, has

    sum_k c_k u_k  >=  sum over the tasks of min (w u, lower <= u <= upper)  -  sum_r l_r b_r,    w = c + sum_r l_r a_r,

as in `planner.plan.certificate`, mixes of jobs that are not among the columns included (they may be on either side of
any branch, but of one where the job uses what no mix of it can), and the least of all sides bounds all plans. The tree
stands in the certificate from its root on, the side with fewer units (or less in use) first. Source: Land and Doig,
Econometrica 28(3) (1960); prices at each node, Geoffrion, Math. Programming Study 2 (1974), section 4.

Before that, columns are left out that no plan below the value can use, by what one unit of them adds to the least of
its task, of a fleet in parts of units (fixing by reduced costs, Crowder, Johnson and Padberg, Operations Research 31(5)
1983, section 2). Of those that differ in nothing but what they weigh the lightest stands for all of them: in as many
units as they have together it weighs no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import Program, Task, restrict
from planner.carriers import dataclass
from planner.plan.cover import MOST_STEPS, UNMET
from planner.plan.least_weights import (
    STEPS,
    CertificateError,
    Least,
    Part,
    Units,
    least_of_task,
    line_of,
    parts_of,
    priced_weights,
    row_prices,
)

if TYPE_CHECKING:
    from planner.plan.model.others import Branch, Selection

MOST_BRANCHES = 400  # of one tree, its sides included
MOST_UNITS = 2**31  # of a column that stands for others
MOST_USED = 2**63  # of a limit
Weights = NDArray[Any]  # whole numbers of any size
Way = Mapping[int, int]  # units by column
Charges: TypeAlias = Iterable[tuple[int, int]]  # numbers of limits and their prices
Used: TypeAlias = frozenset[tuple[str, int]]  # jobs, and numbers of limits that their ways are known to use
# What mixes of a job weigh at least that are not among its columns, at prices of limits and weights of the columns,
# and use all of some limits; None of a job that is not mixed.
Mixed: TypeAlias = Callable[[Task, Charges, Weights, Iterable[int]], int | None]
NOTHING: Used = frozenset()


def no_mixes(_task: Task, _charges: Charges, _weights: Weights, _used: Iterable[int]) -> int | None:
    """Where all ways of jobs are columns."""
    return None


class Between(NamedTuple):
    """Plans with so many units of each column, (columns,), at least and at most, and what their jobs use."""

    lower: Units
    upper: Units
    used: Used = NOTHING


class Weighed(NamedTuple):
    """The least weight of some plans, a way of each task that weighs least, where known, and steps that it took."""

    weight: int
    ways: list[Way | None]
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What plans below a value may use, those alike as one column."""

    program: Program
    upper: Units
    place: Units  # (columns of the whole,) which of these stands for it; -1: left out
    column: Units  # (columns,) of the whole
    tasks: tuple[Task, ...]  # of the whole
    parts: Mapping[str, Sequence[Part]]
    unpriced: Weights  # of a unit, without what it uses of limits
    bound: int  # what the prices prove, without branches
    mixed: Mixed

    def weigh(
        self,
        prices: Mapping[int, int],
        plans: Between,
        steps: int = MOST_STEPS,
        *,
        known: dict[object, Least] | None = None,
    ) -> Weighed:
        """The least that any of some plans weighs, and the ways of its tasks, where one is known.

        Parameters
        ----------
        prices
            Of limits, by number; whole numbers >= 0.
        plans
            Between two numbers of units.
        steps
            That the search for the least of a fleet may take.
        known
            What was found before, of tasks whose columns weighed as much and were there as often.

        Returns
        -------
        `UNMET` where there are none.
        """
        weights, total, taken, ways = self.unpriced.copy(), 0, 0, list[Way | None]()
        lower, upper, used = plans
        for number, price in prices.items():
            row = self.program.rows[number]
            total -= price * row.bound
            np.add.at(weights, row.columns, row.coefficients.astype(object) * price)
        for number, task in enumerate(self.program.tasks):
            part = slice(task.first, task.stop)
            own = [limit for name, limit in used if name == task.name]
            mixed = self.mixed(task, prices.items(), weights[part], own)
            key = number, steps, mixed, tuple(weights[part].tolist()), lower[part].tobytes(), upper[part].tobytes()
            found = known.get(key) if known is not None else None
            if found is None:
                least = lower if lower[part].any() else None
                found = least_of_task(
                    self.program, task, weights, upper, self.parts[task.name], mixed=mixed, steps=steps, lower=least
                )
                taken += found.steps
                if known is not None:
                    known[key] = found
            if found.weight >= UNMET:
                return Weighed(UNMET, [], taken)
            total += found.weight
            ways.append(found.units)
        return Weighed(total, ways, taken)

    def sides(self, branch: Branch, plans: Between) -> tuple[Between, Between]:
        """Both sides of a branch: at most so many units, or so much in use, and the others.

        Raises
        ------
        CertificateError
            It is of nothing that there is, or of jobs that several units are of.
        """
        lower, upper, used = plans
        if branch["kind"] == "units":
            column, most = self._column(branch), branch.get("most", -1)
            if not _whole(column, len(self.place)) or not _whole(most, MOST_UNITS):
                raise CertificateError(f"there is no column {branch.get('number')!r} of {most!r} units")
            fewer, more, place = upper.copy(), lower.copy(), int(self.place[column])
            if place < 0:  # nothing of it is used below the value
                return plans, Between(upper + 1, upper, used)
            fewer[place], more[place] = min(int(upper[place]), most), max(int(lower[place]), most + 1)
            return Between(lower, fewer, used), Between(more, upper, used)
        task = next((one for one in self.program.tasks if one.name == branch.get("workload")), None)
        number, most = branch.get("number", -1), branch.get("most", 0)
        if task is None or task.kind != "training" or task.count != 1 or not _whole(number, len(self.program.rows)):
            raise CertificateError(f"no single job is called {branch.get('workload')!r}, or there is no such limit")
        if not _whole(most, MOST_USED):
            raise CertificateError(f"nobody uses {most!r} of a limit")
        using = self.using(task, number, most)
        without, only = upper.copy(), upper.copy()
        without[task.first : task.stop][using], only[task.first : task.stop][~using] = 0, 0
        return Between(lower, without, used), Between(lower, only, used | {(task.name, number)})

    def units_branch(self, column: int, most: int) -> Branch:
        """Plans with at most so many units of a column before those with more.

        It is told as one of its workload: who checks it may have found other mixes of the jobs before it.

        Parameters
        ----------
        column
            Of what is left.
        most
            Units on the first side.
        """
        whole = int(self.column[column])
        task = next(one for one in self.tasks if one.first <= whole < one.stop)
        return {"kind": "units", "workload": task.name, "number": whole - task.first, "most": most}

    def _column(self, branch: Branch) -> int:
        """Which column of the whole a branch is of, -1 where there is none; plans of before tell it among all."""
        number, name = branch.get("number", -1), branch.get("workload")
        if name is None:
            return number
        task = next((one for one in self.tasks if one.name == name), None)
        return task.first + number if task is not None and _whole(number, task.stop - task.first) else -1

    def using(self, task: Task, number: int, most: int = 0) -> NDArray[np.bool_]:
        """Columns of a task that use more than so much of a limit."""
        row, found = self.program.rows[number], np.zeros(self.program.column_count, dtype=bool)
        found[row.columns[row.coefficients > most]] = True
        return found[task.first : task.stop]


def _whole(number: object, stop: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < stop


def left_below(
    whole: Program, certificate: Selection, upper: Units, value: int, mixed: Mixed = no_mixes
) -> Left | None:
    """What plans below a value may use, as far as the prices of a certificate show it; None where some task has no way.

    Parameters
    ----------
    whole
        Every column.
    certificate
        As of `planner.plan.certificate.certified_bound`.
    upper
        (columns,) units that there are.
    value
        In the criterion's unit.
    mixed
        Of mixes that are not among the columns.
    """
    weights, upper = priced_weights(whole, certificate), upper.copy()
    parts = {task.name: parts_of(certificate["requests"], task) for task in whole.tasks}
    charges = list(row_prices(whole, certificate))
    least = [
        least_of_task(whole, task, weights, upper, parts[task.name],
                      mixed=mixed(task, charges, weights[task.first : task.stop], ()))
        for task in whole.tasks
    ]  # fmt: skip
    if any(one.weight >= UNMET for one in least):
        return None
    bound = sum(one.weight for one in least) - sum(p * whole.rows[n].bound for n, p in charges)
    room = value * STEPS - bound
    for task, one in zip(whole.tasks, least):
        part = slice(task.first, task.stop)
        here = weights[part]
        if task.kind == "optional":
            paid = np.array([room // int(w) if w > 0 else MOST_UNITS for w in here], dtype=object)
            upper[part] = np.minimum(upper[part], np.clip(paid, 0, MOST_UNITS).astype(np.int64))
        elif task.kind == "training" and one.units is not None:
            dearest = max((int(weights[k]) for k in one.units), default=0)  # of one unit less of which there is room
            upper[part][np.array(here - dearest > room, dtype=bool)] = 0
        elif task.kind == "serving" and len(parts[task.name]) == 1 and not (here < 0).any():
            forced = _forced(whole, task, here, parts[task.name][0])
            upper[part][np.array(forced > one.weight + room, dtype=bool)] = 0
    return _as_one(whole, certificate, upper, parts, bound, mixed)


def _forced(program: Program, task: Task, weights: Weights, part: Part) -> Weights:
    """What a fleet weighs at least with a unit of each column, in parts of units on each line alone."""
    found = weights.copy()
    for line in part.lines:
        earned, need = line_of(program, task, line)
        earning = [(int(w), e) for w, e in zip(weights, earned) if e > 0]
        if need <= 0 or not earning:
            continue
        low, gain = min(earning, key=lambda pair: (pair[0] << 128) // pair[1])
        rest = [int(w) + max(need - e, 0) * low // gain for w, e in zip(weights, earned)]
        found = np.maximum(found, np.array(rest, dtype=object))
    return found


def _as_one(
    whole: Program,
    certificate: Selection,
    upper: Units,
    parts: Mapping[str, Sequence[Part]],
    bound: int,
    mixed: Mixed,
) -> Left:
    """With one column for those that are alike."""
    small, kept = restrict(whole, upper > 0)
    unpriced, most = priced_weights(small, {**certificate, "rows": []}), upper[kept]
    uses = np.zeros((small.column_count, len(small.rows)), dtype=np.int64)
    for number, row in enumerate(small.rows):
        np.add.at(uses[:, number], row.columns, row.coefficients)
    of = np.zeros(small.column_count, dtype=np.int64)
    for number, task in enumerate(small.tasks):  # what is bought stands alone
        of[task.first : task.stop] = number if task.kind != "optional" else -1 - np.arange(task.first, task.stop)
    serving = np.isin(of, [number for number, task in enumerate(small.tasks) if task.kind == "serving"])
    carried = (small.replicas, small.level, small.role, small.place, small.spot, small.bounded > 0)
    physics = np.column_stack([*carried, small.capacity_micro_per_s]) * serving[:, None]
    alike: dict[bytes, list[int]] = {}
    for k, label in enumerate(np.ascontiguousarray(np.column_stack([of, uses, physics]))):
        alike.setdefault(label.tobytes(), []).append(k)
    stands, mask = np.arange(small.column_count), np.zeros(small.column_count, dtype=bool)
    for some in alike.values():
        lightest = min(some, key=lambda k: (int(unpriced[k]), k))
        mask[lightest], stands[some], total = True, lightest, sum(int(most[k]) for k in some)
        most[lightest] = min(total, MOST_UNITS)
    one, chosen = restrict(small, mask)
    place = np.full(whole.column_count, -1, dtype=np.int64)
    place[kept] = (np.cumsum(mask) - 1)[stands]
    return Left(
        program=one,
        upper=most[chosen],
        place=place,
        column=kept[chosen],
        tasks=whole.tasks,
        parts=parts,
        unpriced=unpriced[chosen],
        bound=bound,
        mixed=mixed,
    )


def bound_of_branches(whole: Program, certificate: Selection, upper: Units, value: int, mixed: Mixed = no_mixes) -> int:
    """What a tree of branches proves of all plans, of no interest beyond a value.  [thousandths of the unit]

    Parameters
    ----------
    whole
        Every column.
    certificate
        With ``branches``.
    upper
        (columns,) units that there are.
    value
        In the criterion's unit.
    mixed
        Of mixes that are not among the columns.

    Raises
    ------
    CertificateError
        Branches are of nothing that there is, or are no whole tree, or a price is negative.
    """
    tree = certificate.get("branches") or []
    if len(tree) > MOST_BRANCHES:
        raise CertificateError(f"{len(tree):,} branches, {MOST_BRANCHES} at most")
    left = left_below(whole, certificate, upper, value, mixed)
    if left is None:
        return UNMET
    open_, least, known = [Between(np.zeros_like(left.upper), left.upper)], value * STEPS, dict[object, Least]()
    for branch in tree:
        if not open_:
            raise CertificateError("branches go on beyond the whole of all plans")
        here = open_.pop()
        if branch["kind"] == "prices":
            prices = dict(row_prices(left.program, {"rows": branch.get("rows", []), "requests": []}))
            least = min(least, left.weigh(prices, here, known=known).weight)
        else:
            open_.extend(reversed(left.sides(branch, here)))
    if open_:
        raise CertificateError("branches leave some plans out")
    return max(least, left.bound)
