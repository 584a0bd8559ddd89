"""Drop columns that no best plan needs: dominance, with the proof.

Terms. A plan gives each column k of task t whole units u_k. The criteria are compared in
order (`planner.optimize.criteria`): the objective list, then cost, the tie rule
(`planner.candidates.ties`), canonical order. All but `time` (makespan) and the canonical order
are *linear*: sums of weight times units, no weight below zero. Costs that differ by no more than the
tolerance are equal, so that criteria after the cost may decide between them.

**Claim.** Column i of a task may remove column j of the same task when

1. every joint row that can bind has coefficient a_i <= a_j, where a column that a row does not
   name has a = 0; so i touches no row that j leaves alone, unless i supplies it (a_i < 0), and
   supplies at least as much as j wherever j supplies;
2. the linear criteria of i are lexicographically <= those of j, in the order of the chain, and so are those
   after the cost by themselves, unless one before it differs or the cost differs by more than any tolerance;
3. finish_i <= finish_j, when `time` is an objective;
4. i and j have the same provider if there is a provider limit; and if all criteria after the cost are equal
   (2.), the costs are too and i precedes j in canonical order (then in column order);
5. i is not short of units: max_units_i >= `alone_units`_i, which is the job count for
   training and, for serving, the units with which i needs no help from any other column;
6. (serving) i carries at least as much per unit on every bucket, and loses no more to
   failures: see `_serving_sizes`;
7. (serving) i and j have the same role and level, the same failure domain when the loss of a
   domain must be survived, and are both or neither on spot when a share on spot is limited;
8. with a limited share on spot the rate of i, as that limit counts it, is at least that of j when
   firm, at most when on spot; and i serves every request whenever it runs (`_whole`), or has units for all
   that any plan may use of i and j together.

**Proof** (exchange). Take a best plan with u_j > 0 and put u_i + u_j units on i, none on j.
*Rows*: no left side grows (1). *Demand*: training units still sum to the count; serving
capacity does not fall (6). *Bounds*: training, u_i + u_j <= count <= max_units_i (5).
Serving, if u_i + u_j > max_units_i, use `alone_units`_i units of i instead; that is no
more units of i than before, so every row and sum is as small or smaller. Where capacities just
add up (`splits_simply`) drop everything else of the task: i carries all. Otherwise the
others stay: from its level on, in its role, i carries all that i can serve, which is all that
j could (6), in every situation in which its domain is there; where it is lost nothing changes.
*Situations* (7): i runs, and is lost, whenever j does; requests routed to j go to i, slices
stay whole. *Share on spot* (8): its left side, sum (spot - share) rate u, does not grow. Where `alone_units`_i
units take the place of u_i + u_j and i is firm, all others that run from its level on go too: the units below
have a left side <= 0 by themselves, as at the level below, and firm units only lower it. Where i is on spot the
others stay, and its rate is less than those of u_i + u_j were.
*Criteria*: a linear sum changes by u_j times the difference
of weights, so the sums become lexicographically smaller or stay equal (2), and the makespan
does not grow (3). If a sum before the cost shrank, or the cost by more than the tolerance, the plan taken was
not among the best. Else the new plan costs no more, so it is as cheap too, and of the sums after the cost, if
any changed, the first that did shrank: it is better by the rule. If all are equal, the
canonical order improves since i precedes j; the number of providers could grow against a *limit* only,
which 4 rules out. Either way a best plan without j exists, and
since every step moves units to an earlier column of the order (weights, place), which is a
strict order, the steps end. The plan chosen by the whole tie rule uses no removed column,
since otherwise the exchange would give a better one. *Duplicates* are the case of equality.

*What is left alone*. **Optional** tasks keep all their columns: nothing says how many units there
are of what is bought. The exchange does not touch their units, and since no left side grows (1),
what they supply is still enough; so programs with purchases may be pruned in all other tasks. In
**serving** tasks with a column that supplies a joint row (a < 0) nothing is removed, and no column
is short of units at `alone_units`: there the proof drops units of i and of others, which is only
no worse while every unit takes room; but see *Boxed tasks*. Training moves exactly u_j units from j to i, so 1. is
enough whatever the signs (a job that must end before another begins has a = end > 0 in one row and
a = - start < 0 in the other). Rows that cannot bind (`binding_rows`: their left side is at most the
bound even without any supply) are met by every plan.

*Boxed tasks* (`Task.boxed`) are pruned also where columns supply rows. The exchange itself moves exactly
u_j units, so 1. is enough whatever the signs; of each bucket the line of the module `program` stays
met as that of one bucket does (6). It is units that are dropped, where u_i + u_j > max_units_i, that
may be missed as supplies. So i has to be one of

a. *no supplier*: a_i >= 0 in every row. Put max_units_i on i and leave the other columns as they are.
   The left side of a row changes by u_j (a_i - a_j) <= 0 less a_i times the units dropped. With
   `alone_units`_i or more, i carries every bucket that it brings, and the buckets that it does not
   bring, j does not bring either, so their lines stand as before. The loss of another type l in use
   takes k / R_l units of the u_l >= 1 that there are, so at most (k / R_l - 1) C_lb from what the others
   bring; `alone_units` makes up for that too.
b. *enough by itself*: i always runs (level 0) and brings every bucket that is asked for at any level, no
   domain has to be survived, no share on spot is kept (8. then asks for more units), and of every row
   that the task supplies a_i <= 0, the bound is >= 0 and no other task takes room in it. Drop every other
   column of the task and put `alone_units`_i on i: rows that the task supplies have left sides <= 0, in
   others every unit takes room, a_i <= a_j, and i has fewer units than i and j had. The linear sums
   shrink or stay.

Columns of neither kind remove none and are bounded by what is there. Bounds of rows matter here in
that they are not below zero, which they stay when a limit is loosened.

The claim never looks otherwise at the bounds of rows that can bind, so it stays true when limits are
dropped (conflict sets) or loosened. It compares across devices: who wants to re-solve with
one kind of device only must pass labels in ``within``, so that a column is removed only by
one with the same label.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from planner.candidates.dominance import Numbers, Sheet, Touched, compressed, undominated
from planner.candidates.program import (
    OPTIONAL,
    WHOLE,
    IntArray,
    Program,
    Row,
    Task,
    fleet_rates,
    splits_simply,
    supplies,
    task_of,
)
from planner.candidates.ties import TIE_RULE, tie_weights

LINEAR_ORDER = ("cost", "carbon", *TIE_RULE)
SAFE = 2**62


def prune(program: Program, *, within: IntArray | None = None) -> IntArray:
    """Indices of the columns to keep, ascending; all others are dominated.

    Parameters
    ----------
    program
        The whole program.
    within
        One label per column; dominance is then only tried between equal labels.

    Examples
    --------
    Two ways to run one job that differ in cost alone: the dearer goes.

    >>> from planner.candidates.program import Task
    >>> ints = lambda *v: np.array(v, dtype=np.int64)
    >>> program = Program(
    ...     tasks=(Task(name="job", kind="training", first=0, stop=2),), cost_microusd=ints(7, 5),
    ...     finish_s=np.array([1.0, 1.0]), carbon_mg=ints(0, 0), nodes=ints(1, 1), replicas=ints(0, 0),
    ...     capacity_micro_per_s=np.zeros((2, 0), dtype=np.int64), max_units=ints(1, 1),
    ...     provider=ints(0, 0), offer=ints(0, 1))
    >>> prune(program)
    array([1])
    """
    columns, sheet = _sheet(program, within)

    def in_order(places: IntArray) -> IntArray:
        return np.searchsorted(columns, canonical_order(program, columns[places]))

    kept = np.ones(program.column_count, dtype=bool)
    kept[columns] = False
    kept[columns[undominated(sheet, in_order)]] = True
    return np.flatnonzero(kept)


def canonical_order(program: Program, columns: IntArray | None = None) -> IntArray:
    """Columns sorted by offer rank, task name, then everything else that sets them apart.

    The order does not depend on how columns, tasks or rows are ordered in the program;
    columns equal in every respect stay in column order.
    """
    columns = np.arange(program.column_count) if columns is None else np.asarray(columns)
    names = sorted(task.name for task in program.tasks)
    task_rank = np.zeros(program.column_count, dtype=np.int64)
    for task in program.tasks:
        task_rank[task.first : task.stop] = names.index(task.name)
    keys = [
        program.offer,
        task_rank,
        program.cost_microusd,
        program.finish_s,
        program.carbon_mg,
        program.nodes,
        program.replicas,
        program.provider,
        program.max_units,
        *(getattr(program, name) for name in OPTIONAL if name != "bounded"),
        *program.capacity_micro_per_s.T,
        *_row_keys(program),
    ]
    order = np.lexsort([key[columns] for key in reversed(keys)])
    return np.asarray(columns[order], dtype=np.int64)


def alone_units(program: Program, task: Task) -> IntArray:
    """Units of each column of the task beyond which more of it can never help.

    Training: the job count. Serving: with u units a column carries every bucket it can
    serve at every level, withstands the loss of its own spare replicas and reaches the least
    number of replicas; u = max over the levels of ceil(sum_b D_b / C_b + k / R), ceil(m / R).
    With u units, whatever else the plan has in its role and for its buckets may go, where the
    column runs; so more units never help. Where a share on spot is limited, firm units beyond
    that can make room for others on spot that have to stay: those that serve other buckets
    (`_whole` serves all), or are there for when the column's own domain is lost; and units that
    supply a joint row can be wanted for that alone. Then the bound is what is there, as it is for
    what is optional. Of a boxed task that is so for the columns only that are wanted as suppliers
    (*Boxed tasks* above).
    """
    units = carrying_units(program, task)
    if task.kind == "training" or task.stop == task.first:
        return units
    there = np.asarray(program.max_units[task.first : task.stop], dtype=np.int64)
    many = task.survive_domain or len(task.demand_micro_per_s) > 1
    supplied = task.kind == "optional" or supplies(program, task)
    shared = task.max_spot_share is not None
    if supplied and (not task.boxed or shared):
        return there
    if task.boxed and (supplied or not splits_simply(program, task)):
        units = np.maximum(units, _units_beside_losses(program, task))
    if shared and many:
        return np.where(_whole(program, task), units, there)
    return np.where(_wanted_as_supplies(program, task), there, units) if supplied else units


def _whole(program: Program, task: Task) -> NDArray[np.bool_]:
    """Columns that serve every request there is, by themselves, whenever they run; none where a domain may be lost.

    With a share on spot: where one carries its demand alone, all others that run from its level on may go. What runs
    below it keeps its own share, and firm units beside it only lower it; of one on spot the units too many may go, and
    all others stay.
    """
    part, asked = slice(task.first, task.stop), np.array(task.demands).max(axis=0) > 0
    every = (program.capacity_micro_per_s[part, : len(asked)][:, asked] > 0).all(axis=1)
    return np.asarray(every & (program.role[part] == WHOLE) & (not task.survive_domain))


def carrying_units(program: Program, task: Task) -> IntArray:
    """Units with which each column needs no help from any other, whatever joint rows say; see `alone_units`."""
    size = task.stop - task.first
    if task.kind != "serving" or not size:
        return np.full(size, task.count, dtype=np.int64)
    replicas = np.maximum(program.replicas[task.first : task.stop], 1)
    capacity = program.capacity_micro_per_s[task.first : task.stop, : len(task.demand_micro_per_s)]
    by_replicas = -(-task.min_replicas // replicas)
    carrying = [_units_to_carry(task, demand, replicas, capacity) for demand in task.demands]
    units = np.maximum(np.max(carrying, axis=0), by_replicas)
    return np.asarray(np.maximum(units, 1), dtype=np.int64)


def _units_beside_losses(program: Program, task: Task) -> IntArray:
    """Of a boxed task: units that carry what a column brings while another type in use lacks its spare replicas."""
    part, demands = slice(task.first, task.stop), np.array(task.demands, dtype=np.int64)
    capacity, replicas = program.capacity_micro_per_s[part, : demands.shape[1]], np.maximum(program.replicas[part], 1)
    beyond = np.maximum(task.spare_replicas - replicas, 0)[:, None]
    taken = -(-capacity * beyond // replicas[:, None])  # more than one unit of it brings
    needed = demands.max(axis=0) + taken.max(axis=0)
    return np.asarray(np.where(capacity > 0, -(-needed // np.maximum(capacity, 1)), 0).max(axis=1, initial=0))


def _wanted_as_supplies(program: Program, task: Task) -> NDArray[np.bool_]:
    """Columns of a boxed task that supply a row and are not enough by themselves; see *Boxed tasks*."""
    part, size = slice(task.first, task.stop), task.stop - task.first
    suppliers, enough = np.zeros(size, dtype=bool), program.level[part] == 0
    asked = np.array(task.demands).max(axis=0) > 0
    enough &= (program.capacity_micro_per_s[part, : len(asked)][:, asked] > 0).all(axis=1)
    enough &= not task.survive_domain
    for row in program.rows:
        inside = (row.columns >= task.first) & (row.columns < task.stop)
        if not (row.coefficients[inside] < 0).any():
            continue
        uses = np.zeros(size, dtype=np.int64)
        np.add.at(uses, row.columns[inside] - task.first, row.coefficients[inside])
        suppliers |= uses < 0
        enough &= (uses <= 0) & (row.bound >= 0) & (not (row.coefficients[~inside] > 0).any())
    return np.asarray(suppliers & ~enough)


def can_bind(program: Program, row: Row) -> bool:
    """Whether the row could ever be violated: the most that all tasks may use exceeds the bound."""
    return bool(binding_rows(replace(program, rows=(row,))))


def binding_rows(program: Program) -> list[Row]:
    """Rows that could be violated; what supplies a row (a coefficient below zero) is not counted on."""
    of, most = task_of(program), program.max_units.astype(np.float64)
    once = np.array([task.kind == "training" for task in program.tasks], dtype=bool)
    jobs = np.array([task.count for task in program.tasks], dtype=np.float64)
    binding = []
    for row in program.rows:
        uses, tasks = np.maximum(row.coefficients, 0).astype(np.float64), of[row.columns]
        single = once[tasks] if len(jobs) else np.zeros(0, dtype=bool)
        dearest = np.zeros(len(jobs))
        ends = np.concatenate([[0], np.flatnonzero(np.diff(tasks)) + 1])  # one stretch a task, when columns ascend
        stretches = np.maximum.reduceat(uses, ends) if len(uses) else uses
        owners = tasks[ends] if len(uses) else tasks
        np.maximum.at(dearest, owners[once[owners]], stretches[once[owners]])
        total = float(dearest @ jobs)
        if not single.all():
            total += float(uses[~single] @ most[row.columns[~single]])
        if total * (1 + 1e-9) >= row.bound:
            binding.append(row)
    return binding


def _units_to_carry(task: Task, demand: tuple[int, ...], replicas: IntArray, capacity: IntArray) -> IntArray:
    if task.boxed and len(demand) > 1:
        alone = [_units_to_carry(task, (rate,), replicas, capacity[:, [b]]) for b, rate in enumerate(demand) if rate]
        return np.asarray(np.max([np.zeros(len(replicas), dtype=np.int64), *alone], axis=0))
    if len(demand) == 1:
        each = capacity[:, 0]
        biggest = demand[0] * float(replicas.max()) + task.spare_replicas * float(each.max())
        if max(biggest, float(each.max()) * float(replicas.max())) < SAFE:
            below = np.maximum(each * replicas, 1)
            return np.where(each > 0, -(-(demand[0] * replicas + task.spare_replicas * each) // below), 0)
    shares = np.zeros(len(replicas))
    for bucket, rate in enumerate(demand):
        each = capacity[:, bucket].astype(np.float64)
        shares += np.where(each > 0, rate / np.maximum(each, 1.0), 0.0)
    units = (shares + task.spare_replicas / replicas) * (1 + 1e-12)
    return np.where(shares > 0, np.ceil(units), 0).astype(np.int64)


def _sheet(program: Program, within: IntArray | None) -> tuple[IntArray, Sheet]:
    """The columns that may be dominated, ascending, and what is compared of them."""
    of = task_of(program)
    asked = np.zeros(program.column_count, dtype=bool)
    tasks = [(number, task) for number, task in enumerate(program.tasks) if _prunable(program, task)]
    enough, labels = np.ones(program.column_count, dtype=bool), [of]
    for _, task in tasks:
        asked[task.first : task.stop] = True
    table = Touched.of(program, of, binding_rows(program) if tasks else [], asked)
    for number, task in tasks:
        part = slice(task.first, task.stop)
        enough[part] = _enough(program, task)
        for size in _serving_sizes(program, task):
            table.add(number, part, size)
        for place, kind in enumerate(_kinds(program, task), 1):
            if place == len(labels):
                labels.append(np.zeros(program.column_count, dtype=np.int64))
            labels[place][part] = kind
    if within is not None:
        labels.append(np.unique(np.asarray(within), return_inverse=True)[1].reshape(-1).astype(np.int64))
    if program.max_providers is not None:
        labels.append(program.provider)
    columns: IntArray | slice = slice(None) if asked.all() else np.flatnonzero(asked)
    sizes: list[Numbers] = [*table.dense, *([program.finish_s] if "time" in program.objective else [])]
    chain = [name for name in dict.fromkeys((*program.objective, "cost", *TIE_RULE)) if name in LINEAR_ORDER]
    return np.flatnonzero(asked), Sheet(
        linear=tuple(linear_weights(program, name)[columns] for name in chain),
        cost=chain.index("cost"),
        tie_microusd=program.most_tie_microusd,
        sizes=tuple(size[columns] for size in sizes if (size != size[:1]).any()),
        rows=table.rows[:, columns],
        uses=table.uses[:, columns],
        family=compressed(*(label[columns] for label in labels)),
        enough=enough[columns],
    )


def _prunable(program: Program, task: Task) -> bool:
    """Whether columns of the task may stand in for each other; see *What is left alone*."""
    if task.stop - task.first < 2 or task.kind == "optional":
        return False
    return task.kind == "training" or task.boxed or not supplies(program, task)


def linear_weights(program: Program, criterion: str) -> IntArray:
    """Integer weight >= 0 of one unit of each column in a linear criterion."""
    if criterion in TIE_RULE:
        return tie_weights(program, criterion)
    return np.asarray({"cost": program.cost_microusd, "carbon": program.carbon_mg}[criterion], dtype=np.int64)


def _kinds(program: Program, task: Task) -> Iterator[IntArray]:
    """What a stand-in has in common with what it stands in for."""
    if task.kind == "training":
        return
    part = slice(task.first, task.stop)
    yield program.role[part]
    yield program.place[part]
    yield program.level[part]
    if task.survive_domain:
        yield program.domain[part]
    if task.max_spot_share is not None:
        yield program.spot[part]


def _enough(program: Program, task: Task) -> NDArray[np.bool_]:
    """Whether a column has the units to stand in for another; see 5. and 8. of the claim."""
    alone = alone_units(program, task)
    wanted = _wanted_as_supplies(program, task) if task.boxed else np.zeros(len(alone), dtype=bool)
    more: int | IntArray = 0
    if task.max_spot_share is not None and task.kind != "training" and len(alone):
        kept = supplies(program, task) or ~_whole(program, task)
        more = np.where(kept, int(alone.max()), 0)
    return np.asarray((program.max_units[task.first : task.stop] >= alone + more) & ~wanted)


def _serving_sizes(program: Program, task: Task) -> Iterator[IntArray]:
    """What a stand-in must have at least, negated so that less is better.

    C: capacity of one unit on each bucket. With k spares and one bucket, also C (R - k) / R:
    if i replaces j in the exchange of the module proof, total capacity grows by
    u_j (C_i - C_j) >= C_i - C_j, and the capacity of k replicas of i exceeds that of k
    replicas of j by k (C_i / R_i - C_j / R_j); the former covers the latter exactly when
    C_i (R_i - k) / R_i >= C_j (R_j - k) / R_j (when i's replicas are no larger than j's,
    nothing more is lost at all). With several buckets each type is re-routed on its own:
    u_i + u_j units of i less k / R_i are at least the units left before, when R_i >= R_j.
    A boxed task is as one bucket in each of its buckets.
    R is also what counts towards a least number of replicas.
    """
    if task.kind != "serving":
        return
    part, spares, buckets = slice(task.first, task.stop), task.spare_replicas, len(task.demand_micro_per_s)
    replicas = program.replicas[part]
    for bucket in range(buckets):
        yield -program.capacity_micro_per_s[part, bucket]
    adds_up = task.boxed or splits_simply(program, task)
    for bucket in range(buckets) if spares and adds_up else ():
        yield _less_spares(program.capacity_micro_per_s[part, bucket], np.maximum(replicas, 1), spares)
    if task.min_replicas or (spares and not adds_up):
        yield -replicas
    if task.max_spot_share is not None:
        rates = fleet_rates(program, task)
        yield np.where(program.spot[part] > 0, rates, -rates)


def _less_spares(capacity: IntArray, replicas: IntArray, spares: int) -> IntArray:
    """Order of -C (R - k) / R, exactly."""
    if not (capacity % replicas).any() and float(capacity.max()) * (spares + 1) < SAFE:
        return spares * (capacity // replicas) - capacity
    exact = [Fraction(int(c) * (spares - int(r)), int(r)) for c, r in zip(capacity, replicas)]
    rank = {value: place for place, value in enumerate(sorted(set(exact)))}
    return np.array([rank[value] for value in exact], dtype=np.int64)


def _row_keys(program: Program) -> Iterator[IntArray]:
    """One key that tells columns with different coefficients apart, whatever the order of the rows."""
    if not program.rows:
        return
    key = np.zeros(program.column_count, dtype=np.uint64)
    ordered = sorted(program.rows, key=lambda row: (row.name, row.label, row.bound))
    for number, row in enumerate(ordered):
        factor = np.uint64((0xBF58476D1CE4E5B9 * (2 * number + 1)) % 2**64 | 1)
        key[row.columns] += row.coefficients.astype(np.uint64) * factor
    yield (key >> np.uint64(1)).astype(np.int64)


def count_pruned(program: Program, kept: IntArray) -> dict[str, int]:
    """For the ledger: how many columns of each task were dominated."""
    return {
        task.name: task.stop - task.first - int(np.count_nonzero((kept >= task.first) & (kept < task.stop)))
        for task in program.tasks
    }


def alone_microusd(program: Program) -> int:
    """Sum over the workloads of the cheapest column that does all of one alone; ways that others pay for left out."""
    total = 0
    for task in program.tasks:
        cost = program.cost_microusd[task.first : task.stop].astype(np.float64) * alone_units(program, task)
        total += int(cost[cost > 0].min(initial=np.inf)) if task.kind != "optional" and (cost > 0).any() else 0
    return total
