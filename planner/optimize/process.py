"""Questions to the solver process, and every way in which it may end, turned into an `Outcome`.

The planner waits here and nowhere else. A question has a deadline: whatever the solver makes of it,
its process is killed soon afterwards. Ctrl-C kills it at once. The last point that it told of is kept,
and CBC, which tells of none on its way, is given a moment to write down the best that it has.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace
from typing import Any

from planner.carriers import dataclass
from planner.deadline import TimeIsUp
from planner.optimize import child as children
from planner.optimize.child import Child
from planner.optimize.model import Model
from planner.optimize.status import Ending, FloatArray, Options, Outcome
from planner.optimize.wire import Arrays, arrays_of, header_of, parts_of, unpacked

GRACE_S = 1.0  # beyond its time limit before a solver counts as hung
PARTING_S = 0.5  # for CBC to write its best point when it is told to stop
_versions: dict[str, str] = {}
_turn = threading.RLock()  # one question at a time
_waited_s = 0.0  # for answers of the process, once it was ready

Message = tuple[dict[str, Any], Arrays]


def solve(model: Model, solver: str, options: Options) -> Outcome:
    """Solve a model in PuLP; never raises for what the solver does.

    An outcome that is `hang`, `interrupt` or `error` carries the last point that was told of, if any.

    Parameters
    ----------
    model
        The model of record.
    solver
        ``highs`` or ``cbc``.
    options
        The process is ended soon after the time limit; without one it is waited for.
    """
    until = None if options.time_limit_s is None else time.monotonic() + options.time_limit_s
    settings = {"solver": solver, "gap": options.gap, "seed": options.seed}
    talk = Talk(until=until, polite=solver == "cbc")
    try:
        message = talk.ask("solve", model, options.threads, settings)
        return _outcome(message) if message else talk.broken_off()
    except OSError as error:
        return Outcome(ending=Ending.ERROR, detail=f"the solver process could not be started: {error}")
    except ValueError as error:
        return Outcome(ending=Ending.ERROR, detail=str(error))


def improve(model: Model, options: Options, start: FloatArray | None = None) -> Outcome:
    """Solve a large model in parts (`planner.optimize.improve`); never raises, as `solve`.

    Parameters
    ----------
    model
        Jobs are lines of the family ``one``, pools and periods of the family ``limit``.
    options
        The process is ended soon after the time limit; without one it is waited for.
    start
        Values of all variables at a plan, (variables,); None = none is known.
    """
    until = None if options.time_limit_s is None else time.monotonic() + options.time_limit_s
    talk = Talk(until=until)
    more = {} if start is None else {"start": start}
    try:
        settings = {"gap": options.gap, "seed": options.seed}
        message = talk.ask("improve", model, options.threads, settings, more)
        return _outcome(message) if message else talk.broken_off()
    except OSError as error:
        return Outcome(ending=Ending.ERROR, detail=f"the solver process could not be started: {error}")
    except ValueError as error:
        return Outcome(ending=Ending.ERROR, detail=str(error))


def linear_program(
    model: Model, *, threads: int = 1, time_limit_s: float | None = None
) -> tuple[FloatArray, FloatArray] | None:
    """Solve the relaxation of a model.

    Parameters
    ----------
    model
        Its variables need not be whole here.
    threads
        Of HiGHS.
    time_limit_s
        Time for it; None = no limit.  [s]

    Returns
    -------
    Multipliers of its lines and values of its variables; None when there is no optimum, no HiGHS
    or no time for it.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C; the process is gone by then.
    """
    until = None if time_limit_s is None else time.monotonic() + time_limit_s
    talk = Talk(until=until)
    try:
        message = talk.ask("relax", model, threads, {})
    except OSError:
        return None
    if talk.ending is Ending.INTERRUPT:
        raise KeyboardInterrupt
    if message is None or "multipliers" not in message[1]:
        return None
    return message[1]["multipliers"], message[1]["values"]


def version(package: str) -> str | None:
    """Version of a package as the process told it; None before it has told any."""
    return _versions.get(package)


def solvers() -> tuple[str, ...]:
    """The solvers that the process can run; raises `OSError` when it cannot be started."""
    with _turn:
        child = children.current()
        try:
            while not child.ready:
                _take(child, None)
        except (EOFError, ValueError):
            child.kill()
        return child.solvers


def worked_s() -> float:
    """Seconds of a processor that this process took so far, and those in which it waited for the solver's."""
    return time.process_time() + _waited_s


@dataclass(slots=True, kw_only=True)
class Talk:
    """One question, and what became of it."""

    until: float | None
    polite: bool = False  # whether the solver has something to say when it is told to stop
    point: Outcome | None = None
    ending: Ending | None = None  # why there is no answer
    detail: str = ""

    def ask(
        self, what: str, model: Model, threads: int, settings: dict[str, Any], more: Arrays | None = None
    ) -> Message | None:
        """The answer; None when there is none, and the process is gone.

        Without an answer `ending` and `detail` say why, and `point` is the last one that was told of.

        Parameters
        ----------
        what
            ``solve``, ``improve`` or ``relax``, as `worker` knows them.
        model
            What it is asked of.
        threads
            Of HiGHS; a process that has others is ended, and a new one started.
        settings
            Further entries of the header: solver, gap, seed.
        more
            Further arrays: the start of ``improve``; None = none.

        Raises
        ------
        OSError
            The process cannot be started.
        """
        header = {"do": what, "threads": threads, "until": self.until, **settings, **header_of(model)}
        with _turn:
            child, answered = children.current(threads), False
            try:
                child.send(parts_of(header, **arrays_of(model), **(more or {})))
                message = self._wait(child, None if self.until is None else self.until + GRACE_S)
                answered = True
                return message
            except EOFError:
                self.ending = Ending.ERROR
            except ValueError:
                self.ending, self.detail = Ending.ERROR, "the solver process sent what cannot be read"
            except TimeoutError:
                self._stop(child, Ending.HANG if child.ready else Ending.LIMIT, "it did not come back in time")
            except TimeIsUp:
                self._stop(child, Ending.LIMIT, "no time was left for it")
            except KeyboardInterrupt:
                self._stop(child, Ending.INTERRUPT, "interrupted")
            finally:
                if not answered:
                    child.kill()
            self.detail = self.detail or child.last_words()
            return None

    def broken_off(self) -> Outcome:
        """What is known of a question without an answer."""
        assert self.ending is not None
        known = self.point or Outcome(ending=self.ending)
        return replace(known, ending=self.ending, bound=None, detail=self.detail)

    def _wait(self, child: Child, until: float | None) -> Message:
        global _waited_s
        while True:
            ready, begun_s = child.ready, time.monotonic()
            header, arrays = _take(child, until)
            _waited_s += time.monotonic() - begun_s if ready else 0.0
            if header.get("say") == "point":
                self.point = _outcome((header, arrays))
            elif header.get("say") in ("outcome", "relaxed"):
                return header, arrays

    def _stop(self, child: Child, ending: Ending, detail: str) -> None:
        """Note why, and hear the last point of a solver that has one to tell."""
        self.ending, self.detail = ending, detail
        if not self.polite:
            return
        child.interrupt()
        with contextlib.suppress(TimeoutError, EOFError, ValueError):
            last = _outcome(self._wait(child, time.monotonic() + PARTING_S))
            self.point = last if last.values is not None else self.point


def _take(child: Child, until: float | None) -> Message:
    header, arrays = unpacked(child.receive(until))
    if header.get("say") == "ready":
        child.ready, child.solvers = True, tuple(header["solvers"])
        _versions.update(header["versions"])
    return header, arrays


def _outcome(message: Message) -> Outcome:
    """An outcome as it was sent; raises `ValueError` when it is none."""
    header, arrays = message
    try:
        return Outcome(
            ending=Ending(header["ending"]),
            values=arrays.get("values"),
            objective=header["objective"],
            bound=header["bound"],
            detail=header["detail"],
            work=header["work"],
        )
    except KeyError as error:
        raise ValueError(f"an answer without {error}") from None
