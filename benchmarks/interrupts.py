"""Runs broken off at random moments: how soon each answers, what it keeps, and what is left behind.

Ctrl-C to the planner and to its group, two of them, the solver process killed, the planner killed; with
HiGHS and CBC on an instance that takes them long, and on `plan solve` of a scenario as a whole. The bars:
all answer within 1 s (of a process that is killed: another one is started, or the run ends), 0 processes
and 0 files left, no traceback, and a plan whenever the solver had told of one. Then time limits: held to 2 s.

    python benchmarks/interrupts.py [moments] [seed] [scenario]
"""

from __future__ import annotations

import math
import random
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.faults.breaking import Broken, break_off, driver  # noqa: E402

WAYS = ("process", "group", "worker", "planner")
LONGEST_S, BAR_S = 4.0, 1.0
LIMITS_S, BEYOND_S = (1, 5), 2.0  # a time limit may be overrun by so much


def broken_off(command: list[str], how: str, after_s: float, ready: str) -> tuple[Broken, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        broken = break_off(command, how, after_s, Path(folder), ready=ready)
        return broken, [path.name for path in Path(folder).glob(".plan/*")]


def tell(name: str, runs: list[Broken], wrong: Callable[[Broken], str], bar_s: float = BAR_S) -> bool:
    """One line of the table; whether all is well."""
    times = sorted(run.answered_s for run in runs)
    late, found = sum(time > bar_s for time in times), [wrong(run) for run in runs]
    processes, files = sum(run.processes for run in runs), sum(run.files for run in runs)
    with_plan = sum(run.code in (0, 5) and run.answer.get("status") not in ("stopped", "failed") for run in runs)
    print(
        f"{name:20} {len(runs):3} runs  answered in {times[len(times) // 2]:.2f} s (median), {times[-1]:.2f} s at most"
        f"  late {late}  processes left {processes}  files left {files}"
        f"  with a plan {with_plan}  wrong {sum(map(bool, found))}",
        flush=True,
    )
    for words in filter(None, found):
        print("   ", words)
    return not (late or processes or files or any(found))


def wrong_answer(run: Broken) -> str:
    """What is wrong with a run of the instance that takes long."""
    answer = run.answer
    if not answer:
        return f"no answer: {run.code} {run.err[-300:]!r}"
    if answer["broken"]:
        return f"its plan breaks {answer['broken'][0]}"
    kept = answer["status"] in ("feasible", "optimal")
    return "" if kept or not answer["told"] else "a plan was told of and lost"


def wrong_command(run: Broken) -> str:
    """What is wrong with a run of the command line; killed by SIGINT is 130 to a shell."""
    fine = run.code in (0, 5, 130, -signal.SIGINT) and "Traceback" not in run.err and "bug" not in run.err
    return "" if fine else f"exit {run.code}: {run.err[-300:]!r}"


def main() -> None:
    moments = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    scenario = str(ROOT / (sys.argv[3] if len(sys.argv) > 3 else "scenarios/llama.yaml"))
    fine = True
    for solver in ("highs", "cbc"):
        runs: dict[str, list[Broken]] = {how: [] for how in WAYS}
        for number in range(moments):
            how = WAYS[number % len(WAYS)]
            runs[how].append(broken_off(driver(solver), how, chance.uniform(0, LONGEST_S), "go")[0])
        for how in WAYS[: max(1, min(len(WAYS), moments))]:
            fine &= tell(f"{solver}, {how}", runs[how], wrong_answer if how != "planner" else lambda run: "")
    command = [sys.executable, "-m", "planner.cli.main", "solve", scenario]
    for how in ("process", "twice"):
        whole_s = broken_off(command, "nothing", 0.0, "")[0].answered_s
        moment_s = [chance.uniform(0, whole_s) for _ in range(math.ceil(moments / 2))]
        fine &= tell(
            f"plan solve, {how}", [broken_off(command, how, after, "")[0] for after in moment_s], wrong_command
        )
    for solver in ("highs", "cbc"):
        for limit_s in LIMITS_S:
            command = driver(solver, str(limit_s))
            held = [broken_off(command, "nothing", 0.0, "go")[0] for _ in range(math.ceil(moments / 10))]
            fine &= tell(f"{solver}, limit {limit_s} s", held, wrong_answer, limit_s + BEYOND_S)
    raise SystemExit(0 if fine else 1)


if __name__ == "__main__":
    main()
