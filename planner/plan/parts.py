"""Parts of a plan document, whatever kind of workload they are of, and what the scenario inside it says.

The scenario is as its file wrote it, so that nothing is taken for granted. A point of a frontier is a plan's own
document, cut down to what tells points apart.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from planner.candidates.search import Candidates
    from planner.optimize.solve import Solution
    from planner.plan.model.bought import BoughtParts
    from planner.plan.model.frontier_document import FoundPoint, FrontierPoint, Unchanging
    from planner.plan.model.others import RowInShort, WorkloadInShort
    from planner.plan.model.plan import Allocation, PlanDocument, Workload


Asked = Mapping[str, object]


def currency_of(plan: PlanDocument) -> str:
    """The currency of every figure of a plan: what is written in others was converted when it was read."""
    return "USD"


def workloads_asked(plan: PlanDocument, kind: str) -> list[Asked]:
    """Training jobs or serving fleets as they are written; one alone may stand for a list of one."""
    found = plan["scenario"].get(kind)
    entries = found if isinstance(found, list) else [found]
    return [entry for entry in entries if isinstance(entry, Mapping)]


def report_asked(plan: PlanDocument) -> Asked:
    """How budgets are to be reported."""
    found = plan["scenario"].get("report")
    return found if isinstance(found, Mapping) else {}


FEW = 4  # plans that are named one by one
INSIDE_ONE = "a job stays inside one machine of"  # of how many shapes: of what was left out in part
NOT_NEEDED = "the others are not needed"  # of owned machines that are idle beside those in use
_INDEXED = re.compile(r"(training|serving)\[(\d+)\](.*)")


def limit_name(document: PlanDocument, name: str) -> str:
    """A limit by the name of its workload: training[0].deadline -> training.pretrain-8b.deadline."""
    match = _INDEXED.fullmatch(name)
    workloads = document["scenario"].get(match[1]) if match else None
    if match is None or not isinstance(workloads, list) or int(match[2]) >= len(workloads):
        return name
    return f"{match[1]}.{workloads[int(match[2])].get('name', match[2])}{match[3]}"


def rows_of(workload: Workload) -> Sequence[Allocation]:
    """The allocations of a workload of either kind, one type for all of them."""
    return workload["allocations"]


def most_devices(rows: Sequence[Allocation]) -> int:
    """Devices of some rows: of a job that changes machines the most that it holds at one time.  [count]"""
    held: dict[str, int] = {}
    total = 0
    for row in rows:
        if "switch" in row:
            held[row["switch"]["name"]] = max(held.get(row["switch"]["name"], 0), row["devices"])
        else:
            total += row["devices"]
    return total + sum(held.values())


def most_at_once(rows: Sequence[Allocation]) -> int:
    """Devices of the rows that run when most of them do.  [count]"""
    starts = {row["start_hours"] for row in rows}
    running = ([row for row in rows if row["start_hours"] <= hour < row["end_hours"]] for hour in starts)
    return max((sum(row["devices"] for row in some) for some in running), default=0)


def said_of(plans: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """What is said of several plans, each sentence once, what most of them share first; else with the plans it is of.

    Parameters
    ----------
    plans
        What each plan is called, and the sentences about it.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for name, sentences in plans:
        for sentence in dict.fromkeys(sentences):
            found[sentence].append(name)
    shared = sorted(found.items(), key=lambda item: -len(item[1]))

    def of(names: list[str]) -> str:
        if len(names) == len(plans):
            return ""
        return f" ({', '.join(names) if len(names) < FEW else f'{len(names)} of {len(plans)} plans'})"

    return [text + of(names) for text, names in shared]


def spent_on(workloads: Sequence[Workload], bought: BoughtParts) -> dict[str, int]:
    """What the total is for, split as the budget is: training, serving, and what is bought for nobody.  [micro-USD]

    Who runs on a pool bears its share of what is bought ahead; jobs bear the copies of their data.
    """
    kinds = {workload["name"]: workload["kind"] for workload in workloads}
    schedule = bought.get("schedule")
    shares = schedule["shares"] if schedule else []
    copied = sum(copy["cost_microusd"] for copy in bought.get("copies") or ())  # old plans have none
    spent = {"training": copied, "serving": 0}
    for workload in workloads:
        spent[workload["kind"]] += workload["cost_microusd"]
    for share in shares:
        spent[kinds[share["workload"]]] += share["cost_microusd"]
    ahead = sum(contract["cost_microusd"] for contract in bought.get("contracts") or ())
    return {**spent, "unused": ahead - sum(share["cost_microusd"] for share in shares)}


def expected_microusd(document: PlanDocument, *, weighed: bool = False) -> int | None:
    """What plans are held against each other by: the total, of several futures its mean over all of them.  [micro-USD]

    The total of a plan for several futures is that of the scenario as written, which its contracts are not chosen for:
    reserving for what may happen looked dear beside renting, whose other cases nobody counted.

    Parameters
    ----------
    document
        A plan; None comes of one that has no cost, or leaves some case without a plan.
    weighed
        With the share of the worst cases that the scenario asks for (`risk`), as contracts are chosen.

    Examples
    --------
    >>> cases = {"expected_usd": 100.0, "at_risk_usd": 200.0, "risk": {"level": 0.9, "weight": 0.25}}
    >>> plan = {"summary": {"cost_microusd": 80_000_000}, "uncertainty": cases}
    >>> expected_microusd(plan), expected_microusd(plan, weighed=True)
    (100000000, 125000000)
    """
    section = document.get("uncertainty")
    if not section:
        return document["summary"]["cost_microusd"]
    mean, worst, risk = section["expected_usd"], section["at_risk_usd"], section["risk"]
    if mean is None or worst is None:
        return None
    weight = risk["weight"] if risk and weighed else 0.0
    return round(1e6 * ((1 - weight) * mean + weight * worst))


def borne_by_jobs(workloads: Sequence[Workload]) -> int:
    """What jobs bear of nodes that stand for fleets too: it is paid over the whole horizon, whoever uses them.

    [micro-USD]
    """
    rows = (row for workload in workloads if workload["kind"] == "training" for row in workload["allocations"])
    return sum(row["cost_microusd"] for row in rows if "shared" in row)


def point_row(candidates: Candidates, solution: Solution, document: PlanDocument, least: float) -> FoundPoint:
    """What a point is: its totals and, of every workload, what is rented.

    Parameters
    ----------
    least
        The tightest limit of the sweep at which this plan is the best: s, micro-USD or mg.
    """
    program, summary = candidates.program, document["summary"]
    used = solution.units > 0
    last_s = float(program.finish_s[used].max(initial=0.0))
    scenario = candidates.scenario  # where carbon plays no part, offers may be in places whose grid is unknown
    counted = "carbon" in scenario.objective or scenario.limits.carbon_g is not None
    carbon_mg = sum(int(u) * int(c) for u, c in zip(solution.units[used], program.carbon_mg[used]))
    cost, usd, devices, hours = (summary["cost_microusd"], summary["cost_usd"], summary["devices"],
                                 summary["device_hours"])  # fmt: skip
    assert cost is not None and usd is not None and devices is not None and hours is not None  # noqa: PT018
    return {
        "from": least,
        "cost_microusd": cost,
        "cost_usd": usd,
        "gap": summary["gap"],
        "devices": devices,
        "device_hours": hours,
        "finish_hours": last_s / 3600.0 if last_s else None,
        "carbon_kg": carbon_mg / 1e6 if counted else None,
        "workloads": [workload_row(workload) for workload in document["workloads"]],
        "contracts": [row.copy() for row in document["contracts"]],
    }


def workload_row(workload: Workload) -> WorkloadInShort:
    """One workload of a point."""
    rows = [_cell(row) for row in rows_of(workload)]
    finish = [row["finish_hours"] for row in rows if "finish_hours" in row]
    return {
        "name": workload["name"],
        "kind": workload["kind"],
        "cost_microusd": workload["cost_microusd"],
        "cost_usd": workload["cost_usd"],
        "devices": sum(row["devices"] for row in rows),
        "finish_hours": max(finish, default=None),
        "allocations": rows,
    }


def _cell(row: Allocation) -> RowInShort:
    from planner.plan.model.others import RowInShort as Short

    known: Mapping[str, object] = row
    kept = {name: known[name] for name in Short.__annotations__ if name in known}
    return cast("RowInShort", kept | {"layout": dict(row["layout"])})


def unchanging(points: Sequence[FrontierPoint]) -> list[Unchanging]:
    """Workloads that every point runs in the same way."""
    if not points:
        return []
    return [
        {"name": workload["name"], "kind": workload["kind"], "cost_microusd": workload["cost_microusd"]}
        for number, workload in enumerate(points[0]["workloads"])
        if all(point["workloads"][number]["allocations"] == workload["allocations"] for point in points)
    ]
