"""The best decisions, near-optimal ranges and plans that stay, against all plans of small programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.analysis.others.decisions import (
    changed_nodes,
    decision_of,
    fewest_changes,
    most_microusd,
    range_of,
    trimmed,
    unlike,
    with_move_cost,
)
from planner.candidates.program import IntArray, Program
from planner.optimize.solve import Solution, optimize
from tests.frontier.brute import Plan, all_plans, small
from tests.optimize.brute import key_of, random_program, value
from tests.tiers import cases

CASES = cases(20, 60)


def instances(first: int, count: int) -> list[tuple[int, Program, list[Plan]]]:
    """Programs that have plans, with all of them, best first."""
    found: list[tuple[int, Program, list[Plan]]] = []
    for seed in range(first, first + 20 * count):
        question = replace(random_program(seed), objective=("cost",) if seed % 4 else ("cost", "carbon"))
        plans = sorted(all_plans(question), key=lambda plan: key_of(question, plan)) if small(question) else []
        if plans:
            found.append((seed, question, plans))
        if len(found) == count:
            break
    return found


def labels_of(question: Program, seed: int) -> Any:
    return np.random.default_rng([seed, 3]).integers(0, 3, question.column_count)


def as_units(plan: Plan) -> Any:
    return np.array(plan, dtype=np.int64)


def decisions_of(question: Program, labels: Any, plans: list[Plan], count: int) -> list[Plan]:
    """Best first, leaving out every plan that keeps all choices of a decision taken."""
    taken: list[frozenset[Any]] = []
    found = []
    for plan in plans:
        decision = decision_of(question, labels, as_units(plan))
        if len(found) < count and not any(before <= decision for before in taken):
            taken.append(decision)
            found.append(plan)
    return found


def best_decisions(question: Program, labels: Any, count: int) -> tuple[list[Solution], Solution | None]:
    """The best plan of each of so many decisions, and how the search for one more ended where it found none."""
    found: list[Solution] = []
    taken: list[frozenset[Any]] = []
    while len(found) < count:
        solution = trimmed(optimize(unlike(question, labels, taken)), question.column_count)
        if not solution.has_plan:
            return found, solution
        found.append(solution)
        taken.append(decision_of(question, labels, solution.units))
        if not taken[-1]:  # nothing is rented: there is nothing to decide
            break
    return found, None


def test_best_decisions_are_those_of_enumeration() -> None:
    several = 0
    for seed, question, plans in instances(0, CASES):
        labels = labels_of(question, seed)
        best, ended = best_decisions(question, labels, 5)
        expected = decisions_of(question, labels, plans, 5)
        if not any(any(plan) for plan in expected):
            continue
        assert [tuple(s.units.tolist()) for s in best] == expected, seed
        assert (ended is not None and ended.status == "infeasible") == (len(expected) < 5), seed
        several += len(expected) > 2
    assert several >= CASES // 5


def test_columns_that_only_ask_break_no_ties() -> None:
    ((seed, question, plans),) = instances(50_155, 1)
    labels = labels_of(question, seed)
    best, _ = best_decisions(question, labels, 5)
    assert [tuple(s.units.tolist()) for s in best] == decisions_of(question, labels, plans, 5)


def test_a_decision_adds_nothing_to_another() -> None:
    for seed, question, _ in instances(3000, cases(8, 20)):
        labels = labels_of(question, seed)
        best, _ = best_decisions(question, labels, 4)
        found = [decision_of(question, labels, s.units) for s in best]
        assert not any(before <= later for at, later in enumerate(found) for before in found[:at] if before)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.35])
def test_ranges_are_those_of_enumeration(share: float) -> None:
    wide = 0
    for seed, question, plans in instances(100, CASES // 2):
        labels = labels_of(question, seed)
        costs = [value(question, list(plan), "cost") for plan in plans]
        most = most_microusd(min(costs), share)
        for label in range(3):
            amounts = np.where(labels == label, question.nodes * 8, 0)
            counts = [int(amounts @ as_units(plan)) for plan, cost in zip(plans, costs) if cost <= most]
            found = range_of(question, amounts, most, optimize)
            assert (found.fewest, found.most) == (min(counts), max(counts)), (seed, label)
            wide += found.fewest != found.most
    assert wide >= (cases(2, 5) if share else 1)


def test_the_share_is_a_decimal_number() -> None:
    assert most_microusd(100, 0.07) == 107
    assert most_microusd(10**15, 0.1) == 11 * 10**14


def held_before(question: Program, plans: list[Plan], seed: int) -> tuple[IntArray, list[tuple[int, IntArray]]]:
    """Nodes of a unit of each column, by offer those of what some plan held, changed a little.

    Some columns have nodes at two offers, as jobs that switch do; now and then one has none that count.
    """
    rng = np.random.default_rng([seed, 6])
    groups = labels_of(question, seed)
    for number, task in enumerate(question.tasks):
        groups[task.first : task.stop] += 3 * number
    there = {int(group): np.where(groups == group, question.nodes, 0) for group in np.unique(groups)}
    second = np.where(rng.random(len(groups)) < 0.3, rng.integers(1, 4, len(groups)), 0)
    there[int(groups.max()) + 1] = second
    counted = rng.random(len(groups)) < 0.9
    there = {group: np.where(counted, each, 0) for group, each in there.items()}
    plan = as_units(plans[int(rng.integers(len(plans)))])
    nodes = np.sum(list(there.values()), axis=0)
    held = [(int(each @ plan) + int(rng.integers(0, 2)), each) for each in there.values() if each @ plan]
    return nodes, held


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_staying_changes_the_fewest_nodes_that_enumeration_finds(share: float) -> None:
    stayed = 0
    for seed, question, plans in instances(200, CASES // 2):
        nodes, held = held_before(question, plans, seed)
        most = most_microusd(value(question, list(plans[0]), "cost"), share)
        near = [plan for plan in plans if value(question, list(plan), "cost") <= most]
        least = min(changed_nodes(nodes, held, as_units(plan)) for plan in near)
        expected = next(p for p in near if changed_nodes(nodes, held, as_units(p)) == least)
        stay = fewest_changes(question, nodes, held, most, optimize)
        assert stay.changed == least, seed
        assert tuple(stay.solution.units.tolist()) == expected, seed
        stayed += expected != plans[0]
    assert stayed >= (cases(1, 2) if share else 0)


def test_a_price_on_changes_is_weighed_with_the_cost() -> None:
    moved = 0
    for seed, question, plans in instances(300, CASES // 2):
        nodes, held = held_before(question, plans, seed)
        price = int(question.cost_microusd.max()) // 5 + 1

        def paid(plan: Plan, question=question, nodes=nodes, held=held, price=price) -> int:  # type: ignore[no-untyped-def]
            changed = changed_nodes(nodes, held, as_units(plan))
            return int(value(question, list(plan), "cost")) + price * changed

        stay = with_move_cost(question, nodes, held, price, optimize)
        best = min(map(paid, plans))
        assert paid(tuple(stay.solution.units.tolist())) == best, seed
        assert stay.solution.cost_microusd + price * (stay.changed or 0) == best, seed
        moved += paid(plans[0]) != best
    assert moved >= cases(1, 3)
