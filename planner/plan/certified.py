"""The certificate of a plan: prices that prove how much less any plan could cost, put beside the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from planner.candidates.mixed_columns import mixes_of
from planner.candidates.program import DECODE, Program, Task
from planner.candidates.search import Candidates
from planner.optimize.bound import REQUEST_STEPS, prices_of
from planner.optimize.solve import Solution
from planner.plan.certificate import certified_bound, columns_digest, least_of_task, priced_weights

Document = dict[str, Any]


def certificate_of(
    candidates: Candidates, solution: Solution, *, allow_suspect: bool = False, time_limit_s: float | None = None
) -> Document | None:
    """Prices, what they prove of all columns, and the gap to the plan; None without a plan, or time for a relaxation.

    The bound is of the first criterion that is a sum: of the cost, or of the carbon where that comes first. Where
    the earliest finish comes first it is the cost of plans that finish no later.
    """
    if not solution.has_plan:
        return None
    reached = dict(solution.stages)
    first = candidates.program.objective[0]
    criterion = "carbon" if first == "carbon" else "cost"
    latest_s = float(reached["time"]) if first == "time" else None
    prices = prices_of(candidates.program, criterion, latest_s, time_limit_s=time_limit_s)
    if prices is None:
        return None
    program = candidates.whole
    certificate: Document = {
        "criterion": criterion,
        "latest_s": latest_s,
        "allow_suspect": allow_suspect,
        "columns": program.column_count,
        "columns_sha256": columns_digest(program),
        "rows": [
            {"number": number, "name": program.rows[number].name, "price": price}
            for number, price in sorted(prices.rows.items())
        ],
    }
    if found := mixes_of(candidates):
        certificate["mixes"] = {name: [[list(part) for part in mix] for mix in mixes] for name, mixes in found.items()}
    relaxed = [_entry(one.task, one.level, one.prefill, one.decode) for one in prices.requests]
    certificate["requests"] = list(_best_prices(candidates, solution, certificate, relaxed))
    value, bound = int(reached[criterion]), certified_bound(program, certificate)
    return {**certificate, "value": value, "bound": bound, "gap": (value - bound) / value if value else 0.0}


def _entry(workload: str, level: int, prefill: Sequence[int], decode: Sequence[int]) -> Document:
    return {"workload": workload, "level": level, "prefill": list(prefill), "decode": list(decode)}


def _best_prices(
    candidates: Candidates, solution: Solution, certificate: Document, relaxed: Sequence[Document]
) -> Iterator[Document]:
    """Of several prices of each fleet's requests those that prove most.

    The relaxation takes parts of replicas. Where a fleet is a few replicas, the prices at which a replica in use is
    worth the same on every bucket, or a price on the one bucket that few can serve, often prove more.
    """
    program = candidates.program
    weights = priced_weights(program, certificate)
    upper = np.array(program.max_units, dtype=np.int64)
    for task in program.tasks:
        if task.kind != "serving" or task.first == task.stop:
            continue
        offered = [
            [entry for entry in relaxed if entry["workload"] == task.name],
            *_other_prices(program, task, solution),
        ]
        yield from max(offered, key=lambda entries: least_of_task(program, task, weights, upper, entries))


def _other_prices(program: Program, task: Task, solution: Solution) -> Iterator[list[Document]]:
    """At the peak: of each bucket alone, and as the replicas in use tell."""
    peak, demand = len(task.demands) - 1, task.demands[-1]
    for bucket in range(len(demand)) if len(demand) > 1 else ():
        alone = [int(place == bucket) for place in range(len(demand))]
        yield [_entry(task.name, peak, alone, alone)]
    units = solution.units if len(solution.units) == program.column_count else np.zeros(program.column_count)
    for column in np.flatnonzero(units[task.first : task.stop]) + task.first:
        rates = program.capacity_micro_per_s[column, : len(demand)].tolist()
        least = min((rate for rate in rates if rate > 0), default=0)
        worth = [round(REQUEST_STEPS * least / rate) if rate > 0 else 0 for rate in rates]
        role = int(program.role[column])
        yield [
            _entry(
                task.name,
                peak,
                worth if role != DECODE else [0] * len(worth),
                worth if role == DECODE else [0] * len(worth),
            )
        ]
