"""What `plan read` found, in every output format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Lines, columns

_FIELDS = ["source", "part", "name", "value", "unit"]


def render_reading(document: Mapping[str, Any], form: str, *, width: int = 100, colour: bool = False) -> str:
    """What a file is and shows, as table, json, csv or md.

    Parameters
    ----------
    document
        What was read, as `reading.document_of` gives it.
    form
        table, json, csv or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    if form == "json":
        return json.render(document)
    if form == "csv":
        return csv.render(_flat(document), _FIELDS)
    blocks = _blocks(document)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def _blocks(document: Mapping[str, Any]) -> list[Block]:
    tool = " ".join(part for part in (document["tool"], document["version"]) if part)
    head = [f"{document['source']} · {document['title']}" + (f" · {tool}" if tool else "")]
    skipped = sum(each["count"] for each in document["skipped"])
    of = _one(document["of"]) if document["taken"] == 1 else document["of"]
    head.append(f"{document['taken']:,} {of} taken" + (f", {skipped:,} skipped" if skipped else ""))
    head += [f"  skipped {each['count']:,}: {each['reason']} (first: {each['first_line']:,})"
             for each in document["skipped"]]  # fmt: skip
    blocks: list[Block] = [Lines(lines=tuple(head), strong_first=True)]
    if document["figures"]:
        rows = [[each["label"], _shown(each["value"]), each["unit"]] for each in document["figures"]]
        blocks.append(Grid(columns=columns("What it shows", ">figure", "unit"), rows=rows))
    if document["understood"]:
        rows = [[name, value] for name, value in document["understood"].items()]
        blocks.append(Grid(columns=columns("Understood as", ""), rows=rows))
    lines = tuple(f"note: {note}" for note in document["notes"])
    lines += tuple(f"makes {piece['name']}: {piece['says'] or piece['what']}" for piece in document["pieces"])
    if lines:
        blocks.append(Lines(lines=lines))
    return blocks


def _one(plural: str) -> str:
    """One of them: a group of engines of groups of engines, a log entry of log entries."""
    head, of, rest = plural.partition(" of ")
    return (head.removesuffix("ies") + "y" if head.endswith("ies") else head.removesuffix("s")) + of + rest


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.5g}" if abs(value) < 1e5 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _flat(document: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    def row(part: str, name: str, value: object, unit: str = "") -> dict[str, object]:
        return {"source": document["source"], "part": part, "name": name, "value": value, "unit": unit}

    yield row("file", "kind", document["kind"])
    yield row("file", "taken", document["taken"], document["of"])
    for each in document["skipped"]:
        yield row("skipped", each["reason"], each["count"], document["of"])
    for name, value in document["understood"].items():
        yield row("understood", name, value)
    for each in document["figures"]:
        yield row("figure", each["label"], each["value"], each["unit"])
    for number, note in enumerate(document["notes"], start=1):
        yield row("note", str(number), note)
    for piece in document["pieces"]:
        yield row("piece", piece["name"], piece["what"])
