"""What a machine may run out of under a command: memory, open files, processes. Told in words, not as a bug."""

from __future__ import annotations

import errno

from planner.errors import PlanError, StoppedError

LEAST_BYTES = 512_000_000  # of address space: what the libraries map, and a scenario of ordinary size
_UNMAPPED = ("failed to map", "cannot allocate memory")  # what the loader of libraries says, in small letters


def demand_memory() -> None:
    """Refuse to begin where the libraries would not even load: one of them ends the process without a word of ours.

    Raises
    ------
    StoppedError
        The limit on address space is below what a command needs.
    """
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_BYTES:
        has, needs = limit / 1e6, LEAST_BYTES / 1e6
        raise _no_memory(f"this process may use {has:,.0f} MB of address space, and plan needs about {needs:.0f} MB")


def shortage_of(error: BaseException) -> PlanError | None:
    """The user's error behind an exception that says that something ran out; None for any other."""
    seen: BaseException | None = error
    while seen is not None:
        found = _of(seen)
        if found is not None:
            return found
        seen = seen.__cause__ or seen.__context__
    return None


def _of(error: BaseException) -> PlanError | None:
    number = error.errno if isinstance(error, OSError) else None
    unmapped = isinstance(error, (ImportError, OSError)) and any(words in str(error).lower() for words in _UNMAPPED)
    if isinstance(error, MemoryError) or number == errno.ENOMEM or unmapped:
        return _no_memory("the memory that this process may use ran out")
    if number in (errno.EMFILE, errno.ENFILE):
        return StoppedError.of("no-files-left", "no more files can be opened", hint="raise the limit (ulimit -n)")
    if number == errno.EAGAIN or (isinstance(error, RuntimeError) and "can't start new thread" in str(error)):
        return StoppedError.of(
            "no-processes-left", "no more processes or threads can be started", hint="raise the limit (ulimit -u)"
        )
    return None


def _no_memory(message: str) -> PlanError:
    return StoppedError.of(
        "out-of-memory", message, hint="raise the limit (ulimit -v), or ask for fewer offers: hardware.allow, regions"
    )
