"""What a question costs, and what the next one costs: CPU of whole processes and of questions within one.

Prints, each as a ratio or a count of CPU seconds (user and system, solver process included):

* cold `plan solve` over bare imports of its libraries, medians of interleaved runs;
* portfolios of varied models over the whole catalog, and one with many offers, with the peak of memory;
* a scenario with 5 and with 20 cases over the same without;
* the second question of a session, its answer proven and verified;
* time of the stages that settle ties beside that of the cost.

    python benchmarks/once.py [cold | many | cases | second | ties | large] ...
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
LIBRARIES = "import numpy, pydantic, typer, yaml, pulp, highspy"
MODELS = (
    *("llama-3.1-8b", "llama-3.1-70b", "llama-3.2-1b", "llama-3.2-3b", "qwen2.5-7b", "qwen2.5-1.5b", "qwen3-8b"),
    *("mistral-7b", "gemma-2-9b", "phi-3-mini", "mixtral-8x7b", "qwen3-30b-a3b", "qwen3-32b", "gemma-2-27b"),
    *("gpt-oss-20b", "llama-2-13b", "qwen2.5-14b", "falcon-7b", "phi-3-medium", "deepseek-v2-lite"),
)


def command_s(*arguments: str, cwd: str) -> tuple[float, int]:
    """CPU seconds and peak bytes of a process and of those that it waited for."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own["PYTHONPYCACHEPREFIX"] = str(Path(cwd) / "bytecode")
    own["PYTHONPATH"] = str(ROOT)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, *arguments], cwd=cwd, env=own, **quiet)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode} of {' '.join(arguments)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def solve(path: str) -> tuple[str, ...]:
    """The command line that solves a scenario."""
    return "-m", "planner.cli.main", "solve", path


def cold(folder: str, runs: int = 5) -> None:
    """Cold starts over bare imports."""
    bars = {"llama": 3.5, "chat-fleet": 4.5, "portfolio": 20.0}
    taken: dict[str, list[float]] = {name: [] for name in ("imports", *bars)}
    for _ in range(runs + 1):  # the first round fills the caches and is dropped
        taken["imports"].append(command_s("-c", LIBRARIES, cwd=folder)[0])
        for name in bars:
            taken[name].append(command_s(*solve(str(ROOT / f"scenarios/{name}.yaml")), cwd=folder)[0])
    base = statistics.median(taken["imports"][1:])
    print(f"bare imports {base:.3f} CPU s (median of {runs})")
    for name, bar in bars.items():
        middle = statistics.median(taken[name][1:])
        print(f"cold {name:12} {middle:.3f} CPU s, ratio {middle / base:.2f} (bar {bar})")


def workloads(count: int, **fleet: Any) -> dict[str, Any]:
    """A scenario of so many workloads of varied models, jobs and fleets by turns, over the whole catalog."""
    jobs, fleets = [], []
    for number in range(count):
        model = MODELS[number // 2 % len(MODELS)]
        if number % 2:
            lengths = {"input_tokens": 500 + 100 * (number % 7), "output_tokens": 100 + 50 * (number % 5)}
            fleets.append({"name": f"fleet-{number}", "model": model, "qpm": 60 + 10 * number, **lengths, **fleet})
            continue
        size = {"tokens": f"{1 + number % 9}B", "deadline": f"{20 + number % 10} days"}
        jobs.append({"name": f"job-{number}", "model": model, "sequence_length": 4096, **size})
        jobs[-1] |= {"global_batch": "1M tokens", "recompute": ["none", "selective", "full"]}
    return {"schema": "plan/v1", "name": f"many-{count}", "horizon": "1 month", "training": jobs, "serving": fleets}


def many(folder: str) -> None:
    """Portfolios of varied models over the whole catalog."""
    for count, bar in ((30, 5.0), (100, 14.0)):
        path = Path(folder) / f"many-{count}.yaml"
        path.write_text(json.dumps(workloads(count)))
        took_s, peak = command_s(*solve(str(path)), cwd=folder)
        print(f"{count} workloads {took_s:.2f} CPU s (bar {bar}), peak {peak / 1e9:.2f} GB")


def large(folder: str) -> None:
    """A thousand workloads over every offer of the catalog."""
    path = Path(folder) / "large.yaml"
    path.write_text(json.dumps(workloads(1000)))
    took_s, peak = command_s(*solve(str(path)), cwd=folder)
    print(f"1000 workloads {took_s:.1f} CPU s, peak {peak / 1e9:.2f} GB (bar 6)")


def uncertain(count: int) -> dict[str, Any]:
    """A job and a fleet, with so many cases: other loads, tokens and deadlines."""
    from planner.scenario.load import load_scenario

    data = dict(load_scenario(ROOT / "scenarios/llama.yaml").resolved)
    cases = []
    for number in range(1, count):
        settings = {"serving.assistant.qpm": 400 + 20 * number, "training.pretrain-8b.tokens": f"{150 + 2 * number}B"}
        cases.append({"name": f"case-{number}", "probability": f"{50 / count} %", "set": settings})
    return {**data, "name": f"cases-{count}", "uncertainty": cases} if cases else data


def cases(folder: str) -> None:
    """Scenarios with cases over the same without."""
    taken = {}
    for count in (1, 5, 20):
        path = Path(folder) / f"cases-{count}.yaml"
        path.write_text(json.dumps(uncertain(count)))
        taken[count] = statistics.median(command_s(*solve(str(path)), cwd=folder)[0] for _ in range(3))
    for count, bar in ((5, 1.3), (20, 2.0)):
        print(f"{count} cases {taken[count]:.2f} CPU s, {taken[count] / taken[1]:.2f} x none (bar {bar} x)")


def second(folder: str) -> None:
    """The second question of a session."""
    import planner

    asked: dict[str, list[dict[str, Any]]] = {
        "llama": [
            {"training.pretrain-8b.deadline": "25 days"},
            {"training.pretrain-8b.tokens": "190B"},
            {"serving.assistant.qpm": 700},
            {"hardware.discounts": [{"device": "h100-*", "fraction": "10 %"}]},
        ],
        "chat-fleet": [
            {"serving.chat.requests": "9 /s"},
            {"limits.budget": "$100000"},
            {"hardware.discounts": [{"device": "h100-*", "fraction": "10 %"}]},
        ],
    }
    for name, changes in asked.items():
        session = planner.session(name)
        session.solve()
        for change in changes:
            plan, took_s = worked(partial(answered, session, change))
            told = f"{plan.document['status']}, verified" if plan.verify() == [] else "not verified"
            print(f"second question of {name}, {change}: {1e3 * took_s:.0f} ms CPU (bar 200), {told}")


def answered(session: Any, change: dict[str, Any]) -> Any:
    """The plan of a session's further question."""
    return session.with_(change).solve()


def worked(work: Callable[[], Any]) -> tuple[Any, float]:
    """What some work gives, and the CPU seconds of this process and of the solver process that it took."""
    before = time.process_time() + solver_s()
    found = work()
    return found, time.process_time() + solver_s() - before


def solver_s() -> float:
    """CPU seconds of the solver process so far, where the system tells them."""
    from planner.optimize import child

    try:
        fields = Path(f"/proc/{child.current().process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ties(folder: str) -> None:
    """What the stages that settle ties add to those that find the cost, by the clock, as their time is limited."""
    import planner
    from planner.optimize import process
    from planner.optimize.solve import optimize

    process.solvers()  # it is up, as it is once scenario and catalog have been read
    for name in ("llama", "chat-fleet", "fleet", "portfolio"):
        program = planner.enumerate_candidates(planner.load_scenario(name)).program
        taken = []
        for cost_only in (True, False):
            begun = time.perf_counter()
            optimize(program, cost_only=cost_only)
            taken.append(time.perf_counter() - begun)
        most = max(1.0, taken[0] / 2)
        print(f"ties of {name}: {taken[1] - taken[0]:.2f} s beside {taken[0]:.2f} s for the cost (bar {most:.2f} s)")


SECTIONS: dict[str, Callable[[str], None]] = {
    "cold": cold,
    "many": many,
    "cases": cases,
    "second": second,
    "ties": ties,
    "large": large,
}


def chosen(arguments: list[str]) -> Iterator[Callable[[str], None]]:
    """The sections asked for; all by default."""
    return (SECTIONS[name] for name in arguments or SECTIONS)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for section in chosen(sys.argv[1:]):
            section(folder)


if __name__ == "__main__":
    main()
