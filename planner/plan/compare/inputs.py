"""What changed in what two plans were made from: scenario keys, the catalog, the planner, the solver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.catalog.diff import Change, difference
from planner.plan.compare.scenario_keys import changed_keys
from planner.plan.compare.side import Side

Document = dict[str, Any]
MOST = 200  # changes of facts and prices that are written down one by one


def inputs_document(old: Side, new: Side) -> Document:
    """Every input that differs; what touches anything that either plan uses by itself."""
    keys = changed_keys(old.document["scenario"], new.document["scenario"])
    return {
        "scenario": [{"key": ".".join(key), "old": was, "new": now} for key, was, now in keys],
        "settings": _pair(list(old.document.get("settings") or ()), list(new.document.get("settings") or ())),
        "case": _pair(old.document.get("case"), new.document.get("case")),
        "catalog": _catalog(old, new),
        **{name: _pair(*(_made_by(side, name) for side in (old, new))) for name in ("planner", "solver", "modelling")},
    }


def _made_by(side: Side, name: str) -> str:
    return str((side.document.get("provenance") or {}).get(name, ""))


def _pair(old: Any, new: Any) -> Document:
    return {"old": old, "new": new, "same": old == new}


def _catalog(old: Side, new: Side) -> Document:
    """Counts of what changed, and what touches a plan; from the plans themselves where a catalog is missing."""
    sides = [dict((side.document.get("provenance") or {}).get("catalog") or {}) for side in (old, new)]
    told: Document = {"same": sides[0].get("sha256") == sides[1].get("sha256"), "old": sides[0], "new": sides[1]}
    nothing = {"facts": 0, "prices": 0, "offers_added": 0, "offers_removed": 0, "flagged": 0, "cleared": 0}
    if told["same"]:
        return told | nothing | {"known": True, "touching": []}
    if old.catalog is None or new.catalog is None:
        return told | dict.fromkeys(nothing) | {"known": False, "touching": _stated_prices(old, new)}
    found = difference(old.catalog, new.catalog)
    used = _used(old) | _used(new)
    shapes = {**old.catalog.shapes, **new.catalog.shapes}
    touching = [_row(c) for c in (*found.changes, *found.prices) if _touches(c, used, shapes)]
    return told | {
        "facts": len(found.changes),
        "prices": len(found.prices),
        "offers_added": len(found.added.get("offer", ())),
        "offers_removed": len(found.removed.get("offer", ())),
        "flagged": len(found.flagged),
        "cleared": len(found.cleared),
        "known": True,
        "touching": touching[:MOST],
    }


def _used(side: Side) -> set[str]:
    """Offers, shapes and devices that a plan stands on."""
    document = side.document
    rows = [row for workload in document["workloads"] for row in workload["allocations"]]
    rows += document.get("contracts") or []
    return {str(row[name]) for row in rows for name in ("offer", "shape", "device") if row.get(name)}


def _touches(change: Change, used: set[str], shapes: Mapping[str, Any]) -> bool:
    if change.kind == "table":
        return True
    return change.id in used or (change.kind == "shape" and change.id in shapes and shapes[change.id].id in used)


def _row(change: Change) -> Document:
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


def _stated_prices(old: Side, new: Side) -> list[Document]:
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
