"""What a frozen catalog is: its digest, and what it holds."""

from __future__ import annotations

from planner.catalog.model import Catalog
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Lines


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
