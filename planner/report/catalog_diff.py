"""What sets two catalogs apart, as blocks and as a document."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from planner.analysis.compare.model import CompareDocument
from planner.catalog.diff import Change, Cheapest, Difference, Moved
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Items, Lines, columns
from planner.report.compare_view import comparison_blocks, render_comparison
from planner.units import format_number

_SHOWN = 40


def render_difference(
    found: Difference,
    names: tuple[str, str],
    form: str,
    *,
    plans: CompareDocument | None = None,
    full: bool = False,
    width: int = 100,
    colour: bool = False,
) -> str:
    """The difference in every output format.

    Parameters
    ----------
    plans
        The comparison of the plans that a scenario has on the two (`plan/compare/v1`): follows.
    full
        Long lists whole.
    """
    if form == "json":
        told = document(found, names)
        return json.render(told if plans is None else {**told, "plans": plans})
    if form == "csv":
        rows = csv.render([_flat(change) for change in (*found.changes, *found.prices)],
                          ["kind", "id", "field", "old", "new", "ratio", "old_source", "new_source"])  # fmt: skip
        return rows if plans is None else f"{rows}\n{render_comparison(plans, form)}"
    blocks = _blocks(found, names, full) + ([] if plans is None else comparison_blocks(plans, full=full))
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


class Changed(TypedDict):
    """A fact or a price that differs."""

    kind: str
    id: str
    field: str
    old: Any
    new: Any
    ratio: float | None
    old_source: str
    new_source: str


class Drifted(TypedDict):
    """A fact whose provenance differs."""

    kind: str
    id: str
    field: str
    old: dict[str, str]
    new: dict[str, str]
    better: bool | None


class Flagged(TypedDict):
    """An offer whose price looks wrong now."""

    id: str
    quality: str
    note: str


class DiffDocument(TypedDict):
    """What sets two catalogs apart."""

    schema: Literal["catalog/diff/v1"]
    old: str
    new: str
    same: bool
    added: dict[str, list[str]]
    removed: dict[str, list[str]]
    changes: list[Changed]
    prices: list[Changed]
    cheapest: list[dict[str, object]]
    drift: list[Drifted]
    flagged: list[Flagged]
    cleared: list[str]
    plans: NotRequired[CompareDocument]


def document(found: Difference, names: tuple[str, str]) -> DiffDocument:
    """The difference as plain data."""
    return {
        "schema": "catalog/diff/v1",
        "old": names[0],
        "new": names[1],
        "same": found.empty,
        "added": {kind: list(ids) for kind, ids in found.added.items()},
        "removed": {kind: list(ids) for kind, ids in found.removed.items()},
        "changes": [_flat(change) for change in found.changes],
        "prices": [_flat(change) for change in found.prices],
        "cheapest": [dataclasses.asdict(moved) for moved in found.moved],
        "drift": [
            {"kind": d.kind, "id": d.id, "field": d.field, "old": dataclasses.asdict(d.old),
             "new": dataclasses.asdict(d.new), "better": d.better}
            for d in found.drifts
        ],
        "flagged": [{"id": offer.id, "quality": offer.quality, "note": offer.note} for offer in found.flagged],
        "cleared": [offer.id for offer in found.cleared],
    }  # fmt: skip


def _flat(change: Change) -> Changed:
    return {
        "kind": change.kind,
        "id": change.id,
        "field": change.field,
        "old": _plain(change.old),
        "new": _plain(change.new),
        "ratio": change.ratio,
        "old_source": change.old_source,
        "new_source": change.new_source,
    }


def _plain(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value


def _blocks(found: Difference, names: tuple[str, str], full: bool) -> list[Block]:
    head = f"{names[0]} → {names[1]}"
    if found.empty and not found.drifts:
        return [Lines(lines=(head, "the catalogs say the same"), strong_first=True)]
    blocks: list[Block] = [Lines(lines=(head,), strong_first=True)]
    for kind in found.added:
        blocks += _listed(f"{kind.capitalize()}s", found.added[kind], found.removed[kind], full)
    blocks += _changes("Facts", found.changes, full)
    blocks += _changes("Prices", found.prices, full)
    blocks += _cheapest(found.moved, full)
    blocks += _drift(found, full)
    flags = [f"{offer.id}: {offer.quality}, {offer.note}".rstrip(", ") for offer in found.flagged]
    flags += [f"{offer.id}: no longer flagged" for offer in found.cleared]
    blocks += [Items(title="Flags", items=_cut(flags, full), tone="fair")] if flags else []
    return blocks


def _listed(title: str, added: tuple[str, ...], removed: tuple[str, ...], full: bool) -> list[Block]:
    lines = [f"+ {name}" for name in added] + [f"- {name}" for name in removed]
    return [Items(title=f"{title} added and removed", items=_cut(lines, full))] if lines else []


def _cut(lines: list[str], full: bool) -> tuple[str, ...]:
    more = len(lines) - _SHOWN
    return tuple(lines) if full or more <= 0 else (*lines[:_SHOWN], f"and {more} more (-v shows them all)")


def _changes(title: str, found: tuple[Change, ...], full: bool) -> list[Block]:
    if not found:
        return []
    shown = found if full else found[:_SHOWN]
    rows = [
        (change.id, change.field, _short(change.old), _short(change.new), _percent(change.ratio), change.new_source)
        for change in shown
    ]
    more = len(found) - len(shown)
    notes = (f"and {more} more (-v shows them all)",) if more else ()
    return [Grid(columns=columns(title, "Field", ">Old", ">New", ">Change", "Source"), rows=rows, notes=notes)]


def _short(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.6g}" if isinstance(value, float) else str(_plain(value))


def _percent(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio - 1:+.1%}"


def _cheapest(found: tuple[Moved, ...], full: bool) -> list[Block]:
    if not found:
        return []
    shown = found if full else found[:_SHOWN]
    rows = [
        (
            f"{moved.device} · {moved.provider}",
            moved.price_model,
            _pair(moved, "usd_per_device"),
            _pair(moved, "usd_per_pflop_per_s"),
            _pair(moved, "usd_per_gb"),
            _pair(moved, "usd_per_tb_per_s"),
        )
        for moved in shown
    ]
    heads = columns("Cheapest offer of", "Model", ">$/device-h", ">$/PFLOP/s-h", ">$/GB-h", ">$/(TB/s)-h")
    return [Grid(columns=heads, rows=rows)]


def _pair(moved: Moved, name: str) -> str:
    return f"{_number(moved.old, name)} → {_number(moved.new, name)}"


def _number(side: Cheapest | None, name: str) -> str:
    value = None if side is None else getattr(side, name)
    return "–" if value is None else format_number(value, 4)


def _drift(found: Difference, full: bool) -> list[Block]:
    words = {True: "better known", False: "less sure", None: "another source"}
    lines = [
        f"{d.id} {d.field}: {d.old.status} {d.old.as_of} → {d.new.status} {d.new.as_of} ({words[d.better]})"
        for d in found.drifts
    ]
    return [Items(title="Sources", items=_cut(lines, full))] if lines else []
