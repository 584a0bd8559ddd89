"""Answers that need no solver, for tests of who asks and of what is kept; they travel to other processes."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from planner.sweeps.question import Answered, Question, Row, without_plan


def row(cost_usd: float = 1.0, decision: str = "a: one", status: str = "optimal") -> Row:
    """A row of a plan."""
    digest = hashlib.sha256(f"{cost_usd} {decision}".encode()).hexdigest()
    return {
        **without_plan(status, None), "cost_microusd": round(cost_usd * 1e6), "cost_usd": cost_usd,
        "bound_usd": cost_usd, "devices": 1, "decision": decision, "plan_sha256": digest, "warnings": [],
    }  # fmt: skip


def question(number: int) -> Question:
    return Question(seed=number)


def questions(count: int) -> list[Question]:
    return [question(number) for number in range(count)]


def answer(asked: Question) -> Answered:
    """The seed is the cost."""
    seed = asked.seed or 0
    return Answered(row=row(float(seed)), plan=f'{{"plan": {seed}}}')


@dataclass(frozen=True)
class Counting:
    """Writes down what it was asked, and by which process; those in `kills` end it, in `fails` raise."""

    folder: Path
    kills: tuple[int, ...] = ()
    once: bool = False  # only the first time
    slow_s: float = 0.0
    processes: int = 1  # none answers before so many were asked: one alone may be quick enough for all questions

    def __call__(self, asked: Question) -> Answered:
        seed = asked.seed or 0
        tried = len(list(self.folder.glob(f"{seed}.*")))
        (self.folder / f"{seed}.{tried}.{os.getpid()}").touch()
        if seed in self.kills and not (self.once and tried):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.slow_s)
        late_s = time.monotonic() + 60.0
        while len(self.askers()) < self.processes and time.monotonic() < late_s:
            time.sleep(0.01)
        return answer(asked)

    def askers(self) -> set[str]:
        """The processes that were asked."""
        return {path.name.split(".")[2] for path in self.folder.iterdir()}

    def tries(self) -> dict[int, int]:
        """How often each was asked."""
        found: dict[int, int] = {}
        for path in self.folder.iterdir():
            seed = int(path.name.split(".")[0])
            found[seed] = found.get(seed, 0) + 1
        return found


def key(asked: Question) -> str:
    return asked.key("shared")
