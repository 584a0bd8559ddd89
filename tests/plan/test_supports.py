"""The columns that a bound rests on are recomputed by code of the verifier: a listing that errs is not believed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.analysis.supports import support_findings
from planner.candidates.search import Candidates
from planner.plan.references import load_model
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

ASKED = scenario(
    [job("train", tokens="10B", deadline="30000 s", count=2)],
    [fleet("chat", qpm=1500, spare_replicas=1)],
    hardware={"quotas": [{"device": "plain", "max_devices": 6}]},
)


@pytest.fixture(scope="module")
def listed() -> tuple[Candidates, Any]:
    world = catalog(
        [device(), device("other", measured_matmul_flop_per_s={})],
        [shape(), shape("south/other", device="other")],
        [offer(), offer("south/other", 1.4)],
    )
    certificate = json.loads(api.solve(ASKED, world).to_json())["certificate"]
    return api.enumerate_candidates(ASKED, world), certificate


def found(candidates: Candidates, certificate: Any) -> list[str]:
    return [finding.message for finding in support_findings(candidates, certificate, load_model)]


def test_a_true_listing_is_agreed_to(listed: tuple[Candidates, Any]) -> None:
    assert found(*listed) == []


def test_a_column_alone_has_the_replicas_that_are_asked_for() -> None:
    """A fleet of one replica, of which three are asked for, once made the verifier refuse every plan of it."""
    world = catalog([device()], [shape()], [offer()])
    document = api.solve(scenario(serving=[fleet("chat", qpm=1, min_replicas=3)]), world).document
    assert api.verify(document, world) == []


@pytest.mark.parametrize("task", [0, 1])
@pytest.mark.parametrize(("factor", "wrong"), [(1, False), (2, True)])
def test_a_column_that_is_charged_more_in_the_bound_than_it_costs_is_found(
    listed: tuple[Candidates, Any], task: int, factor: int, wrong: bool
) -> None:
    """A bound of columns at twice their price would be above the cheapest plan."""
    candidates, certificate = listed
    cost = np.array(candidates.whole.cost_microusd)
    part = candidates.whole.tasks[task]
    cost[part.first : part.stop] *= factor
    dear = replace(candidates, whole=replace(candidates.whole, cost_microusd=cost))
    assert bool(found(dear, certificate)) == wrong


@pytest.mark.parametrize("name", ["train", "chat"])
def test_a_table_that_errs_is_found_in_the_rows_made_from_it(listed: tuple[Candidates, Any], name: str) -> None:
    """Prices, and with them costs, of every way twice what the catalog says, in the table and in the bound."""
    candidates, certificate = listed
    table: Any = candidates.tables[name]
    sites = [
        replace(site, offer=replace(site.offer, price_microusd_per_hour=2 * site.offer.price_microusd_per_hour))
        for site in table.sites
    ]
    doubled = replace(table, sites=sites, cost_microusd=[2 * cost for cost in table.cost_microusd])
    part = next(task for task in candidates.whole.tasks if task.name == name)
    cost = np.array(candidates.whole.cost_microusd)
    cost[part.first : part.stop] *= 2
    erring = replace(
        candidates,
        tables={**candidates.tables, name: doubled},
        whole=replace(candidates.whole, cost_microusd=cost),
    )
    assert any("the catalog has" in message for message in found(erring, certificate))
