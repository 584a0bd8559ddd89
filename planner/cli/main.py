"""`plan`: the entry point. Nothing heavy is imported here; each command imports what it needs."""

from __future__ import annotations

import atexit
import contextlib
import gc
import signal
import sys
from typing import Annotated

import typer

from planner import __version__
from planner.cli import (
    calibrate,
    candidates,
    catalog,
    compare,
    explain,
    export,
    frontier,
    help,
    init,
    memory,
    models,
    report,
    schema,
    solve,
    traffic,
    validate,
    verify,
)
from planner.cli.frame import Frame, guarded
from planner.cli.layout import Group

_START = ("plan init", "plan solve scenarios/llama.yaml", "plan memory gpt2-xl --batch 32 --sequence 1000")
app = typer.Typer(
    name="plan",
    cls=Group,
    help="Which accelerators to rent for LLM training and serving, how to split each model, and what it costs.",
    epilog="\b\nStart here:\n" + "".join(f"  {line}\n" for line in _START),
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"plan {__version__}")
        raise typer.Exit


@app.callback()
def plan(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Which accelerators to rent for LLM training and serving, how to split each model, and what it costs."""
    if context.invoked_subcommand is None:
        _show_next_steps(context)


def _show_next_steps(context: typer.Context) -> None:
    """`plan` alone: what lies here, and how to go on."""
    from planner.cli.next_steps import next_steps

    commands = getattr(context.command, "commands", {})
    with guarded(Frame()):
        Frame().emit(next_steps(commands))


for room in (
    init,
    solve,
    explain,
    report,
    compare,
    export,
    frontier,
    candidates,
    memory,
    traffic,
    verify,
    validate,
    calibrate,
    catalog,
    models,
    schema,
    help,
):
    room.register(app)


def main() -> None:
    """Run the command line; exit codes are those of planner/errors.py."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    collecting = gc.isenabled()
    gc.disable()  # a command lives a second: looking for cycles takes a tenth of it and frees nothing
    atexit.register(gc.freeze)  # nor at its end, where everything would be looked through once more
    atexit.register(_unheard)
    try:
        app(prog_name="plan")
    except KeyboardInterrupt:  # before the command began, or when it had ended
        sys.exit(130)
    finally:
        if collecting:
            gc.enable()


def _unheard() -> None:
    """Ctrl-C at the very end has nothing left to interrupt, and would print a traceback."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
