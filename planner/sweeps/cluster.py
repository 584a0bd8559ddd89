"""Questions answered by the workers of a Dask scheduler: the extra `cluster`.

What questions share is a plugin of the workers, under its hash: the scheduler sends it to each of them once, to those
too that join later. A question is a task of its own. A task whose worker died is begun again elsewhere by Dask, until
the scheduler blames it for that many deaths (`distributed.scheduler.allowed-failures`); it is asked once more, and the
second time its row says so. When the scheduler goes, the sweep ends, with all that was answered in its journal.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from planner.errors import StoppedError, UsageError
from planner.files import read_bytes
from planner.sweeps.question import (
    PACKAGES,
    Answer,
    Answered,
    VersionsDifferError,
    answered,
    lost,
    versions_here,
    versions_of,
)

if TYPE_CHECKING:
    from planner.sweeps.answering import Asked, Runner

CONNECT_S = 10.0  # for a scheduler to answer
WORKERS_S = 30.0  # for a worker to be there
LOOK_S = 0.5  # after which it is looked whether the scheduler is still there
IN_FLIGHT = 8  # questions a thread of a worker: one is answered, the others wait there and with the scheduler
KILLER = "each worker that was asked it ended before it answered"
KILLER_HINT = "ask it by itself with plan solve: it may need more memory than a worker has"
EXTRA = "the scheduler of a cluster is spoken to by dask and distributed, which are not installed"
HOW = "pip install 'llm-capacity-planner[cluster]'; --workers N needs nothing"
SAME = "install the same versions on both sides, best from one image or one lock file"
SHARED_AGAIN = 3  # times that what questions share is sent again, to workers that came or to which the line broke
TAKEN_AGAIN = 20  # times that a question is asked whose answer went with a worker
TAKEN = (asyncio.CancelledError, concurrent.futures.CancelledError, OSError)  # a task was given up, or nobody is there
WINDOW_S = 5.0  # after which it is looked how many workers there are
_VERSION = "planner:__version__"


@contextmanager
def cluster(
    answer: Answer,
    address: str,
    digest: str,
    *,
    security: Any = None,
    hear: Callable[[str], None] | None = None,
) -> Iterator[Runner]:
    """A way to have questions answered by a cluster.

    Parameters
    ----------
    answer
        What answers, with all that the questions share.
    address
        Of the scheduler: "tcp://127.0.0.1:8786", or "tls://" with `security`.
    digest
        Hash of what the questions share.
    hear
        Is told the address of the scheduler's dashboard.

    Raises
    ------
    UsageError
        The extra is not installed.
    StoppedError
        There is no scheduler at the address, it has no workers, or they run other versions.
    """
    try:
        import dask.config
        import distributed
    except ImportError:
        raise UsageError.of("missing-extra", EXTRA, hint=HOW) from None
    from planner.sweeps.plugin import Sharing

    given: dict[str, Any] = {"security": security} if security is not None else {}
    with dask.config.set({"distributed.comm.retry.count": 0}):
        try:
            client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False, **given)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            text = f"no scheduler answers at {address[:200]}: {type(error).__name__}"
            hint = "dask scheduler --host 127.0.0.1 starts one; is the address the one it printed?"
            raise StoppedError.of("no-scheduler", text, hint=hint) from None
        try:
            if hear is not None and client.dashboard_link:
                hear(client.dashboard_link)
            _demand_workers(client)
            _demand_same(client)
            share = partial(client.register_plugin, Sharing(digest, answer, versions_here()), name=f"plan-{digest}")
            _shared(share)
            yield _Cluster(client, digest, share)
            with suppress(Exception):  # the answers are there
                client.unregister_worker_plugin(name=f"plan-{digest}")
        finally:
            with suppress(Exception):
                client.close(timeout=2)


def _shared(share: Callable[[], object]) -> None:
    """Every worker has what the questions share; asked again where one came or went meanwhile."""
    for again in range(SHARED_AGAIN, -1, -1):
        try:
            share()
            return
        except (OSError, RuntimeError, ImportError, AttributeError) as error:
            if not again or not isinstance(error, OSError):  # a connection that breaks is one
                raise _unable(error) from None


class _Cluster:
    """Questions as tasks of a client."""

    def __init__(self, client: Any, digest: str, share: Callable[[], object]) -> None:
        self._client, self._digest, self._share, self._times = client, digest, share, 0
        # others may ask the same scheduler other things of the same: what they ask must not have our names
        self._run = f"{digest[:12]}-{uuid.uuid4().hex}"

    def __call__(self, questions: Iterable[Asked]) -> Iterator[tuple[int, Answered]]:
        waiting, ready = iter(questions), queue.SimpleQueue[Any]()
        flying: dict[Any, tuple[Asked, int]] = {}
        taken: Counter[int] = Counter()
        suspects: list[Asked] = []
        idle_s, window, looked_s = 0.0, self._window(), time.monotonic()

        def begin(several: Sequence[Asked], times: int) -> None:
            """In one message to the scheduler, which costs it as much for one task as for some."""
            first, self._times = self._times, self._times + len(several)
            keys = [f"plan-{self._run}-{first + n}" for n in range(len(several))]  # never used: none is known
            asked_each = [asked[1] for asked in several]
            futures = self._client.map(partial(answered, self._digest), asked_each, key=keys, pure=False)
            for asked, future in zip(several, futures):
                flying[future] = (asked, times)
                future.add_done_callback(ready.put)

        while True:
            if not suspects and len(flying) <= window // 2 and (some := list(islice(waiting, window - len(flying)))):
                begin(some, 1)
            if suspects and not flying:  # whose worker died: alone, so that nobody else's question is blamed
                begin([suspects.pop()], 2)
            if not flying:
                return
            if time.monotonic() - looked_s > WINDOW_S:  # workers come and go
                window, looked_s = self._window(), time.monotonic()
            try:
                future = ready.get(timeout=LOOK_S)
            except queue.Empty:
                idle_s = self._look(idle_s + LOOK_S)
                continue
            idle_s, done = 0.0, [future]
            while not ready.empty():
                done.append(ready.get())
            together = self._together(done)
            for number, future in enumerate(done):
                asked, times = flying.pop(future)
                try:
                    answer, error = _came_of(future) if together is None else (together[number], None)
                except TAKEN:  # a worker died with the answer, or nobody is there any more
                    taken[asked[0]] += 1
                    if taken[asked[0]] > TAKEN_AGAIN or self._client.status != "running":
                        raise _gone() from None
                    begin([asked], times)
                    continue
                if error is not None and _killed(error) and times == 1:
                    suspects.append(asked)
                    continue
                found = answer if error is None else self._failed(error, times)
                if found is None:
                    begin([asked], times + 1)
                else:
                    yield asked[0], found

    def _together(self, done: Sequence[Any]) -> list[Answered] | None:
        """What several tasks answered, fetched at once; None where one of them has no answer: each is asked then."""
        if len(done) == 1 or any(future.status != "finished" for future in done):
            return None
        try:
            return list(self._client.gather(list(done)))
        except (Exception, *TAKEN):  # of which worker, and whether it matters, each tells for itself
            return None

    def _window(self) -> int:
        """Questions in flight: enough for every thread there is."""
        try:
            threads = self._client.nthreads().values()
        except (OSError, RuntimeError, TimeoutError):
            raise _gone() from None
        return IN_FLIGHT * max(sum(map(int, threads)), 1)

    def _look(self, idle_s: float) -> float:
        """Whether there is still somebody who answers; seconds without one."""
        if self._client.status != "running":
            raise _gone()
        try:
            workers = self._client.scheduler_info(n_workers=-1).get("workers", {})
        except TypeError:  # before 2025 it told of all of them, and was not asked how many
            workers = self._client.scheduler_info().get("workers", {})
        except (OSError, RuntimeError, TimeoutError):
            raise _gone() from None
        if any(one.get("status") != "paused" or one.get("metrics", {}).get("executing") for one in workers.values()):
            return 0.0
        if idle_s > WORKERS_S:
            raise _no_workers(paused=len(workers))
        return idle_s

    def _failed(self, error: Exception, times: int) -> Answered | None:
        """The row of a task that failed; None: it is to be asked once more."""
        if _killed(error):
            return Answered(row=lost("worker-died", KILLER, KILLER_HINT))
        if isinstance(error, LookupError) and times <= SHARED_AGAIN:
            self._share()  # a sweep of the same questions, which had sent the same, is over
            return None
        if isinstance(error, VersionsDifferError):
            raise StoppedError.of("versions-differ", str(error)[:300], hint=SAME)
        if isinstance(error, MemoryError):
            return Answered(row=lost("out-of-memory", "a worker had not enough memory", KILLER_HINT))
        raise _unable(error)


def _came_of(future: Any) -> tuple[Answered | None, Exception | None]:
    """What a task answered, or why it did not."""
    try:
        error: Exception | None = future.exception() if future.status == "error" else None
        return (future.result(), None) if error is None else (None, error)
    except TAKEN:
        raise
    except Exception as late:  # what had answered died with the answer, and then who was asked again
        return None, late


def _killed(error: Exception) -> bool:
    """Whether a worker died of a task, or of another that it had beside it."""
    return type(error).__name__ == "KilledWorker"


def _demand_workers(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_S)
    except TimeoutError:
        raise _no_workers() from None


def _demand_same(client: Any) -> None:
    """Refuse workers of another Python or planner: their answers might be others, and they could not read ours."""
    told, here = client.get_versions(packages=PACKAGES), versions_here()
    # Dask knows versions of what is installed under its own name: the planner itself is asked, by a function that
    # each has; the scheduler too, which reads what a task calls though it answers nothing
    planners = client.run(resolve_name, _VERSION, on_error="return")
    try:
        scheduler = client.run_on_scheduler(resolve_name, _VERSION)
    except Exception as error:
        scheduler = error
    others = [("the scheduler", told["scheduler"], scheduler)]
    others += [(f"the worker {name}", one, planners.get(name)) for name, one in told["workers"].items()]
    for where, other, version in others:
        found = versions_of(other or {}, version if isinstance(version, str) else None)
        for name in [name for name, version in here.items() if found[name] != version]:
            text = f"{where} has {name} {found[name] or 'not at all'}, here it is {here[name] or 'not at all'}"
            raise StoppedError.of("versions-differ", text, hint=SAME)


def _unable(error: Exception) -> StoppedError:
    text = f"a worker failed: {type(error).__name__}"
    made = StoppedError.of("worker-failed", text, hint="are the same versions installed there? its log says more")
    assert isinstance(made, StoppedError)
    return made


def _gone() -> StoppedError:
    error = StoppedError.of(
        "scheduler-gone",
        "the scheduler is gone",
        hint="start it and run the same again: what was answered is in the journal",
    )
    assert isinstance(error, StoppedError)
    return error


def _no_workers(paused: int = 0) -> StoppedError:
    text, hint = f"the scheduler had no worker for {WORKERS_S:g} s", "dask worker ADDRESS --nthreads 1 starts one"
    if paused:
        text = f"workers that pause since they have no memory left: {paused}, which is all there are"
        hint = "give each more memory (--memory-limit), or start fewer on a machine"
    error = StoppedError.of("no-workers", text, hint=f"{hint}; what was answered is in the journal")
    assert isinstance(error, StoppedError)
    return error


def security_of(ca_file: str, cert_file: str, key_file: str) -> Any:
    """What a client shows a scheduler at tls://, and what it believes.

    Parameters
    ----------
    ca_file
        Certificates that are believed, PEM.
    cert_file, key_file
        Certificate of the client and its key, PEM.

    Raises
    ------
    UsageError
        The extra is not installed.
    InputError
        A file cannot be read.
    """
    try:
        from distributed.security import Security
    except ImportError:
        raise UsageError.of("missing-extra", EXTRA, hint=HOW) from None
    for name in (ca_file, cert_file, key_file):
        read_bytes(name, limit_bytes=1_000_000)
    return Security(tls_ca_file=ca_file, tls_client_cert=cert_file, tls_client_key=key_file, require_encryption=True)
