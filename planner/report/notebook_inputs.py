"""What goes into a plan, as a notebook shows it: scenarios, catalogs, the ways that were found; nothing is solved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.candidates.search import Candidates
from planner.catalog.model import Catalog, Device
from planner.report.blocks import Block, Grid, Lines, columns
from planner.report.notebook import blocks_html
from planner.scenario.schema import Scenario
from planner.units import format_bytes, format_money, format_money_rate

_MOST = 20  # rows of a table


def scenario_html(scenario: Scenario) -> str:
    """What is asked for: every workload, what may be used, what must hold; as it was written."""
    head = f"{scenario.name} · {scenario.title}" if scenario.title else scenario.name
    case = f"case {scenario.case}" if scenario.case else ""
    where = " · ".join(part for part in (scenario.file, case, *scenario.settings) if part)
    rows = [row for kind in ("training", "serving") for row in _asked(scenario.resolved, kind)]
    grid = Grid(columns=columns("Workload", "", "Model", "What is asked for"), rows=rows[:_MOST], notes=_cut(len(rows)))
    rest = [
        f"{key}: {_said(scenario.resolved[key])}"
        for key in ("horizon", "periods", "hardware", "limits", "objective")
        if key in scenario.resolved
    ]
    return blocks_html([Lines(lines=(head, where), strong_first=True), grid, Lines(lines=tuple(rest))])


def _asked(resolved: Mapping[str, Any], kind: str) -> Iterator[list[str]]:
    entries = resolved.get(kind) or []
    for entry in [entries] if isinstance(entries, Mapping) else entries:
        rest = {key: value for key, value in entry.items() if key not in ("name", "model")}
        yield [str(entry["name"]), kind, _said(entry.get("model", "")), _said(rest)]


def _said(value: Any) -> str:
    """A value of a scenario on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_said(inner)}" for key, inner in value.items())[:300]
    if isinstance(value, list):
        return f"[{'; '.join(map(_said, value))}]"[:300]
    return str(value)


def catalog_html(catalog: Catalog) -> str:
    """Its devices: how much memory, how many offers, from which price."""
    offers: dict[str, list[int]] = {}
    for offer in catalog.offers:
        shape = catalog.shapes[offer.shape]
        if not offer.quality and shape.devices:
            offers.setdefault(shape.device, []).append(offer.price_microusd_per_hour // shape.devices)
    known = sorted(catalog.devices.values(), key=lambda device: (-len(offers.get(device.id, ())), device.id))
    rows = [_device(device, offers.get(device.id, [])) for device in known[:_MOST]]
    told = f"{catalog.name} · as of {catalog.as_of} · {len(catalog.devices):,} devices, {len(catalog.offers):,} offers"
    heads = columns("Device", ">Memory", ">Offers", ">From, per device-hour")
    return blocks_html(
        [Lines(lines=(told,), strong_first=True), Grid(columns=heads, rows=rows, notes=_cut(len(known)))]
    )


def _device(device: Device, prices: list[int]) -> list[str]:
    cheapest = format_money_rate(min(prices)) if prices else ""
    return [device.id, format_bytes(device.memory_bytes), f"{len(prices):,}", cheapest]


def candidates_html(candidates: Candidates) -> str:
    """How many ways there are to run each workload, the cheapest of them, and why others were dropped."""
    rows = [_workload(candidates, name) for name in candidates.tables]
    left = f"{candidates.program.column_count:,} of {candidates.columns_before:,} columns may be in a best plan"
    ways = Grid(
        columns=columns("Workload", ">Ways", "Cheapest", ">Cost"), rows=rows[:_MOST], notes=(left, *_cut(len(rows)))
    )
    drops = [
        [name, f"{drop.count:,} {drop.what}", drop.reason, drop.nearest]
        for name, ledger in candidates.ledgers.items()
        for drop in ledger
    ]
    dropped = Grid(
        title="Dropped",
        columns=columns("Workload", ">What", "Why", "Nearest miss"),
        rows=drops[:_MOST],
        notes=_cut(len(drops)),
    )
    blocks: list[Block] = [Lines(lines=(candidates.scenario.name,), strong_first=True), ways, dropped]
    return blocks_html(blocks)


def _workload(candidates: Candidates, name: str) -> list[str]:
    table = candidates.tables[name]
    if not len(table):
        return [name, "0", "", ""]
    alone = getattr(table, "alone_cost_microusd", table.cost_microusd.__getitem__)
    best = min(range(len(table)), key=alone)
    site, nodes = table.sites[best], int(table.nodes[best])
    return [name, f"{len(table):,}", f"{nodes} × {site.offer.id}", format_money(alone(best))]


def _cut(count: int) -> tuple[str, ...]:
    return (f"{count:,} rows, the first {_MOST} of them",) if count > _MOST else ()
