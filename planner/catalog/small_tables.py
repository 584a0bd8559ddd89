"""Reads the small tables: calibration/rule.yaml, grids.csv, fabrics.yaml, and what moving and keeping data costs."""

from __future__ import annotations

from pathlib import Path

from planner.catalog.model import Fabric, Grid, Provenance, RuleEfficiency, RuleError, Transfer
from planner.catalog.reading import Facts, Fields, Origin, Problems, defaults_of, open_csv, open_yaml, parsed
from planner.units import parse_fraction


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
