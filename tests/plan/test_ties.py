"""Which of several equally cheap plans is the answer, what the plan says of it, and what may be called optimal."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.api.checking import check
from planner.candidates.program import tolerance_microusd
from planner.candidates.prune import alone_units
from planner.catalog.model import Catalog
from planner.errors import UsageError
from planner.plan.document import resealed
from planner.scenario.load import parse_scenario
from tests import frozen, worlds
from tests.tiers import cases
from tests.verified import errors

MODELS = ("qwen2.5-1.5b", "qwen2.5-7b", "llama-3.1-8b", "llama-3.2-1b", "llama-3.2-3b")
HARDWARE: tuple[dict[str, Any], ...] = (  # nodes of eight, cards alone, both
    {"allow": ["h100-sxm-80gb"], "regions": "us-east-2"},
    {"allow": ["l4"]},
    {"allow": ["a100-*", "l4"], "regions": "us-*"},
)


def test_ten_micro_dollars_rent_no_64_machines() -> None:
    document = frozen.plan("a100-rules").document
    (row,) = document["workloads"][0]["allocations"]
    assert row["devices"] <= 32
    assert document["ties"]["rows"][0]["by"][0] == "devices"
    exact = api.solve(frozen.scenario("a100-rules"), frozen.catalog(), tie_tolerance=0.0).document
    dearer = (document["summary"]["cost_microusd"] or 0) - (exact["summary"]["cost_microusd"] or 0)
    assert 0 < dearer <= 10
    assert sum(one["devices"] for one in exact["workloads"][0]["allocations"]) > 32


def test_no_pipeline_where_as_cheap_a_plan_without_one_exists() -> None:
    told = 0
    for seed in range(cases(6, 50)):
        rng = random.Random(seed)
        fleet = {"name": "f", "model": rng.choice(MODELS), "qpm": rng.choice([30, 60, 120, 300, 600])}
        fleet |= {"input_tokens": rng.choice([200, 500, 1500]), "output_tokens": rng.choice([50, 200, 400])}
        fleet |= {"layout": {"pp": [1, 2, 4, 8]}} if seed % 2 else {}  # left open, none is proposed of what fits anyway
        asked = {"schema": "plan/v1", "name": "small", "serving": [fleet], "hardware": HARDWARE[seed % 3]}
        session = api.session(parse_scenario(json.dumps(asked), file="small.yaml"), frozen.catalog())
        document = session.solve().document
        rows, whole, table = (
            document["workloads"][0]["allocations"],
            session.candidates.whole,
            session.candidates.tables["f"],
        )
        cost = document["summary"]["cost_microusd"] or 0
        most = cost + tolerance_microusd(cost)
        alone = whole.cost_microusd * alone_units(whole, whole.tasks[0])
        plain = [table.layout_row(k)["pp"] == 1 for k in np.flatnonzero(alone <= most).tolist()]  # type: ignore[union-attr]
        assert not any(plain) or all(row["layout"]["pp"] == 1 for row in rows), seed
        told += "pipelined" in str(document["ties"]["rows"])
    assert told >= cases(1, 3)


def two_sizes(dearer_microusd: int, dollars: float = 6.0) -> Catalog:
    """One machine, and two of twice the price together, which is a little less in all when the first is dearer."""
    shapes = [worlds.shape("north/one"), worlds.shape("north/two", devices=2)]
    offers = [worlds.offer("north/one", dollars), worlds.offer("north/two", 2 * dollars)]
    price = offers[0].price_microusd_per_hour + dearer_microusd
    return worlds.catalog(shapes=shapes, offers=[replace(offers[0], price_microusd_per_hour=price), offers[1]])


JOB = worlds.scenario([worlds.job(deadline="7000 s")])


@pytest.mark.parametrize(("dearer_microusd", "devices"), [(0, 1), (5_000, 1), (7_000, 2)])
def test_what_is_as_cheap(dearer_microusd: int, devices: int) -> None:
    """6000 s at a price per hour: 5,000 micro-dollars an hour are 8,333 in all, 7,000 are 11,667, above a cent."""
    catalog = two_sizes(dearer_microusd)
    document = api.solve(JOB, catalog).document
    assert document["summary"]["devices"] == devices
    assert check(document, catalog).standing.proven


def test_no_more_than_the_tolerance_is_called_optimal() -> None:
    """The plan of a larger tolerance is proven at that one alone, and a larger one still is refused."""
    catalog = two_sizes(60_000, dollars=600.0)  # ten cents of a thousand dollars
    assert api.solve(JOB, catalog).document["summary"]["devices"] == 2
    wide = api.solve(JOB, catalog, tie_tolerance=1e-3)
    assert wide.document["summary"]["devices"] == 1
    assert check(wide.document, catalog).standing.proven
    claims = json.loads(wide.to_json())
    claims["ties"]["tolerance"] = 1e-6
    found = check(resealed(claims), catalog)
    assert not found.standing.proven
    claims["ties"]["tolerance"] = 0.5
    assert [problem.reference for problem in errors(resealed(claims), catalog)] == ["malformed-plan"]
    with pytest.raises(UsageError, match=r"at most 0\.001"):
        api.solve(JOB, catalog, tie_tolerance=0.5)


def test_a_share_of_zero_or_one_may_be_a_whole_number() -> None:
    """`gap=0`, which is the default as the float 0.0, ended as a plan that contradicts itself."""
    catalog = two_sizes(60_000)
    shares: list[dict[str, Any]] = [{"gap": 0}, {"gap": 1}, {"tie_tolerance": 0}]
    for share in shares:
        assert errors(api.solve(JOB, catalog, **share).document, catalog) == []
    for gap in (-0.1, 1.1):
        with pytest.raises(UsageError, match="the gap is"):
            api.solve(JOB, catalog, gap=gap)


def test_a_tie_is_told_in_the_terminal() -> None:
    from planner.report.plan_formats import render_plan

    text = render_plan(api.solve(JOB, two_sizes(0)).document, "table", width=200)
    assert "other ways are as cheap; decided by fewer devices" in text


@pytest.mark.parametrize("tokens", ["5B", "20B"])
def test_jobs_on_two_devices_tie_by_the_one_that_costs_most(tokens: str) -> None:
    """Builder and verifier took another of the two: the plan ended as an error of our own."""
    few = {"allow": ["h200-*", "a100-*"], "pricing": ["on_demand"], "quotas": [{"device": "h200-*", "max_shapes": 1}]}
    jobs = worlds.job(model="qwen2.5-7b", tokens=tokens, deadline="6 days", count=3)
    document: Any = api.solve(worlds.scenario([jobs], hardware=few)).document
    (stated,) = document["workloads"]
    assert len({row["device"] for row in stated["allocations"]}) == 2
    assert not errors(document)


def test_workloads_of_equal_price_stand_in_one_region_where_one_sells_it_all() -> None:
    """Each took the first region by name that sells its device: one in r0, one in r1, where r2 sells both alike."""
    halves = worlds.device("half", peak_flop_per_s={"fp16": worlds.PEAK_FLOP_PER_S})
    whole = worlds.device("whole", peak_flop_per_s={"fp32": worlds.PEAK_FLOP_PER_S})
    known = worlds.catalog(
        [halves, whole],
        [worlds.shape("north/half", "half"), worlds.shape("north/whole", "whole")],
        [worlds.offer(f"north/{name}", 1.0, region=region)
         for name, others in (("half", "r0"), ("whole", "r1")) for region in (others, "r2")],
    )  # fmt: skip
    jobs = [worlds.job("a", precision="fp16"), worlds.job("b", precision="fp32")]
    rows = [row for one in api.solve(worlds.scenario(jobs), known).document["workloads"] for row in one["allocations"]]
    assert [(row["device"], row["region"]) for row in rows] == [("half", "r2"), ("whole", "r2")]
    (alone,) = api.solve(worlds.scenario(jobs[:1]), known).document["workloads"][0]["allocations"]
    assert alone["region"] == "r0"
