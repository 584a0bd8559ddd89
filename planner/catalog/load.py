"""Loads a hardware folder into a Catalog, checked and frozen; finds devices and shapes by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from planner.catalog.calibration import read_fabrics, read_grids, read_rule
from planner.catalog.devices import read_devices
from planner.catalog.digest import digest_of
from planner.catalog.model import Catalog, Device, Fabric, Offer, Shape
from planner.catalog.offers import read_offers
from planner.catalog.reading import Problems, is_date, open_yaml
from planner.catalog.serving_calibration import read_serving
from planner.catalog.shapes import read_instances, read_mig, read_onprem
from planner.catalog.tpu import read_slices
from planner.catalog.training_calibration import check_training, read_training
from planner.catalog.transfer import read_transfers
from planner.errors import InputError, Place, Problem
from planner.files import StrPath, data_folder, list_files

SCHEMA = "catalog/v1"


def load_catalog(path: StrPath | None = None) -> Catalog:
    """The catalog of a folder, or the one that ships; a folder replaces the shipped one as a whole."""
    folder = Path(path) if path is not None else data_folder("hardware")
    problems = Problems()
    name, as_of = _head(folder, problems)
    devices = _devices(folder, problems)
    shapes = _shapes(folder, devices, problems)
    offers = _offers(folder, shapes, problems)
    rule = folder / "calibration" / "rule.yaml"
    efficiencies, error = read_rule(rule, problems) if rule.exists() else ({}, None)
    grids = folder / "grids.csv"
    _check_families(devices, efficiencies, rule, problems)
    training = _calibration_file(folder, "training.yaml")
    families, stacks = read_training(training, problems)
    check_training(_training_families(devices), families, training, problems)
    serving = read_serving(_calibration_file(folder, "serving.yaml"), problems)
    wires, moves = folder / "fabrics.yaml", folder / "transfer.csv"
    fabrics = read_fabrics(wires, problems) if wires.exists() else {}
    _check_fabrics(shapes.values(), fabrics, folder, problems)
    catalog = Catalog(
        name=name,
        path=str(folder),
        as_of=as_of,
        digest="",
        devices=devices,
        shapes=shapes,
        offers=tuple(sorted(offers, key=lambda offer: offer.id)),
        efficiencies=efficiencies,
        grids=read_grids(grids, problems) if grids.exists() else {},
        aliases=_aliases(devices.values(), problems, folder),
        rule_error=error,
        fabrics=fabrics,
        training_families=families,
        training_stacks=stacks,
        transfers=read_transfers(moves, problems) if moves.exists() else {},
        serving=serving,
    )
    problems.demand_none()
    return dataclasses.replace(catalog, digest=digest_of(catalog))


def _head(folder: Path, problems: Problems) -> tuple[str, str]:
    fields = open_yaml(folder / "catalog.yaml", SCHEMA, problems)
    if extends := fields.take("extends"):
        hint = "copy the folder and edit the copy"
        problems.add("not-yet", "'extends' of a catalog is not built yet", extends.place, hint)
    name, as_of = fields.text("name", folder.name), fields.text("as_of", required=True)
    if as_of and not is_date(as_of):
        problems.add("bad-date", f"as_of of the catalog is '{as_of}'", fields.node.place, "write 2026-11-21")
    fields.text("currency", "USD", among=("USD",))
    fields.done()
    return name, as_of


def _devices(folder: Path, problems: Problems) -> dict[str, Device]:
    devices: dict[str, Device] = {}
    for path in list_files(folder / "devices", "*.yaml"):
        for device in read_devices(path, problems):
            if device.id in devices:
                problems.add("duplicate-id", f"device {device.id} is given twice", Place(file=str(path)), "keep one")
            devices[device.id] = device
    if not devices:
        problems.add("no-devices", "the catalog has no devices", Place(file=str(folder)), "add devices/*.yaml")
    return devices


def _shapes(folder: Path, devices: dict[str, Device], problems: Problems) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {}
    readers = {"tpu.yaml": read_slices, "onprem.yaml": read_onprem, "mig.yaml": read_mig}
    for path in list_files(folder / "shapes"):
        place = Place(file=str(path))
        reader = read_instances if path.suffix == ".csv" else readers.get(path.name)
        if reader is None:
            hint = "files of shapes are PROVIDER.csv, " + ", ".join(sorted(readers))
            problems.add("unknown-file", f"{path.name} is not a file of shapes", place, hint)
            continue
        for shape in reader(path, devices, problems):
            if shape.id in shapes:
                problems.add("duplicate-id", f"shape {shape.id} is given twice", place, "keep one")
            shapes[shape.id] = shape
    return shapes


def _offers(folder: Path, shapes: dict[str, Shape], problems: Problems) -> list[Offer]:
    taken: set[str] = set()
    files = list_files(folder / "offers", "*.csv")
    return [offer for path in files for offer in read_offers(path, shapes, taken, problems)]


def _check_fabrics(shapes: Iterable[Shape], fabrics: dict[str, Fabric], folder: Path, problems: Problems) -> None:
    place = Place(file=str(folder / "fabrics.yaml"))
    for kind in sorted({shape.network_kind for shape in shapes} - {""} - set(fabrics)):
        problems.add("unknown-fabric", f"no fabric is named '{kind}', but shapes hang on it", place, "add it")


def _calibration_file(folder: Path, name: str) -> Path:
    """The folder's own constants, or those that ship: they belong to the equations, not to a market."""
    own = folder / "calibration" / name
    return own if own.exists() else data_folder("hardware") / "calibration" / name


def _training_families(devices: dict[str, Device]) -> set[str]:
    return {device.family for device in devices.values() if "training" in device.uses}


def _check_families(devices: dict[str, Device], known: Iterable[str], rule: Path, problems: Problems) -> None:
    for family in sorted(_training_families(devices) - set(known)):
        hint = f"add {family}: {{inherits: ..., because: ...}}"
        problems.add("unknown-family", f"no mfu for the family {family}", Place(file=str(rule)), hint)


def _aliases(devices: Iterable[Device], problems: Problems, folder: Path) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for device in devices:
        for alias in (device.id, *device.aliases):
            owner = aliases.setdefault(alias.lower(), device.id)
            if owner != device.id:
                message = f"the name '{alias}' belongs to {owner} and {device.id}"
                problems.add("duplicate-alias", message, Place(file=str(folder / "devices")), "keep one")
    return aliases


def find_device(catalog: Catalog, name: str) -> Device:
    """The device of an id or alias; capitals do not matter."""
    known = catalog.aliases.get(name.lower())
    if known is None:
        raise _unknown("device", name, catalog.aliases)
    return catalog.devices[known]


def find_shape(catalog: Catalog, name: str) -> Shape:
    """The shape of an id such as aws/p5.48xlarge; machines one owns may leave out onprem/."""
    shape = catalog.shapes.get(name) or catalog.shapes.get(f"onprem/{name}")
    if shape is None:
        raise _unknown("shape", name, catalog.shapes)
    return shape


def match_devices(catalog: Catalog, pattern: str) -> list[Device]:
    """Devices that a pattern covers, by id."""
    return sorted((d for d in catalog.devices.values() if device_matches(d, pattern)), key=lambda d: d.id)


def device_matches(device: Device, pattern: str) -> bool:
    """Whether a pattern covers a device: its id or an alias, with wildcards, or the first words of its id.

    "h100-*" and "H100" cover every H100, "a100-sxm" both memory sizes, "l40" not the L40S.
    """
    wanted = pattern.lower()
    if device.id.startswith(f"{wanted}-"):
        return True
    return any(fnmatchcase(name.lower(), wanted) for name in (device.id, *device.aliases))


def _unknown(noun: str, name: str, known: Iterable[str]) -> InputError:
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), list(known), n=3, cutoff=0.5)
    hint = "did you mean " + " or ".join(near) + "?" if near else f"plan catalog list shows every {noun}"
    return InputError(Problem(reference=f"unknown-{noun}", message=f"there is no {noun} '{name}'", hint=hint))
