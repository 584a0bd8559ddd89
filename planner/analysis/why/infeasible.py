"""What the plan document says when nothing meets every limit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from planner.analysis.why.alternatives import median_cost, same_at_median
from planner.analysis.why.relaxed import Search
from planner.analysis.why.repairs import diagnose, infeasible_document
from planner.analysis.why.widen import FITTED
from planner.candidates.ledger import STAGES, Drop
from planner.candidates.search import Candidates
from planner.deadline import left_s
from planner.optimize.limited import Asker
from planner.plan.rows.row_cells import usd
from planner.units import counted

if TYPE_CHECKING:
    from planner.plan.model.others import Conflicts, Infeasible

ASKED = ("solver", "threads", "seed")
# of a scenario, in the order in which offers meet them: what the last one leaves out came furthest
FILTERS = (
    *("not-allowed", "region", "provider", "price-model", "recalled-price", "suspect-price", "kind", "marketplace"),
    "place",
)
LONGEST_S = 120.0  # for the ways out of programs with a calendar or with mixes, where each step may take long


def infeasibility(candidates: Candidates, search: Search, *, ways_out: bool = True, **options: Any) -> Infeasible:
    """Nearest misses of each workload that has no way to run, the conflict set, and the ways out.

    Parameters
    ----------
    search
        Enumerates a scenario with the same catalog: ``search(scenario, patience_s=None)``.
    ways_out
        Whether to look for what contradicts itself, and what would mend it, which takes longer than to see that
        there is no plan; without it the conflict set is empty, and said not to be minimal.
    options
        Of `optimize`; a time limit is that of all steps together. With a calendar, or mixes within a job, they stop
        after two minutes if no limit is given. What was not proven by then is marked.
    """
    tasks = [task for task in candidates.program.tasks if task.kind != "optional"]
    missed = {task.name: misses(candidates, task.name) for task in tasks if task.first == task.stop}
    if not ways_out:
        nothing: Conflicts = {"conflict": [], "minimal": False, "ways_out": [], "combined": None}
        return {"workloads": missed, **nothing, "median_cost_microusd": None, "median_cost_usd": None}
    limit_s = left_s(options.get("time_limit_s"))
    if limit_s is None and (candidates.calendar is not None or candidates.scenario.mixes):
        limit_s = LONGEST_S
    asker = Asker(
        options={key: value for key, value in options.items() if key in ASKED},
        stop_at=None if limit_s is None else time.monotonic() + limit_s,
    )
    median = None if same_at_median(candidates) else median_cost(candidates, None, **options)
    return {
        "workloads": missed,
        **infeasible_document(diagnose(candidates, search, asker), candidates),
        "median_cost_microusd": median,
        "median_cost_usd": None if median is None else usd(median),
    }


def _how_far(drop: Drop) -> tuple[bool, bool, int]:
    """The order of reasons: what fitted is first, counts alone are last (at best, unsplit), offers after layouts."""
    fitted = drop.reason in FITTED or drop.reason == "failures"
    return not fitted, drop.what == "counts", -STAGES.index(drop.what)


def misses(candidates: Candidates, name: str) -> list[str]:
    """Why each kind of way was dropped, with the one that came nearest; what came furthest before it was is first."""
    drops = [drop for drop in candidates.ledgers[name] if drop.what != "offers" or drop.nearest]
    drops.sort(key=_how_far)
    lines = [f"{drop.reason}: {drop.nearest}" for drop in drops if drop.nearest]
    offers = [drop for drop in candidates.ledgers[name] if drop.what == "offers"]
    offers.sort(key=lambda drop: -FILTERS.index(drop.reason) if drop.reason in FILTERS else -len(FILTERS))
    return [*lines, *(f"{counted(drop.count, 'offer')}: {drop.reason}" for drop in offers)]
