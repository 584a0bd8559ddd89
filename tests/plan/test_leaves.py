"""Every leaf of a plan, changed one at a time under a new seal: found, or in the class that is told.

A seeded sample runs in every suite; `pytest -m campaign tests/plan/test_leaves.py` changes every leaf of four shipped
scenarios and each path once in the others, and prints the counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.plan.checks.leaves import ANY, HELD, RECOMPUTED, TABLE, TOLD, Leaf, counts, read, told_paths, tree
from planner.plan.references import load_model
from planner.plan.verify import Checker
from tests.plan.forging import Forgery, forged, forgeries, without_indexes

ROOT = Path(__file__).parents[2]
WHOLE = ("llama", "gpt2-xl", "trace", "mixed-job")
SCENARIOS = sorted(path.stem for path in (ROOT / "scenarios").glob("*.yaml"))
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
    found: Document = api.solve(api.load_scenario(ROOT / "scenarios" / f"{name}.yaml")).document
    assert checker().problems(found) == []
    return found


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
    """Changes that nobody sees, of leaves that are not told."""
    unseen = [one for one in made if not checker().problems(forged(document, one))]
    return [one.name for one in unseen if (leaf := leaf_at(one.path)) is None or leaf.kind != TOLD]


def of_verifier(document: Document) -> list[Forgery]:
    return [one for one in forgeries(document) if one.path[0] not in ELSEWHERE]


def test_each_leaf_of_the_table_is_of_one_class() -> None:
    tree.cache_clear()
    assert tree()  # a leaf that is named twice raises
    assert {kind for _, kind, _ in TABLE} == {RECOMPUTED, HELD, TOLD}


@pytest.mark.parametrize("name", ["gpt2-xl", "mixed-job", "llama", "a100-rules", "infeasible"])
def test_every_leaf_of_a_plan_is_in_the_table(name: str) -> None:
    document = planned(name)
    assert [path for path, leaf, _ in read(document) if leaf is None] == []
    assert sum(counts(document).values()) == len(list(read(document)))


def test_what_is_told_is_words_and_the_story_of_the_search() -> None:
    """No figure of the plan: numbers that are told say how the answer was looked for."""
    numbers = {
        f"{prefix}.{word.partition(':')[0]}"
        for prefix, kind, words in TABLE
        if kind == TOLD
        for word in words.split()
        if not word.removesuffix("?").endswith(":str")
    }
    assert numbers == {
        *("provenance.seed", "provenance.threads", "provenance.gap_asked"),
        *("provenance.columns", "provenance.columns_pruned", "provenance.solver_gap"),
        *("rejected.*.columns", "rejected.*.offers_seen", "rejected.*.layouts_seen", "rejected.*.reasons.*.count"),
        *("infeasible.minimal", "infeasible.ways_out.*.proven", "infeasible.combined.proven"),
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
    import copy

    from planner.plan.document import resealed

    document = copy.deepcopy(planned("gpt2-xl"))
    change(document)
    assert finding in {problem.reference for problem in checker().problems(resealed(document))}


def row_of(plan: Document) -> Document:
    row: Document = plan["workloads"][0]["allocations"][0]
    return row


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda told: told["ways_out"][0].update(to=told["ways_out"][0]["to"] + 1), "wrong-way-out"),
        (lambda told: told["ways_out"][0].update(setting="training.first-8b.deadline=1 s"), "wrong-way-out"),
        (lambda told: told["ways_out"][0].update({"from": 1}), "wrong-way-out"),
        (lambda told: told["combined"].update(loosening=0.4), "wrong-way-out"),
        (lambda told: told["combined"].update(cost_usd=1.0), "wrong-way-out"),
        (lambda told: told["conflict"][0].update(name="somebody"), "wrong-way-out"),
    ],
)
def test_a_forged_way_out_is_found(change: Callable[[Document], Any], finding: str) -> None:
    import copy

    from planner.plan.document import resealed

    document = copy.deepcopy(planned("infeasible"))
    change(document["infeasible"])
    assert finding in {problem.reference for problem in checker().problems(resealed(document))}


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
