"""How long a listing may go on: asked of whoever has a clock, which this room has not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from planner.carriers import dataclass

COMMON = 0.5  # of the time
LATEST = 1.15  # of it, for the first way of a workload: whoever gives the time keeps so much of their own back
Spent = Callable[[], float]  # share of the time that is gone; 1 and more when it is up


def endless() -> float:
    """No time is ever gone."""
    return 0.0


@dataclass(slots=True, kw_only=True)
class Patience:
    """Time for listing: whoever comes first has a half, the rest goes in equal parts.

    What is worked out for the first workloads of a model helps those after it, so that to cut the first at an equal
    part costs more than it leaves. What one leaves goes to those after it, then to those that were cut. Without a way
    of each workload there is no plan at all, so that the first one is looked for beyond that.
    """

    workloads: Sequence[str]
    spent: Spent = endless
    cut: list[str] = field(default_factory=list)  # workloads that were not looked at to their end

    def out(self, workload: str, found: Callable[[], bool]) -> bool:
        """Whether no more ways of a workload are to be looked at; whoever asks then leaves some out.

        Parameters
        ----------
        workload
            By its name.
        found
            Whether there is a way already; asked once the time of the workload is up.
        """
        up = self.spent() >= LATEST or (self.over(workload) and found())
        if up and workload not in self.cut:
            self.cut.append(workload)
        return up

    def over(self, workload: str) -> bool:
        """Whether the time of a workload is up; whoever asks then leaves nothing out, but looks less closely."""
        part = (self.workloads.index(workload) + 1) / len(self.workloads)
        return self.spent() >= COMMON + (1 - COMMON) * part

    def again(self) -> Patience | None:
        """What is left, for those that were cut: if each has more of it than it had, since it begins anew."""
        gone = self.spent()
        left = 1 - gone
        if not self.cut or left / len(self.cut) <= 1 / len(self.workloads):
            return None
        return Patience(workloads=self.cut, spent=lambda: (self.spent() - gone) / left)
