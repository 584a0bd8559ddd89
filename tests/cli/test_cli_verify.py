"""`plan verify`: what holds, what is proven, and what solving again decides, each with its exit code."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from planner.plan.document import digest_of
from tests import shipped
from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("answered_once")

Document = dict[str, Any]
UNPROVEN = {"bound_microusd": None, "bound_usd": None, "gap": None}


@pytest.fixture(scope="module")
def plans() -> dict[str, Document]:
    return {name: shipped.plan(name) for name in ("gpt2-xl", "infeasible")}


def forged(plans: dict[str, Document], kind: str) -> Document:
    plan, none = copy.deepcopy(plans["gpt2-xl"]), copy.deepcopy(plans["infeasible"])
    empty = {"summary": none["summary"], "workloads": none["workloads"]}
    if kind == "no certificate":
        return {**plan, "certificate": None, "summary": {**plan["summary"], **UNPROVEN}}
    if kind in ("stopped", "called infeasible"):
        asked = {name: plan[name] for name in ("scenario", "scenario_file", "name", "title")}
        told = plan["workloads"][0]
        bare = {"allocations": [], "cost_microusd": 0, "cost_usd": 0.0, "because": [], "error_band": None}
        of_no_rows = {
            "cross_check": told["cross_check"][:2],  # the others are of a layout
            "alternatives": [{**way, "tie": False} for way in told["alternatives"]],
        }
        workloads = [{**told, **bare, **of_no_rows}]
        status = "stopped" if kind == "stopped" else "infeasible"
        changed = {"status": status, "certificate": None, "infeasible": None, "workloads": workloads}
        changed["named"] = [{**one, "used": False} for one in plan["named"]]
        made = {name: plan["provenance"][name] for name in ("columns", "columns_pruned")}
        provenance = {**none["provenance"], **made}
        return {**none, **asked, **changed, "rejected": plan["rejected"], "provenance": provenance}
    if kind == "infeasible, its choices tried":
        return {**none, **empty, "certificate": None}
    return plan if kind == "the plan" else none


@pytest.mark.parametrize(
    ("kind", "code", "says", "solved", "then"),
    [
        ("the plan", 0, "without a solver: none of", 0, "solved again: optimal at"),
        ("none", 0, "infeasible, proven without a solver", 0, "solved again: nothing meets every limit"),
        ("no certificate", 9, "feasible, not proven: it carries no certificate", 0, "the same"),
        (
            "infeasible, its choices tried",
            0,
            "infeasible, proven without a solver",
            0,
            "solved again: nothing meets every limit",
        ),
        ("called infeasible", 9, "infeasible, not proven", 3, "called infeasible, but there is a plan of"),
        ("stopped", 9, "nothing is claimed", 3, "called stopped, but there is a plan of"),
    ],
)
def test_what_is_proven_and_what_solving_again_decides(
    kind: str, code: int, says: str, solved: int, then: str, plans: dict[str, Document], tmp_path: Path, run: Run
) -> None:
    document = forged(plans, kind)
    file = tmp_path / "forged.json"
    file.write_text(json.dumps({**document, "sha256": digest_of(document)}), encoding="utf-8")
    answer = run("verify", str(file))
    assert (answer.code, says in " ".join(answer.out.split())) == (code, True), answer.out + answer.err
    again = run("verify", str(file), "--solve")
    assert (again.code, then in " ".join(again.out.split())) == (solved, True), again.out + again.err


def test_verbose_counts_the_leaves(plans: dict[str, Document], tmp_path: Path, run: Run) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plans["gpt2-xl"]), encoding="utf-8")
    answer = run("verify", str(file), "-v")
    words = " ".join(answer.out.split())
    assert answer.code == 0
    assert all(f"leaves {kind}" in words for kind in ("recomputed", "held", "told"))
    assert "1 leaf solved" in words
    assert "leaves told" not in " ".join(run("verify", str(file)).out.split())


def test_a_report_of_a_plan_that_is_not_proven_says_so(plans: dict[str, Document], tmp_path: Path, run: Run) -> None:
    document = forged(plans, "no certificate")
    file = tmp_path / "forged.json"
    file.write_text(json.dumps({**document, "sha256": digest_of(document)}), encoding="utf-8")
    for command in ("report", "explain"):
        answer = run(command, str(file))
        assert answer.code == 0
        assert "optimal" not in answer.out
        assert "warning[not-proven]" in answer.err
    assert "feasible, not proven cheapest" in run("report", str(file)).out
    exported = run("export", "torchrun", str(file))
    assert "feasible: not proven" in exported.out


def test_a_proof_that_was_left_out_leaves_a_plan_that_is_feasible(
    plans: dict[str, Document], run: Run, tmp_path: Path
) -> None:
    """The summary claims a bound that no certificate shows: both are told, with what is proven without one."""
    plan = {**copy.deepcopy(plans["gpt2-xl"]), "certificate": None}
    file = tmp_path / "claims.json"
    file.write_text(json.dumps({**plan, "sha256": digest_of(plan)}))
    answer = run("verify", str(file))
    assert answer.code == 9
    assert "its certificate says None" in answer.out
    assert "feasible, not proven: it carries no certificate; without one it is shown to be" in answer.out
    plan["summary"]["devices"] += 1  # and where the plan itself does not hold, that comes first
    file.write_text(json.dumps({**plan, "sha256": digest_of(plan)}))
    assert run("verify", str(file)).code == 3
