"""How fast `plan read` takes a long log, and in how much memory: a log of a gigabyte is written and read.

    python benchmarks/reading_rate.py [--bytes 1000000000] [--form table|json]

Prints megabytes a second of processor time and of the clock, and the most memory that the reading process held.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

_DISTINCT = 20_000  # rows that are drawn; then they come again at later times
_START = datetime(2025, 3, 3, tzinfo=UTC)


def _lengths() -> list[tuple[int, int]]:
    lots = random.Random(1)
    return [(int(lots.lognormvariate(6, 1)) + 1, int(lots.lognormvariate(4, 0.8)) + 1) for _ in range(_DISTINCT)]


def _lines(form: str) -> Iterator[str]:
    rows = _lengths()
    if form == "table":
        yield "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    for number in range(10**12):
        given, made = rows[number % _DISTINCT]
        if form == "table":
            when = _START + timedelta(milliseconds=31 * number)
            yield f"{when:%Y-%m-%d %H:%M:%S.%f}0,{given},{made}\n"
        else:
            blocks = list(range(number * 4 % 100_000_000, number * 4 % 100_000_000 + 4))
            record = {"timestamp": number * 31, "input_length": given, "output_length": made, "hash_ids": [0, *blocks]}
            yield json.dumps(record) + "\n"


def main() -> None:
    """Write, read, print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--bytes", type=int, default=1_000_000_000)
    arguments.add_argument("--form", choices=("table", "json"), default="table")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        written = 0
        with path.open("w") as file:
            for line in _lines(asked.form):
                file.write(line)
                written += len(line)
                if written >= asked.bytes:
                    break
        from planner.reading.kinds import read
        from planner.reading.source import Source

        begun, clock = time.process_time(), time.perf_counter()
        reading = read(Source(path))
        took, passed = time.process_time() - begun, time.perf_counter() - clock
        most_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(f"{asked.form}: {written / 1e6:,.0f} MB, {reading.taken:,} requests, {reading.skipped.count:,} not")
        print(f"{written / 1e6 / took:.0f} MB/s of processor time, {written / 1e6 / passed:.0f} MB/s by the clock")
        print(f"memory: {most_bytes / 2**20:,.0f} MiB at most")


if __name__ == "__main__":
    main()
