"""Questions a catalog must answer before anyone minimises over it: a minimiser seeks out errors.

Every fact says where it is from and of which day it is, and every number is one. Of a device: rates of one direction,
dense peaks, memory that fits its label. Of a shape: a device that there is, a slice that can be rented, memory that the
device has. Of prices: zeros, sentinels, swapped columns, placeholders, twins, outliers; those that carry a quality flag
are known to be doubtful and are left out of plans: they are counted here but break no rule again.

One catalog is held against another by figures a factor of two apart, which is how a sparse peak, both directions of a
link, or a board in place of a chip shows, and by devices that are known to be otherwise.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import date
from statistics import median
from typing import Any

from planner.catalog.model import Catalog, Device, Link, Offer, Provenance, Shape
from planner.catalog.pricing import MARKS, OLD_DAYS, is_own, price_age
from planner.catalog.reading import STATUSES
from planner.errors import Place, Problem


def error(reference: str, message: str, file: str, hint: str = "") -> Problem:
    """Something that no catalog may hold.

    Parameters
    ----------
    reference
        Of the problem, in kebab-case.
    message
        What is wrong, and with which entry.
    file
        File or folder within the catalog, as offers/aws.csv or devices; empty: none in particular.
    hint
        What to do about it; empty: none.
    """
    return Problem(reference=reference, message=message, places=(Place(file=file),), hint=hint)


def warning(reference: str, message: str, file: str, hint: str = "") -> Problem:
    """Something that may be right, and was wrong elsewhere.

    Parameters
    ----------
    reference
        Of the problem, in kebab-case.
    message
        What is odd, and about which entry.
    file
        File or folder within the catalog, as offers/aws.csv or devices; empty: none in particular.
    hint
        What to do about it; empty: none.
    """
    return Problem(reference=reference, message=message, places=(Place(file=file),), hint=hint, severity="warning")


_DEVICE_FACTS = (
    "memory_bytes", "memory_bandwidth_bytes_per_s", "host_link_bytes_per_s", "tdp_w", "multiprocessors",
    "reserved_memory_bytes",
)  # fmt: skip
_LINK_FACTS = {
    "one_way_bytes_per_s": "scale_up.one_way",
    "one_way_pair_bytes_per_s": "scale_up.one_way_pair",
    "both_ways_bytes_per_s": "scale_up.both_ways",
    "max_devices": "scale_up.max_devices",
}


def check_facts(catalog: Catalog) -> Iterator[Problem]:
    """Facts without a source, a date or a status; how many are weak; numbers that nothing stands behind."""
    weak: Counter[str] = Counter()
    for file, owner, name, fact in facts_of(catalog):
        if not fact.source:
            yield error("no-source", f"{owner}: {name} has no source", file, "add source:")
        if not fact.as_of and not fact.source.startswith("--price "):  # of the question, not of a day
            yield error("no-date", f"{owner}: {name} has no date", file, "add as_of:")
        if fact.status not in STATUSES:
            yield error("no-status", f"{owner}: {name} is '{fact.status}'", file, "one of: " + ", ".join(STATUSES))
        weak[fact.status] += 1
    for device in catalog.devices.values():
        for name in _unaccounted(device):
            yield error("no-source", f"{device.id}: {name} has no source", "devices", "add source:")
    for shape in catalog.shapes.values():
        if "devices" not in shape.facts:
            yield error("no-source", f"{shape.id}: devices has no source", "shapes", "add source:")
    for status in ("recalled", "inferred"):
        if weak[status]:
            hint = "plan catalog show ID tells which; a catalog of your own that extends this one may state them"
            yield warning(f"{status}-facts", f"{weak[status]} of {weak.total()} facts are {status}", "", hint)


def facts_of(catalog: Catalog) -> Iterator[tuple[str, str, str, Provenance]]:
    """Every fact of a catalog: file, what it is of, its name, where it is from."""
    for device in catalog.devices.values():
        yield from (("devices", device.id, name, fact) for name, fact in device.facts.items())
    for shape in catalog.shapes.values():
        yield from (("shapes", shape.id, name, fact) for name, fact in shape.facts.items())
    yield from ((f"offers/{offer.provider}.csv", offer.id, "price", offer.provenance) for offer in catalog.offers)
    yield from (("calibration/rule.yaml", row.family, "mfu", row.provenance) for row in catalog.efficiencies.values())
    if catalog.rule_error is not None:
        yield "calibration/rule.yaml", "error", "error", catalog.rule_error.provenance
    for family in catalog.training_families.values():
        yield "calibration/training.yaml", family.family, "constants", family.provenance
    if catalog.serving is not None:
        yield "calibration/serving.yaml", "serving", "constants", catalog.serving.provenance
    for fabric in catalog.fabrics.values():
        facts = {"fabric": fabric.provenance, **fabric.facts}
        yield from (("fabrics.yaml", fabric.id, name, fact) for name, fact in facts.items())
    yield from (("grids.csv", "/".join(key), "carbon", grid.provenance) for key, grid in catalog.grids.items())
    yield from (("transfer.csv", key[0], key[1], fact.provenance) for key, fact in catalog.transfers.items())


def _unaccounted(device: Device) -> Iterator[str]:
    """Numbers of a device that are there without a word on where they are from."""
    held = {name: getattr(device, name) for name in _DEVICE_FACTS}
    for name in ("peak_flop_per_s", "measured_matmul_flop_per_s"):
        held |= {f"{name}.{precision}": rate for precision, rate in getattr(device, name).items()}
    if device.scale_up is not None:
        held |= {fact: getattr(device.scale_up, name) for name, fact in _LINK_FACTS.items()}
    return (name for name, value in held.items() if value is not None and name not in device.facts)


def check_numbers(catalog: Catalog) -> Iterator[Problem]:
    """Numbers that are not finite, and quantities below zero, wherever they stand."""
    groups: tuple[tuple[str, Iterable[tuple[str, Any]]], ...] = (
        ("devices", catalog.devices.items()),
        ("shapes", catalog.shapes.items()),
        ("offers", ((offer.id, offer) for offer in catalog.offers)),
        ("grids.csv", (("/".join(key), grid) for key, grid in catalog.grids.items())),
        ("transfer.csv", (("/".join(key), transfer) for key, transfer in catalog.transfers.items())),
        ("calibration/rule.yaml", catalog.efficiencies.items()),
    )
    for file, items in groups:
        for owner, item in items:
            for name, value in _numbers(item):
                if not math.isfinite(value) or value < 0:
                    yield error("not-finite", f"{owner}: {name} is {value}", file, "leave out what is unknown")


def _numbers(item: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Numbers of an entry with their names, one level of links, rates and tiers deep; prices are checked as prices."""
    for part in fields(item):
        value, name = getattr(item, part.name), f"{path}{part.name}"
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items() if _is_number(inner))
        elif isinstance(value, Link):
            yield from _numbers(value, f"{name}.")
        elif isinstance(value, tuple):
            flat = (cell for row in value for cell in (row if isinstance(row, tuple) else (row,)))
            yield from ((name, cell) for cell in flat if _is_number(cell))
        elif _is_number(value) and part.name != "price_microusd_per_hour":
            yield name, value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


LEAST_MEASURED_SHARE = 0.45  # of the dense peak; below it the peak may be a sparse figure
_PEAK_BOUNDS = (1e11, 1e18)  # FLOP/s of one device, from a 2012 card to a wafer
_MEMORY_TOLERANCE = 0.10  # label against capacity, GB read as GiB


def check_device(device: Device) -> Iterator[Problem]:
    """What cannot be true of one device, and what seldom is."""
    file = "devices"
    link = device.scale_up
    if link and link.both_ways_bytes_per_s and link.one_way_bytes_per_s * 2 > link.both_ways_bytes_per_s * 1.001:
        message = (
            f"{device.id}: {link.name} does {link.one_way_bytes_per_s / 1e9:g} GB/s one way, more than half of both"
        )
        yield error("two-way-rate", message, file, "give the rate of one direction")
    if link and link.one_way_pair_bytes_per_s > link.one_way_bytes_per_s:
        yield error("two-way-rate", f"{device.id}: a pair is faster than all links together", file)
    for name, rate in device.peak_flop_per_s.items():
        if not (math.isfinite(rate) and _PEAK_BOUNDS[0] <= rate <= _PEAK_BOUNDS[1]):
            yield error("out-of-range", f"{device.id}: the {name} peak is {rate:g} FLOP/s", file, "TFLOP/s?")
    for name, measured in device.measured_matmul_flop_per_s.items():
        peak = device.peak_flop_per_s.get(name, 0.0)
        if measured > peak:
            yield error("above-peak", f"{device.id}: measured {name} is above the dense peak", file)
        elif measured < LEAST_MEASURED_SHARE * peak:
            message = f"{device.id}: measured {name} is {measured / peak:.0%} of the peak: is the peak a sparse figure?"
            yield warning("sparse-peak", message, file)
    yield from _check_label(device)


def _check_label(device: Device) -> Iterator[Problem]:
    number, _, unit = device.memory_label.partition(" ")
    if unit == "GB" and number.replace(".", "", 1).isdigit():
        label_bytes = float(number) * 2**30
        if abs(device.memory_bytes - label_bytes) > _MEMORY_TOLERANCE * label_bytes:
            message = f"{device.id}: {device.memory_bytes / 2**30:.1f} GiB do not fit the label {device.memory_label}"
            yield warning("memory-label", message, "devices")
    for use in ("training", "serving"):
        if use not in device.uses and use not in device.refusals:
            yield warning("no-reason", f"{device.id} is not for {use}, and no reason is given", "devices")


# Slices of the 3D tori below one cube of 4x4x4, and the sides of the 2D ones: AI-Hypercomputer/xpk,
# src/xpk/core/system_characteristics.py@02b0c09, and the slice names of Google's price list.
SMALL_SLICES = ((1, 1, 1), (1, 1, 2), (1, 2, 2), (2, 2, 2), (2, 2, 4), (2, 4, 4))
CUBE = 4
LONGEST_2D = 32
_LESS_MEMORY = 0.90  # of the device's own


def check_shape(shape: Shape, catalog: Catalog) -> Iterator[Problem]:
    """What cannot be true of one shape."""
    device = catalog.devices.get(shape.device)
    if device is None:
        yield error("unknown-device", f"{shape.id} is of '{shape.device}', which is no device", "shapes")
        return
    if shape.kind == "slice":
        yield from _check_slice(shape)
    elif device.kind == "tpu":
        yield error("bad-topology", f"{shape.id}: a TPU is rented as a slice of a known topology", "shapes")
    yield from _check_memory_of_shape(shape, device)


def _check_slice(shape: Shape) -> Iterator[Problem]:
    name = "x".join(map(str, shape.torus)) or "none"
    if math.prod(shape.torus or (0,)) != shape.devices:
        yield error("bad-topology", f"{shape.id}: no topology {name} has {shape.devices} chips", "shapes")
    elif not is_slice(shape.torus):
        hint = "2D: powers of two, one side at most twice the other; 3D: whole cubes of 4x4x4, or 2x2x1 to 2x4x4"
        yield error("bad-topology", f"{shape.id}: {name} is not among the topologies that are rented", "shapes", hint)


def is_slice(torus: tuple[int, ...]) -> bool:
    """Whether a topology is of a form that is rented.

    Examples
    --------
    >>> is_slice((4, 8)), is_slice((3, 5)), is_slice((2, 2, 1)), is_slice((4, 4, 12)), is_slice((4, 4, 6))
    (True, False, True, True, False)
    """
    if len(torus) == 2:
        short, long = sorted(torus)
        return _is_power_of_two(short) and _is_power_of_two(long) and long <= min(2 * short, LONGEST_2D)
    if len(torus) == 3:
        return tuple(sorted(torus)) in SMALL_SLICES or all(side % CUBE == 0 for side in torus)
    return False


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _check_memory_of_shape(shape: Shape, device: Device) -> Iterator[Problem]:
    memory = shape.memory_bytes_per_device
    if memory is None:
        return
    if memory > device.memory_bytes:
        yield error("memory-label", f"{shape.id} has more memory per device than a {device.id}", "shapes")
    elif shape.kind == "instance" and memory < _LESS_MEMORY * device.memory_bytes:
        message = f"{shape.id}: {memory / 2**30:.1f} GiB a device, a {device.id} has {device.memory_bytes / 2**30:.1f}"
        yield warning("memory-label", message, "shapes", "another device, or a share of one: kind share")


SENTINEL_MICROUSD = 700_000_000  # stands for "no price" in one public catalog
TYPICAL = (0.5, 4.0)  # times the median price of a device on the same terms at sellers of one kind; regions differ by 2
TWO_LEVELS = 1.4  # median over cheapest place of one shape at one provider: what is sold on other terms is far below
FAR = 2.5  # dearest place over the median; regions reach twice the cheapest
FEW = 20  # flagged offers of a file that are named one by one


def check_offers(catalog: Catalog) -> Iterator[Problem]:
    """Each price alone, beside its twins, and beside those of the same device."""
    for offer in catalog.offers:
        yield from _check_offer(offer, catalog)
    yield from _check_flags(catalog.offers)
    yield from _check_duplicates(catalog.offers)
    yield from _check_spot(catalog.offers)
    yield from _check_typical(catalog)
    yield from _check_levels(catalog.offers)


def _check_offer(offer: Offer, catalog: Catalog) -> Iterator[Problem]:
    file = f"offers/{offer.provider}.csv"
    if offer.shape not in catalog.shapes:
        yield error("unknown-shape", f"{offer.id}: there is no shape '{offer.shape}'", file)
    if not math.isfinite(offer.price_microusd_per_hour) or offer.price_microusd_per_hour <= 0:
        hint = "no price is not a price of zero: leave the row out"
        yield error("bad-price", f"{offer.id} costs {offer.price_microusd_per_hour} micro-dollars", file, hint)
    if offer.price_microusd_per_hour == SENTINEL_MICROUSD and offer.quality != "sentinel":
        yield error("sentinel", f"{offer.id} costs 700.00, a known placeholder", file, "drop the row")


def _check_flags(offers: Iterable[Offer]) -> Iterator[Problem]:
    """Prices that look wrong, by file: one line for all that are flagged alike."""
    flagged: dict[tuple[str, str], list[str]] = defaultdict(list)
    for offer in offers:
        if offer.quality:
            flagged[f"offers/{offer.provider}.csv", offer.quality].append(offer.id)
    for (file, quality), names in flagged.items():
        what = ", ".join(names) if len(names) <= FEW else f"{len(names):,} prices of {file}"
        verb = "are" if len(names) > 1 else "is"
        hint = (
            "newer prices: plan catalog refresh" if quality in ("stale", "placeholder") else "correct it, or leave it"
        )
        yield warning("flagged", f"{what} {verb} flagged {quality}: no plan takes such a price", file, hint)


def _check_duplicates(offers: Iterable[Offer]) -> Iterator[Problem]:
    seen: dict[tuple[object, ...], Offer] = {}
    for offer in offers:
        terms = offer.contract, offer.min_term_hours, offer.max_term_hours, offer.upfront_fraction
        key = (offer.provider, offer.region, offer.zone, offer.shape, offer.price_model, *terms)
        first = seen.setdefault(key, offer)
        if first is not offer:
            same = first.price_microusd_per_hour == offer.price_microusd_per_hour
            message = f"{first.id} and {offer.id} are one offer" + ("" if same else " at two prices")
            yield warning("duplicate-offer", message, f"offers/{offer.provider}.csv")


def _check_spot(offers: Iterable[Offer]) -> Iterator[Problem]:
    steady = {(o.provider, o.region, o.zone, o.shape): o for o in offers if o.price_model == "on_demand"}
    for spot in offers:
        demand = steady.get((spot.provider, spot.region, spot.zone, spot.shape))
        if spot.price_model != "spot" or demand is None or spot.quality or demand.quality:
            continue
        price, full, file = spot.price_microusd_per_hour, demand.price_microusd_per_hour, f"offers/{spot.provider}.csv"
        if price > full and (is_own(demand) or is_own(spot)):
            message = f"{spot.id} is dearer than {demand.id} at your own price: spot saves nothing there"
            yield warning("spot-above-on-demand", message, file)
        elif price > full:
            yield error("spot-above-on-demand", f"{spot.id} is dearer than {demand.id}", file, "swapped?")
        elif price == full:
            yield warning("spot-equals-on-demand", f"{spot.id} equals {demand.id}: no spot market?", file)
        elif price * 10 == full:
            yield warning("spot-placeholder", f"{spot.id} is exactly a tenth of {demand.id}", file)


def check_dates(catalog: Catalog, today: date) -> Iterator[Problem]:
    """Prices of no known date, and old ones, by provider."""
    files: dict[str, list[Offer]] = defaultdict(list)
    for offer in catalog.offers:
        files[f"offers/{offer.provider}.csv"].append(offer)
    for file, offers in files.items():
        age = price_age(offers, today)
        if age.unknown:
            yield warning("date-unknown", f"{age.unknown} prices of {file} carry no date of their own", file)
        if age.old:
            yield warning(
                "old-price",
                f"{age.old} prices of {file} are older than {OLD_DAYS} days",
                file,
                "newer ones: plan catalog refresh",
            )


def _check_typical(catalog: Catalog) -> Iterator[Problem]:
    groups: dict[tuple[str, str, str], list[tuple[Offer, float]]] = defaultdict(list)
    for offer in catalog.offers:
        shape, seller = catalog.shapes.get(offer.shape), catalog.providers.get(offer.provider)
        if shape and offer.quality in ("", *MARKS) and offer.price_model != "auction":
            each = offer.price_microusd_per_hour / (shape.devices * shape.compute_share)
            groups[shape.device, offer.price_model, seller.kind if seller else ""].append((offer, each))
    for (device, model, kind), priced in groups.items():
        middle = median(each for _, each in priced)
        for offer, each in priced:
            if not offer.quality and not TYPICAL[0] * middle <= each <= TYPICAL[1] * middle:
                message = (
                    f"{offer.id}: {each / 1e6:.2f} $/h a device, {each / middle:.2g} x the median {model} {device}"
                    f"{f' of a {kind}' if kind else ''}"
                )
                hint = "of one machine, or of a device? of other terms?"
                yield warning("unusual-price", message, f"offers/{offer.provider}.csv", hint)


def _check_levels(offers: Iterable[Offer]) -> Iterator[Problem]:
    levels: dict[tuple[str, str], list[int]] = defaultdict(list)
    for offer in offers:
        if offer.price_model == "on_demand" and not offer.quality:
            levels[offer.provider, offer.shape].append(offer.price_microusd_per_hour)
    for (provider, shape), prices in levels.items():
        middle = median(prices)
        if middle >= TWO_LEVELS * min(prices) or max(prices) >= FAR * middle:
            least, most = (f"{price / 1e6:g}" for price in (min(prices), max(prices)))
            message = f"{shape} costs {least} to {most} $/h, {middle / 1e6:g} in the median: two price levels"
            yield warning("two-levels", message, f"offers/{provider}.csv", "a flex or calendar price among on-demand?")


TOLERANCE = 1e-6  # of "exactly" a factor of two
DISAGREES = 0.05  # share by which a fact may differ from the device table
_OWN = ("user", "measured")  # stated or found out by whoever wrote the catalog


def check_against(catalog: Catalog, other: Catalog) -> Iterator[Problem]:
    """Facts and prices that are exactly twice or half of what another catalog says."""
    ours, theirs = _figures(catalog), _figures(other)
    for key in sorted(ours.keys() & theirs.keys()):
        kind, owner, name = key
        mine, their = ours[key], theirs[key]
        if any(math.isclose(mine * factor, their, rel_tol=TOLERANCE) for factor in (2.0, 0.5)) and mine:
            message = f"{owner}: {name} is {mine:g} here and {their:g} in {other.name}, a factor of two"
            yield warning(
                "factor-of-two", message, kind, "sparse against dense, both ways against one, node against card?"
            )


def check_table(catalog: Catalog, table: Mapping[str, Device]) -> Iterator[Problem]:
    """Facts of devices that disagree with a table of devices, unless a user states or measured them."""
    by_name = {name.lower(): device for device in table.values() for name in (device.id, *device.aliases)}
    for device in catalog.devices.values():
        known = next((by_name[n.lower()] for n in (device.id, *device.aliases) if n.lower() in by_name), None)
        if known is None:
            continue
        theirs = device_figures(known)
        for name, mine in device_figures(device).items():
            fact, their = device.facts.get(_FACTS.get(name, name)), theirs.get(name)
            stated = fact is not None and fact.status in _OWN
            if their and not stated and abs(mine - their) > DISAGREES * their:
                message = f"{device.id}: {name} is {mine:g}, the device table has {their:g} ({mine / their:.3g} times)"
                yield warning("device-table", message, "devices", "status: user or measured, where you know better")


_FACTS = {"scale_up": "scale_up.one_way"}


def _figures(catalog: Catalog) -> dict[tuple[str, str, str], float]:
    """Every number that two catalogs can be a factor of two apart in."""
    found: dict[tuple[str, str, str], float] = {}
    for device in catalog.devices.values():
        found |= {("devices", device.id, name): value for name, value in device_figures(device).items()}
    for shape in catalog.shapes.values():
        found |= {("shapes", shape.id, name): value for name, value in _shape_figures(shape).items()}
    for offer in catalog.offers:
        found[_offer_key(offer)] = offer.price_microusd_per_hour / 1e6
    return found


def _offer_key(offer: Offer) -> tuple[str, str, str]:
    return f"offers/{offer.provider}.csv", offer.id, "price"


def device_figures(device: Device) -> dict[str, float]:
    """Numbers of a device by the name of their fact."""
    found: dict[str, float | None] = {f"peak_flop_per_s.{name}": rate for name, rate in device.peak_flop_per_s.items()}
    found |= {
        "memory_bytes": device.memory_bytes,
        "memory_bandwidth_bytes_per_s": device.memory_bandwidth_bytes_per_s,
        "scale_up": device.scale_up.one_way_bytes_per_s if device.scale_up else None,
        "host_link_bytes_per_s": device.host_link_bytes_per_s,
        "tdp_w": device.tdp_w,
    }
    return {name: float(value) for name, value in found.items() if value}


def _shape_figures(shape: Shape) -> dict[str, float]:
    found: dict[str, float | None] = {
        "devices": shape.devices,
        "host memory": shape.host_memory_bytes,
        "memory per device": shape.memory_bytes_per_device,
        "rate between shapes": shape.inter_node_bytes_per_s_per_device,
    }
    return {name: float(value) for name, value in found.items() if value}


def check_catalog(
    catalog: Catalog,
    other: Catalog | None = None,
    *,
    table: Mapping[str, Device] | None = None,
    today: date | None = None,
) -> list[Problem]:
    """Errors and warnings of a catalog.

    Parameters
    ----------
    other
        A second catalog: facts and prices that lie a factor of two apart are told as well.
    table
        Devices as they are known elsewhere, those that ship: facts that disagree are told, unless a user states them.
    today
        The day on which prices are old or not; default: the catalog's own date.

    Returns
    -------
    Problems, errors first, then by reference and message; each with the file that it is about.
    """
    found: list[Problem] = []
    for device in catalog.devices.values():
        found += check_device(device)
    found += check_facts(catalog)
    found += check_numbers(catalog)
    for shape in catalog.shapes.values():
        found += check_shape(shape, catalog)
    found += check_offers(catalog)
    found += check_dates(catalog, today or date.fromisoformat(catalog.as_of))
    if table is not None:
        found += check_table(catalog, table)
    if other is not None:
        found += check_against(catalog, other)
    placed = [replace(problem, places=_placed(problem, catalog)) for problem in found]
    return sorted(placed, key=lambda problem: (problem.severity, problem.reference, problem.message))


def _placed(problem: Problem, catalog: Catalog) -> tuple[Place, ...]:
    return tuple(Place(file=f"{catalog.path}/{place.file}".rstrip("/")) for place in problem.places)
