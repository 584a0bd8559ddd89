"""Random small programs of every kind against trying everything: how many answers are the very same plan.

Run ``python benchmarks/oracle.py [COUNT]``: COUNT instances (default 500), in turn of jobs and fleets under all
joint rows, calendars with purchases, and every kind of full fleet; each is answered by HiGHS, by CBC and after pruning.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from planner.candidates.program import Program, restrict
from planner.candidates.prune import prune
from planner.optimize.solve import Solution, optimize
from tests.optimize.brute import best, random_program
from tests.optimize.brute_fleets import KINDS, best_fleet, random_fleet
from tests.optimize.brute_supplies import best_supplied, random_supplied

FIRST_SEED = 50_000  # beyond the seeds of the tests
Maker = tuple[str, Callable[[int], Program], Callable[[Program], Sequence[int] | None]]


def best_random(question: Program) -> Sequence[int] | None:
    """Units of the best plan of a program of jobs and plain fleets."""
    found = best(question)
    return None if found is None else [int(amount) for amount in found[1]]


def makers() -> list[Maker]:
    """Every kind; those of many rows come as often as all full fleets together."""
    fleets: list[Maker] = [(kind, lambda seed, kind=kind: random_fleet(kind, seed), best_fleet) for kind in KINDS]  # type: ignore[misc]
    plain: list[Maker] = [("rows", random_program, best_random), ("calendar", random_supplied, best_supplied)]
    return [each for fleet in fleets for each in (*plain, fleet)]


def equal(answer: Solution, expected: Sequence[int] | None) -> bool:
    """The same plan, proven; or both without one."""
    if expected is None:
        return answer.status == "infeasible"
    return answer.status == "optimal" and answer.units.tolist() == list(expected) and not answer.messages


def main(count: int) -> int:
    """Print counts; 1 when any answer differs."""
    before, kinds = time.perf_counter(), makers()
    asked: Counter[str] = Counter()
    same: Counter[str] = Counter()
    infeasible = 0
    for number in range(count):
        kind, make, solve = kinds[number % len(kinds)]
        question = make(FIRST_SEED + number)
        expected, kept = solve(question), prune(question)
        small, _ = restrict(question, np.isin(np.arange(question.column_count), kept))
        left = None if expected is None else [expected[k] for k in kept]
        answers = {
            "HiGHS": equal(optimize(question), expected),
            "CBC": equal(optimize(question, solver="cbc"), expected),
            "pruned": equal(optimize(small), left),
        }
        asked[kind] += 1
        same[kind] += all(answers.values())
        infeasible += expected is None
        if not all(answers.values()):
            print(f"{kind} {FIRST_SEED + number}: differs: {[name for name, right in answers.items() if not right]}")
    for kind in asked:
        print(f"{kind}: {same[kind]} of {asked[kind]} equal")
    total = sum(same.values())
    print(f"all: {total} of {count} equal, {infeasible} of them infeasible, {time.perf_counter() - before:.0f} s")
    return 0 if total == count else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
