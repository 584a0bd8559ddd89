"""What downloaded price lists change of a catalog, in every output format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from planner.catalog.importers.imported import Imported, reasons
from planner.catalog.refresh import Refreshed, Repriced
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Lines, columns
from planner.report.imported import imported_document, skipped_rows

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
    blocks = list(_blocks(kinds, found, written, told, full))
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def _kinds(changes: Refreshed) -> dict[str, tuple[Repriced, ...]]:
    return {"new": changes.new, "gone": changes.gone, "dearer": changes.dearer, "cheaper": changes.cheaper,
            "same": changes.same}  # fmt: skip


def _document(one: Repriced) -> dict[str, object]:
    return {**asdict(one), "change": one.change}


def _blocks(
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
