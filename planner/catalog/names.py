"""Finds devices, shapes and providers of a catalog by id, alias or pattern."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

from planner.catalog.model import Catalog, Device, Shape
from planner.errors import InputError, Problem
from planner.spelling import closest


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
