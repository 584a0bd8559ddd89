"""Questions a catalog must answer before anyone minimises over it: a minimiser seeks out errors.

Prices that carry a quality flag are known to be doubtful and are left out of plans; they are
counted here but break no rule again.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from statistics import median

from planner.catalog.model import Catalog, Device, Offer, Provenance, Shape
from planner.errors import Place, Problem

SENTINEL_MICROUSD = 700_000_000  # stands for "no price" in one public catalog
OLD_DAYS = 90
LEAST_MEASURED_SHARE = 0.45  # of the dense peak; below it the peak may be a sparse figure
TYPICAL = (0.5, 2.0)  # times the median price of the same device on the same terms
TWO_LEVELS = 1.4  # dearest over cheapest place of one shape at one provider
_PEAK_BOUNDS = (1e11, 1e18)  # FLOP/s of one device, from a 2012 card to a wafer
_MEMORY_TOLERANCE = 0.10  # label against capacity, GB read as GiB


def check_catalog(catalog: Catalog, other: Catalog | None = None) -> list[Problem]:
    """Errors and warnings of a catalog; with `other`, facts that differ by exactly two as well."""
    found: list[Problem] = []
    for device in catalog.devices.values():
        found += _check_device(device)
    found += _check_facts(catalog)
    for shape in catalog.shapes.values():
        found += _check_shape(shape, catalog)
    for offer in catalog.offers:
        found += _check_offer(offer, catalog)
    found += _check_duplicates(catalog.offers)
    found += _check_spot(catalog.offers)
    found += _check_dates(catalog)
    found += _check_typical(catalog)
    found += _check_levels(catalog.offers)
    if other is not None:
        found += _check_against(catalog, other)
    placed = [replace(problem, places=_placed(problem, catalog)) for problem in found]
    return sorted(placed, key=lambda problem: (problem.severity, problem.reference, problem.message))


def _placed(problem: Problem, catalog: Catalog) -> tuple[Place, ...]:
    return tuple(Place(file=f"{catalog.path}/{place.file}".rstrip("/")) for place in problem.places)


def _problem(reference: str, message: str, file: str, *, hint: str = "", severity: str = "error") -> Problem:
    return Problem(reference=reference, message=message, places=(Place(file=file),), hint=hint, severity=severity)


def _warning(reference: str, message: str, file: str, hint: str = "") -> Problem:
    return _problem(reference, message, file, hint=hint, severity="warning")


def _check_device(device: Device) -> Iterator[Problem]:
    file = "devices"
    link = device.scale_up
    if link and link.both_ways_bytes_per_s and link.one_way_bytes_per_s * 2 > link.both_ways_bytes_per_s * 1.001:
        message = (
            f"{device.id}: {link.name} does {link.one_way_bytes_per_s / 1e9:g} GB/s one way, more than half of both"
        )
        yield _problem("two-way-rate", message, file, hint="give the rate of one direction")
    if link and link.one_way_pair_bytes_per_s > link.one_way_bytes_per_s:
        yield _problem("two-way-rate", f"{device.id}: a pair is faster than all links together", file)
    for name, rate in device.peak_flop_per_s.items():
        if not (math.isfinite(rate) and _PEAK_BOUNDS[0] <= rate <= _PEAK_BOUNDS[1]):
            yield _problem("out-of-range", f"{device.id}: the {name} peak is {rate:g} FLOP/s", file, hint="TFLOP/s?")
    for name, measured in device.measured_matmul_flop_per_s.items():
        peak = device.peak_flop_per_s.get(name, 0.0)
        if measured > peak:
            yield _problem("above-peak", f"{device.id}: measured {name} is above the dense peak", file)
        elif measured < LEAST_MEASURED_SHARE * peak:
            message = f"{device.id}: measured {name} is {measured / peak:.0%} of the peak: is the peak a sparse figure?"
            yield _warning("sparse-peak", message, file)
    yield from _check_memory(device)


def _check_memory(device: Device) -> Iterator[Problem]:
    number, _, unit = device.memory_label.partition(" ")
    if unit == "GB" and number.replace(".", "", 1).isdigit():
        label_bytes = float(number) * 2**30
        if abs(device.memory_bytes - label_bytes) > _MEMORY_TOLERANCE * label_bytes:
            message = f"{device.id}: {device.memory_bytes / 2**30:.1f} GiB do not fit the label {device.memory_label}"
            yield _warning("memory-label", message, "devices")
    for use in ("training", "serving"):
        if use not in device.uses and use not in device.refusals:
            yield _warning("no-reason", f"{device.id} is not for {use}, and no reason is given", "devices")


def _check_facts(catalog: Catalog) -> Iterator[Problem]:
    weak: Counter[str] = Counter()
    for kind, owner, name, fact in _facts(catalog):
        if not fact.source:
            yield _problem("no-source", f"{owner}: {name} has no source", kind, hint="add source:")
        if not fact.as_of:
            yield _problem("no-date", f"{owner}: {name} has no date", kind, hint="add as_of:")
        weak[fact.status] += 1
    for status in ("recalled", "inferred"):
        if weak[status]:
            yield _warning(f"{status}-facts", f"{weak[status]} of {weak.total()} facts are {status}", "")


def _facts(catalog: Catalog) -> Iterator[tuple[str, str, str, Provenance]]:
    for device in catalog.devices.values():
        yield from (("devices", device.id, name, fact) for name, fact in device.facts.items())
    for shape in catalog.shapes.values():
        yield from (("shapes", shape.id, name, fact) for name, fact in shape.facts.items())
    yield from (("offers", offer.id, "price", offer.provenance) for offer in catalog.offers)
    yield from (("calibration/rule.yaml", row.family, "mfu", row.provenance) for row in catalog.efficiencies.values())
    yield from (("fabrics.yaml", fabric.id, "fabric", fabric.provenance) for fabric in catalog.fabrics.values())
    yield from (("grids.csv", "/".join(key), "carbon", grid.provenance) for key, grid in catalog.grids.items())
    yield from (("transfer.csv", key[0], key[1], fact.provenance) for key, fact in catalog.transfers.items())


def _check_shape(shape: Shape, catalog: Catalog) -> Iterator[Problem]:
    device = catalog.devices.get(shape.device)
    if device is None:
        yield _problem("unknown-device", f"{shape.id} is of '{shape.device}', which is no device", "shapes")
        return
    if shape.kind == "slice" and math.prod(shape.torus or (0,)) != shape.devices:
        yield _problem("bad-topology", f"{shape.id}: no topology {shape.torus} has {shape.devices} chips", "shapes")
    if device.kind == "tpu" and shape.kind != "slice":
        yield _problem("bad-topology", f"{shape.id}: a TPU is rented as a slice of a known topology", "shapes")
    if (shape.memory_bytes_per_device or 0) > device.memory_bytes:
        yield _problem("memory-label", f"{shape.id} has more memory per device than a {device.id}", "shapes")


def _check_offer(offer: Offer, catalog: Catalog) -> Iterator[Problem]:
    file = f"offers/{offer.provider}.csv"
    if offer.shape not in catalog.shapes:
        yield _problem("unknown-shape", f"{offer.id}: there is no shape '{offer.shape}'", file)
    if not math.isfinite(offer.price_microusd_per_hour) or offer.price_microusd_per_hour <= 0:
        hint = "no price is not a price of zero: leave the row out"
        yield _problem("bad-price", f"{offer.id} costs {offer.price_microusd_per_hour} micro-dollars", file, hint=hint)
    if offer.price_microusd_per_hour == SENTINEL_MICROUSD and offer.quality != "sentinel":
        yield _problem("sentinel", f"{offer.id} costs 700.00, a known placeholder", file, hint="drop the row")
    if offer.quality:
        yield _warning("flagged", f"{offer.id} is flagged {offer.quality}", file)


def _check_duplicates(offers: Iterable[Offer]) -> Iterator[Problem]:
    seen: dict[tuple[str, ...], Offer] = {}
    for offer in offers:
        key = (offer.provider, offer.region, offer.zone, offer.shape, offer.price_model)
        first = seen.setdefault(key, offer)
        if first is not offer:
            same = first.price_microusd_per_hour == offer.price_microusd_per_hour
            message = f"{first.id} and {offer.id} are one offer" + ("" if same else " at two prices")
            yield _warning("duplicate-offer", message, f"offers/{offer.provider}.csv")


def _check_spot(offers: Iterable[Offer]) -> Iterator[Problem]:
    steady = {(o.provider, o.region, o.zone, o.shape): o for o in offers if o.price_model == "on_demand"}
    for spot in offers:
        demand = steady.get((spot.provider, spot.region, spot.zone, spot.shape))
        if spot.price_model != "spot" or demand is None or spot.quality or demand.quality:
            continue
        price, full, file = spot.price_microusd_per_hour, demand.price_microusd_per_hour, f"offers/{spot.provider}.csv"
        if price > full:
            yield _problem("spot-above-on-demand", f"{spot.id} is dearer than {demand.id}", file, hint="swapped?")
        elif price == full:
            yield _warning("spot-equals-on-demand", f"{spot.id} equals {demand.id}: no spot market?", file)
        elif price * 10 == full:
            yield _warning("spot-placeholder", f"{spot.id} is exactly a tenth of {demand.id}", file)


def _check_dates(catalog: Catalog) -> Iterator[Problem]:
    old: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    today = date.fromisoformat(catalog.as_of)
    for offer in catalog.offers:
        file = f"offers/{offer.provider}.csv"
        if offer.provenance.status == "date-unknown":
            unknown[file] += 1
        elif offer.provenance.as_of and (today - date.fromisoformat(offer.provenance.as_of)).days > OLD_DAYS:
            old[file] += 1
    for file, count in unknown.items():
        yield _warning("date-unknown", f"{count} prices of {file} carry no date of their own", file)
    for file, count in old.items():
        yield _warning("old-price", f"{count} prices of {file} are older than {OLD_DAYS} days", file)


def _check_typical(catalog: Catalog) -> Iterator[Problem]:
    groups: dict[tuple[str, str], list[tuple[Offer, float]]] = defaultdict(list)
    for offer in catalog.offers:
        shape = catalog.shapes.get(offer.shape)
        if shape and not offer.quality and offer.price_model != "auction":
            each = offer.price_microusd_per_hour / (shape.devices * shape.compute_share)
            groups[shape.device, offer.price_model].append((offer, each))
    for (device, model), priced in groups.items():
        middle = median(each for _, each in priced)
        for offer, each in priced:
            if not TYPICAL[0] * middle <= each <= TYPICAL[1] * middle:
                message = (
                    f"{offer.id}: {each / 1e6:.2f} $/h a device, {each / middle:.2g} x the median {model} {device}"
                )
                yield _warning("unusual-price", message, f"offers/{offer.provider}.csv")


def _check_levels(offers: Iterable[Offer]) -> Iterator[Problem]:
    levels: dict[tuple[str, str], list[int]] = defaultdict(list)
    for offer in offers:
        if offer.price_model == "on_demand":
            levels[offer.provider, offer.shape].append(offer.price_microusd_per_hour)
    for (provider, shape), prices in levels.items():
        if max(prices) >= TWO_LEVELS * min(prices) > 0:
            message = f"{shape} costs {min(prices) / 1e6:g} and {max(prices) / 1e6:g} $/h: two price levels"
            yield _warning("two-levels", message, f"offers/{provider}.csv", "a flex or calendar price among on-demand?")


def _check_against(catalog: Catalog, other: Catalog) -> Iterator[Problem]:
    for name in sorted(catalog.devices.keys() & other.devices.keys()):
        theirs = _numbers(other.devices[name])
        for field, ours in _numbers(catalog.devices[name]).items():
            if theirs.get(field) in (ours * 2, ours / 2):
                message = f"{name}: {field} is {ours:g} here and {theirs[field]:g} in {other.name}, a factor of two"
                yield _warning("factor-of-two", message, "devices", "sparse against dense, or both ways against one?")


def _numbers(device: Device) -> dict[str, float]:
    numbers = {f"peak {name}": rate for name, rate in device.peak_flop_per_s.items()}
    numbers["memory"] = float(device.memory_bytes)
    if device.memory_bandwidth_bytes_per_s:
        numbers["memory bandwidth"] = device.memory_bandwidth_bytes_per_s
    if device.scale_up:
        numbers["link"] = device.scale_up.one_way_bytes_per_s
    return numbers
