"""Reads hardware/transfer.csv: what moving and keeping data costs, by provider."""

from __future__ import annotations

from pathlib import Path

from planner.catalog.model import Provenance, Transfer
from planner.catalog.reading import Problems, open_csv

KINDS = ("egress", "inter-region", "storage")
REQUIRED = ("provider", "kind", "above_gb", "usd_per_gb", "as_of", "status", "source")


def read_transfers(path: Path, problems: Problems) -> dict[tuple[str, str], Transfer]:
    """Prices by (provider, kind): "egress" to the internet, "inter-region", "storage" for a month.

    A line is a tier: every gigabyte of a month beyond `above_gb` costs `usd_per_gb`. The first tier starts at 0.
    """
    tiers: dict[tuple[str, str], list[tuple[float, float]]] = {}
    origins: dict[tuple[str, str], Provenance] = {}
    for row in open_csv(path, REQUIRED, ("note",), problems):
        key = row["provider"], row["kind"]
        if row["kind"] not in KINDS:
            problems.add("unknown-value", f"kind is '{row['kind']}'", row.place, "one of: " + ", ".join(KINDS))
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
