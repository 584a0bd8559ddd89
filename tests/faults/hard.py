"""An instance that takes solvers longer than anybody waits."""

from __future__ import annotations

import numpy as np

from planner.candidates.program import Program, Task
from tests.optimize.instances import program, row


def hard() -> Program:
    """60 jobs on 12 tight quotas and a carbon cap, few nodes dear and many cheap: 2 % gap after 10 s."""
    rng = np.random.default_rng(1)
    tasks = [Task(name=f"j{j:02d}", kind="training", first=40 * j, stop=40 * j + 40) for j in range(60)]
    nodes = rng.integers(3, 40, 2400)
    cost = (40 - nodes) * 1_000_000 + rng.integers(0, 9_000_000, 2400)
    rows = [row(f"quota[{q}]", 110, np.where(np.arange(2400) % 12 == q, nodes, 0)) for q in range(12)]
    rows.append(row("carbon", 60 * 40, rng.integers(1, 90, 2400)))
    return program(tasks, cost=cost, nodes=nodes, rows=tuple(rows))
