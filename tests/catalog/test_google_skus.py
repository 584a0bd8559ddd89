"""Google's prices by SKU: machines are the sum of accelerators, cores and memory, and the rest is listed."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.importers.cloud_lists import ListTerms
from planner.catalog.importers.imported import Imported, reasons
from planner.catalog.load import load_catalog
from planner.catalog.refresh import read_list, refreshed
from planner.errors import InputError
from planner.reading.kinds import read
from planner.reading.source import Source

OFFER = "gcp:us-central1-a:a3-highgpu-8g:on_demand"  # the catalog has it by zone
PRICES = {  # made up, but for their names
    "Nvidia H100 80GB GPU running in Americas": ("9.0", "h"),
    "A3 Instance Core running in Americas": ("0.03", "h"),
    "A3 Instance Ram running in Americas": ("0.0025", "GiBy.h"),
    "Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Americas": ("3.0", "h"),
    "Spot Preemptible A3 Instance Core running in Americas": ("0.01", "h"),
    "Spot Preemptible A3 Instance Ram running in Americas": ("0.001", "GiBy.h"),
    "Commitment v1: Nvidia H100 80GB GPU running in Americas for 1 Year": ("6.0", "h"),
    "Reserved Nvidia H100 80GB GPU in Americas in Calendar Mode": ("5.0", "h"),
    "Nvidia Tesla A100 GPU running in Americas": ("2.9", "h"),
    "N1 Predefined Instance Core running in Americas": ("0.03", "h"),
    "Nvidia H100 80GB Mega GPU running in Americas": ("9.5", "h"),
}
WHOLE = 8 * Decimal("9") + 208 * Decimal("0.03") + 1872 * Decimal("0.0025")  # 8 devices, 208 cores, 1,872 GiB
SPOT = 8 * Decimal("3") + 208 * Decimal("0.01") + 1872 * Decimal("0.001")


def listed(name: str, price: str, unit: str, currency: str = "USD") -> dict[str, Any]:
    """A SKU as the Catalog API answers it."""
    usage = "Preemptible" if "Spot Preemptible" in name else "Commit1Yr" if "Commitment" in name else "OnDemand"
    whole, _, part = price.partition(".")
    rate = {"startUsageAmount": 0, "unitPrice": {"currencyCode": currency, "units": whole,
                                                 "nanos": int(f"{part or 0:0<9}")}}  # fmt: skip
    return {"name": "services/6F81-5844-456A/skus/0000-0000-0000", "description": name,
            "category": {"resourceFamily": "Compute", "resourceGroup": "GPU", "usageType": usage},
            "serviceRegions": ["us-central1", "us-east4"],
            "pricingInfo": [{"pricingExpression": {"usageUnit": unit, "tieredRates": [rate]}}]}  # fmt: skip


def exported(name: str, price: str, unit: str) -> dict[str, Any]:
    """A row of the pricing export."""
    return {"pricing_as_of_time": "2026-11-20T00:00:00Z", "service": {"description": "Compute Engine"},
            "sku": {"id": "0", "description": name}, "geo_taxonomy": {"type": "MULTI_REGION",
                                                                     "regions": ["us-central1"]},
            "pricing_unit": unit, "account_currency_code": "EUR",
            "list_price": {"tiered_rates": [{"start_usage_amount": 0, "usd_amount": price}]}}  # fmt: skip


def read_of(folder: Path, text: str, **terms: Any) -> Imported:
    path = folder / "skus.json"
    path.write_text(text, encoding="utf-8")
    return read_list(path, load_catalog(), ListTerms(**terms), as_of=terms.pop("as_of", ""))


def prices(found: Imported) -> dict[str, Decimal]:
    return {name: Decimal(row["price_usd_per_hour_per_shape"]) for name, row in found.offers.items()}


def test_a_machine_is_the_sum_of_its_parts(tmp_path: Path) -> None:
    rows = [listed(name, *price) for name, price in PRICES.items()]
    found = read_of(tmp_path, json.dumps({"skus": rows, "nextPageToken": ""}))
    told = prices(found)
    assert told[OFFER] == WHOLE == Decimal("82.92")
    assert told[OFFER.replace("on_demand", "spot")] == SPOT
    assert told["gcp:us-east4-a:a3-highgpu-8g:on_demand"] == WHOLE
    assert found.offers[OFFER]["region"] == "us-central1"
    assert (found.rows, found.taken) == (11, 6)
    assert reasons([found]) == {
        "sold on other terms": 2,
        "accelerators without A2 Core and Ram in us-central1": 1,
        "no accelerator, core or memory of a machine with accelerators": 1,
        "cores and memory of a3-megagpu-8g are not known": 1,
    }
    assert "local disks are billed apart: no price holds them" in found.notes
    changes = refreshed([found], load_catalog())
    assert OFFER in {one.offer for one in (*changes.dearer, *changes.cheaper)}


@pytest.mark.parametrize("lines", [True, False])
def test_rows_of_the_pricing_export_are_read_with_their_day(lines: bool, tmp_path: Path) -> None:
    rows = [exported(name, *price) for name, price in PRICES.items()]
    text = "".join(json.dumps(row) + "\n" for row in rows) if lines else json.dumps(rows)
    found = read_of(tmp_path, text)
    assert prices(found)[OFFER] == WHOLE
    assert found.offers[OFFER]["as_of"] == "2026-11-20"
    for row in rows:
        row["billing_account_price"] = {"tiered_rates": [{"usd_amount": "0.5"}]}
    assert prices(read_of(tmp_path, json.dumps(rows)))[OFFER] == (8 + 208 + 1872) * Decimal("0.5")


@pytest.mark.parametrize("form", [listed, exported])
def test_plan_read_takes_them_too(form: Any, tmp_path: Path) -> None:
    path = tmp_path / "skus.json"
    path.write_text("\n".join(json.dumps(form(name, *price)) for name, price in PRICES.items()), encoding="utf-8")
    reading = read(Source(path))
    assert (reading.kind, reading.tool, reading.taken) == ("price-list", "Google Cloud SKUs", 6)
    assert OFFER in reading.pieces[0].text


def test_other_currencies_are_asked_about(tmp_path: Path) -> None:
    text = json.dumps([listed(name, *price, currency="EUR") for name, price in PRICES.items()])
    with pytest.raises(InputError, match="mixed-currency"):
        read_of(tmp_path, text)
    found = read_of(tmp_path, text, dollars={"EUR": Decimal("1.1")}, tax=Decimal(0))
    assert prices(found)[OFFER] == WHOLE * Decimal("1.1")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pricingInfo": []}, "priced by '', not by the hour"),
        ({"pricingInfo": [{"pricingExpression": {"usageUnit": "mo", "tieredRates": [{"unitPrice": {"units": "1"}}]}}]},
         "priced by 'mo', not by the hour"),
        ({"pricingInfo": [{"pricingExpression": {"usageUnit": "h", "tieredRates": [
            {"unitPrice": {"units": "1"}}, {"unitPrice": {"units": "2"}}]}}]}, "several prices by amount"),
        ({"pricingInfo": [{"pricingExpression": {"usageUnit": "h", "tieredRates": [{"unitPrice": {"units": "x"}}]}}]},
         "no number for a price"),
        ({"pricingInfo": "none"}, ""),
        ({"serviceRegions": None}, "no region"),
        ({"serviceRegions": []}, "no region"),
        ({"description": None}, "no accelerator, core or memory of a machine with accelerators"),
        ({"category": 7, "description": "x"}, "no accelerator, core or memory of a machine with accelerators"),
    ],
)  # fmt: skip
def test_what_is_no_price_is_listed_and_what_the_catalog_has_stays(
    change: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    rows = [listed(name, *price) for name, price in PRICES.items()]
    rows[0] |= change
    found = read_of(tmp_path, json.dumps(rows))
    assert OFFER not in found.offers
    assert not reason or reason in reasons([found]) or reason.startswith("priced by ''")
    assert OFFER.replace("on_demand", "spot") in found.offers
    if reason == "no number for a price":
        assert OFFER not in {one.offer for one in refreshed([found], load_catalog()).gone}
