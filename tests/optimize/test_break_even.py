"""Break-even prices: below, the hardware is in the best plan; above, it is not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from planner.candidates.program import Program, Task
from planner.optimize.break_even import break_even, forced_program
from planner.optimize.limited import Asker
from planner.optimize.solve import Solution
from tests.optimize.instances import ints, program, row
from tests.optimize.repair_cases import price_cases
from tests.tiers import cases

EPSILON = Fraction(1, 10**6)


def test_two_ways_by_hand() -> None:
    """$10 on the chosen hardware against $16 on the other: it enters below 10/16 of its price."""
    question = program([Task(name="a", kind="training", first=0, stop=2)], cost=[10, 16])
    found = break_even(question, ints([0, 1]) > 0, 10)
    assert (found.share, found.forced_microusd, found.spend_microusd, found.proven) == (Fraction(5, 8), 16, 16, True)


def test_the_plan_that_is_cheapest_when_free_is_not_the_last_one() -> None:
    """1 + 40 t and 8 + 4 t against 10: from t = 0 to 9/40, where the second line is at 8.9, and on to 1/2."""
    tasks = [Task(name="a", kind="training", first=0, stop=3), Task(name="help", kind="optional", first=3, stop=5)]
    helped = (row("first", 0, [0, 1, 0, -1, 0]), row("second", 0, [0, 0, 1, 0, -1]))
    question = program(tasks, cost=[10, 40, 4, 1, 8], max_units=[1] * 5, rows=helped)
    found = break_even(question, ints([0, 1, 1, 0, 0]) > 0, 10)
    assert (found.share, found.forced_microusd, found.spend_microusd) == (Fraction(1, 2), 12, 4)


def test_not_even_free() -> None:
    """On h the job needs a helper that alone costs more than the plan."""
    tasks = [Task(name="a", kind="training", first=0, stop=2), Task(name="help", kind="optional", first=2, stop=3)]
    question = program(tasks, cost=[10, 5, 12], max_units=[1, 1, 1], rows=(row("pool", 0, [0, 1, -1]),))
    found = break_even(question, ints([0, 1, 0]) > 0, 10)
    assert (found.share, found.forced_microusd) == (None, 17)


def test_what_cannot_be_used_has_no_price() -> None:
    tasks = [Task(name="a", kind="training", first=0, stop=2)]
    question = program(tasks, cost=[10, 5], rows=(row("quota", 3, [1, 9]),))
    found = break_even(question, ints([0, 1]) > 0, 10)
    assert (found.share, found.forced_microusd, found.proven) == (None, None, True)


def test_a_budget_at_list_prices_does_not_hide_a_lower_price() -> None:
    """h costs 16 against a budget of 12: at 10/16 of its price it would be within it, and chosen."""
    tasks = [Task(name="a", kind="training", first=0, stop=2)]
    question = program(tasks, cost=[10, 16], rows=(row("limits.budget", 12, [10, 16]),))
    assert break_even(question, ints([0, 1]) > 0, 10).share == Fraction(5, 8)


def test_pruning_keeps_what_only_another_price_brings_in() -> None:
    """Dearer in every respect, and yet the only column of its hardware."""
    tasks = [Task(name="a", kind="training", first=0, stop=3)]
    question = program(tasks, cost=[10, 16, 20], nodes=[1, 2, 3])
    mine = ints([0, 0, 1]) > 0
    assert 2 in forced_program(question, mine, mine)[1].tolist()


def test_a_lower_price_lets_other_workloads_change_too() -> None:
    """One job is to use h; below 12/10 of its price so does the other, whose way on h is the dearer one at list."""
    tasks = [Task(name="a", kind="training", first=0, stop=2), Task(name="b", kind="training", first=2, stop=4)]
    question = program(tasks, cost=[10, 16, 10, 12])
    found = break_even(question, ints([0, 1, 0, 1]) > 0, 20, uses=ints([0, 1, 0, 0]) > 0)
    assert (found.share, found.forced_microusd) == (Fraction(5, 7), 26)


def test_fleets_are_pruned_though_something_has_to_be_used() -> None:
    """None of a thousand ways was left out: each further program took seconds where it takes tenths."""
    fleet = Task(name="fleet", kind="serving", first=0, stop=4, demand_micro_per_s=(5,))
    question = program([fleet], cost=[10, 11, 20, 21], capacity_micro_per_s=[[2], [2], [3], [3]], replicas=[1] * 4)
    h = ints([0, 0, 1, 1]) > 0
    assert forced_program(question, h, h)[1].tolist() == [0, 2]
    assert break_even(question, h, 30).forced_microusd == 30


def test_what_forcing_costs_is_not_asked_again_when_other_prices_fall() -> None:
    """Of every job of a why-not its cheapest plan was solved twice: for the price, and for the MFU."""
    tasks = [Task(name="a", kind="training", first=0, stop=2), Task(name="b", kind="training", first=2, stop=4)]
    question = program(tasks, cost=[10, 16, 10, 12])
    uses = ints([0, 1, 0, 0]) > 0
    asked: list[Program] = []

    class Counting(Asker):
        def cheapest(self, program: Program, mask: Any = None) -> Solution:
            asked.append(program)
            return super().cheapest(program, mask)

    wide = break_even(question, ints([0, 1, 0, 1]) > 0, 20, uses=uses)
    alone = break_even(question, uses, 20, uses=uses, asker=Counting())
    first = len(asked)
    again = break_even(question, uses, 20, uses=uses, asker=Counting(), known=wide)
    assert (again.share, again.forced_microusd, again.proven) == (alone.share, 26, True) == (Fraction(5, 8), 26, True)
    assert len(asked) - first == first - 1


def test_random_programs_enter_at_the_break_even_price_and_not_above() -> None:
    """The default part of benchmarks/repairs.py, which counts 50 of 50."""
    entering = never = 0
    for seed, case in price_cases(range(cases(30, 60))):
        found = case.break_even()
        assert found.proven, seed
        if found.share is None:
            never += 1
            if found.forced_microusd is not None:
                assert case.best_at(Fraction(0))[0] == case.best_microusd, seed
            continue
        entering += 1
        assert case.best_at(found.share - EPSILON)[1], (seed, found.share)
        assert not case.best_at(found.share + EPSILON)[1], (seed, found.share)
    assert entering >= cases(5, 12)
    assert never >= cases(1, 2)
