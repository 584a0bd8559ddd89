"""Costs that OpenCost and Kubecost allot to namespaces, pods or labels in a window of time."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from planner.reading.bills import Spend, cost_of, day_of
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, fit
from planner.reading.points import number_of
from planner.reading.reading import Reading
from planner.reading.source import Source, refused
from planner.reading.times import iso_seconds, zone_of

_PARTS = ("cpuCost", "gpuCost", "ramCost", "pvCost", "networkCost", "loadBalancerCost", "sharedCost", "externalCost")
_MOST = 2_000_000
_DAY_S = 86_400 * 1.01


def recognise(source: Source) -> Match:
    """Allocations with costs of their parts and the window."""
    if source.head_text.lstrip()[:1] not in ("{", "["):
        return NOTHING
    keys = head_keys(source)
    marks = {each: each in keys for each in ("cpuCost", "ramCost", "totalCost", "start")}
    tool = "Kubecost" if "totalEfficiency" in keys and "efficiency" in keys else "OpenCost"
    return fit(marks, tool=tool, ceiling=0.97)


def _allocations(value: Any, deep: int = 0) -> Iterator[tuple[str, Any]]:
    """Names and allocations, of a map or of a list of maps, one for each window."""
    if isinstance(value, dict) and deep < 4:
        for key, each in value.items():
            if isinstance(each, dict) and ("totalCost" in each or "cpuCost" in each):
                yield str(each.get("name") or key)[:200], each
            elif isinstance(each, dict | list):
                yield from _allocations(each, deep + 1)
            elif deep == 2:
                yield str(key)[:200], each
    elif isinstance(value, list) and deep < 4:
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
    reading = Reading(
        kind="allocations", title="costs allotted within Kubernetes", source=source.name, of="allocations"
    )
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
    if not reading.taken:
        raise refused(source, "nothing-taken", f"no allocation of {source.name} could be taken",
                      "GET /allocation?window=7d&aggregate=namespace&step=1d")  # fmt: skip
    spend.told(reading, thing="name")
    for part, cost in parts.items():
        if cost:
            reading.show(f"of it {part.removesuffix('Cost')}", float(cost))
    reading.show("GPU-hours", gpu_hours, "h")
    reading.understood["currency"] = (
        "not said; OpenCost and Kubecost count in US dollars unless they are told otherwise"
    )
    if longest > _DAY_S:
        reading.note(
            f"windows are up to {longest / 86_400:.1f} days long: each counts on its first day (step=1d splits)"
        )
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
)  # fmt: skip
