"""What a notebook shows: tables, bars and charts as HTML without script, style sheet or anything from outside.

Answers, charts of a plan by name, and what goes into a plan: scenarios, catalogs, the ways that were found; nothing is
solved. Colours are those of the page around it, dark or light; what a scenario says is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.candidates.search import Candidates
from planner.catalog.model import Catalog, Device
from planner.report.blocks import Block, Grid, Headline, Items, Lines, Timeline, columns
from planner.report.charts import Chart
from planner.report.escape import html
from planner.report.html.cost_figures import job_figures
from planner.report.html.prediction_figures import (
    band_figure,
    calendar_figure,
    latency_figure,
    memory_figure,
    timeline_figure,
)
from planner.report.plan_view import allocation_grid
from planner.report.plan_words import proof, totals
from planner.scenario.schema import Scenario
from planner.units import format_bytes, format_money, format_money_rate

if TYPE_CHECKING:
    from planner.plan.model.frontier_document import Tradeoff
    from planner.plan.model.plan import PlanDocument
    from planner.plan.model.rows import Memory


_COLOURS = ("#3f7fbf", "#d98c3f", "#4f9d69", "#a377b8", "#c2605b", "#4aa3a8", "#b39b3c", "#8a93a0")
_CELL = "padding:2px 10px;text-align:{};vertical-align:top;white-space:nowrap"

_BAR = (
    "display:block;width:320px;height:12px;border:1px solid currentColor;overflow:hidden;"
    "line-height:0;font-size:0;white-space:nowrap"
)
_PART = "display:inline-block;height:12px"


def plan_html(document: PlanDocument) -> str:
    """What is rented, and how full each device is."""
    name = document["name"] + (f" (case {document['case']})" if document["case"] else "")
    lines = [f"{name} · {document['title']}" if document["title"] else name, proof(document, None), *totals(document)]
    blocks: list[Block] = [Lines(lines=tuple(lines), strong_first=True)]
    if any(workload["allocations"] for workload in document["workloads"]):
        blocks.append(allocation_grid(document))
    warnings = Items(title="Warnings", items=tuple(document["warnings"]))
    return blocks_html(blocks) + _memory(document) + blocks_html([warnings])


def blocks_html(blocks: Iterable[Block]) -> str:
    """Blocks as HTML; what is empty is left out."""
    return "".join(_drawn(block) for block in blocks)


def _drawn(block: Block) -> str:
    if isinstance(block, Timeline):
        block = block.grid(40)
    if isinstance(block, Grid):
        return _table(block) if block.rows else ""
    if isinstance(block, Headline):
        return f"<p><b>{html(block.word)}</b> {html(block.text)}<br>{_lines(block.right)}</p>"
    if isinstance(block, Items):
        items = "".join(f"<li>{html(item)}</li>" for item in block.items)
        return f"<p><b>{html(block.title)}</b></p><ul>{items}</ul>" if items else ""
    if not isinstance(block, Lines):  # those of the first screen, which a notebook does not draw
        return ""
    first, *others = block.lines or ("",)
    head = f"<b>{html(first)}</b>" if block.strong_first else html(first)
    return f"<p>{'<br>'.join([head, *map(html, others)])}</p>" if block.lines else ""


def _lines(lines: Iterable[str]) -> str:
    return "<br>".join(map(html, lines))


def _table(block: Grid) -> str:
    sides = ["right" if column.right else "left" for column in block.columns]
    heads = [_cell("th", column.head, side) for column, side in zip(block.columns, sides)]
    body = ["".join(_cell("td", text, side) for text, side in zip(row, sides)) for row in block.rows]
    title = f"<caption>{html(block.title)}</caption>" if block.title else ""
    rows = "".join(f"<tr>{row}</tr>" for row in body)
    notes = f"<p><small>{_lines(block.notes)}</small></p>" if block.notes else ""
    return f"<table>{title}<thead><tr>{''.join(heads)}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def _cell(tag: str, text: str, side: str) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    return f'<{tag}{scope} style="{_CELL.format(side)}">{html(text)}</{tag}>'


def _memory(document: PlanDocument) -> str:
    """A bar for each device that is filled: its parts, as shares of what is usable."""
    rows = list(dict.fromkeys(_bars(document)))
    if not rows:
        return ""
    heads = "".join(
        _cell("th", column.head, "left") for column in columns("Memory per device", "", "of what is usable")
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _bars(document: PlanDocument) -> Iterator[str]:
    for workload in document["workloads"]:
        for row in workload["allocations"]:
            memory = row["memory"]
            if memory["terms_bytes"] and memory["usable_bytes"]:
                share = memory["needed_bytes"] / memory["usable_bytes"]
                told = f"{format_bytes(memory['needed_bytes'])} of {format_bytes(memory['usable_bytes'])}, {share:.0%}"
                named = _cell("td", f"{workload['name']} · {row['device']}", "left")
                yield f"<tr>{named}<td>{_bar(memory)}</td>{_cell('td', told, 'left')}</tr>"


def _bar(memory: Memory) -> str:
    """Parts side by side, largest first, each with its name to hover over; the frame is what is usable."""
    parts = sorted(memory["terms_bytes"].items(), key=lambda part: -part[1])
    named = [html(f"{name.replace('_', ' ')} {format_bytes(size)}") for name, size in parts]
    drawn = [
        f'<span title="{name}" style="{_PART};width:{100 * size / memory["usable_bytes"]:.2f}%;'
        f'background:{_COLOURS[number % len(_COLOURS)]}"></span>'
        for number, (name, (_, size)) in enumerate(zip(named, parts))
    ]
    return f'<span role="img" aria-label="{", ".join(named)}" style="{_BAR}">{"".join(drawn)}</span>'


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


DEADLINE = "deadline"
_BY_NAME: dict[str, Callable[[PlanDocument], Chart | None]] = {
    "schedule": lambda plan: calendar_figure(plan) if plan.get("schedule") else timeline_figure(plan),
    "latency": latency_figure,
    "memory": memory_figure,
    "bands": band_figure,
}
PLOTS = (DEADLINE, *_BY_NAME)


def plots_of(plan: PlanDocument, names: Sequence[str], tradeoffs: Sequence[Tradeoff]) -> list[Chart]:
    """The charts of those names that have something to show.

    Parameters
    ----------
    names
        Of `PLOTS`: deadline (cost against it), schedule, latency, memory, bands.
    tradeoffs
        Cost against finish of each job, for the first of them.
    """
    found: list[Chart | None] = []
    for name in names:
        found += job_figures(plan, tradeoffs) if name == DEADLINE else [_BY_NAME[name](plan)]
    return [chart for chart in found if chart]
