"""Kill a sweep with SIGKILL at random moments, run it again, and count what was solved.

    python benchmarks/resume.py [KILLS] [SEED]

A sweep runs once from beginning to end; that is the document to reach. Then, KILLS times (default 10), a
fresh sweep of the same question is started and killed at a random moment of the time that it took, again and
again until it gets to its end. Reported for every trial: kills, lines of the journal, points in it, programs
solved in all, points solved twice (a line with the key of another one), and whether the document is
identical to the uninterrupted one. Exit 1 when one is not, or anything was solved twice.
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
MOST_KILLS = 40  # of one trial; then it is left to end


def start(folder: Path, out: str) -> subprocess.Popen[bytes]:
    """The sweep as users run it, in a folder of its own."""
    code = "from planner.cli.main import main; main()"
    command = [sys.executable, "-c", code, *QUESTION, "--out", out]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"})  # fmt: skip


def trial(folder: Path, rng: random.Random, span_s: float) -> dict[str, int]:
    """One sweep, killed until it survives."""
    kills = torn = 0
    journal = folder / ".plan" / "llama.frontier.jsonl"
    while True:
        process = start(folder, "found.json")
        try:
            process.wait(timeout=rng.uniform(0.2, 1.0) * span_s if kills < MOST_KILLS else None)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            if journal.exists() and kills % 2:  # what a power cut would leave: half a line
                with journal.open("ab") as stream:
                    stream.write(b'{"key": "torn')
                torn += 1
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
        wrong = 0
        for number in range(1, count + 1):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            found = trial(folder, rng, span_s)
            same = (folder / "found.json").read_bytes() == expected
            wrong += not same or found["twice"] > 0 or found["programs"] != solves
            print(f"{number:3}  {found}  {'identical' if same else 'DIFFERENT'}", flush=True)
    print(f"{count - wrong} of {count} identical with nothing solved twice")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
