"""One hardware folder read over the catalog that it extends, or over nothing.

What the folder does not hold stays as it was below. A device, shape, offer, grid, fabric or transfer price of the
same id takes the place of the one below; of devices and shapes in YAML, only the keys that are written.

Reads hardware/providers.csv and capacity.csv: who sells, how they bill, and how much one may expect of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from planner.carriers import dataclass
from planner.catalog.devices import read_device, read_devices
from planner.catalog.fitted_constants import check_training, read_serving, read_training
from planner.catalog.model import Capacity, Catalog, Device, Fabric, Offer, Provider, RuleEfficiency, Shape
from planner.catalog.offers import newest, placed, read_offers
from planner.catalog.own import Changes, Things, with_changes, without_removed
from planner.catalog.reading import Origin, Problems, open_csv
from planner.catalog.shapes import read_instances, read_mig, read_onprem, read_shape, read_slices
from planner.catalog.small_tables import read_fabrics, read_grids, read_rule, read_transfers
from planner.errors import Place
from planner.files import data_folder, list_files

KINDS = ("hyperscaler", "cloud", "marketplace")
SELLERS = ("provider", "kind", "capacity", "as_of", "status", "source")
BOOT = ("boot_s", "boot_status", "boot_source")
STOCKS = ("kind", "family", "devices", "as_of", "status", "source")


def read_providers(path: Path, problems: Problems) -> dict[str, Provider]:
    """Providers by id: hyperscaler, cloud, or marketplace, where suppliers whom nobody answers for set the prices."""
    found: dict[str, Provider] = {}
    for row in open_csv(path, SELLERS, ("billing_step_s", "minimum_s", *BOOT, "note"), problems):
        if row["kind"] not in KINDS:
            problems.add("unknown-value", f"kind is '{row['kind']}'", row.place, "one of: " + ", ".join(KINDS))
        if row["provider"] in found:
            problems.add("duplicate-id", f"provider {row['provider']} is given twice", row.place, "keep one")
        found[row["provider"]] = Provider(
            id=row["provider"],
            kind=row["kind"],
            capacity=row["capacity"],
            billing_step_s=row.whole("billing_step_s", problems),
            minimum_s=row.whole("minimum_s", problems, least=0),
            provenance=row.provenance(problems),
            boot_s=row.number("boot_s", problems),
            boot_provenance=row.provenance(problems, "boot_") if row["boot_s"] else None,
        )
    return found


def read_capacities(path: Path, problems: Problems) -> dict[tuple[str, str], Capacity]:
    """Devices that one may expect on demand, by kind of provider and family of device."""
    found = {}
    for row in open_csv(path, STOCKS, ("note",), problems):
        if row["kind"] not in KINDS:
            problems.add("unknown-value", f"kind is '{row['kind']}'", row.place, "one of: " + ", ".join(KINDS))
        devices = row.whole("devices", problems)
        if devices is None:
            problems.add("bad-number", "a capacity lacks its number of devices", row.place, "give devices")
            continue
        found[row["kind"], row["family"]] = Capacity(
            kind=row["kind"], family=row["family"], devices=devices, provenance=row.provenance(problems)
        )
    return found


NOTHING = Catalog(
    name="", path="", as_of="", digest="", devices={}, shapes={}, offers=(), efficiencies={}, grids={}, aliases={}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One folder, and what stands below it."""

    folder: Path
    name: str
    as_of: str
    base: Catalog
    origin: Origin  # of facts in it that do not say where they are from
    changes: Changes
    until: str  # only prices of that day or earlier; "": all
    problems: Problems

    def read(self) -> Catalog:
        """The catalog that the folder and its base make together, its digest still to be taken."""
        devices = self._devices()
        shapes = self._shapes(devices)
        offers = self._offers(devices, shapes)
        catalog = replace(
            self._tables(devices),
            name=self.name,
            path=str(self.folder),
            as_of=self.as_of,
            devices=devices,
            shapes=shapes,
            offers=tuple(offers[name] for name in sorted(offers)),
            aliases=aliases_of(devices.values(), self.problems, self.folder),
        )
        _check_fabrics(shapes.values(), catalog.fabrics, self.folder, self.problems)
        return catalog

    def _devices(self) -> dict[str, Device]:
        gone, own = self.changes.removed_devices, dict[str, Device]()
        _demand_known("device", gone, self.base.devices, self.problems)
        below = {name: device for name, device in self.base.devices.items() if name not in gone}
        for path in list_files(self.folder / "devices", "*.yaml"):
            above = replace(self.origin, source=f"{self.name}/devices/{path.name}" if self.origin.source else "")
            for device in read_devices(path, self.problems, below, above):
                self._demand_new("device", device.id, own, Place(file=str(path)))
                own[device.id] = device
        for item in self.changes.devices:
            device = read_device(item, self.origin, below | own)
            own[device.id] = device
        if not below | own:
            place = Place(file=str(self.folder))
            self.problems.add("no-devices", "the catalog has no devices", place, "add devices/*.yaml")
        return below | own

    def _shapes(self, devices: dict[str, Device]) -> dict[str, Shape]:
        gone, own = self.changes.removed_shapes, dict[str, Shape]()
        _demand_known("shape", gone, self.base.shapes, self.problems)
        below = {
            name: shape
            for name, shape in self.base.shapes.items()
            if name not in gone and shape.device not in self.changes.removed_devices
        }
        readers = {"tpu.yaml": read_slices, "onprem.yaml": read_onprem, "mig.yaml": read_mig}
        for path in list_files(self.folder / "shapes"):
            place = Place(file=str(path))
            reader = read_instances if path.suffix == ".csv" else readers.get(path.name)
            if reader is None:
                hint = "files of shapes are PROVIDER.csv, " + ", ".join(sorted(readers))
                self.problems.add("unknown-file", f"{path.name} is not a file of shapes", place, hint)
                continue
            for shape in reader(path, devices, self.problems):
                self._demand_new("shape", shape.id, own, place)
                own[shape.id] = shape
        for item in self.changes.shapes:
            shape = read_shape(item, self.origin, below | own, devices)
            own[shape.id] = shape
        return below | own

    def _demand_new(self, noun: str, name: str, own: Mapping[str, object], place: Place) -> None:
        if name in own:
            self.problems.add("duplicate-id", f"{noun} {name} is given twice", place, "keep one")

    def _offers(self, devices: dict[str, Device], shapes: dict[str, Shape]) -> dict[str, Offer]:
        things = Things(devices=devices, shapes=shapes)
        below = {offer.id: offer for offer in self.base.offers if offer.shape in shapes}
        below = without_removed(below, self.changes.removals, things, self.problems)
        taken: set[tuple[str, str]] = set()
        own: list[Offer] = []
        for path in list_files(self.folder / "offers", "*.csv"):
            own += read_offers(path, shapes, taken, self.problems)
        return with_changes(placed(below | newest(own, self.until)), self.changes, things, self.problems)

    def _tables(self, devices: dict[str, Device]) -> Catalog:
        """The base with the folder's own small tables and constants."""
        folder, base, problems = self.folder, self.base, self.problems
        rule, grids = folder / "calibration" / "rule.yaml", folder / "grids.csv"
        wires, moves = folder / "fabrics.yaml", folder / "transfer.csv"
        sellers, stocks = folder / "providers.csv", folder / "capacity.csv"
        shares, error = read_rule(rule, problems) if rule.exists() else ({}, None)
        efficiencies: dict[str, RuleEfficiency] = {**base.efficiencies, **shares}
        check_families(devices, efficiencies, rule, problems)
        base = self._constants(devices)
        return replace(
            base,
            efficiencies=efficiencies,
            rule_error=error or base.rule_error,
            grids={**base.grids, **(read_grids(grids, problems) if grids.exists() else {})},
            fabrics={**base.fabrics, **(read_fabrics(wires, problems) if wires.exists() else {})},
            transfers={**base.transfers, **(read_transfers(moves, problems) if moves.exists() else {})},
            providers={**base.providers, **(read_providers(sellers, problems) if sellers.exists() else {})},
            capacities={**base.capacities, **(read_capacities(stocks, problems) if stocks.exists() else {})},
        )

    def _constants(self, devices: dict[str, Device]) -> Catalog:
        """The base with the folder's own constants, or those that ship: they belong to the equations, not a market."""
        base, shipped = self.base, data_folder("hardware") / "calibration"
        training, serving = (self.folder / "calibration" / name for name in ("training.yaml", "serving.yaml"))
        if training.exists() or not base.training_families:
            training = training if training.exists() else shipped / training.name
            families, stacks, beyond = read_training(training, self.problems)
            base = replace(base, training_families=families, training_stacks=stacks, training_beyond=beyond)
        check_training(_training_families(devices), base.training_families, training, self.problems)
        if serving.exists() or base.serving is None:
            serving = serving if serving.exists() else shipped / serving.name
            base = replace(base, serving=read_serving(serving, self.problems))
        return base


def _demand_known(noun: str, removed: Mapping[str, Place], known: Iterable[str], problems: Problems) -> None:
    for name, place in removed.items():
        if name not in known:
            problems.add(f"unknown-{noun}", f"there is no {noun} '{name}' to remove", place, "leave the entry out")


def _check_fabrics(shapes: Iterable[Shape], fabrics: Mapping[str, Fabric], folder: Path, problems: Problems) -> None:
    place = Place(file=str(folder / "fabrics.yaml"))
    for kind in sorted({shape.network_kind for shape in shapes} - {""} - set(fabrics)):
        problems.add("unknown-fabric", f"no fabric is named '{kind}', but shapes hang on it", place, "add it")


def _training_families(devices: Mapping[str, Device]) -> set[str]:
    return {device.family for device in devices.values() if "training" in device.uses} - {""}


def check_families(devices: Mapping[str, Device], known: Iterable[str], rule: Path, problems: Problems) -> None:
    """Every family that trains needs a share of its peak, own or inherited.

    Parameters
    ----------
    devices
        All devices of the catalog, by id.
    known
        Families that have a share of their peak.
    rule
        File of the shares, which messages name; it need not be there.
    problems
        Where mistakes go.
    """
    for family in sorted(_training_families(devices) - set(known)):
        hint = f"add {family}: {{inherits: ..., because: ...}}"
        problems.add("unknown-family", f"no mfu for the family {family}", Place(file=str(rule)), hint)


def aliases_of(devices: Iterable[Device], problems: Problems, folder: Path) -> dict[str, str]:
    """Device id by every name that a device goes by, in small letters.

    Parameters
    ----------
    devices
        All devices of the catalog.
    problems
        Where mistakes go: a name of two devices, which stays that of the first.
    folder
        Of the catalog; messages name `devices` in it.
    """
    aliases: dict[str, str] = {}
    for device in devices:
        for alias in (device.id, *device.aliases):
            owner = aliases.setdefault(alias.lower(), device.id)
            if owner != device.id:
                message = f"the name '{alias}' belongs to {owner} and {device.id}"
                problems.add("duplicate-alias", message, Place(file=str(folder / "devices")), "keep one")
    return aliases
