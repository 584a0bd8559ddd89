"""Reads hardware/providers.csv and capacity.csv: who sells, how they bill, and how much one may expect of them."""

from __future__ import annotations

from pathlib import Path

from planner.catalog.model import Capacity, Provider
from planner.catalog.reading import Problems, open_csv

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
