"""Plans say who of their sellers promises nothing, and what is more than one may expect on demand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Capacity, Catalog, Provenance, Provider
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

STATED = Provenance(source="assumed", as_of="2026-11-20", status="inferred")


def world(kind: str, stock: dict[tuple[str, str], int]) -> Catalog:
    """One device of the family hopper, sold by one provider of a kind."""
    made = catalog([device(family="hopper")], [shape("north/one")], [offer("north/one", 1.0)])
    north = Provider(id="north", kind=kind, capacity="", billing_step_s=None, minimum_s=None, provenance=STATED)
    stocks = {
        key: Capacity(kind=key[0], family=key[1], devices=count, provenance=STATED) for key, count in stock.items()
    }
    return replace(made, providers={"north": north}, capacities=stocks)


def told(known: Catalog, nodes: int, **hardware: Any) -> list[str]:
    document = api.solve(scenario([], [fleet("chat", qpm=600 * nodes)], hardware=hardware), known).document
    assert document["status"] == "optimal"
    return [line for line in document["warnings"] if "may expect" in line or "promises" in line]


@pytest.mark.parametrize(
    ("nodes", "stock", "warned"),
    [
        (4, {("cloud", "hopper"): 4}, False),
        (5, {("cloud", "hopper"): 4}, True),
        (5, {("cloud", "hopper"): 4, ("cloud", ""): 9}, True),  # that of the family counts
        (5, {("cloud", "ampere"): 4, ("cloud", ""): 4}, True),  # else that of all others
        (5, {("hyperscaler", ""): 4}, False),
        (5, {}, False),
    ],
)
def test_more_than_one_may_expect_is_told(nodes: int, stock: dict[tuple[str, str], int], warned: bool) -> None:
    lines = told(world("cloud", stock), nodes)
    assert bool(lines) == warned
    if warned:
        assert lines[0].startswith("5 plain on demand at north r1 are more than the 4 that one may expect: reserve")


def jobs_of(deadline: str, *, starts: str = "0 0 0", **more: Any) -> dict[str, Any]:
    """A plan of three jobs of 100 hours on a device each, of a seller of whom one may expect two devices."""
    known = world("cloud", {("cloud", "hopper"): 2})
    jobs = [job(name, tokens="60B", deadline=deadline, start=f"{at} days") for name, at in zip("abc", starts.split())]
    return dict(api.solve(scenario(jobs, [], horizon="60 days", **more), known).document)


def beyond(document: dict[str, Any]) -> list[str]:
    """What it says of more than one may expect."""
    assert document["status"] == "optimal"
    return [line for line in document["warnings"] if "may expect" in line]


def test_jobs_that_can_follow_one_another_are_told_to() -> None:
    """As it is told, it is: at the same cost, on fewer devices, and nothing more is said."""
    document = jobs_of("20 days")
    (line,) = beyond(document)
    told = (
        "3 plain on demand at north r1 are more than the 2 that one may expect: its 3 jobs can follow one another on 1 "
    )
    assert line.startswith(
        told + "(periods: 24 h, and hardware.quotas: [{device: plain, max_devices: 2}]); else reserve them"
    )
    asked = {"periods": "24 h", "hardware": {"quotas": [{"device": "plain", "max_devices": 2}]}}
    after = jobs_of("20 days", **asked)
    assert beyond(after) == []
    assert after["summary"]["cost_microusd"] == document["summary"]["cost_microusd"]
    (line,) = beyond(jobs_of("20 days", periods="24 h"))
    assert "one another on 1 (hardware.quotas: [{device: plain, max_devices: 2}]); else" in line


@pytest.mark.parametrize("deadline", ["300 h", "359 h"])
def test_jobs_that_cannot_follow_one_another_on_time_are_not_told_to(deadline: str) -> None:
    """Each holds its device for 100 hours, or five periods of a day: three take 340 hours."""
    (line,) = beyond(jobs_of(deadline))
    assert ("follow" in line) == (deadline == "359 h")


def test_only_what_is_held_at_one_time_counts() -> None:
    assert beyond(jobs_of("20 days", starts="0 0 10")) == []


def test_what_a_quota_grants_is_no_surprise() -> None:
    known = world("cloud", {("cloud", ""): 4})
    assert told(known, 5, quotas=[{"provider": "north", "max_devices": 8}]) == []
    assert told(known, 5, quotas=[{"provider": "north", "price_model": "spot", "max_devices": 8}]) != []


def test_a_marketplace_is_told_with_the_way_out() -> None:
    (line,) = told(world("marketplace", {}), 1)
    assert line.startswith("north is a marketplace: nobody promises that north/one:r1:on_demand is there")
    assert line.endswith("hardware.exclude: [north] leaves it out")


def two_sellers() -> Catalog:
    """One device: in the north by the hour and for a year, in the south by the hour and on spot."""
    return catalog(
        [device()],
        [shape("north/one"), shape("south/two", devices=2)],
        [
            offer("north/one", 1.0), offer("north/one", 0.6, price_model="commitment_1y"),
            offer("south/two", 2.0, region="r2"), offer("south/two", 1.0, region="r2", price_model="spot"),
        ],
    )  # fmt: skip


def lines(begin: str, *, data: dict[str, Any] | None = None, horizon: str = "30 days", **hardware: Any) -> list[str]:
    """Warnings of a job that begin so."""
    asked = scenario([job("train", tokens="60B", deadline="20 days", data=data)], horizon=horizon, hardware=hardware)
    document = api.solve(asked, two_sellers()).document
    assert not [one for one in api.verify(document, two_sellers()) if one.severity == "error"]
    return [line for line in document["warnings"] if line.startswith(begin)]


@pytest.mark.parametrize(
    ("hardware", "said"),
    [
        ({}, []),
        ({"pricing": ["on_demand", "commitment_1y"]}, []),
        ({"pricing": ["on_demand", "commitment_1y"], "providers": ["South"]}, ["commitment_1y"]),
        ({"pricing": ["on_demand", "commitment_1y"], "exclude": ["north"]}, ["commitment_1y"]),
        ({"pricing": ["on_demand", "spot"], "spot": {"interruptions": "0.01 /h"}, "regions": ["r1"]}, ["spot"]),
    ],
)
def test_price_models_that_no_allowed_seller_has_are_told(hardware: dict[str, Any], said: list[str]) -> None:
    told = lines("hardware.pricing: ", **hardware)
    assert [line.partition(" as ")[2].partition(",")[0] for line in told] == said
    for line, model in zip(told, said):
        there = "commitment_1y, on_demand" if model == "spot" else "on_demand, spot"
        own = "" if model == "spot" else "; a price of your own: hardware.contracts"
        assert line.endswith(f"they are sold as {there}{own}")


@pytest.mark.parametrize(
    ("hardware", "told"),
    [({}, 0), ({"providers": ["north"]}, 1), ({"exclude": ["sou*"]}, 1), ({"providers": ["SOUTH"]}, 0)],
)
def test_a_contract_of_ones_own_with_a_seller_that_is_left_out_is_told(hardware: dict[str, Any], told: int) -> None:
    mine = {"shape": "south/two", "region": "r2", "price_model": "block", "price": "$0.01/h", "term": "30 days"}
    assert len(lines("hardware.contracts[0] is used though", contracts=[mine], **hardware)) == told


@pytest.mark.parametrize(("region", "meant"), [("r22", "r2"), ("r2", ""), ("berlin", "")])
def test_a_contract_at_a_place_that_looks_like_another_is_told(region: str, meant: str) -> None:
    """It stood apart from all that is rented there; a place that looks like none is the seller's own affair."""
    mine = {"shape": "south/two", "region": region, "price_model": "block", "price": "$0.01/h", "term": "30 days"}
    told = lines("hardware.contracts[0]: no other offer of south is in", contracts=[mine])
    assert [line.partition("did you mean ")[2] for line in told] == ([f"{meant}?"] if meant else [])


@pytest.mark.parametrize(
    ("quota", "told"),
    [
        ({"max_devices": 2}, 0),
        ({"max_devices": 1}, 1),
        ({"max_shapes": 0}, 1),
        ({"max_devices": 1, "price_model": "on_demand"}, 0),
        ({"max_devices": 1, "price_model": "block"}, 0),  # it says so itself
    ],
)
def test_a_quota_without_room_for_a_contract_is_told(quota: dict[str, Any], told: int) -> None:
    mine = {"shape": "south/two", "region": "r2", "price_model": "block", "price": "$0.01/h", "term": "30 days"}
    found = lines("hardware.contracts[0] is left out: hardware.quotas[0]", contracts=[mine],
                  quotas=[{"provider": "south", **quota}])  # fmt: skip
    assert len(found) == told


@pytest.mark.parametrize(
    ("at", "meant"),
    [
        ("north/r1", None),
        ("nroth/r1", "; did you mean north/r1?"),
        ("north/R1", "; did you mean north/r1"),
        ("north/elsewhere", "(training[].data.at)"),
        ("cellar/shelf", None),  # a place of one's own
        ("owned/hall", None),
    ],
)
def test_data_at_a_place_that_looks_like_one_of_the_catalog_are_told(at: str, meant: str | None) -> None:
    data = {"size": "1 TB", "at": at, "egress": "$0.01/GB", "storage": "$0.01/GB-month"}
    hall = {"shape": "north/one", "count": 1, "price": "$9/h", "region": "hall"}
    told = lines("train: no machine", data=data, owned=[hall])
    assert len(told) == (meant is not None)
    assert all(meant is not None and meant in line for line in told)


@pytest.mark.parametrize(
    ("hardware", "keys"),
    [
        ({"regions": ["r2"]}, "hardware.regions says what"),
        ({"deny": ["plain"]}, "hardware.deny says what"),
        ({"regions": ["r2"], "deny": ["plain"]}, "hardware.deny and hardware.regions say what"),
        ({"regions": ["de"]}, ""),
        ({"regions": ["eu"]}, ""),
        ({}, ""),
    ],
)
def test_owned_machines_that_filters_leave_out_are_told(hardware: dict[str, Any], keys: str) -> None:
    """What is owned always counts: machines in Germany were used under `regions: [us-*]` without a word."""
    owned = [{"shape": "north/one", "count": 1, "price": "$0.50/h", "region": "de"}]
    asked = scenario([], [fleet("chat", qpm=600)], hardware={"owned": owned, **hardware})
    known = world("cloud", {})
    further = [offer("north/one", 2.0, region=region) for region in ("r2", "de")]
    elsewhere = replace(offer("north/one", 2.0, region="r4"), country="FR")
    known = replace(known, offers=(*known.offers, *further, elsewhere))
    warnings = api.solve(asked, known).document["warnings"]
    found = [line for line in warnings if "is used all the same" in line]
    assert len(found) == bool(keys)
    if keys:
        assert found[0].startswith(f"hardware.owned[0]: north/one in de is used all the same: {keys} may be rented")


@pytest.mark.parametrize(("price", "told"), [("$0.79/h", True), ("$0.81/h", False), ("$500/month", True)])
def test_a_contract_at_a_small_part_of_the_price_is_told(price: str, told: bool) -> None:
    """A price of a device, or of a month, in the place of one of a node's hour was taken without a word."""
    offers = [offer("north/eight", 8.0 * dollars, region=f"r{k}") for k, dollars in enumerate((0.9, 1.0, 1.0, 1.2))]
    known = catalog([device()], [shape("north/eight", devices=8)], offers)
    own = {"shape": "north/eight", "region": "r1", "price_model": "commitment_1y", "price": price}
    asked = scenario([], [fleet("chat", qpm=600 * 8)], hardware={"contracts": [own]}, horizon="12 months")
    found = [line for line in api.solve(asked, known).document["warnings"] if "costs on demand in the median" in line]
    assert len(found) == told
    if told:
        assert found[0].startswith("hardware.contracts[0]: $0.")
        assert found[0].endswith("the price is of one north/eight with 8 devices for an hour")


@pytest.mark.parametrize(
    ("discounts", "told"),
    [
        ([{"provider": "north", "fraction": "5 %"}], []),
        (
            [{"price_model": "commitment_1y", "fraction": "5 %"}],
            ["[0] changes no price: nothing that may be used fits"],
        ),
        (
            [{"provider": "north", "fraction": "5 %"}, {"device": "plain", "fraction": "50 %"}],
            ["[1] changes no price: where it fits an earlier one counts"],
        ),
        ([{"provider": "north", "fraction": "5 %"}, {"fraction": "-10 %"}], []),  # as other prices are asked
    ],
)
def test_discounts_that_change_no_price_are_told(discounts: list[dict[str, str]], told: list[str]) -> None:
    """Half off a device was lost behind five per cent of its provider, and said nowhere."""
    asked = scenario([], [fleet("chat", qpm=600)], hardware={"discounts": discounts})
    warnings = api.solve(asked, world("cloud", {})).document["warnings"]
    found = [line for line in warnings if "changes no price" in line]
    assert [line.removeprefix("hardware.discounts").startswith(one) for line, one in zip(found, told)] == [True] * len(
        told
    )
    assert len(found) == len(told)


def test_a_share_of_the_peak_on_a_device_that_may_not_be_used_is_told() -> None:
    """It was measured, written down, and lost without a word."""
    shares = {"plain": "40 %", "other": "40 %"}
    known = catalog([device(), device("other")], [shape(), shape("south/one", "other")])
    asked = scenario([job("t", mfu=shares)], hardware={"allow": ["plain"]})
    told = [line for line in api.solve(asked, known).document["warnings"] if "changes nothing" in line]
    assert told == ["training.t.mfu of other changes nothing: no such device may be used"]


@pytest.mark.parametrize(("kind", "warned"), [("share", True), ("instance", False)])
def test_a_share_of_a_device_that_no_export_launches_is_told(kind: str, warned: bool) -> None:
    """A plan stood embeddings on a quarter of an L4; that nothing launches them there `plan export` alone said."""
    known = catalog([device()], [shape(kind=kind)], [offer("north/one", 1.0)])
    document = api.solve(scenario([], [fleet("embed")]), known).document
    assert any(row["shape"] == "north/one" for row in document["workloads"][0]["allocations"])
    said = [
        line for line in document["warnings"] if "no program that plan export writes for runs it on a share" in line
    ]
    assert bool(said) == warned
