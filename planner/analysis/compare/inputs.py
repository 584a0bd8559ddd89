"""What changed in what two plans were made from: scenario keys, the catalog, the planner, the solver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from planner.analysis.compare.model import CatalogCounts, CatalogPair, FactRow, Inputs, TextPair
from planner.analysis.compare.scenario_keys import changed_keys
from planner.analysis.compare.side import Side
from planner.catalog.diff import Change, difference

NOTHING: CatalogCounts = {
    "facts": 0, "prices": 0, "offers_added": 0, "offers_removed": 0, "flagged": 0, "cleared": 0,
}  # fmt: skip
UNKNOWN: CatalogCounts = {
    "facts": None, "prices": None, "offers_added": None, "offers_removed": None, "flagged": None, "cleared": None,
}  # fmt: skip
MOST = 200  # changes of facts and prices that are written down one by one


def inputs_document(old: Side, new: Side) -> Inputs:
    """Every input that differs; what touches anything that either plan uses by itself."""
    keys = changed_keys(old.document["scenario"], new.document["scenario"])
    settings = [side.document.get("settings", []) for side in (old, new)]
    cases = [side.document.get("case") for side in (old, new)]
    return {
        "scenario": [{"key": ".".join(key), "old": was, "new": now} for key, was, now in keys],
        "settings": {"old": settings[0], "new": settings[1], "same": settings[0] == settings[1]},
        "case": {"old": cases[0], "new": cases[1], "same": cases[0] == cases[1]},
        "catalog": _catalog(old, new),
        "planner": _pair(old, new, "planner"),
        "solver": _pair(old, new, "solver"),
        "modelling": _pair(old, new, "modelling"),
    }


def _pair(old: Side, new: Side, name: Literal["planner", "solver", "modelling"]) -> TextPair:
    texts = [side.document["provenance"][name] for side in (old, new)]
    return {"old": texts[0], "new": texts[1], "same": texts[0] == texts[1]}


def _catalog(old: Side, new: Side) -> CatalogPair:
    """Counts of what changed, and what touches a plan; from the plans themselves where a catalog is missing."""
    told: CatalogPair = {
        "same": False,
        "old": old.document["provenance"]["catalog"].copy(),
        "new": new.document["provenance"]["catalog"].copy(),
        **NOTHING,
        "known": True,
        "touching": [],
    }
    if told["old"]["sha256"] == told["new"]["sha256"]:
        return {**told, "same": True}
    if old.catalog is None or new.catalog is None:
        return {**told, **UNKNOWN, "known": False, "touching": _stated_prices(old, new)}
    found = difference(old.catalog, new.catalog)
    used = _used(old) | _used(new)
    shapes = {**old.catalog.shapes, **new.catalog.shapes}
    touching = [_row(c) for c in (*found.changes, *found.prices) if _touches(c, used, shapes)]
    return {
        **told,
        "facts": len(found.changes),
        "prices": len(found.prices),
        "offers_added": len(found.added.get("offer", ())),
        "offers_removed": len(found.removed.get("offer", ())),
        "flagged": len(found.flagged),
        "cleared": len(found.cleared),
        "touching": touching[:MOST],
    }


def _used(side: Side) -> set[str]:
    """Offers, shapes and devices that a plan stands on."""
    document = side.document
    rows = [row for workload in document["workloads"] for row in workload["allocations"]]
    used = [(row["offer"], row["shape"], row["device"]) for row in (*rows, *document.get("contracts", ()))]
    return {name for names in used for name in names}


def _touches(change: Change, used: set[str], shapes: Mapping[str, Any]) -> bool:
    if change.kind == "table":
        return True
    return change.id in used or (change.kind == "shape" and change.id in shapes and shapes[change.id].id in used)


def _row(change: Change) -> FactRow:
    plain = [", ".join(map(str, v)) if isinstance(v, tuple) else v for v in (change.old, change.new)]
    values = [v if isinstance(v, int | float | str | None) else str(v) for v in plain]
    return {
        "kind": change.kind,
        "id": change.id,
        "field": change.field,
        "old": values[0],
        "new": values[1],
        "change": None if change.ratio is None else change.ratio - 1,
        "old_source": change.old_source,
        "new_source": change.new_source,
    }


def _stated_prices(old: Side, new: Side) -> list[FactRow]:
    """Prices of offers that both plans use, as the plans themselves state them."""
    before, after = (_prices(side) for side in (old, new))
    return [
        _row(Change(kind="offer", id=name, field="price_usd_per_hour", old=before[name], new=after[name]))
        for name in sorted(before.keys() & after.keys())
        if before[name] != after[name]
    ]


def _prices(side: Side) -> dict[str, float]:
    rows = [row for workload in side.document["workloads"] for row in workload["allocations"]]
    return {row["offer"]: row["price_microusd_per_hour"] / 1e6 for row in rows if row.get("price_microusd_per_hour")}
