"""Finds devices, shapes, providers and offers of a catalog by id, alias or pattern, and by where they are.

Providers name regions as they like (us-central1, eastus, US-CA-1, FIN-03). A pattern is therefore held against the
provider's own names of region and zone, and against the country (ISO 3166) alone and before the region: "us-*" finds
gcp us-central1, azure eastus (as us-eastus) and runpod US-CA-1; "fi" and "fi-*" find all of Finland. "eu" is all of the
European Union, "eea" of the European Economic Area, whose law of data protection is one, by whatever names; "eu-*" is
names that begin so. Capitals do not matter. A name after `--price` means offers of a machine, or offers by their ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

from planner.catalog.model import Catalog, Device, Offer, Shape
from planner.errors import InputError, Problem, UsageError
from planner.spelling import closest

# Members on 2026-11-29 (recalled: treaties of accession; the EEA agreement)
_MEMBERS = "at be bg cy cz de dk ee es fi fr gr hr hu ie it lt lu lv mt nl pl pt ro se si sk"
_UNION = frozenset(_MEMBERS.split())
_AREAS = {"eu": _UNION, "eea": _UNION | {"is", "li", "no"}}


def region_matches(offer: Offer, pattern: str) -> bool:
    """Whether a region pattern covers an offer."""
    wanted = pattern.lower()
    return wanted == "*" or any(fnmatchcase(name, wanted) for name in _names_of_place(offer))


def _names_of_place(offer: Offer) -> list[str]:
    region, zone, country = offer.region.lower(), offer.zone.lower(), offer.country.lower()
    names = [region, zone] if zone else [region]
    if country:
        names += [country, f"{country}-{region}", *(area for area, members in _AREAS.items() if country in members)]
    return names


def find_device(catalog: Catalog, name: str) -> Device:
    """The device of an id or alias; capitals do not matter."""
    known = catalog.aliases.get(name.lower())
    if known is None:
        raise _unknown("device", name, catalog.aliases, "plan catalog list shows every device")
    return catalog.devices[known]


def find_shape(catalog: Catalog, name: str) -> Shape:
    """The shape of an id such as aws/p5.48xlarge; machines one owns may leave out onprem/."""
    shape = catalog.shapes.get(name) or catalog.shapes.get(f"onprem/{name}")
    if shape is None:
        raise _no_shape(catalog, name)
    return shape


def _no_shape(catalog: Catalog, name: str) -> InputError:
    """That there is no such machine; the machines of a device, those that one owns first, where that is named."""
    devices = {device.id for device in match_devices(catalog, name)}
    made = [one for one in catalog.shapes.values() if one.device in devices]
    if "*" in name and (meant := _meant(catalog, name)):
        more = f" and {len(meant) - 4} more" if len(meant) > 4 else ""
        message = f"'{name}' is a pattern, and what is asked for is one machine"
        hint = f"write one of them: {', '.join(meant[:4])}{more}"
        return InputError(Problem(reference="unknown-shape", message=message, hint=hint))
    if devices and not made:
        hint = "that is a device of which the catalog has no machine: shapes/onprem.yaml of one of your own adds it"
        return InputError(Problem(reference="unknown-shape", message=f"there is no shape '{name}'", hint=hint))
    if not made:
        return _unknown("shape", name, catalog.shapes, "plan catalog show DEVICE lists the machines of a device")
    made.sort(key=lambda one: (one.provider != "onprem", one.id))
    names = [one.id.removeprefix("onprem/") for one in made]
    more = f" and {len(names) - 4} more (plan catalog show {made[0].device})" if len(names) > 4 else ""
    hint = f"that is a device: machines of it are {', '.join(names[:4])}{more}"
    return InputError(Problem(reference="unknown-shape", message=f"there is no shape '{name}'", hint=hint))


def _meant(catalog: Catalog, pattern: str) -> list[str]:
    """Machines that a pattern covers, those that one owns first, without the word for that."""
    low = pattern.lower()
    made = [one for one in catalog.shapes.values() if fnmatchcase(one.id, low) or fnmatchcase(one.id, f"onprem/{low}")]
    made.sort(key=lambda one: (one.provider != "onprem", one.id))
    return [one.id.removeprefix("onprem/") for one in made]


def match_devices(catalog: Catalog, pattern: str) -> list[Device]:
    """Devices that a pattern covers, by id."""
    return sorted((d for d in catalog.devices.values() if device_matches(d, pattern)), key=lambda d: d.id)


def device_matches(device: Device, pattern: str) -> bool:
    """Whether a pattern covers a device: its id or an alias, with wildcards, or the first words of its id.

    "h100-*" and "H100" cover every H100, "a100-sxm" both memory sizes, "l40" not the L40S.
    """
    return _means(device.id, tuple(device.aliases), pattern)


@lru_cache(maxsize=16384)  # few providers and few patterns, held against each other for every offer
def provider_matches(provider: str, pattern: str) -> bool:
    """Whether a pattern covers a provider; capitals do not matter.

    >>> provider_matches("hyperstack", "HyperStack"), provider_matches("aws", "a*"), provider_matches("aws", "azure")
    (True, True, False)
    """
    return fnmatchcase(provider.lower(), pattern.lower())


@lru_cache(maxsize=16384)  # few devices and few patterns, held against each other for every offer
def _means(name: str, aliases: tuple[str, ...], pattern: str) -> bool:
    wanted = pattern.lower()
    return name.startswith(f"{wanted}-") or any(fnmatchcase(each.lower(), wanted) for each in (name, *aliases))


def one_device(catalog: Catalog, name: str) -> str:
    """Id of the one device that a name or a pattern means.

    Raises
    ------
    InputError
        There is none, or there are several.
    """
    found = [name] if name in catalog.devices else [one.id for one in match_devices(catalog, name)]
    if len(found) == 1:
        return found[0]
    near = found[:5] or closest(name, sorted(catalog.devices))
    hint = f"did you mean {' or '.join(near)}?" if near else "plan catalog list shows every device"
    message = f"'{name}' is {'several devices' if found else 'no device'} of the catalog"
    shapes = [] if found else [one for one in catalog.shapes.values() if name in (one.id, one.name)]
    shape = min(shapes, key=lambda one: one.id, default=None)
    kind, setting = ("", "") if found else _other_thing(catalog, name)
    if shape is not None:
        message = f"'{name}' is a machine, and what is asked for is a device"
        hint = f"write {shape.device}, the device of it; machines that are owned go by their own name"
    elif kind:
        message = f"'{name}' is a {kind}, and what is asked for is a device"
        hint = f"plan compare SCENARIO --set {setting} holds the plan against the cheapest one with that {kind} alone"
    raise InputError.of("unknown-device", message, hint=hint)


def _other_thing(catalog: Catalog, name: str) -> tuple[str, str]:
    """What else a name stands for, a provider, a region or a price model, and what narrows a scenario to it."""
    low, offers = name.lower(), catalog.offers
    regions = {offer.region.lower(): offer.region for offer in offers if offer.region}
    if low in {offer.provider for offer in offers}:
        return "provider", f"hardware.providers={low}"
    if low in regions:
        return "region", f"hardware.regions={regions[low]}"
    if low in {offer.price_model for offer in offers}:
        more = " --set 'hardware.spot={interruptions: 0.05 /h}'" if low == "spot" else ""  # or it is refused
        return "price model", f"hardware.pricing={low}{more}"
    return "", ""


def _unknown(noun: str, name: str, known: Iterable[str], else_hint: str) -> InputError:
    from difflib import get_close_matches

    low, names = name.lower(), list(known)
    longer = [one for one in names if low.startswith(f"{one.rpartition('/')[2]}-")]  # dgx-h100-80gb: dgx-h100
    near = list(dict.fromkeys([*longer, *get_close_matches(low, names, n=3, cutoff=0.5)]))[:3]
    hint = "did you mean " + " or ".join(near) + "?" if near else else_hint
    return InputError(Problem(reference=f"unknown-{noun}", message=f"there is no {noun} '{name}'", hint=hint))


_LISTED = 3
_DEFAULT = "on_demand"


def offers_meant(catalog: Catalog, name: str, model: str = "") -> list[Offer]:
    """Offers of a machine, or by their ids; none where the name is of neither, as that of a device.

    Parameters
    ----------
    catalog
        Whose offers are looked through.
    name
        A machine (`aws:p5.48xlarge`, `aws/p5.48xlarge`, `p5.48xlarge`), or an id of an offer with or without its terms,
        in which stars stand for anything (`aws:us-east-*:p5.48xlarge`).
    model
        Price model that they are of; empty: any.
    """
    shapes = {shape.id for shape in shapes_named(catalog, name)}
    if shapes:
        found = [offer for offer in catalog.offers if offer.shape in shapes]
    elif ":" in name:
        found = [offer for offer in catalog.offers if fnmatchcase(offer.id, name)]
        found = found or [offer for offer in catalog.offers if fnmatchcase(offer.id, f"{name}:*")]
    else:
        found = []
    return [offer for offer in found if not model or offer.price_model == model]


def shapes_named(catalog: Catalog, name: str) -> list[Shape]:
    """Shapes by their id, by provider:machine, or by the name of the machine alone, which several may have."""
    return [shape for shape in catalog.shapes.values() if name in _names_meant(shape.id)]


def _names_meant(shape: str) -> tuple[str, str, str]:
    return shape, shape.replace("/", ":", 1), shape.partition("/")[2]


def offers_at_one_price(catalog: Catalog, name: str, model: str, price: str) -> list[Offer]:
    """Offers of one machine on one price model, for which a price of an hour of it makes sense; none for other names.

    Parameters
    ----------
    catalog
        Whose offers are looked through.
    name
        As `offers_meant` takes it.
    model
        Price model that was named; empty: that of the ids, else on demand.
    price
        As it was written, for what is said.

    Raises
    ------
    UsageError
        Several machines or price models are meant, or the machine is not offered on the one that is.
    """
    mine = offers_meant(catalog, name)
    if not mine:
        return []
    machines = sorted({offer.shape for offer in mine})
    if len(machines) > 1:
        one = f"--price '{machines[0].replace('/', ':', 1)}={price}'"
        raise UsageError.of(
            "many-machines",
            f"--price: '{name[:80]}' means {len(mine)} offers of {len(machines)} machines, which have no one price",
            hint=f"name one machine: {one}; a device, by the device-hour: --price 'h100-sxm={price}'; or a share: "
            f"--price '{name[:80]}=-10%'",
        )
    terms = sorted({offer.price_model for offer in mine})
    ids = ":" in name and not any(name in _names_meant(machine) for machine in machines) and any(
        fnmatchcase(offer.id, name) for offer in mine
    )  # fmt: skip
    if not model and len(terms) > 1 and ids:
        ways = " or ".join(f"--price '{name}@{term}={price}'" for term in terms[:_LISTED])
        message = f"--price: '{name[:80]}' is offered as {', '.join(terms)}: of which is that the price?"
        raise UsageError.of("many-terms", message, hint=f"write {ways}")
    wanted = model or (terms[0] if len(terms) == 1 else _DEFAULT)
    found = [offer for offer in mine if offer.price_model == wanted]
    if not found:
        hint = f"it is offered as {', '.join(terms)}: write {name}@{terms[0]}=..."
        raise UsageError.of("no-offer", f"--price: '{name[:80]}' is not offered as {wanted}", hint=hint)
    return found


def machine_names(catalog: Catalog) -> list[str]:
    """Machines that are offered, as `offers_meant` takes them."""
    return sorted({offer.shape.replace("/", ":", 1) for offer in catalog.offers})


def offers_priced(catalog: Catalog, text: str) -> list[Offer]:
    """Offers whose price a text after `--price` moves."""
    left, _, right = text.partition("=")
    name, _, model = (part.strip() for part in left.partition("@"))
    devices = {device.id for device in catalog.devices.values() if device_matches(device, name)}
    if devices:
        model = model or ("" if "%" in right else _DEFAULT)
        return [one for one in catalog.offers if catalog.shapes[one.shape].device in devices
                and model in ("", one.price_model)]  # fmt: skip
    return offers_meant(catalog, name, model) if "%" in right else offers_at_one_price(catalog, name, model, right)


def said_of_machines(catalog: Catalog, texts: Iterable[str]) -> list[str]:
    """What prices of machines come to by the device, which is how devices are priced: a slip shows there."""
    lines = []
    for text in texts:
        left, _, right = text.partition("=")
        name = left.partition("@")[0].strip()
        if "%" in right or any(device_matches(device, name) for device in catalog.devices.values()):
            continue
        mine = offers_priced(catalog, text)
        if not mine:
            continue
        shape = catalog.shapes[mine[0].shape]
        each = mine[0].price_microusd_per_hour / shape.devices / 1e6
        of = f"of its {shape.devices} devices" if shape.devices > 1 else "device"
        offers = "1 offer" if len(mine) == 1 else f"{len(mine)} offers"
        lines.append(f"--price '{text}' is of a machine, {shape.id}: ${each:,.2f}/h for each {of}, in {offers}")
    return lines
