"""Many questions in one process and in several: the same bytes, seconds of the clock and of the processor.

python benchmarks/sweep_workers.py [QUESTIONS] [WORKERS]    500 and 2 unless given; a quiet machine is for whoever asks
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import planner


def spent_s() -> float:
    """Of this process and of those that have ended under it, user time."""
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def asked(count: int) -> planner.Grid:
    """Demands and prices of the llama scenario."""
    prices = 20
    return planner.grid(f"serving.assistant.qpm=300..900/{count // prices}", f"price:h100-*=-30%..+27%/{prices}")


def main() -> None:
    given = [int(text) for text in sys.argv[1:3]]
    count, workers = [*given, *(500, 2)[len(given) :]]
    grid, found = asked(count), []
    with tempfile.TemporaryDirectory() as folder:
        for number in (1, workers):
            began, used = time.perf_counter(), spent_s()
            plans, journal = Path(folder) / f"plans{number}", Path(folder) / f"{number}.jsonl"
            told = planner.sweep("llama", grid, workers=number, journal=journal, plans=plans)
            clock_s, user_s = time.perf_counter() - began, spent_s() - used
            files = {path.name: path.read_bytes() for path in sorted(plans.iterdir())}
            found.append((told.to_json(), files, clock_s))
            print(
                f"{len(grid.questions)} questions, {number} workers: {clock_s:.1f} s, {user_s:.1f} s of the processor"
            )
            began = time.perf_counter()
            again = planner.sweep("llama", grid, workers=number, journal=journal, plans=plans)
            print(f"  again from the journal: {time.perf_counter() - began:.1f} s, {again.asked} asked")
    same = found[0][:2] == found[1][:2]
    print(f"{found[0][2] / found[1][2]:.2f} times as fast; {'the same bytes' if same else 'OTHER BYTES'}")
    sys.exit(not same)


if __name__ == "__main__":
    main()
