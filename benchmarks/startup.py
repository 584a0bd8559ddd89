"""Cold start of `plan solve`, as a ratio to importing the libraries that it needs.

Prints the medians of interleaved runs: this machine may be busy, and a ratio of neighbours in time
says more than seconds. The bar is 2.0.

    python benchmarks/startup.py [runs] [scenario]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARIES = "import pandas, pulp, highspy, typer, pydantic, yaml"


def wall_s(*arguments: str, cwd: str) -> float:
    """Wall seconds of one run of the interpreter, with bytecode kept as an installed package keeps its own."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own["PYTHONPYCACHEPREFIX"] = str(Path(cwd) / "bytecode")
    start = time.perf_counter()
    command = [sys.executable, *arguments]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL, cwd=cwd, env=own)
    return time.perf_counter() - start


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    scenario = str(ROOT / (sys.argv[2] if len(sys.argv) > 2 else "scenarios/llama.yaml"))
    imports, solves, helps = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(runs + 1):  # the first round fills the caches and is dropped
            imports.append(wall_s("-c", LIBRARIES, cwd=folder))
            solves.append(wall_s("-m", "planner.cli.main", "solve", scenario, cwd=folder))
            helps.append(wall_s("-m", "planner.cli.main", "--help", cwd=folder))
    base = statistics.median(imports[1:])
    print(f"imports      {base:.3f} s  (median of {runs})")
    for name, times, bar in (("plan solve", solves, "  (bar 2.0)"), ("plan --help", helps, "")):
        middle = statistics.median(times[1:])
        print(f"{name:12} {middle:.3f} s  ratio {middle / base:.2f}{bar}")


if __name__ == "__main__":
    main()
