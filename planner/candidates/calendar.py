"""When columns hold their machines, and what is bought ahead: the calendar that goes with a program.

Periods are numbered from the beginning of the plan; period t covers [t D, (t + 1) D), the last one ends with the
horizon. A job's column starts at the beginning of a period and holds its nodes in every period that it touches, its
time margin included. *Metered* columns (on demand, spot, flex, owned) are paid by the hour that they run. *Reserved*
columns run on the nodes of a pool and cost nothing themselves: what they use is covered, period by period, by
contracts and by nodes taken on demand for whole periods, which are optional columns of the program.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import IntArray
from planner.carriers import dataclass
from planner.catalog.model import Offer

RESERVED: Final = "reserved"  # price model of the sites that stand for a pool
CONTRACT, ON_DEMAND, COPY, RUN = "contract", "on_demand", "copy", "run"  # kinds of purchases
NO_POOL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes of one shape in one place that some contract can reserve."""

    provider: str
    region: str
    zone: str  # "" for the whole region
    shape: str  # shape id
    contracts: tuple[Offer, ...]  # what reserves nodes: commitments, blocks, calendar starts; sorted by id
    on_demand: Offer | None  # what tops them up for whole periods; None: not sold on demand there, or not allowed

    @property
    def name(self) -> str:
        """As people read it: "aws/us-east-1/p5.48xlarge"."""
        place = f"{self.region}/{self.zone}" if self.zone else self.region
        return f"{self.provider}/{place}/{self.shape.rsplit('/', 1)[-1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """What one unit of an optional column is.

    contract: one node of `offer` from the column's `start` to its `stop`; on_demand: one node of `offer` for one whole
    period; copy: the data set `workload` brought to (`provider`, `region`); run: one running period of row
    `row` of the elastic job `workload`.
    """

    kind: str  # contract | on_demand | copy | run
    offer: Offer | None = None  # contract, on_demand
    workload: str = ""  # run: the job; copy: the data set's name
    row: int = -1  # run: row in the job's table of the plan that runs
    provider: str = ""  # copy: where to
    region: str = ""
    hours: float = 0.0  # contract: whole term; on_demand: of the period  [h]
    fee_microusd: int = 0  # of one node for its whole term, whatever part of it is counted
    cost_microusd: int = 0  # what counts: the whole fee, or the part within the horizon
    prorated: bool = False  # whether a part of the fee lies beyond the horizon and is not counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """The calendar of a program; arrays are parallel to its columns.

    `start` and `stop` are the first period that a column holds and the first after it: of a job at its start period,
    of a fleet [0, periods), of a purchase the periods that it supplies, of a copy [0, periods). Columns of elastic
    jobs (`pausable`) hold nothing themselves: [start, stop) is the window in which their running periods, purchases
    of kind "run", may lie.
    """

    period_s: float
    periods: int
    horizon_s: float  # where the last period ends
    start: IntArray  # (columns,)
    stop: IntArray  # (columns,) exclusive
    pool: IntArray  # (columns,) index into `pools` of reserved columns and of purchases; -1 = metered or none
    pausable: NDArray[np.bool_]  # (columns,)
    pools: tuple[Pool, ...]
    purchases: tuple[Purchase | None, ...]  # (columns,) what an optional column is; None for workloads

    def edges_s(self) -> NDArray[np.float64]:
        """Beginning of every period, and the end of the last one.  (periods + 1,) [s]"""
        edges: NDArray[np.float64] = np.minimum(np.arange(self.periods + 1) * self.period_s, self.horizon_s)
        return edges

    def period_hours(self, period: int) -> float:
        """Length of a period; the last one may be shorter.  [h]"""
        edges = self.edges_s()
        return float(edges[period + 1] - edges[period]) / 3600.0

    def select(self, kept: IntArray) -> Calendar:
        """The calendar of a program restricted to some columns."""
        return replace(
            self,
            start=self.start[kept],
            stop=self.stop[kept],
            pool=self.pool[kept],
            pausable=self.pausable[kept],
            purchases=tuple(self.purchases[column] for column in kept.tolist()),
        )
