"""Coverage of each room against its floor: lines and branches together, or lines alone. Exit code 1 where one is below.

make coverage, make lines floors        or, where a `.coverage` lies:  python benchmarks/coverage_floors.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

FLOOR, FLOORS = 90.0, {"equations": 95.0, "plan": 93.0, "checks": 93.0}
LINES = 4.0  # as much higher where lines alone were counted
# files that only a library of an extra runs, which is not installed with the tests: counted where it is there
EXTRAS = {"planner/sweeps/cluster.py": "distributed", "planner/sweeps/plugin.py": "distributed"}
PACKAGE = "planner"
COUNTED = ("covered_lines", "covered_branches"), ("num_statements", "num_branches")


def room_of(file: str) -> str:
    """The folder below planner/, or the module of the house itself."""
    return Path(file).parts[1] if len(Path(file).parts) > 2 else PACKAGE


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "coverage.json"
        subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", str(found)], check=True)
        report = json.loads(found.read_text(encoding="utf-8"))
    files, branches = report["files"], report["meta"]["branch_coverage"]
    counted = "lines and branches" if branches else "lines"
    rooms: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for file, figures in files.items():
        if (library := EXTRAS.get(Path(file).as_posix())) and find_spec(library) is None:
            print(f"{file} is not counted: {library} is not installed")
            continue
        for place, names in enumerate(COUNTED):
            rooms[room_of(file)][place] += sum(figures["summary"].get(name, 0) for name in names)
    below = []
    for room, (covered, all_of_them) in sorted(rooms.items()):
        share, floor = 100.0 * covered / max(all_of_them, 1), FLOORS.get(room, FLOOR) + (0.0 if branches else LINES)
        print(f"{room:14} {share:6.2f} %  of {all_of_them:6,} {counted}, floor {floor:g} %")
        below += [room] * (share < floor)
    if below:
        print(f"below the floor: {', '.join(below)}", file=sys.stderr)
    return bool(below)


if __name__ == "__main__":
    sys.exit(main())
