"""From a program to a mixed-integer model: the constraints, family by family.

Units u_k are integers from 0 to a tight bound. All coefficients come from integers; they are
scaled by a greatest common divisor where that is small, else by a power of ten.

* one_     training task: sum u = count; an optional task has no line of its own
* carry_   serving, one bucket: sum C_k u_k - k sum_c (c - c') v_c >= D. Request flows from one
           bucket split freely, so they project to this one line exactly.
* class_   v_c = 1 when a column is used whose replicas are of capacity class c or larger:
           u_k <= U_k v_c, v_c <= v_c'. So the left side of carry_ loses k replicas of the
           largest capacity in use: **the fleet carries its demand without any k replicas**.
* route_   serving in full (several buckets, levels, roles): for every level and bucket, flows
           f >= 0 in shares of the demand; whole + prefill = 1, whole + decode = 1
* load_    sum_b (D_b / C_bk) f_bk <= u_k. Slices are whole numbers of flow instead, of S to a
           bucket.
* used_    w_k = 1 when a column is used, and enough_: then it has k replicas, with k spares
           Of few columns there is a routing of its own for every type in use, after its loss:
           sum_b (D_b / C_bk) f_bk <= u_k - (k / R_k) w_k for that type.
* price_   else, after losses: sum W_k u_k - z >= need, loss_: z >= (k / R_k) W_k w_k, where W_k
           is what a unit can earn at some prices of requests (`situations`). Such lines come
           from relaxations and from plans that turn out not to carry a loss. With many columns
           they stand for the routings as well (`stage.Run.ask`). Of a boxed task they are all lines of
           its buckets, at every level and after every loss, and are there from the start; there are
           no flows, and a type in use may have fewer replicas than spares.
* spot_    sum (spot_k - share) rate_k u_k <= 0, at every level, in every role
* least_   sum R_k u_k >= least number of replicas, of level 0
* limit_   joint rows
* vendor_  u_k <= U_k y_p, and most_: sum y_p <= max_providers
* hold_    an earlier criterion keeps its proven best value
* fix_     units that are already decided
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import groupby, pairwise

import numpy as np

from planner.candidates.program import IntArray, Task, splits_simply
from planner.optimize.criteria import LINEAR, weights_of
from planner.optimize.fleet import learn, least, routings, spot_shares
from planner.optimize.model import LARGEST, Model
from planner.optimize.rows import all_at_most, at_least, at_most, never, power
from planner.optimize.scope import Scope


def build(scope: Scope, criterion: str, weights: IntArray | None = None, *, flows: bool = True) -> Model:
    """The model that minimises a linear criterion over a scope; no other has an objective.

    Columns stand in index order, so names follow the program: x_000001 is the first open column.

    Parameters
    ----------
    scope
        Open columns, and what is known of them: bounds, fixed units, settled criteria, cuts.
    criterion
        What is minimised; one that is not linear leaves the objective empty.
    weights
        One per column of the program, of moderate size, in place of those of the criterion; not scaled.
    flows
        Whether fleets are routed in the model; with slices they are in any case. False: lines of prices stand for that.
    """
    model = Model(columns=scope.open)
    place = np.full(scope.program.column_count, -1, dtype=np.int64)
    place[model.columns] = model.add("x", scope.upper[model.columns], integer=True)
    for kind, tasks in groupby(scope.program.tasks, key=lambda task: task.kind):
        if kind == "training":
            _jobs(model, scope, list(tasks), place)
        for task in tasks if kind == "serving" else ():
            _serving(model, scope, task, place, flows=flows)
    _limits(model, scope, place)
    _vendors(model, scope, place)
    _holds(model, scope, place)
    for column, units in scope.fixed:
        if place[column] >= 0:
            model.line("fix", [place[column]], [1.0], low=units, high=units)
    if criterion in LINEAR or weights is not None:
        if weights is None:
            weights = weights_of(scope.program, criterion)
            model.scale = _scale(estimate(scope, weights), weights[model.columns])
        model.objective[: len(model.columns)] = weights[model.columns].astype(np.float64) * model.scale
    return model


def estimate(scope: Scope, weights: IntArray) -> float:
    """Rough least value of a linear criterion: each task alone on its best column, or one purchase."""
    total = bought = 0.0
    for task in scope.program.tasks:
        columns = scope.of_task(task)
        if not len(columns):
            continue
        here = weights[columns].astype(np.float64)
        if task.kind == "training":
            total += float(here.min()) * task.count
        elif task.kind == "optional":
            bought = max(bought, float(here.sum() / max(int(np.count_nonzero(here)), 1)))
        elif task.demand_micro_per_s:
            demand = np.asarray(task.demand_micro_per_s, dtype=np.float64)
            capacity = scope.program.capacity_micro_per_s[columns, : len(demand)].astype(np.float64)
            loads = demand / np.maximum(capacity, 1.0)
            needed = loads.max(axis=1) if task.boxed else loads.sum(axis=1)
            total += float((here * np.maximum(needed, 1.0)).min())
    return max(total, bought) or float(weights[scope.open].max(initial=0))


def _scale(value: float, weights: IntArray) -> float:
    """Brings the objective to the order of 10**TARGET, but no coefficient above the largest allowed."""
    largest = float(weights.max()) if len(weights) else 0.0
    return min(power(value), LARGEST / largest * (1 - 1e-9)) if largest > 0 else 1.0


def _jobs(model: Model, scope: Scope, tasks: list[Task], place: IntArray) -> None:
    """Neighbouring training tasks: the units of each sum to its count."""
    columns = [scope.of_task(task) for task in tasks]
    ends = np.concatenate([[0], np.cumsum([len(here) for here in columns])]).astype(np.int64)
    counts = np.array([task.count for task in tasks], dtype=np.float64)
    every = place[np.concatenate(columns)]
    model.add_lines("one", ends, every, np.ones(len(every)), low=counts, high=counts)


def _serving(model: Model, scope: Scope, task: Task, place: IntArray, *, flows: bool) -> None:
    columns = scope.of_task(task)
    least(model, scope, task, place)
    spot_shares(model, scope, task, place)
    if splits_simply(scope.program, task):
        _carry(model, scope, task, columns, place)
    elif any(map(any, task.demands)):
        routings(model, scope, task, place, flows=flows or task.integer_slices > 0)
        routed = flows and not task.boxed
        learn(model, scope, [cut for cut in scope.cuts if cut.task == task.name and not (routed and cut.lossless)])


def _carry(model: Model, scope: Scope, task: Task, columns: IntArray, place: IntArray) -> None:
    need = Fraction(task.demand_micro_per_s[0])
    if need <= 0:
        return
    variables: list[int] = place[columns].tolist()
    coefficients: list[Fraction | int] = scope.program.capacity_micro_per_s[columns, 0].tolist()
    if task.spare_replicas:
        steps, classes = _replica_classes(scope, columns)
        # some replica is in use when there is demand, so the smallest class is a constant
        need += task.spare_replicas * steps[0]
        flags = model.add("v", np.ones(len(steps) - 1), integer=True)
        above = classes > 0
        each = np.concatenate([flags[1:], place[columns[above]]])
        only_with = np.concatenate([flags[:-1], flags[classes[above] - 1]])
        most = np.concatenate([np.ones(len(flags[1:])), scope.upper[columns[above]]])
        pairs, values = np.column_stack([each, only_with]), np.column_stack([np.ones(len(each)), -most])
        model.add_lines("class", 2 * np.arange(len(each) + 1), pairs.ravel(), values.ravel(), high=0.0)
        variables += [int(flag) for flag in flags]
        coefficients += [-task.spare_replicas * step for step in steps[1:]]
    at_least(model, "carry", variables, coefficients, need)


def _replica_classes(scope: Scope, columns: IntArray) -> tuple[list[Fraction], IntArray]:
    """Steps between the distinct capacities of one replica, ascending, and the rank of each column."""
    program = scope.program
    both = np.column_stack([program.capacity_micro_per_s[columns, 0], np.maximum(program.replicas[columns], 1)])
    pairs, pair_of = np.unique(both, axis=0, return_inverse=True)
    parts = math.lcm(*set(pairs[:, 1].tolist()))  # whole numbers of them are compared sooner than fractions
    each = [capacity * (parts // replicas) for capacity, replicas in pairs.tolist()]
    distinct = sorted(set(each)) or [0]
    steps = [Fraction(step, parts) for step in (distinct[0], *(high - low for low, high in pairwise(distinct)))]
    rank = {value: number for number, value in enumerate(distinct)}
    return steps, np.array([rank[value] for value in each], dtype=np.int64)[pair_of.reshape(-1)]


def _limits(model: Model, scope: Scope, place: IntArray) -> None:
    joint = scope.joint
    here = place[joint.columns]
    inside = here >= 0
    ends = np.concatenate([[0], np.cumsum(inside)])[joint.starts]
    used = np.diff(ends) > 0
    starts = np.concatenate([ends[:-1][used], ends[-1:]])
    all_at_most(model, "limit", starts, here[inside], joint.coefficients[inside], joint.bounds[used])
    if (joint.bounds[~used] < 0).any() and len(model.columns):  # all that could supply it is closed
        never(model, "limit")


def _vendors(model: Model, scope: Scope, place: IntArray) -> None:
    """Provider flags, when a limit asks for them."""
    program = scope.program
    providers = np.unique(program.provider[model.columns])
    providers = providers[providers >= 0]
    if program.max_providers is None or program.max_providers >= len(providers):
        return
    flags = model.add("y", np.ones(len(providers)), integer=True)
    for task in program.tasks:
        columns = scope.of_task(task)
        for provider, flag in zip(providers, flags):
            here = columns[program.provider[columns] == provider]
            if task.kind == "training" and len(here):
                model.line("vendor", [*place[here], flag], [*np.ones(len(here)), -float(task.count)], high=0.0)
            elif task.kind != "training" and len(here):
                pairs = np.column_stack([place[here], np.full(len(here), flag)])
                values = np.column_stack([np.ones(len(here)), -scope.upper[here].astype(np.float64)])
                model.add_lines("vendor", 2 * np.arange(len(here) + 1), pairs.ravel(), values.ravel(), high=0.0)
    model.line("most", flags, np.ones(len(flags)), high=float(program.max_providers))


def _holds(model: Model, scope: Scope, place: IntArray) -> None:
    for criterion, value in scope.settled:
        if criterion in LINEAR:
            weights = weights_of(scope.program, criterion)[model.columns]
            some = weights != 0
            if some.any():
                at_most(model, "hold", place[model.columns[some]], weights[some], int(value))
