"""What a plan says of other ways: the cheapest on each kind of device, one kind throughout, ways out of a conflict.

A way is worked out again from its offer and its split. That no other is cheaper takes another search: `plan verify
--solve`. Figures of such searches are held against each other and against the bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from planner.catalog.load import device_matches, find_shape
from planner.catalog.model import Band, Catalog
from planner.checks.allocation import AllocationCheck, in_its_regions
from planner.checks.facts import OfferFacts, exact_cost, exact_rental, facts_of_offer, facts_of_row
from planner.checks.findings import Finding, cell_findings, proven_microusd
from planner.checks.layout import serving_layout_findings, training_layout_findings
from planner.checks.serving import Copy, planned_micro_per_s
from planner.estimate.bands import ErrorBand
from planner.estimate.market import cap_name
from planner.estimate.resolve import band_on, step_measured, usable_bytes
from planner.estimate.resolve_serving import bucket_demands, fleet_levels
from planner.estimate.serving_fleet import WHOLE
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario, ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.others import Change, Combined, Infeasible, WayOut
    from planner.plan.model.plan import (
        Allocation,
        Alternative,
        PlanDocument,
        ServingAlternative,
        TrainingAlternative,
        Workload,
    )
    from planner.plan.model.rows import TrainingLayout

MOST = 8
_CHOICES = {f"hardware.{name}" for name in ("allow", "regions", "providers", "kinds", "pricing")}
_KEPT = re.compile(
    r"training\[\d+\]\.(precision|recompute|sharding|optimizer|offload|lora|global_batch|regions)"
    r"|periods|serving\[\d+\]\.(weights|kv_cache|regions|max_spot_share|qpm|requests|users|slo\.(ttft|tpot)_p(50|95|99))"
)
BOTH = "; "  # between two texts of one setting


def alternative_findings(
    check: AllocationCheck, asked: TrainingJob | ServingFleet, stated: Workload
) -> Iterator[Finding]:
    """Everything wrong with the other ways of a workload: one for each device, cheapest first.

    Parameters
    ----------
    check
        Works out rows of the workload again.
    asked
        The workload of the scenario.
    stated
        The same workload in the plan, with rows or without.
    """
    told = stated["alternatives"]
    yield from ranking_findings(asked.name, told)
    for one in told:
        facts = facts_of_offer(one["offer"], check.scenario, check.catalog)
        if facts is None:
            yield Finding("unknown-offer", f"{asked.name}: no offer {one['offer']!r} for another way")
            continue
        cells: dict[str, object] = {"device": facts.device.id, "devices": one["count"] * facts.shape.devices}
        cells |= {"cost_usd": one["cost_microusd"] / 1e6}
        yield from cell_findings("wrong-alternative", asked.name, one, cells)
        if facts.owned is None and not check.allowed(facts.offer, facts.device):
            yield Finding("not-allowed", f"{asked.name}: the scenario does not allow {one['offer']}")
        if not in_its_regions(asked, facts.offer):
            yield Finding("not-allowed", f"{asked.name}: {one['offer']} is in none of its regions")
        if isinstance(asked, TrainingJob):
            yield from _training(check, asked, cast("TrainingAlternative", one), facts, stated["allocations"])
        else:
            yield from _serving(check, asked, cast("ServingAlternative", one), facts)


def ranking_findings(name: str, told: Sequence[Alternative]) -> Iterator[Finding]:
    """One way for each device, cheapest first, no more than are told."""
    devices = [one["device"] for one in told]
    order = [(one["cost_microusd"], one["device"]) for one in told]
    if len(set(devices)) < len(devices) or order != sorted(order) or len(told) > MOST:
        yield Finding("wrong-alternative", f"{name}: not one way for each device, cheapest first: {devices}")


def training_way(
    check: AllocationCheck, job: TrainingJob, offer: str, nodes: int, sizes: Mapping[str, Any], facts: OfferFacts
) -> float | Finding:
    """Median time of one job on so many shapes of an offer, or why it cannot run so.  [h]

    Parameters
    ----------
    check
        Works out rows of the job again.
    job
        A job of the scenario.
    offer
        Id of the offer, for what is said of it.
    nodes
        Shapes of one job.
    sizes
        The layout as a row tells it.
    facts
        The offer looked up again.
    """
    arch, devices = check.arch, nodes * facts.shape.devices
    if not facts.device.peak_flop_per_s.get(job.precision):
        return Finding("wrong-alternative", f"{job.name}: {facts.device.id} has no {job.precision}")
    split = cast("TrainingLayout", sizes)
    problem = next(training_layout_findings(job, arch, split, facts.shape, devices), None)
    if problem is not None:
        return problem
    if nodes > 1 and facts.inter_node_bytes_per_s is None:
        return Finding("network-unknown", f"{job.name}: {offer} may run only what fits one shape")

    margins = check.margins(job, facts, nodes, split)
    needed = float(check.memory(job, split, devices, facts.device.family).total) * margins.memory
    if needed > usable_bytes(facts.device, facts.shape) * (1 + 1e-12):
        return Finding("does-not-fit", f"{job.name}: {offer} as another way needs {needed:.6g} B")
    return check.way(job, split, nodes, facts, margins).hours


def _training(
    check: AllocationCheck, job: TrainingJob, one: TrainingAlternative, facts: OfferFacts, rows: Sequence[Allocation]
) -> Iterator[Finding]:
    """A job as often as it is asked for, each on equally many shapes."""
    nodes, rest = divmod(one["count"], job.count)
    if nodes < 1 or rest:
        yield Finding("wrong-alternative", f"{job.name}: {one['count']} shapes for {job.count} jobs")
        return
    there = facts.offer.max_shapes if facts.owned is None else check.scenario.hardware.owned[facts.owned].count
    if there is not None and one["count"] > there and job.count > 1 and not check.scenario.scheduled:
        yield Finding("wrong-alternative", f"{job.name}: {one['count']} × {one['offer']} at once, there are {there}")
    hours = training_way(check, job, one["offer"], nodes, cast("Mapping[str, Any]", one["layout"]), facts)
    if isinstance(hours, Finding):
        yield hours
        return
    cost = exact_rental(nodes, facts.offer.price_microusd_per_hour, hours, facts.bill) * job.count
    cells: dict[str, object] = {"hours": hours, "cost_microusd": cost, "note": "whole run"}
    cells["tie"] = _ties(check, job, cost, facts, rows)
    yield from cell_findings("wrong-alternative", job.name, one, cells)


def _ties(
    check: AllocationCheck, job: TrainingJob, cost_microusd: int, facts: OfferFacts, rows: Sequence[Allocation]
) -> bool:
    """Whether errors leave open which is cheaper, this way or what was chosen."""
    most = max(rows, key=lambda row: (row["cost_microusd"], row["offer"]), default=None)
    chosen = facts_of_row(most, check.scenario, check.catalog) if most else None
    if chosen is None:
        return False
    paid = sum(row["cost_microusd"] for row in rows)
    one, other = _band(check, job, chosen), _band(check, job, facts)
    if (one.family, one.tier) == (other.family, other.tier) or not paid or not cost_microusd:
        return bool(paid == cost_microusd)
    (low, middle, high), (low2, middle2, high2) = _logs(one.time), _logs(other.time)
    lead = math.log(cost_microusd / 1e6) + middle2 - math.log(paid / 1e6) - middle
    spread = math.hypot(high - middle, middle2 - low2) if lead >= 0 else math.hypot(high2 - middle2, middle - low)
    return abs(lead) <= spread


def _band(check: AllocationCheck, job: TrainingJob, facts: OfferFacts) -> ErrorBand:
    measured = step_measured(job, facts.shape, check.under_way)
    return band_on(job, check.arch, facts.device, check.catalog, measured=measured)


def _logs(band: Band | None) -> tuple[float, float, float]:
    return (math.log(band.p10), math.log(band.p50), math.log(band.p90)) if band else (0.0, 0.0, 0.0)


def _serving(
    check: AllocationCheck, fleet: ServingFleet, one: ServingAlternative, facts: OfferFacts
) -> Iterator[Finding]:
    """A fleet on equal replicas alone: enough of them, at what they cost over the horizon."""
    hours = check.scenario.horizon_s / 3600.0
    cells = {"hours": hours, "note": "over the horizon", "tie": False}
    yield from cell_findings("wrong-alternative", fleet.name, one, cells)
    sizes = one["layout"]
    problems = list(serving_layout_findings(fleet, check.arch, sizes, facts.shape))
    yield from problems
    if problems:
        return
    devices, per_shape = sizes["tp"] * sizes["pp"] * sizes["dp"], facts.shape.devices
    nodes, replicas = (1, per_shape // devices) if devices <= per_shape else (-(-devices // per_shape), 1)
    units, rest = divmod(one["count"], nodes)
    yield from cell_findings("wrong-alternative", fleet.name, one, {"replicas": units * replicas})
    copy = Copy(fleet, check.arch, check.catalog, facts, WHOLE, sizes, check.memo)
    needed = _units(fleet, planned_micro_per_s(fleet, copy.rates_per_s()), replicas)
    if rest or units < needed:
        yield Finding("demand-unmet", f"{fleet.name}: {one['count']} × {one['offer']} alone do not carry the fleet")
    if not fleet.targets_s and units != needed:  # with targets a mix may be planned for less than its rates
        text = f"{needed * nodes} × {one['offer']} are enough, not {one['count']}"
        yield Finding("wrong-alternative", f"{fleet.name}: {text}")
    if fleet_levels(fleet, check.scenario.horizon_s) is None:
        cost = units * exact_cost(nodes, facts.offer.price_microusd_per_hour, hours)
        yield from cell_findings("wrong-alternative", fleet.name, one, {"cost_microusd": cost})


def _units(fleet: ServingFleet, planned: Sequence[int], replicas: int) -> int:
    """The fewest units of so many replicas that carry the peak after the loss of the spares asked for."""
    demands = bucket_demands(fleet)
    if not all(planned):
        return 2**31
    by_count = -(-fleet.min_replicas // replicas)
    if len(demands) == 1:
        wanted = demands[0] + fleet.spare_replicas * planned[0]
        return max(-(-wanted // (planned[0] * replicas)), by_count, 1)
    load = sum(demand / rate for demand, rate in zip(demands, planned)) / replicas + fleet.spare_replicas / replicas
    return max(math.ceil(load * (1 - 1e-9)), by_count, 1)


def single_kind_findings(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """One kind of device throughout, where the plan has several: one that is allowed, dearer by what is told.

    Parameters
    ----------
    document
        A plan with rows.
    scenario
        The one that the plan carries, read: which devices it allows.
    catalog
        The devices that there are.
    """
    stated, cost = document["single_kind"], proven_microusd(document)
    used = {row["device"] for workload in document["workloads"] for row in workload["allocations"]}
    if stated is None:
        return
    dearer = stated["cost_microusd"] / cost - 1.0 if cost else 0.0
    cells = {"cost_usd": stated["cost_microusd"] / 1e6, "dearer": dearer}
    yield from cell_findings("wrong-alternative", "single_kind", stated, cells)
    hardware = scenario.hardware
    offered = {
        device.id
        for device in catalog.devices.values()
        if any(device_matches(device, pattern) for pattern in hardware.allow)
        and not any(device_matches(device, pattern) for pattern in hardware.deny)
    }
    offered |= {find_shape(catalog, owned.shape).device for owned in hardware.owned}
    bound = document["summary"]["bound_microusd"]
    if len(used) < 2 or stated["device"] not in offered or (bound is not None and stated["cost_microusd"] < bound):
        yield Finding("wrong-alternative", f"{stated['device']} alone is no other way of this plan")


def infeasible_findings(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """Ways out of a conflict: each moves a limit of the scenario, by the text that does it; money as it is told.

    Parameters
    ----------
    document
        A plan; there is nothing to check in one that tells of no conflict.
    scenario
        The one that the plan carries, read: its limits, and what they are once a setting is applied.
    catalog
        Offers that are sold up to so many shapes, which may be in a conflict, too.
    """
    told = document["infeasible"]
    if told is None:
        return
    names = {workload["name"] for workload in document["workloads"]}
    if not set(told["workloads"]) <= names:
        yield Finding("wrong-way-out", f"misses are told of {sorted(told['workloads'])}")
    names |= {cap_name(offer) for offer in catalog.offers if offer.max_shapes is not None}
    yield from _conflict(told, names, scenario)
    median = told["median_cost_microusd"]
    yield from cell_findings(
        "wrong-way-out", "at the median", told, {"median_cost_usd": None if median is None else median / 1e6}
    )
    combined = told["combined"]
    ways: list[WayOut | Combined] = [*told["ways_out"], *([combined] if combined else [])]
    for way in ways:
        cost = way["cost_microusd"]
        yield from cell_findings("wrong-way-out", "a way out", way, {"cost_usd": None if cost is None else cost / 1e6})
    changes: list[Change] = [*told["ways_out"], *(combined["changes"] if combined else [])]
    for change in changes:
        yield from _moved(change, scenario)
    if combined and all(way["from"] and way["to"] is not None for way in combined["changes"]):
        more = sum((way["to"] or 0) / way["from"] - 1.0 for way in combined["changes"])
        if not math.isclose(more, combined["loosening"], rel_tol=1e-3, abs_tol=1e-5):  # in millionths, rounded up
            yield Finding("wrong-way-out", f"the limits are loosened by {more:.6g}, not by {combined['loosening']}")


def _conflict(told: Infeasible, names: set[str], scenario: Scenario) -> Iterator[Finding]:
    """What contradicts itself: each once; a way out for each limit of it that is a number, and for no other.

    Where nothing was found to contradict itself, as where only spare replicas are lacking, any limit may be a way out.
    """
    members, movable = [one["name"] for one in told["conflict"]], set(_values(scenario))
    for name in members:
        if name not in names | movable | _keys(scenario):
            yield Finding("wrong-way-out", f"{name}: the scenario has no such limit")
    wide = {"allow": ("*",), "regions": ("*",), "providers": ("*",), "kinds": None, "pricing": ("on_demand",)}
    chosen = {f"hardware.{name}" for name, every in wide.items() if getattr(scenario.hardware, name) != every}
    tried = [one["limit"] for one in told["ways_out"] if not (one["to"] and _KEPT.fullmatch(one["limit"]))]
    moved = [name for name in tried if name not in _CHOICES]
    wanted = [name for name in members or dict.fromkeys(moved) if name in movable - _CHOICES]
    if len(set(members)) < len(members) or moved != wanted:
        yield Finding("wrong-way-out", f"the conflict is of {members}, the ways out of {tried}")
    wider = [name for name in tried if name in _CHOICES]
    if len(set(wider)) < len(wider) or not chosen.issuperset(wider):
        yield Finding("wrong-way-out", f"wider choices of {wider}, the scenario restricts {sorted(chosen)}")
    for index, job in enumerate(scenario.training):  # a deadline of a job that may be left out contradicts nothing
        if f"training[{index}].deadline" in members and job.name not in members and told["minimal"]:
            yield Finding("wrong-way-out", f"the deadline of {job.name} is in the conflict, and the job is not")


def _moved(way: Change, scenario: Scenario) -> Iterator[Finding]:
    """From what the scenario says to what it says with the setting applied."""
    limit, known = way["limit"], _values(scenario).get(way["limit"])
    if known is None:
        yield Finding("wrong-way-out", f"{limit}: the scenario has no such limit")
        return
    unit, value = known
    yield from cell_findings("wrong-way-out", limit, way, {"unit": unit, "from": value})
    if (way["to"] is None) != (way["setting"] == ""):
        yield Finding("wrong-way-out", f"{limit}: {way['setting']!r} does not set {way['to']}")
    elif way["to"] is not None:
        moved = _values(with_settings(scenario, way["setting"].split(BOTH))).get(limit)
        yield from cell_findings("wrong-way-out", limit, way, {"to": moved[1] if moved else None})


def _keys(scenario: Scenario) -> set[str]:
    """Keys of jobs, of hardware and of limits by path: what else may stand in a conflict."""
    parts = [("hardware", scenario.hardware), ("limits", scenario.limits)]
    parts += [(f"training[{index}]", job) for index, job in enumerate(scenario.training)]
    parts += [(f"serving[{index}]", fleet) for index, fleet in enumerate(scenario.serving)]
    return {f"{path}.{field.alias or name}" for path, part in parts for name, field in type(part).model_fields.items()}


def _values(scenario: Scenario) -> dict[str, tuple[str, int]]:
    """Every limit of the scenario that may be moved, in whole units; of lists how many there are to choose from."""
    hardware = scenario.hardware
    found: dict[str, tuple[str, int | None]] = {
        **scenario.limits.whole,
        "periods": ("periods", scenario.periods),
        "hardware.allow": ("choices", len(hardware.allow)),
        "hardware.regions": ("choices", len(hardware.regions)),
        "hardware.providers": ("choices", len(hardware.providers)),
        "hardware.kinds": ("choices", len(hardware.kinds or ())),
        "hardware.pricing": ("choices", len(hardware.pricing)),
    }
    for index, job in enumerate(scenario.training):
        found[f"training[{index}].deadline"] = ("s", math.floor(job.deadline_s))
    for index, quota in enumerate(hardware.quotas):
        counted = ("devices", quota.max_devices) if quota.max_devices is not None else ("shapes", quota.max_shapes)
        found[f"hardware.quotas[{index}]"] = counted
    for index, contract in enumerate(hardware.contracts):
        found[f"hardware.contracts[{index}].max_shapes"] = ("shapes", contract.max_shapes)
    for index, owned in enumerate(hardware.owned):
        found[f"hardware.owned[{index}]"] = ("shapes", owned.count)
    for index, fleet in enumerate(scenario.serving):
        per_day = None if fleet.requests_per_s is None else math.floor(round(fleet.requests_per_s * 86_400, 3))
        per_min = None if fleet.requests_per_minute is None else math.floor(fleet.requests_per_minute)
        loads = {
            "qpm": ("requests/min", per_min),
            "requests": ("requests/day", per_day),
            "users": ("users", fleet.users),
        }
        found |= {f"serving[{index}].{key}": load for key, load in loads.items()}
        targets = fleet.slo.given_s if fleet.slo else {}
        found |= {f"serving[{index}].slo.{key}": ("us", round(1e6 * value)) for key, value in targets.items()}
    for kind, workloads in (("training", scenario.training), ("serving", scenario.serving)):
        for index, one in enumerate(workloads):
            for name in (
                "precision",
                "recompute",
                "sharding",
                "optimizer",
                "offload",
                "lora",
                "global_batch",
                "weights",
                "kv_cache",
                "regions",
                "max_spot_share",
            ):
                said = getattr(one, name, None)
                held = 0 if said is None else len(said) if isinstance(said, tuple) else 1
                found[f"{kind}[{index}].{name}"] = ("choices", held)
    return {name: (unit, value) for name, (unit, value) in found.items() if value is not None}
