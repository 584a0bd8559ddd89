"""One question of a sweep: a scenario with some settings, a catalog at some prices, and a seed.

A worker of a cluster keeps what questions share, and says whether it runs what the client runs.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from typing import Any

from typing_extensions import TypedDict

import planner
from planner.carriers import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, as it would be on the command line of `plan solve`.

    Parameters
    ----------
    settings
        Of the scenario, as after ``--set``: "serving.assistant.qpm=600".
    prices
        Put on the catalog in their order, as after ``--price``: ``"h100-*=-10%"``.
    case
        A named case of the scenario's file; None: the scenario as it is.
    catalog
        Another catalog, a folder or a frozen file as after ``--hardware``; "": that of the session.
    until
        ISO date: only prices of that day or earlier; "": all.
    seed
        Of the solver; None: that of the session.
    scenario
        File or name of another scenario, with the settings of the session's; "": that of the session.
    held
        Another `catalog` and `until`: not the best plan is asked for, but what the best of those costs at these prices;
        None: the best.
    """

    settings: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    case: str | None = None
    catalog: str = ""
    until: str = ""
    seed: int | None = None
    scenario: str = ""
    held: tuple[str, str] | None = None

    def told(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "settings": list(self.settings), "prices": list(self.prices), "case": self.case,
            "catalog": self.catalog, "until": self.until, "seed": self.seed,
            **({"scenario": self.scenario} if self.scenario else {}),
            **({"held": list(self.held)} if self.held else {}),
        }  # fmt: skip

    def key(self, shared: str) -> str:
        """SHA-256 of the question and of what all questions of a sweep share, by which its answer is found again."""
        return hashlib.sha256(canonical([shared, self.told()]).encode()).hexdigest()


class Told(TypedDict):
    """Why there is no plan."""

    reference: str
    message: str
    hint: str


class Row(TypedDict):
    """What came of one question; its plan, where there is one, is known by the hash that it bears itself."""

    status: str  # as of a plan; refused: the question itself is wrong; lost: it could not be answered here
    cost_microusd: int | None
    cost_usd: float | None
    bound_usd: float | None  # no plan is cheaper
    devices: int | None
    finish_hours: float | None  # of the job that ends last
    decision: str  # workloads, their devices and sellers: "assistant: l40s (aws spot); tune: h100-sxm-80gb (owned)"
    problem: Told | None
    plan_sha256: str | None
    warnings: list[str]  # of the plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A row, and the text of the plan file where that was asked for."""

    row: Row
    plan: str | None = None


Answer = Callable[[Question], Answered]
LOST = "lost"  # of what its surroundings kept from being answered: not of the question, so it is never kept


def lost(reference: str, message: str, hint: str) -> Row:
    """The row of a question that its surroundings kept from being answered.

    Parameters
    ----------
    reference
        Of the problem, in kebab-case.
    message
        What happened.
    hint
        What to do about it.
    """
    return without_plan(LOST, Told(reference=reference, message=message, hint=hint))


def without_plan(status: str, problem: Told | None) -> Row:
    """The row of a question to which there is no plan."""
    return {
        "status": status, "cost_microusd": None, "cost_usd": None, "bound_usd": None, "devices": None,
        "finish_hours": None, "decision": "", "problem": problem, "plan_sha256": None,
        "warnings": [],
    }  # fmt: skip


def canonical(content: object) -> str:
    """JSON that is the same for the same content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


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
