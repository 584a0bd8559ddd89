"""How long and how much memory large portfolios of training jobs take, from all columns to the proven plan.

Run ``python benchmarks/portfolio.py [JOBSxCOLUMNS ...]``. Seeded instances with known optima: one column per
job, node quotas of 72 pools, a carbon cap in milligrams, costs in micro-dollars. Everything is timed in one
process, one after another: `prune` and `restrict`, then `optimize`, for the cost alone and with the whole rule
for ties. Linear programs are solved by HiGHS alone, on arrays, in the same process, as a measure of the
machine: of the columns that none of the same job, offer and number of nodes dominates (208,424 of static 200 x 5000:
the pruned model whose linear program the bar of 2 x is of), and of the fewer columns that `prune` keeps.
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
from planner.optimize import child, process
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
    mask = np.zeros(program.column_count, dtype=bool)
    mask[kept] = True
    return restrict(program, mask)[0]


def best_of_groups(program: Program) -> Any:
    """Columns that no other of the same job, offer and number of nodes is cheaper and greener than."""
    group = (task_of(program) * (int(program.offer.max()) + 1) + program.offer) * (int(program.nodes.max()) + 1)
    return prune(program, within=group + program.nodes)


def linear_program(program: Program) -> float:
    """Seconds that HiGHS takes for the relaxation with every column of a program, in k$, without passing it."""
    import highspy

    n, none = program.column_count, np.zeros(0, dtype=np.int32)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.addCols(n, program.cost_microusd / 1e9, np.zeros(n), np.ones(n), 0, none, none, np.zeros(0))
    ones = [(np.arange(task.first, task.stop), np.ones(task.stop - task.first), 1.0, 1.0) for task in program.tasks]
    tonnes = {"carbon": 1e-9}
    limits = [
        (
            row.columns,
            row.coefficients * tonnes.get(row.name, 1.0),
            -highspy.kHighsInf,
            row.bound * tonnes.get(row.name, 1.0),
        )
        for row in program.rows
    ]
    columns, values, low, high = zip(*ones, *limits)
    starts = np.concatenate([[0], np.cumsum([len(each) for each in columns])])[:-1]
    entries = (starts.astype(np.int32), np.concatenate(columns).astype(np.int32), np.concatenate(values))
    solver.addRows(len(low), np.array(low), np.array(high, dtype=float), len(entries[1]), *entries)
    _, took_s = timed(solver.run)
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return took_s


def peak_bytes() -> int:
    """Most memory so far of this process and of the largest solver process, which is ended for that, together."""
    child.end()
    return 1024 * sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measure(jobs: int, columns: int) -> None:
    """One instance."""
    program = static(jobs, columns)
    process.solvers()  # the solver process is up, as it is once scenario and catalog have been read
    kept, prune_s = timed(lambda: prune(program))
    small, restrict_s = timed(lambda: kept_only(program, kept))
    answer, cost_s = timed(lambda: optimize(small, cost_only=True))
    whole, chain_s = timed(lambda: optimize(small))
    peak_gb = peak_bytes() / 1e9
    grouped = kept_only(program, best_of_groups(program))
    grouped_s, own_s = linear_program(grouped), linear_program(small)
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
