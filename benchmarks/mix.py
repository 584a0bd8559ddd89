"""The mix of hardware: every instance of a set of reference solutions, and the seeded mix(60, 12).

Prints cost, proof and seconds of the whole `optimize` call, from the numbers of the program to the proven
answer with its tie rule and routing; start of the process and imports are left out (one warm-up call). The bars:
cost at most 0.01 % above that of the divisible reference, proven; median 30 ms, worst 0.2 s; mix(60, 12) at
127.385 $/h, proven, within 5 s. CPU seconds stand beside wall seconds: on a busy machine the latter say
more of the others.

    python benchmarks/mix.py FOLDER      # throughputs.csv, workloads.csv, reference_solutions.csv
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from planner.candidates.program import Program, Task
from planner.optimize.solve import Solution, optimize
from tests.optimize.instances import mix, program

Rows = list[dict[str, str]]


def rows_of(path: Path) -> Rows:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def timed(question: Program) -> tuple[Solution, float, float]:
    """Answer, wall seconds, CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer = optimize(question)
    return answer, time.perf_counter() - wall, time.process_time() - cpu


def question_of(reference: dict[str, str], speeds: Rows, shares: Rows) -> Program:
    """Buckets and GPU types of one line of the reference: demand rounded up, rates down, to the micro-request/s."""
    mine = [row for row in speeds if (row["instance"], row["slo"]) == (reference["instance"], reference["slo"])]
    grid = max(
        (row["instance_grid"] for row in shares if reference["instance"].startswith(row["instance_grid"])), key=len
    )
    asked = {
        (row["row"], row["col"]): float(row["fraction"])
        for row in shares
        if (row["instance_grid"], row["workload"]) == (grid, reference["workload"]) and float(row["fraction"]) > 0
    }
    price = {row["gpu"]: float(row["price_per_hour"]) for row in mine}
    rate: dict[tuple[str, str, str], float] = defaultdict(float)
    rate.update({(row["gpu"], row["row"], row["col"]): float(row["max_tput_req_per_s"]) for row in mine})
    total, gpus = float(reference["request_rate_per_s"]), sorted(price)
    demand = tuple(math.ceil(share * total * 1e6 - 1e-6) for share in asked.values())
    task = Task(name="fleet", kind="serving", first=0, stop=len(gpus), demand_micro_per_s=demand)
    return program(
        [task],
        cost=[round(price[gpu] * 1e6) for gpu in gpus],
        replicas=np.ones(len(gpus)),
        capacity_micro_per_s=[[math.floor(rate[gpu, *bucket] * 1e6 + 1e-6) for bucket in asked] for gpu in gpus],
        max_units=np.full(len(gpus), 10_000),
    )


def references(folder: Path) -> None:
    """One line an instance, workload and rate; slices make no difference to a divisible mix."""
    speeds, shares = rows_of(folder / "throughputs.csv"), rows_of(folder / "workloads.csv")
    seen: dict[tuple[str, ...], tuple[Solution, float, float]] = {}
    misses = rows = 0
    heads = ("$/h", "reference", "peer")
    figures = "".join(f"{head:>12}" for head in heads)
    print(f"{'instance':<20}{'workload':<14}{'slo':<14}{'req/s':>6}{figures}  proof   ms  cpu ms")
    for row in rows_of(folder / "reference_solutions.csv"):
        key = (row["instance"], row["workload"], row["slo"], row["request_rate_per_s"])
        first = key not in seen
        if first:
            question = question_of(row, speeds, shares)
            if not seen:
                optimize(question)  # imports
            seen[key] = timed(question)
        answer, wall, cpu = seen[key]
        cost, best = answer.cost_microusd / 1e6, float(row["split_ilp_cost_per_h"])
        peer = float(row["melange_cost_per_h"] or "inf")
        rows += 1
        misses += answer.status != "optimal" or cost > best * 1.0001 or cost > peer * 1.0001
        if first:
            print(
                f"{key[0]:<20}{key[1]:<14}{key[2]:<14}{key[3]:>6}{cost:>12.3f}{best:>12.3f}{peer:>12.3f}  "
                f"{answer.status}{1e3 * wall:>6.0f}{1e3 * cpu:>8.0f}"
            )
    for name, place in (("wall", 1), ("CPU", 2)):
        times = [1e3 * float(found[place]) for found in seen.values()]  # type: ignore[arg-type]
        print(f"{name}: median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms over {len(times)} programs")
    print(f"{rows - misses} of {rows} rows of the reference reached and proven")


def seeded() -> None:
    """The generator's own instance: 60 buckets, 12 types."""
    answer, wall, cpu = timed(mix(60, 12))
    print(f"mix(60, 12): {answer.cost_microusd / 1e6:.3f} $/h, {answer.status}, {wall:.2f} s ({cpu:.2f} s CPU)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, nargs="?", help="throughputs.csv, workloads.csv, reference_solutions.csv")
    given = parser.parse_args()
    if given.folder:
        references(given.folder)
    seeded()
