"""One hardware folder read over the catalog that it extends, or over nothing.

What the folder does not hold stays as it was below. A device, shape, offer, grid, fabric or transfer price of the
same id takes the place of the one below; of devices and shapes in YAML, only the keys that are written.

Reads hardware/providers.csv and capacity.csv: who sells, how they bill, and how much one may expect of them; and the
small tables: calibration/rule.yaml, grids.csv, fabrics.yaml, and what moving and keeping data costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from planner.carriers import dataclass
from planner.catalog.devices import read_device, read_devices
from planner.catalog.fitted_constants import check_training, read_serving, read_training
from planner.catalog.model import (
    Capacity,
    Catalog,
    Device,
    Fabric,
    Grid,
    Offer,
    Provenance,
    Provider,
    RuleEfficiency,
    RuleError,
    Shape,
    Transfer,
)
from planner.catalog.offers import newest, placed, read_offers
from planner.catalog.own import Changes, Things, with_changes, without_removed
from planner.catalog.reading import Facts, Fields, Origin, Problems, defaults_of, open_csv, open_yaml, parsed
from planner.catalog.shapes import read_instances, read_mig, read_onprem, read_shape, read_slices
from planner.errors import Place
from planner.files import data_folder, list_files
from planner.units import parse_fraction

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


def read_rule(path: Path, problems: Problems) -> tuple[dict[str, RuleEfficiency], RuleError | None]:
    """Sustained share of peak by device family, and how far the rule was off."""
    fields = open_yaml(path, "catalog/rule/v1", problems)
    origin, defaults = defaults_of(fields)
    if defaults:
        defaults.done()
    error = _error(below, origin) if (below := fields.below("error")) else None
    rows = fields.below("families")
    listed = dict(rows.left) if rows else {}
    families: dict[str, RuleEfficiency] = {}
    heirs: list[tuple[str, Fields]] = []
    for name, node in listed.items():
        item = Fields(node, problems, name)
        if "inherits" in item.left:
            heirs.append((name, item))
        elif found := _own(item, name, origin):
            families[name] = found
    for name, item in heirs:
        if heir := _heir(item, name, origin, families):
            families[name] = heir
    fields.done()
    return families, error


def _own(fields: Fields, name: str, above: Origin) -> RuleEfficiency | None:
    facts = Facts(fields.origin(above))
    mfu = facts.value(fields, "mfu", parse_fraction, "mfu", "mfu")
    fields.text("derivation")
    fields.done()
    if mfu is None or not 0 < mfu <= 1:
        fields.problems.add("out-of-range", f"mfu of {name} must lie between 0 and 1", fields.node.place, "mfu: 40 %")
        return None
    return RuleEfficiency(family=name, mfu=mfu, inherited_from="", provenance=facts.found["mfu"])


def _heir(fields: Fields, name: str, above: Origin, families: dict[str, RuleEfficiency]) -> RuleEfficiency | None:
    node, reason = fields.take("inherits", required=True), fields.text("because", required=True)
    fields.done()
    parent = families.get(str(node.value)) if node else None
    if parent is None:
        if node:
            hint = "name a family that has an mfu of its own, or one listed above"
            fields.problems.add("unknown-family", f"{name} inherits from '{node.value}'", node.place, hint)
        return None
    source = f"{parent.provenance.source} (taken over from {parent.family}: {reason})"
    provenance = Provenance(source=source, as_of=above.as_of, status="inferred")
    return RuleEfficiency(family=name, mfu=parent.mfu, inherited_from=parent.family, provenance=provenance)


def _error(fields: Fields, above: Origin) -> RuleError:
    origin = fields.origin(above)

    def share(key: str) -> float:
        node = fields.take(key, required=True)
        return (parsed(node, parse_fraction, key, fields.problems) if node else None) or 0.0

    error = RuleError(
        device=fields.text("device"),
        runs=fields.whole("runs"),
        median=share("median"),
        mean=share("mean"),
        max=share("max"),
        bias=share("bias"),
        elsewhere=fields.text("elsewhere"),
        family=fields.text("family"),
        elsewhere_mean=share("elsewhere_mean") if "elsewhere_mean" in fields.left else None,
        provenance=origin.provenance,
    )
    fields.done()
    return error


def read_grids(path: Path, problems: Problems) -> dict[tuple[str, str], Grid]:
    """Carbon intensity and building overhead by (provider, region); a region that is not listed is unknown."""
    columns = ("provider", "region", "gco2_per_kwh", "pue", "as_of", "status", "source")
    grids = {}
    for row in open_csv(path, columns, ("note",), problems):
        grid = Grid(
            provider=row["provider"],
            region=row["region"],
            gco2_per_kwh=row.number("gco2_per_kwh", problems) or 0.0,
            pue=row.number("pue", problems, least=1.0) or 1.0,
            provenance=row.provenance(problems),
        )
        grids[grid.provider, grid.region] = grid
    return grids


def read_fabrics(path: Path, problems: Problems) -> dict[str, Fabric]:
    """Kinds of network between shapes, by the name that shapes use."""
    fields = open_yaml(path, "catalog/fabrics/v1", problems)
    above, defaults = defaults_of(fields)
    if defaults:
        defaults.done()
    fabrics = {}
    for item in fields.items("fabrics"):
        item.what = item.text("id", required=True) or item.what
        facts = Facts(item.origin(above))
        share = facts.value(item, "sustained_share", parse_fraction, "sustained_share", "sustained_share")
        if share is not None and not 0 < share <= 1:
            text = f"sustained_share of {item.what} must lie between 0 and 1"
            problems.add("out-of-range", text, item.node.place, "sustained_share: 50 %")
        fabrics[item.what] = Fabric(
            id=item.what,
            title=item.text("title", required=True),
            rdma=item.text("rdma", required=True, among=("full", "partial", "no")),
            sustained_share=1.0 if share is None else share,
            provenance=facts.origin.provenance,
            facts=facts.found,
        )
        item.done()
    fields.done()
    return fabrics


TRANSFERS = ("egress", "inter-region", "storage")
REQUIRED = ("provider", "kind", "above_gb", "usd_per_gb", "as_of", "status", "source")


def read_transfers(path: Path, problems: Problems) -> dict[tuple[str, str], Transfer]:
    """Prices by (provider, kind): "egress" to the internet, "inter-region", "storage" for a month.

    A line is a tier: every gigabyte of a month beyond `above_gb` costs `usd_per_gb`. The first tier starts at 0.
    """
    tiers: dict[tuple[str, str], list[tuple[float, float]]] = {}
    origins: dict[tuple[str, str], Provenance] = {}
    for row in open_csv(path, REQUIRED, ("note",), problems):
        key = row["provider"], row["kind"]
        if row["kind"] not in TRANSFERS:
            problems.add("unknown-value", f"kind is '{row['kind']}'", row.place, "one of: " + ", ".join(TRANSFERS))
        above, price = row.number("above_gb", problems), row.number("usd_per_gb", problems)
        before = tiers.setdefault(key, [])
        if above is None or price is None:
            problems.add("bad-number", f"a tier of {key[0]} lacks a number", row.place, "give above_gb and usd_per_gb")
        elif (above != 0 and not before) or (before and above <= before[-1][0]):
            problems.add("bad-number", f"tiers of {key[0]} do not rise from 0", row.place, "sort them by above_gb")
        else:
            before.append((above, price))
        origin = row.provenance(problems)
        if key not in origins or origin.status != "seen":
            origins[key] = origin  # the weakest fact of the tiers stands for all
    return {
        key: Transfer(provider=key[0], kind=key[1], tiers=tuple(found), provenance=origins[key])
        for key, found in tiers.items()
    }
