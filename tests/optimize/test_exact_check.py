"""Every comparison of the exact check: one within its bound, at it, and one beyond it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from planner.candidates.program import DECODE, PREFILL, Program, Task
from planner.optimize.build import build
from planner.optimize.check import ROUND, flows_of, judge, violations
from planner.optimize.scope import Joint, Scope
from planner.optimize.status import Ending, Outcome
from tests.optimize.instances import ints, program, row


def broken(question: Program, units: Iterable[int], *, upper: Any = None, settled: Any = ()) -> list[str]:
    """What the check says of a plan, column bounds at 9 unless they are given."""
    most = ints([9] * question.column_count if upper is None else upper)
    scope = Scope(program=question, upper=most, joint=Joint.of(()), settled=tuple(settled))
    return list(violations(scope, ints(list(units))))


def optional(columns: int, **more: Any) -> Program:
    """What may be had or left: nothing is asked of it but the limits."""
    return program([Task(name="extra", kind="optional", first=0, stop=columns)], cost=[1] * columns, **more)


def fleet(columns: int, capacity: list[Any], **more: Any) -> Program:
    """One fleet; of a key of the task or of the program."""
    own = {key: more.pop(key) for key in list(more) if key in Task.__dataclass_fields__}
    task = Task(name="chat", kind="serving", first=0, stop=columns, **own)
    rates = ints(capacity).reshape(columns, -1)
    return program([task], cost=[1] * columns, **{"replicas": [1] * columns, **more}, capacity_micro_per_s=rates)


@pytest.mark.parametrize(("units", "found"), [(2, 0), (3, 0), (4, 1)])
def test_units_of_a_column(units: int, found: int) -> None:
    assert broken(optional(1), [units], upper=[3]) == ["a column has more units than it may"] * found


@pytest.mark.parametrize(("units", "found"), [(1, 0), (0, 0), (-1, 1)])
def test_units_are_not_below_zero(units: int, found: int) -> None:
    assert broken(optional(1), [units]) == ["a column has more units than it may"] * found


@pytest.mark.parametrize(("less", "found"), [(-1, 0), (0, 0), (1, 1)])
@pytest.mark.parametrize("size", [1, 10**16])  # sums beyond what a float counts singly
def test_joint_rows(less: int, found: int, size: int) -> None:
    used, bound = 7 * size, 7 * size - less
    question = optional(2, rows=(row("limits.x", bound, [size, 2 * size]),))
    assert broken(question, [1, 3]) == [f"limits.x: {used} of {bound}"] * found


@pytest.mark.parametrize(("supply", "found"), [(3, 0), (2, 0), (1, 1)])
def test_what_supplies_counts_against_a_row(supply: int, found: int) -> None:
    question = optional(2, rows=(row("pool", 0, [1, -2]),))
    assert broken(question, [4, supply]) == ["pool: 2 of 0"] * found


@pytest.mark.parametrize(("units", "found"), [([1, 0, 0], 0), ([1, 2, 0], 0), ([1, 1, 1], 1)])
def test_providers(units: list[int], found: int) -> None:
    question = optional(3, provider=[0, 1, 2], max_providers=2)
    assert broken(question, units) == ["too many providers"] * found


def test_nobodys_column_is_of_no_provider() -> None:
    assert broken(optional(3, provider=[0, 1, -1], max_providers=2), [1, 1, 1]) == []


@pytest.mark.parametrize(("value", "found"), [(7, 0), (6, 0), (5, 1)])
def test_settled_criteria(value: int, found: int) -> None:
    question = program([Task(name="x", kind="optional", first=0, stop=1)], cost=[3])
    assert broken(question, [2], settled=[("cost", value)]) == ["cost is worse than proven possible"] * found


@pytest.mark.parametrize(("value", "found"), [(5.1, 0), (5.0, 0), (4.9, 1)])
def test_the_time_of_a_plan_is_that_of_its_last_job(value: float, found: int) -> None:
    jobs = Task(name="jobs", kind="training", first=0, stop=3, count=2)
    question = program([jobs], cost=[1, 1, 1], finish=[2.0, 5.0, 8.0])
    assert broken(question, [1, 1, 0], settled=[("time", value)]) == ["time is worse than proven possible"] * found


@pytest.mark.parametrize(("units", "found"), [([1, 0], 1), ([1, 1], 0), ([2, 1], 1)])
def test_jobs_are_as_many_as_asked(units: list[int], found: int) -> None:
    question = program([Task(name="jobs", kind="training", first=0, stop=2, count=2)], cost=[1, 1])
    assert broken(question, units) == ["jobs: not 2 jobs"] * found


@pytest.mark.parametrize(("units", "found"), [([2, 1], 0), ([0, 2], 0), ([1, 1], 1)])
def test_least_replicas(units: list[int], found: int) -> None:
    question = fleet(2, [[0], [0]], replicas=[1, 2], min_replicas=4, demand_micro_per_s=(0,))
    assert broken(question, units) == ["chat: fewer than 4 replicas"] * found


def test_replicas_that_come_with_the_load_are_not_among_the_least() -> None:
    question = fleet(2, [[9], [9]], level=[0, 1], min_replicas=2, levels=((0,), (0,)), demand_micro_per_s=(0,))
    assert broken(question, [1, 5]) == ["chat: fewer than 2 replicas"]
    assert broken(question, [2, 5]) == []


@pytest.mark.parametrize(("demand", "found"), [(29, 0), (30, 0), (31, 1)])
def test_capacity_of_one_bucket(demand: int, found: int) -> None:
    question = fleet(2, [[10], [20]], demand_micro_per_s=(demand,))
    assert broken(question, [1, 1]) == ["chat: demand unmet"] * found


@pytest.mark.parametrize(("demand", "found"), [(13, 0), (14, 0), (15, 1)])
def test_the_largest_replicas_in_use_are_spare(demand: int, found: int) -> None:
    """Units of 2 replicas with 14 together: one spare is 7; the column of 20 is not in use."""
    question = fleet(3, [[14], [7], [20]], replicas=[2, 1, 1], spare_replicas=1, demand_micro_per_s=(demand,))
    assert broken(question, [1, 1, 0]) == ["chat: demand unmet"] * found


@pytest.mark.parametrize(("units", "found"), [(3, 0), (2, 0), (1, 1)])
def test_spares_of_a_fleet_with_buckets(units: int, found: int) -> None:
    """Next to a column that has the spares and carries everything, each in use has them too."""
    question = fleet(2, [[1000, 1000], [1, 1]], spare_replicas=2, demand_micro_per_s=(1, 1))
    assert broken(question, [4, units]) == ["chat: fewer than 2 replicas of a type in use"] * found


@pytest.mark.parametrize(("spot", "found"), [(1, 0), (2, 0), (3, 1)])
def test_share_on_spot(spot: int, found: int) -> None:
    """3 steady units of 10 and some of 5 on spot: 2 of these are a quarter of 40."""
    question = fleet(2, [[10], [5]], spot=[0, 1], max_spot_share=0.25, demand_micro_per_s=(10,))
    told = ["chat: 0.333 of the capacity on spot"] if found else []
    assert broken(question, [3, spot]) == told


def test_the_share_on_spot_is_the_decimal_that_it_prints_as() -> None:
    """0.1 as a binary number is above a tenth: one of 10 would pass with a thing too much."""
    question = fleet(2, [[9 * 10**17], [10**17 + 1]], spot=[0, 1], max_spot_share=0.1, demand_micro_per_s=(10,))
    assert broken(question, [1, 1]) == ["chat: 0.1 of the capacity on spot"]
    exact = fleet(2, [[9 * 10**17], [10**17]], spot=[0, 1], max_spot_share=0.1, demand_micro_per_s=(10,))
    assert broken(exact, [1, 1]) == []


@pytest.mark.parametrize(("spot", "found"), [(1, 0), (2, 1)])
def test_the_share_on_spot_holds_at_every_level(spot: int, found: int) -> None:
    """Half may be on spot at the peak, where more is steady; at the least load it is more than half."""
    question = fleet(
        3, [[10], [10], [10]], spot=[0, 1, 0], level=[0, 0, 1], max_spot_share=0.5, levels=((10,), (20,)),
        demand_micro_per_s=(20,),
    )  # fmt: skip
    assert broken(question, [1, spot, 3]) == ["chat: 0.667 of the capacity on spot"] * found


@pytest.mark.parametrize(("spot", "found"), [(1, 0), (2, 1)])
def test_the_share_on_spot_holds_for_every_role(spot: int, found: int) -> None:
    question = fleet(
        4, [[10], [10], [10], [10]], spot=[0, 1, 0, 0], role=[PREFILL, PREFILL, DECODE, DECODE], max_spot_share=0.5,
        demand_micro_per_s=(10,),
    )  # fmt: skip
    assert broken(question, [1, spot, 3, 3]) == ["chat: 0.667 of the capacity on spot"] * found


def asked(question: Program, values: Any, **more: Any) -> Any:
    """The verdict of an outcome on the model of the whole program."""
    scope = Scope(program=question, upper=ints([9] * question.column_count), joint=Joint.of(()))
    model = build(scope, "cost")
    point = np.asarray(values(model) if callable(values) else values, dtype=np.float64)
    return judge(scope, model, Outcome(ending=Ending.OPTIMAL, values=point, **more))


@pytest.mark.parametrize(("off", "why"), [(0.0, ""), (0.9 * ROUND, ""), (1.1 * ROUND, "its point is not whole")])
def test_a_point_is_whole_up_to_rounding(off: float, why: str) -> None:
    verdict = asked(optional(2), [1 + off, 2 - off])
    assert (verdict.why, None if verdict.units is None else verdict.units.tolist()) == (why, None if why else [1, 2])


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1.0], "no point came with it"),
        ([np.nan, 1.0], "its values are not numbers"),
        ([np.inf, 1.0], "its values are not numbers"),
    ],
)
def test_a_point_is_of_all_variables_and_finite(values: list[float], why: str) -> None:
    assert asked(optional(2), values).why == why


@pytest.mark.parametrize(("off", "believed"), [(0.0, True), (0.9e-6, True), (1.2e-6, False)])
def test_the_objective_is_that_of_the_point(off: float, believed: bool) -> None:
    question = program([Task(name="x", kind="optional", first=0, stop=1)], cost=[5])
    scope = Scope(program=question, upper=ints([9]), joint=Joint.of(()))
    real = float(build(scope, "cost").objective @ [2.0])
    verdict = asked(question, [2.0], objective=real * (1 + off))
    assert (verdict.units is not None) == believed
    assert believed or verdict.why.startswith("it reports the objective")


def sliced(share: list[float], units: list[float], capacity: int = 10) -> Any:
    """4 slices of a demand of 20 on two columns; `share` slices sent to each, `units` of each."""
    question = fleet(2, [[capacity], [10]], integer_slices=4, demand_micro_per_s=(20,))

    def values(model: Any) -> Any:
        point = np.zeros(model.variable_count)
        point[:2] = units
        for variable, flow in model.flows.items():
            point[variable] = share[flow.column]
        return point

    return asked(question, values)


@pytest.mark.parametrize(
    ("share", "why"),
    [
        ([2, 2], ""),
        ([2 + 0.9 * ROUND, 2], ""),
        ([2 + 1.1 * ROUND, 2], "chat: a slice is not whole"),
        ([2, 1], "chat: 3 of 4 slices of bucket 0 are routed"),
        ([1, 2], "chat: 3 of 4 slices of bucket 0 are routed"),
        ([3, 2], "chat: 5 of 4 slices of bucket 0 are routed"),
        ([3, 1], "chat: slices need 1.5 units of a column that has 1"),
    ],
)
def test_slices(share: list[float], why: str) -> None:
    assert sliced(share, [1, 1]).why == why


@pytest.mark.parametrize(("capacity", "found"), [(11, 0), (10, 0), (9, 1)])
def test_slices_at_the_rate_of_a_unit(capacity: int, found: int) -> None:
    told = f"chat: slices need {10 / capacity:.9g} units of a column that has 1"
    assert sliced([2, 2], [1, 1], capacity).why == told * found


def test_flows_of_one_bucket_are_shared_by_capacity() -> None:
    question = fleet(2, [[10], [30]], demand_micro_per_s=(20,))
    (flows,) = flows_of(question, ints([2, 1]), None, None)
    assert flows[:, 0].tolist() == [8.0, 12.0]


def test_only_the_demand_of_some_is_checked_where_others_stay() -> None:
    """And of all where nobody says which; limits are checked in any case."""
    tasks = [Task(name=name, kind="training", first=at, stop=at + 1, count=2) for at, name in enumerate("ab")]
    question = program(tasks, cost=[1, 1], rows=(row("limits.x", 2, [1, 1]),))
    scope = Scope(program=question, upper=ints([9, 9]), joint=Joint.of(()))
    one, other, limit = "a: not 2 jobs", "b: not 2 jobs", "limits.x: 6 of 2"
    for asked, found in ((None, [one, other, limit]), (tasks[:1], [one, limit]), (tasks[1:], [other, limit])):
        assert list(violations(scope, ints([3, 3]), tasks=asked)) == found
