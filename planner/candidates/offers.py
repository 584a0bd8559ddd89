"""Which offers a scenario may use, and the machines they amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.candidates.ledger import Ledger
from planner.candidates.sellers import demand_sold, is_seller, with_promise
from planner.carriers import dataclass
from planner.catalog.load import device_matches
from planner.catalog.model import Catalog, Device, Grid, Offer, Provenance, Shape
from planner.catalog.names import provider_matches, region_matches
from planner.estimate.bill import Bill, bill_of
from planner.estimate.market import METERED, is_own_contract
from planner.estimate.ownership import hourly_of
from planner.estimate.resolve import inter_node_rate, owned_shape, usable_bytes
from planner.scenario.hardware_keys import RENTED, Owned
from planner.scenario.schema import Hardware, Quota, Scenario, SiteLimit

Figure = TypeVar("Figure")
OWNED = "owned"
HOST_DEVICES = 8  # GPUs of one host with switches between them: HGX boards
FABRIC_BYTES_PER_S = 100e9 / 8  # of each device, one way, from which on guides stretch a replica over machines
LARGEST_FLEET = 16384  # shapes of an offer that replicas of one fleet run on
LARGEST_JOB = 65536  # devices of one job: more than any published run has had


@dataclass(frozen=True, kw_only=True)
class Site:
    """An offer with what it stands on: the device, the shape, and what they allow; made once for many questions."""

    offer: Offer
    shape: Shape
    device: Device
    owned: int | None = None  # index into hardware.owned
    inter_node_bytes_per_s: float | None = None  # per device; None = one shape only
    bill: Bill | None = None  # how a job on it is billed; None: for the time that it runs
    drawn_w: float | None = None  # by one shape, where the scenario says so
    grid: Grid | None = None  # of what is owned; of what is rented the catalog has it by provider and region
    whole_devices: int | None = None  # of the node that the shape is a part of (`node_parts`); None: it is whole

    @property
    def said(self) -> str:
        """The offer in a message: machines that are owned by their shape and where the scenario lists them."""
        return self.offer.id if self.owned is None else f"{self.shape.name} ({owned_key(self.owned)})"

    @cached_property
    def spot(self) -> bool:
        """Whether it may be taken away."""
        return self.offer.price_model == "spot"

    @cached_property
    def usable_bytes(self) -> float:
        """Memory of one device that a workload may fill.  [B]"""
        return usable_bytes(self.device, self.shape)

    @cached_property
    def domain(self) -> int:
        """Devices that fast links join: those of a shape, or of several in one fast domain."""
        return self.shape.domain_devices

    @property
    def fast_links(self) -> bool:
        """Whether the devices of a shape talk over links of their own, not over the bus of their host."""
        link = self.device.scale_up
        return link is not None and link.pattern != "pcie"

    @property
    def part_of_host(self) -> bool:
        """Whether a rented shape is a part of a host of eight GPUs, which shares the network cards of the host."""
        link = self.device.scale_up
        if self.owned is not None or self.device.kind != "gpu" or link is None or link.pattern != "switched":
            return False
        return link.max_devices <= 2 * HOST_DEVICES and self.domain < HOST_DEVICES

    @cached_property
    def on_stated_network(self) -> bool:
        """Whether what is known of its network is what the scenario says (assume_inter_node)."""
        published = self.shape.inter_node_bytes_per_s_per_device
        return self.inter_node_bytes_per_s is not None and published is None

    @cached_property
    def made_for_replicas(self) -> bool:
        """Whether a replica may well be stretched over several shapes: a network made for it, or stated for them."""
        if self.on_stated_network:
            return not self.part_of_host
        published = self.shape.inter_node_bytes_per_s_per_device
        return published is not None and published >= FABRIC_BYTES_PER_S * (1 - 1e-9)

    @cached_property
    def physics(self) -> tuple[object, ...]:
        """Sites with equal physics share one evaluation, whatever they cost."""
        shape = self.shape
        return (
            shape.device,
            shape.devices,
            shape.scale_up_devices,
            shape.compute_share,
            shape.bandwidth_share,
            shape.memory_bytes_per_device,
            self.inter_node_bytes_per_s,
            self.made_for_replicas,
            shape.torus,
            self.spot,
        )


def sites_of(scenario: Scenario, catalog: Catalog, ledger: Ledger, *, allow_suspect: bool = False) -> list[Site]:
    """Offers that pass the scenario's own filters, sorted by offer id; drops go to the ledger.

    Parameters
    ----------
    scenario
        Its hardware section filters, and lists what is owned.
    catalog
        With what the scenario adds to it.
    ledger
        Is told how many offers were looked at, and why others are left out.
    allow_suspect
        Use prices that look wrong, too.

    Raises
    ------
    InputError
        The scenario asks for a price model on which nothing that is allowed is sold.
    """
    found = _found(_Asked(catalog=catalog, hardware=scenario.hardware, allow_suspect=allow_suspect))
    ledger.offers_seen += len(catalog.offers) + len(scenario.hardware.owned)
    for (reason, on), count in found.dropped.items():
        ledger.drop(reason, "offers", count, on=on)
    return list(found.sites)


def usable_offers(scenario: Scenario, catalog: Catalog, *, allow_suspect: bool = False) -> tuple[Offer, ...]:
    """Offers that pass the scenario's own filters, contracts among them.

    Parameters
    ----------
    scenario
        Its hardware section filters.
    catalog
        With what the scenario adds to it.
    allow_suspect
        Use prices that look wrong, too.

    Raises
    ------
    InputError
        The scenario asks for a price model on which nothing that is allowed is sold.
    """
    return _found(_Asked(catalog=catalog, hardware=scenario.hardware, allow_suspect=allow_suspect)).usable


def models_sold(scenario: Scenario, catalog: Catalog) -> frozenset[str]:
    """Price models on which anything is sold that a scenario allows, by sellers and in regions that it allows."""
    return _models_sold(_Asked(catalog=catalog, hardware=scenario.hardware, allow_suspect=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Asked:
    """A catalog as it is, and what a scenario says of hardware: equal for equal words about the same catalog."""

    catalog: Catalog
    hardware: Hardware
    allow_suspect: bool

    def __eq__(self, other: object) -> bool:
        """The same catalog, not one like it: that is never compared offer by offer."""
        if not isinstance(other, _Asked) or self.catalog is not other.catalog:
            return False
        return self.allow_suspect == other.allow_suspect and self.hardware == other.hardware

    def __hash__(self) -> int:
        """Of the catalog alone: there are few, and few hardware sections to each."""
        return hash((id(self.catalog), self.allow_suspect))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What a scenario may rent or owns, and what it may not."""

    usable: tuple[Offer, ...]
    sites: tuple[Site, ...]  # sorted by offer id
    dropped: Mapping[tuple[str, tuple[str, str]], int]  # offers by reason and by device and provider, as first met


@lru_cache(maxsize=8)  # asked by every workload, case and further question
def _found(asked: _Asked) -> _Found:
    """Every offer judged, and the sites of those that are paid by the hour."""
    hardware, catalog = asked.hardware, asked.catalog
    judged = _judged(hardware, catalog, asked.allow_suspect)
    sites = [_owned_site(index, owned, catalog, hardware) for index, owned in enumerate(hardware.owned)]
    sites += [_site(o, catalog, hardware) for o, reason in judged if not reason and o.price_model in METERED]
    refused = ((reason, (catalog.shapes[o.shape].device, provider_key(o.provider))) for o, reason in judged if reason)
    return _Found(
        usable=tuple(offer for offer, reason in judged if not reason),
        sites=tuple(sorted(sites, key=lambda site: site.offer.id)),
        dropped=Counter(refused),
    )


@lru_cache(maxsize=8)  # told by every plan
def _models_sold(asked: _Asked) -> frozenset[str]:
    catalog, hardware = asked.catalog, asked.hardware.model_copy(update={"pricing": RENTED})
    devices = allowed_devices(hardware, catalog)
    judged = [
        (offer, _offer_refusal(offer, hardware, devices[catalog.shapes[offer.shape].device], allow_suspect=True))
        for offer in catalog.offers
    ]
    return frozenset(offer.price_model for offer, reason in with_promise(judged, hardware, catalog) if not reason)


def _judged(hardware: Hardware, catalog: Catalog, allow_suspect: bool) -> list[tuple[Offer, str]]:
    """Every offer with the reason why it may not be used, or an empty string."""
    devices = allowed_devices(hardware, catalog)
    demand_sold(hardware, catalog, devices)
    judged = [
        (offer, _offer_refusal(offer, hardware, devices[catalog.shapes[offer.shape].device], allow_suspect))
        for offer in catalog.offers
    ]
    return with_promise(judged, hardware, catalog)


def allowed_devices(hardware: Hardware, catalog: Catalog) -> dict[str, bool]:
    """Whether a scenario allows each device of a catalog, by id."""

    def wanted(device: Device) -> bool:
        return _any_matches(device, hardware.allow) and not _any_matches(device, hardware.deny)

    return {device.id: wanted(device) for device in catalog.devices.values()}


def why_left_out(offer: Offer, hardware: Hardware, catalog: Catalog) -> str:
    """Why a scenario does not use an offer, whatever it costs: a reason of the ledger; "" where it may."""
    device = catalog.devices[catalog.shapes[offer.shape].device]
    allowed = _any_matches(device, hardware.allow) and not _any_matches(device, hardware.deny)
    return _offer_refusal(offer, hardware, allowed, allow_suspect=True)


def remembered_offers(scenario: Scenario, catalog: Catalog) -> list[Offer]:
    """What a scenario leaves out for nothing but its price, which is from memory (hardware.allow_recalled)."""
    recalled = [offer for offer in catalog.offers if offer.provenance.status == "recalled"]
    return [offer for offer in recalled if why_left_out(offer, scenario.hardware, catalog) == "recalled-price"]


def _any_matches(device: Device, patterns: Iterable[str]) -> bool:
    return any(device_matches(device, pattern) for pattern in patterns)


def _offer_refusal(offer: Offer, hardware: Hardware, device_allowed: bool, allow_suspect: bool) -> str:
    if not device_allowed:
        return "not-allowed"
    if not any(region_matches(offer, pattern) for pattern in hardware.regions):
        return "region"
    if not is_seller(offer, hardware):
        return "provider"
    if offer.price_model not in hardware.pricing and not is_own_contract(offer):
        return "price-model"
    if offer.provenance.status == "recalled" and not hardware.allow_recalled:
        return "recalled-price"
    return "suspect-price" if is_suspect(offer, allow_suspect=allow_suspect) else ""


def is_suspect(offer: Offer, *, allow_suspect: bool = False) -> bool:
    """Whether the price looks wrong, so that no plan may rest on it; a sentinel never is a price."""
    return bool(offer.quality) and (not allow_suspect or offer.quality == "sentinel")


def site_at(offer: Offer, catalog: Catalog) -> Site:
    """What an offer stands on, without what a scenario assumes of its network."""
    shape = catalog.shapes[offer.shape]
    return Site(offer=offer, shape=shape, device=catalog.devices[shape.device])


def _site(offer: Offer, catalog: Catalog, hardware: Hardware) -> Site:
    shape = catalog.shapes[offer.shape]
    return Site(
        offer=offer,
        shape=shape,
        device=catalog.devices[shape.device],
        inter_node_bytes_per_s=inter_node_rate(shape, catalog, hardware.assume_inter_node_bytes_per_s),
        bill=bill_of(offer, catalog, hardware),
    )


def _owned_site(index: int, owned: Owned, catalog: Catalog, hardware: Hardware) -> Site:
    shape = owned_shape(owned, catalog)
    offer = Offer(
        id=f"owned:{index}:{shape.id}",
        provider=OWNED,
        region=owned.region or OWNED,
        zone="",
        country="",
        shape=shape.id,
        price_model=OWNED,
        price_microusd_per_hour=hourly_of(owned).price_microusd,
        max_shapes=owned.count,
        provenance=Provenance(source="scenario", as_of="", status="user"),
    )
    return Site(
        offer=offer,
        shape=shape,
        device=catalog.devices[shape.device],
        owned=index,
        inter_node_bytes_per_s=inter_node_rate(shape, catalog, hardware.assume_inter_node_bytes_per_s),
        drawn_w=owned.power.power_w if owned.power else None,
        grid=_grid_of(owned, catalog),
    )


def _grid_of(owned: Owned, catalog: Catalog) -> Grid | None:
    """What its energy emits as the scenario says, or as the region's does; with the overhead that it says."""
    provenance = Provenance(source="scenario", as_of="", status="user")
    if owned.gco2_per_kwh is not None:
        return Grid(provider=OWNED, region=OWNED, gco2_per_kwh=owned.gco2_per_kwh, pue=1.0, provenance=provenance)
    there = catalog.grid_named(owned.region or OWNED)
    return replace(there, pue=owned.power.pue) if there and owned.power else there


def provider_key(provider: str) -> str:
    """A provider among the names that ledgers keep."""
    return f"provider {provider}"


def owned_key(index: int) -> str:
    """A group of owned machines among the names that ledgers keep."""
    return f"hardware.owned[{index}]"


def names_on(sites: Iterable[Site]) -> set[str]:
    """Devices, providers and owned groups of some sites, as ledgers keep them."""
    found: set[str] = set()
    for site in sites:
        found.add(site.device.id)
        found.add(provider_key(site.offer.provider) if site.owned is None else owned_key(site.owned))
    return found


class Numbered:
    """Thousands of sites, some hundred of them different: what is asked of each is asked of a different one once."""

    __slots__ = ("different", "number")

    def __init__(self, sites: Iterable[Site]) -> None:
        every = list(sites)
        ids = np.fromiter(map(id, every), dtype=np.int64, count=len(every))
        _, first, number = np.unique(ids, return_index=True, return_inverse=True)
        self.different = [every[place] for place in first.tolist()]
        self.number: NDArray[np.int64] = number

    def each(self, value: Callable[[Site], Figure]) -> list[Figure]:
        """Something of every site, in their order."""
        known = [value(site) for site in self.different]
        return [known[place] for place in self.number.tolist()]

    def whole(self, value: Callable[[Site], int]) -> NDArray[np.int64]:
        """A whole number of every site."""
        return np.array([value(site) for site in self.different], dtype=np.int64)[self.number]


def group_by_physics(sites: Iterable[Site], *, host_memory: bool = False) -> list[list[Site]]:
    """Sites that one evaluation serves, in a canonical order; `host_memory`: that of the hosts counts too."""
    groups: dict[tuple[object, ...], list[Site]] = {}
    for site in sites:
        groups.setdefault((*site.physics, site.shape.host_memory_bytes if host_memory else None), []).append(site)
    return list(groups.values())


def quota_matches(site: Site, quota: Quota) -> bool:
    """Whether an offer counts against a quota: contracts as they are bought, what is owned never."""
    offer = site.offer
    if offer.price_model not in RENTED:
        return False
    if quota.provider and not provider_matches(offer.provider, quota.provider):
        return False
    if quota.device and not device_matches(site.device, quota.device):
        return False
    if quota.price_model and offer.price_model != quota.price_model:
        return False
    return quota.region is None or region_matches(offer, quota.region)


def is_at(site: Site, place: SiteLimit) -> bool:
    """Whether a site stands where a limit holds."""
    if place.provider and not provider_matches(site.offer.provider, place.provider):
        return False
    return place.region is None or region_matches(site.offer, place.region)


def shape_cap(scenario: Scenario, site: Site, *, one_job: bool = True) -> int:
    """The most shapes of a site that one task may hold under the limits that concern it alone.

    Some shapes connect only so many to one job; replicas of a fleet are jobs of their own (`one_job` false).

    Parameters
    ----------
    scenario
        Its limit of devices and its quotas count.
    site
        The offer, with the shapes that are sold of it.
    one_job
        All of them run one job; False: replicas of a fleet.
    """
    caps = [LARGEST_JOB if one_job else LARGEST_FLEET]
    caps += [site.offer.max_shapes] if site.offer.max_shapes is not None else []
    caps += [site.shape.max_shapes_per_job] if one_job and site.shape.max_shapes_per_job is not None else []
    caps += [scenario.limits.max_devices // site.shape.devices] if scenario.limits.max_devices is not None else []
    for quota in scenario.hardware.quotas:
        if quota_matches(site, quota):
            caps += [quota.max_devices // site.shape.devices] if quota.max_devices is not None else []
            caps += [quota.max_shapes] if quota.max_shapes is not None else []
    return min(caps)


class ShapeCaps:
    """`shape_cap` for a scenario: an offer that stands in many columns is asked once."""

    __slots__ = ("_known", "_one_job", "_scenario")

    def __init__(self, scenario: Scenario, *, one_job: bool = True) -> None:
        self._scenario, self._one_job = scenario, one_job
        self._known: dict[str, int] = {}

    def of(self, site: Site) -> int:
        """The most shapes of a site that one task may hold."""
        name = site.offer.id
        if name not in self._known:
            self._known[name] = shape_cap(self._scenario, site, one_job=self._one_job)
        return self._known[name]
