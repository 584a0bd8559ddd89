"""Costs by day: what AWS Cost Explorer gives, and what OpenCost and Kubecost allot within Kubernetes.

Of Cost Explorer: the table that its page saves, and the answer of get-cost-and-usage. Of the others: costs of
namespaces, pods or labels in a window of time.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

from planner.reading.bills import Spend, cost_of, currency_of, day_of
from planner.reading.columns import iso_seconds, plain, zone_of
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading, Skips, fit
from planner.reading.measured_points import number_of
from planner.reading.requests import header_of, order_of
from planner.reading.source import Source, refused
from planner.reading.tables import places_of, rows_of

_TOTALS = ("totalcosts", "totalcost")
_UNIT = re.compile(r"^(.*?) ?\(([^()]{1,5})\)$")
_CURRENCIES = {"$": "USD"}
_ALL = "all services"
_CENT = Decimal("0.01")
# the cost that is the spend where several are given, the surest first
_METRICS = ("UnblendedCost", "BlendedCost", "AmortizedCost", "NetUnblendedCost", "NetAmortizedCost")


def _priced(name: str) -> tuple[str, str]:
    """What a column is of and its currency; "" for one that holds no cost."""
    found = _UNIT.match(name.strip())
    currency = _CURRENCIES.get(found.group(2), found.group(2)) if found else ""
    return (found.group(1), currency) if found and re.fullmatch("[A-Z]{3}", currency) else ("", "")


def recognise_costs_table(source: Source) -> Match:
    """A column of costs for each service and one of their sum; a row of sums, then one a day."""
    names, _ = header_of(source)
    if not names:
        return NOTHING
    lines = [line for line in source.first_lines if line.strip()]
    marks = {
        "a column Total costs($)": plain(_priced(names[-1])[0]) in _TOTALS,
        "a row of totals": len(lines) > 1 and bool(re.match(r'"?[\w .]{0,60}\b[Tt]otal"?[,;\t]', lines[1])),
    }
    return fit(marks, tool="AWS Cost Explorer", ceiling=0.97)


def read_costs_table(source: Source, asked: Asked) -> Reading:
    """Costs by service and day."""
    names, separator = header_of(source)
    reading, spend = _explorer_reading(source), Spend()
    priced = {at: _priced(name) for at, name in enumerate(names) if at and _priced(name)[1]}
    total = len(names) - 1
    parts = [at for at in priced if at != total]
    if total not in priced:
        raise refused(source, "missing-column", f"{source.name} has no column Total costs($) at its end",
                      "save the table of Cost Explorer again")  # fmt: skip
    off = 0
    for line, text in enumerate(source.lines(), start=1):
        cells = _cells(text, separator)
        costs = {at: cost_of(cells[at] or "0") for at in priced} if len(cells) == len(names) else {}
        day = day_of(cells[0]) if cells else ""
        if not text.strip() or cells == names:
            continue
        if not costs:
            reading.skipped.add("more or fewer cells than columns", line)
        elif cells[0].lower().endswith("total"):
            reading.skipped.add("the sum of the days", line)
        elif not day:
            reading.skipped.add("no day", line)
        elif any(cost is None for cost in costs.values()):
            reading.skipped.add("no number for a cost", line)
        else:
            reading.taken += 1
            for at in parts or [total]:
                spend.add(priced[at][1], day, priced[at][0] if parts else _ALL, costs[at] or Decimal())
            there = sum((costs[at] or Decimal() for at in parts), Decimal())
            off += bool(parts) and abs(there - (costs[total] or Decimal())) > _CENT * len(parts)
    if off:
        reading.note(f"{off:,} rows have another total than their columns make: the columns are counted")
    return _explorer_told(source, reading, spend, "unblended or other costs, as the page was set", "")


def _cells(text: str, separator: str) -> list[str]:
    """Cells of a row; none of what is no row."""
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=separator), [])]
    except csv.Error:
        return []


def recognise_answer(source: Source) -> Match:
    """ResultsByTime with periods and costs."""
    if source.head_text.lstrip()[:1] != "{":
        return NOTHING
    keys = head_keys(source)
    marks = {each: each in keys for each in ("ResultsByTime", "TimePeriod", "Amount", "Unit")}
    return fit(marks, tool="AWS Cost Explorer", ceiling=0.97)


def read_answer(source: Source, asked: Asked) -> Reading:
    """Costs by group and period."""
    document = document_of(source)
    reading, spend = _explorer_reading(source), Spend()
    metric = next((each for each in _METRICS if f'"{each}"' in source.head_text), _METRICS[0])
    estimated = 0
    for number, (period, keys, costs) in enumerate(_groups(document), start=1):
        cost = costs.get(metric) if isinstance(costs, dict) else None
        amount = cost_of(str(cost.get("Amount"))) if isinstance(cost, dict) else None
        time = period.get("TimePeriod")
        day = day_of(str(time.get("Start", ""))) if isinstance(time, dict) else ""
        if amount is None or not isinstance(cost, dict):
            reading.skipped.add(f"no {metric}", number)
        elif not day:
            reading.skipped.add("no day", number)
        else:
            reading.taken += 1
            estimated += period.get("Estimated") is True
            spend.add(currency_of(str(cost.get("Unit") or "")), day, " / ".join(map(str, keys))[:200] or _ALL, amount)
    if estimated:
        reading.note(f"{estimated:,} of the lines are estimates: AWS has not closed their bill")
    if isinstance(document, dict) and document.get("NextPageToken"):
        reading.note("further pages follow this one: it has a NextPageToken")
    return _explorer_told(source, reading, spend, metric, "group")


def _groups(document: Any) -> Iterator[tuple[dict[str, Any], list[Any], Any]]:
    """Period, keys and costs of each group; of a period without groups its total."""
    periods = document.get("ResultsByTime") if isinstance(document, dict) else None
    for period in periods if isinstance(periods, list) else ():
        if not isinstance(period, dict):
            continue
        groups = period.get("Groups")
        for group in groups if isinstance(groups, list) else ():
            if isinstance(group, dict):
                keys = group.get("Keys")
                yield period, keys if isinstance(keys, list) else [], group.get("Metrics")
        if not groups:
            yield period, [], period.get("Total")


def _explorer_reading(source: Source) -> Reading:
    return Reading(kind="cost-explorer", title="costs of AWS by day", source=source.name, tool="AWS Cost Explorer",
                   of="lines")  # fmt: skip


def _explorer_told(source: Source, reading: Reading, spend: Spend, costs: str, thing: str) -> Reading:
    if not reading.taken:
        reasons = "; ".join(f"{count:,} of them: {why}" for why, (count, _) in reading.skipped.reasons.items())
        raise refused(source, "nothing-taken", f"no line of {source.name} could be taken", reasons or "it has no rows")
    reading.understood["spend"] = costs
    days = sorted({date.fromisoformat(day) for _, day, _ in spend.cells})
    gaps = [(after - before).days for before, after in itertools.pairwise(days)]
    if gaps and min(gaps) > 1:
        reading.note(f"periods are {min(gaps)} days and longer: each counts on its first day")
    reading.understood["days"] = "the first of each period"
    spend.told(reading, thing=thing or "service")
    return reading


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
    Kind(name="cost-explorer-table", title="costs of AWS by day, table",
         looks_for="a column of costs for each service, the last one Total costs($) (AWS Cost Explorer)",
         recognise=recognise_costs_table, read=read_costs_table),
    Kind(name="cost-explorer", title="costs of AWS by day",
         looks_for="JSON of ResultsByTime with TimePeriod and Amount (aws ce get-cost-and-usage)",
         recognise=recognise_answer, read=read_answer),
    Kind(name="allocations", title="costs allotted within Kubernetes",
         looks_for="JSON with cpuCost, ramCost, totalCost and a start (OpenCost, Kubecost)",
         recognise=recognise, read=read),
    Kind(name="allocations-table", title="costs allotted within Kubernetes, table",
         looks_for="a first line of Date, Namespace or Name, CPUCost and RAMCost (OpenCost, Kubecost)",
         recognise=recognise_table, read=read_table),
)  # fmt: skip
