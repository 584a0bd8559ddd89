"""What the estimates answered before, by everything that the answer depends on: asked again, it is not worked out anew.

An answer follows from the figures that it was asked with and from nothing else, neither from prices nor from deadlines,
so that workloads, cases, further questions and the verifier may share one `Recall`, and results do not depend on what
it holds. Whoever asks hands it down; it lives as long as the candidates that it came about with.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b
from struct import pack
from typing import Any, TypeVar

import numpy as np

Answer = TypeVar("Answer")
MOST_BYTES = 1 << 26  # of answers that are kept; the oldest go first
NUMBERS = (float, int, np.number)
ENTRY_BYTES = 512  # of an answer besides its arrays


class Recall:
    """Answers by what was asked; those kept longest are dropped for new ones."""

    __slots__ = ("_bytes", "_found")

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[Any, int]] = {}
        self._bytes = 0

    def __eq__(self, other: object) -> bool:
        """Whatever they hold, nothing that is asked of them comes out differently."""
        return isinstance(other, Recall)

    __hash__ = None  # type: ignore[assignment]

    def known(self, key: Hashable) -> Any:
        """An answer that was kept; None where there is none."""
        found = self._found.get(key)
        return None if found is None else found[0]

    def keep(self, key: Hashable, answer: Any, nbytes: int | None = None) -> None:
        """Keep an answer for whoever asks next; arrays of it are not to be written to.

        Parameters
        ----------
        nbytes
            What it takes, where it is one that grows: it takes the place of the one that was kept before.  [B]
        """
        size = ENTRY_BYTES + (_size(answer) if nbytes is None else nbytes)
        if size > MOST_BYTES or (nbytes is None and key in self._found):
            return
        self._bytes -= self._found.pop(key, (None, 0))[1]
        self._found[key] = answer, size
        self._bytes += size
        while self._bytes > MOST_BYTES:
            self._bytes -= self._found.pop(next(iter(self._found)))[1]

    def take_over(self, other: Recall) -> None:
        """Keep what another holds and this one does not."""
        for key, (answer, size) in other._found.items():
            if key not in self._found:
                self.keep(key, answer, size - ENTRY_BYTES)

    def of(self, key: Hashable, work: Callable[[], Answer]) -> Answer:
        """What `work` gives."""
        answer: Answer | None = self.known(key)
        if answer is None:
            answer = work()
            self.keep(key, answer)
        return answer


def figures_of(*things: Any, texts: bool = False) -> bytes:
    """A digest of every number in dataclasses, arrays and tuples, in their order, and of `texts` where asked for.

    A number and an array of one element are the same.

    Raises
    ------
    TypeError
        A thing is none of these: left out, two questions that differ in it would have one answer.
    """
    parts: list[bytes] = []
    for thing in things:
        _collect(thing, parts)
    if not texts:
        parts = [part for part in parts if not part.startswith(b'"')]
    return blake2b(b"".join(parts), digest_size=16).digest()


def _collect(thing: Any, parts: list[bytes]) -> None:
    kind: Any = type(thing)
    if kind is float:  # most are; pairs of a name and a number come next
        parts.append(b"1:" + pack("=d", thing))
    elif kind is str:
        parts.append(b'"' + thing.encode())
    elif kind is tuple or kind is list:
        parts.append(b"(%d" % len(thing))
        for each in thing:
            _collect(each, parts)
    elif isinstance(thing, np.ndarray):
        parts.append(b"%d:" % thing.size + thing.astype(np.float64, copy=False).tobytes())
    elif isinstance(thing, NUMBERS):
        parts.append(b"1:" + pack("=d", thing))
    elif (names := _names(kind)) is not None:
        for name in names:
            _collect(getattr(thing, name), parts)
    elif isinstance(thing, bytes):
        parts.append(thing)
    elif thing is None:
        parts.append(b"-")
    else:
        raise TypeError(f"no figures are known of a {kind.__name__}")


@cache
def _names(kind: type) -> tuple[str, ...] | None:
    """Names of the fields of a dataclass; None for what is none."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


def _size(answer: Any) -> int:
    if isinstance(answer, np.ndarray):
        return answer.nbytes
    if (names := _names(type(answer))) is not None:  # type: ignore[arg-type]
        return sum(_size(getattr(answer, name)) for name in names)
    if isinstance(answer, dict):
        return sum(map(_size, answer.values()))
    return sum(map(_size, answer)) if isinstance(answer, tuple | list) else 8
