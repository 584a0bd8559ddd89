"""What can be had: devices (physics), shapes (what one rents), offers (what it costs)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from planner.brief import brief, shown
from planner.carriers import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a fact comes from; status is seen, measured, recalled, inferred, user or date-unknown."""

    source: str
    as_of: str  # ISO date of the fact or of its transcription
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The fast link between devices of one domain, one direction."""

    name: str
    one_way_bytes_per_s: float  # of one device to all others together
    one_way_pair_bytes_per_s: float  # of one device to one other
    pattern: str  # switched | full-mesh | pair | pcie | torus
    max_devices: int  # size of the largest domain
    both_ways_bytes_per_s: float | None = None  # what the vendor quotes; kept to check the one-way figure


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRate:
    """Output tokens that one user gets of a model on so many devices, with nobody else there."""

    model: str  # preset
    weights: str
    devices: int
    output_tokens_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator: a GPU, a TPU chip, an RDU socket."""

    id: str
    vendor: str
    kind: str  # gpu | tpu | npu | rdu | wafer | lpu
    family: str  # generation that shares efficiencies: kepler pascal volta turing ampere ada hopper ... tpu-v5p
    aliases: tuple[str, ...]
    memory_label: str
    memory_bytes: int
    reserved_memory_bytes: int | None
    memory_bandwidth_bytes_per_s: float | None
    peak_flop_per_s: Mapping[str, float]  # dense, by fp32 tf32 fp16 bf16 fp8 int8 fp4; absent = not supported
    measured_matmul_flop_per_s: Mapping[str, float]
    scale_up: Link | None
    host_link_bytes_per_s: float | None
    tdp_w: float | None
    frameworks: tuple[str, ...]  # training frameworks that run on it
    uses: tuple[str, ...]  # training, serving
    refusals: Mapping[str, str] = field(default_factory=dict)  # use -> reason why not
    claims: tuple[str, ...] = ()  # what the vendor says, shown beside what the model says
    multiprocessors: int | None = None  # None: unknown, or none: a systolic array
    notes: str = ""
    engine: str = ""  # of the vendor, where no other serves on it: rates are then those that are published
    published: tuple[PublishedRate, ...] = ()
    facts: Mapping[str, Provenance] = field(default_factory=dict)  # field name -> provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The unit that is rented or racked: devices, host and links."""

    id: str  # provider/name
    provider: str
    name: str
    kind: str  # instance | slice | mig | share | onprem
    device: str  # device id
    devices: int
    compute_share: float = 1.0  # of one device (MIG, fractional instances)
    bandwidth_share: float = 1.0  # of the memory bandwidth of one device
    slices_per_device: int = 1  # how many such slices one device can be cut into (MIG)
    memory_bytes_per_device: int | None = None  # when less than the device's own
    vcpus: int | None = None
    host_memory_bytes: int | None = None
    scale_up_devices: int = 1  # devices in one fast domain: of this shape, or of several that share a rack
    inter_node_bytes_per_s_per_device: float | None = None  # None: unknown, one shape only
    network_kind: str = ""
    cluster_required: bool = False
    max_shapes_per_job: int | None = None
    torus: tuple[int, ...] = ()
    wraparound: tuple[bool, ...] = ()
    facts: Mapping[str, Provenance] = field(default_factory=dict)

    @property
    def domain_devices(self) -> int:
        """Devices that may be laid out as one machine: those of the shape, or of several in one fast domain."""
        return max(self.devices, self.scale_up_devices)

    @property
    def domain_shapes(self) -> int:
        """How many of it lie in one fast domain, such as trays in a rack; 1 of most."""
        return self.domain_devices // self.devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A shape at a price in a place, on one price model."""

    id: str
    provider: str
    region: str
    zone: str  # "" when the price holds for the region
    country: str  # ISO 3166 alpha-2, "" when unknown
    shape: str  # shape id
    price_model: str  # on_demand | spot | commitment_1y | commitment_3y | block | calendar | flex | auction | owned
    price_microusd_per_hour: int  # of one shape
    max_shapes: int | None = None
    min_term_hours: float | None = None  # shortest purchase; None: nothing is said
    max_term_hours: float | None = None
    term_step_hours: float | None = None
    upfront_fraction: float | None = None  # of the whole fee, paid when the term starts
    wait_hours: float | None = None  # expected time in a queue (flex)
    quality: str = ""  # "" | suspect | suspect_spot | sentinel | stale | placeholder
    note: str = ""
    not_before: str = ""  # ISO dates between which the price was copied, where its list has no date of its own
    not_after: str = ""
    confirmed_on: tuple[str, ...] = ()  # ISO dates on which an independent source had the same price
    contract: str = ""  # of what is committed to: reservation | savings plan | committed use | capacity block | ...
    provenance: Provenance  # as_of: the newest day on which the price is known to have stood


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Who sells: of which kind, and how they count hours."""

    id: str
    kind: str  # hyperscaler | cloud | marketplace
    capacity: str  # what is promised, in words
    billing_step_s: float | None  # what started counts in steps of this; None: unknown
    minimum_s: float | None  # least that is paid for; None: unknown
    provenance: Provenance
    boot_s: float | None = None  # from the start of a rental until a job can run; None: unknown
    boot_provenance: Provenance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEfficiency:
    """Share of peak that the rule tier expects a family to sustain in training."""

    family: str
    mfu: float
    inherited_from: str  # "" when the family has data of its own
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleError:
    """How far the rule tier was from published whole-run budgets; shares, not percent."""

    device: str
    runs: int
    median: float
    mean: float
    max: float
    bias: float
    elsewhere: str  # what to expect of devices that the runs did not use
    provenance: Provenance
    family: str = ""  # of the device
    elsewhere_mean: float | None = None  # mean error to expect of other families; None: take `max`


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """How far a prediction was off: quantiles of measured over predicted, on rows that were not used to fit."""

    p10: float
    p50: float
    p90: float
    rows: int
    sources: int
    median_error: float  # absolute, shares of the measured value
    mean_error: float
    p90_error: float
    tag: str = "calibrated"  # calibrated: on rows of this very device | inherited: of its family | unfitted: of others


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPart:
    """What rows of one device of a family say beyond the family."""

    work: float  # of the device over that of its family
    expert_work: float  # the same, besides, of models with experts
    bands: Mapping[str, Band]  # of step times, by kind of job: dense | experts | tuning


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFamily:
    """What the analytic tier knows of a device family: fitted constants and the error that they showed."""

    family: str
    constants: Mapping[str, float]  # fields of planner.estimate.constants.StepConstants
    constants_id: str  # short hash of the constants, printed in plans
    inherited_from: str  # "" when fitted on rows of its own
    time_band: Band  # of models without experts, on devices of the family that have no rows of their own
    expert_time_band: Band  # of models with experts
    memory_band: Band
    by_source: Mapping[str, Mapping[str, float]]  # source -> figures such as rows, mean_error
    validity: Mapping[str, tuple[float, float]]  # devices, parameters ... that the rows covered
    provenance: Provenance
    tuning_time_band: Band | None = None  # of adapters on frozen weights; None: that of models without experts
    tuning_memory_band: Band | None = None  # the same of peak memory; None: that of pre-training
    work: float = 1.0  # of its devices, by their vendor's software, over a tuned one's
    parts: Mapping[str, TrainingPart] = field(default_factory=dict)  # by device

    def time_band_of(self, device: str, kind: str) -> Band:
        """The band of step times on a device, by kind of job: dense | experts | tuning."""
        part = self.parts.get(device)
        if part is not None and kind in part.bands:
            return part.bands[kind]
        if kind == "experts":
            return self.expert_time_band
        return self.tuning_time_band or self.time_band if kind == "tuning" else self.time_band

    def memory_band_of(self, kind: str) -> Band:
        """The band of peak memory, by kind of job."""
        return self.tuning_memory_band or self.memory_band if kind == "tuning" else self.memory_band


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTrait:
    """What rows of an engine, a family, a part, a pair of engine and family, a format or a layout say of it."""

    factors: Mapping[str, float]  # what is moved (`serving_constants.MOVES`) -> factor
    spread: Mapping[str, float]  # work | first -> deviation of the logarithm that the rows leave open
    rows: Mapping[str, tuple[int, int]]  # of a pair: tpot, tpot experts, ... -> configurations, campaigns


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSpread:
    """How far a new campaign may be off in one kind of figure, all that it shares with others being known."""

    spread: float  # deviation of the logarithm
    scores: tuple[float, float, float]  # p10, p50, p90 of campaigns left out, in deviations
    median_error: float  # |ln|, of campaigns left out
    mean_error: float
    p90_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCalibration:
    """What the analytic tier knows of serving: common constants, what moves them, and how far they may be off."""

    common: Mapping[str, float]  # fields of planner.estimate.serving_constants.ServingConstants
    traits: Mapping[str, Mapping[str, ServingTrait]]  # level -> name
    unknown: Mapping[str, Mapping[str, float]]  # level -> work | first: deviation of one without rows
    bands: Mapping[str, Mapping[str, ServingSpread]]  # kind of figure -> dense | experts
    constants_id: str
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Energy facts of a (provider, region): carbon intensity and overhead of the building."""

    provider: str
    region: str
    gco2_per_kwh: float
    pue: float
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """What a provider asks for moving data out, between its regions, or for keeping them a month."""

    provider: str
    kind: str  # egress | inter-region | storage
    tiers: tuple[tuple[float, float], ...]  # (above this many GB, USD a GB), ascending from 0
    provenance: Provenance

    def usd(self, gigabytes: float) -> float:
        """Price of an amount, tier by tier.  [USD]

        Examples
        --------
        >>> source = Provenance(source="a price list", as_of="2026-05-06", status="seen")
        >>> Transfer(provider="p", kind="egress", tiers=((0, 0), (100, 0.5)), provenance=source).usd(104)
        2.0
        """
        ends = [above for above, _ in self.tiers[1:]] + [float("inf")]
        return sum(max(min(gigabytes, end) - above, 0.0) * price for (above, price), end in zip(self.tiers, ends))


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How many devices of a family one may expect on demand, of a provider of a kind, in one region."""

    kind: str  # of the provider
    family: str  # of the device; "" covers all that are not listed
    devices: int
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """A kind of network between shapes."""

    id: str  # Shape.network_kind
    title: str
    rdma: str  # whether devices reach each other past the host's CPU: full | partial | no
    sustained_share: float = 1.0  # of what the networks behind the constants sustain of their published rate
    provenance: Provenance
    facts: Mapping[str, Provenance] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Catalog:
    """Everything under one hardware folder, checked and frozen."""

    name: str
    path: str
    as_of: str
    digest: str  # sha256 over the normalised content
    devices: Mapping[str, Device]
    shapes: Mapping[str, Shape]
    offers: tuple[Offer, ...]  # sorted by id
    efficiencies: Mapping[str, RuleEfficiency]  # by family
    grids: Mapping[tuple[str, str], Grid]
    aliases: Mapping[str, str]  # lower-case alias -> device id
    rule_error: RuleError | None = None
    fabrics: Mapping[str, Fabric] = field(default_factory=dict)
    training_families: Mapping[str, TrainingFamily] = field(default_factory=dict)  # by family
    serving: ServingCalibration | None = None
    transfers: Mapping[tuple[str, str], Transfer] = field(default_factory=dict)  # by provider and kind
    providers: Mapping[str, Provider] = field(default_factory=dict)  # by id; who is not listed is of no known kind
    capacities: Mapping[tuple[str, str], Capacity] = field(default_factory=dict)  # by kind of provider and family
    training_stacks: Mapping[str, float] = field(default_factory=dict)  # software stack -> time over a tuned one's
    # by which power a band is wider where a job lies beyond what its rows cover: "devices above", "parameters below"
    training_beyond: Mapping[str, float] = field(default_factory=dict)
    own_prices: tuple[str, ...] = ()  # flags of the prices on top of the files: "--price h100-sxm=$2.50/h"; no content
    named: str = ""  # the folder or file as it was named; empty: none was, and it is the one that ships; no content

    def stock_of(self, provider: str, device: str) -> Capacity | None:
        """What one may expect on demand of a provider in one region, of a device; None where nobody says."""
        seller = self.providers.get(provider)
        if seller is None:
            return None
        family = self.devices[device].family
        return self.capacities.get((seller.kind, family)) or self.capacities.get((seller.kind, ""))

    def time_band_corrected(self, device: Device, kind: str) -> Band | None:
        """The band of step times that one measured step corrects, where a job runs in another layout than that one.

        What the errors of a source have in common is known then, and what layouts differ by is not. Of two held-out
        configurations of one source, model and device the second, corrected by the first, is off by 14 % (dense), 17 %
        (tuning) and 34 % (experts) at the end that four fifths stay within: as much as a device that has rows.
        """
        family = self.training_families.get(device.family)
        if family is None:
            return None
        own = family.time_band_of(device.id, kind)
        parts = [part for one in self.training_families.values() for part in one.parts.values()]
        known = sorted((part.bands[kind] for part in parts if kind in part.bands), key=lambda band: band.p90)
        band = own if own.tag == "calibrated" or not known else known[len(known) // 2]
        return replace(band, p10=band.p10 / band.p50, p50=1.0, p90=band.p90 / band.p50, rows=0, sources=0)

    def grid_named(self, region: str) -> Grid | None:
        """The grid of a region by its name alone; None where no provider is there, or several that differ."""
        found = [grid for (_, name), grid in self.grids.items() if name == region]
        return found[0] if len({(grid.gco2_per_kwh, grid.pue) for grid in found}) == 1 else None

    def to_frame(self) -> Any:
        """One row an offer, as a pandas DataFrame: where, on what, at which price of the shape and of each device."""
        from planner.frames import pandas

        return pandas("to_frame").DataFrame([_flat(offer, self.shapes[offer.shape]) for offer in self.offers])

    def __repr__(self) -> str:
        counts = f"{len(self.devices):,} devices, {len(self.offers):,} offers"
        return brief("Catalog", self.name, self.as_of, counts, f"sha256 {self.digest[:8]}")

    def _repr_html_(self) -> Any:
        return shown(self, "html")


def _flat(offer: Offer, shape: Shape) -> dict[str, Any]:
    usd_per_hour = offer.price_microusd_per_hour / 1e6
    return {
        **{name: getattr(offer, name) for name in ("id", "provider", "region", "zone", "country", "shape")},
        "device": shape.device,
        "devices": shape.devices,
        "price_model": offer.price_model,
        "usd_per_hour": usd_per_hour,
        "usd_per_device_hour": usd_per_hour / shape.devices,
        "quality": offer.quality,
        "source": offer.provenance.source,
        "as_of": offer.provenance.as_of,
        "status": offer.provenance.status,
    }
