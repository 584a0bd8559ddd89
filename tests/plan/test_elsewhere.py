"""What the same devices cost at large clouds and on marketplaces: by hand, forged, and where it is left out."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog, Offer, Provenance, Provider, Shape
from planner.plan.document import digest_of
from planner.report.alternatives_view import elsewhere_lines
from tests.verified import errors, follow_schema
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

SEEN = Provenance(source="a page", as_of="2026-11-20", status="seen")
KINDS = {"aws": "hyperscaler", "azure": "hyperscaler", "gcp": "hyperscaler", "north": "cloud", "bazaar": "marketplace"}
LARGE = ["aws", "gcp", "azure"]


def seller(name: str, step_s: float = 1.0) -> Provider:
    return Provider(id=name, kind=KINDS[name], capacity="", billing_step_s=step_s, minimum_s=0.0, provenance=SEEN,
                    boot_s=0.0, boot_provenance=SEEN)  # fmt: skip


def world(*more: tuple[Shape, Offer], steps: Mapping[str, float] | None = None) -> Catalog:
    """North at $1 a device-hour, and what else is sold; every price was seen, so that none is the user's own."""
    pairs = [(shape("north/one"), offer("north/one", 1.0)), *more]
    offers = [replace(one, provenance=SEEN) for _, one in pairs]
    made = catalog([device()], [one for one, _ in pairs], offers)
    return replace(made, providers={name: seller(name, (steps or {}).get(name, 1.0)) for name in KINDS})


def sold(name: str, dollars: float, devices: int = 1, **changes: Any) -> tuple[Shape, Offer]:
    offered = {key: changes.pop(key) for key in ("quality", "price_model", "max_shapes", "region") if key in changes}
    return shape(name, devices=devices, **changes), offer(name, dollars, **offered)


def solved(known: Catalog, asked: Any = None) -> Any:
    asked = asked or scenario([job(deadline="6000 s")])
    document: Any = json.loads(json.dumps(api.solve(asked, known).document))
    assert document["status"] == "optimal"
    assert errors(document, known) == []
    follow_schema(document)
    return document


def costs(document: Any) -> dict[str, int | None]:
    return {row["seller"]: row["cost_microusd"] for row in document["elsewhere"]}


def test_large_clouds_and_marketplaces_by_hand() -> None:
    """6000 s on one device: by the second at aws, in whole hours of two devices at gcp, not at azure at all."""
    known = world(sold("aws/p5", 3.0), sold("gcp/a3", 5.0, devices=2), sold("bazaar/box", 0.6), steps={"gcp": 3600.0})
    document = solved(known)
    assert costs(document) == {"aws": 5_000_000, "gcp": 10_000_000, "azure": None, "marketplaces": 1_000_000}
    by_name = {row["seller"]: row for row in document["elsewhere"]}
    here = document["workloads"][0]["cost_microusd"]
    assert here == round(6000 / 3600 * 1e6)
    assert by_name["aws"]["dearer"] == pytest.approx(5_000_000 / here - 1)
    assert by_name["aws"]["offers"] == ["aws/p5:r1:on_demand"]
    assert by_name["azure"] == {"seller": "azure", "here_microusd": here, "cost_microusd": None, "cost_usd": None,
                                "dearer": None, "offers": [], "missing": ["plain"]}  # fmt: skip
    first, second = elsewhere_lines(document)
    assert "aws $5.00 (+200 %); gcp $10.00 (+500 %); azure has no plain" in first
    assert "--set" not in first
    assert "would save $0.67" in second
    assert "bazaar" in second


def test_a_cloud_is_proposed_where_it_rents_out_something_that_is_allowed() -> None:
    """Clouds that sell no TPU were proposed to who allows TPUs alone: nothing met every limit there."""
    other = device("other")
    known = world(sold("aws/p5", 3.0))
    known = replace(
        known,
        devices={**known.devices, "other": other},
        shapes={**known.shapes, "azure/nd": shape("azure/nd", device="other")},
        offers=(*known.offers, replace(offer("azure/nd", 9.0), provenance=SEEN)),
    )
    asks: list[tuple[dict[str, Any], bool]] = [
        ({}, True), ({"allow": ["plain"]}, False), ({"deny": ["other"]}, False),
        ({"kinds": ["cloud"]}, False), ({"kinds": ["hyperscaler", "cloud"]}, True),
    ]  # fmt: skip
    for keys, proposed in asks:
        document = solved(known, scenario([job(deadline="6000 s")], hardware=keys))
        by_name = {row["seller"]: row for row in document["elsewhere"]}
        assert by_name["azure"].get("instead", []) == (["other"] if proposed else []), keys
        assert "instead" not in by_name["gcp"]
        (line, *_) = elsewhere_lines(document)
        assert ("--set hardware.providers=azure finds the best there" in line) == proposed
        for forged in (["other", "plain"], ["plain"]):
            by_name["azure"]["instead"] = forged
            assert errors({**document, "sha256": digest_of(document)}, known)
        del by_name["azure"]["instead"]  # as in plans that were saved before it was told
        assert errors({**document, "sha256": digest_of(document)}, known) == []


def test_a_cloud_that_is_excluded_is_not_held_out() -> None:
    known = world(sold("aws/p5", 3.0), sold("gcp/a3", 5.0))
    document = solved(known, scenario([job(deadline="6000 s")], hardware={"exclude": ["AWS"]}))
    assert list(costs(document)) == ["gcp", "azure", "marketplaces"]


def test_the_same_is_what_a_plan_made_for_that_seller_costs() -> None:
    """Where only the prices differ, the cheapest plan of the seller alone is the same: solved, not priced anew."""
    known = world(sold("aws/p5", 3.0), sold("aws/p4", 3.5), sold("bazaar/box", 0.6))
    told = costs(solved(known))
    for name, keys in (("aws", {"providers": "aws"}), ("marketplaces", {"kinds": ["marketplace"]})):
        alone = solved(known, scenario([job(deadline="6000 s")], hardware=keys))
        assert told[name] == alone["summary"]["cost_microusd"]


def test_replicas_fill_whole_machines() -> None:
    """Ten requests a second a device; 25 need three devices, which are two machines of two."""
    asked = scenario([], [fleet(qpm=1500)])
    document = solved(world(sold("aws/p5", 7.0, devices=2)), asked)
    (row,) = document["workloads"][0]["allocations"]
    assert row["devices"] == 3
    assert costs(document)["aws"] == round(2 * 7e6 * row["hours"])


@pytest.mark.parametrize(
    "changes",
    [{"quality": "suspect"}, {"price_model": "spot"}, {"max_shapes": 1}, {"inter_node_bytes_per_s_per_device": None},
     {"max_shapes_per_job": 1}, {"region": "r2"}],
)  # fmt: skip
def test_what_a_plan_could_not_rest_on_is_no_price(changes: dict[str, Any]) -> None:
    asked = scenario([job(deadline="3000 s")], hardware={"regions": ["r1"]})
    told = solved(world(sold("aws/p5", 3.0)), asked)
    assert told["workloads"][0]["allocations"][0]["devices"] == 2
    assert costs(told)["aws"] == 5_000_000
    assert costs(solved(world(sold("aws/p5", 3.0, **changes)), asked))["aws"] is None


def test_who_is_rented_from_already_is_not_compared() -> None:
    asked = scenario([job(deadline="6000 s")], hardware={"providers": "aws"})
    assert set(costs(solved(world(sold("aws/p5", 3.0)), asked))) == {"gcp", "azure", "marketplaces"}


@pytest.mark.parametrize("keys", [{"kinds": ["cloud"]}, {"kinds": ["cloud", "marketplace"]}])
def test_who_chose_kinds_is_told_of_no_marketplace(keys: dict[str, Any]) -> None:
    told = costs(solved(world(sold("bazaar/box", 1.6)), scenario([job(deadline="6000 s")], hardware=keys)))
    assert set(told) == set(LARGE)


def test_who_is_excluded_saves_nothing() -> None:
    asked = scenario([job(deadline="6000 s")], hardware={"exclude": ["bazaar"]})
    assert costs(solved(world(sold("bazaar/box", 0.6)), asked))["marketplaces"] is None


def test_a_catalog_that_lists_no_seller_has_nothing_to_compare() -> None:
    assert "elsewhere" not in solved(replace(world(), providers={}))


def test_what_is_owned_is_not_compared() -> None:
    asked = scenario([job()], hardware={"owned": [{"shape": "north/one", "count": 1, "price": "$0.1/h"}]})
    assert "elsewhere" not in solved(world(sold("aws/p5", 3.0)), asked)


def test_a_forged_comparison_is_found() -> None:
    known = world(sold("aws/p5", 3.0), sold("bazaar/box", 0.6))
    document = solved(known)
    cells = {"seller": "oci", "here_microusd": 1, "cost_microusd": 1, "cost_usd": 2.0, "dearer": 0.1, "offers": ["x"],
             "missing": ["x"]}  # fmt: skip
    assert set(cells) == set(document["elsewhere"][0])
    for index in range(len(document["elsewhere"])):
        for name, value in cells.items():
            other = copy.deepcopy(document)
            other["elsewhere"][index][name] = value
            other["sha256"] = digest_of(other)
            assert errors(other, known), (index, name)
    other = {**document, "elsewhere": document["elsewhere"][:-1]}
    assert errors({**other, "sha256": digest_of(other)}, known)
    del other["elsewhere"]  # who drops it all hides what others ask, as much as who drops a row
    assert errors({**other, "sha256": digest_of(other)}, known)


@pytest.mark.parametrize("more", [-1, 1])
def test_sellers_that_ask_the_same_but_for_a_fraction(more: int) -> None:
    """A millionth of a dollar in $160,000: the plan was refused by its own check, for the last digits of a share."""
    known = world(sold("aws/p5", 1.0), sold("azure/nd", 1.0))
    prices = {"north": 10**12, "aws": 10**11, "azure": 10**11 + more}
    dear = [replace(one, price_microusd_per_hour=prices[one.provider]) for one in known.offers]
    document = solved(replace(known, offers=tuple(dear)))
    (dearer,) = [row["dearer"] for row in document["elsewhere"] if row["dearer"] is not None]
    assert 0 < abs(dearer) < 1e-10


def test_machines_whose_network_is_unknown_are_told_from_those_that_are_not_sold() -> None:
    """Two machines of one device: azure sells them, but how they are joined is not known; aws sells none."""
    known = world(sold("azure/apart", 1.0, inter_node_bytes_per_s_per_device=None))
    document = solved(known, scenario([job(deadline="3000 s")], hardware={"regions": ["r1"]}))
    by_name = {row["seller"]: row for row in document["elsewhere"]}
    assert by_name["azure"]["missing"] == by_name["azure"]["unjoined"] == ["plain"]
    assert "unjoined" not in by_name["aws"]
    (line, *_) = elsewhere_lines(document)
    assert "aws has no plain; gcp has no plain; azure joins its plain by a network that is not known here" in line
    by_name["aws"]["unjoined"] = ["plain"]
    assert errors({**document, "sha256": digest_of(document)}, known)


def test_what_is_cheaper_elsewhere_is_said_to_be_prices_alone() -> None:
    """A provider whose own machines would take longer may look cheaper than what is proven the cheapest."""
    told = [{"seller": "gcp", "cost_microusd": 9_000_000, "dearer": -0.1, "here_microusd": 10_000_000, "missing": [],
             "offers": []}]  # fmt: skip
    (line,) = elsewhere_lines({"elsewhere": told, "scenario": {}})  # type: ignore[typeddict-item]
    assert "prices alone: its own machines may take longer" in line
    (line,) = elsewhere_lines({"elsewhere": [{**told[0], "dearer": 0.1}], "scenario": {}})  # type: ignore[typeddict-item]
    assert "prices alone" not in line
