"""One question of a sweep: a scenario with some settings, a catalog at some prices, and a seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from typing_extensions import TypedDict

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
