"""Kill a sweep with SIGKILL at random moments, run it again, and count what was solved.

    python benchmarks/resume.py [TRIALS] [SEED]

A sweep runs once from beginning to end; that is the document to reach. Then, TRIALS times (default 10), a
fresh sweep of the same question is killed up to three times, each time some moment after a random number of
its points was on the disk, and at last run to its end. Reported for every trial: kills, lines of the journal,
programs solved in all, points solved twice (a key that stands in two lines), and whether the document is
identical, byte by byte, to the uninterrupted one. Exit 1 when one is not, or anything was solved twice.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
QUESTION = ("frontier", str(ROOT / "scenarios" / "llama.yaml"), "--over", "deadline=7d..60d", "-o", "json")


def start(folder: Path, out: str) -> subprocess.Popen[bytes]:
    """The sweep as users run it, in a folder of its own."""
    code = "from planner.cli.main import main; main()"
    command = [sys.executable, "-c", code, *QUESTION, "--out", out]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"})  # fmt: skip


def lines_of(journal: Path) -> int:
    """Whole lines that are on the disk."""
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def trial(folder: Path, rng: random.Random, lines: int, span_s: float) -> dict[str, int]:
    """One sweep, killed up to three times, each time some moment after another random number of lines; then left."""
    journal = folder / ".plan" / "llama.frontier.jsonl"
    kills = torn = 0
    for target in sorted(rng.sample(range(lines), rng.randint(1, 3))):
        process = start(folder, "found.json")
        while process.poll() is None and lines_of(journal) < target:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, span_s / lines))
        kills += process.poll() is None
        process.kill()
        process.wait()
        if journal.exists() and rng.random() < 0.5:  # what a power cut would leave: half a line
            with journal.open("ab") as stream:
                stream.write(b'{"key": "torn')
            torn += 1
    assert start(folder, "found.json").wait() == 0
    records = [json.loads(line) for line in journal.read_bytes().splitlines()]
    keys = [record["key"] for record in records]
    return {
        "kills": kills,
        "torn": torn,
        "lines": len(records),
        "programs": sum(record["solves"] for record in records),
        "twice": len(keys) - len(set(keys)),
    }


def main() -> int:
    """Run the trials and print a line each."""
    count, seed = (int(text) for text in (*sys.argv[1:], *("10", "0")[len(sys.argv) - 1 :]))
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch) / "whole"
        whole.mkdir()
        begun = time.monotonic()
        assert start(whole, "found.json").wait() == 0
        span_s = time.monotonic() - begun
        expected = (whole / "found.json").read_bytes()
        solves = json.loads(expected)["provenance"]["solves"]
        print(f"uninterrupted: {len(json.loads(expected)['points'])} points, {solves} programs, {span_s:.1f} s")
        lines = lines_of(whole / ".plan" / "llama.frontier.jsonl")
        wrong = kills = 0
        for number in range(1, count + 1):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            found = trial(folder, rng, lines, span_s)
            same = (folder / "found.json").read_bytes() == expected
            kills += found["kills"]
            wrong += not same or found["twice"] > 0 or found["programs"] != solves
            print(f"{number:3}  {found}  {'identical' if same else 'DIFFERENT'}", flush=True)
    print(f"{count - wrong} of {count} identical with nothing solved twice, {kills} kills")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
