"""`plan`: the entry point. Nothing heavy is imported here; each command imports what it needs."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from planner import __version__
from planner.cli import clock, shortage
from planner.cli.frame import Frame, guarded, usage
from planner.cli.help_layout import Group
from planner.cli.shortage import shortage_of

_START = ("plan init", "plan solve llama", "plan memory gpt2-xl --batch 32 --sequence 1000")
_CODES = """
\b
Exit codes:
  0 done, 1 a bug, 2 usage, 3 input, 4 infeasible, 5 plan not proven,
  6 no plan, 7 too dear (compare), 8 not written, 9 verified, not proven
"""
_COMPLETION = {"--show-completion", "--install-completion"}
ROOMS = (  # commands and groups of commands, in the order of the help: a module each, but for those of facts.py
    *("init", "solve", "explain", "live", "report", "compare", "export", "frontier", "sweep", "reserve"),
    *("candidates", "memory", "traffic", "verify", "validate", "calibrate", "catalog", "models", "read", "scenarios"),
    *("schema", "help"),
)
_FACTS = ("candidates", "traffic", "models", "scenarios", "schema", "help")


@cache
def app_of(*rooms: str) -> typer.Typer:
    """The application with some of its commands, whose modules alone are imported.

    Parameters
    ----------
    rooms
        Of `ROOMS`, in that order.
    """
    app = typer.Typer(
        name="plan",
        cls=Group,
        help="Which accelerators to rent for LLM training and serving, how to split each model, and what it costs.",
        epilog="\b\nStart here:\n" + "".join(f"  {line}\n" for line in _START) + _CODES,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=False,
        invoke_without_command=True,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(plan)
    for room in rooms:
        if room in _FACTS:
            import_module("planner.cli.facts").REGISTER[room](app)
        else:
            import_module(f"planner.cli.{room}").register(app)
    return app


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"plan {__version__}")
        raise typer.Exit


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


@cache
def command(word: str = "") -> Callable[..., Any]:
    """The commands with their options, read from the signatures of their functions once in a process.

    Parameters
    ----------
    word
        The only command to read; all of them where it is none, or `help`, which is asked about all.
    """
    return get_command(app_of(*((word,) if word in ROOMS and word != "help" else ROOMS)))


def main(began_s: float | None = None) -> None:
    """Run the command line, since then or now; exit codes are those of planner/errors.py."""
    clock.begin(began_s)
    # Nothing here multiplies large matrices, and each of its threads takes address space.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looked for among all that is installed
    collecting = gc.isenabled()
    gc.disable()  # a command lives a second: looking for cycles takes a tenth of it and frees nothing
    atexit.register(gc.freeze)  # nor at its end, where everything would be looked through once more
    atexit.register(_unheard)
    try:
        with shortage.kept():
            _answer()
    finally:
        if collecting:
            gc.enable()


def _answer() -> None:
    """What `guarded` does not see: help, versions, completion, and what fails before or after a command."""
    asked_by_shell = "_PLAN_COMPLETE" in os.environ or not _COMPLETION.isdisjoint(sys.argv)
    try:
        try:
            command(sys.argv[1] if len(sys.argv) > 1 else "")(prog_name="plan")
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:  # before the command began, or when it had ended
        sys.exit(130)
    except SystemExit as ended:
        if asked_by_shell and ended.code == 1:  # an instruction that no shell gives, or a shell that is not known
            sys.exit(2)
        raise
    except shortage.Lost as lost:
        before = lost.__context__  # the end of a command that has told of it, before what it left was flushed
        if not (isinstance(before, SystemExit) and before.code == lost.exit_code):
            Frame().complain(lost)
        sys.exit(lost.exit_code)
    except Exception as error:
        found = shortage_of(error)
        if found is None and asked_by_shell:
            found = usage("bad-completion", "completions cannot be told or installed here")
        if found is None:
            raise
        Frame().complain(found)
        sys.exit(found.exit_code)


def _unheard() -> None:
    """Ctrl-C at the very end has nothing left to interrupt, and would print a traceback."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
