"""What plans pay for rentals of jobs: increments, minimums, boot; and again in decimals, from catalog and rows."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any

import pytest

from planner import api
from planner.candidates.reprice import repriced
from planner.catalog.model import Catalog, Provenance, Provider
from planner.plan.document import digest_of
from planner.scenario.schema import Scenario
from tests.tiers import cases, while_time_lasts
from tests.verified import errors, follow_schema
from tests.worlds import catalog, device, job, offer, scenario, shape

STATED = Provenance(source="a page", as_of="2026-11-20", status="seen")
SHIPPED = api.load_catalog()
HOUR, TEN_MINUTES = 3600, 600  # of a listed provider whose increment, or whose boot, is unknown


def seller(name: str, step: int | None = None, least: int | None = None, boot: float | None = None) -> Provider:
    return Provider(
        id=name, kind="cloud", capacity="", billing_step_s=step, minimum_s=least, provenance=STATED,
        boot_s=boot, boot_provenance=None if boot is None else STATED,
    )  # fmt: skip


def world(*sellers: Provider) -> Catalog:
    made = catalog([device()], [shape("north/one")], [offer("north/one", 1.0)])
    return replace(made, providers={one.id: one for one in sellers})


def the_row(asked: Scenario, known: Catalog) -> Any:
    document: Any = api.solve(asked, known).document
    assert document["status"] == "optimal"
    assert errors(document, known) == []
    follow_schema(document)
    (row,) = document["workloads"][0]["allocations"]
    return row


def brief(tokens: str = "1B") -> Scenario:
    return scenario([job(tokens=tokens, deadline="10 h")])


@pytest.mark.parametrize(
    ("north", "billed_s"),
    [
        (None, 6000),  # who is not listed is paid for the run alone
        (seller("north", 1, 60, 0.0), 6000),
        (seller("north", 1, 60, 300.0), 6300),
        (seller("north", 1000, None, 300.0), 7000),
        (seller("north", 60, 9000, 300.0), 9000),
        (seller("north", None, None, 300.0), 2 * HOUR),
        (seller("north", 60, None, None), 6000 + TEN_MINUTES),
    ],
)
def test_a_job_is_billed_on_the_terms_of_its_provider(north: Provider | None, billed_s: int) -> None:
    row = the_row(scenario([job(deadline="6000 s")]), world(*([north] if north else [])))  # boot delays no deadline
    assert row["hours"] == pytest.approx(6000 / 3600, rel=1e-12)
    assert row["billed_hours"] == pytest.approx(billed_s / 3600, rel=1e-12)
    assert row["cost_microusd"] == round(billed_s * 1e6 / 3600)


def test_the_scenario_says_its_own_boot() -> None:
    asked = scenario([job()], hardware={"boot": "20 min"})
    assert the_row(asked, world(seller("north", 60, None, 300.0)))["billed_hours"] * 3600 == pytest.approx(7200)
    assert the_row(asked, world())["billed_hours"] * 3600 == pytest.approx(7200)


def test_owned_machines_and_fleets_are_not_billed_so() -> None:
    owned = [{"shape": "north/one", "count": 1, "price": "$0.5/h"}]
    row = the_row(scenario([job()], hardware={"owned": owned}), world(seller("north", HOUR, 86400, 3600.0)))
    assert row["price_model"] == "owned"
    assert (row["billed_hours"], row["cost_microusd"]) == (row["hours"], round(6000 * 0.5e6 / 3600))


def test_three_minutes_at_aws_are_billed_with_boot_by_the_second() -> None:
    """The hours of a short job used to be all that was paid for: cents for what nobody sells for cents."""
    asked = scenario([job(tokens="10M", deadline="3 h")], hardware={"providers": "aws", "allow": "h100-*"})
    aws = SHIPPED.providers["aws"]
    assert (aws.billing_step_s, aws.minimum_s) == (1, 60)
    assert aws.boot_s is not None
    assert aws.boot_s >= 120
    document: Any = api.solve(asked, SHIPPED).document
    (row,) = document["workloads"][0]["allocations"]
    seconds = row["billed_hours"] * 3600
    assert 150 < row["hours"] * 3600 < 250
    assert seconds == pytest.approx(round(seconds), abs=1e-6)
    assert 0 <= seconds - row["hours"] * 3600 - aws.boot_s < 1
    assert seconds >= 60
    exact = Decimal(round(seconds)) * row["count"] * row["price_microusd_per_hour"] / 3600
    assert row["cost_microusd"] == int(exact.to_integral_value(ROUND_HALF_EVEN))
    assert any(line.startswith("aws: jobs on what is rented by the hour") for line in document["assumed"])
    facts = {(fact["subject"], fact["fact"]): fact for fact in document["provenance"]["facts"]}
    assert facts["aws", "billing"]["value"] == "in steps of 1 s, 60 s at least"
    assert facts["aws", "boot"]["status"] == "inferred"


def test_of_equal_prices_the_better_bill_is_taken() -> None:
    made = catalog([device()], [shape("coarse/one"), shape("fine/one")],
                   [offer("coarse/one", 1.0), offer("fine/one", 1.0)])  # fmt: skip
    known = replace(made, providers={one.id: one for one in (seller("coarse", 3600), seller("fine", 60))})
    assert the_row(brief(), known)["provider"] == "fine"


def forged(document: Any, **cells: Any) -> Any:
    row = document["workloads"][0]["allocations"][0]
    row.update(cells)
    document["sha256"] = digest_of(document)
    return document


def test_a_forged_bill_is_found() -> None:
    known = world(seller("north", 3600, None, 300.0))
    row = the_row(brief(), known)
    for cells in ({"billed_hours": row["hours"]}, {"cost_microusd": 1_666_667}):
        document = forged(api.solve(brief(), known).document, **cells)
        assert {"wrong-time", "wrong-cost", "wrong-total"} & {one.reference for one in errors(document, known)}


def test_other_prices_bill_the_same_time() -> None:
    known = world(seller("north", 3600, None, 300.0))
    dearer = replace(known, offers=tuple(replace(one, price_microusd_per_hour=7_777_777) for one in known.offers))
    moved = repriced(api.enumerate_candidates(brief(), known), dearer)
    anew = api.enumerate_candidates(brief(), dearer)
    assert moved.program.cost_microusd.tolist() == anew.program.cost_microusd.tolist() != []


STEPS = (1, 60, 300, 600, 3600, None)


def random_question(draw: random.Random) -> tuple[Scenario, Catalog]:
    """One to three jobs and up to three providers with bills of their own, one of them listed nowhere."""
    names = ["north", "south", "west"][: draw.randint(1, 3)]
    sellers = [
        seller(name, draw.choice(STEPS), draw.choice((None, 60, 7200)), draw.choice((None, 0.0, 90.5, 600.0)))
        for name in names if draw.random() < 0.85
    ]  # fmt: skip
    shapes = [shape(f"{name}/{draw.choice((1, 2, 4))}", devices=draw.choice((1, 2, 4))) for name in names]
    offers = [offer(one.id, round(draw.uniform(0.1, 90.0), 6)) for one in shapes]
    known = replace(catalog([device()], shapes, offers), providers={one.id: one for one in sellers})
    jobs = [
        job(
            f"job{k}", tokens=f"{draw.randint(3, 4000)}M", deadline=f"{draw.randint(8, 90)} h", count=draw.randint(1, 3)
        )
        for k in range(draw.randint(1, 3))
    ]
    hardware = {"boot": f"{draw.randint(1, 4000)} s"} if draw.random() < 0.3 else {}
    return scenario(jobs, hardware=hardware), known


def decimal_cost(row: Mapping[str, Any], known: Catalog, boot: float | None) -> int:
    """Micro-dollars of a row: catalog and row, in decimals of 60 digits, with none of the planner's money."""
    with localcontext() as context:
        context.prec = 60
        price = next(one.price_microusd_per_hour for one in known.offers if one.id == row["offer"])
        shapes, found = row["count"] // row["jobs"], known.providers.get(row["provider"])
        hours = Decimal(repr(row["hours"]))
        if found is None and boot is None:
            seconds = 3600 * Decimal(f"{hours:.9e}")
        else:
            step, least, set_up = Decimal(1), Decimal(0), boot
            if found is not None:
                step, least = Decimal(found.billing_step_s or HOUR), Decimal(found.minimum_s or 0)
                set_up = boot if boot is not None else found.boot_s if found.boot_s is not None else TEN_MINUTES
            held = (hours * 3600 + Decimal(repr(set_up))) * (1 - Decimal("1e-9"))
            seconds = max((held / step).to_integral_value(ROUND_CEILING) * step, least)
        # divided last: a third of an hour does not end, and halves must stay halves
        return int(row["jobs"]) * int((seconds * shapes * price / 3600).to_integral_value(ROUND_HALF_EVEN))


def test_money_of_random_plans_in_decimals() -> None:
    """Equal to the micro-dollar, row by row and in all."""
    draw, solved = random.Random(41), 0
    for _ in while_time_lasts(range(cases(25, 500))):
        asked, known = random_question(draw)
        document: Any = api.solve(asked, known).document
        if document["status"] == "infeasible":
            continue
        solved += 1
        rows = [row for workload in document["workloads"] for row in workload["allocations"]]
        costs = [decimal_cost(row, known, asked.hardware.boot_s) for row in rows]
        assert [row["cost_microusd"] for row in rows] == costs
        assert document["summary"]["cost_microusd"] == sum(costs)
        assert errors(document, known) == []
    assert solved > 10
