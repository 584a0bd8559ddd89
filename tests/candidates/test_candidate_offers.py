"""Which offers a scenario may use, what caps them, and which share one evaluation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.candidates.ledger import Ledger
from planner.candidates.offers import LARGEST_JOB, Site, group_by_physics, quota_matches, shape_cap, sites_of
from planner.catalog.model import Catalog
from planner.scenario.schema import Scenario
from tests.worlds import GIB, catalog, device, job, offer, priced, scenario, shape


def world() -> Catalog:
    return catalog(
        [device("big-80gb", aliases=("Giant",)), device("big-40gb"), device("small")],
        [
            shape("north/four", "big-80gb", 4),
            shape("south/four", "big-80gb", 4),
            shape("north/two", "big-40gb", 2),
            shape("north/one", "small", inter_node_bytes_per_s_per_device=None),
        ],
        [
            offer("north/four", 10.0, "us-1"),
            offer("north/four", 4.0, "us-1", price_model="spot"),
            offer("north/four", 3.0, "us-1", price_model="commitment_1y"),
            offer("south/four", 8.0, "eu-1", country="DE"),
            offer("south/four", 1.0, "eu-2", country="DE", quality="suspect"),
            offer("south/four", 0.0, "eu-3", country="DE", quality="sentinel"),
            offer("north/two", 5.0, "us-2", max_shapes=6),
            offer("north/one", 0.5, "us-1"),
        ],
    )


def asked(**hardware: Any) -> Scenario:
    return scenario([job()], hardware=hardware)


def ids(scenario: Scenario, **options: Any) -> list[str]:
    return [site.offer.id for site in sites_of(scenario, world(), Ledger(workload="x"), **options)]


def drops(scenario: Scenario, **options: Any) -> dict[str, int]:
    ledger = Ledger(workload="x")
    sites_of(scenario, world(), ledger, **options)
    return {drop.reason: drop.count for drop in ledger}


ON_DEMAND = [
    "north/four:us-1:on_demand",
    "north/one:us-1:on_demand",
    "north/two:us-2:on_demand",
    "south/four:eu-1:on_demand",
]


def test_by_default_every_sound_offer_on_demand() -> None:
    assert ids(asked()) == ON_DEMAND
    assert drops(asked()) == {"price-model": 2, "suspect-price": 2}


def test_offers_seen_are_used_or_counted_by_reason() -> None:
    for plan in (asked(), asked(allow=["big"]), asked(regions=["us-*"]), asked(deny=["small"])):
        ledger = Ledger(workload="x")
        used = sites_of(plan, world(), ledger)
        assert ledger.offers_seen == len(world().offers) == len(used) + sum(drop.count for drop in ledger)


@pytest.mark.parametrize(
    ("allow", "deny", "expected"),
    [
        (["big-80gb"], [], ["north/four", "south/four"]),
        (["gIANT"], [], ["north/four", "south/four"]),  # an alias, whatever its capitals
        (["big"], [], ["north/four", "north/two", "south/four"]),  # the first words of an id
        (["big-*"], ["*-40gb"], ["north/four", "south/four"]),
        (["*"], ["big"], ["north/one"]),
        (["small", "big-40gb"], [], ["north/one", "north/two"]),
        (["big-80"], [], []),  # half a word is no word
    ],
)
def test_allow_and_deny(allow: list[str], deny: list[str], expected: list[str]) -> None:
    found = ids(asked(allow=allow, deny=deny))
    assert [name.split(":")[0] for name in found] == expected


@pytest.mark.parametrize(
    ("regions", "expected"),
    [
        (["us-1"], ["north/four:us-1", "north/one:us-1"]),
        (["us-*"], ["north/four:us-1", "north/one:us-1", "north/two:us-2"]),
        (["de"], ["south/four:eu-1"]),
        (["de-*", "us-2"], ["north/two:us-2", "south/four:eu-1"]),
    ],
)
def test_regions(regions: list[str], expected: list[str]) -> None:
    assert ids(asked(regions=regions)) == [f"{name}:on_demand" for name in expected]


def test_price_models() -> None:
    assert ids(priced(asked(), "spot")) == ["north/four:us-1:spot"]
    # what is reserved is no place to run at: a pool is
    assert ids(priced(asked(), "commitment_1y", "spot")) == ["north/four:us-1:spot"]


def test_suspect_prices_need_permission_and_sentinels_never_get_it() -> None:
    assert "south/four:eu-2:on_demand" in ids(asked(), allow_suspect=True)
    assert "south/four:eu-3:on_demand" not in ids(asked(), allow_suspect=True)
    assert drops(asked(), allow_suspect=True)["suspect-price"] == 1


def test_an_offer_is_dropped_for_the_first_reason_only() -> None:
    strict = asked(allow=["small"], regions=["nowhere-*"])
    assert drops(strict) == {"not-allowed": 7, "region": 1}


# ---- owned


def test_owned_shapes_pass_every_filter() -> None:
    owned = [{"shape": "north/four", "count": 2, "price": "$1.25/h", "region": "cellar"}]
    sites = sites_of(asked(owned=owned, allow=["small"], regions=["us-*"]), world(), Ledger(workload="x"))
    mine = next(site for site in sites if site.owned is not None)
    assert (mine.owned, mine.offer.id, mine.offer.provider) == (0, "owned:0:north/four", "owned")
    assert (mine.offer.region, mine.offer.price_model) == ("cellar", "owned")
    assert (mine.offer.price_microusd_per_hour, mine.offer.max_shapes) == (1_250_000, 2)
    assert [site.offer.id for site in sites] == ["north/one:us-1:on_demand", "owned:0:north/four"]


def test_two_lots_of_one_shape_stay_apart() -> None:
    lots = [{"shape": "north/four", "count": n, "price": f"${n}/h"} for n in (1, 2)]
    sites = sites_of(asked(owned=lots, allow=["small"]), world(), Ledger(workload="x"))
    assert [(site.offer.id, site.owned) for site in sites if site.owned is not None] == [
        ("owned:0:north/four", 0),
        ("owned:1:north/four", 1),
    ]


# ---- caps


def site(plan: Scenario, name: str) -> Site:
    every = sites_of(priced(plan, "on_demand", "spot"), world(), Ledger(workload="x"))
    return next(one for one in every if one.offer.id == name)


@pytest.mark.parametrize(
    ("top", "name", "cap"),
    [
        ({}, "north/four:us-1:on_demand", LARGEST_JOB),
        ({}, "north/two:us-2:on_demand", 6),  # sold up to six
        ({"limits": {"max_devices": 10}}, "north/four:us-1:on_demand", 2),  # ten devices are two whole shapes
        ({"limits": {"max_devices": 3}}, "north/four:us-1:on_demand", 0),
        ({"limits": {"max_devices": 0}}, "north/one:us-1:on_demand", 0),
        ({"hardware": {"quotas": [{"device": "big", "max_devices": 9}]}}, "north/four:us-1:on_demand", 2),
        ({"hardware": {"quotas": [{"device": "big", "max_devices": 9}]}}, "north/one:us-1:on_demand", 65536),
        ({"hardware": {"quotas": [{"device": "big", "max_shapes": 5}]}}, "north/two:us-2:on_demand", 5),
        ({"hardware": {"quotas": [{"device": "big", "max_shapes": 7}]}}, "north/two:us-2:on_demand", 6),
        ({"hardware": {"quotas": [{"provider": "north", "max_shapes": 5}, {"region": "us-*", "max_shapes": 3}]}},
         "north/one:us-1:on_demand", 3),
        ({"hardware": {"quotas": [{"device": "big", "max_devices": 0}]}}, "south/four:eu-1:on_demand", 0),
        ({"hardware": {"quotas": [{"price_model": "spot", "max_devices": 8}]}}, "north/four:us-1:on_demand", 65536),
        ({"hardware": {"quotas": [{"price_model": "spot", "max_devices": 8}]}}, "north/four:us-1:spot", 2),
    ],
)  # fmt: skip
def test_caps_of_one_task(top: dict[str, Any], name: str, cap: int) -> None:
    plan = scenario([job()], **top)
    assert shape_cap(plan, site(plan, name)) == cap


def test_a_slice_has_its_own_largest_job() -> None:
    plan = asked()
    limited = replace(
        site(plan, "north/four:us-1:on_demand"), shape=shape("north/four", devices=4, max_shapes_per_job=1)
    )
    assert shape_cap(plan, limited) == 1


def test_quotas_count_neither_owned_nor_reserved_shapes() -> None:
    owned = [{"shape": "north/four", "count": 2, "price": "$1/h"}]
    plan = asked(owned=owned, quotas=[{"device": "big", "max_devices": 4}])
    quota = plan.hardware.quotas[0]
    every = sites_of(priced(plan, "on_demand", "spot", "commitment_1y"), world(), Ledger(workload="x"))
    counted = {one.offer.id for one in every if quota_matches(one, quota)}
    assert counted == {"north/four:us-1:on_demand", "north/four:us-1:spot", "north/two:us-2:on_demand",
                       "south/four:eu-1:on_demand"}  # fmt: skip
    mine = next(one for one in every if one.owned == 0)
    assert shape_cap(plan, mine) == 2


# ---- groups


def test_price_and_place_do_not_split_a_group() -> None:
    sites = sites_of(asked(), world(), Ledger(workload="x"))
    groups = [[one.offer.id for one in group] for group in group_by_physics(sites)]
    assert ["north/four:us-1:on_demand", "south/four:eu-1:on_demand"] in groups
    assert sorted(name for group in groups for name in group) == ON_DEMAND


@pytest.mark.parametrize(
    "change",
    [
        {"device": "small"},
        {"devices": 2},
        {"scale_up_devices": 1},
        {"compute_share": 0.5},
        {"bandwidth_share": 0.5},
        {"memory_bytes_per_device": 10 * GIB},
        {"torus": (2, 2)},
    ],
)
def test_everything_that_changes_the_machine_splits_a_group(change: dict[str, Any]) -> None:
    plan = asked()
    one = site(plan, "north/four:us-1:on_demand")
    other = replace(one, shape=replace(one.shape, **change))
    assert len(group_by_physics([one, other])) == 2
    assert len(group_by_physics([one, replace(one, inter_node_bytes_per_s=None)])) == 2


def test_an_assumed_network_reaches_the_site() -> None:
    plain, assumed = asked(), asked(assume_inter_node="80 Gbit/s")
    assert site(plain, "north/one:us-1:on_demand").inter_node_bytes_per_s is None
    assert site(assumed, "north/one:us-1:on_demand").inter_node_bytes_per_s == 1e10
    assert site(assumed, "north/four:us-1:on_demand").inter_node_bytes_per_s == 1e11  # a fact stays
