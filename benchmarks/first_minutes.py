"""The first minutes: `plan init`, `plan solve`, `--help` and the Tab key, as ratios to the imports that they need.

Prints the medians of interleaved runs: this machine may be busy, and a ratio of neighbours in time says more than
seconds. Also counts the modules of other packages that each command imports.

    python benchmarks/first_minutes.py [runs]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLAN = ("-m", "planner.cli.main")
COUNT = (
    "import sys, atexit\n"
    "atexit.register(lambda: print(len({name.split('.')[0] for name in sys.modules if not name.startswith('_')"
    " and name.split('.')[0] not in sys.stdlib_module_names}), file=sys.stderr))\n"
    "import runpy\nsys.argv = ['plan', *sys.argv[1:]]\nrunpy.run_module('planner.cli.main', run_name='__main__')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A command, and the bare imports that it cannot do without."""

    name: str
    arguments: tuple[str, ...]
    imports: str
    environment: tuple[tuple[str, str], ...] = ()


TAB = (("_PLAN_COMPLETE", "complete_bash"), ("COMP_WORDS", "plan\nmemory\nllama"), ("COMP_CWORD", "2"))
COMMANDS = (
    Measured(name="plan --help", arguments=("--help",), imports="import typer"),
    Measured(name="plan", arguments=(), imports="import typer"),
    Measured(name="Tab key", arguments=(), imports="import typer", environment=TAB),
    Measured(name="plan init", arguments=("init", "mine.yaml", "--force"), imports="import typer, pydantic, yaml"),
    Measured(
        name="plan solve",
        arguments=("solve", "mine.yaml"),
        imports="import pandas, pulp, highspy, typer, pydantic, yaml",
    ),
)


def run(arguments: tuple[str, ...], folder: str, more: tuple[tuple[str, str], ...] = ()) -> tuple[float, str]:
    """Wall seconds of one run of the interpreter, and its stderr; bytecode is kept as an installed package keeps it."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own |= {"PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode"), "PYTHONPATH": str(ROOT), **dict(more)}
    start = time.perf_counter()
    answer = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=folder, env=own,
        check=True,
    )  # fmt: skip
    return time.perf_counter() - start, answer.stderr


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        run((*PLAN, "init", "mine.yaml"), folder)
        times: dict[str, list[tuple[float, float]]] = {command.name: [] for command in COMMANDS}
        for _ in range(runs + 1):  # the first round fills the caches and is dropped
            for command in COMMANDS:
                base = run(("-c", command.imports), folder)[0]
                times[command.name].append((base, run((*PLAN, *command.arguments), folder, command.environment)[0]))
        print(f"{'':12} {'seconds':>8} {'ratio':>6} packages  to")
        for command in COMMANDS:
            kept = times[command.name][1:]
            ratio = statistics.median(own / base for base, own in kept)
            packages = run(("-c", COUNT, *command.arguments), folder, command.environment)[1].split()[-1]
            seconds = statistics.median(own for _, own in kept)
            print(f"{command.name:12} {seconds:8.3f} {ratio:6.2f} {packages:>8}  {command.imports}")
        both = sum(statistics.median(own for _, own in times[name][1:]) for name in ("plan init", "plan solve"))
        print(f"first plan   {both:8.3f} s for plan init && plan solve (bar 60 s)")


if __name__ == "__main__":
    main()
