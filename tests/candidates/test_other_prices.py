"""Ways at other prices are those of a new search: what is taken over from another market is what it would find."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.candidates import evaluated
from planner.candidates.other_prices import at_other_prices
from planner.catalog.own_prices import with_device_price
from planner.estimate.market import market
from tests.api.test_session import differences
from tests.tiers import sampled

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def llama() -> api.Session:
    return api.session(ROOT / "scenarios" / "llama.yaml")


@pytest.mark.parametrize(
    "text",
    sampled(["h100-*=+30%", "h100-*=-30%", "*:*=-90%", "aws:*=+10%", "h100-sxm=$1.10/h", "tpu-v6e@spot=-50%"], 2),
)
def test_ways_at_other_prices_are_those_of_a_new_search(llama: api.Session, text: str) -> None:
    catalog = with_device_price(llama.catalog, text)
    anew = api.enumerate_candidates(llama.scenario, catalog)
    assert differences(anew, api.enumerate_candidates(llama.scenario, catalog, known=llama.candidates)) == []


@pytest.mark.parametrize("fraction", sampled(["10 %", "-30 %", "90 %"], 2))
def test_ways_at_a_discount_are_those_of_a_new_search(llama: api.Session, fraction: str) -> None:
    less = llama.scenario.with_({"hardware.discounts": [{"device": "h100-*", "fraction": fraction}]})
    anew = api.enumerate_candidates(less, llama.catalog)
    assert differences(anew, api.enumerate_candidates(less, llama.catalog, known=llama.candidates)) == []
    assert anew.tables["pretrain-8b"].cost_microusd != llama.candidates.tables["pretrain-8b"].cost_microusd


def test_a_discount_beside_other_words_of_hardware_is_no_other_price(llama: api.Session) -> None:
    before = llama.candidates.ways["pretrain-8b"]
    less: dict[str, Any] = {"hardware.discounts": [{"device": "h100-*", "fraction": "10 %"}]}

    def found(**more: Any) -> Any:
        asked = llama.scenario.with_({**less, **more})
        return at_other_prices(
            before, before.workload, replace(before.around, scenario=asked), market(asked, llama.catalog)
        )

    assert found() is not None
    assert found(**{"hardware.allow_recalled": True}) is None
    assert found(**{"hardware.quotas": [{"device": "h100-*", "max_devices": 64}]}) is None


def test_a_job_is_not_evaluated_again(llama: api.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    whole = evaluated.evaluated

    def noted(workload: Any, *rest: Any) -> Any:
        listed.append(workload.name)
        return whole(workload, *rest)

    monkeypatch.setattr(evaluated, "evaluated", noted)
    catalog = with_device_price(llama.catalog, "h100-*=+7%")
    api.enumerate_candidates(llama.scenario, catalog, known=llama.candidates)
    assert listed == ["assistant"]  # rates of a fleet are sought where they are cheap
    less = llama.scenario.with_({"hardware.discounts": [{"device": "h100-*", "fraction": "7 %"}]})
    api.enumerate_candidates(less, llama.catalog, known=llama.candidates)
    assert listed == ["assistant"] * 2


def test_other_machines_are_not_taken_for_other_prices(llama: api.Session) -> None:
    """Other machines, one offer less, a doubtful price, or another scenario: everything is listed anew."""
    before = llama.candidates.ways["pretrain-8b"]
    around, catalog = before.around, llama.catalog

    def found(changed: Any, **other: Any) -> Any:
        there = replace(around, catalog=changed, **other)
        return at_other_prices(before, before.workload, there, market(there.scenario, changed))

    dear = with_device_price(catalog, "h100-*=+7%")
    assert found(dear) is not None
    assert found(replace(catalog, offers=catalog.offers[1:])) is None
    first = next(site.offer for site in before.table.sites if site.owned is None)
    doubtful = [replace(one, quality="outlier") if one.id == first.id else one for one in catalog.offers]
    assert found(replace(catalog, offers=tuple(doubtful))) is None
    fewer = [replace(one, max_shapes=1) if one.id == first.id else one for one in catalog.offers]
    assert found(replace(catalog, offers=tuple(fewer))) is None
    devices = {name: replace(one, tdp_w=1.0) if name == first.shape else one for name, one in catalog.devices.items()}
    assert found(replace(catalog, devices={**devices, "x": next(iter(devices.values()))})) is None
    assert found(dear, scenario=llama.scenario.with_({"limits.max_devices": 8})) is None
    assert found(dear, allow_suspect=True) is None
    dearest = [replace(one, price_microusd_per_hour=10**15) if one.id == first.id else one for one in catalog.offers]
    assert found(replace(catalog, offers=tuple(dearest))) is None
