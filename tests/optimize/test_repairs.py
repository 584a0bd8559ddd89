"""Repairs: applied they do, one unit less does not; conflict sets with deadlines; the least combination."""

from __future__ import annotations

import numpy as np
import pytest

from planner.candidates.program import Row, Task, restrict
from planner.optimize import conflict
from planner.optimize.conflict import find_conflict, surely_infeasible
from planner.optimize.elastic import combined_repair
from planner.optimize.limited import PROVIDERS, Asker, Filter, Limited
from planner.optimize.repair import single_repair
from tests.optimize.brute import best
from tests.optimize.instances import ints, program, row
from tests.optimize.repair_cases import cheapest_by_brute_force, checked, infeasible_instances, limited_program
from tests.tiers import cases

TASKS = [Task(name=n, kind="training", first=f, stop=f + 2) for n, f in (("a", 0), ("b", 2))]


def deadline(name: str, bound: int, need: list[int]) -> Filter:
    return Filter(name=name, label="", bound=bound, need=ints(need))


def test_deadline_and_quota_by_hand() -> None:
    """a and b are each on time on 3 nodes (9 days) or late on 1 (20 days); 4 nodes, 10 days.

    One deadline of 20 lets one job run on 1 node: 1 + 3 = 4. Or a quota of 6. Costs: 5 on 3 nodes, 4 on 1.
    """
    limited = Limited(
        program=program(TASKS, cost=[5, 4, 5, 4], rows=(row("quota", 4, [3, 1, 3, 1]),)),
        filters=(deadline("a.deadline", 10, [9, 20, 0, 0]), deadline("b.deadline", 10, [0, 0, 9, 20])),
    )
    assert set(find_conflict(limited).names) == {"a", "b", "a.deadline", "b.deadline", "quota"}
    repairs = {name: single_repair(limited, name) for name in limited.limits}
    assert {name: one.more for name, one in repairs.items()} == {"a.deadline": 10, "b.deadline": 10, "quota": 2}
    assert {name: one.cost_microusd for name, one in repairs.items()} == {"a.deadline": 9, "b.deadline": 9, "quota": 10}
    together = combined_repair(limited, limited.limits)
    assert together is not None
    assert (dict(together.more), together.weight, together.cost_microusd) == ({"quota": 2}, 500_000, 10)


def test_one_alone_is_not_enough_and_both_are() -> None:
    """The job takes 4 nodes for 20 days at $7: neither 20 days nor 4 nodes alone will do."""
    limited = Limited(
        program=program(TASKS[:1], cost=[7, 8], rows=(row("quota", 2, [4, 8]),)),
        filters=(deadline("a.deadline", 10, [20, 15]),),
    )
    assert [single_repair(limited, name).more for name in ("a.deadline", "quota")] == [None, None]
    assert find_conflict(limited).names in (("a", "a.deadline"), ("a", "quota"))
    together = combined_repair(limited, limited.limits)
    assert together is not None
    assert dict(together.more) == {"a.deadline": 10, "quota": 2}  # 100 % + 100 %; the other way 50 % + 300 %
    assert (together.weight, together.cost_microusd) == (2_000_000, 7)


def test_supplies_are_bought_before_a_limit_is_loosened() -> None:
    """A pool of 2 nodes to which 3 can be bought; the job takes 6: one more is missing, at any money."""
    tasks = [TASKS[0], Task(name="bought", kind="optional", first=2, stop=3)]
    question = program(
        tasks, cost=[1, 9, 10], max_units=[1, 1, 3], rows=(row("pool@0", 2, [6, 7, -1]), row("pool@1", 2, [6, 7, -1]))
    )
    repair = single_repair(Limited(program=question), "pool")
    assert (repair.more, repair.cost_microusd, repair.proven) == (1, 31, True)
    assert find_conflict(Limited(program=question)).names == ("a", "pool")
    assert find_conflict(Limited(program=question, fixed=frozenset({"pool"}))).names == ("a",)


def test_a_later_deadline_may_bring_company() -> None:
    """From 5 more on, the job shares its pool with another: what would do at 6 alone does only at 8."""
    question = program(TASKS, cost=[5, 4, 5, 4], rows=())
    alone = (Row(name="quota@0", label="", bound=3, columns=ints([0, 1]), coefficients=ints([3, 2])),)
    shared = (Row(name="quota@0", label="", bound=3, columns=ints([0, 1, 2, 3]), coefficients=ints([3, 1, 2, 2])),)
    limited = Limited(
        program=question,
        filters=(deadline("a.deadline", 10, [16, 18, 0, 0]),),
        steps={"a.deadline": (5,)},
        rows_at=lambda more: shared if (more.get("a.deadline") or 0) >= 5 else alone,
    )
    repair = single_repair(limited, "a.deadline")
    assert (repair.more, repair.cost_microusd) == (8, 8)


def test_providers_one_by_one() -> None:
    question = program(TASKS, cost=[3, 4, 5, 6], provider=[0, 0, 1, 1], max_providers=1)
    repair = single_repair(Limited(program=question), PROVIDERS)
    assert (repair.more, repair.cost_microusd) == (1, 8)
    assert combined_repair(Limited(program=question), (PROVIDERS,)).more == {PROVIDERS: 1}  # type: ignore[union-attr]


def test_large_amounts_are_exact_to_the_unit() -> None:
    """A budget in micro-dollars: one less than the least cost does not."""
    cost = [7_654_321_013, 9_000_000_001, 7_000_000_007, 8_000_000_000]
    limited = Limited(program=program(TASKS, cost=cost, rows=(row("limits.budget", 10**9, cost),)))
    repair = single_repair(limited, "limits.budget")
    assert repair.more == 7_654_321_013 + 7_000_000_007 - 10**9
    assert repair.proven


def test_random_infeasible_programs() -> None:
    """The default part of benchmarks/repairs.py."""
    seen, kinds = 0, np.zeros(4, dtype=int)
    for seed, limited in infeasible_instances(range(cases(20, 60))):
        tally = checked(limited)
        assert tally.wrong == [], seed
        kinds += [tally.repairs > 0, tally.not_enough > 0, tally.combined == 1, tally.combined > 1]
        seen += 1
    assert seen >= cases(8, 25)
    assert (kinds >= cases(1, 5)).all(), kinds


@pytest.mark.parametrize("name", ["a", "quota"])
def test_what_is_fixed_is_neither_loosened_nor_left_out(name: str) -> None:
    limited = Limited(
        program=program(TASKS[:1], cost=[7, 8], rows=(row("quota", 2, [4, 8]),)), fixed=frozenset({"quota"})
    )
    assert limited.limits == ()
    assert name in find_conflict(limited).names or name == "quota"
    assert limited.only(()).rows[0].bound == 2


def test_relaxations_rule_out_groups_and_the_set_stays_minimal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with many groups: first those without which the relaxation is infeasible, then integer programs."""
    monkeypatch.setattr(conflict, "MANY", 0)
    seen = 0
    for seed, limited in infeasible_instances(range(30)):
        names = find_conflict(limited).names
        assert best(limited.only(names)) is None, seed
        for name in names:
            assert best(limited.only([other for other in names if other != name])) is not None, (seed, name)
        seen += 1
    assert seen >= 12


def test_what_the_relaxation_calls_infeasible_is() -> None:
    sure = 0
    for seed in range(120):
        limited = limited_program(seed)
        program, mask = limited.at({})
        if surely_infeasible(restrict(program, mask)[0]):
            sure += 1
            assert cheapest_by_brute_force(limited, {}) is None, seed
    assert sure >= 50


def test_integrality_is_beyond_the_relaxation() -> None:
    """Jobs on 3, 3 and 2 nodes in two pools of 4: in parts they fill them, whole no two fit into one."""
    three = [Task(name=n, kind="training", first=f, stop=f + 2) for n, f in (("a", 0), ("b", 2), ("c", 4))]
    pools = (row("p", 4, [3, 0, 3, 0, 2, 0]), row("q", 4, [0, 3, 0, 3, 0, 2]))
    question = program(three, cost=[1] * 6, rows=pools)
    assert not surely_infeasible(question)
    assert set(find_conflict(question).names) == {"a", "b", "c", "p", "q"}


def test_out_of_time_nothing_is_claimed() -> None:
    limited = Limited(program=program(TASKS, cost=[3, 4, 5, 6], rows=(row("limits.budget", 7, [3, 4, 5, 6]),)))
    late = Asker(stop_at=0.0)
    repair = single_repair(limited, "limits.budget", late)
    assert (repair.more, repair.proven) == (None, False)
    assert combined_repair(limited, limited.limits, late) is None
    found = conflict.find_conflict(limited, asker=late)
    assert (found.names, found.minimal) == ((), False)
