"""Many questions in one process, in several and on clusters: the same bytes, seconds of the clock and of the processor.

python benchmarks/sweep_workers.py [QUESTIONS] [WORKERS] [--cluster]
    500 and 2 unless given; a quiet machine is for whoever asks. --cluster: also on a LocalCluster of Dask, and on a
    scheduler and workers that are processes of their own on loopback; it needs the extra `cluster`.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import planner

Asked = dict[str, Any]  # arguments of a sweep


def spent_s() -> float:
    """Of this process and of those that have ended under it, user time."""
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def asked(count: int) -> planner.Grid:
    """Demands and prices of the llama scenario."""
    prices = 20
    return planner.grid(f"serving.assistant.qpm=300..900/{count // prices}", f"price:h100-*=-30%..+27%/{prices}")


@contextlib.contextmanager
def here(workers: int) -> Iterator[Asked]:
    yield {"workers": workers}


@contextlib.contextmanager
def local_cluster(workers: int) -> Iterator[Asked]:
    import distributed

    flags: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**flags) as cluster:
        yield {"scheduler": cluster.scheduler_address}


@contextlib.contextmanager
def loopback(workers: int) -> Iterator[Asked]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    calls = [["dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]]
    calls += [["dask_worker", address, "--nthreads", "1"]] * workers
    with contextlib.ExitStack() as stack:
        for name, *flags in calls:
            call = [sys.executable, "-m", f"distributed.cli.{name}", *flags, "--no-dashboard"]
            started = stack.enter_context(subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            stack.callback(started.terminate)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.2)
        yield {"scheduler": address}


def main() -> None:
    given = [int(text) for text in sys.argv[1:] if text.isdecimal()]
    count, workers = [*given, *(500, 2)[len(given) :]]
    grid = asked(count)
    ways: list[tuple[str, Callable[[int], contextlib.AbstractContextManager[Asked]], int]] = [
        ("1 process", here, 1),
        (f"{workers} processes", here, workers),
    ]
    if "--cluster" in sys.argv:
        ways += [("LocalCluster", local_cluster, workers), ("scheduler on loopback", loopback, workers)]
    first: tuple[object, float] | None = None
    same = True
    with tempfile.TemporaryDirectory() as folder:
        for name, way, number in ways:
            plans, journal = Path(folder) / f"plans-{name}", Path(folder) / f"{name}.jsonl"
            used = spent_s()
            with way(number) as where:
                began = time.perf_counter()
                told = planner.sweep("llama", grid, journal=journal, plans=plans, **where)
                clock_s = time.perf_counter() - began
            files = {path.name: path.read_bytes() for path in sorted(plans.iterdir())}
            counted = told.document["counted"]
            found = (told.to_json(), files)
            first = first or (found, clock_s)
            same = same and found == first[0]
            words = "the same bytes" if found == first[0] else "OTHER BYTES"
            print(
                f"{counted['plans']} plans of {counted['questions']} questions, {name}: {clock_s:.1f} s,"
                f" {spent_s() - used:.1f} s of the processor, {first[1] / clock_s:.2f} times as fast, {words}",
                flush=True,
            )
            began = time.perf_counter()
            again = planner.sweep("llama", grid, journal=journal, plans=plans)
            print(f"  again from the journal: {time.perf_counter() - began:.1f} s, {again.asked} asked", flush=True)
    sys.exit(not same)


if __name__ == "__main__":
    main()
