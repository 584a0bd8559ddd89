"""A solver process that misbehaves in one way: the real one with one part replaced.

Started by `child.BOOT` of the tests; the argument is the way. What it does to an answer is done to
the answers of `solve` by HiGHS alone, so that CBC in the same process can be the other solver.
"""

from __future__ import annotations

import dataclasses
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from planner.optimize import pulp_adapter, worker
from planner.optimize.status import Outcome

ROOT = Path(__file__).parents[2]
real_run, real_read = pulp_adapter.run_here, pulp_adapter._read_highs


def boot(*arguments: str) -> str:
    """What `child.BOOT` is to be for a way to misbehave."""
    first = f"import sys; sys.path[:] = [{str(ROOT)!r}, *sys.argv[1:]]; "
    return first + f"from tests.faults.stand_in import main; main(*{arguments!r})"


class Says:
    """HiGHS that reports another status, and perhaps no point."""

    def __init__(self, solver: Any, status: str, point: bool) -> None:
        self.solver, self.status, self.point = solver, status, point

    def getModelStatus(self) -> Any:
        import highspy

        return getattr(highspy.HighsModelStatus, self.status)

    def getInfo(self) -> Any:
        info = self.solver.getInfo()
        if not self.point:
            info.primal_solution_status = 0
        return info


def says(status: str, *, point: bool = False, times: float = math.inf) -> None:
    """Report a status, the first few times that HiGHS is asked."""
    asked: list[int] = []

    def read(problem: Any, variables: list[Any], stats: Any) -> Outcome:
        asked.append(1)
        if len(asked) > times:
            return real_read(problem, variables, stats)
        problem.solverModel = Says(problem.solverModel, status, point)
        return real_read(problem, variables, stats)

    pulp_adapter._read_highs = read


def twisted(twist: Callable[[Outcome], Outcome]) -> None:
    def run(model: Any, solver: str, *arguments: Any) -> Outcome:
        outcome = real_run(model, solver, *arguments)
        return twist(outcome) if solver == "highs" and outcome.values is not None else outcome

    pulp_adapter.run_here = run


def instead(act: Callable[[], object]) -> None:
    """Do something else in place of solving with HiGHS."""

    def run(model: Any, solver: str, *arguments: Any) -> Outcome:
        if solver == "highs":
            act()
        return real_run(model, solver, *arguments)

    pulp_adapter.run_here = run


def half(value: Any) -> Any:
    return value * 0.5


def crash() -> None:
    sys.stderr.write("terminate called after throwing an instance of 'std::bad_alloc'\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGSEGV)


def out_of_memory() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
    np.ones(1 << 30)


def hang() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1000)


def hang_with_a_point() -> None:
    """HiGHS tells of its best point and then never ends."""

    def run(model: Any, solver: str, options: Any, better: Any = None) -> Outcome:
        outcome = real_run(model, solver, options)
        if solver == "highs" and outcome.values is not None:
            better(outcome.values, outcome.objective)
            hang()
        return outcome

    pulp_adapter.run_here = run


def raw(send: Callable[[Any], None]) -> None:
    """Write bytes of our own where the answer belongs, and end."""

    def solve(say: Any, header: Any, arrays: Any) -> None:
        if header["solver"] != "highs":
            real_solve(say, header, arrays)
            return
        outbox = next(cell.cell_contents for cell in say.__closure__ if hasattr(cell.cell_contents, "fileno"))
        send(outbox)
        os._exit(0)

    real_solve = worker.solve
    worker.solve = solve


def truncated(outbox: Any) -> None:
    outbox.write((100_000).to_bytes(8, "big") + b"\0\0\0\x20{" + b" " * 500)


def garbage(outbox: Any) -> None:
    outbox.write(bytes(range(256)) * 40)


def replaced(outcome: Outcome, **changes: Any) -> Outcome:
    return dataclasses.replace(outcome, **changes)


WAYS: dict[str, Callable[[], None]] = {
    "optimal": lambda: None,
    "limit with an incumbent": lambda: says("kTimeLimit", point=True),
    "limit without an incumbent": lambda: says("kTimeLimit"),
    "infeasible": lambda: says("kInfeasible", times=2),  # a "no" is asked for twice
    "unbounded": lambda: says("kUnbounded"),
    "infeasible or unbounded": lambda: says("kUnboundedOrInfeasible", times=2),
    "invalid point": lambda: twisted(lambda told: replaced(told, values=np.zeros_like(told.values), objective=0.0)),
    "point that is not whole": lambda: twisted(lambda told: replaced(told, values=half(told.values))),
    "NaN": lambda: twisted(lambda told: replaced(told, values=told.values * np.nan)),
    "empty": lambda: twisted(lambda told: replaced(told, values=None)),
    "wrong objective": lambda: twisted(lambda told: replaced(told, objective=half(told.objective))),
    "crash": lambda: instead(crash),
    "non-zero exit": lambda: instead(lambda: os._exit(3)),
    "truncated answer": lambda: raw(truncated),
    "garbage": lambda: raw(garbage),
    "hang": lambda: instead(hang),
    "hang with a point": hang_with_a_point,
    "out of memory": lambda: instead(out_of_memory),
    "killed": lambda: instead(lambda: os.kill(os.getpid(), signal.SIGKILL)),
}


def main(way: str, *flags: str) -> None:
    """Be a solver process that misbehaves; `alone` = without CBC, `cbc=PATH` = with a binary for it."""
    WAYS[way]()
    if "alone" in flags:
        here = pulp_adapter.installed_here
        pulp_adapter.installed_here = lambda solver: solver == "highs" and here(solver)
    for flag in flags:
        if flag.startswith("cbc="):
            stand_for_cbc(flag[4:])
    worker.main()


def stand_for_cbc(path: str) -> None:
    """PuLP's real interface to CBC with a binary of ours."""
    real = pulp_adapter.solver_of

    def solver_of(solver: str, options: Any, *arguments: Any) -> Any:
        if solver != "cbc":
            return real(solver, options, *arguments)
        import pulp

        return pulp.COIN_CMD(path=path, msg=False, timeLimit=options.time_limit_s)

    pulp_adapter.solver_of = solver_of
