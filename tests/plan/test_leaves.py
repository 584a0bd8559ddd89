"""Every leaf of a plan, changed one at a time under a new seal: found, or in the class that is told.

A seeded sample runs in every suite; `pytest -m campaign tests/plan/test_leaves.py` changes every leaf of four shipped
scenarios and each path once in the others, and prints the counts.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.analysis.again import searched_findings
from planner.analysis.beside import NO_TIME
from planner.analysis.listed import choice_findings, listing_findings
from planner.analysis.others.other_plans import Previous
from planner.analysis.simulated import simulation_findings
from planner.candidates.search import Candidates
from planner.checks.findings import Finding, gathered
from planner.checks.leaves import ANY, HELD, RECOMPUTED, SOLVED, TABLE, TOLD, Leaf, counts, read, told_paths, tree
from planner.checks.verify import Checker
from planner.plan.document import resealed
from planner.plan.references import load_model
from tests.plan.forging import Forgery, forged, forgeries, without_indexes
from tests.tiers import while_time_lasts

pytestmark = pytest.mark.usefixtures("listed_once", "rated_once")
ROOT = Path(__file__).parents[2]
WHOLE = ("llama", "gpt2-xl", "trace", "mixed-job")
SLOW = ("company",)  # five seconds for each change, and no kind of leaf that portfolio lacks
SCENARIOS = sorted({path.stem for path in (ROOT / "scenarios").glob("*.yaml")} - set(SLOW))
SAMPLE = 200  # of the leaves of a small plan, in every run
# held by `planner.api.verify`, which lists every way and reads the file of the scenario
ELSEWHERE = ("certificate", "scenario")
Document = dict[str, Any]


@cache
def checker() -> Checker:
    return Checker(api.load_catalog(), load_model)


@cache
def planned(name: str) -> Document:
    """The plan of a shipped scenario, read again; it holds."""
    made: Document = api.solve(api.load_scenario(ROOT / "scenarios" / f"{name}.yaml")).document
    assert checker().problems(made) == []
    return made


@cache
def listed(name: str) -> Candidates:
    """Every way of a shipped scenario, listed again."""
    return api.enumerate_candidates(api.load_scenario(ROOT / "scenarios" / f"{name}.yaml"))


@cache
def wider(texts: tuple[str, ...]) -> Candidates:
    """The ways of the infeasible scenario with other settings."""
    scenario = api.load_scenario(ROOT / "scenarios" / "infeasible.yaml", settings=texts)
    return api.enumerate_candidates(scenario, known=listed("infeasible"))


def found(document: Document, whole: Document) -> bool:
    """Whether `plan verify` finds what is wrong with a plan of a shipped scenario, beside what is whole.

    One finding is enough: what it would say beside it is not asked for.
    """
    simulation = whole.get("simulation")

    def compared() -> Iterator[Finding]:
        yield from listing_findings(document, listed(whole["name"]))
        yield from choice_findings(document, lambda asked: wider(tuple(asked.settings)))
        if simulation is not None:
            yield from simulation_findings(document["simulation"], simulation)

    return any(gathered(islice(findings, 1)) for findings in (checker().findings(document), compared()))


def leaf_at(path: Sequence[str | int]) -> Leaf | None:
    """What the table says of a path; of a part above leaves, what it says of those below when that is one class."""
    branch = tree()
    for step in path:
        if ANY in branch:
            return branch[ANY].leaf
        named = branch.get(str(step)) if isinstance(step, str) else None
        branch = named if named is not None else branch.get("*", type(branch)())
    below = {one.leaf for one in _below(branch) if one.leaf is not None}
    kinds = {leaf.kind for leaf in below}
    return branch.leaf or (next(iter(below)) if len(kinds) == 1 else None)


def _below(branch: Any) -> list[Any]:
    return [branch, *(one for inner in branch.values() for one in _below(inner))]


def missed(document: Document, made: Sequence[Forgery]) -> list[str]:
    """Changes that nobody sees, of leaves that are not told; of searched ones, those that claim more than they may."""
    unseen = [one for one in while_time_lasts(made) if not found(forged(document, one), document)]
    return [one.name for one in unseen if not excused(document, one)]


def excused(document: Document, one: Forgery) -> bool:
    """Told; or found by solving again; or a proof that is given up."""
    leaf = leaf_at(one.path)
    if leaf is None or leaf.kind != SOLVED:
        return leaf is not None and leaf.kind == TOLD
    return one.value in (False, None) or bool(list(searched_findings(forged(document, one), document)))


def of_verifier(document: Document) -> list[Forgery]:
    """All but what others notice, and the loss of a `plain` that tells of no other plan than the one beside it."""
    idle = (("plain",), "left out") if not document.get("plain", {}).get("workloads") else None
    return [one for one in forgeries(document) if one.path[0] not in ELSEWHERE and (one.path, one.kind) != idle]


def test_each_leaf_of_the_table_is_of_one_class() -> None:
    tree.cache_clear()
    assert tree()  # a leaf that is named twice raises
    assert {kind for _, kind, _ in TABLE} == {RECOMPUTED, HELD, SOLVED, TOLD}


@pytest.mark.parametrize("name", ["gpt2-xl", "mixed-job", "llama", "a100-rules", "infeasible"])
def test_every_leaf_of_a_plan_is_in_the_table(name: str) -> None:
    document = planned(name)
    assert [path for path, leaf, _ in read(document) if leaf is None] == []
    assert sum(counts(document).values()) == len(list(read(document)))


def test_what_is_told_is_words_and_how_the_solver_was_asked() -> None:
    """No figure of the plan."""
    numbers = {
        f"{prefix}.{word.partition(':')[0]}"
        for prefix, kind, words in TABLE
        if kind == TOLD
        for word in words.split()
        if not word.removesuffix("?").endswith(":str")
    }
    asked = {f"provenance.{name}" for name in ("seed", "threads", "gap_asked", "solver_gap")}
    assert numbers == {
        *asked,
        "others.previous.share",
        "others.previous.move_usd",
        "ties.tolerance",
        "ties.rows.*.others",
    }
    assert "workloads[].because[]" in told_paths()


def test_a_sample_of_leaves_changed_is_found() -> None:
    document = planned("gpt2-xl")
    made = random.Random(20261122).sample(of_verifier(document), SAMPLE)
    assert missed(document, made) == []


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda plan: plan["summary"].update(smuggled=1), "unknown-leaf"),
        (
            lambda plan: plan["workloads"][0]["allocations"][0].update(count=float(row_of(plan)["count"])),
            "unknown-leaf",
        ),
        (lambda plan: plan["workloads"][0]["alternatives"][0].update(hours=1.0), "wrong-alternative"),
        (lambda plan: plan["workloads"][0]["alternatives"][0].update(tie=None), "unknown-leaf"),
        (lambda plan: plan["workloads"][0]["cross_check"][0].update(value=1.0), "wrong-rule"),
        (lambda plan: plan["workloads"][0]["equations"].append("EQ-MEM-1"), "wrong-source"),
        (lambda plan: plan["workloads"][0].update(estimator="rule"), "wrong-source"),
        (lambda plan: plan["workloads"][0]["term_sources"]["memory"].popitem(), "wrong-source"),
        (lambda plan: row_of(plan).update(mfu_source="hearsay"), "wrong-time"),
        (lambda plan: plan["limits"][0].update(used=0.0), "wrong-limit"),
        (lambda plan: plan["limits"][0].update(binding=not plan["limits"][0]["binding"]), "wrong-limit"),
        (lambda plan: plan["limits"].pop(), "wrong-limit"),
        (lambda plan: plan["provenance"]["facts"].pop(), "wrong-fact"),
        (lambda plan: plan["provenance"]["facts"][0].update(value="another"), "wrong-fact"),
        (lambda plan: plan["provenance"].update(prices_as_of="2020-01-01"), "wrong-fact"),
        (lambda plan: plan["workloads"][0]["alternatives"].pop(), "wrong-columns"),
        (lambda plan: plan.pop("uncertainty"), "unknown-leaf"),
    ],
)
def test_a_forged_leaf_names_its_finding(change: Callable[[Document], Any], finding: str) -> None:
    document = copy.deepcopy(planned("gpt2-xl"))
    change(document)
    assert finding in {problem.reference for problem in checker().problems(resealed(document))}


def row_of(plan: Document) -> Document:
    row: Document = plan["workloads"][0]["allocations"][0]
    return row


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda told: told["ways_out"][1].update(to=told["ways_out"][1]["to"] + 1), "wrong-way-out"),
        (lambda told: told["ways_out"][0].update(setting="training.first-8b.deadline=1 s"), "wrong-way-out"),
        (lambda told: told["ways_out"][0].update({"from": 1}), "wrong-way-out"),
        (lambda told: told["combined"].update(loosening=0.4), "wrong-way-out"),
        (lambda told: told["combined"].update(cost_usd=1.0), "wrong-way-out"),
        (lambda told: told["conflict"][0].update(name="somebody"), "wrong-way-out"),
        (lambda told: told["conflict"].pop(1), "wrong-way-out"),
        (lambda told: told["conflict"].pop(), "wrong-way-out"),
        (lambda told: told["conflict"].append(told["conflict"][0]), "wrong-way-out"),
        (lambda told: told["ways_out"].pop(0), "wrong-way-out"),
        (lambda told: told["ways_out"].append(told["ways_out"][-1]), "wrong-way-out"),
    ],
)
def test_a_forged_way_out_is_found(change: Callable[[Document], Any], finding: str) -> None:
    document = copy.deepcopy(planned("infeasible"))
    change(document["infeasible"])
    assert finding in {problem.reference for problem in checker().problems(resealed(document))}


@pytest.mark.parametrize(
    ("change", "reference"),
    [
        (lambda plan: told_of(plan).update(layouts_seen=told_of(plan)["layouts_seen"] + 1), "wrong-columns"),
        (lambda plan: told_of(plan).update(offers_seen=0), "wrong-columns"),
        (lambda plan: told_of(plan)["reasons"].pop(), "wrong-columns"),
        (lambda plan: told_of(plan)["reasons"][0].update(count=1), "wrong-columns"),
        (lambda plan: plan["provenance"].update(columns_pruned=1), "wrong-columns"),
        (lambda plan: plan["provenance"].update(columns=1), "wrong-columns"),
        (lambda plan: plan["workloads"][0]["alternatives"][0].update(cost_microusd=1), "wrong-alternative"),
        (lambda plan: plan["workloads"][0]["alternatives"].pop(0), "wrong-alternative"),
    ],
)
def test_what_was_looked_at_is_what_is_listed_again(change: Callable[[Document], Any], reference: str) -> None:
    document = copy.deepcopy(planned("gpt2-xl"))
    assert list(listing_findings(document, listed("gpt2-xl"))) == []
    change(document)
    assert reference in {finding.reference for finding in listing_findings(document, listed("gpt2-xl"))}


def test_as_many_ways_on_other_devices_are_told_as_there_are() -> None:
    """The dearest left out, with its count: nothing that is told is dearer than it."""
    document = copy.deepcopy(planned("gpt2-xl"))
    document["workloads"][0]["alternatives"].pop()
    told_of(document)["devices"] -= 1
    findings = list(listing_findings(document, listed("gpt2-xl")))
    assert [finding.reference for finding in findings] == ["wrong-alternative"]


def told_of(plan: Document) -> Document:
    told: Document = plan["rejected"]["gpt2-xl"]
    return told


def test_a_listing_that_a_time_limit_ended_has_no_more_than_all() -> None:
    document = copy.deepcopy(planned("gpt2-xl"))
    document["warnings"].append("the time limit ended the listing of ways to run gpt2-xl: what was not listed")
    document["provenance"]["columns"] -= 1
    assert list(listing_findings(document, listed("gpt2-xl"))) == []
    document["provenance"]["columns"] += 2
    assert [finding.reference for finding in listing_findings(document, listed("gpt2-xl"))] == ["wrong-columns"]


def test_a_wider_choice_that_is_not_told_is_found() -> None:
    document = copy.deepcopy(planned("infeasible"))
    assert list(choice_findings(document, lambda asked: wider(tuple(asked.settings)))) == []
    document["infeasible"]["ways_out"].pop()
    assert [one.reference for one in choice_findings(document, lambda asked: wider(tuple(asked.settings)))] == [
        "wrong-way-out"
    ]


@pytest.mark.parametrize("left_out", [0, 1])
def test_a_job_without_which_there_is_no_conflict_is_not_left_out(left_out: int) -> None:
    """Each of the two alone keeps the quota and its deadline; that of the first is not even in the conflict."""
    document = copy.deepcopy(planned("infeasible"))
    assert list(listing_findings(document, listed("infeasible"))) == []
    document["infeasible"]["conflict"].pop(left_out)
    assert [one.reference for one in listing_findings(document, listed("infeasible"))] == ["wrong-way-out"]


@pytest.mark.parametrize(("words", "count"), [("", 2), (f"{NO_TIME}: the best plan on one kind of device", 0)])
def test_one_kind_of_device_is_left_out_for_a_reason(words: str, count: int) -> None:
    document = copy.deepcopy(planned("mixed-job"))
    document["single_kind"] = None
    document["warnings"].append(words)
    found = list(searched_findings(document, planned("mixed-job")))
    assert [one.reference for one in found] == ["wrong-search"] * count


@cache
def with_others(name: str) -> Document:
    """A plan with other plans beside it, and with one plan before that had one node more; it holds."""
    scenario = api.load_scenario(ROOT / "scenarios" / f"{name}.yaml")
    before = copy.deepcopy(planned(name))
    before["workloads"][-1]["allocations"][0]["count"] += 1  # that of the first job costs nothing, and would be kept
    stays = Previous(document=before, share=0.02)  # type: ignore[arg-type]
    made: Document = api.solve(scenario, best=3, within=0.02, previous=stays).document
    assert api.verify(made) == []
    return made


def others_of(document: Document) -> list[Forgery]:
    """Changes of the parts that no plan has unless asked, each path once."""
    made = [one for one in of_verifier(document) if one.path[0] in ("others", "simulation") and len(one.path) > 1]
    return list({(without_indexes(one.path), one.kind): one for one in made}.values())


def test_a_sample_of_other_plans_changed_is_found() -> None:
    document = with_others("gpt2-xl")
    assert missed(document, random.Random(20261122).sample(others_of(document), 60)) == []


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["gpt2-xl", "a100-rules", "old-cards"])
def test_every_leaf_of_other_plans_changed_is_found(name: str) -> None:
    document = with_others(name)
    assert missed(document, others_of(document)) == []


@pytest.mark.campaign
def test_every_leaf_of_a_simulation_changed_is_found() -> None:
    document: Document = api.solve(ROOT / "scenarios" / "trace.yaml", simulate=True).document
    assert api.verify(document) == []
    assert missed(document, others_of(document)) == []


@pytest.mark.campaign
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_leaf_changed_is_found(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = planned(name)
    made = of_verifier(document)
    if name not in WHOLE:  # each path once, with every kind of change
        random.Random(name).shuffle(made)
        made = list({(without_indexes(one.path), one.kind): one for one in made}.values())
    others = missed(document, made)
    with capsys.disabled():
        print(f"\n{name}: {len(made)} changes, {len(others)} neither found nor told; {counts(document)}")
    assert others == []
