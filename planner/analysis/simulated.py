"""The chosen replicas in a seeded simulation, beside what the formulas say of them: a check that is asked for.

Requests of every class come at random at the rate that the plan sends to one replica, or from its users, each of whom
thinks after every answer; at the median of the error bands. Pools of prefill and decode are not simulated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from planner.architecture.model import Architecture
from planner.catalog.model import Catalog
from planner.checks.facts import facts_of_row
from planner.checks.findings import Finding
from planner.plan.rows.serving_point import ReplicaSite
from planner.scenario.load import parse_scenario
from planner.scenario.schema import ModelRef, ServingFleet
from planner.simulate import Workload, simulate_replica

if TYPE_CHECKING:
    from planner.plan.model.fleet import Point, ServingAllocation
    from planner.plan.model.others import Simulated, SimulatedLatency
    from planner.plan.model.plan import PlanDocument

REQUESTS = 20_000
CYCLES = 30  # requests of each user, where there are users
AGREES = 1e-6  # relative


def simulated_rows(
    document: PlanDocument, catalog: Catalog, load_model: Callable[[ModelRef | None], Architecture], *, seed: int = 0
) -> list[Simulated]:
    """Simulated latencies of every row whose latencies are predicted.

    Parameters
    ----------
    document
        A plan.
    seed
        Of arrivals and lengths; the same seed gives the same figures.
    """
    scenario = parse_scenario(json.dumps(document["scenario"]), file=document["scenario_file"])
    fleets = {fleet.name: fleet for fleet in scenario.serving}
    found: list[Simulated] = []
    for workload in document["workloads"]:
        fleet = fleets.get(workload["name"])
        if fleet is None or workload["kind"] != "serving":
            continue
        for row in workload["allocations"]:
            point = row["point"]
            if point is None or row["role"] != "whole":
                continue
            facts = facts_of_row(row, scenario, catalog)
            if facts is None or point["requests_per_s"] <= 0:
                continue
            one = ReplicaSite(
                fleet=fleet,
                arch=load_model(fleet.model),
                catalog=catalog,
                device=facts.device,
                shape=facts.shape,
                inter_node_bytes_per_s=facts.inter_node_bytes_per_s,
                split=cast("Mapping[str, int]", row["layout"]),
            )
            found.append(_simulated(one, fleet, row, point, seed))
    return found


def simulation_findings(stated: Sequence[Simulated], again: Sequence[Simulated]) -> Iterator[Finding]:
    """Where a simulation, run again with its seed, shows something else.

    Figures agree to a millionth: the last bit of a logarithm hardly ever orders two events otherwise.
    """
    if len(again) != len(stated):
        yield Finding("wrong-simulation", f"{len(stated)} replicas are simulated, the plan has {len(again)}")
    for one, other in zip(stated, again):
        for path, told, found in _pairs(one, other):
            exact = not isinstance(found, float)
            if told != found if exact else not math.isclose(told, found, rel_tol=AGREES):
                yield Finding("wrong-simulation", f"{one['offer']}: {path} is {told!r}, simulated again {found!r}")


def _pairs(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name, found in other.items():
        if isinstance(found, Mapping):
            yield from ((f"{name}.{path}", *both) for path, *both in _pairs(one[name], found))
        else:
            yield name, one[name], found


def _simulated(one: ReplicaSite, fleet: ServingFleet, row: ServingAllocation, point: Point, seed: int) -> Simulated:
    users = max(round(point["users"]), 1) if "users" in point else 0
    load = simulate_replica(
        one.replicas.replica,
        _requests(fleet, row, point["requests_per_s"], seed, users),
        batch_limit=max(int(point["batch_limit"]), 1),
        max_batched_tokens=int(np.asarray(one.replicas.limits.max_batched_tokens).reshape(-1)[0]),
    )
    found: Simulated = {
        "workload": fleet.name,
        "offer": row["offer"],
        "device": row["device"],
        "seed": seed,
        "requests": load.requests,
        "requests_per_s": load.requests_per_s if users else point["requests_per_s"],
        "sequences": load.sequences,
        "ttft_s": _latency(load.ttft_s),
        "tpot_s": _latency(load.tpot_s),
        "e2e_s": _latency(load.e2e_s),
    }
    return {**found, "users": users} if users else found


def _latency(table: Mapping[str, Any]) -> SimulatedLatency:
    mean, p50, p95, p99 = (float(table[name]) for name in ("mean", "p50", "p95", "p99"))
    return {"mean": mean, "p50": p50, "p95": p95, "p99": p99}


def _requests(fleet: ServingFleet, row: ServingAllocation, rate: float, seed: int, users: int) -> Workload:
    """Requests of all classes in one stream, in the proportions in which the row is sent them.

    Users, where there are any, think for exponential times, and begin so.
    """
    rng, traffic = np.random.default_rng(seed), fleet.traffic
    sent = np.asarray(row["routed_requests_per_s"])
    count = max(REQUESTS, CYCLES * users)
    kind = rng.choice(len(sent), size=count, p=sent / sent.sum())
    variability = max(fleet.arrival_variability, 1e-9)
    think = rng.exponential(fleet.traffic.think_s, count) if users else None
    begin = (
        rng.exponential(fleet.traffic.think_s, users)
        if users
        else rng.gamma(1 / variability, variability / rate, count)
    )
    given, made = (
        _lengths(rng, mean[kind], second[kind])
        for mean, second in (
            (traffic.input_tokens, traffic.input_second_moment),
            (traffic.output_tokens, traffic.output_second_moment),
        )
    )
    cached = given * (fleet.prefix_cached or 0.0)
    arrival = np.sort(begin) if users else np.cumsum(begin)
    return Workload(arrival_s=arrival, input_tokens=given, output_tokens=made, cached_tokens=cached, think_s=think)


def _lengths(rng: np.random.Generator, mean: Any, second: Any) -> Any:
    """Log-normal lengths of these moments, whole and at least 1."""
    sigma = np.sqrt(np.log(np.maximum(second / mean**2, 1.0)))
    drawn = mean * np.exp(sigma * rng.standard_normal(len(mean)) - sigma**2 / 2)
    return np.maximum(np.rint(drawn), 1.0)
