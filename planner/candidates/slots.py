"""Ways to do workloads, and when each may start: what the calendar program is built of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from planner.candidates.calendar import Pool
from planner.candidates.limits import ColumnFacts
from planner.candidates.program import FloatArray, IntArray, Program, Task
from planner.candidates.shared_nodes import SharedNodes
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.scenario.schema import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Every way to run every workload, before it has a start: the program without rows, and what stands behind it."""

    scenario: Scenario
    catalog: Catalog
    pools: tuple[Pool, ...]
    program: Program
    rows: IntArray  # (columns,) row of each column in its workload's table
    facts: Sequence[ColumnFacts]
    hold_s: FloatArray  # (columns,) of jobs: the wait in a queue and the run at the confidence asked for; of fleets 0
    wait_s: FloatArray  # (columns,) of it in the queue (flex)
    restart_s: FloatArray  # (columns,) of elastic jobs: going on after a pause; else 0
    turn_s: FloatArray  # (columns,) after which a job changes machines; 0: it does not
    shared: SharedNodes | None = None  # which columns share nodes; None: none do
    latest_s: Mapping[str, float] = field(default_factory=dict)  # jobs whose late starts are kept, up to here
    movable: bool = False  # limits will be moved: those stay that do not bind as they are


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """When each way may start, and how much of the calendar it holds."""

    first: IntArray  # (columns,) first period in which it may start
    last: IntArray  # (columns,) last one in which a run without pauses may; below `first`: never
    span: IntArray  # (columns,) periods that such a run holds
    elastic: NDArray[np.bool_]  # (columns,) whether its job may pause there
    stop: IntArray  # (columns,) if so, the end of the window in which it runs
    running: IntArray  # (columns,) and the periods in which it does

    @property
    def pausing(self) -> NDArray[np.bool_]:
        """(columns,) whether it may run with pauses and be done in time."""
        return self.elastic & (self.first + self.running <= self.stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """Ways with a start: columns of workloads in the calendar program. What may pause has one for that, too."""

    way: IntArray  # (columns,) index into the ways
    start: IntArray
    stop: IntArray
    span: IntArray  # (columns,) periods that it holds, or runs in
    elastic: NDArray[np.bool_]  # (columns,) whether it runs with pauses
    pool: IntArray
    tasks: tuple[Task, ...]
