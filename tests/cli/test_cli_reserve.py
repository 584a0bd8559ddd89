"""Reserve or rent: decisions against every count of reservations, break-evens, and other futures by hand."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import planner
from planner import api
from planner.catalog.model import Catalog
from planner.errors import UsageError
from tests.cli.conftest import Run
from tests.tiers import cases
from tests.verified import follow_schema
from tests.worlds import catalog, device, fleet, offer, scenario, shape

YEAR = 8760
FUTURES = ("demand", "price", "end")


def world(rent: float, year: float, cap: int | None = None, three: float | None = None) -> Catalog:
    """One device for rent and under commitments, in dollars an hour."""
    offers = [offer("north/one", rent), offer("north/one", year, price_model="commitment_1y", max_shapes=cap)]
    if three is not None:
        offers.append(offer("north/one", three, price_model="commitment_3y"))
    return catalog([device()], [shape("north/one")], offers)


def asked(nodes: int, **changes: Any) -> Any:
    """A fleet that keeps so many nodes busy: 10 requests a second each."""
    return scenario([], [fleet("chat", qpm=600 * nodes, **changes)])


@pytest.mark.parametrize("seed", range(cases(8, 200)))
def test_what_is_reserved_is_the_best_of_every_count(seed: int) -> None:
    chance = random.Random(seed)
    nodes, cap = chance.randint(1, 6), chance.randint(1, 8)
    rent, year = (round(chance.uniform(0.5, 5.0), 2) for _ in range(2))
    found = api.reserve(asked(nodes), world(rent, year, cap), terms=["commitment_1y"], otherwise=False)
    (term,) = found.terms
    each = {n: round(1e6 * YEAR * (n * year + (nodes - n) * rent)) for n in range(min(nodes, cap) + 1)}
    assert (term["status"], term["cost_microusd"]) == ("optimal", min(each.values()))
    assert term["on_demand_microusd"] == each[0]
    if year < rent:
        (row,) = term["reserved"]
        assert (row["nodes"], row["fee_microusd"]) == (min(nodes, cap), round(1e6 * YEAR * year * min(nodes, cap)))
    elif year > rent:
        assert term["reserved"] == []


def test_a_commitment_breaks_even_where_use_makes_it_cheaper() -> None:
    (row,) = api.reserve(asked(1), world(4.0, 2.5), terms=["commitment_1y"], otherwise=False).break_evens
    hours = YEAR  # by brute force over hours of use: the least at which renting costs more than the fee
    least = next(used for used in range(hours + 1) if used * 4.0 >= hours * 2.5)
    assert row["use"] == pytest.approx(least / hours, rel=0.01)
    assert (row["on_demand"], row["term_hours"]) == ("north/one:r1:on_demand", YEAR)


def test_futures_keep_what_was_reserved() -> None:
    """Ten nodes at $4, all reserved at $2.5: less demand, lower prices, an end half-way."""
    (term,) = api.reserve(asked(10), world(4.0, 2.5), terms=["commitment_1y"]).terms
    fee, rented = 10 * 2.5 * YEAR, 10 * 4.0 * YEAR
    told = {one["happens"]: (one["on_demand_microusd"], one["reserved_microusd"]) for one in term["otherwise"]}
    assert tuple(told) == FUTURES
    assert told["demand"] == (round(0.7e6 * rented), round(1e6 * fee))
    assert told["price"] == (round(0.7e6 * rented), round(1e6 * fee))
    assert told["end"] == (round(0.5e6 * rented), round(1e6 * fee))


def test_what_is_not_reserved_is_rented_in_every_future() -> None:
    """Of ten nodes six can be had under contract: four are rented, one with less demand."""
    (term,) = api.reserve(asked(10), world(4.0, 2.5, cap=6), terms=["commitment_1y"]).terms
    kept = {one["happens"]: one["reserved_microusd"] for one in term["otherwise"]}
    fee = 6 * 2.5 * YEAR
    assert kept["demand"] == round(1e6 * (fee + 1 * 4.0 * YEAR))
    assert kept["price"] == round(1e6 * (fee + 0.7 * 4 * 4.0 * YEAR))
    assert kept["end"] == round(1e6 * (fee + 4 * 4.0 * YEAR / 2))


def test_both_terms_and_what_nobody_sells() -> None:
    found = api.reserve(asked(2), world(4.0, 2.5, three=2.0), otherwise=False)
    assert [(one["price_model"], one["term_hours"]) for one in found.terms] == [
        ("commitment_1y", YEAR), ("commitment_3y", 3 * YEAR),
    ]  # fmt: skip
    assert "RESERVE  2 × north/one in r1 for 3 years saves $105,120, 50% of renting" in str(found)
    nothing = api.reserve(asked(2), catalog([device()], [shape("north/one")], [offer("north/one", 1.0)]))
    assert (nothing.terms, nothing.break_evens, nothing.exit_code) == ([], [], 0)
    assert "RENT  nothing that is allowed can be committed to" in str(nothing)
    with pytest.raises(UsageError, match="no commitment"):
        planner.reserve(asked(2), world(4.0, 2.5), terms=["flex"])


def test_the_command(run: Run) -> None:
    asks = ("reserve", "scenarios/chat-fleet.yaml", "--set", "hardware.providers=azure", "--term", "commitment_3y",
            "--no-otherwise")  # fmt: skip
    document = json.loads(run(*asks, "-o", "json").out)
    follow_schema(document, "reserve")
    (term,) = document["terms"]
    assert term["saved_microusd"] == term["on_demand_microusd"] - term["cost_microusd"]
    uses = [row["use"] for row in document["break_evens"] if row["use"] is not None]
    assert uses == sorted(uses)
    assert {row["contract"] for row in document["break_evens"]} == {"savings plan", "reservation"}
    head, *lines = run(*asks, "-o", "csv").out.splitlines()
    assert head.startswith("offer,provider,region,device")
    assert len(lines) == len(document["break_evens"])
    assert "| Term | Reserve |" in run(*asks, "-o", "md").out
