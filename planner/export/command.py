"""A command of a shell, written from its words: everything is quoted but what is marked to be expanded."""

from __future__ import annotations

from collections.abc import Sequence

from planner.export.quoting import shell


class Expand(str):
    """Text that the shell expands where the command runs, as `"$MODEL"`; our own words only, never a file's."""

    __slots__ = ()


Argument = tuple[str, object | None]  # an option and its value; None: the option stands alone


def command_line(words: Sequence[object], arguments: Sequence[Argument]) -> str:
    """A command with one option a line.

    Examples
    --------
    >>> print(command_line(["vllm", "serve", "a b"], [("--port", 80), ("--quiet", None), ("--host", Expand('"$H"'))]))
    vllm serve 'a b' \\
      --port 80 \\
      --quiet \\
      --host "$H"
    """
    return " \\\n  ".join([" ".join(map(_word, words)), *(_option(*argument) for argument in arguments)])


def _option(name: str, value: object | None) -> str:
    if value is None:
        return name
    joint = "=" if str(value).startswith("-") else " "  # a value that looks like an option stays a value
    return f"{name}{joint}{_word(value)}"


def _word(value: object) -> str:
    return str(value) if isinstance(value, Expand) else shell(value)
