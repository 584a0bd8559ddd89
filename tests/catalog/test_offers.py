"""Prices against figures copied by hand from the public lists, and the traps of those lists."""

from __future__ import annotations

from collections import Counter

import pytest

from planner.catalog.model import Catalog, Offer

# Counted over the price table without the importer: rows whose price is of a whole instance, a host with
# its accelerators, or a TPU slice, of a device that has facts; on-demand and spot cells apart.
COUNTS = {
    ("aws", "block"): 6, ("aws", "on_demand"): 75, ("aws", "spot"): 66,
    ("azure", "on_demand"): 6, ("azure", "spot"): 6,
    ("digitalocean", "on_demand"): 2,
    ("gcp", "on_demand"): 96, ("gcp", "spot"): 87,
    ("gcp", "commitment_1y"): 32, ("gcp", "commitment_3y"): 32,
    ("hyperbolic", "on_demand"): 3,
    ("hyperstack", "on_demand"): 20,
    ("lambda", "on_demand"): 21,
    ("mithril", "auction"): 4,
    ("nebius", "on_demand"): 21, ("nebius", "spot"): 8,
    ("oci", "on_demand"): 27, ("oci", "spot"): 4,
    ("primeintellect", "on_demand"): 10, ("primeintellect", "spot"): 2,
    ("runpod", "on_demand"): 9, ("runpod", "spot"): 5,
    ("verda", "on_demand"): 17, ("verda", "spot"): 16,
}  # fmt: skip

# offer, dollars an hour of the whole shape, country
BY_HAND = [
    ("aws:use1-az2:p5.48xlarge:on_demand", "55.04", "US"),
    ("aws:use1-az1:p4d.24xlarge:on_demand", "21.957642", "US"),
    ("aws:euc1-az1:p4de.24xlarge:on_demand", "34.29122", "DE"),
    ("aws:us-east-2:p5e.48xlarge:block", "43.26", "US"),
    ("azure:eastus:ND96isr_H100_v5:on_demand", "98.32", "US"),
    ("azure:eastus:NC4as_T4_v3:spot", "0.149174", "US"),
    ("gcp:us-central1-a:a2-highgpu-8g:on_demand", "29.38708", "US"),
    ("gcp:us-central1-b:a4-highgpu-8g:on_demand", "90.216", "US"),
    ("gcp:us-east5-a:tpu-v5p-12288:on_demand", "25804.8", "US"),
    ("gcp:us-central1:tpu-v6e-256:commitment_1y", "483.84", "US"),  # 256 chips at $1.89
    ("gcp:europe-west4-a:tpu-v3-8:spot", "2.244", "NL"),
    ("lambda:us-east-1:gpu_8x_a100_80gb_sxm4:on_demand", "22.32", "US"),
    ("nebius:eu-north1:gpu-h100-sxm_8gpu-128vcpu-1600gb:spot", "10", "FI"),
    ("verda:FIN-03:8B200.240V:spot", "13.69", "FI"),
    ("oci:af-casablanca-1:BM.GPU.MI300X.8:on_demand", "48", "MA"),
    ("runpod:US-WA-1:8x_L40S_SECURE:on_demand", "6.88", "US"),  # columns were swapped at the source
    ("hyperstack:NORWAY-1", "", ""),  # a device without facts: not offered
]


@pytest.fixture(scope="session")
def offers(catalog: Catalog) -> dict[str, Offer]:
    return {offer.id: offer for offer in catalog.offers}


def test_counts_by_provider(catalog: Catalog) -> None:
    assert Counter((offer.provider, offer.price_model) for offer in catalog.offers) == COUNTS


@pytest.mark.parametrize(("name", "dollars", "country"), BY_HAND)
def test_prices_by_hand(offers: dict[str, Offer], name: str, dollars: str, country: str) -> None:
    if not dollars:
        assert not [offer for offer in offers if offer.startswith(name)]
        return
    whole, _, cents = dollars.partition(".")
    assert offers[name].price_microusd_per_hour == int(whole) * 1_000_000 + int(cents.ljust(6, "0") or 0)
    assert offers[name].country == country


def test_ids_are_unique_sorted_and_say_what_they_are(catalog: Catalog) -> None:
    ids = [offer.id for offer in catalog.offers]
    assert ids == sorted(set(ids))
    for offer in catalog.offers:
        shape = catalog.shapes[offer.shape]
        assert offer.id == f"{offer.provider}:{offer.zone or offer.region}:{shape.name}:{offer.price_model}"
        assert offer.shape.startswith(f"{offer.provider}/")
        assert offer.price_microusd_per_hour > 0


def test_dates(catalog: Catalog) -> None:
    for offer in catalog.offers:
        fact = offer.provenance
        assert fact.source
        if fact.status == "date-unknown":
            # a commit without a date counts from the day it was transcribed; mithril's has a latest date
            assert fact.as_of == ("2026-03-22" if offer.provider == "mithril" else "2026-11-21")
        elif offer.price_model.startswith("commitment"):
            assert (fact.status, fact.as_of) == ("recalled", "2026-11-21")
        else:
            assert fact.status == "seen"
            assert fact.as_of in ("2026-09-06", "2024-12-01")


def test_terms(offers: dict[str, Offer]) -> None:
    block = offers["aws:us-east-2:p5.48xlarge:block"]
    assert (block.min_term_hours, block.max_term_hours, block.term_step_hours) == (24, 4368, 24)
    assert (block.max_shapes, block.upfront_fraction) == (64, 1)
    terms = {
        (offer.price_model, offer.min_term_hours, offer.max_term_hours)
        for offer in offers.values()
        if offer.price_model.startswith("commitment")
    }
    assert terms == {("commitment_1y", 8760, 8760), ("commitment_3y", 26280, 26280)}


def test_commitments_are_below_on_demand(catalog: Catalog, offers: dict[str, Offer]) -> None:
    """Of the same slice in the same region; three years below one."""
    steady = {(o.region, o.shape): o.price_microusd_per_hour for o in catalog.offers if o.price_model == "on_demand"}
    for offer in offers.values():
        if offer.price_model == "commitment_1y":
            three = offers[offer.id.replace("_1y", "_3y")]
            assert three.price_microusd_per_hour < offer.price_microusd_per_hour < steady[offer.region, offer.shape]


# by hand: 100 GB free, then 9900 at 0.09, 40000 at 0.085, 50000 at 0.07
TRANSFERS = [
    ("aws", "egress", 100e3, 0.09 * 9900 + 0.085 * 40e3 + 0.07 * 50e3),
    ("gcp", "egress", 2e3, 0.12 * 1000 + 0.11 * 1000),
    ("oci", "egress", 10e3, 0.0),
    ("gcp", "inter-region", 2e3, 40.0),
    ("azure", "storage", 1e3, 18.0),
]


@pytest.mark.parametrize(("provider", "kind", "gigabytes", "usd"), TRANSFERS)
def test_transfers_by_hand(catalog: Catalog, provider: str, kind: str, gigabytes: float, usd: float) -> None:
    assert catalog.transfers[provider, kind].usd(gigabytes) == pytest.approx(usd, rel=1e-12)
    assert ("runpod", "egress") not in catalog.transfers  # unknown is not zero


def test_slice_prices_are_chip_prices(catalog: Catalog, offers: dict[str, Offer]) -> None:
    assert offers["gcp:us-central1-a:tpu-v5p-12288:on_demand"].price_microusd_per_hour == 4_200_000 * 6144
    assert offers["gcp:us-central1-a:tpu-v5p-11776:on_demand"].price_microusd_per_hour == 4_200_000 * 5888
    assert offers["gcp:us-east1-d:tpu-v3-2048:on_demand"].price_microusd_per_hour == 2_000_000 * 1024
    assert offers["gcp:us-central2-b:tpu-v4-4096:on_demand"].price_microusd_per_hour == 3_220_000 * 2048
    assert offers["gcp:us-central1-a:tpu-v6e-256:on_demand"].price_microusd_per_hour == 2_700_000 * 256
    bounds = {"tpu-v2": (1.1, 1.6), "tpu-v3": (2.0, 2.2), "tpu-v4": (3.2, 3.3), "tpu-v5e": (1.2, 1.6),
              "tpu-v5p": (4.2, 4.8), "tpu-v6e": (2.7, 3.3)}  # fmt: skip
    for offer in catalog.offers:
        shape = catalog.shapes[offer.shape]
        if shape.kind == "slice" and offer.price_model == "on_demand":
            low, high = bounds[shape.device]
            assert low <= offer.price_microusd_per_hour / 1e6 / shape.devices <= high, offer.id


def test_no_price_is_no_offer(offers: dict[str, Offer]) -> None:
    for shape in ("trn2.48xlarge", "p5e.48xlarge"):  # sold as capacity blocks only
        assert not [name for name in offers if shape in name and name.endswith("on_demand")]
    assert "verda:FIN-03:2B200.60V:on_demand" not in offers
    assert "verda:FIN-03:2B200.60V:spot" in offers
    assert "gcp:asia-east1-c:tpu-v6e-1:on_demand" not in offers  # 700.0 stood there
    assert "gcp:southamerica-west1-a:tpu-v6e-4:spot" not in offers


def test_prices_of_parts_are_no_offers(catalog: Catalog) -> None:
    # "8x H200 (accelerator part only)" and prices per chip would undercut every whole machine
    assert not [offer for offer in catalog.offers if offer.shape.startswith("gcp/a3-ultragpu")]
    assert not [offer for offer in catalog.offers if "accelerator" in offer.id or ":TPU" in offer.id]


def test_flags(catalog: Catalog, offers: dict[str, Offer]) -> None:
    flagged = Counter(offer.quality for offer in catalog.offers if offer.quality)
    assert flagged == {"suspect": 26, "suspect_spot": 2}
    # a spot price that is no spot price says nothing against the on-demand price of the same row
    assert offers["aws:use1-az1:p5.48xlarge:on_demand"].quality == ""
    assert offers["aws:use1-az1:p5.48xlarge:spot"].quality == "suspect_spot"
    assert offers["gcp:us-central1-a:a3-highgpu-8g:on_demand"].quality == "suspect"
    assert offers["gcp:us-east4-b:a4-highgpu-8g:on_demand"].quality == "suspect"
    assert offers["azure:eastus:NV6ads_A10_v5:on_demand"].quality == "suspect"
    assert all(offer.quality == "suspect" for offer in catalog.offers if offer.price_model == "auction")


def test_places(catalog: Catalog) -> None:
    providers = {offer.provider for offer in catalog.offers}
    assert providers == {"aws", "gcp", "azure", "oci", "lambda", "nebius", "verda", "runpod", "hyperstack",
                         "primeintellect", "mithril", "hyperbolic", "digitalocean"}  # fmt: skip
    for offer in catalog.offers:
        assert " " not in offer.region + offer.zone
        assert offer.country == "" or (len(offer.country) == 2 and offer.country.isupper())
        assert (offer.country == "") == (offer.provider == "hyperbolic")
        if offer.provider == "gcp" and offer.zone:
            assert offer.zone.startswith(offer.region + "-")
