"""What the plan document says when nothing meets every limit."""

from __future__ import annotations

from typing import Any

from planner.candidates.search import Candidates
from planner.optimize.limited import Asker
from planner.plan.alternatives import _same, median_cost
from planner.plan.place import usd
from planner.plan.relaxed import Search
from planner.plan.repairs import diagnose, infeasible_document

Document = dict[str, Any]
ASKED = ("solver", "time_limit_s", "threads", "seed")


def infeasibility(candidates: Candidates, search: Search, **options: Any) -> Document:
    """Nearest misses of each workload that has no way to run, the conflict set, and the ways out.

    Parameters
    ----------
    search
        Enumerates a scenario with the same catalog: ``search(scenario, patience_s=None)``.
    options
        Of `optimize`; a time limit is that of each step.
    """
    asker = Asker(options={key: value for key, value in options.items() if key in ASKED})
    median = None if _same(candidates) else median_cost(candidates, None, **options)
    tasks = [task for task in candidates.program.tasks if task.kind != "optional"]
    return {
        "workloads": {task.name: misses(candidates, task.name) for task in tasks if task.first == task.stop},
        **infeasible_document(diagnose(candidates, search, asker), candidates),
        "median_cost_usd": None if median is None else usd(median),
    }


def misses(candidates: Candidates, name: str) -> list[str]:
    """Why each kind of way was dropped, with the one that came nearest."""
    drops = [drop for drop in candidates.ledgers[name] if drop.what != "offers" or drop.nearest]
    lines = [f"{drop.reason}: {drop.nearest}" for drop in drops if drop.nearest]
    refused = [f"{drop.count} offers: {drop.reason}" for drop in candidates.ledgers[name] if drop.what == "offers"]
    return [*lines, *refused]
