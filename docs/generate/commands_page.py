"""docs/commands.md: every command with its arguments, options and examples, from the help texts themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from markup import link, table

from planner.cli.help_layout import COMMAND_GROUPS, OPTION_GROUPS, OTHER_COMMANDS, OWN
from planner.cli.main import command

HEAD = """\
# Commands

Made from the help texts by `make docs`; `plan COMMAND --help` prints the same. `plan` alone says what to do next in the
folder where one stands. The result goes to stdout; progress, warnings and remarks go to stderr. Nothing uses a network.

**Which file is meant.** A command that wants a scenario and is given none takes `scenario.yaml`, else the only file in
`scenarios/`; one that wants a plan takes the only one in `.plan/`. Where there are several they are listed, and
the exit code is 2. The catalog is that of `--hardware`, else of the scenario's `hardware.catalog`, else ours.

**The Tab key.** `plan --install-completion` teaches the shell in use (bash, zsh, fish, PowerShell) the commands and
options, and the names of files, cases, workloads, models, devices and formats; open a new terminal afterwards.
`plan --show-completion` prints the script instead.

"""
TAIL = """\
## Exit codes

| code | meaning |
|---|---|
| 0 | done; a plan is proven within the gap |
| 1 | a bug in plan: a report without anything of yours is in `.plan/` |
| 2 | the command line asks for something that does not exist |
| 3 | a scenario, catalog or plan file is invalid; `check` or `verify` found errors |
| 4 | nothing meets every limit: proven, or said by the solver alone; the answer tells which |
| 5 | stopped at a limit with a plan, its gap shown; 0 with `--accept-incumbent` |
| 6 | stopped without any plan |
| 7 | `compare` or `catalog diff` found a difference that was asked about |
| 8 | a result could not be written, or is in use by another run |
| 9 | `verify`: the plan holds, and that it is the best is not proven |
| 130 | interrupted without a plan; with one it is 5 |
"""


Leaf = tuple[list[str], Any, Any]  # the words of a command, the command, its context


def commands_page() -> dict[str, str]:
    """Path below docs/ -> text."""
    root = command()
    order = [name for names in COMMAND_GROUPS.values() for name in names]
    found = list(_leaves(root, typer.Context(root, info_name="plan")))
    found.sort(key=lambda leaf: order.index(leaf[0][1]) if leaf[0][1] in order else len(order))
    names = [{parameter.name for parameter in command.get_params(context)} for _, command, context in found]
    shared = set.intersection(*names)
    parts = [HEAD, _contents(found), *(_section(leaf, shared) for leaf in found), _shared(found[0], shared), TAIL]
    return {"commands.md": "".join(parts)}


def _leaves(command: Any, context: Any) -> Iterator[Leaf]:
    """Everything that can be run."""
    below = getattr(command, "commands", {})
    if not below:
        yield context.command_path.split(), command, context
    for name, part in below.items():
        yield from _leaves(part, typer.Context(part, info_name=name, parent=context))


def _contents(found: list[Leaf]) -> str:
    """Commands by when one needs them."""
    titles = {name: title for title, names in COMMAND_GROUPS.items() for name in names}
    rows = []
    for title in (*COMMAND_GROUPS, OTHER_COMMANDS):
        here = [words for words, _, _ in found if titles.get(words[1], OTHER_COMMANDS) == title]
        rows.append([title, ", ".join(link(" ".join(words[1:]), f"#{'-'.join(words)}") for words in here)])
    return table(("when", "commands"), rows) + "\n\n"


def _section(leaf: Leaf, shared: set[str]) -> str:
    """One command: what it does, how it is called, what it takes, examples."""
    words, command, context = leaf
    name = " ".join(words)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    parts = [f"## {name}", " ".join(command.help.split()), f"```text\n{usage}\n```"]
    parts += [table((title, ""), rows) for title, rows in _listed(command, context, shared).items() if rows]
    examples = re.findall(r"^  (plan .*)$", command.epilog or "", re.MULTILINE)
    return "\n\n".join([*parts, "\n".join(["```sh", *examples, "```"])]) + "\n\n"


def _listed(command: Any, context: Any, shared: set[str]) -> dict[str, list[list[str]]]:
    """Rows of a command's arguments and options by group, less those that all commands have."""
    titles = {name: title for title, names in OPTION_GROUPS.items() for name in names}
    rows: dict[str, list[list[str]]] = {title: [] for title in ("Arguments", OWN, *OPTION_GROUPS)}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and parameter.name not in shared:
            argument = parameter.param_type_name == "argument"
            rows["Arguments" if argument else titles.get(parameter.name, OWN)].append(_row(record))
    return rows


def _row(record: tuple[str, str]) -> list[str]:
    return [f"`{record[0]}`", record[1]]


def _shared(leaf: Leaf, shared: set[str]) -> str:
    """Options that every command has."""
    _, command, context = leaf
    rows = [
        _row(parameter.get_help_record(context))
        for parameter in command.get_params(context)
        if parameter.name in shared
    ]
    return "## Options of every command\n\n" + table(("option", ""), rows) + "\n\n"
