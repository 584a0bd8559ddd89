"""docs/model.md and docs/model/: every equation, rendered from its docstring."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from chapters import CHAPTERS, Chapter
from docstrings import documented, is_equation
from markup import link, paragraphs, prose, table

import planner.equations
from planner.equations.registry import REGISTRY
from planner.yamlfile import parse_yaml

ROOT = Path(__file__).parents[2]
PUBLISHED = Path("tests/published/data")
HEAD = "<!-- made by `make docs` from the docstrings of planner/equations; change those -->"

INTRODUCTION = """\
Every number that `plan` predicts is made of the equations below. Each is one function in `planner/equations`,
works on a number as on an array of millions of candidates, and has an id that `plan explain` prints beside the
number: so a figure of a report leads to an equation, the equation to the line of code that computes it, and to
the paper that it was taken from. There is one copy of each; the search, the explanation and the report all call
the same function. Closed forms of papers that only check them stand with the tests, in `tests/published/equations`.

The equations themselves know nothing of devices or prices. [`planner/estimate`](../planner/estimate) composes
them into named terms whose sum is the total, with constants from
[`hardware/calibration`](../hardware/calibration). How far the composed predictions are off on published
measurements is told in [validation](validation.md); where the sources that the model was drafted from turned
out wrong, in [corrections](corrections.md).

Units are base units throughout: bytes, seconds, FLOP, tokens, USD. `[1]` is a ratio without a unit."""


def model_pages() -> dict[str, str]:
    """Path below docs/ -> text, of the overview and of one page a chapter."""
    rooms = equation_rooms()
    told = [room for chapter in CHAPTERS for room in chapter.rooms]
    if sorted(told) != sorted(rooms):
        raise ValueError(f"chapters.py tells {sorted(set(told) ^ set(rooms))} not at all, or tells what is not there")
    pages = {f"model/{chapter.page}.md": _chapter(chapter, rooms) for chapter in CHAPTERS}
    return {"model.md": _overview(rooms), **pages}


def equation_rooms() -> dict[str, list[str]]:
    """Room -> ids of its equations, in the order of the source."""
    for module in pkgutil.iter_modules(planner.equations.__path__):
        importlib.import_module(f"planner.equations.{module.name}")
    rooms: dict[str, list[str]] = {}
    for identifier, function in _equations().items():
        rooms.setdefault(function.__module__.rsplit(".", 1)[-1], []).append(identifier)
    return {room: sorted(ids, key=lambda one: _line(REGISTRY[one])) for room, ids in rooms.items()}


def _equations() -> dict[str, Callable[..., Any]]:
    """What predictions are made of: of the registry all but what the tests keep to check it."""
    return {one: each for one, each in REGISTRY.items() if each.__module__.startswith("planner.equations.")}


def _overview(rooms: Mapping[str, list[str]]) -> str:
    parts = ["# The model", HEAD, paragraphs(INTRODUCTION)]
    numbers = sum(bool(calls) for _, calls in _published())
    counted = f"""{len(_equations())} equations. {_checked_count()} of them are held directly against {numbers} printed
        numbers of papers, model cards and engine logs (`{PUBLISHED}`), to the digits printed; all of them against
        their examples, and as parts of predictions against the measurements of validation."""
    parts.append(paragraphs(counted))
    for chapter in CHAPTERS:
        parts += [
            f"## {link(chapter.title, f'model/{chapter.page}.md')}",
            paragraphs(_from_above(chapter.introduction.split("\n\n")[0])),
        ]
        rows = [
            [link(identifier, f"model/{chapter.page}.md#{identifier.lower()}"), prose(_summary(identifier))]
            for room in chapter.rooms
            for identifier in rooms[room]
        ]
        parts.append(table(("Equation", "What it gives"), rows))
    return "\n\n".join(parts) + "\n"


def _from_above(text: str) -> str:
    """Text of a chapter with its links as they lead from docs/."""
    return re.sub(r"\]\((?!\.\./)", "](model/", text).replace("](../", "](")


def _chapter(chapter: Chapter, rooms: Mapping[str, list[str]]) -> str:
    parts = [f"# {chapter.title}", HEAD, paragraphs(chapter.introduction), link("All chapters", "../model.md")]
    for room in chapter.rooms:
        about = inspect.getdoc(importlib.import_module(f"planner.equations.{room}")) or ""
        path = f"planner/equations/{room}.py"
        parts += [f"## {room.replace('_', ' ').capitalize()}", prose(about), link(f"`{path}`", f"../../{path}")]
        parts += [_equation(identifier) for identifier in rooms[room]]
    return "\n\n".join(parts) + "\n"


def _equation(identifier: str) -> str:
    """One equation: what it gives, the equation, its symbols, sources, an example, where it stands."""
    function = REGISTRY[identifier]
    told = documented(function)
    parts = [f"### {identifier}", f"**{prose(told.summary)}**"]
    parts += _notes(told.notes)
    rows = [[f"`{argument.names}`", prose(argument.text), argument.unit] for argument in told.arguments]
    parts.append(
        table(("Argument", "Meaning", "Unit"), [*rows, ["*gives*", prose(told.returns.text), told.returns.unit]])
    )
    parts.append("\n".join(f"{number}. {prose(text)}" for number, text in enumerate(told.references, 1)))
    parts += [_example(told.example), _where(identifier)]
    return "\n\n".join(parts)


def _notes(notes: Sequence[str]) -> list[str]:
    """Equations in blocks of their own, those that follow each other in one; prose between them."""
    parts: list[str] = []
    for equations, group in groupby(notes, is_equation):
        text = ("\n" if equations else "\n\n").join(group)
        parts.append(f"```text\n{text}\n```" if equations else prose(text))
    return parts


def _example(example: str) -> str:
    """The doctest as a block; lines of prose within it stay above the code that follows them."""
    parts: list[list[str]] = [[]]
    for line in example.splitlines():
        if line:
            parts[-1].append(line)
        elif parts[-1]:
            parts.append([])
    return "\n\n".join(
        "\n".join(["```python", *part, "```"]) if part[0].startswith(">>>") else prose("\n".join(part))
        for part in parts
        if part
    )


def _where(identifier: str) -> str:
    function = REGISTRY[identifier]
    path = f"planner/equations/{function.__module__.rsplit('.', 1)[-1]}.py"
    text = f"In code: {link(f'`{function.__name__}`', f'../../{path}#L{_line(function)}')}."
    files = _published_of(identifier)
    if not files:
        return text
    named = ", ".join(f"{link(f'`{name}`', f'../../{PUBLISHED}/{name}')} ({count})" for name, count in files)
    return f"{text} Held against printed numbers: {named}."


def _line(function: Callable[..., Any]) -> int:
    return inspect.getsourcelines(function)[1]


def _summary(identifier: str) -> str:
    return documented(REGISTRY[identifier]).summary


@cache
def _published() -> tuple[tuple[str, frozenset[str]], ...]:
    """File and equation ids of every printed number that an equation is held against."""
    found = []
    for path in sorted((ROOT / PUBLISHED).glob("*.yaml")):
        document = parse_yaml(path.read_text(encoding="utf-8"), str(path)).data
        found += [(path.name, frozenset(_calls(row))) for row in document["values"]]
    return tuple(found)


def _calls(node: Any) -> Iterable[str]:
    """Equation ids anywhere in an expression."""
    if isinstance(node, Mapping):
        if isinstance(node.get("call"), str):
            yield node["call"]
        for value in node.values():
            yield from _calls(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _calls(value)


def _published_of(identifier: str) -> list[tuple[str, int]]:
    return sorted(Counter(name for name, calls in _published() if identifier in calls).items())


def _checked_count() -> int:
    return sum(bool(_published_of(identifier)) for identifier in _equations())
