"""What a question costs beside its answer: a Dask task there and back, and what the asker holds of many.

python benchmarks/sweep_tasks.py [QUESTIONS]    2,000 unless given; needs the extra `cluster`
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from planner.files import LineFile
from planner.sweeps.answering import BEGINS, Asker, Journal, Runner, in_turn
from planner.sweeps.cluster import cluster
from planner.sweeps.question import Answered, Question, without_plan

DIGEST = "0" * 64


def answer(asked: Question) -> Answered:
    """As large as the row of a plan, and worked out from nothing."""
    seed = asked.seed or 0
    cells = {"cost_microusd": seed, "cost_usd": seed / 1e6, "bound_usd": seed / 1e6, "devices": 8, "finish_hours": 1.0}
    told = {"decision": "job: h100-sxm-80gb; fleet: l40s", "plan_sha256": f"{seed:064x}"}
    return Answered(row={**without_plan("optimal", None), **cells, **told})  # type: ignore[typeddict-item]


def asked(count: int, journal: Path, runner: Runner) -> float:
    """Seconds of the clock for one question, its line in the journal included."""
    began = time.perf_counter()
    with LineFile(journal, begins=BEGINS) as lines:
        asker = Asker(key=lambda one: one.key(DIGEST), runner=runner, journal=Journal(lines))
        rows = asker.rows([Question(seed=number) for number in range(count)])
    assert len(rows) == count
    return (time.perf_counter() - began) / count


def main() -> None:
    """Print the seconds of a question in this process and on two workers, and the memory of this process."""
    import distributed

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with tempfile.TemporaryDirectory() as folder:
        here_s = asked(count, Path(folder) / "here.jsonl", partial(in_turn, answer))
        print(f"{count:,} questions without work, here: {1e3 * here_s:.2f} ms each, journal included")
        settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with (
            distributed.LocalCluster(**settings) as local,
            cluster(answer, local.scheduler_address, DIGEST) as runner,
        ):
            there_s = asked(count, Path(folder) / "there.jsonl", runner)
    print(f"on two workers: {1e3 * there_s:.2f} ms each, {1e3 * (there_s - here_s):.2f} ms more")
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"this process held {held:,.0f} MiB at most")


if __name__ == "__main__":
    main()
