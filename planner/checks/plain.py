"""What a plan says of the cheapest one, where it is a plainer one: little more money, the same offers, right sums.

That nothing is plainer, and that the rates of the cheapest replicas are what they are, takes another search:
`plan verify --solve`. That no plan costs less is what the certificate shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from planner.checks.allocation import AllocationCheck
from planner.checks.beside import in_short_findings
from planner.checks.findings import Finding, cell_findings
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.model.others import Plain, WorkloadInShort
    from planner.plan.model.plan import PlanDocument, Workload

WRONG = "wrong-plain"


def plain_findings(
    document: PlanDocument, scenario: Scenario, checks: Mapping[str, AllocationCheck]
) -> Iterator[Finding]:
    """Everything wrong with a plan beside the cheapest one that it tells.

    Parameters
    ----------
    checks
        Of each workload whose rows are predicted.
    """
    plain: Plain | None = document.get("plain")
    certificate = document["certificate"]
    if plain is None:
        cost = document["summary"]["cost_microusd"]
        if certificate is not None and certificate["criterion"] == "cost" and certificate["value"] != cost:
            yield Finding(WRONG, f"its certificate is of a plan of {certificate['value']}, this one costs {cost}")
        return
    if scenario.prefer != "plain":
        yield Finding(WRONG, "plainer layouts are not asked for")
    told = {one["name"]: one for one in plain["workloads"]}
    mine = {one["name"]: one for one in document["workloads"]}
    if not set(told) <= set(mine):
        yield Finding(WRONG, f"the cheapest plan runs {sorted(set(told) - set(mine))}, which nobody asks for")
        return
    if len(told) < len(plain["workloads"]):
        yield Finding(WRONG, "the cheapest plan tells of a workload more than once")
    least = sum(told.get(name, one)["cost_microusd"] for name, one in mine.items())
    paid = sum(one["cost_microusd"] for one in mine.values())
    above = paid / least - 1.0 if least else 0.0
    cells = {"within": scenario.plain_within, "cheapest_microusd": least, "cheapest_usd": least / 1e6, "above": above}
    yield from cell_findings(WRONG, "plain", plain, cells)
    for asked in scenario.workloads:
        if asked.name not in told:
            continue
        other, one = told[asked.name], mine[asked.name]
        yield from in_short_findings(other, asked, scenario, checks.get(asked.name))
        most = int(other["cost_microusd"] * (1 + scenario.plain_within))
        if one["cost_microusd"] > most:
            text = f"{one['cost_microusd']}, more than {scenario.plain_within:.3%} above {other['cost_microusd']}"
            yield Finding(WRONG, f"{asked.name} costs {text}")
        taken, fewest = (sum(row["devices"] for row in some["allocations"]) for some in (one, other))
        if taken > fewest:
            yield Finding(WRONG, f"{asked.name} takes {taken} devices, more than the {fewest} of the cheapest plan")
        elsewhere = {row["offer"] for row in one["allocations"]} - {row["offer"] for row in other["allocations"]}
        if elsewhere:
            yield Finding(WRONG, f"{asked.name} runs on {min(elsewhere)}, which the cheapest plan does not use")
    if "time" in scenario.objective[1:]:
        mine_end, other_end = (_last_finish_hours(some) for some in (mine.values(), (mine | told).values()))
        if mine_end > other_end * (1 + scenario.plain_within) * (1 + 1e-9):
            text = f"more than {scenario.plain_within:.3%} after the cheapest plan's {other_end:g} h"
            yield Finding(WRONG, f"the last job ends at {mine_end:g} h, {text}")


def _last_finish_hours(workloads: Iterable[Workload | WorkloadInShort]) -> float:
    rows: Iterable[Any] = (row for one in workloads for row in one["allocations"])
    return max((float(row.get("finish_hours") or 0.0) for row in rows), default=0.0)
