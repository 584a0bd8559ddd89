"""What joint limits charge a mix within a job: money, carbon and the shapes of each source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.candidates.limits import ColumnFacts, Window, concurrent_sets, offer_caps, peak_limits
from planner.candidates.mixed_walk import Prices
from planner.candidates.program import Row, Task
from planner.candidates.search import Candidates
from planner.scenario.schema import Scenario, TrainingJob


def prices_of_mixes(
    candidates: Candidates, task: Task, charges: Sequence[tuple[Row, float]], criterion: str, scale: float
) -> Prices:
    """What money, carbon and shapes of each source cost a mix of a job.

    Parameters
    ----------
    charges
        What one unit of joint limits is charged, >= 0.
    criterion, scale
        ``cost`` or ``carbon``, and what one unit of it weighs.
    """
    space, scenario = candidates.spaces[task.name], candidates.scenario
    held = [*peak_limits(scenario), *offer_caps(space.sites)]
    coefficients = {(name, label): take for name, label, _, take in held}
    together = _together(scenario)
    index = [workload.name for workload in scenario.workloads].index(task.name)
    cost, carbon = (scale, 0.0) if criterion == "cost" else (0.0, scale)
    node = np.zeros(len(space.job.sources))
    for row, charge in charges:
        name, _, number = row.name.partition("@")
        if name == "limits.budget":
            cost += charge
        elif name == "limits.carbon":
            carbon += charge
        elif (name, row.label) in coefficients and index in together[int(number or 0)]:
            take = coefficients[name, row.label]
            for k, source in enumerate(space.job.sources):
                one = ColumnFacts(task=0, site=space.sites[source.site], nodes=1, cost_microusd=0, carbon_mg=0)
                node[k] += charge * take(one)
    return Prices(cost=cost, carbon=carbon, node=node)


def _together(scenario: Scenario) -> list[frozenset[int]]:
    """Workloads that run at the same time, in the order of the numbers that limits carry."""
    windows = [
        Window(start_s=workload.start_s, end_s=workload.start_s + workload.deadline_s)
        if isinstance(workload, TrainingJob)
        else Window(start_s=0.0, end_s=scenario.horizon_s)
        for workload in scenario.workloads
    ]
    return concurrent_sets(windows)
