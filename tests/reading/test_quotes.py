"""Prices by the hour: tables of one's own and answers of clouds become prices of what the catalog sells."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.load import load_catalog
from planner.errors import InputError
from planner.reading.kinds import Reading, read
from planner.reading.source import Source


def told(tmp_path: Path, content: Any) -> Reading:
    path = tmp_path / "prices"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    reading = read(Source(path))
    assert reading.kind == "quotes"
    return reading


def offers(reading: Reading) -> dict[str, float]:
    text = next((piece.text for piece in reading.pieces if piece.what == "prices"), "offer\n")
    return {row["offer"]: float(row["price_usd_per_hour_per_shape"]) for row in csv.DictReader(io.StringIO(text))}


def sold(provider: str, device: str, model: str = "on_demand") -> dict[str, int]:
    """Offers of the catalog, and how many devices each has."""
    shapes, wanted = load_catalog().shapes, (provider, device, model)
    return {each.id: shapes[each.shape].devices for each in load_catalog().offers
            if (each.provider, shapes[each.shape].device, each.price_model) == wanted}  # fmt: skip


@pytest.mark.parametrize("table", [
    "device,provider,price per hour\nH100 SXM,lambda,2.50\n",
    "GPU;Anbieter;Preis pro Stunde (USD)\nH100 80GB SXM;Lambda Labs;2,50\n",
    "gpu_model,cloud,$/GPU-hr,$/hr (spot)\nH100,lambda,$2.50,\n",
    "gpu,provider,price_cents_per_hour\nH100 SXM,lambda,250\n",
    "Anbieter;GPU;Preis/Std. (USD)\nlambda;H100 SXM;2,50\n",
    '[{"gpu": "H100 SXM", "provider": "lambda", "price_per_hour": "$2.50/hr"}]',
])  # fmt: skip
def test_a_price_of_a_device_is_that_of_every_machine_with_it(table: str, tmp_path: Path) -> None:
    wanted = sold("lambda", "h100-sxm-80gb")
    assert wanted
    assert offers(told(tmp_path, table)) == {offer: 2.5 * devices for offer, devices in wanted.items()}


RUNPOD = [
    {"id": "NVIDIA H100 80GB HBM3", "displayName": "H100 SXM", "memoryInGb": 80, "securePrice": 3.01,
     "communityPrice": 2.71, "secureSpotPrice": 1.76, "communitySpotPrice": None},
    {"id": "NVIDIA A100-SXM4-80GB", "displayName": "A100 SXM", "memoryInGb": 80, "securePrice": 1.88,
     "communityPrice": 0, "secureSpotPrice": None, "communitySpotPrice": None},
]  # fmt: skip


@pytest.mark.parametrize("form", ["answer", "list", "csv", "snake"])
def test_prices_of_runpod_are_of_its_two_clouds(form: str, tmp_path: Path) -> None:
    """Its columns name no hour, and one name of two devices is told apart by its memory alone."""
    table = io.StringIO()
    snake = {"displayName": "gpu", "memoryInGb": "vram_gb", "securePrice": "secure_price",
             "communityPrice": "community_price"}  # fmt: skip
    rows = [{name: row[key] for key, name in snake.items()} for row in RUNPOD] if form == "snake" else RUNPOD
    writer = csv.DictWriter(table, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    content = {"answer": {"data": {"gpuTypes": RUNPOD}}, "list": RUNPOD}.get(form, table.getvalue())
    reading = told(tmp_path, content)
    wanted = {offer: 3.01 * n for offer, n in sold("runpod", "h100-sxm-80gb").items()}
    wanted |= {offer: 2.71 * n for offer, n in sold("runpod-community", "h100-sxm-80gb").items()}
    wanted |= {offer: 1.88 * n for offer, n in sold("runpod", "a100-sxm-80gb").items()}
    assert reading.tool == "RunPod"
    assert len(wanted) >= 3
    assert offers(reading) == pytest.approx(wanted)


@pytest.mark.parametrize(("memory", "device"), [("40 GB", "a100-sxm-40gb"), ("80GiB", "a100-sxm-80gb"), ("640", "")])
def test_memory_tells_devices_of_one_name_apart(memory: str, device: str, tmp_path: Path) -> None:
    reading = told(tmp_path, f"gpu,vram,provider,price per hour\nA100 SXM,{memory},my-colo,1.5\n")
    assert (device or "A100 SXM") + " on demand, cheapest" in {each.label for each in reading.look}


def test_a_count_makes_it_the_price_of_a_machine(tmp_path: Path) -> None:
    table = "provider,region,machine,gpus,usd_per_hour,term\naws,us-east-1,p5.48xlarge,8,44.0,on-demand\n"
    reading = told(tmp_path, table)
    found = offers(reading)
    assert found
    assert set(found.values()) == {44.0}
    assert all(":p5.48xlarge:on_demand" in offer for offer in found)
    assert {each.label: each.value for each in reading.look}["h100-sxm-80gb on demand, cheapest"] == 5.5


def test_a_machine_alone_has_the_price_of_a_machine(tmp_path: Path) -> None:
    rows = "p5.48xlarge,192,$44.00,us-east-1\nm5.large,2,$0.10,us-east-1\n"
    reading = told(tmp_path, "Instance type,vCPU,On-Demand hourly cost,Region\n" + rows)
    assert set(offers(reading).values()) == {44.0}
    assert reading.skipped.reasons == {"no accelerator, or no count of them": (1, 3)}


def test_what_nobody_sells_and_other_currencies_are_told(tmp_path: Path) -> None:
    reading = told(tmp_path, "device,provider,price per hour\nH100 SXM,my-colo,2.50\nL4,aws,0.5 EUR\nL4,aws,n/a\n")
    assert not offers(reading)
    assert any("h100-sxm-80gb at my-colo" in note and "--price" in note for note in reading.notes)
    assert set(reading.skipped.reasons) == {"in EUR: give the price in US dollars", "no price: not offered"}
    with pytest.raises(InputError, match="could be taken"):
        told(tmp_path, "device,provider,price per hour (EUR)\nH100 SXM,lambda,2.50\n")


def test_what_is_told_of_an_offer_that_nobody_sells_is_its_own_price(tmp_path: Path) -> None:
    """Another device of the list was told in its place."""
    table = "gpu,provider,price per hour,region\nH100 SXM,lambda,$2.99,us-east-1\nA100 80GB,runpod,$1.64,nowhere-1\n"
    note = next(each for each in told(tmp_path, table).notes if "no such offer" in each)
    assert "no such offer of a100-sxm-80gb at runpod in nowhere-1" in note
    assert "--price 'a100-sxm-80gb=$1.64/h'" in note


def test_measured_points_with_a_price_are_no_price_list(tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("provider,model,gpu,concurrency,ttft_ms,output tokens/s,price per hour\n"
                                         "aws,llama-3.1-8b,H100,8,80,900,6.88\n")  # fmt: skip
    assert read(Source(tmp_path / "points.csv")).kind == "bench-table"


def test_instance_types_of_lambda(tmp_path: Path) -> None:
    kind = {"name": "gpu_8x_h100_sxm5", "gpu_description": "H100 (80 GB SXM5)", "price_cents_per_hour": 2000,
            "specs": {"gpus": 8}}  # fmt: skip
    cpu = {"name": "cpu_4x", "gpu_description": "N/A", "price_cents_per_hour": 20, "specs": {"gpus": 0}}
    reading = told(tmp_path, {"data": {"a": {"instance_type": kind}, "b": {"instance_type": cpu}, "c": 7}})
    assert (reading.taken, reading.skipped.count) == (1, 2)
    assert offers(reading) == {
        offer: 20.0 for offer, devices in sold("lambda", "h100-sxm-80gb").items() if devices == 8
    }


def product(machine: str, gpus: int, **more: str) -> dict[str, Any]:
    plainest = {"operatingSystem": "Linux", "tenancy": "Shared", "capacitystatus": "Used", "preInstalledSw": "NA"}
    return {"attributes": {"instanceType": machine, "regionCode": "us-east-1", "gpu": str(gpus)} | plainest | more}


def term(price: str, **more: str) -> dict[str, Any]:
    part = {"unit": "Hrs", "pricePerUnit": {"USD": price}}
    return {"x": {"effectiveDate": "2025-10-01T00:00:00Z", "priceDimensions": {"y": part}, "termAttributes": more}}


@pytest.mark.parametrize("answers", [True, False])
def test_the_price_list_of_aws(answers: bool, tmp_path: Path) -> None:
    products = {"A": product("p5.48xlarge", 8), "B": product("p5.48xlarge", 8, operatingSystem="Windows"),
                "C": product("m5.large", 0)}  # fmt: skip
    reserved = {"OfferingClass": "standard", "LeaseContractLength": "1yr"}
    terms = {"OnDemand": {"A": term("44.0"), "B": term("60.0"), "C": term("0.1")},
             "Reserved": {"A": term("30.0", PurchaseOption="No Upfront", **reserved)
                          | {"z": term("9", PurchaseOption="All Upfront", **reserved)["x"]}}}  # fmt: skip
    whole: dict[str, Any] = {"offerCode": "AmazonEC2", "products": products, "terms": terms}
    if answers:
        texts = [json.dumps({"product": each, "terms": {kind: of[sku] for kind, of in terms.items() if sku in of}})
                 for sku, each in products.items()]  # fmt: skip
        whole = {"PriceList": texts}
    reading = told(tmp_path, whole)
    found = offers(reading)
    assert (reading.taken, reading.skipped.count) == (2, 3)
    assert {price for offer, price in found.items() if offer.endswith("on_demand")} == {44.0}
    assert {price for offer, price in found.items() if offer.endswith("commitment_1y")} == {30.0}
    assert len(found) >= 2


def test_the_newest_spot_price_of_the_cheapest_zone(tmp_path: Path) -> None:
    def row(zone: str, day: str, price: str) -> dict[str, str]:
        return {"AvailabilityZone": f"us-east-1{zone}", "InstanceType": "p5.48xlarge", "SpotPrice": price,
                "ProductDescription": "Linux/UNIX", "Timestamp": f"2025-10-{day}T00:00:00Z"}  # fmt: skip

    rows = [row("a", "01", "9.0"), row("a", "03", "21.0"), row("b", "02", "20.0")]
    reading = told(tmp_path, {"SpotPriceHistory": rows})
    assert (reading.taken, reading.skipped.count) == (1, 1)
    assert set(offers(reading).values()) == {20.0}


def test_offers_of_vast_are_shown_by_device(tmp_path: Path) -> None:
    rows = [{"gpu_name": "H100 SXM", "num_gpus": 8, "dph_total": 16.0}, {"gpu_name": "RTX 4090", "num_gpus": 1}]
    reading = told(tmp_path, {"offers": rows})
    assert (reading.taken, reading.skipped.count) == (1, 1)
    assert next(each.value for each in reading.look if each.label.startswith("h100-sxm-80gb")) == 2.0


@pytest.mark.parametrize("odd", [7, "x", [], {}, None, [7], {"a": 7}])
def test_odd_answers_are_refused_in_words(odd: object, tmp_path: Path) -> None:
    for whole in (
        {"data": odd, "instance_type": 1, "price_cents_per_hour": 1, "specs": 1},
        {"PriceList": odd},
        {"offerCode": "x", "products": odd, "terms": odd, "instanceType": 1},
        {"SpotPriceHistory": odd, "SpotPrice": 1},
        {"offers": odd, "dph_total": 1, "num_gpus": 1, "gpu_name": 1},
    ):
        with pytest.raises(InputError):
            told(tmp_path, whole)


def test_prices_that_contradict_each_other_are_told_by_their_column(tmp_path: Path) -> None:
    """It was "the price 0"."""
    path = tmp_path / "mine.csv"
    path.write_text('gpu,provider,price_per_hour\nH100 SXM,foo,2.10\nB200,bar,"3,90"\n')
    with pytest.raises(InputError, match="the numbers of the price_per_hour contradict each other"):
        read(Source(path))
