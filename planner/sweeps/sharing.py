"""What a worker of a cluster keeps of what questions share, and whether it runs what the client runs."""

from __future__ import annotations

import threading
from typing import Any

import planner
from planner.sweeps.question import Answer, Answered, Question

PACKAGES = ["numpy", "scipy", "pulp", "highspy", "distributed"]
Versions = dict[str, str | None]
_answers: dict[str, Answer] = {}  # of this process, once it is a worker, by hash
_turn = threading.Lock()  # a worker with several threads answers one question at a time


class VersionsDifferError(Exception):
    """A worker that came later is of other versions than the client."""


def answered(digest: str, question: Question) -> Answered:
    """What a worker answers; raises `LookupError` when it does not know what the question shares with others."""
    answer = _answers[digest]
    with _turn:
        return answer(question)


def know(digest: str, answer: Answer, versions: Versions) -> None:
    """A worker is told what questions share, and what the client runs; it answers only where it runs the same.

    Parameters
    ----------
    digest
        Hash of what questions share, by which `answered` finds it.
    answer
        What answers, with all that is shared.
    versions
        Of the client, by name; those that the worker has besides do not count.

    Raises
    ------
    VersionsDifferError
        By every question that is asked later, where the worker runs other versions.
    """
    here = versions_here()
    other = [name for name, version in versions.items() if here.get(name) != version]
    if not other:
        _answers[digest] = answer
        return
    name = other[0]
    text = f"a worker has {name} {here.get(name) or 'not at all'}, the client {versions[name] or 'not at all'}"

    def refuse(question: Question) -> Answered:
        raise VersionsDifferError(text)

    _answers[digest] = refuse


def versions_here() -> Versions:
    """Of this process, as Dask tells them of others."""
    from distributed.versions import get_versions

    return versions_of(get_versions(packages=PACKAGES), planner.__version__)


def forget(digest: str) -> None:
    """It will not be asked of it any more."""
    _answers.pop(digest, None)


def versions_of(told: dict[str, Any], planner_version: str | None) -> Versions:
    """Versions that matter: of Python without its last number, of packages whole."""
    python = ".".join(str(told.get("host", {}).get("python", "")).split(".")[:2])
    packages = told.get("packages", {})
    return {"python": python, "planner": planner_version, **{name: packages.get(name) for name in PACKAGES}}
