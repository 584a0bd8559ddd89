"""Region patterns against the names that providers really use."""

from __future__ import annotations

from typing import Any

import pytest

from planner import api
from planner.catalog.model import Offer, Provenance
from planner.catalog.names import region_matches
from planner.errors import InputError
from tests.worlds import catalog, device, job, scenario, shape
from tests.worlds import offer as sold


def offer(region: str, zone: str = "", country: str = "") -> Offer:
    return Offer(
        id="x",
        provider="p",
        region=region,
        zone=zone,
        country=country,
        shape="p/s",
        price_model="on_demand",
        price_microusd_per_hour=1,
        provenance=Provenance(source="", as_of="", status="user"),
    )


GCP = offer("us-central1", "us-central1-a", "US")
AZURE = offer("eastus", "", "US")
RUNPOD = offer("US-CA-1", "", "US")
FINLAND = offer("FIN-03", "", "FI")
OSLO = offer("NORWAY-1", "", "NO")
NOWHERE = offer("default")


@pytest.mark.parametrize(
    ("place", "pattern", "expected"),
    [
        (GCP, "us-*", True),
        (AZURE, "us-*", True),
        (RUNPOD, "us-*", True),
        (FINLAND, "us-*", False),
        (NOWHERE, "us-*", False),
        (GCP, "us-central1", True),
        (GCP, "us-central1-a", True),
        (GCP, "us-central1-b", False),
        (GCP, "us-east*", False),
        (GCP, "US", True),
        (AZURE, "eastus", True),
        (FINLAND, "fi", True),
        (FINLAND, "fin-*", True),
        (OSLO, "fi*", False),
        (RUNPOD, "ca-*", False),  # Canada, not California
        (FINLAND, "eu", True),  # whatever its seller calls it
        (FINLAND, "eu-*", False),  # names that begin so
        (OSLO, "eu", False),
        (OSLO, "EEA", True),
        (GCP, "eu", False),
        (NOWHERE, "eu", False),
        (NOWHERE, "*", True),
        (NOWHERE, "default", True),
        (NOWHERE, "", False),
    ],
)
def test_region_matches(place: Offer, pattern: str, expected: bool) -> None:
    assert region_matches(place, pattern) is expected


def test_a_catalog_of_owned_machines_alone_needs_no_region() -> None:
    owned = [{"shape": "north/one", "count": 4, "price": "$0.5/h"}]
    plan = api.solve(scenario([job()], hardware={"owned": owned, "regions": ["*"]}), catalog(offers=[]))
    assert plan.status == "optimal"


@pytest.mark.parametrize(
    ("top", "of", "near"),
    [
        ({"hardware": {"regions": ["us-esat-1"]}}, "the catalog", "us-east-1"),
        ({"hardware": {"quotas": [{"region": "us-esat-1", "max_devices": 1}]}}, "the catalog", "us-east-1"),
        ({"hardware": {"discounts": [{"provider": "north", "region": "us-esat-1", "fraction": "5 %"}]}}, "north",
         "us-east-1"),
        ({"limits": {"sites": [{"provider": "South", "region": "us-east-1", "power": "1 kW"}]}}, "South", None),
        ({"limits": {"sites": [{"region": "hal", "power": "1 kW"}]}}, "the catalog", None),
    ],
)  # fmt: skip
def test_a_place_that_holds_for_nothing_is_refused(top: dict[str, Any], of: str, near: str | None) -> None:
    known = catalog(
        [device()], [shape("north/one"), shape("south/one")],
        [sold("north/one", 1.0, "us-east-1"), sold("south/one", 1.0, "hall-2")],
    )  # fmt: skip
    with pytest.raises(InputError) as caught:
        api.solve(scenario([job()], **top), known)
    (problem,) = caught.value.problems
    assert (problem.reference, len(problem.places)) == ("unknown-region", 1)
    assert problem.message.startswith(f"no region of {of} matches ")
    assert near is None or f"did you mean {near}" in problem.hint


def test_the_beginning_of_a_region_is_told_a_pattern_that_is_no_wider() -> None:
    """Who wrote us-east was told "us-*", which lets the west in, too."""
    names = ["us-east-1", "us-east4", "us-west-2"]
    offers = [sold("north/one", 1.0, name) for name in names]
    known = catalog([device()], [shape("north/one")], offers)
    for text, pattern in (("us-east", '"us-east*"'), ("us-west-", '"us-west-*"')):
        with pytest.raises(InputError) as caught:
            api.solve(scenario([job()], hardware={"regions": [text], "allow": ["plain"]}), known)
        assert caught.value.problems[0].hint.endswith(f": {pattern}")


def test_places_of_the_scenario_itself_may_be_named() -> None:
    known = catalog([device()], [shape("north/one")], [sold("north/one", 1.0, "us-east-1")])
    mine = {"shape": "north/one", "region": "cage-7", "price_model": "block", "price": "$1/h", "term": "30 days"}
    hardware = {
        "owned": [{"shape": "north/one", "count": 1, "price": "$1/h", "region": "Hall"}],
        "contracts": [mine],
        "quotas": [{"region": "cage-*", "max_devices": 8}, {"provider": "NORTH", "region": "us-*", "max_devices": 8}],
    }
    limits = {"sites": [{"region": "hall", "power": "20 kW"}]}
    assert api.solve(scenario([job()], hardware=hardware, limits=limits), known).status == "optimal"
