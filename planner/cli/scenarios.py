"""`plan scenarios`: the scenarios that ship, which every command takes by name."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from planner.cli import complete, flags
from planner.cli.frame import Form, Frame, command, usage


def scenarios(
    frame: Frame,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Print this one, to begin with.", autocompletion=complete.shipped),
    ] = None,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
) -> None:
    """List the scenarios that ship and can be named wherever a scenario is taken, or print one of them."""
    from planner.files import read_bytes
    from planner.report.lists import render_scenarios
    from planner.scenario.shipped import beside, shipped_scenarios, shipped_text
    from planner.yamlfile import MAX_BYTES

    if name is None:
        rows = [asdict(one) for one in shipped_scenarios()]
        frame.emit(render_scenarios(rows, output.value, **frame.view(out)), out)
        return
    if output is not Form.table:
        raise usage("not-together", "a scenario is printed as the file that it is", "leave -o out, or NAME")
    frame.emit(shipped_text(name), out)
    for file, text in beside(name).items():  # without which it would not be read elsewhere
        where = Path(out).with_name(file) if out and out != "-" else None
        if where is None:
            frame.say(f"it reads {file} from its folder: plan scenarios {name} --out {name}.yaml writes both")
        elif not where.exists():
            frame.emit(text, str(where))
        elif read_bytes(str(where), limit_bytes=MAX_BYTES) != text.encode():
            frame.say(f"it reads {where}, which is there and holds something else: it was left as it is")


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "scenarios", examples=("plan scenarios", "plan scenarios gpt2-xl --out mine.yaml"))(scenarios)
