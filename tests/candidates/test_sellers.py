"""Whom a scenario rents from: named, excluded, of a kind; marketplaces only where they are meant; prices nobody saw."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from planner import api
from planner.candidates.ledger import Ledger
from planner.candidates.offers import sites_of
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog, Provenance, Provider
from planner.errors import InputError
from planner.estimate.market import market
from planner.scenario.schema import Scenario
from tests.tiers import cases
from tests.worlds import catalog, device, job, offer, scenario, shape

STATED = Provenance(source="a page", as_of="2026-11-20", status="seen")
BIG, CLOUD, BAZAAR = "big/four:us-1:on_demand", "cloud/four:eu-1:on_demand", "bazaar/four:xx:on_demand"
OURS = "owned:0:cloud/four"
RARE, KEPT = "bazaar/one:xx:on_demand", "cloud/four:eu-1:commitment_1y"


def seller(name: str, kind: str) -> Provider:
    return Provider(id=name, kind=kind, capacity="", billing_step_s=None, minimum_s=None, provenance=STATED)


def world() -> Catalog:
    made = catalog(
        [device("fast"), device("rare")],
        [shape("big/four", "fast", 4), shape("cloud/four", "fast", 4), shape("bazaar/four", "fast", 4),
         shape("bazaar/one", "rare")],
        [
            offer("big/four", 40.0, "us-1"), offer("cloud/four", 20.0, "eu-1"), offer("bazaar/four", 5.0, "xx"),
            offer("bazaar/one", 1.0, "xx"), offer("cloud/four", 9.0, "eu-1", price_model="commitment_1y"),
        ],
    )  # fmt: skip
    kinds = {"big": "hyperscaler", "cloud": "cloud", "bazaar": "marketplace"}
    offers = tuple(replace(one, provenance=STATED) for one in made.offers)  # seen in a list, not the user's own
    return replace(made, offers=offers, providers={name: seller(name, kind) for name, kind in kinds.items()})


def asked(**hardware: Any) -> Scenario:
    return scenario([job()], hardware=hardware)


def ids(known: Catalog | None = None, **hardware: Any) -> list[str]:
    return [site.offer.id for site in sites_of(asked(**hardware), known or world(), Ledger(workload="x"))]


@pytest.mark.parametrize(
    ("hardware", "found"),
    [
        ({}, [BIG, CLOUD]),
        ({"providers": ["*"]}, [BIG, CLOUD]),
        ({"providers": ["b*"]}, [BAZAAR, RARE, BIG]),  # a pattern that is not "*" names the marketplace, too
        ({"providers": ["Cloud"]}, [CLOUD]),
        ({"exclude": ["cloud"]}, [BIG]),
        ({"providers": ["big", "cloud"], "exclude": ["big"]}, [CLOUD]),
        ({"kinds": ["marketplace", "cloud"]}, [BAZAAR, RARE, CLOUD]),
        ({"kinds": "hyperscaler"}, [BIG]),
        ({"kinds": "owned", "owned": [{"shape": "cloud/four", "count": 1, "price": "$1/h"}]}, [OURS]),  # none is rented
        ({"allow": ["rare"]}, [RARE]),  # nobody else sells it
        ({"allow": ["fast", "rare"]}, [RARE, BIG, CLOUD]),
        ({"allow": ["rare"], "exclude": ["bazaar"]}, []),
        ({"allow": ["fast"], "exclude": ["big", "cloud"]}, [BAZAAR]),  # of those left nobody else sells it
    ],
)
def test_sellers(hardware: dict[str, Any], found: list[str]) -> None:
    assert ids(**hardware) == sorted(found)


def test_a_price_of_ones_own_is_no_marketplaces() -> None:
    known = world()
    offers = tuple(
        replace(one, provenance=replace(one.provenance, status="user")) if one.id == BAZAAR else one
        for one in known.offers
    )
    assert ids(replace(known, offers=offers)) == sorted([BIG, CLOUD, BAZAAR])


def test_what_was_left_out_is_counted() -> None:
    ledger = Ledger(workload="x")
    sites_of(asked(exclude=["big"]), world(), ledger)
    assert {drop.reason: drop.count for drop in ledger} == {"provider": 1, "marketplace": 2, "price-model": 1}


@pytest.mark.parametrize(
    ("hardware", "words"),
    [
        ({"pricing": ["on_demand", "flex"], "flex": {"wait": "1 h"}}, "as commitment_1y, on_demand"),
        ({"allow": ["rare"], "pricing": ["commitment_1y"]}, "offered as on_demand"),
    ],
)
def test_price_models_on_which_nothing_is_sold_are_refused(hardware: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        ids(**hardware)
    assert [problem.reference for problem in caught.value.problems] == ["no-offer"]
    assert words in caught.value.problems[0].hint


def test_an_auction_is_no_price_model_that_one_is_told_to_ask_for() -> None:
    """hardware.pricing has no such word; of H200 and B200 it was the first of those that were told."""
    known = world()
    floors = tuple(replace(one, id=f"{one.id}!", price_model="auction") for one in known.offers)
    with pytest.raises(InputError) as caught:
        ids(replace(known, offers=known.offers + floors), pricing=["block"])
    assert "auction" not in caught.value.problems[0].hint
    assert "offered as commitment_1y, on_demand;" in caught.value.problems[0].hint


@pytest.mark.parametrize(
    ("hardware", "words"),
    [
        ({"providers": ["clod"]}, "did you mean cloud?"),
        ({"exclude": ["nobody-at-all"]}, "plan catalog list"),
        ({"providers": ["owned"]}, 'exclude: ["*"]'),
    ],
)
def test_names_of_providers_that_nobody_has_are_refused(hardware: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        api.enumerate_candidates(asked(**hardware), world())
    (problem,) = caught.value.problems
    assert (problem.reference, len(problem.places)) == ("unknown-provider", 1)
    assert words in problem.hint


@pytest.mark.parametrize(("name", "meant"), [("oracle", "oci"), ("Google-Cloud", "gcp"), ("amazon", "aws")])
def test_a_company_names_its_cloud(name: str, meant: str) -> None:
    """Whoever wrote oracle was asked whether onprem was meant, which rents out nothing."""
    with pytest.raises(InputError) as caught:
        api.enumerate_candidates(asked(providers=[name]), load_catalog())
    assert caught.value.problems[0].hint == f"did you mean {meant}?"


def test_a_recalled_price_counts_only_where_it_is_allowed() -> None:
    known = world()
    offers = tuple(
        replace(one, provenance=replace(one.provenance, status="recalled")) if one.id == CLOUD else one
        for one in known.offers
    )
    known = replace(known, offers=offers)
    assert ids(known) == [BIG]
    assert ids(known, allow_recalled=True) == [BIG, CLOUD]


def test_capitals_of_a_provider_do_not_lose_a_discount() -> None:
    changed = market(asked(discounts=[{"provider": "Big", "fraction": "50 %"}]), world())
    assert {one.id: one.price_microusd_per_hour for one in changed.offers}[BIG] == 20_000_000


def test_a_rise_is_a_discount_below_zero() -> None:
    changed = market(asked(discounts=[{"device": "fast", "fraction": "-20 %"}]), world())
    prices = {one.id: (one.price_microusd_per_hour, one.provenance.source) for one in changed.offers}
    assert prices[BIG][0] == 48_000_000
    assert prices[BIG][1].endswith(", plus 20 % (scenario)")
    assert prices[RARE][0] == 1_000_000


@pytest.mark.parametrize("seed", range(cases(40, 500)))
def test_nothing_doubtful_is_offered_to_a_scenario_that_does_not_ask(seed: int) -> None:
    """Of what ships: no flagged and no recalled price, and marketplaces only where they are named or alone."""
    known, chance = api.load_catalog(), random.Random(seed)
    providers = sorted(known.providers)
    sold = {known.shapes[offer.shape].device for offer in known.offers if offer.price_model == "spot"}
    hardware: dict[str, Any] = {"allow": chance.sample(sorted(sold), 3) if seed % 3 else ["*"]}
    hardware["pricing"] = chance.choice(["spot", ["on_demand", "spot"]])
    hardware["spot"] = {"interruptions": "0.05 /h"}
    if chance.random() < 0.5:
        hardware["exclude"] = chance.sample(providers, 3)
    if chance.random() < 0.3:
        hardware["providers"] = chance.sample(providers, 6)
    sites = sites_of(asked(**hardware), known, Ledger(workload="x"))
    named = hardware.get("providers", [])
    promised = {site.device.id for site in sites if known.providers[site.offer.provider].kind != "marketplace"}
    for site in sites:
        assert (site.offer.quality, site.offer.provenance.status != "recalled") == ("", True)
        assert site.offer.provider not in hardware.get("exclude", [])
        if known.providers[site.offer.provider].kind == "marketplace" and site.offer.provider not in named:
            assert site.device.id not in promised
