"""What two plans decide, workload by workload, and what each costs: from the plan documents alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Document = dict[str, Any]
Plan = Mapping[str, Any]
CELLS = (
    "offer", "provider", "region", "zone", "device", "shape", "price_model", "funding", "devices_per_shape", "count",
    "devices", "jobs", "replicas", "replicas_needed", "role", "hours", "finish_hours", "deadline_hours",
    "load_at_peak", "price_microusd_per_hour", "cost_microusd", "cost_usd",
)  # fmt: skip
WHAT = ("provider", "shape", "price_model", "count", "role", "funding")  # machines; the rest follows, but for:
WHERE = ("offer", "count", "role", "funding")  # their places, and layouts
BOUGHT = ("kind", "offer", "provider", "region", "price_model", "count", "hours", "start_hours", "end_hours", "data",
          "cost_microusd", "cost_usd")  # fmt: skip


def workload_rows(old: Plan, new: Plan) -> list[Document]:
    """One row a workload of either plan, in the order of the new one; those that are gone last."""
    before, after = ({w["name"]: w for w in plan["workloads"]} for plan in (old, new))
    names = [*after, *(name for name in before if name not in after)]
    return [_workload_row(before.get(name), after.get(name)) for name in names]


def _workload_row(old: Plan | None, new: Plan | None) -> Document:
    sides = [None if one is None else _side(one) for one in (old, new)]
    given = new or old
    assert given is not None
    if sides[0] is None or sides[1] is None:
        sign, what = ("+", "added") if sides[0] is None else ("-", "removed")
    else:
        what = _what_changed(sides[0], sides[1])
        sign = " " if what == "nothing" else "~"
    return {
        "name": given["name"],
        "kind": given["kind"],
        "sign": sign,
        "changed": what,
        "old": sides[0],
        "new": sides[1],
        **moved(*(None if side is None else side["cost_microusd"] for side in sides)),
    }


def _what_changed(old: Document, new: Document) -> str:
    """The first of these that differs: what is rented, where, its layout, what it costs."""
    stated = set.intersection(*(set(row) for side in (old, new) for row in side["rows"]), {*CELLS, "layout"})
    for what, names in (("decision", WHAT), ("place", WHERE), ("layout", ("layout",))):
        told = [name for name in names if name in stated]  # plans of older versions say less
        if _cells(old, told) != _cells(new, told):
            return what
    return "nothing" if old["cost_microusd"] == new["cost_microusd"] else "cost"


def _cells(side: Document, names: Sequence[str]) -> list[str]:
    return sorted(repr([row[name] for name in names]) for row in side["rows"])


def _side(workload: Plan) -> Document:
    """One workload of one plan, in short."""
    rows = [_allocation(row) for row in workload["allocations"]]
    rows.sort(key=lambda row: (str(row["offer"]), str(row.get("role")), str(row["layout"])))
    finish = [row["finish_hours"] for row in rows if row.get("finish_hours") is not None]
    load = [row["load_at_peak"] for row in rows if row.get("load_at_peak") is not None]
    return {
        "rows": rows,
        "devices": sum(row["devices"] for row in rows),
        "finish_hours": max(finish, default=None),
        "load_at_peak": max(load, default=None),
        "cost_microusd": workload["cost_microusd"] if rows else None,
        "cost_usd": workload["cost_usd"] if rows else None,
    }


def _allocation(row: Plan) -> Document:
    layout = row.get("layout") or {}
    kept = {name: row[name] for name in CELLS if name in row}
    kept.setdefault("devices_per_shape", row["devices"] // max(row["count"], 1))  # plans of older versions
    return kept | {"layout": {key: value for key, value in layout.items() if isinstance(value, int | float | str)}}


def bought_rows(old: Plan, new: Plan, part: str) -> list[Document]:
    """Contracts or copies of data that only one plan has: + and -, with their money."""
    before, after = ([_bought(row) for row in plan.get(part) or ()] for plan in (old, new))
    return [*_only(before, after, "-"), *_only(after, before, "+")]


def _bought(row: Plan) -> Document:
    return {name: row.get(name) for name in BOUGHT}


def _only(mine: Sequence[Document], others: Sequence[Document], sign: str) -> Iterator[Document]:
    left = list(others)
    for row in mine:
        if row in left:
            left.remove(row)
        else:
            yield {"sign": sign, **row}


def owned_rows(old: Plan, new: Plan) -> list[Document]:
    """Owned machines that are used otherwise: shapes of each in either plan."""
    before, after = (_owned(plan) for plan in (old, new))
    return [
        {"offer": offer, "old": before.get(offer, 0), "new": after.get(offer, 0)}
        for offer in sorted(before.keys() | after.keys())
        if before.get(offer, 0) != after.get(offer, 0)
    ]


def _owned(plan: Plan) -> dict[str, int]:
    found: dict[str, int] = {}
    for workload in plan["workloads"]:
        for row in workload["allocations"]:
            if row["price_model"] == "owned":
                found[row["offer"]] = found.get(row["offer"], 0) + row["count"]
    return found


def money_rows(old: Plan, new: Plan) -> list[Document]:
    """Old, new and difference: training (one-off), serving (over the horizon), what is bought ahead, and the total."""
    parts = {name: tuple(_part(plan, name) for plan in (old, new)) for name in ("training", "serving")}
    parts |= {name: tuple(_ahead(plan, name) for plan in (old, new)) for name in ("contracts", "copies")}
    rows = [{"part": name, **moved(*pair)} for name, pair in parts.items() if any(pair)]
    total = [plan["summary"]["cost_microusd"] for plan in (old, new)]
    return [*rows, {"part": "total", **moved(*total)}]


def _part(plan: Plan, kind: str) -> int | None:
    if plan["summary"]["cost_microusd"] is None:
        return None
    return sum(int(w["cost_microusd"] or 0) for w in plan["workloads"] if w["kind"] == kind)


def _ahead(plan: Plan, part: str) -> int | None:
    if plan["summary"]["cost_microusd"] is None:
        return None
    return sum(int(row["cost_microusd"] or 0) for row in plan.get(part) or ())


def moved(old: int | None, new: int | None) -> Document:
    """Old, new and difference of an amount; the difference is unknown when one of them is."""
    change = None if old is None or new is None else new - old
    return {
        "old_usd": None if old is None else old / 1e6,
        "new_usd": None if new is None else new / 1e6,
        "difference_microusd": change,
        "difference_usd": None if change is None else change / 1e6,
        "difference": change / old if change is not None and old else None,
    }
