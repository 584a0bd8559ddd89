"""Sliders of the live page at random in Chromium: from a move to the proven answer, and whether what was shown holds.

    python benchmarks/live_moves.py llama chat-fleet --moves 200

Prints, for each scenario, the milliseconds from the move of a slider to its last answer, by the clock and of the
processor, what a session takes for some of the same questions, how many answers were called current and were not, and
how many differ from `plan solve` with the same options (with --check, which solves each from nothing).
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))

from planner import api  # noqa: E402
from planner.scenario.load import with_settings  # noqa: E402
from tests.browser import turning  # noqa: E402
from tests.live.conftest import served  # noqa: E402


def main() -> None:
    """Move, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="+")
    parser.add_argument("--moves", type=int, default=200)
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    for name in asked.scenarios:
        measured(name, asked.moves, asked.seed, asked.check)


def measured(name: str, count: int, seed: int, check: bool) -> None:
    """All of one scenario."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("PLAN_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), name) as it, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(it.address)
        turning.settle(page)
        page.evaluate(turning.WATCH)
        found = list(turning.moves(page, count, seed, lambda: processor_s(it.process.pid)))
        stale = turning.stale(page)
        browser.close()
    alone = [solved_ms(name, one) for one in found[:: max(1, len(found) // 20)]]
    print(
        f"{name}: {len(found)} moves, {sum(one.proven == 'yes' for one in found)} proven, stale {len(stale)}",
        f"to the answer: {told([one.took_ms for one in found])}",
        f"processor of the page's server: {told([one.cpu_ms for one in found])}",
        f"processor of session.on and .solve for every {len(found) // len(alone)}th: {told(alone)}",
        sep="\n  ",
        flush=True,
    )
    if check:
        wrong = [line for one in found for line in turning.differences(one)]
        print(
            f"{name}: {len(found)} answers beside plan solve, {len(wrong)} differences", *wrong, sep="\n  ", flush=True
        )


def told(ms: list[float]) -> str:
    """Median and p95, and how many are short."""
    ms = sorted(ms)
    p95 = ms[min(len(ms) - 1, int(0.95 * len(ms)))]
    return f"median {statistics.median(ms):.0f} ms, p95 {p95:.0f} ms, {sum(one <= 300 for one in ms)} within 300 ms"


def processor_s(process: int) -> float:
    """What a process has had of a processor.  [s]"""
    parts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def solved_ms(name: str, shown: turning.Shown) -> float:
    """The same question asked of a session that has answered one.  [ms]"""
    session = _sessions.setdefault(name, api.session(name))
    session.answer()
    began_s = time.process_time()
    session.on(with_settings(session.scenario, turning.settings(shown))).solve()
    return 1e3 * (time.process_time() - began_s)


_sessions: dict[str, api.Session] = {}

if __name__ == "__main__":
    main()
