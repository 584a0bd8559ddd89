"""What two plans decide, workload by workload, and what each costs: from the plan documents alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, cast

from planner.analysis.compare.model import (
    Amounts,
    Bought,
    BoughtRow,
    Changed,
    Compared,
    Kind,
    MoneyRow,
    OwnedRow,
    SideRow,
    WorkloadRow,
    WorkloadSide,
)
from planner.plan.model.bought import Contract, Copy
from planner.plan.model.plan import Allocation, PlanDocument, Workload
from planner.plan.parts import expected_microusd

SIGNS: dict[Changed, Literal["+", "-", " "]] = {"added": "+", "removed": "-", "nothing": " "}
Part = Literal["contracts", "copies"]
WHAT = ("provider", "shape", "price_model", "count", "role", "funding")  # machines; the rest follows, but for:
WHERE = ("offer", "count", "role", "funding")  # their places, and layouts
DECIDES: dict[Changed, tuple[str, ...]] = {"decision": WHAT, "place": WHERE, "layout": ("layout",)}


def workload_rows(old: PlanDocument, new: PlanDocument) -> list[WorkloadRow]:
    """One row a workload of either plan, in the order of the new one; those that are gone last."""
    before, after = ({w["name"]: w for w in plan["workloads"]} for plan in (old, new))
    names = [*after, *(name for name in before if name not in after)]
    return [_workload_row(before.get(name), after.get(name)) for name in names]


def _workload_row(old: Workload | None, new: Workload | None) -> WorkloadRow:
    sides = [None if one is None else _side(one) for one in (old, new)]
    what = _what_changed(*sides)
    given = new or old
    assert given is not None
    return {
        "name": given["name"],
        "kind": given["kind"],
        "sign": SIGNS.get(what, "~"),
        "changed": what,
        "old": sides[0],
        "new": sides[1],
        **moved(*(None if side is None else side["cost_microusd"] for side in sides)),
    }


def _what_changed(old: WorkloadSide | None, new: WorkloadSide | None) -> Changed:
    """Whether one is alone, else the first that differs: what is rented, where, its layout, what it costs."""
    if old is None or new is None:
        return "added" if old is None else "removed"
    rows: list[Mapping[str, object]] = [*old["rows"], *new["rows"]]  # none where neither side has a plan
    for what, names in DECIDES.items():
        told = [name for name in names if all(name in row for row in rows)]  # plans of older versions say less
        if _cells(old, told) != _cells(new, told):
            return what
    return "nothing" if old["cost_microusd"] == new["cost_microusd"] else "cost"


def _cells(side: WorkloadSide, names: Sequence[str]) -> list[str]:
    rows: list[Mapping[str, object]] = [*side["rows"]]
    return sorted(repr([row[name] for name in names]) for row in rows)


def _side(workload: Workload) -> WorkloadSide:
    """One workload of one plan, in short."""
    rows = [_allocation(row) for row in workload["allocations"]]
    rows.sort(key=lambda row: (str(row["offer"]), str(row.get("role")), str(row["layout"])))
    finish = [hours for row in rows if (hours := row.get("finish_hours")) is not None]
    load = [share for row in rows if (share := row.get("load_at_peak")) is not None]
    return {
        "rows": rows,
        "devices": sum(row["devices"] for row in rows),
        "finish_hours": max(finish, default=None),
        "load_at_peak": max(load, default=None),
        "cost_microusd": workload["cost_microusd"] if rows else None,
        "cost_usd": workload["cost_usd"] if rows else None,
    }


def _allocation(row: Allocation) -> SideRow:
    known: Mapping[str, object] = row
    kept = {name: known[name] for name in SideRow.__annotations__ if name in known}
    kept.setdefault("devices_per_shape", row["devices"] // max(row["count"], 1))  # plans of older versions
    return cast("SideRow", kept | {"layout": dict(row["layout"])})


def bought_rows(old: PlanDocument, new: PlanDocument, part: Part) -> list[BoughtRow]:
    """Contracts or copies of data that only one plan has: + and -, with their money.

    Parameters
    ----------
    old, new
        Two plans; where they lack the part, nothing is bought.
    part
        What of it is compared.
    """
    before, after = ([_bought(row) for row in plan.get(part, ())] for plan in (old, new))
    return [*_only(before, after, "-"), *_only(after, before, "+")]


def _bought(row: Contract | Copy) -> Bought:
    known: Mapping[str, object] = row
    return cast("Bought", {name: known.get(name) for name in Bought.__annotations__})


def _only(mine: Sequence[Bought], others: Sequence[Bought], sign: Literal["+", "-"]) -> Iterator[BoughtRow]:
    left = list(others)
    for row in mine:
        if row in left:
            left.remove(row)
        else:
            yield {"sign": sign, **row}


def owned_rows(old: PlanDocument, new: PlanDocument) -> list[OwnedRow]:
    """Owned machines that are used otherwise: shapes of each in either plan."""
    before, after = (_owned(plan) for plan in (old, new))
    return [
        {"offer": offer, "old": before.get(offer, 0), "new": after.get(offer, 0)}
        for offer in sorted(before.keys() | after.keys())
        if before.get(offer, 0) != after.get(offer, 0)
    ]


def _owned(plan: PlanDocument) -> dict[str, int]:
    found: dict[str, int] = {}
    for workload in plan["workloads"]:
        for row in workload["allocations"]:
            if row["price_model"] == "owned" and "shared" not in row:
                found[row["offer"]] = found.get(row["offer"], 0) + row["count"]
    for nodes in plan.get("shared_nodes", []):
        if nodes["price_model"] == "owned":
            found[nodes["offer"]] = found.get(nodes["offer"], 0) + nodes["count"]
    return found


def money_rows(old: PlanDocument, new: PlanDocument) -> list[MoneyRow]:
    """Old, new and difference: training (one-off), serving (over the horizon), what is bought ahead, and the total.

    Plans for several futures are told as written, with what the other cases add to it on average in a row of its own.
    """
    names: tuple[Kind | Part | Literal["cases"], ...] = ("training", "serving", "contracts", "copies", "cases")
    pairs = {name: (_part(old, name), _part(new, name)) for name in names}
    rows: list[MoneyRow] = [{"part": name, **moved(*pair)} for name, pair in pairs.items() if any(pair)]
    return [*rows, {"part": "total", **moved(expected_microusd(old), expected_microusd(new))}]


def of_one_time(one: Compared) -> bool:
    """Whether totals are of one time: horizons are alike, or nothing recurs over them."""
    spans = one["horizon_hours"]
    recurs = any(row["part"] not in ("training", "total") for row in one["money"])
    return spans["old"] == spans["new"] or None in (spans["old"], spans["new"]) or not recurs


def _part(plan: PlanDocument, name: Kind | Part | Literal["cases"]) -> int | None:
    """What a plan spends on workloads of a kind, or ahead; None without a plan.  [micro-USD]"""
    written = plan["summary"]["cost_microusd"]
    if written is None:
        return None
    if name == "cases":
        expected = expected_microusd(plan)
        return None if expected is None else expected - written
    if name == "contracts" or name == "copies":
        return sum(row["cost_microusd"] for row in plan.get(name, ()))
    return sum(workload["cost_microusd"] for workload in plan["workloads"] if workload["kind"] == name)


def moved(old: int | None, new: int | None) -> Amounts:
    """Old, new and difference of an amount; the difference is unknown when one of them is."""
    change = None if old is None or new is None else new - old
    return {
        "old_usd": None if old is None else old / 1e6,
        "new_usd": None if new is None else new / 1e6,
        "difference_microusd": change,
        "difference_usd": None if change is None else change / 1e6,
        "difference": change / old if change is not None and old else None,
    }
