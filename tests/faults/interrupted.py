"""A run to be broken off: solves an instance that takes a while, then prints what it has.

python -m tests.faults.interrupted highs|cbc [seconds] [early]
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from planner.optimize import child, early, process
from planner.optimize.adapter import PulpAdapter
from planner.optimize.check import violations
from planner.optimize.scope import scope_of
from planner.optimize.solve import optimize
from tests.faults.hard import hard


def main() -> None:
    solver, *more = sys.argv[1:]
    limit_s = next((float(each) for each in more if each != "early"), None)
    if "early" in more:
        early.start_early(1)
    told, question = points_told(), hard()
    tell_of_starts()
    print("go", flush=True)
    answer = optimize(question, adapters=[PulpAdapter(solver=solver)], time_limit_s=limit_s)
    broken = list(violations(scope_of(question, None), answer.units)) if answer.has_plan else []
    known = {"status": answer.status, "stopped_by": answer.stopped_by, "cost": answer.cost_microusd}
    print(json.dumps({**known, "told": len(told), "broken": broken, "messages": answer.messages}), flush=True)


def tell_of_starts() -> None:
    """Print the time of each start of a solver process."""
    real = child.Child.__init__

    def start(self: child.Child, *asked: Any) -> None:
        print("started", time.monotonic(), flush=True)
        real(self, *asked)

    child.Child.__init__ = start  # type: ignore[method-assign]


def points_told() -> list[Any]:
    """Fills with the points that the solver tells of."""
    told: list[Any] = []
    real = process._outcome

    def outcome(message: Any) -> Any:
        heard = real(message)
        if heard.values is not None:
            told.append(heard.objective)
        return heard

    process._outcome = outcome
    return told


if __name__ == "__main__":
    main()
