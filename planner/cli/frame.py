"""What every command stands in: flags that all share, two streams, and how an error ends a run.

A command is a plain function whose first parameter is the `Frame`; `command(...)` registers
it with the flags of all commands added, prints user errors in one form, and turns what
nobody foresaw into exit 1 with a report that holds nothing of the user's.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Any, TextIO

import typer

from planner.carriers import dataclass
from planner.cli.help_layout import Command
from planner.cli.shortage import demand_memory, shortage_of
from planner.errors import PlanError, Problem, UsageError


class When(StrEnum):
    """When to use colour."""

    auto = "auto"
    always = "always"
    never = "never"


class Form(StrEnum):
    """Output formats."""

    table = "table"
    json = "json"
    csv = "csv"
    md = "md"


class PageForm(StrEnum):
    """Output formats of what is a page, too."""

    table = "table"
    json = "json"
    csv = "csv"
    md = "md"
    html = "html"


@dataclass(slots=True, kw_only=True)
class Frame:
    """One run of a command: its streams and how much it may say."""

    color: When = When.auto
    quiet: bool = False
    verbose: int = 0
    debug: bool = False
    no_progress: bool = False
    allow_outside: bool = False
    told: set[str] = field(default_factory=set)  # remarks that are said once, though both sides of a question give rise

    @property
    def width(self) -> int:
        """Columns to draw in: those of the terminal, or 100."""
        return shutil.get_terminal_size((100, 24)).columns

    def colour(self, stream: TextIO) -> bool:
        """Whether `stream` gets escape codes."""
        if self.color is not When.auto:
            return self.color is When.always
        return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()

    def emit(self, text: str, out: str | None = None) -> None:
        """The result: to stdout, or whole into the file `out`."""
        if out is None or out == "-":
            from planner.report import escape

            sys.stdout.write(escape.plain(text, sys.stdout.encoding))
            sys.stdout.flush()
        else:
            from planner import files

            files.write_text(out, text)
            self.say(f"wrote {out}")

    def view(self, out: str | None = None) -> dict[str, Any]:
        """Width and colour for drawing what `emit` will write."""
        to_stdout = out is None or out == "-"
        return {"width": self.width, "colour": to_stdout and self.colour(sys.stdout)}

    def say(self, text: str) -> None:
        """A remark for people, on stderr; --quiet drops it."""
        if not self.quiet:
            sys.stderr.write(text.rstrip("\n") + "\n")

    def say_once(self, text: str) -> None:
        """As `say`, of what was not said yet."""
        if text not in self.told:
            self.told.add(text)
            self.say(text)

    def warn(self, problem: Problem) -> None:
        """A warning, on stderr; --quiet drops it."""
        from planner.report import problems

        if not self.quiet:
            sys.stderr.write(problems.render((problem,), colour=self.colour(sys.stderr)))

    def complain(self, error: PlanError) -> None:
        """All problems of an error, on stderr."""
        if not error.problems:
            return
        try:
            from planner.report import problems

            text = problems.render(error.problems, colour=self.colour(sys.stderr))
        except (ImportError, MemoryError, OSError):  # what ran out ran out for this, too
            text = f"{error}\n"
        sys.stderr.write(text)

    @contextlib.contextmanager
    def progress(self, doing: str) -> Iterator[None]:
        """Seconds ticking on stderr: on a terminal only, and only when it takes longer than one."""
        if self.quiet or self.no_progress or not sys.stderr.isatty():
            yield
            return
        done = threading.Event()
        ticker = threading.Thread(target=_tick, args=(doing, done), daemon=True)
        ticker.start()
        try:
            yield
        finally:
            done.set()
            ticker.join()


def _tick(doing: str, done: threading.Event) -> None:
    start, shown = time.monotonic(), False
    while not done.wait(1.0):
        sys.stderr.write(f"\r{doing} … {time.monotonic() - start:.0f} s")
        sys.stderr.flush()
        shown = True
    if shown:
        sys.stderr.write("\r" + " " * (len(doing) + 16) + "\r")
        sys.stderr.flush()


_SHARED: dict[str, tuple[Any, Any]] = {
    "color": (Annotated[When, typer.Option("--color", help="Colour; auto obeys NO_COLOR.")], When.auto),
    "quiet": (
        Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but the result and errors; of a plan one line.")],
        False,
    ),
    "verbose": (Annotated[int, typer.Option("--verbose", "-v", count=True, help="More; -vv: long lists whole.")], 0),
    "no_progress": (Annotated[bool, typer.Option("--no-progress", help="No progress line on stderr.")], False),
    "allow_outside": (
        Annotated[bool, typer.Option("--allow-outside", help="Read what scenarios and plans name elsewhere, too.")],
        False,
    ),
    "debug": (Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")], False),
}


def command(
    app: typer.Typer, name: str, *, examples: tuple[str, str], renews: bool = False, folder: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Register `function(frame, ...)` as a command; the examples end its help and are run by a test.

    Parameters
    ----------
    app
        What the command becomes a part of.
    name
        As it is typed.
    examples
        Two whole command lines.
    renews
        What it writes takes the place of what it was read from before; else --out never replaces what was read.
    folder
        --out may name a folder, too; else that is refused before anything is worked out.
    """
    epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        framed = _framed(function, renews=renews, folder=folder)
        app.command(name, cls=Command, epilog=epilog, no_args_is_help=False)(framed)
        return function

    return register


def _framed(function: Callable[..., Any], *, renews: bool, folder: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*arguments: Any, **values: Any) -> None:
        frame = Frame(**{key: values.pop(key) for key in _SHARED})
        with guarded(frame):
            demand_memory()
            from planner.files import demand_file_name, output_at, outside_allowed

            out = values.get("out")
            if out is not None and out != "-" and not folder:
                demand_file_name(out)
            with outside_allowed(frame.allow_outside), output_at(None if renews else out):
                function(frame, *arguments, **values)

    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for key, (annotation, default) in _SHARED.items()
    ]
    signature = inspect.Signature([*own, *shared])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *shared]}
    return run


@contextlib.contextmanager
def guarded(frame: Frame) -> Iterator[None]:
    """Turn what goes wrong inside into the exit codes of the house."""
    try:
        yield
    except typer.Exit:
        raise
    except PlanError as error:
        if frame.debug:
            raise
        frame.complain(error)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        with contextlib.suppress(ValueError):  # the second one ends even what is being cleared away
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.stderr.write("interrupted\n")
        raise typer.Exit(130) from None
    except Exception as error:
        if frame.debug:
            raise
        short = shortage_of(error)
        if short is not None:
            frame.complain(short)
            raise typer.Exit(short.exit_code) from None
        from planner.cli.bugs import report_bug

        sys.stderr.write(report_bug(error))
        raise typer.Exit(1) from None


def usage(reference: str, message: str, hint: str = "") -> UsageError:
    """An error of the command line itself: exit 2.

    Parameters
    ----------
    reference
        Of the problem, in kebab-case.
    message
        What is wrong.
    hint
        A way out; empty: none.
    """
    error = UsageError.of(reference, message, hint=hint)
    assert isinstance(error, UsageError)
    return error
