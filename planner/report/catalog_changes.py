"""What changes in catalogs, in every output format: what sets two apart, rows imported, prices refreshed, all frozen.

Rows of price lists that were left out stand with their reasons; what is frozen has a digest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from planner.analysis.compare.model import CompareDocument
from planner.catalog.diff import Change, Cheapest, Difference, Moved
from planner.catalog.importers.imported import Imported, reasons
from planner.catalog.model import Catalog
from planner.catalog.refresh import Refreshed, Repriced
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Items, Lines, columns
from planner.report.compare_view import comparison_blocks, render_comparison
from planner.units import format_number

_SHOWN_OF_DIFF = 40


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
    more = len(lines) - _SHOWN_OF_DIFF
    return tuple(lines) if full or more <= 0 else (*lines[:_SHOWN_OF_DIFF], f"and {more} more (-v shows them all)")


def _changes(title: str, found: tuple[Change, ...], full: bool) -> list[Block]:
    if not found:
        return []
    shown = found if full else found[:_SHOWN_OF_DIFF]
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
    shown = found if full else found[:_SHOWN_OF_DIFF]
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


def render_imported(
    found: Sequence[Imported],
    form: str,
    *,
    written: str = "",
    full: bool = False,
    width: int = 100,
    colour: bool = False,
) -> str:
    """The outcome in every output format.

    Parameters
    ----------
    found
        What became of each file.
    form
        table, json, csv or md.
    written
        Files that were written, with ", " between them; "" = none.
    full
        Every row that was left out, in table and md, too.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    if form == "json":
        return json.render({"written": written, "files": [imported_document(one) for one in found]})
    if form == "csv":
        return csv.render(skipped_rows(found), ["file", "line", "what", "reason"])
    blocks = list(_imported_blocks(found, written, full))
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def imported_document(one: Imported) -> dict[str, object]:
    """What became of a file."""
    return {
        "file": one.file,
        "provider": one.provider,
        "rows": one.rows,
        "taken": one.taken,
        "offers": len(one.offers),
        "flagged": sum(bool(row["quality"]) for row in one.offers.values()),
        "skipped": [{"line": skip.line, "what": skip.what, "reason": skip.reason} for skip in one.skipped],
    }


def skipped_rows(found: Sequence[Imported]) -> list[dict[str, object]]:
    """Every row that was left out, with its reason."""
    return [
        {"file": one.file, "line": skip.line, "what": skip.what, "reason": skip.reason}
        for one in found
        for skip in one.skipped
    ]


def _imported_blocks(found: Sequence[Imported], written: str, full: bool) -> list[Block]:
    rows = [
        (
            one.provider,
            f"{one.rows:,}",
            f"{len(one.offers):,}",
            f"{sum(bool(row['quality']) for row in one.offers.values()):,}",
            f"{len(one.skipped):,}",
            one.file,
        )
        for one in found
    ]
    blocks: list[Block] = [
        Grid(columns=columns("Provider", ">Rows", ">Offers", ">Flagged", ">Left out", "File"), rows=rows),
        Grid(
            columns=columns("Left out because", ">Rows"),
            rows=[(reason, f"{count:,}") for reason, count in reasons(found).items()],
        ),
    ]
    skipped = skipped_rows(found)
    if full and skipped:
        lines = [(str(row["what"]), str(row["reason"]), f"{row['file']}:{row['line']}") for row in skipped]
        blocks.append(Grid(columns=columns("Row left out", "Because", "Where"), rows=lines))
    elif skipped:
        blocks.append(Lines(lines=(f"-v or -o csv lists all {len(skipped):,} rows that were left out",)))
    if written:
        blocks.append(Lines(lines=(f"Wrote {written}",)))
    return blocks


_SHOWN = 10  # of each kind, unless all are asked for
_COLUMNS = ("what", "offer", "device", "old_microusd", "new_microusd", "old_as_of", "quality", "change")


def render_refreshed(
    changes: Refreshed,
    found: Sequence[Imported],
    form: str,
    *,
    written: str = "",
    told: Sequence[str] = (),
    full: bool = False,
    width: int = 100,
    colour: bool = False,
) -> str:
    """The changes, the rows that were left out, and what was written.

    Parameters
    ----------
    changes
        What the lists say that the catalog does not.
    found
        What became of each list.
    form
        table, json, csv or md.
    written
        Files that were written, with ", " between them; "" = none.
    told
        Lines about both.
    full
        Long lists whole, in table and md, too.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    kinds = _kinds(changes)
    if form == "json":
        files = [imported_document(one) for one in found]
        rows = {name: [_document(one) for one in some] for name, some in kinds.items()}
        return json.render({"written": written, "notes": list(told), **rows, "files": files})
    if form == "csv":
        return csv.render([{"what": name, **_document(one)} for name, some in kinds.items() for one in some], _COLUMNS)
    blocks = list(_refreshed_blocks(kinds, found, written, told, full))
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def _kinds(changes: Refreshed) -> dict[str, tuple[Repriced, ...]]:
    return {"new": changes.new, "gone": changes.gone, "dearer": changes.dearer, "cheaper": changes.cheaper,
            "same": changes.same}  # fmt: skip


def _document(one: Repriced) -> dict[str, object]:
    return {**asdict(one), "change": one.change}


def _refreshed_blocks(
    kinds: dict[str, tuple[Repriced, ...]], found: Sequence[Imported], written: str, told: Sequence[str], full: bool
) -> Iterable[Block]:
    counts = [(name, f"{len(some):,}") for name, some in kinds.items()]
    left = sum(len(one.skipped) for one in found)
    yield Grid(columns=columns("Offers", ">Count"), rows=[*counts, ("rows left out", f"{left:,}")])
    for name, some in kinds.items():
        if name != "same" and some:
            yield _grid(name, some, full)
    yield Grid(
        columns=columns("Left out because", ">Rows"),
        rows=[(reason, f"{count:,}") for reason, count in reasons(found).items()],
    )
    skipped = skipped_rows(found)
    if full and skipped:
        lines = [(str(row["what"]), str(row["reason"]), f"{row['file']}:{row['line']}") for row in skipped]
        yield Grid(columns=columns("Row left out", "Because", "Where"), rows=lines)
    hint = (
        ("-v or -o csv lists every offer",) if not full and any(len(some) > _SHOWN for some in kinds.values()) else ()
    )
    yield Lines(lines=(*told, *hint, *([f"Wrote {written}"] if written else [])))


def _grid(name: str, some: Sequence[Repriced], full: bool) -> Grid:
    """The offers of a kind, what changed most first."""
    ranked = sorted(some, key=lambda one: (-abs(one.change or 0.0), one.offer))
    rows = [
        (one.offer, one.device, _price(one.old_microusd), _price(one.new_microusd), _change(one), one.quality)
        for one in (ranked if full else ranked[:_SHOWN])
    ]
    title = "Gone, or not in these lists" if name == "gone" else name.capitalize()
    heads = columns(title, "Device", ">Was", ">Is", ">Change", "Flag")
    return Grid(columns=heads, rows=rows)


def _price(microusd: int | None) -> str:
    return "" if microusd is None else f"${microusd / 1e6:,.4f}".rstrip("0").rstrip(".") + " /h"


def _change(one: Repriced) -> str:
    return "" if one.change is None else f"{100 * one.change:+.1f} %"


def render_frozen(catalog: Catalog, file: str, form: str, *, width: int = 100, colour: bool = False) -> str:
    """Digest and counts in every output format.

    Parameters
    ----------
    catalog
        The catalog that was frozen.
    file
        Where it was written; "" = nowhere.
    form
        table, json, csv or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    row = {
        "name": catalog.name,
        "as_of": catalog.as_of,
        "sha256": catalog.digest,
        "devices": len(catalog.devices),
        "shapes": len(catalog.shapes),
        "offers": len(catalog.offers),
        "file": file,
    }
    if form == "json":
        return json.render(row)
    if form == "csv":
        return csv.render([row], list(row))
    counts = f"{row['devices']:,} devices, {row['shapes']:,} shapes, {row['offers']:,} offers"
    head = f"{catalog.digest}  {file or catalog.name}"
    told = f"catalog {catalog.name} as of {catalog.as_of}: {counts}" + (f" · wrote {file}" if file else "")
    blocks: list[Block] = [Lines(lines=(head, told))]
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))
