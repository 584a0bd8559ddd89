"""The chosen replicas in a seeded simulation, beside what the formulas say of them: a check that is asked for.

Requests of every class come at random at the rate that the plan sends to one replica, at the median of the error
bands. Pools of prefill and decode are not simulated.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from planner.architecture.model import Architecture
from planner.catalog.model import Catalog
from planner.plan.checks.facts import facts_of_row
from planner.plan.rows.serving_point import ReplicaSite
from planner.scenario.load import parse_scenario
from planner.scenario.schema import ModelRef, ServingFleet
from planner.simulate import Workload, simulate_replica

Document = dict[str, Any]
REQUESTS = 20_000
_KEYS = ("mean", "p50", "p95", "p99")


def simulated_rows(
    document: Document, catalog: Catalog, load_model: Callable[[ModelRef | None], Architecture], *, seed: int = 0
) -> list[Document]:
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
    found: list[Document] = []
    for workload in document["workloads"]:
        fleet = fleets.get(workload["name"])
        rows = [row for row in workload["allocations"] if row.get("point") and row["role"] == "whole"]
        for row in rows if fleet else ():
            facts = facts_of_row(row, scenario, catalog)
            if facts is None or fleet is None or row["point"]["requests_per_s"] <= 0:
                continue
            one = ReplicaSite(
                fleet=fleet,
                arch=load_model(fleet.model),
                catalog=catalog,
                device=facts.device,
                shape=facts.shape,
                inter_node_bytes_per_s=facts.inter_node_bytes_per_s,
                split=row["layout"],
            )
            found.append({"workload": workload["name"], "offer": row["offer"], **_simulated(one, fleet, row, seed)})
    return found


def _simulated(one: ReplicaSite, fleet: ServingFleet, row: Document, seed: int) -> Document:
    rate = row["point"]["requests_per_s"]
    load = simulate_replica(
        one.replicas.replica,
        _requests(fleet, row, rate, seed),
        batch_limit=max(int(row["point"]["batch_limit"]), 1),
        max_batched_tokens=int(np.asarray(one.replicas.limits.max_batched_tokens).reshape(-1)[0]),
    )
    return {
        "device": row["device"],
        "seed": seed,
        "requests": load.requests,
        "requests_per_s": rate,
        "sequences": load.sequences,
        **{
            f"{name}_s": {key: float(table[key]) for key in _KEYS}
            for name, table in (("ttft", load.ttft_s), ("tpot", load.tpot_s), ("e2e", load.e2e_s))
        },
    }


def _requests(fleet: ServingFleet, row: Document, rate: float, seed: int) -> Workload:
    """Requests of all classes in one stream, in the proportions in which the row is sent them."""
    rng, traffic = np.random.default_rng(seed), fleet.traffic
    sent = np.asarray(row["routed_requests_per_s"])
    kind = rng.choice(len(sent), size=REQUESTS, p=sent / sent.sum())
    variability = max(fleet.arrival_variability, 1e-9)
    gaps = rng.gamma(1 / variability, variability / rate, REQUESTS)
    given, made = (
        _lengths(rng, mean[kind], second[kind])
        for mean, second in (
            (traffic.input_tokens, traffic.input_second_moment),
            (traffic.output_tokens, traffic.output_second_moment),
        )
    )
    cached = given * (fleet.prefix_cached or 0.0)
    return Workload(arrival_s=np.cumsum(gaps), input_tokens=given, output_tokens=made, cached_tokens=cached)


def _lengths(rng: np.random.Generator, mean: Any, second: Any) -> Any:
    """Log-normal lengths of these moments, whole and at least 1."""
    sigma = np.sqrt(np.log(np.maximum(second / mean**2, 1.0)))
    drawn = mean * np.exp(sigma * rng.standard_normal(len(mean)) - sigma**2 / 2)
    return np.maximum(np.rint(drawn), 1.0)
