"""Mistakes as people read them: reference, sentence, place with a caret, hint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from planner.errors import Problem
from planner.report import csv, json
from planner.report.blocks import Block, Items, Lines
from planner.report.escape import terminal
from planner.report.text import Style


def render(problems: Iterable[Problem], *, colour: bool = False) -> str:
    """All problems, an empty line between two, ready for stderr."""
    style = Style(colour)
    return "\n\n".join("\n".join(_lines(problem, style)) for problem in problems) + "\n"


def _lines(problem: Problem, style: Style) -> list[str]:
    mark = f"{problem.severity}[{problem.reference}]"
    # split on newlines of our own making only: the parts are cleaned before they are joined
    first, *rest = str(problem).split("\n")
    tone = "bad" if problem.severity == "error" else "fair"
    return [style(mark, "bold", tone) + terminal(first[len(mark) :]), *map(terminal, rest)]


def rows(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Problems as plain rows."""
    return [
        {
            "severity": problem.severity,
            "reference": problem.reference,
            "message": problem.message,
            "places": [str(place) for place in problem.places],
            "hint": problem.hint,
        }
        for problem in problems
    ]


def findings(
    problems: Sequence[Problem],
    subject: str,
    form: str,
    *,
    proven: str = "",
    width: int = 100,
    colour: bool = False,
) -> str:
    """The outcome of a check in every output format: what was found, or that nothing was and what is proven.

    Parameters
    ----------
    problems
        What was found; warnings alone are no failure.
    subject
        What was checked, in words: a file, a catalog.
    form
        table, json, csv or md.
    proven
        What is proven of it, in words; table and md tell it where there are no errors. "" = nothing.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    from planner.report import markdown, text

    errors = sum(problem.severity == "error" for problem in problems)
    if form == "json":
        return json.render(
            {"subject": subject, "ok": errors == 0, "errors": errors, "proven": proven, "problems": rows(problems)}
        )
    if form == "csv":
        flat = [row | {"places": " ".join(row["places"])} for row in rows(problems)]
        return csv.render(flat, ["severity", "reference", "message", "places", "hint"])
    warnings = len(problems) - errors
    verdict = f"{subject}: {_count(errors, 'error')}, {_count(warnings, 'warning')}" if problems else f"{subject}: ok"
    verdict += f" · {proven}" if proven and not errors else ""
    if form == "md":
        items = tuple(f"{problem.reference}: {problem.message} {problem.hint}".strip() for problem in problems)
        blocks: list[Block] = [Lines(lines=(verdict,)), Items(title="Findings", items=items)]
        return markdown.draw(blocks)
    drawn = text.draw([Lines(lines=(verdict,))], width=width, style=text.Style(colour))
    return drawn + ("\n" + render(problems, colour=colour) if problems else "")


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
