"""Which offers a name after `--price` means: those of a machine, or offers by their ids."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from planner.catalog.model import Catalog, Offer, Shape
from planner.catalog.names import device_matches
from planner.errors import UsageError

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
    return [shape for shape in catalog.shapes.values() if name in _names(shape.id)]


def _names(shape: str) -> tuple[str, str, str]:
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
    ids = ":" in name and not any(name in _names(machine) for machine in machines) and any(
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
