"""What an import came to: files, offers, and the rows that were left out with their reasons."""

from __future__ import annotations

from collections.abc import Sequence

from planner.catalog.importers.imported import Imported, reasons
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
    blocks = list(_blocks(found, written, full))
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


def _blocks(found: Sequence[Imported], written: str, full: bool) -> list[Block]:
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
