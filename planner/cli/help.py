"""`plan help`: the help of plan, or of one command, for those who write it so."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.frame import Frame, command, usage


def show_help(
    frame: Frame,
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="One command; default: all.")] = None,
) -> None:
    """Show the help of plan, or of one command."""
    here = context.find_root()
    for word in words or ():
        commands = getattr(here.command, "commands", {})
        if word not in commands:
            from planner.spelling import closest

            near = closest(word, commands) or list(commands)
            raise usage("unknown-command", f"there is no command '{word}'", ", ".join(near))
        here = type(here)(commands[word], info_name=word, parent=here)
    frame.emit(here.get_help() + "\n")


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "help", examples=("plan help", "plan help catalog list"))(show_help)
