"""The model built is the model documented: one small .lp file for each family of constraints.

After a wanted change: ``python -m tests.optimize.test_golden_lp`` writes them anew; read the diff.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.candidates.program import Program, Task
from planner.optimize.build import build
from planner.optimize.pulp_adapter import to_pulp
from planner.optimize.scope import scope_of
from tests.optimize.instances import program, row

FOLDER = Path(__file__).parent / "lp"


def training(**more: object) -> Program:
    """Two kinds of jobs: three of the first, one of the second."""
    return program(
        [
            Task(name="small", kind="training", first=0, stop=2, count=3),
            Task(name="big", kind="training", first=2, stop=4),
        ],
        cost=[2_000_000, 3_000_000, 90_000_000, 70_000_000],
        nodes=[1, 2, 16, 8],
        finish=[2000, 1000, 500, 800],
        provider=[0, 1, 0, 1],
        **more,
    )


def fleet(demand: tuple[int, ...] = (10,), spares: int = 0, least: int = 0) -> Program:
    """Three replica types; the first two share a shape, two replicas of one unit."""
    task = Task(
        name="fleet",
        kind="serving",
        first=0,
        stop=3,
        demand_micro_per_s=demand,
        spare_replicas=spares,
        min_replicas=least,
    )
    capacity = [[4, 2], [6, 0], [5, 5]] if len(demand) > 1 else [[4], [6], [5]]
    return program([task], cost=[4_000_000, 5_000_000, 5_500_000], replicas=[2, 2, 1], capacity_micro_per_s=capacity)


FAMILIES = {
    "one": (training(), "cost"),
    "limit": (training(rows=(row("limits.max_devices", 150, [8, 16, 128, 64]),)), "cost"),
    "limit-money": (
        training(rows=(row("limits.budget", 77_000_001, [2_000_001, 3_000_000, 90_000_000, 70_000_000]),)),
        "cost",
    ),
    "vendor": (training(max_providers=1), "cost"),
    "carry": (fleet(), "cost"),
    "carry-spares": (fleet(spares=1), "cost"),
    "least": (fleet(least=5), "cost"),
    "route": (fleet((10, 5)), "cost"),
    "route-spares": (fleet((10, 5), spares=1), "cost"),
    "hold": (training(), "finish"),
    "offers-fix": (training(), "offers"),
}


def text_of(name: str, folder: Path) -> str:
    question, criterion = FAMILIES[name]
    scope = scope_of(question)
    weights = None
    if name == "hold":
        scope = scope.settle("cost", 76_000_000)
    if name == "offers-fix":
        scope, weights = scope.fix_all({0: 3}), np.array([0, 0, -2, -1])
    problem, _ = to_pulp(build(scope, criterion, weights))
    path = folder / f"{name}.lp"
    problem.writeLP(str(path))
    return plain(path.read_text(encoding="utf-8"))


def plain(text: str) -> str:
    """Wrapped lines joined, bounds sorted, numbers to 12 digits: PuLP 3 and 4 then write the same."""
    head, middle, tail = re.split(r"(?<=Bounds\n)|(?=Generals\n)", text)
    joined = re.sub(r"\n ", " ", head) + "".join(sorted(middle.splitlines(keepends=True))) + tail
    return re.sub(r"\d+(\.\d+)?e[-+]\d+|\d+\.\d+", lambda number: f"{float(number[0]):.12g}", joined)


@pytest.mark.parametrize("name", FAMILIES)
def test_model_is_the_documented_one(name: str, tmp_path: Path) -> None:
    assert text_of(name, tmp_path) == (FOLDER / f"{name}.lp").read_text(encoding="utf-8")


def test_names_do_not_depend_on_the_users_names(tmp_path: Path) -> None:
    question = FAMILIES["one"][0]
    renamed = tuple(replace(task, name=f"a b-{number}") for number, task in enumerate(question.tasks))
    problem, _ = to_pulp(build(scope_of(replace(question, tasks=renamed)), "cost"))
    problem.writeLP(str(tmp_path / "one.lp"))
    assert plain((tmp_path / "one.lp").read_text(encoding="utf-8")) == (FOLDER / "one.lp").read_text(encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for family in FAMILIES:
        (FOLDER / f"{family}.lp").write_text(text_of(family, FOLDER), encoding="utf-8")
