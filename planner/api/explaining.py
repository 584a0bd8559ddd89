"""What stands behind a plan: terms of time and memory, what binds, errors, prices, sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.answers import Explanation
from planner.api.checking import to_show
from planner.api.taking import PlanLike
from planner.errors import UsageError

if TYPE_CHECKING:
    pass


def explain(plan: PlanLike, workload: str | None = None, *, rejected: bool = False) -> Explanation:
    """What stands behind a plan, term by term, to print or to show in a notebook.

    Parameters
    ----------
    plan
        A plan, its document or the path of its file.
    workload
        Only this one.
    rejected
        Why the other ways were dropped, in place of the terms.

    Raises
    ------
    UsageError
        The plan has no such workload.
    """
    document = to_show(plan)
    names = [entry["name"] for entry in document["workloads"]]
    if workload is not None and workload not in names:
        message = f"the plan has no workload '{workload}'"
        raise UsageError.of("unknown-workload", message, hint=f"it has {', '.join(names)}")
    return Explanation(document=document, workload=workload, rejected=rejected)
