"""What was found in people's own files, in every output format: readings of `plan read`, a trace of requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from planner import units
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Lines, columns
from planner.traffic.request_trace import TrafficDocument
from planner.units import format_number as number

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
    for place, note in enumerate(document["notes"], start=1):
        yield row("note", str(place), note)
    for piece in document["pieces"]:
        yield row("piece", piece["name"], piece["what"])


_BARS = "▁▂▃▄▅▆▇█"
_LENGTHS: Final = ("mean", "p50", "p90", "p95", "p99", "max")
Figure = Literal[
    "requests", "seconds", "requests_per_s", "requests_per_minute", "peak_factor", "arrival_variability",
]  # fmt: skip
_UNITS: dict[Figure, str] = {
    "requests": "1", "seconds": "s", "requests_per_s": "1/s", "requests_per_minute": "1/min", "peak_factor": "1",
    "arrival_variability": "1",
}  # fmt: skip


def render_traffic(document: TrafficDocument, form: str, *, width: int = 100, colour: bool = False) -> str:
    """What a trace shows, as table, json, csv or md.

    Parameters
    ----------
    document
        What the trace shows.
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
        return csv.render(_flat_trace(document), ["trace", "fact", "value", "unit"])
    blocks = _trace_blocks(document)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def _trace_blocks(document: TrafficDocument) -> list[Block]:
    lengths = [
        [name, *(f"{facts[fact]:,.0f}" for fact in _LENGTHS), f"{facts['squared_variation']:.2f}"]
        for name, facts in (("prompt", document["input_tokens"]), ("answer", document["output_tokens"]))
    ]
    buckets = [
        [row["bucket"], f"{row['share']:.1%}", f"{row['input_tokens']:,.0f}", f"{row['output_tokens']:,.0f}"]
        for row in document["buckets"]
    ]
    profile = [
        [row["day"], _bars(row["weights"], document["peak_factor"]), *_busiest(row["weights"])]
        for row in document["profile"]
    ]
    zone = "UTC" if document["calendar"] else "from the trace's time 0"
    return [
        Lines(lines=_head(document), strong_first=True),
        Grid(columns=columns("Tokens", *(f">{fact}" for fact in _LENGTHS), ">variation"), rows=lengths),
        Grid(columns=columns("Hours 0 to 23", zone, ">mean", ">busiest"), rows=profile),
        Grid(columns=columns("Bucket (prompt/answer up to)", ">share", ">mean prompt", ">mean answer"), rows=buckets),
        Lines(lines=_paste(document)),
        Lines(lines=(f" Equations  {' '.join(document['equations'])}",)),
    ]


def _head(document: TrafficDocument) -> tuple[str, ...]:
    rate, peak = document["requests_per_s"], document["peak_factor"]
    return (
        f"{document['file']} · {document['requests']:,} requests in {units.format_duration(document['seconds'])}",
        f"rate {number(rate, 4)} requests/s, {number(document['requests_per_minute'], 4)} a minute · "
        f"peak {peak:.3g} × the mean "
        f"({document['peak_of']})",
        f"burstiness {document['arrival_variability']:.2f} (squared variation of the gaps, the profile removed; "
        "1 = Poisson)",
        "profile by the hour of the " + ("week" if len(document["profile"]) > 1 else "day")
        if document["profile"]
        else "flat profile: the trace is shorter than a day, or has too few requests for one",
    )


def _paste(document: TrafficDocument) -> tuple[str, ...]:
    numbers = (f"   {line}" for line in document["scenario_numbers"])
    return ("In a scenario, under serving:", f"   {document['scenario_trace']}",
            "or, without the buckets and the profile:", *numbers)  # fmt: skip


def _bars(weights: list[float], most: float) -> str:
    return "".join(_BARS[min(int(weight / most * len(_BARS)), len(_BARS) - 1)] for weight in weights)


def _busiest(weights: list[float]) -> tuple[str, str]:
    most = max(weights)
    return f"{sum(weights) / len(weights):.2f}", f"{weights.index(most)} h: {most:.2f}"


def _flat_trace(document: TrafficDocument) -> Iterator[dict[str, object]]:
    def row(fact: str, value: object, unit: str) -> dict[str, object]:
        return {"trace": document["file"], "fact": fact, "value": value, "unit": unit}

    for key, unit in _UNITS.items():
        yield row(key, document[key], unit)
    for side in ("input_tokens", "output_tokens"):
        for fact, value in document[side].items():
            yield row(f"{side} {fact}", value, "1" if fact == "squared_variation" else "tokens")
    for bucket in document["buckets"]:
        yield row(f"share of {bucket['bucket']}", bucket["share"], "1")
        for part in ("input_tokens", "output_tokens"):
            yield row(f"{part} of {bucket['bucket']}", bucket[part], "tokens")
    for day in document["profile"]:
        for hour, weight in enumerate(day["weights"]):
            yield row(f"weight of {day['day']}, hour {hour}", weight, "1")
