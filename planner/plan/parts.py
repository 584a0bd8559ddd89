"""Parts of a plan document, whatever kind of workload they are of."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.plan.model.bought import BoughtParts
    from planner.plan.model.plan import PlanDocument
    from planner.plan.model.workloads import Allocation, Workload


FEW = 4  # plans that are named one by one
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
