"""What a plan may rent without being asked to: whose offers, and on what somebody could launch its workloads.

A scenario says whom it rents from; marketplaces, prices from memory, and machines on which nothing that `plan export`
writes for runs a workload count only where it asks for them, or where there is nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.architecture.model import Architecture
from planner.catalog.model import Catalog, Device, Offer
from planner.catalog.names import device_matches, provider_matches, region_matches
from planner.catalog.offers import GIVEN
from planner.checks.facts import OfferFacts
from planner.checks.findings import Finding
from planner.estimate.frameworks import runs_on
from planner.estimate.kernels import lacks_kernels, not_run
from planner.estimate.market import is_own_contract
from planner.estimate.published import unpublished
from planner.estimate.resolve import measured_mfu
from planner.estimate.software import programs_of
from planner.scenario.schema import Hardware, Scenario, ServingFleet, TrainingJob

MARKETPLACE = "marketplace"
PART = "share"  # kind of shapes that are a part of one device, which no launch file asks for


def seller_findings(name: str, offer: Offer, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """Whether the scenario rents from whoever sells an offer, at such a price.

    Parameters
    ----------
    name
        Of what rents it.
    offer
        Of the catalog, looked up again; nothing that is owned.
    scenario
        The one that the plan carries, read.
    catalog
        The catalog with what the scenario adds to it.
    """
    hardware = scenario.hardware
    if offer.provider == GIVEN or is_own_contract(offer):
        return
    if not _sells(offer.provider, hardware):
        yield Finding("not-allowed", f"{name}: the scenario does not rent from {offer.provider}")
    elif not _brought(offer):
        kind = _kind(offer, catalog)
        if hardware.kinds is not None:
            if kind not in hardware.kinds:
                yield Finding("not-allowed", f"{name}: {offer.provider} is of none of the kinds that are allowed")
        elif _unnamed_market(offer, hardware, catalog) and not _nobody_else(offer, scenario, catalog):
            yield Finding("not-allowed", f"{name}: {offer.provider} is a marketplace, which nobody asked for")
    if offer.provenance.status == "recalled" and not hardware.allow_recalled:
        yield Finding("not-allowed", f"{name}: the price of {offer.id} is from memory, which is not allowed")
    if offer.quality == "sentinel":
        yield Finding("not-allowed", f"{name}: the price of {offer.id} is no price")


def launch_findings(
    asked: TrainingJob | ServingFleet, facts: OfferFacts, arch: Architecture, scenario: Scenario, catalog: Catalog
) -> Iterator[Finding]:
    """Whether something that is exported runs a workload where it stands, or nobody named it while others do.

    Parameters
    ----------
    asked
        A workload of the scenario.
    facts
        What it runs on.
    arch
        Its model.
    scenario
        The one that the plan carries, read.
    catalog
        The catalog with what the scenario adds to it.
    """
    hardware, device = scenario.hardware, facts.device
    if facts.owned is not None or _brought(facts.offer) or _named(device, hardware):
        return
    if not _launches_nothing(asked, facts.device, facts.shape.kind, arch):
        return
    others = (offer for offer in catalog.offers if _usable(offer, scenario, catalog))
    if any(_runs_beside(asked, offer, facts.offer, arch, scenario, catalog) for offer in others):
        yield Finding(
            "not-allowed",
            f"{asked.name}: nothing that plan export writes for runs it on {facts.offer.id}, and nobody named it",
        )


def _launches_nothing(asked: TrainingJob | ServingFleet, device: Device, kind: str, arch: Architecture) -> bool:
    if isinstance(asked, ServingFleet):
        return kind == PART
    return not programs_of(asked, arch, device.kind) and measured_mfu(device, asked.mfu) is None


def _runs_beside(
    asked: TrainingJob | ServingFleet, offer: Offer, chosen: Offer, arch: Architecture, scenario: Scenario,
    catalog: Catalog,
) -> bool:  # fmt: skip
    """Whether a workload could run on another offer, with something to launch it; where that is open, it could not."""
    shape = catalog.shapes[offer.shape]
    device = catalog.devices[shape.device]
    if _launches_nothing(asked, device, shape.kind, arch) or _counts_energy(scenario):
        return False
    if not any(region_matches(offer, pattern) for pattern in asked.regions):
        return False
    if isinstance(asked, ServingFleet) and offer.price_model == "spot" and not asked.max_spot_share:
        return False
    if isinstance(asked, ServingFleet):
        rated = any(device.peak_flop_per_s.get(one) for one in ("bf16", "fp16", "fp32"))
        refused = unpublished(asked, arch, device, shape.devices) or not_run(asked, device, shape.devices)
        able = "serving" in device.uses and bool(device.memory_bandwidth_bytes_per_s) and rated
        return able and not refused and not lacks_kernels(asked, device)
    moved = asked.data is not None and (offer.provider, offer.region) != (chosen.provider, chosen.region)
    hosts = not asked.offload or shape.host_memory_bytes is not None
    able = "training" in device.uses and runs_on(asked.framework, device.frameworks)
    return able and bool(device.peak_flop_per_s.get(asked.precision)) and hosts and not moved


def _counts_energy(scenario: Scenario) -> bool:
    """Whether offers may be left out because nobody knows what they draw or emit."""
    limits = scenario.limits
    limited = limits.power_w is not None or limits.carbon_g is not None or bool(limits.sites)
    return limited or "carbon" in scenario.objective


def _usable(offer: Offer, scenario: Scenario, catalog: Catalog) -> bool:
    """Whether the scenario may rent an offer by the hour, marketplaces and suspect prices left out."""
    hardware, device = scenario.hardware, catalog.devices[catalog.shapes[offer.shape].device]
    return (
        _fits(offer, device, hardware)
        and offer.price_model in hardware.pricing
        and not next(seller_findings("", offer, scenario, catalog), None)
    )


def _fits(offer: Offer, device: Device, hardware: Hardware) -> bool:
    return (
        any(device_matches(device, pattern) for pattern in hardware.allow)
        and not any(device_matches(device, pattern) for pattern in hardware.deny)
        and any(region_matches(offer, pattern) for pattern in hardware.regions)
        and not offer.quality
    )


def _sells(provider: str, hardware: Hardware) -> bool:
    named = any(provider_matches(provider, pattern) for pattern in hardware.providers)
    return named and not any(provider_matches(provider, pattern) for pattern in hardware.exclude)


def _kind(offer: Offer, catalog: Catalog) -> str:
    seller = catalog.providers.get(offer.provider)
    return "" if seller is None else seller.kind


def _brought(offer: Offer) -> bool:
    """Whether the user brought the offer: a contract, a table of rates, or a price that was negotiated."""
    return is_own_contract(offer) or offer.provider == GIVEN or offer.provenance.status == "user"


def _named(device: Device, hardware: Hardware) -> bool:
    return any(pattern != "*" and device_matches(device, pattern) for pattern in hardware.allow)


def _unnamed_market(offer: Offer, hardware: Hardware, catalog: Catalog) -> bool:
    named = any(pattern != "*" and provider_matches(offer.provider, pattern) for pattern in hardware.providers)
    return _kind(offer, catalog) == MARKETPLACE and not named


def _nobody_else(offer: Offer, scenario: Scenario, catalog: Catalog) -> bool:
    """Whether no others sell the devices of some pattern of `allow` that means the offer's."""
    hardware, device = scenario.hardware, catalog.devices[catalog.shapes[offer.shape].device]
    for pattern in hardware.allow:
        if not device_matches(device, pattern):
            continue
        meant = {one.id for one in catalog.devices.values() if device_matches(one, pattern)}
        mine = (one for one in catalog.offers if catalog.shapes[one.shape].device in meant)
        if not any(_sold_beside(one, scenario, catalog) for one in mine):
            return True
    return False


def _sold_beside(offer: Offer, scenario: Scenario, catalog: Catalog) -> bool:
    hardware, device = scenario.hardware, catalog.devices[catalog.shapes[offer.shape].device]
    asked = offer.provider == GIVEN or is_own_contract(offer) or _sells(offer.provider, hardware)
    terms = offer.price_model in hardware.pricing or is_own_contract(offer)
    remembered = offer.provenance.status == "recalled" and not hardware.allow_recalled
    alone = _unnamed_market(offer, hardware, catalog) and not _brought(offer)
    return _fits(offer, device, hardware) and asked and terms and not remembered and not alone
