"""How long and how much memory large portfolios of training jobs take, from all columns to the proven plan.

Run ``python benchmarks/portfolio.py [JOBSxCOLUMNS ...]``. Seeded instances with known optima: one column per
job, node quotas of 72 pools, a carbon cap in milligrams, costs in micro-dollars. Everything is timed in one
process, one after another: `prune` and `restrict`, then `optimize`, for the cost alone and with the whole rule
for ties. Linear programs are solved by HiGHS alone, on arrays, in the same process, as a measure of the
machine: of the columns that are best of their job, pool and number of nodes (the grouped pruning that the
figures of others are of), and of the fewer columns that `prune` keeps.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from planner.candidates.program import Program, restrict, task_of
from planner.candidates.prune import prune
from planner.optimize.build import build
from planner.optimize.scope import scope_of
from planner.optimize.solve import optimize
from tests.optimize.instances import static

OPTIMA_K_USD = {(50, 500): 4057.5277, (200, 1000): 11096.5180, (200, 5000): 10280.3776}


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work gives, and how long it took."""
    before = time.perf_counter()
    answer = work()
    return answer, time.perf_counter() - before


def kept_only(program: Program, kept: Any) -> Program:
    """The program with some of its columns."""
    return restrict(program, np.isin(np.arange(program.column_count), kept))[0]


def best_of_groups(program: Program) -> Any:
    """Columns that no other of the same job, pool and number of nodes is cheaper and greener than."""
    pool = np.zeros(program.column_count, dtype=np.int64)
    for number, row in enumerate(program.rows):
        if row.name.startswith("quota"):
            pool[row.columns] = number
    group = (task_of(program) * len(program.rows) + pool) * (int(program.nodes.max()) + 1) + program.nodes
    return prune(program, within=group)


def linear_program(program: Program) -> float:
    """Seconds that HiGHS takes for the relaxation, without building and passing it."""
    import highspy

    model = build(scope_of(program), "cost")
    table, none = model.table(), np.zeros(0, dtype=np.int32)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    count = model.variable_count
    solver.addCols(count, model.objective, np.zeros(count), model.upper, 0, none, none, np.zeros(0))
    low = np.where(np.isfinite(table.low), table.low, -highspy.kHighsInf)
    high = np.where(np.isfinite(table.high), table.high, highspy.kHighsInf)
    entries = (table.starts[:-1].astype(np.int32), table.variables.astype(np.int32), table.coefficients)
    solver.addRows(len(low), low, high, len(table.variables), *entries)
    _, took_s = timed(solver.run)
    return took_s


def measure(jobs: int, columns: int) -> None:
    """One instance."""
    program = static(jobs, columns)
    optimize(static(2, 5))  # the solver process is there, as it is for every later question of a session
    kept, prune_s = timed(lambda: prune(program))
    small, restrict_s = timed(lambda: kept_only(program, kept))
    answer, cost_s = timed(lambda: optimize(small, cost_only=True))
    whole, chain_s = timed(lambda: optimize(small))
    own_s = linear_program(small)
    peak_gb = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1e6
    grouped = kept_only(program, best_of_groups(program))
    grouped_s = linear_program(grouped)
    total_s = prune_s + restrict_s + cost_s
    known = OPTIMA_K_USD.get((jobs, columns))
    print(f"static {jobs} x {columns}: {program.column_count:,} columns, {small.column_count:,} after pruning")
    print(f"  {answer.cost_microusd / 1e9:.4f} k$ {answer.status}, gap {answer.gap}; known optimum {known}")
    print(f"  whole tie rule: {whole.cost_microusd / 1e9:.4f} k$ {whole.status}, messages {list(whole.messages)}")
    print(f"  prune {prune_s:.2f} s, restrict {restrict_s:.2f} s, optimize {cost_s:.2f} s (with ties {chain_s:.2f} s)")
    print(f"  in all {total_s:.2f} s, with ties {total_s - cost_s + chain_s:.2f} s, peak {peak_gb:.2f} GB")
    for name, model, lp_s in (("grouped", grouped, grouped_s), ("pruned", small, own_s)):
        share = f"in all {total_s / lp_s:.2f} x, with ties {(total_s - cost_s + chain_s) / lp_s:.2f} x"
        print(f"  linear program of the {name} model ({model.column_count:,} columns): {lp_s:.2f} s; {share}")


def main(arguments: list[str]) -> None:
    """Measure the instances asked for, or all that have a known optimum."""
    shapes = [tuple(int(each) for each in argument.split("x")) for argument in arguments] or list(OPTIMA_K_USD)
    for jobs, columns in shapes:
        measure(jobs, columns)


if __name__ == "__main__":
    main(sys.argv[1:])
