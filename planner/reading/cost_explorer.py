"""What AWS Cost Explorer gives: the table that its page saves, and the answer of get-cost-and-usage."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

from planner.reading.bills import Spend, cost_of, currency_of, day_of
from planner.reading.columns import plain
from planner.reading.jsonlines import document_of, head_keys
from planner.reading.kinds import NOTHING, Asked, Kind, Match, fit
from planner.reading.reading import Reading
from planner.reading.requests import header_of
from planner.reading.source import Source, refused

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


def recognise_table(source: Source) -> Match:
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


def read_table(source: Source, asked: Asked) -> Reading:
    """Costs by service and day."""
    names, separator = header_of(source)
    reading, spend = _reading(source), Spend()
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
    return _told(source, reading, spend, "unblended or other costs, as the page was set", "")


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
    reading, spend = _reading(source), Spend()
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
    return _told(source, reading, spend, metric, "group")


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


def _reading(source: Source) -> Reading:
    return Reading(kind="cost-explorer", title="costs of AWS by day", source=source.name, tool="AWS Cost Explorer",
                   of="lines")  # fmt: skip


def _told(source: Source, reading: Reading, spend: Spend, costs: str, thing: str) -> Reading:
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


KINDS = (
    Kind(name="cost-explorer-table", title="costs of AWS by day, table",
         looks_for="a column of costs for each service, the last one Total costs($) (AWS Cost Explorer)",
         recognise=recognise_table, read=read_table),
    Kind(name="cost-explorer", title="costs of AWS by day",
         looks_for="JSON of ResultsByTime with TimePeriod and Amount (aws ce get-cost-and-usage)",
         recognise=recognise_answer, read=read_answer),
)  # fmt: skip
