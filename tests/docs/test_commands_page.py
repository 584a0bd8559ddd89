"""The page of commands tells of every command and option that there is; that it is current is tested with all pages."""

from __future__ import annotations

import re
from pathlib import Path

from planner.cli.help_layout import COMMAND_GROUPS
from planner.cli.main import command

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")


def test_every_command_has_a_section_with_two_examples() -> None:
    sections = dict(zip(*[iter(re.split(r"^## (plan .*)$", PAGE, flags=re.MULTILINE)[1:])] * 2, strict=True))
    top = getattr(command(), "commands", {})
    assert {name.split()[1] for name in sections} == set(top)
    for name, text in sections.items():
        examples = text.split("```sh\n")[1].split("```")[0].splitlines()
        assert len(examples) == 2, name
        assert all(example.startswith(name) for example in examples)
        assert f"#{name.replace(' ', '-')})" in PAGE


def test_groups_name_only_commands_that_exist() -> None:
    top = getattr(command(), "commands", {})
    assert {name for names in COMMAND_GROUPS.values() for name in names} <= set(top)


def test_exit_codes_are_those_of_the_code() -> None:
    from planner import errors
    from planner.answers.shown import EXIT_CODES

    kinds = (errors.UsageError, errors.InputError, errors.InfeasibleError, errors.StoppedError, errors.OutputError)
    codes = {kind.exit_code for kind in kinds} | set(EXIT_CODES.values())
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE.split("## Exit codes")[1], re.MULTILINE)}
    assert codes <= told
