"""What becomes of a catalog, in every output format: rows imported, prices refreshed, all frozen under a digest.

Rows of price lists that were left out stand with their reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from planner.catalog.importers.imported import Imported, reasons
from planner.catalog.model import Catalog
from planner.catalog.refresh import Refreshed, Repriced
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Lines, columns


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
