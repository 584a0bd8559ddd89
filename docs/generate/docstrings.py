"""The docstring of an equation, taken apart: summary, arguments with units, equation, references, example."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_UNIT = re.compile(r"\s*\[([^\[\]]+)\][.;]?$")
_EQUATION = re.compile(r"Eq\. \(\d+\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One line of `Parameters`: the names, what they are, and the unit when there is one."""

    names: str
    text: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Documented:
    """An equation function as its docstring tells it."""

    summary: str
    arguments: tuple[Argument, ...]
    returns: Argument
    notes: tuple[str, ...]  # paragraphs, in order
    references: tuple[str, ...]
    example: str


def documented(function: Callable[..., Any]) -> Documented:
    """Read the docstring of an equation function.

    Parameters
    ----------
    function
        An equation with the sections that `tests/equations/test_equations_registry.py` demands.

    Raises
    ------
    KeyError
        A section is missing.
    """
    head, sections = _sections(inspect.getdoc(function) or "")
    return Documented(
        summary=" ".join(head),
        arguments=tuple(_arguments(sections["Parameters"])),
        returns=_split_unit("", " ".join(line.strip() for line in sections["Returns"]).strip()),
        notes=tuple(_paragraphs(sections["Notes"])),
        references=tuple(_references(sections["References"])),
        example="\n".join(sections["Examples"]).strip("\n"),
    )


def is_equation(paragraph: str) -> bool:
    """Whether a paragraph of `Notes` states an equation; else it is prose."""
    return bool(_EQUATION.match(paragraph))


def _sections(text: str) -> tuple[list[str], dict[str, list[str]]]:
    """Lines before the first title, and the lines below each title, without the rules."""
    head: list[str] = []
    sections: dict[str, list[str]] = {}
    into, lines = head, text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and set(below) == {"-"} and len(below) == len(line):
            into = sections[line] = []
        elif not line or set(line) != {"-"}:
            into.append(line)
    return [line for line in head if line], sections


def _arguments(lines: list[str]) -> list[Argument]:
    """Names stand at the margin, what they mean below them, indented."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line and not line.startswith(" "):
            found.append((line.strip(), []))
        elif line.strip():
            found[-1][1].append(line.strip())
    return [_split_unit(names, " ".join(text)) for names, text in found]


def _split_unit(names: str, text: str) -> Argument:
    found = _UNIT.search(text)
    return Argument(names=names, text=text[: found.start()] if found else text, unit=found[1] if found else "")


def _paragraphs(lines: list[str]) -> list[str]:
    """Paragraphs with their line breaks; an equation that starts within one begins a paragraph of its own."""
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if not line.strip() or (_EQUATION.match(line) and paragraphs[-1]):
            paragraphs.append([])
        if line.strip():
            paragraphs[-1].append(line.rstrip())
    return ["\n".join(paragraph) for paragraph in paragraphs if paragraph]


def _references(lines: list[str]) -> list[str]:
    """One text a reference: "[2]" at the margin begins the next."""
    found: list[str] = []
    for line in lines:
        if line.startswith("[") or not found:
            found.append(line.strip())
        elif line.strip():
            found[-1] += " " + line.strip()
    return [re.sub(r"^\[\d+\] *", "", text) for text in found]
