"""Region patterns against the names that providers really use."""

from __future__ import annotations

import pytest

from planner import api
from planner.catalog.model import Offer, Provenance
from planner.catalog.regions import region_matches
from tests.worlds import catalog, job, scenario


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
