"""Costs that OpenCost and Kubecost allot to namespaces, pods or labels in a window of time."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from planner.reading.bills import Spend, cost_of, day_of
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, fit
from planner.reading.points import number_of
from planner.reading.reading import Reading, Skips
from planner.reading.requests import header_of, order_of
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, rows_of
from planner.reading.times import iso_seconds, zone_of

_PARTS = ("cpuCost", "gpuCost", "ramCost", "pvCost", "networkCost", "loadBalancerCost", "sharedCost", "externalCost")
_MOST = 2_000_000
_DEEPEST = 6  # data, sets, a set, its allocations
_DAY_S = 86_400 * 1.01


def recognise(source: Source) -> Match:
    """Allocations with costs of their parts and the window."""
    if source.head_text.lstrip()[:1] not in ("{", "["):
        return NOTHING
    keys = head_keys(source)
    marks = {each: each in keys for each in ("cpuCost", "ramCost", "totalCost", "start")}
    return fit(marks, tool="OpenCost or Kubecost", ceiling=0.97)  # one form of both


def _allocations(value: Any, deep: int = 0) -> Iterator[tuple[str, Any]]:
    """Names and allocations, of a map or of a list of maps, one for each window."""
    if isinstance(value, dict) and deep < _DEEPEST:
        for key, each in value.items():
            if isinstance(each, dict) and ("totalCost" in each or "cpuCost" in each):
                yield str(each.get("name") or key)[:200], each
            elif isinstance(each, dict | list):
                yield from _allocations(each, deep + 1)
            elif deep == 2:
                yield str(key)[:200], each
    elif isinstance(value, list) and deep < _DEEPEST:
        for each in value:
            if isinstance(each, dict) and "totalCost" in each:
                yield str(each.get("name", ""))[:200], each
            else:
                yield from _allocations(each, deep + 1)


def _cost(value: Any) -> Decimal | None:
    number = number_of(value)
    return cost_of(str(value).strip()) if number is not None else None


def read(source: Source, asked: Asked) -> Reading:
    """Sums by name and day; an allocation over several days counts on the first."""
    reading = _reading(source, "allocations")
    spend = Spend()
    parts = dict.fromkeys(_PARTS, Decimal())
    gpu_hours = 0.0
    longest = 0.0
    number = 0
    for path in source.paths:
        whole = document_of(source if len(source.paths) == 1 else Source(path))
        for name, each in _allocations(whole):
            number += 1
            if not isinstance(each, dict):
                reading.skipped.add("JSON, but no allocation", number)
                continue
            window = each.get("window")
            start = str(each.get("start") or (window.get("start") if isinstance(window, dict) else "") or "")
            day, cost = day_of(start), _cost(each.get("totalCost"))
            if cost is None:
                costs = [_cost(each.get(part)) for part in _PARTS]
                cost = sum((part for part in costs if part is not None), Decimal()) if any(
                    part is not None for part in costs) else None  # fmt: skip
            if cost is None:
                reading.skipped.add("no number for a cost", number)
            elif not day:
                reading.skipped.add("no day", number)
            elif number > _MOST:
                reading.skipped.add(f"more than {_MOST:,} allocations", number)
            else:
                reading.taken += 1
                spend.add("", day, name, cost)
                for part in _PARTS:
                    parts[part] += _cost(each.get(part)) or Decimal()
                hours = number_of(each.get("gpuHours"))
                gpu_hours += hours if hours is not None and 0 <= hours < 1e9 else 0.0
                longest = max(longest, _span_s(each, start))
    _told(source, reading, spend, parts, gpu_hours)
    if longest > _DAY_S:
        reading.note(
            f"windows are up to {longest / 86_400:.1f} days long: each counts on its first day (step=1d splits)"
        )
    return reading


def _reading(source: Source, kind: str) -> Reading:
    return Reading(kind=kind, title="costs allotted within Kubernetes", source=source.name, of="allocations",
                   tool="OpenCost or Kubecost")  # fmt: skip


def _told(source: Source, reading: Reading, spend: Spend, parts: dict[str, Decimal], gpu_hours: float) -> None:
    """Spend by name and day, its parts, and hours of devices."""
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no allocation of {source.name} could be taken",
                      "GET /allocation?window=7d&aggregate=namespace&step=1d")  # fmt: skip
    spend.told(reading, thing="name")
    for part, cost in parts.items():
        if cost:
            reading.show(f"of it {part.removesuffix('Cost')}", float(cost))
    reading.show("GPU-hours", gpu_hours or None, "h")
    reading.understood["currency"] = (
        "not said; OpenCost and Kubecost count in US dollars unless they are told otherwise"
    )


# the same as a table: OpenCost's export of a day, or a table in a warehouse

_COLUMNS = {
    "name": ("namespace", "name", "podname", "pod"),
    "day": ("date", "start", "windowstart", "startdate"),
    "total": ("totalcost",),
    "gpu_hours": ("gpuhours",),
    **{part: (part.lower(),) for part in _PARTS},
}


def recognise_table(source: Source) -> Match:
    """A day, a name, and costs of parts."""
    places = places_of(header_of(source)[0], _COLUMNS)
    return fit({role: role in places for role in ("name", "day", "cpuCost", "ramCost")}, tool="OpenCost or Kubecost",
               ceiling=0.96)  # fmt: skip


def read_table(source: Source, asked: Asked) -> Reading:
    """Sums by name and day; of rows without a total the parts are added."""
    reading = _reading(source, "allocations-table")
    spend, parts, gpu_hours = Spend(), dict.fromkeys(_PARTS, Decimal()), 0.0
    days = (row["day"] for _, row in rows_of(source, _COLUMNS, ("name", "day"), Skips()))
    order = order_of(source, days)
    if order.said:
        reading.understood["days"] = order.said
    for line, row in rows_of(source, _COLUMNS, ("name", "day"), reading.skipped):
        costs = {part: _cost(row.get(part, "")) for part in _PARTS}
        known = [cost for cost in costs.values() if cost is not None]
        cost, day = _cost(row.get("total", "")), day_of(row["day"], order.day_first)
        cost = sum(known, Decimal()) if cost is None and known else cost
        if cost is None:
            reading.skipped.add("no number for a cost", line)
        elif not day:
            reading.skipped.add("no day", line)
        else:
            reading.taken += 1
            spend.add("", day, row["name"][:200], cost)
            for part in _PARTS:
                parts[part] += costs[part] or Decimal()
            hours = number_of(row.get("gpu_hours", ""))
            gpu_hours += hours if hours is not None and 0 <= hours < 1e9 else 0.0
    _told(source, reading, spend, parts, gpu_hours)
    return reading


def _span_s(each: dict[str, Any], start: str) -> float:
    try:
        return iso_seconds(str(each.get("end", "")), zone_of("")) - iso_seconds(start, zone_of(""))
    except (ValueError, OverflowError):
        return 0.0


KINDS = (
    Kind(name="allocations", title="costs allotted within Kubernetes",
         looks_for="JSON with cpuCost, ramCost, totalCost and a start (OpenCost, Kubecost)",
         recognise=recognise, read=read),
    Kind(name="allocations-table", title="costs allotted within Kubernetes, table",
         looks_for="a first line of Date, Namespace or Name, CPUCost and RAMCost (OpenCost, Kubecost)",
         recognise=recognise_table, read=read_table),
)  # fmt: skip
