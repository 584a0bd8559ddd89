"""A request trace in every output format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from planner import units
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Lines, columns
from planner.traffic.facts import TrafficDocument
from planner.units import format_number as number

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
        return csv.render(_flat(document), ["trace", "fact", "value", "unit"])
    blocks = _blocks(document)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def _blocks(document: TrafficDocument) -> list[Block]:
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


def _flat(document: TrafficDocument) -> Iterator[dict[str, object]]:
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
