"""Trees of branches in a certificate: what they prove is true whatever stands in them, and most often all there is."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.analysis import branched
from planner.analysis.certified import certificate_of
from planner.analysis.standing import standing_of
from planner.candidates.program import Program, Task
from planner.catalog.model import Catalog
from planner.optimize.solve import optimize
from planner.plan.branches import MOST_BRANCHES, Between, bound_of_branches, left_below
from planner.plan.certificate import certified_bound
from planner.plan.cover import UNMET
from planner.plan.document import digest_of
from planner.plan.least_weights import STEPS, CertificateError, least_of_task, parts_of, priced_weights
from planner.plan.proof import digest_of_witness
from tests.optimize.instances import ints, program, row
from tests.plan.test_certificate import around, priced, relaxed
from tests.plan.test_shared_nodes import world
from tests.tiers import cases
from tests.verified import errors
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

Document = dict[str, Any]
MOST = (2, 3, 2, 3, 1, 1, 1, 2)  # units of each column of `half_empty`


def half_empty(seed: int) -> Program:
    """Two fleets and a job, each on machines of its own or on devices of nodes of four that all may stand on."""
    rng = np.random.default_rng(seed)
    spare = int(rng.choice([0, 0, 1]))
    tasks = [
        Task(name="job", kind="training", first=4, stop=7),
        Task(name="a", kind="serving", first=0, stop=2, demand_micro_per_s=(int(rng.integers(3, 9)),)),
        Task(name="b", kind="serving", first=2, stop=4, demand_micro_per_s=(int(rng.integers(3, 7)),)),
        Task(name="nodes", kind="optional", first=7, stop=8),
    ]
    tasks[1] = replace(tasks[1], spare_replicas=spare)
    taken = [0, int(rng.integers(1, 3)), 0, int(rng.integers(1, 3)), 0, 2, int(rng.integers(1, 4)), -4]
    cost = [*rng.integers(9, 30, 7).tolist(), int(rng.integers(20, 60))]
    for column in (1, 3, 5, 6):
        cost[column] = int(rng.integers(0, 3))
    capacity = [[int(rng.integers(3, 7))] if column < 4 else [0] for column in range(8)]
    capacity[1], capacity[3] = [int(rng.integers(2, 4))], [int(rng.integers(2, 4))]
    return program(
        sorted(tasks, key=lambda task: task.first),
        cost=[1_000 * one for one in cost],
        capacity_micro_per_s=capacity,
        replicas=[1, 1, 1, 1, 0, 0, 0, 0],
        max_units=list(MOST),
        rows=(row("shared", 0, taken), row("limits.max_devices", 11, [2, 0, 2, 0, 3, 0, 0, 4])),
    )


def least(question: Program) -> int | None:
    """Of all numbers of units whatever, the least cost of those that are a plan."""
    units = np.indices([most + 1 for most in MOST]).reshape(len(MOST), -1).astype(np.int64)
    good = units[4:7].sum(axis=0) == 1
    for task in (one for one in question.tasks if one.kind == "serving"):
        mine, rates = units[task.first : task.stop], question.capacity_micro_per_s[task.first : task.stop, 0]
        carried = rates @ mine
        lost = task.spare_replicas * np.max(np.where(mine > 0, rates[:, None], 0), axis=0)
        good &= carried - lost >= task.demand_micro_per_s[0]
    for one in question.rows:
        coefficients = np.zeros(len(MOST), dtype=np.int64)
        coefficients[one.columns] = one.coefficients
        good &= coefficients @ units <= one.bound
    return int((question.cost_microusd @ units)[good].min()) if good.any() else None


def questions(count: int) -> list[tuple[Program, int]]:
    found = [(half_empty(seed), least(half_empty(seed))) for seed in range(count)]
    return [(question, cost) for question, cost in found if cost is not None]


def test_branches_close_what_prices_leave_open_and_never_prove_too_much() -> None:
    """Of a fifth of such questions prices alone leave something open, up to half of the cost."""
    parted = closed = 0
    for question, cost in questions(cases(60, 300)):
        solution = optimize(replace(question, objective=("cost",)))
        assert solution.cost_microusd == cost
        made = certificate_of(around(question), solution)
        assert made is not None
        assert made["bound"] <= cost
        parted += "branches" in made
        if "branches" in made:
            assert priced_weights(question, made)[7] >= 0  # or there would be any number of nodes
        closed += made["gap"] == 0
        assert made["gap"] == 0 or "branches" in made
    assert parted > cases(60, 300) / 8
    assert closed > 0.97 * len(questions(cases(60, 300)))


def any_tree(rng: np.random.Generator, question: Program, around: dict[int, int], depth: int) -> list[dict[str, Any]]:
    """A tree of any branches at prices near some."""
    if not depth or rng.random() < 0.2:
        prices = [int(around.get(n, 0) * rng.choice([0, 0.5, 0.9, 1, 1.1, 2])) for n in range(len(question.rows))]
        named = [{"number": n, "name": question.rows[n].name, "price": p} for n, p in enumerate(prices) if p]
        return [{"kind": "prices", "rows": named}]
    branch: dict[str, Any] = {"kind": "units", "number": int(rng.integers(0, 8)), "most": int(rng.integers(0, 3))}
    if rng.random() < 0.5:
        task = question.tasks[int(rng.integers(0, len(question.tasks)))]
        branch |= {"workload": task.name, "number": int(rng.integers(0, task.stop - task.first))}
    if rng.random() < 0.3:
        branch = {"kind": "use", "workload": "job", "number": int(rng.integers(0, 2))}
        branch |= {"most": int(rng.integers(0, 4))} if rng.random() < 0.7 else {}
    return [branch, *(one for _ in range(2) for one in any_tree(rng, question, around, depth - 1))]


def test_whatever_stands_in_a_tree_is_true() -> None:
    rng = np.random.default_rng(3)
    better = 0
    for question, cost in questions(cases(40, 200)):
        plain, upper = relaxed(question), ints(MOST)
        near = {one["number"]: one["price"] for one in plain["rows"]}
        for value in (cost, cost, cost, 3 * cost):
            tree = {**plain, "branches": any_tree(rng, question, near, 4)}
            found, left = bound_of_branches(question, tree, upper, value), left_below(question, plain, upper, value)
            assert left is not None
            assert found <= cost * STEPS
            assert certified_bound(around(question), tree, value) <= cost
            better += found > left.bound
    assert better


def test_units_that_are_there_anyway_are_part_of_the_least_cover() -> None:
    """At least so many units of each column: no cover of whole units with as many weighs less, spares and all."""
    rng = np.random.default_rng(7)
    tight = 0
    for seed in range(cases(60, 300)):
        question = half_empty(seed)
        certificate = relaxed(question)
        weights = priced_weights(question, {**certificate, "rows": []})
        lower = np.array([int(rng.integers(0, most + 1)) for most in MOST], dtype=np.int64)
        for task in question.tasks[:2]:
            parts = parts_of(certificate["requests"], task)
            if not parts:
                continue
            found = least_of_task(question, task, weights, ints(MOST), parts, lower=lower)
            part = slice(task.first, task.stop)
            units = np.indices([most + 1 for most in MOST[part]]).reshape(2, -1)
            rates = question.capacity_micro_per_s[part, 0]
            lost = task.spare_replicas * np.max(np.where(units > 0, rates[:, None], 0), axis=0)
            good = (rates @ units - lost >= task.demand_micro_per_s[0]) & (units >= lower[part][:, None]).all(axis=0)
            best = int((weights[part].astype(np.int64) @ units)[good].min()) if good.any() else UNMET
            assert found.weight <= best
            tight += found.weight == best
    assert tight > 1.8 * cases(60, 300)


def test_columns_that_differ_in_cost_alone_stand_as_the_lightest() -> None:
    task = Task(name="a", kind="serving", first=0, stop=3, demand_micro_per_s=(9,))
    question = program(
        [task], cost=[7, 5, 4], capacity_micro_per_s=[[3], [3], [2]], replicas=[1, 1, 1], max_units=[2, 2, 9],
        rows=(row("limits.max_devices", 99, [1, 1, 1]),),
    )  # fmt: skip
    left = left_below(question, relaxed(question), ints([2, 2, 9]), 40)
    assert left is not None
    assert left.program.cost_microusd.tolist() == [5, 4]
    assert left.upper.tolist() == [4, 9]
    assert left.place.tolist() == [0, 0, 1]
    assert left.column.tolist() == [1, 2]


def test_ways_of_a_job_are_parted_by_how_much_of_a_limit_they_use() -> None:
    """1, 2 or 3 devices of nodes: at most one on the first side, more on the second."""
    question = replace(half_empty(0), rows=(row("shared", 9, [0, 1, 0, 1, 1, 2, 3, -4]),))
    left = left_below(question, priced(question, {}, []), ints(MOST), 10**9)
    assert left is not None
    for more, sides in (({}, ((0, 0, 0), (1, 1, 1))), ({"most": 1}, ((1, 0, 0), (0, 1, 1)))):
        branch: Any = {"kind": "use", "workload": "job", "number": 0, **more}
        found = left.sides(branch, Between(np.zeros_like(left.upper), left.upper))
        assert tuple(tuple(upper[left.place[4:7]].tolist()) for _, upper, _ in found) == sides


def test_mixes_that_are_no_columns_are_on_either_side() -> None:
    """Whatever a mix of the job weighs at least, no tree proves more than plans with it could cost."""
    rng = np.random.default_rng(5)
    for question, cost in questions(cases(20, 100)):
        plain = relaxed(question)
        near = {one["number"]: one["price"] for one in plain["rows"]}
        tree, free = {**plain, "branches": any_tree(rng, question, near, 4)}, question.cost_microusd.copy()
        free[4:7] = 0  # as if each of its ways cost nothing, and took nothing of any limit
        rows = tuple(replace(one, coefficients=np.where(np.isin(one.columns, [4, 5, 6]), 0, one.coefficients))
                     for one in question.rows)  # fmt: skip
        alone = least(replace(question, cost_microusd=free, rows=rows))
        assert alone is not None
        found = bound_of_branches(question, tree, ints(MOST), cost, lambda task, *_: 0 if task.name == "job" else None)
        assert found <= alone * STEPS


def test_a_question_that_only_sizes_of_a_job_part_is_proven() -> None:
    """One device and a fleet's within a quota of four: the job alone would take four, cheaper, for a quarter of the
    time; a certificate left 2 % open. Of a node that nobody is left to stand on any price made the bound fall short."""
    shapes = [shape("north/one"), shape("north/four", devices=4), shape("south/two", devices=2)]
    offers = [offer("north/one", 1.12), offer("north/four", 3.73), offer("south/two", 2.33)]
    asked = scenario(
        [job(tokens="60B", deadline="100 h")],
        [fleet(qpm=300)],
        hardware={"quotas": [{"price_model": "on_demand", "max_devices": 4}]},
        horizon="400 h",
    )
    known = catalog([device()], shapes, offers)
    document = api.solve(asked, known).document
    assert (document["status"], document["certificate"]["gap"]) == ("optimal", 0)
    assert any(one["kind"] == "use" and one["most"] for one in document["certificate"]["branches"])
    assert errors(document, known) == []  # type: ignore[arg-type]


def test_who_checks_a_tree_needs_no_mixes_that_were_found_before_it() -> None:
    """They stand among the columns of the job, before those that a tree parts: it was refused as of no column."""
    shapes = [shape(f"north/{n}", devices=n) for n in (1, 4, 8)] + [shape("south/two", devices=2)]
    prices = {"north/1": 1.2, "north/4": 4.3, "north/8": 11.0, "south/two": 1.4}
    known = catalog([device()], shapes, [offer(name, price) for name, price in prices.items()])
    asked = scenario(
        [job(tokens="60B", deadline="40 h", mix_within_job=True)],
        [fleet(qpm=3000)],
        hardware={"owned": [{"shape": "north/8", "count": 1, "price": "$1/h"}]},
        horizon="400 h",
    )
    document = api.solve(asked, known).document
    parted = [one for one in document["certificate"].get("branches", []) if one["kind"] == "units"]
    assert {one["workload"] for one in parted} & {"f0", "fleet", "~nodes"}
    assert errors(document, known) == []  # type: ignore[arg-type]
    assert document["certificate"]["gap"] == 0  # on a part of a node the job is no mix: 16 % were left open


LEAF = {"kind": "prices", "rows": []}


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        ([LEAF, LEAF], "beyond the whole"),
        ([{"kind": "units", "number": 7, "most": 0}, LEAF], "leave some plans out"),
        ([{"kind": "units", "number": 8, "most": 0}, LEAF, LEAF], "no column 8"),
        ([{"kind": "units", "number": 7, "most": -1}, LEAF, LEAF], "of -1 units"),
        ([{"kind": "units", "workload": "job", "number": 3, "most": 0}, LEAF, LEAF], "no column 3"),
        ([{"kind": "units", "workload": "nobody", "number": 0, "most": 0}, LEAF, LEAF], "no column 0"),
        ([{"kind": "use", "workload": "a", "number": 0}, LEAF, LEAF], "no single job is called 'a'"),
        ([{"kind": "use", "workload": "job", "number": 2}, LEAF, LEAF], "no such limit"),
        ([{"kind": "use", "workload": "job", "number": 0, "most": -1}, LEAF, LEAF], "nobody uses -1"),
        ([{"kind": "prices", "rows": [{"number": 0, "name": "shared", "price": -1}]}], "is -1"),
        ([LEAF] * (MOST_BRANCHES + 1), "at most"),
    ],
)
def test_no_tree_is_taken_that_is_none(tree: list[dict[str, Any]], why: str) -> None:
    question = half_empty(0)
    with pytest.raises(CertificateError, match=why):
        bound_of_branches(question, {**priced(question, {}, []), "branches": tree}, ints(MOST), 10**9)


def resealed(document: Document) -> Document:
    certificate = document["certificate"]
    certificate["sha256"] = digest_of_witness(certificate)
    document["sha256"] = digest_of(document)
    return document


@pytest.fixture(scope="module")
def parted_plan() -> tuple[Document, Catalog]:
    """Three fleets on nodes of which some stand half empty."""
    scenario, known = world(10)
    document = api.solve(scenario, known).document
    assert document["certificate"] is not None
    assert len(document["certificate"]["branches"]) > 2
    return document, known  # type: ignore[return-value]


def test_a_plan_that_rests_on_branches_is_proven(parted_plan: tuple[Document, Catalog]) -> None:
    document, known = parted_plan
    assert document["certificate"]["gap"] == 0
    assert errors(document, known) == []


def without(document: Document) -> None:
    del document["certificate"]["branches"]


def one_side_only(document: Document) -> None:
    document["certificate"]["branches"] = document["certificate"]["branches"][:2]


def free(document: Document) -> None:
    for branch in document["certificate"]["branches"]:
        branch.get("rows", []).clear()


def elsewhere(document: Document) -> None:
    first = document["certificate"]["branches"][0]
    first.clear()
    first.update({"kind": "units", "number": 0, "most": 10**6})


@pytest.mark.parametrize("forge", [without, one_side_only, free, elsewhere])
def test_a_forged_tree_is_found(parted_plan: tuple[Document, Catalog], forge: Any) -> None:
    document, known = parted_plan
    forged = copy.deepcopy(document)
    forge(forged)
    assert any("certificate" in str(error) for error in errors(resealed(forged), known))


def crowded(seed: int) -> Program:
    """As `half_empty`, with room for fewer machines."""
    question = half_empty(seed)
    shared, most = question.rows
    return replace(question, objective=("cost",), rows=(shared, replace(most, bound=int(2 + seed % 5))))


def test_that_nothing_meets_every_limit_is_shown_by_branches_where_prices_do_not() -> None:
    """Two workloads that may each have the one machine: the relaxation gives a half to each."""
    asked = [crowded(seed) for seed in range(cases(80, 400))]
    none = [question for question in asked if least(question) is None]
    made = [certificate_of(around(question), optimize(question)) for question in none]
    shown = [one for one in made if one is not None]
    assert len(shown) > 0.97 * len(none) > 0.15 * len(asked)
    assert any("branches" in one for one in shown)
    for question, one in zip(none, made):
        assert one is None or certified_bound(around(question), one, 1) > 0
        if one is not None:
            assert standing_of({"status": "infeasible", "certificate": one}, around(question)).proven
    trees = [one for one in shown if "branches" in one]
    for question in asked:
        if least(question) is not None:  # of another question, whose columns and limits are of the same number
            assert all(certified_bound(around(question), one, 1) <= 0 for one in trees[:5])


def test_what_is_bought_for_others_is_never_worth_more_than_it_costs() -> None:
    """A price of fewer columns, without the nodes: at it there would be any number of them."""
    question = half_empty(0)
    dear = branched._of_all(question, priced(question, {}, []), {0: 10**9, 1: 0})
    assert 0 <= priced_weights(question, dear)[7] < 4  # devices of a node
