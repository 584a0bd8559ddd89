"""`plan read`: what a file is, what it shows, and the piece of a scenario or table that follows from it."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import complete, flags
from planner.cli.frame import Form, Frame, command, usage

_ROLES = "time, input, output, id, model"


def read(
    frame: Frame,
    paths: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files, read as one; a folder; - is stdin. gz and zst, too.")
    ],
    into: Annotated[
        str | None, typer.Option("--into", metavar="FILE", help="Scenario that takes it; made when it is not there.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Write the piece itself there: rows, trace, card; - is stdout."),
    ] = None,
    kind: Annotated[str | None, typer.Option("--as", metavar="KIND", help="What it is, when that is not seen.")] = None,
    column: Annotated[
        list[str] | None, typer.Option("--column", metavar="ROLE=NAME", help=f"A column by name; roles: {_ROLES}.")
    ] = None,
    time_zone: Annotated[
        str, typer.Option("--time-zone", metavar="ZONE", help="Of times that name none: Europe/Berlin; default UTC.")
    ] = "",
    time_unit: Annotated[
        str, typer.Option("--time-unit", metavar="UNIT", help="Of times that are numbers: s, ms, us, ns.")
    ] = "",
    model: Annotated[
        str, typer.Option("--model", metavar="MODEL", help="That was or will be run.", autocompletion=complete.models)
    ] = "",
    accelerator: Annotated[
        str, typer.Option("--accelerator", metavar="DEVICE", help="That it ran on, where the file does not say.")
    ] = "",
    devices: Annotated[int, typer.Option("--devices", min=0, max=flags.MOST_COUNT, help="Of them, in all.")] = 0,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Of the workload that is written.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace files beside the scenario of --into.")] = False,
    output: flags.Output = Form.table,
) -> None:
    """Recognise a file, say what it shows, and write what it is good for into a scenario or a file of its own."""
    from planner.cli import clock
    from planner.reading.kinds import Asked, document_of
    from planner.reading.kinds import read as read_source
    from planner.reading.piece_writing import still_wanted, write_into, write_piece
    from planner.reading.source import Source
    from planner.report.reading_view import render_reading
    from planner.scenario.fields import safe_name

    if name and name != safe_name(name):
        raise usage("unsafe-name", f"--name '{name[:80]}' is no name of a workload", f"write '{safe_name(name)}'")
    asked = Asked(columns=_columns(column or []), time_zone=time_zone, time_unit=_unit(time_unit), model=model,
                  accelerator=accelerator, devices=devices, name=name, today=clock.today().isoformat())  # fmt: skip
    with frame.progress("reading"):
        reading = read_source(Source(*map(_found, paths)), asked, kind or "")
    wrote: list[str] = []
    if into is not None:
        wrote += write_into(reading, into, asked, force=force)
    if out == "-":
        frame.emit(write_piece(reading, out))
    else:
        if out is not None:
            write_piece(reading, out)
            wrote.append(out)
        frame.emit(render_reading(document_of(reading), output.value, **frame.view()))
    for each in wrote:
        frame.say(f"wrote {each}")
    if into is not None:
        wanted = still_wanted(into)
        for each in wanted:
            frame.say(f"still wanted: {each}")
        if not wanted:
            frame.say(f"next: plan solve {into}")


def _found(path: str) -> str:
    """A path, or the log of requests that ships, by its name."""
    from pathlib import Path

    from planner.files import data_folder

    if path in ("requests.csv", "scenarios/requests.csv") and not Path(path).exists():
        return str(data_folder("scenarios") / "requests.csv")
    return path


def _columns(pairs: list[str]) -> dict[str, str]:
    roles = [role.strip() for role in _ROLES.split(",")]
    found = {}
    for pair in pairs:
        role, equals, column = pair.partition("=")
        if not equals or role not in roles or not column:
            raise usage("bad-column", f"'{pair}' is not ROLE=NAME", f"roles: {_ROLES}; as --column time=created_at")
        found[role] = column
    return found


def _unit(text: str) -> str:
    if text not in ("", "s", "ms", "us", "ns"):
        raise usage("bad-unit", f"'{text}' is no unit of time here", "--time-unit s, ms, us or ns")
    return text


def register(parent: typer.Typer) -> None:
    """Add the command."""
    examples = ("plan read scenarios/requests.csv", "plan read scenarios/requests.csv -o json")
    command(parent, "read", examples=examples)(read)
