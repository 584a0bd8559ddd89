"""One plan whatever the seed, the solver, its threads and the order of the input, on programs full of ties.

Run ``python benchmarks/determinism.py [INSTANCES [SEEDS]]`` (default 50 and 10): every instance is solved with
each seed by HiGHS and by CBC, with one and two threads, its columns, tasks and rows in another order each time.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from planner.optimize.solve import optimize
from tests.optimize.ties import Facts, facts, shuffled, tied


def main(instances: int, seeds: int) -> int:
    """Print counts; 1 when any instance has more than one plan."""
    before, runs, untold = time.perf_counter(), 0, 0
    plans: list[set[tuple[str, Facts]]] = [set() for _ in range(instances)]
    for threads, solver, seed in itertools.product((1, 2), ("highs", "cbc"), range(seeds)):
        for number in range(instances):
            asked = shuffled(tied(number), (number, seed, len(solver), threads))
            answer = optimize(asked, solver=solver, threads=threads, seed=seed)
            plans[number].add((answer.status, facts(asked, answer.units)))
            runs, untold = runs + 1, untold + (answer.has_plan and bool(answer.messages))
    single = sum(len(found) == 1 for found in plans)
    planless = sum({status for status, _ in found} == {"infeasible"} for found in plans)
    for number in (number for number, found in enumerate(plans) if len(found) > 1):
        print(f"instance {number}: {len(plans[number])} plans")
    print(
        f"{single} of {instances} instances have one plan in {runs} runs ({planless} of them infeasible, "
        f"{untold} runs with a message), {time.perf_counter() - before:.0f} s"
    )
    return 0 if single == instances else 1


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    sys.exit(main(*(given + [50, 10][len(given) :])))
