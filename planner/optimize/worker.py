"""The solver process: reads questions from its input, answers them on its output, one at a time.

Run by `child`; see `wire` for the frames. Questions are models to solve in PuLP (`solve`) and their
relaxations (`relax`). HiGHS tells of each better point while it goes on; the planner may kill this
process at any moment and keeps the last one.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import os
import queue
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from planner.optimize import highs, pulp_adapter
from planner.optimize.child import HEAD, PREFIX, SWEEP_S, exactly, write_all
from planner.optimize.model import Model
from planner.optimize.status import Ending, FloatArray, Options, Outcome
from planner.optimize.wire import Arrays, model_of, parts_of, unpacked

Say = Callable[..., None]
Header = dict[str, Any]


def main() -> None:
    """Answer questions until the input ends."""
    inbox, say = _attach()
    letters: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(inbox, letters), daemon=True).start()
    for name in ("highspy", "pulp"):
        with contextlib.suppress(ImportError):  # told when it is asked for
            importlib.import_module(name)
    gc.freeze()
    solvers = [name for name in pulp_adapter.SOLVERS if pulp_adapter.installed_here(name)]
    say({"say": "ready", "solvers": solvers, "versions": pulp_adapter.versions_here()})
    answers = {"solve": solve, "relax": relax, "improve": improve}
    threads = 0
    while True:
        header, arrays = unpacked(letters.get())
        try:
            threads = _with_threads(header, threads)
            answers[header["do"]](say, header, arrays)
        except Exception as error:  # the planner asks elsewhere
            tell(say, Outcome(ending=Ending.ERROR, detail=f"{type(error).__name__}: {error}"[:300]))


def _with_threads(header: Header, before: int) -> int:
    """The threads that HiGHS runs with on a question; it answers none with other threads than its last had.

    Parts of large models are solved with one thread each, whatever there are.
    """
    wanted = 1 if header["do"] == "improve" else int(header["threads"])
    if before not in (0, wanted):
        with contextlib.suppress(ImportError):
            import highspy

            highspy.Highs.resetGlobalScheduler(True)
    return wanted


def solve(say: Say, header: Header, arrays: Arrays) -> None:
    """Solve a model in PuLP.

    Parameters
    ----------
    say
        Sends a frame: a header, and arrays by name.
    header
        Families of the model; solver, gap, seed, threads, and `until` by the monotonic clock, None = no limit.
    arrays
        Numbers of the model.
    """

    def better(values: FloatArray, objective: float) -> None:
        tell(say, Outcome(ending=Ending.LIMIT, values=values, objective=objective), final=False)

    options = Options(gap=header["gap"], time_limit_s=left_s(header), threads=header["threads"], seed=header["seed"])
    if options.time_limit_s is not None and options.time_limit_s <= 0:
        tell(say, Outcome(ending=Ending.LIMIT, detail="no time was left for it"))
        return
    tell(say, pulp_adapter.run_here(model_of(header, arrays), header["solver"], options, better))


def improve(say: Say, header: Header, arrays: Arrays) -> None:
    """Solve a large model in parts, with a little time kept back so that what is known gets told.

    Parameters
    ----------
    say
        Sends a frame: a header, and arrays by name.
    header
        Families of the model; gap, seed, threads, and `until` by the monotonic clock, None = no limit.
    arrays
        Numbers of the model, and `start` where a plan is known.
    """
    from planner.optimize import improve as parts

    def better(values: FloatArray, objective: float) -> None:
        tell(say, Outcome(ending=Ending.LIMIT, values=values, objective=objective), final=False)

    left = left_s(header)
    tell(
        say,
        parts.improve(
            model_of(header, arrays),
            start=arrays.get("start"),
            gap=header["gap"],
            time_limit_s=None if left is None else left - min(parts.PARTING_S, 0.1 * left),
            threads=header["threads"],
            seed=header["seed"],
            better=better,
        ),
    )


def relax(say: Say, header: Header, arrays: Arrays) -> None:
    """Multipliers of the lines and values of the variables at the optimum of the relaxation; neither without one.

    Parameters
    ----------
    say
        Sends a frame: a header, and arrays by name.
    header
        Families of the model; threads, and `until` by the monotonic clock, None = no limit.
    arrays
        Numbers of the model.
    """
    found = _relaxed(model_of(header, arrays), header["threads"], left_s(header))
    if found is None:
        say({"say": "relaxed"})
    else:
        say({"say": "relaxed"}, multipliers=found[0], values=found[1])


def tell(say: Say, outcome: Outcome, *, final: bool = True) -> None:
    """Send an outcome, or a point on the way to one.

    Parameters
    ----------
    say
        Sends a frame: a header, and arrays by name.
    outcome
        What is sent; without values where it has none.
    final
        Nothing follows; else it is a point on the way.
    """
    header = {"ending": str(outcome.ending), "detail": outcome.detail}
    numbers = {"objective": outcome.objective, "bound": outcome.bound, "work": outcome.work}
    values = {} if outcome.values is None else {"values": np.asarray(outcome.values, dtype=np.float64)}
    say({"say": "outcome" if final else "point", **header, **numbers}, **values)


def left_s(header: Header) -> float | None:
    """Time until the question's deadline, on the clock that all processes share.  [s]"""
    return None if header["until"] is None else header["until"] - time.monotonic()


def _relaxed(model: Model, threads: int, time_limit_s: float | None) -> tuple[FloatArray, FloatArray] | None:
    table = model.table()
    lines = highs.Lines(
        starts=table.starts, variables=table.variables, values=table.coefficients, low=table.low, high=table.high
    )
    solver = highs.program(model.objective, model.upper, lines, threads=threads, time_limit_s=time_limit_s)
    found = highs.optimum(solver)
    return None if found is None else (found[1], found[0])


def _attach() -> tuple[io.FileIO, Say]:
    """Input and output for frames alone: what solvers print goes elsewhere, and they inherit neither."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # meant for the solvers that are run, which do not inherit this
    inbox, outbox = io.FileIO(os.dup(0), "r"), io.FileIO(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)

    def say(header: Header, **arrays: Any) -> None:
        try:
            write_all(outbox, parts_of(header, **arrays))
        except OSError:  # nobody hears it
            _end()

    return inbox, say


def _listen(inbox: io.FileIO, letters: queue.SimpleQueue[bytes]) -> None:
    """Take in questions; when the input ends the planner is gone, and so must everything be here."""
    while len(head := exactly(inbox, HEAD)) == HEAD:
        length = int.from_bytes(head, "big")
        frame = exactly(inbox, length)
        if len(frame) < length:
            break
        letters.put(frame)
    _end()


def _end() -> NoReturn:
    """Clear away and leave.

    Both threads may come here. What must not happen is that the main one ends by itself: the interpreter
    then ends the other in the middle of its work, and the folder stays.
    """
    folder, stop = Path(tempfile.gettempdir()), time.monotonic() + SWEEP_S
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGTERM)  # this process does not mind
    while folder.name.startswith(PREFIX) and folder.exists() and time.monotonic() < stop:
        shutil.rmtree(folder, ignore_errors=True)
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(0)
