"""Prices against figures copied by hand from the public lists, and the traps of those lists."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from planner.catalog.model import Catalog, Offer
from planner.catalog.pricing import with_doubtful

KINDS = {"marketplace": 13, "cloud": 10, "hyperscaler": 4}

# Counted over the price table without the importer: rows whose price is of a whole instance, a host with
# its accelerators, or a TPU slice, of a device that has facts; on-demand and spot cells apart.
COUNTS = {
    ("akash", "spot"): 3, ("aws", "block"): 13, ("aws", "commitment_1y"): 19, ("aws", "commitment_3y"): 21,
    ("aws", "on_demand"): 104, ("aws", "spot"): 66, ("azure", "commitment_1y"): 20, ("azure", "commitment_3y"): 20,
    ("azure", "on_demand"): 61, ("azure", "spot"): 52, ("coreweave", "on_demand"): 7, ("coreweave", "spot"): 6,
    ("crusoe", "on_demand"): 1, ("cudo", "on_demand"): 1, ("digitalocean", "on_demand"): 2,
    ("gcp", "commitment_1y"): 111, ("gcp", "commitment_3y"): 111, ("gcp", "on_demand"): 301, ("gcp", "spot"): 268,
    ("hyperbolic", "on_demand"): 3, ("hyperstack", "on_demand"): 20, ("jarvislabs", "on_demand"): 2,
    ("jarvislabs", "spot"): 2, ("lambda", "on_demand"): 21, ("mithril", "auction"): 4, ("nebius", "on_demand"): 21,
    ("nebius", "spot"): 8, ("novita", "on_demand"): 3, ("novita", "spot"): 2, ("oci", "on_demand"): 27,
    ("oci", "spot"): 4, ("packet-ai", "on_demand"): 2, ("primeintellect", "on_demand"): 10,
    ("primeintellect", "spot"): 2, ("qubrid", "on_demand"): 5, ("runpod", "block"): 22, ("runpod", "on_demand"): 21,
    ("runpod", "spot"): 5, ("runpod-community", "on_demand"): 8, ("spheron", "spot"): 4, ("tensordock", "on_demand"): 3,
    ("thundercompute", "on_demand"): 2, ("vast", "on_demand"): 11, ("vast", "spot"): 3, ("verda", "on_demand"): 17,
    ("verda", "spot"): 16, ("vultr", "on_demand"): 3,
}  # fmt: skip

# offer, dollars an hour of the whole shape, country
BY_HAND = [
    ("aws:use1-az2:p5.48xlarge:on_demand", "55.04", "US"),
    ("aws:use1-az1:p4d.24xlarge:on_demand", "21.957642", "US"),
    ("aws:euc1-az1:p4de.24xlarge:on_demand", "34.29122", "DE"),
    ("aws:us-east-1:p5e.48xlarge:block", "47.76", "US"),
    ("azure:eastus:ND96isr_H100_v5:on_demand", "98.32", "US"),
    ("azure:eastus:NC4as_T4_v3:spot", "0.149174", "US"),
    ("gcp:us-central1-a:a2-highgpu-8g:on_demand", "29.38708", "US"),
    ("gcp:us-central1-b:a4-highgpu-8g:on_demand", "90.216", "US"),
    ("gcp:us-east5-a:tpu-v5p-12288:on_demand", "25804.8", "US"),
    ("gcp:us-central1:tpu-v6e-256:commitment_1y", "483.84", "US"),  # 256 chips at $1.89
    ("gcp:europe-west4-a:tpu-v3-8:spot", "2.244", "NL"),
    ("lambda:us-east-1:gpu_8x_a100_80gb_sxm4:on_demand", "22.32", "US"),
    ("nebius:eu-north1:gpu-h100-sxm_8gpu-128vcpu-1600gb:spot", "17.2", "FI"),  # 2.15 a device
    ("gcp:us-central1:a3-highgpu-8g:commitment_3y", "38.8644", "US"),
    ("azure:eastus:ND96isr_H100_v5:commitment_1y", "62.9248", "US"),
    ("verda:FIN-03:8B200.240V:spot", "13.69", "FI"),
    ("oci:af-casablanca-1:BM.GPU.MI300X.8:on_demand", "48", "MA"),
    ("runpod:US-WA-1:8x_L40S_SECURE:on_demand", "7.92", "US"),  # 0.99 a device
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
        name = f"{offer.provider}:{offer.zone or offer.region}:{shape.name}:{offer.price_model}"
        assert offer.id in (name, f"{name}:2")  # two terms of one shape
        assert offer.shape.startswith(f"{offer.provider}/")
        assert offer.price_microusd_per_hour > 0


def test_dates(catalog: Catalog) -> None:
    """Every price has a day on which it stood, or an interval of days; what a list was confirmed on lies within."""
    for offer in catalog.offers:
        fact = offer.provenance
        assert fact.source
        assert fact.status in ("seen", "inferred", "recalled")
        assert "2024-01-01" < fact.as_of <= "2026-11-21"
        assert offer.not_before <= (offer.not_after or "9999")
        assert not offer.confirmed_on or max(offer.confirmed_on) == fact.as_of
        if fact.status == "recalled":
            assert offer.price_model.startswith("commitment")


def test_what_is_committed_to_says_so(catalog: Catalog) -> None:
    """Commitments of NVIDIA devices that were seen, of four providers, each with its kind."""
    nvidia = [
        offer
        for offer in catalog.offers
        if offer.price_model.startswith(("commitment", "block"))
        and catalog.devices[catalog.shapes[offer.shape].device].vendor == "nvidia"
        and offer.provenance.status == "seen"
    ]
    assert len(nvidia) >= 150
    assert Counter(offer.provider for offer in nvidia).keys() == {"aws", "azure", "gcp", "runpod"}
    assert {offer.contract for offer in nvidia} == {"reservation", "savings plan", "committed use", "capacity block"}


def test_below_half_of_the_median_is_suspect(catalog: Catalog) -> None:
    """Of the prices of a device at hyperscalers the one at a tenth; what the user says is not judged."""
    steady = [
        o for o in catalog.offers if o.price_model == "on_demand" and o.provider in ("aws", "gcp", "azure", "oci")
    ]
    l4 = [o for o in steady if catalog.shapes[o.shape].device == "l4" and not o.quality]
    low = replace(l4[0], price_microusd_per_hour=l4[0].price_microusd_per_hour // 10)
    mine = replace(low, provenance=replace(low.provenance, status="user"))
    for one, flag in ((low, "suspect"), (mine, "")):
        offers = tuple(one if o.id == one.id else o for o in catalog.offers)
        marked = with_doubtful(replace(catalog, offers=offers))
        assert {o.quality for o in marked.offers if o.id == one.id} == {flag}
        assert with_doubtful(marked) == marked


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
            three = offers.get(offer.id.replace("_1y", "_3y"), offer)
            assert three is offer or three.price_microusd_per_hour < offer.price_microusd_per_hour
            full = steady.get((offer.region, offer.shape))
            assert full is None or offer.price_microusd_per_hour < full


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
    assert flagged == {"stale": 35, "suspect_spot": 29, "suspect": 5, "placeholder": 4}
    # a spot price that is no spot price says nothing against the on-demand price of the same row
    assert offers["aws:use1-az1:p5.48xlarge:on_demand"].quality == ""
    assert offers["aws:use1-az1:p5.48xlarge:spot"].quality == "suspect_spot"
    assert offers["gcp:us-central1-a:a3-highgpu-8g:on_demand"].quality == ""  # the list price in place of flex-start
    assert offers["gcp:us-east4-b:a4-highgpu-8g:on_demand"].quality == "suspect"
    assert offers["azure:eastus:NV6ads_A10_v5:on_demand"].quality == "suspect"
    assert all(offer.quality == "placeholder" for offer in catalog.offers if offer.price_model == "auction")


def test_places(catalog: Catalog) -> None:
    providers = {offer.provider for offer in catalog.offers}
    assert providers <= set(catalog.providers)
    assert Counter(catalog.providers[name].kind for name in providers) == KINDS
    for offer in catalog.offers:
        assert " " not in offer.region + offer.zone
        assert offer.country == "" or (len(offer.country) == 2 and offer.country.isupper())
        assert offer.country or offer.region in ("any", "default", "north-america")
        if offer.provider == "gcp" and offer.zone:
            assert offer.zone.startswith(offer.region + "-")
