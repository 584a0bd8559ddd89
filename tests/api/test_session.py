"""A session lists ways once: what a change leaves as it was is taken over, and is what a new search would find."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.api.checking import check
from planner.candidates import evaluated
from planner.candidates.search import Candidates
from planner.checks.verify import verify
from planner.cli.main import main
from planner.errors import UsageError
from planner.plan.references import load_model
from tests.tiers import sampled
from tests.worlds import catalog, job, scenario

ROOT = Path(__file__).parents[2]
LLAMA, PORTFOLIO = ROOT / "scenarios" / "llama.yaml", ROOT / "scenarios" / "portfolio.yaml"


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two things differ, however deep; scenarios by what they say."""
    if one is other:
        return []
    if isinstance(one, np.ndarray):
        return [] if np.array_equal(one, other, equal_nan=one.dtype.kind == "f") else [path]
    if isinstance(one, api_scenario()):
        return [] if one.resolved == other.resolved else [path]
    if is_dataclass(one) and not isinstance(one, type):
        if type(one) is not type(other):
            return [path]
        kept = [field.name for field in fields(one) if field.name != "ways" and field.compare]
        return [
            line for name in kept for line in differences(getattr(one, name), getattr(other, name), f"{path}.{name}")
        ]
    if isinstance(one, Mapping):
        if list(one) != list(other):
            return [path]
        return [line for key in one for line in differences(one[key], other[key], f"{path}[{key}]")]
    if isinstance(one, tuple | list):
        if len(one) != len(other):
            return [path]
        return [line for i, (a, b) in enumerate(zip(one, other)) for line in differences(a, b, f"{path}[{i}]")]
    return [] if one == other else [path]


def api_scenario() -> type:
    from planner.scenario.schema import Scenario

    return Scenario


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the workloads that were evaluated, in order."""
    names: list[str] = []
    whole = evaluated.evaluated

    def noted(workload: Any, *rest: Any) -> Any:
        names.append(workload.name)
        return whole(workload, *rest)

    monkeypatch.setattr(evaluated, "evaluated", noted)
    return names


@pytest.fixture(scope="module")
def llama() -> api.Session:
    return api.session(LLAMA)


def test_what_is_noted_is_all_of_it(listed: list[str]) -> None:
    api.session(LLAMA)
    assert listed == ["pretrain-8b", "assistant"]


@pytest.mark.parametrize(
    ("changes", "anew"),
    sampled(
        [
            ({"limits.budget": "$60000"}, []),
            ({"training.pretrain-8b.deadline": "14 days"}, ["pretrain-8b"]),
            ({"serving.assistant.qpm": 2400}, ["assistant"]),
            ({"title": "another"}, []),
            ({"limits.max_devices": 64}, ["pretrain-8b", "assistant"]),
            ({"horizon": "2 months"}, ["pretrain-8b", "assistant"]),
            ({"confidence": "p50"}, ["pretrain-8b", "assistant"]),
            ({"errors": "p90"}, ["pretrain-8b"]),  # fleets hold at p90 as it is
            ({"errors": "p50"}, ["pretrain-8b", "assistant"]),
            ({"hardware.allow": ["h100-*"]}, ["pretrain-8b", "assistant"]),
            ({"objective": "time"}, ["pretrain-8b", "assistant"]),
            ({"training.pretrain-8b.model": "llama-3.2-3b", "limits.budget": "$50000"}, ["pretrain-8b"]),
            ({"hardware.discounts": [{"device": "h100-*", "fraction": "10 %"}]}, ["pretrain-8b", "assistant"]),
            ({"limits.carbon": "900 t"}, ["pretrain-8b", "assistant"]),
        ],
        3,
    ),
)
def test_a_change_evaluates_what_it_concerns(
    changes: dict[str, Any], anew: list[str], llama: api.Session, listed: list[str]
) -> None:
    first = llama
    second = first.with_(changes)
    assert listed == anew
    fresh = api.enumerate_candidates(first.scenario.with_(changes), first.catalog)
    assert differences(second.candidates, fresh) == []
    assert differences(second.candidates, first.candidates) != []  # the change is there


@pytest.fixture(scope="module")
def portfolio() -> api.Session:
    return api.session(PORTFOLIO)


@pytest.mark.parametrize(
    ("changes", "anew"),
    [
        pytest.param({"training.ranker.deadline": "10 weeks"}, {"ranker"}, marks=pytest.mark.campaign),
        # copies of data are kept from the first start to the last deadline of all who read them
        ({"training.pretrain-1b.deadline": "14 weeks"}, {"pretrain-8b", "pretrain-1b"}),
        pytest.param({"begin": "2026-12-28"}, None, marks=pytest.mark.campaign),
    ],
)
def test_jobs_of_a_calendar(
    changes: dict[str, Any], anew: set[str] | None, portfolio: api.Session, listed: list[str]
) -> None:
    first = portfolio
    second = first.with_(changes)
    names = {workload.name for workload in first.scenario.workloads}
    assert set(listed) == (names if anew is None else anew)
    fresh = api.enumerate_candidates(first.scenario.with_(changes), first.catalog)
    assert differences(second.candidates, fresh) == []


@pytest.mark.usefixtures("listed_once")
def test_a_session_answers_as_single_calls_do() -> None:
    session = api.session("scenarios/gpt2-xl.yaml")
    assert isinstance(session.candidates, Candidates)
    plan = session.solve()
    assert plan.document == api.solve(ROOT.joinpath("scenarios/gpt2-xl.yaml").relative_to(ROOT)).document
    assert session.why_not("l40s") == api.why_not(session.scenario, "l40s")
    assert session.repairs() is None
    sooner = session.with_({"training.gpt2-xl.deadline": "1 h", "hardware.allow": ["h100-*"]})
    assert sooner.solve().status == "infeasible"
    assert sooner.repairs() is not None


def test_the_program_is_solved_once_for_all_questions(llama: api.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session = llama.on(llama.scenario)
    solved: list[int] = []
    whole = session.solved

    def noted(candidates: Candidates, **options: Any) -> Any:
        solved.append(1)
        return whole(candidates, **options)

    monkeypatch.setattr(session, "solved", noted)
    session.solve()
    once = len(solved)
    session.why_not("l40s")
    session.break_even()
    session.solve()
    assert len(solved) == once


def test_a_plan_file_is_asked_further_with_its_ways_listed_once(
    listed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Break-even prices of a plan file listed every way twice: to check the plan, and to ask on."""
    api.solve("gpt2-xl").write(tmp_path / "a.plan.json")
    listed.clear()
    monkeypatch.setattr(sys, "argv", ["plan", "explain", str(tmp_path / "a.plan.json"), "--break-even", "-q"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, listed) == (0, ["gpt2-xl"])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"seed": 1.5}, "the seed is 1.5; it must be a whole number from 0 to 2,147,483,647"),
        ({"seed": True}, "the seed is True; it must be a whole number"),
        ({"seed": float("nan")}, "the seed is nan; it must be a whole number"),
        ({"threads": "2"}, "threads is '2'; it must be a whole number from 1"),
        ({"best": 1.5}, "best is 1.5; it must be a whole number"),
        ({"best": -1}, "best is -1; it must be a whole number from 0"),
        ({"within": "5%"}, "within is '5%'; it must be a number, at least 0"),
        ({"gap": "x"}, "the gap is 'x'; it must be a number, at least 0 and at most 1"),
        ({"tie_tolerance": "x"}, "the tie tolerance is 'x'; it must be a number"),
        ({"time_limit_s": "5 s"}, "a time limit is '5 s'; it must be seconds"),
        ({"workers": 1.5}, "1.5 workers"),
    ],
)
def test_what_is_no_number_that_can_be_asked_for_is_refused_in_a_sentence(asked: dict[str, Any], said: str) -> None:
    """They ended in a TypeError, or in a plan that its own verifier refused: no plan has such a leaf."""
    with pytest.raises(UsageError, match=re.escape(said)):
        api.solve(scenario([job(deadline="2 h")]), catalog(), **asked)


def test_whole_floats_are_taken_for_whole_numbers() -> None:
    plan, world = scenario([job(deadline="2 h")]), catalog()
    as_floats = api.solve(plan, world, seed=1.0, threads=1.0, best=2.0, workers=1.0)  # type: ignore[arg-type]
    assert as_floats.to_json() == api.solve(plan, world, seed=1, threads=1, best=2).to_json()
    question = api.grid("training.job.tokens=1B,2B")
    one = api.sweep(api.session(plan, world), question, workers=1.0, borders=1.0)  # type: ignore[arg-type]
    assert one.document == api.sweep(api.session(plan, world), question, borders=1).document


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("training.pretrain-8b.precision", "fp8"),
        ("training.pretrain-8b.tokens", "151B"),
        ("training.pretrain-8b.sequence_length", 4096),
        ("training.pretrain-8b.model", "llama-3.2-3b"),
        ("training.pretrain-8b.recompute", ["full"]),
        ("training.pretrain-8b.failures", {"mtbf_per_device": "9000 hours"}),
    ],
)
def test_what_was_answered_of_one_plan_hides_nothing_of_another(llama: api.Session, key: str, value: Any) -> None:
    """The verifier of a session knows what was asked before: it finds what it would find without."""
    document = llama.solve().document
    known = llama.candidates.recall
    assert verify(document, llama.catalog, load_model, known) == []
    other: Any = {**document, "scenario": llama.scenario.with_({key: value}).resolved}
    found = verify(other, llama.catalog, load_model, known)
    assert found == verify(other, llama.catalog, load_model)
    assert any("pretrain-8b" in problem.message for problem in found)


@pytest.mark.parametrize("cell", ["hours", "count", "micro_batch", "tp", "sharding", "recompute"])
def test_what_was_answered_of_other_ways_hides_nothing(llama: api.Session, cell: str) -> None:
    document = copy.deepcopy(llama.solve().document)
    way: Any = next(one for one in document["workloads"] if one["kind"] == "training")["alternatives"][0]
    part = way["layout"] if cell in way["layout"] else way
    words = {"sharding": "zero-2", "recompute": "none" if way["layout"]["recompute"] == "full" else "full"}
    part[cell] = words[cell] if cell in words else part[cell] * 2
    found = verify(document, llama.catalog, load_model, llama.candidates.recall)
    assert found == verify(document, llama.catalog, load_model)
    assert [problem.reference for problem in found] != ["changed-plan"]


@pytest.mark.parametrize("futures", [False, True])
def test_that_there_is_no_plan_is_told_without_ways_out(futures: bool) -> None:
    """By itself it verifies as well: nothing was looked for, which is no claim that nothing is there."""
    changes: dict[str, Any] = {"limits": {"max_devices": 2}}
    if futures:
        changes["uncertainty"] = [
            {"name": "more", "probability": "30 %", "set": {"training.pretrain-8b.tokens": "250B"}}
        ]
    session = api.session(api.load_scenario("llama").with_(changes))
    bare, whole = session.solve(ways_out=False).document, session.solve().document
    assert [one["status"] for one in (bare, whole)] == ["infeasible", "infeasible"]
    assert bare["infeasible"] is not None
    assert whole["infeasible"] is not None
    assert (bare["infeasible"]["conflict"], bare["infeasible"]["ways_out"]) == ([], [])
    assert whole["infeasible"]["ways_out"]
    assert bare["certificate"] == whole["certificate"]
    found = check(bare)
    assert found.problems == []
    assert found.standing.proven
