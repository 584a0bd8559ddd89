"""Downloaded price lists against the catalog: what changed, what is asked, and an overlay that loads to just that."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.importers.cloud_lists import ListTerms
from planner.catalog.importers.imported import merged
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog, Offer
from planner.catalog.refresh import Refreshed, overlay_text, read_list, refreshed
from planner.errors import InputError, PlanError, UsageError

DAY = "2026-11-22"
SKYPILOT = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"
GPUHUNT = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags\n"
H100 = "gpu_8x_h100_sxm5"


@pytest.fixture(scope="module")
def shipped() -> Catalog:
    return load_catalog()


def sold(catalog: Catalog, provider: str, model: str = "on_demand") -> dict[str, Offer]:
    return {one.id: one for one in catalog.offers if one.provider == provider and one.price_model == model}


def lambda_list(offers: dict[str, Offer], catalog: Catalog, prices: dict[str, float]) -> str:
    """A list of offers of Lambda in SkyPilot's form, some at other prices."""
    lines = []
    for name, one in offers.items():
        shape = catalog.shapes[one.shape]
        usd = prices.get(name, one.price_microusd_per_hour / 1e6)
        lines.append(f"{shape.name},,{shape.devices},,,{usd:.6f},{one.region},,\n")
    return SKYPILOT + "".join(lines)


def changes_of(catalog: Catalog, *paths: Path, terms: ListTerms | None = None, **given: str) -> Refreshed:
    asked = terms or ListTerms()
    return refreshed([read_list(path, catalog, asked, copied=DAY, **given) for path in paths], catalog)


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("seed", range(5))
def test_every_change_is_told_and_no_other(seed: int, shipped: Catalog, tmp_path: Path) -> None:
    """Some offers of Lambda left out, some dearer, some cheaper, one in a region that nobody had; told one by one."""
    chance = random.Random(seed)
    offers = sold(shipped, "lambda")
    names = sorted(offers)
    gone = set(chance.sample(names, 3))
    kept = [name for name in names if name not in gone]
    moved = {name: chance.choice([0.5, 0.9, 1.1, 2.0]) for name in chance.sample(kept, min(4, len(kept)))}
    prices = {name: offers[name].price_microusd_per_hour / 1e6 * factor for name, factor in moved.items()}
    text = lambda_list({name: offers[name] for name in kept}, shipped, prices) + f"{H100},H100,8,,,23.92,mars-1,,\n"
    found = changes_of(shipped, written(tmp_path, "lambda/vms.csv", text), as_of=DAY)
    assert [one.offer for one in found.new] == [f"lambda:mars-1:{H100}:on_demand"]
    assert {one.offer for one in found.gone} == gone
    assert {one.offer for one in found.dearer} == {name for name, factor in moved.items() if factor > 1}
    assert {one.offer for one in found.cheaper} == {name for name, factor in moved.items() if factor < 1}
    assert {one.offer for one in found.same} == set(kept) - set(moved)
    for one in (*found.dearer, *found.cheaper):
        assert one.change == pytest.approx(moved[one.offer] - 1, abs=1e-5)


@pytest.mark.parametrize("whole", [False, True])
def test_the_overlay_loads_to_the_new_prices(whole: bool, shipped: Catalog, tmp_path: Path) -> None:
    offers = sold(shipped, "lambda")
    first, *rest = sorted(offers)
    text = lambda_list({first: offers[first]}, shipped, {first: 1.25})
    found = read_list(written(tmp_path, "lambda/vms.csv", text), shipped, ListTerms(), as_of=DAY, copied=DAY)
    changes = refreshed([found], shipped)
    for name, table in merged([found]).items():
        written(tmp_path, f"mine/offers/{name}.csv", table)
    written(tmp_path, "mine/catalog.yaml", overlay_text(changes, "mine", whole=whole))
    mine = {one.id: one for one in load_catalog(tmp_path / "mine").offers}
    assert (mine[first].price_microusd_per_hour, mine[first].provenance.as_of) == (1_250_000, DAY)
    assert mine[first].provenance.status == "seen"
    assert {name for name in rest if name in mine} == (set() if whole else set(rest))
    others = {one.id: one.price_microusd_per_hour for one in shipped.offers if one.id not in offers}
    assert {name: mine[name].price_microusd_per_hour for name in others} == others  # commitments of lambda among them


def test_gpuhunt_is_known_by_its_columns(shipped: Catalog, tmp_path: Path) -> None:
    text = GPUHUNT + f"{H100},us-east-1,20.0,,,8,H100,80.0,False,,nvidia,\n"
    found = changes_of(shipped, written(tmp_path, "lambdalabs.csv", text), as_of=DAY)
    (one,) = (*found.new, *found.dearer, *found.cheaper)
    assert (one.offer, one.new_microusd) == (f"lambda:us-east-1:{H100}:on_demand", 20_000_000)


def azure_items(**changes: Any) -> str:
    item = {"skuName": "ND96isrH100v5", "region": "eastus", "pricePerHour": 98.32, "currency": "USD",
            "unitOfMeasure": "1 Hour", "productName": "Virtual Machines NDsr H100 v5 Series"}  # fmt: skip
    return json.dumps([item | changes])


API = {
    "armSkuName": "Standard_ND96isr_H100_v5", "skuName": "ND96isr H100 v5", "armRegionName": "eastus",
    "retailPrice": 100.0, "currencyCode": "USD", "unitOfMeasure": "1 Hour", "type": "Consumption",
    "productName": "Virtual Machines NDsr H100 v5 Series", "meterName": "ND96isr H100 v5",
}  # fmt: skip
NAME = "azure:eastus:ND96isr_H100_v5"


@pytest.mark.parametrize("price", ["1,234.50", "98.32", -1, True, [98.32]])
def test_a_price_of_json_that_is_no_number_is_told(price: Any, shipped: Catalog, tmp_path: Path) -> None:
    """A text is none, whatever stands in it; no price at all is not offered."""
    azure, aws = azure_items(pricePerHour=price), json.dumps({"p5.48xlarge/us-east-1": price})
    lists: list[tuple[str, dict[str, str]]] = [(azure, {}), (aws, {"price_model": "commitment_1y"})]
    for text, given in lists:
        path = written(tmp_path, "a.json", text)
        found = read_list(path, shipped, ListTerms(), as_of=DAY, **given)
        assert ([skip.reason for skip in found.skipped], len(found.unread)) == (["no number for a price"], 1)
    none = read_list(written(tmp_path, "c.json", azure_items(pricePerHour=None)), shipped, ListTerms(), as_of=DAY)
    assert [skip.reason for skip in none.skipped] == ["no price: not offered"]


def test_azure_in_both_forms(shipped: Catalog, tmp_path: Path) -> None:
    short = changes_of(shipped, written(tmp_path, "short.json", azure_items(pricePerHour=99.5)), as_of=DAY)
    (one,) = (*short.new, *short.dearer, *short.cheaper)
    assert (one.offer, one.new_microusd) == (f"{NAME}:on_demand", 99_500_000)
    items = [API, API | {"skuName": "ND96isr H100 v5 Spot", "meterName": "ND96isr H100 v5 Spot", "retailPrice": 30.0},
             API | {"type": "Reservation", "reservationTerm": "1 Year", "retailPrice": 551_880.0},
             API | {"productName": "Virtual Machines NDsr H100 v5 Series Windows", "retailPrice": 120.0},
             API | {"skuName": "ND96isr H100 v5 Low Priority", "meterName": "ND96isr H100 v5 Low Priority"},
             API | {"type": "DevTestConsumption", "reservationTerm": "5 Years", "unitOfMeasure": "1/Month"},
             API | {"armSkuName": "Standard_D2s_v5", "skuName": "D2s v5"}]  # fmt: skip
    read = read_list(written(tmp_path, "api.json", json.dumps({"Items": items})), shipped, ListTerms(), as_of=DAY)
    assert {name: row["price_usd_per_hour_per_shape"] for name, row in read.offers.items()} == {
        f"{NAME}:on_demand": "100", f"{NAME}:spot": "30", f"{NAME}:commitment_1y": "63",
    }  # fmt: skip
    assert len(read.skipped) == 4
    assert all(one.reason for one in read.skipped)


def test_several_prices_without_a_word_on_terms_are_no_price(shipped: Catalog, tmp_path: Path) -> None:
    items = [json.loads(azure_items(pricePerHour=price))[0] for price in (98.32, 19.6)]
    read = read_list(written(tmp_path, "two.json", json.dumps(items)), shipped, ListTerms())
    assert not read.offers
    assert {one.reason for one in read.skipped} == {"several prices, and nothing says on which terms"}


def asked(catalog: Catalog, path: Path, terms: ListTerms | None = None, **given: str) -> tuple[str, str]:
    with pytest.raises(PlanError) as caught:
        read_list(path, catalog, terms or ListTerms(), **given)
    (problem,) = caught.value.problems
    assert problem.hint
    return problem.reference, problem.hint


def test_what_a_file_leaves_open_is_asked(shipped: Catalog, tmp_path: Path) -> None:
    euro = written(tmp_path, "euro.json", azure_items(currency="EUR"))
    assert asked(shipped, euro) == ("mixed-currency", "give the day's rate, dollars for one EUR: --rate EUR=1.08")
    rate = ListTerms.of(("EUR=1.08",), "")
    assert asked(shipped, euro, rate) == ("tax-unknown", "say it: --tax excluded, or --tax included:19%")
    for tax, due in (("excluded", Decimal("106.1856")), ("included:19%", Decimal("106.1856") / Decimal("1.19"))):
        found = read_list(euro, shipped, ListTerms.of(("EUR=1.08",), tax))
        (row,) = found.offers.values()
        assert Decimal(row["price_usd_per_hour_per_shape"]) == due.quantize(Decimal("0.000001"))
    whose = written(tmp_path, "downloads/vms.csv", SKYPILOT)
    assert asked(shipped, whose)[0] == "missing-field"
    assert asked(shipped, written(tmp_path, "mine.csv", GPUHUNT))[0] == "missing-field"
    pairs = written(tmp_path, "aws.json", json.dumps({"p5.48xlarge/us-east-1": 30.5}))
    assert asked(shipped, pairs)[0] == "missing-field"
    assert asked(shipped, pairs, price_model="weekly")[0] == "unknown-value"
    found = read_list(pairs, shipped, ListTerms(), price_model="commitment_1y")
    assert list(found.offers) == ["aws:us-east-1:p5.48xlarge:commitment_1y"]
    for text in ("{}", "[1, 2]", '{"prices": []}', "name,price\nx,1\n", ""):
        assert asked(shipped, written(tmp_path, "odd.txt", text))[0] == "unknown-format"
    assert asked(shipped, written(tmp_path, "cut.json", '[{"skuName": "ND96'))[0] == "bad-json"


@pytest.mark.parametrize(("rate", "tax"), [("EUR", ""), ("XYZ=1", ""), ("EUR=0", ""), ("EUR=-1", ""), ("", "19%"),
                                           ("", "included"), ("", "included:400%")])  # fmt: skip
def test_rates_and_taxes_that_say_nothing_are_refused(rate: str, tax: str) -> None:
    with pytest.raises(UsageError):
        ListTerms.of((rate,) if rate else (), tax)


def test_tax_is_taken_off_lists_in_dollars_too(shipped: Catalog, tmp_path: Path) -> None:
    path = written(tmp_path, "lambda/vms.csv", SKYPILOT + f"{H100},H100,8,,,23.80,us-east-1,,\n")
    (row,) = read_list(path, shipped, ListTerms.of((), "included:19%")).offers.values()
    assert row["price_usd_per_hour_per_shape"] == "20"


def test_nothing_is_quoted_that_was_not_in_a_list(shipped: Catalog) -> None:
    assert refreshed([], shipped) == Refreshed(new=(), gone=(), dearer=(), cheaper=(), same=())
    less = replace(shipped, offers=())
    assert refreshed([], less).gone == ()


def test_a_file_that_is_not_there(shipped: Catalog, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_list(tmp_path / "none.csv", shipped, ListTerms())


SAMPLES = Path(__file__).parents[3] / "shared" / "data" / "samples" / "price_cloud"


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not here")
def test_real_lists(shipped: Catalog) -> None:
    """Files as they are downloaded: no row is lost; parts of machines and parsed tables are refused."""
    found = read_list(SAMPLES / "skypilot_lambda_vms_v8.csv", shipped, ListTerms(), provider="lambda")
    assert found.rows == found.taken + len(found.skipped) == 109
    azure = read_list(SAMPLES / "azure_retail_gpu_prices.json", shipped, ListTerms(), as_of=DAY)
    assert azure.rows == azure.taken + len(azure.skipped) == 80
    changes = refreshed([azure], shipped)
    assert len(changes.same) >= 8  # prices that the catalog has from elsewhere
    aws = read_list(SAMPLES / "aws_reserved_offerings.json", shipped, ListTerms(), price_model="commitment_1y")
    assert aws.rows == aws.taken + len(aws.skipped) > 4000
    for name in ("gcp_gpu_prices_normalized.json", "llm_d_planner_gpu_catalog.json", "opencost_gcp_default_prices.json",
                 "skypilot_accelerators_parsed.csv"):  # fmt: skip
        assert asked(shipped, SAMPLES / name)[0] == "unknown-format"
