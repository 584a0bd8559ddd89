"""What a plan says of other plans: the cheapest, where it is a plainer one, and the best different decisions.

The cheapest costs little less, on the same offers, with right sums. Of other decisions: how much of each device, what
staying changes; their rows are worked out again as far as rows in short allow: where they stand, what they hold, and,
of jobs without a calendar and without a mix, how long and for how much. That nothing is plainer, that the
rates of the cheapest replicas are what they are, that no decision is better, and that a device cannot be had in smaller
or larger numbers, takes another search: `plan verify --solve`. That no plan costs less is what the certificate shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from planner.checks.allocation import AllocationCheck
from planner.checks.cells import place_cells
from planner.checks.facts import RESERVED, OfferFacts, exact_cost, exact_rental, facts_of_row
from planner.checks.findings import Finding, cell_findings, same, slack
from planner.checks.layout import serving_layout_findings
from planner.checks.others import training_way
from planner.estimate.resolve_serving import fleet_levels
from planner.scenario.schema import Scenario, ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.fleet import ServingLayout
    from planner.plan.model.others import (
        DecisionPlan,
        Decisions,
        NearOptimal,
        Others,
        Plain,
        Previous,
        RowInShort,
        WorkloadInShort,
    )
    from planner.plan.model.plan import PlanDocument, Workload
    from planner.plan.model.rows import Place, TrainingAllocation


WRONG = "wrong-other-plan"
SHARED = "~nodes"  # who holds nodes that several fleets share
SHORT = ("provider", "region", "zone", "device", "shape", "price_model", "devices_per_shape")


def other_plan_findings(
    document: PlanDocument, scenario: Scenario, checks: Mapping[str, AllocationCheck]
) -> Iterator[Finding]:
    """Everything wrong with the other plans that stand beside a plan.

    Parameters
    ----------
    checks
        Of each workload whose rows are predicted.
    """
    others: Others | None = document.get("others")
    if others is None:
        return
    if others["decisions"] is not None:
        yield from _decisions(others["decisions"], document, scenario, checks)
    if others["near_optimal"] is not None:
        yield from _near_optimal(others["near_optimal"], document, staying=others["previous"] is not None)
    if others["previous"] is not None:
        yield from _previous(others["previous"], document)


def _decisions(
    told: Decisions, document: PlanDocument, scenario: Scenario, checks: Mapping[str, AllocationCheck]
) -> Iterator[Finding]:
    plans, first = told["plans"], told["plans"][0]["cost_microusd"] if told["plans"] else 0
    if len(plans) > told["asked"] or (len(plans) == told["asked"] and told["ended"]):
        yield Finding(WRONG, f"{len(plans)} decisions of {told['asked']}, ended {told['ended']!r}")
    if len(plans) < told["asked"] and not told["ended"] and any(_choices(one) for one in plans[-1:]):
        yield Finding(WRONG, f"{len(plans)} decisions of {told['asked']}, and nothing ended the list")
    for number, plan in enumerate(plans):
        cost = plan["cost_microusd"]
        cells = {
            "cost_usd": cost / 1e6,
            "dearer_usd": (cost - first) / 1e6,
            "dearer": cost / first - 1.0 if first else 0.0,
            "devices": sum(one["devices"] for one in plan["workloads"]),
        }
        yield from cell_findings(WRONG, f"decision {number + 1}", plan, cells)
        paid = sum(one["cost_microusd"] for one in plan["workloads"])
        if cost < paid or (cost > paid and not (scenario.scheduled or document["copies"] or _moves_data(scenario))):
            yield Finding(WRONG, f"decision {number + 1} costs {cost}, its workloads {paid}")
        if [one["name"] for one in plan["workloads"]] != [one["name"] for one in document["workloads"]]:
            yield Finding(WRONG, f"decision {number + 1} is of other workloads")
            return
        for one, asked in zip(plan["workloads"], scenario.workloads):
            yield from in_short_findings(one, asked, scenario, checks.get(asked.name))
        if any(_choices(before) <= _choices(plan) for before in plans[:number]):
            yield Finding(WRONG, f"decision {number + 1} gives up nothing of one before it")
    yield from _in_order(told, document)


def _in_order(told: Decisions, document: PlanDocument) -> Iterator[Finding]:
    """By cost, where that comes first: from the best on, and none below what is proven."""
    if document["summary"]["objective"][0] != "cost":
        return
    costs = [plan["cost_microusd"] for plan in told["plans"] if plan["proven"]]
    bound = document["summary"]["bound_microusd"]
    below = [plan["cost_microusd"] for plan in told["plans"] if bound is not None and plan["cost_microusd"] < bound]
    if costs != sorted(costs) or below:
        yield Finding(WRONG, f"decisions of {costs} are not the best first, or below the bound {bound}")


def _moves_data(scenario: Scenario) -> bool:
    return any(job.data is not None for job in scenario.training)


def _choices(plan: DecisionPlan) -> set[tuple[str, ...]]:
    """What each workload rents: device, price model and place."""
    return {
        (one["name"], row["device"], row["price_model"], row["provider"], row["region"])
        for one in plan["workloads"]
        for row in one["allocations"]
    }


def in_short_findings(
    told: WorkloadInShort, asked: TrainingJob | ServingFleet, scenario: Scenario, check: AllocationCheck | None
) -> Iterator[Finding]:
    """Everything wrong with a workload of another plan.

    Parameters
    ----------
    told
        The workload as the other plan runs it, its rows in short.
    asked
        The same workload of the scenario.
    scenario
        That of the plan beside which the other plan stands.
    check
        Works out rows of the workload again; None = its rates are given, and only sums and counts are checked.
    """
    rows, cost = told["allocations"], sum(row["cost_microusd"] for row in told["allocations"])
    finish = [row["finish_hours"] for row in rows if "finish_hours" in row]
    cells: dict[str, object] = {
        "kind": "training" if isinstance(asked, TrainingJob) else "serving",
        "cost_microusd": cost,
        "cost_usd": cost / 1e6,
        "devices": sum(row["devices"] for row in rows),
        "finish_hours": max(finish, default=None),
    }
    yield from cell_findings(WRONG, asked.name, told, cells)
    for row in rows:
        yield from cell_findings(WRONG, asked.name, row, {"cost_usd": row["cost_microusd"] / 1e6})
        facts = facts_of_row(cast("Place", row), scenario, check.catalog) if check is not None else None
        if check is None or facts is None:
            if check is not None:
                yield Finding(WRONG, f"{asked.name}: the catalog has no offer {row['offer']!r}")
            continue
        yield from _row(asked, row, facts, check)
    if check is not None and isinstance(asked, TrainingJob) and not scenario.scheduled:
        for pairs in check.switched(cast("list[TrainingAllocation]", rows)):
            yield from check.switch_check(asked).in_short_findings(WRONG, pairs)
    jobs = sum(Fraction(row.get("jobs", 0), row["switch"]["parts"] if "switch" in row else 1) for row in rows)
    if isinstance(asked, TrainingJob) and not asked.mix_within_job and jobs != asked.count:
        yield Finding(WRONG, f"{asked.name}: {jobs} jobs, {asked.count} asked for")


def _row(
    asked: TrainingJob | ServingFleet, row: RowInShort, facts: OfferFacts, check: AllocationCheck
) -> Iterator[Finding]:
    """Where a row stands and what it holds; time and money where nothing else bears on them."""
    place, scenario = place_cells(facts.offer, facts.shape), check.scenario
    cells = {name: place[name] for name in SHORT}
    cells |= {"funding": facts.offer.price_model}
    if "shared" not in row:
        cells["devices"] = row["count"] * facts.shape.devices
    yield from cell_findings(WRONG, asked.name, row, cells)
    if row["count"] < 1:
        yield Finding(WRONG, f"{asked.name}: {row['count']} shapes of {row['offer']}")
        return
    if isinstance(asked, ServingFleet):
        yield from _replicas(asked, row, facts, check)
        return
    jobs = row.get("jobs", 0)
    if jobs < 1 or row["count"] % jobs:
        yield Finding(WRONG, f"{asked.name}: {row['count']} shapes for {jobs} jobs")
    elif not asked.mix_within_job and not scenario.scheduled:
        hours = training_way(check, asked, row["offer"], row["count"] // jobs, row["layout"], facts)
        if isinstance(hours, Finding):
            yield hours
            return
        if "switch" in row:  # worked out with its other part
            return
        begin = asked.start_s / 3600.0
        when: dict[str, object] = {"hours": hours, "start_hours": begin, "finish_hours": begin + hours}
        price = facts.offer.price_microusd_per_hour
        if "shared" not in row:  # what it bears follows from who else is there
            when["cost_microusd"] = exact_rental(row["count"] // jobs, price, hours, facts.bill) * jobs
        yield from cell_findings(WRONG, asked.name, row, when)


def _replicas(fleet: ServingFleet, row: RowInShort, facts: OfferFacts, check: AllocationCheck) -> Iterator[Finding]:
    """Replicas by the split; over the horizon what they cost, or less where they run at some hours only."""
    sizes = cast("ServingLayout", row["layout"])
    problem = next(serving_layout_findings(fleet, check.arch, sizes, facts.shape), None)
    if problem is not None:
        yield problem
        return
    devices, per_shape = sizes["tp"] * sizes["pp"] * sizes["dp"], facts.shape.devices
    nodes, replicas = (1, per_shape // devices) if devices <= per_shape else (-(-devices // per_shape), 1)
    horizon_s, found = check.scenario.horizon_s, fleet_levels(fleet, check.scenario.horizon_s)
    hours = [horizon_s / 3600.0] if found is None else [float(each) for each in found.hours_at_least]
    cells: dict[str, object] = {"replicas": row["count"] // nodes * replicas, "start_hours": 0.0}
    if "shared" in row:  # what it bears follows from who else is there
        placed = sum(one["replicas"] for one in row["shared"])
        cells |= {"count": len(row["shared"]), "replicas": placed, "devices": placed * devices}
    elif facts.offer.price_model != RESERVED:
        price = facts.offer.price_microusd_per_hour
        cells["cost_microusd"] = row["count"] // nodes * exact_cost(nodes, price, row["hours"])
    if not any(same(row["hours"], each) for each in hours) or row["count"] % nodes:
        yield Finding(WRONG, f"{fleet.name}: {row['count']} shapes for {row['hours']} h")
        return
    yield from cell_findings(WRONG, fleet.name, row, cells)


def _near_optimal(told: NearOptimal, document: PlanDocument, *, staying: bool) -> Iterator[Finding]:
    """The money that plans may cost; the plan itself is one of those that were asked about."""
    cost, share, names = told["cost_microusd"], told["share"], [one["device"] for one in told["devices"]]
    most = int(cost * (1 + Fraction(repr(float(share)))))
    yield from cell_findings(WRONG, "near the best", told, {"most_microusd": most, "most_usd": most / 1e6})
    summary = document["summary"]
    first = summary["objective"][0] == "cost"  # else the bound is of plans that are as good in what comes first
    paid, bound = cast("int", summary["cost_microusd"]), (summary["bound_microusd"] or 0) if first else 0
    best = first and not staying and document["status"] == "optimal"
    if share < 0 or cost > paid + slack(paid) or cost < bound or (best and abs(cost - paid) > slack(paid)):
        yield Finding(WRONG, f"the least cost is {cost}, this plan costs {paid} and is proven to be at least {bound}")
    if names != sorted(set(names)):
        yield Finding(WRONG, f"devices are {names}")
    rented: dict[str, int] = {}
    for workload in document["workloads"]:
        for row in workload["allocations"]:
            own = 0 if "shared" in row else row["devices"]
            rented[row["device"]] = rented.get(row["device"], 0) + own
    for node in document.get("shared_nodes", []):
        rented[node["device"]] = rented.get(node["device"], 0) + node["devices"]
    for one in told["devices"]:
        known = [one["best"], *([rented.get(one["device"], 0)] if paid <= most else [])]
        fewest, top = one["fewest"], one["most"]
        if (fewest is not None and not 0 <= fewest <= min(known)) or (top is not None and top < max(*known, 1)):
            yield Finding(WRONG, f"{one['device']}: {fewest} to {top}, and plans with {known} are known")
    if paid <= most and not set(rented) <= set(names):
        yield Finding(WRONG, f"nothing is said of {sorted(set(rented) - set(names))}, which the plan has")


def _previous(told: Previous, document: PlanDocument) -> Iterator[Finding]:
    """What is different now, as this plan has it; what staying costs beside the cheapest plan."""
    after: dict[tuple[str, str], int] = {}
    for workload in document["workloads"]:
        for row in workload["allocations"]:
            key = (workload["name"], row["offer"])
            after[key] = after.get(key, 0) + (0 if "shared" in row else row["count"])
    after |= {(SHARED, node["offer"]): node["count"] for node in document.get("shared_nodes", [])}
    keys = [(row["workload"], row["offer"]) for row in told["changes"]]
    if keys != sorted(set(keys)):
        yield Finding(WRONG, "changes are not of each workload and offer once, in order")
    for key, change in zip(keys, told["changes"]):
        yield from cell_findings(WRONG, f"changes of {key[0]}", change, {"after": after.get(key, 0)})
        if change["before"] == change["after"] or change["before"] < 0:
            yield Finding(WRONG, f"{key[0]}: {change['before']} nodes of {key[1]} before and now")
    cheapest = told["cheapest_microusd"]
    cost, bound = cast("int", document["summary"]["cost_microusd"]), document["summary"]["bound_microusd"] or 0
    cells = {
        "changed_nodes": sum(abs(row["before"] - row["after"]) for row in told["changes"]),
        "cheapest_usd": None if cheapest is None else cheapest / 1e6,
        "staying_usd": None if cheapest is None else (cost - cheapest) / 1e6,
    }
    yield from cell_findings(WRONG, "the plan before", told, cells)
    if (told["share"] is None) == (told["move_usd"] is None):
        yield Finding(WRONG, "staying is weighed by a share of the cost or by money for each node")
    if cheapest is not None and not bound <= cheapest <= cost:
        yield Finding(WRONG, f"the cheapest plan costs {cheapest}, this one {cost}, and none less than {bound}")
    plainer = document.get("plain")  # held to a share of its own
    within = plainer is not None and plainer["cheapest_microusd"] == cheapest
    if (
        told["share"] is not None
        and cheapest is not None
        and not within
        and cost > int(cheapest * (1 + Fraction(repr(told["share"]))))
    ):
        yield Finding(WRONG, f"staying costs {cost - cheapest} more, above its share")


WRONG_PLAIN = "wrong-plain"


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
            yield Finding(WRONG_PLAIN, f"its certificate is of a plan of {certificate['value']}, this one costs {cost}")
        return
    if scenario.prefer != "plain":
        yield Finding(WRONG_PLAIN, "plainer layouts are not asked for")
    told = {one["name"]: one for one in plain["workloads"]}
    mine = {one["name"]: one for one in document["workloads"]}
    if not set(told) <= set(mine):
        yield Finding(WRONG_PLAIN, f"the cheapest plan runs {sorted(set(told) - set(mine))}, which nobody asks for")
        return
    if len(told) < len(plain["workloads"]):
        yield Finding(WRONG_PLAIN, "the cheapest plan tells of a workload more than once")
    least = sum(told.get(name, one)["cost_microusd"] for name, one in mine.items())
    paid = sum(one["cost_microusd"] for one in mine.values())
    above = paid / least - 1.0 if least else 0.0
    cells = {"within": scenario.plain_within, "cheapest_microusd": least, "cheapest_usd": least / 1e6, "above": above}
    yield from cell_findings(WRONG_PLAIN, "plain", plain, cells)
    for asked in scenario.workloads:
        if asked.name not in told:
            continue
        other, one = told[asked.name], mine[asked.name]
        yield from in_short_findings(other, asked, scenario, checks.get(asked.name))
        most = int(other["cost_microusd"] * (1 + scenario.plain_within))
        if one["cost_microusd"] > most:
            text = f"{one['cost_microusd']}, more than {scenario.plain_within:.3%} above {other['cost_microusd']}"
            yield Finding(WRONG_PLAIN, f"{asked.name} costs {text}")
        taken, fewest = (sum(row["devices"] for row in some["allocations"]) for some in (one, other))
        more = math.ceil(scenario.plain_within * fewest) if isinstance(asked, ServingFleet) else 0
        if taken > fewest + more:
            hardly = f", and {more} more" if more else ""
            text = f"takes {taken} devices, more than the {fewest} of the cheapest plan{hardly}"
            yield Finding(WRONG_PLAIN, f"{asked.name} {text}")
        used = {row["offer"] for row in other["allocations"]}
        beside = {_sold_as(row) for row in other["allocations"]} if isinstance(asked, ServingFleet) else set()
        if len({device for device, *_ in beside}) < 2:  # on one kind of device no other machines are asked for
            beside = set()
        elsewhere = {r["offer"] for r in one["allocations"] if r["offer"] not in used and _sold_as(r) not in beside}
        if elsewhere:
            yield Finding(WRONG_PLAIN, f"{asked.name} runs on {min(elsewhere)}, which the cheapest plan does not use")
    if "time" in scenario.objective[1:]:
        mine_end, other_end = (_last_finish_hours(some) for some in (mine.values(), (mine | told).values()))
        if mine_end > other_end * (1 + scenario.plain_within) * (1 + 1e-9):
            text = f"more than {scenario.plain_within:.3%} after the cheapest plan's {other_end:g} h"
            yield Finding(WRONG_PLAIN, f"the last job ends at {mine_end:g} h, {text}")


def _sold_as(row: Place | RowInShort) -> tuple[str, ...]:
    """What machines of several sizes have in common: the device, its seller, the place and the terms."""
    return row["device"], row["provider"], row["region"], row["zone"], row["price_model"]


def _last_finish_hours(workloads: Iterable[Workload | WorkloadInShort]) -> float:
    rows: Iterable[Any] = (row for one in workloads for row in one["allocations"])
    return max((float(row.get("finish_hours") or 0.0) for row in rows), default=0.0)
