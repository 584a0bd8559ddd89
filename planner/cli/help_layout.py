"""How help is laid out, by what options are about and when one needs a command; and how options are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typer import BadParameter
from typer.core import TyperCommand, TyperGroup

from planner.spelling import choice_meant

OWN = "Options"
# title -> parameters; what is named nowhere is a command's own
OPTION_GROUPS = {
    "Question and catalog": (
        "settings", "case", "hardware", "prices", "price", "allow_suspect", "allow_stale", "allow_outside",
    ),
    "Solver": ("solver", "gap", "tie_tolerance", "time_limit", "threads", "seed", "accept_incumbent"),
    "Output": ("output", "out", "color", "quiet", "verbose", "no_progress", "debug"),
    "Help": ("help", "version", "install_completion", "show_completion"),
}  # fmt: skip
COMMAND_GROUPS = {
    "Plan": ("init", "solve", "live", "explain", "frontier", "sweep", "reserve", "candidates", "memory"),
    "Present, compare, launch": ("report", "compare", "export"),
    "Facts": ("catalog", "models", "scenarios", "traffic", "read"),
    "Trust": ("verify", "validate", "calibrate"),
}
OTHER_COMMANDS = "More"
_ROWS = list[tuple[str, str]]


class Command(TyperCommand):
    """A command whose options are listed in groups, and refused without words of the library that reads them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As it is; a file where a format stands is told its place, and a mistyped choice the near one."""
        try:
            return super().parse_args(ctx, args)
        except BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            name = getattr(error.param, "name", "")
            if name == "output" and (file := re.match(r"'([^']*\.\w+)' is not one of", error.message)):
                error.message += f" A file is named by --out {file[1]}"
            elif choice := re.match(r"'([^']+)' is not one of (.+)\.$", error.message):
                if name == "output" and choice[1] in ("html", "xlsx"):
                    error.message += f" A page or a workbook of a plan: plan report PLAN -o {choice[1]}"
                near = choice_meant(choice[1], re.findall(r"'([^']+)'", choice[2]))
                error.message += f" Did you mean {near}?" if near else ""
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, own options, then those that commands share."""
        _write_parameters(self, ctx, formatter)


class Group(TyperGroup):
    """The commands, listed by when one needs them."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Commands first: they are what one looks for."""
        self.format_commands(ctx, formatter)
        _write_parameters(self, ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each with its whole sentence."""
        titles = {name: title for title, names in COMMAND_GROUPS.items() for name in names}
        listed: dict[str, _ROWS] = {title: [] for title in (*COMMAND_GROUPS, OTHER_COMMANDS)}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                listed[titles.get(name, OTHER_COMMANDS)].append((name, command.get_short_help_str(limit=200)))
        for title, rows in listed.items():
            order = {name: number for number, name in enumerate(COMMAND_GROUPS.get(title, ()))}
            _write(formatter, title, sorted(rows, key=lambda row: order.get(row[0], 0)))


def _write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    titles = {name: title for title, names in OPTION_GROUPS.items() for name in names}
    listed: dict[str, _ROWS] = {title: [] for title in ("Arguments", OWN, *OPTION_GROUPS)}
    for parameter, record in _records(command, ctx):
        argument = parameter.param_type_name == "argument"
        listed["Arguments" if argument else titles.get(parameter.name, OWN)].append(record)
    for title, rows in listed.items():
        _write(formatter, title, rows)


def _records(command: Any, ctx: Any) -> Iterator[tuple[Any, tuple[str, str]]]:
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            yield parameter, record


def _write(formatter: Any, title: str, rows: _ROWS) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)
