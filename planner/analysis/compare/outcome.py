"""What is decided in a question between two, as far as causes are told by it: machines, places, layouts, money."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from planner.analysis.others.other_plans import parts_of
from planner.candidates.program import Task
from planner.candidates.search import Candidates
from planner.candidates.training_table import TrainingTable
from planner.carriers import dataclass
from planner.optimize.solve import Solution
from planner.plan.rows.row_cells import split_document

Items = frozenset[tuple[Any, ...]]
NOTHING: Items = frozenset({("no plan",)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The best plan of a question, as far as decisions and money go.

    Parameters
    ----------
    what
        The machines that each workload rents: provider, shape, price model, how many; contracts.
    where
        The same with their places: offers.
    how
        The same with layouts and start periods.
    spend_microusd
        By offer, what the plan pays for it.
    settled
        Proven best of its columns as they were listed: no rates were lowered on the way, no limit stopped it.
    problem
        Why there is no answer: keys that make no sense without others.
    """

    status: str
    cost_microusd: int | None = None
    what: Items = NOTHING
    where: Items = NOTHING
    how: Items = NOTHING
    spend_microusd: Mapping[str, int] = field(default_factory=dict)
    settled: bool = False
    problem: str = ""

    @property
    def known(self) -> bool:
        """Whether it is an answer: a plan, or a proof that there is none."""
        return self.status in ("optimal", "feasible", "infeasible")

    @property
    def used(self) -> frozenset[str]:
        """Ids of the offers that the plan pays for: of a job on several, all of them."""
        return frozenset(self.spend_microusd) | {offer for workload, offer, *_ in self.where if workload}


def outcome_of(candidates: Candidates, solution: Solution, *, untouched: bool) -> Outcome:
    """The outcome of solved candidates.

    Parameters
    ----------
    candidates
        As they were solved.
    solution
        The best plan of their program, or that there is none.
    untouched
        No rates were lowered to keep targets: a plan that is proven best is so of the columns as they were listed.
    """
    if not solution.has_plan:
        return Outcome(status=str(solution.status), settled=str(solution.status) == "infeasible")
    decided = Decided()
    spend: Counter[str] = Counter()
    for task in candidates.program.tasks:
        for column in (np.flatnonzero(solution.units[task.first : task.stop]) + task.first).tolist():
            units = int(solution.units[column])
            paid = units * int(candidates.program.cost_microusd[column])
            if task.kind == "optional":
                _bought(candidates, column, units, paid, decided, spend)
            else:
                _rented(candidates, task, column, units, decided)
                for offer, cost in _paid(candidates, task.name, int(candidates.rows[column]), units, paid):
                    spend[offer] += cost
    what, where, how = (
        frozenset((*item, count) for item, count in part.items()) for part in (decided.what, decided.where, decided.how)
    )
    return Outcome(
        status=str(solution.status),
        cost_microusd=solution.cost_microusd,
        what=what,
        where=where,
        how=where | how,
        spend_microusd=dict(spend),
        settled=untouched and str(solution.status) == "optimal",
    )


@dataclass(frozen=True, slots=True)
class Decided:
    """What is decided, counted: the fields of `Outcome` while they are made."""

    what: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    where: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    how: Counter[tuple[Any, ...]] = field(default_factory=Counter)


def _paid(candidates: Candidates, workload: str, row: int, units: int, paid: int) -> Iterator[tuple[str, int]]:
    """Offers of a way and what units of it pay for each; what rounding leaves is paid for the first."""
    table = candidates.tables[workload]
    switch = table.switches.get(row) if isinstance(table, TrainingTable) else None
    mixed = table.mixes.get(row) if isinstance(table, TrainingTable) else None
    costs = [group.cost_microusd for group in mixed.groups] if mixed else list(switch.cost_microusd) if switch else [0]
    rest = paid - units * sum(costs)
    for (site, _), cost, more in zip(parts_of(candidates, workload, row), costs, (rest, *[0] * len(costs))):
        yield site.offer.id, units * cost + more


def _bought(candidates: Candidates, column: int, units: int, paid: int, decided: Decided, spend: Counter[str]) -> None:
    """What is bought ahead: a contract from when to when, nodes of a job that may pause, a copy of data."""
    calendar = candidates.calendar
    purchase = calendar.purchases[column] if calendar is not None else None
    offer = purchase.offer if purchase is not None else None
    span = (int(calendar.start[column]), int(calendar.stop[column])) if calendar is not None else (0, 0)
    kind = purchase.kind if purchase is not None else ""
    node = candidates.shared.node_at(column) if candidates.shared is not None else None
    offer = node.offer if node is not None else offer
    decided.what["", kind, offer.shape if offer else "", *span] += units
    decided.where["", kind, offer.id if offer else "", *span] += units
    if offer is not None:
        spend[offer.id] += paid


def _rented(candidates: Candidates, task: Task, column: int, units: int, decided: Decided) -> None:
    table, row = candidates.tables[task.name], int(candidates.rows[column])
    layout = split_document(table.layout, row) if isinstance(table, TrainingTable) else table.layout_row(row)
    start = int(candidates.calendar.start[column]) if candidates.calendar is not None else 0
    shared = candidates.shared is not None and candidates.shared.is_share(column)
    for site, nodes in parts_of(candidates, task.name, row):
        offer, count = site.offer, 0 if shared else nodes * units  # shared nodes are counted by themselves
        decided.what[task.name, offer.provider, offer.shape, offer.price_model] += count
        decided.where[task.name, offer.id] += count
        decided.how[task.name, offer.id, start, tuple(sorted(layout.items()))] += count
