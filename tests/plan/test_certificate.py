"""The certificate: true of every plan at any prices, and refused when it is changed."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.candidates.program import Program, Task
from planner.optimize.bound import prices_of
from planner.optimize.solve import optimize
from planner.plan.certificate import (
    CertificateError,
    certificate_problems,
    certified_bound,
    columns_digest,
    least_cover,
)
from planner.plan.document import digest_of
from tests.optimize import brute
from tests.optimize.instances import ints, program, row

SCENARIO = "scenarios/fleet.yaml"


def certificate(question: Program, rows: dict[int, int], requests: list[dict[str, Any]]) -> dict[str, Any]:
    named = [{"number": n, "name": question.rows[n].name, "price": price} for n, price in rows.items()]
    return {"criterion": "cost", "latest_s": None, "rows": named, "requests": requests}


def certified(question: Program) -> dict[str, Any]:
    prices = prices_of(question, "cost")
    assert prices is not None
    requests = [
        {"workload": one.task, "level": one.level, "prefill": one.prefill, "decode": one.decode}
        for one in prices.requests
    ]
    return certificate(question, prices.rows, requests)


def feasible(seeds: range) -> list[tuple[Program, int]]:
    found = []
    for seed in seeds:
        question = replace(brute.random_program(seed), objective=("cost",))
        answer = brute.best(question)
        if answer is not None:
            found.append((question, int(answer[0][0])))
    return found


def test_no_plan_is_below_the_bound_of_the_relaxations_prices() -> None:
    questions = feasible(range(120))
    assert len(questions) > 40
    bounds = [certified_bound(question, certified(question)) for question, _ in questions]
    assert all(bound <= best for bound, (_, best) in zip(bounds, questions))
    assert sum(bound == best for bound, (_, best) in zip(bounds, questions)) > len(questions) / 2


def test_any_prices_prove_something_true() -> None:
    rng = np.random.default_rng(5)
    for question, best in feasible(range(200, 280)):
        rows = {number: int(rng.integers(0, 10**6)) for number in range(len(question.rows))}
        requests = [
            {
                "workload": task.name,
                "level": 0,
                "prefill": rng.integers(0, 9, len(task.demand_micro_per_s)).tolist(),
                "decode": rng.integers(0, 9, len(task.demand_micro_per_s)).tolist(),
            }
            for task in question.tasks
            if task.kind == "serving"
        ]
        assert certified_bound(question, certificate(question, rows, requests)) <= best


def test_what_is_bought_ahead_is_bounded_too() -> None:
    """One job of 4 nodes; a node costs 10 reserved and 30 on demand; one is there. Best: 3 reserved."""
    question = program(
        [Task(name="job", kind="training", first=0, stop=1), Task(name="bought", kind="optional", first=1, stop=3)],
        cost=[0, 10, 30],
        max_units=[1, 9, 9],
        rows=(row("pool", 1, [4, -1, -1]),),
    )
    assert optimize(question).cost_microusd == 30
    assert certified_bound(question, certified(question)) == 30


def test_a_cover_in_whole_units_against_every_cover() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        weights, earned, upper = (rng.integers(0, 9, 3).tolist() for _ in range(3))
        need = int(rng.integers(1, 40))
        ways = [
            sum(w * u for w, u in zip(weights, (a, b, c)))
            for a in range(upper[0] + 1)
            for b in range(upper[1] + 1)
            for c in range(upper[2] + 1)
            if sum(e * u for e, u in zip(earned, (a, b, c))) >= need
        ]
        if ways:
            assert least_cover(weights, earned, upper, need) == min(ways)
        else:
            with pytest.raises(CertificateError):
                least_cover(weights, earned, upper, need)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["rows"].append({"number": 0, "name": "limits.max_devices", "price": -1}),
        lambda c: c["rows"].append({"number": 99, "name": "limits.max_devices", "price": 1}),
        lambda c: c["rows"].append({"number": 0, "name": "another limit", "price": 1}),
        lambda c: c.update(criterion="joy"),
    ],
)
def test_prices_that_fit_nothing_are_refused(change: Any) -> None:
    question = program(
        [Task(name="job", kind="training", first=0, stop=2)],
        cost=[3, 4],
        rows=(row("limits.max_devices", 5, [2, 1]),),
    )
    made = certified(question)
    change(made)
    with pytest.raises(CertificateError):
        certified_bound(question, made)


def test_the_digest_sees_every_number() -> None:
    question = brute.random_program(3)
    dearer = replace(question, cost_microusd=question.cost_microusd + ints(np.eye(1, question.column_count)[0]))
    looser = replace(question, rows=tuple(replace(one, bound=one.bound + 1) for one in question.rows))
    digests = {columns_digest(one) for one in (question, dearer, looser)}
    assert len(digests) == (3 if question.rows else 2)


@pytest.fixture(scope="module")
def plan() -> Any:
    scenario = api.load_scenario(SCENARIO)
    return api.solve(scenario, api.load_catalog()), api.enumerate_candidates(scenario, api.load_catalog()).whole


def test_a_plan_carries_its_certificate(plan: Any) -> None:
    document = plan[0].document
    made = document["certificate"]
    assert made["value"] == document["summary"]["cost_microusd"]
    assert 0 < made["bound"] <= made["value"]
    assert not certificate_problems(document, plan[1])


@pytest.mark.parametrize(
    ("cell", "value"), [("bound", 10**15), ("value", 1), ("gap", 0.5), ("columns_sha256", "0" * 64), ("rows", [{}])]
)
def test_a_changed_certificate_is_refused(plan: Any, cell: str, value: Any) -> None:
    document = copy.deepcopy(plan[0].document)
    document["certificate"][cell] = value
    document["sha256"] = digest_of(document)
    problems = certificate_problems(document, plan[1])
    assert {problem.reference for problem in problems} <= {"wrong-certificate", "other-columns"}
    assert problems
